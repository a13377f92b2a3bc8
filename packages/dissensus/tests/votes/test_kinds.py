"""Votes of models: marked in every kind of file, kept on every way, and never counted among people's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus.labels.labelling import SCHEMES, label
from dissensus.report.votes_page import write_page
from dissensus.votes.agreement import agreement, class_alpha
from dissensus.votes.annotators import annotator_agreement, models_beside_people
from dissensus.votes.counting import count_votes
from dissensus.votes.croissant import croissant
from dissensus.votes.inspection import inspect
from dissensus.votes.kinds import people_alone, share_of_models
from dissensus.votes.privacy import pseudonymous
from dissensus.votes.reading import Options, read_votes, understand
from dissensus.votes.sampling import subsample
from dissensus.votes.table import Annotators, Votes, votes_from_counts
from dissensus.votes.writing import write_votes
from tests.votes.people import people_of

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]


def table(n_items: int = 12, *, seed: int = 0) -> list[Row]:
    """Three people and two models on each item; one more item and one more class are the models' alone."""
    rng = np.random.default_rng(seed)
    people, models, classes = ("anna", "ben", "cleo"), ("gpt-4", "llama"), ("no", "yes", "refused")
    rows = [
        {
            "item": f"i{item}",
            "annotator": who,
            "label": classes[rng.integers(2 if who in people else 3)],
            "kind": "person" if who in people else "model",
        }
        for item in range(n_items)
        for who in (*people, *models)
    ]
    return [*rows, {"item": "only", "annotator": "gpt-4", "label": "refused", "kind": "model"}]


def without(rows: list[Row], kind: str = "model") -> list[Row]:
    """The rows of the other kind, as a file that never had a column of kinds."""
    return [{name: value for name, value in row.items() if name != "kind"} for row in rows if row["kind"] != kind]


def content(votes: Votes) -> list[tuple[Any, ...]]:
    """What each judgement says, by names."""
    rows = votes.to_polars()
    return sorted(tuple(map(str, row)) for row in rows.select(sorted(rows.columns)).rows())


@pytest.fixture
def rows() -> list[Row]:
    return table()


@pytest.fixture
def votes(rows: list[Row]) -> Votes:
    return read_votes(rows)


def test_people_are_what_a_file_without_the_models_holds(rows: list[Row], votes: Votes) -> None:
    alone = read_votes(without(rows))
    assert votes.n_model_votes == 25
    assert votes.people.classes == alone.classes == ("no", "yes")
    assert votes.people.by_model is None
    assert content(votes.people) == content(alone)
    for name in ("item", "label", "counts", "panel_size"):
        np.testing.assert_array_equal(getattr(votes.people, name), getattr(alone, name))
    np.testing.assert_array_equal(people_of(votes.people).code, people_of(alone).code)
    assert votes.models is not None
    assert votes.models.annotators is not None
    assert votes.models.annotators.names.tolist() == ["gpt-4", "llama"]
    assert len(votes.models) == 25
    assert len(votes.models.items) == 13


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_people_and_models_together_are_all_votes(said: list[tuple[int, int, int]]) -> None:
    """Annotators 3 and above are models; whatever the votes, each is in one of the two parts."""
    rows = [
        {"item": f"i{item}", "annotator": f"a{who}", "label": "wxyz"[k], "kind": "model" if who > 2 else "person"}
        for item, who, k in {(item, who): (item, who, k) for item, who, k in said}.values()
    ]
    votes = read_votes(rows)
    parts = [part for part in (votes.people, votes.models) if part is not None]
    named = [(str(p.items[i]), p.classes[k]) for p in parts for i, k in zip(p.item, p.label, strict=True)]
    assert sorted(named) == sorted((row["item"], row["label"]) for row in rows)
    assert all(row["annotator"] in ("a0", "a1", "a2") for row in rows) == (votes.by_model is None)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("format", ["long", "sets", "wide"])
def test_every_kind_of_file_keeps_them(votes: Votes, tmp_path: Path, ending: str, format: str) -> None:  # noqa: A002
    write_votes(votes, tmp_path / f"votes.{ending}", format=format)
    back = read_votes(tmp_path / f"votes.{ending}")
    assert content(back) == content(votes)
    assert back.n_model_votes == votes.n_model_votes


def test_frames_keep_them(votes: Votes) -> None:
    for frame in (votes.to_polars(), votes.to_pandas(), votes.to_hf()):
        assert content(read_votes(frame)) == content(votes)


