"""The benchmark from protocol to page on two small sets, with a method of the user's own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from dissensus.cli import app
from dissensus.errors import InputError
from dissensus_papers.bench import read_protocol, run_bench
from dissensus_papers.bench.pages import write_pages
from dissensus_papers.bench.running import own_entry, refuse_other_protocol
from dissensus_papers.bench.submitting import held_out, submit
from dissensus_papers.papers import read_summaries
from dissensus_papers.papers.running import Reproduction
from dissensus_train.studies.opening import open_study
from dissensus_train.studies.scored import score_study
from tests.papers.conftest import write_data

if TYPE_CHECKING:
    from dissensus_papers.papers import StudySummary

torch.set_num_threads(1)

RESULTS = Path(__file__).parents[4] / "docs" / "results"

HOW = Reproduction(engine="loop", device="cpu", resamples=50)

PROTOCOL = """\
title = "A small benchmark"
deliveries = ["majority", "soft", "sls"]
people = ["no-such-side"]
baselines = ["marginal"]
ensembles = ["soft"]
absent = ["faces: they could not be had."]
tuned = {{ label-smoothing = {{ smoothing = [0.1, 0.4] }} }}
[comparison]
others = ["entropy_spearman", "accuracy"]
[kinds.small]
seeds = 2
model = "linear"
training = {{ regime = "early-stopping", epochs = 3, batch_size = 16, learning_rate = 0.05 }}
quick = {{ seeds = 1, epochs = 2 }}
[[sets]]
name = "one"
kind = "small"
dataset = {{ votes = "{folder}/votes.csv", features = "{folder}/x.npz" }}
splits = {{ file = "{folder}/splits.csv" }}
people = true
[[sets]]
name = "two"
kind = "small"
dataset = {{ votes = "{folder}/votes.csv", features = "{folder}/x.npz" }}
splits = {{ train = 0.6, validation = 0.2, test = 0.2 }}
votes = 3
[[sets]]
name = "far"
kind = "small"
dataset = {{ votes = "{folder}/nowhere.csv", features = "{folder}/x.npz" }}
splits = {{ train = 0.6, validation = 0.2, test = 0.2 }}
"""

MINE = """\
from softening import more
from dissensus_train.delivery import deliver

def delivery(labels, votes=None, *, seed=0, device="cpu"):
    return deliver("soft", labels, votes, seed=seed, device=device, smoothing=more())

