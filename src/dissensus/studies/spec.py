"""A study as data: a small TOML file, checked key by key."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dissensus.basins import BasinSettings
from dissensus.datasets import data_folder
from dissensus.delivery import DELIVERIES, delivery_options
from dissensus.errors import InputError
from dissensus.ood.settings import OodSettings
from dissensus.studies.labelled_sets import LABELLED_SETS
from dissensus.toml_file import TomlFile
from dissensus.training.models import MODELS
from dissensus.training.settings import REGIMES, Training, training_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dissensus.studies.labelled_sets import LabelledSet

Settings = TypeVar("Settings")
Entry = TypeVar("Entry")

KEYS: Final[dict[str, tuple[str, ...]]] = {
    "": ("name", "question", "dataset", "splits", "grid", "training", "basins", "ood"),
    "dataset": ("name", "sources", "votes", "features", "format"),
    "splits": ("train", "validation", "test", "seed"),
    "grid": ("targets", "deliveries", "models", "seeds"),
    "training": ("regime", *(each.name for each in fields(Training))),
    "basins": tuple(each.name for each in fields(BasinSettings)),
    "ood": tuple(each.name for each in fields(OodSettings)),
}
"""The keys of a study file, by table."""

TARGET_KEYS: Final = ("scheme", "votes", "seed")


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


@dataclass(frozen=True, kw_only=True)
class Study:
    """A grid of runs on one dataset: every target by every delivery, model and seed.

    Attributes:
        name: of the study.
        question: what it asks, for the report.
        dataset: the name of a known dataset with features, or None where files are given.
        votes: a votes file.
        features: a features file.
        format: of the votes file, where it cannot be told.
        splits: by name, shares of items; empty where the dataset brings its own.
        split_seed: of the split.
        targets: what runs are trained towards.
        methods: how it reaches the loss.
        models: names or import paths.
        seeds: of runs.
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
    sources: tuple[str, ...] = ()
    basins: BasinSettings | None = None
    ood: OodSettings | None = None

    @property
    def folder(self) -> Path:
        """What relative paths are relative to."""
        return self.path.parent

    @property
    def size(self) -> int:
        """The number of runs."""
        grid = len(self.targets) * len(self.methods) * len(self.models) * len(self.seeds)
        return grid * max(len(self.sources), 1)

    @property
    def parts(self) -> tuple[Study, ...]:
        """The study itself; where its dataset has several sources, one study for each, `NAME-SOURCE`."""
        if len(self.sources) < 2:
            return (self,)
        return tuple(replace(self, name=f"{self.name}-{source}", sources=(source,)) for source in self.sources)


def shipped_studies() -> dict[str, Path]:
    """The studies that come with the package, by name."""
    folder = Path(str(resources.files("dissensus.studies"))) / "shipped"
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
    raise InputError(f"'{source}' is no study; there are {', '.join(known)}, or give a .toml file")


