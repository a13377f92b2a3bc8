"""The loop of docs/guides/labels.md, run as it stands: for every delivery the network sees what our engines show it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dissensus_train.delivery import DELIVERIES
from dissensus_train.training.batches import epoch_of, inputs
from dissensus_train.training.run import delivery_of
from tests.training.problems import SGD, images, run

PAGE = Path(__file__).parents[4] / "docs" / "guides" / "labels.md"
EPOCHS = 3
DATA = images(items=80)
TRAIN = DATA.splits["train"]


def documented_loop(delivery: str) -> str:
    (code,) = (
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S) if "deliver(" in block
    )
    changed: str = code.replace('"multipass"', f'"{delivery}"').replace("range(40)", f"range({EPOCHS})")
    assert f'deliver("{delivery}"' in changed
    assert f"range({EPOCHS})" in changed
    return changed


def rows(x: Tensor, target: Tensor) -> Any:
    """Inputs and targets of an epoch side by side, in one order whatever the batches were."""
    hot = F.one_hot(target, DATA.classes) if target.ndim == 1 else target
    table = torch.cat([x.flatten(start_dim=1), hot.float()], dim=1).numpy()
    return table[np.lexsort(table.T)]


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_the_documented_loop_shows_the_network_what_our_engines_do(
    delivery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.from_numpy(DATA.normalised()[TRAIN])
    seen: list[tuple[Tensor, Tensor]] = []
    cross_entropy = F.cross_entropy

    class Watched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(196, DATA.classes)

        def forward(self, batch: Tensor) -> Tensor:
            self.batch = batch
            return self.last(batch.flatten(start_dim=1))  # type: ignore[no-any-return]

    model = Watched()
    start = model.last.weight.detach().clone()

    def watched(logits: Tensor, target: Tensor) -> Tensor:
        seen.append((model.batch, target))
        return cross_entropy(logits, target)

    monkeypatch.setattr(F, "cross_entropy", watched)
    labels = DATA.targets["frequency"].take(TRAIN)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    exec(documented_loop(delivery), {"labels": labels, "x": x, "model": model, "optimiser": optimiser})

    one = run(DATA, delivery=delivery, training=SGD)
    ours = delivery_of(one, DATA)
    count = len(ours.examples)
    shown = [torch.cat(part).split(count) for part in zip(*seen, strict=True)]
    assert len(shown[0]) == EPOCHS
    for epoch in range(EPOCHS):
        plan = epoch_of(one, ours, epoch, classes=DATA.classes)
        expected = rows(inputs(x, plan, slice(None)), plan.target)
        assert np.allclose(rows(shown[0][epoch], shown[1][epoch]), expected, atol=1e-6)
    assert not torch.equal(model.last.weight, start)
