from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from statsmodels.stats import inter_rater

from dissensus.bootstrap import distinct_rows, resampled_weights
from dissensus.errors import InputError
from dissensus.votes.agreement import (
    TITLES,
    agreement,
    class_alpha,
    class_mass,
    fleiss_kappa,
    gwet_ac1,
    interval_over,
    krippendorff_alpha,
    pairwise_agreement,
)
from dissensus.votes.reading import read_votes
from dissensus.votes.simulate import simulate_responses, simulate_votes
from dissensus.votes.table import Annotators, Votes, votes_from_counts
from tests.votes.popquorn import popquorn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dissensus.bootstrap import Estimate
    from dissensus.votes.agreement import Level

LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")

STATISTICS: dict[str, Callable[..., Estimate]] = {
    "krippendorff_alpha_nominal": krippendorff_alpha,
    "krippendorff_alpha_ordinal": lambda votes, **options: krippendorff_alpha(votes, level="ordinal", **options),
    "krippendorff_alpha_interval": lambda votes, **options: krippendorff_alpha(votes, level="interval", **options),
    "fleiss_kappa": fleiss_kappa,
    "gwet_ac1": gwet_ac1,
    "pairwise_agreement": pairwise_agreement,
}
NOMINAL = ("krippendorff_alpha_nominal", "fleiss_kappa", "gwet_ac1", "pairwise_agreement")

TABLES = hnp.arrays(np.int64, st.tuples(st.integers(1, 7), st.integers(1, 4)), elements=st.integers(0, 4)).filter(
    lambda table: bool((table.sum(axis=1) >= 2).any())
)
JUDGEMENTS = st.lists(
    st.tuples(st.integers(0, 3), st.sets(st.integers(0, 2), min_size=1)), min_size=2, max_size=12
).filter(lambda judgements: len({item for item, _ in judgements}) < len(judgements))


def multi_select(judgements: list[tuple[int, set[int]]]) -> Votes:
    rows = [(i, j, k) for j, (i, chosen) in enumerate(judgements) for k in sorted(chosen)]
    item, judgement, label = np.array(rows, dtype=np.int32).T
    return Votes(item=item, label=label, judgement=judgement, items=np.arange(4), classes=("a", "b", "c"))


def by_pairs(judgements: list[tuple[int, set[int]]], n_classes: int) -> dict[str, float]:
    """The definitions, pair by pair; a judgement is compared with every other of its item, both ways round."""
    size = [sum(other == item for other, _ in judgements) for item, _ in judgements]
    pairable = [(item, chosen, m) for (item, chosen), m in zip(judgements, size, strict=True) if m >= 2]

    def agree(one: set[int], other: set[int]) -> float:
        return len(one & other) / (len(one) * len(other))

    within = [(i, m, agree(a, b)) for (i, a, m), (j, b, _) in permutations(pairable, 2) if i == j]
    anywhere = [agree(a, b) for (_, a, _), (_, b, _) in permutations(pairable, 2)]
    items = {item for item, _, _ in pairable}
    share = np.zeros(n_classes)
    mean = np.zeros(n_classes)
    for _, chosen, m in pairable:
        for k in chosen:
            share[k] += 1 / len(chosen) / len(pairable)
            mean[k] += 1 / len(chosen) / m / len(items)
    observed = np.mean([np.mean([a for i, _, a in within if i == item]) for item in items])
    disagreement = sum((1 - a) / (m - 1) for _, m, a in within) / len(pairable)
    chance = float((share**2).sum())
    gwet = float((mean * (1 - mean)).sum()) / (n_classes - 1) if n_classes > 1 else math.nan
    by_chance = 1 - float(np.mean(anywhere))
    return {
        "krippendorff_alpha_nominal": 1 - disagreement / by_chance if by_chance > 1e-12 else math.nan,
        "fleiss_kappa": float((observed - chance) / (1 - chance)) if chance < 1 - 1e-12 else math.nan,
        "gwet_ac1": float((observed - gwet) / (1 - gwet)),
        "pairwise_agreement": float(np.mean([a for _, _, a in within])),
    }


