"""Own code is found beside the study or installed, and keyed by its file and the files beside it that it imports."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from dissensus.errors import InputError
from dissensus.own_code import beside, own_function, own_source

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "nets_a.py": "import math\nfrom blocks_a import block\ndef net(shape, classes):\n    from late_a import head\n",
    "blocks_a.py": "import deep_a.inner as inner\n",
    "deep_a/__init__.py": "",
    "deep_a/inner.py": "from . import leaf\nfrom .leaf import other\n",
    "deep_a/leaf.py": "other = 1\n",
    "late_a.py": "head = 2\n",
    "unread_a.py": "nothing = 3\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("changed", [name for name in FILES if name != "unread_a.py"])
def test_a_change_in_any_file_that_it_imports_is_another_network(folder: Path, changed: str) -> None:
    before = own_source("nets_a:net")
    (folder / changed).write_text(FILES[changed] + "# edited\n")
    assert own_source("nets_a:net") != before


def test_files_that_it_does_not_import_do_not_count(folder: Path) -> None:
    before = own_source("nets_a:net")
    (folder / "unread_a.py").write_text("nothing = 4\n")
    assert own_source("nets_a:net") == before
    assert len(before) == 16


def test_a_module_of_a_package_is_followed_by_its_full_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package_b"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "nets.py").write_text("from package_b.parts import block\nfrom package_b import more\n")
    for name in ("parts", "more"):
        (package / f"{name}.py").write_text("block = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = own_source("package_b.nets:net")
    for name in ("parts", "more"):
        (package / f"{name}.py").write_text("block = 2\n")
        assert own_source("package_b.nets:net") != found
        found = own_source("package_b.nets:net")


def test_a_module_without_source_has_no_fingerprint() -> None:
    assert own_source("sys:net") == ""
    assert own_source("not_there_at_all:net") == ""


def test_a_file_beside_the_study_is_found_with_what_it_imports_and_the_path_stays(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(
        "from blocks_c import width\nclass Net:\n    size = width\ndef net(shape, classes):\n"
        "    from late_c import depth\n    return width, depth\n"
    )
    (tmp_path / "blocks_c.py").write_text("width = 3\n")
    (tmp_path / "late_c.py").write_text("depth = 5\n")
    path, modules = list(sys.path), set(sys.modules)
    for name in ("nets.py:net", "nets:net"):
        net = own_function(name, folder=tmp_path, kind="model")
        with beside(tmp_path):
            assert net((4,), 2) == (3, 5)
    assert sys.path == path
    assert not {"nets", "blocks_c", "late_c"} & (set(sys.modules) - modules)


def test_an_edited_file_or_neighbour_is_loaded_again(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text("from blocks_d import width\ndef net():\n    return width\n")
    for width in (3, 44):
        (tmp_path / "blocks_d.py").write_text(f"width = {width}\n")
        assert own_function("nets:net", folder=tmp_path, kind="model")() == width
    first = own_source("nets:net", folder=tmp_path)
    (tmp_path / "blocks_d.py").write_text("width = 5\n")
    assert own_source("nets:net", folder=tmp_path) != first


def test_two_studies_may_have_files_of_one_name_and_a_package_of_that_name_is_another(tmp_path: Path) -> None:
    for number, name in enumerate(("one", "two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "json.py").write_text(f"from blocks_e import it\ndef net():\n    return {number}, it\n")
        (tmp_path / name / "blocks_e.py").write_text(f"it = '{name}'\n")
    nets = [own_function("json:net", folder=tmp_path / name, kind="model") for name in ("one", "two")]
    assert [net() for net in nets] == [(0, "one"), (1, "two")]
    assert own_function("json:dumps", folder=tmp_path, kind="model") is json.dumps


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nets.py", "'nets.py' names no function; give file.py:function"),
        ("absent.py:net", "there is no file .*absent.py"),
        ("nowhere.at.all:net", "No module named 'nowhere'"),
        ("broken.py:net", "invalid syntax"),
        ("raising.py:net", "model raising.py:net: no weights here"),
        ("nets.py:absent", "has no attribute 'absent'"),
        ("nets.py:number", "this is a int, not a function"),
    ],
)
def test_what_cannot_be_loaded_is_one_sentence(tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / "nets.py").write_text("number = 3\n")
    (tmp_path / "broken.py").write_text("def net(:\n")
    (tmp_path / "raising.py").write_text("raise RuntimeError('no weights here')\n")
    with pytest.raises(InputError, match=sentence):
        own_function(name, folder=tmp_path, kind="model")
