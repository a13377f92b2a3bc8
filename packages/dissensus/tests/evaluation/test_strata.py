from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus.evaluation.comparison.strata import (
    ALL,
    by_agreement,
    by_attribute,
    by_class,
    by_column,
    by_entropy,
    halves_of,
    make_strata,
    rows_of,
)
from dissensus.evaluation.finite_panel.panel import panel_of
from dissensus.labels.labelling import label
from dissensus.labels.schemes import frequency
from dissensus.votes.reading import read_votes
from dissensus.votes.table import Annotators, Votes, votes_from_counts

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.labels.distribution import LabelDistribution


def people(seed: int = 0, items: int = 40, votes: int = 4) -> LabelDistribution:
    counts = np.random.default_rng(seed).multinomial(votes, [0.7, 0.2, 0.1], size=items)
    return frequency(votes_from_counts(counts, classes=("cat", "dog", "owl")))


@given(st.integers(0, 10**6), st.sampled_from(["agreement", "entropy", "class"]))
def test_all_items_come_first_and_the_others_divide_them(seed: int, by: str) -> None:
    human = people(seed)
    first, *others = make_strata(human, by)
    assert first.name == ALL
    assert first.items.all()
    np.testing.assert_array_equal(np.sum([each.items for each in others], axis=0), 1)


def test_agreement_is_unanimous_or_varied() -> None:
    human = frequency(votes_from_counts([[3, 0], [2, 1]]))
    assert {each.name: each.items.tolist() for each in by_agreement(human)} == {
        "all": [True, True],
        "unanimous": [True, False],
        "varied": [False, True],
    }


def test_entropy_parts_keep_equal_entropies_together_and_may_be_empty() -> None:
    human = frequency(votes_from_counts([[4, 0, 0], [0, 4, 0], [0, 0, 4], [3, 1, 0], [0, 1, 3], [2, 2, 0]]))
    names = [each.name for each in by_entropy(human, parts=3)]
    assert names == ["all", "entropy 1/3", "entropy 2/3", "entropy 3/3"]
    _, low, middle, high = by_entropy(human, parts=3)
    assert low.items.tolist() == [True, True, True, False, False, False]
    assert middle.items.tolist() == [False, False, False, True, True, False]
    assert high.items.tolist() == [False, False, False, False, False, True]
    assert [each.items.sum() for each in by_entropy(human, parts=6)] == [6, 3, 0, 0, 2, 0, 1]


def test_classes_are_majorities_and_the_first_of_tied_ones() -> None:
    human = frequency(votes_from_counts([[3, 0], [1, 2], [1, 1]], classes=("cat", "dog")))
    _, cat, dog = by_class(human)
    assert (cat.name, cat.items.tolist()) == ("cat", [True, False, True])
    assert dog.items.tolist() == [False, True, False]


