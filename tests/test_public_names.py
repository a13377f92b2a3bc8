"""Snapshot of the names that people may use: names of packages, and commands with their options.

`python -m tests.test_public_names` prints what differs from `public_names.json`, and with `write` writes that file.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys
from difflib import unified_diff
from pathlib import Path
from types import ModuleType
from typing import Any

import dissensus as dis
from tests.cli.commands import COMMANDS

SNAPSHOT = Path(__file__).with_name("public_names.json")
PACKAGES = ("dissensus", "dissensus_collect", "dissensus_papers", "dissensus_train")

Names = dict[str, list[str]]


def rooms() -> list[str]:
    """Return the packages at every depth, and the modules that are names of `dissensus`."""
    found = {each.__name__ for name in dis.__all__ if isinstance(each := getattr(dis, name), ModuleType)}
    for package in PACKAGES:
        home = importlib.import_module(package)
        found |= {package, *(each.name for each in pkgutil.walk_packages(home.__path__, f"{package}.") if each.ispkg)}
    return sorted(found)


def names_of(room: str) -> list[str]:
    """Return the public names of a room; a package that promises none in `__all__` has none."""
    module = importlib.import_module(room)
    names = getattr(module, "__all__", None)
    if names is None:
        names = [] if hasattr(module, "__path__") else [name for name in dir(module) if not name.startswith("_")]
    return sorted(names)


def options_of(command: Any) -> list[str]:
    """Return the arguments and options of a command as they are typed, each with all its spellings."""
    return sorted(" ".join([*each.opts, *each.secondary_opts]) for each in command.params)


def public_names() -> dict[str, Names]:
    """Return the names of each room, and the options of each command."""
    return {
        "names": {room: names for room in rooms() if (names := names_of(room))},
        "commands": {name: options_of(COMMANDS[name]) for name in sorted(COMMANDS)},
        "read_votes": {"options": sorted(inspect.signature(dis.read_votes).parameters)},
    }


def lines(names: dict[str, Names]) -> list[str]:
    """Return the names one a line, each behind what it belongs to."""
    return [
        f"{kind} {home}: {name}" for kind, homes in names.items() for home, inside in homes.items() for name in inside
    ]


def difference() -> list[str]:
    """Return the lines by which the names that are there differ from the snapshot."""
    before = lines(json.loads(SNAPSHOT.read_text(encoding="utf-8"))) if SNAPSHOT.exists() else []
    changes = unified_diff(before, lines(public_names()), lineterm="", n=0)
    return [line for line in changes if line[0] in "+-" and line[:3] not in ("+++", "---")]


def test_public_names_are_those_of_the_snapshot() -> None:
    changed = difference()
    assert not changed, "\n".join(["run `python -m tests.test_public_names write` if this is meant:", *changed])


def test_snapshot_holds_what_dir_offers() -> None:
    written = json.loads(SNAPSHOT.read_text(encoding="utf-8"))["names"]
    assert sorted(written["dissensus"]) == sorted(
        [*(name for name in dir(dis) if not name.startswith("__")), "__version__"]
    )


def test_names_of_leaves_out_what_was_only_imported() -> None:
    assert names_of("dissensus.plot")
    assert not {"TYPE_CHECKING", "Any", "np", "annotations"} & set(names_of("dissensus.plot"))
    assert names_of("dissensus_collect.work") == []


if __name__ == "__main__":
    print(*difference(), sep="\n")
    if sys.argv[1:] == ["write"]:
        SNAPSHOT.write_text(json.dumps(public_names(), indent=1) + "\n", encoding="utf-8")
