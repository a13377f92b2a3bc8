"""What is said of summaries: ranks over the right sets, and an answer only as firm as the evidence."""

from __future__ import annotations

import re
from dataclasses import replace as replace_summary
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from dissensus_papers.bench.figure import critical_difference_plot
from dissensus_papers.bench.outcome import standings
from dissensus_papers.bench.pages import _comparison, leaderboard, page
from dissensus_papers.bench.protocol import BenchSet, Protocol, read_protocol
from dissensus_papers.papers.measured import rounded
from dissensus_papers.papers.summary import RULER, StudySummary, worth_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

METHODS = ("multipass", "soft", "sls", "mixup", "majority")


def protocol(sets: int, *, cut: frozenset[int] = frozenset()) -> Protocol:
    made = tuple(
        BenchSet(
            name=f"set{n}", kind="text", dataset={}, splits="official", training={}, votes=3 * (n in cut), people=n < 2
        )
        for n in range(sets)
    )
    return replace(read_protocol(), sets=made)


def summary(name: str, scores: Mapping[str, float], *, votes: float = 5.0, seeds: int = 5, **more: Any) -> StudySummary:
    rows = tuple(
        {
            "stratum": "all",
            "items": 100,
            "metric": metric,
            "system": system,
            "baseline": system == "marginal",
            "by_seed": [value] * seeds,
            "mean": value if metric == "soft_nll" else 1 - value,
            "low": value - 0.1,
            "high": value + 0.1,
        }
        for system, value in scores.items()
        for metric in ("soft_nll", "accuracy", "entropy_spearman")
        # A constant has no correlation.
        if not (system == "marginal" and metric == "entropy_spearman")
    )
    worth = dict.fromkeys(scores, "2.0 people [1.0, 3.0]")
    return StudySummary(name=name, study=name, votes=votes, items=100, scores=rows, worth=worth, ruler=RULER, **more)


def in_order(name: str, order: tuple[str, ...] = METHODS, **more: Any) -> StudySummary:
    return summary(name, {**{method: 0.5 + n / 10 for n, method in enumerate(order)}, "marginal": 2.0}, **more)


def test_the_same_order_on_every_set_is_a_firm_answer() -> None:
    found = standings(protocol(12), {f"set{n}": in_order(f"set{n}") for n in range(12)})
    # All few votes are as they were collected: that is said once.
    few, many = found.answers
    assert few.startswith("With few votes (fewer than 10 per item), train with multipass (mean rank 1.00 of 6")
    assert "It is significantly better than mixup, majority and marginal (Nemenyi)." in few
    assert "Nemenyi's test finds no significant difference from soft and sls." in few
    assert "Wilcoxon's test with Holm, against it alone, does tell it apart from soft and sls." in few
    assert "thin" not in few
    assert "no answer" in many
    assert "thin" in many
    ranking = found.comparisons[0].ranking
    assert ranking is not None
    # Scores that are better when higher are ranked the other way round, and a constant is not ranked by correlation.
    assert found.comparisons[0].others["accuracy"]["multipass"] == 1.0
    assert "marginal" not in found.comparisons[0].others["entropy_spearman"]


@pytest.mark.parametrize(
    ("sets", "seeds", "turned", "why"),
    [
        (5, 5, False, "only 5 sets"),
        (8, 2, False, "only 2 seeds"),
        (8, 5, True, "Friedman's test finds no significant difference between the methods"),
    ],
)
def test_thin_evidence_is_called_thin(sets: int, seeds: int, turned: bool, why: str) -> None:
    made = {}
    for n in range(sets):
        order = METHODS[::-1] if turned and n % 2 else METHODS
        scores = {method: 0.5 + place / 10 for place, method in enumerate(order)}
        made[f"set{n}"] = summary(f"set{n}", scores, seeds=seeds)
    few = standings(protocol(sets), made).answers[0]
    assert "the evidence is thin" in few
    assert why in few
    assert "train with" not in few


