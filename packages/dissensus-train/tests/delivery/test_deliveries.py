from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from dissensus.errors import InputError
from dissensus.labels.schemes import dirichlet, frequency, weighted
from dissensus.votes.simulate import simulate_responses, simulate_votes
from dissensus.votes.table import votes_from_counts
from dissensus_train.delivery import DELIVERIES, HARD, deliver

if TYPE_CHECKING:
    from dissensus.labels.distribution import LabelDistribution

TRUTH = np.random.default_rng(0).dirichlet(np.full(4, 0.6), 12)
VOTES = simulate_votes(TRUTH, np.tile([3, 4, 6], 4), annotators=9, seed=0)
LABELS = frequency(VOTES)
CERTAIN = frequency(simulate_votes(np.eye(4)[[0, 3, 1, 2, 2, 0]], 5, annotators=6, seed=0))


def as_distributions(targets: torch.Tensor, n_classes: int = 4) -> torch.Tensor:
    return F.one_hot(targets, n_classes).float() if targets.ndim == 1 else targets


# --- the contract that every delivery keeps ---------------------------------------------------------------------


@pytest.mark.parametrize("name", DELIVERIES)
def test_hard_deliveries_are_those_that_see_only_the_majority(name: str) -> None:
    surer = frequency(votes_from_counts(LABELS.counts + 5 * LABELS.one_hot().astype(np.int64)))
    assert (surer.one_hot() == LABELS.one_hot()).all()
    one, other = (deliver(name, labels, seed=3) for labels in (LABELS, surer))
    same = all(torch.equal(one(epoch), other(epoch)) for epoch in range(5))
    assert same == (name in HARD)


@pytest.mark.parametrize("name", DELIVERIES)
def test_every_row_is_a_distribution(name: str) -> None:
    given = deliver(name, LABELS, VOTES, seed=3)
    for epoch in (0, 1, 7):
        rows = as_distributions(given(epoch))
        assert rows.shape == (len(given.examples), 4)
        # Centred noise on a certain label leaves the simplex: there is no other.
        assert (rows >= 0).all() or name == "noisy-soft"
        assert torch.allclose(rows.sum(dim=1), torch.ones(len(rows)))


@pytest.mark.parametrize("name", DELIVERIES)
def test_the_same_seed_and_epoch_give_the_same_targets_in_any_order(name: str) -> None:
    one, two = (deliver(name, LABELS, VOTES, seed=5) for _ in range(2))
    forwards = [one(epoch) for epoch in range(4)]
    backwards = [two(epoch) for epoch in reversed(range(4))][::-1]
    assert all(torch.equal(a, b) for a, b in zip(forwards, backwards, strict=True))


@pytest.mark.parametrize("name", ["sls", "multipass", "shuffled-sls", "stale-sls", "mixup", "noisy-soft"])
def test_another_seed_gives_other_targets(name: str) -> None:
    one, two = (deliver(name, LABELS, VOTES, seed=seed) for seed in (1, 2))
    assert any(not torch.equal(one(epoch), two(epoch)) for epoch in range(5))


@pytest.mark.parametrize("name", [name for name in DELIVERIES if name != "shuffled-sls"])
def test_items_keep_their_identity(name: str) -> None:
    """With certain labels there is one right answer for each item, whatever the delivery."""
    options: dict[str, Any] = {"smoothing": 0.0} if name == "label-smoothing" else {}
    given = deliver(name, CERTAIN, seed=1, **options)
    label = torch.tensor([0, 3, 1, 2, 2, 0])
    for epoch in range(3):
        expected = F.one_hot(label[given.examples], 4).float()
        mixing = given.mixing(epoch)
        if mixing is not None:
            share = mixing.weight[:, None]
            expected = share * expected + (1 - share) * F.one_hot(label[mixing.partner], 4).float()
        assert torch.allclose(as_distributions(given(epoch)), expected)


@pytest.mark.parametrize("name", ["soft", "sls", "stale-sls", "multipass", "repeated"])
def test_in_the_mean_the_target_is_delivered(name: str) -> None:
    options: dict[str, Any] = {"keep": 2} if name == "stale-sls" else {}
    given = deliver(name, LABELS, VOTES, seed=0, **options)
    epochs = 12 if name in ("soft", "multipass", "repeated") else 8_000
    total = torch.zeros(len(LABELS), 4, dtype=torch.float64)
    for epoch in range(epochs):
        total.index_add_(0, given.examples, as_distributions(given(epoch)).double())
    mean = (total / total.sum(dim=1, keepdim=True)).numpy()
    # 12 epochs are whole cycles of 3, 4 and 6 votes, so multipass is exact; draws are right up to their error.
    exact = name in ("soft", "multipass", "repeated")
    assert np.abs(mean - LABELS.probabilities).max() < (1e-7 if exact else 0.03)


# --- what each is for -------------------------------------------------------------------------------------------


def test_multipass_shows_every_vote_once_a_cycle() -> None:
    given = deliver("multipass", LABELS, seed=0)
    shown = torch.stack([given(epoch) for epoch in range(6)])
    for item, size in enumerate(LABELS.panel_size):
        seen = np.bincount(shown[:size, item], minlength=4)
        assert seen.tolist() == LABELS.counts[item].tolist()
        assert torch.equal(shown[0, item], given(int(size))[item])


def test_another_order_seed_is_another_traversal_of_the_same_votes() -> None:
    one, control = deliver("multipass", LABELS, seed=0), deliver("multipass", LABELS, seed=0, order_seed=99)
    a, b = (torch.stack([given(epoch) for epoch in range(12)]) for given in (one, control))
    assert not torch.equal(a, b)
    assert torch.equal(a.sort(dim=0).values, b.sort(dim=0).values)


