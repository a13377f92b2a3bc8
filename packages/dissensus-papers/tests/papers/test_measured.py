"""Basins and out-of-distribution detection on a paper's page."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus_papers.papers import judge_paper, read_paper, read_summaries, write_pages
from dissensus_papers.papers.running import Reproduction, reproduce
from tests.study_report.studies import make_study

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_papers.papers import StudySummary

CLAIMS = """\
title = "T"
authors = "A"
link = "l"
question = "q"
[[studies]]
name = "study"
[[claims]]
id = "nll"
says = "Soft NLL falls"
mark = "verified"
study = "study"
quantity = "score"
metric = "soft_nll"
system = "soft"
reproduced = [0.0, 9.0]
in_direction = [0.0, 9.0]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with basins, OOD detection and dynamics, reproduced."""
    made = tmp_path_factory.mktemp("measured-paper")
    study = make_study(made, measured=True)
    study.write_text(study.read_text(encoding="utf-8").replace("<i>small</i> study", "study"), encoding="utf-8")
    (made / "claims.toml").write_text(CLAIMS)
    how = Reproduction(engine="loop", device="cpu", resamples=20)
    list(reproduce(read_paper(made / "claims.toml"), made / "store", made / "out", how=how))
    return made


@pytest.fixture
def kept(folder: Path) -> StudySummary:
    return read_summaries(folder / "out", "claims")["study"]


def test_basins_and_ood_are_kept_by_seed_and_shown(kept: StudySummary, folder: Path, tmp_path: Path) -> None:
    rows = {(row["quantity"], row["system"]): row for row in kept.measured["basins"]["rows"]}
    assert len(rows["lambda_max", "soft"]["values"]) == 2
    assert rows["trace", "soft"]["mean"] == pytest.approx(np.mean(rows["trace", "soft"]["values"]), rel=1e-5)
    markdown, page, _ = (
        path.read_text() for path in write_pages(read_paper(folder / "claims.toml"), {"study": kept}, tmp_path)
    )
    (pair,) = [each for each in kept.measured["basins"]["pairs"] if each["runs"] == "majority and soft"]
    cosine = kept.measured["basins"]["explanations"][0]["cosine"]["value"]
    gap = next(row for row in kept.measured["ood"]["rows"] if row["difference"])["difference"]["value"]
    for words in (f"{pair['barrier']['value']:.3f}", f"{cosine:.3f}", f"{gap:+.3f}", "λ max", "input gradients"):
        assert words in markdown
        assert words in page
    assert "<u>far</u>" not in page


def test_what_a_study_does_not_ask_for_is_not_testable_and_what_it_lacks_is_not_run(
    folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "made")
    asks = {"basin ratio": 'measure = "trace"', "ood ahead": 'ood_set = "far"\nscores = ["energy"]'}
    with (tmp_path / "made" / "claims.toml").open("a") as file:
        for quantity, about in asks.items():
            file.write(
                f'[[claims]]\nid = "{quantity}"\nsays = "s"\nmark = "verified"\nstudy = "study"\n'
                f'quantity = "{quantity}"\nsystem = "soft"\nagainst = "majority"\n{about}\n'
                "reproduced = [-9e9, 9e9]\nin_direction = [-9e9, 9e9]\ncannot_fail = true\n"
            )
    study = tmp_path / "made" / "study.toml"
    text = study.read_text(encoding="utf-8")
    found = {}
    for asked in (True, False):
        study.write_text(text if asked else text[: text.index("[basins]")], encoding="utf-8")
        shutil.rmtree(tmp_path / "made" / "store" / "measured", ignore_errors=True)
        for weights in (tmp_path / "made" / "store").glob("runs/*/weights.npz"):
            weights.unlink()
        paper = read_paper(tmp_path / "made" / "claims.toml")
        how = Reproduction(engine="loop", device="cpu", resamples=20)
        (summary,) = reproduce(paper, tmp_path / "made" / "store", tmp_path / "made" / "out", how=how)
        found[asked] = {each.claim.id: each.verdict for each in judge_paper(paper, {"study": summary})}
    assert {found[True][quantity] for quantity in asks} == {"not run"}
    assert {found[False][quantity] for quantity in asks} == {"not testable here"}


def test_what_the_store_has_is_judged_where_the_weights_are_gone(folder: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    shutil.copytree(folder, made)
    for weights in (made / "store").glob("runs/*/weights.npz"):
        weights.unlink()
    for kind in ("ood", "explanations"):
        shutil.rmtree(made / "store" / "measured" / kind)
    with (made / "claims.toml").open("a") as file:
        for name, quantity, about in (
            ("sharp", "basin ratio", 'measure = "trace"\nagainst = "majority"'),
            ("maps", "explanation difference", 'measure = "cosine"\nagainst = "majority"'),
        ):
            file.write(
                f'[[claims]]\nid = "{name}"\nsays = "s"\nmark = "verified"\nstudy = "study"\n'
                f'quantity = "{quantity}"\nsystem = "soft"\n{about}\n'
                "reproduced = [-9e9, 9e9]\nin_direction = [-9e9, 9e9]\ncannot_fail = true\n"
            )
    paper = read_paper(made / "claims.toml")
    how = Reproduction(engine="loop", device="cpu", resamples=20)
    (found,) = reproduce(paper, made / "store", made / "out", how=how)
    verdicts = {each.claim.id: each for each in judge_paper(paper, {"study": found})}
    assert verdicts["sharp"].verdict == "reproduced"
    assert verdicts["maps"].verdict == "not run"
    assert "explanations of 'soft' were not compared" in verdicts["maps"].why
    markdown = write_pages(paper, {"study": found}, tmp_path)[0].read_text()
    for what in ("basins", "out-of-distribution detection"):
        assert f"Not all of its {what} could be measured: runs/" in markdown
    assert str(tmp_path) not in markdown
