"""Which items are duplicates of each other, within a source, across sources and across splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from dissensus.curate.item_list import ItemList, listed
from dissensus.curate.near_images import near_images, on_canvas
from dissensus.curate.near_texts import OVERLAP, near_texts, plain_forms
from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Floats, Ints, Mask, Names
    from dissensus.datasets.sources import Source

KEPT_FIRST: Final = ("test", "validation", "val", "dev")
"""Of duplicates in several splits, the one in the test split is kept: a published test set stays as it is."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Duplicates:
    """What `find_duplicates` found.

    Attributes:
        items: all items, with their labels and splits where known.
        one: (pairs,) places of the first items of pairs of duplicates, rising.
        other: (pairs,) places of the second.
        exact: (pairs,) true where both are the same to the last bit.
        similarity: (pairs,) 1 where exact; else the correlation of pixels, or the overlap of texts (1 where only case,
            punctuation and white space differ).
        group: (items,) number of the group of duplicates that an item is in, -1 where it has no duplicate. Pairs that
            have an item in common are in one group.
        kept: (items,) true for items without a duplicate, and for one of each group: the one in the test split, else
            in validation, else in any other; then of the first source; then the first.
    """

    items: ItemList
    one: Ints
    other: Ints
    exact: Mask
    similarity: Floats
    group: Ints
    kept: Mask

    @property
    def groups(self) -> int:
        """How many groups of duplicates there are."""
        return int(self.group.max(initial=-1)) + 1

    def clean(self) -> ItemList:
        """The items that are kept."""
        return self.items.take(self.kept)

    def grouped(self) -> ItemList:
        """All items, with what was found about each.

        The columns are `group` (empty for an item without a duplicate), `kind` (exact where it is in an exact pair,
        else near), `kept`, and `duplicate_of`: the item that is kept in its place.
        """
        alone = self.group < 0
        keeper = np.zeros(max(self.groups, 1), dtype=np.int64)
        of_group = np.flatnonzero(self.kept & ~alone)
        keeper[self.group[of_group]] = of_group
        names = np.char.add(np.char.add(self.items.sources.astype(np.str_), ":"), self.items.items.astype(np.str_))
        exact = np.zeros(len(self.items), dtype=np.bool_)
        exact[np.concatenate([self.one[self.exact], self.other[self.exact]])] = True
        return self.items.adding(
            group=np.where(alone, "", self.group.astype(np.str_)),
            kind=np.where(alone, "", np.where(exact, "exact", "near")),
            kept=np.where(self.kept, "yes", "no"),
            duplicate_of=np.where(self.kept, "", names[keeper[np.maximum(self.group, 0)]]),
        )

    def pairs(self) -> dict[str, Names | Floats]:
        """The pairs as columns: both items with their sources (and splits), exact or near, and the similarity."""
        columns: dict[str, Any] = {}
        for name in ("item", "source", *(each for each in ("split",) if each in self.items.columns)):
            values = self.items.column(name)
            columns |= {name: values[self.one], f"other_{name}": values[self.other]}
        kind = np.where(self.exact, "exact", "near")
        return {**columns, "kind": kind, "similarity": np.round(self.similarity, 4)}

    def leaks(self) -> dict[tuple[str, str], tuple[int, int]]:
        """By two sources, or two splits where they are known: how many exact and how many near pairs lie across."""
        name = "split" if "split" in self.items.columns else "source"
        place = self.items.column(name)
        here, there = place[self.one], place[self.other]
        across = here != there
        sides = np.sort(np.stack([here[across], there[across]], axis=1), axis=1)
        found, which = np.unique(sides, axis=0, return_inverse=True)
        exact = np.bincount(which.reshape(-1), weights=self.exact[across], minlength=len(found)).astype(np.int64)
        every = np.bincount(which.reshape(-1), minlength=len(found))
        return {
            (str(a), str(b)): (int(e), int(n - e)) for (a, b), e, n in zip(found.tolist(), exact, every, strict=True)
        }


def find_duplicates(
    sources: Sequence[Source],
    *,
    splits: Names | None = None,
    near: bool = True,
    overlap: float = OVERLAP,
) -> Duplicates:
    """Duplicates among the items of one or more sources, which hold either images or texts.

    Exact duplicates have the same pixels, or the same characters. Near duplicates differ by a shift of a few
    pixels, brightness, contrast or encoding (see `near_images`), or by case, punctuation, white space and a few letters
    (`near_texts`).
    Where images differ in size, those of one size are compared as they are, and those of different sizes on a canvas
    of 32 x 32. Of many duplicates of one image, each is paired with the eight it is most like; the group holds all.

    Args:
        sources: where items come from; of duplicates, those of an earlier source are kept.
        splits: (items,) the split of each item, over all sources; a duplicate across splits is a leak.
        near: whether to look for near duplicates too.
        overlap: the least overlap of near duplicates of texts.
    """
    if not sources or not any(len(source) for source in sources):
        raise InputError("duplicates: no items; give one source or more")
    if not 0.5 < overlap <= 1:
        raise InputError(f"duplicates: an overlap of {overlap:g}; give one above 0.5 and at most 1")
    items = listed(sources)
    if splits is not None:
        if len(splits) != len(items):
            raise InputError(f"duplicates: {len(splits):,} splits for {len(items):,} items; give one per item")
        items = items.adding(split=splits.astype(np.str_))
    texts = [source.texts is not None for source in sources]
    if all(texts):
        pairs = _duplicate_texts(np.concatenate([_text(source) for source in sources]), near=near, overlap=overlap)
    elif not any(texts):
        pairs = _duplicate_images(sources, near=near)
    else:
        raise InputError("duplicates: some sources hold texts and some images; look at each kind by itself")
    one, other, exact, similarity = pairs
    group = _components(one, other, len(items))
    return Duplicates(
        items=items,
        one=one,
        other=other,
        exact=exact,
        similarity=similarity,
        group=group,
        kept=_kept(group, items.columns),
    )


