"""A whole network is trained on texts as a small one is on features: same deliveries, selection, dynamics, store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from dissensus.errors import InputError
from dissensus.items.shown import Items
from dissensus_train.basins import BasinSettings, measure_basins
from dissensus_train.training import fleet
from dissensus_train.training.batches import Epoch, epoch_of
from dissensus_train.training.engine import loop_only, train
from dissensus_train.training.fine_tuning import ImageNetwork, TextNetwork, keep_architecture, pretrained
from dissensus_train.training.inputs import EVALUATION_TOKENS, Tokens, network_inputs
from dissensus_train.training.loop import log_probabilities, train_loop
from dissensus_train.training.models import network_of
from dissensus_train.training.restoring import trained_model
from dissensus_train.training.run import delivery_of
from dissensus_train.training.settings import Training
from dissensus_train.training.store import RunWriter
from tests.training.problems import images, run
from tests.training.texts import texts, tiny_transformer

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.training.data import TrainingData

CPU = torch.device("cpu")
SETTINGS = Training(
    optimiser="adamw",
    learning_rate=1e-2,
    weight_decay=0.01,
    batch_size=8,
    epochs=8,
    schedule="linear",
    warmup=1,
    clip_norm=1.0,
    keep="best",
    selection="soft-nll",
    precision="bf16",
    dynamics=True,
)
MODEL = "hf:tiny"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> TrainingData:
    folder = tmp_path_factory.mktemp("study")
    tiny_transformer(folder / "tiny")
    return replace(texts(), folder=folder)


def tuned(data: TrainingData, **change: Any) -> Any:
    return run(data, **{"model": MODEL, "training": SETTINGS, **change})


@pytest.fixture(scope="module")
def result(data: TrainingData) -> Any:
    return train_loop(tuned(data), data)


def test_it_learns_what_people_say(data: TrainingData, result: Any) -> None:
    assert not result.failed
    assert result.history["selection"].min() < result.history["selection"][0] - 0.05
    human = data.human.probabilities[data.splits["test"]]
    marginal = data.human.probabilities[data.splits["train"]].mean(axis=0)
    ours, constant = ((-human * np.log(q)).sum(axis=1).mean() for q in (result.predictions["test"], marginal))
    assert ours < constant - 0.03
    assert result.dynamics["test"].shape == (8, len(human), 2)
    assert result.chosen_epoch == result.history["selection"].argmin()


def test_it_repeats_to_the_bit_and_follows_its_seed(data: TrainingData, result: Any) -> None:
    again, other = train_loop(tuned(data), data), train_loop(tuned(data, seed=1), data)
    assert all(np.array_equal(result.weights[name], again.weights[name]) for name in result.weights)
    assert not np.array_equal(result.predictions["test"], other.predictions["test"])


@pytest.mark.parametrize("delivery", ["majority", "sls", "multipass", "repeated", "mixup", "label-smoothing"])
def test_every_delivery_reaches_it(data: TrainingData, delivery: str) -> None:
    trained = train_loop(tuned(data, delivery=delivery, training=replace(SETTINGS, epochs=1, warmup=0)), data)
    assert not trained.failed
    assert np.isfinite(trained.predictions["test"]).all()


def test_it_is_stored_and_comes_back_with_its_predictions(data: TrainingData, result: Any, tmp_path: Path) -> None:
    with RunWriter(tmp_path / "store") as writer:
        writer.save(result)
        back = writer.store.load(result.run.key)
    model = trained_model(back, data)
    features = network_inputs(model, data, CPU)
    rows = torch.from_numpy(data.splits["test"])
    found = log_probabilities(model, features, rows, SETTINGS).exp().numpy()
    assert np.array_equal(found, result.predictions["test"])


def test_its_architecture_is_kept_without_the_weights_it_started_from(
    data: TrainingData, result: Any, tmp_path: Path
) -> None:
    assert data.folder is not None
    keep_architecture(network_of(result.run, data), tmp_path / "kept", classes=data.human.classes)
    assert not list((tmp_path / "kept").glob("*.safetensors"))
    model = pretrained("hf:kept", classes=2, folder=tmp_path, weights=False)
    model.load_state_dict({name: torch.from_numpy(value) for name, value in result.weights.items()})
    assert data.items is not None
    features = model.prepare(data.items)  # type: ignore[operator]
    rows = torch.from_numpy(data.splits["test"])
    assert np.array_equal(log_probabilities(model, features, rows, SETTINGS).exp(), result.predictions["test"])
    with pytest.raises(InputError, match=r"model hf:kept: it cannot be loaded"):
        pretrained("hf:kept", classes=2, folder=tmp_path)


def test_other_weights_or_other_texts_are_another_run(data: TrainingData, tmp_path: Path) -> None:
    assert data.folder is not None
    assert data.items is not None
    tiny_transformer(tmp_path / "tiny", dropout=0.2)
    assert tuned(replace(data, folder=tmp_path)).key != tuned(data).key
    tiny_transformer(tmp_path / "tiny")
    assert tuned(replace(data, folder=tmp_path)).key == tuned(data).key
    others = replace(data.items, texts=(data.items.texts[0][::-1],))
    assert tuned(replace(data, items=others)).key != tuned(data).key


def test_it_goes_to_the_loop_on_every_device_and_says_so(data: TrainingData) -> None:
    runs = [tuned(data, seed=seed, training=replace(SETTINGS, epochs=1, warmup=0)) for seed in (0, 1)]
    assert loop_only(runs, data, device="cpu") == {"a pretrained network is fine-tuned one run at a time": runs}
    assert fleet.why_not_together(runs[0], data, torch.device("cuda"))
    assert [each.timing["engine"] for each in train(runs, data, device="cpu")] == ["loop", "loop"]


def tokens(data: TrainingData) -> Tokens:
    features = network_inputs(network_of(tuned(data), data), data, CPU)
    assert isinstance(features, Tokens)
    return features


def test_a_batch_holds_the_tokens_of_its_texts_and_padding(data: TrainingData) -> None:
    model, features = network_of(tuned(data), data), tokens(data)
    assert isinstance(model, TextNetwork)
    assert data.items is not None
    rows = torch.tensor([5, 0, 7])
    batch = features[rows]
    theirs = model.tokeniser(
        [str(data.items.texts[0][row]) for row in rows.tolist()],
        padding=True,
        pad_to_multiple_of=8,
        return_tensors="pt",
    )
    assert torch.equal(batch.ids, theirs["input_ids"])
    assert torch.equal(batch.mask, theirs["attention_mask"])
    assert torch.equal(features.take(rows)[torch.tensor([1])].ids, features[torch.tensor([0])].ids)


def test_pairs_of_texts_are_told_apart(data: TrainingData) -> None:
    pairs = replace(texts(pairs=True), folder=data.folder)
    batch = tokens(pairs)[torch.arange(3)]
    assert batch.types is not None
    assert batch.types.sum(dim=1).tolist() == [2, 2, 2], "the second text of each pair is one word and its end"


def test_an_epoch_in_buckets_is_the_same_examples_with_little_padding(data: TrainingData) -> None:
    one = tuned(data, delivery="mixup")
    features = tokens(data).take(torch.from_numpy(data.splits["train"]))
    plan = epoch_of(one, delivery_of(one, data), 3, classes=2)
    bucketed = features.bucketed(plan, size=8, seed=0, number=3)
    for part in ("target", "weight", "partner"):
        before, after = getattr(plan, part), getattr(bucketed, part)
        assert torch.equal(before[plan.row.argsort()], after[bucketed.row.argsort()]), part
    assert bucketed.partner is not None
    assert plan.partner is not None

    def padding(epoch: Any) -> float:
        length = torch.maximum(features.length[epoch.row], features.length[epoch.partner])
        return sum(float((part.max() - part).sum()) for part in length.split(8))

    assert padding(bucketed) < 0.5 * padding(plan)
    again = features.bucketed(plan, size=8, seed=0, number=3)
    assert torch.equal(again.row, bucketed.row)
    assert not torch.equal(features.bucketed(plan, size=8, seed=1, number=3).row, bucketed.row)


def test_evaluation_visits_every_text_once_within_its_share_of_tokens() -> None:
    generator = np.random.default_rng(0)
    long = Tokens.of([[1] * size for size in generator.integers(1, 3000, 50)], None, padding=0)
    parts = long.parts(torch.arange(50))
    assert sorted(torch.cat(parts).tolist()) == list(range(50))
    assert all(len(part) * int(long.length[part].max()) <= EVALUATION_TOKENS for part in parts)
    assert len(parts) < 10


def test_predictions_do_not_depend_on_what_is_in_a_batch(data: TrainingData, result: Any) -> None:
    model, features = trained_model(result, data), tokens(data)
    exact = replace(SETTINGS, precision="float32")
    together = log_probabilities(model, features, torch.arange(20), exact)
    alone = torch.cat([log_probabilities(model, features, torch.tensor([row]), exact) for row in range(20)])
    assert torch.allclose(together, alone, atol=1e-5)


def test_mixed_texts_are_mixed_embeddings(data: TrainingData, result: Any) -> None:
    model, features = trained_model(result, data), tokens(data)
    assert isinstance(model, TextNetwork)
    longest, shortest = int(features.length.argmax()), int(features.length.argmin())
    plan = Epoch(
        row=torch.tensor([shortest, shortest, longest]),
        target=torch.zeros(3, 2),
        partner=torch.tensor([longest, longest, shortest]),
        weight=torch.tensor([0.0, 0.3, 1.0]),
    )
    embed = model.network.get_input_embeddings()
    with torch.no_grad():
        mixed, alone = model(features.batch(plan, slice(0, 3))), model(features[torch.tensor([longest])])
        # Nothing but the longer of the two, whichever of them it is.
        assert torch.allclose(mixed[[0, 2]], alone.expand(2, -1), atol=1e-5)
        pair = [features.padded(torch.tensor([row]), int(features.length.max())) for row in (shortest, longest)]
        parts = [share * embed(text.ids) * text.mask[..., None] for share, text in zip((0.3, 0.7), pair, strict=True)]
        by_hand = model.network(inputs_embeds=sum(parts), attention_mask=pair[1].mask).logits
    assert torch.allclose(mixed[[1]], by_hand, atol=1e-5)
    assert not torch.allclose(mixed[1], mixed[0], atol=1e-3)


def test_what_does_not_fit_is_one_sentence(data: TrainingData, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    elsewhere = replace(data, folder=tmp_path)
    with pytest.raises(InputError, match="holds no config"):
        tuned(elsewhere, model="hf:empty")
    no_texts = images(items=60)
    with pytest.raises(InputError, match="the network reads items, and there are features only"):
        train_loop(tuned(replace(no_texts, folder=data.folder)), replace(no_texts, folder=data.folder))
    with pytest.raises(InputError, match="are no images; set augmentation = 'none'"):
        train_loop(tuned(data, training=replace(SETTINGS, augmentation="crop-flip")), data)


def test_a_network_that_reads_texts_has_a_basin(data: TrainingData, result: Any) -> None:
    settings = BasinSettings(
        items=None, split="test", density=0, surface=0, line=0, probes=2, perturbations=2, ascent_steps=1, eigenvalues=1
    )
    (basin,) = measure_basins([result], data, settings=settings)
    human, model = data.human.probabilities[data.splits["test"]], result.predictions["test"].astype(np.float64)
    # The run's own predictions were made in bfloat16.
    assert basin.loss == pytest.approx(-(human * np.log(model)).sum(axis=1).mean(), rel=1e-3)
    assert basin.eigenvalues.values[0] > 0


def test_a_network_of_images_sees_their_bytes_scaled_as_it_was_trained() -> None:
    wanted = {"input_size": (3, 8, 8), "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.1, 0.5)}
    model = ImageNetwork(torch.nn.Flatten(), wanted)
    pixels = np.random.default_rng(0).integers(0, 256, (5, 1, 8, 8)).astype(np.uint8)
    made = model.prepare(Items(names=np.arange(5), pixels=pixels))
    assert made.dtype == torch.uint8
    assert made.shape == (5, 3, 8, 8), "grey images are made coloured"
    expected = (pixels / 255 - np.array([0.5, 0.4, 0.3])[:, None, None]) / np.array([0.2, 0.1, 0.5])[:, None, None]
    assert np.allclose(model(made), expected.reshape(5, -1), atol=1e-5)
    assert set(model.state_dict()) == set(), "mean and deviation belong to the architecture, not to the weights"
    with pytest.raises(InputError, match="reads images, and the items are texts"):
        model.prepare(Items(names=np.arange(1), texts=(np.array(["a"], dtype=np.dtypes.StringDType()),)))
