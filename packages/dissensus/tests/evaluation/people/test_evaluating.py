from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus.evaluation.people.baselines import OTHERS, OWN, other_votes, own_frequencies
from dissensus.evaluation.people.evaluating import evaluate_people, item_predictions
from dissensus.evaluation.people.reading import predicts_people, read_vote_predictions
from dissensus.evaluation.people.vote_scores import VotePredictions
from dissensus.labels.mixture import cross_fitted
from dissensus.labels.schemes import fit_concentration
from dissensus.votes.table import Annotators, Votes
from tests.evaluation.people.panels import simulated

if TYPE_CHECKING:
    from pathlib import Path


def predicted(votes: Votes, probabilities: Any) -> VotePredictions:
    assert votes.annotators is not None
    return VotePredictions(votes.item, votes.annotators.code, probabilities)


def test_the_truth_beats_both_baselines_and_the_item_alone() -> None:
    votes, truth = simulated(bias=1.0, seed=3)
    assert votes.annotators is not None
    found = evaluate_people(
        votes,
        {
            "truth": predicted(votes, truth[votes.item, votes.annotators.code]),
            "item": item_predictions(votes, votes.items, truth.mean(axis=1)),
        },
    )
    assert [each.system for each in found.differences] == ["item", OWN, OTHERS]
    for each in found.differences:
        assert each.value.high is not None
        assert each.value.high < 0
        assert each.p_value is not None
        assert each.p_value < 0.01
    assert (found.votes, found.people, found.items) == (len(votes), 40, 100)
    nll = -np.log(truth[votes.item, votes.annotators.code, votes.label])
    assert found.scores["truth"]["nll"].value == pytest.approx(nll.mean())
    first = nll[votes.annotators.code == 0]
    assert found.by_person.means["nll"][0] == pytest.approx(first.mean())
    assert found.by_person.votes[0] == first.size
    assert [each.name for each in found.by_group[0].groups] == ["a", "b"]


def test_people_who_differ_by_noise_alone_do_not_differ_beyond_it() -> None:
    votes, truth = simulated(people=60, items=300, seed=1)
    assert votes.annotators is not None
    same = evaluate_people(votes, {"truth": predicted(votes, truth[votes.item, votes.annotators.code])})
    assert same.between_people["nll"] < 0.06
    harder = votes.annotators.code < 30
    table = np.where(harder[:, None], 1 / 3, truth[votes.item, votes.annotators.code])
    apart = evaluate_people(votes, {"half": predicted(votes, table)})
    assert apart.between_people["nll"] > 0.1


def test_the_persons_own_frequencies_leave_out_the_vote_itself() -> None:
    votes, _ = simulated(items=20, people=8, share=0.8)
    assert votes.annotators is not None
    table = own_frequencies(votes, np.arange(len(votes)))
    said = np.zeros((8, 3))
    np.add.at(said, (votes.annotators.code, votes.label), 1)
    prior = fit_concentration(said)
    mass = said[votes.annotators.code[5]] + prior - np.eye(3)[votes.label[5]]
    assert table[5] == pytest.approx(mass / mass.sum(), rel=1e-6)
    assert table.sum(axis=1) == pytest.approx(np.ones(len(votes)))


def test_training_votes_stand_in_for_the_others_by_name() -> None:
    votes, _ = simulated(items=20, people=8, share=0.8)
    assert votes.annotators is not None
    # The same names in another order, with one person who is new; everybody always chooses class c.
    names = np.array(["new", *votes.annotators.names.tolist()[::-1]], dtype=np.dtypes.StringDType())
    training = Votes(
        item=np.zeros(9, dtype=np.int32),
        label=np.r_[0, np.full(8, 1)].astype(np.int32),
        items=np.array(["t"]),
        classes=("b", "c"),
        annotators=Annotators(np.arange(9, dtype=np.int32), names),
    )
    table = own_frequencies(votes, np.arange(len(votes)), training=training)
    assert (table.argmax(axis=1) == 2).all()
    other = replace(training, classes=("b", "z"))
    with pytest.raises(InputError, match="nobody chose 'z'"):
        own_frequencies(votes, np.arange(len(votes)), training=other)


def test_the_items_other_votes_are_those_of_the_others() -> None:
    votes, _ = simulated(items=30, people=10, share=0.5)
    table = other_votes(votes, np.arange(len(votes)))
    mass = votes.counts[votes.panel_size > 0].astype(np.float64)
    priors, fold = cross_fitted(mass)
    place = int((votes.panel_size[: votes.item[3]] > 0).sum())
    others = mass[place] - np.eye(3)[votes.label[3]]
    assert table[3] == pytest.approx(priors[fold[place]].forecast(others[None])[0], rel=1e-6)


