"""A simulated project: a copy that says what it is, and its server in a process of its own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from dissensus.errors import InputError
from dissensus_collect.project.reading import FILE, read_project
from dissensus_collect.store.events import log_event
from dissensus_collect.store.opening import open_database

if TYPE_CHECKING:
    from typing import Self

    from dissensus_collect.project.reading import Project

_SERVE: Final = """
import json, sys
from dissensus_collect.hosting.serving import serve_project
from dissensus_collect.project.reading import read_project
folder, port, pace, began, url = sys.argv[1:]
serve_project(
    read_project(folder), port=int(port), pace=float(pace), began=float(began), rate_limits=False,
    database_url=url or None, ready=lambda links: print(json.dumps(vars(links)), flush=True),
)
"""


def simulated_copy(project: Project, folder: str | Path, *, database_url: str | None = None) -> Project:
    """A copy of a project, marked as simulated, in a new folder; its items stay where they are."""
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target}: there is something in it already; choose a folder that is new or empty")
    target.mkdir(parents=True, exist_ok=True)
    place = project.images or project.table
    changes = [
        (r"^name *=.*$", f"name = {json.dumps(f'{project.name} (simulated)')}"),
        (r"^(images|texts|pairs) *=.*$", rf"\1 = {json.dumps(str(place)).replace(chr(92), chr(92) * 2)}"),
        (r"^model *=.*$", f"model = {json.dumps(project.adaptive.model)}".replace("\\", r"\\")),
        # Bots carry no signed links.
        (r"^kind *=.*$", 'kind = "plain"'),
        (r"^(jwks|study|return_url) *=.*$", ""),
    ]
    text = project.toml
    for pattern, written in changes:
        text = re.sub(pattern, written, text, count=1 if "name" in pattern else 0, flags=re.MULTILINE)
    (target / FILE).write_text(text, encoding="utf-8")
    copy = read_project(target)
    with open_database(copy, database_url) as database:
        database.write_now(lambda cursor: log_event(cursor, "simulated", now=time.time()))
    return copy


class Server:
    """A project's server in a process of its own, which can be killed and started again.

    Its clock runs `pace` times faster than real time.
    """

    def __init__(self, project: Project, *, pace: float = 1.0, database_url: str | None = None) -> None:
        self.project, self.pace, self.port = project, pace, 0
        self.database_url = database_url
        self.began = time.time()
        self.researcher = ""
        self.log = project.folder / "server.log"
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def now(self) -> float:
        """UNIX seconds by the clock of the project."""
        return self.began + (time.time() - self.began) * self.pace

    @property
    def process(self) -> int:
        """The id of the process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start, on the port that it had before; returns once it listens."""
        arguments = (self.project.folder, self.port, self.pace, self.began, self.database_url or "")
        command = [sys.executable, "-c", _SERVE, *map(str, arguments)]
        with self.log.open("a") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._process.stdout.close()
            raise InputError(f"{self.project.folder}: the server did not start: {self.log.read_text()[-2000:].strip()}")
        links = json.loads(line)
        self.port = urlsplit(links["annotator"]).port or 0
        self.researcher = urlsplit(links["researcher"]).path

    def kill(self) -> None:
        """Kill it, as `kill -9` does."""
        self.stop(by=signal.SIGKILL)

    def stop(self, *, by: signal.Signals = signal.SIGTERM) -> None:
        """Ask it to end, and wait until it has."""
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.send_signal(by)
        self._process.wait(timeout=30)
        self._process.stdout.close()
