"""Claims files: what they may say, and that the shipped ones ask for what their studies have."""

from __future__ import annotations

import re
import shutil
from contextlib import nullcontext
from math import inf
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
        ('of = ["kl", "accuracy"]', 'of = ["kl", "kl"]', "'of' names 'kl' more than once"),
        ('of = ["kl", "accuracy"]', 'of = ["kl", "all"]', "'of' leads back to the claim itself"),
        ('of = ["kl", "accuracy"]', 'of = ["kl", "gain"]', "'of' averages what is not on one scale"),
        ('"average"', '"count"\ncounts = "on its sides"', "'counts' names 'on its sides', which is not there; did you"),
        ('/ majority"\npaper', '/ soft"\npaper', "'against' is the same as system"),
        ("paper = -0.3", "paper = 0.3", "'paper' is 0.3, which is not in reproduced; mend its sign or the range"),
        ("paper = -0.3", "paper = -0.05", "'paper' is -0.05, which is not in reproduced"),
        ("[-0.9, -0.1]", "[-45.0, -15.0]", "'reproduced' lies beyond what there can be, -1 to inf; write 30 % as 0.3"),
        (
            "[-0.2, 0.2]",
            "[-inf, inf]",
            "'in_direction' holds every value that there can be, or all but 1 % of them; give",
        ),
        ('metric = "kl"', 'metric = "entce"', "'metric' .*has a sign, so that a change relative to it says nothing"),
        ("[-0.2, 0.2]", "[-1.0, inf]", "'in_direction' holds every value that there can be"),
        ('of = ["kl", "accuracy"]', "of = []", "'of' names no claim"),
        (
            "reproduced = [-0.9, -0.1]\n",
            "",
            "'reproduced' in \\[\\[claims\\]\\] is missing; give the lowest and the highest",
        ),
        ('name = "far-away"', 'name = "small"', "'name' is 'small' again; name each study once"),
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
    ("asks", "every"),
    [
        ('quantity = "score"\nmetric = "accuracy"\nsystem = "a"', "[0.0, 1.0]"),
        ('quantity = "score"\nmetric = "kl"\nsystem = "a"', "[0.0, inf]"),
        ('quantity = "difference"\nmetric = "accuracy"\nsystem = "a"\nagainst = "b"', "[-1.0, 1.0]"),
        ('quantity = "relative change"\nmetric = "kl"\nsystem = "a"\nagainst = "b"', "[-1.0, inf]"),
        ('quantity = "order"\nmetric = "kl"\nsystems = ["a", "b"]', "[0, 1]"),
        ('quantity = "ood ahead"\nood_set = "o"\nscores = ["msp", "knn"]\nsystem = "a"\nagainst = "b"', "[0, 2]"),
    ],
)
def test_a_claim_that_no_result_could_deny_says_so(tmp_path: Path, asks: str, every: str) -> None:
    path = tmp_path / "claims.toml"
    head = '[[studies]]\nname = "s"\n[[claims]]\nid = "x"\nsays = "x"\nmark = "verified"\nstudy = "s"\n'
    for ends in (f"reproduced = {every}\nin_direction = {every}\n", f"equal = {every}\n"):
        path.write_text(f"{head}{asks}\n{ends}")
        with pytest.raises(InputError, match="holds every value that there can be"):
            read_paper(path)
        path.write_text(f"{head}{asks}\n{ends}cannot_fail = true\n")
        read_paper(path)
        # A part is judged with what averages it, and has no verdict of its own; of nothing it is no part.
        part = f"{head}{asks}\n{ends}".replace('"verified"', '"part"')
        path.write_text(part)
        with pytest.raises(InputError, match="'mark' is 'part', and no claim averages or counts it"):
            read_paper(path)
        whole = '[[claims]]\nid = "y"\nsays = "y"\nmark = "verified"\nquantity = "average"\nof = ["x"]\n'
        path.write_text(f"{part}{whole}reproduced = [0.1, 0.2]\nin_direction = [0.1, 0.3]\n")
        assert [claim.any_value for claim in read_paper(path).claims] == [True, False]
        # What averages anything at all can say anything at all.
        path.write_text(f"{part}{whole}{ends}")
        with pytest.raises(InputError, match="holds every value that there can be"):
            read_paper(path)