def published() -> np.ndarray:
    """Krippendorff (2011): 4 observers, 12 units, missing values; counts of the values 1 to 5."""
    observers = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
    table = np.zeros((12, 5), dtype=np.int64)
    for observer in observers:
        for unit, said in enumerate(observer):
            if said != ".":
                table[unit, int(said) - 1] += 1
    return table


def test_the_published_example_has_its_published_alpha() -> None:
    found = [krippendorff_alpha(published(), level=level, resamples=0).value for level in LEVELS]
    assert found == [pytest.approx(alpha, abs=5e-4) for alpha in (0.743, 0.815, 0.849)]


@pytest.mark.parametrize("level", LEVELS)
@given(table=TABLES)
def test_alpha_is_that_of_krippendorff(level: Level, table: np.ndarray) -> None:
    pooled = table[table.sum(axis=1) >= 2].sum(axis=0)
    scale = np.array([-1.0, 0.5, 1.0, 7.0])[: table.shape[1]]
    ours = krippendorff_alpha(table, level=level, scale=scale, resamples=0).value
    if np.count_nonzero(pooled) == 1:
        assert math.isnan(ours), "the peer refuses to divide 0 by 0"
    else:
        peer = krippendorff.alpha(value_counts=table, value_domain=scale, level_of_measurement=level)
        assert ours == pytest.approx(peer, abs=1e-12)


@given(hnp.arrays(np.int64, st.tuples(st.integers(1, 8), st.just(5)), elements=st.integers(0, 3)))
def test_kappa_is_that_of_statsmodels_where_it_has_one(choices: np.ndarray) -> None:
    table = np.stack([(choices == k).sum(axis=1) for k in range(4)], axis=1)
    ours = fleiss_kappa(table, resamples=0).value
    if np.unique(choices).size == 1:
        assert math.isnan(ours)
    else:
        assert ours == pytest.approx(inter_rater.fleiss_kappa(table), abs=1e-12)


@given(TABLES)
def test_every_statistic_of_counts_is_its_definition_pair_by_pair(table: np.ndarray) -> None:
    judgements = [(i, {k}) for i, row in enumerate(table.tolist()) for k, count in enumerate(row) for _ in range(count)]
    expected = by_pairs(judgements, table.shape[1])
    for name in NOMINAL:
        found = STATISTICS[name](table, resamples=0).value
        assert found == pytest.approx(expected[name], abs=1e-12, nan_ok=True), name


@given(JUDGEMENTS)
def test_every_statistic_of_multi_select_is_its_definition_pair_by_pair(
    judgements: list[tuple[int, set[int]]],
) -> None:
    expected = by_pairs(judgements, 3)
    found = agreement(multi_select(judgements), resamples=0)
    assert {name: each.value for name, each in found.items()} == {
        name: pytest.approx(expected[name], abs=1e-12, nan_ok=True) for name in NOMINAL
    }


def test_ac1_does_not_collapse_where_one_class_dominates() -> None:
    # Two annotators, 125 items: both yes on 118, yes-no on 5, no-yes on 2.
    table = np.array([[2, 0]] * 118 + [[1, 1]] * 7)
    chance = 2 * (243 / 250) * (7 / 250)
    assert gwet_ac1(table, resamples=0).value == pytest.approx((118 / 125 - chance) / (1 - chance))
    assert fleiss_kappa(table, resamples=0).value < 0


@pytest.mark.parametrize("name", STATISTICS)
@given(table=TABLES)
def test_statistics_stay_within_their_bounds(name: str, table: np.ndarray) -> None:
    found = STATISTICS[name](table, resamples=20)
    assume(found.defined)
    lowest = 0.0 if name == "pairwise_agreement" else -2.0
    assert lowest <= found.value <= 1.0 + 1e-12
    if found.low is not None and found.high is not None:
        assert lowest <= found.low <= found.high <= 1.0 + 1e-12


