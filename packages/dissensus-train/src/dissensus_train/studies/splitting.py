"""Who is in which split: by shares, by a file, by folds, or as the dataset brings it; groups are kept in one split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.errors import InputError
from dissensus_train.encoders.reading import places_in_file
from dissensus_train.studies.labelled_sets import SPLITS
from dissensus_train.studies.spec import SHARES, Study
from dissensus_train.training.data import TRAIN, split_items

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dissensus.arrays import Codes, Ints, Names
    from dissensus_train.studies.labelled import LabelledItems

SPELLINGS: Final = {**{name: name for name in SPLITS}, "dev": "validation", "val": "validation", "valid": "validation"}
"""How a file may call the splits."""


def study_splits(study: Study, given: LabelledItems) -> dict[str, Ints]:
    """By split, (n,) the items of a study that are in it; none that has no items.

    With folds, the items are divided into as many parts of equal shares of each majority class. Part `study.fold` is
    tested on, the next one is for validation where an epoch is selected on it, and the others are trained on.
    """
    majority, together = given.human.majority().label, given.together
    fixed: dict[str, Ints] = {}
    if study.splits_file is not None:
        fixed, groups = read_splits(study.folder / study.splits_file, given.human.items)
        together = together if groups is None else groups
        carved = set(study.splits) == {"validation"} and "validation" not in fixed
        if fixed and (study.folds or (study.splits and not carved)):
            raise InputError(
                f"{study.path}: the file {study.splits_file} says who is in which split, and [splits] says otherwise; "
                "leave the shares or folds out, or the column 'split'"
            )
    if study.folds:
        return _fold(study, majority, together)
    official = fixed or given.splits
    if set(study.splits) == {"validation"} and official:
        return _with_validation(study, official, majority, together)
    if fixed:
        return fixed
    if set(study.splits) == {"validation"}:
        raise InputError(
            f"{study.path}: [splits] validation is a share of the training items, and {study.splits_file} does not say "
            "who these are; give it a column 'split', or give train and test shares too"
        )
    shares = study.splits or (SHARES if study.splits_file is not None else {})
    if not shares:
        return {name: members for name, members in given.splits.items() if members.size}
    return _filled(split_items(majority, shares, seed=study.split_seed, together=together), shares, study, majority)


def read_splits(path: Path, items: Names) -> tuple[dict[str, Ints], Ints | None]:
    """The splits and groups of the given items, from a table with the columns item, and split or group or both.

    By split, the places of its items, empty where there is no column `split`; and (items,) group numbers, or None.
    """
    from dissensus.table_file import open_file, read_rows
    from dissensus.votes.cells import distinct_names, encode_names
    from dissensus.votes.columns import guess

    rows = read_rows(open_file(path))
    columns = rows.table.columns
    item = guess("item", columns)
    if item is None or not {"split", "group"} & set(columns):
        raise InputError(
            f"{path}: the columns are {', '.join(columns)}; give a column item, and split or group or both: split is "
            "train, validation or test, and items of a group are kept in one split"
        )
    place = places_in_file(path, items, distinct_names(rows.table[item], where=rows.where), "row")
    groups = None
    if "group" in columns:
        groups = encode_names(rows.table["group"], where=rows.where)[0][place].astype(np.int64)
    if "split" not in columns:
        return {}, groups
    code, called = encode_names(rows.table["split"], where=rows.where)
    known = [SPELLINGS.get(str(name).strip().lower()) for name in called.tolist()]
    if None in known:
        wrong = known.index(None)
        raise InputError(
            f"{rows.where(int((code == wrong).argmax()))}: the split '{called[wrong]}' is none of "
            f"{', '.join(SPELLINGS)}; correct it"
        )
    split = np.array(known)[code][place]
    splits = {name: np.flatnonzero(split == name) for name in SPLITS}
    if not splits[TRAIN].size:
        raise InputError(f"{path}: no item with votes is in the split '{TRAIN}'; give some")
    if groups is not None:
        _refuse_torn_groups(path, groups, split, items)
    return {name: members for name, members in splits.items() if members.size}, groups


def _refuse_torn_groups(path: Path, groups: Ints, split: Names, items: Names) -> None:
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    other = np.flatnonzero(split != split[first[group]])
    if other.size:
        member = int(other[0])
        raise InputError(
            f"{path}: item '{items[member]}' is in {split[member]}, and another of its group in "
            f"{split[first[group[member]]]}; a group is in one split"
        )


def _fold(study: Study, majority: Codes, together: Ints | None) -> dict[str, Ints]:
    if not study.fold:
        raise InputError(
            f"study {study.name}: it is one study for each of its {study.folds} folds; take one of its parts, "
            f"{study.parts[0].source} say"
        )
    shares = {str(number): 1 / study.folds for number in range(1, study.folds + 1)}
    parts = split_items(majority, shares, seed=study.split_seed, together=together)
    for empty in (name for name, members in parts.items() if not members.size):
        raise InputError(
            f"study {study.name}: fold {empty} of {study.folds} has no items: {len(majority):,} items, those of a "
            "class divided by themselves and groups kept together, do not fill them all; give fewer folds"
        )
    tested = str(study.fold)
    chosen = str(study.fold % study.folds + 1) if study.selects else None
    rest = [members for name, members in parts.items() if name not in (tested, chosen)]
    made = {TRAIN: np.sort(np.concatenate(rest)), "test": parts[tested]}
    return made if chosen is None else {**made, "validation": parts[chosen]}


def _with_validation(
    study: Study, official: Mapping[str, Ints], majority: Codes, together: Ints | None
) -> dict[str, Ints]:
    """Official splits, with some of their training items for validation."""
    share, members = study.splits["validation"], official[TRAIN]
    shares = {TRAIN: 1 - share, "validation": share}
    grouped = None if together is None else together[members]
    parts = split_items(majority[members], shares, seed=study.split_seed, together=grouped)
    filled = _filled(parts, shares, study, majority[members])
    return {**official, **{name: members[part] for name, part in filled.items()}}


def _filled(splits: Mapping[str, Ints], shares: Mapping[str, float], study: Study, majority: Codes) -> dict[str, Ints]:
    """The splits that have items; one that was given a share and got none is refused."""
    for empty in (name for name, members in splits.items() if not members.size and shares.get(name)):
        largest = int(np.bincount(majority).max())
        raise InputError(
            f"study {study.name}: no item is in the split '{empty}', whose share is {shares[empty]:g}: each class is "
            f"split by itself, and the largest has {largest:,} items; give the split a share of at least "
            f"{np.ceil(100 / largest) / 100:.2f}, or leave it out"
        )
    return {name: members for name, members in splits.items() if members.size}
