"""Names of a room that are loaded when they are first used.

`import dissensus` stays cheap, and a room can be used on a machine that lacks the libraries of its neighbours.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["lazy_names"]


def lazy_names(
    package: str, *, guesses: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package whose public names live elsewhere.

    They are what the package imports under `if TYPE_CHECKING:`, so that they are written down once. Those that it
    imports from `dissensus_train` are there where that part is installed (`dissensus.parts`); `__all__` has all that
    are there. `guesses` has by the right call the names that people try first, which are answered with that call.
    """

    @functools.cache
    def homes() -> Mapping[str, tuple[str, str]]:
        return _imported_for_types(package)

    def load(name: str) -> Any:
        if name == "__all__":
            value: Any = public()
        elif name not in homes():
            right = [call for call, names in (guesses or {}).items() if name in names.split()]
            hint = f"; write {right[0]}" if right else ""
            raise AttributeError(f"module '{package}' has no attribute '{name}'{hint}")
        elif part := _part(package, homes()[name][0]):
            from dissensus.parts import joined

            value = joined("names", name, part=part, wanted_by=f"{package}.{name}")
        else:
            where, there = homes()[name]
            # A module of the package itself would be looked up here again.
            inner = where == package
            module = importlib.import_module(f"{package}.{there}" if inner else where)
            value = module if inner else getattr(module, there, None)
            # A room within a room may not be loaded yet.
            value = importlib.import_module(f"{where}.{there}") if value is None else value
            # A room that can be called (`report`) stays what its name means, whatever was imported before.
            room = sys.modules.get(f"{package}.{name}")
            value = room if callable(room) else value
        setattr(sys.modules[package], name, value)
        return value

    def public() -> list[str]:
        parts = {name: _part(package, where) for name, (where, _) in homes().items()}
        there = {part for part in {*parts.values()} if not part or importlib.util.find_spec(f"dissensus_{part}")}
        return sorted((name for name, part in parts.items() if part in there), key=lambda name: (parts[name], name))

    def names() -> list[str]:
        # What a room imports for itself is none of its names.
        return sorted({*(name for name in vars(sys.modules[package]) if name.startswith("__")), *public()})

    return load, names


def _part(package: str, where: str) -> str:
    """The part that brings what another package (`dissensus_train`) has; empty for what this package has itself."""
    top = where.partition(".")[0]
    return "" if package.partition(".")[0] == top else top.removeprefix("dissensus_")


def _imported_for_types(package: str) -> dict[str, tuple[str, str]]:
    """By name, the module that it is imported from for type checkers, and what it is called there."""
    import ast
    from importlib import resources

    written = (resources.files(package) / "__init__.py").read_text(encoding="utf-8")
    return {
        name.asname: (str(line.module), name.name)
        for block in ast.parse(written).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for name in line.names
        if name.asname is not None
    }
