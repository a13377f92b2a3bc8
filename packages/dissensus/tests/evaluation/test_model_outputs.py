"""Files as the libraries write them, each with probabilities that are known; forms are from their documentation."""

from __future__ import annotations

import csv
import json
import math
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from dissensus.errors import InputError
from dissensus.evaluation.model_outputs import NO_CLASS, read_answers
from dissensus.evaluation.predictions import read_predictions

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.evaluation.probabilities import Predictions

CLASSES = ("Cat", "Dog", "Owl")
TABLE = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]


def write(path: Path, records: Any) -> Path:
    lines = path.suffix == ".jsonl"
    path.write_text("\n".join(map(json.dumps, records)) if lines else json.dumps(records), encoding="utf-8")
    return path


def rows(path: Path, values: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(values[0]))
        writer.writeheader()
        writer.writerows(values)
    return path


def holds(found: Predictions, table: Any, items: list[Any], *, outside: bool = False) -> None:
    assert found.items.tolist() == items
    assert found.classes == ((*CLASSES, NO_CLASS) if outside else CLASSES)
    np.testing.assert_allclose(found.probabilities[0], table, atol=1e-9)


def scores(row: list[float]) -> list[dict[str, Any]]:
    return [{"label": name, "score": share} for name, share in zip(CLASSES, row, strict=True)]


def chat(row: list[float], tokens: tuple[str, ...] = CLASSES) -> dict[str, Any]:
    top = [{"token": token, "logprob": math.log(share)} for token, share in zip(tokens, row, strict=True)]
    return {
        "choices": [{"message": {"content": tokens[0]}, "logprobs": {"content": [{**top[0], "top_logprobs": top}]}}]
    }


