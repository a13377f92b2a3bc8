"""Which items are duplicates of each other, within a source, across sources and across splits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from dissensus.errors import InputError
from dissensus.items.encoders import encoded, fit_encoder
from dissensus.items.pictures import as_seen, decoded
from dissensus.items.shown import Items
from dissensus.progress import Step, silent
from dissensus_train.curate.item_list import ItemList, listed
from dissensus_train.curate.near_drawings import near_drawings
from dissensus_train.curate.near_images import SIDE, are_drawn, canvas, near_images, own_threads
from dissensus_train.curate.near_texts import OVERLAP, near_texts, plain_forms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Floats, Ints, Mask, Names
    from dissensus.datasets.sources import Source
    from dissensus.items.pictures import ImageReading
    from dissensus.progress import Progress
    from dissensus_train.curate.near_images import Planes

KEPT_FIRST: Final = ("test", "validation", "val", "dev")
"""Of duplicates in several splits, the one in the test split is kept: a published test set stays as it is."""
MEANING: Final = 0.9
"""The least cosine of an encoder's features at which two items mean the same."""
_TOGETHER: Final = 256


@dataclass(frozen=True, eq=False, kw_only=True)
class Duplicates:
    """What `find_duplicates` found.

    Attributes:
        items: all items, with their labels and splits where known.
        one: (pairs,) places of the first items of pairs of duplicates, rising.
        other: (pairs,) places of the second.
        exact: (pairs,) true where both are the same to the last bit.
        semantic: (pairs,) true where an encoder alone found them.
        similarity: (pairs,) 1 where exact; else the correlation of pixels once aligned, the overlap of texts (1 where
            their plain forms agree), or the cosine of an encoder's features.
        group: (items,) number of the group of duplicates that an item is in, -1 where it has no duplicate. Pairs that
            have an item in common are in one group.
        kept: (items,) true for items without a duplicate, and for one of each group: the one in the test split, else
            in validation, else in any other; then of the first source; then the first.
        skipped: a sentence for each image that could not be read; `items` has none of them.
    """

    items: ItemList
    one: Ints
    other: Ints
    exact: Mask
    semantic: Mask
    similarity: Floats
    group: Ints
    kept: Mask
    skipped: tuple[str, ...] = ()

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
        """The pairs as columns: both items with their sources (and splits), the kind, and the similarity."""
        columns: dict[str, Any] = {}
        for name in ("item", "source", *(["split"] if "split" in self.items.columns else [])):
            values = self.items.column(name)
            columns |= {name: values[self.one], f"other_{name}": values[self.other]}
        kind = np.where(self.exact, "exact", np.where(self.semantic, "semantic", "near"))
        return {**columns, "kind": kind, "similarity": np.round(self.similarity, 4)}

    def leaks(self) -> dict[tuple[str, str], tuple[int, int]]:
        """By two sources, or two splits where they are known: how many exact and how many near pairs lie across."""
        place = self.items.column("split" if "split" in self.items.columns else "source")
        sides = np.sort(np.stack([place[self.one], place[self.other]], axis=1), axis=1)
        across = sides[:, 0] != sides[:, 1]
        names, which = np.unique(sides[across], axis=0, return_inverse=True)
        exact, near = (
            np.bincount(which.reshape(-1)[kind[across]], minlength=len(names)) for kind in (self.exact, ~self.exact)
        )
        return {(str(a), str(b)): (int(e), int(n)) for (a, b), e, n in zip(names.tolist(), exact, near, strict=True)}


