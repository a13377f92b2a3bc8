"""The `Trainer` of Hugging Face shows a network what our engines show it, in every epoch, worker and process."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import dissensus as dis
from dissensus.errors import InputError
from dissensus.labels.reading import read_labels
from dissensus_train.training.batches import epoch_of
from dissensus_train.training.loop import one_thread
from dissensus_train.training.losses import spread
from tests.integrations.processes import in_two_processes
from tests.training.problems import SGD, images, run

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.training.run import Run

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
datasets = pytest.importorskip("datasets", reason="datasets is not installed")
pytest.importorskip("accelerate", reason="accelerate is not installed")

ITEMS = 64
LABELS = dis.label(dis.simulate_votes(np.random.default_rng(0).dirichlet([0.5] * 3, ITEMS), 5, annotators=10, seed=0))
WORDS = np.random.default_rng(1).integers(0, 9, (ITEMS, 6))


@pytest.fixture(autouse=True)
def quietly() -> Any:
    """Other people's libraries warn of what we do not mind, and train on one thread, for the same bits."""
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore")
        yield


def rows(order: Any = None) -> Any:
    """Texts with columns that no model takes, in any order."""
    chosen = np.arange(ITEMS) if order is None else order
    return datasets.Dataset.from_dict(
        {
            "item": LABELS.items[chosen].tolist(),
            "text": [f"text {number}" for number in chosen],
            "input_ids": WORDS[chosen].tolist(),
            "label": np.zeros(ITEMS, dtype=int),
        }
    )


def network() -> Any:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=9,
        num_labels=3,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return transformers.BertForSequenceClassification(config)


def arguments(folder: Path | str, **change: Any) -> Any:
    given = {
        "per_device_train_batch_size": 16,
        "num_train_epochs": 3,
        "learning_rate": 0.01,
        "lr_scheduler_type": "constant",
        "max_grad_norm": 0,
        "use_cpu": True,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "seed": 0,
    }
    return transformers.TrainingArguments(str(folder), **{**given, **change})


