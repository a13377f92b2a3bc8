"""The tables of collect.toml: their keys, what they may hold, and what is refused of them alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, get_args

from msgspec import Meta, field
from msgspec.structs import force_setattr

from dissensus.responses import NO, RESPONSES, UNSURE, YES
from dissensus.toml_file import TableError, TomlTable, known_keys, no_such
from dissensus_collect.project import Layout
from dissensus_collect.project.language import NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

LAYOUTS: Final = get_args(Layout)
ENDINGS: Final = ("complete", "no-consent", "screened-out", "technical", "ineligible", "withdrawn", "full")
"""How a session can end; each has a code of its own. `full` is also given where a project is paused or closed."""
LARGEST_SCALE: Final = 21
"""The most steps of a scale: nobody distinguishes more buttons than that."""
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


class ItemSource(TomlTable):
    """What is shown: images, texts, or pairs of either.

    Attributes:
        images: the folder of images.
        texts: the table of texts.
        pairs: the table of pairs: columns left and right hold two texts, or names of images beside the table; a text
            above both, and the names of who made them, may be in columns prompt, left_name and right_name.
        item: the table's column of item names, where it cannot be told.
        text: the table's column of texts, where it cannot be told.
        rendering: how a small image is enlarged.
    """

    images: str = ""
    texts: str = ""
    pairs: str = ""
    item: str = ""
    text: str = ""
    rendering: Literal["pixelated", "smooth"] = "pixelated"

    def __post_init__(self) -> None:
        if sum(map(bool, (self.images, self.texts, self.pairs))) != 1:
            raise TableError("images", "or texts or pairs must be given, and only one of them: a project shows one")


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
            steps = f"goes from {least} to {most} by {step}"
            raise TableError("most", f"{steps}; the steps must lead from the least to the most")
        if len(self.values) > LARGEST_SCALE:
            raise TableError("most", f"makes {len(self.values)} steps; give {LARGEST_SCALE} at most")

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


class DisplayOrder(TomlTable):
    """Order in which classes and items are shown.

    Attributes:
        classes: order of the classes of a question; "rotated" is the default if all names are numbers.
        items: order of the items of a session.
    """

    classes: Literal["fixed", "rotated", "shuffled-per-annotator", "shuffled-per-item"] = "shuffled-per-annotator"
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
    """Items whose answers are known; they do not count towards k.

    Attributes:
        items: such as { item = "three.png", yes = ["3"] }; no other class may be yes.
        shown: how many of them everybody is shown, drawn for each; 0 for all.
        misses_allowed: how many may be missed before an annotator, who is paid, no longer counts.
    """

    items: Annotated[
        tuple[GoldItem, ...], Meta(extra={"write": 'a list of entries such as { item = "a.png", yes = ["3"] }'})
    ] = ()
    shown: Whole = 0
    misses_allowed: Whole = 0


class Practice(TomlTable):
    """Items that are shown for practice and never voted on.

    Attributes:
        items: their names; with feedback: { item = "a.png", yes = ["3"], feedback = "Look at the upper half." }.
        attempts: how many an annotator has before being screened out.
    """

    items: tuple[str | PracticeItem, ...] = ()
    attempts: Count = 2


class ChoiceQuestion(TomlTable, kw_only=True):
    """What a question has to choose from."""

    question: Filled
    options: tuple[Filled, ...] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "options", tuple(option.strip() for option in self.options))
        if len(self.options) == 1 or len(set(self.options)) < len(self.options):
            raise TableError("options", f"is {list(self.options)!r}; give two or more that differ")
        if not self.options and not isinstance(self, Question):
            raise TableError("options", "is missing; give the answers to choose from")


class Eligibility(ChoiceQuestion, kw_only=True):
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


class Comprehension(ChoiceQuestion, kw_only=True):
    """A question about the task, asked before the first item; one option is right."""

    right: str

    def __post_init__(self) -> None:
        super().__post_init__()
        force_setattr(self, "right", self.right.strip())
        if self.right not in self.options:
            raise TableError("right", f"is '{self.right}', which is not one of its options")


class Question(ChoiceQuestion, kw_only=True):
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
    finish: str = ""


class Recruitment(TomlTable):
    """Where annotators come from.

    Attributes:
        kind: the platform.
        study: the platform's id of the study, which a signed link must name.
        jwks: a file with the platform's public keys; if given, links must be signed.
        return_url: where the finish page leads; "{code}" in it stands for the code.
        codes: the code for each ending; a random one, which stays the same, where none is given.
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
        model: a file of predictions of the items; where first votes agree with it, fewer are bought.
    """

    on: bool = False
    max_k: Count = 12
    budget: Whole = 0
    model: str = ""


class Cost(TomlTable):
    """What a vote costs: pay in currency per hour, time in seconds, the platform's fee as a share of the pay."""

    pay_per_hour: Number = 12.0
    currency: str = "GBP"
    seconds_per_item: Above0 = 12.5
    platform_fee: Number = 0.33


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
    items: Annotated[ItemSource, Meta(extra={"write": "a table [items] with images, a folder, or texts, a table"})]
    classes: Classes
    scale: Scale = Scale()
    reason: Reason = Reason()
    item_questions: tuple[ItemQuestion, ...] = ()
    order: DisplayOrder = DisplayOrder()
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
        if self.items.pairs and self.layout != "single-choice":
            raise TableError("layout", "must be single-choice for pairs; its classes lead from the left to the right")
        for place, asked in enumerate(self.item_questions):
            _check_classes(("item_questions", place, "classes"), asked.classes or self.classes.names, asked.layout)
        for table, listed in (("gold", self.gold.items), ("practice", self.practice.items)):
            for place, entry in enumerate(listed):
                if isinstance(entry, GoldItem):
                    known_answer(entry, self.classes, (table, "items", place))
        for table in ("item_questions", "eligibility", "comprehension", "questions"):
            questions = getattr(self, table)
            if len(questions) > MOST_QUESTIONS:
                raise TableError(table, f"is written {len(questions)} times; ask {MOST_QUESTIONS} questions at most")
            names = [question.name for question in questions] if table != "comprehension" else []
            others = [question.name for question in self.questions] if table == "eligibility" else []
            for place, name in enumerate(names):
                if name in others or name in names[:place]:
                    raise TableError((table, place, "name"), f"is '{name}' again; name each question once")
        options = {question.name: question.options for question in self.eligibility}
        for name, groups in self.quotas.items():
            for group in groups:
                if group not in options.get(name, (group,)):
                    raise no_such(("quotas", name), group, options[name])


def _check_classes(place: tuple[str | int, ...], names: Sequence[str], layout: str) -> None:
    if len(names) < (1 if layout == "rating" else 2):
        raise TableError(place, f"must be a list of at least {'one class' if layout == 'rating' else 'two classes'}")
    for name in names:
        if not name.strip() or len(name) > 200:
            raise TableError(place, f"has the name {name!r}; give 1 to 200 characters")
        if names.count(name) > 1:
            raise TableError(place, f"has '{name}' twice; name each class once")


def known_answer(entry: GoldItem, classes: Classes, place: tuple[str | int, ...]) -> Gold:
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
