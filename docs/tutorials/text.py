# %% [markdown]
# # Texts
# From a table of votes and a table of texts to a model that is as unsure as people, a report, and predictions for new
# texts.
#
# ## The two tables
# Your votes are one row for each vote: which item, who, and what they said. Your texts are one row for each item. Here both
# are made on the spot: 240 short reviews, each judged by six of 20 simulated people. Where a review praises one thing and
# complains of another, they disagree.

# %%
import csv

import numpy as np

import dissensus as dis

random = np.random.default_rng(0)
words = {"superb": 0.97, "lovely": 0.9, "fine": 0.6, "plain": 0.4, "slow": 0.2, "awful": 0.03}
food, staff = random.choice(list(words), (2, 240))
texts = [f"The food was {one} and the staff were {other}." for one, other in zip(food, staff)]
good = np.array([words[one] * words[other] for one, other in zip(food, staff)])
bad = np.array([(1 - words[one]) * (1 - words[other]) for one, other in zip(food, staff)])
truth = np.column_stack([bad, 1 - good - bad, good])
simulated = dis.simulate_votes(truth, 6, annotators=20, seed=0, classes=["bad", "mixed", "good"])

dis.write_votes(simulated, "votes.csv")
with open("texts.csv", "w", newline="", encoding="utf-8") as file:
    csv.writer(file).writerows([("item", "text"), *enumerate(texts)])

# %% [markdown]
# ## Look at the votes
# `read_votes` finds out which column is what, and refuses what can be read in two ways.

# %%
votes = dis.read_votes("votes.csv")
print(dis.inspect(votes, resamples=200))

# %% [markdown]
# These are label distributions: for each review a share for each class. Most contested first:

# %% alt="Bars of what people said of the six most contested reviews: shares of bad, mixed and good."
labels = dis.label(votes)
dis.plot.contested(labels, texts=[texts[int(item)] for item in labels.items])

# %% [markdown]
# ## Train in three ways
# A study is a small file. (A *delivery* is how labels become training targets, epoch by epoch: `majority` gives it the most voted
# class, `soft` the whole distribution, `multipass` one vote after the other.) `dissensus study init votes.csv texts.csv`
# writes a first one with a remark beside every choice. Nine small runs are done soonest one after the other, by the plain loop;
# left to itself, `run` uses all cores or the GPU.

# %%
study = """
name = "reviews"
question = "Does it help to show the model every vote?"

[dataset]
votes = "votes.csv"
texts = "texts.csv"

[grid]
deliveries = ["majority", "soft", "multipass"]
models = ["linear"]
seeds = 3

[training]
regime = "early-stopping"
epochs = 25
learning_rate = 0.03
"""
with open("study.toml", "w", encoding="utf-8") as file:
    file.write(study)
scored = dis.run("study.toml", engine="loop")
scored

# %% [markdown]
# The first lines are the verdict: who is closest to people, and how many people's votes on a text would forecast the other
# people's votes as well as the model does.
#
# ## The report
# One page that opens anywhere; [this is the one](../gallery/text-report.html) that the next line wrote.

# %%
dis.report(scored, "report.html")

# %% [markdown]
# ## Take the model along
# A bundle is a folder that predicts on any machine, without the votes.

# %%
from dissensus_train.bundles import export_bundle

export_bundle(scored, "model")
model = dis.load_model("model")
new = ["The food was superb and the staff were awful.", "The food was lovely and the staff were fine."]
for text, shares in zip(new, model.predict_proba(new)):
    print(text, dict(zip(labels.classes, shares.round(2).tolist())))

# %% [markdown]
# The same from the command line: `dissensus votes inspect`, `dissensus study run`, `dissensus report`, `dissensus study export`
# and `dissensus predict`; see the [five-minute tour](../start/tour.md).
