"""Small changes of a room's code, one at a time, and whether the room's tests notice them.

`make mutants ROOM=dissensus/votes N=20` (`python -m tests.mutants dissensus/votes 20`) makes the first N of 200 changes
that are drawn with a fixed seed, and writes how many are caught to `mutants.json`. With NEAR=near only test files that
import the changed module are run, where there are some: what is caught is then a lower bound.

mutmut 3 copies one source folder, patches it at import and keeps no fixed sample; four packages whose tests are one
namespace do not fit that. cosmic-ray changes the working tree and needs thirteen further packages.
"""

from __future__ import annotations

import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from tests.rooms import ROOT, room_of

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULTS = ROOT / "tests" / "mutants.json"
SAMPLE, SEED, WORKERS = 200, 0, 2
TIMES = 5
"""Time limit of a run, as a multiple of the same tests without a change; at least a minute."""

SWAPS = re.findall(
    r"(\w+):(\w+)",
    "Lt:LtE Lt:GtE LtE:Lt LtE:Gt Gt:GtE Gt:LtE GtE:Gt GtE:Lt Eq:NotEq NotEq:Eq In:NotIn NotIn:In Is:IsNot IsNot:Is "
    "And:Or Or:And BitAnd:BitOr BitOr:BitAnd Add:Sub Sub:Add Mult:Div Div:Mult",
)
"""Operators of `ast`, each with one that may take its place: boundary, comparison, sign."""


@dataclass(frozen=True)
class Mutant:
    """A change of a file: bytes `start` to `end` become `new`."""

    path: Path
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {' '.join(self.old.split())[:90]}  ->  {self.new[:90]}"


def instead(parent: Any, name: str, place: int | None, value: Any) -> Iterator[tuple[Any, str]]:
    """Yield nodes that can be changed, each with its new text."""
    match value:
        case ast.Constant(value=bool()):
            yield value, f"({not value.value})"
        case ast.Constant(value=int() | float() as number):
            yield value, f"({number + 1})"
        case ast.UnaryOp(op=ast.USub() | ast.Not()):
            yield value, f"({ast.unparse(value.operand)})"
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
            yield value, "pass"
    for other in (getattr(ast, after)() for before, after in SWAPS if before == type(value).__name__):
        held = getattr(parent, name)
        setattr(parent, name, other if place is None else [*held[:place], other, *held[place + 1 :]])
        text = ast.unparse(parent)
        setattr(parent, name, held)
        yield parent, f"({text})" if isinstance(parent, ast.expr) else text


def changes(node: Any) -> Iterator[tuple[Any, str]]:
    """Yield all changes below a node; types, decorators and messages stay as they are."""
    for name, field in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.JoinedStr):
            continue
        for place, value in enumerate(field) if isinstance(field, list) else [(None, field)]:
            if isinstance(value, ast.AST) and "TYPE_CHECKING" not in ast.unparse(getattr(value, "test", ast.Pass())):
                yield from instead(node, name, place, value)
                yield from changes(value)


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield all changes of a module."""
    source = path.read_bytes()
    begin = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    for node, new in changes(ast.parse(source)):
        start, end = begin[node.lineno - 1] + node.col_offset, begin[node.end_lineno - 1] + node.end_col_offset
        yield Mutant(path, node.lineno, start, end, source[start:end].decode(), new)


def tests_of(path: Path, *, near: bool) -> list[str]:
    """Return the tests for a module: its doctests, files that import it, then the others of its room, short first.

    Where no test of its room imports it, those of the package that do are taken; where a room has no folder of tests,
    those of its package are its own.
    """
    parts = path.relative_to(ROOT).with_suffix("").parts
    module, package = ".".join(parts[3:]).removesuffix(".__init__"), room_of(path).partition("/")[0]
    imports = re.compile(
        rf"from {module} import|import {module}\b|from {module.rpartition('.')[0]} import .*{path.stem}"
    )
    files = sorted(ROOT.glob(f"packages/{parts[1]}/tests/**/test_*.py"), key=lambda each: each.stat().st_size)
    own = [file for file in files if room_of(file) == room_of(path)] or [e for e in files if room_of(e) == package]
    users = [file for file in files if imports.search(file.read_text(encoding="utf-8"))]
    close = [file for file in users if file in own] or users
    chosen = close if near and close else [*close, *(file for file in own if file not in close)]
    return [str(each.relative_to(ROOT)) for each in (path, *chosen)]


def outcome(copy: Path, tests: list[str], limit: float) -> str:
    """Return `survived`, `caught` or `time` for the tests run in a copy of the repository."""
    folders = [copy, *copy.glob("packages/*"), *copy.glob("packages/*/src")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=copy, env=env, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return "time"
    return "caught" if done.returncode else "survived"


def measured(room: str, number: int, *, near: bool) -> dict[str, Any]:
    """Return how many of the first changes of a room's sample are caught, and those that are not."""
    paths = [path for path in sorted(ROOT.glob("packages/*/src/**/*.py")) if room_of(path) == room]
    every = [mutant for path in paths for mutant in mutants(path)]
    drawn = random.Random(SEED).sample(every, min(SAMPLE, len(every)))[:number]
    copies: SimpleQueue[Path] = SimpleQueue()
    clean: dict[tuple[str, ...], float] = {}

    def tried(mutant: Mutant) -> str:
        copy, tests = copies.get(), tests_of(mutant.path, near=near)
        path = copy / mutant.path.relative_to(ROOT)
        if tuple(tests) not in clean:
            begin = time.monotonic()
            assert outcome(copy, tests, 3600) == "survived", f"without a change these fail: {' '.join(tests)}"
            clean[tuple(tests)] = time.monotonic() - begin
        source = path.read_bytes()
        path.write_bytes(source[: mutant.start] + mutant.new.encode() + source[mutant.end :])
        found = outcome(copy, tests, max(60, TIMES * clean[tuple(tests)]))
        path.write_bytes(source)
        copies.put(copy)
        print(f"{found:9}{mutant}", flush=True)
        return found

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        for copy in (Path(folder, str(worker)) for worker in range(WORKERS)):
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__", "site", "demo"))
            copies.put(copy)
        found = list(pool.map(tried, drawn))
    survivors = [str(mutant) for mutant, how in zip(drawn, found, strict=True) if how == "survived"]
    sizes = {"possible": len(every), "sampled": len(drawn), "caught": len(drawn) - len(survivors)}
    return {"tests": "near" if near else "all", **sizes, "by_time": found.count("time"), "survivors": survivors}


if __name__ == "__main__":
    room, number, *words = sys.argv[1:]
    written = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    written[room] = measured(room, int(number), near="near" in words)
    RESULTS.write_text(json.dumps(dict(sorted(written.items())), indent=1) + "\n", encoding="utf-8")
    print(json.dumps(written[room], indent=1))
