"""A plan as files: its table, its figure, and the items that should get the next votes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dissensus.planning.figure import plan_svg
from dissensus.planning.next_items import write_list
from dissensus.table_file import write_table
from dissensus.whole_file import whole_folder

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.bootstrap import Estimate
    from dissensus.planning.planned import Choice, Plan


def write_plan(plan: Plan, folder: Path) -> None:
    """Write plan.csv, plan.svg, and the next items as next.csv (for `dissensus collect`) and next.json (Label Studio).

    Args:
        plan: what is written.
        folder: where; a new folder.
    """
    import polars as pl

    with whole_folder(folder) as unfinished:
        # Where no choice reaches the power there is nothing to show, and the answer says so.
        if plan.choices:
            write_table(pl.DataFrame([_record(each) for each in plan.choices]), unfinished / "plan.csv")
            (unfinished / "plan.svg").write_text(plan_svg(plan), encoding="utf-8")
        if plan.next is not None:
            write_list(plan.next, unfinished / "next.csv")
            write_list(plan.next, unfinished / "next.json")


def _record(choice: Choice) -> dict[str, Any]:
    """One row of the table; empty cells where a number is withheld."""
    shown = choice.shown
    findings = {
        "agreement": shown.agreement.estimate,
        "alpha": shown.alpha.estimate,
        "same_majority": shown.same_majority.estimate,
        "reliability": None if shown.reliability is None else shown.reliability.estimate,
        "label_error": shown.label_error.estimate,
        **{f"power_{metric}": each for metric, each in choice.power.items()},
        **{f"error_{metric}": each for metric, each in choice.error.items()},
        **{f"{system}_{metric}": each for system, found in choice.scores.items() for metric, each in found.items()},
    }
    out: dict[str, Any] = {"votes": choice.k, "items": choice.items, "cost": choice.cost, "hours": choice.hours}
    for name, found in findings.items():
        out |= _columns(name, found)
    return out


def _columns(name: str, found: Estimate | None) -> dict[str, float | None]:
    if found is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
