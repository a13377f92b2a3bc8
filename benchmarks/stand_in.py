"""The alternative annotator test: ours, a plain loop over annotators and items, and the ratio, in one run.

    python -m benchmarks.stand_in DATA

DATA is the folder of real data; the set is summeval (three annotators, 6,400 items, ratings). Both begin with the votes
in memory, the loop as dictionaries and ours as `Votes`, and are the best of several. Reading the files comes beside it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.evaluation.stand_in.alternative_annotator import alternative_annotator_test
from dissensus.evaluation.stand_in.answers import read_model_answers
from dissensus.votes.official.judged_json import read_alttest
from tests.evaluation.stand_in.plain_loop import minus_rmse, plain_loop

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = "gpt-4o"


def best(work: Callable[[], Any], *, repeats: int) -> tuple[float, Any]:
    """The shortest of several times, in seconds, and what came out."""
    times, out = [], None
    for _ in range(repeats):
        begin = time.perf_counter()
        out = work()
        times.append(time.perf_counter() - begin)
    return min(times), out


def main(data: Path) -> None:
    people, models = (data / "alttest" / f"summeval.{kind}_annotations.json" for kind in ("human", "llm"))
    begin = time.perf_counter()
    votes = read_alttest(people)
    answers = read_model_answers(models, votes, name="")[MODEL]
    reading = time.perf_counter() - begin
    held, said = json.loads(people.read_text()), json.loads(models.read_text())[MODEL]
    ours, found = best(lambda: alternative_annotator_test(votes, answers, score="rmse", epsilon=0.2), repeats=50)
    theirs, expected = best(lambda: plain_loop(held, said, minus_rmse, epsilon=0.2), repeats=3)
    assert found.winning_rate == expected.winning_rate
    assert abs(found.advantage_probability - expected.advantage_probability) < 1e-12
    print(f"summeval, {MODEL}: {len(votes):,} votes, winning rate {found.winning_rate:.2f}, ", end="")
    print(f"advantage probability {found.advantage_probability:.2f} by both")
    print(f"ours {ours * 1e3:.2f} ms, plain loop {theirs * 1e3:.0f} ms, ratio {theirs / ours:.0f}x")
    print(f"reading both files and all six models: {reading * 1e3:.0f} ms")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
