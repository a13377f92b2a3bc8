"""The Python of docs/stand-in.md, run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[3] / "docs" / "stand-in.md"


def test_the_code_runs_and_finds_what_is_planted() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    names: dict[str, Any] = {}
    exec(blocks[0], names)
    assert names["found"].passed
    assert not names["result"].models["guesses"].test.passed
