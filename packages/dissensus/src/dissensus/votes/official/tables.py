"""Official tables of several sets: POPQUORN, FER+, CREHate, EmoBank, Davidson et al., CREMA-D and GoEmotions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError
from dissensus.table_file import Rows, columns_of, open_table
from dissensus.votes.columns import Columns, listed
from dissensus.votes.grid import votes_from_count_rows
from dissensus.votes.official.opening import Format, has_columns, header, official_file, require_rows, whole_numbers
from dissensus.votes.rows import votes_from_rows

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.rows import Duplicates
    from dissensus.votes.table import Votes

POPQUORN: Final = "raw_data.csv"
RATINGS: Final = ("offensiveness", "politeness", "difficulty")
"""The rated column of the tasks offensiveness, politeness rating and question answering."""
POPQUORN_DEMOGRAPHICS: Final = ("gender", "race", "age", "occupation", "education")
FIVE_POINTS: Final = ("1", "2", "3", "4", "5")

FER_PLUS: Final = "fer2013new.csv"
FER_PLUS_CLASSES: Final = (
    *("neutral", "happiness", "surprise", "sadness", "anger", "disgust", "fear", "contempt"),
    *("unknown", "NF"),
)
"""As in the header: eight emotions, unknown, and NF, "not a face"."""

CREHATE: Final = "CREHate_raw_annotations.csv"
CREHATE_CLASSES: Final = ("not hate", "hate", "unsure")
DEMOGRAPHICS: Final = (
    *("nationality", "age", "education", "ethnicity", "gender", "politic", "religion"),
    "gender_sexual_orientation",
)

EMOBANK: Final = "individual_reader_ratings.csv"
DIMENSIONS: Final = {"valence": "V", "arousal": "A", "dominance": "D"}

DAVIDSON: Final = "labeled_data.csv"
DAVIDSON_CLASSES: Final = ("hate_speech", "offensive_language", "neither")

CREMA_D: Final = "tabulatedVotes.csv"
EMOTIONS: Final = {"A": "anger", "D": "disgust", "F": "fear", "H": "happiness", "N": "neutral", "S": "sadness"}
CONDITIONS: Final = {"voice": "1", "face": "2", "both": "3"}

GO_EMOTIONS: Final = "goemotions_*.csv"
ABOUT_COMMENTS: Final = ("text", "id", "author", "subreddit", "link_id", "parent_id", "created_utc", "rater_id")
UNCLEAR: Final = "example_very_unclear"


def read_popquorn(path: Path, *, duplicates: Duplicates = "refuse", notes: list[str] | None = None) -> Votes:
    """Ratings of a task's `raw_data.csv`, or of the folder that holds it; demographics are annotator attributes.

    The offensiveness file holds every pair of comment and annotator once, and the same demographics in all rows of an
    annotator; a file that does not is refused. Where no row names its annotator the votes are anonymous.
    """
    path = official_file(path, POPQUORN)
    rating = [column for column in RATINGS if column in columns_of(path)]
    if len(rating) != 1:
        raise InputError(
            f"{path}: expected one column of ratings, {listed(RATINGS)}, and found {len(rating)}; "
            "give the raw_data.csv of one of these tasks"
        )
    rows = require_rows(path, "CSV", ["instance_id", "user_id", rating[0], *POPQUORN_DEMOGRAPHICS])
    ratings = whole_numbers(rows, rating[0], low=1, high=5).cast(str)
    users = whole_numbers(rows, "user_id", low=0, high=1_000_000_000)
    anonymous = users.is_null().all()
    return votes_from_rows(
        rows.table.with_columns(ratings, users),
        Columns(
            item="instance_id",
            annotator=None if anonymous else "user_id",
            label=rating[0],
            attributes=() if anonymous else POPQUORN_DEMOGRAPHICS,
        ),
        where=rows.where,
        classes=FIVE_POINTS,
        ordered=True,
        duplicates=duplicates,
        notes=notes,
    )


def read_ferplus(path: Path, *, notes: list[str] | None = None) -> Votes:
    """Votes of `fer2013new.csv`, or of the folder that holds it.

    Items are image names. A row without an image name is an image that the authors removed, and is left out (173 in
    the official file, all with ten votes for NF). Four names stand in two rows: a row that repeats the votes of the
    first is left out, and so is one with votes for NF only, a removed image under another's name. So 35,887 rows
    become 35,710 items.
    """
    path = official_file(path, FER_PLUS)
    rows = require_rows(path, "CSV", ["Image name", *FER_PLUS_CLASSES])
    name, votes_for = pl.col("Image name"), pl.col(FER_PLUS_CLASSES[:-1]).cast(pl.Float64, strict=False)
    table = (
        rows.table.with_columns(row=np.arange(rows.table.height) if rows.numbers is None else rows.numbers)
        .filter(name.is_not_null())
        .unique(["Image name", *FER_PLUS_CLASSES], keep="first", maintain_order=True)
        .filter(~name.is_duplicated() | (pl.sum_horizontal(votes_for) != 0))
    )
    if not table.height:
        raise InputError(f"{path}: no row has an image name; give the official file unchanged")
    if notes is not None and rows.table.height > table.height:
        notes.append(f"left out: {rows.table.height - table.height:,} rows of removed images, and repeated ones")
    named = Rows(path, table.drop("row"), table["row"].to_numpy())
    return votes_from_count_rows(named, item="Image name", classes=FER_PLUS_CLASSES)


def read_crehate(path: Path, *, duplicates: Duplicates = "refuse", notes: list[str] | None = None) -> Votes:
    """Votes of CREHate's raw annotations: whether a post is hateful, by annotators of five countries (Lee et al. 2024).

    The file does not say what its label 2 means; the authors leave it out of their labels by country, and here it is
    the class `unsure`. Demographics are attributes of annotators; of an annotator who stated two values, the first is
    kept and told.
    """
    path = official_file(path, CREHATE)
    rows = require_rows(path, "CSV", ["ID", "annotator_id", "annotation", *DEMOGRAPHICS])
    label = whole_numbers(rows, "annotation", low=0, high=2)
    table = rows.table.with_columns(
        pl.Series(CREHATE_CLASSES).gather(label).alias("annotation"),
        pl.col(DEMOGRAPHICS).cast(pl.String).first().over("annotator_id"),
    )
    stated = rows.table.select(pl.col(DEMOGRAPHICS).cast(pl.String))
    changed = sum(int(table[name].ne_missing(stated[name]).sum()) for name in DEMOGRAPHICS)
    if changed and notes is not None:
        notes.append(f"{changed:,} cells of demographics differ from what their annotator stated first, which is kept")
    return votes_from_rows(
        table,
        Columns(item="ID", annotator="annotator_id", label="annotation", attributes=DEMOGRAPHICS),
        where=rows.where,
        classes=CREHATE_CLASSES,
        ordered=False,
        duplicates=duplicates,
        notes=notes,
    )


def read_emobank(path: Path, *, label: str | None = None, notes: list[str] | None = None) -> Votes:
    """Anonymous ratings 1 to 5 by EmoBank's readers (Buechel and Hahn 2017) of valence, arousal or dominance."""
    path = official_file(path, EMOBANK)
    column = DIMENSIONS.get(label or "valence", label or "")
    if column not in DIMENSIONS.values():
        raise InputError(f"{path}: there is no rating '{label}'; choose {listed(list(DIMENSIONS))}")
    _tell_choice(column, {short: name for name, short in DIMENSIONS.items()}, notes)
    rows = require_rows(path, "CSV", ["id", column])
    ratings = whole_numbers(rows, column, low=1, high=5).cast(pl.String)
    return votes_from_rows(
        rows.table.with_columns(ratings),
        Columns(item="id", label=column),
        where=rows.where,
        classes=FIVE_POINTS,
        ordered=True,
    )


