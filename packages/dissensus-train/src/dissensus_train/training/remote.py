"""Finished runs in a folder that many machines reach, at any address that fsspec knows: `s3://`, `gs://`, a path.

REMOTE/runs/KEY/... has the files of a run store. There is no renaming in such places; a run counts from the moment that
its `run.json` is there, which is written last.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.errors import InputError
from dissensus_train.training.store import LAST, RunStore, write_run

if TYPE_CHECKING:
    from dissensus_train.training.run import Run, RunResult


@dataclass(frozen=True)
class RemoteRuns:
    """Runs at an address.

    Attributes:
        address: of the folder.
    """

    address: str

    def _runs(self) -> tuple[Any, str]:
        """The file system, and the path of the runs in it."""
        import fsspec

        try:
            system, path = fsspec.core.url_to_fs(self.address)
        except (ImportError, ValueError) as error:
            raise InputError(
                f"--remote {self.address}: {error}; give a path, or an address that fsspec knows"
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
            raise InputError(f"--remote {self.address}: cannot be read ({error}); choose another address") from error

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
                    f"--remote {self.address}: the run {key} cannot be read ({error}); run again, or without --remote"
                ) from error
            return RunStore(Path(name)).load(key)
