"""Sets that cover people, when to ask them, collecting beside a model, on real sets: parts of `benchmarks.together`.

Rules, fixed before the numbers:
- sets: half of the items, at random, calibrate on their votes, the others' votes are counted; 20 splits. Judged: the
  mean share of votes held is within .01 of nominal. Beside it, sets calibrated on majorities.
- defer: a tenth of the items go to people. Judged: *better* than chance where the 95 % interval of the difference of
  the areas, paired over items, lies above 0.
- collect: the server and bots, which answer with votes drawn from half of an item's real ones; the other half is
  scored. Every item gets 5 votes (labels: people's best forecast from them); or 2, and then further ones in adaptive
  rounds up to 3.75 in the mean, a quarter less, with the model (labels: `dis.combine`) and without. Judged: *as good
  with 25 % fewer* where the 95 % interval of the difference in soft NLL to 5 votes each does not lie above 0. Beside
  it, 3 and 4 of each item's five votes with the model, which tells what the rounds add to that.
"""

from __future__ import annotations

import asyncio
import csv
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import dissensus as dis
from benchmarks.predicted import predicted
from dissensus.evaluation.finite_panel.panel import draw_votes
from dissensus.evaluation.probabilities import Predictions
from dissensus.labels.mixture import cross_fitted
from dissensus.together.sets import coverage_and_size, mass_before, set_thresholds, sets_within
from dissensus.votes.table import votes_from_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Counts, Floats, Table
    from dissensus.evaluation.probabilities import Runs
    from dissensus_collect.simulation.server import Server

SPLITS = 20
LEVELS = (0.8, 0.9, 0.95)
COLLECTED = ("chaosnli-s", "chaosnli-m", "cifar-10h")
"""Sets with so many votes per item that half of them can be drawn from."""

REPLAYED = 600
"""Items of a replay."""

UNIFORM = 5
FIRST = 2
FEWER = 0.75


