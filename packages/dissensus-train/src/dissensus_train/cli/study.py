"""`dissensus study`: run a grid of runs, and look at it."""

from __future__ import annotations

import csv
import re
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_alone, next_step, note, plain, progress_bar, table, text_to, typed
from dissensus.errors import InputError
from dissensus_train.cli.predict import compare, export
from dissensus_train.cli.progress import show_status, status_dict, train_with_progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.evaluation.evaluated import Evaluation
    from dissensus.progress import Over
    from dissensus.votes.formats import Options
    from dissensus_train.studies import OpenStudy, ScoredStudy, Study, StudyPlan
    from dissensus_train.studies.by_vote import VoteScore

SHOWN = {"kl": "KL, nats ↓", "accuracy": "accuracy ↑", "entropy_spearman": "entropy correlation (Spearman) ↑"}
"""What the short table shows of a study; the report has the rest."""

app = typer.Typer(
    name="study", help="Grids of runs: init, run, list, show, status, export, compare, gc.", no_args_is_help=True
)
app.command("export")(export)
app.command("compare")(compare)


@app.command("run")
@opt.command("run")
def run_(
    source: str,
    store: Path = Path("dissensus-runs"),
    engine: opt.Engine = "auto",
    device: str = "auto",
    shard: str | None = None,
    address: opt.Address = None,
    remote: str | None = None,
    json: opt.JsonTo = None,
) -> None:
    """Train what is not in the store yet, then show the table, and measure basins and OOD where the study says so.

    Can be stopped and started again at any time.
    """
    from dissensus_train.studies import Shard, plan_study, read_study
    from dissensus_train.studies.labelled_sets import LABELLED_SETS
    from dissensus_train.training.on_ray import Cluster

    if re.match(r"\w\w+:[/\\]", str(store)):
        raise InputError(f"{store}: a store is a folder; for an address of a cloud use --engine ray --remote")
    study = read_study(source)
    part_of = None if shard is None else Shard.named(shard)
    cluster = None if address is None and remote is None else Cluster(address, remote)
    known = LABELLED_SETS.get(study.dataset or "")
    if known is not None and known.must_be_made():
        note(f"{study.dataset}: the set is made first, once, which takes some minutes")
    with progress_bar() as progress:
        plans = [
            plan_study(part, store, engine=engine, device=device, shard=part_of, cluster=cluster, progress=progress)
            for part in study.parts
        ]
    kept = () if store == Path("dissensus-runs") else ("--store", store)
    with ExitStack() as open_plans:
        for plan in plans:
            open_plans.enter_context(plan.writer)
        try:
            for plan in plans:
                train_with_progress(plan)
        except KeyboardInterrupt:
            stored = sum(run in plan.opened.store for plan in plans for run in plan.opened.runs)
            note(f"stopped: {stored} of {sum(len(plan.opened.runs) for plan in plans)} runs are whole and in {store}")
            next_step(typed("study", "run", source, *kept), "goes on from there")
            raise
        if part_of is not None:
            # Of many processes each would print the same; and measuring is not shared.
            note(f"{study.name}: all runs are in {store}")
            next_step(typed("study", "run", source, *kept), "shows the table")
            return
        _show_results([plan.opened for plan in plans], json, over=opt.over(engine, address))
        for plan in plans:
            _measure(plan, over=opt.over(engine, address, device=device), quiet=str(json) == "-")
    next_step(typed("report", study.parts[0].source, *kept), "or study export, to predict with it")


def _measure(plan: StudyPlan, *, over: Over, quiet: bool) -> None:
    """Measure what the study's [basins] and [ood] tables ask for, and show it."""
    opened, device = plan.opened, plan.choice.device
    if opened.study.basins is not None:
        from dissensus_train.cli.basins import show_basins
        from dissensus_train.studies.measuring import study_basins

        with progress_bar() as progress:
            measured = study_basins(opened, device=device, over=over, progress=progress)
        show_basins(measured, quiet=quiet)
    if opened.study.ood is not None:
        from dissensus_train.cli.ood import show_ood
        from dissensus_train.studies.measuring import study_ood

        result = study_ood(opened, device=device)
        if not quiet:
            show_ood(result)


@app.command("list")
def list_(json: opt.JsonTo = None) -> None:
    """The studies that are shipped."""
    from dissensus_train.studies import read_study, shipped_studies

    studies = {name: read_study(name) for name in shipped_studies()}
    if json_alone(json, [_facts(study) for study in studies.values()]):
        return
    for name, study in studies.items():
        console().print(f"[bold]{name}[/]  {study.size} runs on {study.dataset}\n  {plain(study.question)}")
    next_step("dissensus study show words")


