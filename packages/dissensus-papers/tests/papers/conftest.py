"""A small paper: four claims on a study of 90 items, trained once for all tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from dissensus_papers.papers import read_paper
from dissensus_papers.papers.running import Reproduction, reproduce

if TYPE_CHECKING:
    from pathlib import Path

torch.set_num_threads(1)

N = 90

STUDY = """\
name = "small"
[dataset]
votes = "votes.csv"
features = "x.npz"
original = "gold.csv"
[splits]
file = "splits.csv"
[grid]
targets = {targets}
deliveries = {deliveries}
models = ["linear"]
seeds = [3, 5, 8]
[training]
regime = "{regime}"
epochs = 4
batch_size = 16
learning_rate = 0.05
"""

CLAIMS = """\
title = "A small paper"
authors = "Nobody 2020"
link = "nowhere"
question = "Is soft closer?"
differs = ["Everything."]
[[studies]]
name = "small"
quick = { seeds = 2, epochs = 2 }
[[studies]]
name = "far-away"

[[claims]]
id = "kl"
says = "KL falls"
mark = "verified"
study = "small"
quantity = "relative change"
metric = "kl"
system = "frequency, 3 votes / soft"
against = "frequency, 3 votes / majority"
paper = -0.3
reproduced = [-0.9, -0.1]
in_direction = [-inf, 0.0]

[[claims]]
id = "accuracy"
says = "Accuracy stays"
mark = "secondary"
study = "small"
quantity = "relative change"
metric = "accuracy"
system = "frequency, 3 votes / soft"
against = "frequency, 3 votes / majority"
reproduced = [-0.05, 0.05]
in_direction = [-0.2, 0.2]

[[claims]]
id = "gain"
says = "The gain goes with the distance"
mark = "control"
study = "small"
quantity = "gain correlation"
metric = "soft_nll"
system = "frequency, 3 votes / soft"
against = "frequency, 3 votes / majority"
split = "test"
reproduced = [0.0, 1.0]
in_direction = [-0.9, 1.0]

[[claims]]
id = "far"
says = "Somewhere else"
mark = "verified"
study = "far-away"
quantity = "score"
metric = "kl"
system = "soft"
reproduced = [0.0, 1.0]
in_direction = [0.0, 1.0]

[[claims]]
id = "all"
says = "Both"
mark = "computed"
quantity = "average"
of = ["kl", "accuracy"]
reproduced = [-1.0, 0.0]
in_direction = [-1.0, 1.0]
"""


def write_data(
    folder: Path, *, changed: frozenset[str] = frozenset(), turned_votes: frozenset[tuple[str, str]] = frozenset()
) -> None:
    """Votes of five people on `N` items, with features and old labels.

    All votes on some items may be turned round, or single votes by item and annotator.
    """
    generator = np.random.default_rng(0)
    share = generator.random(N)
    votes, gold, splits = ["item,annotator,label"], ["item,label"], ["item,split"]
    for number, each in enumerate(share.tolist()):
        name = f"i{number}"
        said = generator.random(5) < each
        turned = ~said if name in changed else said
        turned = turned ^ np.array([(name, f"a{who}") in turned_votes for who in range(5)])
        votes += [f"{name},a{who},{'yes' if yes else 'no'}" for who, yes in enumerate(turned.tolist())]
        gold.append(f"{name},{'yes' if each > 0.5 else 'no'}")
        splits.append(f"{name},{('train', 'test', 'train', 'validation', 'train', 'test')[number % 6]}")
    (folder / "votes.csv").write_text("\n".join(votes) + "\n")
    (folder / "gold.csv").write_text("\n".join(gold) + "\n")
    (folder / "splits.csv").write_text("\n".join(splits) + "\n")
    features = np.stack([share, generator.random(N)], axis=1)
    np.savez(folder / "x.npz", items=[f"i{number}" for number in range(N)], features=features)


def write_study(
    folder: Path,
    *,
    targets: str = '[{ scheme = "frequency", votes = 3 }, "original"]',
    deliveries: str = '["majority", "soft"]',
    regime: str = "early-stopping",
) -> Path:
    path = folder / "small.toml"
    path.write_text(STUDY.format(targets=targets, deliveries=deliveries, regime=regime))
    return path


@dataclass(frozen=True)
class Small:
    folder: Path

    @property
    def claims(self) -> Path:
        return self.folder / "claims.toml"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def out(self) -> Path:
        return self.folder / "out"


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """The small paper, its study run and its summaries kept."""
    made = Small(tmp_path_factory.mktemp("small-paper"))
    write_data(made.folder)
    write_study(made.folder)
    (made.folder / "far-away.toml").write_text(
        '[dataset]\nvotes = "nowhere.csv"\nfeatures = "x.npz"\n[grid]\nmodels = ["linear"]\n'
    )
    made.claims.write_text(CLAIMS)
    how = Reproduction(engine="loop", device="cpu", resamples=200)
    list(reproduce(read_paper(made.claims), made.store, made.out, how=how))
    return made
