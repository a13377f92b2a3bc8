"""The command line as a user meets it: its exit code, and what it prints where.

Commands are run in this process, which saves the second that each would take to import what it needs; that a process
of its own says the same is one test.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from dissensus.cli import main
from dissensus.cli.printing import table
from dissensus.datasets import DATASETS

if TYPE_CHECKING:
    from pathlib import Path

VOTES = "item,annotator,label\na,ann,cat\na,bob,cat\na,eve,dog\nb,ann,dog\nb,bob,dog\nb,eve,dog\n"


def dissensus(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What `python -m dissensus` would print and end with."""
    command, code = ["dissensus", *(str(each) for each in arguments)], 0
    out, error = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(error):
        patch.setattr(sys, "argv", command)
        if cwd is not None:
            patch.chdir(cwd)
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return subprocess.CompletedProcess(command, code, out.getvalue(), error.getvalue())


def in_its_own_process(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dissensus", *(str(each) for each in arguments)]
    # Given by name, since readline, which pytest imports, tells children a width behind Python's back.
    environment = dict(os.environ)
    quiet = subprocess.DEVNULL
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=quiet, env=environment)


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    return path


def test_a_process_of_its_own_says_the_same(votes: Path, tmp_path: Path) -> None:
    for arguments, code in ((["votes", "inspect", votes], 0), (["labels", tmp_path / "nowhere.csv"], 2)):
        here, there = dissensus(*arguments), in_its_own_process(*arguments)
        assert (there.returncode, there.stdout, there.stderr) == (code, here.stdout, here.stderr)
        assert here.returncode == code


def test_inspect_prints_agreement_and_says_how_it_read_the_file(votes: Path) -> None:
    done = dissensus("votes", "inspect", votes)
    assert done.returncode == 0
    assert "6 votes, 2 items, 2 classes, 3 annotators" in " ".join(done.stdout.split())
    assert "Krippendorff's alpha, nominal" in done.stdout
    assert "too few to say whom to look at" in " ".join(done.stdout.split())
    assert done.stderr.startswith(
        "read as long: 2 items by 'item' (3 votes each), 2 classes by 'label' (cat 2, dog 4), 3 annotators by "
        "'annotator'\n"
    )


def test_inspect_as_json_is_json_and_nothing_else(votes: Path) -> None:
    done = dissensus("votes", "inspect", votes, "--json", "-")
    found = json.loads(done.stdout)
    assert (found["votes"], found["items"], found["annotators"]) == (6, 2, 3)
    assert found["agreement"]["krippendorff_alpha_nominal"]["value"] == pytest.approx(0.375)
    assert found["columns"]["item"] == "item"


