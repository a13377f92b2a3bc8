from __future__ import annotations

import json
from dataclasses import astuple, replace

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus.evaluation.finite_panel.best_achievable import panel_floor
from dissensus.evaluation.finite_panel.ceiling import human_ceiling
from dissensus.evaluation.finite_panel.corrections import correct
from dissensus.evaluation.finite_panel.panel_score import panel_score
from dissensus.evaluation.metrics.distances import kl
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.labels.schemes import dirichlet, majority, weighted
from dissensus.votes.simulate import simulate_responses, simulate_votes
from tests.evaluation.simulated import model_of, panel_of, true_distributions

TRUTH = true_distributions("sparse", 200)
MODEL = model_of(TRUTH, "perturbed")


def test_a_score_stands_beside_what_makes_it_honest() -> None:
    labels = panel_of(TRUTH, 5)
    result = panel_score("kl", labels, MODEL, seed=1)
    assert result.metric == "kl"
    assert result.plain is not None
    assert result.plain.value == pytest.approx(kl(labels.probabilities, MODEL).mean())
    assert result.floor == panel_floor("kl", labels, seed=1)
    expected = correct("kl", labels.counts, MODEL, seed=1).estimate
    assert expected is not None
    assert result.corrected is not None
    assert astuple(result.corrected) == pytest.approx(astuple(expected))
    assert result.ceiling == human_ceiling("kl", labels, seed=1)
    assert "whatever the true distributions are" in result.note


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if "original" not in metric.needs])
def test_every_metric_has_a_plain_score_a_floor_a_ceiling_and_a_note(name: str) -> None:
    labels = panel_of(TRUTH[:60], 6, ordered=True)
    result = panel_score(name, labels, MODEL[:60], resamples=20, splits=2)
    assert result.plain is not None
    assert result.floor is not None
    assert result.ceiling is not None
    assert result.note
    assert json.loads(json.dumps(result.to_dict()))["metric"] == name


def test_one_vote_an_item_has_no_ceiling() -> None:
    result = panel_score("tvd", panel_of(TRUTH, 1), MODEL, resamples=50)
    assert result.ceiling is None
    assert result.corrected is not None


def test_an_undefined_plain_score_is_none() -> None:
    constant = np.tile([0.4, 0.3, 0.2, 0.1], (200, 1))
    result = panel_score("entropy_pearson", panel_of(TRUTH, 5), constant, resamples=50)
    assert result.plain is None
    assert result.corrected is None


def test_distributions_that_are_no_plain_shares_of_votes_are_refused() -> None:
    votes = simulate_votes(TRUTH, 5, annotators=20, seed=2)
    for labels in (dirichlet(votes), majority(votes)):
        with pytest.raises(InputError, match="label them by 'frequency'"):
            panel_score("kl", labels, MODEL)
    responses = simulate_responses(TRUTH, 5, annotators=20, seed=0)
    with pytest.raises(InputError, match="one vote a judgement"):
        panel_score("kl", weighted(responses, "uncertainty-weighted"), np.full((200, 5), 0.2))


def test_equal_weighting_of_single_choices_is_counting() -> None:
    votes = simulate_votes(TRUTH, 5, annotators=20, seed=2)
    assert panel_score("brier", weighted(votes, "equal-weighted"), MODEL, resamples=10).corrected is not None


def test_other_bad_input_is_refused() -> None:
    labels = panel_of(TRUTH, 5)
    with pytest.raises(InputError, match="give one distribution an item"):
        panel_score("kl", labels, MODEL[:10])
    with pytest.raises(InputError, match="sum"):
        panel_score("kl", labels, MODEL * 2)
    with pytest.raises(InputError, match="needs ordered classes"):
        panel_score("wasserstein", labels, MODEL)
    with pytest.raises(InputError, match="there is no 'kld'"):
        panel_score("kld", labels, MODEL)
    none = replace(labels, counts=np.zeros_like(labels.counts))
    with pytest.raises(InputError, match="has no votes"):
        panel_score("kl", none, MODEL)
    with pytest.raises(InputError, match="no items"):
        panel_score("kl", labels.take(np.zeros(0, dtype=np.int64)), MODEL[:0])