def read_davidson(path: Path) -> Votes:
    """Anonymous counts of hate speech, offensive language and neither (Davidson et al. 2017); the text is kept."""
    path = official_file(path, DAVIDSON)
    rows = require_rows(path, "CSV", ["", "count", *DAVIDSON_CLASSES, "tweet"])
    votes = votes_from_count_rows(_only(rows, "", DAVIDSON_CLASSES), item="")
    _refuse_other_totals(votes, rows, "count")
    text = np.array(rows.table["tweet"].fill_null("").to_list(), dtype=np.dtypes.StringDType())
    return replace(votes, item_attributes={"text": text})


def read_crema_d(path: Path, *, label: str | None = None, notes: list[str] | None = None) -> Votes:
    """Anonymous counts of six emotions for each clip of CREMA-D (Cao et al. 2014), by voice, face or both."""
    path = official_file(path, CREMA_D)
    condition = label or "both"
    if condition not in CONDITIONS:
        raise InputError(f"{path}: there is no condition '{label}'; choose {listed(list(CONDITIONS))}")
    _tell_choice(condition, {name: name for name in CONDITIONS}, notes)
    rows = require_rows(path, "CSV", ["", *EMOTIONS, "fileName", "numResponses"])
    chosen = rows.table[""].cast(pl.String).str.starts_with(CONDITIONS[condition])
    kept = Rows(path, rows.table.filter(chosen), np.flatnonzero(chosen.to_numpy()))
    if not kept.table.height:
        raise InputError(f"{path}: no row is of the condition {condition}; give the official file unchanged")
    votes = votes_from_count_rows(_only(kept, "fileName", tuple(EMOTIONS)), item="fileName")
    _refuse_other_totals(votes, kept, "numResponses")
    return replace(votes, classes=tuple(EMOTIONS.values()))


