"""The alternative annotator test against a plain loop, SciPy, and the authors' published values."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, ttest_1samp, wilcoxon

from dissensus.errors import InputError
from dissensus.evaluation.probabilities import Predictions
from dissensus.evaluation.stand_in.alternative_annotator import alternative_annotator_test, rejected
from dissensus.evaluation.stand_in.answers import Answers, likeliest_answers, named_answers, read_model_answers
from dissensus.votes.official.judged_json import read_alttest
from dissensus.votes.table import Annotators, Votes
from tests.evaluation.stand_in.plain_loop import minus_rmse, plain_loop, same
from tests.votes.people import people_of

if TYPE_CHECKING:
    from pathlib import Path

EPSILON = {"lgbteen": 0.2, "mtbench": 0.2, "cebab_aspects": 0.1, "summeval": 0.2, "10k_prompts": 0.15}
SCALES = ("summeval", "10k_prompts")


def crowd(
    seed: int, *, items: int = 60, annotators: int = 5, classes: int = 3, skill: float = 0.7, model: float = 0.7
) -> tuple[dict[str, dict[str, str]], dict[str, str], Votes]:
    """People who each judge most items, a model, and the same as a table; classes are called 1, 2, ..."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=items)

    def said(how_good: float) -> Any:
        return np.where(rng.random(items) < how_good, truth, rng.integers(classes, size=items)) + 1

    people = {
        f"p{a}": {f"i{i}": str(v) for i, v in enumerate(said(skill)) if rng.random() < 0.8} for a in range(annotators)
    }
    answers = {f"i{i}": str(v) for i, v in enumerate(said(model)) if i}
    return people, answers, table(people, classes, items)


def table(people: dict[str, dict[str, str]], classes: int, items: int) -> Votes:
    rows = [(int(i[1:]), a, int(v) - 1) for a, each in enumerate(people.values()) for i, v in each.items()]
    item, annotator, label = (np.array(column, dtype=np.int32) for column in zip(*rows, strict=True))
    text = np.dtypes.StringDType()
    return Votes(
        item=item,
        label=label,
        items=np.array([f"i{i}" for i in range(items)], dtype=text),
        classes=tuple(str(k + 1) for k in range(classes)),
        annotators=Annotators(annotator, np.array(list(people), dtype=text)),
        ordered=True,
    )


def overlap(one: Any, two: Any) -> list[float]:
    """Halves, quarters, ...: their sums are exact, so that ties are the same in whatever order they are added."""
    return [0.5 ** abs(int(a) - int(b)) for a, b in zip(one, two, strict=True)]


def mean_overlap(answer: str, others: list[str]) -> float:
    return float(np.mean(overlap([answer] * len(others), others)))


@pytest.mark.parametrize("least", [30, 2])
@pytest.mark.parametrize(
    ("score", "plain"), [("accuracy", same), ("rmse", minus_rmse), (overlap, mean_overlap)], ids=["same", "rmse", "own"]
)
@given(seed=st.integers(0, 10_000), epsilon=st.sampled_from([0.0, 0.1, 0.2, 0.5]))
def test_it_is_what_a_plain_loop_finds(score: Any, plain: Any, least: int, seed: int, epsilon: float) -> None:
    people, answers, votes = crowd(seed, items=60 if least == 30 else 25)
    found = alternative_annotator_test(
        votes, named_answers(votes, answers), score=score, epsilon=epsilon, least_items=least
    )
    expected = plain_loop(people, answers, plain, epsilon=epsilon, least_items=least)
    assert found.annotator.tolist() == expected.annotators
    np.testing.assert_allclose(found.p_value, expected.p_values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.model_as_good, expected.advantage)
    assert found.won.tolist() == expected.won


