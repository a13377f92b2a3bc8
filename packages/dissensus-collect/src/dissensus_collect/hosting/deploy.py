"""The files that put a project on a machine of its own: with Docker, or with systemd; Caddy gives it TLS in both."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jinja2 import Environment, StrictUndefined

from dissensus.errors import InputError
from dissensus.shipped import shipped_toml
from dissensus.whole_file import whole_folder
from dissensus_collect.web.security import checked_base_url

if TYPE_CHECKING:
    from dissensus_collect.project.reading import Project

SUBNET: Final = "172.30.87.0/24"
"""The network between Caddy and the server, which nobody else is in."""
RUNNING: Final = metadata.version("dissensus")
USER: Final = "dissensus"
"""Who runs the server where the folder of the project belongs to root."""


@dataclass(frozen=True)
class Deployment:
    """What was written: a folder, by name what its files are for, and commands to run, with what they do."""

    folder: Path
    files: dict[str, str]
    steps: tuple[tuple[str, str], ...]


def write_deployment(
    project: Project, folder: Path, *, kind: str, host: str, port: int = 8000, packages: Path | None = None
) -> Deployment:
    """Write the files for a deployment, of the kind ``docker`` or ``systemd``, into a folder that is new or empty.

    People reach the machine under the name `host`, such as study.example.org. With systemd, several projects on one
    machine need different ports. `packages` is a checkout of dissensus, or a folder of its wheels, that the image is
    built from; by default the checkout that this program runs from, or else the package index.
    """
    base_url, home = checked_base_url(f"https://{host}"), project.folder.resolve()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: there is something in it already; choose a folder that is new or empty")
    name = f"dissensus-{re.sub(r'[^a-z0-9]+', '-', home.name.lower()).strip('-') or 'project'}"
    by_root = home.stat().st_uid == 0
    outside = [path for path in (project.images, project.table) if path is not None and not path.is_relative_to(home)]
    words = {
        "base_url": base_url,
        "folder": folder,
        "home": home,
        "host": base_url.removeprefix("https://"),
        "mounts": [f"{home}:/project", *(f"{path}:{path}:ro" for path in outside)],
        "name": name,
        "owner": USER if by_root else home.owner(),
        "port": port,
        "program": shutil.which("dissensus") or Path(sys.executable).with_name("dissensus"),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "saved": f"/var/backups/{name}",
        "subnet": SUBNET,
        "title": project.name.splitlines()[0][:80],
        "user": f"{home.stat().st_uid or 1000}:{home.stat().st_gid or 1000}",
        "version": RUNNING,
    }
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    # JSON is YAML, and needs no thought about what must be quoted.
    environment.filters["json"] = partial(json.dumps, ensure_ascii=False)
    # Where systemd takes no quotation marks, and where it does.
    environment.filters |= {"unit_path": lambda path: str(path).replace("%", "%%"), "unit_word": _unit_word}

    def filled(template: str) -> str:
        return environment.from_string(template).render(words)

    plan = shipped_toml(__package__, "deployment.toml")[kind]
    words["shared"] = filled(plan.get("shared", ""))
    with whole_folder(folder) as part:
        words["installs"] = _installs(packages, part / "packages") if kind == "docker" else []
        for file in plan["files"]:
            (part / filled(file["name"])).write_text(filled(file["text"]), encoding="utf-8")
    return Deployment(
        folder,
        {filled(file["name"]): filled(file["about"]) for file in plan["files"] if "about" in file},
        tuple((filled(step["command"]), step["about"]) for step in plan["steps"] if by_root or not step.get("as_root")),
    )


def _installs(given: Path | None, into: Path) -> list[str]:
    """What pip installs in an image: wheels or the packages of a checkout, copied for it, or names for the index."""
    here = Path(__file__).parents[5] if given is None else given
    wheels = [next(here.glob(f"{name}-[0-9]*.whl"), None) for name in ("dissensus", "dissensus_collect")]
    sources = [here / "packages" / name for name in ("dissensus", "dissensus-collect")]
    into.mkdir()
    if all((source / "pyproject.toml").is_file() for source in sources):
        for source in sources:
            left_out = shutil.ignore_patterns("tests", "__pycache__")
            copy = shutil.copytree(source, into / source.name, ignore=left_out)
            shutil.copy(here / "README.md", copy / "README.md")
        return [f"/packages/{sources[0].name}", f"/packages/{sources[1].name}[fast]"]
    found = [wheel for wheel in wheels if wheel is not None]
    if len(found) == len(wheels):
        return [f"/packages/{Path(shutil.copy(wheel, into)).name}" for wheel in found]
    if given is not None or "dev" in RUNNING:
        raise InputError(
            f"{given or 'the version that runs here is on no package index'}: there is neither a checkout of dissensus "
            "nor wheels of dissensus and dissensus_collect; give a folder that has them with packages="
        )
    return [f"dissensus[collect,fast]=={RUNNING}"]


def _unit_word(text: str | int | Path) -> str:
    """A word as systemd reads it: in quotation marks, with its own signs doubled."""
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
