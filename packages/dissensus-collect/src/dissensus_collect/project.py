"""A project that collects votes: collect.toml in a folder of its own, read and checked key by key."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError, choices
from dissensus.responses import NO, RESPONSES, UNSURE, YES
from dissensus.toml_file import TomlFile
from dissensus_collect.language import NAMES, language

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

FILE: Final = "collect.toml"
LAYOUTS: Final = ("rows", "one-at-a-time", "select-all", "single-choice", "rating", "points")
CLASS_ORDERS: Final = ("fixed", "rotated", "shuffled-per-annotator", "shuffled-per-item")
ITEM_ORDERS: Final = ("random", "fixed")
RENDERINGS: Final = ("pixelated", "smooth")
PLATFORMS: Final = ("plain", "prolific", "mturk")
ENDINGS: Final = ("complete", "no-consent", "screened-out", "technical", "ineligible", "full")
"""How a session can end; each has a code of its own. `full` is also given where a project is paused or closed."""
REASONS: Final = ("off", "optional", "required")
"""Whether annotators are asked for a reason in words with every item."""
LARGEST_SCALE: Final = 21
"""The most steps of a scale: more buttons than that are no longer told apart."""

USUAL: Final = ("Yes", "No", "Unsure", "not at all", "completely", "Why did you answer like this?")
"""Words of a project that are ours where its file has none of its own."""

KEYS: Final[dict[str, tuple[str, ...]]] = {
    "": (
        "name", "language", "question", "layout", "k", "items_per_annotator", "seed", "back", "shortcuts", "all_no_key",
        "items", "classes", "scale", "reason", "item_questions", "order", "gold", "practice", "eligibility", "quotas",
        "comprehension", "questions", "lease", "screen", "speed", "texts", "translations", "recruitment",
        "prescreening", "adaptive", "cost",
    ),
    "items": ("images", "texts", "item", "text", "rendering"),
    "classes": ("names", "unsure", "words"),
    "scale": ("least", "most", "step", "low", "high"),
    "reason": ("ask", "question"),
    "order": ("classes", "items"),
    "gold": ("items", "misses_allowed"),
    "practice": ("items", "attempts"),
    "lease": ("seconds", "heartbeat", "patience"),
    "screen": ("least_width",),
    "speed": ("least_seconds_per_class",),
    "texts": ("title", "consent", "instructions", "contact", "finish"),
    "recruitment": ("kind", "study", "jwks", "return_url", "codes"),
    "adaptive": ("on", "max_k", "budget"),
    "cost": ("pay_per_hour", "currency", "seconds_per_item", "platform_fee"),
}  # fmt: skip
"""The keys of a project file, by table."""
ENTRY_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "item_questions": ("name", "question", "layout", "classes", "unsure", "scale"),
    "eligibility": ("name", "question", "options", "eligible"),
    "comprehension": ("question", "options", "right"),
    "questions": ("name", "question", "options", "required"),
}
"""The keys of tables that may occur several times, as [[name]]."""
MOST_QUESTIONS: Final = 20
"""The most questions on one page; more would be a questionnaire of its own."""
LONGEST_ANSWER: Final = 1000
"""The most characters of a free-text answer."""


@dataclass(frozen=True, kw_only=True)
class Gold:
    """An item whose answer is known.

    Attributes:
        item: the item's name.
        required: for each class, the codes of the responses that are right.
    """

    item: str
    required: tuple[frozenset[int], ...]


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """What is said after a practice item.

    Attributes:
        item: the item's name.
        required: for each class, the codes of the responses that are right.
        text: said in addition, whatever was answered.
    """

    item: str
    required: tuple[frozenset[int], ...]
    text: str


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The steps of the layout `rating`.

    Attributes:
        least: the lowest step.
        most: the highest step.
        step: from one step to the next.
        low: what the lowest step means.
        high: what the highest step means.
    """

    least: int
    most: int
    step: int
    low: str
    high: str

    @property
    def values(self) -> tuple[int, ...]:
        """All steps, rising."""
        return tuple(range(self.least, self.most + 1, self.step))


@dataclass(frozen=True, kw_only=True)
class ItemQuestion:
    """A question that is asked about every item.

    Attributes:
        name: in exports; empty for the first question of a project.
        question: as it is asked.
        layout: one of `LAYOUTS`.
        classes: names, in class order.
        unsure: whether "unsure" is a possible answer.
        scale: of the layout `rating`.
    """

    name: str
    question: str
    layout: str
    classes: tuple[str, ...]
    unsure: bool
    scale: Scale

    @property
    def is_choice(self) -> bool:
        """Whether an answer is one choice: of a class, or of a step of a scale for the only class."""
        return self.layout == "single-choice" or (self.layout == "rating" and len(self.classes) == 1)


