"""Any network as it is: attention, several inputs, mappings, loaders, losses by name; wrong ones told in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.data import DataLoader, IterableDataset, SubsetRandomSampler, TensorDataset

from dissensus.errors import InputError
from dissensus_train import basins
from dissensus_train.basins import gauss_newton, hessian, loss_barrier, objective, top_eigenvalues, trace
from dissensus_train.basins import operators as operators_module
from dissensus_train.basins.linearised import linearised
from dissensus_train.basins.objectives import derivable
from dissensus_train.basins.operators import hessian_of
from tests.basins.nets import CLASSES, conv_net, dense_hessian, flat_weights, items, mlp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dissensus_train.basins import Operator

QUICK = basins.BasinSettings(probes=30, perturbations=2, ascent_steps=2, line=0, trace_tolerance=0)


class Attending(nn.Module):
    """A transformer's encoder layer, and attention over two inputs, with `logits` in a mapping."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 5, batch_first=True), 1)
        self.cross = nn.MultiheadAttention(4, 2, batch_first=True)
        self.out = nn.Linear(4, CLASSES)

    def forward(self, first: Tensor, second: Tensor) -> dict[str, Tensor]:
        read = self.encoder(first)
        return {"hidden": read, "logits": self.out(self.cross(read, second, second)[0].mean(dim=1))}