@pytest.mark.parametrize("name", STATISTICS)
@given(size=st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(lambda size: max(size) >= 2))
def test_where_all_votes_name_one_class_there_is_no_variation_to_agree_on(name: str, size: list[int]) -> None:
    nobody = np.zeros_like(size)
    for table in (np.column_stack([size]), np.column_stack([nobody, size]), np.column_stack([nobody, size, nobody])):
        found = STATISTICS[name](table, resamples=10)
        # AC1 counts classes that nobody chose, and where there is none it is 0 / 0 as well.
        if name == "pairwise_agreement" or (name == "gwet_ac1" and table.shape[1] > 1):
            assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)
        else:
            assert str(found) == "not defined: no variation"
            assert (found.low, found.high, found.defined) == (None, None, False)
            assert found.to_dict()["value"] is None
            assert found.to_dict()["reason"] == "no variation"


@pytest.mark.parametrize("name", STATISTICS)
def test_agreement_on_items_that_differ_is_perfect(name: str) -> None:
    found = STATISTICS[name](np.array([[3, 0], [0, 4], [2, 0], [0, 2]]), resamples=50)
    assert [found.value, found.low, found.high] == pytest.approx([1.0, 1.0, 1.0])


def test_resamples_without_variation_do_not_count() -> None:
    """One item of ten is varied, and a resample that leaves it out has no alpha: it must not pass for a perfect one."""
    table = np.array([[3, 0]] * 9 + [[1, 2]])
    found = krippendorff_alpha(table, resamples=400)
    assert found.high is not None
    assert found.resamples == pytest.approx(400 * (1 - 0.9**10), abs=40)
    assert found.high < 0.9


@pytest.mark.parametrize("name", STATISTICS)
@given(table=TABLES, seed=st.integers(0, 9))
def test_the_order_of_items_changes_neither_value_nor_interval(name: str, table: np.ndarray, seed: int) -> None:
    shuffled = np.random.default_rng(seed).permutation(table)
    assert STATISTICS[name](table, resamples=20) == STATISTICS[name](shuffled, resamples=20)


@pytest.mark.parametrize("name", NOMINAL)
@given(table=TABLES, seed=st.integers(0, 9))
def test_names_of_classes_do_not_matter_to_nominal_statistics(name: str, table: np.ndarray, seed: int) -> None:
    renamed = np.random.default_rng(seed).permutation(table, axis=1)
    assert STATISTICS[name](renamed, resamples=0).value == pytest.approx(
        STATISTICS[name](table, resamples=0).value, abs=1e-12, nan_ok=True
    )


@pytest.mark.parametrize("name", STATISTICS)
@given(table=TABLES, alone=st.integers(1, 20))
def test_items_with_one_vote_or_none_do_not_count(name: str, table: np.ndarray, alone: int) -> None:
    extra = np.zeros((alone + 1, table.shape[1]), dtype=np.int64)
    extra[:alone, -1] = 1
    assert STATISTICS[name](np.vstack([extra, table]), resamples=20) == STATISTICS[name](table, resamples=20)


@given(TABLES)
def test_a_reversed_or_stretched_scale_measures_the_same(table: np.ndarray) -> None:
    place = np.arange(table.shape[1])
    for level in LEVELS:
        plain = krippendorff_alpha(table, level=level, resamples=0).value
        backwards = krippendorff_alpha(table[:, ::-1], level=level, resamples=0).value
        stretched = krippendorff_alpha(table, level=level, scale=3 * place - 5, resamples=0).value
        assert [backwards, stretched] == [pytest.approx(plain, abs=1e-9, nan_ok=True)] * 2


