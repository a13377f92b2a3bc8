"""Are systems' scores, position bias and a judge's distance from people in their intervals as often as stated?

    python -m benchmarks.preferences [--trials 300]

Simulated preferences (Davidson's model, four systems, 150 questions of two pairs, 20 people, sides drawn at random for
each vote, a position bias of 0.3 for people and 0.8 for a judge, 0.4 for a doubling of length), first with all else
equal, then with tastes of questions that all of their votes share (0.6 logits). The truth is what was put in; with
tastes, which make every score milder, it is what 40,000 questions give. Ends with exit code 1 where a coverage lies
outside of .93 to .985 by more than three standard errors, or where the interval of a judge's rank disagreement holds
the true one less often than .95 by as much.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

import dissensus as dis
from tests.evaluation.preferences_panel import simulated_preferences

if TYPE_CHECKING:
    from dissensus.evaluation.who_wins import WhoWins

PEOPLE = np.array([0.9, 0.3, 0.0, -1.2])
JUDGE = np.array([0.3, 0.9, 0.2, -1.4])
"""The judge puts the second system first."""

LENGTH = ("length_left", "length_right")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=300)
    trials = parser.parse_args().trials
    missed = []
    for shared in (0.0, 0.6):
        truth = _known(shared)
        inside: dict[str, list[bool]] = defaultdict(list)
        for trial in range(trials):
            for name, (estimate, expected) in _told(_ranked(shared, 150, seed=1 + trial), truth).items():
                inside[name].append(estimate.low <= expected <= estimate.high)
        for name, held in inside.items():
            share, reach = float(np.mean(held)), 3 * float(np.sqrt(0.05 * 0.95 / trials))
            print(f"tastes of questions {shared}  {name:<28} {share:.3f}", flush=True)
            least, most = (0.95, 1.0) if name == "rank disagreement" else (0.93, 0.985)
            if not least - reach <= share <= most + reach:
                missed.append(name)
    sys.exit(1 if missed else 0)


def _ranked(shared: float, questions: int, *, seed: int) -> WhoWins:
    rng = np.random.default_rng(seed)
    votes = simulated_preferences(rng, PEOPLE, questions=questions, shared=shared, judge=JUDGE)
    return dis.ranking(votes, question="question", length=LENGTH)


def _known(shared: float) -> dict[str, float]:
    if shared:
        return {name: estimate.value for name, (estimate, _) in _told(_ranked(shared, 40_000, seed=0), None).items()}
    scores = {f"score of system {k}": float(score) for k, score in enumerate(PEOPLE - PEOPLE.mean())}
    apart = JUDGE - JUDGE.mean() - (PEOPLE - PEOPLE.mean())
    more = {"position, people": 0.3, "position, judge": 0.8, "length": 0.4, "rank disagreement": 1 / 6}
    return scores | {f"judge - people, system {k}": float(gap) for k, gap in enumerate(apart)} | more


def _told(found: WhoWins, truth: dict[str, float] | None) -> dict[str, tuple[Any, float]]:
    (judge,) = found.beside
    told: dict[str, Any] = {f"score of {row.system}": row.score for row in found.people.standings}
    told |= {f"judge - people, {system}": gap for system, gap in judge.differences.items()}
    told |= {"position, people": found.people.position, "position, judge": judge.ranking.position}
    told |= {"length": found.people.length, "rank disagreement": judge.disagreement}
    return {name: (estimate, 0.0 if truth is None else truth[name]) for name, estimate in told.items()}


if __name__ == "__main__":
    main()
