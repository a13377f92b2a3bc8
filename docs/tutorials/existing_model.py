# %% [markdown]
# # An existing model or LLM
# You have predictions and you have votes. How close is the model to people, how many people is it worth, and may it take a
# person's place?
#
# ## What a model said
# Files are read as they are: probabilities, logits, hard labels, several sampled answers, log-probabilities of tokens, harness
# files ([the list](../evaluation.md)). Here an LLM was asked five times about each of 150 texts, one JSON object a line. Its answers are
# made up on the spot, and so are the people: it sees what people see, but is too sure of it.

# %%
import json

import numpy as np

import dissensus as dis

random = np.random.default_rng(0)
classes = ["contradicts", "neutral", "follows"]
truth = random.dirichlet([0.5, 0.5, 0.5], 150)
votes = dis.simulate_votes(truth, 6, annotators=12, seed=0, classes=classes)
dis.write_votes(votes, "votes.csv")

sharp = truth**3 / (truth**3).sum(axis=1, keepdims=True)
with open("llm.jsonl", "w", encoding="utf-8") as file:
    for item, shares in zip(votes.items, sharp):
        for answer in random.choice([*classes, "I cannot tell."], 5, p=[*(0.98 * shares), 0.02]):
            file.write(json.dumps({"item": str(item), "answer": str(answer).capitalize()}) + "\n")

# %% [markdown]
# ## The verdict
# An answer that names no class is never dropped: it counts as one more class that nobody voted for, and the notes say so.

# %%
# !dissensus evaluate --votes votes.csv --predictions llm.jsonl

# %% [markdown]
# ## Sharpened on purpose, and mended
# A calibrator fitted to the votes of other items makes an over-sure model honest again.

# %%
from dissensus.evaluation import fit_calibrator

people, half = dis.label(votes), np.arange(75)
calibrator = fit_calibrator("temperature", people.probabilities[half], sharp[half])
rest = people.take(np.arange(75, 150))
dis.evaluate(
    rest,
    {"as it is": sharp[75:], "calibrated": calibrator(sharp[75:])},
    classes=classes,
    reference="as it is",
    resamples=200,
)

# %% [markdown]
# ## May it take a person's place?
# The alternative annotator test sets each person aside in turn and asks whether the model agrees with the others as well as that
# person does ([more](../stand-in.md)).

# %%
answers = {str(item): classes[place] for item, place in zip(votes.items, sharp.argmax(axis=1))}
judged = dis.stand_in(votes, {"llm": answers}, epsilon=0.1, resamples=100)
print(judged.models["llm"].verdict)

# %% [markdown]
# ## As a page
# [The page](../gallery/existing_model-report.html) has the items on which people and the model are furthest apart.

# %%
# !dissensus report --votes votes.csv --predictions llm.jsonl -o report.html
