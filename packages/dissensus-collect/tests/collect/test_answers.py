"""The server takes complete and legal answers, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus_collect.project.reading import read_project
from dissensus_collect.work.answers import Refused, amounts_of, check_answers, check_values, responses_of
from tests.collect.conftest import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_collect.project.reading import Project


def project_with(tmp_path: Path, layout: str = "rows", **changes: Any) -> Project:
    return make_project(tmp_path / layout, layout=f'"{layout}"', **changes)


def refused(project: Project, raw: Any) -> Refused:
    with pytest.raises(Refused) as error:
        check_answers(project, raw)
    return error.value


@pytest.mark.parametrize("layout", ["rows", "one-at-a-time"])
def test_every_class_needs_an_explicit_answer(tmp_path: Path, layout: str) -> None:
    project = project_with(tmp_path, layout)
    whole = {"0": "yes", "1": "no", "2": "unsure"}
    assert check_answers(project, {"values": whole}).values == {0: 1, 1: 0, 2: 2}
    assert responses_of(project, {0: 1, 1: 0, 2: 2}) == (1, 0, 2)
    error = refused(project, {"values": {"0": "yes"}})
    assert error.kind == "incomplete"
    assert str(error) == "2 classes left: b, c"
    assert refused(project, {"values": {}}).kind == "incomplete"


def test_all_no_is_an_answer(tmp_path: Path) -> None:
    assert check_answers(project_with(tmp_path), {"values": dict.fromkeys("012", "no")}).values == {0: 0, 1: 0, 2: 0}


@pytest.mark.parametrize("value", ["Maybe", "", None, True, 1, 1.0, [], {}, "YES", "yes "])
def test_other_values_are_illegal(tmp_path: Path, value: Any) -> None:
    assert refused(project_with(tmp_path), {"values": {"0": value, "1": "no", "2": "no"}}).kind == "illegal"


@pytest.mark.parametrize("key", ["3", "-1", "a", "", "00", "٣", "1e0", " 1"])
def test_other_classes_are_illegal(tmp_path: Path, key: str) -> None:
    assert refused(project_with(tmp_path), {"values": {"0": "no", "1": "no", "2": "no", key: "no"}}).kind == "illegal"


@pytest.mark.parametrize("raw", [None, [], "yes", 3, {}, {"values": []}, {"values": None}])
def test_something_else_than_answers_is_illegal(tmp_path: Path, raw: Any) -> None:
    assert refused(project_with(tmp_path), raw).kind == "illegal"


def test_unsure_is_illegal_where_a_project_does_not_offer_it(tmp_path: Path) -> None:
    project = project_with(tmp_path, unsure="false")
    assert project.values == ("yes", "no")
    assert refused(project, {"values": {"0": "unsure", "1": "no", "2": "no"}}).kind == "illegal"


def test_select_all_reads_silence_as_no(tmp_path: Path) -> None:
    project = project_with(tmp_path, "select-all")
    assert check_answers(project, {"values": {"1": "yes"}}).values == {0: 0, 1: 1, 2: 0}
    assert check_answers(project, {"values": {}}).values == {0: 0, 1: 0, 2: 0}
    assert refused(project, {"values": {"1": "unsure"}}).kind == "illegal"


def test_single_choice_is_exactly_one(tmp_path: Path) -> None:
    project = project_with(tmp_path, "single-choice")
    assert check_answers(project, {"values": {"2": "yes"}}).values == {0: 0, 1: 0, 2: 1}
    assert refused(project, {"values": {}}).kind == "incomplete"
    assert refused(project, {"values": {"1": "yes", "2": "yes"}}).kind == "illegal"


def test_ratings_are_one_to_five_for_every_class(tmp_path: Path) -> None:
    project = project_with(tmp_path, "rating")
    values = check_answers(project, {"values": {"0": 5, "1": 3, "2": 1}}).values
    assert responses_of(project, values) == (1, 2, 0)
    assert amounts_of(project, values) == (5.0, 3.0, 1.0)
    assert refused(project, {"values": {"0": 5, "1": 3}}).kind == "incomplete"
    for value in (0, 6, 2.5, "5", True):
        assert refused(project, {"values": {"0": value, "1": 3, "2": 3}}).kind == "illegal"


def test_points_sum_to_a_hundred(tmp_path: Path) -> None:
    project = project_with(tmp_path, "points")
    values = check_answers(project, {"values": {"0": 70, "1": 30, "2": 0}}).values
    assert responses_of(project, values) == (1, 2, 0)
    assert amounts_of(project, values) == (70.0, 30.0, 0.0)
    error = refused(project, {"values": {"0": 70, "1": 20, "2": 0}})
    assert (error.kind, str(error)) == ("incomplete", "the points sum to 90; share out all 100")
    assert refused(project, {"values": {"0": -10, "1": 110, "2": 0}}).kind == "illegal"


def test_times_are_told_in_seconds(tmp_path: Path) -> None:
    raw = {
        "values": dict.fromkeys("012", "no"), "first": {"0": 1250.5, "1": None}, "last": {"0": 2000},
        "changes": {"0": 1}, "total_ms": 12500, "hidden_ms": 0, "input": "key", "window": [390, 844, 3],
        "frame_ms": 16.7,
    }  # fmt: skip
    answers = check_answers(project_with(tmp_path), raw)
    assert answers.first_seconds == {0: 1.2505}
    assert answers.last_seconds == {0: 2.0}
    assert answers.changes == {0: 1}
    assert (answers.seconds, answers.hidden_seconds) == (12.5, 0.0)
    assert (answers.input, answers.window, answers.frame_ms) == ("key", (390.0, 844.0, 3.0), 16.7)


@pytest.mark.parametrize(
    "wrong",
    [
        {"total_ms": -1}, {"total_ms": "12"}, {"total_ms": float("nan")}, {"total_ms": float("inf")}, {"first": []},
        {"first": {"9": 1}}, {"changes": {"0": True}}, {"input": "voice"}, {"input": []}, {"window": [1, 2]},
        {"window": "wide"}, {"window": [1, 2, None]}, {"frame_ms": {}},
    ],
)  # fmt: skip
def test_broken_measurements_are_illegal(tmp_path: Path, wrong: dict[str, Any]) -> None:
    assert refused(project_with(tmp_path), {"values": dict.fromkeys("012", "no"), **wrong}).kind == "illegal"


def test_a_draft_may_be_incomplete_but_not_illegal(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    assert check_values(project, {"1": "unsure"}) == {1: 2}
    with pytest.raises(Refused):
        check_values(project, {"1": "perhaps"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["values", "first", "last", "changes", "total_ms", "hidden_ms", "input", "window", "frame_ms"])


@given(raw=JSON | st.dictionaries(FIELDS, JSON | st.dictionaries(st.sampled_from("0123"), JSON, max_size=4)))
def test_whatever_is_sent_is_checked_or_refused(tmp_path_factory: pytest.TempPathFactory, raw: Any) -> None:
    folder = tmp_path_factory.getbasetemp() / "any-answers"
    project = read_project(folder) if folder.exists() else make_project(folder)
    try:
        answers = check_answers(project, raw)
    except Refused:
        return
    assert set(answers.values) == {0, 1, 2}
    assert set(answers.values.values()) <= {0, 1, 2}