def test_an_average_is_no_finding_beside_its_parts_and_single_models_are_told_apart() -> None:
    """By soft NLL an ensemble is never behind the mean of what it averages; by accuracy it may be."""
    order = ("soft-ensemble", "multipass", "soft", "sls", "mixup", "majority")
    made = {f"set{n}": in_order(f"set{n}", order) for n in range(12)}
    few = standings(protocol(12), made).answers[0]
    assert "train with soft labels and average the seeds (soft-ensemble: mean rank 1.00 of 7" in few
    assert "no significant difference from multipass." in few
    assert "does tell it apart from multipass." in few
    assert "That it is ahead of soft, whose runs it averages, could not be otherwise (Jensen)." in few
    assert "Of single models multipass comes first (mean rank 2.00), not significantly ahead of the next 2 that" in few
    ranked = replace(protocol(12), comparison=replace(protocol(12).comparison, metric="accuracy"))
    few = standings(ranked, made).answers[0]
    assert "no significant difference from multipass and soft." in few
    assert "Jensen" not in few


def test_it_is_said_whether_one_set_decides() -> None:
    made = {f"set{n}": in_order(f"set{n}") for n in range(3)}
    assert "It stays first whichever set is left out." in standings(protocol(3), made).answers[0]
    made["set1"] = in_order("set1", ("soft", "multipass", *METHODS[2:]))
    # Ranks 1, 2, 1 and 2, 1, 2; and without one of the first's own sets both have the same.
    made["set2"] = in_order("set2", ("multipass", "sls", "soft", *METHODS[3:]))
    found = standings(protocol(3), made)
    assert found.comparisons[0].best_without == {}
    made["set0"] = in_order("set0", ("sls", "soft", "multipass", *METHODS[3:]))
    found = standings(protocol(3), made)
    # Soft has ranks 2, 1, 3; multipass 3, 2, 1; sls 1, 3, 2: all alike until one set is left out.
    assert found.comparisons[0].best_without
    (name, first), *_ = found.comparisons[0].best_without.items()
    assert f"Without {name} {first} comes first." in found.answers[0]
    assert "stays first" not in found.answers[0]


def test_without_a_set_those_are_ranked_that_are_on_all_others() -> None:
    """What lacks one set alone may be the first without it."""
    made = {f"set{n}": in_order(f"set{n}") for n in range(8)}
    made |= {f"set{n}--minilm-fine-tuned": summary(f"set{n}--minilm-fine-tuned", {"soft": 0.1}) for n in range(1, 8)}
    found = standings(protocol(8), made)
    assert found.comparisons[0].best == "multipass"
    assert found.comparisons[0].best_without == {"set0": "minilm-fine-tuned"}
    assert "Without set0 minilm-fine-tuned comes first." in found.answers[0]
    del made["set1--minilm-fine-tuned"]
    assert standings(protocol(8), made).comparisons[0].best_without == {}
    # Of two sets one is left, which decides nothing.
    assert "stays first" not in standings(protocol(2), {name: made[name] for name in ("set0", "set1")}).answers[0]


def test_single_models_of_one_rank_are_first_together() -> None:
    orders = (("soft-ensemble", *METHODS), ("soft-ensemble", "soft", "multipass", *METHODS[2:]))
    few = standings(protocol(12), {f"set{n}": in_order(f"set{n}", orders[n % 2]) for n in range(12)}).answers[0]
    assert "Of single models multipass and soft come first (mean rank 2.50)" in few


def test_a_quick_run_is_thin_whatever_its_seeds() -> None:
    few = standings(protocol(12), {f"set{n}": in_order(f"set{n}", quick=True) for n in range(12)}).answers[0]
    assert "the evidence is thin: the runs were cut short." in few


def test_sets_are_parted_by_votes_and_a_cut_set_counts_among_few_votes_alone() -> None:
    votes = [3.0, 9.9, 10.0, 60.0, 3.0]
    made = {f"set{n}": in_order(f"set{n}", votes=each) for n, each in enumerate(votes)}
    found = {
        each.slug: each.ranking and each.ranking.sets
        for each in standings(protocol(5, cut=frozenset({4})), made).comparisons
    }
    assert found["all"] == ("set0", "set1", "set2", "set3")
    assert found["few"] == ("set0", "set1", "set4")
    assert found["many"] == ("set2", "set3")


