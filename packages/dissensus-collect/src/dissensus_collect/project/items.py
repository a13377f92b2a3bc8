"""The items of a project, as they lie in its folder of images or its table of texts."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dissensus.datasets.sources import read_source
from dissensus.errors import InputError
from dissensus.items.pictures import image_paths
from dissensus.together.allocation import WANTED
from dissensus.whole_file import sha256_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from dissensus_collect.project.reading import Project


@dataclass(frozen=True, kw_only=True)
class ProjectItem:
    """An item before it is in the database: a media file (relative to the folder of images) or a text.

    A table may say how many votes an item wants, in the column `votes_wanted`, as the lists of `dissensus plan` do;
    other items want the project's k.
    """

    name: str
    media: str | None = None
    text: str | None = None
    wanted: int | None = None

    def hash(self, images: Path | None) -> str:
        """SHA-256 of the text, or of the file in the folder of images."""
        if self.text is not None:
            return hashlib.sha256(self.text.encode()).hexdigest()
        assert images is not None
        assert self.media is not None
        return sha256_of(images / self.media)


def project_items(project: Project) -> list[ProjectItem]:
    """The items in a project's folder of images or table of texts, in their order."""
    if project.images is not None:
        names = [path.relative_to(project.images).as_posix() for path in image_paths(project.images)]
        return [ProjectItem(name=name, media=name) for name in names]
    assert project.table is not None
    pairs = bool(project.items.pairs)
    column = "left" if pairs else project.items.text or None
    source = read_source(project.table, item=project.items.item or None, text=column)
    if source.texts is None:
        raise InputError(f"{project.table}: holds images, not texts; give a table with a column of texts")
    asked = source.columns.get(WANTED)
    wanted = [None] * len(source) if asked is None else [_whole(cell, project.table) for cell in asked.tolist()]
    texts = _pairs(project.table, source.texts, source.columns) if pairs else map(str, source.texts)
    return [
        ProjectItem(name=str(name), text=text, wanted=k)
        for name, text, k in zip(source.items, texts, wanted, strict=True)
    ]


def _pairs(table: Path, left: Iterable[Any], columns: Mapping[str, Any]) -> Iterator[str]:
    """Each pair as JSON: what stands above it, its left and right side, and the names of who made them."""
    if "right" not in columns:
        raise InputError(f"{table}: there is no column 'right'; a table of pairs has the columns left and right")
    sides = [[str(cell) for cell in cells] for cells in (left, columns["right"])]
    if any(not cell.strip() for cells in sides for cell in cells):
        raise InputError(f"{table}: a side of a pair is empty; fill the columns left and right in every row")
    usual = {"prompt": "", "left_name": "A", "right_name": "B"}
    others = [columns.get(name, [default] * len(sides[0])) for name, default in usual.items()]
    for one, other, prompt, *names in zip(*sides, *others, strict=True):
        named = [str(name) or default for name, default in zip(names, "AB", strict=True)]
        pair = {"prompt": str(prompt), "sides": [one, other], "names": named}
        yield json.dumps(pair, ensure_ascii=False)


def readable(project: Project, text: str) -> str:
    """The text of an item for a researcher: a pair as its sides, under the names of who made them."""
    if not project.items.pairs:
        return text
    pair = json.loads(text)
    sides = (f"{name}: {side}" for name, side in zip(pair["names"], pair["sides"], strict=True))
    return "\n".join(filter(None, (pair["prompt"], *sides)))


def _whole(cell: str, table: Path) -> int | None:
    """The number of votes in a cell; an empty one leaves it to the project."""
    if not cell:
        return None
    if not cell.isdecimal() or int(cell) < 1:
        raise InputError(f"{table}: '{cell}' in column {WANTED} is no number of votes; give a whole number from 1 on")
    return int(cell)


def classes_of(source: Path, *, is_table: bool) -> list[str]:
    """The classes that a source names: sub-folders of images or labels of a table.

    Images that name none are of the ten digits; of texts nobody knows what to ask.
    """
    if is_table:
        labels = read_source(source).labels
        named = set() if labels is None else {str(label) for label in labels if str(label)}
    else:
        named = {path.relative_to(source).parts[0] for path in image_paths(source) if path.parent != source}
    if not 2 <= len(named) <= 100:
        if is_table:
            raise InputError(f"{source}: no column of labels names the classes; give them with classes=")
        return [str(digit) for digit in range(10)]
    return sorted(named, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name))


def hashes_of(project: Project, items: Sequence[ProjectItem]) -> dict[str, str]:
    """By name, the SHA-256 of every item."""
    try:
        return {item.name: item.hash(project.images) for item in items}
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror}); put the file in order") from error
