"""Anybody's items without votes: images in a folder, an npz, or an official file; texts in a table.

Duplicates are looked for among them, out-of-distribution items are drawn from them, and annotators are shown them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.array_file import read_npz
from dissensus.datasets.images import (
    is_cifar_100,
    read_ambiguous_mnist,
    read_ardis,
    read_cifar_100,
    read_cifar_batch,
    read_idx,
    read_svhn,
)
from dissensus.errors import InputError, choices
from dissensus.items.pictures import ImageReading, as_bytes, brought_to, image_paths, read_picture
from dissensus.items.shown import Items
from dissensus.table_file import KINDS, open_file, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dissensus.arrays import Names
    from dissensus.items.pictures import Images

ITEM_COLUMNS: Final = ("item", "item_id", "id", "uid", "name")
TEXT_COLUMNS: Final = ("text", "sentence", "comment", "tweet", "content", "document", "review", "post", "utterance")
LABEL_COLUMNS: Final = ("label", "labels", "class", "gold", "original_label")
"""Names of columns that are taken for items, texts and labels, the surest first."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Source:
    """Items from one place, with what can be seen of them.

    Attributes:
        name: of the source.
        items: (items,) names, each once.
        images: (items, channels, height, width) uint8; None for texts and files.
        files: (items,) paths of image files that are read when they are needed; see `read_source`.
        reading: how these become bytes.
        texts: (items,) texts; None for images.
        labels: (items,) names of classes; None where the source has none.
        columns: by name, (items,) further columns of a table, as text.
    """

    name: str
    items: Names
    images: Images | None = None
    files: Names | None = None
    texts: Names | None = None
    labels: Names | None = None
    columns: Mapping[str, Names] = field(default_factory=dict)
    reading: ImageReading = ImageReading()  # noqa: RUF009 - frozen

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        shown = "texts" if self.images is None else f"images of {' x '.join(map(str, self.images.shape[1:]))}"
        return f"Source({len(self):,} {shown}, {'without' if self.labels is None else 'with'} labels)"

    def take(self, members: np.ndarray[Any, Any]) -> Source:
        """The items at the given places, in that order."""

        def pick(values: Any) -> Any:
            return None if values is None else values[members]

        columns = {name: values[members] for name, values in self.columns.items()}
        parts = {part: pick(getattr(self, part)) for part in ("items", "images", "files", "texts", "labels")}
        return replace(self, **parts, columns=columns)


def read_source(
    path: str | Path,
    *,
    name: str | None = None,
    shape: tuple[int, int, int] | None = None,
    streamed: bool = False,
    item: str | None = None,
    text: str | None = None,
    label: str | None = None,
    reading: ImageReading = ImageReading(),  # noqa: B008 - frozen
) -> Source:
    """Items from a folder of images, an `.npz`, the official file of an image set, or a table of texts.

    Official files are idx (MNIST and its kin), CIFAR-10 and CIFAR-100 binary batches, SVHN's cropped `.mat`, ARDIS's
    dataset IV (`ARDIS_train_2828.csv`) and Ambiguous-MNIST (`amnist_samples.pt`). Labels that lie in a file of their
    own are found beside the images; of Ambiguous-MNIST's several digits per image the most frequent is the label.

    Args:
        path: the folder or file.
        name: of the source; the file's own name if not given.
        shape: (channels, height, width) that images are brought to; if not given, images of a folder must agree in
            size. A grey image becomes three equal channels, a coloured one its luminance.
        streamed: leave the images of a folder, of whatever sizes, in their files (`Source.files`), so that whoever
            looks at them one after the other need not hold them all.
        item: the column of a table that names items; rows are numbered where there is none.
        text: the column of a table that holds the text.
        label: the column of a table that holds the class. In a folder, a class is the name of a sub-folder.
        reading: how the image files of a folder become bytes.
    """
    path = Path(path)
    name = name or (path.name if path.is_dir() else path.name.split(".")[0])
    if path.is_dir():
        source = _folder(path, name, shape, streamed=streamed and shape is None, reading=reading)
    elif path.suffix.lower() in KINDS and not path.name.endswith("_2828.csv"):
        return _table(path, name, item=item, text=text, label=label)
    elif path.suffix == ".npz":
        source = _npz(path, name)
    else:
        images, labels, columns = _official(path)
        labels = None if labels is None else labels.astype(np.str_)
        source = Source(name=name, items=_numbers(len(images)), images=images, labels=labels, columns=columns)
    if shape is None or source.images is None or source.images.shape[1:] == shape:
        return source
    return replace(source, images=brought_to(source.images, shape))


def _official(path: Path) -> tuple[Images, Any, dict[str, Names]]:
    """Images of the official file of a set, their labels where they are known, and further columns."""
    if path.suffix == ".bin" and is_cifar_100(path):
        images, fine, coarse = read_cifar_100(path)
        return images, fine, {"coarse": coarse}
    readers: dict[str, Callable[[Path], tuple[Images, Any]]] = {
        ".csv": read_ardis,
        ".bin": read_cifar_batch,
        ".mat": read_svhn,
        ".pt": read_ambiguous_mnist,
    }
    read = readers.get(path.suffix, _idx if "idx" in path.name else None)
    if read is None:
        raise InputError(
            f"{path}: not a folder of images and not a kind of file that is known; give a folder, .npz, idx, CIFAR "
            f".bin, SVHN .mat, Ambiguous-MNIST .pt, or a table ({', '.join(KINDS)})"
        )
    return *read(path), {}