def _facts(study: Study) -> dict[str, Any]:
    """What a study asks and will run, ready for JSON."""
    return {
        "study": study.name,
        "question": study.question,
        "data": study.held,
        "runs": study.size,
        "targets": [target.name for target in study.targets],
        "deliveries": [method.delivery for method in study.methods],
        "models": list(map(str, [*study.models, *study.annotator_models])),
        "seeds": list(study.seeds),
    }


@app.command()
@opt.command("every")
def show(source: str, json: opt.JsonTo = None) -> None:
    """What a study asks and what it will run."""
    from dissensus_train.studies import read_study

    study = read_study(source)
    facts = _facts(study)
    if json_alone(json, facts):
        return
    shares = ", ".join(f"{name} {share:g}" for name, share in study.splits.items())
    splits = [shares, study.splits_file and f"file {study.splits_file}", study.folds and f"{study.folds} folds"]
    encoder = study.encoder or ("" if study.normalise is None else "the usual one")
    normalised = "" if study.normalise is None else f", {'normalised' if study.normalise else 'as they are'}"
    lines = {
        "data": study.held,
        "sources": ", ".join(study.sources),
        "encoder": encoder and f"{encoder}{normalised}",
        "splits": ", ".join(str(part) for part in splits if part) or "as the dataset brings them",
        **{name: ", ".join(map(str, facts[name])) for name in ("targets", "deliveries", "models", "seeds")},
        "training": str(study.training),
    }
    out = console()
    out.print(f"[bold]{plain(study.name)}[/]: {study.size} runs")
    if study.question:
        out.print(plain(study.question))
    for name, text in lines.items():
        if text:
            out.print(f"{name:<12}{plain(text)}")
    next_step(typed("study", "run", source))


@app.command()
@opt.command("every")
def status(source: str, store: Path = Path("dissensus-runs"), json: opt.JsonTo = None) -> None:
    """How much of a study is in the store, and how far those are who train it now, here or elsewhere."""
    from dissensus_train.studies import open_study, read_study

    parts = [open_study(study, store) for study in read_study(source).parts]
    left = sum(len(part.waiting) for part in parts)
    if not json_alone(json, [status_dict(part) for part in parts]):
        for part in parts:
            show_status(part)
    next_step(typed(*(("study", "run", source) if left else ("report", parts[0].study.source)), "--store", store))


@app.command()
@opt.command("init")
def init(
    votes: Path,
    items: Path,
    reading: Options,
    output: Path = Path("study.toml"),
    text: str | None = None,
    drop_missing_items: bool = False,
    json: opt.JsonTo = None,
) -> None:
    """Write a first study file, with a remark beside every choice, after a look at votes and items."""
    from dissensus.whole_file import whole_file
    from dissensus_train.studies.beginning import first_study

    if output.exists():
        raise InputError(f"{output}: the file is there already; choose another name with --output, or remove it")
    columns = () if text is None else tuple(next(csv.reader([text], skipinitialspace=True)))
    written, notes = first_study(
        votes, items, path=output, options=reading, text=columns, drop_missing_items=drop_missing_items
    )
    note(*notes)
    if str(output) == "-":
        text_to(output, written)
        next_step("keep it as study.toml, then: dissensus study run study.toml")
        return
    with whole_file(output) as part:
        part.write_text(written, encoding="utf-8")
    if json_alone(json, {"file": str(output), "study": tomllib.loads(written)}):
        return
    for line in written.splitlines():
        console().print(plain(line), soft_wrap=True)
    note(f"written to {output}")
    next_step(typed("study", "run", output), "once you have looked at it")


@app.command()
@opt.command("gc")
def gc(
    store: Path = Path("dissensus-runs"), forget: list[str] | None = None, yes: bool = False, json: opt.JsonTo = None
) -> None:
    """Remove stored runs that no known study asks for, after showing them."""
    from dissensus_train.studies.opening import unasked_runs
    from dissensus_train.training.store import RunStore, RunWriter

    if not store.is_dir():
        raise InputError(f"{store}: there is no such run store; name the folder with --store")
    unasked = unasked_runs(RunStore(store), forget=forget or ())
    for stored in unasked if str(json) != "-" else ():
        run = stored.run
        about = "cannot be read" if run is None else f"{run.model}, {run.method}, seed {run.seed}"
        console().print(f"{stored.key}  {stored.size / 1e6:,.1f} MB  {plain(about)}")
    if not unasked:
        note(f"{store}: every run is asked for by a study that is known here")
    else:
        note(f"{len(unasked):,} runs, {sum(run.size for run in unasked) / 1e6:,.1f} MB, that no known study asks for")
        if not yes and not typer.confirm("remove them?", err=True):
            return
    with RunWriter(store) as writer:
        for stored in unasked:
            writer.drop(stored.key)
        for name in forget or ():
            writer.forget_study(name)
    if json_alone(json, [{"run": stored.key, "bytes": stored.size} for stored in unasked]):
        return
    next_step("dissensus study list")


