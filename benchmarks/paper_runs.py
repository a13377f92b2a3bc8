"""The papers' image studies on a GPU machine that has PyTorch and nothing of ours installed, from a queue of runs.

    python benchmarks/paper_runs.py prepare                  # here: what the queue asks for, into .gpu/
    python benchmarks/paper_runs.py train --seconds 430      # there: in groups, each written whole to $OUT at once
    python benchmarks/paper_runs.py store FOLDER STORE       # here: what came back, into a run store
    python benchmarks/paper_runs.py watched FOLDER           # here: what an epoch chosen on test images would score

`train` leaves out the runs that .gpu/done/*.txt lists. It adds to that list on its machine, and `store` adds to it here
what came back: carry .gpu again after `store`, and no run is trained twice, also where the machine is another one.
Weights stay behind: what is kept of a run are its predictions on every split, its history and its timing. What comes
back is one tar file, since few files can.

Studies that are not CIFAR-10H's go whole, as jobs (`prepare-job STUDY`, `train-job STUDY`): CIFAR-10N, whose images
travel as JPEG, texts with the encoder beside the study's file, and soft-digits, which the machine's cores train. What a
study measures of its runs (`[basins]`, `[ood]`) is measured there, where their weights are: `measure-job STUDY`.

Commit the summaries of a call before the next: a session that is cut off takes with it what it has not committed.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import pickle
import shutil
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dissensus_train.training.data import TRAIN, TrainingData
from dissensus_train.training.engine import train as train_runs
from dissensus_train.training.loop import same_bits
from dissensus_train.training.run import Run, RunResult, data_fingerprint
from dissensus_train.training.settings import Training
from dissensus_train.training.streams import WORTH_COMPILING, StreamedRuns, can_compile
from dissensus_train.training.together import train_together

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from torch import Tensor

    from dissensus.arrays import Floats, Table
    from dissensus.labels.distribution import LabelDistribution
    from dissensus_train.studies import Study

QUEUE = Path(__file__).with_suffix(".txt")
CARRIED = Path(".gpu")
AHEAD = 64
"""Runs that are looked through for those that can go with the first of the queue."""

SECONDS_A_RUN = 24.0
"""Of a ResNet-18 among four or more on an H200 (22.6 when compiled), until a group has been timed."""

JOB_GROUP = 12
"""Runs of a job in a file."""

MEASURED = "measured"
"""The folder of a store, and the tar file, of what was measured of runs."""

MANY = 20_000
"""Training items whose predictions are left behind."""

WATCHED = "test_soft_nll"
"""Of a run's history, what it scores on its test images every so many epochs: no run is chosen by it."""

WATCHED_EVERY = 5

OVERHEAD = 25.0
"""Seconds that a group takes beside its steps: compiling, recording, predicting, writing."""


@dataclass(frozen=True)
class Waiting:
    """A run to be trained: its spec and key, the target that it learns, and by split, its items."""

    study: str
    key: str
    spec: Mapping[str, Any]
    target: str
    splits: Mapping[str, Any]


# --- here -----------------------------------------------------------------------------------------------------------


def queued(path: Path) -> Iterator[tuple[str, int]]:
    """Studies and seeds in the order of the queue."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            study, seeds = line.split()
            yield from ((study, seed) for seed in seeds_of(seeds))


def seeds_of(text: str) -> range:
    """Seeds as they are written: one, or the first and the last."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def prepare(queue: Path, folder: Path, *, quick: bool) -> None:
    """Write images, targets, splits and run specs of everything that the queue asks for."""
    from dissensus_papers.papers.running import on_own_split
    from dissensus_train.studies import open_study, read_study

    waiting: dict[str, Waiting] = {}
    targets: dict[str, LabelDistribution] = {}
    images: Any = None
    human: Any = None
    for name, seed in queued(queue):
        study = on_own_split(read_study(name), seed)
        if quick:
            short = replace(study.training, epochs=2, precision="float32", augmentation="none")
            study = replace(study, models=("simple-ffn",), training=short)
        opened = open_study(study, "no-store")
        data = opened.data
        images, human = np.rint(data.features * 255).astype(np.uint8), data.human.probabilities
        for run in opened.runs:
            labels = replace(data.targets[run.target], items=data.human.items, model=None)
            content = hashlib.sha256(labels.probabilities.tobytes() + labels.counts.tobytes()).hexdigest()
            targets.setdefault(content, labels)
            waiting.setdefault(run.key, Waiting(name, run.key, run.spec(), content, dict(data.splits)))
        print(f"{study.name}: {len(opened.runs)} runs, {len(waiting)} in all", flush=True)
    np.savez_compressed(folder / "images.npz", images=images)
    with gzip.open(folder / "queue.pickle.gz", "wb") as file:
        pickle.dump({"waiting": [vars(one) for one in waiting.values()], "targets": targets, "human": human}, file)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{len(waiting)} runs, {size / 2**20:.1f} MiB in {folder}")


