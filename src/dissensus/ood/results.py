"""What was measured on strange items: numbers with intervals, differences and histograms, ready for JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dissensus.bootstrap import Estimate
from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class StrangeSummary:
    """A strange set as it was used.

    Attributes:
        name: of the set.
        path: where it was read from.
        items: how many items were scored.
        there: how many the set holds.
        how: what was done to bring them to the models' input.
        familiar_too: how many of the scored items are also, number for number, among the scored familiar items.
        trained_on: how many of them are also among the training items.
    """

    name: str
    path: str
    items: int
    there: int
    how: str
    familiar_too: int
    trained_on: int


@dataclass(frozen=True, kw_only=True)
class OodMeasure:
    """One measure of one score of one system against one strange set.

    Attributes:
        strange: name of the strange set.
        score: name in `SCORES`.
        system: name of the system.
        measure: name in `MEASURES`.
        value: mean over seeds, with an interval for other items of both kinds and other seeds.
        by_seed: the value of each seed, in the order of `OodResult.seeds`.
    """

    strange: str
    score: str
    system: str
    measure: str
    value: Estimate
    by_seed: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class OodDifference:
    """A system minus the reference on one measure, over the same items and the seeds that both have.

    Attributes:
        strange: name of the strange set.
        score: name in `SCORES`.
        system: name of the system.
        reference: name of the system that is taken away.
        measure: name in `MEASURES`.
        value: mean over shared seeds of the difference, with a paired interval.
        seeds: how many seeds were paired.
    """

    strange: str
    score: str
    system: str
    reference: str
    measure: str
    value: Estimate
    seeds: int


@dataclass(frozen=True, kw_only=True)
class ScoreHistogram:
    """How a score lies on familiar and on strange items, all seeds of a system together.

    Attributes:
        strange: name of the strange set.
        score: name in `SCORES`.
        system: name of the system.
        edges: (bins + 1,) of equal width; they hold the middle 99.8 % of all values, and what lies outside is counted
            in the first or last bin.
        familiar: (bins,) numbers of (item, seed) values.
        stranger: (bins,) likewise of strange items.
    """

    strange: str
    score: str
    system: str
    edges: tuple[float, ...]
    familiar: tuple[int, ...]
    stranger: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class OodResult:
    """How well systems tell strange items from familiar ones.

    Attributes:
        split: the split that familiar items are from.
        familiar: how many familiar items were scored.
        strange: the strange sets.
        seeds: by system, the seeds of its runs.
        settings: what was asked for, as plain values.
        measures: one for each strange set, score, system and measure.
        differences: to the first system, one for each of the others.
        histograms: one for each strange set, score and system.
    """

    split: str
    familiar: int
    strange: tuple[StrangeSummary, ...]
    seeds: Mapping[str, tuple[int, ...]]
    settings: Mapping[str, Any]
    measures: tuple[OodMeasure, ...]
    differences: tuple[OodDifference, ...]
    histograms: tuple[ScoreHistogram, ...]

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems; differences are to the first."""
        return tuple(self.seeds)

    def get(self, strange: str, score: str, *, system: str, measure: str = "auroc") -> OodMeasure:
        """One measure."""
        for row in self.measures:
            if (row.strange, row.score, row.system, row.measure) == (strange, score, system, measure):
                return row
        raise InputError(f"ood: there is no {measure} of '{system}' with the score {score} on '{strange}'")

    def difference(self, strange: str, score: str, *, system: str, measure: str = "auroc") -> OodDifference | None:
        """A system minus the first system; None for the first itself, or where they share no seed."""
        for row in self.differences:
            if (row.strange, row.score, row.system, row.measure) == (strange, score, system, measure):
                return row
        return None

    def notes(self) -> list[str]:
        """What a reader should know before the numbers, in sentences: items that are in both kinds."""
        return [
            f"{each.name}: of {each.items:,} strange items {each.familiar_too:,} are also familiar items and "
            f"{each.trained_on:,} training items, exactly; nothing can tell those apart"
            for each in self.strange
            if each.familiar_too or each.trained_on
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> OodResult:
        """What `to_dict` gave, also after JSON."""
        return cls(
            split=given["split"],
            familiar=given["familiar"],
            strange=tuple(StrangeSummary(**each) for each in given["strange"]),
            seeds={name: tuple(seeds) for name, seeds in given["seeds"].items()},
            settings=_plain(given["settings"]),
            measures=tuple(
                OodMeasure(**{**each, "value": Estimate(**each["value"]), "by_seed": tuple(each["by_seed"])})
                for each in given["measures"]
            ),
            differences=tuple(
                OodDifference(**{**each, "value": Estimate(**each["value"])}) for each in given["differences"]
            ),
            histograms=tuple(
                ScoreHistogram(**{**each, **{part: tuple(each[part]) for part in ("edges", "familiar", "stranger")}})
                for each in given["histograms"]
            ),
        )


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
