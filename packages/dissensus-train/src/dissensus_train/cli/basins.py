"""`dissensus basins`: how flat the minima of stored runs are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_to, next_step, note, plain, progress_bar, table
from dissensus_train.cli.stores import study_and_store

if TYPE_CHECKING:
    from dissensus.cores import Over
    from dissensus_train.basins import BasinSettings
    from dissensus_train.basins.summary import BasinRow
    from dissensus_train.studies.measuring import StudyBasins
    from dissensus_train.studies.opening import OpenStudy


def basins(
    source: opt.StudyOrStore,
    store: opt.RunsIn = Path("dissensus-runs"),
    split: Annotated[
        str | None, typer.Option(help="The split whose items the loss is measured on; train if not given.")
    ] = None,
    items: Annotated[
        int | None, typer.Option(help="How many items to draw at most, the same for all runs; 0 takes the whole split.")
    ] = None,
    eigenvalues: Annotated[int | None, typer.Option(help="How many of the largest eigenvalues to find.")] = None,
    probes: Annotated[int | None, typer.Option(help="How many random probes the trace may use.")] = None,
    density: Annotated[
        int | None, typer.Option(help="How many probes the spectral density uses; 0 leaves it out.")
    ] = None,
    surface: Annotated[
        int | None, typer.Option(help="Points along each side of the loss surface; 0 leaves it out.")
    ] = None,
    explanations: Annotated[
        int | None,
        typer.Option(
            help="Compare what seeds look at (Grad-CAM, or input gradients), and keep the maps of so many items; 0 "
            "leaves it out."
        ),
    ] = None,
    device: opt.Device = "auto",
    seed: Annotated[int | None, typer.Option(help="Seed of the drawn items, probes and directions.")] = None,
    engine: opt.OnRay = "local",
    address: opt.Address = None,
    json: opt.JsonTo = None,
) -> None:
    r"""Measure curvature and sharpness of stored runs on one loss and the same items, and the paths between runs.

    An option that is not given is taken from the study's own \[basins] table.
    """
    from dataclasses import replace

    from dissensus_train.basins import BasinSettings
    from dissensus_train.studies import open_study, read_study
    from dissensus_train.training.engine import settled_device

    study, store = study_and_store(source, store, command="basins")
    opened = open_study(read_study(study), store)
    if opened.data.note:
        note(opened.data.note)
    given: dict[str, Any] = {
        "split": split,
        "eigenvalues": eigenvalues,
        "probes": probes,
        "density": density,
        "surface": surface,
        "explanations": explanations,
        "seed": seed,
    }
    told = {name: value for name, value in given.items() if value is not None}
    if items is not None:
        told["items"] = items or None
    # On a cluster, what there is to compute on is known to its nodes alone.
    found = measure_with_progress(
        opened,
        replace(opened.study.basins or BasinSettings(), **told),
        device=device if engine == "ray" else settled_device(device),
        over=opt.over(engine, address, device=device),
    )
    rows = show_basins(found, quiet=str(json) == "-")
    if json is not None:
        json_to(json, basins_dict(found, rows))
    next_step(f"dissensus report {study} --store {store}")


def measure_with_progress(
    opened: OpenStudy, settings: BasinSettings | None = None, *, device: str, over: Over = map
) -> StudyBasins:
    """Measure what is not in the store yet, with a progress bar on a terminal."""
    from dissensus_train.studies.measuring import study_basins

    with progress_bar() as progress:
        return study_basins(opened, settings, device=device, over=over, progress=progress)


def basins_dict(found: StudyBasins, rows: list[BasinRow]) -> dict[str, Any]:
    """Summary, single runs and pairs, ready for JSON."""
    return {
        "measured_on": str(_first(found).measured_on),
        "reference": found.reference,
        "summary": [row.to_dict() for row in rows],
        "runs": {system: [basin.to_dict() for basin in basins] for system, basins in found.systems.items()},
        "pairs": [
            {
                "first": each.first,
                "second": each.second,
                "barrier": each.barrier.to_dict(),
                "cka": each.cka.to_dict(),
                "runs": [pair.to_dict() for pair in each.pairs],
            }
            for each in found.pairs
        ],
        "explanations": {system: each.to_dict() for system, each in found.explanations.items()},
    }


def show_basins(found: StudyBasins, *, quiet: bool = False) -> list[BasinRow]:
    """Print each quantity by system, then pairs of runs; returns the rows of the first table."""
    from dissensus_train.basins.summary import summarise_basins

    rows = summarise_basins(found.systems, reference=found.reference)
    if not quiet:
        _print_quantities(found, rows)
        _print_pairs(found)
        _print_explanations(found)
    return rows


def _print_quantities(found: StudyBasins, rows: list[BasinRow]) -> None:

    from dissensus_train.basins.summary import QUANTITIES

    first = _first(found)
    on = first.measured_on
    title = plain(f"Basins: {on.loss} on {on.items:,} items ({on.data})")
    shown = table("", *(f">{plain(system)}" for system in found.systems), title=title)
    for name, quantity in QUANTITIES.items():
        shown.add_row(quantity.title, *(_cell(row) for row in rows if row.quantity == name))
    console().print(shown)
    note(
        f"mean ± sd over seeds, and how many times {found.reference} (mean of the seeds' ratios); ~ marks an "
        "estimate that did not converge for some seed. Every estimate's own error is in --json."
    )


def _cell(row: BasinRow) -> str:
    spread = "" if row.sd is None else f" ± {row.sd:.3g}"
    ratio = f" ({row.times_reference})" if row.times_reference else ""
    return f"{'' if row.converged else '~'}{row.mean:.4g}{spread}{ratio}"


def _print_pairs(found: StudyBasins) -> None:
    if not found.pairs:
        return
    shown = table("", ">pairs", ">loss barrier", ">CKA", title="Between runs")
    for each in found.pairs:
        shown.add_row(plain(each.name), str(len(each.pairs)), plain(str(each.barrier)), plain(str(each.cka)))
    console().print(shown)
    note(
        "mean and 95 % interval over items and seeds (of a single pair over items alone). Barrier: how far the loss on "
        "the straight path between two runs rises above the line between their own losses"
    )


def _print_explanations(found: StudyBasins) -> None:
    if not found.explanations:
        return
    method = next(iter(found.explanations.values())).method
    shown = table("", ">pairs", ">cosine", ">correlation", title=f"Explanations across seeds, {method}")
    for system, each in found.explanations.items():
        shown.add_row(plain(system), str(each.pairs), plain(str(each.cosine)), plain(str(each.correlation)))
    console().print(shown)
    note("how alike two seeds' maps of what speaks for the class that most people chose are: mean and 95 % interval")


def _first(found: StudyBasins) -> Any:
    return found.systems[found.reference][0]
