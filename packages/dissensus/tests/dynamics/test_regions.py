from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus.dynamics import DataMap, data_map, regions_by_rank, regions_by_rule
from dissensus.errors import InputError
from tests.dynamics.runs import people, recorded


def of(confidence: list[float], variability: list[float], correctness: list[float] | None = None) -> DataMap:
    zero = np.zeros(len(confidence))
    return DataMap(
        items=np.arange(len(confidence)),
        tracked="labels",
        confidence=np.array(confidence),
        variability=np.array(variability),
        correctness=zero if correctness is None else np.array(correctness),
        across_seeds=zero,
        within_runs=np.array(variability) ** 2,
        seeds=1,
        epochs=5,
    )


def test_regions_are_the_ends_of_the_two_axes() -> None:
    made = regions_by_rank(of([0.9, 0.8, 0.5, 0.4, 0.1, 0.2], [0.0, 0.1, 0.4, 0.3, 0.1, 0.2]), fraction=1 / 3)
    assert made.name.tolist() == ["easy", "easy", "ambiguous", "ambiguous", "hard", "hard"]


def test_an_item_in_two_regions_is_named_ambiguous_first_then_hard() -> None:
    made = regions_by_rank(of([0.9, 0.5, 0.1], [0.1, 0.2, 0.3]), fraction=2 / 3)
    assert made.easy.tolist() == [True, True, False]
    assert made.ambiguous.tolist() == [False, True, True]
    assert made.hard.tolist() == [False, True, True]
    assert made.name.tolist() == ["easy", "ambiguous", "ambiguous"]
    both = regions_by_rank(of([0.9, 0.5, 0.1, 0.6], [0.1, 0.0, 0.3, 0.3]), fraction=0.75)
    assert (both.easy & both.hard).tolist() == [False, True, False, True]
    assert both.name.tolist() == ["ambiguous", "hard", "ambiguous", "ambiguous"]


@given(seed=st.integers(0, 1000), fraction=st.sampled_from([0.01, 0.05, 0.1, 0.1667, 0.25, 0.3319, 0.5, 0.75, 1.0]))
def test_each_region_holds_the_share_that_ranks_first(seed: int, fraction: float) -> None:
    made = data_map(recorded(seed=seed), people(seed=seed))
    regions = regions_by_rank(made, fraction=fraction)
    size = int(np.ceil(fraction * 40))
    for chosen, value in (
        (regions.easy, made.confidence),
        (regions.ambiguous, made.variability),
        (regions.hard, -made.confidence),
    ):
        assert chosen.sum() == size
        assert size == 40 or value[chosen].min() >= value[~chosen].max() - 1e-12


def test_a_fraction_is_not_rounded_up_by_a_hair() -> None:
    made = of(np.linspace(0, 1, 100).tolist(), [0.1] * 100)
    assert 0.07 * 100 > 7
    assert regions_by_rank(made, fraction=0.07).easy.sum() == 7


@given(seed=st.integers(0, 1000), names=st.sampled_from(["numbers", "text"]))
def test_ties_do_not_depend_on_the_order_of_items(seed: int, names: str) -> None:
    rng = np.random.default_rng(seed)
    made = of(rng.choice([0.0, 0.5, 1.0], 30).tolist(), rng.choice([0.0, 0.25], 30).tolist())
    if names == "text":
        made = replace(made, items=made.items.astype(np.dtypes.StringDType()))
    order = rng.permutation(30)
    moved = replace(
        made,
        **{
            axis: getattr(made, axis)[order]
            for axis in ("items", "confidence", "variability", "correctness", "across_seeds", "within_runs")
        },
    )
    np.testing.assert_array_equal(regions_by_rank(moved).name, regions_by_rank(made).name[order])


