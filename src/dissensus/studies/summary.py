"""A study's results in one short table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.training.data import TRAIN

if TYPE_CHECKING:
    from dissensus.studies.running import Plan


def summarise(plan: Plan) -> list[dict[str, Any]]:
    """By model and method, over seeds: KL(human || model), soft NLL and accuracy against the majority.

    Measured on the test split, or where there is none on the last split that is not trained on. Each number has mean
    and sd (with n - 1) over seeds. KL = soft NLL - H(human), both in nats.
    """
    held_out = [name for name in plan.data.splits if name != TRAIN]
    split = "test" if "test" in held_out else held_out[-1] if held_out else TRAIN
    human = plan.data.human.take(plan.data.splits[split])
    entropy, majority = float(human.entropy.mean()), human.majority().label
    scores: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for run in plan.runs:
        q = plan.store.load(run.key, dynamics=False, weights=False).predictions[split].astype(np.float64)
        # A probability that float32 rounded to 0 would make the score infinite; its smallest normal number stands in.
        nll = float(-(human.probabilities * np.log(np.maximum(q, np.finfo(np.float32).tiny))).sum(axis=1).mean())
        accuracy = float((q.argmax(axis=1) == majority).mean())
        scores.setdefault((run.model, run.method), []).append((nll - entropy, nll, accuracy))
    return [
        {
            "model": model,
            "method": method,
            "split": split,
            "runs": len(values),
            "entropy": entropy,
            **{
                name: {"mean": float(column.mean()), "sd": float(column.std(ddof=1)) if len(column) > 1 else 0.0}
                for name, column in zip(("kl", "soft_nll", "accuracy"), np.array(values).T, strict=True)
            },
        }
        for (model, method), values in scores.items()
    ]
