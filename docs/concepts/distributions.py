# %% [markdown]
# # From votes to a verdict
# Four ideas carry everything else: the label distribution, the delivery, the people ruler, and what a few votes can tell. Every figure
# here was drawn when this page was built.

# %%
import altair as alt
import numpy as np

import dissensus as dis

truth = np.random.default_rng(1).dirichlet([0.6, 0.6, 0.6], 300)
votes = dis.simulate_votes(truth, 6, annotators=25, seed=0, classes=["bad", "mixed", "good"])
labels = dis.label(votes)

# %% [markdown]
# ## A label distribution
# Six people, six votes, one bar. The majority keeps the longest piece of each bar and throws the others away.

# %% alt="Six contested items; for each a bar divided into the shares of votes for bad, mixed and good."
dis.plot.contested(labels)

# %% [markdown]
# ## Training targets: a delivery
# The same item over twelve epochs. `soft` shows the loss the whole distribution each time. `majority` shows one class each time.
# `sls` (stochastic label sampling) draws a class from the distribution anew, and `multipass` goes through the six votes in turn; over many
# epochs both show what `soft` shows.

# %% alt="What the loss sees of one item in twelve epochs: the same distribution under soft, one class under majority, changing classes under sls and multipass."
item = int(np.argmax(labels.entropy))
rows = []
for name in ("majority", "soft", "sls", "multipass"):
    delivered = dis.deliver(name, labels, seed=0)
    for epoch in range(12):
        seen = delivered(epoch)[item].numpy()
        shares = seen if seen.ndim else np.eye(3)[seen]
        rows += [
            {"delivery": name, "epoch": epoch, "class": each, "share": float(share)}
            for each, share in zip(labels.classes, shares)
        ]
alt.Chart(alt.Data(values=rows)).mark_bar().encode(
    x=alt.X("epoch:O").axis(labelAngle=0),
    y=alt.Y("share:Q").axis(values=[0, 1]),
    color=alt.Color("class:N", sort=list(labels.classes)).scale(range=["#b2182b", "#bdbdbd", "#2166ac"]),
    row=alt.Row("delivery:N", sort=["majority", "soft", "sls", "multipass"]).header(labelAngle=0, labelAlign="left"),
).properties(width=380, height=45)

# %% [markdown]
# ## The people ruler
# How good is a score of 0.8 nats? Take n of an item's votes, let them forecast its other votes, and score that forecast as the model is scored. Where
# the model's score meets the curve, that is its *worth in people*. Here is a model that sees the truth through some noise, and the same
# model made too sure of itself.

# %% alt="The people ruler: the score of 0 to 5 people's votes as a curve, and two models placed on it."
noisy = 0.8 * truth + 0.2 * np.random.default_rng(2).dirichlet([1, 1, 1], 300)
systems = {"noisy": noisy, "too sure": noisy**4 / (noisy**4).sum(axis=1, keepdims=True)}
result = dis.evaluate(labels, systems, classes=labels.classes, votes=votes, reference="too sure", resamples=200)
dis.plot.people_ruler(result)

# %%
result

# %% [markdown]
# Both models have the same top class on every item, so accuracy cannot distinguish them. Soft NLL and worth in people can.
#
# ## What few votes can tell
# The truth itself, scored against few votes. Nothing can be expected to score better than that; it is called *best achievable*, and the distance
# from it, not from 0, is what is left to learn.

# %% alt="KL of the truth itself against 1 to 40 votes per item: a falling curve towards 0."
from dissensus.evaluation.metrics import kl

points = []
for number in (1, 2, 3, 5, 8, 12, 20, 40):
    few = dis.label(dis.simulate_votes(truth, number, annotators=60, seed=number))
    points.append({"votes per item": number, "KL of the truth, nats": float(kl(few.probabilities, truth).mean())})
alt.Chart(alt.Data(values=points)).mark_line(point=True, color="#2166ac").encode(
    x="votes per item:Q", y="KL of the truth\\, nats:Q"
).properties(width=380, height=180)

# %% [markdown]
# More: [few votes](../guides/few-votes.md), [choosing a target](../guides/targets.md), [choosing a delivery](../guides/deliveries.md),
# [the definition of every metric](../reference/metrics.md).
