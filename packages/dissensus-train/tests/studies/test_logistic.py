"""Logistic regression in a study: beside networks, left out where it makes no sense, reported, exported, and tuned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus_train.bundles import export_bundle, load_model
from dissensus_train.report.subject import study_subject
from dissensus_train.studies import read_study, run
from tests.training.texts import texts

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """\
dataset = {{ votes = "votes.csv", texts = "texts.csv" }}
grid = {{ deliveries = {deliveries}, models = {models}, seeds = 2 }}
training = {{ {training} }}
"""
BOTH, SEVERAL = '["logistic", "linear"]', '["majority", "sls", "soft"]'


def written(folder: Path, deliveries: str = '["soft"]', models: str = BOTH, training: str = "epochs = 2") -> Path:
    data = texts()
    assert data.items is not None
    assert data.votes is not None
    votes = "".join(f"i{item},{label}\n" for item, label in zip(data.votes.item, data.votes.label, strict=True))
    (folder / "votes.csv").write_text("item,label\n" + votes)
    listed = "".join(f"i{number},{text}\n" for number, text in enumerate(data.items.texts[0]))
    (folder / "texts.csv").write_text("item,text\n" + listed)
    path = folder / "study.toml"
    path.write_text(STUDY.format(deliveries=deliveries, models=models, training=training))
    return path


def test_it_is_scored_reported_and_exported_as_any_model(tmp_path: Path) -> None:
    path = written(tmp_path, SEVERAL, training='regime = "fixed-horizon", epochs = 3, tune = true')
    study = read_study(path)
    assert study.size == 2 * (2 + 3)
    assert study.left_out.startswith("logistic is fitted to one target, and not with sls,")
    scored = run(path, tmp_path / "runs", engine="loop", device="cpu")
    assert [name for name in scored.systems if name.startswith("logistic")] == ["logistic: majority", "logistic: soft"]
    # Networks recorded their epochs; it has none.
    assert scored.recorded
    assert not scored.dynamics(scored.systems["logistic: soft"])
    told = dict(study_subject(scored).facts)["chosen on validation"]
    assert told.startswith("learning rates among 0.0001, 0.0003, 0.001, 0.003, 0.01; the same search for every method")
    assert "logistic: soft: C = " in told
    assert "linear: sls: learning rate " in told
    assert study_subject(scored).adds is not None
    kept = scored.systems["logistic: soft"].runs[0]
    export_bundle(scored, tmp_path / "model", run=kept.key)
    data = scored.opened.data
    assert data.items is not None
    again = load_model(tmp_path / "model").predict_proba(data.items.take(data.splits["test"]))
    np.testing.assert_allclose(again, scored.opened.store.load(kept.key).predictions["test"], atol=1e-6)


@pytest.mark.parametrize(
    ("deliveries", "models", "rest", "sentence"),
    [
        ('["sls", "multipass"]', '["logistic"]', "", "has none that fits: logistic is fitted to one target"),
        ('["soft"]', '[{ name = "logistic", people = "annotator-bias" }]', "", "whom it cannot know"),
        (
            '["soft"]',
            '["logistic"]',
            "[splits]\ntrain = 0.8\ntest = 0.2\n",
            "yet the strength of logistic is chosen there",
        ),
        ('["soft"]', '["logistic"]', "[splits]\nfolds = 2\n", "a fold of its own"),
    ],
)
def test_what_makes_no_sense_for_it_is_refused_when_the_file_is_read(
    tmp_path: Path, deliveries: str, models: str, rest: str, sentence: str
) -> None:
    path = written(tmp_path, deliveries, models, 'regime = "fixed-horizon"')
    path.write_text(path.read_text() + rest)
    with pytest.raises(InputError, match=sentence):
        read_study(path)


def test_a_tuned_study_needs_a_validation_split(tmp_path: Path) -> None:
    path = written(tmp_path, models='["linear"]', training='regime = "fixed-horizon", tune = true')
    path.write_text(path.read_text() + "[splits]\ntrain = 0.8\ntest = 0.2\n")
    with pytest.raises(
        InputError,
        match=r"which no item is in, yet the learning rate is chosen there; give it a share under \[splits\]$",
    ):
        read_study(path)
