"""What a panel of people and a model is worth, in people.

n people's votes of an item forecast its other votes as well as they can (`people_ruler`). A model's answer is one more
thing that is known of an item: the forecasts are then learnt from other items with the same answer, so that an answer
says what it was found to say, and a person's vote does too. A mixed panel of n people and the model is worth as many
people alone as forecast as well; a person in the model's place saves one person.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.bootstrap import percentile_estimate
from dissensus.evaluation.comparison.resampling import resampled_means
from dissensus.evaluation.finite_panel.people_ruler import first_crossings, people_ruler
from dissensus.labels.mixture import FOLDS

if TYPE_CHECKING:
    from dissensus.arrays import Codes
    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.finite_panel.panel import Panel


@dataclass(frozen=True, kw_only=True)
class Saved:
    """How many people a model saves a panel of n people at equal quality.

    Attributes:
        people: n, beside the model.
        saved: the number of further people who would do as much as the model; its ends lie on the ruler.
        fewer: the panel forecasts worse with the model than nobody does.
        more: the panel does better with the model than the ruler's end, so more are saved than the value says.
        high_open: the interval reaches beyond the ruler's end.
        most: where the ruler ends, in people.
    """

    people: int
    saved: Estimate
    fewer: bool
    more: bool
    high_open: bool
    most: int

    def __str__(self) -> str:
        if self.fewer:
            return "less than nobody"
        end = self.most - self.people
        low, high = self.saved.low, self.saved.high
        value = f"more than {end}" if self.more else f"{self.saved.value:z.1f}"
        if low is not None and low <= 0 and self.high_open:
            return "unknown"
        if low is None or high is None or (self.more and low == end):
            return value
        return f"{value} [{low:z.1f}, {f'more than {end}' if self.high_open else f'{high:z.1f}'}]"

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON, and the number in words."""
        return asdict(self) | {"words": str(self)}


def people_saved(
    panel: Panel, answer: Codes, *, question: Any | None = None, resamples: int = 1000, seed: int = 0
) -> list[Saved] | str:
    """How many people a model saves beside n = 0, 1, ... people, or the reason why that is not known.

    n = 0 is what the model's (items,) answers are worth alone. Intervals are percentiles over resamples of the items,
    for these people; all is on the items that reach the end of the ruler. Where there are several questions a panel of
    people knows the (items,) question, too.
    """
    if len(panel) < 2 * FOLDS:
        return f"{len(panel)} items are too few to learn from the others what an answer is worth"
    if (panel.mass.sum(axis=0) > 0).sum() < 2:
        return "all votes are for one class, which nobody needs to be asked for"
    asked = None if question is None else np.unique(np.asarray(question), return_inverse=True)[1]
    alone = people_ruler(panel, question=asked, seed=seed)
    if isinstance(alone, str):
        return alone
    classes, of = panel.mass.shape[1], np.zeros(len(answer)) if asked is None else asked
    # Of preferences, the answer to the swapped pair is the one at the mirrored place.
    other = np.where((answer >= 0) & (answer < classes), classes - 1 - answer, answer) if panel.pairs else answer
    _, codes = np.unique(np.stack([np.append(answer, other), np.append(of, of)]), axis=1, return_inverse=True)
    said, mirrored = np.split(codes.ravel(), 2)
    mixed = people_ruler(panel, question=said, mirrored=mirrored if panel.pairs else None, seed=seed)
    assert not isinstance(mixed, str)
    some = panel.size > alone.most
    curves = np.stack([alone.per_item[:, some], mixed.per_item[:, some]])
    means = resampled_means(curves, resamples=resamples, seed=seed)
    people, both = means[:, 0], means[:, 1]
    saved_people = []
    for n in range(alone.most):
        worth = first_crossings(both[:, n, None] - people)
        saved_people.append(
            Saved(
                people=n,
                saved=percentile_estimate(np.clip(worth, 0, alone.most) - n),
                fewer=bool(worth[0] == -np.inf),
                more=bool(worth[0] == np.inf),
                high_open=bool(resamples and (worth[1:] == np.inf).mean() > 0.025),
                most=alone.most,
            )
        )
    return saved_people
