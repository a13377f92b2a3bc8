"""The command line: it parses, calls a room and prints; nothing is computed here."""

from __future__ import annotations

import errno
import re
import shlex
import sys
import warnings
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dissensus.cli.joining import joined_group
from dissensus.cli.options import option_words
from dissensus.errors import InputError, VotesWarning, choices, commented

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REFUSED: type[Any] = typer.BadParameter.__mro__[2]
"""Whatever Typer refuses: an unknown option, a value that does not fit, something that is missing."""

VOTES, MODEL, NEITHER = "I have votes", "I have a model or its outputs", "I have neither"
TRAIN, PROVE = "Train and look inside", "Papers and benchmark"
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "labels": (VOTES, "dissensus.cli.labels:labels"),
    "plan": (VOTES, "dissensus.cli.plan:plan"),
    "votes": (VOTES, "dissensus.cli.votes:app"),
    "evaluate": (MODEL, "dissensus.cli.evaluate:evaluate"),
    "report": (MODEL, "dissensus.cli.report:report"),
    "stand-in": (MODEL, "dissensus.cli.stand_in:stand_in"),
    "demo": (NEITHER, "train"),
    "data": (NEITHER, "dissensus.cli.data:app"),
    "collect": (NEITHER, "collect"),
    "curate": (NEITHER, "train"),
    "predict": (TRAIN, "train"),
    "basins": (TRAIN, "train"),
    "ood": (TRAIN, "train"),
    "schema": (TRAIN, "dissensus.cli.schema:schema"),
    "study": (TRAIN, "train"),
    "reproduce": (PROVE, "papers"),
    "bench": (PROVE, "papers"),
}
"""By name in the order of the help, the panel, and where the command is: in the core, or in the part of this name."""

app = typer.Typer(
    name="dissensus",
    cls=joined_group(COMMANDS),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
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
    words: list[str] = []
    for word, after in pairwise((*arguments, "--")):
        words += [word, "-"] if word == "--json" and after.startswith("-") and after != "-" else [word]
    return words


def with_guess(message: str) -> str:
    """What Typer says of a value that an option does not take, and what was perhaps meant.

    Examples:
        >>> with_guess("Value error, 'rowz' is not one of 'rows', 'points'.")
        "'rowz' is not one of them; did you mean 'rows'? choose rows, points"
    """
    match = re.search(r"'(.*)' is not one of ('.*')\.$", message, re.DOTALL)
    if match is None:
        return message
    names = re.findall(r"'([^']*)'", match[2])
    return f"'{match[1]}' is not one of them{choices(match[1], names)}"


_KEYWORD: Final = re.compile(r"(?<![\w.?&-])([a-z][a-z_]*)=(\[[^\]]*\]|'[^']*'|[\w*-]*)")


def as_typed(sentence: str, arguments: Sequence[str]) -> str:
    """What a room says of keyword arguments, said of the options that the command has in their place.

    Examples:
        >>> as_typed("state classes=['a', 'b'], or keep its column with item_attributes=", ["labels", "votes.csv"])
        'state --classes a,b, or keep its column with --keep'
    """
    if not _KEYWORD.search(sentence):
        return sentence
    options = _options(arguments)

    def typed(match: re.Match[str]) -> str:
        name, value = match.groups()
        if name not in options:
            return match[0]
        if value == "False" and options[name].secondary_opts:
            return str(options[name].secondary_opts[0])
        if options[name].is_flag:
            return str(max(options[name].opts, key=len))
        if value[:1] in ("[", "'"):
            value = shlex.quote(",".join(re.findall(r"'([^']*)'", value)))
        return f"{max(options[name].opts, key=len)} {value}".rstrip()

    return _KEYWORD.sub(typed, sentence)


def _options(arguments: Sequence[str]) -> dict[str, Any]:
    """By name, the options of the command that was typed."""
    command: Any = typer.main.get_command(app)
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    return {option.name: option for option in command.params}


def typed_again(arguments: Sequence[str], ways: Mapping[str, Any]) -> str | None:
    """The command that was typed, with options in place of those that it had; None where it does not take them all.

    Examples:
        >>> typed_again(["labels", "my votes.csv", "--format", "wide"], {"format": "counts", "classes": ["a", "b c"]})
        "dissensus labels 'my votes.csv' --format counts --classes 'a,b c'"
    """
    options = _options(arguments)
    if not options.keys() >= ways.keys():
        return None
    words, value_follows = [], False
    replaced = [options[name] for name in ways]
    spellings = {spelling: option for option in replaced for spelling in (*option.opts, *option.secondary_opts)}
    for word in arguments:
        name, _, value = word.partition("=")
        if not value_follows and name not in spellings:
            words.append(word)
        value_follows = not value_follows and name in spellings and not value and not spellings[name].is_flag
    for name, value in ways.items():
        words += option_words(name, value, max(options[name].opts, key=len), *options[name].secondary_opts)
    return shlex.join(["dissensus", *words])


def _refusal(error: InputError, arguments: Sequence[str]) -> list[str]:
    """What the command line says of bad input: the sentence, and for each reading the command that would work."""
    again = {meaning: typed_again(arguments, ways) for meaning, ways in error.readings.items()}
    if None in again.values():
        return str(error).splitlines()
    return [error.sentence, *commented({str(command): meaning for meaning, command in again.items()})]


def _refuse_repeated(arguments: Sequence[str]) -> None:
    """Refuse an option that takes one value and was given twice: Typer would keep the last without a word."""
    names = [word.partition("=")[0] for word in arguments if word.startswith("-")]
    repeated = {name for name in names if name != "-" and names.count(name) > 1}
    for option in _options(arguments).values() if repeated else ():
        name = next((name for name in option.opts if name in repeated), None)
        if name is not None and not (option.multiple or option.count or option.is_flag):
            raise InputError(f"{name} is given {names.count(name)} times, and takes one value; give it once")


_NOT_WRITTEN: Final = (errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EFBIG)


def main() -> None:
    """Run the command line; bad input is one sentence on standard error and exit code 2."""
    # Commands print these warnings as notes. Python would print them a second time.
    warnings.simplefilter("ignore", VotesWarning)
    try:
        arguments = with_json_to(sys.argv[1:])
        _refuse_repeated(arguments)
        raise SystemExit(app(args=arguments, standalone_mode=False) or sys.stdout.flush())
    except InputError as error:
        sentence, *ways = _refusal(error, sys.argv[1:])
        sys.stderr.write("\n".join([f"dissensus: {as_typed(sentence, sys.argv[1:])}", *ways, ""]))
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
    except OSError as error:
        if error.errno not in _NOT_WRITTEN:
            raise
        what = f"{error.filename or 'standard output'}: cannot be written ({error.strerror})"
        sys.stderr.write(f"dissensus: {what}; choose another place, or make room\n")
        with suppress(OSError):
            # If standard output stays open, Python tries to flush the rest at exit, and fails again.
            sys.stdout.close()
        raise SystemExit(2) from None