def prepare_job(source: str, folder: Path, *, instead: str) -> None:
    """Write the data and the runs of a whole study, a file for each of its parts."""
    from dissensus_papers.papers.running import on_other_data
    from dissensus_train.studies import open_study, read_study

    study = read_study(source)
    for part in (on_other_data(study, instead) if instead else study).parts:
        opened = open_study(part, "no-store")
        data = opened.data
        plain = {name: getattr(data, name) for name in ("name", "features", "splits", "items", "normalise")}
        if data.shape == (3, 32, 32):
            plain |= {"features": None, "items": None}
        elif not any(":" in run.model for run in opened.runs):
            plain["items"] = None
        labels = {name: replace(each, items=data.human.items, model=None) for name, each in data.targets.items()}
        plain |= {"human": replace(data.human, model=None), "targets": labels}
        for path in () if part.ood is None else part.ood.sets.values():
            shutil.copy(path, folder)
        with gzip.open(folder / f"{part.name}.pickle.gz", "wb") as file:
            pickle.dump({"study": part, "data": plain, "runs": [run.spec() for run in opened.runs]}, file)
        print(f"{part.name}: {len(opened.runs)} runs, {Path(file.name).stat().st_size / 2**20:.1f} MiB")


def store(results: Path, folder: Path, *, carried: Path) -> None:
    """Put what came back into a run store, without weights; it need not be trained again."""
    from dissensus_train.training.store import RunWriter

    # What comes back can only be read where it lies.
    with TemporaryDirectory() as place, RunWriter(folder) as writer:
        for path in sorted(results.glob("*.tar")):
            with tarfile.open(path) as tar:
                tar.extractall(folder if path.stem == MEASURED else place, filter="data")
        for path in sorted(Path(place).glob("runs-*.npz")):
            with np.load(path) as arrays:
                for key, about in json.loads(str(arrays["about"])).items():
                    run = run_of(about.pop("spec"))
                    assert run.key == key, f"{path}: {key} is not the key of its spec"
                    parts: dict[str, Any] = {"history": {}, "predictions": {}, "dynamics": {}}
                    for name in arrays.files:
                        if name.startswith(f"{key}/"):
                            _, part, column = name.split("/")
                            parts[part][column] = arrays[name]
                    parts["history"].pop(WATCHED, None)
                    writer.save(RunResult(run=run, weights={}, **parts, **about))
                    mark_done(carried, [key])
            print(path.name, "stored")


def mark_done(folder: Path, keys: Iterable[str]) -> None:
    """List runs that need not be trained again."""
    (folder / "done").mkdir(parents=True, exist_ok=True)
    with (folder / "done" / "runs.txt").open("a", encoding="utf-8") as file:
        file.writelines(f"{key}\n" for key in keys)


def watched(results: Path) -> None:
    """Print soft NLL on test images at the last epoch, and at the one that they themselves would choose."""
    by_method: dict[str, list[Floats]] = {}
    for path in sorted(results.glob("*.tar")):
        with tarfile.open(path) as tar:
            for member in tar.getmembers():
                file = tar.extractfile(member)
                if file is None or not member.name.startswith("runs-"):
                    continue
                with np.load(io.BytesIO(file.read())) as arrays:
                    for key, about in json.loads(str(arrays["about"])).items():
                        run = run_of(about["spec"])
                        by_method.setdefault(run.method, []).append(arrays[f"{key}/history/{WATCHED}"])
    for method, curves in by_method.items():
        values = np.stack(curves)
        last, best, when = values[:, -1], values.min(axis=1), WATCHED_EVERY * (1 + values.argmin(axis=1))
        change = 100 * (best / last - 1)
        print(
            f"{method}: {len(values)} runs, last {last.mean():.3f}, best {best.mean():.3f} ({change.mean():+.1f} %, "
            f"{change.min():+.1f} to {change.max():+.1f}) at epochs {when.min()} to {when.max()}"
        )


