"""The quantities that claims are judged by, each measured on a study's runs with its interval and seed by seed.

Scores and their resamples are those of the scored study; nothing is scored a second way here.
"""

from __future__ import annotations

from itertools import combinations
from math import inf, log
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from dissensus.dynamics import data_maps, epoch_divergence, resampled_spearman, uncertainty_correlations
from dissensus.errors import InputError, choices
from dissensus.evaluation import METRICS, Estimate, Spread, estimate_within, make_strata, spread_over_seeds
from dissensus_papers.papers.evidence import ALL, NotMeasuredError
from dissensus_papers.papers.measured import (
    ANY,
    ITEMS_AND_SEEDS,
    PAIRS,
    Bounds,
    Measured,
    listed,
    over_seeds,
    with_interval,
)
from dissensus_train.basins import QUANTITIES as OF_BASINS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dissensus.arrays import Floats, Table
    from dissensus.evaluation import Evaluation
    from dissensus_papers.papers.evidence import Evidence

    About = Mapping[str, Any]
    """What a quantity is of, by the keys that it asks for."""


class Quantity(NamedTuple):
    """Something that can be measured.

    Attributes:
        measure: of a study; None where it is of other claims.
        keys: what it asks for.
        percent: whether it is a share that is shown in per cent.
        optional: the keys that may be left out; `DEFAULTS` has what they are then.
    """

    measure: Callable[[Evidence, About], Measured] | None
    keys: tuple[str, ...]
    percent: bool = False
    optional: tuple[str, ...] = ("stratum", "by", "target")


def measure(evidence: Evidence, quantity: str, about: About) -> Measured:
    """A quantity of a study.

    Raises:
        InputError: where the study has no such system, metric or measurement.
    """
    by = QUANTITIES[quantity].measure
    if by is None:
        raise InputError(f"claims: '{quantity}' is not measured of a study")
    return by(evidence, {**DEFAULTS, **about})


def bounds_of(quantity: str, about: About) -> Bounds:
    """The lowest and the highest value that a quantity can have."""
    if quantity in ("order", "count", "ood ahead"):
        return 0.0, 1.0 if quantity == "order" else float(len(about["of" if quantity == "count" else "scores"]))
    if quantity in ("score", "difference", "score shift", "relative change"):
        metric = METRICS[about["metric"]]
        reach = metric.high - metric.low
        # What is never below 0 can lose no more than all of it.
        share = (-1.0 if metric.low >= 0 else -inf, inf)
        return {"score": (metric.low, metric.high), "relative change": share}.get(quantity, (-reach, reach))
    if quantity == "uncertainty correlation" and about.get("against"):
        return -2.0, 2.0
    if quantity == "pair difference":
        return (-1.0, 1.0) if about["measure"] == "cka" else ANY
    return BOUNDS.get(quantity, ANY)


# --- scores -------------------------------------------------------------------------------------------------------


def _values(evaluation: Evaluation, about: About, system: str) -> Table:
    """(1 + resamples, seeds) the values of a system on the sample and its resamples."""
    idea, stratum = _stratum(about)
    values = evaluation.compared.resampled.get((idea, stratum))
    if values is None:
        raise InputError(f"claims: no item is in the stratum '{stratum}' by {idea}")
    if system not in values.get(about["metric"], ()):
        known = ", ".join(evaluation.systems)
        raise InputError(f"claims: there is no {about['metric']} of '{system}' in this study; its systems are {known}")
    found = values[about["metric"]][system]
    if not np.isfinite(found[0]).all():
        raise InputError(f"claims: {about['metric']} of '{system}' is not defined on these items")
    return found


def _stratum(about: About) -> tuple[str, str]:
    return (ALL, ALL) if about["stratum"] == ALL else (about["by"], about["stratum"])


def _paired(evaluation: Evaluation, about: About) -> tuple[Table, Table]:
    """(1 + resamples, seeds) the values of both systems on the seeds that both have, in the same order."""
    ours, theirs = (_values(evaluation, about, about[name]) for name in TWO)
    own, other = (evaluation.compared.seeds[about[name]] for name in TWO)
    if own is None or other is None:
        ours, theirs = np.broadcast_arrays(ours, theirs)
        return ours, theirs
    shared = [seed for seed in own if seed in other]
    if not shared:
        raise InputError(f"claims: {about['system']} and {about['against']} share no seeds")
    return ours[:, [own.index(seed) for seed in shared]], theirs[:, [other.index(seed) for seed in shared]]


