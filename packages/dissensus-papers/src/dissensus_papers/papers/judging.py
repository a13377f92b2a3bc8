"""Verdicts on claims: the same rule for every claim, fixed in its file before the runs.

A claim is *reproduced* where our value lies in its range `reproduced` and our whole interval in its range
`in_direction`; *in direction* where our value lies in `in_direction`; else it is not reproduced. A claim that nothing
differs has a narrow `in_direction` on both sides of 0, so that only a narrow interval can reproduce it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.bootstrap import Estimate
from dissensus.errors import InputError
from dissensus.evaluation.comparison.differences import wilcoxon
from dissensus_papers.papers.quantities import Measured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus_papers.papers.claims import Claim, Paper
    from dissensus_papers.papers.summary import StudySummary

REPRODUCED: Final = "reproduced"
IN_DIRECTION: Final = "in direction"
NOT: Final = "not reproduced"
NOT_TESTABLE: Final = "not testable here"
NOT_RUN: Final = "not run"

VERDICTS: Final = (REPRODUCED, IN_DIRECTION, NOT, NOT_TESTABLE, NOT_RUN)
"""From the best for the paper to what says nothing about it."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A claim with its verdict.

    Attributes:
        claim: what the paper says.
        verdict: one of `VERDICTS`.
        why: in one sentence.
        measured: our value; None where there is none.
        seeds: on how many seeds our value lies on the claim's side, and how many there are; None where it has no side.
        wilcoxon: exact one-sided p-value over seeds that our value lies on the claim's side; None likewise.
        instead: whether another study stands in for the one that the claim is about.
        cautions: what a reader must know of the data behind it: that people were simulated, say.
    """

    claim: Claim
    verdict: str
    why: str
    measured: Measured | None = None
    seeds: tuple[int, int] | None = None
    wilcoxon: float | None = None
    instead: bool = False
    cautions: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        claim = self.claim
        return {
            "id": claim.id,
            "says": claim.says,
            "mark": claim.mark,
            "study": claim.study,
            "asks": claim.asks,
            "paper": claim.paper,
            "reproduced": _finite(claim.reproduced),
            "in_direction": _finite(claim.in_direction),
            "verdict": self.verdict,
            "why": self.why,
            "ours": None if self.measured is None else self.measured.to_dict(),
            "seeds_on_its_side": self.seeds,
            "wilcoxon_one_sided": self.wilcoxon,
            "on_a_stand_in": self.instead,
            "cautions": list(self.cautions),
        }


def judge_paper(paper: Paper, summaries: Mapping[str, StudySummary]) -> tuple[Judged, ...]:
    """A verdict on every claim of a paper.

    Args:
        paper: its claims.
        summaries: by the name that claims know them by, the studies that were run.
    """
    judged: dict[str, Judged] = {}
    # Those that put others together come last.
    for claim in sorted(paper.claims, key=lambda claim: "of" in claim.about):
        judged[claim.id] = _of_claims(claim, judged) if "of" in claim.about else _of_study(claim, summaries)
    return tuple(judged[claim.id] for claim in paper.claims)


def _of_study(claim: Claim, summaries: Mapping[str, StudySummary]) -> Judged:
    if claim.quantity == "unmeasured":
        return Judged(claim=claim, verdict=claim.about.get("verdict", NOT_TESTABLE), why=claim.why)
    found = summaries.get(claim.study)
    if found is None:
        return Judged(claim=claim, verdict=NOT_RUN, why=f"the study {claim.study} was not run")
    if found.missing:
        return Judged(claim=claim, verdict=NOT_RUN, why=found.missing)
    answer = found.answers.get(claim.id)
    if answer is None or answer["asks"] != claim.asks:
        return Judged(claim=claim, verdict=NOT_RUN, why=f"the claim is younger than the runs of {claim.study}")
    if "not measured" in answer:
        return Judged(claim=claim, verdict=NOT_RUN, why=answer["not measured"])
    if "refused" in answer:
        judged = Judged(claim=claim, verdict=NOT_TESTABLE, why=answer["refused"])
    else:
        judged = judge(claim, Measured.from_dict(answer["measured"]))
    return replace(judged, instead=found.instead, cautions=found.cautions)


def judge(claim: Claim, measured: Measured) -> Judged:
    """The verdict on a claim whose quantity was measured."""
    value = measured.value
    low, high = (value.value if end is None else end for end in (value.low, value.high))
    close = _within(value.value, claim.reproduced)
    toward = _within(value.value, claim.in_direction)
    sure = _within(low, claim.in_direction) and _within(high, claim.in_direction)
    reach = _range(claim, claim.in_direction)
    if close and sure:
        verdict, why = REPRODUCED, f"our value lies in {_range(claim, claim.reproduced)}, and our interval in {reach}"
    elif toward:
        size = "" if close else f"our value lies outside {_range(claim, claim.reproduced)}"
        unsure = "" if sure else f"our interval reaches out of {reach}"
        verdict, why = IN_DIRECTION, "; ".join(filter(None, (size, unsure)))
    else:
        verdict, why = NOT, f"our value lies outside {reach}"
    side = _side(claim, measured)
    gaps = np.array(measured.by_seed) - (measured.null or 0.0)
    if side is None or not gaps.size:
        return Judged(claim=claim, verdict=verdict, why=why, measured=measured)
    return Judged(
        claim=claim,
        verdict=verdict,
        why=why,
        measured=measured,
        seeds=(int((side * gaps > 0).sum()), gaps.size),
        wilcoxon=wilcoxon(gaps, alternative="greater" if side > 0 else "less"),
    )


def _of_claims(claim: Claim, judged: Mapping[str, Judged]) -> Judged:
    """The verdict on a claim about other claims."""
    parts = [judged[name] for name in claim.about["of"]]
    known = [(each, each.measured) for each in parts if each.measured is not None]
    lacking = len(parts) - len(known)
    if not known or (lacking and claim.quantity == "count"):
        return Judged(
            claim=claim, verdict=NOT_RUN, why=f"{len(known)} of {len(parts)} claims that it is about were measured"
        )
    if claim.quantity == "count":
        measured = Measured(value=Estimate(float(_count(claim, [each for each, _ in known]))))
    else:
        measured = _average([each.value for _, each in known])
    return replace(
        judge(claim, measured),
        instead=any(each.instead for each, _ in known),
        cautions=(
            *((f"over {len(known)} of {len(parts)}: the others were not measured",) if lacking else ()),
            *dict.fromkeys(caution for each, _ in known for caution in each.cautions),
        ),
    )


def _average(values: Sequence[Estimate]) -> Measured:
    """The mean of values of studies that share neither items nor runs, with the interval that follows from theirs."""
    mean = float(np.mean([each.value for each in values]))
    halves = [(each.high - each.low) / 2 for each in values if each.low is not None and each.high is not None]
    over = f"items and seeds of {len(values)} studies"
    if len(halves) < len(values):
        return Measured(value=Estimate(mean), over=over, null=0.0)
    reach = float(np.linalg.norm(halves)) / len(values)
    return Measured(value=Estimate(mean, mean - reach, mean + reach), over=over, null=0.0)


def _count(claim: Claim, parts: list[Judged]) -> int:
    if claim.about["counts"] == "in direction":
        return sum(each.verdict in (REPRODUCED, IN_DIRECTION) for each in parts)
    if claim.about["counts"] == "every seed":
        return sum(each.seeds is not None and each.seeds[0] == each.seeds[1] for each in parts)
    raise InputError(f"claim {claim.id}: counts is '{claim.about['counts']}'; choose 'in direction' or 'every seed'")


def _side(claim: Claim, measured: Measured) -> int | None:
    """On which side of the null value the claim lies: 1 above, -1 below; None where it has no side."""
    if measured.null is None:
        return None
    low, high = claim.in_direction
    return 1 if low >= measured.null else -1 if high <= measured.null else None


def _within(value: float, ends: tuple[float, float]) -> bool:
    return ends[0] <= value <= ends[1]


def _range(claim: Claim, ends: tuple[float, float]) -> str:
    low, high = ends
    if low == high:
        return claim.shown(low)
    if np.isfinite(ends).all():
        return f"{claim.shown(low)} to {claim.shown(high)}"
    return f"{claim.shown(low)} and more" if np.isfinite(low) else f"{claim.shown(high)} and less"


def _finite(ends: tuple[float, float]) -> list[float | None]:
    return [end if np.isfinite(end) else None for end in ends]
