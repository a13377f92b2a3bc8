"""Predictions that somebody hands in: checked, scored on the held-out items of each set, and kept as rows of the table.

A folder holds a file for each set, called as the set is: class probabilities of the items, as `dissensus evaluate`
takes them; or single votes (item, annotator, label), whose Dirichlet labels are scored. Files of LeWiDi 2025's shared
task (`CSC_test_soft.tsv`) are scored as its organisers do, in a table of their own.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import softmax

from dissensus.datasets import data_folder
from dissensus.errors import InputError, choices
from dissensus.evaluation import Predictions, align_predictions, read_predictions, read_reference, score_submission
from dissensus.labels import label
from dissensus.votes import read_votes
from dissensus_papers.bench.protocol import WITH, Entry, protocol_study
from dissensus_papers.bench.running import NAME, held_out, refuse_row, refuse_unfit, scored_system
from dissensus_papers.papers.kept import read_summaries, write_summary
from dissensus_papers.papers.running import Reproduction
from dissensus_papers.papers.summary import StudySummary, checksum
from dissensus_train.studies import open_study

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dissensus.arrays import Table
    from dissensus.labels import LabelDistribution
    from dissensus_papers.bench.protocol import BenchSet, Protocol

LEWIDI: Final = "lewidi-2025"
"""What rows of the shared task are kept under, and the folder of its data."""

_LEWIDI_FILE: Final = re.compile(r"(CSC|MP|Par|VariErrNLI)(?:aphrase)?_(dev|test)_(soft|pe)\.tsv", re.IGNORECASE)

SEPARATORS: Final = {".csv": ",", ".tsv": "\t"}
"""Of files that may hold single votes."""

COPY: Final = "these are the votes that they would be scored on; hand in what the system says without them"

COPIED: Final = 0.95
"""Predictions that are, to two decimals, the shares of votes on this share of the items on which people differ are no
predictions, nor are shares that were mixed with a constant or put at a temperature; of fewer than 10 such items, chance
may do it."""


def submit(
    protocol: Protocol, predictions: Path, folder: Path, *, name: str, description: str, resamples: int = 1000
) -> Iterator[StudySummary]:
    """Score the files of a submission, and keep a summary of each: FOLDER/bench/SET--NAME.json.

    `predictions` is a folder with a file for each set, SET.csv say; sets without a file are not entered. `name` and
    `description`, a sentence, are of the system.

    Raises:
        InputError: where the name is taken, or a file is no set's, lacks an item or a class, or holds the votes that it
            is scored on; nothing is kept then.
    """
    kept, known = read_summaries(folder, NAME), {bench_set.name: bench_set for bench_set in protocol.sets}
    if not description.strip():
        raise InputError("bench: a row needs a description; say in a sentence what the system is and learnt from")
    files = [path for path in sorted(predictions.glob("*")) if path.is_file() and not path.name.startswith(".")]
    if not files:
        raise InputError(f"{predictions}: there is no file here; put one for each set, such as {next(iter(known))}.csv")
    of_what: dict[str, Path] = {}
    for path in files:
        task = _LEWIDI_FILE.fullmatch(path.name)
        # Par is Paraphrase.
        what = "_".join(task.groups()).lower() if task else path.stem
        if not task and what not in known:
            raise InputError(
                f"{path}: '{what}' is no set of the protocol{choices(what, known)}; call each file as its set"
            )
        if what in of_what:
            raise InputError(f"{path}: {of_what[what].name} is of the same; give one file for each set and task")
        of_what[what] = path
    of_sets = [known[what] for what in of_what if what in known]
    refuse_row(protocol, kept, name=name, on=[on.name for on in of_sets], folder=folder, external=True)
    made = [_scored(protocol, on, of_what[on.name], name=name, resamples=resamples) for on in of_sets]
    if len(of_sets) < len(files):
        rows = [vars(score) for score in score_submission(predictions, Path(data_folder()) / LEWIDI)]
        for row in rows:
            if round(row["score"], 3) == 0:
                raise InputError(f"{predictions}: of {row['dataset']} ({row['task']}) {COPY}")
            if row["task"] == "soft":
                path = of_what[f"{row['dataset'].replace('Paraphrase', 'Par')}_{row['split']}_soft".lower()]
                _refuse_copies(path, *_soft_labels(path, f"{row['dataset']}_{row['split']}.json"))
        told = [f"{row['dataset']} {row['split']} {row['task']}: {row['measure']} {row['score']:.3f}" for row in rows]
        measured = {"lewidi": rows, "notes": told}
        made.append(StudySummary(name=f"{LEWIDI}{WITH}{name}", study=LEWIDI, measured=measured))
    quick = any(summary.quick for summary in kept.values())
    made = [replace(summary, external=description.strip(), quick=quick) for summary in made]
    refuse_unfit(protocol, kept | {summary.name: summary for summary in made})
    for summary in made:
        write_summary(folder, NAME, summary)
        yield summary


def _scored(protocol: Protocol, bench_set: BenchSet, path: Path, *, name: str, resamples: int) -> StudySummary:
    data, tested, trained = held_out(protocol, bench_set)
    how, human = Reproduction(metrics=protocol.metrics, resamples=resamples), data.human.take(tested)
    try:
        _, said, _ = align_predictions(human, {name: _read(path, human)})
    except InputError as error:
        wrong, _, remedy = error.sentence.partition("; give one prediction for each item")
        if not remedy:
            raise
        # Items to train on have votes too.
        wrong = wrong.removeprefix(f"{name}: ").replace("items without votes", "items that are not held out")
        raise InputError(
            f"{path}: {wrong}; give the {len(tested):,} held-out items of {bench_set.name}, "
            f"and no others: dissensus bench splits {bench_set.name} lists them, with --protocol where it is your own"
        ) from error
    _refuse_copies(path, said[name].probabilities[..., : len(human.classes)], human.probabilities)
    scored = scored_system(data, name, said[name], tested=tested, trained=trained, how=how)
    return StudySummary(
        name=f"{bench_set.name}{WITH}{name}",
        study=bench_set.name,
        split="test",
        votes=float(data.human.panel_size[trained if len(trained) else tested].mean()),
        seeds=tuple(range(len(said[name].probabilities))),
        measured={"notes": [note.replace(str(path), path.name) for note in said[name].notes]},
        data={"votes": checksum(data.human.counts), "predictions": sha256(path.read_bytes()).hexdigest()},
        **scored,
    )


def _soft_labels(path: Path, reference: str) -> tuple[Any, Table]:
    """What a file of LeWiDi's soft task says, as one run, and people's shares; of labels apart, one after the other."""
    lines = (line.partition("\t") for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    given = {item.strip(): json.loads(values) for item, _, values in lines}
    people = read_reference(Path(data_folder()) / LEWIDI / reference)
    shares = people.soft.reshape(-1, people.soft.shape[2])
    said = np.array([given[item] for item in people.items], dtype=np.float64)
    # Seven values of CSC begin with a rating that nobody could give.
    return said.reshape(len(shares), -1)[None, :, -shares.shape[1] :], shares


def _refuse_copies(path: Path, runs: Any, shares: Table) -> None:
    """Refuses (runs, items, classes) predictions of which a run is the shares of votes."""
    varied = shares.max(axis=1) < 1
    told = np.ptp(runs, axis=1).max(axis=1) > 0.005
    # Of two people who differ, one and the same distribution is right every time: all items are looked at then.
    chosen = varied if varied.any() and np.ptp(shares[varied], axis=0).max() > 0.005 else np.ones_like(varied)
    if varied.sum() >= 10 and any(_copies(one[chosen], shares[chosen]) for one in runs[told]):
        raise InputError(f"{path}: {COPY}")


def _copies(said: Table, shares: Table) -> bool:
    """Whether (items, classes) predictions are the shares of votes, these mixed with a constant, or at a temperature.

    That is s, a s + b with a value of b for each class, or s^t made to sum to 1; a, b and t are fitted.
    """
    spread = shares - shares.mean(axis=0)
    a = float((spread * said).sum() / max(float((spread**2).sum()), 1e-12))
    known, log_q, log_s = shares > 0, np.log(np.maximum(said, 1e-12)), np.log(np.maximum(shares, 1e-12))
    centred = np.where(known, log_s - log_s.mean(axis=1, keepdims=True, where=known), 0.0)
    t = float((centred * log_q).sum() / max(float((centred**2).sum()), 1e-12))
    # Few that were changed would turn a fit; what holds less than half of the shares is hardly theirs.
    undone = [said]
    if a >= 0.5:
        undone.append(shares.mean(axis=0) + (said - said.mean(axis=0)) / a)
    if 0.1 <= t <= 10:
        undone.append(softmax(log_q / t, axis=1))
    return any((np.abs(one - shares).max(axis=1) <= 0.005).mean() >= COPIED for one in undone)


def _read(path: Path, human: LabelDistribution) -> Predictions:
    """Read predictions from a file. Single votes become Dirichlet labels. `read_predictions` reads other files."""
    columns: list[str] = []
    if (separator := SEPARATORS.get(path.suffix.lower())) is not None:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            columns = next(csv.reader(file, delimiter=separator), [])
    single = "annotator" in columns and not set(human.classes) & set(columns)
    try:
        if not single:
            return read_predictions(path, human.classes, order=human.classes, shown=human.shown)
        votes = read_votes(path, classes=human.classes)
    except InputError as error:
        # What else a reader could be told of the file, this command cannot: the file has to say it.
        sentence = error.sentence.removesuffix(", or choose")
        wrong, _, remedy = sentence.rpartition("; ")
        if re.search(r"\b[a-z_]+=", remedy) or (error.readings and sentence == error.sentence):
            classes = ", ".join(human.classes)
            wanted = f"item, annotator and label (of {classes})" if single else f"item, {classes}"
            sentence = f"{wrong or remedy}; give a file with the columns {wanted}"
        raise InputError(sentence) from error
    # With few votes the frequency of a class can be 0. Soft NLL is infinite if other people choose that class.
    shares = label(votes, "dirichlet")
    return Predictions(
        probabilities=shares.probabilities[None],
        items=shares.items,
        classes=shares.classes,
        seeds=(0,),
        notes=tuple(f"{path}: {note}" for note in votes.notes),
    )


def split_rows(protocol: Protocol, bench_set: BenchSet) -> Iterator[list[Any]]:
    """A head and rows: item, split, where items are held out in turn the fold, and by class the votes to train on.

    Of a set whose votes were cut these are the votes that are left; held-out items have none.
    """
    study = protocol_study(protocol, bench_set, Entry(), quick=True)
    folds = [[number] if study.folds else [] for number, _ in enumerate(study.parts, start=1)]
    for fold, part in zip(folds, study.parts, strict=True):
        data = open_study(part, "no-store").data
        if fold in ([], [1]):
            yield ["item", "split", *(["fold"] if fold else []), *data.human.classes]
        given = data.targets[part.targets[0].name].counts
        for split, members in data.splits.items():
            for item, votes in zip(data.human.items[members].tolist(), given[members].tolist(), strict=True):
                yield [item, split, *fold, *([""] * len(votes) if split == data.held_out else votes)]
