"""Votes to label distributions: weighting schemes, majority, annotator models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.labels.annotator_models import AnnotatorModel as AnnotatorModel
    from dissensus.labels.distribution import LabelDistribution as LabelDistribution
    from dissensus.labels.distribution import Majority as Majority
    from dissensus.labels.expanding import expand as expand
    from dissensus.labels.labelling import SCHEMES as SCHEMES
    from dissensus.labels.labelling import label as label
    from dissensus.labels.reading import read_classes as read_classes
    from dissensus.labels.reading import read_labels as read_labels
    from dissensus.labels.schemes import label_counts as label_counts
    from dissensus.labels.writing import write_labels as write_labels

__getattr__, __dir__ = lazy_names(__name__)
