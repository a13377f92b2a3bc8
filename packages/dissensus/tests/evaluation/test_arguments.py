"""What people hand to `evaluate`: the same votes and predictions, however they keep them, give the same numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dissensus as dis
from dissensus.errors import InputError
from dissensus.evaluation.arguments import named_systems, people_in, systems_in
from dissensus.evaluation.evaluating import evaluate
from dissensus.labels.schemes import frequency
from dissensus.report.writing import _subject as subject_of
from dissensus.votes.reading import read_votes

if TYPE_CHECKING:
    from collections.abc import Callable

CLASSES = ("cat", "dog", "owl")
ITEMS = [f"picture {number}" for number in range(30)]
RNG = np.random.default_rng(0)
TRUTH = RNG.dirichlet([0.4] * 3, len(ITEMS))
ROWS = [
    {"item": item, "annotator": f"person {person}", "label": CLASSES[RNG.choice(3, p=TRUTH[place])]}
    for place, item in enumerate(ITEMS)
    for person in range(5)
]
VOTES = read_votes(ROWS)
LABELS = frequency(VOTES)
MODEL = 0.7 * TRUTH[[ITEMS.index(str(item)) for item in VOTES.items]] + 0.1


def score(human: Any, model: Any, **options: Any) -> float:
    result = evaluate(human, model, metrics=["soft_nll"], baselines=False, resamples=0, **options)
    value = result.overall.get(result.models[0], "soft_nll").value
    assert value is not None
    return value.value


EXPECTED = float(-(LABELS.probabilities * np.log(MODEL)).sum(axis=1).mean())


@pytest.mark.parametrize(
    "human",
    [
        VOTES,
        LABELS,
        ROWS,
        pd.DataFrame(ROWS),
        pl.DataFrame(ROWS),
        {name: [row[name] for row in ROWS] for name in ROWS[0]},
        pd.DataFrame(LABELS.probabilities, columns=CLASSES),
        LABELS.probabilities,
    ],
    ids=["votes", "labels", "rows", "pandas", "polars", "columns", "shares", "array"],
)
def test_people_are_votes_labels_frames_dictionaries_or_arrays(human: Any) -> None:
    assert score(human, MODEL) == pytest.approx(EXPECTED)


SHUFFLED = np.random.default_rng(1).permutation(len(ITEMS))
NAMES = [str(item) for item in VOTES.items]
FRAME = pd.DataFrame(MODEL[:, ::-1], columns=CLASSES[::-1])


@pytest.mark.parametrize(
    "model",
    [
        MODEL,
        MODEL[None],
        {"ours": MODEL},
        FRAME,
        pl.from_pandas(FRAME),
        FRAME.assign(item=VOTES.items.tolist()).iloc[SHUFFLED],
        FRAME.assign(text_id=VOTES.items.tolist(), length=7).iloc[SHUFFLED],
        FRAME.set_index(pd.Index(VOTES.items.tolist(), name="item")).iloc[SHUFFLED],
        {name: FRAME[name].tolist() for name in CLASSES[::-1]},
        {str(VOTES.items[row]): MODEL[row].tolist() for row in SHUFFLED},
        {str(VOTES.items[row]): dict(zip(CLASSES, MODEL[row], strict=True)) for row in SHUFFLED},
        {"ours": {str(VOTES.items[row]): dict(zip(CLASSES, MODEL[row], strict=True)) for row in SHUFFLED}},
    ],
    ids=[
        "array",
        "seeds",
        "named",
        "pandas",
        "polars",
        "item",
        "text_id",
        "index",
        "columns",
        "rows",
        "by class",
        "named by class",
    ],
)
def test_predictions_are_arrays_frames_or_dictionaries_in_any_order_that_names_give(model: Any) -> None:
    assert score(VOTES, model) == pytest.approx(EXPECTED)


def shaped(kind: str, names: list[str], table: Any) -> Any:
    """Return predictions for these items in one of the formats that contain item names."""
    if kind == "answers":
        return {name: CLASSES[k] for name, k in zip(names, table.argmax(axis=1), strict=True)}
    if kind == "rows":
        return dict(zip(names, table.tolist(), strict=True))
    rows = [dict(zip(CLASSES, row, strict=True)) for row in table.tolist()]
    if kind == "by class":
        return dict(zip(names, rows, strict=True))
    records = [{"item": name, **row} for name, row in zip(names, rows, strict=True)]
    return records if kind == "records" else tuple(records) if kind == "tuple" else pd.DataFrame(records)


@pytest.mark.parametrize("kind", ["frame", "records", "tuple", "by class", "rows", "answers"])
@pytest.mark.parametrize("others", [0, 29, 30, 600])
def test_named_systems_items_may_be_mostly_unjudged(kind: str, others: int) -> None:
    """All formats give the same predictions, with or without a system name. Items without votes change nothing."""
    names = [*NAMES, *(f"new {n}" for n in range(others))]
    table = np.concatenate([MODEL, np.random.default_rng(0).dirichlet([1.0] * 3, others)])
    given = shaped(kind, names, table)
    expected = np.eye(3)[table.argmax(axis=1)] if kind == "answers" else table
    for name, handed in (("model", given), ("judge", {"judge": given})):
        (found,) = named_systems(handed, LABELS).items()
        assert found[0] == name
        assert [str(item) for item in found[1].items] == names
        np.testing.assert_allclose(found[1].probabilities[0], expected)


@pytest.mark.parametrize("name", NAMES[:2])
def test_named_systems_a_system_may_be_called_like_an_item(name: str) -> None:
    system = systems_in(MODEL, LABELS)[1]["model"]
    for given in (system, MODEL, FRAME, LABELS, FRAME.to_dict("records")):
        assert list(named_systems({name: given}, LABELS)) == [name]


def test_named_systems_columns_may_be_called_like_items() -> None:
    """Items and classes share the names 0, 1, 2. A column is longer than the number of classes, and a row is not."""
    table = np.random.default_rng(0).dirichlet([1.0, 1.0], 20)
    people = people_in(table)[0]
    columns = {"0": table[:, 0].tolist(), "1": table[:, 1].tolist()}
    for given in (columns, {"item": list(range(20)), **columns}, dict(enumerate(table.tolist()))):
        for name, handed in (("model", given), ("ours", {"ours": given})):
            (found,) = named_systems(handed, people).items()
            assert found[0] == name
            np.testing.assert_allclose(found[1].probabilities[0], table)


CONSUMERS: dict[str, Callable[[Any], Any]] = {
    "evaluate": lambda given: evaluate(VOTES, given, resamples=0).to_dict(),
    "prediction_sets": lambda given: dis.prediction_sets(VOTES, given, resamples=0).thresholds.tolist(),
    "stand_in": lambda given: dis.stand_in(VOTES, given, least_items=2, resamples=0).to_dict(),
    "plan_with_model": lambda given: dis.plan_with_model(VOTES, given, resamples=2).records(),
    "report": lambda given: subject_of(VOTES, given, None, None, seed=0).evaluation.worth,
}


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_records_are_taken_wherever_predictions_are(consumer: str) -> None:
    expected = CONSUMERS[consumer]({"model": MODEL})
    assert CONSUMERS[consumer]({"model": shaped("records", NAMES, MODEL)}) == expected


def test_stand_in_and_combine_take_a_judge_of_many_unjudged_items() -> None:
    names = [*NAMES, *(f"new {n}" for n in range(600))]
    table = np.concatenate([MODEL, np.random.default_rng(0).dirichlet([1.0] * 3, 600)])
    judge = shaped("by class", names, table)
    both = dis.combine(VOTES, {"judge": judge}, resamples=0)
    assert len(both.labels) == 630
    assert both.predicted.all()
    alone = dis.stand_in(VOTES, MODEL, least_items=2, resamples=0).models["model"]
    found = dis.stand_in(VOTES, judge, least_items=2, resamples=0).models["model"]
    assert found.test.advantage_probability == alone.test.advantage_probability


def test_votes_know_their_people_wherever_they_are_handed_in() -> None:
    assert evaluate(VOTES, MODEL, resamples=0).worth == evaluate(LABELS, MODEL, votes=VOTES, resamples=0).worth
    assert people_in(VOTES)[1] is VOTES
    assert people_in(LABELS)[1] is None


def test_labels_are_a_system_too_matched_by_item() -> None:
    assert score(VOTES, LABELS.take(SHUFFLED)) == pytest.approx(float(LABELS.entropy.mean()))


def test_one_label_per_item_may_come_by_item() -> None:
    winner = {str(item): CLASSES[k] for item, k in zip(LABELS.items, LABELS.majority().label, strict=True)}
    assert systems_in(winner, LABELS)[1]["model"].probabilities[0].tolist() == LABELS.one_hot().tolist()


@pytest.mark.parametrize(
    ("human", "model"),
    [
        (MODEL, VOTES),
        (MODEL, LABELS.counts),
        (MODEL, pd.DataFrame(ROWS)),
        ({"ours": MODEL}, VOTES),
        (systems_in(MODEL, LABELS)[1]["model"], VOTES),
    ],
    ids=["array", "counts", "frame", "systems", "predictions"],
)
def test_swapped_arguments_are_recognised_and_answered_by_the_right_call(human: Any, model: Any) -> None:
    with pytest.raises(InputError, match=r"dis\.evaluate\(votes, predictions\)"):
        evaluate(human, model)


def test_a_model_that_is_no_better_in_another_order_is_not_asked_for_one() -> None:
    """Noise fits every order alike, and so does a model that knows nothing."""
    for seed in range(20):
        noise = np.random.default_rng(seed).dirichlet([1.0] * 3, len(ITEMS))
        systems_in(noise, LABELS)
    systems_in(np.full((len(ITEMS), 3), 1 / 3), LABELS)


def test_an_item_that_only_votes_or_only_predictions_have_is_refused() -> None:
    with pytest.raises(InputError, match="1 items with votes have no prediction, first picture"):
        evaluate(VOTES, {str(item): row for item, row in zip(VOTES.items[1:], MODEL[1:].tolist(), strict=True)})


def test_labels_in_a_series_are_matched_by_its_index() -> None:
    winner = pd.Series([CLASSES[k] for k in LABELS.majority().label], index=LABELS.items.tolist()).iloc[SHUFFLED]
    assert systems_in(winner, LABELS)[1]["model"].probabilities[0].tolist() == LABELS.one_hot().tolist()


def test_only_common_items_are_evaluated_where_that_is_asked_for_and_said() -> None:
    some = {str(item): row for item, row in zip(VOTES.items[:20], MODEL[:20].tolist(), strict=True)}
    result = evaluate(VOTES, some, only_common=True, resamples=0)
    assert result.items == 20
    assert "20 of 30 items with votes have a prediction of every system" in result.warnings[0]
    half = evaluate(LABELS.take(np.arange(20)), MODEL[:20], votes=VOTES, resamples=0)
    assert [row.value for row in result.overall.rows] == [row.value for row in half.overall.rows]


TURNED = FRAME.iloc[SHUFFLED]


@pytest.mark.parametrize(
    "model",
    [
        FRAME.set_axis(NAMES).iloc[SHUFFLED],
        FRAME.set_axis(pd.Index(NAMES, name="foo")).iloc[SHUFFLED],
        FRAME.set_axis(pd.MultiIndex.from_arrays([["x"] * len(NAMES), NAMES])).iloc[SHUFFLED],
        FRAME.assign(text=NAMES).iloc[SHUFFLED],
        FRAME.assign(key=NAMES, question="why", id=range(len(NAMES))).iloc[SHUFFLED],
    ],
    ids=["unnamed index", "index of another name", "level", "text", "key beside a question and a row number"],
)
def test_shuffled_rows_are_matched_by_whatever_holds_the_items(model: pd.DataFrame) -> None:
    assert score(VOTES, model) == pytest.approx(EXPECTED)


def test_shuffled_rows_that_name_no_item_are_refused() -> None:
    with pytest.raises(InputError, match="the index names no item that people judged"):
        evaluate(VOTES, TURNED)
    # An index that has a name holds names, though they be 0, 1, 2, ...: the frame's order is not the items'.
    numbers = pd.RangeIndex(len(FRAME), name="item")
    for named in (FRAME.set_index(numbers), pd.Series(CLASSES[0], index=numbers)):
        with pytest.raises(InputError, match="the index names no item that people judged"):
            evaluate(VOTES, named)
    with pytest.raises(InputError, match="strata 'half': the index names other items"):
        evaluate(VOTES, FRAME, strata={"half": pd.Series(0, index=numbers)}, resamples=0)
    with pytest.raises(InputError, match=r"30 items have more than one row, .* in a column 'seed'"):
        evaluate(VOTES, pd.concat([FRAME.assign(item=NAMES)] * 2))


def test_a_frame_says_by_a_column_of_seeds_which_run_a_row_is_of() -> None:
    second = pd.DataFrame(0.5 * MODEL + 0.5 / 3, columns=CLASSES)
    runs = pd.concat([FRAME.assign(item=NAMES, seed=7), second.assign(item=NAMES, seed=8)])
    system = systems_in(runs.sample(frac=1, random_state=0), LABELS)[1]["model"]
    assert system.seeds == (7, 8)
    np.testing.assert_allclose(system.probabilities, np.stack([MODEL, second.to_numpy()]))


def test_further_columns_of_a_frame_are_classes_by_the_rule_of_files() -> None:
    unvoted = FRAME.mul(0.9).assign(item=NAMES, fox=0.1)
    assert systems_in(unvoted, LABELS)[1]["model"].classes == (*CLASSES, "fox")
    assert systems_in(FRAME.assign(item=NAMES, score=3.5), LABELS)[1]["model"].classes == CLASSES
    with pytest.raises(InputError, match="nor with the further columns 'fox'"):
        systems_in(unvoted.assign(fox=0.3), LABELS)


def test_strata_of_a_series_follow_its_index() -> None:
    kind = pd.Series(np.where(np.arange(30) < 10, "old", "new"), index=NAMES)
    expected = evaluate(VOTES, MODEL, strata={"kind": kind.to_numpy()}, resamples=0).strata["kind"]
    by_name = evaluate(VOTES, MODEL, strata={"kind": kind.iloc[SHUFFLED]}, resamples=0).strata["kind"]
    assert [row.value for row in by_name.rows] == [row.value for row in expected.rows]
    known = pd.DataFrame(MODEL, columns=CLASSES).assign(item=NAMES).iloc[5:]
    fewer = evaluate(VOTES, known, strata={"kind": kind}, only_common=True, resamples=0).strata["kind"]
    assert {row.items for row in fewer.rows if row.stratum == "old"} == {5}


def test_one_metric_may_be_named_without_a_list_and_seeds_name_systems() -> None:
    assert evaluate(VOTES, MODEL, metrics="kl", resamples=0).metrics == ("kl",)
    with pytest.raises(InputError, match="seeds= names 'modle', which is no system; did you mean 'model'"):
        evaluate(VOTES, MODEL, seeds={"modle": [3]})


def test_votes_that_are_not_those_of_the_labels_are_told() -> None:
    others = read_votes([row | {"item": f"other {row['item']}"} for row in ROWS])
    assert not any("do not fit" in warning for warning in evaluate(LABELS, MODEL, votes=VOTES, resamples=0).warnings)
    assert any("do not fit" in warning for warning in evaluate(LABELS, MODEL, votes=others, resamples=0).warnings)


def test_classes_are_named_by_numbers_and_truth_values_too() -> None:
    rows = [{"item": f"t{i}", "annotator": a, "label": (1, 2, 10)[(i + a) % 3]} for i in range(9) for a in range(4)]
    votes = read_votes(rows)
    labels = frequency(votes)
    frame = pd.DataFrame(labels.probabilities, columns=[int(name) for name in votes.classes])
    expected = float(labels.entropy.mean())
    assert score(votes, frame[[10, 1, 2]]) == pytest.approx(expected)
    by_item = {
        str(item): {float(name): p for name, p in zip(votes.classes, row, strict=True)}
        for item, row in zip(votes.items, labels.probabilities, strict=True)
    }
    assert score(votes, by_item) == pytest.approx(expected)
    truths = read_votes([{"item": i, "annotator": a, "label": (i + a) % 2 == 0} for i in range(8) for a in range(3)])
    assert systems_in(np.array([True, False] * 4), frequency(truths))[1]["model"].probabilities.shape == (1, 8, 2)


def test_a_mistyped_class_is_not_one_more_class() -> None:
    wrong = {name: {"cat": 0.5, "dog": 0.3, "owll": 0.2} for name in NAMES}
    with pytest.raises(
        InputError, match="'owll' is none of the classes that people voted for, and 'owl' has no probab"
    ):
        evaluate(VOTES, wrong)


def test_labels_of_a_frame_are_matched_and_a_bad_classifier_is_judged() -> None:
    winner = [CLASSES[k] for k in LABELS.majority().label]
    frame = pd.DataFrame({"item": NAMES, "label": winner}).iloc[SHUFFLED]
    assert systems_in(frame, LABELS)[1]["model"].probabilities[0].tolist() == LABELS.one_hot().tolist()
    assert evaluate(VOTES, ["owl"] * len(NAMES), resamples=0).items == len(NAMES)


def test_columns_beside_predictions_are_matched_by_their_index() -> None:
    truth = pd.Series(LABELS.majority().label, index=NAMES)
    result = evaluate(VOTES, MODEL, original=truth.iloc[SHUFFLED], metrics=["accuracy_original"], resamples=0)
    plain = evaluate(VOTES, MODEL, original=truth.to_numpy(), metrics=["accuracy_original"], resamples=0)
    assert result.overall.rows == plain.overall.rows
    with pytest.raises(InputError, match=r"question: \(3,\) values for 30 items; give one for each item"):
        evaluate(VOTES, MODEL, question=["a", "b", "c"])
