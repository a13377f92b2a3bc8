"""`dissensus study init` and `study gc`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dissensus.cli import main
from dissensus.errors import InputError
from dissensus_train.studies import plan_study, read_study, run_plan
from dissensus_train.studies.data import study_data
from dissensus_train.studies.opening import unasked_runs
from dissensus_train.training.store import RunStore

N = 40


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    votes = ["item,annotator,rating"]
    votes += [f"i{k},a{who},{1 + (k + (who == k % 4)) % 3}" for k in range(N) for who in range(3)]
    (tmp_path / "votes.csv").write_text("\n".join(votes) + "\n")
    texts = [f'i{k},"text of item {k}",{1 + k % 3}' for k in range(N)]
    (tmp_path / "texts.csv").write_text("\n".join(["item,text,before", *texts]) + "\n")
    np.savez(tmp_path / "x.npz", items=[f"i{k}" for k in range(N)], features=np.eye(N)[:, :5])
    (tmp_path / "photos").mkdir()
    for k in range(N):
        Image.new("L", (8, 8), k).save(tmp_path / "photos" / f"i{k}.png")
    np.savez(tmp_path / "photos.npz", items=[f"i{k}" for k in range(N)], images=np.zeros((N, 8, 8), np.uint8))
    return tmp_path


def called(*arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["dissensus", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("items", "key", "encoder"),
    [
        ("texts.csv", "texts", "tfidf"),
        ("photos", "images", "pixels"),
        ("photos.npz", "images", "pixels"),
        ("x.npz", "features", None),
    ],
)
def test_init_writes_a_study_that_can_be_read_and_says_the_next_command(
    folder: Path, capsys: pytest.CaptureFixture[str], items: str, key: str, encoder: str | None
) -> None:
    (folder / "below").mkdir()
    assert called("study", "init", "votes.csv", items, "-o", "below/first.toml") == 0
    told = capsys.readouterr()
    assert "dissensus study run below/first.toml" in told.err.replace("\n", "")
    text = (folder / "below" / "first.toml").read_text()
    assert "120 judgements of 40 items, by 3 annotators; 3 per item" in text
    assert "a scale, lowest first" in text
    assert ('# original = "before"' in text) == (key == "texts")
    study = read_study(folder / "below" / "first.toml")
    assert getattr(study, key) == f"../{items}"
    assert study.encoder == encoder
    assert [method.delivery for method in study.methods] == ["majority", "soft", "sls", "multipass"]
    assert len(study_data(study).human) == N


def test_init_writes_over_nothing_and_refuses_items_that_do_not_fit(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "study.toml").write_text("mine")
    assert called("study", "init", "votes.csv", "texts.csv") == 2
    assert "is there already" in capsys.readouterr().err
    assert (folder / "study.toml").read_text() == "mine"
    (folder / "short.csv").write_text("item,text\ni0,one\n")
    for items, sentence in (
        ("short.csv", "no row for item 'i1'"),
        ("nowhere.csv", "there is no such file or folder"),
        ("study.toml", "items are not read from '.toml' files"),
    ):
        assert called("study", "init", "votes.csv", items, "-o", "new.toml") == 2
        assert sentence in capsys.readouterr().err.replace("\n", " ")
        assert not (folder / "new.toml").exists()


def test_init_takes_columns_of_any_name_and_the_study_reads_them_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Votes and texts in one file; the label's column is found as the only one that it could be."""
    rows = [f"r{i},{who},{('up', 'down')[(i + k) % 2]},Words {i}" for i in range(12) for k, who in enumerate("abc")]
    (folder / "one.csv").write_text("\n".join(["review_id,annotator,sentiment,text", *rows, ""]))
    assert called("study", "init", "one.csv", "one.csv", "-o", "one.toml") == 0
    assert study_data(read_study(folder / "one.toml")).human.classes == ("down", "up")
    odd = [f"{';'.join(row.split(',')[:3])};source {row[1]};{row.split(',')[3]}" for row in rows]
    (folder / "odd.csv").write_text("\n".join(["Ref;Who;Vote;Source;Wording", *odd, ""]))
    typed = ("study", "init", "odd.csv", "odd.csv", "--item", "Ref", "--label", "Vote", "-o", "odd.toml")
    assert called(*typed) == 2
    line = next(line for line in capsys.readouterr().err.splitlines() if "--text Wording" in line)
    assert called(*shlex.split(line, comments=True)[1:]) == 0
    study = read_study(folder / "odd.toml")
    assert (study.text, study.item) == (("Wording",), "Ref")
    items = study_data(study).items
    assert items is not None
    assert items.texts[0][0] == "Words 0"


STUDY = """\
[dataset]
votes = "votes.csv"
features = "x.npz"
[grid]
models = ["linear"]
deliveries = {deliveries}
[training]
regime = "fixed-horizon"
epochs = 1
"""


