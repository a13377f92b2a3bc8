"""What a bundle needs beside people: thresholds for sets and asking, and how predictions and votes come together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.evaluation.calibration import Calibrator
from dissensus.evaluation.scoring import panel_or_reason
from dissensus.labels.mixture import Dirichlet, Mixture
from dissensus.together.combining import LEAST, Combination, learn_combination
from dissensus.together.deferral import gains_of_votes, threshold_of
from dissensus.together.sets import coverage_and_size, mass_before, prediction_sets, set_thresholds
from dissensus_train.training.data import TRAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Table
    from dissensus_train.studies import ScoredStudy
    from dissensus_train.studies.scored import StudySystem

SET_LEVELS = (*(np.arange(1, 100) / 100).tolist(), 0.995, 0.999)
"""Levels that a bundle has thresholds for; the one in SHOWN_LEVEL is on its card."""

SHOWN_LEVEL = 0.9

SHARES = tuple((np.arange(1, 101) / 100).tolist())
"""Shares of items that a bundle has thresholds for; the one in SHOWN_SHARE is on its card."""

SHOWN_SHARE = 0.1

_KEPT: Final = ("strengths", "slopes", "centre", "scale", "shares")
_NUMBERS: Final = ("own", "clarity")
_OF_CALIBRATORS: Final = ("matrix", "bias")


def prediction(scored: ScoredStudy, system: StudySystem, seeds: Sequence[int], split: str | None = None) -> Table:
    """(items, classes) what a model of these members says of a split's items; by default, of the held-out ones."""
    rows = [place for place, member in enumerate(system.runs) if member.seed in seeds]
    return np.asarray(system.predictions[split or scored.split][rows].mean(axis=0, dtype=np.float64))


def beside_people(
    scored: ScoredStudy, system: StudySystem, seeds: Sequence[int]
) -> tuple[dict[str, Any] | None, Combination | None]:
    """What a bundle needs for use beside people, learnt from votes on the split that chose the model.

    Where there is none, from the held-out ones; never from items that trained it. `sets` has a threshold by level
    (None: every class), and how sets do at one of them on the items of a split, in the mean and with intervals. `defer`
    has the gain that each share of the items have or exceed, and the share of the held-out items that one of them sends
    to people; it is there where votes suffice for the combination that gains are told by.
    """
    data = scored.opened.data
    splits = (scored.opened.study.training.selection_split, scored.split)
    split = next((name for name in splits if name in data.splits and name != TRAIN), None)
    if split is None or not data.human.counts.any():
        return None, None
    people, said = data.human.take(data.splits[split]), prediction(scored, system, seeds, split)
    thresholds = set_thresholds(people.probabilities, mass_before(said, ordered=people.ordered), SET_LEVELS)
    sets = prediction_sets(people, said, level=SHOWN_LEVEL, classes=people.classes)
    held, size = sets.score().coverage, sets.score().size
    if split != scored.split:
        held, size = coverage_and_size(scored.human.probabilities, sets.of(prediction(scored, system, seeds)))
    about = {"level": SHOWN_LEVEL, "split": scored.split, "coverage": held.to_dict(), "size": size.to_dict()}
    limits = [None if np.isinf(limit) else limit for limit in thresholds.tolist()]
    table = {"levels": SET_LEVELS, "thresholds": limits, "shown": about}
    together = {"split": split, "items": len(people), "sets": table}
    panel, _ = panel_or_reason(people, data.votes)
    if panel is None or (panel.size > 1).sum() < LEAST:
        return together, None
    combination = learn_combination(panel, [said[None]])
    gain = gains_of_votes(combination, [said[None]])[:, 0]
    prices = [threshold_of(gain, share) for share in SHARES]
    there = gains_of_votes(combination, [prediction(scored, system, seeds)[None]])[:, 0]
    sent = float((there >= prices[SHARES.index(SHOWN_SHARE)]).mean())
    about = {"share": SHOWN_SHARE, "split": scored.split, "sent": sent, "cost": prices[SHARES.index(SHOWN_SHARE)]}
    return {**together, "defer": {"shares": SHARES, "thresholds": prices, "shown": about}}, combination


def arrays_of(combination: Combination) -> dict[str, Any]:
    """A combination as arrays by name, for an npz file."""
    prior, calibrators = combination.prior, combination.calibrators
    return {
        **{name: getattr(combination, name) for name in (*_KEPT, *_NUMBERS)},
        **{name: np.stack([getattr(each, name) for each in calibrators]) for name in _OF_CALIBRATORS},
        **({"alpha": prior.alpha} if isinstance(prior, Dirichlet) else vars(prior)),
    }


def combination_of(arrays: Mapping[str, Any]) -> Combination:
    """From what `arrays_of` gives."""
    known: Any = {"kind": "dirichlet", "given": "probabilities", "soft_nll": np.nan, "soft_nll_before": np.nan}
    # Older bundles know nothing of clarity, which was 1.
    numbers: Any = {name: float(arrays[name]) for name in _NUMBERS if name in arrays}
    return Combination(
        prior=Dirichlet(arrays["alpha"]) if "alpha" in arrays else Mixture(arrays["points"], arrays["weights"]),
        calibrators=tuple(
            Calibrator(matrix=matrix, bias=bias, converged=True, **known)
            for matrix, bias in zip(*(arrays[name] for name in _OF_CALIBRATORS), strict=True)
        ),
        **{name: arrays[name] for name in _KEPT},
        **numbers,
    )
