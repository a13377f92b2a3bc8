from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from dissensus.errors import InputError
from dissensus_train.basins import average_sharpness, objective, worst_case_sharpness
from dissensus_train.basins.lanczos import probe
from dissensus_train.basins.sharpness import filter_normalised
from tests.basins.nets import conv_net, dense_hessian, flat_weights, items, mean_loss, mlp


class Bowl(nn.Module):
    """A loss that is a parabola in the weights: sum of curvature x weight^2 / 2."""

    def __init__(self, curvature: Tensor, at: Tensor) -> None:
        super().__init__()
        self.weights = nn.Parameter(at)
        self.register_buffer("curvature", curvature)

    def forward(self, x: Tensor) -> Tensor:
        assert isinstance(self.curvature, Tensor)
        return (0.5 * self.curvature * self.weights**2).sum().expand(len(x))


def bowl(curvature: list[float], at: list[float]) -> Any:
    model = Bowl(torch.tensor(curvature, dtype=torch.float64), torch.tensor(at, dtype=torch.float64)).eval()
    return objective(model, torch.zeros(3, 1), torch.zeros(3), loss=lambda logits, _: logits)


def test_worst_case_of_a_parabola_is_found_along_its_steepest_side() -> None:
    found = worst_case_sharpness(bowl([1.0, 10.0], [0.3, 0.01]), radius=0.5, steps=20)
    # At the ball's edge along the steep side; the other side's slope adds a little.
    angles = np.linspace(0, 2 * np.pi, 100_001)
    a, b = 0.3 + 0.5 * np.cos(angles), 0.01 + 0.5 * np.sin(angles)
    true = (0.5 * a**2 + 5 * b**2).max() - (0.5 * 0.3**2 + 5 * 0.01**2)
    assert found.value == pytest.approx(true, rel=1e-4)
    assert found.one_step < found.value
    assert found.converged
    assert found.iterations == 20


def test_one_step_is_the_loss_at_the_edge_of_the_ball_along_the_gradient() -> None:
    model, (x, t) = mlp(), items()
    weights = flat_weights(model)
    slope = torch.func.grad(lambda w: mean_loss(model, x, t, w))(weights)
    rise = mean_loss(model, x, t, weights + 0.1 * slope / slope.norm()) - mean_loss(model, x, t, weights)
    found = worst_case_sharpness(objective(model, x, t), radius=0.1, steps=1)
    assert found.value == found.one_step == pytest.approx(float(rise), rel=1e-9)
    assert found.error > 0
    assert not found.converged


def test_small_plain_perturbations_of_a_smooth_network_show_the_trace() -> None:
    model, (x, t) = mlp(), items()
    found = average_sharpness(objective(model, x, t), scale=1e-3, probes=400)
    expected = 1e-6 * float(dense_hessian(model, x, t).trace()) / 2
    assert abs(found.value - expected) < 4 * found.error + 0.01 * abs(expected)


def test_filter_normalised_sharpness_does_not_see_how_layers_are_scaled() -> None:
    x, t = items()
    model = nn.Sequential(nn.Flatten(), nn.Linear(72, 5, bias=False), nn.ReLU(), nn.Linear(5, 4, bias=False))
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(torch.linspace(-1, 1, value.numel()).sin().view(value.shape))
    model = model.double().eval()
    first = [average_sharpness(objective(model, x, t), normalisation=n) for n in ("none", "filter")]
    with torch.no_grad():
        model[1].weight.mul_(10)  # type: ignore[operator]
        model[3].weight.div_(10)  # type: ignore[operator]
    second = [average_sharpness(objective(model, x, t), normalisation=n) for n in ("none", "filter")]
    assert second[1].value == pytest.approx(first[1].value, rel=1e-6)
    assert second[0].value != pytest.approx(first[0].value, rel=0.1)


def test_adaptive_sharpness_does_not_see_how_layers_are_scaled() -> None:
    x, t = items()
    model = nn.Sequential(nn.Flatten(), nn.Linear(72, 5), nn.ReLU(), nn.Linear(5, 4)).double().eval()
    first = [worst_case_sharpness(objective(model, x, t), normalisation=n) for n in ("none", "adaptive")]
    with torch.no_grad():
        model[1].weight.mul_(10)  # type: ignore[operator]
        model[1].bias.mul_(10)  # type: ignore[operator]
        model[3].weight.div_(10)  # type: ignore[operator]
    second = [worst_case_sharpness(objective(model, x, t), normalisation=n) for n in ("none", "adaptive")]
    np.testing.assert_allclose(second[1].rises, first[1].rises, rtol=1e-6)
    assert second[1].value > 0
    assert second[0].value != pytest.approx(first[0].value, rel=0.1)


def test_the_first_adaptive_step_is_that_of_asam() -> None:
    model, (x, t) = conv_net(), items()
    found = worst_case_sharpness(objective(model, x, t), normalisation="adaptive", radius=0.3, steps=1)
    weights = flat_weights(model).requires_grad_()
    before = mean_loss(model, x, t, weights)
    (slope,) = torch.autograd.grad(before, weights)
    # Kwon et al. (2021), equation 8: rho T^2 g / ||T g|| with T = diag |w|.
    stretch = weights.detach().abs()
    moved = weights.detach() + 0.3 * stretch**2 * slope / (stretch * slope).norm()
    assert found.value == pytest.approx(float(mean_loss(model, x, t, moved) - before.detach()), rel=1e-9)


def test_filters_keep_their_lengths_and_biases_stay() -> None:
    measured = objective(conv_net(), *items())
    direction = measured.named(filter_normalised(measured, probe(measured, 0, 0)))
    weights = measured.named(measured.weights)
    torch.testing.assert_close(direction["0.weight"].flatten(1).norm(dim=1), weights["0.weight"].flatten(1).norm(dim=1))
    for name in ("0.bias", "1.weight", "1.bias"):
        assert not direction[name].any()


def test_the_error_is_that_of_further_draws() -> None:
    measured = objective(mlp(), *items())
    draws = [average_sharpness(measured, probes=10, seed=seed) for seed in range(40)]
    spread = np.std([draw.value for draw in draws], ddof=1)
    assert spread == pytest.approx(np.sqrt(np.mean([draw.error**2 for draw in draws])), rel=0.4)


def test_objective_agrees_with_the_model_itself() -> None:
    model, (x, t) = conv_net(), items()
    measured = objective(model, x, t, chunk=7)
    losses = measured.losses(torch.stack([measured.weights, 1.1 * measured.weights]))
    torch.testing.assert_close(losses[0], nn.functional.cross_entropy(model(x), t, reduction="none").detach())
    moved = {name: 1.1 * value for name, value in model.named_parameters()}
    expected = nn.functional.cross_entropy(functional_call(model, moved, (x,)), t, reduction="none")
    torch.testing.assert_close(losses[1], expected.detach())


def test_nonsense_is_refused() -> None:
    measured = bowl([1.0], [1.0])
    with pytest.raises(InputError, match="radius above 0"):
        worst_case_sharpness(measured, radius=0)
    with pytest.raises(InputError, match="2 or more"):
        average_sharpness(measured, probes=1)
    with pytest.raises(InputError, match="choose none or filter"):
        average_sharpness(measured, normalisation="layer")  # type: ignore[arg-type]
