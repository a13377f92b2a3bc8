"""The metrics against independent implementations, closed forms and the identities that tie them together."""

from __future__ import annotations

import subprocess
import sys
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cosine as cosine_distance
from scipy.spatial.distance import jensenshannon
from scipy.special import entr, rel_entr
from scipy.stats import pearsonr, spearmanr, wasserstein_distance
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from dissensus.errors import InputError
from dissensus.evaluation import metrics as m
from dissensus.evaluation.metrics import arithmetic, ranking
from tests.evaluation.panels import as_on_a_gpu, dirichlet_panel, people_and_model, shares

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.evaluation.panels import Table

PER_ITEM: dict[str, Callable[..., Any]] = {
    "kl": m.kl,
    "reverse_kl": m.reverse_kl,
    "jsd": m.jsd,
    "js_distance": lambda human, model: m.jsd(human, model, base="bits", distance=True),
    "soft_nll": m.soft_nll,
    "entce": m.entce,
    "abs_entce": m.abs_entce,
    "tvd": m.tvd,
    "manhattan": m.manhattan,
    "wasserstein": m.wasserstein,
    "scaled_wasserstein": lambda human, model: m.wasserstein(
        human, model, positions=[x**1.5 for x in range(human.shape[1])]
    ),
    "rps": m.rps,
    "brier": m.brier,
    "brier_majority": m.brier_majority,
    "rank_cs": m.rank_cs,
    "accuracy": m.accuracy,
    "accuracy_original": lambda human, model: m.accuracy_original(human, model, original=human.argmax(1)),
    "expected_accuracy": m.expected_accuracy,
    "second_best_accuracy": m.second_best_accuracy,
    "soft_accuracy": m.soft_accuracy,
    "cosine": m.cosine,
}
OVER_ITEMS: dict[str, Callable[..., float | None]] = {
    "soft_micro_f1": m.soft_micro_f1,
    "soft_macro_f1": m.soft_macro_f1,
    "po_jsd": m.po_jsd,
    "entropy_pearson": m.entropy_pearson,
    "entropy_spearman": m.entropy_spearman,
    "ece": m.ece,
    "ece_equal_mass": lambda human, model: m.ece(human, model, binning="equal_mass", n_bins=4),
    "ece_votes": lambda human, model: m.ece(human, model, against="votes"),
    "classwise_ece": m.classwise_ece,
    "classwise_ece_votes": lambda human, model: m.classwise_ece(human, model, against="votes", binning="equal_mass"),
}

ORDERED = ("wasserstein", "scaled_wasserstein", "rps")

# Per item, by somebody else or by the textbook ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def panel() -> tuple[Table, Table]:
    """3,000 items, 5 classes, 7 votes."""
    return dirichlet_panel(3_000, 5)


def test_kl_is_scipys_relative_entropy(panel: tuple[Table, Table]) -> None:
    human, model = panel
    assert m.kl(human, model) == pytest.approx(rel_entr(human, model).sum(axis=1), rel=1e-12)
    smooth = 0.99 * human + 0.01 / 5
    assert m.reverse_kl(smooth, model) == pytest.approx(rel_entr(model, smooth).sum(axis=1), rel=1e-12)


def test_jsd_is_scipys_in_every_base(panel: tuple[Table, Table]) -> None:
    human, model = panel
    assert m.jsd(human, model) == pytest.approx(jensenshannon(human, model, axis=1) ** 2, rel=1e-12)
    assert m.jsd(human, model, base="bits", distance=True) == pytest.approx(
        jensenshannon(human, model, axis=1, base=2), rel=1e-12
    )


def test_entropy_is_scipys(panel: tuple[Table, Table]) -> None:
    human, model = panel
    assert m.entropy(human) == pytest.approx(entr(human).sum(axis=1), rel=1e-12)
    assert m.entce(human, model) == pytest.approx(entr(model).sum(axis=1) - entr(human).sum(axis=1), abs=1e-13)


