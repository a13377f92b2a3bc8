"""Does the test of groups' distances keep its size where one group judged more than the other?

    python -m benchmarks.groups [--trials 400]

People of two groups come from one population, with habits of their own, and a model knows what the population says:
whatever is found is found by chance, and at the 5 % level that should be 5 % of trials. Activity differs by group. Ends
with exit code 1 where the size of `distance_test` lies outside of .03 to .07 by more than three standard errors.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from tests.evaluation.people.panels import unequal_trials

PANELS = (
    ((8, 10), (40, 50)),
    ((8, 50), (40, 10)),
    ((20, 30), (20, 30)),
    ((12, 15), (30, 60)),
    ((12, 60), (30, 15)),
)
"""People and votes of each, of the two groups; the first two are the findings'."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=400)
    trials = parser.parse_args().trials
    missed = []
    for habit in (0.0, 0.8):
        for one, other in PANELS:
            found = unequal_trials(one, other, habit=habit, trials=trials)
            size = float(np.mean(np.array(found) <= 0.05))
            print(f"habits {habit}  {one[0]} x {one[1]} against {other[0]} x {other[1]}: {size:.3f}", flush=True)
            reach = 3 * np.sqrt(0.05 * 0.95 / trials)
            if not 0.03 - reach <= size <= 0.07 + reach:
                missed.append(f"{one} against {other}, habits {habit}: {size:.3f}")
    for line in missed:
        print(f"MISSED {line}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
