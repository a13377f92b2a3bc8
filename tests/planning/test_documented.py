"""The Python of docs/plan.md, run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "plan.md"


def test_the_code_runs_and_says_what_the_page_says() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    names: dict[str, Any] = {}
    exec(blocks[0], names)
    best = names["found"].best
    assert best.cost <= 2000
    assert best.hours == best.items * best.k * 12 / 3600
    assert names["further"].adaptive < names["further"].uniform
    assert abs(names["cheapest"].difference["soft_nll"] - 0.05) < 1e-9
