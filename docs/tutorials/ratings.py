# %% [markdown]
# # Ratings
# Ten people rated each of 7,520 words and emoticons from very negative to very positive. The classes have an order, so being
# one step off is a smaller error than being four steps off.
#
# ## The votes
# They come with the package `vaderSentiment`: real ratings of real people (Hutto and Gilbert 2014; the extra `demo`,
# [install](index.md#install)).

# %%
import numpy as np
import torch

import dissensus as dis

votes = dis.load("words")
votes

# %%
print(dis.inspect(votes, resamples=100))

# %% [markdown]
# Words on which ten people are furthest apart:

# %% alt="Bars of the ratings of the six most contested words, from very negative to very positive."
labels = dis.label(votes)
dis.plot.contested(labels, texts=labels.items.tolist())

# %% [markdown]
# ## A model of letters
# 1,500 words, each turned into counts of its groups of letters; a linear model, trained on the whole distributions. The loss
# `emd` (earth mover's distance) knows the order of classes, cross-entropy does not.

# %%
from dissensus.items.ngrams import character_ngrams

chosen = np.random.default_rng(0).permutation(len(labels))[:1500]
train, test = chosen[:1000], chosen[1000:]
x = torch.from_numpy(character_ngrams(labels.items[chosen]))


def trained(loss, target):
    torch.manual_seed(0)
    model = torch.nn.Linear(x.shape[1], 5)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    batches = dis.loader(x[:1000], dis.deliver(target, labels.take(train), seed=0), batch_size=100)
    for epoch in range(8):
        batches.set_epoch(epoch)
        for inputs, given, _ in batches:
            optimiser.zero_grad()
            loss(model(inputs), given).mean().backward()
            optimiser.step()
    with torch.no_grad():
        return model(x[1000:]).softmax(dim=1).numpy()


systems = {
    "majority": trained(dis.losses.cross_entropy, "majority"),
    "soft": trained(dis.losses.cross_entropy, "soft"),
    "soft, emd": trained(dis.losses.emd, "soft"),
}

# %% [markdown]
# ## Scores that know the scale
# `rps`, the ranked probability score, is the second headline where classes are ordered: it has its own worth in people. `wasserstein` counts by
# how many steps of the scale probability would have to move, on average.

# %%
result = dis.evaluate(
    labels.take(test),
    systems,
    classes=labels.classes,
    metrics=["soft_nll", "rps", "wasserstein", "entropy_spearman"],
    majority="majority",
    resamples=200,
)
result

# %% [markdown]
# In a study the same is `loss = "emd"` under `[training]`. Where people were asked for numbers, a column called `rating` makes the
# classes ordered; `--nominal` says that they are not.
