"""The answer: yes or no, worth in people, and its but."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.evaluation.comparison.differences import WORSE
from dissensus.evaluation.metrics import soft_nll
from dissensus.report.gains import differences_by_stratum
from dissensus.report.words import answer
from tests.report.subjects import blurred, made, panel, people_of

if TYPE_CHECKING:
    from dissensus.report.subject import Subject


METRICS = ("soft_nll", "abs_entce")


def said(subject: Subject) -> list[str]:
    return answer(subject, differences_by_stratum(subject, resamples=60))


def test_a_method_that_is_surely_closer_is_a_yes_with_its_worth_in_people(plain: Subject) -> None:
    first, numbers, *_ = said(plain)
    assert first.startswith("Yes: near comes closer to people than far: it is worth ")
    assert str(plain.evaluation.worth["near"]) in first
    assert str(plain.evaluation.worth["far"]) in first
    people = plain.people.probabilities
    scores = {name: np.mean([soft_nll(people, run).mean() for run in runs]) for name, runs in plain.systems.items()}
    assert f"the soft NLL of near is {scores['near']:.3f} nats and that of far {scores['far']:.3f}" in numbers
    assert "(significant at 0.05)" in numbers


def test_a_question_that_is_not_answered_by_yes_or_no_gets_neither(plain: Subject) -> None:
    first, *_ = said(replace(plain, question="How close does each method come to people?"))
    assert first.startswith("Near comes closer to people than far")


def test_where_every_method_is_further_from_people_the_answer_is_no(plain: Subject) -> None:
    turned = replace(plain, references={"": "near"})
    first, *_ = said(turned)
    assert first.startswith("No: no method came closer to people than near: it is worth ")


def test_what_chance_may_have_done_is_unclear() -> None:
    truth, counts = panel(200)
    twins = {"one": blurred(truth, weight=0.6), "two": blurred(truth, weight=0.6, seed=9)}
    first, *_ = said(made(people_of(counts), twins))
    assert first.startswith("Unclear: ")
    assert "chance alone may have put it" in first


def test_the_but_names_the_metric_that_got_worse() -> None:
    truth, counts = panel(300, seed=5)
    people = people_of(counts)
    # Right about the top class, and far too sure of it: closer in soft NLL than noise, further in other ways.
    flat = np.broadcast_to(np.full(3, 1 / 3), (3, *truth.shape)).copy()
    sharp = blurred(truth, weight=0.98, seed=1) ** 3
    subject = made(people, {"flat": flat, "sharp": sharp / sharp.sum(axis=2, keepdims=True)})
    worse = [row for row in subject.evaluation.difference("flat").rows if row.system == "sharp" and row.mark == WORSE]
    first, *_ = said(subject)
    if not worse:
        pytest.fail("the example is made so that a metric gets worse")
    assert first.startswith("Yes: sharp ")
    for row in worse:
        own, other = (subject.evaluation.overall.get(name, row.metric).value for name in ("sharp", "flat"))
        assert own is not None
        assert other is not None
        assert f"is worse ({own.value:.3f} against {other.value:.3f})" in first


def test_the_but_names_the_worst_stratum() -> None:
    truth, counts = panel(300, seed=3)
    of_a = counts.argmax(axis=1) == 0
    old = np.where(of_a[:, None], blurred(truth, weight=0.95), blurred(truth, weight=0.1))
    new = np.where(of_a[:, None], blurred(truth, weight=0.4, seed=1), blurred(truth, weight=0.95, seed=2))
    first, *_ = said(made(people_of(counts), {"old": old, "new": new}))
    assert first.startswith("Yes: new ")
    assert "but it is worse on items of the class a (soft NLL +" in first.replace("; but", "but")


def test_where_all_is_better_on_the_whole_the_but_names_a_metric_that_is_worse_in_a_stratum() -> None:
    generator = np.random.default_rng(0)
    unanimous = np.repeat([True, False], 100)
    counts = np.where(unanimous[:, None], [10, 0, 0], [4, 3, 3])
    # On unanimous items the old one is sure, and wrong in one of five; the new one is right, and less sure.
    sure = np.where(generator.random((3, 200, 1)) < 0.2, [0.01, 0.98, 0.01], [0.98, 0.01, 0.01])
    old = np.where(unanimous[:, None], sure, [0.98, 0.01, 0.01])
    new = np.where(unanimous[:, None], [0.8, 0.1, 0.1], [0.4, 0.3, 0.3]) + generator.uniform(0, 0.01, (3, 200, 3))
    subject = made(people_of(counts), {"old": old, "new": new / new.sum(axis=2, keepdims=True)}, metrics=METRICS)
    assert WORSE not in {row.mark for row in subject.evaluation.difference("old", only=["new"]).rows}
    first, *_ = said(subject)
    assert first.startswith("Yes: new ")
    scores = subject.evaluation.by_stratum("agreement")
    own, other = (scores.get(name, "abs_entce", stratum="unanimous").value for name in ("new", "old"))
    assert own is not None
    assert other is not None
    assert f"; but on unanimous items its EntCE is worse ({own.value:.3f} against {other.value:.3f})." in first


def test_where_nothing_speaks_against_it_the_answer_says_so() -> None:
    truth, counts = panel(200, votes=30)
    far = np.broadcast_to(np.array([0.8, 0.1, 0.1]), (3, 200, 3)).copy()
    subject = made(people_of(counts), {"far": far, "near": blurred(truth, weight=0.97)})
    first, *_ = said(subject)
    marks = {row.mark for row in subject.evaluation.difference("far", only=["near"]).rows}
    assert WORSE not in marks
    assert first.endswith("; no metric or group of items shown speaks against it.")


def test_methods_are_explained_at_their_first_use_and_only_there(plain: Subject) -> None:
    told = replace(plain, deliveries={"far": "majority", "near": "sls"})
    first, *rest = said(told)
    assert "near (stochastic label sampling (SLS): in every epoch, one class drawn for each item" in first.replace(
        "Stochastic", "stochastic"
    )
    assert first.count("only the most voted class") == 1
    assert any("a delivery, such as those in the answer, is how labels reach the loss" in each for each in rest)


def test_with_several_models_each_has_its_own_sentence_and_reference(plain: Subject) -> None:
    systems = {f"{model}: {name}": runs for model in ("small", "large") for name, runs in plain.systems.items()}
    models = {model: (f"{model}: far", f"{model}: near") for model in ("small", "large")}
    first, second, *_ = said(made(plain.people, systems, models=models, reference="small: far"))
    assert first.startswith("Yes: with small, near comes closer to people than far")
    assert second.startswith("With large, near comes closer to people than far")


def test_one_system_is_held_against_the_baselines(plain: Subject) -> None:
    near = made(plain.people, {"near": plain.systems["near"]}, question="Is near closer than the baselines?")
    assert said(near)[0].startswith("Yes: near is closer to people than every baseline: soft NLL ")
    wild = np.roll(plain.systems["near"], 1, axis=2)
    far = made(plain.people, {"wild": wild}, question="Is wild closer than the baselines?")
    assert said(far)[0].startswith("No: wild is further from people than the baseline ")