# --- there ----------------------------------------------------------------------------------------------------------


class AcrossSplits(StreamedRuns):
    """Runs that train on different splits of the same items, side by side on streams, in one captured graph.

    Splits of one name have the same number of items; rows are (items, parts), one column for each part's own. What they
    score against people, (items, classes), on their test images is watched.
    """

    def __init__(self, parts: Sequence[StreamedRuns], human: Table) -> None:
        first = parts[0]
        self.parts, self.settings, self.classes, self.place = parts, first.settings, first.classes, first.place
        self.runs = [run for part in parts for run in part.runs]
        self.deliveries = [delivery for part in parts for delivery in part.deliveries]
        self.singles = [one for part in parts for one in part.singles]
        self.streams = [stream for part in parts for stream in part.streams]
        self.members = {name: torch.stack([part.members[name] for part in parts], dim=1) for name in first.members}
        self.n_examples, self.step, self._prepared = first.n_examples, {}, None
        steps = len(self.runs) * self.settings.epochs * self.n_examples // self.settings.batch_size
        if steps >= WORTH_COMPILING and self.settings.precision == "bf16" and can_compile(self.place):
            for one in self.singles:
                one.whole_batch = torch.compile(one.model, dynamic=False)
        people, own = torch.from_numpy(human).float().to(self.place), [len(part.runs) for part in parts]
        of_part = people[self.members["test"]].transpose(0, 1)
        self.tested = of_part.repeat_interleave(torch.tensor(own, device=self.place), dim=0)
        self.watched: list[Tensor] = []

    def train_epoch(self, epoch: int, rate: Floats) -> None:
        super().train_epoch(epoch, rate)
        if (epoch + 1) % WATCHED_EVERY == 0:
            log_q = self.predict(self.members["test"]).clamp_min(torch.finfo(torch.float32).tiny).log()
            self.watched.append(-(self.tested * log_q).sum(dim=-1).mean(dim=-1))

    def select(self, shares: tuple[float, ...] | None = None) -> Floats | None:
        by_part = [part.select(shares) for part in self.parts]
        return None if by_part[0] is None else np.concatenate(by_part, axis=1)  # type: ignore[arg-type]

    def predict(self, rows: Tensor, who: Tensor | None = None) -> Tensor:
        return torch.cat([part.predict(rows[:, place], who) for place, part in enumerate(self.parts)])


def run_of(spec: Mapping[str, Any]) -> Run:
    """A run from its spec."""
    known = {field.name: spec[field.name] for field in fields(Run) if field.name in spec}
    return Run(**known | {"training": Training(**spec["training"])})


class Carried:
    """What was carried here: images once, and the data of each split."""

    def __init__(self, folder: Path) -> None:
        with gzip.open(folder / "queue.pickle.gz", "rb") as file:
            queue = pickle.load(file)
        self.features = cifar_features(folder / "images.npz")
        self.targets: dict[str, LabelDistribution] = queue["targets"]
        self.human: Table = queue["human"]
        done = {key for path in (folder / "done").glob("*.txt") for key in path.read_text(encoding="utf-8").split()}
        self.waiting = [Waiting(**one) for one in queue["waiting"] if one["key"] not in done]

    def data(self, wanted: Sequence[Waiting]) -> TrainingData:
        """The data of runs on one split; refused where it is not what the runs were planned on."""
        labels = {one.spec["target"]: self.targets[one.target] for one in wanted}
        human = next(iter(labels.values()))
        data = TrainingData(
            name="carried", features=self.features, human=human, targets=labels, splits=wanted[0].splits
        )
        for one in wanted:
            run = run_of(one.spec)
            assert run.key == one.key, f"{one.study}: the code here gives {run.method} another key; prepare again"
            found = data_fingerprint(data, target=run.target, delivery=run.delivery, training=run.training)
            assert found == run.data, f"{one.study}: {run.method} was planned on other data"
        return data

    def alike(self, most: int) -> list[Waiting]:
        """The first run of the queue, and those after it that can go with it."""
        ahead = self.waiting[:AHEAD]
        shape = {one.key: (one.spec["model"], one.spec["training"], self._sizes(one)) for one in ahead}
        return [one for one in ahead if shape[one.key] == shape[ahead[0].key]][:most]

    @staticmethod
    def _sizes(one: Waiting) -> dict[str, int]:
        return {name: len(members) for name, members in one.splits.items()}


