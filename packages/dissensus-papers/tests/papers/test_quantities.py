"""Quantities of a study, against the scored study itself, SciPy and closed forms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import jensenshannon

from dissensus.bootstrap import Estimate
from dissensus.errors import InputError
from dissensus.evaluation import Spread
from dissensus.evaluation.metrics import soft_nll
from dissensus_papers.papers.evidence import Evidence
from dissensus_papers.papers.measured import over_seeds
from dissensus_papers.papers.quantities import measure
from dissensus_train.studies import open_study, read_study
from dissensus_train.studies.original import scores_against
from tests.study_report.studies import finished

if TYPE_CHECKING:
    from tests.papers.conftest import Small

SOFT, MAJORITY = "frequency, 3 votes / soft", "frequency, 3 votes / majority"
TWO = {"system": SOFT, "against": MAJORITY}


@pytest.fixture(scope="module")
def evidence(small: Small) -> Evidence:
    return Evidence(opened=(open_study(read_study(small.folder / "small.toml"), small.store),), resamples=400)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return Evidence(opened=(finished(tmp_path_factory.mktemp("measured"), measured=True),), resamples=50)


def test_a_difference_is_that_of_the_scored_study(evidence: Evidence) -> None:
    for metric in ("soft_nll", "accuracy", "entropy_spearman"):
        found = measure(evidence, "difference", {"metric": metric, **TWO})
        row = evidence.evaluation.difference(MAJORITY, only=[SOFT]).get(SOFT, metric)
        assert found.value.value == pytest.approx(row.value.value)
        assert (found.value.low, found.value.high) == pytest.approx((row.value.low, row.value.high), abs=1e-9)
        assert found.by_seed
        assert np.mean(found.by_seed) == pytest.approx(found.value.value)
        if row.p is not None:
            assert found.p == pytest.approx(row.p)


def test_a_score_is_that_of_the_scored_study_in_its_stratum(evidence: Evidence) -> None:
    last = [name for idea, name in evidence.evaluation.compared_strata if idea == "entropy"][-1]
    for where in ({}, {"stratum": "varied"}, {"stratum": last, "by": "entropy"}):
        found = measure(evidence, "score", {"metric": "kl", "system": SOFT, **where})
        idea = where.get("by", "agreement")
        row = evidence.evaluation.by_stratum(idea).get(SOFT, "kl", stratum=where.get("stratum", "all"))
        assert row.value is not None
        assert found.value.value == pytest.approx(row.value.value)
        assert len(found.by_seed) == 3


def test_a_relative_change_is_the_ratio_of_means_with_an_interval_as_wide_as_the_bootstraps(evidence: Evidence) -> None:
    # Not KL: its interval is over other annotators too.
    found = measure(evidence, "relative change", {"metric": "brier", **TWO})
    values = evidence.evaluation.compared.resampled["all", "all"]["brier"]
    ratio = values[SOFT].mean(axis=1) / values[MAJORITY].mean(axis=1) - 1
    assert found.value.value == pytest.approx(ratio[0])
    by_seed = values[SOFT][0] / values[MAJORITY][0] - 1
    np.testing.assert_allclose(found.by_seed, by_seed)
    # With the seeds taken as given, the delta method must agree with resampling the ratio itself.
    one_seed = replace_seeds(evidence, 1)
    alone = measure(one_seed, "relative change", {"metric": "brier", **TWO})
    resampled = values[SOFT][1:, 0] / values[MAJORITY][1:, 0] - 1
    assert alone.value.low is not None
    assert alone.value.high is not None
    width = (alone.value.high - alone.value.low) / 3.92
    assert width == pytest.approx(resampled.std(), rel=0.25)


@pytest.mark.parametrize(
    ("quantity", "ends"), [("relative change", (-1.0, 2.0)), ("difference", (-1.0, 1.0)), ("score", (0.0, 1.0))]
)
def test_an_interval_ends_where_the_quantity_does(
    evidence: Evidence, monkeypatch: pytest.MonkeyPatch, quantity: str, ends: tuple[float, float]
) -> None:
    """Where seeds vary as much as this, KL seemed to fall by more than all of it."""
    spread = Spread(((50.0, 4),))
    monkeypatch.setattr("dissensus_papers.papers.quantities.spread_over_seeds", lambda *_, **__: spread)
    about = {"metric": "brier" if quantity == "relative change" else "accuracy", **TWO}
    asked = {key: value for key, value in about.items() if quantity != "score" or key != "against"}
    value = measure(evidence, quantity, asked).value
    assert value.high is not None
    # A ratio may be as high as it likes.
    assert (value.low, min(value.high, 2.0)) == ends


def replace_seeds(evidence: Evidence, seeds: int) -> Evidence:
    """The same study with its first seeds only; they are in the store already."""
    opened = evidence.first
    study = replace(opened.study, seeds=opened.study.seeds[:seeds])
    return Evidence(opened=(open_study(study, opened.store.folder),), resamples=evidence.resamples)


def test_an_order_is_the_share_of_pairs(evidence: Evidence) -> None:
    kl = {name: evidence.evaluation.overall.get(name, "kl").value for name in (SOFT, MAJORITY, "marginal")}
    ranked = sorted(kl, key=lambda name: -kl[name].value)  # type: ignore[union-attr]
    for systems, right in ((ranked, 1.0), (ranked[::-1], 0.0), ([ranked[1], ranked[0], ranked[2]], 2 / 3)):
        found = measure(evidence, "order", {"metric": "kl", "systems": systems})
        assert found.value.value == pytest.approx(right)
    # Constants that name the same class are equally accurate: neither order is right.
    same = ["marginal", "majority + temperature", MAJORITY]
    scores = evidence.evaluation.overall
    assert scores.get(same[1], "accuracy").value == scores.get(same[2], "accuracy").value
    tied = measure(evidence, "order", {"metric": "accuracy", "systems": same[1:]})
    assert tied.value.value == 0.5


def test_what_is_not_defined_is_refused_and_no_number(evidence: Evidence) -> None:
    """A constant has no entropy correlation."""
    constant = {"metric": "entropy_spearman", "system": "marginal"}
    for quantity, about in (("score", {}), ("difference", {"against": SOFT}), ("relative change", {"against": SOFT})):
        with pytest.raises(InputError, match="entropy_spearman of 'marginal' is not defined on these items"):
            measure(evidence, quantity, {**constant, **about})
    with pytest.raises(InputError, match="is not defined"):
        measure(evidence, "order", {"metric": "entropy_spearman", "systems": [SOFT, "marginal"]})


def test_the_gain_correlation_is_spearmans_of_gain_and_distance(evidence: Evidence) -> None:
    found = measure(evidence, "gain correlation", {"metric": "soft_nll", "split": "test", **TWO})
    data, scored = evidence.first.data, evidence.scored
    members = data.splits["test"]
    human = data.human.take(members).probabilities
    target = data.targets["frequency, 3 votes"].take(members).probabilities
    q = {name: scored.systems[name].predictions["test"].astype(float) for name in (SOFT, MAJORITY)}
    gain = np.mean([soft_nll(human, b) - soft_nll(human, a) for a, b in zip(q[SOFT], q[MAJORITY], strict=True)], axis=0)
    distance = jensenshannon(human, target, base=2, axis=1)
    assert found.value.value == pytest.approx(stats.spearmanr(distance, gain).statistic, abs=1e-6)
    assert found.value.low is not None
    assert found.value.low < found.value.value


def test_scores_against_original_labels(evidence: Evidence) -> None:
    about = {"metric": "accuracy", "system": SOFT, "target": "original"}
    found = measure(evidence, "score", about)
    right = scores_against(evidence.scored, "original", resamples=10).overall.get(SOFT, "accuracy").value
    assert right is not None
    assert found.value.value == pytest.approx(right.value)


def test_basins_and_ood_come_from_the_store(measured: Evidence) -> None:
    ratio = measure(measured, "basin ratio", {"measure": "lambda_max", "system": "majority", "against": "soft"})
    values = {
        name: np.array([basin.eigenvalues.values[0] for basin in basins])
        for name, basins in measured.basins.systems.items()
    }
    logs = np.log(values["majority"] / values["soft"])
    assert ratio.value.value == pytest.approx(np.exp(logs.mean()))
    low, high = stats.t.interval(0.95, 1, logs.mean(), stats.sem(logs))
    assert (ratio.value.low, ratio.value.high) == pytest.approx((np.exp(low), np.exp(high)))
    assert ratio.null == 1.0
    barrier = measure(measured, "pair", {"measure": "barrier", "system": "majority", "against": "soft"})
    pairs = next(each.pairs for each in measured.basins.pairs if (each.first, each.second) == ("majority", "soft"))
    assert barrier.value.value == pytest.approx(np.mean([pair.barrier.value for pair in pairs]))
    alike = measure(
        measured, "pair difference", {"measure": "cka", "system": "soft & soft", "against": "majority & majority"}
    )
    assert -1 <= alike.value.value <= 1
    maps = measured.basins.explanations
    steadier = measure(
        measured, "explanation difference", {"measure": "cosine", "system": "soft", "against": "majority"}
    )
    soft, majority = maps["soft"].cosine, maps["majority"].cosine
    assert steadier.value.value == pytest.approx(soft.value - majority.value)
    # Independent intervals: half widths add as squares.
    ends = np.array([(each.low, each.high) for each in (soft, majority)], dtype=float)
    low, high = (
        np.hypot(soft.value - ends[0, 0], ends[1, 1] - majority.value),
        np.hypot(ends[0, 1] - soft.value, majority.value - ends[1, 0]),
    )
    found = (steadier.value.low, steadier.value.high)
    assert found == pytest.approx((steadier.value.value - low, steadier.value.value + high))
    name = measured.ood.sets[0].name
    about = {"ood_set": name, "scores": ["msp", "energy"], "system": "soft", "against": "majority"}
    ahead = measure(measured, "ood ahead", about)
    by_hand = [
        np.mean(measured.ood.get(name, score, system="soft").by_seed)
        > np.mean(measured.ood.get(name, score, system="majority").by_seed)
        for score in ("msp", "energy")
    ]
    assert ahead.value == Estimate(float(sum(by_hand)))
    gap = measure(measured, "ood difference", {**about, "scores": ["msp"]})
    known = measured.ood.difference(name, "msp", system="soft")
    assert known is not None
    assert gap.value == known.value


def test_dynamics_are_of_the_last_epochs(measured: Evidence) -> None:
    about = {"measure": "confidence", "human": "entropy", "system": "soft"}
    found = measure(measured, "uncertainty correlation", about)
    assert len(found.by_seed) == 2
    assert np.mean(found.by_seed) == pytest.approx(found.value.value)
    moved = measure(measured, "early divergence", {"epochs": 2, "system": "soft", "against": "majority"})
    assert np.mean(moved.by_seed) == pytest.approx(moved.value.value)


@pytest.mark.parametrize(
    ("quantity", "about", "told"),
    [
        ("score", {"metric": "kl", "system": "nobody"}, "there is no kl of 'nobody' in this study; its systems are"),
        ("score", {"metric": "kl", "system": SOFT, "stratum": "odd"}, "no item is in the stratum 'odd' by agreement"),
        ("basin ratio", {"measure": "trace", **TWO}, "it does not ask for basins"),
        ("explanation difference", {"measure": "cosine", **TWO}, "it does not ask for basins"),
        ("ood ahead", {"ood_set": "x", "scores": ["msp"], **TWO}, "it does not ask for out-of-distribution"),
        ("mode shift", {"measure": "mode", "system": "nobody"}, "no mode-shift audit of 'nobody' in 'all'"),
    ],
)
def test_what_a_study_does_not_have_is_refused(
    evidence: Evidence, quantity: str, about: dict[str, Any], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        measure(evidence, quantity, about)


def test_seeds_on_splits_of_their_own_have_the_corrected_interval() -> None:
    """Nadeau, Bengio 2003, written out; and it is wider than Student's, since splits share items."""
    values = np.array([-0.31, -0.24, -0.28, -0.35])
    found = over_seeds(values, tested_share=0.25, null=0.0)
    half = stats.t.ppf(0.975, 3) * values.std(ddof=1) * np.sqrt(1 / 4 + 0.25)
    assert found.value.value == pytest.approx(values.mean())
    assert found.value.low == pytest.approx(values.mean() - half)
    assert found.p == pytest.approx(
        2 * stats.t.sf(abs(values.mean()) / (values.std(ddof=1) * np.sqrt(0.5)), 3), rel=1e-6
    )
    alone = over_seeds(values[:1], tested_share=0.25)
    assert (alone.value.low, alone.over) == (None, "seeds, each on a split of its own")


