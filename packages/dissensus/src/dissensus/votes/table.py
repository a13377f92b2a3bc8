"""`Votes`: who said what, as integer codes with names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.arrays import column_names, cross_counts, places_of, places_within, row_sum
from dissensus.errors import InputError, meant
from dissensus.votes.echo import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Codes, Counts, Floats, Ints, Mask, Names, Times

SHOWN: Final = 5
"""Rows that a notebook shows of a table."""

NONE: Final = "none"
"""The class of a judgement that says No to every class (the soft-digits paper's NaN class)."""

KINDS: Final = ("person", "model")
"""Who gave a vote, as a file of votes says it."""


@dataclass(frozen=True, eq=False)
class Annotators:
    """Who gave the votes.

    Attributes:
        code: (votes,) the annotator of each vote, as an index into `names`.
        names: (annotators,) names.
        attributes: for each attribute of annotators (age, country), its (annotators,) values.
    """

    code: Codes
    names: Names
    attributes: Mapping[str, Names] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_codes("annotator", self.code, len(self.names))
        for name, values in self.attributes.items():
            if values.shape != self.names.shape:
                raise InputError(f"votes: attribute '{name}' needs exactly one value per annotator")
        _freeze(self)

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        return _equal(self, other)

    def of_votes(self, rows: Ints) -> Annotators:
        """The annotators of some votes, in that order; all keep their codes."""
        return replace(self, code=self.code[rows])


@dataclass(frozen=True, eq=False, kw_only=True)
class Votes:
    """Raw votes of a panel: one row per vote, that is, one selected class in a judgement.

    Responses are kept, not interpreted: a weighting scheme in `dissensus.labels` reads them. A response of No is
    the absence of a row; a judgement that says No to every class is one row with the class `none`.

    Attributes:
        item: (votes,) the item of each vote, as an index into `items`.
        label: (votes,) the selected class, as an index into `classes`.
        items: (items,) names.
        classes: names, in class order.
        annotators: who gave each vote; None where votes are anonymous (a table of counts).
        unsure: (votes,) true where the response is unsure, false where it is yes; None where all are yes.
        by_model: (votes,) true where a model gave the vote, false where a person did; None where all are people's.
            What is counted is people: `counts`, and all that is made of it, refuses votes with such a mark, and
            `people` and `models_as_people` are the two ways on.
        judgement: (votes,) which judgement a vote belongs to, 0 to judgements - 1; None where every vote is a
            judgement of its own (single choice).
        seconds: (judgements,) time that each judgement took, in seconds; NaN where unknown.
        time: (judgements,) when each judgement was given, in UTC; NaT where unknown.
        item_attributes: for each attribute of items (text, source, original label), its (items,) values.
        ordered: whether the classes are a scale, lowest first.
        none: the index in `classes` of the class `none`, where every class was answered with yes, no or unsure;
            None for single choices.
        swapped: (votes,) of preferences, true where a pair was shown with its sides the other way round than its item
            names them; None for votes that are no preferences. The classes of preferences run from left to right: with
            the sides swapped, the class at the mirrored place says the same.
        notes: how they were read, in sentences: the format and its columns first, then whatever was odd.

    Votes are equal where all but their notes is, in the same order; like frames they are not hashable.

    Examples:
        >>> votes = votes_from_counts(np.array([[2, 1], [0, 3]]), classes=("no", "yes"))
        >>> votes, votes.counts.tolist()
        (Votes(6 votes, 2 items, 2 classes, anonymous), [[2, 1], [0, 3]])
    """

    item: Codes
    label: Codes
    items: Names
    classes: tuple[str, ...]
    annotators: Annotators | None = None
    unsure: Mask | None = None
    by_model: Mask | None = None
    judgement: Codes | None = None
    seconds: Floats | None = None
    time: Times | None = None
    item_attributes: Mapping[str, Names] = field(default_factory=dict)
    ordered: bool = False
    none: int | None = None
    swapped: Mask | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        code = None if self.annotators is None else self.annotators.code
        columns = {name: getattr(self, name) for name in ("unsure", "by_model", "judgement", "label", "swapped")}
        for name, column in ({"annotator": code} | columns).items():
            if column is not None and column.shape != self.item.shape:
                raise InputError(
                    f"votes: column '{name}' has {column.shape} entries and 'item' {self.item.shape}; "
                    "give one entry per vote in each"
                )
        _check_codes("item", self.item, len(self.items))
        _check_codes("label", self.label, len(self.classes))
        if self.by_model is not None:
            self._check_kinds(self.by_model)
        if len(set(self.classes)) != len(self.classes):
            raise InputError("votes: two classes have the same name; name each class once")
        for name in ("seconds", "time"):
            column = getattr(self, name)
            if column is not None and column.shape != (self.n_judgements,):
                raise InputError(
                    f"votes: {column.shape[0]} values of '{name}' for {self.n_judgements} judgements; "
                    "give one value per judgement, NaN or NaT where it is unknown"
                )
        for name, values in self.item_attributes.items():
            if values.shape != self.items.shape:
                raise InputError(f"votes: item attribute '{name}' needs exactly one value per item")
        _freeze(self)

    def _check_kinds(self, by_model: Mask) -> None:
        """Refuse an annotator, or a judgement, of both kinds; where no vote is a model's, forget the mark."""
        if not by_model.any():
            object.__setattr__(self, "by_model", None)
            return
        if self.annotators is not None:
            code = self.annotators.code
            person = np.zeros(len(self.annotators), dtype=np.bool_)
            person[code[~by_model]] = True
            both = np.flatnonzero(person[code] & by_model)
            if both.size:
                who = self.annotators.names[code[both[0]]]
                raise InputError(f"votes: annotator '{who}' is a person and a model; give each a name of their own")
        elif self.judgement is not None and (self._once_a_judgement(by_model)[self.judgement] != by_model).any():
            raise InputError("votes: a judgement has votes of a person and of a model; give each their own judgement")

    def __len__(self) -> int:
        return self.item.shape[0]

    def __eq__(self, other: object) -> bool:
        return _equal(self, other)

    def __add__(self, other: Votes) -> Votes:
        """Both together: items, annotators and classes of one name are the same; `self.notes` stay in front."""
        # A class that nobody chose in one file is none of its classes; on a scale its place counts.
        plain = not (self.ordered or other.ordered) and self.none is None and other.none is None
        plain &= not (self.pairs or other.pairs)
        for name in () if plain else ("classes", "ordered", "none", "pairs"):
            if getattr(self, name) != getattr(other, name):
                raise InputError(
                    f"votes: {name} is {getattr(self, name)} here and {getattr(other, name)} there; read both with the "
                    "same classes= and ordered= to add them"
                )
        classes = tuple(dict.fromkeys((*self.classes, *other.classes)))
        label = np.array([classes.index(name) for name in other.classes], dtype=self.label.dtype)[other.label]
        if (self.annotators is None) != (other.annotators is None):
            raise InputError("votes: one of both is anonymous; give annotators to both, or to neither")
        place, items, about = _joined("item", self.items, self.item_attributes, other.items, other.item_attributes)
        annotators = None
        if self.annotators is not None and other.annotators is not None:
            mine, theirs = self.annotators, other.annotators
            who, names, described = _joined("annotator", mine.names, mine.attributes, theirs.names, theirs.attributes)
            annotators = Annotators(np.concatenate([mine.code, who[theirs.code]]), names, described)
            ours, others = (
                np.unique(item.astype(np.int64) * len(names) + code)
                for item, code in ((self.item, mine.code), (place[other.item], who[theirs.code]))
            )
            twice = np.intersect1d(ours, others)
            if twice.size:
                item, person = divmod(int(twice[0]), len(names))
                raise InputError(
                    f"votes: {names[person]} judged item {items[item]} in both, and {twice.size:,} judgements in all "
                    "are in both; leave out one of each (votes.subset), or read the rows together with duplicates="
                )
        judgement = None
        if self.judgement is not None or other.judgement is not None:
            judgement = np.concatenate([self.judgement_of_vote, other.judgement_of_vote + np.int32(self.n_judgements)])
        rows, judged = (len(self), len(other)), (self.n_judgements, other.n_judgements)
        return replace(
            self,
            item=np.concatenate([self.item, place[other.item]]),
            label=np.concatenate([self.label, label]),
            items=items,
            classes=classes,
            annotators=annotators,
            unsure=_end_to_end(self.unsure, other.unsure, rows, missing=False),
            by_model=_end_to_end(self.by_model, other.by_model, rows, missing=False),
            swapped=_end_to_end(self.swapped, other.swapped, rows, missing=False),
            judgement=judgement,
            seconds=_end_to_end(self.seconds, other.seconds, judged, missing=np.nan),
            time=_end_to_end(self.time, other.time, judged, missing="NaT"),
            item_attributes=about,
            notes=(*self.notes, *other.notes),
        )

    def subset(self, *, items: Any = None, annotators: Any = None) -> Votes:
        """The votes on some items and of some annotators, each given by name or as a mask over all of them.

        Items come in the order that is given, with votes or without; those that only other annotators judged are gone.

        >>> votes_from_counts([[2, 1], [0, 3]], items=["a", "b"]).subset(items=["b"]).counts.tolist()
        [[0, 3]]
        """
        votes = self if items is None else self.take_items(_chosen(items, self.items, "item"))
        if annotators is None:
            return votes
        if votes.annotators is None:
            raise InputError("votes: who voted is not known; choose items, or read a column of annotators")
        kept = np.isin(votes.annotators.code, _chosen(annotators, votes.annotators.names, "annotator"))
        return votes._only(kept)

    def __repr__(self) -> str:
        sizes = {"vote": len(self), "item": len(self.items), "class": len(self.classes)}
        panel = "anonymous" if self.annotators is None else number(len(self.annotators), "annotator")
        models = "" if self.by_model is None else f", {number(self.n_model_votes, 'vote')} from models"
        return f"Votes({', '.join(number(size, what) for what, size in sizes.items())}, {panel}{models})"

    def _repr_html_(self) -> str:
        first = self.take_judgements(np.arange(min(self.n_judgements, SHOWN)))
        said = "".join(f"<p>{escape(sentence)}</p>" for sentence in (repr(self), *self.notes))
        return f"{said}{first.to_polars()._repr_html_()}"

    def to_polars(self) -> Any:
        """A Polars frame as a long file holds it: a row per vote or response, or per judgement that has several."""
        from dissensus.votes.writing import votes_table

        return votes_table(self)

    def to_pandas(self) -> Any:
        """As `to_polars`, a pandas frame; labels are categories in class order, ordered where the classes are."""
        frame = self.to_polars().to_pandas()
        for name in frame.columns[frame.dtypes == "category"]:
            frame[name] = frame[name].cat.set_categories(frame[name].cat.categories, ordered=self.ordered)
        return frame

    def to_hf(self) -> Any:
        """As `to_polars`, a Hugging Face dataset; labels are a `ClassLabel` that knows the classes."""
        from dissensus.table_file import hugging_face

        return hugging_face(self.to_polars())

    @property
    def pairs(self) -> bool:
        """Whether they are preferences: votes on pairs, whose sides may be swapped."""
        return self.swapped is not None

    @property
    def annotator_attributes(self) -> Mapping[str, Names]:
        """The (annotators,) values of each attribute of annotators; empty where votes are anonymous."""
        return {} if self.annotators is None else self.annotators.attributes

    @cached_property
    def n_judgements(self) -> int:
        """The number of judgements."""
        if self.judgement is None:
            return len(self)
        return int(self.judgement.max()) + 1 if len(self) else 0

    @property
    def judgement_of_vote(self) -> Codes:
        """(votes,) the judgement that each vote belongs to."""
        return np.arange(len(self), dtype=np.int32) if self.judgement is None else self.judgement

    @cached_property
    def judgement_item(self) -> Codes:
        """(judgements,) the item of each judgement."""
        items_judged: Codes = self._once_a_judgement(self.item)
        return items_judged

    @cached_property
    def judgement_annotator(self) -> Codes | None:
        """(judgements,) the annotator of each judgement; None where votes are anonymous."""
        return None if self.annotators is None else self._once_a_judgement(self.annotators.code)

    def _once_a_judgement(self, column: Any) -> Any:
        if self.judgement is None:
            return column
        out = np.empty(self.n_judgements, dtype=column.dtype)
        out[self.judgement] = column
        return out

    @property
    def n_model_votes(self) -> int:
        """How many votes are from models."""
        return 0 if self.by_model is None else int(self.by_model.sum())

    @cached_property
    def judgement_by_model(self) -> Mask | None:
        """(judgements,) true where a model gave the judgement; None where all are people's."""
        return None if self.by_model is None else self._once_a_judgement(self.by_model)

    @cached_property
    def model_annotators(self) -> Mask:
        """(annotators,) true for those who are models; empty where votes are anonymous."""
        models = np.zeros(0 if self.annotators is None else len(self.annotators), dtype=np.bool_)
        if self.by_model is not None and self.annotators is not None:
            models[self.annotators.code[self.by_model]] = True
        return models

    @cached_property
    def people(self) -> Votes:
        """The votes of people alone, without the items that only models judged and the classes that only they chose.

        >>> from dissensus.votes import read_votes
        >>> said = [("a", "anna", "cat", "person"), ("a", "llm", "dog", "model"), ("b", "llm", "dog", "model")]
        >>> votes = read_votes([dict(zip(("item", "annotator", "label", "kind"), row)) for row in said])
        >>> votes.people
        Votes(1 vote, 1 item, 1 class, 1 annotator)
        """
        return self if self.by_model is None else self._of_kind(model=False)

    @cached_property
    def models(self) -> Votes | None:
        """The votes of models alone, without the items that only people judged; None where all are people's."""
        return None if self.by_model is None else self._of_kind(model=True)

    def models_as_people(self) -> Votes:
        """The same votes, with each model taken for one more person."""
        return replace(self, by_model=None)

    def _only(self, mine: Mask) -> Votes:
        """The (votes,) chosen votes, whole judgements, without the items and annotators that only the others have."""
        items = _without(self.item, mine, len(self.items))
        some = self.take_judgements(np.flatnonzero(self._once_a_judgement(mine))).take_items(items)
        if some.annotators is None or self.annotators is None:
            return some
        kept = _without(self.annotators.code, mine, len(self.annotators))
        people = Annotators(
            code=_places(kept, len(self.annotators))[some.annotators.code],
            names=self.annotators.names[kept],
            attributes={name: values[kept] for name, values in self.annotators.attributes.items()},
        )
        return replace(some, annotators=people)

    def _of_kind(self, *, model: bool) -> Votes:
        """The votes of one kind: as a file without those of the other would be read."""
        assert self.by_model is not None
        mine = self.by_model == model
        # Of a pair, a class that nobody chose is still a place between left and right.
        classes = np.arange(len(self.classes)) if self.pairs else _without(self.label, mine, len(self.classes))
        if self.none is not None and self.none not in classes:
            classes = np.sort(np.append(classes, self.none))
        some = self._only(mine)
        return replace(
            some,
            label=_places(classes, len(self.classes))[some.label],
            classes=tuple(self.classes[k] for k in classes),
            none=None if self.none is None else int((classes == self.none).argmax()),
        )

    def require_people(self) -> None:
        """Refuse votes that are not all of people."""
        if self.by_model is not None:
            raise InputError(
                f"votes: {self.n_model_votes:,} of {len(self):,} votes are from models, which are not counted among "
                "people's; take votes.people, or votes.models_as_people() to count each model as one more person"
            )

    @cached_property
    def panel_size(self) -> Ints:
        """(items,) the number of judgements of each item."""
        if self.judgement is None and self.by_model is None:
            return row_sum(self.counts)
        return np.bincount(self.judgement_item, minlength=len(self.items))

    @cached_property
    def counts(self) -> Counts:
        """(items, classes) the number of people's votes, yes and unsure alike."""
        self.require_people()
        from scipy.sparse import coo_array  # here, because it takes longer to import than all of this module

        n_items, n_classes = len(self.items), len(self.classes)
        # One-byte counters stay in the cache and take half the time; where one runs over, the sum gives it away.
        small = coo_array((np.ones(len(self), dtype=np.uint8), (self.item, self.label)), shape=(n_items, n_classes))
        counts = small.toarray().astype(np.int64)
        if int(counts.sum()) == len(self):
            return counts
        return cross_counts(self.item, self.label, (n_items, n_classes))

    @cached_property
    def scale(self) -> Floats:
        """(classes,) the place of each class on the scale: its name as a number, or else its rank 0, 1, 2, ...

        Used by ordinal statistics and distances only.
        """
        try:
            places = np.array([float(name) for name in self.classes])
        except ValueError:
            places = np.array([np.nan])
        # A class may be called "nan" or "inf"; that is a name, not a place.
        return places if np.isfinite(places).all() else np.arange(len(self.classes), dtype=np.float64)

    def take_judgements(self, chosen: Ints) -> Votes:
        """The votes of the chosen judgements, in that order; a judgement may be chosen more than once.

        Items, classes and annotators keep their codes, so an item may end with no vote.
        """
        if self.judgement is None:
            rows, judgement = chosen, None
        else:
            order = np.argsort(self.judgement, kind="stable")
            size = np.bincount(self.judgement, minlength=self.n_judgements)
            first = np.cumsum(size) - size
            taken = size[chosen]
            new = np.repeat(np.arange(chosen.shape[0], dtype=np.int32), taken)
            within = places_within(taken)
            rows, judgement = order[np.repeat(first[chosen], taken) + within], new
        return replace(
            self,
            item=self.item[rows],
            label=self.label[rows],
            annotators=None if self.annotators is None else self.annotators.of_votes(rows),
            unsure=None if self.unsure is None else self.unsure[rows],
            by_model=None if self.by_model is None else self.by_model[rows],
            swapped=None if self.swapped is None else self.swapped[rows],
            judgement=judgement,
            seconds=None if self.seconds is None else self.seconds[chosen],
            time=None if self.time is None else self.time[chosen],
        )

    def take_items(self, chosen: Ints) -> Votes:
        """The votes on the chosen items, which are now items 0, 1, 2, ... in that order; each at most once."""
        place = _places(chosen, len(self.items))
        kept = self.take_judgements(np.flatnonzero(place[self.judgement_item] >= 0))
        about = {name: values[chosen] for name, values in self.item_attributes.items()}
        return replace(kept, item=place[kept.item], items=self.items[chosen], item_attributes=about)


def votes_from_counts(
    counts: Any,
    *,
    items: Names | Sequence[Any] | None = None,
    classes: Sequence[str] | None = None,
    ordered: bool = False,
) -> Votes:
    """Anonymous votes from an (items, classes) table of whole counts.

    >>> votes_from_counts([[2, 1], [0, 3]], classes=["cat", "dog"])
    Votes(6 votes, 2 items, 2 classes, anonymous)
    """
    classes = column_names(counts) if classes is None else classes
    index: Any = getattr(counts, "index", None)
    if items is None and hasattr(index, "tolist") and index.tolist() != list(range(len(counts))):
        items = index.tolist()
    try:
        table = np.asarray(counts.detach() if hasattr(counts, "detach") else counts)
    except ValueError:
        raise InputError("counts: rows have unequal lengths; give one number per class in each") from None
    if table.ndim != 2 or table.size == 0:
        raise InputError(f"counts: expected a table of items by classes, got an array of shape {table.shape}")
    n_items, n_classes = table.shape
    if items is not None and not isinstance(items, np.ndarray):
        items = np.array(list(map(str, items)), dtype=np.dtypes.StringDType())
    names = np.arange(n_items, dtype=np.int64) if items is None else items
    for what, named, size in (("items", names, n_items), ("classes", classes, n_classes)):
        if named is not None and (len(named) != size or len(set(map(str, named))) < size):
            raise InputError(f"counts: {len(named)} names of {what} for {size}; give each one name of its own")
    check_counts(table, names)
    cell = np.repeat(np.arange(table.size, dtype=np.int64), table.astype(np.int64).ravel())
    return Votes(
        item=(cell // n_classes).astype(np.int32),
        label=(cell % n_classes).astype(np.int32),
        items=names,
        classes=tuple(classes) if classes is not None else tuple(str(k) for k in range(n_classes)),
        ordered=ordered,
    )


def check_counts(table: np.ndarray[Any, Any], items: Names) -> None:
    """Refuse counts that are not whole, not finite, negative, or zero for a whole item."""
    if table.dtype.kind not in "iuf":
        raise InputError(f"counts: expected numbers, got {table.dtype}; give one whole number per class and item")
    if table.dtype.kind == "f":
        _refuse_rows(~np.isfinite(table), table, items, "is not finite")
        _refuse_rows(table != np.floor(table), table, items, "is not a whole number of votes")
    _refuse_rows(table < 0, table, items, "is negative")
    empty = np.flatnonzero(table.sum(axis=1) == 0)
    if empty.size:
        raise InputError(
            f"counts: item {items[empty[0]]} (row {empty[0] + 1}) has zero votes"
            f"{f' and so have {empty.size - 1:,} more' if empty.size > 1 else ''}; remove it or add its votes"
        )


def _refuse_rows(wrong: np.ndarray[Any, Any], table: np.ndarray[Any, Any], items: Names, what: str) -> None:
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"counts: item {items[row]} (row {row + 1}, column {column + 1}): {table[row, column]} {what}; "
            "a count is a whole number of votes, 0 or more"
        )


def _without(codes: Codes, mine: Mask, size: int) -> Ints:
    """The codes that are left when votes are taken away: all but those that only the other votes have."""
    used, other = np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
    used[codes[mine]], other[codes[~mine]] = True, True
    return np.flatnonzero(used | ~other)


def _places(kept: Ints, size: int) -> Codes:
    """(size,) the place of each code among those that are kept, -1 for the others."""
    place = np.full(size, -1, dtype=np.int32)
    place[kept] = np.arange(kept.size, dtype=np.int32)
    return place


def _chosen(given: Any, names: Names, what: str) -> Ints:
    """The places of those that a user chose, by name or as a mask."""
    wanted = np.asarray(given)
    if wanted.dtype == np.bool_ and wanted.shape == names.shape:
        return np.flatnonzero(wanted)
    wanted = np.atleast_1d(wanted if wanted.dtype.kind in "iu" else wanted.astype(np.dtypes.StringDType()))
    place = places_of(wanted, names)
    unknown = np.flatnonzero(place < 0)
    if unknown.size or np.unique(place).size < place.size:
        wrong = f"there is no {what} '{wanted[unknown[0]]}'" if unknown.size else f"a {what} is chosen twice"
        near = meant(wanted[unknown[0]], map(str, names.tolist())) if unknown.size else ""
        raise InputError(f"votes: {wrong}{near or '; name each once'}, or give a mask of {len(names):,}")
    return place


def _joined(
    what: str, names: Names, about: Mapping[str, Names], others: Names, about_others: Mapping[str, Names]
) -> tuple[Codes, Names, dict[str, Names]]:
    """The place of each of the others among all names, all names, and what is known of them; '' where nothing is."""
    text = np.dtypes.StringDType()
    place = places_of(others, names)
    new = np.flatnonzero(place < 0)
    place[new] = len(names) + np.arange(new.size)
    numbers = names.dtype.kind == others.dtype.kind == "i"
    together = np.concatenate([names, others[new]] if numbers else [names.astype(text), others[new].astype(text)])
    described = {}
    for name in dict.fromkeys((*about, *about_others)):
        values = np.full(len(together), "", dtype=text)
        values[: len(names)] = about[name].astype(text) if name in about else ""
        told = about_others[name].astype(text) if name in about_others else values[place]
        unlike = np.flatnonzero((values[place] != told) & (values[place] != "") & (told != ""))
        if unlike.size:
            who, first, second = others[unlike[0]], values[place[unlike[0]]], told[unlike[0]]
            raise InputError(f"votes: '{name}' of {what} '{who}' is '{first}' here and '{second}' there; correct one")
        values[place] = np.where(told == "", values[place], told)
        whole = (
            name in about and name in about_others and about[name].dtype.kind == about_others[name].dtype.kind == "i"
        )
        described[name] = values.astype(np.int64) if whole else values
    return place.astype(np.int32), together, described


def _end_to_end(first: Any, second: Any, sizes: tuple[int, int], *, missing: Any) -> Any:
    """A column of both; where only one has it, the other's part is missing."""
    if first is None and second is None:
        return None
    known = second if first is None else first
    parts = zip((first, second), sizes, strict=True)
    return np.concatenate([np.full(size, missing, known.dtype) if part is None else part for part, size in parts])


def _equal(first: Any, second: Any) -> bool:
    """Whether two tables, or columns of them, hold the same; what is unknown in both is the same."""
    if type(first) is not type(second):
        return False
    if isinstance(first, Votes | Annotators):
        names = (column.name for column in fields(first) if column.name != "notes")
        return all(_equal(getattr(first, name), getattr(second, name)) for name in names)
    if isinstance(first, Mapping):
        return first.keys() == second.keys() and all(_equal(values, second[name]) for name, values in first.items())
    if not isinstance(first, np.ndarray):
        return bool(first == second)
    if first.shape != second.shape or first.dtype.kind != second.dtype.kind:
        return False
    return bool(((first == second) | ((first != first) & (second != second))).all())


def _check_codes(name: str, codes: Codes, size: int) -> None:
    if codes.ndim != 1 or codes.dtype != np.int32:
        raise InputError(f"votes: '{name}' must be a flat int32 array, got {codes.dtype} of shape {codes.shape}")
    if codes.size and (int(codes.min()) < 0 or int(codes.max()) >= size):
        raise InputError(f"votes: '{name}' holds codes outside 0 to {size - 1}; each code indexes a name")


def _freeze(table: Annotators | Votes) -> None:
    """Make the arrays of a table, and those of its attributes, read-only views."""
    for name in (column.name for column in fields(table)):
        value = getattr(table, name)
        if isinstance(value, np.ndarray):
            object.__setattr__(table, name, _frozen(value))
        elif isinstance(value, Mapping):
            object.__setattr__(table, name, {key: _frozen(values) for key, values in value.items()})


def _frozen(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view
