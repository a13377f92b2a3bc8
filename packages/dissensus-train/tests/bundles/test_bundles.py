"""A model that left its study: it predicts the same, somewhere else, and says where it is from."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
import torch

from dissensus.array_file import read_npz
from dissensus.errors import InputError
from dissensus.evaluation.metrics import soft_nll
from dissensus.evaluation.predictions import read_predictions
from dissensus.pages import as_markdown
from dissensus.together.deferral import defer
from dissensus.together.sets import prediction_sets
from dissensus.version import __version__
from dissensus_train.bundles import export_bundle, load_model
from dissensus_train.bundles.beside import beside_people, combination_of
from dissensus_train.bundles.loading import BESIDE
from dissensus_train.bundles.parts import write_sums
from dissensus_train.bundles.writing import chosen_system
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


def test_all_runs_of_a_system_predict_the_mean_of_their_seeds(scored: ScoredStudy, tmp_path: Path) -> None:
    _, chosen = export_bundle(scored, tmp_path / "model")
    model = load_model(tmp_path / "model")
    assert chosen.startswith(f"all 2 runs of {model.recipe.name['system']} together, ")
    assert model.recipe.members == (0, 1)
    said = stored(scored, model.recipe.name["system"]).mean(axis=0)
    np.testing.assert_allclose(model.predict_proba(features(scored)), said, atol=1e-5)


def losses(scored: ScoredStudy) -> dict[str, Any]:
    """By system, (seeds,) the mean soft NLL on the validation split, which is not what scores are told of."""
    data = scored.opened.data
    human = data.human.take(data.splits["validation"]).probabilities
    return {
        name: np.array([soft_nll(human, q.astype(np.float64)).mean() for q in system.predictions["validation"]])
        for name, system in scored.systems.items()
    }


def saying(scored: ScoredStudy, **people: Any) -> ScoredStudy:
    """The study, as if its systems said for validation items so much of what people said, and else nothing."""
    data = scored.opened.data
    human = data.human.take(data.splits["validation"]).probabilities
    systems = {}
    for name, share in people.items():
        weight = np.resize(np.asarray(share, dtype=np.float64), len(human))[:, None]
        said = np.stack([weight * human + (1 - weight) / human.shape[1]] * 2)
        one = scored.systems[name]
        systems[name] = replace(one, predictions={**one.predictions, "validation": said})
    return replace(scored, systems=systems)


def test_the_soft_trained_system_is_exported_unless_another_is_significantly_closer(scored: ScoredStudy) -> None:
    alike = saying(scored, majority=0.8, soft=[0.6, 0.9])
    assert losses(alike)["majority"].mean() < losses(alike)["soft"].mean()
    system, why = chosen_system(alike)
    assert system.name == "soft"
    assert "trained on label distributions and does not differ significantly on the split 'validation'" in why
    further = saying(scored, majority=0.8, soft=0.6)
    system, why = chosen_system(further)
    assert system.name == "majority"
    assert f"is lowest ({losses(further)['majority'].mean():.3f})" in why


def test_the_card_says_how_it_was_chosen_and_what_it_is_made_with(scored: ScoredStudy, tmp_path: Path) -> None:
    _, chosen = export_bundle(scored, tmp_path / "model", licence="CC-BY-4.0")
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert as_markdown(f"Chosen as {chosen}.") in card
    assert 'license: "CC-BY-4.0"' in card.partition("\n---\n")[0]
    recipe = load_model(tmp_path / "model").recipe
    assert recipe.licence == {"model": "CC-BY-4.0", "data": ""}
    assert recipe.versions["torch"] == torch.__version__
    assert recipe.versions["dissensus"] == __version__


def test_of_the_runs_the_closest_on_the_selection_split_is_taken_where_one_is_asked_for(
    scored: ScoredStudy, tmp_path: Path
) -> None:
    export_bundle(scored, tmp_path / "model", single=True)
    recipe = load_model(tmp_path / "model").recipe
    assert recipe.members == (int(losses(scored)[recipe.name["system"]].argmin()),)


def test_without_a_split_to_choose_on_the_soft_trained_one_is_exported(scored: ScoredStudy) -> None:
    splits = {name: rows for name, rows in scored.opened.data.splits.items() if name != "validation"}
    opened = replace(scored.opened, data=replace(scored.opened.data, splits=splits))
    assert chosen_system(replace(scored, opened=opened))[0].name == "soft"


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


@pytest.fixture(scope="module")
def bundle(scored: ScoredStudy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_bundle(scored, tmp_path_factory.mktemp("bundle") / "model")[0]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": 99}, "format 99, and this dissensus reads format 3"),
        ({"shape": [5]}, "the weights do not fit linear"),
        ({"classes": ["a", "b"]}, "the weights do not fit linear"),
        ({"more": 1}, "'more' is missing or unknown"),
    ],
)
def test_a_recipe_that_is_not_ours_is_refused_in_a_sentence(
    bundle: Path, tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    shutil.copytree(bundle, tmp_path / "model")
    path = tmp_path / "model" / "bundle.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    write_sums(tmp_path / "model")
    with pytest.raises(InputError, match=sentence):
        load_model(tmp_path / "model")


def test_what_is_no_bundle_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this is no bundle \\(there is no such folder\\)"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"this is no bundle \(it holds no bundle.json\)"):
        load_model(tmp_path)


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
    predict(bundle=tmp_path / "model", items=tmp_path / "new.npz", output=tmp_path / "said.parquet", device="cpu")
    table = pl.read_parquet(tmp_path / "said.parquet")
    assert table.columns == ["item", *scored.human.classes, "trained_on"]
    assert table["item"].to_list() == names.tolist()
    np.testing.assert_allclose(table.drop("item", "trained_on").to_numpy(), stored(scored, "soft")[0], atol=1e-5)


def test_sets_come_with_the_bundle_and_were_calibrated_on_votes_that_did_not_train_it(
    scored: ScoredStudy, bundle: Path, tmp_path: Path
) -> None:
    model, data = load_model(bundle), scored.opened.data
    own = data.human.take(data.splits["validation"])
    system = scored.systems[model.recipe.name["system"]]
    expected = prediction_sets(own, system.mean("validation"), level=0.6, classes=own.classes, resamples=0)
    said = model.predict_proba(features(scored))
    np.testing.assert_array_equal(model.prediction_sets(said, level=0.6), expected.of(said))
    # Of a level between two the higher, which promises more.
    np.testing.assert_array_equal(model.prediction_sets(said, level=0.595), expected.of(said))
    assert model.prediction_sets(said, level=0.999).all()
    together = model.recipe.together
    assert together is not None
    assert (together["split"], together["items"]) == ("validation", len(own))
    held = (scored.human.probabilities * model.prediction_sets(said, level=0.9)).sum(axis=1).mean()
    assert together["sets"]["shown"]["coverage"]["value"] == pytest.approx(held)
    assert f"hold {held:.1%} of people's answers to the items of the split 'test'" in (bundle / "README.md").read_text()
    np.savez(tmp_path / "new.npz", items=np.array(scored.human.items.tolist()), features=features(scored))
    predict(bundle=bundle, items=tmp_path / "new.npz", output=tmp_path / "said.csv", sets=0.6, device="cpu")
    assert pl.read_csv(tmp_path / "said.csv")["set_size"].to_list() == expected.of(said).sum(axis=1).tolist()
    evaluated = read_predictions(tmp_path / "said.csv", scored.human.classes)
    np.testing.assert_allclose(evaluated.probabilities[0], said, atol=1e-9)
    with pytest.raises(InputError, match=r"sets=1.5 is no level of the bundle; give one up to 0.999"):
        model.prediction_sets(said, level=1.5)


def test_items_for_people_are_marked_by_a_threshold_that_did_not_see_the_training_votes(
    scored: ScoredStudy, bundle: Path, tmp_path: Path
) -> None:
    """The split that epochs are chosen on has too few items here; without it, the held-out ones teach."""
    with pytest.raises(InputError, match="the bundle has no defer"):
        load_model(bundle).beside_people("defer")
    splits = {name: members for name, members in scored.opened.data.splits.items() if name != "validation"}
    opened = replace(scored.opened, data=replace(scored.opened.data, splits=splits))
    bundle, _ = export_bundle(replace(scored, opened=opened), tmp_path / "model")
    model = load_model(bundle)
    own = scored.human
    expected = defer(own, scored.systems[model.recipe.name["system"]].mean("test"), classes=own.classes, share=0.3)
    said = model.predict_proba(features(scored))
    gain, votes = model.votes_to_ask(said, share=0.295)
    arrays = read_npz(bundle / BESIDE)
    assert combination_of(arrays).clarity == arrays["clarity"] != 1
    # Bundles of before there was a clarity hear predictions as they are.
    assert combination_of({name: array for name, array in arrays.items() if name != "clarity"}).clarity == 1
    np.testing.assert_allclose(gain, expected.gain, rtol=1e-3)
    assert votes.sum() == pytest.approx(expected.votes.sum(), abs=1)
    shown = model.beside_people("defer")["shown"]
    assert shown["sent"] == (model.votes_to_ask(said, share=0.1)[1] > 0).mean()
    card = (bundle / "README.md").read_text()
    assert f"a share of 10% there, and {shown['sent']:.0%} of the split 'test'" in card
    np.savez(tmp_path / "new.npz", items=np.array(scored.human.items.tolist()), features=features(scored))
    predict(bundle=bundle, items=tmp_path / "new.npz", output=tmp_path / "said.csv", defer=0.3, device="cpu")
    assert pl.read_csv(tmp_path / "said.csv")["votes_wanted"].to_list() == votes.tolist()
    assert read_predictions(tmp_path / "said.csv", scored.human.classes).classes == scored.human.classes
    with pytest.raises(InputError, match=r"defer=3 is no share of the items"):
        model.votes_to_ask(said, share=3)
    with pytest.raises(InputError, match="defer= is about a random person"):
        predict(bundle=bundle, items=tmp_path / "new.npz", defer=0.3, annotator="ann")


def test_a_bundle_of_an_older_dissensus_predicts_and_says_that_it_has_no_sets(bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(bundle, tmp_path / "model")
    path = tmp_path / "model" / "bundle.json"
    older = {**json.loads(path.read_text()), "format": 2}
    del older["together"]
    path.write_text(json.dumps(older))
    write_sums(tmp_path / "model")
    model = load_model(tmp_path / "model")
    assert model.predict_proba(np.zeros((1, 3))).shape == (1, len(model.classes))
    with pytest.raises(
        InputError, match="the bundle has no sets: it is of an older dissensus, or its study held out no items"
    ):
        predict(bundle=tmp_path / "model", items=tmp_path / "new.npz", sets=0.9)


def test_without_a_split_to_choose_on_sets_are_calibrated_on_the_held_out_one_and_the_card_says_so(
    scored: ScoredStudy,
) -> None:
    splits = {name: members for name, members in scored.opened.data.splits.items() if name != "validation"}
    opened = replace(scored.opened, data=replace(scored.opened.data, splits=splits))
    system = scored.systems["soft"]
    together, _ = beside_people(replace(scored, opened=opened), system, [0, 1])
    assert together is not None
    assert (together["split"], together["sets"]["shown"]["split"]) == ("test", "test")
    crossed = prediction_sets(scored.human, system.mean("test"), classes=scored.human.classes)
    assert together["sets"]["shown"]["coverage"] == crossed.score().coverage.to_dict()
    only = replace(opened, data=replace(opened.data, splits={"train": splits["train"]}))
    assert beside_people(replace(scored, opened=only, split="train"), system, [0, 1]) == (None, None)
