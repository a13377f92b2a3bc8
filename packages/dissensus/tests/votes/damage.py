"""Damaged vote files, an independent reading of what each says, and the verdict on ours.

`python -m tests.votes.damage 2000` judges 2,000 files, each in a process that may die without taking the count along.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from dissensus.errors import InputError
from dissensus.votes.reading import Options, understand

if TYPE_CHECKING:
    from collections.abc import Callable

    Random = np.random.Generator
    Said = Counter[tuple[str, str | None, str]]
    """How often each (item, annotator, label) is said."""


class Shape(NamedTuple):
    """A kind of file: what its name ends in, what its rows are, and what the user says about it."""

    ending: str
    rows: str
    told: str | None = None


SHAPES = (
    *(Shape(ending, rows) for rows in ("long", "rating", "wide", "counts", "sets") for ending in ("csv", "tsv")),
    *(Shape(ending, rows) for rows in ("long", "rating", "sets") for ending in ("jsonl", "parquet")),
    *(Shape(ending, "long") for ending in ("csv.gz", "csv.zst", "jsonl.gz")),
    *(Shape(ending, "long", "long") for ending in ("txt", "json")),
    *(Shape("csv", rows, rows) for rows in ("long", "wide", "counts")),
    Shape("npy", "counts"),
    *(Shape(ending, "timed") for ending in ("csv", "jsonl", "parquet")),
    Shape("csv", "goemotions", "goemotions"),
    Shape("json", "varierr", "varierr"),
)
EMOTIONS = ("admiration", "anger", "neutral")
NLI = ("entailment", "neutral", "contradiction")

CELLS = (
    "",
    "NA",
    "nan",
    "+1",
    "1 ",
    " 1",
    "00",
    "-0",
    "1.0",
    "-1",
    "x",
    "cat ",
    "Cat",
    "cat|dog",
    "0.5",
    "1e3",
    "\u00a01",
)
"""What damage may leave in a cell."""


def table(rows: str, random: Random) -> list[list[str]]:
    """A whole table of text, its header first."""
    n = int(random.integers(6, 15))
    classes = ["bird", "cat", "dog"]
    if rows == "counts":
        split = random.multinomial(7, [0.2, 0.5, 0.3], n)
        return [["item", *classes], *([f"i{k}", *map(str, each)] for k, each in enumerate(split.tolist()))]
    if rows == "wide":
        return [["item", "ann1", "ann2", "ann3"], *([f"i{k}", *random.choice(classes, 3).tolist()] for k in range(n))]
    if rows == "timed":
        said = [
            [f"i{k}", f"w{a}", classes[random.integers(3)], f"2024-05-{k + 1:02d}T1{a}:00:00"]
            for k in range(n)
            for a in range(3)
        ]
        return [["item", "annotator", "label", "timestamp"], *said]
    if rows == "goemotions":
        flags = [random.integers(0, 2, 3).astype(str).tolist() for _ in range(3 * n)]
        said = [["so", f"i{k // 3}", f"{k % 3}", "False", *each] for k, each in enumerate(flags)]
        return [["text", "id", "rater_id", "example_very_unclear", *EMOTIONS], *said]
    if rows == "varierr":
        return [
            ["item", "annotator", "label"],
            *([f"i{k}", str(a), NLI[random.integers(3)]] for k in range(n) for a in (0, 1)),
        ]
    if rows == "rating":
        said = [[f"i{k}", f"w{a}", str(random.integers(1, 6))] for k in range(n) for a in range(3)]
        return [["item", "worker", "rating"], *said]
    if rows == "sets":
        both = [["cat"], ["dog"], ["cat", "dog"], ["bird"]]
        said = [[f"i{k}", f"w{a}", "|".join(both[random.integers(4)])] for k in range(n) for a in range(3)]
        return [
            ["item", "annotator", "label"],
            *said,
            ["last", "w0", "cat"],
            ["last", "w1", "dog"],
            ["last", "w2", "bird"],
        ]
    said = [[f"i{k}", f"w{a}", classes[random.integers(3)]] for k in range(n) for a in range(3)]
    return [["item", "annotator", "label"], *said]


def hurt_table(cells: list[list[str]], random: Random) -> list[list[str]]:
    """The table with one wound that leaves it a table of text."""
    cells = [list(row) for row in cells]
    row, other = (int(random.integers(1, len(cells))) for _ in range(2))
    column = int(random.integers(len(cells[0])))
    wound = random.choice(
        ["cell", "cell", "cell", "short", "long", "repeat", "header", "drop", "swap", "blank", "rename"]
    )
    if wound == "cell":
        cells[row][column] = str(random.choice(CELLS))
    elif wound == "short":
        cells[row] = cells[row][:column] or cells[row][:1]
    elif wound == "long":
        cells[row].append("cat")
    elif wound == "repeat":
        cells.insert(other, list(cells[row]))
    elif wound == "header":
        cells.insert(row, list(cells[0]))
    elif wound == "drop":
        cells = [each[:column] + each[column + 1 :] for each in cells]
    elif wound == "swap":
        cells[row][column], cells[other][column] = cells[other][column], cells[row][column]
    elif wound == "blank":
        cells.insert(row, [""] * len(cells[0]))
    else:
        cells[0][column] = str(random.choice([*cells[0], "zz", ""]))
    return cells


def written(cells: list[list[str]], shape: Shape) -> bytes:
    """The table as a file, by writers that are not ours."""
    ending = shape.ending.partition(".")[0]
    if shape.rows == "varierr":
        return _varierr(cells)
    if ending == "npy":
        file = io.BytesIO()
        np.save(file, np.array([[int(cell) for cell in row[1:]] for row in cells[1:]]))
        return file.getvalue()
    if ending in ("csv", "tsv", "txt"):
        text = io.StringIO(newline="")
        csv.writer(text, delimiter="\t" if ending == "tsv" else ",", lineterminator="\n").writerows(cells)
        content = text.getvalue().encode()
    else:
        objects: list[dict[str, Any]] = [dict(zip(cells[0], row, strict=False)) for row in cells[1:]]
        if shape.rows == "sets":
            for each in objects:
                each["label"] = str(each.get("label", "")).split("|")
        if ending == "parquet":
            file = io.BytesIO()
            pq.write_table(pa.Table.from_pylist(objects), file)
            return file.getvalue()
        lines = [json.dumps(each) for each in objects]
        content = ("\n".join(lines) + "\n" if ending == "jsonl" else f"[{','.join(lines)}]").encode()
    if shape.ending.endswith("gz"):
        return gzip.compress(content)
    return zstandard.compress(content) if shape.ending.endswith("zst") else content


def _varierr(cells: list[list[str]]) -> bytes:
    """Rows of item, annotator and label in the layout of VariErr's own file."""
    lines = []
    for item in dict.fromkeys(row[0] for row in cells[1:]):
        given = {name: [row[1] for row in cells[1:] if row[0] == item and row[2] == name] for name in NLI}
        about = {"id": item, "context": "c", "statement": "s", "idk": [2, 3]}
        said = {name: [{"annotator": int(who), "self_corrected": False} for who in given[name]] for name in NLI}
        stated = [name for name in NLI if given[name]]
        lines.append(json.dumps({**about, **said, "label_set_round_1": stated, "label_set_round_2": stated}))
    return ("\n".join(lines) + "\n").encode()


