"""A file that a person wrote is refused with the line and the nearest name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import pytest
from msgspec import Meta, field

from dissensus.errors import InputError
from dissensus.toml_file import TableError, TomlFile, TomlTable

if TYPE_CHECKING:
    from pathlib import Path


class Lease(TomlTable):
    seconds: Annotated[float, Meta(gt=0)] = 600.0
    kind: Literal["short", "long"] = "short"

    def __post_init__(self) -> None:
        if self.seconds == 13:
            raise TableError("seconds", "is 13; choose a luckier number")


class Entry(TomlTable):
    name: str
    of: dict[str, int] = field(default_factory=dict)


class File(TomlTable):
    lease: Lease = Lease()
    entries: tuple[Entry, ...] = ()
    named: dict[str, Entry] = field(default_factory=dict)
    ids: tuple[int, ...] = ()


def read(folder: Path, text: str) -> TomlFile:
    path = folder / "file.toml"
    path.write_text(text)
    return TomlFile(path, kind="file")


def test_a_key_is_found_in_its_own_table(tmp_path: Path) -> None:
    file = read(tmp_path, "seed = 1\n\n[one]\nseed = 2\n\n[two] # a remark\n'seed' = 3\n")
    assert [file.line(*place, "seed") for place in ((), ("one",), ("two",))] == [1, 4, 7]
    assert file.line("two", "missing") == 6
    assert file.line("one") == 3
    assert file.line("three", "missing") == 1


def test_lines_of_entries_dotted_keys_and_texts_over_several_lines(tmp_path: Path) -> None:
    text = "[[a]]\nk = '''\nk = 3\n[b]\n'''\n[[a]]\nx.'y z' = 1\n[c.d]\nk = 2\n"
    file = read(tmp_path, text)
    assert [file.line("a", 0, "k"), file.line("a", 1), file.line("a", 1, "x", "y z")] == [2, 6, 7]
    assert [file.line("c", "d", "k"), file.line("b")] == [9, 1]


def test_lines_of_tables_in_lists_and_below_entries(tmp_path: Path) -> None:
    text = """\
[[a]]
mixed = ["{, [", '}, {', # ], {
  [{ no = 1 }], { k = [{ no = 2 }, 3] }, { k = "\\"{" },
  '''
  it's {''', {},
]
[[a]]
mixed = [{}]
[[a.b]]
[a.b.c]
k = 1
"""
    file = read(tmp_path, text)
    assert file.given["a"][0]["mixed"][3:] == [{"k": [{"no": 2}, 3]}, {"k": '"{'}, "  it's {", {}]
    assert [file.line("a", 0, "mixed", entry) for entry in range(8)] == [2, 2, 2, 3, 3, 2, 5, 2]
    assert [file.line("a", 1, "mixed", 0), file.line("a", 1, "b", 0), file.line("a", 1, "b", 0, "c", "k")] == [8, 9, 11]


def test_what_was_moved_is_refused_where_it_was_written(tmp_path: Path) -> None:
    file = read(tmp_path, "old = 1\n[[a]]\nk = 1\n")
    file.moved = {("b", 3): ("a", 0), ("b", 3, "shared"): ("old",)}
    told = [str(file.refuse(place, "is wrong")) for place in (("b", 3, "k"), ("b", 3, "shared"), ("b", 3, "none"))]
    ends = ["line 3: 'k' is wrong", "line 1: 'old' is wrong", "line 2: 'none' in [[a]] is wrong"]
    assert [one.partition(", ")[2] for one in told] == ends
    file = read(tmp_path, "[[entries]]\nnaem = 'a'\n")
    file.given, file.moved = {"entries": [{"name": "b"}, *file.given["entries"]]}, {("entries", 1): ("entries", 0)}
    with pytest.raises(InputError, match=r"line 2: 'naem' is no key in \[\[entries\]\]; did you mean 'name'"):
        file.read_as(File)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[lease]\nsecnds = 3\n",
            "line 2: 'secnds' is no key in [lease]; did you mean 'seconds'? choose seconds, kind",
        ),
        ("[leese]\n", "line 1: 'leese' is no key at the top; did you mean 'lease'?"),
        ("lease = 3\n", "line 1: 'lease' is 3; give a table, written as [lease]"),
        ("[lease]\nseconds = nan\n", "line 2: 'seconds' is nan; give a number, above 0"),
        ("[lease]\nseconds = 13\n", "line 2: 'seconds' is 13; choose a luckier number"),
        ("[lease]\nkind = 'lung'\n", "line 2: 'kind' names 'lung', which is not there; did you mean 'long'?"),
        ("[lease]\nkind = 3\n", "line 2: 'kind' is 3; give one of long, short"),
        ("ids = [1,\n true]\n", "line 1: 'ids' has True; give a whole number such as 10"),
        ("entries = {}\n", "line 1: 'entries' is {}; give tables, each written as [[entries]]"),
        ("[[entries]]\nname = 'a'\n[[entries]]\n", "line 3: 'name' in [[entries]] is missing; give a text"),
        ("[[entries]]\nname = 'a'\nof = { a = 1, b = 'x' }\n", "line 3: 'b' in of is 'x'; give a whole number"),
        ("[named.one]\nname = 'a'\n[named.two]\nname = 1\n", "line 4: 'name' is 1; give a text in quotation marks"),
        ("[named.one]\nname = 'a'\n[named.two]\nnaem = 1\n", "line 4: 'naem' is no key in [named.two]"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line_and_the_remedy(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, text).read_as(File)
    assert f"file.toml, {sentence}" in str(error.value)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not valid TOML"):
        read(tmp_path, "lease = \n")
    with pytest.raises(InputError, match="there is no such file"):
        TomlFile(tmp_path / "nowhere.toml", kind="file")