def test_all_statistics_at_once_are_the_statistics_one_by_one() -> None:
    truth = np.random.default_rng(0).dirichlet(np.full(4, 0.4), 300)
    votes = simulate_votes(truth, 5, annotators=20, seed=0, ordered=True)
    together = agreement(votes, resamples=50, seed=7)
    assert list(together) == list(TITLES)
    for name, found in together.items():
        alone = STATISTICS[name](votes, resamples=50, seed=7)
        assert [found.value, found.low, found.high] == pytest.approx([alone.value, alone.low, alone.high], abs=1e-12)


@pytest.mark.parametrize("name", STATISTICS)
def test_a_seed_or_a_generator_fixes_the_interval(name: str) -> None:
    table = np.random.default_rng(0).multinomial(4, [0.5, 0.3, 0.2], 40)
    first, same, other = (STATISTICS[name](table, resamples=50, seed=np.random.default_rng(s)) for s in (1, 1, 2))
    assert first == same
    assert first.value == other.value
    assert (first.low, first.high) != (other.low, other.high)
    assert STATISTICS[name](table, resamples=50, seed=1) == STATISTICS[name](table, resamples=50, seed=1)


def test_the_place_of_a_class_on_the_scale_is_its_number() -> None:
    table = np.array([[3, 1, 0], [0, 2, 2], [1, 0, 3]])
    votes = votes_from_counts(table, classes=["0", "1", "10"], ordered=True)
    expected = krippendorff_alpha(table, level="interval", scale=[0, 1, 10], resamples=0)
    assert krippendorff_alpha(votes, level="interval", resamples=0) == expected
    assert krippendorff_alpha(table, level="interval", resamples=0) != expected


@pytest.mark.parametrize("level", ["ordinal", "interval"])
def test_thousands_of_values_on_a_scale_are_no_problem(level: Level) -> None:
    # One user's 2,400 real-valued points took a peer 32 GB.
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(800), 3)
    values = rng.normal(size=800)[item] + rng.normal(size=2400)
    table = np.zeros((800, 2400), dtype=np.int64)
    table[item, np.argsort(np.argsort(values))] = 1
    found = krippendorff_alpha(table, level=level, scale=np.sort(values), resamples=100)
    assert found.value == pytest.approx(0.5, abs=0.06)


def test_ordinal_intervals_rank_each_resample_anew() -> None:
    table = np.random.default_rng(0).multinomial(5, [0.5, 0.2, 0.2, 0.1], 12)
    found = krippendorff_alpha(table, level="ordinal", resamples=300, seed=3)
    weights = next(resampled_weights(distinct_rows(table)[1], resamples=300, seed=3))[1]
    rows = distinct_rows(table)[0]
    plain = [
        krippendorff_alpha(np.repeat(rows, each.astype(int), axis=0), level="ordinal", resamples=0).value
        for each in weights
    ]
    assert found.value == pytest.approx(plain[0])
    assert [found.low, found.high] == pytest.approx(np.quantile(plain[1:], [0.025, 0.975]))


@pytest.mark.parametrize("name", STATISTICS)
def test_intervals_hold_the_true_value_about_as_often_as_they_say(name: str) -> None:
    rng = np.random.default_rng(0)

    def panel(items: int) -> np.ndarray:
        return rng.multinomial(rng.integers(3, 8, items), rng.dirichlet([0.6, 0.3, 0.5], items))

    truth = STATISTICS[name](panel(300_000), resamples=0).value
    held = []
    for seed in range(200):
        found = STATISTICS[name](panel(80), resamples=200, seed=seed)
        assert found.low is not None
        assert found.high is not None
        held.append(found.low <= truth <= found.high)
    assert 0.89 <= np.mean(held) <= 0.985