Pairs = tuple["Ints", "Ints", "Mask", "Floats"]


def _text(source: Source) -> Names:
    assert source.texts is not None
    return source.texts.astype(np.dtypes.StringDType())


def _duplicate_texts(texts: Names, *, near: bool, overlap: float) -> Pairs:
    one, other = _chained(np.unique(texts, return_inverse=True)[1])
    exact = (one, other, np.ones(len(one), dtype=np.bool_), np.ones(len(one)))
    if not near:
        return exact
    _, first = np.unique(texts, return_index=True)
    plain, form = np.unique(plain_forms(texts[first]), return_inverse=True)
    a, b = _chained(form)
    _, of_form = np.unique(form, return_index=True)
    c, d, share = near_texts(plain, overlap=overlap)
    return _together(
        exact,
        (first[a], first[b], np.zeros(len(a), dtype=np.bool_), np.ones(len(a))),
        (first[of_form[c]], first[of_form[d]], np.zeros(len(c), dtype=np.bool_), share),
    )


def _duplicate_images(sources: Sequence[Source], *, near: bool) -> Pairs:
    begin = np.cumsum([0, *(len(source) for source in sources)])
    sizes: dict[tuple[int, ...], list[int]] = {}
    for number, source in enumerate(sources):
        assert source.images is not None
        sizes.setdefault(source.images.shape[1:], []).append(number)
    found, alone = [], []
    for members in sizes.values():
        place = np.concatenate([np.arange(begin[number], begin[number + 1]) for number in members])
        rows = np.concatenate([_bytes(sources[number]) for number in members])
        _, first, content = np.unique(rows, return_index=True, return_inverse=True)
        one, other = _chained(content.reshape(-1))
        found.append((place[one], place[other], np.ones(len(one), dtype=np.bool_), np.ones(len(one))))
        # Duplicates to the last bit are near to the same others: one of them speaks for all.
        alone.append(np.sort(place[first]))
    if not near:
        return _together(*found)
    distinct = np.concatenate(alone)
    side = np.repeat(np.arange(len(alone)), [len(each) for each in alone])
    for number, members in enumerate(sizes.values()):
        found.append(_near(sources, members, begin, alone[number]))
    if len(sizes) > 1:
        one, other, exact, similarity = _near(sources, list(range(len(sources))), begin, np.sort(distinct))
        size_of = np.empty(begin[-1], dtype=np.int64)
        size_of[distinct] = side
        across = size_of[one] != size_of[other]
        found.append((one[across], other[across], exact[across], similarity[across]))
    return _together(*found)


def _near(sources: Sequence[Source], members: Sequence[int], begin: Ints, chosen: Ints) -> Pairs:
    """Near duplicates among the chosen places of some sources."""
    images = []
    for number in members:
        pixels = sources[number].images
        assert pixels is not None
        images.append(pixels[chosen[(chosen >= begin[number]) & (chosen < begin[number + 1])] - begin[number]])
    one, other, similarity = near_images(on_canvas(images))
    return chosen[one], chosen[other], np.zeros(len(one), dtype=np.bool_), similarity


def _bytes(source: Source) -> np.ndarray[Any, Any]:
    """(items,) all pixels of an image as one value, which can be compared and sorted."""
    assert source.images is not None
    flat = np.ascontiguousarray(source.images).reshape(len(source), -1)
    return flat.view(np.dtype((np.void, flat.shape[1]))).reshape(-1)


def _chained(content: Ints) -> tuple[Ints, Ints]:
    """Pairs of places with the same content: each with the next."""
    order = np.argsort(content, kind="stable")
    same = np.flatnonzero(content[order][1:] == content[order][:-1])
    return order[same], order[same + 1]


def _together(*found: Pairs) -> Pairs:
    one, other, exact, similarity = (np.concatenate(each) for each in zip(*found, strict=True))
    low, high = np.minimum(one, other), np.maximum(one, other)
    order = np.lexsort((high, low))
    return low[order], high[order], exact[order], similarity[order]


def _components(one: Ints, other: Ints, items: int) -> Ints:
    """(items,) the group of each item, numbered by first item; -1 for an item without a pair."""
    joined = sparse.coo_array((np.ones(len(one), dtype=np.int8), (one, other)), shape=(items, items))
    _, component = csgraph.connected_components(joined.tocsr(), directed=False)
    alone = np.bincount(component)[component] == 1
    group = np.full(items, -1, dtype=np.int64)
    _, first, number = np.unique(component[~alone], return_index=True, return_inverse=True)
    group[~alone] = np.argsort(np.argsort(first))[number]
    return group


def _kept(group: Ints, columns: Mapping[str, Any]) -> Mask:
    rank = np.zeros(len(group), dtype=np.int64)
    if "split" in columns:
        rank[:] = len(KEPT_FIRST)
        for place, name in enumerate(KEPT_FIRST):
            rank[columns["split"] == name] = place
    kept = group < 0
    member = np.flatnonzero(~kept)
    order = member[np.lexsort((member, rank[member], group[member]))]
    kept[order[np.unique(group[order], return_index=True)[1]]] = True
    return kept
