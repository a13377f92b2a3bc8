"""What was measured of out-of-distribution detection: numbers with intervals, differences, histograms; as JSON too."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 (msgspec reads the types)
from dataclasses import asdict, dataclass
from typing import Any

from dissensus.bootstrap import Estimate  # noqa: TC001 (likewise)
from dissensus.errors import InputError
from dissensus.frames import Framed
from dissensus.votes.echo import number


@dataclass(frozen=True, kw_only=True)
class OodSetSummary:
    """An OOD set as it was used: how many of the items that are `there` were scored, and how they became inputs.

    Its kind is near or far, as it was stated; empty where it was not. Of the scored items, so many are also, number for
    number, among the scored ID items (`in_distribution_too`) or among the training items (`trained_on`). So many are
    `distinct` in some score.
    """

    name: str
    kind: str
    items: int
    there: int
    how: str
    path: str = ""
    in_distribution_too: int = 0
    trained_on: int = 0
    distinct: int = 0


@dataclass(frozen=True, kw_only=True)
class ScoreOnSet:
    """A score of a system on an OOD set; or, of a number, on near or far: the mean over the sets of that kind."""

    ood_set: str
    score: str
    system: str


@dataclass(frozen=True, kw_only=True)
class OodRow(ScoreOnSet):
    """One of `MEASURES`: its mean over seeds, with an interval over items (ID and OOD) and seeds."""

    measure: str
    value: Estimate

    @property
    def about(self) -> tuple[str, str, str, str]:
        """What the number is of: OOD set, score, system and measure."""
        return self.ood_set, self.score, self.system, self.measure


@dataclass(frozen=True, kw_only=True)
class OodMeasure(OodRow):
    """A system's own value, and that of each of its seeds; one for disagreement, which is of all seeds together."""

    by_seed: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class OodDifference(OodRow):
    """A system minus the reference, on the same items and seeds; `seeds` were paired (1 for disagreement)."""

    reference: str
    seeds: int


@dataclass(frozen=True, kw_only=True)
class ScoreHistogram(ScoreOnSet):
    """How a score is distributed over ID and over OOD items, (bins,) numbers of (item, seed) values each.

    Bins of equal width between (bins + 1,) edges hold the middle 99.8 % of all values; what lies outside is counted in
    the first or last.
    """

    edges: tuple[float, ...]
    in_distribution: tuple[int, ...]
    ood: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class RocCurve(ScoreOnSet):
    """The ROC of a score: by share of ID items flagged, that of OOD items, the mean over a system's seeds."""

    alarms: tuple[float, ...]
    hits: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class OodResult(Framed):
    """How well systems separate out-of-distribution (OOD) items from in-distribution (ID) ones.

    Attributes:
        split: the split that ID items are from; empty where a model's outputs were given.
        in_distribution: how many ID items were scored.
        sets: the OOD sets.
        seeds: by system, the seeds of its runs.
        settings: what was asked for, as plain values.
        measures: one for each OOD set, score, system and measure.
        differences: from the first system, for each of the others.
        histograms: one for each OOD set, score and system.
        curves: likewise.
        left_out: a sentence for each score that could not be computed.
    """

    split: str
    in_distribution: int
    sets: tuple[OodSetSummary, ...]
    seeds: Mapping[str, tuple[int, ...]]
    settings: Mapping[str, Any]
    measures: tuple[OodMeasure, ...]
    differences: tuple[OodDifference, ...]
    histograms: tuple[ScoreHistogram, ...]
    curves: tuple[RocCurve, ...]
    left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        held = f"{self.in_distribution:,} in-distribution items, {len(self.sets)} sets, {len(self.seeds)} systems"
        return f"OodResult({held})"

    def records(self) -> list[dict[str, Any]]:
        """A row per set, score, system and measure."""
        return [asdict(measure) for measure in self.measures]

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems; differences are from the first."""
        return tuple(self.seeds)

    @property
    def kinds(self) -> dict[str, tuple[str, ...]]:
        """The names of the near sets and of the far ones, where any were stated."""
        stated = {
            kind: tuple(summary.name for summary in self.sets if summary.kind == kind) for kind in ("near", "far")
        }
        return {kind: names for kind, names in stated.items() if names}

    @property
    def against(self) -> str:
        """The ID items, in words."""
        of_split = f" of the split {self.split}" if self.split else ""
        return f"{self.in_distribution:,} in-distribution items{of_split}"

    def get(self, ood_set: str, score: str, *, system: str, measure: str = "auroc") -> OodMeasure:
        """One measure."""
        wanted = (ood_set, score, system, measure)
        for row in self.measures:
            if row.about == wanted:
                return row
        raise InputError(f"ood: there is no {measure} of '{system}' with the score {score} on '{ood_set}'")

    def difference(self, ood_set: str, score: str, *, system: str, measure: str = "auroc") -> OodDifference | None:
        """A system minus the first system; None for the first itself, or where they share no seed."""
        wanted = (ood_set, score, system, measure)
        return next((row for row in self.differences if row.about == wanted), None)

    def notes(self) -> list[str]:
        """What a reader should know before the numbers: scores left out, items in both sets, few or identical items."""
        alike = [
            f"{summary.name}: its {summary.items:,} OOD items have {summary.distinct:,} different scores: their inputs "
            "may be the same (an encoder knows no word of theirs, or images are blank); give others"
            for summary in self.sets
            if 0 < summary.distinct < summary.items
        ]
        few = [
            f"{summary.name}: with {number(summary.items, 'OOD item')} hardly anything can be told; give 20 or more, "
            "better 100"
            for summary in self.sets
            if summary.items < 20
        ]
        return [*self.left_out, *few, *alike] + [
            f"{summary.name}: of {summary.items:,} OOD items {summary.in_distribution_too:,} are also in-distribution "
            f"items and {summary.trained_on:,} also training items, number for number; no score can separate those"
            for summary in self.sets
            if summary.in_distribution_too or summary.trained_on
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> OodResult:
        """What `to_dict` gave, also after JSON."""
        import msgspec

        settings = {key: list(part) if isinstance(part, tuple) else part for key, part in stored["settings"].items()}
        return msgspec.convert({**stored, "settings": settings}, cls)
