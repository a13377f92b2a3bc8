from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from dissensus.errors import InputError
from dissensus.report.votes_page import write_page
from dissensus.votes.agreement import agreement, class_alpha
from dissensus.votes.annotators import annotator_agreement
from dissensus.votes.inspection import inspect
from dissensus.votes.reading import read_votes
from dissensus.votes.reliability import split_half_reliability
from dissensus.votes.simulate import simulate_responses, simulate_votes
from dissensus.votes.table import Annotators, Votes, votes_from_counts
from dissensus.votes.writing import write_votes
from tests.cli.test_commands import dissensus
from tests.votes.popquorn import popquorn

if TYPE_CHECKING:
    from pathlib import Path

TABLES = hnp.arrays(np.int64, st.tuples(st.integers(1, 8), st.integers(1, 5)), elements=st.integers(0, 6)).filter(
    lambda table: bool((table.sum(axis=1) > 0).all())
)


def responses() -> Votes:
    truth = np.random.default_rng(0).dirichlet(np.full(3, 0.4), 60)
    return simulate_responses(truth, 4, annotators=9, seed=0)


def ratings() -> Votes:
    truth = np.random.default_rng(0).dirichlet(np.full(5, 0.4), 60)
    return simulate_votes(truth, 6, annotators=9, seed=0, ordered=True)


@given(TABLES)
def test_sizes_ties_strata_and_entropy_are_those_of_the_counts(table: np.ndarray) -> None:
    found = inspect(votes_from_counts(table), resamples=0)
    size = table.sum(axis=1)
    assert (found.votes, found.judgements, found.items) == (size.sum(), size.sum(), len(table))
    per = found.votes_per_item
    assert (per.min, per.median, per.mean, per.max) == (size.min(), np.median(size), size.mean(), size.max())
    assert sum(items for _, _, items in per.histogram) == len(table)
    assert [each.votes for each in found.classes] == table.sum(axis=0).tolist()
    assert sum(each.share for each in found.classes) == pytest.approx(1.0)
    assert found.tied == sum(sorted(row)[-2:] == [max(row)] * 2 for row in table.tolist())
    assert found.tied_share == found.tied / len(table)
    shared = [row for row in table.tolist() if sum(row) >= 2]
    if shared:
        unanimous = np.mean([max(row) == sum(row) for row in shared])
        assert found.unanimous_share == pytest.approx(unanimous)
        assert found.varied_share == pytest.approx(1 - unanimous)
    else:
        assert found.unanimous_share is found.varied_share is None
    entropy = stats.entropy(table, axis=1)
    assert found.entropy.mean == pytest.approx(entropy.mean(), abs=1e-9)
    assert found.entropy.median == pytest.approx(np.median(entropy), abs=1e-9)
    corrected = entropy + ((table > 0).sum(axis=1) - 1) / (2 * size)
    assert found.entropy.corrected_mean == pytest.approx(corrected.mean(), abs=1e-9)


def test_the_correction_brings_the_entropy_of_few_votes_nearer_the_truth() -> None:
    truth = np.random.default_rng(0).dirichlet(np.full(4, 2.0), 2000)
    found = inspect(simulate_votes(truth, 10, annotators=20, seed=0), resamples=0).entropy
    true = stats.entropy(truth, axis=1).mean()
    assert found.mean < found.corrected_mean < true + 0.02
    assert true - found.corrected_mean < (true - found.mean) / 3


@pytest.mark.parametrize("votes", [ratings(), responses()], ids=["single choices", "responses"])
def test_statistics_are_those_of_their_own_functions(votes: Votes) -> None:
    found = inspect(votes, resamples=30, seed=5)
    assert found.agreement == agreement(votes, resamples=30, seed=5)
    assert found.split_half == split_half_reliability(votes, resamples=30, seed=5)
    assert found.class_alpha == ({} if votes.none is None else class_alpha(votes, resamples=30, seed=5))
    assert found.annotator_agreement is not None
    assert found.annotator_agreement.to_rows() == annotator_agreement(votes).lowest_first().to_rows()


