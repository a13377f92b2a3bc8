"""How often intervals of finite-panel statistics hold a truth that is known: simulations for tests and benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import entr, ndtr, softmax

from dissensus.evaluation.finite_panel.best_achievable import best_achievable
from dissensus.evaluation.finite_panel.corrections import correct
from dissensus.evaluation.finite_panel.panel import panel_of
from dissensus.evaluation.finite_panel.people_ruler import Ruler, people_ruler, worth_in_people
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.labels.schemes import frequency
from dissensus.votes.table import Annotators, Votes
from tests.evaluation.placebo import holds as placebo_holds
from tests.evaluation.simulated import counted, model_of, true_distributions

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Table
    from dissensus.evaluation.finite_panel.finding import Finding
    from dissensus.evaluation.finite_panel.panel import Panel
    from dissensus.evaluation.finite_panel.people_ruler import Ruled

    Sizes = int | tuple[int, ...]
    """Votes an item: one number, or several that items draw from."""

RESAMPLES = 300


def holds(found: Finding, right: float) -> bool | None:
    """Whether an interval holds the truth; None where the number is withheld."""
    estimate = found.estimate
    if estimate is None or estimate.low is None or estimate.high is None:
        return None
    return estimate.low - 1e-9 <= right <= estimate.high + 1e-9


def votes_of(truth: Table, votes: Sizes, rng: np.random.Generator) -> Panel:
    return counted(rng.multinomial(rng.choice(np.atleast_1d(votes), len(truth)), truth))


def truths(family: str, items: int, rng: np.random.Generator) -> Table:
    """Return (items, classes) label distributions. The ruler assumes none of these families except the Dirichlet.

    - scale: seven points; an item is a normal distribution about a place of its own, cut into seven.
    - bimodal: seven points; two camps, a share of them in either.
    - modes: six classes in three pairs; people are split between the two of a pair, seldom beyond.
    - lumps: five classes; every item has one of five distributions.
    - contested: four classes; 5 % of items are contested, people are nearly unanimous on the others.
    - two classes: most items have a large majority.
    - dirichlet: five classes.
    """
    if family == "bimodal":
        edges = np.concatenate([[-np.inf], np.arange(-2.5, 3) * 0.8, [np.inf]])
        left, right = (
            np.diff(ndtr((edges - rng.normal(centre, 0.6, (items, 1))) / 0.5), axis=1) for centre in (-1.6, 1.6)
        )
        share = rng.beta(0.6, 0.6, (items, 1))
        return np.asarray(share * left + (1 - share) * right)
    if family == "lumps":
        return np.asarray(np.random.default_rng(7).dirichlet(np.full(5, 0.5), 5)[rng.integers(5, size=items)])
    if family == "contested":
        sure = 0.98 * np.eye(4)[rng.integers(4, size=items)] + 0.005
        return np.where(rng.random((items, 1)) < 0.05, rng.dirichlet(np.ones(4), items), sure)
    if family == "two classes":
        return np.asarray(rng.dirichlet([0.3, 0.3], items))
    if family == "scale":
        place, width = rng.normal(0, 1.2, (items, 1)), np.exp(rng.normal(-0.5, 0.3, (items, 1)))
        edges = np.concatenate([[-np.inf], np.arange(-2.5, 3) * 0.8, [np.inf]])
        return np.diff(ndtr((edges - place) / width), axis=1)
    if family == "modes":
        pair, side = rng.integers(3, size=items), rng.beta(0.7, 0.7, (items, 1))
        inside = np.eye(6)[2 * pair] * side + np.eye(6)[2 * pair + 1] * (1 - side)
        return np.asarray(0.9 * inside + 0.1 * rng.dirichlet(np.ones(6), items))
    return np.asarray(rng.dirichlet([2.0, 0.5, 0.3, 0.1, 0.1], items))


def bayes(votes: Any, population: Table) -> Table:
    """(items, classes) the posterior mean after these votes, with a large sample of the truth for a prior."""
    log = votes @ np.log(np.maximum(population, 1e-300)).T
    posterior = np.exp(log - log.max(axis=1, keepdims=True))
    return np.asarray(posterior @ population / posterior.sum(axis=1, keepdims=True))


def ruler_trials(
    people: tuple[int, ...],
    *,
    family: str,
    votes: Sizes,
    trials: int,
    score: Ruled = "soft_nll",
    seeds: int = 1,
    items: int = 600,
    seed: int = 0,
    learnt: int | None = 4000,
) -> dict[int, list[tuple[float, bool]]]:
    """Return, for each number of people, the worth of the best forecasts from that many new votes, and the coverage.

    The forecasts use the true population of items. The ruler has only votes: of `learnt` training items, or of the
    scored items if `learnt` is None. All numbers of people of a trial share one ruler. A withheld worth is NaN. A worth
    beyond the end of the ruler counts as one person more than the end.
    """
    out: dict[int, list[tuple[float, bool]]] = {number: [] for number in people}
    for trial in range(trials):
        rng = np.random.default_rng([seed, trial])
        population = truths(family, 6000, rng)
        training = None if learnt is None else rng.multinomial(8, truths(family, learnt, rng)).astype(np.float64)
        truth = truths(family, items, rng)
        ruler = people_ruler(votes_of(truth, votes, rng), training=training, score=score, seed=trial)
        assert isinstance(ruler, Ruler)
        for number in people:
            model = [bayes(rng.multinomial(number, truth), population) for _ in range(seeds)]
            worth = worth_in_people(ruler, np.stack(model), resamples=RESAMPLES, seed=trial)
            value = np.nan if worth.reason else worth.estimate.value + worth.more
            out[number].append((value, placebo_holds(worth, number)))
    return out


def expected_scores(names: tuple[str, ...], truth: Table, votes: Sizes, *, rounds: int = 10) -> dict[str, float]:
    """What the true distributions score against panels of these sizes, by simulating many."""
    rng = np.random.default_rng(99)
    total = dict.fromkeys(names, 0.0)
    for _ in range(rounds):
        panel = votes_of(truth, votes, rng)
        for name in names:
            total[name] += score_of(name, panel.shares, truth) / rounds
    # These two need no panel, and so have no noise.
    exact = {"soft_nll": float(entr(truth).sum(axis=1).mean()), "expected_accuracy": float(truth.max(axis=1).mean())}
    return total | {name: value for name, value in exact.items() if name in total}


def score_of(name: str, human: Table, model: Table) -> float:
    """The plain score; NaN where it is undefined."""
    metric = METRICS[name]
    value = metric.per_item(human, model).mean() if metric.per_item else metric.over_items(human, model)  # type: ignore[misc]
    return float("nan") if value is None else float(value)


def best_trials(
    names: tuple[str, ...], family: str, *, classes: int, votes: Sizes, trials: int, items: int = 300, seed: int = 0
) -> dict[str, list[bool | None]]:
    """By metric, for each trial, whether the interval of the best achievable score holds it."""
    right = expected_scores(names, true_distributions(family, 20_000, classes=classes, seed=[seed, 1]), votes)
    out: dict[str, list[bool | None]] = {name: [] for name in names}
    for trial in range(trials):
        truth = true_distributions(family, items, classes=classes, seed=[seed, 2, trial])
        panel = votes_of(truth, votes, np.random.default_rng([seed, 3, trial]))
        found = best_achievable(names, panel, resamples=RESAMPLES, seed=trial)
        for name in names:
            out[name].append(holds(found[name], right[name]))
    return out


def corrected_trials(
    names: tuple[str, ...], family: str, *, classes: int, votes: Sizes, trials: int, items: int = 300, seed: int = 0
) -> dict[str, list[tuple[float, bool] | None]]:
    """By metric, for each trial, how far a corrected score is off and whether its interval holds the truth."""
    population = true_distributions(family, 20_000, classes=classes, seed=[seed, 1])
    right = {name: score_of(name, population, model_of(population, "perturbed")) for name in names}
    out: dict[str, list[tuple[float, bool] | None]] = {name: [] for name in names}
    for trial in range(trials):
        truth = true_distributions(family, items, classes=classes, seed=[seed, 2, trial])
        panel = votes_of(truth, votes, np.random.default_rng([seed, 3, trial]))
        model = model_of(truth, "perturbed", seed=trial + 7)
        for name in names:
            found = correct(name, panel, model, resamples=RESAMPLES, splits=5, seed=trial)
            if np.isnan(right[name]):
                # Of a truth that is undefined there should be no number.
                out[name].append((0.0, found.estimate is None))
                continue
            held = holds(found, right[name])
            assert (held is None) == (found.estimate is None)
            out[name].append(None if found.estimate is None else (found.estimate.value - right[name], bool(held)))
    return out


def shared_panel(people: int, votes: int, *, items: int, habit: float, rng: np.random.Generator) -> tuple[Votes, Table]:
    """Votes of the same few people on all items, each with habits of their own, and what everybody would say.

    An annotator leans to classes by a normal draw of standard deviation `habit` on the log scale.
    """
    classes = 4
    base = np.log(rng.dirichlet(np.full(classes, 0.5), items) + 1e-3)

    def said_by(leaning: Floats) -> Any:
        return softmax(base + leaning, axis=1)

    everybody = np.mean([said_by(each) for each in rng.normal(0, habit, (400, classes))], axis=0)
    own = np.stack([said_by(each) for each in rng.normal(0, habit, (people, classes))])
    who = np.argsort(rng.random((items, people)), axis=1)[:, :votes].ravel()
    item = np.repeat(np.arange(items), votes)
    reached = np.cumsum(own[who, item], axis=1)
    label = np.minimum((reached < rng.random((len(item), 1))).sum(axis=1), classes - 1)
    table = Votes(
        item=item.astype(np.int32),
        label=label.astype(np.int32),
        items=np.arange(items),
        annotators=Annotators(who.astype(np.int32), np.arange(people)),
        classes=tuple("abcd"),
    )
    return table, np.asarray(everybody)


def shared_trials(
    names: tuple[str, ...], people: int, *, votes: int, habit: float, trials: int, ids: bool, items: int = 300
) -> dict[str, list[bool | None]]:
    """By metric, for each trial, whether the corrected score's interval holds the score against everybody.

    Args:
        names: of metrics.
        people: annotators of the whole panel.
        votes: of an item.
        habit: how much annotators differ.
        trials: how many.
        ids: whether it is known who voted.
        items: in a panel.
    """
    out: dict[str, list[bool | None]] = {name: [] for name in names}
    for trial in range(trials):
        rng = np.random.default_rng([people, votes, trial])
        table, everybody = shared_panel(people, votes, items=items, habit=habit, rng=rng)
        model = model_of(everybody, "perturbed", seed=trial)
        panel = panel_of(frequency(table), table if ids else None)
        for name in names:
            found = correct(name, panel, model, resamples=RESAMPLES, seed=trial)
            out[name].append(holds(found, score_of(name, everybody, model)))
    return out


def share(held: list[bool | None]) -> float:
    """Of the intervals that there are, how many hold the truth; NaN where there are none."""
    known = [each for each in held if each is not None]
    return float(np.mean(known)) if known else float("nan")
