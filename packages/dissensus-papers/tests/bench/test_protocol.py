"""The protocol that comes with the package, and refusals of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from dissensus.datasets import DATASETS
from dissensus.errors import InputError
from dissensus_papers.bench.protocol import Entry, read_protocol, study_text
from dissensus_train.delivery import DELIVERIES
from dissensus_train.studies.spec import read_study

if TYPE_CHECKING:
    from pathlib import Path


def test_the_protocol_has_all_deliveries_and_more_than_ten_real_sets() -> None:
    protocol = read_protocol()
    assert set(protocol.deliveries) == set(DELIVERIES)
    assert len([each for each in protocol.sets if not each.votes]) >= 13
    assert {"majority + temperature", "marginal"} == set(protocol.baselines)


@pytest.mark.parametrize("quick", [False, True])
def test_every_set_of_the_protocol_is_a_study_that_can_be_read(tmp_path: Path, quick: bool) -> None:
    protocol = read_protocol()
    for each in protocol.sets:
        path = tmp_path / f"{each.name}.toml"
        path.write_text(study_text(protocol, each, Entry(deliveries=protocol.deliveries), quick=quick))
        study = read_study(path)
        assert study.name == each.name
        left_out = (*protocol.kinds[each.kind].leave_out, *each.leave_out)
        assert [method.delivery for method in study.methods] == [d for d in protocol.deliveries if d not in left_out]
        assert study.targets[0].votes == (each.votes or None)
        # Nothing is chosen on test items: the best epoch on validation, or no choice at all.
        assert not study.training.selects or study.training.selection_split == "validation"
        # Official splits are taken as they are.
        assert (each.splits == "official") == (not study.splits and not study.folds)


def test_a_set_may_leave_out_what_its_kind_does_not() -> None:
    protocol = read_protocol()
    (words,) = protocol.chosen(("words",))
    less = replace(words, leave_out=("logistic", "sls"))
    all_of, fewer = ({entry.name for entry in protocol.entries_on(one)} for one in (words, less))
    assert all_of - fewer == {"logistic"}
    grids = [study_text(protocol, each, Entry(deliveries=protocol.deliveries), quick=False) for each in (words, less)]
    assert ['"sls"' in grid for grid in grids] == [True, False]


def one_set(name: str) -> str:
    return f'[[sets]]\nname = "{name}"\nkind = "text"\ndataset = {{}}\nsplits = "official"\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('deliveries = ["majority", "soft"]\nensembles = ["sls"]\n', "'ensembles' names 'sls', which is not there"),
        ('baselines = ["nope"]\n', "'baselines' names 'nope', which is not there"),
        ('controls = ["marginl"]\n', "'controls' names 'marginl', which is not there; did you mean 'marginal'"),
        ('[[sets]]\nname = "a"\nkind = "smells"\ndataset = {}\nsplits = "official"\n', "smells"),
        ('[comparison]\nmetric = "soft_nil"\n', "soft_nil"),
        ('[comparison]\nmetric = "entce"\n', "line 2: 'metric' .*'entce', whose sign says too sure or too unsure"),
        ('[comparison]\nothers = ["accuracy", "entce"]\n', "line 2: 'others' .*'entce', whose sign"),
        ('[comparison]\ntest = "t-test"\n', "friedman-nemenyi"),
        ("[kinds.text]\nseeds = 3\n", "kinds.text"),
        ("sieds = 4\n", "sieds"),
        *(
            (one_set(name), f"line 2: .*'{name[:60]}', no name of a file")
            for name in ("../aa", "a--b", "", "a/b", ".a", "x" * 51)
        ),
        (one_set("a") + one_set("b") + one_set("A"), "line 12: .*'A', as of another set; give it its own"),
        ('[models."../x"]\n', "line 1: .*'../x', no name of a file"),
        ('people = ["a/b"]\n', "line 1: .*'a/b', no name of a file"),
        ('[tuned]\n"a/b" = { strength = [1.0] }\n', "line 2: .*'a/b', no name of a file"),
        *((f"[comparison]\nalpha = {level}\n", "give a level between 0 and 1") for level in (7, 1, 0, -0.05)),
        *((f"[comparison]\n{key} = {value}\n", "1 or more") for key in ("few", "least_sets") for value in (0, -3)),
    ],
)
def test_a_protocol_that_is_wrong_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "mine.toml"
    kind = (
        '[kinds.text]\nseeds = 1\nmodel = "linear"\ntraining = {}\n' if "sets" in text and "smells" not in text else ""
    )
    path.write_text(text + kind)
    with pytest.raises(InputError, match=why):
        read_protocol(path)


def test_licences_are_those_of_the_catalogue() -> None:
    protocol = read_protocol()
    known = {one.name: DATASETS[name] for one in protocol.sets if (name := one.dataset["name"]) in DATASETS}
    assert len(known) > 10
    assert {one.name: one.licence for one in protocol.sets if one.name in known} == {
        name: one.licence for name, one in known.items()
    }


def test_an_unknown_set_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InputError, match="is no set of the protocol; did you mean 'hs-brexit'"):
        read_protocol().chosen(("hs-brexti",))
