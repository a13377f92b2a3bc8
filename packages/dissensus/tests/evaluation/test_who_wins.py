"""Systems ranked by preferences: the fit against others, the intervals against known scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import dissensus as dis
from dissensus.evaluation import bradley_terry, who_wins
from dissensus.votes.sides import swap_sides
from dissensus.votes.table import Annotators
from tests.evaluation.preferences_panel import simulated_preferences

SCORES = np.array([0.9, 0.3, 0.0, -1.2])
LENGTH = ("length_left", "length_right")
LENGTHS = ("len_a", "len_b")


def _scores(found: who_wins.SystemRanking) -> dict[str, float]:
    return {row.system: row.score.value for row in found.standings}


def test_the_fit_is_that_of_an_independent_maximum_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bradley_terry, "PRIOR", 1e-10)
    votes = simulated_preferences(np.random.default_rng(0), SCORES)
    about = votes.item_attributes
    systems = sorted(set(about["left"].tolist()) | set(about["right"].tolist()))
    left, right = (
        np.array([systems.index(str(name)) for name in about[side][votes.item]]) for side in ("left", "right")
    )
    longer = (np.log2(about["length_left"]) - np.log2(about["length_right"]))[votes.item]
    assert votes.swapped is not None
    shown = np.where(votes.swapped, -1, 1)

    def surprise(values: Any) -> float:
        """Davidson's own form: chances in proportion to a, nu sqrt(a b) and b."""
        score = np.append(values[:3], -values[:3].sum())
        a = np.exp(score[left] + values[3] * (shown + 1) / 2 + values[4] * longer)
        b = np.exp(score[right] + values[3] * (1 - shown) / 2)
        chance = np.stack([a, np.exp(values[5]) * np.sqrt(a * b), b]) / (a + np.exp(values[5]) * np.sqrt(a * b) + b)
        return -float(np.log(chance[votes.label, np.arange(len(votes))]).sum())

    best = minimize(surprise, np.zeros(6), method="BFGS", options={"gtol": 1e-6}).x
    found = dis.ranking(votes, question="question", length=LENGTH).people
    expected = dict(zip(systems, [*best[:3], -best[:3].sum()], strict=True))
    assert _scores(found) == pytest.approx(expected, abs=1e-4)
    assert found.tie is not None
    assert found.length is not None
    assert [found.position.value, found.length.value, found.tie.value] == pytest.approx(best[3:].tolist(), abs=1e-4)


def test_without_ties_it_is_a_logistic_regression_with_its_own_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    api = pytest.importorskip("statsmodels.api")
    monkeypatch.setattr(bradley_terry, "PRIOR", 1e-10)
    votes = simulated_preferences(np.random.default_rng(1), SCORES, tie=-40.0, votes_each=1, questions=400)
    about = votes.item_attributes
    design = np.zeros((len(votes), 5))
    for side, sign in (("left", 1), ("right", -1)):
        code = np.array([int(str(name).split()[-1]) for name in about[side][votes.item]])
        design[np.arange(len(votes)), code] += sign
    assert votes.swapped is not None
    design[:, 4] = np.where(votes.swapped, -1, 1)
    # Scores beside that of the last system.
    fit = api.Logit(votes.label == 0, np.delete(design, 3, axis=1)).fit(disp=0)
    robust = api.Logit(votes.label == 0, np.delete(design, 3, axis=1)).fit(
        disp=0, cov_type="cluster", cov_kwds={"groups": about["question"][votes.item]}
    )
    alone = replace(votes, annotators=None)
    found = dis.ranking(alone, question="question").people
    assert found.tie is None
    scores = _scores(found)
    assert [scores[f"system {k}"] - scores["system 3"] for k in range(3)] == pytest.approx(
        fit.params[:3].tolist(), abs=1e-5
    )
    assert found.position.value == pytest.approx(float(fit.params[3]), abs=1e-5)
    assert found.position.low is not None
    half = found.position.value - found.position.low
    assert half == pytest.approx(1.96 * float(robust.bse[3]), rel=0.02)