def trained(folder: Path, name: str, deliveries: str, *, called: str = "") -> set[str]:
    path = folder / f"{name}.toml"
    path.write_text((f'name = "{called}"\n' if called else "") + STUDY.format(deliveries=deliveries))
    plan = plan_study(read_study(path), folder / "store", engine="loop", device="cpu")
    list(run_plan(plan))
    plan.writer.close()
    return {run.key for run in plan.opened.runs}


def test_gc_removes_what_no_known_study_asks_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(folder, "one", '["soft", "majority"]')
    two = trained(folder, "two", '["majority", "sls"]')
    (folder / "one.toml").write_text(STUDY.format(deliveries='["sls"]'))
    store = RunStore(folder / "store")
    assert len(store.keys()) == 3
    assert called("study", "gc", "--store", "store", "--yes") == 0
    told = capsys.readouterr()
    assert "frequency / soft" in told.out
    assert "frequency / majority" not in told.out
    assert set(store.keys()) == two
    assert called("study", "gc", "--store", "store", "--yes") == 0
    assert "every run is asked for" in capsys.readouterr().err.replace("\n", " ")


def test_gc_asks_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained(folder, "one", '["soft"]')
    (folder / "one.toml").write_text(STUDY.format(deliveries='["sls"]'))
    asked: list[str] = []

    def answer(question: str, **_: object) -> bool:
        asked.append(question)
        return False

    monkeypatch.setattr("typer.confirm", answer)
    assert called("study", "gc", "--store", "store") == 0
    assert asked == ["remove them?"]
    assert len(RunStore(folder / "store").keys()) == 1


def test_gc_removes_nothing_where_a_study_cannot_be_read_unless_it_is_forgotten(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(folder, "one", '["soft"]')
    two = trained(folder, "two", '["majority"]')
    (folder / "one.toml").unlink()
    assert called("study", "gc", "--store", "store", "--yes") == 2
    told = capsys.readouterr().err.replace("\n", " ")
    assert f"the study {folder / 'one.toml'} cannot be read" in told
    assert f"--forget {folder / 'one.toml'}" in told
    store = RunStore(folder / "store")
    assert len(store.keys()) == 2
    assert called("study", "gc", "--store", "store", "--forget", "one", "--yes") == 0
    assert set(store.keys()) == two
    assert json.loads((folder / "store" / "studies.json").read_text()) == {str(folder / "two.toml"): ["two"]}
    assert called("study", "gc", "--store", "store", "--forget", "three") == 2
    assert called("study", "gc", "--store", "nowhere") == 2


@pytest.mark.parametrize("renamed", [False, True])
def test_gc_keeps_the_runs_of_every_file_that_is_there(folder: Path, *, renamed: bool) -> None:
    """Two files share a name. The study of a file may also be renamed after the run."""
    one = trained(folder, "one", '["soft"]', called="mine")
    two = trained(folder, "two", '["majority"]', called="mine")
    if renamed:
        path = folder / "one.toml"
        path.write_text(path.read_text().replace("mine", "yours"))
    store = RunStore(folder / "store")
    assert {Path(file).name: names for file, names in store.studies().items()} == {
        "one.toml": ["mine"],
        "two.toml": ["mine"],
    }
    assert unasked_runs(store) == ()
    with pytest.raises(InputError, match=r"2 studies 'mine' .* choose .*one\.toml, .*two\.toml"):
        unasked_runs(store, forget=["mine"])
    assert {stored.key for stored in unasked_runs(store, forget=[str(folder / "one.toml")])} == one
    assert called("study", "gc", "--store", "store", "--forget", str(folder / "two.toml"), "--yes") == 0
    assert set(store.keys()) == one
    assert two.isdisjoint(store.keys())
    assert list(store.studies()) == [str(folder / "one.toml")]


def test_run_of_folds_names_a_part_that_can_be_reported_and_exported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "mine.toml").write_text(STUDY.format(deliveries='["soft"]') + "[splits]\nfolds = 2\n")
    assert called("study", "run", "mine.toml", "--store", "store", "--engine", "loop") == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("next: ")]
    typed = shlex.split(line, comments=True)[2:]
    assert called("study", "run", typed[1], *typed[2:], "--engine", "loop") == 0
    assert called(*typed, "--resamples", "20", "-o", "page.html") == 0
    assert "dissensus report mine.toml:fold-1" in (folder / "page.html").read_text(encoding="utf-8")
    assert called("study", "export", *typed[1:], "-o", "model") == 0
    assert called("study", "status", "mine.toml", "--store", "store") == 0
    assert shlex.join(["dissensus", *typed]) in capsys.readouterr().err
