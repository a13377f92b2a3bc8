"""The source code behind an imported network, as a fingerprint: an edited network is another network."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def source_fingerprint(module: str) -> str:
    """A hash of a module's source file and of the modules in the same folder, or below it, that it imports.

    Imports are followed from file to file, wherever in a file they stand. What lies in other folders (PyTorch, say)
    does not count: versions of packages are recorded with a run, not part of its key. Empty for a module that has no
    source file.
    """
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        return ""
    start = Path(spec.origin).resolve()
    if start.suffix != ".py":
        return hashlib.sha256(start.read_bytes()).hexdigest()[:16]
    found: set[Path] = set()
    waiting = [start]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _neighbours(path, start.parent, module)
    digest = hashlib.sha256()
    for path in sorted(found):
        digest.update(str(path.relative_to(start.parent)).encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _neighbours(path: Path, folder: Path, module: str) -> Iterator[Path]:
    """The files of the folder that a file imports by absolute or relative names."""
    package = module.rpartition(".")[0]
    for name, base in _imported_names(path):
        names = [name]
        if package and name.startswith(f"{package}."):
            names.append(name.removeprefix(f"{package}."))
        for each in names:
            place = (base or folder).joinpath(*each.split("."))
            for candidate in (place.with_suffix(".py"), place / "__init__.py"):
                resolved = candidate.resolve()
                if candidate.is_file() and resolved.is_relative_to(folder):
                    yield resolved


def _imported_names(path: Path) -> Iterator[tuple[str, Path | None]]:
    """Dotted names that a file imports, each with the folder it is relative to; None for absolute ones."""
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError:
        # Importing the network tells what is wrong with it; here its bytes are enough.
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                yield from ((".".join(parts[:n]), None) for n in range(1, len(parts) + 1))
        elif isinstance(node, ast.ImportFrom):
            base = path.parents[node.level - 1] if node.level else None
            parts = (node.module or "").split(".") if node.module else []
            yield from ((".".join(parts[:n]), base) for n in range(1, len(parts) + 1))
            # A name that is imported from a package may itself be a module.
            yield from ((".".join([*parts, alias.name]), base) for alias in node.names if alias.name != "*")
