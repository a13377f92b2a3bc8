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
    """`__getattr__` and `__dir__` for a package whose public names live in the modules given by `home`.

    A name whose home ends in the name itself is what that module has of this name, or else the module:
    `{"losses": "training.losses"}`.
    """

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        module = importlib.import_module(f"{package}.{home[name]}")
        value = getattr(module, name, module) if home[name].rpartition(".")[2] == name else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        # What a room imports for itself is none of its names.
        return sorted({*(name for name in vars(sys.modules[package]) if name.startswith("__")), *home})

    return load, names
