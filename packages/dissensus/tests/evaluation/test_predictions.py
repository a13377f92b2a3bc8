from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from dissensus.errors import InputError
from dissensus.evaluation.predictions import align_predictions, read_column, read_predictions
from dissensus.evaluation.probabilities import Predictions
from dissensus.labels.schemes import frequency
from dissensus.labels.writing import write_labels
from dissensus.table_file import write_table
from dissensus.votes.table import votes_from_counts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dissensus.labels.distribution import LabelDistribution

CLASSES = ("cat", "dog", "owl")
TABLE = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.25, 0.5, 0.25]])
LOGITS = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, -4.0], [-1.0, -2.0, -3.0]])
NAMES = ["a", "b", "c"]


def people(items: list[Any] | None = None) -> LabelDistribution:
    names = np.array(items or NAMES)
    names = names if names.dtype.kind == "i" else names.astype(np.dtypes.StringDType())
    return frequency(votes_from_counts(np.ones((len(names), 3), dtype=int), items=names, classes=CLASSES))


def frame(values: Any = TABLE, items: list[Any] | None = None, **more: Any) -> pl.DataFrame:
    return pl.DataFrame({"item": items or NAMES, **{name: values[:, k] for k, name in enumerate(CLASSES)}, **more})


def write(table: pl.DataFrame, path: Path) -> Path:
    write_table(table, path)
    return path


def refused(path: Path, sentence: str, **options: Any) -> None:
    with pytest.raises(InputError, match=sentence) as found:
        read_predictions(path, CLASSES, **options)
    said = str(found.value)
    assert said.startswith(str(path))
    assert "\n" not in said


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".jsonl"])
@pytest.mark.parametrize("order", [["item", "cat", "dog", "owl"], ["owl", "item", "cat", "dog"]])
def test_columns_are_matched_to_classes_in_any_order(tmp_path: Path, ending: str, order: list[str]) -> None:
    found = read_predictions(write(frame().select(order), tmp_path / f"p{ending}"), CLASSES)
    np.testing.assert_allclose(found.probabilities, TABLE[None])
    assert found.items.tolist() == NAMES
    assert found.given == "probabilities"
    assert "taken as probabilities, as all rows lie in [0, 1] and sum to 1" in found.notes[-1]
    assert "items are in the column 'item'" in found.notes[0]


def test_logits_are_known_by_their_look_and_that_is_said(tmp_path: Path) -> None:
    found = read_predictions(write(frame(LOGITS), tmp_path / "p.csv"), CLASSES)
    np.testing.assert_allclose(found.probabilities[0], softmax(LOGITS, axis=1))
    assert found.given == "logits"
    assert "taken as logits, as there are negative numbers" in found.notes[-1]


def test_what_the_caller_says_is_not_questioned(tmp_path: Path) -> None:
    path = write(frame(TABLE), tmp_path / "p.csv")
    found = read_predictions(path, CLASSES, given="logits")
    np.testing.assert_allclose(found.probabilities[0], softmax(TABLE, axis=1))
    assert not any("taken as" in note for note in found.notes)
    refused(path, "not as 'odds'", given="odds")


@pytest.mark.parametrize(
    "values",
    [100 * TABLE * [[1.0], [1.0], [0.9]], np.abs(LOGITS), TABLE * [[1.0], [1.0], [0.9]]],
    ids=["percentages of which one row sums to 90", "logits without a sign", "one row that sums to 0.9"],
)
def test_numbers_that_could_be_anything_are_refused_with_the_worst_row(tmp_path: Path, values: Any) -> None:
    refused(write(frame(values), tmp_path / "p.csv"), "a sum other than 1, worst item")


WRITTEN: dict[str, Callable[[float], Any]] = {
    "percent": lambda share: f"{100 * share:.4g}%",
    "percent with white space": lambda share: f" {100 * share:.4g} % ",
    "numbers that sum to 100": lambda share: 100 * share,
    "numbers that sum to 100, as text": lambda share: f"{100 * share:.4g}",
    "numbers as text": lambda share: f"{share:.4g}",
}
"""By name, the ways in which people write a share."""

