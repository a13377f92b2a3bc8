"""Code of the user's own, named in a study by path: networks, losses, deliveries, encoders.

`nets.py:net` and `nets:net` are looked for beside the study's file; `package.module:net` among what is installed. An
edited file is other code: its source is part of the key of the runs that use it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import sys
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

__all__ = ["source_files"]

_loaded: dict[tuple[Path, str], ModuleType] = {}
"""By file and fingerprint: a file that was edited since is loaded again."""


def own_function(name: str, *, folder: Path | None, kind: str) -> Callable[..., Any]:
    """The function or class behind `file.py:function` or `package.module:function`.

    Files are in the folder, that of the study file, and modules are looked for there before those installed; without
    one, only among those installed.

    Raises:
        InputError: where there is no such file, module or function, or importing it fails; it begins with the kind.
    """
    place, _, function = name.rpartition(":")
    remedy = "give file.py:function beside the study file, or package.module:function of something installed"
    if not place or not function:
        raise InputError(f"{kind} '{name}' names no function; {remedy}")
    file = _file(place, folder)
    if file is None and place.endswith(".py"):
        raise InputError(f"{kind} {name}: there is no file {(folder or Path()) / place}; {remedy}")
    try:
        with beside(folder if file is not None else None):
            source = own_source(name, folder=folder)
            module = importlib.import_module(place) if file is None else _from_file(file, source)
        made = getattr(module, function)
    except (Exception, SystemExit) as error:
        # The file runs when it is imported, and may raise anything; the refusal says what, and who asked for it.
        raise InputError(f"{kind} {name}: {error or type(error).__name__}; {remedy}") from error
    if not callable(made):
        raise InputError(f"{kind} {name}: this is a {type(made).__name__}, not a function; {remedy}")
    return made  # type: ignore[no-any-return]


@contextmanager
def beside(folder: Path | None) -> Iterator[None]:
    """The context that own code is loaded and called in: what it imports from its folder is found.

    Afterwards the path is as it was, and modules from the folder are forgotten, so that two studies may both have a
    `blocks.py`, and an edited one is read again. Nothing compiled is left in the folder: Python would take it for a
    file that was edited within the same second and is as long, and train the old code under the new one's key.
    """
    if folder is None:
        yield
        return
    place, before, compiles = str(folder.resolve()), set(sys.modules), sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    sys.path.insert(0, place)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.dont_write_bytecode = compiles
        sys.path.remove(place)
        for name in set(sys.modules) - before:
            # Not all that lies below the folder: packages are installed below it where it holds an environment.
            top = Path(place, name.partition(".")[0])
            origin = Path(getattr(sys.modules[name], "__file__", None) or "/")
            if origin == top.with_suffix(".py") or origin.is_relative_to(top):
                del sys.modules[name]


def own_source(name: str, *, folder: Path | None = None) -> str:
    """A hash of the source file behind `own_function`'s name and of the modules beside or below it that it imports.

    Imports are followed from file to file, wherever in a file they stand. What lies in other folders (PyTorch, say)
    does not count: versions of packages are recorded with a run, not part of its key. Empty for a module that has no
    source file.
    """
    files = source_files(name.rpartition(":")[0], folder=folder)
    if not files:
        return ""
    digest = hashlib.sha256()
    for place, path in sorted(files.items()):
        digest.update(place.encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def source_files(module: str, *, folder: Path | None = None) -> dict[str, Path]:
    """The source file of a module and those it imports from the same folder, by their place in that folder.

    Empty for a module that has no source file. It is a file or a dotted name, as `own_function` takes it before ":".
    """
    start = _file(module, folder) or _installed(module)
    if start is None:
        return {}
    files: set[Path] = set()
    waiting = [start]
    while waiting:
        path = waiting.pop()
        if path not in files:
            files.add(path)
            waiting += _neighbours(path, start.parent, module.removesuffix(".py")) if path.suffix == ".py" else []
    return {path.relative_to(start.parent).as_posix(): path for path in files}


def _file(module: str, folder: Path | None) -> Path | None:
    """The file beside the study that a path before the colon names; None where there is none."""
    if module.endswith(".py"):
        place = (folder or Path()) / module
    elif folder is not None and all(part.isidentifier() for part in module.split(".")):
        place = folder.joinpath(*module.split(".")).with_suffix(".py")
    else:
        return None
    return place.resolve() if place.is_file() else None


def _installed(module: str) -> Path | None:
    with suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.origin is not None and Path(spec.origin).is_file():
            return Path(spec.origin).resolve()
    return None


def _from_file(file: Path, source: str) -> ModuleType:
    if (file, source) not in _loaded:
        # A name of its own: a `nets` that is installed, or that another study has, is another module.
        where = hashlib.sha256(str(file).encode()).hexdigest()[:8]
        spec = importlib.util.spec_from_file_location(f"dissensus_own_{where}_{source}_{file.stem}", file)
        assert spec is not None, "the name ends in .py"
        assert spec.loader is not None, "the name ends in .py"
        made = importlib.util.module_from_spec(spec)
        sys.modules[made.__name__] = made
        try:
            spec.loader.exec_module(made)
        except BaseException:
            del sys.modules[made.__name__]
            raise
        _loaded[file, source] = made
    return _loaded[file, source]


def _neighbours(path: Path, folder: Path, module: str) -> Iterator[Path]:
    """The files of the folder that a file imports by absolute or relative names."""
    package = module.rpartition(".")[0]
    for name, base in _imported_names(path):
        for dotted in {name, name.removeprefix(f"{package}.") if package else name}:
            place = (base or folder).joinpath(*dotted.split("."))
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
        if isinstance(node, ast.Import | ast.ImportFrom):
            relative = isinstance(node, ast.ImportFrom) and node.level
            module = node.module if isinstance(node, ast.ImportFrom) else None
            for alias in node.names:
                # A name that is imported from a package may itself be a module.
                parts = f"{module or ''}.{alias.name.removesuffix('*')}".strip(".").split(".")
                names = filter(None, accumulate(parts, "{}.{}".format))
                yield from ((name, path.parents[relative - 1] if relative else None) for name in names)
