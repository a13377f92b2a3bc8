"""What has been collected, as files: for people, for spreadsheets, and for the rest of dissensus.

Exports are pseudonymous: annotators have names that the project made up for them. Who they are on a recruitment
platform is written on request only, into a separate file. Judgements that do not count towards k (surplus ones, whose
item others had filled already) are in a separate file too, so that `answers` holds the votes that count and no others.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError, choices
from dissensus.labels.schemes import weighted
from dissensus.labels.writing import label_table
from dissensus.responses import RESPONSES, YES
from dissensus.shipped import shipped_toml
from dissensus.votes.own import write_side_file
from dissensus.votes.writing import write_votes
from dissensus.whole_file import sha256_of, whole_folder
from dissensus_collect.project.reading import FILE
from dissensus_collect.results.adaptive import inclusion_of_votes
from dissensus_collect.results.collected import collected_votes, names_of_items, pseudonyms, read_judgements
from dissensus_collect.store.events import is_simulated
from dissensus_collect.work.answers import questions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dissensus.votes.table import Votes
    from dissensus_collect.project.reading import Project

FORMATS: Final = ("csv", "jsonl", "parquet")
SCHEMES: Final = ("equal-weighted", "uncertainty-weighted")
_FORMULA: Final = r"^[=+\-@\t\r]"
_NUMBER: Final = r"^[+-]?\d+(\.\d+)?$"

CODEBOOK: Final[dict[str, dict[str, str]]] = shipped_toml(__package__, "codebook.toml")
"""What each column of each file holds."""
QUERIES: Final[dict[str, str]] = shipped_toml(__package__, "queries.toml")
"""The tables that are queries."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Export:
    """An export that is on disk, with SHA-256 by file name.

    Its votes are the counted judgements, and None if there are none yet; it is `simulated` if bots gave them.
    """

    folder: Path
    files: tuple[Path, ...]
    checksums: Mapping[str, str]
    votes: Votes | None
    simulated: bool


def export_project(
    cursor: Any, project: Project, folder: str | Path, *, identities: bool = False, formats: Sequence[str] = FORMATS
) -> Export:
    """Write everything that was collected into a folder that is new or empty, whole or not at all.

    With `identities`, who the annotators are on the recruitment platform is written, too, into a table of that name. In
    CSV, an apostrophe is put before text that a spreadsheet would run as a formula.
    """
    target = Path(folder)
    unknown = [kind for kind in formats if kind not in FORMATS]
    if unknown or not formats:
        raise InputError(f"export: '{', '.join(unknown)}' is not a format{choices(''.join(unknown[:1]), FORMATS)}")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target}: there is something in it already; choose a folder that is new or empty")
    with whole_folder(target) as part:
        votes = _write_all(cursor, project, part, identities=identities, formats=formats)
        checksums = {path.name: sha256_of(path) for path in sorted(part.iterdir())}
        lines = "".join(f"{digest}  {name}\n" for name, digest in checksums.items())
        (part / "manifest.sha256").write_text(lines, encoding="utf-8")
    return Export(
        folder=target,
        files=tuple(sorted(target.iterdir())),
        checksums=checksums,
        votes=votes,
        simulated=is_simulated(cursor),
    )


