"""A study as data: a small TOML file, checked key by key."""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dissensus.delivery import DELIVERIES, delivery_options
from dissensus.errors import InputError
from dissensus.training.models import MODELS
from dissensus.training.settings import REGIMES, Training, training_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

KEYS: Final[dict[str, tuple[str, ...]]] = {
    "": ("name", "question", "dataset", "splits", "grid", "training"),
    "dataset": ("name", "votes", "features", "format"),
    "splits": ("train", "validation", "test", "seed"),
    "grid": ("targets", "deliveries", "models", "seeds"),
    "training": ("regime", *(each.name for each in fields(Training))),
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

    @property
    def name(self) -> str:
        """What the target is called: the scheme, and the size of the panel where it was cut."""
        return self.scheme if self.votes is None else f"{self.scheme}, {self.votes} votes"


@dataclass(frozen=True)
class Method:
    """A delivery with its options."""

    delivery: str
    options: Mapping[str, Any] = field(default_factory=dict)


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
        splits: by name, shares of items.
        split_seed: of the split.
        targets: what runs are trained towards.
        methods: how it reaches the loss.
        models: names or import paths.
        seeds: of runs.
        training: settings.
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

    @property
    def folder(self) -> Path:
        """What relative paths are relative to."""
        return self.path.parent

    @property
    def size(self) -> int:
        """The number of runs."""
        return len(self.targets) * len(self.methods) * len(self.models) * len(self.seeds)


def shipped_studies() -> dict[str, Path]:
    """The studies that come with the package, by name."""
    folder = Path(str(resources.files("dissensus.studies"))) / "shipped"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def read_study(source: str | Path) -> Study:
    """A study from a file, or one that comes with the package by its name."""
    path = Path(source)
    if not path.suffix and not path.exists():
        known = shipped_studies()
        if str(source) not in known:
            raise InputError(f"'{source}' is no study; there are {', '.join(known)}, or give a .toml file")
        path = known[str(source)]
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the study cannot be read ({error}); give a TOML file in UTF-8") from error
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from error
    return _Reader(path, text).study(given)


class _Reader:
    """Checks a parsed study against its text, so that every refusal names the line."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.lines = path, text.splitlines()

    def study(self, given: dict[str, Any]) -> Study:
        for table, keys in KEYS.items():
            inside = given if not table else given.get(table, {})
            if not isinstance(inside, dict):
                raise self.refuse("", table, "must be a table, written as [" + table + "]")
            for key in inside:
                self.known(key, keys, table)
        dataset, splits = given.get("dataset", {}), dict(given.get("splits", {}))
        grid, training = given.get("grid", {}), given.get("training", {})
        split_seed = splits.pop("seed", 0)
        study = Study(
            name=given.get("name", self.path.stem),
            question=given.get("question", ""),
            dataset=dataset.get("name"),
            votes=dataset.get("votes"),
            features=dataset.get("features"),
            format=dataset.get("format"),
            splits=splits or {"train": 0.7, "validation": 0.15, "test": 0.15},
            split_seed=split_seed,
            targets=tuple(self.target(each) for each in self.listed(grid, "targets", ["frequency"])),
            methods=tuple(self.method(each) for each in self.listed(grid, "deliveries", ["soft"])),
            models=tuple(self.model(each) for each in self.listed(grid, "models", ["simple-ffn"])),
            seeds=self.seeds(grid.get("seeds", 1)),
            training=self.training(training),
            path=self.path,
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
        if abs(total - 1) > 1e-9 or min(study.splits.values()) < 0:
            raise self.refuse(
                "splits", next(iter(study.splits)), f"and its sisters sum to {total:g}; they must sum to 1"
            )
        if study.training.selects and not study.splits.get(study.training.selection_split):
            raise self.refuse(
                "training",
                "selection_split",
                f"is '{study.training.selection_split}', which no item is in, yet the best epoch is chosen there; give "
                'it a share under [splits], or set keep = "last" in the regime fixed-horizon',
            )

    def target(self, given: Any) -> Target:
        # Imported here: schemes bring SciPy's statistics along, which a look at a study's name does not need.
        from dissensus.labels.labelling import SCHEMES

        table = given if isinstance(given, dict) else {"scheme": given}
        for key in table:
            self.known(key, TARGET_KEYS, "grid", beside="targets")
        target = Target(**table) if "scheme" in table else None
        if target is None or target.scheme not in SCHEMES:
            raise self.no_such("targets", table.get("scheme", given), SCHEMES)
        if target.votes is not None and (not isinstance(target.votes, int) or target.votes < 1):
            raise self.refuse("grid", "targets", f"keeps {target.votes!r} votes an item; keep 1 or more")
        return target

    def method(self, given: Any) -> Method:
        table = dict(given) if isinstance(given, dict) else {"name": given}
        name = table.pop("name", None)
        if name not in DELIVERIES:
            raise self.no_such("deliveries", name if name is not None else given, DELIVERIES)
        for key in table:
            self.known(key, tuple(delivery_options(name)), "grid", beside="deliveries")
        return Method(name, table)

    def model(self, name: Any) -> str:
        if name not in MODELS and ":" not in str(name):
            raise self.no_such("models", name, MODELS)
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
            raise self.no_such("regime", regime, REGIMES, table="training")
        try:
            return training_settings(given)
        except (InputError, TypeError) as error:
            wrong = next((key for key in given if f" {key} " in f" {error} "), "regime")
            raise self.refuse("training", wrong, f"is refused: {error}") from error

    def listed(self, table: dict[str, Any], key: str, default: list[Any]) -> Sequence[Any]:
        given = table.get(key, default)
        if not isinstance(given, list) or not given:
            raise self.refuse("grid", key, f"is {given!r}; it must be a list with at least one entry")
        return given

    def known(self, key: str, keys: Sequence[str], table: str, *, beside: str | None = None) -> None:
        if key not in keys:
            where = f"in {beside}" if beside else f"in [{table}]" if table else "at the top"
            raise InputError(
                f"{self.path}, line {self.line(table, beside or key)}: '{key}' is no key {where}{_nearest(key, keys)}; "
                f"there are {', '.join(keys) or 'none'}"
            )

    def no_such(self, key: str, given: Any, known: Iterable[str], *, table: str = "grid") -> InputError:
        names = list(known)
        return InputError(
            f"{self.path}, line {self.line(table, key)}: {key} names '{given}', which is not there"
            f"{_nearest(str(given), names)}; there are {', '.join(names)}"
        )

    def refuse(self, table: str, key: str, what: str) -> InputError:
        return InputError(f"{self.path}, line {self.line(table, key)}: '{key}' {what}")

    def line(self, table: str, key: str) -> int:
        """The line of a key in a table; of the table where the key is not written; else 1."""
        inside, found = "", 1
        for number, line in enumerate(self.lines, start=1):
            header = re.match(r"\s*\[\s*([\w-]+)\s*\]", line)
            if header:
                inside = header[1]
                if inside == table or (not table and inside == key):
                    found = number
            if inside == table and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
                return number
        return found


def _nearest(given: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(given, list(names), n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else ""
