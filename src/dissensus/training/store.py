"""The run store: a plain folder in which a run appears by one rename, when it is whole.

STORE/runs/KEY/run.json         spec, chosen epoch, timing, versions
               history.json     by column, one value an epoch
               predictions.npz  by split, (items, classes) float32
               dynamics.npz     by split, (epochs, items, classes) float16, where asked for
               weights.npz      by name
STORE/measured/KIND/KEY.json     what was measured of a run after its training: basins, ood
STORE/studies.json              the studies whose runs these are, and where their files lie
STORE/partial/                  runs being written; whatever a killed process left there is swept away
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import uuid
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dissensus.errors import InputError
from dissensus.training.run import Run, RunResult
from dissensus.training.settings import Training

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


class RunStore:
    """Runs in a folder, found by key.

    Attributes:
        folder: where they are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open_for_writing(self) -> None:
        """Make the folder, sweep what killed writers left, and make sure that it can be written to."""
        try:
            self._runs.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(self._partial, ignore_errors=True)
            self._partial.mkdir(parents=True, exist_ok=True)
            probe = self._partial / "probe"
            probe.write_bytes(b"dissensus")
            probe.unlink()
        except OSError as error:
            raise self._cannot_write(error) from error

    @property
    def _runs(self) -> Path:
        return self.folder / "runs"

    @property
    def _partial(self) -> Path:
        return self.folder / "partial"

    def remember_study(self, name: str, path: Path) -> None:
        """Note that a study keeps its runs here, so that it can be found from the folder alone."""
        known = {**self.studies(), name: str(path.resolve())}
        part = self._partial / f"studies-{uuid.uuid4().hex}"
        try:
            _write_json(part, known)
            part.replace(self.folder / "studies.json")
        except OSError as error:
            raise self._cannot_write(error) from error

    def studies(self) -> dict[str, str]:
        """By name, the files of the studies that keep their runs here."""
        try:
            known = json.loads((self.folder / "studies.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {str(name): str(path) for name, path in known.items()} if isinstance(known, dict) else {}

    def keep_measurement(self, kind: str, key: str, value: Mapping[str, Any]) -> None:
        """Keep what was measured, by the key of what it is of and how it was measured (`measurement_key`)."""
        final = self.folder / "measured" / kind / f"{key}.json"
        part = self._partial / f"measured-{uuid.uuid4().hex}"
        try:
            final.parent.mkdir(parents=True, exist_ok=True)
            self._partial.mkdir(parents=True, exist_ok=True)
            # In the order it was given: that of systems says which of them is the reference.
            part.write_text(json.dumps(value, indent=1), encoding="utf-8")
            part.replace(final)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise self._cannot_write(error) from error

    def measurement(self, kind: str, key: str) -> dict[str, Any] | None:
        """What was kept under a key; None where nothing was, or nothing that can be read."""
        try:
            value = json.loads((self.folder / "measured" / kind / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return value if isinstance(value, dict) else None

    def __contains__(self, run: Run) -> bool:
        return (self._runs / run.key / "run.json").is_file()

    def keys(self) -> list[str]:
        """The keys of all whole runs, sorted."""
        return sorted(path.parent.name for path in self._runs.glob("*/run.json"))

    def save(self, result: RunResult) -> None:
        """Store a run: written beside, then renamed into place, so that it is there whole or not at all."""
        partial = self._partial / f"{result.run.key}-{uuid.uuid4().hex}"
        try:
            partial.mkdir(parents=True)
            about = {
                "run": result.run.spec(),
                "chosen_epoch": result.chosen_epoch,
                "timing": dict(result.timing),
                "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
            }
            _write_json(partial / "run.json", about)
            _write_json(partial / "history.json", {name: v.tolist() for name, v in result.history.items()})
            np.savez(partial / "predictions.npz", **result.predictions)  # type: ignore[arg-type]
            if result.dynamics:
                np.savez(partial / "dynamics.npz", **result.dynamics)  # type: ignore[arg-type]
            np.savez(partial / "weights.npz", **result.weights)  # type: ignore[arg-type]
            final = self._runs / result.run.key
            if final.exists():
                # Another process finished the same run first; its result means the same.
                shutil.rmtree(partial)
            else:
                partial.replace(final)
        except OSError as error:
            shutil.rmtree(partial, ignore_errors=True)
            if result.run in self:
                return
            raise self._cannot_write(error) from error

    def load(self, key: str, *, dynamics: bool = True, weights: bool = True) -> RunResult:
        """Read a run; its large parts only where asked for."""
        folder = self._runs / key
        try:
            about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
            history = json.loads((folder / "history.json").read_text(encoding="utf-8"))
            return RunResult(
                run=_run_from(about["run"]),
                history={name: np.array(values) for name, values in history.items()},
                chosen_epoch=about["chosen_epoch"],
                predictions=_read_npz(folder / "predictions.npz"),
                dynamics=_read_npz(folder / "dynamics.npz") if dynamics else {},
                weights=_read_npz(folder / "weights.npz") if weights else {},
                timing=about["timing"],
            )
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
            raise InputError(
                f"{folder}: the stored run cannot be read ({error}); delete this folder and run the study again"
            ) from error

    def __iter__(self) -> Iterator[RunResult]:
        for key in self.keys():
            yield self.load(key, dynamics=False, weights=False)

    def _cannot_write(self, error: OSError) -> InputError:
        return InputError(
            f"{self.folder}: the run store cannot be written ({os.strerror(error.errno) if error.errno else error}); "
            "runs that are stored are unharmed: make room or choose another folder with --store, and run again"
        )


def measurement_key(*of: Any) -> str:
    """The hash of what was measured and how: keys of runs, settings, fingerprints, as plain values."""
    canonical = json.dumps(of, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:20]


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True), encoding="utf-8")


def _read_npz(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    if not path.exists():
        return {}
    with path.open("rb") as file, np.load(file, allow_pickle=False) as opened:
        return {name: opened[name] for name in opened.files}


def _run_from(spec: dict[str, Any]) -> Run:
    fields = {name: value for name, value in spec.items() if name not in ("meaning", "training")}
    return Run(training=Training(**spec["training"]), **fields)
