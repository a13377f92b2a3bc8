"""A paper from its claims to its pages, and the pages again without the runs."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from dissensus.cli import app
from dissensus.errors import InputError
from dissensus_papers.papers import judge_paper, read_paper, read_summaries, write_pages
from dissensus_papers.papers.kept import kept_summary, write_summary
from dissensus_papers.papers.measured import rounded
from dissensus_papers.papers.pages import counted
from dissensus_papers.papers.running import Reproduction, refuse_other_studies, reproduce
from dissensus_papers.papers.summary import without_place
from dissensus_train.studies import read_study, study_toml

if TYPE_CHECKING:
    from tests.papers.conftest import Small

RESULTS = Path(__file__).parents[4] / "docs" / "results"


def test_every_claim_has_a_verdict_and_what_was_not_run_is_listed(small: Small, tmp_path: Path) -> None:
    paper = read_paper(small.claims)
    markdown, html, told = (
        path.read_text() for path in write_pages(paper, read_summaries(small.out, "claims"), tmp_path)
    )
    found = json.loads(told)
    verdicts = {each["id"]: each["verdict"] for each in found["claims"]}
    assert set(verdicts) == {"kl", "accuracy", "gain", "far", "all"}
    assert verdicts["far"] == "not run"
    assert any("nowhere.csv" in each for each in found["not_run"])
    assert found["claims"][0]["seeds_on_its_side"][1] == 3
    assert found["studies"]["small"]["seeds"] == [3, 5, 8]
    assert found["studies"]["small"]["machine_hours"] > 0
    for page in (markdown, html):
        for words in (
            "A small paper",
            "KL falls",
            "Everything.",
            "machine hours",
            "marginal",
            "majority + temperature",
        ):
            assert words in page
        assert "quick run" not in page
    assert html.count("<table>") == markdown.count("| --- |\n") or html.count("<table>") > 3


def test_the_head_says_what_the_counts_rest_on(small: Small, tmp_path: Path) -> None:
    paper, summaries = read_paper(small.claims), read_summaries(small.out, "claims")

    def head(**changed: Any) -> str:
        found = {name: replace(each, **changed) for name, each in summaries.items()}
        page = write_pages(paper, found, tmp_path)[0].read_text()
        return page[: page.index("\n## ")]

    # Of claims of the paper alone: the control is none.
    told = "4 claims above are from: 2 from the paper itself, 1 from notes about it, 1 from arithmetic on its numbers."
    assert f"{told} For 3 of them it gives no value (-): the direction is the paper's, the range is ours." in head()
    # Nothing says what a summary without rules was run for; where nothing was run there is nothing to judge.
    with pytest.raises(InputError, match="not those that it was run for \\(rules not named, here"):
        head(rules="")
    assert "not run" in head(rules="", missing="its data are not here")


def test_what_could_not_have_failed_is_listed_apart_with_its_note(small: Small, tmp_path: Path) -> None:
    path = tmp_path / "ok.toml"
    path.write_text(
        small.claims.read_text().replace(
            'says = "KL falls"', 'says = "KL falls"\ncannot_fail = true\nnote = "It must."'
        )
    )
    # As if it had been run for that: a claim that leaves the headline after the run is refused.
    paper, found = read_paper(path), read_summaries(small.out, "claims")
    summaries = {name: replace(each, rules=paper.rules(name)) for name, each in found.items()}
    pages = write_pages(paper, summaries, tmp_path)
    markdown, told = pages[0].read_text(), json.loads(pages[2].read_text())
    apart = markdown.split("## Could not have failed here, and is not counted")[1].split("\n## ")[0]
    assert "KL falls: here" in apart
    assert markdown.count("It must.") == apart.count("It must.") == 1
    assert markdown.count("KL falls") == 1
    assert sum(told["verdicts"]["claims"].values()) == 3
    assert "the paper's 3 claims above" in markdown
    # What is typed again is the file that was given.
    assert "dissensus reproduce ok.toml --from FOLDER" in markdown


def test_figures_say_where_their_axis_ends(small: Small, tmp_path: Path) -> None:
    paper = read_paper(small.claims)
    page = write_pages(paper, read_summaries(small.out, "claims"), tmp_path)[1].read_text()
    figure = page.split("<svg")[1].split("</svg>")[0]
    low, high = re.findall(r"<text [^>]*>([^<]*)</text>", figure)
    (value,) = re.findall(r"ours ([-+.0-9]+) %", figure)
    assert float(low.removesuffix(" %")) < float(value) < float(high.removesuffix(" %"))
    assert figure.count('font-size="11"') == 2


def test_pages_are_rebuilt_from_summaries_alone(small: Small, tmp_path: Path) -> None:
    paper = read_paper(small.claims)
    first = [path.read_bytes() for path in write_pages(paper, read_summaries(small.out, "claims"), tmp_path / "one")]
    shutil.copytree(small.out / "claims", tmp_path / "two" / "claims")
    result = CliRunner().invoke(app, ["reproduce", str(small.claims), "--from", str(tmp_path / "two")])
    assert result.exit_code == 0, result.output
    assert [(tmp_path / "two" / f"claims.{end}").read_bytes() for end in ("md", "html", "json")] == first


def test_a_study_that_was_changed_after_its_run_is_refused_and_other_seeds_are_not(
    small: Small, tmp_path: Path
) -> None:
    """A page would say of the new study what the old one came to; a machine without the study writes the page."""
    shutil.copytree(small.claims.parent, tmp_path / "paper", ignore=shutil.ignore_patterns("store", "runs"))
    claims, study = tmp_path / "paper" / small.claims.name, tmp_path / "paper" / "small.toml"
    paper, summaries, text = read_paper(claims), read_summaries(small.out, "claims"), study.read_text()
    refuse_other_studies(paper, summaries)
    for old, new in (("epochs = 4", "epochs = 40"), ('"linear"', '"simple-ffn"'), ("votes.csv", "other.csv")):
        assert old in text
        study.write_text(text.replace(old, new))
        with pytest.raises(InputError, match="the study small is not the one that its summary is of; judge by"):
            refuse_other_studies(paper, summaries)
    study.write_text(text.replace("[3, 5, 8]", "[1, 2]"))
    refuse_other_studies(paper, summaries)
    study.unlink()
    refuse_other_studies(paper, summaries)


def test_folds_have_no_splits_of_their_own(small: Small, tmp_path: Path) -> None:
    shutil.copytree(small.claims.parent, tmp_path / "paper", ignore=shutil.ignore_patterns("store", "runs"))
    claims, study = tmp_path / "paper" / small.claims.name, tmp_path / "paper" / "small.toml"
    claims.write_text(claims.read_text().replace('name = "small"\n', 'name = "small"\nown_splits = true\n', 1))
    study.write_text(study.read_text().replace('file = "splits.csv"', "folds = 3"))
    with pytest.raises(
        InputError, match="small has folds, which hold each item out once; leave own_splits or folds out"
    ):
        next(reproduce(read_paper(claims), tmp_path / "store", tmp_path / "out", how=Reproduction(only=("small",))))
    assert not (tmp_path / "store").exists()


def test_an_average_of_what_was_not_all_measured_has_no_verdict(small: Small) -> None:
    summaries = read_summaries(small.out, "claims")
    answers = {name: each for name, each in summaries["small"].answers.items() if name != "accuracy"}
    part = {**summaries, "small": replace(summaries["small"], answers=answers)}
    judged = {each.claim.id: each for each in judge_paper(read_paper(small.claims), part)}
    assert (judged["all"].verdict, judged["all"].why) == ("not run", "1 of 2 claims that it is about were measured")


def test_what_runs_alone_obey_is_refused_beside_from_and_a_file_is_no_folder(small: Small, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for given, told in (
        (["--from", str(small.out), "--quick", "--seeds", "2"], "runs nothing; leave out --quick, --seeds"),
        (["--from", str(small.out), "--only", "small"], "leave out --only"),
        (["-o", str(tmp_path / "file")], "this is a file; name a folder"),
    ):
        with pytest.raises(InputError, match=told):
            CliRunner().invoke(app, ["reproduce", str(small.claims), *given], catch_exceptions=False)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_where_a_folder_has_a_pages_name_no_page_is_written(tmp_path: Path) -> None:
    (tmp_path / "gheibi.json").mkdir()
    with pytest.raises(InputError, match=r"gheibi\.json: it is a folder"):
        write_pages(read_paper("gheibi"), read_summaries(RESULTS, "gheibi"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["gheibi.json"]


@pytest.mark.parametrize("name", ["gheibi", "pavlovic", "singh"])
def test_the_published_pages_are_what_the_tool_writes(name: str, tmp_path: Path) -> None:
    if not (RESULTS / name).is_dir():
        pytest.skip(f"docs/results/{name} holds no summaries yet")
    for path in write_pages(read_paper(name), read_summaries(RESULTS, name), tmp_path):
        assert (RESULTS / path.name).read_text() == path.read_text(), f"dissensus reproduce {name} --from docs/results"


@pytest.mark.parametrize("name", ["gheibi", "pavlovic", "singh", "bench"])
def test_pages_have_no_digits_in_which_machines_differ(name: str) -> None:
    numbers: list[str] = []
    json.loads((RESULTS / f"{name}.json").read_text(), parse_float=numbers.append)
    assert len(numbers) > 100
    assert {number for number in numbers if float(number) != rounded(float(number))} == set()


def test_a_rule_that_is_changed_after_the_run_is_refused_and_words_may_change(small: Small, tmp_path: Path) -> None:
    summaries = read_summaries(small.out, "claims")
    assert set(summaries["small"].versions) >= {"dissensus", "torch"}
    assert set(summaries["small"].data) == {"votes", "features"}
    path = tmp_path / "claims.toml"
    text = small.claims.read_text()
    path.write_text(text.replace('says = "KL falls"', 'says = "KL falls by much"'))
    told = json.loads(write_pages(read_paper(path), summaries, tmp_path)[2].read_text())
    assert told["claims"][0]["says"] == "KL falls by much"
    for old, new in (
        ("in_direction = [-inf, 0.0]", "in_direction = [-inf, 9.0]"),
        ('metric = "kl"', 'metric = "brier"'),
        # What is counted, and where; what it is held against; and what is said of several claims together.
        ("paper = -0.3", "paper = -0.4"),
        ('mark = "verified"', 'mark = "control"'),
        ('says = "KL falls"', 'says = "KL falls"\ncannot_fail = true'),
        ('says = "KL falls"', 'says = "KL falls"\ntested_on = "other people"'),
        ('of = ["kl", "accuracy"]\nreproduced = [-1.0, 0.0]', 'of = ["kl", "accuracy"]\nreproduced = [-1.0, 0.5]'),
        ('of = ["kl", "accuracy"]', 'of = ["kl"]'),
        (text[text.index('[[claims]]\nid = "all"') :], ""),
    ):
        assert old in text
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(InputError, match=r"claims: the claims on small are not those that it was run for \(rules"):
            write_pages(read_paper(path), summaries, tmp_path)
    result = CliRunner().invoke(app, ["reproduce", str(path), "--from", str(small.out), "-o", str(tmp_path / "other")])
    assert isinstance(result.exception, InputError)
    assert not (tmp_path / "other").exists()


def test_pages_from_summaries_go_where_they_are_asked_to(small: Small, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in small.out.rglob("*") if path.is_file()}
    command = ["reproduce", str(small.claims), "--from", str(small.out), "-o", str(tmp_path / "there")]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == ["claims.html", "claims.json", "claims.md"]
    assert {path: path.read_bytes() for path in small.out.rglob("*") if path.is_file()} == before


def test_quick_replaces_no_full_run_and_asks_for_a_study_that_says_what_it_changes(
    small: Small, tmp_path: Path
) -> None:
    paper, how = read_paper(small.claims), Reproduction(quick=True)
    full = kept_summary(small.out, paper.name, "small")
    assert full is not None
    write_summary(tmp_path, paper.name, full)
    with pytest.raises(InputError, match="it holds small of a full run, which quick would replace; choose another"):
        next(reproduce(paper, tmp_path, tmp_path, how=how))
    with pytest.raises(InputError, match="no study of it says what quick changes; add quick = "):
        next(reproduce(paper, tmp_path, tmp_path / "other", how=replace(how, only=("far-away",))))


def test_a_target_that_the_study_lacks_is_refused_before_it_is_trained(small: Small, tmp_path: Path) -> None:
    for path in small.claims.parent.glob("*.*"):
        shutil.copy(path, tmp_path)
    text = small.claims.read_text().replace("paper = -0.3\n", 'paper = -0.3\ntarget = "majorty"\n')
    (tmp_path / "claims.toml").write_text(text)
    with pytest.raises(InputError, match="claim kl names 'majorty', no target of small"):
        next(reproduce(read_paper(tmp_path / "claims.toml"), tmp_path / "store", tmp_path / "out", how=Reproduction()))
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("paper", "kind"), [("singh", "claims"), ("gheibi", "claims"), ("pavlovic", "on other people")]
)
def test_readme_and_page_tell_the_counts_of_the_published_results(paper: str, kind: str) -> None:
    judged = judge_paper(read_paper(paper), read_summaries(RESULTS, paper))
    tally = counted(judged)[kind]
    readme = (RESULTS.parents[1] / "README.md").read_text()
    told = f"[{paper.capitalize()}](results/{paper}.md)"
    page = (RESULTS.parent / "papers.md").read_text().partition(told)[2].partition("\n\n")[0]
    assert f"results/{paper}.md) ({tally['reproduced']} of {sum(tally.values())}" in readme
    for verdict in ("in direction", "inconclusive"):
        assert f"{tally[verdict]} {verdict}" in page, verdict


def test_a_quick_run_says_so_on_every_page(small: Small, tmp_path: Path) -> None:
    command = ["reproduce", str(small.claims), "--quick", "--engine", "loop", "--device", "cpu", "--resamples", "200"]
    result = CliRunner().invoke(app, [*command, "--store", str(tmp_path / "store"), "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    kept = read_summaries(tmp_path / "out", "claims")
    assert {name: (each.quick, each.study, each.seeds) for name, each in kept.items()} == {
        "small": (True, "small-quick", (3, 5))
    }
    for end in ("md", "html"):
        assert "This is a quick run" in (tmp_path / "out" / f"claims.{end}").read_text()


def test_only_the_named_studies_are_run(small: Small, tmp_path: Path) -> None:
    paper = read_paper(small.claims)
    with pytest.raises(InputError, match="it has no study 'big'; choose small, far-away"):
        list(reproduce(paper, small.store, tmp_path, how=Reproduction(only=("big",))))
    how = Reproduction(only=("small",), engine="loop", device="cpu", resamples=20)
    trained = []
    found = list(reproduce(paper, small.store, tmp_path, how=how, train=lambda plan: trained.append(len(plan.waiting))))
    assert ([each.name for each in found], trained) == (["small"], [0])


def test_a_stand_in_is_said_beside_every_verdict(small: Small, tmp_path: Path) -> None:
    summaries = {
        name: replace(each, instead=True, cautions=("the panel is simulated",))
        for name, each in read_summaries(small.out, "claims").items()
    }
    told = json.loads(write_pages(read_paper(small.claims), summaries, tmp_path)[2].read_text())
    first, average = told["claims"][0], told["claims"][-1]
    assert first["on_a_stand_in"]
    assert average["on_a_stand_in"]
    assert first["cautions"] == average["cautions"] == ["the panel is simulated"]
    page = (tmp_path / "claims.md").read_text()
    assert "**The panel is simulated.**" in page
    rows = [line for line in page.splitlines() if line.startswith(("| kl |", "| accuracy |", "| gain |", "| all |"))]
    assert len(rows) == 4
    assert all("(on a stand-in)" in row and "the panel is simulated" in row for row in rows)


def test_a_folder_without_summaries_is_refused(small: Small, tmp_path: Path) -> None:
    paper = read_paper(small.claims)
    with pytest.raises(InputError, match="no summaries of claims are here; run it first"):
        read_summaries(tmp_path, paper.name)
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "x.json").write_text("{}")
    with pytest.raises(InputError, match=r"x\.json: this is no summary of a study"):
        read_summaries(tmp_path, paper.name)


def test_a_summary_does_not_say_where_data_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DISSENSUS_DATA", str(tmp_path))
    text = study_toml(read_study("cifar-10h-ood"))
    assert str(tmp_path) in text
    assert 'cifar-100 = "ood/cifar-100.npz"' in without_place(text)
    found = list(reproduce(read_paper("gheibi"), tmp_path, tmp_path, how=Reproduction(only=("cifar-10h",))))
    assert "cifar" in found[0].missing
    assert str(tmp_path) not in found[0].missing


def test_metrics_that_claims_ask_for_are_scored_though_studies_score_others(small: Small, tmp_path: Path) -> None:
    for path in small.claims.parent.glob("*.*"):
        shutil.copy(path, tmp_path)
    text = small.claims.read_text().replace('metric = "kl"', 'metric = "tvd"', 1)
    (tmp_path / "claims.toml").write_text(text)
    how = Reproduction(engine="loop", device="cpu", resamples=20, only=("small",))
    paper = read_paper(tmp_path / "claims.toml")
    (found,) = reproduce(paper, small.store, tmp_path / "out", how=how)
    assert found.answers["kl"]["asks"]["metric"] == "tvd"
    assert "measured" in found.answers["kl"]
    # Beside what every study scores.
    assert {"tvd", "kl", "soft_nll"} <= {row["metric"] for row in found.scores}
