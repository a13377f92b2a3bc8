"""A project that collects votes: collect.toml in a folder of its own, read strictly."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict, replace

from dissensus.errors import InputError, choices
from dissensus.toml_file import TomlFile, TomlTable
from dissensus_collect.project.language import NAMES, language
from dissensus_collect.project.tables import Gold, ItemQuestion, PracticeItem, ProjectFile, Scale, Texts, known_answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dissensus.evaluation.probabilities import Predictions

FILE: Final = "collect.toml"
USUAL: Final = {
    "yes": "Yes", "no": "No", "unsure": "Unsure", "low": "not at all", "high": "completely",
    "why": "Why did you answer like this?",
}  # fmt: skip
"""Words of a project that are ours where its file has none of its own."""


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
        """The table of texts or pairs; None for images."""
        named = self.items.texts or self.items.pairs
        return (self.folder / named).resolve() if named else None

    @property
    def media_folder(self) -> Path | None:
        """Where pictures lie: in the folder of images, or beside the table of pairs."""
        return self.table.parent if self.items.pairs and self.table is not None else self.images

    @property
    def values(self) -> tuple[str, ...]:
        """The responses that may be given to a class, in the order of the buttons."""
        return ("yes", "no", "unsure") if self.classes.unsure else ("yes", "no")

    @cached_property
    def gold_items(self) -> tuple[Gold, ...]:
        """Items with a known answer, which do not count towards k."""
        return tuple(known_answer(entry, self.classes, ()) for entry in self.gold.items)

    @property
    def gold_shown(self) -> int:
        """How many of the gold items everybody is shown."""
        return min(self.gold.shown or len(self.gold_items), len(self.gold_items))

    @property
    def practice_items(self) -> tuple[str, ...]:
        """Names of items that are shown for practice and never voted on."""
        return tuple(entry if isinstance(entry, str) else entry.item for entry in self.practice.items)

    @cached_property
    def feedback(self) -> tuple[Gold, ...]:
        """What is said after practice items."""
        entries = (entry for entry in self.practice.items if isinstance(entry, PracticeItem))
        return tuple(known_answer(entry, self.classes, ()) for entry in entries)

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
        return tuple(name for question in self.asked for name in question.classes)

    @cached_property
    def predictions(self) -> Predictions:
        """What the model of [adaptive] says of the items; it names one."""
        from dissensus.evaluation.predictions import read_predictions

        asked = self.asked[0]
        steps = asked.scale.values if asked.is_choice and asked.layout == "rating" else asked.classes
        return read_predictions(self.adaptive.model, tuple(map(str, steps)))

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
            [asked.name, asked.layout, asked.classes, asked.unsure, asked.scale.values if rates else None]
            for asked in self.asked
            for rates in [asked.layout == "rating"]
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
        return {**{own.told(word): other.told(word) for word in USUAL.values()}, **self.translations.get(code, {})}

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
    project = Project(**asdict(read) | _filled_in(read, file.given, path), folder=path.parent, toml=file.text)
    if project.images is not None and not project.images.is_dir():
        raise file.refuse(("items", "images"), f"is '{read.items.images}', where there is no folder")
    if project.table is not None and not project.table.is_file():
        named = "texts" if read.items.texts else "pairs"
        raise file.refuse(("items", named), f"is '{getattr(read.items, named)}', where there is no file")
    if len(set(project.classes.words.values())) < len(project.classes.words):
        raise file.refuse(("classes", "words"), "writes two values alike; give each its own word")
    if read.adaptive.on and project.adaptive.max_k < read.k:
        raise file.refuse(("adaptive", "max_k"), f"is {project.adaptive.max_k}, less than k = {read.k}; give k or more")
    if read.adaptive.model and not Path(project.adaptive.model).is_file():
        raise file.refuse(("adaptive", "model"), f"is '{read.adaptive.model}', where there is no file")
    if read.adaptive.model and read.k < 2:
        raise file.refuse("k", "is 1, and how much a model counts is learnt from k votes of each item; give 2 or more")
    _check_translations(file, read)
    return project


def _filled_in(read: ProjectFile, given: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """What a file leaves to its folder, its language or its other keys."""
    own, name = language(read.language), read.name if "name" in given else path.resolve().parent.name

    def filled(table: TomlTable, written: Mapping[str, Any], **usual: Any) -> Any:
        return replace(table, **{key: value for key, value in usual.items() if key not in written})

    def scale(table: Scale, inside: Mapping[str, Any]) -> Any:
        return filled(table, inside.get("scale", {}), low=own.say("not at all"), high=own.say("completely"))

    words = {"yes": own.say("Yes"), "no": own.say("No"), "unsure": own.say("Unsure"), **read.classes.words}
    jwks, model = read.recruitment.jwks, read.adaptive.model
    adaptive = replace(read.adaptive, model=str(path.resolve().parent / model) if model else "")
    return {
        "name": name,
        "classes": replace(read.classes, words=words),
        "scale": scale(read.scale, given),
        "reason": filled(read.reason, given.get("reason", {}), question=own.say("Why did you answer like this?")),
        "item_questions": tuple(
            replace(asked, classes=asked.classes or read.classes.names, scale=scale(asked.scale, written))
            for asked, written in zip(read.item_questions, given.get("item_questions", ()), strict=True)
        ),
        "order": filled(read.order, given.get("order", {}), classes=usual_order(read.classes.names)),
        "texts": filled(read.texts, given.get("texts", {}), title=name, finish=own.new["finish"]),
        "recruitment": replace(read.recruitment, jwks=str(path.parent / jwks) if jwks else None),
        "adaptive": filled(adaptive, given.get("adaptive", {}), max_k=2 * read.k),
        "prescreening": {key: str(value) for key, value in read.prescreening.items()},
    }


def usual_order(names: Iterable[str]) -> str:
    """Return the default order of classes: "rotated" if all names are numbers."""
    return "rotated" if all(name.isdigit() for name in names) else "shuffled-per-annotator"


def _check_translations(file: TomlFile, read: ProjectFile) -> None:
    """Refuses [translations.de] of texts that are not in the file."""
    others = [code for code in NAMES if code != read.language]
    texts = set(Texts.__struct_fields__) | set(
        _texts_in({key: inside for key, inside in file.given.items() if key != "translations"})
    )
    for code, inside in read.translations.items():
        if code not in others:
            remedy = f"write [translations.CODE] with one of {', '.join(others)}"
            raise file.refuse("translations", f"has '{code}'; {remedy}")
        for text in inside:
            if text not in texts:
                known = choices(text, sorted(other for other in texts if 0 < len(other) <= 60))
                raise file.refuse(("translations", code, text), f"is translated, and is no text of this project{known}")


def _texts_in(given: Any) -> Iterator[str]:
    """Every text in a parsed file."""
    if isinstance(given, str):
        yield given.strip()
    elif isinstance(given, dict | list):
        for value in given.values() if isinstance(given, dict) else given:
            yield from _texts_in(value)
