"""A study as data: a small TOML file, checked key by key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_type_hints

from dissensus.datasets import data_folder
from dissensus.errors import InputError, choices
from dissensus.toml_file import TomlFile, fits, in_words
from dissensus_train.basins import BasinSettings
from dissensus_train.delivery import DELIVERIES, delivery_options
from dissensus_train.ood.settings import OodSettings
from dissensus_train.studies.labelled_sets import LABELLED_SETS, SPLITS
from dissensus_train.training.models import MODELS
from dissensus_train.training.people import SHRINKAGE, People
from dissensus_train.training.settings import REGIMES, Training

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dissensus_train.studies.labelled_sets import LabelledSet

Settings = TypeVar("Settings")
Entry = TypeVar("Entry")

ITEM_KEYS: Final = ("texts", "images", "features")
"""What a study of one's own files may give of its items; one of them."""

SHARES: Final = {"train": 0.7, "validation": 0.15, "test": 0.15}
"""Of items in each split, where nothing is said."""

KEYS: Final[dict[str, tuple[str, ...]]] = {
    "": ("name", "question", "dataset", "splits", "grid", "training", "basins", "ood"),
    "dataset": (
        *("name", "sources", "votes", "format", *ITEM_KEYS),
        *("item", "text", "encoder", "normalise", "original"),
    ),
    "splits": (*SPLITS, "seed", "file", "folds"),
    "grid": ("targets", "deliveries", "models", "seeds", "reference"),
    "training": ("regime", *(each.name for each in fields(Training))),
    "basins": tuple(each.name for each in fields(BasinSettings)),
    "ood": tuple(each.name for each in fields(OodSettings)),
}
"""The keys of a study file, by table."""

TARGET_KEYS: Final = ("scheme", "votes", "seed")
MODEL_KEYS: Final = ("name", "people", "by", "shrinkage", "population")

GROUP: Final = "group"
"""What `people` may be called where groups of annotators have offsets: annotator-bias by an attribute."""


@dataclass(frozen=True)
class Target:
    """What runs are trained towards.

    Attributes:
        scheme: from votes to label distributions.
        votes: keep only so many votes an item (a smaller panel); None keeps all.
        seed: of which are kept.
    """

    scheme: str
    votes: int | None = None
    seed: int = 0

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """The scheme, the size of the panel where it was cut, and the seed of the cut unless that is 0."""
        if self.votes is None:
            return self.scheme
        return f"{self.scheme}, {self.votes} votes{f', seed {self.seed}' if self.seed else ''}"


@dataclass(frozen=True)
class Method:
    """A delivery with its options."""

    delivery: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return ", ".join([self.delivery, *(f"{name} = {value}" for name, value in self.options.items())])


@dataclass(frozen=True)
class AnnotatorModel:
    """A model with an annotator side, trained on votes one by one.

    Attributes:
        name: of the network over items, or its path.
        people: how it knows people.
    """

    name: str
    people: People

    def __str__(self) -> str:
        return f"{self.name} with {self.people}"


