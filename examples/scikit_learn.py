"""Classifiers of scikit-learn on votes; lines with a number are the ones that change."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dissensus as dis

truth = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], 400)  # what people think of 400 items
x = np.log(truth + 0.05)
labels = dis.label(dis.simulate_votes(truth, 5, annotators=20, seed=0))

model = make_pipeline(StandardScaler(), dis.sklearn.VotesClassifier(LogisticRegression(), classes=labels.classes))  # 1
model.fit(x[:320], labels.counts[:320])  # 2
soft_nll = -model.score(x[320:], labels.counts[320:])  # 3
print(f"soft NLL on held-out items: {soft_nll:.3f} nats")
for metric in ("soft_nll", "kl", "accuracy"):
    scores = cross_val_score(model, x, labels.counts, scoring=dis.sklearn.scorer(metric))
    print(f"{metric}: {abs(scores.mean()):.3f}")
