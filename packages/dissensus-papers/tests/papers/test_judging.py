"""Verdicts: one rule, fixed before the runs."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec import structs
from scipy import stats

from dissensus.bootstrap import Estimate
from dissensus_papers.papers.claims import Claim, Paper, read_paper
from dissensus_papers.papers.judging import _on_its_side, judge, judge_paper
from dissensus_papers.papers.measured import Measured
from dissensus_papers.papers.pages import claim_cells, counted
from dissensus_papers.papers.summary import StudySummary

if TYPE_CHECKING:
    from tests.papers.conftest import Small


def claim(**given: Any) -> Claim:
    about = {"metric": "kl", "system": "a", "against": "b"}
    told = {"id": "x", "says": "x", "mark": "verified", "quantity": "difference", "about": about, "study": "small"}
    return Claim(**{**told, "reproduced": (-0.5, -0.1), "in_direction": (-inf, 0.0), **given})


def by_id(paper: Paper) -> dict[str, Claim]:
    return {claim.id: claim for claim in paper.claims}


def measured(value: float, low: float | None = None, high: float | None = None, **more: Any) -> Measured:
    return Measured(value=Estimate(value, low, high), **{"null": 0.0, "over": "items and seeds", **more})


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [
        (-0.3, -0.4, -0.2, "reproduced"),
        (-0.3, -0.7, 0.1, "inconclusive"),  # near the paper's value, but not surely on its side
        (-0.05, -0.06, -0.04, "in direction"),  # surely on its side, but too small
        (-0.8, -0.9, -0.7, "in direction"),  # too large
        (-0.05, -0.2, 0.1, "inconclusive"),
        (0.1, -0.3, 0.5, "inconclusive"),  # on the other side, but not surely
        (0.1, 0.05, 0.15, "not reproduced"),
        (0.0, 0.0, 0.0, "inconclusive"),  # nothing changed, which is on neither side
        (-0.2, -0.4, 0.0, "inconclusive"),
    ],
)
def test_a_claim_with_a_side(value: float, low: float, high: float, verdict: str) -> None:
    assert judge(claim(), measured(value, low, high)).verdict == verdict


@pytest.mark.parametrize(("value", "verdict"), [(-0.3, "reproduced"), (-0.05, "in direction"), (0.1, "not reproduced")])
def test_what_has_no_interval_by_nature_is_judged_as_it_is(value: float, verdict: str) -> None:
    assert judge(claim(), measured(value, over="")).verdict == verdict
    # One seed, say: there should be an interval, and there is none.
    assert judge(claim(), measured(value)).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [
        (0.002, -0.02, 0.02, "reproduced"),
        (0.02, 0.015, 0.025, "reproduced"),  # it differs from 0, and by less than matters
        (0.002, -0.2, 0.2, "inconclusive"),  # no difference was found, and one may well be there
        (-0.02, -0.06, 0.02, "inconclusive"),
        (0.1, 0.05, 0.15, "not reproduced"),
    ],
)
def test_no_difference_is_an_equivalence_test(value: float, low: float, high: float, verdict: str) -> None:
    equal = claim(equal=(-0.03, 0.03), reproduced=(-inf, inf), in_direction=(-inf, inf))
    judged = judge(equal, measured(value, low, high, by_seed=(0.1, -0.1)))
    assert judged.verdict == verdict
    # It has no side, so no seed lies on it and no one-sided test can be made.
    assert judged.seeds is None
    assert judged.wilcoxon is None


def test_what_does_not_change_is_not_on_the_side_of_a_change() -> None:
    sides = [_on_its_side(judge(claim(), measured(value, value, value))) for value in (-0.2, 0.0, 0.2)]
    assert sides == [True, False, False]


def test_an_interval_that_is_small_is_not_shown_as_none() -> None:
    assert claim_cells(judge(claim(), measured(-0.00123, -0.00142, -0.00104)))[2] == "-0.0012 [-0.0014, -0.0010]"
    assert claim_cells(judge(claim(), measured(-0.3, -0.4, -0.2)))[2] == "-0.300 [-0.400, -0.200]"


def test_kinds_are_counted_apart() -> None:
    kinds = {
        "claims": judge(claim(), measured(-0.3, -0.4, -0.2)),
        "on other people": judge(claim(tested_on="other people"), measured(-0.3, -0.4, -0.2)),
        "on a stand-in": judge(claim(tested_on="a stand-in"), measured(-0.3, -0.4, -0.2)),
        "controls": judge(claim(mark="control"), measured(0.3, 0.2, 0.4)),
        "": judge(claim(mark="part"), measured(0.3, 0.2, 0.4)),
    }
    assert {judged.kind for judged in kinds.values()} == set(kinds)
    assert all(judged.kind == kind for kind, judged in kinds.items())
    tallies = counted(tuple(kinds.values()))
    assert tallies == {
        "claims": {"reproduced": 1},
        "on other people": {"reproduced": 1},
        "on a stand-in": {"reproduced": 1},
        "controls": {"not reproduced": 1},
    }
    # What was measured on something that stands in is never the paper's own.
    assert replace(kinds["claims"], tested_on="a stand-in").kind == "on a stand-in"


def test_wilcoxon_is_exact_one_sided_and_on_the_claims_side() -> None:
    gaps = (-0.3, -0.1, -0.2, 0.05, -0.4)
    below = judge(claim(), measured(-0.2, by_seed=gaps))
    assert below.seeds == (4, 5)
    assert below.wilcoxon == pytest.approx(stats.wilcoxon(gaps, alternative="less", method="exact").pvalue)
    above = judge(claim(reproduced=(0.1, 1.0), in_direction=(0.0, inf)), measured(-0.2, by_seed=gaps))
    assert above.seeds == (1, 5)
    assert above.wilcoxon == pytest.approx(stats.wilcoxon(gaps, alternative="greater", method="exact").pvalue)
    ratios = (1.2, 2.0, 1.5)
    ratio = judge(claim(reproduced=(1.2, 3.0), in_direction=(1.0, inf)), measured(1.5, by_seed=ratios, null=1.0))
    assert (ratio.seeds, ratio.wilcoxon) == ((3, 3), 1 / 8)


def summary(answers: dict[str, Measured], **more: Any) -> StudySummary:
    paper = read_paper("gheibi")
    kept = {name: {"asks": by_id(paper)[name].asks, "measured": each.to_dict()} for name, each in answers.items()}
    study = by_id(paper)[next(iter(answers))].study
    return StudySummary(name=study, study="x", rules=paper.rules(study), answers=kept, **more)


def test_counts_are_over_cells_and_need_all_of_them() -> None:
    paper = read_paper("gheibi")
    cells = by_id(paper)["sparse-cells"].about["of"]
    gaps = {name: (-0.1, -0.2) if place else (-0.3, 0.1) for place, name in enumerate(cells)}
    studies: dict[str, dict[str, Measured]] = {}
    for name, by_seed in gaps.items():
        value = measured(float(np.mean(by_seed)), by_seed=by_seed)
        studies.setdefault(by_id(paper)[name].study, {})[name] = value
    found = {name: summary(each) for name, each in studies.items()}
    judged = {each.claim.id: each for each in judge_paper(paper, found)}
    assert judged["sparse-cells"].measured is not None
    assert judged["sparse-cells"].measured.value.value == 12
    assert judged["sparse-unanimous"].measured is not None
    assert judged["sparse-unanimous"].measured.value.value == 11
    # Two seeds cannot be significant, and Holm makes nothing smaller.
    assert judged["sparse-holm"].measured is not None
    assert judged["sparse-holm"].measured.value.value == 0
    found.pop("cifar-10h-25-votes")
    judged = {each.claim.id: each for each in judge_paper(paper, found)}
    assert (judged["sparse-cells"].verdict, judged["sparse-cells"].why) == (
        "not run",
        "9 of 12 claims that it is about were measured",
    )


def test_what_so_few_seeds_cannot_show_is_not_testable() -> None:
    """Four seeds: an exact p is never below 1 / 16, and Holm makes nothing smaller."""
    parts = [claim(id=name, mark="part", study="s") for name in ("a", "b")]
    of = {"counts": "survives Holm", "of": ("a", "b")}
    counted_claim = claim(id="holm", study="", quantity="count", about=of, equal=(0.0, 0.0), in_direction=(-inf, inf))
    paper = structs.replace(read_paper("gheibi"), claims=(*parts, counted_claim))
    # Of two claims none can survive with four seeds, and both with six; one alone where the other has two seeds.
    for seeds, of_second, wanted, verdict in (
        (4, 4, 0.0, "not testable here"),
        (6, 6, 0.0, "not reproduced"),
        (6, 2, 2.0, "not testable here"),
        (6, 2, 1.0, "reproduced"),
    ):
        told = structs.replace(counted_claim, equal=(wanted, wanted))
        paper = structs.replace(paper, claims=(*parts, told))
        answers = {}
        for each, number in zip(parts, (seeds, of_second), strict=True):
            gaps = tuple(-0.1 - n / 100 for n in range(number))
            answers[each.id] = {
                "asks": each.asks,
                "measured": measured(-0.12, -0.2, -0.1, by_seed=gaps).to_dict(),
            }
        kept = StudySummary(name="s", study="s", rules=paper.rules("s"), answers=answers, seeds=tuple(range(seeds)))
        found = {each.claim.id: each for each in judge_paper(paper, {"s": kept})}
        assert found["holm"].verdict == verdict


def test_one_seed_says_nothing_of_others() -> None:
    """Its interval is over items alone, and narrower than that of four seeds."""
    asked = claim(study="s")
    paper = structs.replace(read_paper("gheibi"), claims=(asked,))
    answer = {"asks": asked.asks, "measured": measured(-0.3, -0.4, -0.2, by_seed=(-0.3,)).to_dict()}
    kept = StudySummary(name="s", study="s", rules=paper.rules("s"), answers={asked.id: answer}, seeds=(0,))
    (alone,) = judge_paper(paper, {"s": kept})
    assert (alone.verdict, alone.why) == ("inconclusive", "it is one seed, which says nothing of others")
    (several,) = judge_paper(paper, {"s": replace(kept, seeds=(0, 1))})
    assert several.verdict == "reproduced"
    # Nor does a count or an order, which have no interval.
    counts = {"quantity": "count", "study": "", "reproduced": (1, 1), "in_direction": (1, 1)}
    count = claim(id="count", about={"counts": "every seed", "of": ("x",)}, **counts)
    order = claim(
        id="o",
        study="s",
        quantity="order",
        about={"metric": "kl", "systems": ("a", "b")},
        reproduced=(1, 1),
        in_direction=(1, 1),
    )
    paper = structs.replace(paper, claims=(asked, count, order))
    one = measured(1.0, over="", by_seed=(1.0,), null=None).to_dict()
    answers = {asked.id: answer, "o": {"asks": order.asks, "measured": one}}
    kept = replace(kept, rules=paper.rules("s"), answers=answers)
    assert [each.verdict for each in judge_paper(paper, {"s": kept})] == ["inconclusive"] * 3
    assert [each.verdict for each in judge_paper(paper, {"s": replace(kept, seeds=(0, 1))})] == ["reproduced"] * 3


def test_a_count_over_what_is_not_defined_is_not_testable_and_over_what_was_not_run_not_run() -> None:
    asked = claim(study="s")
    count = claim(
        id="count",
        quantity="count",
        study="",
        about={"counts": "on its side", "of": ("x",)},
        reproduced=(1, 1),
        in_direction=(1, 1),
    )
    paper = structs.replace(read_paper("gheibi"), claims=(asked, count))
    for kind, verdict in (("refused", "not testable here"), ("not measured", "not run")):
        answers = {asked.id: {"asks": asked.asks, kind: "it is not defined"}}
        kept = StudySummary(name="s", study="s", rules=paper.rules("s"), answers=answers, seeds=(0, 1))
        assert [each.verdict for each in judge_paper(paper, {"s": kept})] == [verdict] * 2


def test_a_size_that_is_not_the_papers_is_told() -> None:
    for paper, told in ((-0.3, False), (-0.45, True), (None, False)):
        judged = judge(claim(paper=paper), measured(-0.3, -0.4, -0.2))
        assert (judged.verdict, judged.beyond) == ("reproduced", told)
        assert claim_cells(judged)[2].endswith("another size than the paper's") == told
    assert not judge(claim(paper=-0.45), measured(-0.3, -0.4, 0.2)).beyond


def test_what_was_not_run_or_refused_is_said(small: Small) -> None:
    paper = read_paper(small.claims)
    judged = judge_paper(paper, {})
    assert {each.verdict for each in judged} == {"not run"}
    answers = {"kl": {"asks": by_id(paper)["kl"].asks, "refused": "no such system"}}
    refused = StudySummary(name="small", study="small", rules=paper.rules("small"), answers=answers)
    judged_of = {each.claim.id: each for each in judge_paper(paper, {"small": refused})}
    assert (judged_of["kl"].verdict, judged_of["kl"].why) == ("not testable here", "no such system")
    assert (judged_of["accuracy"].verdict, judged_of["accuracy"].why) == (
        "not run",
        "the claim is younger than the runs of small",
    )


def test_an_average_has_the_interval_of_independent_studies_and_counts_a_set_once() -> None:
    paper = read_paper("singh")
    names = ("cifar-10h-kl", "popquorn-kl", "chaosnli-snli-kl", "chaosnli-mnli-kl")
    found: dict[str, StudySummary] = {}
    for place, name in enumerate(names):
        study, value = by_id(paper)[name].study, -0.1 * (place + 1)
        answer = {"asks": by_id(paper)[name].asks, "measured": measured(value, value - 0.2, value + 0.2).to_dict()}
        found[study] = StudySummary(name=study, study=study, rules=paper.rules(study), answers={name: answer})
    judged = {each.claim.id: each for each in judge_paper(paper, found)}["average-kl"]
    assert judged.measured is not None
    mean = judged.measured.value
    assert mean.value == pytest.approx((-0.1 - 0.2 + (-0.3 - 0.4) / 2) / 3, rel=1e-5)
    assert mean.high == pytest.approx(mean.value + 0.2 * np.sqrt(1 + 1 + 1 / 2) / 3, rel=1e-5)


def test_values_of_one_study_may_err_together_in_an_average(small: Small) -> None:
    """They share items and runs: the half-width of their mean is the mean of theirs, not a third less for each."""
    paper = read_paper(small.claims)
    answers = {
        name: {"asks": by_id(paper)[name].asks, "measured": measured(value, value - half, value + half).to_dict()}
        for name, value, half in (("kl", -0.3, 0.1), ("accuracy", 0.1, 0.3))
    }
    summaries = {"small": StudySummary(name="small", study="small", rules=paper.rules("small"), answers=answers)}
    mean = next(each for each in judge_paper(paper, summaries) if each.claim.id == "all").measured
    assert mean is not None
    assert (mean.value.low, mean.value.value, mean.value.high) == pytest.approx((-0.3, -0.1, 0.1))
    assert mean.over == "items and seeds of 1 study"


def test_pairs_of_runs_are_no_seeds_that_wilcoxon_could_count() -> None:
    gaps = (0.1, 0.2, 0.3, 0.1, 0.2)
    claimed = by_id(read_paper("gheibi"))["cka"]
    whole = Measured(value=Estimate(0.18, 0.1, 0.26), by_seed=gaps, over="seeds", null=0.0)
    assert judge(claimed, whole).wilcoxon == 1 / 32
    pairs = judge(claimed, replace(whole, over="pairs of runs"))
    assert (pairs.wilcoxon, pairs.seeds) == (None, (5, 5))


def test_an_answer_to_another_question_does_not_answer_the_claim(small: Small) -> None:
    """A claim that was changed since the runs is measured anew, not judged by what was measured before."""
    paper = read_paper(small.claims)
    asks = {**by_id(paper)["kl"].asks, "metric": "brier"}
    kept = {"asks": asks, "measured": measured(-0.3, -0.4, -0.2).to_dict()}
    asked = StudySummary(name="small", study="small", rules=paper.rules("small"), answers={"kl": kept})
    summaries = {"small": asked}
    judged = next(each for each in judge_paper(paper, summaries) if each.claim.id == "kl")
    assert (judged.verdict, judged.measured) == ("not run", None)
    assert judged.why == "the claim is younger than the runs of small"


@pytest.mark.parametrize(
    ("ends", "by_seed", "seeds", "tested"),
    [
        ((0.0, inf), (0.1, 0.2), (2, 2), True),
        ((4.0, inf), (0.1, 0.2), (0, 2), False),  # above no effect, and far from what is claimed
        ((4.0, inf), (3.0, 5.0), (1, 2), False),
        ((-inf, -4.0), (-5.0, -1.0), (1, 2), False),
        ((0.0, 1.0), (0.1, -0.2), (1, 2), True),  # it ends where values do
        ((0.0, 1.0), (0.1, 1.2), (1, 2), False),  # it does not, and a seed lies beyond
        ((-1.0, 0.0), (-0.1, -1.2), (1, 2), False),
        ((-1.0, 0.0), (-0.1, 1.2), (1, 2), True),
        ((0.0, inf), (0.0, 0.2), (1, 2), True),  # no effect is on no side
        ((-0.2, 0.2), (0.1, 0.1), None, False),
        ((-inf, inf), (0.1, 0.1), None, False),
    ],
)
def test_seeds_are_counted_in_the_claims_own_range_and_only_a_side_of_no_effect_is_tested(
    ends: tuple[float, float], by_seed: tuple[float, ...], seeds: tuple[int, int] | None, tested: bool
) -> None:
    judged = judge(claim(reproduced=ends, in_direction=ends), measured(0.1, -0.7, 0.9, by_seed=by_seed))
    assert judged.seeds == seeds
    assert (judged.wilcoxon is not None) == tested
    equal = claim(equal=(8.0, 9.0), reproduced=(-inf, inf), in_direction=(-inf, inf))
    judged = judge(equal, measured(0.1, -0.7, 0.9, by_seed=by_seed))
    assert (judged.verdict, judged.seeds, judged.wilcoxon) == ("not reproduced", None, None)


def test_what_has_no_interval_shows_what_each_seed_says() -> None:
    ahead = claim(reproduced=(5.0, 6.0), in_direction=(4.0, 6.0))
    judged = judge(ahead, measured(1.0, over="", null=None, by_seed=(0, 0, 1, 6, 4)))
    assert (judged.verdict, judged.seeds, judged.wilcoxon) == ("not reproduced", (2, 5), None)
    assert claim_cells(judged)[2:4] == ("1 (by seed 0, 0, 1, 6, 4)", "2 of 5")
    assert claim_cells(judge(claim(), measured(-0.3, -0.4, -0.2, by_seed=(-0.3, -0.3))))[2] == "-0.300 [-0.400, -0.200]"


ORDER = ("", "other people", "a stand-in")


@pytest.mark.parametrize("quantity", ["average", "count"])
@pytest.mark.parametrize("own", ORDER)
@pytest.mark.parametrize("other", ORDER)
@pytest.mark.parametrize("missing", [False, True])
def test_a_claim_about_others_is_tested_on_the_weakest_of_them(
    small: Small, quantity: str, own: str, other: str, missing: bool
) -> None:
    paper = read_paper(small.claims)
    one, two = claim(id="one", study="a"), claim(id="two", study="b", tested_on=other)
    about = {"of": ["one", "two"], **({"counts": "on its side"} if quantity == "count" else {})}
    over = claim(id="over", quantity=quantity, about=about, study="", tested_on=own)
    outer = claim(id="outer", quantity="average", about={"of": ["over"]}, study="")
    value = {} if missing else {"measured": measured(-0.3, -0.4, -0.2).to_dict()}
    paper = replace_claims(paper, (outer, over, one, two))
    found = {
        each.study: StudySummary(
            name=each.study,
            study="x",
            rules=paper.rules(each.study),
            answers={each.id: {"asks": each.asks, **value}},
        )
        for each in (one, two)
        if not missing
    }
    judged = {each.claim.id: each for each in judge_paper(paper, found)}
    weakest = max(own, other, key=ORDER.index)
    for name in ("over", "outer"):
        assert judged[name].kind == ("claims", "on other people", "on a stand-in")[ORDER.index(weakest)]
    # What stands in for a study makes every claim on it one on a stand-in, whatever else it is tested on.
    found = {name: replace(each, instead=True) for name, each in found.items()}
    judged = {each.claim.id: each for each in judge_paper(paper, found)}
    assert missing or judged["outer"].kind == "on a stand-in"


def replace_claims(paper: Paper, claims: tuple[Claim, ...]) -> Paper:
    return structs.replace(paper, claims=claims)


def test_singhs_averages_are_on_other_people_since_one_of_their_sets_is() -> None:
    kinds = {each.claim.id: each.kind for each in judge_paper(read_paper("singh"), {})}
    assert {kinds[f"average-{of}"] for of in ("kl", "entropy", "accuracy")} == {"on other people"}
    assert kinds["cifar-10h-kl"] == "claims"


def test_a_count_says_how_many_of_what_it_counts_are_inconclusive(small: Small) -> None:
    cells = tuple(claim(id=name, study=name) for name in ("a", "b", "c"))
    over = claim(
        id="over",
        quantity="count",
        about={"of": ["a", "b", "c"], "counts": "on its side"},
        study="",
        reproduced=(3.0, 3.0),
        in_direction=(2.0, 3.0),
        cannot_fail=True,
    )
    paper = replace_claims(read_paper(small.claims), (*cells, over))
    for high, told in ((0.1, "3 (2 of the 3 inconclusive)"), (-0.1, "3")):
        found = {
            each.study: StudySummary(
                name=each.study,
                study="x",
                rules=paper.rules(each.study),
                answers={
                    each.id: {
                        "asks": each.asks,
                        "measured": measured(-0.3, -0.5, -0.1 if each.id == "a" else high).to_dict(),
                    }
                },
            )
            for each in cells
        }
        judged = judge_paper(paper, found)
        assert claim_cells(judged[-1])[2] == told
        assert [each.part_of for each in judged] == [("over",)] * 3 + [()]
        # What could not have failed is judged, and counts for nothing.
        assert (judged[-1].verdict, judged[-1].kind) == ("reproduced", "not counted")
        assert sum(sum(tally.values()) for tally in counted(judged).values()) == 3


@pytest.mark.parametrize(
    ("value", "percent", "told"),
    [
        (0.0, True, "+0.0 %"),
        (0.0004, True, "+0.04 %"),
        (-0.0004, True, "-0.04 %"),
        (0.0005, True, "+0.1 %"),
        (-0.3, True, "-30.0 %"),
        (0.0, False, "0"),
        (0.0003, False, "0.0003"),
        (-0.0003, False, "-0.0003"),
        (0.0005, False, "0.001"),
        (0.933, False, "0.933"),
        (12.0, False, "12"),
        (242.16, False, "242"),
    ],
)
def test_a_value_that_is_not_nothing_is_not_written_as_nothing(value: float, percent: bool, told: str) -> None:
    assert claim(percent=percent).text_of(value) == told


def test_why_names_a_range_without_ends() -> None:
    anything = judge(claim(in_direction=(-inf, inf)), measured(-0.3, -0.4, -0.2))
    assert anything.why == "our value lies in -0.500 to -0.100, and our interval in all values"
    assert judge(claim(), measured(-0.3, -0.4, -0.2)).why.endswith("our interval in 0 and less")
