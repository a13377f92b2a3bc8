"""`soft-digits`: the file of Pavlovic, Paun, Poesio 2026 (majapavlo/image-level-soft-label-digits, CC BY-SA 4.0).

5,529 images of digits from MNIST and from the Ambiguous-MNIST of Mukhoti et al., each with the label distribution that
about six annotators gave it. The file holds one row per image, its vectors as strings, and no votes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.datasets.labelled import LabelledItems
from dissensus.errors import InputError
from dissensus.labels.distribution import LabelDistribution
from dissensus.table_file import open_file, read_rows
from dissensus.votes.table import NONE

if TYPE_CHECKING:
    import polars as pl

    from dissensus.arrays import Floats, Names, Table

SOFT_DIGITS_CLASSES: Final = (*(str(digit) for digit in range(10)), NONE)
"""The ten digits, and `none` for a judgement that said No to all of them (the paper's NaN class)."""

SOURCES: Final = ("mnist", "mukhoti")
SPLITS: Final = {"train": "train", "val": "validation", "test": "test"}
"""The file's names of the splits, and ours."""

PIXELS: Final = 784
LAST_INDEX: Final = 70_000
TOLERANCE: Final = 2e-3
"""How far the published numbers may be rounded."""

_SCHEMES: Final = {
    "uncertainty-weighted": "soft_label",
    "equal-weighted": "soft_label_yes_unc_equal",
    "yes-only": "soft_label_yes_only",
}
_COLUMNS: Final = (
    "images",
    "indices",
    "original_labels",
    "file_name",
    "human_uncert_mean",
    "pct_ann_unsure",
    *_SCHEMES.values(),
    "soft_label_argmax",
    "split",
    "source",
)


def read_soft_digits(path: str | Path) -> LabelledItems:
    """The published Parquet file, checked row by row; every refusal names the row and the column.

    What people said is `soft_label_yes_unc_equal` (yes and unsure count the same). The set brings the targets original
    (MNIST's label, or the synthetic distribution of a blended digit; the class `none` has no share), majority,
    uncertainty-weighted, equal-weighted and yes-only, and the paper's splits and sources. Counts of votes are 0, since
    the file has none: what needs votes (best achievable scores, multipass) is refused or left out with its reason.
    """
    return _File(Path(path)).items()


class _File:
    """The table of a file, with refusals that say where."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.table = read_rows(open_file(path)).table
        missing = [name for name in _COLUMNS if name not in self.table.columns]
        if missing:
            raise InputError(
                f"{path}: there is no column '{missing[0]}'; soft-digits has {', '.join(_COLUMNS)}, and this file "
                f"{', '.join(self.table.columns)}"
            )

    def items(self) -> LabelledItems:
        source, split = self.named("source", SOURCES), self.named("split", tuple(SPLITS))
        features = self.images()
        labels = {scheme: self.distribution(column, len(SOFT_DIGITS_CLASSES)) for scheme, column in _SCHEMES.items()}
        original = np.pad(self.distribution("original_labels", 10), ((0, 0), (0, 1)))
        self.refuse(
            (source == "mnist") & (original.max(axis=1) < 1 - TOLERANCE),
            "original_labels",
            "is not a single label, and the image is MNIST's",
        )
        majority = self.majority(labels["uncertainty-weighted"])
        mean, share = self.uncertainty()
        weights = labels["uncertainty-weighted"], labels["equal-weighted"]
        self.refuse(
            (share == 0) & (np.abs(weights[0] - weights[1]).max(axis=1) > 2 * TOLERANCE),
            "soft_label",
            "differs from soft_label_yes_unc_equal, though nobody was unsure (pct_ann_unsure is 0)",
        )
        n_items = len(source)
        human = LabelDistribution(
            probabilities=labels["equal-weighted"],
            counts=np.zeros((n_items, len(SOFT_DIGITS_CLASSES)), dtype=np.int64),
            panel_size=np.zeros(n_items, dtype=np.int64),
            items=self.names(source),
            classes=SOFT_DIGITS_CLASSES,
            scheme="equal-weighted",
            mean_uncertainty=mean,
            unsure_proportion=share,
        )
        targets = {"original": original, "majority": majority, **labels}
        return LabelledItems(
            features=features,
            human=human,
            targets={
                name: replace(human, probabilities=probabilities, scheme=name)
                for name, probabilities in targets.items()
            },
            splits={ours: np.flatnonzero(split == theirs) for theirs, ours in SPLITS.items()},
            source=source,
        )

    def named(self, column: str, known: tuple[str, ...]) -> Names:
        values = self.table[column].cast(str, strict=False).fill_null("nothing").to_numpy()
        self.refuse(~np.isin(values, known), column, f"is none of {', '.join(known)}")
        return values.astype(np.dtypes.StringDType())

    def images(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        flat = self.vectors("images", PIXELS)
        self.refuse(
            ((flat < 0) | (flat > 255) | (flat != np.floor(flat))).any(axis=1),
            "images",
            "holds a pixel that is not a whole number from 0 to 255",
        )
        return (flat / 255).astype(np.float32).reshape(-1, 1, 28, 28)

    def distribution(self, column: str, size: int) -> Table:
        values = self.vectors(column, size)
        self.refuse((values < 0).any(axis=1), column, "holds a negative number, and shares are 0 or more")
        total = values.sum(axis=1)
        self.refuse(np.abs(total - 1) > TOLERANCE, column, "does not sum to 1", total)
        return np.asarray(values / total[:, None])

    def majority(self, labels: Table) -> Table:
        column = "soft_label_argmax"
        winner = self.numbers(column)
        known = np.isin(winner, np.arange(len(SOFT_DIGITS_CLASSES)))
        self.refuse(~known, column, f"is not a class index from 0 to {len(SOFT_DIGITS_CLASSES) - 1}", winner)
        index = winner.astype(np.int64)
        short = labels.max(axis=1) - labels[np.arange(len(labels)), index]
        self.refuse(short > TOLERANCE, column, "is not the class with the largest share in soft_label", winner)
        return np.asarray(np.eye(len(SOFT_DIGITS_CLASSES))[index])

    def uncertainty(self) -> tuple[Floats, Floats]:
        mean, share = self.numbers("human_uncert_mean"), self.numbers("pct_ann_unsure")
        for column, values in (("human_uncert_mean", mean), ("pct_ann_unsure", share)):
            self.refuse(~((values >= 0) & (values <= 1)), column, "is not a share from 0 to 1", values)
        self.refuse(
            mean > share + TOLERANCE,
            "human_uncert_mean",
            "is larger than pct_ann_unsure, and nobody is unsure of more than all classes",
            mean,
        )
        return mean, share

    def names(self, source: Names) -> Names:
        """(items,) source and index, such as `mnist-4711`; an index that is listed again has its row as well."""
        index = self.numbers("indices")
        whole = (index >= 0) & (index <= LAST_INDEX) & (index == np.floor(index))
        self.refuse(~whole, "indices", f"is not a whole number from 0 to {LAST_INDEX:,}", index)
        text = index.astype(np.int64).astype(np.dtypes.StringDType())
        names = np.strings.add(np.strings.add(source, "-"), text)
        first = np.zeros(len(names), dtype=np.bool_)
        first[np.unique(names, return_index=True)[1]] = True
        row = np.arange(1, len(names) + 1).astype(np.dtypes.StringDType())
        return np.where(first, names, np.strings.add(np.strings.add(names, " row "), row))

    def numbers(self, column: str) -> Floats:
        import polars as pl

        values = self.table[column].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        self.refuse(~np.isfinite(values), column, "is not a number")
        return np.asarray(values, dtype=np.float64)

    def vectors(self, column: str, size: int) -> Table:
        """(rows, size) the numbers of a column of lists, or of strings that hold them."""
        import polars as pl

        values = self.table[column]
        if values.dtype == pl.String:
            values = values.str.extract_all(r"[^\[\](),;\s]+")
        elif not isinstance(values.dtype, pl.List | pl.Array):
            raise InputError(f"{self.path}: column '{column}' is {values.dtype}; it must hold {size} numbers per row")
        lists = values.cast(pl.List(pl.Float64), strict=False)
        length = lists.list.len().fill_null(0).to_numpy()
        self.refuse(length != size, column, f"must hold {size} numbers", length, unit=" of them")
        table = lists.explode().to_numpy().astype(np.float64).reshape(-1, size)
        self.refuse(~np.isfinite(table).all(axis=1), column, "holds something that is not a number")
        return np.asarray(table)

    def refuse(self, wrong: Any, column: str, what: str, values: Any = None, *, unit: str = "") -> None:
        if not wrong.any():
            return
        row = int(wrong.argmax())
        result = self.shown(column, row) if values is None else f"{values[row]:g}{unit}"
        more = f", and so are {wrong.sum() - 1:,} more rows" if wrong.sum() > 1 else ""
        raise InputError(
            f"{self.path}, row {row + 1}, column '{column}': {result} {what}{more}; fetch the published file again"
        )

    def shown(self, column: str, row: int) -> str:
        cell: pl.Series | Any = self.table[column][row]
        text = " ".join(str(cell.to_list() if hasattr(cell, "to_list") else cell).split())
        return text if len(text) <= 60 else f"{text[:57]}..."
