"""Claims files: what they may say, and that the shipped ones ask for what their studies have."""

from __future__ import annotations

import re
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from dissensus.errors import InputError
from dissensus_papers.papers import read_paper, shipped_papers
from dissensus_papers.papers.quantities import QUANTITIES
from dissensus_papers.papers.running import (
    BASELINES,
    Reproduction,
    _check_claims,
    _study,
    _units,
    as_asked,
    reproduce,
    systems_of_grid,
)
from dissensus_train.studies.opening import open_study, systems_of
from tests.papers.conftest import CLAIMS, Small


@pytest.mark.parametrize("name", ["gheibi", "pavlovic", "singh"])
def test_every_claim_is_about_a_study_of_its_file(name: str) -> None:
    paper = read_paper(name)
    units = {unit for use in paper.studies for unit in _units(_study(paper, use.name))}
    assert {claim.study for claim in paper.claims if claim.study} <= units
    assert all(claim.says.strip() and claim.mark for claim in paper.claims)


def test_three_papers_are_shipped() -> None:
    assert list(shipped_papers()) == ["gheibi", "pavlovic", "singh"]


@pytest.mark.parametrize(("paper", "study"), [("gheibi", use.name) for use in read_paper("gheibi").studies[:6]])
def test_the_systems_that_claims_name_are_in_the_grid(paper: str, study: str, data: Path, tmp_path: Path) -> None:
    claims = read_paper(paper)
    opened = open_study(_study(claims, study), tmp_path)
    assert list(systems_of(opened.runs)) == systems_of_grid(opened.study)
    known = {*systems_of(opened.runs), *BASELINES}
    for claim in claims.claims:
        if claim.study == study:
            named = [claim.about.get("system", ""), claim.about.get("against", ""), *claim.about.get("systems", ())]
            asked = {part for name in named if name for part in name.split(" & ")}
            assert asked <= known, claim.id


def test_quick_studies_have_names_and_runs_of_their_own() -> None:
    paper = read_paper("gheibi")
    use = paper.studies[0]
    study = as_asked(_study(paper, use.name), use, Reproduction(quick=True))
    assert (study.name, study.models, study.seeds) == ("cifar-10h-quick", ("simple-ffn",), (0, 1))
    assert study.training.precision == "float32"
    assert as_asked(_study(paper, use.name), use, Reproduction(seeds=10)).seeds == tuple(range(10))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('mark = "verified"', 'mark = "sure"', "'mark' names 'sure', which is not there; choose verified, secondary"),
        (
            '"relative change"',
            '"relative"',
            "'quantity' names 'relative', which is not there; did you mean 'relative change'",
        ),
        ('metric = "kl"\nsystem = "frequency', 'metrics = "kl"\nsystem = "frequency', "'metrics' is nothing"),
        (
            'metric = "kl"\nsystem = "freq',
            'metric = "kll"\nsystem = "freq',
            "'metric' names 'kll', which is not there; did you",
        ),
        ('against = "frequency, 3 votes / majority"\npaper', "paper", "'against' in \\[\\[claims\\]\\] is missing"),
        ('split = "test"\n', "", "'split' in \\[\\[claims\\]\\] is missing"),
        ('study = "small"\nquantity = "rel', 'quantity = "rel', "'study' in \\[\\[claims\\]\\] is missing"),
        ("[-0.9, -0.1]", "[-0.9]", r"'reproduced' is \[-0.9\]; give the lowest and the highest"),
        ("[-0.9, -0.1]", "[-0.9, 0.1]", "'reproduced' must lie within in_direction"),
        ('id = "accuracy"', 'id = "kl"', "'id' is 'kl', which stands for another claim too"),
        ('of = ["kl", "accuracy"]', 'of = ["kl", "nothing"]', "'of' names 'nothing'"),
        ('says = "KL falls"\n', "", "'says' in \\[\\[claims\\]\\] is missing"),
        ("seeds = 2, epochs = 2", "seed = 2", "'quick' has 'seed', which is not one of its keys; did you mean 'seeds'"),
        ('title = "A small paper"', 'titel = "A small paper"', "'titel' is no key at the top; did you mean 'title'"),
    ],
)
def test_a_wrong_file_is_refused_by_claim_and_key(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in CLAIMS
    path = tmp_path / "claims.toml"
    path.write_text(CLAIMS.replace(old, new, 1))
    with pytest.raises(InputError, match=told):
        read_paper(path)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('study = "small"', 'study = "smal"', "claim kl is on 'smal', which is no study here; did you mean 'small'"),
        ("votes / soft", "votes / softt", "claim kl names 'frequency, 3 votes / softt', no system of small; did you"),
        (
            'against = "frequency, 3 votes / majority"',
            'against = "majority"',
            "claim kl names 'majority', no system of",
        ),
    ],
)
def test_a_claim_on_nothing_is_refused_before_anything_is_trained(
    small: Small, tmp_path: Path, old: str, new: str, told: str
) -> None:
    (tmp_path / "paper").mkdir()
    for path in small.folder.glob("*.*"):
        shutil.copy(path, tmp_path / "paper")
    path = tmp_path / "paper" / "claims.toml"
    path.write_text(CLAIMS.replace(old, new, 1))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=told):
        # Though another study, whose claims are right, is asked for alone.
        list(reproduce(read_paper(path), tmp_path / "store", tmp_path / "out", how=Reproduction(only=("far-away",))))
    assert sorted(tmp_path.rglob("*")) == before


def test_only_the_systems_that_may_be_left_out_are(tmp_path: Path) -> None:
    """What a quantity asks for is refused where it is missing, of every quantity and key."""
    values = {"epochs": "3", "systems": '["a"]', "scores": '["a"]', "of": '["x"]', "metric": '"kl"'}
    for name, quantity in QUANTITIES.items():
        for missing in quantity.keys:
            asks = "".join(f"{key} = {values.get(key, chr(34) * 2)}\n" for key in quantity.keys if key != missing)
            (tmp_path / "claims.toml").write_text(
                f'[[studies]]\nname = "s"\n[[claims]]\nid = "x"\nsays = "x"\nmark = "verified"\nstudy = "s"\n'
                f'quantity = "{name}"\n{asks}reproduced = [0, 1]\nin_direction = [0, 1]\n'
            )
            may = missing in ("stratum", "by", "target") or (name, missing) == ("uncertainty correlation", "against")
            with nullcontext() if may else pytest.raises(InputError, match=f"'{missing}' .* is missing"):
                read_paper(tmp_path / "claims.toml")


@pytest.mark.parametrize("name", ["gheibi", "pavlovic", "singh"])
def test_every_system_that_a_shipped_claim_names_is_in_the_grid(name: str) -> None:
    _check_claims(read_paper(name))


def test_an_unknown_paper_is_told_the_known_ones() -> None:
    with pytest.raises(InputError, match="'nobody' is no paper; choose gheibi, pavlovic, singh"):
        read_paper("nobody")


def test_the_documented_claims_file_is_read(tmp_path: Path) -> None:
    text = (Path(__file__).parents[4] / "docs" / "papers.md").read_text()
    (tmp_path / "my_claims.toml").write_text(text.split("```toml\n")[1].split("```")[0])
    paper = read_paper(tmp_path / "my_claims.toml")
    assert (paper.name, paper.claims[0].about["stratum"], paper.claims[0].paper) == ("my_claims", "varied", -0.3)
    documented = set(re.findall(r"`([a-z ]+)`", text.split("| quantity |")[1]))
    assert set(QUANTITIES) <= documented
