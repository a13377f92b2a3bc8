"""Splits of groups and selections with floors: what is met, and in what time, beside scikit-learn and a plain rule.

    python benchmarks/splits.py

**Splits.** 40 sets of 120 groups (1 to 11 items, four labels, each group with a mix of its own), into five folds of
equal size; and 5 sets of 3,000 groups into shares of 70, 15 and 15 %, which scikit-learn cannot ask for. For each, the
furthest that a label is from its share of a fold, and the furthest that a fold is from its size, in items. Peer:
scikit-learn's `StratifiedGroupKFold`, shuffled.

**Selection.** 100 lists with two to four overlapping floors that some choice of n items meets, n being the fewest that
do, and up to five more. Peer: the plain rule, by which each floor takes its items alone and a stratum gets the most
that any floor asks of it; it refuses where these are more than n.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold

from dissensus.errors import InputError
from dissensus_train.curate import Floor, ItemList, select_items, split_groups
from dissensus_train.curate.selecting import apportion, demands_of


def label_mixed(seed: int, groups: int) -> tuple[Any, Any]:
    """(items,) group and label."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), rng.integers(1, 12, groups))
    mix = rng.dirichlet(np.ones(4), groups).cumsum(axis=1)
    return group, np.minimum((rng.random(len(group))[:, None] > mix[group]).sum(axis=1), 3)


def listed(**columns: Any) -> ItemList:
    n = len(next(iter(columns.values())))
    return ItemList(items=np.arange(n).astype(np.str_), sources=np.full(n, "made"), columns=columns)


def missed(label: Any, fold: Any, sizes: list[int]) -> tuple[float, float]:
    """The furthest of a label from its share, and of a fold from its size."""
    table = np.zeros((4, len(sizes)))
    np.add.at(table, (label, fold), 1)
    expected = np.outer(table.sum(axis=1), np.array(sizes) / len(label))
    return float(np.abs(table - expected).max()), float(np.abs(table.sum(axis=0) - sizes).max())


def ours(label: Any, group: Any, sizes: list[int], seed: int) -> tuple[tuple[float, float], float]:
    names = [f"f{number}" for number in range(len(sizes))]
    items = listed(label=label.astype(np.str_), group=np.char.add("g", group.astype(np.str_)))
    began = time.process_time()
    made = split_groups(items, dict(zip(names, sizes, strict=True)), by=["label"], group="group", seed=seed)
    seconds = time.process_time() - began
    return missed(label, np.array([names.index(each) for each in made.items.columns["split"]]), sizes), seconds


def told(name: str, found: list[tuple[float, float]], seconds: float) -> None:
    table = np.array(found)
    print(
        f"{name:<14} label from its share {table[:, 0].mean():5.2f} in the mean, {table[:, 0].max():5.2f} at most; "
        f"fold from its size {table[:, 1].mean():5.2f} and {table[:, 1].max():5.2f}; {seconds:.3f} s a set"
    )


def splits() -> bool:
    mine, peers, seconds, slow = [], [], 0.0, 0.0
    for seed in range(40):
        group, label = label_mixed(seed, 120)
        n = len(label)
        sizes = [n // 5 + (fold < n % 5) for fold in range(5)]
        found, took = ours(label, group, sizes, seed)
        mine.append(found)
        seconds += took
        began = time.process_time()
        fold = np.empty(n, dtype=np.int64)
        for number, (_, test) in enumerate(
            StratifiedGroupKFold(5, shuffle=True, random_state=seed).split(np.zeros(n), label, group)
        ):
            fold[test] = number
        slow += time.process_time() - began
        peers.append(missed(label, fold, sizes))
    print("120 groups, five folds")
    told("ours", mine, seconds / 40)
    told("scikit-learn", peers, slow / 40)
    large, seconds = [], 0.0
    for seed in range(5):
        group, label = label_mixed(seed, 3000)
        n = len(label)
        some = round(0.15 * n)
        found, took = ours(label, group, [n - 2 * some, some, some], seed)
        large.append(found)
        seconds += took
    print("3,000 groups, 70 / 15 / 15 %")
    told("ours", large, seconds / 5)
    a, b = np.array(mine), np.array(peers)
    ratio = b[:, 0].mean() / a[:, 0].mean()
    print(f"ratio of the mean misses of labels, theirs to ours: {ratio:.2f}; sizes all exact: {not a[:, 1].any()}")
    return bool((a[:, 1] == 0).all() and ratio > 1)


def plain_rule(items: ItemList, floors: list[Floor], n: int) -> bool:
    """Whether the rule that looks at each floor alone finds n items enough."""
    stratum, names = items.strata(("region", "label"))
    available = np.bincount(stratum)
    least = np.zeros(len(names), dtype=np.int64)
    for demand in demands_of(floors, ("region", "label"), names):
        here = demand.strata
        alone = apportion(demand.least, np.ones(int(here.sum())) / here.sum(), most=available[here])
        least[here] = np.maximum(least[here], alone)
    return int(least.sum()) <= n


def selection() -> bool:
    rng = np.random.default_rng(0)
    met, plain, seconds = 0, 0, 0.0
    for _ in range(100):
        n = int(rng.integers(60, 400))
        regions, labels = rng.choice(["easy", "hard", "other"], n), rng.choice(list("abc"), n)
        items = listed(region=regions, label=labels)
        kinds = [("region", "easy"), ("label", "a"), ("label", "b"), ("region", "hard")][: int(rng.integers(2, 5))]
        floors = [
            Floor(column=c, value=v, least=int(rng.integers(1, (items.columns[c] == v).sum() + 1))) for c, v in kinds
        ]
        try:
            select_items(items, 1, quotas={"region": None, "label": None}, floors=floors)
            fewest = 1
        except InputError as refused:
            fewest = int(str(refused).split("ask for ")[1].split(" items")[0].replace(",", ""))
        wanted = min(fewest + int(rng.integers(0, 6)), n)
        began = time.process_time()
        chosen = select_items(items, wanted, quotas={"region": None, "label": None}, floors=floors)
        seconds += time.process_time() - began
        met += len(chosen.items) == wanted and all(
            (chosen.items.columns[floor.column] == floor.value).sum() >= floor.least for floor in floors
        )
        plain += plain_rule(items, floors, wanted)
    print(f"selection: {met} of 100 met, {seconds / 100:.3f} s each; the plain rule accepts {plain} of 100")
    return met == 100


if __name__ == "__main__":
    sys.exit(0 if all([splits(), selection()]) else 1)
