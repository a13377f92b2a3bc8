from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.special import softmax

from dissensus.errors import InputError
from dissensus.evaluation.baselines import marginal
from dissensus.evaluation.finite_panel import people_ruler as module
from dissensus.evaluation.finite_panel.panel import Panel, panel_of
from dissensus.evaluation.finite_panel.people_ruler import Ruler, people_ruler, worth_in_people
from dissensus.labels.mixture import Dirichlet, choose_smoothings, cross_fitted, fit_prior
from dissensus.labels.schemes import frequency, weighted
from dissensus.votes.official.chaosnli import read_chaosnli
from dissensus.votes.simulate import simulate_responses
from tests.evaluation.coverage import bayes, ruler_trials, shared_panel, truths, votes_of
from tests.evaluation.simulated import counted, labels_of, model_of, true_distributions

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.evaluation.finite_panel.people_ruler import Ruled

TRAINING = np.random.default_rng(0).multinomial(6, true_distributions("sparse", 200, classes=3)).astype(np.float64)
PRIOR = fit_prior(TRAINING)


def ruler_of(panel: Panel, **options: Any) -> Ruler:
    ruler = people_ruler(panel, **options)
    assert isinstance(ruler, Ruler), ruler
    return ruler


def by_counting_out(vectors: Any, prior: Any, n: int, score: Ruled) -> float:
    """The mean over every scored judgement and every choice of n others."""
    scores = []
    for v, x in enumerate(vectors):
        others = np.delete(vectors, v, axis=0)
        for chosen in combinations(range(len(others)), n):
            f = prior.forecast(others[list(chosen)].sum(axis=0)[None])[0]
            off = np.cumsum(x - f) if score == "rps" else x - f
            scores.append(-(x @ np.log(f)) if score == "soft_nll" else (off**2).sum())
    return float(np.mean(scores))


@pytest.mark.parametrize("score", ["soft_nll", "brier", "rps"])
@settings(max_examples=10)
@given(
    counts=st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=2, max_size=5).filter(
        lambda rows: all(sum(row) >= 2 for row in rows)
    )
)
def test_the_ruler_is_the_mean_over_every_choice_of_people(score: Ruled, counts: list[list[int]]) -> None:
    ruler = ruler_of(counted(np.array(counts)), training=TRAINING, score=score)
    for n in range(1, ruler.most + 1):
        for item, row in enumerate(counts):
            if sum(row) > n:
                right = by_counting_out(np.repeat(np.eye(3), row, axis=0), PRIOR, n, score)
                assert ruler.per_item[n, item] == pytest.approx(right)
            else:
                assert np.isnan(ruler.per_item[n, item])


