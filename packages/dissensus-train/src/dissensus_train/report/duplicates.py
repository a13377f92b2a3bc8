"""Groups of duplicates to look at before anything is dropped: side by side, how alike they are, and what differs."""

from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.items.pictures import as_seen, decoded
from dissensus.report.items import Card, clipped, data_uri, images
from dissensus.report.page import render_small_page
from dissensus_train.curate.item_list import listed, places

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.datasets.sources import Source
    from dissensus_train.curate.duplicates import Duplicates

GROUPS: Final = 200
"""Groups on a page, the least alike first: those are the ones to look at."""
MEMBERS: Final = 12
"""Items that are shown of a group."""


def duplicates_page(found: Duplicates, sources: Sequence[Source]) -> str:
    """The groups of duplicates as one page; of each group the item that is kept comes first.

    What is said to differ is what differs from that item.
    """
    least = np.ones(found.groups)
    inside = found.group[found.one] == found.group[found.other]
    np.minimum.at(least, found.group[found.one[inside]], found.similarity[inside])
    order = np.argsort(least, kind="stable")[:GROUPS]
    members = np.split(np.argsort(found.group, kind="stable"), np.cumsum(np.bincount(found.group + 1))[:-1])[1:]
    place = places(found.items, listed(sources))
    similarity = dict(zip(zip(found.one.tolist(), found.other.tolist(), strict=True), found.similarity, strict=True))
    samples = {}
    for number in order.tolist():
        rows = sorted(members[number].tolist(), key=lambda row: (not found.kept[row], row))
        alike = f"{least[number]:.3f}" if least[number] < 1 else "1"
        heading = f"Group {number}: {len(rows)} items, similarity {alike}{'' if len(rows) == 2 else ' or more'}"
        shown = [_shown(sources, int(place[row])) for row in rows[:MEMBERS]]
        samples[heading] = _cards(found, rows, shown, similarity)
    dropped = int((~found.kept).sum())
    return render_small_page(
        "Duplicates",
        sentences=(
            f"{len(found.items):,} items, {found.groups:,} groups of duplicates, {dropped:,} items dropped; with near "
            f"duplicates it is {found.near_drop:,}. The groups that are least alike come first"
            + (f"; the first {GROUPS} are shown." if found.groups > GROUPS else "."),
            *found.warnings(),
        ),
        samples=samples,
    )


def _cards(
    found: Duplicates, rows: Sequence[int], shown: Sequence[Any], similarity: Mapping[tuple[int, int], float]
) -> list[Card]:
    cards = []
    for row, what in zip(rows, shown, strict=False):
        # An image has its name below it.
        name = f": {found.items.items[row]}" if isinstance(what, str) else ""
        about = [f"{found.items.sources[row]}{name}", "kept" if found.kept[row] else "dropped"]
        for name in ("split", "label"):
            about += [f"{name} {found.items.columns[name][row]}"] if name in found.items.columns else []
        alike = similarity.get((min(row, rows[0]), max(row, rows[0])))
        about += [] if alike is None else [f"similarity {alike:.3f}"]
        about += [] if row == rows[0] else [differing(shown[0], what)]
        picture = what if isinstance(what, np.ndarray) else None
        cards.append(
            Card(
                text=clipped(what, 600) if isinstance(what, str) else str(found.items.items[row]),
                image=None if picture is None else data_uri(_small(picture)),
                remark="; ".join(about),
            )
        )
    return [*cards, *([Card(text=f"and {len(rows) - MEMBERS} more", image=None, remark="")] if rows[MEMBERS:] else [])]


def _shown(sources: Sequence[Source], place: int) -> Any:
    """The text of an item, or its (channels, height, width) pixels."""
    for source in sources:
        if place < len(source):
            if source.texts is not None:
                return str(source.texts[place])
            if source.images is not None:
                return np.asarray(source.images[place])
            assert source.files is not None
            path = source.files[place]
            return as_seen(decoded(Path(path)), source.reading, where=str(path))
        place -= len(source)
    raise InputError("duplicates: the sources have fewer items than were compared; give the same sources")


def _small(picture: Any) -> Any:
    made = images(picture[None])
    return np.moveaxis(picture, 0, -1) if made is None else made[0]


def differing(one: Any, other: Any) -> str:
    """What another item has in place of what one has: words of texts; size, colour and brightness of images."""
    if isinstance(one, str):
        mine, theirs = one.split(), other.split()
        parts = [
            f"{' '.join(theirs[c:d]) or 'nothing'} for {' '.join(mine[a:b]) or 'nothing'}"
            for kind, a, b, c, d in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes()
            if kind != "equal"
        ]
        return clipped(", ".join(parts) or "in white space alone" if one != other else "the same text", 300)
    (mine, *size), (theirs, *other_size) = one.shape, other.shape
    parts = [] if size == other_size else [f"{other_size[1]} x {other_size[0]}, not {size[1]} x {size[0]}"]
    if mine != theirs:
        parts.append("grey, not in colour" if theirs == 1 else "in colour, not grey")
    lighter = float(other.mean()) - float(one.mean())
    if abs(lighter) >= 0.5:
        parts.append(f"{'brighter' if lighter > 0 else 'darker'} by {abs(lighter):.0f} of 255")
    if one.shape == other.shape:
        away = (one != other).any(axis=0).mean()
        parts.append(f"{away:.0%} of pixels differ" if away else "the same pixels")
    return ", ".join(parts)