@dataclass(frozen=True, kw_only=True)
class Study:
    """A grid of runs on one dataset: every target by every delivery, model and seed.

    Models with an annotator side learn from the votes themselves: they are crossed with seeds alone.

    Attributes:
        name: of the study.
        question: what it asks, for the report.
        dataset: the name of a known dataset, or None where files are given.
        votes: a votes file.
        features: a features file.
        texts: a file of texts.
        images: a folder of images, or a file that holds them.
        item: the column of `texts` that names items, where it cannot be told.
        text: the columns of `texts` that hold them, one or two, where they cannot be told.
        encoder: what makes features of texts or images; None takes the dataset's, or the usual one of their kind.
        normalise: whether networks see features with mean 0 and deviation 1; None does as the encoder says.
        original: a file of the labels that items had before people voted, or a column of `texts`.
        format: of the votes file, where it cannot be told.
        splits: by name, shares of items; empty where the dataset, a file or folds say who is in which split. Only
            `validation`, where the dataset brings `train`: the share of its training items that validation takes.
        split_seed: of the split.
        splits_file: a file that says who is in which split, and which items are to be kept in one.
        folds: into how many parts items are divided, each of which is tested on once; 0 where they are not.
        fold: the part that is tested on, from 1; 0 in a study that is not one of them (see `parts`).
        targets: what runs are trained towards.
        methods: how it reaches the loss.
        models: names or import paths.
        annotator_models: models with an annotator side.
        seeds: of runs.
        reference: the method that the others are compared with, by the name it has in tables; None takes the first
            that was trained on majority labels, or else the first.
        training: settings.
        basins: how the basins of its runs are measured; None where they are not.
        ood: how out-of-distribution detection of its runs is measured; None where it is not.
        sources: of the dataset, each a study of its own (see `parts`); empty where it has none.
        path: the file that it was read from; relative paths in it are relative to its folder.
    """

    name: str
    question: str
    dataset: str | None
    votes: str | None
    features: str | None
    format: str | None
    splits: Mapping[str, float]
    split_seed: int
    targets: tuple[Target, ...]
    methods: tuple[Method, ...]
    models: tuple[str, ...]
    seeds: tuple[int, ...]
    training: Training
    path: Path
    texts: str | None = None
    images: str | None = None
    item: str | None = None
    text: tuple[str, ...] = ()
    encoder: str | None = None
    normalise: bool | None = None
    original: str | None = None
    splits_file: str | None = None
    folds: int = 0
    fold: int = 0
    sources: tuple[str, ...] = ()
    reference: str | None = None
    basins: BasinSettings | None = None
    ood: OodSettings | None = None
    annotator_models: tuple[AnnotatorModel, ...] = ()

    @property
    def folder(self) -> Path:
        """What relative paths are relative to."""
        return self.path.parent

    @property
    def size(self) -> int:
        """The number of runs."""
        systems = len(self.targets) * len(self.methods) * len(self.models) + len(self.annotator_models)
        return systems * len(self.seeds) * len(self.parts)

    @property
    def parts(self) -> tuple[Study, ...]:
        """The study itself; or one study for each of its sources, `NAME-SOURCE`, and of its folds, `NAME-fold-1`."""
        parts: tuple[Study, ...] = (self,)
        if len(self.sources) > 1:
            parts = tuple(replace(self, name=f"{self.name}-{source}", sources=(source,)) for source in self.sources)
        if self.folds and not self.fold:
            folds = range(1, self.folds + 1)
            parts = tuple(replace(each, name=f"{each.name}-fold-{fold}", fold=fold) for each in parts for fold in folds)
        return parts

    @property
    def held(self) -> str:
        """What the study is about, in a few words: the dataset, or its files."""
        given = [self.votes, self.texts or self.images or self.features]
        return self.dataset or " with ".join(str(each) for each in given)


def shipped_studies() -> dict[str, Path]:
    """The studies that come with the package, by name."""
    folder = Path(str(resources.files("dissensus_train.studies"))) / "shipped"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def read_study(source: str | Path) -> Study:
    """A study from a file, or one that comes with the package by its name, or a part of it by the part's name."""
    path = Path(source)
    if path.suffix or path.is_file():
        return _StudyFile(path, kind="study").study()
    known = shipped_studies()
    if str(source) in known:
        return _StudyFile(known[str(source)], kind="study").study()
    for name in (name for name in known if str(source).startswith(f"{name}-")):
        for part in _StudyFile(known[name], kind="study").study().parts:
            if part.name == str(source):
                return part
    raise InputError(f"'{source}' is no study{choices(source, known)}, or give a .toml file")