def read_goemotions(path: Path, *, duplicates: Duplicates = "refuse", notes: list[str] | None = None) -> Votes:
    """Votes of one of GoEmotions' three raw files (Demszky et al. 2020): one or more of 28 emotions a judgement.

    Judgements that call the comment very unclear and choose no emotion are votes for `none`.
    """
    path = official_file(path, GO_EMOTIONS)
    table = open_table(path)
    emotions = [name for name in table.columns if name not in (*ABOUT_COMMENTS, UNCLEAR)]
    rows = require_rows(path, "CSV", ["id", "rater_id", *emotions])
    chosen = [
        pl.when(whole_numbers(rows, name, low=0, high=1) == 1).then(pl.lit(name)).alias(name) for name in emotions
    ]
    label = rows.table.select(pl.concat_list(chosen).list.drop_nulls().alias("label")).to_series()
    return votes_from_rows(
        rows.table.select("id", "rater_id").with_columns(label),
        Columns(item="id", annotator="rater_id", label="label"),
        where=rows.where,
        classes=emotions,
        ordered=False,
        duplicates=duplicates,
        notes=notes,
    )


def _tell_choice(chosen: str, names: dict[str, str], notes: list[str] | None) -> None:
    """Note which of several votes of a file are read, and how the others are asked for."""
    if notes is not None:
        others = " or ".join(f"--label {name}" for key, name in names.items() if key != chosen)
        notes.append(f"the votes are those of '{names[chosen]}'; {others} reads the others")


def _only(rows: Rows, item: str, classes: tuple[str, ...]) -> Rows:
    return Rows(rows.path, rows.table.select(item, *classes), rows.numbers)


def _refuse_other_totals(votes: Votes, rows: Rows, column: str) -> None:
    """Refuse counts that do not add up to the number of votes that the file states."""
    stated = whole_numbers(rows, column, low=0, high=1_000_000).to_numpy()
    wrong = np.flatnonzero(votes.panel_size != stated)
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            f"{rows.where(row)}: {votes.panel_size[row]} votes, and column '{column}' says {stated[row]}; give the "
            "official file unchanged"
        )


TABLES: Final = (
    Format(
        "popquorn",
        "POPQUORN: raw_data.csv of a task with ratings",
        read_popquorn,
        lambda path: any(
            has_columns(POPQUORN, "instance_id", "user_id", *POPQUORN_DEMOGRAPHICS, rating)(path) for rating in RATINGS
        ),
    ),
    Format("fer+", "FER+: fer2013new.csv", read_ferplus, has_columns(FER_PLUS, "Image name", "NF")),
    Format(
        "crehate",
        "CREHate: CREHate_raw_annotations.csv",
        read_crehate,
        has_columns(CREHATE, "ID", "annotator_id", "annotation", "politic"),
    ),
    Format(
        "emobank",
        "EmoBank: individual_reader_ratings.csv; --label valence, arousal or dominance",
        read_emobank,
        lambda path: header(path, EMOBANK) == {"id", *DIMENSIONS.values()},
    ),
    Format(
        "davidson",
        "Davidson et al.: labeled_data.csv",
        read_davidson,
        has_columns(DAVIDSON, "count", *DAVIDSON_CLASSES, "tweet"),
    ),
    Format(
        "crema-d",
        "CREMA-D: tabulatedVotes.csv; --label voice, face or both",
        read_crema_d,
        has_columns(CREMA_D, *EMOTIONS, "fileName", "numResponses"),
    ),
    Format(
        "goemotions",
        "GoEmotions: a raw goemotions_1.csv",
        read_goemotions,
        has_columns(GO_EMOTIONS, "id", "rater_id", UNCLEAR, "admiration"),
    ),
)
"""The formats of tables."""
