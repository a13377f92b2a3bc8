"""Running the benchmark: each set is a study, or several; what was run leaves a small summary, and is not run again."""

from __future__ import annotations

import ast
import re
import shutil
import unicodedata
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import product
from traceback import format_exception
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation import evaluate
from dissensus.own_code import source_files
from dissensus.together import combine
from dissensus_papers.bench.protocol import (
    NAMES,
    ORDERED,
    WITH,
    Entry,
    instead_of_file,
    protocol_study,
    study_name,
    study_text,
)
from dissensus_papers.papers.claims import Paper, StudyUse
from dissensus_papers.papers.kept import kept_summary, read_summaries, write_summary
from dissensus_papers.papers.measured import rounded
from dissensus_papers.papers.pages import SHOWN
from dissensus_papers.papers.running import as_asked, reproduce
from dissensus_papers.papers.summary import RULER, StudySummary, checksum, decides, scores_of, without_place
from dissensus_train.studies import open_study, read_study, runs_by_system, study_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

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

    Study files are kept in FOLDER/bench-studies and summaries in FOLDER/bench. `sets` are all where none is named, or
    for a method all that the folder has. `method` is a file with a function or class called `delivery`, `loss` or
    `model`, or several of them, as a study takes them by path; the method is called after it. It is copied beside the
    study files, with what it imports from its folder. `train` trains a plan, which None does in silence.

    Raises:
        InputError: where a set or a method is not there, or where the folder has quick results beside which full ones
            would stand, or the other way round; where the method's name is taken, or a set's votes are not those of
            its summary; and at the end where no set could be run.
    """
    kept = read_summaries(folder, NAME) if method is not None or any((folder / NAME).glob("*.json")) else {}
    if any(summary.quick != how.quick for summary in kept.values()):
        holds, option = ("full", "leave --quick out") if how.quick else ("quick", "give --quick")
        raise InputError(f"{folder}: it holds results of a {holds} run; {option}, or choose another folder with -o")
    how = replace(how, metrics=protocol.metrics)
    place = folder / STUDIES
    if method is not None:
        own = own_entry(method)
        sets = sets or tuple(on.name for on in protocol.sets if on.name in kept and not kept[on.name].missing)
        refuse_row(protocol, kept, name=method.stem, on=sets, folder=folder, external=False)
        place /= method.stem
        for inside, path in source_files(method.name, folder=method.parent).items():
            (place / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place / inside)
    place.mkdir(parents=True, exist_ok=True)
    made: list[StudySummary] = []
    for bench_set in protocol.chosen(sets):
        votes = ""
        # What cannot be read, the run says.
        with suppress(InputError):
            votes = checksum(held_out(protocol, bench_set)[0].human.counts) if bench_set.name in kept else ""
        _refuse_other_votes(kept, bench_set.name, votes)
        for entry in protocol.entries_on(bench_set) if method is None else (own,):
            try:
                for summary in _run(protocol, bench_set, entry, store, folder, place, how, train):
                    made.append(summary)
                    yield summary
            except (Exception, SystemExit) as error:
                if method is None or isinstance(error, InputError | OSError | MemoryError):
                    raise
                # Also of a worker, of whose traceback only the text is left.
                text = "".join(format_exception(error))
                lines = re.findall(rf'"{re.escape(str(place.resolve()))}.([^"]*)", line (\d+)', text)
                # What is called wrongly, or gives something else than it should, fails in our code.
                where = f"{lines[-1][0]}, line {lines[-1][1]}" if lines else method.name
                raise InputError(f"{where}: {type(error).__name__}: {error}; mend it, and add it again") from error
    # Rows without the deliveries of their set stand in no table.
    if all(summary.missing for summary in made if method is not None or WITH not in summary.name):
        for summary in made if method is not None else ():
            # It never stood in the table, and would be told of on every page.
            if (lost := kept_summary(folder, NAME, summary.name)) and lost.missing:
                (folder / NAME / f"{summary.name}.json").unlink()
        why = f"{made[0].name}: {made[0].missing}" if made else "quick runs leave all of these sets out"
        raise InputError(f"{method or 'bench'}: no set could be run, and no page is written; {why}")


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
    delivery, loss, model = (has.get(part, "") for part in PARTS)
    return Entry(name=file.stem, deliveries=(delivery or "soft",), model=model, loss=loss)


def refuse_row(
    protocol: Protocol, kept: Mapping[str, StudySummary], *, name: str, on: Iterable[str], folder: Path, external: bool
) -> None:
    """Refuses a row that no page would show, or whose name is no file's, or is read as another's."""
    if not (name.isascii() and NAMES.fullmatch(name)):
        raise InputError(
            f"bench: '{name[:60]}' cannot be a name in the table; use up to 50 letters from a to z (those of other "
            "alphabets may look the same), digits, spaces and - + . _"
        )
    systems = (row["system"] for one in protocol.sets if one.name in kept for row in kept[one.name].scores)
    named = (*protocol.named, *map(str, protocol.deliveries), *systems, "best achievable")
    taken = {_read_as(each): each for each in named}
    if (same := taken.get(_read_as(name))) is not None:
        as_read = "" if same == name else f" (it reads as '{same}')"
        raise InputError(f"bench: '{name}' is a method of the protocol{as_read}; give your system another name")
    for other, summary in ((key.partition(WITH)[2], summary) for key, summary in kept.items()):
        # A method of one's own is run again when it was edited.
        if _read_as(other) == _read_as(name) and (external or summary.external or other != name):
            raise InputError(
                f"bench: '{other}' is in the table already; give your system another name, or withdraw that one: "
                f"remove all of {folder / NAME}/*{WITH}{other}.json"
            )
    for each in on:
        if each not in kept or kept[each].missing:
            raise InputError(
                f"{folder / NAME}: there is no {each} to rank a row beside; run dissensus bench on it first"
            )


def _read_as(name: str) -> str:
    """What is left of a name to a reader in haste, and to a disk: letters and digits, whatever their case and form."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).casefold()))


