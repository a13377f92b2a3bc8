from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus.evaluation.finite_panel.panel import panel_of
from dissensus.labels.schemes import dirichlet, frequency, judgement_vectors, majority, weighted
from dissensus.votes.simulate import simulate_responses, simulate_votes
from tests.evaluation.simulated import labels_of, true_distributions
from tests.votes.people import people_of

TRUTH = true_distributions("sparse", 60)


def test_counts_alone_are_a_panel_of_single_votes() -> None:
    labels = labels_of(TRUTH, 5)
    panel = panel_of(labels)
    assert panel.single
    np.testing.assert_array_equal(panel.counts, labels.counts)
    np.testing.assert_array_equal(panel.size, labels.panel_size)
    np.testing.assert_allclose(panel.shares, labels.probabilities)
    assert panel.annotator is None


def test_votes_say_who_judged_what_for_the_items_of_the_labels_alone() -> None:
    votes = simulate_votes(TRUTH, 5, annotators=20, seed=2)
    chosen = np.array([40, 3, 17])
    panel = panel_of(frequency(votes).take(chosen), votes)
    np.testing.assert_array_equal(panel.counts, votes.counts[chosen])
    assert panel.item is not None
    assert panel.annotator is not None
    for place, item in enumerate(chosen):
        np.testing.assert_array_equal(
            np.sort(panel.annotator[panel.item == place]),
            np.sort(people_of(votes).code[votes.item == item]),
        )


@pytest.mark.parametrize("scheme", ["yes-only", "equal-weighted", "uncertainty-weighted"])
def test_judgements_with_several_votes_are_taken_whole(scheme: str) -> None:
    votes = simulate_responses(TRUTH, 5, annotators=20, seed=0)
    panel = panel_of(weighted(votes, scheme), votes)
    vectors = judgement_vectors(votes, scheme).toarray()
    assert not panel.single
    for item in range(5):
        own = vectors[votes.judgement_item == item]
        np.testing.assert_allclose(panel.mass[item], own.sum(axis=0))
        np.testing.assert_allclose(panel.squares[item], (own**2).sum(axis=0))
    part = panel.take(np.arange(60) % 2 == 0)
    np.testing.assert_allclose(part.mass, panel.mass[::2])
    assert part.vectors is not None
    assert part.vectors.shape[0] == part.size.sum()


def test_equal_weighting_of_single_choices_is_counting() -> None:
    votes = simulate_votes(TRUTH, 5, annotators=20, seed=2)
    assert panel_of(weighted(votes, "equal-weighted")).single
    assert panel_of(weighted(votes, "equal-weighted"), votes).single


def test_what_is_no_mean_over_judgements_is_refused() -> None:
    votes = simulate_votes(TRUTH, 5, annotators=20, seed=2)
    labels = frequency(votes)
    for other in (dirichlet(votes), majority(votes)):
        with pytest.raises(InputError, match="label them by 'frequency'"):
            panel_of(other)
    responses = simulate_responses(TRUTH, 5, annotators=20, seed=0)
    with pytest.raises(InputError, match="give the votes too"):
        panel_of(weighted(responses, "uncertainty-weighted"))
    with pytest.raises(InputError, match="no plain means"):
        panel_of(frequency(responses), responses)
    with pytest.raises(InputError, match="has no votes"):
        panel_of(replace(labels, counts=np.zeros_like(labels.counts)))
    with pytest.raises(InputError, match="no items"):
        panel_of(labels.take(np.zeros(0, dtype=np.int64)))
    with pytest.raises(InputError, match="not among the votes"):
        panel_of(replace(labels, items=labels.items + 100), votes)
    with pytest.raises(InputError, match="unlike classes"):
        panel_of(replace(labels, classes=("a", "b", "c", "d")), votes)
