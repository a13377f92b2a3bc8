"""Votes that bots give, and votes as files: `simulate`, `export`."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_alone, next_step, note, plain, typed
from dissensus.errors import InputError
from dissensus_collect.cli.shared import DatabaseUrl, Folder, app, histogram, read_project, stated

if TYPE_CHECKING:
    from dissensus_collect.project.reading import Project
    from dissensus_collect.simulation.bots import Simulation


@app.command()
@opt.command("simulate")
def simulate(
    folder: Folder,
    annotators: int = 50,
    abandon: float = 0.2,
    careless: float = 0.05,
    exclude: float = 0.03,
    output: Path | None = None,
    seed: opt.Seed = 0,
    json: opt.JsonTo = None,
) -> None:
    """Rehearse a project with bots, through the real server, on a copy; real votes are not touched."""
    from dissensus_collect.simulation.bots import simulate
    from dissensus_collect.simulation.crowd import Behaviour

    project = read_project(folder)
    behaviour = Behaviour(abandon=abandon, careless=careless, exclude=exclude)
    with TemporaryDirectory() as place:
        kept = output if output is not None else Path(place) / "project"
        _show_simulation(
            project, simulate(project, kept, annotators=annotators, behaviour=behaviour, seed=seed), json=json
        )
    if output is not None:
        note(f"the simulated project is in {output}; 'dissensus collect serve {output}' shows its researcher pages")
    if str(json) != "-":
        next_step(typed("collect", "serve", folder) if output is None else typed("collect", "export", output))


def _show_simulation(project: Project, run: Simulation, *, json: Path | None) -> None:
    import numpy as np

    from dissensus_collect.project.setup_check import project_budget

    budget = project_budget(project)
    p50, p99 = np.percentile(run.milliseconds, [50, 99]).tolist() if run.milliseconds else (0.0, 0.0)
    hours = len(run.acknowledged) * project.cost.seconds_per_item / 3600
    numbers = {
        "simulated": True,
        "name": project.name,
        "votes_per_item": {str(votes): items for votes, items in run.votes_per_item.items()},
        "outcomes": dict(sorted(run.outcomes.items())),
        "saves": len(run.acknowledged),
        **{name: getattr(run, name) for name in ("annotators", "sent_twice", "reloads", "second_tabs", "surplus")},
        "wrong": run.wrong,
        "seconds": run.seconds,
        "save_ms_p50": p50,
        "save_ms_p99": p99,
        "paid_hours": hours,
        "planned_money": budget.money,
        "currency": budget.currency,
    }
    if not json_alone(json, numbers):
        out = console()
        out.print(f"[bold]{plain(project.name)}, simulated[/] (bots through the real server; no real votes)")
        out.print(f"items       {histogram(run.votes_per_item)} (k = {project.k})")
        came = ", ".join(f"{number:,} {how}" for how, number in sorted(run.outcomes.items()))
        out.print(f"annotators  {run.annotators:,} came: {came}")
        out.print(
            f"saves       {len(run.acknowledged):,} acknowledged, {run.sent_twice:,} sent twice, {run.reloads:,} "
            f"reloads, {run.second_tabs:,} second tabs; {run.surplus:,} surplus"
        )
        out.print(
            f"time        {run.seconds:.1f} s; a save with the next item took {p50:.0f} ms (median), {p99:.0f} ms "
            "(99th percentile)"
        )
        money = hours * project.cost.pay_per_hour * (1 + project.cost.platform_fee)
        out.print(f"would cost  {hours:,.1f} paid hours, about {money:,.0f} {plain(budget.currency)}")
    if run.wrong:
        raise InputError(f"simulate: {len(run.wrong)} replies of the server were wrong, such as: {run.wrong[0]}")


@app.command()
@opt.command("export")
def export(
    folder: Folder,
    output: Path | None = None,
    identities: bool = False,
    formats: list[str] | None = None,
    database: DatabaseUrl = None,
    json: opt.JsonTo = None,
) -> None:
    """Write votes, answers, annotators, items, events, codebook and checksums; pseudonymous by default."""
    from dissensus_collect.results.export import FORMATS, export_project
    from dissensus_collect.store.opening import snapshot

    project = read_project(folder)
    output = output or folder / "exports" / time.strftime("%Y%m%d-%H%M%S")
    with snapshot(project, database) as cursor:
        done = export_project(cursor, project, output, identities=identities, formats=formats or FORMATS)
    votes = done.votes
    about = {"folder": str(done.folder), "files": [str(file) for file in done.files], "simulated": done.simulated}
    counts = {"judgements": votes.n_judgements, "items": len(votes.items)} if votes is not None else None
    if json_alone(json, {**about, "votes": counts}):
        return
    if done.simulated:
        note("these answers are simulated: bots gave them")
    what = "no votes yet" if votes is None else f"{votes.n_judgements:,} judgements of {len(votes.items):,} items"
    from_models = "" if done.simulated or votes is None else f", {votes.n_model_votes:,} votes from models"
    console().print(f"{plain(str(done.folder))}: {len(done.files)} files, {what}{from_models}")
    if votes is None:
        next_step(typed("collect", "serve", folder, database=stated(database)))
        return
    kind = "parquet" if (done.folder / "votes.parquet").exists() else (formats or FORMATS)[0]
    next_step(
        typed("labels", done.folder / f"votes.{kind}", "--scheme", "uncertainty-weighted", "-o", "labels.parquet")
    )
