"""What is written is there whole or not at all."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from dissensus.errors import InputError
from dissensus.whole_file import check_place, whole_file, whole_folder


def half_written(part: Path, error: BaseException) -> None:
    part.write_text("half")
    raise error


def everything(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_file_takes_the_place_of_the_old_one_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    with whole_file(path) as part:
        part.write_text("new")
        assert part.suffix == ".csv"
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert everything(tmp_path) == ["a.csv"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "x"), ValueError("wrong"), KeyboardInterrupt()])
def test_whatever_goes_wrong_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    expected = InputError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected) as raised, whole_file(path, remedy="give it room") as part:
        half_written(part, error)
    if expected is InputError:
        assert str(raised.value) == f"{path}: the file cannot be written (No space left on device); give it room"
    assert path.read_text() == "old"
    assert everything(tmp_path) == ["a.csv"]


def test_a_place_that_cannot_hold_a_file_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match=r"there is no folder .*nowhere; make it first"),
        whole_file(tmp_path / "nowhere" / "a.csv"),
    ):
        raise AssertionError("the block must not run")
    with pytest.raises(InputError, match="this is a folder"), whole_file(tmp_path):
        raise AssertionError("the block must not run")


@pytest.mark.parametrize("write", [whole_file, whole_folder])
def test_whole_file_on_a_read_only_file_system(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(self))

    # A read-only file system refuses `unlink` even for a missing file.
    for name in ("unlink", "mkdir", "write_text", "replace"):
        monkeypatch.setattr(Path, name, refuse)
    with (
        pytest.raises(InputError, match=r"a\.csv: the (file|folder) cannot be written \(Read-only"),
        write(tmp_path / "a.csv") as part,
    ):
        part.write_text("x")


@pytest.mark.parametrize("name", ["votes.csv", "./votes.csv", "link.csv", "hard.csv"])
def test_check_place_refuses_what_is_read_by_any_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "votes.csv").write_text("x")
    (tmp_path / "link.csv").symlink_to("votes.csv")
    (tmp_path / "hard.csv").hardlink_to("votes.csv")
    check_place(Path("other.csv"), "votes.csv")
    with pytest.raises(InputError, match="is read, and would be written over"):
        check_place(Path(name), "texts.csv", "votes.csv")


def test_unfinished_work_lies_where_it_is_told_to(tmp_path: Path) -> None:
    (tmp_path / "partial").mkdir()
    with whole_file(tmp_path / "a.json", within=tmp_path / "partial") as part:
        part.write_text("{}")
        assert part.parent == tmp_path / "partial"
    with whole_folder(tmp_path / "runs" / "b", within=tmp_path / "partial") as folder:
        assert folder.parent == tmp_path / "partial"
        (folder / "run.json").write_text("{}")
    assert everything(tmp_path) == ["a.json", "partial", "runs", "runs/b", "runs/b/run.json"]


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_appears_when_it_is_filled(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "deep" / "set"
    if there:
        path.mkdir(parents=True)
    with whole_folder(path) as part:
        (part / "a.txt").write_text("a")
        assert not (path / "a.txt").exists()
    assert everything(tmp_path) == ["deep", "deep/set", "deep/set/a.txt"]


def test_a_folder_with_something_in_it_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "old.txt").write_text("old")
    with (
        pytest.raises(InputError, match=r"the folder cannot be written .*; choose another name"),
        whole_folder(tmp_path / "set", remedy="choose another name") as part,
    ):
        (part / "new.txt").write_text("new")
    assert everything(tmp_path) == ["set", "set/old.txt"]


def test_a_folder_that_could_not_be_filled_is_gone(tmp_path: Path) -> None:
    with pytest.raises(KeyError), whole_folder(tmp_path / "set") as part:
        half_written(part / "a.txt", KeyError())
    assert everything(tmp_path) == []
