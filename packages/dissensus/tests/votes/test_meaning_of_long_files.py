"""Files with one row per vote, or with lists: which column is the item, what a list is, and what is no class at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dissensus as dis
from dissensus.errors import InputError
from dissensus.votes.cells import spelling
from dissensus.votes.lists import parsed
from dissensus.votes.reading import Options, Reading, understand
from dissensus.votes.scales import binned

if TYPE_CHECKING:
    from pathlib import Path

PANEL = [(f"x{k}", f"t{k % 3}", f"w{a}", "abc"[(k * k + a) % 3]) for k in range(12) for a in range(3)]
"""Item, its task, annotator and label: twelve items of three tasks, each judged by three people."""


def table(rows: list[Any], *names: str) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in rows]


def read(rows: list[Any], *names: str, **options: Any) -> Reading:
    return understand(table(rows, *names), Options(**options))


def refused(rows: list[Any], *names: str, **options: Any) -> InputError:
    with pytest.raises(InputError) as refusal:
        read(rows, *names, **options)
    return refusal.value


def counted(reading: Reading) -> dict[str, list[int]]:
    votes = reading.votes
    return dict(zip(map(str, votes.items.tolist()), votes.counts.tolist(), strict=True))


class TestItems:
    @pytest.mark.parametrize("names", [("id", "task"), ("uid", "question"), ("tweet_id", "file"), ("pairID", "sample")])
    def test_the_finer_of_two_columns_names_them_whatever_they_are_called(self, names: tuple[str, str]) -> None:
        reading = read(PANEL, *names, "annotator", "label")
        assert reading.columns["item"] == names[0]
        assert counted(reading) == counted(read([(k, *rest) for k, _, *rest in PANEL], "item", "annotator", "label"))
        assert any("so nobody judges one twice" in note for note in reading.notes)

    def test_a_number_of_the_row_is_no_item(self) -> None:
        rows = [(k, *row) for k, row in enumerate(PANEL)]
        assert read(rows, "id", "item_id", "split", "annotator", "label").columns["item"] == "item_id"
        # Everybody judged once: by chance, too, nobody would have judged an item twice.
        once = [(k, f"t{k % 2}", f"w{k}", "ab"[k % 3 % 2]) for k in range(30)]
        readings = refused(once, "id", "task", "annotator", "label").readings
        assert [way["item"] for way in readings.values()] == ["task", "id"]

    def test_two_columns_that_both_may_be_it_are_asked_about(self) -> None:
        rows = [(f"x{k // 3}", f"y{k % 5}", "ab"[k % 2]) for k in range(30)]
        assert [*refused(rows, "id", "task", "label").readings.values()] == [{"item": "task"}, {"item": "id"}]
        same = [(x, x.upper(), label) for x, _, label in rows]
        assert read(same, "id", "image", "label").columns["item"] == "image"

    def test_repetitions_first_ask_for_a_finer_column(self) -> None:
        error = refused(PANEL, "id", "task", "annotator", "label", item="task")
        assert "27 of 36 rows are repetitions" in error.sentence
        ways = [*error.readings.values()]
        assert ways == [{"item": "id"}, *({"duplicates": way, "force": True} for way in ("first", "last"))]

    def test_no_more_than_two_in_a_hundred_are_left_out_without_force(self) -> None:
        rows = [(k // 2, f"w{k % 2}", "ab"[k % 3 % 2]) for k in range(98)]
        names = ("item", "annotator", "label")
        assert len(read([*rows, rows[0]], *names, duplicates="last").votes) == 98
        error = refused([*rows, *rows[:3]], *names, duplicates="last")
        assert [*error.readings.values()] == [{"duplicates": "last", "force": True}]
        assert len(read([*rows, *rows[:3]], *names, duplicates="last", force=True).votes) == 98

    @pytest.mark.parametrize(("keep", "label"), [("first", "early"), ("last", "late")])
    def test_first_and_last_go_by_time(self, keep: Any, label: str) -> None:
        rows = [(1, "a", "late", "2024-01-02"), (1, "a", "early", "2024-01-01"), (1, "a", "unknown", "")]
        reading = read(rows, "item", "annotator", "label", "timestamp", duplicates=keep, force=True)
        assert [reading.votes.classes[k] for k in reading.votes.label] == [label]
        assert f"2 repeated rows left out, the {keep} by time of each kept" in reading.notes

    def test_several_columns_name_an_item_together(self) -> None:
        rows = [(q, m, f"w{a}", "ab"[(q + a) % 2]) for q in range(4) for m in "xy" for a in range(3)]
        names = ("question_id", "model", "judge", "winner")
        assert {"item": "question_id,model"} in refused(rows, *names).readings.values()
        for item in ("question_id,model", ["question_id", "model"]):
            assert read(rows, *names, item=item).votes.items.tolist()[:2] == ["0 | x", "0 | y"]

    def test_a_number_of_the_row_beside_texts_that_repeat_is_asked_about(self) -> None:
        rows = [(k, f"text {item}", who, label) for k, (item, _, who, label) in enumerate(PANEL)]
        names = ("id", "text", "annotator", "label")
        assert [*refused(rows, *names).readings.values()] == [{"item": "text"}, {"item": "id"}]
        assert len(read(rows, *names, item="text").votes.items) == 12
        assert any("it may number the rows" in note for note in read(rows, *names, item="id").notes)

    @pytest.mark.parametrize(
        "other", ["x ", "X", "x\u200b", "\ufeffx", "  x"], ids=["space", "case", "zero width", "mark", "spaces"]
    )
    def test_names_that_look_alike_are_told_and_merged_on_request(self, other: str) -> None:
        rows = [("x", "a", 1), (other, "b", 2), ("y", "a", 1)]
        reading = read(rows, "item", "annotator", "label")
        assert len(reading.votes.items) == 3
        assert any(note.startswith(f"2 items such as 'x' (1) and '{other}' (1)") for note in reading.notes)
        merged = read(rows, "item", "annotator", "label", merge_spellings=["items"])
        assert counted(merged) == {"x": [1, 1], "y": [1, 0]}
        assert "1 names of items merged into others that look like them" in merged.notes

    def test_labels_and_annotators_are_merged_into_the_most_frequent_spelling_as_items_are(self) -> None:
        rows = [("i", "A", "Yes "), ("i", "b", "YES"), ("j", "a ", "Yes"), ("j", "b", "no"), ("k", "a", "yes")]
        plain = read(rows, "item", "annotator", "label")
        for what in ("labels", "annotators"):
            assert any(f"{what} " in note and f"merge_spellings=['{what}']" in note for note in plain.notes)
        votes = read(rows, "item", "annotator", "label", merge_spellings="labels").votes
        assert (votes.classes, votes.label.tolist()) == (("Yes", "no"), [0, 0, 0, 1, 0])
        assert votes.annotators is not None
        assert len(votes.annotators) == 4
        votes = read(rows, "item", "annotator", "label", merge_spellings=["annotators", "labels"]).votes
        assert votes.annotators is not None
        assert (votes.classes, votes.annotators.names.tolist()) == (("Yes", "no"), ["a", "b"])
        twice = [*rows, ("k", "A", "no")]
        with pytest.raises(InputError, match="judged a second time"):
            read(twice, "item", "annotator", "label", merge_spellings="annotators")
        with pytest.raises(InputError, match="cannot be 'label'; did you mean 'labels'"):
            read(rows, "item", "annotator", "label", merge_spellings="label")

    def test_labels_of_wide_tables_and_of_sets_are_merged_too(self) -> None:
        wide = dis.read_votes(
            {"item": [1, 2], "ann": ["Yes", "no"], "ben": ["yes ", "No"]}, format="wide", merge_spellings="labels"
        )
        assert wide.classes == ("Yes", "no")
        sets = dis.read_votes(
            {"item": [1, 1], "annotator": ["a", "b"], "label": ["Joy|fear", "joy|Fear"]},
            format="sets",
            merge_spellings="labels",
        )
        assert sets.classes == ("Joy", "fear")
        with pytest.raises(InputError, match="no use for merge_spellings"):
            dis.read_votes({"item": [1, 2], "x": [1, 2], "X": [2, 2]}, format="counts", merge_spellings="labels")

    def test_white_space_around_a_class_is_seen(self) -> None:
        rows = [("i", "a", "yes"), ("i", "b", "yes "), ("j", "a", "no")]
        assert "(no 1, yes 1, 'yes ' 1)" in read(rows, "item", "annotator", "label").votes.notes[0]

    @pytest.mark.parametrize(
        ("labels", "advised"),
        [
            (["yes", "NA", ""], [["", "NA"], [""]]),
            (["yes", "n/a", "NA"], [["NA", "n/a"], [""]]),
            (["yes", "", "None", "-"], [["", "-", "None"], [""]]),
            (["yes", "", "None", "NA"], [["", "NA", "None"], ["", "NA"], [""]]),
            (["yes", ""], [[""]]),
        ],
        ids=["NA", "no empty cell", "words that are missing beside empty cells alone", "both", "empty cells alone"],
    )
    def test_words_for_a_missing_label_are_asked_about_together(
        self, labels: list[str], advised: list[list[str]]
    ) -> None:
        rows = [(k, "a", label) for k, label in enumerate([*labels, "no"])]
        asked = refused(rows, "item", "annotator", "label").readings.values()
        assert [way["missing"] for way in asked] == advised
        for missing in advised:
            reading = read(rows, "item", "annotator", "label", missing=missing)
            assert {*reading.votes.classes} == {"no", *labels} - {*missing}
            told = [note for note in reading.notes if "looks like a missing one, and is kept as a class" in note]
            assert len(told) == len({"NA", "n/a"} & {*reading.votes.classes})

    def test_an_empty_label_beside_a_word_that_was_named_is_asked_about_with_it(self) -> None:
        rows = [(1, "a", "yes"), (1, "b", "NA"), (2, "a", ""), (2, "b", "no")]
        with pytest.raises(InputError) as error:
            read(rows, "item", "annotator", "label", missing=["NA"])
        assert [*error.value.readings.values()] == [{"missing": ["", "NA"]}]

    def test_numbers_and_normal_forms_look_alike(self) -> None:
        alike = [["3", "3.0", "+3"], ["7", "007"], ["1E5", "100000"], ["caf\u00e9", "cafe\u0301"]]
        for names in alike:
            assert spelling(pl.Series(names)).n_unique() == 1
        different = ["3", "30", "7a", "1234567890123456", "1234567890123457", "x y", "xy"]
        assert spelling(pl.Series(different)).n_unique() == len(different)


WORDS = st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1), max_size=4)


class TestLists:
    @given(st.lists(WORDS, min_size=1, max_size=5), st.sampled_from([repr, json.dumps, lambda w: str(np.array(w))]))
    def test_what_python_json_and_numpy_write_is_read_back(self, words: list[list[str]], write: Any) -> None:
        cells = [write(word) if write is repr else write(word).replace("\n", " ") for word in words]
        expected = [[str(part) for part in word] for word in words]
        assert parsed(pl.Series(cells), where=str).to_list() == expected

    @pytest.mark.parametrize("cell", ["[a, , b]", "[[1], [2]]", '[{"a": 1}]', "[0 1 ... 2]", "[1, 2", "LABEL"])
    def test_a_cell_that_is_no_list_among_lists_is_refused(self, cell: str) -> None:
        with pytest.raises(InputError, match=r"row 2: .* is no list of labels"):
            parsed(pl.Series(["[1]", "[2]", cell]), where=lambda row: f"row {row}")

    def test_a_label_in_brackets_is_a_label(self) -> None:
        cells = pl.Series(["[x", "[y]", "z", "z", "z"])
        assert parsed(cells, where=str).to_list() == cells.to_list()

    def test_people_beside_labels_say_who_voted(self) -> None:
        rows = [("a", ["u", "v"], ["x", "y"]), ("b", ["v", "w", "u"], ["y", "y", None])]
        for cells in (rows, [(item, str(who), str(labels)) for item, who, labels in rows]):
            votes = read(cells, "id", "annotators", "labels").votes
            assert votes.annotators is not None
            who = votes.annotators.names[votes.annotators.code].tolist()
            assert [*zip(who, votes.label.tolist(), strict=True)] == [("u", 0), ("v", 1), ("v", 1), ("w", 1)]
        with pytest.raises(InputError, match=r"row 2: .*'labels' and 'annotators' are not of one length"):
            read([*rows[:1], ("b", ["v"], ["x", "y"])], "id", "annotators", "labels")

    def test_one_person_beside_a_list_of_several_is_not_dropped_in_silence(self) -> None:
        rows = [("a", "u", ["x", "y"]), ("b", "v", ["y", "y"])]
        with pytest.raises(InputError, match="names one person for a whole list"):
            read(rows, "id", "who", "labels", annotator="who", format="lists")

    def test_a_list_is_of_one_person_or_of_several(self) -> None:
        assert counted(read([("a", ["x", "x"]), ("b", ["x", "y"])], "id", "labels")) == {"a": [2, 0], "b": [1, 1]}
        readings = refused([("a", ["x", "z"]), ("b", ["x", "y"])], "id", "labels").readings
        assert [*readings.values()] == [{"format": "sets"}, {"format": "lists"}]
        assert read([("a", ["x", "z"]), ("a", ["x", "y"])], "id", "labels").format == "sets"

    def test_commas_without_brackets_are_asked_about(self) -> None:
        rows = [("a", "4,2,2"), ("b", "2,2,4"), ("c", "1,4,2"), ("d", "2,1,1")]
        ways = [{"format": "lists", "separator": ","}, {"format": "long"}]
        assert [*refused(rows, "id", "label").readings.values()] == ways
        assert len(read(rows, "id", "label", **ways[0]).votes) == 12
        with pytest.raises(InputError, match="no cell of column 'label' holds several labels"):
            read([("a", "x"), ("b", "y")], "id", "label", format="lists")

    def test_lists_of_scores_are_sliders(self) -> None:
        rows = [(k, [k * 10.5 % 97, k * 7.25 % 89, 50.0]) for k in range(20)]
        assert {"bins": ["5"]} in refused(rows, "id", "scores").readings.values()
        votes = read(rows, "id", "scores", bins=[0, 50, 100]).votes
        high = sum(score >= 50 for _, scores in rows for score in scores)
        assert (votes.classes, votes.counts.sum(axis=0).tolist()) == (("0-50", "50-100"), [60 - high, high])


class TestScales:
    @given(
        st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20, unique=True),
        st.lists(st.integers(-100, 100), min_size=3, max_size=8, unique=True),
    )
    def test_a_bin_holds_its_lower_edge_and_the_last_its_upper(self, numbers: list[float], edges: list[int]) -> None:
        edges = sorted(edges)
        inside = [number for number in numbers if edges[0] <= number <= edges[-1]]
        names = binned(pl.Series([*inside, *edges], dtype=pl.Float64), [*map(str, edges)], where=str, notes=[])
        expected = np.histogram([*inside, *edges], bins=edges)[0]
        physical = names.to_physical().to_numpy()
        np.testing.assert_array_equal(np.bincount(physical, minlength=len(edges) - 1), expected)
        for number in (edges[0] - 0.5, edges[-1] + 0.5):
            with pytest.raises(InputError, match="lies outside the edges"):
                binned(pl.Series([number]), [*map(str, edges)], where=str, notes=[])

    def test_a_number_of_bins_is_of_equal_width_over_what_there_is(self) -> None:
        notes: list[str] = []
        cells = pl.Series([0.0, 0.1, 0.3, 0.30000001, 0.9999, 1.0])
        names = binned(cells, ["10"], where=str, notes=notes)
        assert names.to_list() == ["0-0.1", "0.1-0.2", "0.3-0.4", "0.3-0.4", "0.9-1", "0.9-1"]
        assert "10 bins of equal width from the least value, 0, to the largest, 1" in notes[0]

    @pytest.mark.parametrize("cell", ["nan", "inf", "x"])
    def test_what_is_no_number_is_in_no_bin(self, cell: str) -> None:
        with pytest.raises(InputError, match=f"row 1: '{cell}' is no number"):
            binned(pl.Series(["1", cell]), ["2"], where=lambda row: f"row {row}", notes=[])

    @pytest.mark.parametrize("bins", [["1"], ["x"], ["0", "1"], ["0", "2", "1"], ["2.5"]])
    def test_bins_that_cannot_be_are_refused(self, bins: list[str]) -> None:
        with pytest.raises(InputError, match="bins="):
            binned(pl.Series(["1", "2"]), bins, where=str, notes=[])

    def test_free_text_is_no_label_and_is_refused_fast(self) -> None:
        rows = [(k // 3, f"w{k % 3}", f"a remark of its own, number {k}") for k in range(3000)]
        error = refused(rows, "item", "annotator", "label")
        assert "3,000 different labels in 3,000 votes" in error.sentence
        assert [*error.readings.values()] == [{"force": True}]

    @pytest.mark.parametrize("code", ["99", "999", "-99", "-1", "88", "9", "none"])
    def test_a_code_beside_a_scale_is_asked_about(self, code: str) -> None:
        rows = [(k // 3, f"w{k % 3}", code if k == 7 else str(k % 5 + 1)) for k in range(30)]
        names = ("item", "annotator", "grade")
        drop, keep = refused(rows, *names).readings.values()
        assert drop == {"missing": [code]}
        assert len(read(rows, *names, **drop).votes) == 29
        assert len(read(rows, *names, **keep).votes) == 30
        wide = {"item": [*range(10)], **{f"ann{a}": [row[2] for row in rows[a::3]] for a in range(3)}}
        with pytest.raises(InputError) as refusal:
            understand(wide)
        assert drop in refusal.value.readings.values()

    @pytest.mark.parametrize("labels", ["-1 0 1", "-2 -1 0 1 2", "0 1 2 3 4 5 6 7 8 9", "1 2 3 4 5 6 7", "0 50 99"])
    def test_a_scale_of_its_own_is_not(self, labels: str) -> None:
        steps = labels.split()
        rows = [(k // 3, f"w{k % 3}", steps[k % len(steps)]) for k in range(30)]
        assert len(read(rows, "item", "annotator", "grade").votes) == 30

    @pytest.mark.parametrize(("highest", "asked"), [(9, True), (10, True), (11, False)])
    def test_refuse_codes_up_to_eleven_steps(self, highest: int, asked: bool) -> None:
        """99 beside 0 to 10 may be no answer; beside more steps it is a class."""
        steps = [*map(str, range(highest + 1)), "99"]
        rows = [(k // 3, f"w{k % 3}", steps[k % len(steps)]) for k in range(39)]
        if asked:
            assert {"missing": ["99"]} in refused(rows, "item", "annotator", "grade").readings.values()
        else:
            assert "99" in read(rows, "item", "annotator", "grade").votes.classes


class TestRemarks:
    def test_a_panel_without_one_disagreement(self) -> None:
        rows = [(k // 3, f"w{k % 3}", "ab"[k // 3 % 2]) for k in range(36)]
        assert any(note.startswith("nobody disagrees") for note in read(rows, "item", "annotator", "label").notes)

    def test_milliseconds(self) -> None:
        rows = [(*row, 2000 + k) for k, row in enumerate(PANEL)]
        names = ("item", "split", "annotator", "label", "seconds")
        assert any("milliseconds" in note for note in read(rows, *names).notes)


def test_maps_are_a_sentence(tmp_path: Path) -> None:
    pl.DataFrame({"item": [1, 2], "label": [{"a": 1}, {"a": 2}]}).write_parquet(tmp_path / "v.parquet")
    with pytest.raises(InputError, match="column 'label' holds lists, objects or bytes"):
        understand(tmp_path / "v.parquet")
