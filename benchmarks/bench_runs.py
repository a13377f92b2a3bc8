"""The benchmark's runs on the cores of another machine, which has PyTorch, NumPy and SciPy and nothing of ours.

    python -m benchmarks.bench_runs prepare .bench hs-brexit dices             # here: data and specs of these sets
    python -m benchmarks.bench_runs train .bench --processes 12 --seconds 540  # there: into $OUT/rows.tar as it goes
    python -m benchmarks.bench_runs store rows.tar STORE                       # here: what came back, into a run store

Runs on texts take a core a few seconds each; those on images are trained together on the GPU (`--device cuda`), and
CIFAR-10N's training images travel as the JPEG that they are here (`--jpegs`), in a folder of their own. `train` leaves
out what is listed in FOLDER/done-*.txt, and writes such a list. Weights, and predictions of training items, stay
behind: no score needs them.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import lzma
import multiprocessing
import os
import pickle
import tarfile
import time
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dissensus_train.training.data import TRAIN, TrainingData
from dissensus_train.training.engine import train as train_runs
from dissensus_train.training.fleet import FLEET, alike
from dissensus_train.training.models import LOGISTIC
from dissensus_train.training.run import data_fingerprint
from dissensus_train.training.tuning import trials

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dissensus_train.training.run import Run, RunResult

QUEUE = "queue.pickle.gz"
MINILM = "minilm.pickle.gz"
IMAGES = "images.npz"
"""CIFAR-10's test images: all of CIFAR-10H's, and the last of CIFAR-10N's."""

TESTED = 10_000
SECONDS_A_STEP = 0.0025
"""Of a ResNet-18 among 16 on an H200, until a group has been timed."""

MOST_BYTES = 15 << 20
"""Of what comes back from one call."""

WRITTEN_EVERY = 20.0
"""Seconds between two writings of what is there."""


@dataclass(frozen=True)
class Job:
    """A set, or a fold of one, and runs on it."""

    name: str
    data: TrainingData
    runs: tuple[Run, ...]

    @property
    def images(self) -> bool:
        """Whether its items are CIFAR's."""
        return self.data.shape == (3, 32, 32)


# --- here -----------------------------------------------------------------------------------------------------------


def jobs_of(names: Sequence[str], *, methods: Sequence[str], seeds: int, protocol: Path | None) -> Iterator[Job]:
    """What the protocol asks of some sets; all methods, or those that are named ('' for all deliveries)."""
    from dissensus_papers.bench import read_protocol
    from dissensus_papers.bench.protocol import protocol_study
    from dissensus_train.studies import open_study

    asks = read_protocol(protocol)
    for bench_set in asks.chosen(tuple(names)):
        by_data: dict[tuple[str, bool], Job] = {}
        for entry in asks.entries_on(bench_set):
            if methods and entry.name not in methods:
                continue
            study = protocol_study(asks, bench_set, entry, quick=False)
            for part in replace(study, seeds=study.seeds[: seeds or None]).parts:
                opened = open_study(part, "no-store")
                place = part.name.replace(f"--{entry.name}", ""), entry.reads_items
                known = by_data.setdefault(
                    place, Job(place[0], _needed(opened.data, entry.reads_items, bench_set.people), ())
                )
                by_data[place] = replace(known, runs=known.runs + opened.runs)
        for job in by_data.values():
            for run in job.runs:
                _same_data(run, job.data)
            print(f"{job.name}: {len(job.runs)} runs on features {job.data.features.shape}", flush=True)
            yield job


def _needed(data: TrainingData, reads_items: bool, people: bool) -> TrainingData:
    """The data without what runs of the protocol do not read."""
    items = data.items if reads_items else None
    votes = replace(data.votes, item_attributes={}) if people and data.votes is not None else None
    return replace(data, items=items, votes=votes, panels={}, encoder=None, folder=None)


def _same_data(run: Run, data: TrainingData, *, decoded: bool = False) -> None:
    about: dict[str, Any] = {name: getattr(run, name) for name in ("target", "delivery", "training", "model", "people")}
    found = data_fingerprint(data, **about)
    if decoded:
        # Another version of a JPEG decoder may differ by a grey level, which is no other data.
        print(f"{data.name}: decoded here, data {found}, planned on {run.data}", flush=True)
    else:
        assert found == run.data, f"{data.name}: {run.method} was planned on other data"


