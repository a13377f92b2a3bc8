"""The parts that are installed beside the core, and how they join it: by entry points.

`dissensus-train`, `dissensus-collect` and `dissensus-papers` are distributions of their own. Each says in its
`pyproject.toml` what it adds, by name:

- `dissensus.commands`: commands (`study`); one inside a group of commands is `curate.ambiguous`;
- `dissensus.names`: names of `dis`;
- `dissensus.joins`: what another part asks for where it cannot do without (`report.study`, `schema.study`).

Installed parts are looked for when a name is asked for that only a part has, and not before. Libraries that only some
people need are likewise imported when they are used, and named where they are missing.
"""

from __future__ import annotations

import json
import re
import shlex
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname

from dissensus.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Group: TypeAlias = Literal["commands", "names", "joins"]


def joined(group: Group, name: str, *, part: str, wanted_by: str) -> Any:
    """What an installed part (train, collect or papers) adds under a name.

    Raises:
        InputError: where the part is not installed; it says what needs it (`wanted_by`) and what to type.
    """
    entry = registered(group).get(name)
    if entry is None:
        raise InputError(f"{wanted_by}: {not_installed(part)}")
    return entry.load()


def installed(package: str, extra: str, *, wanted_by: str) -> None:
    """Refuse to go on without a package that an extra of dissensus installs; nothing is imported."""
    if find_spec(package) is None:
        name = {"sklearn": "scikit-learn"}.get(package, package)
        raise InputError(f"{wanted_by}: {name} is not installed; get it with `{install_line(extra)}`")


def not_installed(part: str) -> str:
    """That a part is missing, and the line that installs it."""
    return f"dissensus-{part} is not installed; get it with `{install_line(part)}`"


@cache
def install_line(extra: str) -> str:
    """What to type for an extra of dissensus, which comes from where dissensus did: a clone, wheels or an index."""
    try:
        own = metadata.distribution("dissensus")
        came = urlsplit(json.loads(own.read_text("direct_url.json") or "{}").get("url", ""))
    except metadata.PackageNotFoundError:
        came = urlsplit("")
    place = Path(url2pathname(came.path))
    if came.scheme != "file" or not place.exists():
        return f'pip install "dissensus[{extra}]"'
    if place.is_file():
        return f'pip install --find-links {shlex.quote(str(place.parent))} "dissensus[{extra}]"'
    # In a clone the packages lie beside each other.
    asked = [each.partition(";") for each in own.requires or ()]
    wanted = [name.strip() for name, _, when in asked if re.search(rf"extra == .{extra}.$", when)]
    folders = [re.sub(r"^(dissensus-\w+)(\[\w+\])?.*", rf"{place.parent}/\1\2", name) for name in wanted]
    return shlex.join(["pip", "install", *folders])


@cache
def registered(group: Group) -> dict[str, EntryPoint]:
    """By name, what installed parts add to a group; nothing of it is loaded."""
    return {entry.name: entry for entry in metadata.entry_points(group=f"dissensus.{group}")}
