"""JSON with judgements by item (JUDGE-BENCH, such as DICES) or by annotator (the alternative annotator test)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError
from dissensus.votes.cells import are_numbers
from dissensus.votes.columns import Columns, listed
from dissensus.votes.kinds import mark_models
from dissensus.votes.official.opening import Format, begins, official_file, read_json
from dissensus.votes.rows import votes_from_rows

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.rows import Duplicates
    from dissensus.votes.table import Votes

ALTTEST_FILE: Final = ".human_annotations.json"
ALTTEST_MODELS: Final = ".llm_annotations.json"


def read_judge_bench(path: Path, *, label: str | None = None, notes: list[str] | None = None) -> Votes:
    """Anonymous votes of a JUDGE-BENCH file, such as DICES: a list of answers for each instance, which is an item.

    `label` names the metric where the file has several. Instances without answers are left out and noted.
    """
    path = official_file(path, "*.json")
    content = read_json(path)
    try:
        metrics = {str(annotation["metric"]): annotation.get("labels_list") for annotation in content["annotations"]}
        if label is None and len(metrics) > 1:
            raise InputError(f"{path}: the file has several metrics; choose one with label=: {listed(list(metrics))}")
        metric = next(iter(metrics)) if label is None else label
        if metric not in metrics:
            raise InputError(f"{path}: there is no metric '{metric}'; choose {listed(list(metrics))}")
        answers = [
            (
                str(instance["id"]),
                [str(answer) for answer in instance["annotations"][metric]["individual_human_scores"]],
            )
            for instance in content["instances"]
        ]
    except (KeyError, TypeError, AttributeError, StopIteration):
        raise InputError(
            f"{path}: expected 'annotations' and 'instances' with 'individual_human_scores', as JUDGE-BENCH writes them"
        ) from None
    silent = sum(not said for _, said in answers)
    if silent and notes is not None:
        notes.append(f"{silent:,} instances without answers are left out")
    rows = pl.DataFrame(
        [answer for answer in answers if answer[1]], orient="row", schema={"item": str, "label": pl.List(str)}
    ).explode("label")
    labels = metrics[metric]
    return votes_from_rows(
        rows,
        Columns(item="item", label="label"),
        where=lambda row: f"{path}, instance {rows['item'][row]}",
        classes=[str(name) for name in labels] if labels else None,
        ordered=False,
    )


def read_alttest(path: Path, *, duplicates: Duplicates = "refuse", notes: list[str] | None = None) -> Votes:
    """Votes of a file of the alternative annotator test (Calderon et al. 2025): each annotator's label of each item.

    Those of a `.llm_annotations.json` are marked as models'.
    """
    path = official_file(path, f"*{ALTTEST_FILE}")
    content = read_json(path)
    if not isinstance(content, dict) or not all(isinstance(part, dict) and part for part in content.values()):
        raise InputError(f"{path}: expected, for each annotator, an object of items and labels")
    said = [(item, who, _label(value, path, who)) for who, entry in content.items() for item, value in entry.items()]
    table = pl.DataFrame(said, orient="row", schema={"item": str, "annotator": str, "label": str})
    numbers = are_numbers(table["label"].unique().to_list())
    votes = votes_from_rows(
        table,
        Columns(item="item", annotator="annotator", label="label"),
        where=lambda row: f"{path}, annotator {table['annotator'][row]}",
        ordered=numbers and table["label"].n_unique() > 2,
        duplicates=duplicates,
        notes=notes,
    )
    return mark_models(votes, ["*"]) if path.name.endswith(ALTTEST_MODELS) else votes


def _label(value: Any, path: Path, who: str) -> str:
    if not isinstance(value, str | int | float) or value == "" or (isinstance(value, float) and not np.isfinite(value)):
        raise InputError(f"{path}, annotator {who}: {value!r} is no label; correct it, or remove it")
    return str(value)


JUDGE_BENCH: Final = Format(
    "judge-bench",
    "JUDGE-BENCH, such as DICES: a JSON file; --label names the metric",
    read_judge_bench,
    begins("{", "dataset", "annotations", "metric"),
)
ALTTEST: Final = Format(
    "alttest",
    "the alternative annotator test: a .human_annotations.json file, or .llm_annotations.json for votes of models",
    read_alttest,
    lambda path: (
        any(path.glob(f"*{ALTTEST_FILE}")) or (path.name.endswith((ALTTEST_FILE, ALTTEST_MODELS)) and path.is_file())
    ),
)
