"""Predictions that somebody hands in: checked, scored on the held-out items of each set, and kept as rows of the table.

A folder holds a file for each set, called as the set is: class probabilities of the items, as `dissensus evaluate`
takes them; or single votes (item, annotator, label), whose frequencies are scored. Files of LeWiDi 2025's shared task
(`CSC_test_soft.tsv`) are scored as its organisers do, in a table of their own.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.datasets import data_folder
from dissensus.errors import InputError, choices
from dissensus.evaluation import score_submission
from dissensus_papers.bench.protocol import WITH, Entry, protocol_study
from dissensus_papers.bench.running import NAME, scored_system
from dissensus_papers.papers.running import Reproduction
from dissensus_papers.papers.summary import StudySummary, read_summaries, write_summary
from dissensus_train.studies import open_study

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dissensus.arrays import Ints
    from dissensus_papers.bench.protocol import BenchSet, Protocol
    from dissensus_train.training import TrainingData

LEWIDI: Final = "lewidi-2025"
"""What rows of the shared task are kept under, and the folder of its data."""

_LEWIDI_FILE: Final = re.compile(r"(CSC|MP|Par(aphrase)?|VariErrNLI)_(dev|test)_(soft|pe)\.tsv", re.IGNORECASE)
_NAMES: Final = re.compile(r"[\w.+ -]*\w")


def submit(
    protocol: Protocol, predictions: Path, folder: Path, *, name: str, description: str, resamples: int = 1000
) -> Iterator[StudySummary]:
    """Score the files of a submission, and keep a summary of each: FOLDER/bench/SET--NAME.json.

    Args:
        protocol: whose sets and splits are scored on.
        predictions: a folder with a file for each set, SET.csv say; sets without a file are not entered.
        folder: of the benchmark's results.
        name: of the system, in tables.
        description: what it is, in a sentence.
        resamples: of items and seeds, behind each interval.

    Raises:
        InputError: where a file is no set's, or lacks an item or a class; nothing is kept then.
    """
    if not _NAMES.fullmatch(name) or WITH in name:
        raise InputError(f"bench: '{name}' cannot be a name in the table; use letters, digits, spaces and - + . _")
    if not description.strip():
        raise InputError("bench: a row needs a description; say in a sentence what the system is and learnt from")
    known = {bench_set.name: bench_set for bench_set in protocol.sets}
    taken = {*protocol.named, *protocol.baselines, *map(str, protocol.deliveries)}
    if name in taken:
        raise InputError(f"bench: '{name}' is a method of the protocol; give your system another name")
    files = [path for path in sorted(predictions.glob("*")) if path.is_file() and not path.name.startswith(".")]
    tasks = [path for path in files if _LEWIDI_FILE.fullmatch(path.name)]
    of_sets = {path.stem: path for path in files if path not in tasks}
    for stem, path in of_sets.items():
        if stem not in known:
            raise InputError(
                f"{path}: '{stem}' is no set of the protocol{choices(stem, known)}; call each file as its set"
            )
    if not files:
        raise InputError(f"{predictions}: there is no file here; put one for each set, such as {next(iter(known))}.csv")
    about: dict[str, Any] = {"external": description.strip(), "quick": _quick(folder)}
    made = [
        _scored(protocol, known[stem], path, name=name, resamples=resamples, about=about)
        for stem, path in of_sets.items()
    ]
    if tasks:
        rows = [vars(score) for score in score_submission(predictions, Path(data_folder()) / LEWIDI)]
        made.append(StudySummary(name=f"{LEWIDI}{WITH}{name}", study=LEWIDI, measured={"lewidi": rows}, **about))
    for summary in made:
        write_summary(folder, NAME, summary)
        yield summary


def _quick(folder: Path) -> bool:
    return any(summary.quick for summary in read_summaries(folder, NAME).values())


def _scored(
    protocol: Protocol, bench_set: BenchSet, path: Path, *, name: str, resamples: int, about: dict[str, Any]
) -> StudySummary:
    data, tested, trained = held_out(protocol, bench_set)
    how = Reproduction(metrics=protocol.metrics, resamples=resamples)
    try:
        scored = scored_system(data, name, path, tested=tested, trained=trained, how=how)
    except InputError as error:
        wrong, _, remedy = error.sentence.partition("; give one prediction for each item")
        if not remedy:
            raise
        raise InputError(
            f"{path}: {wrong.removeprefix(f'{name}: ')}; give the {len(tested):,} held-out items of {bench_set.name}, "
            f"and no others: dissensus bench splits {bench_set.name} lists them"
        ) from error
    seeds = max(len(row["by_seed"]) for row in scored["scores"])
    return StudySummary(
        name=f"{bench_set.name}{WITH}{name}",
        study=bench_set.name,
        split="test",
        votes=float(data.human.panel_size[trained if len(trained) else tested].mean()),
        seeds=tuple(range(seeds)),
        data={
            "votes": sha256(data.human.take(tested).counts.tobytes()).hexdigest(),
            "predictions": sha256(path.read_bytes()).hexdigest(),
        },
        **scored,
        **about,
    )


def split_rows(protocol: Protocol, bench_set: BenchSet) -> Iterator[str]:
    """Lines of CSV: item, split, and where items are held out in turn, the fold."""
    study = protocol_study(protocol, bench_set, Entry(), quick=True)
    yield "item,split,fold" if study.folds else "item,split"
    for number, part in enumerate(study.parts, start=1):
        data = open_study(part, "no-store").data
        for split, members in data.splits.items():
            fold = f",{number}" if study.folds else ""
            yield from (f"{item},{split}{fold}" for item in data.human.items[members].tolist())


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
