"""Arrays in NumPy's own files, npz and npy, and in PyTorch's, read without running anything that is in them."""

from __future__ import annotations

import io
import math
import pickle
import warnings
import zipfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def read_npz(
    path: Path, *, only: Collection[str] | None = None, remedy: str = "write or download it again"
) -> dict[str, Array]:
    """The arrays of an npz file, by name: all, or those named in `only` that it has.

    Raises:
        InputError: where there is no such file, or it is damaged, or holds Python objects; it ends with the remedy.
    """
    with _explained(path, "npz", remedy), path.open("rb") as file:
        opened = np.load(file, allow_pickle=False)
        if isinstance(opened, np.ndarray):
            raise ValueError("it holds one array without a name")
        return {name: opened[name] for name in opened.files if only is None or name in only}


def read_npy(path: Path, *, remedy: str = "write or download it again") -> Array:
    """The array of an npy file, mapped: its numbers are read when they are used. It raises as `read_npz` does."""
    with _explained(path, "npy", remedy):
        # Mapped, so that a damaged header cannot ask for more memory than the file has.
        opened = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(opened, np.ndarray):
            opened.close()
            raise ValueError("it holds several arrays with names")
        if isinstance(opened, np.memmap) and opened.offset + opened.nbytes != path.stat().st_size:
            raise ValueError("it is longer than its header says")
        return opened


@contextmanager
def _explained(path: Path, kind: str, remedy: str) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            # NumPy warns where it has to guess at a header; a whole file needs no guess.
            warnings.simplefilter("error", UserWarning)
            yield
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); {remedy}") from error
    except Exception as error:  # NumPy may raise anything for a damaged file.
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{path}: cannot be read as a whole {kind} file of plain arrays ({reason}); {remedy}"
        ) from error


_STORAGES: Final = {
    "ByteStorage": "u1",
    "CharStorage": "i1",
    "BoolStorage": "?",
    "ShortStorage": "<i2",
    "IntStorage": "<i4",
    "LongStorage": "<i8",
    "HalfStorage": "<f2",
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
}
"""The numbers that a tensor of PyTorch lies in, and what they are to NumPy."""


def _tensor(storage: Array, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> Array:
    """A tensor as PyTorch pickles it, as an array: a window on its storage."""
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True) if n)
    if min((offset, *size, *stride)) < 0 or math.prod(size) > storage.size or (0 not in size and last >= storage.size):
        raise ValueError("a tensor does not fit its numbers")
    steps = [step * storage.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(storage[offset:], size, steps).copy()


_PLAIN: Final = {
    ("numpy.core.multiarray", "_reconstruct"): np._core.multiarray._reconstruct,  # type: ignore[attr-defined]
    ("numpy._core.multiarray", "_reconstruct"): np._core.multiarray._reconstruct,  # type: ignore[attr-defined]
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): lambda text, encoding: text.encode(encoding),
    ("collections", "OrderedDict"): dict,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    **{("torch", name): np.dtype(numbers) for name, numbers in _STORAGES.items()},
}
"""All that a pickle of plain arrays or tensors names."""


class _Arrays(pickle.Unpickler):
    """Reads a pickle of plain arrays and tensors, and refuses one that would run anything else."""

    def __init__(self, archive: zipfile.ZipFile, inside: str) -> None:
        super().__init__(io.BytesIO(archive.read(inside)))
        self.archive, self.folder = archive, inside.removesuffix("data.pkl")

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _PLAIN:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is no plain array")
        return _PLAIN[module, name]

    def persistent_load(self, pid: Any) -> Array:
        """The numbers of a tensor, which lie in a file of the archive."""
        _, numbers, key, *_ = pid
        return np.frombuffer(self.archive.read(f"{self.folder}data/{key}"), numbers)


def read_pt(path: Path, *, remedy: str = "download it again") -> dict[str, Array]:
    """The arrays of a file that PyTorch saved and that holds arrays or tensors alone; nothing in it is run.

    They are called as in the file; an array that the file holds by itself is called ''.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            inside = next(name for name in archive.namelist() if name.endswith("data.pkl"))
            held = _Arrays(archive, inside).load()
        arrays = held if isinstance(held, dict) else {"": held}
        return {str(name): np.asarray(array) for name, array in arrays.items()}
    except Exception as error:  # As above: a pickle runs what it names, as far as that is let.
        raise InputError(f"{path}: cannot be read as a file of plain arrays ({error}); {remedy}") from None