def test_sets_of_a_kind_apart_change_no_ranking_of_the_others() -> None:
    """They have few votes and many, lack a method, turn the order of the rest, and one is cut."""
    asked = protocol(12)
    made = {f"set{n}": in_order(f"set{n}", votes=5.0 + 10 * (n % 2)) for n in range(12)}
    made |= {f"set{n}--multi-task": summary(f"set{n}--multi-task", {"soft": 0.1}) for n in range(12)}
    made |= {f"set{n}--minilm-fine-tuned": summary(f"set{n}--minilm-fine-tuned", {"soft": 0.2}) for n in range(12)}
    before = standings(asked, made)
    pictures = tuple(replace(one, name=f"picture{n}", kind="images") for n, one in enumerate(asked.sets[:3]))
    pictures = (*pictures[:2], replace(pictures[2], votes=3))
    made |= {f"picture{n}": in_order(f"picture{n}", METHODS[:0:-1], votes=3.0 + 40 * n) for n in range(3)}
    for name in ("multi-task", "minilm-fine-tuned"):
        made[f"picture0--{name}"] = summary(f"picture0--{name}", {"soft": 9.0})
    after = standings(replace(asked, sets=(*asked.sets, *pictures)), made)
    *others, images = after.comparisons
    assert tuple(others) == before.comparisons
    assert [each.slug for each in others] == ["all", "few", "uncut", "many", "people", "fine-tuned"]
    assert after.answers == before.answers
    assert images.slug == "images"
    assert images.title == "sets of images, learnt from pixels on a short schedule (60 and 12 epochs)"
    assert images.ranking is not None
    assert images.ranking.sets == ("picture0", "picture1")
    assert images.best == "majority"
    assert {one.name for one in after.sets if one.to_dict()["apart"]} == {"picture0", "picture1", "picture2"}


@pytest.mark.parametrize(("on", "ahead", "said"), [(7, 4, True), (6, 3, False), (5, 5, False), (8, 8, False)])
def test_what_is_not_on_all_sets_is_said_to_be_ahead_on_most_of_its_own(on: int, ahead: int, said: bool) -> None:
    """Where these are as many as a comparison needs; on all sets it is ranked, and from outside it is not spoken of."""
    made = {f"set{n}": in_order(f"set{n}") for n in range(8)}
    rows = {f"set{n}--minilm-fine-tuned": {"soft": 0.1 if n < ahead else 9.0} for n in range(on)}
    made |= {name: summary(name, row) for name, row in rows.items()}
    answer = standings(protocol(8), made).answers[0]
    told = f"minilm-fine-tuned, which is not on all of these sets, is ahead of multipass on {ahead} of the {on} that"
    assert (told in answer) == said
    made |= {name: replace_summary(made[name], external="a system") for name in rows}
    assert "not on all of these sets" not in standings(protocol(8), made).answers[0]


def test_a_control_is_never_the_answer_but_is_said_to_be_ahead() -> None:
    order = ("noisy-soft", *METHODS)
    found = standings(protocol(12), {f"set{n}": in_order(f"set{n}", order) for n in range(12)})
    assert "train with multipass" in found.answers[0]
    assert "Ahead of it stands a control: noisy-soft." in found.answers[0]
    # One that is significantly ahead of the answer is not among those that the answer is better than.
    many = ("noisy-soft", *(f"noisy-soft-{n}" for n in range(9)), *METHODS)
    stated = replace(protocol(12), controls=many[:10], deliveries=(*protocol(12).deliveries, *many[:10]))
    (few, _) = standings(stated, {f"set{n}": in_order(f"set{n}", many) for n in range(12)}).answers
    assert "significantly better" not in few
    assert "Ahead of it stands a control: noisy-soft, noisy-soft-0" in few
    # A constant that does not differ from the answer is not passed over in silence either.
    short = {f"set{n}": in_order(f"set{n}") for n in range(2)}
    near = "Nemenyi's test finds no significant difference from soft, sls, mixup, majority and marginal."
    assert near in standings(protocol(2), short).answers[0]


def test_a_method_of_its_own_study_is_in_the_table_under_its_name_and_ranked_where_it_is_on_all_sets() -> None:
    made = {f"set{n}": in_order(f"set{n}") for n in range(8)}
    made |= {f"set{n}--mine": summary(f"set{n}--mine", {"soft": 0.1, "marginal": 9.0}) for n in range(8)}
    made["set0--annotator-bias"] = summary("set0--annotator-bias", {"votes": 0.2})
    made["set1--annotator-bias"] = StudySummary(name="set1--annotator-bias", study="", missing="there is no such model")
    found = standings(protocol(8), made)
    first = found.sets[0].rows
    assert first["mine"].scores["soft_nll"].value == 0.1
    assert first["soft"].scores["soft_nll"].value == 0.6
    assert first["marginal"].scores["soft_nll"].value == 2.0
    ranking = found.comparisons[0].ranking
    assert ranking is not None
    assert ranking.methods[0] == "mine"
    assert found.comparisons[0].left_out == ("annotator-bias",)
    assert "set1--annotator-bias: there is no such model." in found.not_run
    assert "set0--crowd-layer: it was not run yet." in found.not_run
    assert "set0--minilm-fine-tuned: it was not run yet, and needs a GPU." in found.not_run


