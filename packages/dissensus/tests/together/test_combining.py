"""The posterior of a prediction and votes: against grids and sums by hand, and what its strengths must do."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import dirichlet

import dissensus as dis
from dissensus.datasets import load
from dissensus.evaluation.calibration import Calibrator
from dissensus.evaluation.finite_panel.panel import Panel, draw_votes
from dissensus.labels.mixture import Dirichlet, Mixture
from dissensus.together import combining
from dissensus.together.combining import Combination, learn_combination
from dissensus.together.gains import gains_of, learn

AS_IT_IS = Calibrator(
    kind="temperature",
    given="probabilities",
    matrix=np.eye(3),
    bias=np.zeros(3),
    soft_nll=0.0,
    soft_nll_before=0.0,
    converged=True,
)
POINTS = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [1 / 3, 1 / 3, 1 / 3], [0.05, 0.05, 0.9]])
PRIORS: dict[str, Any] = {
    "mixture": Mixture(POINTS, np.array([0.4, 0.3, 0.2, 0.1])),
    "dirichlet": Dirichlet(np.array([0.6, 1.1, 2.0])),
}


def combination(prior: Any, **changed: Any) -> Combination:
    given: dict[str, Any] = {
        "calibrators": (AS_IT_IS,),
        "strengths": np.array([4.0]),
        "slopes": np.zeros(2),
        "centre": np.zeros(2),
        "scale": np.ones(2),
        "own": 2.0,
        "shares": np.array([0.5, 0.3, 0.2]),
        "clarity": 1.7,
    }
    return Combination(prior=prior, **given | changed)


def panel_of(counts: Any) -> Panel:
    votes = np.asarray(counts, dtype=np.float64)
    return Panel(mass=votes, squares=votes, size=votes.sum(axis=1).astype(np.int64), single=True)


def grid() -> Any:
    """Cell centres of a fine grid over all distributions of three classes."""
    steps = (np.arange(600) + 0.5) / 600
    first, second = (part.ravel() for part in np.meshgrid(steps, steps))
    inside = first + second < 1
    return np.stack([first, second, 1 - first - second], axis=1)[inside]


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize("votes", [[0, 0, 0], [1, 0, 0], [2, 1, 0], [0, 1, 3]])
def test_the_posterior_mean_is_the_integral_over_all_distributions(prior: Any, votes: list[int]) -> None:
    prediction = np.array([0.5, 0.3, 0.2])
    pseudo = 4.0 * prediction
    cells = grid()
    density = dirichlet.pdf(cells.T, 2.0 * pseudo)
    trusting = density / density.sum()
    if isinstance(prior, Mixture):
        points = prior.points
        weights = prior.weights * np.prod(points**pseudo, axis=1)
    else:
        points = cells
        weights = dirichlet.pdf(cells.T, prior.alpha + pseudo)
    weights = weights / weights.sum()
    # One person's answer that was not quite heard: how much likelier the prediction makes k counts 1.7 times.
    before = prior.weights if isinstance(prior, Mixture) else np.asarray(dirichlet.pdf(cells.T, prior.alpha))
    heard = before[:, None] * points
    mean = heard.sum(axis=0) / before.sum()
    chances = mean * (prediction / mean) ** 1.7
    unheard = heard / heard.sum(axis=0) @ chances / chances.sum()
    of_points, of_cells = np.prod(points**votes, axis=1), np.prod(cells**votes, axis=1)
    joint = ((0.5 * weights + 0.2 * unheard) * of_points) @ points + 0.3 * (trusting * of_cells) @ cells
    expected = joint / joint.sum()
    made = combination(prior)
    given = made.pseudo_votes([prediction[None, None]])
    assert made.forecast(given, [votes])[0] == pytest.approx(expected, abs=3e-3)


def test_the_chance_of_votes_is_the_product_of_forecasts_one_by_one() -> None:
    # What strengths are fitted to is what forecasts are scored by.
    made = combination(PRIORS["mixture"])
    pseudo = made.pseudo_votes([np.array([[[0.5, 0.3, 0.2]]])])
    seen, chance = np.zeros((1, 3)), 1.0
    for vote in (0, 2, 2, 1):
        chance *= made.forecast(pseudo, seen)[0, vote]
        seen[0, vote] += 1
    unheard = combining._log_chances(made.prior, pseudo, made.clarity)
    unheard += combining._log_evidence_after_one(made.prior, seen)
    parts = combining._log_evidences(made.prior, pseudo, made.own, seen, unheard)
    assert np.exp(parts)[0] @ made.shares == pytest.approx(chance, rel=1e-7)


def test_without_strength_only_votes_count_and_without_votes_a_trusted_prediction_is_said() -> None:
    counts = np.array([[2.0, 1.0, 0.0]])
    nothing = combination(PRIORS["mixture"], strengths=np.zeros(1))
    prediction = [np.array([[[0.1, 0.1, 0.8]]])]
    assert nothing.forecast(nothing.pseudo_votes(prediction), counts) == pytest.approx(
        PRIORS["mixture"].forecast(counts)
    )
    trusting = combination(PRIORS["mixture"], shares=np.array([0.0, 1.0, 0.0]))
    said = trusting.forecast(trusting.pseudo_votes(prediction), np.zeros((1, 3)))
    assert said[0] == pytest.approx([0.1, 0.1, 0.8], abs=1e-6)


def test_an_undecided_answer_that_was_not_quite_heard_says_nothing() -> None:
    # Averaged over the chances that people's own forecast gives it, a vote that nobody saw changes nothing.
    prior = PRIORS["mixture"]
    made = combination(prior, shares=np.array([0.0, 0.0, 1.0]))
    counts = np.array([[2.0, 1.0, 0.0]])
    nobody = prior.forecast(np.zeros((1, 3)))
    assert made.forecast(4 * nobody, counts) == pytest.approx(prior.forecast(counts))


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize("answer", [0, 1, 2])
def test_an_answer_that_was_heard_clearly_is_one_vote(prior: Any, answer: int) -> None:
    # A calibrated answer says what others say beside it, which may well be another class.
    beside = prior.forecast(np.eye(3))[answer]
    made = combination(prior, shares=np.array([0.0, 0.0, 1.0]), clarity=1000.0)
    counts = np.array([[2.0, 1.0, 0.0]])
    assert made.forecast(4 * beside[None], counts) == pytest.approx(prior.forecast(counts + np.eye(3)[answer]))
    # With a clarity of 1 it is the prediction that says how likely each answer is, with one of 0 nobody was heard.
    made = combination(prior, shares=np.array([0.0, 0.0, 1.0]), clarity=1.0)
    after = prior.forecast(np.eye(3))
    assert made.forecast(4 * beside[None], np.zeros((1, 3)))[0] == pytest.approx(beside @ after)
    made = combination(prior, shares=np.array([0.0, 0.0, 1.0]), clarity=0.0)
    assert made.forecast(4 * beside[None], counts) == pytest.approx(prior.forecast(counts))


def test_strength_in_people_is_that_of_votes_where_the_prediction_is_that_of_votes() -> None:
    # Under a Dirichlet prior, n pseudo-votes in the first part are n votes, whatever they say.
    made = combination(PRIORS["dirichlet"], shares=np.array([1.0, 0.0, 0.0]))
    pseudo = np.array([[2.0, 1.0, 2.0], [0.0, 0.0, 0.0]])
    whole = PRIORS["dirichlet"].alpha.sum()
    people = made.people(pseudo)
    alpha = PRIORS["dirichlet"].alpha / whole
    spread = [1 - (mean**2).sum() for mean in (alpha, PRIORS["dirichlet"].forecast(pseudo[:1])[0])]
    # V = (1 - sum m^2) / (A + 1); after five votes people know that much of a mean as undecided as this one.
    error = spread[1] / (whole + 6)
    assert people == pytest.approx([whole * (spread[0] / (whole + 1) / error - 1), 0.0])


def test_an_item_that_no_model_predicts_gets_what_the_votes_say() -> None:
    made = combination(PRIORS["mixture"])
    pseudo = made.pseudo_votes([np.full((2, 1, 3), np.nan)])
    assert pseudo.tolist() == [[0.0, 0.0, 0.0]]
    assert made.forecast(pseudo, [[3, 0, 0]]) == pytest.approx(PRIORS["mixture"].forecast(np.array([[3, 0, 0]])))


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_the_slope_is_that_of_finite_differences(prior: Any) -> None:
    rng = np.random.default_rng(0)
    votes = rng.multinomial(4, [0.5, 0.3, 0.2], 30).astype(np.float64)
    part = combining._Part(
        prior,
        rng.dirichlet(np.ones(3), (2, 30)),
        rng.normal(size=(30, 2)),
        votes,
        combining._log_evidence_after_one(prior, votes),
        1.7,
    )
    x = np.array([0.4, -0.7, 0.3, -0.2, 0.5, -0.4, 0.3, 0.6])

    def value(y: Any) -> Any:
        return combining._surprise(y, [part])[0]

    slope = approx_fprime(x, value, 1e-6)
    assert combining._surprise(x, [part])[1] == pytest.approx(slope, rel=1e-3, abs=1e-3)


@cache
def words(items: int = 600) -> Any:
    """Real ratings, of three classes to be quick: ten people a word."""
    counts = np.asarray(dis.label(load("words")).counts)
    chosen = np.random.default_rng(0).permutation(len(counts))[:items]
    return np.stack([counts[chosen][:, part].sum(axis=1) for part in np.array_split(np.arange(counts.shape[1]), 3)], 1)


def test_one_person_handed_in_as_a_model_adds_one_person() -> None:
    # The placebo: the model is one real person's answer, of which the ruler knows nothing.
    counts = words()
    person = draw_votes(counts, np.ones(len(counts), dtype=np.int64), np.random.default_rng(1))
    gains = gains_of(learn(panel_of(counts - person), [person[None].astype(np.float64)]), resamples=200)
    # A person more is a person more, so that one vote and this model are two people.
    for gain in gains[:3]:
        assert gain.of_one_more is not None
        assert gain.of_one_more.low is not None
        assert gain.of_one_more.high is not None
        assert gain.of_one_more.low - 0.01 <= 0 <= gain.of_one_more.high + 0.01
    for gain in gains[:4]:
        low, high = gain.people.low, gain.people.high
        assert gain.people.value == pytest.approx(1, abs=0.3)
        assert low is not None
        assert high is not None
        assert low - 0.1 < 1 < high + 0.1


def test_shuffled_predictions_cost_less_than_a_twentieth_of_a_person() -> None:
    counts = words()
    rng = np.random.default_rng(2)
    other = draw_votes(counts, np.full(len(counts), 5), rng)[rng.permutation(len(counts))]
    gains = gains_of(learn(panel_of(counts), [(other / 5)[None]]), resamples=0)
    assert [gain.votes for gain in gains[1:4]] == [1, 2, 3]
    for gain in gains[1:4]:
        assert abs(gain.people.value) < 0.05


def test_a_copy_of_a_model_counts_once() -> None:
    counts = words()
    half = draw_votes(counts, np.full(len(counts), 4), np.random.default_rng(3))
    panel, model = panel_of(counts - half), (half / 4)[None]
    once, twice = learn_combination(panel, [model]), learn_combination(panel, [model, model])
    assert twice.strengths.sum() == pytest.approx(once.strengths.sum(), rel=0.1)
    votes = np.eye(3)[np.arange(len(counts)) % 3]
    said = [made.forecast(made.pseudo_votes([model] * len(made.strengths)), votes) for made in (once, twice)]
    assert np.abs(said[0] - said[1]).max() < 0.01


def test_strength_follows_the_disagreement_of_seeds_where_that_tells_how_wrong_they_are() -> None:
    rng = np.random.default_rng(4)
    truth = rng.dirichlet(np.full(3, 0.5), 1500)
    noise = np.where(rng.random(1500) < 0.5, 0.1, 1.5)[:, None]
    runs = np.exp(np.log(truth + 0.02) + noise * rng.normal(size=(4, 1500, 3)))
    runs /= runs.sum(axis=2, keepdims=True)
    made = learn_combination(panel_of(rng.multinomial(5, truth)), [runs])
    assert made.slopes[1] < -0.3
    strength = made.pseudo_votes([runs]).sum(axis=1)
    assert strength[noise[:, 0] < 1].mean() > 2 * strength[noise[:, 0] > 1].mean()


def test_cross_fitted_combinations_learn_nothing_of_an_item_from_its_own_votes() -> None:
    """With other votes on one item, what is learnt for its fold stays the same to the bit, and for the others not."""
    rng = np.random.default_rng(0)
    counts = rng.multinomial(5, rng.dirichlet([0.5, 0.5], 60))
    noise = rng.dirichlet([1.0, 1.0], (1, 60))
    before, fold = combining.cross_fitted_combinations(panel_of(counts), [noise])
    item = int(np.flatnonzero(counts[:, 0] >= 4)[0])
    counts[item] = [0, 5]
    after, _ = combining.cross_fitted_combinations(panel_of(counts), [noise])
    for number, (one, other) in enumerate(zip(before, after, strict=True)):
        same = np.array_equal(one.pseudo_votes([noise]), other.pseudo_votes([noise]))
        assert same == (number == fold[item])
