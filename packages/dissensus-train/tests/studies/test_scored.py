"""The scored study: one source of every number that is printed of a study."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus.evaluation.metrics import kl
from dissensus.report.tables import comparisons
from dissensus_train.cli.study import run_
from dissensus_train.report.subject import study_subject
from dissensus_train.studies import (
    OpenStudy,
    Study,
    open_study,
    plan_study,
    read_study,
    run_plan,
    score_study,
    study_toml,
)
from dissensus_train.studies.measuring import study_basins, study_ood
from dissensus_train.studies.opening import runs_by_system
from dissensus_train.training import run as run_module
from dissensus_train.training.store import RunStore
from tests.study_report.studies import make_study

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> OpenStudy:
    study = read_study("words")
    quick = replace(study.training, epochs=2, patience=None, dynamics=False)
    study = replace(study, training=quick, models=("linear",), seeds=(0, 1))
    plan = plan_study(study, tmp_path_factory.mktemp("store"), engine="loop", device="cpu")
    list(run_plan(plan))
    plan.writer.close()
    return plan.opened


def test_systems_are_methods_with_their_seeds_together(opened: OpenStudy) -> None:
    systems = score_study(opened, resamples=20).systems
    assert list(systems) == ["majority", "soft", "sls", "multipass"]
    first = opened.store.load(opened.runs[2].key)
    assert (first.run.delivery, first.run.seed) == ("soft", 0)
    assert np.allclose(systems["soft"].predictions["test"][0], first.predictions["test"])


def test_a_study_is_scored_on_its_test_items_beside_baselines(opened: OpenStudy) -> None:
    scored = score_study(opened, resamples=50)
    human = opened.data.human.take(opened.data.splits["test"])
    runs = scored.systems["soft"].predictions["test"].astype(np.float64)
    score = scored.evaluation.overall.get("soft", "kl")
    assert score.value is not None
    assert score.value.value == pytest.approx(np.mean([kl(human.probabilities, run).mean() for run in runs]))
    assert score.seeds == 2
    assert {"uniform", "marginal", "majority + temperature", "majority + smoothing"} <= set(scored.evaluation.systems)


def test_every_stored_run_is_loaded_once(opened: OpenStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    load = RunStore.load

    def counted(store: RunStore, key: str, **parts: bool) -> object:
        loaded.append(key)
        return load(store, key, **parts)

    monkeypatch.setattr(RunStore, "load", counted)
    score_study(opened, resamples=20)
    assert sorted(loaded) == sorted(run.key for run in opened.runs)


def test_the_same_row_is_the_same_number_everywhere(
    opened: OpenStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table of `study run`, its JSON, and the table of the report."""
    monkeypatch.setattr("dissensus_train.studies.read_study", lambda _: opened.study)
    run_(source="words", store=opened.store.folder, engine="loop", device="cpu", json=tmp_path / "scores.json")
    printed = capsys.readouterr().out
    (told,) = json.loads((tmp_path / "scores.json").read_text())
    as_json = {(row["system"], row["metric"]): row["value"]["value"] for row in told["overall"] if row["value"]}
    on_all_items = comparisons(study_subject(score_study(opened, resamples=50)))[:2]
    in_report = {
        (row["system"], row["metric"]): float(row["mean"])
        for table in on_all_items
        for row in csv.DictReader(io.StringIO(table.to_csv()))
        if row["mean"]
    }
    assert in_report == pytest.approx(as_json)
    for system in ("soft", "majority + temperature"):
        line = next(line for line in printed.splitlines() if line.startswith(f"{system} ") and "±" in line)
        for metric in ("kl", "accuracy", "entropy_spearman"):
            assert f"{as_json[system, metric]:.3f}" in line


def test_the_held_out_split_is_test_or_the_last_other(opened: OpenStudy) -> None:
    assert opened.data.held_out == "test"
    splits = {name: rows for name, rows in opened.data.splits.items() if name != "test"}
    assert replace(opened.data, splits=splits).held_out == "validation"


