# %% [markdown]
# # Preferences and judges
# Which of two answers is better? PandaLM's test set (Wang et al. 2024) has 999 pairs of answers of five language models to an
# instruction, each judged by three people, and what two judges said of the same pairs: GPT-3.5 and PandaLM-7B.
#
# ## The files
# They are three JSON files (Apache-2.0), read from the folder that `DISSENSUS_DATA` names, or else from the authors' repository.

# %%
import json
import os
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import polars as pl

import dissensus as dis

data = os.environ.get("DISSENSUS_DATA")
official = "https://raw.githubusercontent.com/WeOpenML/PandaLM"
files = {
    "pairs.json": ("pandalm-testset-v1", "65d7cff541edaa2d1be0f4b206c31fae42bc334b/data/testset-v1"),
    "GPT-3.5": ("pandalm-gpt-3.5-turbo", "65d7cff541edaa2d1be0f4b206c31fae42bc334b/data/gpt-3.5-turbo-testset-v1"),
    "PandaLM-7B": ("pandalm-7b", "2e3f5898bce8c9077e0ee1ea34400dc279e461a2/data/pandalm-7b-testset-v1"),
}
for file, (here, there) in files.items():
    local = Path(data or ".", "preferences", f"{here}.json").absolute()
    with urlopen(local.as_uri() if data else f"{official}/{there}.json") as source:
        Path(file).write_bytes(source.read())

# %% [markdown]
# ## Read
# `--format preferences` knows left, right and tie in the words of many tools, here 1, 2 and 0. What can be meant in several ways is refused
# with the options that choose; these are what such a refusal led to. `--sides cmp_key --separator _` says where the names of the two models
# stand. Sides are put in one order, and which was shown on the left is kept.

# %%
# !dissensus votes inspect pairs.json --format preferences --annotators annotator1,annotator2,annotator3 --sides cmp_key --separator _

# %% [markdown]
# ## Two judges beside three people
# A judge is one more column, marked as a model. What GPT-3.5 said without choosing ("garbage") is missing.

# %%
frame = pl.DataFrame(json.loads(Path("pairs.json").read_text()))
people = ["annotator1", "annotator2", "annotator3"]
frame = frame.with_columns(pl.col(people).cast(pl.String))
judges = {"GPT-3.5": "gpt_result", "PandaLM-7B": "pandalm_result"}
for judge, column in judges.items():
    answers = json.loads(Path(judge).read_text())
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
looked = dis.inspect(votes, resamples=200)
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
    both = dis.combine(votes.people, {judge: answers}, resamples=100)
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