class TestClassAlpha:
    def test_each_class_is_a_question_of_its_own(self) -> None:
        truth = np.random.default_rng(0).dirichlet(np.full(3, 0.4), 60)
        votes = simulate_responses(truth, 4, annotators=9, seed=0)
        assert votes.unsure is not None
        assert votes.judgement is not None
        answers = np.zeros((votes.n_judgements, 4))
        answers[votes.judgement, votes.label] = np.where(votes.unsure, 2, 1)
        by_unit = answers.reshape(60, 4, 4)
        found = class_alpha(votes, resamples=0)
        assert list(found) == ["0", "1", "2"]
        for k in range(3):
            said = by_unit[:, :, k].T
            peer = krippendorff.alpha(said, level_of_measurement="nominal")
            sure = krippendorff.alpha(np.where(said == 2, np.nan, said), level_of_measurement="nominal")
            each = found[str(k)]
            assert each.without_unsure is not None
            assert [each.alpha.value, each.without_unsure.value] == pytest.approx([peer, sure], abs=1e-12)

    def test_without_any_unsure_both_readings_are_one(self) -> None:
        found = class_alpha(multi_select([(0, {0, 1}), (0, {1}), (1, {2}), (1, {0})]), resamples=10)
        assert all(each.alpha == each.without_unsure for each in found.values())

    def test_a_class_that_everybody_doubts_has_no_alpha_without_unsure(self) -> None:
        votes = Votes(
            item=np.zeros(2, np.int32),
            label=np.zeros(2, np.int32),
            unsure=np.array([True, True]),
            judgement=np.arange(2, dtype=np.int32),
            items=np.arange(1),
            classes=("cat", "none"),
            none=1,
        )
        found = class_alpha(votes, resamples=0)
        assert str(found["cat"].alpha) == "not defined: no variation"
        assert found["cat"].without_unsure is None

    def test_a_class_answered_twice_in_a_judgement_is_refused(self) -> None:
        votes = Votes(
            item=np.zeros(3, np.int32),
            label=np.array([0, 0, 0], np.int32),
            judgement=np.array([0, 0, 1], np.int32),
            items=np.array(["photo"]),
            classes=("cat", "dog"),
        )
        with pytest.raises(InputError, match="item photo has more votes for class 'cat' than judgements"):
            class_alpha(votes)


@given(JUDGEMENTS)
def test_every_judgement_has_one_unit_to_spread(judgements: list[tuple[int, set[int]]]) -> None:
    votes = multi_select(judgements)
    assert class_mass(votes).sum(axis=1) == pytest.approx(votes.panel_size)


@pytest.mark.parametrize("name", STATISTICS)
def test_one_vote_an_item_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="no item has two judgements"):
        STATISTICS[name](np.eye(3, dtype=np.int64))


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ([[2, -1]], "-1 is negative"),
        ([[0, 0], [1.5, 1]], r"item 1 \(row 2, column 1\): 1.5 is not a whole number"),
        ([[2.0, float("nan")]], "nan is not finite"),
        ([2, 1], "items by classes"),
    ],
)
def test_bad_counts_are_refused_with_the_cell(counts: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        fleiss_kappa(counts)  # type: ignore[arg-type]


def test_a_level_or_scale_that_does_not_fit_is_refused() -> None:
    table = [[2, 1], [0, 3]]
    with pytest.raises(InputError, match="unknown level 'ratio'"):
        krippendorff_alpha(table, level="ratio")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="does not fit 2 classes"):
        krippendorff_alpha(table, level="interval", scale=[1, 2, 3])
    with pytest.raises(InputError, match="does not fit 2 classes"):
        krippendorff_alpha(table, level="interval", scale=[1, float("inf")])
    with pytest.raises(InputError, match="no single place on a scale"):
        krippendorff_alpha(multi_select([(0, {0, 1}), (0, {1})]), level="ordinal")