def test_sets_that_were_not_run_are_listed() -> None:
    found = standings(
        protocol(3), {"set0": in_order("set0"), "set1": StudySummary(name="set1", study="", missing="no")}
    )
    assert [each.name for each in found.sets] == ["set0"]
    assert {"set1: no.", "set2: it was not run yet."} <= set(found.not_run)
    # What was asked for and is in no protocol is no run.
    assert found.protocol.absent
    assert not set(found.protocol.absent) & set(found.not_run)


def test_what_an_earlier_ruler_said_is_not_printed() -> None:
    old = StudySummary(name="a", study="a", worth={"soft": "2.3 people"})
    assert worth_of(old, "soft") == "not yet rerun"
    assert (
        worth_of(StudySummary(name="a", study="a", worth={"soft": "0.9 people"}, ruler=RULER), "soft") == "0.9 people"
    )


def test_ordered_sets_are_ranked_by_the_ranked_probability_score() -> None:
    """Where it was kept: on one set the order by RPS is the other way round."""
    kept = in_order("set0")
    scaled = [
        {**row, "metric": "rps", "mean": 2 - row["mean"], "low": None, "high": None}
        for row in kept.scores
        if row["metric"] == "soft_nll"
    ]
    summaries = {"set0": replace_summary(kept, scores=(*kept.scores, *scaled)), "set1": in_order("set1")}
    stated = protocol(2)
    ordered = replace(stated, sets=tuple(replace(each, ordered=True) for each in stated.sets))
    found = standings(ordered, summaries)
    assert [each.metric for each in found.sets] == ["rps", "soft_nll"]
    ranking = found.comparisons[0].ranking
    assert ranking is not None
    assert len(set(ranking.mean_ranks)) == 1
    assert {each.metric for each in standings(stated, summaries).sets} == {"soft_nll"}
    # It takes the place of soft NLL, and of nothing else that a protocol asks for.
    other = replace(ordered, comparison=replace(ordered.comparison, metric="accuracy"))
    assert {each.metric for each in standings(other, summaries).sets} == {"accuracy"}
    assert ["ranked probability score where classes" in told(each, summaries) for each in (ordered, other)] == [
        True,
        False,
    ]


def test_what_is_handed_in_does_not_change_what_the_others_are_ranked_by() -> None:
    """Neither does its one prediction make the answer thin for want of seeds."""
    asked = protocol(12)
    asked = replace(asked, sets=tuple(replace(one, ordered=True) for one in asked.sets))
    kept = {f"set{n}": in_order(f"set{n}") for n in range(12)}
    before = standings(asked, kept)
    mine = summary("set0--Mine", {"Mine": 0.1}, seeds=1, external="Somebody's.")
    rows = tuple(row | {"metric": "rps"} for row in mine.scores if row["metric"] == "soft_nll")
    after = standings(asked, kept | {"set0--Mine": replace_summary(mine, scores=mine.scores + rows)})
    assert after.answers == before.answers
    assert after.sets[0].metric == "soft_nll"
    assert after.sets[0].rows["Mine"].external


def with_outside(scores: Mapping[str, float], *, cautioned: Mapping[str, int] | None = None) -> dict[str, StudySummary]:
    """Eight sets in one order, and systems from outside; some with a caution on one of them."""
    made = {f"set{n}": in_order(f"set{n}") for n in range(8)}
    for (name, score), n in product(scores.items(), range(8)):
        cautions = ("it seems to know the votes",) if (cautioned or {}).get(name) == n else ()
        made[f"set{n}--{name}"] = summary(f"set{n}--{name}", {name: score}, external="Theirs.", cautions=cautions)
    return made


