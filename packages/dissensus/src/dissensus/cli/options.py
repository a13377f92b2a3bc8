"""Options that several commands share, and the votes they name."""

from __future__ import annotations

import functools
import inspect
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args, get_type_hints

import typer

from dissensus.cli.printing import note

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.cores import Over
    from dissensus.votes.reading import Options, Reading
    from dissensus.votes.table import Votes

__all__ = ["Device", "Engine", "JsonTo", "Seed", "not_standard_output"]

Source = Annotated[str, typer.Argument(metavar="VOTES", help="A votes file, or the name of a known dataset (words).")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
StudyOrStore = Annotated[
    str,
    typer.Argument(metavar="STUDY|STORE", help="A study file (.toml), the name of a shipped study, or a run store."),
]
RunsIn = Annotated[Path, typer.Option("--store", help="The run store: the folder that the study's runs are kept in.")]
Device = Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda or cuda:0.")]
Engine = Annotated[
    Literal["auto", "loop", "fleet", "ray"],
    typer.Option(help="How runs are trained; ray: over the nodes of a Ray cluster."),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="auto|ray://HOST:PORT",
        help="The Ray cluster; without it, the one that RAY_ADDRESS names or that was started on this machine.",
        rich_help_panel="Ray",
    ),
]
OnRay = Annotated[
    Literal["local", "ray"],
    typer.Option("--compute-on", help="Where to compute; ray: over the nodes of a Ray cluster.", rich_help_panel="Ray"),
]
JsonTo = Annotated[
    Path | None,
    typer.Option("--json", metavar="[FILE]", help="Write the result as JSON, to standard output without FILE."),
]

VotesFile = Annotated[
    str | None, typer.Option("--votes", metavar="FILE", help="A votes file, or the name of a known dataset.")
]
PredictionsFile = Annotated[
    Path | None,
    typer.Option(
        "--predictions",
        metavar="FILE",
        help="A model's predictions: probabilities or logits as .csv, .tsv, .parquet, .jsonl, .npz, .npy; or outputs: "
        "hard labels, sampled answers, pipeline scores, log-probabilities, harness samples, Inspect logs.",
    ),
]
Compared = Annotated[
    list[Path] | None,
    typer.Option("--compare", metavar="FILE", help="Predictions of another system; repeat for more."),
]
Given = Annotated[
    Literal["probabilities", "logits"] | None,
    typer.Option("--given", help="What the predictions are; without it, found from their names and numbers."),
]
Pseudonyms = Annotated[
    str | None,
    typer.Option(
        "--pseudonyms",
        metavar="KEY",
        help="Name people by pseudonyms made with this secret text: the same under the same key, and not to be undone "
        "without it.",
        rich_help_panel="Privacy",
    ),
]
LeastPeople = Annotated[
    int,
    typer.Option(
        "--least-people",
        help="Show no numbers of a group of fewer people than this.",
        min=1,
        rich_help_panel="Privacy",
    ),
]
Answers = Annotated[
    Path | None,
    typer.Option("--answers", metavar="FILE", help="What a model's answers mean: a table with columns answer, class."),
]
OnlyCommon = Annotated[bool, typer.Option("--only-common", help="Leave out items that lack votes or a prediction.")]


def not_standard_output(path: Path | None) -> Path | None:
    """Refuses `-` for what cannot go to standard output: a folder, several files, or numbers in binary."""
    from dissensus.errors import InputError

    if str(path) == "-":
        raise InputError("-o -: this cannot go to standard output, as it is not one text; name a file or a folder")
    return path


def over(compute_on: str, address: str | None, *, device: str = "cpu") -> Over:
    """What calls a function on many jobs: `map`, or a Ray cluster."""
    from dissensus.errors import InputError
    from dissensus.extras import installed
    from dissensus.parts import joined

    if compute_on != "ray":
        if address is not None:
            raise InputError("--address is for a cluster; add --compute-on ray")
        return map
    installed("ray", "ray", wanted_by="--compute-on ray")
    cluster: Over = joined("joins", "over.ray", part="train", wanted_by="--compute-on ray")(address, device=device)
    return cluster


COLUMNS: Final = {
    "item": "Column of item names.",
    "annotator": "Column of annotator names.",
    "label": "Column of classes.",
    "response": "Column of yes / no / unsure, one row per class.",
    "seconds": "Column of seconds per judgement.",
    "time": "Column that says when a judgement was given.",
    "kind": "Column that says whether a person or a model gave a row; one called kind is found by itself.",
    "attributes": "Column that describes annotators; repeat for more.",
    "item_attributes": "Column that describes items (text, source, gold); repeat for more.",
    "annotators": "Columns of a wide table that are annotators: names or patterns (ann*), separated by commas.",
    "models": "Annotators who are models, where no column says so: names or patterns (gpt-*), separated by commas.",
    "columns": "Names of all columns of a file without a header, separated by commas.",
}
"""Options that say where things stand in a votes file, by the names of `dissensus.votes.reading.Options`."""

