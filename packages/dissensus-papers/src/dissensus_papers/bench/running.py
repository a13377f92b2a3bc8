"""Running the benchmark: each set is a study, or several; what was run leaves a small summary, and is not run again."""

from __future__ import annotations

import ast
import shutil
import tomllib
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation import evaluate
from dissensus.own_code import source_files
from dissensus.together import combine
from dissensus_papers.bench.protocol import FILES, ORDERED, WITH, Entry, protocol_study, study_name, study_text
from dissensus_papers.papers.claims import Paper, StudyUse
from dissensus_papers.papers.pages import SHOWN
from dissensus_papers.papers.running import as_asked, reproduce
from dissensus_papers.papers.summary import (
    RULER,
    StudySummary,
    read_summaries,
    rounded,
    scores_of,
    without_place,
    write_summary,
)
from dissensus_train.studies import open_study, read_study, runs_by_system, study_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dissensus.arrays import Ints
    from dissensus_papers.bench.protocol import BenchSet, Protocol
    from dissensus_papers.papers.running import Reproduction
    from dissensus_train.studies import OpenStudy, StudyPlan
    from dissensus_train.training import TrainingData

NAME: Final = "bench"
"""Of the folder of summaries, and of the pages."""

STUDIES: Final = "bench-studies"
"""The folder of the study files that were run."""

WITH_VOTES: Final = "with_votes"
"""What an ensemble and no vote or one are together, among what is measured."""

PARTS: Final = ("delivery", "loss", "model")
"""What functions or classes of a user's file are called that are to be used."""


def run_bench(
    protocol: Protocol,
    store: Path,
    folder: Path,
    *,
    how: Reproduction,
    sets: tuple[str, ...] = (),
    method: Path | None = None,
    train: Callable[[StudyPlan], object] | None = None,
) -> Iterator[StudySummary]:
    """Run every delivery and annotator-aware model on the sets, one set after the other; or a method of one's own.

    Args:
        protocol: what is run.
        store: the folder that runs are kept in and resumed from.
        folder: where study files and summaries are kept: FOLDER/bench/SET.json.
        how: quick or not, how many seeds, and on what.
        sets: names; all where none is named, or for a method all that the folder has.
        method: a file with a function or class called `delivery`, `loss` or `model`, or several of them, as a study
            takes them by path; the method is called after it. It is copied beside the study files, with what it
            imports from its folder.
        train: what trains a plan; None trains in silence.

    Raises:
        InputError: where a set or a method is not there, or where the folder has quick results beside which full ones
            would stand, or the other way round.
    """
    same_length(folder, quick=how.quick)
    how = replace(how, metrics=protocol.metrics)
    place = folder / STUDIES
    if method is None:
        entries = protocol.entries
    else:
        entries = (own_entry(method),)
        ran = [name for name, summary in read_summaries(folder, NAME).items() if not summary.missing]
        sets = sets or tuple(bench_set.name for bench_set in protocol.sets if bench_set.name in ran)
        place /= method.stem
        for inside, path in source_files(method.name, folder=method.parent).items():
            (place / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place / inside)
    place.mkdir(parents=True, exist_ok=True)
    for bench_set in protocol.chosen(sets):
        for entry in entries:
            if not entry.name or method is not None or entry.name in protocol.further(bench_set):
                yield from _run(protocol, bench_set, entry, store, folder, place, how, train)


