"""`dissensus ood`: how well stored runs separate out-of-distribution (OOD) from in-distribution (ID) items."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_to, next_step, note, plain, table, text_to, typed
from dissensus.errors import InputError
from dissensus_train.cli.item_lists import named_path
from dissensus_train.cli.stores import opened_study

if TYPE_CHECKING:
    from dissensus.arrays import Floats
    from dissensus_train.ood.results import OodResult

INSIDE = ("id", "in-distribution")
"""What in-distribution items are called in a table of scores."""


@opt.command("ood")
def ood(
    source: str | None = None,
    ood_sets: list[str] | None = None,
    inside: Path | None = None,
    training: Path | None = None,
    near: list[str] | None = None,
    far: list[str] | None = None,
    scores: str | None = None,
    store: opt.RunsIn = Path("dissensus-runs"),
    items: int | None = None,
    text: str | None = None,
    device: opt.Device = "auto",
    seed: int | None = None,
    output: Path | None = None,
    json: opt.JsonTo = None,
) -> None:
    """Measure out-of-distribution (OOD) detection: AUROC, AUPR and FPR95 of each score on each OOD set, with intervals.

    Of the stored runs of a study, or, with --id, of the logits and features of any model. An option that is not given
    is taken from the table ood of the study's file.
    """
    table = scores if scores is not None and Path(scores).is_file() else None
    if scores is not None and table is None and ("." in scores or "/" in scores):
        raise InputError(f"ood: there is no file {scores}; give a table, or names of scores, with --scores")
    options: dict[str, Any] = {
        "sets": _named(ood_sets or []) or None,
        "near": tuple(near) if near else None,
        "far": tuple(far) if far else None,
        "scores": None if scores is None or table else tuple(name.strip() for name in scores.split(",")),
        "items": items,
        "text": text,
        "seed": seed,
    }
    settings = {name: value for name, value in options.items() if value is not None}
    if [source, inside, table].count(None) != 2:
        raise InputError(
            "ood: give a study or its run store, or outputs of a model with --id FILE, or a table with --scores FILE"
        )
    if table is not None:
        from dissensus_train.ood import measure_scores

        _refuse(("sets", "items", "text"), settings, "all rows of the table are")
        result = measure_scores(read_scores(table), **settings)
    elif source is not None:
        result = _of_study(source, store, settings, device)
    else:
        result = _of_outputs(inside, training, settings)
    if output is not None:
        from dissensus_train.report.ood import ood_page

        text_to(output, ood_page(result))
        note(f"tables, ROC curves and histograms written to {output}")
    if json is not None:
        json_to(json, result.to_dict())
    if "-" not in (str(json), str(output)):
        show_ood(result)
    next_step(typed("report", source, "--store", store) if source else "dissensus study init VOTES ITEMS")


def _of_study(source: str, store: Path, settings: dict[str, Any], device: str) -> OodResult:
    from dataclasses import replace

    from dissensus_train.ood import OodSettings
    from dissensus_train.studies.measuring import study_ood
    from dissensus_train.training.engine import settled_device

    opened, _, _ = opened_study(source, store, command="ood")
    own = opened.study.ood
    if own is None and "sets" not in settings:
        raise InputError("ood: no OOD set is given; name a folder, npz or table with --ood, or in an [ood] table")
    wanted = OodSettings(**settings) if own is None else replace(own, **settings)
    return study_ood(opened, wanted, device=settled_device(device))


def _of_outputs(inside: Path | None, training: Path | None, settings: dict[str, Any]) -> OodResult:
    from dissensus_train.ood import measure_outputs, read_outputs

    _refuse(("items", "text"), settings, "with --id all outputs of the files are")
    sets = settings.pop("sets", None)
    if not sets:
        raise InputError("ood: no OOD set is given; name an .npz of outputs with --ood FILE")
    return measure_outputs(
        read_outputs(str(inside)),
        {name: read_outputs(path) for name, path in sets.items()},
        training=None if training is None else read_outputs(training),
        paths=sets,
        **settings,
    )


def read_scores(path: str | Path) -> dict[str, dict[str, Floats]]:
    """By set and score, (items,) scores from a table: a column `set`, and a column of numbers for each score.

    In-distribution items have `id` or `in-distribution` in `set`; every other value names an OOD set. Scores are larger
    for items that look more out-of-distribution.
    """
    import polars as pl

    from dissensus.table_file import open_file, read_rows
    from dissensus_train.ood.measuring import IN_DISTRIBUTION

    table = read_rows(open_file(path)).table
    names = [name for name in table.columns if name not in ("set", "item")]
    if "set" not in table.columns or not names:
        raise InputError(f"{path}: columns {', '.join(table.columns)}; give 'set' (id, or an OOD set) and scores")
    ours = pl.col("set").cast(pl.String).str.strip_chars().replace(dict.fromkeys(INSIDE, IN_DISTRIBUTION))
    numbers = table.select(ours, *(pl.col(name).cast(pl.Float64, strict=False) for name in names))
    for name in ("set", *names):
        told = numbers["set"].is_not_null() if name == "set" else numbers[name].is_finite().fill_null(value=False)
        if not told.all():
            what = "empty" if name == "set" else "no finite number"
            raise InputError(
                f"{path}: '{name}' is {what} in row {(told.arg_min() or 0) + 1:,}; fill or remove that row"
            )
    if "item" in table.columns:
        item, inside = table["item"].cast(pl.String), numbers["set"] == IN_DISTRIBUTION
        # An OOD item may be in two OOD sets, and nothing is in and out of distribution.
        twice = pl.DataFrame([item, numbers["set"]]).is_duplicated() | (
            ~inside & item.is_in(item.filter(inside).implode())
        )
        if twice.any():
            raise InputError(f"{path}: item '{item[twice.arg_max() or 0]}' is there twice; give each item once")
    sets = numbers.partition_by("set", as_dict=True, maintain_order=True)
    return {str(key): {name: of[name].to_numpy() for name in names} for (key,), of in sets.items()}


def _refuse(names: tuple[str, ...], settings: dict[str, Any], used: str) -> None:
    for refused in (name for name in names if name in settings):
        raise InputError(f"--{'ood' if refused == 'sets' else refused} is of a study's items; {used} used")


def show_ood(result: OodResult) -> None:
    """Print what a reader should know before the numbers, a table for each OOD set, and how to read them."""
    note(*result.notes())
    for ood_set in result.sets:
        kind = f", {ood_set.kind}" if ood_set.kind else ""
        against = f"{ood_set.items:,} OOD items ({ood_set.how}) against {result.against}"
        _show(result, ood_set.name, f"{ood_set.name}{kind}: {against}")
    for kind, names in result.kinds.items():
        if len(names) > 1:
            _show(result, kind, f"{kind}: the mean over {', '.join(names)}")
    runs = sorted({len(seeds) for seeds in result.seeds.values()})
    over = "one seed, with 95 % intervals over items"
    if runs != [1]:
        over = (
            f"mean over {' or '.join(map(str, runs))} seeds with 95 % intervals over items and seeds (disagreement is "
            "one number of all seeds, its interval over items)"
        )
    note(
        f"{over}; AUROC 0.5 is chance; FPR95, OOD positive: the share of in-distribution (ID) items flagged where "
        "95 % of OOD items are; FPR95, ID positive: the share of OOD items let through where 95 % of ID items are"
    )


def _named(paths: list[str]) -> dict[str, str]:
    """OOD sets by name: the name given before =, or that of the file."""
    named: dict[str, str] = {}
    for written in paths:
        name, path = named_path(written)
        name = name if path != written else Path(written).name.split(".")[0]
        if not name or name in named:
            raise InputError(f"--ood {written}: another set is called '{name}'; give each its own name: NAME=PATH")
        named[name] = path
    return named


def _show(result: OodResult, ood_set: str, title: str) -> None:
    from dissensus_train.ood.measures import MEASURES

    several = len(result.systems) > 1
    rows = table("score", "system", ">AUROC", title=plain(title), no_wrap=True)
    if several:
        rows.add_column(f"AUROC minus that of {plain(result.systems[0])}", justify="right", min_width=23)
    rest = [measure for measure in MEASURES if measure != "auroc"]
    for measure in rest:
        rows.add_column(MEASURES[measure].title.replace(", ", "\n").replace(" ", "\n"), justify="right", no_wrap=True)
    for score in result.settings["scores"]:
        for system in result.systems:
            difference = result.difference(ood_set, score, system=system)
            numbers = [str(result.get(ood_set, score, system=system).value)]
            if several:
                numbers.append("" if difference is None else str(difference.value))
            numbers += [f"{result.get(ood_set, score, system=system, measure=m).value.value:.3f}" for m in rest]
            rows.add_row(score, plain(system), *numbers)
    console().print(rows)
