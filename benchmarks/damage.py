"""Vote files that are intact and mean something else than they look like: how many are read right, refused or noted.

    PYTHONPATH=packages/dissensus python -m benchmarks.damage [--files 5000] [--seed 0] [--show WRONG]

Each file is made from judgements that are known (tests/votes/meaning.py), and the last of these columns must be zero:
`wrong` (other votes than the file means, without a note that says so) and `crash` (anything but votes or a sentence).
Of the refused ones, `obeyed` is how many led to the truth by an advice of the refusal itself, followed at most twice;
`told` is how many of all files give wrong votes to a user who names format and columns as they are.
Every 50th file is also given to the command line (`votes inspect` and `labels`), which must end as the reader does.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from dissensus.cli import main as command_line
from tests.votes.meaning import File, Verdict, generated, judge, source, told_right

if TYPE_CHECKING:
    from collections.abc import Iterator

OUTCOMES = ("right", "refused", "noted", "WRONG", "CRASH")


def typed(arguments: list[str]) -> tuple[int, str]:
    """Exit code and all that a command prints."""
    printed = io.StringIO()
    with (
        patch.object(sys, "argv", ["dissensus", *arguments]),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        try:
            command_line()
        except SystemExit as end:
            return int(end.code or 0), printed.getvalue()
        except Exception as error:
            return 1, f"{printed.getvalue()}Traceback: {error!r}"
    return 0, printed.getvalue()


def on_the_command_line(seed: int, file: File, verdict: Verdict, folder: Path) -> Iterator[str]:
    """What the commands do otherwise than the reader: nothing, if all is well."""
    path = source(file, seed, folder)
    if not isinstance(path, Path) or file.given:
        return
    for command in (["votes", "inspect", str(path)], ["labels", str(path), "-o", str(folder / "labels.csv")]):
        code, printed = typed(command)
        expected = 2 if verdict.outcome == "refused" else 0
        if code != expected or "Traceback" in printed:
            yield f"{' '.join(command[:2])} ended with {code}, not {expected}: {printed[-300:]}"


def kinds(file: File) -> list[str]:
    return [f"layout: {file.layout}", *(file.twists or ("plain",))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", default="WRONG,CRASH", help="outcomes to print in full, separated by commas")
    options = parser.parse_args()
    table: dict[str, Counter[str]] = defaultdict(Counter)
    seconds: defaultdict[str, float] = defaultdict(float)
    typed_wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed in range(options.seed, options.seed + options.files):
            start = time.perf_counter()
            file, verdict = judge(seed, folder)
            taken = time.perf_counter() - start
            told = told_right(file, source(generated(seed), seed, folder))
            for kind in ("all", *kinds(file)):
                table[kind][verdict.outcome] += 1
                table[kind]["obeyed"] += verdict.advice == "right"
                table[kind]["told"] += bool(told)
                seconds[kind] += taken
            about = f"seed {seed}, {file.layout} with {' and '.join(file.twists) or 'no twist'}"
            if verdict.outcome in options.show.split(","):
                print(f"{about}: {verdict.outcome}: {verdict.what}\n")
            if verdict.advice.startswith("CRASH"):
                table["all"]["CRASH"] += 1
                print(f"{about}: {verdict.advice}\n")
            if told and "told" in options.show:
                print(f"{about}: told what it is: {told}\n")
            if verdict.advice in ("no way", "none") and "advice" in options.show:
                print(f"{about}: the advice is {verdict.advice}: {verdict.what}\n")
            if seed % 50 == 0:
                for what in on_the_command_line(seed, generated(seed), verdict, folder):
                    typed_wrong += 1
                    print(f"{about}: {what}\n")
    columns = (*OUTCOMES, "obeyed", "told")
    print(f"{'kind':24}{'files':>7}" + "".join(f"{column:>9}" for column in columns) + f"{'seconds':>9}")
    for kind in sorted(table, key=lambda kind: (kind != "all", not kind.startswith("layout"), kind)):
        row = table[kind]
        files = sum(row[outcome] for outcome in OUTCOMES)
        print(f"{kind:24}{files:>7}" + "".join(f"{row[column]:>9}" for column in columns) + f"{seconds[kind]:>9.1f}")
    print(f"command line: {typed_wrong} of {2 * len(range(0, options.files, 50))} commands ended otherwise")
    return int(table["all"]["WRONG"] + table["all"]["CRASH"] + typed_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
