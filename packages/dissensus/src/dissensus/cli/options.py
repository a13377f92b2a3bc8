"""How functions become commands: what each option is called and means stands in options.toml."""

from __future__ import annotations

import csv
import functools
import inspect
import io
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_type_hints

import typer

from dissensus.errors import InputError
from dissensus.shipped import shipped_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dissensus.progress import Over

__all__ = ["Device", "Engine", "JsonTo", "Seed", "not_standard_output"]


def not_standard_output(path: Path | None) -> Path | None:
    """Refuses `-` for what cannot go to standard output: a folder, several files, or numbers in binary."""
    if str(path) == "-":
        raise InputError("-o -: this cannot go to standard output, as it is not one text; name a file or a folder")
    return path


Entries = dict[str, dict[str, dict[str, Any]]]


@functools.cache
def entries_of(package: str) -> Entries:
    """By command, and for `every` command of a package, what its options.toml says of each option."""
    written = shipped_toml(f"{package}.cli", "options.toml")
    return {
        of: {name: {"help": entry} if isinstance(entry, str) else entry for name, entry in entries.items()}
        for of, entries in written.items()
    }


ENTRIES: Final = entries_of("dissensus")


def described(name: str, of: str = "every", *, package: str = "dissensus", **more: Any) -> Any:
    """Typer's description of an option or argument, from options.toml; `more` goes to Typer as it is.

    A command's own entry comes before those of every command of its package, and these before the core's.
    """
    own = entries_of(package)
    tables = (own.get(of, {}), own.get("every", {}), ENTRIES["every"])
    settings = {**next(table[name] for table in tables if name in table), **more}
    settings["rich_help_panel"] = settings.pop("panel", None)
    names = settings.pop("names", ["-o", "--output"] if name == "output" else [f"--{name.replace('_', '-')}"])
    if settings.pop("argument", False):
        return typer.Argument(**settings)
    if name == "output" and "- is standard output" not in settings["help"]:
        settings["callback"] = not_standard_output
    return typer.Option(*names, **settings)


Seed = Annotated[int, described("seed")]
"""`--seed`, a whole number."""
StudyOrStore = Annotated[str, described("study_or_store")]
RunsIn = Annotated[Path, described("store")]
Device = Annotated[str, described("device")]
"""`--device`: auto, cpu, cuda or cuda:0."""
Engine = Annotated[Literal["auto", "loop", "fleet", "ray"], described("engine")]
"""`--engine`, how runs are trained."""
Address = Annotated[str | None, described("address", hidden=False)]
OnRay = Annotated[Literal["local", "ray"], described("compute_on", hidden=False)]
JsonTo = Annotated[Path | None, described("json")]
"""`--json`, a file or `-`; see `printing.json_alone`."""
Pseudonyms = Annotated[str | None, described("pseudonyms", hidden=False)]
Given = Literal["probabilities", "logits"]

READING: Final = (*ENTRIES["columns"], *ENTRIES["reading"])
"""The options that say how to read a votes file, as fields of `dissensus.votes.formats.Options`."""

KINDS: Final[dict[str, Any]] = {
    "attributes": list[str] | None,
    "item_attributes": list[str] | None,
    "ordered": bool | None,
    "duplicates": Literal["refuse", "first", "last"],
    "force": bool,
    "drop_empty": bool,
    "drop_repeated": bool,
}
"""What an option of reading holds that is not a text; several in one text are separated by commas."""

SEVERAL: Final = ("annotators", "models", "columns", "missing", "classes", "bins", "sides", "merge_spellings")


def typed_name(name: str) -> str:
    """How an option of reading is typed."""
    entry = (ENTRIES["columns"] | ENTRIES["reading"])[name]
    return str(entry.get("names", [f"--{name.replace('_', '-')}"])[0])


