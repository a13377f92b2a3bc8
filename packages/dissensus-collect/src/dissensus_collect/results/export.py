"""What has been collected, as files: for people, for spreadsheets, and for the rest of dissensus.

Exports are pseudonymous: annotators have names that the project made up for them. Who they are on a recruitment
platform is written on request only, into a separate file. Judgements that do not count towards k (surplus ones, whose
item others had filled already) are in a separate file too, so that `answers` holds the votes that count and no others.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tomllib
import uuid
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError, choices
from dissensus.labels.schemes import weighted
from dissensus.labels.writing import label_table
from dissensus.responses import RESPONSES
from dissensus.votes.writing import write_votes
from dissensus_collect.project.reading import FILE
from dissensus_collect.results.adaptive import inclusion_of_votes
from dissensus_collect.results.collected import collected_votes, names_of_items, pseudonyms, read_judgements
from dissensus_collect.store.events import is_simulated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.votes.table import Votes
    from dissensus_collect.project.reading import Project

FORMATS: Final = ("csv", "jsonl", "parquet")
SCHEMES: Final = ("equal-weighted", "uncertainty-weighted")
_FORMULA: Final = r"^[=+\-@\t\r]"
_NUMBER: Final = r"^[+-]?\d+(\.\d+)?$"

CODEBOOK: Final[dict[str, dict[str, str]]] = tomllib.loads(
    (resources.files(__package__) / "codebook.toml").read_text(encoding="utf-8")
)
"""What each column of each file holds."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Export:
    """An export that is on disk.

    Attributes:
        folder: where it is.
        files: all of its files.
        checksums: SHA-256 by file name.
        votes: the counted judgements; None if there are none yet.
        simulated: whether bots gave them.
    """

    folder: Path
    files: tuple[Path, ...]
    checksums: Mapping[str, str]
    votes: Votes | None
    simulated: bool


def export_project(
    cursor: Any,
    project: Project,
    folder: str | Path,
    *,
    identities: bool = False,
    formats: Sequence[str] = FORMATS,
) -> Export:
    """Write everything that was collected into a new folder, whole or not at all.

    Args:
        cursor: a cursor that reads the database.
        project: the project.
        folder: a folder that does not exist yet, or is empty.
        identities: also write who the annotators are on the recruitment platform, into `identities`.
        formats: of the tables: csv, jsonl, parquet. In CSV, an apostrophe is put before text that a spreadsheet would
            run as a formula.
    """
    target = Path(folder)
    unknown = [each for each in formats if each not in FORMATS]
    if unknown or not formats:
        raise InputError(f"export: '{', '.join(unknown)}' is not a format{choices(''.join(unknown[:1]), FORMATS)}")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target}: there is something in it already; choose a folder that is new or empty")
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        part.mkdir(parents=True)
        votes = _write_all(cursor, project, part, identities=identities, formats=formats)
        checksums = _checksums(part)
        lines = "".join(f"{digest}  {name}\n" for name, digest in checksums.items())
        (part / "manifest.sha256").write_text(lines, encoding="utf-8")
        if target.exists():
            target.rmdir()
        part.replace(target)
    except OSError as error:
        raise InputError(f"{target}: the export cannot be written ({error.strerror}); nothing was changed") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
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
        **_plain_tables(cursor),
    }
    if identities:
        tables["identities"] = _query(
            cursor,
            "SELECT n.pseudonym, d.platform, d.external, d.study, d.session FROM identity d "
            "JOIN annotator n ON n.id = d.annotator ORDER BY n.id",
            "identities",
        )
        for kind in formats:
            # Made before it is written, so that nobody else can read it at any moment.
            (folder / f"identities.{kind}").touch(mode=0o600)
    if project.reason.ask != "off":
        tables["reasons"] = _query(
            cursor,
            "SELECT n.pseudonym, i.name, j.reason FROM judgement j JOIN assignment a ON a.id = j.assignment "
            "JOIN annotator n ON n.id = a.annotator JOIN item i ON i.id = a.item "
            "WHERE j.current = 1 AND j.reason IS NOT NULL AND n.exported = 1 ORDER BY a.id",
            "reasons",
        )
    told = _query(
        cursor,
        "SELECT n.pseudonym, f.name, f.answer FROM final_answer f JOIN annotator n ON n.id = f.annotator "
        "WHERE n.exported = 1 ORDER BY n.id, f.name",
        "final_answers",
    )
    if project.questions or len(told):
        tables["final_answers"] = told
    first = None
    written = []
    for place, asked in enumerate(project.asked):
        if not tables["answers"].height:
            break
        votes = collected_votes(cursor, project, question=place)
        first = votes if first is None else first
        ending = f"-{asked.name}" if asked.name else ""
        tables |= {f"labels{ending}-{scheme}": label_table(weighted(votes, scheme)) for scheme in SCHEMES}
        written.append(f"votes{ending}")
        for kind in formats:
            path = folder / f"votes{ending}.{kind}"
            write_votes(votes, path)
            if kind == "csv":
                write_guarded_csv(pl.read_csv(path, infer_schema=False), path)
    for name, table in tables.items():
        _write_table(table, folder / name, formats)
    (folder / FILE).write_text(project.toml, encoding="utf-8")
    # The votes of the first question come last, because the codebook ends with what they are.
    named = [*tables, *reversed(written)]
    (folder / "codebook.md").write_text(_codebook(cursor, project, named, formats, first), encoding="utf-8")
    return first


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


