"""A study as data: a small TOML file, checked key by key."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta

from dissensus.datasets import data_folder
from dissensus.errors import InputError, choices
from dissensus.toml_file import TableError, TomlFile, TomlTable, fits, known_keys, no_such, table_of
from dissensus_train.basins import BasinSettings
from dissensus_train.delivery import DELIVERIES, ONE_TARGET, delivery_options, shows_one_target
from dissensus_train.ood.settings import OodSettings
from dissensus_train.studies.labelled_sets import LABELLED_SETS, SPLITS, LabelledSet
from dissensus_train.training.annotator_side import SHRINKAGE, People
from dissensus_train.training.models import LOGISTIC, MODELS, PAIRS
from dissensus_train.training.settings import REGIMES, Training

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


Settings = TypeVar("Settings", Training, BasinSettings, OodSettings)
Entry = TypeVar("Entry")

ITEM_KEYS: Final = ("texts", "images", "features")
"""What a study of one's own files may give of its items; one of them."""

DATASET_KEYS: Final = (
    *("votes", "format", "reading", *ITEM_KEYS, "item", "background", "encoder", "normalise", "original"),
    "drop_missing_items",
)
"""What a study holds as its table `dataset` has it."""

SHARES: Final = {"train": 0.7, "validation": 0.15, "test": 0.15}
"""Of items in each split, where nothing is said."""

GROUP: Final = "group"
"""What `people` may be called where groups of annotators have offsets: annotator-bias by an attribute."""

OWN_CODE: Final = {"type": "string", "pattern": ":", "examples": ["mine.py:name"]}
"""The JSON schema of a user's own, or another library's, by path."""

Written = Annotated[str, Meta(pattern=r"\S", extra={"write": "a text in quotation marks, or leave it out"})]
Whole = Annotated[int, Meta(ge=0)]
Number = int | float
"""As it is written: 1 and 1.0 make different keys of runs."""
Share = Annotated[int, Meta(ge=0, le=1)] | Annotated[float, Meta(ge=0, le=1)]
Network = Annotated[str, Meta(extra_json_schema={"anyOf": [{"enum": list(MODELS)}, OWN_CODE]})]


class Target(TomlTable):
    """What runs are trained towards.

    Attributes:
        scheme: from votes to label distributions.
        votes: keep only so many votes per item (a smaller panel); None keeps all.
        seed: of which are kept.
    """

    scheme: str
    votes: Annotated[int, Meta(ge=1)] | None = None
    seed: Whole = 0

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
class AnnotatorNetwork:
    """A model with an annotator side, trained on votes one by one: a network over items, by name or path."""

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
        background: the colour behind transparent pixels of image files.
        text: the columns of `texts` that hold them, where they cannot be told: one, two for pairs, or three with the
            question before them.
        encoder: what makes features of texts or images; None takes the dataset's, or the usual one of their kind.
        normalise: whether networks see features with mean 0 and deviation 1; None does as the encoder says.
        original: a file of the labels that items had before people voted, or a column of `texts`.
        format: of the votes file, where it cannot be told.
        reading: what else `read_votes` is to know of it, by the name of the argument.
        drop_missing_items: whether items with votes that have no text, image or features are left out.
        splits: by name, shares of items; empty where the dataset, a file or folds say who is in which split. Only
            `validation`, where the dataset or file brings `train`: the share of its training items that it takes.
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
        part: the source or fold of the file that the study is; empty if it is the whole file.
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
    background: str | None = None
    text: tuple[str, ...] = ()
    encoder: str | None = None
    normalise: bool | None = None
    original: str | None = None
    reading: Mapping[str, Any] | None = None
    drop_missing_items: bool | None = None
    splits_file: str | None = None
    folds: int = 0
    fold: int = 0
    sources: tuple[str, ...] = ()
    part: str = ""
    reference: str | None = None
    basins: BasinSettings | None = None
    ood: OodSettings | None = None
    annotator_models: tuple[AnnotatorNetwork, ...] = ()

    @property
    def folder(self) -> Path:
        """What relative paths are relative to."""
        return self.path.parent

    @property
    def source(self) -> str:
        """Return the argument that commands take for this study: a shipped name, `FILE` or `FILE:PART`."""
        if self.path == shipped_studies().get(self.path.stem):
            return self.name
        return f"{self.path}:{self.part}" if self.part else str(self.path)

    @property
    def size(self) -> int:
        """The number of runs."""
        systems = len(self.grid) + len(self.annotator_models)
        return systems * len(self.seeds) * len(self.parts)

    @property
    def selects(self) -> bool:
        """Whether anything is chosen on the selection split."""
        return self.training.selects or LOGISTIC in self.models

    @property
    def chooses(self) -> str:
        """What is chosen there, in words."""
        if self.training.tune:
            return "the learning rate"
        return "the best epoch" if self.training.selects else f"the strength of {LOGISTIC}"

    @property
    def grid(self) -> list[tuple[str, Target, Method]]:
        """Every model, target and delivery; logistic regression with deliveries that show one target alone."""
        return [
            (model, target, method)
            for model in self.models
            for target in self.targets
            for method in self.methods
            if model != LOGISTIC or shows_one_target(method.delivery)
        ]

    @property
    def left_out(self) -> str:
        """Why the grid is not whole, in a sentence; empty where it is."""
        others = [str(method) for method in self.methods if not shows_one_target(method.delivery)]
        if LOGISTIC not in self.models or not others:
            return ""
        return (
            f"{LOGISTIC} is fitted to one target, and not with {', '.join(others)}, which show another in every epoch"
        )

    @property
    def parts(self) -> tuple[Study, ...]:
        """The study itself; or one study for each of its sources, `NAME-SOURCE`, and of its folds, `NAME-fold-1`."""
        parts: tuple[Study, ...] = (self,)
        if len(self.sources) > 1:
            parts = tuple(replace(self, sources=(source,), part=source) for source in self.sources)
        if self.folds and not self.fold:
            folds = range(1, self.folds + 1)
            parts = tuple(replace(one, fold=k, part=f"{one.part}-fold-{k}".lstrip("-")) for one in parts for k in folds)
        return tuple(one if one is self else replace(one, name=f"{self.name}-{one.part}") for one in parts)

    @property
    def held(self) -> str:
        """What the study is about, in a few words: the dataset, or its files."""
        return self.dataset or " with ".join(map(str, [self.votes, self.texts or self.images or self.features]))


