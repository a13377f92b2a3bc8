"""VADER's snippets: a made archive of the published form, and the real one where it is at hand."""

from __future__ import annotations

import io
import os
import tarfile
from typing import TYPE_CHECKING

import pytest

from dissensus.datasets import find
from dissensus.datasets.vader import KINDS, read_snippets
from dissensus.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def archive(folder: Path, files: dict[str, str]) -> Path:
    path = folder / "hutto.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        for name, text in files.items():
            told = tarfile.TarInfo(f"hutto/{name}")
            told.size = len(text.encode())
            made.addfile(told, io.BytesIO(text.encode()))
    return path


def published() -> dict[str, str]:
    files = {}
    for begins in KINDS.values():
        files[f"{begins}_GroundTruth.txt"] = "1_1\t1.5\tGood.\r\n1_2\t-3\tBad.\r\n2_1\t0\tGood.\r\n3_1\t2\tFine.\r\n"
        files[f"{begins}_anonDataRatings.txt"] = (
            "\ufeff1_1\t1.5\t0.5\t[1, 2]\r\n1_2\t-3\t0.8\t[-4, -3, -2]\r\n2_1\t0\t0\t[0, 0]\r\n3_1\t4\t0\t[4, 4]\r\n"
        )
    return files


def test_ratings_are_joined_to_texts_by_number_and_those_of_another_mean_are_left_out(tmp_path: Path) -> None:
    votes = read_snippets(archive(tmp_path, published()))
    assert votes.items[:4].tolist() == ["tweet-1_1", "tweet-1_2", "tweet-2_1", "film-1_1"]
    assert votes.item_attributes["text"][:3].tolist() == ["Good.", "Bad.", "Good."]
    # Very negative, negative, neutral, positive, very positive.
    assert votes.counts[:3].tolist() == [[0, 0, 0, 2, 0], [2, 1, 0, 0, 0], [0, 0, 2, 0, 0]]
    assert not [item for item in votes.items.tolist() if item.endswith("3_1")]


@pytest.mark.parametrize("name", ["tweets_GroundTruth.txt", "movieReviewSnippets_anonDataRatings.txt"])
def test_another_archive_is_refused(tmp_path: Path, name: str) -> None:
    files = published()
    del files[name]
    with pytest.raises(InputError, match=f"{name} is not in it, or has not . columns; fetch the authors' archive"):
        read_snippets(archive(tmp_path, files))
    (tmp_path / "no.tar.gz").write_bytes(b"no")
    with pytest.raises(InputError, match="this is no archive of the snippets"):
        read_snippets(tmp_path / "no.tar.gz")


def test_the_published_archive() -> None:
    known = find("snippets")
    if "DISSENSUS_DATA" not in os.environ or not known.present():
        pytest.skip("the archive of the snippets is not in DISSENSUS_DATA")
    votes = known.load()
    assert (len(votes.items), len(votes)) == (known.items, known.votes)
    kinds = [str(item).partition("-")[0] for item in votes.items.tolist()]
    assert {kind: kinds.count(kind) for kind in KINDS} == {
        "tweet": 4_001,
        "film": 10_605,
        "product": 3_708,
        "editorial": 5_190,
    }
    assert (votes.panel_size.min(), votes.panel_size.max()) == (15, 99)