@pytest.mark.parametrize("name", EPSILON)
def test_all_published_values(data: Path, name: str) -> None:
    votes = read_alttest(data / "alttest" / f"{name}.human_annotations.json")
    models = read_model_answers(data / "alttest" / f"{name}.llm_annotations.json", votes, name="")
    form = rf"{name} (\S+) \[(\w+)\]:\tWinning Rate=(\S+)\tAdvantage Probability=(\S+)"
    published = re.findall(form, (data / "alttest" / "published.txt").read_text())
    assert len(published) == 6
    for model, verdict, winning, advantage in published:
        score: Any = "rmse" if name in SCALES else "accuracy"
        found = alternative_annotator_test(votes, models[model], score=score, epsilon=EPSILON[name])
        assert (f"{found.winning_rate:.2f}", f"{found.advantage_probability:.2f}") == (winning, advantage)
        assert found.passed == (verdict == "PASSED")


def test_free_text_is_compared_by_a_similarity(data: Path) -> None:
    folder = data / "alttest"
    votes = read_alttest(folder / "kilogram.human_annotations.json")
    models = read_model_answers(folder / "kilogram.llm_annotations.json", votes, name="")

    def words(one: Any, two: Any) -> list[float]:
        pairs = [(set(a.split()), set(b.split())) for a, b in zip(one, two, strict=True)]
        return [len(a & b) / max(len(a | b), 1) for a, b in pairs]

    people = json.loads((folder / "kilogram.human_annotations.json").read_text())
    said = json.loads((folder / "kilogram.llm_annotations.json").read_text())["gpt-4o"]
    found = alternative_annotator_test(votes, models["gpt-4o"], score=words, epsilon=0.1)
    expected = plain_loop(
        people, said, lambda answer, others: float(np.mean(words([answer] * len(others), others))), epsilon=0.1
    )
    assert found.winning_rate == expected.winning_rate
    # Means that are equal but for rounding are ties here, and the plain loop takes them as they come.
    assert found.advantage_probability == pytest.approx(expected.advantage_probability, abs=2e-3)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.01, 0.5))
def test_rejections_are_benjamini_and_yekutielis(p_values: list[float], rate: float) -> None:
    p = np.array(p_values)
    adjusted = false_discovery_control(p, method="by")
    clear = np.abs(adjusted - rate) > 1e-9
    assert (rejected(p, rate) == (adjusted <= rate))[clear].all()


def test_a_model_that_says_what_most_people_say_wins_and_one_that_guesses_loses() -> None:
    _, _, votes = crowd(0, items=200, skill=0.6)
    most = np.asarray(votes.counts.argmax(axis=1), dtype=np.int32)
    assert alternative_annotator_test(votes, Answers(label=most, classes=votes.classes)).winning_rate == 1.0
    wrong = Answers(label=(most + 1) % 3, classes=votes.classes)
    assert alternative_annotator_test(votes, wrong).winning_rate == 0.0


def test_with_an_expert_others_are_compared_with_the_expert_alone() -> None:
    people, answers, votes = crowd(1, items=150)
    found = alternative_annotator_test(votes, named_answers(votes, answers), expert="p2", epsilon=0.1)
    expected = plain_loop(people, answers, same, epsilon=0.1, reference=lambda _, other: other == "p2")
    # In the plain loop the expert has nobody to be compared with, and is so left out.
    assert found.annotator.tolist() == expected.annotators == ["p0", "p1", "p3", "p4"]
    np.testing.assert_allclose(found.p_value, expected.p_values)
    with pytest.raises(InputError, match="nobody is called 'p9'"):
        alternative_annotator_test(votes, named_answers(votes, answers), expert="p9")


def test_groups_are_compared_within_themselves_and_corrected_together() -> None:
    people, answers, votes = crowd(2, items=150, annotators=6)
    group = np.array(["a", "a", "a", "b", "b", "b"])
    of = dict(zip(people, group, strict=True))
    found = alternative_annotator_test(votes, named_answers(votes, answers), groups=group, epsilon=0.1)
    expected = plain_loop(people, answers, same, epsilon=0.1, reference=lambda one, two: of[one] == of[two])
    np.testing.assert_allclose(found.p_value, expected.p_values)
    assert found.won.tolist() == expected.won
    parts = found.by_part()
    assert parts["a"]["winning_rate"] == np.mean(expected.won[:3])
    assert parts["b"]["advantage_probability"] == pytest.approx(np.mean(expected.advantage[3:]))


