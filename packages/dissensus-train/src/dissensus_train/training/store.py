"""The run store: a plain folder in which a run appears by one rename, when it is whole.

STORE/runs/KEY/run.json         spec, chosen epoch, timing, versions, why it failed where it did
               history.json     by column, one value per epoch
               predictions.npz  by split, (items, classes) float32
               votes.npz        by split, (votes, classes) float32, where the model knows people
               dynamics.npz     by split, (epochs, items, classes) float16, where asked for
               weights.npz      by name
STORE/measured/KIND/KEY.json     what was measured of a run after its training: basins, ood
STORE/studies.json              the studies whose runs these are, and where their files lie
STORE/claims/KEY.0               the writer that trains a run now (see `claims`)
STORE/partial/WRITER/           what a writer has not finished, while the writer lives (see `claims`)
               progress.json    how far the writer is

Reading (`RunStore`) needs no right to write, and several processes, on several hosts, may read and write one store at
the same time: a writer (`RunWriter`) sweeps only what dead writers left, and trains only what it has claimed.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from filelock import FileLock

from dissensus.array_file import read_npz
from dissensus.errors import InputError
from dissensus.whole_file import whole_file
from dissensus_train.training.annotator_side import People
from dissensus_train.training.claims import (
    GONE_AFTER,
    NOBODY,
    Presence,
    ended_here,
    give_up_claim,
    last_claims,
    make_claim,
    owner_of,
    remove_claims,
)
from dissensus_train.training.run import Run, RunResult, key_of
from dissensus_train.training.settings import Training

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

REMEDY: Final = "delete this folder and run the study again"
"""Of a stored run that cannot be read."""


LAST: Final = "run.json"
"""The file by which a run is known to be whole."""

PROGRESS: Final = "progress.json"
"""Where a writer says, in its own folder, how far it is."""


class RunStore:
    """Runs in a folder, found by key."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    @property
    def _runs(self) -> Path:
        return self.folder / "runs"

    def studies(self) -> dict[str, list[str]]:
        """Return, for each file, the names of its studies (or parts of a study) that keep runs in this store."""
        return _json_in(self.folder / "studies.json")

    def keep_measurement(self, kind: str, key: str, value: Mapping[str, Any]) -> bool:
        """Keep what was measured, by its `measurement_key`, and say whether it could be kept.

        A store that is only there to be read can be measured all the same.
        """
        final = self.folder / "measured" / kind / f"{key}.json"
        try:
            final.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(final) as part:
                # In the order it was given: that of systems says which of them is the reference.
                part.write_text(json.dumps(value, indent=1), encoding="utf-8")
        except (OSError, InputError):
            return False
        return True

    def measurement(self, kind: str, key: str) -> dict[str, Any] | None:
        """What was kept under a key; None where nothing was, or nothing that can be read."""
        return _json_in(self.folder / "measured" / kind / f"{key}.json") or None

    def progress(self) -> list[dict[str, Any]]:
        """Where each writer of this store last said that it stands (`StudyStep`), and `at` what time; the latest last.

        A writer that was killed leaves its last word until another comes and sweeps; of this host it is not told, and
        of others its age tells.
        """
        steps = []
        for path in (self.folder / "partial").glob(f"*/{PROGRESS}"):
            # Where the store is only there to be read, nobody can ask for its locks.
            with suppress(PermissionError):
                if ended_here(path.parent.with_suffix(".lock")):
                    continue
            steps.append(_json_in(path))
        return sorted((step for step in steps if "at" in step), key=lambda step: step["at"])

    def __contains__(self, run: Run) -> bool:
        return (self._runs / run.key / LAST).is_file()

    def keys(self) -> list[str]:
        """The keys of all whole runs, sorted."""
        return sorted(path.parent.name for path in self._runs.glob(f"*/{LAST}"))

    def size(self, key: str) -> int:
        """The bytes that a run takes."""
        return sum(path.stat().st_size for path in (self._runs / key).rglob("*") if path.is_file())

    def load(self, key: str, *, dynamics: bool = True, weights: bool = True) -> RunResult:
        """Read a run; its large parts only where asked for."""
        folder = self._runs / key
        try:
            about = json.loads((folder / LAST).read_text(encoding="utf-8"))
            history = json.loads((folder / "history.json").read_text(encoding="utf-8"))
            spec = {name: value for name, value in about["run"].items() if name not in ("meaning", "beginning")}
            people, training = spec.pop("people", None), Training(**spec.pop("training"))
            return RunResult(
                run=Run(training=training, people=None if people is None else People(**people), **spec),
                history={name: np.array(values) for name, values in history.items()},
                chosen_epoch=about["chosen_epoch"],
                predictions=read_npz(folder / "predictions.npz", remedy=REMEDY),
                by_vote=self._there(key, "votes.npz"),
                dynamics=self.dynamics(key) if dynamics else {},
                weights=read_npz(folder / "weights.npz", remedy=REMEDY) if weights else {},
                timing=about["timing"],
                versions=about["versions"],
                failed=about["failed"],
                tuned={float(rate): float(metric) for rate, metric in about.get("tuned", {}).items()},
            )
        except InputError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{folder}: the stored run cannot be read ({error}); {REMEDY}") from error

    def dynamics(self, key: str) -> dict[str, np.ndarray[Any, Any]]:
        """By split, a run's (epochs, items, classes) probabilities after each epoch; empty where it recorded none."""
        return self._there(key, "dynamics.npz")

    def _there(self, key: str, file: str) -> dict[str, np.ndarray[Any, Any]]:
        """The arrays of a file that not every run has."""
        path = self._runs / key / file
        return read_npz(path, remedy=REMEDY) if path.exists() else {}

    def __iter__(self) -> Iterator[RunResult]:
        for key in self.keys():
            yield self.load(key, dynamics=False, weights=False)


