"""Intact vote files that mean something else than they look like, what each means, and the verdict on our reading.

A file is a panel whose judgements are known, written in one of many layouts, with none, one or two twists. Its
`readings` are what may be read from it: the truth first, then what is literally right and must be told by a note. A
refusal is right as well, and then its advice is obeyed. Nothing here asks the reader what it thinks.

`python -m benchmarks.damage --files 5000` judges many files.
"""

from __future__ import annotations

import csv
import io
import json
import re
import traceback
import unicodedata
from ast import literal_eval
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from dissensus.errors import InputError
from dissensus.votes.reading import Options, understand

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Random = np.random.Generator
    Said = Counter[tuple[str, str | None, str]]
    """How often each (item, annotator, label) is said."""

    Table = list[dict[str, Any]]

SCALES = (
    ["no", "yes"],
    ["negative", "neutral", "positive"],
    ["hate", "neither", "offensive"],
    ["0", "1"],
    ["1", "2", "3", "4", "5"],
    ["bird", "cat", "dog", "frog"],
    ["Toxic", "Not toxic"],
)
ITEM = (
    "item",
    "item_id",
    "id",
    "ID",
    "tweet_id",
    "uid",
    "comment_id",
    "pairID",
    "post_id",
    "doc_id",
    "Item ID",
    "task",
)
ANNOTATOR = ("annotator", "annotator_id", "worker", "WorkerId", "user", "rater_id", "coder", "judge", "participant_id")
LABEL = ("label", "Label", "vote", "class", "answer", "choice", "category", "annotation", "sentiment", "toxicity")
RATING = ("rating", "score", "likert", "stars", "label")
PEOPLE = ("anna", "ben", "cleo", "dana", "emil", "fay", "gus")
GROUPS = (["snli", "mnli", "anli"], ["a.txt", "b.txt"], ["q1", "q2", "q3"], ["forum", "news", "wiki", "chat"])
WORDS = (
    "kettle",
    "sings",
    "before",
    "our",
    "bus",
    "came",
    "twice",
    "nobody",
    "waters",
    "office",
    "cactus",
    "soup",
    "fog",
)
FIELDS = frozenset(Options.__dataclass_fields__)


class Vote(NamedTuple):
    """One judgement of the truth."""

    item: str
    who: str
    label: str


class Reading(NamedTuple):
    """What may be read, and what the notes must then say: patterns that all have to be found in one of them."""

    said: Said
    told: tuple[str, ...] = ()


@dataclass
class File:
    """A table and what it means.

    `readings` is empty where no vote can be read from it; `item`, `who` and `label` name the columns that hold them;
    `right` are the options that say so, None where none do; `given` are options the user gives from the start. `asked`
    may be read where the user says more.
    """

    layout: str
    votes: list[Vote]
    scale: list[str]
    rows: Table
    readings: list[Reading]
    item: str
    who: str | None = None
    label: str | None = None
    panel: list[str] = field(default_factory=list)
    right: dict[str, Any] | None = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=dict)
    asked: list[Reading] = field(default_factory=list)
    twists: tuple[str, ...] = ()
    frame: bool = False
    index: bool = False
    categories: tuple[list[str], bool] | None = None
    check: Callable[[Any], str] | None = None

    @property
    def items(self) -> list[str]:
        return list(dict.fromkeys(vote.item for vote in self.votes))


# --- the truth --------------------------------------------------------------------------------------------------------


def one_of(random: Random, choices: Any) -> Any:
    return choices[int(random.integers(len(choices)))]


def sentence(random: Random) -> str:
    return " ".join(random.choice(WORDS, int(random.integers(4, 9))).tolist())


def item_names(random: Random, number: int) -> list[str]:
    style = int(random.integers(5))
    if style == 0:
        return [f"i{k}" for k in range(number)]
    if style == 1:
        return [str(k + 1) for k in range(number)]
    if style == 2:
        return [f"img_{k:04d}.png" for k in range(number)]
    if style == 3:
        return [str(each) for each in random.choice(10**6, number, replace=False) + 10**6]
    return [f"{k:016x}" for k in random.integers(2**60, 2**62, number).tolist()]


def truth(random: Random, scale: list[str] | None = None) -> tuple[list[Vote], list[str]]:
    """A panel of three to six people on 12 to 30 items; all classes occur, and people disagree."""
    scale = list(one_of(random, SCALES)) if scale is None else scale
    people = list(PEOPLE[: int(random.integers(3, 7))])
    if random.random() < 0.4:
        people = [f"w{k}" for k in random.choice(900, len(people), replace=False) + 100]
    each = len(people) if random.random() < 0.6 else len(people) - 1
    votes = []
    for k, item in enumerate(item_names(random, int(random.integers(12, 31)))):
        lean = scale[k % len(scale)]
        chosen = sorted(random.choice(len(people), each, replace=False).tolist())
        votes += [Vote(item, people[a], lean if random.random() < 0.6 else one_of(random, scale)) for a in chosen]
    return votes, scale


def said_in(votes: list[Vote], *, anonymous: bool = False) -> Said:
    return Counter((vote.item, None if anonymous else vote.who, number_or_text(vote.label)) for vote in votes)


def number_or_text(cell: Any) -> str:
    """Equal numbers have one name."""
    text = str(cell)
    try:
        value = float(text)
    except ValueError:
        return text
    return f"{value:g}" if np.isfinite(value) else text


