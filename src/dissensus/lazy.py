"""Names of a room that are loaded when they are first used.

`import dissensus` stays cheap, and a room can be used on a machine that lacks the libraries of its neighbours.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(package: str, home: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package whose public names live in the modules given by `home`."""

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        module = importlib.import_module(f"{package}.{home[name]}")
        # A room may itself be a public name of the house.
        value = module if home[name] == name and not hasattr(module, name) else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home})

    return load, names
