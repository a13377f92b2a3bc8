"""Programs that two processes run together, as a launcher would start them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys


def in_two_processes(program: str, *arguments: str) -> None:
    """Run a program twice at once; each process finds the other by the variables that launchers set."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            env={**os.environ, **meeting, "RANK": str(rank), "LOCAL_RANK": str(rank), "ACCELERATE_USE_CPU": "true"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        for process in started:
            told, _ = process.communicate(timeout=120)
            assert process.returncode == 0, told
    finally:
        for process in started:
            process.kill()
            process.wait()