# --- layouts ----------------------------------------------------------------------------------------------------------


def label_names(scale: list[str]) -> tuple[str, ...]:
    return (*LABEL, *RATING) if scale == SCALES[4] else LABEL


def long(random: Random, scale: list[str] | None = None) -> File:
    votes, scale = truth(random, scale)
    item, who, label = one_of(random, ITEM), one_of(random, ANNOTATOR), one_of(random, label_names(scale))
    if random.random() < 0.25:
        who = None
    rows = [{item: v.item, **({who: v.who} if who else {}), label: v.label} for v in votes]
    readings = [Reading(said_in(votes, anonymous=who is None))]
    right = {"item": item, "label": label, **({"annotator": who} if who else {})}
    return File("long", votes, scale, rows, readings, item, who, label, right=right)


def wide(random: Random, scale: list[str] | None = None) -> File:
    votes, scale = truth(random, scale)
    people = sorted({vote.who for vote in votes})
    style = one_of(random, ["as they are", "ann{}", "annotator_{}", "rater {}", "A{}"])
    named = {who: who if style == "as they are" else style.format(k + 1) for k, who in enumerate(people)}
    votes = [vote._replace(who=named[vote.who]) for vote in votes]
    item = one_of(random, ITEM)
    rows: Table = [{item: name, **dict.fromkeys(named.values())} for name in dict.fromkeys(v.item for v in votes)]
    places = {row[item]: row for row in rows}
    for vote in votes:
        places[vote.item][vote.who] = vote.label
    panel = list(named.values())
    return File(
        "wide",
        votes,
        scale,
        rows,
        [Reading(said_in(votes))],
        item,
        panel=panel,
        right={"item": item, "format": "wide", "annotators": panel},
    )


def counts(random: Random) -> File:
    votes, scale = truth(random)
    names = [f"class {name}" for name in scale] if scale[0].isdecimal() else scale
    votes = [vote._replace(label=names[scale.index(vote.label)]) for vote in votes]
    item = one_of(random, ITEM)
    rows = counted(votes, item, names)
    right = {"item": item, "format": "counts", "classes": names}
    readings = [Reading(said_in(votes, anonymous=True))]
    return File("counts", votes, names, rows, readings, item, panel=names, right=right)


def counted(votes: list[Vote], item: str, classes: list[str]) -> Table:
    number = Counter((vote.item, vote.label) for vote in votes)
    items = dict.fromkeys(vote.item for vote in votes)
    return [{item: name, **{each: number[name, each] for each in classes}} for name in items]


def crosstab(random: Random) -> File:
    """As `pd.crosstab(frame.item, frame.label)` gives it: the items are the index."""
    file = counts(random)
    return replace(file, layout="crosstab", frame=True, index=True, right={"format": "counts"})


def lists(random: Random) -> File:
    """One row per item with the labels of its people as text, as pandas, NumPy, JSON and people write it."""
    votes, scale = truth(random)
    item, label = one_of(random, ITEM), one_of(random, ("labels", "annotations", "answers", "votes", "label"))
    write = one_of(random, [python_list, python_list, numpy_list, json.dumps, ",".join, ";".join, ", ".join, list])
    by_item: dict[str, list[str]] = {}
    for vote in votes:
        by_item.setdefault(vote.item, []).append(vote.label)
    rows = [{item: name, label: write(labels)} for name, labels in by_item.items()]
    right: dict[str, Any] = {"item": item, "label": label, "format": "lists"}
    if write == ",".join or write == ", ".join:
        right["separator"] = ","
    readings = [Reading(said_in(votes, anonymous=True))]
    return File("lists", votes, scale, rows, readings, item, label=label, right=right)


def python_list(labels: list[str]) -> str:
    numbers = all(label.isdecimal() for label in labels)
    return str([int(label) for label in labels]) if numbers else str(labels)


def numpy_list(labels: list[str]) -> str:
    numbers = all(label.isdecimal() for label in labels)
    return str(np.array([int(label) for label in labels])) if numbers else str(np.array(labels))


def parallel(random: Random) -> File:
    """Lists of labels and of who gave them, in the same order."""
    file = lists(random)
    votes, item, label = file.votes, file.item, file.label or ""
    who = one_of(random, ("annotators", "annotator_ids", "workers", "users"))
    write = one_of(random, [python_list, json.dumps, list])
    rows = []
    for name in file.items:
        mine = [vote for vote in votes if vote.item == name]
        rows.append({item: name, who: write([v.who for v in mine]), label: write([v.label for v in mine])})
    right = {"item": item, "annotator": who, "label": label, "format": "lists"}
    return replace(file, layout="parallel", rows=rows, who=who, readings=[Reading(said_in(votes))], right=right)


def flags(random: Random) -> File:
    """One row per judgement, one column of 0 and 1 per class; several or none of them may be chosen."""
    votes, scale = truth(random, one_of(random, [SCALES[1], SCALES[2], SCALES[5]]))
    item, who = one_of(random, ITEM), one_of(random, ANNOTATOR)
    rows, said = [], Counter[tuple[str, str | None, str]]()
    several = random.random() < 0.6
    for vote in votes:
        chosen = [vote.label]
        if several:
            chosen = [name for name in scale if (name == vote.label) != (random.random() < 0.15)]
        rows.append({item: vote.item, who: vote.who, **{name: int(name in chosen) for name in scale}})
        said.update((vote.item, vote.who, name) for name in chosen or ["none"])
    right = {"item": item, "annotator": who, "format": "flags", "classes": scale}
    return File("flags", votes, scale, rows, [Reading(said)], item, who, panel=list(scale), right=right)


