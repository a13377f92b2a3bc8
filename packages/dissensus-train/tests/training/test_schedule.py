from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dissensus_train.training.schedule import Schedule
from dissensus_train.training.settings import Training


@given(st.lists(st.floats(0.1, 2.0), min_size=3, max_size=30), st.integers(0, 3))
def test_plateaus_are_torchs(metrics: list[float], patience: int) -> None:
    settings = Training(
        schedule="plateau", plateau_patience=patience, plateau_factor=0.5, epochs=100, learning_rate=0.1
    )
    schedule = Schedule.start(1, settings)
    weight = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([weight], lr=0.1)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.5, patience=patience, eps=0)
    for epoch, metric in enumerate(metrics):
        schedule.advance(epoch, np.array([metric]), settings)
        scheduler.step(metric)
        assert schedule.rate[0] == pytest.approx(optimiser.param_groups[0]["lr"], rel=1e-12)


def test_cosine_is_torchs() -> None:
    settings = Training(schedule="cosine", epochs=20, learning_rate=0.1, optimiser="sgd")
    schedule = Schedule.start(1, settings)
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 20)
    for epoch in range(20):
        assert schedule.rate[0] == pytest.approx(optimiser.param_groups[0]["lr"])
        schedule.advance(epoch, None, settings)
        optimiser.step()
        scheduler.step()


@given(st.lists(st.floats(0.1, 2.0), min_size=1, max_size=25), st.integers(1, 5))
def test_stopping_waits_for_patience_and_keeps_the_best(metrics: list[float], patience: int) -> None:
    settings = Training(patience=patience, keep="best", epochs=25)
    schedule = Schedule.start(1, settings)
    seen: list[float] = []
    for epoch, metric in enumerate(metrics):
        kept = schedule.advance(epoch, np.array([metric]), settings)
        assert kept[0] == (metric < min(seen, default=np.inf))
        seen.append(metric)
        if not schedule.active[0]:
            break
    best = int(np.argmin(seen))
    assert schedule.best_epoch[0] == best
    if not schedule.active[0]:
        assert len(seen) - 1 - best == patience or len(seen) == 25
    else:
        assert len(seen) - 1 - best < patience


def test_many_runs_advance_as_if_each_were_alone() -> None:
    settings = Training(patience=2, keep="best", epochs=12, schedule="plateau", plateau_patience=1)
    metrics = np.random.default_rng(0).random((5, 12))
    together = Schedule.start(5, settings)
    alone = [Schedule.start(1, settings) for _ in range(5)]
    for epoch in range(12):
        kept = together.advance(epoch, metrics[:, epoch], settings)
        for r, one in enumerate(alone):
            assert one.advance(epoch, metrics[r : r + 1, epoch], settings)[0] == kept[r]
            assert one.active[0] == together.active[r]
            assert one.rate[0] == together.rate[r]
            assert one.best_epoch[0] == together.best_epoch[r]


def test_the_last_epoch_is_kept_where_nothing_is_selected() -> None:
    settings = Training(epochs=3)
    schedule = Schedule.start(2, settings)
    for epoch in range(3):
        assert schedule.advance(epoch, None, settings).all()
    assert schedule.best_epoch.tolist() == [2, 2]
    assert not schedule.active.any()
