"""Predictions that seem to know the votes that they are scored on: they lie closer to these than a truth would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import bdtrc, gammaln, ndtr, xlogy

from dissensus.evaluation.finite_panel.corrections import correct
from dissensus.votes.added import added_where_people_differ

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Table
    from dissensus.evaluation.finite_panel.panel import Panel
    from dissensus.evaluation.probabilities import Runs

CONSTANT: Final = 0.005
"""Predictions whose probabilities range over no more than this are the same for all items, and know no item's votes."""

COPY: Final = (0.1, 0.05, 15)
"""A copy is this much closer to shares of votes than these are to the truth, and than their own mean is to them, and
people differ on so many items: who few people are may be known, and not what all of them said."""

EXACT: Final = 0.005
"""So near to shares that votes can have, predictions mean these: they may have been rounded to two decimals."""

MATCHED: Final = 0.9
"""Of people who are few and known, or of votes that were chosen, this share of such predictions can only be copied."""

SCATTERED: Final = 5
"""People are so many times those who judge an item, or their habits can be known."""

FEW: Final = 20
"""Items up to which means are far from normal."""

CHOSEN: Final = (
    "people agree on these items less often than independent votes would: items seem to be chosen because people "
    "differ on them, or people so that they differ; what is best achievable, corrected scores and worth in people do "
    "not hold here, so score all items"
)


def chosen_to_differ(panel: Panel, *, errors: float = 4.0) -> str:
    """`CHOSEN` where votes differ more within items than independent ones could; else "".

    Two independent votes of an item with label distribution p agree with probability sum p^2. In the mean over items
    that is at least what votes of different items do, and all k of an item agree at least with the (k - 1)th power of
    it, both by Jensen's inequality, whatever the distributions. Votes fall below where items are kept because people
    differ on them, or asked about again until they do, or where people are put together so that they differ. By so
    many standard errors, with no item a sample of one. Where votes are many, items can be chosen by them unseen; little
    hangs on it there.
    """
    panel = panel.take(panel.size >= 2)
    if len(panel) < FEW:
        return ""
    k, shares, items = panel.size.astype(np.float64), panel.shares, len(panel)
    agree = (panel.mass**2 - panel.squares).sum(axis=1) / (k * (k - 1))
    mean = shares.mean(axis=0)
    across = (items * mean @ mean - (shares**2).sum(axis=1).mean()) / (items - 1)
    error = np.maximum((agree - 2 * shares @ mean).var(), _of_drawn(panel, mean[None]).mean())
    below = agree.mean() - across < -errors * np.sqrt(error / items)
    # Nothing that is not one vote can be the same as another.
    for size in np.unique(k[k > 2]) if panel.single else ():
        of, pairs = k == size, agree[k == size]
        same, least = panel.mass[of].max(axis=1) == size, pairs.mean() ** (size - 1)
        varies = (same - (size - 1) * pairs.mean() ** (size - 2) * pairs).var()
        error = np.maximum(varies, least * (1 - least)) / len(pairs)
        below |= len(pairs) >= FEW and same.mean() - least < -errors * np.sqrt(error)
    return CHOSEN if below else ""


def added_or_chosen(panel: Panel) -> str:
    """Why votes are no fair sample of what people would say; else "". Where they were added, they look chosen, too."""
    return added_where_people_differ(panel.mass, panel.squares.sum(axis=1), panel.size) or chosen_to_differ(panel)


def _of_drawn(panel: Panel, q: Table) -> Floats:
    """(..., items) the variance of pairs of single votes that are drawn from q, which few items may not show."""
    k, square = panel.size.astype(np.float64), (q**2).sum(axis=-1)
    return np.asarray(2 * panel.single / (k * (k - 1)) * (square - 2 * (q**3).sum(axis=-1) + square**2))


