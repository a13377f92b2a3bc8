"""Labels on pairs, as tools write them, to preferences: a scale from left to right, each pair named one way round."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError, choices
from dissensus.votes.cells import are_numbers
from dissensus.votes.columns import guess, is_annotator, item_parts, listed, plain
from dissensus.votes.echo import Plain, number
from dissensus.votes.encoding import first_appearances, to_names
from dissensus.votes.roles import item_columns
from dissensus.votes.scales import MANY
from dissensus.votes.sides import LEFT, RIGHT, TIE, side_columns, side_pairs, turn_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Ints, Mask, Names
    from dissensus.table_file import OpenTable
    from dissensus.votes.formats import Options
    from dissensus.votes.table import Votes

NAMES_SIDES: Final = "the labels name the sides of pairs, which format='preferences' reads as such"

_LABELS: Final = ("winner", "preference", "preferred", "verdict", "better", "overall_preference", "preference_strength")

_SIDE: Final = (
    r"(?:the )?(?:(?:model|assistant|response|answer|output|system|option|completion|summary|text|candidate|choice|side"
    r"|image) ?)?(?P<side>a|b|1|2|left|right|first|second)(?: (?:one|side|wins?|won|is|was|response|answer))*"
)
_DEGREES: Final = {
    1: "slightly|a bit|a little|marginally|somewhat|weakly|barely",
    2: "clearly|moderately|",
    3: "much|significantly|strongly|far|a lot|definitely|substantially|considerably|very much",
}
_BETTER: Final = r"(?: ?(?:better|preferred|stronger|nicer|good))?(?: than .*)?"
_TIES: Final = re.compile(
    r"(it is )?(a )?(tie|tied|draw|equal|equally (good|bad)|same|the same|about the same|about equal|both|neither"
    r"|both (are )?(good|bad|equal)|bothbad|no (clear )?(preference|difference|winner))( ?\((bothbad|both bad|all)\))?"
)
DEGREES: Final = 10
"""Numbers further from 0 are no degrees of a preference."""

_STEPS: Final = re.compile(r"[<>≫≪]|(?i:left|right) \d")
_MARKS: Final = re.compile(r"(?P<first>[ab12]) ?(?P<mark>>+|<+|=+|~|≈|≫|≪) ?(?P<second>[ab12])")


def pair_options(table: OpenTable, options: Options) -> tuple[OpenTable, Options]:
    """How a table of preferences is read before its labels are looked at: which columns name sides, labels and items.

    Rows of one vote are of the item that their columns name together with the two sides.
    """
    columns, sides = table.columns, side_columns(table.columns, options.sides)
    for name in (name for name in options.sides or () if name not in columns and not name.isdigit()):
        raise InputError(f"sides: there is no column '{name}'{choices(name, columns)}")
    wide = bool(options.annotators) or sum(map(is_annotator, columns)) > 1 or options.panel is not None
    who = [name for name in columns if (name in options.annotators if options.annotators else is_annotator(name))]
    if wide and sides and len(who) > 1 and options.panel is None and not {"annotator", "label"} & {*columns}:
        rows = table.rows().table
        named = item_parts(_with_sides(table, options, sides), columns)
        if rows.select(named[:-2]).is_duplicated().any():
            # One question has several pairs, which only rows of one vote can name.
            beside = [name for name in columns if name not in who]
            rows = rows.unpivot(who, index=beside, variable_name="annotator", value_name="label")
            rows = rows.filter(pl.col("label").is_not_null() & (pl.col("label").cast(pl.String) != ""))
            table, columns, wide = replace(table, held=rows, columns=rows.columns), rows.columns, False
            options = replace(options, annotators=(), annotator="annotator", label="label")
    known = next((name for name in columns if plain(name) in _LABELS), guess("label", columns))
    if options.label is None and known is not None and not wide:
        options = replace(options, label=known)
    elif options.label is None and not wide and sides and plain(sides[0]) == "chosen":
        rows = table.rows().table.with_columns(pl.lit(LEFT).alias("preference"))
        table = replace(table, held=rows, columns=[*columns, "preference"])
        options = replace(options, label="preference", classes=(LEFT, RIGHT))
    if options.label is not None and sides:
        options = replace(options, item=_with_sides(table, options, sides))
    if options.label in table.columns and table.rows([options.label]).table.dtypes[0] != pl.List:
        # [[A]] is no list.
        options = replace(options, format="long")
    about = [name for name in (*sides, *item_parts(options.item, columns)) if name not in options.item_attributes]
    return table, replace(options, item_attributes=(*options.item_attributes, *about))


def names_sides(labels: Sequence[str]) -> bool:
    """Whether plain labels name sides of pairs in so many words: `model_a` and `model_b`, not left and right alone."""
    known = [degree_said(label) for label in labels] if len(labels) <= MANY else [None]
    wordy = (re.search(r"(?i)(model|assistant|response)[ _]?[ab12]", label) for label in labels)
    told = all(degree == 0 or word is not None for degree, word in zip(known, wordy, strict=False))
    return told and None not in known and {-1, 1} <= {np.sign(degree or 0) for degree in known}


def _with_sides(table: OpenTable, options: Options, sides: Sequence[str]) -> str:
    """The columns that name an item, the two sides last."""
    parts = item_parts(options.item, table.columns) or ([options.item] if options.item else [])
    if not parts:
        free = [name for name in table.columns if name not in sides and name != options.annotator]
        fit = item_columns(free) or [name for name in free if plain(name) in ("prompt", "instruction", "text")]
        if len(fit) != 1:
            raise InputError(
                f"{table.path}: {listed(fit) or 'no column'} may name what the two sides answer; name it with item=",
                readings={f"'{name}' and the sides name the pair": {"item": ",".join([name, *sides])} for name in fit},
            )
        parts = fit
    return ",".join([*(name for name in parts if name not in sides), *sides])


def as_preferences(
    votes: Votes, options: Options, *, columns: Sequence[str], asked: Sequence[str] = (), notes: list[str]
) -> Votes:
    """Votes whose labels name a side as preferences, every pair named one way round: as its first row has it.

    Chosen and rejected are in order of alphabet. The labels of the votes are as written, what names the sides is among
    their attributes of items, and the classes of `options` are the labels from left to right. `columns` are all of the
    file, `asked` those that shall describe items, also where they name them; `notes` takes what was done.
    """
    about, names = dict(votes.item_attributes), _sides(votes, options, columns)
    place, extent = _places(votes, options, names, columns, notes)
    classes = _classes(extent, tie=not _told(options) or len(votes.classes) % 2 == 1)
    if not _told(options) and extent == 1 and place.all():
        notes.append(Plain("nobody chose a tie, which stays in the scale; classes= names the labels where none can be"))
    label = place + extent if len(classes) % 2 else np.where(place < 0, place + extent, place + extent - 1)
    item, first, turned = votes.item, np.arange(len(votes.items)), np.zeros(len(votes.items), dtype=np.bool_)
    items: Names = votes.items
    # What is chosen and what rejected says nothing of where it was shown.
    chosen = plain("".join(side_columns(columns, options.sides)[:1])) == "chosen"
    if names is not None:
        wrong = (names[0] == names[1]) | (names[0] == "") | (names[1] == "")
        if wrong.any():
            odd = int(wrong.argmax())
            what = f"'{names[0][odd]}' on both sides" if names[0][odd] == names[1][odd] else "a side without a name"
            raise InputError(f"preferences: item '{votes.items[odd]}' has {what}; correct or leave out its rows")
        parts = item_parts(options.item, columns)
        base = [name for name in parts if name not in side_columns(columns, options.sides)] if parts else []
        alphabet = np.asarray(names[0] > names[1])
        lower, higher = np.where(alphabet, names[1], names[0]), np.where(alphabet, names[0], names[1])
        frame = pl.DataFrame({"\0lower": lower.tolist(), "\0higher": higher.tolist()}).with_columns(
            [pl.Series(name, about[name].tolist()).cast(pl.String) for name in base]
            if base
            else [pl.Series("\0item", votes.items.tolist()).cast(pl.String)]
        )
        key = frame.select(pl.concat_str([*base, "\0lower", "\0higher"] if base else ["\0item"], separator=" | "))
        code, first = first_appearances(key.to_series())
        item = code[votes.item]
        # Where the left side was chosen in every first row, order of alphabet says less.
        turned = alphabet if chosen else np.asarray(names[0] != names[0][first][code])
        left, right = np.where(turned, names[1], names[0]), np.where(turned, names[0], names[1])
        # What names the question alone is name enough, where it has one pair.
        short = frame[base].n_unique() == len(first) if base else False
        sides = [pl.Series(name, values.tolist()) for name, values in (("\0left", left), ("\0right", right))]
        whole = frame.with_columns(sides).select(pl.concat_str([*base, "\0left", "\0right"], separator=" | "))
        named = frame[base[0]] if short and len(base) == 1 else whole.to_series()
        items = to_names(named.gather(first)) if base else votes.items
        dropped = {*base} - {*asked}
        about = turn_pairs({name: values for name, values in about.items() if name not in dropped}, turned)
        about = {name: values for name, values in about.items() if name not in side_columns(columns, options.sides)}
        about = {LEFT: left, RIGHT: right, **about}
    here = turned[votes.item]
    shown = here & (not chosen)
    if here.any():
        than = "in order of alphabet"
        if shown.any():
            than = "its first row, which names left and right; which was shown on the left is kept"
        some = f"{here.sum():,} of {len(votes):,} votes named the sides of their pair the other way round"
        notes.append(Plain(f"{some} than {than}"))
    if votes.annotators is not None and votes.judgement is None:
        pair = item.astype(np.int64) * len(votes.annotators) + votes.annotators.code
        if twice := len(pair) - len(np.unique(pair)):
            notes.append(f"{number(twice, 'pair')} judged both ways round by the same annotator: both votes count")
    top = len(classes) - 1
    return replace(
        votes,
        item=item.astype(np.int32),
        label=np.where(here, top - label, label).astype(np.int32),
        items=items,
        classes=classes,
        item_attributes={name: values[first] for name, values in about.items()},
        ordered=len(classes) > 2 if options.ordered is None else options.ordered,
        swapped=shown,
    )


def _told(options: Options) -> bool:
    """Whether the user says what lies from left to right."""
    return options.classes is not None or options.bins is not None


def _classes(extent: int, *, tie: bool) -> tuple[str, ...]:
    """The scale from left to right: left, tie, right, or with degrees `left 2`, `left 1`, tie, `right 1`, `right 2`."""
    degrees = [""] if extent == 1 else [f" {degree}" for degree in range(1, extent + 1)]
    middle = (TIE,) if tie else ()
    return (*(LEFT + degree for degree in reversed(degrees)), *middle, *(RIGHT + degree for degree in degrees))


def _sides(votes: Votes, options: Options, columns: Sequence[str]) -> tuple[Names, Names] | None:
    """The (items,) names of the left and of the right side, as the file has them; None where nothing names them."""
    text, about = np.dtypes.StringDType(), votes.item_attributes
    given = side_columns(columns, options.sides)
    if len(given) == 2:
        return about[given[0]].astype(text), about[given[1]].astype(text)
    if not options.sides:
        return None
    cells = about[given[0]] if given else votes.items
    parts = pl.Series(cells.tolist()).cast(pl.String).str.split(options.separator or "")
    places = (0, 1) if given else tuple(int(part) - 1 for part in options.sides if part.isdigit())
    size = 2 if given else parts.list.len().max()
    wrong = parts.list.len() != size
    if len(places) != 2 or not 0 <= min(places) < max(places) < int(str(size)) or wrong.any():
        odd = cells[int(wrong.arg_max() or 0)]
        raise InputError(
            f"sides: '{odd}' does not hold two names with '{options.separator or ''}' between them; sides= takes two "
            "columns, or one with separator=, or the places of both in the names of items (2,3) with separator="
        )
    first, second = (to_names(parts.list.get(place)).astype(text) for place in places)
    return first, second


def _places(
    votes: Votes, options: Options, names: tuple[Names, Names] | None, columns: Sequence[str], notes: list[str]
) -> tuple[Ints, int]:
    """(votes,) where each vote lies, below 0 on the left, 0 a tie, above 0 on the right; and the largest degree."""
    labels = votes.classes
    if _told(options):
        size = len(labels)
        if size < 2:
            raise InputError("classes: a preference needs two classes or more, from left to right")
        place = np.arange(size) - size // 2
        place += (size % 2 == 0) & (place >= 0)
        return place[votes.label], size // 2
    if are_numbers(labels) and all(float(label).is_integer() for label in labels):
        about = [name for name in columns if not is_annotator(name) and name not in (options.annotators or ())]
        numbered = any(plain(first).endswith("1") for first, _ in side_pairs(about))
        told = _numbers([float(label) for label in labels], numbered=numbered)
        place = np.array(told)[votes.label]
        if names is not None:
            _by_name(votes, names, place, np.ones(len(votes), dtype=np.bool_))
        return place, max(map(abs, told), default=1) or 1
    degrees = [degree_said(label) for label in labels]
    place = np.array([0 if degree is None else degree for degree in degrees])[votes.label]
    unread = np.array([degree is None for degree in degrees], dtype=np.bool_)[votes.label]
    if names is not None:
        place, unread = _by_name(votes, names, place, ~unread)
    if unread.any():
        first = int(unread.argmax())
        odd = [labels[k] for k in np.unique(votes.label[unread]).tolist()]
        raise InputError(
            f"preferences: {listed(odd)} of the labels {listed(labels)} {'name' if odd[1:] else 'names'} neither a "
            f"side nor a tie, first of item '{votes.items[votes.item[first]]}'; list them from left to right with "
            "classes=, or leave out those that are none with missing="
        )
    ties = sorted({label for label, degree in zip(labels, degrees, strict=True) if degree == 0})
    notes += [Plain(f"{listed(ties)} are ties alike")] if len(ties) > 1 else []
    used = np.unique(np.abs(place[place != 0]))
    if all(degree == 0 or _STEPS.search(label) for label, degree in zip(labels, degrees, strict=True)):
        # Degrees that are counted, and not put in words, have places between them that nobody chose.
        used = np.arange(1, max(used, default=1) + 1)
    rank = np.searchsorted(used, np.abs(place)) + 1
    return np.where(place == 0, 0, np.sign(place) * rank), max(len(used), 1)


def _by_name(votes: Votes, names: tuple[Names, Names], place: Ints, known: Mask) -> tuple[Ints, Mask]:
    """(votes,) places where labels may be names of systems, and which votes name no side.

    A system may be called A, or left. Where other labels are such names alone, this one is; where others are sides
    alone, it is a side; else both readings are refused.
    """
    said = np.array(votes.classes, dtype=np.dtypes.StringDType())[votes.label]
    left, right = said == names[0][votes.item], said == names[1][votes.item]
    # As a side that is named without a degree.
    named = np.where(left, -2, 2)
    either = (left | right) & known & (np.sign(place) != np.sign(named))
    by_name, by_side = bool(((left | right) & ~known).any()), bool((known & (place != 0) & ~(left | right)).any())
    if either.any() and by_name == by_side:
        first = int(either.argmax())
        item, pair = votes.items[votes.item[first]], [str(side[votes.item[first]]) for side in names]
        raise InputError(
            f"preferences: '{said[first]}' of item '{item}' may be the system of that name or the side; of {pair[0]} "
            f"(left) and {pair[1]} it is the {'right' if right[first] else 'left'} one by name, and by side the other "
            "one or a tie. Call the systems otherwise, or the labels model_a and model_b"
        )
    taken = (left | right) & (~known | by_name)
    return np.where(taken, named, place), ~known & ~(left | right)


def _numbers(values: Sequence[float], *, numbered: bool) -> list[int]:
    """Where numbers lie: -3 to 3 as they are, 1 and 2 are the sides; refuses those that may mean several things."""
    whole = [int(value) for value in values]
    if min(whole) < 0:
        if far := [str(value) for value in whole if abs(value) > DEGREES]:
            raise InputError(
                f"preferences: {listed(far)} are more than {DEGREES} degrees; put the numbers into bins with bins=, or "
                "leave out those that are no answers with missing="
            )
        return whole
    if set(whole) <= {1, 2} or (set(whole) <= {0, 1, 2} and numbered and 2 in whole):
        return [{0: 0, 1: -1, 2: 1}[value] for value in whole]
    names = [str(value) for value in range(min(*whole, 1), max(whole) + 1)]
    readings: dict[str, Any] = {"from left to right": {"classes": names}}
    if set(whole) <= {0, 1, 2}:
        readings["1 is the left side, 2 the right, 0 a tie"] = {"classes": ["1", "0", "2"]}
    if set(whole) <= {1, 2, 3}:
        readings["1 is the left side, 2 the right, 3 a tie"] = {"classes": ["1", "3", "2"]}
    if set(whole) <= {0, 1}:
        readings["1 is the left side, 0 the right"] = {"classes": ["1", "0"]}
    raise InputError(
        f"preferences: the numbers {listed([str(value) for value in whole])} may lie from left to right or not; choose",
        readings=readings,
    )


def degree_said(label: str) -> int | None:
    """Where a label lies, by its words; None where it names neither a side nor a tie.

    >>> [degree_said(label) for label in ("model_a", "B>>A", "[[C]]", "tie (bothbad)", "Response 2 is slightly better")]
    [-2, 2, 0, 0, 1]
    """
    words = re.sub(r"[\s_\-\[\]\"'.:,!]+", " ", label.lower()).strip()
    marks = _MARKS.fullmatch(words)
    if marks is not None and marks["first"] != marks["second"]:
        strength = {"≫": 2, "≪": 2}.get(marks["mark"], len(marks["mark"]))
        if marks["mark"][0] in "=~≈":
            return 0
        return strength * (-1 if (marks["first"] in "a1") == (marks["mark"][0] in ">≫") else 1)
    if counted := re.fullmatch(r"(left|right) (\d+)", words):
        return int(counted[2]) * (-1 if counted[1] == "left" else 1)
    if words == "c" or _TIES.fullmatch(words):
        return 0
    for degree, how in _DEGREES.items():
        said = (
            re.fullmatch(rf"{_SIDE} ?(?:{how}){_BETTER}", words)
            or re.fullmatch(rf"(?:i )?(?:{how}) ?(?:prefer(?:red)? )?{_SIDE}{_BETTER}", words)
            or re.fullmatch(rf"prefer(?:red)? {_SIDE} ?(?:{how})", words)
        )
        if said is not None:
            return degree * (-1 if said["side"] in ("a", "1", "left", "first") else 1)
    return None