def prepare(folder: Path, jobs: Iterator[Job]) -> None:
    """Write data and runs into one file, each table of features once."""
    tables: dict[str, tuple[Any, bytes]] = {}
    listed, read = [], []
    folder.mkdir(parents=True, exist_ok=True)
    for job in jobs:
        read += [job] if job.data.items is not None else []
        features = np.ascontiguousarray(job.data.features)
        name = "" if job.images else hashlib.sha256(features.tobytes()).hexdigest() + str(features.shape)
        if job.images:
            np.savez_compressed(folder / IMAGES, images=np.rint(features[-TESTED:] * 255).astype(np.uint8))
        elif name not in tables:
            tables[name] = features.shape, shuffled(features)
        listed.append((job.name, name, vars(job.data) | {"features": None}, job.runs))
    with gzip.open(folder / QUEUE, "wb", compresslevel=4) as file:
        pickle.dump((tables, listed), file)
    size = (folder / QUEUE).stat().st_size / 2**20
    print(f"{sum(len(runs) for *_, runs in listed)} runs, {size:.1f} MiB in {folder / QUEUE}")
    if read:
        carry_minilm(folder, read)


def carry_minilm(folder: Path, jobs: Sequence[Job]) -> None:
    """MiniLM with the embeddings of the tokens that the jobs' texts hold; others are never looked up there."""
    from safetensors.numpy import load_file
    from transformers import AutoTokenizer

    from dissensus_train.encoders.pretrained import minilm_folder

    whole = minilm_folder()
    tokeniser = AutoTokenizer.from_pretrained(whole)
    items = [job.data.items for job in jobs if job.data.items is not None]
    texts = [str(text) for shown in items for column in shown.texts for text in column.tolist()]
    ids = np.unique(np.concatenate([*tokeniser(texts)["input_ids"], tokeniser.all_special_ids]))
    arrays = load_file(whole / "model.safetensors")
    words = next(name for name in arrays if name.endswith("word_embeddings.weight"))
    rows = {name: array.shape for name, array in arrays.items()}
    arrays[words] = arrays[words][ids]
    kept = {name: (rows[name], array.dtype.str, _bytes(array)) for name, array in arrays.items()}
    with gzip.open(folder / MINILM, "wb", compresslevel=4) as file:
        files = {path.name: path.read_bytes() for path in whole.iterdir() if path.suffix in (".json", ".txt")}
        pickle.dump((words, ids, kept, files), file)
    print(f"{len(ids)} tokens, {(folder / MINILM).stat().st_size / 2**20:.1f} MiB in {folder / MINILM}")


def _bytes(array: np.ndarray[Any, Any]) -> bytes:
    return shuffled(array) if array.dtype == np.float32 else array.tobytes()


def unpack_minilm(folder: Path) -> None:
    """The folder that `hf:minilm` is looked for in."""
    from safetensors.numpy import save_file

    with gzip.open(folder / MINILM, "rb") as file:
        words, ids, kept, files = pickle.load(file)
    place = folder / "minilm"
    place.mkdir(exist_ok=True)
    arrays = {}
    for name, (shape, kind, data) in kept.items():
        flat = unshuffled(data) if kind == np.dtype(np.float32).str else np.frombuffer(data, dtype=kind)
        if name == words:
            arrays[name] = np.zeros(shape, dtype=np.float32)
            arrays[name][ids] = flat.reshape(len(ids), -1)
        else:
            arrays[name] = np.ascontiguousarray(flat.reshape(shape))
    for name, data in files.items():
        (place / name).write_bytes(data)
    save_file(arrays, place / "model.safetensors", metadata={"format": "pt"})


def carried(folder: Path, jpegs: Path) -> list[Job]:
    """What was prepared; refused where the code here, or the data, give a run another key."""
    from benchmarks.paper_runs import cifar_features

    with gzip.open(folder / QUEUE, "rb") as file:
        tables, listed = pickle.load(file)
    features = {name: unshuffled(data).reshape(shape) for name, (shape, data) in tables.items()}
    fields = TrainingData.__dataclass_fields__
    jobs = []
    for job, name, about, runs in listed:
        known = {key: value for key, value in about.items() if key in fields}
        decoded = not name and len(known["human"]) > TESTED
        table = features[name] if name else cifar_features(folder / IMAGES, jpegs if decoded else None)
        data = TrainingData(**known | {"features": table, "folder": folder})
        _same_data(runs[0], data, decoded=decoded)
        jobs.append(Job(job, data, runs))
    return jobs


