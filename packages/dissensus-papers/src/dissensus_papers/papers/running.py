"""Running a paper's studies: what is stored is not run again; a study whose data are missing is listed as not run."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError, choices
from dissensus_papers.papers.evidence import Evidence
from dissensus_papers.papers.joining import can_join, joined
from dissensus_papers.papers.kept import kept_summary, write_summary
from dissensus_papers.papers.summary import StudySummary, decides, planned, summarise, without_place
from dissensus_train.studies import (
    LABELLED_SETS,
    plan_study,
    read_study,
    run_plan,
    study_basins,
    study_ood,
    study_toml,
    systems_of,
)
from dissensus_train.training import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from dissensus_papers.papers.claims import Paper, StudyUse
    from dissensus_train.studies import Study, StudyPlan


BASELINES: Final = ("uniform", "marginal", "majority + temperature", "majority + smoothing")
"""What stands beside the systems of every grid."""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """How a paper's studies are run.

    Attributes:
        quick: whether studies are cut short, and those left out that cannot be.
        seeds: how many, or which; 0 leaves it to the studies.
        only: names of the studies to run; empty for all.
        engine: how runs are trained.
        device: what they are trained on.
        resamples: of items and seeds, behind each interval.
        metrics: that are scored beside those that every study is.
    """

    quick: bool = False
    seeds: int | range = 0
    only: Collection[str] = ()
    engine: str = "auto"
    device: str = "auto"
    resamples: int = 1000
    metrics: tuple[str, ...] = ()


def reproduce(
    paper: Paper,
    store: Path,
    folder: Path,
    *,
    how: Reproduction,
    train: Callable[[StudyPlan], object] | None = None,
) -> Iterator[StudySummary]:
    """Run a paper's studies one after the other, measure what its claims ask, and keep each summary when it is done.

    Runs are kept in `store` and resumed from it, summaries in FOLDER/PAPER/STUDY.json. `train` trains a plan, which
    None does in silence.
    """
    known = [use.name for use in paper.studies]
    for name in how.only:
        if name not in known:
            raise InputError(f"{paper.name}: it has no study '{name}'{choices(name, known)}")
    _check_claims(paper)
    asked = [
        use for use in paper.studies if (not how.only or use.name in how.only) and not (how.quick and use.quick is None)
    ]
    if not asked:
        raise InputError(
            f"{paper.name}: no study of it says what quick changes; add quick = {{ seeds = 2 }} to its [[studies]]"
        )
    for use in asked:
        for name in _units(_study(paper, use.name)) if how.quick else ():
            if (kept := kept_summary(folder, paper.name, name)) and not (kept.quick or kept.missing):
                raise InputError(
                    f"{folder}: it holds {name} of a full run, which quick would replace; choose another folder"
                )
        if use.own_splits and _study(paper, use.name).folds:
            raise InputError(
                f"{paper.name}: {use.name} has folds, which hold each item out once; leave own_splits or folds out"
            )
        if isinstance(how.seeds, range) and not use.own_splits:
            raise InputError(
                f"{paper.name}: all seeds of {use.name} share one split, so that others cannot be put beside them; "
                "give seeds= as a number, or only= with a study that has own_splits"
            )
    for use in asked:
        for new in _run(paper, use, store, folder, how, train or (lambda plan: deque(run_plan(plan), maxlen=0))):
            summary = joined(kept_summary(folder, paper.name, new.name), new)
            write_summary(folder, paper.name, summary)
            yield summary


def _check_claims(paper: Paper) -> None:
    """Refuses a claim on a study or a system that is not there, before hours are trained for it."""
    known: dict[str, tuple[list[str], list[str]]] = {}
    for study in [_study(paper, use.name) for use in paper.studies] if paper.claims else ():
        named = [*systems_of_grid(study), *BASELINES], [target.name for target in study.targets]
        known |= dict.fromkeys(_units(study), named)
    for claim in (claim for claim in paper.claims if claim.study):
        on, about = f"{paper.path}: claim {claim.id}", claim.about
        if claim.study not in known:
            raise InputError(f"{on} is on '{claim.study}', which is no study here{choices(claim.study, known)}")
        systems, targets = known[claim.study]
        if (target := about.get("target", "")) and target not in targets:
            raise InputError(f"{on} names '{target}', no target of {claim.study}{choices(target, targets)}")
        asked = (about.get("system", ""), about.get("against", ""), *about.get("systems", ()))
        for name in (part for each in asked if each for part in each.split(" & ")):
            if name not in systems:
                raise InputError(f"{on} names '{name}', no system of {claim.study}{choices(name, systems)}")


def refuse_other_studies(paper: Paper, summaries: Mapping[str, StudySummary]) -> None:
    """Refuses summaries of studies that have changed since: a page would say what never ran.

    Seeds may be others. Where a study's file is not at hand, where other data stand in and of quick runs, nothing is
    compared.
    """
    for use in paper.studies:
        try:
            study = _study(paper, use.name)
        except InputError:
            continue
        asked = [decides(study_toml(part)) for part in study.parts]
        for summary in (summaries[name] for name in _units(study) if name in summaries):
            if summary.missing or summary.quick or summary.instead:
                continue
            if decides(summary.toml) not in asked:
                raise InputError(
                    f"{paper.name}: the study {summary.name} is not the one that its summary is of; judge by the study "
                    f"file of that time, or run dissensus reproduce {paper.typed} --only {use.name}"
                )


def systems_of_grid(study: Study) -> list[str]:
    """The names that the systems of a study have in its table, without its data."""
    run = partial(Run, seed=0, training=study.training, data="")
    runs = [run(model=of, target=to.name, delivery=by.delivery, options=by.options) for of, to, by in study.grid]
    people = [run(model=of.name, target="votes", delivery="votes", people=of.people) for of in study.annotator_models]
    return list(systems_of(runs + people))


def _run(
    paper: Paper, use: StudyUse, store: Path, folder: Path, how: Reproduction, train: Callable[[StudyPlan], object]
) -> Iterator[StudySummary]:
    stated = _study(paper, use.name)
    study, names, own_splits = as_asked(stated, use, how), _units(stated), use.own_splits
    instead = False
    try:
        plans = _plans(study, store, how, own_splits=own_splits)
    except InputError as error:
        if not use.instead:
            why = without_place(str(error))
            yield from (StudySummary(name=name, study=study.name, missing=why, quick=how.quick) for name in names)
            return
        plans, instead, own_splits = _plans(on_other_data(study, use.instead), store, how), True, False
    folds = len(study.seeds) if own_splits else study.folds or 1
    left_out: list[str] = []
    try:
        # Who names seeds means to go on: four that are kept must not give way to two, nor be refused after hours.
        for plan, name in zip(plans[::folds], names if isinstance(how.seeds, range) else (), strict=False):
            kept = kept_summary(folder, paper.name, name)
            new = planned(paper, name, plan.opened, quick=how.quick, instead=instead)
            if kept and not set(kept.seeds) <= set(study.seeds) and not (own_splits and can_join(kept, new)):
                raise InputError(
                    f"{paper.name}: {folder} keeps {name} as run by other rules, settings or data, which further "
                    "seeds cannot join; give seeds= as a number to run it anew, or choose another folder"
                )
        for plan in plans:
            train(plan)
            left_out += _measure(plan)
    finally:
        for plan in plans:
            plan.writer.close()
    for place, name in enumerate(names):
        opened = tuple(plan.opened for plan in plans[place * folds : (place + 1) * folds])
        parts = [(one,) for one in opened] if own_splits else [opened]
        asked = (claim.about["metric"] for claim in paper.claims if claim.study == name and "metric" in claim.about)
        metrics = tuple(dict.fromkeys((*how.metrics, *asked)))
        found = (Evidence(opened=part, resamples=how.resamples, metrics=metrics) for part in parts)
        about: dict[str, Any] = {"quick": how.quick, "instead": instead, "own_split": own_splits}
        summary = reduce(joined, [summarise(paper, name, evidence, **about) for evidence in found])
        assert not own_splits or len(summary.seeds) == len(parts), "seeds of one study can be joined"
        yield replace(summary, unmeasured=tuple(dict.fromkeys(left_out)))


def _measure(plan: StudyPlan) -> list[str]:
    """Measure what the study asks for beside scores; why something could not be, in sentences.

    Claims are judged by what is in the store: where runs came back without their weights, the rest is still good.
    """
    left_out = []
    for what, settings, measure in (
        ("basins", plan.opened.study.basins, study_basins),
        ("out-of-distribution detection", plan.opened.study.ood, study_ood),
    ):
        try:
            if settings is not None:
                measure(plan.opened, device=plan.choice.device)
        except InputError as error:
            why = without_place(str(error)).replace(f"{plan.opened.store.folder}/", "")
            left_out.append(f"Not all of its {what} could be measured: {why}.")
    return left_out


def _plans(study: Study, store: Path, how: Reproduction, *, own_splits: bool = False) -> list[StudyPlan]:
    parts = [on_own_split(study, seed) for seed in study.seeds] if own_splits else study.parts
    return [plan_study(part, store, engine=how.engine, device=how.device) for part in parts]


def _study(paper: Paper, name: str) -> Study:
    """A study by name: a file beside the claims, or one that is shipped."""
    beside = paper.path.parent / (name if name.endswith(".toml") else f"{name}.toml")
    return read_study(beside if beside.is_file() and beside != paper.path else name)


def _units(study: Study) -> list[str]:
    """What claims know the study's parts by: its name, or NAME-SOURCE for each source; folds are one."""
    return [part.name for part in replace(study, folds=0).parts]


