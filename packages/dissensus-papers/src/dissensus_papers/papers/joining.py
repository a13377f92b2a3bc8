"""Seeds that go on: a summary of further seeds beside the one that is kept of the first, without the first runs.

Where every seed has a split of its own, each number of a summary is made of one value a seed. Those of both are put
side by side, and means, intervals and p-values are taken again: the same as if all seeds had been run at once.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dissensus_papers.papers.summary import OWN_SPLITS, measured_over_splits, row_over_splits, united

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus_papers.papers.summary import StudySummary


def joined(kept: StudySummary | None, new: StudySummary) -> StudySummary:
    """A summary with the seeds of a kept one that it lacks; as it is where they are not of the same study."""
    left = set() if kept is None else set(kept.seeds) - set(new.seeds)
    if kept is None or not left or not new.tested_share or not can_join(kept, new):
        return new
    both = (kept, new)
    # What is said of one split is said of the first, as where all were run at once; older summaries lack their share.
    first = min(both, key=lambda each: (min(each.seeds), each is kept))
    share = first.tested_share or new.tested_share
    # Which runs were whose seed's is not kept: those that are replaced had their part in them.
    part = len(left) / len(kept.seeds)
    trained_on = Counter({where: round(runs * part) for where, runs in kept.trained_on.items()})
    rows = [_rows(each) for each in both]
    return replace(
        first,
        seeds=tuple(sorted({*kept.seeds, *new.seeds})),
        trained_on=dict(trained_on + Counter(new.trained_on)),
        machine_hours=float(f"{kept.machine_hours * part + new.machine_hours:.4g}"),
        scores=tuple(
            row_over_splits(row, _side_by_side(both, [of[what]["by_seed"] for of in rows]), tested_share=share)
            for what, row in rows[both.index(first)].items()
            if all(what in of for of in rows)
        ),
        answers={name: _answer(name, both, first=first, share=share) for name in first.answers},
        unmeasured=tuple(dict.fromkeys((*kept.unmeasured, *new.unmeasured))),
        versions=united([kept.versions, new.versions]),
        tested_share=share,
    )


def can_join(kept: StudySummary, new: StudySummary) -> bool:
    """Whether both are of one study whose seeds each have a split of their own; the new one may be planned alone."""
    return OWN_SPLITS in kept.split and _made_of(kept) == _made_of(new)


def _made_of(summary: StudySummary) -> tuple[Any, ...]:
    """What must be the same: rules, data, and the study file but for its seeds."""
    study = tomllib.loads(summary.toml)
    for table, key in ((study, "name"), (study.get("splits", {}), "seed"), (study.get("grid", {}), "seeds")):
        table.pop(key, None)
    return summary.study, summary.quick, summary.instead, summary.rules, summary.data, study


def _rows(summary: StudySummary) -> dict[tuple[str, ...], dict[str, Any]]:
    """Scores by what they are of; earlier summaries have some of strata that a split lacks, which do not count."""
    of = ("stratum", "metric", "system")
    return {tuple(row[key] for key in of): row for row in summary.scores if len(row["by_seed"]) == len(summary.seeds)}


def _side_by_side(both: Sequence[StudySummary], by_seed: Sequence[Sequence[float | None]]) -> list[float | None]:
    """One value a seed, in the order of seeds; of a seed that both have, the later."""
    values = {
        seed: value for each, of in zip(both, by_seed, strict=True) for seed, value in zip(each.seeds, of, strict=True)
    }
    return [values[seed] for seed in sorted(values)]


def _answer(name: str, both: Sequence[StudySummary], *, first: StudySummary, share: float) -> dict[str, Any]:
    """What both say of a claim together; where one could not measure it, why not."""
    for answer in (each.answers[name] for each in (first, *both)):
        if "measured" not in answer:
            return answer
    values = _side_by_side(both, [each.answers[name]["measured"]["by_seed"] for each in both])
    return measured_over_splits(first.answers[name], values, tested_share=share)
