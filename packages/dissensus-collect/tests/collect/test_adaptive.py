"""Which items get more votes: closed forms by simulation, the best plan by brute force, unbiased estimates."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dissensus.errors import InputError
from dissensus.labels.mixture import Dirichlet
from dissensus.together.allocation import (
    best_votes,
    expected_error,
    gains_of_next_votes,
)
from dissensus_collect.project.reading import read_project
from dissensus_collect.project.setup_check import check_setup
from dissensus_collect.results.adaptive import allocate, inclusion_of_votes, plan_allocation
from dissensus_collect.results.collected import read_judgements
from dissensus_collect.results.drawing import draw_round, unbiased_shares
from dissensus_collect.store.opening import open_database
from tests.collect.panels import NOW, judge_all, text_project

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_collect.project.reading import Project


def test_expected_error_is_that_of_draws_from_the_posterior() -> None:
    mass, prior = np.array([[3.0, 1.0, 0.0], [0.0, 0.0, 6.0]]), Dirichlet(np.array([0.5, 0.3, 0.7]))
    generator = np.random.default_rng(0)
    for row, found in zip(mass + prior.alpha, expected_error(mass, prior.forecast), strict=True):
        drawn = generator.dirichlet(row, 200_000)
        assert found == pytest.approx(((drawn - row / row.sum()) ** 2).sum(axis=1).mean(), rel=0.02)


def test_the_gain_of_a_vote_is_that_of_votes_drawn_and_looked_at() -> None:
    """Bayes by hand: average the error over what the next vote may say."""
    mass, prior = np.array([[3.0, 1.0, 0.5]]), Dirichlet(np.array([0.4, 0.4, 0.4]))
    gains = gains_of_next_votes(mass, prior.forecast, votes=2)[0]
    now = mass + prior.alpha
    predictive = (now / now.sum())[0]
    after_one = sum(predictive[k] * expected_error(mass + np.eye(3)[[k]], prior.forecast)[0] for k in range(3))
    assert gains[0] == pytest.approx(expected_error(mass, prior.forecast)[0] - after_one)
    after_two = 0.0
    for first, second in itertools.product(range(3), repeat=2):
        once = now + np.eye(3)[[first]]
        chance = predictive[first] * (once / once.sum())[0, second]
        after_two += chance * expected_error(mass + np.eye(3)[[first]] + np.eye(3)[[second]], prior.forecast)[0]
    assert gains[1] == pytest.approx(after_one - after_two)


@given(st.integers(0, 8), st.integers(0, 2**32 - 1))
def test_no_other_plan_of_the_same_size_gains_more(budget: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    prior = Dirichlet(np.full(3, 0.5))
    gains = gains_of_next_votes(generator.integers(0, 5, (4, 3)).astype(float), prior.forecast, votes=3)
    room = generator.integers(0, 4, 4)
    plan = best_votes(gains, room, budget=budget)
    assert (plan <= room).all()
    assert plan.sum() == min(budget, room.sum())
    worth = np.concatenate([np.zeros((4, 1)), np.cumsum(gains, axis=1)], axis=1)
    others = [
        sum(worth[item, votes] for item, votes in enumerate(each))
        for each in itertools.product(*(range(most + 1) for most in room))
        if sum(each) <= budget
    ]
    assert worth[np.arange(4), plan].sum() == pytest.approx(max(others))


def test_a_round_serves_as_many_as_were_planned_with_the_probabilities_that_it_says() -> None:
    planned = np.arange(40) < 10
    drawn = np.zeros(40)
    for seed in range(4000):
        served, inclusion = draw_round(planned, seed=seed)
        assert served.sum() == 10
        drawn += served
    np.testing.assert_allclose(drawn / 4000, inclusion, atol=0.03)
    assert inclusion.sum() == pytest.approx(10)
    assert inclusion[~planned].min() > 0


def test_a_draw_that_leaves_items_out_for_certain_is_refused() -> None:
    with pytest.raises(InputError, match="estimates are biased"):
        draw_round(np.array([True, False]), seed=0, explore=0.0)


def test_weighted_estimates_are_unbiased_where_the_plain_mean_is_not() -> None:
    """A rule that buys a vote where the first ones disagreed pulls the plain mean; the weights undo it."""
    p, k, repeats = 0.8, 3, 60_000
    generator = np.random.default_rng(0)
    yes = generator.binomial(k, p, repeats)
    base = np.column_stack([yes, k - yes]) / k
    # More likely to be asked again after a vote against: a rule that depends on the outcome.
    inclusion = np.where(yes < k, 0.9, 0.2)
    drawn = generator.random(repeats) < inclusion
    one = np.column_stack([generator.random(repeats) < p, np.zeros(repeats)]).astype(float)
    one[:, 1] = 1 - one[:, 0]
    further = np.where(drawn[:, None], one, np.nan)
    plain = np.where(drawn[:, None], (k * base + np.nan_to_num(further)) / (k + 1), base)
    weighted = unbiased_shares(base, further, inclusion, weight=1 / (k + 1))
    error = 3 * weighted[:, 0].std() / np.sqrt(repeats)
    assert abs(weighted[:, 0].mean() - p) < error
    assert abs(plain[:, 0].mean() - p) > 3 * error


def test_contested_items_are_planned_and_every_decision_is_kept(tmp_path: Path) -> None:
    project = text_project(tmp_path / "project", items=10, k=3, on="on = true", max_k="max_k = 5", budget="budget = 6")
    with open_database(project) as database:
        for person in range(3):
            if person == 2:
                # A round begins when nobody's vote is missing.
                assert database.read_now(lambda cursor: plan_allocation(cursor, project)) == []
            judge_all(
                database,
                project,
                # Items 0 to 4 divide the panel, 5 to 9 do not.
                lambda item, p=person: {  # type: ignore[misc]
                    "cat": "yes" if item >= 5 or (item + p) % 2 else "no",
                    "dog": "no" if item >= 5 or (item + p) % 2 else "yes",
                },
            )
        plan = database.read_now(lambda cursor: plan_allocation(cursor, project))
        assert plan == database.read_now(lambda cursor: plan_allocation(cursor, project))
        assert [each.gain for each in plan] == sorted((each.gain for each in plan), reverse=True)
        # The best plan holds contested items and no other; the draw adds some of the rest, with a probability it says.
        for each in plan:
            assert ("; in the best plan" in each.reason) == (int(each.name.removeprefix("item")) < 5), each
        done = database.write_now(lambda cursor: allocate(cursor, project, now=NOW + 1000))
        assert done == plan
        rows = database.read_now(
            lambda cursor: cursor.execute("SELECT item, wanted, inclusion, reason FROM decision ORDER BY id").fetchall()
        )
        assert rows == [(each.item, each.votes, each.inclusion, each.reason) for each in plan]
        # The new votes are asked for, and no round begins before they are there.
        assert database.write_now(lambda cursor: allocate(cursor, project, now=NOW + 1001)) == []
        judge_all(database, project, lambda _: {"cat": "yes", "dog": "no"}, now=NOW + 2000)

        def read(cursor: object) -> tuple[int, dict[int, float]]:
            found = read_judgements(cursor, project)
            place, inclusion = inclusion_of_votes(cursor, project, found)
            assert (inclusion[place <= 3] == 1).all()
            beyond = place > 3
            return int(beyond.sum()), dict(zip(found.item[beyond].tolist(), inclusion[beyond].tolist(), strict=True))

        votes, probabilities = database.read_now(read)
        assert votes == len(plan)
        assert probabilities == {each.item: each.inclusion for each in plan}
        second = database.write_now(lambda cursor: allocate(cursor, project, now=NOW + 3000))
        assert len(plan) + len(second) <= 6
        assert all(each.votes <= 5 for each in second)


def test_a_vote_that_everybody_gets_since_k_was_raised_has_probability_one(tmp_path: Path) -> None:
    """Only places beyond k were drawn for; a decision of an earlier, smaller k no longer makes a vote a lucky one."""
    project = text_project(tmp_path / "project", items=4, k=2, on="on = true", max_k="max_k = 4", budget="budget = 2")
    same = {"cat": "yes", "dog": "no"}
    with open_database(project) as database:
        judge_all(database, project, lambda _: same)
        judge_all(database, project, lambda _: same, now=NOW + 100)
        bought = database.write_now(lambda cursor: allocate(cursor, project, now=NOW + 1000))
        assert {(each.votes, each.inclusion < 1) for each in bought} == {(3, True)}
        judge_all(database, project, lambda _: same, now=NOW + 2000)

        def third_votes(cursor: object, k: int) -> list[float]:
            found = read_judgements(cursor, project)
            place, inclusion = inclusion_of_votes(cursor, replace(project, k=k), found)
            return [float(each) for each in inclusion[place == 3]]

        drawn = [each.inclusion for each in bought]
        assert sorted(database.read_now(lambda cursor: third_votes(cursor, 2))) == sorted(drawn)
        assert database.read_now(lambda cursor: third_votes(cursor, 3)) == [1.0] * len(drawn)


def test_a_project_that_did_not_ask_for_it_buys_nothing(tmp_path: Path) -> None:
    project = text_project(tmp_path / "project", items=2, k=1)
    with open_database(project) as database:
        judge_all(database, project, lambda _: {"cat": "yes", "dog": "no"})
        assert database.write_now(lambda cursor: allocate(cursor, project, now=NOW)) == []
        on = replace(project, adaptive=replace(project.adaptive, on=True, budget=0))
        assert database.write_now(lambda cursor: allocate(cursor, on, now=NOW)) == []


def modelled(folder: Path, predictions: str, **changes: Any) -> Project:
    """Forty items, two votes each before the rounds, and a file of what a model says of them."""
    folder.mkdir()
    (folder / "model.csv").write_text(predictions)
    lines: dict[str, Any] = {
        "on": "on = true",
        "max_k": "max_k = 6",
        "budget": "budget = 8",
        "model": 'model = "model.csv"',
    }
    return text_project(folder, items=40, k=2, layout='layout = "single-choice"', **lines | changes)


def test_items_on_which_the_model_and_first_votes_agree_stop_early(tmp_path: Path) -> None:
    """Votes are all 2 : 0, so that votes alone tell no items apart; the model is right but for the last four items."""
    says_cat = {n: 0.9 if n < 20 or n >= 36 else 0.1 for n in range(40)}
    rows = [f"item{n},{p:g},{1 - p:g}\n" for n, p in says_cat.items()]
    project = modelled(tmp_path / "project", "item,cat,dog\n" + "".join(rows))
    cat, dog = {"cat": "yes", "dog": "no"}, {"cat": "no", "dog": "yes"}
    with open_database(project) as database:
        for person in range(2):
            judge_all(database, project, lambda item: cat if item < 20 else dog, now=NOW + 100 * person)
        plan = database.read_now(lambda cursor: plan_allocation(cursor, project))
        assert plan == database.read_now(lambda cursor: plan_allocation(cursor, project))
        best = {each.name for each in plan if "; in the best plan" in each.reason}
        assert best
        assert best <= {f"item{n}" for n in range(36, 40)}
        assert all("nats beside the model" in each.reason for each in plan)
        others = database.read_now(
            lambda cursor: plan_allocation(cursor, replace(project, adaptive=replace(project.adaptive, model="")))
        )
        # Alike to votes alone, each gets its turn.
        assert len(others) == 8


def test_a_model_beside_votes_is_checked_before_anybody_comes(tmp_path: Path) -> None:
    def table(names: str, n: int) -> str:
        return "item,cat,dog\n" + "".join(f"{names}{k},0.5,0.5\n" for k in range(n))

    project = modelled(tmp_path / "all", table("item", 40))
    assert project.adaptive.model == str(tmp_path / "all" / "model.csv")
    found = {"all": project, "other": modelled(tmp_path / "other", table("word", 40), budget="budget = 0")}
    found["some"] = modelled(tmp_path / "some", table("item", 30))
    said = {name: [(check.kind, check.sentence) for check in check_setup(each)] for name, each in found.items()}
    assert ("ok", "the model of [adaptive] predicts 40 of 40 items") in said["all"]
    assert ("warning", "the model of [adaptive] predicts 30 of 40 items") in said["some"]
    assert said["other"][0] == (
        "error", "the model of [adaptive] predicts 0 of 40 items; how much it counts is learnt from 20 or more"
    )  # fmt: skip
    assert ("warning", "[adaptive] budget is 0, so that no votes beyond k are bought") in said["other"]
    broken = modelled(tmp_path / "broken", "item,cat\nitem0,0.5\n")
    assert check_setup(broken)[0].kind == "error"
    text = (tmp_path / "all" / "collect.toml").read_text()
    for change, sentence in (("k = 2", "is 1, and how much a model counts"), ("model.csv", "where there is no file")):
        (tmp_path / "all" / "collect.toml").write_text(text.replace(change, change.replace("2", "1").replace("mo", "")))
        with pytest.raises(InputError, match=sentence):
            read_project(tmp_path / "all")
