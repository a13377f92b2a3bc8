"""A study on simulated votes whose runs take as long as one likes, for benchmarks of what lies around training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path


def write_study(folder: Path, *, seeds: int, epochs: int, items: int = 90, model: str = "linear") -> Path:
    """Write votes, features and a study of two methods by so many seeds; returns the study's file."""
    generator = np.random.default_rng(0)
    label = generator.integers(0, 3, items)
    said = (label[:, None] + (generator.random((items, 4)) < 0.3)) % 3
    rows = [f"i{i},a{a},{'abc'[said[i, a]]}" for i in range(items) for a in range(4)]
    (folder / "votes.csv").write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    features = np.eye(3)[label] + generator.normal(0, 0.3, (items, 3))
    np.savez(folder / "features.npz", items=np.array([f"i{i}" for i in range(items)]), features=features)
    path = folder / "study.toml"
    path.write_text(
        f"""\
dataset = {{ votes = "votes.csv", features = "features.npz" }}
splits = {{ train = 0.7, validation = 0.2, test = 0.1 }}
grid = {{ deliveries = ["soft", "sls"], models = ["{model}"], seeds = {seeds} }}
training = {{ regime = "fixed-horizon", epochs = {epochs}, learning_rate = 0.05, batch_size = 8, keep = "last" }}
"""
    )
    return path