def store(tar: Path, folder: Path) -> None:
    """Put what came back into a run store."""
    from dissensus_train.training.store import RunWriter

    number = 0
    with RunWriter(folder) as writer, tarfile.open(tar) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is not None and member.name.endswith(".xz"):
                for result in unpacked(file.read()):
                    writer.save(result)
                    number += 1
    print(f"{number} runs of {tar} are in {folder}")


# --- there ----------------------------------------------------------------------------------------------------------


def shuffled(array: np.ndarray[Any, Any]) -> bytes:
    """float32 numbers as all their first bytes, then all their second ones, which compresses by a third more."""
    flat = np.ascontiguousarray(array, dtype=np.float32).ravel()
    return np.ascontiguousarray(flat.view(np.uint8).reshape(-1, 4).T).tobytes()


def unshuffled(data: bytes) -> np.ndarray[Any, np.dtype[np.float32]]:
    """(numbers,) the same again."""
    return np.ascontiguousarray(np.frombuffer(data, dtype=np.uint8).reshape(4, -1).T).view(np.float32).ravel()


def packed(results: Sequence[RunResult]) -> bytes:
    """Results as bytes. Only the majority's predictions of validation are needed, to which a temperature is fitted."""
    arrays: list[np.ndarray[Any, Any]] = []
    bare = []
    for result in results:
        unread = {TRAIN} if result.run.delivery == "majority" else {TRAIN, "validation"}
        kept = {split: said for split, said in result.predictions.items() if split not in unread}
        arrays += [np.ascontiguousarray(said, dtype=np.float32) for said in kept.values()]
        shapes = {split: said.shape for split, said in kept.items()}
        bare.append(replace(result, predictions=shapes, weights={}, dynamics={}, by_vote={}))
    flat = np.concatenate([array.ravel() for array in arrays])
    return lzma.compress(pickle.dumps((bare, shuffled(flat))), preset=3)


def unpacked(data: bytes) -> Iterator[RunResult]:
    """The results again."""
    bare, numbers = pickle.loads(lzma.decompress(data))
    flat, begin = unshuffled(numbers), 0
    for result in bare:
        predictions = {}
        for split, shape in result.predictions.items():
            predictions[split] = flat[begin : begin + int(np.prod(shape))].reshape(shape).copy()
            begin += int(np.prod(shape))
        yield replace(result, predictions=predictions)


def tasks_of(jobs: Sequence[Job], done: set[str]) -> list[tuple[int, tuple[int, ...]]]:
    """A job and the places of runs in it, the longest first; fits that are the same for all seeds are one task."""
    costs = []
    for number, job in enumerate(jobs):
        votes = float(job.data.human.counts[job.data.splits[TRAIN]].sum())
        together: dict[str, list[int]] = {}
        for place, run in enumerate(job.runs):
            if run.key not in done:
                together.setdefault(LOGISTIC if run.model == LOGISTIC else run.key, []).append(place)
        for places in together.values():
            run = job.runs[places[0]]
            examples = votes if run.people or run.delivery == "repeated" else len(job.data.splits[TRAIN])
            width = job.data.features[:1].size + 100
            costs.append((examples * width * (len(trials(run)) or 1), number, tuple(places)))
    costs.sort(key=lambda each: -each[0])
    return [(number, places) for _, number, places in costs]


_jobs: list[Job] = []
_device = "cpu"


def _do(task: tuple[int, tuple[int, ...]]) -> list[RunResult]:
    torch.set_num_threads(1)
    number, places = task
    job = _jobs[number]
    return list(train_runs([job.runs[place] for place in places], job.data, engine="loop", device=_device))


def on_cores(tasks: Sequence[tuple[int, tuple[int, ...]]], processes: int) -> Iterator[list[RunResult]]:
    """Results of each task; at least once a second something, which may be nothing."""
    if not tasks:
        return
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        results = pool.imap_unordered(_do, tasks)
        left = len(tasks)
        while left:
            try:
                yield results.next(timeout=1.0)
                left -= 1
            except multiprocessing.TimeoutError:
                yield []


