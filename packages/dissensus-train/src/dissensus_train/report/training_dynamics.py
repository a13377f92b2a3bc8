"""What training did to each training item, as tables: data maps by stratum, human uncertainty, forgetting.

The probabilities that runs recorded after each epoch are large, so each run is read once, and only what the tables and
figures need is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dissensus.dynamics import data_map, epoch_divergence, forgetting_events, regions_by_rank, uncertainty_by_system
from dissensus.evaluation.comparison.strata import Stratum, by_agreement
from dissensus.report.tables import Cell, Table, ends, estimated, table_of
from dissensus_train.report.shown import note, number_column, table_of_cells

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.dynamics import DataMap, Forgetting, StratumDivergence
    from dissensus.labels.distribution import LabelDistribution
    from dissensus_train.report.shown import Column
    from dissensus_train.studies import ScoredStudy

LAST_EPOCHS: Final = 5
"""Over how many last epochs of each run a data map is made, where there are that many."""

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
        if not recorded:
            continue
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
    records = [
        {
            "system": system,
            "stratum": means.stratum,
            "items": means.items,
            "confidence": means.confidence,
            "variability": means.variability,
            "correctness": means.correctness,
            "variance_across_seeds": means.across_seeds,
            "variance_within_runs": means.within_runs,
        }
        for system, trained in dynamics.systems.items()
        for means in trained.data_map.by_stratum(dynamics.strata)
    ]
    columns = {
        **_items_of("stratum"),
        "confidence": number_column("confidence"),
        "variability (sd)": number_column("variability"),
        "correctness": number_column("correctness"),
        "variance across seeds": number_column("variance_across_seeds", ".4f"),
        "variance within runs": number_column("variance_within_runs", ".4f"),
    }
    title, about = "Confidence and variability on training items", last_epochs(dynamics)
    return table_of("confidence-by-stratum", title, records, columns, note=note("confidence-by-stratum", last=about))


def human_uncertainty(dynamics: TrainingDynamics, *, resamples: int, seed: int) -> Table:
    """Rank correlations of human uncertainty with confidence and variability (Pavlovic et al. 2026, table 4)."""
    rows, records = [], []
    header: list[str] = []
    maps = {system: [trained.data_map] for system, trained in dynamics.systems.items()}
    for system, correlations in uncertainty_by_system(dynamics.people, maps, resamples=resamples, seed=seed).items():
        header = [f"{MEASURES[one.human]} with {one.model}" for one in correlations]
        rows.append((system, [estimated(one.spearman, "spearman") for one in correlations]))
        records += [
            {
                "system": system,
                "human": one.human,
                "model": one.model,
                **ends(one.spearman, "spearman", "low", "high"),
                "items": one.items,
            }
            for one in correlations
        ]
    title = "Is a model unsure of the training items that people are unsure of?"
    how = note("human-uncertainty", items=len(dynamics.people), last=last_epochs(dynamics))
    return table_of_cells("human-uncertainty", title, ("method", *header), rows, records, how)


def forgetting(dynamics: TrainingDynamics) -> Table:
    """How often items were learnt and lost again (Toneva et al. 2019), by stratum."""
    records: list[dict[str, Any]] = []
    for system, trained in dynamics.systems.items():
        epochs = trained.epochs
        for stratum in (stratum for stratum in dynamics.strata if stratum.items.any()):
            about = {"system": system, "stratum": stratum.name, "items": int(stratum.items.sum()), "seeds": len(epochs)}
            for name in ("events", "never_learnt", "unforgettable"):
                by_seed = getattr(trained.forgetting, name)[:, stratum.items].mean(axis=1)
                about[name] = float(by_seed.mean())
                about[f"{name}_sd"] = float(by_seed.std(ddof=1)) if len(by_seed) > 1 else None
            records.append({**about, "least_epochs": min(epochs), "most_epochs": max(epochs)})

    def spread(name: str, form: str, scale: int, record: Mapping[str, Any]) -> str:
        mean, deviation = record[name], record[f"{name}_sd"]
        return f"{scale * mean:{form}}" + ("" if deviation is None else f" ± {scale * deviation:{form}}")

    columns: dict[str, Column] = {
        **_items_of("stratum"),
        "forgetting events per item": partial(spread, "events", ".2f", 1),
        "never learnt, %": partial(spread, "never_learnt", ".1f", 100),
        "never lost, %": partial(spread, "unforgettable", ".1f", 100),
        "epochs": lambda record: " to ".join(dict.fromkeys(str(record[f"{end}_epochs"]) for end in ("least", "most"))),
    }
    title = "Training items that were learnt and lost again"
    return table_of("forgetting", title, records, columns, note=note("forgetting"))


def regions(dynamics: TrainingDynamics) -> Table:
    """What people said of the items that each system finds easy, ambiguous or hard (Swayamdipta et al. 2020)."""
    entropy = dynamics.people.entropy
    records = [
        {
            "system": system,
            "region": name,
            "items": int(members.sum()),
            "entropy": float(entropy[members].mean()),
            "unanimous": float((entropy == 0)[members].mean()),
            "correctness": float(trained.data_map.correctness[members].mean()),
        }
        for system, trained in dynamics.systems.items()
        for name in ("easy", "ambiguous", "hard")
        if (members := regions_by_rank(trained.data_map).name == name).any()
    ]
    columns = {
        **_items_of("region"),
        "entropy of people, nats": number_column("entropy"),
        "unanimous, %": lambda record: f"{100 * record['unanimous']:.1f}",
        "correctness": number_column("correctness"),
    }
    title = "What people said of easy, ambiguous and hard training items"
    return table_of("regions", title, records, columns, note=note("regions"))


def _items_of(part: str) -> dict[str, Column]:
    """The first two columns: the system, and a part of the items with their number."""
    return {"method": lambda record: record["system"], "items": lambda r: Cell(r[part], f"{r['items']:,}")}
