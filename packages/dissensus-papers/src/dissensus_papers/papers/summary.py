"""What is kept of a study: scores by run, answers to claims and the compute that it took; small, without weights.

FOLDER/PAPER/STUDY.json is all that a page needs, so that pages can be written where the runs are not.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import dissensus
from dissensus.datasets import data_folder
from dissensus.errors import InputError
from dissensus.evaluation import Estimate
from dissensus_papers.papers.evidence import ALL, MOST_CONTESTED, NotMeasuredError
from dissensus_papers.papers.measured import Measured, listed, over_seeds, rounded
from dissensus_papers.papers.quantities import bounds_of, measure
from dissensus_train.basins import summarise_basins
from dissensus_train.studies import stored_basins, stored_ood, study_toml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dissensus.evaluation import Evaluation
    from dissensus_papers.papers.claims import Claim, Paper
    from dissensus_papers.papers.evidence import Evidence
    from dissensus_train.ood import OodResult
    from dissensus_train.studies import OpenStudy, StudyBasins
    from dissensus_train.training import TrainingData

STRATA_KEPT: Final = (ALL, "unanimous", "varied", MOST_CONTESTED)
"""Strata whose scores are kept by run."""

DASH: Final = "-"
"""What stands in a table for a number that there is not."""

OWN_SPLITS: Final = "each seed on a split of its own"
"""What `split` says of such a study."""

FILES: Final = ("votes", "texts", "images", "features", "original", "file")
"""Keys of a dataset and of splits that may name files."""

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
        rules: SHA-256 of the rules that it was made to be judged by (`Paper.rules`); empty where no paper has claims.
        versions: of what trained the runs and of dissensus, which summarised them.
        data: SHA-256 of the votes and of the features behind it.
        external: of predictions that somebody handed in, what they are; empty of what was run here.
        tested_share: items tested on for each trained on, where every seed has a split of its own; else 0, as in
            summaries from before.
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
    trained_on: dict[str, int] = field(default_factory=dict)
    machine_hours: float = 0.0
    scores: tuple[dict[str, Any], ...] = ()
    worth: dict[str, str] = field(default_factory=dict)
    ruler: str = ""
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)
    unmeasured: tuple[str, ...] = ()
    rules: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    external: str = ""
    tested_share: float = 0.0


def summarise(
    paper: Paper, name: str, evidence: Evidence, *, quick: bool = False, instead: bool = False, own_split: bool = False
) -> StudySummary:
    """Measure what a paper's claims ask of a study, called `name` there, and keep it with its scores.

    With `own_split` it is one seed of a study whose seeds each have a split of their own, to be joined by the others.
    """
    study, data = evidence.first.study, evidence.first.data
    trained_on, versions, hours = _compute(evidence)
    folds = bool(study.folds)
    panel_size = data.targets[study.targets[0].name].panel_size[data.splits["train"]]
    whole = replace(
        planned(paper, name, evidence.first, quick=quick, instead=instead),
        split=f"test, each item in one of {study.folds} folds" if folds else evidence.scored.split,
        items=evidence.evaluation.items,
        votes=rounded(float(panel_size.mean())),
        seeds=study.seeds,
        cautions=() if folds else evidence.scored.cautions,
        trained_on=trained_on,
        machine_hours=hours,
        scores=tuple(scores_of(evidence.evaluation)),
        worth={} if own_split else {system: str(worth) for system, worth in evidence.evaluation.worth.items()},
        answers={claim.id: _answer(claim, evidence) for claim in paper.claims if claim.study == name},
        measured={} if folds or own_split else rounded(measured_of(evidence.first)),
        versions=versions,
    )
    if not own_split:
        return whole
    share = len(data.splits[data.held_out]) / len(data.splits["train"])
    return replace(
        whole,
        split=f"{whole.split}, {OWN_SPLITS}",
        scores=tuple(row_over_splits(row, row["by_seed"], tested_share=share) for row in whole.scores),
        answers={
            claim: measured_over_splits(answer, [answer["measured"]["value"]["value"]], tested_share=share)
            if "measured" in answer
            else answer
            for claim, answer in whole.answers.items()
        },
        tested_share=share,
    )


def planned(paper: Paper, name: str, opened: OpenStudy, *, quick: bool, instead: bool) -> StudySummary:
    """What a summary will say of a study that is not run yet: what is run, on which data, and judged by which rules."""
    study, data = opened.study, opened.data
    return StudySummary(
        name=name,
        study=study.name.removesuffix(f"-fold-{study.fold}").removesuffix(f"-split-{study.split_seed}"),
        question=study.question,
        quick=quick,
        instead=instead,
        toml=without_place(study_toml(study)),
        ruler=RULER,
        rules=paper.rules(name),
        data={"votes": checksum(data.human.counts)} | _read_from(data),
    )


def _read_from(data: TrainingData) -> dict[str, str]:
    """What networks read, by its checksum: features; or items, where there are no features or a split taught them."""
    learnt = data.encoder is not None and data.encoder.state
    if data.items is not None and (learnt or not data.features.shape[-1]):
        return {"items": data.items.fingerprint}
    return {"features": checksum(data.features)}


def checksum(values: Any) -> str:
    """SHA-256 of an array's numbers."""
    return sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def without_place(text: str) -> str:
    """The same without the folder of data: a summary is published, and where one machine keeps its data is not."""
    return text.replace(f"{data_folder()}/", "")