class _StudyFile(TomlFile):
    """Checks a parsed study against its text, so that every refusal names the line."""

    def study(self) -> Study:
        self.tables(KEYS)
        given, dataset, splits = self.given, self.table("dataset"), self.table("splits")
        grid, training = self.table("grid"), self.table("training")
        models = self.distinct(
            "models", [self.model(each) for each in self.listed(grid, "models", ["simple-ffn"])], str
        )
        known = self.written("dataset", "name")
        brought = None if known is None else LABELLED_SETS.get(known)
        if known is not None and brought is None:
            raise self.no_such("dataset", "name", known, LABELLED_SETS)
        study = Study(
            name=self.written("", "name") or self.path.stem,
            question=self.written("", "question") or "",
            dataset=known,
            votes=self.written("dataset", "votes"),
            features=self.written("dataset", "features"),
            texts=self.written("dataset", "texts"),
            images=self.written("dataset", "images"),
            item=self.written("dataset", "item"),
            text=self.text_columns(dataset.get("text", [])),
            encoder=self.written("dataset", "encoder"),
            normalise=self.typed("dataset", "normalise", bool | None, None),
            original=self.written("dataset", "original"),
            format=self.written("dataset", "format"),
            splits=self.shares(splits, brought),
            split_seed=self.whole("splits", "seed", 0, least=0),
            splits_file=self.written("splits", "file"),
            folds=self.whole("splits", "folds", 0, least=2) if "folds" in splits else 0,
            targets=self.distinct(
                "targets",
                [self.target(each, brought) for each in self.listed(grid, "targets", ["frequency"])],
                lambda target: target.name,
            ),
            methods=self.distinct(
                "deliveries",
                [self.method(each) for each in self.listed(grid, "deliveries", ["soft"])],
                self.meant,
            ),
            models=tuple(each for each in models if isinstance(each, str)),
            annotator_models=tuple(each for each in models if isinstance(each, AnnotatorModel)),
            seeds=self.seeds(grid.get("seeds", 1)),
            reference=self.written("grid", "reference"),
            training=self.training(training),
            path=self.path,
            sources=self.sources(dataset, brought),
            basins=self.settings("basins", BasinSettings, self.table("basins")) if "basins" in given else None,
            ood=self.ood(self.table("ood")),
        )
        self.consistent(study, brought)
        return study

    def consistent(self, study: Study, brought: LabelledSet | None) -> None:
        own = {key: getattr(study, key) for key in ITEM_KEYS if getattr(study, key) is not None}
        if brought is None:
            if study.votes is None:
                raise self.refuse("dataset", "votes", "is missing: name a known dataset, or give a votes file")
            if not own:
                raise self.refuse(
                    "dataset", "texts", "is missing: give texts, images or features of the items that were voted on"
                )
            if len(own) > 1:
                raise self.refuse("dataset", list(own)[1], f"stands beside {next(iter(own))}; give one of them")
        for key in ("votes", *ITEM_KEYS, "format", "original"):
            if brought is not None and getattr(study, key) is not None:
                raise self.refuse("dataset", key, "contradicts name: a known dataset brings its own votes and items")
        for key, needs in (("item", "texts"), ("text", "texts")):
            if getattr(study, key) and study.texts is None:
                raise self.refuse("dataset", key, f"names a column of {needs}, and there are none; leave it out")
        if study.encoder is not None and study.features is not None:
            raise self.refuse("dataset", "encoder", "encodes texts or images, and features are given; leave one out")
        self.consistent_splits(study, () if brought is None else brought.splits)

    def consistent_splits(self, study: Study, brought: tuple[str, ...]) -> None:
        ways = [key for key in ("file", "folds", *SPLITS) if key in self.table("splits")]
        if study.folds and study.splits:
            raise self.refuse(
                "splits", "folds", f"stands beside {ways[-1]}; a fold is the test split: leave shares out"
            )
        selects, on = study.training.selects, study.training.selection_split
        if study.folds:
            if selects and on != "validation":
                raise self.refuse("training", "selection_split", f"is '{on}'; folds have train, validation and test")
            if selects and study.folds < 3:
                raise self.refuse(
                    "splits", "folds", "is 2, and the best epoch is chosen on a fold of its own; give 3 or more"
                )
            return
        total = sum(study.splits.values())
        carved = set(study.splits) == {"validation"} and "validation" not in brought and "train" in brought
        if carved and not 0 < total < 1:
            raise self.refuse(
                "splits", "validation", f"is {total:g}; give the share of training items it takes, as 0.1"
            )
        if study.splits and not carved and (abs(total - 1) > 1e-9 or min(study.splits.values()) < 0):
            raise self.refuse(
                "splits", next(iter(study.splits)), f"and its sisters sum to {total:g}; they must sum to 1"
            )
        # Which splits a file has is seen when it is read.
        there = study.splits_file is not None or bool(study.splits.get(on)) or (on in brought and not study.splits)
        if selects and not there:
            raise self.refuse(
                "training",
                "selection_split",
                f"is '{on}', which no item is in, yet the best epoch is chosen there; give it a share under [splits], "
                'or set keep = "last" in the regime fixed-horizon',
            )

    def shares(self, splits: dict[str, Any], brought: LabelledSet | None) -> dict[str, float]:
        """The share of items in each split; empty where a file, folds, or the dataset itself say who is where."""
        given: dict[str, float] = {name: self.typed("splits", name, float, 0.0) for name in SPLITS if name in splits}
        if given or "folds" in splits or (brought is not None and brought.splits):
            return given
        # A file may say only which items belong together; then the usual shares hold. Its reader sees.
        return {} if "file" in splits else dict(SHARES)

    def text_columns(self, given: Any) -> tuple[str, ...]:
        columns = [given] if isinstance(given, str) else given
        if not fits(columns, tuple[str, ...]) or len(columns) > 2 or ("text" in self.table("dataset") and not columns):
            raise self.refuse("dataset", "text", f"is {given!r}; give the column of texts, or a list of two for pairs")
        return tuple(columns)

    def written(self, table: str, key: str) -> str | None:
        """A text in quotation marks, not empty; None where it is not given."""
        given: str | None = self.typed(table, key, str | None, None)
        if given is not None and not given.strip() and key != "question":
            raise self.refuse(table, key, "is empty; fill it, or leave it out")
        return given

    def whole(self, table: str, key: str, default: int, *, least: int) -> int:
        given: int = self.typed(table, key, int, default)
        if given < least:
            raise self.refuse(table, key, f"is {given}; give a whole number, {least} or more")
        return given

    def sources(self, dataset: dict[str, Any], brought: LabelledSet | None) -> tuple[str, ...]:
        """The named sources of a set, or all of them."""
        known = () if brought is None else brought.sources
        named = dataset.get("sources", list(known))
        if not isinstance(named, list) or ("sources" in dataset and not named):
            raise self.refuse("dataset", "sources", f"is {named!r}; it must be a list with at least one entry")
        for source in named:
            if source not in known:
                raise self.no_such("dataset", "sources", source, known)
        if len(set(named)) != len(named):
            raise self.refuse("dataset", "sources", "names a source twice; a repeated source is the same study")
        return tuple(named)

    def target(self, given: Any, brought: LabelledSet | None) -> Target:
        # Imported here: schemes bring SciPy's statistics along, which a look at a study's name does not need.
        from dissensus.labels.labelling import SCHEMES

        table = given if isinstance(given, dict) else {"scheme": given}
        for key in table:
            self.known(key, TARGET_KEYS, "grid", beside="targets")
        target = Target(**table) if "scheme" in table else None
        own = brought.targets if brought is not None else ("original",) if "original" in self.table("dataset") else ()
        known = own if brought is not None and not brought.votes else (*own, *SCHEMES)
        if target is None or target.scheme not in known:
            raise self.no_such("grid", "targets", table.get("scheme", given), known)
        if target.votes is not None and target.scheme in own:
            raise self.refuse(
                "grid", "targets", f"keeps {target.votes!r} votes of '{target.scheme}', which the dataset brings whole"
            )
        if target.votes is not None and (type(target.votes) is not int or target.votes < 1):
            raise self.refuse("grid", "targets", f"keeps {target.votes!r} votes an item; keep 1 or more")
        if type(target.seed) is not int or target.seed < 0:
            raise self.refuse("grid", "targets", f"has the seed {target.seed!r}; give a whole number such as 0")
        if target.votes is None and "seed" in table:
            raise self.refuse(
                "grid", "targets", f"gives '{target.scheme}' a seed, which says what votes are kept; give votes too"
            )
        return target

    def meant(self, method: Method) -> str:
        """A delivery with all its options, those that were left to their defaults too."""
        defaults = delivery_options(method.delivery, folder=self.path.parent)
        return f"{method.delivery} {sorted({**defaults, **method.options}.items())}"

    def method(self, given: Any) -> Method:
        table = dict(given) if isinstance(given, dict) else {"name": given}
        name = table.pop("name", None)
        if not isinstance(name, str) or (name not in DELIVERIES and ":" not in name):
            raise self.no_such("grid", "deliveries", name if name is not None else given, DELIVERIES)
        for key, value in table.items():
            options = delivery_options(name, folder=self.path.parent)
            self.known(key, tuple(options), "grid", beside="deliveries")
            # What is None by default is a seed.
            hint = int if options[key] is None else type(options[key])
            if name in DELIVERIES and not fits(value, hint):
                raise self.refuse("grid", "deliveries", f"gives {name} {key} = {value!r}; give {in_words(hint)}")
        return Method(name, table)

    def model(self, given: Any) -> str | AnnotatorModel:
        table = dict(given) if isinstance(given, dict) else {"name": given}
        for key in table:
            self.known(key, MODEL_KEYS, "grid", beside="models")
        name = table.pop("name", None)
        if not isinstance(name, str) or (name not in MODELS and ":" not in name):
            raise self.no_such("grid", "models", name if name is not None else given, MODELS)
        if not isinstance(given, dict):
            return name
        kind, by = table.get("people"), table.get("by", "")
        if not isinstance(kind, str) or (kind not in SHRINKAGE and kind != GROUP):
            raise self.no_such("grid", "models", kind, (*SHRINKAGE, GROUP))
        if not isinstance(by, str) or (kind == GROUP and not by):
            raise self.refuse(
                "grid", "models", f"gives by = {by!r}; name the attribute of annotators that groups go by"
            )
        strength, population = table.get("shrinkage"), table.get("population", {})
        if not fits(strength, float | None) or not isinstance(population, dict):
            raise self.refuse(
                "grid",
                "models",
                "gives a shrinkage or population that cannot be read; write shrinkage = 1.0 and "
                "population = { country = { US = 0.5, UK = 0.5 } }",
            )
        try:
            people = People(
                kind="annotator-bias" if kind == GROUP else kind, by=by, shrinkage=strength, population=population
            )
        except InputError as error:
            raise self.refuse("grid", "models", f"is refused: {error}") from error
        return AnnotatorModel(name, people)

    def seeds(self, given: Any) -> tuple[int, ...]:
        listed = range(given) if type(given) is int else given
        if (
            not isinstance(listed, range | list)
            or not len(listed)
            or not all(type(seed) is int and seed >= 0 for seed in listed)
        ):
            raise self.refuse(
                "grid", "seeds", f"is {given!r}; give how many, or a list of whole numbers such as [0, 1, 2]"
            )
        if len(set(listed)) != len(listed):
            raise self.refuse("grid", "seeds", "names a seed twice; a repeated seed is the same run")
        return tuple(listed)

    def training(self, given: dict[str, Any]) -> Training:
        regime = given.get("regime", "early-stopping")
        if not isinstance(regime, str) or regime not in REGIMES:
            raise self.no_such("training", "regime", regime, REGIMES)
        return self.settings(
            "training", Training, {key: given[key] for key in given if key != "regime"}, REGIMES[regime]
        )

    def ood(self, given: dict[str, Any]) -> OodSettings | None:
        if "ood" not in self.given:
            return None
        sets = given.get("sets")
        if not isinstance(sets, dict) or not all(isinstance(path, str) for path in sets.values()):
            raise self.refuse(
                "ood", "sets", 'must name out-of-distribution sets and their places: { letters = "letters.npz" }'
            )
        made = {**given, "sets": {name: self.found(path) for name, path in sets.items()}}
        for listed in ("near", "far", "scores"):
            if isinstance(given.get(listed), list):
                made[listed] = tuple(given[listed])
        return self.settings("ood", OodSettings, made)

    def found(self, path: str) -> Path:
        """A path beside the study's file, or else in the folder of downloaded data."""
        beside = self.path.parent / path
        return beside if beside.exists() else data_folder() / path

    def settings(
        self, table: str, kind: type[Settings], given: dict[str, Any], base: Settings | None = None
    ) -> Settings:
        """Settings of a kind with what is given, and else as `base` has them, or as they are by default."""
        hints = get_type_hints(kind, localns={"Mapping": Mapping, "Path": Path})
        for key, value in given.items():
            if not fits(value, hints[key]):
                raise self.refuse(table, key, f"is {value!r}; give {in_words(hints[key])}")
        try:
            return kind(**given) if base is None else replace(base, **given)  # type: ignore[type-var]
        except (InputError, TypeError) as error:
            wrong = next((key for key in given if f" {key} " in f" {error} "), table)
            raise self.refuse(table, wrong, f"is refused: {error}") from error

    def distinct(self, key: str, listed: Sequence[Entry], meaning: Callable[[Entry], str]) -> tuple[Entry, ...]:
        """Refuses two entries that mean the same: their runs would be the same runs, counted twice."""
        seen: set[str] = set()
        for each in listed:
            if meaning(each) in seen:
                raise self.refuse("grid", key, f"names {each} twice; leave one out, or give it other options")
            seen.add(meaning(each))
        return tuple(listed)

    def listed(self, table: dict[str, Any], key: str, default: list[Any]) -> Sequence[Any]:
        given = table.get(key, default)
        if not isinstance(given, list) or not given:
            raise self.refuse("grid", key, f"is {given!r}; it must be a list with at least one entry")
        return given