class RunWriter:
    """Writes to a run store; several may write to one at the same time, in this process or in others.

    What is not finished lies in a folder under `partial` that is this writer's for as long as its process lives
    (`Presence`). A new writer sweeps the folders of those that ended.
    """

    def __init__(self, folder: Path) -> None:
        self.store = RunStore(folder)
        self._noted = -math.inf
        partial, self._claims = folder / "partial", folder / "claims"
        self._claimed: dict[str, int] = {}
        # One at a time may come or sweep, so that no folder is swept between its making and the lock on it.
        self._door = FileLock(partial / "door.lock")
        self._presence = Presence(partial)
        self._own = partial / self._presence.name
        with self._writing():
            (folder / "runs").mkdir(parents=True, exist_ok=True)
            partial.mkdir(exist_ok=True)
            self._claims.mkdir(exist_ok=True)
            with self._door:
                self._presence.begin()
                self._sweep()
                self._own.mkdir()

    def close(self) -> None:
        """Leave nothing behind."""
        self.give_up()
        shutil.rmtree(self._own, ignore_errors=True)
        self._presence.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def remember_study(self, name: str, path: Path) -> None:
        """Note that a study keeps its runs here, so that it can be found from the folder alone."""
        with self._door, whole_file(self.store.folder / "studies.json", within=self._own) as part:
            known, file = self.store.studies(), str(path.resolve())
            _write_json(part, {**known, file: sorted({name, *known.get(file, [])})})

    def save(self, result: RunResult, *, beside: Mapping[str, str] | None = None) -> None:
        """Store a run: written beside, then renamed into place, so that it is there whole or not at all.

        With it go texts, by file name. Of two runs of the same key the first is kept.
        """
        partial = self._own / result.run.key
        final = self.store.folder / "runs" / result.run.key
        try:
            with self._writing(result.run):
                partial.mkdir(parents=True)
                write_run(partial, result)
                for name, text in (beside or {}).items():
                    (partial / name).write_text(text, encoding="utf-8")
                if not final.exists():
                    partial.replace(final)
                # Else another process finished the same run first; its result means the same.
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        self._end_claim(result.run.key)

    def claim(self, runs: Sequence[Run], *, most: int | None = None) -> list[Run]:
        """Of these runs, in their order, those (at most so many) that are now this writer's to train: nobody else will.

        Left out is what is stored, and what a living writer has claimed. A claim lasts until the run is saved
        (`save`), until it is given up, or until this process ends, however it does.
        """
        with self._writing():
            last, gone, taken = last_claims(self._claims), dict[str, bool](), list[Run]()
            for run in runs:
                if len(taken) == most:
                    break
                key, number = run.key, last.get(run.key, -1)
                if number >= 0:
                    owner = owner_of(self._claims, key, number=number)
                    if not owner or owner not in gone:
                        gone[owner] = self._is_gone(owner, key, number)
                    if not gone[owner]:
                        continue
                if not make_claim(self._claims, key, number=number + 1, owner=self._presence.name):
                    continue
                self._claimed[key] = number + 1
                if run in self.store:
                    # Its writer saved it and ended its claim after we had looked.
                    self._end_claim(key)
                else:
                    taken.append(run)
        return taken

    def _is_gone(self, owner: str, key: str, number: int) -> bool:
        if not owner:
            # Killed between making the file and writing to it, unless it was made just now.
            try:
                return time.time() - (self._claims / f"{key}.{number}").stat().st_mtime > GONE_AFTER
            except FileNotFoundError:
                return True
        return owner == NOBODY or self._presence.is_gone(owner)

    def _end_claim(self, key: str) -> None:
        """A run that was claimed is stored."""
        number = self._claimed.pop(key, None)
        if number is not None:
            with suppress(OSError):
                remove_claims(self._claims, key, number=number)

    def give_up(self) -> None:
        """Let others have what was claimed and is not stored."""
        while self._claimed:
            key, number = self._claimed.popitem()
            with suppress(OSError):
                give_up_claim(self._claims, key, number=number)

    def note_progress(self, step: Mapping[str, Any]) -> None:
        """Keep where the work stands for other processes to read; at most once a second, and a failure is no matter."""
        now = time.monotonic()
        if now - self._noted < 1.0:
            return
        self._noted = now
        with suppress(OSError, InputError), whole_file(self._own / PROGRESS) as part:
            part.write_text(json.dumps({**step, "at": time.time()}), encoding="utf-8")

    def drop(self, key: str) -> None:
        """Remove a run: by one rename it is gone for every reader, and then its files are."""
        with self._writing():
            (self.store.folder / "runs" / key).replace(self._own / key)
        shutil.rmtree(self._own / key, ignore_errors=True)

    def forget_study(self, name: str) -> None:
        """Remove a study, or all studies of a file, from the list of studies that keep runs in this store."""
        with self._door, whole_file(self.store.folder / "studies.json", within=self._own) as part:
            kept = {
                file: [one for one in names if name not in (one, file)] for file, names in self.store.studies().items()
            }
            _write_json(part, {file: names for file, names in kept.items() if names})

    def _sweep(self) -> None:
        """Remove what dead writers left."""
        partial = self._own.parent
        for name in {path.name.removesuffix(".lock") for path in partial.iterdir()} - {"door", self._presence.name}:
            if self._presence.is_gone(name):
                shutil.rmtree(partial / name, ignore_errors=True)
                with suppress(OSError):
                    (partial / f"{name}.lock").unlink(missing_ok=True)

    @contextmanager
    def _writing(self, run: Run | None = None) -> Iterator[None]:
        """What the disk refuses is told with the folder and the remedy, unless the run is in the store all the same."""
        try:
            yield
        except OSError as error:
            if run is None or run not in self.store:
                reason = os.strerror(error.errno) if error.errno else error
                raise InputError(
                    f"{self.store.folder}: the run store cannot be written ({reason}); runs that are stored are "
                    "unharmed: make room or choose another folder, and try again"
                ) from error