def _write_table(table: pl.DataFrame, stem: Path, formats: Sequence[str]) -> None:
    if "csv" in formats:
        write_guarded_csv(table, Path(f"{stem}.csv"))
    if "jsonl" in formats:
        table.write_ndjson(Path(f"{stem}.jsonl"))
    if "parquet" in formats:
        table.write_parquet(Path(f"{stem}.parquet"))


def _answers(cursor: Any, project: Project, *, counting: bool = True, used: bool = True) -> pl.DataFrame:
    """One row for each judgement, question and class: those that count, those that do not, or those not used."""
    cursor.execute(
        "SELECT a.id, a.class_order, a.version, j.input, a.voided, i.retired_reason FROM assignment a "
        "JOIN judgement j ON j.assignment = a.id AND j.current = 1 JOIN item i ON i.id = a.item "
        "WHERE a.state = 'done' ORDER BY a.id"
    )
    shown = cursor.fetchall()
    ids = np.array([row[0] for row in shown], dtype=np.int64)
    apart = [] if used else ["voided", "retired"]
    tables = []
    first = 0
    for question, asked in enumerate(project.asked):
        found = read_judgements(cursor, project, question=question, counted=counting and used, used=used)
        if used and not counting:
            found = found.where(~found.counts)
        n_classes = len(asked.classes)
        at = np.searchsorted(ids, found.assignment).tolist()
        orders = np.array([json.loads(shown[row][1])[first : first + n_classes] for row in at], dtype=np.int64)
        place, inclusion = inclusion_of_votes(cursor, project, found)
        judged = {
            "annotator": _named(pseudonyms(cursor), found.annotator),
            "item": _named(names_of_items(cursor), found.item),
            "number": found.number,
            "seconds": found.seconds,
            "hidden_seconds": found.hidden_seconds,
            "input": pl.Series([shown[row][3] for row in at], dtype=pl.String),
            "done_at": found.done_at,
            "late": found.late,
            "vote": np.where(found.counts, place, 0),
            "inclusion": inclusion,
            "version": pl.Series([shown[row][2] for row in at], dtype=pl.String),
            "voided": pl.Series([shown[row][4] for row in at], dtype=pl.String),
            "retired": pl.Series([shown[row][5] for row in at], dtype=pl.String),
        }
        table = pl.DataFrame(judged)[np.repeat(np.arange(len(found)), n_classes)]
        classes = pl.Series(asked.classes, dtype=pl.String)
        responses = pl.DataFrame(
            {
                "question": pl.Series([asked.name] * (n_classes * len(found)), dtype=pl.String),
                "class": classes.gather(np.tile(np.arange(n_classes), len(found))),
                "response": pl.Series(RESPONSES, dtype=pl.String).gather(found.response.ravel()),
                "amount": found.amount.ravel(),
                "position": np.argsort(orders.reshape(-1, n_classes), axis=1).ravel() + 1,
                "first_seconds": found.first_seconds.ravel(),
                "last_seconds": found.last_seconds.ravel(),
                "changes": found.changes.ravel(),
            }
        )
        tables.append(table.hstack(responses).select(*CODEBOOK["answers"], *apart))
        first += n_classes
    return pl.concat(tables).with_columns(pl.selectors.float().fill_nan(None))