def test_multipass_of_a_weighted_target_passes_through_judgements() -> None:
    votes = simulate_responses(TRUTH, 4, annotators=9, seed=1)
    for scheme in ("equal-weighted", "uncertainty-weighted", "yes-only"):
        labels = weighted(votes, scheme)
        given = deliver("multipass", labels, votes, seed=0)
        mean = torch.stack([given(epoch) for epoch in range(4)]).double().mean(dim=0)
        assert np.allclose(mean, labels.probabilities, atol=1e-6)


def test_stale_draws_are_kept_and_then_renewed() -> None:
    given = deliver("stale-sls", LABELS, seed=0, keep=5)
    assert all(torch.equal(given(0), given(epoch)) for epoch in range(5))
    assert not torch.equal(given(0), given(5))


def test_shuffled_sls_keeps_the_statistics_and_breaks_the_pairing() -> None:
    given = deliver("shuffled-sls", CERTAIN, seed=2)
    assert given(0).sort().values.tolist() == [0, 0, 1, 2, 2, 3]
    assert given(0).tolist() != [0, 3, 1, 2, 2, 0]


def test_repeated_has_one_example_a_vote() -> None:
    given = deliver("repeated", LABELS)
    assert len(given.examples) == len(VOTES)
    assert torch.bincount(given.examples).tolist() == LABELS.panel_size.tolist()


def test_label_smoothing_is_torchs() -> None:
    smooth = deliver("label-smoothing", LABELS, smoothing=0.2)(0)
    hard = deliver("majority", LABELS)(0).argmax(dim=1)
    logits = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(F.cross_entropy(logits, smooth), F.cross_entropy(logits, hard, label_smoothing=0.2))


# --- Proposition 1 of the basins paper --------------------------------------------------------------------------


def test_proposition_1_expected_loss_gradient_and_covariance() -> None:
    """E[-log q_y] = H(p, q), E[grad] = q - p and Cov[grad] = Diag(p) - p p^T, over the votes of one cycle."""
    item = 2
    p = torch.from_numpy(LABELS.probabilities[item])
    logits = torch.tensor([0.3, -1.2, 0.8, 0.1], dtype=torch.float64, requires_grad=True)
    q = logits.softmax(dim=0).detach()
    given = deliver("multipass", LABELS, seed=0)
    losses, gradients = [], []
    for epoch in range(int(LABELS.panel_size[item])):
        loss = F.cross_entropy(logits[None], given(epoch)[item][None])
        (gradient,) = torch.autograd.grad(loss, logits)
        losses.append(loss.detach())
        gradients.append(gradient)
    stacked = torch.stack(gradients)
    centred = stacked - stacked.mean(dim=0)
    assert torch.allclose(torch.stack(losses).mean(), -(p * q.log()).sum())
    assert torch.allclose(stacked.mean(dim=0), q - p)
    assert torch.allclose(centred.T @ centred / len(stacked), torch.diag(p) - torch.outer(p, p))
    assert torch.allclose(centred.pow(2).sum(dim=1).mean(), 1 - p.pow(2).sum())


# --- refusals ---------------------------------------------------------------------------------------------------


def posterior() -> LabelDistribution:
    return dirichlet(VOTES)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("softest", {}, "is not a delivery; .*choose soft"),
        ("soft", {"keep": 3}, "has no option 'keep'"),
        ("stale-sls", {"keep": 0}, "at least 1 epoch"),
        ("label-smoothing", {"smoothing": 1.5}, "choose 0 to 1"),
        ("mixup", {"strength": -1.0}, "0 or more"),
        ("multipass", {}, "use sls"),
    ],
)
def test_deliveries_that_make_no_sense_are_refused(name: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        deliver(name, posterior(), VOTES, **options)


# --- controls for sls -------------------------------------------------------------------------------------------


def test_smoothed_soft_labels_are_mixed_with_the_uniform_distribution() -> None:
    smoothed = deliver("soft", LABELS, smoothing=0.2)(0).numpy()
    np.testing.assert_allclose(smoothed, 0.8 * LABELS.probabilities + 0.2 / 4, atol=1e-6)
    assert torch.equal(deliver("soft", LABELS, smoothing=0.0)(0), deliver("soft", LABELS)(0))
    with pytest.raises(InputError, match="delivery soft: smoothing is 2"):
        deliver("soft", LABELS, smoothing=2.0)


def test_noisy_soft_labels_have_the_mean_of_soft_and_the_energy_of_sls_but_not_on_contested_items() -> None:
    epochs = range(4000)
    noisy = deliver("noisy-soft", LABELS, seed=1)
    given = np.stack([noisy(epoch).numpy() for epoch in epochs])
    p = LABELS.probabilities
    np.testing.assert_allclose(given.mean(axis=0), p, atol=0.05)
    energy = ((given - p) ** 2).sum(axis=2)
    # Proposition 1 of the basins paper: sls has 1 - ||p||^2 of each item; here every item has their mean.
    np.testing.assert_allclose(energy.mean(axis=0), (1 - (p**2).sum(axis=1)).mean(), rtol=0.1)
    sls = deliver("sls", LABELS, seed=1)
    of_sls = ((np.eye(4)[sls(7).numpy()] - p) ** 2).sum()
    assert energy[7].sum() == pytest.approx(of_sls, rel=1e-5)
