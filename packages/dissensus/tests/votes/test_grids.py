"""Tables with one row per item: what their numbers, summaries and indices mean, against counts by hand and pandas."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dissensus as dis
from dissensus.errors import InputError
from dissensus.votes.reading import Options, Reading, understand


def read(source: Any, **options: Any) -> Reading:
    """Read a frame, or the lines of a CSV file."""
    if isinstance(source, str):
        source = io.StringIO(source)
        source.name = "votes.csv"
    return understand(source, Options(**options))


def obeyed(source: Any, **given: Any) -> dict[str, Reading]:
    """The readings that a refusal offers, each of which must be read as it stands, with what was given before."""
    with pytest.raises(InputError) as refused:
        read(source, **given)
    assert refused.value.readings, refused.value
    readings = {}
    for meaning, ways in refused.value.readings.items():
        # What annotators said may be numbers of a slider, of which is asked next.
        readings[meaning] = read(source, **{**given, **ways, **({"force": True} if "format" in ways else {})})
    return readings


def formats(readings: dict[str, Reading]) -> list[str]:
    return [reading.format for reading in readings.values()]


def numbers(rows: Any, names: str = "item fox hare owl") -> pd.DataFrame:
    item, *columns = names.split()
    table = pd.DataFrame(np.asarray(rows), columns=columns)
    table.insert(0, item, [f"i{k}" for k in range(len(table))])
    return table


RNG = np.random.default_rng(5)
PANEL_OF_7 = RNG.multinomial(7, [0.6, 0.3, 0.1], size=20)


class TestConstantRowSums:
    def test_the_votes_of_a_panel_are_counts(self) -> None:
        reading = read(numbers(PANEL_OF_7))
        assert reading.format == "counts"
        np.testing.assert_array_equal(reading.votes.counts, PANEL_OF_7)

    def test_a_large_panel_needs_no_zero(self) -> None:
        large = RNG.multinomial(60, [0.5, 0.3, 0.2], size=20)
        assert (large > 0).all()
        assert read(numbers(large)).votes.counts.sum() == 1200

    @pytest.mark.parametrize(
        ("rows", "why"),
        {
            "ranks": ([RNG.permutation(3) + 1 for _ in range(12)], "in another order, as ranks do"),
            "ranks from 0": ([RNG.permutation(3) for _ in range(12)], "in another order, as ranks do"),
            "points of ten": (RNG.multinomial(10, [0.6, 0.3, 0.1], size=12), "adds up to 10, as the votes"),
            "percent": (RNG.multinomial(100, [0.6, 0.3, 0.1], size=12), "adds up to 100, as shares"),
            "ratings": ([RNG.permutation(row) for row in ([1, 3, 5], [2, 2, 5], [3, 3, 3], [1, 4, 4]) * 3], "up to 9"),
        }.values(),
    )
    def test_that_may_be_something_else_are_refused(self, rows: Any, why: str) -> None:
        with pytest.raises(InputError, match=why):
            read(numbers(rows))
        assert {"wide", "counts"} <= set(formats(obeyed(numbers(rows))))

    def test_shares_and_fractions_of_a_percent_are_no_counts(self) -> None:
        shares = PANEL_OF_7 / 7
        with pytest.raises(InputError, match="between 0 and 1"):
            read(numbers(shares))
        (_, panel) = obeyed(numbers(shares)).values()
        np.testing.assert_array_equal(panel.votes.counts, PANEL_OF_7)
        percent = (100 * shares).round(1)
        assert [reading.votes.counts.tolist() for reading in obeyed(numbers(percent)).values()][
            -1
        ] == PANEL_OF_7.tolist()

    def test_what_annotators_said_may_be_binned(self) -> None:
        table = numbers(RNG.uniform(0, 50, size=(20, 3)).round(1))
        votes = read(table, format="wide", bins=[0, 10, 50]).votes
        below = (table[["fox", "hare", "owl"]].to_numpy() < 10).sum()
        assert (votes.classes, votes.counts.sum(axis=0).tolist()) == (("0-10", "10-50"), [below, 60 - below])
        assert votes.ordered

    def test_three_different_rows_are_too_few(self) -> None:
        assert set(formats(obeyed(numbers(PANEL_OF_7[:3])))) == {"wide", "counts", "long"}


class TestSummaryColumns:
    VOTES = "item,anna,ben,cleo{}\na,x,x,y{}\nb,y,y,y{}\nc,x,y,y{}\nd,x,x,x{}\ne,y,x,y{}\n"

    def wide(self, name: str, *cells: str) -> str:
        return self.VOTES.format(*(f",{cell}" for cell in (name, *cells)))

    @pytest.mark.parametrize("name", ["majority", "Consensus", "final_label", "mode", "Majority Vote"])
    def test_the_majority_is_nobody(self, name: str) -> None:
        for cells in ("xyyxy", "xyyxx"):
            reading = read(self.wide(name, *cells))
            assert reading.votes.annotators is not None
            assert reading.votes.annotators.names.tolist() == ["anna", "ben", "cleo"]
            assert f"left out: column '{name}', in most rows the most frequent of the others" in reading.notes

    @pytest.mark.parametrize("name", ["final", "adjudicated", "majority"])
    def test_a_column_called_so_that_is_none_is_asked_about(self, name: str) -> None:
        for cells in ("yxxyx", "xyyyx"):  # right in no row, and in three of five
            readings = obeyed(self.wide(name, *cells))
            assert [len(reading.votes) for reading in readings.values()] == [15, 20]

    def test_people_with_names_are_people(self) -> None:
        for name in ("max", "alpha_team", "Norma"):
            assert len(read(self.wide(name, *"yxxyx")).votes) == 20

    def test_numbers_that_can_be_no_votes(self) -> None:
        table = "essay,r1,r2,mean,std,n\na,1,2,1.5,0.7,2\nb,3,3,3.0,0.0,2\nc,4,5,4.5,0.7,2\n"
        reading = read(table, item="essay")
        assert reading.votes.classes == ("1", "2", "3", "4", "5")
        assert [note.split("'")[1] for note in reading.notes if "left out" in note] == ["mean", "std", "n"]
        with pytest.raises(InputError, match="'mean' is called like a summary"):
            read("item,r1,r2,mean\na,1,2,2\nb,3,3,3\nc,4,5,5\n")

    def test_a_number_of_votes_tells_counts_from_ratings(self) -> None:
        uneven = RNG.multinomial(4, [0.5, 0.5], size=8)
        uneven[3] = [2, 5]
        table = numbers(uneven, "item cat dog")
        for name in ("n", "count", "n_votes"):
            reading = read(table.assign(**{name: uneven.sum(axis=1)}))
            np.testing.assert_array_equal(reading.votes.counts, uneven)
            assert f"left out: column '{name}', the sum of the others" in reading.notes
        assert set(formats(obeyed(table.assign(total=uneven.sum(axis=1))))) == {"wide", "counts", "long"}
        for reading in obeyed(table.assign(total=uneven.sum(axis=1))).values():
            assert "total" not in reading.votes.classes

    def test_the_largest_class_of_counts_is_none(self) -> None:
        names = np.array(["fox", "hare", "owl"])[PANEL_OF_7.argmax(axis=1)]
        reading = read(numbers(PANEL_OF_7).assign(majority=names))
        assert (reading.format, reading.votes.classes) == ("counts", ("fox", "hare", "owl"))

    def test_a_total_that_is_wrong_in_one_row_is_told(self) -> None:
        wrong = numbers(PANEL_OF_7).assign(n=[*[7] * 19, 8])
        assert [reading.votes.classes[-1] for reading in obeyed(wrong, format="counts").values()] == ["owl", "n"]

    def test_single_letters_are_names(self) -> None:
        panel = numbers(PANEL_OF_7, "item e n c")
        assert read(panel).votes.classes == ("e", "n", "c")
        assert read(numbers(PANEL_OF_7[:, :2], "item y n"), format="counts").votes.classes == ("y", "n")
        assert read(panel.assign(total=7)).votes.classes == ("e", "n", "c")
        assert read(numbers(PANEL_OF_7, "item a b c").assign(n=7)).votes.classes == ("a", "b", "c")

    def test_numbers_of_labels_are_no_single_votes(self) -> None:
        tidy = "item,label,count\na,x,3\na,y,2\nb,x,5\n"
        with pytest.raises(InputError, match="'count' may say how many people gave it"):
            read(tidy)
        assert formats(obeyed(tidy)) == ["long"]


class TestOtherRows:
    COUNTS = "item,bird,cat,dog\n" + "".join(f"i{k},{k},{5 - k},1\n" for k in range(6))

    @pytest.mark.parametrize("row", ["Total,15,15,6", "All,15,15,6", "mean,2.5,2.5,1", "Gesamt,15,15,6", "n,15,15,6"])
    def test_a_row_that_sums_up_the_others_is_left_out(self, row: str) -> None:
        reading = read(self.COUNTS + row + "\n")
        assert (reading.format, len(reading.votes.items), len(reading.votes)) == ("counts", 6, 36)
        assert f"left out: the row '{row.split(',')[0]}', which sums up the others" in reading.notes

    def test_an_item_of_that_name_is_kept_and_told(self) -> None:
        reading = read(self.COUNTS.replace("i3", "all"))
        assert len(reading.votes.items) == 6
        assert any("'all' is called like a summary of the others, and is kept" in note for note in reading.notes)

    def test_a_row_of_that_name_with_anything_else_is_refused(self) -> None:
        with pytest.raises(
            InputError, match="line 8: the item 'Total' is called like a summary of the others, and holds"
        ):
            read(self.COUNTS + "Total,15,14,6\n")
        labels = "item,r1,r2\na,x,NA\nb,x,y\nc,y,NA\n"
        assert len(read(labels + "Total,3,1\n").votes) == 4
        with pytest.raises(InputError, match="line 5: the item 'N Votes' is called like a summary"):
            read(labels + "N Votes,3,2\n")
        mixed = pd.DataFrame({"item": ["a", "b", "Total"], "r1": ["x", "y", "3"], "r2": [1.0, 2.0, 9.0]})
        with pytest.raises(InputError, match="row 3: the item 'Total'"):
            read(mixed, annotators=["r1", "r2"])

    def test_a_row_that_looks_like_a_sum_of_few_is_kept(self) -> None:
        table = "item,r1,r2\na,1,1\nb,0,1\nc,1,0\nd,2,2\n"
        assert len(read(table).votes.items) == 4

    def test_the_header_once_more_is_left_out_wherever_it_stands(self) -> None:
        lines = self.COUNTS.splitlines()
        for place in (1, 3, 7):
            again = [*lines[:place], lines[0], *lines[place:]]
            reading = read("\n".join(again))
            assert (reading.format, len(reading.votes)) == ("counts", 36)
            assert "left out: 1 line that repeats the header" in reading.notes
            assert reading.votes.items.tolist() == [f"i{k}" for k in range(6)]
        wrong = "\n".join([*lines[:3], lines[0], *lines[3:]]).replace("i4,4,1", "i4,4,-1")
        with pytest.raises(InputError, match=r"line 7: .* -1"):
            read(wrong, format="counts")

    def test_a_second_line_of_names_is_refused(self) -> None:
        with pytest.raises(InputError, match="line 2: column 'item' is empty"):
            read("item,r1,r2\n,first,first\na,x,y\nb,y,y\n")

    def test_the_end_of_a_long_file(self) -> None:
        long = "item,rating\n" + "".join(f"i{k // 3},{1 + k % 4}\n" for k in range(12))
        assert len(read(long + "Mean,2.5\n").votes) == 12
        assert len(read(long + "total,30\n").votes) == 12
        assert len(read(long + "total,4\n").votes) == 13
        named = "item,worker,rating\na,x,1\na,y,2\nb,x,2\nb,y,1\n"
        assert len(read(named + "Average,,1.5\nTotal,,6\n").votes) == 4
        assert len(read(named + "Total,x,2\n").votes) == 5


class TestPandas:
    LONG = pd.DataFrame(
        {"item": np.repeat([f"i{k}" for k in range(12)], 5), "annotator": np.tile(list("vwxyz"), 12)}
    ).assign(label=RNG.choice(["cat", "dog", "owl"], 60))
    SOME = LONG.sample(frac=0.7, random_state=1)

    @pytest.mark.parametrize("margins", [False, True])
    def test_a_crosstab_keeps_its_items(self, margins: bool) -> None:
        table = pd.crosstab(self.SOME["item"], self.SOME["label"], margins=margins)
        votes = dis.read_votes(table)
        alone = self.SOME.groupby("item")["label"].value_counts().unstack(fill_value=0)
        assert votes.items.tolist() == alone.index.tolist()
        np.testing.assert_array_equal(votes.counts, alone[list(votes.classes)].to_numpy())
        assert "All" not in (*votes.items.tolist(), *votes.classes)

    def test_numbers_as_classes_and_items(self) -> None:
        codes = self.SOME.assign(
            item=self.SOME["item"].str[1:].astype(int), label=self.SOME["label"].astype("category")
        )
        votes = dis.read_votes(pd.crosstab(codes["item"], codes["label"].cat.codes.rename("label")))
        assert (votes.items.dtype.kind, votes.classes) == ("i", ("0", "1", "2"))
        assert dis.read_votes(pd.crosstab(codes["item"], codes["label"])).classes == ("cat", "dog", "owl")

    def test_a_pivot_table_is_wide(self) -> None:
        for table in (self.SOME, self.SOME.assign(label=self.SOME["label"].map({"cat": 0, "dog": 1, "owl": 2}))):
            votes = dis.read_votes(
                table.pivot_table(index="item", columns="annotator", values="label", aggfunc="first")
            )
            assert votes.annotators is not None
            assert set(votes.annotators.names.tolist()) == set("vwxyz")
            assert len(votes) == len(self.SOME)

    def test_an_index_of_several_levels_is_as_many_columns(self) -> None:
        votes = dis.read_votes(self.LONG.set_index(["item", "annotator"]))
        np.testing.assert_array_equal(votes.counts, dis.read_votes(self.LONG).counts)

    def test_an_index_that_is_not_used_is_told(self) -> None:
        assert "not used: 'index'" in read(self.SOME).notes
        wide = self.LONG.pivot(index="item", columns="annotator", values="label").reset_index()
        assert "not used: 'index'" in read(wide.iloc[3:]).notes
        assert read(wide).notes == ()
        with pytest.raises(InputError, match="cannot insert item, already exists"):
            read(self.LONG.set_index(self.LONG["item"].shift(1, fill_value="i0")))

    def test_columns_of_two_levels_are_a_sentence(self) -> None:
        with pytest.raises(InputError, match="2 levels of names"):
            read(self.LONG.pivot(index="item", columns="annotator"))

    def test_a_frame_is_not_changed(self) -> None:
        table = pd.crosstab(self.SOME["item"], self.SOME["label"])
        before = table.copy()
        dis.read_votes(table)
        pd.testing.assert_frame_equal(table, before)

    def test_the_file_of_an_index_without_a_name(self) -> None:
        wide = self.LONG.pivot(index="item", columns="annotator", values="label").reset_index()
        reading = read(wide.rename_axis(columns=None).to_csv())
        assert (reading.columns, reading.notes) == ({"item": "item"}, ("not used: ''",))


class TestPanel:
    TABLE = "id,toxic,threat,insult\nc0,3,0,1\nc1,0,0,0\nc2,1,1,1\n"
    CHOSEN = np.array([[3, 0, 1], [0, 0, 0], [1, 1, 1]])

    def check(self, reading: Reading, chosen: Any, size: Any) -> None:
        """That each item and class has the votes that were counted, and as many of no as are left."""
        votes = reading.votes
        assert votes.classes == ("no", "yes")
        yes = np.asarray(chosen).ravel()
        np.testing.assert_array_equal(votes.counts[:, 1], yes)
        np.testing.assert_array_equal(votes.panel_size, np.repeat(size, np.asarray(chosen).shape[1]))

    def test_a_row_of_zeros_is_everybodys_no(self) -> None:
        readings = obeyed(self.TABLE)
        assert [len(reading.votes) for reading in readings.values()] == [9, 7, 27]
        *_, reading = readings.values()
        self.check(reading, self.CHOSEN, [3, 3, 3])
        assert reading.votes.items.tolist()[3:5] == ["c1 / toxic", "c1 / threat"]
        assert reading.votes.item_attributes["judged"].tolist()[::3] == ["c0", "c1", "c2"]
        assert reading.votes.item_attributes["class"].tolist()[:3] == ["toxic", "threat", "insult"]
        assert any("(1 of 3 rows: nobody any)" in note for note in reading.notes)
        with pytest.raises(InputError, match="'c1' has zero votes") as refused:
            read(self.TABLE, format="counts")
        assert list(refused.value.readings.values()) == [{"drop_empty": True}, {"panel": "3"}]
        assert "remove the row" not in str(refused.value)

    def test_the_size_in_a_column_and_texts_of_the_items(self) -> None:
        table = "id,text,toxic,threat,n_annotators\nc0,a b,2,0,4\nc1,c d,0,0,3\nc2,e f,1,1,5\n"
        reading = read(table, panel="n_annotators")
        self.check(reading, [[2, 0], [0, 0], [1, 1]], [4, 3, 5])
        assert reading.votes.item_attributes["text"].tolist() == ["a b", "a b", "c d", "c d", "e f", "e f"]

    def test_one_class_alone(self) -> None:
        reading = read(self.TABLE, panel=3, label="insult")
        assert reading.votes.items.tolist() == ["c0", "c1", "c2"]
        self.check(reading, self.CHOSEN[:, [2]], [3, 3, 3])

    @pytest.mark.parametrize("unit", [1, 100])
    @pytest.mark.parametrize("digits", [2, 6])
    def test_shares_and_percentages_of_one_choice(self, unit: int, digits: int) -> None:
        shares = (PANEL_OF_7 / 7).round(digits) * unit
        reading = read(numbers(shares), panel=7)
        np.testing.assert_array_equal(reading.votes.counts, PANEL_OF_7)
        assert reading.votes.classes == ("fox", "hare", "owl")

    def test_zeros_and_ones_are_shares_where_the_others_are(self) -> None:
        table = "id,toxic,threat,rating,toxicity_annotator_count\nc0,0.25,1.0,ok,4\nc1,0.5,0.0,ok,4\n"
        votes = read(table, label="threat", panel="toxicity_annotator_count").votes
        assert votes.counts.tolist() == [[0, 4], [4, 0]]
        readings = obeyed(table)
        assert [reading.votes.counts[:, 1].tolist() for reading in readings.values()] == [[1, 2], [1, 4, 2, 0]]

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            (
                {"panel": 2},
                "line 2: item 'c0' has 3 for class 'toxic', which is no whole number of a panel of 2 people",
            ),
            ({"panel": 0}, "line 2: .* panel of 0 people"),
            ({"panel": "many"}, "panel='many' is neither a number of people nor a column"),
            ({"panel": 3, "label": "rude"}, "there is no column 'rude' for label="),
            ({"panel": 3, "format": "long", "label": "toxic"}, "the format long has no use for panel="),
            ({"panel": 3, "format": "wide"}, "the format wide has no use for panel="),
        ],
    )
    def test_a_panel_that_does_not_fit_is_refused(self, options: dict[str, Any], sentence: str) -> None:
        with pytest.raises(InputError, match=sentence):
            read(self.TABLE, **options)

    def test_a_share_that_is_no_whole_number_of_people_is_refused(self) -> None:
        with pytest.raises(InputError, match=r"line 3: item 'b' has 0\.3 for class 'x', .* of a panel of 4 people"):
            read("item,x,y\na,0.25,0.75\nb,0.3,0.7\n", panel=4)


class TestItems:
    def test_the_column_that_names_each_row_is_the_item(self) -> None:
        table = "essay_id,task,r1,r2\ne1,snli,x,y\ne2,snli,y,y\ne3,mnli,x,x\n"
        reading = read(table, annotators=["r1", "r2"])
        assert reading.columns == {"item": "essay_id"}
        assert read(table.replace("essay_id", "id"), annotators=["r*"]).columns == {"item": "id"}
        with pytest.raises(InputError, match="known to hold the item"):
            read(table.replace("essay_id", "worker_id").replace("task", "x"), annotators=["r1", "r2"])


def test_percentages_of_a_panel_need_not_add_up_and_the_notes_say_what_they_are_taken_for() -> None:
    table = pd.DataFrame({"item": ["a", "b", "c"], "toxic": [20, 0, 100], "insult": [40, 60, 20]})
    votes = dis.read_votes(table, panel="5")
    yes = dict(zip(votes.items.tolist(), votes.counts[:, votes.classes.index("yes")].tolist(), strict=True))
    assert yes == {"a / toxic": 1, "a / insult": 2, "b / toxic": 0, "b / insult": 3, "c / toxic": 5, "c / insult": 1}
    assert any("taken for percentages, of a panel of 5" in note for note in votes.notes)
    with pytest.raises(InputError, match="no whole number of a panel of 5"):
        dis.read_votes(table.assign(toxic=[30, 0, 100]), panel="5")
