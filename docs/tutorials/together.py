# %% [markdown]
# # Model and people together
# Ten people rated each of 7,520 words. Suppose you can afford two ratings for a new word, and have a simple model. What do the two
# tell together, which answers should you expect, and which words are worth asking about?
#
# ## Real votes, and a model of letters
# The ratings come with the package `vaderSentiment` (Hutto and Gilbert 2014; the extra `demo`, [install](index.md#install)). The model needs no
# PyTorch: it predicts for a word what people said of 1,500 other words, the more alike in their letters the more.

# %%
import numpy as np

import dissensus as dis
from dissensus.items.ngrams import character_ngrams

votes = dis.load("words")
labels = dis.label(votes)
chosen = np.random.default_rng(0).permutation(len(labels))[:1800]
train, test = chosen[:1500], chosen[1500:]

letters = character_ngrams(labels.items[chosen])
letters = letters / np.maximum(np.linalg.norm(letters, axis=1, keepdims=True), 1e-9)
weights = np.exp(12 * letters[1500:] @ letters[:1500].T)
model = weights @ labels.probabilities[train] / weights.sum(axis=1, keepdims=True)

people = votes.take_items(test)
dis.evaluate(people, model, classes=votes.classes, resamples=100)

# %% [markdown]
# ## Two votes and the model
# `combine` makes label distributions of votes and predictions. How many people a prediction counts for is learnt from votes on other
# words; here every word gets two of its ten votes, and the rest tell how well that went.

# %%
two = dis.subsample(people, 2, seed=0)
both = dis.combine(two, model, classes=votes.classes, resamples=100)
others = people.counts - two.counts


def soft_nll(distributions):
    return float(-(others / others.sum(axis=1, keepdims=True) * np.log(distributions)).sum(axis=1).mean())


print(f"model alone {soft_nll(model):.3f}, with two votes {soft_nll(both.labels.probabilities):.3f}")

# %% [markdown]
# With all ten votes known it can be said in people: what n votes and the model together are worth.

# %%
print(*dis.combine(people, model, classes=votes.classes, resamples=100).verdict, sep="\n")

# %% [markdown]
# ## Sets that hold a person's answer
# Which ratings should you expect of the next person? Sets are calibrated on votes: of a word that is new to them they hold a random
# person's rating nine times out of ten. Calibrated on majorities, as is usual, they would promise too much.

# %%
sets = dis.prediction_sets(people, model, classes=votes.classes, level=0.9, resamples=100)
print(*sets.verdict, sep="\n")
for word, inside in zip(people.items[:4], sets.of(model[:4])):
    print(word, "|", ", ".join(np.array(sets.classes)[inside]))

# %% [markdown]
# ## When to ask
# Votes help where they would move the model's answer; where people are divided and the model knows it, they do not. A tenth of the words
# go to people:

# %%
asked = dis.defer(people, model, classes=votes.classes, share=0.1, resamples=100)
print(*asked.verdict, sep="\n")
print(*asked.items[asked.votes > 0][:5])

# %% [markdown]
# From the command line, with votes and predictions in files: `dissensus evaluate --votes votes.csv --predictions model.csv --sets 0.9
# --defer 0.1 --marked marked.csv`. What is promised, and how well it held on real sets, is in
# [Model and people together](../together.md).