@pytest.fixture(scope="module")
def attending() -> tuple[nn.Module, Tensor, Tensor, Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Attending().double().eval()
        first, second = torch.randn(2, 6, 3, 4, dtype=torch.float64)
        return model, first, second, torch.softmax(torch.randn(6, CLASSES, dtype=torch.float64), dim=1)


def slope_differences(model: nn.Module, call: Callable[[], Tensor], targets: Tensor, vector: Tensor) -> Tensor:
    """A Hessian-vector product the slow way: differences of plain gradients, two steps of Richardson."""
    weights = list(model.parameters())

    def slope(step: float) -> Tensor:
        moves = vector.split([value.numel() for value in weights])
        with torch.no_grad():
            for value, move in zip(weights, moves, strict=True):
                value.add_(step * move.view_as(value))
        with sdpa_kernel(SDPBackend.MATH):
            loss = nn.functional.cross_entropy(call(), targets)
        found = torch.cat([part.flatten() for part in torch.autograd.grad(loss, weights)])
        with torch.no_grad():
            for value, move in zip(weights, moves, strict=True):
                value.sub_(step * move.view_as(value))
        return found

    def central(step: float) -> Tensor:
        return (slope(step) - slope(-step)) / (2 * step)

    return (4 * central(1e-4) - central(2e-4)) / 3


def test_attention_with_two_inputs_and_logits_in_a_mapping(
    attending: tuple[nn.Module, Tensor, Tensor, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, first, second, t = attending
    made: list[Any] = []

    def noted(*given: Any) -> Any:
        made.append(linearised(*given))
        return made[-1]

    monkeypatch.setattr(operators_module, "linearised", noted)
    vector = torch.randn(flat_weights(model).shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = slope_differences(model, lambda: model(first, second)["logits"], t, vector)
    by_position = hessian(model, (first, second), t, chunk=3)
    torch.testing.assert_close(by_position.apply(vector), expected, rtol=1e-6, atol=1e-8)
    alike = [objective(model, inputs, t) for inputs in ((first, second), {"second": second, "first": first})]
    torch.testing.assert_close(*(measured.gradient(flat_weights(model)) for measured in alike))
    assert by_position.form(vector) == pytest.approx(float(vector @ expected), rel=1e-6)
    assert gauss_newton(model, (first, second), t).form(vector) > 0
    assert made, "attention is traced, not computed anew for each vector"
    assert torch.backends.mha.get_fastpath_enabled(), "a user's settings are as they were"


def tiny_bert() -> Any:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        settings = transformers.BertConfig(
            vocab_size=11,
            hidden_size=4,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=6,
            max_position_embeddings=8,
            num_labels=CLASSES,
        )
        return transformers.BertForSequenceClassification(settings).double().eval()


def texts(count: int = 8) -> list[dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(3)
    mask = torch.ones(count, 6, dtype=torch.long)
    mask[count // 2 :, 4:] = 0
    return [
        {
            "input_ids": torch.randint(0, 11, (6,), generator=generator),
            "attention_mask": mask[k],
            "labels": torch.softmax(torch.randn(CLASSES, generator=generator, dtype=torch.float64), dim=0),
        }
        for k in range(count)
    ]


def test_a_hugging_face_model_and_its_loader_as_they_are() -> None:
    model, rows = tiny_bert(), texts()
    loader: DataLoader[Any] = DataLoader(rows, batch_size=4, shuffle=True)  # type: ignore[arg-type]
    whole = {key: torch.stack([row[key] for row in rows]) for key in rows[0]}
    labels = whole.pop("labels")
    vector = torch.randn(flat_weights(model).shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = slope_differences(model, lambda: model(**whole).logits, labels, vector)
    # Unequal batches and what memory leaves out are tested with networks that are quicker to trace.
    torch.testing.assert_close(hessian(model, loader).apply(vector), expected, rtol=1e-5, atol=1e-7)
    basin = basins.measure(model, loader, settings=QUICK)
    assert basin.measured_on == objective(model, whole, labels).measured_on
    assert basin.measured_on.items == 8
    assert basin.eigenvalues.converged
    assert basin.gradient_variance is not None


def test_a_timm_model_as_it_is() -> None:
    timm = pytest.importorskip("timm", reason="timm is not installed")
    model = timm.create_model("vit_tiny_patch16_224", num_classes=3, depth=1).eval()
    loader = DataLoader(TensorDataset(torch.randn(4, 3, 224, 224), torch.arange(4) % 3), batch_size=2)
    assert top_eigenvalues(hessian(model, loader), tolerance=0.1).values[0] > 0


def test_a_loader_is_read_anew_and_nothing_of_it_is_kept() -> None:
    x, t = items(20)
    read: list[int] = []

    class Counted(TensorDataset):
        def __getitem__(self, place: int) -> Any:
            read.append(place)
            return tuple(part[place] for part in self.tensors)

    model, vector = conv_net(), torch.ones(flat_weights(conv_net()).shape, dtype=torch.float64)
    expected = dense_hessian(model, x, t) @ vector
    traces: Any = {}

    def of(memory: int | None, **options: Any) -> Operator:
        """The Hessian over a loader; the network is traced once."""
        measured = objective(model, DataLoader(Counted(x, t), batch_size=5, **options))
        return hessian_of(measured, memory=memory, traces=traces)

    streamed = of(0, shuffle=True, drop_last=True)
    torch.testing.assert_close(streamed.apply(vector), expected, rtol=1e-9, atol=1e-11)
    before = len(read)
    streamed.apply(vector)
    assert len(read) - before == len(x)
    kept = of(None)
    kept.apply(vector)
    before = len(read)
    kept.apply(vector)
    assert len(read) == before, "what does not depend on the vector was kept, so nothing is read"
    # Part of it kept: reading goes on where that ends.
    for memory in (20_000, 60_000, 120_000):
        torch.testing.assert_close(of(memory).apply(vector), expected, rtol=1e-9, atol=1e-11)


def test_loaders_of_every_kind_give_the_same() -> None:
    x, t = items()
    pairs = list(zip(x, t, strict=True))

    class Endless(IterableDataset[Any]):
        def __iter__(self) -> Iterator[Any]:
            return iter(pairs)

    expected = objective(mlp(), x, t).losses(flat_weights(mlp())[None])
    given: list[Any] = [
        DataLoader(pairs, batch_size=4),  # type: ignore[arg-type]
        DataLoader(Endless(), batch_size=4),
        TensorDataset(x, t),
        list(zip(x.split(6), t.split(6), strict=True)),
        DataLoader(pairs, batch_size=4, sampler=range(len(pairs))),  # type: ignore[arg-type]
    ]
    for each in given:
        measured = objective(mlp(), each)
        torch.testing.assert_close(measured.losses(flat_weights(mlp())[None]), expected)
        assert measured.measured_on == objective(mlp(), x, t).measured_on
    some = objective(mlp(), DataLoader(pairs, batch_size=2, sampler=SubsetRandomSampler([3, 1, 4])))  # type: ignore[arg-type]
    assert some.items == 3


def test_losses_by_name_and_of_pytorch() -> None:
    x, t = items()
    weights = flat_weights(mlp())[None]
    mean = objective(mlp(), x, t, loss=nn.CrossEntropyLoss()).losses(weights).mean()
    torch.testing.assert_close(mean, objective(mlp(), x, t, loss="cross-entropy").losses(weights).mean())
    squared = objective(mlp(), x, t, loss="squared-error")
    torch.testing.assert_close(squared.losses(weights).mean(), nn.MSELoss()(mlp()(x), t).detach())
    torch.testing.assert_close(objective(mlp(), x, t, loss=nn.MSELoss()).losses(weights), squared.losses(weights))
    binary = objective(mlp(), x, (t > 0.3).long(), loss="binary-cross-entropy").losses(weights)
    torch.testing.assert_close(binary.mean(), nn.BCEWithLogitsLoss()(mlp()(x), (t > 0.3).double()).detach())
    with pytest.raises(InputError, match="no loss 'hinge'; choose cross-entropy"):
        objective(mlp(), x, t, loss="hinge")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda t: t * 3, r"target of item 0 sums to 3 .* counts divided by their sum"),
        (lambda t: torch.where(torch.arange(len(t))[:, None] == 5, -t, t), "target of item 5 sums to -1"),
        (lambda t: t[:, :2], r"shape \(items, 2\) for a model of 4 outputs; give \(items, 4\)"),
        (lambda t: t.argmax(dim=1).index_fill(0, torch.tensor([7]), 9), "target of item 7 is 9, .* from 0 to 3"),
        (lambda t: t.argmax(dim=1).double(), r"shape \(items\) .* class indices as whole numbers"),
        (lambda t: (t * 10).long(), "distributions as real numbers"),
        (lambda t: t[:5], "23 rows of features and 5 targets"),
        (lambda t: t * float("nan"), "target of item 0 sums to nan"),
    ],
)
def test_wrong_targets_are_told_in_a_sentence(wrong: Callable[[Tensor], Tensor], told: str) -> None:
    x, t = items()
    with pytest.raises(InputError, match=told):
        objective(mlp(), x, wrong(t), chunk=4)


def test_wrong_inputs_are_told_in_a_sentence() -> None:
    x, t = items()
    for given, told in (
        ((x,), "inputs without targets"),
        (({"first": x, "second": x[:3]}, t), "tensors of 3, 23 rows"),
        ((iter([(x, t)]),), "read only once"),
        (([{"x": x}],), "no targets; name them one of labels"),
        (([x],), "holds no targets"),
        (([],), "gives no items"),
    ):
        with pytest.raises(InputError, match=told):
            objective(mlp(), *given)
    with pytest.raises(InputError, match="cannot take outputs of shape"):
        objective(mlp(), x, t[:, :3], loss="squared-error")

    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = mlp()

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            return {"scores": self.inner(x)}

    with pytest.raises(InputError, match="gives scores; wrap it"):
        objective(Named().eval(), x, t)


def test_paths_between_runs_are_measured_on_the_same_items() -> None:
    x, t = items()
    with pytest.raises(InputError, match="measured on different items, soft cross-entropy on 23 items"):
        loss_barrier(objective(mlp(), x, t), objective(mlp(), x.flip(0), t))
    with pytest.raises(InputError, match="different items"):
        loss_barrier(objective(mlp(), x, t), objective(mlp(), x, t.flip(0)))
    assert loss_barrier(objective(mlp(), x, t), objective(mlp(), x, t, chunk=5)).value == 0


def test_measure_is_everything_at_once() -> None:
    x, t = items()
    basin = basins.measure(conv_net(), x, t, settings=QUICK, name="mine")
    exact = dense_hessian(conv_net(), x, t)
    assert basin.run == "mine"
    assert basin.eigenvalues.values[0] == pytest.approx(float(torch.linalg.eigvalsh(exact)[-1]), rel=1e-3)
    assert abs(basin.trace.value - float(exact.trace())) < 5 * basin.trace.error
    assert basin.adaptive.normalisation == "adaptive"
    labels = basins.measure(mlp(), x, t.argmax(dim=1), settings=QUICK)
    assert labels.gradient_variance is None
    assert basins.Basin.from_dict(labels.to_dict()).to_dict() == labels.to_dict()
    regression = basins.measure(mlp(), x, t, loss="squared-error", settings=QUICK)
    assert regression.measured_on.loss == "squared-error"


def test_attention_outside_is_left_as_it_was() -> None:
    before = torch.backends.cuda.flash_sdp_enabled()
    with pytest.raises(RuntimeError), derivable(nn.Identity()):
        raise RuntimeError
    assert torch.backends.cuda.flash_sdp_enabled() == before
    assert np.isfinite(trace(hessian(mlp(), *items()), probes=2, tolerance=None).value)


class Recurrent(nn.Module):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer, self.out = layer(3, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.layer(x)[0][:, -1])  # type: ignore[no-any-return]


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU])
def test_recurrent_networks_are_measured_on_a_processor(layer: type[nn.RNNBase]) -> None:
    torch.manual_seed(0)
    model, x, y = Recurrent(layer).eval(), torch.randn(6, 2, 3), torch.randint(3, (6,))
    operator = hessian(model, x, y)
    vector = torch.randn(operator.size)
    product = operator.apply(vector).double()
    assert torch.backends.mkldnn.enabled
    model.double()
    expected = slope_differences(model, lambda: model(x.double()), y, vector.double())
    torch.testing.assert_close(product, expected, rtol=1e-3, atol=1e-5)


class AcrossItems(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(x - x.mean(dim=0))  # type: ignore[no-any-return]


def test_a_network_that_mixes_items_is_refused() -> None:
    with pytest.raises(InputError, match="depends on the other items of its batch"):
        objective(AcrossItems().eval(), torch.randn(9, 3), torch.randint(3, (9,)))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_layer_with_wrong_second_derivatives_is_told() -> None:
    """PyTorch's weight_norm: its double backward is not that of a function."""
    torch.manual_seed(0)
    normed = nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))
    model, x, y = nn.Sequential(normed, nn.Tanh(), nn.Linear(4, 3)).eval(), torch.randn(12, 3), torch.randint(3, (12,))
    with pytest.raises(InputError, match=r"u\.Hv and v\.Hu differ"):
        hessian(model, x, y)
    nn.utils.parametrize.remove_parametrizations(normed, "weight")
    assert hessian(model, x, y).size == 4 * 4 + 5 * 3
    with pytest.warns(FutureWarning), pytest.raises(InputError, match="the model cannot be copied"):
        hessian(nn.Sequential(nn.utils.weight_norm(nn.Linear(3, 3))).eval(), x, y)


def test_a_network_that_has_learnt_its_items_by_heart_is_not_called_wrong() -> None:
    """In single precision its curvature is rounding; in double it is measured."""
    torch.manual_seed(0)
    last = nn.Linear(8, 3)
    model, x = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), last).eval(), torch.randn(20, 3)
    with torch.no_grad():
        last.weight *= 60
        first, second = model(x).topk(2, dim=1).values.unbind(dim=1)
        x = x[first - second > 16]
        y = model(x).argmax(dim=1)
    with pytest.raises(InputError, match="learnt these items by heart"):
        hessian(model, x, y)
    operator = hessian(model.double(), x.double(), y)
    vector = torch.randn(operator.size, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    expected = slope_differences(model, lambda: model(x.double()), y, vector)
    torch.testing.assert_close(operator.apply(vector), expected, rtol=1e-2, atol=1e-12)