def trained(carried: Carried, group: Sequence[Waiting], place: torch.device) -> list[RunResult]:
    """The results of a group."""
    by_split: dict[bytes, list[Waiting]] = {}
    for one in group:
        by_split.setdefault(one.splits[TRAIN].tobytes(), []).append(one)
    parts = [([run_of(one.spec) for one in wanted], carried.data(wanted)) for wanted in by_split.values()]
    return side_by_side(parts, place, carried.human)


def side_by_side(
    parts: Sequence[tuple[Sequence[Run], TrainingData]], place: torch.device, human: Table
) -> list[RunResult]:
    """Train runs on streams, each with the data of its split; what is watched of them is in their history."""
    data = [held for _, held in parts]
    together = AcrossSplits([StreamedRuns(runs, held, place) for runs, held in parts], human)
    # The data are asked for the loss of a run that has learnt nothing, which any split will tell.
    targets = {name: labels for held in data for name, labels in held.targets.items()}
    began = time.monotonic()

    def told(step: Any) -> None:
        if step.run == together.runs[0].key and step.done in (1, 10, 50, 100, 150, step.total):
            print(f"epoch {step.done} of {step.total}, {time.monotonic() - began:.0f} s", flush=True)

    with same_bits():
        results = train_together(
            together, together.runs, replace(data[0], targets=targets), device=place, progress=told
        )
    seen = torch.stack(together.watched, dim=1).cpu().numpy() if together.watched else np.empty((len(results), 0))
    return [
        replace(result, history={**result.history, WATCHED: own}) for result, own in zip(results, seen, strict=True)
    ]


def write(results: Sequence[RunResult], folder: Path, *, kind: str) -> None:
    """Keep a group in the tar file of its kind, which is there whole or not at all."""
    arrays: dict[str, Any] = {}
    about = {}
    for result in results:
        key = result.run.key
        about[key] = {
            "spec": result.run.spec(),
            "chosen_epoch": result.chosen_epoch,
            "timing": dict(result.timing),
            "versions": dict(result.versions),
            "failed": result.failed,
        }
        # What claims ask of: dynamics of training items, and not what a model says of 50,000 of them.
        held = {
            "history": result.history,
            "predictions": {
                name: values for name, values in result.predictions.items() if name != TRAIN or len(values) < MANY
            },
            "dynamics": {name: values for name, values in result.dynamics.items() if name == TRAIN},
        }
        for part, columns in held.items():
            arrays |= {f"{key}/{part}/{name}": values for name, values in columns.items()}
    file = io.BytesIO()
    np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays)
    name, tar, begun = f"runs-{results[0].run.key}.npz", folder / f"{kind}.tar", folder / f"{kind}.part"
    if tar.exists():
        shutil.copy(tar, begun)
    entry = tarfile.TarInfo(name)
    entry.size = file.tell()
    file.seek(0)
    with tarfile.open(begun, "a") as archive:
        archive.addfile(entry, file)
    begun.replace(tar)
    print(f"{name}: {entry.size / 2**20:.1f} MiB", flush=True)


def keep_weights(carried: Carried, group: Sequence[Waiting], results: Sequence[RunResult], folder: Path) -> None:
    """The weights of soft runs stay on the machine, for what is measured of them there (benchmarks/alignment.py)."""
    folder.mkdir(parents=True, exist_ok=True)
    waiting = {one.key: one for one in group}
    for result in results:
        if result.run.delivery == "soft" and not result.run.options:
            data = carried.data([waiting[result.run.key]])
            arrays: dict[str, Any] = {f"weights/{name}": value for name, value in result.weights.items()}
            arrays |= {name: data.splits[name] for name in ("train", "test")}
            arrays |= {
                "human": data.human.probabilities.astype(np.float32),
                "normalisation": np.array(data.normalisation),
            }
            np.savez(folder / f"{waiting[result.run.key].study}-seed-{result.run.seed}.npz", **arrays)


