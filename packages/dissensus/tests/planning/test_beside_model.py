"""Votes beside a model: what it saves, against votes that were hidden from the plan, and what a user reads of it."""

from __future__ import annotations

import csv
import json
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dissensus as dis
from dissensus import InputError
from dissensus.cli import app
from dissensus.evaluation.finite_panel.panel import draw_votes
from dissensus.evaluation.finite_panel.people_ruler import people_ruler
from dissensus.evaluation.probabilities import Predictions
from dissensus.planning import PlanBeside, Prices
from dissensus.planning.beside_model import scores_beside, votes_beside
from dissensus.together.gains import learn
from dissensus.votes.table import votes_from_counts
from tests.together.test_combining import panel_of

if TYPE_CHECKING:
    from pathlib import Path

CLASSES = ("no", "maybe", "yes")
RNG = np.random.default_rng(0)
TRUTH = RNG.dirichlet(np.full(3, 0.4), 140)
COUNTS = RNG.multinomial(4, TRUTH)
ITEMS = np.array([f"i{row}" for row in range(len(TRUTH))])


def votes(rows: Any = slice(None)) -> dis.Votes:
    return votes_from_counts(COUNTS[rows], items=ITEMS[rows], classes=CLASSES)


def predictions(said: Any, rows: Any = slice(None)) -> Predictions:
    return Predictions(probabilities=said[None, rows], items=ITEMS[rows], classes=CLASSES, seeds=(0,))


@cache
def good() -> PlanBeside:
    """A pilot of 100 items, and a model that predicts 40 more."""
    said = np.exp(np.log(TRUTH + 0.05) + np.random.default_rng(2).normal(size=TRUTH.shape))
    said /= said.sum(axis=1, keepdims=True)
    return dis.plan_with_model(
        votes(slice(100)), predictions(said), prices=Prices(vote=0.5, seconds=36), resamples=100, budget=30
    )


def test_a_person_saves_one_vote_and_the_same_on_items_that_were_hidden() -> None:
    rng = np.random.default_rng(1)
    counts = rng.multinomial(7, rng.dirichlet(np.full(3, 0.5), 400))
    person = draw_votes(counts, np.ones(400, dtype=np.int64), rng)
    rest, model = counts - person, person[None].astype(np.float64)
    pilot = draw_votes(rest[:150], np.full(150, 4), rng)
    promised = votes_beside(learn(panel_of(pilot), [model[:, :150]]), resamples=100)
    assert not isinstance(promised, str)
    learnt = learn(panel_of(rest[150:]), [model[:, 150:]])
    ruler = people_ruler(learnt.panel)
    assert not isinstance(ruler, str)
    beside = scores_beside(learnt, ruler).mean(axis=1)
    for k in (2, 3):
        low, high = promised[k].estimate.low, promised[k].estimate.high
        assert low is not None
        assert high is not None
        # Scores fall as votes come.
        needed = np.interp(-ruler.values[k], -beside, np.arange(len(beside)))
        assert needed == pytest.approx(k - 1, abs=0.4)
        assert low <= needed <= high


def test_what_is_saved_is_in_votes_money_and_hours_of_all_items_that_are_predicted() -> None:
    found = good()
    assert found.items == 140
    assert [saving.alone for saving in found.savings] == [1, 2, 3]
    for saving in found.savings:
        assert saving.votes.value == pytest.approx(saving.alone - saving.beside.value)
        assert saving.cost.value == pytest.approx(140 * 0.5 * saving.votes.value)
        assert saving.hours is not None
        assert saving.hours.low == pytest.approx(140 * 0.01 * (saving.alone - (saving.beside.high or 0)))
        assert 0.5 < saving.votes.value <= saving.alone
    assert "on 140 items" in " ".join(found.answer)


def test_items_without_votes_are_listed_among_the_next() -> None:
    found = good().next
    assert found is not None
    assert found.votes.sum() == 60
    unseen = set(ITEMS[100:].tolist())
    assert unseen & set(found.items.tolist())
    # On items that nobody judged there is more to gain.
    asked = dict(zip(found.items.tolist(), found.votes.tolist(), strict=True))
    judged, new = (np.mean([asked.get(name, 0) for name in names]) for names in (ITEMS[:100], ITEMS[100:]))
    assert new > judged


def test_predictions_of_other_items_save_nothing() -> None:
    said = TRUTH[np.random.default_rng(3).permutation(len(TRUTH))]
    found = dis.plan_with_model(votes(), predictions(said), resamples=100)
    assert abs(found.savings[-1].votes.value) < 0.3
    assert "not shown that the model saves" in found.answer[0]


def test_single_votes_are_refused() -> None:
    single = votes_from_counts(np.eye(3, dtype=np.int64)[np.arange(140) % 3], items=ITEMS, classes=CLASSES)
    with pytest.raises(InputError, match="two votes or more"):
        dis.plan_with_model(single, predictions(TRUTH))
    with pytest.raises(InputError, match="buys nothing"):
        dis.plan_with_model(votes(), predictions(TRUTH), budget=0)


def test_the_command_prints_what_is_saved_and_writes_the_list(tmp_path: Path) -> None:
    rows = [
        f"{name},a{place},{CLASSES[label]},web"
        for name, count in zip(ITEMS[:80], COUNTS, strict=False)
        for place, label in enumerate(np.repeat(np.arange(3), count))
    ]
    (tmp_path / "votes.csv").write_text("\n".join(["item,annotator,label,source", *rows]))
    said = ["item,no,maybe,yes", *(f"{name},{a},{b},{c}" for name, (a, b, c) in zip(ITEMS, TRUTH, strict=True))]
    (tmp_path / "model.csv").write_text("\n".join(said))
    command = ["plan", str(tmp_path / "votes.csv"), "--model", str(tmp_path / "model.csv"), "--keep", "source"]
    done = CliRunner().invoke(
        app, [*command, "--price", "0.1", "-o", str(tmp_path / "out"), "--json", str(tmp_path / "j")]
    )
    assert done.exit_code == 0, done.output
    assert "on 140 items" in done.output
    assert len(json.loads((tmp_path / "j").read_text())["savings"]) == 3
    table = list(csv.DictReader((tmp_path / "out" / "plan.csv").read_text().splitlines()))
    assert [row["votes"] for row in table] == ["1", "2", "3"]
    listed = list(csv.DictReader((tmp_path / "out" / "next.csv").read_text().splitlines()))
    assert {row["source"] for row in listed} == {"web", ""}
    refused = CliRunner().invoke(app, [*command, "--goal", "accuracy"])
    assert isinstance(refused.exception, InputError)
    assert "leave out --predictions" in str(refused.exception)
