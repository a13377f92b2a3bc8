"""Best achievable: what a perfect model would score against so few votes.

A perfect model says each item's true distribution p. Held against k votes it still scores badly, because their shares
are not p. No model can be expected to do better, and a score near it is as good as the votes can tell.

p is not known, so the expected score E[metric(shares of k votes, p)] is a function h_k(p) whose mean over items is
estimated as corrected scores are, with no assumption about p:

- Brier has h = (E|x|^2 - |p|^2) / k, without bias from pairs of judgements, and so has the ranked probability score,
  of cumulated judgements;
- soft NLL, KL and EntCE follow from the entropy of p, and JSD, TVD and Wasserstein are sums over classes of a function
  of one probability: bracketed by `bracket`;
- accuracy, expected accuracy and the absolute EntCE depend on the whole of p: bracketed by `patterns`.

Where the interval is so wide that it says next to nothing, the number is withheld: one vote per item tells nothing of p
beyond its mean.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import entr, xlog1py, xlogy

from dissensus.bootstrap import Estimate
from dissensus.evaluation.finite_panel.bracket import Bracket, fit_polynomials, jsd_of_cell, log_ways
from dissensus.evaluation.finite_panel.corrections import LEVEL, SINGLE_ONLY, mean_bracket
from dissensus.evaluation.finite_panel.finding import Finding, withheld
from dissensus.evaluation.finite_panel.panel import cumulated
from dissensus.evaluation.finite_panel.patterns import OfTruth, bracket_patterns, entropy_missed, leader_wins
from dissensus.evaluation.finite_panel.shared_annotators import THESE_PEOPLE, shared
from dissensus.evaluation.metrics.distances import LN2, abs_entce
from dissensus.evaluation.metrics.ranking import accuracy
from dissensus.evaluation.metrics.registry import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dissensus.arrays import Counts, Floats, Ints, Table
    from dissensus.evaluation.finite_panel.bracket import CellFunction
    from dissensus.evaluation.finite_panel.panel import Panel

    OfCell = Callable[[Floats, int], Floats]
    """A true probability and a number of votes k to h_k, elementwise."""

SAYS_NOTHING: Final = 0.8
"""An interval as wide as this part of the way from an ideal score to that of a constant prediction says nothing."""

GRID_SLACK: Final = 0.01
"""By how much of its value an interval is widened on either side for what may stick out between points of a grid."""


def best_achievable(names: Iterable[str], panel: Panel, *, resamples: int = 1000, seed: int = 0) -> dict[str, Finding]:
    """For each metric what a perfect model would be expected to score against panels of these sizes.

    For a metric where higher is better this is the highest expected score. The interval is over items.

    Args:
        names: of metrics in the registry.
        panel: the judgements.
        resamples: of items, for the intervals.
        seed: random seed.
    """
    wanted = list(dict.fromkeys(names))
    known = [name for name in wanted if panel.single or name in QUADRATIC]
    brackets = _brackets(known, panel.with_mirror_images(), seed=seed)
    return {
        name: _finding(name, panel, brackets[name], resamples=resamples, seed=seed)
        if name in brackets
        else withheld(_why_not(name, panel))
        for name in wanted
    }


QUADRATIC: Final = ("brier", "rps")
"""What is known exactly from pairs of judgements, also of several votes each."""


def _finding(name: str, panel: Panel, bracket: Bracket, *, resamples: int, seed: int) -> Finding:
    # Mirror images of preferences were there for what all items share.
    low, middle, high = (end[None, : len(panel)] for end in (bracket.low, bracket.middle, bracket.high))
    value, least, most, _ = mean_bracket(low, middle, high, resamples=resamples, seed=seed)
    metric = METRICS[name]
    # Bounds are held against true probabilities on a grid, and rounding may even put the ends the other way round.
    slack = GRID_SLACK * abs(value)
    low_end = float(np.clip(min(least, most) - slack, metric.low, metric.high))
    high_end = float(np.clip(max(least, most) + slack, metric.low, metric.high))
    if high_end - low_end > SAYS_NOTHING * _span(name, panel):
        return withheld(
            f"so few votes leave it anywhere between {low_end:.3g} and {high_end:.3g}"
            + (": one vote per item tells nothing of how far people differ" if np.median(panel.size) < 2 else "")
        )
    value = min(max(value, low_end), high_end)
    notes = (THESE_PEOPLE,) if shared(panel) else ()
    return Finding(Estimate(value, low_end, high_end, LEVEL, resamples), notes)


def _span(name: str, panel: Panel) -> float:
    """From the ideal score to that of a constant, everybody's shares of the classes."""
    metric = METRICS["kl" if name == "entce" else name]
    human = panel.shares
    everybody = panel.with_mirror_images().mass
    constant = np.broadcast_to(everybody.sum(axis=0) / everybody.sum(), human.shape)
    if metric.per_item is not None:
        score = float(metric.per_item(human, constant).mean())
    else:
        assert metric.over_items is not None
        score = metric.over_items(human, constant) or 0.0
    return abs(score - (metric.high if metric.better == "higher" else metric.low))


