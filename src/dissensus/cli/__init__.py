"""The command line: it parses, calls a room and prints; nothing is computed here."""

from __future__ import annotations

import sys

import typer

from dissensus.cli import (
    basins,
    bench,
    collect,
    curate,
    data,
    demo,
    evaluate,
    labels,
    ood,
    predict,
    report,
    reproduce,
    schema,
    stand_in,
    study,
    votes,
)
from dissensus.errors import InputError

app = typer.Typer(
    name="dissensus",
    help="Learn from annotator disagreement instead of averaging it away.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(votes.app, name="votes")
app.command("labels")(labels.labels)
app.command("evaluate")(evaluate.evaluate)
app.command("stand-in")(stand_in.stand_in)
app.add_typer(data.app, name="data")
app.add_typer(study.app, name="study")
app.command("basins")(basins.basins)
app.command("ood")(ood.ood)
app.command("report")(report.report)
app.command("predict")(predict.predict)
study.app.command("export")(predict.export)
app.add_typer(curate.app, name="curate")
app.add_typer(collect.app, name="collect")
app.command("demo")(demo.demo)
app.command("reproduce")(reproduce.reproduce)
app.command("schema")(schema.schema)
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Run the command line; bad input is one sentence on standard error and exit code 2."""
    try:
        app()
    except InputError as error:
        sys.stderr.write(f"dissensus: {error}\n")
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:
        # The reader of a pipe went away (`dissensus ... | head`): that is no error, and nothing more can be said.
        sys.stderr.close()
        raise SystemExit(0) from None
