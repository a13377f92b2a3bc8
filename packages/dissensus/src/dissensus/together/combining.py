"""What an item's label distribution is, given a model's prediction and the votes of a few people.

Before its votes an item's label distribution p has a prior in which the prediction stands as pseudo-votes S, spread as
the prediction is. It has three parts, and votes decide between them as they come:

    p ~ share_1 M( . | S) + share_2 Dirichlet(own S) + share_3 sum_k chance_k M( . | one vote for k).

M is the nonparametric mixture of label distributions that people's own forecasts are made from (`labels.mixture`),
updated by S as if these were votes: a model that knows nothing gets S = 0, and what is left is what the votes say
alone. The second part trusts the prediction to hit a distribution that no other item has. The third takes it for one
person's answer that was not quite heard: an undecided prediction then speaks of a model that does not know, and not, as
in the first, of people who differ. With q = S / sum S, and m what people say in the mean, chance_k is proportional to
m_k (q_k / m_k)^t. A calibrated answer is what others say beside it, and t, how clearly it was heard, undoes that: where
t is large, what is left is one vote for the class that q makes likelier than any other. After votes c everything is in
closed form: each part is updated by c, and its share by how likely it made c.

Each model is first calibrated to people's votes. Its strength, the pseudo-votes that it counts for, is learnt together
with that of the others, by the likelihood of up to four votes of each item, so that two copies of a model count once;
and strength may rise or fall, from item to item, with how undecided the models are and how far they (and their seeds)
disagree. What is learnt is learnt from other items than those that it is used on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import digamma, entr, log_softmax, logsumexp, softmax

from dissensus.errors import InputError
from dissensus.evaluation.calibration import fit_calibrator
from dissensus.evaluation.finite_panel.panel import draw_judgements
from dissensus.labels.mixture import FEW, FOLDS, Dirichlet, choose_smoothings, fit_prior, folds_of, next_vote
from dissensus.votes.sides import both_sides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Floats, Ints, Mask, Table
    from dissensus.evaluation.calibration import Calibrator, Kind
    from dissensus.evaluation.finite_panel.panel import Panel
    from dissensus.evaluation.probabilities import Runs
    from dissensus.labels.mixture import Prior

LEAST: Final = 20
"""The fewest items with two judgements or more that a strength is learnt from."""

ROWS: Final = 1000
"""Draws of a few votes that strengths are learnt from, at least; few items are drawn several times."""

SMALLEST: Final = 1e-4
"""Probabilities below it are raised to it before they are calibrated: a model's 0 is no more than a small number."""

KINDS: Final[tuple[Kind, ...]] = ("temperature", "vector", "dirichlet")
"""How a model may be calibrated; the votes of held-out items choose."""

WIDTH: Final = 3.0
"""Standard deviation of the priors of ln strength, of ln `own` and of the log-odds of shares: hardly any."""

SLOPE: Final = 0.5
"""The same of the slopes of ln strength in signals of variance 1."""