def covering(sets: Sequence[str]) -> None:
    print(f"## Sets, {SPLITS} splits: | set | level | votes held | classes | by majorities: held | classes |")
    for name in sets:
        made = predicted(name)
        share = made.votes.counts / made.votes.counts.sum(axis=1, keepdims=True)
        before = mass_before(made.predictions.probabilities.mean(axis=0), ordered=made.votes.ordered)
        majority = np.eye(share.shape[1])[share.argmax(axis=1)]
        for level in LEVELS:
            held = np.empty((2, SPLITS, 2))
            for split in range(SPLITS):
                order = np.random.default_rng(split).permutation(len(share))
                one, other = order[: len(order) // 2], order[len(order) // 2 :]
                for row, target in enumerate((share, majority)):
                    threshold = set_thresholds(target[one], before[one], level)
                    inside = sets_within(before[other], threshold, ordered=made.votes.ordered)
                    held[row, split] = [each.value for each in coverage_and_size(share[other], inside, resamples=0)]
            votes, hard = held.mean(axis=1)
            passed = "" if abs(votes[0] - level) <= 0.01 else "  MORE THAN .01 OFF"
            print(
                f"| {name} | {level:g} | {votes[0]:.3f} | {votes[1]:.2f} | {hard[0]:.3f} | {hard[1]:.2f} |{passed}",
                flush=True,
            )


def deferring(sets: Sequence[str]) -> None:
    print("## When to ask: | set | votes asked | risk of asking nobody | area by rule, of chance (less than chance) |")
    for name in sets:
        made = predicted(name)
        found = dis.defer(made.votes, made.predictions, share=0.1)
        rules = []
        for rule in found.rules[:-1]:
            assert rule.less.low is not None
            verdict = "better" if rule.less.low > 0 else "not shown"
            part = "-" if rule.of_random is None else f"{rule.of_random:.2f}"
            rules.append(f"{rule.rule} {part} ({rule.less}: {verdict})")
        print(f"| {name} | {found.asked} | {found.rules[-1].risk[-1]:.4f} | {'; '.join(rules)} |", flush=True)
        print(f"  costs at {found.cost:.3f} nats a vote: {', '.join(f'{k} {v}' for k, v in found.costs.items())}")


def collecting(sets: Sequence[str]) -> None:
    print(f"## Collect, {REPLAYED} items, {UNIFORM} votes each against {FEWER:.0%} of them: soft NLL on other votes")
    for name in (name for name in COLLECTED if name in sets):
        made, rng = predicted(name), np.random.default_rng(0)
        rows = np.sort(rng.permutation(len(made.votes.items))[:REPLAYED])
        counts, runs = np.asarray(made.votes.counts)[rows], made.predictions.probabilities[:, rows]
        drawn_from = draw_votes(counts, counts.sum(axis=1) // 2, rng)
        rest = counts - drawn_from
        share = rest / rest.sum(axis=1, keepdims=True)

        def loss(labels: Table, share: Table = share) -> Floats:
            return np.asarray(-(share * np.log(np.maximum(labels, 1e-12))).sum(axis=1))

        uniform = replayed(drawn_from, runs, k=UNIFORM, budget=0, model=False)
        base, budget = loss(alone(uniform)), round((FEWER * UNIFORM - FIRST) * len(counts))
        for model in (True, False):
            found = replayed(drawn_from, runs, k=FIRST, budget=budget, model=model)
            difference = loss(beside(found, runs) if model else alone(found)) - base
            reach = 1.96 * difference.std(ddof=1) / np.sqrt(len(difference))
            ends = f"{difference.mean():+.4f} [{difference.mean() - reach:+.4f}, {difference.mean() + reach:+.4f}]"
            verdict = "as good with 25 % fewer" if difference.mean() - reach <= 0 else "WORSE with 25 % fewer"
            print(
                f"| {name} | {'with the model' if model else 'votes alone'} | {found.sum() / len(found):.2f} votes | "
                f"{base.mean() + difference.mean():.4f} | {UNIFORM} each {base.mean():.4f} | {ends} {verdict} |",
                flush=True,
            )
        for k in (2, 3, 4, UNIFORM):
            some = draw_votes(uniform, np.full(len(uniform), k), np.random.default_rng(k))
            both, votes = (loss(labels).mean() for labels in (beside(some, runs), alone(some)))
            print(f"  {k} votes each and the model {both:.4f}, alone {votes:.4f}", flush=True)


def alone(counts: Counts) -> Table:
    """People's best forecast from their votes, cross-fitted."""
    priors, fold = cross_fitted(counts.astype(np.float64))
    out = np.empty(counts.shape)
    for part, prior in enumerate(priors):
        out[fold == part] = prior.forecast(counts[fold == part])
    return out


def beside(counts: Counts, runs: Runs) -> Table:
    """Labels of votes and the model."""
    votes = votes_from_counts(counts)
    about: Any = {"items": votes.items, "classes": votes.classes, "seeds": tuple(range(len(runs)))}
    return dis.combine(votes, Predictions(probabilities=runs, **about), resamples=0).labels.probabilities


def replayed(votes: Counts, runs: Runs, *, k: int, budget: int, model: bool) -> Counts:
    """(items, classes) votes that a server collected from bots, which draw them from these."""
    from dissensus_collect.project.reading import read_project
    from dissensus_collect.project.starting import init_project
    from dissensus_collect.results.collected import collected_votes
    from dissensus_collect.simulation.bots import simulate
    from dissensus_collect.simulation.crowd import Behaviour
    from dissensus_collect.store.opening import snapshot

    names, classes = [f"item{n:05}" for n in range(len(votes))], [f"class {k}" for k in range(votes.shape[1])]
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=Path.cwd() / "local") as place:
        folder = Path(place)
        with (folder / "items.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["item", "text"], *([name, f"text of {name}"] for name in names)])
        np.savez(folder / "model.npz", items=names, classes=classes, probabilities=runs)
        given: dict[str, Any] = {"model": folder / "model.npz", "budget": budget} if budget else {}
        path = init_project(
            folder / "project", texts=folder / "items.csv", classes=classes, layout="single-choice", k=k,
            items_per_annotator=200, **given,
        )  # fmt: skip
        if not model:
            path.write_text("".join(line for line in path.open() if not line.startswith("model = ")))

        async def spent(server: Server) -> None:
            while True:
                with snapshot(server.project) as cursor:
                    (bought,) = cursor.execute(
                        "SELECT coalesce(sum(wanted - wanted_before), 0) FROM decision"
                    ).fetchone()
                if bought >= budget:
                    return
                await asyncio.sleep(0.2)

        truth = votes / votes.sum(axis=1, keepdims=True)
        careful = Behaviour(abandon=0, duplicate=0, reload=0, second_tab=0, careless=0, exclude=0)
        done = simulate(
            read_project(folder / "project"), folder / "simulated", truth=truth, behaviour=careful, during=spent
        )
        assert not done.wrong, done.wrong[:3]
        with snapshot(read_project(folder / "simulated")) as cursor:
            found = collected_votes(cursor, read_project(folder / "simulated"))
            (rounds,) = cursor.execute("SELECT count(DISTINCT at) FROM decision").fetchone()
    print(
        f"  {found.counts.sum():,} votes by {done.annotators} bots in {rounds} rounds, "
        f"{time.perf_counter() - began:.0f} s, load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    order = np.argsort(found.items)
    return np.asarray(found.counts)[order]
