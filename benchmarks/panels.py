"""LLM panels corrected with human votes: does a panel with one person's vote beat two people?

    DISSENSUS_DATA=DATA python -m benchmarks.panels [SET ...]

Sets are those of the alternative annotator test on which at least 100 items have three human votes or more, with all
six LLMs; SummEval is one of them. (mtbench has 6 such items, and kilogram's answers are free text.) The panel's answers
are recalibrated, weighed and joined with votes by `dis.combine`, learnt on other items (five folds); people are given
their best forecast, learnt on the same items (the people ruler). Scored on each item's other votes, soft NLL in nats,
95 % intervals over items, for these people.

Judged, by rules that were written before the first run:
- panel alone against one person, one vote and the panel against two people: *yes* where the interval of the difference
  lies above 0, *no* where it lies below, else *not shown*.
- the check shares no assumption: multinomial logistic regression (scikit-learn, C = 1, five folds) on one vote and the
  six answers as indicators, against the same on two votes' counts, both on the item's other votes. It must not say the
  opposite; where one says yes or no and the other does not, both are printed and the answer is *not shown*.
- placebo, where items have four votes: a real person in the panel's place with one vote must be even with two people.
- few: the panel corrected with the votes on 25, 50, 100 or 200 items alone, scored on all others (10 draws): the mean
  of the difference to two people, whose forecast is learnt from all items and so knows more. (No verdict; how it is
  computed was mended after a first run on CeBaB, in which votes alone were forecast by another prior.)
- diversity: the effective number of models among the six (`dis.stand_in`). Its placebo, on sets with many votes per
  item: five real people of an item in the models' places must count as five.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from dissensus.bootstrap import Estimate, percentile_estimate
from dissensus.datasets import load
from dissensus.evaluation.comparison.resampling import resampled_means
from dissensus.evaluation.finite_panel.panel import Panel, draw_judgements, draw_votes
from dissensus.evaluation.finite_panel.people_ruler import losses, people_ruler
from dissensus.evaluation.stand_in import diversity, named_answers, stand_in
from dissensus.evaluation.stand_in.answers import Answers
from dissensus.labels.mixture import folds_of
from dissensus.together.combining import learn_combination
from dissensus.together.gains import gains_of, learn
from dissensus.votes.official.judged_json import read_alttest
from dissensus.votes.table import votes_from_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.evaluation.finite_panel.people_ruler import Ruler
    from dissensus.evaluation.probabilities import Runs

SETS = ("cebab_aspects", "summeval", "lgbteen", "10k_prompts")
FEW = (25, 50, 100, 200)
DRAWS = 10
VOTES_DRAWN = 20
PLACEBOS = ("words", "fer+", "cifar-10h", "popquorn-offensiveness")


def verdict(difference: Estimate | None) -> str:
    if difference is None or difference.low is None or difference.high is None:
        return "-"
    said = "yes" if difference.low > 0 else "no" if difference.high < 0 else "not shown"
    return f"{said:9} {difference.value:+.4f} [{difference.low:+.4f}, {difference.high:+.4f}]"


def estimate(values: Any) -> Estimate:
    known = values[np.isfinite(values)]
    return percentile_estimate(resampled_means(known[None], resamples=1000, seed=0)[:, 0])


def panel_of(counts: Any) -> Panel:
    votes = np.asarray(counts, dtype=np.float64)
    return Panel(mass=votes, squares=votes, size=votes.sum(axis=1).astype(np.int64), single=True)


def by_regression(votes: Any, models: Sequence[Runs], *, seed: int = 0) -> Estimate:
    """How much lower the NLL of an item's third vote is from one vote and the models than from two votes."""
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(votes.panel_size >= 3)
    order = np.lexsort((rng.random(len(votes)), votes.item))
    first = np.concatenate([[0], np.cumsum(votes.panel_size)])[rows]
    said = votes.label[order][first[:, None] + np.arange(3)]
    one = np.eye(len(votes.classes))
    answers = np.nan_to_num(np.concatenate([model[0, rows] for model in models], axis=1))
    fold, differences = folds_of(len(rows), seed=seed), np.zeros(len(rows))
    for turn in range(3):
        a, b, scored = (said[:, (turn + step) % 3] for step in range(3))
        losses = []
        for x in (one[a] + one[b], np.concatenate([one[a], answers], axis=1)):
            loss = np.zeros(len(rows))
            for part in np.unique(fold):
                own = fold == part
                model = LogisticRegression(max_iter=2000).fit(x[~own], scored[~own])
                q = np.full((own.sum(), len(one)), 1e-6)
                q[:, model.classes_] = model.predict_proba(x[own])
                loss[own] = -np.log(q[np.arange(own.sum()), scored[own]])
            losses.append(loss)
        differences += (losses[0] - losses[1]) / 3
    return estimate(differences)