def test_the_ranked_probability_score_is_the_mean_over_votes_of_the_usual_one_less_what_no_model_changes() -> None:
    rng = np.random.default_rng(0)
    counts, model = rng.multinomial(6, rng.dirichlet(np.ones(5), 40)), rng.dirichlet(np.ones(5), 40)
    for row, q in zip(counts, model, strict=True):
        votes = np.repeat(np.arange(5), row)
        # The score of one observation, as forecasters write it, step by step along the scale.
        usual = [sum((q[: step + 1].sum() - (vote <= step)) ** 2 for step in range(4)) for vote in votes]
        spread = sum((votes <= step).mean() * (votes > step).mean() for step in range(4))
        assert m.rps(row[None] / 6, q[None])[0] == pytest.approx(np.mean(usual) - spread)
        # Cramér's distance: the mean distance of a vote and an answer, less half the mean distances among either.
        places = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
        p = row / 6
        assert m.rps(p[None], q[None])[0] == pytest.approx(p @ places @ q - (p @ places @ p + q @ places @ q) / 2)


@pytest.mark.parametrize("positions", [None, [0.0, 1.0, 2.5, 7.0, 7.5]])
def test_wasserstein_is_scipys_with_classes_as_places_on_the_scale(
    panel: tuple[Table, Table], positions: list[float] | None
) -> None:
    human, model = (table[:200] for table in panel)
    places = positions or [0, 1, 2, 3, 4]
    expected = [wasserstein_distance(places, places, p, q) for p, q in zip(human, model, strict=True)]
    assert m.wasserstein(human, model, positions=positions) == pytest.approx(expected, rel=1e-9)


def test_cosine_is_scipys(panel: tuple[Table, Table]) -> None:
    human, model = (table[:200] for table in panel)
    expected = [1 - cosine_distance(p, q) for p, q in zip(human, model, strict=True)]
    assert m.cosine(human, model) == pytest.approx(expected, rel=1e-12)


def test_with_hard_labels_the_soft_metrics_are_scikit_learns(panel: tuple[Table, Table]) -> None:
    label, model = panel[0].argmax(axis=1), panel[1]
    human = np.eye(5)[label]
    assert m.soft_nll(human, model).mean() == pytest.approx(log_loss(label, model, labels=range(5)), rel=1e-12)
    brier = brier_score_loss(label, model, labels=range(5), scale_by_half=False)
    assert m.brier(human, model).mean() == pytest.approx(brier, rel=1e-12)
    assert m.brier_majority(human, model).mean() == pytest.approx(brier, rel=1e-12)
    right = accuracy_score(label, model.argmax(axis=1))
    assert m.accuracy(human, model).mean() == right
    assert m.expected_accuracy(human, model).mean() == pytest.approx(right)
    assert m.accuracy_original(human, model, original=label).mean() == right


def test_torchmetrics_agrees_on_kl_and_jsd(panel: tuple[Table, Table]) -> None:
    from torchmetrics.functional.regression import jensen_shannon_divergence, kl_divergence

    human, model = (torch.from_numpy(0.99 * table + 0.01 / 5) for table in panel)
    torch.testing.assert_close(m.kl(human, model), kl_divergence(human, model, reduction="none"))
    torch.testing.assert_close(m.jsd(human, model), jensen_shannon_divergence(human, model, reduction="none"))


def test_torchmetrics_takes_float_targets_and_calls_every_model_right() -> None:
    from torchmetrics.functional.classification import multiclass_accuracy

    human, model = torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([[0.3, 0.7], [0.1, 0.9]])
    assert multiclass_accuracy(model, human, num_classes=2) == 1.0
    assert m.accuracy(human, model).tolist() == [0.0, 0.0]


# Closed forms ------------------------------------------------------------------------------------------------------

ONE_HOT = np.eye(4)
UNIFORM = np.full((4, 4), 0.25)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kl", np.log(4)),
        ("soft_nll", np.log(4)),
        ("jsd", 0.5 * np.log(8 / 5) + 0.5 * (np.log(2 / 5) / 4 + 3 * np.log(2) / 4)),
        ("entce", np.log(4)),
        ("abs_entce", np.log(4)),
        ("tvd", 0.75),
        ("manhattan", 1.5),
        ("brier", 0.75),
        ("brier_majority", 0.75),
        ("soft_accuracy", 0.25),
        ("cosine", 0.5),
        ("accuracy", 0.25),
        ("expected_accuracy", 0.25),
        ("second_best_accuracy", 0.25),
        ("rank_cs", 0.0),
    ],
)
def test_unanimous_people_and_a_model_that_knows_nothing(name: str, value: float) -> None:
    assert PER_ITEM[name](ONE_HOT, UNIFORM) == pytest.approx(np.full(4, value))