def test_labels_have_no_nll() -> None:
    votes, truth = simulated()
    assert votes.annotators is not None
    table = np.eye(3)[truth[votes.item, votes.annotators.code].argmax(axis=1)]
    found = evaluate_people(replace(votes, ordered=True), {"labels": predicted(votes, table)}, labels=["labels"])
    assert found.headline == "error"
    assert set(found.scores["labels"]) == {"error", "distance"}
    assert set(found.scores[OWN]) == {"nll", "brier", "error", "distance"}


def test_a_vote_without_a_prediction_is_refused_or_left_out() -> None:
    votes, truth = simulated()
    assert votes.annotators is not None
    some = np.arange(len(votes) - 7)
    short = VotePredictions(
        votes.item[some], votes.annotators.code[some], truth[votes.item[some], votes.annotators.code[some]]
    )
    with pytest.raises(InputError, match=r"7 votes have no prediction, first item i\d+ by annotator p\d+"):
        evaluate_people(votes, {"short": short})
    assert evaluate_people(votes, {"short": short}, only_common=True).votes == len(votes) - 7


def test_a_group_is_as_large_as_its_people_whose_votes_are_scored() -> None:
    votes, truth = simulated(people=20)
    assert votes.annotators is not None
    some = np.flatnonzero((votes.annotators.code >= 10) | (votes.annotators.code < 4))
    few = VotePredictions(
        votes.item[some], votes.annotators.code[some], truth[votes.item[some], votes.annotators.code[some]]
    )
    (by,) = evaluate_people(votes, {"few": few}, only_common=True).by_group
    assert by.groups == ()
    assert "fewer than 5" in by.hidden
    assert by.p_votes is None


def test_anonymous_votes_and_sets_of_classes_are_refused() -> None:
    votes, truth = simulated()
    assert votes.annotators is not None
    system = {"s": predicted(votes, truth[votes.item, votes.annotators.code])}
    with pytest.raises(InputError, match="anonymous"):
        evaluate_people(replace(votes, annotators=None), system)
    with pytest.raises(InputError, match="one class a judgement"):
        evaluate_people(replace(votes, judgement=np.arange(len(votes), dtype=np.int32)), system)


def table_of(votes: Votes, truth: Any, rows: Any) -> str:
    assert votes.annotators is not None
    lines = ["item,annotator,a,b,c"]
    for k in rows:
        i, w = votes.item[k], votes.annotators.code[k]
        lines.append(",".join([votes.items[i], votes.annotators.names[w], *map(repr, truth[i, w].tolist())]))
    return "\n".join(lines) + "\n"


def test_a_file_of_predictions_is_matched_by_names_in_any_order(tmp_path: Path) -> None:
    votes, truth = simulated(items=20, people=8)
    assert votes.annotators is not None
    path = tmp_path / "people.csv"
    rows = np.random.default_rng(0).permutation(len(votes)).tolist()
    path.write_text(table_of(votes, truth, rows), encoding="utf-8")
    read = read_vote_predictions(path, votes)
    assert read.given == "probabilities"
    assert predicts_people(path)
    found = evaluate_people(votes, {"file": read})
    same = evaluate_people(votes, {"file": predicted(votes, truth[votes.item, votes.annotators.code])})
    assert found.scores["file"]["nll"].value == pytest.approx(same.scores["file"]["nll"].value)


def test_a_file_of_labels_is_read_as_labels(tmp_path: Path) -> None:
    votes, _ = simulated(items=4, people=3, share=1.0)
    assert votes.annotators is not None
    lines = [
        f"i{i},p{w},{votes.classes[k]}" for i, w, k in zip(votes.item, votes.annotators.code, votes.label, strict=True)
    ]
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(["item,annotator,label", *lines]), encoding="utf-8")
    read = read_vote_predictions(path, votes)
    assert read.given == "labels"
    assert evaluate_people(votes, {"l": read}, labels=["l"]).scores["l"]["error"].value == 0


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("i0,p0,.5,.3,.2\ni1,who,.5,.3,.2\n", r"line 3: annotator who has no votes.*only_common="),
        ("i0,p0,.5,.3,.2\nnone,p0,.5,.3,.2\n", r"line 3: item none has no votes"),
        ("i0,p0,.5,.3,.2\ni0,p0,.5,.3,.2\n", r"line 3: item i0 by annotator p0 has a row already"),
        ("i0,p0,.5,.3,.2\ni1,p0,.5,.3,.9\n", r"i1 by annotator p0.*sum"),
        ("i0,p0,.5,.3,.2\ni1,,.5,.3,.2\n", r"line 3: .*empty"),
    ],
)
def test_a_file_that_cannot_be_scored_is_refused_with_its_line(lines: str, said: str, tmp_path: Path) -> None:
    votes, _ = simulated(items=4, people=3, share=1.0)
    path = tmp_path / "wrong.csv"
    path.write_text(f"item,annotator,a,b,c\n{lines}", encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_vote_predictions(path, votes)
