"""A file that a person wrote is refused with the line and the nearest name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dissensus.errors import InputError
from dissensus.toml_file import TomlFile

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, text: str) -> TomlFile:
    path = folder / "file.toml"
    path.write_text(text)
    return TomlFile(path, kind="file")


def test_a_key_is_found_in_its_own_table(tmp_path: Path) -> None:
    file = read(tmp_path, "seed = 1\n\n[one]\nseed = 2\n\n[two] # a remark\n'seed' = 3\n")
    assert [file.line(table, "seed") for table in ("", "one", "two")] == [1, 4, 7]
    assert file.line("two", "missing") == 6
    assert file.line("", "one") == 3
    assert file.line("three", "missing") == 1


def test_an_unknown_key_names_its_neighbour(tmp_path: Path) -> None:
    file = read(tmp_path, "[lease]\nsecnds = 3\n")
    with pytest.raises(
        InputError, match=r"file\.toml, line 2: 'secnds' is no key in \[lease\]; did you mean 'seconds'"
    ):
        file.tables({"": ("lease",), "lease": ("seconds",)})


def test_a_table_that_is_none_and_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 1: 'lease' must be a table, written as"):
        read(tmp_path, "lease = 3\n").tables({"lease": ("seconds",)})
    with pytest.raises(InputError, match="not valid TOML"):
        read(tmp_path, "lease = \n")
    with pytest.raises(InputError, match="there is no such file"):
        TomlFile(tmp_path / "nowhere.toml", kind="file")