def _over(values: Table) -> str:
    return ITEMS_AND_SEEDS if values.shape[1] > 1 else "items, given this seed"


def _spread(evaluation: Evaluation, about: About, values: Table) -> Spread | None:
    return spread_over_seeds([values], items=evaluation.compared.items[_stratum(about)])


def _score(evidence: Evidence, about: About) -> Measured:
    """The mean score of a system."""
    evaluation = evidence.against(about["target"])
    values = _values(evaluation, about, about["system"])
    mean, spread, bounds = float(values[0].mean()), _spread(evaluation, about, values), bounds_of("score", about)
    return with_interval(mean, spread, values[0], _over(values), null=None, resamples=len(values) - 1, bounds=bounds)


def _difference(evidence: Evidence, about: About) -> Measured:
    """The score of a system less another's."""
    evaluation = evidence.against(about["target"])
    ours, theirs = _paired(evaluation, about)
    return _of_gap(ours - theirs, _widened(evaluation, about, _spread(evaluation, about, ours - theirs)), about)


def _of_gap(gap: Table, spread: Spread | None, about: About) -> Measured:
    bounds = bounds_of("difference", about)
    return with_interval(float(gap[0].mean()), spread, gap[0], _over(gap), resamples=len(gap) - 1, bounds=bounds)


def _score_shift(evidence: Evidence, about: About) -> Measured:
    """The score of a system against people, less its score against one of the study's targets."""
    people, other = (_values(evidence.against(of), about, about["system"]) for of in ("", about["target"]))
    return _of_gap(people - other, _spread(evidence.evaluation, about, people - other), about)


def _between_runs(evidence: Evidence, about: About) -> Measured:
    """How far the runs of a system lie apart, relative to another's: mean JSD of held-out predictions, less 1."""
    scored, jsd = evidence.scored, METRICS["jsd"].per_item
    assert jsd is not None, "it is a mean over items"
    wanted = [item for item in make_strata(scored.human, about["by"]) if item.name == about["stratum"]]
    chosen = wanted[0].items if wanted else np.ones(len(scored.human), dtype=bool)
    apart = []
    for name in TWO:
        runs = np.asarray(_system(evidence, about[name]).predictions[scored.split], dtype=np.float64)[:, chosen]
        if len(runs) < 2:
            raise InputError(f"claims: '{about[name]}' has one run; give two seeds or more")
        apart.append(np.mean([jsd(one, other) for one, other in combinations(runs, 2)], axis=0))
    ours, theirs = apart
    ratio = float(ours.mean() / theirs.mean())
    residual = (ours - ratio * theirs) / theirs.mean()
    spread = Spread(((float(residual.var(ddof=1)) / residual.size, residual.size - 1),))
    return with_interval(ratio - 1, spread, np.zeros(0), "items, given these seeds", bounds=(-1.0, inf))


def _relative_change(evidence: Evidence, about: About) -> Measured:
    """(system - against) / against of the means over seeds; its spread by the delta method on the same resamples."""
    evaluation = evidence.against(about["target"])
    ours, theirs = _paired(evaluation, about)
    base = float(theirs[0].mean())
    if base <= 0:
        raise InputError(
            f"claims: {about['metric']} of {about['against']} is {base:.3f}; a change relative to it says nothing"
        )
    ratio = float(ours[0].mean()) / base
    spread = _widened(evaluation, about, _spread(evaluation, about, (ours - ratio * theirs) / base), unit=base)
    by_seed, bounds = ours[0] / theirs[0] - 1, bounds_of("relative change", about)
    return with_interval(ratio - 1, spread, by_seed, _over(ours), resamples=len(ours) - 1, bounds=bounds)


def _widened(evaluation: Evaluation, about: About, spread: Spread | None, *, unit: float = 1.0) -> Spread | None:
    """The spread over other annotators too, where the same people judged many items; `unit` is what values are in."""
    by_system = evaluation.compared.widened(about["against"], metric=about["metric"], stratum=about["stratum"])
    if spread is None or about["target"] or about["system"] not in by_system:
        return spread
    wider = by_system[about["system"]](_scaled(spread, unit))
    return _scaled(wider, 1 / unit)


def _scaled(spread: Spread, factor: float) -> Spread:
    return Spread(tuple((variance * factor**2, degrees) for variance, degrees in spread.parts))


