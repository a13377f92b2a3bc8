"""Verdicts on claims: the same rule for every claim, fixed in its file before the full runs.

A claim with a side is *reproduced* where our whole interval lies in its range `in_direction` and our value in its range
`reproduced`; *in direction* where the interval lies there and the value does not; *not reproduced* where the whole
interval lies outside; and *inconclusive* where the interval reaches both. A claim that nothing differs is reproduced
where the whole interval lies in its range `equal` (an equivalence test), not reproduced where the whole interval lies
outside of it, and else inconclusive. Values that have no interval by nature, such as counts, are judged as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from math import inf
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation import Estimate, holm, wilcoxon
from dissensus_papers.papers.claims import STAND_IN, TESTED_ON
from dissensus_papers.papers.measured import PAIRS, Measured, rounded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus_papers.papers.claims import Claim, Paper
    from dissensus_papers.papers.summary import StudySummary

REPRODUCED: Final = "reproduced"
IN_DIRECTION: Final = "in direction"
INCONCLUSIVE: Final = "inconclusive"
NOT: Final = "not reproduced"
NOT_TESTABLE: Final = "not testable here"
NOT_RUN: Final = "not run"

NO_VERDICT: Final = "no verdict"
"""Of a part whose range holds every value that there can be."""

VERDICTS: Final = (REPRODUCED, IN_DIRECTION, INCONCLUSIVE, NOT, NOT_TESTABLE, NOT_RUN)
"""From the best for the paper to what says nothing about it."""

LEVEL: Final = 0.05
"""Of Holm's test."""

KINDS: Final = ("claims", "on other people", "on a stand-in", "controls")
"""What verdicts are counted among, each apart: only those on the paper's own data are its headline. The first three are
in the order of `TESTED_ON`."""

NOT_COUNTED: Final = "not counted"
"""What a claim is that could not have failed here."""


@dataclass(frozen=True, kw_only=True)
class JudgedClaim:
    """A claim with its verdict.

    Attributes:
        claim: what the paper says.
        verdict: one of `VERDICTS`.
        why: in one sentence.
        measured: our value; None where there is none.
        seeds: on how many seeds our value lies in the claim's range `in_direction`, and how many there are; None where
            it has no side.
        of_seeds: how many its study has; 0 where it is about other claims.
        wilcoxon: exact one-sided p-value over seeds that our value lies on the claim's side; None where that does not
            begin at no effect, or a seed lies beyond its other end.
        tested_on: one of `TESTED_ON`; of a claim about others the furthest from the paper's own data among them.
        part_of: the claims that average or count it.
        beside: what must stand beside our value, in a few words.
        cautions: what a reader must know of the data behind it: that people were simulated, say.
    """

    claim: Claim
    verdict: str
    why: str
    measured: Measured | None = None
    seeds: tuple[int, int] | None = None
    of_seeds: int = 0
    wilcoxon: float | None = None
    tested_on: str = ""
    part_of: tuple[str, ...] = ()
    beside: str = ""
    cautions: tuple[str, ...] = ()

    @property
    def beyond(self) -> bool:
        """Whether it is reproduced, and our interval does not hold the paper's value: the size is another."""
        value = None if self.measured is None else self.measured.value
        if self.verdict != REPRODUCED or value is None or value.low is None or value.high is None:
            return False
        return self.claim.paper is not None and not value.low <= self.claim.paper <= value.high

    @property
    def kind(self) -> str:
        """What it is counted among: one of `KINDS`, or `NOT_COUNTED`; empty for a part of another claim."""
        if self.claim.mark in ("control", "part"):
            return "controls" if self.claim.mark == "control" else ""
        return NOT_COUNTED if self.claim.cannot_fail else KINDS[TESTED_ON.index(self.tested_on)]

    @property
    def instead(self) -> bool:
        """Whether something stands in for the paper's data."""
        return self.tested_on == STAND_IN

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        claim = self.claim
        return {
            **{key: getattr(claim, key) for key in ("id", "says", "mark", "study", "asks", "paper")},
            **{key: rounded(getattr(claim, key)) for key in ("reproduced", "in_direction", "equal")},
            "kind": self.kind,
            "verdict": self.verdict,
            "why": self.why,
            "ours": None if self.measured is None else self.measured.to_dict(),
            "seeds_on_its_side": self.seeds,
            "seeds": self.of_seeds,
            "wilcoxon_one_sided": rounded(self.wilcoxon),
            "on_a_stand_in": self.instead,
            "part_of": self.part_of,
            "cautions": list(self.cautions),
        }


