"""The verdict on stand-ins, what stands beside it, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dissensus.bootstrap import Estimate
from dissensus.cli import app
from dissensus.errors import InputError
from dissensus.evaluation.finite_panel.known_votes import CHOSEN
from dissensus.evaluation.stand_in import judging, named_answers, stand_in
from dissensus.evaluation.stand_in.judging import TIED
from dissensus.evaluation.stand_in.mixed_panel import Saved
from dissensus.labels.schemes import frequency
from dissensus.votes.reading import read_votes
from dissensus.votes.simulate import simulate_votes
from tests.evaluation.stand_in.test_alternative_annotator import crowd
from tests.votes.people import with_people

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.table import Votes

TEXT = np.dtypes.StringDType()


def two_models() -> tuple[Votes, dict[str, Any]]:
    """One model that says what most people say, and one that always says 1."""
    _, _, votes = crowd(0, items=120, skill=0.6)
    votes = replace(votes, ordered=False)
    most = votes.counts.argmax(axis=1)
    good = named_answers(votes, {str(i): votes.classes[most[n]] for n, i in enumerate(votes.items.tolist())})
    return votes, {"lazy": named_answers(votes, dict.fromkeys(votes.items.tolist(), "1")), "good": good}


def test_the_verdict_names_items_people_and_epsilon() -> None:
    votes, models = two_models()
    found = stand_in(votes, models, resamples=100)
    assert list(found.models) == ["good", "lazy"]
    assert found.models["good"].verdict.startswith(
        "good may stand in for one of these people: it wins against 5 of 5 annotators (winning rate 1.00, at least one"
    )
    assert "lazy may not stand in" in found.models["lazy"].verdict
    assert found.conditions[0] == "This holds for these 119 items and these 5 annotators, and for others like them."
    assert "not models" in found.conditions[-1]


def test_agreement_is_with_the_same_others() -> None:
    votes, models = two_models()
    lazy = stand_in(votes, models, resamples=100).models["lazy"]
    counts = votes.counts
    size = counts.sum(axis=1)
    some = size > 1
    # A person agrees with the others as often as two votes drawn from the item are the same.
    pairs = (counts * (counts - 1)).sum(axis=1)[some] / (size * (size - 1))[some]
    assert lazy.people.value == pytest.approx(pairs.mean())
    assert lazy.model is not None
    assert lazy.model.value == pytest.approx((counts[some, 0] / size[some]).mean())
    assert lazy.difference is not None
    assert lazy.difference.high is not None
    assert lazy.difference.high < 0


def test_the_verdict_says_that_distributions_know_the_votes() -> None:
    truth = np.random.default_rng(0).dirichlet([0.6, 0.6, 0.6], 200)
    votes = simulate_votes(truth, 5, annotators=12, seed=0)
    leaked = 0.9 * frequency(votes).probabilities + 0.1 / 3
    found = stand_in(votes, {"leaked": leaked, "honest": truth}, resamples=0).models
    told = "This test cannot tell here whether leaked may stand in for one of these people: the predictions seem to"
    assert found["leaked"].verdict.startswith(told)
    assert found["leaked"].to_dict()["knowing"]
    assert not found["honest"].knowing
    assert "But" not in found["honest"].verdict


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("contested", [0.1, 1.0])
def test_stand_in_runs_the_most_frequent_answer_beside_every_model(contested: float, ordered: bool) -> None:
    """No verdict is a yes if a constant passes. A good model may stand in if the constant fails."""
    rng = np.random.default_rng(0)
    truth = np.full((400, 3), [0.98, 0.01, 0.01])
    some = rng.random(400) < contested
    truth[some] = rng.dirichlet([0.15, 0.15, 0.15], int(some.sum()))
    votes = simulate_votes(truth, 4, annotators=4, seed=0, classes=["1", "2", "3"], ordered=ordered)
    most = votes.counts.sum(axis=0).argmax()
    models = {"constant": np.eye(3)[np.full(400, most)], "truth": truth}
    found = stand_in(votes, models, epsilon=0.1, resamples=100).models
    for name, judged in found.items():
        assert judged.constant is not None
        assert judged.constant_answer == votes.classes[most]
        assert judged.constant.winning_rate == found["constant"].test.winning_rate
        assert bool(judged.untold) == (judged.test.passed and (contested < 1 or name == "constant"))
        assert judged.verdict.startswith(f"{name} may") == (not judged.untold)
        assert judged.to_dict()["constant"]["answer"] == judged.constant_answer
    assert found["constant"].test.passed == (contested < 1)
    assert found["truth"].test.passed


def test_stand_in_withholds_its_verdict_if_worth_alone_reaches_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = np.random.default_rng(0).dirichlet([0.2, 0.2, 0.2], 200)
    votes = simulate_votes(truth, 4, annotators=4, seed=0)
    assert not stand_in(votes, truth, resamples=50).models["model"].untold
    nobody = Saved(people=0, saved=Estimate(0.1, 0.0, 0.3), fewer=False, more=False, high_open=False, most=3)
    monkeypatch.setattr(judging, "people_saved", lambda *_, **__: [nobody])
    assert "reaches zero" in stand_in(votes, truth, resamples=50).models["model"].untold


@pytest.mark.parametrize("said", ["yes", "no"])
def test_stand_in_never_takes_a_constant_for_a_person(said: str) -> None:
    """The model is a constant in every group of annotators, whichever answer is the most frequent of all."""
    rng = np.random.default_rng(0)
    rows = [(f"w{i}", f"p{a}", "yes" if rng.random() < 0.9 else "no") for i in range(200) for a in range(3)]
    rows += [(f"b{i}", f"p{a}", "no" if rng.random() < 0.9 else "yes") for i in range(45) for a in range(3, 9)]
    votes = read_votes([dict(zip(("item", "annotator", "label"), row, strict=True)) for row in rows])
    model = named_answers(votes, dict.fromkeys(votes.items.tolist(), said))
    for seed in range(3):
        judged = stand_in(votes, model, resamples=100, seed=seed).models["model"]
        assert judged.untold.startswith("it always answers") == judged.test.passed
        assert not judged.verdict.startswith("model may stand")


def test_the_conditions_say_that_items_were_chosen_by_their_votes() -> None:
    truth = np.random.default_rng(0).dirichlet([0.6, 0.6, 0.6], 1500)
    votes = simulate_votes(truth, 3, annotators=12, seed=0)
    contested = np.flatnonzero(votes.counts.max(axis=1) < 3)
    for rows, told in ((contested, 1), (np.arange(1500), 0)):
        found = stand_in(votes.take_items(rows), truth[rows], resamples=0)
        assert sum(CHOSEN in condition for condition in found.conditions) == told


def test_where_it_fails_are_the_classes_items_and_groups_it_gets_wrong() -> None:
    votes, models = two_models()
    votes = with_people(votes, attributes={"country": np.array(["x", "x", "x", "y", "y"], dtype=TEXT)})
    votes = replace(votes, item_attributes={"source": np.where(np.arange(120) % 2, "news", "talk").astype(TEXT)})
    lazy = stand_in(votes, models, resamples=20, least_people=2).models["lazy"]
    parts = {(each.of, each.name): each for each in lazy.parts}
    assert set(parts) == {
        *(("class", name) for name in (*votes.classes, TIED)),
        ("country", "x"),
        ("country", "y"),
        ("source", "news"),
        ("source", "talk"),
    }
    tied = (votes.counts == votes.counts.max(axis=1, keepdims=True)).sum(axis=1) > 1
    assert parts["class", TIED].votes == votes.counts[tied].sum(), "no class gets the items that several share"
    assert parts["class", "1"].model_as_good > 0.9 > 0.5 > parts["class", "2"].model_as_good
    countries = parts["country", "x"].votes + parts["country", "y"].votes
    assert countries == sum(parts["class", name].votes for name in (*votes.classes, TIED))
    assert all(each.answer == "1" and "1" not in each.votes for each in lazy.items)
    hidden = stand_in(votes, models, resamples=20, least_people=4).models["lazy"].parts
    assert "country" not in {each.of for each in hidden}


def test_groups_and_domains_have_a_verdict_each() -> None:
    votes, models = two_models()
    votes = with_people(votes, attributes={"country": np.array(["x", "x", "x", "y", "y"], dtype=TEXT)})
    votes = replace(votes, item_attributes={"source": np.where(np.arange(120) % 2, "news", "talk").astype(TEXT)})
    by_group = stand_in(votes, models, by="country", least_people=2, resamples=0).models["good"]
    assert set(by_group.test.by_part()) == {"x", "y"}
    by_domain = stand_in(votes, models, by="source", resamples=0).models["lazy"]
    assert set(by_domain.test.by_part()) == {"news", "talk"}
    assert "It passes in 0 of 2 parts." in by_domain.verdict
    with pytest.raises(InputError, match="cannot be compared within their group"):
        stand_in(votes, models, by="country", least_people=3)
    with pytest.raises(InputError, match="nor items have an attribute 'age'; choose country, source"):
        stand_in(votes, models, by="age")


def test_what_falls_short_of_the_authors_advice_is_said() -> None:
    _, answers, votes = crowd(1, items=25, annotators=2)
    found = stand_in(votes, {"m": named_answers(votes, answers)}, least_items=5, resamples=10)
    told = " ".join(found.conditions)
    assert "2 annotators are fewer than the 3 that are advised" in told
    assert "fewer than the 30 that are advised" in told
    assert "take Wilcoxon's test" in told
    assert "1 without an answer of the model" in told


def files(folder: Path) -> tuple[Path, Path, Path]:
    people, answers, _ = crowd(0, items=120, skill=0.6, model=0.9)
    votes = folder / "votes.csv"
    rows = [f"{item},{who},{'abc'[int(v) - 1]}" for who, said in people.items() for item, v in said.items()]
    votes.write_text("\n".join(["item,annotator,label", *rows]))
    good, lazy = folder / "good.jsonl", folder / "lazy.jsonl"
    good.write_text("\n".join(json.dumps({"item": i, "answer": "abc"[int(v) - 1]}) for i, v in answers.items()))
    lazy.write_text("\n".join(json.dumps({"item": i, "answer": "a"}) for i in answers))
    return votes, good, lazy


def test_the_command_prints_a_table_of_several_models(tmp_path: Path) -> None:
    votes, good, lazy = files(tmp_path)
    given = ["stand-in", "--votes", str(votes), "--predictions", str(good), "--compare", str(lazy)]
    done = CliRunner().invoke(app, [*given, "--resamples", "50"])
    assert done.exit_code == 0, done.output
    assert "good may stand in for one of these people" in done.stdout
    assert "lazy may not stand in" in done.stdout
    assert "Where good fails" in done.stdout
    found = tmp_path / "found.json"
    done = CliRunner().invoke(app, [*given, "--epsilon", "0.1", "--resamples", "50", "--json", str(found)])
    assert done.exit_code == 0, done.output
    held = json.loads(found.read_text())
    assert held["models"]["good"]["test"]["epsilon"] == 0.1
    assert held["models"]["good"]["test"]["passed"]
    assert len(held["models"]["lazy"]["test"]["annotators"]) == 5
    assert held["models"]["good"]["people_saved"][0]["people"] == 0
    columns = tmp_path / "models.csv"
    told = [[json.loads(line)["answer"] for line in each.read_text().splitlines()] for each in (good, lazy)]
    items = [json.loads(line)["item"] for line in good.read_text().splitlines()]
    rows = "".join(f"{i},{a.upper()},{b},why not\n" for i, a, b in zip(items, *told, strict=True))
    columns.write_text(f"item,good,lazy,reason\n{rows}", encoding="utf-8")
    wide = ["stand-in", "--votes", str(votes), "--predictions", str(columns), "--epsilon", "0.1", "--resamples", "50"]
    done = CliRunner().invoke(app, [*wide, "--json", "-"])
    assert json.loads(done.stdout)["models"] == held["models"]
    key = tmp_path / "key"
    key.write_text("secret", encoding="utf-8")
    hidden = CliRunner().invoke(app, [*given, "--resamples", "0", "--pseudonyms", str(key), "--json", "-"])
    tested = json.loads(hidden.stdout)["models"]["good"]["test"]["annotators"]
    assert [each["annotator"][:7] for each in tested] == ["person-"] * 5


def test_the_command_takes_a_similarity_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    votes, good, _ = files(tmp_path)
    (tmp_path / "mine.py").write_text("def same(one, two):\n    return [float(a == b) for a, b in zip(one, two)]\n")
    monkeypatch.chdir(tmp_path)
    given = ["stand-in", "--votes", str(votes), "--predictions", str(good), "--resamples", "10", "--json", "-"]
    own, plain = (
        json.loads(CliRunner().invoke(app, [*given, "--score", score]).stdout) for score in ("mine.py:same", "accuracy")
    )
    assert own["score"] == "mean similarity with the others"
    assert own["models"]["good"]["test"] == plain["models"]["good"]["test"]
    refused = CliRunner().invoke(app, [*given, "--score", "f1"])
    assert isinstance(refused.exception, InputError)
    assert "no score 'f1'" in str(refused.exception)


def test_the_command_takes_the_official_files(data: Path) -> None:
    path = data / "alttest" / "mtbench.llm_annotations.json"
    given = ["stand-in", "--votes", str(path).replace(".llm_", ".human_"), "--predictions", str(path), "--json", "-"]
    done = CliRunner().invoke(app, [*given, "--resamples", "20"])
    assert done.exit_code == 0, done.output
    held = json.loads(done.stdout)
    assert len(held["models"]) == 6
    assert f"{held['models']['gpt-4o']['test']['advantage_probability']:.2f}" == "0.77"