def loss(logits, target):
    return -(target * logits.log_softmax(-1)).sum(-1)
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, protocol, store and the summaries of a run."""
    folder = tmp_path_factory.mktemp("bench")
    write_data(folder)
    (folder / "protocol.toml").write_text(PROTOCOL.format(folder=folder.as_posix()))
    list(run_bench(read_protocol(folder / "protocol.toml"), folder / "store", folder / "out", how=HOW))
    return folder


def test_every_number_is_that_of_the_scored_study(small: Path) -> None:
    protocol = read_protocol(small / "protocol.toml")
    summaries = read_summaries(small / "out", "bench")
    told = json.loads(write_pages(protocol, summaries, small / "out")[2].read_text())
    for name in ("one", "two"):
        scored = score_study(open_study(small / "out/bench-studies" / f"{name}.toml", small / "store"), resamples=50)
        rows = {(row.system, row.metric): row.value for row in scored.evaluation.overall.rows if row.value is not None}
        methods = told["sets"][name]["methods"]
        assert {"majority", "soft", "sls", "marginal", "uniform", "majority + temperature"} <= set(methods)
        for system in ("majority", "soft", "sls", "marginal"):
            for metric in ("soft_nll", "accuracy"):
                assert methods[system][metric]["mean"] == pytest.approx(rows[system, metric].value, rel=1e-5)
            assert methods[system]["worth"] == str(scored.evaluation.worth.get(system, ""))
    assert (told["sets"]["one"]["votes"], told["sets"]["two"]["votes"]) == (5.0, 3.0)


def test_an_ensemble_is_the_mean_of_its_seeds_and_is_worth_more_with_a_vote(small: Path) -> None:
    summaries = read_summaries(small / "out", "bench")
    opened = open_study(small / "out/bench-studies/one.toml", small / "store")
    runs = [opened.store.load(run.key) for run in opened.runs if run.delivery == "soft"]
    said = np.mean([run.predictions["test"].astype(float) for run in runs], axis=0)
    human = opened.data.human.take(opened.data.splits["test"]).probabilities
    ensemble = summaries["one--soft-ensemble"]
    (row,) = (row for row in ensemble.scores if row["metric"] == "soft_nll" and row["stratum"] == "all")
    assert row["mean"] == pytest.approx(-(human * np.log(said)).sum(axis=1).mean(), rel=1e-5)
    assert [gain["votes"] for gain in ensemble.measured["with_votes"]] == [0, 1]
    told = json.loads(
        write_pages(read_protocol(small / "protocol.toml"), summaries, small / "out")[2].read_text(encoding="utf-8")
    )
    assert told["sets"]["one"]["methods"]["soft-ensemble"]["seeds"] == 2
    assert "label-smoothing-tuned" in told["sets"]["two"]["methods"]
    assert "faces: they could not be had." in told["not_run"]
    page = (small / "out/bench.md").read_text(encoding="utf-8")
    assert "| one | soft-ensemble | 1 |" in page


def test_what_could_not_be_run_is_listed_and_the_rest_is_there(small: Path) -> None:
    protocol = read_protocol(small / "protocol.toml")
    page = write_pages(protocol, read_summaries(small / "out", "bench"), small / "out")[0].read_text()
    assert "no-such-side" in page.split("## Not run")[1]
    assert "nowhere.csv" in page.split("## Not run")[1]
    # The study files lie in a folder of this machine, which is nobody's business.
    assert "bench-studies" not in page
    assert "the evidence is thin" in page
    assert "quick run" not in page
    assert (small / "out" / "bench-few.svg").read_text().startswith("<svg")
    assert "bench-few.svg" in page


@pytest.mark.parametrize("model", ["linear", "no-such-model"])
def test_what_was_run_is_not_replaced_where_data_or_a_model_are_gone(small: Path, tmp_path: Path, model: str) -> None:
    shutil.copytree(small / "out", tmp_path / "out")
    kept = {path.name: path.read_bytes() for path in (tmp_path / "out/bench").glob("*.json")}
    text = PROTOCOL.format(folder=(tmp_path / "gone").as_posix()).replace('"linear"', f'"{model}"')
    (tmp_path / "protocol.toml").write_text(text)
    again = list(run_bench(read_protocol(tmp_path / "protocol.toml"), small / "store", tmp_path / "out", how=HOW))
    assert {"one", "two--label-smoothing-tuned", "far"} <= {each.name for each in again if each.missing}
    left = {path.name: path.read_bytes() for path in (tmp_path / "out/bench").glob("*.json")}
    ran = [name for name, before in kept.items() if not json.loads(before)["missing"]]
    assert [name for name in ran if left[name] == kept[name]] == ran
    # The reason why a set was not run is the newest.
    assert left["far.json"] != kept["far.json"]


def test_a_method_of_the_users_own_is_in_the_table(small: Path, tmp_path: Path) -> None:
    shutil.copytree(small / "out", tmp_path / "out")
    (tmp_path / "my_method.py").write_text(MINE)
    (tmp_path / "softening.py").write_text("def more():\n    return 0.2\n")
    protocol = read_protocol(small / "protocol.toml")
    ran = list(run_bench(protocol, small / "store", tmp_path / "out", how=HOW, method=tmp_path / "my_method.py"))
    assert [each.name for each in ran] == ["one--my_method", "two--my_method"]
    assert not any(each.missing for each in ran)
    told = json.loads(write_pages(protocol, read_summaries(tmp_path / "out", "bench"), tmp_path)[2].read_text())
    assert "my_method" in told["comparisons"]["few"]["ranking"]["mean_ranks"]
    methods = told["sets"]["one"]["methods"]
    # It is another method than soft, and soft is what it was.
    assert methods["my_method"]["soft_nll"] != methods["soft"]["soft_nll"]
    assert str(tmp_path) not in (tmp_path / "out/bench/one--my_method.json").read_text().replace(str(small), "")


def test_a_file_without_a_method_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text("def deliver(): ...\n")
    with pytest.raises(InputError, match="defines none of delivery, loss, model"):
        own_entry(path)
    with pytest.raises(InputError, match="no file of Python that can be read"):
        own_entry(tmp_path / "nothing.py")


def test_quick_says_so_and_does_not_mix_with_a_full_run(small: Path, tmp_path: Path) -> None:
    options = ["--protocol", str(small / "protocol.toml"), "--store", str(tmp_path / "store"), "--engine", "loop"]
    command = ["bench", "--quick", "--sets", "one", "--device", "cpu", "--resamples", "20", *options]
    refused = CliRunner().invoke(app, [*command, "-o", str(small / "out")])
    assert isinstance(refused.exception, InputError)
    assert "results of a full run" in str(refused.exception)
    result = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "This is a quick run" in (tmp_path / "out/bench.md").read_text()
    assert "This is a quick run" in (tmp_path / "out/bench.html").read_text()
    assert json.loads((tmp_path / "out/bench.json").read_text())["quick"]


def test_pages_are_rebuilt_from_summaries_alone(small: Path, tmp_path: Path) -> None:
    protocol = read_protocol(small / "protocol.toml")
    first = [path.read_bytes() for path in write_pages(protocol, read_summaries(small / "out", "bench"), tmp_path)]
    shutil.copytree(small / "out/bench", tmp_path / "kept/bench")
    command = ["bench", "--from", str(tmp_path / "kept"), "--protocol", str(small / "protocol.toml")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "no answer" in result.output
    names = ("bench.md", "bench.html", "bench.json")
    assert [(tmp_path / "kept" / name).read_bytes() for name in names] == first[:3]
    before = {path: path.read_bytes() for path in (tmp_path / "kept").rglob("*") if path.is_file()}
    assert CliRunner().invoke(app, [*command, "-o", str(tmp_path / "there")]).exit_code == 0
    assert (tmp_path / "there" / "bench.md").read_bytes() == first[0]
    assert {path: path.read_bytes() for path in (tmp_path / "kept").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('deliveries = ["majority", "soft", "sls"]', 'deliveries = ["majority", "soft"]', "differs in deliveries"),
        ("learning_rate = 0.05", "learning_rate = 0.5", "differs in training"),
        (
            "validation = 0.2, test = 0.2 }}\nvotes = 3",
            "validation = 0.1, test = 0.3 }}\nvotes = 3",
            "differs in splits",
        ),
        ("votes = 3", "votes = 2", "differs in targets"),
        ("[comparison]", '[comparison]\nmetric = "po_jsd"', "one keeps no po_jsd; run dissensus bench on its store"),
    ],
)
def test_summaries_of_another_protocol_are_refused(small: Path, tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in PROTOCOL
    other = small / "other.toml"
    other.write_text(PROTOCOL.replace(old, new).format(folder=small.as_posix()))
    with pytest.raises(InputError, match=told):
        refuse_other_protocol(read_protocol(other), read_summaries(small / "out", "bench"))
    command = ["bench", "--from", str(small / "out"), "--protocol", str(other), "-o", str(tmp_path / "page")]
    assert isinstance(CliRunner().invoke(app, command).exception, InputError)
    assert not (tmp_path / "page").exists()


def test_files_lie_beside_the_protocol(small: Path) -> None:
    (small / "relative.toml").write_text(PROTOCOL.replace("{{folder}}/", "").replace("{folder}/", "").format())
    protocol, whole = (read_protocol(small / name) for name in ("relative.toml", "protocol.toml"))
    assert [each.dataset for each in protocol.sets] == [each.dataset for each in whole.sets]
    refuse_other_protocol(protocol, read_summaries(small / "out", "bench"))


def test_any_registered_metric_can_rank(small: Path, tmp_path: Path) -> None:
    text = PROTOCOL.format(folder=small.as_posix()).replace("[comparison]", '[comparison]\nmetric = "po_jsd"')
    (small / "po.toml").write_text(text)
    protocol = read_protocol(small / "po.toml")
    list(run_bench(protocol, small / "store", tmp_path, how=HOW, sets=("one", "two")))
    told = json.loads(write_pages(protocol, read_summaries(tmp_path, "bench"), tmp_path)[2].read_text())
    assert {each["metric"] for each in told["sets"].values()} == {"po_jsd"}
    # Higher is better.
    means = {name: row["po_jsd"]["mean"] for name, row in told["sets"]["two"]["methods"].items()}
    page = (tmp_path / "bench.md").read_text()
    best = max(means, key=lambda name: means[name])
    assert f"| two | 3.0 | {best} " in page.replace("(baseline) ", "").replace("\\", "")


# --- predictions from elsewhere -------------------------------------------------------------------------------------


@pytest.fixture
def entered(small: Path, tmp_path: Path) -> Path:
    """A copy of the results, and predictions beside it: the votes themselves of one set."""
    shutil.copytree(small / "out", tmp_path / "out")
    data, tested, _ = held_out(read_protocol(small / "protocol.toml"), read_protocol(small / "protocol.toml").sets[0])
    human = data.human.take(tested)
    (tmp_path / "mine").mkdir()
    rows = zip(human.items.tolist(), human.probabilities.tolist(), strict=True)
    lines = [f"{item}," + ",".join(map(str, shares)) for item, shares in rows]
    (tmp_path / "mine" / "one.csv").write_text("\n".join([f"item,{','.join(human.classes)}", *lines]) + "\n")
    return tmp_path


def handed_in(small: Path, place: Path, **more: str) -> list[StudySummary]:
    told = {"name": "Mine", "description": "What people said.", **more}
    protocol = read_protocol(small / "protocol.toml")
    return list(submit(protocol, place / "mine", place / "out", resamples=20, **told))


def test_predictions_from_elsewhere_are_scored_on_held_out_items(small: Path, entered: Path) -> None:
    (found,) = handed_in(small, entered)
    values = {row["metric"]: row["mean"] for row in found.scores if row["stratum"] == "all"}
    assert (values["kl"], values["accuracy"]) == (pytest.approx(0, abs=1e-9), 1.0)
    command = ["bench", "--from", str(entered / "out"), "--protocol", str(small / "protocol.toml")]
    assert CliRunner().invoke(app, command).exit_code == 0
    told = json.loads((entered / "out/bench.json").read_text())
    assert told["sets"]["one"]["methods"]["Mine"]["external"] == "What people said."
    page, board = ((entered / "out" / name).read_text() for name in ("bench.md", "leaderboard.html"))
    assert "Mine (external)" in page
    assert "Mine: What people said." in page
    assert "What people said." in board
    # It is the best there can be, and soft is what it was.
    assert told["sets"]["one"]["methods"]["Mine"]["soft_nll"]["mean"] < min(
        row["soft_nll"]["mean"] for name, row in told["sets"]["one"]["methods"].items() if name != "Mine"
    )


def test_single_votes_are_scored_by_their_frequencies(small: Path, entered: Path) -> None:
    protocol = read_protocol(small / "protocol.toml")
    data, tested, _ = held_out(protocol, protocol.sets[0])
    human = data.human.take(tested)
    lines = [line for line in (small / "votes.csv").read_text().splitlines() if line.split(",")[0] in human.items]
    (entered / "mine" / "one.csv").write_text("\n".join(["item,annotator,label", *lines]) + "\n")
    (found,) = handed_in(small, entered)
    kl = next(row["mean"] for row in found.scores if row["metric"] == "kl" and row["stratum"] == "all")
    assert kl == pytest.approx(0, abs=1e-9)
    (entered / "mine" / "one.csv").write_text("\n".join(["item,annotator,label", *lines[5:]]) + "\n")
    with pytest.raises(InputError, match="item"):
        handed_in(small, entered)


def test_what_is_wrong_with_predictions_is_told_and_nothing_is_kept(small: Path, entered: Path) -> None:
    path = entered / "mine" / "one.csv"
    whole = path.read_text().splitlines()
    for text, told in (
        ("\n".join(whole[:-1]), "have no prediction, first .*; give the .* held-out items of one, and no others"),
        ("\n".join(["item,maybe,yes", *whole[1:]]), "maybe|no"),
        ("\n".join([*whole[:-1], whole[-1].split(",")[0] + ",0.9,0.9"]), "sum"),
    ):
        path.write_text(text + "\n")
        with pytest.raises(InputError, match=told):
            handed_in(small, entered)
    path.rename(entered / "mine" / "onne.csv")
    with pytest.raises(InputError, match="'onne' is no set of the protocol; did you mean 'one'"):
        handed_in(small, entered)
    (entered / "mine" / "onne.csv").unlink()
    with pytest.raises(InputError, match="there is no file here"):
        handed_in(small, entered)
    for more, told in (({"name": "a--b"}, "cannot be a name"), ({"name": "soft"}, "is a method of the protocol")):
        with pytest.raises(InputError, match=told):
            handed_in(small, entered, **more)
    with pytest.raises(InputError, match="needs a description"):
        handed_in(small, entered, description=" ")
    assert not list((entered / "out/bench").glob("*Mine*"))


def test_items_of_the_splits_are_listed_for_those_who_hand_in(small: Path, tmp_path: Path) -> None:
    protocol = read_protocol(small / "protocol.toml")
    result = CliRunner().invoke(app, ["bench", "splits", "two", "--protocol", str(small / "protocol.toml")])
    assert result.exit_code == 0, result.output
    header, *rows = result.output.splitlines()
    assert header == "item,split"
    data, tested, _ = held_out(protocol, protocol.sets[1])
    assert [row.split(",")[0] for row in rows if row.endswith(",test")] == data.human.items[tested].tolist()
    assert len(rows) == len(data.human)


def test_the_published_page_is_what_the_tool_writes(tmp_path: Path) -> None:
    if not (RESULTS / "bench").is_dir():
        pytest.skip("docs/results/bench holds no summaries yet")
    for path in write_pages(read_protocol(), read_summaries(RESULTS, "bench"), tmp_path):
        assert (RESULTS / path.name).read_text() == path.read_text(), "dissensus bench --from docs/results"
