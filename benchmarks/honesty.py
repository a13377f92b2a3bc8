"""Are finite-panel statistics honest? Simulations with known truth.

    python -m benchmarks.honesty [--trials 100] [--part placebo|ruler|few|best|corrected|shared]

The placebo: one, two and three real people of real sets (DISSENSUS_DATA), handed in as if they were models; their worth
by ten draws of who is taken, and over all ways to take them. And how often 95 % intervals hold a simulated truth:
- worth in people, of the best forecasts of exactly 1, 2 and 5 fresh votes, on a 7-point scale and on classes in pairs;
- worth in people on few items, of the best forecasts of exactly 1, 2 and 4 fresh votes, learnt from the scored items;
- best achievable, by family of true distributions and votes an item;
- corrected scores, likewise;
- corrected scores where the same few people judged all items, with and without knowing who.
"w" counts the trials in which a number was withheld; of an undefined truth (entropy correlation over two-way ties) to
withhold it is right. Ends with exit code 1 where a bar is missed by more than chance.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

from tests.evaluation import placebo
from tests.evaluation.coverage import best_trials, corrected_trials, ruler_trials, share, shared_trials
from tests.evaluation.simulated import FAMILIES

if TYPE_CHECKING:
    from dissensus.evaluation.finite_panel.people_ruler import Ruled
    from tests.evaluation.coverage import Sizes

BEST = ("soft_nll", "kl", "brier", "rps", "tvd", "jsd", "wasserstein", "accuracy", "expected_accuracy", "abs_entce")
CORRECTED = ("soft_nll", "brier", "rps", "kl", "entce", "tvd", "jsd", "entropy_pearson")
VOTES: tuple[Sizes, ...] = (2, 3, 5, 10, 50, (2, 3, 5, 8, 12))


class Bars:
    """Which bars were missed by more than three standard errors."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def check(self, what: str, held: list[bool | None], *, least: float) -> str:
        """The share of intervals that hold, for a table."""
        known = [each for each in held if each is not None]
        if known and np.mean(known) < least - 3 * np.sqrt(least * (1 - least) / len(known)):
            self.missed.append(f"{what}: {np.mean(known):.3f} < {least}")
        withheld = len(held) - len(known)
        return f"{share(held):.2f}{f' w{withheld}' if withheld else ''}" if known else "withheld"


RULED: tuple[tuple[Ruled, int, int], ...] = (
    ("soft_nll", 1, 4000),
    ("soft_nll", 3, 4000),
    ("brier", 1, 4000),
    ("rps", 1, 4000),
    ("soft_nll", 1, 600),
)
"""Score, seeds of the model, and items that the ruler learns from."""

DRAWS = 10
"""Of who is taken, for the placebo."""

CLOSE = 0.07
"""In parts of their number, how far off the worth of real people may be."""


def print_placebo(bars: Bars) -> None:
    print(f"real people as models: median worth of {DRAWS} draws (over all ways to take them), intervals that hold")
    every: list[bool | None] = []
    for name in placebo.SETS:
        counts = placebo.counts_of(name)
        ruler, cells = placebo.ruler_of(counts), []
        for people in placebo.possible(counts):
            found = list(placebo.draws(counts, people, times=DRAWS))
            median = float(np.median([placebo.value(each) for each in found]))
            mean = placebo.averaged(counts, ruler, people)
            held = [placebo.holds(each, people) for each in found]
            every += held
            for what, value in (("median", median), ("over all ways", mean)):
                if abs(value / people - 1) > CLOSE:
                    bars.missed.append(f"{name}, {people} people, {what}: {value:.2f}")
            cells.append(f"{people}: {median:.2f} ({mean:.2f}) {np.mean(held):.1f}")
        print(f"  {name:24} {len(counts):6,} items   " + "   ".join(cells), flush=True)
    print(f"  all sets together: {bars.check('placebo', every, least=0.9)} of {len(every)} intervals hold", flush=True)