def _refuse_other_votes(kept: Mapping[str, StudySummary], name: str, votes: str) -> None:
    """Refuses what is scored on other votes than the summary of its set; earlier summaries do not say on which."""
    on = name.partition(WITH)[0]
    stated = kept[on].data.get("votes", "") if on in kept else ""
    if votes and stated and votes != stated:
        raise InputError(
            f"bench: {name} has other votes (SHA-256 {votes[:12]}) than {on} was scored on ({stated[:12]}); take the "
            "same data, or another folder with -o"
        )


def refuse_unfit(protocol: Protocol, summaries: Mapping[str, StudySummary]) -> None:
    """Refuses summaries that cannot stand in one table.

    That is what was scored on other votes than its set, what lacks a metric, and studies that the protocol does not ask
    for: a page would say what never ran.
    """
    known = {bench_set.name for bench_set in protocol.sets}
    shown = {name: kept for name, kept in summaries.items() if name.partition(WITH)[0] in known and not kept.missing}
    if not known & set(shown):
        raise InputError(
            f"bench: of {', '.join(sorted(summaries)[:3])} none is a set of the protocol that was run; give their own "
            "with --protocol, or run dissensus bench"
        )
    for name, kept in summaries.items():
        _refuse_other_votes(summaries, name, kept.data.get("votes", ""))
    for bench_set, entry in product(protocol.sets, protocol.entries):
        summary = summaries.get(study_name(bench_set, entry))
        if summary is None or summary.missing:
            continue
        study = protocol_study(protocol, bench_set, entry, quick=summary.quick)
        asked, ran = decides(study_toml(study)), decides(summary.toml) if summary.toml else {}
        # What `--quick` does to training is not the protocol's.
        tables = ("dataset", "targets") if summary.quick else asked.keys() | ran.keys()
        wrong = sorted(table for table in tables if asked.get(table) != ran.get(table))
        if wrong:
            raise InputError(
                f"bench: {summary.name} was run by another protocol, which differs in {', '.join(wrong)}; give that "
                "one with --protocol, or run dissensus bench into another folder"
            )
    for name, summary in sorted(shown.items()):
        has, method = {row["metric"] for row in summary.scores}, name.partition(WITH)[2]
        # The entropies of a constant correlate with nothing, so that it has neither correlation.
        without = () if "entropy_spearman" in has else ("entropy_spearman", "entropy_pearson")
        lacking = [metric for metric in protocol.metrics if metric not in has and metric not in without]
        if lacking:
            add = " add" if method and method not in protocol.named else ""
            again = f"run dissensus bench{add} on its store again (what is there is not trained again)"
            again = "withdraw it and hand it in again" if summary.external else again
            raise InputError(f"bench: {name} keeps no {', '.join(lacking)}; {again}, or choose another metric")


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
        "cautions": alone.cautions,
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
    """What a summary keeps of one system's predictions: scores without baselines, worth, and cautions.

    These say that it was trained on such items, or scores better than anything could that does not know their votes.
    """
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
        "cautions": (*evaluation.warnings[: bool(evaluation.trained_on)], *evaluation.knowing.values()),
        "scores": tuple(row for row in scores_of(evaluation) if not row["baseline"]),
        "worth": {system: str(worth) for system, worth in evaluation.worth.items()},
        "ruler": RULER,
    }


def held_out(protocol: Protocol, bench_set: BenchSet) -> tuple[TrainingData, Ints, Ints]:
    """The data of a set, its items that are scored, and those that are trained on; none where it has folds.

    Encoders are left out of it: whose items are held out depends on votes and the split's seed alone.
    """
    study = protocol_study(protocol, bench_set, Entry(), quick=True).parts[0]
    data = open_study(study, "no-store").data
    if study.folds:
        # Each item is held out in one of the folds.
        return data, np.arange(len(data.human)), np.arange(0)
    return data, data.splits[data.held_out], data.splits["train"]


def _not_run(summary: StudySummary, folder: Path, path: Path) -> StudySummary:
    """The summary of what could not be run, kept without the places of this machine's files."""
    why = instead_of_file("the protocol: ", path, summary.missing).replace(str(path), path.name)
    kept = replace(summary, missing=without_place(why))
    write_summary(folder, NAME, kept)
    return kept
