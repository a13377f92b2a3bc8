"""Basins and OOD detection as parts of a study: measured once, kept, found again."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from dissensus.errors import InputError
from dissensus_train.basins.summary import summarise_basins
from dissensus_train.report.subject import added_by_study, study_subject
from dissensus_train.studies import measuring, open_study, plan_study, read_study, run_plan, score_study
from tests.study_report.studies import finished, make_study

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus_train.studies import OpenStudy

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> OpenStudy:
    return finished(tmp_path_factory.mktemp("study"), measured=True)


def test_every_run_has_a_basin_on_the_same_loss_and_items(opened: OpenStudy) -> None:
    found = measuring.study_basins(opened)
    assert {name: len(basins) for name, basins in found.systems.items()} == {"majority": 2, "soft": 2}
    assert len({basin.measured_on for basins in found.systems.values() for basin in basins}) == 1
    assert [(each.first, each.second, len(each.pairs)) for each in found.pairs] == [
        ("majority", "soft", 2),
        ("majority", "majority", 1),
        ("soft", "soft", 1),
    ]


def test_what_was_measured_is_not_measured_again(opened: OpenStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    first, detected = measuring.study_basins(opened), measuring.study_ood(opened)
    for name in ("measure_basins", "compare_basins", "measure_ood"):
        monkeypatch.setattr(measuring, name, None)
    again = measuring.study_basins(opened)
    for name, basins in first.systems.items():
        assert [basin.to_dict() for basin in again.systems[name]] == [basin.to_dict() for basin in basins]
    assert measuring.study_ood(opened) == detected
    assert measuring.study_ood(opened).systems == ("majority", "soft")


def test_a_changed_ood_set_is_measured_anew(opened: OpenStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    measuring.study_ood(opened)
    far = opened.study.folder / "far.npz"
    kept = far.read_bytes()
    np.savez(far, features=np.zeros((30, 3), dtype=np.float32))
    monkeypatch.setattr(measuring, "measure_ood", None)
    with pytest.raises(TypeError, match="not callable"):
        measuring.study_ood(opened)
    far.write_bytes(kept)


def test_a_store_that_is_carried_elsewhere_keeps_what_was_measured(
    opened: OpenStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = measuring.study_ood(opened)
    chosen = opened.study.ood
    assert chosen is not None
    moved = {name: Path(shutil.copy(path, tmp_path)) for name, path in chosen.sets.items()}
    monkeypatch.setattr(measuring, "measure_ood", None)
    assert measuring.study_ood(opened, replace(chosen, sets=moved)) == found


def file_of(path: Path) -> Path:
    """Return the only file of a set. The set is the file itself or a folder around it."""
    return path / "sub" / "a.png" if path.is_dir() else path


def copied(path: Path) -> Path:
    copy = path.with_name("copy")
    shutil.copytree(path, copy) if path.is_dir() else shutil.copyfile(path, copy)
    os.utime(file_of(copy), (9, 9))
    return copy


CHANGES: dict[str, tuple[Callable[[Path], Any], bool]] = {
    "touched": (lambda path: os.utime(file_of(path), (9, 9)), True),
    "moved": (lambda path: path.rename(path.with_name("moved")), True),
    "copied": (copied, True),
    "changed": (lambda path: file_of(path).write_bytes(b"other bytes"), False),
    "gone": (lambda path: file_of(path).unlink(), False),
}
"""Changes of a set by name. Each has a function, which may return a new path, and if the measurement stays valid."""


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_stored_ood_is_found_by_what_its_files_hold(
    opened: OpenStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, *, folder: bool
) -> None:
    found = measuring.study_ood(opened)
    monkeypatch.setattr(measuring, "measure_ood", lambda *_, **__: found)

    def asking(path: Path) -> OpenStudy:
        assert opened.study.ood is not None
        asked = replace(opened.study.ood, sets={"<u>far</u>": path})
        return replace(opened, study=replace(opened.study, ood=asked))

    path = tmp_path / "set"
    if folder:
        (path / "sub").mkdir(parents=True)
    file_of(path).write_bytes(b"some bytes")
    measuring.study_ood(asking(path))
    make, kept = CHANGES[change]
    place = make(path)
    assert measuring.stored_ood(asking(place if isinstance(place, Path) else path)) == (found if kept else None)


def test_added_by_study_says_that_ood_sets_are_gone(opened: OpenStudy) -> None:
    scored = score_study(opened, resamples=5)
    subject = study_subject(scored)

    def chapter() -> tuple[str, int]:
        chapters = added_by_study(scored, subject, resamples=5, seed=0).chapters
        (of_ood,) = [chapter for chapter in chapters if chapter.anchor == "ood"]
        return of_ood.note, len(of_ood.tables)

    far = opened.study.folder / "far.npz"
    assert chapter() == ("", 2)
    far.rename(far.with_name("elsewhere.npz"))
    assert chapter() == (
        "The store has no measurement of these sets as they are now. Not found: far.npz; put back what is missing.",
        0,
    )
    shutil.copyfile(far.with_name("elsewhere.npz"), far)
    assert chapter() == ("", 2)


def test_a_summary_is_over_seeds_with_ratios_by_seed(opened: OpenStudy) -> None:
    found = measuring.study_basins(opened)
    rows = {(row.system, row.quantity): row for row in summarise_basins(found.systems, reference="majority")}
    traces = {name: [basin.trace.value for basin in basins] for name, basins in found.systems.items()}
    soft = rows["soft", "trace"]
    assert soft.mean == pytest.approx(np.mean(traces["soft"]))
    assert soft.sd == pytest.approx(np.std(traces["soft"], ddof=1))
    assert soft.ratios == pytest.approx(np.array(traces["soft"]) / traces["majority"])
    assert rows["majority", "trace"].ratios == ()
    assert soft.error == max(basin.trace.error for basin in found.systems["soft"])


def test_every_pair_of_seeds_is_compared(tmp_path: Path) -> None:
    path = make_study(tmp_path, measured=True)
    path.write_text(path.read_text(encoding="utf-8").replace("seeds = 2", "seeds = 3"), encoding="utf-8")
    plan = plan_study(read_study(path), tmp_path / "store", engine="loop", device="cpu")
    list(run_plan(plan))
    plan.writer.close()
    found = measuring.study_basins(plan.opened)
    alone = found.pairs[2]
    assert alone.name == "soft, all pairs of seeds"
    assert alone.seeds == ((0, 1), (0, 2), (1, 2))
    assert alone.cka.value == pytest.approx(np.mean([pair.similarity.value for pair in alone.pairs]))
    assert found.explanations["soft"].pairs == 3


def test_basins_of_different_items_are_not_put_together(opened: OpenStudy) -> None:
    from dataclasses import replace

    found = measuring.study_basins(opened)
    assert opened.study.basins is not None
    few = replace(opened.study.basins, items=20, density=0, surface=0, line=0, explanations=0)
    other = measuring.study_basins(opened, few)
    with pytest.raises(InputError, match="measured on different losses or items"):
        summarise_basins({"a": found.systems["soft"], "b": other.systems["soft"]}, reference="a")


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ("[basins]\nprobs = 3", r"line 26: 'probs' is no key in \[basins\]; did you mean 'probes'"),
        ("[basins]\nitems = 1", r"line 26: 'items' is refused: .*2 or more"),
        ("[ood]\nitems = 5", r"line 25: 'sets' in \[ood\] is missing; give names and places"),
        ("[ood]\nsets = { a = 'a.npz' }\nscores = ['mps']", r"line 27: 'scores' is refused: .*'mps'"),
        ("[ood]\nsets = 'a.npz'", r"line 26: 'sets' is 'a.npz'; give names and places"),
    ],
)
def test_a_wrong_table_is_refused_with_its_line(tmp_path: Path, tables: str, told: str) -> None:
    path = make_study(tmp_path)
    path.write_text(path.read_text(encoding="utf-8") + tables, encoding="utf-8")
    with pytest.raises(InputError, match=told):
        read_study(path)


def test_a_study_without_tables_says_what_is_missing(tmp_path: Path) -> None:
    opened = open_study(read_study(make_study(tmp_path)), tmp_path / "store")
    with pytest.raises(InputError, match=r"no \[basins\] table"):
        measuring.study_basins(opened)
    with pytest.raises(InputError, match="no out-of-distribution sets"):
        measuring.study_ood(opened)