def find_duplicates(
    sources: Sequence[Source],
    *,
    splits: Names | None = None,
    near: bool = True,
    overlap: float = OVERLAP,
    numbers: bool = False,
    encoder: str | None = None,
    meaning: float = MEANING,
    skip_bad: bool = False,
    progress: Progress = silent,
) -> Duplicates:
    """Duplicates among the items of one or more sources, which hold either images or texts.

    Exact duplicates have the same pixels, or the same characters. Near duplicates of images show the same thing
    re-encoded, resized, brightened, moved, cropped, turned, mirrored or written upon (see `near_images`); those of
    texts differ by case, accents, look-alike letters, punctuation, white space, a few letters, the order of words or
    an added sentence (`near_texts`). Images of any size are compared on a canvas of 32 x 32, and read one after the
    other where a source leaves them in their files. Of many duplicates of one image, each is paired with those it is
    most like; the group holds all.

    Args:
        sources: where items come from; of duplicates, those of an earlier source are kept.
        splits: (items,) the split of each item, over all sources; a duplicate across splits is a leak.
        near: whether to look for near duplicates too.
        overlap: the least overlap of near duplicates of texts.
        numbers: whether texts that differ in a number may be near duplicates.
        encoder: its name (`dissensus.items`), to find items of the same meaning too: `minilm`, `hf:NAME`, `timm:NAME`.
        meaning: the least cosine of the encoder's features that counts.
        skip_bad: leave out images that cannot be read, in place of refusing them all.
        progress: called as items are read and compared.

    Raises:
        InputError: for instance where images cannot be read; the sentence names all of them.
    """
    if not sources or not any(len(source) for source in sources):
        raise InputError("duplicates: no items; give one source or more")
    if not 0.5 < overlap <= 1:
        raise InputError(f"duplicates: an overlap of {overlap:g}; give one above 0.5 and at most 1")
    if not 0 < meaning <= 1:
        raise InputError(f"duplicates: a least cosine of {meaning:g}; give one above 0 and at most 1")
    items = listed(sources)
    if splits is not None:
        if len(splits) != len(items):
            raise InputError(f"duplicates: {len(splits):,} splits for {len(items):,} items; give one per item")
        items = items.adding(split=splits.astype(np.str_))
    kinds = {source.texts is not None for source in sources}
    if len(kinds) > 1:
        raise InputError("duplicates: some sources hold texts and some images; look at each kind by itself")
    skipped: dict[int, str] = {}
    shown: Items | None = None
    if kinds == {True}:
        texts = np.concatenate([np.asarray(source.texts, dtype=np.dtypes.StringDType()) for source in sources])
        shown = Items(names=items.items, texts=(texts,))
        pairs = _duplicate_texts(texts, near=near, overlap=overlap, numbers=numbers, progress=progress)
    else:
        planes, digest, skipped = _looked_at(sources, progress)
        good = np.delete(np.arange(len(items)), list(skipped))
        if skipped and (not skip_bad or not len(good)):
            sentences = list(skipped.values())
            listing = sentences[0].rsplit("; ", 1)[0]
            if len(sentences) > 1:
                names = ", ".join(sentence.split(": ", 1)[0] for sentence in sentences)
                listing = f"{len(sentences):,} images cannot be read: {names}"
            raise InputError(f"{listing}; mend or remove them, or leave them out by skip_bad=")
        items = items.take(good)
        pairs = _duplicate_images(
            sources, planes[good] if skipped else planes, digest[good], good, near=near, progress=progress
        )
        shown = _images(sources, items.items, good) if encoder is not None else None
    semantic = np.zeros(len(pairs[0]), dtype=np.bool_)
    if encoder is not None and shown is not None:
        pairs, semantic = _with_meaning(pairs, shown, encoder, meaning, progress)
    one, other, exact, similarity = pairs
    group = _components(one, other, len(items))
    return Duplicates(
        items=items,
        one=one,
        other=other,
        exact=exact,
        semantic=semantic,
        similarity=similarity,
        group=group,
        kept=_kept(group, items.columns),
        skipped=tuple(skipped.values()),
    )


Pairs = tuple["Ints", "Ints", "Mask", "Floats"]
"""First places, second places, whether the same to the last bit, and the similarity."""


def _pairs(one: Ints, other: Ints, similarity: Any = 1.0, *, exact: bool = False) -> Pairs:
    return one, other, np.full(len(one), exact), np.broadcast_to(np.asarray(similarity, dtype=np.float64), len(one))


