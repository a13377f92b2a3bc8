from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from scipy.special import softmax

from dissensus.errors import InputError
from dissensus.evaluation.comparison.strata import by_attribute, by_entropy
from dissensus.evaluation.evaluating import DEFAULT_METRICS, Evaluation, evaluate
from dissensus.evaluation.metrics.distances import kl, tvd
from dissensus.evaluation.metrics.ranking import accuracy
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.evaluation.metrics.set_level import entropy_pearson
from dissensus.labels.schemes import frequency, weighted
from dissensus.votes.reading import read_votes
from dissensus.votes.table import Votes, votes_from_counts

if TYPE_CHECKING:
    from pathlib import Path

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
    return human, runs, evaluate(human, given, strata=["agreement", "class"], resamples=100, majority="one")


def test_scores_are_means_over_items_and_seeds_with_sd_over_seeds() -> None:
    human, runs, result = example()
    found = result.overall.get("three", "kl")
    per_seed = [float(kl(human.probabilities, run).mean()) for run in runs]
    assert found.value is not None
    assert found.value.value == pytest.approx(np.mean(per_seed))
    assert found.sd == pytest.approx(np.std(per_seed, ddof=1))
    assert (found.items, found.seeds) == (60, 3)
    alone = result.overall.get("one", "entropy_pearson")
    assert alone.value is not None
    assert alone.value.value == pytest.approx(entropy_pearson(human.probabilities, runs[0]))
    assert alone.sd is None
    assert result.metrics == DEFAULT_METRICS


def test_a_stratum_is_scored_on_its_own_items() -> None:
    human, runs, result = example()
    found = result.by_stratum("agreement").get("one", "tvd", stratum="varied")
    varied = ~human.unanimous
    assert found.value is not None
    assert found.value.value == pytest.approx(float(tvd(human.probabilities[varied], runs[0][varied]).mean()))
    assert found.items == varied.sum()
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
    assert any("each item left out of its own" in note for note in result.notes)
    assert "majority: the system 'one'" in result.notes
    bare = evaluate(people(), models(people()), resamples=0)
    assert any("are missing" in note for note in bare.notes)
    assert evaluate(people(), models(people()), resamples=0, baselines=False).systems == ("model",)


def test_floor_ceiling_and_correction_stand_beside_each_score_where_they_exist() -> None:
    _, _, result = example()
    row = result.overall.get("three", "kl")
    assert row.floor is not None
    assert row.corrected is not None
    assert row.ceiling is not None
    assert row.value is not None
    assert 0 < row.floor < row.value.value
    assert row.corrected.value < row.value.value
    assert result.overall.get("uniform", "kl").floor == row.floor
    # Which class most people would choose is not known from few votes.
    assert result.overall.get("three", "accuracy").corrected is None


def test_strata_that_the_votes_chose_have_no_floor_since_their_votes_are_no_random_draw() -> None:
    _, _, result = example()
    for stratum in ("unanimous", "varied"):
        row = result.by_stratum("agreement").get("one", "kl", stratum=stratum)
        assert (row.floor, row.corrected, row.ceiling) == (None, None, None)
    assert any("no longer a random draw" in note for note in result.notes)


def test_people_as_their_own_model_score_nothing_and_the_floor_is_reported() -> None:
    human = people()
    result = evaluate(human, human.probabilities, metrics=["kl", "tvd", "abs_entce"], resamples=20)
    for metric in ("kl", "tvd", "abs_entce"):
        row = result.overall.get("model", metric)
        assert row.value is not None
        assert row.value.value == pytest.approx(0.0, abs=1e-12)
        assert row.floor is not None
        assert row.floor > 0


def test_an_empty_stratum_is_empty_and_an_undefined_metric_undefined_not_zero_nor_nan() -> None:
    human = frequency(votes_from_counts([[3, 1], [2, 2], [1, 3], [3, 1]], classes=("no", "yes")))
    model = np.array([[0.6, 0.4], [0.5, 0.5], [0.4, 0.6], [0.7, 0.3]])
    result = evaluate(human, model, resamples=20)
    row = result.by_stratum().get("model", "kl", stratum="unanimous")
    assert (row.items, row.value, row.note) == (0, None, "the stratum 'unanimous' is empty")
    assert "empty" in result.by_stratum().to_markdown()
    correlation = result.overall.get("marginal", "entropy_pearson")
    assert correlation.value is None
    assert "undefined" in correlation.note
    assert "NaN" not in json.dumps(result.to_dict(), allow_nan=False)
    with pytest.raises(InputError, match="no item is in the stratum 'unanimous'"):
        result.difference("model", stratum="unanimous")


def test_differences_are_paired_and_corrected_over_the_table() -> None:
    human, runs, result = example()
    table = result.difference("three")
    row = table.get("one", "accuracy")
    one, *others = (float(accuracy(human.probabilities, run).mean()) for run in (runs[0], *runs))
    assert row.value.value == pytest.approx(np.mean([one - other for other in others]))
    assert row.seeds == 3
    tested = [each for each in table.rows if each.p is not None]
    assert len(tested) == len(table)
    assert all(each.p_holm is not None and each.p is not None and each.p_holm >= each.p for each in tested)
    varied = result.difference("three", stratum="varied")
    assert {each.stratum for each in varied.rows} == {"varied"}
    with pytest.raises(InputError, match="no system 'four'"):
        result.difference("four")


def test_a_system_compared_with_itself_under_another_name_does_not_differ() -> None:
    human = people()
    runs = models(human)
    row = evaluate(human, {"a": runs, "b": runs.copy()}, resamples=30, metrics=["kl"]).difference("a").get("b", "kl")
    assert (row.value.value, row.p, row.p_holm) == (0, 1, 1)