def test_moving_all_probability_from_class_i_to_class_j_costs_their_distance() -> None:
    pairs = [(i, j) for i in range(4) for j in range(4)]
    human, model = ONE_HOT[[i for i, _ in pairs]], ONE_HOT[[j for _, j in pairs]]
    assert m.wasserstein(human, model) == pytest.approx([abs(i - j) for i, j in pairs])
    assert m.wasserstein(human, model, positions=[1, 2, 4, 8]) == pytest.approx([abs(2**i - 2**j) for i, j in pairs])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_class_that_the_model_rules_out_costs_the_floor_in_every_precision(dtype: type) -> None:
    human: Any = np.array([[1, 0]], dtype=dtype)
    model: Any = np.array([[0, 1]], dtype=dtype)
    assert m.kl(human, model) == pytest.approx([m.WORST], rel=1e-6)
    assert m.reverse_kl(human, model) == pytest.approx([m.WORST], rel=1e-6)
    assert m.soft_nll(human, model) == pytest.approx([12 * np.log(10)], rel=1e-6)


def test_the_sign_of_entce_says_who_is_surer() -> None:
    assert (m.entce(ONE_HOT, UNIFORM) > 0).all()
    assert (m.entce(UNIFORM, ONE_HOT) < 0).all()


@given(people_and_model())
def test_a_model_that_is_the_human_distribution_is_perfect(tables: tuple[Table, Table]) -> None:
    human, _ = tables
    for name in ("kl", "reverse_kl", "jsd", "entce", "abs_entce", "tvd", "manhattan", "wasserstein", "brier"):
        assert (PER_ITEM[name](human, human) == 0).all(), name
    assert (m.rank_cs(human, human) == 1).all()
    assert m.soft_accuracy(human, human) == pytest.approx(1)
    assert m.cosine(human, human) == pytest.approx(1)
    assert m.soft_nll(human, human) == pytest.approx(m.entropy(human))
    assert m.soft_micro_f1(human, human) == pytest.approx(1)
    assert m.soft_macro_f1(human, human) == pytest.approx(1)
    assert m.po_jsd(human, human) == 1
    assert m.ece(human, human, against="votes") == pytest.approx(0)
    assert m.classwise_ece(human, human, against="votes") == pytest.approx(0)


# Identities --------------------------------------------------------------------------------------------------------


@given(people_and_model())
def test_soft_nll_is_kl_plus_human_entropy(tables: tuple[Table, Table]) -> None:
    human, model = tables
    assert m.soft_nll(human, model) == pytest.approx(m.kl(human, model) + m.entropy(human), abs=1e-12)


@given(people_and_model())
def test_brier_is_the_generalised_energy_distance(tables: tuple[Table, Table]) -> None:
    human, model = tables
    different = 1 - np.eye(human.shape[1])

    def expected_difference(a: Table, b: Table) -> Any:
        return np.einsum("ij,jk,ik->i", a, different, b)

    energy = (
        2 * expected_difference(human, model) - expected_difference(human, human) - expected_difference(model, model)
    )
    assert m.brier(human, model) == pytest.approx(energy, abs=1e-12)


@given(people_and_model())
def test_soft_accuracy_manhattan_and_micro_f1_are_the_total_variation(tables: tuple[Table, Table]) -> None:
    human, model = tables
    distance = m.tvd(human, model)
    assert m.soft_accuracy(human, model) == pytest.approx(1 - distance)
    assert m.manhattan(human, model) == pytest.approx(2 * distance)
    assert m.soft_micro_f1(human, model) == pytest.approx(1 - distance.mean())


