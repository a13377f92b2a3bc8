"""Training as it is watched: a bar in a terminal, a line every half minute in a log, and a look from elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from dissensus.cli.printing import console, note, plain, progress_bar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dissensus.progress import Progress, Step
    from dissensus_train.studies import OpenStudy, StudyPlan

__all__ = ["train_with_progress"]

EVERY: Final = 30.0
"""Seconds between lines in a log."""

OFTEN: Final = 5.0
"""The same, for work of a minute or two."""

LATE: Final = 60.0
"""Seconds after which a last word is no longer news."""


def train_with_progress(plan: StudyPlan) -> None:
    """Train what is left of a study, and show how far it is on standard error: by a bar, or by lines in a log."""
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    from dissensus_train.studies import run_plan
    from dissensus_train.training.tuning import rates

    opened = plan.opened
    done = len(opened.runs) - len(plan.waiting)
    note(
        f"{opened.study.name}: {len(opened.runs)} runs, {done} in {opened.store.folder} already; {plan.choice.engine} "
        f"on {plan.choice.device} ({plan.choice.why})"
    )
    if opened.study.training.tune:
        tried = ", ".join(f"{rate:g}" for rate in rates(opened.study.training))
        note(f"every run of every network tries the learning rates {tried}, and validation chooses")
    if opened.study.left_out:
        note(opened.study.left_out)
    if not plan.waiting:
        return
    columns = (BarColumn(12), TaskProgressColumn(), TextColumn("{task.description}", markup=False))
    terminal = sys.stderr.isatty()
    with Bar(*columns, console=Console(stderr=True), disable=not terminal) as bar:
        task = bar.add_task("", total=1.0)

        def show(step: Step) -> None:
            bar.update(task, completed=step.fraction, description=str(step).removeprefix(f"{opened.study.name}: "))

        for _ in run_plan(plan, progress=show if terminal else line_every(EVERY, note)):
            pass


def line_every(seconds: float, say: Callable[[str], None], *, at_end: bool = True) -> Progress:
    """Says a line when that much time has passed since the last, and one at the end of all, or of each part."""
    last = time.monotonic()

    def progress(step: Step) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= seconds or (at_end and step.done == step.total):
            last = now
            say(str(step))

    return progress


@contextmanager
def bar_or_lines() -> Iterator[Progress]:
    """A bar on a terminal; in a log a line when `OFTEN` seconds have passed."""
    with progress_bar() as bar:
        yield bar if sys.stderr.isatty() else line_every(OFTEN, note, at_end=False)


def status_dict(opened: OpenStudy) -> dict[str, Any]:
    """How much of a study is in the store and who trains it now, ready for JSON."""
    name = opened.study.name
    return {
        "study": name,
        "runs": len(opened.runs),
        "in_store": len(opened.runs) - len(opened.waiting),
        "now": [standing for standing in opened.store.progress() if standing.get("study") == name],
    }


def show_status(opened: OpenStudy) -> None:
    """How much of a study is in the store, and how far those are who train it now, in this process or in another."""
    from dissensus_train.training.progress import in_one_line, in_time

    now, out = status_dict(opened), console()
    out.print(
        f"{plain(now['study'])}: {now['in_store']} of {now['runs']} runs are in {plain(str(opened.store.folder))}"
    )
    for standing in now["now"]:
        ago = time.time() - standing["at"]
        heard = f" (last heard of {in_time(ago)} ago)" if ago > LATE else ""
        out.print(f"  now: {in_one_line(standing)}{heard}", highlight=False)
