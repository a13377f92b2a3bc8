"""What a study says beside its table: folds as one, the mode-shift audit, scores against a target."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from dissensus.cli import app
from dissensus.errors import InputError
from dissensus.report import write_report
from dissensus_train.studies import open_study, plan_study, read_study, run_plan, score_study
from dissensus_train.studies.mode_audit import mode_shift
from dissensus_train.studies.original import mode_shift_audit, scores_against
from dissensus_train.studies.scored import score_folds

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.evaluation.evaluating import Evaluation

STUDY = """\
[dataset]
votes = "votes.csv"
features = "x.npz"
original = "gold.csv"
[splits]
{splits}
[grid]
targets = {targets}
deliveries = ["soft", "majority"]
models = ["linear"]
seeds = 2
[training]
regime = "fixed-horizon"
epochs = 3
batch_size = 16
dynamics = false
"""
N = 80


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    truth = generator.random(N)
    votes, gold = ["item,annotator,label"], ["item,label"]
    for number, share in enumerate(truth):
        votes += [f"i{number},a{who},{'yes' if generator.random() < share else 'no'}" for who in range(5)]
        gold.append(f"i{number},{'yes' if (share > 0.5) != (number % 8 == 0) else 'no'}")
    (tmp_path / "votes.csv").write_text("\n".join(votes) + "\n")
    (tmp_path / "gold.csv").write_text("\n".join(gold) + "\n")
    features = np.stack([truth, generator.random(N)], axis=1)
    np.savez(tmp_path / "x.npz", items=[f"i{number}" for number in range(N)], features=features)
    return tmp_path


def written(folder: Path, splits: str = "train = 0.5\ntest = 0.5", targets: str = '["frequency", "original"]') -> Path:
    path = folder / "study.toml"
    path.write_text(STUDY.format(splits=splits, targets=targets))
    return path


def trained(path: Path, store: Path) -> None:
    for part in read_study(path).parts:
        plan = plan_study(part, store, engine="loop", device="cpu")
        list(run_plan(plan))
        plan.writer.close()


def value(evaluation: Evaluation, system: str, metric: str) -> float:
    found = evaluation.overall.get(system, metric).value
    assert found is not None
    return found.value


def test_the_audit_divides_the_gain_over_original_labels_by_stratum(folder: Path) -> None:
    path, store = written(folder), folder / "store"
    trained(path, store)
    scored = score_study(open_study(read_study(path), store), resamples=50)
    audits = mode_shift_audit(scored, resamples=50)
    assert {(each.original, each.majority, each.soft) for each in audits} == {
        ("original / soft", "frequency / majority", "frequency / soft")
    }
    strata = {each.stratum: each for each in audits}
    assert set(strata) == {name for name, items in scored.human.strata.items() if items.any()}
    direct = mode_shift(
        scored.human,
        original=scored.systems["original / soft"].predictions["test"],
        majority=scored.systems["frequency / majority"].predictions["test"],
        soft=scored.systems["frequency / soft"].predictions["test"],
        resamples=50,
    )
    whole = strata["all"]
    assert whole.shift == direct
    assert whole.shift.gain.value == pytest.approx(whole.shift.mode.value + whole.shift.softness.value)
    data = scored.opened.data
    old = data.targets["original"].take(data.splits["test"]).majority().label
    assert whole.moved == pytest.approx((old != scored.human.majority().label).mean())
    page = write_report(scored, folder / "report.html").read_text(encoding="utf-8")
    assert "Mode shift" in page
    table = pl.read_csv(folder / "report-files" / "mode-shift.csv").row(0, named=True)
    assert (table["system"], table["stratum"]) == ("frequency / soft", "all")
    assert table["gain"] == pytest.approx(table["mode"] + table["softness"]) == pytest.approx(direct.gain.value)


def test_a_study_without_original_labels_has_no_audit(folder: Path) -> None:
    path, store = written(folder, targets='["frequency"]'), folder / "store"
    trained(path, store)
    scored = score_study(open_study(read_study(path), store), resamples=20)
    assert mode_shift_audit(scored) == ()
    with pytest.raises(InputError, match="it has no target 'original'; choose frequency, or add it"):
        scores_against(scored, "original")


def test_scores_against_a_target_are_those_of_its_labels(folder: Path) -> None:
    path, store = written(folder), folder / "store"
    trained(path, store)
    scored = score_study(open_study(read_study(path), store), resamples=20)
    against = scores_against(scored, "original", resamples=20)
    data = scored.opened.data
    label = data.targets["original"].take(data.splits["test"]).majority().label
    q = scored.systems["frequency / soft"].predictions["test"]
    assert value(against, "frequency / soft", "accuracy") == pytest.approx((q.argmax(axis=2) == label).mean())
    brier = ((q - np.eye(2)[label]) ** 2).sum(axis=2).mean()
    assert value(against, "frequency / soft", "brier") == pytest.approx(brier, rel=1e-5)


def test_folds_are_scored_as_one_on_every_item(folder: Path) -> None:
    path, store = written(folder, splits="folds = 3", targets='["frequency"]'), folder / "store"
    trained(path, store)
    folds = [open_study(part, store) for part in read_study(path).parts]
    whole = score_folds(folds, resamples=20)
    assert whole.items == N
    right = []
    for each in folds:
        human = each.data.human.take(each.data.splits["test"])
        run = next(run for run in each.runs if run.delivery == "soft" and run.seed == 0)
        q = each.store.load(run.key).predictions["test"]
        right.append(((q - human.probabilities) ** 2).sum(axis=1))
        run = next(run for run in each.runs if run.delivery == "soft" and run.seed == 1)
        right.append(((each.store.load(run.key).predictions["test"] - human.probabilities) ** 2).sum(axis=1))
    assert value(whole, "soft", "brier") == pytest.approx(np.concatenate(right).mean(), rel=1e-5)
    with pytest.raises(InputError, match="not all of its 3 folds are here"):
        score_folds(folds[:2])


def test_json_holds_the_audit_and_the_folds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    for splits, studies in (
        ("train = 0.5\ntest = 0.5", ["study"]),
        ("folds = 2", ["study-fold-1", "study-fold-2", "study"]),
    ):
        path = written(folder, splits=splits)
        command = ["study", "run", str(path), "--store", str(folder / "store"), "--engine", "loop", "--device", "cpu"]
        result = CliRunner().invoke(app, [*command, "--json", str(folder / "out.json")])
        assert result.exit_code == 0, result.output
        tables = json.loads((folder / "out.json").read_text())
        assert [table["study"] for table in tables] == studies
        assert {row["stratum"] for row in tables[0]["mode_shift"]} >= {"all"}
        assert tables[0]["against_original"]
