"""Every example runs with the real library, and ends where our own loop ends on the same data with the same seed."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import dissensus as dis
from dissensus.evaluation.metrics import soft_nll
from dissensus_train.integrations.hf import Delivering
from dissensus_train.training import losses
from dissensus_train.training.batches import epoch_of
from dissensus_train.training.data import TrainingData
from dissensus_train.training.loop import one_thread, train_loop
from dissensus_train.training.run import run_on
from dissensus_train.training.settings import Training

if TYPE_CHECKING:
    from dissensus_train.training.run import Run, RunResult

EXAMPLES = Path(__file__).parents[4] / "examples"

LINEAR = """
import torch

def net(shape, classes):
    torch.manual_seed(0)
    return torch.nn.Linear(shape[0], classes)
"""

BERT = """
import torch
import transformers

class Tokens(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
        config = transformers.BertConfig(vocab_size=3, num_labels=3, **size, **no_dropout)
        self.network = transformers.BertForSequenceClassification(config)

    def forward(self, x):
        return self.network(input_ids=x.long()).logits

def net(shape, classes):
    return Tokens()
"""

REWARDS = """
import torch
import transformers
from dissensus_train.training.pairs import PairLink

class Rewards(torch.nn.Module):
    def __init__(self):
        super().__init__()
        transformers.set_seed(0)
        size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
        config = transformers.LlamaConfig(vocab_size=9, num_labels=1, pad_token_id=0, **size)
        self.network = transformers.LlamaForSequenceClassification(config)
        self.link = PairLink(3)

    def forward(self, x):
        return self.link(*(self.network(input_ids=x[:, side].long()).logits for side in (0, 1)))

def net(shape, classes):
    return Rewards()
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Lightning writes the seed into the environment; here it is put back.
    monkeypatch.setenv("PL_GLOBAL_SEED", "0")


def example(name: str) -> dict[str, Any]:
    """What an example leaves; other people's libraries warn of what we do not mind."""
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore")
        return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def our_loop(x: Any, labels: Any, *, net: str, delivery: str, train: int, seed: int = 0, **training: Any) -> RunResult:
    """Our own loop on the first items of an example, with a network of the same weights at the start."""
    Path("nets.py").write_text(net)
    data = TrainingData(
        name="example",
        features=np.asarray(x, dtype=np.float32),
        human=labels,
        targets={"frequency": labels},
        splits={"train": np.arange(train), **({"test": np.arange(train, len(labels))} if train < len(labels) else {})},
        normalise=False,
        folder=Path.cwd(),
    )
    settings = Training(**{"batch_size": 32, "learning_rate": 0.01, **training})
    one = run_on(data, model="nets.py:net", target="frequency", delivery=delivery, seed=seed, training=settings)
    with one_thread():
        return train_loop(one, data)


def our_targets(one: Run, labels: Any) -> list[Any]:
    """The targets of every step of a run whose items are all trained on."""
    delivery, found = dis.deliver(one.delivery, labels, seed=one.seed), []
    for epoch in range(one.training.epochs):
        found += epoch_of(one, delivery, epoch, classes=len(labels.classes)).target.split(one.training.batch_size)
    return found


def assert_targets(seen: list[Any], ours: list[Any]) -> None:
    assert len(seen) == len(ours)
    for theirs, expected in zip(seen, ours, strict=True):
        assert torch.equal(losses.spread(theirs, expected), expected)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The targets that reach `dis.losses.cross_entropy` or the loss of `dis.hf`."""
    targets: list[Any] = []
    cross_entropy, compute_loss = losses.cross_entropy, Delivering.compute_loss

    def watched(logits: Any, target: Any) -> Any:
        targets.append(target)
        return cross_entropy(logits, target)

    def watched_too(trainer: Any, model: Any, inputs: Any, *args: Any, **options: Any) -> Any:
        if model.training:
            targets.append(inputs["labels"])
        return compute_loss(trainer, model, inputs, *args, **options)

    monkeypatch.setattr(losses, "cross_entropy", watched)
    monkeypatch.setattr(Delivering, "compute_loss", watched_too)
    return targets


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_has_at_most_30_lines_and_three_that_change(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    assert len(lines) <= 30
    changed = [line[-3:] for line in lines if line[-4:-1] == " # "]
    assert sorted(changed) == ["# 1", "# 2", "# 3"]


def test_a_pytorch_loop_is_our_loop(seen: list[Any]) -> None:
    left = example("pytorch_loop")
    ours = our_loop(left["x"], left["labels"], net=LINEAR, delivery="multipass", train=320, epochs=15)
    human, said = left["labels"].probabilities[320:], ours.predictions["test"]
    assert_targets(seen[:-1], our_targets(ours.run, left["labels"].take(np.arange(320))))
    assert left["soft_nll"] == pytest.approx(soft_nll(human, said).mean(), abs=1e-5)


def test_lightning_is_our_loop(seen: list[Any]) -> None:
    pytest.importorskip("lightning", reason="lightning is not installed")
    left = example("lightning_callback")
    ours = our_loop(left["x"], left["labels"], net=LINEAR, delivery="sls", train=320, epochs=15, dynamics=True)
    assert_targets(seen, our_targets(ours.run, left["labels"]))
    # Every item after every epoch, as our engines record them; half precision.
    np.testing.assert_allclose(left["recorder"].dynamics["train"], ours.dynamics["train"], atol=1e-3)
    human = left["labels"].probabilities
    assert left["soft_nll"] == pytest.approx(soft_nll(human, ours.predictions["train"]).mean(), abs=1e-3)


def test_the_trainer_of_hugging_face_is_our_loop(seen: list[Any]) -> None:
    for library in ("accelerate", "datasets", "transformers"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    left = example("hugging_face")
    ours = our_loop(left["words"], left["labels"], net=BERT, delivery="multipass", train=320, epochs=4)
    assert_targets(seen, our_targets(ours.run, left["labels"]))
    expected = soft_nll(left["labels"].probabilities, ours.predictions["train"]).mean()
    (told,) = (each["eval_loss"] for each in left["trainer"].state.log_history if "eval_loss" in each)
    assert told == pytest.approx(expected, abs=1e-3)
    assert told < 0.95


def test_the_reward_trainer_of_trl_is_our_loop(seen: list[Any]) -> None:
    for library in ("accelerate", "datasets", "transformers", "trl"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    left = example("trl_reward")
    ended = np.pad(left["words"], ((0, 0), (0, 0), (0, 1)), constant_values=1)
    ours = our_loop(ended, left["labels"], net=REWARDS, delivery="multipass", train=320, epochs=4)
    assert_targets(seen, our_targets(ours.run, left["labels"]))
    model, loss = left["model"].eval(), left["trainer"].delivered_loss
    assert "delivered_loss.link.steps" in model.state_dict()
    with torch.no_grad():
        rewards = model(torch.from_numpy(ended).transpose(0, 1).flatten(0, 1)).logits
        said = loss.link(*rewards.chunk(2)).exp().numpy()
    np.testing.assert_allclose(said, ours.predictions["train"], atol=1e-3)
    truth, nothing = left["truth"], np.broadcast_to(left["truth"].mean(axis=0), said.shape)
    assert soft_nll(truth, said).mean() < soft_nll(truth, nothing).mean()
    # Its collator keeps no labels: an evaluation set is scored by TRL's own loss, chosen against rejected.
    chosen, rejected = rewards.chunk(2)
    own = torch.nn.functional.softplus(rejected - chosen).mean().item()
    assert left["trainer"].evaluate(left["pairs"].take(320))["eval_loss"] == pytest.approx(own, abs=1e-4)


def within_noise(model: Any, left: dict[str, Any]) -> tuple[float, float]:
    """The difference of soft NLL between a classifier and our loop on held-out items, and its standard error.

    The noise is that of the items, and of five seeds of ours.
    """
    x, labels = left["x"], left["labels"]
    human, said = labels.probabilities[320:], model.predict_proba(x[320:])
    ours = [
        our_loop(x, labels, net=LINEAR, delivery="repeated", train=320, seed=seed, epochs=12, batch_size=64)
        for seed in range(5)
    ]
    each = np.stack([soft_nll(human, result.predictions["test"]) for result in ours])
    difference = soft_nll(human, said) - each.mean(axis=0)
    return float(difference.mean()), float(np.hypot(difference.std() / np.sqrt(80), each.mean(axis=1).std()))


def test_scikit_learn_ends_within_noise_of_our_loop(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    left = example("scikit_learn")
    difference, noise = within_noise(left["model"], left)
    assert abs(difference) < 2 * noise
    human, said = left["labels"].probabilities[320:], left["model"].predict_proba(left["x"][320:])
    assert left["soft_nll"] == pytest.approx(soft_nll(human, said).mean())
    assert f"soft NLL on held-out items: {left['soft_nll']:.3f} nats" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "library"), [("LightGBM", "lightgbm"), ("XGBoost", "xgboost")])
def test_boosted_trees_end_within_noise_of_our_loop(name: str, library: str) -> None:
    pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    pytest.importorskip(library, reason=f"{library} is not installed")
    left = example("boosted_trees")
    difference, noise = within_noise(left["models"][name], left)
    assert abs(difference) < 2 * noise
