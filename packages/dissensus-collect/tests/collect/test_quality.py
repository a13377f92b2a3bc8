"""Quality of what was collected, against the krippendorff package, crowd-kit and counting by hand."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import krippendorff
import numpy as np
import pytest
from scipy.special import psi

from dissensus.together.allocation import panel_concentration
from dissensus_collect.results.quality import annotator_quality, entropy_interval, item_quality
from dissensus_collect.store.opening import open_database
from dissensus_collect.work.leaving import exclude
from tests.collect.panels import NOW, agreement_by_class, judge_all, text_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Database

WORDS = ("no", "yes", "unsure")
ITEMS, PEOPLE = 12, 4
SAID = np.random.default_rng(3).integers(0, 3, (PEOPLE, ITEMS, 2))
SAID[0, :, :] = 0  # the first says No to everything
SAID[:, 5, :] = 1  # all agree on item 5


def answer(person: int, item: int) -> dict[str, str]:
    return {label: WORDS[SAID[person, item, k]] for k, label in enumerate(("cat", "dog"))}


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, Database, list[int]]]:
    project = text_project(tmp_path_factory.mktemp("quality") / "project", items=ITEMS, k=PEOPLE)
    with open_database(project) as database:
        people = [
            judge_all(database, project, lambda item, p=person: answer(p, item), seconds=10.0 if person else 1.0)  # type: ignore[misc]
            for person in range(PEOPLE)
        ]
        yield project, database, people


def test_alpha_of_every_class_is_that_of_the_krippendorff_package(collected: Any) -> None:
    project, database, _ = collected
    found = database.read_now(lambda cursor: agreement_by_class(cursor, project))
    assert [each.label for each in found] == ["cat", "dog"]
    for k, each in enumerate(found):
        table = SAID[:, :, k].astype(float)
        assert each.alpha.value == pytest.approx(
            krippendorff.alpha(reliability_data=table, level_of_measurement="nominal")
        )
        sure = np.where(table == 2, np.nan, table)
        assert each.without_unsure.value == pytest.approx(
            krippendorff.alpha(reliability_data=sure, level_of_measurement="nominal")
        )
        assert each.alpha.low <= each.alpha.value <= each.alpha.high


def test_answers_of_an_item_are_counted(collected: Any) -> None:
    project, database, _ = collected
    found = database.read_now(lambda cursor: item_quality(cursor, project))
    assert [each.name for each in found] == [f"item{n}" for n in range(ITEMS)]
    for n, each in enumerate(found):
        by_hand = tuple(
            (int((SAID[:, n, k] == 1).sum()), int((SAID[:, n, k] == 0).sum()), int((SAID[:, n, k] == 2).sum()))
            for k in range(2)
        )
        assert each.answers == by_hand
        assert (each.counted, each.wanted, each.missing) == (PEOPLE, PEOPLE, 0)
        assert each.entropy_low <= each.entropy <= each.entropy_high


def test_soft_labels_of_an_item_under_both_weightings_by_hand(collected: Any) -> None:
    project, database, _ = collected
    found = database.read_now(lambda cursor: item_quality(cursor, project))
    for weight, name in ((1.0, "equal_weighted"), (0.5, "uncertainty_weighted")):
        for n, each in enumerate(found):
            rows = []
            for person in range(PEOPLE):
                row = np.array([{0: 0.0, 1: 1.0, 2: weight}[value] for value in SAID[person, n].tolist()] + [0.0])
                rows.append(row / row.sum() if row.any() else np.array([0.0, 0.0, 1.0]))
            np.testing.assert_allclose(getattr(each, name), np.mean(rows, axis=0))


def test_every_annotator_beside_the_others_by_hand(collected: Any) -> None:
    project, database, people = collected
    found = {each.annotator: each for each in database.read_now(lambda cursor: annotator_quality(cursor, project))}
    assert set(found) == set(people)
    vectors = np.zeros((PEOPLE, ITEMS, 3))
    vectors[:, :, :2] = SAID > 0
    vectors[:, :, 2] = ~(SAID > 0).any(axis=2)
    vectors /= vectors.sum(axis=2, keepdims=True)
    for person, annotator in enumerate(people):
        each = found[annotator]
        others = np.delete(vectors, person, axis=0).mean(axis=0)
        assert each.agreement == pytest.approx((vectors[person] * others).sum(axis=1).mean())
        assert each.agreement_low < each.agreement < each.agreement_high
        assert each.unsure == pytest.approx((SAID[person] == 2).mean())
        assert each.straight_lining == pytest.approx((SAID[person, :, 0] == SAID[person, :, 1]).mean())
        assert each.judgements == ITEMS
        assert each.seconds == (10.0 if person else 1.0)
        assert each.class_seconds == pytest.approx(0.5)
        assert (each.changes, each.hidden_seconds) == (2.0, 0.25)
        assert each.reliability_low < each.reliability < each.reliability_high


def test_who_hurries_and_says_the_same_of_everything_is_flagged(collected: Any) -> None:
    project, database, people = collected
    found = {each.annotator: each for each in database.read_now(lambda cursor: annotator_quality(cursor, project))}
    first = found[people[0]]
    order = database.read_now(
        lambda cursor: cursor.execute(
            "SELECT item.name FROM assignment JOIN item ON item.id = item WHERE annotator = ? ORDER BY number",
            (people[0],),
        ).fetchall()
    )
    runs = [len(list(run)) for _, run in itertools.groupby(name == "item5" for (name,) in order)]
    assert first.longest_run == max(runs)
    assert any("s per item" in flag for flag in first.flags)
    assert any("answers all classes alike" in flag for flag in first.flags)
    assert not any("s per item" in flag for flag in found[people[1]].flags)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:The inplace keyword")
def test_reliability_is_the_skill_of_one_coin_dawid_skene_in_crowd_kit(tmp_path: Path) -> None:
    """Single choices, so that crowd-kit sees the same votes."""
    import pandas as pd
    from crowdkit.aggregation import OneCoinDawidSkene

    project = text_project(
        tmp_path / "project", items=30, k=5, classes=("a", "b", "c"), layout='layout = "single-choice"'
    )
    generator = np.random.default_rng(1)
    truth = generator.integers(0, 3, 30)
    said = np.where(generator.random((5, 30)) < np.array([0.95, 0.9, 0.8, 0.6, 0.4])[:, None], truth, (truth + 1) % 3)
    with open_database(project) as database:
        people = [
            judge_all(
                database,
                project,
                lambda item, p=person: {  # type: ignore[misc]
                    label: "yes" if said[p, item] == k else "no" for k, label in enumerate(("a", "b", "c"))
                },
            )
            for person in range(5)
        ]
        found = {each.annotator: each for each in database.read_now(lambda cursor: annotator_quality(cursor, project))}
    frame = pd.DataFrame([(n, p, said[p, n]) for p in range(5) for n in range(30)], columns=["task", "worker", "label"])
    peer = OneCoinDawidSkene(n_iter=60, tol=0).fit(frame)
    ours = [found[annotator].reliability or 0.0 for annotator in people]
    np.testing.assert_allclose(ours, peer.skills_.sort_index().to_numpy(), atol=2e-3)
    assert ours[0] > ours[3] > ours[4]


def test_the_excluded_are_compared_with_everybody_and_no_longer_with_those_who_count(tmp_path: Path) -> None:
    project = text_project(tmp_path / "project", items=6, k=3)
    with open_database(project) as database:
        honest = [
            judge_all(
                database, project, lambda item: {"cat": "yes" if item % 2 else "no", "dog": "no" if item % 2 else "yes"}
            )
            for _ in range(2)
        ]
        contrary = judge_all(
            database, project, lambda item: {"cat": "no" if item % 2 else "yes", "dog": "yes" if item % 2 else "no"}
        )
        database.write_now(lambda cursor: exclude(cursor, contrary, now=NOW + 100, reason="contrary", by="test"))
        found = {each.annotator: each for each in database.read_now(lambda cursor: annotator_quality(cursor, project))}
    assert [found[each].agreement for each in honest] == [1.0, 1.0]
    assert found[contrary].agreement == 0.0
    assert (found[contrary].counts, found[contrary].reason) == (False, "contrary")


def test_a_class_on_which_all_answers_are_the_same_has_no_alpha(tmp_path: Path) -> None:
    project = text_project(tmp_path / "project", items=4, k=2)
    with open_database(project) as database:
        for _ in range(2):
            judge_all(database, project, lambda item: {"cat": "yes", "dog": "yes" if item % 2 else "no"})
        cat, dog = database.read_now(lambda cursor: agreement_by_class(cursor, project))
    assert [str(each) for each in (cat.alpha, cat.without_unsure)] == ["not defined: no variation"] * 2
    assert dog.alpha is not None
    assert dog.alpha.value == 1.0


def test_nothing_collected_is_no_error(tmp_path: Path) -> None:
    project = text_project(tmp_path / "project", items=3)
    with open_database(project) as database:
        assert database.read_now(lambda cursor: annotator_quality(cursor, project)) == []
        assert all(each.entropy is None for each in database.read_now(lambda cursor: item_quality(cursor, project)))
        assert all(each.alpha is None for each in database.read_now(lambda cursor: agreement_by_class(cursor, project)))


def test_the_posterior_entropy_has_the_mean_of_wolpert_and_wolf() -> None:
    """E[H] = psi(A + 1) - sum_k a_k / A psi(a_k + 1) (Wolpert, Wolf 1995, Phys. Rev. E 52, 6841)."""
    mass = np.array([[6.0, 0.0, 0.0], [3.0, 3.0, 0.0], [2.0, 2.0, 2.0], [5.0, 1.0, 0.0]])
    mean, low, high = entropy_interval(mass, draws=20_000, seed=0)
    a = mass + panel_concentration(mass)
    total = a.sum(axis=1)
    expected = psi(total + 1) - (a / total[:, None] * psi(a + 1)).sum(axis=1)
    np.testing.assert_allclose(mean, expected, atol=0.01)
    assert (low < mean).all()
    assert (mean < high).all()