READING: Final = COLUMNS | {
    "format": "How to read the file; found from its name and content if not given.",
    "missing": "What stands for a label that was not given, separated by commas (NA,-1,); by default empty cells, NA, "
    "NaN and the like, which a long file may not hold.",
    "classes": "Class names in order, separated by commas; any other label is refused. Predictions that have no class "
    "names are in this order.",
    "ordered": "Whether the classes are a scale.",
    "separator": "What separates the labels of a cell that holds several.",
    "duplicates": "What to do where an annotator judged an item twice.",
}
"""All options that say how to read a votes file."""

TYPED: Final = {"attributes": "--attribute", "item_attributes": "--keep", "ordered": "--ordered/--nominal"}
"""How an option is typed that is not called as it is typed."""

KINDS: Final[dict[str, Any]] = {
    "attributes": list[str] | None,
    "item_attributes": list[str] | None,
    "ordered": bool | None,
    "duplicates": Literal["refuse", "first", "last"],
}
"""What an option holds that is not a text; several in one text are separated by commas."""

SEVERAL: Final = ("annotators", "models", "columns", "missing", "classes")


def _all_help(context: typer.Context, asked: bool) -> None:
    if asked:
        for each in context.command.params:
            setattr(each, "hidden", False)  # noqa: B010 - arguments have it too, but do not declare it
        typer.echo(context.get_help())
        raise typer.Exit


AllHelp = Annotated[
    bool,
    typer.Option(
        "--help-all",
        help="Show every option, also the rarer ones and those of reading votes, and stop.",
        is_eager=True,
        callback=_all_help,
    ),
]


def reads(*further: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command that reads votes: its parameter `reading`, an `Options`, is given by the options of `READING`.

    These, and those of its own that are named as `further`, stand on the page of --help-all, not on that of --help.
    """

    def made(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, localns={"Options": object}, include_extras=True)

        @functools.wraps(command)
        def called(*, help_all: bool = False, **given: Any) -> None:
            from dissensus.votes.reading import Options

            said = {name: _as_read(name, given.pop(name, None)) for name in READING}
            command(**given, reading=Options(**{name: each for name, each in said.items() if each is not None}))

        own = [each for each in inspect.signature(command).parameters.values() if each.name != "reading"]
        shown = [each.replace(annotation=hints[each.name]) for each in own]
        shown += [_keyword("help_all", AllHelp, default=False), *(_reading_option(name) for name in READING)]
        hidden = {*further, *READING}
        shown = [each.replace(annotation=_hidden(each.annotation)) if each.name in hidden else each for each in shown]
        called.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in shown}
        return called

    return made


def _keyword(name: str, hint: Any, *, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _reading_option(name: str) -> inspect.Parameter:
    panel = "Columns" if name in COLUMNS else "How votes are read"
    option = typer.Option(TYPED.get(name, f"--{name}"), help=READING[name], rich_help_panel=panel)
    default = "refuse" if name == "duplicates" else None
    return _keyword(name, Annotated[KINDS.get(name, str | None), option], default=default)


def _hidden(hint: Any) -> Any:
    kind, option = get_args(hint)
    option = copy(option)
    option.hidden = True
    return Annotated[kind, option]


def _as_read(name: str, given: Any) -> Any:
    """What was typed, as `Options` takes it: lists are separated by commas."""
    if name in SEVERAL and given is not None:
        return tuple(each.strip() for each in given.split(","))
    return tuple(given) if isinstance(given, list) else given


def is_known(source: str) -> bool:
    """Whether a source names a known dataset rather than a file."""
    from dissensus.datasets import DATASETS

    return source in DATASETS and not Path(source).exists()


def item_attribute(votes: Votes, name: str) -> Any:
    """(items,) one of the attributes of items."""
    from dissensus.errors import InputError, choices

    if name not in votes.item_attributes:
        remedy = choices(name, votes.item_attributes) if votes.item_attributes else "; keep its column with --keep"
        raise InputError(f"items have no attribute '{name}'{remedy}")
    return votes.item_attributes[name]


def votes_named(source: str, options: Options) -> tuple[Votes, Reading | None]:
    """The votes of a file, with how it was understood, or those of a known dataset."""
    from dissensus.datasets import DATASETS
    from dissensus.errors import InputError, choices
    from dissensus.votes.reading import understand

    path = Path(source)
    if not path.exists() and not path.suffix and path.name == source and source not in DATASETS:
        raise InputError(f"'{source}' is neither a file here nor a known dataset{choices(source, DATASETS)}")
    if is_known(source):
        given = options.given(*READING)
        if given:
            typed = TYPED.get(given[0], f"--{given[0]}")
            raise InputError(f"{source} is a known dataset and needs no {typed}; leave it out, or name a file")
        return DATASETS[source].load(), None
    reading = understand(path, options)
    return reading.votes, reading


def show_reading(reading: Reading | None) -> None:
    """Say how a file was understood, on standard error."""
    if reading is None:
        return
    columns = ", ".join(f"{role} = {column}" for role, column in reading.columns.items())
    note(f"read as {reading.format}{f': {columns}' if columns else ''}")
    for sentence in reading.notes:
        note(sentence)


def reading_dict(reading: Reading | None) -> dict[str, Any]:
    """How a file was understood, for JSON."""
    if reading is None:
        return {}
    return {"format": reading.format, "columns": dict(reading.columns), "reading_notes": list(reading.notes)}
