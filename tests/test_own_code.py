"""An imported network is keyed by its source: its file, and the files beside it that it imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dissensus.own_code import source_fingerprint

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
    before = source_fingerprint("nets_a")
    (folder / changed).write_text(FILES[changed] + "# edited\n")
    assert source_fingerprint("nets_a") != before


def test_files_that_it_does_not_import_do_not_count(folder: Path) -> None:
    before = source_fingerprint("nets_a")
    (folder / "unread_a.py").write_text("nothing = 4\n")
    assert source_fingerprint("nets_a") == before
    assert len(before) == 16


def test_a_module_of_a_package_is_followed_by_its_full_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package_b"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "nets.py").write_text("from package_b.parts import block\nfrom package_b import more\n")
    for name in ("parts", "more"):
        (package / f"{name}.py").write_text("block = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = source_fingerprint("package_b.nets")
    for name in ("parts", "more"):
        (package / f"{name}.py").write_text("block = 2\n")
        assert source_fingerprint("package_b.nets") != found
        found = source_fingerprint("package_b.nets")


def test_a_module_without_source_has_no_fingerprint() -> None:
    assert source_fingerprint("sys") == ""
    assert source_fingerprint("not_there_at_all") == ""
