"""A scored study as the subject of a page, and what it adds to the page."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dissensus.report.chapters import Added, Chapter
from dissensus.report.glossary import paragraph, terms
from dissensus.report.subject import Subject, made_with
from dissensus.report.tables import Cell, Table, ends, estimated
from dissensus.votes.privacy import LEAST_PEOPLE, pseudonymous
from dissensus_train.delivery.named import DELIVERIES
from dissensus_train.report import figures
from dissensus_train.report.landscape import basin_tables, landscape
from dissensus_train.report.ood import detection, roc_figures, score_histograms
from dissensus_train.report.shown import item_pictures, item_texts, note, table_of_cells
from dissensus_train.report.training_dynamics import (
    confidence_by_stratum,
    forgetting,
    human_uncertainty,
    read_training_dynamics,
    regions,
)
from dissensus_train.studies.measuring import stored_basins, stored_ood
from dissensus_train.studies.original import Audit, mode_shift_audit
from dissensus_train.training.data import TRAIN
from dissensus_train.training.tuning import rates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dissensus_train.studies.scored import ScoredStudy

OF_DATA: Final = {"words": "hutto2014vader", "cifar-10h": "peterson2019human"}

OF_DYNAMICS: Final = ("swayamdipta2020dataset", "toneva2019empirical")


def study_subject(
    scored: ScoredStudy, *, store: str = "", pseudonyms: str | None = None, least_people: int = LEAST_PEOPLE
) -> Subject:
    """A scored study as the subject of a page.

    `store` is the folder of its runs, for the commands on the page. Without a key of pseudonyms
    (`dissensus.votes.privacy`) annotators have their names; a group needs `least_people` for its numbers to be shown.
    """
    study, data = scored.opened.study, scored.opened.data
    members = data.splits[scored.split]
    reference = next(iter(scored.references.values()))
    place = f" --store {store}" if store else ""
    name = Path(study.source).name
    seen_by = "every run" if scored.split == TRAIN else "no run"
    # Models that know who votes are delivered single votes, and own code is what its author says.
    deliveries = {name: system.runs[0].delivery for name, system in scored.systems.items()}
    deliveries = {name: delivery for name, delivery in deliveries.items() if delivery in DELIVERIES}
    return Subject(
        title=study.name,
        question=study.question or f"Does any method come closer to people than {reference}?",
        people=scored.human,
        systems={name: system.predictions[scored.split] for name, system in scored.systems.items()},
        models={model: tuple(system.name for system in scored.of_model(model)) for model in scored.models},
        references=scored.references,
        deliveries=deliveries,
        evaluation=scored.evaluation,
        votes=data.votes if data.votes is None or pseudonyms is None else pseudonymous(data.votes, pseudonyms),
        texts=item_texts(data, members),
        pictures=lambda chosen: item_pictures(data, members[chosen]),
        where=f"{len(scored.human):,} items of the split ‘{scored.split}’, which {seen_by} was trained on",
        cautions=scored.cautions,
        facts=tuple(_study_facts(scored)),
        commands=(f"dissensus study run {name}{place}", f"dissensus report {name}{place}"),
        explained={name: paragraph(DELIVERIES[name]) for name in set(deliveries.values())},
        adds=partial(added_by_study, scored),
        least_people=least_people,
    )


def added_by_study(scored: ScoredStudy, subject: Subject, resamples: int, seed: int) -> Added:
    """What only a study has: its training, its basins, out-of-distribution detection, and the keys of its runs."""
    study = scored.opened.study
    audits = mode_shift_audit(scored, resamples=resamples, seed=seed)
    data = OF_DATA.get(str(study.dataset))
    return Added(
        chapters=[*_of_training(scored, shown=subject.shown, resamples=resamples, seed=seed), *_of_measures(scored)],
        tables=[mode_shift_table(audits)] if audits else [],
        words=terms()["dynamics"] if scored.recorded else {},
        schemes=[target.scheme for target in study.targets],
        cited=[*([] if data is None else [data]), *(OF_DYNAMICS if scored.recorded else ())],
        keys={system.name: [run.key for run in system.runs] for system in scored.systems.values()},
    )


def _of_training(scored: ScoredStudy, *, shown: tuple[str, ...], resamples: int, seed: int) -> Iterator[Chapter]:
    dynamics = read_training_dynamics(scored) if scored.recorded else None
    if dynamics is not None:
        yield Chapter(
            anchor="maps",
            title="Data maps",
            heading="Data maps, human uncertainty and forgetting",
            note="Hover or tap a point to see the item, its votes, and what each method says of it.",
            tabs={
                f"coloured by {colour}": figures.data_maps(scored, dynamics, seed=seed, colour=colour, shown=shown)
                for colour in figures.COLOURS
            },
            tabbed="Colours of the data maps",
            tables=[
                confidence_by_stratum(dynamics),
                human_uncertainty(dynamics, resamples=resamples, seed=seed),
                regions(dynamics),
                forgetting(dynamics),
            ],
        )
    curves = figures.learning_curves(scored)
    if curves.figures:
        yield Chapter(anchor="curves", title="Learning curves", heading="Learning curves", sections=[curves])
    moved = None if dynamics is None else figures.divergence(scored, dynamics)
    if moved is not None:
        heading = "How much the model still moves from epoch to epoch"
        yield Chapter(anchor="epochs", title="Epochs", heading=heading, sections=[moved])


def _of_measures(scored: ScoredStudy) -> Iterator[Chapter]:
    basins, ood = stored_basins(scored.opened), stored_ood(scored.opened)
    if basins is not None:
        drawn = landscape(basins, scored.opened.data)
        yield Chapter(
            anchor="basins",
            title="Basins",
            heading="How flat are the minima?",
            tables=basin_tables(basins),
            sections=[] if drawn is None else [drawn],
        )
    if (asked := scored.opened.study.ood) is not None:
        gone = [Path(path).name for path in asked.sets.values() if not Path(path).exists()]
        mend = f"Not found: {', '.join(gone)}; put back what is missing" if gone else "Run the study again"
        yield Chapter(
            anchor="ood",
            title="Out of distribution",
            heading="Does the model notice out-of-distribution items?",
            note="" if ood is not None else f"The store has no measurement of these sets as they are now. {mend}.",
            tables=[] if ood is None else detection(ood),
            sections=[] if ood is None else [roc_figures(ood), score_histograms(ood)],
        )


def _study_facts(scored: ScoredStudy) -> list[tuple[str, str]]:
    opened, study = scored.opened, scored.opened.study
    data = opened.data
    trained_on = dict.fromkeys(where for system in scored.systems.values() for where in system.trained_on)
    return [
        ("study", study.name),
        ("data", study.held),
        ("data fingerprint", data.fingerprint),
        ("items", f"{len(data.human):,}, of {data.classes} classes"),
        ("splits", ", ".join(f"{name} {len(members):,}" for name, members in data.splits.items())),
        ("seed of the split", str(study.split_seed)),
        ("targets", ", ".join(target.name for target in study.targets)),
        ("deliveries", ", ".join(dict.fromkeys(_in_words(run.delivery, run.options) for run in opened.runs))),
        ("models", ", ".join(map(str, [*study.models, *study.annotator_models]))),
        ("seeds", ", ".join(map(str, study.seeds))),
        ("training", ", ".join(f"{name} {value}" for name, value in asdict(study.training).items())),
        *_chosen_facts(scored),
        ("runs", f"{len(opened.runs):,}, trained by {', '.join(trained_on)}"),
        *made_with(scored.evaluation),
    ]


def _chosen_facts(scored: ScoredStudy) -> list[tuple[str, str]]:
    """What validation chose of learning rates and strengths, by system."""
    training = scored.opened.study.training
    systems = {name: system.chosen for name, system in scored.systems.items() if system.chosen}
    if not systems:
        return []
    among = f"learning rates among {', '.join(f'{rate:g}' for rate in rates(training))}; " if training.tune else ""
    each = "; ".join(
        f"{name}: {', '.join(f'{what} ({times})' for what, times in chosen.items())}"
        for name, chosen in systems.items()
    )
    where = f"by {training.selection} on the split {training.selection_split}"
    return [("chosen on validation", f"{among}the same search for every method, {where} (how many runs): {each}")]


def _in_words(delivery: str, options: Mapping[str, Any]) -> str:
    listed = ", ".join(f"{name} {value}" for name, value in sorted(options.items()))
    return f"{delivery} ({listed})" if listed else delivery


def mode_shift_table(audits: Sequence[Audit]) -> Table:
    """How much of an accuracy gain over original labels is the moved mode, and how much is softness, by stratum."""
    rows, records = [], []
    for audit in audits:
        parts = {name: getattr(audit.shift, name) for name in ("gain", "mode", "softness")}
        items, moved = Cell(audit.stratum, f"{audit.shift.items:,}"), Cell(f"{100 * audit.moved:.1f}")
        rows.append((audit.soft, (items, moved, *(estimated(part, "accuracy") for part in parts.values()))))
        about = {"system": audit.soft, "original": audit.original, "majority": audit.majority, "stratum": audit.stratum}
        records.append({**about, "items": audit.shift.items, "moved": audit.moved})
        for name, part in parts.items():
            records[-1] |= ends(part, name, f"{name}_low", f"{name}_high")
    header = ("method", "items", "mode moved, %", "gain, points", "of it the moved mode", "of it softness")
    return table_of_cells("mode-shift", "Mode shift", header, rows, records, note("mode-shift"))
