"""NumPy's and PyTorch's files: what is damaged, missing or could run code is refused in one sentence."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus.array_file import read_npy, read_npz, read_pt
from dissensus.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "names": np.array(["x", "yy"])}


def test_arrays_come_back_all_or_those_asked_for(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **ARRAYS)  # type: ignore[arg-type]
    found = read_npz(tmp_path / "a.npz")
    assert sorted(found) == ["a", "names"]
    assert all((found[name] == values).all() for name, values in ARRAYS.items())
    assert list(read_npz(tmp_path / "a.npz", only=("names", "other"))) == ["names"]


def test_one_array_comes_back(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ARRAYS["a"])
    assert (read_npy(tmp_path / "a.npy") == ARRAYS["a"]).all()


KINDS = ["uint8", "int8", "bool", "int16", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_come_back_as_pytorch_saved_them(tmp_path: Path, kind: str) -> None:
    whole = (torch.arange(24).reshape(2, 3, 4) % 2 if kind == "bool" else torch.arange(24).reshape(2, 3, 4)).to(
        getattr(torch, kind)
    )
    saved = {"whole": whole, "turned": whole.permute(2, 0, 1), "part": whole[1, 1:], "one": whole[0, 0, 0]}
    torch.save(saved, tmp_path / "a.pt")
    found = read_pt(tmp_path / "a.pt")
    assert list(found) == list(saved)
    for name, tensor in saved.items():
        assert found[name].dtype == tensor.numpy().dtype
        np.testing.assert_array_equal(found[name], tensor.numpy())
    torch.save(whole, tmp_path / "b.pt")
    np.testing.assert_array_equal(read_pt(tmp_path / "b.pt")[""], whole.numpy())


def test_a_tensor_file_with_anything_else_in_it_is_refused(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), tmp_path / "network.pt")
    torch.save(torch.zeros(1).expand(10**9), tmp_path / "expanded.pt")
    (tmp_path / "text.pt").write_text("no tensors")
    for name in ("network.pt", "expanded.pt", "text.pt", "nowhere.pt"):
        with pytest.raises(InputError, match=rf"{name}: cannot be read as a file of plain arrays .*; fetch it"):
            read_pt(tmp_path / name, remedy="fetch it")


@pytest.mark.parametrize("read", [read_npz, read_npy])
def test_what_cannot_be_read_is_one_sentence_with_the_remedy(tmp_path: Path, read: Any) -> None:
    objects = np.array([{"a": 1}], dtype=object)
    np.savez(tmp_path / "objects.npz", a=objects)
    np.save(tmp_path / "objects.npy", objects)
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    np.save(tmp_path / "other.npy", np.ones(3))
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("no arrays")
    wrong = "other.npy" if read is read_npz else "other.npz"
    ending = "npz" if read is read_npz else "npy"
    for name in (f"objects.{ending}", wrong, "empty", "text"):
        with pytest.raises(InputError, match=rf"{name}: cannot be read as a whole {ending} file .*; fetch it"):
            read(tmp_path / name, remedy="fetch it")
    with pytest.raises(InputError, match=r"nowhere: cannot be read \(No such file or directory\); fetch it"):
        read(tmp_path / "nowhere", remedy="fetch it")


@settings(max_examples=60)
@given(st.data())
def test_a_damaged_file_is_read_or_refused_and_never_anything_else(tmp_path_factory: Any, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    for read, save in ((read_npz, np.savez), (read_npy, np.save)):
        buffer = io.BytesIO()
        save(buffer, ARRAYS["a"])
        whole = bytearray(buffer.getvalue())
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.integers(0, 255))
        cut = data.draw(st.sampled_from([len(whole), at]))
        (folder / "file").write_bytes(bytes(whole[:cut]))
        try:
            read(folder / "file")
        except InputError as error:
            assert str(error).startswith(f"{folder / 'file'}: cannot be read")  # noqa: PT017
