from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from dissensus.errors import InputError
from dissensus.labels.distribution import LabelDistribution, TieRule, one_hot
from dissensus.labels.schemes import frequency
from dissensus.votes.table import votes_from_counts

TABLES = hnp.arrays(np.int64, st.tuples(st.integers(1, 8), st.integers(1, 5)), elements=st.integers(0, 6)).filter(
    lambda table: bool((table.sum(axis=1) > 0).all())
)


@pytest.mark.parametrize("tie", ["first", "split", "random"])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_many_items_are_decided_like_few(tie: TieRule, kind: type) -> None:
    shares: np.ndarray = np.random.default_rng(0).integers(0, 4, (40_000, 3)).astype(kind)
    found = one_hot(shares, tie=tie)
    top = shares == shares.max(axis=1, keepdims=True)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found[~top] == 0).all()
    if tie == "first":
        np.testing.assert_array_equal(found.argmax(axis=1), shares.argmax(axis=1))
    elif tie == "split":
        np.testing.assert_allclose(found, top / top.sum(axis=1, keepdims=True))
    else:
        # Of two tied classes each is drawn about as often.
        pair = top[:, 0] & top[:, 1] & ~top[:, 2]
        assert 0.47 < found[pair, 0].mean() < 0.53


@given(TABLES)
def test_entropy_is_scipys_in_nats(table: np.ndarray) -> None:
    labels = frequency(votes_from_counts(table))
    assert np.allclose(labels.entropy, stats.entropy(table, axis=1))


@given(TABLES)
def test_items_are_unanimous_or_varied(table: np.ndarray) -> None:
    labels = frequency(votes_from_counts(table))
    strata = labels.strata
    assert strata["unanimous"].tolist() == [(row > 0).sum() == 1 for row in table]
    assert (strata["varied"] == ~strata["unanimous"]).all()
    assert strata["all"].all()


@given(TABLES, st.sampled_from(["first", "random", "split"]))
def test_the_majority_has_the_most_votes_and_ties_are_marked(table: np.ndarray, rule: str) -> None:
    labels = frequency(votes_from_counts(table))
    decided = labels.majority(tie=rule)  # type: ignore[arg-type]
    most = table.max(axis=1)
    assert (table[np.arange(len(table)), decided.label] == most).all()
    assert decided.tied.tolist() == [(row == row.max()).sum() > 1 for row in table]
    hot = labels.one_hot(tie=rule)  # type: ignore[arg-type]
    assert np.allclose(hot.sum(axis=1), 1.0)
    assert (hot[table < most[:, None]] == 0).all()


def test_random_ties_are_seeded_and_fair() -> None:
    labels = frequency(votes_from_counts(np.tile([2, 2, 0], (4_000, 1))))
    one, same, other = (labels.majority(tie="random", seed=seed).label for seed in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any()
    assert np.bincount(one, minlength=3)[2] == 0
    assert abs((one == 0).mean() - 0.5) < 0.05


def test_equal_votes_are_a_tie_whatever_the_rounding() -> None:
    # 1/3 + 1/3 of a judgement and 2/3 of one differ in the last bit.
    probabilities = np.array([[1 / 3 + 1 / 3 - 1e-16, 0.0, 2 / 3]]) / (4 / 3)
    labels = LabelDistribution(
        probabilities=probabilities,
        counts=np.array([[2, 0, 2]]),
        panel_size=np.array([3]),
        items=np.array(["x"]),
        classes=("a", "b", "c"),
        scheme="equal-weighted",
    )
    assert labels.majority().tied.tolist() == [True]


def test_taking_items_takes_everything_of_them() -> None:
    labels = frequency(votes_from_counts([[1, 0], [1, 3], [0, 2]]))
    some = labels.take(np.array([2, 1]))
    assert some.items.tolist() == [2, 1]
    assert some.counts.tolist() == [[0, 2], [1, 3]]
    assert some.panel_size.tolist() == [2, 4]


def test_rows_that_do_not_sum_to_one_are_refused_with_how_far_off() -> None:
    with pytest.raises(InputError, match=r"item x sum to 0\.9"):
        LabelDistribution(
            probabilities=np.array([[0.5, 0.4]]),
            counts=np.array([[1, 1]]),
            panel_size=np.array([2]),
            items=np.array(["x"]),
            classes=("a", "b"),
            scheme="made",
        )
