"""A project that collects votes: collect.toml in a folder of its own, read strictly."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import tomllib
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

from msgspec import Meta, field
from msgspec.structs import asdict, force_setattr, replace

from dissensus.errors import InputError, choices
from dissensus.responses import NO, RESPONSES, UNSURE, YES
from dissensus.toml_file import TableError, TomlFile, TomlTable, known_keys, no_such
from dissensus_collect.project.language import NAMES, language

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FILE: Final = "collect.toml"
Layout = Literal["rows", "one-at-a-time", "select-all", "single-choice", "rating", "points"]
LAYOUTS: Final = get_args(Layout)
ENDINGS: Final = ("complete", "no-consent", "screened-out", "technical", "ineligible", "full")
"""How a session can end; each has a code of its own. `full` is also given where a project is paused or closed."""
LARGEST_SCALE: Final = 21
"""The most steps of a scale: more buttons than that are no longer told apart."""
USUAL: Final = ("Yes", "No", "Unsure", "not at all", "completely", "Why did you answer like this?")
"""Words of a project that are ours where its file has none of its own."""
MOST_QUESTIONS: Final = 20
"""The most questions on one page; more would be a questionnaire of its own."""
LONGEST_ANSWER: Final = 1000
"""The most characters of a free-text answer."""

Whole = Annotated[int, Meta(ge=0, lt=2**31)]
Count = Annotated[int, Meta(ge=1, lt=2**31)]
Step = Annotated[int, Meta(ge=-10_000, le=10_000)]
Number = Annotated[float, Meta(ge=0, lt=1e12)]
Above0 = Annotated[float, Meta(gt=0, lt=1e12)]
Filled = Annotated[str, Meta(pattern=r"\S")]
Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,39}(?![\s\S])", extra={"write": "a name such as 'age_group'"})]
"""Of a question, in exports."""


@dataclass(frozen=True, kw_only=True)
class Gold:
    """An item whose answer is known.

    Attributes:
        item: the item's name.
        required: for each class, the codes of the responses that are right.
        feedback: said after a practice item, whatever was answered.
    """

    item: str
    required: tuple[frozenset[int], ...]
    feedback: str = ""


class Items(TomlTable):
    """What is shown: images, or texts.

    Attributes:
        images: the folder of images.
        texts: the table of texts.
        item: the table's column of item names, where it cannot be told.
        text: the table's column of texts, where it cannot be told.
        rendering: how a small image is enlarged.
    """

    images: str = ""
    texts: str = ""
    item: str = ""
    text: str = ""
    rendering: Literal["pixelated", "smooth"] = "pixelated"

    def __post_init__(self) -> None:
        if bool(self.images) == bool(self.texts):
            raise TableError("images", "or texts must be given, but not both: a project shows one or the other")


class Classes(TomlTable):
    """What annotators say of an item.

    Attributes:
        names: in class order.
        unsure: whether "unsure" is a possible answer.
        words: what is written on the button of each response.
    """

    names: tuple[str, ...]
    unsure: bool = True
    words: Annotated[
        dict[str, Filled],
        Meta(
            extra={"write": 'words as { yes = "Yes", no = "No", unsure = "Unsure" }'},
            extra_json_schema={"propertyNames": {"enum": list(RESPONSES)}},
        ),
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known_keys("words", self.words, RESPONSES)


class Scale(TomlTable):
    """The steps of the layout `rating`; more yes than no lies above the middle.

    Attributes:
        least: the lowest step.
        most: the highest step.
        step: from one step to the next.
        low: what the lowest step means.
        high: what the highest step means.
    """

    least: Step = 1
    most: Step = 5
    step: Step = 1
    low: str = "not at all"
    high: str = "completely"

    def __post_init__(self) -> None:
        least, most, step = self.least, self.most, self.step
        if step < 1 or most <= least or (most - least) % step:
            raise TableError(
                "most", f"goes from {least} to {most} by {step}; the steps must lead from the least to the most"
            )
        if (most - least) // step >= LARGEST_SCALE:
            raise TableError("most", f"makes {(most - least) // step + 1} steps; give {LARGEST_SCALE} at most")

    @property
    def values(self) -> tuple[int, ...]:
        """All steps, rising."""
        return tuple(range(self.least, self.most + 1, self.step))


class Reason(TomlTable):
    """A reason in words.

    Attributes:
        ask: whether annotators are asked for one with every item.
        question: how it is asked for.
    """

    ask: Literal["off", "optional", "required"] = "off"
    question: str = "Why did you answer like this?"


class ItemQuestion(TomlTable):
    """A question that is asked about every item.

    Attributes:
        name: in exports; empty for the first question of a project.
        question: as it is asked.
        layout: how it is answered.
        classes: names, in class order; those of the project where none are given.
        unsure: whether "unsure" is a possible answer.
        scale: of the layout `rating`.
    """

    name: Name
    question: Filled
    layout: Layout = "single-choice"
    classes: Annotated[tuple[str, ...], Meta(min_length=1)] = ()
    unsure: bool = True
    scale: Annotated[Scale, Meta(extra={"write": "a table such as { least = 0, most = 10 }"})] = Scale()

    @property
    def is_choice(self) -> bool:
        """Whether an answer is one choice: of a class, or of a step of a scale for the only class."""
        return self.layout == "single-choice" or (self.layout == "rating" and len(self.classes) == 1)


class Order(TomlTable):
    """In which order classes and items are shown."""

    classes: Literal["fixed", "rotated", "shuffled-per-annotator", "shuffled-per-item"] = "fixed"
    items: Literal["random", "fixed"] = "random"


class GoldItem(TomlTable):
    """An item with its answer: { item = "three.png", yes = ["3"] }; no other class may be yes."""

    item: str
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()


class PracticeItem(GoldItem):
    """An item with its answer, and what is said afterwards."""

    feedback: str = ""


class GoldTable(TomlTable):
    """Items whose answers are known, shown to everybody; they do not count towards k.

    Attributes:
        items: such as { item = "three.png", yes = ["3"] }; no other class may be yes.
        misses_allowed: how many may be missed before an annotator, who is paid, no longer counts.
    """

    items: Annotated[
        tuple[GoldItem, ...], Meta(extra={"write": 'a list of entries such as { item = "a.png", yes = ["3"] }'})
    ] = ()
    misses_allowed: Whole = 0


class Practice(TomlTable):
    """Items that are shown for practice and never voted on.

    Attributes:
        items: their names; with feedback: { item = "a.png", yes = ["3"], feedback = "Look at the upper half." }.
        attempts: how many an annotator has before being screened out.
    """

    items: tuple[str | PracticeItem, ...] = ()
    attempts: Count = 2


class Options(TomlTable, kw_only=True):
    """What a question has to choose from."""

    question: Filled
    options: tuple[Filled, ...] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "options", tuple(each.strip() for each in self.options))
        if len(self.options) == 1 or len(set(self.options)) < len(self.options):
            raise TableError("options", f"is {list(self.options)!r}; give two or more that differ")
        if not self.options and not isinstance(self, Question):
            raise TableError("options", "is missing; give the answers to choose from")


class Eligibility(Options, kw_only=True):
    """A question before consent that decides who may take part.

    Attributes:
        name: the annotator's attribute that the answer becomes.
        question: as it is asked.
        options: to choose from.
        eligible: the options that let somebody in.
    """

    name: Name
    eligible: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.eligible or not set(self.eligible) <= set(self.options):
            raise TableError("eligible", f"is {list(self.eligible)!r}; give the options that let somebody in")


class Comprehension(Options, kw_only=True):
    """A question about the task, asked before the first item; one option is right."""

    right: str

    def __post_init__(self) -> None:
        super().__post_init__()
        force_setattr(self, "right", self.right.strip())
        if self.right not in self.options:
            raise TableError("right", f"is '{self.right}', which is not one of its options")


class Question(Options, kw_only=True):
    """A question about the annotator or the project, asked after the last item.

    Attributes:
        name: the annotator's attribute that the answer becomes.
        question: as it is asked.
        options: to choose from; empty for free text.
        required: whether it must be answered.
    """

    name: Name
    required: bool = False

    def takes(self, answer: str) -> bool:
        """Whether a text is a legal answer."""
        return answer in self.options if self.options else 0 < len(answer) <= LONGEST_ANSWER


class Lease(TomlTable):
    """How long an item waits for somebody.

    Attributes:
        seconds: without a sign of life, before an item goes to somebody else.
        heartbeat: seconds between two signs of life.
        patience: seconds that an annotator waits for an item before the session ends early.
    """

    seconds: Above0 = 600.0
    heartbeat: Above0 = 30.0
    patience: Number = 60.0


class Screen(TomlTable):
    """The window.

    Attributes:
        least_width: the narrowest, in CSS pixels; 0 for any.
    """

    least_width: Whole = 0


class Speed(TomlTable):
    """Haste.

    Attributes:
        least_seconds_per_class: whoever is quicker is reminded once to take their time, and not stopped; 0 for never.
    """

    least_seconds_per_class: Number = 0.0


class Texts(TomlTable):
    """What annotators read; a blank line begins a paragraph."""

    title: str = ""
    consent: str = ""
    instructions: str = ""
    contact: str = ""
    finish: str = "Thank you. Your answers are saved."


class Recruitment(TomlTable):
    """Where annotators come from.

    Attributes:
        kind: the platform.
        study: the platform's id of the study, which a signed link must name.
        jwks: a file with the platform's public keys; if given, links must be signed.
        return_url: where the finish page leads; "{code}" in it stands for the code.
        codes: the code for each ending.
    """

    kind: Literal["plain", "prolific", "mturk"] = "plain"
    study: str | None = None
    jwks: str | None = None
    return_url: str | None = None
    codes: Annotated[
        dict[str, Annotated[str, Meta(min_length=1)]],
        Meta(
            extra={"write": 'codes as { complete = "C1", technical = "T1" }'},
            extra_json_schema={"propertyNames": {"enum": list(ENDINGS)}},
        ),
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known_keys("codes", self.codes, ENDINGS)
        # Endings without a code get one each: a code that means two things tells the platform nothing.
        force_setattr(self, "codes", {ending: ending.upper() for ending in ENDINGS} | self.codes)
        if len(set(self.codes.values())) < len(self.codes):
            raise TableError("codes", "gives two endings the same code; give each its own")
        for key in ("study", "jwks", "return_url"):
            force_setattr(self, key, getattr(self, key) or None)


class Adaptive(TomlTable):
    """Votes beyond k, for the items that gain most.

    Attributes:
        on: whether any are bought.
        max_k: the most votes that an item may get; twice k where it is not given.
        budget: votes beyond k, over all items.
    """

    on: bool = False
    max_k: Count = 12
    budget: Whole = 0


class Cost(TomlTable):
    """What a vote costs: pay in currency per hour, time in seconds, the platform's fee as a share of the pay."""

    pay_per_hour: Number = 12.0
    currency: str = "GBP"
    seconds_per_item: Above0 = 12.5
    platform_fee: Number = 0.0


