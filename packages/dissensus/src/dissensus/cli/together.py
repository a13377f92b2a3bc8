"""What commands print and write of model and people together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.cli.printing import console, note, plain, short_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.together.deferral import Deferral
    from dissensus.together.sets import PredictionSets


def print_sets(made: Mapping[str, PredictionSets]) -> None:
    """By system, how its sets do: calibrated on votes, and on majorities."""
    level = next(iter(made.values())).level
    lines = []
    for name, sets in made.items():
        for row in (row for row in sets.scores if row.stratum == "all"):
            varied = [other for other in sets.scores if (other.stratum, other.calibrated) == ("varied", row.calibrated)]
            hard = [f"{each.coverage.value:.3f} ({each.size.value:.2f})" for each in varied] or ["-"]
            lines.append([name, row.calibrated, str(row.coverage), f"{row.size.value:.2f}", *hard])
    heading = f"Sets that hold a person's answer with probability {level:g}"
    console().print(f"\n[bold]{plain(heading)}[/], on items left out of their calibration")
    console().print(short_table([["", "calibrated on", "answers held", "classes", "varied items"], *lines]))
    note(*dict.fromkeys(f"sets: {sentence}" for sets in made.values() for sentence in sets.notes))


def print_deferral(made: Mapping[str, Deferral], *, known: Sequence[str]) -> None:
    """By system, which items go to people, and how well that and other rules do; without notes that are known."""
    from dissensus.votes.echo import number

    console().print("\n[bold]When to ask people[/]")
    for name, found in made.items():
        console().print(plain(f"{name}: {' '.join(found.verdict)}"))
    lines = [[name, rule.rule, str(rule.area), str(rule.less)] for name, found in made.items() for rule in found.rules]
    if lines:
        asked = number(next(iter(made.values())).asked, "vote")
        console().print(plain(f"Risk of answering instead of asking for {asked}, by share answered, in nats:"))
        console().print(short_table([["", "items chosen by", "area", "less than chance"], *lines]))
    notes = (sentence for found in made.values() for sentence in found.notes if sentence not in known)
    note(*dict.fromkeys(f"defer: {sentence}" for sentence in notes))