def test_each_domain_is_tested_on_its_own_items_and_corrected_together() -> None:
    people, answers, votes = crowd(3, items=160)
    domain = np.where(np.arange(160) < 80, "news", "talk")
    found = alternative_annotator_test(votes, named_answers(votes, answers), domains=domain, epsilon=0.1)
    alone = [
        plain_loop(
            {who: {i: v for i, v in said.items() if (int(i[1:]) < 80) == first} for who, said in people.items()},
            answers,
            same,
            epsilon=0.1,
        )
        for first in (True, False)
    ]
    p_values = np.array([each.p_values for each in alone]).T.ravel()
    np.testing.assert_allclose(found.p_value, p_values)
    assert found.part is not None
    assert found.part.tolist() == ["news", "talk"] * 5
    assert found.won.tolist() == (false_discovery_control(p_values, method="by") <= 0.05).tolist()


def test_balanced_classes_are_a_weighted_t_test() -> None:
    people, answers, votes = crowd(4, items=120, classes=2)
    plain = alternative_annotator_test(votes, named_answers(votes, answers))
    found = alternative_annotator_test(votes, named_answers(votes, answers), balanced=True)
    share = votes.counts.sum(axis=0) / len(votes)
    judges = {
        item: [who for who, said in people.items() if item in said] for item in {i for s in people.values() for i in s}
    }
    weights, good = [], []
    for item, label in people["p0"].items():
        others = [people[other][item] for other in judges[item] if other != "p0"]
        if item in answers and others:
            weights.append(np.mean([1 / share[int(other) - 1] for other in others]))
            good.append(same(answers[item], others) >= same(label, others))
    assert found.model_as_good[0] == pytest.approx(np.average(good, weights=weights))
    assert found.model_as_good[0] != plain.model_as_good[0]
    # Where every class is as frequent and everybody judges every item, weights are equal and nothing changes.
    even = {f"p{a}": {f"i{i}": str((i + (a == i % 5)) % 2 + 1) for i in range(60)} for a in range(5)}
    even_votes = table(even, 2, 60)
    said = named_answers(even_votes, {f"i{i}": str(i % 2 + 1) if i % 7 else "1" for i in range(60)})
    np.testing.assert_allclose(
        alternative_annotator_test(even_votes, said, balanced=True).p_value,
        alternative_annotator_test(even_votes, said).p_value,
    )


def test_an_answer_off_the_scale_is_never_as_good() -> None:
    _, _, votes = crowd(5)
    refuses = named_answers(votes, {f"i{i}": "no idea" for i in range(60)})
    found = alternative_annotator_test(votes, refuses, score="rmse")
    assert found.advantage_probability == 0.0
    assert found.winning_rate == 0.0
    # A number that nobody gave has its place on the scale.
    four = named_answers(votes, {f"i{i}": "4" for i in range(60)})
    assert four.places(votes).tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_distribution_answers_with_its_likeliest_class() -> None:
    _, _, votes = crowd(6)
    probabilities = np.random.default_rng(0).dirichlet(np.ones(3), (2, 60))
    predictions = Predictions(
        probabilities=probabilities, items=votes.items[::-1], classes=votes.classes, given="probabilities", seeds=(0, 1)
    )
    answers = likeliest_answers(votes, predictions)
    assert answers.label.tolist() == probabilities.mean(axis=0).argmax(axis=1)[::-1].tolist()
    assert "100% of answers are the likeliest class" in answers.notes[-1]


def test_answers_may_be_numbers_and_so_may_items() -> None:
    _, answers, votes = crowd(6)
    expected = named_answers(votes, answers)
    numbered = replace(votes, items=np.arange(len(votes.items)))
    for kind in (str, int, float, np.int64, np.float64):
        said = named_answers(votes, {item: kind(answer) for item, answer in answers.items()})
        assert said.classes == expected.classes == votes.classes
        assert said.label.tolist() == expected.label.tolist()
        by_number = {int(item[1:]): kind(answer) for item, answer in answers.items()}
        assert named_answers(numbered, by_number).label.tolist() == expected.label.tolist()


