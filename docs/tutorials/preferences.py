# %% [markdown]
# # Preferences and judges
# Which of two answers is better? PandaLM's test set (Wang et al. 2024) has 999 pairs of answers of five language models to an
# instruction, each judged by three people, and what two judges said of the same pairs: GPT-3.5 and PandaLM-7B.
#
# ## The files
# They are three JSON files, which are not part of this package: put the folder `preferences` where `DISSENSUS_DATA` points to. Without them
# this page simulates files of the same form, and says so.

# %%
import json
import os
from pathlib import Path

import numpy as np
import polars as pl

import dissensus as dis

folder = Path(os.environ.get("DISSENSUS_DATA", ".")) / "preferences"
real = (folder / "pandalm-testset-v1.json").exists()
if not real:
    folder = Path("preferences")
    folder.mkdir()
    random, models = np.random.default_rng(0), ["bloom-7b", "llama-7b", "opt-7b", "pythia-6.9b"]
    pairs, gpt, panda = [], [], []
    for idx in range(300):
        a, b = sorted(random.choice(4, 2, replace=False))
        words = random.integers(5, 60, 2)
        lean = [0.0, 1.0, -0.3, 0.1][a] - [0.0, 1.0, -0.3, 0.1][b] + random.normal(0, 2)
        said = [int(np.digitize(lean + random.normal(0, noise), [-0.3, 0.3])) for noise in (0.3, 0.3, 0.3, 1.5, 2.0)]
        votes = [{0: 2, 1: 0, 2: 1}[place] for place in said]
        pairs.append(
            {"idx": idx, "cmp_key": f"{models[a]}_{models[b]}", "instruction": f"Question {idx // 3}"}
            | {f"response{k + 1}": "word " * int(words[k]) for k in (0, 1)}
            | {f"annotator{k + 1}": votes[k] for k in range(3)}
        )
        gpt.append({"idx": idx, "gpt_result": {0: "Tie"}.get(votes[3], str(votes[3]))})
        panda.append({"idx": idx, "pandalm_result": votes[4]})
    written = {"testset-v1": pairs, "gpt-3.5-turbo": gpt, "7b": panda}
    for name, rows in written.items():
        (folder / f"pandalm-{name}.json").write_text(json.dumps(rows))
print("PandaLM's test set" if real else "SIMULATED: files of the same form; no number below is PandaLM's")

# %% [markdown]
# ## Read
# `--format preferences` knows left, right and tie in the words of many tools, here 1, 2 and 0. What can be meant in several ways is refused
# with the options that choose; these are what such a refusal led to. `--sides cmp_key --separator _` says where the names of the two models
# stand. Sides are put in one order, and which was shown on the left is kept.

# %%
Path("pairs.json").write_bytes((folder / "pandalm-testset-v1.json").read_bytes())
# !dissensus votes inspect pairs.json --format preferences --annotators annotator1,annotator2,annotator3 --sides cmp_key --separator _

# %% [markdown]
# ## Two judges beside three people
# A judge is one more column, marked as a model. What GPT-3.5 said without choosing ("garbage") is missing.

# %%
frame = pl.DataFrame(json.loads((folder / "pandalm-testset-v1.json").read_text()))
people = ["annotator1", "annotator2", "annotator3"]
frame = frame.with_columns(pl.col(people).cast(pl.String))
judges = {"GPT-3.5": ("gpt-3.5-turbo", "gpt_result"), "PandaLM-7B": ("7b", "pandalm_result")}
for judge, (file, column) in judges.items():
    answers = json.loads((folder / f"pandalm-{file}.json").read_text())
    said = {row["idx"]: {"Tie": "0"}.get(str(row[column]), str(row[column])) for row in answers}
    frame = frame.with_columns(
        pl.Series(judge, [said[idx] if said[idx] in ("0", "1", "2") else None for idx in frame["idx"]])
    )
votes = dis.read_votes(
    frame,
    format="preferences",
    annotators=[*people, *judges],
    models=[*judges],
    item_attributes=["instruction", "response1", "response2"],
    sides=["cmp_key"],
    separator="_",
)
looked = dis.inspect(votes)
print(f"Two people agree on {looked.agreement['pairwise_agreement'].value:.0%} of pairs.")
for row in looked.models.rows():
    print(f"{row['annotator']} agrees with a person on {row['agreement']:.0%} ({row['low']:.0%} to {row['high']:.0%}).")
for bias in looked.biased():
    print(f"{bias.annotator}: {bias.bias:+.3f} [{bias.low:+.3f}, {bias.high:+.3f}] for what is shown on the left")

# %% [markdown]
# ## Worth in people
# A judge names a side and no probabilities. `combine` learns from the votes of other pairs what its word is worth, and says how many people's
# votes forecast as well as it does.

# %%
for judge in judges:
    answers = dis.label(votes.subset(annotators=[judge]).models_as_people())
    both = dis.combine(votes.people, {judge: answers}, resamples=300)
    print(judge, "-", both.verdict[1])

# %% [markdown]
# ## Who wins?
# Bradley and Terry's scores with ties (Davidson 1970), for other instructions and other people: votes on one instruction are not independent. Do the
# judges rank the five models as people do?

# %%
won = dis.ranking(votes, question="instruction")
won

# %% [markdown]
# Do people, or judges, like long answers? And who wins at equal length?

# %%
at_length = dis.ranking(votes, question="instruction", length=["response1", "response2"])
for one in (at_length.people, *(other.ranking for other in at_length.beside)):
    print(
        f"{one.name}: a doubling of length gains {one.length} logits;", ", ".join(row.system for row in one.standings)
    )

# %% [markdown]
# ## The swap test
# Which answer is called left is arbitrary. With the sides of half of the pairs exchanged, every number is the same:

# %%
half = np.random.default_rng(0).random(len(votes.items)) < 0.5
swapped = dis.swap_sides(votes, half)
again = dis.ranking(swapped, question="instruction")
print(max(abs(a.score.value - b.score.value) for a, b in zip(won.people.standings, again.people.standings)) < 1e-9)
alpha = [dis.agreement(one.people, resamples=0)["krippendorff_alpha_nominal"].value for one in (votes, swapped)]
print(abs(alpha[0] - alpha[1]) < 1e-9)

# %% [markdown]
# ## Where people are divided
# A [report](../guides/report.md) shows such pairs side by side: `dissensus report --votes pairs.json --format preferences --keep response1 --keep
# response2 --predictions model.csv -o page.html`. More on the [page about preferences](../preferences.md).