def test_a_score_shift_is_the_score_on_people_less_that_on_the_old_labels(evidence: Evidence) -> None:
    found = measure(evidence, "score shift", {"metric": "accuracy", "system": SOFT, "target": "original"})
    both = [measure(evidence, "score", {"metric": "accuracy", "system": SOFT, "target": of}) for of in ("", "original")]
    assert found.value.value == pytest.approx(both[0].value.value - both[1].value.value)
    assert found.by_seed == pytest.approx(np.subtract(both[0].by_seed, both[1].by_seed))
    # Both are of the same items, resampled alike: the interval is that of a paired difference.
    assert found.value.low is not None
    assert found.value.high is not None
    wider = sum((each.value.high or 0) - (each.value.low or 0) for each in both)
    assert found.value.high - found.value.low <= wider + 1e-9
    same = measure(evidence, "score shift", {"metric": "accuracy", "system": SOFT, "target": ""})
    assert (same.value.value, same.value.low, same.value.high) == (0, 0, 0)


def test_runs_that_agree_lie_closer_together(evidence: Evidence) -> None:
    found = measure(evidence, "between runs", TWO)
    apart = []
    for name in (SOFT, MAJORITY):
        runs = np.asarray(evidence.scored.systems[name].predictions["test"], dtype=float)
        pairs = [jensenshannon(runs[a], runs[b], axis=1) ** 2 for a, b in ((0, 1), (0, 2), (1, 2))]
        apart.append(np.mean(pairs))
    assert found.value.value == pytest.approx(apart[0] / apart[1] - 1, rel=1e-4)
    assert measure(evidence, "between runs", {"system": SOFT, "against": SOFT}).value.value == pytest.approx(0)
