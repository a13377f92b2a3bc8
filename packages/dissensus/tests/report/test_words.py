"""The answer: yes or no, worth in people, and its but."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dissensus.evaluation.comparison.differences import WORSE
from dissensus.evaluation.metrics import soft_nll
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.report.words import answer
from tests.report.subjects import blurred, made, panel, people_of

if TYPE_CHECKING:
    from dissensus.report.subject import Subject


def said(subject: Subject) -> list[str]:
    return answer(subject)


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


def test_what_seems_to_know_the_votes_answers_no_question() -> None:
    truth, counts = panel(200)
    votes = counts / counts.sum(axis=1, keepdims=True)
    leaked, near = np.stack([0.9 * votes + 0.1 / 3] * 2), blurred(truth, weight=0.6, seeds=2)
    ahead = made(people_of(counts), {"near": near, "leaked": leaked})
    for subject in (ahead, replace(ahead, references={"": "leaked"}), made(people_of(counts), {"leaked": leaked})):
        assert set(subject.evaluation.knowing) == {"leaked"}
        first, *_ = said(subject)
        assert first.startswith("Unclear: ")
        assert "; but the predictions seem to know the votes" in first


def test_the_buts_are_those_of_the_verdict_and_no_other_metric_is_among_them() -> None:
    truth, counts = panel(300, seed=5)
    flat = np.broadcast_to(np.full(3, 1 / 3), (3, *truth.shape)).copy()
    sharp = blurred(truth, weight=0.98, seed=1) ** 3
    subject = made(people_of(counts), {"flat": flat, "sharp": sharp / sharp.sum(axis=2, keepdims=True)})
    worse = [row.metric for row in subject.evaluation.difference("flat", only=["sharp"]).rows if row.mark == WORSE]
    assert worse, "the example is made so that a metric gets worse"
    first, *_ = said(subject)
    assert not any(METRICS[metric].short in first for metric in worse)
    _, _, but = subject.evaluation.verdict
    assert but.removeprefix("But ").rstrip(".") in first or first.endswith("speaks against it.")


def test_a_stratum_on_which_it_is_worse_on_votes_that_did_not_choose_it_is_a_but() -> None:
    generator = np.random.default_rng(0)
    agreed = np.repeat([True, False], 150)
    top = np.eye(3)[generator.integers(0, 3, 300)]
    counts = np.where(agreed[:, None], 10 * top, generator.multinomial(10, [0.4, 0.3, 0.3], 300))
    old = np.where(agreed[:, None], 0.85 * top + 0.05, [0.98, 0.01, 0.01])
    new = np.where(agreed[:, None], 0.4 * top + 0.2, [0.4, 0.3, 0.3])
    systems = {name: each + generator.uniform(0, 0.01, (3, 300, 3)) for name, each in {"old": old, "new": new}.items()}
    systems = {name: each / each.sum(axis=2, keepdims=True) for name, each in systems.items()}
    subject = made(people_of(counts), systems)
    first, *_ = said(subject)
    assert first.startswith("Yes: new ")
    assert "; but on the items 'unanimous' (by agreement) old is closer: the model minus it is 0." in first
    assert subject.evaluation.verdict[2].startswith(
        "But on the items 'unanimous' (by agreement) old is closer: the model minus it is 0."
    )


def test_of_one_run_the_answer_is_for_this_run_and_has_no_p() -> None:
    truth, counts = panel(200)
    systems = {"far": blurred(truth, weight=0.2, seeds=1), "near": blurred(truth, weight=0.9, seeds=1, seed=1)}
    told = said(made(people_of(counts), systems))
    assert told[0].startswith("Yes, for this one run: near comes closer to people than far")
    assert "it is one run: intervals are given this run" in told[0]
    assert "over items, given this seed." in told[1]
    assert "significant" not in " ".join(told)


def test_where_nothing_speaks_against_it_the_answer_says_so() -> None:
    truth, counts = panel(200, votes=30)
    far = np.broadcast_to(np.array([0.8, 0.1, 0.1]), (3, 200, 3)).copy()
    subject = made(people_of(counts), {"far": far, "near": blurred(truth, weight=0.97)})
    first, *_ = said(subject)
    assert first.endswith("; no baseline and no stratum that can tell speaks against it.")


def test_methods_are_explained_at_their_first_use_and_only_there(plain: Subject) -> None:
    explained = {
        "majority": "Only the most voted class.",
        "sls": "Stochastic label sampling (SLS): in every epoch, one class drawn for each item; see there.",
    }
    told = replace(plain, deliveries={"far": "majority", "near": "sls"}, explained=explained)
    first, *rest = said(told)
    assert "near (stochastic label sampling (SLS): in every epoch, one class drawn for each item)" in first
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
    assert said(far)[0].startswith("No: wild is not closer to people than every baseline: soft NLL ")


def test_answer_says_that_the_worth_of_answers_is_withheld() -> None:
    truth, counts = panel(200)
    answers = np.eye(truth.shape[1])[truth.argmax(axis=1)][None]
    told = said(made(people_of(counts), {"answers": answers, "near": blurred(truth, weight=0.9, seeds=1)}))
    assert "answers of a worth that is withheld" in told[0]
    assert "Brier" in told[1]
