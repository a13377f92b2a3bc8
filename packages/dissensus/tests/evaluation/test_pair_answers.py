"""Models' answers about pairs: read in the words in which people's are, whichever way round a pair was shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import dissensus as dis
from dissensus.evaluation.arguments import systems_in
from dissensus.evaluation.stand_in.answers import named_answers, read_model_answers, voted_answers
from dissensus.labels.schemes import frequency

if TYPE_CHECKING:
    from pathlib import Path

SIDES = [("alpha", "zed"), ("zed", "alpha"), ("alpha", "zed"), ("zed", "alpha"), ("zed", "alpha"), ("alpha", "zed")]
SAID = ["model_b", "model_b", "tie", "model_a", "tie", "model_a"]
"""What the model says of each pair, as it is shown."""

PAIRS = [{"question_id": f"q{k}", "model_a": a, "model_b": b} for k, (a, b) in enumerate(SIDES)]
PEOPLE = [{**row, "annotator": who, "winner": "model_a"} for row in PAIRS for who in ("ann", "ben", "cleo")]
AS_SHOWN = dis.read_votes(PEOPLE, format="preferences")
VOTES = dis.swap_sides(AS_SHOWN, ["q1", "q3", "q4"])
TRUTH = ["right", "left", "tie", "right", "tie", "left"]
"""The same where alpha is on the left, by hand."""


def _words(said: str) -> list[dict[str, Any]]:
    """The model's answers in other words: the places of the sides, or the names of the systems."""
    named = [row.get(answer, answer) for row, answer in zip(PAIRS, SAID, strict=True)]
    words = named if said == "names" else [answer.replace("model_a", "[[A]]") for answer in SAID]
    return [{"question_id": row["question_id"], "winner": word} for row, word in zip(PAIRS, words, strict=True)]


def _left_and_right(said: str) -> str:
    return {"model_a": "left", "model_b": "right"}.get(said, said)


FILES: dict[str, list[dict[str, Any]]] = {
    "places": _words("places"),
    "names": _words("names"),
    "columns of sides": [{**row, "winner": _left_and_right(said)} for row, said in zip(PAIRS, SAID, strict=True)],
    "left and right of the votes": [
        {"item": row["question_id"], "label": said} for row, said in zip(PAIRS, TRUTH, strict=True)
    ],
    "a column for each model": [
        {"question_id": row["question_id"], "gpt": said, "copy": said} for row, said in zip(PAIRS, SAID, strict=True)
    ],
    "probabilities": [
        {**row, **{side: float(side == _left_and_right(said)) for side in ("left", "tie", "right")}}
        for row, said in zip(PAIRS, SAID, strict=True)
    ],
}


@pytest.mark.parametrize("name", FILES)
def test_words_for_a_side_are_turned_with_the_pair(name: str, tmp_path: Path) -> None:
    path = tmp_path / "judge.csv"
    pl.DataFrame(FILES[name]).write_csv(path)
    for read in read_model_answers(path, VOTES, name="judge").values():
        assert [read.classes[k] for k in read.label] == TRUTH
        # Left and right may be meant as shown, and it is told that they are not taken so.
        assert any("first row" in note for note in read.notes) == (name == "left and right of the votes")
    if name == "a column for each model":
        return
    for model in (str(path), pl.read_csv(path)):
        found = systems_in(model, frequency(VOTES))[1]["model"]
        assert [found.classes[k] for k in found.probabilities[0].argmax(axis=1)] == TRUTH


def test_left_and_right_are_those_of_the_file_of_votes() -> None:
    read = named_answers(AS_SHOWN, {f"q{k}": _left_and_right(said) for k, said in enumerate(SAID)})
    assert [read.classes[k] for k in read.label] == list(map(_left_and_right, SAID))
    assert read.label.tolist() == named_answers(AS_SHOWN, {f"q{k}": said for k, said in enumerate(SAID)}).label.tolist()
    assert not read.notes


def test_they_are_those_of_a_judge_among_the_votes_and_of_an_official_file(tmp_path: Path) -> None:
    rows = [{**row, "annotator": "gpt", "winner": said} for row, said in zip(PAIRS, SAID, strict=True)]
    among = dis.read_votes([*PEOPLE, *rows], format="preferences", models=["gpt"])
    by_item = {f"q{k}": said for k, said in enumerate(SAID)}
    path = tmp_path / "x.llm_annotations.json"
    path.write_text(json.dumps({"gpt": by_item, "odd": by_item | {"q0": "banana"}, "good": by_item | {"q0": "good"}}))
    read = read_model_answers(path, VOTES, name="gpt", answers={"good": "right"})
    expected = voted_answers(dis.swap_sides(among, ["q1", "q3", "q4"]))["gpt"].label.tolist()
    assert read["gpt"].label.tolist() == named_answers(VOTES, by_item).label.tolist() == expected
    assert read["good"].label.tolist() == expected
    assert any("1 of 6 answers name neither a side nor a tie" in note for note in read["odd"].notes)


def test_a_pair_that_was_shown_both_ways_needs_a_name() -> None:
    both = dis.read_votes(
        [*PEOPLE, {**PEOPLE[0], "model_a": "zed", "model_b": "alpha", "annotator": "dan"}], format="preferences"
    )
    with pytest.raises(dis.InputError, match="'q0' was shown both ways round, and 'model_a' does not say"):
        named_answers(both, {"q0": "model_a"})
    assert named_answers(both, {"q0": "zed", "q1": "tie"}).label.tolist()[:2] == [2, 1]


def test_a_file_of_another_pair_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "judge.csv"
    pl.DataFrame([{**row, "model_b": "opt", "winner": "model_a"} for row in PAIRS]).write_csv(path)
    with pytest.raises(dis.InputError, match="item 'q0' is of alpha and opt, and votes on it are of alpha and zed"):
        read_model_answers(path, VOTES, name="judge")
