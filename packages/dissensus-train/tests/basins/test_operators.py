from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from dissensus.errors import InputError
from dissensus_train.basins import gauss_newton, hessian, top_eigenvalues, trace
from dissensus_train.basins.objectives import objective
from dissensus_train.basins.operators import Summed, hessian_of
from dissensus_train.training.models import build
from tests.basins.nets import CLASSES, conv_net, dense_hessian, flat_weights, items, mean_loss, mlp

NETS = {"mlp": mlp, "convolutions and batch statistics": conv_net}


def dense(operator: Any) -> Tensor:
    product: Tensor = operator.apply(torch.eye(operator.size, dtype=operator.dtype))
    return product


@pytest.mark.parametrize("net", NETS)
def test_the_hessian_is_the_dense_one_over_chunks_of_unequal_size(net: str) -> None:
    model, (x, t) = NETS[net](), items()
    operator = hessian(model, x, t, chunk=10)
    torch.testing.assert_close(dense(operator), dense_hessian(model, x, t), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("net", NETS)
def test_products_are_differences_of_gradients(net: str) -> None:
    model, (x, t) = NETS[net](), items()
    operator, step = hessian(model, x, t), 1e-5
    vector = torch.randn(operator.size, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    slope = torch.func.grad(lambda w: mean_loss(model, x, t, w))
    weights = flat_weights(model)
    differences = (slope(weights + step * vector) - slope(weights - step * vector)) / (2 * step)
    # Central differences are wrong by step^2 times the third derivative, 1e-10 of something of order 1 to 100.
    torch.testing.assert_close(operator.apply(vector), differences, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("net", NETS)
def test_gauss_newton_is_the_jacobian_around_the_curvature_of_the_loss(net: str) -> None:
    model, (x, t) = NETS[net](), items()
    names, values = zip(*model.named_parameters(), strict=True)

    def logits(weights: Tensor) -> Tensor:
        parts = weights.split([value.numel() for value in values])
        state = {name: part.view(value.shape) for name, part, value in zip(names, parts, values, strict=True)}
        out: Tensor = functional_call(model, state, (x,))
        return out

    z = logits(flat_weights(model))
    q = z.softmax(dim=1)
    curvature = torch.diag_embed(q) - q[:, :, None] * q[:, None, :]
    jacobian = torch.func.jacrev(logits)(flat_weights(model))
    expected = torch.einsum("ikp,ikl,ilq->pq", jacobian, curvature, jacobian) / len(x)
    torch.testing.assert_close(dense(gauss_newton(model, x, t, chunk=10)), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("make", [hessian, gauss_newton])
def test_quadratic_forms_are_those_of_the_products(net: str, make: Any) -> None:
    model, (x, t) = NETS[net](), items()
    operator = make(model, x, t, chunk=10)
    vectors = torch.randn(3, operator.size, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    for vector, product in zip(vectors, operator.apply(vectors), strict=True):
        assert operator.form(vector) == pytest.approx(float(vector @ product), rel=1e-9)


def test_class_indices_and_any_loss_of_each_item() -> None:
    model, (x, t) = mlp(), items()
    labels = t.argmax(dim=1)
    one_hot = F.one_hot(labels, CLASSES).double()
    torch.testing.assert_close(dense(hessian(model, x, labels)), dense(hessian(model, x, one_hot)))

    def brier(logits: Tensor, target: Tensor) -> Tensor:
        return (logits.softmax(dim=1) - target).square().sum(dim=1)

    operator = hessian(model, x, t, loss=brier, data="nets")
    torch.testing.assert_close(dense(operator), dense_hessian(model, x, t, loss=brier), rtol=1e-9, atol=1e-11)
    assert operator.measured_on is not None
    assert (operator.measured_on.loss, operator.measured_on.data, operator.measured_on.items) == ("brier", "nets", 23)


def test_only_trainable_parameters_count() -> None:
    model, (x, t) = conv_net(), items()
    model[0].requires_grad_(False)  # type: ignore[index]
    operator = hessian(model, x, t)
    assert operator.size == sum(p.numel() for p in model.parameters() if p.requires_grad)
    torch.testing.assert_close(dense(operator), dense_hessian(model, x, t), rtol=1e-9, atol=1e-11)


def test_without_memory_products_are_the_same() -> None:
    measured = objective(conv_net(), *items(), chunk=12)
    traces: Any = {}
    vector = torch.ones(measured.size, dtype=torch.float64)
    rich, poor = (hessian_of(measured, memory=memory, traces=traces) for memory in (1 << 30, 0))
    torch.testing.assert_close(rich.apply(vector), poor.apply(vector))
    assert rich.form(vector) == pytest.approx(poor.form(vector), rel=1e-12)


@pytest.mark.parametrize(("memory", "kept"), [(0, 0), (1 << 30, 2)])
def test_memory_decides_how_much_is_kept(memory: int, kept: int) -> None:
    measured = objective(mlp(), *items(), chunk=12)

    def product(w: Tensor, b: Tensor, x: Tensor, t: Tensor, share: Tensor, v: Tensor) -> Tensor:
        return x.exp().sum() * w * v * t.sum() * share.sum() + b.sum()

    summed = Summed(product, measured, part="a", right=lambda _: True, memory=memory, traces={})
    assert summed.prepare(measured.weights)
    assert len(summed._held) == kept


def test_runs_of_one_network_share_a_trace_and_others_do_not() -> None:
    x, t = items()
    traces: Any = {}
    models = [conv_net(), conv_net()]
    with torch.no_grad():
        for value in (*models[1].parameters(), *(b for b in models[1].buffers() if b.is_floating_point())):
            value.mul_(1.3)
    products = []
    graphs = []
    for model in models:
        operator = hessian_of(objective(model, x, t), traces=traces)
        vector = torch.ones(operator.size, dtype=torch.float64)
        products.append(operator.apply(vector))
        torch.testing.assert_close(products[-1], dense_hessian(model, x, t) @ vector, rtol=1e-9, atol=1e-11)
        graphs.append(dict(traces))
    assert len(graphs[0]) == 1
    assert graphs[0] == graphs[1]
    assert not torch.allclose(products[0], products[1])
    other = hessian_of(objective(mlp(), x, t), traces=traces)
    vector = torch.ones(other.size, dtype=torch.float64)
    torch.testing.assert_close(other.apply(vector), dense_hessian(mlp(), x, t) @ vector, rtol=1e-9, atol=1e-11)
    assert traces != graphs[0]


def test_a_model_that_cannot_be_traced_is_measured_all_the_same() -> None:
    class Branching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = mlp()

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.inner(x)
            return out if float(out.detach().sum()) > -1e9 else -out

    (x, t), model = items(), Branching().eval()
    torch.testing.assert_close(dense(hessian(model, x, t)), dense(hessian(mlp(), x, t)))


def test_the_operator_does_not_follow_what_happens_to_the_model() -> None:
    model, (x, t) = mlp(), items()
    operator = hessian(model, x, t, memory=0)
    before = dense(operator)
    model[2].weight.data.zero_()  # type: ignore[index]
    torch.testing.assert_close(dense(operator), before, rtol=0, atol=0)


@pytest.mark.parametrize("net", [conv_net, mlp])
def test_a_model_in_training_mode_is_refused(net: Any) -> None:
    with pytest.raises(InputError, match=r"in training mode.*model\.eval\(\)"):
        hessian(net().train(), *items())


def test_one_layer_in_training_mode_is_refused_by_name() -> None:
    model = conv_net()
    model[1].train()  # type: ignore[index]
    with pytest.raises(InputError, match=r"layer '1' \(BatchNorm2d\) is in training mode"):
        hessian(model, *items())


def test_dropout_that_is_always_on_is_refused() -> None:
    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = mlp()

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.inner(F.dropout(x, 0.5, training=True))
            return out

    with pytest.raises(InputError, match="random"):
        hessian(Noisy().eval(), *items())


def test_batch_statistics_of_the_moment_are_refused() -> None:
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(72, track_running_stats=False), nn.Linear(72, CLASSES))
    with pytest.raises(InputError, match="keeps no running statistics"):
        hessian(model.double().eval(), *items())


def test_a_loss_that_is_already_a_mean_is_refused() -> None:
    with pytest.raises(InputError, match=r"the loss gives shape .* use reduction='none'"):
        hessian(mlp(), *items(), loss=F.cross_entropy)


def test_as_many_targets_as_items() -> None:
    x, t = items()
    with pytest.raises(InputError, match="23 rows of features and 22 targets"):
        hessian(mlp(), x, t[1:])
    with pytest.raises(InputError, match="no trainable"):
        hessian(mlp().requires_grad_(False), x, t)


def lenet() -> tuple[nn.Module, Tensor, Tensor]:
    model = build("lenet", (1, 16, 16), classes=CLASSES, seed=0).double().eval()
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 1, 16, 16, generator=generator, dtype=torch.float64)
    return model, x, torch.softmax(2 * torch.randn(60, CLASSES, generator=generator, dtype=torch.float64), dim=1)


def test_agrees_with_curvlinops_on_a_lenet() -> None:
    peer = pytest.importorskip("curvlinops", reason="curvlinops is not installed: nothing to compare with")
    model, x, t = lenet()
    batches = list(zip(x.split(25), t.split(25), strict=True))
    given = (model, nn.CrossEntropyLoss(), list(model.parameters()), batches)
    generator = torch.Generator().manual_seed(3)
    for ours, theirs in ((hessian, peer.HessianLinearOperator), (gauss_newton, peer.GGNLinearOperator)):
        operator = ours(model, x, t, chunk=16)
        vector = torch.randn(operator.size, generator=generator, dtype=torch.float64)
        expected = theirs(*given, check_deterministic=False) @ vector
        torch.testing.assert_close(operator.apply(vector), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_agrees_with_pyhessian_on_a_lenet() -> None:
    peer = pytest.importorskip("pyhessian", reason="PyHessian is not installed: nothing to compare with")
    model, x, t = lenet()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = peer.hessian(model, F.cross_entropy, data=(x, t), cuda=False)
        (value,), _ = theirs.eigenvalues(maxIter=300, tol=1e-8)
        probes = np.array(theirs.trace(maxIter=60, tol=0))
    model.zero_grad()
    operator = hessian_of(objective(model, x, t))
    # Power iteration stops when a step changes little, which is a little before it is there.
    assert top_eigenvalues(operator, tolerance=1e-8).values[0] == pytest.approx(value, rel=1e-4)
    ours = trace(operator, probes=60, tolerance=None)
    apart = np.hypot(ours.error, probes.std(ddof=1) / 60**0.5)
    assert abs(ours.value - probes.mean()) < 4 * apart
