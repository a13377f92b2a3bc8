"""What to train with, in the benchmark's own words: `answers.json` has them from `docs/results/bench.json`."""

from __future__ import annotations

import json
from importlib.resources import files

from dissensus.bench.protocol import read_protocol


def delivery_advice(votes_per_item: float) -> str:
    """The benchmark's answer for so many votes an item; it calls the evidence thin where it is.

    Args:
        votes_per_item: in the mean.
    """
    found = json.loads(files("dissensus.planning").joinpath("answers.json").read_text(encoding="utf-8"))
    return str(found["few" if votes_per_item < read_protocol().comparison.few else "many"])