def _together(*parts: Pairs) -> Pairs:
    one, other, exact, similarity = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    low, high = np.minimum(one, other), np.maximum(one, other)
    order = np.lexsort((high, low))
    return low[order], high[order], exact[order], similarity[order]


def _images(sources: Sequence[Source], names: Names, good: Ints) -> Items:
    """The images of all sources for an encoder; those in memory must agree in size."""
    if all(source.files is not None for source in sources):
        files = np.concatenate([np.asarray(source.files) for source in sources])[good]
        return Items(names=names, files=tuple(Path(path) for path in files.tolist()), reading=sources[0].reading)
    shapes = {None if source.images is None else source.images.shape[1:] for source in sources}
    if None in shapes or len(shapes) > 1:
        raise InputError("duplicates: an encoder needs images of one shape, or folders alone; bring them to one shape=")
    return Items(names=names, pixels=np.concatenate([np.asarray(source.images) for source in sources]))


def _with_meaning(pairs: Pairs, shown: Items, encoder: str, least: float, progress: Progress) -> tuple[Pairs, Mask]:
    """All pairs with those that only an encoder finds, and (pairs,) which those are."""
    values: Any = encoded(fit_encoder(encoder, shown, folder=Path()), shown, progress=progress)
    values = values.toarray() if isinstance(values, sparse.csr_matrix) else values
    features = np.asarray(values, dtype=np.float32).reshape(len(shown), -1)
    features /= np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    known = pairs[0] * len(shown) + pairs[1]
    every = [pairs]
    for start in range(0, len(shown), _TOGETHER):
        cosine = features[start : start + _TOGETHER] @ features[start:].T
        one, other = np.nonzero(np.triu(cosine >= least, 1))
        fresh = ~np.isin((one + start) * len(shown) + other + start, known)
        one, other = one[fresh], other[fresh]
        every.append(_pairs(one + start, other + start, cosine[one, other]))
    both = _together(*every)
    return both, ~np.isin(both[0] * len(shown) + both[1], known)


def _duplicate_texts(texts: Names, *, near: bool, overlap: float, numbers: bool, progress: Progress) -> Pairs:
    _, first, content = np.unique(texts, return_index=True, return_inverse=True)
    exact = _pairs(*_chained(content), exact=True)
    if not near:
        return exact
    plain, of_form, form = np.unique(plain_forms(texts[first]), return_index=True, return_inverse=True)
    a, b = _chained(form)
    progress(Step("compared texts", 0, len(texts)))
    c, d, share = near_texts(texts[first[of_form]], plain, overlap=overlap, numbers=numbers)
    progress(Step("compared texts", len(texts), len(texts)))
    return _together(exact, _pairs(first[a], first[b]), _pairs(first[of_form[c]], first[of_form[d]], share))


def _duplicate_images(
    sources: Sequence[Source], planes: Planes, digest: Any, good: Ints, *, near: bool, progress: Progress
) -> Pairs:
    """The pairs of images, of (images, 32, 32) grey values, whose places over all sources are `good`, rising."""
    _, first, content = np.unique(digest, return_index=True, return_inverse=True)
    exact = _pairs(*_chained(content.reshape(-1)), exact=True)
    if not near:
        return exact
    # Duplicates to the last bit are near to the same others: one of them speaks for all.
    chosen = np.sort(first)
    planes = planes[chosen] if len(chosen) < len(planes) else planes
    drawn = _duplicate_drawings(sources, planes, good[chosen])
    one, other, similarity = near_images(planes, progress=progress)
    fresh = ~np.isin(one * len(planes) + other, drawn[0] * len(planes) + drawn[1])
    return _together(
        exact,
        _pairs(chosen[drawn[0]], chosen[drawn[1]], drawn[2]),
        _pairs(chosen[one[fresh]], chosen[other[fresh]], similarity[fresh]),
    )