def test_responses_and_flags_and_lists_keep_them() -> None:
    asked = [
        {"item": "x", "annotator": who, "label": k, "response": said, "kind": kind}
        for who, kind in (("anna", "person"), ("llm", "model"))
        for k, said in (("cat", "yes"), ("dog", "unsure" if who == "llm" else "no"))
    ]
    votes = read_votes(asked)
    assert votes.unsure is not None
    assert (votes.n_model_votes, len(votes)) == (2, 3)
    np.testing.assert_array_equal(votes.judgement_by_model, [False, True])
    assert content(read_votes(votes.to_polars())) == content(votes)
    assert len(votes.people.classes) == 2  # the model alone said dog; the class none stays
    flags = {"item": ["x", "x"], "who": ["anna", "llm"], "cat": [1, 0], "dog": [1, 1], "kind": ["person", "model"]}
    assert read_votes(flags, format="flags", annotator="who").n_model_votes == 1
    lists = {"item": ["x", "y"], "labels": [["cat", "dog"], ["dog"]], "kind": ["person", "model"]}
    assert read_votes(lists, format="lists").n_model_votes == 1


def test_counts_have_no_place_for_them(votes: Votes, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="25 of 61 votes are from models, and counts cannot tell them from people's"):
        write_votes(votes, tmp_path / "votes.csv", format="counts")
    assert not (tmp_path / "votes.csv").exists()


def test_annotators_can_be_named_as_models(rows: list[Row], votes: Votes, tmp_path: Path) -> None:
    unmarked = [{name: value for name, value in row.items() if name != "kind"} for row in rows]
    assert content(read_votes(unmarked, models=["gpt-*", "llama"])) == content(votes)
    wide = tmp_path / "wide.csv"
    wide.write_text("item,annotator_1,annotator_2,llm\na,no,yes,no\nb,yes,yes,yes\n")
    assert read_votes(wide, format="wide", models=["llm"]).n_model_votes == 2
    with pytest.raises(InputError, match="no annotator fits 'claude' of models="):
        read_votes(unmarked, models=["claude"])
    with pytest.raises(InputError, match="says already which votes are from models"):
        read_votes(rows, models=["llama"])
    with pytest.raises(InputError, match="these votes are anonymous"):
        read_votes([{"item": "a", "label": "no"}, {"item": "a", "label": "yes"}], models=["llama"])


def test_anonymous_votes_can_be_marked_too() -> None:
    said = [{"item": "a", "label": "no", "kind": kind} for kind in ("person", "person", "model")]
    votes = read_votes(said)
    assert votes.people.counts.tolist() == [[2]]
    assert content(read_votes(votes.to_polars())) == content(votes)


def test_an_annotator_is_a_person_or_a_model(rows: list[Row], tmp_path: Path) -> None:
    pl.DataFrame([*rows, rows[0] | {"item": "new", "kind": "model"}]).write_csv(tmp_path / "votes.csv")
    with pytest.raises(
        InputError, match=r"line 63: annotator 'anna' has 'model' in column 'kind', and 'person' before"
    ):
        read_votes(tmp_path / "votes.csv")
    one = np.zeros(2, dtype=np.int32)
    with pytest.raises(InputError, match="annotator 'anna' is a person and a model"):
        Votes(
            item=np.arange(2, dtype=np.int32),
            label=one,
            items=np.arange(2),
            classes=("a",),
            annotators=Annotators(one, np.array(["anna"])),
            by_model=np.array([True, False]),
        )
    with pytest.raises(InputError, match="a judgement has votes of a person and of a model"):
        Votes(
            item=one,
            label=np.arange(2, dtype=np.int32),
            items=np.arange(1),
            classes=("a", "b"),
            judgement=one,
            by_model=np.array([True, False]),
        )


def test_a_damaged_cell_does_not_mix_models_with_people(rows: list[Row], tmp_path: Path) -> None:
    for wrong in ("modle", ""):
        damaged = [*rows[:4], rows[4] | {"kind": wrong}, *rows[5:]]
        pl.DataFrame(damaged).write_csv(tmp_path / "votes.csv")
        with pytest.raises(InputError, match=r"line 6: .*'kind'.*person or model"):
            read_votes(tmp_path / "votes.csv")
        with pytest.raises(InputError, match="person or model"):
            count_votes(tmp_path / "votes.csv")
    with pytest.raises(InputError, match="is no kind of annotator"):
        read_votes(rows, kind="label")


