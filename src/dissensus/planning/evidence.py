"""What to train with, from the benchmark's own words: `bench.json` here is what `dissensus bench` wrote."""

from __future__ import annotations

import json
from importlib.resources import files

from dissensus.bench.protocol import read_protocol


def delivery_advice(votes_per_item: float) -> str:
    """The benchmark's answer for so many votes an item; it calls the evidence thin where it is.

    Args:
        votes_per_item: in the mean.
    """
    found = json.loads(files("dissensus.planning").joinpath("bench.json").read_text(encoding="utf-8"))
    kind = "few" if votes_per_item < read_protocol().few else "many"
    title = found["comparisons"][kind]["title"]
    return next(str(answer) for answer in found["answers"] if answer.startswith(f"With {title}"))
