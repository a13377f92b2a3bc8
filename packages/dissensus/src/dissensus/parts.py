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

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

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
        raise InputError(f'{wanted_by}: {name} is not installed; get it with `pip install "dissensus[{extra}]"`')


def not_installed(part: str) -> str:
    """That a part is missing, and the line that installs it.

    Examples:
        >>> not_installed("train")
        'dissensus-train is not installed; get it with `pip install "dissensus[train]"`'
    """
    return f'dissensus-{part} is not installed; get it with `pip install "dissensus[{part}]"`'


@cache
def registered(group: Group) -> dict[str, EntryPoint]:
    """By name, what installed parts add to a group; nothing of it is loaded."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=f"dissensus.{group}")}