@dataclass(frozen=True, kw_only=True)
class Eligibility:
    """A question before consent that decides who may take part.

    Attributes:
        name: the annotator's attribute that the answer becomes.
        question: as it is asked.
        options: to choose from.
        eligible: the options that let somebody in.
    """

    name: str
    question: str
    options: tuple[str, ...]
    eligible: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Comprehension:
    """A question about the task, asked before the first item; one option is right."""

    question: str
    options: tuple[str, ...]
    right: str


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about the annotator or the project, asked after the last item.

    Attributes:
        name: the annotator's attribute that the answer becomes.
        question: as it is asked.
        options: to choose from; empty for free text.
        required: whether it must be answered.
    """

    name: str
    question: str
    options: tuple[str, ...]
    required: bool

    def takes(self, answer: str) -> bool:
        """Whether a text is a legal answer."""
        return answer in self.options if self.options else 0 < len(answer) <= LONGEST_ANSWER


@dataclass(frozen=True, kw_only=True)
class Texts:
    """What annotators read; a blank line begins a paragraph."""

    title: str
    consent: str
    instructions: str
    contact: str
    finish: str


@dataclass(frozen=True, kw_only=True)
class Recruitment:
    """Where annotators come from.

    Attributes:
        kind: the platform, one of `PLATFORMS`.
        study: the platform's id of the study, which a signed link must name.
        jwks: a file with the platform's public keys; if given, links must be signed.
        return_url: where the finish page leads; "{code}" in it stands for the code.
        codes: the code for each ending.
    """

    kind: str
    study: str | None
    jwks: Path | None
    return_url: str | None
    codes: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Adaptive:
    """Votes beyond k, for the items that gain most.

    Attributes:
        on: whether any are bought.
        max_k: the most votes that an item may get.
        budget: the most votes beyond k, over all items.
    """

    on: bool
    max_k: int
    budget: int


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a vote costs: pay in currency per hour, time in seconds, the platform's fee as a share of the pay."""

    pay_per_hour: float
    currency: str
    seconds_per_item: float
    platform_fee: float


@dataclass(frozen=True, kw_only=True)
class Project:
    """What is asked, about which items, and how many votes are wanted from whom.

    Attributes:
        name: of the project.
        question: what annotators are asked about every class.
        layout: one of `LAYOUTS`.
        classes: names, in class order.
        unsure: whether "unsure" is a possible answer.
        scale: of the layout `rating`.
        words: what is written on the button of each response.
        further: more questions about every item, after the first one above.
        reason: whether a reason in words is asked for with every item, one of `REASONS`.
        reason_question: how it is asked for.
        k: votes that every item gets.
        items_per_annotator: the most items that one annotator is asked about, not including gold items.
        class_order: one of `CLASS_ORDERS`.
        item_order: one of `ITEM_ORDERS`.
        gold: items shown to everybody that do not count towards k.
        misses_allowed: how many gold items may be missed before an annotator no longer counts.
        practice: names of items that are shown for practice and never voted on.
        practice_attempts: how many an annotator has before being screened out.
        feedback: what is said after practice items.
        eligibility: questions before consent that decide who may take part.
        quotas: by attribute and group, the most people; the attribute is the name of an eligibility question or of a
            parameter of the link.
        prescreening: by name, whom the recruitment platform was told to invite; kept on record only.
        comprehension: questions about the task, before the first item.
        questions: to the annotator, after the last item.
        lease_seconds: how long without a heartbeat before an item is given to somebody else.
        heartbeat_seconds: time between two signs of life.
        patience_seconds: how long an annotator waits for an item before the session ends early.
        least_width: the narrowest window in CSS pixels; 0 for any.
        least_seconds_per_class: time per class below which one friendly reminder is shown, once; 0 for none.
        texts: what annotators read.
        language: of the interface and of the texts, one of `NAMES`.
        translations: by code of a language, the texts of the project in it; those of `texts` are below their own names,
            all others below the text as it is in the project's language.
        recruitment: where they come from.
        adaptive: votes beyond k.
        cost: what a vote costs.
        back: whether an annotator may go back one item.
        shortcuts: whether questions can be answered with single keys.
        all_no_key: whether one key answers No for all classes that are left.
        rendering: how a small image is enlarged.
        images: the folder of images; None for texts.
        table: the table of texts; None for images.
        item_column: the table's column of item names, if given.
        text_column: the table's column of texts, if given.
        seed: of random orders.
        folder: the project's folder.
        toml: the text of the project file.
    """

    name: str
    question: str
    layout: str
    classes: tuple[str, ...]
    unsure: bool
    scale: Scale
    words: Mapping[str, str]
    further: tuple[ItemQuestion, ...]
    reason: str
    reason_question: str
    k: int
    items_per_annotator: int
    class_order: str
    item_order: str
    gold: tuple[Gold, ...]
    misses_allowed: int
    practice: tuple[str, ...]
    practice_attempts: int
    feedback: tuple[Feedback, ...]
    eligibility: tuple[Eligibility, ...]
    quotas: Mapping[str, Mapping[str, int]]
    prescreening: Mapping[str, str]
    comprehension: tuple[Comprehension, ...]
    questions: tuple[Question, ...]
    lease_seconds: float
    heartbeat_seconds: float
    patience_seconds: float
    least_width: int
    least_seconds_per_class: float
    texts: Texts
    language: str
    translations: Mapping[str, Mapping[str, str]]
    recruitment: Recruitment
    adaptive: Adaptive
    cost: Cost
    back: bool
    shortcuts: bool
    all_no_key: bool
    rendering: str
    images: Path | None
    table: Path | None
    item_column: str | None
    text_column: str | None
    seed: int
    folder: Path
    toml: str

    @property
    def values(self) -> tuple[str, ...]:
        """The responses that may be given to a class, in the order of the buttons."""
        return ("yes", "no", "unsure") if self.unsure else ("yes", "no")

    @cached_property
    def asked(self) -> tuple[ItemQuestion, ...]:
        """All questions about an item, in their order. Their classes are numbered through, from 0."""
        first = ItemQuestion(
            name="",
            question=self.question,
            layout=self.layout,
            classes=self.classes,
            unsure=self.unsure,
            scale=self.scale,
        )
        return (first, *self.further)

    @cached_property
    def all_classes(self) -> tuple[str, ...]:
        """The classes of all questions about an item, numbered through."""
        return tuple(name for each in self.asked for name in each.classes)

    def about(self, question: int) -> Project:
        """The project as if only one of its questions about an item, by its place, were asked."""
        asked = self.asked[question]
        return replace(
            self,
            question=asked.question,
            layout=asked.layout,
            classes=asked.classes,
            unsure=asked.unsure,
            scale=asked.scale,
            further=(),
        )

    @cached_property
    def form(self) -> str:
        """What may be answered, as JSON: stored answers are unreadable under another form."""
        parts = [
            [each.name, each.layout, each.classes, each.unsure, each.scale.values if each.layout == "rating" else None]
            for each in self.asked
        ]
        return json.dumps(parts, ensure_ascii=False)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that annotators can choose from, the project's own first."""
        return (self.language, *self.translations)

    def told(self, code: str) -> Mapping[str, str]:
        """What the texts of the project are in a language, by their names or by themselves; empty in its own.

        What the interface says of its own accord (`USUAL`) is known in every language, and need not be in the file.
        """
        if code == self.language:
            return {}
        own, other = language(self.language), language(code)
        return {**{own.told(each): other.told(each) for each in USUAL}, **self.translations.get(code, {})}

    @property
    def version(self) -> str:
        """The version of the instrument, which changes with every character of the project file."""
        return hashlib.sha256(self.toml.encode()).hexdigest()[:16]


