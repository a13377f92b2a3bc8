"""Model and people together on real sets: what both are worth, what a model saves, and whether promises are kept.

    DISSENSUS_DATA=DATA python -m benchmarks.together [PART ...] [--sets NAME ...]

Predictions are those of `benchmarks.predicted`: of items by models that saw none of their votes.

- combine: n = 1, 2, 3 votes and the model, learnt from other items with all of their votes, on the item's other votes.
  Judged: *worse* than votes alone, or than the calibrated model alone, where the 95 % interval of the gain in soft NLL
  lies below 0; *better* where it lies above.
- few: the same for somebody who has only those votes, and a second and third on 200 items where n < 3: the labels that
  `dis.combine` makes of them, scored on all votes that it was not given, against people's best forecast from the same
  votes and against the calibrated model, both learnt from the same votes. 5 draws of the votes; judged as above.
- shuffled: the predictions of another item. Judged: n votes beside them must lose less than 0.05 people.
- placebo: the model is one real person's vote, which the people beside it know nothing of. Judged: the interval of what
  it adds holds 1 person.
- copies: one model handed in once, twice and six times must add the same; two people's votes as two models add two.
- saving: what `dissensus plan --model` promises from pilots of 200 items with 5 votes, beside k = 1, 2, 3 votes alone,
  against what is saved on all other items, with all of their votes. Judged: the promise's 95 % interval holds it in at
  least 90 % of 20 pilots.
- sets, defer, collect: see `benchmarks.asking`.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import dissensus as dis
from benchmarks.asking import collecting, covering, deferring
from benchmarks.predicted import SETS, predicted
from dissensus.bootstrap import Estimate
from dissensus.evaluation.finite_panel.panel import Panel, draw_votes
from dissensus.evaluation.finite_panel.people_ruler import people_ruler
from dissensus.evaluation.probabilities import Predictions
from dissensus.labels.mixture import cross_fitted
from dissensus.planning.beside_model import scores_beside, votes_beside
from dissensus.together.gains import gains_of, learn
from dissensus.votes.table import votes_from_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Counts, Floats
    from dissensus.evaluation.probabilities import Runs
    from dissensus.together.gains import Gain

DRAWS = 5
TAUGHT = 200
"""Items that get up to three votes where all others have n."""

PILOTS = 20
PILOT = 200
"""Items of a pilot."""

VOTES = 5
"""Votes of each."""

MOST = 3000
"""Items of a set, drawn at random, that it is measured on at most."""


def panel_of(counts: Any) -> Panel:
    votes = np.asarray(counts, dtype=np.float64)
    return Panel(mass=votes, squares=votes, size=votes.sum(axis=1).astype(np.int64), single=True)


def gains(counts: Counts, models: Sequence[Runs], *, resamples: int = 500) -> list[Gain]:
    """Of n = 0, 1, 2, 3 votes."""
    found = gains_of(learn(panel_of(counts), models), resamples=resamples)
    return [gain for gain in found if gain.votes <= 3]


def some_of(name: str, *, seed: int = 0) -> tuple[Counts, Runs]:
    """At most `MOST` items of a set: votes and predictions."""
    made = predicted(name)
    counts = np.asarray(made.votes.counts)
    rows = np.sort(np.random.default_rng(seed).permutation(len(counts))[:MOST])
    return counts[rows], made.predictions.probabilities[:, rows]


def judged(difference: Estimate) -> str:
    low, high = difference.low, difference.high
    assert low is not None
    assert high is not None
    return "better" if low > 0 else "WORSE" if high < 0 else "even"


def cells(estimate: Estimate, digits: int = 4) -> str:
    return f"{estimate.value:.{digits}f} [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"


def combine(sets: Sequence[str]) -> None:
    print("## Combine: | set | votes | soft NLL | less than votes alone | than the model alone | people added |")
    for name in sets:
        counts, runs = some_of(name)
        for gain in gains(counts, [runs]):
            votes, model = ((cells(less), judged(less)) for less in (gain.of_votes, gain.of_models))
            people = f"> {gain.worth.most - gain.votes}" if gain.worth.more else cells(gain.people, 2)
            print(
                f"| {name} | {gain.votes} | {gain.soft_nll.value:.4f} | {' '.join(votes)} | "
                f"{' '.join(model) if gain.votes else ''} | {people} |",
                flush=True,
            )


def few(sets: Sequence[str]) -> None:
    print(
        f"## From few votes alone, {DRAWS} draws: | set | votes | soft NLL | less than votes alone | than the model |"
    )
    for name in sets:
        counts, runs = some_of(name)
        for n in (1, 2, 3):
            losses = np.mean([_from_few(counts, runs, n, seed=seed) for seed in range(DRAWS)], axis=0)
            differences = [over_items(losses[:, 0] - losses[:, column]) for column in (1, 2)]
            shown = " | ".join(f"{cells(each)} {judged(each)}" for each in (replaced(one) for one in differences))
            print(f"| {name} | {n} | {losses[:, 0].mean():.4f} | {shown} |", flush=True)


def replaced(estimate: Estimate) -> Estimate:
    """The difference the other way round: how much less."""
    assert estimate.low is not None
    assert estimate.high is not None
    return Estimate(-estimate.value, -estimate.high, -estimate.low, estimate.level, estimate.resamples)


def over_items(values: Floats) -> Estimate:
    """The mean over items, with a normal interval."""
    mean, reach = float(values.mean()), 1.96 * float(values.std(ddof=1)) / np.sqrt(len(values))
    return Estimate(mean, mean - reach, mean + reach, 0.95, 0)


def _from_few(counts: Counts, runs: Runs, n: int, *, seed: int) -> Any:
    """(items, 3) soft NLL on votes not given, of both together, of votes alone and of the calibrated model."""
    rng = np.random.default_rng(seed)
    size = np.full(len(counts), n)
    size[rng.permutation(len(counts))[:TAUGHT]] = 3
    size = np.minimum(size, counts.sum(axis=1) - 1)
    given = draw_votes(counts, size, rng)
    rest = (counts - given) / (counts - given).sum(axis=1, keepdims=True)
    items = np.array([f"i{row}" for row in range(len(counts))])
    classes = tuple(f"c{k}" for k in range(counts.shape[1]))
    votes = votes_from_counts(given, items=items, classes=classes)
    system = Predictions(probabilities=runs, items=items, classes=classes, seeds=tuple(range(len(runs))))
    both = dis.combine(votes, system, resamples=0, seed=seed)
    assert (both.labels.items == items).all()
    priors, fold = cross_fitted(given.astype(np.float64), seed=seed)
    alone, model = np.empty(counts.shape), np.empty(counts.shape)
    learnt = both.learnt
    for part, combination in enumerate(learnt.combinations):
        alone[fold == part] = priors[part].forecast(given[fold == part])
        rows = learnt.fold == part
        pseudo = combination.pseudo_votes([runs[:, rows]])
        model[rows] = combination.forecast(pseudo, np.zeros_like(pseudo))
    guesses = (both.labels.probabilities, alone, model)
    return np.stack([-(rest * np.log(np.maximum(guess, 1e-12))).sum(axis=1) for guess in guesses], axis=1)


def shuffled(sets: Sequence[str]) -> None:
    print("## Shuffled predictions: people added by n = 1, 2, 3 votes")
    for name in sets:
        counts, runs = some_of(name)
        other = np.random.default_rng(1).permutation(len(counts))
        found = gains(counts, [runs[:, other]], resamples=0)[1:]
        added = [gain.people.value for gain in found if not gain.worth.more]
        shown = " | ".join("beyond the ruler" if gain.worth.more else f"{gain.people.value:+.3f}" for gain in found)
        print(f"| {name} | {shown} |{'' if min(added) > -0.05 else '  MORE THAN 0.05 LOST'}", flush=True)


def placebo(sets: Sequence[str]) -> None:
    print("## One real person as a model: people added to n = 0, 1, 2, 3 votes")
    for name in sets:
        counts, _ = some_of(name)
        person = draw_votes(counts, np.ones(len(counts), dtype=np.int64), np.random.default_rng(1))
        found = gains(counts - person, [person[None].astype(np.float64)])
        inside = [gain for gain in found if not gain.worth.more]
        passed = all((gain.people.low or 0) <= 1 <= (gain.people.high or 0) for gain in inside)
        shown = " | ".join("beyond the ruler" if gain.worth.more else cells(gain.people, 2) for gain in found)
        print(f"| {name} | {shown} |{'' if passed else '  1 LIES OUTSIDE'}", flush=True)


def copies(sets: Sequence[str]) -> None:
    print("## Copies: people added to n = 1 by one model, twice, six times; by one person, by two, by one person twice")
    for name in sets:
        counts, runs = some_of(name)
        row = [gains(counts, [runs] * times, resamples=0)[1].people.value for times in (1, 2, 6)]
        rng, one = np.random.default_rng(1), np.ones(len(counts), dtype=np.int64)
        first = draw_votes(counts, one, rng)
        second = draw_votes(counts - first, one, rng)
        a, b = (person[None].astype(np.float64) for person in (first, second))
        rest = counts - first - second
        row += [gains(rest, models, resamples=0)[1].people.value for models in ([a], [a, b], [a, a])]
        print(f"| {name} | {' | '.join(f'{people:.2f}' for people in row)} |", flush=True)


def saving(sets: Sequence[str]) -> None:
    print(f"## Saved votes: | set | k | saved on all items | promised, mean of {PILOTS} pilots | width | held |")
    for name in sets:
        counts, runs = some_of(name)
        learnt = learn(panel_of(counts), [runs])
        ruler = people_ruler(learnt.panel)
        assert not isinstance(ruler, str)
        beside = scores_beside(learnt, ruler)
        found: dict[int, list[tuple[float, float, float, float]]] = {}
        for pilot in range(PILOTS):
            rng = np.random.default_rng(pilot)
            order = rng.permutation(len(counts))
            mine, others = order[:PILOT], order[PILOT:]
            size = np.minimum(counts[mine].sum(axis=1), VOTES)
            kept = learn(panel_of(draw_votes(counts[mine], size, rng)), [runs[:, mine]], seed=pilot)
            promised = votes_beside(kept, resamples=500, seed=pilot)
            assert not isinstance(promised, str)
            for k in (1, 2, 3):
                needed = promised[k].estimate
                truth = k - crossing(beside[:, others], ruler.per_item[k, others])
                saved = needed.linear(-1.0, k)
                assert saved.low is not None
                assert saved.high is not None
                found.setdefault(k, []).append((truth, saved.value, saved.low, saved.high))
        for k, rows in found.items():
            truths, values, low, high = np.array(rows).T
            held = int(((low - 1e-9 <= truths) & (truths <= high + 1e-9)).sum())
            passed = "" if held >= 0.9 * PILOTS else "  BELOW 90 %"
            print(
                f"| {name} | {k} | {truths.mean():.2f} | {values.mean():.2f} | {(high - low).mean():.2f} | "
                f"{held} of {PILOTS} |{passed}",
                flush=True,
            )


def crossing(beside: Any, alone: Any) -> float:
    """Votes beside the model at which its mean score is that of votes alone, on the items that have both."""
    both = [np.isfinite(row) & np.isfinite(alone) for row in beside]
    gaps = [float((row[some] - alone[some]).mean()) for row, some in zip(beside, both, strict=True)]
    # Scores fall as votes come.
    return float(np.interp(0.0, [-gap for gap in gaps], np.arange(len(gaps))))


PARTS = {
    "combine": combine,
    "few": few,
    "shuffled": shuffled,
    "placebo": placebo,
    "copies": copies,
    "saving": saving,
    "sets": covering,
    "defer": deferring,
    "collect": collecting,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS])
    parser.add_argument("--sets", nargs="+", default=SETS)
    given = parser.parse_args(sys.argv[1:])
    for part in given.parts or PARTS:
        PARTS[part](given.sets)
