"""The line that installs what is missing takes it from where dissensus came."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from dissensus.parts import install_line

if TYPE_CHECKING:
    from pathlib import Path

REQUIRES = [
    "numpy>=2.2",
    'dissensus-train==0.1; extra == "train"',
    'dissensus-train[text]==0.1; extra == "text"',
    'fastexcel>=0.12; extra == "files"',
]


class Installed:
    """A distribution that came from somewhere."""

    requires = REQUIRES

    def __init__(self, url: str | None) -> None:
        self.url = url

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self.url is None else json.dumps({"url": self.url})


@pytest.mark.parametrize(
    ("came", "extra", "line"),
    [
        (None, "text", 'pip install "dissensus[text]"'),
        ("https://example.org/dissensus.whl", "text", 'pip install "dissensus[text]"'),
        ("packages/gone", "text", 'pip install "dissensus[text]"'),
        ("packages/dissensus", "train", "pip install PLACE/packages/dissensus-train"),
        ("packages/dissensus", "text", "pip install 'PLACE/packages/dissensus-train[text]'"),
        ("packages/dissensus", "files", "pip install 'fastexcel>=0.12'"),
        ("dist/dissensus-0.1-py3-none-any.whl", "text", 'pip install --find-links PLACE/dist "dissensus[text]"'),
    ],
)
def test_it_comes_from_a_clone_from_wheels_or_from_an_index(
    came: str | None, extra: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "packages" / "dissensus").mkdir(parents=True)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "dissensus-0.1-py3-none-any.whl").touch()
    url = came if came is None or came.startswith("https") else (tmp_path / came).as_uri()
    monkeypatch.setattr("dissensus.parts.metadata.distribution", lambda _: Installed(url))
    assert install_line.__wrapped__(extra) == line.replace("PLACE", str(tmp_path))