def write_run(folder: Path, result: RunResult) -> None:
    """The files of a run, into an empty folder."""
    about = {
        "run": result.run.spec(),
        "chosen_epoch": result.chosen_epoch,
        "timing": dict(result.timing),
        "versions": dict(result.versions),
        "failed": result.failed,
        **({"tuned": {str(rate): str(metric) for rate, metric in result.tuned.items()}} if result.tuned else {}),
    }
    _write_json(folder / LAST, about)
    _write_json(folder / "history.json", {name: v.tolist() for name, v in result.history.items()})
    always = {"predictions": result.predictions, "weights": result.weights}
    there = {"votes": result.by_vote, "dynamics": result.dynamics}
    for name, arrays in {**always, **{name: arrays for name, arrays in there.items() if arrays}}.items():
        np.savez(folder / f"{name}.npz", **arrays)  # type: ignore[arg-type]


def measurement_key(*of: Any) -> str:
    """The hash of what was measured and how: keys of runs, settings, fingerprints, as plain values."""
    return key_of(of)


def _json_in(path: Path) -> dict[str, Any]:
    """The table in a file; an empty one where there is none that can be read."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True), encoding="utf-8")


@dataclass(frozen=True)
class RemoteRuns:
    """Finished runs in a folder that many machines reach, at any address that fsspec knows: `s3://`, `gs://`, a path.

    ADDRESS/runs/KEY/... has the files of a run store. There is no renaming in such places; a run counts from the moment
    that its `run.json` is there, which is written last.
    """

    address: str

    def _runs(self) -> tuple[Any, str]:
        """The file system, and the path of the runs in it."""
        import fsspec

        try:
            system, path = fsspec.core.url_to_fs(self.address)
        except (ImportError, ValueError) as error:
            raise InputError(
                f"remote={self.address!r}: {error}; give a path, or an address that fsspec knows"
            ) from error
        return system, f"{path.rstrip('/')}/runs"

    def keys(self) -> frozenset[str]:
        """The keys of all whole runs."""
        system, runs = self._runs()
        try:
            # Another process may have written since this one last looked.
            system.invalidate_cache()
            return frozenset(path.rpartition("/")[0].rpartition("/")[2] for path in system.glob(f"{runs}/*/{LAST}"))
        except OSError as error:
            raise InputError(f"remote={self.address!r}: cannot be read ({error}); choose another address") from error

    def __contains__(self, run: Run) -> bool:
        system, runs = self._runs()
        return bool(system.exists(f"{runs}/{run.key}/{LAST}"))

    def save(self, result: RunResult) -> bool:
        """Write a run; False where that fails, so that it is sent to the driver instead."""
        try:
            system, runs = self._runs()
            there = f"{runs}/{result.run.key}"
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                write_run(folder, result)
                system.makedirs(there, exist_ok=True)
                for path in sorted(folder.iterdir(), key=lambda path: path.name == LAST):
                    system.put_file(str(path), f"{there}/{path.name}")
        except OSError:
            return False
        return True

    def load(self, key: str) -> RunResult:
        """Read a run."""
        system, runs = self._runs()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "runs" / key
            folder.mkdir(parents=True)
            try:
                for path in system.ls(f"{runs}/{key}", detail=False):
                    system.get_file(path, str(folder / path.rpartition("/")[2]))
            except OSError as error:
                raise InputError(
                    f"remote={self.address!r}: the run {key} cannot be read ({error}); run again, or without remote="
                ) from error
            return RunStore(Path(name)).load(key)
