"""A study's results in one short table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.evaluation.metrics import accuracy, kl, soft_nll

if TYPE_CHECKING:
    from dissensus.studies.running import Plan

SHOWN: Final = {"kl": kl, "soft_nll": soft_nll, "accuracy": accuracy}


def summarise(plan: Plan) -> list[dict[str, Any]]:
    """By model and method, over seeds: KL(human || model), soft NLL and accuracy against the majority.

    Measured on the held-out split. Each number has mean and sd (with n - 1) over seeds.
    """
    split = plan.data.held_out
    human = plan.data.human.take(plan.data.splits[split])
    scores: dict[tuple[str, str], list[list[float]]] = {}
    for run in plan.runs:
        model = plan.store.load(run.key, dynamics=False, weights=False).predictions[split].astype(np.float64)
        row = [float(metric(human.probabilities, model).mean()) for metric in SHOWN.values()]
        scores.setdefault((run.model, run.method), []).append(row)
    return [
        {
            "model": model_name,
            "method": method,
            "split": split,
            "runs": len(values),
            "entropy": float(human.entropy.mean()),
            **{
                name: {"mean": float(column.mean()), "sd": float(column.std(ddof=1)) if len(column) > 1 else 0.0}
                for name, column in zip(SHOWN, np.array(values).T, strict=True)
            },
        }
        for (model_name, method), values in scores.items()
    ]
