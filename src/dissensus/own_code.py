"""A user's own code, named in a study file: `my_encoders.py:encode`, or `package.module:function`.

The fingerprint of the source behind it is part of what it makes: an edited network is another network.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.machinery import ModuleSpec


def own_function(name: str, *, folder: Path, kind: str) -> Callable[..., Any]:
    """The function behind `file.py:function` or `package.module:function`.

    Args:
        name: what the user wrote. A file is looked for in `folder`, and so are modules, before those installed.
        folder: that of the study file.
        kind: what the function is to be, for the sentence of a refusal: `encoder`, say.

    Raises:
        InputError: where there is no such file, module or function, or importing it fails.
    """
    place, _, function = name.rpartition(":")
    remedy = "give file.py:function beside the study file, or package.module:function of something installed"
    if not place or not function:
        raise InputError(f"{kind} '{name}' names no function; {remedy}")
    try:
        with _first_on_path(folder):
            module = _from_file(folder / place) if place.endswith(".py") else importlib.import_module(place)
        made = getattr(module, function)
    except (Exception, SystemExit) as error:
        # The file runs when it is imported, and may raise anything; the user is told what, and where it was asked for.
        raise InputError(f"{kind} {name}: {error or type(error).__name__}; {remedy}") from error
    if not callable(made):
        raise InputError(f"{kind} {name}: this is a {type(made).__name__}, not a function; {remedy}")
    return made  # type: ignore[no-any-return]


def own_source(name: str, *, folder: Path) -> str:
    """The fingerprint (`source_fingerprint`) of the code behind `own_function`'s name."""
    place = name.rpartition(":")[0]
    if place.endswith(".py"):
        return _fingerprint(folder / place, Path(place).stem)
    with _first_on_path(folder):
        return source_fingerprint(place)


def _from_file(path: Path) -> Any:
    # The full path is part of the module's name: two studies may each have a nets.py.
    called = f"dissensus_own_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}_{path.stem}"
    spec: ModuleSpec | None = importlib.util.spec_from_file_location(called, path)
    assert spec is not None, "the name ends in .py"
    assert spec.loader is not None, "the name ends in .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[called] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[called]
        raise
    return module


@contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    """Modules of the folder can be imported, so that a user's file finds its neighbours."""
    place = str(folder.resolve())
    sys.path.insert(0, place)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(place)


def source_fingerprint(module: str) -> str:
    """A hash of a module's source file and of the modules in the same folder, or below it, that it imports.

    Imports are followed from file to file, wherever in a file they stand. What lies in other folders (PyTorch, say)
    does not count: versions of packages are recorded with a run, not part of its key. Empty for a module that has no
    source file.
    """
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        return ""
    return _fingerprint(Path(spec.origin), module)


def _fingerprint(path: Path, module: str) -> str:
    start = path.resolve()
    if not start.is_file():
        return ""
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