def print_ruler(bars: Bars, trials: int) -> None:
    print(f"worth in people, {trials} trials of 600 items: median, and how often the interval holds the truth")
    for family in ("scale", "modes", "dirichlet"):
        for score, seeds, learnt in RULED:
            cells = []
            by_people = ruler_trials(
                (1, 2, 5), family=family, score=score, votes=14, seeds=seeds, trials=trials, learnt=learnt
            )
            for people, found in by_people.items():
                told = bars.check(f"worth of {people}, {family}, {score}", [held for _, held in found], least=0.9)
                cells.append(f"{people}: {np.median([value for value, _ in found]):.2f} {told}")
            about = f"{family:10} {score:9} seeds {seeds}, learnt from {learnt:,} items"
            print(f"  {about}   " + "   ".join(cells), flush=True)


FEW = (("bimodal", 150), ("bimodal", 600), ("contested", 300), ("lumps", 150), ("two classes", 150))
"""Family and number of items of each ruler that learns from the scored items."""


def print_few(bars: Bars, trials: int) -> None:
    print(f"worth in people on few items of 7 votes, {trials} trials: median, withheld, coverage")
    for family, items in FEW:
        cells = []
        for people, found in ruler_trials(
            (1, 2, 4), family=family, votes=7, trials=trials, items=items, learnt=None
        ).items():
            values = np.array([value for value, _ in found])
            told = bars.check(f"worth of {people}, {family}, {items} items", [held for _, held in found], least=0.85)
            cells.append(f"{people}: {np.nanmedian(values):.2f} w{np.isnan(values).sum()} {told}")
        print(f"  {family:12} {items} items   " + "   ".join(cells), flush=True)


def print_best(bars: Bars, trials: int, *, classes: int) -> None:
    print(f"best achievable, {trials} trials of 300 items, {classes} classes")
    for votes in VOTES:
        for family in FAMILIES:
            found = best_trials(BEST, family, classes=classes, votes=votes, trials=trials)
            cells = [
                f"{name} {bars.check(f'best {name}, {family}, {votes}', found[name], least=0.93)}" for name in BEST
            ]
            print(f"  votes {votes!s:17} {family:17}" + "  ".join(cells), flush=True)


def print_corrected(bars: Bars, trials: int, *, classes: int) -> None:
    print(f"corrected scores, {trials} trials of 300 items, {classes} classes: coverage, and mean error")
    for votes in (3, 5, 10, (2, 3, 5, 8, 12)):
        for family in FAMILIES:
            found = corrected_trials(CORRECTED, family, classes=classes, votes=votes, trials=trials)
            cells = []
            for name in CORRECTED:
                held = [None if each is None else each[1] for each in found[name]]
                off = [each[0] for each in found[name] if each is not None]
                told = bars.check(f"corrected {name}, {family}, {votes}", held, least=0.93)
                cells.append(f"{name} {told}" + (f" {np.mean(off):+.3f}" if off else ""))
            print(f"  votes {votes!s:17} {family:17}" + "  ".join(cells), flush=True)


def print_shared(bars: Bars, trials: int) -> None:
    print(f"corrected scores where the same people judged 300 items, {trials} trials: with ids (without)")
    names = ("soft_nll", "brier", "kl")
    for habit in (0.0, 0.7, 1.2):
        for people, votes in ((3, 3), (5, 5), (5, 3), (20, 5)):
            known, unknown = (
                shared_trials(names, people, votes=votes, habit=habit, trials=trials, ids=ids) for ids in (True, False)
            )
            cells = []
            for name in names:
                told = bars.check(f"shared {name}, {people} people", known[name], least=0.9)
                cells.append(f"{name} {told} ({share(unknown[name]):.2f})")
            print(f"  habits {habit}  {people:2} people, {votes} votes an item   " + "  ".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--classes", type=int, default=5)
    parser.add_argument("--part", choices=["placebo", "ruler", "few", "best", "corrected", "shared"])
    options = parser.parse_args()
    bars, begin = Bars(), time.perf_counter()
    if options.part in (None, "placebo"):
        print_placebo(bars)
    if options.part in (None, "ruler"):
        print_ruler(bars, options.trials)
    if options.part in (None, "few"):
        print_few(bars, options.trials)
    if options.part in (None, "best"):
        print_best(bars, options.trials, classes=options.classes)
    if options.part in (None, "corrected"):
        print_corrected(bars, options.trials, classes=options.classes)
    if options.part in (None, "shared"):
        print_shared(bars, options.trials)
    print(f"{time.perf_counter() - begin:.0f} s; bars missed: {len(bars.missed)}", *bars.missed, sep="\n  ")
    sys.exit(bool(bars.missed))


if __name__ == "__main__":
    main()