def _folder(
    folder: Path, name: str, shape: tuple[int, int, int] | None, *, streamed: bool, reading: ImageReading
) -> Source:
    paths = image_paths(folder)
    reading = reading.of(paths)
    parents = [path.parent.relative_to(folder).as_posix() for path in paths]
    return Source(
        name=name,
        items=np.array([path.relative_to(folder).as_posix() for path in paths]),
        images=None if streamed else _pixels(paths, shape, reading),
        files=np.array([str(path) for path in paths]) if streamed else None,
        labels=np.array(parents) if "." not in parents else None,
        reading=reading,
    )


def _pixels(paths: list[Path], shape: tuple[int, int, int] | None, reading: ImageReading) -> Images:
    if shape is not None:
        return np.concatenate([brought_to(read_picture(path, reading)[None], shape) for path in paths])
    return Items(names=np.arange(len(paths)), files=tuple(paths), reading=reading).images(np.arange(len(paths)))


def _npz(path: Path, name: str) -> Source:
    arrays = read_npz(path, remedy="give an .npz with an array 'images'")
    images = arrays.get("images")
    if images is None or images.ndim not in (3, 4):
        raise InputError(
            f"{path}: no array 'images' with 3 or 4 axes (it has {', '.join(arrays) or 'nothing'}); "
            "save images as (items, height, width) or (items, height, width, channels)"
        )
    images = as_bytes(images, where=str(path))
    if images.ndim == 3:
        images = images[:, None]
    elif images.shape[-1] in (1, 3) and images.shape[1] not in (1, 3):
        images = images.transpose(0, 3, 1, 2)
    items, labels = arrays.get("items", _numbers(len(images))), arrays.get("labels")
    for facts, values in (("items", items), ("labels", labels)):
        if values is not None and len(values) != len(images):
            raise InputError(f"{path}: {len(values):,} {facts} for {len(images):,} images; give one each")
    return Source(
        name=name,
        items=distinct(items.astype(np.str_), path),
        images=np.ascontiguousarray(images),
        labels=None if labels is None else labels.astype(np.str_),
    )


def _idx(path: Path) -> tuple[Images, Any]:
    """Images of an idx file, with the labels of the file that lies beside it as MNIST's does."""
    images = read_idx(path)
    if images.ndim != 3:
        raise InputError(f"{path}: {images.ndim} axes; give the file of images, items x height x width")
    beside = path.with_name(path.name.replace("images-idx3", "labels-idx1").replace("images.idx3", "labels.idx1"))
    labels = read_idx(beside) if beside != path and beside.is_file() else None
    if labels is not None and labels.shape != (len(images),):
        raise InputError(f"{beside}: {labels.shape} labels for {len(images):,} images; fetch both again")
    return images[:, None], labels


def _table(path: Path, name: str, *, item: str | None, text: str | None, label: str | None) -> Source:
    import polars as pl

    table = read_rows(open_file(path)).table
    for given in (item, text, label):
        if given is not None and given not in table.columns:
            raise InputError(f"{path}: no column '{given}'{choices(given, table.columns)}")
    item = item or named_like(table.columns, ITEM_COLUMNS)
    text = text or named_like(table.columns, TEXT_COLUMNS)
    label = label or named_like(table.columns, LABEL_COLUMNS)
    if text is None:
        raise InputError(f"{path}: no column of texts among {', '.join(table.columns)}; name it with text=")

    def column(name: str) -> Names:
        values = table[name]
        if values.dtype.is_nested():
            raise InputError(f"{path}: column {name} holds lists; give one text per cell")
        return np.array(values.cast(pl.String).fill_null("").to_list(), dtype=np.str_)

    others = [name for name in table.columns if name not in (item, text, label) and not table[name].dtype.is_nested()]
    return Source(
        name=name,
        items=_numbers(table.height) if item is None else distinct(column(item), path),
        texts=column(text),
        labels=None if label is None else column(label),
        columns={name: column(name) for name in others},
    )


def _numbers(n: int) -> Names:
    return np.arange(n).astype(np.str_)


def distinct(names: Names, path: Path) -> Names:
    """The same names, refused where one is there twice."""
    unique, count = np.unique(names, return_counts=True)
    if (count > 1).any():
        twice = unique[int((count > 1).argmax())]
        raise InputError(f"{path}: item '{twice}' is there twice; give every item a name and a row of its own")
    return names


def named_like(columns: Sequence[str], usual: Sequence[str]) -> str | None:
    """The column with the first of the usual names, in lower or upper case; None where there is none."""
    lower = {name.lower(): name for name in reversed(columns)}
    return next((lower[name] for name in usual if name in lower), None)