def read_project(folder: str | Path) -> Project:
    """The project in a folder."""
    path = Path(folder) / FILE
    if not path.is_file():
        raise InputError(f"{path}: there is no project here; make one with 'dissensus collect init {folder}'")
    return _ProjectFile(path, kind="project").project()


def init_project(
    folder: str | Path,
    *,
    images: str | Path | None = None,
    texts: str | Path | None = None,
    classes: Sequence[str] | None = None,
    name: str | None = None,
    question: str | None = None,
    layout: str = "rows",
    k: int = 6,
    items_per_annotator: int = 70,
    recruitment: str = "plain",
) -> Path:
    """Writes the file of a new project, with every setting in it, and returns its path.

    Args:
        folder: of the project; made if it does not exist.
        images: a folder of images; the project's own folder if neither images nor texts are given.
        texts: a table of texts.
        classes: names; by default those of the sub-folders of the images or of the labels in the table, or else the
            ten digits.
        name: of the project; by default the folder's name.
        question: asked about every class.
        layout: one of `LAYOUTS`.
        k: votes per item.
        items_per_annotator: the most items that one annotator is asked about.
        recruitment: one of `PLATFORMS`.
    """
    from dissensus_collect.items import classes_of

    folder = Path(folder)
    path = folder / FILE
    if path.exists():
        raise InputError(f"{path}: there is a project already; edit it, or choose another folder")
    if images is not None and texts is not None:
        raise InputError("collect init: images and texts were both given; a project shows one or the other")
    source = Path(images if images is not None else texts if texts is not None else folder)
    if texts is None and not source.is_dir():
        raise InputError(f"{source}: not a folder; give a folder of images with --images, or a table with --texts")
    named = list(classes) if classes else classes_of(source, is_table=texts is not None)
    numbers = all(each.isdigit() for each in named)
    folder_is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    what = "text" if texts is not None else "image"
    place = source.resolve()
    written = os.path.relpath(place, folder.resolve()) if place.is_relative_to(folder.resolve()) else str(place)
    # A layout that does not exist is refused below, with its line.
    asks, how = _WORDED.get(layout, _WORDED["rows"])
    codes = {ending: secrets.token_hex(4).upper() for ending in ENDINGS}
    text = _TEMPLATE.format(
        name=_toml(name or folder.resolve().name),
        question=_toml(question or asks.format(what=what)),
        layout=_toml(layout),
        k=k,
        items_per_annotator=items_per_annotator,
        seed=secrets.randbelow(2**31),
        source=f"{'texts' if texts is not None else 'images'} = {_toml(written)}",
        names="[" + ", ".join(_toml(each) for each in named) + "]",
        class_order=_toml("rotated" if numbers else "shuffled-per-annotator"),
        what=what,
        how=how.format(what=what),
        kind=_toml(recruitment),
        codes="{ " + ", ".join(f"{ending} = {_toml(code)}" for ending, code in codes.items()) + " }",
    )
    path.write_text(text, encoding="utf-8")
    try:
        read_project(folder)
    except InputError:
        path.unlink()
        if folder_is_new:
            folder.rmdir()
        raise
    return path