class ProjectFile(TomlTable, kw_only=True):
    """Items, classes and rules with which votes are collected on the web.

    Attributes:
        name: of the project.
        language: of the interface and of the texts.
        question: what annotators are asked about every class.
        layout: how it is answered.
        k: votes that every item gets.
        items_per_annotator: the most items that one annotator is asked about, not including gold items.
        seed: of random orders.
        back: whether an annotator may go back one item, until the next is saved.
        shortcuts: whether questions can be answered with single keys.
        all_no_key: whether one key answers No for all classes that are left, which makes it like select-all.
        item_questions: more questions about every item, after the first one.
        eligibility: questions before consent that decide who may take part.
        quotas: by attribute and group, the most people; the attribute is the name of an eligibility question or of a
            parameter of the link.
        comprehension: questions about the task, before the first item.
        questions: to the annotator, after the last item.
        translations: by code of a language, the texts of the project in it; those of `texts` are below their own names,
            all others below the text as it is in the project's language.
        prescreening: by name, whom the recruitment platform was told to invite; kept on record only.
    """

    name: str = ""
    language: Annotated[str, Meta(extra_json_schema={"enum": list(NAMES)})] = "en"
    question: str = "Could this show the following?"
    layout: Layout = "rows"
    k: Count = 6
    items_per_annotator: Count = 70
    seed: Whole = 0
    back: bool = True
    shortcuts: bool = True
    all_no_key: bool = False
    items: Annotated[Items, Meta(extra={"write": "a table [items] with images, a folder, or texts, a table"})]
    classes: Classes
    scale: Scale = Scale()
    reason: Reason = Reason()
    item_questions: tuple[ItemQuestion, ...] = ()
    order: Order = Order()
    gold: GoldTable = GoldTable()
    practice: Practice = Practice()
    eligibility: tuple[Eligibility, ...] = ()
    quotas: dict[
        str, Annotated[dict[str, Whole], Meta(min_length=1, extra={"write": 'groups as { "Under 30" = 20 }'})]
    ] = field(default_factory=dict)
    comprehension: tuple[Comprehension, ...] = ()
    questions: tuple[Question, ...] = ()
    lease: Lease = Lease()
    screen: Screen = Screen()
    speed: Speed = Speed()
    texts: Texts = Texts()
    translations: dict[str, dict[str, Filled]] = field(default_factory=dict)
    recruitment: Recruitment = Recruitment()
    prescreening: dict[str, str | int | float] = field(default_factory=dict)
    adaptive: Adaptive = Adaptive()
    cost: Cost = Cost()

    def __post_init__(self) -> None:
        if self.language not in NAMES:
            raise no_such("language", self.language, NAMES)
        _check_classes(("classes", "names"), self.classes.names, self.layout)
        for place, each in enumerate(self.item_questions):
            _check_classes(("item_questions", place, "classes"), each.classes or self.classes.names, each.layout)
        for table, listed in (("gold", self.gold.items), ("practice", self.practice.items)):
            for place, entry in enumerate(listed):
                if isinstance(entry, GoldItem):
                    _known_answer(entry, self.classes, (table, "items", place))
        for table in ("item_questions", "eligibility", "comprehension", "questions"):
            if len(getattr(self, table)) > MOST_QUESTIONS:
                raise TableError(
                    table, f"is written {len(getattr(self, table))} times; ask {MOST_QUESTIONS} questions at most"
                )
        _check_names("item_questions", [each.name for each in self.item_questions], set())
        asked = {each.name for each in self.questions}
        _check_names("eligibility", [each.name for each in self.eligibility], asked)
        _check_names("questions", [each.name for each in self.questions], set())
        options = {each.name: each.options for each in self.eligibility}
        for name, groups in self.quotas.items():
            for group in groups:
                if group not in options.get(name, (group,)):
                    raise no_such(("quotas", name), group, options[name])