@pytest.mark.parametrize(
    ("person", "model"), [("human", "llm"), ("Human", "AI"), ("people", "machine"), ("human", "model")]
)
def test_other_words_for_people_and_models_do_not_mix_them(
    rows: list[Row], votes: Votes, tmp_path: Path, person: str, model: str
) -> None:
    words = {"person": person, "model": model}
    said = [row | {"kind": words[row["kind"]]} for row in rows]
    assert content(read_votes(said)) == content(votes)
    pl.DataFrame(said).write_csv(tmp_path / "votes.csv")
    pl.DataFrame(rows).write_csv(tmp_path / "plain.csv")
    assert str(count_votes(tmp_path / "votes.csv")) == str(count_votes(tmp_path / "plain.csv"))
    # About the items it is not taken for the annotators' kind: nobody is both.
    by_item = [row | {"kind": person if row["item"] == "i1" else model} for row in rows]
    with pytest.raises(
        InputError, match=r"annotator '\w+' has .* in column 'kind', and .* is named with item_attributes="
    ):
        read_votes(by_item)
    assert read_votes(by_item, item_attributes=["kind"]).by_model is None


def test_two_frames_that_are_put_together_say_who_gave_each_row(rows: list[Row], votes: Votes) -> None:
    people, models = (pl.DataFrame(part) for part in (without(rows), [r for r in rows if r["kind"] == "model"]))
    together = pl.concat([people, models], how="diagonal")
    with pytest.raises(InputError, match="write person or model in each row"):
        read_votes(together)
    assert content(read_votes(together.with_columns(pl.col("kind").fill_null("person")))) == content(votes)


def test_a_column_of_some_other_kind_is_what_it_was(rows: list[Row], tmp_path: Path) -> None:
    other = [row | {"kind": "joke" if row["label"] == "no" else "news"} for row in rows]
    read = understand(other)
    assert read.votes.by_model is None
    assert "kind" not in read.columns
    assert "not used: 'kind'" in read.notes
    by_item = [row | {"kind": "person" if row["item"] == "i1" else "animal"} for row in rows]
    votes = read_votes(by_item, item_attributes=["kind"])
    assert votes.by_model is None
    write_votes(votes, tmp_path / "votes.csv")
    assert content(read_votes(tmp_path / "votes.csv")) == content(votes)
    marked = read_votes(votes.to_polars(), item_attributes=["kind"], models=["llama"])
    with pytest.raises(InputError, match="the attribute 'kind' has the name of another column"):
        write_votes(marked, tmp_path / "more.csv")


def test_nothing_is_said_or_written_where_all_are_people(rows: list[Row], tmp_path: Path) -> None:
    plain = read_votes(without(rows))
    marked = read_votes([row for row in rows if row["kind"] == "person"])
    assert repr(plain) == repr(marked)
    for votes, name in ((plain, "a.csv"), (marked, "b.csv")):
        write_votes(votes, tmp_path / name)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert b"kind" not in (tmp_path / "a.csv").read_bytes()
    found = inspect(plain, resamples=0)
    assert "models" not in found.to_dict()
    assert "model" not in str(found)
    assert people_alone(plain) == (plain, "")
    assert share_of_models(plain) == ""


def test_a_smaller_panel_keeps_the_marks(votes: Votes) -> None:
    some = subsample(votes, 2, seed=0)
    assert some.by_model is not None
    assert some.annotators is not None
    assert set(some.annotators.names[some.annotators.code[some.by_model]].tolist()) <= {"gpt-4", "llama"}
    assert votes.take_items(np.array([0, 3])).n_model_votes == 4


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
def test_no_scheme_counts_them_unasked(votes: Votes, rows: list[Row], scheme: str) -> None:
    with pytest.raises(InputError, match=r"25 of 61 votes are from models.*votes\.people.*models_as_people"):
        label(votes, scheme)
    np.testing.assert_array_equal(
        label(votes.people, scheme).probabilities, label(read_votes(without(rows)), scheme).probabilities
    )
    assert len(label(votes.models_as_people(), scheme).items) == 13


def test_no_statistic_counts_them_unasked(votes: Votes) -> None:
    for statistic in (agreement, class_alpha, annotator_agreement):
        with pytest.raises(InputError, match="are from models"):
            statistic(votes)


