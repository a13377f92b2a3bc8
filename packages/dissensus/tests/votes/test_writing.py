"""What is written is read back as it was; what a format cannot hold is refused; a file appears whole or not at all."""

from __future__ import annotations

import resource
import tempfile
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus.votes.reading import read_votes, understand
from dissensus.votes.table import Annotators, Votes, votes_from_counts
from dissensus.votes.writing import write_votes
from tests.votes.people import with_people

# Anything at all: marks, quotes, line ends, white space, numbers with and without zeros, words for missing values.
words = st.one_of(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=5),
    st.sampled_from(
        ["0", "00", "-0", "1.0", "1", "NA", "nan", "null", "a|b", "a;b", "a", "b", " a", "A", "none", "label"]
    ),
    st.sampled_from(
        ["item", "annotator", "response", '"', "'", "\\", ",", "\t", "\r\n", "\x00", "\ufeff", "dissensus", "*"]
    ),
)
text_names = st.lists(words, min_size=1, max_size=5, unique=True).map(
    lambda names: np.array(names, dtype=np.dtypes.StringDType())
)
whole_names = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5, unique=True).map(
    lambda names: np.array(names, dtype=np.int64)
)
names = st.one_of(text_names, whole_names)
class_names = st.lists(words.filter("none".__ne__), min_size=1, max_size=4, unique=True).map(tuple)


def by_appearance(votes: Votes) -> Votes:
    """The same votes with items and annotators numbered by first appearance, and without those that never vote."""

    def renumber(codes: Any, given: Any) -> tuple[Any, Any, Any]:
        order = list(dict.fromkeys(codes.tolist()))
        rank = {code: place for place, code in enumerate(order)}
        return np.array([rank[code] for code in codes.tolist()], dtype=np.int32), given[order], order

    item, items, order = renumber(votes.item, votes.items)
    about = {name: values[order] for name, values in votes.item_attributes.items()}
    out = replace(votes, item=item, items=items, item_attributes=about)
    if votes.annotators is not None:
        annotator, annotators, order = renumber(votes.annotators.code, votes.annotators.names)
        attributes = {name: values[order] for name, values in votes.annotator_attributes.items()}
        out = replace(out, annotators=Annotators(annotator, annotators, attributes))
    return out


def assert_same(found: Votes, expected: Votes) -> None:
    columns = (
        "item",
        "label",
        "items",
        "annotators.code",
        "annotators.names",
        "unsure",
        "judgement",
        "seconds",
        "time",
    )
    assert (found.annotators is None) == (expected.annotators is None)
    for name in columns if found.annotators is not None else (name for name in columns if "." not in name):
        one, other = attrgetter(name)(found), attrgetter(name)(expected)
        assert (one is None) == (other is None), name
        if one is not None:
            np.testing.assert_array_equal(one, other, err_msg=name)
            assert one.dtype == other.dtype, name
    assert found.classes == expected.classes
    assert (found.ordered, found.none) == (expected.ordered, expected.none)
    assert found.item_attributes.keys() == expected.item_attributes.keys()
    for name, values in expected.item_attributes.items():
        assert found.item_attributes[name].tolist() == values.tolist()
    assert found.annotator_attributes.keys() == expected.annotator_attributes.keys()
    for name, values in expected.annotator_attributes.items():
        assert found.annotator_attributes[name].tolist() == values.tolist()