@given(people_and_model())
def test_divergences_are_bounded_by_each_other(tables: tuple[Table, Table]) -> None:
    human, model = tables
    jsd, tvd = m.jsd(human, model), m.tvd(human, model)
    assert (jsd <= np.log(2)).all()
    assert (m.kl(human, model) >= 2 * tvd**2 - 1e-9).all(), "Pinsker"
    assert (jsd <= np.log(2) * tvd + 1e-12).all(), "Lin 1991"
    assert m.jsd(model, human) == pytest.approx(jsd, abs=1e-15)
    assert m.reverse_kl(human, model) == pytest.approx(m.kl(model, human))
    assert m.po_jsd(human, model) == pytest.approx(1 - m.jsd(human, model, base="bits").mean())


@given(people_and_model(), st.randoms(use_true_random=False))
def test_the_order_of_classes_and_items_means_nothing(tables: tuple[Table, Table], random: Any) -> None:
    human, model = tables
    items = random.sample(range(human.shape[0]), human.shape[0])
    classes = random.sample(range(human.shape[1]), human.shape[1])
    for name, metric in PER_ITEM.items():
        plain = metric(human, model)
        assert metric(human[items], model[items]) == pytest.approx(plain[items], abs=1e-12), name
        if name not in (*ORDERED, "accuracy_original"):
            assert metric(human[:, classes], model[:, classes]) == pytest.approx(plain, abs=1e-12), name
    for name, measure in OVER_ITEMS.items():
        plain = measure(human, model)
        shuffled = measure(human[items][:, classes], model[items][:, classes])
        assert shuffled == (None if plain is None else pytest.approx(plain, abs=1e-9)), name


# Ties --------------------------------------------------------------------------------------------------------------


def every_tie_break(row: Any) -> list[list[int]]:
    """All rankings, best first, that sort these probabilities."""
    return [list(order) for order in permutations(range(len(row))) if (np.diff(row[list(order)]) <= 0).all()]


@given(people_and_model())
def test_scores_of_choices_are_expectations_over_random_tie_breaks(tables: tuple[Table, Table]) -> None:
    human, model = (table[:3, :4] for table in tables)
    human, model = shares(human), shares(model)
    for p, q in zip(human, model, strict=True):
        pairs = [(a, b) for a in every_tie_break(p) for b in every_tie_break(q)]
        row, other = p[None], q[None]
        assert m.accuracy(row, other) == pytest.approx(np.mean([a[0] == b[0] for a, b in pairs]))
        assert m.second_best_accuracy(row, other) == pytest.approx(np.mean([a[1] == b[1] for a, b in pairs]))
        assert m.expected_accuracy(row, other) == pytest.approx(np.mean([p[b[0]] for _, b in pairs]))
        assert m.accuracy_original(row, other, original=np.array([1])) == pytest.approx(
            np.mean([b[0] == 1 for _, b in pairs])
        )
        hard = np.mean([((np.eye(len(p))[a[0]] - q) ** 2).sum() for a, _ in pairs])
        assert m.brier_majority(row, other) == pytest.approx(hard)


@given(people_and_model())
def test_rank_cs_asks_for_every_pair_that_people_rank(tables: tuple[Table, Table]) -> None:
    human, model = tables
    expected = [
        all(q[i] > q[j] for i in range(len(p)) for j in range(len(p)) if p[i] > p[j])
        for p, q in zip(human, model, strict=True)
    ]
    assert m.rank_cs(human, model).tolist() == expected


@given(people_and_model())
def test_rank_cs_by_sorting_is_rank_cs_by_pairs(tables: tuple[Table, Table]) -> None:
    human, model = tables
    with pytest.MonkeyPatch.context() as patch:
        by_pairs = m.rank_cs(human, model)
        patch.setattr(ranking, "PAIRS_UP_TO", 0)
        assert m.rank_cs(human, model).tolist() == by_pairs.tolist()
        as_on_a_gpu(patch)
        assert m.rank_cs(torch.from_numpy(human), torch.from_numpy(model)).tolist() == by_pairs.tolist()


def test_rank_cs_of_many_classes() -> None:
    human, model = dirichlet_panel(400, 60, votes=12)
    model[:200] = shares(human[:200] + 0.01 * model[:200])
    expected = [bool((q[:, None] > q)[p[:, None] > p].all()) for p, q in zip(human, model, strict=True)]
    assert m.rank_cs(human, model).tolist() == expected
    assert 100 < sum(expected) < 300


