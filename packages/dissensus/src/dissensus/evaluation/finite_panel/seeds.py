"""Does a model know what it does not know, and does it know what people do not agree on?

Seeds are an ensemble. What they disagree about is epistemic: the mutual information of an item, H(mean q) - mean H(q),
is held against the squared error of the mean distribution. What each of them is unsure of is aleatoric: their expected
entropy, mean H(q), is held against people's entropy, corrected for few votes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.evaluation.finite_panel.corrections import correct, entropies_of_people, squared_errors
from dissensus.evaluation.metrics.distances import entropy

if TYPE_CHECKING:
    from dissensus.arrays import Floats
    from dissensus.evaluation.finite_panel.finding import Finding
    from dissensus.evaluation.finite_panel.panel import Panel
    from dissensus.evaluation.probabilities import Runs


@dataclass(frozen=True, kw_only=True)
class OfSeeds:
    """What the seeds of a system tell of its uncertainty, in the mean over items.

    Attributes:
        seeds: how many.
        mutual_information: nats; what the seeds disagree about.
        error: squared error of the mean distribution against everybody's, corrected for few votes.
        explained: the error that seeds which differ by chance alone leave their mean, their variance / seeds, as a part
            of that error: 1 where the model's error is what its seeds disagree about, 0 where they err together.
            None where the error is not above 0.
        error_where_sure: the error on the half of items with the least mutual information.
        error_where_unsure: that on the other half.
        expected_entropy: nats; the mean entropy of single seeds.
        beyond_people: expected entropy less people's, corrected for few votes: the signed EntCE.
    """

    seeds: int
    mutual_information: float
    error: Finding
    explained: float | None
    error_where_sure: float | None
    error_where_unsure: float | None
    expected_entropy: float
    beyond_people: Finding

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return asdict(self)


def of_seeds(
    panel: Panel, runs: Runs, *, resamples: int = 1000, seed: int = 0, entce: Finding | None = None
) -> OfSeeds:
    """What (seeds, items, classes) predictions of two seeds or more tell of a model's uncertainty.

    `entce` is the corrected EntCE of the same runs, where it was computed already, which takes longest.
    """
    mean, seeds = runs.mean(axis=0), len(runs)
    information, of_single = _parts(runs)
    drawn: Any = {"resamples": resamples, "seed": seed}
    error = correct("brier", panel, mean, **drawn)
    several = panel.size > 1
    errors = squared_errors(panel.mass, panel.squares, panel.size, mean)[several]
    ordered = errors[np.argsort(information[several], kind="stable")]
    halves = [float(half.mean()) if half.size else None for half in np.array_split(ordered, 2)]
    value = None if error.estimate is None else error.estimate.value
    chance = float(runs.var(axis=0, ddof=1)[several].sum(axis=1).mean()) / seeds if several.any() else 0.0
    return OfSeeds(
        seeds=seeds,
        mutual_information=float(information.mean()),
        error=error,
        explained=chance / value if value is not None and value > 0 else None,
        error_where_sure=halves[0],
        error_where_unsure=halves[1],
        expected_entropy=float(of_single.mean()),
        beyond_people=correct("entce", panel, runs, **drawn) if entce is None else entce,
    )


@dataclass(frozen=True, kw_only=True)
class Course:
    """Items in groups of equal size: what the seeds say of a group in the mean, and what is true of it.

    Attributes:
        information: (groups,) mutual information, nats, ascending.
        error: (groups,) of these groups, squared error of the mean distribution, corrected for few votes.
        expected_entropy: (groups,) nats, ascending; groups of their own.
        entropy_of_people: (groups,) nats, corrected for few votes; None where judgements are not single votes.
    """

    information: Floats
    error: Floats
    expected_entropy: Floats
    entropy_of_people: Floats | None


def course_of_seeds(panel: Panel, runs: Runs, *, groups: int = 5) -> Course | None:
    """Does the error grow with what seeds disagree about, and people's entropy with what single seeds are unsure of?

    The seeds alone put items into groups, so that no vote is held against what it chose. None with too few items that
    have two judgements.
    """
    several = np.flatnonzero(panel.size > 1)
    if len(several) < 2 * groups:
        return None
    panel, runs = panel.take(several), runs[:, several]
    mean = runs.mean(axis=0)
    information, of_single = _parts(runs)

    def grouped(by: Floats, *values: Floats) -> list[Floats]:
        parts = np.array_split(np.argsort(by, kind="stable"), groups)
        return [np.array([value[part].mean() for part in parts]) for value in (by, *values)]

    uncertain, error = grouped(information, squared_errors(panel.mass, panel.squares, panel.size, mean))
    unsure, *people = grouped(of_single, *([entropies_of_people(panel, mean)] if panel.single else []))
    return Course(
        information=uncertain, error=error, expected_entropy=unsure, entropy_of_people=people[0] if people else None
    )


def _parts(runs: Runs) -> tuple[Floats, Floats]:
    """(items,) mutual information of (seeds, items, classes) predictions, and the mean entropy of single seeds."""
    of_single = np.mean([entropy(run) for run in runs], axis=0)
    return np.asarray(entropy(runs.mean(axis=0)) - of_single), np.asarray(of_single)
