"""A small trained study of images that tests of this room share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from dissensus_train.studies import plan_study, read_study, run_plan

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.studies import OpenStudy

SIDE = 14
STUDY = """\
name = "stripes"

[dataset]
{dataset}

[splits]
train = 0.6
validation = 0.1
test = 0.3

[grid]
deliveries = {deliveries}
models = ["{model}"]
seeds = {seeds}

[training]
epochs = {epochs}
batch_size = 32
learning_rate = 0.01
"""


def stripes(items: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(items, 1, SIDE, SIDE) bytes of noisy stripes, and (items,) whether they lie, stand or cross."""
    rng = np.random.default_rng(seed)
    kind = np.arange(items) % 3
    on = np.arange(SIDE) // 2 % 2 * 160
    lying, standing = np.broadcast_to(on[:, None], (SIDE, SIDE)), np.broadcast_to(on, (SIDE, SIDE))
    pattern = np.stack([lying, standing, np.maximum(lying, standing)])[kind]
    return (pattern + rng.integers(0, 95, pattern.shape)).astype(np.uint8)[:, None], kind


def noise(items: int, *, seed: int = 1) -> np.ndarray:
    """(items, 1, SIDE, SIDE) bytes without a pattern."""
    return np.random.default_rng(seed).integers(0, 256, (items, 1, SIDE, SIDE)).astype(np.uint8)


def image_study(folder: Path, *, items: int = 300) -> Path:
    """A study of stripes, whose pixels are from 0 to 1."""
    images, kind = stripes(items)
    np.savez(folder / "features.npz", items=np.arange(items), features=images.astype(np.float32) / np.float32(255))
    names = np.array(["lying", "standing", "crossed"])[kind]
    pl.DataFrame({"item": np.arange(items), "annotator": ["a"] * items, "label": names}).write_csv(folder / "votes.csv")
    path = folder / "study.toml"
    dataset = 'votes = "votes.csv"\nfeatures = "features.npz"'
    path.write_text(
        STUDY.format(dataset=dataset, deliveries='["majority", "label-smoothing"]', model="lenet", seeds=2, epochs=6)
    )
    return path


def word_study(folder: Path) -> Path:
    """A study of words by their character n-grams."""
    path = folder / "study.toml"
    path.write_text(STUDY.format(dataset='name = "words"', deliveries='["soft"]', model="linear", seeds=1, epochs=1))
    return path


def trained(study: Path, store: Path) -> OpenStudy:
    """The study with all its runs in the store."""
    plan = plan_study(read_study(str(study)), store, engine="loop", device="cpu")
    list(run_plan(plan))
    plan.writer.close()
    return plan.opened