def with_habits(rng: np.random.Generator, *, items: int, people: int, each: int, habit: float) -> Votes:
    """Return votes for three ordered classes, `each` per item. Every annotator has a bias towards certain classes."""
    lean = np.log(rng.dirichlet(np.full(3, 0.7), items) + 0.02)
    bias, sure = rng.normal(0, habit, (people, 3)), np.exp(rng.normal(0, habit, people))
    who = rng.random((items, people)).argsort(axis=1)[:, :each].ravel() if people < 1000 else np.arange(items * each)
    item = np.repeat(np.arange(items, dtype=np.int32), each)
    label = (lean[item] * sure[who, None] + bias[who] + rng.gumbel(size=(who.size, 3))).argmax(axis=1)
    panel = Annotators(who.astype(np.int32), np.arange(people))
    return Votes(
        item=item, label=label.astype(np.int32), items=np.arange(items), classes=("0", "1", "2"), annotators=panel,
        ordered=True,
    )  # fmt: skip


def anonymous(votes: Votes) -> Votes:
    return replace(votes, annotators=None)


class TestIntervalsOverAnnotators:
    @pytest.mark.parametrize(("people", "each", "most"), [(8, 8, 0.7), (15, 4, 0.8), (30, 5, 0.88)])
    def test_agreement_holds_that_of_other_people(self, people: int, each: int, most: float) -> None:
        rng = np.random.default_rng(people)
        panel = with_habits(rng, items=20_000, people=100_000, each=5, habit=0.8)
        truth = {name: found.value for name, found in agreement(panel, resamples=0).items()}
        held = {name: np.zeros(2) for name in truth}
        for seed in range(60):
            votes = with_habits(rng, items=150, people=people, each=each, habit=0.8)
            for k, part in enumerate((anonymous(votes), votes)):
                for name, found in agreement(part, resamples=100, seed=seed).items():
                    assert found.low is not None
                    assert found.high is not None
                    held[name][k] += (found.low <= truth[name] <= found.high) / 60
        items, both = np.array([*held.values()]).T
        assert items.max() < most
        assert both.min() > 0.86
        assert both.mean() > 0.9

    def test_agreement_of_people_without_habits_is_not_much_less_sure(self) -> None:
        rng = np.random.default_rng(0)
        votes = [with_habits(rng, items=200, people=60, each=4, habit=0.0) for _ in range(10)]
        width = [
            [
                float(np.subtract(found.high, found.low))  # type: ignore[arg-type]
                for part in (each, anonymous(each))
                for found in agreement(part, resamples=100).values()
            ]
            for each in votes
        ]
        named, of_items = np.mean(width, axis=0).reshape(2, -1)
        assert (named >= of_items).all()
        assert (named < 1.6 * of_items).all()

    @pytest.mark.parametrize("level", LEVELS)
    def test_krippendorff_alpha_of_convabuse_is_as_sure_as_its_jackknife(self, data: Path, level: Level) -> None:
        votes = read_votes(data / "lewidi-2023" / "ConvAbuse_train.json")
        assert votes.annotators is not None

        def peer(chosen: np.ndarray) -> float:
            table = np.zeros((len(votes.items), len(votes.classes)), dtype=np.int64)
            np.add.at(table, (votes.item[chosen], votes.label[chosen]), 1)
            return float(krippendorff.alpha(value_counts=table, value_domain=votes.scale, level_of_measurement=level))

        people = votes.annotators.code
        left = np.array([peer(people != k) for k in range(8)])
        error = np.sqrt(7 / 8 * ((left - left.mean()) ** 2).sum())
        found, of_items = (krippendorff_alpha(part, level=level, resamples=200) for part in (votes, anonymous(votes)))
        assert found.value == pytest.approx(peer(people >= 0), abs=1e-12)
        assert found.high is not None
        assert of_items.high is not None
        reach = stats.t.ppf(0.975, 7) * error
        assert 0.95 * reach <= found.high - found.value <= np.hypot(reach, of_items.high - of_items.value) + 1e-9
        assert found.high - found.value > 4 * (of_items.high - of_items.value)

    def test_interval_over_names_annotators_from_three_on(self) -> None:
        votes = with_habits(np.random.default_rng(0), items=40, people=3, each=3, habit=0.5)
        two = votes.subset(annotators=[0, 1])
        assert [interval_over(part) for part in (votes, two, anonymous(votes), votes.counts)] == [
            "items and annotators",
            *["items"] * 3,
        ]
        assert "95 % intervals over items and annotators" in repr(agreement(votes, resamples=20))
        assert "intervals" not in repr(agreement(votes, resamples=0))
        assert agreement(two, resamples=20) == agreement(anonymous(two), resamples=20)

    def test_agreement_has_no_interval_if_it_hangs_on_one_annotator(self) -> None:
        # Without the first annotator, no item has two judgements.
        who = np.array([[0, other] for other in (1, 2, 3) for _ in range(8)], dtype=np.int32)
        label = np.random.default_rng(0).integers(0, 2, who.size, dtype=np.int32)
        item = np.repeat(np.arange(len(who), dtype=np.int32), 2)
        panel = Annotators(who.ravel(), np.arange(4))
        votes = Votes(item=item, label=label, items=np.arange(len(who)), classes=("a", "b"), annotators=panel)
        assert {(found.low, found.high) for found in agreement(votes, resamples=20).values()} == {(None, None)}

    def test_class_alpha_is_over_annotators_too(self) -> None:
        truth = np.random.default_rng(0).dirichlet(np.full(3, 0.4), 120)
        votes = simulate_responses(truth, 4, annotators=9, seed=0)
        named, of_items = class_alpha(votes, resamples=100), class_alpha(anonymous(votes), resamples=100)
        for name, each in named.items():
            other = of_items[name]
            assert each.alpha.value == other.alpha.value
            ends = [each.alpha.low, each.alpha.high, other.alpha.low, other.alpha.high]
            low, high, low_of_items, high_of_items = (end for end in ends if end is not None)
            assert low < low_of_items or high > high_of_items


