"""The placebo: real people, handed in as if they were models, are worth as many people as they are.

One, two or three votes are taken from each item at random. What they say of the item's other votes is learnt by
counting on other items: a table with a row for each multiset of taken votes, which holds how often each class stands
among the rest. The rows are then scored as a model's predictions against the votes that were left. The table shares
nothing with the mixture behind the people ruler, whose check it is.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import comb

from dissensus.datasets import DATASETS
from dissensus.evaluation.finite_panel.panel import Panel, draw_votes
from dissensus.evaluation.finite_panel.people_ruler import Ruler, first_crossings, people_ruler, worth_in_people

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dissensus.arrays import Counts, Ints, Table
    from dissensus.evaluation.finite_panel.people_ruler import Ruled, Worth

SETS = (
    "words",
    "words-9",
    "popquorn-offensiveness",
    "emobank-valence",
    "emobank-arousal",
    "emobank-dominance",
    "fer+",
    "cifar-10h",
    "chaosnli-snli",
    "chaosnli-mnli",
    "chaosnli-alphanli",
    "crema-d-voice",
    "crema-d-face",
    "crema-d-both",
    "crehate",
    "dices-990",
    "dices-350",
    "imagenet-real",
    "md-agreement",
    "hs-brexit",
    "csc",
    "mp",
    "paraphrase",
    "alttest-cebab_aspects",
)
"""The real sets at hand with single votes, four or more an item: ordinal, nominal and binary."""

ITEMS = 12_000
"""The most items that are taken of a set."""

BACK = 2.0
"""Items' worth of what one vote fewer says, in each row of a table: rows that hardly ever occur lean on it."""


def counts_of(name: str) -> Counts:
    """(items, classes) votes of a set, of items with four or more."""
    counts = np.asarray(DATASETS[name].load().counts)
    counts = counts[counts.sum(axis=1) >= 4]
    return np.asarray(counts[np.random.default_rng(0).permutation(len(counts))[:ITEMS]], dtype=np.int64)


def possible(counts: Counts) -> list[int]:
    """How many people can be taken, one to three, with two more left than the ruler must reach."""
    return [n for n in (1, 2, 3) if np.median(counts.sum(axis=1)) >= 2 * n + 2]


def take(counts: Counts, n: int, rng: np.random.Generator) -> Counts:
    """(items, classes) n votes of each item, drawn at random without replacement."""
    return draw_votes(counts, np.full(len(counts), n), rng)


def chances(counts: Counts, n: int) -> tuple[Counts, Table]:
    """(multisets, classes) all multisets of n votes, and (items, multisets) the chance that n of an item are these."""
    places = np.array(list(combinations_with_replacement(range(counts.shape[1]), n)), dtype=np.int64)
    places = places if n else np.zeros((1, 0), dtype=np.int64)
    ways = np.stack([(places == k).sum(axis=1) for k in range(counts.shape[1])], axis=1)
    chance = np.ones((len(counts), len(ways)))
    for k in range(counts.shape[1]):
        chance *= comb(counts[:, k, None], ways[:, k])
    return ways, chance / comb(counts.sum(axis=1), n)[:, None]


def table_of(training: Counts, n: int) -> tuple[Counts, Table]:
    """All multisets of n votes, and (multisets, classes) the share of each class among the rest of the votes."""
    training = training[training.sum(axis=1) > n]
    ways, chance = chances(training, n)
    share = chance / (training.sum(axis=1) - n)[:, None]
    seen = share.T @ training - ways * share.sum(axis=0)[:, None]
    if n == 0:
        return ways, (seen + 0.5 / training.shape[1]) / (seen.sum() + 0.5)
    fewer_ways, fewer_table = table_of(training, n - 1)
    place = {tuple(row): table for row, table in zip(fewer_ways.tolist(), fewer_table, strict=True)}
    fewer = np.zeros(seen.shape)
    for row, way in enumerate(ways):
        for k in np.flatnonzero(way):
            fewer[row] += way[k] / n * place[tuple((way - np.eye(len(way), dtype=np.int64)[k]).tolist())]
    return ways, (seen + BACK * fewer) / (chance.sum(axis=0)[:, None] + BACK)


def said_by(taken: Counts, training: Counts) -> Table:
    """(items, classes) what the table's rows say of the other votes of the items that these were taken from."""
    ways, table = table_of(training, int(taken[0].sum()))
    row = {tuple(way): place for place, way in enumerate(ways.tolist())}
    return np.asarray(table[[row[tuple(each)] for each in taken.tolist()]])


def ruler_of(counts: Counts, *, score: Ruled = "soft_nll", seed: int = 0) -> Ruler:
    """The ruler of these votes."""
    mass = counts.astype(np.float64)
    panel = Panel(mass=mass, squares=mass, size=counts.sum(axis=1).astype(np.int64), single=True)
    ruler = people_ruler(panel, score=score, seed=seed)
    assert isinstance(ruler, Ruler), ruler
    return ruler


def draws(
    counts: Counts, n: int, *, times: int, score: Ruled = "soft_nll", folds: int = 5, resamples: int = 300
) -> Iterator[Worth]:
    """Worth of n real people, by random choices of who is taken and of the folds."""
    for time in range(times):
        rng = np.random.default_rng([n, time])
        fold: Ints = rng.permutation(len(counts)) % folds
        taken = take(counts, n, rng)
        model = np.empty(counts.shape)
        for each in range(folds):
            model[fold == each] = said_by(taken[fold == each], counts[fold != each])
        yield worth_in_people(ruler_of(counts - taken, score=score, seed=time), model, resamples=resamples, seed=time)


def loss_of(table: Table, score: Ruled) -> Table:
    """(rows, classes) what a vote for each class scores under each row of a table, step by step along the scale."""
    if score == "soft_nll":
        return np.asarray(-np.log(table))
    assert score == "rps"
    classes = table.shape[1]
    loss = np.zeros(table.shape)
    for vote in range(classes):
        for step in range(classes - 1):
            loss[:, vote] += (table[:, : step + 1].sum(axis=1) - (vote <= step)) ** 2
    return loss


def averaged(counts: Counts, ruler: Ruler, n: int, *, folds: int = 5) -> float:
    """What n real people are worth in the mean over all ways to take them.

    Without the chance of who is taken, what is left is a fault of the ruler, or of the table. Both learn from the same
    items (the folds of the ruler's seed 0).
    """
    fold: Ints = np.random.default_rng(0).permutation(len(counts)) % folds
    scores = np.empty(len(counts))
    for each in range(folds):
        mine = counts[fold == each]
        ways, table = table_of(counts[fold != each], n)
        loss = loss_of(table, ruler.score)
        chance = chances(mine, n)[1]
        total = (chance * (mine @ loss.T - (ways * loss).sum(axis=1))).sum(axis=1)
        scores[fold == each] = total / (mine.sum(axis=1) - n)
    gap = np.array([np.nanmean(scores - row) for row in ruler.per_item]) + ruler.learning
    return float(first_crossings(gap[None])[0])


def value(worth: Worth) -> float:
    """People, infinite beyond the ruler."""
    assert worth.estimate is not None
    return np.inf if worth.more else -np.inf if worth.fewer else worth.estimate.value


def holds(worth: Worth, people: int) -> bool:
    """Whether the interval holds the truth."""
    estimate: Any = worth.estimate
    return bool((worth.low_open or estimate.low <= people) and (worth.high_open or people <= estimate.high))
