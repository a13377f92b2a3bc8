"""`dissensus basins`: how flat the minima of stored runs are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_to, next_step, note, plain, progress_bar, table, typed
from dissensus_train.cli.stores import opened_study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus_train.basins.summary import BasinRow
    from dissensus_train.studies.measuring import StudyBasins


@opt.command("basins")
def basins(
    source: opt.StudyOrStore,
    store: opt.RunsIn = Path("dissensus-runs"),
    split: str | None = None,
    items: int | None = None,
    eigenvalues: int | None = None,
    probes: int | None = None,
    density: int | None = None,
    surface: int | None = None,
    explanations: int | None = None,
    device: opt.Device = "auto",
    seed: int | None = None,
    compute_on: opt.OnRay = "local",
    address: opt.Address = None,
    json: opt.JsonTo = None,
) -> None:
    """Measure curvature and sharpness of stored runs on one loss and the same items, and the paths between runs.

    An option that is not given is taken from the study's own [basins] table.
    """
    from dataclasses import replace

    from dissensus_train.basins import BasinSettings
    from dissensus_train.studies.measuring import study_basins
    from dissensus_train.training.engine import settled_device

    opened, study, store = opened_study(source, store, command="basins")
    options: dict[str, Any] = {
        "split": split,
        "eigenvalues": eigenvalues,
        "probes": probes,
        "density": density,
        "surface": surface,
        "explanations": explanations,
        "seed": seed,
    }
    settings = {name: value for name, value in options.items() if value is not None}
    if items is not None:
        settings["items"] = items or None
    wanted = replace(opened.study.basins or BasinSettings(), **settings)
    over = opt.over(compute_on, address, device=device)
    # On a cluster, what there is to compute on is known to its nodes alone.
    place = device if compute_on == "ray" else settled_device(device)
    with progress_bar() as progress:
        measured = study_basins(opened, wanted, device=place, over=over, progress=progress)
    rows = show_basins(measured, quiet=str(json) == "-")
    if json is not None:
        json_to(json, basins_dict(measured, rows))
    next_step(typed("report", study, "--store", store))


def basins_dict(measured: StudyBasins, rows: list[BasinRow]) -> dict[str, Any]:
    """Summary, single runs and pairs, ready for JSON."""
    from dissensus.bootstrap import json_value

    of_two = ("first", "second", "barrier", "aligned", "cka")
    return {
        "measured_on": str(measured.systems[measured.reference][0].measured_on),
        "reference": measured.reference,
        "summary": json_value(rows),
        "runs": json_value(measured.systems),
        "pairs": [
            {**{name: json_value(getattr(two, name)) for name in of_two}, "runs": json_value(two.pairs)}
            for two in measured.pairs
        ],
        "explanations": json_value(measured.explanations),
    }


def show_basins(measured: StudyBasins, *, quiet: bool = False) -> list[BasinRow]:
    """Print each quantity by system, then pairs of runs and explanations; returns the rows of the first table."""
    from dissensus_train.basins.summary import QUANTITIES, summarise_basins

    rows = summarise_basins(measured.systems, reference=measured.reference)
    if quiet:
        return rows
    on = measured.systems[measured.reference][0].measured_on
    _print_table(
        plain(f"Basins: {on.loss} on {on.items:,} items ({on.data})"),
        [f">{plain(system)}" for system in measured.systems],
        [
            (quantity.title, *(_cell(row) for row in rows if row.quantity == name))
            for name, quantity in QUANTITIES.items()
        ],
        f"mean ± sd over seeds, and how many times {measured.reference} (mean of the seeds' ratios); ~ marks an "
        "estimate that did not converge for some seed. Every estimate's own error is in --json.",
    )
    _print_table(
        "Between runs",
        (">pairs", ">loss barrier", ">aligned", ">CKA"),
        [
            (
                plain(two.name),
                str(len(two.pairs)),
                *(plain(str(of or "-")) for of in (two.barrier, two.aligned, two.cka)),
            )
            for two in measured.pairs
        ],
        "mean and 95 % interval over items and seeds (of a single pair over items alone). Barrier: how far the loss on "
        "the straight path between two runs rises above the line between their own losses; aligned: once the hidden "
        "units of one are in the order of the other's, with batch statistics taken anew",
    )
    explained = measured.explanations
    _print_table(
        f"Explanations across seeds, {', '.join({stability.method for stability in explained.values()})}",
        (">pairs", ">cosine", ">correlation"),
        [
            (plain(system), str(stability.pairs), plain(str(stability.cosine)), plain(str(stability.correlation)))
            for system, stability in explained.items()
        ],
        "how alike two seeds' maps of what speaks for the class that most people chose are: mean and 95 % interval",
    )
    return rows


def _print_table(title: str, headings: Sequence[str], rows: Sequence[tuple[str, ...]], remark: str) -> None:
    """A table, where it has rows, and how to read it."""
    if rows:
        lines = table("", *headings, title=title)
        for row in rows:
            lines.add_row(*row)
        console().print(lines)
        note(remark)


def _cell(row: BasinRow) -> str:
    spread = "" if row.sd is None else f" ± {row.sd:.3g}"
    ratio = f" ({row.times_reference})" if row.times_reference else ""
    return f"{'' if row.converged else '~'}{row.mean:.4g}{spread}{ratio}"