def _write_all(
    cursor: Any, project: Project, folder: Path, *, identities: bool, formats: Sequence[str]
) -> Votes | None:
    tables = {
        "answers": _answers(cursor, project),
        "surplus": _answers(cursor, project, counting=False),
        "set_aside": _answers(cursor, project, used=False),
    }
    if project.items.pairs:
        tables["preferences"] = preferences(cursor, project)
    unwanted = {"identities": not identities, "reasons": project.reason.ask == "off"}
    for name, sql in QUERIES.items():
        if unwanted.get(name):
            continue
        rows = cursor.execute(sql).fetchall()
        if rows or name != "final_answers" or project.questions:
            columns = list(CODEBOOK[name])
            tables[name] = pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
    for kind in formats if identities else ():
        # Made before it is written, so that nobody else can read it at any moment.
        (folder / f"identities.{kind}").touch(mode=0o600)
    first, written = None, []
    for place, asked in enumerate(project.asked if tables["answers"].height else ()):
        votes = collected_votes(cursor, project, question=place)
        first = votes if first is None else first
        ending = f"-{asked.name}" if asked.name else ""
        tables |= {f"labels{ending}-{scheme}": label_table(weighted(votes, scheme)) for scheme in SCHEMES}
        written.append(f"votes{ending}")
        for kind in formats:
            path = folder / f"votes{ending}.{kind}"
            write_votes(votes, path)
            if kind == "csv":
                as_written = path.read_bytes()
                write_guarded_csv(pl.read_csv(path, infer_schema=False), path)
                if path.read_bytes() != as_written:
                    # What stands beside a file belongs to it as it was written.
                    write_side_file(None, path)
    writers: dict[str, Callable[..., Any]] = {
        "csv": write_guarded_csv, "jsonl": pl.DataFrame.write_ndjson, "parquet": pl.DataFrame.write_parquet,
    }  # fmt: skip
    for name, table in tables.items():
        for kind in formats:
            writers[kind](table, folder / f"{name}.{kind}")
    (folder / FILE).write_text(project.toml, encoding="utf-8")
    # The votes of the first question come last, because the codebook ends with what they are.
    codebook = _codebook(cursor, project, [*tables, *reversed(written)], formats, first)
    (folder / "codebook.md").write_text(codebook, encoding="utf-8")
    return first


def preferences(cursor: Any, project: Project) -> pl.DataFrame:
    """A row for each vote on a pair, as it was shown: who was on the left and on the right, and which was better.

    The choice is left, tie or right; with degrees, A>B or A>>B for a better left side, A=B, B>A or B>>A.
    """
    rows = cursor.execute(
        "SELECT i.name, n.pseudonym, i.text, a.class_order, r.class FROM assignment a "
        "JOIN item i ON i.id = a.item JOIN annotator n ON n.id = a.annotator "
        "JOIN judgement j ON j.assignment = a.id AND j.current = 1 "
        f"JOIN response r ON r.judgement = j.id AND r.value = {YES} AND r.class < ? "
        "WHERE a.counts = 1 AND i.role = 'vote' AND i.retired_at IS NULL AND n.exported = 1 ORDER BY i.id, a.done_at",
        (len(project.classes.names),),
    ).fetchall()
    n = len(project.classes.names)
    simple = {-1: "left", 0: "tie", 1: "right"} if n <= 3 else {}
    out = []
    for item, annotator, text, order, chosen in rows:
        shown = json.loads(order)[:n]
        left, right = json.loads(text)["names"][:: -1 if shown[0] else 1]
        # How many steps to the right of the middle, of which there is none if there are no ties.
        away = 2 * shown.index(chosen) - (n - 1)
        degree = (abs(away) + 1) // 2 * (1 if away > 0 else -1)
        marks = ">" * abs(degree)
        words = "A=B" if degree == 0 else f"A{marks}B" if degree < 0 else f"B{marks}A"
        out.append((item, annotator, left, right, simple.get(degree, words)))
    return pl.DataFrame(out, schema=dict.fromkeys(CODEBOOK["preferences"], pl.String), orient="row")


def write_guarded_csv(table: pl.DataFrame, path: Path) -> None:
    """Write CSV in which a spreadsheet finds no formula: an apostrophe is put before text that begins with = + - @.

    Numbers keep their sign.
    """

    def guarded(column: pl.Expr) -> pl.Expr:
        risky = column.str.contains(_FORMULA) & ~column.str.contains(_NUMBER)
        return pl.when(risky).then(pl.lit("'") + column).otherwise(column)

    text = [name for name, kind in table.schema.items() if kind in (pl.String, pl.Categorical) or kind == pl.Enum]
    safe = table.with_columns(guarded(pl.col(name).cast(pl.String)).alias(name) for name in text)
    # A class may be a column, and the name of a column is a cell too.
    heads = pl.DataFrame({"head": table.columns}).select(head=guarded(pl.col("head")))["head"]
    safe.rename(dict(zip(table.columns, heads.to_list(), strict=True))).write_csv(path)


