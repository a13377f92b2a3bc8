"""A PyTorch loop of your own on votes; lines with a number are the ones that change."""

import numpy as np
import torch

import dissensus as dis

truth = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], 400)  # what people think of 400 items
votes = dis.simulate_votes(truth, 5, annotators=20, seed=0)
x = torch.from_numpy(np.log(truth + 0.05)).float()
labels = dis.label(votes)
train, test = np.arange(0, 320), np.arange(320, 400)

torch.manual_seed(0)
model = torch.nn.Linear(3, 3)
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
batches = dis.loader(x[train], dis.deliver("multipass", labels.take(train)), batch_size=32)  # 1
for epoch in range(15):
    batches.set_epoch(epoch)  # 2
    for inputs, target, item in batches:  # 3
        loss = dis.losses.cross_entropy(model(inputs), target).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

people = torch.from_numpy(labels.probabilities[test])
soft_nll = dis.losses.cross_entropy(model(x[test]), people).mean().item()
print(f"soft NLL on held-out items: {soft_nll:.3f} nats")