_WORDED: Final = {
    "rows": (
        "Could this {what} show the following?",
        "For every class, say whether the {what} could show it: yes, no, or unsure.",
    ),
    "one-at-a-time": (
        "Could this {what} show the following?",
        "For one class after the other, say whether the {what} could show it: yes, no, or unsure.",
    ),
    "select-all": (
        "Which of these could this {what} show?",
        "Tick every class that the {what} could show, or none of them.",
    ),
    "single-choice": ("Which of these fits this {what} best?", "Choose the one class that fits the {what} best."),
    "rating": (
        "How well does each of these fit this {what}?",
        "For every class, rate how well it fits the {what}, from 1 (not at all) to 5 (completely).",
    ),
    "points": (
        "How well does each of these fit this {what}?",
        "Share out 100 points among the classes: the better a class fits the {what}, the more it gets.",
    ),
}
"""By layout, the question and the instructions of a new project."""

_TEMPLATE: Final = """\
name = {name}
question = {question}
layout = {layout}            # rows, one-at-a-time, select-all, single-choice, rating, points
k = {k}                      # votes that every item gets
items_per_annotator = {items_per_annotator}
seed = {seed}
language = "en"              # of the pages: en, de, fr, es, ar; [translations.de] adds another (see docs/collect.md)
back = true                  # annotators may go back one item, until the next is saved
shortcuts = true
all_no_key = false           # one key answers "no" to all classes that are left, which makes it like select-all

[items]
{source}
rendering = "pixelated"      # or "smooth"

[classes]
names = {names}
unsure = true
words = {{ yes = "Yes", no = "No", unsure = "Unsure" }}

[order]
classes = {class_order}      # fixed, rotated, shuffled-per-annotator, shuffled-per-item
items = "random"             # or "fixed"

[gold]                       # shown to everybody; those who miss more than allowed are paid but do not count
items = []                   # such as {{ item = "three.png", yes = ["3"] }}; no other class may be yes
misses_allowed = 0

[practice]
items = []                   # names of items that are only for practice; with feedback: {{ item = "a.png", yes = ["3"],
                             # feedback = "Look at the upper half." }}
attempts = 2

[scale]                      # of the layout rating; more yes than no lies above the middle
least = 1
most = 5
step = 1
low = "not at all"
high = "completely"

[reason]
ask = "off"                  # or "optional", "required": a reason in words with every item
question = "Why did you answer like this?"

[lease]
seconds = 600                # without a sign of life, before an item goes to somebody else
heartbeat = 30
patience = 60                # seconds that an annotator waits for an item before the session ends early

[screen]
least_width = 0              # of the window, in CSS pixels; 0 for any

[speed]
least_seconds_per_class = 0  # whoever is quicker is reminded once to take their time, and not stopped; 0 for never

[texts]
title = {name}
consent = '''
You are invited to take part in a research project on how people see {what}s. Taking part is voluntary, and you may
stop at any time. Your answers are stored without your name.
'''
instructions = '''
You will see one {what} at a time. {how} There is no right or
wrong answer; say what you see.
'''
contact = ""
finish = "Thank you. Your answers are saved."

[recruitment]
kind = {kind}                # plain, prolific, mturk
codes = {codes}

[adaptive]
on = false
max_k = 12
budget = 0                   # votes beyond k, over all items

[cost]
pay_per_hour = 12.0
currency = "GBP"
seconds_per_item = 12.5
platform_fee = 0.33

# Asked before the first item; write it as often as you like. A second failed attempt ends with the code screened-out:
# [[comprehension]]
# question = "May you close the page and come back later?"
# options = ["Yes, my answers are saved", "No, I would have to start again"]
# right = "Yes, my answers are saved"

# A further question about every item, with a layout of its own; write it as often as you like:
# [[item_questions]]
# name = "clear"
# question = "How clear is it?"
# layout = "rating"
# classes = ["clear"]        # one class: every step of the scale becomes a class of the votes
# scale = {{ least = 0, most = 10, step = 1, low = "not at all", high = "perfectly" }}

# Asked before consent; whoever gives another answer ends with the code ineligible, and nothing is stored:
# [[eligibility]]
# name = "age_group"
# question = "How old are you?"
# options = ["Under 18", "18 to 39", "40 or older"]
# eligible = ["18 to 39", "40 or older"]

# The most people of each group, by an eligibility question or a parameter of the link:
# [quotas]
# age_group = {{ "18 to 39" = 20, "40 or older" = 20 }}

# Whom the recruitment platform was told to invite, for the record:
# [prescreening]
# first_language = "English"
# approval_rate = "at least 95 %"

# Asked after the last item, before the code; the answers become attributes of the annotator:
# [[questions]]
# name = "feedback"
# question = "Was anything unclear?"
# options = ["No", "Yes"]    # leave this out for free text
# required = false
"""