def hurt_bytes(content: bytes, random: Random) -> bytes:
    """The file with one wound of its bytes."""
    at = int(random.integers(len(content)))
    wound = random.choice(["flip", "cut", "behead", "insert", "utf-16", "mark", "crlf", "more", "invalid"])
    if wound == "flip":
        return content[:at] + bytes([content[at] ^ int(random.integers(1, 256))]) + content[at + 1 :]
    if wound == "utf-16":
        return content.decode("latin-1").encode("utf-16-le")
    return {
        "cut": content[:at],
        "behead": content[at:],
        "insert": content[:at] + random.bytes(3) + content[at:],
        "mark": b"\xef\xbb\xbf" + content,
        "crlf": content.replace(b"\n", b"\r\n"),
        "more": content + random.bytes(5),
        "invalid": content[:at] + b"\xff" + content[at:],
    }[str(wound)]


def independent(content: bytes, shape: Shape) -> Said | None:
    """What the file says, read strictly by other tools; None where it says nothing certain."""
    try:
        if shape.rows == "varierr":
            return _said_in_varierr(content)
        found = _cells(content, shape)
    except Exception:
        return None
    if found is None or len(found) < 2 or len(set(found[0])) < len(found[0]):
        return None
    header, rows = found[0], [row for row in found[1:] if any(cell != "" for cell in row)]
    if any(len(row) != len(header) for row in rows):
        return None
    try:
        if shape.rows == "goemotions":
            return _flags(header, rows)
        return _grid(header, rows, shape) if shape.rows in ("wide", "counts") else _long(header, rows, shape)
    except ValueError:
        return None


