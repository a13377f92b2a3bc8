"""The votes and predictions that a command names, read, and the command that reads them again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.cli.options import READING, Given, typed_name
from dissensus.cli.printing import note
from dissensus.errors import InputError, choices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.evaluation.probabilities import Predictions
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.votes.formats import Options, Reading
    from dissensus.votes.shown_pairs import ShownPairs
    from dissensus.votes.table import Votes


def is_known(source: str) -> bool:
    """Whether a source names a known dataset rather than a file."""
    if Path(source).exists():
        return False
    # The catalogue takes longer to load than most files to read.
    from dissensus.datasets import DATASETS

    return source in DATASETS


def votes_named(source: str, options: Options) -> tuple[Votes, Reading | None]:
    """The votes of a file, with how it was understood, or those of a known dataset; standard error says how, too."""
    from dissensus.votes.reading import understand

    path = Path(source)
    if not path.exists():
        from dissensus.datasets import DATASETS

        if not path.suffix and path.name == source and source not in DATASETS:
            raise InputError(f"'{source}' is neither a file here nor a known dataset{choices(source, DATASETS)}")
    if is_known(source):
        votes, reading = DATASETS[source].load(), None
        known = {"attributes": votes.annotator_attributes, "item_attributes": votes.item_attributes}
        for name in options.given(*READING):
            if name not in known:
                raise InputError(
                    f"{source} is a known dataset and needs no {typed_name(name)}; leave it out, or name a file"
                )
            if unknown := [column for column in getattr(options, name) if column not in known[name]]:
                has = choices(unknown[0], known[name]) if known[name] else "; it has none of these"
                raise InputError(f"{source}: there is no '{unknown[0]}' for {typed_name(name)}{has}")
    else:
        reading = understand(path, options)
        votes = reading.votes
    note(*votes.notes)
    return votes, reading


def votes_beside_predictions(
    source: str, reading: Options, predictions: Sequence[Path | None]
) -> tuple[Votes, Reading | None]:
    """The votes; what is said of them may be meant for the predictions alone.

    Where votes have their own classes, the stated ones are only the order of the predictions; a column of items that
    only predictions have is theirs.
    """
    from dissensus.votes.official import OFFICIAL

    if reading.item is not None and not _has_column(Path(source), reading.item):
        theirs = any(path is not None and _has_column(path, reading.item) for path in predictions)
        reading = replace(reading, item=None) if theirs else reading

    path = Path(source)
    found = path.exists() and reading.format is None and any(each.detect(path) for each in OFFICIAL.values())
    own = found or is_known(source) or (path.exists() and reading.format in OFFICIAL)
    return votes_named(source, replace(reading, classes=None) if own else reading)


def people_beside_predictions(
    source: str, reading: Options, predictions: Sequence[Path | None]
) -> tuple[Votes, Reading | None, list[str]]:
    """As `votes_beside_predictions`, the votes of people; and a sentence on those of models, which are left out."""
    from dissensus.votes.kinds import people_alone

    read, how = votes_beside_predictions(source, reading, predictions)
    people, left_out = people_alone(read)
    return people, how, [left_out] if left_out else []


def _has_column(path: Path, name: str) -> bool:
    from dissensus.table_file import open_table

    try:
        return name in open_table(path).columns
    except InputError:
        return False


def system_files(paths: Sequence[Path]) -> dict[str, Path]:
    """Systems called like their files, with the folder where two files have one name."""
    stems = [path.stem for path in paths]
    names = [path.stem if stems.count(path.stem) == 1 else str(path) for path in paths]
    if len(set(names)) < len(names):
        raise InputError("a file of predictions is given twice; give each once")
    return dict(zip(names, paths, strict=True))


def read_systems(
    labels: LabelDistribution,
    files: Mapping[str, Path],
    reading: Options,
    *,
    given: Given | None,
    answers: Path | None = None,
    only_common: bool,
) -> tuple[dict[str, Predictions], LabelDistribution, dict[str, Any], Sequence[str]]:
    """Each system's predictions as read; labels and predictions of the same items; what was left out, in sentences."""
    from dissensus.evaluation.predictions import align_predictions

    systems = read_files(labels.classes, files, reading, given=given, answers=answers, shown=labels.shown)
    return systems, *align_predictions(labels, systems, only_common=only_common)


def read_files(
    classes: tuple[str, ...],
    files: Mapping[str, Path],
    reading: Options,
    *,
    given: Given | None = None,
    answers: Path | None = None,
    shown: ShownPairs | None = None,
) -> dict[str, Predictions]:
    """Each system's predictions, of votes with these classes."""
    from dissensus.evaluation.model_outputs import read_answers
    from dissensus.evaluation.predictions import read_predictions

    meaning = None if answers is None else read_answers(answers)
    stated: Any = {"order": reading.classes, "item": reading.item, "given": given, "answers": meaning, "shown": shown}
    return {name: read_predictions(path, classes, **stated) for name, path in files.items()}


def reading_dict(reading: Reading | None) -> dict[str, Any]:
    """How a file was understood, for JSON."""
    if reading is None:
        return {}
    return {"format": reading.format, "columns": dict(reading.columns), "reading_notes": list(reading.votes.notes)}