def test_ties_and_answers_about_other_items_are_told() -> None:
    _, _, votes = crowd(6)
    probabilities = np.tile([[[0.5, 0.5, 0.0]]], (1, 60, 1))
    probabilities[0, :7] = [0.2, 0.3, 0.5]
    items = np.array([*map(str, votes.items[:58].tolist()), "else", "where"], dtype=np.dtypes.StringDType())
    predictions = Predictions(
        probabilities=probabilities, items=items, classes=votes.classes, given="probabilities", seeds=(0,)
    )
    notes = likeliest_answers(votes, predictions).notes
    assert "answers that are the first of several equally likely classes: 53" in notes
    assert "answers about items without votes, which are left out: 2" in notes


def test_what_cannot_be_tested_is_refused_in_a_sentence() -> None:
    _, answers, votes = crowd(7, items=25)
    said = named_answers(votes, answers)
    with pytest.raises(InputError, match=r"no annotator shares 30 items .* \(the most is \d+\)"):
        alternative_annotator_test(votes, said)
    alone = votes.take_judgements(np.flatnonzero(people_of(votes).code == 0))
    with pytest.raises(InputError, match="judged by two people, so that there is nobody to compare with"):
        alternative_annotator_test(alone, said, least_items=2)
    words = replace(votes, classes=("bad", "fair", "good"), ordered=False)
    with pytest.raises(InputError, match="the RMSE needs classes that are a scale, and these are bad, fair, good"):
        alternative_annotator_test(words, replace(said, classes=words.classes), least_items=2, score="rmse")
    with pytest.raises(InputError, match="anonymous"):
        alternative_annotator_test(replace(votes, annotators=None), said)
    with pytest.raises(InputError, match="epsilon is 1"):
        alternative_annotator_test(votes, said, epsilon=1.0)
    with pytest.raises(InputError, match="has no weights"):
        alternative_annotator_test(votes, said, balanced=True, least_items=5)
    twice = votes.take_judgements(np.array([*range(len(votes)), 3]))
    with pytest.raises(InputError, match="twice"):
        alternative_annotator_test(twice, said, least_items=2)
    with pytest.raises(InputError, match="one finite number"):
        alternative_annotator_test(votes, said, least_items=2, score=lambda one, two: [np.nan] * len(one))


def _students_t(difference: Any) -> float:
    return float(ttest_1samp(difference, 0.2, alternative="less").pvalue)


def _signed_ranks(difference: Any) -> float:
    return float(wilcoxon(difference - 0.2, alternative="less", method="approx").pvalue)


@pytest.mark.parametrize(("items", "test"), [(29, _signed_ranks), (30, _students_t), (31, _students_t)])
def test_alternative_annotator_test_takes_students_t_from_thirty_items(items: int, test: Any) -> None:
    """Below 30 compared items it is Wilcoxon's test, from exactly 30 on Student's t (Calderon et al. 2025)."""
    rng = np.random.default_rng(1)
    said = rng.integers(1, 4, (3, items))
    said[1:] = np.where(rng.random((2, items)) < 0.6, said[0], said[1:])
    model = np.where(rng.random(items) < 0.7, said[0], 1)
    people = {f"p{a}": {f"i{i}": str(v) for i, v in enumerate(row)} for a, row in enumerate(said)}
    votes = table(people, 3, items)
    answers = named_answers(votes, {f"i{i}": str(v) for i, v in enumerate(model)})
    found = alternative_annotator_test(votes, answers, epsilon=0.2, least_items=2)
    difference = np.sign((said[0] == said[1:]).mean(axis=0) - (model == said[1:]).mean(axis=0))
    assert found.items[0] == items
    assert found.p_value[0] == pytest.approx(test(difference))
