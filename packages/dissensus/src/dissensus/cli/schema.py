"""`dissensus schema`: what editors need to complete and check the files that people write."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from dissensus.cli.printing import next_step
from dissensus.parts import joined


def schema(
    kind: Annotated[
        Literal["study", "collect"], typer.Argument(help="The file: study.toml or collect.toml.", show_default=False)
    ],
) -> None:
    """Print the JSON schema of study.toml or collect.toml, with which an editor completes and checks it.

    Keep it beside the file (`dissensus schema study > study.schema.json`) and begin the file with the line
    `#:schema ./study.schema.json`.
    """
    part = "train" if kind == "study" else "collect"
    schema_of_kind = joined("joins", f"schema.{kind}", part=part, wanted_by=f"schema {kind}")
    typer.echo(json.dumps(schema_of_kind(), indent=2, ensure_ascii=False))
    next_step(f"keep it as {kind}.schema.json, and begin {kind}.toml with the line #:schema ./{kind}.schema.json")
