"""Votes for the tests of annotator models: random, simulated and real, and as crowd-kit reads them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from dissensus.datasets.vader import read_words
from dissensus.votes.simulate import simulate_votes
from dissensus.votes.table import Annotators, Votes
from tests.votes.confusions import simulate_confusions
from tests.votes.people import people_of

if TYPE_CHECKING:
    from pathlib import Path


def words_by_column() -> Votes:
    """The ratings of words with their ten columns as annotators: nobody, but real votes to compare two programs on."""
    words = read_words()
    columns = len(words) // len(words.items)
    return replace(
        words,
        annotators=Annotators(
            np.tile(np.arange(columns, dtype=np.int32), len(words.items)),
            np.array([f"column {number}" for number in range(columns)], dtype=np.dtypes.StringDType()),
        ),
    )


def votes_of(item: Any, annotator: Any, label: Any, *, n_classes: int, judgement: Any = None) -> Votes:
    """Votes by codes; names are text, so that a code is never taken for a name."""
    item, annotator, label = (np.asarray(column, dtype=np.int32) for column in (item, annotator, label))
    return Votes(
        item=item,
        label=label,
        judgement=None if judgement is None else np.asarray(judgement, dtype=np.int32),
        items=np.array([f"item {i}" for i in range(item.max() + 1)], dtype=np.dtypes.StringDType()),
        annotators=Annotators(
            annotator, np.array([f"annotator {a}" for a in range(annotator.max() + 1)], dtype=np.dtypes.StringDType())
        ),
        classes=tuple(f"class {k}" for k in range(n_classes)),
    )


@st.composite
def any_votes(draw: st.DrawFn) -> Votes:
    """A few votes of a few annotators on a few items, single choices or judgements of several classes."""
    n_items, n_annotators, n_classes = draw(st.integers(1, 6)), draw(st.integers(1, 5)), draw(st.integers(2, 4))
    row = st.tuples(st.integers(0, n_items - 1), st.integers(0, n_annotators - 1), st.integers(0, n_classes - 1))
    rows = draw(st.lists(row, max_size=40))
    rows += [(i, draw(st.integers(0, n_annotators - 1)), draw(st.integers(0, n_classes - 1))) for i in range(n_items)]
    table = np.array(rows)
    if not draw(st.booleans()):
        return votes_of(*table.T, n_classes=n_classes)
    table = np.unique(table, axis=0)
    judgement = np.unique(table[:, :2], axis=0, return_inverse=True)[1].ravel()
    return votes_of(*table.T, n_classes=n_classes, judgement=judgement)


def simulated(n_items: int, *, annotators: int, classes: int, votes: int, seed: int) -> tuple[Votes, Any, Any]:
    """Votes of a Dawid-Skene panel, with the true class of each item and the true confusion matrices."""
    true_class = np.random.default_rng(seed).integers(0, classes, n_items)
    confusion = simulate_confusions(annotators, classes, seed=seed + 1)
    panel = simulate_votes(
        np.eye(classes)[true_class], votes, annotators=annotators, confusion=confusion, seed=seed + 2
    )
    return panel, true_class, confusion


def read_popquorn(data: Path) -> Votes:
    """The real ratings of POPQUORN, offensiveness: 5 classes, 262 annotators."""
    table = pd.read_csv(data / "popquorn" / "offensiveness" / "raw_data.csv")
    codes = [pd.factorize(table[name], sort=True)[0] for name in ("instance_id", "user_id", "offensiveness")]
    return votes_of(*codes, n_classes=5)


def frame(votes: Votes) -> pd.DataFrame:
    """The votes as crowd-kit reads them, by codes."""
    return pd.DataFrame({"task": votes.item, "worker": people_of(votes).code, "label": votes.label})


def crowd_kit(aggregator: Any, votes: Votes, **more: Any) -> Any:
    """The (items, classes) posterior of a crowd-kit aggregator in our order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        aggregator.fit(frame(votes), **more)
    table = aggregator.probas_.reindex(index=range(len(votes.items)), columns=range(len(votes.classes)))
    return table.to_numpy(dtype=np.float64)