def learnt_from_few(counts: Any, models: Sequence[Runs], ruler: Ruler, items: int, *, seed: int) -> float:
    """The mean difference to two people on all items but some, whose votes alone correct the panel."""
    order = np.random.default_rng(seed).permutation(len(counts))
    some, others = order[:items], order[items:]
    combination = learn_combination(panel_of(counts[some]), [model[:, some] for model in models], seed=seed)
    rest = panel_of(counts[others])
    rng = np.random.default_rng(seed)
    pseudo, scores = combination.pseudo_votes([model[:, others] for model in models]), np.zeros(len(others))
    for _ in range(VOTES_DRAWN):
        votes = draw_judgements(rest, np.ones(len(others), dtype=np.int64), rng)
        left = (rest.mass - votes) / np.maximum(rest.size - 1, 1)[:, None] / VOTES_DRAWN
        scores += (left * losses(combination.forecast(pseudo, votes), "soft_nll")).sum(axis=1)
    return float(np.nanmean(ruler.per_item[2][others] - scores))


def measure(name: str, folder: Path) -> None:
    began = time.process_time()
    votes = read_alttest(folder / f"{name}.human_annotations.json")
    answers = json.loads((folder / f"{name}.llm_annotations.json").read_text())
    counts, classes = np.asarray(votes.counts), {label: place for place, label in enumerate(votes.classes)}
    models, one = {}, np.eye(len(classes))
    for model, said in answers.items():
        place = np.array([classes.get(str(said.get(str(item))), -1) for item in votes.items.tolist()])
        models[model] = np.where((place < 0)[:, None], np.nan, one[place])[None]
    three = int((votes.panel_size >= 3).sum())
    about = f"{three:,} with three votes), {len(classes)} classes, {len(models)} models"
    print(f"\n{name}: {len(counts):,} items ({about}")
    found = gains_of(learn(panel_of(counts), list(models.values())), resamples=1000)
    for gain in found[:2]:
        asked = f"{gain.votes} votes and the panel beat {gain.votes + 1}?"
        print(f"  {asked} {verdict(gain.of_one_more)}   worth {gain.worth}", flush=True)
    print(f"  check by regression: {verdict(by_regression(votes, list(models.values())))}")
    if (votes.panel_size >= 4).sum() >= 100:
        rng, rows = np.random.default_rng(0), np.flatnonzero(votes.panel_size >= 4)
        cumulated = counts[rows].cumsum(axis=1)
        person = (rng.random(len(rows))[:, None] * cumulated[:, -1:] < cumulated).argmax(axis=1)
        placebo = gains_of(learn(panel_of(counts[rows] - one[person]), [one[person][None]]), resamples=1000)
        print(f"  placebo, a person in the panel's place: {verdict(placebo[1].of_one_more)}   worth {placebo[1].worth}")
    ruler = people_ruler(panel_of(counts))
    assert not isinstance(ruler, str)
    for items in FEW:
        each = [learnt_from_few(counts, list(models.values()), ruler, items, seed=seed) for seed in range(DRAWS)]
        print(
            f"  corrected with {items} items' votes: {np.mean(each):+.4f} (from {min(each):+.4f} to {max(each):+.4f})"
        )
    panel = stand_in(votes, {model: named_answers(votes, said) for model, said in answers.items()}, resamples=200).panel
    print(f"  diversity: {panel}")
    print(f"  {time.process_time() - began:.0f} CPU seconds")


def people_as_models(name: str, *, models: int = 5) -> None:
    rng, votes = np.random.default_rng(0), load(name)
    kept = np.flatnonzero(votes.panel_size >= models + 3)
    rest, answers = np.asarray(votes.counts)[kept].astype(np.int64), []
    for _ in range(models):
        one = draw_votes(rest, np.ones(len(rest), dtype=np.int64), rng)
        answers.append(Answers(label=one.argmax(axis=1).astype(np.int32), classes=votes.classes))
        rest = rest - one
    print(f"{name}, {models} people as models: {diversity(votes_from_counts(rest, classes=votes.classes), answers)}")


if __name__ == "__main__":
    for each in PLACEBOS:
        people_as_models(each)
    data = Path(os.environ["DISSENSUS_DATA"]) / "alttest"
    for each in sys.argv[1:] or SETS:
        measure(each, data)