LAYOUTS: dict[str, Callable[[list[Any]], dict[str, Any]]] = {
    "columns": lambda row: dict(zip(CLASSES, row, strict=True)),
    "an object": lambda row: {"probs": dict(zip(CLASSES, row, strict=True))},
    "an object as Python prints it": lambda row: {"probs": str(dict(zip(CLASSES, row, strict=True)))},
    "an object as JSON text": lambda row: {
        "probs": json.dumps(dict(zip(reversed(CLASSES), reversed(row), strict=True)))
    },
    "an object inside words": lambda row: {"scores": f"Answer: {dict(zip(CLASSES, row, strict=True))}."},
    "an answer": lambda row: {"answer": f"I think {dict(zip(CLASSES, row, strict=True))}"},
    "a list": lambda row: {"probs": row},
    "a list as Python prints it": lambda row: {"probs": str(row)},
}
"""By name, where the shares of a row may stand."""


@pytest.mark.parametrize(
    ("ending", "layout"),
    [
        (ending, layout)
        for ending in ("csv", "json", "jsonl")
        for layout in LAYOUTS
        if (ending, layout) not in (("csv", "an object"), ("csv", "a list"))
    ],
)
@pytest.mark.parametrize("written", WRITTEN)
def test_shares_are_read_however_they_are_written(tmp_path: Path, written: str, layout: str, ending: str) -> None:
    shares = [[WRITTEN[written](each) for each in row] for row in TABLE.tolist()]
    records = [{"item": name, **LAYOUTS[layout](row)} for name, row in zip(NAMES, shares, strict=True)]
    path = tmp_path / f"p.{ending}"
    if ending == "csv":
        pl.DataFrame(records).write_csv(path)
    else:
        lines = "\n".join(map(json.dumps, records))
        path.write_text(lines if ending == "jsonl" else json.dumps(records), encoding="utf-8")
    found = read_predictions(path, CLASSES, order=CLASSES)
    np.testing.assert_allclose(found.probabilities[0], TABLE, atol=1e-9)
    assert found.items.tolist() == NAMES
    assert found.given == "probabilities"


def test_a_list_as_text_may_stand_in_a_column_of_answers(tmp_path: Path) -> None:
    path = write(pl.DataFrame({"item": NAMES, "prediction": [str(row) for row in TABLE.tolist()]}), tmp_path / "p.csv")
    np.testing.assert_allclose(read_predictions(path, CLASSES, order=CLASSES).probabilities[0], TABLE)


@pytest.mark.parametrize("written", WRITTEN)
def test_lists_of_lists_are_read_however_they_are_written(tmp_path: Path, written: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps([[WRITTEN[written](each) for each in row] for row in TABLE.tolist()]), encoding="utf-8")
    np.testing.assert_allclose(read_predictions(path, CLASSES, order=CLASSES).probabilities[0], TABLE, atol=1e-9)


def test_rows_that_sum_to_100_with_a_class_that_nobody_voted_for_are_percentages_too(tmp_path: Path) -> None:
    found = read_predictions(write(frame(80 * TABLE, fox=[20.0, 20.0, 20.0]), tmp_path / "p.csv"), CLASSES)
    np.testing.assert_allclose(found.probabilities[0], np.hstack([0.8 * TABLE, np.full((3, 1), 0.2)]))
    assert any("rows sum to 100, and are taken as percentages" in note for note in found.notes)


def test_numbers_that_are_said_to_be_logits_are_no_percentages(tmp_path: Path) -> None:
    found = read_predictions(write(frame(100 * TABLE), tmp_path / "p.csv"), CLASSES, given="logits")
    np.testing.assert_allclose(found.probabilities[0], softmax(100 * TABLE, axis=1))


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        (["10%", "20%", "30%"], "a sum other than 1, worst item a, which sums to 0.6"),
        (["0.3%", "0.3%", "0.4%"], "a sum other than 1, worst item a, which sums to 0.01"),
        (["10", "20", "30"], "a sum other than 1, worst item a, which sums to 60"),
        (["0,3,1", "0,3", "0,4"], "'0,3,1' is no number"),
        (["about 10%", "20%", "70%"], "'about 10%' is no number"),
        (["10%%", "20%", "70%"], "'10%%' is no number"),
    ],
)
def test_shares_that_are_not_clear_are_refused(tmp_path: Path, cells: list[str], sentence: str) -> None:
    columns = {"item": ["a"], **{name: [cell] for name, cell in zip(CLASSES, cells, strict=True)}}
    refused(write(pl.DataFrame(columns), tmp_path / "p.csv"), sentence)
    held = {"item": ["a"], "probs": [str(dict(zip(CLASSES, cells, strict=True)))]}
    refused(write(pl.DataFrame(held), tmp_path / "q.csv"), sentence)