class DatasetTable(TomlTable):
    """What people judged and what they said: a known dataset by name, or files."""

    name: Annotated[Written, Meta(extra_json_schema={"enum": list(LABELLED_SETS)})] | None = None
    sources: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None
    votes: Written | None = None
    format: Written | None = None
    reading: (
        Annotated[
            dict[str, str | bool | tuple[str, ...]],
            Meta(extra={"write": 'what `dissensus votes inspect` was told, as reading = { label = "vote" }'}),
        ]
        | None
    ) = None
    texts: Written | None = None
    images: Written | None = None
    features: Written | None = None
    item: Written | None = None
    background: Written | None = None
    text: Annotated[
        str | Annotated[tuple[str, ...], Meta(min_length=1, max_length=3)],
        Meta(extra={"write": "the column of texts, or a list of two for pairs, the question before them"}),
    ] = ()
    encoder: Written | None = None
    normalise: bool | None = None
    original: Written | None = None
    drop_missing_items: bool | None = None


class SplitsTable(TomlTable):
    """Who is trained on and who is tested on: shares of items, a file, or folds."""

    train: Share | None = None
    validation: Share | None = None
    test: Share | None = None
    seed: Whole = 0
    file: Written | None = None
    folds: Annotated[int, Meta(ge=2)] | None = None


class ModelTable(TomlTable):
    """A model with an annotator side: see `People`."""

    name: Annotated[Network, Meta(extra={"write": "a network such as simple-ffn"})]
    people: Annotated[str, Meta(extra_json_schema={"enum": [*SHRINKAGE, GROUP]})]
    by: str = ""
    shrinkage: Number | None = None
    population: Annotated[
        dict[str, dict[str, Number]], Meta(extra={"write": "population = { country = { US = 0.5, UK = 0.5 } }"})
    ] = msgspec.field(default_factory=dict)


class GridTable(TomlTable):
    """Every target by every delivery, model and seed is a run."""

    targets: Annotated[tuple[str | Target, ...], Meta(min_length=1)] = ("frequency",)
    deliveries: Annotated[tuple[str | dict[str, Any], ...], Meta(min_length=1)] = ("soft",)
    models: Annotated[tuple[Network | ModelTable, ...], Meta(min_length=1)] = ("simple-ffn",)
    seeds: Annotated[
        Annotated[int, Meta(ge=1)] | Annotated[tuple[Whole, ...], Meta(min_length=1)],
        Meta(extra={"write": "how many, or a list of whole numbers such as [0, 1, 2]"}),
    ] = 1
    reference: Written | None = None


