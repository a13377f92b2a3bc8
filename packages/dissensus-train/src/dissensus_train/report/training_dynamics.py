"""What training did to each training item, as tables: data maps by stratum, human uncertainty, forgetting.

The probabilities that runs recorded after each epoch are large, so each run is read once, and only what the tables and
figures need is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dissensus.dynamics import data_map, epoch_divergence, forgetting_events, regions_by_rank, uncertainty_by_system
from dissensus.evaluation.comparison.strata import by_agreement
from dissensus.report.tables import Cell, Table, TableRow, estimated
from dissensus_train.report.shown import note

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from dissensus.dynamics import DataMap, Forgetting, StratumDivergence
    from dissensus.evaluation.comparison.strata import Stratum
    from dissensus.labels.distribution import LabelDistribution
    from dissensus_train.studies import ScoredStudy

LAST_EPOCHS: Final = 5
"""Over how many last epochs of each run a data map is made, where there are that many."""

VARIANCES: Final = ("variance across seeds", "variance within runs")

MEASURES: Final = {
    "mean_uncertainty": "mean uncertainty",
    "unsure_proportion": "share of people unsure",
    "entropy": "entropy of people",
}
"""How human uncertainty is called in headings."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SystemDynamics:
    """The training of one system: the data map over the last epochs of all its seeds, forgetting over all of each seed.

    Divergence is between successive epochs, by stratum (unanimous, varied); empty where every run has one epoch only.
    `epochs` are those that each run recorded.
    """

    data_map: DataMap
    forgetting: Forgetting
    divergence: tuple[StratumDivergence, ...]
    epochs: tuple[int, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingDynamics:
    """The training of a study's systems, by name, on its training items, and what people said of these."""

    people: LabelDistribution
    systems: Mapping[str, SystemDynamics]

    @property
    def strata(self) -> Sequence[Stratum]:
        """All training items, then the unanimous and the varied ones."""
        return by_agreement(self.people)


def read_training_dynamics(results: ScoredStudy) -> TrainingDynamics:
    """Read what every run recorded, one system after another."""
    people = results.people_on_training_items
    agreement = by_agreement(people)[1:]
    systems = {}
    for name, system in results.systems.items():
        recorded = results.dynamics(system)
        epochs = tuple(run.shape[0] for run in recorded)
        systems[name] = SystemDynamics(
            data_map=data_map(recorded, people, epochs=min(LAST_EPOCHS, *epochs)),
            forgetting=forgetting_events(recorded, people),
            divergence=epoch_divergence(recorded).by_stratum(agreement) if max(epochs) > 1 else (),
            epochs=epochs,
        )
    return TrainingDynamics(people=people, systems=systems)


def last_epochs(dynamics: TrainingDynamics) -> str:
    """Over which epochs the data maps are made, in words."""
    counts = sorted({trained.data_map.epochs for trained in dynamics.systems.values()})
    if counts == [1]:
        return "the last epoch"
    return f"the last {counts[0]} epochs" if len(counts) == 1 else f"the last {counts[0]} to {counts[-1]} epochs"


def confidence_by_stratum(dynamics: TrainingDynamics) -> Table:
    """Where the items of each stratum lie on the data maps, in the mean."""
    rows, records = [], []
    for system, trained in dynamics.systems.items():
        for means in trained.data_map.by_stratum(dynamics.strata):
            numbers = {
                "confidence": means.confidence,
                "variability": means.variability,
                "correctness": means.correctness,
                "variance_across_seeds": means.across_seeds,
                "variance_within_runs": means.within_runs,
            }
            digits = (3, 3, 3, 4, 4)
            cells = (f"{value:.{places}f}" for value, places in zip(numbers.values(), digits, strict=True))
            rows.append(_row(system, means.stratum, means.items, *map(Cell, cells)))
            records.append({"system": system, "stratum": means.stratum, "items": means.items, **numbers})
    return Table(
        slug="confidence-by-stratum",
        title="Confidence and variability on training items",
        header=("method", "items", "confidence", "variability (sd)", "correctness", *VARIANCES),
        rows=tuple(rows),
        records=tuple(records),
        note=note("confidence-by-stratum", last=last_epochs(dynamics)),
    )


def human_uncertainty(dynamics: TrainingDynamics, *, resamples: int, seed: int) -> Table:
    """Rank correlations of human uncertainty with confidence and variability (Pavlovic et al. 2026, table 4)."""
    rows, records = [], []
    header: list[str] = []
    maps = {system: [trained.data_map] for system, trained in dynamics.systems.items()}
    for system, correlations in uncertainty_by_system(dynamics.people, maps, resamples=resamples, seed=seed).items():
        header = [f"{MEASURES[one.human]} with {one.model}" for one in correlations]
        rows.append(TableRow(name=system, cells=tuple(estimated(one.spearman, "spearman") for one in correlations)))
        records += [
            {
                "system": system,
                "human": one.human,
                "model": one.model,
                **{
                    name: getattr(one.spearman, key, None)
                    for name, key in (("spearman", "value"), ("low", "low"), ("high", "high"))
                },
                "items": one.items,
            }
            for one in correlations
        ]
    return Table(
        slug="human-uncertainty",
        title="Is a model unsure of the training items that people are unsure of?",
        header=("method", *header),
        rows=tuple(rows),
        records=tuple(records),
        note=note("human-uncertainty", items=len(dynamics.people), last=last_epochs(dynamics)),
    )


def forgetting(dynamics: TrainingDynamics) -> Table:
    """How often items were learnt and lost again (Toneva et al. 2019), by stratum."""
    rows, records = [], []
    for system, trained in dynamics.systems.items():
        lost, epochs = trained.forgetting, trained.epochs
        for stratum in dynamics.strata:
            if not stratum.items.any():
                continue
            names, items = ("events", "never_learnt", "unforgettable"), int(stratum.items.sum())
            by_seed = {name: getattr(lost, name)[:, stratum.items].mean(axis=1) for name in names}
            shares = (_spread(100 * by_seed[name], ".1f") for name in names[1:])
            trained_for = str(epochs[0]) if len(set(epochs)) == 1 else f"{min(epochs)} to {max(epochs)}"
            cells = (_spread(by_seed["events"], ".2f"), *shares, trained_for)
            rows.append(_row(system, stratum.name, items, *map(Cell, cells)))
            records.append(
                {"system": system, "stratum": stratum.name, "items": items, "seeds": len(epochs)}
                | {
                    name: value
                    for key, values in by_seed.items()
                    for name, value in ((key, float(values.mean())), (f"{key}_sd", _deviation(values)))
                }
                | {"least_epochs": min(epochs), "most_epochs": max(epochs)}
            )
    return Table(
        slug="forgetting",
        title="Training items that were learnt and lost again",
        header=("method", "items", "forgetting events per item", "never learnt, %", "never lost, %", "epochs"),
        rows=tuple(rows),
        records=tuple(records),
        note=note("forgetting"),
    )


def regions(dynamics: TrainingDynamics) -> Table:
    """What people said of the items that each system finds easy, ambiguous or hard (Swayamdipta et al. 2020)."""
    rows, records = [], []
    unanimous = dynamics.people.entropy == 0
    for system, trained in dynamics.systems.items():
        region = regions_by_rank(trained.data_map).name
        for name in ("easy", "ambiguous", "hard"):
            members = region == name
            if not members.any():
                continue
            items = int(members.sum())
            numbers = {
                "entropy": float(dynamics.people.entropy[members].mean()),
                "unanimous": float(unanimous[members].mean()),
                "correctness": float(trained.data_map.correctness[members].mean()),
            }
            cells = (f"{numbers['entropy']:.3f}", f"{100 * numbers['unanimous']:.1f}", f"{numbers['correctness']:.3f}")
            rows.append(_row(system, name, items, *map(Cell, cells)))
            records.append({"system": system, "region": name, "items": items, **numbers})
    return Table(
        slug="regions",
        title="What people said of easy, ambiguous and hard training items",
        header=("method", "items", "entropy of people, nats", "unanimous, %", "correctness"),
        rows=tuple(rows),
        records=tuple(records),
        note=note("regions"),
    )


def _row(system: str, stratum: str, items: int, *cells: Cell) -> TableRow:
    return TableRow(name=system, cells=(Cell(stratum, f"{items:,}"), *cells))


def _deviation(by_seed: np.ndarray[Any, Any]) -> float | None:
    """Over seeds, n - 1; None for one seed."""
    return float(by_seed.std(ddof=1)) if len(by_seed) > 1 else None


def _spread(by_seed: np.ndarray[Any, Any], form: str) -> str:
    deviation = _deviation(by_seed)
    return f"{by_seed.mean():{form}}" + ("" if deviation is None else f" ± {deviation:{form}}")
