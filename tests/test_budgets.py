"""Ceilings for the size of the code, in `budgets.toml`: what is there may shrink and not grow.

`python -m tests.test_budgets` prints the table and the long functions. `python -m tests.test_budgets write` lowers
each ceiling to what is there and adds rooms that are new; a ceiling is raised by hand only.
"""

from __future__ import annotations

import ast
import functools
import inspect
import io
import sys
import tokenize
import tomllib
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING

import dissensus as dis
from tests.rooms import ROOT, room_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

CEILINGS = ROOT / "tests" / "budgets.toml"
TEXTS = {".toml", ".jinja", ".html", ".js", ".css", ".sql"}
"""Suffixes of the other text in src that people write and read."""
LONG = 60
"""Lines of code above which a function is long."""
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@dataclass(frozen=True)
class Size:
    """Size of a room.

    Attributes:
        code: lines of Python in src that are neither blank nor comment nor docstring.
        text: lines of other text in src that are not blank.
        long: functions in src of more than `LONG` such lines of Python.
        tests: lines of the Python files of its tests.
    """

    code: int = 0
    text: int = 0
    long: int = 0
    tests: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __le__(self, other: Size) -> bool:
        return all(a <= b for a, b in zip(astuple(self), astuple(other), strict=True))

    def lowest(self, other: Size) -> Size:
        """Return the smaller of each two numbers."""
        return Size(*(min(a, b) for a, b in zip(astuple(self), astuple(other), strict=True)))


def code_lines(source: str, tree: ast.Module) -> set[int]:
    """Return the numbers of the lines that hold code."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                code.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
    return code


def long_functions(tree: ast.Module, code: set[int]) -> Iterator[tuple[str, int, int]]:
    """Yield name, line and number of lines of each function with more than `LONG` lines of code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = len(code.intersection(range(node.lineno, (node.end_lineno or 0) + 1)))
            if lines > LONG:
                yield node.name, node.lineno, lines


@functools.cache
def measured(root: Path = ROOT) -> tuple[dict[str, Size], list[str]]:
    """Return the size of each room, and the long functions."""
    sizes: dict[str, Size] = {}
    long: list[str] = []
    for path in sorted([*root.glob("packages/*/src/*/**/*"), *root.glob("packages/*/tests/**/*.py")]):
        if path.suffix != ".py" and path.suffix not in TEXTS:
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        found = Size(text=sum(1 for line in lines if line.strip()))
        if path.relative_to(root).parts[2] == "tests":
            found = Size(tests=len(lines))
        elif path.suffix == ".py":
            source = "\n".join([*lines, ""])
            tree = ast.parse(source)
            code = code_lines(source, tree)
            here = [f"{path.relative_to(root)}:{line} {name}: {n}" for name, line, n in long_functions(tree, code)]
            found = Size(code=len(code), long=len(here))
            long += here
        sizes[room_of(path, root)] = sizes.get(room_of(path, root), Size()) + found
    for path in sorted(root.glob("tests/**/*.py")):
        found = Size(tests=len(path.read_text(encoding="utf-8").splitlines()))
        sizes[room_of(path, root)] = sizes.get(room_of(path, root), Size()) + found
    return sizes, long


def surface() -> dict[str, int]:
    """Return how many commands, parameters of commands and options of `read_votes` there are."""
    # Loading all commands takes seconds, which the other tests need not.
    from tests.cli.commands import COMMANDS

    single = [command for command in COMMANDS.values() if not hasattr(command, "commands")]
    options = [each for each in inspect.signature(dis.read_votes).parameters.values() if each.kind is each.KEYWORD_ONLY]
    return {
        "commands": len(single),
        "parameters": sum(len(command.params) for command in single),
        "read_votes": len(options),
    }


def ceilings() -> tuple[dict[str, Size], dict[str, int]]:
    """Return the ceilings of the rooms and of the surface."""
    written = tomllib.loads(CEILINGS.read_text(encoding="utf-8")) if CEILINGS.exists() else {}
    return {room: Size(**numbers) for room, numbers in written.get("rooms", {}).items()}, written.get("surface", {})


