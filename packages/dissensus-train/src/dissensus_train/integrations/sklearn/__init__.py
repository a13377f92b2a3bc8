"""Classifiers of scikit-learn, LightGBM and XGBoost on votes, and our metrics as scorers.

Examples:
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> import dissensus as dis
    >>> x, counts = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([[4, 0], [3, 1], [1, 3], [0, 4]])
    >>> model = dis.sklearn.VotesClassifier(LogisticRegression(), classes=["calm", "angry"]).fit(x, counts)
    >>> model.predict(x).tolist(), model.predict_proba(x).round(1).tolist()[1]
    (['calm', 'calm', 'angry', 'angry'], [0.7, 0.3])
    >>> cross_val_score(model, x, counts, scoring=dis.sklearn.scorer("tvd"), cv=2).round(2).tolist()
    [-0.63, -0.63]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_train.integrations.sklearn.classifier import VotesClassifier as VotesClassifier
    from dissensus_train.integrations.sklearn.classifier import scorer as scorer

__getattr__, __dir__ = lazy_names(__name__)
