# %% [markdown]
# # Your own PyTorch loop
# You have a model, a dataset and a loop. Three lines of it change.
#
# ## Before
# Ten real people rated each word from very negative to very positive (VADER, Hutto and Gilbert 2014; the extra `demo` brings them,
# [install](index.md#install)). The features are counts of a word's groups of letters.

# %%
import numpy as np
import torch

import dissensus as dis
from dissensus.items.ngrams import character_ngrams

labels = dis.label(dis.load("words"))
chosen = np.random.default_rng(0).permutation(len(labels))[:1200]
train, test = chosen[:800], chosen[800:]
x = torch.from_numpy(character_ngrams(labels.items))

# %% [markdown]
# ## The loop
# 1. The `DataLoader` becomes `dis.loader`, with a delivery. (A *delivery* is how labels become training targets, epoch by epoch.)
# 2. `set_epoch` says which epoch it is, since labels may change with it.
# 3. A batch is inputs, targets and the places of the items.


# %%
def trained(delivery: str) -> torch.nn.Module:
    torch.manual_seed(0)
    model = torch.nn.Linear(x.shape[1], len(labels.classes))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    batches = dis.loader(x[train], dis.deliver(delivery, labels.take(train), seed=0), batch_size=32)  # 1
    for epoch in range(10):
        batches.set_epoch(epoch)  # 2
        for inputs, target, item in batches:  # 3
            loss = dis.losses.cross_entropy(model(inputs), target).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return model


# %% [markdown]
# What a batch looks like depends on the delivery: `soft` gives soft labels, `sls` (label sampling) and `multipass` class indices that change
# from epoch to epoch. The targets of the first three words:

# %%
for name in ("majority", "soft", "sls", "multipass"):
    delivered = dis.deliver(name, labels.take(train), seed=0)
    print(f"{name}: in the first epoch {np.round(delivered(0)[:3].tolist(), 1).tolist()}")
    print(f"{name}: in the second     {np.round(delivered(1)[:3].tolist(), 1).tolist()}")

# %% [markdown]
# ## Which is closest to people?

# %%
systems = {
    name: trained(name)(x[test]).softmax(dim=1).detach().numpy() for name in ("majority", "soft", "sls", "multipass")
}
result = dis.evaluate(labels.take(test), systems, classes=labels.classes, majority="majority", resamples=200)
result

# %% [markdown]
# ## Worth in people
# How many people's votes on a word forecast the others' votes as well as the model does?

# %% alt="The people ruler: the score of 0 and more people's votes, and where each system's score meets it."
dis.plot.people_ruler(result)

# %% [markdown]
# The page [In other people's loops](../loops.md) has workers, several processes, Lightning, scikit-learn and boosted trees.
