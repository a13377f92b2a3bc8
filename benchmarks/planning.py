"""Plans against hidden votes: intervals, recommended plans, adaptive votes and power, on real sets.

    DISSENSUS_DATA=DATA python -m benchmarks.planning [intervals] [recommended] [adaptive] [power]

Of every set a random pilot is kept, its other votes and items are hidden, and what the plan says is held against them.

- intervals: pilots of 5 votes; agreement, alpha and the share of items with the same majority for k = 10, 20, 50 on all
  other items, where the set has the votes (the same majority takes 2 k). EmoBank has 5 votes an item and is planned
  from 2, words have 10 and are planned from 5.
- recommended: the plan of a pilot of 5 votes against all others, on a panel of all items with all of their votes.
- adaptive: two more votes an item after three, to the items of the list or evenly; squared distance of the posterior
  mean from the shares of all votes.
- power: what is said to have 80 % in fresh simulations of the fitted panel.
"""

from __future__ import annotations

import sys
import time
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from dissensus.datasets import DATASETS
from dissensus.evaluation.finite_panel.panel import draw_votes
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.labels.mixture import Dirichlet, fit_prior
from dissensus.planning.comparing import WORTH, simulated_pair
from dissensus.planning.fitted import FittedPanel, fit_panel
from dissensus.planning.next_items import next_votes
from dissensus.planning.planned import VOTES, Prices
from dissensus.planning.predicted import predict
from dissensus.together.allocation import panel_concentration
from dissensus.votes.table import votes_from_counts

if TYPE_CHECKING:
    from dissensus.arrays import Counts, Floats, Table
    from dissensus.planning.comparing import Pair
    from dissensus.votes.table import Votes

PILOTS = 40
INTERVALS = {
    "cifar-10h": (300, 5, (10, 20, 50)),
    "chaosnli-snli": (200, 5, (10, 20, 50)),
    "chaosnli-mnli": (200, 5, (10, 20, 50)),
    "dices-350": (100, 5, (10, 20, 50)),
    "dices-990": (200, 5, (10, 20, 50)),
    "emobank-valence": (300, 2, (2, 5)),
    "words": (300, 5, (5, 10)),
}
RECOMMENDED = ("cifar-10h", "chaosnli-snli", "chaosnli-mnli", "dices-350", "words")
ADAPTIVE = ("cifar-10h", "chaosnli-snli", "chaosnli-mnli", "dices-350", "crehate")


def drawn(counts: Counts, k: int, rng: np.random.Generator) -> Counts:
    return draw_votes(counts, np.full(len(counts), k), rng)


def leaders(counts: Counts, rng: np.random.Generator) -> Any:
    """The majority class of each item, ties broken at random."""
    return (counts + rng.random(counts.shape) / 2).argmax(axis=1)


def measured(votes: Votes, counts: Counts, k: int, rng: np.random.Generator) -> dict[str, float]:
    """What a collection of k votes on these items showed, by plain formulas."""
    classes = counts.shape[1]
    seen = drawn(counts[counts.sum(axis=1) >= k], k, rng)
    distance = 1.0 - np.eye(classes)
    out = {"agreement": 1 - float(pairs(seen, distance).mean())}
    if votes.ordered:
        distance = (votes.scale[:, None] - votes.scale) ** 2
    everybody = seen.sum(axis=0) / seen.sum()
    out["alpha"] = 1 - float(pairs(seen, distance).mean() / (everybody @ distance @ everybody))
    twice = counts[counts.sum(axis=1) >= 2 * k]
    if len(twice) > 0.9 * len(counts):
        one = drawn(twice, k, rng)
        other = drawn(twice - one, k, rng)
        out["same_majority"] = float((leaders(one, rng) == leaders(other, rng)).mean())
        if votes.ordered:
            out["reliability"] = float(np.corrcoef(one @ votes.scale, other @ votes.scale)[0, 1])
    return out


def pairs(counts: Counts, distance: Table) -> Floats:
    """Mean distance of two votes on an item, pair by pair of classes."""
    size = counts.sum(axis=1)
    return np.asarray(np.einsum("ij,jk,ik->i", counts, distance, counts) / (size * (size - 1)))


