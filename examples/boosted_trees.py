"""LightGBM on votes, and XGBoost where it is installed; lines with a number are the ones that change."""

from importlib.util import find_spec

import numpy as np
from lightgbm import LGBMClassifier

import dissensus as dis

truth = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], 400)  # what people think of 400 items
x = np.log(truth + 0.05)
labels = dis.label(dis.simulate_votes(truth, 5, annotators=20, seed=0))

trees = {"LightGBM": LGBMClassifier(n_estimators=40, num_leaves=6, n_jobs=1, verbose=-1)}
if find_spec("xgboost"):
    from xgboost import XGBClassifier

    trees["XGBoost"] = XGBClassifier(n_estimators=40, max_depth=3, learning_rate=0.1, n_jobs=1)
models = {name: dis.sklearn.VotesClassifier(tree) for name, tree in trees.items()}  # 1
for name, model in models.items():
    model.fit(x[:320], labels.counts[:320])  # 2
    print(f"{name}: soft NLL {-model.score(x[320:], labels.counts[320:]):.3f} nats")  # 3
