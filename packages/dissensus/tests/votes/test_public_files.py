"""Raw files of public sets are read as they are, or refused with an advice that leads there, and never read wrongly."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from dissensus.errors import InputError
from dissensus.votes.reading import Options, understand
from tests.votes.meaning import advice_in
from tests.votes.public_files import NO_VOTES, VOTES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.votes.public_files import Said

ADVISED = {
    "crehate/CREHate_raw_annotations.csv": {"duplicates": "first"},
    "lewidi-2023/MD-Agreement_test.json": {"duplicates": "first"},
}
"""Files that hold a judgement twice: refused, and what the refusal offers is right."""

TOLD: dict[str, dict[str, Any]] = {
    "preferences/pandalm-testset-v1.json": {"format": "wide", "item": "idx", "annotators": ["annotator?"]}
}
"""Files of which nothing says what holds the item: refused, and read as told."""


LARGE = ("imagenet-real/raters.npz",)
"""Files that take seconds, and are read by `benchmarks/` alone."""


def said_in(path: Path, **options: Any) -> Said:
    votes = understand(path, Options(**options)).votes
    items = map(str, votes.items[votes.item].tolist())
    return Counter(zip(items, [votes.classes[k] for k in votes.label.tolist()], strict=True))


@pytest.mark.parametrize("name", [name for name in VOTES if name not in (*ADVISED, *TOLD, *LARGE)])
def test_a_public_file_is_read_without_a_word(name: str, data: Path) -> None:
    assert said_in(data / name) == VOTES[name](data / name)


@pytest.mark.parametrize("name", ADVISED)
def test_a_public_file_with_repeated_judgements_is_read_as_advised(name: str, data: Path) -> None:
    with pytest.raises(InputError) as refusal:
        understand(data / name)
    assert ADVISED[name] in advice_in(refusal.value)
    assert said_in(data / name, **ADVISED[name]) == VOTES[name](data / name)


@pytest.mark.parametrize("name", TOLD)
def test_a_public_file_is_read_as_told(name: str, data: Path) -> None:
    with pytest.raises(InputError):
        understand(data / name)
    assert said_in(data / name, **TOLD[name]) == VOTES[name](data / name)


def test_answers_of_models_are_marked_as_such(data: Path) -> None:
    votes = understand(data / "alttest/lgbteen.llm_annotations.json").votes
    assert (votes.n_model_votes, len(votes.people)) == (len(votes), 0)
    assert understand(data / "alttest/lgbteen.human_annotations.json").votes.n_model_votes == 0


@pytest.mark.parametrize("name", NO_VOTES)
def test_a_public_file_without_votes_is_refused(name: str, data: Path) -> None:
    with pytest.raises(InputError):
        understand(data / name)
