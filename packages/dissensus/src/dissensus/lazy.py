"""Names of a room that are loaded when they are first used.

`import dissensus` stays cheap, and a room can be used on a machine that lacks the libraries of its neighbours.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(
    package: str, home: Mapping[str, str], *, parts: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package whose public names live in the modules given by `home`.

    A name whose home ends in the name itself is what that module has of this name, or else the module:
    `{"losses": "training.losses"}`.

    Args:
        package: its name.
        home: by public name, the module that has it.
        parts: by public name, the part that brings it where it is installed (`dissensus.parts`).
    """
    others = parts or {}

    def load(name: str) -> Any:
        if name in home:
            module = importlib.import_module(f"{package}.{home[name]}")
            value = getattr(module, name, module) if home[name].rpartition(".")[2] == name else getattr(module, name)
        elif name in others:
            from dissensus.parts import joined

            value = joined("names", name, part=others[name], wanted_by=f"{package}.{name}")
        else:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        # What a room imports for itself is none of its names.
        there = {part for part in {*others.values()} if importlib.util.find_spec(f"dissensus_{part}") is not None}
        added = (name for name, part in others.items() if part in there)
        return sorted({*(name for name in vars(sys.modules[package]) if name.startswith("__")), *home, *added})

    return load, names