class Project(ProjectFile, kw_only=True, dict=True):
    """What is asked, about which items, and how many votes are wanted from whom: the keys of the file, and its place.

    Attributes:
        folder: the project's folder.
        toml: the text of the project file.
    """

    folder: Path
    toml: str

    def __post_init__(self) -> None:
        """A file is checked when it is read; `about` asks less than a file could."""

    @property
    def images(self) -> Path | None:
        """The folder of images; None for texts."""
        return (self.folder / self.items.images).resolve() if self.items.images else None

    @property
    def table(self) -> Path | None:
        """The table of texts; None for images."""
        return (self.folder / self.items.texts).resolve() if self.items.texts else None

    @property
    def values(self) -> tuple[str, ...]:
        """The responses that may be given to a class, in the order of the buttons."""
        return ("yes", "no", "unsure") if self.classes.unsure else ("yes", "no")

    @cached_property
    def gold_items(self) -> tuple[Gold, ...]:
        """Items shown to everybody that do not count towards k."""
        return tuple(_known_answer(each, self.classes, ()) for each in self.gold.items)

    @property
    def practice_items(self) -> tuple[str, ...]:
        """Names of items that are shown for practice and never voted on."""
        return tuple(each if isinstance(each, str) else each.item for each in self.practice.items)

    @cached_property
    def feedback(self) -> tuple[Gold, ...]:
        """What is said after practice items."""
        listed = (each for each in self.practice.items if isinstance(each, PracticeItem))
        return tuple(_known_answer(each, self.classes, ()) for each in listed)

    @cached_property
    def asked(self) -> tuple[ItemQuestion, ...]:
        """All questions about an item, in their order. Their classes are numbered through, from 0."""
        first = ItemQuestion(
            name="",
            question=self.question,
            layout=self.layout,
            classes=self.classes.names,
            unsure=self.classes.unsure,
            scale=self.scale,
        )
        return (first, *self.item_questions)

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
            classes=replace(self.classes, names=asked.classes, unsure=asked.unsure),
            scale=asked.scale,
            item_questions=(),
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
    file = TomlFile(path, kind="project")
    read = file.read_as(ProjectFile)
    project = Project(**asdict(read) | _said(read, file.given, path), folder=path.parent, toml=file.text)
    if project.images is not None and not project.images.is_dir():
        raise file.refuse(("items", "images"), f"is '{read.items.images}', where there is no folder")
    if project.table is not None and not project.table.is_file():
        raise file.refuse(("items", "texts"), f"is '{read.items.texts}', where there is no file")
    if len(set(project.classes.words.values())) < len(project.classes.words):
        raise file.refuse(("classes", "words"), "writes two values alike; give each its own word")
    if read.adaptive.on and project.adaptive.max_k < read.k:
        raise file.refuse(("adaptive", "max_k"), f"is {project.adaptive.max_k}, less than k = {read.k}; give k or more")
    _check_translations(file, read)
    return project


