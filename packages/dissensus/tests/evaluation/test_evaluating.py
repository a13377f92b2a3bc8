from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import softmax
from statsmodels.stats.multitest import multipletests

from dissensus.errors import InputError
from dissensus.evaluation.comparison.differences import WORSE
from dissensus.evaluation.comparison.strata import by_attribute, by_entropy
from dissensus.evaluation.evaluating import DEFAULT_METRICS, Evaluation, evaluate
from dissensus.evaluation.finite_panel.shared_annotators import UNKNOWN_PEOPLE
from dissensus.evaluation.metrics.distances import kl, rps, tvd
from dissensus.evaluation.metrics.ranking import accuracy
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.evaluation.metrics.set_level import entropy_spearman
from dissensus.evaluation.predictions import read_predictions
from dissensus.evaluation.probabilities import Predictions
from dissensus.evaluation.scoring import INFINITE
from dissensus.labels.schemes import frequency, weighted
from dissensus.votes.reading import read_votes
from dissensus.votes.simulate import simulate_votes
from dissensus.votes.table import Annotators, Votes, votes_from_counts

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.finite_panel.finding import Finding
    from dissensus.labels.distribution import LabelDistribution

CLASSES = ("cat", "dog", "owl")


def people(items: int = 60, seed: int = 0, votes: int = 6) -> LabelDistribution:
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet([0.5] * 3, size=items)
    return frequency(votes_from_counts(rng.multinomial(votes, truth), classes=CLASSES))


def models(human: LabelDistribution, seeds: int = 3, seed: int = 1) -> Any:
    """(seeds, items, classes) predictions that know something of what people said."""
    noise = np.random.default_rng(seed).dirichlet([1.0] * 3, size=(seeds, len(human)))
    return 0.6 * human.probabilities + 0.4 * noise


@cache
def example() -> tuple[LabelDistribution, Any, Evaluation]:
    human = people()
    runs = models(human)
    given = {"one": runs[0], "three": runs}
    return (
        human,
        runs,
        evaluate(human, given, classes=CLASSES, strata=["agreement", "class"], resamples=100, majority="one"),
    )


def test_scores_are_means_over_items_and_seeds_with_sd_over_seeds() -> None:
    human, runs, result = example()
    found = result.overall.get("three", "kl")
    per_seed = [float(kl(human.probabilities, run).mean()) for run in runs]
    assert found.value is not None
    assert found.value.value == pytest.approx(np.mean(per_seed))
    assert found.sd == pytest.approx(np.std(per_seed, ddof=1))
    assert (found.items, found.seeds) == (60, 3)
    assert found.over == "items and seeds"
    alone = result.overall.get("one", "entropy_spearman")
    assert alone.value is not None
    assert alone.value.value == pytest.approx(entropy_spearman(human.probabilities, runs[0]))
    assert (alone.sd, alone.over) == (None, "items, given this seed")
    assert "one: one seed, so intervals are over items, given this seed" in result.warnings[-1]
    assert result.metrics == DEFAULT_METRICS


def test_a_stratum_is_scored_on_its_own_items_by_the_votes_that_did_not_choose_them() -> None:
    _, runs, result = example()
    found = result.by_stratum("agreement").get("one", "tvd", stratum="varied")
    halves = result.compared.halves
    assert not isinstance(halves, str)
    one, other = halves
    there, back = (
        tvd(scored.probabilities, runs[0][one.items])[~chosen.unanimous]
        for chosen, scored in ((one, other), (other, one))
    )
    assert found.value is not None
    assert found.value.value == pytest.approx(np.concatenate([there, back]).mean())
    assert found.items == (there.size + back.size) // 2
    assert result.by_stratum("class").get("one", "tvd") == result.overall.get("one", "tvd")


def test_every_table_carries_the_baselines_and_says_how_they_were_made() -> None:
    _, _, result = example()
    assert result.systems == (
        "one",
        "three",
        "uniform",
        "marginal",
        "majority + temperature",
        "majority + smoothing",
    )
    assert result.baselines == result.systems[2:]
    for table in (result.overall, *result.strata.values()):
        assert {row.system for row in table.rows} == set(result.systems)
    assert any("mean of the other evaluated items" in note for note in result.notes)
    assert "majority: the system 'one'" in result.notes
    bare = evaluate(people(), models(people()), classes=CLASSES, metrics=["kl"], resamples=2)
    assert any("are missing" in note for note in bare.notes)
    alone = evaluate(people(), models(people()), classes=CLASSES, metrics=["kl"], resamples=2, baselines=False)
    assert alone.systems == ("model",)


def estimated(finding: Finding | None) -> Estimate:
    assert finding is not None
    assert finding.estimate is not None
    return finding.estimate


def test_what_is_best_achievable_and_the_correction_stand_beside_each_score_where_they_exist() -> None:
    _, _, result = example()
    row = result.overall.get("three", "kl")
    assert row.value is not None
    assert 0 < estimated(row.best_achievable).value < row.value.value
    assert estimated(row.corrected).value < row.value.value
    assert result.overall.get("uniform", "kl").best_achievable == row.best_achievable
    # Which class most people would choose is not known from few votes, and the reason reaches every table.
    accuracy_row = result.overall.get("three", "accuracy")
    assert accuracy_row.corrected is not None
    assert accuracy_row.corrected.estimate is None
    assert accuracy_row.corrected.reason
    said = f"accuracy, no corrected score: {accuracy_row.corrected.reason}"
    assert said in result.all_notes
    assert said in result.to_markdown()
    assert said in result.to_dict()["notes"]


