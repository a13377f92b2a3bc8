"""What was measured of a study's runs beside their scores, as numbers: basins and out-of-distribution detection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dissensus_train.basins.summary import summarise_basins
from dissensus_train.studies.measuring import stored_basins, stored_ood

if TYPE_CHECKING:
    from dissensus_train.ood import OodResult
    from dissensus_train.studies.measuring import StudyBasins
    from dissensus_train.studies.opening import OpenStudy


def measured_of(opened: OpenStudy) -> dict[str, Any]:
    """The basins and the out-of-distribution detection that a study asks for and its store has, ready for JSON."""
    basins, ood = stored_basins(opened), stored_ood(opened)
    return {
        **({} if basins is None else {"basins": _basins(basins)}),
        **({} if ood is None else {"ood": _ood(ood)}),
    }


def _basins(found: StudyBasins) -> dict[str, Any]:
    on = found.systems[found.reference][0].measured_on
    return {
        "on": f"{on.loss} on {on.items:,} items ({on.data})",
        "reference": found.reference,
        "rows": [
            {**row.to_dict(), "times_reference": row.times_reference}
            for row in summarise_basins(found.systems, reference=found.reference)
        ],
        "pairs": [
            {
                "runs": each.name,
                "pairs": len(each.pairs),
                "barrier": each.barrier.to_dict(),
                "cka": each.cka.to_dict(),
            }
            for each in found.pairs
        ],
        "explanations": [
            {
                "system": system,
                "method": each.method,
                "pairs": each.pairs,
                "cosine": each.cosine.to_dict(),
                "correlation": each.correlation.to_dict(),
            }
            for system, each in found.explanations.items()
        ],
    }


def _ood(found: OodResult) -> dict[str, Any]:
    rows = []
    for row in found.measures:
        if row.measure == "auroc":
            gap = found.difference(row.ood_set, row.score, system=row.system)
            rows.append(
                {
                    "ood_set": row.ood_set,
                    "score": row.score,
                    "system": row.system,
                    "by_seed": list(row.by_seed),
                    "auroc": row.value.to_dict(),
                    "difference": None if gap is None else gap.value.to_dict(),
                }
            )
    return {
        "against": found.against,
        "reference": found.systems[0],
        "sets": {each.name: each.items for each in found.sets},
        "rows": rows,
    }