def _said(read: ProjectFile, given: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """What a file leaves to its folder, its language or its other keys."""
    own, name = language(read.language), read.name if "name" in given else path.resolve().parent.name

    def filled(table: TomlTable, written: Mapping[str, Any], **usual: Any) -> Any:
        return replace(table, **{key: value for key, value in usual.items() if key not in written})

    def scale(table: Scale, written: Mapping[str, Any]) -> Any:
        return filled(table, written, low=own.say("not at all"), high=own.say("completely"))

    words = {"yes": own.say("Yes"), "no": own.say("No"), "unsure": own.say("Unsure"), **read.classes.words}
    jwks = read.recruitment.jwks
    return {
        "name": name,
        "classes": replace(read.classes, words=words),
        "scale": scale(read.scale, given.get("scale", {})),
        "reason": filled(read.reason, given.get("reason", {}), question=own.say("Why did you answer like this?")),
        "item_questions": tuple(
            replace(each, classes=each.classes or read.classes.names, scale=scale(each.scale, written.get("scale", {})))
            for each, written in zip(read.item_questions, given.get("item_questions", ()), strict=True)
        ),
        "texts": filled(read.texts, given.get("texts", {}), title=name),
        "recruitment": replace(read.recruitment, jwks=str(path.parent / jwks) if jwks else None),
        "adaptive": filled(read.adaptive, given.get("adaptive", {}), max_k=2 * read.k),
        "prescreening": {key: str(value) for key, value in read.prescreening.items()},
    }


def _check_translations(file: TomlFile, read: ProjectFile) -> None:
    """Refuses [translations.de] of texts that are not in the file."""
    others = [code for code in NAMES if code != read.language]
    texts = set(Texts.__struct_fields__) | set(
        _texts_in({key: inside for key, inside in file.given.items() if key != "translations"})
    )
    for code, inside in read.translations.items():
        if code not in others:
            raise file.refuse(
                "translations", f"has '{code}'; write [translations.CODE] with one of {', '.join(others)}"
            )
        for text in inside:
            if text not in texts:
                known = choices(text, sorted(each for each in texts if 0 < len(each) <= 60))
                raise file.refuse(
                    ("translations", code, text), f"is translated, and is not a text of this project{known}"
                )


def _texts_in(given: Any) -> Iterator[str]:
    """Every text in a parsed file."""
    if isinstance(given, str):
        yield given.strip()
    elif isinstance(given, dict | list):
        for each in given.values() if isinstance(given, dict) else given:
            yield from _texts_in(each)


def _check_names(table: str, names: Sequence[str], others: set[str]) -> None:
    for place, name in enumerate(names):
        if name in others or name in names[:place]:
            raise TableError((table, place, "name"), f"is '{name}' again; name each question once")


def _check_classes(place: tuple[str | int, ...], names: Sequence[str], layout: str) -> None:
    if len(names) < (1 if layout == "rating" else 2):
        raise TableError(place, f"must be a list of at least {'one class' if layout == 'rating' else 'two classes'}")
    for name in names:
        if not name.strip() or len(name) > 200:
            raise TableError(place, f"has the name {name!r}; give 1 to 200 characters")
        if names.count(name) > 1:
            raise TableError(place, f"has '{name}' twice; name each class once")


def _known_answer(entry: GoldItem, classes: Classes, place: tuple[str | int, ...]) -> Gold:
    """An entry of gold or practice items with, for each class of the first question, the responses that are right."""
    required = [frozenset({NO, UNSURE} if classes.unsure else {NO})] * len(classes.names)
    seen: set[str] = set()
    for code in (NO, YES, UNSURE):
        for name in getattr(entry, RESPONSES[code]):
            if name not in classes.names:
                raise no_such((*place, RESPONSES[code]), name, classes.names)
            if name in seen:
                raise TableError((*place, RESPONSES[code]), f"requires two answers to '{name}' of '{entry.item}'")
            seen.add(name)
            required[classes.names.index(name)] = frozenset({code})
    feedback = entry.feedback.strip() if isinstance(entry, PracticeItem) else ""
    return Gold(item=entry.item, required=tuple(required), feedback=feedback)


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
    from dissensus_collect.store.items import classes_of

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
    new = tomllib.loads(
        resources.files("dissensus_collect.project").joinpath("new_project.toml").read_text(encoding="utf-8")
    )
    # A layout that does not exist is refused below, with its line.
    asks, how = new["layouts"].get(layout, new["layouts"]["rows"])
    codes = {ending: secrets.token_hex(4).upper() for ending in ENDINGS}
    text = new["file"].format(
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


def _toml(text: str) -> str:
    """A basic string of TOML, which has all the escapes of JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
