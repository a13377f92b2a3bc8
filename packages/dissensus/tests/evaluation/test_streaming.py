from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.evaluation.streaming import OVER_ITEMS, Evaluator

ABLE = [name for name, each in METRICS.items() if each.per_item and "original" not in each.needs] + list(OVER_ITEMS)


def tables(seed: int, items: int, classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    votes = rng.multinomial(5, rng.dirichlet(np.ones(classes), items))
    return votes / 5, rng.dirichlet(np.ones(classes), items)


@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 80), max_size=5), classes=st.integers(2, 6))
@settings(deadline=None, max_examples=25)
def test_batches_give_what_all_items_at_once_give(seed: int, cuts: list[int], classes: int) -> None:
    human, model = tables(seed, 80, classes)
    evaluator = Evaluator(ABLE)
    # Cuts may coincide, and so batches be empty.
    for part in np.split(np.arange(80), sorted(cuts)):
        evaluator.update(human[part], model[part])
    found = evaluator.compute()
    for name in ABLE:
        metric = METRICS[name]
        if metric.per_item is not None:
            assert found[name] == pytest.approx(np.mean(metric.per_item(human, model)), rel=1e-12, abs=1e-12)
        else:
            assert metric.over_items is not None
            assert found[name] == pytest.approx(metric.over_items(human, model), rel=1e-9, abs=1e-12)


def test_only_classwise_errors_and_original_labels_are_left_out() -> None:
    assert set(METRICS) - set(ABLE) == {"classwise_ece", "classwise_ece_votes", "accuracy_original"}
    with pytest.raises(InputError, match="'classwise_ece' cannot be computed batch by batch"):
        Evaluator(["classwise_ece"])


def test_tensors_are_taken_and_shapes_are_told() -> None:
    human, model = tables(0, 8, 3)
    once = Evaluator().update(human, model).compute()
    assert Evaluator().update(torch.tensor(human), torch.tensor(model)).compute() == pytest.approx(once)
    with pytest.raises(InputError, match=r"people's rows have shape \(8, 3\), the model's \(7, 3\)"):
        Evaluator().update(human, model[:7])
    with pytest.raises(InputError, match="batches before had 3 classes"):
        Evaluator().update(human, model).update(*tables(0, 8, 4))
    with pytest.raises(InputError, match=r"people's rows have shape \(8, 3\), the model's \(2, 8, 3\)"):
        Evaluator().update(human, np.stack([model, model]))
    with pytest.raises(InputError, match="no batch has come yet"):
        Evaluator().update([], []).compute()
    with pytest.raises(InputError, match=r"human: shape \(0, 3\)"):
        Evaluator().update(human[:0], model)
    assert repr(Evaluator(["kl", "tvd"]).update(human, model)) == "Evaluator(kl, tvd; 8 items)"