def test_what_was_handed_in_is_placed_beside_the_others_and_moves_nobody() -> None:
    """However many rows come from outside, and whatever they score, no rank, no test and no answer is another."""
    before, found = (standings(protocol(8), with_outside(scores)) for scores in ({}, {"Ours": 0.1, "Worse": 1.5}))
    few, over = found.answers[0], found.comparisons[1]
    outside = " Ahead of it stands Ours, which was handed in from outside; what it learnt from is not known here."
    assert few == before.answers[0] + outside
    assert "train with multipass (mean rank 1.00 of 6" in few
    for then, now in zip(before.comparisons, found.comparisons, strict=True):
        assert replace_summary(now, outside={}) == then
    assert over.outside == {"Ours": 1.0, "Worse": 6.0}
    assert set(over.p_holm) == {*METHODS, "marginal"} - {"multipass"}
    ranks = found.sets[0].ranks
    assert {name: ranks[name] for name in before.sets[0].ranks} == before.sets[0].ranks
    assert (ranks["Ours"], ranks["Worse"]) == (1.0, 6.0)
    assert "Worse has rank 6 of 7 by" in found.sets[0].row("Worse")
    assert "multipass has rank 1 of 6 by" in found.sets[0].row("multipass")
    told = "Handed in from outside, with the mean rank that each would have; they move nobody: Ours 1.00, Worse 6.00."
    assert any(told in inside.text for each in _comparison(over, "") for inside in each.inside)
    both = standings(protocol(8), with_outside({"Ours": 0.1, "Theirs": 0.2})).answers[0]
    assert (
        "Ahead of it stand Ours and Theirs, which were handed in from outside; what they learnt from is not known"
        in both
    )
    # Beside controls there may be nothing else.
    alone = replace(protocol(8), controls=(*METHODS, "marginal"))
    assert "no answer: only controls were run here" in standings(alone, with_outside({"Ours": 0.1})).answers[0]


def test_what_has_a_caution_is_not_ranked_and_moves_nobody() -> None:
    """On one set of a comparison it is enough; where the set is in none, nothing is amiss."""
    asked = protocol(8, cut=frozenset({7}))
    before = standings(asked, with_outside({}))
    for on in (0, 7):
        found = standings(asked, with_outside({"Cheater": 0.1}, cautioned={"Cheater": on}))
        assert found.answers[0] == before.answers[0]
        for then, now in zip(before.comparisons, found.comparisons, strict=True):
            met = any(
                each.rows["Cheater"].cautions for each in found.sets if now.ranking and each.name in now.ranking.sets
            )
            assert now.cautioned == (("Cheater",) if met else ())
            assert not now.left_out
            assert not met or replace_summary(now, cautioned=()) == then
        assert "Cheater" not in found.sets[on].ranks
        assert found.sets[on].ranks == before.sets[on].ranks
        assert found.sets[3].ranks["Cheater"] == 1
        assert "set3: Cheater has rank 1 of 7 by" in found.sets[3].row("Cheater")
        assert f"set{on}: Cheater has no rank, because of a caution, by soft NLL 0.100" in found.sets[on].row("Cheater")
    # Also where there is too little to rank.
    few = standings(protocol(1), with_outside({"Cheater": 0.1}, cautioned={"Cheater": 0}))
    assert few.comparisons[0].cautioned == ("Cheater",)


def test_pages_say_who_has_no_rank_for_a_caution() -> None:
    result = standings(protocol(8), with_outside({"Cheater": 0.1, "Clean": 0.2}, cautioned={"Cheater": 2}))
    folded = [inside.text for over in result.comparisons for each in _comparison(over, "") for inside in each.inside]
    assert any(text.endswith("Not ranked, because of a caution: Cheater.") for text in folded)
    assert not any("not on all of these sets: Cheater" in text for text in folded)
    few = standings(protocol(1), with_outside({"Cheater": 0.1}, cautioned={"Cheater": 0})).comparisons[0]
    assert _comparison(few, "")[1].text.endswith("Not ranked, because of a caution: Cheater.")


def test_the_leaderboard_ranks_nothing_with_a_caution(browser: Any, tmp_path: Path) -> None:
    result = standings(protocol(8), with_outside({"Cheater": 0.1, "Clean": 0.2}, cautioned={"Cheater": 2}))
    (tmp_path / "board.html").write_text(leaderboard(rounded(result.to_dict())), encoding="utf-8")
    tab = browser.new_page(viewport={"width": 390, "height": 800})
    tab.goto((tmp_path / "board.html").as_uri())
    rows = tab.evaluate(
        """[...document.querySelectorAll('#board tbody tr')].map(row =>
            [row.querySelector('a').innerText, row.cells[1].innerText, row.cells[4].className])"""
    )
    ranks = {name: (rank.strip(), best) for name, rank, best in rows}
    assert ranks["Cheater"] == ("-", "")
    assert ranks["Clean"] == ("1.00", "best")
    assert ranks["multipass"] == ("1.00", "")
    # Row lines go on below the first cells, which stay where they are.
    assert tab.evaluate("getComputedStyle(document.getElementById('board')).borderCollapse") == "separate"
    assert "it scrolls sideways" in tab.inner_text("main")
    tab.close()