def test_every_system_is_worth_a_number_of_people() -> None:
    _, _, result = example()
    assert set(result.worth) == set(result.systems)
    assert not isinstance(result.ruler, str)
    ruler = result.ruler.values
    assert (np.diff(ruler) < 0).all(), "more people forecast better"
    assert str(result.worth["marginal"]) == "0.0 people [0.0, 0.0]"
    assert result.to_dict()["worth"]["uniform"]["words"] == str(result.worth["uniform"])
    assert str(result.worth["uniform"]).startswith(("worse than the marginal", "0.0", "0.1"))


def test_strata_by_votes_are_scored_on_half_the_votes_and_have_no_correction() -> None:
    _, _, result = example()
    for stratum in ("unanimous", "varied"):
        row = result.by_stratum("agreement").get("one", "kl", stratum=stratum)
        assert (row.best_achievable, row.corrected) == (None, None)
    assert any("the other half are scored, both ways" in note for note in result.notes)


def test_predictions_made_from_the_scored_votes_are_told_so() -> None:
    human = people(items=200)
    result = evaluate(human, human.probabilities, classes=CLASSES, metrics=["kl", "tvd"], resamples=100)
    for metric in ("kl", "tvd"):
        row = result.overall.get("model", metric)
        assert row.value is not None
        assert row.value.value == pytest.approx(0.0, abs=1e-12)
        assert estimated(row.best_achievable).value > 0
    assert "seem to know the votes" in result.warnings[0]
    assert result.verdict[2] == f"But {result.knowing['model']}."


def unsure(probabilities: Any, share: float = 0.1) -> Any:
    """Return predictions with one more class of this probability."""
    return np.concatenate([(1 - share) * probabilities, np.full((*probabilities.shape[:-1], 1), share)], axis=-1)