@st.composite
def choices(draw: st.DrawFn, *, anonymous: bool | None = None) -> Votes:
    """Single choices, with or without annotators, seconds and attributes."""
    items, annotators, classes = draw(names), draw(names), draw(class_names)
    pairs = draw(
        st.lists(
            st.tuples(st.integers(0, len(items) - 1), st.integers(0, len(annotators) - 1)),
            min_size=1,
            max_size=12,
            unique=True,
        )
    )
    n = len(pairs)
    item, annotator = np.array(pairs, dtype=np.int32).T
    label = draw(st.lists(st.integers(0, len(classes) - 1), min_size=n, max_size=n))
    votes = Votes(
        item=item.copy(),
        label=np.array(label, dtype=np.int32),
        items=items,
        classes=classes,
        ordered=draw(st.booleans()),
    )
    if draw(st.booleans()):
        seconds = draw(st.lists(st.floats(0, 1e6) | st.just(float("nan")), min_size=n, max_size=n))
        votes = replace(votes, seconds=np.array(seconds))
    if draw(st.booleans()):
        moments = st.datetimes(datetime(1974, 1, 1), datetime(2100, 1, 1)) | st.none()
        votes = replace(votes, time=np.array(draw(st.lists(moments, min_size=n, max_size=n)), dtype="datetime64[us]"))
    if draw(st.booleans()) if anonymous is None else anonymous:
        return votes
    votes = replace(votes, annotators=Annotators(annotator.copy(), annotators))
    if draw(st.booleans()):
        ages = draw(st.lists(st.integers(0, 99), min_size=len(annotators), max_size=len(annotators)))
        votes = with_people(votes, attributes={"age": np.array(ages, dtype=np.int64)})
    if draw(st.booleans()):
        about = draw(st.lists(words, min_size=len(items), max_size=len(items)))
        votes = replace(votes, item_attributes={"text": np.array(about, dtype=np.dtypes.StringDType())})
    return votes


@st.composite
def selections(draw: st.DrawFn, *, unsure: bool) -> Votes:
    """Judgements that select any number of classes, with `none` for those that select no class."""
    base = draw(choices(anonymous=False if unsure else None))
    n, n_classes = len(base), len(base.classes)
    response = np.array(
        draw(st.lists(st.integers(0, 2 if unsure else 1), min_size=n * n_classes, max_size=n * n_classes))
    ).reshape(n, n_classes)
    silent = (response == 0).all(axis=1)
    table = np.column_stack([response, silent])
    judgement, label = np.nonzero(table)
    many = judgement.size > n
    is_unsure = table[judgement, label] == 2
    has_none = unsure or bool(silent.any())
    return replace(
        base,
        item=base.item[judgement],
        annotators=None if base.annotators is None else base.annotators.of_votes(judgement),
        label=label.astype(np.int32),
        judgement=judgement.astype(np.int32) if many else None,
        unsure=is_unsure if is_unsure.any() else None,
        classes=(*base.classes, "none") if has_none else base.classes,
        none=n_classes if has_none else None,
    )


IN_EACH = settings(max_examples=25)
"""Five kinds of files see as many votes between them as two did, and most of what is checked is common to all."""

FILES = ["v.csv", "v.tsv", "v.parquet", "v.jsonl", "v.csv.gz"]


