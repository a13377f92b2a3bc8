"""A model that left its study: it predicts the same, somewhere else, and says where it is from."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
import torch

from dissensus.errors import InputError
from dissensus.evaluation.metrics import soft_nll
from dissensus_train.bundles import export_bundle, load_model
from dissensus_train.cli.predict import predict
from dissensus_train.studies import ScoredStudy, plan_study, read_study, run_plan, score_study
from tests.study_report.studies import STUDY, finished, make_study

if TYPE_CHECKING:
    from pathlib import Path

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> ScoredStudy:
    return score_study(finished(tmp_path_factory.mktemp("study")), resamples=20)


def features(scored: ScoredStudy) -> Any:
    data = scored.opened.data
    return data.features[data.splits["test"]]


def stored(scored: ScoredStudy, name: str) -> Any:
    return scored.systems[name].predictions["test"]


def test_a_run_predicts_what_was_stored_in_a_process_that_has_never_seen_the_study(
    scored: ScoredStudy, tmp_path: Path
) -> None:
    key = scored.systems["soft"].runs[1].key
    export_bundle(scored, tmp_path / "model", run=key[:10])
    np.save(tmp_path / "new.npy", features(scored))
    script = (
        "import sys, numpy as np, dissensus as dis\n"
        "model = dis.load_model('model')\n"
        "np.save('said.npy', model.predict_proba(np.load('new.npy'), device='cpu'))\n"
        "print(*model.classes, sep='|')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "|".join(scored.human.classes)
    np.testing.assert_allclose(np.load(tmp_path / "said.npy"), stored(scored, "soft")[1], atol=1e-5)


def test_an_ensemble_predicts_the_mean_of_its_seeds(scored: ScoredStudy, tmp_path: Path) -> None:
    _, chosen = export_bundle(scored, tmp_path / "model", ensemble=True)
    name = chosen.removeprefix("all seeds of ").partition(",")[0]
    model = load_model(tmp_path / "model")
    assert model.recipe.members == (0, 1)
    np.testing.assert_allclose(model.predict_proba(features(scored)), stored(scored, name).mean(axis=0), atol=1e-5)


def test_the_best_run_is_chosen_on_the_selection_split_and_not_on_what_it_is_scored_on(
    scored: ScoredStudy, tmp_path: Path
) -> None:
    data = scored.opened.data
    human = data.human.take(data.splits["validation"]).probabilities
    losses = {
        (system.name, run.seed): soft_nll(human, predicted.astype(np.float64)).mean()
        for system in scored.systems.values()
        for run, predicted in zip(system.runs, system.predictions["validation"], strict=True)
    }
    name, seed = min(losses, key=losses.__getitem__)
    _, chosen = export_bundle(scored, tmp_path / "model")
    assert chosen.startswith(f"{name}, seed {seed}, whose soft NLL on the split 'validation' is lowest")
    assert load_model(tmp_path / "model").recipe.members == (seed,)


def test_the_scores_are_those_of_this_very_model(scored: ScoredStudy, tmp_path: Path) -> None:
    export_bundle(scored, tmp_path / "model", run=scored.systems["soft"].runs[0].key)
    recipe = load_model(tmp_path / "model").recipe
    expected = soft_nll(scored.human.probabilities, stored(scored, "soft")[0].astype(np.float64)).mean()
    assert recipe.scores["metrics"]["soft_nll"]["value"] == pytest.approx(expected)
    assert recipe.scores["worth_in_people"]["words"]
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "5 annotators judged the whole set" in card
    assert f"{expected:.3f}" in card
    assert "<b>cat" not in card, "names of strangers' making are no markup"


def test_a_bundle_is_whole_or_not_there_and_nothing_is_overwritten(scored: ScoredStudy, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.txt").write_text("mine")
    with pytest.raises(InputError):
        export_bundle(scored, tmp_path / "model")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda folder: (folder / "bundle.json").unlink(), "this is no bundle"),
        (lambda folder: (folder / "bundle.json").write_text("{"), "the recipe cannot be read"),
        (lambda folder: _change(folder, format=99), "format 99, and this dissensus reads format 1"),
        (lambda folder: _change(folder, shape=[5]), "the weights do not fit linear"),
        (lambda folder: _change(folder, classes=["a", "b"]), "the weights do not fit linear"),
        (lambda folder: _change(folder, more=1), "'more' is missing or unknown"),
        (lambda folder: next(folder.glob("*.safetensors")).write_bytes(b"cut"), "the weights cannot be read"),
        (lambda folder: next(folder.glob("*.safetensors")).unlink(), "the weights cannot be read"),
    ],
)
def test_a_bundle_that_cannot_be_used_is_refused_in_a_sentence(
    scored: ScoredStudy, tmp_path: Path, spoil: Any, sentence: str
) -> None:
    export_bundle(scored, tmp_path / "model")
    spoil(tmp_path / "model")
    with pytest.raises(InputError, match=sentence):
        load_model(tmp_path / "model")


def _change(folder: Path, **change: Any) -> None:
    path = folder / "bundle.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))


def test_items_of_another_shape_are_refused(scored: ScoredStudy, tmp_path: Path) -> None:
    export_bundle(scored, tmp_path / "model")
    model = load_model(tmp_path / "model")
    with pytest.raises(InputError, match=r"items of shape \(7,\), and the model was trained on items of shape \(3,\)"):
        model.predict_proba(np.zeros((4, 7)))
    with pytest.raises(InputError, match="NaN"):
        model.predict_proba(np.full((1, 3), np.nan))


def test_a_network_of_ones_own_is_run_only_where_it_is_trusted(tmp_path: Path) -> None:
    path = make_study(tmp_path)
    (tmp_path / "blocks.py").write_text(
        "from torch import nn\ndef head(width, classes):\n    return nn.Linear(width, classes)\n"
    )
    (tmp_path / "nets.py").write_text(
        "from blocks import head\ndef net(shape, classes):\n    return head(shape[0], classes)\n"
    )
    path.write_text(STUDY.replace('models = ["linear"]', 'models = ["nets.py:net"]'), encoding="utf-8")
    plan = plan_study(read_study(path), tmp_path / "store", engine="loop", device="cpu")
    list(run_plan(plan))
    own = score_study(plan.opened, resamples=10)
    export_bundle(own, tmp_path / "elsewhere" / "model", run=own.systems["soft"].runs[0].key)
    for name in ("blocks.py", "nets.py"):
        (tmp_path / name).write_text("raise RuntimeError('the bundle has its own')\n")
    with pytest.raises(InputError, match="say that you trust it"):
        load_model(tmp_path / "elsewhere" / "model")
    model = load_model(tmp_path / "elsewhere" / "model", trust_code=True)
    np.testing.assert_allclose(model.predict_proba(features(own)), stored(own, "soft")[0], atol=1e-5)


def test_predictions_from_the_command_line_can_be_evaluated_as_they_are(scored: ScoredStudy, tmp_path: Path) -> None:
    export_bundle(scored, tmp_path / "model", run=scored.systems["soft"].runs[0].key)
    names = scored.human.items
    np.savez(tmp_path / "new.npz", items=np.array(names.tolist()), features=features(scored))
    predict(tmp_path / "model", tmp_path / "new.npz", output=tmp_path / "said.parquet", device="cpu")
    table = pl.read_parquet(tmp_path / "said.parquet")
    assert table.columns == ["item", *scored.human.classes, "trained_on"]
    assert table["item"].to_list() == names.tolist()
    np.testing.assert_allclose(table.drop("item", "trained_on").to_numpy(), stored(scored, "soft")[0], atol=1e-5)
