"""`dissensus curate datasheet`: what a reader of the set should know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dissensus.cli import options as opt
from dissensus.cli.inputs import votes_named
from dissensus.cli.printing import json_alone, json_to, next_step, note, text_to
from dissensus.errors import InputError
from dissensus_train.cli.curate.typed import ListFile

if TYPE_CHECKING:
    from dissensus.votes.reading import Options


@opt.command("every")
def datasheet(
    items: ListFile,
    reading: Options,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The Markdown file to write; - is standard output.")
    ],
    name: Annotated[str | None, typer.Option(help="Name of the set; that of the list if not given.")] = None,
    groups: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What `curate duplicates --groups` wrote.")
    ] = None,
    votes: Annotated[
        str | None, typer.Option(metavar="VOTES", help="A votes file, or the name of a known dataset.")
    ] = None,
    licence: Annotated[
        list[str] | None, typer.Option(help="Licence of a source: NAME=LICENCE; repeat for more.")
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Answers to the questions of the form: a TOML file with a table per section."
        ),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The collection project of the votes, which answers some by itself."),
    ] = None,
    croissant: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write Croissant metadata (JSON-LD) of the list as well.")
    ] = None,
    seed: opt.Seed = 0,
    json: opt.JsonTo = None,
) -> None:
    """A datasheet in Markdown from the list, votes and answers; what they do not say stays "not stated"."""
    from dissensus.parts import joined
    from dissensus_train.curate.item_list import read_items
    from dissensus_train.curate.sheet import datasheet as write
    from dissensus_train.curate.sheet import merged, read_answers, sheet_croissant

    read = read_items(items)
    licences = {}
    for written in licence or []:
        source, equals, text = written.partition("=")
        if not equals:
            raise InputError(f"--licence {written}: give NAME=LICENCE, such as mnist='CC BY-SA 3.0'")
        licences[source.strip()] = text.strip()
    cast = None
    if votes is not None:
        cast, _ = votes_named(votes, reading)
    known: dict[str, dict[str, str]] = {}
    if project is not None:
        of_project = joined("joins", "datasheet.project", part="collect", wanted_by="--project")
        known, collected = of_project(project)
        cast = cast or collected
    answered = merged(known, {} if answers is None else read_answers(answers))
    sheet = write(
        read,
        name=name or items.stem,
        duplicates=None if groups is None else read_items(groups),
        votes=cast,
        licences=licences,
        answers=answered,
        seed=seed,
    )
    text_to(output, sheet)
    if str(output) != "-":
        note(f"datasheet written to {output}")
    if croissant is not None:
        json_to(croissant, sheet_croissant(read, items, name=name or items.stem, answers=answered))
        note(f"Croissant metadata written to {croissant}")
    if json_alone(json, {"sheet": str(output), "items": len(read), "answers": answered}):
        return
    next_step("dissensus collect init FOLDER to ask people")
