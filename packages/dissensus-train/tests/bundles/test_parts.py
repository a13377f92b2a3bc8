"""A bundle is exactly what was written: every byte of every part, and no part more or less."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus_train.bundles import export_bundle, load_model
from dissensus_train.bundles.parts import check_parts
from tests.bundles.test_texts import trained

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A bundle with an encoder that learnt and a second file of Python; written under a usual umask."""
    before = os.umask(0o022)
    folder = tmp_path_factory.mktemp("study")
    yield export_bundle(trained(folder, model="linear", encoder='encoder = "tfidf"'), folder / "model")[0]
    os.umask(before)


def parts(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_the_sums_are_those_that_anybody_can_check(bundle: Path) -> None:
    lines = (bundle / "SHA256SUMS").read_text().splitlines()
    stated = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert stated == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in parts(bundle) if path.name != "SHA256SUMS"
    }
    assert set(stated) == {"README.md", "bundle.json", "encoder.npz", "trained-on.npy", "weights-0.safetensors"}


@settings(max_examples=150, deadline=None)
@given(where=st.data())
def test_any_flipped_bit_of_any_part_is_refused(bundle: Path, where: Any) -> None:
    path = where.draw(st.sampled_from(parts(bundle)))
    intact = path.read_bytes()
    place = where.draw(st.integers(0, len(intact) - 1))
    flipped = bytearray(intact)
    flipped[place] ^= 1 << where.draw(st.integers(0, 7))
    try:
        path.write_bytes(flipped)
        with pytest.raises(InputError, match=path.name if path.name != "SHA256SUMS" else "model"):
            check_parts(bundle)
    finally:
        path.write_bytes(intact)


def test_every_part_is_looked_at_when_a_model_is_loaded(bundle: Path, tmp_path: Path) -> None:
    load_model(bundle)
    for part in parts(bundle):
        folder = tmp_path / part.name
        shutil.copytree(bundle, folder)
        flipped = bytearray(part.read_bytes())
        flipped[len(flipped) // 2] ^= 1
        (folder / part.name).write_bytes(flipped)
        with pytest.raises(InputError, match="copy the bundle again, or export the model again"):
            load_model(folder)
        (folder / part.name).unlink()
        with pytest.raises(InputError, match=f"its part {part.name} is missing|no bundle|there is no SHA256SUMS"):
            load_model(folder)


def test_classes_in_another_order_are_refused(bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(bundle, tmp_path / "model")
    path = tmp_path / "model" / "bundle.json"
    recipe = json.loads(path.read_text())
    path.write_text(json.dumps({**recipe, "classes": recipe["classes"][::-1]}, indent=1))
    with pytest.raises(InputError, match=r"its part bundle\.json is not as it was written"):
        load_model(tmp_path / "model")


def test_a_part_more_is_refused_but_not_what_hubs_and_desktops_leave(bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(bundle, tmp_path / "model")
    (tmp_path / "model" / ".gitattributes").write_text("*.safetensors filter=lfs\n")
    load_model(tmp_path / "model")
    (tmp_path / "model" / "code").mkdir()
    (tmp_path / "model" / "code" / "more.py").write_text("raise RuntimeError\n")
    with pytest.raises(InputError, match=r"code/more\.py is no part of it; remove that file"):
        load_model(tmp_path / "model")


def test_everybody_may_read_what_the_umask_lets_them(bundle: Path) -> None:
    assert {stat.S_IMODE(path.stat().st_mode) for path in parts(bundle)} == {0o644}
