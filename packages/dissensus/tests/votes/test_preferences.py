"""Preferences: labels as tools write them, pairs named one way round, and who likes what is shown on the left."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dissensus as dis
from dissensus.errors import VotesWarning
from dissensus.votes.sides import position_bias, swap_sides

DATA = os.environ.get("DISSENSUS_DATA")
on_real_data = pytest.mark.skipif(DATA is None, reason="DISSENSUS_DATA is not set: no real data here")

THREE = ("left", "tie", "right")


def _pairs(labels: list[Any], **more: Any) -> dis.Votes:
    rows = [{"item": k, "annotator": "ann", "label": label} for k, label in enumerate(labels)]
    return dis.read_votes(rows, format="preferences", **more)


@pytest.mark.parametrize(
    ("labels", "classes", "said"),
    [
        (["left", "right", "tie"], THREE, ["left", "right", "tie"]),
        (["model_a", "model_b", "tie (bothbad)", "tie"], THREE, ["left", "right", "tie", "tie"]),
        (["[[A]]", "[[B]]", "[[C]]"], THREE, ["left", "right", "tie"]),
        (["Response 1", "Response 2"], THREE, ["left", "right"]),
        (["1", "2", "Tie"], THREE, ["left", "right", "tie"]),
        ([1, 2], THREE, ["left", "right"]),
        ([-1, 0, 1], THREE, ["left", "tie", "right"]),
        (
            ["A>>B", "A=B", "B>A"],
            ("left 2", "left 1", "tie", "right 1", "right 2"),
            ["left 2", "tie", "right 1"],
        ),
        (["A>>B", "A=B"], ("left 2", "left 1", "tie", "right 1", "right 2"), ["left 2", "tie"]),
        (["right 2", "tie"], ("left 2", "left 1", "tie", "right 1", "right 2"), ["right 2", "tie"]),
        (
            [-3, 1],
            ("left 3", "left 2", "left 1", "tie", "right 1", "right 2", "right 3"),
            ["left 3", "right 1"],
        ),
        (
            ["A is slightly better", "B is better", "Response 1 is much better than Response 2", "about the same"],
            ("left 3", "left 2", "left 1", "tie", "right 1", "right 2", "right 3"),
            ["left 1", "right 2", "left 3", "tie"],
        ),
    ],
)
def test_labels_as_tools_write_them(labels: list[Any], classes: tuple[str, ...], said: list[str]) -> None:
    votes = _pairs(labels)
    assert votes.classes == classes
    assert [votes.classes[k] for k in votes.label] == said
    assert votes.pairs
    assert votes.ordered


def test_numbers_that_may_mean_several_things_are_refused_with_the_flags_that_read_them() -> None:
    with pytest.raises(dis.InputError, match="from left to right or not") as refused:
        _pairs([0, 1, 2])
    ways = refused.value.readings
    assert _pairs([0, 1, 2], **ways["1 is the left side, 2 the right, 0 a tie"]).label.tolist() == [1, 0, 2]
    assert _pairs([0, 1, 2], **ways["from left to right"]).label.tolist() == [0, 1, 2]
    with pytest.raises(dis.InputError, match="'4', '5' may lie") as refused:
        _pairs([1, 2, 4, 5])
    five = _pairs([1, 2, 4, 5], **refused.value.readings["from left to right"])
    assert five.classes == ("left 2", "left 1", "tie", "right 1", "right 2")
    assert five.label.tolist() == [0, 1, 3, 4]
    assert _pairs([1, 2, 3, 4], classes=["1", "2", "3", "4"]).classes == ("left 2", "left 1", "right 1", "right 2")


def test_a_label_that_names_no_side_is_refused() -> None:
    with pytest.raises(dis.InputError, match=r"'banana' .* names neither a side nor a tie"):
        _pairs(["left", "banana"])
    assert len(_pairs(["left", "banana"], missing=["banana"])) == 1


def test_classes_that_nobody_chose_stay_in_the_scale_and_a_note_says_so() -> None:
    votes = _pairs(["left", "right"])
    assert votes.classes == THREE
    assert any("nobody chose a tie" in note for note in votes.notes)
    assert _pairs(["left", "right"], classes=["left", "right"]).classes == ("left", "right")
    # Also where only a model chose one.
    rows = [{"item": 1, "annotator": "ann", "label": "left"}, {"item": 1, "annotator": "gpt-4", "label": "tie"}]
    assert dis.read_votes(rows, format="preferences", models=["gpt-4"]).people.classes == THREE


ROWS = [
    {"question_id": 1, "model_a": "x", "model_b": "y", "judge": "ann", "winner": "model_a"},
    {"question_id": 1, "model_a": "y", "model_b": "x", "judge": "ben", "winner": "model_a"},
    {"question_id": 1, "model_a": "z", "model_b": "x", "judge": "ann", "winner": "tie"},
    {"question_id": 2, "model_a": "y", "model_b": "x", "judge": "ann", "winner": "model_b"},
]


@pytest.mark.parametrize("item", [None, "question_id", "question_id,model_a,model_b"])
def test_pairs_are_named_one_way_round_and_what_was_shown_is_kept(item: str | None) -> None:
    votes = dis.read_votes(ROWS, format="preferences", item=item)
    assert votes.items.tolist() == ["1 | x | y", "1 | z | x", "2 | y | x"]
    assert votes.counts.tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 1]]
    assert votes.swapped is not None
    assert votes.swapped.tolist() == [False, True, False, False]
    assert votes.item_attributes["left"].tolist() == ["x", "z", "y"]
    assert votes.item_attributes["right"].tolist() == ["y", "x", "x"]
    assert any("1 of 4 votes named the sides of their pair the other way round" in note for note in votes.notes)


def test_the_winner_may_be_a_name() -> None:
    named = [{**row, "winner": row[row["winner"]] if row["winner"] != "tie" else "tie"} for row in ROWS]  # type: ignore[index]
    assert dis.read_votes(named, format="preferences") == dis.read_votes(ROWS, format="preferences")


def test_chosen_and_rejected_are_one_vote_each_and_say_nothing_of_places() -> None:
    rows = [{"prompt": "p", "chosen": "good", "rejected": "bad", "annotator": who} for who in ("ann", "ben")]
    rows += [{"prompt": "p", "chosen": "bad", "rejected": "good", "annotator": "cleo"}]
    votes = dis.read_votes(rows, format="preferences")
    assert votes.classes == ("left", "right")
    assert votes.counts.tolist() == [[1, 2]]
    assert votes.swapped is not None
    assert not votes.swapped.any()


def test_a_pair_that_is_judged_in_two_turns_is_told_how_to_be_read() -> None:
    people = [{**row, "judge": f"{row['judge']}-{one}"} for row in ROWS for one in range(3)]
    turns = [{**row, "turn": turn} for row in people for turn in (1, 2)]
    with pytest.raises(dis.InputError, match="judged a second time") as refused:
        dis.read_votes(turns, format="preferences")
    assert {"item": "question_id,model_a,model_b,turn"} in refused.value.readings.values()
    assert len(dis.read_votes(turns, format="preferences", item="question_id,model_a,model_b,turn").items) == 6


def _pandalm(folder: Path) -> Path:
    """Two rows as PandaLM's test set has them."""
    pair = {"cmp_key": "opt_bloom", "instruction": "Say", "response1": "one", "response2": "two"}
    rows = [{"idx": k, **pair, "annotator1": 1, "annotator2": 2, "annotator3": k} for k in range(2)]
    path = folder / "pandalm.json"
    path.write_text(json.dumps(rows))
    return path


