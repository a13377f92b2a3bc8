"""A model leaves for ONNX, Hugging Face and scikit-learn, and says there what it says here."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from dissensus.errors import InputError
from dissensus.items import Items
from dissensus_train.bundles import export_bundle, load_model
from dissensus_train.studies import score_study
from tests.bundles.test_texts import trained
from tests.study_report.studies import finished
from tests.training.texts import tiny_transformer

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.studies import ScoredStudy

NEW = ["good good good", "bad bad filler3 filler4 filler5 plain", "odd " * 200, "good bad"]


@pytest.fixture(scope="module")
def fine_tuned(tmp_path_factory: pytest.TempPathFactory) -> ScoredStudy:
    folder = tmp_path_factory.mktemp("fine-tuned")
    tiny_transformer(folder / "tiny")
    return trained(folder, model="hf:tiny", seeds=2)


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> ScoredStudy:
    folder = tmp_path_factory.mktemp("frozen")
    tiny_transformer(folder / "tiny")
    return trained(folder, model="simple-ffn", encoder='encoder = "hf:tiny"', seeds=2)


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> ScoredStudy:
    return score_study(finished(tmp_path_factory.mktemp("features")), resamples=10)


def by_onnx(folder: Path, **fed: Any) -> Any:
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    session = ort.InferenceSession(folder / "model.onnx")
    assert {given.name for given in session.get_inputs()} == set(fed)
    return session.run(["probabilities"], fed)[0]


def tokens(folder: Path, texts: list[str]) -> dict[str, Any]:
    from transformers import AutoTokenizer

    made = AutoTokenizer.from_pretrained(folder)(
        texts, padding=True, truncation=True, max_length=64, return_tensors="np"
    )
    return {name: value.astype(np.int64) for name, value in made.items()}


def test_onnx_says_of_texts_what_a_fine_tuned_bundle_says(fine_tuned: ScoredStudy, tmp_path: Path) -> None:
    folder, _ = export_bundle(fine_tuned, tmp_path / "model", single=True, onnx=True)
    model = load_model(folder)
    for texts in (NEW, NEW[1:2]):
        said = by_onnx(folder, **tokens(folder, texts))
        np.testing.assert_allclose(said, model.predict_proba(texts, device="cpu"), atol=1e-4)


def test_onnx_holds_a_frozen_encoder_and_normalisation(frozen: ScoredStudy, tmp_path: Path) -> None:
    folder, _ = export_bundle(frozen, tmp_path / "model", onnx=True)
    model = load_model(folder)
    assert model.recipe.normalisation != (0.0, 1.0)
    fed = tokens(folder / "encoder", NEW)
    said = by_onnx(folder, input_ids=fed["input_ids"], attention_mask=fed["attention_mask"])
    np.testing.assert_allclose(said, model.predict_proba(NEW, device="cpu"), atol=1e-4)
    assert np.ptp(said, axis=0).max() > 1e-3, "the texts are told apart"


def test_a_graph_that_says_something_else_is_not_written(
    features: ScoredStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dissensus_train.bundles.ways_out._Whole.forward", lambda _, *given: given[0].softmax(dim=1))
    with pytest.raises(InputError, match=r"the graph's answers are .* from the model's; export it without the graph"):
        export_bundle(features, tmp_path / "model", onnx=True)
    assert not (tmp_path / "model").exists()


def test_a_frozen_encoder_comes_along_and_is_loaded_once(
    frozen: ScoredStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoModel

    export_bundle(frozen, tmp_path / "model")
    (tmp_path / "model").rename(tmp_path / "elsewhere")
    data = frozen.opened.data
    assert data.items is not None
    loads: list[Any] = []
    from_pretrained = AutoModel.from_pretrained

    def counted(folder: Any, **options: Any) -> Any:
        loads.append(folder)
        return from_pretrained(folder, **options)

    monkeypatch.setattr(AutoModel, "from_pretrained", counted)
    model = load_model(tmp_path / "elsewhere")
    test = data.splits["test"]
    for _ in range(3):
        said = model.predict_proba(data.items.texts[0][test].tolist(), device="cpu")
    np.testing.assert_allclose(said, frozen.systems["soft"].mean("test"), atol=1e-5)
    assert len(loads) == 1
    assert model.recipe.versions["transformers"]


@pytest.mark.parametrize("single", [True, False])
def test_a_fine_tuned_bundle_is_a_folder_of_hugging_face(fine_tuned: ScoredStudy, tmp_path: Path, single: bool) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder, _ = export_bundle(fine_tuned, tmp_path / "model", single=single)
    model = load_model(folder)
    said = []
    for seed in model.recipe.members:
        home = folder if single else folder / f"seed-{seed}"
        theirs = AutoModelForSequenceClassification.from_pretrained(home).eval()
        tokeniser = AutoTokenizer.from_pretrained(home)
        assert theirs.config.id2label == dict(enumerate(model.classes))
        with torch.no_grad():
            given = tokeniser(NEW, padding=True, truncation=True, return_tensors="pt")
            logits = theirs(**given).logits
        ours: Any = model.networks[model.recipe.members.index(seed)]
        texts = Items(names=np.arange(4), texts=(np.array(NEW, dtype=np.dtypes.StringDType()),))
        with torch.no_grad():
            np.testing.assert_allclose(logits, ours(ours.prepare(texts)[torch.arange(4)]), atol=1e-5)
        said.append(logits.softmax(dim=1).numpy())
    np.testing.assert_allclose(np.mean(said, axis=0), model.predict_proba(NEW, device="cpu"), atol=1e-5)


@pytest.mark.parametrize(
    ("network", "encoder", "seeds"),
    [
        ("linear", "tfidf", 1),
        ("linear", "tfidf", 2),
        ("linear", "char-ngrams", 2),
        ("linear", "hf:tiny", 1),
        ("logistic", "tfidf", 1),
    ],
)
def test_a_linear_bundle_is_a_pipeline_of_scikit_learn(tmp_path: Path, network: str, encoder: str, seeds: int) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    if encoder == "hf:tiny":
        tiny_transformer(tmp_path / "tiny")
    scored = trained(tmp_path, model=network, encoder=f'encoder = "{encoder}"', seeds=seeds)
    model = load_model(export_bundle(scored, tmp_path / "model")[0])
    assert len(model.networks) == seeds
    pipeline = model.to_sklearn()
    np.testing.assert_allclose(pipeline.predict_proba(NEW), model.predict_proba(NEW), atol=1e-6)
    assert pipeline.predict(NEW).tolist() == [
        model.classes[place] for place in model.predict_proba(NEW).argmax(axis=1).tolist()
    ]


def test_features_of_three_classes_too_and_other_networks_are_no_regression(
    features: ScoredStudy, tmp_path: Path
) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    model = load_model(export_bundle(features, tmp_path / "model")[0])
    data = features.opened.data
    new = data.features[data.splits["test"]]
    assert len(model.classes) == 3
    np.testing.assert_allclose(model.to_sklearn().predict_proba(new), model.predict_proba(new), atol=1e-6)
    other = replace(model, networks=(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 3)),))
    with pytest.raises(InputError, match="is not linear"):
        other.to_sklearn()


def test_texts_that_are_none_are_refused_by_item_and_unknown_words_are_told(tmp_path: Path) -> None:
    model = load_model(
        export_bundle(trained(tmp_path, model="linear", encoder='encoder = "tfidf"'), tmp_path / "model")[0]
    )
    for nothing in (None, float("nan"), np.nan, 3):
        with pytest.raises(InputError, match=f"item 1 is {nothing!r}, not a text"):
            model.predict_proba(["good", nothing])
    with pytest.raises(InputError, match="item 2 has an empty text, and 1 more; remove it, or fill it"):
        model.predict_proba(["good", "bad", "  \n", ""])
    with pytest.warns(UserWarning, match="2 of 3 texts hold no word that the model knows, item 1 first"):
        said = model.predict_proba(["good", "zebra", "!!"])
    np.testing.assert_allclose(said[1], said[2])
    assert model.predict_proba([]).shape == (0, 2)
    assert json.loads((tmp_path / "model" / "bundle.json").read_text())["format"] == 3
