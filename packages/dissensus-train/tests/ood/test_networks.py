"""OOD detection of networks that read items themselves, and of networks on sparse features."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from dissensus.errors import InputError
from dissensus_train.ood import OodSettings, auroc, measure_ood, read_ood_set
from dissensus_train.ood.ood_sets import OodSet, items_of, same_items
from dissensus_train.training import Training, run_on, train
from dissensus_train.training.inputs import prepared
from dissensus_train.training.restoring import trained_model
from tests.training.texts import WORDS, texts, tiny_transformer

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.training import RunResult
    from dissensus_train.training.data import TrainingData


def trained(data: TrainingData, model: str, *, seeds: int = 2) -> dict[str, list[RunResult]]:
    settings = Training(epochs=2, batch_size=8)
    runs = [
        run_on(data, model=model, target="frequency", delivery="soft", seed=seed, training=settings)
        for seed in range(seeds)
    ]
    return {"soft": sorted(train(runs, data, engine="loop", device="cpu"), key=lambda result: result.run.seed)}


def table(folder: Path, rows: list[str]) -> Path:
    (folder / "odd.csv").write_text("text\n" + "\n".join(rows) + "\n")
    return folder / "odd.csv"


def test_a_fine_tuned_network_is_scored_on_texts_it_reads_itself(tmp_path: Path) -> None:
    data = texts(60)
    assert data.items is not None
    results = trained(replace(data, folder=tmp_path), f"hf:{tiny_transformer(tmp_path / 'tiny')}")
    seen = str(data.items.texts[0][data.splits["train"][0]])
    odd = table(tmp_path, [*(" ".join([WORDS[7]] * (3 + number % 9)) for number in range(20)), seen])
    settings = OodSettings(sets={"odd": odd}, k=3, resamples=10)
    found = measure_ood(results, replace(data, folder=tmp_path), settings)
    assert found.sets[0].how == "texts as the networks read them"
    assert (found.sets[0].items, found.sets[0].trained_on) == (21, 1)
    assert "odin" not in found.settings["scores"]
    assert found.left_out == (
        f"odin is left out: it moves inputs, and {results['soft'][0].run.model} reads items, which cannot be moved",
    )
    # The same, text by text: padding and the order of lengths change nothing.
    model = trained_model(results["soft"][1], replace(data, folder=tmp_path)).eval()
    sides = []
    for each in (items_of(data, data.splits["test"]), read_ood_set(odd, data)):
        assert each.items is not None
        logits = []
        for number in range(len(each)):
            tokens = prepared(model, each.items.take(np.array([number])), torch.device("cpu"))
            with torch.no_grad():
                logits.append(model(tokens[torch.tensor([0])])[0].numpy())
        sides.append(np.sort(torch.from_numpy(np.stack(logits)).double().softmax(dim=1).numpy(), axis=1)[:, 0])
    assert found.get("odd", "msp", system="soft").by_seed[1] == pytest.approx(auroc(*sides), abs=0.02)
    with pytest.raises(InputError, match=r"odin is left out: it moves inputs.*; choose another score"):
        measure_ood(results, replace(data, folder=tmp_path), replace(settings, scores=("odin",)))
    np.savez(tmp_path / "odd.npz", features=np.zeros((3, 0)))
    with pytest.raises(InputError, match="features only; give texts or images"):
        measure_ood(results, replace(data, folder=tmp_path), replace(settings, sets={"odd": tmp_path / "odd.npz"}))


def test_sparse_features_give_what_the_same_dense_ones_do(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = texts(80)
    features = (rng.random((80, 12)) * (rng.random((80, 12)) < 0.4)).astype(np.float32)
    features[:, 0] += data.human.probabilities[:, 0]
    dense = replace(data, features=features, items=None)
    sparse = replace(dense, features=csr_matrix(dense.features))
    odd = np.concatenate([rng.normal(0, 2, (30, 12)), dense.features[dense.splits["test"][:2]]])
    np.savez(tmp_path / "odd.npz", features=odd)
    settings = OodSettings(sets={"odd": tmp_path / "odd.npz"}, k=3, resamples=0)
    one, other = (measure_ood(trained(each, "simple-ffn"), each, settings) for each in (dense, sparse))
    assert other.sets[0].in_distribution_too == 2
    assert one.settings["scores"] == other.settings["scores"]
    assert "odin" in other.settings["scores"]
    for mine, theirs in zip(one.measures, other.measures, strict=True):
        assert mine.by_seed == pytest.approx(theirs.by_seed, abs=0.02)


def test_disagreement_is_left_out_of_systems_with_one_seed(tmp_path: Path) -> None:
    data = replace(texts(60), features=np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32), items=None)
    np.savez(tmp_path / "odd.npz", features=np.random.default_rng(1).normal(3, 1, (20, 4)))
    settings = OodSettings(sets={"odd": tmp_path / "odd.npz"}, scores=("msp", "disagreement"), resamples=0)
    found = measure_ood(trained(data, "linear", seeds=1), data, settings)
    assert found.settings["scores"] == ["msp"]
    assert found.notes() == ["disagreement is left out: it is of two seeds or more, and system 'soft' has one"]


def test_the_same_sparse_rows_and_texts_are_found() -> None:
    rng = np.random.default_rng(0)
    dense = (rng.random((20, 6)) * (rng.random((20, 6)) < 0.5)).astype(np.float32)
    one, other = OodSet(name="", features=csr_matrix(dense[:12])), OodSet(name="", features=csr_matrix(dense[8:]))
    assert same_items(one, other).tolist() == [False] * 8 + [True] * 4
    assert same_items(one, OodSet(name="", features=dense[8:])).tolist() == [False] * 8 + [True] * 4
    data = texts(30)
    here, there = (items_of(data, members) for members in (np.arange(10), np.arange(6, 20)))
    assert data.items is not None
    said = data.items.texts[0]
    assert same_items(here, there).tolist() == [str(text) in set(map(str, said[6:20])) for text in said[:10]]