def decides(text: str) -> dict[str, Any]:
    """What decides the numbers of a study file, whatever folder its files lie in; seeds may be fewer."""
    tables = tomllib.loads(without_place(text))
    dataset, splits = (
        {key: Path(value).name if key in FILES and isinstance(value, str) else value for key, value in of.items()}
        for of in (tables["dataset"], tables["splits"])
    )
    about = {"dataset": dataset, "splits": splits | {"seed": 0}, "training": tables.get("training")}
    return about | {key: tables["grid"][key] for key in ("targets", "deliveries", "models")}


def _answer(claim: Claim, evidence: Evidence) -> dict[str, Any]:
    try:
        measured = measure(evidence, claim.quantity, claim.about)
        if not np.isfinite([measured.value.value, *measured.by_seed]).all():
            raise InputError("claims: it is not defined here, as a correlation with what is the same for all items")
    except InputError as error:
        key = "not measured" if isinstance(error, NotMeasuredError) else "refused"
        return {"asks": claim.asks, key: without_place(str(error).removeprefix("claims: "))}
    return {"asks": claim.asks, "measured": rounded(measured.to_dict())}


def scores_of(evaluation: Evaluation) -> list[dict[str, Any]]:
    """What is kept of an evaluation: by stratum, metric and system, the score of each seed and their mean."""
    tables = (evaluation.overall, *evaluation.strata.values())
    rows = {(row.stratum, row.metric, row.system): row for table in reversed(tables) for row in table.rows}
    # A stratum of the same name is the same one, whatever the idea it belongs to.
    values = {stratum: values for (_, stratum), values in evaluation.compared.resampled.items()}
    return [
        {
            "stratum": stratum,
            "items": row.items,
            "metric": row.metric,
            "system": row.system,
            "baseline": row.system in evaluation.baselines,
            "by_seed": rounded(values[stratum][row.metric][row.system][0].tolist()),
            **rounded(ends_of(row.value)),
        }
        for stratum in values
        if stratum in STRATA_KEPT
        for row in rows.values()
        if row.stratum == stratum and row.value is not None
    ]


def row_over_splits(row: Mapping[str, Any], by_seed: Sequence[float | None], *, tested_share: float) -> dict[str, Any]:
    """A score of seeds that each have a split of their own; `row` says what it is of."""
    values = np.array(rounded(by_seed), dtype=np.float64)
    over = over_seeds(values, tested_share=tested_share, null=None, bounds=bounds_of("score", row))
    return {**row, "by_seed": rounded(values.tolist()), **rounded(ends_of(over.value))}


