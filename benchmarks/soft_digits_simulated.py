"""Does the simulated soft-digits study show what the paper found? Every number here is SIMULATED; none is about people.

Run `dissensus study run soft-digits-simulated` first, then `python benchmarks/soft_digits_simulated.py [STORE]`. Prints
the panel's marginals beside the published ones, then the paper's four directions with yes or NO, as Markdown.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.dynamics import data_map, read_dynamics, uncertainty_correlations
from dissensus.evaluation.metrics import accuracy, kl
from dissensus_papers.digits.simulated_digits import simulated_set
from dissensus_train.studies import OpenStudy, open_study, read_study
from dissensus_train.studies.mode_audit import ModeShift, mode_shift
from dissensus_train.studies.opening import runs_by_system

if TYPE_CHECKING:
    from dissensus.arrays import Mask, Table
    from dissensus.labels.distribution import LabelDistribution
    from dissensus_papers.digits import SimulatedSet

PUBLISHED = {
    "mnist": ("60.4", "96.6", "0.142", "0.025", "0.62"),
    "ambiguous": ("19.5", "66.8", "0.418", "0.076", "1.17"),
}
"""Table 1 of the paper: its MNIST and its Mukhoti part."""

TARGETS = ("original", "majority", "uncertainty-weighted", "equal-weighted")


class Part:
    """One source of the study: its test items, and what each system says of them."""

    def __init__(self, opened: OpenStudy, made: SimulatedSet) -> None:
        self.store, self.data, self.source = opened.store, opened.data, opened.study.sources[0]
        test = self.data.splits["test"]
        self.human: LabelDistribution = self.data.human.take(test)
        self.synthetic: Table = self.data.targets["original"].take(test).probabilities
        self.truth: Table = made.truth[made.items.source == self.source][test]
        self.runs = {(runs[0].model, runs[0].target): runs for runs in runs_by_system(opened).values()}
        self.models = tuple(dict.fromkeys(model for model, _ in self.runs))

    def predictions(self, model: str, target: str) -> Any:
        stored = (self.store.load(run.key, dynamics=False, weights=False) for run in self.runs[model, target])
        return np.stack([result.predictions["test"].astype(np.float64) for result in stored])

    def mean(self, metric: Any, reference: Table, model: str, target: str, items: Mask) -> float:
        runs = self.predictions(model, target)
        return float(np.mean([metric(reference[items], run[items]).mean() for run in runs]))

    def spearman(self, model: str, target: str) -> float:
        dynamics = read_dynamics(self.store, [run.key for run in self.runs[model, target]])
        people = self.data.human.take(self.data.splits["train"])
        found = uncertainty_correlations(people, data_map(dynamics, people, epochs=5), resamples=20)
        wanted = next(each for each in found if (each.human, each.model) == ("mean_uncertainty", "confidence"))
        return float("nan") if wanted.spearman is None else wanted.spearman.value

    def audit(self, human: LabelDistribution | Table, model: str) -> ModeShift:
        original, majority, soft = (self.predictions(model, name) for name in (*TARGETS[:2], TARGETS[3]))
        return mode_shift(human, original=original, majority=majority, soft=soft)


def marginals(made: SimulatedSet) -> None:
    print("| part | unanimous % | majority is the original label % | unsure proportion | mean uncertainty | none % |")
    print("|---|---|---|---|---|---|")
    for source, published in PUBLISHED.items():
        part = made.items.of_source(source)
        human, original = part.human, part.targets["original"].majority().label
        assert human.unsure_proportion is not None
        assert human.mean_uncertainty is not None
        values = (
            f"{100 * human.unanimous.mean():.1f}",
            f"{100 * (human.majority().label == original).mean():.1f}",
            f"{human.unsure_proportion.mean():.3f}",
            f"{human.mean_uncertainty.mean():.3f}",
            f"{100 * human.probabilities[:, 10].mean():.2f}",
        )
        pairs = " | ".join(f"{ours} ({theirs})" for ours, theirs in zip(values, published, strict=True))
        print(f"| {source} ({len(part):,}) | {pairs} |")


def softness(parts: list[Part]) -> None:
    print("\n**1. KL on varied items falls by more than 30 % from majority to soft (equal-weighted).**\n")
    print(
        "| part | model | varied items | original | majority | uncertainty-weighted | equal-weighted | fall | holds |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for part in parts:
        varied = ~part.human.unanimous
        for model in part.models:
            scores = [part.mean(kl, part.human.probabilities, model, target, varied) for target in TARGETS]
            fall = 1 - scores[3] / scores[1]
            shown = " | ".join(f"{score:.3f}" for score in scores)
            print(f"| {part.source} | {model} | {varied.sum()} | {shown} | {fall:.0%} | {_holds(fall > 0.3)} |")


def synthetic(part: Part) -> None:
    print("\n**2. Synthetic labels do best on themselves and worst on the panel (blends).**\n")
    print("| model | scored on | original (synthetic) | majority | uncertainty-weighted | equal-weighted | holds |")
    print("|---|---|---|---|---|---|---|")
    every = np.ones(len(part.human), dtype=np.bool_)
    references = {"the synthetic labels": part.synthetic, "the panel": part.human.probabilities}
    for model in part.models:
        for name, reference in references.items():
            for metric, called, better in ((kl, "KL", -1), (accuracy, "accuracy", 1)):
                scores = [part.mean(metric, reference, model, target, every) for target in TARGETS]
                best = (better * np.array(scores)).argmax() if reference is part.synthetic else None
                worst = (better * np.array(scores)).argmin() if best is None else None
                shown = " | ".join(f"{score:.3f}" for score in scores)
                print(f"| {model} | {name}, {called} | {shown} | {_holds(best == 0 or worst == 0)} |")


def confidence(parts: list[Part]) -> None:
    print("\n**3. Confidence correlates with panel uncertainty most under soft training (training items).**\n")
    print("| part | model | original | majority | uncertainty-weighted | equal-weighted | holds |")
    print("|---|---|---|---|---|---|---|")
    for part in parts:
        for model in part.models:
            rho = [part.spearman(model, target) for target in TARGETS]
            shown = " | ".join(f"{value:+.2f}" for value in rho)
            print(f"| {part.source} | {model} | {shown} | {_holds(max(rho[2:]) < min(rho[:2]))} |")


def audit(parts: list[Part]) -> None:
    print("\n**4. The mode-shift audit, from few votes, against the effects' true sizes (points of accuracy).**\n")
    print("| part | model | modes moved | effect | from 6 votes an item | true size | interval holds it |")
    print("|---|---|---|---|---|---|---|")
    for part in parts:
        moved = (part.truth.argmax(axis=1) != part.synthetic.argmax(axis=1)).mean()
        for model in part.models:
            few, true = part.audit(part.human, model), part.audit(part.truth, model)
            for effect in ("mode", "softness"):
                seen, real = getattr(few, effect), getattr(true, effect).value
                inside = seen.low <= real <= seen.high
                told = f"{100 * seen.value:+.1f} ({100 * seen.low:+.1f} to {100 * seen.high:+.1f})"
                about = f"{part.source} | {model} | {moved:.1%} | {effect}"
                print(f"| {about} | {told} | {100 * real:+.1f} | {_holds(inside)} |")


def _holds(does: bool | np.bool_) -> str:
    return "yes" if does else "NO"


def main() -> None:
    store = sys.argv[1] if len(sys.argv) > 1 else "dissensus-runs"
    made = simulated_set()
    studies = [open_study(part, store) for part in read_study("soft-digits-simulated").parts]
    parts = [Part(opened, made) for opened in studies]
    print(f"SIMULATED. {made.about['panel']}; {made.about['digits']}. Published values in brackets.\n")
    marginals(made)
    softness(parts)
    synthetic(parts[-1])
    confidence(parts)
    audit(parts)


if __name__ == "__main__":
    main()