@pytest.mark.parametrize(
    ("asks", "side", "holds_all"),
    [
        # A hundredth of all that there can be, on either side or both together, is no side.
        ('quantity = "score"\nmetric = "accuracy"\nsystem = "a"', "[0.011, 1.0]", False),
        ('quantity = "score"\nmetric = "accuracy"\nsystem = "a"', "[0.009, 1.0]", True),
        ('quantity = "score"\nmetric = "accuracy"\nsystem = "a"', "[0.006, 0.994]", False),
        ('quantity = "score"\nmetric = "kl"\nsystem = "a"', "[0.009, inf]", True),
        ('quantity = "difference"\nmetric = "accuracy"\nsystem = "a"\nagainst = "b"', "[-0.985, 1.0]", True),
        ('quantity = "difference"\nmetric = "accuracy"\nsystem = "a"\nagainst = "b"', "[-0.975, 1.0]", False),
    ],
)
def test_a_range_that_misses_next_to_nothing_has_no_side(tmp_path: Path, asks: str, side: str, holds_all: bool) -> None:
    path = tmp_path / "claims.toml"
    head = '[[studies]]\nname = "s"\n[[claims]]\nid = "x"\nsays = "x"\nmark = "verified"\nstudy = "s"\n'
    path.write_text(f"{head}{asks}\nreproduced = {side}\nin_direction = {side}\n")
    with pytest.raises(InputError, match="or all but 1 % of them") if holds_all else nullcontext():
        read_paper(path)


@pytest.mark.parametrize(
    ("counted", "told"),
    [
        ("reproduced = [0.5, 1.0]\nin_direction = [0.0, 1.0]\nmark = 'part'", "counts 'x', which cannot fail"),
        ("reproduced = [0.5, 1.0]\nin_direction = [0.5, 1.0]\ncannot_fail = true\nmark = 'part'", "which cannot fail"),
        ("equal = [0.5, 0.7]\nmark = 'part'", "counts 'x', which has no side; give that one a side"),
        ("reproduced = [0.5, 1.0]\nin_direction = [0.5, 1.0]\nmark = 'part'", ""),
    ],
)
def test_what_is_counted_can_fail_and_has_a_side(tmp_path: Path, counted: str, told: str) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(
        '[[studies]]\nname = "s"\n[[claims]]\nid = "x"\nsays = "x"\nstudy = "s"\nquantity = "score"\n'
        f'metric = "accuracy"\nsystem = "a"\n{counted}\n[[claims]]\nid = "y"\nsays = "y"\nmark = "verified"\n'
        'quantity = "count"\ncounts = "on its side"\nof = ["x"]\nreproduced = [1, 1]\nin_direction = [1, 1]\n'
    )
    with pytest.raises(InputError, match=told) if told else nullcontext():
        read_paper(path)


@pytest.mark.parametrize("systems", ['["a"]', '["a", "a"]', "[]"])
def test_an_order_is_of_systems_that_differ(tmp_path: Path, systems: str) -> None:
    (tmp_path / "claims.toml").write_text(
        '[[studies]]\nname = "s"\n[[claims]]\nid = "x"\nsays = "x"\nmark = "verified"\nstudy = "s"\n'
        f'quantity = "order"\nmetric = "kl"\nsystems = {systems}\nreproduced = [1, 1]\nin_direction = [0.6, 1]\n'
    )
    with pytest.raises(InputError, match="'systems' has no two systems, or one twice"):
        read_paper(tmp_path / "claims.toml")


SHARED = """\
[[claims]]
mark = "verified"
study = "small"
quantity = "relative change"
against = "frequency, 3 votes / majority"
system = "frequency, 3 votes / soft"
metric = "kl"
reproduced = [-0.9, -0.1]
in_direction = [-inf, 0.0]
"""
BRACES = """\
each = [
  { id = "kl", says = "KL falls", paper = -0.3 },  # { of, the, first }
  { id = "accuracy", mark = "secondary", quantity = "relative change", metric = "accuracy", \
reproduced = [-0.05, 0.05], in_direction = [-0.2, 0.2], says = "Accuracy stays" },
]
"""
HEADERS = """\
[[claims.each]]
id = "kl"
says = "KL falls"
paper = -0.3
[[claims.each]]
id = "accuracy"
says = "Accuracy stays"
mark = "secondary"
quantity = "relative change"
metric = "accuracy"
reproduced = [-0.05, 0.05]
in_direction = [-0.2, 0.2]
"""