def in_fleets(jobs: Sequence[Job], done: set[str], device: str, ends: float) -> Iterator[list[RunResult]]:
    """Results of groups that fill a GPU, until the next one would not end in time."""
    a_step = SECONDS_A_STEP
    for job in jobs:
        for group in alike([run for run in job.runs if run.key not in done], job.data):
            for runs in (group[first : first + FLEET] for first in range(0, len(group), FLEET)):
                settings, began = runs[0].training, time.monotonic()
                steps = len(runs) * settings.epochs * -(-len(job.data.splits[TRAIN]) // settings.batch_size)
                if began + steps * a_step > ends:
                    return
                yield list(train_runs(runs, job.data, device=device))
                a_step = (time.monotonic() - began) / steps
                print(f"{job.name}: {len(runs)} runs, {1000 * a_step:.2f} ms a step", flush=True)


def parts_of(path: Path) -> list[bytes]:
    """What an earlier start has written: its runs are listed as done, and would be lost with it."""
    if not path.is_file():
        return []
    with tarfile.open(path) as archive:
        return [archive.extractfile(member).read() for member in archive.getmembers()]  # type: ignore[union-attr]


def train(
    folders: Sequence[Path], out: Path, *, seconds: float, device: str, processes: int, name: str, jpegs: Path
) -> None:
    """Train what is not done yet until the time is up, and keep what there is in one tar file."""
    global _jobs, _device
    ends = time.monotonic() + seconds
    _jobs, _device, done = [], device, set()
    for folder in folders:
        if (folder / MINILM).is_file():
            unpack_minilm(folder)
        _jobs += carried(folder, jpegs)
        done |= {key for path in folder.glob("done-*.txt") for key in path.read_text(encoding="utf-8").split()}
    tasks = [task for task in tasks_of(_jobs, done) if not _jobs[task[0]].images]
    left = sum(run.key not in done for job in _jobs for run in job.runs)
    print(f"{name}: {left} runs wait, {len(done)} are done already", flush=True)
    parts = parts_of(out / f"{name}.tar")
    waiting: list[RunResult] = []
    finished: list[str] = []
    written = time.monotonic()

    def write() -> None:
        nonlocal waiting, written
        if waiting:
            parts.append(packed(waiting))
            finished.extend(result.run.key for result in waiting)
            waiting = []
            with tarfile.open(out / "part", "w") as archive:
                for number, part in enumerate(parts):
                    about = tarfile.TarInfo(f"{name}-{number:04d}.xz")
                    about.size = len(part)
                    archive.addfile(about, io.BytesIO(part))
            (out / "part").replace(out / f"{name}.tar")
            (folders[0] / f"done-{name}-{os.getpid()}.txt").write_text("\n".join(finished), encoding="utf-8")
            print(f"{name}: {len(finished)} runs, {sum(map(len, parts)) / 2**20:.1f} MiB", flush=True)
        written = time.monotonic()

    # Forked before anything is on the GPU.
    for results in chain(
        on_cores(tasks, processes), in_fleets([job for job in _jobs if job.images], done, device, ends)
    ):
        waiting += results
        if time.monotonic() - written > WRITTEN_EVERY:
            write()
        if time.monotonic() > ends or sum(map(len, parts)) > MOST_BYTES:
            break
    write()
    print(f"{name}: {left - len(finished)} runs wait", flush=True)


def main() -> None:
    """Do what is asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    here, there, back = (verbs.add_parser(name) for name in ("prepare", "train", "store"))
    here.add_argument("folder", type=Path)
    there.add_argument("folders", type=Path, nargs="+")
    here.add_argument("sets", nargs="+")
    here.add_argument("--methods", nargs="*", default=(), help="'' for all deliveries; all methods where none is named")
    here.add_argument("--seeds", type=int, default=0, help="fewer than the protocol's, to try the way")
    here.add_argument("--protocol", type=Path, help="another one, with a smaller network say, to try the way")
    there.add_argument("--seconds", type=float, default=540.0)
    there.add_argument("--processes", type=int, default=12)
    there.add_argument("--device", default="cpu")
    there.add_argument("--jpegs", type=Path, default=Path(".bench-jpegs/train-images.npz"), help="CIFAR-10N's images")
    there.add_argument("--name", default="rows", help="of the tar file")
    there.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "out")))
    back.add_argument("tar", type=Path)
    back.add_argument("store", type=Path)
    given = parser.parse_args()
    if given.verb == "prepare":
        prepare(given.folder, jobs_of(given.sets, methods=given.methods, seeds=given.seeds, protocol=given.protocol))
    elif given.verb == "train":
        given.out.mkdir(parents=True, exist_ok=True)
        how = {name: getattr(given, name) for name in ("seconds", "device", "processes", "name", "jpegs")}
        train(given.folders, given.out, **how)
    else:
        store(given.tar, given.store)


if __name__ == "__main__":
    main()
