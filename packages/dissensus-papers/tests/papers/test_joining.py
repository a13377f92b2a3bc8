"""Seeds that go on: those that are run later are put beside those that are kept, as if all had been run at once."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import t
from typer.testing import CliRunner

from dissensus.cli import app
from dissensus.errors import InputError
from dissensus_papers.papers import read_paper, read_summaries
from dissensus_papers.papers.joining import joined
from dissensus_papers.papers.kept import write_summary
from dissensus_papers.papers.running import Reproduction, reproduce
from dissensus_papers.papers.summary import measured_over_splits, row_over_splits
from tests.papers.conftest import STUDY, write_data

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_papers.papers import StudySummary

TWO = 'system = "soft"\nagainst = "majority"\n'
ASKED = {
    "change": f'quantity = "relative change"\nmetric = "soft_nll"\n{TWO}',
    "varied": f'quantity = "difference"\nmetric = "brier"\nstratum = "varied"\n{TWO}',
    "score": 'quantity = "score"\nmetric = "kl"\nsystem = "soft"\n',
    "order": 'quantity = "order"\nmetric = "kl"\nsystems = ["marginal", "soft", "majority"]\n',
    "refused": f'quantity = "between runs"\n{TWO}',
    "basins": f'quantity = "basin ratio"\nmeasure = "trace"\n{TWO}',
}


STUDIES = '[[studies]]\nname = "small"\nown_splits = true\n[[studies]]\nname = "shared"\n'
CLAIMS = STUDIES + "".join(
    f'[[claims]]\nid = "{name}"\nsays = "s"\nmark = "verified"\nstudy = "small"\n{asks}'
    "reproduced = [-9.0, 9.0]\nin_direction = [-9.0, 9.0]\ncannot_fail = true\n"
    for name, asks in ASKED.items()
)


@dataclass(frozen=True)
class Split:
    """A paper whose seeds have splits of their own; all runs go to one store, so that they take the same time."""

    folder: Path

    def run(self, out: str, seeds: int | range, **more: Any) -> StudySummary:
        how = Reproduction(seeds=seeds, only=("small",), engine="loop", device="cpu", resamples=20, **more)
        (found,) = reproduce(read_paper(self.folder / "claims.toml"), self.folder / "store", self.folder / out, how=how)
        assert read_summaries(self.folder / out, "claims")["small"] == found
        return found

    def kept(self, out: str) -> dict[str, Any]:
        """A kept summary without its seal; hours are rounded."""
        told: dict[str, Any] = json.loads((self.folder / out / "claims" / "small.json").read_text())
        assert told.pop("seal")
        return {**told, "machine_hours": pytest.approx(told["machine_hours"], rel=1e-3)}


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    folder = tmp_path_factory.mktemp("split-paper")
    write_data(folder)
    text = STUDY.format(targets='["frequency"]', deliveries='["majority", "soft"]', regime="early-stopping")
    text = text.replace('file = "splits.csv"', "train = 0.6\nvalidation = 0.2\ntest = 0.2")
    (folder / "small.toml").write_text(text.replace('original = "gold.csv"\n', ""))
    (folder / "claims.toml").write_text(CLAIMS)
    shutil.copy(folder / "small.toml", folder / "shared.toml")
    made = Split(folder)
    made.run("at-once", 4)
    return made


@pytest.fixture(scope="module")
def halves(split: Split) -> tuple[StudySummary, StudySummary]:
    """The summaries of the first two seeds and of the others, each run alone."""
    return split.run("first half", 2), split.run("second half", range(2, 4))


def again(made: Split, out: str, *parts: int | range) -> dict[str, Any]:
    for part in parts:
        made.run(out, part)
    return made.kept(out)


@pytest.mark.parametrize(
    "parts",
    [
        (2, range(2, 4)),
        (range(2, 4), 2),  # the later seeds first
        (3, range(1, 4)),  # seeds that both have
        (1, range(1, 2), range(2, 3), range(3, 4)),  # one by one: a split alone has no interval
        (4, range(2, 4)),  # nothing that was not there
        (2, 4),  # all of what was there
    ],
)
def test_seeds_that_are_run_later_give_the_same_as_all_at_once(split: Split, parts: tuple[int | range, ...]) -> None:
    out = "-".join(map(str, parts))
    told = split.kept("at-once")
    found = again(split, out, *parts)
    # Hours of seeds that are replaced are taken as equal among seeds, which a busy machine does not make them.
    if sum(part if isinstance(part, int) else len(part) for part in parts) > len(told["seeds"]):
        found["machine_hours"] = told["machine_hours"]
    assert found == told
    assert told["seeds"] == [0, 1, 2, 3]
    assert {name for name, answer in told["answers"].items() if "measured" not in answer} == {"refused", "basins"}
    assert all(len(row["by_seed"]) == 4 for row in told["scores"])
    assert {"varied", "unanimous"} <= {row["stratum"] for row in told["scores"]}
    files = [(split.folder / each / "claims" / "small.json").read_text() for each in (out, "at-once")]
    one, other = ([line for line in file.splitlines() if not re.search("hours|seal", line)] for file in files)
    assert [line.removesuffix(",") for line in one] == [line.removesuffix(",") for line in other]


def test_a_seed_that_both_have_is_the_later_runs(split: Split) -> None:
    kept, new = split.run("first", 2), split.run("second", range(1, 3))

    def with_value(answers: dict[str, Any], value: float) -> dict[str, Any]:
        measured = {**answers["score"]["measured"], "by_seed": [value, value]}
        return {**answers, "score": {**answers["score"], "measured": measured}}

    both = joined(
        replace(kept, answers=with_value(kept.answers, 1.0)), replace(new, answers=with_value(new.answers, 2.0))
    )
    assert both.answers["score"]["measured"]["by_seed"] == [1.0, 2.0, 2.0]
    assert both.answers["score"]["measured"]["value"]["value"] == pytest.approx(5 / 3, rel=1e-5)
    # What is replaced is not counted twice, however often that is done.
    assert sum(both.trained_on.values()) == 6
    assert sum(joined(both, new).trained_on.values()) == 6


def test_where_one_side_was_not_measured_or_lacks_a_stratum_so_does_the_whole(
    halves: tuple[StudySummary, StudySummary],
) -> None:
    kept, new = halves
    gone = {"asks": kept.answers["score"]["asks"], "not measured": "gone"}
    for first, second in ((kept, new), (new, kept)):
        lacking = replace(
            first,
            answers={**first.answers, "score": gone},
            scores=tuple(row for row in first.scores if row["stratum"] != "varied"),
            versions={**first.versions, "torch": "0.1", "old": "1"},
        )
        for one, other in ((lacking, second), (second, lacking)):
            both = joined(one, other)
            assert both.answers["score"] == gone
            assert "measured" in both.answers["change"]
            assert {row["stratum"] for row in both.scores} == {"all", "unanimous"}
            assert both.versions["torch"] == ", ".join(sorted(("0.1", second.versions["torch"])))
            assert both.versions["old"] == "1"


def test_an_older_summary_without_its_share_is_joined_by_the_new_ones(
    halves: tuple[StudySummary, StudySummary],
) -> None:
    kept, new = halves
    assert joined(replace(kept, tested_share=0.0), new) == joined(kept, new)


@pytest.mark.parametrize(
    "changed",
    [
        {"rules": ""},
        {"rules": "0" * 64},
        {"data": {"votes": "other"}},
        {"data": {}},
        {"quick": True},
        {"instead": True},
        {"study": "other"},
        {"split": "test"},
        {"missing": "its data were not here", "toml": "", "seeds": ()},
        {"toml": ("epochs = 4", "epochs = 5")},
        {"toml": ("train = 0.6", "train = 0.5")},
    ],
)
def test_what_is_not_the_same_study_is_replaced(
    halves: tuple[StudySummary, StudySummary], changed: dict[str, Any]
) -> None:
    kept, new = halves
    assert joined(kept, new).seeds == (0, 1, 2, 3)
    changed = {
        key: kept.toml.replace(*value) if isinstance(value, tuple) and value else value
        for key, value in changed.items()
    }
    other = replace(kept, **changed)
    assert asdict(other) != asdict(kept)
    assert joined(other, new) is new
    assert joined(None, new) is new
    # All seeds on one split: their values are not independent, and one run's interval is not two runs'.
    assert joined(kept, replace(new, tested_share=0.0)).seeds == new.seeds


def test_rules_that_were_changed_between_runs_start_again(split: Split, tmp_path: Path) -> None:
    for name in ("votes.csv", "gold.csv", "x.npz", "small.toml", "shared.toml", "claims.toml"):
        shutil.copy(split.folder / name, tmp_path)
    made = Split(tmp_path)
    made.run("out", 2)
    text = (tmp_path / "claims.toml").read_text()
    (tmp_path / "claims.toml").write_text(text.replace("[-9.0, 9.0]", "[-8.0, 8.0]", 1))
    trained = sorted((tmp_path / "store" / "runs").iterdir())
    with pytest.raises(InputError, match="keeps small as run by other rules, settings or data"):
        made.run("out", range(2, 4))
    # Before hours are spent on seeds that would have nothing to stand beside.
    assert sorted((tmp_path / "store" / "runs").iterdir()) == trained
    assert read_summaries(tmp_path / "out", "claims")["small"].seeds == (0, 1)
    assert made.run("out", 4).seeds == (0, 1, 2, 3)


def changed(value: Any) -> Any:
    """The same with one thing changed by hand."""
    if isinstance(value, dict):
        return dict(list(value.items())[:-1]) or {"other": 1}
    if isinstance(value, list):
        return value[:-1] if value else [1]
    if isinstance(value, bool | str):
        return not value if isinstance(value, bool) else f"{value}0"
    return value + 1 if isinstance(value, int) else value * 1.000001


def test_whatever_is_changed_in_a_kept_summary_it_is_refused(split: Split, tmp_path: Path) -> None:
    """Also what no other number of it contradicts: a p-value, a count of seeds, an answer that is gone."""
    path = write_summary(tmp_path, "claims", split.run("edited", 2))
    held = json.loads(path.read_text())
    assert {"scores", "answers", "seeds", "items", "data", "rules", "tested_share", "seal"} <= held.keys()
    edits = [held | {key: changed(value)} for key, value in held.items()]
    measured = held["answers"]["change"]["measured"]
    for inside in (measured, measured["value"], held["scores"][0]):
        for key, value in inside.items():
            inside[key] = changed(value) if value is not None else 0.5
            edits.append(json.loads(json.dumps(held)))
            inside[key] = value
    edits += [{key: value for key, value in held.items() if key != gone} for gone in ("seal", "worth")]
    for edited in (edited for edited in edits if edited != held):
        path.write_text(json.dumps(edited))
        with pytest.raises(
            InputError, match=r"small\.json: (it was changed after it was written|it has no seal|this is no summary)"
        ):
            read_summaries(tmp_path, "claims")
    path.write_text(json.dumps(held, indent=4, sort_keys=True))
    assert read_summaries(tmp_path, "claims")["small"].seeds == (0, 1)


@pytest.mark.parametrize(("old", "new"), [('"items": ', '"items": "x", "was": '), ('"toml": "', '"toml": "[')])
def test_what_is_no_number_or_no_study_is_no_summary(split: Split, tmp_path: Path, old: str, new: str) -> None:
    path = write_summary(tmp_path, "claims", split.run("edited", 2))
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=r"small\.json: this is no summary of a study"):
        read_summaries(tmp_path, "claims")


def test_no_interval_over_splits_leaves_what_a_metric_can_be(split: Split) -> None:
    """Accuracies near 1 on three splits had an interval above 1, which no claim's range holds."""
    kept = split.run("edited", 2)
    row = next(row for row in kept.scores if (row["metric"], row["system"]) == ("accuracy", "soft"))
    bounded = row_over_splits(row, [0.8, 0.97, 1.0], tested_share=0.25)
    mean, half = np.mean([0.8, 0.97, 1.0]), np.std([0.8, 0.97, 1.0], ddof=1) * np.sqrt(1 / 3 + 0.25) * t.ppf(0.975, 2)
    assert mean + half > 1
    assert (bounded["low"], bounded["high"]) == pytest.approx((mean - half, 1.0), rel=1e-5)
    answer = {**kept.answers["varied"], "measured": {"null": 0.0, "over": "seeds"}}
    found = measured_over_splits(answer, [-1.9, 1.9], tested_share=0.25)["measured"]["value"]
    assert (found["low"], found["high"]) == (-2.0, 2.0)