_REGIME = Annotated[
    str,
    Meta(
        description="the settings that others differ from",
        extra_json_schema={"enum": list(REGIMES), "default": "early-stopping"},
    ),
]
_TRAINING: Any = table_of(
    Training, "How a run is trained: a regime, and any setting that differs from it.", regime=_REGIME
)
_BASINS: Any = table_of(BasinSettings, "What is measured of the minima that runs end in.")
_SETS = Annotated[dict[str, str], Meta(extra={"write": 'names and places, as { letters = "letters.npz" }'})]
_OOD: Any = table_of(OodSettings, "Out-of-distribution sets, and how their detection is measured.", sets=_SETS)


class StudyFile(TomlTable, kw_only=True):
    """A grid of runs: targets, deliveries, models and seeds on one dataset.

    Attributes:
        name: of the study, in tables and files.
        question: what it asks, for the report.
    """

    name: Written | None = None
    question: str = ""
    dataset: DatasetTable
    splits: SplitsTable = SplitsTable()
    grid: GridTable = GridTable()
    training: _TRAINING | None = None
    basins: _BASINS | None = None
    ood: _OOD | None = None


def shipped_studies() -> dict[str, Path]:
    """The studies that come with the package, by name."""
    folder = Path(str(resources.files("dissensus_train.studies"))) / "shipped"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def read_study(source: str | Path) -> Study:
    """Return the study of a file, a part of the study (`FILE:PART`), or a shipped study or part by name."""
    path = Path(source)
    file, _, wanted = str(source).rpartition(":")
    if Path(file).is_file() and not path.is_file():
        parts = {one.part: one for one in _read(Path(file)).parts}
        if wanted not in parts:
            raise InputError(f"{file}: the study has no part '{wanted}'{choices(wanted, parts)}")
        return parts[wanted]
    if path.suffix or path.is_file():
        return _read(path)
    known = shipped_studies()
    if str(source) in known:
        return _read(known[str(source)])
    for name in (name for name in known if str(source).startswith(f"{name}-")):
        for part in _read(known[name]).parts:
            if part.name == str(source):
                return part
    raise InputError(f"'{source}' is no study{choices(source, known)}, or give a .toml file")


def _read(path: Path) -> Study:
    file = TomlFile(path, kind="study")
    read = file.read_as(StudyFile)
    with file.refusals():
        return _study(read, file.given, path)


def _study(read: StudyFile, given: Mapping[str, Any], path: Path) -> Study:
    """The study of a file; settings as they are written."""
    dataset, splits, grid = read.dataset, read.splits, read.grid
    brought = None if dataset.name is None else LABELLED_SETS.get(dataset.name)
    if dataset.name is not None and brought is None:
        raise no_such(("dataset", "name"), dataset.name, LABELLED_SETS)
    models = _distinct("models", [_model(model) for model in grid.models], str)
    targets = [_target(target, dataset, brought) for target in grid.targets]
    methods = [_method(method, path.parent) for method in grid.deliveries]
    regime = given.get("training", {}).get("regime", "early-stopping")
    if regime not in REGIMES:
        raise no_such(("training", "regime"), regime, REGIMES)
    seeds = tuple(range(grid.seeds)) if isinstance(grid.seeds, int) else grid.seeds
    if len(set(seeds)) != len(seeds):
        raise TableError(("grid", "seeds"), "names a seed twice; a repeated seed is the same run")
    study = Study(
        **{key: getattr(dataset, key) for key in DATASET_KEYS},
        name=read.name or path.stem,
        question=read.question,
        dataset=dataset.name,
        text=(dataset.text,) if isinstance(dataset.text, str) else dataset.text,
        splits=_shares(splits, brought),
        split_seed=splits.seed,
        splits_file=splits.file,
        folds=splits.folds or 0,
        targets=_distinct("targets", targets, str),
        methods=_distinct("deliveries", methods, lambda method: _meant(method, path.parent)),
        models=tuple(model for model in models if isinstance(model, str)),
        annotator_models=tuple(model for model in models if isinstance(model, AnnotatorNetwork)),
        seeds=seeds,
        reference=grid.reference,
        training=_settings("training", REGIMES[regime], given),
        path=path,
        sources=_sources(dataset, brought),
        basins=None if read.basins is None else _settings("basins", BasinSettings(), given),
        ood=None if read.ood is None else _ood(given, path.parent),
    )
    if not study.grid and not study.annotator_models:
        raise TableError(("grid", "deliveries"), f"has none that fits: {study.left_out}; add {', '.join(ONE_TARGET)}")
    _check_dataset(study, brought)
    _check_splits(study, () if brought is None else brought.splits)
    return study