def test_a_refusal_of_pandalm_leads_to_its_reading(tmp_path: Path) -> None:
    path = _pandalm(tmp_path)
    with pytest.raises(dis.InputError) as refused:
        dis.read_votes(path, format="preferences")
    votes = dis.read_votes(path, format="preferences", **refused.value.readings["they describe items"])
    assert votes.counts.tolist() == [[1, 1, 1], [2, 0, 1]]
    ways = {**refused.value.readings["they describe items"], "sides": ["cmp_key"], "separator": "_"}
    votes = dis.read_votes(path, format="preferences", **ways)
    assert votes.counts.tolist() == [[1, 1, 1], [2, 0, 1]]
    assert votes.item_attributes["left"].tolist() == ["opt", "opt"]
    assert votes.item_attributes["response1"].tolist() == ["one", "one"]


def test_pairs_that_are_read_as_something_else_are_remarked_on_or_refused() -> None:
    with pytest.warns(VotesWarning, match="format='preferences' reads as such"):
        dis.read_votes([{"item": k, "label": label} for k, label in enumerate(("model_a", "model_b", "tie"))])
    with pytest.raises(dis.InputError) as refused:
        dis.read_votes({"prompt": ["p"], "chosen": ["x"], "rejected": ["y"]})
    assert {"format": "preferences"} in refused.value.readings.values()
    # What a refusal advises keeps the format.
    with pytest.raises(dis.InputError) as refused:
        dis.read_votes({"idx": [1, 2], "result": [1, 2], "reason": ["a", "b"]}, format="preferences")
    assert {"label": "result"} in refused.value.readings.values()
    assert not any("format" in way for way in refused.value.readings.values())


