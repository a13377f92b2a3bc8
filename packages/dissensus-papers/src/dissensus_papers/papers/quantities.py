"""The quantities that claims are judged by, each measured on a study's runs with its interval and seed by seed.

Scores and their resamples are those of the scored study; nothing is scored a second way here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from math import inf
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.bootstrap import Estimate
from dissensus.dynamics import data_maps, epoch_divergence, uncertainty_correlations
from dissensus.dynamics.rank_correlation import resampled_spearman
from dissensus.errors import InputError, choices
from dissensus.evaluation.comparison.intervals import Spread, estimate_over_seeds, estimate_within, spread_over_seeds
from dissensus.evaluation.comparison.strata import ALL
from dissensus.evaluation.evaluating import HEADLINES
from dissensus.evaluation.metrics.distances import jsd
from dissensus.evaluation.metrics.registry import METRICS
from dissensus_papers.papers.evidence import NotMeasuredError
from dissensus_train.basins.summary import QUANTITIES as OF_BASINS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dissensus.arrays import Floats, Table
    from dissensus.evaluation.evaluating import Evaluation
    from dissensus_papers.papers.evidence import Evidence
    from dissensus_train.studies.scored import StudySystem

    About = Mapping[str, Any]
    """What a quantity is of, by the keys that it asks for."""

ITEMS_AND_SEEDS: Final = "items and seeds"
SEEDS: Final = "seeds"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A quantity as our runs have it.

    Attributes:
        value: with its 95 % interval, where it has one.
        by_seed: the same of each seed (or pair of runs), in the order of the study's seeds; empty where there is none.
        over: what the interval is over.
        p: two-sided p-value of the null value, from the same variance as the interval; None where it is not tested.
        null: the value of no effect: 0 for a difference, 1 for a ratio; None where there is none.
    """

    value: Estimate
    by_seed: tuple[float, ...] = ()
    over: str = ""
    p: float | None = None
    null: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return {**vars(self), "value": self.value.to_dict(), "by_seed": list(self.by_seed)}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Measured:
        """What `to_dict` gave, also after JSON."""
        return cls(**{**given, "value": Estimate(**given["value"]), "by_seed": tuple(given["by_seed"])})


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """Something that can be measured.

    Attributes:
        what: in words, for the page and for those who write claims.
        keys: what it asks for, with the type of each.
        defaults: those of them that may be left out.
        measure: of a study; None where it is of other claims or is not measured.
        percent: whether it is a share that is told in per cent.
    """

    what: str
    keys: Mapping[str, Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    measure: Callable[[Evidence, About], Measured] | None = None
    percent: bool = False

    @property
    def of_study(self) -> bool:
        """Whether it is measured of a study's runs."""
        return self.measure is not None

    @property
    def asks(self) -> str:
        """What it asks for, in words."""
        return ", ".join(self.keys) or "nothing"


def measure(evidence: Evidence, quantity: str, about: About) -> Measured:
    """A quantity of a study.

    Raises:
        InputError: where the study has no such system, metric or measurement.
    """
    chosen = QUANTITIES[quantity]
    if chosen.measure is None:
        raise InputError(f"claims: '{quantity}' is not measured of a study")
    return chosen.measure(evidence, {**chosen.defaults, **about})


# --- scores -------------------------------------------------------------------------------------------------------


def _values(evaluation: Evaluation, about: About, metric: str, system: str) -> Table:
    """(1 + resamples, seeds) the values of a system on the sample and its resamples."""
    key = _stratum(about)
    found = evaluation.compared.resampled.get(key)
    if found is None:
        raise InputError(f"claims: no item is in the stratum '{key[1]}' by {key[0]}")
    if metric not in found or system not in found[metric]:
        known = ", ".join(evaluation.systems)
        raise InputError(f"claims: there is no {metric} of '{system}' in this study; its systems are {known}")
    return found[metric][system]


def _stratum(about: About) -> tuple[str, str]:
    return (ALL, ALL) if about["stratum"] == ALL else (about["by"], about["stratum"])


def _paired(evaluation: Evaluation, about: About) -> tuple[Table, Table]:
    """(1 + resamples, seeds) the values of both systems on the seeds that both have, in the same order."""
    ours, theirs = (_values(evaluation, about, about["metric"], about[name]) for name in ("system", "against"))
    seeds = [evaluation.compared.seeds[about[name]] for name in ("system", "against")]
    if seeds[0] is None or seeds[1] is None:
        width = max(ours.shape[1], theirs.shape[1])
        return tuple(np.broadcast_to(each, (len(each), width)) for each in (ours, theirs))  # type: ignore[return-value]
    shared = [seed for seed in seeds[0] if seed in seeds[1]]
    if not shared:
        raise InputError(f"claims: {about['system']} and {about['against']} share no seeds")
    return ours[:, [seeds[0].index(seed) for seed in shared]], theirs[:, [seeds[1].index(seed) for seed in shared]]


def _score(evidence: Evidence, about: About) -> Measured:
    evaluation = evidence.against(about["target"])
    values = _values(evaluation, about, about["metric"], about["system"])
    told = METRICS[about["metric"]]
    items = evaluation.compared.items[_stratum(about)]
    value = estimate_over_seeds(values, items=items, low=told.low, high=told.high)
    return Measured(value=value, by_seed=_listed(values[0]), over=_over(values))


def _difference(evidence: Evidence, about: About) -> Measured:
    evaluation = evidence.against(about["target"])
    ours, theirs = _paired(evaluation, about)
    gap = ours - theirs
    spread = _widened(
        evaluation, about, spread_over_seeds([gap], items=evaluation.compared.items[_stratum(about)]), 1.0
    )
    return _with_spread(float(gap[0].mean()), spread, by_seed=gap[0], over=_over(gap), resamples=len(gap) - 1)


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
    linear = (ours - ratio * theirs) / base
    spread = spread_over_seeds([linear], items=evaluation.compared.items[_stratum(about)])
    spread = _widened(evaluation, about, spread, base)
    by_seed = ours[0] / theirs[0] - 1
    return _with_spread(ratio - 1, spread, by_seed=by_seed, over=_over(ours), resamples=len(ours) - 1)


def _widened(evaluation: Evaluation, about: About, spread: Spread | None, unit: float) -> Spread | None:
    """The spread over other annotators too, where the same people judged many items; `unit` is what values are in."""
    if spread is None or about["target"] or about["stratum"] != ALL or about["metric"] not in HEADLINES:
        return spread
    widen = evaluation.compared.widened(about["against"]).get(about["system"])
    if widen is None:
        return spread
    parts = widen(Spread(tuple((variance * unit**2, degrees) for variance, degrees in spread.parts))).parts
    return Spread(tuple((variance / unit**2, degrees) for variance, degrees in parts))


def _order(evidence: Evidence, about: About) -> Measured:
    """The share of pairs of systems that stand in the stated order."""
    evaluation = evidence.against(about["target"])
    each = [_values(evaluation, about, about["metric"], name)[0] for name in about["systems"]]
    means = [float(values.mean()) for values in each]
    by_seed = np.zeros(0)
    if len({len(values) for values in each}) == 1:
        by_seed = np.array([_in_order(column) for column in np.stack(each).T.tolist()])
    return Measured(value=Estimate(_in_order(means)), by_seed=_listed(by_seed))


def _in_order(values: Sequence[float]) -> float:
    pairs = list(combinations(values, 2))
    return sum(high > low for high, low in pairs) / len(pairs)


def _gain_correlation(evidence: Evidence, about: About) -> Measured:
    """Spearman's correlation over items of what a system gains with how far its target is from what people said."""
    scored, split = evidence.scored, about["split"]
    data = scored.opened.data
    system, against = (_system(evidence, about[name]) for name in ("system", "against"))
    members = data.splits[split]
    human = data.human.take(members).probabilities
    target = data.targets[system.runs[0].target].take(members).probabilities
    per_item = METRICS[about["metric"]].per_item
    if per_item is None:
        raise InputError(f"claims: {about['metric']} has no value for a single item; choose soft_nll, kl or brier")
    distance = jsd(human, target, base="bits", distance=True)
    theirs = {run.seed: per_item(human, each) for run, each in _runs(against, split)}
    gains = np.stack(
        [theirs[run.seed] - per_item(human, each) for run, each in _runs(system, split) if run.seed in theirs]
    )
    if METRICS[about["metric"]].better == "higher":
        gains = -gains
    values = resampled_spearman(
        distance[None], np.vstack([gains.mean(axis=0)[None], gains]), resamples=evidence.resamples, seed=0
    )[:, 0]
    if not np.isfinite(values[0, 0]):
        raise InputError("claims: the targets of all items are what people said; there is no distance to go with")
    value = estimate_over_seeds(values[:, :1], items=len(members), low=-1.0, high=1.0)
    return Measured(value=value, by_seed=_listed(values[0, 1:]), over="items, given these seeds", null=0.0)


def _system(evidence: Evidence, name: str) -> StudySystem:
    systems = evidence.scored.systems
    if name not in systems:
        raise InputError(f"claims: there is no system '{name}' in this study{choices(name, systems)}")
    return systems[name]


def _runs(system: StudySystem, split: str) -> list[tuple[Any, Table]]:
    return [
        (run, np.asarray(each, dtype=np.float64))
        for run, each in zip(system.runs, system.predictions[split], strict=True)
    ]


def _listed(values: Iterable[Any]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _over(values: Table) -> str:
    return ITEMS_AND_SEEDS if values.shape[1] > 1 else "items, given this seed"


def _with_spread(
    value: float, spread: Spread | None, *, by_seed: Floats, over: str, resamples: int = 0, null: float = 0.0
) -> Measured:
    estimate = estimate_within(value, spread, level=0.95, low=-inf, high=inf, resamples=resamples)
    p = None if spread is None or len(by_seed) == 1 else spread.p_value(value - null)
    return Measured(value=estimate, by_seed=_listed(by_seed), over=over, p=p, null=null)


# --- accuracy that comes from a moved mode ------------------------------------------------------------------------


def _mode_shift(evidence: Evidence, about: About) -> Measured:
    for audit in evidence.audits:
        if (audit.soft, audit.stratum) == (about["system"], about["stratum"]):
            if about["measure"] == "moved":
                return Measured(value=Estimate(audit.moved))
            if about["measure"] not in ("gain", "mode", "softness"):
                raise InputError(f"claims: the audit has no '{about['measure']}'; choose gain, mode, softness or moved")
            return Measured(value=getattr(audit.shift, about["measure"]), over=ITEMS_AND_SEEDS, null=0.0)
    known = ", ".join(dict.fromkeys(audit.soft for audit in evidence.audits)) or "none"
    raise InputError(f"claims: no mode-shift audit of '{about['system']}' in '{about['stratum']}'; there is {known}")


# --- dynamics -----------------------------------------------------------------------------------------------------


def _uncertainty(evidence: Evidence, about: About) -> Measured:
    """Spearman's correlation of people's uncertainty with an axis of the data map of the last five epochs."""
    scored = evidence.scored
    recorded, people = scored.dynamics(_system(evidence, about["system"])), scored.people_on_training_items
    epochs = min(5, *(len(run) for run in recorded), 5)
    maps = data_maps(recorded, people, epochs=epochs)
    wanted = (about["human"], about["measure"])
    by_seed = []
    for chosen in (maps, *((each,) for each in maps)):
        found = uncertainty_correlations(people, chosen, resamples=evidence.resamples if chosen is maps else 0)
        spearman = next((each.spearman for each in found if (each.human, each.model) == wanted), None)
        if spearman is None:
            raise InputError(f"claims: there is no correlation of {wanted[0]} with {wanted[1]} in this study")
        by_seed.append(spearman)
    return Measured(value=by_seed[0], by_seed=tuple(each.value for each in by_seed[1:]), over=ITEMS_AND_SEEDS, null=0.0)


def _early_divergence(evidence: Evidence, about: About) -> Measured:
    """How far probabilities move between successive epochs at first, of a system less another's, in nats."""
    both = []
    for name in ("system", "against"):
        values = epoch_divergence(evidence.scored.dynamics(_system(evidence, about[name]))).values
        both.append(np.asarray(values[:, : about["epochs"]].mean(axis=(1, 2)), dtype=np.float64))
    return _over_seeds(both[0] - both[1])


# --- basins and out-of-distribution detection -----------------------------------------------------------------------


def _of_basins(evidence: Evidence, about: About, name: str) -> Floats:
    found = evidence.basins.systems
    if name not in found:
        raise NotMeasuredError(f"claims: the basins of '{name}' were not measured{choices(name, found)}")
    if about["measure"] not in OF_BASINS:
        raise InputError(f"claims: '{about['measure']}' is not measured of basins; choose {', '.join(OF_BASINS)}")
    return np.array([OF_BASINS[about["measure"]].read(basin)[0] for basin in found[name]])


def _basin_value(evidence: Evidence, about: About) -> Measured:
    return _over_seeds(_of_basins(evidence, about, about["system"]), null=None)


def _basin_ratio(evidence: Evidence, about: About) -> Measured:
    """The geometric mean over seeds of a measure of one system divided by another's."""
    ours, theirs = (_of_basins(evidence, about, about[name]) for name in ("system", "against"))
    if len(ours) != len(theirs) or not (ours > 0).all() or not (theirs > 0).all():
        raise InputError(f"claims: {about['measure']} is not positive for every seed; a ratio says nothing")
    ratio = np.log(ours / theirs)
    found = _over_seeds(ratio)
    value = found.value
    low, high = (None if end is None else float(np.exp(end)) for end in (value.low, value.high))
    return Measured(
        value=Estimate(float(np.exp(value.value)), low, high),
        by_seed=_listed(ours / theirs),
        over=SEEDS,
        p=found.p,
        null=1.0,
    )


def _pairs(evidence: Evidence, about: About, first: str, second: str) -> Floats:
    read = {"barrier": lambda pair: pair.barrier.value, "cka": lambda pair: pair.similarity.value}
    if about["measure"] not in read:
        raise InputError(f"claims: '{about['measure']}' is not measured of pairs; choose {', '.join(read)}")
    for each in evidence.basins.pairs:
        if (each.first, each.second) == (first, second):
            return np.array([read[about["measure"]](pair) for pair in each.pairs])
    raise NotMeasuredError(f"claims: runs of {first} and {second} were not compared in this study")


def _pair(evidence: Evidence, about: About) -> Measured:
    return _over_seeds(_pairs(evidence, about, about["system"], about["against"]), null=None)


def _pair_difference(evidence: Evidence, about: About) -> Measured:
    """The mean over pairs of runs of `a & b` less that of `c & d`; intervals take pairs as independent."""
    both = []
    for name in ("system", "against"):
        first, _, second = about[name].partition(" & ")
        both.append(_pairs(evidence, about, first, second))
    parts = [(float(each.var(ddof=1)) / len(each), len(each) - 1) for each in both if len(each) > 1]
    value = float(both[0].mean() - both[1].mean())
    by_pair = both[0] - both[1] if len(both[0]) == len(both[1]) else np.zeros(0)
    return _with_spread(value, Spread(tuple(parts)) if len(parts) == 2 else None, by_seed=by_pair, over="pairs of runs")


def _explanation_difference(evidence: Evidence, about: About) -> Measured:
    """How alike the maps of a system's seeds are, less another's.

    The interval is made of the two systems' own (Zou, Donner 2008), as if their items and seeds were not the same: it
    is at most too wide where items that are easy to agree on are so for both.
    """
    both = []
    for name in ("system", "against"):
        found = evidence.basins.explanations.get(about[name])
        if found is None:
            known = ", ".join(evidence.basins.explanations) or "none"
            raise NotMeasuredError(
                f"claims: the explanations of '{about[name]}' were not compared in this study; there are {known}"
            )
        if about["measure"] not in ("cosine", "correlation"):
            raise InputError(f"claims: maps are not compared by '{about['measure']}'; choose cosine or correlation")
        both.append(getattr(found, about["measure"]))
    ours, theirs = both
    gap = ours.value - theirs.value
    ends = (None, None)
    if None not in (ours.low, ours.high, theirs.low, theirs.high):
        ends = (
            gap - float(np.hypot(ours.value - ours.low, theirs.high - theirs.value)),
            gap + float(np.hypot(ours.high - ours.value, theirs.value - theirs.low)),
        )
    return Measured(value=Estimate(gap, *ends), over=ITEMS_AND_SEEDS, null=0.0)


def _over_seeds(values: Floats, *, null: float | None = 0.0) -> Measured:
    """The mean over seeds with Student's interval."""
    spread = Spread(((float(values.var(ddof=1)) / len(values), len(values) - 1),)) if len(values) > 1 else None
    found = _with_spread(float(values.mean()), spread, by_seed=values, over=SEEDS, null=null or 0.0)
    return found if null is not None else Measured(value=found.value, by_seed=found.by_seed, over=SEEDS)


def _ood_gaps(evidence: Evidence, about: About) -> list[tuple[Floats, Estimate | None]]:
    """For each score, by seed, the AUROC of a system less another's; and the paired difference where it is known."""
    found = []
    for score in about["scores"]:
        ours, theirs = (
            np.array(evidence.ood.get(about["ood_set"], score, system=about[name]).by_seed)
            for name in ("system", "against")
        )
        known = evidence.ood.difference(about["ood_set"], score, system=about["system"])
        paired = known.value if known is not None and known.reference == about["against"] else None
        found.append((ours - theirs, paired))
    return found


def _ood_ahead(evidence: Evidence, about: About) -> Measured:
    """By how many scores a system has the higher AUROC."""
    gaps = [gap for gap, _ in _ood_gaps(evidence, about)]
    by_seed = np.asarray(np.sum([gap > 0 for gap in gaps], axis=0, dtype=np.float64))
    return Measured(value=Estimate(float(sum(gap.mean() > 0 for gap in gaps))), by_seed=_listed(by_seed))


def _ood_difference(evidence: Evidence, about: About) -> Measured:
    """The mean over scores of a system's AUROC less another's."""
    gaps = _ood_gaps(evidence, about)
    if len(gaps) == 1 and gaps[0][1] is not None:
        return Measured(value=gaps[0][1], by_seed=_listed(gaps[0][0]), over=ITEMS_AND_SEEDS, null=0.0)
    return _over_seeds(np.mean([gap for gap, _ in gaps], axis=0))


_WHERE: Final = {"stratum": str, "by": str, "target": str}
_ANYWHERE: Final = {"stratum": ALL, "by": "agreement", "target": ""}
_TWO: Final = {"system": str, "against": str}

QUANTITIES: Final[dict[str, Quantity]] = {
    "score": Quantity(
        what="the mean score of a system",
        keys={"metric": str, "system": str, **_WHERE},
        defaults=_ANYWHERE,
        measure=_score,
    ),
    "difference": Quantity(
        what="the score of a system less another's",
        keys={"metric": str, **_TWO, **_WHERE},
        defaults=_ANYWHERE,
        measure=_difference,
    ),
    "relative change": Quantity(
        what="the score of a system less another's, divided by the other's",
        keys={"metric": str, **_TWO, **_WHERE},
        defaults=_ANYWHERE,
        measure=_relative_change,
        percent=True,
    ),
    "order": Quantity(
        what="the share of pairs of systems whose scores stand in the stated order, highest first",
        keys={"metric": str, "systems": tuple[str, ...], **_WHERE},
        defaults=_ANYWHERE,
        measure=_order,
    ),
    "gain correlation": Quantity(
        what="Spearman's correlation over items of the gain with the JS distance of the target from all votes",
        keys={"metric": str, **_TWO, "split": str},
        measure=_gain_correlation,
    ),
    "mode shift": Quantity(
        what="the accuracy gained over original labels: gain, mode or softness; or the share of moved modes",
        keys={"measure": str, "system": str, "stratum": str},
        defaults={"stratum": ALL},
        measure=_mode_shift,
    ),
    "uncertainty correlation": Quantity(
        what="Spearman's correlation of people's uncertainty with confidence or variability in training",
        keys={"measure": str, "system": str, "human": str},
        measure=_uncertainty,
    ),
    "early divergence": Quantity(
        what="the JSD between successive epochs at first, less another system's, nats",
        keys={**_TWO, "epochs": int},
        measure=_early_divergence,
    ),
    "basin value": Quantity(
        what="a measure of basins, mean over seeds", keys={"measure": str, "system": str}, measure=_basin_value
    ),
    "basin ratio": Quantity(
        what="a measure of basins divided by another system's, geometric mean over seeds",
        keys={"measure": str, **_TWO},
        measure=_basin_ratio,
    ),
    "pair": Quantity(what="barrier or CKA between runs, mean over pairs", keys={"measure": str, **_TWO}, measure=_pair),
    "pair difference": Quantity(
        what="barrier or CKA between runs, `a & b` less `c & d`",
        keys={"measure": str, **_TWO},
        measure=_pair_difference,
    ),
    "explanation difference": Quantity(
        what="how alike seeds explain items (cosine or correlation of their maps), less another system's",
        keys={"measure": str, **_TWO},
        measure=_explanation_difference,
    ),
    "ood ahead": Quantity(
        what="by how many OOD scores a system has the higher AUROC",
        keys={"ood_set": str, "scores": tuple[str, ...], **_TWO},
        measure=_ood_ahead,
    ),
    "ood difference": Quantity(
        what="the AUROC of a system less another's",
        keys={"ood_set": str, "scores": tuple[str, ...], **_TWO},
        measure=_ood_difference,
    ),
    "average": Quantity(what="the mean of other claims' values", keys={"of": tuple[str, ...]}),
    "count": Quantity(
        what="how many other claims are in direction, or are so in every seed",
        keys={"of": tuple[str, ...], "counts": str},
    ),
    "unmeasured": Quantity(what="not measured", keys={"verdict": str}, defaults={"verdict": "not testable here"}),
}
"""What claims can be judged by."""
