from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from dissensus.errors import InputError
from dissensus_train.basins import cka, gradient_variance, objective
from dissensus_train.basins.last_layer import last_layer_inputs
from tests.basins.nets import conv_net, items


@given(st.integers(4, 40), st.integers(1, 60), st.integers(0, 10**6))
def test_cka_does_not_see_rotation_scale_or_shift(n: int, dimensions: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, dimensions))
    rotation = np.linalg.qr(generator.normal(size=(dimensions, dimensions)))[0]
    found = cka(x, 3 * x @ rotation + 7)
    assert found.value == pytest.approx(1, abs=1e-9)
    assert found.error == pytest.approx(0, abs=1e-7)


def test_cka_is_that_of_the_definition() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(50, 8))
    y = x @ generator.normal(size=(8, 5)) + generator.normal(size=(50, 5))
    centre = np.eye(50) - 1 / 50
    k, m = centre @ x @ x.T @ centre, centre @ y @ y.T @ centre
    expected = (k * m).sum() / np.sqrt((k * k).sum() * (m * m).sum())
    found = cka(x, y)
    assert found.value == pytest.approx(expected)
    assert cka(y, x).value == pytest.approx(expected)
    assert found.dimensions == (8, 5)
    # Wider than there are items.
    wide = np.concatenate([x, x @ generator.normal(size=(8, 70))], axis=1)
    k = centre @ wide @ wide.T @ centre
    assert cka(wide, y).value == pytest.approx((k * m).sum() / np.sqrt((k * k).sum() * (m * m).sum()))


def test_the_jack_knife_error_of_cka_is_that_of_further_samples() -> None:
    generator = np.random.default_rng(0)
    mixing = generator.normal(size=(4, 3))
    found = []
    for _ in range(150):
        x = generator.normal(size=(300, 4))
        found.append(cka(x, x @ mixing + generator.normal(size=(300, 3))))
    spread = np.std([each.value for each in found])
    assert np.sqrt(np.mean([each.error**2 for each in found])) == pytest.approx(spread, rel=0.25)


def test_cka_refuses_other_items_and_constants() -> None:
    with pytest.raises(InputError, match="same 4 items"):
        cka(np.ones((5, 2)), np.ones((6, 2)))
    with pytest.raises(InputError, match="same for all items"):
        cka(np.ones((5, 2)), np.arange(10.0).reshape(5, 2))


def test_gradient_variance_is_that_of_drawn_labels() -> None:
    """Proposition 1 of the basins paper, against gradients of labels drawn one by one."""
    model, (x, t) = conv_net(), items(6)
    found = gradient_variance(objective(model, x, t), resamples=50)
    layer = model[9]  # type: ignore[index]
    for item in range(6):
        gradients = []
        for label in range(t.shape[1]):
            loss = torch.nn.functional.cross_entropy(model(x[item : item + 1]), torch.tensor([label]))
            parts = torch.autograd.grad(loss, [layer.weight, layer.bias])
            gradients.append(torch.cat([part.flatten() for part in parts]))
        drawn = torch.stack(gradients)
        mean = t[item] @ drawn
        variance = float((t[item] * (drawn - mean).square().sum(dim=1)).sum())
        assert found.variance[item] == pytest.approx(variance)
    np.testing.assert_allclose(found.of_logits, 1 - (t.numpy() ** 2).sum(axis=1))


def test_gradient_variance_is_compared_with_entropy() -> None:
    x, t = items(200)
    found = gradient_variance(objective(conv_net(), x, t), resamples=200)
    p = t.numpy()
    entropy = -(p * np.log(p)).sum(axis=1)
    assert found.spearman is not None
    assert found.spearman_of_logits is not None
    assert found.spearman.value == pytest.approx(spearmanr(found.variance, entropy).statistic)
    assert found.spearman.low is not None
    assert found.spearman.low < found.spearman.value
    assert found.spearman_of_logits.value > found.spearman.value
    assert found.iterations == 200


def test_people_who_agree_on_everything_have_no_correlation() -> None:
    x, _ = items(10)
    found = gradient_variance(objective(conv_net(), x, torch.eye(4, dtype=torch.float64)[torch.zeros(10).long()]))
    assert found.spearman is None
    assert not found.converged


def test_gradient_variance_needs_distributions() -> None:
    x, t = items()
    with pytest.raises(InputError, match="class indices"):
        gradient_variance(objective(conv_net(), x, t.argmax(dim=1)))


def test_what_enters_the_last_layer() -> None:
    model, (x, t) = conv_net(), items()
    expected = model[:9](x)  # type: ignore[index]
    torch.testing.assert_close(last_layer_inputs(objective(model, x, t, chunk=10))[0], expected.detach())
