from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from crowdkit.aggregation import Wawa
from crowdkit.aggregation.classification import wawa as crowd_kit_wawa

from dissensus.labels.wawa import wawa
from tests.labels.panels import crowd_kit, read_popquorn, simulated, votes_of, words_by_column

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.table import Votes


class PredictingWawa(Wawa):  # type: ignore[misc]
    """crowd-kit's Wawa puts its posterior in place when it predicts."""

    def fit(self, data: object) -> PredictingWawa:
        super().fit(data)
        self.predict_proba(data)
        return self


@pytest.fixture(autouse=True)
def crowd_kit_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    """As shipped, crowd-kit's Wawa asks scikit-learn whether a class that is no estimator is fitted, which fails."""
    monkeypatch.setattr(crowd_kit_wawa, "check_is_fitted", lambda *_, **__: None)


def without_ties(votes: Votes) -> Votes:
    """The votes on items with one majority: crowd-kit gives a tie to the class that it read first."""
    counts = votes.counts
    clear = ((counts == counts.max(axis=1, keepdims=True)).sum(axis=1) == 1)[votes.item]
    assert votes.annotators is not None
    columns = (
        np.unique(each[clear], return_inverse=True)[1] for each in (votes.item, votes.annotators.code, votes.label)
    )
    return votes_of(*columns, n_classes=len(votes.classes))


@pytest.mark.parametrize("seed", range(5))
def test_wawa_is_crowd_kits_where_majorities_are_clear(seed: int) -> None:
    votes, _, _ = simulated(200, annotators=9, classes=4, votes=4, seed=seed)
    votes = without_ties(votes)
    theirs = PredictingWawa()
    posterior = crowd_kit(theirs, votes)
    ours = wawa(votes)
    assert ours.skill is not None
    assert np.allclose(ours.posterior, posterior)
    assert np.allclose(ours.skill, theirs.skills_.sort_index())


def test_wawa_is_crowd_kits_on_real_votes(data: Path) -> None:
    for votes in (without_ties(read_popquorn(data)), without_ties(words_by_column())):
        assert np.allclose(wawa(votes).posterior, crowd_kit(PredictingWawa(), votes))


@pytest.fixture
def two_items() -> Votes:
    """Annotators 0 and 1 say 0 twice; annotator 2 says 1 and 2; annotator 3 has voted once, alone."""
    return votes_of([0, 0, 0, 1, 1, 1, 2], [0, 1, 2, 0, 1, 2, 3], [0, 0, 1, 0, 0, 2, 2], n_classes=3)


def test_a_worked_example(two_items: Votes) -> None:
    model = wawa(two_items)
    assert model.skill is not None
    assert model.skill.tolist() == [1, 1, 0, 1]
    assert model.posterior.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    assert model.log_likelihood.size == model.iterations == 0
    assert model.report() == "wawa: 7 judgements by 4 annotators on 3 items, in one pass"


def test_gold_stands_for_the_majority(two_items: Votes) -> None:
    model = wawa(two_items, gold={"item 0": "class 1"})
    assert model.skill is not None
    assert model.skill.tolist() == [0.5, 0.5, 0.5, 1]
    assert np.allclose(model.posterior, np.array([[0, 1, 0], [2 / 3, 0, 1 / 3], [0, 0, 1]]))


def test_gold_can_leave_an_annotator_without_skill(two_items: Votes) -> None:
    model = wawa(two_items, gold={"item 2": "class 0"})
    assert model.skill is not None
    assert model.skill.tolist() == [1, 1, 0, 0]
    assert model.posterior.tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 0]]
