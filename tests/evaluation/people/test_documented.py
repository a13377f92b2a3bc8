"""The Python of docs/people.md, run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "people.md"
EVALUATION = PAGE.read_text(encoding="utf-8").partition("## Evaluation for people")[2]


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", EVALUATION, re.DOTALL))
def test_the_block_runs(block: str) -> None:
    names: dict[str, object] = {}
    exec(block, names)
    assert {"votes", "model", "result"} <= set(names)
