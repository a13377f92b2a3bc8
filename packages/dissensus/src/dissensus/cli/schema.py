"""`dissensus schema`: what editors need to complete and check the files that people write."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from dissensus.cli.printing import next_step
from dissensus.parts import joined


class Kind(StrEnum):
    """Files that people write."""

    study = "study"
    collect = "collect"


def schema(
    kind: Annotated[Kind, typer.Argument(help="The file: study.toml or collect.toml.", show_default=False)],
) -> None:
    """Print the JSON schema of study.toml or collect.toml, with which an editor completes and checks it.

    Keep it beside the file (`dissensus schema study > study.schema.json`) and begin the file with the line
    `#:schema ./study.schema.json`.
    """
    part = "train" if kind is Kind.study else "collect"
    made = joined("joins", f"schema.{kind}", part=part, wanted_by=f"schema {kind}")
    typer.echo(json.dumps(made(), indent=2, ensure_ascii=False))
    next_step(f"keep it as {kind}.schema.json, and begin {kind}.toml with the line #:schema ./{kind}.schema.json")