@pytest.mark.parametrize(
    ("region", "first", "axes"),
    [
        # Two items tie on the axis that a region ranks by: one of them is in it by the next axis, or the one after.
        ("easy", 1, {"confidence": (1.0, 1.0), "variability": (0.2, 0.1), "correctness": (1.0, 0.9)}),
        ("easy", 1, {"confidence": (1.0, 1.0), "variability": (0.2, 0.2), "correctness": (0.9, 1.0)}),
        ("ambiguous", 1, {"variability": (0.3, 0.3), "confidence": (0.9, 0.6), "correctness": (0.5, 0.9)}),
        ("ambiguous", 1, {"variability": (0.3, 0.3), "confidence": (0.1, 0.4), "correctness": (0.5, 0.9)}),
        ("ambiguous", 1, {"variability": (0.3, 0.3), "confidence": (0.6, 0.6), "correctness": (0.9, 0.6)}),
        ("ambiguous", 1, {"variability": (0.3, 0.3), "confidence": (0.6, 0.6), "correctness": (0.1, 0.4)}),
        ("hard", 1, {"confidence": (0.0, 0.0), "variability": (0.2, 0.1), "correctness": (0.0, 0.1)}),
        ("hard", 1, {"confidence": (0.0, 0.0), "variability": (0.2, 0.2), "correctness": (0.1, 0.0)}),
        # And where they tie on all axes, by name.
        *(
            (region, 0, {"confidence": (0.5, 0.5), "variability": (0.2, 0.2), "correctness": (0.5, 0.5)})
            for region in ("easy", "ambiguous", "hard")
        ),
    ],
)
def test_ties_are_decided_by_the_other_axes_in_turn_and_then_by_name(
    region: str, first: int, axes: dict[str, tuple[float, float]]
) -> None:
    """Easy: low variability, high correctness. Ambiguous: both near a half. Hard: low variability, low correctness."""
    made = of(**{axis: list(values) for axis, values in axes.items()})
    chosen = getattr(regions_by_rank(made, fraction=0.5), region)
    assert chosen.tolist() == [place == first for place in range(2)]


def test_a_rule_is_kept_exactly_on_every_axis() -> None:
    made = of([0.8, 0.79, 0.3, 0.31], [0.2, 0.19, 0.0, 0.5])
    found = regions_by_rule(made, easy="confidence >= 0.8", ambiguous="variability>=.2", hard="confidence <= .3")
    assert found.easy.tolist() == [True, False, False, False]
    assert found.ambiguous.tolist() == [True, False, False, True]
    assert found.hard.tolist() == [False, False, True, False]
    assert found.name.tolist() == ["ambiguous", "other", "hard", "ambiguous"]
    strict = regions_by_rule(made, easy="confidence > 0.8", hard="confidence < .3")
    assert not strict.easy.any()
    assert not strict.hard.any()
    assert not strict.ambiguous.any()


def test_rules_of_two_axes_are_joined_and_binds_before_or() -> None:
    made = of([0.95, 0.95, 0.2, 0.1], [0.05, 0.3, 0.05, 0.3], [1.0, 1.0, 0.0, 0.1])
    found = regions_by_rule(
        made,
        easy="confidence > .9 & variability < .1",
        ambiguous="variability > 0.25 & confidence > 0.9 | correctness > 2",
        hard="correctness < .2 & variability < .1",
    )
    assert found.easy.tolist() == [True, False, False, False]
    assert found.ambiguous.tolist() == [False, True, False, False]
    assert found.hard.tolist() == [False, False, True, False]
    either = regions_by_rule(made, easy="confidence < .15 | confidence > .9 & variability < .1")
    assert either.easy.tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    "rule",
    ["confidence", "confidence > high", "loss < 1", "__import__('os') > 1", "confidence > .9 &", "confidence == 1"],
)
def test_a_rule_that_is_none_is_refused_and_never_run(rule: str) -> None:
    with pytest.raises(InputError, match="in the rule of hard is no comparison; write confidence, variability"):
        regions_by_rule(of([0.5], [0.1]), hard=rule)


def test_impossible_regions_are_refused() -> None:
    made = of([0.5], [0.1])
    with pytest.raises(InputError, match="a fraction of 0; give one above 0"):
        regions_by_rank(made, fraction=0)
    with pytest.raises(InputError, match="no rule is given"):
        regions_by_rule(made)
