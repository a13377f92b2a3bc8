"""The cases of the net, their stored values, and the comparison of what the tool says today with them."""

from __future__ import annotations

import json
import math
import os
import re
import time
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

HERE: Final = Path(__file__).parent
CASES: Final = HERE / "cases.toml"
VALUES: Final = HERE / "values.json"
SECONDS: Final = HERE / "seconds.json"
CHANGES: Final = HERE / "changes.md"
GONE: Final = HERE / "gone.md"

MOST: Final = 150
"""Maximum number of quantities per case."""

FLOOR: Final = 1e-12
"""Absolute tolerance of point values, for values that are zero up to rounding."""

FLAGS: Final = frozenset({"data", "trained", "simulated", "timed"})

DRAWN_ANEW: Final = "drawn anew"
"""The quantity of an entry in changes.md that allows new draws for all intervals of a case."""

ABSENT: Final = "-"
"""The old value of a new quantity, and the new value of a removed one, in changes.md."""

Numbers = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A call whose numbers are stored.

    Attributes:
        room: the table of cases.toml that holds it.
        name: unique name.
        call: a command line of `dissensus`, or a call of a function of the adapter.
        keep: patterns of the quantities to keep; empty for all.
        drop: patterns of the quantities to leave out.
        words: keys whose words count as quantities, such as `verdict`.
        flags: `data`, `trained`, `simulated`, `timed`.
    """

    room: str
    name: str
    call: str
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if unknown := self.flags - FLAGS:
            raise ValueError(f"cases.toml: {self.name}: unknown flags {sorted(unknown)}")

    @property
    def tolerance(self) -> float:
        """Relative tolerance of point values."""
        return 1e-5 if "trained" in self.flags else 1e-9

    @property
    def floor(self) -> float:
        """Absolute tolerance: networks have losses of order 1 in float32, and sharpness is a difference of two."""
        return 1e-7 if "trained" in self.flags else FLOOR

    @property
    def resamples(self) -> int:
        """Number of bootstrap resamples that the call names, else the tool's 1000."""
        found = re.search(r"resamples[= ]+(\d+)", self.call)
        return int(found[1]) if found else 1000

    def kept(self, numbers: Numbers) -> Numbers:
        """Return the quantities that the case keeps."""
        return {
            name: value
            for name, value in numbers.items()
            if (not self.keep or any(fnmatchcase(name, pattern) for pattern in self.keep))
            and not any(fnmatchcase(name, pattern) for pattern in self.drop)
        }


@dataclass(frozen=True, kw_only=True)
class Change:
    """A row of changes.md."""

    case: str
    quantity: str
    old: str
    new: str
    reason: str
    check: str


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A quantity that is not what it was."""

    case: str
    quantity: str
    old: float | None
    new: float | None
    why: str


@dataclass(frozen=True)
class Ran:
    """The numbers of a case, the CPU seconds it took, and its error if it failed."""

    case: Case
    numbers: Numbers
    seconds: float
    error: str = ""


def read_cases(path: Path = CASES) -> list[Case]:
    """Return the cases in the order of the file; an entry with `each` is a case for each of its members."""
    cases = []
    for room, entries in tomllib.loads(path.read_text(encoding="utf-8")).items():
        for entry in entries:
            given = {key: entry[key] for key in ("name", "call")}
            lists: dict[str, Any] = {key: tuple(entry.get(key, ())) for key in ("keep", "drop", "words")}
            flags = frozenset(entry.get("flags", ()))
            if unknown := set(entry) - {*given, *lists, "flags", "each"}:
                raise ValueError(f"cases.toml: {entry['name']}: unknown keys {sorted(unknown)}")
            for each in entry.get("each", [""]):
                filled = {key: text.replace("{each}", each) for key, text in given.items()}
                cases.append(Case(room=room, **filled, **lists, flags=flags))
    names = [case.name for case in cases]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"cases.toml: names used twice: {sorted(twice)}")
    return cases


def runnable(cases: Iterable[Case], *, data: bool | None = None) -> list[Case]:
    """Return the cases that this machine can run: those with `data` need the folder of real data."""
    here = bool(os.environ.get("DISSENSUS_DATA")) if data is None else data
    return [case for case in cases if here or "data" not in case.flags]


def run_case(case: Case, adapter: Any) -> Ran:
    """Run a case and keep its numbers; an error is kept as text, so that the other cases still run."""
    start = time.process_time()
    try:
        numbers = case.kept(adapter.numbers(case))
    except Exception as error:
        return Ran(case, {}, time.process_time() - start, f"{type(error).__name__}: {error}")
    seconds = time.process_time() - start
    if len(numbers) > MOST:
        return Ran(case, {}, seconds, f"{len(numbers)} quantities, at most {MOST}: narrow keep or drop")
    return Ran(case, numbers, seconds, "" if numbers else "no quantities: check keep and drop")


# --- files -----------------------------------------------------------------------------------------------------------


def read_values(path: Path = VALUES) -> dict[str, Numbers]:
    """Return the stored numbers of each case."""
    values: dict[str, Numbers] = defaultdict(dict)
    for case, quantity, value in json.loads(path.read_text(encoding="utf-8")):
        values[case][quantity] = math.nan if value is None else value
    return dict(values)


def write_values(values: Mapping[str, Numbers], path: Path = VALUES) -> None:
    """Write the flat list, a line per quantity; null stands for NaN."""
    rows = [
        [case, name, None if math.isnan(value) else value]
        for case, numbers in values.items()
        for name, value in sorted(numbers.items())
    ]
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def _rows(path: Path, columns: int) -> list[list[str]]:
    """Return the cells of the table at the end of a Markdown file, without its head."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    for row in cells:
        if len(row) != columns:
            raise ValueError(f"{path.name}: expected {columns} cells, found {len(row)}: {row}")
    return cells[2:]


