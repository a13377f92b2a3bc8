from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn

from dissensus.errors import InputError
from dissensus_train.basins import loss_barrier, loss_line, loss_plane, objective
from tests.basins.nets import conv_net, items, mean_loss, mlp

if TYPE_CHECKING:
    from dissensus_train.basins.objectives import Objective


def moved(measured_net: str = "mlp", *, seed: int) -> Objective:
    model = mlp() if measured_net == "mlp" else conv_net()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in model.parameters():
            value.add_(torch.randn(value.shape, generator=generator, dtype=value.dtype))
        for name, buffer in model.named_buffers():
            if name.endswith("running_var"):
                buffer *= 1 + torch.rand(buffer.shape, generator=generator, dtype=buffer.dtype)
    return objective(model, *items())


@pytest.mark.parametrize("net", ["mlp", "conv"])
def test_there_is_no_barrier_between_a_run_and_itself(net: str) -> None:
    found = loss_barrier(moved(net, seed=1), moved(net, seed=1))
    assert found.value == 0
    assert found.converged
    np.testing.assert_array_equal(found.path, found.path[0])


def test_the_barrier_is_the_worst_rise_above_the_line_between_the_ends() -> None:
    first, second = moved(seed=1), moved(seed=4)
    found = loss_barrier(first, second, points=41)
    assert found.value > 0
    x, t = items()
    model = mlp()
    path = np.array(
        [float(mean_loss(model, x, t, torch.lerp(first.weights, second.weights, s))) for s in np.linspace(0, 1, 41)]
    )
    np.testing.assert_allclose(found.path, path)
    rise = path - np.linspace(path[0], path[-1], 41)
    assert found.value == pytest.approx(rise.max())
    assert found.position == pytest.approx(rise.argmax() / 40)
    assert found.error > 0
    back = loss_barrier(second, first, points=41)
    assert back.value == pytest.approx(found.value)


def test_batch_statistics_go_along_the_path() -> None:
    first, second = moved("conv", seed=1), moved("conv", seed=2)
    found = loss_barrier(first, second)
    for end, alone in ((0, first), (-1, second)):
        assert found.path[end] == pytest.approx(float(alone.losses(alone.weights[None]).mean()))


def test_batch_statistics_are_taken_anew_where_that_is_asked_for() -> None:
    """Against PyTorch's own layers in training mode, in one batch of all items."""
    first, second = moved("conv", seed=1), moved("conv", seed=2)
    found = loss_barrier(first, second, points=5, anew=True)
    x, t = items()
    for place, share in ((0, 0.0), (1, 0.25), (4, 1.0)):
        model = conv_net()
        model.load_state_dict(first.named(torch.lerp(first.weights, second.weights, share)), strict=False)
        for norm in (module for module in model.modules() if isinstance(module, nn.BatchNorm2d)):
            norm.train().momentum = 1.0
        with torch.no_grad():
            model(x)
            expected = nn.functional.cross_entropy(model.eval()(x), t)
        assert found.path[place] == pytest.approx(float(expected))
    alone = objective(conv_net(), x[:1], t[:1])
    torch.testing.assert_close(alone.statistics(alone.weights, alone.buffers), alone.buffers)


def test_the_path_has_an_odd_number_of_points() -> None:
    first, second = moved(seed=1), moved(seed=2)
    with pytest.raises(InputError, match="odd number"):
        loss_barrier(first, second, points=4)


def test_runs_must_be_measured_on_the_same() -> None:
    x, t = items()
    with pytest.raises(InputError, match="same loss and data"):
        loss_barrier(objective(mlp(), x, t), objective(mlp(), x[1:], t[1:]))
    with pytest.raises(InputError, match="different architectures"):
        loss_barrier(objective(mlp(), x, t), objective(conv_net(), x, t))


def test_a_line_passes_through_the_run() -> None:
    measured = moved(seed=1)
    found = loss_line(measured, span=0.5, points=11)
    own = measured.losses(measured.weights[None])
    assert found.position[5] == 0
    assert found.loss[5] == pytest.approx(float(own.mean()))
    assert found.error[5] == pytest.approx(float(own.std()) / len(items()[0]) ** 0.5)
    assert found.converged
    assert found.measured_on == measured.measured_on


def test_a_plane_of_random_directions_has_the_line_in_its_middle_row() -> None:
    measured = moved(seed=1)
    plane, line = loss_plane(measured, span=0.5, points=7), loss_line(measured, span=0.5, points=7)
    np.testing.assert_allclose(plane.loss[3], line.loss)
    assert plane.loss.shape == plane.error.shape == (7, 7)
    assert plane.iterations == 49