def intervals() -> None:
    print(f"## Intervals: held / shown of {PILOTS} pilots (withheld), mean width")
    for name, (items, votes_each, ks) in INTERVALS.items():
        votes = DATASETS[name].load()
        counts = votes.counts[votes.panel_size >= max(votes_each, 2)]
        scale = votes.scale if votes.ordered else None
        found: dict[tuple[str, int], list[tuple[bool, bool, float]]] = {}
        seconds = 0.0
        for pilot in range(PILOTS):
            rng = np.random.default_rng(pilot)
            order = rng.permutation(len(counts))
            kept, rest = drawn(counts[order[:items]], votes_each, rng), counts[order[items:]]
            enough = [(int((rest.sum(axis=1) >= k).sum()), k) for k in ks]
            begin = time.perf_counter()
            shown = predict(kept, fit_panel(kept, seed=pilot), enough, scale=scale, seed=pilot)
            seconds += time.perf_counter() - begin
            for prediction in shown:
                for what, truth in measured(votes, rest, prediction.k, rng).items():
                    said = getattr(prediction, what).estimate
                    row = (False, False, 0.0)
                    if said is not None:
                        row = (True, bool(said.low <= truth <= said.high), said.high - said.low)
                    found.setdefault((what, prediction.k), []).append(row)
        every = [row for rows in found.values() for row in rows if row[0]]
        held = sum(row[1] for row in every) / len(every)
        print(
            f"{name}, {items} items x {votes_each} votes: {held:.1%} of {len(every)} ({seconds / PILOTS:.1f} s a pilot)"
        )
        for (what, k), rows in found.items():
            given = [row for row in rows if row[0]]
            width = float(np.mean([row[2] for row in given])) if given else 0.0
            print(
                f"  {what:13} k = {k:2}: {sum(row[1] for row in given)} / {len(given)} ({len(rows) - len(given)}), "
                f"width {width:.3f}"
            )
        sys.stdout.flush()


def whole_panel(counts: Counts, rng: np.random.Generator) -> FittedPanel:
    """All items with all of their votes as the truth; at most 1,500 of them."""
    some = counts[rng.permutation(len(counts))[:1500]]
    items = len(some)
    return FittedPanel(
        points=some / some.sum(axis=1, keepdims=True),
        weights=np.full(items, 1 / items),
        prior=fit_prior(counts.astype(np.float64)),
        rows=some[:1],
        times=np.ones(1, dtype=np.int64),
    )


def least_error(pair: Pair, goal: str, items: dict[int, int]) -> int:
    """The votes an item that a plan recommends under a budget."""
    return min(items, key=lambda k: pair.error(goal, items[k], k).value)


def recommended() -> None:
    print("## Recommended plans: error of the measured difference against that of the best plan on all votes")
    for name in RECOMMENDED:
        votes = DATASETS[name].load()
        counts = votes.counts[votes.panel_size >= 5]
        rng = np.random.default_rng(0)
        metrics = ["soft_nll", "accuracy", "tvd", *(["wasserstein"] if votes.ordered else [])]
        truth = simulated_pair(whole_panel(counts, rng), VOTES, metrics=metrics, goal="soft_nll")
        ratios, held = [], []
        for pilot in range(3):
            kept = drawn(counts[rng.permutation(len(counts))[:200]], 5, rng)
            # The rule of `plan`, without what else a plan tells.
            pair = simulated_pair(fit_panel(kept, seed=pilot), VOTES, metrics=metrics, goal="soft_nll", seed=pilot)
            for goal, item_price, budget in product(metrics, (0.0, 4.0), (2000, 20_000)):
                items = {k: int(budget / Prices(item=item_price).cost(1, k)) for k in VOTES}
                chosen, best = (least_error(each, goal, items) for each in (pair, truth))
                errors = [truth.error(goal, items[k], k).value for k in (chosen, best)]
                ratios.append(errors[0] / errors[1])
                said = pair.power(goal, items[chosen], chosen)
                power = truth.power(goal, items[chosen], chosen).value
                held.append(said.low is not None and said.high is not None and said.low <= power <= said.high)
                if ratios[-1] > 1.1:
                    print(f"  {goal}, {budget}, an item {item_price:g}: k = {chosen}, best {best}, {ratios[-1]:.2f}")
        print(
            f"{name}: within 10 % in {sum(ratio <= 1.1 for ratio in ratios)} of {len(ratios)} plans, at worst "
            f"{max(ratios):.2f}; the interval of the power held that of the truth in {sum(held)}"
        )
        sys.stdout.flush()


