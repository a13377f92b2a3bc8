"""Maps of what a network looks at, against captum and by hand, and how alike they are from seed to seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dissensus.errors import InputError
from dissensus_train.basins import ExplanationStability, explain, explanation_stability, objective
from dissensus_train.basins.summary import mean_over_pairs
from tests.basins.nets import CLASSES, conv_net, items, mlp


def placed_net() -> nn.Sequential:
    """A convolution, one with a single place after it, and a linear layer."""
    torch.manual_seed(2)
    return (
        nn.Sequential(
            nn.Conv2d(2, 5, 3),
            nn.ReLU(inplace=True),
            nn.Conv2d(5, 4, 4),
            nn.Tanh(),
            nn.Flatten(),
            nn.Linear(4, CLASSES),
        )
        .double()
        .eval()
    )


def test_grad_cam_by_hand() -> None:
    model, (x, t) = placed_net(), items()
    y = t.argmax(dim=1)
    found, method = explain(objective(model, x, t), x, y)
    assert method == "Grad-CAM"
    assert found.shape == (23, 4, 4)
    channels = model[0](x).detach().requires_grad_()
    logits = model[1:](channels.clone())
    for item in (0, 7):
        (slope,) = torch.autograd.grad(logits[item, y[item]], channels, retain_graph=True)
        expected = F.relu((slope[item].mean(dim=(1, 2))[:, None, None] * channels[item]).sum(dim=0))
        torch.testing.assert_close(found[item], expected.detach())


def test_grad_cam_is_that_of_captum() -> None:
    peer = pytest.importorskip("captum.attr", reason="captum is not installed: nothing to compare with")
    model, (x, t) = conv_net(), items()
    y = t.argmax(dim=1)
    found, _ = explain(objective(model, x, t), x, y)
    # The last convolution of this network leaves one place, so the first is explained.
    theirs = peer.LayerGradCam(model, model[0]).attribute(x, target=y, relu_attributions=True)  # type: ignore[index]
    torch.testing.assert_close(found, theirs[:, 0].detach())


def test_input_gradients_are_those_of_captum() -> None:
    peer = pytest.importorskip("captum.attr", reason="captum is not installed: nothing to compare with")
    model, (x, t) = mlp(), items()
    y = t.argmax(dim=1)
    found, method = explain(objective(model, x, t), x, y)
    assert method == "input gradients"
    theirs = peer.Saliency(model).attribute(x.clone().requires_grad_(), target=y)
    torch.testing.assert_close(found, theirs.amax(dim=1).detach())


def test_tokens_are_explained_by_their_embeddings() -> None:
    class Bag(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.out = nn.Embedding(9, 3), nn.Linear(3, CLASSES)

        def forward(self, ids: Tensor) -> Tensor:
            # The second token counts twice.
            weights = torch.tensor([1.0, 2.0, 1.0], dtype=self.out.weight.dtype)
            return self.out(torch.einsum("ntd,t->nd", self.embedding(ids), weights))  # type: ignore[no-any-return]

    model = Bag().double().eval()
    ids = torch.randint(0, 9, (5, 3), generator=torch.Generator().manual_seed(0))
    found, method = explain(objective(model, ids, torch.zeros(5, dtype=torch.long)), ids, torch.zeros(5).long())
    assert method == "input gradients"
    length = model.out.weight[0].norm().item()
    torch.testing.assert_close(found, torch.tensor([1.0, 2.0, 1.0]).double().mul(length).expand(5, 1, 3))


def seeds(count: int, *, apart: float) -> list[Any]:
    """Networks that differ by so much from one another."""
    x, t = items()
    made = []
    for seed in range(count):
        model = placed_net()
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for value in model.parameters():
                value.add_(apart * torch.randn(value.shape, generator=generator, dtype=value.dtype))
        made.append(objective(model, x, t, chunk=10))
    return made


def test_stability_is_the_mean_over_items_and_pairs() -> None:
    objectives = seeds(3, apart=0.05)
    found = explanation_stability(objectives, examples=4)
    x, t = items()
    maps = [explain(each, x, t.argmax(dim=1))[0].flatten(1).numpy() for each in objectives]
    alive = np.all([each.any(axis=1) for each in maps], axis=0)
    cosines, correlations = [], []
    for one, other in ((0, 1), (0, 2), (1, 2)):
        a, b = maps[one][alive], maps[other][alive]
        cosines.append((a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1))
        correlations.append([np.corrcoef(p, q)[0, 1] for p, q in zip(a, b, strict=True)])
    assert found.cosine.value == pytest.approx(np.mean(cosines))
    assert found.correlation.value == pytest.approx(np.mean(correlations))
    assert found.defined == pytest.approx(alive.mean())
    assert (found.seeds, found.pairs) == (3, 3)
    assert found.maps.shape == (4, 3, 4, 4)
    assert found.examples.tolist() == [0, 7, 15, 22]
    assert found.cosine.low < found.cosine.value < found.cosine.high  # type: ignore[operator]
    again = ExplanationStability.from_dict(found.to_dict())
    assert again.to_dict() == found.to_dict()
    assert again.cosine == found.cosine


def test_seeds_that_are_alike_explain_alike() -> None:
    same = explanation_stability(seeds(2, apart=0.0))
    assert same.cosine.value == pytest.approx(1)
    near, far = (explanation_stability(seeds(3, apart=apart)).cosine.value for apart in (0.02, 0.5))
    assert far < near < 1


def test_what_cannot_be_compared_is_refused() -> None:
    x, t = items()
    with pytest.raises(InputError, match="two seeds or more"):
        explanation_stability([objective(mlp(), x, t)])
    with pytest.raises(InputError, match="different items"):
        explanation_stability([objective(mlp(), x, t), objective(mlp(), x.flip(0), t)])


def test_the_interval_over_pairs_holds_the_truth() -> None:
    # Each pair is the sum of what its two seeds add; pairs of one seed go up and down together.
    generator = np.random.default_rng(0)
    pairs = [(i, j) for i in range(5) for j in range(i)]
    held = 0
    for _ in range(400):
        own = generator.normal(0, 0.1, 5)
        values = np.array([0.5 + own[i] + own[j] + generator.normal(0, 0.02) for i, j in pairs])
        found = mean_over_pairs(values, pairs, item_variance=0.0, items=100, low=-1, high=2)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.5 <= found.high
    assert 0.92 <= held / 400 <= 0.99
    # As if the ten pairs were independent, it would hold in about two of three cases only.
    alone = mean_over_pairs(values[:1], pairs[:1], item_variance=0.01**2, items=10**6, low=-1, high=2)
    assert alone.high - alone.low == pytest.approx(2 * 1.96 * 0.01, rel=1e-3)  # type: ignore[operator]