class Watched(dis.hf.Trainer):
    """Keeps the items and labels of every training batch."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.seen: list[tuple[Any, Any]] = []

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **options: Any) -> Any:
        if model.training:
            self.seen.append((inputs["item"], inputs["labels"]))
        return super().compute_loss(model, inputs, *args, **options)


def trained(folder: Path | str, delivery: str, **change: Any) -> Any:
    options = {"resume_from_checkpoint": change.pop("resume_from_checkpoint", None)}
    trainer = Watched(
        network(), arguments(folder, **change), train_dataset=rows(), delivery=dis.deliver(delivery, LABELS)
    )
    trainer.train(**options)
    return trainer


def engine_steps(delivery: str, *, epochs: int = 3, batch: int = 16) -> list[tuple[Any, Any]]:
    """Items and targets of every step of our engines."""
    one: Run = run(images(items=80), delivery=delivery, training=replace(SGD, batch_size=batch))
    steps: list[tuple[Any, Any]] = []
    for epoch in range(epochs):
        plan = epoch_of(one, dis.deliver(delivery, LABELS), epoch, classes=3)
        steps += zip(plan.row.split(batch), plan.target.split(batch), strict=True)
    return steps


def assert_steps(seen: list[tuple[Any, Any]], expected: list[tuple[Any, Any]]) -> None:
    assert len(seen) == len(expected)
    for (item, target), (our_item, our_target) in zip(seen, expected, strict=True):
        assert torch.equal(item, our_item)
        assert torch.equal(spread(target, our_target), our_target)


@pytest.mark.parametrize("delivery", ["soft", "sls", "multipass", "repeated", "majority"])
def test_every_step_has_the_items_and_targets_of_our_engines(delivery: str, tmp_path: Path) -> None:
    trainer = trained(tmp_path, delivery)
    assert trainer.args.remove_unused_columns
    assert_steps(trainer.seen, engine_steps(delivery))


def test_labels_move_in_workers_that_live_on(tmp_path: Path) -> None:
    trainer = trained(tmp_path, "multipass", dataloader_num_workers=1, dataloader_persistent_workers=True)
    assert_steps(trainer.seen, engine_steps("multipass"))


def test_the_loss_is_soft_cross_entropy_and_no_row_of_yes_or_no_questions(tmp_path: Path) -> None:
    labelled = dis.hf.labelled(rows(), LABELS)
    # What happens without us: the model takes distributions for many yes-or-no questions, and says nothing.
    plain = transformers.Trainer(network(), arguments(tmp_path), train_dataset=labelled)
    plain.train()
    assert plain.model.config.problem_type == "multi_label_classification"

    trainer = dis.hf.Trainer(
        network(),
        arguments(tmp_path),
        train_dataset=labelled,
        eval_dataset=labelled,
        delivery=dis.deliver("soft", LABELS),
    )
    trainer.train()
    assert trainer.model.config.problem_type is None
    with torch.no_grad():
        logits = trainer.model.eval()(input_ids=torch.from_numpy(WORDS)).logits
    expected = F.cross_entropy(logits, torch.from_numpy(LABELS.probabilities).float())
    assert trainer.evaluate()["eval_loss"] == pytest.approx(float(expected), abs=1e-5)
    hard = labelled.remove_columns("labels").add_column("labels", LABELS.majority().label.tolist())
    index = torch.from_numpy(LABELS.majority().label).long()
    assert trainer.evaluate(hard)["eval_loss"] == pytest.approx(float(F.cross_entropy(logits, index)), abs=1e-5)


def padding(how: str) -> dict[str, Any]:
    """Return the arguments for one of three ways to give a `Trainer` its collator."""
    from tokenizers import Tokenizer, models

    words = Tokenizer(models.WordLevel({"a": 0, "[PAD]": 1}, unk_token="a"))
    tokeniser = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]")
    ways: dict[str, dict[str, Any]] = {
        "default": {},
        "processing_class": {"processing_class": tokeniser},
        "explicit": {"data_collator": transformers.DataCollatorWithPadding(tokeniser)},
    }
    return ways[how]


@pytest.mark.parametrize("how", ["default", "processing_class", "explicit"])
@pytest.mark.parametrize("own", ["label", "label_ids", "labels"])
def test_labelled_evaluation_goes_by_the_distributions(how: str, own: str, tmp_path: Path) -> None:
    hard = [[0]] * ITEMS if own == "label_ids" else [0] * ITEMS
    labelled = dis.hf.labelled(rows().remove_columns("label").add_column(own, hard), LABELS)
    assert labelled.column_names == ["item", "text", "input_ids", "labels"]
    saved = {"eval_strategy": "epoch", "save_strategy": "epoch", "load_best_model_at_end": True, "num_train_epochs": 2}
    trainer = dis.hf.Trainer(
        network(),
        arguments(tmp_path, **saved),
        train_dataset=labelled,
        eval_dataset=labelled,
        delivery=dis.deliver("soft", LABELS),
        **padding(how),
    )
    trainer.train()
    logits = trainer.predict(labelled).predictions.astype(np.float64)
    log_q = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    soft_nll = -(LABELS.probabilities * log_q).sum(axis=1).mean()
    assert trainer.evaluate()["eval_loss"] == pytest.approx(soft_nll, abs=1e-5)
    assert trainer.state.best_metric == pytest.approx(soft_nll, abs=1e-5)


def test_accumulated_batches_are_one_large_batch(tmp_path: Path) -> None:
    large = trained(tmp_path, "sls", per_device_train_batch_size=32)
    small = trained(tmp_path, "sls", per_device_train_batch_size=8, gradient_accumulation_steps=4)
    for one, other in zip(large.model.parameters(), small.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)


def test_training_that_is_resumed_goes_on_with_the_labels_of_its_epoch(tmp_path: Path) -> None:
    # 4 steps an epoch: the checkpoint lies in the middle of the second.
    trained(tmp_path, "multipass", save_strategy="steps", save_steps=6, max_steps=6)
    again = trained(tmp_path, "multipass", resume_from_checkpoint=str(tmp_path / "checkpoint-6"))
    assert_steps(again.seen, engine_steps("multipass")[6:])


IMPORTS = """
import os, pickle, sys, warnings
warnings.simplefilter("ignore")
import accelerate, torch
from tests.integrations import test_hf
"""

PROCESS = """
trainer = test_hf.trained(sys.argv[1], "multipass", per_device_train_batch_size=8, ddp_backend="gloo")
assert trainer.accelerator.num_processes == 2
weights = {name: value.detach() for name, value in trainer.model.state_dict().items()}
with open(f"{sys.argv[1]}/{os.environ['RANK']}", "wb") as file:
    pickle.dump((trainer.seen, weights), file)

# A loop of one's own under accelerate alone.
accelerator = accelerate.Accelerator(cpu=True)
assert accelerator.num_processes == 2
with open(f"{sys.argv[1]}/own-{os.environ['RANK']}", "wb") as file:
    pickle.dump(test_hf.seen_under(accelerator, batch_size=8), file)
