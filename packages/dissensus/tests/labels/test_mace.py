from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from crowdkit.aggregation import MACE

from dissensus.labels.mace import KNOWING_PRIOR, STRATEGY_PRIOR, mace
from tests.labels.panels import crowd_kit, read_popquorn, simulated, votes_of, words_by_column
from tests.votes.people import people_of

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.table import Votes


def by_first_appearance(codes: Any) -> Any:
    """Codes renumbered in the order in which they first appear."""
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[place]


def as_crowd_kit_needs_them(votes: Votes) -> Votes:
    """The same votes under codes that rise with their first appearance.

    crowd-kit's MACE numbers annotators and classes by first appearance in its E-step and by sorted name in its M-step,
    so that strategies go to the wrong annotators unless the two orders are the same.
    """
    columns = (by_first_appearance(column) for column in (votes.item, people_of(votes).code, votes.label))
    return votes_of(*columns, n_classes=len(votes.classes))


def from_crowd_kits_start(votes: Votes, iterations: int) -> Any:
    theirs = MACE(n_restarts=1, n_iter=iterations, method="vb")
    assert votes.annotators is not None
    theirs._initialize(len(votes.annotators), len(votes.classes))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("dissensus.labels.mace._start", lambda *_: (theirs.spamming_[:, 1], theirs.thetas_))
        ours = mace(votes, class_prior="even", max_iterations=iterations, tolerance=0)
    return ours.posterior, crowd_kit(theirs, votes)


@pytest.mark.parametrize("iterations", [1, 4, 20])
def test_mace_is_crowd_kits_from_the_same_start(iterations: int) -> None:
    votes, _, _ = simulated(200, annotators=10, classes=4, votes=5, seed=iterations)
    ours, theirs = from_crowd_kits_start(as_crowd_kit_needs_them(votes), iterations)
    assert np.allclose(ours, theirs, atol=1e-8)


def test_mace_is_crowd_kits_on_real_votes(data: Path) -> None:
    for votes in (read_popquorn(data), words_by_column()):
        ours, theirs = from_crowd_kits_start(as_crowd_kit_needs_them(votes), 8)
        assert np.allclose(ours, theirs, atol=1e-8)


def test_the_order_of_rows_changes_crowd_kits_answer_and_not_ours() -> None:
    votes, _, _ = simulated(200, annotators=10, classes=4, votes=5, seed=1)
    votes = as_crowd_kit_needs_them(votes)
    order = np.random.default_rng(0).permutation(len(votes))
    assert votes.annotators is not None
    shuffled = votes_of(votes.item[order], votes.annotators.code[order], votes.label[order], n_classes=4)
    assert np.allclose(mace(votes).posterior, mace(shuffled).posterior, atol=1e-9)
    one, other = (crowd_kit(MACE(n_restarts=1, n_iter=20), each) for each in (votes, shuffled))
    assert np.abs(one - other).max() > 0.01


@pytest.mark.parametrize("label", [[0, 0, 1, 1], [0, 1, 1, 0], [0, 0, 0, 1], [0, 1, 0, 1]])
def test_the_variational_objective_is_a_close_lower_bound_on_the_marginal_likelihood(label: list[int]) -> None:
    # Two annotators on two items, two classes: the marginal likelihood by sampling the priors.
    votes = votes_of([0, 1, 0, 1], [0, 0, 1, 1], label, n_classes=2)
    generator = np.random.default_rng(0)
    draws = 200_000
    know = generator.beta(KNOWING_PRIOR, KNOWING_PRIOR, (draws, 2))
    first = generator.beta(STRATEGY_PRIOR, STRATEGY_PRIOR, (draws, 2))
    strategy = np.stack([first, 1 - first], axis=2)
    likelihood = np.ones(draws)
    for item in (0, 1):
        says = {a: label[2 * a + item] for a in (0, 1)}
        given_class = [
            np.prod([(1 - know[:, a]) * strategy[:, a, y] + know[:, a] * (y == z) for a, y in says.items()], axis=0)
            for z in (0, 1)
        ]
        likelihood *= np.mean(given_class, axis=0)
    marginal = np.log(likelihood.mean())
    bound = mace(votes, class_prior="even", tolerance=1e-12).log_likelihood[-1]
    assert marginal - 1.5 < bound < marginal


def test_guessers_are_told_from_those_who_know() -> None:
    generator = np.random.default_rng(5)
    n_items, skill = 3_000, np.array([0.9, 0.8, 0.6, 0.4, 0.02, 0.02])
    strategy = generator.dirichlet(np.full(4, 2.0), 6)
    true_class = generator.integers(0, 4, n_items)
    item, annotator = np.repeat(np.arange(n_items), 6), np.tile(np.arange(6), n_items)
    guess = (generator.random(len(item))[:, None] > strategy.cumsum(axis=1)[annotator]).sum(axis=1)
    label = np.where(generator.random(len(item)) < skill[annotator], true_class[item], guess)
    model = mace(votes_of(item, annotator, label, n_classes=4))
    assert model.skill is not None
    assert model.strategy is not None
    assert np.abs(model.skill - skill).max() < 0.06
    assert np.abs(model.strategy[4:] - strategy[4:]).max() < 0.05
    assert np.allclose(model.strategy.sum(axis=1), 1)