def test_labels_are_written_with_what_follows_from_them(votes: Path, tmp_path: Path) -> None:
    out = tmp_path / "labels.csv"
    done = dissensus("labels", votes, "-o", out)
    assert done.returncode == 0, done.stderr
    table = pl.read_csv(out)
    assert table.columns == ["item", "cat", "dog", "majority", "tied", "entropy", "judgements"]
    assert table["cat"].to_list() == pytest.approx([2 / 3, 0])
    assert table["majority"].to_list() == ["cat", "dog"]


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "tsv", "npz"])
def test_labels_in_every_kind_of_file_are_the_same(votes: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"labels.{ending}"
    assert dissensus("labels", votes, "-o", out).returncode == 0
    if ending == "npz":
        with np.load(out) as opened:
            rows = opened["probabilities"].tolist()
            assert opened["classes"].tolist() == ["cat", "dog"]
            assert opened["items"].tolist() == ["a", "b"]
    else:
        read = {"parquet": pl.read_parquet, "jsonl": pl.read_ndjson}.get(ending)
        table = pl.read_csv(out, separator="\t") if read is None else read(out)  # type: ignore[operator]
        rows = table.select("cat", "dog").to_numpy().tolist()
    assert rows == [[pytest.approx(2 / 3), pytest.approx(1 / 3)], [0, 1]]


def test_an_annotator_model_writes_its_annotators_and_takes_gold(votes: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.csv"
    gold.write_text("item,label\na,dog\n")
    out, who = tmp_path / "labels.csv", tmp_path / "annotators.csv"
    done = dissensus("labels", votes, "--scheme", "one-coin", "--gold", gold, "-o", out, "--skills", who)
    assert done.returncode == 0, done.stderr
    assert "one-coin: 6 judgements by 3 annotators" in done.stdout
    assert pl.read_csv(out)["dog"].to_list()[0] == 1
    skills = dict(zip(*pl.read_csv(who).select("annotator", "skill"), strict=True))
    assert skills["eve"] == max(skills.values())


@pytest.mark.parametrize(
    ("gold", "sentence"),
    [
        ("x,y,z\na,dog,1\n", "gold.csv: none of the columns 'x', 'y', 'z' is known to hold the item or its class"),
        ("item,label\na,eel\n", "gold.csv, line 2: the label 'eel' is not one of the classes"),
        ("item,label\nz,dog\n", "gold.csv: none of the 1 gold items has votes"),
        ("item,label\na,dog\nb,\n", "gold.csv, line 3: column 'label' is empty"),
        ("item,label\na,dog\na,cat\n", "gold.csv, line 3: item 'a' has a row already"),
        ("", "gold.csv: the file is empty"),
    ],
)
def test_broken_gold_is_refused_with_its_line(votes: Path, tmp_path: Path, gold: str, sentence: str) -> None:
    (tmp_path / "gold.csv").write_text(gold)
    done = dissensus(
        "labels", votes, "--scheme", "one-coin", "--gold", tmp_path / "gold.csv", "-o", tmp_path / "labels.csv"
    )
    assert done.returncode == 2
    assert sentence in done.stderr
    assert not (tmp_path / "labels.csv").exists()


@pytest.mark.parametrize(
    ("gold", "options"),
    [
        ("question,truth\na,dog\nz,cat\n", []),
        ("n,x,y\n1,a,dog\n2,z,eel\n", ["--gold-columns", "x,y"]),
    ],
)
def test_gold_has_any_column_names_and_items_without_votes(
    votes: Path, tmp_path: Path, gold: str, options: list[str]
) -> None:
    (tmp_path / "gold.csv").write_text(gold)
    done = dissensus("labels", votes, "--scheme", "one-coin", "--gold", tmp_path / "gold.csv", *options)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 gold items have no votes and are left out" in done.stderr


def test_the_options_of_annotator_models_reach_them(votes: Path) -> None:
    done = dissensus("labels", votes, "--scheme", "dawid-skene", "--smoothing", "0", "--max-iterations", "1")
    assert "not converged after 1 iterations" in " ".join(done.stdout.split())
    assert dissensus("labels", votes, "--scheme", "mace", "--class-prior", "even").returncode == 0
    done = dissensus("labels", votes, "--scheme", "glad", "--smoothing", "2")
    assert (done.returncode, "it has no option 'smoothing'" in done.stderr) == (2, True)


def test_a_scheme_for_unsure_says_that_nobody_was(votes: Path) -> None:
    done = dissensus("labels", votes, "--scheme", "uncertainty-weighted")
    assert "the votes hold no responses of unsure" in done.stderr


@pytest.mark.parametrize("columns", ["40", "80", "120", "200"])
def test_inspect_opens_with_three_sentences_and_fits_the_screen(
    votes: Path, columns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    done = dissensus("votes", "inspect", votes, "--html", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= int(columns)
    said = " ".join(done.stdout.split())
    change = "(would hardly change the majority|would have another majority)"
    assert re.search(f"Two people who judge.*{change}.*too few to say whom to look at.*Agreement", said)
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 3
    assert "http" not in page.replace("http://www.w3.org", "")


def test_a_long_list_of_classes_is_folded(tmp_path: Path) -> None:
    rows = "".join(f"{k % 40},{k % 3},class {k % 96:02}\n" for k in range(960) if k % 40 * 3 + k % 3 == k % 120)
    (tmp_path / "many.csv").write_text("item,annotator,label\n" + rows)
    done = dissensus("votes", "inspect", tmp_path / "many.csv", "--duplicates", "first", "--force")
    assert done.returncode == 0, done.stderr
    assert "more" in done.stdout
    assert len(done.stdout.splitlines()) < 60


def test_original_labels_and_groups_are_shown(tmp_path: Path) -> None:
    rows = "".join(f"{i},{a},{'xy'[(i + a) % 2]},{'web' if i % 2 else 'book'},x\n" for i in range(6) for a in range(3))
    (tmp_path / "v.csv").write_text("item,annotator,label,source,old\n" + rows)
    done = dissensus("votes", "inspect", tmp_path / "v.csv", "--by", "source", "--original", "old", "--json", "-")
    found = json.loads(done.stdout)
    assert [(group["name"], group["items"]) for group in found["by"]["groups"]] == [("book", 3), ("web", 3)]
    assert (found["original"]["items"], found["original"]["same"]) == (6, 0.5)
    assert len(found["sentences"]) == 3


@pytest.mark.parametrize(
    "line",
    [
        ["votes", "inspect", "my votes.csv"],
        ["votes", "convert", "my votes.csv", "-o", "-"],
        ["labels", "my votes.csv"],
        ["plan", "my votes.csv"],
        ["evaluate", "--votes", "my votes.csv", "--predictions", "my model.csv", "--resamples", "5"],
        ["evaluate", "--votes", "my votes.csv", "--predictions", "each.csv", "--per", "annotator"],
        ["stand-in", "--votes", "my votes.csv", "--predictions", "my model.csv", "--least-items", "2"],
    ],
)
def test_the_next_step_reads_the_votes_as_before_and_quotes_names(tmp_path: Path, line: list[str]) -> None:
    rows = [f"{i},{who},{'cat' if (i + k) % 3 else 'dog'}" for i in range(12) for k, who in enumerate("abc")]
    (tmp_path / "my votes.csv").write_text("\n".join(["q,by whom,said", *rows]))
    (tmp_path / "my model.csv").write_text("q,cat,dog\n" + "".join(f"{i},0.6,0.4\n" for i in range(12)))
    each = "".join(f"{i},{who},0.6,0.4\n" for i in range(12) for who in "abc")
    (tmp_path / "each.csv").write_text("q,by whom,cat,dog\n" + each)
    reading = ["--item", "q", "--annotator", "by whom", "--label", "said", "--classes", "cat,dog", "--nominal"]
    done = dissensus(*line, *reading, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    hint = done.stderr.splitlines()[-1].removeprefix("next: ")
    words = shlex.split(hint, comments=True)
    assert words[0] == "dissensus"
    assert "my votes.csv" in words
    assert words[-len(reading) :] == reading
    if line[:2] == ["votes", "inspect"]:
        assert dissensus(*words[1:], cwd=tmp_path).returncode == 0


def test_a_stream_counts_the_same(votes: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    assert dissensus("labels", votes, "-o", one).returncode == 0
    assert dissensus("labels", votes, "--stream", "-o", two).returncode == 0
    assert one.read_text() == two.read_text()


def test_converting_there_and_back_changes_nothing(votes: Path, tmp_path: Path) -> None:
    wide, back = tmp_path / "wide.csv", tmp_path / "back.csv"
    assert dissensus("votes", "convert", votes, "-o", wide, "--to", "wide").returncode == 0
    assert wide.read_text().splitlines()[0] == "item,ann,bob,eve"
    assert wide.with_name("wide.csv.json").exists()
    assert dissensus("votes", "convert", wide, "-o", back).returncode == 0
    assert sorted(back.read_text().splitlines()) == sorted(VOTES.splitlines())


def test_data_shows_what_is_here() -> None:
    assert "words" in dissensus("data", "list").stdout
    assert "75,200 votes" in dissensus("data", "show", "words").stdout
    assert "comes with the package vaderSentiment" in dissensus("data", "get", "words").stderr


def test_data_that_cannot_be_fetched_is_a_sentence_with_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISSENSUS_DATA", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    done = dissensus("data", "get", "fer+")
    assert done.returncode == 2
    assert "could not fetch https://raw.githubusercontent.com/microsoft/FERPlus" in done.stderr
    assert str(tmp_path / "ferplus" / "fer2013new.csv") in done.stderr
    assert list((tmp_path / "ferplus").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("", [], "empty"),
        ("item,annotator\na,ann\n", ["--label", "label"], "label"),
        (VOTES + "a,ann,dog\n", [], "ann"),
        (VOTES, ["--classes", "cat,bird"], "dog"),
        (VOTES.replace("cat", "\udcff"), [], "UTF-8"),
        (VOTES.replace("b,ann,dog", "b,,dog"), [], "line 5"),
    ],
    ids=["empty", "missing-column", "duplicate", "unknown-label", "utf-8", "missing-value"],
)
def test_a_bad_file_is_one_sentence_exit_code_2_and_nothing_written(
    tmp_path: Path, text: str, options: list[str], sentence: str
) -> None:
    path, out = tmp_path / "votes.csv", tmp_path / "labels.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    done = dissensus("labels", path, "-o", out, *options)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert sentence in done.stderr
    assert str(path) in done.stderr
    assert len([line for line in done.stderr.splitlines() if not line.startswith("  dissensus labels")]) == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["labels", "words", "--scheme", "frequencey"], "is not a scheme; did you mean 'frequency'? choose frequency"),
        (["labels", "words", "-o", "labels.doc"], "choose one of .csv"),
        (["labels", "words", "--skills", "a.csv"], "has no annotators to write"),
        (["labels", "words", "--concentration", "1"], "has no option 'concentration'"),
        (["votes", "inspect", "words", "--item", "x"], "needs no --item"),
        (["votes", "inspect", "nowhere.csv"], "nowhere.csv"),
        (["data", "show", "wrods"], "is not a known dataset"),
        (["study", "run", "wrods"], "is no study"),
    ],
)
def test_a_wrong_call_is_one_sentence(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    done = dissensus(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_hostile_names_are_shown_as_text(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,annotator,label\n[red]x[/],a,\x1b[2Jcat\n[red]x[/],b,[link=x]dog\n")
    done = dissensus("votes", "inspect", path)
    assert done.returncode == 0, done.stderr
    assert "[red]x[/]" in done.stdout
    assert "\x1b[2J" not in done.stdout


def test_a_study_runs_from_the_command_line_and_resumes(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    rows = [f"{i},{a},{'xy'[(i + (generator.random() < 0.2)) % 2]}" for i in range(40) for a in range(3)]
    (tmp_path / "votes.csv").write_text("item,annotator,label\n" + "\n".join(rows) + "\n")
    np.save(tmp_path / "features.npy", np.eye(2)[np.arange(40) % 2])
    (tmp_path / "study.toml").write_text(
        '[dataset]\nvotes = "votes.csv"\nfeatures = "features.npy"\n[grid]\ndeliveries = ["soft", "majority"]\n'
        'models = ["linear"]\nseeds = 2\n[training]\nepochs = 2\n'
    )
    done = dissensus("study", "run", "study.toml", "--engine", "loop", "--json", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (told,) = json.loads(done.stdout)
    assert (told["study"], told["systems"][:2]) == ("study", ["soft", "majority"])
    assert "4 runs, 0 in dissensus-runs already" in done.stderr
    again = dissensus("study", "run", "study.toml", "--engine", "loop", cwd=tmp_path)
    assert "4 runs, 4 in dissensus-runs already" in again.stderr
    assert "4 of 4 runs" in dissensus("study", "status", "study.toml", cwd=tmp_path).stdout


def test_import_and_help_are_quick_and_bring_no_torch() -> None:
    """The bar is 0.3 s of CPU time, or on a busy machine 2.5 times what Typer and Rich take in the same moment."""
    spent = "used = resource.getrusage(resource.RUSAGE_SELF)\nprint(used.ru_utime + used.ru_stime, sorted(heavy))"
    alone = f"import resource, typer.main, typer.rich_utils, rich.markdown\nheavy = ()\n{spent}"
    help_page = (
        "import resource, sys; sys.argv = ['dissensus', '--help']\nimport dissensus\nfrom dissensus.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"heavy = {{'torch', 'polars', 'scipy', 'numpy', 'msgspec'}} & set(sys.modules)\n{spent}"
    )

    def seconds(program: str) -> float:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        line = done.stdout.splitlines()[-1]
        assert line.endswith("[]"), line
        return float(line.split()[0])

    measured = [(seconds(help_page), seconds(alone)) for _ in range(5)]
    assert any(ours < max(0.3, 2.5 * theirs) for ours, theirs in measured), measured


def test_a_known_set_is_cut_by_what_describes_its_people() -> None:
    if not DATASETS["crehate"].present():
        pytest.skip("crehate is not in DISSENSUS_DATA")
    for option in ("--by", "--attribute"):
        done = dissensus("votes", "inspect", "crehate", option, "nationality", "--resamples", 0, "--json")
        groups = json.loads(done.stdout)["by_attribute"]["nationality"]
        assert {group["name"] for group in groups} >= {"Singapore", "South Africa"}
    assert "did you mean 'age'?" in dissensus("votes", "inspect", "crehate", "--attribute", "ag").stderr
    assert "needs no --item" in dissensus("votes", "inspect", "crehate", "--item", "x").stderr


def test_systems_are_ranked_from_a_file_of_preferences(tmp_path: Path) -> None:
    said = [("x", "y", "model_a"), ("y", "x", "model_b"), ("y", "z", "tie"), ("x", "z", "model_a")] * 5
    lines = [f"{k // 2},{a},{b},ann,{won}" for k, (a, b, won) in enumerate(said)]
    (tmp_path / "pairs.csv").write_text("\n".join(["question_id,model_a,model_b,judge,winner", *lines]))
    done = dissensus("votes", "ranking", tmp_path / "pairs.csv", "--duplicates", "first", "--force")
    assert done.returncode == 0, done.stderr
    assert "named the sides of their pair the other way round" in done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert next(row[1] for row in rows if row and row[0] == "1") == "x"
    told = json.loads(
        dissensus("votes", "ranking", tmp_path / "pairs.csv", "--duplicates", "first", "--force", "--json").stdout
    )
    assert told["rankings"]["people"]["standings"][0]["system"] == "x"
    assert dissensus("votes", "ranking", tmp_path / "pairs.csv", "--sides", "nothing").returncode == 2


@pytest.mark.parametrize("width", [30, 60, 100])
def test_a_value_longer_than_the_screen_stays_beside_its_name(width: int) -> None:
    shown, value = table(), "https://example.org/" + "x" * 150
    for name, cell in (("address", value), ("licence", "MIT")):
        shown.add_row(name, cell)
    console = Console(width=width, file=io.StringIO())
    console.print(shown)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    named = [line for line in lines if not line.startswith(" ")]
    assert [line.split()[0] for line in named] == ["address", "licence"]
    assert "".join(line[7:].strip() for line in lines) == value + "MIT"
    assert max(map(len, lines)) <= width