def command(
    of: str, *, modes: Mapping[str, Callable[..., None]] = MappingProxyType({}), **lists: Callable[[], None]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that makes a function a command, whose parameters options.toml or annotations describe.

    The parameter `reading`, an `Options`, is made of all options of reading votes. These, and those that are hidden,
    stand on the page of --help-all, not on that of --help.

    Args:
        of: the command's table in options.toml, that of the package the function is in.
        modes: by option, the function that runs in place of the first one where that option is given. The command has
            the options of all functions, and refuses one that the function that runs does not take.
        **lists: by name, further options that only print something and stop.
    """

    def made(function: Callable[..., None]) -> Callable[..., None]:
        package = function.__module__.partition(".")[0]
        hints: dict[str, Any] = {}
        taken: dict[str, inspect.Parameter] = {}
        for each in (function, *modes.values()):
            hints = get_type_hints(each, localns={"Options": object}, include_extras=True) | hints
            taken = {**taken, **inspect.signature(each).parameters, **taken}
        parameters = [
            parameter.replace(annotation=_described(hints[name], name, of, package))
            for name, parameter in taken.items()
            if name != "reading"
        ]
        for name, show in lists.items():
            parameters.append(_flag(name, of, _stopping_after(show)))
        hidden = any(about.hidden for parameter in parameters for about in parameter.annotation.__metadata__)
        if hidden or "reading" in hints:
            parameters.append(_flag("help_all", "every", _print_all_help))
        parameters += [_reading_option(name, of) for name in READING if "reading" in hints]

        @functools.wraps(function)
        def called(**values: Any) -> None:
            values = {one.name: one.default for one in parameters if one.default is not one.empty} | values
            mode = next((name for name in modes if values[name] is not None), None)
            runs = function if mode is None else modes[mode]
            takes = inspect.signature(runs).parameters
            read = READING if "reading" in takes else ()
            used = (*takes, *read, *lists, "help_all")
            given = [one for one in parameters if values.get(one.name) not in (one.default, None, [])]
            if unused := [one for one in given if one.name not in used]:
                names = {each.name for each in unused}
                users = [way for way, each in modes.items() if names & inspect.signature(each).parameters.keys()]
                where = " or ".join(_spelled(one) for one in parameters if one.name in ([mode] if mode else users))
                told = f"not used {'with' if mode else 'without'} {where}: {', '.join(map(_spelled, unused))}"
                raise InputError(f"{of}: {told}; leave out what is not used")
            if read:
                from dissensus.votes.formats import Options

                stated = {name: _as_read(name, values.get(name)) for name in READING}
                values["reading"] = Options(**{name: value for name, value in stated.items() if value is not None})
            runs(**{name: values[name] for name in takes if name in values})

        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return called

    return made


def _spelled(parameter: inspect.Parameter) -> str:
    """Return the spelling of an option, or the name of an argument in the help."""
    about = parameter.annotation.__metadata__[0]
    # Typer stores the first name of an option in `default`.
    names = [name for name in (about.metavar, about.default, *(about.param_decls or ())) if isinstance(name, str)]
    return names[-1].strip("[]").partition("/")[0]


def _described(hint: Any, name: str, of: str, package: str) -> Any:
    return hint if hasattr(hint, "__metadata__") else Annotated[hint, described(name, of, package=package)]


def _flag(name: str, of: str, callback: Callable[..., None]) -> inspect.Parameter:
    return _keyword(name, Annotated[bool, described(name, of, is_eager=True, callback=callback)], default=False)


def _stopping_after(show: Callable[[], None]) -> Callable[[bool], None]:
    def callback(value: bool) -> None:
        if value:
            show()
            raise typer.Exit

    return callback


def _print_all_help(context: typer.Context, value: bool) -> None:
    if value:
        for parameter in context.command.params:
            setattr(parameter, "hidden", False)  # noqa: B010 - arguments have it too, but do not declare it
        typer.echo(context.get_help())
        raise typer.Exit


def _keyword(name: str, hint: Any, *, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _reading_option(name: str, command: str) -> inspect.Parameter:
    of, panel = ("columns", "Columns") if name in ENTRIES["columns"] else ("reading", "How votes are read")
    own = name in ENTRIES.get(command, {})
    option = described(name, command if own else of, hidden=not own, panel=panel)
    default = "refuse" if name == "duplicates" else False if KINDS.get(name) is bool else None
    return _keyword(name, Annotated[KINDS.get(name, str | None), option], default=default)


def _as_read(name: str, value: Any) -> Any:
    """What was typed, as `Options` takes it: lists are separated by commas."""
    if name in SEVERAL and value is not None:
        return tuple(part.strip() for part in next(csv.reader([value], skipinitialspace=True)) or [""])
    return tuple(value) if isinstance(value, list) else value


def option_words(name: str, value: Any, yes: str, no: str = "") -> list[str]:
    """How an option is typed with a value: `yes` is how it is called, `no` how its negation is.

    Examples:
        >>> option_words("missing", ["-1", "a, b"], "--missing"), option_words("attributes", ["age"], "--attribute")
        (['--missing=-1,"a, b"'], ['--attribute', 'age'])
    """
    if isinstance(value, bool):
        return [yes if value else no]
    values = list(map(str, value)) if isinstance(value, list | tuple) else [str(value)]
    if name in SEVERAL:
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(values)
        values = [line.getvalue() if values != [""] else ""]
    # What begins with a dash would be taken for an option.
    pairs = ([f"{yes}={one}"] if one.startswith("-") else [yes, one] for one in values)
    return [word for pair in pairs for word in pair]


def over(compute_on: str, address: str | None, *, device: str = "cpu") -> Over:
    """What calls a function on many jobs: `map`, or a Ray cluster."""
    from dissensus.parts import installed, joined

    if compute_on != "ray":
        if address is not None:
            raise InputError("--address is for a cluster; add --compute-on ray")
        return map
    installed("ray", "ray", wanted_by="--compute-on ray")
    cluster: Over = joined("joins", "over.ray", part="train", wanted_by="--compute-on ray")(address, device=device)
    return cluster