def test_a_scale_has_ordinal_and_interval_alpha_and_names_have_not() -> None:
    assert "krippendorff_alpha_ordinal" in inspect(ratings(), resamples=0).agreement
    found = inspect(responses(), resamples=0)
    assert "krippendorff_alpha_ordinal" not in found.agreement
    assert any("ordinal and interval alpha" in note for note in found.notes)


def test_responses_report_seconds_doubt_and_judgements() -> None:
    votes = responses()
    found = inspect(votes, resamples=0)
    assert votes.seconds is not None
    assert votes.unsure is not None
    assert votes.judgement is not None
    assert found.judgements == 240
    assert found.votes > 240
    assert found.judgements_per_item.histogram == ((4, 4, 60),)
    assert found.seconds is not None
    quartiles = [found.seconds.lower_quartile, found.seconds.median, found.seconds.upper_quartile]
    assert quartiles == pytest.approx(np.percentile(votes.seconds, [25, 50, 75]))
    assert found.unsure_rate == len(set(votes.judgement[votes.unsure].tolist())) / 240
    assert sum(each.unsure or 0 for each in found.classes) == votes.unsure.sum()


@pytest.mark.parametrize(("days", "length"), [(2.9, 13), (90, 10), (900, 7)])
@pytest.mark.parametrize("votes", [ratings(), responses()], ids=["single choices", "responses"])
def test_judgements_over_time_are_counted_and_compared_with_the_rest(votes: Votes, days: float, length: int) -> None:
    random = np.random.default_rng(1)
    n = votes.n_judgements
    span = (random.random(n) * days * 86_400e6).astype("timedelta64[us]")
    moments = np.datetime64("2024-02-28T22:30:00", "us") + span
    moments[::7] = np.datetime64("NaT")
    found = inspect(replace(votes, time=moments), resamples=0).over_time
    # By hand, a judgement at a time: the share of its item's other judgements that choose the same classes.
    own = np.zeros((n, len(votes.classes)))
    own[np.arange(n) if votes.judgement is None else votes.judgement, votes.label] = 1
    own /= own.sum(axis=1, keepdims=True)
    by_start: dict[str, list[float]] = {}
    for j in np.flatnonzero(~np.isnat(moments)):
        rest = [own[other] for other in np.flatnonzero(votes.judgement_item == votes.judgement_item[j]) if other != j]
        by_start.setdefault(str(moments[j])[:length], []).append(float(np.mean([own[j] @ each for each in rest])))
    assert [each.start for each in found] == sorted(by_start)
    assert [each.judgements for each in found] == [len(by_start[each.start]) for each in found]
    assert [each.agreement for each in found] == pytest.approx([np.mean(by_start[each.start]) for each in found])


def test_without_times_nothing_is_said_about_them() -> None:
    assert inspect(ratings(), resamples=0).over_time == ()
    unknown = np.full(ratings().n_judgements, np.datetime64("NaT", "us"))
    assert inspect(replace(ratings(), time=unknown), resamples=0).over_time == ()


def test_the_page_draws_votes_over_time(tmp_path: Path) -> None:
    votes = ratings()
    moments = np.datetime64("2024-02-28T22:30:00", "us") + np.arange(votes.n_judgements).astype("timedelta64[m]")
    for known in (replace(votes, time=moments), votes):
        write_page(inspect(known, resamples=0), known, tmp_path / "page.html", title="t")
        page = (tmp_path / "page.html").read_text()
        assert ("Votes over time" in page) == (known.time is not None)
        assert ("2024-02-29T03" in page) == (known.time is not None)


def test_equal_weighted_judgements_decide_ties_and_unanimity() -> None:
    # Item 0: one judgement of a and b, one of a: a leads. Item 1: one of a and b, twice: a tie.
    votes = Votes(
        item=np.array([0, 0, 0, 1, 1, 1, 1, 2, 2], np.int32),
        label=np.array([0, 1, 0, 0, 1, 0, 1, 1, 1], np.int32),
        judgement=np.array([0, 0, 1, 2, 2, 3, 3, 4, 5], np.int32),
        items=np.arange(3),
        classes=("a", "b"),
    )
    found = inspect(votes, resamples=0)
    assert found.tied == 1
    assert found.unanimous_share == pytest.approx(1 / 3)
    assert [each.item for each in found.contested] == [1, 0]
    assert found.contested[1].entropy == pytest.approx(stats.entropy([0.75, 0.25]))


