from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from dissensus.errors import InputError
from dissensus.labels.labelling import label
from dissensus.votes.simulate import Habits
from dissensus_papers.digits.digits import Digits, read_digits
from dissensus_papers.digits.panel import HABITS, PANEL_SIZES, Eyes, perceive, simulate_panel

torch.set_num_threads(1)
LABELS = np.arange(10)
CLEAR = np.broadcast_to(0.9 * np.eye(10) + 0.01, (3, 10, 10))
GENERATOR = np.random.default_rng(0)
BLURRED = GENERATOR.dirichlet(np.full(10, 0.05), 400)
EVIDENCE = np.stack([0.8 * BLURRED + 0.2 * GENERATOR.dirichlet(np.full(10, 0.05), 400) for _ in range(3)])


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Digits:
    return read_digits(tmp_path_factory.mktemp("no-mnist"))


def test_eyes_read_digits_and_differ_on_them(bundled: Digits) -> None:
    learnt, seen = bundled.take(np.arange(1200)), bundled.take(np.arange(1200, 1797))
    evidence = perceive(learnt, seen.images, seed=0, eyes=Eyes(pairs=3, images=900, batches=100))
    assert evidence.shape == (3, 597, 10)
    assert np.allclose(evidence.sum(axis=2), 1)
    right = (evidence.argmax(axis=2) == seen.labels).mean(axis=1)
    assert (right > 0.8).all()
    assert not np.allclose(evidence[0], evidence[1], atol=0.05)


def test_softer_eyes_spread_their_evidence(bundled: Digits) -> None:
    learnt = bundled.take(np.arange(400))
    sharp, soft = (
        perceive(learnt, bundled.images[:50], seed=0, eyes=Eyes(pairs=1, batches=12, softness=softness))
        for softness in (1.0, 3.0)
    )
    assert (soft.max(axis=2) <= sharp.max(axis=2) + 1e-12).all()
    assert (soft.argmax(axis=2) == sharp.argmax(axis=2)).all()


def test_a_panel_is_as_large_as_the_papers_and_says_that_it_is_simulated() -> None:
    panel = simulate_panel(EVIDENCE, CLEAR, LABELS, seed=0, truth_judgements=10)
    votes = panel.votes
    assert len(votes.items) == 400
    assert votes.classes == (*(str(digit) for digit in range(10)), "none")
    assert votes.panel_size.mean() == pytest.approx(6.07, abs=0.35)
    assert votes.panel_size.max() <= max(PANEL_SIZES)
    assert panel.note.startswith("simulated panel: ")
    assert votes.seconds is not None
    assert (votes.seconds > 0).all()


def test_hard_items_take_longer() -> None:
    panel = simulate_panel(EVIDENCE, CLEAR, LABELS, seed=0, truth_judgements=10)
    uncertainty = label(panel.votes, "equal-weighted").mean_uncertainty
    assert panel.votes.seconds is not None
    assert uncertainty is not None
    seconds = np.bincount(panel.votes.judgement_item, weights=panel.votes.seconds) / panel.votes.panel_size
    assert stats.spearmanr(seconds, uncertainty).statistic > 0.15


def test_careless_annotators_fail_the_checks_and_are_left_out() -> None:
    habits = Habits(noise=0.05, careless=0.3)
    panel = simulate_panel(EVIDENCE, CLEAR, LABELS, seed=3, habits=habits, truth_judgements=10)
    assert 0.05 < panel.failed.mean() < 0.6
    annotator = panel.votes.judgement_annotator
    assert annotator is not None
    assert not panel.failed[annotator].any()
    # Who looks passes nearly all checks, who does not passes few: nobody is in between.
    assert panel.checked[~panel.failed].min() > 0.7
    assert panel.checked[panel.failed].max() < 0.5


def test_items_that_only_careless_annotators_judged_are_refused() -> None:
    with pytest.raises(InputError, match="failed the attention checks"):
        simulate_panel(EVIDENCE, CLEAR, LABELS, seed=0, habits=Habits(careless=1.0), truth_judgements=10)


def test_truth_is_what_more_and_more_judgements_approach() -> None:
    few, many = (
        simulate_panel(EVIDENCE[:, :60], CLEAR, LABELS, seed=seed, truth_judgements=judgements).truth
        for seed, judgements in ((0, 40), (1, 1500))
    )
    other = simulate_panel(EVIDENCE[:, :60], CLEAR, LABELS, seed=2, truth_judgements=1500).truth
    assert np.allclose(many.sum(axis=1), 1)
    # Thresholds are drawn for each annotator, so errors shrink with the root of the judgements.
    assert np.abs(many - other).max() < 0.08
    assert np.sqrt(np.square(few - other).mean()) > 3 * np.sqrt(np.square(many - other).mean())


def test_votes_are_draws_from_the_truth() -> None:
    panel = simulate_panel(EVIDENCE, CLEAR, LABELS, seed=0, habits=Habits(noise=0.05, spread=0.03))
    said = label(panel.votes, "equal-weighted").probabilities
    assert np.abs(said.mean(axis=0) - panel.truth.mean(axis=0)).max() < 0.02
    assert np.abs(said - panel.truth).mean() < 0.06


def test_the_calibrated_habits_slip_to_none_about_as_often_as_people() -> None:
    panel = simulate_panel(CLEAR[:, np.tile(LABELS, 40)], CLEAR, LABELS, seed=0, truth_judgements=10)
    none = label(panel.votes, "equal-weighted").probabilities[:, 10].mean()
    assert HABITS.slip == 0.006
    assert none == pytest.approx(0.006, abs=0.005)