def read_changes(cases: Iterable[str], path: Path = CHANGES) -> dict[tuple[str, str], Change]:
    """Return the rows of changes.md; a row without a reason, a check or a known case is an error."""
    known = set(cases)
    changes: dict[tuple[str, str], Change] = {}
    for row in _rows(path, 6):
        change = Change(**dict(zip(("case", "quantity", "old", "new", "reason", "check"), row, strict=True)))
        where = f"{path.name}: {change.case}, {change.quantity}"
        if change.case not in known:
            raise ValueError(f"{where}: there is no such case")
        if not change.reason or not change.check:
            raise ValueError(f"{where}: a reason and an independent check are needed")
        if (change.case, change.quantity) in changes:
            raise ValueError(f"{where}: entered twice")
        changes[change.case, change.quantity] = change
    return changes


def read_gone(cases: Iterable[str], path: Path = GONE) -> dict[str, str]:
    """Return, for each case that is gone, the sentence that removes it."""
    known = set(cases)
    gone: dict[str, str] = {}
    for case, sentence in _rows(path, 2):
        if case not in known:
            raise ValueError(f"{path.name}: {case}: there is no such case")
        if not sentence:
            raise ValueError(f"{path.name}: {case}: the sentence of design.md that removes it is needed")
        gone[case] = sentence
    return gone


# --- the comparison --------------------------------------------------------------------------------------------------


def equal(old: float, new: float, case: Case) -> bool:
    """Return whether two point values agree to the tolerance of the case; NaN agrees with NaN alone."""
    if math.isnan(old) or math.isnan(new):
        return math.isnan(old) and math.isnan(new)
    return math.isclose(old, new, rel_tol=case.tolerance, abs_tol=case.floor)


def end_error(low: float, high: float, resamples: int) -> float:
    """Return the Monte Carlo standard error of the difference of two independent draws of a percentile end.

    An end of a 95 % interval is the quantile q = 0.025 (or 0.975) of R draws. Its standard error is
    sqrt(q (1 - q) / R) / f(end). For a normal bootstrap distribution with standard deviation s, f(end) = 0.0584 / s and
    the half width is h = 1.96 s, which makes 1.36 h / sqrt(R). The old end has the same error: a factor of sqrt(2).
    """
    return math.sqrt(2) * 1.36 * (high - low) / 2 / math.sqrt(max(resamples, 1))


def _interval(numbers: Numbers, quantity: str) -> tuple[float, float] | None:
    """Return both ends of the interval that the quantity is an end of."""
    head, _, last = quantity.rpartition("/")
    if last not in ("low", "high"):
        return None
    ends = [numbers.get(f"{head}/{end}" if head else end) for end in ("low", "high")]
    return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])


def compare(
    case: Case, old: Numbers, new: Numbers, changes: Mapping[tuple[str, str], Change] | None = None
) -> list[Failure]:
    """Return the quantities that differ and are not entered in changes.md with their old and new value."""
    changes = changes or {}
    failures = []
    anew = (case.name, DRAWN_ANEW) in changes
    for quantity in dict.fromkeys((*old, *new)):
        before, now = old.get(quantity), new.get(quantity)
        change = changes.get((case.name, quantity))
        why = ""
        if change is not None:
            why = _entered(change, before, now, case)
        elif before is None:
            why = "new quantity"
        elif now is None:
            why = "missing quantity"
        elif not equal(before, now, case):
            interval = _interval(old, quantity) if anew else None
            error = 0.0 if interval is None else end_error(*interval, case.resamples)
            if interval is None:
                why = f"differs by more than {case.tolerance:g}"
            elif not abs(now - before) <= 3 * error:
                why = f"differs by more than 3 Monte Carlo standard errors of {error:.3g}"
        if why:
            failures.append(Failure(case=case.name, quantity=quantity, old=before, new=now, why=why))
    entered = [quantity for name, quantity in changes if name == case.name and quantity != DRAWN_ANEW]
    failures += [
        Failure(case=case.name, quantity=quantity, old=None, new=None, why="changes.md names no quantity of this case")
        for quantity in entered
        if quantity not in old and quantity not in new
    ]
    return failures


def _entered(change: Change, old: float | None, new: float | None, case: Case) -> str:
    """Return what is wrong with an entry of changes.md, or nothing if both of its values are right."""
    for what, cell, value in (("old", change.old, old), ("new", change.new, new)):
        if (cell == ABSENT) != (value is None):
            return f"changes.md: the {what} value is {cell}, found {ABSENT if value is None else repr(value)}"
        if value is not None and not equal(float(cell), value, case):
            return f"changes.md: the {what} value is {cell}, found {value!r}"
    return ""


def compare_all(
    ran: Sequence[Ran],
    values: Mapping[str, Numbers],
    changes: Mapping[tuple[str, str], Change] | None = None,
) -> list[Failure]:
    """Return the failures of all cases that ran."""
    failures: list[Failure] = []
    for each in ran:
        name = each.case.name
        if each.error:
            failures.append(Failure(case=name, quantity="", old=None, new=None, why=each.error))
        elif name not in values:
            failures.append(Failure(case=name, quantity="", old=None, new=None, why="values.json has no such case"))
        else:
            failures += compare(each.case, values[name], each.numbers, changes)
    return failures


def table(failures: Sequence[Failure]) -> str:
    """Return the failures as lines: case, quantity, old value, new value, and why."""

    def cell(value: float | None) -> str:
        return ABSENT if value is None else f"{value:.12g}"

    lines = [(each.case, each.quantity, cell(each.old), cell(each.new), each.why) for each in failures]
    head = ("case", "quantity", "old", "new", "why")
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in (head, *lines)
    )