def _wrong_classes(names: Any, *, least: int) -> str:
    """What is wrong with a list of class names; empty if nothing is."""
    if not isinstance(names, list) or len(names) < least:
        return f"must be a list of at least {'two classes' if least == 2 else 'one class'}"
    for name in names:
        if not isinstance(name, str) or not name.strip() or len(name) > 200:
            return f"has the name {name!r}; give 1 to 200 characters"
        if names.count(name) > 1:
            return f"has '{name}' twice; name each class once"
    return ""


def _toml(text: str) -> str:
    """A basic string of TOML, which has all the escapes of JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _texts_in(given: Any) -> Iterator[str]:
    """Every text in a parsed file."""
    if isinstance(given, str):
        yield given.strip()
    elif isinstance(given, dict | list):
        for each in given.values() if isinstance(given, dict) else given:
            yield from _texts_in(each)


class _ProjectFile(TomlFile):
    """Checks a parsed project against its text, so that every refusal names the line."""

    def project(self) -> Project:
        self.tables(KEYS)
        layout = self.one_of("", "layout", LAYOUTS)
        classes = self.class_names(least=1 if layout == "rating" else 2)
        k = self.whole("", "k", 6, least=1)
        unsure = self.truth("classes", "unsure", True)
        images, table = self.source()
        practice = self.listed("practice", "items")
        for each in practice:
            if not isinstance(each, str | dict):
                raise self.refuse("practice", "items", f"has {each!r}; write every name in quotes")
        own = self.one_of("", "language", tuple(NAMES))
        return Project(
            name=self.words("", "name", self.path.resolve().parent.name),
            question=self.words("", "question", "Could this show the following?"),
            layout=layout,
            classes=classes,
            unsure=unsure,
            scale=self.scale(self.table("scale"), lambda what: self.refuse("", "scale", what)),
            words=self.word_of_value(),
            further=self.item_questions(classes),
            reason=self.one_of("reason", "ask", REASONS),
            reason_question=self.words("reason", "question", language(own).say("Why did you answer like this?")),
            k=k,
            items_per_annotator=self.whole("", "items_per_annotator", 70, least=1),
            class_order=self.one_of("order", "classes", CLASS_ORDERS),
            item_order=self.one_of("order", "items", ITEM_ORDERS),
            gold=tuple(self.gold(each, classes, unsure=unsure) for each in self.listed("gold", "items")),
            misses_allowed=self.whole("gold", "misses_allowed", 0),
            practice=tuple(
                each["item"] if isinstance(each, dict) and isinstance(each.get("item"), str) else str(each)
                for each in practice
            ),
            practice_attempts=self.whole("practice", "attempts", 2, least=1),
            feedback=tuple(self.feedback(each, classes, unsure=unsure) for each in practice if isinstance(each, dict)),
            eligibility=self.eligibility(),
            quotas=self.quotas(),
            prescreening=self.prescreening(),
            comprehension=self.comprehension(),
            questions=self.questions(),
            lease_seconds=self.number("lease", "seconds", 600.0, above=0),
            heartbeat_seconds=self.number("lease", "heartbeat", 30.0, above=0),
            patience_seconds=self.number("lease", "patience", 60.0),
            least_width=self.whole("screen", "least_width", 0),
            least_seconds_per_class=self.number("speed", "least_seconds_per_class", 0.0),
            language=own,
            translations=self.translations(own),
            texts=Texts(
                title=self.words("texts", "title", self.words("", "name", self.path.resolve().parent.name)),
                consent=self.words("texts", "consent", ""),
                instructions=self.words("texts", "instructions", ""),
                contact=self.words("texts", "contact", ""),
                finish=self.words("texts", "finish", "Thank you. Your answers are saved."),
            ),
            recruitment=self.recruitment(),
            adaptive=self.adaptive(k),
            cost=Cost(
                pay_per_hour=self.number("cost", "pay_per_hour", 12.0),
                currency=self.words("cost", "currency", "GBP"),
                seconds_per_item=self.number("cost", "seconds_per_item", 12.5, above=0),
                platform_fee=self.number("cost", "platform_fee", 0.0),
            ),
            back=self.truth("", "back", True),
            shortcuts=self.truth("", "shortcuts", True),
            all_no_key=self.truth("", "all_no_key", False),
            rendering=self.one_of("items", "rendering", RENDERINGS),
            images=images,
            table=table,
            item_column=self.words("items", "item", "") or None,
            text_column=self.words("items", "text", "") or None,
            seed=self.whole("", "seed", 0),
            folder=self.path.parent,
            toml=self.text,
        )

    def source(self) -> tuple[Path | None, Path | None]:
        images, texts = self.words("items", "images", ""), self.words("items", "texts", "")
        if bool(images) == bool(texts):
            raise self.refuse(
                "items", "images", "or texts must be given, but not both: a project shows one or the other"
            )
        place = (self.path.parent / (images or texts)).resolve()
        if images and not place.is_dir():
            raise self.refuse("items", "images", f"is '{images}', where there is no folder")
        if texts and not place.is_file():
            raise self.refuse("items", "texts", f"is '{texts}', where there is no file")
        return (place, None) if images else (None, place)

    def translations(self, own: str) -> dict[str, dict[str, str]]:
        """The tables that are written as [translations.de], for texts that are in the file."""
        given = self.table("translations")
        texts = set(KEYS["texts"]) | set(
            _texts_in({key: inside for key, inside in self.given.items() if inside is not given})
        )
        short = sorted(each for each in texts if 0 < len(each) <= 60)
        for code, inside in given.items():
            if code not in NAMES or code == own or not isinstance(inside, dict):
                others = ", ".join(each for each in NAMES if each != own)
                raise self.refuse("", "translations", f"has '{code}'; write [translations.CODE] with one of {others}")
            for text, said in inside.items():
                if text not in texts:
                    raise self.refuse(
                        "",
                        "translations",
                        f"translates '{text}' into {code}, which is not a text of this project{choices(text, short)}",
                    )
                if not isinstance(said, str) or not said.strip():
                    raise self.refuse("", "translations", f"writes {said!r} for '{text}' in {code}; give a text")
        return {str(code): dict(inside) for code, inside in given.items()}

    def class_names(self, *, least: int) -> tuple[str, ...]:
        names = self.names("classes", "names")
        wrong = _wrong_classes(names, least=least)
        if wrong:
            raise self.refuse("classes", "names", wrong)
        return tuple(names)

    def item_questions(self, classes: tuple[str, ...]) -> tuple[ItemQuestion, ...]:
        found: dict[str, ItemQuestion] = {}
        for place, given in enumerate(self.entries("item_questions")):
            name = self.entry_name("item_questions", place, given)
            if name in found:
                raise self.refuse_entry("item_questions", place, f"has the name '{name}' again; name each once")
            layout, unsure = given.get("layout", "single-choice"), given.get("unsure", True)
            if layout not in LAYOUTS:
                raise self.refuse_entry(
                    "item_questions", place, f"has the layout {layout!r}, which is not there{choices(layout, LAYOUTS)}"
                )
            if not isinstance(unsure, bool):
                raise self.refuse_entry("item_questions", place, f"has unsure = {unsure!r}; it must be true or false")
            names = given.get("classes", list(classes))
            wrong = _wrong_classes(names, least=1 if layout == "rating" else 2)
            if wrong:
                raise self.refuse_entry("item_questions", place, f"'classes' {wrong}")

            def refuse(what: str, place: int = place) -> InputError:
                return self.refuse_entry("item_questions", place, f"'scale' {what}")

            written = given.get("scale", {})
            if not isinstance(written, dict):
                raise refuse("must be written as { least = 0, most = 10 }")
            found[name] = ItemQuestion(
                name=name,
                question=given["question"],
                layout=layout,
                classes=tuple(names),
                unsure=unsure,
                scale=self.scale(written, refuse),
            )
        return tuple(found.values())

    def scale(self, given: Mapping[str, Any], refuse: Callable[[str], InputError]) -> Scale:
        for key in given:
            if key not in KEYS["scale"]:
                raise refuse(f"has '{key}', which is not one of its keys{choices(key, KEYS['scale'])}")
        numbers = {"least": 1, "most": 5, "step": 1} | {key: given[key] for key in given if key not in ("low", "high")}
        for key, value in numbers.items():
            if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 10_000:
                raise refuse(f"has {key} = {value!r}; give a whole number")
        least, most, step = numbers["least"], numbers["most"], numbers["step"]
        if step < 1 or most <= least or (most - least) % step:
            raise refuse(f"goes from {least} to {most} by {step}; the steps must lead from the least to the most")
        if (most - least) // step >= LARGEST_SCALE:
            raise refuse(f"has {(most - least) // step + 1} steps; give {LARGEST_SCALE} at most")
        own = language(self.one_of("", "language", tuple(NAMES)))
        ends = {"low": own.say("not at all"), "high": own.say("completely")} | {
            key: given[key] for key in ("low", "high") if key in given
        }
        for key, end in ends.items():
            if not isinstance(end, str):
                raise refuse(f"has {key} = {end!r}; write it in quotes")
        return Scale(least=least, most=most, step=step, **ends)

    def word_of_value(self) -> dict[str, str]:
        given = self.table("classes").get("words", {})
        if not isinstance(given, dict):
            raise self.refuse("classes", "words", 'must be written as { yes = "Yes", no = "No", unsure = "Unsure" }')
        for key, word in given.items():
            self.known(key, RESPONSES, "classes", beside="words")
            if not isinstance(word, str) or not word.strip():
                raise self.refuse("classes", "words", f"writes {word!r} for {key}; give a word")
        own = language(self.one_of("", "language", tuple(NAMES)))
        words = {"yes": own.say("Yes"), "no": own.say("No"), "unsure": own.say("Unsure"), **given}
        if len(set(words.values())) < len(words):
            raise self.refuse("classes", "words", "writes two values alike; give each its own word")
        return words

    def gold(self, given: Any, classes: tuple[str, ...], *, unsure: bool) -> Gold:
        required = self.required("gold", given, classes, unsure=unsure)
        return Gold(item=given["item"], required=required)

    def feedback(self, given: Any, classes: tuple[str, ...], *, unsure: bool) -> Feedback:
        text = given.get("feedback", "")
        if not isinstance(text, str):
            raise self.refuse("practice", "items", f"has feedback = {text!r}; write it in quotes")
        entry = {key: value for key, value in given.items() if key != "feedback"}
        required = self.required("practice", entry, classes, unsure=unsure)
        return Feedback(item=given["item"], required=required, text=text.strip())

    def required(self, table: str, given: Any, classes: tuple[str, ...], *, unsure: bool) -> tuple[frozenset[int], ...]:
        """For each class of the first question, the responses that an entry of gold or practice items calls right."""
        if not isinstance(given, dict) or not isinstance(given.get("item"), str):
            raise self.refuse(table, "items", f'has {given!r}; write an entry as {{ item = "a.png", yes = ["3"] }}')
        for key in given:
            self.known(key, ("item", "yes", "no", "unsure"), table, beside="items")
        required = [frozenset({NO, UNSURE} if unsure else {NO})] * len(classes)
        seen: set[str] = set()
        for code in (NO, YES, UNSURE):
            value = RESPONSES[code]
            named = given.get(value, [])
            if not isinstance(named, list):
                raise self.refuse(
                    table, "items", f"has {value} = {named!r} for '{given['item']}'; give a list of classes"
                )
            for name in named:
                if name not in classes:
                    raise self.no_such(table, "items", name, classes)
                if name in seen:
                    raise self.refuse(table, "items", f"requires two answers to '{name}' of '{given['item']}'")
                seen.add(name)
                required[classes.index(name)] = frozenset({code})
        return tuple(required)

    def comprehension(self) -> tuple[Comprehension, ...]:
        found = []
        for place, given in enumerate(self.entries("comprehension")):
            options = self.options(place, given, "comprehension")
            if not options:
                raise self.refuse_entry("comprehension", place, "has no options; give the answers to choose from")
            right = given.get("right")
            if not isinstance(right, str) or right.strip() not in options:
                raise self.refuse_entry(
                    "comprehension", place, f"has right = {right!r}, which is not one of its options"
                )
            found.append(Comprehension(question=given["question"], options=options, right=right.strip()))
        return tuple(found)

    def eligibility(self) -> tuple[Eligibility, ...]:
        found: dict[str, Eligibility] = {}
        asked_later = {entry.get("name") for entry in self.entries("questions")}
        for place, given in enumerate(self.entries("eligibility")):
            name = self.entry_name("eligibility", place, given)
            if name in found or name in asked_later:
                raise self.refuse_entry("eligibility", place, f"has the name '{name}' again; name each question once")
            options, eligible = self.options(place, given, "eligibility"), given.get("eligible", [])
            if not options:
                raise self.refuse_entry("eligibility", place, "has no options; give the answers to choose from")
            if not isinstance(eligible, list) or not eligible or not set(eligible) <= set(options):
                raise self.refuse_entry(
                    "eligibility", place, f"has eligible = {eligible!r}; give the options that let somebody in"
                )
            found[name] = Eligibility(name=name, question=given["question"], options=options, eligible=tuple(eligible))
        return tuple(found.values())

    def quotas(self) -> dict[str, dict[str, int]]:
        """By attribute and group, the most people."""
        options = {entry.get("name"): entry.get("options", []) for entry in self.entries("eligibility")}
        for name, groups in self.table("quotas").items():
            if not isinstance(groups, dict) or not groups:
                raise self.refuse("quotas", name, 'must be written as { "Under 30" = 20, "60 or older" = 20 }')
            for group, people in groups.items():
                if not isinstance(people, int) or isinstance(people, bool) or people < 0:
                    raise self.refuse("quotas", name, f"has {people!r} people for '{group}'; give a whole number")
                if name in options and group not in options[name]:
                    raise self.no_such("quotas", name, group, options[name])
        return self.table("quotas")

    def prescreening(self) -> dict[str, str]:
        given = self.table("prescreening")
        for name, value in given.items():
            if not isinstance(value, str | int | float) or isinstance(value, bool):
                raise self.refuse("prescreening", name, f"is {value!r}; write down what the platform was told")
        return {name: str(value) for name, value in given.items()}

    def entry_name(self, table: str, place: int, given: Mapping[str, Any]) -> str:
        name = given.get("name")
        if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name):
            raise self.refuse_entry(table, place, f"has the name {name!r}; write it like 'age_group'")
        return name

    def questions(self) -> tuple[Question, ...]:
        found: dict[str, Question] = {}
        for place, given in enumerate(self.entries("questions")):
            name, required = self.entry_name("questions", place, given), given.get("required", False)
            if name in found:
                raise self.refuse_entry("questions", place, f"has the name '{name}' again; name each question once")
            if not isinstance(required, bool):
                raise self.refuse_entry("questions", place, f"has required = {required!r}; it must be true or false")
            options = self.options(place, given, "questions")
            found[name] = Question(name=name, question=given["question"], options=options, required=required)
        return tuple(found.values())

    def entries(self, name: str) -> list[dict[str, Any]]:
        """The tables that are written as [[name]], each with a question."""
        given = self.of("", name, [])
        if not isinstance(given, list) or not all(isinstance(entry, dict) for entry in given):
            raise self.refuse("", name, f"must be written as [[{name}]] with its keys below")
        if len(given) > MOST_QUESTIONS:
            raise self.refuse("", name, f"is written {len(given)} times; ask {MOST_QUESTIONS} questions at most")
        for place, entry in enumerate(given):
            for key in entry:
                if key not in ENTRY_KEYS[name]:
                    known = choices(key, ENTRY_KEYS[name])
                    raise self.refuse_entry(name, place, f"has '{key}', which is not one of its keys{known}")
            asked = entry.get("question")
            if not isinstance(asked, str) or not asked.strip():
                raise self.refuse_entry(name, place, "has no question; write question in quotes")
        return given

    def options(self, place: int, given: Mapping[str, Any], name: str) -> tuple[str, ...]:
        options = given.get("options", [])
        if not isinstance(options, list) or not all(isinstance(each, str) and each.strip() for each in options):
            raise self.refuse_entry(name, place, f"has options = {options!r}; give a list of texts")
        written = tuple(each.strip() for each in options)
        if len(written) == 1 or len(set(written)) < len(written):
            raise self.refuse_entry(name, place, f"has options = {options!r}; give two or more that differ")
        return written

    def refuse_entry(self, name: str, place: int, what: str) -> InputError:
        """The refusal of one of the tables that are written as [[name]], by its place from 0."""
        headers = [
            number
            for number, line in enumerate(self.text.splitlines(), start=1)
            if re.match(rf"\s*\[\[\s*{name}\s*\]\]", line)
        ]
        line = headers[place] if place < len(headers) else self.line("", name)
        return InputError(f"{self.path}, line {line}: [[{name}]] {what}")

    def recruitment(self) -> Recruitment:
        codes = self.table("recruitment").get("codes", {})
        if not isinstance(codes, dict) or not all(isinstance(code, str) and code for code in codes.values()):
            raise self.refuse("recruitment", "codes", 'must be written as { complete = "C1", technical = "T1" }')
        for ending in codes:
            self.known(ending, ENDINGS, "recruitment", beside="codes")
        # Endings without a code get one each: a code that means two things tells the platform nothing.
        full = {ending: ending.upper() for ending in ENDINGS} | codes
        if len(set(full.values())) < len(full):
            raise self.refuse("recruitment", "codes", "gives two endings the same code; give each its own")
        jwks = self.words("recruitment", "jwks", "")
        return Recruitment(
            kind=self.one_of("recruitment", "kind", PLATFORMS),
            study=self.words("recruitment", "study", "") or None,
            jwks=self.path.parent / jwks if jwks else None,
            return_url=self.words("recruitment", "return_url", "") or None,
            codes=full,
        )

    def adaptive(self, k: int) -> Adaptive:
        adaptive = Adaptive(
            on=self.truth("adaptive", "on", False),
            max_k=self.whole("adaptive", "max_k", 2 * k, least=1),
            budget=self.whole("adaptive", "budget", 0),
        )
        if adaptive.on and adaptive.max_k < k:
            raise self.refuse("adaptive", "max_k", f"is {adaptive.max_k}, less than k = {k}; give k or more")
        return adaptive

    def of(self, table: str, key: str, default: Any) -> Any:
        return (self.table(table) if table else self.given).get(key, default)

    def words(self, table: str, key: str, default: str) -> str:
        given = self.of(table, key, default)
        if not isinstance(given, str):
            raise self.refuse(table, key, f"is {given!r}; write it in quotes")
        return given

    def one_of(self, table: str, key: str, names: Sequence[str]) -> str:
        given = self.of(table, key, names[0])
        if given not in names:
            raise self.no_such(table, key, given, names)
        return str(given)

    def truth(self, table: str, key: str, default: bool) -> bool:
        given = self.of(table, key, default)
        if not isinstance(given, bool):
            raise self.refuse(table, key, f"is {given!r}; it must be true or false")
        return given

    def whole(self, table: str, key: str, default: int, *, least: int = 0) -> int:
        given = self.of(table, key, default)
        if not isinstance(given, int) or isinstance(given, bool) or not least <= given < 2**31:
            raise self.refuse(table, key, f"is {given!r}; it must be a whole number from {least}")
        return given

    def number(self, table: str, key: str, default: float, *, above: float | None = None) -> float:
        given = self.of(table, key, default)
        if not isinstance(given, int | float) or isinstance(given, bool) or not 0 <= given < 1e12 or given == above:
            least = "0 or more" if above is None else f"more than {above:g}"
            raise self.refuse(table, key, f"is {given!r}; it must be a number, {least}")
        return float(given)

    def listed(self, table: str, key: str) -> list[Any]:
        given = self.of(table, key, [])
        if not isinstance(given, list):
            raise self.refuse(table, key, f"is {given!r}; it must be a list")
        return given

    def names(self, table: str, key: str) -> list[str]:
        names = self.listed(table, key)
        for name in names:
            if not isinstance(name, str):
                raise self.refuse(table, key, f"has {name!r}; write every name in quotes")
        return names