def table(sizes: Mapping[str, Size], allowed: Mapping[str, Size]) -> str:
    """Return the sizes beside their ceilings, with a total for each package; `>` marks what is exceeded."""
    shown, most = dict(sizes), dict(allowed)
    for package in ("dissensus", "dissensus_train", "dissensus_collect", "dissensus_papers", "tests", ""):
        for total, rows in ((shown, sizes), (most, allowed)):
            inside = [size for room, size in rows.items() if not package or room.split("/")[0] == package]
            total[f"total {package}".strip()] = sum(inside, Size())
    lines = [f"{'room':28}" + "".join(f"{field.name:>7} {'most':>6}" for field in fields(Size))]
    for room, size in shown.items():
        pairs = zip(astuple(size), astuple(most.get(room, Size())), strict=True)
        lines.append(f"{room:28}" + "".join(f"{n:7}{'>' if n > limit else ' '}{limit:6}" for n, limit in pairs))
    return "\n".join(lines)


def write() -> None:
    """Lower the ceilings to what is there, and give new rooms theirs."""
    (sizes, _), (rooms, names) = measured(), ceilings()
    lines = [
        "# Ceilings for the size of each room: what is there may shrink and not grow (`test_budgets.py`).",
        "# `python -m tests.test_budgets write` lowers them; they are raised by hand, with a reason in the commit.",
        "",
        "[surface]",
        *(f"{name} = {min(number, names.get(name, number))}" for name, number in surface().items()),
        "",
        "[rooms]",
    ]
    for room in sorted(sizes):
        size = sizes[room].lowest(rooms.get(room, sizes[room]))
        numbers = ", ".join(f"{field.name} = {getattr(size, field.name)}" for field in fields(Size))
        lines.append(f'"{room}" = {{ {numbers} }}')
    CEILINGS.write_text("\n".join([*lines, ""]), encoding="utf-8")


def test_rooms_stay_below_their_ceilings() -> None:
    (sizes, long), (rooms, _) = measured(), ceilings()
    shown = table(sizes, rooms)
    print(shown)
    above = [room for room, size in sizes.items() if not size <= rooms.get(room, Size())]
    assert not above, f"above their ceilings: {', '.join(above)}\n{shown}\nlong functions:\n" + "\n".join(long)


def test_ceilings_are_of_rooms_that_are_there() -> None:
    assert set(ceilings()[0]) <= set(measured()[0]), "run `python -m tests.test_budgets write`"


def test_surface_stays_below_its_ceilings() -> None:
    most = ceilings()[1]
    above = {name: f"{number} > {most[name]}" for name, number in surface().items() if number > most[name]}
    assert not above


def test_measured_counts_code_text_and_tests(tmp_path: Path) -> None:
    room = tmp_path / "packages" / "dissensus-train" / "src" / "dissensus_train" / "report"
    room.mkdir(parents=True)
    long = "\n".join(f"    x = {n}" for n in range(LONG))
    (room / "a.py").write_text(
        f'"""Text.\n\nMore.\n"""\n\n# why\nA = """1\n\n2"""\n"""Docstring."""\nB = (\n    1,  # one\n)\n\n\n'
        f'def f():\n    """Do."""\n    return 1\n\n\nasync def g():\n    """Do."""\n\n{long}\n'
    )
    (room / "page.jinja").write_text("a\n\nb\n")
    (room / "data.json").write_text("1\n")
    tests = tmp_path / "packages" / "dissensus-train" / "tests" / "study_report"
    tests.mkdir(parents=True)
    (tests / "test_a.py").write_text("\n# line\n")
    (tests.parent / "dynamics").mkdir()
    (tests.parent / "dynamics" / "test_b.py").write_text("\n\n\n")
    (tmp_path / "tests" / "net").mkdir(parents=True)
    (tmp_path / "tests" / "net" / "test_c.py").write_text("\n")
    sizes, functions = measured(tmp_path)
    assert sizes == {
        "dissensus_train/report": Size(code=3 + 3 + 2 + 1 + LONG, text=2, long=1, tests=2),
        "dissensus_train": Size(tests=3),
        "tests/net": Size(tests=1),
    }
    assert functions == [f"packages/dissensus-train/src/dissensus_train/report/a.py:21 g: {LONG + 1}"]
    assert not sizes["dissensus_train/report"] <= Size(code=1000, text=1, long=1, tests=2)
    assert "2>     1" in table(sizes, {"dissensus_train/report": Size(code=1000, text=1, long=1, tests=2)})


if __name__ == "__main__":
    if sys.argv[1:] == ["write"]:
        write()
    print(table(measured()[0], ceilings()[0]))
    print(f"functions of more than {LONG} lines of code:", *measured()[1], sep="\n")