def on_other_data(study: Study, dataset: str) -> Study:
    """The same grid and training on a known dataset that stands in, all of its sources in their order."""
    if dataset not in LABELLED_SETS:
        raise InputError(f"claims: '{dataset}' cannot stand in{choices(dataset, LABELLED_SETS)}")
    return replace(study, name=f"{study.name}-on-{dataset}", dataset=dataset, sources=LABELLED_SETS[dataset].sources)


def on_own_split(study: Study, seed: int) -> Study:
    """One seed of a study, on a split of its own."""
    return replace(study, name=f"{study.name}-split-{seed}", split_seed=seed, seeds=(seed,))


def as_asked(study: Study, use: StudyUse, how: Reproduction) -> Study:
    """The study with the seeds that were asked for, or cut short."""
    if how.seeds:
        study = replace(study, seeds=tuple(how.seeds if isinstance(how.seeds, range) else range(how.seeds)))
    return quickened(study, use.quick or {}) if how.quick else study


def quickened(study: Study, changes: Mapping[str, Any]) -> Study:
    """A study cut short, under a name of its own; its numbers say that everything runs, and little else."""
    shorter, smaller = (
        {key: changes[key] for key in keys if key in changes} for keys in (("epochs", "learning_rate"), ("items",))
    )
    return replace(
        study,
        name=f"{study.name}-quick",
        models=tuple(changes.get("models", study.models)),
        seeds=study.seeds[: changes.get("seeds", len(study.seeds))],
        folds=study.folds and changes.get("folds", study.folds),
        # Cores have no bfloat16 worth the name, and random crops take them longer than a small network's step.
        training=replace(study.training, **shorter, precision="float32", augmentation="none"),
        basins=study.basins and replace(study.basins, probes=10, line=0, path=5, **smaller),
        ood=study.ood and replace(study.ood, resamples=200, **smaller),
    )