def test_scores_position_and_length_lie_in_their_intervals_as_often_as_they_should() -> None:
    """A small look; benchmarks/preferences.py takes more, with tastes of questions and a judge."""
    rng, inside = np.random.default_rng(2), []
    truth = {f"system {k}": score for k, score in enumerate(SCORES - SCORES.mean())}
    for _ in range(40):
        found = dis.ranking(
            simulated_preferences(rng, SCORES, questions=100), question="question", length=LENGTH
        ).people
        assert found.length is not None
        told = [(row.score, truth[row.system]) for row in found.standings]
        for estimate, expected in [*told, (found.position, 0.3), (found.length, 0.4)]:
            assert estimate.low is not None
            assert estimate.high is not None
            inside.append(estimate.low < expected < estimate.high)
    # 240 intervals, of which those of one trial go together.
    assert 0.90 < np.mean(inside) < 0.99


def test_swapped_sides_change_nothing() -> None:
    votes = simulated_preferences(np.random.default_rng(3), SCORES, judge=SCORES[::-1])
    other = swap_sides(votes, np.random.default_rng(4).random(len(votes.items)) < 0.5)
    first, second = (dis.ranking(one, question="question", length=LENGTH).to_dict() for one in (votes, other))
    for name, one in first["rankings"].items():
        for row, same in zip(one["standings"], second["rankings"][name]["standings"], strict=True):
            assert row["system"] == same["system"]
            for end in ("value", "low", "high"):
                assert row["score"][end] == pytest.approx(same["score"][end], abs=1e-7)
        assert one["position"]["value"] == pytest.approx(second["rankings"][name]["position"]["value"], abs=1e-7)
    assert first["beside"][0]["disagreement"] == second["beside"][0]["disagreement"]


def test_a_judge_that_turns_the_ranking_round_is_told_from_one_that_does_not() -> None:
    rng = np.random.default_rng(5)
    same, turned = (
        dis.ranking(simulated_preferences(rng, SCORES, judge=judge, questions=600), question="question").beside[0]
        for judge in (SCORES, -SCORES)
    )
    assert (same.kind, same.ranking.name) == ("judge", "judge")
    assert same.disagreement.low == 0
    assert same.disagreement.value <= 1 / 6
    assert turned.disagreement.low is not None
    assert turned.disagreement.low > 0.5
    gap = turned.differences["system 3"]
    assert gap.low is not None
    assert gap.low > 0
    # The judge's bias for the left is its own.
    assert turned.ranking.position.low is not None
    assert turned.ranking.position.low > 0.4


def test_groups_of_people_stand_beside_the_others() -> None:
    votes = simulated_preferences(np.random.default_rng(6), SCORES, questions=300)
    assert votes.annotators is not None
    country = np.array(["A" if k < 10 else "B" for k in range(20)], dtype=np.dtypes.StringDType())
    # Those of B say the opposite.
    of = (country == "B")[votes.annotators.code]
    votes = replace(
        votes,
        annotators=Annotators(votes.annotators.code, votes.annotators.names, {"country": country}),
        label=np.where(of, 2 - votes.label, votes.label).astype(np.int32),
    )
    beside = {other.ranking.name: other for other in dis.ranking(votes, question="question", by="country").beside}
    assert set(beside) == {"country A", "country B"}
    assert beside["country B"].disagreement.value == 1
    assert beside["country B"].kind == "group"


def test_votes_on_one_question_are_not_counted_as_if_they_were_of_many() -> None:
    votes = simulated_preferences(np.random.default_rng(7), SCORES, shared=2.0, questions=60, votes_each=10)
    apart, together = (
        dis.ranking(votes, question=question).people.standings[0].score for question in (None, "question")
    )
    assert apart.low is not None
    assert together.low is not None
    assert together.value - together.low > 1.05 * (apart.value - apart.low)


def test_what_cannot_be_ranked_is_refused() -> None:
    votes = simulated_preferences(np.random.default_rng(8), SCORES)
    with pytest.raises(dis.InputError, match="no preferences"):
        dis.ranking(replace(votes, swapped=None))
    with pytest.raises(dis.InputError, match="sides="):
        dis.ranking(replace(votes, item_attributes={}))
    with pytest.raises(dis.InputError, match="no attribute 'questions'; did you mean 'question'"):
        dis.ranking(votes, question="questions")
    said = [("x", "y"), ("z", "w"), ("x", "y")]
    rows = [{"item": k, "model_a": a, "model_b": b, "winner": "model_a"} for k, (a, b) in enumerate(said)]
    with pytest.raises(dis.InputError, match="no votes compare w, z with the other systems"):
        dis.ranking(dis.read_votes(rows, format="preferences"))