def measured_over_splits(
    answer: Mapping[str, Any], by_seed: Sequence[float | None], *, tested_share: float
) -> dict[str, Any]:
    """The answer to a claim of seeds that each have a split of their own; `answer` says what it is of."""
    asks, about = answer["asks"], answer["measured"]
    values = np.array(rounded(by_seed), dtype=np.float64)
    if about["over"]:
        bounds = bounds_of(asks["quantity"], asks)
        over = over_seeds(values, tested_share=tested_share, null=about["null"], bounds=bounds)
    else:
        # What has no interval by nature gets none.
        over = Measured(value=Estimate(float(values.mean())), by_seed=listed(values), null=about["null"])
    return {"asks": asks, "measured": rounded(over.to_dict())}


def ends_of(value: Estimate) -> dict[str, float | None]:
    """A score with its interval, as it is kept."""
    return {"mean": value.value, "low": value.low, "high": value.high}


def _compute(evidence: Evidence) -> tuple[dict[str, int], dict[str, str], float]:
    """By engine, device and machine the number of runs; versions; and hours of machine time."""
    trained_on: Counter[str] = Counter()
    versions: list[Mapping[str, str]] = [{"dissensus": dissensus.__version__}]
    seconds = 0.0
    for opened in evidence.opened:
        for run in opened.runs:
            result = opened.store.load(run.key, dynamics=False, weights=False)
            timing = result.timing
            versions.append(result.versions)
            machine = timing.get("machine", "a machine that was not noted")
            trained_on[f"{timing['engine']} on {timing['device']}, {machine}"] += 1
            # Workers on cores count each run by its own clock; a GPU's runs share theirs already.
            seconds += timing["seconds"] / (timing["together"] if timing["device"] == "cpu" else 1)
    return dict(trained_on), united(versions), float(f"{seconds / 3600:.4g}")


def united(versions: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """By name all versions that some have, in order."""
    found: dict[str, set[str]] = {}
    for each in versions:
        for name, told in each.items():
            found.setdefault(name, set()).update(told.split(", "))
    return {name: ", ".join(sorted(of)) for name, of in found.items()}


def measured_of(opened: OpenStudy) -> dict[str, Any]:
    """The basins and the out-of-distribution detection that a study asks for and its store has, ready for JSON."""
    basins, ood = stored_basins(opened), stored_ood(opened)
    return ({} if basins is None else {"basins": _basins(basins)}) | ({} if ood is None else {"ood": _ood(ood)})


def _basins(basins: StudyBasins) -> dict[str, Any]:
    on = basins.systems[basins.reference][0].measured_on
    rows = summarise_basins(basins.systems, reference=basins.reference)
    return {
        "on": f"{on.loss} on {on.items:,} items ({on.data})",
        "reference": basins.reference,
        "rows": [{**row.to_dict(), "times_reference": row.times_reference} for row in rows],
        "pairs": [
            {"runs": of.name, "pairs": len(of.pairs), "barrier": of.barrier.to_dict(), "cka": of.cka.to_dict()}
            for of in basins.pairs
        ],
        "explanations": [
            {"system": system, "method": maps.method, "pairs": maps.pairs}
            | {"cosine": maps.cosine.to_dict(), "correlation": maps.correlation.to_dict()}
            for system, maps in basins.explanations.items()
        ],
    }


def _ood(ood: OodResult) -> dict[str, Any]:
    rows = []
    for row in (row for row in ood.measures if row.measure == "auroc"):
        gap = ood.difference(row.ood_set, row.score, system=row.system)
        about = {"ood_set": row.ood_set, "score": row.score, "system": row.system, "by_seed": list(row.by_seed)}
        difference = None if gap is None else gap.value.to_dict()
        rows.append({**about, "auroc": row.value.to_dict(), "difference": difference})
    sets = {ood_set.name: ood_set.items for ood_set in ood.sets}
    return {"against": ood.against, "reference": ood.systems[0], "sets": sets, "rows": rows}


def worth_of(summary: StudySummary, system: str) -> str:
    """How many people a system is worth, in words; of a summary by an earlier ruler, that it was not run again."""
    return summary.worth.get(system, DASH) if summary.ruler == RULER else "not yet rerun"