def train_job(
    name: str, folder: Path, out: Path, *, kind: str, device: str, seeds: Sequence[int], pixels: Path
) -> None:
    """Train a whole study, a seed after the other on a GPU; what is done is written at once."""
    began = time.monotonic()
    _, data, runs = carried_job(name, folder, pixels=pixels)
    runs = [run for run in runs if not seeds or run.seed in seeds]
    found = data_fingerprint(
        data, target=runs[0].target, delivery=runs[0].delivery, training=runs[0].training, model=runs[0].model
    )
    print(f"{name}: {len(runs)} runs, data {found}, planned on {runs[0].data}; {time.monotonic() - began:.0f} s")
    groups = [[run for run in runs if run.seed == seed] for seed in sorted({run.seed for run in runs})]
    for group in [runs] if device == "cpu" else groups:
        held: list[RunResult] = []
        for result in train_runs(group, data, device=device):
            held.append(result)
            # A file that comes back may have 16 MiB, and dynamics are the bulk of it.
            if len(held) == JOB_GROUP:
                write(held, out, kind=f"{kind}-{result.run.key[:4]}" if result.dynamics else kind)
                held = []
        if held:
            write(held, out, kind=f"{kind}-{held[0].run.key[:4]}" if held[0].dynamics else kind)
        print(f"{name}: {len(group)} runs, {time.monotonic() - began:.0f} s", flush=True)


def carried_job(name: str, folder: Path, *, pixels: Path) -> tuple[Study, TrainingData, list[Run]]:
    """A study that was carried whole."""
    with gzip.open(folder / f"{name}.pickle.gz", "rb") as file:
        job = pickle.load(file)
    if job["data"]["features"] is None:
        many = len(job["data"]["human"].items) > MANY
        job["data"]["features"] = cifar_features(folder.parent / "images.npz", pixels if many else None)
    return job["study"], TrainingData(**job["data"], folder=folder), [run_of(spec) for spec in job["runs"]]


def measure_job(name: str, folder: Path, out: Path, *, device: str, seconds: float) -> None:
    """Train the runs of a study together, then measure what its file asks for until the time is up."""
    from dissensus_train.studies import study_basins, study_ood
    from dissensus_train.studies.opening import OpenStudy
    from dissensus_train.training.store import RunStore, RunWriter

    ends = time.monotonic() + seconds
    study, data, runs = carried_job(name, folder, pixels=Path())
    for run in runs:
        found = data_fingerprint(data, target=run.target, delivery=run.delivery, training=run.training)
        assert found == run.data, f"{name}: {run.method} was planned on other data"
    store = RunStore(folder / "store")
    waiting = [run for run in runs if run not in store]
    if waiting:
        results = side_by_side([(waiting, data)], torch.device(device), data.human.probabilities)
        write(results, out, kind=name)
        with RunWriter(folder / "store") as writer:
            for result in results:
                writer.save(replace(result, history={k: v for k, v in result.history.items() if k != WATCHED}))
    print(f"{name}: trained, {ends - time.monotonic():.0f} s are left", flush=True)

    def told(step: Any) -> None:
        print(f"{step.done} of {step.total} measured, {ends - time.monotonic():.0f} s are left", flush=True)
        if time.monotonic() > ends:
            raise TimeoutError

    ood = study.ood and replace(
        study.ood, sets={key: str(folder / Path(at).name) for key, at in study.ood.sets.items()}
    )
    opened = OpenStudy(replace(study, ood=ood), data, tuple(runs), store)
    try:
        if ood is not None:
            study_ood(opened, device=device)
        if study.basins is not None:
            study_basins(opened, device=device, progress=told)
    except TimeoutError:
        print(f"{name}: not all of it is measured; the same command goes on")
    finally:
        with tarfile.open(out / f"{MEASURED}.tar", "w") as archive:
            archive.add(store.folder / MEASURED, MEASURED)


def cifar_features(tested: Path, jpegs: Path | None = None) -> Floats:
    """(items, 3, 32, 32) pixels from 0 to 1: the test images, after the training images where those came as JPEG."""
    with np.load(tested) as arrays:
        images = arrays["images"]
    if jpegs is not None:
        from PIL import Image

        with np.load(jpegs) as stored:
            data, offset = stored["jpeg"].tobytes(), stored["offset"].tolist()

        def one(number: int) -> Any:
            return np.asarray(Image.open(io.BytesIO(data[offset[number] : offset[number + 1]])).convert("RGB"))

        with ThreadPoolExecutor() as pool:
            seen = np.stack(list(pool.map(one, range(len(offset) - 1), chunksize=500)))
        images = np.concatenate([seen.transpose(0, 3, 1, 2), images])
    features: Floats = np.divide(images, np.float32(255), dtype=np.float32)
    return features


