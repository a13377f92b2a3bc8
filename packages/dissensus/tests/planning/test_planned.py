"""A plan, and what a user reads of it."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from typer.testing import CliRunner

from dissensus import plot
from dissensus.cli import app
from dissensus.errors import InputError
from dissensus.planning import Plan, Prices, next_votes, plan
from dissensus.planning.fitted import fit_panel
from dissensus.planning.planned import _without_people, delivery_advice
from dissensus.planning.predicted import predict
from dissensus.votes import simulate_votes, write_votes
from dissensus.votes.table import Annotators, Votes, votes_from_counts
from tests.evaluation.coverage import shared_panel

RNG = np.random.default_rng
ROOT = Path(__file__).parents[4]


@cache
def pilot(*, ordered: bool = False) -> Votes:
    return simulate_votes(RNG(0).dirichlet([0.5, 0.5], 80), 4, annotators=20, seed=0, ordered=ordered)


@cache
def planned(goal: str = "soft_nll", budget: float | None = 2000, item: float = 0.0) -> Plan:
    return plan(pilot(), goal=goal, budget=budget, prices=Prices(vote=2.0, item=item, seconds=36))


def test_every_choice_costs_the_budget_and_no_more() -> None:
    for item in (0.0, 100.0):
        for each in planned(item=item).choices:
            assert each.cost == each.items * (item + 2 * each.k)
            assert each.cost <= 2000 < each.cost + item + 2 * each.k
            assert each.hours == pytest.approx(each.items * each.k / 100)


def test_soft_nll_wants_items_where_they_are_free_and_votes_where_they_are_not() -> None:
    free, dear = planned().best, planned(item=100.0).best
    assert free is not None
    assert dear is not None
    assert free.k == 1 < 5 <= dear.k
    assert "More items beat more votes here" in " ".join(planned().answer)
    assert f"Beyond {dear.k} votes per item, buy items instead" in " ".join(planned(item=100.0).answer)


def test_accuracy_wants_more_votes_than_soft_nll() -> None:
    rich = plan(pilot(), goal="accuracy", budget=20_000)
    assert rich.best is not None
    assert rich.best.k >= 3
    assert rich.best.error["accuracy"].value == min(each.error["accuracy"].value for each in rich.choices)


def test_without_a_budget_the_cheapest_plan_of_the_power_is_asked_for() -> None:
    found = planned(budget=None, item=4.0)
    assert found.best is not None
    assert found.best.cost == min(each.cost for each in found.choices)
    assert all(each.power["soft_nll"].value == pytest.approx(0.8, abs=0.03) for each in found.choices)
    assert found.best.items == np.ceil(found.needed["soft_nll"][found.best.k].value)


def test_agreement_is_measured_best_by_the_narrowest_interval() -> None:
    found = planned("agreement")
    assert found.best is not None
    widths = {each.k: each.shown.alpha.estimate for each in found.choices if each.shown.alpha.estimate is not None}
    narrowest = min(widths, key=lambda k: widths[k].high - widths[k].low)  # type: ignore[operator]
    assert found.best.k == narrowest
    assert "measure agreement best" in found.answer[0]


def test_the_answer_says_for_which_metric_and_what_cannot_be_known() -> None:
    words = " ".join(planned().answer)
    assert "This is for soft NLL" in words
    assert "accuracy" in words
    assert "cannot be known from votes alone" in words


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"goal": "beauty"}, "no goal 'beauty'"),
        ({"goal": "wasserstein"}, "needs classes that are a scale"),
        ({"goal": "agreement"}, "give a budget"),
        ({"budget": 0}, "buys nothing"),
        ({"budget": 1}, "does not buy two items"),
        ({"budget": float("nan")}, "a budget of nan buys nothing"),
        ({"budget": float("inf")}, "a budget of inf buys nothing"),
        ({"difference": 5.0}, "give a smaller one"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        plan(pilot(), **given)


def test_a_pilot_of_single_votes_is_refused() -> None:
    with pytest.raises(InputError, match="ask at least 10 items twice"):
        plan(votes_from_counts(np.eye(3, dtype=np.int64)), budget=100)
    with pytest.raises(InputError, match="all votes are for one class, so that nothing can be compared"):
        plan(votes_from_counts(np.tile([3, 0], (30, 1))), budget=100)
    with pytest.raises(InputError, match="cost more than 0"):
        Prices(vote=0)


def test_a_budget_is_spent_to_the_last_vote_whatever_binary_numbers_make_of_prices() -> None:
    bought = {each.k: each.items for each in plan(pilot(), budget=3, prices=Prices(vote=0.1)).choices}
    assert bought == {k: 30 // k for k in bought}
    assert bought[3] == 10


@pytest.mark.parametrize("budget", [1e6, 1e12, 1e20])
def test_free_items_beat_votes_by_soft_nll_however_rich_one_is(budget: float) -> None:
    best = plan(pilot(), goal="soft_nll", budget=budget).best
    assert best is not None
    assert best.k == 1
    assert best.cost <= budget


def test_a_difference_too_small_for_any_number_of_items_has_no_plan() -> None:
    found = plan(pilot(), difference=1e-9)
    assert found.best is None
    assert found.answer[0].endswith("or it takes more than 1,000,000,000 items.")


def test_systems_that_know_the_pilots_votes_are_warned_of() -> None:
    shares = pilot().counts / pilot().counts.sum(axis=1, keepdims=True)
    model = 0.5 * RNG(1).dirichlet([0.5, 0.5], 80) + 0.25
    found = plan(pilot(), budget=500, systems={"honest": model, "leaked": 0.9 * shares + 0.05})
    told = [note for note in found.notes if "seem to know the votes" in note]
    assert [note.split(":")[1] for note in told] == [" leaked"]


def test_the_next_votes_go_where_they_help_and_beat_even_ones() -> None:
    rng = RNG(1)
    truth = np.where(rng.random(400)[:, None] < 0.8, [0.98, 0.02], [0.5, 0.5])
    counts = rng.multinomial(4, truth)
    found = next_votes(votes_from_counts(counts), budget=400)
    assert found is not None
    assert found.votes.sum() == 400
    assert found.adaptive < found.uniform < found.now
    unanimous = (counts.max(axis=1) == 4)[found.items]
    assert found.votes[~unanimous].mean() > 2 * found.votes.sum() / 400
    further = np.zeros(400, dtype=np.int64)
    further[found.items] = found.votes
    errors = []
    for wanted in (further, np.full(400, 1)):
        seen = counts + rng.multinomial(wanted, truth) + 0.3
        errors.append(((seen / seen.sum(axis=1, keepdims=True) - truth) ** 2).sum(axis=1).mean())
    assert errors[0] < errors[1]


def vars_of(votes: Votes) -> dict[str, Any]:
    return {name: getattr(votes, name) for name in votes.__dataclass_fields__}


def test_delivery_advice_is_the_benchmarks_own_and_its_file_is_the_newest() -> None:
    kept = ROOT / "packages" / "dissensus" / "src" / "dissensus" / "planning" / "answers.json"
    newest = json.loads((ROOT / "docs" / "results" / "bench.json").read_text())
    _, few, many = newest["answers"]  # few votes: on sets as they were collected, the answer that its rules allow
    assert json.loads(kept.read_text()) == {"few": few, "many": many}, (
        f"the benchmark was run again: write it to {kept}"
    )
    assert (delivery_advice(3.0), delivery_advice(30.0)) == (few, many)
    assert delivery_advice(3.0).startswith("With few votes")


def test_the_command_prints_the_answer_and_writes_table_figure_and_lists(tmp_path: Path) -> None:
    write_votes(pilot(), tmp_path / "votes.csv")
    options = [
        "--budget",
        "1500",
        "--price",
        "0.5",
        "--answer-seconds",
        "10",
        "--item-price",
        "1",
        "--goal",
        "accuracy",
    ]
    out, kept = tmp_path / "out", tmp_path / "plan.json"
    command = ["plan", str(tmp_path / "votes.csv"), *options, "-o", str(out), "--json", str(kept)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    found = json.loads(kept.read_text())
    assert found["answer"][0] in result.output.replace("\n", " ")
    assert "Training: With few votes" in result.output
    assert {each.name for each in out.iterdir()} == {"plan.csv", "plan.svg", "next.csv", "next.json"}
    rows = list(csv.DictReader((out / "plan.csv").read_text().splitlines()))
    assert [int(row["votes"]) for row in rows] == [each["votes"] for each in found["choices"]]
    assert float(rows[1]["power_accuracy"]) == pytest.approx(found["choices"][1]["power"]["accuracy"]["value"])
    svg = (out / "plan.svg").read_text()
    assert svg.startswith("<svg")
    assert "accuracy" in svg
    tasks = json.loads((out / "next.json").read_text())
    assert sum(task["data"]["votes_wanted"] for task in tasks) == found["next"]["votes"]


def test_predictions_take_the_place_of_simulated_systems(tmp_path: Path) -> None:
    votes = pilot(ordered=True)
    write_votes(votes, tmp_path / "votes.csv")
    shares = votes.counts / votes.counts.sum(axis=1, keepdims=True)
    for name, table in {"sure": 0.8 * shares + 0.1, "even": np.full(shares.shape, 0.5)}.items():
        np.savez(tmp_path / f"{name}.npz", items=votes.items, probabilities=table, classes=np.array(votes.classes))
    command = ["plan", str(tmp_path / "votes.csv"), "--ordered", "--budget", "300"]
    command += ["--predictions", str(tmp_path / "sure.npz"), "--compare", str(tmp_path / "even.npz")]
    result = CliRunner().invoke(app, [*command, "--json", "-"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.output[result.output.index("{") : result.output.rindex("}") + 1])
    assert set(found["choices"][0]["scores"]) == {"sure", "even"}
    assert found["choices"][2]["reliability"] is not None
    assert "sure is taken for the better one" in " ".join(found["notes"])
    refused = CliRunner().invoke(app, [*command, "--difference", "0.1"])
    assert isinstance(refused.exception, InputError)


def test_a_system_may_have_answered_a_part_of_the_pilot(tmp_path: Path) -> None:
    votes = pilot()
    write_votes(votes, tmp_path / "votes.csv")
    half = np.arange(len(votes.items))[::-2]
    even = np.full((len(half), len(votes.classes)), 0.5)
    np.savez(tmp_path / "half.npz", items=votes.items[half], probabilities=even, classes=np.array(votes.classes))
    command = ["plan", str(tmp_path / "votes.csv"), "--budget", "300", "--predictions", str(tmp_path / "half.npz")]
    refused = CliRunner().invoke(app, command)
    assert "only_common=" in str(refused.exception)
    result = CliRunner().invoke(app, [*command, "--only-common", "--json", str(tmp_path / "plan.json")])
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "plan.json").read_text())
    alone = plan(votes.take_items(half), budget=300, systems={"half": even})
    assert found["answer"] == list(alone.answer)
    assert f"{len(half)} of {len(votes.items)} items with votes have a prediction" in result.output


def test_votes_of_models_are_left_out_and_that_is_said(tmp_path: Path) -> None:
    rows = [f"{item},p{who},{'ab'[(item + who) % 5 == 0]},person" for item in range(30) for who in range(4)]
    rows += [f"{item},llm,b,model" for item in range(30)]
    (tmp_path / "votes.csv").write_text("item,annotator,label,kind\n" + "\n".join(rows) + "\n")
    result = CliRunner().invoke(app, ["plan", str(tmp_path / "votes.csv"), "--budget", "300"])
    assert result.exit_code == 0, result.output
    assert "30 of 150 votes are from models (llm): left out" in result.output
    assert "30 items with 4 votes each" in result.output.replace("\n", " ")


def test_a_wage_needs_the_seconds_of_an_answer(tmp_path: Path) -> None:
    write_votes(pilot(), tmp_path / "votes.csv")
    refused = CliRunner().invoke(app, ["plan", str(tmp_path / "votes.csv"), "--wage", "12"])
    assert isinstance(refused.exception, InputError)
    assert "--answer-seconds" in str(refused.exception)


def test_the_order_of_two_systems_does_not_matter_and_the_same_one_twice_is_refused() -> None:
    votes = pilot()
    shares = votes.counts / votes.counts.sum(axis=1, keepdims=True)
    sure, even = 0.8 * shares + 0.1, np.full(shares.shape, 0.5)
    one, other = (
        plan(votes, budget=300, systems=dict(each))
        for each in ([("sure", sure), ("even", even)], [("even", even), ("sure", sure)])
    )
    assert one.answer == other.answer
    plain = (shares * (np.log(sure) - np.log(even))).sum(axis=1).mean()
    assert one.difference["soft_nll"] == pytest.approx(plain)
    assert "sure is taken for the better one, as it is on the pilot" in other.notes[1]
    with pytest.raises(InputError, match="sure is ahead of same by 0 on the pilot's votes"):
        plan(votes, budget=300, systems={"sure": sure, "same": sure})


def test_a_notebook_shows_the_figure() -> None:
    shown = plot.plan(planned()).to_dict(validate=False)
    (rows,) = shown["datasets"].values()
    assert {row["metric"] for row in rows} == {"soft NLL", "accuracy", "TVD"}
    assert next(row["value"] for row in rows if row["best"] == "yes") == planned().best.power["soft_nll"].value  # type: ignore[union-attr]
    with pytest.raises(InputError, match=r"dissensus\.planning\.plan"):
        plot.plan("votes.csv")  # type: ignore[arg-type]


def shared_pilot(seed: int, *, people: int = 5, habit: float = 1.2) -> Votes:
    return shared_panel(people, 5, items=100, habit=habit, rng=RNG([seed, people]))[0]


def test_a_pilot_by_the_same_five_people_holds_what_everybody_would_agree_on() -> None:
    """Without ids the intervals held alpha in 76 of 100 such pilots."""
    rng = RNG(99)
    base = np.log(rng.dirichlet(np.full(4, 0.5), 3000) + 1e-3)
    p = np.mean([softmax(base + each, axis=1) for each in rng.normal(0, 1.2, (300, 4))], axis=0)
    differ, by_chance = 1 - (p**2).sum(axis=1).mean(), 1 - (p.mean(axis=0) ** 2).sum()
    held = []
    for seed in range(10):
        votes = shared_pilot(seed)
        (found,) = predict(
            votes.counts, fit_panel(votes.counts), [(10**6, 5)], scale=None, without=_without_people(votes, seed=0)
        )
        for finding, right in ((found.agreement, 1 - differ), (found.alpha, 1 - differ / by_chance)):
            assert finding.estimate is not None
            assert finding.estimate.low is not None
            assert finding.estimate.high is not None
            held.append(finding.estimate.low <= right <= finding.estimate.high)
        assert found.same_majority.estimate is None
        assert "the same 5 people" in found.same_majority.reason
    assert np.mean(held) >= 0.9


def test_few_shared_people_are_warned_of_and_people_of_their_own_are_not() -> None:
    votes = shared_pilot(0)
    assert any("Warning: the same 5 people judged the pilot" in note for note in plan(votes, budget=500).notes)
    own = replace(votes, annotators=Annotators(np.arange(len(votes), dtype=np.int32), np.arange(len(votes))))
    assert not any("Warning" in note for note in plan(own, budget=500).notes)


def test_without_each_person_are_the_votes_of_the_others() -> None:
    votes = shared_pilot(1)
    assert votes.annotators is not None
    found = _without_people(votes, seed=0)
    assert sorted(each.sum() for each in found) == sorted(
        len(votes) - int((votes.annotators.code == person).sum()) for person in range(5)
    )
    assert (np.sum(found, axis=0) == 4 * votes.counts).all()


def test_a_budget_that_no_plan_reaches_the_power_with_is_said_to_be_too_small() -> None:
    poor = plan(pilot(), budget=60)
    assert all(each.power["soft_nll"].value < 0.8 for each in poor.choices)
    assert poor.answer[0].startswith("No plan for 60 finds the better system reliably: the greatest power is ")
    assert "The cheapest plan that does costs " in poor.answer[0]
    assert not any("No plan" in line for line in plan(pilot(), budget=50_000).answer)


@pytest.mark.parametrize("goal", ["soft_nll", "accuracy"])
def test_where_another_choice_has_more_power_it_is_named_with_the_reason(goal: str) -> None:
    poor = plan(pilot(), goal=goal, budget=60)
    strong = max(poor.choices, key=lambda choice: choice.power[goal].value)
    told = f"({strong.items:,} items x {strong.k} vote{'' if strong.k == 1 else 's'}, which measure the size of the"
    assert (told in poor.answer[0]) == (strong is not poor.best)


@pytest.mark.parametrize("goal", ["soft_nll", "accuracy"])
@pytest.mark.parametrize("alone", [True, False])
def test_plan_refuses_systems_whose_soft_nll_is_infinite(goal: str, alone: bool) -> None:
    votes = pilot()
    hard = np.eye(2)[votes.counts.argmax(axis=1)]
    systems = {"hard": hard} if alone else {"even": np.full(hard.shape, 0.5), "hard": hard}
    with pytest.raises(InputError, match="hard gives 0"):
        plan(votes, goal=goal, budget=300, systems=systems)


def test_plan_asks_for_no_more_further_votes_than_the_pilot_has() -> None:
    """A budget of 2000 buys 1000 votes of 2.0 each, and the pilot has 320."""
    for found in (planned(), planned(budget=None, item=4.0)):
        assert found.next is not None
        assert int(found.next.votes.sum()) == len(pilot()) == 320