def round_trip(votes: Votes, name: str, *, form: str | None = None) -> Votes:
    """The votes, written and read back without a word about the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_votes(votes, path, format=form)
        return read_votes(path)


@pytest.mark.parametrize("name", FILES)
@IN_EACH
@given(votes=choices())
def test_single_choices_round_trip(name: str, votes: Votes) -> None:
    assert_same(round_trip(votes, name, form="long"), by_appearance(votes))


@pytest.mark.parametrize("name", FILES)
@IN_EACH
@given(votes=selections(unsure=True))
def test_responses_round_trip(name: str, votes: Votes) -> None:
    assert_same(round_trip(votes, name), by_appearance(votes))


@pytest.mark.parametrize("name", FILES)
@IN_EACH
@given(votes=selections(unsure=False))
def test_sets_round_trip(name: str, votes: Votes) -> None:
    assert_same(round_trip(votes, name, form="sets"), by_appearance(votes))


@pytest.mark.parametrize("name", FILES)
@IN_EACH
@given(votes=choices(anonymous=False))
def test_wide_tables_round_trip(name: str, votes: Votes) -> None:
    votes = with_people(replace(by_appearance(votes), seconds=None, time=None), attributes={})
    assert votes.annotators is not None
    assume({"item", "dissensus", "text"}.isdisjoint(votes.annotators.names.tolist()))
    votes = votes.take_judgements(np.lexsort((votes.annotators.code, votes.item)))
    assert_same(round_trip(votes, name, form="wide"), votes)


@pytest.mark.parametrize("name", FILES)
@IN_EACH
@given(votes=choices(anonymous=True))
def test_counts_round_trip(name: str, votes: Votes) -> None:
    votes = replace(by_appearance(votes), seconds=None, time=None)
    assume({"item", "dissensus", "text"}.isdisjoint(votes.classes))
    found = round_trip(votes, name, form="counts")
    np.testing.assert_array_equal(found.counts, votes.counts)
    assert (found.items.tolist(), found.classes, found.ordered) == (votes.items.tolist(), votes.classes, votes.ordered)


@pytest.mark.parametrize("name", FILES)
def test_a_class_without_a_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a class without a name"):
        write_votes(votes_from_counts([[1, 1]], classes=("", "a")), tmp_path / name)


def test_a_plain_long_file_holds_plain_columns_only(tmp_path: Path) -> None:
    write_votes(PLAIN, tmp_path / "v.csv")
    assert (tmp_path / "v.csv").read_text() == "item,annotator,label\n1,x,a\n1,y,b\n"


@pytest.mark.parametrize("name", FILES)
def test_the_words_of_a_scale_keep_their_order(name: str, tmp_path: Path) -> None:
    votes = replace(PLAIN, classes=("worse", "better", "best"), ordered=True)
    write_votes(votes, tmp_path / name)
    assert_same(read_votes(tmp_path / name), by_appearance(votes))


def test_npy_holds_the_counts_alone(tmp_path: Path) -> None:
    votes = votes_from_counts([[2, 1], [0, 3]], classes=("cat", "dog"))
    write_votes(votes, tmp_path / "v.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), [[2, 1], [0, 3]])
    assert_same(read_votes(tmp_path / "v.npy", classes=("cat", "dog")), votes)


def test_written_files_are_understood_without_a_hint(tmp_path: Path) -> None:
    one = Votes(
        item=np.array([0, 0, 1], dtype=np.int32),
        label=np.array([0, 1, 1], dtype=np.int32),
        items=np.array([10, 20]),
        classes=("a", "b"),
        annotators=Annotators(np.array([0, 1, 0], dtype=np.int32), np.array([5, 6])),
    )
    for name in ("v.csv", "v.tsv", "v.parquet", "v.jsonl"):
        write_votes(one, tmp_path / name)
        reading = understand(tmp_path / name)
        assert reading.columns == {"item": "item", "annotator": "annotator", "label": "label"}
        assert_same(reading.votes, one)


def test_parquet_keeps_unused_classes_and_the_scale(tmp_path: Path) -> None:
    votes = replace(votes_from_counts([[0, 2, 0]], classes=("worst", "fair", "best")), ordered=True)
    write_votes(votes, tmp_path / "v.parquet")
    assert_same(read_votes(tmp_path / "v.parquet"), votes)
    assert read_votes(tmp_path / "v.parquet", ordered=False).ordered is False


def test_another_tool_sees_plain_columns(tmp_path: Path) -> None:
    votes = votes_from_counts([[1, 1]], classes=("cat", "dog"))
    write_votes(votes, tmp_path / "v.parquet")
    assert pl.read_parquet(tmp_path / "v.parquet").cast({"label": pl.String}).rows() == [(0, "cat"), (0, "dog")]


PLAIN = Votes(
    item=np.array([0, 0], dtype=np.int32),
    label=np.array([0, 1], dtype=np.int32),
    items=np.array([1, 2]),
    classes=("a", "b"),
    annotators=Annotators(np.array([0, 1], dtype=np.int32), np.array(["x", "y"], dtype=np.dtypes.StringDType())),
)
UNSURE = replace(PLAIN, unsure=np.array([True, False]), classes=("a", "b", "none"), none=2)
ONE_ITEM = replace(PLAIN, items=np.array([1]))
SEVERAL = replace(PLAIN, annotators=None, judgement=np.array([0, 0], dtype=np.int32))


@pytest.mark.parametrize(
    ("votes", "name", "form", "fragment"),
    [
        (SEVERAL, "v.csv", "long", "format='sets'"),
        (UNSURE, "v.csv", "sets", "format='long'"),
        (UNSURE, "v.csv", "wide", "format='long'"),
        (replace(UNSURE, annotators=None), "v.csv", None, "format='long'"),
        (replace(PLAIN, unsure=np.array([True, False])), "v.csv", None, "unsure"),
        (replace(PLAIN, annotators=None), "v.csv", "wide", "anonymous"),
        (replace(PLAIN, seconds=np.array([1.0, 2.0])), "v.csv", "wide", "seconds"),
        (with_people(ONE_ITEM, code=np.zeros(2, dtype=np.int32)), "v.csv", "wide", "twice"),
        (PLAIN, "v.csv", "wide", "item '2' has zero votes"),
        (PLAIN, "v.csv", "counts", "item '2' has zero votes"),
        (PLAIN, "v.npy", None, "item '2' has zero votes"),
        (PLAIN, "v.npy", "long", "counts"),
        (PLAIN, "v.csv", "chaosnli", "long, sets, wide, counts"),
        (PLAIN, "v.xlsx", None, ".xlsx"),
        (PLAIN, "none/v.csv", None, "no folder"),
        (with_people(PLAIN, attributes={"label": PLAIN.items}), "v.csv", None, "attribute 'label'"),
        (replace(SEVERAL, classes=("a", "none")), "v.csv", None, "'none' is the empty set"),
        (replace(ONE_ITEM, classes=("a", "item")), "v.csv", "counts", "'item'"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(
    tmp_path: Path, votes: Votes, name: str, form: str | None, fragment: str
) -> None:
    path = tmp_path / name
    with pytest.raises(InputError) as refused:
        write_votes(votes, path, format=form)
    sentence = str(refused.value)
    assert sentence.startswith(str(path))
    assert fragment in sentence.removeprefix(str(path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["v.csv", "v.parquet", "v.jsonl", "v.npy"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("old")
    votes = votes_from_counts(np.random.default_rng(0).integers(1, 9, (20_000, 3)))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(InputError, match="cannot be written"):
            write_votes(votes, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


class TestTheFileBeside:
    VOTES = votes_from_counts([[2, 1], [0, 3]], items=["a", "b"], classes=("z", "a"), ordered=True)

    def test_csv_is_plain_and_what_it_cannot_hold_lies_beside_it(self, tmp_path: Path) -> None:
        path = tmp_path / "v.csv"
        write_votes(self.VOTES, path)
        assert path.read_text().splitlines()[0] == "item,label"
        assert read_votes(path) == self.VOTES
        assert {file.name for file in tmp_path.iterdir()} == {"v.csv", "v.csv.json"}

    def test_without_it_the_table_is_read_as_any_other(self, tmp_path: Path) -> None:
        path = tmp_path / "v.csv"
        write_votes(self.VOTES, path)
        (tmp_path / "v.csv.json").unlink()
        votes = read_votes(path)
        assert (votes.classes, votes.ordered) == (("a", "z"), False)
        assert "2 classes by 'label' (a 4, z 2)" in votes.notes[0]

    def test_a_changed_table_is_refused_beside_it(self, tmp_path: Path) -> None:
        path = tmp_path / "v.csv"
        write_votes(self.VOTES, path)
        path.write_text(path.read_text() + "c,z\n")
        with pytest.raises(InputError, match=r"changed since v\.csv\.json was written"):
            read_votes(path)

    def test_it_goes_with_what_needed_it_and_spares_what_is_not_ours(self, tmp_path: Path) -> None:
        path, side = tmp_path / "v.csv", tmp_path / "v.csv.json"
        write_votes(self.VOTES, path)
        write_votes(replace(self.VOTES, classes=("a", "z"), ordered=False), path)
        assert not side.exists()
        side.write_text('{"mine": 1}')
        with pytest.raises(InputError, match="rename one of them"):
            write_votes(self.VOTES, path)
        assert side.read_text() == '{"mine": 1}'
        assert len(read_votes(path)) == 6