@given(st.integers(0, 10**6), st.integers(4, 9))
def test_two_halves_are_all_the_votes_of_each_item_with_two_or_more(seed: int, votes: int) -> None:
    human = people(seed, votes=votes)
    halves = halves_of(human, panel_of(human), seed=seed)
    assert not isinstance(halves, str)
    mass = sum(half.probabilities * half.panel_size[:, None] for half in halves)
    np.testing.assert_allclose(mass, human.counts)
    assert [half.panel_size[0] for half in halves] == [votes // 2, votes - votes // 2]


def test_judgements_of_several_votes_are_divided_whole() -> None:
    rng = np.random.default_rng(0)
    votes = Votes(
        item=np.repeat(np.arange(20, dtype=np.int32), 12),
        label=np.tile(np.array([0, 1, 0, 2, 1, 2], dtype=np.int32), 40),
        judgement=np.repeat(np.arange(120, dtype=np.int32), 2),
        items=np.arange(20),
        classes=("cat", "dog", "owl"),
        annotators=Annotators(np.repeat(rng.integers(0, 9, 120).astype(np.int32), 2), np.arange(9)),
    )
    human = label(votes, "equal-weighted")
    halves = halves_of(human, panel_of(human, votes), seed=0)
    assert not isinstance(halves, str)
    one, other = halves
    np.testing.assert_allclose((one.probabilities + other.probabilities) / 2, human.probabilities)
    # Three judgements of two votes with half the weight each: sixths, and never all of one class.
    assert not one.unanimous.any()
    np.testing.assert_allclose(6 * one.probabilities, np.rint(6 * one.probabilities), atol=1e-9)
    assert len(np.unique(one.probabilities.round(6), axis=0)) > 1


def test_items_of_fewer_than_four_votes_are_not_divided() -> None:
    human = people(votes=3)
    assert halves_of(human, panel_of(human), seed=0) == "the median item has 3 votes, and 4 are needed"


@pytest.mark.parametrize("by", ["agreement", "entropy", "class"])
def test_the_votes_that_choose_an_item_are_not_those_that_are_scored(by: str) -> None:
    human = people(items=200, votes=7)
    halves = halves_of(human, panel_of(human), seed=0)
    assert not isinstance(halves, str)
    one, other = halves
    strata = make_strata(human, by)[1:]
    seen = np.zeros(200)
    for stratum in strata:
        rows = rows_of(stratum, human, halves)
        assert stratum.rule is not None
        for chosen, scored in ((stratum.rule(one), other), (stratum.rule(other), one)):
            for item in np.flatnonzero(chosen):
                assert (rows.human[rows.item == item] == scored.probabilities[item]).all(axis=1).any()
        np.add.at(seen, rows.item, 1)
    # Each item stands in two strata, or twice in one.
    np.testing.assert_array_equal(seen, 2)


@pytest.mark.parametrize("by", ["agreement", "entropy", "class"])
@pytest.mark.parametrize("seed", range(6))
def test_strata_that_halves_of_the_votes_choose_hold_no_more_items_than_there_are(seed: int, by: str) -> None:
    human = people(seed, items=301, votes=6)
    halves = halves_of(human, panel_of(human), seed=seed)
    rows = [rows_of(stratum, human, halves) for stratum in make_strata(human, by)[1:]]
    assert sum(row.items for row in rows) <= 301
    assert all(row.items > 0 for row in rows if len(row.item))


def test_any_column_gives_strata() -> None:
    human = people(items=3)
    _, *made = by_column(human, ["night", "day", "night"])
    assert [(each.name, each.items.tolist()) for each in made] == [
        ("day", [False, True, False]),
        ("night", [True, False, True]),
    ]
    assert [each.name for each in by_column(human, [10, 9, 10])] == ["all", "9", "10"]
    with pytest.raises(InputError, match="one value per item"):
        by_column(human, ["night"])
    with pytest.raises(InputError, match="NaN"):
        by_column(human, [1.0, np.nan, 2.0])
    with pytest.raises(InputError, match="agreement, entropy, class"):
        make_strata(human, "colour")


def panel_of_two_countries() -> Votes:
    """Two items; the French vote on both, the Germans on the second only, and nobody Italian at all."""
    return Votes(
        item=np.array([0, 0, 1, 1, 1], dtype=np.int32),
        label=np.array([0, 1, 0, 1, 1], dtype=np.int32),
        items=np.array([7, 8]),
        classes=("no", "yes"),
        annotators=Annotators(
            np.array([0, 1, 0, 2, 2], dtype=np.int32),
            np.array(["anne", "aude", "bernd", "carla"], dtype=np.dtypes.StringDType()),
            {"country": np.array(["F", "F", "D", "I"], dtype=np.dtypes.StringDType())},
        ),
    )


def test_an_annotator_attribute_holds_items_against_the_votes_of_one_group() -> None:
    votes = panel_of_two_countries()
    everyone, germans, french = by_attribute(frequency(votes), votes, "country", least=1)
    assert everyone.human is None
    assert germans.items.tolist() == [False, True]
    assert germans.human is not None
    assert germans.human.probabilities.tolist() == [[0.0, 1.0]]
    assert french.human is not None
    assert french.human.probabilities.tolist() == [[0.5, 0.5], [1.0, 0.0]]
    assert "1.5 judgements per item, not 2.5" in french.note
    with pytest.raises(InputError, match="no attribute 'age'"):
        by_attribute(frequency(votes), votes, "age", least=1)


def test_a_group_of_too_few_people_is_no_stratum() -> None:
    votes = panel_of_two_countries()
    assert len(by_attribute(frequency(votes), votes, "country")) == 1
    assert [each.name for each in by_attribute(frequency(votes), votes, "country", least=2)] == ["all"]


def test_a_group_is_matched_to_evaluated_items_in_any_order() -> None:
    votes = panel_of_two_countries()
    human = frequency(votes).take(np.array([1, 0]))
    french = by_attribute(human, votes, "country", least=1)[2]
    assert french.human is not None
    assert french.human.items.tolist() == [8, 7]


def test_groups_of_real_annotators(data: Path) -> None:
    votes = read_votes(data / "popquorn" / "offensiveness" / "raw_data.csv")
    human = frequency(votes)
    made = by_attribute(human, votes, "gender", least=1)
    judgements = sum(int(each.human.panel_size.sum()) for each in made if each.human is not None)
    assert judgements == human.panel_size.sum()
    assert len(made) > 2