def own_entry(file: Path) -> Entry:
    """The method of a user's file."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(f"{file}: this is no file of Python that can be read ({error}); give my_method.py") from error
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    has = {part: f"{file.name}:{part}" for part in PARTS if part in defined}
    if not has:
        raise InputError(
            f"{file}: it defines none of {', '.join(PARTS)}; call your function what it is, as in `def delivery(...)`"
        )
    if WITH in file.stem:
        raise InputError(f"{file}: a method's name cannot hold '{WITH}'; call the file otherwise")
    delivery, loss, model = (has.get(part, "") for part in PARTS)
    return Entry(name=file.stem, deliveries=(delivery or "soft",), model=model, loss=loss)


def same_length(folder: Path, *, quick: bool) -> None:
    """Refuses to put quick results beside those of a full run."""
    kept = read_summaries(folder, NAME) if any((folder / NAME).glob("*.json")) else {}
    if any(summary.quick != quick for summary in kept.values()):
        holds, option = ("full", "leave --quick out") if quick else ("quick", "give --quick")
        raise InputError(f"{folder}: it holds results of a {holds} run; {option}, or choose another folder with -o")


def refuse_other_protocol(protocol: Protocol, summaries: Mapping[str, StudySummary]) -> None:
    """Refuses summaries of studies that the protocol does not ask for: a page would say what never ran."""
    for bench_set, entry in product(protocol.sets, protocol.entries):
        summary = summaries.get(study_name(bench_set, entry))
        if summary is None or summary.missing:
            continue
        study = protocol_study(protocol, bench_set, entry, quick=summary.quick)
        asked, ran = (_decides(text) for text in (study_toml(study), summary.toml))
        # What `--quick` does to training is not the protocol's.
        tables = ("dataset", "targets") if summary.quick else asked.keys() | ran.keys()
        wrong = sorted(table for table in tables if asked.get(table) != ran.get(table))
        if wrong:
            raise InputError(
                f"bench: {summary.name} was run by another protocol, which differs in {', '.join(wrong)}; give that "
                "one with --protocol, or run dissensus bench into another folder"
            )
        lacking = [name for name in protocol.metrics if all(row["metric"] != name for row in summary.scores)]
        if lacking:
            raise InputError(
                f"bench: {summary.name} keeps no {', '.join(lacking)}; run dissensus bench on its store again (what is "
                "there is not trained again), or choose another metric"
            )


def _decides(text: str) -> dict[str, Any]:
    """What decides the numbers of a study file, whatever folder its files lie in; seeds may be fewer."""
    tables = tomllib.loads(without_place(text))
    grid, dataset = tables["grid"], tables["dataset"]
    named = {key: Path(value).name for key, value in dataset.items() if key in FILES and isinstance(value, str)}
    about = {"dataset": dataset | named, "splits": tables["splits"] | {"seed": 0}, "training": tables.get("training")}
    if "file" in about["splits"]:
        about["splits"]["file"] = Path(about["splits"]["file"]).name
    return about | {key: grid[key] for key in ("targets", "deliveries", "models")}


def _run(
    protocol: Protocol,
    bench_set: BenchSet,
    entry: Entry,
    store: Path,
    folder: Path,
    place: Path,
    how: Reproduction,
    train: Callable[[StudyPlan], object] | None,
) -> Iterator[StudySummary]:
    kind, name = protocol.kinds[bench_set.kind], study_name(bench_set, entry)
    if how.quick and (kind.quick is None or not bench_set.quick or entry.reads_items):
        return
    path = place / f"{name}.toml"
    path.write_text(study_text(protocol, bench_set, entry, quick=how.quick), encoding="utf-8")
    try:
        read_study(path)
    except InputError as error:
        # Where a version of dissensus has no such model, the others are still worth a table.
        yield _not_run(StudySummary(name=name, study=name, missing=str(error), quick=how.quick), folder, path)
        return
    quick = {key: value for key, value in (kind.quick or {}).items() if key not in ("model", "encoder")}
    if isinstance(bench_set.splits, str) or "folds" not in bench_set.splits:
        quick.pop("folds", None)
    studies = (StudyUse(name=name, quick=quick),)
    paper = Paper(name=NAME, title=protocol.title, studies=studies, claims=(), path=place / "protocol")
    for summary in reproduce(paper, store, folder, how=how, train=train):
        yield _not_run(summary, folder, path) if summary.missing else summary
        if not entry.name and not summary.missing:
            parts = as_asked(read_study(path), studies[0], how).parts
            opened = [open_study(part, store) for part in parts] if protocol.ensembles else []
            for delivery in protocol.ensembles:
                kept = _ensemble(delivery, opened, summary, how)
                write_summary(folder, NAME, kept)
                yield kept


def _ensemble(delivery: str, opened: Sequence[OpenStudy], alone: StudySummary, how: Reproduction) -> StudySummary:
    """The mean of what the seeds of a delivery predict, scored as one system; of folds, each item's own."""
    said, items = [], []
    for one in opened:
        runs = [one.store.load(run.key, dynamics=False, weights=False) for run in runs_by_system(one)[delivery]]
        split = one.data.held_out
        said.append(np.mean([run.predictions[split] for run in runs if not run.failed], axis=0, dtype=np.float64))
        items.append(one.data.splits[split])
    data, name = opened[0].data, f"{delivery}-ensemble"
    tested, predicted = np.concatenate(items), np.concatenate(said)
    trained = () if opened[0].study.folds else data.splits["train"]
    kept = scored_system(data, name, predicted, tested=tested, trained=trained, how=how) | {
        "toml": "",
        "trained_on": {},
    }
    # Scored on the votes that are left, so that it is no row among the others.
    human = data.human.take(tested) if data.votes is None else data.votes.take_items(tested)
    try:
        gains = combine(human, {name: predicted}, resamples=how.resamples).gains[:2]
        kept["measured"] = {WITH_VOTES: rounded([{**asdict(gain), "worth": str(gain.worth)} for gain in gains])}
    except InputError as error:
        kept["unmeasured"] = (str(error),)
    return replace(alone, name=f"{alone.name}{WITH}{name}", machine_hours=0.0, **kept)


def scored_system(
    data: TrainingData, name: str, predicted: Any, *, tested: Ints, trained: Sequence[int] | Ints, how: Reproduction
) -> dict[str, Any]:
    """What a summary keeps of one system's predictions (a file, or probabilities): scores without baselines, worth."""
    human = data.human.take(tested)
    evaluation = evaluate(
        human,
        {name: predicted},
        classes=human.classes,
        votes=data.votes,
        metrics=tuple(dict.fromkeys((*SHOWN, *how.metrics, *([ORDERED] if human.ordered else [])))),
        training=data.human.take(np.asarray(trained)) if len(trained) else None,
        resamples=how.resamples,
    )
    return {
        "items": evaluation.items,
        "scores": tuple(row for row in scores_of(evaluation) if not row["baseline"]),
        "worth": {system: str(worth) for system, worth in evaluation.worth.items()},
        "ruler": RULER,
    }


def _not_run(summary: StudySummary, folder: Path, path: Path) -> StudySummary:
    """The summary of what could not be run, kept without the places of this machine's files."""
    kept = replace(summary, missing=without_place(summary.missing.replace(str(path), path.name)))
    write_summary(folder, NAME, kept)
    return kept
