"""The net: what the tool says must not change, and a change must not go unnoticed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import dissensus as dis
from tests.net import comparing as net
from tests.net.comparing import Case, Change, Ran

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.net.adapter import Adapter

CASES = net.read_cases()
GONE = net.read_gone([case.name for case in CASES])
ROOMS = list(dict.fromkeys(case.room for case in CASES))
CASE = Case(room="r", name="c", call="evaluate --resamples 100")
OLD = {"score/value": 0.5, "score/low": 0.4, "score/high": 0.6, "items": 120.0}


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Adapter:
    from tests.net.adapter import Adapter

    return Adapter(tmp_path_factory.mktemp("net"))


def failures_of(cases: list[Case], adapter: Adapter) -> str:
    changes = net.read_changes([case.name for case in CASES])
    ran = [net.run_case(case, adapter) for case in cases if case.name not in GONE]
    failures = net.compare_all(ran, net.read_values(), changes)
    return net.table(failures) if failures else ""


@pytest.mark.parametrize("room", ROOMS)
def test_net_room(room: str, adapter: Adapter) -> None:
    cases = [case for case in net.runnable(CASES, data=False) if case.room == room]
    assert not (told := failures_of(cases, adapter)), f"\n{told}"


def test_net_real_data(data: Path, adapter: Adapter) -> None:
    cases = [case for case in CASES if "data" in case.flags]
    assert not (told := failures_of(cases, adapter)), f"\n{told}"


# --- the comparison --------------------------------------------------------------------------------------------------


def why(new: dict[str, float], *changes: Change, case: Case = CASE) -> dict[str, str]:
    entered = {(each.case, each.quantity): each for each in changes}
    return {failure.quantity: failure.why for failure in net.compare(case, OLD, new, entered)}


def change(quantity: str, old: str, new: str) -> Change:
    return Change(case="c", quantity=quantity, old=old, new=new, reason="a method", check="a test")


def test_compare_equal_values_pass() -> None:
    assert why(OLD) == {}
    assert why({**OLD, "score/value": 0.5 * (1 + 1e-10)}) == {}


@pytest.mark.parametrize("seed", range(5))
def test_compare_stored_value_changed_fails(seed: int) -> None:
    """Perturb a stored value of each of five cases by a millionth, as a wrong rule would at the least."""
    values = net.read_values()
    exact = [case for case in CASES if case.name in values and case.tolerance < 1e-6]
    case = exact[seed * len(exact) // 5]
    numbers = values[case.name]
    quantity = max(numbers, key=lambda name: abs(numbers[name]))
    wrong = {**numbers, quantity: numbers[quantity] * (1 + 1e-6)}
    assert [failure.quantity for failure in net.compare(case, numbers, wrong)] == [quantity]
    assert net.compare(case, numbers, numbers) == []


def test_compare_missing_and_new_quantities_fail() -> None:
    new = {name: value for name, value in OLD.items() if name != "items"} | {"votes": 600.0}
    assert why(new) == {"items": "missing quantity", "votes": "new quantity"}
    assert why(new, change("items", "120.0", "-"), change("votes", "-", "600")) == {}


def test_compare_trained_has_wider_tolerance() -> None:
    new = {**OLD, "score/value": 0.5 * (1 + 1e-6)}
    assert set(why(new)) == {"score/value"}
    assert why(new, case=replace(CASE, flags=frozenset({"trained"}))) == {}
    assert set(why({**OLD, "score/value": 0.50001}, case=replace(CASE, flags=frozenset({"trained"})))) == {
        "score/value"
    }


def test_compare_nan_equals_nan_alone() -> None:
    assert not net.compare(CASE, {"a": float("nan")}, {"a": float("nan")})
    assert net.compare(CASE, {"a": 1.0}, {"a": float("nan")})


def test_compare_intervals_drawn_anew_pass_within_three_errors() -> None:
    anew = change(net.DRAWN_ANEW, "-", "-")
    error = net.end_error(0.4, 0.6, 100)
    assert error == pytest.approx(2**0.5 * 1.36 * 0.1 / 10)
    near, far = {**OLD, "score/low": 0.4 + 2.9 * error}, {**OLD, "score/low": 0.4 + 3.1 * error}
    assert set(why(near)) == {"score/low"}
    assert why(near, anew) == {}
    assert set(why(far, anew)) == {"score/low"}
    # A point value is not drawn.
    assert set(why({**OLD, "score/value": 0.51}, anew)) == {"score/value"}


def test_compare_entered_change_passes_with_both_values_alone() -> None:
    new = {**OLD, "score/value": 0.7}
    assert why(new, change("score/value", "0.5", "0.7")) == {}
    assert "new value" in why(new, change("score/value", "0.5", "0.8"))["score/value"]
    assert "old value" in why(new, change("score/value", "0.4", "0.7"))["score/value"]
    # An entry outlives its change: the number is what it was.
    assert "new value" in why(OLD, change("score/value", "0.5", "0.7"))["score/value"]
    assert "no quantity" in why(OLD, change("nothing", "0.5", "0.7"))["nothing"]


def test_compare_all_reports_errors_and_unknown_cases() -> None:
    broken, unknown = Ran(CASE, {}, 0.0, "ValueError: no"), Ran(replace(CASE, name="d"), OLD, 0.0)
    assert [failure.why for failure in net.compare_all([broken, unknown], {"c": OLD})] == [
        "ValueError: no",
        "values.json has no such case",
    ]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("| c | items | 1 | 2 |  | a test |", "a reason and an independent check"),
        ("| c | items | 1 | 2 | a method |  |", "a reason and an independent check"),
        ("| d | items | 1 | 2 | a method | a test |", "no such case"),
        ("| c | items | 1 | 2 | a method |", "expected 6 cells"),
    ],
)
def test_read_changes_incomplete_row_raises(row: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "changes.md"
    path.write_text(net.CHANGES.read_text(encoding="utf-8") + row + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=told):
        net.read_changes(["c"], path)


def test_read_changes_complete_row_is_read(tmp_path: Path) -> None:
    path = tmp_path / "changes.md"
    head = "\n".join(net.CHANGES.read_text(encoding="utf-8").partition("|---")[0].splitlines())
    path.write_text(f"{head}\n|---|---|---|---|---|---|\n| c | items | 1 | 2 | a method | a test |\n", encoding="utf-8")
    assert net.read_changes(["c"], path)["c", "items"] == change("items", "1", "2")


@pytest.mark.parametrize(("row", "told"), [("| c |  |", "the sentence"), ("| d | It goes. |", "no such case")])
def test_read_gone_incomplete_row_raises(row: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "gone.md"
    path.write_text(f"| case | sentence |\n|---|---|\n{row}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=told):
        net.read_gone(["c"], path)


def test_values_belong_to_cases() -> None:
    names = {case.name for case in CASES}
    values = net.read_values()
    assert set(values) == names
    assert len(names) >= 100
    assert max(map(len, values.values())) <= net.MOST


def _scaled(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **options: rule(*given, **options) * (1 + 1e-6)


def _other_seed(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **options: rule(*given, **{**options, "seed": options["seed"] + 1})


def _one_item_less(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda votes, *given, **options: rule(votes.take_items(np.arange(1, len(votes.items))), *given, **options)


def _other_scheme(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda votes, *given, **options: rule(votes, "majority")


@pytest.mark.parametrize(
    ("room", "rule", "wrong", "name"),
    [
        (dis.metrics, "tvd", _scaled, "metrics: functions on sample"),
        (dis, "agreement", _one_item_less, "agreement: sample"),
        (dis, "subsample", _other_seed, "subsample: 3 votes of words"),
        (dis, "label", _other_scheme, "label: sample, frequency"),
        (dis, "deliver", _other_seed, "delivery: sls"),
    ],
)
def test_net_wrong_rule_fails(
    room: Any, rule: str, wrong: Any, name: str, adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(case for case in CASES if case.name == name)
    assert failures_of([case], adapter) == ""
    monkeypatch.setattr(room, rule, wrong(getattr(room, rule)))
    assert name in failures_of([case], adapter)