def _check_dataset(study: Study, brought: LabelledSet | None) -> None:
    own = [key for key in ITEM_KEYS if getattr(study, key) is not None]
    if brought is None:
        if study.votes is None:
            raise TableError(("dataset", "votes"), "is missing: name a known dataset, or give a votes file")
        if not own:
            raise TableError(
                ("dataset", "texts"), "is missing: give texts, images or features of the items that were voted on"
            )
        if len(own) > 1:
            raise TableError(("dataset", own[1]), f"stands beside {own[0]}; give one of them")
    for key in ("votes", *ITEM_KEYS, "format", "reading", "original", "drop_missing_items"):
        if brought is not None and getattr(study, key) is not None:
            raise TableError(("dataset", key), "contradicts name: a known dataset brings its own votes and items")
    for key in ("item", "text"):
        if getattr(study, key) and study.texts is None:
            raise TableError(("dataset", key), "names a column of texts, and there are none; leave it out")
    if study.background is not None and study.images is None:
        raise TableError(("dataset", "background"), "is behind transparent images, and there are none; leave it out")
    if study.encoder is not None and study.features is not None:
        raise TableError(("dataset", "encoder"), "encodes texts or images, and features are given; leave one out")


def _check_splits(study: Study, brought: tuple[str, ...]) -> None:
    selects, on = study.selects, study.training.selection_split
    if study.folds:
        if study.splits:
            beside = list(study.splits)[-1]
            raise TableError(("splits", "folds"), f"stands beside {beside}; a fold is the test split: leave shares out")
        if selects and on != "validation":
            raise TableError(("training", "selection_split"), f"is '{on}'; folds have train, validation and test")
        if selects and study.folds < 3:
            raise TableError(
                ("splits", "folds"), f"is 2, and {study.chooses} is chosen on a fold of its own; give 3 or more"
            )
        return
    total = sum(study.splits.values())
    official = study.splits_file is not None or ("validation" not in brought and "train" in brought)
    carved = set(study.splits) == {"validation"} and official
    if carved and not 0 < total < 1:
        raise TableError(("splits", "validation"), f"is {total:g}; give the share of training items it takes, as 0.1")
    if study.splits and not carved and abs(total - 1) > 1e-9:
        raise TableError(("splits", next(iter(study.splits))), f"and its sisters sum to {total:g}; they must sum to 1")
    # Which splits a file has is seen when it is read.
    there = study.splits_file is not None or bool(study.splits.get(on)) or (on in brought and not study.splits)
    if selects and not there:
        raise TableError(
            ("training", "selection_split"),
            f"is '{on}', which no item is in, yet {study.chooses} is chosen there; give it a share under [splits]"
            + (', or set keep = "last" in the regime fixed-horizon' if study.chooses == "the best epoch" else ""),
        )


def _shares(splits: SplitsTable, brought: LabelledSet | None) -> dict[str, float]:
    """The share of items in each split; empty where a file, folds, or the dataset itself say who is where."""
    given = {name: getattr(splits, name) for name in SPLITS if getattr(splits, name) is not None}
    if given or splits.folds or (brought is not None and brought.splits):
        return given
    # A file may say only which items belong together; then the usual shares hold. Its reader sees.
    return {} if splits.file else dict(SHARES)


def _sources(dataset: DatasetTable, brought: LabelledSet | None) -> tuple[str, ...]:
    """The named sources of a set, or all of them."""
    known = () if brought is None else brought.sources
    named = known if dataset.sources is None else dataset.sources
    for source in named:
        if source not in known:
            raise no_such(("dataset", "sources"), source, known)
    if len(set(named)) != len(named):
        raise TableError(("dataset", "sources"), "names a source twice; a repeated source is the same study")
    return named