def _answers(cursor: Any, project: Project, *, counting: bool = True, used: bool = True) -> pl.DataFrame:
    """One row for each judgement, question and class: those that count, those that do not, or those not used."""
    cursor.execute(
        "SELECT a.id, a.class_order, a.version, j.input, a.voided, i.retired_reason FROM assignment a "
        "JOIN judgement j ON j.assignment = a.id AND j.current = 1 JOIN item i ON i.id = a.item "
        "WHERE a.state = 'done' ORDER BY a.id"
    )
    rows = cursor.fetchall()
    ids = np.array([row[0] for row in rows], dtype=np.int64)

    def texts(at: list[int], column: int) -> pl.Series:
        return pl.Series([rows[row][column] for row in at], dtype=pl.String)

    apart = [] if used else ["voided", "retired"]
    tables = []
    for question, (asked, places) in enumerate(questions_of(project)):
        judgements = read_judgements(cursor, project, question=question, counted=counting and used, used=used)
        if used and not counting:
            judgements = judgements.where(~judgements.counts)
        n_classes = len(places)
        at = np.searchsorted(ids, judgements.assignment).tolist()
        orders = np.array([json.loads(rows[row][1])[places.start : places.stop] for row in at], dtype=np.int64)
        place, inclusion = inclusion_of_votes(cursor, project, judgements)
        judged = {
            "annotator": _named(pseudonyms(cursor), judgements.annotator),
            "item": _named(names_of_items(cursor), judgements.item),
            "number": judgements.number,
            "seconds": judgements.seconds,
            "hidden_seconds": judgements.hidden_seconds,
            "input": texts(at, 3),
            "done_at": judgements.done_at,
            "late": judgements.late,
            "vote": np.where(judgements.counts, place, 0),
            "inclusion": inclusion,
            "version": texts(at, 2),
            "voided": texts(at, 4),
            "retired": texts(at, 5),
        }
        table = pl.DataFrame(judged)[np.repeat(np.arange(len(judgements)), n_classes)]
        classes = pl.Series(asked.classes, dtype=pl.String)
        responses = pl.DataFrame(
            {
                "question": pl.Series([asked.name] * (n_classes * len(judgements)), dtype=pl.String),
                "class": classes.gather(np.tile(np.arange(n_classes), len(judgements))),
                "response": pl.Series(RESPONSES, dtype=pl.String).gather(judgements.response.ravel()),
                "amount": judgements.amount.ravel(),
                "position": np.argsort(orders.reshape(-1, n_classes), axis=1).ravel() + 1,
                "first_seconds": judgements.first_seconds.ravel(),
                "last_seconds": judgements.last_seconds.ravel(),
                "changes": judgements.changes.ravel(),
            }
        )
        tables.append(table.hstack(responses).select(*CODEBOOK["answers"], *apart))
    return pl.concat(tables).with_columns(pl.selectors.float().fill_nan(None))


def _named(names: dict[int, str], ids: Any) -> pl.Series:
    keys = np.fromiter(names, dtype=np.int64, count=len(names))
    return pl.Series(list(names.values()), dtype=pl.String).gather(np.searchsorted(keys, ids))


def _codebook(cursor: Any, project: Project, tables: Sequence[str], formats: Sequence[str], votes: Votes | None) -> str:
    lines = [f"# Codebook of {project.name}", ""]
    if is_simulated(cursor):
        lines += ["**These answers are simulated: bots gave them, not people.**", ""]
    for asked in project.asked:
        lines += [
            f"Question{f' {asked.name}' if asked.name else ''}: {asked.question}  ",
            f"Layout: {asked.layout}; classes: {', '.join(asked.classes)}"
            + (f"; scale: {', '.join(map(str, asked.scale.values))}" if asked.layout == "rating" else "")
            + "  ",
        ]
    if project.prescreening:
        screened = "; ".join(f"{name}: {value}" for name, value in project.prescreening.items())
        lines += [f"Prescreening on the recruitment platform: {screened}  "]
    lines += [
        f"Votes per item: {project.k}  ",
        f"Instrument version: {project.version} (collect.toml)  ",
        f"Every table is written as {', '.join(formats)}; `sha256sum -c manifest.sha256` checks the files.",
    ]
    for name in tables:
        # The votes and labels of a further question, such as `votes-clear`, are what those of the first are.
        columns = CODEBOOK.get(name) or CODEBOOK[re.sub(r"^(votes|labels)-\w+", r"\1", name)]
        lines += ["", f"## {name}"]
        lines += [f"- {f'`{column}`: ' if column else ''}{meaning}" for column, meaning in columns.items()]
    if votes is not None and not is_simulated(cursor):
        lines.append(f"- {votes.n_model_votes:,} of the {len(votes):,} votes are from models")
    return "\n".join(lines) + "\n"