def _rows(first: str = "len_a", second: str = "len_b", *, each: int = 1) -> list[dict[str, Any]]:
    """40 questions on two of three systems, shown either way round: the longer answer wins on three of four."""
    rng, rows = np.random.default_rng(0), []
    for k in range(40 * each):
        left, right = (f"s{place}" for place in rng.permutation(3)[:2])
        sizes = sorted((int(size) for size in rng.integers(5, 300, 2)), reverse=bool(k % 2))
        won = "model_a" if (sizes[0] > sizes[1]) == bool(k % 4) else "model_b"
        row = {"question_id": f"q{k}", "model_a": left, "model_b": right, "judge": "ann", "winner": won}
        rows.append({**row, first: sizes[0], second: sizes[1]})
    return rows


def test_the_two_lengths_are_a_pair_whatever_they_are_called() -> None:
    known, other = (
        dis.ranking(dis.read_votes(_rows(*names), format="preferences", item_attributes=names), length=names).people
        for names in (LENGTHS, ("la", "lb"))
    )
    assert known.length is not None
    assert known.length.value > 0.3
    assert other.length == known.length
    assert _scores(other) == _scores(known)


@pytest.mark.parametrize("wrong", ["", 0, -5, "n/a"])
def test_what_is_no_length_is_refused_with_its_item(wrong: Any) -> None:
    rows = _rows()
    rows[7]["len_b"] = rows[7]["len_a"] = wrong
    votes = dis.read_votes(rows, format="preferences", item_attributes=LENGTHS)
    with pytest.raises(dis.InputError, match=f"item 'q7' has '{wrong}' in 'len_a', which is no length; give"):
        dis.ranking(votes, length=LENGTHS)


def test_the_column_that_names_the_item_may_be_the_question() -> None:
    for rows in (_rows(), [*_rows(), {**_rows()[0], "model_a": "s9", "judge": "ben"}]):
        votes = dis.read_votes(rows, format="preferences", item_attributes=["question_id"])
        assert set(votes.item_attributes["question_id"].tolist()) == {f"q{k}" for k in range(40)}
        if rows[1:] == _rows()[1:]:
            assert dis.ranking(votes, question="question_id").people.position == dis.ranking(votes).people.position


def test_a_system_that_always_wins_has_no_interval_and_a_note() -> None:
    rows = _rows(each=2)
    for row in rows:
        if "s2" in (row["model_a"], row["model_b"]):
            row["winner"] = "model_a" if row["model_a"] == "s2" else "model_b"
    found = dis.ranking(dis.read_votes(rows, format="preferences"))
    best, *others = found.people.standings
    assert (best.system, best.score.low, best.best_rank, best.worst_rank) == ("s2", None, 1, 1)
    assert all(row.score.low is not None for row in others)
    # The others stand among themselves as they do without it.
    alone = dis.ranking(dis.read_votes([row for row in rows if "s2" not in row.values()], format="preferences")).people
    assert [row.score.value for row in others] == pytest.approx([row.score.value for row in alone.standings], abs=0.1)
    assert any("no votes bound the scores of s2" in note for note in found.notes)
    # Two wins say little.
    few = dis.ranking(dis.read_votes(_few(), format="preferences")).people
    assert [(row.best_rank, row.worst_rank) for row in few.standings] == [(1, 2), (1, 2)]


def _few() -> list[dict[str, Any]]:
    row = {"model_a": "x", "model_b": "y", "winner": "model_a"}
    return [{"question_id": k, "judge": who, **row} for k in range(2) for who in ("ann", "ben")]


def test_equal_scores_rank_nothing_the_other_way_round() -> None:
    people = [
        {"item": k, "model_a": "x", "model_b": "y", "annotator": f"p{k % 3}", "winner": "model_b"} for k in range(8)
    ]
    judge = [{**row, "annotator": "gpt", "winner": "tie"} for row in people]
    found = dis.ranking(dis.read_votes([*people, *judge], format="preferences", models=["gpt"]))
    assert found.beside[0].disagreement.value == 0
