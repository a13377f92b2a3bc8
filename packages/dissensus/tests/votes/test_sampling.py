from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dissensus.errors import InputError
from dissensus.labels.schemes import frequency
from dissensus.votes.sampling import subsample
from dissensus.votes.simulate import simulate_responses, simulate_votes
from dissensus.votes.table import votes_from_counts
from tests.votes.people import people_of


@given(st.integers(1, 8), st.integers(0, 2**32 - 1), st.booleans())
def test_each_item_keeps_k_judgements_of_its_own(k: int, seed: int, replacement: bool) -> None:
    truth = np.random.default_rng(0).dirichlet(np.ones(3), 9)
    votes = simulate_responses(truth, np.arange(1, 10), annotators=9, seed=1)
    small = subsample(votes, k, seed=seed, replacement=replacement)
    expected = np.full(9, k) if replacement else np.minimum(votes.panel_size, k)
    assert (small.panel_size == expected).all()
    again = subsample(votes, k, seed=seed, replacement=replacement)
    assert (again.label == small.label).all()
    before = set(zip(votes.item, people_of(votes).code, votes.label, strict=True))
    after = set(zip(small.item, people_of(small).code, small.label, strict=True))
    assert after <= before


def test_without_replacement_nobody_votes_twice() -> None:
    votes = simulate_votes(np.full((50, 4), 0.25), 10, annotators=12, seed=0)
    small = subsample(votes, 6, seed=3)
    assert small.annotators is not None
    assert len(set(zip(small.item.tolist(), small.annotators.code.tolist(), strict=True))) == len(small) == 300


def test_a_subsample_without_replacement_is_hypergeometric() -> None:
    votes = votes_from_counts(np.tile([7, 3], (20_000, 1)))
    first = subsample(votes, 4, seed=0).counts[:, 0]
    seen = np.bincount(first, minlength=5)
    expected = 20_000 * stats.hypergeom(10, 7, 4).pmf(np.arange(5))
    possible = expected > 0
    assert seen[~possible].sum() == 0
    assert stats.chisquare(seen[possible], expected[possible]).pvalue > 1e-4


def test_a_subsample_with_replacement_is_binomial() -> None:
    votes = votes_from_counts(np.tile([7, 3], (20_000, 1)))
    first = subsample(votes, 4, seed=0, replacement=True).counts[:, 0]
    expected = 20_000 * stats.binom(4, 0.7).pmf(np.arange(5))
    assert stats.chisquare(np.bincount(first, minlength=5), expected).pvalue > 1e-4


def test_few_votes_look_unanimous_more_often() -> None:
    truth = np.random.default_rng(0).dirichlet(np.full(5, 0.3), 500)
    votes = simulate_votes(truth, 30, annotators=40, seed=0)
    shares = [frequency(subsample(votes, k, seed=0)).unanimous.mean() for k in (3, 10, 30)]
    assert shares[0] > shares[1] > shares[2]


def test_no_votes_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="at least 1 vote"):
        subsample(votes_from_counts([[1]]), 0, seed=0)