def _duplicate_drawings(sources: Sequence[Source], planes: Planes, place: Ints) -> tuple[Ints, Ints, Floats]:
    """The pairs of drawn images, those of one small size as they are, those of different sizes on the canvas.

    `place` holds where each image is over all sources; pairs are of places in it.
    """
    drawn = np.flatnonzero(are_drawn(planes))
    begin = np.cumsum([0, *(len(source) for source in sources)])
    sizes: dict[tuple[int, ...], list[tuple[Ints, Planes]]] = {}
    for number, source in enumerate(sources):
        here = drawn[(place[drawn] >= begin[number]) & (place[drawn] < begin[number + 1])]
        own: tuple[int, ...] = ()
        shown = planes[here]
        if source.images is not None and max(source.images.shape[2:]) <= 2 * SIDE:
            own = source.images.shape[2:]
            shown = canvas(source.images[place[here] - begin[number]], source.images.shape[2:])
        sizes.setdefault(own, []).append((here, shown))
    size = np.empty(len(planes), dtype=np.int64)
    parts = []
    for number, members in enumerate(sizes.values()):
        here = np.concatenate([rows for rows, _ in members])
        one, other, correlation = near_drawings(np.concatenate([shown for _, shown in members]))
        parts.append((here[one], here[other], correlation))
        size[here] = number
    if len(np.unique(size[drawn])) > 1:
        one, other, correlation = near_drawings(planes[drawn])
        one, other = drawn[one], drawn[other]
        across = size[one] != size[other]
        parts.append((one[across], other[across], correlation[across]))
    one, other, correlation = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return np.minimum(one, other), np.maximum(one, other), correlation


def _looked_at(sources: Sequence[Source], progress: Progress) -> tuple[Planes, Any, dict[int, str]]:
    """(images, 32, 32) grey values, (images,) a hash of all pixels, and by place why an image cannot be read."""
    total = sum(len(source) for source in sources)
    planes = np.zeros((total, SIDE, SIDE), dtype=np.float32)
    digests: list[bytes] = []
    bad: dict[int, str] = {}
    with own_threads() as pool:
        for source in sources:
            for start in range(0, len(source), _TOGETHER):
                if source.images is not None:
                    images = source.images[start : start + _TOGETHER]
                    planes[len(digests) : len(digests) + len(images)] = canvas(images)
                    digests += [_digest(image) for image in images]
                    continue
                assert source.files is not None
                for plane, digest, sentence in pool.map(
                    partial(_read, reading=source.reading), source.files[start : start + _TOGETHER].tolist()
                ):
                    if plane is None:
                        bad[len(digests)] = sentence
                    else:
                        planes[len(digests)] = plane
                    digests.append(digest)
                progress(Step("read images", len(digests), total))
    return planes, np.array(digests, dtype="V16"), bad


def _read(path: str, reading: ImageReading) -> tuple[Planes | None, bytes, str]:
    """The canvas of an image file and the hash of its pixels, or a sentence where it cannot be read."""
    try:
        values = decoded(Path(path))
        return canvas(as_seen(values, reading, where=path)), _digest(values), ""
    except InputError as error:
        return None, b"", str(error)


def _digest(pixels: np.ndarray[Any, Any]) -> bytes:
    kind = f"{pixels.dtype.str} {pixels.shape}".encode()
    return blake2b(np.ascontiguousarray(pixels).data, digest_size=16, key=kind[:64]).digest()


def _chained(content: Ints) -> tuple[Ints, Ints]:
    """Pairs of places with the same content: each with the next."""
    order = np.argsort(content, kind="stable")
    same = np.flatnonzero(content[order][1:] == content[order][:-1])
    return order[same], order[same + 1]


def _components(one: Ints, other: Ints, items: int) -> Ints:
    """(items,) the group of each item, numbered by first item; -1 for an item without a pair."""
    joined = sparse.coo_array((np.ones(len(one), dtype=np.int8), (one, other)), shape=(items, items))
    _, component = csgraph.connected_components(joined.tocsr(), directed=False)
    alone = np.bincount(component)[component] == 1
    group = np.full(items, -1, dtype=np.int64)
    # Components are numbered by their first item.
    group[~alone] = np.unique(component[~alone], return_inverse=True)[1]
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