def _show_results(opened: Sequence[OpenStudy], json: Path | None, *, over: Over) -> None:
    from dissensus_train.studies import score_study
    from dissensus_train.studies.scored import score_folds

    scored = [score_study(part, over=over) for part in opened]
    folds: dict[tuple[str, ...], list[OpenStudy]] = {}
    for part in opened:
        if part.study.folds and len(opened) > 1:
            folds.setdefault(part.study.sources, []).append(part)
    whole = {parts[0].study.name.removesuffix("-fold-1"): score_folds(parts) for parts in folds.values()}
    note(*dict.fromkeys(caution for one in scored for caution in one.cautions))
    tables = [] if json is None else [_as_json(one) for one in scored]
    if json_alone(json, [*tables, *({"study": name, **folded.to_dict()} for name, folded in whole.items())]):
        return
    for one in scored:
        show_scores(one)
    for name, evaluation in whole.items():
        show_evaluation(evaluation, title=f"{name}, all {evaluation.items:,} items, each by runs that never saw it")


def _as_json(scored: ScoredStudy) -> dict[str, Any]:
    """A scored study for JSON, with what its original labels say where it has them."""
    from dissensus_train.studies.original import mode_shift_audit, scores_against

    values = {"study": scored.opened.study.name, **scored.evaluation.to_dict()}
    if scored.by_vote:
        values["by_vote"] = {name: score.to_dict() for name, score in scored.by_vote.items()}
    if "original" in scored.opened.data.targets:
        values["mode_shift"] = [shift.to_dict() for shift in mode_shift_audit(scored)]
        values["against_original"] = scores_against(scored, "original").to_dict()
    return values


def show_scores(scored: ScoredStudy) -> None:
    """Print the verdict of a study, and its short table: the metrics of `SHOWN` by system, baseline and at best."""
    title = f"{scored.opened.study.name}, {scored.evaluation.items:,} {scored.split} items"
    show_evaluation(scored.evaluation, title=title)
    show_by_vote(scored.by_vote)
    seeds = len(scored.opened.study.seeds)
    note(
        f"mean{f' ± sd over {seeds} seeds' if seeds > 1 else ''}; grey rows are baselines and what a perfect model gets"
    )


def show_by_vote(scores: Mapping[str, VoteScore]) -> None:
    """Print how well systems predict single votes, and what knowing people changes, where a system does."""
    from dissensus.evaluation.comparison.tables import shown

    if not any(score.against for score in scores.values()):
        return
    titles = (">NLL per vote", ">accuracy per vote", ">NLL less item-only", ">accuracy less item-only")
    rows = table("", *titles, title="single votes, given who cast them", no_wrap=True)
    for name, score in scores.items():
        cells = (score.nll, score.accuracy, score.nll_difference, score.accuracy_difference)
        rows.add_row(plain(name), *("" if cell is None else plain(shown(cell)) for cell in cells))
    console().print(rows)


def show_evaluation(evaluation: Evaluation, *, title: str) -> None:
    """Print the verdict of an evaluation, and the metrics of `SHOWN` by system, baseline and at best."""
    from dissensus.evaluation.comparison.scores import BEST

    rows = table("", *(f">{heading}" for heading in SHOWN.values()), title=plain(title), no_wrap=True)
    for system in evaluation.systems:
        scores = [evaluation.overall.get(system, metric) for metric in SHOWN]
        cells = [
            "-"
            if score.value is None
            else f"{score.value.value:.3f}" + ("" if score.sd is None else f" ± {score.sd:.3f}")
            for score in scores
        ]
        rows.add_row(plain(system), *cells, style="dim" if system in evaluation.baselines else "")
    best = [evaluation.overall.get(evaluation.systems[0], metric).best_achievable for metric in SHOWN]
    known = [None if achievable is None else achievable.estimate for achievable in best]
    rows.add_row(BEST, *("-" if estimate is None else f"{estimate.value:.3f}" for estimate in known), style="dim")
    for sentence in evaluation.verdict:
        console().print(plain(sentence))
    console().print(rows)
