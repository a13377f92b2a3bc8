"""Day 30: new votes, a deployed model and one that was newly trained; the verdict says what to do and why."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from dissensus.bootstrap import Estimate
from dissensus.cli import app
from dissensus.errors import InputError
from dissensus.evaluation.metrics import soft_nll
from dissensus.votes import read_votes
from dissensus_train.bundles import compare_deployed, export_bundle, load_model
from dissensus_train.bundles.comparing import DEPLOYED, NEW
from dissensus_train.bundles.loading import fingerprints
from dissensus_train.studies import run

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.bundles import DeployedComparison
    from dissensus_train.studies import ScoredStudy

torch.set_num_threads(1)

STUDY = """\
name = "{name}"
dataset = {{ votes = "votes.csv", features = "x.npz" }}
splits = {{ train = 0.5, validation = 0.2, test = 0.3 }}
grid = {{ deliveries = ["majority", "soft"], models = ["linear"], seeds = 2 }}
training = {{ epochs = 40, learning_rate = 0.05, batch_size = 32, patience = 5 }}
"""


def study(folder: Path, *, first: int = 0, items: int = 300, bias: float = 0.0, who: str = "a") -> ScoredStudy:
    """Items by number, each with features that tell what people think of it, and votes of 30 people who lean to yes."""
    folder.mkdir()
    x = np.random.default_rng(0).normal(size=(1000, 4))[first : first + items]
    rng = np.random.default_rng([first, ord(who)])
    habits = rng.normal(0, 0.3, 30)
    voter = np.argsort(rng.random((items, 30)), axis=1)[:, :6]
    chance = 1 / (1 + np.exp(-(x[:, [0]] + bias + habits[voter])))
    said = np.where(rng.random(voter.shape) < chance, "yes", "no")
    rows = [
        f"i{first + item},{who}{voter[item, vote]},{said[item, vote]}" for item in range(items) for vote in range(6)
    ]
    (folder / "votes.csv").write_text("\n".join(["item,annotator,label", *rows]))
    np.savez(folder / "x.npz", items=np.array([f"i{first + item}" for item in range(items)]), features=x)
    (folder / "study.toml").write_text(STUDY.format(name=folder.name))
    return run(folder / "study.toml", folder / "runs", engine="loop", device="cpu")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studies")


@pytest.fixture(scope="module")
def deployed(home: Path) -> Path:
    return export_bundle(study(home / "old"), home / "model")[0]


@pytest.fixture(scope="module")
def alike(home: Path) -> ScoredStudy:
    return study(home / "alike", first=300, who="g")


@pytest.fixture(scope="module")
def moved(home: Path) -> ScoredStudy:
    return study(home / "moved", first=300, bias=1.5, who="b")


def compared(deployed: Path, scored: ScoredStudy, **options: Any) -> DeployedComparison:
    return compare_deployed(load_model(deployed), scored, device="cpu", **options)


def test_where_nothing_changed_the_deployed_model_stays(deployed: Path, alike: ScoredStudy) -> None:
    found = compared(deployed, alike)
    decision, since, people = found.verdict
    assert decision.startswith("Keep the deployed model: the newly trained one is not significantly better (")
    assert since.startswith("The deployed model is as close to people as at export, as far as these votes tell: ")
    assert people.startswith("People answer as before, as far as these votes tell")
    assert found.left_out == 0


def test_where_people_changed_all_three_answers_say_so(deployed: Path, moved: ScoredStudy) -> None:
    found = compared(deployed, moved)
    decision, since, people = found.verdict
    assert decision.startswith("Deploy the newly trained model: it is significantly closer to people (")
    assert since.startswith("The deployed model is further from people than at export: ")
    assert people.startswith("People answer otherwise than before: on other items")
    assert people.endswith("the same items judged again would tell which.")
    assert found.drift is not None
    assert found.drift.shift["yes"].value > 0.1


def test_the_numbers_are_those_of_both_models_on_the_same_items(deployed: Path, alike: ScoredStudy) -> None:
    found = compared(deployed, alike)
    data = alike.opened.data
    human, x = alike.human.probabilities, data.features[data.splits["test"]]
    expected = soft_nll(human, load_model(deployed).predict_proba(x)).mean()
    scored = found.evaluation.overall.get(DEPLOYED, "soft_nll").value
    assert scored is not None
    assert scored.value == pytest.approx(expected)
    new = soft_nll(human, found.predictions[NEW]).mean()
    assert found.difference.value.value == pytest.approx(new - expected, abs=1e-6)
    assert found.at_export is not None
    assert load_model(deployed).recipe.scores["distance"]["value"] == found.at_export.value
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_interval_since_export_is_as_wide_as_both_together(deployed: Path, alike: ScoredStudy) -> None:
    found = replace(compared(deployed, alike), at_export=Estimate(0.01, 0.0, 0.04), now=Estimate(0.05, 0.01, 0.09))
    assert found.since_export is not None
    assert found.since_export.value == pytest.approx(0.04)
    assert found.since_export.high == pytest.approx(0.04 + np.hypot(0.03, 0.04))
    assert found.since_export.low == pytest.approx(0.04 - np.hypot(0.03, 0.04))


def test_what_the_deployed_model_was_trained_on_is_left_out(deployed: Path, home: Path) -> None:
    again = study(home / "again", first=150, who="c")
    found = compared(deployed, again)
    known = load_model(deployed).trained_on(again.opened.data.features[again.opened.data.splits["test"]])
    assert found.left_out == known.sum() > 0
    assert len(found.human) == (~known).sum()
    same = study(home / "same", first=0, items=120, who="d")
    inside = load_model(deployed)
    everything = replace(inside, known=np.sort(fingerprints(same.opened.data.features)))
    with pytest.raises(InputError, match="no item with new votes that neither model was trained on"):
        compare_deployed(everything, same, device="cpu")


def test_the_same_items_judged_again_tell_of_people_alone(deployed: Path, home: Path) -> None:
    before = read_votes(home / "old" / "votes.csv")
    as_before = compared(deployed, study(home / "revoted", first=0, who="e"), before=before).drift
    otherwise = compared(deployed, study(home / "otherwise", first=0, bias=1.0, who="f"), before=before).drift
    assert as_before is not None
    assert otherwise is not None
    assert as_before.same
    assert as_before.items == 300
    assert not as_before.moved
    assert otherwise.moved
    assert str(otherwise).startswith("People answer otherwise than before: on the same 300 items the share of '")
    assert "kind of items" not in str(otherwise)


def test_models_of_other_classes_are_not_compared(deployed: Path, alike: ScoredStudy) -> None:
    old = load_model(deployed)
    other = replace(old, recipe=replace(old.recipe, classes=("no", "maybe")))
    with pytest.raises(InputError, match="knows the classes no, maybe, and the study has no, yes"):
        compare_deployed(other, alike)


def test_the_command_prints_one_verdict_and_writes_the_report(
    deployed: Path, moved: ScoredStudy, home: Path, tmp_path: Path
) -> None:
    typed = [
        "study",
        "compare",
        str(deployed),
        str(home / "moved" / "study.toml"),
        "--store",
        str(home / "moved" / "runs"),
    ]
    done = CliRunner().invoke(
        app, [*typed, "--device", "cpu", "-o", str(tmp_path / "page.html"), "--json", str(tmp_path / "c.json")]
    )
    assert done.exit_code == 0, done.output
    first, *_ = done.stdout.splitlines()
    assert first.startswith("Deploy the newly trained model: ")
    assert "--before VOTES" in done.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Deploy the newly trained model" in page
    said = json.loads((tmp_path / "c.json").read_text())
    assert said["verdict"][0] == first
    assert said["drift"]["p"] < 0.05
