# %% [markdown]
# # Your own PyTorch loop
# You have a model, a dataset and a loop. Three lines of it change.
#
# ## Before
# What people think of 400 items, five votes on each, and features to learn from.

# %%
import numpy as np
import torch

import dissensus as dis

truth = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], 400)
votes = dis.simulate_votes(truth, 5, annotators=20, seed=0)
x = torch.from_numpy(np.log(truth + 0.05)).float()
labels = dis.label(votes)
train, test = np.arange(320), np.arange(320, 400)

# %% [markdown]
# ## The loop
# 1. The `DataLoader` becomes `dis.loader`, with a delivery. (A *delivery* is how labels become training targets, epoch by epoch.)
# 2. `set_epoch` says which epoch it is, since labels may change with it.
# 3. A batch is inputs, targets and the places of the items.


# %%
def trained(delivery: str) -> torch.nn.Module:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 3)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    batches = dis.loader(x[train], dis.deliver(delivery, labels.take(train), seed=0), batch_size=32)  # 1
    for epoch in range(15):
        batches.set_epoch(epoch)  # 2
        for inputs, target, item in batches:  # 3
            loss = dis.losses.cross_entropy(model(inputs), target).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return model


# %% [markdown]
# What a batch looks like depends on the delivery: `soft` gives distributions, `sls` and `multipass` class indices that change
# from epoch to epoch. The targets of the first three items:

# %%
for name in ("majority", "soft", "sls", "multipass"):
    delivered = dis.deliver(name, labels.take(train), seed=0)
    print(f"{name}: in the first epoch {delivered(0)[:3].numpy().round(1).tolist()}")
    print(f"{name}: in the second     {delivered(1)[:3].numpy().round(1).tolist()}")

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
# How many people's votes on an item forecast the others' votes as well as the model does?

# %% alt="The people ruler: the score of 0 to 4 people's votes, and where each system's score meets it."
dis.plot.people_ruler(result)

# %% [markdown]
# The page [In other people's loops](../loops.md) has workers, several processes, Lightning, scikit-learn and boosted trees.
