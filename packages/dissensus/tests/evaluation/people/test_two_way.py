from __future__ import annotations

import numpy as np
import pytest

from dissensus.evaluation.people.two_way import mean_over_votes, two_way_spread


def test_votes_of_one_person_give_students_interval() -> None:
    from scipy.stats import t

    values = np.random.default_rng(0).normal(size=30)
    ours = mean_over_votes(values, item=np.arange(30), annotator=np.zeros(30, dtype=np.int64))
    low, high = t.interval(0.95, 29, values.mean(), values.std(ddof=1) / np.sqrt(30))
    assert (ours.low, ours.high) == pytest.approx((low, high))


def test_votes_on_one_item_have_no_interval() -> None:
    assert two_way_spread(np.arange(3.0), item=np.zeros(3, dtype=np.int64), annotator=np.arange(3)) is None


def test_people_who_differ_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    item, annotator = (each.ravel() for each in np.meshgrid(np.arange(100), np.arange(6), indexing="ij"))
    alike = rng.normal(size=600)
    apart = alike + np.linspace(-2, 2, 6)[annotator]
    spreads = [two_way_spread(each, item=item, annotator=annotator) for each in (alike, apart)]
    narrow, wide = (spread.half_width() for spread in spreads if spread is not None)
    assert wide > 4 * narrow


def test_the_variance_counts_pairs_of_votes_that_share_an_item_or_a_person_once() -> None:
    """Cameron, Gelbach and Miller's estimate, pair by pair; every item has all 8 people, so that sizes are equal."""
    rng = np.random.default_rng(3)
    item, annotator = (each.ravel() for each in np.meshgrid(np.arange(30), np.arange(8), indexing="ij"))
    values = rng.normal(size=30)[item] + rng.normal(size=8)[annotator] + rng.normal(size=240)
    off = values - values.mean()
    by_item = by_person = own = 0.0
    for v in range(240):
        for w in range(240):
            by_item += off[v] * off[w] * (item[v] == item[w])
            by_person += off[v] * off[w] * (annotator[v] == annotator[w])
            own += off[v] * off[w] * (v == w)
    found = two_way_spread(values, item=item, annotator=annotator)
    assert found is not None
    (of_items, items), (of_people, people) = found.parts
    assert (items, people) == (29, 7)
    assert of_items == pytest.approx(by_item * 30 / 29 / 240**2)
    assert of_people == pytest.approx((by_person * 8 / 7 - own) / 240**2)


@pytest.mark.parametrize(("people", "each"), [(6, 1.0), (12, 0.5), (60, 0.1), (200, 0.05)])
def test_intervals_hold_the_truth_in_about_95_percent_of_panels(people: int, each: float) -> None:
    """Crossed panels, in which everybody judges a random share of 150 items, and some judge far more than others."""
    rng = np.random.default_rng(people)
    items, trials, held = 150, 400, 0
    for _ in range(trials):
        share = np.clip(each * rng.gamma(2.0, 0.5, size=people), 0.01, 1.0) if people > 6 else np.full(people, each)
        item, annotator = np.nonzero(rng.random((items, people)) < share)
        values = 0.5 * rng.normal(size=items)[item] + 0.4 * rng.normal(size=people)[annotator]
        values = values + rng.normal(size=len(item))
        found = mean_over_votes(values, item=item, annotator=annotator)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0 <= found.high
    assert 0.925 <= held / trials <= 0.99, held / trials