def test_seeds_join_where_features_are_learnt_from_each_split(split: Split, tmp_path: Path) -> None:
    """What tfidf reads of an item depends on the training items: votes and texts say that data are the same."""
    shutil.copytree(split.folder, tmp_path / "texts", ignore=shutil.ignore_patterns("store", "*half", "at-once"))
    made = Split(tmp_path / "texts")
    items = sorted({line.split(",")[0] for line in (made.folder / "votes.csv").read_text().splitlines()[1:]})
    words = [f"{item},{'good' if place % 3 else 'bad'} word{place % 7}" for place, item in enumerate(items)]
    (made.folder / "texts.csv").write_text("\n".join(["item,text", *words]) + "\n")
    study = (made.folder / "small.toml").read_text().replace('features = "x.npz"', 'texts = "texts.csv"')
    (made.folder / "small.toml").write_text(study)
    assert set(made.run("joined", 2).data) == {"votes", "items"}
    assert made.run("joined", range(2, 3)).seeds == (0, 1, 2)
    (made.folder / "texts.csv").write_text("\n".join(["item,text", *words[:-1], f"{items[-1]},another"]) + "\n")
    with pytest.raises(InputError, match="as run by other rules, settings or data"):
        made.run("joined", range(3, 4))


def test_a_range_of_seeds_is_for_studies_whose_seeds_have_splits_of_their_own(split: Split, tmp_path: Path) -> None:
    how = Reproduction(seeds=range(4, 6))
    told = "claims: all seeds of shared share one split, so that others cannot be put beside them"
    with pytest.raises(InputError, match=told):
        # Before anything is trained, though the study that has them stands first.
        next(reproduce(read_paper(split.folder / "claims.toml"), tmp_path / "store", tmp_path / "out", how=how))
    assert not list(tmp_path.iterdir())


def test_the_command_takes_a_number_or_the_first_and_the_last(split: Split, tmp_path: Path) -> None:
    command = ["reproduce", str(split.folder / "claims.toml"), "--only", "small", "--engine", "loop", "--device", "cpu"]
    where = ["--resamples", "200", "--store", str(split.folder / "store"), "-o", str(tmp_path)]
    for seeds, found in (("1-2", (1, 2)), ("1", (0, 1, 2)), ("3-3", (0, 1, 2, 3))):
        result = CliRunner().invoke(app, [*command, *where, "--seeds", seeds])
        assert result.exit_code == 0, result.output
        assert read_summaries(tmp_path, "claims")["small"].seeds == found
    for seeds in ("5-4", "4-", "-5", "many", "1.5", "1-2-3", ""):
        result = CliRunner().invoke(app, [*command, *where, f"--seeds={seeds}"])
        assert isinstance(result.exception, InputError)
        assert f"--seeds is '{seeds}'; give a number, as 10" in str(result.exception)