def _said_in_varierr(content: bytes) -> Said | None:
    said: Said = Counter()
    for line in content.decode().split("\n"):
        if line.strip():
            entry = json.loads(line)
            labels = {(entry["id"], str(each["annotator"]), name) for name in NLI for each in entry[name]}
            if {name for *_, name in labels} != set(entry["label_set_round_1"]) or any(
                entry["id"] == one[0] for one in said
            ):
                return None
            said.update(labels)
    return said


def _flags(header: list[str], rows: list[list[Any]]) -> Said | None:
    """One row per judgement; every column that does not describe the comment is an emotion."""
    item, who = header.index("id"), header.index("rater_id")
    emotions = [k for k, name in enumerate(header) if name not in ("text", "id", "rater_id", "example_very_unclear")]
    said: Said = Counter()
    judged: set[tuple[str, str]] = set()
    for row in rows:
        pair = str(row[item]), str(row[who])
        if pair in judged or "" in pair or any(float(row[k]) not in (0, 1) for k in emotions):
            return None
        judged.add(pair)
        for name in [header[k] for k in emotions if float(row[k]) == 1] or ["none"]:
            said[(*pair, name)] += 1
    return said


def _cells(content: bytes, shape: Shape) -> list[list[Any]] | None:
    if shape.ending.endswith("gz"):
        content = gzip.decompress(content)
    elif shape.ending.endswith("zst"):
        content = zstandard.decompress(content)
    ending = shape.ending.partition(".")[0]
    if ending == "npy":
        file = io.BytesIO(content)
        array = np.load(file)
        if file.read() or array.ndim != 2 or array.dtype.kind not in "iuf":
            return None
        return [["item", *map(str, range(array.shape[1]))], *([k, *row] for k, row in enumerate(array.tolist()))]
    if ending == "parquet":
        objects = pq.read_table(io.BytesIO(content)).to_pylist()
    elif ending == "json":
        objects = json.loads(content)
    elif ending == "jsonl":
        objects = [json.loads(line) for line in content.decode("utf-8-sig").split("\n") if line.strip()]
    else:
        text = content.decode("utf-8-sig")
        if "\0" in text:
            return None
        return list(csv.reader(io.StringIO(text, newline=""), delimiter="\t" if ending == "tsv" else ",", strict=True))
    if shape.rows == "timed" and any("timestamp" in each for each in objects):
        # An object without the key says that the time is not known.
        objects = [{**each, "timestamp": each.get("timestamp", "")} for each in objects]
    header = list(objects[0])
    if any(not isinstance(each, dict) or set(each) != set(header) for each in objects):
        return None
    return [header, *([each[name] for name in header] for each in objects)]


def _number(cell: Any) -> str:
    """Equal numbers are one name."""
    text = str(cell)
    try:
        value = float(text)
    except ValueError:
        return text
    plain = text.lstrip("+-").replace(".", "", 1).isdecimal()
    return text if not plain else str(int(value)) if value == int(value) else str(value)


def _grid(header: list[str], rows: list[list[Any]], shape: Shape) -> Said | None:
    if header[0] != "item" or len({str(row[0]) for row in rows}) < len(rows) or any(str(row[0]) == "" for row in rows):
        return None
    said: Said = Counter()
    for row in rows:
        for name, cell in zip(header[1:], row[1:], strict=True):
            if shape.rows == "counts":
                number = float(cell)
                if not number >= 0 or number != int(number):
                    return None
                said[str(row[0]), None, name] += int(number)
            elif cell not in ("", "NA", "nan"):
                said[str(row[0]), name, _number(cell)] += 1
    return +said


def _long(header: list[str], rows: list[list[Any]], shape: Shape) -> Said | None:
    names = ("item", "worker", "rating") if shape.rows == "rating" else ("item", "annotator", "label")
    if not set(names) <= set(header):
        return None
    item, annotator, label = (header.index(name) for name in names)
    said: Said = Counter()
    judged: set[tuple[str, str]] = set()
    for row in rows:
        pair = str(row[item]), str(row[annotator])
        labels = row[label] if isinstance(row[label], list) else [row[label]]
        if shape.rows == "sets" and not isinstance(row[label], list):
            labels = [each.strip() for each in str(row[label]).split("|")]
        odd = any(each is None or str(each) in ("", "NA", "nan") for each in (*pair, *labels))
        if odd or pair in judged or len(set(labels)) < len(labels) or any(isinstance(each, dict) for each in labels):
            return None
        if shape.rows == "rating" and not all(
            _number(each).lstrip("-").replace(".", "", 1).isdecimal() for each in labels
        ):
            return None
        judged.add(pair)
        if shape.rows == "timed":
            moment = _moment(row[header.index("timestamp")]) if "timestamp" in header else ""
            labels = [f"{_number(labels[0])} at {moment}" if moment else labels[0]]
        for each in labels:
            said[(*pair, _number(each))] += 1
    return said


