# %% [markdown]
# # An existing model or LLM
# You have predictions and you have votes. How close is the model to people, how many people is it worth, and may it take a
# person's place?
#
# ## Ten people and six LLMs
# Is a restaurant review positive or negative about its food, service, ambiance or noise, or does it not say? Four of ten crowd workers answered each
# question (CEBaB), and so did six LLMs (Calderon, Reichart and Dror 2025). The files are read from the folder that `DISSENSUS_DATA` names, or else
# from the authors' repository.

# %%
import json
import os
from pathlib import Path
from urllib.request import urlopen

import numpy as np

import dissensus as dis

data = os.environ.get("DISSENSUS_DATA")
official = "https://raw.githubusercontent.com/nitaytech/AltTest/cc1d1f40fefa847ac7c45959e49132110f2932a2/data"
where = Path(f"{data}/alttest/cebab_aspects.").absolute().as_uri() if data else f"{official}/cebab_aspects/"
for kind in ("human", "llm"):
    with urlopen(f"{where}{kind}_annotations.json") as source:
        Path(f"cebab.{kind}_annotations.json").write_bytes(source.read())

votes = dis.read_votes("cebab.human_annotations.json")
llms = json.loads(Path("cebab.llm_annotations.json").read_text())
print(*votes.notes, sep="\n")
print({name: answers["1024000000__ambiance"] for name, answers in llms.items()})

# %% [markdown]
# From Python a model is a dictionary of answers, an array or a frame of probabilities, or a path. From the command line, `dissensus evaluate --votes
# votes.csv --predictions llm.jsonl` reads what LLM tools write as it is: sampled answers, log-probabilities of tokens, harness files
# ([the list](../evaluation.md)).
#
# ## One answer claims to be sure
# Where people are divided, a model that names one class and no probability is wrong about them. Six models that are asked the same are already a
# distribution:

# %%
panel = dis.label(dis.read_votes("cebab.llm_annotations.json").models_as_people())
systems = {"gpt-4o": llms["gpt-4o"], "six LLMs": panel}
dis.evaluate(votes, systems, reference="gpt-4o", resamples=100)

# %% [markdown]
# ## Calibrated
# Six answers that agree are still not certain. A calibrator fitted to the votes on half of the questions says how sure they should be:

# %%
from dissensus.evaluation import fit_calibrator

people = dis.label(votes)
panel = panel.take([panel.items.tolist().index(item) for item in people.items.tolist()])
said = 0.97 * panel.probabilities + 0.01  # a class that no model named is unlikely, not impossible
half = np.random.default_rng(0).permutation(len(people)) < len(people) // 2
calibrator = fit_calibrator("temperature", people.probabilities[half], said[half])
rest = people.take(np.flatnonzero(~half))
dis.evaluate(
    rest,
    {"as they are": said[~half], "calibrated": calibrator(said[~half])},
    classes=people.classes,
    reference="as they are",
    resamples=100,
)

# %% [markdown]
# ## Worth in people
# `combine` learns from the votes on other questions what a model's word is worth: how many people's votes forecast the others' as well.

# %%
for name in ("gpt-4o", "mistral-v03"):
    print(name, "-", dis.combine(votes, {name: llms[name]}, resamples=100).verdict[1])

# %% [markdown]
# ## May it take a person's place?
# The alternative annotator test sets each person aside in turn and asks whether the model agrees with the others as well as that
# person does ([more](../stand-in.md)).

# %%
judged = dis.stand_in(votes, llms, epsilon=0.1, resamples=100)
for name in ("gpt-4o", "mistral-v03"):
    print(judged.models[name].verdict)

# %% [markdown]
# ## As a page
# [The report](../gallery/existing_model-report.html) has the questions on which people and the models are furthest apart.

# %%
dis.report(rest, "report.html", predictions={"six LLMs, calibrated": calibrator(said[~half])}, classes=people.classes)
