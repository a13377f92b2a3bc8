"""The program that changes code, on code of which all changes are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.mutants import mutants

if TYPE_CHECKING:
    from pathlib import Path

CODE = '''"""Docstring with 1."""
from typing import TYPE_CHECKING

if TYPE_CHECKING and 1 < 2:
    A = 3


def f(é: "int < 3", b: int = 4) -> "int + 1":
    """Say 5."""
    print(f"{é + 6}")
    if not é or é <= b:
        raise ValueError("no")
    é += -b
    return "ä" + (é - 1), True
'''


def test_mutants_of_each_kind_are_made_and_compile(tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    path.write_text(CODE, encoding="utf-8")
    found = {(each.line, each.old, each.new) for each in mutants(path)}
    assert found == {
        (8, "4", "(5)"),
        (10, 'print(f"{é + 6}")', "pass"),
        (11, "not é or é <= b", "(not é and é <= b)"),
        (11, "not é", "(é)"),
        (11, "é <= b", "(é < b)"),
        (11, "é <= b", "(é > b)"),
        (12, 'raise ValueError("no")', "pass"),
        (13, "é += -b", "pass"),
        (13, "é += -b", "é -= -b"),
        (13, "-b", "(b)"),
        (14, '"ä" + (é - 1)', "('ä' - (é - 1))"),
        (14, "é - 1", "(é + 1)"),
        (14, "1", "(2)"),
        (14, "True", "(False)"),
    }
    source = CODE.encode()
    for each in mutants(path):
        changed = source[: each.start] + each.new.encode() + source[each.end :]
        compile(changed, "code.py", "exec")
        assert changed != source
