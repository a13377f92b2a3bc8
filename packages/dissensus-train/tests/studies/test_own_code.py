"""A study whose network, loss and delivery lie beside its file, from the file to the store and its status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus_train.cli.progress import show_status, train_with_progress
from dissensus_train.studies import open_study, plan_study, read_study, run_plan

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.progress import Step

STUDY = """\
[dataset]
votes = "votes.csv"
features = "features.npz"

[grid]
deliveries = ["soft", { name = "own.py:softer", share = 0.5 }]
models = ["own:net"]
seeds = 2

[training]
epochs = 3
loss = "own.py:squared"
class_weights = { a = 1.0, b = 2.0 }
"""

OWN = """\
from torch import nn
from dissensus_train.delivery import deliver

def net(shape, classes):
    return nn.Linear(shape[0], classes)

def squared(logits, target):
    return (logits.softmax(-1) - target).square().sum(-1)

def softer(labels, votes=None, *, seed=0, device="cpu", share):
    return deliver("label-smoothing", labels, smoothing=share, device=device)
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    label = generator.integers(0, 2, 60)
    rows = [f"i{i},a{a},{'ab'[(label[i] + (generator.random() < 0.3)) % 2]}" for i in range(60) for a in range(4)]
    (tmp_path / "votes.csv").write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    features = np.eye(2)[label] + generator.normal(0, 0.3, (60, 2))
    np.savez(tmp_path / "features.npz", items=np.array([f"i{i}" for i in range(60)]), features=features)
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


def test_it_runs_tells_where_it_stands_and_is_found_again_until_the_code_changes(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_study(read_study(study), tmp_path / "store", engine="fleet", device="cpu")
    shares: list[float] = []
    status: list[str] = []

    def progress(step: Step) -> None:
        shares.append(step.fraction)
        if not status:
            show_status(plan.opened)
            status.append(capsys.readouterr().out)

    results = list(run_plan(plan, progress=progress))
    assert len(results) == 4
    assert not any(result.failed for result in results)
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert len(shares) > 4, "epochs are told, not only runs"
    assert "now: 0 of 4 runs" in status[0]
    plan.writer.close()
    show_status(plan.opened)
    assert capsys.readouterr().out.startswith("study: 4 of 4 runs are in ")
    assert not open_study(read_study(study), tmp_path / "store").waiting
    (tmp_path / "own.py").write_text(OWN.replace("square()", "abs()"))
    assert len(open_study(read_study(study), tmp_path / "store").waiting) == 4


def test_a_log_gets_a_line_and_no_bar(study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = plan_study(read_study(study), tmp_path / "store", engine="loop", device="cpu")
    train_with_progress(plan)
    plan.writer.close()
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[-1].startswith("study: 4 of 4 runs, loss ")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("own.py:softer", "own.py:absent", "has no attribute 'absent'"),
        ("share = 0.5", "strength = 0.5", "strength"),
        ('"own:net"', '"absent.py:net"', "there is no file"),
        ("own.py:squared", "own.py:cubed", "has no attribute 'cubed'"),
        ("b = 2.0", "c = 2.0", "class_weights has no weight for 'b'"),
        ("epochs = 3", "epochs = 2.5", "epochs"),
        ("epochs = 3", 'warmup = "long"', "warmup"),
    ],
)
def test_what_is_wrong_is_one_sentence_before_anything_is_trained(
    study: Path, tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    assert old in STUDY
    study.write_text(STUDY.replace(old, new))
    with pytest.raises(InputError, match=sentence):
        plan_study(read_study(study), tmp_path / "store", engine="loop", device="cpu")