def in_family(each: str) -> str:
    """The small paper with its first two claims as a family."""
    first, others = CLAIMS.index("[[claims]]"), CLAIMS.index('[[claims]]\nid = "gain"')
    return CLAIMS[:first] + SHARED + each + CLAIMS[others:]


@pytest.mark.parametrize("each", [BRACES, HEADERS])
def test_a_family_is_read_as_its_claims_written_out(tmp_path: Path, each: str) -> None:
    """In the same place, with the keys that they share, unless a claim has its own, and those in the same order."""
    for name, text in (("family", in_family(each)), ("written-out", CLAIMS)):
        (tmp_path / f"{name}.toml").write_text(text)
    family, written_out = (read_paper(tmp_path / f"{name}.toml") for name in ("family", "written-out"))
    assert family.claims == written_out.claims
    assert [list(claim.about) for claim in family.claims] == [list(claim.about) for claim in written_out.claims]
    assert family.rules("small") == written_out.rules("small")


def test_a_claims_own_range_takes_the_place_of_its_familys(tmp_path: Path) -> None:
    own = 'each = [{ id = "kl", says = "KL stays", equal = [-0.1, 0.1] }, { id = "accuracy", says = "KL falls" }]\n'
    (tmp_path / "claims.toml").write_text(in_family(own))
    equal, side = read_paper(tmp_path / "claims.toml").claims[:2]
    assert (equal.equal, equal.in_direction, side.equal, side.in_direction) == (
        (-0.1, 0.1),
        (-inf, inf),
        None,
        (-inf, 0),
    )
    shared = SHARED.replace("reproduced = [-0.9, -0.1]\nin_direction = [-inf, 0.0]", "equal = [-0.2, 0.2]")
    sided = '{ id = "kl", says = "s", reproduced = [-1, 0], in_direction = [-1, 0] }'
    own = f'each = [{sided}, {{ id = "accuracy", says = "s" }}]\n'
    (tmp_path / "claims.toml").write_text(in_family(own).replace(SHARED, shared))
    side, equal = read_paper(tmp_path / "claims.toml").claims[:2]
    assert (side.equal, side.in_direction, equal.equal) == (None, (-1, 0), (-0.2, 0.2))


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ('stratum = "varid"', "'stratum' names 'varid', which is not there"),
        ('stratum = "varied"\nby = "entropy"', "'stratum' names 'varied', which is not there"),
        ('stratum = "cat"\nby = "class"', "'by' names 'class', which is not there"),
    ],
)
def test_strata_that_no_study_has_are_refused_before_it_is_trained(tmp_path: Path, key: str, told: str) -> None:
    (tmp_path / "claims.toml").write_text(CLAIMS.replace("paper = -0.3\n", f"paper = -0.3\n{key}\n"))
    with pytest.raises(InputError, match=re.escape(told)):
        read_paper(tmp_path / "claims.toml")


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ('metric = "acc', 'metric = "ac', 'id = "accuracy"', "'metric' in each names 'acuracy', which is not there"),
        ('metric = "kl"', 'metric = "kll"', "kll", "'metric' names 'kll', which is not there; did you mean 'kl'"),
        (
            "paper =",
            "papre =",
            'id = "kl"',
            "'papre' in each is nothing that this quantity asks for; it asks for metric",
        ),
        (', says = "Accuracy stays"', "", 'id = "accuracy"', "'says' in each is missing; give a text"),
        ('system = "frequency, 3 votes / soft"\n', "", 'id = "kl"', "'system' in each is missing; this quantity asks"),
        ("[-0.05, 0.05]", "[-0.05]", 'id = "accuracy"', "'reproduced' in each is [-0.05]; give the lowest and the"),
        ("[-0.9, -0.1]", "[-0.9]", "[-0.9]", "'reproduced' is [-0.9]; give the lowest and the highest value"),
        ("[-0.9, -0.1]", "[-0.9, 0.1]", "[-0.9, 0.1]", "'reproduced' must lie within in_direction"),
        ('id = "accuracy"', 'id = "kl"', '"Accuracy stays"', "'id' in each is 'kl', which stands for another claim"),
        ('metric = "soft_nll"', 'metric = "nll"', 'metric = "nll"', "'metric' names 'nll', which is not there"),
        (BRACES, "each = []\n", "each = []", "'each' is []; give one claim or more in a list, each in braces: { id ="),
        (BRACES, "each = 3\n", "each = 3", "'each' is 3; give one claim or more in a list, each in braces: { id = "),
        ('{ id = "kl"', '"kl", { id = "kl"', "each = [", "'each' has 'kl'; give one claim or more in a list, each in"),
        (SHARED, SHARED + 'id = "x"\n', 'id = "x"', "'id' stands for every claim of 'each'; give each of them its own"),
        ("paper = -0.3", "each = []", 'id = "kl"', "'each' in each is a family in a family; write it as [[claims]] of"),
    ],
)
def test_a_wrong_family_is_refused_where_it_is_written(
    tmp_path: Path, old: str, new: str, line: str, told: str
) -> None:
    path, text = tmp_path / "claims.toml", in_family(BRACES)
    assert old in text
    path.write_text(text.replace(old, new, 1))
    number = next(k for k, written in enumerate(path.read_text().splitlines(), start=1) if line in written)
    with pytest.raises(InputError, match=re.escape(f"{path}, line {number}: {told}")):
        read_paper(path)