@pytest.mark.parametrize("one_more", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("kind", ["predictions", "frame", "dictionary"])
def test_evaluate_majority_is_taken_as_a_system_is(kind: str, one_more: tuple[bool, bool]) -> None:
    """A majority model may have other classes than the systems, its own order of items, and seeds."""
    human = people()
    labels = replace(human, items=np.array([f"i{n}" for n in range(len(human))]))
    runs = models(human)
    rival = softmax(4 * runs[::-1], axis=-1)
    system, other = (unsure(each) if more else each for each, more in zip((runs, rival), one_more, strict=True))
    names = [(*CLASSES, "fox")[: each.shape[-1]] for each in (system, other)]
    predicted, asked = (
        Predictions(probabilities=each, items=labels.items, classes=classes, seeds=(4, 5, 6))
        for each, classes in zip((system, other), names, strict=True)
    )
    given: Any = asked
    if kind != "predictions":
        frame = pd.DataFrame(other[0], columns=names[1], index=labels.items)[::-1]
        given = frame if kind == "frame" else frame.to_dict("index")
    result = evaluate(labels, {"ours": predicted}, majority=given, metrics=["soft_nll"], resamples=20)
    value = result.overall.get("majority", "soft_nll").value
    expected = other if kind == "predictions" else other[:1]
    assert value is not None
    assert value.value == pytest.approx(-(human.probabilities * np.log(expected[..., :3])).sum(axis=-1).mean())
    assert result.models == ("ours",)
    rows = [row for row in result.difference("majority").rows if row.system == "ours"]
    assert [row.paired for row in rows] == [kind == "predictions"]


def test_evaluate_majority_has_a_name_of_its_own() -> None:
    human = people()
    with pytest.raises(InputError, match="'majority' is the name of a baseline"):
        evaluate(human, {"majority": models(human)}, classes=CLASSES, majority=models(human), resamples=0)


def test_items_with_a_single_vote_are_counted_in_a_warning() -> None:
    rng = np.random.default_rng(0)
    counts = rng.multinomial(1, [0.5, 0.3, 0.2], size=40)
    counts[:10] += rng.multinomial(3, [0.5, 0.3, 0.2], size=10)
    human = frequency(votes_from_counts(counts, classes=CLASSES))
    result = evaluate(human, np.full((40, 3), 1 / 3), classes=CLASSES, metrics=["kl"], resamples=20)
    warning = next(each for each in result.warnings if "single vote" in each)
    assert warning.startswith("30 of 40 items")
    assert warning in result.to_markdown()
    assert warning in result.to_dict()["warnings"]


def test_an_array_without_class_names_has_the_classes_of_the_labels() -> None:
    human = people()
    runs = models(human)
    with pytest.raises(
        InputError, match=r"they fit the votes worse than as owl, cat, dog; state their order: classes="
    ):
        evaluate(human, runs[..., [2, 0, 1]], resamples=2)
    bare = evaluate(human, runs, metrics=["kl"], resamples=2)
    turned = evaluate(human, runs[..., [2, 0, 1]], classes=("owl", "cat", "dog"), metrics=["kl"], resamples=2)
    straight = evaluate(human, runs, classes=CLASSES, metrics=["kl"], resamples=2)
    for one, other in zip(turned.overall.rows, straight.overall.rows, strict=True):
        assert one.value is not None
        assert other.value is not None
        assert one.value.value == pytest.approx(other.value.value)
    assert bare.overall.rows == straight.overall.rows
    numbered = frequency(votes_from_counts(human.counts))
    assert evaluate(numbered, runs, metrics=["kl"], resamples=2).overall.rows[0] == straight.overall.rows[0]
    evaluate(human.probabilities, runs, metrics=["kl"], resamples=2)


def test_mass_on_a_class_that_nobody_voted_for_counts_and_is_said() -> None:
    human = people()
    sure_of_nothing_real = np.concatenate([0.05 * human.probabilities, np.full((60, 1), 0.95)], axis=1)
    result = evaluate(human, sure_of_nothing_real, classes=(*CLASSES, "emu"), metrics=["kl", "tvd"], resamples=5)
    row = result.overall.get("model", "kl")
    assert row.value is not None
    assert row.value.value == pytest.approx(np.log(20))
    assert result.classes == (*CLASSES, "emu")
    assert "model gives 95.0% of its probability to classes that nobody voted for (emu)" in result.warnings[0]
    uniform = result.overall.get("uniform", "tvd").value
    assert uniform is not None
    np.testing.assert_allclose(
        uniform.value, np.abs(np.c_[human.probabilities, np.zeros(60)] - 0.25).sum(axis=1).mean() / 2
    )
    with pytest.raises(InputError, match="people voted for cat, dog, owl; name each of these once"):
        evaluate(human, sure_of_nothing_real, classes=("cat", "dog", "emu", "fox"), resamples=2)
    scale = frequency(votes_from_counts(human.counts, classes=("1", "2", "3"), ordered=True))
    with pytest.raises(InputError, match="'4' has no place on the scale 1, 2, 3"):
        evaluate(scale, sure_of_nothing_real, classes=("1", "2", "3", "4"), resamples=2)


def test_all_items_right_does_not_mean_that_every_item_would_be() -> None:
    human = frequency(votes_from_counts([[4, 0], [0, 4]] * 6))
    row = evaluate(human, human.probabilities, metrics=["accuracy"], resamples=20).overall.get("model", "accuracy")
    assert row.value is not None
    assert (row.value.value, row.value.high) == (1.0, 1.0)
    assert row.value.low == pytest.approx(0.735, abs=1e-3)


def test_seeds_of_systems_are_paired_by_number_or_said_to_be_unpaired() -> None:
    human = people()
    runs = models(human, seeds=4)
    given = {"a": runs, "b": runs[::-1], "c": runs[:3]}
    numbers = {"a": [1, 2, 3, 4], "b": [4, 3, 2, 1], "c": [11, 12, 13]}
    result = evaluate(human, given, classes=CLASSES, seeds=numbers, metrics=["kl"], resamples=30)
    same = result.difference("a").get("b", "kl")
    assert (same.paired, same.value.value, same.value.high, same.p) == (True, 0, 0, 1)
    other = result.difference("a").get("c", "kl")
    assert not other.paired
    assert "unpaired: the systems share no seeds" in other.over
    assert any("unpaired: the systems share no seeds" in note for note in result.all_notes)
    assert "unpaired: the systems share no seeds" in result.to_markdown()


def test_an_evaluation_is_short_to_look_at_and_shows_itself_in_a_notebook() -> None:
    _, _, result = example()
    assert len(repr(result)) < 1000
    assert repr(result).splitlines()[1:] == list(result.verdict)
    page = result._repr_html_()
    assert page.count("<tr>") == 1 + len(result.systems) + 1
    human = people()
    named = evaluate(human, {"<b>": models(human)}, classes=CLASSES, metrics=["kl"], resamples=2)
    assert "<b>" not in named._repr_html_()


def test_the_verdict_names_the_baseline_that_beats_the_model() -> None:
    human = people(items=300, votes=20)
    rng = np.random.default_rng(5)
    confident = 0.02 * np.ones((300, 3)) + 0.94 * np.eye(3)[rng.integers(0, 3, 300)]
    result = evaluate(human, {"guess": confident}, classes=CLASSES, metrics=["soft_nll", "accuracy"], resamples=200)
    first, worth, but = result.verdict
    assert first.startswith("guess: soft NLL ")
    assert "worse than the marginal" in worth
    assert but.startswith("But the baseline uniform beats it")
    minus = result.against_baselines().get("guess", "soft_nll")
    assert (minus.mark, minus.p) == (WORSE, None)


def test_the_verdict_says_who_is_closest_and_what_speaks_against_it() -> None:
    human = people(items=300, votes=20)
    good, bad = (models(human, seeds=4, seed=seed) for seed in (1, 2))
    bad = 0.3 * bad + 0.7 / 3
    result = evaluate(human, {"bad": bad, "good": good}, classes=CLASSES, resamples=200)
    assert result.verdict[0].startswith("good is closest to people: soft NLL ")
    assert "minus bad -" in result.verdict[0]
    assert "p < 0.001 (Holm)" in result.verdict[0]
    again = evaluate(human, {"a": good, "b": good.copy()}, classes=CLASSES, metrics=["soft_nll"], resamples=50)
    assert "chance alone" in again.verdict[2]


def test_an_empty_stratum_is_empty_and_an_undefined_metric_undefined_not_zero_nor_nan() -> None:
    human = frequency(votes_from_counts([[30, 10], [20, 20], [10, 30], [30, 10]], classes=("no", "yes")))
    model = np.array([[0.6, 0.4], [0.5, 0.5], [0.4, 0.6], [0.7, 0.3]])
    result = evaluate(human, model, classes=("no", "yes"), resamples=20)
    row = result.by_stratum().get("model", "kl", stratum="unanimous")
    assert (row.items, row.value, row.notes) == (0, None, ("the stratum 'unanimous' is empty",))
    assert "empty" in result.by_stratum().to_markdown()
    correlation = result.overall.get("marginal", "entropy_spearman")
    assert correlation.value is None
    assert "undefined" in correlation.notes[0]
    assert "NaN" not in json.dumps(result.to_dict(), allow_nan=False)
    with pytest.raises(InputError, match="no item is in the stratum 'unanimous'"):
        result.difference("model", stratum="unanimous")


def test_differences_are_tested_in_one_family_the_models_on_the_headline_metric() -> None:
    human = people()
    given = {name: models(human, seed=seed) for seed, name in enumerate("abc")}
    result = evaluate(human, given, classes=CLASSES, resamples=100, majority="a")
    table = result.difference("b")
    row = table.get("a", "accuracy")
    gaps = [
        float((accuracy(human.probabilities, ours) - accuracy(human.probabilities, theirs)).mean())
        for ours, theirs in zip(given["a"], given["b"], strict=True)
    ]
    assert row.value.value == pytest.approx(np.mean(gaps))
    assert (row.seeds, row.seeds_closer, row.p) == (3, sum(gap > 0 for gap in gaps), None)
    # KL differs as soft NLL does, and is not tested again; baselines are no methods.
    assert result.headline == "soft_nll"
    assert table.get("a", "kl").value.value == pytest.approx(table.get("a", "soft_nll").value.value)
    tested = [each for each in table.rows if each.p is not None]
    assert {(each.system, each.metric) for each in tested} == {("a", "soft_nll"), ("c", "soft_nll")}
    family = multipletests([each.p for each in tested], method="holm")[1]
    assert [each.p_holm for each in tested] == pytest.approx(family)
    assert all(each.p is None for each in result.difference("marginal").rows)
    varied = result.difference("b", stratum="varied")
    assert {each.stratum for each in varied.rows} == {"varied"}
    assert all(each.p is None for each in varied.rows)
    assert {each.reference for each in result.against_baselines(stratum="varied").rows} == set(result.baselines)
    with pytest.raises(InputError, match="no system 'four'"):
        result.difference("four")


def test_where_the_same_people_judged_all_items_the_headline_is_over_people_too() -> None:
    rng = np.random.default_rng(8)
    items, annotators = 150, 5
    truth = rng.dirichlet([1, 1, 1], size=items)
    habit = rng.dirichlet([0.3, 0.3, 0.3], size=annotators)
    label = np.array([[rng.choice(3, p=0.5 * t + 0.5 * h) for h in habit] for t in truth], dtype=np.int32)
    votes = Votes(
        item=np.repeat(np.arange(items, dtype=np.int32), annotators),
        label=label.ravel(),
        items=np.arange(items),
        classes=CLASSES,
        annotators=Annotators(np.tile(np.arange(annotators, dtype=np.int32), items), np.arange(annotators)),
    )
    human = frequency(votes)
    given = {"a": truth, "b": 0.5 * truth + 0.5 * habit.mean(axis=0)}
    options: Any = {"classes": CLASSES, "metrics": ["soft_nll", "tvd"], "resamples": 200}
    known, unknown = (evaluate(human, given, votes=each, **options) for each in (votes, None))

    def width(result: Evaluation) -> float:
        value = result.difference("a").get("b", "soft_nll").value
        assert value.low is not None
        assert value.high is not None
        return value.high - value.low

    assert width(known) > 1.2 * width(unknown)
    assert known.difference("a").get("b", "soft_nll").over == "items and annotators, given this seed"
    assert known.overall.get("a", "soft_nll").over == "items and annotators, given this seed"
    assert any("annotators are treated as fixed" in warning for warning in known.warnings)
    assert not any("annotators are treated as fixed" in warning for warning in unknown.warnings)
    assert UNKNOWN_PEOPLE in unknown.warnings
    assert UNKNOWN_PEOPLE not in known.warnings


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("voters", ["named", "anonymous", "shares"])
def test_verdict_names_what_its_interval_is_over(voters: str, models: int, seeds: int) -> None:
    """The verdict names the sources of variation of its row. The caution appears only for anonymous voters."""
    truth = np.random.default_rng(0).dirichlet([1, 1, 1], 60)
    votes = simulate_votes(truth, 4, annotators=4, seed=0, classes=CLASSES)
    human: Any = {"named": votes, "anonymous": frequency(votes), "shares": frequency(votes).probabilities}[voters]
    noise = np.random.default_rng(1).dirichlet([1, 1, 1], (2, seeds, 60))
    given = dict(zip("ab"[:models], 0.7 * truth + 0.3 * noise[:models], strict=True))
    result = evaluate(human, given, metrics=["soft_nll"], resamples=50)
    row: Any = result.difference(result.reference).rows[0] if models == 2 else result.overall.get("a", "soft_nll")
    named = {"named": "annotators"}.get(voters, "items")
    assert f", over {row.over}" in result.verdict[0]
    assert named in row.over
    assert ("seeds" in row.over) == (seeds == 3)
    assert ("Who voted is not known" in result.verdict[0]) == (voters != "named")
    assert (UNKNOWN_PEOPLE in result.warnings) == (voters != "named")
    assert any(note.endswith(f"95 % intervals are over {row.over}") for note in result.all_notes)


def answered(kind: str, truth: Any, votes: Votes) -> Any:
    """Return the answers or the rounded probabilities of a model in one of the accepted formats."""
    said, items = truth.argmax(axis=1), votes.items.tolist()
    samples = np.random.default_rng(5).multinomial(3, truth) / 3
    rounded = np.round(0.02 * truth + 0.98 * np.eye(3)[said], 2)
    return {
        "labels": [CLASSES[k] for k in said],
        "by item": {str(item): CLASSES[k] for item, k in zip(items, said, strict=True)},
        "frame": pl.DataFrame({"item": items, "label": [CLASSES[k] for k in said]}),
        "one-hot": np.eye(3)[said],
        "samples": samples,
        "seeds": np.stack([samples, truth]),
        "rounded": rounded / rounded.sum(axis=1, keepdims=True),
    }[kind]


@pytest.mark.parametrize("kind", ["labels", "by item", "frame", "one-hot", "samples", "seeds", "rounded"])
def test_answers_without_probabilities_are_not_scored_by_a_floor(kind: str) -> None:
    """Infinite NLL is withheld with a reason. Brier comes first. Worth in people is unknown."""
    truth = np.random.default_rng(0).dirichlet([1, 1, 1], 120)
    votes = simulate_votes(truth, 5, annotators=40, seed=0, classes=CLASSES)
    model = {"answers": answered(kind, truth, votes), "truth": truth}
    named = None if kind in ("by item", "frame") else CLASSES
    result = evaluate(votes, model, classes=named, resamples=50)
    assert (result.headline, result.metrics[0], result.metrics[-2:]) == ("brier", "brier", ("soft_nll", "kl"))
    for metric in ("soft_nll", "kl"):
        row = result.overall.get("answers", metric)
        assert row.value is None
        assert row.notes == (INFINITE,)
        assert result.overall.get("truth", metric).value is not None
    assert "answers" not in result.worth
    assert "truth" in result.worth
    assert sum(warning.endswith(INFINITE) for warning in result.warnings) == 1
    shares = votes.counts / votes.counts.sum(axis=1, keepdims=True)
    alone = evaluate(votes, {"answers": model["answers"]}, classes=named, resamples=50)
    if kind == "one-hot":
        right = ((shares - model["answers"]) ** 2).sum(axis=1).mean()
        assert alone.overall.get("answers", "brier").value.value == pytest.approx(right)  # type: ignore[union-attr]
    assert alone.verdict[0].startswith("answers: Brier ")
    assert "withheld" in alone.verdict[1]


def test_a_system_compared_with_itself_under_another_name_does_not_differ() -> None:
    human = people()
    runs = models(human)
    result = evaluate(human, {"a": runs, "b": runs.copy()}, classes=CLASSES, resamples=30, metrics=["kl"])
    row = result.difference("a").get("b", "kl")
    assert (row.value.value, row.p, row.p_holm) == (0, 1, 1)


def test_a_result_is_the_same_twice_and_ready_for_json_and_markdown() -> None:
    human, runs, result = example()
    given = {"one": runs[0], "three": runs}
    again = evaluate(human, given, classes=CLASSES, strata=["agreement", "class"], resamples=100, majority="one")
    told = result.to_dict()
    assert told == again.to_dict()
    assert json.loads(json.dumps(told, allow_nan=False))["strata"]["agreement"][0]["system"] == "one"
    text = result.to_markdown()
    assert "| KL(human \\|\\| model), nats ↓ | three | " in text
    assert "| KL(human \\|\\| model), nats ↓ | best achievable | " in text
    assert "## By class" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert "nan" not in text.lower().replace("unanimous", "")
    assert len(rows) > 60


def test_annotator_groups_are_held_against_their_own_votes_with_their_own_limits() -> None:
    rng = np.random.default_rng(3)
    items, annotators = 40, 12
    truth = rng.dirichlet([1, 1, 1], size=items)
    item = np.repeat(np.arange(items, dtype=np.int32), annotators)
    label = np.concatenate([rng.choice(3, size=annotators, p=row) for row in truth]).astype(np.int32)
    votes = Votes(
        item=item,
        label=label,
        items=np.arange(items),
        classes=CLASSES,
        annotators=Annotators(
            np.tile(np.arange(annotators, dtype=np.int32), items),
            np.arange(annotators),
            {"age": np.array(["old"] * 3 + ["young"] * 9, dtype=np.dtypes.StringDType())},
        ),
    )
    human = frequency(votes)
    made = by_attribute(human, votes, "age", least=1)
    result = evaluate(human, truth, classes=CLASSES, strata={"age": made}, metrics=["kl", "brier"], resamples=50)
    table = result.by_stratum("age")
    old = table.get("model", "kl", stratum="age old")
    young = table.get("model", "kl", stratum="age young")
    assert made[1].human is not None
    assert old.value is not None
    assert young.value is not None
    assert old.value.value == pytest.approx(float(kl(made[1].human.probabilities, truth).mean()))
    # The model is the truth, so both groups score what is best achievable, and the smaller group's is further off.
    assert estimated(old.best_achievable).value > 2 * estimated(young.best_achievable).value
    assert old.value.value > 2 * young.value.value
    assert abs(estimated(table.get("model", "brier", stratum="age old").corrected).value) < 0.05
    assert "corrected" in table.to_markdown()


def test_any_column_and_any_number_of_parts_give_strata() -> None:
    human = people()
    result = evaluate(
        human,
        models(human),
        classes=CLASSES,
        strata={"time": ["day", "night"] * 30, "halves": by_entropy(human, parts=2)},
        metrics=["kl"],
        resamples=10,
    )
    assert [row.stratum for row in result.by_stratum("time").rows if row.system == "model"] == ["all", "day", "night"]
    assert result.by_stratum("time").get("model", "kl", stratum="day").best_achievable is not None
    assert result.by_stratum("halves").get("model", "kl", stratum="entropy 1/2").best_achievable is None
    with pytest.raises(InputError, match="no strata by 'agreement' here but by time, halves"):
        result.by_stratum()


def test_bare_probabilities_are_scored_without_what_needs_votes_and_that_is_said() -> None:
    human = people()
    result = evaluate(human.probabilities, models(human), metrics=["kl"], resamples=10)
    assert result.overall.get("model", "kl").best_achievable is None
    assert "no worth in people: people are given as probabilities" in result.warnings[0]
    assert "cannot be told: people are given as probabilities" in result.verdict[1]
    unsure = weighted(people_with_unsure(), "uncertainty-weighted")
    weights = evaluate(unsure, np.full((2, 2), 0.5), classes=("no", "yes"), metrics=["kl"])
    assert "in 2 judgements; give the votes too" in weights.warnings[0]


def people_with_unsure() -> Votes:
    """Two items, two annotators; one selected both classes of the first item, one of them unsure."""
    return Votes(
        item=np.array([0, 0, 0, 1, 1], dtype=np.int32),
        label=np.array([0, 1, 0, 1, 0], dtype=np.int32),
        judgement=np.array([0, 0, 1, 2, 3], dtype=np.int32),
        unsure=np.array([False, True, False, False, False]),
        items=np.arange(2),
        classes=("no", "yes"),
        annotators=Annotators(np.array([0, 0, 1, 0, 1], dtype=np.int32), np.arange(2)),
    )


def test_metrics_that_need_more_come_when_it_is_given_and_are_refused_when_it_is_not() -> None:
    human = people()
    model = models(human)
    result = evaluate(human, model, classes=CLASSES, original=np.zeros(60, dtype=np.int64), resamples=5)
    row = result.overall.get("model", "accuracy_original")
    assert row.value is not None
    assert row.value.value == pytest.approx(float(np.mean(model.argmax(axis=2) == 0)))
    with pytest.raises(InputError, match=r"accuracy_original needs .* give the original labels"):
        evaluate(human, model, classes=CLASSES, metrics=["accuracy_original"])
    with pytest.raises(InputError, match=r"wasserstein needs .* say that the classes are a scale"):
        evaluate(human, model, classes=CLASSES, metrics=["wasserstein"])
    with pytest.raises(InputError, match="no metric 'kld'"):
        evaluate(human, model, classes=CLASSES, metrics=["kld"])


def test_all_metrics_can_be_asked_for() -> None:
    counts = np.random.default_rng(4).multinomial(5, [0.5, 0.3, 0.2], size=30)
    human = frequency(votes_from_counts(counts, classes=("1", "2", "3"), ordered=True))
    result = evaluate(human, models(human), metrics=list(METRICS), original=np.zeros(30, dtype=int), resamples=10)
    assert all(row.value is not None for row in result.overall.rows if row.system == "model")


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (np.full((60, 2), 0.5), "60 items and 2 classes, and people judged 60 items and 3"),
        (np.full((59, 3), 1 / 3), "59 items"),
        (np.full((60, 3), 0.3), r"sums to 0\.9"),
        (np.full((60, 3), np.nan), "NaN"),
        ({}, "no predictions"),
        ({"uniform": np.full((60, 3), 1 / 3)}, "'uniform' is the name of a baseline"),
        (np.zeros(3), "items by classes"),
        ([["a"]], "not numbers"),
        ([[0.5, 0.5, 0.0], [1.0]], "not numbers in rows of equal length"),
        (np.full((60, 3), 1 / 3 + 0j), "not numbers"),
        (["cat"] * 59 + ["cow"], "'cow' is none of the classes"),
    ],
)
def test_predictions_that_are_none_are_refused(model: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        evaluate(people(), model, classes=CLASSES, resamples=5)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_the_columns_of_a_frame_are_classes_by_their_names(frame: Any) -> None:
    human = people()
    table = models(human)[0]

    def kl(human: Any, model: Any, stated: Any = None) -> float:
        value = evaluate(human, model, classes=stated, metrics=["kl"], resamples=5).overall.get("model", "kl").value
        assert value is not None
        return value.value

    expected = pytest.approx(kl(human, table, human.classes))
    moved = frame({name: table[:, human.classes.index(name)] for name in sorted(human.classes, reverse=True)})
    assert kl(human, moved) == expected
    assert kl(human, moved, human.classes) == expected
    given = frame({name: human.probabilities[:, k] for k, name in enumerate(human.classes)})
    assert kl(given, moved) == expected
    # Columns with other names are those of an array, in the stated order.
    other = frame({f"p{k}": column for k, column in enumerate(table.T)})
    assert kl(human, other, human.classes) == expected
    with pytest.raises(InputError, match="no column is called after the class 'cat'; its columns are p0, p1, p2"):
        kl(human, other)


def test_ratings_are_called_by_their_numbers_whichever_of_them_a_model_uses() -> None:
    counts = np.random.default_rng(0).multinomial(5, [0.2, 0.3, 0.3, 0.2], size=30)
    human = frequency(votes_from_counts(counts, classes=("1", "2", "3", "4"), ordered=True))
    for most in (3, 4):
        said = np.random.default_rng(1).integers(1, most + 1, 30)
        found = evaluate(human, said, classes=human.classes, metrics=["expected_accuracy"], resamples=5)
        score = found.overall.get("model", "expected_accuracy").value
        assert score is not None
        assert score.value == pytest.approx(human.probabilities[np.arange(30), said - 1].mean())


def test_people_who_gave_counts_or_only_one_class_are_refused() -> None:
    counts = people().counts
    with pytest.raises(InputError, match=r"human: these are counts of votes; give dis.votes_from_counts\(counts\)"):
        evaluate(counts, models(people()), resamples=5)
    alone = frequency(votes_from_counts(np.full((4, 1), 3), classes=("yes",)))
    with pytest.raises(InputError, match="'yes' is the only class, so that every model is right; give votes, or"):
        evaluate(alone, np.ones((4, 1)), classes=("yes",), resamples=5)
    # Of one mind, where the model has another class, is a comparison like any other.
    found = evaluate(alone, np.full((4, 2), 0.5), classes=("yes", "no"), metrics=["soft_nll"], resamples=5)
    score = found.overall.get("model", "soft_nll").value
    assert score is not None
    assert score.value == pytest.approx(np.log(2))


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_rows_of_half_precision_may_sum_to_almost_1(kind: str) -> None:
    torch = pytest.importorskip("torch")
    human = people()
    runs = torch.tensor(models(human)).to(getattr(torch, kind))
    assert (runs.double().sum(dim=-1) - 1).abs().max() > 1e-4
    full, half = (evaluate(human, each, classes=CLASSES, metrics=["kl"], resamples=0) for each in (models(human), runs))
    exact, rounded = (next(row.value for row in each.overall.rows if row.system == "model") for each in (full, half))
    assert exact is not None
    assert rounded is not None
    assert rounded.value == pytest.approx(exact.value, abs=0.01)
    with pytest.raises(InputError, match="sum other than 1"):
        evaluate(human, runs.double(), classes=CLASSES, metrics=["kl"], resamples=0)


def test_votes_in_place_of_labels_are_labelled_by_frequency() -> None:
    votes = votes_from_counts(np.full((60, 3), 2), classes=CLASSES)
    runs = models(people())
    one, other = (evaluate(human, runs, classes=CLASSES, resamples=50) for human in (votes, frequency(votes)))
    assert one.overall.to_dict() == other.overall.to_dict()


def test_a_tensor_is_taken_as_it_is() -> None:
    torch = pytest.importorskip("torch")
    human = people()
    runs = models(human)
    by_numpy = evaluate(human, runs, classes=CLASSES, metrics=["kl"], resamples=5)
    by_torch = evaluate(human, torch.tensor(runs, requires_grad=True), classes=CLASSES, metrics=["kl"], resamples=5)
    assert by_torch.overall == by_numpy.overall


def test_the_published_numbers_of_roberta_and_the_constant_that_beats_it(data: Path) -> None:
    folder = data / "chaosNLI_v1.0"
    logits = pl.read_ndjson(folder / "model_logits.jsonl").select("uid", pl.col("logits").struct.unnest())
    published = {
        "snli": {"kl": 0.570, "soft_nll": 1.124, "tvd": 0.257, "accuracy": 0.743, "entropy_pearson": 0.378},
        "mnli_m": {"kl": 0.688, "soft_nll": 1.430, "tvd": 0.352, "accuracy": 0.531, "entropy_pearson": 0.122},
    }
    constant = {"snli": 0.475, "mnli_m": 0.316}
    for name, scores in published.items():
        votes = read_votes(folder / f"chaosNLI_{name}.jsonl")
        table = logits.filter(pl.col("uid").is_in(votes.items.tolist()))
        places = {uid: place for place, uid in enumerate(votes.items.tolist())}
        human = frequency(votes).take(np.array([places[uid] for uid in table["uid"].to_list()]))
        runs = np.stack([softmax(np.array(table[f"roberta-base_{seed}"].to_list()), axis=1) for seed in range(3)])
        # The plain numbers are checked here; corrections of 100 votes are small, and slow.
        result = evaluate(
            human.probabilities, {"roberta": runs}, majority="roberta", metrics=list(scores), resamples=50
        )
        for metric, number in scores.items():
            found = result.overall.get("roberta", metric).value
            assert found is not None
            # The printed accuracies break tied majorities by class order, ours take the expectation over ties.
            assert found.value == pytest.approx(number, abs=0.003 if metric == "accuracy" else 0.0015), (name, metric)
        marginal = result.overall.get("marginal", "kl").value
        assert marginal is not None
        assert marginal.value == pytest.approx(constant[name], abs=0.0015)
        scaled = result.overall.get("majority + temperature", "kl").value
        roberta = result.overall.get("roberta", "kl").value
        assert scaled is not None
        assert roberta is not None
        assert scaled.value < 0.5 * roberta.value
        assert marginal.value < roberta.value
        # Three seeds that differ this much leave room for others; on these three the constant is always closer.
        assert result.difference("marginal").get("roberta", "kl").seeds_closer == 0


def test_hard_labels_are_all_probability_on_one_class() -> None:
    people = frequency(votes_from_counts(np.array([[3, 1], [0, 4]]), classes=("no", "yes")))
    by_name = evaluate(people, np.array(["no", "yes"]), resamples=0).to_dict()
    by_place = evaluate(people, [0, 1], classes=["no", "yes"], resamples=0).to_dict()
    in_full = evaluate(people, np.eye(2), classes=["no", "yes"], resamples=0).to_dict()
    assert by_name["overall"] == by_place["overall"] == in_full["overall"]
    with pytest.raises(InputError, match="model: 'maybe' is none of the classes no, yes"):
        evaluate(people, ["no", "maybe"])


def test_answers_that_name_no_class_cost_the_scale_and_nothing_else(tmp_path: Path) -> None:
    people = frequency(votes_from_counts(np.array([[3, 1], [0, 4]]), classes=("1", "2"), ordered=True))
    (tmp_path / "p.csv").write_text("item,answer\n0,1\n0,perhaps\n1,2\n1,2\n", encoding="utf-8")
    found = evaluate(people, read_predictions(tmp_path / "p.csv", people.classes), resamples=0)
    assert any("no distances along it are shown" in each for each in found.warnings)
    assert any("gives 25.0% of its probability to classes that nobody voted for" in each for each in found.warnings)
    score = next(row for row in found.overall.rows if (row.system, row.metric) == ("model", "tvd"))
    assert score.value is not None
    assert score.value.value == pytest.approx(np.mean([0.5 * (0.25 + 0.25 + 0.5), 0]))
    nothing = next(row for row in found.overall.rows if (row.system, row.metric) == ("uniform", "soft_nll"))
    assert nothing.value is not None
    assert nothing.value.value == pytest.approx(np.log(2))


def ordered_example(*, items: int = 400, votes: int = 6) -> tuple[Any, Any]:
    """Votes on a scale of five, and the truth behind them."""
    place = np.random.default_rng(3).normal(0, 1.2, (items, 1))
    truth = np.asarray(softmax(-((place - np.arange(-2, 3)) ** 2), axis=1))
    return simulate_votes(truth, votes, annotators=40, seed=1, ordered=True), truth


def test_on_a_scale_the_ranked_probability_score_is_the_second_headline() -> None:
    votes, truth = ordered_example()
    near = 0.7 * truth + 0.3 / 5
    result = evaluate(votes, {"truth": truth, "near": near}, resamples=200)
    assert result.metrics[:2] == ("soft_nll", "rps")
    assert (result.headline, result.second) == ("soft_nll", "rps")
    found = result.overall.get("truth", "rps")
    assert found.value is not None
    assert found.value.value == pytest.approx(float(rps(frequency(votes).probabilities, truth).mean()))
    for finding in (found.best_achievable, found.corrected):
        assert finding is not None
        assert finding.estimate is not None
        low, high = finding.estimate.low, finding.estimate.high
        assert low is not None
        assert high is not None
        right = found.value.value if finding is found.best_achievable else 0.0
        assert low <= right <= high, "a perfect model meets its best achievable, and is corrected to 0"
    header, rows = result.short_grid()
    assert header[1:5] == ["soft NLL ↓", "people", "RPS ↓", "people"]
    assert rows[1][4] == result.second_worth["near"].short
    assert f"(by RPS {result.second_worth['truth']})" in result.verdict[1]
    told = result.to_dict()
    assert told["second"] == "rps"
    assert set(told["second_worth"]) == set(result.systems)
    assert told["second_ruler"]["score"] == "rps"


def test_without_an_order_there_is_no_second_headline() -> None:
    _, _, result = example()
    assert (result.second, result.second_ruler, dict(result.second_worth)) == (None, None, {})
    assert "rps" not in result.metrics


def test_a_model_that_is_closer_along_the_scale_is_the_but() -> None:
    votes, truth = ordered_example(items=1500)
    # One puts a third of its probability at the far end of the scale, the other more of it beside the truth.
    wild = 0.65 * truth + 0.35 * np.eye(5)[np.where(truth.argmax(axis=1) < 2, 4, 0)]
    steps = np.minimum(np.arange(5) + 1, 4)
    moved = np.zeros_like(truth)
    np.add.at(moved.T, steps, truth.T)
    beside = 0.2 * truth + 0.8 * moved
    result = evaluate(votes, {"wild": wild, "beside": beside}, metrics=["soft_nll", "rps"], resamples=300)
    assert result.closest() == "wild"
    assert "by RPS, which knows the order of the classes, beside is closer" in result.verdict[2]
    row = result.difference("wild").get("beside", "rps")
    assert "annotators" in row.over, "people who judged many items widen the interval"
    assert row.p is None, "one family of tests, on the headline"


def test_the_short_table_has_tvd_and_entce_as_corrected_or_says_why_not() -> None:
    truth = np.random.default_rng(0).dirichlet([0.5] * 3, size=800)
    human = frequency(votes_from_counts(np.random.default_rng(1).multinomial(5, truth), classes=CLASSES))
    result = evaluate(human, {"truth": truth}, classes=CLASSES, metrics=["soft_nll", "tvd", "entce", "abs_entce"])
    header, rows = result.short_grid()
    assert header[3:] == ["TVD, corrected ↓", "EntCE, signed, corrected → 0"]
    for metric, cell, limit in zip(("tvd", "entce"), rows[0][3:], rows[-1][3:], strict=True):
        found = result.overall.get("truth", metric)
        assert found.value is not None
        assert found.corrected is not None
        assert limit == "0.000 "
        # Against five votes the truth itself looks far off; corrected, it does not.
        assert abs(found.value.value) > 0.1
        assert found.corrected.estimate is not None
        assert cell == f"{found.corrected.estimate.value:z.3f} "
        assert found.corrected.estimate.low is not None
        assert found.corrected.estimate.low <= 0 <= (found.corrected.estimate.high or 0)
    assert set(result.absent) == {"abs_entce"}
    assert "see entce" in result.absent["abs_entce"]


def test_people_given_as_probabilities_need_no_correction() -> None:
    result = evaluate(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([[0.5, 0.5], [0.5, 0.5]]), metrics=["kl", "tvd"])
    header, rows = result.short_grid()
    assert (header[3], rows[0][3].strip()) == ("TVD ↓", "0.250")


def test_variance_components_are_the_parts_of_the_interval() -> None:
    """Items, seeds and annotators that differ by known amounts: each part is its textbook variance."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([2.0, 2.0, 2.0], 500)
    human = frequency(votes_from_counts(rng.multinomial(8, truth), classes=CLASSES))
    # Seeds that shift every item alike: seed s takes a power of the truth.
    runs = np.stack([truth**power / (truth**power).sum(axis=1, keepdims=True) for power in (0.5, 1.0, 2.0, 3.0)])
    result = evaluate(human, {"m": runs}, classes=CLASSES, metrics=["soft_nll"], resamples=2000, baselines=False)
    variance = result.overall.get("m", "soft_nll").variance
    assert variance is not None
    scores = -(human.probabilities * np.log(runs)).sum(axis=2)
    assert set(variance) == {"items", "seeds"}
    assert variance["seeds"] == pytest.approx(scores.mean(axis=1).var(ddof=1) / 4)
    # Mean squares of the two-way layout: the variance between items less that of single cells.
    between = scores.mean(axis=0).var(ddof=1)
    off = scores - scores.mean(axis=0) - scores.mean(axis=1, keepdims=True) + scores.mean()
    cells = (off**2).sum() / (3 * 499)
    assert variance["items"] == pytest.approx((between - cells / 4) / 500, rel=0.1)
    votes, _ = ordered_example(items=150)
    known = evaluate(votes, {"m": np.full((150, 5), 0.2)}, metrics=["soft_nll"], resamples=50).overall
    assert set(known.get("m", "soft_nll").variance or {}) == {"items", "annotators"}
    header, rows = result.variance_grid()
    assert header[1:] == ["all", "by items", "by annotators", "by seeds"]
    assert rows[0][3] == "-"