def _target(given: str | Target, dataset: DatasetTable, brought: LabelledSet | None) -> Target:
    # Imported here: schemes bring SciPy's statistics along, which a look at a study's name does not need.
    from dissensus.labels.labelling import SCHEMES

    place, target = ("grid", "targets"), Target(given) if isinstance(given, str) else given
    own = brought.targets if brought is not None else ("original",) if dataset.original else ()
    known = own if brought is not None and not brought.votes else (*own, *SCHEMES)
    if target.scheme not in known:
        raise no_such(place, target.scheme, known)
    if target.votes is not None and target.scheme in own:
        raise TableError(place, f"keeps {target.votes} votes of '{target.scheme}', which the dataset brings whole")
    if target.votes is None and target.seed:
        raise TableError(place, f"gives '{target.scheme}' a seed, which says what votes are kept; give votes too")
    return target


def _meant(method: Method, folder: Path) -> str:
    """A delivery with all its options, those that were left to their defaults too."""
    return f"{method.delivery} {sorted({**delivery_options(method.delivery, folder=folder), **method.options}.items())}"


def _method(given: str | dict[str, Any], folder: Path) -> Method:
    place, table = ("grid", "deliveries"), {"name": given} if isinstance(given, str) else dict(given)
    name = table.pop("name", None)
    if not isinstance(name, str) or (name not in DELIVERIES and ":" not in name):
        raise no_such(place, name if name is not None else given, DELIVERIES)
    for key, value in table.items():
        options = delivery_options(name, folder=folder)
        known_keys(place, [key], options)
        # What is None by default is a seed; each value of a list is tried, and validation chooses.
        hint = int if options[key] is None else type(options[key])
        tried = value if isinstance(value, list) and value else [value]
        wanted = next(filter(None, (fits(each, hint) for each in tried)), "") if name in DELIVERIES else ""
        if wanted:
            raise TableError(place, f"gives {name} {key} = {value!r}; give {wanted}")
    return Method(name, table)


def _model(given: str | ModelTable) -> str | AnnotatorNetwork:
    place, name = ("grid", "models"), given if isinstance(given, str) else given.name
    if name not in MODELS and ":" not in name:
        raise no_such(place, name, MODELS)
    if isinstance(given, str):
        return name
    if name == LOGISTIC:
        raise TableError(place, f"gives {LOGISTIC} people, whom it cannot know; give them a network such as linear")
    if name in PAIRS:
        raise TableError(place, f"gives {name} people, whose deviations would favour a side; leave people out")
    if given.people not in (*SHRINKAGE, GROUP):
        raise no_such(place, given.people, (*SHRINKAGE, GROUP))
    if given.people == GROUP and not given.by:
        raise TableError(place, "gives by = ''; name the attribute of annotators that groups go by")
    kind = "annotator-bias" if given.people == GROUP else given.people
    try:
        people = People(kind=kind, by=given.by, shrinkage=given.shrinkage, population=given.population)
    except InputError as error:
        raise TableError(place, f"is refused: {error}") from error
    return AnnotatorNetwork(name, people)


def _ood(given: Mapping[str, Any], folder: Path) -> OodSettings:
    """Sets lie beside the study's file, or else in the folder of downloaded data."""
    sets = {
        name: folder / path if (folder / path).exists() else data_folder() / path
        for name, path in given["ood"]["sets"].items()
    }
    if not sets:
        raise TableError(("ood", "sets"), 'is empty; name sets and their places, as { letters = "letters.npz" }')
    return _settings("ood", OodSettings(sets=sets), {"ood": {**given["ood"], "sets": sets}})


def _settings(table: str, base: Settings, given: Mapping[str, Any]) -> Settings:
    """Settings with what a table gives, and else as `base` has them."""
    wanted: dict[str, Any] = {key: value for key, value in given.get(table, {}).items() if key != "regime"}
    wanted = {key: tuple(value) if isinstance(value, list) else value for key, value in wanted.items()}
    try:
        return replace(base, **wanted)
    except InputError as error:
        wrong = next((key for key in wanted if f" {key} " in f" {error} "), "")
        raise TableError((table, wrong) if wrong else table, f"is refused: {error}") from error


def _distinct(key: str, listed: Sequence[Entry], meaning: Callable[[Entry], str]) -> tuple[Entry, ...]:
    """Refuses two entries that mean the same: their runs would be the same runs, counted twice."""
    seen: set[str] = set()
    for entry in listed:
        if meaning(entry) in seen:
            raise TableError(("grid", key), f"names {entry} twice; leave one out, or give it other options")
        seen.add(meaning(entry))
    return tuple(listed)
