"""Arrays in NumPy's own files, npz and npy, read without running anything that is in them."""

from __future__ import annotations

import io
import pickle
import struct
import warnings
import zipfile
import zlib
from contextlib import contextmanager
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

UNREADABLE: Final = (
    ValueError,
    EOFError,
    KeyError,
    RuntimeError,
    SyntaxError,
    TypeError,
    AttributeError,
    MemoryError,
    OverflowError,
    TokenError,
    UserWarning,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy raises for damaged files."""


def read_npz(
    path: Path, *, only: Collection[str] | None = None, remedy: str = "write or download it again"
) -> dict[str, Array]:
    """The arrays of an npz file, by name.

    Args:
        path: the file.
        only: names of the arrays that are wanted, where the file has them; None reads all.
        remedy: the end of the sentence where the file cannot be read.

    Raises:
        InputError: where there is no such file, or it is damaged, or holds Python objects.
    """
    with _explained(path, "npz", remedy), path.open("rb") as file:
        opened = np.load(file, allow_pickle=False)
        if isinstance(opened, np.ndarray):
            raise ValueError("it holds one array without a name")
        return {name: opened[name] for name in opened.files if only is None or name in only}


def read_npy(path: Path, *, remedy: str = "write or download it again") -> Array:
    """The array of an npy file, mapped: its numbers are read when they are used.

    Args:
        path: the file.
        remedy: the end of the sentence where the file cannot be read.

    Raises:
        InputError: where there is no such file, or it is damaged, or holds Python objects.
    """
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
    except UNREADABLE as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{path}: cannot be read as a whole {kind} file of plain arrays ({reason}); {remedy}"
        ) from error


_PLAIN: Final = {
    ("numpy.core.multiarray", "_reconstruct"): np._core.multiarray._reconstruct,  # type: ignore[attr-defined]
    ("numpy._core.multiarray", "_reconstruct"): np._core.multiarray._reconstruct,  # type: ignore[attr-defined]
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): lambda text, encoding: text.encode(encoding),
}
"""All that a pickle of plain arrays names."""


class _Arrays(pickle.Unpickler):
    """Reads a pickle of plain arrays, and refuses one that would run anything else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _PLAIN:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is no plain array")
        return _PLAIN[module, name]


def read_pt(path: Path, *, remedy: str = "download it again") -> dict[str, Array]:
    """The arrays, by name, of a file that PyTorch saved and that holds NumPy arrays alone; nothing in it is run."""
    try:
        with zipfile.ZipFile(path) as archive:
            inside = next(name for name in archive.namelist() if name.endswith("data.pkl"))
            held = _Arrays(io.BytesIO(archive.read(inside))).load()
        return {str(name): np.asarray(array) for name, array in held.items()}
    except (OSError, StopIteration, pickle.UnpicklingError, AttributeError, *UNREADABLE) as error:
        raise InputError(f"{path}: cannot be read as a file of plain arrays ({error}); {remedy}") from None