def test_an_inspection_is_of_people_and_says_what_it_left_out(rows: list[Row], votes: Votes) -> None:
    found, alone = inspect(votes, resamples=50), inspect(read_votes(without(rows)), resamples=50)
    told = found.to_dict()
    models = told.pop("models")
    assert told["sentences"].pop() == (
        "25 of 61 votes are from models (gpt-4, llama): left out, with 1 item that only they judged and the class "
        "'refused' that only they chose. All numbers are of people."
    )
    assert told == alone.to_dict()
    assert models["votes"] == 25
    assert "models beside people" in str(found)
    with pytest.raises(InputError, match="all 25 votes are from models"):
        inspect(votes.models or votes)


def test_models_are_compared_with_people_and_nobody_else(rows: list[Row], votes: Votes) -> None:
    found = models_beside_people(votes)
    assert found is not None
    for k, name in enumerate(("gpt-4", "llama")):
        said = {row["item"]: row["label"] for row in rows if row["annotator"] == name and row["item"] != "only"}
        people = [row for row in rows if row["kind"] == "person"]
        same = [np.mean([row["label"] == said[i] for row in people if row["item"] == i]) for i in said]
        assert found.agreement[k] == pytest.approx(np.mean(same))
        shares = [np.mean([row["label"] == c for row in people]) for c in votes.classes]
        own = [np.mean([word == c for word in said.values()]) for c in votes.classes]
        assert found.expected[k] == pytest.approx(np.dot(shares, own))
    assert found.judgements.tolist() == [13, 12]
    assert found.compared.tolist() == [12, 12]
    assert models_beside_people(votes.people) is None


def test_the_page_of_an_inspection_shows_them(votes: Votes, tmp_path: Path) -> None:
    write_page(inspect(votes, resamples=0), votes, tmp_path / "page.html", title="t")
    page = (tmp_path / "page.html").read_text()
    assert "25 of 61 votes are from models" in page
    assert "<td>gpt-4</td>" in page


def test_streaming_leaves_them_out_and_says_how_many(rows: list[Row], tmp_path: Path) -> None:
    for name, part in (("all", rows), ("people", without(rows))):
        pl.DataFrame(part).write_csv(tmp_path / f"{name}.csv")
    found, alone = count_votes(tmp_path / "all.csv"), count_votes(tmp_path / "people.csv")
    assert found.left_out == 25
    assert (found.items.tolist(), found.classes) == (alone.items.tolist(), alone.classes)
    np.testing.assert_array_equal(found.counts, alone.counts)
    everybody = count_votes(tmp_path / "all.csv", with_models=True)
    assert (everybody.left_out, everybody.counts.sum()) == (0, 61)
    numbers = [row | {"item": int(row["item"][1:])} for row in rows if row["item"] != "only"]
    pl.DataFrame(numbers).write_parquet(tmp_path / "numbers.parquet")
    assert count_votes(tmp_path / "numbers.parquet").counts.sum() == 36


def test_models_keep_their_names_among_pseudonyms(votes: Votes) -> None:
    named = pseudonymous(votes, "secret")
    assert named.annotators is not None
    assert named.annotators.names[named.model_annotators].tolist() == ["gpt-4", "llama"]
    assert all(name.startswith("person-") for name in named.annotators.names[~named.model_annotators].tolist())
    assert named.n_model_votes == 25


def test_croissant_names_the_models(votes: Votes, tmp_path: Path) -> None:
    for part, ending in ((votes, "all"), (votes.people, "people")):
        write_votes(part, tmp_path / f"{ending}.csv")
    told = croissant(votes, tmp_path / "all.csv", name="t")
    assert told["rai:machineAnnotationTools"] == ["25 of 61 votes are from models (gpt-4, llama)"]
    assert "25 of 61" in told["description"]
    assert "kind" in [each["name"] for each in told["recordSet"][0]["field"]]
    assert told["rai:annotationsPerItem"].startswith("3 to 3")
    assert "model" not in json.dumps(croissant(votes.people, tmp_path / "people.csv", name="t"))


def test_counts_made_by_hand_have_no_models() -> None:
    assert votes_from_counts([[2, 1]]).by_model is None
    assert Options().models == ()


def test_people_keeps_declared_classes_without_votes() -> None:
    """A class goes with the models where only they chose it, and stays where nobody did."""
    votes = read_votes(
        [
            {"item": "a", "annotator": "anna", "label": "no", "kind": "person"},
            {"item": "a", "annotator": "gpt", "label": "yes", "kind": "model"},
            {"item": "b", "annotator": "ben", "label": "no", "kind": "person"},
        ],
        classes=("no", "maybe", "yes", "never"),
    )
    assert votes.people.classes == ("no", "maybe", "never")
    assert votes.people.counts.tolist() == [[1, 0, 0], [1, 0, 0]]