def test_a_result_is_the_same_twice_and_ready_for_json_and_markdown() -> None:
    human, runs, result = example()
    given = {"one": runs[0], "three": runs}
    again = evaluate(human, given, strata=["agreement", "class"], resamples=100, majority="one")
    told = result.to_dict()
    assert told == again.to_dict()
    assert json.loads(json.dumps(told, allow_nan=False))["strata"]["agreement"][0]["system"] == "one"
    text = result.to_markdown()
    assert "| KL(human \\|\\| model), nats ↓ | three | " in text
    assert "| KL(human \\|\\| model), nats ↓ | noise floor | " in text
    assert "## By class" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert "nan" not in text.lower().replace("unanimous", "")
    assert len(rows) > 60


def test_annotator_groups_are_held_against_their_own_votes_with_their_own_floor() -> None:
    rng = np.random.default_rng(3)
    items, annotators = 40, 12
    truth = rng.dirichlet([1, 1, 1], size=items)
    item = np.repeat(np.arange(items, dtype=np.int32), annotators)
    label = np.concatenate([rng.choice(3, size=annotators, p=row) for row in truth]).astype(np.int32)
    votes = Votes(
        item=item,
        label=label,
        annotator=np.tile(np.arange(annotators, dtype=np.int32), items),
        items=np.arange(items),
        classes=CLASSES,
        annotators=np.arange(annotators),
        attributes={"age": np.array(["old"] * 3 + ["young"] * 9, dtype=np.dtypes.StringDType())},
    )
    human = frequency(votes)
    made = by_attribute(human, votes, "age")
    result = evaluate(human, truth, strata={"age": made}, metrics=["kl", "brier"], resamples=50)
    table = result.by_stratum("age")
    old = table.get("model", "kl", stratum="age old")
    young = table.get("model", "kl", stratum="age young")
    assert made[1].human is not None
    assert old.value is not None
    assert young.value is not None
    assert old.value.value == pytest.approx(float(kl(made[1].human.probabilities, truth).mean()))
    # The model is the truth, so both groups should score their floor, and the smaller group has the higher one.
    assert old.floor is not None
    assert young.floor is not None
    assert old.floor > 2 * young.floor
    assert old.value.value > 2 * young.value.value
    brier = table.get("model", "brier", stratum="age old").corrected
    assert brier is not None
    assert abs(brier.value) < 0.05
    assert "corrected" in table.to_markdown()


def test_any_column_and_any_number_of_parts_give_strata() -> None:
    human = people()
    result = evaluate(
        human,
        models(human),
        strata={"time": ["day", "night"] * 30, "halves": by_entropy(human, parts=2)},
        metrics=["kl"],
        resamples=10,
    )
    assert [row.stratum for row in result.by_stratum("time").rows if row.system == "model"] == ["all", "day", "night"]
    assert result.by_stratum("time").get("model", "kl", stratum="day").floor is not None
    assert result.by_stratum("halves").get("model", "kl", stratum="entropy 1/2").floor is None
    with pytest.raises(InputError, match="no strata by 'agreement' here but by time, halves"):
        result.by_stratum()


def test_bare_probabilities_are_scored_without_floors_and_that_is_said() -> None:
    human = people()
    result = evaluate(human.probabilities, models(human), metrics=["kl"], resamples=10)
    assert result.overall.get("model", "kl").floor is None
    assert any(note.startswith("no noise floors") for note in result.notes)
    weights = evaluate(weighted(people_with_unsure(), "uncertainty-weighted"), np.full((2, 2), 0.5), metrics=["kl"])
    assert any("'uncertainty-weighted'" in note or "judgements" in note for note in weights.notes)


def people_with_unsure() -> Votes:
    """Two items, two annotators; one selected both classes of the first item, one of them unsure."""
    return Votes(
        item=np.array([0, 0, 0, 1, 1], dtype=np.int32),
        label=np.array([0, 1, 0, 1, 0], dtype=np.int32),
        annotator=np.array([0, 0, 1, 0, 1], dtype=np.int32),
        judgement=np.array([0, 0, 1, 2, 3], dtype=np.int32),
        unsure=np.array([False, True, False, False, False]),
        items=np.arange(2),
        classes=("no", "yes"),
        annotators=np.arange(2),
    )


def test_metrics_that_need_more_come_when_it_is_given_and_are_refused_when_it_is_not() -> None:
    human = people()
    model = models(human)
    result = evaluate(human, model, original=np.zeros(60, dtype=np.int64), resamples=5)
    row = result.overall.get("model", "accuracy_original")
    assert row.value is not None
    assert row.value.value == pytest.approx(float(np.mean(model.argmax(axis=2) == 0)))
    with pytest.raises(InputError, match=r"accuracy_original needs .* give the original labels"):
        evaluate(human, model, metrics=["accuracy_original"])
    with pytest.raises(InputError, match=r"wasserstein needs .* say that the classes are a scale"):
        evaluate(human, model, metrics=["wasserstein"])
    with pytest.raises(InputError, match="no metric 'kld'"):
        evaluate(human, model, metrics=["kld"])


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
    ],
)
def test_predictions_that_are_none_are_refused(model: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        evaluate(people(), model, resamples=5)


def test_a_tensor_is_taken_as_it_is() -> None:
    torch = pytest.importorskip("torch")
    human = people()
    runs = models(human)
    by_numpy = evaluate(human, runs, metrics=["kl"], resamples=5)
    by_torch = evaluate(human, torch.tensor(runs, requires_grad=True), metrics=["kl"], resamples=5)
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
        gap = result.difference("marginal").get("roberta", "kl").value
        assert gap.low is not None
        if name == "mnli_m":
            assert gap.low > 0
