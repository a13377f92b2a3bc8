"""The command line: it parses, calls a room and prints; nothing is computed here."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

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
    plan,
    predict,
    report,
    reproduce,
    schema,
    stand_in,
    study,
    votes,
)
from dissensus.errors import InputError, choices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

app = typer.Typer(
    name="dissensus",
    help="Learn from annotator disagreement instead of averaging it away.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

REFUSED: type[Any] = typer.BadParameter.__mro__[2]
"""Whatever Typer refuses: an unknown option, a value that does not fit, something that is missing."""

VOTES, MODEL, NEITHER = "I have votes", "I have a model or its outputs", "I have neither"
TRAIN, PROVE = "Train and look inside", "Papers and benchmark"
GROUPS: tuple[tuple[str, dict[str, typer.Typer]], ...] = (
    (VOTES, {"votes": votes.app}),
    (NEITHER, {"data": data.app, "collect": collect.app, "curate": curate.app}),
    (TRAIN, {"study": study.app}),
    (PROVE, {"bench": bench.app}),
)
for panel, groups in GROUPS:
    for name, group in groups.items():
        app.add_typer(group, name=name, rich_help_panel=panel)
COMMANDS: tuple[tuple[str, dict[str, Callable[..., None]]], ...] = (
    (VOTES, {"labels": labels.labels, "plan": plan.plan}),
    (MODEL, {"evaluate": evaluate.evaluate, "report": report.report, "stand-in": stand_in.stand_in}),
    (NEITHER, {"demo": demo.demo}),
    (TRAIN, {"predict": predict.predict, "basins": basins.basins, "ood": ood.ood, "schema": schema.schema}),
    (PROVE, {"reproduce": reproduce.reproduce}),
)
for panel, commands in COMMANDS:
    for name, command in commands.items():
        app.command(name, rich_help_panel=panel)(command)
study.app.command("export")(predict.export)


def _version(asked: bool) -> None:
    if asked:
        from dissensus import __version__

        typer.echo(f"dissensus {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Learn from annotator disagreement instead of averaging it away."""


def with_json_to(arguments: Sequence[str]) -> list[str]:
    """The arguments with `-` after a `--json` that no file follows, since a value of Typer's options is never optional.

    Examples:
        >>> with_json_to(["data", "list", "--json"])
        ['data', 'list', '--json', '-']
    """
    made: list[str] = []
    for place, each in enumerate(arguments):
        after = arguments[place + 1] if place + 1 < len(arguments) else "--"
        made += [each, "-"] if each == "--json" and after.startswith("-") and after != "-" else [each]
    return made


def with_guess(message: str) -> str:
    """What Typer says of a value that an option does not take, and what was perhaps meant.

    Examples:
        >>> with_guess("Value error, 'rowz' is not one of 'rows', 'points'.")
        "'rowz' is not one of them; did you mean 'rows'? choose rows, points"
    """
    found = re.search(r"'(.*)' is not one of ('.*')\.$", message, re.DOTALL)
    if found is None:
        return message
    names = re.findall(r"'([^']*)'", found[2])
    return f"'{found[1]}' is not one of them{choices(found[1], names)}"


def main() -> None:
    """Run the command line; bad input is one sentence on standard error and exit code 2."""
    try:
        arguments = with_json_to(sys.argv[1:])
        given = set(pairwise(arguments))
        if ("--json", "-") in given and given & {("-o", "-"), ("--output", "-")}:
            raise InputError("--json and -o both go to standard output; give one of them the name of a file")
        raise SystemExit(app(args=arguments, standalone_mode=False))
    except InputError as error:
        sys.stderr.write(f"dissensus: {error}\n")
        raise SystemExit(2) from None
    except REFUSED as error:
        from typer import rich_utils

        error.message = with_guess(error.message)
        rich_utils.rich_format_error(error)
        raise SystemExit(error.exit_code) from None
    except (KeyboardInterrupt, typer.Abort):
        raise SystemExit(130) from None
    except BrokenPipeError:
        # The reader of a pipe went away (`dissensus ... | head`): that is no error, and nothing more can be said.
        sys.stderr.close()
        raise SystemExit(0) from None