def train(folder: Path, out: Path, *, seconds: float, device: str, most: int) -> None:
    """Train groups of at most so many runs from the queue until no further one would end in time."""
    began, a_run = time.monotonic(), SECONDS_A_RUN
    carried, place = Carried(folder), torch.device(device)
    print(f"{len(carried.waiting)} runs wait; compiles: {can_compile(place)}", flush=True)
    while carried.waiting:
        left = seconds - (time.monotonic() - began)
        if left < OVERHEAD + a_run:
            break
        group = carried.alike(min(most, int((left - OVERHEAD) / a_run)))
        started = time.monotonic()
        results = trained(carried, group, place)
        took = time.monotonic() - started
        if len(group) > 2:
            a_run = max(took - OVERHEAD, 0.0) / len(group) + 0.5
        write(results, out, kind="queue")
        keep_weights(carried, group, results, folder / "weights")
        # The next call on this machine goes on from here.
        mark_done(folder, (result.run.key for result in results))
        known = {one.key: one for one in group}
        for result in results:
            # No score is printed: the rules that judge these runs are committed before anybody has seen one.
            loss = result.history["train_loss"][-1]
            print(f"{known[result.run.key].study}, seed {result.run.seed}, {result.run.method}: {loss:.4f} at the end")
        print(f"{len(group)} runs in {took:.0f} s, {took / len(group):.1f} each", flush=True)
        carried.waiting = [one for one in carried.waiting if one.key not in known]
    print(f"{len(carried.waiting)} runs wait; {time.monotonic() - began:.0f} s")


def main() -> None:
    """Do what is asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    names = ("prepare", "prepare-job", "train", "train-job", "measure-job", "store", "watched")
    queue, study, there, job, measured, back, seen = (verbs.add_parser(name) for name in names)
    queue.add_argument("--queue", type=Path, default=QUEUE)
    queue.add_argument("--quick", action="store_true", help="two epochs of a small network, to try the way")
    study.add_argument("study")
    study.add_argument("--instead", default="", help="the dataset that stands in")
    for verb in (there, measured):
        verb.add_argument("--seconds", type=float, default=570.0)
    there.add_argument("--group", type=int, default=4, help="runs at once: few lose little where the end comes early")
    for verb in (job, measured):
        verb.add_argument("study")
    job.add_argument("--name", help="of what comes back; the study's if not given")
    job.add_argument("--seeds", type=int, nargs="*", default=())
    job.add_argument("--images", type=Path, default=CARRIED / "jobs" / "train-images.npz", help="CIFAR-10N's, as JPEG")
    for verb in (there, job, measured):
        verb.add_argument("--device", default="cuda")
        verb.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "out")))
    for verb in verbs.choices.values():
        if verb not in (back, seen):
            folder = CARRIED if verb in (queue, there) else CARRIED / "jobs"
            verb.add_argument("--folder", type=Path, default=folder)
    for verb in (back, seen):
        verb.add_argument("results", type=Path)
    back.add_argument("store", type=Path)
    given = parser.parse_args()
    if given.verb not in ("store", "watched"):
        (given.out if "out" in given else given.folder).mkdir(parents=True, exist_ok=True)
    if given.verb == "store":
        store(given.results, given.store, carried=CARRIED)
    elif given.verb == "watched":
        watched(given.results)
    elif given.verb == "prepare":
        prepare(given.queue, given.folder, quick=given.quick)
    elif given.verb == "prepare-job":
        prepare_job(given.study, given.folder, instead=given.instead)
    elif given.verb == "train":
        train(given.folder, given.out, seconds=given.seconds, device=given.device, most=given.group)
    elif given.verb == "measure-job":
        measure_job(given.study, given.folder, given.out, device=given.device, seconds=given.seconds)
    else:
        kind, about = given.name or given.study, {"device": given.device, "seeds": given.seeds, "pixels": given.images}
        train_job(given.study, given.folder, given.out, kind=kind, **about)


if __name__ == "__main__":
    main()
