"""Classifiers of scikit-learn, LightGBM and XGBoost on votes, and our metrics as scorers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.integrations.sklearn.classifier import VotesClassifier as VotesClassifier
    from dissensus.integrations.sklearn.scoring import scorer as scorer

__getattr__, __dir__ = lazy_names(__name__, {"VotesClassifier": "classifier", "scorer": "scoring"})
