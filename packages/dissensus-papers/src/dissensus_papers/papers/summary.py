"""What is kept of a study: scores by run, answers to claims and the compute that it took; small, without weights.

FOLDER/PAPER/STUDY.json is all that a page needs, so that pages can be written where the runs are not.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.datasets import data_folder
from dissensus.errors import InputError
from dissensus.evaluation.comparison.strata import ALL
from dissensus.evaluation.comparison.tables import DASH
from dissensus.whole_file import whole_file
from dissensus_papers.papers.evidence import MOST_CONTESTED, NotMeasuredError
from dissensus_papers.papers.measured import measured_of
from dissensus_papers.papers.quantities import measure
from dissensus_papers.papers.selected_on_test import selected_on_test
from dissensus_train.studies.writing import study_toml
from dissensus_train.training.data import TRAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dissensus_papers.papers.claims import Claim, Paper
    from dissensus_papers.papers.evidence import Evidence

STRATA_KEPT: Final = (ALL, "unanimous", "varied", MOST_CONTESTED)
"""Strata whose scores are kept by run."""

DIGITS: Final = 6
"""Significant digits of kept numbers."""


RULER: Final = "mixture"
"""The people ruler that worth is read off, on which a person is worth one person. A summary without a name for it is by
the one before, a Dirichlet prior, which was not fair to people."""


@dataclass(frozen=True, kw_only=True)
class StudySummary:
    """What is kept of a study, or of its folds together.

    Attributes:
        name: what claims know it by.
        study: the name of the study that was run.
        question: that it asks.
        quick: whether it was cut short by `--quick`.
        instead: whether it stands in for the study that claims are about.
        missing: why it was not run; empty where it was.
        toml: the study file that says it.
        split: whose items were scored.
        items: how many.
        votes: behind the target of a training item, in the mean.
        seeds: of its runs.
        cautions: what a reader must know before any number.
        trained_on: by engine, device and machine, how many runs.
        machine_hours: of training: wall clock, divided among the runs that were trained together.
        scores: one for each stratum, metric and system: by_seed, mean, low, high.
        worth: by system, how many people it is worth, in words.
        ruler: which people ruler said so (`RULER`); what an earlier one said is not printed.
        answers: by claim, what was asked and what was measured, or why it was not.
        measured: of basins and out-of-distribution detection, what the study asks for.
        unmeasured: why something that the study asks for was not measured, in sentences.
        selected_on_test: an audit, never a result: by system, what choosing the epoch on test items would have given.
    """

    name: str
    study: str
    question: str = ""
    quick: bool = False
    instead: bool = False
    missing: str = ""
    toml: str = ""
    split: str = ""
    items: int = 0
    votes: float = 0.0
    seeds: tuple[int, ...] = ()
    cautions: tuple[str, ...] = ()
    trained_on: Mapping[str, int] = field(default_factory=dict)
    machine_hours: float = 0.0
    scores: tuple[Mapping[str, Any], ...] = ()
    worth: Mapping[str, str] = field(default_factory=dict)
    ruler: str = ""
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)
    unmeasured: tuple[str, ...] = ()
    selected_on_test: tuple[Mapping[str, Any], ...] = ()


def summarise(
    paper: Paper, name: str, evidence: Evidence, *, quick: bool = False, instead: bool = False
) -> StudySummary:
    """Measure what a paper's claims ask of a study, and keep it with the scores of its runs.

    Args:
        paper: its claims.
        name: what claims know the study by.
        evidence: what its runs say.
        quick: whether it was cut short.
        instead: whether it stands in for another.
    """
    study = evidence.first.study
    answers = {claim.id: _answer(claim, evidence) for claim in paper.claims if claim.study == name}
    evaluation = evidence.evaluation
    trained_on, hours = _compute(evidence)
    folds = bool(study.folds)
    audited = study.training.dynamics and any(use.audit_selection for use in paper.studies if use.name == name)
    return StudySummary(
        name=name,
        study=study.name.removesuffix(f"-fold-{study.fold}") if folds else study.name,
        question=study.question,
        quick=quick,
        instead=instead,
        toml=without_place(study_toml(study)),
        split=f"test, each item in one of {study.folds} folds" if folds else evidence.scored.split,
        items=evaluation.items,
        votes=_votes(evidence),
        seeds=study.seeds,
        cautions=() if folds else evidence.scored.cautions,
        trained_on=trained_on,
        machine_hours=hours,
        scores=tuple(_scores(evidence)),
        worth={system: str(worth) for system, worth in evaluation.worth.items()},
        ruler=RULER,
        answers=answers,
        measured={} if folds else _rounded(measured_of(evidence.first)),
        selected_on_test=tuple(_rounded(selected_on_test(evidence.scored))) if audited else (),
    )


def _votes(evidence: Evidence) -> float:
    study, data = evidence.first.study, evidence.first.data
    return float(_rounded(float(data.targets[study.targets[0].name].panel_size[data.splits[TRAIN]].mean())))


def without_place(text: str) -> str:
    """The same without the folder of data: a summary is published, and where one machine keeps its data is not."""
    return text.replace(f"{data_folder()}/", "")


def _answer(claim: Claim, evidence: Evidence) -> dict[str, Any]:
    asked = {"asks": claim.asks}
    try:
        return {**asked, "measured": _rounded(measure(evidence, claim.quantity, claim.about).to_dict())}
    except NotMeasuredError as error:
        return {**asked, "not measured": without_place(str(error).removeprefix("claims: "))}
    except InputError as error:
        return {**asked, "refused": without_place(str(error).removeprefix("claims: "))}


def _scores(evidence: Evidence) -> list[dict[str, Any]]:
    evaluation = evidence.evaluation
    rows = [*evaluation.overall.rows, *(row for scores in evaluation.strata.values() for row in scores.rows)]
    rows = [row for row in rows if row.stratum in STRATA_KEPT]
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for idea, stratum in evaluation.compared.resampled:
        for row in rows:
            if row.stratum != stratum or row.value is None or (row.stratum, row.metric, row.system) in found:
                continue
            by_seed = evaluation.compared.resampled[idea, stratum][row.metric][row.system][0]
            found[row.stratum, row.metric, row.system] = {
                "stratum": row.stratum,
                "items": row.items,
                "metric": row.metric,
                "system": row.system,
                "baseline": row.system in evaluation.baselines,
                "by_seed": _rounded(by_seed.tolist()),
                **_rounded({"mean": row.value.value, "low": row.value.low, "high": row.value.high}),
            }
    return list(found.values())


def _compute(evidence: Evidence) -> tuple[dict[str, int], float]:
    """By engine, device and machine the number of runs; and hours of machine time."""
    trained_on: Counter[str] = Counter()
    seconds = 0.0
    for opened in evidence.opened:
        for run in opened.runs:
            timing = opened.store.load(run.key, dynamics=False, weights=False).timing
            machine = timing.get("machine", "a machine that was not noted")
            trained_on[f"{timing['engine']} on {timing['device']}, {machine}"] += 1
            # Workers on cores count each run by its own clock; a GPU's runs share theirs already.
            seconds += timing["seconds"] / (timing["together"] if timing["device"] == "cpu" else 1)
    return dict(trained_on), float(f"{seconds / 3600:.4g}")


def write_summary(folder: Path, paper: str, summary: StudySummary) -> Path:
    """Keep a summary as FOLDER/PAPER/NAME.json."""
    place = folder / paper
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{summary.name}.json"
    with whole_file(path) as part:
        part.write_text(_in_lines(asdict(summary)), encoding="utf-8")
    return path


def _in_lines(value: Mapping[str, Any]) -> str:
    """JSON with a line for each score and each answer, so that a changed one is seen."""

    def lines(inside: Any) -> str:
        if isinstance(inside, dict) and inside:
            entries = [f"{_json(key)}: {_json(each)}" for key, each in inside.items()]
            return "{\n  " + ",\n  ".join(entries) + "\n }"
        if isinstance(inside, list | tuple) and inside and isinstance(inside[0], dict):
            return "[\n  " + ",\n  ".join(map(_json, inside)) + "\n ]"
        return _json(inside)

    return "{\n " + ",\n ".join(f"{_json(key)}: {lines(each)}" for key, each in value.items()) + "\n}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def read_summaries(folder: Path, paper: str) -> dict[str, StudySummary]:
    """By name, the summaries of a paper's studies that a folder keeps."""
    found = {}
    for path in sorted((folder / paper).glob("*.json")):
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
            made = StudySummary(
                **{
                    **given,
                    **{
                        key: tuple(given[key])
                        for key in ("seeds", "cautions", "scores", "selected_on_test")
                        if key in given
                    },
                }
            )
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InputError(
                f"{path}: this is no summary of a study ({error}); remove it, or run the study again"
            ) from error
        found[made.name] = made
    if not found:
        raise InputError(f"{folder / paper}: no summaries of {paper} are here; run dissensus reproduce {paper} first")
    return found


def worth_of(summary: StudySummary, system: str) -> str:
    """How many people a system is worth, in words; of a summary by an earlier ruler, that it was not run again."""
    return summary.worth.get(system, DASH) if summary.ruler == RULER else "not yet rerun"


def shown_strata(summary: StudySummary) -> Sequence[str]:
    """The strata that a summary has scores of, all items first."""
    return list(dict.fromkeys([ALL, *(str(row["stratum"]) for row in summary.scores)]))


def _rounded(value: Any) -> Any:
    """The same with numbers to `DIGITS` digits; what is not finite is null."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return value
