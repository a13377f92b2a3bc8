"""What holds for every annotator model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus.labels.annotator_models import AnnotatorModel
from dissensus.labels.labelling import ANNOTATOR_MODELS
from dissensus.votes.simulate import simulate_responses, simulate_votes
from dissensus.votes.table import Votes, votes_from_counts
from tests.labels.panels import any_votes, simulated, votes_of
from tests.votes.people import with_people

Fit = Callable[..., AnnotatorModel]

MODELS: dict[str, Fit] = dict(ANNOTATOR_MODELS)
ITERATIVE = {name: fit for name, fit in MODELS.items() if name != "wawa"}

each_model = pytest.mark.parametrize("fit", MODELS.values(), ids=MODELS)
each_iterative_model = pytest.mark.parametrize("fit", ITERATIVE.values(), ids=ITERATIVE)


@each_iterative_model
@given(votes=any_votes(), knows=st.booleans())
def test_the_objective_never_falls(fit: Fit, votes: Votes, knows: bool) -> None:
    gold = {"item 0": "class 1"} if knows else None
    model = fit(votes, gold=gold, max_iterations=25, tolerance=0)
    assert model.iterations == 25
    assert np.isfinite(model.log_likelihood).all()
    assert (np.diff(model.log_likelihood) >= -1e-9 * (1 + np.abs(model.log_likelihood[1:]))).all()


@each_model
@given(votes=any_votes())
def test_distributions_sum_to_one(fit: Fit, votes: Votes) -> None:
    model = fit(votes)
    rows = [model.posterior, model.class_prior[None], model.confusion, model.strategy]
    for table in rows:
        if table is not None:
            assert np.allclose(table.sum(axis=-1), 1)
            assert (table >= 0).all()
    assert model.posterior.shape == (len(votes.items), len(votes.classes))
    assert model.items is votes.items


@each_model
@given(votes=any_votes(), seed=st.integers(0, 100))
def test_the_order_of_votes_does_not_matter(fit: Fit, votes: Votes, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(votes))
    assert votes.annotators is not None
    shuffled = replace(
        votes,
        item=votes.item[order],
        annotators=votes.annotators.of_votes(order),
        label=votes.label[order],
        judgement=None if votes.judgement is None else votes.judgement[order],
    )
    few = {} if fit is MODELS["wawa"] else {"max_iterations": 3, "tolerance": 0}
    assert np.allclose(fit(votes, **few).posterior, fit(shuffled, **few).posterior, atol=1e-6)


@each_model
def test_classes_and_annotators_have_no_order(fit: Fit) -> None:
    votes, _, _ = simulated(120, annotators=7, classes=4, votes=5, seed=6)
    assert votes.annotators is not None
    renamed = replace(votes, label=3 - votes.label, classes=votes.classes[::-1])
    renamed = with_people(renamed, code=6 - votes.annotators.code)
    one, other = fit(votes), fit(renamed)
    clear = np.sort(votes.counts, axis=1)[:, -1] > np.sort(votes.counts, axis=1)[:, -2]
    off = 0.05 if one.name == "wawa" else 1e-3  # Wawa gives tied majorities to the first class
    assert np.allclose(one.posterior[clear], other.posterior[clear, ::-1], atol=off)


@each_model
def test_1200_votes_an_item_are_no_problem(fit: Fit) -> None:
    generator = np.random.default_rng(0)
    true_class = generator.integers(0, 5, 15)
    confusion = np.full((1_300, 5, 5), 0.15) + 0.25 * np.eye(5)
    votes = simulate_votes(np.eye(5)[true_class], 1_200, annotators=1_300, confusion=confusion, seed=0)
    model = fit(votes)
    assert np.isfinite(model.posterior).all()
    assert np.allclose(model.posterior.sum(axis=1), 1)
    assert (model.posterior.argmax(axis=1) == true_class).all()


@each_model
def test_good_annotators_outvote_a_crowd_of_bad_ones(fit: Fit) -> None:
    votes, true_class, _ = simulated(1_500, annotators=40, classes=5, votes=6, seed=1)
    right = (fit(votes).posterior.argmax(axis=1) == true_class).mean()
    plain = (votes.counts.argmax(axis=1) == true_class).mean()
    assert right > plain


@each_model
def test_gold_items_have_their_class_and_teach_the_others(fit: Fit) -> None:
    # Annotators 0 and 1 always agree with each other, and 2 and 3 do; gold says whom to believe.
    item, annotator = np.repeat(np.arange(40), 4), np.tile(np.arange(4), 40)
    truth = np.arange(40) % 2
    label = np.where(annotator < 2, truth[item], 1 - truth[item])
    votes = votes_of(item, annotator, label, n_classes=2)
    gold = {f"item {i}": f"class {truth[i]}" for i in range(10)}
    model = fit(votes, gold=gold)
    assert (model.posterior[np.arange(10), truth[:10]] == 1).all()
    assert (model.posterior[np.arange(10, 40), truth[10:]] > 0.5).all()


@each_model
def test_a_judgement_of_two_classes_is_half_a_vote_for_each(fit: Fit) -> None:
    alone = votes_of([0, 0], [0, 0], [0, 1], n_classes=2, judgement=[0, 0])
    assert np.allclose(fit(alone).posterior, 0.5)
    # Of item 0, one says both classes and one says class 0; of item 1, both say class 1.
    votes = votes_of([0, 0, 0, 1, 1], [0, 0, 1, 0, 1], [0, 1, 0, 1, 1], n_classes=2, judgement=[0, 0, 1, 2, 3])
    model = fit(votes)
    assert model.n_judgements == 4
    assert model.posterior.argmax(axis=1).tolist() == [0, 1]
    if model.name == "wawa":
        assert np.allclose(model.posterior, np.array([[(0.75 / 2 + 1) / 1.75, 0.75 / 2 / 1.75], [0, 1]]))
        assert np.allclose(model.skill if model.skill is not None else 0, [0.75, 1])


@each_model
def test_yes_no_unsure_responses_are_read_as_judgements(fit: Fit) -> None:
    truth = np.random.default_rng(0).dirichlet(np.full(4, 0.2), 80)
    votes = simulate_responses(truth, 5, annotators=12, seed=1)
    model = fit(votes)
    assert model.n_judgements == 400
    assert (model.posterior.argmax(axis=1) == truth.argmax(axis=1)).mean() > 0.7


@each_model
def test_an_annotator_without_votes_is_no_problem(fit: Fit) -> None:
    votes, _, _ = simulated(50, annotators=6, classes=3, votes=4, seed=2)
    assert votes.annotators is not None
    more = with_people(votes, names=np.arange(9, dtype=np.int64))
    with_them, without = fit(more), fit(votes)
    assert np.allclose(with_them.posterior, without.posterior, atol=1e-6)
    if with_them.skill is not None:
        assert np.isfinite(with_them.skill).all()


@each_model
def test_anonymous_votes_are_refused(fit: Fit) -> None:
    with pytest.raises(InputError, match=r"anonymous; choose frequency, dirichlet, majority or a weighting scheme"):
        fit(votes_from_counts([[2, 1], [0, 3]]))


@each_model
def test_bad_input_is_refused_in_one_sentence(fit: Fit) -> None:
    votes, _, _ = simulated(10, annotators=3, classes=3, votes=2, seed=0)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"gold": {99: "0"}}, "gold item '99' is not among the 10"),
        ({"gold": {None: "0"}}, "gold item 'None' is not among the 10"),
        ({"gold": {1: "seven"}}, "gold class 'seven' is not among the 3"),
    ]
    if fit is not MODELS["wawa"]:
        refused += [({"max_iterations": 0}, "give 1 or more"), ({"tolerance": -1.0}, "give 0 or more")]
    for options, sentence in refused:
        with pytest.raises(InputError, match=sentence):
            fit(votes, **options)
    with pytest.raises(InputError, match="item 10 has zero votes"):
        fit(replace(votes, items=np.arange(11)))
    with pytest.raises(InputError, match="no votes to fit"):
        fit(votes.take_judgements(np.empty(0, dtype=np.int64)))
    with pytest.raises(InputError, match="needs two classes or more"):
        fit(votes_of([0], [0], [0], n_classes=1))


@each_iterative_model
def test_the_fit_stops_within_the_tolerance_and_says_so(fit: Fit) -> None:
    votes, _, _ = simulated(200, annotators=10, classes=4, votes=5, seed=7)
    model = fit(votes, tolerance=1e-5, max_iterations=500)
    gains = np.diff(model.log_likelihood)
    assert model.converged
    assert gains[-1] < 1e-5 * len(votes) <= gains[:-1].min()
    assert f"200 items, converged after {model.iterations} iterations at log-likelihood" in model.report()
    cut = fit(votes, tolerance=1e-12, max_iterations=2)
    assert not cut.converged
    assert f"not converged after 2 iterations at log-likelihood {cut.log_likelihood[-1]:,.1f} nats" in cut.report()
    assert cut.report().endswith("raise max_iterations")
    assert cut.report() in repr(cut)
