"""The benchmark from protocol to page on two small sets, with a method of the user's own."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
import torch
from msgspec.structs import replace as set_with
from scipy.stats import friedmanchisquare
from typer.testing import CliRunner

from dissensus.cli import app
from dissensus.errors import InputError
from dissensus.labels import label
from dissensus.votes import read_votes
from dissensus_papers.bench import read_protocol, run_bench, standings
from dissensus_papers.bench.pages import table, write_pages
from dissensus_papers.bench.running import held_out, own_entry, refuse_unfit, scored_system
from dissensus_papers.bench.submitting import _copies, _refuse_copies, submit
from dissensus_papers.papers import read_summaries
from dissensus_papers.papers.kept import write_summary
from dissensus_papers.papers.running import Reproduction
from dissensus_train.studies.opening import open_study
from dissensus_train.studies.scored import score_study
from tests.papers.conftest import write_data

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.arrays import Table
    from dissensus.labels import LabelDistribution
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
    assert told["absent"] == ["faces: they could not be had."]
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
    again: list[StudySummary] = []
    run = run_bench(read_protocol(tmp_path / "protocol.toml"), small / "store", tmp_path / "out", how=HOW)
    with pytest.raises(InputError, match=r"^bench: no set could be run, and no page is written; one: "):
        again.extend(run)
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


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"majority", "soft"', '"majorty", "soft"', "the protocol: 'deliveries' .*'majorty'.*did you mean 'majority'"),
        ("votes.csv", "vots.csv", "vots.csv"),
        ('"linear"', '"linaer"', "the protocol: 'models' .*'linaer'"),
    ],
)
def test_where_nothing_ran_no_page_is_written(small: Path, tmp_path: Path, old: str, new: str, told: str) -> None:
    """And the command fails; why each set was not run is kept, and told of the protocol."""
    (small / "wrong.toml").write_text(PROTOCOL.replace(old, new).format(folder=small.as_posix()))
    command = ["bench", "--protocol", str(small / "wrong.toml"), "--store", str(tmp_path), "-o", str(tmp_path / "out")]
    failed = CliRunner().invoke(app, [*command, "--engine", "loop", "--device", "cpu"]).exception
    assert isinstance(failed, InputError)
    assert re.search(f"^bench: no set could be run, and no page is written; one: .*{told}", str(failed)), failed
    assert read_summaries(tmp_path / "out", "bench")["one"].missing
    assert not (tmp_path / "out/bench.md").exists()
    assert ".toml" not in str(failed)


def test_quick_that_leaves_everything_out_says_so(small: Path, tmp_path: Path) -> None:
    text = PROTOCOL.replace("quick = {{ seeds = 1, epochs = 2 }}\n", "").format(folder=small.as_posix())
    (small / "slow.toml").write_text(text)
    run = run_bench(read_protocol(small / "slow.toml"), tmp_path, tmp_path / "out", how=replace(HOW, quick=True))
    with pytest.raises(InputError, match="quick runs leave all of these sets out"):
        list(run)


def test_a_method_that_ran_nowhere_leaves_nothing_behind(small: Path, tmp_path: Path) -> None:
    """What ran before it was edited stays."""
    shutil.copytree(small / "out", tmp_path / "out")
    mine = tmp_path / "mine.py"
    before = {path.name: path.read_bytes() for path in (tmp_path / "out/bench").iterdir()}
    for text in ("import no_such_package\n\n", "def model(:\n"):
        mine.write_text(f"{text}def loss(logits, target):\n    return (logits.softmax(-1) - target).square().sum(-1)\n")
        with pytest.raises(InputError, match=r"no set could be run|no file of Python"):
            list(run_bench(read_protocol(small / "protocol.toml"), tmp_path, tmp_path / "out", how=HOW, method=mine))
        assert {path.name: path.read_bytes() for path in (tmp_path / "out/bench").iterdir()} == before
    mine.write_text("def loss(logits, target):\n    return (logits.softmax(-1) - target).square().sum(-1)\n")
    list(run_bench(read_protocol(small / "protocol.toml"), tmp_path, tmp_path / "out", how=HOW, method=mine))
    ran = (tmp_path / "out/bench/one--mine.json").read_bytes()
    mine.write_text("import no_such_package\n\n" + mine.read_text())
    with pytest.raises(InputError, match="no set could be run"):
        list(run_bench(read_protocol(small / "protocol.toml"), tmp_path, tmp_path / "out", how=HOW, method=mine))
    assert (tmp_path / "out/bench/one--mine.json").read_bytes() == ran


def test_summaries_of_no_set_of_the_protocol_make_no_page(small: Path, tmp_path: Path) -> None:
    shutil.copytree(small / "out/bench", tmp_path / "bench")
    (tmp_path / "bench.md").write_text("as it was")
    failed = CliRunner().invoke(app, ["bench", "--from", str(tmp_path)]).exception
    assert isinstance(failed, InputError)
    assert "none is a set of the protocol that was run; give their own with --protocol" in str(failed)
    assert (tmp_path / "bench.md").read_text() == "as it was"


def test_a_row_that_lacks_the_metric_is_refused_with_its_own_remedy(small: Path, entered: Path) -> None:
    """It would be left out as if it were not on all sets; a constant has no correlation, and nothing is amiss."""
    (entered / "mine.py").write_text("def loss(logits, target):\n    return (logits - target).square().sum(-1)\n")
    protocol = read_protocol(small / "protocol.toml")
    list(run_bench(protocol, small / "store", entered / "out", how=HOW, method=entered / "mine.py"))
    handed_in(small, entered, name="Theirs")
    write_predictions(small, entered / "mine/one.csv", np.full_like(held(small).probabilities, 0.5))
    handed_in(small, entered, name="Constant")
    kept = read_summaries(entered / "out", "bench")
    assert all(row["metric"] != "entropy_spearman" for row in kept["one--Constant"].scores)
    refuse_unfit(protocol, kept)
    for name, remedy in (
        ("one--soft-ensemble", "run dissensus bench on its store again"),
        ("one--label-smoothing-tuned", "run dissensus bench on its store again"),
        ("one--mine", "run dissensus bench add on its store again"),
        ("one--Theirs", "withdraw it and hand it in again"),
    ):
        less = tuple(row for row in kept[name].scores if row["metric"] != "accuracy")
        with pytest.raises(InputError, match=f"{name} keeps no accuracy; {remedy}"):
            refuse_unfit(protocol, kept | {name: replace(kept[name], scores=less)})


def test_a_file_without_a_method_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text("def deliver(): ...\n")
    with pytest.raises(InputError, match="defines none of delivery, loss, model"):
        own_entry(path)
    with pytest.raises(InputError, match="no file of Python that can be read"):
        own_entry(tmp_path / "nothing.py")


def test_quick_says_so_and_does_not_mix_with_a_full_run(small: Path, tmp_path: Path) -> None:
    options = ["--protocol", str(small / "protocol.toml"), "--store", str(tmp_path / "store"), "--engine", "loop"]
    command = ["bench", "--quick", "--sets", "one", "--device", "cpu", "--resamples", "200", *options]
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
        refuse_unfit(read_protocol(other), read_summaries(small / "out", "bench"))
    command = ["bench", "--from", str(small / "out"), "--protocol", str(other), "-o", str(tmp_path / "page")]
    assert isinstance(CliRunner().invoke(app, command).exception, InputError)
    assert not (tmp_path / "page").exists()


def test_files_lie_beside_the_protocol(small: Path) -> None:
    (small / "relative.toml").write_text(PROTOCOL.replace("{{folder}}/", "").replace("{folder}/", "").format())
    protocol, whole = (read_protocol(small / name) for name in ("relative.toml", "protocol.toml"))
    assert [each.dataset for each in protocol.sets] == [each.dataset for each in whole.sets]
    refuse_unfit(protocol, read_summaries(small / "out", "bench"))


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
    """A copy of the results, and predictions beside it: what people said on one set, and a third of anything."""
    shutil.copytree(small / "out", tmp_path / "out")
    (tmp_path / "mine").mkdir()
    write_predictions(small, tmp_path / "mine/one.csv", near_people(small))
    return tmp_path


def near_people(small: Path) -> Table:
    """What people said of the held-out items, and a bit of anything: no copy."""
    people = held(small).probabilities
    beside = np.random.default_rng(0).uniform(-0.05, 0.05, (len(people), 1)) * np.array([1.0, -1.0])
    return np.asarray(0.7 * people + 0.15 + beside)


def held(small: Path) -> LabelDistribution:
    """What people said of the held-out items of the first set."""
    protocol = read_protocol(small / "protocol.toml")
    data, tested, _ = held_out(protocol, protocol.sets[0])
    return data.human.take(tested)


def write_predictions(small: Path, path: Path, probabilities: Table) -> None:
    human = held(small)
    rows = zip(human.items.tolist(), probabilities.tolist(), strict=True)
    lines = [f"{item}," + ",".join(map(str, shares)) for item, shares in rows]
    path.write_text("\n".join([f"item,{','.join(human.classes)}", *lines]) + "\n")


def handed_in(small: Path, place: Path, **more: str) -> list[StudySummary]:
    told = {"name": "Mine", "description": "What people said.", **more}
    protocol = read_protocol(small / "protocol.toml")
    return list(submit(protocol, place / "mine", place / "out", resamples=20, **told))


def test_predictions_from_elsewhere_are_scored_on_held_out_items(small: Path, entered: Path) -> None:
    (found,) = handed_in(small, entered)
    values = {row["metric"]: row["mean"] for row in found.scores if row["stratum"] == "all"}
    people = held(small).probabilities
    own = (people * np.log(near_people(small))).sum(axis=1).mean()
    assert (values["soft_nll"], values["accuracy"]) == (pytest.approx(-own, rel=1e-5), 1.0)
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


def test_single_votes_are_scored_by_their_dirichlet_labels(small: Path, entered: Path) -> None:
    human = held(small)
    rows = [line.split(",") for line in (small / "votes.csv").read_text().splitlines()[1:]]
    # Two of the five people.
    rows = [row for row in rows if row[0] in human.items and row[1] in ("a0", "a1")]
    path = entered / "mine" / "one.csv"
    for change, told in (
        (rows[2:], "have no prediction"),
        ([[*rows[0][:2], "maybe"], *rows[1:]], "line 2: the label 'maybe' is not one of the classes"),
        ([rows[0], *rows], "line 3: annotator 'a0', item .* is judged a second time, after .*line 2; .* remove them$"),
        ([[*rows[0][:2], ""], *rows[1:]], "line 2: column 'label' is empty"),
    ):
        path.write_text("\n".join(map(",".join, [["item", "annotator", "label"], *change])) + "\n")
        with pytest.raises(InputError, match=told):
            handed_in(small, entered)
    path.write_text("\n".join(map(",".join, [["item", "annotator", "label"], *rows])) + "\n")
    (found,) = handed_in(small, entered)
    scored = next(row["mean"] for row in found.scores if row["metric"] == "soft_nll" and row["stratum"] == "all")
    made = label(read_votes(path, classes=list(human.classes)), "dirichlet")
    shares = made.probabilities[[made.items.tolist().index(item) for item in human.items.tolist()]]
    assert shares.min() > 0
    assert scored == pytest.approx(-(human.probabilities * np.log(shares)).sum(axis=1).mean(), rel=1e-5)
    assert "2 annotators" in found.measured["notes"][0]


def test_what_is_wrong_with_predictions_is_told_and_nothing_is_kept(small: Path, entered: Path) -> None:
    path = entered / "mine" / "one.csv"
    whole = path.read_text().splitlines()
    for text, told in (
        ("\n".join(whole[:-1]), "have no prediction, first .*; give the .* held-out items of one, and no others"),
        ("\n".join([*whole, "i0,0.5,0.5"]), "1 predictions are for items that are not held out, first i0; give the "),
        ("\n".join(["item,maybe,yes", *whole[1:]]), "maybe|no"),
        ("\n".join([*whole[:-1], whole[-1].split(",")[0] + ",0.9,0.9"]), "sum"),
    ):
        path.write_text(text + "\n")
        with pytest.raises(InputError, match=told):
            handed_in(small, entered)
    # What this command cannot be told, the file has to say.
    path.write_text("\n".join(["item,annotator,said,also", *(f"{line.split(',')[0]},a0,no,yes" for line in whole[1:])]))
    with pytest.raises(InputError, match="give a file with the columns item, annotator and label") as caught:
        handed_in(small, entered)
    assert "=" not in caught.value.sentence
    path.rename(entered / "mine" / "onne.csv")
    with pytest.raises(InputError, match="'onne' is no set of the protocol; did you mean 'one'"):
        handed_in(small, entered)
    (entered / "mine" / "onne.csv").unlink()
    with pytest.raises(InputError, match="there is no file here"):
        handed_in(small, entered)
    with pytest.raises(InputError, match="needs a description"):
        handed_in(small, entered, description=" ")
    assert not list((entered / "out/bench").glob("*Mine*"))


@pytest.mark.parametrize("how", ["submit", "add", "run", "page"])
def test_other_votes_than_those_of_the_set_are_refused(small: Path, entered: Path, how: str) -> None:
    """One vote was edited; a set's other features are nobody's business."""
    data = entered / "data"
    data.mkdir()
    write_data(data)
    text = (data / "votes.csv").read_text()
    (data / "votes.csv").write_text(text.replace(",yes", ",no", 1) if how != "page" else text)
    (data / "protocol.toml").write_text(PROTOCOL.format(folder=data.as_posix()))
    protocol, place = read_protocol(data / "protocol.toml"), entered / "out/bench"
    if how == "page":
        handed_in(small, entered)
        kept = read_summaries(entered / "out", "bench")["one--Mine"]
        write_summary(entered / "out", "bench", replace(kept, data={"votes": "f" * 64}))
    (entered / "mine.py").write_text("def loss(logits, target):\n    return (logits - target).sum(-1)\n")
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    doing: dict[str, Callable[[], object]] = {
        "submit": lambda: list(submit(protocol, entered / "mine", entered / "out", name="Mine", description="It.")),
        "add": lambda: list(run_bench(protocol, data, entered / "out", how=HOW, method=entered / "mine.py")),
        "run": lambda: list(run_bench(protocol, data, entered / "out", how=HOW, sets=("one",))),
        "page": lambda: write_pages(protocol, read_summaries(entered / "out", "bench"), entered / "page"),
    }
    with pytest.raises(InputError, match=r"has other votes \(SHA-256 .*\) than one was scored on"):
        doing[how]()
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
    assert not (entered / "page").exists()
    # Summaries from before there were checksums say nothing of votes.
    for name, kept in read_summaries(entered / "out", "bench").items():
        if name.startswith("one"):
            write_summary(entered / "out", "bench", replace(kept, data={}))
    doing["page" if how in ("add", "run") else how]()


@pytest.mark.parametrize(
    "name", ["soft", "Soft", "marginal", "UNIFORM", "soft-ensemble", "Soft Ensemble", "best_achievable"]
)
def test_names_of_the_protocol_are_taken_whatever_their_case_and_signs(small: Path, entered: Path, name: str) -> None:
    with pytest.raises(InputError, match=rf"'{name}' is a method of the protocol( \(it reads .*\))?; give your system"):
        handed_in(small, entered, name=name)
    (entered / f"{name}.py").write_text("def loss(logits, target):\n    return (logits - target).sum(-1)\n")
    protocol = read_protocol(small / "protocol.toml")
    with pytest.raises(InputError, match=f"'{name}' is a method of the protocol"):
        list(run_bench(protocol, small / "store", entered / "out", how=HOW, method=entered / f"{name}.py"))


@pytest.mark.parametrize(
    "name", ["", " a", "a ", "a.", "a/b", "a\nb", "a\tb", "\x07", "a--b", "x" * 51, "s\u043eft", "字"]
)
def test_what_cannot_be_a_file_is_no_name(small: Path, entered: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be a name in the table; use up to 50 letters"):
        handed_in(small, entered, name=name)


def test_a_name_is_entered_once_and_its_sets_are_of_one_submission(small: Path, entered: Path) -> None:
    handed_in(small, entered, name="x" * 50)
    handed_in(small, entered)
    kept = (entered / "out/bench/one--Mine.json").read_bytes()
    (entered / "mine/one.csv").rename(entered / "mine/two.csv")
    for name in ("Mine", "MINE", "M.i.n.e"):
        with pytest.raises(InputError, match=r"'Mine' is in the table already; .* remove all of .*bench/\*--Mine.json"):
            handed_in(small, entered, name=name)
    protocol = read_protocol(small / "protocol.toml")
    for name in ("mine.py", "Mine.py"):
        (entered / name).write_text("def loss(logits, target):\n    return (logits - target).sum(-1)\n")
        with pytest.raises(InputError, match="'Mine' is in the table already"):
            list(run_bench(protocol, small / "store", entered / "out", how=HOW, method=entered / name))
    assert (entered / "out/bench/one--Mine.json").read_bytes() == kept
    assert not list((entered / "out/bench").glob("two--*ine.json"))


def test_the_votes_that_are_scored_on_are_no_predictions(small: Path, entered: Path) -> None:
    """All of them, rounded, all but few, or in one of several seeds; what is near them is entered with a caution."""
    people, path = held(small).probabilities, entered / "mine/one.csv"
    varied = np.flatnonzero(people.max(axis=1) < 1)
    few, many, sure = people.copy(), people.copy(), people.max(axis=1) == 1
    few[varied[: varied.size // 20]] = 0.5
    many[varied[: varied.size // 20 + 1]] = [0.53, 0.47]
    mixed = (0.996 * people + 0.002, 0.9 * people + 0.05, 0.6 * people + 0.2, 0.6 * people + 0.4 * people.mean(axis=0))
    tempered = [people**power / (people**power).sum(axis=1, keepdims=True) for power in (0.3, 0.9, 2.0)]
    for copied in (people, *mixed, *tempered, few, np.where(sure[:, None], 0.5, people)):
        write_predictions(small, path, copied)
        with pytest.raises(InputError, match=r"one\.csv: these are the votes that they would be scored on"):
            handed_in(small, entered)
    write_predictions(small, path, many)
    (found,) = handed_in(small, entered, name="Near")
    assert "the predictions seem to know the votes that they are scored on" in found.cautions[0]
    protocol = read_protocol(small / "protocol.toml")
    write_pages(protocol, read_summaries(entered / "out", "bench"), entered / "out")
    page, board = ((entered / "out" / name).read_text() for name in ("bench.md", "leaderboard.html"))
    assert "Near (external, see the caution)" in page
    assert "Of Near on one: " in page
    assert "seem to know the votes" in board


@pytest.mark.parametrize("votes", [3, 10, 51])
@pytest.mark.parametrize("classes", [2, 5])
def test_the_truth_is_no_copy_of_the_votes(votes: int, classes: int) -> None:
    """However many voted, the best model that there can be is let in, and so is what as many other people said."""
    generator = np.random.default_rng(votes)
    for _ in range(20):
        truth = generator.dirichlet(np.full(classes, 0.7), 60)
        shares, others = generator.multinomial(votes, truth, (2, 60)) / votes
        varied = shares.max(axis=1) < 1
        assert not _copies(truth[varied], shares[varied])
        assert not _copies(others[varied], shares[varied])


def test_disguised_shares_are_entered_with_a_caution_seed_by_seed(small: Path, entered: Path) -> None:
    """Of anonymous votes; another seed that is far off does not hide one that is too near."""
    data = entered / "anonymous"
    data.mkdir()
    write_data(data)
    lines = (data / "votes.csv").read_text().splitlines()
    rows = [f"{line.split(',')[0]},b{n},{line.split(',')[2]}" for n, line in enumerate(lines[1:])]
    (data / "votes.csv").write_text("\n".join([lines[0], *rows]) + "\n")
    (data / "protocol.toml").write_text(PROTOCOL.format(folder=data.as_posix()))
    human, generator = held(data), np.random.default_rng(1)
    weight = generator.uniform(0.45, 0.95, (len(human), 1))
    known = weight * human.probabilities + (1 - weight) / 2
    protocol = read_protocol(data / "protocol.toml")
    about, tested, trained = held_out(protocol, protocol.sets[0])
    for said, has in ((known, True), ([0.3 + 0.4 * known, known], True), (np.full_like(known, 0.5), False)):
        kept = scored_system(about, "Mine", np.asarray(said), tested=tested, trained=trained, how=HOW)
        assert ["seem to know the votes" in caution for caution in kept["cautions"]] == [True] * has


def test_a_model_that_is_unsure_of_all_is_no_copy_of_the_votes_of_two() -> None:
    """Where two differ each has half, and an honest half is right there every time; the votes are still no model."""
    generator = np.random.default_rng(0)
    shares, unsure = generator.choice([0.0, 0.5, 1.0], 400), np.full(400, 0.5)
    unsure[::40] = 0.9
    both, model = (np.stack([of, 1 - of], axis=1) for of in (shares, unsure))
    _refuse_copies(Path("x.csv"), model[None], both)
    with pytest.raises(InputError, match=r"x\.csv: these are the votes"):
        _refuse_copies(Path("x.csv"), 0.9 * both[None] + 0.05, both)


def test_a_constant_is_no_copy_of_the_votes_of_two(small: Path, entered: Path) -> None:
    """Where they differ, each has half."""
    write_data(entered)
    votes = (entered / "votes.csv").read_text().splitlines()
    (entered / "votes.csv").write_text(
        "\n".join(votes[:1] + [each for each in votes if ",a0," in each or ",a1," in each])
    )
    (entered / "protocol.toml").write_text(PROTOCOL.format(folder=entered.as_posix()))
    for kept in read_summaries(entered / "out", "bench").values():
        write_summary(entered / "out", "bench", replace(kept, data={}))
    write_predictions(small, entered / "mine/one.csv", np.full_like(held(small).probabilities, 0.5))
    assert not handed_in(entered, entered)[0].cautions
    write_predictions(small, entered / "mine/one.csv", held(entered).probabilities)
    with pytest.raises(InputError, match="these are the votes"):
        handed_in(entered, entered, name="Other")


def test_files_and_sets_that_do_not_fit_are_refused(small: Path, entered: Path) -> None:
    shutil.copy(entered / "mine/one.csv", entered / "mine/one.tsv")
    with pytest.raises(InputError, match=r"one.tsv: one.csv is of the same; give one file for each set and task"):
        handed_in(small, entered)
    (entered / "mine/one.tsv").unlink()
    for name in ("Par_test_soft.tsv", "paraphrase_TEST_soft.tsv"):
        (entered / "mine" / name).write_text("1\t[1]\n")
    with pytest.raises(InputError, match="is of the same"):
        handed_in(small, entered)
    for path in (entered / "mine").iterdir():
        path.rename(entered / "mine/far.csv")
    with pytest.raises(InputError, match="there is no far to rank a row beside"):
        handed_in(small, entered)


def test_a_score_that_was_changed_in_a_kept_summary_is_on_no_page(small: Path, tmp_path: Path) -> None:
    path = write_summary(tmp_path, "bench", read_summaries(small / "out", "bench")["one"])
    held = json.loads(path.read_text())
    held["scores"][0] |= {"mean": 0.001, "by_seed": [0.001, 0.001], "low": 0.0, "high": 0.002}
    path.write_text(json.dumps(held))
    with pytest.raises(InputError, match=r"one\.json: it was changed after it was written"):
        read_summaries(tmp_path, "bench")


@pytest.mark.parametrize(
    ("scaled", "note"), [(lambda p: 100 * p, "are taken as percentages"), (np.log, "taken as logits")]
)
def test_the_terminal_says_how_a_file_was_read_and_where_the_row_stands(
    small: Path, entered: Path, scaled: Callable[[Table], Table], note: str
) -> None:
    write_predictions(small, entered / "mine/one.csv", scaled(near_people(small)))
    command = ["bench", "submit", str(entered / "mine"), "--name", "Mine", "--description", "It."]
    command += ["-o", str(entered / "out"), "--protocol", str(small / "protocol.toml"), "--resamples", "200"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert f"one.csv: {'rows sum to 100, and ' if 'perc' in note else ''}{note}" in result.stderr
    told = json.loads((entered / "out/bench.json").read_text())["sets"]["one"]
    means = sorted(row["soft_nll"]["mean"] for row in told["methods"].values())
    mine = told["methods"]["Mine"]
    rank = means.index(mine["soft_nll"]["mean"]) + 1
    score = f"{mine['soft_nll']['mean']:.3f} [{mine['soft_nll']['low']:.3f}, {mine['soft_nll']['high']:.3f}]"
    line = f"one: Mine has rank {rank} of {len(means)} by soft NLL {score}; worth in people: {mine['worth']}"
    assert line in result.stdout.splitlines()
    # The file's folder is nobody's business.
    assert str(entered) not in (entered / "out/bench/one--Mine.json").read_text()


@pytest.mark.parametrize("engine", ["loop", "fleet"])
def test_a_mistake_in_a_method_of_ones_own_is_told_with_its_line(small: Path, entered: Path, engine: str) -> None:
    (entered / "mine.py").write_text("from deeper import off\n\ndef loss(logits, target):\n    return off(target)\n")
    (entered / "deeper.py").write_text("def off(target):\n    raise KeyError('oops')\n")
    protocol = read_protocol(small / "protocol.toml")
    how = replace(HOW, engine=engine)
    with pytest.raises(InputError, match=r"^deeper\.py, line 2: KeyError: 'oops'; mend it, and add it again$"):
        list(run_bench(protocol, entered / "store", entered / "out", how=how, method=entered / "mine.py"))
    with pytest.raises(InputError, match="no far to rank a row beside"):
        list(run_bench(protocol, entered, entered / "out", how=HOW, method=entered / "mine.py", sets=("far",)))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def delivery(labels):\n    return 3\n", "mine.py: TypeError: .*unexpected keyword argument"),
        ('def delivery(labels, votes=None, *, seed=0, device="cpu"):\n    return 3\n', "mine.py: "),
        ("def model():\n    return 3\n", "mine.py"),
        ("def model(*sizes):\n    return 3\n", "mine.py"),
        ("def loss(logits):\n    return 3\n", "mine.py: TypeError"),
        ("def loss(logits, target):\n    return 'a'\n", "mine.py"),
        ("def loss(logits, target):\n    raise SystemExit(0)\n", "mine.py, line 2: SystemExit: 0; mend it"),
    ],
)
def test_a_method_of_another_shape_is_refused_with_its_file(small: Path, entered: Path, text: str, told: str) -> None:
    (entered / "mine.py").write_text(text)
    protocol = read_protocol(small / "protocol.toml")
    with pytest.raises(InputError, match=told):
        list(run_bench(protocol, entered / "store", entered / "out", how=HOW, method=entered / "mine.py"))
    assert not list((entered / "out/bench").glob("*--mine.json"))


def test_what_is_wrong_in_a_protocol_is_told_of_the_protocol(small: Path) -> None:
    (small / "typo.toml").write_text(PROTOCOL.replace('"linear"', '"linaer"').format(folder=small.as_posix()))
    protocol = read_protocol(small / "typo.toml")
    with pytest.raises(InputError, match=r"^the protocol, on its set one: .*'linaer'"):
        held_out(protocol, protocol.sets[0])


def test_without_summaries_the_remedy_is_a_command_that_is_there(small: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"run it first \(published ones are in docs/results of the repository\)"):
        handed_in(small, tmp_path)


def test_what_a_set_is_ranked_by_is_its_first_score(small: Path) -> None:
    protocol, summaries = read_protocol(small / "protocol.toml"), read_summaries(small / "out", "bench")
    scaled = tuple(row | {"metric": "rps"} for row in summaries["two"].scores if row["metric"] == "accuracy")
    summaries["two"] = replace(summaries["two"], scores=summaries["two"].scores + scaled)
    sets = tuple(set_with(one, ordered=one.name == "two") for one in protocol.sets)
    (block,) = table(standings(set_with(protocol, sets=sets), summaries))
    assert block.header[3:6] == ("rank", "RPS ↓", "soft NLL ↓")
    for row in (row for row in block.rows if row[3] != "-"):
        first = next(cell for cell in row[4:] if cell != "-")
        assert (row[4] == first) == (row[0] == "two")
    by_rank = [float(row[4].split()[0]) for row in block.rows if row[0] == "two" and row[4] != "-"]
    assert by_rank == sorted(by_rank)


def test_answers_that_nobody_of_the_shared_task_could_give_are_refused(
    small: Path, entered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = entered / "lewidi-2025"
    place.mkdir()
    shares = {str(value): 0.5 * (value in (-5, 4)) for value in range(-5, 6)}
    item = {"annotations": {"A": "-5", "B": "4"}, "soft_label": shares}
    (place / "Paraphrase_test.json").write_text(json.dumps({"1": item}))
    monkeypatch.setenv("DISSENSUS_DATA", str(entered))
    (entered / "mine/one.csv").unlink()
    for answers, told in (
        ("[-5, 9]", r"Paraphrase_test_pe.tsv, line 1: an answer in \[-5, 9\] is none that could be given; give -5, "),
        ("[-4.5, 4]", "line 1: an answer"),
        ("[-5, 4]", "these are the votes that they would be scored on"),
    ):
        (entered / "mine/Paraphrase_test_pe.tsv").write_text(f"1\t{answers}\n")
        with pytest.raises(InputError, match=told):
            handed_in(small, entered)
    (entered / "mine/Paraphrase_test_pe.tsv").write_text("1\t[-5, 3]\n")
    (found,) = handed_in(small, entered)
    assert found.measured["lewidi"][0]["score"] == pytest.approx(0.5 / 11)
    assert found.measured["notes"] == ["Paraphrase test pe: normalised absolute distance 0.045"]


@pytest.mark.parametrize(("dataset", "ways"), [("CSC", 7), ("MP", 2), ("Par", 11), ("VariErrNLI", 2)])
def test_soft_labels_of_the_shared_task_are_no_predictions(
    small: Path, entered: Path, monkeypatch: pytest.MonkeyPatch, dataset: str, ways: int
) -> None:
    """Mixed with a constant they are no better; what other people said, and a constant, is let in."""
    place, generator = entered / "lewidi-2025", np.random.default_rng(0)
    place.mkdir()
    monkeypatch.setenv("DISSENSUS_DATA", str(entered))
    (entered / "mine/one.csv").unlink()
    classes = {"CSC": range(1, 7), "MP": range(2), "Par": range(-5, 6), "VariErrNLI": range(2)}[dataset]
    apart = ("neutral", "contradiction", "entailment") if dataset == "VariErrNLI" else ("",)
    size = (2, 40, len(apart))
    drawn = generator.multinomial(4, generator.dirichlet(np.ones(len(classes)), size[1:]), size) / 4
    entries = {}
    for n, row in enumerate(drawn[0].tolist()):
        soft = {
            name: dict(zip(map(str, classes), shares, strict=True)) for name, shares in zip(apart, row, strict=True)
        }
        answers = "neutral" if dataset == "VariErrNLI" else str(classes[0])
        entries[str(n)] = {"annotations": {"A": answers}, "soft_label": soft if apart[0] else soft[""]}
    name = "Paraphrase" if dataset == "Par" else dataset
    (place / f"{name}_test.json").write_text(json.dumps(entries))
    path = entered / f"mine/{name if dataset != 'Par' else 'Par'}_test_soft.tsv"

    def write(said: Table) -> None:
        order = np.argsort(apart)
        wide = np.pad(said, ((0, 0), (0, 0), (ways - len(classes), 0)))[:, order]
        lists = (wide if apart[0] else wide[:, 0]).tolist()
        path.write_text("".join(f"{n}\t{json.dumps(row)}\n" for n, row in reversed(list(enumerate(lists)))))

    for known in (drawn[0], 0.98 * drawn[0] + 0.02 / len(classes), 0.6 * drawn[0] + 0.4 / len(classes)):
        write(known)
        with pytest.raises(InputError, match="these are the votes that they would be scored on"):
            handed_in(small, entered)
    for place_in, honest in enumerate((drawn[1], np.full_like(drawn[1], 1 / len(classes)))):
        write(honest)
        handed_in(small, entered, name=f"Honest {place_in}")


def test_items_of_the_splits_are_listed_for_those_who_hand_in(small: Path, tmp_path: Path) -> None:
    protocol = read_protocol(small / "protocol.toml")
    result = CliRunner().invoke(app, ["bench", "splits", "two", "--protocol", str(small / "protocol.toml")])
    assert result.exit_code == 0, result.output
    header, *rows = csv.reader(io.StringIO(result.stdout))
    data, tested, _ = held_out(protocol, protocol.sets[1])
    assert header == ["item", "split", *data.human.classes]
    assert [row[0] for row in rows if row[1] == "test"] == data.human.items[tested].tolist()
    assert len(rows) == len(data.human)
    # Its votes were cut: three of each item that may be trained on are told, and none of those held out.
    study = open_study(small / "out/bench-studies/two.toml", small / "store")
    given = dict(
        zip(data.human.items.tolist(), study.data.targets[study.study.targets[0].name].counts.tolist(), strict=True)
    )
    assert all(row[2:] == (["", ""] if row[1] == "test" else list(map(str, given[row[0]]))) for row in rows)
    assert {sum(map(int, row[2:])) for row in rows if row[1] == "train"} == {3}


@pytest.mark.parametrize("name", [each.name for each in read_protocol().sets if each.name != "cifar-10n"])
def test_splits_of_every_set_are_read_back(name: str) -> None:
    """Items may hold commas, quotes and line ends; those of CIFAR-10N are numbers, and 60,000 images take long."""
    result = CliRunner().invoke(app, ["bench", "splits", name])
    if isinstance(result.exception, InputError):
        pytest.skip(str(result.exception))
    header, *rows = csv.reader(io.StringIO(result.stdout))
    again = pl.read_csv(result.stdout_bytes, infer_schema=False).fill_null("")
    assert again.rows() == [tuple(row) for row in rows]
    assert len({(row[0], *row[2:3]) if "fold" in header else row[0] for row in rows}) == len(rows)


def test_the_published_page_is_what_the_tool_writes(tmp_path: Path) -> None:
    if not (RESULTS / "bench").is_dir():
        pytest.skip("docs/results/bench holds no summaries yet")
    for path in write_pages(read_protocol(), read_summaries(RESULTS, "bench"), tmp_path):
        assert (RESULTS / path.name).read_text() == path.read_text(), "dissensus bench --from docs/results"


def test_the_published_mean_ranks_are_counted_again_from_the_summaries() -> None:
    """By nothing of ours: how many methods of a set score lower, from the numbers as they are kept."""
    page = json.loads((RESULTS / "bench.json").read_text())
    scores: dict[str, dict[str, float]] = {name: {} for name in page["sets"]}
    for path in (RESULTS / "bench").glob("*.json"):
        on, _, own = path.stem.partition("--")
        for row in json.loads(path.read_text())["scores"] if on in scores else ():
            ranked = not own and row["system"] in page["baselines"] if row["baseline"] else True
            if ranked and row["stratum"] == "all" and row["metric"] == page["sets"][on]["metric"]:
                scores[on][own or row["system"]] = row["mean"]
    assert len(page["comparisons"]) == 7
    for comparison in page["comparisons"].values():
        ranking = comparison["ranking"]
        on_all = set.intersection(*(set(scores[name]) for name in ranking["sets"]))
        ranks = {
            method: [
                1
                + sum((scores[name][other] < scores[name][method]) for other in on_all)
                # Those that are equal share the mean of their places.
                + sum((scores[name][other] == scores[name][method]) for other in on_all - {method}) / 2
                for name in ranking["sets"]
            ]
            for method in on_all
        }
        assert {method: sum(places) / len(places) for method, places in ranks.items()} == pytest.approx(
            ranking["mean_ranks"], rel=1e-5
        )
        assert friedmanchisquare(*ranks.values()).statistic == pytest.approx(ranking["chi_square"], rel=1e-5)
