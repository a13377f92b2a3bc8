"""Nothing is selected on test items, targets of few votes never see held-out ones, and seeds are those of the study.

Each check is also run with a leak put in on purpose, and must then fail.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus.labels.labelling import label
from dissensus_papers.papers import read_paper, read_summaries
from dissensus_train.studies import data as study_data_module
from dissensus_train.studies import open_study, read_study
from dissensus_train.training.engine import train
from tests.papers.conftest import N, Small, write_data, write_study

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.table import Votes
    from dissensus_train.studies.opening import OpenStudy

TARGETS = '["frequency", { scheme = "frequency", votes = 3 }, { scheme = "dirichlet", votes = 3 }, "dawid-skene"]'


def opened_with_other_test_votes(folder: Path, **study: str) -> tuple[OpenStudy, OpenStudy]:
    """A study, and the same after the votes on all its test items were turned round."""
    found: list[OpenStudy] = []
    for name in ("before", "after"):
        tested = found[0].data.human.items[found[0].data.splits["test"]].tolist() if found else []
        (folder / name).mkdir()
        write_data(folder / name, changed=frozenset(map(str, tested)))
        found.append(open_study(read_study(write_study(folder / name, **study)), folder / name / "store"))
    return found[0], found[1]


def check_that_training_is_the_same(before: OpenStudy, after: OpenStudy) -> None:
    for one, other in zip(before.runs, after.runs, strict=True):
        if one.seed != before.study.seeds[0]:
            continue
        (first,), (second,) = (
            list(train([each], opened.data, engine="loop", device="cpu"))
            for each, opened in ((one, before), (other, after))
        )
        assert first.chosen_epoch == second.chosen_epoch, one.method
        for name, weight in first.weights.items():
            np.testing.assert_array_equal(weight, second.weights[name], err_msg=one.method)


def check_that_targets_ignore_held_out_votes(before: OpenStudy, after: OpenStudy) -> None:
    members = before.data.splits["train"]
    for name, target in before.data.targets.items():
        mine, other = (each.take(members).probabilities for each in (target, after.data.targets[name]))
        np.testing.assert_array_equal(mine, other, err_msg=name)


def test_nothing_is_selected_on_test_items(tmp_path: Path) -> None:
    check_that_training_is_the_same(
        *opened_with_other_test_votes(tmp_path, targets='["frequency", { scheme = "frequency", votes = 3 }]')
    )


def test_an_epoch_chosen_on_test_items_is_found(tmp_path: Path) -> None:
    both = opened_with_other_test_votes(tmp_path, targets='["frequency"]', deliveries='["soft"]')

    def swapped(each: OpenStudy) -> OpenStudy:
        # The settings refuse the test split by name, and no item may be in two splits: here it is called validation.
        splits = {**each.data.splits, "validation": each.data.splits["test"], "test": each.data.splits["validation"]}
        return replace(each, data=replace(each.data, splits=splits))

    with pytest.raises(AssertionError):
        check_that_training_is_the_same(*map(swapped, both))


def test_targets_of_few_votes_and_of_fitted_schemes_never_see_held_out_votes(tmp_path: Path) -> None:
    both = opened_with_other_test_votes(tmp_path, targets=TARGETS, deliveries='["soft"]')
    check_that_targets_ignore_held_out_votes(*both)


def test_a_target_fitted_on_all_items_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def leak(target: Any, given: Any, panels: Any, splits: Any) -> Any:
        return label(panels.get(target.name, given.votes), target.scheme)

    monkeypatch.setattr(study_data_module, "_target", leak)
    both = opened_with_other_test_votes(tmp_path, targets='["dawid-skene"]', deliveries='["soft"]')
    with pytest.raises(AssertionError):
        check_that_targets_ignore_held_out_votes(*both)


FEW_VOTES = {
    "targets": '[{ scheme = "frequency", votes = 3 }]',
    # SLS draws from the target, multipass goes through its votes.
    "deliveries": '["soft", "sls", "multipass"]',
}


def opened_with_other_undrawn_votes(folder: Path) -> tuple[OpenStudy, OpenStudy]:
    """A study of 3 of 5 votes an item, and the same after every vote that was not drawn was turned round."""
    found: list[OpenStudy] = []
    undrawn: frozenset[tuple[str, str]] = frozenset()
    for name in ("before", "after"):
        (folder / name).mkdir()
        write_data(folder / name, turned_votes=undrawn)
        found.append(open_study(read_study(write_study(folder / name, **FEW_VOTES)), folder / name / "store"))
        every, drawn = (set(who_judged_what(each)) for each in (found[0].data.votes, *found[0].data.panels.values()))
        undrawn = frozenset(every - drawn)
        assert (len(every), len(drawn)) == (5 * N, 3 * N)
    return found[0], found[1]


def who_judged_what(votes: Votes | None) -> list[tuple[str, str]]:
    assert votes is not None
    assert votes.annotators is not None
    return list(
        zip(votes.items[votes.item].tolist(), votes.annotators.names[votes.annotators.code].tolist(), strict=True)
    )


def test_nothing_that_is_trained_on_three_votes_sees_the_other_two(tmp_path: Path) -> None:
    both = opened_with_other_undrawn_votes(tmp_path)
    check_that_targets_ignore_held_out_votes(*both)
    check_that_training_is_the_same(*both)
    # They do change what people are taken to say, and so the scores.
    assert (both[0].data.human.probabilities != both[1].data.human.probabilities).any()


def test_a_target_of_all_votes_where_three_were_drawn_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_data_module, "_target", lambda target, given, *_: label(given.votes, target.scheme))
    both = opened_with_other_undrawn_votes(tmp_path)
    for check in (check_that_targets_ignore_held_out_votes, check_that_training_is_the_same):
        with pytest.raises(AssertionError):
            check(*both)


def check_that_seeds_are_those_of_the_study(small: Small, store: Path) -> None:
    study = read_study(small.folder / "small.toml")
    kept = read_summaries(small.out, read_paper(small.claims).name)["small"]
    assert kept.seeds == study.seeds
    opened = open_study(study, store)
    assert not opened.waiting
    for row in kept.scores:
        if not row["baseline"]:
            assert len(row["by_seed"]) == len(study.seeds)
    stored = [opened.store.load(each.key, weights=False).run.seed for each in opened.runs]
    # Seeds run fastest in the grid, and those are the numbers that the study file states.
    assert stored == list(study.seeds) * (len(opened.runs) // len(study.seeds))


def test_seeds_are_those_of_the_study(small: Small) -> None:
    check_that_seeds_are_those_of_the_study(small, small.store)


def test_a_run_stored_under_another_seeds_key_is_found(small: Small, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(small.store, tmp_path / "store")
    opened = open_study(read_study(small.folder / "small.toml"), tmp_path / "store")
    first, second = (tmp_path / "store" / "runs" / each.key for each in opened.runs[:2])
    shutil.rmtree(first)
    shutil.copytree(second, first)
    with pytest.raises(AssertionError):
        check_that_seeds_are_those_of_the_study(small, tmp_path / "store")


def test_the_selection_split_is_never_the_test_split() -> None:
    for paper in ("gheibi", "pavlovic", "singh"):
        for use in read_paper(paper).studies:
            training = read_study(use.name).training
            assert not training.selects or training.selection_split == "validation"
