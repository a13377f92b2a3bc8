"""What may speak against a model: nothing that a perfect model would be accused of."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from dissensus.evaluation import evaluating, scoring
from dissensus.evaluation.comparison.differences import BETTER, WORSE
from dissensus.evaluation.evaluating import Evaluation, evaluate
from dissensus.labels.schemes import frequency
from dissensus.votes.table import votes_from_counts
from tests.evaluation.simulated import true_distributions

CLASSES = ("cat", "dog", "owl")


def powered(truth: Any, power: float) -> Any:
    """The truth, over-confident with a power above 1 and flattened with one below."""
    raised = (truth + 1e-3) ** power
    return raised / raised.sum(axis=1, keepdims=True)


def noisy(truth: Any, *, weight: Any, seeds: int, seed: int = 0) -> Any:
    noise = np.random.default_rng([seed, 1]).dirichlet(np.ones(3), (seeds, len(truth)))
    return weight * truth + (1 - weight) * noise


def judged(truth: Any, given: Any, *, votes: int, seed: int = 0, resamples: int = 200, **told: Any) -> Evaluation:
    """An evaluation against votes drawn from the truth."""
    counts = np.random.default_rng(seed).multinomial(votes, truth)
    human = frequency(votes_from_counts(counts, classes=CLASSES))
    options: Any = {"metrics": ["soft_nll", "tvd", "abs_entce", "accuracy"], "classes": CLASSES} | told
    return evaluate(human, given, resamples=resamples, seed=seed, **options)


@pytest.mark.parametrize("power", [2.0, 0.5], ids=["over-confident", "flattened"])
def test_the_truth_is_seldom_accused_before_a_rival_that_is_not(power: float, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing of what speaks against a model rests on the people ruler or on corrected scores, which take longest.
    monkeypatch.setattr(evaluating, "people_ruler", lambda *_, **__: "not computed here")
    monkeypatch.setattr(scoring, "correct", lambda *_, **__: None)
    accused = 0
    for trial in range(100):
        truth = true_distributions(("sparse", "flat")[trial % 2], 200, classes=3, seed=[trial])
        rival = powered(truth, power)
        found = judged(
            truth,
            {"rival": rival, "truth": truth},
            votes=5 + trial % 4,
            seed=trial,
            metrics=["soft_nll"],
            strata=["agreement", "entropy", "class"],
            baselines=False,
        )
        accused += found.closest() == "truth" and "But on the items" in found.verdict[2]
    assert accused <= 5


@pytest.mark.parametrize(("power", "stratum"), [(2.5, "unanimous"), (0.6, "varied")])
def test_where_the_scored_votes_chose_the_items_a_worse_model_would_beat_the_truth(power: float, stratum: str) -> None:
    truth = true_distributions({"unanimous": "flat", "varied": "sparse"}[stratum], 600, classes=3)
    found = judged(truth, {"rival": powered(truth, power), "truth": truth}, votes=5)
    row = found.difference(stratum=stratum).get("truth", "soft_nll")
    assert row.mark == BETTER
    counts = np.random.default_rng(0).multinomial(5, truth)
    chosen = (counts.max(axis=1) == 5) == (stratum == "unanimous")
    surprise = np.log(powered(truth, power)) - np.log(np.maximum(truth, 1e-12))
    assert (counts * surprise)[chosen].sum() > 0, "on the votes that chose, the rival scores better"


def test_no_other_metric_speaks_against_a_model() -> None:
    truth = true_distributions("flat", 400, classes=3)
    sharp = np.stack([powered(truth, 1.5 + 0.02 * k) for k in range(3)])
    found = judged(truth, {"sharp": sharp, "truth": np.stack([truth] * 3)}, votes=5)
    assert found.difference().get("truth", "abs_entce").mark == WORSE, "few votes make people look surer than they are"
    assert found.verdict[2] == "No baseline comes as close, and no stratum that can tell speaks against it."


def test_a_stratum_that_no_vote_chose_speaks_against_a_model_that_is_worse_there() -> None:
    truth = true_distributions("flat", 300, classes=3)
    night = np.arange(300) < 90
    old = np.where(night[:, None], noisy(truth, weight=0.95, seeds=3), noisy(truth, weight=0.1, seeds=3))
    new = np.where(night[:, None], noisy(truth, weight=0.3, seeds=3), noisy(truth, weight=0.95, seeds=3))
    strata = {"time": np.where(night, "night", "day")}
    found = judged(truth, {"old": old, "new": new}, votes=8, strata=strata)
    assert found.verdict[2].startswith("But on the items 'night' (by time) old is closer: the model minus it is 0.")
    assert found.verdict[2].endswith(", corrected for 2 comparisons.")
    by_tvd = judged(truth, {"old": old, "new": new}, votes=8, strata=strata, metrics=["tvd"])
    assert "night" not in by_tvd.verdict[2], "few votes favour one side by TVD"


def test_the_more_strata_are_looked_at_the_surer_one_must_be() -> None:
    truth = true_distributions("flat", 400, classes=3)
    # Alike on the second half of the items, which is forty places; no votes are needed to look at places.
    weight = np.where(np.arange(400) < 200, 0.1, 0.5)[:, None]
    runs = {"old": noisy(truth, weight=weight, seeds=1), "new": noisy(truth, weight=0.5, seeds=1, seed=4)}
    runs = {name: np.repeat(each, 2, axis=0) for name, each in runs.items()}
    found = evaluate(truth, runs, strata={"place": np.maximum(np.arange(400) // 5, 39)}, resamples=200)
    worse = [
        stratum
        for idea, stratum in found.compared_strata
        if found.difference(by=idea, stratum=stratum).get("new", "soft_nll").mark == WORSE
    ]
    assert worse, "of forty places some are worse by chance"
    assert found.verdict[2].startswith("No baseline ")


def test_with_one_seed_there_is_no_p_anywhere_and_the_but_says_one_run() -> None:
    truth = true_distributions("flat", 200, classes=3)
    runs = {"far": noisy(truth, weight=0.2, seeds=1), "near": noisy(truth, weight=0.9, seeds=1, seed=1)}
    found = judged(truth, runs, votes=6)
    assert ", over items, given this seed. Who voted" in found.verdict[0]
    assert found.verdict[2].startswith("But it is one run: ")
    tables = json.loads(json.dumps(found.to_dict()))
    assert {(row["p"], row["p_holm"]) for row in tables["differences"]} == {(None, None)}
    for text in (found.to_markdown(), found.to_latex(), repr(found), *found.verdict):
        assert "p <" not in text
        assert "p =" not in text
        assert "Holm) <" not in text
    said = found.to_latex().partition(r"\caption{")[2].partition("\n")[0]
    assert said.startswith("How close models are to people, on 200 items"), "the verdict is a comment"
    assert f"% {found.verdict[0]}\n" in found.to_latex()
    rows = [line for line in found.difference().to_markdown().splitlines() if line.startswith("| Soft NLL")]
    assert rows
    assert all(line.split("|")[-3:-1] == [" - ", " - "] for line in rows)


def test_one_seed_of_the_reference_alone_is_said_too() -> None:
    truth = true_distributions("flat", 200, classes=3)
    runs = {"far": noisy(truth, weight=0.2, seeds=1), "near": noisy(truth, weight=0.9, seeds=3, seed=1)}
    found = judged(truth, runs, votes=6)
    assert found.difference().get("near", "soft_nll").p is None
    assert found.verdict[2].startswith("But far is one run: ")


def test_p_the_mark_and_the_but_agree() -> None:
    truth = true_distributions("flat", 150, classes=3)
    doubtful = 0
    for trial in range(12):
        near = 0.86 + 0.012 * np.random.default_rng(trial).random()
        runs = {"old": noisy(truth, weight=0.8, seeds=3, seed=trial)}
        runs |= {f"new {k}": noisy(truth, weight=near, seeds=3, seed=100 + 10 * trial + k) for k in range(4)}
        found = judged(truth, runs, votes=6, seed=trial, metrics=["soft_nll"], strata=(), baselines=False)
        best = found.closest()
        if best == "old":
            continue
        row = found.difference().get(best, "soft_nll")
        assert row.p_holm is not None
        sure = row.p_holm < 0.05
        assert bool(row.mark) == sure
        assert ("chance alone" in found.verdict[2]) != sure
        doubtful += row.p is not None and row.p < 0.05 <= row.p_holm
    assert doubtful, "in some trials Holm's correction decides"


def test_where_the_reference_is_closest_the_sentence_tells_the_p_of_the_table() -> None:
    truth = true_distributions("flat", 150, classes=3)
    weights = {"good": 0.95, "next": 0.85, "last": 0.5}
    runs = {name: noisy(truth, weight=weight, seeds=3, seed=n) for n, (name, weight) in enumerate(weights.items())}
    found = judged(truth, runs, votes=6)
    row = found.difference().get("next", "soft_nll")
    assert f"minus next {-row.value.value:.3f} [" in found.verdict[0]
    assert row.p_holm is not None
    assert f"{row.p_holm:.3f} (Holm)" in found.verdict[0] or "< 0.001 (Holm)" in found.verdict[0]


@pytest.mark.parametrize(
    ("votes", "reason"),
    [(3, "the median item has 3 votes, and 4 are needed"), (0, "people are given as probabilities")],
)
def test_where_votes_cannot_be_divided_strata_have_scores_and_no_verdict_and_the_reason_is_said(
    votes: int, reason: str
) -> None:
    truth = true_distributions("flat", 300, classes=3)
    runs = {"sharp": np.stack([powered(truth, 1.5)] * 2), "truth": np.stack([truth] * 2)}
    if votes:
        found = judged(truth, runs, votes=votes)
    else:
        found = evaluate(np.random.default_rng(0).multinomial(5, truth) / 5, runs, resamples=200)
    assert found.difference(stratum="unanimous").get("truth", "soft_nll").mark == WORSE, "the artefact is in the table"
    assert not found.compared.telling
    assert "unanimous" not in " ".join(found.verdict)
    note = next(note for note in found.notes if note.startswith("strata by votes"))
    assert reason in note
    assert "no verdict rests on them" in note


def test_without_intervals_nothing_is_said_of_chance() -> None:
    truth = true_distributions("flat", 100, classes=3, seed=[0])
    without = judged(truth, {"truth": truth, "rival": powered(truth, 4.0)}, votes=8, resamples=0, baselines=True)
    assert without.verdict[2] == "Nothing is said of chance: resamples=0 asks for no intervals."
    assert "[" not in without.verdict[0] + str(without.worth["truth"])
    asked = judged(truth, {"truth": truth, "rival": powered(truth, 4.0)}, votes=8, baselines=True)
    assert without.worth["truth"].estimate.value == asked.worth["truth"].estimate.value