NOTHING: Final = 1e-9
"""Pseudo-votes that a Dirichlet distribution has for each class at least."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Combination:
    """How predictions of certain models and votes are brought together.

    Attributes:
        prior: people's own, from which few votes are forecast without a model.
        calibrators: of each model.
        strengths: (models,) pseudo-votes that each counts for on an ordinary item.
        slopes: (2,) of ln strength, in the standardised entropy of the models' mean and in their disagreement.
        centre: (2,) mean of these two signals among the items that were learnt from.
        scale: (2,) and their standard deviation.
        own: pseudo-votes of the part that trusts the prediction, as a multiple of those in the mixture.
        shares: (3,) of the three parts, before any vote.
        clarity: t, how clearly the answer of the third part was heard.
    """

    prior: Prior = field(repr=False)
    calibrators: tuple[Calibrator, ...] = field(repr=False)
    strengths: Floats
    slopes: Floats
    centre: Floats = field(repr=False)
    scale: Floats = field(repr=False)
    own: float
    shares: Floats
    clarity: float = 1.0

    def pseudo_votes(self, models: Sequence[Runs]) -> Table:
        """(items, classes) what the predictions count for, of (seeds, items, classes) predictions of each model.

        A row of NaN predicts nothing.
        """
        calibrated, signals = _calibrated(models, self.calibrators)
        weight = np.exp((signals - self.centre) / self.scale @ self.slopes)
        return np.asarray(weight[:, None] * np.tensordot(self.strengths, calibrated, axes=1))

    def people(self, pseudo: Table) -> Floats:
        """(items,) how many people's votes would tell as much of p as these pseudo-votes do.

        Without a model the expected squared error falls with n votes as V A / (A + n), see `together.allocation`.
        """
        (whole,), (moved,), _ = next_vote(np.zeros((1, pseudo.shape[1])), self.prior.forecast)
        left = next_vote(np.zeros_like(pseudo), lambda mass: self.forecast(pseudo, mass))[0]
        few = max(whole / moved - 1, NOTHING) if moved > 0 else NOTHING
        return np.asarray(few * np.maximum(whole / np.maximum(left, NOTHING * whole) - 1, 0.0))

    def forecast(self, pseudo: Table, mass: Any) -> Table:
        """(items, classes) the posterior mean of p after these pseudo-votes and (items, classes) votes."""
        votes = np.asarray(mass, dtype=np.float64)
        said = pseudo.any(axis=1)
        chances = _log_chances(self.prior, pseudo, self.clarity)
        unheard = chances + _log_evidence_after_one(self.prior, votes)
        with np.errstate(divide="ignore"):
            log = np.log(self.shares) + _log_evidences(self.prior, pseudo, self.own, votes, unheard)
        # Where no model says anything there is nothing to trust, and nobody to hear.
        log[~said, 1:] = -np.inf
        parts = softmax(log, axis=1)
        own = self.own * pseudo + NOTHING + votes
        mean = parts[:, :1] * self.prior.forecast(pseudo + votes)
        mean += parts[:, 1:2] * own / own.sum(axis=1, keepdims=True)
        mean[said] += parts[said, 2:] * self.prior.forecast_after_one(votes[said], softmax(unheard[said], axis=1))
        return np.asarray(mean)


def learn_combination(
    panel: Panel,
    models: Sequence[Runs],
    *,
    smoothings: tuple[float, ...] | None = None,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
) -> Combination:
    """How these models and a few votes are best brought together, learnt from a panel.

    Two halves of the items check each other: what each half's votes and calibrators say of the other half's votes is
    what strengths are fitted to, and the kinds of calibrators chosen by. Then all items are used.

    Args:
        panel: the judgements; at least 20 items with two of them.
        models: of each model, (seeds, items, classes) predictions of the same items.
        smoothings: of `labels.mixture.fit_prior`; None to choose them here.
        kinds: of each model's calibrator; None likewise.
        seed: of draws.
    """
    # Folds of the fewest items have fewer.
    several = _with_two_votes(panel, LEAST if smoothings is None else LEAST // 2)
    panel, models = panel.take(several), [model[:, several] for model in models]
    chosen = choose_smoothings(panel.mass, seed=seed, pairs=panel.pairs) if smoothings is None else smoothings
    half = folds_of(len(panel), seed=seed) % 2
    kinds = _best_kinds(panel, models, half) if kinds is None else kinds
    parts = [
        _part(panel, models, half == this, half != this, kinds=kinds, smoothings=chosen, seed=seed) for this in (0, 1)
    ]
    fitted = _fit(parts, models=len(models))
    calibrators = _calibrators(panel, models, kinds)
    signals = _calibrated(models, calibrators)[1]
    return Combination(
        prior=fit_prior(panel.mass, smoothings=chosen, seed=seed, pairs=panel.pairs),
        calibrators=calibrators,
        strengths=np.exp(fitted[:-6]),
        slopes=fitted[-6:-4],
        centre=signals.mean(axis=0),
        scale=_scale(signals),
        own=float(np.exp(fitted[-4])),
        shares=softmax([0.0, *fitted[-3:-1]]),
        clarity=float(np.exp(fitted[-1])),
    )


def cross_fitted_combinations(
    panel: Panel, models: Sequence[Runs], *, seed: int = 0, part: float = 1.0
) -> tuple[tuple[Combination, ...], Ints]:
    """A combination for each of some folds of the items, learnt from the others, and (items,) the fold of each.

    They are learnt from all of the others, or from a random `part` of them.
    """
    _with_two_votes(panel, LEAST)
    fold = folds_of(len(panel), seed=seed)
    chosen: Any = {
        "smoothings": choose_smoothings(panel.mass, seed=seed, pairs=panel.pairs),
        "kinds": _best_kinds(panel, models, fold % 2),
    }
    used = np.random.default_rng([seed, 1]).permutation(len(panel)) < part * len(panel)
    others = [np.flatnonzero((fold != number) & used) for number in range(FOLDS)]
    return tuple(
        learn_combination(panel.take(rows), [model[:, rows] for model in models], **chosen, seed=seed)
        for rows in others
    ), fold


def _with_two_votes(panel: Panel, least: int) -> Ints:
    """The items with two judgements or more; refused where they are fewer than `least`."""
    several = np.flatnonzero(panel.size > 1)
    if len(several) < least:
        raise InputError(
            f"combine: {len(several)} items have two votes or more, and how much a prediction counts beside votes is "
            f"learnt from at least {LEAST}; give more votes"
        )
    return several


@dataclass(frozen=True, eq=False)
class _Part:
    """Draws of few votes, (rows, classes), beside what other items' votes made of their predictions.

    `calibrated` is (models, rows, classes), `signals` (rows, 2) standardised, `unheard` (rows, classes) of
    `_log_evidence_after_one`, and `weight` the votes' part in all.
    """

    prior: Prior
    calibrated: np.ndarray[tuple[int, int, int], np.dtype[np.float64]]
    signals: Table
    votes: Table
    unheard: Table
    weight: float


def _part(
    panel: Panel,
    models: Sequence[Runs],
    scored: Any,
    others: Any,
    *,
    kinds: Sequence[Kind],
    smoothings: tuple[float, ...],
    seed: int,
) -> _Part:
    theirs, mine = panel.take(others), panel.take(scored)
    calibrators = _calibrators(theirs, [model[:, others] for model in models], kinds)
    there = _calibrated([model[:, others] for model in models], calibrators)[1]
    calibrated, signals = _calibrated([model[:, scored] for model in models], calibrators)
    rng = np.random.default_rng(seed)
    wanted = ROWS // 2
    rows = np.concatenate([rng.permutation(len(mine)) for _ in range(-(-wanted // len(mine)))])[:wanted]
    few = np.minimum(mine.size, int(FEW) + 1)
    # Each time that an item is drawn, other votes of it are.
    times = [draw_judgements(mine, few, rng) for _ in range(-(-wanted // len(mine)))]
    votes = np.concatenate(times)[np.arange(wanted) // len(mine) * len(mine) + rows]
    prior = fit_prior(theirs.mass, smoothings=smoothings, seed=seed, pairs=panel.pairs)
    standardised = (signals[rows] - there.mean(axis=0)) / _scale(there)
    unheard = _log_evidence_after_one(prior, votes)
    return _Part(prior, calibrated[:, rows], standardised, votes, unheard, len(mine) / wanted)


def _fit(parts: Sequence[_Part], *, models: int) -> Floats:
    """(models + 6,) ln strength of each model, two slopes, ln own, log-odds of two shares, ln clarity; likeliest."""
    from scipy.optimize import minimize

    wide = (-2 * WIDTH, 2 * WIDTH)
    bounds = [*[wide] * models, *[(-1.0, 1.0)] * 2, *[wide] * 3, (-WIDTH, WIDTH)]
    start = np.zeros(models + 6)
    fit = minimize(_surprise, start, (parts,), jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-6})
    return np.asarray(fit.x)


def _surprise(x: Floats, parts: Sequence[_Part]) -> tuple[float, Floats]:
    """- ln likelihood of all draws, and of the numbers themselves, and its slope.

    With L = ln sum_j share_j A_j of a draw, A_j how likely part j made it, each slope follows from the slopes of ln A_j
    in the pseudo-votes.
    """
    models = len(x) - 6
    widths = np.array([*[WIDTH] * models, SLOPE, SLOPE, *[WIDTH] * 4])
    strengths, slopes, own, clarity = np.exp(x[:models]), x[models : models + 2], np.exp(x[-4]), np.exp(x[-1])
    log_shares = log_softmax([0.0, *x[-3:-1]])
    value, slope = 0.5 * float(((x / widths) ** 2).sum()), x / widths**2
    for part in parts:
        weight = np.exp(part.signals @ slopes)[:, None]
        terms = weight * strengths[:, None, None] * part.calibrated
        # Where no model predicts there is next to nothing, so that it has a logarithm.
        pseudo = terms.sum(axis=0) + NOTHING
        chances = _log_chances(part.prior, pseudo, clarity)
        unheard = chances + part.unheard
        log = log_shares + _log_evidences(part.prior, pseudo, own, part.votes, unheard)
        both = logsumexp(log, axis=1)
        of_parts = np.exp(log - both[:, None])
        in_own = of_parts[:, 1:2] * own * _slope_alone(own * pseudo, part.votes)
        in_chances = of_parts[:, 2:] * clarity * (softmax(unheard, axis=1) - np.exp(chances))
        in_mixture = part.prior.mean_log(pseudo + part.votes) - part.prior.mean_log(pseudo)
        in_pseudo = of_parts[:, :1] * in_mixture + in_own + in_chances / pseudo
        of_models = (terms * in_pseudo).sum(axis=(1, 2))
        of_slopes = part.signals.T @ (pseudo * in_pseudo).sum(axis=1)
        of_shares = (of_parts - np.exp(log_shares)).sum(axis=0)[1:]
        of_clarity = (in_chances * (np.log(pseudo) - _log_mean(part.prior, pseudo))).sum()
        change = np.concatenate([of_models, of_slopes, [(pseudo * in_own).sum()], of_shares, [of_clarity]])
        value -= part.weight * float(both.sum())
        slope = slope - part.weight * change
    return value, slope


def _log_evidences(prior: Prior, pseudo: Table, own: float, votes: Table, unheard: Table) -> Table:
    """(rows, 3) ln chance of the votes under each part; `unheard` is, (rows, classes), that of an answer and them."""
    in_mixture = prior.log_likelihood(pseudo + votes) - prior.log_likelihood(pseudo)
    alone = Dirichlet(own * pseudo + NOTHING).log_likelihood(votes)
    return np.stack([in_mixture, alone, logsumexp(unheard, axis=1)], axis=1)


def _log_chances(prior: Prior, pseudo: Table, clarity: float) -> Table:
    """(rows, classes) ln chance that the answer of the third part is for each class."""
    mean = _log_mean(prior, pseudo)
    return np.asarray(log_softmax(mean + clarity * (np.log(np.maximum(pseudo, NOTHING)) - mean), axis=1))


def _log_mean(prior: Prior, pseudo: Table) -> Table:
    """(1, classes) ln of what people say in the mean over items."""
    return np.log(prior.forecast(np.zeros((1, pseudo.shape[1]))))


def _log_evidence_after_one(prior: Prior, votes: Table) -> Table:
    """(rows, classes) ln chance of the votes after one more for each class."""
    # One more vote is as likely before the others as after them.
    after = np.log(prior.forecast(votes)) - _log_mean(prior, votes)
    return np.asarray(prior.log_likelihood(votes)[:, None] + after)


def _slope_alone(pseudo: Table, votes: Table) -> Table:
    """(rows, classes) slope, in the pseudo-votes, of ln chance of the votes under their Dirichlet distribution."""
    alpha = pseudo + NOTHING
    whole = alpha.sum(axis=1, keepdims=True)
    own = digamma(alpha + votes) - digamma(alpha)
    return np.asarray(own + digamma(whole) - digamma(whole + votes.sum(axis=1, keepdims=True)))


def _best_kinds(panel: Panel, models: Sequence[Runs], half: Ints) -> list[Kind]:
    """The kind of each model's calibrator that, learnt on each half of the items, says most of the other's votes."""

    def surprise(kind: Kind, model: Runs) -> float:
        total = 0.0
        for this in (0, 1):
            (calibrator,) = _calibrators(panel.take(half == this), [model[:, half == this]], [kind])
            other = (half != this) & _predicted(model)
            # Learnt from a few items, a calibrator may give a class nothing at all.
            said = np.maximum(calibrator(_floored(model[:, other])), NOTHING)
            total -= float((panel.shares[other] * np.log(said)).sum())
        return total

    return [min(KINDS, key=lambda kind: surprise(kind, model)) for model in models]


def _calibrators(panel: Panel, models: Sequence[Runs], kinds: Sequence[Kind]) -> tuple[Calibrator, ...]:
    made = []
    for kind, model in zip(kinds, models, strict=True):
        known = _predicted(model)
        people, said = panel.shares[known], _floored(model[:, known])
        if panel.pairs:
            people, said = both_sides(people), np.concatenate([said, said[..., ::-1]], axis=-2)
        made.append(fit_calibrator(kind, people, said))
    return tuple(made)


def _calibrated(models: Sequence[Runs], calibrators: Sequence[Calibrator]) -> tuple[Any, Table]:
    """(models, items, classes) calibrated predictions, and (items, 2) entropy of their mean and their disagreement.

    The latter is the entropy of the mean less the mean entropy, over all seeds of all models. Where a model predicts
    nothing its rows are 0, so that it counts for no votes.
    """
    known = np.stack([_predicted(model) for model in models])
    calibrated = np.zeros((len(models), *models[0].shape[1:]))
    for row, calibrator, model, mine in zip(calibrated, calibrators, models, known, strict=True):
        if mine.any():
            row[mine] = calibrator(_floored(model[:, mine]))
    per_seed = np.repeat(known, [len(model) for model in models], axis=0)[..., None]
    runs, seeds = np.where(per_seed, np.concatenate(models), 0.0), np.maximum(per_seed.sum(axis=0), 1)
    spread = entr(runs.sum(axis=0) / seeds).sum(axis=1) - (entr(runs).sum(axis=0) / seeds).sum(axis=1)
    mean = calibrated.sum(axis=0) / np.maximum(known.sum(axis=0), 1)[:, None]
    return calibrated, np.stack([entr(mean).sum(axis=1), spread], axis=1)


def _predicted(model: Runs) -> Mask:
    """(items,) whether the model predicts the item: its row is not NaN."""
    return np.asarray(np.isfinite(model).all(axis=(0, 2)))


def _scale(signals: Table) -> Floats:
    spread = signals.std(axis=0)
    return np.asarray(np.where(spread > 1e-9, spread, np.inf))


def _floored(model: Runs) -> Table:
    """(items, classes) the mean over seeds, with no class below `SMALLEST`."""
    mean = np.maximum(model.mean(axis=0), SMALLEST)
    return np.asarray(mean / mean.sum(axis=1, keepdims=True))