def _order(evidence: Evidence, about: About) -> Measured:
    """The share of pairs of systems whose scores stand in the stated order, highest first."""
    evaluation = evidence.against(about["target"])
    scores = [_values(evaluation, about, name)[0] for name in about["systems"]]
    value = Estimate(_in_order([float(by_seed.mean()) for by_seed in scores]))
    if len({len(by_seed) for by_seed in scores}) > 1:
        return Measured(value=value)
    return Measured(value=value, by_seed=tuple(_in_order(column) for column in np.stack(scores).T.tolist()))


def _in_order(values: Sequence[float]) -> float:
    """The share of pairs in order; of equal values neither is the higher."""
    pairs = list(combinations(values, 2))
    return sum((high > low) + (high == low) / 2 for high, low in pairs) / len(pairs)


def _gain_correlation(evidence: Evidence, about: About) -> Measured:
    """Spearman's correlation over items of what a system gains with the JSD of its target from what people said."""
    data, split, metric = evidence.scored.opened.data, about["split"], METRICS[about["metric"]]
    members = data.splits[split]
    human = data.human.take(members).probabilities
    per_item, jsd = metric.per_item, METRICS["jsd"].per_item
    if per_item is None or jsd is None:
        raise InputError(f"claims: {about['metric']} has no value for a single item; choose soft_nll, kl or brier")
    systems = {name: _system(evidence, about[name]) for name in TWO}
    target = data.targets[systems["system"].runs[0].target].take(members).probabilities
    ours, theirs = (
        {
            run.seed: per_item(human, np.asarray(probabilities, dtype=np.float64))
            for run, probabilities in zip(system.runs, system.predictions[split], strict=True)
        }
        for system in systems.values()
    )
    gains = np.stack([theirs[seed] - ours[seed] for seed in ours if seed in theirs])
    if metric.better == "higher":
        gains = -gains
    series = np.vstack([gains.mean(axis=0)[None], gains])
    values = resampled_spearman(jsd(human, target)[None], series, resamples=evidence.resamples, seed=0)[:, 0]
    if not np.isfinite(values[0, 0]):
        raise InputError("claims: the targets of all items are what people said; there is no distance to go with")
    spread = spread_over_seeds([values[:, :1]], items=len(members))
    value = estimate_within(float(values[0, 0]), spread, level=0.95, low=-1.0, high=1.0, resamples=len(values) - 1)
    return Measured(value=value, by_seed=listed(values[0, 1:]), over="items, given these seeds", null=0.0)


def _system(evidence: Evidence, name: str) -> Any:
    systems = evidence.scored.systems
    if name not in systems:
        raise InputError(f"claims: there is no system '{name}' in this study{choices(name, systems)}")
    return systems[name]


def _mode_shift(evidence: Evidence, about: About) -> Measured:
    """The accuracy gained over original labels (gain, and of it mode or softness); or the share of moved modes."""
    for audit in evidence.audits:
        if (audit.soft, audit.stratum) == (about["system"], about["stratum"]):
            if _known_measure(about, ("gain", "mode", "softness", "moved")) == "moved":
                return Measured(value=Estimate(audit.moved))
            return Measured(value=getattr(audit.shift, about["measure"]), over=ITEMS_AND_SEEDS, null=0.0)
    known = ", ".join(dict.fromkeys(audit.soft for audit in evidence.audits)) or "none"
    raise InputError(f"claims: no mode-shift audit of '{about['system']}' in '{about['stratum']}'; there is {known}")


# --- dynamics -----------------------------------------------------------------------------------------------------


def _uncertainty(evidence: Evidence, about: About) -> Measured:
    """Spearman's correlation of people's uncertainty with an axis of the data map of the last five epochs.

    Less another system's, over seeds, where `against` names one.
    """
    if about["against"]:
        ours, theirs = (_uncertainty(evidence, {**about, "system": about[name], "against": ""}) for name in TWO)
        return over_seeds(np.array(ours.by_seed) - np.array(theirs.by_seed))
    scored = evidence.scored
    recorded, people = scored.dynamics(_system(evidence, about["system"])), scored.people_on_training_items
    maps = data_maps(recorded, people, epochs=min(5, *(len(run) for run in recorded), 5))
    wanted = (about["human"], about["measure"])
    estimates = []
    for chosen in (maps, *((of_run,) for of_run in maps)):
        rows = uncertainty_correlations(people, chosen, resamples=evidence.resamples if chosen is maps else 0)
        estimates += [row.spearman for row in rows if (row.human, row.model) == wanted and row.spearman is not None]
    if len(estimates) != 1 + len(maps):
        raise InputError(f"claims: there is no correlation of {wanted[0]} with {wanted[1]} in this study")
    return Measured(value=estimates[0], by_seed=listed(estimates[1:]), over=ITEMS_AND_SEEDS, null=0.0)