def knows_the_votes(panel: Panel, runs: Runs) -> str:
    """The warning for predictions closer to the votes of their items than what does not know them could be; else "".

    Of k votes with shares s, |s - q|^2 - (1 - |s|^2) / (k - 1) is |p - q|^2 in the mean, and so not below 0, whatever
    the votes were drawn from (corrected Brier): for any q that does not know them, and for q^2 made to sum to 1, which
    finds shares that were flattened. Where n people of habits of their own cast them all, in turn, it may be lower by
    what people differ, at most (1 - |s|^2) k / (k - 1), divided by n - 1: where all of them judged every item, or where
    votes seem `chosen_to_differ`, only a copy is too close. Nor can they be the very shares too often (`_copied`). What
    is the same for all items knows no item's votes. By four standard errors, because by three up to 2 % of simulated
    sets of 50 items call the truth too close. Scores beside what is best achievable tell less: of predictions made with
    the votes soft NLL finds half as many, and Brier accuses the truth in one set of five.

    Args:
        panel: the judgements; items with one are left out.
        runs: (seeds, items, classes) predictions; one of the seeds suffices.
    """
    several = panel.size >= 2
    some, runs = panel.take(several), runs[:, several]
    runs = runs[np.ptp(runs, axis=1).max(axis=1) > CONSTANT] if several.any() else runs[:0]
    if not len(runs):
        return ""
    k, shares, people = some.size.astype(np.float64), some.shares, np.inf
    if some.annotator is not None:
        judged = np.bincount(some.annotator).astype(np.float64)
        people = judged.sum() ** 2 / (judged**2).sum()
    differ = (some.squares.sum(axis=1) / k - (shares**2).sum(axis=1)) * k / (k - 1)
    noise, habits = differ / k, differ.mean() / max(people - 1, 1e-9)
    of_truth, of_mean, least = COPY
    near = min(of_truth * noise.mean(), of_mean * shares.var(axis=0).sum()) if (differ > 0).sum() >= least else 0.0
    # Where votes may be chosen, nobody is accused for it.
    chosen = chosen_to_differ(some, errors=2.0)
    independent = people > SCATTERED * k.mean() and not chosen
    copied = np.array([_copied(some, q, independent=independent) for q in runs])
    for power in (1, 2):
        q = runs**power / np.maximum((runs**power).sum(axis=2, keepdims=True), 1e-12)
        distance = ((q - shares) ** 2).sum(axis=2)
        # Of few items all may happen to be alike; single votes drawn from the predictions themselves vary by so much.
        error = np.sqrt(np.maximum((distance - noise).var(axis=1), _of_drawn(some, q).mean(axis=1)) / len(some))
        beyond = (distance - noise).mean(axis=1) + 4 * error < -habits
        for run in np.flatnonzero(beyond | copied | (distance.mean(axis=1) < near)):
            # Now over annotators too. Twice the half width of a 95 % interval is four standard errors.
            found = correct("brier", some, q[run]).estimate
            assert found is not None
            sure = found.high is not None and 2 * found.high - found.value < -habits
            if copied[run] or distance[run].mean() < near or (sure and not chosen):
                few = "" if some.annotator is not None else "the same few people judged all items, or "
                return (
                    "the predictions seem to know the votes that they are scored on: they are closer to these votes "
                    "than honest predictions could be if the votes were independent. If the predictions are honest, "
                    f"{few}the items, or the people asked, were chosen so that people differ"
                )
    return ""


def _copied(panel: Panel, q: Table, *, independent: bool) -> bool:
    """Whether (items, classes) predictions are the very shares of contested items too often not to be made of them.

    A prediction that is as good as c / k, for k votes of which not all are for one class, means the counts c. Votes
    that are independent given the item are c with a probability of at most its own under c / k, so that more matches
    than the binomial distribution of the mean of these allows, by four standard errors, know the votes (Hoeffding
    1956). Where they are not `independent`, most must match, on items with four votes or more.
    """
    if not panel.single:
        return False
    k = panel.size[:, None].astype(np.float64)
    meant = np.rint(q * k)
    exact = (np.abs(q - meant / k) <= EXACT).all(axis=1) & (meant.sum(axis=1) == panel.size)
    contested = exact & (meant.max(axis=1) < panel.size) & (independent | (panel.size >= 4))
    same = int((meant == panel.counts).all(axis=1)[contested].sum())
    if not independent:
        return same >= max(COPY[2], MATCHED * int(contested.sum()))
    if not same:
        return False
    most = (gammaln(k[:, 0] + 1) - gammaln(meant + 1).sum(axis=1) + xlogy(meant, meant / k).sum(axis=1))[contested]
    return bool(bdtrc(same - 1, contested.sum(), np.exp(most).mean()) < ndtr(-4))
