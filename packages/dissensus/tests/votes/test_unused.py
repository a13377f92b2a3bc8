"""Tests that reading asks about unused columns that could change the votes, in Python and on the command line."""

from __future__ import annotations

import warnings
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import dissensus as dis
from dissensus.errors import InputError, VotesWarning
from dissensus.votes.counting import count_votes
from tests.cli.test_commands import dissensus
from tests.votes.test_advice import advised

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.table import Votes

    Rows = list[tuple[Any, ...]]

PANEL = [(f"i{i}", f"w{a}", "xyz"[(i * i + a) % 3]) for i in range(10) for a in range(3)]
"""Rows of item, annotator and label: ten items, each judged differently by three people."""
ITEM, WHO, LABEL = (list(column) for column in zip(*PANEL, strict=True))
PLACES = range(len(PANEL))
TOPIC = ["sport" if i in ("i1", "i2", "i5") else "news" for i in ITEM]
GRADES = [str(k * 7 % 5 + 1) for k in PLACES]
PARTS = list(product("pqrs", ("fluent", "true"), range(3)))
"""Rows of item, question and number of the judgement."""
SAID = [("yes" if part == "true" else "no") if k < 2 else "yes" for _, part, k in PARTS]


def table(**columns: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(columns)


def held(votes: Votes) -> Counter[tuple[str, str]]:
    return Counter(
        zip(map(str, votes.items[votes.item].tolist()), [votes.classes[k] for k in votes.label], strict=True)
    )


def both(frame: pd.DataFrame, folder: Path) -> InputError:
    """Return the error on reading a frame. Check that the file of the frame raises the same error."""
    with pytest.raises(InputError) as refusal:
        dis.read_votes(frame)
    frame.to_csv(folder / "votes.csv", index=False)
    with pytest.raises(InputError) as of_file:
        dis.read_votes(folder / "votes.csv")
    assert refusal.value.readings == of_file.value.readings
    return refusal.value


QUESTIONS: dict[str, tuple[pd.DataFrame, Counter[tuple[str, str]]]] = {
    **{
        f"'{gold}' beside '{label}'": (
            table(item=ITEM, worker=WHO, **{label: LABEL, gold: ["xyz"[int(i[1:]) % 3] for i in ITEM]}),
            Counter(zip(ITEM, LABEL, strict=True)),
        )
        for gold, label in (("label", "answer"), ("class", "judgement"), ("vote", "opinion"))
    },
    **{
        f"'{topic}' beside '{label}'": (
            table(item=ITEM, **({"worker": WHO} if who else {}), **{topic: of_item, label: GRADES}),
            Counter(zip(ITEM, GRADES, strict=True)),
        )
        for topic, label, who, of_item in (
            ("category", "toxicity", True, TOPIC),
            ("answer", "toxicity", True, TOPIC),
            ("class", "helpful", False, TOPIC),
            ("response", "helpful", True, [f"said of {item}" for item in ITEM]),
        )
    },
    **{
        f"'{one}' and '{label}' both differ": (
            table(item=ITEM, worker=WHO, **{one: LABEL, label: GRADES}),
            Counter(zip(ITEM, GRADES, strict=True)),
        )
        for one, label in (("category", "rating"), ("label", "score"), ("choice", "grade"))
    },
    **{
        f"'{part}' beside '{item}'{' and names' * named}": (
            table(
                **{item: [item for item, *_ in PARTS], part: [part for _, part, _ in PARTS]},
                **({"judge": [f"w{k}" for *_, k in PARTS]} if named else {}),
                answer=SAID,
            ),
            Counter((f"{item} | {part}", said) for (item, part, _), said in zip(PARTS, SAID, strict=True)),
        )
        for item, part, named in (
            ("item", "question", False),
            ("item", "question", True),
            ("id", "criterion", False),
            ("prompt_id", "model", False),
            ("example", "system", False),
        )
    },
    "sentences that begin anew in each document": (
        table(
            sentence_id=[k // 2 % 3 for k in range(18)],
            doc_id=[f"d{k // 6}" for k in range(18)],
            annotator=[f"w{k // 6}{k % 2}" for k in range(18)],
            label=["xy"[k % 3 % 2] for k in range(18)],
        ),
        Counter((f"{k // 2 % 3} | d{k // 6}", "xy"[k % 3 % 2]) for k in range(18)),
    ),
    "a number of annotations": (
        table(item=list("abcd"), annotations=[5] * 4, yes=[1, 2, 5, 4], no=[4, 3, 0, 1]),
        Counter({("a", "yes"): 1, ("a", "no"): 4, ("b", "yes"): 2, ("b", "no"): 3, ("c", "yes"): 5}
                | {("d", "yes"): 4, ("d", "no"): 1}),
    ),
    **{
        f"a column called '{called}'": (
            table(item=list("abcdef"), Anna=list("xyxyxy"), Ben=list("xyxxxy"), **{called: list(said)}),
            Counter(zip("abcdef" * 2, "xyxyxyxyxxxy", strict=True)),
        )
        for called in (
            "final_code", "agreed", "resolved_label", "consensus_final", "label_final", "agreed_code", "previous_label",
            "Gold answer", "majority code",
        )
        for said in ("xyxyxy",)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_read_votes_asks_about_a_second_use(name: str, tmp_path: Path) -> None:
    frame, meant = QUESTIONS[name]
    ways = [*both(frame, tmp_path).readings.values()]
    read = [dis.read_votes(frame, **way) for way in ways]
    assert meant in map(held, read)
    # A correct reading must keep all votes.
    assert min(map(len, read)) >= min(len(frame), meant.total())


NUMBERS: dict[str, list[Any]] = {
    "frequencies": [9, 1, 2, 8, 5],
    "zeros": [9, 0, 2, 8, 5],
    "shares": [0.9, 0.1, 0.2, 0.8, 1.0],
    "percent": ["90 %", "10 %", "20%", "80%", "100 %"],
    "parts": ["9/10", "1/10", "1/5", "4/5", "5/5"],
}


@pytest.mark.parametrize("called", ["freq", "value", "0", "len", "Freq", "n", "count", "annotators", "weight"])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_read_votes_asks_about_numbers_of_labels(numbers: str, called: str, tmp_path: Path) -> None:
    frame = table(item=list("aabbc"), label=["yes", "no", "yes", "no", "yes"], **{called: NUMBERS[numbers]})
    (way,) = both(frame, tmp_path).readings.values()
    assert held(dis.read_votes(frame, **way)) == Counter(zip(frame["item"], frame["label"], strict=True))
    with pytest.raises(InputError, match=f"'{called}' may say how many people"):
        count_votes(tmp_path / "votes.csv")


def test_read_votes_takes_what_the_question_about_numbers_advises() -> None:
    frame = table(item=list("aabbc"), label=["yes", "no", "yes", "no", "yes"], freq=NUMBERS["frequencies"])
    with pytest.raises(InputError) as refusal:
        dis.read_votes(frame)
    advice = refusal.value.sentence.partition("(pandas: ")[2].partition("); choose")[0]
    counts = eval(advice, {"frame": frame})
    assert dis.read_votes(counts).counts.tolist() == [[1, 9], [8, 2], [0, 5]]


@pytest.mark.parametrize("cells", [("{:.0f} %", 100), ("{:.0f}%", 100), ("{:.1f}%", 100), ("{:.0f}/5", 5), ("{}", 1)])
def test_read_votes_asks_about_shares_however_they_are_written(cells: tuple[str, int], tmp_path: Path) -> None:
    shape, of = cells
    share = [0.8, 0.6, 0.2, 0.6, 0.0, 1.0]
    frame = table(
        item=list("abcdef"), yes=[shape.format(p * of) for p in share], no=[shape.format((1 - p) * of) for p in share]
    )
    ways = [*both(frame, tmp_path).readings.values()]
    assert {"panel": "5"} in ways
    counts = [dis.read_votes(frame, **way).counts.tolist() for way in ways if way == {"panel": "5"}]
    assert counts == [[[round(5 * p), round(5 * (1 - p))] for p in share]]
    assert len(dis.read_votes(frame, format="wide")) == 12


@pytest.mark.parametrize("called", ["rt", "RT", "reaction_time", "ResponseTime"])
def test_read_votes_asks_about_times_without_a_unit(called: str, tmp_path: Path) -> None:
    frame = table(item=ITEM, worker=WHO, label=LABEL, **{called: [350 + 37 * k for k in PLACES]})
    as_seconds, unused = (dis.read_votes(frame, **way) for way in both(frame, tmp_path).readings.values())
    assert as_seconds.seconds is not None
    assert as_seconds.seconds.tolist() == frame[called].tolist()
    assert unused.seconds is None
    assert held(unused) == Counter(zip(ITEM, LABEL, strict=True))


INNOCENT: dict[str, list[Any]] = {
    "text": [f"text {item}" for item in ITEM],
    "age": [20 + int(who[1:]) for who in WHO],
    "gender": ["f" if who == "w1" else "m" for who in WHO],
    "timestamp": [f"2024-01-01 10:{k:02d}:00" for k in PLACES],
    "seconds": [1.5 + k / 10 for k in PLACES],
    "duration": [1.5 + k / 10 for k in PLACES],
    "doc_id": [f"d{int(item[1:]) // 4}" for item in ITEM],
    "hit_id": [f"h{k}" for k in PLACES],
    "assignment_id": [f"h{k // 2}" for k in PLACES],
    "annotation_id": [*PLACES],
    "category": TOPIC,
    "topic": TOPIC,
    "confidence": [k * 7 % 5 + 1 for k in PLACES],
    "comment": [f"remark {k}" for k in PLACES],
    "answer": [f"in my own words, {k}" for k in PLACES],
    "split": ["train" if item < "i5" else "test" for item in ITEM],
    "gold": ["xyz"[int(item[1:]) % 3] for item in ITEM],
    "model": ["gpt-4" if item < "i5" else "llama" for item in ITEM],
    "n_words": [int(item[1:]) * 3 + 2 for item in ITEM],
}


@pytest.mark.parametrize("called", INNOCENT)
def test_read_votes_asks_nothing_about_other_columns(called: str) -> None:
    frame = table(item=ITEM, annotator=WHO, label=LABEL, **{called: INNOCENT[called]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        votes = dis.read_votes(frame)
    assert held(votes) == Counter(zip(ITEM, LABEL, strict=True))
    assert votes.annotators is not None


@pytest.mark.parametrize("called", ["freq", "score", "answer", "criterion", "rt"])
def test_read_votes_asks_nothing_where_the_user_has_said_it(called: str) -> None:
    frame = table(item=ITEM, label=LABEL, **{called: GRADES}).drop_duplicates(["item", "label"])
    said: dict[str, Any] = {"item": "item", "label": "label", "format": "long"}
    assert held(dis.read_votes(frame, **said)) == Counter(zip(frame["item"], frame["label"], strict=True))


@pytest.mark.parametrize("who", ["user", "Username", "subject", "subject_id", "reviewer"])
def test_read_votes_warns_of_people_who_may_be_authors(who: str) -> None:
    rows = table(id=[*range(20)], label=["xy"[k % 2] for k in range(20)], **{who: [f"u{k % 7}" for k in range(20)]})
    with pytest.warns(VotesWarning, match=f"'{who}' may say who wrote it"):
        dis.read_votes(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error", VotesWarning)
        dis.read_votes(rows, annotator=who)
        dis.read_votes(rows.rename(columns={who: "annotator"}))
        dis.read_votes(table(id=ITEM, label=LABEL, **{who: WHO}))


@pytest.mark.parametrize("mark", [" ", "&", " & ", ", ", "+"])
def test_read_votes_asks_about_labels_made_of_labels(mark: str) -> None:
    several = f"cat{mark}dog"
    labels = [("cat", "dog", several)[k * k % 3 if k % 4 else 2] for k in PLACES]
    with pytest.raises(InputError, match="which also stand alone") as refusal:
        dis.read_votes(table(item=ITEM, annotator=WHO, label=labels))
    read = [dis.read_votes(table(item=ITEM, annotator=WHO, label=labels), **w) for w in refusal.value.readings.values()]
    assert [votes.n_judgements for votes in read] == [len(PANEL)] * 2
    assert len(read[0]) == len(PANEL) + labels.count(several)


def test_read_votes_asks_about_an_export_whose_answers_are_made_of_answers(tmp_path: Path) -> None:
    columns = ("_unit_id", "_golden", "_worker_id", "_trust", "relations")
    rows = [(k // 3, "false", k % 3, 1, ("[A]", "[B]", "[A] [B]")[k % 3]) for k in range(12)]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "job.csv", index=False)
    with pytest.raises(InputError, match="which also stand alone") as refusal:
        dis.read_votes(tmp_path / "job.csv", label="relations")
    (way,) = refusal.value.readings.values()
    assert len(dis.read_votes(tmp_path / "job.csv", label="relations", **way)) == 12


def test_every_question_is_typed_on_the_command_line(tmp_path: Path) -> None:
    numbers = table(item=list("aabbc"), label=list("xyxyx"), freq=NUMBERS["frequencies"])
    for frame, said in ((QUESTIONS["'label' beside 'answer'"][0], 2), (numbers, 1)):
        frame.to_csv(tmp_path / "v.csv", index=False)
        done = dissensus("labels", "v.csv", cwd=tmp_path)
        assert done.returncode == 2
        assert [dissensus(*command, cwd=tmp_path).returncode for command in advised(done.stderr)] == [0] * said