def judge_paper(paper: Paper, summaries: Mapping[str, StudySummary]) -> tuple[JudgedClaim, ...]:
    """A verdict on every claim of a paper; `summaries` are of its studies, by the names that claims know them by.

    Raises:
        InputError: where a summary was made for other rules: ranges that were changed after the result judge nothing.
    """
    for name, summary in summaries.items():
        if not summary.missing and summary.rules != (now := paper.rules(name)):
            told = f"rules {summary.rules[:12] or 'not named'}, here {now[:12]}"
            raise InputError(
                f"{paper.name}: the claims on {name} are not those that it was run for ({told}); judge by the claims "
                f"file of that time, or run dissensus reproduce {paper.typed} on its store"
            )
    judged: dict[str, JudgedClaim] = {}
    by_id = {claim.id: claim for claim in paper.claims}
    # Those that put others together come after them.
    for name in TopologicalSorter({name: claim.about.get("of", ()) for name, claim in by_id.items()}).static_order():
        claim = by_id[name]
        judged[name] = (
            _of_claims(claim, judged) if "of" in claim.about else _of_study(claim, summaries.get(claim.study))
        )
    for name in by_id:
        part_of = tuple(other.id for other in paper.claims if name in other.about.get("of", ()))
        judged[name] = replace(judged[name], part_of=part_of)
    return tuple(judged[claim.id] for claim in paper.claims)


def _of_study(claim: Claim, summary: StudySummary | None) -> JudgedClaim:
    """The verdict on a claim about the runs of a study."""
    tested_on = STAND_IN if summary is not None and summary.instead else claim.tested_on
    if summary is None:
        why = f"the study {claim.study} was not run"
        return JudgedClaim(claim=claim, verdict=NOT_RUN, why=why, tested_on=tested_on)
    answer = summary.answers.get(claim.id, {})
    why = summary.missing or answer.get("not measured", "")
    if not summary.missing and answer.get("asks") != claim.asks:
        why = f"the claim is younger than the runs of {claim.study}"
    if why:
        return JudgedClaim(claim=claim, verdict=NOT_RUN, why=why, tested_on=tested_on)
    if "refused" in answer:
        judged = JudgedClaim(claim=claim, verdict=NOT_TESTABLE, why=answer["refused"])
    else:
        judged = judge(claim, msgspec.convert(answer["measured"], Measured))
    judged = replace(judged, tested_on=tested_on, of_seeds=len(summary.seeds), cautions=summary.cautions)
    return _of_one_seed(judged, [judged])


def _of_one_seed(judged: JudgedClaim, parts: Sequence[JudgedClaim]) -> JudgedClaim:
    """The claim without a verdict where one of what it is about has a single seed."""
    if judged.verdict in (NOT_TESTABLE, NO_VERDICT) or all(part.of_seeds != 1 for part in parts):
        return judged
    return replace(judged, verdict=INCONCLUSIVE, why="it is one seed, which says nothing of others")


def judge(claim: Claim, measured: Measured) -> JudgedClaim:
    """The verdict on a claim whose quantity was measured."""
    verdict, why = _verdict(claim, measured)
    judged = JudgedClaim(claim=claim, verdict=verdict, why=why, measured=measured, tested_on=claim.tested_on)
    values, (low, high) = np.array(measured.by_seed), claim.in_direction
    if not values.size:
        return judged
    if not measured.over:
        judged = replace(judged, beside=f"by seed {', '.join(map(claim.text_of, measured.by_seed))}")
    null = measured.null
    if (low, high) == (-inf, inf) or (null is not None and low < null < high):
        return judged
    beyond, p = (values < low) | (values > high), None
    # Nothing but the sign is tested: a seed beyond the far end of the range would count for the claim.
    tested = null is not None and null in (low, high) and not (beyond & ((values > null) == (null == low))).any()
    # Pairs share runs, and are not independent.
    if tested and measured.over != PAIRS:
        p = wilcoxon(values - null, alternative="greater" if null == low else "less")
    return replace(judged, seeds=(int((~beyond & (values != null)).sum()), values.size), wilcoxon=p)


def _verdict(claim: Claim, measured: Measured) -> tuple[str, str]:
    """A verdict, and why."""
    if claim.any_value:
        return NO_VERDICT, "its range holds every value that there can be"
    value, wanted = measured.value, claim.equal or claim.in_direction
    low, high = value.low, value.high
    if low is None or high is None:
        if measured.over:
            return INCONCLUSIVE, "our value has no interval"
        low = high = value.value
    near, reach = (_range(claim, limits) for limits in (claim.reproduced, wanted))
    what = "interval" if measured.over else "value"
    if not (wanted[0] <= low and high <= wanted[1]):
        if high < wanted[0] or low > wanted[1]:
            return NOT, f"our {what} lies outside {reach}"
        return INCONCLUSIVE, f"our interval reaches out of {reach}"
    if claim.equal is not None:
        return REPRODUCED, f"our {what} lies in {reach}"
    if measured.null in (low, high) and measured.null in wanted:
        return INCONCLUSIVE, f"our {what} reaches no effect"
    if claim.reproduced[0] <= value.value <= claim.reproduced[1]:
        return REPRODUCED, f"our value lies in {near}" + (f", and our interval in {reach}" if measured.over else "")
    return IN_DIRECTION, f"our {what} lies in {reach}, and our value outside {near}"