class TestRealVotes:
    def test_popquorn_ratings(self, data: Path) -> None:
        votes = popquorn(data)
        found = agreement(votes, resamples=200)
        for level in LEVELS:
            peer = krippendorff.alpha(
                value_counts=votes.counts, value_domain=[1, 2, 3, 4, 5], level_of_measurement=level
            )
            assert found[f"krippendorff_alpha_{level}"].value == pytest.approx(peer, abs=1e-12)
        nominal, interval = found["krippendorff_alpha_nominal"], found["krippendorff_alpha_interval"]
        assert nominal.high is not None
        assert interval.low is not None
        assert nominal.high < interval.low

    def test_cifar_10h_counts(self, data: Path) -> None:
        counts = np.load(data / "cifar-10h" / "cifar10h-counts.npy")
        found = agreement(votes_from_counts(counts), resamples=200)
        peer = krippendorff.alpha(value_counts=counts, value_domain=range(10), level_of_measurement="nominal")
        assert found["krippendorff_alpha_nominal"].value == pytest.approx(peer, abs=1e-12)
        usual = counts[counts.sum(axis=1) == 51]
        assert fleiss_kappa(usual, resamples=0).value == pytest.approx(inter_rater.fleiss_kappa(usual), abs=1e-12)


def test_gwet_ac1_counts_classes_without_votes() -> None:
    """K is the number of classes that could be chosen (Gwet 2008), so that an unused class lowers chance agreement."""
    counts = np.array([[3, 0], [0, 3], [2, 1]])
    observed, share = (1 + 1 + 1 / 3) / 3, (1 + 0 + 2 / 3) / 3
    for classes in (2, 3, 5):
        chance = 2 * share * (1 - share) / (classes - 1)
        padded = np.pad(counts, ((0, 0), (0, classes - 2)))
        assert gwet_ac1(padded, resamples=0).value == pytest.approx((observed - chance) / (1 - chance))
