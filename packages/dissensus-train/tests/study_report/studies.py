"""A small study whose items, classes and annotators have hostile names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from dissensus_train.studies import open_study, plan_study, read_study, run_plan
from dissensus_train.studies.measuring import study_basins, study_ood

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.studies import OpenStudy

SCRIPT = "</script><script>window.hacked = 1</script>"
IMAGE = '"><img src=x onerror="window.hacked = 2">'
LONG = "long " * 2000
HOSTILE = (
    SCRIPT,
    IMAGE,
    'it\'s "quoted" & {{ 7 * 7 }} ${1}',
    "🙂 emoji 👩‍👧",
    "‮مرحبا‬ right to left",
    LONG,
    "line\u2028break",
)
CLASSES = ("</script><b>cat", 'dog\'s "tail"', "owl.[0]")

STUDY = """\
name = "<i>small</i> study"
question = "Is <b>soft</b> closer than majority?"

[dataset]
votes = "votes.parquet"
features = "features.npz"

[splits]
train = 0.6
validation = 0.2
test = 0.2
seed = 1

[grid]
deliveries = ["majority", "soft"]
models = ["linear"]
seeds = 2

[training]
epochs = 3
learning_rate = 0.05
batch_size = 8
patience = 3
dynamics = true
"""

MEASURED = """
[basins]
items = 40
probes = 10
density = 2
density_steps = 5
surface = 3
perturbations = 2
line = 5
path = 5
explanations = 3

[ood]
sets = { "<u>far</u>" = "far.npz" }
scores = ["msp", "energy"]
resamples = 50
"""


def make_study(folder: Path, *, images: bool = False, measured: bool = False, items: int = 100) -> Path:
    """Files of a study in a folder: five annotators, three classes, features that tell the class.

    Where it is measured too, its runs get basins, and OOD detection is measured.
    """
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 3, items)
    # Several of each, so that every split has some.
    hostile = [f"{name} #{copy}" for copy in range(6) for name in HOSTILE]
    names = [*hostile, *(f"item {number}" for number in range(items - len(hostile)))]
    who = [SCRIPT, "ann", "bob", "eve", "zoë"]
    other = generator.random((items, 5)) < np.linspace(0, 0.7, items)[generator.permutation(items), None]
    label = (truth[:, None] + other) % 3
    label[: len(hostile)] = (truth[: len(hostile), None] + [0, 0, 0, 1, 2]) % 3
    frame = pl.DataFrame(
        {
            "item": np.repeat(names, 5).tolist(),
            "annotator": who * items,
            "label": [CLASSES[k] for k in label.ravel().tolist()],
        }
    )
    frame.write_parquet(folder / "votes.parquet")
    features = np.eye(3)[truth] + generator.normal(0, 0.3, (items, 3))
    if images:
        features = np.broadcast_to(features[:, :, None, None], (items, 3, 8, 8))
    np.savez(folder / "features.npz", items=np.array(names), features=features)
    path = folder / "study.toml"
    path.write_text(STUDY + MEASURED if measured else STUDY, encoding="utf-8")
    if measured:
        np.savez(folder / "far.npz", features=generator.normal(5, 1, (30, *features.shape[1:])).astype(np.float32))
    return path


def finished(folder: Path, *, images: bool = False, measured: bool = False) -> OpenStudy:
    """A small study with all its runs in its store."""
    study = read_study(make_study(folder, images=images, measured=measured))
    plan = plan_study(study, folder / "store", engine="loop", device="cpu")
    list(run_plan(plan))
    plan.writer.close()
    if measured:
        study_basins(plan.opened)
        study_ood(plan.opened)
    return open_study(study, folder / "store")
