# %% [markdown]
# # Images
# Digits between two digits: people see the one or the other, and a model that learns from every vote says so.
#
# ## Images that are hard on purpose
# scikit-learn brings 1,797 scanned digits of 8 by 8 pixels. Each image here is a blend of two of them, and each of its five
# votes goes to one of the two with the blend's share. **These votes are simulated**: only so is it known what very many people would say,
# and at the end the models are held against that, not against five votes. Needs the extra `sklearn` ([install](index.md#install)).

# %%
import numpy as np
from sklearn.datasets import load_digits

import dissensus as dis

digits, names = load_digits(return_X_y=True)
random = np.random.default_rng(0)
few = np.flatnonzero(np.isin(names, [1, 4, 7]))
one, other = random.choice(few, (2, 400))
share = random.beta(0.4, 0.4, 400)
images = (share[:, None] * digits[one] + (1 - share)[:, None] * digits[other]) / 16

classes = ["1", "4", "7"]
truth = np.zeros((400, 3))
np.add.at(truth, (np.arange(400), np.searchsorted([1, 4, 7], names[one])), share)
np.add.at(truth, (np.arange(400), np.searchsorted([1, 4, 7], names[other])), 1 - share)
votes = dis.simulate_votes(truth, 5, annotators=15, seed=0, classes=classes)
labels = dis.label(votes)
labels

# %% [markdown]
# ## A folder of images, or an array
# A study reads a folder of image files, called like their items, or one `.npz` with the arrays `images` and `items`. Nine
# small runs are done soonest one after the other, by the plain loop; left to itself, `run` uses all cores or the GPU.

# %%
pixels = (images.reshape(-1, 8, 8) * 255).round().astype(np.uint8)
np.savez("images.npz", images=pixels, items=votes.items.astype(str))
dis.write_votes(votes, "votes.csv")
study = """
name = "blended-digits"
[dataset]
votes = "votes.csv"
images = "images.npz"
[grid]
deliveries = ["majority", "soft", "sls"]
models = ["simple-ffn"]
seeds = 3
[training]
regime = "early-stopping"
epochs = 20
"""
with open("study.toml", "w", encoding="utf-8") as file:
    file.write(study)
scored = dis.run("study.toml", engine="loop")
scored

# %% [markdown]
# `sls`, stochastic label sampling, draws a class from the distribution anew in every epoch.
#
# ## Held against the truth
# Five votes are few, so the scores above hold their noise. Here is the mean KL divergence from the distribution that the votes were drawn from, in
# nats, of the same held-out images:

# %%
place = {str(item): number for number, item in enumerate(votes.items)}
known = truth[[place[str(item)] for item in scored.human.items]]
for name, system in scored.systems.items():
    far = np.where(known > 0, known * np.log(np.maximum(known, 1e-12) / system.mean("test")), 0).sum(axis=1)
    print(f"{name}: {far.mean():.3f}")

# %%
dis.report(scored, "report.html")

# %% [markdown]
# [The report of this study](../gallery/images-report.html) shows the six most contested images and the largest gaps. For
# photographs, `models = ["timm:resnet18"]` fine-tunes a pretrained network (the extra `images`); see [Studies](../studies.md#networks).