def test_the_most_contested_come_first_then_the_most_judged_then_the_first() -> None:
    table = [[1, 1, 0], [3, 0, 0], [0, 2, 2], [1, 0, 1], [2, 1, 1], [3, 0, 3]]
    found = inspect(votes_from_counts(table, classes=["a", "b", "c"]), resamples=0, contested=4)
    assert [each.item for each in found.contested] == [4, 5, 2, 0]
    assert found.contested[0].counts == {"a": 2, "b": 1, "c": 1}
    assert found.contested[1].counts == {"a": 3, "c": 3}
    everything = inspect(votes_from_counts(table), resamples=0, contested=99)
    assert [each.item for each in everything.contested] == [4, 5, 2, 0, 3]


def test_a_wide_spread_is_told_in_few_bins() -> None:
    size = np.arange(1, 1001)
    per = inspect(votes_from_counts(np.column_stack([size, size])), resamples=0).votes_per_item
    assert len(per.histogram) <= 20
    assert sum(items for _, _, items in per.histogram) == 1000
    assert per.histogram[0][0] == 2
    assert per.histogram[-1][1] == 2000
    assert all(this[1] < following[0] for this, following in zip(per.histogram, per.histogram[1:], strict=False))


def test_items_without_votes_are_counted_and_then_left_alone() -> None:
    votes = ratings()
    some = votes.take_judgements(np.flatnonzero(votes.judgement_item >= 10))
    found = inspect(some, resamples=0)
    assert found.items_without_votes == 10
    assert found.votes_per_item.min == 0
    kept = inspect(votes_from_counts(votes.counts[10:]), resamples=0)
    assert found.entropy == kept.entropy
    assert found.tied_share == kept.tied_share


@given(TABLES)
def test_json_holds_no_nan_and_what_is_missing_has_a_reason(table: np.ndarray) -> None:
    found = inspect(votes_from_counts(table), resamples=10)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["annotator_agreement"] is None
    notes = " ".join(told["notes"])
    assert "annotators: " in notes
    assert "seconds: " in notes
    assert "unsure rate: " in notes
    assert bool(told["agreement"]) == ("agreement: no item has two judgements" not in notes)
    assert (told["split_half"] is None) == ("split-half reliability: " in notes)
    if told["split_half"] is not None:
        assert (told["split_half"]["entropy"] is None) == ("split-half reliability of entropy: " in notes)


@pytest.mark.parametrize("votes", [ratings(), responses()], ids=["single choices", "responses"])
def test_json_holds_all_that_was_found(votes: Votes) -> None:
    found = inspect(votes, resamples=10)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["agreement"]["fleiss_kappa"] == found.agreement["fleiss_kappa"].to_dict()
    assert len(told["annotator_agreement"]) == 9
    assert set(told["class_alpha"]) == set(found.class_alpha)
    assert told["contested"][0]["item"] == found.contested[0].item


@pytest.mark.parametrize("classes", [["a"], ["a", "b"]], ids=["one class", "a class that nobody chose"])
def test_votes_that_all_name_one_class_have_no_alpha_and_say_why(classes: list[str], tmp_path: Path) -> None:
    counts = np.zeros((5, len(classes)), dtype=np.int64)
    counts[:, 0] = 4
    votes = votes_from_counts(counts, classes=classes)
    found = inspect(votes, resamples=10)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    for name in ("krippendorff_alpha_nominal", "fleiss_kappa"):
        assert told["agreement"][name]["value"] is None
        assert told["agreement"][name]["reason"] == "no variation"
    assert told["split_half"]["probabilities"]["value"] is None
    assert (
        "agree in 100% of cases (100% to 100%, over items); Krippendorff's alpha is not defined: no variation."
        in str(found)
    )
    assert "Krippendorff's alpha, nominal   not defined: no variation" in str(found)
    write_page(found, votes, tmp_path / "page.html", title="all alike")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<td>Krippendorff&#x27;s alpha, nominal</td><td>not defined: no variation</td><td></td>" in page