def test_without_ties_rank_cs_is_equality_of_argsorts() -> None:
    human, model = dirichlet_panel(2_000, 3, votes=10**6)
    assert (m.rank_cs(human, model) == (human.argsort(axis=1) == model.argsort(axis=1)).all(axis=1)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_votes_are_tied_whatever_division_made_of_them(dtype: type) -> None:
    share: Any = np.array(0.3, dtype=dtype)
    human: Any = np.array([[share, np.nextafter(share, dtype(1)), 0.4]], dtype=dtype)
    assert human[0, 0] < human[0, 1]
    model: Any = np.array([[0.3, 0.2, 0.5]], dtype=dtype)
    assert m.rank_cs(human, model) == 1
    assert m.second_best_accuracy(human, model) == 0.5


# Over items --------------------------------------------------------------------------------------------------------


def test_entropy_correlations_are_scipys(panel: tuple[Table, Table]) -> None:
    human, model = panel
    entropies = [np.round(entr(table).sum(axis=1), 10) for table in panel]
    assert m.entropy_pearson(human, model) == pytest.approx(pearsonr(*entropies).statistic, rel=1e-12)
    assert m.entropy_spearman(human, model) == pytest.approx(spearmanr(*entropies).statistic, rel=1e-12)


def test_spearman_holds_with_heavy_ties_where_torchmetrics_overflows() -> None:
    from torchmetrics.functional.regression import spearman_corrcoef

    generator = np.random.default_rng(0)
    level = generator.integers(0, 4, 200_000)
    noisy = np.clip(level + generator.integers(-1, 2, level.size), 0, 3)
    expected = spearmanr(level, noisy).statistic
    yes = np.linspace(0.5, 1.0, 4)
    human, model = (np.stack([yes[x], 1 - yes[x]], axis=1) for x in (level, noisy))
    assert m.entropy_spearman(human, model) == pytest.approx(expected, rel=1e-12)
    theirs = float(spearman_corrcoef(torch.from_numpy(level).double(), torch.from_numpy(noisy).double()))
    assert abs(theirs - expected) > 0.1


def test_the_same_votes_for_other_classes_have_one_entropy_and_share_a_rank() -> None:
    votes = np.array([list(order) for order in permutations((7, 2, 1, 0))] + [[4, 3, 2, 1], [10, 0, 0, 0]])
    human = votes / 10
    raw = entr(human).sum(axis=1)
    assert len(set(raw[:24])) > 1, "adding up in another order changes the last digit"
    model = dirichlet_panel(26, 4)[1]
    tidy = np.concatenate([np.full(24, 1.0), [2.0, 0.0]])
    assert m.entropy_spearman(human, model) == pytest.approx(spearmanr(tidy, m.entropy(model)).statistic)


@pytest.mark.parametrize("measure", [m.entropy_pearson, m.entropy_spearman])
def test_a_correlation_with_a_constant_is_undefined_not_nan(measure: Callable[..., float | None]) -> None:
    human, _ = dirichlet_panel(50, 3)
    assert measure(human, np.tile(human.mean(axis=0), (50, 1))) is None
    assert measure(np.tile(human.mean(axis=0), (50, 1)), human) is None
    assert measure(human[:1], human[:1]) is None


@pytest.mark.parametrize("name", OVER_ITEMS)
def test_no_items_no_number(name: str) -> None:
    assert OVER_ITEMS[name](np.empty((0, 3)), np.empty((0, 3))) is None


@pytest.mark.parametrize("name", PER_ITEM)
def test_no_items_no_values(name: str) -> None:
    assert PER_ITEM[name](np.empty((0, 3)), np.empty((0, 3))).shape == (0,)


def test_soft_macro_f1_by_hand() -> None:
    human = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    model = np.array([[1.0, 0.0, 0.0], [0.75, 0.25, 0.0]])
    first, second = 2 * (0.5 + 0.75) / (1.5 + 1.75), 2 * 0.0 / (0.5 + 0.25)
    assert m.soft_macro_f1(human, model) == pytest.approx((first + second) / 2), "nobody used the third class"


def test_mode_shift_rate_is_the_share_of_labels_that_moved() -> None:
    assert m.mode_shift_rate(np.array([0, 1, 2, 2]), np.array([0, 2, 2, 1])) == 0.5
    assert m.mode_shift_rate(torch.tensor([0, 1]), torch.tensor([0, 1])) == 0
    assert m.mode_shift_rate(np.array([], dtype=int), np.array([], dtype=int)) is None
    with pytest.raises(InputError, match=r"labels of shapes \(2,\) and \(3,\) do not fit"):
        m.mode_shift_rate(np.zeros(2), np.zeros(3))


# NumPy, torch, precision, blocks -----------------------------------------------------------------------------------


@given(people_and_model(), st.sampled_from([torch.float32, torch.float64]), st.booleans())
def test_torch_gives_what_numpy_gives(tables: tuple[Table, Table], dtype: torch.dtype, on_a_gpu: bool) -> None:
    human, model = (torch.from_numpy(table).to(dtype) for table in tables)
    tolerance = 1e-12 if dtype is torch.float64 else 2e-5
    for name, metric in {**PER_ITEM, **OVER_ITEMS}.items():
        expected = metric(human.numpy(), model.numpy())
        with pytest.MonkeyPatch.context() as patch:
            if on_a_gpu:
                as_on_a_gpu(patch)
            got = metric(human, model)
        if name in OVER_ITEMS:
            assert got == (None if expected is None else pytest.approx(expected, abs=tolerance)), name
        else:
            assert isinstance(got, torch.Tensor)
            assert got.dtype == dtype
            assert got.numpy() == pytest.approx(expected, abs=tolerance), name


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_gpu_gives_what_the_processor_gives() -> None:
    human, model = (torch.from_numpy(table).float() for table in dirichlet_panel(5_000, 10))
    for name, metric in {**PER_ITEM, **OVER_ITEMS}.items():
        got, expected = metric(human.cuda(), model.cuda()), metric(human, model)
        if name in OVER_ITEMS:
            assert got == pytest.approx(expected, abs=1e-5), name
        else:
            assert got.device.type == "cuda"
            torch.testing.assert_close(got.cpu(), expected, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    human, model = dirichlet_panel(50, 4)
    exact = m.kl(torch.from_numpy(human).to(dtype).float(), torch.from_numpy(model).to(dtype).float())
    value = m.kl(torch.from_numpy(human).to(dtype), torch.from_numpy(model).to(dtype))
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, exact)


def test_the_wider_of_two_precisions_and_whole_numbers_give_float64() -> None:
    human, model = dirichlet_panel(20, 3)
    narrow: Any = model.astype(np.float32)
    assert m.kl(human, narrow).dtype == np.float64
    assert m.brier(np.eye(3, dtype=np.int64), np.eye(3, dtype=np.int64)).dtype == np.float64


def test_a_model_that_still_carries_gradients_is_scored() -> None:
    logits = torch.zeros(3, 2, requires_grad=True)
    value = m.kl(torch.full((3, 2), 0.5), logits.softmax(1))
    assert not value.requires_grad
    assert value.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("name", [*PER_ITEM, *OVER_ITEMS])
def test_the_size_of_blocks_means_nothing(name: str) -> None:
    human, model = dirichlet_panel(701, 4)
    metric = {**PER_ITEM, **OVER_ITEMS}[name]
    whole = metric(human, model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arithmetic, "CPU_BLOCK", 41)
        patch.setattr(arithmetic, "LEAST_ROWS", 1)
        assert metric(human, model) == pytest.approx(whole, rel=1e-12)


def test_columns_in_memory_and_strided_views_are_read_right() -> None:
    human, model = dirichlet_panel(300, 4)
    for name, metric in PER_ITEM.items():
        expected = metric(human[::3], model[::3])
        assert metric(np.asfortranarray(human)[::3], model[::3].copy()) == pytest.approx(expected, rel=1e-12), name


def test_metrics_of_arrays_do_not_load_torch() -> None:
    program = (
        "import sys, numpy as np\n"
        "from dissensus.evaluation.metrics.registry import METRICS\n"
        "METRICS['kl'].per_item(np.eye(2), np.eye(2)), METRICS['ece'].over_items(np.eye(2), np.eye(2))\n"
        "sys.exit('torch' in sys.modules or 'polars' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# What is refused ---------------------------------------------------------------------------------------------------


def test_tables_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match=r"shapes \(2, 3\) and \(3, 2\) do not fit"):
        m.kl(np.ones((2, 3)) / 3, np.ones((3, 2)) / 2)
    with pytest.raises(InputError, match=r"shapes \(3,\) and \(3,\) do not fit; give human and model both as items by"):
        m.tvd(np.ones(3) / 3, np.ones(3) / 3)
    with pytest.raises(InputError, match="one of human and model is a NumPy array and the other a torch tensor"):
        m.kl(np.eye(2), torch.eye(2))  # type: ignore[type-var]
    with pytest.raises(InputError, match="human and model are on cpu and meta; move both to one device"):
        m.kl(torch.eye(2), torch.eye(2, device="meta"))


def test_options_that_do_not_exist_are_refused() -> None:
    with pytest.raises(InputError, match="unknown base '2'; choose nats or bits"):
        m.jsd(np.eye(2), np.eye(2), base="2")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"positions \[1, 1\] do not place 2 classes on a scale"):
        m.wasserstein(np.eye(2), np.eye(2), positions=[1, 1])
    with pytest.raises(InputError, match="do not place 2 classes"):
        m.wasserstein(np.eye(2), np.eye(2), positions=[1, 2, 3])
    with pytest.raises(InputError, match="there is one class only"):
        m.second_best_accuracy(np.ones((2, 1)), np.ones((2, 1)))


