"""Facts by group, original labels, normalised times and the measures of human uncertainty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr, zscore
from statsmodels.stats.proportion import proportion_confint

from dissensus.errors import InputError
from dissensus.labels.schemes import weighted
from dissensus.labels.uncertainty import uncertainty_correlations, uncertainty_measures
from dissensus.votes.agreement import krippendorff_alpha
from dissensus.votes.annotators import normalised_seconds
from dissensus.votes.groups import by_annotators, by_items, original_agreement
from dissensus.votes.inspection import FEWEST, inspect
from dissensus.votes.simulate import simulate_responses, simulate_votes
from dissensus.votes.table import Annotators, Votes, votes_from_counts
from tests.votes.people import with_people


def text(names: Any) -> Any:
    return np.array(names, dtype=np.dtypes.StringDType())


def panel() -> Votes:
    """Responses with times: slow people, and within each person slow judgements of items that divide the panel."""
    rng = np.random.default_rng(0)
    votes = simulate_responses(rng.dirichlet(np.full(4, 0.6), 120), 6, annotators=12, seed=1)
    assert votes.judgement_annotator is not None
    slow = rng.normal(1.5, 0.7, 12)[votes.judgement_annotator]
    doubt = weighted(votes, "equal-weighted").entropy[votes.judgement_item]
    described = with_people(votes, attributes={"country": text(["NL", "UK", "US"] * 4)})
    return replace(
        described,
        seconds=np.exp(slow + 0.6 * doubt + 0.2 * rng.normal(size=votes.n_judgements)),
        item_attributes={"source": text(["web", "book"] * 60)},
    )


def test_a_group_of_items_is_what_its_items_alone_are() -> None:
    votes = panel()
    web = next(group for group in by_items(votes, "source", resamples=0) if group.name == "web")
    alone = votes.take_items(np.arange(0, 120, 2))
    found = inspect(alone, resamples=0)
    assert web.items == 60
    assert web.judgements_per_item == pytest.approx(6)
    assert web.entropy == pytest.approx(found.entropy.mean)
    assert web.unanimous_share == pytest.approx(found.unanimous_share)
    assert web.alpha is not None
    assert web.alpha.value == pytest.approx(krippendorff_alpha(alone, resamples=0).value)
    assert alone.seconds is not None
    assert web.seconds == pytest.approx(np.median(alone.seconds))
    assert web.unsure_rate == pytest.approx(found.unsure_rate)
    with pytest.raises(InputError, match=r"no attribute 'colour' \(they have source\)"):
        by_items(votes, "colour")


def test_groups_of_annotators_add_up() -> None:
    votes = panel()
    groups = by_annotators(votes, "country", least=1)
    assert {group.name for group in groups} == {"NL", "UK", "US"}
    assert sum(group.judgements for group in groups) == votes.n_judgements
    assert votes.judgement_annotator is not None
    assert votes.seconds is not None
    mine = np.isin(votes.judgement_annotator, np.arange(0, 12, 3))
    first = next(group for group in groups if group.name == "NL")
    assert first.seconds == pytest.approx(np.median(votes.seconds[mine]))


def test_groups_of_too_few_people_are_not_told_of() -> None:
    votes = panel()
    assert by_annotators(votes, "country", least=100) == ()


def test_seconds_are_normalised_within_each_annotator() -> None:
    votes = panel()
    pace = normalised_seconds(votes)
    assert pace is not None
    assert votes.seconds is not None
    assert votes.judgement_annotator is not None
    for who in range(12):
        mine = votes.judgement_annotator == who
        np.testing.assert_allclose(pace[mine], zscore(np.log(votes.seconds[mine]), ddof=1), atol=1e-9)
    assert normalised_seconds(replace(votes, seconds=None)) is None


def test_the_correlations_are_scipys_and_normalising_strengthens_them() -> None:
    votes = panel()
    measures = uncertainty_measures(votes)
    found = uncertainty_correlations(votes, resamples=200)
    assert found is not None
    assert found.measures == tuple(measures)
    for (i, j), estimate in found.estimates.items():
        one, other = measures[found.measures[i]], measures[found.measures[j]]
        assert estimate.value == pytest.approx(spearmanr(one, other).statistic)
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low <= estimate.value <= estimate.high
    place = {name: k for k, name in enumerate(found.measures)}
    entropy = place["entropy, equal-weighted"]
    plain, own = (found.estimates[place[name], entropy].value for name in ("seconds", "normalised seconds"))
    assert own > plain + 0.1


def test_original_labels_beside_the_majority() -> None:
    votes = votes_from_counts([[3, 0], [1, 2], [0, 3], [2, 1]], classes=("a", "b"))
    found = original_agreement(votes, text(["a", "a", "b", ""]))
    assert (found.items, found.left_out, found.matrix.tolist()) == (3, 1, [[1, 1], [0, 1]])
    low, high = proportion_confint(2, 3, method="wilson")
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)
    with pytest.raises(InputError, match="no original label"):
        original_agreement(votes, text(["x"] * 4))


def test_chaosnli_has_its_published_share_of_old_labels(data: Any) -> None:
    from dissensus.datasets import load

    for name, share in (("snli", 0.750), ("mnli", 0.682), ("alphanli", 0.894)):
        votes = load(f"chaosnli-{name}")
        found = original_agreement(votes, votes.item_attributes["original"])
        assert found.same == pytest.approx(share, abs=0.006)  # ties are decided otherwise there


class TestSentences:
    def test_majorities_that_more_votes_change_are_those_of_the_truth(self) -> None:
        rng = np.random.default_rng(3)
        truth = rng.dirichlet(np.full(3, 0.8), 2000)
        votes = simulate_votes(truth, 7, annotators=20, seed=4)
        wrong = int((votes.counts.argmax(axis=1) != truth.argmax(axis=1)).sum())
        assert inspect(votes, resamples=0).to_change == pytest.approx(wrong, rel=0.15)

    def test_somebody_who_answers_at_random_is_named(self) -> None:
        truth = np.eye(3)[np.random.default_rng(0).integers(3, size=300)]
        confusion = np.broadcast_to(np.full((3, 3), 0.05) + 0.85 * np.eye(3), (10, 3, 3)).copy()
        confusion[4] = 1 / 3
        votes = simulate_votes(truth, 5, annotators=10, confusion=confusion, seed=1)
        found = inspect(votes, resamples=0)
        assert "Look at 4 (" in found.sentences()[2]
        assert found.doubtful()[0]["annotator"] == 4

    def test_few_judgements_do_not_make_anybody_doubtful(self) -> None:
        truth = np.eye(2)[np.zeros(60, dtype=int)]
        votes = simulate_votes(truth, 3, annotators=3, seed=0)
        assert votes.annotators is not None
        extra = replace(
            votes,
            item=np.append(votes.item, np.int32(0)),
            label=np.append(votes.label, np.int32(1)),
            annotators=Annotators(np.append(votes.annotators.code, np.int32(3)), np.arange(4)),
        )
        found = inspect(extra, resamples=0)
        assert all(row["compared"] >= FEWEST for row in found.doubtful())
        assert "Look at" not in found.sentences()[2]
