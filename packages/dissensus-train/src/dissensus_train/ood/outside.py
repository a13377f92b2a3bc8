"""OOD detection from what anybody's model made of items: its logits, its features, or both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from dissensus.array_file import read_npz
from dissensus.errors import InputError, meant_path
from dissensus_train.ood.measuring import IN_DISTRIBUTION, detection
from dissensus_train.ood.ood_sets import OodSet, same_items
from dissensus_train.ood.outputs import leads_to
from dissensus_train.ood.results import OodSetSummary
from dissensus_train.ood.scores import OF_ONE_MODEL, REMEDIES, SCORES, known_score, scored
from dissensus_train.ood.settings import OodSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from dissensus.arrays import Table
    from dissensus_train.ood.results import OodResult
    from dissensus_train.ood.scores import Need

KINDS: Final = ("logits", "features")
"""What a model may make of items."""


@dataclass(frozen=True, eq=False)
class GivenOutputs:
    """What a model, or several seeds of one, made of items; None where it is not known.

    Logits are (seeds, items, classes) and features (seeds, items, width), float64; labels (items,) class indices of
    training items.
    """

    logits: Tensor | None
    features: Tensor | None
    labels: Tensor | None

    @property
    def seeds(self) -> int:
        """How many seeds."""
        return len(self._first)

    def __len__(self) -> int:
        return int(self._first.shape[1])

    @property
    def _first(self) -> Tensor:
        return next(values for values in (self.logits, self.features) if values is not None)

    def known(self, seed: int, training: GivenOutputs | None) -> dict[Need, Any]:
        """What a score of one seed, or of all seeds, may look at."""
        kinds: dict[Need, Tensor | None] = {
            "logits": self.logits,
            "features": self.features,
            "training features": None if training is None else training.features,
        }
        return {
            **{need: None if values is None else values[seed] for need, values in kinds.items()},
            "training labels": None if training is None else training.labels,
            "last layer": None if training is None else training.last_layer(seed),
            "seeds": self.logits if self.seeds > 1 else None,
        }

    def last_layer(self, seed: int) -> Tensor | None:
        """(classes, width + 1) what makes logits of features; None where too few items tell, or they are not linear."""
        if self.logits is None or self.features is None or len(self) <= self.features.shape[2] + 1:
            return None
        ones = torch.ones(len(self), 1, dtype=torch.float64)
        found = torch.linalg.lstsq(torch.cat([self.features[seed], ones], dim=1), self.logits[seed], driver="gelsd")
        return found.solution.T if leads_to(found.solution.T, self.features[seed], self.logits[seed]) else None

    def shared(self, other: GivenOutputs | None, kinds: Sequence[str]) -> int:
        """How many items another set has too, number for number, by the first kind of output that both have."""
        for kind in kinds if other is not None else ():
            here, there = getattr(self, kind), getattr(other, kind)
            if here is not None and there is not None:
                one, two = (OodSet(name="", features=values[0].float().numpy()) for values in (here, there))
                return int(same_items(one, two).sum())
        return 0


def given_outputs(
    logits: Any = None, features: Any = None, labels: Any = None, *, where: str = "outputs"
) -> GivenOutputs:
    """Outputs in NumPy's arrays or PyTorch's tensors, checked: `where` begins the sentence of a refusal.

    Logits are (items, classes) and features (items, width), or (seeds, items, ...) of several seeds; labels, of
    training items only, (items,) class indices.
    """
    made = {}
    for name, array in (("logits", logits), ("features", features)):
        if array is None:
            continue
        values = torch.as_tensor(array if isinstance(array, torch.Tensor) else np.asarray(array)).detach().cpu()
        values = values.double()[None] if values.ndim == 2 else values.double()
        if values.ndim != 3 or not values.numel():
            shape = tuple(np.shape(array))
            raise InputError(f"{where}: {name} have shape {shape}; give (items, numbers), or (seeds, items, numbers)")
        if not bool(values.isfinite().all()):
            raise InputError(f"{where}: {name} hold NaN or infinity; fill or remove those items")
        made[name] = values
    if not made:
        raise InputError(f"{where}: neither logits nor features; give one of them, or both")
    shapes = {tuple(values.shape[:2]) for values in made.values()}
    if len(shapes) > 1:
        (s, n), (t, m) = sorted(shapes)
        raise InputError(
            f"{where}: logits and features are of {s} seeds and {n:,} items, and of {t} and {m:,}; give both alike"
        )
    known = None if labels is None else torch.as_tensor(np.asarray(labels))
    items = next(iter(shapes))[1]
    if known is not None and (tuple(known.shape) != (items,) or known.is_floating_point()):
        raise InputError(f"{where}: labels have shape {tuple(known.shape)}; give a class index for {items:,} items")
    return GivenOutputs(made.get("logits"), made.get("features"), known)


def read_outputs(path: str | Path) -> GivenOutputs:
    """Outputs from an `.npz` with an array `logits`, or `features`, or both; and `labels`, for training items."""
    remedy = "give an .npz with an array 'logits' or 'features'"
    if not Path(path).exists():
        raise InputError(f"{path}: there is no such file{meant_path(Path(path))}; {remedy}")
    return given_outputs(**read_npz(Path(path), only=(*KINDS, "labels"), remedy=remedy), where=str(path))


def measure_outputs(
    in_distribution: GivenOutputs,
    ood: Mapping[str, GivenOutputs],
    *,
    training: GivenOutputs | None = None,
    scores: Sequence[str] | None = None,
    paths: Mapping[str, str | Path] | None = None,
    name: str = "model",
    **settings: Any,
) -> OodResult:
    """How well scores separate OOD items from in-distribution ones, from a model's outputs alone.

    Args:
        in_distribution: what the model made of in-distribution items that it was not trained on.
        ood: by name, what it made of the items of each OOD set.
        training: what it made of training items, with their labels, for scores that compare with them.
        scores: names in `SCORES`; all that these outputs are enough for if not given.
        paths: by set, where it was read from.
        name: of the model.
        settings: `near`, `far`, `k`, `resamples` and `seed` of `OodSettings`.
    """
    everything = {IN_DISTRIBUTION: in_distribution, **ood}
    _refuse_two_models({**everything, **({} if training is None else {"training": training})})
    known = [outputs.known(0, training) for outputs in everything.values()]
    has = {need for need in REMEDIES if all(of_set.get(need) is not None for of_set in known)}
    chosen = tuple([score for score in SCORES if has.issuperset(SCORES[score].needs)] if scores is None else scores)
    if not chosen:
        raise InputError("ood: these outputs are enough for no score; give logits, or features with training features")
    for score in chosen:
        lacking = next((need for need in known_score(score).needs if need not in has), None)
        if lacking is not None:
            raise InputError(f"ood: {score} needs {lacking}; {REMEDIES[lacking]}, or choose another score")
    wanted = OodSettings(sets=paths or dict.fromkeys(ood, ""), scores=chosen, **settings)
    seeds = in_distribution.seeds
    what = " and ".join(kind for kind in KINDS if getattr(in_distribution, kind) is not None)
    return detection(
        {name: {of: _scored(outputs, training, wanted) for of, outputs in everything.items()}},
        {name: tuple(range(seeds))},
        wanted,
        summaries=tuple(
            OodSetSummary(
                name=of,
                kind=wanted.kind_of(of),
                path=str(wanted.sets[of]),
                items=len(outputs),
                there=len(outputs),
                how=f"{what} of {'one seed' if seeds == 1 else f'{seeds} seeds'}, as they were given",
                in_distribution_too=outputs.shared(in_distribution, KINDS),
                trained_on=outputs.shared(training, ("features",)),
            )
            for of, outputs in ood.items()
        ),
    )


def measure_scores(sets: Mapping[str, Mapping[str, Any]], *, name: str = "model", **settings: Any) -> OodResult:
    """How well scores from anywhere separate OOD items from in-distribution ones.

    Args:
        sets: by set and score, (items,) scores, larger for items that look more out-of-distribution; in-distribution
            items are the set of empty name, `IN_DISTRIBUTION`.
        name: of the model.
        settings: `near`, `far`, `resamples` and `seed` of `OodSettings`.
    """
    outside = [of for of in sets if of != IN_DISTRIBUTION]
    if len(outside) == len(sets) or not outside:
        raise InputError("ood: give scores of in-distribution items, their set called id, and of an OOD set or more")
    wanted = OodSettings(sets=dict.fromkeys(outside, ""), **settings)
    values = {of: {score: np.asarray(column)[None] for score, column in scores.items()} for of, scores in sets.items()}
    items = {of: len(next(iter(sets[of].values()))) for of in outside}
    summaries = tuple(
        OodSetSummary(name=of, kind=wanted.kind_of(of), items=count, there=count, how="scores as they were given")
        for of, count in items.items()
    )
    return detection({name: values}, {name: (0,)}, wanted, summaries=summaries)


def _refuse_two_models(everything: Mapping[str, GivenOutputs]) -> None:
    for kind in KINDS:
        widths = {
            name or "in-distribution": (outputs.seeds, values.shape[2])
            for name, outputs in everything.items()
            if (values := getattr(outputs, kind)) is not None
        }
        if len(set(widths.values())) > 1:
            (one, (s, w)), (other, (t, v)) = next(
                (a, b) for a in widths.items() for b in widths.items() if a[1] != b[1]
            )
            raise InputError(
                f"ood: {kind} of '{one}' are {w} numbers per item of {s} seeds, those of '{other}' {v} of {t}; give "
                "outputs of one model"
            )


def _scored(outputs: GivenOutputs, training: GivenOutputs | None, settings: OodSettings) -> dict[str, Table]:
    """By score, (series, items) values: a series per seed, or one of all seeds."""
    values = {}
    for score in settings.scores:
        series = range(outputs.seeds if score in OF_ONE_MODEL else 1)
        values[score] = np.stack(
            [scored(outputs.known(seed, training), (score,), k=settings.k)[score] for seed in series]
        )
    return values
