"""Verdicts on claims: the same rule for every claim, fixed in its file before the runs.

A claim is *reproduced* where our value lies in its range `reproduced` and our whole interval in its range
`in_direction`; *in direction* where our value lies in `in_direction`; else it is not reproduced. A claim that nothing
differs has a narrow `in_direction` on both sides of 0, so that only a narrow interval can reproduce it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation import Estimate, wilcoxon
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
class JudgedClaim:
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
            **{key: getattr(claim, key) for key in ("id", "says", "mark", "study", "asks", "paper")},
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


def judge_paper(paper: Paper, summaries: Mapping[str, StudySummary]) -> tuple[JudgedClaim, ...]:
    """A verdict on every claim of a paper; `summaries` are of its studies, by the names that claims know them by."""
    judged: dict[str, JudgedClaim] = {}
    # Those that put others together come last.
    for claim in sorted(paper.claims, key=lambda claim: "of" in claim.about):
        judged[claim.id] = _of_claims(claim, judged) if "of" in claim.about else _of_study(claim, summaries)
    return tuple(judged[claim.id] for claim in paper.claims)


def _of_study(claim: Claim, summaries: Mapping[str, StudySummary]) -> JudgedClaim:
    if claim.quantity == "unmeasured":
        return JudgedClaim(claim=claim, verdict=claim.about.get("verdict", NOT_TESTABLE), why=claim.why)
    summary = summaries.get(claim.study)
    why = _why_not_run(claim, summary)
    if summary is None or why:
        return JudgedClaim(claim=claim, verdict=NOT_RUN, why=why)
    answer = summary.answers[claim.id]
    if "refused" in answer:
        judged = JudgedClaim(claim=claim, verdict=NOT_TESTABLE, why=answer["refused"])
    else:
        judged = judge(claim, msgspec.convert(answer["measured"], Measured))
    return replace(judged, instead=summary.instead, cautions=summary.cautions)


def _why_not_run(claim: Claim, summary: StudySummary | None) -> str:
    """Why there is no answer to a claim; empty where there is one."""
    if summary is None:
        return f"the study {claim.study} was not run"
    answer = summary.answers.get(claim.id, {})
    if not summary.missing and answer.get("asks") != claim.asks:
        return f"the claim is younger than the runs of {claim.study}"
    return summary.missing or str(answer.get("not measured", ""))


def judge(claim: Claim, measured: Measured) -> JudgedClaim:
    """The verdict on a claim whose quantity was measured."""
    value = measured.value
    ends = [value.value if end is None else end for end in (value.low, value.high)]
    close = _within(value.value, claim.reproduced)
    sure = all(_within(end, claim.in_direction) for end in ends)
    near, reach = (_range(claim, limits) for limits in (claim.reproduced, claim.in_direction))
    if close and sure:
        verdict, why = REPRODUCED, f"our value lies in {near}, and our interval in {reach}"
    elif _within(value.value, claim.in_direction):
        size = "" if close else f"our value lies outside {near}"
        unsure = "" if sure else f"our interval reaches out of {reach}"
        verdict, why = IN_DIRECTION, "; ".join(filter(None, (size, unsure)))
    else:
        verdict, why = NOT, f"our value lies outside {reach}"
    judged = JudgedClaim(claim=claim, verdict=verdict, why=why, measured=measured)
    side = _side(claim, measured)
    gaps = np.array(measured.by_seed) - (measured.null or 0.0)
    if side is None or not gaps.size:
        return judged
    p = wilcoxon(gaps, alternative="greater" if side > 0 else "less")
    return replace(judged, seeds=(int((side * gaps > 0).sum()), gaps.size), wilcoxon=p)


def _of_claims(claim: Claim, judged: Mapping[str, JudgedClaim]) -> JudgedClaim:
    """The verdict on a claim about other claims."""
    parts = [judged[name] for name in claim.about["of"]]
    known = [part for part in parts if part.measured is not None]
    lacking = len(parts) - len(known)
    if not known or (lacking and claim.quantity == "count"):
        why = f"{len(known)} of {len(parts)} claims that it is about were measured"
        return JudgedClaim(claim=claim, verdict=NOT_RUN, why=why)
    if claim.quantity == "count":
        measured = Measured(value=Estimate(float(_count(claim, known))))
    else:
        measured = _average([part.measured.value for part in known if part.measured is not None])
    notes = (f"over {len(known)} of {len(parts)}: the others were not measured",) if lacking else ()
    return replace(
        judge(claim, measured),
        instead=any(part.instead for part in known),
        cautions=(*notes, *dict.fromkeys(caution for part in known for caution in part.cautions)),
    )


def _average(values: Sequence[Estimate]) -> Measured:
    """The mean of values of studies that share neither items nor runs, with the interval that follows from theirs."""
    mean = float(np.mean([value.value for value in values]))
    halves = [(value.high - value.low) / 2 for value in values if value.low is not None and value.high is not None]
    reach = float(np.linalg.norm(halves)) / len(values)
    ends = (mean - reach, mean + reach) if len(halves) == len(values) else ()
    return Measured(value=Estimate(mean, *ends), over=f"items and seeds of {len(values)} studies", null=0.0)


def _count(claim: Claim, parts: Sequence[JudgedClaim]) -> int:
    if claim.about["counts"] == "in direction":
        return sum(part.verdict in (REPRODUCED, IN_DIRECTION) for part in parts)
    if claim.about["counts"] == "every seed":
        return sum(part.seeds is not None and part.seeds[0] == part.seeds[1] for part in parts)
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
    low, high = (claim.text_of(end) if np.isfinite(end) else "" for end in ends)
    if ends[0] == ends[1]:
        return low
    return f"{low} to {high}" if low and high else f"{low} and more" if low else f"{high} and less"


def _finite(ends: tuple[float, float]) -> list[float | None]:
    return [end if np.isfinite(end) else None for end in ends]
