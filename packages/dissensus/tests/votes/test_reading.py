"""Any file of votes is read as a person would read it, or refused in one sentence."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dissensus.errors import InputError
from dissensus.votes.reading import FORMATS, Options, read_votes, understand
from dissensus.votes.rows import is_scale

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.table import Votes


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write_file(content: str | bytes, name: str = "votes.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def said(votes: Votes) -> list[tuple[Any, ...]]:
    """Each vote as (item, annotator, class, unsure)."""
    who = [None] * len(votes)
    if votes.annotators is not None:
        who = votes.annotators.names[votes.annotators.code].tolist()
    unsure = [False] * len(votes) if votes.unsure is None else votes.unsure.tolist()
    labels = [votes.classes[k] for k in votes.label]
    return list(zip(votes.items[votes.item].tolist(), who, labels, unsure, strict=True))


LONG = "item,worker,label\n7,ann,dog\n7,bob,cat\n3,ann,cat\n"


class TestLong:
    def test_one_row_a_vote(self, write: Any) -> None:
        votes = read_votes(write(LONG))
        assert said(votes) == [(7, "ann", "dog", False), (7, "bob", "cat", False), (3, "ann", "cat", False)]
        assert votes.classes == ("cat", "dog")
        assert votes.items.dtype == np.int64
        assert (votes.judgement, votes.unsure, votes.none, votes.ordered) == (None, None, None, False)

    @pytest.mark.parametrize("name", ["v.csv", "v.tsv", "v.parquet", "v.jsonl", "v.ndjson", "v.pq"])
    def test_every_kind_of_file_counts_as_pandas_does(self, tmp_path: Path, name: str) -> None:
        rng = np.random.default_rng(5)
        pairs = rng.permutation(400 * 9)[:2_000]
        frame = pd.DataFrame(
            {"item": pairs // 9, "annotator": [f"w{k}" for k in pairs % 9], "label": rng.choice(list("abc"), 2_000)}
        )
        path = tmp_path / name
        {
            ".csv": lambda: frame.to_csv(path, index=False),
            ".tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
            ".jsonl": lambda: frame.to_json(path, orient="records", lines=True),
            ".ndjson": lambda: frame.to_json(path, orient="records", lines=True),
        }.get(path.suffix, lambda: frame.to_parquet(path))()
        votes = read_votes(path)
        expected = pd.crosstab(frame["item"], frame["label"])
        np.testing.assert_array_equal(votes.counts[np.argsort(votes.items)], expected.to_numpy())
        assert votes.items.tolist() == frame["item"].unique().tolist()
        assert votes.annotators is not None
        assert votes.annotators.names.tolist() == frame["annotator"].unique().tolist()

    def test_leading_zeros_are_part_of_a_name(self, write: Any) -> None:
        votes = read_votes(write("item,worker,label\n007,1,a\n8,2,a\n"))
        assert votes.items.tolist() == ["007", "8"]
        assert votes.annotators is not None
        assert votes.annotators.names.tolist() == [1, 2]

    def test_parquet_keeps_its_types(self, tmp_path: Path) -> None:
        path = tmp_path / "v.parquet"
        pl.DataFrame({"item": ["1", "2"], "worker": [1.0, 2.0], "label": [True, False]}).write_parquet(path)
        votes = read_votes(path)
        assert votes.items.tolist() == ["1", "2"]
        assert votes.annotators is not None
        assert votes.annotators.names.tolist() == [1, 2]
        assert votes.classes == ("false", "true")

    def test_numbers_too_large_for_int64_stay_text(self, tmp_path: Path) -> None:
        path = tmp_path / "v.parquet"
        pl.DataFrame({"item": pl.Series([2**64 - 1, 1], dtype=pl.UInt64), "label": ["a", "b"]}).write_parquet(path)
        assert read_votes(path).items.tolist() == [str(2**64 - 1), "1"]

    def test_semicolons_and_a_byte_order_mark_are_no_trouble(self, write: Any) -> None:
        assert said(read_votes(write("\ufeff" + LONG.replace(",", ";")))) == said(read_votes(write(LONG)))

    def test_blank_lines_are_skipped_and_windows_line_ends_read(self, write: Any) -> None:
        assert said(read_votes(write(LONG.replace("\n", "\r\n")))) == said(read_votes(write(LONG)))
        assert said(read_votes(write(LONG.replace("\n", "\n\n")))) == said(read_votes(write(LONG)))

    def test_brackets_in_a_file_name_are_no_pattern(self, write: Any) -> None:
        assert len(read_votes(write(LONG, "votes[1]*.csv"))) == 3
        assert len(read_votes(write('{"item":1,"label":"a"}', "votes[1]*.jsonl"))) == 1

    def test_without_an_annotator_column_votes_are_anonymous(self, write: Any) -> None:
        reading = understand(write("item,label\n1,a\n1,a\n2,b\n"))
        assert reading.votes.annotators is None
        assert reading.votes.counts.tolist() == [[2, 0], [0, 1]]
        assert reading.notes == ("no column names the annotators; the votes are anonymous",)

    def test_an_attribute_describes_each_annotator_once(self, write: Any) -> None:
        path = write("item,worker,label,age,country\n1,a,x,31,\n1,b,y,45,NL\n2,a,x,31,\n")
        votes = read_votes(path, attributes=["age", "country"])
        assert votes.annotator_attributes["age"].tolist() == [31, 45]
        assert votes.annotator_attributes["country"].tolist() == ["", "NL"]
        assert read_votes(path).annotator_attributes == {}

    @pytest.mark.parametrize("cells", [("", "NL", ""), ("NL", "", ""), ("", "", "NL")])
    def test_an_empty_cell_does_not_contradict_what_other_rows_say(self, write: Any, cells: tuple[str, ...]) -> None:
        rows = "".join(f"{number},a,x,{cell}\n" for number, cell in enumerate(cells))
        votes = read_votes(write(f"item,worker,label,country\n{rows}9,b,y,\n"), attributes=["country"])
        assert votes.annotator_attributes["country"].tolist() == ["NL", ""]
        with pytest.raises(InputError, match="line 6: annotator 'a' has 'UK' in column 'country', and 'NL' before"):
            read_votes(write(f"item,worker,label,country\n{rows}9,b,y,\n8,a,x,UK\n"), attributes=["country"])

    def test_seconds_belong_to_the_judgement(self, write: Any) -> None:
        votes = read_votes(write("item,worker,label,lead_time\n1,a,x,1.5\n1,b,y,\n"))
        np.testing.assert_array_equal(votes.seconds, [1.5, np.nan])

    @pytest.mark.parametrize("cell", ["2024-05-01 10:00", "1714557600"])
    def test_a_time_of_day_is_not_taken_for_seconds(self, write: Any, cell: str) -> None:
        reading = understand(write(f"item,worker,label,time\n1,a,x,{cell}\n"))
        assert reading.votes.seconds is None
        assert reading.columns["time"] == "time"
        assert reading.votes.time is not None
        assert reading.votes.time.tolist() == [datetime(2024, 5, 1, 10)]

    def test_what_is_neither_seconds_nor_a_time_is_not_used(self, write: Any) -> None:
        reading = understand(write("item,worker,label,time\n1,a,x,noon\n"))
        assert reading.votes.seconds is None
        assert reading.votes.time is None
        assert reading.notes == ("column 'time' holds no seconds and is not used",)


class TestClasses:
    def test_numbers_are_ordered_by_size(self, write: Any) -> None:
        assert read_votes(write("item,label\n1,10\n1,-2\n1,9\n")).classes == ("-2", "9", "10")

    def test_whole_numbers_lose_their_decimal_point(self, write: Any) -> None:
        votes = read_votes(write("item,label\n1,10.0\n1,9.0\n2,9\n"))
        assert votes.classes == ("9", "10")
        assert votes.label.tolist() == [1, 0, 0]

    def test_numbers_that_are_not_whole_keep_it(self, write: Any) -> None:
        assert read_votes(write("item,label\n1,10.0\n1,9.5\n")).classes == ("9.5", "10.0")

    def test_given_classes_give_the_order_and_the_unused(self, write: Any) -> None:
        votes = read_votes(write(LONG), classes=["dog", "eel", "cat"])
        assert votes.classes == ("dog", "eel", "cat")
        assert votes.label.tolist() == [0, 2, 2]

    def test_an_enum_has_its_own_order(self, tmp_path: Path) -> None:
        path = tmp_path / "v.parquet"
        label = pl.Series(["low", "high"], dtype=pl.Enum(["low", "middle", "high"]))
        pl.DataFrame({"item": [1, 1], "label": label}).write_parquet(path)
        assert read_votes(path).classes == ("low", "middle", "high")

    @pytest.mark.parametrize(
        ("column", "labels", "ordered"),
        [("rating", "1,5", True), ("star_rating", "1,5", True), ("label", "1,5", False), ("rating", "good,bad", False)],
    )
    def test_a_scale_is_guessed_for_numbers_in_a_column_named_like_a_rating(
        self, write: Any, column: str, labels: str, ordered: bool
    ) -> None:
        low, high = labels.split(",")
        path = write(f"item,{column}\n1,{low}\n1,{high}\n")
        assert read_votes(path, label=column).ordered is ordered
        assert read_votes(path, label=column, ordered=not ordered).ordered is not ordered
        assert read_votes(path, label=column, classes=[low, high]).ordered is (column != "label")


RESPONSES = (
    "item,annotator,class,response,seconds\n"
    "i,ann,cat,yes,4\ni,ann,dog,unsure,4\ni,bob,cat,No,\ni,bob,dog,n,\nj,ann,dog,Y,2\nj,ann,cat,?,2\n"
)


class TestResponses:
    def test_no_is_the_absence_of_a_vote_and_all_no_is_none(self, write: Any) -> None:
        reading = understand(write(RESPONSES))
        votes = reading.votes
        assert said(votes) == [
            ("i", "ann", "cat", False),
            ("i", "ann", "dog", True),
            ("i", "bob", "none", False),
            ("j", "ann", "cat", True),
            ("j", "ann", "dog", False),
        ]
        assert votes.judgement is not None
        assert votes.judgement.tolist() == [0, 0, 1, 2, 2]
        assert (votes.classes, votes.none) == (("cat", "dog", "none"), 2)
        np.testing.assert_array_equal(votes.seconds, [4, np.nan, 2])
        assert reading.columns == {
            "item": "item",
            "annotator": "annotator",
            "label": "class",
            "response": "response",
            "seconds": "seconds",
        }

    def test_unanswered_classes_are_read_as_no_and_told(self, write: Any) -> None:
        reading = understand(write("item,annotator,class,response\n1,a,x,yes\n1,b,x,no\n1,b,y,no\n"))
        assert said(reading.votes) == [(1, "a", "x", False), (1, "b", "none", False)]
        assert reading.notes == ("1 judgement with unanswered classes, read as no",)

    def test_given_classes_say_what_was_asked(self, write: Any) -> None:
        votes = read_votes(write(RESPONSES), classes=["eel", "dog", "cat"])
        assert votes.classes == ("eel", "dog", "cat", "none")
        assert read_votes(write(RESPONSES), classes=votes.classes).classes == votes.classes

    def test_a_response_column_alone_holds_the_labels(self, write: Any) -> None:
        reading = understand(write("item,worker,response\n1,a,cat\n1,b,dog\n"))
        assert reading.votes.classes == ("cat", "dog")
        assert reading.columns["label"] == "response"


class TestSets:
    @pytest.mark.parametrize("mark", ["|", ";", "; "])
    def test_several_labels_in_one_cell(self, write: Any, mark: str) -> None:
        votes = read_votes(write(f"item,worker,label\n1,a,cat{mark}dog\n1,b,dog\n2,a,cat\n"))
        assert said(votes) == [
            (1, "a", "cat", False),
            (1, "a", "dog", False),
            (1, "b", "dog", False),
            (2, "a", "cat", False),
        ]
        assert votes.judgement is not None
        assert votes.judgement.tolist() == [0, 0, 1, 2]
        assert votes.none is None

    def test_lists_in_jsonl_and_the_empty_set_is_none(self, write: Any) -> None:
        lines = [{"item": 1, "labels": ["b", "a"]}, {"item": 1, "labels": []}, {"item": 1, "labels": ["a"]}]
        reading = understand(write("\n".join(json.dumps(line) for line in lines), "v.jsonl"))
        votes = reading.votes
        assert [votes.classes[k] for k in votes.label] == ["a", "b", "none", "a"]
        assert votes.judgement is not None
        assert votes.judgement.tolist() == [0, 0, 1, 2]
        assert votes.none == 2
        assert "1 judgement without a class, read as a vote for 'none'" in reading.notes

    def test_an_empty_cell_is_an_empty_set_where_sets_are_asked_for(self, write: Any) -> None:
        votes = read_votes(write("item,worker,label,seconds\n1,a,x|y,3\n1,b,,5\n"), format="sets")
        assert said(votes)[-1] == (1, "b", "none", False)
        np.testing.assert_array_equal(votes.seconds, [3, 5])

    def test_a_mark_of_the_users_own(self, write: Any) -> None:
        votes = read_votes(write("item,worker,label\n1,a,x+y\n"), separator="+")
        assert votes.classes == ("x", "y")

    def test_long_leaves_the_mark_in_the_label(self, write: Any) -> None:
        votes = read_votes(write("item,worker,label\n1,a,x|y\n"), format="long")
        assert votes.classes == ("x|y",)

    def test_sets_of_one_label_are_single_choices(self, write: Any) -> None:
        votes = read_votes(write(LONG), format="sets")
        assert votes.judgement is None
        assert said(votes) == said(read_votes(write(LONG)))


class TestWide:
    def test_empty_cells_and_empty_columns(self, write: Any) -> None:
        votes = read_votes(write("item,ann1,ann2,ann3\nx,cat,,dog\ny,,,cat\n"))
        assert said(votes) == [("x", "ann1", "cat", False), ("x", "ann3", "dog", False), ("y", "ann3", "cat", False)]
        assert votes.annotators is not None
        assert votes.annotators.names.tolist() == ["ann1", "ann2", "ann3"]

    def test_a_column_with_gaps_may_hold_the_same_numbers_with_a_decimal_point(self, write: Any) -> None:
        votes = read_votes(write("item,ann1,ann2\n1,3,3.0\n2,4,\n"))
        assert votes.classes == ("3", "4")

    def test_any_names_where_the_columns_share_their_labels(self, write: Any) -> None:
        reading = understand(write("item,ann,bob\n1,cat,dog\n2,dog,dog\n"))
        assert reading.format == "wide"
        assert reading.votes.counts.tolist() == [[1, 1], [0, 2]]


class TestCounts:
    def test_a_column_a_class(self, write: Any) -> None:
        votes = read_votes(write("item,cat,dog\nx,2,1\ny,0,1\n"), format="counts")
        assert votes.counts.tolist() == [[2, 1], [0, 1]]
        assert (votes.items.tolist(), votes.classes, votes.annotators) == (["x", "y"], ("cat", "dog"), None)

    def test_found_where_every_item_has_the_same_panel(self, write: Any) -> None:
        rows = "\n".join(f"{k},{k},{7 - k}" for k in range(6))
        assert understand(write(f"id,yes,no\n{rows}\n")).format == "counts"

    def test_chosen_columns_in_the_given_order(self, write: Any) -> None:
        votes = read_votes(write("cat,dog,total\n2,1,3\n"), format="counts", classes=["dog", "cat"])
        assert votes.counts.tolist() == [[1, 2]]
        assert votes.items.tolist() == [0]

    def test_npy(self, tmp_path: Path) -> None:
        np.save(tmp_path / "v.npy", np.array([[1.0, 2.0], [0.0, 3.0]]))
        votes = read_votes(tmp_path / "v.npy", classes=["a", "b"], ordered=True)
        assert votes.counts.tolist() == [[1, 2], [0, 3]]
        assert (votes.classes, votes.ordered) == (("a", "b"), True)


class TestRepeatedJudgements:
    FILE = "item,worker,label,seconds\n1,a,x,1\n1,b,y,2\n1,a,y,3\n"

    @pytest.mark.parametrize(("keep", "labels", "seconds"), [("first", "xy", [1, 2]), ("last", "yy", [2, 3])])
    def test_one_is_kept_when_asked(self, write: Any, keep: Any, labels: str, seconds: list[float]) -> None:
        reading = understand(write(self.FILE), Options(duplicates=keep, force=True))
        assert [reading.votes.classes[k] for k in reading.votes.label] == list(labels)
        assert reading.votes.seconds is not None
        assert reading.votes.seconds.tolist() == seconds
        assert reading.notes == (f"1 repeated row left out, the {keep} of each kept",)

    @pytest.mark.parametrize(("keep", "unsure", "seconds"), [("first", False, 3), ("last", True, 4)])
    def test_also_for_responses(self, write: Any, keep: Any, unsure: bool, seconds: float) -> None:
        path = write("item,worker,class,response,seconds\n1,a,x,yes,3\n1,a,x,unsure,4\n")
        votes = read_votes(path, duplicates=keep, force=True)
        assert said(votes) == [(1, "a", "x", unsure)]
        assert votes.seconds is not None
        assert votes.seconds.tolist() == [seconds]


REFUSED: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "missing column": ("thing,worker,label\n1,a,x\n", {}, ["'thing', 'worker', 'label'", "item="]),
    "wrong column": (LONG, {"label": "labl"}, ["no column 'labl'", "'label'", "label="]),
    "wrong attribute": (LONG, {"attributes": ["age"]}, ["no column 'age'"]),
    "unknown label": (LONG, {"classes": ["dog"]}, ["line 3", "'cat'", "classes="]),
    "missing label": ("item,worker,label\n1,a,x\n1,b,\n", {}, ["line 3", "column 'label' is empty"]),
    "missing item": ('item,worker,label\n1,a,x\n"",b,x\n', {}, ["line 3", "column 'item' is empty"]),
    "duplicate judgement": (
        "item,worker,label\n1,a,x\n1,b,x\n1,a,y\n",
        {},
        ["line 4", "annotator 'a', item '1'", "line 2", "duplicates="],
    ),
    "duplicate response": (
        "item,worker,class,response\n1,a,x,yes\n1,a,x,yes\n",
        {},
        ["line 3", "annotator 'a'", "class 'x'"],
    ),
    "contradictory response": (
        "item,worker,class,response\n1,a,x,yes\n1,b,x,no\n1,a,x,no\n",
        {},
        ["line 4", "'no' to class 'x' after 'yes'"],
    ),
    "unknown response": ("item,worker,class,response\n1,a,x,1\n", {}, ["line 2", "'1'", "no, yes or unsure"]),
    "anonymous responses": ("item,class,response\n1,x,yes\n", {}, ["annotator="]),
    "a class called none": ("item,worker,class,response\n1,a,none,yes\n", {}, ["line 2", "'none'"]),
    "negative seconds": ("item,worker,label,s\n1,a,x,-1\n", {"seconds": "s"}, ["line 2", "'-1'", "seconds"]),
    "infinite seconds": ("item,worker,label,s\n1,a,x,inf\n", {"seconds": "s"}, ["line 2", "'inf'"]),
    "seconds in words": ("item,worker,label,s\n1,a,x,1\n1,b,x,two\n", {"seconds": "s"}, ["line 3", "'two'"]),
    "two times for one judgement": (
        "item,worker,class,response,seconds\n1,a,x,yes,1\n1,a,y,no,2\n",
        {},
        ["annotator 'a', item '1'", "one time per judgement"],
    ),
    "an attribute that changes": (
        "item,worker,label,age\n1,a,x,30\n2,a,x,31\n",
        {"attributes": ["age"]},
        ["line 3", "annotator 'a'", "'31'", "'30'"],
    ),
    "attributes of nobody": ("item,label,age\n1,x,30\n", {"attributes": ["age"]}, ["annotator="]),
    "a label twice in a set": ("item,label\n1,x\n1,y|x|y\n", {"format": "sets"}, ["line 3", "'y' stands twice"]),
    "none beside a label": ("item,label\n1,x|none\n", {"format": "sets"}, ["line 2", "'none'"]),
    "one label or several": ("item,label\n1,x|y\n", {}, ["'x|y'", "format='long'", "format='sets'"]),
    "wide or counts": ("item,u,v\n1,2,3\n2,2,2\n", {}, ["format='wide'", "format='counts'"]),
    "long or wide": ("item,ann1,ann2,label\n1,x,y,x\n", {}, ["format='long'", "format='wide'"]),
    "an item twice in a wide table": ("item,ann1,ann2\n1,x,y\n1,,x\n", {}, ["line 3", "item '1'"]),
    "an empty row in a wide table": ("item,ann1,ann2\n1,x,y\n2,,\n", {}, ["line 3", "item '2' has zero votes"]),
    "zero votes": ("item,x,y\n1,1,0\n2,0,0\n", {"format": "counts"}, ["line 3", "item '2' has zero votes"]),
    "negative count": ("item,x,y\n1,1,0\n2,-1,0\n", {"format": "counts"}, ["line 3", "-1", "class 'x'"]),
    "fractional count": ("item,x,y\n1,1,0.5\n", {"format": "counts"}, ["line 2", "0.5", "class 'y'"]),
    "missing count": ("item,x,y\n1,1,\n", {"format": "counts"}, ["line 2", "class 'y'"]),
    "incredible count": ("item,x,y\n1,1,1e12\n", {"format": "counts"}, ["line 2", "class 'y'"]),
    "unknown format": (LONG, {"format": "excel"}, ["'excel'", "long, wide, counts, sets"]),
    "an option of another format": (LONG, {"format": "wide", "seconds": "label"}, ["wide", "seconds="]),
    "a separator in a long file": (LONG, {"format": "long", "separator": "|"}, ["long", "separator="]),
    "unknown way with duplicates": (LONG, {"duplicates": "both"}, ["'both'", "refuse, first or last"]),
    "too many cells": (LONG + "1,2,3,4\n", {}, ["line 5", "4 cells"]),
    "empty file": ("", {}, ["the file is empty"]),
    "blank file": ("\n \n", {}, ["the file is empty"]),
    "header only": ("item,worker,label\n", {}, ["holds no rows"]),
    "one blank row": ("item,worker,label\n\n", {}, ["holds no rows"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_votes_are_refused_in_one_sentence(write: Any, case: str) -> None:
    content, options, fragments = REFUSED[case]
    path = write(content)
    with pytest.raises(InputError) as refused:
        read_votes(path, **options)
    sentence = str(refused.value)
    assert sentence.startswith(str(path))
    assert "\n" not in refused.value.sentence
    for fragment in fragments:
        assert fragment in sentence.removeprefix(str(path))


BROKEN: dict[str, tuple[str, bytes, list[str]]] = {
    "empty once decompressed": ("v.jsonl.gz", gzip.compress(b"\n"), ["the file is empty"]),
    "broken UTF-8": ("v.csv", b"item,label\n1,a\n2,\xff\n", ["line 3", "UTF-8"]),
    "broken UTF-8 in the header": ("v.csv", b"item,lab\xe9l\n1,a\n", ["line 1", "UTF-8"]),
    "UTF-16": ("v.csv", LONG.encode("utf-16"), ["line 1", "UTF-8"]),
    "broken UTF-8 in JSONL": ("v.jsonl", b'{"item":1,"label":"a"}\n{"item":1,"label":"\xff"}\n', ["line 2", "UTF-8"]),
    "broken JSON": ("v.jsonl", b'{"item":1,"label":"a"}\n\n{"item":2,"lab\n', ["line 3", "not JSON"]),
    "JSON without objects": ("v.jsonl", b"[1,2]\n", ["line 1", "not an object"]),
    "JSON of no use": ("v.jsonl", b'{"item":{"a":1},"label":"x"}\n', ["line 1", "column 'item'"]),
    "a missing key": ("v.jsonl", b'{"item":1,"label":"x"}\n{"item":2}\n', ["line 2", "column 'label'"]),
    "no Parquet": ("v.parquet", b"PAR1 and nothing else", ["Parquet"]),
    "no npy": ("v.npy", b"\x93NUMPY\x01\x00garbage", ["npy"]),
    "compressed": ("v.csv", b"\x1f\x8b\x08\x00garbage", ["compressed"]),
    "unknown extension": ("v.docx", b"item,label\n", [".docx", ".csv"]),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_refused_in_one_sentence(write: Any, case: str) -> None:
    name, content, fragments = BROKEN[case]
    path = write(content, name)
    with pytest.raises(InputError) as refused:
        read_votes(path)
    sentence = str(refused.value)
    assert sentence.startswith(str(path))
    assert "\n" not in refused.value.sentence
    for fragment in fragments:
        assert fragment in sentence


def test_a_truncated_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.parquet"
    pl.DataFrame({"item": range(1_000), "label": ["a"] * 1_000}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="not a whole Parquet file"):
        read_votes(path)


@pytest.mark.parametrize(
    ("array", "fragment"), [([1, 2], "shape"), ([[1, -2]], "-2"), ([["a"]], "<U1"), ([[True]], "bool")]
)
def test_an_array_that_is_no_table_of_counts_is_refused(tmp_path: Path, array: Any, fragment: str) -> None:
    np.save(tmp_path / "v.npy", np.array(array))
    with pytest.raises(InputError, match=fragment):
        read_votes(tmp_path / "v.npy")


@pytest.mark.parametrize("seconds", [[["a"]], [[1.0]], [datetime(2024, 1, 1)]])
def test_only_numbers_are_seconds(tmp_path: Path, seconds: Any) -> None:
    path = tmp_path / "v.parquet"
    pl.DataFrame({"item": [1], "label": ["x"], "seconds": seconds}).write_parquet(path)
    assert read_votes(path).seconds is None
    with pytest.raises(InputError, match=r"row 1: .* is not a time"):
        read_votes(path, seconds="seconds")


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this is a folder"):
        read_votes(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        read_votes(tmp_path / "nothing.csv")


def test_the_line_is_right_where_cells_hold_line_breaks(write: Any) -> None:
    path = write('item,worker,text,label\n1,a,"one\ntwo\n\nthree",x\n\n1,b,"four\n",x\n2,a,,\n')
    with pytest.raises(InputError, match=r"line 9: column 'label'"):
        read_votes(path)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["WorkerId", "HITId", "task_id", "Answer"], {"item": "task_id", "annotator": "WorkerId", "label": "Answer"}),
        (["id", "image", "rater", "score"], {"item": "image", "annotator": "rater", "label": "score"}),
        (["uid", "user", "class"], {"item": "uid", "annotator": "user", "label": "class"}),
        (["Item ID", "annotator-id", "Vote "], {"item": "Item ID", "annotator": "annotator-id", "label": "Vote "}),
    ],
)
def test_columns_are_known_by_their_names(write: Any, columns: list[str], expected: dict[str, str]) -> None:
    path = write(f"{','.join(columns)}\n{','.join('1' for _ in columns)}\n")
    assert understand(path).columns == expected


def test_of_columns_that_are_spelled_alike_the_first_is_taken(write: Any) -> None:
    for columns in (["item_id", "ItemId", "Label", "label"], ["ItemId", "item_id", "label", "Label"]):
        path = write(f"{','.join(columns)}\na,b,x,y\n")
        assert understand(path).columns == {"item": columns[0], "label": columns[2]}


def test_a_column_has_one_role(write: Any) -> None:
    path = write("item,worker,label\n1,a,x\n2,a,y\n")
    reading = understand(path, Options(item="label", label="item"))
    assert reading.columns == {"item": "label", "annotator": "worker", "label": "item"}


def test_every_format_says_what_it_holds() -> None:
    assert {"long", "wide", "counts", "sets"} <= set(FORMATS)
    assert all(FORMATS.values())


MOMENTS = {
    "2024-05-31T17:45:00Z": "2024-05-31T17:45:00",
    "2024-05-31 17:45": "2024-05-31T17:45:00",
    "2024-05-31": "2024-05-31T00:00:00",
    "2024-05-31T17:45:00.123456789": "2024-05-31T17:45:00.123456",
    "2024-05-31 17:45:00 UTC": "2024-05-31T17:45:00",
    "2024-05-31T17:45:00+02:00": "2024-05-31T15:45:00",
    "2024-05-31T17:45:00-0530": "2024-05-31T23:15:00",
    "1717177500": "2024-05-31T17:45:00",
    "1717177500.25": "2024-05-31T17:45:00.25",
    "1717177500250": "2024-05-31T17:45:00.25",
    "1717177500250000": "2024-05-31T17:45:00.25",
}


@pytest.mark.parametrize("cell", MOMENTS)
@pytest.mark.parametrize("column", ["timestamp", "submitted_at", "done_at"])
def test_the_time_of_a_judgement_is_found_by_its_name(cell: str, column: str, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(f"item,annotator,label,{column}\na,x,cat,{cell}\na,y,dog,\n")
    reading = understand(path)
    assert reading.columns["time"] == column
    assert reading.votes.time is not None
    expected = np.array([MOMENTS[cell], "NaT"], dtype="datetime64[us]")
    np.testing.assert_array_equal(reading.votes.time, expected)


@pytest.mark.parametrize("cell", ["03/04/2024 10:00", "2024-13-01", "2024-05-31T25:00:00", "noon", "12", "x1717177500"])
def test_what_is_no_moment_is_refused_beside_others_and_not_used_alone(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(f"item,annotator,label,timestamp\na,x,cat,2024-05-31T17:45:00Z\na,y,dog,{cell}\n")
    with pytest.raises(InputError, match=rf"line 3: '{cell}' in column 'timestamp' is no moment; write it as"):
        read_votes(path)
    path.write_text(f"item,annotator,label,timestamp\na,x,cat,{cell}\na,y,dog,{cell}\n")
    reading = understand(path)
    assert reading.votes.time is None
    assert "column 'timestamp' holds no moments and is not used" in reading.notes
    with pytest.raises(InputError, match=rf"line 2: '{cell}' in column 'timestamp' is no moment"):
        read_votes(path, time="timestamp")


@pytest.mark.parametrize("column", ["timestamp", "seconds"])
def test_a_row_that_was_cut_short_is_refused_where_its_last_cell_may_be_empty(column: str, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(f"item,annotator,label,{column}\na,x,cat,1717177500\na,y,dog,\n")
    assert len(read_votes(path)) == 2
    path.write_text(f"item,annotator,label,{column}\na,x,cat,1717177500\na,y,dog\n")
    with pytest.raises(InputError, match=r"line 3: 3 cells, and the first line has 4"):
        read_votes(path)


def test_units_of_unix_time_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,annotator,label,timestamp\na,x,cat,1717177500\na,y,dog,1717177500250\n")
    with pytest.raises(InputError, match=r"line 3: '1717177500250' in column 'timestamp' is no moment"):
        read_votes(path)


def test_moments_of_a_frame_keep_their_time_zone(tmp_path: Path) -> None:
    moment = datetime(2024, 5, 31, 17, 45, tzinfo=ZoneInfo("Europe/Amsterdam"))
    votes = read_votes(
        [{"item": "a", "label": "cat", "at": moment}, {"item": "a", "label": "dog", "at": None}], time="at"
    )
    assert votes.time is not None
    np.testing.assert_array_equal(votes.time, np.array(["2024-05-31T15:45:00", "NaT"], dtype="datetime64[us]"))


def test_responses_of_one_judgement_have_the_time_of_its_first_row(tmp_path: Path) -> None:
    rows = [
        {"item": "a", "annotator": who, "label": name, "response": "yes", "done_at": 1_717_177_500 + second}
        for second, (who, name) in enumerate((who, name) for who in "xy" for name in ("cat", "dog"))
    ]
    votes = read_votes(rows)
    assert votes.time is not None
    expected = np.array(["2024-05-31T17:45:00", "2024-05-31T17:45:02"], dtype="datetime64[us]")
    np.testing.assert_array_equal(votes.time, expected)
    np.testing.assert_array_equal(votes.take_judgements(np.array([1])).time, expected[1:])


@pytest.mark.parametrize(
    ("column", "classes", "known", "scale"),
    [
        ("rating", ("bad", "fair", "good"), True, True),
        ("rating", ("bad", "fair", "good"), False, False),
        ("rating", ("1", "2", "10"), False, True),
        ("animal", ("bad", "fair", "good"), True, False),
    ],
)
def test_is_scale_given_order(column: str, classes: tuple[str, ...], known: bool, scale: bool) -> None:
    assert is_scale(column, classes, known=known, place=str) == scale


def test_read_votes_given_order_of_ratings_is_a_scale() -> None:
    rows = [{"item": k // 2, "annotator": f"a{k % 2}", "rating": ("bad", "fair", "good")[k % 3]} for k in range(6)]
    assert read_votes(rows, classes=["bad", "fair", "good"]).ordered
    assert not read_votes(rows).ordered
