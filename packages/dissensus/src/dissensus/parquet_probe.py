"""Whether a Parquet file can be read without harm, tried in another process.

Of a thousand files with a flipped byte or two, about one makes the reader ask for more memory than any machine has, and
the process ends there and then. So all of a file is first read by a child that may die, batch by batch, so that it may
be larger than memory. The child lives as long as we do and costs a third of a second once; reading twice still leaves
counting votes well within its bars (`benchmarks/labels.py --only parquet`).
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE: Final = 60.0
"""Seconds that the child may take over one file, and a second more for every `PACE` bytes."""

PACE: Final = 5 << 20

_CHILD: Final = """
import json, sys
import polars as pl
for line in sys.stdin:
    path = json.loads(line)
    try:
        for _ in pl.scan_parquet(path, glob=False).collect_batches():
            pass
        pl.read_parquet_metadata(path)
    except pl.exceptions.PanicException:
        print("panicked", flush=True)
        continue
    except BaseException:
        pass
    print("read", flush=True)
"""

_lock: Final = threading.Lock()
_children: Final[dict[int, subprocess.Popen[str]]] = {}
"""The child of this process, by our process id: one that was forked off has none of its own yet."""
_tried: Final[dict[tuple[str, int, int], bool]] = {}


def is_harmless(path: Path) -> bool:
    """Whether a process survives reading the file, without a panic that Rust would print past Python.

    Whether it can be read at all is for the reader to say.
    """
    state = path.stat()
    key = (str(path.absolute()), state.st_mtime_ns, state.st_size)
    with _lock:
        if key not in _tried:
            _tried[key] = _survives(key[0], seconds=PATIENCE + state.st_size / PACE)
        return _tried[key]


def _survives(path: str, *, seconds: float) -> bool:
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
        child.stdin.write(json.dumps(path) + "\n")
        child.stdin.flush()
        answer = child.stdout.readline() if select.select([child.stdout], [], [], seconds)[0] else ""
    except OSError:
        answer = ""
    if not answer:
        child.kill()
        _end(child)
    return answer == "read\n"


def _end(child: subprocess.Popen[str]) -> None:
    for pipe in filter(None, (child.stdin, child.stdout)):
        with suppress(OSError):
            pipe.close()
    child.wait()
