"""Bundles that read texts: through an encoder that learnt its vocabulary, and as a whole fine-tuned network."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from dissensus.errors import InputError
from dissensus_train.bundles import export_bundle, load_model
from dissensus_train.cli.predict import predict
from dissensus_train.studies import ScoredStudy, plan_study, read_study, run_plan, score_study
from tests.training.texts import texts, tiny_transformer

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """\
[dataset]
votes = "votes.csv"
texts = "texts.csv"
{encoder}

[grid]
deliveries = ["soft"]
models = ["{model}"]
seeds = {seeds}

[training]
epochs = 2
learning_rate = 0.01
batch_size = 8
"""


def trained(folder: Path, *, model: str, encoder: str = "", seeds: int = 1) -> ScoredStudy:
    data = texts()
    assert data.items is not None
    assert data.votes is not None
    assert data.votes.annotators is not None
    rows = zip(data.votes.item, data.votes.annotators.code, data.votes.label, strict=True)
    (folder / "votes.csv").write_text("item,annotator,label\n" + "".join(f"i{i},a{a},{k}\n" for i, a, k in rows))
    written = "".join(f"i{number},{text}\n" for number, text in enumerate(data.items.texts[0]))
    (folder / "texts.csv").write_text("item,text\n" + written)
    (folder / "study.toml").write_text(STUDY.format(encoder=encoder, model=model, seeds=seeds))
    plan = plan_study(read_study(folder / "study.toml"), folder / "store", engine="loop", device="cpu")
    list(run_plan(plan))
    plan.writer.close()
    return score_study(plan.opened, resamples=10)


@pytest.mark.parametrize(
    ("model", "encoder"), [("linear", 'encoder = "tfidf"'), ("linear", 'encoder = "char-ngrams"'), ("hf:tiny", "")]
)
def test_a_bundle_predicts_for_texts_what_was_stored_without_the_study(
    tmp_path: Path, model: str, encoder: str
) -> None:
    study, elsewhere = tmp_path / "study", tmp_path / "elsewhere"
    study.mkdir()
    elsewhere.mkdir()
    if model == "hf:tiny":
        tiny_transformer(study / "tiny")
    scored = trained(study, model=model, encoder=encoder)
    export_bundle(scored, elsewhere / "model")
    data = scored.opened.data
    assert data.items is not None
    test = data.splits["test"]
    new = data.items.texts[0][test].tolist()
    stored = scored.systems["soft"].predictions["test"][0]
    pl.DataFrame({"id": data.human.items[test].tolist(), "text": new}).write_csv(elsewhere / "new.csv")
    # The votes, the training texts, the store and the pretrained folder are all gone.
    shutil.rmtree(study)
    loaded = load_model(elsewhere / "model")
    np.testing.assert_allclose(loaded.predict_proba(new, device="cpu"), stored, atol=1e-5)
    predict(bundle=elsewhere / "model", items=elsewhere / "new.csv", output=elsewhere / "said.csv", device="cpu")
    said = pl.read_csv(elsewhere / "said.csv")
    assert said["item"].to_list() == pl.read_csv(elsewhere / "new.csv")["id"].to_list()
    np.testing.assert_allclose(said.drop("item", "trained_on").to_numpy(), stored, atol=1e-5)


def test_a_network_of_ones_own_that_reads_texts_gets_texts(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self, classes):\n"
        "        super().__init__()\n"
        "        self.head = torch.nn.Linear(2, classes)\n"
        "    def prepare(self, items):\n"
        "        texts = items.texts[0].tolist()\n"
        "        return torch.tensor([[len(text) / 100, float('good' in text)] for text in texts])\n"
        "    def forward(self, x):\n"
        "        return self.head(x)\n"
        "def net(shape, classes):\n"
        "    return Net(classes)\n"
    )
    scored = trained(tmp_path, model="nets.py:net", encoder='encoder = "tfidf"')
    export_bundle(scored, tmp_path / "model")
    data = scored.opened.data
    assert data.items is not None
    model = load_model(tmp_path / "model", trust_code=True)
    assert model.recipe.reads == "texts"
    new = data.items.texts[0][data.splits["test"]].tolist()
    stored = scored.systems["soft"].predictions["test"][0]
    np.testing.assert_allclose(model.predict_proba(new, device="cpu"), stored, atol=1e-5)


def test_what_is_no_list_of_texts_is_refused(tmp_path: Path) -> None:
    scored = trained(tmp_path, model="linear", encoder='encoder = "tfidf"')
    export_bundle(scored, tmp_path / "model")
    model = load_model(tmp_path / "model")
    with pytest.raises(InputError, match="give a list of texts, not one text"):
        model.predict_proba("one text")
    for frame in ({"text": ["a", "b", "c"]}, pl.DataFrame({"text": ["a", "b"]}), {"a", "b"}, None):
        with pytest.raises(InputError, match="of a frame or a dictionary, its column of texts"):
            model.predict_proba(frame)
    with pytest.raises(InputError, match="half of a character"):
        model.predict_proba(["\ud800"])
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="none of the columns a, b"):
        predict(bundle=tmp_path / "model", items=tmp_path / "other.csv", output=tmp_path / "said.csv")