torch.distributed.destroy_process_group()
"""


def seen_under(accelerator: Any, *, batch_size: int) -> list[tuple[Any, Any]]:
    """Items and targets of every step of a loop whose loader `accelerate` has prepared."""
    made = dis.loader(torch.from_numpy(WORDS), dis.deliver("multipass", LABELS), batch_size=batch_size)
    prepared = accelerator.prepare(made)
    seen = []
    for epoch in range(3):
        prepared.set_epoch(epoch)
        seen += [(item, target) for _, target, item in prepared]
    return seen


def test_two_processes_train_the_network_of_one_and_share_the_steps_of_a_loop(tmp_path: Path) -> None:
    in_two_processes(IMPORTS, PROCESS, str(tmp_path))
    (first, weights), (second, others) = (pickle.loads((tmp_path / str(rank)).read_bytes()) for rank in (0, 1))
    own = [pickle.loads((tmp_path / f"own-{rank}").read_bytes()) for rank in (0, 1)]
    # Each step of the two together is a step of one process with batches of twice the size.
    for pair in ((first, second), own):
        both = [tuple(torch.cat(part) for part in zip(*step, strict=True)) for step in zip(*pair, strict=True)]
        assert_steps(both, engine_steps("multipass"))  # type: ignore[arg-type]
    alone = trained(tmp_path, "multipass").model.state_dict()
    for name, value in alone.items():
        torch.testing.assert_close(weights[name], value, atol=1e-4, rtol=1e-3)
        assert torch.equal(weights[name], others[name])


def test_a_loop_under_accelerate_alone_sees_the_same() -> None:
    import accelerate

    assert_steps(seen_under(accelerate.Accelerator(cpu=True), batch_size=16), engine_steps("multipass"))


def test_a_trainer_of_ones_own_takes_the_mixin(tmp_path: Path) -> None:
    class Own(transformers.Trainer):  # type: ignore[misc, name-defined]
        pass

    class Mine(dis.hf.Delivering, Own):
        pass

    losses: list[Any] = []

    def watched(logits: Any, target: Any) -> Any:
        losses.append(dis.losses.brier(logits, target))
        return losses[-1]

    trainer = Mine(
        network(), arguments(tmp_path), train_dataset=rows(), delivery=dis.deliver("sls", LABELS), loss=watched
    )
    trainer.train()
    assert isinstance(trainer, Own)
    assert len(losses) == 12
    assert all(each.shape == (16,) for each in losses)


def test_rows_come_in_the_order_of_the_labels_with_their_distributions() -> None:
    order = np.random.default_rng(2).permutation(ITEMS)
    some = LABELS.take(np.arange(40)[::-1])
    made = dis.hf.labelled(rows(order), some)
    assert made["item"][:] == some.items.tolist()
    assert made["text"][:] == [f"text {number}" for number in np.arange(40)[::-1]]
    np.testing.assert_allclose(np.array(made["labels"][:]), some.probabilities, atol=1e-7)
    # And back: what went into a dataset is read from it.
    back = read_labels(some.to_hf())
    np.testing.assert_allclose(back.probabilities, some.probabilities)
    assert dis.hf.labelled(made, LABELS.take(np.arange(3)))["item"][:] == LABELS.items[:3].tolist()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: dis.hf.labelled(rows(), LABELS, item="id"),
            r"the dataset has no column 'id'; its columns: item, text",
        ),
        (
            lambda: dis.hf.labelled(rows(np.zeros(ITEMS, dtype=int)), LABELS),
            r"item 0 has 64 rows in the dataset; keep one per item",
        ),
        (
            lambda: dis.hf.labelled(rows().select(range(60)), LABELS),
            r"4 of 64 labelled items have no row in the dataset, the first is 60; give",
        ),
    ],
)
def test_rows_that_cannot_be_labelled_are_told(make: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()


@pytest.mark.parametrize(
    ("settings", "options", "sentence"),
    [
        ({}, {"delivery": "mixup"}, r"this delivery mixes inputs, and tokens cannot be mixed; choose another"),
        ({}, {"train_dataset": None}, r"there is no train_dataset; give"),
        ({}, {"loss": "brier"}, r"the loss is 'brier', which cannot be called; give one of dis.losses"),
        ({}, {"delivery": LABELS}, r"a LabelDistribution is no delivery; give dis.deliver"),
        (
            {"label_smoothing_factor": 0.1},
            {},
            r"label_smoothing_factor is not used .* give the delivery label-smoothing",
        ),
        ({}, {"compute_loss_func": print}, r"compute_loss_func is not used where a delivery is; give loss="),
        ({"train_sampling_strategy": "group_by_length"}, {}, r"train_sampling_strategy is 'group_by_length'"),
    ],
)
def test_settings_that_would_be_ignored_are_refused(
    settings: dict[str, Any], options: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    named = options.get("delivery", "soft")
    delivery = dis.deliver(named, LABELS) if isinstance(named, str) else named
    given = {"train_dataset": rows(), **options, "delivery": delivery}
    with pytest.raises(InputError, match=sentence):
        dis.hf.Trainer(network(), arguments(tmp_path, **settings), **given)