class _StudyFile(TomlFile):
    """Checks a parsed study against its text, so that every refusal names the line."""

    def study(self) -> Study:
        self.tables(KEYS)
        given, dataset, splits = self.given, self.table("dataset"), dict(self.table("splits"))
        grid, training = self.table("grid"), self.table("training")
        split_seed = splits.pop("seed", 0)
        brought = LABELLED_SETS.get(str(dataset.get("name")))
        shares = {} if brought is not None else {"train": 0.7, "validation": 0.15, "test": 0.15}
        study = Study(
            name=given.get("name", self.path.stem),
            question=given.get("question", ""),
            dataset=dataset.get("name"),
            votes=dataset.get("votes"),
            features=dataset.get("features"),
            format=dataset.get("format"),
            splits=splits or shares,
            split_seed=split_seed,
            targets=self.distinct(
                "targets",
                [self.target(each, brought) for each in self.listed(grid, "targets", ["frequency"])],
                lambda target: target.name,
            ),
            methods=self.distinct(
                "deliveries",
                [self.method(each) for each in self.listed(grid, "deliveries", ["soft"])],
                lambda method: (
                    f"{method.delivery} {sorted({**delivery_options(method.delivery), **method.options}.items())}"
                ),
            ),
            models=self.distinct(
                "models", [self.model(each) for each in self.listed(grid, "models", ["simple-ffn"])], str
            ),
            seeds=self.seeds(grid.get("seeds", 1)),
            training=self.training(training),
            path=self.path,
            sources=self.sources(dataset, brought),
            basins=self.settings("basins", BasinSettings, self.table("basins")) if "basins" in self.given else None,
            ood=self.ood(self.table("ood")),
        )
        self.consistent(study)
        return study

    def consistent(self, study: Study) -> None:
        if study.dataset is None and (study.votes is None or study.features is None):
            raise self.refuse("dataset", "name", "is missing: name a known dataset, or give votes and features files")
        if study.dataset is not None and (study.votes or study.features):
            extra = "votes" if study.votes else "features"
            raise self.refuse("dataset", extra, "contradicts name: a known dataset brings its own votes and features")
        for name, share in study.splits.items():
            if not isinstance(share, int | float) or isinstance(share, bool):
                raise self.refuse("splits", name, f"is {share!r}; a split is a share of items such as 0.7")
        total = sum(study.splits.values())
        if study.splits and (abs(total - 1) > 1e-9 or min(study.splits.values()) < 0):
            raise self.refuse(
                "splits", next(iter(study.splits)), f"and its sisters sum to {total:g}; they must sum to 1"
            )
        brought = LABELLED_SETS[str(study.dataset)].splits if not study.splits else ()
        selects_on = study.training.selection_split
        if study.training.selects and not study.splits.get(selects_on) and selects_on not in brought:
            raise self.refuse(
                "training",
                "selection_split",
                f"is '{study.training.selection_split}', which no item is in, yet the best epoch is chosen there; give "
                'it a share under [splits], or set keep = "last" in the regime fixed-horizon',
            )

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
        own = () if brought is None else brought.targets
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

    def method(self, given: Any) -> Method:
        table = dict(given) if isinstance(given, dict) else {"name": given}
        name = table.pop("name", None)
        if name not in DELIVERIES:
            raise self.no_such("grid", "deliveries", name if name is not None else given, DELIVERIES)
        for key in table:
            self.known(key, tuple(delivery_options(name)), "grid", beside="deliveries")
        return Method(name, table)

    def model(self, name: Any) -> str:
        if name not in MODELS and ":" not in str(name):
            raise self.no_such("grid", "models", name, MODELS)
        return str(name)

    def seeds(self, given: Any) -> tuple[int, ...]:
        listed = range(given) if isinstance(given, int) and not isinstance(given, bool) else given
        if (
            isinstance(listed, str)
            or not all(isinstance(seed, int) and seed >= 0 for seed in listed)
            or not len(listed)
        ):
            raise self.refuse(
                "grid", "seeds", f"is {given!r}; give how many, or a list of whole numbers such as [0, 1, 2]"
            )
        if len(set(listed)) != len(listed):
            raise self.refuse("grid", "seeds", "names a seed twice; a repeated seed is the same run")
        return tuple(listed)

    def training(self, given: dict[str, Any]) -> Training:
        regime = given.get("regime", "early-stopping")
        if regime not in REGIMES:
            raise self.no_such("training", "regime", regime, REGIMES)
        return self.settings("training", lambda **given: training_settings(given), given)

    def ood(self, given: dict[str, Any]) -> OodSettings | None:
        if "ood" not in self.given:
            return None
        sets = given.get("sets")
        if not isinstance(sets, dict) or not all(isinstance(path, str) for path in sets.values()):
            raise self.refuse(
                "ood", "sets", 'must name out-of-distribution sets and their places: { letters = "letters.npz" }'
            )
        made = {**given, "sets": {name: self.found(path) for name, path in sets.items()}}
        if isinstance(given.get("scores"), list):
            made["scores"] = tuple(given["scores"])
        return self.settings("ood", OodSettings, made)

    def found(self, path: str) -> Path:
        """A path beside the study's file, or else in the folder of downloaded data."""
        beside = self.path.parent / path
        return beside if beside.exists() else data_folder() / path

    def settings(self, table: str, kind: Callable[..., Settings], given: dict[str, Any]) -> Settings:
        try:
            return kind(**given)
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