def test_an_object_as_text_with_other_classes_is_refused(tmp_path: Path) -> None:
    for texts, sentence in (
        (["{'A': 0.3, 'B': 0.7}"] * 2, "its classes are A, B, and people voted for cat, dog, owl"),
        (["{'cat': 1, 'dog': 0, 'owl': 0}", "{'cat': 0.5, 'dog': 0.5}"], "an empty cell is no number"),
        (["{'cat': 1, 'dog': 0, 'owl': 0}", "I cannot say"], "give lists of numbers, or one column per class"),
        (["[0.5, 0.5]", "[1.0, 0.0]"], "'probs' has 2 numbers per row, and 3 classes were stated"),
    ):
        path = write(pl.DataFrame({"item": ["a", "b"], "probs": texts}), tmp_path / "p.csv")
        refused(path, sentence, order=CLASSES)


def test_how_far_a_row_is_off_is_said(tmp_path: Path) -> None:
    values = TABLE.copy()
    values[1, 2] += 0.05
    refused(
        write(frame(values), tmp_path / "p.csv"), r"1 row has a sum other than 1, worst item b, which sums to 1\.05"
    )


def test_one_negative_cell_among_probabilities_is_damage_not_a_logit(tmp_path: Path) -> None:
    values = TABLE.copy()
    values[1] = [-0.1, 0.3, 0.8]
    refused(write(frame(values), tmp_path / "p.csv"), "a negative value, worst item b with -0.1")


def test_rounded_probabilities_are_made_to_sum_to_one_and_that_is_said(tmp_path: Path) -> None:
    values = np.array([[0.333, 0.333, 0.3335], [0.1, 0.1, 0.8], [0.25, 0.5, 0.25]])
    found = read_predictions(write(frame(values), tmp_path / "p.csv"), CLASSES)
    np.testing.assert_allclose(found.probabilities.sum(axis=-1), 1.0, atol=1e-15)
    assert "rows sum to 1 within 0.0005; each was divided by its sum" in found.notes[-1]


@pytest.mark.parametrize("source", ["logits", "probabilities", "scores"])
def test_a_list_in_one_column_is_read_in_the_stated_order_and_its_name_may_say_what_it_is(
    tmp_path: Path, source: str
) -> None:
    values = LOGITS if source == "logits" else TABLE
    path = tmp_path / "p.jsonl"
    lines = (json.dumps({"uid": n, source: row.tolist()}) + "\n" for n, row in zip(NAMES, values, strict=True))
    path.write_text("".join(lines))
    refused(path, f"the numbers of '{source}' have no class names, so their order is not known; state it: classes=")
    found = read_predictions(path, CLASSES, order=("owl", "cat", "dog"))
    assert found.given == ("logits" if source == "logits" else "probabilities")
    assert "taken in the stated order owl, cat, dog" in found.notes[1]
    assert ("as 'logits' says" in found.notes[2]) == (source == "logits")
    said = softmax(LOGITS, axis=1) if source == "logits" else TABLE
    np.testing.assert_allclose(found.probabilities[0], said[:, [1, 2, 0]])
    assert found.classes == CLASSES