def _moment(cell: Any) -> str:
    """A date and time as Python reads it, '' for an empty cell."""
    return "" if cell in ("", None) else datetime.fromisoformat(str(cell)).isoformat()


def ours(path: Path, shape: Shape) -> tuple[Said, tuple[str, ...], str] | str:
    """What we read, with the notes and the format; or the sentence that refuses it."""
    try:
        reading = understand(path, Options(format=shape.told))
    except InputError as error:
        return error.sentence
    votes = reading.votes
    who: list[str | None] = [None] * len(votes)
    if votes.annotators is not None:
        who = [str(name) for name in votes.annotators.names[votes.annotators.code].tolist()]
    items = [str(name) for name in votes.items[votes.item].tolist()]
    labels = [_number(votes.classes[k]) for k in votes.label]
    if votes.time is not None:
        when = ["" if np.isnat(each) else str(each.astype("datetime64[s]")) for each in votes.time]
        labels = [f"{label} at {each}" if each else label for label, each in zip(labels, when, strict=True)]
    return Counter(zip(items, who, labels, strict=True)), reading.notes, reading.format


def judge(seed: int, folder: Path) -> tuple[str, str]:
    """One damaged file: refused, right, told, or WRONG; and what there is to say about it."""
    random = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    by_cell = shape.ending != "npy" and shape.rows != "varierr" and random.random() < 0.6
    cells = table(shape.rows, random)
    try:
        content = written(hurt_table(cells, random) if by_cell else cells, shape)
    except (pa.ArrowInvalid, ValueError):
        return "refused", "the writer refuses it"
    if not by_cell:
        content = hurt_bytes(content, random)
    path = folder / f"v.{shape.ending}"
    path.write_bytes(content)
    found = ours(path, shape)
    if isinstance(found, str):
        whole = found.startswith(str(path)) and "\n" not in found
        return ("refused", found) if whole else ("WRONG", f"no sentence: {found!r}")
    expected = independent(content, shape)
    said, notes, name = found
    if expected == said:
        return "right", ""
    # Other tools cannot read past the damage, but it took nothing away: a byte of the header, or of a length.
    if expected is None and not by_cell and said == independent(written(cells, shape), shape):
        return "right", ""
    # "read as" is printed for every file: another format than the file's own is told, but not that a cell did it.
    verdict = "told" if notes else "WRONG"
    differs = "nothing certain" if expected is None else f"{expected - said}, not {said - expected}"
    return verdict, f"{shape} read as {name} with {notes}, and says {differs}: {content[:400]!r}"


def run(seeds: range, report: Callable[[int, str, str], None]) -> None:
    """Judge the files of some seeds."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            report(seed, *judge(seed, Path(folder)))


def main(number: int, start: int = 0) -> int:
    """Judge many files in child processes, and print how many ended how."""
    totals: Counter[str] = Counter()
    seed = start
    while seed < start + number:
        stop = min(seed + 250, start + number)
        command = [sys.executable, "-m", "tests.votes.damage", "--child", str(seed), str(stop)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            output, screen, died = done.stdout, done.stderr, done.returncode != 0
        except subprocess.TimeoutExpired as slow:
            output, screen, died = str(slow.stdout or b"", "utf-8"), "", True
        lines = [json.loads(line) for line in output.splitlines()]
        for number_, verdict, what in lines:
            totals[verdict] += 1
            if verdict == "WRONG" or (verdict == "told" and "--told" in sys.argv):
                print(f"seed {number_}: {what}\n")
        if screen.strip():
            totals["on the screen"] += 1
            print(f"on the screen after seed {seed}: {screen[:2000]}")
        if died:
            totals["died"] += 1
            print(f"seed {seed + len(lines)}: the process died")
            seed += len(lines) + 1
        else:
            seed = stop
    print(dict(totals))
    return totals["WRONG"] + totals["died"] + totals["on the screen"]


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        run(range(int(sys.argv[2]), int(sys.argv[3])), lambda *each: print(json.dumps(each), flush=True))
    else:
        sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0) > 0)