def adaptive() -> None:
    print("## Adaptive: squared error of the posterior mean after 3 + 2 votes an item, even and adaptive")
    for name in ADAPTIVE:
        votes = DATASETS[name].load()
        counts = votes.counts[votes.panel_size >= 20][:2000]
        truth = counts / counts.sum(axis=1, keepdims=True)
        gains = []
        for trial in range(20):
            rng = np.random.default_rng(trial)
            first = drawn(counts, 3, rng)
            left = counts - first
            found = next_votes(votes_from_counts(first), budget=2 * len(first))
            assert found is not None
            further = np.zeros(len(first), dtype=np.int64)
            further[found.items] = found.votes
            further = np.minimum(further, left.sum(axis=1))
            even = np.full(len(first), int(further.sum()) // len(first))
            even[rng.permutation(len(first))[: int(further.sum()) - int(even.sum())]] += 1
            errors = []
            for wanted in (even, further):
                seen = first + draw_votes(left, wanted, rng)
                guess = Dirichlet(panel_concentration(first.astype(np.float64))).forecast(seen)
                errors.append(float(((guess - truth) ** 2).sum(axis=1).mean()))
            gains.append(errors)
        table = np.array(gains)
        better = 1 - table[:, 1] / table[:, 0]
        print(
            f"{name}: even {table[:, 0].mean():.5f}, adaptive {table[:, 1].mean():.5f}, {better.mean():.1%} less "
            f"error, better in {(better > 0).sum()} of {len(better)} trials"
        )
        sys.stdout.flush()


def fresh_power(panel: FittedPanel, pair: Pair, metric: str, items: int, k: int, *, tests: int, seed: int) -> float:
    """How often a fresh collection finds the better system better, by a t-test each."""
    rng = np.random.default_rng(seed)
    per_item = METRICS[metric].per_item
    assert per_item is not None
    sign = 1 if METRICS[metric].better == "higher" else -1
    nothing = panel.prior.forecast(np.zeros((1, panel.points.shape[1])))[0]
    hits = 0
    for _ in range(tests):
        p = panel.points[rng.choice(len(panel.points), items, p=panel.weights / panel.weights.sum())]
        one, other = (panel.prior.forecast(rng.multinomial(WORTH, p)) for _ in range(2))
        other[rng.random(items) < pair.share] = nothing
        shares = rng.multinomial(k, p) / k
        gain = sign * (per_item(shares, one) - per_item(shares, other))
        spread = float(gain.std(ddof=1))
        hits += bool(spread > 0 and gain.mean() / spread * np.sqrt(items) > -stdtrit(items - 1, 0.025))
    return hits / tests


def power() -> None:
    print("## Power: said to be 80 %, in 1,000 fresh simulations")
    for name in ("cifar-10h", "chaosnli-snli", "emobank-valence", "words"):
        votes = DATASETS[name].load()
        counts = votes.counts[votes.panel_size >= 5]
        rng = np.random.default_rng(0)
        panel = fit_panel(drawn(counts[rng.permutation(len(counts))[:300]], 5, rng))
        metrics = ["soft_nll", "accuracy", *(["wasserstein"] if votes.ordered else [])]
        for share in (0.1, 0.3):
            for goal in metrics:
                whole = simulated_pair(panel, (1, 3, 5, 10), metrics=metrics, goal=goal)
                difference = whole.difference(goal) * share / whole.share
                pair = simulated_pair(panel, (1, 3, 5, 10), metrics=metrics, goal=goal, difference=difference)
                told = []
                for k in (1, 3, 5, 10):
                    needed = pair.items_needed(goal, k)
                    if needed is None or needed.value > 5000:
                        continue
                    items = int(np.ceil(needed.value))
                    rate = fresh_power(panel, pair, goal, items, k, tests=1000, seed=k)
                    told.append(f"{items} x {k}: {rate:.1%}")
                print(f"{name}, {goal}, d = {difference:.3g}: {'; '.join(told)}")
                sys.stdout.flush()


PARTS = {"intervals": intervals, "recommended": recommended, "adaptive": adaptive, "power": power}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
