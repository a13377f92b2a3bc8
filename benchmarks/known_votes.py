"""How often are predictions that know the votes told, and how often honest ones? On 24 real sets; ten seconds.

    DISSENSUS_DATA=... python -m benchmarks.known_votes

Half of each item's votes are the votes that are scored on. Leaks are made of these, weak ones with the other half as
the honest model beside them; honest predictions are made of the other half, which shares no vote with them. Both are
also judged on contested items alone, on which the scored votes differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dissensus.evaluation.finite_panel.known_votes import chosen_to_differ, knows_the_votes
from dissensus.evaluation.finite_panel.panel import Panel, draw_votes
from tests.evaluation.placebo import ITEMS, SETS, counts_of

if TYPE_CHECKING:
    from dissensus.arrays import Counts, Table


def panel(counts: Counts) -> Panel:
    """Votes whose givers are not known."""
    mass = counts.astype(np.float64)
    return Panel(mass=mass, squares=mass, size=counts.sum(axis=1), single=True)


def powered(shares: Table, power: float) -> Table:
    """Shares at a temperature of 1 / power."""
    raised = (shares + 1e-9) ** power
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def predictions(counts: Counts, rng: np.random.Generator) -> tuple[Counts, dict[str, Table], dict[str, Table]]:
    """The votes to score on, leaks of them, and honest predictions."""
    scored = draw_votes(counts, counts.sum(axis=1) // 2, rng)
    shares, others = (votes / votes.sum(axis=1, keepdims=True) for votes in (scored, counts - scored))
    marginal, classes = np.tile(others.mean(axis=0), (len(counts), 1)), counts.shape[1]
    model, majority = (others + marginal) / 2, np.eye(classes)[shares.argmax(axis=1)]
    person = draw_votes(counts - scored, np.ones(len(counts), dtype=np.int64), rng) * 1.0
    some = rng.random((len(counts), 1)) < 0.5
    leaks = {
        "shares of the votes": shares,
        "shares at temperature 2": powered(shares, 0.5),
        **{f"{part:.0%} shares, the rest a model": part * shares + (1 - part) * model for part in (0.9, 0.7, 0.5, 0.3)},
        "shares of half of the items, else a model": np.where(some, shares, model),
        "the most frequent vote": majority,
    }
    honest = {
        "other people's votes": others,
        "one other person": person,
        "other people and the marginal": model,
        "the same, too sure": powered(model, 3.0),
        "the marginal": marginal,
    }
    return scored, leaks, honest


def main() -> None:
    """Count and print."""
    told: dict[str, list[bool]] = {}
    chosen = []
    for name in SETS:
        counts = counts_of(name)[:ITEMS]
        scored, leaks, honest = predictions(counts, np.random.default_rng(0))
        contested = scored.max(axis=1) < scored.sum(axis=1)
        for where, rows in (("all items", np.ones(len(counts), dtype=bool)), ("contested items", contested)):
            some = panel(scored[rows])
            chosen += [(where, bool(chosen_to_differ(some)))]
            for kind, systems in (("leak", leaks), ("honest", honest)):
                for system, q in systems.items():
                    told.setdefault(f"{where}, {kind}: {system}", []).append(bool(knows_the_votes(some, q[rows][None])))
    for what, of in told.items():
        print(f"{what:70} told on {sum(of):2} of {len(of)} sets")
    for where in ("all items", "contested items"):
        of = [flag for place, flag in chosen if place == where]
        print(f"{where}: votes seem chosen to differ on {sum(of)} of {len(of)} sets")


if __name__ == "__main__":
    main()
