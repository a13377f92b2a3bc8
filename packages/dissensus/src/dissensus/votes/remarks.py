"""What is odd about votes that were read without a doubt: told, and refused where it may be a second header."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError
from dissensus.votes.cells import MISSING, are_numbers, variants
from dissensus.votes.columns import AUTHORS, listed, plain
from dissensus.votes.echo import Plain
from dissensus.votes.preferences import NAMES_SIDES, names_sides

if TYPE_CHECKING:
    from dissensus.votes.formats import Options, Reading
    from dissensus.votes.table import Votes

_CALLED_LIKE_MODELS: Final = (
    r"(?i)^((chat)?gpt|claude|gemini|llama|mistral|mixtral|qwen|deepseek|palm|roberta|bert)\b[-_ .\d\w]*$"
    r"|^(chat)?gpt[-_ .]?\d|^(model|llm|prediction|predicted|model_pred\w*|majority|consensus|gold)$"
)
_GRADES: Final = r"(?i)(strongly|very|somewhat|slightly|extremely|never|rarely|seldom|sometimes|often|always)\b"


def remarks(reading: Reading, options: Options, *, path: object) -> list[str]:
    """What is odd about votes: labels and names that look alike or missing, and what models, scales and times show."""
    votes, told = reading.votes, []
    named = {"item": (votes.items, votes.item)}
    if votes.annotators is not None:
        named["annotator"] = (votes.annotators.names, votes.annotators.code)
    if options.classes is None:
        _refuse_second_header(reading, path)
        often = np.bincount(votes.label, minlength=len(votes.classes))
        told += variants(votes.classes, often, what="labels", format=reading.format)
        unseen = [name for name in votes.classes if not name.isprintable()]
        told += [f"the label {name!r} holds characters that cannot be seen" for name in unseen]
        odd = [word for word in MISSING if word in votes.classes]
        told += [f"the label '{word}' looks like a missing one, and is kept as a class" for word in odd]
    for what, (names, code) in named.items():
        if names.dtype.kind == "T":
            text = pl.Series(names.tolist())
            told += variants(text, np.bincount(code, minlength=len(names)), what=f"{what}s", format=reading.format)
            odd = text.filter(text.is_in(MISSING)).to_list()
            told += [f"the {what} '{word}' looks like a missing name, and is kept as one" for word in odd]
    return told + _on_votes(reading, options)


def _refuse_second_header(reading: Reading, path: object) -> None:
    """Refuse a row that may be a header: called like the column of items, or the first, with cells of its own."""
    votes, row = reading.votes, None
    if votes.items.dtype.kind == "T":
        again = np.strings.lower(votes.items) == reading.columns.get("item", "").lower()
        row = int(again.argmax()) if again.any() else None
    once = np.bincount(votes.label, minlength=len(votes.classes)) == 1
    first = votes.item == votes.item[0] if once.any() else votes.item[:0] == 0
    if reading.format in ("long", "wide") and 0 < 10 * first.sum() < len(votes) and once.sum() < len(votes.classes):
        who = None if reading.format == "wide" or votes.annotators is None else votes.annotators.code
        alone = once[votes.label[first]].all() and (who is None or (who == who[0]).sum() == 1)
        row = 0 if alone and once.sum() == first.sum() else row
    if row is not None:
        raise InputError(
            f"{path}: the row of item '{votes.items[row]}' looks like a second header; remove it, or choose",
            readings={"votes like the others": {"classes": list(votes.classes)}},
        )


def _on_votes(reading: Reading, options: Options) -> list[str]:
    """What the votes themselves show: models among people, a scale, milliseconds, nobody who disagrees."""
    votes, told = reading.votes, []
    nobody_said = not options.models and votes.by_model is None
    if nobody_said and votes.annotators is not None and votes.annotators.names.dtype.kind == "T":
        names = pl.Series(votes.annotators.names.tolist())
        if models := names.filter(names.str.contains(_CALLED_LIKE_MODELS)).to_list():
            told.append(f"{listed(models)} may be no people; models= says which annotators are models")
    who = reading.columns.get("annotator", "")
    if options.annotator is None and plain(who) in AUTHORS and votes.n_judgements == len(votes.items):
        told.append(f"no item has two judgements: '{who}' may say who wrote it; annotator= says who judged it")
    told += [NAMES_SIDES] if names_sides(votes.classes) else []
    if not votes.ordered and options.ordered is None and len(votes.classes) > 2 and votes.none is None:
        if are_numbers(votes.classes):
            scale = "the labels are numbers, and no order is assumed; ordered=True says that they are a scale"
            told.append(Plain(scale))
        elif sum(re.match(_GRADES, name) is not None for name in votes.classes) > 1:
            told.append("the labels look like a scale; name them in order with classes=, and add ordered=True")
    if votes.seconds is not None and 2 * int((votes.seconds > 1000).sum()) > votes.n_judgements:
        told.append(f"half of '{reading.columns.get('seconds')}' is above 1,000 seconds: are they milliseconds?")
    if _nobody_disagrees(votes):
        told.append("nobody disagrees: all votes of each item are the same")
    return told


def _nobody_disagrees(votes: Votes) -> bool:
    if votes.judgement is not None or len(votes) < len(votes.items) + 20:
        return False
    said = np.empty(len(votes.items), dtype=np.int32)
    # Of very many votes the first few almost always disagree.
    for part in (slice(10_000), slice(None)):
        said[votes.item[part]] = votes.label[part]
        if (said[votes.item[part]] != votes.label[part]).any():
            return False
    return True
