"""Pair networks trained on soft votes against ones trained on the majority: PandaLM's test set, and mtbench.

    DISSENSUS_DATA=DATA python -m benchmarks.pair_study [pandalm] [mtbench] [--seeds N]

Writes local/pairs/SET with votes, items and a study file, trains it (`dissensus study run` does the same) in five folds
that keep all pairs of one instruction, or question, together, and scores every pair in the fold that tests on it.

- pandalm: 999 pairs, three people each, about 12 % not unanimous; all-MiniLM-L6-v2 of the instruction with its input
  and of the two answers.
- mtbench (the 120 pairs of the alternative annotator test, two people each): the answers' texts are not there, so that
  an answer is known by its model's name, and the question by its turn.

Judged, by rules that were written before the full runs (two seeds of mtbench were tried first): a network is *better*
trained on soft votes where the 95 % interval of the difference in soft NLL lies above 0, for items and seeds together
as `evaluate` has it, and also where whole instructions are resampled, which shares no code with it; *worse* where both
lie below; else there is *no significant difference*. Accuracy stands beside it, without a verdict.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dissensus as dis
from dissensus_train.studies import open_study, plan_study, read_study, run_plan
from dissensus_train.studies.opening import runs_by_system
from dissensus_train.studies.scored import score_folds

KEPT = Path("local/pairs")
RESAMPLES = 2000

STUDY = """\
name = "{name}"
question = "Does a pair network that sees every vote come closer to people than one trained on their majority?"

[dataset]
votes = "votes.csv"
format = "preferences"
{items}

[splits]
file = "groups.csv"
folds = 5

[grid]
targets = ["frequency"]
deliveries = ["majority", "soft"]
models = ["pair-linear", "pair", "pair-spread"]
seeds = {seeds}

[training]
regime = "early-stopping"
"""


def pandalm(data: Path, folder: Path) -> str:
    rows = json.loads((data / "preferences" / "pandalm-testset-v1.json").read_text())
    items = [f"p{row['idx']}" for row in rows]
    said = {1: "left", 0: "tie", 2: "right"}
    votes = [(item, who, said[row[who]]) for item, row in zip(items, rows, strict=True) for who in PEOPLE]
    pl.DataFrame(votes, schema=["item", "annotator", "winner"], orient="row").write_csv(folder / "votes.csv")
    asked = [f"{row['instruction']} {row['input']}".strip() for row in rows]
    answers = {f"response{side}": [str(row[f"response{side}"]).strip() or "-" for row in rows] for side in (1, 2)}
    texts = {"question": asked, **answers}
    pl.DataFrame({"item": items, **texts}).write_csv(folder / "texts.csv")
    pl.DataFrame({"item": items, "group": asked}).write_csv(folder / "groups.csv")
    return 'texts = "texts.csv"\ntext = ["question", "response1", "response2"]\nencoder = "minilm"'


def mtbench(data: Path, folder: Path) -> str:
    people = json.loads((data / "alttest" / "mtbench.human_annotations.json").read_text())
    said = {"model_a": "left", "tie": "tie", "model_b": "right"}
    votes = [(item, who, said[answer]) for who, answers in people.items() for item, answer in answers.items()]
    pl.DataFrame(votes, schema=["item", "annotator", "winner"], orient="row").write_csv(folder / "votes.csv")
    items = list(dict.fromkeys(item for item, _, _ in votes))
    parts = [item.split("__") for item in items]
    names = {name: place for place, name in enumerate(sorted({model for part in parts for model in part[1:3]}))}
    features = np.zeros((len(items), 3, len(names)), dtype=np.float32)
    for row, (_, left, right, turn) in enumerate(parts):
        features[row, [0, 1, 2], [int(turn) - 1, names[left], names[right]]] = 1
    np.savez(folder / "answers.npz", items=np.array(items), features=features)
    pl.DataFrame({"item": items, "group": [part[0] for part in parts]}).write_csv(folder / "groups.csv")
    return 'features = "answers.npz"\nnormalise = false'


PEOPLE = ("annotator1", "annotator2", "annotator3")
SETS = {"pandalm": pandalm, "mtbench": mtbench}


def clustered(gain: Any, group: Any) -> tuple[float, float, float]:
    """The mean of (seeds, items) gains, and its 95 % interval over resampled groups of items and resampled seeds."""
    rng = np.random.default_rng(0)
    names, place = np.unique(group, return_inverse=True)
    sums = np.stack([np.bincount(place, row) for row in gain])
    sizes, means = np.bincount(place), []
    for _ in range(RESAMPLES):
        seeds, drawn = rng.integers(len(gain), size=len(gain)), rng.integers(len(names), size=len(names))
        means.append(sums[seeds][:, drawn].mean(axis=0).sum() / sizes[drawn].sum())
    low, high = np.quantile(means, (0.025, 0.975))
    return float(gain.mean()), float(low), float(high)


def measure(name: str, data: Path, *, seeds: int) -> None:
    began, folder = time.process_time(), KEPT / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.toml").write_text(STUDY.format(name=name, items=SETS[name](data, folder), seeds=seeds))
    folds = []
    for part in read_study(folder / "study.toml").parts:
        plan = plan_study(part, folder / "runs", engine="loop", device="cpu")
        list(run_plan(plan))
        plan.writer.close()
        folds.append(open_study(part, folder / "runs"))
    print(f"\n{name}, {seeds} seeds\n{score_folds(folds)}")
    human = folds[0].data.human
    said: dict[str, Any] = {}
    for fold in folds:
        test = fold.data.splits["test"]
        for system, runs in runs_by_system(fold).items():
            whole = said.setdefault(system, np.zeros((seeds, *human.probabilities.shape)))
            for place, run in enumerate(runs):
                whole[place, test] = fold.store.load(run.key, dynamics=False, weights=False).predictions["test"]
    groups = pl.read_csv(folder / "groups.csv", schema_overrides={"item": pl.String, "group": pl.String})
    asked = dict(groups.iter_rows())
    group = np.array([asked[str(item)] for item in human.items.tolist()])
    divided = float((human.probabilities.max(axis=1) < 1).mean())
    print(f"{len(human):,} pairs, {len(np.unique(group)):,} instructions or questions, {divided:.1%} not unanimous")
    for model in ("pair-linear", "pair", "pair-spread"):
        hard, soft = (said[f"{model}: {kind}"] for kind in ("majority", "soft"))
        loss = [-(human.probabilities * np.log(np.maximum(q, 1e-12))).sum(axis=2) for q in (hard, soft)]
        right = [(q.argmax(axis=2) == human.probabilities.argmax(axis=1)).mean() for q in (hard, soft)]
        both = dis.evaluate(human, {"majority": hard, "soft": soft}, reference="majority")
        value, low, high = clustered(loss[0] - loss[1], group)
        print(f"{model}: soft NLL majority {loss[0].mean():.4f}, soft {loss[1].mean():.4f}; ", end="")
        print(f"accuracy {right[0]:.3f}, {right[1]:.3f}")
        print(f"  majority minus soft, instructions resampled: {value:+.4f} [{low:+.4f}, {high:+.4f}]")
        print(f"  {both.verdict[0]}")
    print(f"  {time.process_time() - began:.0f} CPU seconds")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    for each in given.sets:
        measure(each, Path(os.environ["DISSENSUS_DATA"]), seeds=given.seeds)