def test_an_object_in_one_column_is_read_by_class_name(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    by_name = [dict(zip(CLASSES[::-1], row[::-1], strict=True)) for row in TABLE.tolist()]
    rows = [{"item": name, "probs": row} for name, row in zip(NAMES, by_name, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    np.testing.assert_allclose(read_predictions(path, CLASSES).probabilities[0], TABLE)
    with pytest.raises(InputError, match="its classes are owl, dog, cat, and people voted for cat, dog, emu"):
        read_predictions(path, ("cat", "dog", "emu"))
    more = read_predictions(path, ("dog", "owl"))
    assert more.classes == ("dog", "owl", "cat")
    np.testing.assert_allclose(more.probabilities[0], TABLE[:, [1, 2, 0]])


def test_a_class_that_nobody_voted_for_is_known_because_rows_sum_to_one_only_with_it(tmp_path: Path) -> None:
    values = TABLE * 0.4
    path = write(frame(values, emu=[0.6, 0.6, 0.6], note=["x", "y", "z"]), tmp_path / "p.csv")
    found = read_predictions(path, CLASSES)
    assert found.classes == (*CLASSES, "emu")
    np.testing.assert_allclose(found.probabilities[0], np.c_[values, np.full(3, 0.6)])
    assert any("sum to 1 with the columns 'emu', which are classes that nobody voted for" in n for n in found.notes)
    assert any("not used: 'note'" in note for note in found.notes)
    # Whole rows need no more classes: a further column of numbers is something else.
    found = read_predictions(write(frame(TABLE, loss=[0.6, 0.1, 0.2]), tmp_path / "q.csv"), CLASSES)
    assert found.classes == CLASSES
    assert any("not used: 'loss'" in note for note in found.notes)
    refused(
        write(frame(values, emu=[0.6, 0.6, 0.5]), tmp_path / "r.csv"), "rows do not sum to 1 over cat, dog, owl, nor"
    )
    stated = read_predictions(path, CLASSES, order=(*CLASSES, "emu"))
    np.testing.assert_allclose(stated.probabilities, read_predictions(path, CLASSES).probabilities)


def test_among_logits_a_further_column_of_fractions_must_be_named_or_dropped(tmp_path: Path) -> None:
    path = write(frame(LOGITS, emu=[0.5, -1.5, 2.0], fold=[1, 2, 3]), tmp_path / "p.csv")
    refused(path, "'emu' may be classes that nobody voted for")
    found = read_predictions(path, CLASSES, order=(*CLASSES, "emu"))
    np.testing.assert_allclose(found.probabilities[0], softmax(np.c_[LOGITS, [0.5, -1.5, 2.0]], axis=1))
    whole = read_predictions(write(frame(LOGITS, fold=[1, 2, 3]), tmp_path / "q.csv"), CLASSES)
    assert any("not used: 'fold'" in note for note in whole.notes)


def test_a_column_seed_tells_runs_apart(tmp_path: Path) -> None:
    other = np.roll(TABLE, 1, axis=1)
    both = pl.concat([frame(TABLE, seed=[3, 3, 3]), frame(other[::-1], items=NAMES[::-1], seed=[9, 9, 9])])
    found = read_predictions(write(both, tmp_path / "p.csv"), CLASSES)
    np.testing.assert_allclose(found.probabilities, np.stack([TABLE, other]))
    assert any("2 seeds" in note for note in found.notes)
    assert found.seeds == (3, 9)
    refused(write(both[:5], tmp_path / "q.csv"), "item a has 0 rows with seed 9; give each item one row per seed")


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
@pytest.mark.parametrize("said", [[True, False, True], ["True", "FALSE", "true"], [1, 0, 1], [1.0, 0.0, 1.0]])
def test_a_column_trained_on_is_no_class_and_is_kept_with_its_items(
    tmp_path: Path, ending: str, said: list[Any]
) -> None:
    found = read_predictions(write(frame(trained_on=said), tmp_path / f"p{ending}"), CLASSES)
    assert found.classes == CLASSES
    assert not any("not used" in note for note in found.notes)
    assert found.notes[-1].endswith("'trained_on' names 2 items that trained or chose the system")
    assert found.trained_on is not None
    assert found.trained_on.tolist() == [True, False, True]
    _, aligned, _ = align_predictions(people(NAMES[:0:-1]), {"model": found}, only_common=True)
    assert aligned["model"].trained_on is not None
    assert aligned["model"].trained_on.tolist() == [True, False]


def test_an_item_that_trained_one_seed_of_several_counts(tmp_path: Path) -> None:
    one, two = (
        frame(seed=[1] * 3, trained_on=[True, False, False]),
        frame(seed=[2] * 3, trained_on=[False, False, True]),
    )
    found = read_predictions(write(pl.concat([one, two[::-1]]), tmp_path / "p.csv"), CLASSES)
    assert found.trained_on is not None
    assert found.trained_on.tolist() == [True, False, True]


@pytest.mark.parametrize("odd", ["imagenet", None, "2"])
def test_a_column_trained_on_that_says_neither_true_nor_false_is_refused(tmp_path: Path, odd: str | None) -> None:
    path = write(frame(trained_on=["true", odd, "false"]), tmp_path / "p.csv")
    refused(path, "line 3: column 'trained_on' says .*; say true or false, .*or call the column something else")


def test_a_class_may_be_called_trained_on(tmp_path: Path) -> None:
    path = write(frame().rename({"owl": "trained_on"}), tmp_path / "p.csv")
    found = read_predictions(path, ("cat", "dog", "trained_on"))
    np.testing.assert_allclose(found.probabilities, TABLE[None])
    assert found.trained_on is None


@pytest.mark.parametrize("runs", [TABLE, np.stack([TABLE, TABLE])], ids=["one run", "two seeds"])
def test_npz_holds_one_run_or_several_seeds(tmp_path: Path, runs: Any) -> None:
    path = tmp_path / "p.npz"
    held = {"items": np.array(NAMES), "probabilities": runs[..., ::-1], "classes": np.array(CLASSES[::-1])}
    np.savez(path, **held)
    found = read_predictions(path, CLASSES)
    np.testing.assert_allclose(found.probabilities, runs.reshape(-1, 3, 3))
    assert found.items.tolist() == NAMES
    assert found.seeds == tuple(range(len(found.probabilities)))
    assert any("numbered from 0 to 1" in note for note in found.notes) == (runs.ndim == 3)
    numbers = np.arange(len(found.probabilities)) + 11
    np.savez(path, **held, seeds=numbers)
    assert read_predictions(path, CLASSES).seeds == tuple(numbers.tolist())
    np.savez(path, **held, seeds=np.array([7, 7]))
    refused(path, "'seeds' holds 2 numbers for")


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl", ".npz"])
def test_label_distributions_that_we_wrote_are_predictions_too(tmp_path: Path, ending: str) -> None:
    human = people()
    write_labels(human, tmp_path / f"labels{ending}")
    found = read_predictions(tmp_path / f"labels{ending}", CLASSES)
    np.testing.assert_allclose(found.probabilities[0], human.probabilities)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("item,cat,dog,owl\na,0.7,0.2,0.1\na,0.7,0.2,0.1\n", "1 items have more than one row, first a with 2"),
        ("item,cat,dog,owl\na,0.7,nan,0.1\n", "item a has a number that is NaN or infinite; give a finite number for"),
        ("item,cat,dog,owl\na,0.7,,0.1\n", "line 2: an empty cell is no number"),
        ("item,cat,dog,owl\na,0.7,zero,0.1\n", "line 2: 'zero' is no number"),
        ("item,cat,dog,owl\n,0.7,0.2,0.1\n", "line 2: column 'item' is empty"),
        ("item,cat,dog\na,0.7,0.3\n", "no column is named after 'owl', among 'item', 'cat', 'dog'"),
        ("item,one,two,three\na,0.7,0.2,0.1\n", "no column is named after 'cat', 'dog', 'owl'"),
        ("cat,dog,owl\n0.7,0.2,0.1\n", "known to hold the item"),
        ("item,cat,dog,owl\n", "holds no rows"),
        ("", "the file is empty"),
        ("item,cat,dog,owl\na,0.7,0.2,0.1,0.4\n", "5 cells, and the header has 4"),
    ],
)
def test_damaged_tables_are_refused_with_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    refused(path, sentence)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"probabilities": TABLE}, "give the arrays 'items' and 'probabilities' or 'logits'"),
        ({"items": np.array(NAMES), "probabilities": TABLE[0]}, "of shape \\(3,\\)"),
        ({"items": np.array(NAMES[:2]), "probabilities": TABLE}, "for 3 rows"),
        (
            {"items": np.array(["a", "a", "b"]), "probabilities": TABLE, "classes": np.array(CLASSES)},
            "more than one row, first a",
        ),
        (
            {"items": np.array(NAMES), "probabilities": TABLE[:, :2], "classes": np.array(CLASSES)},
            "2 numbers per row for 3 classes",
        ),
        ({"items": np.array(NAMES), "probabilities": TABLE}, "have no class names, so their order is not known"),
        ({"items": np.array(NAMES), "probabilities": TABLE, "classes": np.array(["cat", "dog", "emu"])}, "emu"),
        (
            {"items": np.array(NAMES), "logits": np.full((3, 3), np.nan), "classes": np.array(CLASSES)},
            "item a has a number that is NaN or infinite, and so have 2 more rows",
        ),
        ({"items": np.array([0.5, 1.5, 2.5]), "logits": LOGITS}, "one whole number or text per row"),
        ({"items": np.array(NAMES, dtype=object), "logits": LOGITS}, "as a whole npz file of plain arrays"),
    ],
)
def test_damaged_archives_are_refused_with_a_sentence(tmp_path: Path, arrays: dict[str, Any], sentence: str) -> None:
    path = tmp_path / "p.npz"
    np.savez(path, **arrays)
    refused(path, sentence)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    refused(tmp_path / "absent.csv", "no such file")
    refused(tmp_path, "this is a folder")
    (tmp_path / "p.yaml").write_text("x")
    refused(tmp_path / "p.yaml", "unknown extension '.yaml'")
    for ending in (".npz", ".parquet"):
        whole = tmp_path / f"whole{ending}"
        if ending == ".npz":
            np.savez(whole, items=np.array(NAMES), probabilities=TABLE)
        else:
            write(frame(), whole)
        cut = tmp_path / f"cut{ending}"
        cut.write_bytes(whole.read_bytes()[:-40])
        refused(cut, "whole (npz|Parquet) file")


