"""Which items are duplicates of each other, within a source, across sources and across splits."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np
from scipy import sparse

from dissensus.errors import InputError, choices
from dissensus.items.pictures import ImageReading, as_seen, decoded
from dissensus.items.shown import Items
from dissensus.progress import Progress, Step, silent
from dissensus_train.curate.item_list import ItemList, by_source, listed
from dissensus_train.curate.near_drawings import near_drawings
from dissensus_train.curate.near_images import SIDE, Planes, are_drawn, canvas, joined, near_images, own_threads
from dissensus_train.curate.near_texts import near_texts, plain_forms
from dissensus_train.encoders.encoding import encoded, fit_encoder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Floats, Ints, Mask, Names
    from dissensus.datasets.sources import Source

KEPT_FIRST: Final = ("test", "validation", "val", "dev")
"""Of duplicates in several splits, the one in the test split is kept: a published test set stays as it is."""
MEANING: Final = 0.9
"""The least cosine of an encoder's features at which two items mean the same."""
MANY: Final = 0.1
"""The share of items from which on what near duplicates take away is worth a warning."""
Drop: TypeAlias = Literal["exact", "near"]
"""Which duplicates are dropped: exact ones alone, or near ones and those of the same meaning too."""
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
        group: (items,) number of the group of duplicates that an item is in, -1 where it has no duplicate. All items
            of a group are duplicates of each other (complete linkage): A like B and B like C makes no group of A and C.
        keeper: (items,) the place of the item that is kept in each item's place; its own where it is kept. Of exact
            duplicates, or of a group where near ones are dropped, it is the one in the test split, else in validation,
            else in any other; then of the first source; then the first that is no symbolic link.
        skipped: a sentence for each image that could not be read; `items` has none of them.
    """

    items: ItemList
    one: Ints
    other: Ints
    exact: Mask
    semantic: Mask
    similarity: Floats
    group: Ints
    keeper: Ints
    skipped: tuple[str, ...] = ()

    @property
    def kept(self) -> Mask:
        """(items,) whether an item is kept."""
        return np.asarray(self.keeper == np.arange(len(self.items)))

    @property
    def near_drop(self) -> int:
        """How many items go where near duplicates are dropped too."""
        return int((self.group >= 0).sum()) - self.groups

    def warnings(self) -> tuple[str, ...]:
        """Sentences to read before near duplicates are dropped: where many go, and pairs that no group holds."""
        several, apart = [], int((self.group[self.one] != self.group[self.other]).sum())
        if self.near_drop > MANY * len(self.items):
            several.append(
                f"{self.near_drop:,} of {len(self.items):,} items ({self.near_drop / len(self.items):.0%}) go where "
                "near duplicates are dropped: items that are alike by nature may look like "
                "duplicates; look at the groups first, or ask for more similarity"
            )
        if apart:
            several.append(
                f"{apart:,} near pairs are of two groups, since not all items of both are alike; both items are kept"
            )
        return tuple(several)

    @property
    def groups(self) -> int:
        """How many groups of duplicates there are."""
        return int(self.group.max(initial=-1)) + 1

    def clean(self) -> ItemList:
        """The items that are kept; near duplicates among them share a name in `group`, and so stay in one split."""
        kept = self.items.take(self.kept)
        group = self.group[self.kept]
        shared = (group >= 0) & (np.bincount(group + 1, minlength=self.groups + 1)[group + 1] > 1)
        return kept.adding(group=np.where(shared, group.astype(np.str_), "")) if shared.any() else kept

    def grouped(self) -> ItemList:
        """All items, with what was found about each.

        The columns are `group` (empty for an item without a duplicate), `kind` (exact where it is in an exact pair,
        else near), `kept`, and `duplicate_of`: the item that is kept in its place.
        """
        alone = self.group < 0
        names = np.char.add(np.char.add(self.items.sources.astype(np.str_), ":"), self.items.items.astype(np.str_))
        exact = np.zeros(len(self.items), dtype=np.bool_)
        exact[np.concatenate([self.one[self.exact], self.other[self.exact]])] = True
        return self.items.adding(
            group=np.where(alone, "", self.group.astype(np.str_)),
            kind=np.where(alone, "", np.where(exact, "exact", "near")),
            kept=np.where(self.kept, "yes", "no"),
            duplicate_of=np.where(self.kept, "", names[self.keeper]),
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
    drop: Drop = "exact",
    similarity: float = 0.0,
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
    other where a source leaves them in their files. Nothing near is dropped unless `drop` says so: look at the groups
    first (`dissensus_train.report.duplicates` makes a page of them).

    Args:
        sources: where items come from; of duplicates, those of an earlier source are kept.
        splits: (items,) the split of each item, over all sources; a duplicate across splits is a leak.
        near: whether to look for near duplicates too.
        drop: which duplicates are dropped, exact or near (with exact ones and those of the same meaning).
        similarity: the least similarity of near duplicates, beside what they are judged by; 0 asks for no more.
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
    if drop not in get_args(Drop):
        raise InputError(f"duplicates: drop is '{drop}'{choices(drop, get_args(Drop))}")
    if not 0 <= similarity <= 1:
        raise InputError(f"duplicates: a least similarity of {similarity:g}; give one from 0 to 1")
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
        pairs = _duplicate_texts(texts, near=near, numbers=numbers, progress=progress)
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
    enough = pairs[3] >= similarity
    one, other, exact, share = pairs = pairs[0][enough], pairs[1][enough], pairs[2][enough], pairs[3][enough]
    semantic = np.zeros(len(one), dtype=np.bool_)
    if encoder is not None and shown is not None:
        (one, other, exact, share), semantic = _with_meaning(pairs, shown, encoder, meaning, progress)
    group = _all_alike(one, other, share, len(items))
    same = group if drop == "near" else _numbered(joined(one[exact], other[exact], len(items)))
    return Duplicates(
        items=items,
        one=one,
        other=other,
        exact=exact,
        semantic=semantic,
        similarity=share,
        group=group,
        keeper=_keeper(same, items.columns, _files(sources, skipped)),
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


def _duplicate_texts(texts: Names, *, near: bool, numbers: bool, progress: Progress) -> Pairs:
    _, first, content = np.unique(texts, return_index=True, return_inverse=True)
    exact = _pairs(*_chained(content), exact=True)
    if not near:
        return exact
    plain, of_form, form = np.unique(plain_forms(texts[first]), return_index=True, return_inverse=True)
    a, b = _chained(form)
    progress(Step("compared texts", 0, len(texts)))
    c, d, share = near_texts(texts[first[of_form]], plain, numbers=numbers)
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
    sizes: dict[tuple[int, ...], list[tuple[Ints, Planes]]] = {}
    for source, rows, members in by_source(place[drawn], sources):
        own: tuple[int, ...] = ()
        here = drawn[rows]
        shown = planes[here]
        if source.images is not None and max(source.images.shape[2:]) <= 2 * SIDE:
            own = source.images.shape[2:]
            shown = canvas(source.images[members], source.images.shape[2:])
        sizes.setdefault(own, []).append((here, shown))
    size = np.empty(len(planes), dtype=np.int64)
    parts = []
    for number, parts_of in enumerate(sizes.values()):
        here, shown = (np.concatenate(columns) for columns in zip(*parts_of, strict=True))
        one, other, correlation = near_drawings(shown)
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


def _numbered(group: Ints) -> Ints:
    """(items,) the groups of two items or more, numbered by their first item; -1 for an item by itself."""
    _, first, member, count = np.unique(group, return_index=True, return_inverse=True, return_counts=True)
    rank = np.cumsum(np.bincount(first[count > 1], minlength=len(group))) - 1
    return np.asarray(np.where(count[member] > 1, rank[first[member]], -1))


def _all_alike(one: Ints, other: Ints, similarity: Floats, items: int) -> Ints:
    """(items,) groups in which every two items are a pair, the most alike joined first; -1 for an item without one.

    Items that pairs of similarity 1 join count as one: of those, not every pair is listed.
    """
    cluster = joined(one[similarity >= 1], other[similarity >= 1], items)
    a, b = cluster[one], cluster[other]
    order = np.argsort(-similarity, kind="stable")
    order = order[a[order] != b[order]]
    pairs = list(dict.fromkeys(zip(*np.sort([a[order], b[order]], axis=0).tolist(), strict=True)))
    into: dict[int, int] = {}
    size = Counter({node: 1 for pair in pairs for node in pair})
    links: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for here, there in pairs:
        links[here][there] += 1
        links[there][here] += 1

    def now(node: int) -> int:
        while node in into:
            node = into[node]
        return node

    for here, there in ((now(here), now(there)) for here, there in pairs):
        if here != there and links[here][there] == size[here] * size[there]:
            into[there] = here
            size[here] += size[there]
            for node, count in links.pop(there).items():
                links[here][node] += count
                links[node][here] += count
    return _numbered(np.array([now(node) for node in range(int(cluster.max()) + 1)])[cluster])


def _files(sources: Sequence[Source], skipped: Mapping[int, str]) -> list[str]:
    """The file of each item, empty where it has none."""
    files = [path for source in sources for path in ([""] * len(source) if source.files is None else source.files)]
    return [str(path) for place, path in enumerate(files) if place not in skipped]


def _keeper(group: Ints, columns: Mapping[str, Any], files: Sequence[str]) -> Ints:
    """(items,) the place of the item that is kept in the place of each."""
    keeper = np.arange(len(group))
    member = np.flatnonzero(group >= 0)
    rank = np.full(len(member), len(KEPT_FIRST))
    if "split" in columns:
        for place, name in enumerate(KEPT_FIRST):
            rank[columns["split"][member] == name] = place
    # A link that outlives what it points to shows nothing.
    link = np.array([Path(files[place]).is_symlink() for place in member.tolist()], dtype=np.bool_)
    order = member[np.lexsort((member, link, rank, group[member]))]
    first = order[np.unique(group[order], return_index=True)[1]]
    keeper[member] = first[group[member]]
    return keeper