def test_the_leaderboard_takes_any_name_and_is_sorted_by_a_click_beside_the_word_or_by_keyboard(
    browser: Any, tmp_path: Path
) -> None:
    """Every object of JavaScript has a constructor, a set may be called as a column, and headings are wide."""
    made = {f"set{n}": in_order(f"set{n}") for n in range(8)}
    made["set0--constructor"] = summary("set0--constructor", {"constructor": 0.1}, seeds=1, external="Somebody's.")
    asked = protocol(8)
    asked = replace(asked, sets=(replace(asked.sets[0], name="mean"), *asked.sets[1:]))
    of_mean = {"mean": "set0", "mean--constructor": "set0--constructor"}
    made |= {name: replace_summary(made[old], name=name, study=name) for name, old in of_mean.items()}
    (tmp_path / "board.html").write_text(leaderboard(rounded(standings(asked, made).to_dict())), encoding="utf-8")
    tab = browser.new_page()
    wrong: list[str] = []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.goto((tmp_path / "board.html").as_uri())

    def cells(column: int) -> list[str]:
        read = f"[...document.querySelectorAll('#board tbody tr')].map(row => row.cells[{column}].innerText.trim())"
        return [str(cell) for cell in tab.evaluate(read)]

    names = tab.locator("#board tbody a").all_inner_texts()
    assert dict(zip(names, cells(2), strict=True))["constructor"] == "0.100"
    # The third column is of the set called mean, and not the mean rank; what is clicked is the edge of its heading.
    heading = tab.locator("#board th").nth(2)
    heading.click(position={"x": 2, "y": 2})
    assert cells(2)[:2] == ["0.100", "0.500"]
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.locator("button").focus()
    tab.keyboard.press("Enter")
    assert tab.locator("#board th").nth(2).get_attribute("aria-sort") == "descending"
    assert tab.evaluate("document.activeElement.closest('th').cellIndex") == 2
    tab.keyboard.press("Enter")
    assert cells(2)[:2] == ["0.100", "0.500"]
    assert not wrong
    tab.close()


def told(asked: Protocol, summaries: Mapping[str, StudySummary]) -> str:
    """All that the page says, folded or not."""
    blocks = page(standings(asked, summaries), summaries, {"all": "<svg/>"})
    return "\n".join(one.text for block in blocks for one in (block, *block.inside))


@pytest.mark.parametrize(("sets", "tells"), [(5, False), (6, False), (7, False), (8, True), (12, True)])
def test_a_column_that_can_tell_nothing_is_called_so(sets: int, tells: bool) -> None:
    """With five other methods, 2 / 2^n times five is below 5 % from eight sets on."""
    made = {f"set{n}": in_order(f"set{n}") for n in range(sets)}
    said = told(protocol(sets), made)
    over = standings(protocol(sets), made).comparisons[0]
    assert (min(over.p_holm.values()) < 0.05) == tells
    assert ("Holm can tell nothing here" in said) == (not tells)
    assert "The thin line to the right of each dot is one critical difference long" in said


def test_lines_of_the_plot_are_as_long_as_the_critical_difference() -> None:
    """All of them, also where they end right of the last rank; and all lie on the plot."""
    for sets in (2, 8):
        ranking = (
            standings(protocol(sets), {f"set{n}": in_order(f"set{n}") for n in range(sets)}).comparisons[0].ranking
        )
        assert ranking is not None
        svg = critical_difference_plot(ranking, title="All")
        lines = [
            tuple(map(float, ends)) for ends in re.findall(r'x1="([\d.]+)" x2="([\d.]+)" [^/]*stroke="#59616b"/>', svg)
        ]
        assert len(lines) == len(ranking.methods)
        lengths = {round(last - first) for first, last in lines}
        assert max(lengths) - min(lengths) <= 1
        width = re.search(r'width="([\d.]+)"', svg)
        assert width is not None
        assert max(last for _, last in lines) < float(width[1])
        step = (lines[-1][0] - lines[0][0]) / (ranking.mean_ranks[-1] - ranking.mean_ranks[0])
        assert lines[0][1] - lines[0][0] == pytest.approx(step * ranking.critical_difference, abs=0.5)
