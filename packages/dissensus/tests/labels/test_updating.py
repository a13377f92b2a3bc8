from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus.labels.labelling import ANNOTATOR_MODELS, update
from dissensus.votes.table import Annotators
from tests.labels.panels import simulated

if TYPE_CHECKING:
    from dissensus.labels.annotator_models import AnnotatorModel
    from dissensus.votes.table import Votes

MODELS = pytest.mark.parametrize("name", ANNOTATOR_MODELS)


def first_part(votes: Votes, share: float) -> Votes:
    """The votes that had come in before the others: fewer votes, items and annotators, in another order."""
    rows = np.arange(int(len(votes) * share))[::-1]
    assert votes.annotators is not None
    items, item = np.unique(votes.item[rows], return_inverse=True)
    annotators, annotator = np.unique(votes.annotators.code[rows], return_inverse=True)
    return replace(
        votes,
        item=(len(items) - 1 - item).astype(np.int32),
        label=votes.label[rows],
        items=votes.items[items[::-1]],
        annotators=Annotators(annotator.astype(np.int32), votes.annotators.names[annotators]),
    )


def panel(*, seed: int) -> Votes:
    votes, _, _ = simulated(2_000, annotators=30, classes=4, votes=6, seed=seed)
    assert votes.annotators is not None
    # The last items are voted on last, and by two annotators that nobody saw before.
    late = (votes.item > 1_970) & (votes.annotators.code < 2)
    rows = np.flatnonzero((votes.annotators.code >= 2) | late)
    order = rows[np.argsort(votes.item[rows], kind="stable")]
    return votes.take_judgements(order)


def off(one: AnnotatorModel, other: AnnotatorModel) -> float:
    return float(np.abs(one.posterior - other.posterior).max())


@MODELS
def test_an_update_ends_where_a_fresh_fit_ends(name: str) -> None:
    votes = panel(seed=0)
    before = first_part(votes, 0.98)
    assert len(before.items) < len(votes.items)
    assert before.annotators is not None
    assert votes.annotators is not None
    assert len(before.annotators) < len(votes.annotators)
    options: dict[str, Any] = {} if name == "wawa" else {"tolerance": 1e-9, "max_iterations": 500}
    fit = ANNOTATOR_MODELS[name]
    fresh, updated = fit(votes, **options), update(fit(before, **options), votes)
    assert updated.converged
    assert off(updated, fresh) < 0.01
    if name != "wawa":
        assert updated.log_likelihood[-1] == pytest.approx(fresh.log_likelihood[-1], abs=1e-4)


@pytest.mark.parametrize("name", [name for name in ANNOTATOR_MODELS if name != "wawa"])
def test_an_update_takes_far_fewer_iterations_than_a_fresh_fit(name: str) -> None:
    votes = panel(seed=0)
    fit = ANNOTATOR_MODELS[name]
    fresh, updated = fit(votes), update(fit(first_part(votes, 0.995)), votes)
    assert updated.converged
    assert updated.iterations <= 0.6 * fresh.iterations
    assert updated.log_likelihood[-1] > fresh.log_likelihood[-1] - 1e-5 * len(votes)


@MODELS
def test_without_new_votes_an_update_stays_where_it_is(name: str) -> None:
    votes = panel(seed=1)
    model = ANNOTATOR_MODELS[name](votes)
    again = update(model, votes)
    assert again.iterations <= 4
    assert off(model, again) < 0.02


@MODELS
def test_an_update_keeps_gold_items_prior_counts_and_options(name: str) -> None:
    votes = panel(seed=2)
    before = first_part(votes, 0.95)
    assert before.annotators is not None
    gold = {before.items[5]: "3", before.items[7]: "0"}
    prior = np.random.default_rng(0).integers(0, 20, (len(before.annotators), 4, 4))
    options: dict[str, Any] = {} if name == "wawa" else {"tolerance": 1e-8, "max_iterations": 700}
    named = dict(zip(before.annotators.names.tolist(), prior, strict=True))
    fresh = ANNOTATOR_MODELS[name](votes, gold=gold, prior=named, **options)
    updated = update(ANNOTATOR_MODELS[name](before, gold=gold, prior=prior, **options), votes)
    row = votes.items.tolist().index(before.items[5])
    assert updated.posterior[row].tolist() == [0, 0, 0, 1]
    assert off(updated, fresh) < 0.01
    assert updated.options.keys() == fresh.options.keys()


def test_mace_is_updated_by_the_method_that_fitted_it() -> None:
    votes = panel(seed=3)
    model = ANNOTATOR_MODELS["mace"](first_part(votes, 0.9), method="em")
    assert update(model, votes).options["method"] == "em"


def test_other_classes_and_other_models_are_refused() -> None:
    votes = panel(seed=4)
    model = ANNOTATOR_MODELS["dawid-skene"](votes)
    with pytest.raises(InputError, match="fit afresh where classes changed"):
        update(model, replace(votes, classes=("a", "b", "c", "d")))
    with pytest.raises(InputError, match="glad cannot start from a fit of dawid-skene"):
        ANNOTATOR_MODELS["glad"](votes, start=model)