@pytest.mark.parametrize("score", ["soft_nll", "brier", "rps"])
def test_judgements_with_several_votes_are_drawn_whole(score: Ruled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_DRAWS", 1000)
    votes = simulate_responses(true_distributions("flat", 6, classes=3), 4, annotators=30, seed=1)
    panel = panel_of(weighted(votes, "uncertainty-weighted"), votes)
    training = np.array([[3.0, 2.0, 1.0, 0.5], [1.0, 4.0, 1.0, 0.5], [0.0, 1.0, 5.0, 0.5]])
    ruler = ruler_of(panel, training=training, score=score)
    assert panel.vectors is not None
    prior = fit_prior(training)
    for item in range(6):
        own = panel.vectors.toarray()[panel.item == item]
        for n in range(1, 4):
            right = by_counting_out(own, prior, n, score)
            assert ruler.per_item[n, item] == pytest.approx(right, rel=0.1, abs=0.01)
    assert any("random orders" in note for note in ruler.notes)


def test_random_orders_agree_with_the_exact_sums_for_single_votes() -> None:
    panel = panel_of(labels := labels_of(true_distributions("flat", 50), 6), None)
    alone = ruler_of(panel, training=labels.counts.astype(np.float64))
    item = np.repeat(np.arange(50), 6).astype(np.int32)
    vectors = one_hot_judgements(labels.counts)
    several = Panel(mass=panel.mass, squares=panel.squares, size=panel.size, single=False, item=item, vectors=vectors)
    orders = ruler_of(several, training=labels.counts.astype(np.float64))
    np.testing.assert_allclose(orders.values, alone.values, rtol=0.015)


def one_hot_judgements(counts: Any) -> Any:
    return csr_array(np.repeat(np.tile(np.eye(counts.shape[1]), (len(counts), 1)), counts.ravel(), axis=0))


@pytest.mark.parametrize(("family", "score"), [("scale", "soft_nll"), ("modes", "soft_nll"), ("scale", "rps")])
def test_the_best_forecast_of_n_fresh_votes_is_worth_n_people(family: str, score: Ruled) -> None:
    found = ruler_trials((1, 2, 5), family=family, score=score, votes=12, trials=2, items=1500, learnt=2500)
    for people, trials in found.items():
        assert np.mean([value for value, _ in trials]) == pytest.approx(people, rel=0.15)
    # The whole table, with many more trials, is in benchmarks/honesty.py.
    assert sum(held for trials in found.values() for _, held in trials) >= 5


def test_worth_on_few_items_is_that_of_a_ruler_learnt_from_many() -> None:
    """The reference is a ruler that learnt from 4,000 other items. An uncorrected ruler misses the reference."""
    off = {"few": 0.0, "uncorrected": 0.0}
    for family, items in (("lumps", 150), ("contested", 300)):
        for trial in range(6):
            rng = np.random.default_rng([trial, 5])
            truth = truths(family, items, rng)
            panel = votes_of(truth, 7, rng)
            few = ruler_of(panel, seed=trial)
            many = ruler_of(panel, training=rng.multinomial(7, truths(family, 4000, rng)).astype(float), seed=trial)
            uncorrected = replace(few, learning=np.zeros(few.most + 1))
            population = truths(family, 4000, rng)
            for people in (1, 2, 4):
                model = bayes(rng.multinomial(people, truth), population)
                right = worth_in_people(many, model, resamples=0).estimate.value
                for name, ruler in (("few", few), ("uncorrected", uncorrected)):
                    off[name] += worth_in_people(ruler, model, resamples=0).estimate.value - right
    assert off["uncorrected"] / 36 > 0.2
    assert abs(off["few"]) < off["uncorrected"] / 3


def test_worth_is_withheld_if_the_items_cannot_teach_it() -> None:
    rng = np.random.default_rng(0)
    truth = truths("bimodal", 40, rng)
    ruler = ruler_of(votes_of(truth, 7, rng))
    found = worth_in_people(ruler, bayes(rng.multinomial(6, truth), truths("bimodal", 4000, rng)))
    assert not found.known
    assert "40 items are too few" in found.reason
    assert found.to_dict()["reason"] == found.reason
    assert worth_in_people(replace(ruler, learning=np.zeros(ruler.most + 1)), truth).reason == ""


def test_the_marginal_is_worth_nobody_by_construction_and_the_truth_more_than_the_panel() -> None:
    truth = true_distributions("sparse", 500)
    panel = counted(labels_of(truth, 5).counts)
    training = labels_of(true_distributions("sparse", 500, seed=1), 5, seed=1).counts.astype(np.float64)
    for ruler, known in ((ruler_of(panel, training=training), training / 5), (ruler_of(panel), None)):
        nobody = worth_in_people(ruler, marginal(panel.shares, training=known).probabilities)
        assert str(nobody) == "0.0 people [0.0, 0.0]"
    few = panel_of(labels_of(true_distributions("flat", 20), 3))
    assert str(worth_in_people(ruler_of(few), marginal(few.shares).probabilities)) == "0.0 people [0.0, 0.0]"
    ruler = ruler_of(panel, training=training)
    best = worth_in_people(ruler, np.clip(truth, 1e-6, 1))
    assert best.more
    assert best.high_open
    assert str(best).startswith("more than 4 people")
    worst = worth_in_people(ruler, np.tile([0.97, 0.01, 0.01, 0.01], (500, 1)))
    assert worst.fewer
    assert worst.low_open
    assert str(worst) == "worse than the marginal"
    assert worst.estimate.value == 0.0
    assert json.loads(json.dumps(worst.to_dict()))["words"] == "worse than the marginal"


def test_where_the_interval_is_the_whole_ruler_the_votes_cannot_tell() -> None:
    # Nobody knows anything of such items, so that any number of people forecasts as well as nobody does.
    counts = np.random.default_rng(3).multinomial(5, [0.5, 0.5], size=200)
    worth = worth_in_people(ruler_of(counted(counts)), np.full((200, 2), 0.5))
    assert not worth.known
    assert (str(worth), worth.short) == ("a number of people that these votes cannot tell", "unknown")


def test_the_ruler_runs_to_what_half_of_the_items_reach_and_says_so() -> None:
    sizes = np.array([2] * 5 + [4] * 3 + [9] * 2)
    panel = counted(labels_of(true_distributions("flat", 10), sizes).counts)
    ruler = ruler_of(panel, training=TRAINING[:, [0, 1, 2, 2]])
    assert ruler.most == 3
    assert ruler.items.tolist() == [10, 10, 5, 5]
    assert ruler.notes[0].startswith("the ruler runs to 3 people, which 5 of 10 items reach")
    at_two = ruler.per_item[2, sizes > 2]
    assert ruler.values[2] == pytest.approx(at_two.mean())


def test_without_training_items_the_forecasts_of_an_item_never_saw_it() -> None:
    counts = labels_of(true_distributions("sparse", 40), 4).counts
    ruler = ruler_of(counted(counts), seed=3)
    assert "5 folds" in ruler.notes[1]
    mass = counts.astype(np.float64)
    priors, fold = cross_fitted(mass, seed=3)
    changed = mass.copy()
    changed[7] = [0, 0, 0, 4]
    assert choose_smoothings(mass, seed=3) == choose_smoothings(changed, seed=3)
    of = priors[fold[7]]
    np.testing.assert_allclose(cross_fitted(changed, seed=3)[0][fold[7]].forecast(mass), of.forecast(mass))
    with pytest.raises(InputError, match="give training items"):
        people_ruler(counted(counts[:5]))


def test_knowing_the_question_is_not_worth_people() -> None:
    rng = np.random.default_rng(0)
    question = np.repeat([0, 1], 400)
    truth = rng.dirichlet([4, 1, 0.5], 800)
    truth[400:] = truth[400:, ::-1]
    counts = rng.multinomial(6, truth)
    knows = marginal(counts / 6, question=question).probabilities
    plain = worth_in_people(ruler_of(counted(counts)), knows)
    assert plain.estimate is not None
    assert plain.estimate.low is not None
    assert plain.estimate.low > 0.3
    asked = ruler_of(counted(counts), question=question, nobody=knows[0])
    assert str(worth_in_people(asked, knows)) == "0.0 people [0.0, 0.0]"
    # A vote still says something of the item, beyond its question, and what it says is learnt.
    assert (np.diff(asked.values) < 0).all()
    assert asked.values[1] < ruler_of(counted(counts)).values[1]


def test_the_truth_of_a_question_of_which_items_tell_nothing_more_may_be_worth_nobody() -> None:
    """It beats the mean of the other items by what that mean has left to learn, and the interval knows it."""
    held = 0
    for trial in range(12):
        rng = np.random.default_rng(trial)
        question = np.arange(150) % 3
        truth = rng.dirichlet([3, 2, 1], 3)[question]
        counts = rng.multinomial(5, truth)
        ruler = ruler_of(
            counted(counts),
            question=question,
            nobody=marginal(counts / 5, question=question).probabilities[0],
            seed=trial,
        )
        found = worth_in_people(ruler, truth, resamples=200)
        held += found.low_open or bool(found.estimate is not None and found.estimate.low == 0)
    assert held >= 10


def test_a_class_that_no_training_item_has_is_not_impossible() -> None:
    counts = np.array([[3, 0, 1], [2, 2, 0], [0, 1, 3]])
    training = np.array([[3.0, 1.0, 0.0], [1.0, 3.0, 0.0]])
    assert ruler_of(counted(counts), training=training).per_item[0].max() < 6


def test_single_judgements_have_no_ruler() -> None:
    reason = people_ruler(counted(np.array([[1, 0], [0, 1], [1, 0]])), training=TRAINING[:, :2])
    assert reason == "most items have a single judgement: nobody is left to score a person's forecast on"
    with pytest.raises(InputError, match="choose soft_nll, brier or"):
        people_ruler(counted(np.array([[2, 0]])), score="kl")  # type: ignore[arg-type]


def test_predictions_of_another_shape_are_refused() -> None:
    ruler = ruler_of(counted(labels_of(true_distributions("flat", 20), 4).counts))
    with pytest.raises(InputError, match="one distribution per item"):
        worth_in_people(ruler, np.full((20, 3), 1 / 3))


@pytest.mark.parametrize("score", ["soft_nll", "brier", "rps"])
def test_the_same_few_people_on_all_items_widen_the_interval_of_the_gap(score: Ruled) -> None:
    wider = {}
    for habit in (0.0, 1.5):
        votes, everybody = shared_panel(5, 5, items=300, habit=habit, rng=np.random.default_rng(0))
        labels, model = frequency(votes), model_of(everybody, "perturbed")[None]
        widths = []
        for panel in (panel_of(labels, votes), panel_of(labels)):
            ruler = ruler_of(panel, training=labels.counts.astype(np.float64), score=score)
            scores = (panel.shares * module.losses(model[0], score)).sum(axis=1)[None]
            scores = scores + module._whatever_forecast(panel, score)
            low, _, high = module._gaps(ruler, scores, module.mean_losses(model, score), resamples=300, seed=0)
            widths.append(high - low)
        wider[habit] = widths[0] / widths[1]
    assert (wider[0.0] < 2).all()
    assert (wider[1.5] > wider[0.0]).all()
    assert wider[1.5].mean() > 2


@pytest.mark.parametrize("score", ["soft_nll", "brier", "rps"])
@pytest.mark.parametrize("exact", [True, False])
def test_what_leaving_out_a_vote_does_is_what_a_smaller_panel_gives(
    score: Ruled, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = np.array([[3, 1, 1, 0], [2, 2, 0, 1], [0, 4, 1, 0], [1, 1, 1, 2]])
    if not exact:
        monkeypatch.setattr(module, "EXACT", 0)
    prior = Dirichlet(np.array([0.5, 0.4, 0.3, 0.2]))
    # Where votes are drawn, twenty draws of two thousand copies of each item are forty thousand draws of the item.
    copies = 1 if exact else 2_000
    tiled = np.tile(counts, (copies, 1))
    left = module._mean_scores(tiled, 2, prior, score, draws=20, seed=0, without=True)[1]
    assert left is not None
    without = left.reshape(copies, *counts.shape).mean(axis=0)
    for item, k in zip(*np.nonzero(counts), strict=True):
        fewer = counts[item].copy()
        fewer[k] -= 1
        right = by_counting_out(np.repeat(np.eye(4), fewer, axis=0), prior, 2, score)
        # Without what is added whatever is forecast: 1 by Brier, by RPS the steps at and above each vote.
        right -= {"soft_nll": 0.0, "brier": 1.0, "rps": float(fewer @ [3, 2, 1, 0]) / fewer.sum()}[score]
        assert without[item, k] == pytest.approx(right, rel=1e-9 if exact else 0.08, abs=1e-9 if exact else 3e-3)


def test_many_votes_and_uneven_panels_keep_the_curve_smooth() -> None:
    rng = np.random.default_rng(0)
    size = rng.integers(30, 70_000, 150)
    panel = counted(rng.multinomial(size, rng.dirichlet([1, 1, 0.5], 150)))
    ruler = ruler_of(panel)
    assert ruler.most == 100
    assert np.isfinite(ruler.values).all()
    assert (np.diff(ruler.per_item[:30, size > 100].mean(axis=1)) < 0).all()


def test_roberta_on_chaosnli_is_worth_less_than_nobody_until_its_temperature_is_mended(data: Path) -> None:
    folder = data / "chaosNLI_v1.0"
    labels = frequency(read_chaosnli(folder / "chaosNLI_snli.jsonl"))
    rows = map(json.loads, (folder / "model_logits.jsonl").read_text().splitlines())
    logits = {row["uid"]: row["logits"]["roberta-base_0"] for row in rows if row["subset"] == "snli"}
    table = np.array([logits[str(item)] for item in labels.items])
    ruler = ruler_of(panel_of(labels))
    np.testing.assert_allclose(ruler.values[:4], [1.028, 0.824, 0.747, 0.706], atol=0.004)
    assert worth_in_people(ruler, softmax(table, axis=1)).fewer
    mended = worth_in_people(ruler, softmax(table / 3, axis=1)).estimate
    assert mended is not None
    assert mended.value == pytest.approx(1.55, abs=0.15)
