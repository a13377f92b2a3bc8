"""Before a network that is not ours trains together, its first steps say whether that is what the loop would do."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from dissensus_train.training import fleet
from dissensus_train.training.engine import loop_only, train
from dissensus_train.training.loop import train_loop
from dissensus_train.training.models import network_of
from dissensus_train.training.rehearsal import rehearsed
from dissensus_train.training.stacked import StackedRuns
from dissensus_train.training.together import train_together
from tests.training.odd_networks import EITHER, LOOPED, STACKED
from tests.training.problems import SGD, images, run
from tests.training.test_engines import assert_same

CPU = torch.device("cpu")
DATA = images(items=80, side=6)
DECAYED = replace(SGD, epochs=2, batch_size=16, weight_decay=1e-2)


def odd(name: str) -> str:
    return f"tests.training.odd_networks:{name}"


@pytest.mark.parametrize("name", [*STACKED, *EITHER])
def test_what_trains_together_has_the_numbers_of_the_loop(name: str) -> None:
    runs = [run(DATA, model=odd(name), delivery="sls", seed=seed, training=DECAYED) for seed in (0, 1)]
    form = rehearsed(runs[0], DATA, CPU)
    assert not isinstance(form, str), form
    assert form is StackedRuns or name not in STACKED
    trained = train_together(form(runs, DATA, CPU), runs, DATA, device=CPU)
    for one, other in zip(runs, trained, strict=True):
        assert_same(train_loop(one, DATA), other, tolerance=1e-6)


@pytest.mark.parametrize("name", LOOPED)
def test_what_draws_for_itself_goes_to_the_loop_and_one_line_says_why(name: str) -> None:
    why = rehearsed(run(DATA, model=odd(name), training=DECAYED), DATA, CPU)
    assert isinstance(why, str)
    assert "two equal steps" in why
    assert "\n" not in why


def test_the_reason_stands_beside_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissensus_train.training.engine.settled_device", lambda _: "cuda")
    monkeypatch.setattr(fleet, "rehearsed", lambda run, data, _: rehearsed(run, data, CPU))
    runs = [run(DATA, model=odd(name), training=DECAYED) for name in ("Noise", "Tied")]
    reasons = loop_only([*runs, run(DATA)], DATA, device="auto")
    assert list(reasons.values()) == [[runs[0]]]
    assert "two equal steps of tests.training.odd_networks:Noise differ" in next(iter(reasons))


def test_a_network_is_rehearsed_once_for_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    one = run(DATA, model=odd("Odd"), training=DECAYED)
    first = rehearsed(one, DATA, CPU)
    monkeypatch.setattr("dissensus_train.training.rehearsal._rehearse", lambda *_: pytest.fail("rehearsed twice"))
    assert rehearsed(replace(one, seed=3, delivery="majority"), DATA, CPU) is first is StackedRuns


def test_lazy_layers_draw_from_the_seed() -> None:
    one = run(DATA, model=odd("Lazy"))
    first, again, other = (network_of(each, DATA, checked=False) for each in (one, one, replace(one, seed=1)))
    weights = [network.get_parameter("1.weight") for network in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU here")
@pytest.mark.parametrize("name", [*STACKED, *LOOPED, *EITHER])
def test_on_a_gpu_every_odd_network_trains_with_the_numbers_of_the_loop(name: str) -> None:
    runs = [run(DATA, model=odd(name), delivery="sls", seed=seed, training=DECAYED) for seed in (0, 1)]
    for result in train(runs, DATA, engine="fleet", device="cuda"):
        assert_same(train_loop(result.run, DATA, device="cuda"), result, tolerance=1e-5)