def test_sides_in_the_names_of_items(tmp_path: Path) -> None:
    path = tmp_path / "mt.json"
    path.write_text(json.dumps({"ann": {"82__gpt__llama__1": "model_b"}, "ben": {"82__gpt__llama__1": "tie"}}))
    votes = dis.read_votes(path, format="preferences", sides=["2", "3"], separator="__")
    assert (votes.counts.tolist(), votes.item_attributes["right"].tolist()) == ([[0, 1, 1]], ["llama"])
    with pytest.raises(dis.InputError, match="does not hold two names"):
        dis.read_votes(path, format="preferences", sides=["2", "9"], separator="__")
    with pytest.raises(dis.InputError, match="choose format='preferences'"):
        dis.read_votes(path, format="alttest", sides=["2", "3"])


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_preferences_are_written_and_read_back_the_same(tmp_path: Path, suffix: str) -> None:
    votes = dis.read_votes(ROWS, format="preferences")
    dis.write_votes(votes, tmp_path / f"votes.{suffix}")
    assert dis.read_votes(tmp_path / f"votes.{suffix}") == votes
    assert dis.read_votes(tmp_path / f"votes.{suffix}", format="preferences") == votes
    assert swap_sides(swap_sides(votes)) == votes


def test_sides_as_shown_in_each_row_are_read_as_collect_exports_them() -> None:
    rows = [
        {"item": "p1", "left": "x", "right": "y", "annotator": "ann", "label": "left"},
        {"item": "p1", "left": "y", "right": "x", "annotator": "ben", "label": "left"},
    ]
    votes = dis.read_votes(rows, format="preferences")
    assert (votes.items.tolist(), votes.counts.tolist()) == (["p1"], [[1, 0, 1]])


def test_position_bias_is_recovered_from_sides_drawn_at_random() -> None:
    """Known habits: ann picks the left side 30 % of the time whatever it is, the others never do."""
    rng, habit = np.random.default_rng(1), {"ann": 0.3, "ben": 0.0, "cleo": 0.0}
    rows = []
    for pair in range(1500):
        quality = rng.random()
        for who, share in habit.items():
            left, right = ("x", "y") if rng.random() < 0.5 else ("y", "x")
            likes = "x" if rng.random() < quality else "y"
            side = "left" if rng.random() < share or likes == left else "right"
            rows.append({"item": pair, "left": left, "right": right, "annotator": who, "label": side})
    bias = {one.annotator: one for one in position_bias(dis.read_votes(rows, format="preferences"))}
    # Of the votes that would go right, half, 30 % go left: 15 points.
    for who, expected in {"ann": 0.15, "ben": 0.0, "cleo": 0.0}.items():
        low, high = bias[who].low, bias[who].high
        assert low is not None
        assert high is not None
        assert low < expected < high, who
        assert high - low < 0.1


@on_real_data
def test_pandalm_itself() -> None:
    votes = dis.read_votes(
        Path(str(DATA)) / "preferences" / "pandalm-testset-v1.json",
        format="preferences",
        annotators=["annotator*"],
        item_attributes=["response1", "response2"],
        sides=["cmp_key"],
        separator="_",
    )
    raw = json.loads((Path(str(DATA)) / "preferences" / "pandalm-testset-v1.json").read_text())
    order = {1: 0, 0: 1, 2: 2}
    counts = np.zeros((len(raw), 3), dtype=int)
    for row, entry in enumerate(raw):
        for who in (1, 2, 3):
            counts[row, order[entry[f"annotator{who}"]]] += 1
    assert (votes.counts == counts).all()
    assert set(votes.item_attributes["left"].tolist()) == {"bloom-7b", "cerebras-gpt-6.7B", "llama-7b", "opt-7b"}


@on_real_data
def test_mtbench_of_people_and_of_models() -> None:
    for kind in ("human", "llm"):
        path = Path(str(DATA)) / "alttest" / f"mtbench.{kind}_annotations.json"
        votes = dis.read_votes(path, format="preferences", sides=["2", "3"], separator="__")
        raw = json.loads(path.read_text())
        said = [label for entry in raw.values() for label in entry.values()]
        assert np.bincount(votes.label).tolist() == [said.count(name) for name in ("model_a", "tie", "model_b")]
        assert (votes.by_model is not None) == (kind == "llm")


def _row(item: Any, left: str, right: str, winner: Any) -> dict[str, Any]:
    return {"item": item, "model_a": left, "model_b": right, "annotator": "ann", "winner": winner}


def _read(*rows: tuple[str, str, Any]) -> list[str]:
    """What is said of each pair, as the name of the winner."""
    votes = dis.read_votes([_row(k, *row) for k, row in enumerate(rows)], format="preferences")
    winners = [
        votes.item_attributes.get(votes.classes[label], ["tie"] * len(votes))[k] for k, label in enumerate(votes.label)
    ]
    return list(map(str, winners))


@pytest.mark.parametrize(("one", "other"), [("A", "B"), ("1", "2"), ("left", "right"), ("tie", "model_b")])
def test_a_system_that_is_called_like_a_side_is_refused_where_both_readings_differ(one: str, other: str) -> None:
    with pytest.raises(dis.InputError, match=f"'{one}' of item '1.*' may be the system of that name or the side"):
        _read((one, other, other), (other, one, one))