def test_an_annotator_nobody_can_be_compared_with_is_noted() -> None:
    votes = Votes(
        item=np.array([0, 0, 1], np.int32),
        label=np.zeros(3, np.int32),
        items=np.array(["x", "y"]),
        annotators=Annotators(np.array([0, 1, 2], np.int32), np.array(["ann", "bob", "cem"])),
        classes=("a",),
    )
    found = inspect(votes, resamples=0)
    assert any(note.startswith("annotators: 1 ") for note in found.notes)
    json.dumps(found.to_dict(), allow_nan=False)


def test_printing_gives_a_screenful() -> None:
    for votes in (ratings(), responses(), votes_from_counts([[1, 0], [0, 1]])):
        text = str(inspect(votes, resamples=10))
        assert text.startswith(f"{len(votes):,} votes, {len(votes.items):,} items")
        assert 10 <= len(text.splitlines()) <= 45
        assert "None" not in text
        assert " nan" not in text
    assert repr(inspect(ratings(), resamples=0)) == "Inspection(360 votes, 60 items, 5 classes)"
    text = str(inspect(ratings(), resamples=10))
    for words in ("Krippendorff's alpha, ordinal", "Fleiss' kappa", "least agreement", "most contested", "missing: "):
        assert words in text


def test_one_vote_per_item_tells_neither_agreement_nor_what_more_votes_would_change() -> None:
    single = inspect(votes_from_counts(np.eye(2, dtype=np.int64)[np.arange(40) % 2]), resamples=0)
    assert single.to_change is None
    assert "corrected" not in single.facts()["entropy, nats"]
    assert "would have another majority" not in str(single)
    # One item that two people judged is a beginning.
    counts = np.eye(2, dtype=np.int64)[np.arange(40) % 2]
    counts[0] = 1
    assert inspect(votes_from_counts(counts), resamples=0).to_change is not None


def test_no_votes_at_all_are_refused() -> None:
    votes = ratings()
    with pytest.raises(InputError, match="no votes to inspect"):
        inspect(votes.take_judgements(np.array([], dtype=np.int64)))


class TestRealVotes:
    def test_cifar_10h_has_its_known_figures(self, data: Path) -> None:
        counts = np.load(data / "cifar-10h" / "cifar10h-counts.npy")
        found = inspect(votes_from_counts(counts), resamples=50)
        assert (found.votes, found.items) == (511_000, 10_000)
        assert (found.votes_per_item.min, found.votes_per_item.max) == (47, 63)
        assert found.entropy.mean == pytest.approx(0.1545, abs=5e-5)
        assert found.entropy.median == pytest.approx(0.0950, abs=5e-5)
        assert found.unanimous_share == pytest.approx(0.439, abs=5e-4)

    def test_popquorn_has_its_known_figures(self, data: Path) -> None:
        found = inspect(popquorn(data), resamples=50)
        assert (found.votes, found.items, found.annotators) == (13_036, 1_500, 262)
        assert (found.votes_per_item.min, found.votes_per_item.max) == (5, 10)
        assert found.votes_per_item.mean == pytest.approx(8.69, abs=5e-3)
        assert found.entropy.mean == pytest.approx(0.841, abs=5e-4)
        assert found.annotator_agreement is not None
        assert found.annotator_agreement.judgements.sum() == 13_036


def test_inspect_says_what_its_intervals_are_over(tmp_path: Path) -> None:
    rows = [(f"i{i}", f"w{a}", "xyz"[(i * i + a * (i % 3)) % 3]) for i in range(30) for a in range(4)]
    named, anonymous = read_votes(rows), read_votes([(item, label) for item, _, label in rows])
    for votes, over in ((named, "items and annotators"), (anonymous, "items")):
        found = inspect(votes, resamples=50)
        assert found.over == over == found.to_dict()["over"]
        assert f", over {over})" in found.sentences()[0]
        assert any("intervals are too narrow" in sentence for sentence in found.sentences()) == (over == "items")
        page = tmp_path / "page.html"
        write_page(found, votes, page, title="votes")
        assert f", over {over})" in page.read_text()
        write_votes(votes, tmp_path / "v.csv")
        done = dissensus("votes", "inspect", "v.csv", "--resamples", 50, cwd=tmp_path)
        assert f"95 % intervals over {over}" in done.stdout
