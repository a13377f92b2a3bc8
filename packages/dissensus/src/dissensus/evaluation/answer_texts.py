"""What a model's text says: an answer in words, or a distribution as an object in it, after whatever was thought first.

What was only thought does not count: a trace before the answer is passed over, one that was cut short leaves nothing,
and of several objects or marked answers in a text the last is what it came to. Nothing is guessed from sentences: a
refusal, or a text that weighs two classes, is the text itself, which names no class.
"""

from __future__ import annotations

import ast
import json
import math
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Answers = dict[str, float]
"""By what the model said, its probability, together at most 1 unless it was stated in words; empty where a record is
written in a form, and what it says cannot be read."""

_LABELS: Final = ("answer", "final_answer", "label", "prediction", "predicted_label", "predicted", "pred", "y_pred")
_TEXTS: Final = ("generated_text", "completion", "output", "response", "text")
ANSWER_KEYS: Final = (*_LABELS, "winner", "choice", "verdict", *_TEXTS)
"""Where a record or a column may have an answer in words, the likeliest first."""

OBJECT_KEYS: Final = ("distribution", "probabilities", *ANSWER_KEYS, "rating", "class", "category", "decision")
"""Where an object may have its answer or distribution, the likeliest first."""

SHARE_KEYS: Final = ("probability", "prob", "score", "share", "confidence")
"""What a list of answers may call the probability of each."""

LIKE_A_NUMBER: Final = re.compile(r"(about |approx\S* |[~≈<>≤≥]\s*)?\d[\d.,]*\s*(%|percent)?")
"""A number in words, or written as in another country: 0,3 could be 0.3, and 1,000 could be 1000."""

TRACE: Final = re.compile(r"</(?:think|thinking|thought|reasoning|scratchpad)>|<\|channel\|>final<\|message\|>", re.I)
"""Where a trace of reasoning ends, and the answer begins."""

BEGUN: Final = re.compile(r"<(?:think|thinking|thought|reasoning|scratchpad)>", re.I)

MARKED: Final = re.compile(
    r"<answer>(.*?)</answer>|\\boxed\{([^{}]*)\}|\[\[([^\[\]]*)\]\]"
    r"|\b(?:answer|verdict|judge?ment|label|choice|rating|prediction)\b[*_\"'`]*\s*(?:\bis\b|[:=])([^\n]*)",
    re.I | re.S,
)
"""How texts mark their answer: in a tag, a box or brackets, or after a word for it at the end of a line."""


def stated(text: str) -> Answers:
    """An answer in words, or the distribution that a text holds as an object of JSON or Python."""
    said = TRACE.split(text)[-1]
    if BEGUN.search(said):
        return {text: 1.0}
    if held := object_in(said):
        with suppress(InputError):
            return _in_object(held) or {text: 1.0}
        return {text: 1.0}
    marked = [next(part for part in match.groups() if part is not None) for match in MARKED.finditer(said)]
    return {marked[-1] if marked else said: 1.0}


def _in_object(held: dict[Any, Any] | list[Any]) -> Answers:
    """What an object says; nothing where it is not clear."""
    if isinstance(held, list):
        names, shares = ([_first(entry, keys) for entry in held] for keys in (ANSWER_KEYS, SHARE_KEYS))
        clear = None not in (*names, *shares) and len(set(names)) == len(names)
        return verbalised(dict(zip(names, shares, strict=True))) if clear else {}
    inner = _first(held, OBJECT_KEYS)
    if isinstance(inner, dict):
        return verbalised(inner)
    if isinstance(inner, list) and inner and all(isinstance(answer, str) for answer in inner):
        # Several choices share what one would have.
        return summed((answer, 1 / len(inner)) for answer in inner)
    # An object such as {"answer": "A", "confidence": 0.8}: the answer is in it.
    if isinstance(inner, str) and math.isnan(number_of(inner)):
        return {inner: 1.0}
    # Beside numbers there may be a reason in words; what only looks like a number leaves nothing that can be read.
    numbers = {
        name: value
        for name, value in held.items()
        if not math.isnan(number_of(value)) or (isinstance(value, str) and LIKE_A_NUMBER.fullmatch(value.strip()))
    }
    # A rating, where nothing else could be the share of a class.
    if re.fullmatch(r"-?\d+", str(inner).strip()) and len(set(numbers) - {*SHARE_KEYS}) == 1:
        return {str(inner): 1.0}
    return verbalised(numbers)


def _first(held: Any, keys: Iterable[str]) -> Any:
    """What an object has under the first of some keys that it has; None where it has none of them."""
    return next((held[key] for key in keys if key in held), None) if isinstance(held, dict) else None


def object_in(text: str) -> dict[Any, Any] | list[Any] | None:
    """The last object, or else list, of a text, as JSON or as Python prints it; None where none is."""
    found: list[Any] = []
    at = 0
    while (begun := re.compile(r"[\[{]").search(text, at)) is not None:
        value, at = _decoded(text, begun.start())
        if isinstance(value, dict | list) and value:
            found.append(value)
    objects = [value for value in found if isinstance(value, dict) or isinstance(value[0], dict)]
    last: dict[Any, Any] | list[Any] | None = (objects or found or [None])[-1]
    return last


def _decoded(text: str, at: int) -> tuple[Any, int]:
    """The object or list that begins here, and where it ends; None, and the next place, where none does."""
    with suppress(ValueError, RecursionError):
        return json.JSONDecoder().raw_decode(text, at)
    plain = re.compile(r"\{[^{}]*\}|\[[^\[\]{}]*\]").match(text, at)
    if plain is not None:
        with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return ast.literal_eval(plain.group()), plain.end()
    return None, at + 1


def verbalised(stated: Mapping[str, Any]) -> Answers:
    """Numbers or percentages by answer; what lacks to 1, or to 100 %, is nothing said.

    Numbers without a sign are percent where one is more than 1 and all together more than 1.5: 0.9 and 0.8 are two
    probabilities that do not fit together.
    """
    shares = {str(name): number_of(value) for name, value in stated.items()}
    if any(share < 0 or share == math.inf for share in shares.values()):
        raise InputError("a stated probability is negative or endless")
    signed = [isinstance(value, str) and "%" in value for value in stated.values()]
    if any(signed) and any(0 < share < 1 and not sign for share, sign in zip(shares.values(), signed, strict=True)):
        raise InputError("beside percentages a number below 1 could be a probability or less than 1 %")
    percent = any(signed) or (max(shares.values(), default=0.0) > 1 and sum(shares.values()) > 1.5)
    return summed((name, share / (100.0 if percent else 1.0)) for name, share in shares.items())


def number_of(value: Any) -> float:
    """A number, which harnesses and models also write as text, maybe with a percent sign; NaN where it is none."""
    try:
        return float(value.strip().rstrip("%")) if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        return math.nan


def summed(pairs: Iterable[tuple[str, float]]) -> Answers:
    """Probabilities by answer; tokens that differ in white space alone stay apart until they are mapped.

    One that is no number leaves nothing: what the others would be without it is not known.
    """
    summed: Answers = {}
    for answer, share in pairs:
        summed[answer] = summed.get(answer, 0.0) + share
    return summed if all(map(math.isfinite, summed.values())) else {}
