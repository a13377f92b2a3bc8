"""A file in the schema of soft-digits, made from simulated judgements whose labels are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dissensus.labels.labelling import label
from dissensus.votes.simulate import Habits, simulate_responses

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.table import Votes


def simulated_judgements(n_items: int, *, seed: int = 0) -> Votes:
    truth = np.random.default_rng(seed).dirichlet(np.full(10, 0.08), n_items)
    return simulate_responses(truth, 6, annotators=30, seed=seed, habits=Habits(slip=0.1))


def soft_digits_columns(votes: Votes, *, seed: int = 0) -> dict[str, Any]:
    """The columns of the published file, its vectors as strings, for judgements of images without digits on them."""
    generator = np.random.default_rng(seed)
    n_items = len(votes.items)
    weighted, equal, yes_only = (
        label(votes, scheme) for scheme in ("uncertainty-weighted", "equal-weighted", "yes-only")
    )
    mnist = np.arange(n_items) % 2 == 0
    digit = equal.probabilities[:, :10].argmax(axis=1)
    synthetic = 0.7 * np.eye(10)[digit] + 0.03
    # Bright where the digit says, so that something can be learnt.
    pixels = generator.integers(0, 60, (n_items, 784))
    pixels[np.arange(n_items)[:, None], 70 * digit[:, None] + np.arange(70)] += 150
    split = np.array(["train", "train", "train", "train", "val", "test"])[np.arange(n_items) // 2 % 6]
    return {
        "images": pixels.tolist(),
        "indices": (1 + np.arange(n_items)).tolist(),
        "original_labels": np.where(mnist[:, None], np.eye(10)[digit], synthetic).tolist(),
        "file_name": [f"{row}.png" for row in range(n_items)],
        "human_uncert_mean": equal.mean_uncertainty,
        "pct_ann_unsure": equal.unsure_proportion,
        "soft_label": [str(row) for row in weighted.probabilities.tolist()],
        "soft_label_argmax": weighted.majority().label,
        "soft_label_yes_unc_equal": [str(row) for row in equal.probabilities.tolist()],
        "soft_label_yes_only": [str(row) for row in yes_only.probabilities.tolist()],
        "split": split.tolist(),
        "source": np.where(mnist, "mnist", "mukhoti").tolist(),
    }


def write_soft_digits(path: Path, columns: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(columns).write_parquet(path)
    return path