@settings(max_examples=40)
@given(st.data())
def test_a_file_cut_or_changed_anywhere_is_read_or_refused_never_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damage")
    ending = data.draw(st.sampled_from([".csv", ".jsonl", ".npz"]))
    path = folder / f"p{ending}"
    if ending == ".npz":
        np.savez(path, items=np.array(NAMES), logits=LOGITS)
    else:
        write(frame(LOGITS), path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    with suppress(InputError):
        np.testing.assert_allclose(read_predictions(path, CLASSES).probabilities.sum(axis=-1), 1.0)


def predictions(items: list[Any], values: Any = TABLE) -> Predictions:
    names = np.array(items)
    names = names if names.dtype.kind == "i" else names.astype(np.dtypes.StringDType())
    return Predictions(probabilities=values[None], items=names, classes=CLASSES, given="probabilities", seeds=(0,))


@pytest.mark.parametrize(
    ("judged", "predicted"),
    [(["a", "b", "c"], ["c", "a", "b"]), ([1, 2, 3], [3, 1, 2]), ([1, 2, 3], ["3", "1", "2"])],
    ids=["text", "numbers", "numbers and text"],
)
def test_predictions_are_put_in_the_order_of_the_votes(judged: list[Any], predicted: list[Any]) -> None:
    human, aligned, notes = align_predictions(people(judged), {"m": predictions(predicted)})
    np.testing.assert_array_equal(aligned["m"].probabilities[0], TABLE[[1, 2, 0]])
    assert (len(human), notes) == (3, ())


def test_items_on_one_side_only_are_refused_or_left_out_and_counted() -> None:
    human = people(["a", "b", "c", "d"])
    with pytest.raises(InputError, match="m: 1 items with votes have no prediction, first d"):
        align_predictions(human, {"m": predictions(["a", "b", "c"])})
    with pytest.raises(InputError, match=r"no prediction is for an item .* called a, b, c, and those .* A, B, C; call"):
        align_predictions(human, {"m": predictions(["A", "B", "C"])})
    with pytest.raises(InputError, match="m: 1 predictions are for items without votes, first x"):
        align_predictions(people(["a", "b"]), {"m": predictions(["a", "b", "x"])})
    kept, aligned, notes = align_predictions(
        human, {"m": predictions(["x", "b", "c"]), "n": predictions(["a", "b", "c"])}, only_common=True
    )
    assert kept.items.tolist() == ["b", "c"]
    np.testing.assert_array_equal(aligned["m"].probabilities[0], TABLE[1:])
    assert notes == (
        "2 of 4 items with votes have a prediction of every system; these count",
        "m: 1 predictions are for items without votes and do not count",
    )
    with pytest.raises(InputError, match="no item has votes and a prediction"):
        align_predictions(human, {"m": predictions(["x", "y", "z"])}, only_common=True)


def test_a_further_column_is_read_in_the_order_of_the_items(tmp_path: Path) -> None:
    path = write(frame(light=["day", "night", "day"]), tmp_path / "p.csv")
    items = np.array(["c", "b"], dtype=np.dtypes.StringDType())
    assert read_column(path, "light", items).tolist() == ["day", "night"]
    with pytest.raises(InputError, match="no column 'colour'"):
        read_column(path, "colour", items)
    with pytest.raises(InputError, match="no value for item x"):
        read_column(path, "light", np.array(["a", "x"], dtype=np.dtypes.StringDType()))
    twice = pl.concat([frame(light=["day", "night", "day"]), frame(light=["day", "day", "day"])])
    with pytest.raises(InputError, match="line 6: item b has 'day' in column 'light', and 'night' before"):
        read_column(write(twice, tmp_path / "q.csv"), "light", items)
    np.savez(tmp_path / "p.npz", items=np.array(NAMES), logits=LOGITS)
    with pytest.raises(InputError, match="an npz file has no columns"):
        read_column(tmp_path / "p.npz", "light", items)