def _early_divergence(evidence: Evidence, about: About) -> Measured:
    """The JSD of probabilities between successive epochs, of a system less another's, in nats.

    Over the first `epochs`; where that is below 0, over so many last ones.
    """
    epochs = about["epochs"]
    those = slice(epochs, None) if epochs < 0 else slice(epochs)
    ours, theirs = (
        epoch_divergence(evidence.scored.dynamics(_system(evidence, about[name])))
        .values[:, those]
        .mean(axis=(1, 2), dtype=np.float64)
        for name in TWO
    )
    return over_seeds(ours - theirs)


# --- basins and out-of-distribution detection -----------------------------------------------------------------------


def _known_measure(about: About, known: Iterable[str]) -> str:
    measure: str = about["measure"]
    if measure not in known:
        raise InputError(f"claims: there is no measure '{measure}' here; choose {', '.join(known)}")
    return measure


def _of_basins(evidence: Evidence, about: About, name: str) -> Floats:
    systems, of = evidence.basins.systems, OF_BASINS[_known_measure(about, OF_BASINS)]
    if name not in systems:
        raise NotMeasuredError(f"claims: the basins of '{name}' were not measured{choices(name, systems)}")
    return np.array([of.read(basin)[0] for basin in systems[name]])


def _basin_ratio(evidence: Evidence, about: About) -> Measured:
    """The geometric mean over seeds of a measure of one system divided by another's."""
    ours, theirs = (_of_basins(evidence, about, about[name]) for name in TWO)
    if len(ours) != len(theirs) or not (ours > 0).all() or not (theirs > 0).all():
        raise InputError(f"claims: {about['measure']} is not positive for every seed; a ratio says nothing")
    logarithm = over_seeds(np.log(ours / theirs))
    value = logarithm.value
    low, high = (None if end is None else float(np.exp(end)) for end in (value.low, value.high))
    ratio = Estimate(float(np.exp(value.value)), low, high)
    return Measured(value=ratio, by_seed=listed(ours / theirs), over=logarithm.over, p=logarithm.p, null=1.0)


def _pairs(evidence: Evidence, about: About, first: str, second: str) -> Floats:
    read: dict[str, Any] = {"barrier": lambda pair: pair.barrier.value, "cka": lambda pair: pair.similarity.value}
    of = read[_known_measure(about, read)]
    for systems in evidence.basins.pairs:
        if (systems.first, systems.second) == (first, second):
            return np.array([of(pair) for pair in systems.pairs])
    raise NotMeasuredError(f"claims: runs of {first} and {second} were not compared in this study")


def _pair(evidence: Evidence, about: About) -> Measured:
    """Barrier or CKA between runs, mean over pairs."""
    return over_seeds(_pairs(evidence, about, about["system"], about["against"]), null=None)


def _pair_difference(evidence: Evidence, about: About) -> Measured:
    """The mean over pairs of runs of `a & b` less that of `c & d`; intervals take pairs as independent."""
    ours, theirs = (_pairs(evidence, about, *about[name].partition(" & ")[::2]) for name in TWO)
    parts = [(float(pairs.var(ddof=1)) / len(pairs), len(pairs) - 1) for pairs in (ours, theirs) if len(pairs) > 1]
    by_pair = ours - theirs if len(ours) == len(theirs) else np.zeros(0)
    spread = Spread(tuple(parts)) if len(parts) == 2 else None
    return with_interval(float(ours.mean() - theirs.mean()), spread, by_pair, PAIRS)