def test_an_array_alone_is_rows_of_items_counted_from_0(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", np.array(TABLE))
    holds(read_predictions(tmp_path / "p.npy", CLASSES, order=CLASSES), TABLE, [0, 1])


def test_lists_of_numbers_are_such_an_array(tmp_path: Path) -> None:
    path = write(tmp_path / "p.json", TABLE)
    holds(read_predictions(path, CLASSES, order=CLASSES), TABLE, [0, 1])
    assert repr(read_predictions(path, CLASSES, order=CLASSES)) == "Predictions(2 items, 3 classes, from probabilities)"
    two = read_predictions(write(tmp_path / "two.json", [TABLE, TABLE[::-1]]), CLASSES, order=CLASSES)
    assert repr(two) == "Predictions(2 items, 3 classes, 2 seeds, from probabilities)"
    for held, sentence in (
        (TABLE, "have no class names, so their order is not known"),
        ([[0.5, 0.5], [1.0]], "its lists are not of equal length"),
        ([["a", "b", "c"]], "give numbers, items by classes"),
        ([1, 2], "expected a list of objects"),
    ):
        with pytest.raises(InputError, match=sentence):
            read_predictions(
                write(tmp_path / "wrong.json", held), CLASSES, order=CLASSES if held is not TABLE else None
            )


@pytest.mark.parametrize("ending", [".json", ".jsonl"])
def test_scores_of_a_hugging_face_pipeline(tmp_path: Path, ending: str) -> None:
    named = [{"item": name, "output": scores(row)} for name, row in zip("ab", TABLE, strict=True)]
    holds(read_predictions(write(tmp_path / f"n{ending}", named), CLASSES), TABLE, ["a", "b"])
    bare = [scores(row)[::-1] for row in TABLE]
    found = read_predictions(write(tmp_path / f"p{ending}", bare), CLASSES)
    holds(found, TABLE, [0, 1])
    assert any("have no item names" in note for note in found.notes)


def test_the_best_label_alone_leaves_the_rest_outside(tmp_path: Path) -> None:
    best = [{"item": "a", "label": "Cat", "score": 0.7}, {"item": "b", "label": "Owl", "score": 0.8}]
    found = read_predictions(write(tmp_path / "p.json", best), CLASSES)
    holds(found, [[0.7, 0, 0, 0.3], [0, 0, 0.8, 0.2]], ["a", "b"], outside=True)
    assert any(
        "25.0% of the probability is outside the classes (most at item a: 30.0%)" in note for note in found.notes
    )


def test_one_column_of_hard_labels(tmp_path: Path) -> None:
    path = rows(tmp_path / "p.csv", [{"item": "a", "label": "dog"}, {"item": "b", "label": " Owl."}])
    holds(read_predictions(path, CLASSES), [[0, 1, 0], [0, 0, 1]], ["a", "b"])


def test_sampled_answers_are_counted_and_those_that_name_no_class_are_told(tmp_path: Path) -> None:
    said = [("a", "Cat"), ("a", "cat"), ("a", "Dog"), ("a", "I cannot say"), ("b", "Owl")]
    path = rows(tmp_path / "p.csv", [{"item": item, "answer": answer} for item, answer in said])
    found = read_predictions(path, CLASSES)
    holds(found, [[0.5, 0.25, 0, 0.25], [0, 0, 1, 0]], ["a", "b"], outside=True)
    assert any(
        "1 of 5 answers (20.0%) name no class, first 'I cannot say' about item a" in note for note in found.notes
    )


@pytest.mark.parametrize("wrapped", ["alone", "batch", "completions", "vllm"])
def test_top_log_probabilities(tmp_path: Path, wrapped: str) -> None:
    records = []
    for name, row in zip("ab", TABLE, strict=True):
        logs = {token: math.log(share) for token, share in zip(CLASSES, row, strict=True)}
        offline = {str(k): {"logprob": each, "decoded_token": token} for k, (token, each) in enumerate(logs.items())}
        records.append(
            {
                "alone": {"item": name, **chat(row)},
                "batch": {
                    "custom_id": name,
                    "response": {"status_code": 200, "body": {"id": "chatcmpl-1", **chat(row)}},
                },
                "completions": {"item": name, "choices": [{"text": "Cat", "logprobs": {"top_logprobs": [logs]}}]},
                "vllm": {"request_id": name, "outputs": [{"text": "Cat", "logprobs": [offline]}]},
            }[wrapped]
        )
    holds(read_predictions(write(tmp_path / "p.jsonl", records), CLASSES), TABLE, ["a", "b"])


def test_tokens_are_classes_whatever_their_case_and_white_space_and_the_rest_is_outside(tmp_path: Path) -> None:
    records = [{"item": "a", **chat([0.5, 0.3, 0.1], (" cat", "Cat", "The"))}]
    found = read_predictions(write(tmp_path / "p.jsonl", records), CLASSES)
    holds(found, [[0.8, 0, 0, 0.2]], ["a"], outside=True)


def test_harness_samples_hold_numbers_as_text(tmp_path: Path) -> None:
    records = [
        {
            "doc_id": n,
            "doc": {"uid": name},
            "arguments": {f"gen_args_{k}": {"arg_0": "Which?", "arg_1": f" {each}"} for k, each in enumerate(CLASSES)},
            "resps": [[[str(math.log(share) - 3), "False"]] for share in row],
            "filtered_resps": [[str(math.log(share) - 3), "False"] for share in row],
        }
        for n, (name, row) in enumerate(zip("ab", TABLE, strict=True))
    ]
    path = write(tmp_path / "samples_pets.jsonl", records)
    holds(read_predictions(path, CLASSES), TABLE, [0, 1])
    holds(read_predictions(path, CLASSES, item="uid"), TABLE, ["a", "b"])


def test_harness_samples_in_words(tmp_path: Path) -> None:
    one = {"doc_id": 0, "arguments": [["Which?", {}]], "resps": [["Dog", "dog", "Owl", "?"]]}
    path = write(tmp_path / "samples_pets.jsonl", [{**one, "filtered_resps": ["Dog", "dog", "Owl", "?"]}])
    holds(read_predictions(path, CLASSES), [[0, 0.5, 0.25, 0.25]], [0], outside=True)


@pytest.mark.parametrize("ending", [".json", ".eval"])
def test_inspect_logs(tmp_path: Path, ending: str) -> None:
    def sample(name: str, epoch: int, said: str, answer: str | None) -> dict[str, Any]:
        output = {"choices": [{"message": {"role": "assistant", "content": [{"type": "text", "text": said}]}}]}
        return {"id": name, "epoch": epoch, "output": output, "scores": {"choice": {"value": "C", "answer": answer}}}

    samples = [sample("a", 1, "ANSWER: Cat", "Cat"), sample("a", 2, "ANSWER: Dog", "Dog"), sample("b", 1, "Owl", None)]
    path = tmp_path / f"log{ending}"
    if ending == ".json":
        write(path, {"version": 2, "eval": {"task": "pets"}, "samples": samples})
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("header.json", "{}")
            for each in samples:
                archive.writestr(f"samples/{each['id']}_epoch_{each['epoch']}.json", json.dumps(each))
    holds(read_predictions(path, CLASSES), [[0.5, 0.5, 0], [0, 0, 1]], ["a", "b"])


def test_distributions_in_words(tmp_path: Path) -> None:
    records = [
        {"item": "a", "output": {"Cat": "70%", "Dog": "20 %", "Owl": "10%"}},
        {"item": "b", "output": 'I would say {"cat": 10, "dog": 10, "owl": 80}.'},
        {"item": "c", "output": '{"Cat": 0.5, "Dog": 0.25}'},
        {"item": "d", "output": '{"answer": "Dog"}'},
        {"item": "e", "output": None},
    ]
    found = read_predictions(write(tmp_path / "p.jsonl", records), CLASSES)
    expected = [[0.7, 0.2, 0.1, 0], [0.1, 0.1, 0.8, 0], [0.5, 0.25, 0, 0.25], [0, 1, 0, 0], [0, 0, 0, 1]]
    holds(found, expected, list("abcde"), outside=True)


def test_an_object_with_a_key_for_each_item(tmp_path: Path) -> None:
    held = {"a": dict(zip(CLASSES, TABLE[0], strict=True)), "b": dict(zip(CLASSES, TABLE[1], strict=True))}
    holds(read_predictions(write(tmp_path / "p.json", held), CLASSES), TABLE, ["a", "b"])
    holds(
        read_predictions(write(tmp_path / "q.json", {"a": "Cat", "b": "Owl"}), CLASSES), np.eye(3)[[0, 2]], ["a", "b"]
    )


def test_a_small_table_says_what_answers_mean(tmp_path: Path) -> None:
    meaning = rows(tmp_path / "answers.csv", [{"answer": a, "class": c} for a, c in zip("ABC", CLASSES, strict=True)])
    path = rows(tmp_path / "p.csv", [{"item": "a", "answer": "B"}, {"item": "b", "answer": "(c)"}])
    holds(read_predictions(path, CLASSES, answers=read_answers(meaning)), [[0, 1, 0], [0, 0, 1]], ["a", "b"])
    with pytest.raises(InputError, match="the answer 'B' is said to mean 'Fox', and people voted for Cat, Dog, Owl"):
        read_predictions(path, CLASSES, answers={"B": "Fox"})


def test_answers_that_two_classes_share_but_for_case_are_told_apart_as_written(tmp_path: Path) -> None:
    path = rows(
        tmp_path / "p.csv", [{"item": "a", "answer": "A"}, {"item": "b", "answer": "a"}, {"item": "c", "answer": "a."}]
    )
    found = read_predictions(path, ("a", "A"))
    np.testing.assert_allclose(found.probabilities[0], [[0, 1, 0], [1, 0, 0], [0, 0, 1]])


def test_other_answers_than_those_of_the_table_are_still_the_classes_they_name(tmp_path: Path) -> None:
    path = rows(
        tmp_path / "p.csv",
        [{"item": n, "answer": a} for n, a in zip("abcd", ("cat", "kitty", "owl", "?"), strict=True)],
    )
    found = read_predictions(path, CLASSES, answers={"Kitty": "Cat", "owl": "Dog"})
    holds(found, np.eye(4)[[0, 0, 1, 3]], list("abcd"), outside=True)


@pytest.mark.parametrize("broken", [None, "n/a", math.nan, math.inf, {}])
@pytest.mark.parametrize("place", [0, 1])
def test_a_log_probability_that_is_no_number_makes_its_answer_unread_and_no_other(
    tmp_path: Path, broken: Any, place: int
) -> None:
    records = [{"item": name, **chat(row)} for name, row in zip("ab", TABLE, strict=True)]
    records[place]["choices"][0]["logprobs"]["content"][0]["top_logprobs"][1]["logprob"] = broken
    expected = np.hstack([TABLE, [[0], [0]]])
    expected[place] = [0, 0, 0, 1]
    found = read_predictions(write(tmp_path / "p.jsonl", records), CLASSES)
    holds(found, expected, ["a", "b"], outside=True)
    assert any("1 of 2 answers (50.0%) name no class, first one that cannot be read" in note for note in found.notes)
    with pytest.raises(InputError, match=r"1 of 1 answers name none of the classes .*; first nothing that can be read"):
        read_predictions(write(tmp_path / "q.jsonl", [records[place]]), CLASSES)


def test_a_completion_without_log_probabilities_does_not_hide_those_of_the_others(tmp_path: Path) -> None:
    refused = {"item": "r", "choices": [{"message": {"content": "Cat"}, "logprobs": None}]}
    records = [refused, *({"item": name, **chat(row)} for name, row in zip("ab", TABLE, strict=True))]
    found = read_predictions(write(tmp_path / "p.jsonl", records), CLASSES)
    holds(found, [[0, 0, 0, 1], *([*row, 0] for row in TABLE)], ["r", "a", "b"], outside=True)


@pytest.mark.parametrize(
    "log_likelihoods", [["nan", "-1", "-2"], ["-inf", "-inf", "-inf"], ["inf", "-1", "-2"], ["-1"]]
)
def test_harness_samples_without_usable_numbers_are_unread(tmp_path: Path, log_likelihoods: list[str]) -> None:
    one = {"doc_id": 0, "arguments": [["Which?", f" {name}"] for name in CLASSES]}
    path = write(tmp_path / "samples_pets.jsonl", [{**one, "resps": [[[each, "False"]] for each in log_likelihoods]}])
    with pytest.raises(InputError, match=r"1 of 1 answers name none of the classes .*; first nothing that can be read"):
        read_predictions(path, CLASSES)


def test_scores_that_are_no_probabilities(tmp_path: Path) -> None:
    broken = [{"item": "a", "output": scores([math.nan, 0.2, 0.1])}, {"item": "b", "output": scores(TABLE[1])}]
    found = read_predictions(write(tmp_path / "nan.jsonl", broken), CLASSES)
    holds(found, [[0, 0, 0, 1], [*TABLE[1], 0]], ["a", "b"], outside=True)
    logits = [{"item": "a", "output": scores([2.0, -1.5, 0.5])}]
    with pytest.raises(
        InputError, match=r"item a has the score -1\.5, which is no probability; give scores after softmax"
    ):
        read_predictions(write(tmp_path / "logits.jsonl", logits), CLASSES)


SAID = ["Cat", "dog", " Dog.", "hm"]
SAMPLED: dict[str, dict[str, Any]] = {
    "chat": {"item": "a", "choices": [{"message": {"content": each}} for each in SAID]},
    "vllm": {"request_id": "a", "outputs": [{"text": each} for each in SAID]},
    "list": {"item": "a", "answers": SAID},
    "inspect": {"id": "a", "epoch": 1, "output": {"choices": [{"message": {"content": each}} for each in SAID]}},
}


@pytest.mark.parametrize("written", [*SAMPLED, "harness", "names"])
def test_every_answer_that_was_sampled_for_an_item_counts(tmp_path: Path, written: str) -> None:
    if written == "names":
        path = write(tmp_path / "p.json", {"a": SAID})
    elif written == "harness":
        one = {"doc_id": 0, "doc": {"uid": "a"}, "arguments": [["Which?", {"until": []}]], "resps": [SAID]}
        path = write(tmp_path / "p.jsonl", [{**one, "filtered_resps": [SAID]}])
    else:
        path = write(tmp_path / "p.jsonl", [SAMPLED[written]])
    found = read_predictions(path, CLASSES, item="uid" if written == "harness" else None)
    holds(found, [[0.25, 0.5, 0, 0.25]], ["a"], outside=True)
    assert any("25.0% of the probability is outside the classes" in note for note in found.notes)


def test_stated_shares_above_1_are_divided_by_their_sum_and_told(tmp_path: Path) -> None:
    records = [
        {"item": "a", "output": {"Cat": 0.9, "Dog": 0.8, "Owl": 0.3}},
        {"item": "b", "output": {"Cat": 60, "Dog": 50, "Owl": "10%"}},
        {"item": "c", "output": {"Cat": 1, "Dog": 98, "Owl": 1}},
        {"item": "d", "output": '{"Cat": 0.5, "Dog": 0.5, "why": "both"}'},
        {"item": "e", "output": {"Cat": "<1%", "Dog": "99%"}},
    ]
    found = read_predictions(write(tmp_path / "p.jsonl", records), CLASSES)
    expected = [[0.45, 0.4, 0.15, 0], [0.5, 5 / 12, 1 / 12, 0], [0.01, 0.98, 0.01, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 1]]
    holds(found, expected, list("abcde"), outside=True)
    assert any("2 of 5 distributions in words sum to more than 1, first that about item a" in n for n in found.notes)


def test_a_file_from_which_nearly_nothing_was_read_is_refused_with_examples_and_the_remedy(tmp_path: Path) -> None:
    said = ["A)", "option two", "I would rather not say which of these animals I see here, " * 3, "Cat", "Owl"]
    path = rows(tmp_path / "p.csv", [{"item": n, "answer": answer} for n, answer in enumerate(said)])
    with pytest.raises(InputError) as found:
        read_predictions(path, CLASSES)
    message = str(found.value)
    assert message.startswith(
        f"{path}: 3 of 5 answers name none of the classes Cat, Dog, Owl; first 'A)'; 'option two'; "
    )
    assert "I would rather not say" in message
    assert "answers=, a table of answer and class" in message
    assert len(message) < 500
    read = read_predictions(path, CLASSES, answers={"A": "Cat"})
    assert any("2 of 5 answers (40.0%) name no class" in note for note in read.notes)


@pytest.mark.parametrize(
    "told",
    [
        "{'A': '10%', 'B': '90%'}",
        '{"A": 0.1, "B": 0.9}',
        "['10%', '20%', '70%'",
        "{'Cat': '0,1', 'Dog': '0,2', 'Owl': '0,7'}",
        "{'Cat': 'about 10%', 'Dog': '20%', 'Owl': '70%'}",
        "{'Cat': '10%', 'Dog': 0.2, 'Owl': '70%'}",
        "{'Cat': -0.1, 'Dog': 0.4, 'Owl': 0.7}",
        "{Cat: 0.1, Dog: 0.2}",
        "",
    ],
)
def test_distributions_that_are_not_clear_are_never_read_in_part(tmp_path: Path, told: str) -> None:
    some = read_predictions(
        write(tmp_path / "p.jsonl", [{"item": "a", "output": told}, {"item": "b", "output": "Cat"}]), CLASSES
    )
    holds(some, [[0, 0, 0, 1], [1, 0, 0, 0]], ["a", "b"], outside=True)
    with pytest.raises(InputError, match="2 of 2 answers name none of the classes Cat, Dog, Owl"):
        read_predictions(write(tmp_path / "q.jsonl", [{"item": n, "output": told} for n in "ab"]), CLASSES)


def test_distributions_as_python_prints_them(tmp_path: Path) -> None:
    said = [
        "{'Cat': '70%', 'Dog': '20 %', 'Owl': '10%'}",
        "Answer: {'cat': 0.1, 'dog': '0.1', 'owl': 0.8}.",
        "[thinking it over, {maybe}] {'Cat': 70, 'Dog': 20, 'Owl': 10, 'why': 'it's fluffy'}".replace(
            "it's", "fur, ears"
        ),
        "{'answer': 'Owl', 'confidence': 0.4}",
        "{'id': 'q17', 'Cat': '100%', 'Dog': 0}",
    ]
    expected = [*TABLE, TABLE[0], [0, 0, 1], [1, 0, 0]]
    path = rows(tmp_path / "p.csv", [{"item": n, "response": each} for n, each in enumerate(said)])
    holds(read_predictions(path, CLASSES), expected, [0, 1, 2, 3, 4])
    sampled = {"samples": said[:2]}
    found = read_predictions(write(tmp_path / "p.jsonl", [{"item": "a", **sampled}]), CLASSES)
    holds(found, [np.mean(TABLE, axis=0)], ["a"])


def test_columns_that_are_neither_classes_nor_answers_are_told_with_both_ways_out(tmp_path: Path) -> None:
    said = [{"item": "a", "pred": "Cat"}]
    holds(read_predictions(rows(tmp_path / "p.csv", said), CLASSES), [[1, 0, 0]], ["a"])
    other = rows(tmp_path / "q.csv", [{"item": "a", "gpt": "Cat"}])
    with pytest.raises(
        InputError, match=r"one column for each class of the votes, or one called 'label' with an answer"
    ):
        read_predictions(other, CLASSES)


def test_ratings_may_come_as_decimals_and_with_white_space(tmp_path: Path) -> None:
    for classes, said in ((("1", "2", "10"), ["2.0", "10.00", " 1"]), (("-1", "0", "1"), ["0.0", "1.0", "-1 "])):
        path = rows(tmp_path / "p.csv", [{"item": n, "label": each} for n, each in zip("abc", said, strict=True)])
        found = read_predictions(path, classes)
        if classes[0] == "1":
            np.testing.assert_array_equal(found.probabilities[0], np.eye(3)[[1, 2, 0]])
        else:
            # 1 and -1 are one answer but for the sign, which is what tells them apart.
            assert found.classes == (*classes, NO_CLASS)
            np.testing.assert_array_equal(found.probabilities[0], np.eye(4)[[1, 3, 0]])
    frame = pl.DataFrame({"item": ["a", "b"], "label": [2.0, 10.0]})
    frame.write_parquet(tmp_path / "p.parquet")
    np.testing.assert_array_equal(
        read_predictions(tmp_path / "p.parquet", ("1", "2", "10")).probabilities[0], np.eye(3)[[1, 2]]
    )


def test_a_byte_order_mark_is_no_part_of_a_record(tmp_path: Path) -> None:
    for name, text in (
        ("p.jsonl", '{"item": "a", "answer": "Cat"}\r\n'),
        ("p.json", '[{"item": "a", "answer": "Cat"}]'),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8-sig", newline="")
        holds(read_predictions(tmp_path / name, CLASSES), [[1, 0, 0]], ["a"])


def test_a_column_of_labels_alone_is_numbered(tmp_path: Path) -> None:
    path = rows(tmp_path / "p.csv", [{"label": "Cat"}, {"label": '{"Dog": "40%", "Owl": "60%"}'}])
    holds(read_predictions(path, CLASSES), [[1, 0, 0], [0, 0.4, 0.6]], [0, 1])


def test_a_pipeline_that_was_given_one_text_at_a_time(tmp_path: Path) -> None:
    holds(read_predictions(write(tmp_path / "p.json", [[scores(row)] for row in TABLE]), CLASSES), TABLE, [0, 1])


def test_records_with_and_without_items_are_refused(tmp_path: Path) -> None:
    records = [{"item": "a", "output": "Cat"}, {"output": "Dog"}]
    with pytest.raises(InputError, match="record 2 has no item, and others have one"):
        read_predictions(write(tmp_path / "p.jsonl", records), CLASSES)


def test_probability_above_1_is_refused(tmp_path: Path) -> None:
    records = [{"item": "a", "output": [{"label": "Cat", "score": 0.9}, {"label": "Dog", "score": 0.9}]}]
    with pytest.raises(InputError, match=r"item a have probability 1\.8 in all"):
        read_predictions(write(tmp_path / "p.json", records), CLASSES)


def test_a_table_of_numbers_stays_one(tmp_path: Path) -> None:
    records = [
        {"item": n, "label": "Cat", **dict(zip(CLASSES, row, strict=True))} for n, row in zip("ab", TABLE, strict=True)
    ]
    holds(read_predictions(write(tmp_path / "p.jsonl", records), CLASSES), TABLE, ["a", "b"])
    with pytest.raises(InputError, match="it holds numbers for each class, and no answers"):
        read_predictions(tmp_path / "p.jsonl", CLASSES, answers={"A": "Cat"})


CLEAR = {
    "a fenced object": '```json\n{"Cat": 0.7, "Dog": 0.2, "Owl": 0.1}\n```',
    "a thought before it": '<think>{"Cat": 0, "Dog": 1, "Owl": 0}? No.</think>{"Cat": 0.7, "Dog": 0.2, "Owl": 0.1}',
    "a thought whose beginning is gone": "The ears say Dog.</think>\n{'Cat': '70%', 'Dog': '20%', 'Owl': '10%'}",
    "another way to end a thought": 'Dog?<|channel|>final<|message|>{"Cat": 70, "Dog": 20, "Owl": 10}',
    "a draft and the last word": 'First {"Cat": 0.1, "Dog": 0.9}. Now: {"Cat": 0.7, "Dog": 0.2, "Owl": 0.1}.',
    "an object in an object": '{"why": "a {big} one", "probabilities": {"Cat": 0.7, "Dog": 0.2, "Owl": 0.1}}',
    "a list of answers": '[{"label": "Cat", "probability": 70}, {"label": "Dog", "probability": 20}, '
    '{"label": "Owl", "probability": 10}]',
}
ANSWERED = (
    "<think>Dog? Cat?</think>\n\nOwl",
    "It looks at me. Answer: Dog.\nNo, wait.\n**Final answer:** Owl.",
    "The answer is Owl",
    "So it must be \\boxed{Owl}",
    "I prefer the last. [[Owl]]",
    "<answer>\nOwl\n</answer>",
    '{"reasoning": "not a {dog}", "final_answer": "Owl", "confidence": 0.9}',
    '{"winner": "owl"}',
)
UNREAD = (
    "<think>An Owl, I suppose",
    "I'm sorry, but I can't help with that.",
    "I cannot tell a Cat from an Owl here.",
    "Cat or Owl",
    "Cat, Owl",
    "Answer: Cat or Owl",
    '[{"label": "Cat", "probability": 0.7}, {"label": "Dog"}]',
    '[{"label": "Cat", "probability": 0.7}, {"label": "Cat", "probability": 0.2}]',
)


@pytest.mark.parametrize("said", CLEAR)
def test_a_distribution_is_read_however_it_is_wrapped(tmp_path: Path, said: str) -> None:
    records = [{"item": "a", "output": CLEAR[said]}, {"item": "b", "choices": [{"message": {"content": CLEAR[said]}}]}]
    holds(read_predictions(write(tmp_path / "p.jsonl", records), CLASSES), [TABLE[0]] * 2, ["a", "b"])


def test_an_answer_is_what_a_text_came_to_and_what_names_none_stays_unread(tmp_path: Path) -> None:
    every = (*ANSWERED, *UNREAD[: len(ANSWERED)])
    records = [{"item": str(n), "response": text} for n, text in enumerate(every)]
    table = [[0, 0, 1, 0]] * len(ANSWERED) + [[0, 0, 0, 1]] * len(UNREAD)
    found = read_predictions(write(tmp_path / "p.jsonl", records), CLASSES)
    holds(found, table, [str(n) for n in range(len(every))], outside=True)
    with pytest.raises(InputError, match=r"8 of 8 answers name none of the classes .*first '<think>An Owl"):
        read_predictions(write(tmp_path / "q.jsonl", records[len(ANSWERED) :]), CLASSES)


def test_several_choices_share_what_one_would_have_and_a_rating_may_be_a_number(tmp_path: Path) -> None:
    several = [{"item": "a", "output": '{"answer": ["Cat", "Owl"]}'}, {"item": "b", "output": "{'choice': ['Dog']}"}]
    holds(read_predictions(write(tmp_path / "p.jsonl", several), CLASSES), [[0.5, 0, 0.5], [0, 1, 0]], ["a", "b"])
    rated = ['{"rating": 2, "why": "short"}', '```{"answer": "3", "confidence": 0.8}```', "Rating: 1"]
    path = write(tmp_path / "q.jsonl", [{"item": n, "output": text} for n, text in enumerate(rated)])
    assert read_predictions(path, ("1", "2", "3")).probabilities[0].argmax(axis=1).tolist() == [1, 2, 0]
    # A class may be called like a key.
    named = write(tmp_path / "r.jsonl", [{"item": "a", "output": '{"text": 20, "label": 30, "image": 50}'}])
    assert read_predictions(named, ("text", "label", "image")).probabilities[0, 0].tolist() == [0.2, 0.3, 0.5]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_read_outputs_keeps_the_seeds_of_hard_labels(kind: str, tmp_path: Path) -> None:
    """Seeds are runs and no samples: accuracy is the mean over seeds, not that of their vote."""
    rng = np.random.default_rng(0)
    said = rng.integers(2, size=(3, 40))
    rows = [
        {"item": f"i{i}", "seed": seed, "label": ["no", "yes"][said[k, i]]}
        for k, seed in enumerate((7, 8, 9))
        for i in range(40)
    ]
    table, path = pl.DataFrame(rows).sample(fraction=1, shuffle=True, seed=0), tmp_path / f"said.{kind}"
    table.write_csv(path) if kind == "csv" else table.write_parquet(path)
    found = read_predictions(path, ("no", "yes"))
    assert sorted(map(int, found.seeds or ())) == [7, 8, 9]
    order = [found.items.tolist().index(f"i{i}") for i in range(40)]
    for k, seed in enumerate((7, 8, 9)):
        run = found.probabilities[[int(each) for each in found.seeds or ()].index(seed)]
        np.testing.assert_array_equal(run[order], np.eye(2)[said[k]])
    table.filter(~((pl.col("seed") == 8) & (pl.col("item") == "i3"))).write_csv(tmp_path / "less.csv")
    with pytest.raises(InputError, match="the same items for each seed"):
        read_predictions(tmp_path / "less.csv", ("no", "yes"))