def _of_claims(claim: Claim, judged: Mapping[str, JudgedClaim]) -> JudgedClaim:
    """The verdict on a claim about other claims."""
    parts = [judged[name] for name in claim.about["of"]]
    values = [(part.claim.study or part.claim.id, part.measured.value) for part in parts if part.measured is not None]
    # What is furthest from the paper's own data.
    weakest = max((claim.tested_on, *(part.tested_on for part in parts)), key=TESTED_ON.index)
    if len(values) < len(parts):
        why = f"{len(values)} of {len(parts)} claims that it is about were measured"
        ran = all(part.measured is not None or part.verdict == NOT_TESTABLE for part in parts)
        return JudgedClaim(claim=claim, verdict=NOT_TESTABLE if ran else NOT_RUN, why=why, tested_on=weakest)
    if claim.about.get("counts") == "survives Holm" and not claim.cannot_fail:
        most, (low, high) = _most_that_survive(parts), claim.equal or claim.reproduced
        if len({low <= number <= high for number in range(most + 1)}) == 1:
            why = f"of {len(parts)} claims no more than {most} could survive Holm's correction, with so few seeds"
            return JudgedClaim(claim=claim, verdict=NOT_TESTABLE, why=why, tested_on=weakest)
    unsure, beside = sum(part.verdict == INCONCLUSIVE for part in parts), ""
    if claim.quantity == "average":
        measured = _average(values)
    else:
        measured = Measured(value=Estimate(float(_count(claim, parts))))
        beside = f"{unsure} of the {len(parts)} inconclusive" if unsure else ""
    return replace(
        _of_one_seed(judge(claim, measured), parts),
        tested_on=weakest,
        beside=beside,
        cautions=tuple(dict.fromkeys(caution for part in parts for caution in part.cautions)),
    )


def _average(values: Sequence[tuple[str, Estimate]]) -> Measured:
    """The mean of values of studies, with the interval that follows from theirs.

    Those of one study share items and runs, and may err together: their half-widths are added. Studies are independent.
    """
    mean = float(np.mean([value.value for _, value in values]))
    halves: dict[str, float] = {}
    for study, value in values:
        # What has no interval gives none.
        half = np.nan if value.low is None or value.high is None else (value.high - value.low) / 2
        halves[study] = halves.get(study, 0.0) + half
    reach = float(np.linalg.norm(list(halves.values()))) / len(values)
    ends = (mean - reach, mean + reach) if np.isfinite(reach) else ()
    count = "1 study" if len(halves) == 1 else f"{len(halves)} studies"
    # Machines differ in the last digits of a sum, and a page's are not to depend on them.
    return Measured(value=Estimate(*rounded([mean, *ends])), over=f"items and seeds of {count}", null=0.0)


def _count(claim: Claim, parts: Sequence[JudgedClaim]) -> int:
    """How many parts are what the claim counts."""
    if claim.about["counts"] == "every seed":
        return sum(part.seeds is not None and part.seeds[0] == part.seeds[1] for part in parts)
    if claim.about["counts"] == "on its side":
        return sum(map(_on_its_side, parts))
    p = np.array([1.0 if part.wilcoxon is None else part.wilcoxon for part in parts])
    return int((holm(p) < LEVEL).sum())


def _most_that_survive(parts: Sequence[JudgedClaim]) -> int:
    """How many would survive Holm's correction with the least p-values that so many seeds allow."""
    least = [1.0 if part.wilcoxon is None or part.seeds is None else 0.5 ** part.seeds[1] for part in parts]
    return int((holm(np.array(least)) < LEVEL).sum())


def _on_its_side(part: JudgedClaim) -> bool:
    low, high = part.claim.in_direction
    if part.measured is None or part.measured.value.value == part.measured.null:
        return False
    return low <= part.measured.value.value <= high


def _range(claim: Claim, ends: tuple[float, float]) -> str:
    low, high = (claim.text_of(end) if np.isfinite(end) else "" for end in ends)
    if ends[0] == ends[1]:
        return low
    if not low and not high:
        return "all values"
    return f"{low} to {high}" if low and high else f"{low} and more" if low else f"{high} and less"