def test_an_unfinished_study_is_not_scored_and_nothing_is_written(opened: OpenStudy, tmp_path: Path) -> None:
    empty = open_study(opened.study, tmp_path / "store")
    with pytest.raises(InputError, match="8 of 8 runs are not in"):
        score_study(empty)
    assert not (tmp_path / "store").exists()


def test_a_store_that_can_only_be_read_is_scored(opened: OpenStudy) -> None:
    if os.geteuid() == 0:
        # Root may write anywhere: what was written tells instead.
        before = {path: path.stat().st_mtime_ns for path in opened.store.folder.rglob("*")}
        score_study(open_study(opened.study, opened.store.folder), resamples=20)
        assert {path: path.stat().st_mtime_ns for path in opened.store.folder.rglob("*")} == before
        return
    opened.store.folder.chmod(0o500)
    try:
        score_study(open_study(opened.study, opened.store.folder), resamples=20)
    finally:
        opened.store.folder.chmod(0o700)


def test_runs_of_several_machines_are_told(opened: OpenStudy) -> None:
    assert score_study(opened, resamples=20).cautions == ()
    path = opened.store.folder / "runs" / opened.runs[0].key / "run.json"
    whole = path.read_text()
    about = json.loads(whole)
    about["versions"]["torch"], about["timing"] = "1.0", {**about["timing"], "device": "cuda", "machine": "NVIDIA H200"}
    path.write_text(json.dumps(about))
    (caution,) = score_study(opened, resamples=20).cautions
    path.write_text(whole)
    assert f"7 runs by loop on cpu ({run_module.machine('cpu')}), PyTorch" in caution
    assert "1 runs by loop on cuda (NVIDIA H200), PyTorch 1.0" in caution


def test_smaller_panels_of_other_seeds_are_systems_of_their_own(opened: OpenStudy, tmp_path: Path) -> None:
    text = '[dataset]\nname = "words"\n[grid]\ntargets = [{targets}]\nseeds = 2\nmodels = ["linear"]\n'
    path = tmp_path / "study.toml"
    panels = ", ".join(f'{{ scheme = "frequency", votes = 2, seed = {seed} }}' for seed in range(3))
    path.write_text(text.replace("{targets}", panels))
    study = read_study(path)
    found = open_study(study, tmp_path / "store")
    assert len({run.key for run in found.runs}) == 6
    labels = [found.data.targets[target.name].probabilities for target in study.targets]
    assert not np.array_equal(labels[0], labels[1])
    with pytest.raises(InputError, match="6 of 6 runs"):
        runs_by_system(found)


@pytest.mark.parametrize(
    ("grid", "sentence"),
    [
        ('deliveries = ["soft", "sls", "soft"]', "'deliveries' names soft twice"),
        ('deliveries = ["stale-sls", { name = "stale-sls", keep = 10 }]', "names stale-sls, keep = 10 twice"),
        ('targets = ["frequency", "frequency"]', "'targets' names frequency twice"),
        ('targets = [{ scheme = "frequency", votes = 2 }, { scheme = "frequency", votes = 2, seed = 0 }]', "twice"),
        ('targets = [{ scheme = "frequency", seed = 1 }]', "gives 'frequency' a seed"),
        ('targets = [{ scheme = "frequency", votes = 2, seed = "a" }]', "'seed' in targets is 'a'"),
        ('targets = [{ scheme = "frequency", votes = true }]', "'votes' in targets is True"),
        ('models = ["linear", "linear"]', "'models' names linear twice"),
    ],
)
def test_what_would_be_counted_twice_is_refused_with_its_line(tmp_path: Path, grid: str, sentence: str) -> None:
    path = tmp_path / "study.toml"
    path.write_text(f'[dataset]\nname = "words"\n[grid]\n{grid}\n')
    with pytest.raises(InputError, match=f"line 4: .*{sentence}"):
        read_study(path)


