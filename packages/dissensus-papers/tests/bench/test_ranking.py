"""Ranks over data sets, against SciPy, closed forms and what Demsar (2006) printed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dissensus.errors import InputError
from dissensus_papers.bench.figure import critical_difference_plot
from dissensus_papers.bench.ranking import against_best, critical_difference, rank_methods, ranks_of

# Demsar 2006, table 6: AUC of C4.5 and three variants on 14 sets; his mean ranks and critical difference follow it.
AUC = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        # Printed alike, and ranked 2 and 3: a digit that was not printed parts them.
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)
VARIANTS = ("C4.5", "m", "cf", "m+cf")


def names(n: int) -> list[str]:
    return [f"{n}" for n in range(n)]


def test_mean_ranks_and_critical_difference_are_those_that_demsar_printed() -> None:
    found = rank_methods(AUC, methods=VARIANTS, sets=names(14), higher_is_better=True)
    assert found.methods == ("m+cf", "m", "cf", "C4.5")
    assert [round(found.rank(name), 3) for name in VARIANTS] == [3.143, 2.0, 2.893, 1.964]
    assert found.critical_difference == pytest.approx(1.25, abs=0.005)
    # His 9.28 takes no account of ties, which make the statistic larger.
    printed = 12 * 14 / (4 * 5) * (np.sum(np.square(found.mean_ranks)) - 4 * 25 / 4)
    assert printed == pytest.approx(9.28, abs=0.005)
    assert found.chi_square > printed


@pytest.mark.parametrize(
    ("alpha", "printed"),
    [
        (0.05, [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]),
        (0.10, [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]),
    ],
)
def test_critical_values_are_those_that_demsar_printed(alpha: float, printed: list[float]) -> None:
    for methods, q in enumerate(printed, start=2):
        found = critical_difference(methods, 7, alpha=alpha) / np.sqrt(methods * (methods + 1) / 42)
        assert found == pytest.approx(q, abs=0.0011)


def test_friedman_is_scipys_and_without_ties_the_textbooks() -> None:
    scores = np.random.default_rng(0).normal(size=(9, 5)) + np.array([0, 0.3, 0.6, 0.9, 2.0])
    found = rank_methods(scores, methods=list("abcde"), sets=names(9))
    by_scipy = stats.friedmanchisquare(*scores.T)
    mean = ranks_of(scores).mean(axis=0)
    textbook = 12 * 9 / (5 * 6) * (np.sum(mean**2) - 5 * 36 / 4)
    assert found.chi_square == pytest.approx(by_scipy.statistic)
    assert found.chi_square == pytest.approx(textbook)
    assert found.p == pytest.approx(by_scipy.pvalue)
    assert found.p == pytest.approx(stats.chi2.sf(textbook, 4))


def test_methods_differ_by_as_much_as_the_critical_difference_and_cliques_say_so() -> None:
    # Four methods in the same order on 12 sets: mean ranks 1, 2, 3, 4; the critical difference is 1.354.
    found = rank_methods(np.tile([1.0, 2.0, 3.0, 4.0], (12, 1)), methods=list("abcd"), sets=names(12))
    assert found.critical_difference == pytest.approx(2.569 * np.sqrt(20 / 72), abs=1e-3)
    assert found.apart("a", "c")
    assert not found.apart("a", "b")
    assert found.cliques == (("a", "b"), ("b", "c"), ("c", "d"))


def test_the_plot_has_a_point_for_each_method_and_a_bar_for_each_clique_and_no_name_is_markup() -> None:
    found = rank_methods(np.tile([1.0, 2.0, 3.0, 4.0], (12, 1)), methods=["<a>", "b", "c", "d"], sets=names(12))
    svg = critical_difference_plot(found, title="T & t", baselines=("c",))
    assert "<a>" not in svg
    assert "&lt;a&gt;" in svg
    assert "T &amp; t" in svg
    # Two more circles are the legend's.
    assert (svg.count("<circle"), svg.count('stroke-width="5"')) == (4 + 2, len(found.cliques))
    assert svg.count('r="5" fill="#8C8C8C"') == 2


def test_where_friedman_finds_nothing_no_two_methods_differ() -> None:
    # Two sets that turn round: all mean ranks are equal, and with p = 1 so much as a difference would not count.
    scores = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    found = rank_methods(scores, methods=list("abc"), sets=names(2))
    assert found.p == pytest.approx(1.0)
    assert found.cliques == (("a", "b", "c"),)
    tied = rank_methods(np.ones((4, 3)), methods=list("abc"), sets=names(4))
    assert (tied.chi_square, tied.p) == (0.0, 1.0)


def test_too_little_to_rank_is_refused() -> None:
    with pytest.raises(InputError, match="3 methods and 2 sets, and there are 2 and 5"):
        rank_methods(np.ones((5, 2)), methods=list("ab"), sets=names(5))
    with pytest.raises(InputError, match="one finite score"):
        rank_methods(np.full((3, 3), np.nan), methods=list("abc"), sets=names(3))


def test_the_best_method_is_compared_by_wilcoxon_with_holm() -> None:
    """SciPy's exact test, Holm written out."""
    scores = np.random.default_rng(0).random((9, 4)) + np.array([0.0, 0.2, 0.5, 0.9])
    found = against_best(scores, methods=["a", "b", "c", "d"], best="a")
    p = {
        name: stats.wilcoxon(scores[:, place] - scores[:, 0], method="exact").pvalue
        for place, name in enumerate("bcd", start=1)
    }
    ordered = sorted(p, key=lambda name: p[name])
    before = 0.0
    for place, name in enumerate(ordered):
        before = max(before, min(1.0, float(p[name]) * (len(ordered) - place)))
        assert found[name] == pytest.approx(before)