def numbers_of_one(random: Random) -> File:
    """A table that looks like counts and holds none: ranks, percentages, points, shares or ratings of aspects."""
    file = counts(random)
    names = one_of(random, [["taste", "price", "look"], ["joy", "anger", "fear", "disgust"], ["cat", "dog"]])
    kind = one_of(random, ["ranks", "percentages", "points", "shares"])
    rows = []
    for name in file.items:
        if kind == "ranks":
            cells = (random.permutation(len(names)) + 1).tolist()
        else:
            whole = {"percentages": 100, "points": 10, "shares": 100}[kind]
            step = 5 if kind == "percentages" and random.random() < 0.5 else 1
            cells = (random.multinomial(whole // step, random.dirichlet([1.0] * len(names))) * step).tolist()
            cells = [f"{cell / 100:g}" for cell in cells] if kind == "shares" else cells
        rows.append({file.item: name, **dict(zip(names, cells, strict=True))})
    # Ten votes for two classes and ten points are the same table: only a name could tell them apart.
    votes = [Reading(Counter({(r[file.item], None, n): r[n] for r in rows for n in names if r[n]}), ("votes|counts",))]
    readings = votes if kind == "points" else []
    return replace(file, layout=kind, rows=rows, panel=names, readings=readings, right=None)


def toxic_kinds(random: Random) -> File:
    """How many of a panel chose each of several kinds; most rows are zeros, which is a vote of each for none."""
    file = counts(random)
    names = ["toxic", "obscene", "threat", "insult"]
    people = int(random.integers(3, 6))
    rows: Table = []
    for k, name in enumerate(file.items):
        cells = random.integers(0, people + 1, 4) if k % 3 == 0 else np.zeros(4, np.int64)
        rows.append({file.item: name, **dict(zip(names, cells.tolist(), strict=True))})

    def zeros_are_votes(reading: Any) -> str:
        """Who chose which classes together is not known: each item and class is a question with `people` answers."""
        votes = reading.votes
        if votes.classes != ("no", "yes"):
            return f"the classes are {votes.classes}"
        ours = dict(zip(map(str, votes.items.tolist()), votes.counts.tolist(), strict=True))
        expected = {f"{row[file.item]} / {name}": [people - row[name], row[name]] for row in rows for name in names}
        return "" if ours == expected else "the counts of a panel are not kept"

    right = {"format": "counts", "item": file.item, "panel": people, "classes": names}
    return replace(file, layout="toxic kinds", rows=rows, panel=names, readings=[], right=right, check=zeros_are_votes)


def sliders(random: Random) -> File:
    """Places on a line from 0 to 100, or from 0 to 1: almost each is a number of its own."""
    file = long(random)
    places = random.random(len(file.rows)) * one_of(random, [1.0, 100.0])
    name = one_of(random, (*RATING, "slider", "answer"))
    values = [round(place, int(random.integers(2, 5))) for place in places.tolist()]
    rows = []
    for row, value in zip(file.rows, values, strict=True):
        rows.append({name if column == file.label else column: cell for column, cell in row.items()})
        rows[-1][name] = str(value)
    by_vote = sorted(zip(values, ((str(v.item)) for v in file.votes), strict=True))

    def bins_in_order(reading: Any) -> str:
        votes = reading.votes
        per_class = np.bincount(votes.label, minlength=len(votes.classes)).tolist()
        if len(votes) != len(values) or len(votes.classes) > 20 or not votes.ordered:
            return f"{len(votes)} of {len(values)} votes, {len(votes.classes)} classes, ordered {votes.ordered}"
        # The lowest values are those of the first bin, and so on: which item has how many of each follows.
        expected: Counter[tuple[str, int]] = Counter()
        place = 0
        for k, number in enumerate(per_class):
            expected.update((item, k) for _, item in by_vote[place : place + number])
            place += number
        ours = Counter(zip(map(str, votes.items[votes.item].tolist()), votes.label.tolist(), strict=True))
        return "" if ours == expected or len(set(values)) < len(values) else "the bins are not in order"

    right: dict[str, Any] = {**(file.right or {}), "label": name, "bins": "5"}
    return replace(
        file, layout="sliders", rows=rows, label=name, readings=[], right=right, check=bins_in_order, scale=["", ""]
    )


LAYOUTS: dict[str, Callable[[Random], File]] = {
    "long": long,
    "long again": long,
    "long ratings": partial(long, scale=SCALES[4]),
    "wide": wide,
    "wide ratings": partial(wide, scale=SCALES[4]),
    "counts": counts,
    "lists": lists,
    "parallel": parallel,
    "crosstab": crosstab,
    "flags": flags,
    "numbers": numbers_of_one,
    "toxic kinds": toxic_kinds,
    "sliders": sliders,
}

# --- twists: each gives a file that looks the same and means something else, or None where it does not fit ------------


def with_column(rows: Table, name: str, cells: list[Any], *, first: bool = False) -> Table:
    added = [{name: cell} for cell in cells]
    return [{**new, **row} if first else {**row, **new} for row, new in zip(rows, added, strict=True)]


def id_and_task(file: File, random: Random) -> File | None:
    """Beside the item stands a column of a few groups that is named as an item could be."""
    name = one_of(random, ("task", "question", "file", "sample", "image", "example", "document_id", "question_id"))
    if file.index or name in file.rows[0] or file.item in ("item", "item_id", "task"):
        return None
    groups = one_of(random, GROUPS)
    of = {item: groups[k % len(groups)] for k, item in enumerate(file.items)}
    return replace(file, rows=with_column(file.rows, name, [of[row[file.item]] for row in file.rows]))


def row_number(file: File, random: Random) -> File | None:
    """Rows are numbered under a name that an item could have."""
    name = one_of(random, ("id", "ID", "uid", "index", "Unnamed: 0", "", "row_id", "annotation_id"))
    if file.index or name in file.rows[0] or (file.item in ("id", "ID", "uid") and name in ("id", "ID", "uid")):
        return None
    start = int(random.integers(0, 2))
    if name in ("id", "ID", "uid") and file.layout in ("wide", "counts", "lists", "parallel", *NO_VOTES):
        # One row per item: the number of the row is a name of the item as good as any.
        number = {row[file.item]: str(k + start) for k, row in enumerate(file.rows)}
        again = [
            Reading(Counter({(number[i], w, c): n for (i, w, c), n in r.said.items() if i in number}), r.told)
            for r in file.readings
        ]
        file = replace(file, readings=[*file.readings, *again])
    cells = [k + start for k in range(len(file.rows))]
    return replace(file, rows=with_column(file.rows, name, cells, first=True))


def repeated_text(file: File, random: Random) -> File | None:
    """The item is a text that stands in each of its rows; an id names the row."""
    if file.layout != "long" or len(file.readings) != 1:
        return None
    of = {item: f"{sentence(random)} {k}" for k, item in enumerate(file.items)}
    name, text = (
        one_of(random, ("id", "uid", "item_id", "ID")),
        one_of(random, ("text", "comment", "tweet", "sentence")),
    )
    if name in file.rows[0] and name != file.item:
        return None
    rows = [
        {name: k + 1, text: of[row[file.item]], **{c: v for c, v in row.items() if c != file.item}}
        for k, row in enumerate(file.rows)
    ]
    by_text = Counter({(of[i], w, label): n for (i, w, label), n in file.readings[0].said.items()})
    literal = Counter(
        (str(k + 1), v.who if file.who else None, number_or_text(v.label)) for k, v in enumerate(file.votes)
    )
    right = {**(file.right or {}), "item": text}
    readings = [Reading(by_text), Reading(literal, (rf"\b{text}\b",))]
    votes = [v._replace(item=of[v.item]) for v in file.votes]
    return replace(file, rows=rows, item=text, votes=votes, readings=readings, right=right)


def odd_names(file: File, random: Random) -> File | None:
    """One row names its item a little differently."""
    if file.index or len(file.readings) > 1:
        return None
    item = file.votes[int(random.integers(len(file.votes)))].item
    others = {
        "space": item + " ",
        "before": " " + item,
        "case": item.upper() if item.upper() != item else item.swapcase(),
        "zero width": item + "\u200b",
        "mark": "\ufeff" + item,
        "no-break": item + "\u00a0",
        "3.0": f"{item}.0" if item.isdecimal() else item,
        "007": f"00{item}" if item.isdecimal() else item,
        "1E5": f"{int(item):E}" if item.isdecimal() else item,
    }
    if random.random() < 0.15:
        renamed = {item: unicodedata.normalize("NFC", f"caf\u00e9 {item}")}
        odd, name = unicodedata.normalize("NFD", renamed[item]), renamed[item]
    else:
        renamed, odd, name = {}, str(one_of(random, list(others.values()))), item
    places = [k for k, row in enumerate(file.rows) if row[file.item] == item]
    if odd == name or len(places) < 2 or file.layout in NO_VOTES:
        return None
    at = one_of(random, places)
    rows = [{**row, file.item: renamed.get(row[file.item], row[file.item])} for row in file.rows]
    rows[at] = {**rows[at], file.item: odd}
    votes = [v._replace(item=renamed.get(v.item, v.item)) for v in file.votes]
    (reading,) = file.readings
    merged: Said = Counter({(renamed.get(i, i), w, c): n for (i, w, c), n in reading.said.items()})
    literal = Counter(merged)
    if file.layout == "flags":
        chosen = [name_ for name_ in file.panel if rows[at][name_]] or ["none"]
        gone = [(name, rows[at][file.who or ""], label) for label in chosen]
    else:
        gone = [(name, votes[at].who if file.who else None, number_or_text(votes[at].label))]
    literal.subtract(gone)
    literal.update((odd, who, label) for _, who, label in gone)
    literal = +literal
    readings = [Reading(merged, reading.told), Reading(literal, (*reading.told, f"item.*{re.escape(name)}"))]
    return replace(file, rows=rows, votes=votes, readings=readings)


def missing_codes(file: File, random: Random) -> File | None:
    """A rating from 1 to 5 with a code for no answer in a few cells."""
    if file.scale != SCALES[4] or file.layout not in ("long", "wide") or len(file.readings) > 1:
        return None
    code = one_of(random, ["99", "999", "-1", "-99", "none", "NA", "9", "88"])
    places = random.choice(len(file.votes), max(2, len(file.votes) // 12), replace=False).tolist()
    places = [k for k in places if sum(v.item == file.votes[k].item for v in file.votes) > 2]
    anonymous = file.layout == "long" and file.who is None
    if not places:
        return None
    gone = [file.votes[k] for k in places]
    if any(n == sum(v.item == i for v in file.votes) for i, n in Counter(v.item for v in gone).items()):
        return None
    rows = [dict(row) for row in file.rows]
    if file.layout == "long":
        for k in places:
            rows[k][file.label or ""] = code
    else:
        by_item = {row[file.item]: row for row in rows}
        for vote in gone:
            by_item[vote.item][vote.who] = code
    kept = said_in([vote for k, vote in enumerate(file.votes) if k not in places], anonymous=anonymous)
    literal = kept + said_in([vote._replace(label=code) for vote in gone], anonymous=anonymous)
    asked = file.label in RATING and file.label != "label"
    readings = (
        [Reading(kept)] if asked else [Reading(kept), Reading(literal, (re.escape(f"'{code}'") + rf"|\b{code}\b",))]
    )
    right = {**(file.right or {}), "missing": [code]}
    return replace(file, rows=rows, readings=readings, right=right)


def summary_row(file: File, random: Random) -> File | None:
    """A last row of means or totals, as a spreadsheet has it."""
    if file.index or file.categories is not None or file.layout in ("lists", "parallel", "flags", *NO_VOTES):
        return None
    word = one_of(random, ["Mean", "Total", "TOTAL", "Average", "Sum", "mean", "Grand Total"])
    last: dict[str, Any] = dict.fromkeys(file.rows[0], "")
    last[file.item] = word
    numbers = [v.label for v in file.votes]
    if file.layout == "counts":
        last |= {name: sum(row[name] for row in file.rows) for name in file.panel}
    elif not all(number.isdecimal() for number in numbers):
        if file.layout == "wide":
            last |= {name: sum(row[name] is not None for row in file.rows) for name in file.panel}
        else:
            last[file.label or ""] = str(len(file.rows))
    elif file.layout == "wide":
        for name in file.panel:
            cells = [int(row[name]) for row in file.rows if str(row[name]).isdecimal()]
            last[name] = f"{np.mean(cells):.2f}"
    else:
        last[file.label or ""] = f"{np.mean([int(number) for number in numbers]):.2f}"
    return replace(file, rows=[*file.rows, last], right=None)


def margins(file: File, random: Random) -> File | None:
    """As `pd.crosstab(..., margins=True)` gives it: a row and a column of all."""
    if not file.index:
        return None
    name = one_of(random, ["All", "Total", "All"])
    rows = [{**row, name: sum(row[each] for each in file.panel)} for row in file.rows]
    last = {each: sum(row[each] for row in rows) for each in (*file.panel, name)}
    return replace(file, rows=[*rows, {file.item: name, **last}], right=None)


def second_header(file: File, random: Random) -> File | None:
    """The header stands again among the rows, or below itself in other words."""
    if file.index or file.categories is not None:
        return None
    style = one_of(random, ["again", "again", "capitals", "words"])
    columns = list(file.rows[0])
    if style == "words":
        said = {
            file.item: "Unique identifier",
            file.who or "": "Who answered",
            file.label or "": "Which label fits best?",
        }
        again = {name: said.get(name) or f"Question {k}: how is it?" for k, name in enumerate(columns)}
        return replace(file, rows=[again, *file.rows], right=None)
    if any(name == "" for name in columns):
        return None
    again = {name: name if style == "again" else name.upper() for name in columns}
    at = int(random.integers(1, len(file.rows)))
    return replace(file, rows=[*file.rows[:at], again, *file.rows[at:]], right=None)


def aggregate(file: File, random: Random) -> File | None:
    """A column made of the others: majority, consensus, mean, total."""
    if file.index or file.layout not in ("wide", "counts", "lists", "parallel"):
        return None
    of = {item: Counter(v.label for v in file.votes if v.item == item) for item in file.items}
    words = ("majority", "consensus", "final", "mode", "majority_vote", "final_label", "agreed", "gold", "hard_label")
    numeric = all(v.label.isdecimal() for v in file.votes)
    kind = one_of(random, ["most", "number", "agreement", *["mean"] * numeric])
    cells: dict[str, Any]
    if kind == "most":
        name, cells = one_of(random, words), {item: said.most_common(1)[0][0] for item, said in of.items()}
    elif kind == "number":
        name = one_of(random, ("n", "total", "count", "n_votes", "num_annotators", "sum", "N"))
        cells = {item: said.total() for item, said in of.items()}
    elif kind == "mean":
        name = one_of(random, ("mean", "average", "std", "avg_score", "median"))
        value: Any = {"std": np.std, "median": np.median}.get(name, np.mean)
        cells = {i: f"{value([int(c) for c in said.elements()]):.2f}" for i, said in of.items()}
    else:
        name = one_of(random, ("agreement", "confidence", "entropy", "agreement_rate"))
        cells = {i: f"{said.most_common(1)[0][1] / said.total():.2f}" for i, said in of.items()}
    if name in file.rows[0]:
        return None
    return replace(file, rows=with_column(file.rows, name, [cells.get(row[file.item], "") for row in file.rows]))


def repeated_judgements(file: File, random: Random) -> File | None:
    """People changed their mind: rows out of order, and a time says which came last."""
    if file.layout != "long" or file.who is None or len(file.readings) > 1:
        return None
    time = one_of(random, ("timestamp", "submitted_at", "created_at"))
    again = random.choice(len(file.votes), 4, replace=False).tolist()
    style = int(random.integers(3))

    def moment(minute: int) -> Any:
        seconds = 1_700_000_000 + 60 * minute
        return str(np.datetime64(seconds, "s")) if style == 0 else seconds * (1_000 if style == 1 else 1)

    rows = [{**row, time: moment(500 + k)} for k, row in enumerate(file.rows)]
    before = list(file.votes)
    for k in again:
        other = one_of(random, [label for label in file.scale if label != file.votes[k].label])
        before[k] = file.votes[k]._replace(label=other)
        changed = {**file.rows[k], file.label or "": other, time: moment(k)}
        rows.insert(int(random.integers(len(rows) + 1)), changed)
    chosen = one_of(random, ["refuse", "last", "first"])
    given = {} if chosen == "refuse" else {"duplicates": chosen, "force": True}
    right = {**(file.right or {}), "time": time, "duplicates": "last", "force": True, **given}
    ends = [Reading(said_in(before))] if chosen == "first" else file.readings
    readings, asked = ([], ends) if chosen == "refuse" else (ends, [])
    return replace(file, rows=rows, readings=readings, asked=asked, given=given, right=right)


def free_text(file: File, random: Random) -> File | None:
    """A column of remarks is named as a label could be."""
    name = one_of(random, ("answer", "annotation", "judgement", "choice", "comment", "explanation", "response"))
    if file.layout not in ("long", "flags") or name in file.rows[0]:
        return None
    cells = [sentence(random) if random.random() < 0.95 else "" for _ in file.rows]
    return replace(file, rows=with_column(file.rows, name, cells, first=bool(random.random() < 0.5)))


def other_question(file: File, random: Random) -> File | None:
    """A second question of the same row is named as a label could be."""
    name = one_of(random, ("score", "confidence", "rating", "category", "certainty", "grade", "class"))
    if file.layout != "long" or name in file.rows[0] or len(file.readings) > 1:
        return None
    cells = random.integers(1, 6, len(file.rows)).astype(str).tolist()
    literal = Counter(
        (v.item, v.who if file.who else None, number_or_text(c)) for v, c in zip(file.votes, cells, strict=True)
    )
    readings = [*file.readings, Reading(literal, (rf"not used.*'{re.escape(file.label or '')}'",))]
    return replace(file, rows=with_column(file.rows, name, cells), readings=readings)


def milliseconds(file: File, random: Random) -> File | None:
    """How long a judgement took, in thousandths of a second."""
    name = one_of(random, ("rt", "duration", "response_time", "lead_time", "reaction_time", "elapsed", "time_spent"))
    if file.layout != "long" or name in file.rows[0] or file.check is not None:
        return None
    cells = (random.lognormal(1.6, 0.4, len(file.rows)) * 1_000).round().astype(int).tolist()

    def remarked(reading: Any) -> str:
        taken = reading.votes.seconds
        if taken is None or np.nanmedian(taken) < 100 or any("millisecond" in note for note in reading.notes):
            return ""
        return f"milliseconds are read as {np.nanmedian(taken):,.0f} s a judgement"

    return replace(file, rows=with_column(file.rows, name, cells), check=remarked)


def categories(file: File, random: Random) -> File | None:
    """A frame whose labels are ordered categories, in an order that is not the alphabet's."""
    if file.layout != "long" or file.twists or file.frame or file.scale[0].isdecimal():
        return None
    order = list(file.scale)[::-1]
    ordered = bool(random.random() < 0.7)

    def order_kept(reading: Any) -> str:
        votes = reading.votes
        if ordered and (tuple(votes.classes) != tuple(order) or not votes.ordered):
            return f"the order {order} became {votes.classes}, ordered {votes.ordered}"
        return "" if votes.ordered == ordered else "nominal categories became a scale"

    return replace(file, frame=True, check=order_kept, categories=(order, ordered))


def beside(file: File, random: Random) -> File | None:
    """Columns that describe items or annotators, as most files have some."""
    if file.index:
        return None
    rows = file.rows
    about = {
        item: (sentence(random), one_of(random, ["train", "dev"]), one_of(random, file.scale)) for item in file.items
    }
    one_row = file.layout in ("wide", "counts", "lists", "parallel", *NO_VOTES)
    chosen = random.choice(
        ["text", "split", "gold_label", "age", "language"], int(random.integers(1, 3)), replace=False
    )
    for name in chosen.tolist():
        if name in rows[0]:
            return None
        if name == "age":
            if one_row or file.who is None:
                continue
            age = {who: int(random.integers(18, 80)) for who in sorted({v.who for v in file.votes})}
            rows = with_column(rows, name, [age.get(row[file.who], "") for row in rows], first=True)
        elif name == "language":
            rows = with_column(rows, name, ["en"] * len(rows))
        else:
            at = ("text", "split", "gold_label").index(name)
            cells = [about.get(row[file.item], ("", "", ""))[at] for row in rows]
            rows = with_column(rows, name, cells, first=bool(random.random() < 0.5))
    return replace(file, rows=rows)


NO_VOTES = ("ranks", "percentages", "points", "shares", "toxic kinds", "sliders")
TWISTS: dict[str, Callable[[File, Random], File | None]] = {
    "id and task": id_and_task,
    "row number": row_number,
    "repeated text": repeated_text,
    "item names": odd_names,
    "missing codes": missing_codes,
    "columns beside": beside,
    "other question": other_question,
    "free text": free_text,
    "aggregate column": aggregate,
    "milliseconds": milliseconds,
    "categories": categories,
    "repeated judgements": repeated_judgements,
    "summary row": summary_row,
    "margins": margins,
    "second header": second_header,
}
"""In the order in which they are applied: those that count on one row per judgement first."""

EVERYWHERE = ("columns beside", "second header", "row number", "id and task", "summary row", "aggregate column")
"""Twists that fit most layouts, and would crowd out the others."""

# --- files ------------------------------------------------------------------------------------------------------------


def generated(seed: int) -> File:
    """The file of a seed: a layout with none, one or two twists, its columns in any order."""
    random = np.random.default_rng(seed)
    file = LAYOUTS[list(LAYOUTS)[seed % len(LAYOUTS)]](random)
    wanted = one_of(random, [0, 1, 1, 1, 2, 2, 2])
    order = list(TWISTS)
    weights = np.array([1 if name in EVERYWHERE else 4 for name in order])
    tried = random.choice(len(order), len(order), replace=False, p=weights / weights.sum()).tolist()
    chosen = sorted(
        next((c for c in combinations(tried, wanted) if _fits(file, [order[k] for k in sorted(c)], seed)), ())
    )
    for name in (order[k] for k in chosen):
        twisted = TWISTS[name](file, np.random.default_rng([seed, order.index(name)]))
        assert twisted is not None
        file = replace(twisted, twists=(*file.twists, name))
    if not file.index and random.random() < 0.4:
        columns = random.permutation(np.array(list(file.rows[0]), dtype=object)).tolist()
        file.rows = [{name: row[name] for name in columns} for row in file.rows]
    return file


def _fits(file: File, names: list[str], seed: int) -> bool:
    for name in names:
        twisted = TWISTS[name](file, np.random.default_rng([seed, list(TWISTS).index(name)]))
        if twisted is None:
            return False
        file = replace(twisted, twists=(*file.twists, name))
    return True


def source(file: File, seed: int, folder: Path) -> Any:
    """The table as a file by writers that are not ours, or as a frame."""
    random = np.random.default_rng([seed, 99])
    if file.index:
        frame = pd.DataFrame(file.rows).set_index(file.item)
        frame.columns.name = "label"
        return frame
    if file.frame:
        frame = pd.DataFrame(file.rows)
        if file.categories is not None:
            order, ordered = file.categories
            frame[file.label] = pd.Categorical(frame[file.label], categories=order, ordered=ordered)
        return frame
    cells = [cell for row in file.rows for cell in row.values()]
    flat = not any(isinstance(cell, list) for cell in cells)
    ending = one_of(
        random, ["csv"] * 5 + ["tsv", "jsonl", "parquet", "pandas", "dicts", "xlsx"] if flat else ["jsonl", "parquet"]
    )
    names = list(file.rows[0])
    if file.layout == "wide" and random.random() < 0.2:
        # As pandas writes whole numbers beside empty cells.
        whole = {
            name: [f"{row[name]}.0" if str(row[name]).isdecimal() else row[name] for row in file.rows]
            for name in file.panel
        }
        file = replace(
            file, rows=[{**row, **{name: whole[name][k] for name in whole}} for k, row in enumerate(file.rows)]
        )
    if "" in names and ending not in ("csv", "tsv"):
        ending = "csv"
    if ending in ("csv", "tsv"):
        text = io.StringIO(newline="")
        mark = "\t" if ending == "tsv" else one_of(random, [",", ",", ",", ";", "|"])
        end = one_of(random, ["\n", "\n", "\r\n"])
        writer = csv.writer(
            text, delimiter=mark, lineterminator=end, quoting=one_of(random, [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
        )
        writer.writerows([names, *(["" if row[name] is None else row[name] for name in names] for row in file.rows)])
        path = folder / f"v.{ending}"
        path.write_bytes(one_of(random, [b"", b"", b"\xef\xbb\xbf"]) + text.getvalue().encode())
        return path
    rows = [{name: _typed(row[name]) for name in names} for row in file.rows] if random.random() < 0.7 else file.rows
    if ending == "dicts":
        return rows
    if ending == "jsonl":
        path = folder / "v.jsonl"
        path.write_text(
            "".join(json.dumps(row, ensure_ascii=bool(random.random() < 0.5)) + "\n" for row in rows), "utf-8"
        )
        return path
    frame = pd.DataFrame(rows)
    if ending == "pandas":
        return frame
    path = folder / f"v.{ending}"
    for name in names:
        empty = [cell is None or (isinstance(cell, float) and np.isnan(cell)) for cell in frame[name]]
        if len({type(cell) for cell, gone in zip(frame[name], empty, strict=True) if not gone}) > 1:
            frame[name] = [None if gone else str(cell) for cell, gone in zip(frame[name], empty, strict=True)]
    if ending == "xlsx":
        frame.to_excel(path, index=False, engine="xlsxwriter")
    else:
        frame.to_parquet(path)
    return path


def _typed(cell: Any) -> Any:
    plain = isinstance(cell, str) and re.fullmatch(r"-?(0|[1-9]\d{0,15})", cell)
    return int(cell) if plain else None if cell == "" else cell


# --- verdicts ---------------------------------------------------------------------------------------------------------


class Verdict(NamedTuple):
    """How one file ended: right, refused, noted, WRONG or CRASH; where refused, what its advice led to."""

    outcome: str
    what: str = ""
    advice: str = ""
    offers: list[dict[str, Any]] = []  # noqa: RUF012 - a tuple's default is never changed


def judge(seed: int, folder: Path) -> tuple[File, Verdict]:
    """Read the file of a seed, and say how that ended; the advice of a refusal is obeyed, at most twice."""
    file = generated(seed)
    table = source(file, seed, folder)
    verdict = judged(file, table, file.given)
    if verdict.outcome == "refused":
        verdict = verdict._replace(advice=obeyed(file, table, verdict, file.given))
    return file, verdict


def judged(file: File, table: Any, given: dict[str, Any], *, asked: bool = False) -> Verdict:
    """One reading. `asked`: by options, so that what the user asked for is right where it is the truth."""
    try:
        reading = understand(table, Options(**{name: value for name, value in given.items() if name in FIELDS}))
    except InputError as error:
        return Verdict("refused", str(error), offers=advice_in(error))
    except Exception:
        return Verdict("CRASH", traceback.format_exc(limit=-3))
    if asked and file.check is not None and not file.readings and not file.asked:
        problem = file.check(reading)
        return Verdict("WRONG" if problem else "right", problem)
    said = said_by(reading.votes)
    readings = file.readings or (file.asked if asked else [])
    for option in readings:
        told = option.told
        expected = option.said
        if said != expected and reading.votes.annotators is None and any(who for _, who, _ in expected):
            anonymous: Said = Counter()
            for (item, _, label), number in expected.items():
                anonymous[item, None, label] += number
            expected, told = anonymous, (*told, f"anonymous|{re.escape(file.who or '')}")
        if said == expected:
            missing = [each for each in told if not any(re.search(each, note) for note in reading.notes)]
            if missing:
                return Verdict("WRONG", f"read by the letter, and no note of {missing} in {reading.notes}")
            problem = "" if file.check is None else file.check(reading)
            return Verdict("WRONG", problem) if problem else Verdict("noted" if told else "right", str(reading.notes))
    if not readings:
        return Verdict("WRONG", f"read as {reading.format} {reading.columns} {reading.votes!r}; {reading.notes}")
    gone, more = readings[0].said - said, said - readings[0].said
    few = f"not read {gone.most_common(3)} ({gone.total()}), read instead {more.most_common(3)} ({more.total()})"
    return Verdict("WRONG", f"read as {reading.format} {reading.columns}: {few}; {reading.notes}")


def said_by(votes: Any) -> Said:
    who: list[str | None] = [None] * len(votes)
    if votes.annotators is not None:
        who = [str(name) for name in votes.annotators.names[votes.annotators.code].tolist()]
    items = [str(name) for name in votes.items[votes.item].tolist()]
    return Counter(zip(items, who, [number_or_text(votes.classes[k]) for k in votes.label], strict=True))


def advice_in(error: InputError) -> list[dict[str, Any]]:
    """What a refusal offers: its readings, or else each option that its sentence gives a value, and all of them."""
    if error.readings:
        return list(error.readings.values())
    given = re.findall(r"(?<![\w.?&-])([a-z][a-z_]*)=(\[[^\]]*\]|'[^']*'|True|False|\d+)", error.sentence)
    offers = [{name: literal_eval(value)} for name, value in given if name in FIELDS]
    return [*offers, {name: value for offer in offers for name, value in offer.items()}] if len(offers) > 1 else offers


def obeyed(file: File, table: Any, refusal: Verdict, given: dict[str, Any], *, steps: int = 2) -> str:
    """What the advice of a refusal leads to: 'right', 'CRASH ...', 'none' where it has none, 'no way'."""
    if not refusal.offers:
        return "none"
    trials = [{**given, **offer} for offer in refusal.offers]
    verdicts = [judged(file, table, trial, asked=True) for trial in trials]
    crash = next((verdict for verdict in verdicts if verdict.outcome == "CRASH"), None)
    if crash is not None:
        return f"CRASH after advice: {crash.what}"
    if any(verdict.outcome in ("right", "noted") for verdict in verdicts):
        return "right"
    ends = ["no way"]
    if steps > 1:
        again = [
            (t, v) for t, v in zip(trials, verdicts, strict=True) if v.outcome == "refused" and v.what != refusal.what
        ]
        ends += [obeyed(file, table, verdict, trial, steps=steps - 1) for trial, verdict in again]
    return next((end for end in ends if end == "right" or end.startswith("CRASH")), "no way")


def told_right(file: File, table: Any) -> str:
    """Whether a user who knows what the file means and says so gets the truth, or at least no other votes."""
    if file.right is None:
        return ""
    verdict = judged(file, table, {**file.given, **file.right}, asked=True)
    return verdict.what if verdict.outcome in ("WRONG", "CRASH") else ""
