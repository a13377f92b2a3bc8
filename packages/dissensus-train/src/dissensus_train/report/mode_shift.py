"""The mode-shift audit as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.report.tables import Cell, Table, TableRow, estimated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus_train.studies.original import Audit


def mode_shift_table(audits: Sequence[Audit]) -> Table:
    """How much of an accuracy gain over original labels is the moved mode, and how much is softness, by stratum."""
    rows, records = [], []
    for audit in audits:
        parts = {name: getattr(audit.shift, name) for name in ("gain", "mode", "softness")}
        rows.append(
            TableRow(
                name=audit.soft,
                cells=(
                    Cell(audit.stratum, f"{audit.shift.items:,}"),
                    Cell(f"{100 * audit.moved:.1f}"),
                    *(estimated(part, "accuracy") for part in parts.values()),
                ),
            )
        )
        numbers = {
            f"{name}{end}": getattr(part, key)
            for name, part in parts.items()
            for end, key in (("", "value"), ("_low", "low"), ("_high", "high"))
        }
        about = {"system": audit.soft, "original": audit.original, "majority": audit.majority, "stratum": audit.stratum}
        records.append({**about, "items": audit.shift.items, "moved": audit.moved, **numbers})
    return Table(
        slug="mode-shift",
        title="Mode shift",
        header=("method", "items", "mode moved, %", "gain, points", "of it the moved mode", "of it softness"),
        rows=tuple(rows),
        records=tuple(records),
        note=(
            "Accuracy against the people's majority, minus that of the same network trained on original labels (gain), "
            "divided into what training on the new majority brings (the moved mode) and what is left (softness); 95 % "
            "intervals over items and seeds."
        ),
    )