@pytest.mark.parametrize(
    ("original", "sentence"),
    [
        (np.array([0, 2]), "item number 1 has class index 2, and there are 2 classes"),
        (np.array([-1, 0]), "item number 0 has class index -1"),
        (np.array([0]), r"shape \(1,\) of int64 is not one class index for each of 2 items"),
        (np.array([0.0, 1.0]), "of float64 is not one class index"),
    ],
)
def test_original_labels_that_are_no_class_indices_are_refused(original: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        m.accuracy_original(np.eye(2), np.eye(2), original=original)


@pytest.mark.parametrize("convert", [np.asarray, torch.tensor])
@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            [[0.5, 0.5], [0.7, 0.5], [0.6, 0.5]],
            r"^model: 2 rows have a sum other than 1, worst item b, which sums to 1.2 \(0.2 off\); give every class",
        ),
        (
            [[0.5, 0.5], [0.5, 0.49], [1, 0]],
            r"1 row has a sum other than 1, worst item b, which sums to 0.99 \(0.01 off\)",
        ),
        ([[0.5, 0.5], [0.5, 0.5], [1.25, -0.25]], "1 row has a negative value, worst item c with -0.25; give"),
        ([[0.5, 0.5], [float("nan"), 1], [1, 0]], "1 row has a value that is NaN or infinite, first item b; every"),
        ([[0.5, float("inf")], [0, 1], [1, 0]], "NaN or infinite, first item a"),
    ],
)
def test_rows_that_are_no_distributions_are_refused(convert: Any, rows: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        m.check_distributions(convert(rows), what="model", items=["a", "b", "c"])


def test_rows_are_named_by_number_without_names_and_shapes_are_checked() -> None:
    with pytest.raises(InputError, match="worst row 1, which sums to 2"):
        m.check_distributions(np.array([[1.0, 0.0], [1.0, 1.0]]), what="human")
    with pytest.raises(InputError, match=r"human: shape \(3,\) is not items by classes"):
        m.check_distributions(np.ones(3), what="human")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distributions_pass_and_the_tolerance_can_be_set(dtype: type) -> None:
    _, model = dirichlet_panel(2_000, 10)
    m.check_distributions(model.astype(dtype), what="model")
    m.check_distributions(np.empty((0, 3)), what="model")
    m.check_distributions(np.array([[0.33, 0.33, 0.33]]), what="model", tolerance=0.02)
    with pytest.raises(InputError, match=r"0\.01 off"):
        m.check_distributions(np.array([[0.33, 0.33, 0.33]]), what="model", tolerance=0.005)
