"""How many cores this process may use, and how it starts others, on every system."""

from __future__ import annotations

import multiprocessing
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext


def available_cores() -> int:
    """The number of cores this process may run on; where the system cannot tell (macOS, Windows), all there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def clean_processes(*preload: str) -> BaseContext:
    """The way to start worker processes that inherit no threads from this one.

    A forked child would inherit thread pools in whatever state they are. The fork server has imported the modules
    `preload`, which its children then share, and run nothing, so they start clean and at once; where there is none
    (Windows), each worker starts afresh.
    """
    if "forkserver" in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(preload))
        return context
    return multiprocessing.get_context("spawn")