def test_a_family_of_headers_is_refused_by_line_too(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(in_family(HEADERS).replace('says = "Accuracy stays"\n', ""))
    line = path.read_text()[: path.read_text().index('id = "accuracy"')].count("\n")
    with pytest.raises(InputError, match=re.escape(f"line {line}: 'says' in [[claims.each]] is missing")):
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
    values = {"epochs": "3", "systems": '["a", "b"]', "scores": '["a"]', "of": '["x"]', "metric": '"kl"'}
    values |= {"by": '"agreement"', "stratum": '"all"'}
    for name, quantity in QUANTITIES.items():
        for missing in quantity.keys:
            asks = "".join(
                f"{key} = {values.get(key, chr(34) + key + chr(34))}\n" for key in quantity.keys if key != missing
            )
            (tmp_path / "claims.toml").write_text(
                f'[[studies]]\nname = "s"\n[[claims]]\nid = "x"\nsays = "x"\nmark = "verified"\nstudy = "s"\n'
                f'quantity = "{name}"\n{asks}reproduced = [0.1, 0.9]\nin_direction = [0.1, 0.9]\n'
            )
            may = missing in ("stratum", "by", "target") or (name, missing) == ("uncertainty correlation", "against")
            with nullcontext() if may else pytest.raises(InputError, match=f"'{missing}' .* is missing"):
                read_paper(tmp_path / "claims.toml")


@pytest.mark.parametrize("name", ["gheibi", "pavlovic", "singh"])
def test_every_system_that_a_shipped_claim_names_is_in_the_grid(name: str) -> None:
    _check_claims(read_paper(name))


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text(CLAIMS, encoding="utf-8-sig")
    assert len(read_paper(tmp_path / "claims.toml").claims) == 5
    (tmp_path / "claims.toml").write_text(f"x = 1\n{CLAIMS}", encoding="utf-8-sig")
    with pytest.raises(InputError, match=r"claims\.toml, line 1: 'x' is no key"):
        read_paper(tmp_path / "claims.toml")


def test_an_unknown_paper_is_told_the_known_ones() -> None:
    with pytest.raises(InputError, match="'nobody' is no paper; choose gheibi, pavlovic, singh"):
        read_paper("nobody")


def test_the_documented_claims_file_is_read(tmp_path: Path) -> None:
    text = (Path(__file__).parents[4] / "docs" / "papers.md").read_text()
    file, each = (part.split("```")[0] for part in text.split("```toml\n")[1:3])
    (tmp_path / "my_claims.toml").write_text(file)
    paper = read_paper(tmp_path / "my_claims.toml")
    assert (paper.name, paper.claims[0].about["stratum"], paper.claims[0].paper) == ("my_claims", "varied", -0.3)
    (tmp_path / "my_claims.toml").write_text(re.sub("^(id|says) = .*\n", "", file, flags=re.M) + each)
    first, second = read_paper(tmp_path / "my_claims.toml").claims
    assert first == paper.claims[0]
    assert (second.about, second.paper) == (first.about | {"metric": "brier"}, -0.2)
    documented = set(re.findall(r"`([a-z ]+)`", text.split("| quantity |")[1]))
    assert set(QUANTITIES) <= documented
