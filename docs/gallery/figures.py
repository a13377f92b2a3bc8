# %% [markdown]
# # Figures
# The figures of the report, for notebooks and papers, each with the code that draws it. They are Altair charts: `chart.save("figure.pdf")` writes PDF,
# SVG or PNG, and `dissensus evaluate ... --figure dots.pdf --width 3.3` one that fits a column.
#
# The data are real: ten ratings of each of 7,520 words (they come with the package vaderSentiment). Two models see letters alone; one is trained on the majority,
# the other on all votes.

# %%
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier

import dissensus as dis

votes = dis.load("words")
order = np.random.default_rng(0).permutation(len(votes.items))
train, test = (votes.subset(items=votes.items[part]) for part in (order[:2000], order[2000:2300]))
letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), min_df=3)
x_train, x_test = letters.fit_transform(train.items), letters.transform(test.items)
seen, labels = dis.label(train), dis.label(test)
systems = {}
for name, target in {"majority": seen.majority().label, "all votes": seen.counts}.items():
    if name == "majority":
        target = np.eye(len(seen.classes))[target]
    model = dis.sklearn.VotesClassifier(LogisticRegression(C=3.0, max_iter=200), classes=seen.classes)
    systems[name] = model.fit(x_train, target).predict_proba(x_test)

# %% [markdown]
# ## How close is each model to people?
# One row per system, its score with a 95 % interval, and the *people ruler*: what the votes of 0, 1, 2, ... people would score. Where a model meets it is its worth in people.

# %% alt="A dot plot of soft NLL: the model trained on all votes stands closer to people than the one trained on the majority, beside marks for the votes of 0, 1, 2 and more people."
result = dis.evaluate(test, systems, classes=labels.classes, reference="majority", resamples=100)
dis.plot.people_ruler(result)

# %%
result

# %% [markdown]
# ## Contested items
# What people said, and what the models say, of the items people disagree on most.

# %% alt="Three contested words; for each, bars of the shares of ratings by people, by the majority-trained model and by the model trained on all votes."
dis.plot.contested(labels, systems, classes=labels.classes, most=3)

# %% [markdown]
# ## Is the model unsure where people are?
# One point per item: the entropy of people's votes, and of the model's probabilities. Below the line the model is surer than people.

# %% alt="Entropy of the model against entropy of people, one panel per model, with a diagonal."
dis.plot.entropy(labels, systems, classes=labels.classes)

# %% [markdown]
# ## Calibration against votes
# When a model gives a class 70 %, do 70 % of the votes go there?

# %% alt="Reliability diagram: the share of votes for classes against the probability that each model gave them, with a diagonal."
dis.plot.reliability(labels, systems, classes=labels.classes)

# %% [markdown]
# ## Which classes do people confuse?

# %% alt="A matrix of classes: how often one person says the row and another the column."
dis.plot.disagreement(labels)

# %% [markdown]
# ## A data map
# Confidence and variability of every training item over epochs and seeds (Swayamdipta et al. 2020): easy above, hard below, ambiguous to the right.

# %% alt="A data map: confidence against variability of 300 words over eight epochs and three seeds."
few = train.subset(items=train.items[:300])
x_few, y_few = letters.transform(few.items), dis.label(few)
epochs = np.zeros((3, 8, 300, len(y_few.classes)))
for seed in range(3):
    model = SGDClassifier(loss="log_loss", alpha=1e-4, random_state=seed)
    for epoch in range(8):
        model.partial_fit(x_few, y_few.majority().label, classes=range(len(y_few.classes)))
        epochs[seed, epoch] = model.predict_proba(x_few)
dis.plot.data_map(epochs, y_few, epochs=8)

# %% [markdown]
# ## How many votes to buy
# Power against votes per item, for the same money ([planning](../plan.md)).

# %% alt="Power of finding a difference against votes per item under a fixed budget, for soft NLL, accuracy and other goals."
from dissensus.planning import plan

dis.plot.plan(plan(few.subset(items=few.items[:100]), budget=3000))

# %% [markdown]
# ## What the loss sees
# One contested word over twelve epochs. `soft` shows the whole distribution each time, `majority` one class; `sls` (stochastic label sampling) draws a class anew, `multipass` goes through
# the ten votes in turn. Over many epochs both show what `soft` shows.

# %% alt="What the loss sees of one word in twelve epochs: the same distribution under soft, one class under majority, changing classes under sls and multipass."
import altair as alt

item = int(np.argmax(labels.entropy))
rows = []
for name in ("majority", "soft", "sls", "multipass"):
    delivered = dis.deliver(name, labels, seed=0)
    for epoch in range(12):
        target = delivered(epoch)[item].numpy()
        shares = target if target.ndim else np.eye(len(labels.classes))[target]
        rows += [
            {"delivery": name, "epoch": epoch, "class": each, "share": float(share)}
            for each, share in zip(labels.classes, shares)
        ]
alt.Chart(alt.Data(values=rows)).mark_bar().encode(
    x=alt.X("epoch:O").axis(labelAngle=0),
    y=alt.Y("share:Q").axis(values=[0, 1]),
    color=alt.Color("class:N", sort=list(labels.classes)).scale(scheme="redblue"),
    row=alt.Row("delivery:N", sort=["majority", "soft", "sls", "multipass"]).header(labelAngle=0, labelAlign="left"),
).properties(width=380, height=45)
