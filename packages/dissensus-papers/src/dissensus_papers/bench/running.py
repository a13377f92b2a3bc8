"""Running the benchmark: each set is a study, or several; what was run leaves a small summary, and is not run again."""

from __future__ import annotations

import ast
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dissensus.errors import InputError
from dissensus.own_code import source_files
from dissensus_papers.bench.protocol import WITH, Entry, study_name, study_text
from dissensus_papers.papers.claims import Paper, StudyUse
from dissensus_papers.papers.running import reproduce
from dissensus_papers.papers.summary import StudySummary, read_summaries, without_place, write_summary
from dissensus_train.studies.spec import read_study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from dissensus_papers.bench.protocol import BenchSet, Protocol
    from dissensus_papers.papers.running import Reproduction
    from dissensus_train.studies.running import StudyPlan

NAME: Final = "bench"
"""Of the folder of summaries, and of the pages."""

STUDIES: Final = "bench-studies"
"""The folder of the study files that were run."""

PARTS: Final = ("delivery", "loss", "model")
"""What functions or classes of a user's file are called that are to be used."""


def run_bench(
    protocol: Protocol,
    store: Path,
    folder: Path,
    *,
    how: Reproduction,
    sets: tuple[str, ...] = (),
    train: Callable[[StudyPlan], None] | None = None,
) -> Iterator[StudySummary]:
    """Run every delivery and annotator-aware model on the sets, one set after the other.

    Args:
        protocol: what is run.
        store: the folder that runs are kept in and resumed from.
        folder: where study files and summaries are kept: FOLDER/bench/SET.json.
        how: quick or not, how many seeds, and on what.
        sets: names; all where none is named.
        train: what trains a plan; None trains in silence.
    """
    same_length(folder, quick=how.quick)
    for each in protocol.chosen(sets):
        people = [Entry(name=kind, people=kind) for kind in protocol.people if each.people]
        entries = [Entry(deliveries=protocol.deliveries), *people]
        yield from _run(protocol, [(each, entry) for entry in entries], store, folder, folder / STUDIES, how, train)


def run_added(
    protocol: Protocol,
    file: Path,
    store: Path,
    folder: Path,
    *,
    how: Reproduction,
    sets: tuple[str, ...] = (),
    train: Callable[[StudyPlan], None] | None = None,
) -> Iterator[StudySummary]:
    """Run a user's method on the sets that the folder has, under the same protocol; its name is that of the file.

    The file has a function or class called `delivery`, `loss` or `model`, or several of them, as a study takes them by
    path. It is copied beside the study files, with what it imports from its folder. The arguments are those of
    `run_bench`.
    """
    same_length(folder, quick=how.quick)
    there = read_summaries(folder, NAME)
    ran = tuple(each.name for each in protocol.sets if each.name in there and not there[each.name].missing)
    entry = own_entry(file)
    place = folder / STUDIES / entry.name
    place.mkdir(parents=True, exist_ok=True)
    for inside, path in source_files(file.name, folder=file.parent).items():
        (place / inside).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place / inside)
    pairs = [(each, entry) for each in protocol.chosen(sets or ran)]
    yield from _run(protocol, pairs, store, folder, place, how, train)


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
    return Entry(
        name=file.stem,
        deliveries=(has.get("delivery", "soft"),),
        model=has.get("model", ""),
        loss=has.get("loss", ""),
    )


def same_length(folder: Path, *, quick: bool) -> None:
    """Refuses to put quick results beside those of a full run."""
    if not any((folder / NAME).glob("*.json")):
        return
    if any(each.quick != quick for each in read_summaries(folder, NAME).values()):
        holds, option = ("full", "leave --quick out") if quick else ("quick", "give --quick")
        raise InputError(f"{folder}: it holds results of a {holds} run; {option}, or choose another folder with -o")


def _run(
    protocol: Protocol,
    pairs: Sequence[tuple[BenchSet, Entry]],
    store: Path,
    folder: Path,
    place: Path,
    how: Reproduction,
    train: Callable[[StudyPlan], None] | None,
) -> Iterator[StudySummary]:
    place.mkdir(parents=True, exist_ok=True)
    for bench_set, entry in pairs:
        kind = protocol.kinds[bench_set.kind]
        if how.quick and (kind.quick is None or not bench_set.quick):
            continue
        name = study_name(bench_set, entry)
        path = place / f"{name}.toml"
        path.write_text(study_text(protocol, bench_set, entry, quick=how.quick), encoding="utf-8")
        try:
            read_study(path)
        except InputError as error:
            # Where a version of dissensus has no such model, the others are still worth a table.
            yield _not_run(StudySummary(name=name, study=name, missing=str(error), quick=how.quick), folder, path)
            continue
        quick = {key: value for key, value in (kind.quick or {}).items() if key not in ("model", "encoder")}
        if isinstance(bench_set.splits, str) or "folds" not in bench_set.splits:
            quick.pop("folds", None)
        paper = Paper(
            name=NAME,
            title=protocol.title,
            authors="",
            link="",
            question=protocol.question,
            studies=(StudyUse(name=name, quick=quick),),
            claims=(),
            path=place / "protocol",
        )
        for summary in reproduce(paper, store, folder, how=how, train=train):
            yield _not_run(summary, folder, path) if summary.missing else summary


def _not_run(summary: StudySummary, folder: Path, path: Path) -> StudySummary:
    """The summary of what could not be run, kept without the places of this machine's files."""
    told = replace(summary, missing=without_place(summary.missing.replace(str(path), path.name)))
    write_summary(folder, NAME, told)
    return told
