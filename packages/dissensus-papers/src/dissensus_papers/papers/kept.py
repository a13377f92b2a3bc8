"""Summaries as files, FOLDER/PAPER/STUDY.json: written in lines, read back, and refused where they were changed."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from dissensus.errors import InputError
from dissensus.pages import write_texts
from dissensus_papers.papers.summary import StudySummary

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write_summary(folder: Path, paper: str, summary: StudySummary) -> Path:
    """Keep a summary as FOLDER/PAPER/NAME.json; one that was run is never replaced by one that says why it was not."""
    path = folder / paper / f"{summary.name}.json"
    if summary.missing and (kept := kept_summary(folder, paper, summary.name)) and not kept.missing:
        return path
    held = asdict(summary)
    return write_texts(path.parent, {path.name: _in_lines({**held, "seal": _seal(held)})})[0]


def kept_summary(folder: Path, paper: str, name: str) -> StudySummary | None:
    """The summary of a study that a folder keeps; None where it keeps none."""
    path = folder / paper / f"{name}.json"
    return _read(path) if path.is_file() else None


def _in_lines(value: Mapping[str, Any]) -> str:
    """JSON with a line for each score and each answer, so that a changed one is seen."""

    def lines(inside: Any) -> str:
        if isinstance(inside, dict) and inside:
            return "{\n  " + ",\n  ".join(f"{_json(key)}: {_json(entry)}" for key, entry in inside.items()) + "\n }"
        if isinstance(inside, list | tuple) and inside and isinstance(inside[0], dict):
            return "[\n  " + ",\n  ".join(map(_json, inside)) + "\n ]"
        return _json(inside)

    return "{\n " + ",\n ".join(f"{_json(key)}: {lines(inside)}" for key, inside in value.items()) + "\n}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def read_summaries(folder: Path, paper: str) -> dict[str, StudySummary]:
    """By name, the summaries of a paper's studies that a folder keeps."""
    summaries = {}
    for path in sorted((folder / paper).glob("*.json")):
        summary = _read(path)
        summaries[summary.name] = summary
    if not summaries:
        raise InputError(
            f"{folder / paper}: no summaries of {paper} are here; run it first (published ones are in docs/results of "
            "the repository)"
        )
    return summaries


def _read(path: Path) -> StudySummary:
    try:
        text = path.read_bytes()
        summary, held = msgspec.json.decode(text, type=StudySummary), json.loads(text)
        tomllib.loads(summary.toml)
    except (OSError, msgspec.MsgspecError, TypeError, KeyError, ValueError) as error:
        raise InputError(
            f"{path}: this is no summary of a study ({error}); remove it, and run the study again"
        ) from error
    if "seal" not in held:
        raise InputError(
            f"{path}: it has no seal, as an earlier version wrote it, or it was taken out; remove it, and run it again "
            "(what is in the store is not trained again) or hand it in again"
        )
    if held.pop("seal") != _seal(held):
        raise InputError(
            f"{path}: it was changed after it was written, since its seal is not that of what it holds; put it back as "
            "it was, or remove it, and run it or hand it in again"
        )
    return summary


def _seal(held: Mapping[str, Any]) -> str:
    """SHA-256 of all that a summary's file holds: it tells of changes by hand, and nothing of who made it."""
    return sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()[:16]
