"""Options that several commands share, and the votes they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dissensus.cli.printing import note

if TYPE_CHECKING:
    from dissensus.cores import Over
    from dissensus.votes.reading import Reading
    from dissensus.votes.table import Votes

Source = Annotated[str, typer.Argument(metavar="VOTES", help="A votes file, or the name of a known dataset (words).")]
Format = Annotated[
    str | None, typer.Option("--format", help="How to read the file; found from its name and content if not given.")
]
Item = Annotated[str | None, typer.Option(help="Column of item names.", rich_help_panel="Columns")]
Annotator = Annotated[str | None, typer.Option(help="Column of annotator names.", rich_help_panel="Columns")]
Label = Annotated[str | None, typer.Option(help="Column of classes.", rich_help_panel="Columns")]
Response = Annotated[
    str | None, typer.Option(help="Column of yes / no / unsure, one row per class.", rich_help_panel="Columns")
]
Seconds = Annotated[str | None, typer.Option(help="Column of seconds per judgement.", rich_help_panel="Columns")]
Time = Annotated[
    str | None, typer.Option(help="Column that says when a judgement was given.", rich_help_panel="Columns")
]
Kind = Annotated[
    str | None,
    typer.Option(
        help="Column that says whether a person or a model gave a row; one called kind is found by itself.",
        rich_help_panel="Columns",
    ),
]
Models = Annotated[
    str | None,
    typer.Option(
        help="Annotators who are models, where no column says so: names or patterns (gpt-*), separated by commas.",
        rich_help_panel="Columns",
    ),
]
Attributes = Annotated[
    list[str] | None,
    typer.Option("--attribute", help="Column that describes annotators; repeat for more.", rich_help_panel="Columns"),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep", help="Column that describes items (text, source, gold); repeat for more.", rich_help_panel="Columns"
    ),
]
Annotators = Annotated[
    str | None,
    typer.Option(
        help="Columns of a wide table that are annotators: names or patterns (ann*), separated by commas.",
        rich_help_panel="Columns",
    ),
]
ColumnNames = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Names of all columns of a file without a header, separated by commas.",
        rich_help_panel="Columns",
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        help="What stands for a label that was not given, separated by commas (NA,-1,); by default empty cells, NA, "
        "NaN and the like, which a long file may not hold."
    ),
]
Classes = Annotated[
    str | None, typer.Option(help="Class names in order, separated by commas; any other label is refused.")
]
Ordered = Annotated[bool | None, typer.Option("--ordered/--nominal", help="Whether the classes are a scale.")]
Separator = Annotated[str | None, typer.Option(help="What separates the labels of a cell that holds several.")]
Duplicates = Annotated[
    Literal["refuse", "first", "last"], typer.Option(help="What to do where an annotator judged an item twice.")
]
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
    typer.Option("--engine", help="Where to compute; ray: over the nodes of a Ray cluster.", rich_help_panel="Ray"),
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


def over(engine: str, address: str | None, *, device: str = "cpu") -> Over:
    """What calls a function on many jobs: `map`, or where the engine is Ray a cluster."""
    from dissensus.errors import InputError
    from dissensus.extras import installed
    from dissensus.parts import joined

    if engine != "ray":
        if address is not None:
            raise InputError("--address is for a cluster; add --engine ray")
        return map
    installed("ray", "ray", wanted_by="--engine ray")
    cluster: Over = joined("joins", "over.ray", part="train", wanted_by="--engine ray")(address, device=device)
    return cluster


def reading_options(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a command that say how to read a votes file."""
    names = ("format", "item", "annotator", "label", "response", "seconds", "ordered", "separator", "duplicates")
    chosen = {name: given[name] for name in names} | {name: given.get(name) for name in ("time", "kind")}
    chosen["classes"] = (
        None if given["classes"] is None else tuple(name.strip() for name in given["classes"].split(","))
    )
    for name in ("annotators", "models", "columns", "missing"):
        text = given.get(name)
        chosen[name] = None if text is None else tuple(each.strip() for each in text.split(","))
    chosen |= {name: chosen[name] or () for name in ("annotators", "models")}
    chosen["attributes"] = tuple(given.get("attribute") or ())
    chosen["item_attributes"] = tuple(given.get("keep") or ())
    return chosen


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


def votes_named(source: str, options: dict[str, Any]) -> tuple[Votes, Reading | None]:
    """The votes of a file, with how it was understood, or those of a known dataset."""
    from dissensus.datasets import DATASETS
    from dissensus.errors import InputError, choices
    from dissensus.votes.reading import Options, understand

    path = Path(source)
    if not path.exists() and not path.suffix and path.name == source and source not in DATASETS:
        raise InputError(f"'{source}' is neither a file here nor a known dataset{choices(source, DATASETS)}")
    if is_known(source):
        given = [name for name, value in options.items() if value not in (None, "refuse", ())]
        if given:
            raise InputError(f"{source} is a known dataset and needs no --{given[0]}; leave it out, or name a file")
        return DATASETS[source].load(), None
    reading = understand(path, Options(**options))
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
