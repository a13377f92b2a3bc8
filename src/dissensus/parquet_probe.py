"""Whether a Parquet file can be read without harm, tried in another process.

Of a thousand files with a flipped byte or two, about one makes the reader ask for more memory than any machine has, and
the process ends there and then. So a file is first read by a child that may die; it lives as long as we do and costs a
third of a second once.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

LARGEST: Final = 16 << 20
"""Bytes of the largest file that is read twice; of a larger one the child reads the schema only."""

PATIENCE: Final = 60.0
"""Seconds that the child may take over one file."""

_CHILD: Final = """
import json, sys
import polars as pl
for line in sys.stdin:
    path, whole = json.loads(line)
    try:
        rows = pl.scan_parquet(path, glob=False)
        rows.collect() if whole else rows.collect_schema()
        pl.read_parquet_metadata(path)
    except BaseException:
        pass
    print("read", flush=True)
"""

_lock: Final = threading.Lock()
_children: Final[dict[int, subprocess.Popen[str]]] = {}
"""The child of this process, by our process id: one that was forked off has none of its own yet."""
_tried: Final[dict[tuple[str, int, int], bool]] = {}


def is_harmless(path: Path) -> bool:
    """Whether a process survives reading the file; whether it can be read at all is for the reader to say."""
    state = path.stat()
    key = (str(path.absolute()), state.st_mtime_ns, state.st_size)
    with _lock:
        if key not in _tried:
            _tried[key] = _survives(key[0], whole=state.st_size <= LARGEST)
        return _tried[key]


def _survives(path: str, *, whole: bool) -> bool:
    child = _children.get(os.getpid())
    if child is None or child.poll() is not None:
        child = _children[os.getpid()] = subprocess.Popen(
            [sys.executable, "-I", "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        atexit.register(_end, child)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(json.dumps([path, whole]) + "\n")
        child.stdin.flush()
        answered = bool(select.select([child.stdout], [], [], PATIENCE)[0]) and child.stdout.readline() == "read\n"
    except OSError:
        answered = False
    if not answered:
        child.kill()
        _end(child)
    return answered


def _end(child: subprocess.Popen[str]) -> None:
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                continue
    child.wait()
