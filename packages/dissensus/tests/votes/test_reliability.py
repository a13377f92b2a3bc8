from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import entr

from dissensus.errors import InputError
from dissensus.votes import reliability
from dissensus.votes.reliability import split_half_reliability
from dissensus.votes.simulate import simulate_responses
from dissensus.votes.table import Votes, votes_from_counts


def panel(items: int, votes: int, *, seed: int = 0, concentration: float = 0.7) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.multinomial(votes, rng.dirichlet(np.full(4, concentration), items))


def spearman_brown(r: float) -> float:
    return 2 * r / (1 + r)


def test_it_is_the_correlation_of_halves_drawn_one_by_one() -> None:
    counts = panel(400, 11)
    rng = np.random.default_rng(1)
    of_entropy, of_probabilities = [], []
    for _ in range(60):
        a = np.stack([rng.multivariate_hypergeometric(row, 5) for row in counts])
        b = np.stack([rng.multivariate_hypergeometric(row, 5) for row in counts - a])
        f, g = entr(a / 5).sum(axis=1), entr(b / 5).sum(axis=1)
        of_entropy.append(np.corrcoef(f, g)[0, 1])
        of_probabilities.append(np.corrcoef((a - a.mean(axis=0)).ravel(), (b - b.mean(axis=0)).ravel())[0, 1])
    found = split_half_reliability(votes_from_counts(counts), splits=60, resamples=0)
    assert found.entropy is not None
    assert found.entropy.value == pytest.approx(spearman_brown(float(np.mean(of_entropy))), abs=0.015)
    assert found.probabilities.value == pytest.approx(spearman_brown(float(np.mean(of_probabilities))), abs=0.005)


def test_it_foretells_how_alike_a_second_panel_is() -> None:
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(3, 0.8), 4000)
    first, second = rng.multinomial(20, truth) / 20, rng.multinomial(20, truth) / 20
    found = split_half_reliability(votes_from_counts((first * 20).round()), resamples=0)
    assert found.entropy is not None
    again = np.corrcoef(entr(first).sum(axis=1), entr(second).sum(axis=1))[0, 1]
    assert found.entropy.value == pytest.approx(again, abs=0.03)
    again = np.corrcoef((first - first.mean(axis=0)).ravel(), (second - second.mean(axis=0)).ravel())[0, 1]
    assert found.probabilities.value == pytest.approx(again, abs=0.01)


def test_votes_that_say_nothing_about_items_are_not_reliable_however_common_a_class_is() -> None:
    counts = np.random.default_rng(0).multinomial(10, [0.9, 0.05, 0.05], 3000)
    found = split_half_reliability(votes_from_counts(counts))
    for each in (found.entropy, found.probabilities):
        assert each is not None
        assert each.low is not None
        assert each.high is not None
        assert each.low < 0.0 < each.high
        assert each.high - each.low < 0.2


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(2, 9)), min_size=2, max_size=9))
def test_unanimity_is_perfectly_reliable_where_items_differ(items: list[tuple[int, int]]) -> None:
    counts = np.zeros((len(items), 3), dtype=np.int64)
    for row, (label, size) in enumerate(items):
        counts[row, label] = size
    found = split_half_reliability(votes_from_counts(counts), splits=3, resamples=10)
    if len({label for label, _ in items}) > 1:
        assert found.probabilities.value == pytest.approx(1.0)
    else:
        assert str(found.probabilities) == "not defined: no variation"
    assert (found.entropy is None) == (sum(size >= 4 for _, size in items) < 2)
    assert found.entropy is None or not found.entropy.defined


def test_the_entropy_of_single_votes_is_no_evidence() -> None:
    found = split_half_reliability(votes_from_counts(panel(50, 3)), resamples=10)
    assert found.entropy is None
    assert 0 < found.probabilities.value < 1


def test_items_with_few_votes_leave_the_entropy_of_the_others_alone() -> None:
    few, many = panel(40, 2, seed=1), panel(40, 12, seed=2)
    both = split_half_reliability(votes_from_counts(np.vstack([few, many])), splits=200, resamples=50)
    alone = split_half_reliability(votes_from_counts(many), splits=200, resamples=50)
    assert both.entropy is not None
    assert alone.entropy is not None
    assert both.entropy.value == pytest.approx(alone.entropy.value, abs=0.05)
    assert both.probabilities.value < alone.probabilities.value


def test_the_votes_of_a_judgement_stay_in_one_half() -> None:
    # Two judgements per item, each of both classes: the halves are equal item by item, so only their
    # being kept whole makes every half the same.
    judgement = np.repeat(np.arange(8, dtype=np.int32), 2)
    votes = Votes(
        item=judgement // 2,
        label=np.tile(np.array([0, 1], np.int32), 8),
        judgement=judgement,
        items=np.arange(4),
        classes=("a", "b"),
    )
    assert str(split_half_reliability(votes, resamples=0).probabilities) == "not defined: no variation"


def test_the_order_of_rows_and_the_size_of_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = np.random.default_rng(0).dirichlet(np.full(3, 0.3), 150)
    votes = simulate_responses(truth, 7, annotators=12, seed=0)
    shuffled = votes.take_judgements(np.random.default_rng(0).permutation(votes.n_judgements))
    whole = split_half_reliability(votes, splits=100, resamples=0)
    monkeypatch.setattr(reliability, "_BLOCK", 50)
    pieces = split_half_reliability(shuffled, splits=100, resamples=0)
    assert whole.entropy is not None
    assert pieces.entropy is not None
    assert pieces.entropy.value == pytest.approx(whole.entropy.value, abs=0.02)
    assert pieces.probabilities.value == pytest.approx(whole.probabilities.value, abs=0.005)


def test_the_interval_holds_the_value_of_many_items_about_as_often_as_it_says() -> None:
    truth = split_half_reliability(votes_from_counts(panel(40_000, 8, seed=99)), splits=10, resamples=0)
    assert truth.entropy is not None
    held = []
    for seed in range(150):
        found = split_half_reliability(votes_from_counts(panel(150, 8, seed=seed)), resamples=150, seed=seed)
        for each, true in ((found.entropy, truth.entropy), (found.probabilities, truth.probabilities)):
            assert each is not None
            assert each.low is not None
            assert each.high is not None
            held.append(each.low <= true.value <= each.high)
    assert 0.88 <= np.mean(held) <= 0.985


def test_the_same_seed_gives_the_same_reliability() -> None:
    votes = votes_from_counts(panel(30, 6))
    assert split_half_reliability(votes, seed=1) == split_half_reliability(votes, seed=1)
    assert split_half_reliability(votes, seed=1) != split_half_reliability(votes, seed=2)


def test_too_little_to_correlate_is_refused() -> None:
    with pytest.raises(InputError, match="0 items have two judgements"):
        split_half_reliability(votes_from_counts([[1, 0], [0, 1]]))
    with pytest.raises(InputError, match="0 splits"):
        split_half_reliability(votes_from_counts([[2, 0], [0, 2]]), splits=0)
