"""Studies with models that know people: named in the file, compared with the item-only model, told vote by vote."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus.report import write_report
from dissensus.votes.privacy import pseudonyms_of
from dissensus_train.bundles import export_bundle, load_model
from dissensus_train.studies import open_study, plan_study, read_study, run_plan, score_study, study_toml
from dissensus_train.training.restoring import pair_probabilities
from tests.training.test_annotator_side import biased, judged

if TYPE_CHECKING:
    from dissensus_train.studies import ScoredStudy

PAGE = Path(__file__).parents[4] / "docs" / "people.md"

FILE = """\
name = "people"

[dataset]
votes = "votes.csv"
features = "features.npz"
normalise = false

[grid]
targets = ["frequency", "majority"]
deliveries = ["soft", "sls"]
models = [
  "simple-ffn",
  { name = "simple-ffn", people = "annotator-bias" },
  { name = "simple-ffn", people = "group", by = "country", population = { country = { north = 0.8, south = 0.2 } } },
]
seeds = 2

[training]
epochs = 6
patience = 3
"""


def written(folder: Path, text: str = FILE) -> Path:
    data = judged(biased(people=15, classes=2, sd=1.5), items=400)
    votes = data.votes
    assert votes is not None
    votes.to_polars().write_csv(folder / "votes.csv")
    np.savez(folder / "features.npz", items=votes.items, features=data.features)
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return folder / "study.toml"


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> ScoredStudy:
    folder = tmp_path_factory.mktemp("people")
    study = read_study(written(folder))
    plan = plan_study(study, folder / "runs", engine="loop", device="cpu")
    assert len(list(run_plan(plan))) == study.size
    return score_study(open_study(study, folder / "runs"), resamples=20)


def test_people_are_crossed_with_seeds_and_with_nothing_else(scored: ScoredStudy) -> None:
    assert scored.opened.study.size == (2 * 2 + 2) * 2 == len(scored.opened.runs)
    assert list(scored.systems)[-2:] == ["annotator-bias", "annotator-bias (by country, population by country)"]
    assert len({run.key for run in scored.opened.runs}) == 12


def test_its_report_explains_the_deliveries_that_have_a_name(scored: ScoredStudy, tmp_path: Path) -> None:
    """Models that know people are trained on single votes, which is no delivery that could be chosen."""
    page = write_report(scored, tmp_path / "page.html").read_text(encoding="utf-8")
    explained = re.findall(r"<dt[^>]*>([\w-]+) \(delivery\)", page)
    assert sorted(explained) == ["sls", "soft"]
    assert "annotator-bias (by country, population by country)" in page


def test_a_study_with_people_is_written_as_it_was_read(tmp_path: Path) -> None:
    study = read_study(written(tmp_path))
    (tmp_path / "again.toml").write_text(study_toml(study), encoding="utf-8")
    again = read_study(tmp_path / "again.toml")
    assert (again.models, again.annotator_models, again.size) == (study.models, study.annotator_models, study.size)


def test_single_votes_are_scored_for_every_system(scored: ScoredStudy) -> None:
    data = scored.opened.data
    votes = data.votes
    assert votes is not None
    assert votes.annotators is not None
    inside = np.flatnonzero(np.isin(votes.item, data.splits["test"]))
    assert set(scored.by_vote) == set(scored.systems)
    for name, system in scored.systems.items():
        expected = []
        for run in system.runs:
            result = scored.opened.store.load(run.key)
            said = pair_probabilities(result, data, votes.item[inside], votes.annotators.code[inside])
            expected.append(-np.log(said[np.arange(len(inside)), votes.label[inside]]).mean())
        assert np.isclose(float(scored.by_vote[name].nll), np.mean(expected), atol=1e-5)


def test_knowing_people_is_compared_with_the_best_item_only_system(scored: ScoredStudy) -> None:
    plain = {name: float(scored.by_vote[name].nll) for name in list(scored.systems)[:4]}
    best = min(plain, key=plain.__getitem__)
    aware = scored.by_vote["annotator-bias"]
    assert aware.against == best
    assert aware.nll_difference is not None
    assert aware.nll_difference.high is not None
    assert np.isclose(float(aware.nll_difference), float(aware.nll) - plain[best])
    assert aware.nll_difference.high < 0, "people of this panel differ much"
    assert all(scored.by_vote[name].against is None for name in plain)
    assert aware.to_dict()["against"] == best


def test_the_panel_of_people_is_scored_like_any_run(scored: ScoredStudy) -> None:
    assert scored.evaluation.overall.get("annotator-bias", "soft_nll").value is not None


def test_a_bundle_answers_for_a_person_and_for_the_panel(scored: ScoredStudy, tmp_path: Path) -> None:
    data, run = scored.opened.data, scored.systems["annotator-bias"].runs[1]
    folder, _ = export_bundle(scored, tmp_path / "model", run=run.key)
    model = load_model(folder)
    items, result = data.splits["test"], scored.opened.store.load(run.key)
    features: Any = data.features[items]
    assert np.allclose(model.predict_proba(features, device="cpu"), result.predictions["test"], atol=1e-5)
    assert data.votes is not None
    assert data.votes.annotators is not None
    who = int(np.flatnonzero(data.votes.annotators.names == "person 003")[0])
    own = pair_probabilities(result, data, items, np.full(len(items), who))
    said = model.predict_proba(features, annotator="person 003", device="cpu")
    assert np.allclose(said, own, atol=1e-5)
    assert not np.allclose(own, result.predictions["test"], atol=1e-2)
    with pytest.raises(InputError, match="'nobody' is none of them"):
        model.predict_proba(features, annotator="nobody", device="cpu")
    hidden, _ = export_bundle(scored, tmp_path / "hidden", run=run.key, pseudonyms="secret")
    written = b"".join(path.read_bytes() for path in hidden.rglob("*") if path.is_file())
    assert b"person 0" not in written
    (pseudonym,) = pseudonyms_of(["person 003"], "secret")
    same = load_model(hidden).predict_proba(features, annotator=pseudonym, device="cpu")
    np.testing.assert_array_equal(same, said)
    plain, _ = export_bundle(scored, tmp_path / "plain", run=scored.opened.runs[0].key)
    with pytest.raises(InputError, match="knows nobody"):
        load_model(plain).predict_proba(features, annotator="person 003", device="cpu")


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ('{ name = "simple-ffn", people = "annotator-bais" }', "annotator-bias"),
        ('{ name = "simple-ffn", people = "group" }', "name the attribute"),
        ('{ name = "simple-ffn", peple = "group" }', "people"),
        (
            '{ name = "simple-ffn", people = "annotator-bias", shrinkage = "much" }',
            "'shrinkage' in models is 'much'; give a number",
        ),
        ('{ name = "simple-ffn", people = "annotator-bias", shrinkage = -1 }', "0 or more"),
        ('{ name = "simple-ffn", people = "annotator-bias", population = { a = { b = 0.2 } } }', "together 1"),
        ('{ people = "annotator-bias" }', "'name' in models is missing; give a network such as simple-ffn"),
    ],
)
def test_an_entry_that_means_nothing_is_refused_with_its_remedy(tmp_path: Path, entry: str, told: str) -> None:
    path = tmp_path / "study.toml"
    path.write_text(f'[dataset]\nname = "words"\n[grid]\nmodels = [{entry}]\n', encoding="utf-8")
    with pytest.raises(InputError, match=told):
        read_study(path)


def test_the_same_entry_twice_is_refused(tmp_path: Path) -> None:
    path, entry = tmp_path / "study.toml", '{ name = "linear", people = "annotator-bias" }'
    path.write_text(f'[dataset]\nname = "words"\n[grid]\nmodels = [{entry}, {entry}]\n', encoding="utf-8")
    with pytest.raises(InputError, match="twice"):
        read_study(path)


def test_the_page_is_true(tmp_path: Path) -> None:
    """Its study is read, with a folder of weights that this machine has not."""
    models = PAGE.read_text(encoding="utf-8").partition("## Evaluation for people")[0]
    (grid,) = re.findall(r"```toml\n(.*?)```", models, re.DOTALL)
    (tmp_path / "study.toml").write_text(f'[dataset]\nname = "words"\n{grid}', encoding="utf-8")
    study = read_study(tmp_path / "study.toml")
    assert (len(study.models), len(study.annotator_models), study.size) == (1, 3, 12)