def _explanation_difference(evidence: Evidence, about: About) -> Measured:
    """How alike the maps of a system's seeds are, less another's.

    The interval is made of the two systems' own (Zou, Donner 2008), as if their items and seeds were not the same: it
    is at most too wide where items that are easy to agree on are so for both.
    """
    both, explanations = [], evidence.basins.explanations
    for name in TWO:
        if about[name] not in explanations:
            raise NotMeasuredError(f"claims: the explanations of '{about[name]}' were not compared in this study")
        both.append(getattr(explanations[about[name]], _known_measure(about, ("cosine", "correlation"))))
    ours, theirs = both
    gap = ours.value - theirs.value
    ends = (None, None)
    if None not in (ours.low, ours.high, theirs.low, theirs.high):
        ends = (
            gap - float(np.hypot(ours.value - ours.low, theirs.high - theirs.value)),
            gap + float(np.hypot(ours.high - ours.value, theirs.value - theirs.low)),
        )
    return Measured(value=Estimate(gap, *ends), over=ITEMS_AND_SEEDS, null=0.0)


def _ood_gaps(evidence: Evidence, about: About) -> Table:
    """(scores, seeds) the AUROC of a system less another's."""
    ours, theirs = (
        np.array([evidence.ood.get(about["ood_set"], score, system=about[name]).by_seed for score in about["scores"]])
        for name in TWO
    )
    return np.asarray(ours - theirs)


def _ood_ahead(evidence: Evidence, about: About) -> Measured:
    """By how many OOD scores a system has the higher AUROC."""
    gaps = _ood_gaps(evidence, about)
    ahead = Estimate(float((gaps.mean(axis=1) > 0).sum()))
    return Measured(value=ahead, by_seed=listed((gaps > 0).sum(axis=0)))


def _ood_difference(evidence: Evidence, about: About) -> Measured:
    """The mean over OOD scores of a system's AUROC less another's; of one score over items too, where that is known."""
    gaps = _ood_gaps(evidence, about)
    if len(gaps) == 1:
        paired = evidence.ood.difference(about["ood_set"], about["scores"][0], system=about["system"])
        if paired is not None and paired.reference == about["against"]:
            return Measured(value=paired.value, by_seed=listed(gaps[0]), over=ITEMS_AND_SEEDS, null=0.0)
    return over_seeds(gaps.mean(axis=0))


TYPES: Final[dict[str, Any]] = {"epochs": int, **dict.fromkeys(("systems", "scores", "of"), tuple[str, ...])}
"""Of what quantities ask for; all else is a text."""

DEFAULTS: Final = {"stratum": ALL, "by": "agreement", "target": "", "against": ""}
"""What may be left out of what quantities ask for."""

BOUNDS: Final[dict[str, Bounds]] = {
    **dict.fromkeys(("gain correlation", "uncertainty correlation", "mode shift", "ood difference"), (-1.0, 1.0)),
    "between runs": (-1.0, inf),
    "early divergence": (-log(2), log(2)),
    "basin ratio": (0.0, inf),
    "explanation difference": (-2.0, 2.0),
}
"""What quantities can be, whatever they are of."""

TWO: Final = ("system", "against")
WHERE: Final = ("stratum", "by", "target")

QUANTITIES: Final = {
    "score": Quantity(_score, ("metric", "system", *WHERE)),
    "difference": Quantity(_difference, ("metric", *TWO, *WHERE)),
    "relative change": Quantity(_relative_change, ("metric", *TWO, *WHERE), percent=True),
    "score shift": Quantity(_score_shift, ("metric", "system", "target", "stratum", "by")),
    "between runs": Quantity(_between_runs, (*TWO, "stratum", "by"), percent=True),
    "order": Quantity(_order, ("metric", "systems", *WHERE)),
    "gain correlation": Quantity(_gain_correlation, ("metric", *TWO, "split")),
    "mode shift": Quantity(_mode_shift, ("measure", "system", "stratum")),
    "uncertainty correlation": Quantity(_uncertainty, ("measure", "human", *TWO), optional=("against",)),
    "early divergence": Quantity(_early_divergence, ("epochs", *TWO)),
    "basin ratio": Quantity(_basin_ratio, ("measure", *TWO)),
    "pair": Quantity(_pair, ("measure", *TWO)),
    "pair difference": Quantity(_pair_difference, ("measure", *TWO)),
    "explanation difference": Quantity(_explanation_difference, ("measure", *TWO)),
    "ood ahead": Quantity(_ood_ahead, ("ood_set", "scores", *TWO)),
    "ood difference": Quantity(_ood_difference, ("ood_set", "scores", *TWO)),
    # Of other claims: the mean of their values; how many lie on their side, do so in every seed, or survive Holm.
    "average": Quantity(None, ("of",)),
    "count": Quantity(None, ("counts", "of")),
}
"""What claims can be judged by."""