def _plain_tables(cursor: Any) -> dict[str, pl.DataFrame]:
    queries = {
        "annotators": "SELECT pseudonym, state, paid, counts, exported, reason, done, gold_done, gold_missed, "
        "arrived_at, consented_at, finished_at FROM annotator WHERE state <> 'deleted' ORDER BY id",
        "items": "SELECT name, role, media, text, wanted, counted, problems, hash, retired_at, retired_reason "
        "FROM item ORDER BY id",
        "payments": "SELECT n.pseudonym, p.at, p.decision, p.pay, p.bonus, p.currency, p.reason, p.sent_at "
        "FROM payment p JOIN annotator n ON n.id = p.annotator ORDER BY p.id",
        "problems": "SELECT n.pseudonym, i.name, a.problem FROM assignment a JOIN item i ON i.id = a.item "
        "JOIN annotator n ON n.id = a.annotator WHERE a.problem IS NOT NULL AND n.state <> 'deleted' ORDER BY a.id",
        "sessions": "SELECT n.pseudonym, s.since FROM session s JOIN annotator n ON n.id = s.annotator "
        "WHERE n.state <> 'deleted' ORDER BY s.since, n.id",
        "events": "SELECT e.id, e.at, n.pseudonym, e.kind, e.detail FROM event e "
        "LEFT JOIN annotator n ON n.id = e.annotator ORDER BY e.id",
    }
    return {name: _query(cursor, sql, name) for name, sql in queries.items()}


def _query(cursor: Any, sql: str, name: str) -> pl.DataFrame:
    cursor.execute(sql)
    return pl.DataFrame(cursor.fetchall(), schema=list(CODEBOOK[name]), orient="row", infer_schema_length=None)


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
        told = "; ".join(f"{name}: {value}" for name, value in project.prescreening.items())
        lines += [f"Prescreening on the recruitment platform: {told}  "]
    lines += [
        f"Votes per item: {project.k}  ",
        f"Instrument version: {project.version} (collect.toml)  ",
        f"Every table is written as {', '.join(formats)}; `sha256sum -c manifest.sha256` checks the files.",
    ]
    for name in tables:
        # The votes and labels of a further question are what those of the first are.
        columns = CODEBOOK.get(name) or CODEBOOK[next(each for each in _BY_QUESTION if _is_of(name, each))]
        lines += ["", f"## {name}"]
        lines += [f"- {f'`{column}`: ' if column else ''}{meaning}" for column, meaning in columns.items()]
    if votes is not None and not is_simulated(cursor):
        lines.append(f"- {votes.n_model_votes:,} of the {len(votes):,} votes are from models")
    return "\n".join(lines) + "\n"


_BY_QUESTION: Final = ("votes", *(f"labels-{scheme}" for scheme in SCHEMES))


def _is_of(name: str, table: str) -> bool:
    """Whether a table of a further question, such as `votes-clear`, is of the same kind as one of the first."""
    first, _, rest = table.partition("-")
    return name.startswith(f"{first}-") and name.endswith(rest)


def _checksums(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}
