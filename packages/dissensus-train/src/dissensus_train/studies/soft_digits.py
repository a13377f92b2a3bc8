"""`soft-digits`: the file of Pavlovic, Paun, Poesio 2026 (majapavlo/image-level-soft-label-digits, CC BY-SA 4.0).

5,529 images of digits from MNIST and from the Ambiguous-MNIST of Mukhoti et al., each with the label distribution that
about six annotators gave it. The file holds one row per image, its vectors as strings, and no votes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from dissensus.arrays import Floats, Ints, Names, Table, first_listed
from dissensus.errors import InputError
from dissensus.labels.distribution import LabelDistribution
from dissensus.table_file import open_file, read_rows
from dissensus.votes.table import NONE
from dissensus_train.studies.labelled import LabelledItems

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
        if missing := [name for name in _COLUMNS if name not in self.table.columns]:
            raise InputError(
                f"{path}: there is no column '{missing[0]}'; soft-digits has {', '.join(_COLUMNS)}, and this file "
                f"{', '.join(self.table.columns)}"
            )

    def items(self) -> LabelledItems:
        source, split = self.named("source", SOURCES), self.named("split", tuple(SPLITS))
        pixels = self.vectors("images", PIXELS)
        wrong = ((pixels < 0) | (pixels > 255) | (pixels != np.floor(pixels))).any(axis=1)
        self.refuse(wrong, "images", "holds a pixel that is not a whole number from 0 to 255")
        n_classes = len(SOFT_DIGITS_CLASSES)
        labels = {scheme: self.distribution(column, n_classes) for scheme, column in _SCHEMES.items()}
        original = np.pad(self.distribution("original_labels", 10), ((0, 0), (0, 1)))
        blended = (source == "mnist") & (original.max(axis=1) < 1 - TOLERANCE)
        self.refuse(blended, "original_labels", "is not a single label, and the image is MNIST's")
        people = labels["uncertainty-weighted"]
        winner = self.whole("soft_label_argmax", n_classes - 1, what="class index")
        short = people.max(axis=1) - people[np.arange(len(people)), winner] > TOLERANCE
        self.refuse(short, "soft_label_argmax", "is not the class with the largest share in soft_label", winner)
        mean, share = self.numbers("human_uncert_mean"), self.numbers("pct_ann_unsure")
        for column, values in (("human_uncert_mean", mean), ("pct_ann_unsure", share)):
            self.refuse(~((values >= 0) & (values <= 1)), column, "is not a share from 0 to 1", values)
        more = "is larger than pct_ann_unsure, and nobody is unsure of more than all classes"
        self.refuse(mean > share + TOLERANCE, "human_uncert_mean", more, mean)
        differs = (share == 0) & (np.abs(people - labels["equal-weighted"]).max(axis=1) > 2 * TOLERANCE)
        nobody = "differs from soft_label_yes_unc_equal, though nobody was unsure (pct_ann_unsure is 0)"
        self.refuse(differs, "soft_label", nobody)
        human = LabelDistribution(
            probabilities=labels["equal-weighted"],
            counts=np.zeros(people.shape, dtype=np.int64),
            panel_size=np.zeros(len(people), dtype=np.int64),
            items=self.names(source),
            classes=SOFT_DIGITS_CLASSES,
            scheme="equal-weighted",
            mean_uncertainty=mean,
            unsure_proportion=share,
        )
        targets = {"original": original, "majority": np.eye(n_classes)[winner], **labels}
        return LabelledItems(
            features=(pixels / 255).astype(np.float32).reshape(-1, 1, 28, 28),
            human=human,
            targets={name: replace(human, probabilities=table, scheme=name) for name, table in targets.items()},
            splits={ours: np.flatnonzero(split == theirs) for theirs, ours in SPLITS.items()},
            source=source,
        )

    def names(self, source: Names) -> Names:
        """(items,) source and index, such as `mnist-4711`; an index that is listed again has its row as well."""
        text = self.whole("indices", LAST_INDEX, what="whole number").astype(np.dtypes.StringDType())
        names = np.strings.add(np.strings.add(source, "-"), text)
        row = np.arange(1, len(names) + 1).astype(np.dtypes.StringDType())
        return np.where(first_listed(names), names, np.strings.add(np.strings.add(names, " row "), row))

    def named(self, column: str, known: tuple[str, ...]) -> Names:
        values = self.table[column].cast(str, strict=False).fill_null("nothing").to_numpy()
        self.refuse(~np.isin(values, known), column, f"is none of {', '.join(known)}")
        return values.astype(np.dtypes.StringDType())

    def distribution(self, column: str, size: int) -> Table:
        values = self.vectors(column, size)
        self.refuse((values < 0).any(axis=1), column, "holds a negative number, and shares are 0 or more")
        total = values.sum(axis=1)
        self.refuse(np.abs(total - 1) > TOLERANCE, column, "does not sum to 1", total)
        return np.asarray(values / total[:, None])

    def whole(self, column: str, highest: int, *, what: str) -> Ints:
        values = self.numbers(column)
        wrong = (values < 0) | (values > highest) | (values != np.floor(values))
        self.refuse(wrong, column, f"is not a {what} from 0 to {highest:,}", values)
        return values.astype(np.int64)

    def numbers(self, column: str) -> Floats:
        values = self.table[column].cast(float, strict=False).fill_null(np.nan).to_numpy()
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
        cell: Any = self.table[column][row] if values is None else f"{values[row]:g}{unit}"
        text = " ".join(str(cell.to_list() if hasattr(cell, "to_list") else cell).split())
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        more = f", and so are {wrong.sum() - 1:,} more rows" if wrong.sum() > 1 else ""
        raise InputError(
            f"{self.path}, row {row + 1}, column '{column}': {shown} {what}{more}; fetch the published file again"
        )
