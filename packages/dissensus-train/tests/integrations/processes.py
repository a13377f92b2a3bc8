"""Programs that two processes run together, as a launcher would start them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

SPLIT = """
import os
child = os.fork()
os.environ["RANK"] = os.environ["LOCAL_RANK"] = "0" if child else "1"
"""

JOIN = """
if child:
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def in_two_processes(imports: str, program: str, *arguments: str) -> None:
    """Run a program in two processes that find each other by the variables that launchers set.

    What the program imports is imported once, before they part: libraries take longer to load than to test.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    started = subprocess.Popen(
        [sys.executable, "-c", imports + SPLIT + program + JOIN, *arguments],
        env={**os.environ, **meeting, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        told, _ = started.communicate(timeout=240)
        assert started.returncode == 0, told
    finally:
        # One that waits for the other, which has failed, would wait for half an hour.
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()