def test_a_system_that_is_called_like_a_side_is_what_the_other_labels_are() -> None:
    assert _read(("B", "A", "A"), ("A", "gpt", "gpt"), ("gpt", "A", "A")) == ["A", "gpt", "A"]
    assert _read(("B", "A", "A"), ("x", "y", "A"), ("y", "x", "B")) == ["B", "x", "x"]
    assert _read(("A", "B", "A"), ("A", "B", "B")) == ["A", "B"]


def test_one_system_on_both_sides_or_none_is_refused_with_the_item() -> None:
    with pytest.raises(dis.InputError, match=r"item '1.*' has 'gpt' on both sides"):
        _read(("x", "gpt", "gpt"), ("gpt", "gpt", "gpt"))
    with pytest.raises(dis.InputError, match=r"item '1.*' has (a side without a name|'' on both)"):
        _read(("x", "gpt", "gpt"), ("gpt", "", "gpt"))
    with pytest.raises(dis.InputError, match=r"'opt' of .* names neither .* first of item '1"):
        _read(("opt", "gpt", "opt"), ("x", "gpt", "opt"))


def test_numbers_of_numbered_annotators_are_not_those_of_numbered_sides() -> None:
    for top in (1, 2):
        rows = [{"item": k, "annotator1": top, "annotator2": k % 2} for k in range(4)]
        with pytest.raises(dis.InputError, match="from left to right or not"):
            dis.read_votes(rows, format="preferences", annotators=["annotator1", "annotator2"])
    # 0 may be a tie where 2 is a side, and the other side where it is not.
    sides = [{"item": k, "response_1": "x", "response_2": "y", "annotator": "ann", "label": k % 2} for k in range(4)]
    with pytest.raises(dis.InputError, match="from left to right or not"):
        dis.read_votes(sides, format="preferences")


def test_sides_are_swapped_by_the_names_of_items_too() -> None:
    votes = _pairs(["left", "right", "tie", "left"])
    mask = np.array([True, False, False, True])
    assert swap_sides(votes, ["0", "3"]) == swap_sides(votes, [3, 0]) == swap_sides(votes, mask)
    with pytest.raises(dis.InputError, match="there is no item '9'"):
        swap_sides(votes, ["9"])
    with pytest.raises(dis.InputError, match="a mask of 2 for 4 items"):
        swap_sides(votes, [True, False])


def test_a_written_file_keeps_what_was_shown_without_the_file_beside_it(tmp_path: Path) -> None:
    votes = dis.read_votes(ROWS, format="preferences")
    dis.write_votes(votes, tmp_path / "pairs.csv")
    (tmp_path / "pairs.csv.json").unlink()
    again = dis.read_votes(tmp_path / "pairs.csv", format="preferences")
    assert votes.swapped is not None
    assert again.swapped is not None
    assert again.swapped.tolist() == votes.swapped.tolist() == [False, True, False, False]
    assert again.label.tolist() == votes.label.tolist()


def test_inspection_says_why_there_is_no_position_bias() -> None:
    assert any(
        "position bias: nobody judged" in note for note in dis.inspect(dis.read_votes(ROWS, format="preferences")).notes
    )


@pytest.mark.parametrize("words", [("A", "B", "tie"), ("model_a", "model_b", "tie")])
def test_a_question_may_have_several_pairs_in_a_table_with_a_column_for_each_annotator(words: tuple[str, ...]) -> None:
    rows = [
        {"question_id": 1, "model_a": "x", "model_b": "y", "annotator_1": words[0], "annotator_2": words[1]},
        {"question_id": 1, "model_a": "z", "model_b": "x", "annotator_1": words[2], "annotator_2": None},
        {"question_id": 2, "model_a": "y", "model_b": "x", "annotator_1": words[1], "annotator_2": words[1]},
    ]
    votes = dis.read_votes(rows, format="preferences")
    assert votes.items.tolist() == ["1 | x | y", "1 | z | x", "2 | y | x"]
    assert votes.counts.tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 2]]


def test_a_slider_is_no_scale_of_degrees_and_3_may_be_a_tie() -> None:
    with pytest.raises(dis.InputError, match="with bins="):
        _pairs([-100, -40, 0, 30, 100] * 10)
    with pytest.raises(dis.InputError) as refused:
        _pairs([1, 2, 3])
    assert {"classes": ["1", "3", "2"]} in refused.value.readings.values()


def test_sides_that_are_no_columns_are_named() -> None:
    with pytest.raises(dis.InputError, match=r"sides: there is no column 'm'.*model_a"):
        dis.read_votes(ROWS, format="preferences", sides=["m", "n"])