def test_opening_reads_a_networks_source_once_for_all_seeds(
    opened: OpenStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pretrained network's source is all its files; a grid of many seeds must not read them for each."""
    read: list[str] = []

    def source(name: str, _: object) -> str:
        read.append(name)
        return ""

    monkeypatch.setattr(run_module, "model_source", source)
    study = replace(opened.study, seeds=tuple(range(20)))
    runs = open_study(study, tmp_path).runs
    assert len(runs) == 20 * len(study.methods)
    assert len({run.key for run in runs}) == len(runs)
    assert len(read) == len(study.methods)


def test_a_changed_network_trains_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = "from torch import nn\ndef net(shape, classes):\n    return nn.Linear(shape[0], classes{bias})\n"
    (tmp_path / "nets_of_a_study.py").write_text(net.format(bias=""))
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "study.toml"
    path.write_text('[dataset]\nname = "words"\n[grid]\nmodels = ["nets_of_a_study:net"]\n[training]\nepochs = 1\n')
    plan = plan_study(read_study(path), tmp_path / "store", engine="loop", device="cpu")
    list(run_plan(plan))
    assert open_study(read_study(path), tmp_path / "store").waiting == ()
    (tmp_path / "nets_of_a_study.py").write_text(net.format(bias=", bias=False"))
    assert len(open_study(read_study(path), tmp_path / "store").waiting) == 1


def test_a_shuffled_votes_file_is_the_same_study(tmp_path: Path) -> None:
    """Single choices with annotators, and responses whose judgements are spread over the file."""
    generator = np.random.default_rng(0)
    rows = [
        f"i{i},a{a},{'abc'[k]},{'yes' if (i + a) % 3 == k else 'unsure' if (i * a) % 4 == k else 'no'}"
        for i in range(30)
        for a in range(4)
        for k in range(3)
    ]
    np.savez(tmp_path / "x.npz", items=np.array([f"i{i}" for i in range(30)]), features=generator.normal(size=(30, 2)))
    path = tmp_path / "study.toml"
    path.write_text(
        '[dataset]\nvotes = "votes.csv"\nfeatures = "x.npz"\n[grid]\ndeliveries = ["soft", "multipass"]\n'
        'targets = ["uncertainty-weighted", { scheme = "equal-weighted", votes = 2 }]\nmodels = ["linear"]\n'
    )
    keys = []
    for order in (np.arange(len(rows)), generator.permutation(len(rows))):
        lines = ["item,annotator,label,response", *(rows[place] for place in order)]
        (tmp_path / "votes.csv").write_text("\n".join(lines) + "\n")
        keys.append([run.key for run in open_study(read_study(path), tmp_path / "store").runs])
    assert keys[0] == keys[1]


def test_the_reference_is_the_method_that_the_study_names(tmp_path: Path) -> None:
    path = make_study(tmp_path, measured=True)
    text = path.read_text().replace("seeds = 2", 'seeds = 2\nreference = "soft"')
    path.write_text(text)
    plan = plan_study(read_study(path), tmp_path / "store", engine="loop", device="cpu")
    list(run_plan(plan))
    plan.writer.close()
    scored = score_study(plan.opened, resamples=20)
    assert scored.references == {"linear": "soft"}
    assert scored.evaluation.reference == "soft"
    assert {row.system for row in scored.evaluation.difference().rows} >= {"majority"}
    # The baselines are still those of the model trained on majority labels.
    assert "majority + temperature" in scored.evaluation.baselines
    assert study_basins(plan.opened).reference == "soft"
    assert study_ood(plan.opened).systems[0] == "soft"
    assert read_study_text(study_toml(plan.opened.study), tmp_path).reference == "soft"
    path.write_text(text.replace('reference = "soft"', 'reference = "softer"'))
    with pytest.raises(
        InputError,
        match=r"reference is 'softer', which no system is called; did you mean 'soft'\? choose majority, soft",
    ):
        open_study(read_study(path), tmp_path / "store")


def read_study_text(text: str, folder: Path) -> Study:
    (folder / "again.toml").write_text(text)
    return read_study(folder / "again.toml")
