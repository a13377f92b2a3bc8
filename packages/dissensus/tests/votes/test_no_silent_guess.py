"""Nothing is guessed silently: a file that can mean two things is refused, and one cell never changes the rest."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import zstandard

from dissensus.errors import InputError
from dissensus.votes.reading import Options, Reading, read_votes, understand

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read_file(content: str | bytes, name: str = "votes.csv", **options: Any) -> Reading:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return understand(path, Options(**options))

    return read_file


COUNTS = "item,bird,cat,dog\n" + "".join(f"i{k},{k},{5 - k},1\n" for k in range(6))


class TestDamagedCounts:
    def test_whole_counts_are_found(self, read: Any) -> None:
        assert read(COUNTS).format == "counts"

    @pytest.mark.parametrize("cell", ["", "NA", "+1x", "1 1", "one", "-1"])
    @pytest.mark.parametrize("row", range(6))
    def test_one_bad_cell_never_makes_classes_annotators(self, read: Any, cell: str, row: int) -> None:
        lines = COUNTS.splitlines()
        lines[row + 1] = f"i{row},{row},{cell},1"
        with pytest.raises(InputError, match=r"(?s)format='wide' .* format='counts'|a count is|no count of"):
            read("\n".join(lines))
        with pytest.raises(InputError, match=f"line {row + 2}"):
            read("\n".join(lines), format="counts")

    def test_a_short_row_is_no_row_of_a_wide_table(self, read: Any) -> None:
        with pytest.raises(InputError, match="format='wide'"):
            read(COUNTS.replace("i3,3,2,1", "i3,3,2"))
        with pytest.raises(InputError, match="line 3: 2 cells"):
            read("item,ann1,ann2\nx,a,b\ny,a\nz,b,b\n")


class TestColumnsBesideAnnotators:
    TABLE = "id,text,ann1,ann2,gold,split\n1,a b c,yes,no,yes,train\n2,d e f,no,no,no,test\n"

    def test_texts_gold_and_splits_describe_items(self, read: Any) -> None:
        reading = read(self.TABLE)
        assert reading.format == "wide"
        assert reading.votes.annotators.names.tolist() == ["ann1", "ann2"]
        assert reading.votes.classes == ("no", "yes")
        assert {name: values.tolist() for name, values in reading.votes.item_attributes.items()} == {
            "text": ["a b c", "d e f"],
            "gold": ["yes", "no"],
            "split": ["train", "test"],
        }
        assert any("'text', 'gold', 'split' describe items" in note for note in reading.notes)

    def test_a_column_of_unknown_meaning_is_asked_about(self, read: Any) -> None:
        table = self.TABLE.replace("text", "remark")
        with pytest.raises(InputError, match=r"'remark' may be annotators like 'ann1', 'ann2'.*annotators="):
            read(table)
        for given in (("ann1", "ann2"), ("ann*",)):
            reading = read(table, annotators=given)
            assert reading.votes.annotators.names.tolist() == ["ann1", "ann2"]
            assert "not used: 'remark'" in reading.notes

    def test_annotators_of_any_name(self, read: Any) -> None:
        table = "item,alice,bob,note\n1,yes,no,x1\n2,no,no,x2\n3,yes,yes,x3\n"
        with pytest.raises(InputError, match=r"'note' may be annotators like 'alice', 'bob'"):
            read(table)
        assert len(read(table, annotators=("alice", "bob")).votes) == 6

    def test_a_pattern_that_fits_nothing_is_refused(self, read: Any) -> None:
        with pytest.raises(InputError, match="no column fits 'rater"):
            read(self.TABLE, annotators=("rater*",))


class TestEqualNumbers:
    @pytest.mark.parametrize(
        ("labels", "classes"), [("0 00 -0 1", "0 1"), ("1 1.0 1.00 2", "1 2"), ("1.5 1.50", "1.5")]
    )
    def test_are_one_class(self, read: Any, labels: str, classes: str) -> None:
        rows = "".join(f"1,w{k},{label}\n" for k, label in enumerate(labels.split()))
        reading = read("item,worker,label\n" + rows)
        assert reading.votes.classes == tuple(classes.split())
        assert any("are the same number" in note for note in reading.notes)

    def test_different_codes_keep_their_zeros(self, read: Any) -> None:
        assert read("item,label\n1,01\n1,02\n").votes.classes == ("01", "02")

    def test_a_given_class_takes_the_same_number(self, read: Any) -> None:
        votes = read("item,label\n1,1.0\n1,2\n", classes=("01", "02")).votes
        assert (votes.classes, votes.label.tolist()) == (("01", "02"), [0, 1])

    def test_also_in_a_wide_table(self, read: Any) -> None:
        assert read("item,ann1,ann2\na,0,00\nb,-0,1\n").votes.classes == ("0", "1")


class TestMissing:
    LONG = "item,worker,rating\n1,a,4\n1,b,NA\n2,a,5\n"

    @pytest.mark.parametrize("word", ["NA", "N/A", "nan", "null"])
    def test_a_word_for_missing_is_refused_in_a_long_file(self, read: Any, word: str) -> None:
        with pytest.raises(InputError, match=rf"line 3: the label '{word}' may be a class or .*") as refusal:
            read(self.LONG.replace("NA", word))
        assert [*refusal.value.readings.values()] == [{"missing": [word]}, {"missing": [""], "ordered": False}]

    def test_rows_are_left_out_when_asked_and_told(self, read: Any) -> None:
        reading = read(self.LONG, missing=("NA",))
        assert (len(reading.votes), reading.votes.ordered) == (2, True)
        assert "1 row without a label left out (missing=)" in reading.notes

    def test_kept_as_a_class_when_asked(self, read: Any) -> None:
        assert read(self.LONG, missing=("",), ordered=False).votes.classes == ("4", "5", "NA")
        assert read(self.LONG, classes=("4", "5", "NA")).votes.classes == ("4", "5", "NA")

    def test_empty_cells_too(self, read: Any) -> None:
        assert len(read(self.LONG.replace("NA", ""), missing=("",)).votes) == 2

    def test_the_default_of_a_wide_table_is_told(self, read: Any) -> None:
        reading = read("item,ann1,ann2\na,x,NA\nb,y,x\n")
        assert reading.votes.classes == ("x", "y")
        assert "1 cells of 'NA' are read as missing; --missing '' keeps them as labels" in reading.notes

    def test_minus_one_in_most_cells_is_asked_about(self, read: Any) -> None:
        table = "item,ann1,ann2,ann3\na,-1,1,-1\nb,-1,-1,0\n"
        with pytest.raises(InputError, match=r"66\.7% of the cells are -1.*missing=\['-1'\]"):
            read(table)
        assert read(table, missing=("-1",)).votes.classes == ("0", "1")
        assert read(table, classes=("-1", "0", "1")).votes.classes == ("-1", "0", "1")

    def test_numbers_of_a_frame(self) -> None:
        frame = pl.DataFrame({"item": [1, 1, 2], "label": [0, -1, 1]})
        assert read_votes(frame, missing=["-1"]).classes == ("0", "1")


def test_a_rating_beside_a_word_is_refused_with_its_line(read: Any) -> None:
    with pytest.raises(InputError, match="line 3: column 'rating' holds the label '4x' beside numbers") as refusal:
        read("item,worker,rating\n1,a,4\n1,b,4x\n")
    for way in refusal.value.readings.values():
        assert read("item,worker,rating\n1,a,4\n1,b,4x\n", **way).votes.classes[0] == "4"


def test_a_second_header_and_a_file_without_one_are_told_apart(read: Any) -> None:
    twice = read("item,worker,label\n1,a,x\nitem,worker,label\n1,b,y\n")
    assert (len(twice.votes), twice.votes.items.tolist()) == (2, [1])
    assert "left out: 1 line that repeats the header" in twice.notes
    with pytest.raises(InputError, match=r"line 3: the label is 'label'.*second header"):
        read("item,worker,label\n1,a,x\n1,b,label\n1,c,y\n")
    bare = "1,ann,cat\n1,bob,dog\n2,ann,cat\n"
    with pytest.raises(InputError, match=r"columns="):
        read(bare)
    with pytest.raises(InputError, match=r"line 3: the label is 'cat'.*columns="):
        read(bare, item="1", annotator="ann", label="cat")
    assert len(read(bare, columns=("item", "annotator", "label")).votes) == 3
    with pytest.raises(InputError, match="line 2: annotator 'ann'"):
        read("1,ann,x\n1,ann,y\n", columns=("item", "annotator", "label"))
    with pytest.raises(InputError, match="3 cells and columns= names 2"):
        read(bare, columns=("item", "label"))


def test_names_that_look_like_one_are_told(read: Any) -> None:
    notes = read("item,worker,label\n1,a,cat\n1,b,cat \n2,a,Cat\n2,A,dog\n").notes
    how = "differ only in white space, case or spelling, and are kept apart; merge_spellings="
    assert f"the labels 'Cat' (1) and 'cat' (1) and 'cat ' (1) {how}['labels'] makes them one" in notes
    # Under pseudonyms nobody is named, nor here.
    assert f"2 annotators have names that {how}['annotators'] makes them one" in notes


def test_two_columns_of_one_name_are_refused(read: Any) -> None:
    with pytest.raises(InputError, match="two columns are called 'label'"):
        read("item,label,label\n1,a,b\n")


def test_unused_columns_are_told(read: Any) -> None:
    assert "not used: 'mood'" in read("item,worker,label,mood\n1,a,x,good\n").notes


def test_seconds_with_one_bad_cell_are_refused_not_dropped(read: Any) -> None:
    with pytest.raises(InputError, match="line 3: 'x' in column 'seconds'"):
        read("item,worker,label,seconds\n1,a,x,3\n1,b,x,x\n")


def test_an_array_longer_than_its_header_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.ones((3, 2)))
    whole = (tmp_path / "v.npy").read_bytes()
    (tmp_path / "v.npy").write_bytes(whole + b"\0" * 16)
    with pytest.raises(InputError, match="longer than its header says"):
        read_votes(tmp_path / "v.npy")


ROWS = [
    {"item": 7, "annotator": "ann", "label": "dog"},
    {"item": 7, "annotator": "bob", "label": "cat"},
    {"item": 3, "annotator": "ann", "label": "cat"},
]
TEXT = "item,annotator,label\n7,ann,dog\n7,bob,cat\n3,ann,cat\n"


def hugging_face() -> Any:
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_list([ROWS[2], *ROWS]).select([1, 2, 3])


class TestSources:
    @pytest.mark.parametrize(
        "source",
        [
            pytest.param(lambda: pd.DataFrame(ROWS), id="pandas"),
            pytest.param(lambda: pl.DataFrame(ROWS), id="polars"),
            pytest.param(lambda: pl.LazyFrame(ROWS), id="lazy"),
            pytest.param(lambda: pa.Table.from_pylist(ROWS), id="arrow"),
            pytest.param(lambda: ROWS, id="dictionaries"),
            pytest.param(lambda: pl.DataFrame(ROWS).to_dict(as_series=False), id="columns"),
            pytest.param(lambda: io.StringIO(TEXT), id="text file"),
            pytest.param(lambda: io.BytesIO(TEXT.encode()), id="binary file"),
            pytest.param(hugging_face, id="hugging face"),
        ],
    )
    def test_any_table_is_the_same_votes(self, source: Any) -> None:
        votes = read_votes(source())
        assert votes.annotators is not None
        assert (votes.items.tolist(), votes.annotators.names.tolist(), votes.classes) == (
            [7, 3],
            ["ann", "bob"],
            ("cat", "dog"),
        )
        assert (votes.item.tolist(), votes.annotators.code.tolist(), votes.label.tolist()) == (
            [0, 0, 1],
            [0, 1, 0],
            [1, 0, 0],
        )

    @pytest.mark.parametrize(
        ("name", "compress"),
        [("v.csv.gz", gzip.compress), ("v.csv.zst", zstandard.compress), ("v.txt", bytes), ("v.txt.gz", gzip.compress)],
    )
    def test_compressed_and_unnamed_text(self, read: Any, name: str, compress: Any) -> None:
        reading = read(compress(TEXT.encode()), name, format="long")
        assert reading.votes.counts.tolist() == [[1, 1], [1, 0]]
        with pytest.raises(InputError, match="line 3: column 'label' is empty"):
            read(compress(TEXT.replace("cat", "", 1).encode()), name, format="long")

    def test_json_and_text_are_read_only_when_told_what_they_hold(self, read: Any) -> None:
        content = pl.DataFrame(ROWS).write_json()
        with pytest.raises(InputError, match=r"a \.json file can hold anything; choose(.|\n)*format='long'"):
            read(content, "v.json")
        assert len(read(content, "v.json", format="long").votes) == 3
        with pytest.raises(InputError, match=r"a \.txt file can hold anything"):
            read(TEXT, "v.txt")

    def test_a_workbook(self, tmp_path: Path) -> None:
        xlsxwriter = pytest.importorskip("xlsxwriter")
        path = tmp_path / "v.xlsx"
        with xlsxwriter.Workbook(path) as book:
            sheet = book.add_worksheet()
            for k, row in enumerate([list(ROWS[0]), *(list(each.values()) for each in ROWS)]):
                sheet.write_row(k, 0, row)
        assert read_votes(path).counts.tolist() == [[1, 1], [1, 0]]

    def test_a_damaged_workbook_and_archive_end_in_a_sentence(self, read: Any) -> None:
        with pytest.raises(InputError, match="not a whole Excel file"):
            read(b"PK\x03\x04 no workbook", "v.xlsx")
        with pytest.raises(InputError, match="compressed file is damaged"):
            read(gzip.compress(TEXT.encode() * 100)[:-20], "v.csv.gz")
        with pytest.raises(InputError, match="not compressed as its name says"):
            read(TEXT, "v.csv.gz")

    def test_what_is_no_table_is_refused(self) -> None:
        with pytest.raises(InputError, match="cannot be read as one; give a path"):
            read_votes(3)


class TestListsAndFlags:
    def test_anonymous_lists(self, read: Any) -> None:
        lines = '{"item": "a", "answers": ["Yes", "Yes", "No"]}\n{"item": "b", "answers": ["No", null]}\n'
        for reading in (read(lines, "v.jsonl"), read(lines, "v.jsonl", format="lists")):
            assert (reading.votes.counts.tolist(), reading.votes.annotators) == ([[1, 2], [1, 0]], None)
        assert read("item,votes\na,Yes;Yes;No\nb,No\n", label="votes", format="lists").votes.counts.tolist() == [
            [1, 2],
            [1, 0],
        ]

    def test_flags(self, read: Any) -> None:
        table = "id,rater_id,joy,fear\nx,1,1,1\nx,2,0,1\ny,1,0,0\n"
        votes = read(table, format="flags").votes
        assert votes.classes == ("joy", "fear", "none")
        assert votes.counts.tolist() == [[1, 2, 0], [0, 0, 1]]
        assert votes.judgement.tolist() == [0, 0, 1, 2]
        with pytest.raises(InputError, match="line 4: '2' in column 'joy'"):
            read(table.replace("y,1,0", "y,1,2"), format="flags")


def test_item_attributes_are_one_value_an_item(read: Any) -> None:
    table = "item,worker,label,source\n1,a,x,web\n1,b,y,web\n2,a,x,book\n"
    assert read(table, item_attributes=("source",)).votes.item_attributes["source"].tolist() == ["web", "book"]
    with pytest.raises(InputError, match="line 3: item '1' has 'book' in column 'source'"):
        read(table.replace("1,b,y,web", "1,b,y,book"), item_attributes=("source",))


def test_a_word_for_missing_in_a_set_is_told(read: Any) -> None:
    lines = '{"item": 1, "annotator": "a", "labels": ["x", "y"]}\n{"item": 1, "annotator": "b", "labels": ["NA"]}\n'
    assert "the label 'NA' looks like a missing one, and is kept as a class" in read(lines, "v.jsonl").notes


class TestSecondHeader:
    ROWS = "".join(f"i{k},{who},{'cat' if k % 3 else 'dog'}\n" for k in range(6) for who in ("a", "b"))
    WIDE = "".join(f"i{k},{'cat' if k % 3 else 'dog'},cat,dog\n" for k in range(12))

    @pytest.mark.parametrize(
        ("table", "line"),
        [
            (f"item,annotator,label\n{ROWS}", "ITEM,ANNOTATOR,LABEL\n"),
            (f"item,annotator,label\nWhich text,Your name,Which animal?\n{ROWS}", ""),
            (f"item,r1,r2,r3\n{WIDE}", "Item,first,second,third\n"),
            (f"item,r1,r2,r3\nWhich text,First rater,Second rater,Third rater\n{WIDE}", ""),
        ],
    )
    def test_in_other_words_is_asked_about(self, read: Any, table: str, line: str) -> None:
        with pytest.raises(InputError, match=r"second head(er|ing)"):
            read(table + line)

    @pytest.mark.parametrize(
        "table",
        [
            f"item,annotator,label\ni9,a,eel\n{ROWS}",
            f"item,r1,r2,r3\ni99,eel,cat,dog\n{WIDE}",
        ],
        ids=["by somebody who said more", "beside others of the item"],
    )
    def test_is_not_every_rare_class(self, read: Any, table: str) -> None:
        assert "eel" in read(table).votes.classes


class TestWhatAStrangerBroke:
    """Each was read wrongly once, without a word."""

    @pytest.mark.parametrize(
        ("table", "sentence"),
        [
            (
                "item,anna,ben,carla,label\na,yes,no,yes,yes\nb,no,no,no,no\nc,yes,yes,no,yes\n",
                "hold labels as 'label'",
            ),
            ('item,annotator,labels\na,x,"joy, anger"\na,y,joy\nb,x,sadness\nb,y,"joy, sadness"\n', "several labels"),
            ("item,annotator,label\na,x,joy/anger\na,y,joy\nb,x,anger\nb,y,anger\n", "several labels"),
            ("id,doc,annotator,label\n1,d1,x,yes\n2,d1,y,no\n3,d2,x,no\n4,d2,y,no\n", "'doc' repeats"),
            ("item,yes,no,Summe\na,3,2,5\nb,1,3,4\nc,0,3,3\n", "adds them up"),
            ("item;annotator;rating\na;x;1,5\na;y;2,0\nb;x;3,5\nb;y;1,5\n", "decimal comma"),
        ],
        ids=["people beside a label", "commas", "slashes", "row numbers", "a sum", "decimal commas"],
    )
    def test_is_asked_about_and_every_advice_is_read(self, read: Any, table: str, sentence: str) -> None:
        with pytest.raises(InputError, match=sentence) as refusal:
            read(table)
        for reading in refusal.value.readings.values():
            assert len(read(table, **reading).votes)

    def test_objects_written_as_text_are_refused(self, read: Any) -> None:
        with pytest.raises(InputError, match="an object written as text"):
            read("item,labels\na,\"{'anna': 'yes', 'ben': 'no'}\"\nb,\"{'anna': 'no'}\"\n")

    def test_times_that_are_not_understood_decide_nothing(self, read: Any) -> None:
        rows = "a,x,yes,1/2/2024 9:00 PM\na,x,no,1/2/2024 10:00 AM\na,y,no,1/2/2024 9:00 PM\n"
        with pytest.raises(InputError, match="write them as ISO 8601 does"):
            read(f"item,annotator,label,timestamp\n{rows}", duplicates="last", force=True)

    def test_annotators_who_are_called_like_models_are_told(self, read: Any) -> None:
        told = read("item,anna,ben,gpt-4\na,yes,no,yes\nb,no,no,no\nc,yes,yes,no\n").notes
        assert any("'gpt-4' may be no people" in note for note in told)
        assert not any("may be no people" in note for note in read("item,anna,ben\na,yes,no\nb,no,no\n").notes)


def votes_by_item(rows: list[tuple[str, str, str]]) -> dict[str, list[str]]:
    """The labels of each item, sorted: what any right reading of these rows holds."""
    return {item: sorted(label for other, _, label in rows if other == item) for item, _, _ in rows}


def labels_of(reading: Any) -> dict[str, list[str]]:
    votes = reading.votes
    rows = [(str(votes.items[i]), "", votes.classes[k]) for i, k in zip(votes.item, votes.label, strict=True)]
    return votes_by_item(rows)


PANEL = [(f"t{i}", f"r{(i + j) % 5}", "Yes" if (i * i + j) % 3 else "No") for i in range(12) for j in range(3)]


class TestOtherScripts:
    """Names of columns that are known to no list: the values say what is what."""

    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)], ids=["usual", "label first", "people first"])
    def test_the_columns_of_a_long_file_are_offered_by_their_values(
        self, read: Any, order: tuple[int, int, int]
    ) -> None:
        names = ("النص", "المعلق", "التصنيف")
        lines = [",".join(row[k] for k in order) for row in [names, *PANEL]]
        with pytest.raises(InputError) as refusal:
            read("\n".join(lines))
        assert [*refusal.value.readings.values()] == [
            {"format": "long", "item": names[0], "annotator": names[1], "label": names[2]}
        ]
        for way in refusal.value.readings.values():
            assert labels_of(read("\n".join(lines), **way)) == votes_by_item(PANEL)

    def test_a_wide_table_is_offered_with_the_column_that_differs_in_each_row(self, read: Any) -> None:
        cells = votes_by_item(PANEL)
        lines = [
            "質問,甲,乙,丙",
            *(",".join([item, *labels[k % 3 :], *labels[: k % 3]]) for k, (item, labels) in enumerate(cells.items())),
        ]
        with pytest.raises(InputError) as refusal:
            read("\n".join(lines))
        ways = [*refusal.value.readings.values()]
        assert {"format": "wide", "item": "質問"} in ways
        for way in ways:
            assert labels_of(read("\n".join(lines), **way)) == cells


def test_a_slider_with_decimal_commas_is_read_as_one_with_points(read: Any) -> None:
    numbers = [f"{k * 37 % 1009 / 10}" for k in range(36)]
    rows = [(item, who, number) for (item, who, _), number in zip(PANEL, numbers, strict=True)]
    points = "\n".join(["item;annotator;score", *map(";".join, rows)])
    commas = points.replace(".", ",")
    expected = labels_of(read(points, bins=("5",)))
    for asked in ({}, {"format": "long"}):
        with pytest.raises(InputError) as refusal:
            read(commas, **asked)
        assert {"bins": ["5"]} in refusal.value.readings.values()
        assert labels_of(read(commas, **asked, bins=("5",))) == expected
    wide = "item;ann;ben\n" + "".join(f"t{k};{k},5;{(k * 7) % 30},25\n" for k in range(24))
    assert labels_of(read(wide, format="wide", bins=("3",))) == labels_of(
        read(wide.replace(",", "."), format="wide", bins=("3",))
    )


class TestNested:
    @pytest.mark.parametrize("inner", ["annotations", "labels", "votes"])
    def test_a_list_of_objects_in_each_line_is_one_row_per_vote(self, tmp_path: Path, inner: str) -> None:
        lines = [
            {"id": item, "text": "x", inner: [{"id": k, "annotator": who, "label": said} for k, (who, said) in votes]}
            for item in dict.fromkeys(row[0] for row in PANEL)
            for votes in [[*enumerate([row[1:] for row in PANEL if row[0] == item])]]
        ]
        lines.insert(0, {"id": "nobody's", "text": "y", inner: []})
        path = tmp_path / "votes.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)))
        for source in (path, lines):
            reading = understand(source)
            assert labels_of(reading) == votes_by_item(PANEL)
            assert reading.columns == {"item": "id", "annotator": "annotator", "label": "label"}
            assert f"left out: 1 row with nothing in '{inner}'" in reading.notes

    def test_what_is_nested_deeper_is_refused_in_plain_words(self, tmp_path: Path) -> None:
        path = tmp_path / "votes.jsonl"
        path.write_text('{"item": "a", "annotator": "x", "label": {"value": {"choice": "yes"}}}\n' * 2)
        with pytest.raises(InputError, match="holds lists, objects or bytes; give a name"):
            understand(path)


class TestPeopleTwice:
    def test_a_name_and_a_number_of_each_person_are_no_two_people(self, read: Any) -> None:
        lines = [",user,item,worker_id,answer,timestamp"]
        lines += [f"{k},n{who},{item},{who},{said},2024-01-0{k % 9 + 1}" for k, (item, who, said) in enumerate(PANEL)]
        assert labels_of(read("\n".join(lines))) == votes_by_item(PANEL)
        mixed = [line.replace("nr1", "nr2") for line in lines]
        with pytest.raises(InputError, match="more than one thing"):
            read("\n".join(mixed))

    def test_dates_are_no_labels_of_a_wide_table(self, read: Any) -> None:
        lines = ["item,ann,ben,when", *(f"t{k},{'ab'[k % 2]},a,2024-01-0{k + 1} 10:00" for k in range(6))]
        with pytest.raises(InputError, match="'when' holds dates and times") as refusal:
            read("\n".join(lines), format="wide")
        (way,) = refusal.value.readings.values()
        assert read("\n".join(lines), **way).votes.classes == ("a", "b")


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (["1", "2", "3"], "ordered=True"),
        (["strongly agree", "agree", "strongly disagree"], "in order with classes="),
        (["cat", "dog", "very odd"], None),
        (["0", "1"], None),
    ],
    ids=["numbers", "phrases", "names", "two numbers"],
)
def test_labels_that_look_like_a_scale_are_told(read: Any, labels: list[str], told: str | None) -> None:
    content = "item,annotator,label\n" + "".join(f"{k},a,{label}\n" for k, label in enumerate(labels * 2))
    assert any("ordered=True" in note for note in read(content).notes) == (told is not None)
    assert told is None or any(told in note for note in read(content).notes)
    assert not any("ordered=True" in note for note in read(content, ordered=False).notes)


@pytest.mark.parametrize(("code", "name"), [("utf-16", "UTF-16"), ("cp1252", "WINDOWS-1252")])
def test_text_that_is_not_utf8_is_refused_with_the_command_that_writes_it_so(
    tmp_path: Path, code: str, name: str
) -> None:
    path = tmp_path / "my votes.csv"
    path.write_bytes("item,label\na,schön\na,gut\n".encode(code))
    with pytest.raises(InputError, match=f"iconv -f {name}") as refusal:
        understand(path)
    subprocess.run(refusal.value.sentence.partition("UTF-8: ")[2], shell=True, check=True)
    assert understand(tmp_path / "my votes-utf8.csv").votes.classes == ("gut", "schön")