def _brackets(names: list[str], panel: Panel, *, seed: int) -> dict[str, Bracket]:
    """Those metrics that can be bracketed, each with what it shares computed once."""
    out: dict[str, Bracket] = {}
    if "brier" in names:
        out["brier"] = _quadratic(panel)
    if "rps" in names:
        out["rps"] = _quadratic(panel.cumulated())
    if not panel.single:
        return out
    counts, size = panel.counts, panel.size
    if wanted := [name for name in names if name in _OF_ENTROPY]:
        guess = _everybody(counts, size)
        fitted = fit_polynomials(lambda p, _: entr(p), counts, guess, panel_size=size, parts=48)
        entropies = fitted.bracket(counts, guess, panel_size=size)
        of_votes = entr(panel.shares).sum(axis=1)
        out |= {name: entropies.scaled(1.0, shift=-of_votes if _OF_ENTROPY[name] else 0.0) for name in wanted}
    for base, (function, along_scale) in _OF_CELLS.items():
        if wanted := [name for name in names if _same(name)[0] == base]:
            cells = cumulated(counts) if along_scale else counts
            bracket = _bracket_cells(function, cells, size)
            out |= {name: bracket.scaled(_same(name)[1], shift=_same(name)[2]) for name in wanted}
    if wanted := [name for name in names if name in _OF_PATTERNS]:
        out |= bracket_patterns({name: _OF_PATTERNS[name] for name in wanted}, counts, seed=seed)
    return out


def _quadratic(panel: Panel) -> Bracket:
    """(E|x|^2 - |p|^2) / m from pairs; of an item with one judgement, between 0 and what a constant would score."""
    m = panel.size[:, None].astype(np.float64)
    alone = panel.size == 1
    pairs = (panel.mass**2 - panel.squares) / np.maximum(m * (m - 1), 1.0)
    exact = ((panel.squares / m - pairs) / m).sum(axis=1)
    constant = panel.shares.mean(axis=0)
    # For any constant q, |p|^2 >= 2 p.q - |q|^2, which is linear in p.
    most = (panel.squares - 2 * panel.mass * constant).sum(axis=1) + (constant**2).sum()
    low, high = np.where(alone, 0.0, exact), np.where(alone, most, exact)
    return Bracket(low, (low + high) / 2, high)


def _everybody(cells: Counts, size: Ints) -> Table:
    """(items, cells) everybody's share of each cell: all that is known of an item before its votes."""
    return np.asarray(np.broadcast_to(cells.sum(axis=0) / size.sum(), cells.shape))


def _bracket_cells(function: OfCell, cells: Counts, size: Ints) -> Bracket:
    """Bracket of sum_j h_k(p_j) for each item with k votes."""
    guess = _everybody(cells, size)
    low, high = np.empty(len(cells)), np.empty(len(cells))
    for k in np.unique(size).tolist():
        some = size == k
        fitted = fit_polynomials(_at(function, k), cells, guess, panel_size=size, sizes=np.array([k]), parts=24)
        bracket = fitted.bracket(cells[some], guess[some], panel_size=size[some])
        low[some], high[some] = bracket.low, bracket.high
    return Bracket(low, (low + high) / 2, high)


def _at(function: OfCell, k: int) -> CellFunction:
    return lambda p, _: function(p, k)


def expected_of_cell(function: Callable[[Any, Any], Any], p: Any, k: int) -> Any:
    """The mean of function(c / k, p) over c ~ Binomial(k, p), elementwise in p."""
    # Items that share a probability share its mean.
    flat, place = np.unique(np.asarray(p, dtype=np.float64), return_inverse=True)
    # Further than eight standard deviations from k p lies less than 1e-14 of the chance.
    reach = math.ceil(4 * math.sqrt(k)) + 8
    first = np.clip(np.rint(k * flat) - reach, 0, max(0, k - 2 * reach)).astype(np.int64)
    c = first[:, None] + np.arange(min(k, 2 * reach) + 1)
    values = _chance(c, k, flat[:, None]) * function(c / k, flat[:, None])
    return values.sum(axis=1)[place].reshape(np.shape(p))


def _chance(c: Ints, k: int, p: Table) -> Table:
    """The chance of c of k, as SciPy's `binom.pmf` has it, whose import alone takes longer than a small evaluation."""
    return np.asarray(np.exp(log_ways(k, c) + xlogy(c, p) + xlog1py(k - c, -p)))


_OF_ENTROPY: Final = {"soft_nll": False, "kl": True, "entce": True}
"""What follows from the entropy of p, and whether the entropy of the votes is taken off."""

_OF_CELLS: Final[dict[str, tuple[OfCell, bool]]] = {
    "tvd": (lambda p, k: expected_of_cell(lambda share, p: np.abs(share - p) / 2, p, k), False),
    "jsd": (lambda p, k: expected_of_cell(jsd_of_cell, p, k), False),
    "wasserstein": (lambda p, k: expected_of_cell(lambda share, p: np.abs(share - p), p, k), True),
}
"""What is a sum over classes, or over the steps between ordered ones."""

_SAME: Final = {
    "manhattan": ("tvd", 2.0, 0.0),
    "soft_accuracy": ("tvd", -1.0, 1.0),
    "soft_micro_f1": ("tvd", -1.0, 1.0),
    "po_jsd": ("jsd", -1 / LN2, 1.0),
}
"""What is another one times a factor plus a shift."""


def _same(name: str) -> tuple[str, float, float]:
    return _SAME.get(name, (name, 1.0, 0.0))


_OF_PATTERNS: Final[dict[str, OfTruth]] = {
    "accuracy": OfTruth(leader_wins, accuracy),
    "expected_accuracy": OfTruth(lambda p, k: p[:, 0]),
    "abs_entce": OfTruth(entropy_missed, abs_entce),
}
"""What depends on the whole distribution."""

_OVER_ITEMS: Final = "it is no mean over items, and what a perfect model would score depends on all of them together"


def _why_not(name: str, panel: Panel) -> str:
    metric = METRICS[name]
    if "original" in metric.needs:
        return "it holds the model against the original labels, and no votes stand behind those"
    if metric.over_items is not None and name not in _SAME:
        return _OVER_ITEMS
    if not panel.single and (name in {*_OF_ENTROPY, *_OF_CELLS, *_SAME, *_OF_PATTERNS}):
        return f"{SINGLE_ONLY}; see brier"
    return "no bounds from few votes are known for it"
