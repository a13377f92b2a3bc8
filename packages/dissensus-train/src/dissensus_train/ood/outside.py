"""OOD detection from what anybody's model made of items: its logits, its features, or both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from dissensus.array_file import read_npz
from dissensus.errors import InputError, meant_path
from dissensus_train.ood.measuring import IN_DISTRIBUTION, detection, kind_of
from dissensus_train.ood.ood_sets import OodSet, same_items
from dissensus_train.ood.results import OodSetSummary
from dissensus_train.ood.scores import OF_ONE_MODEL, REMEDIES, SCORES, ModelView, known_score, scored
from dissensus_train.ood.settings import OodSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from dissensus.arrays import Table
    from dissensus_train.ood.results import OodResult
    from dissensus_train.ood.scores import Need

ARRAYS: Final = ("logits", "features", "labels")
"""What a file of outputs may hold."""


@dataclass(frozen=True, eq=False)
class GivenOutputs:
    """What a model, or several seeds of one, made of items.

    Attributes:
        logits: (seeds, items, classes) float64; None where they are not known.
        features: (seeds, items, width) float64; None likewise.
        labels: (items,) class indices, of training items; None where they are not known.
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
        known = self.logits if self.logits is not None else self.features
        assert known is not None, "outputs are logits or features"
        return known

    def row(self) -> OodSet:
        """The items as the first seed sees them, to find those that are in two sets."""
        return OodSet(name="", features=self._first[0].float().numpy())


def given_outputs(
    logits: Any = None, features: Any = None, labels: Any = None, *, where: str = "outputs"
) -> GivenOutputs:
    """Outputs in NumPy's arrays or PyTorch's tensors, checked.

    Args:
        logits: (items, classes), or (seeds, items, classes) of several seeds.
        features: (items, width), or (seeds, items, width).
        labels: (items,) class indices; only those of training items are looked at.
        where: they are from, for the beginning of a sentence.
    """
    made = {}
    for name, given in (("logits", logits), ("features", features)):
        if given is None:
            continue
        values = torch.as_tensor(given if isinstance(given, torch.Tensor) else np.asarray(given)).detach().cpu()
        values = values.double()[None] if values.ndim == 2 else values.double()
        if values.ndim != 3 or not values.numel():
            raise InputError(
                f"{where}: {name} have shape {tuple(np.shape(given))}; give (items, numbers), or (seeds, items, "
                "numbers)"
            )
        if not bool(values.isfinite().all()):
            raise InputError(f"{where}: {name} hold NaN or infinity; fill or remove those items")
        made[name] = values
    if not made:
        raise InputError(f"{where}: neither logits nor features; give one of them, or both")
    shapes = {tuple(values.shape[:2]) for values in made.values()}
    if len(shapes) > 1:
        (s, n), (t, m) = sorted(shapes)
        raise InputError(
            f"{where}: logits and features are of {s} seeds and {n:,} items, and of {t} and {m:,}; give both of the "
            "same"
        )
    known = None if labels is None else torch.as_tensor(np.asarray(labels))
    items = next(iter(shapes))[1]
    if known is not None and (tuple(known.shape) != (items,) or known.is_floating_point()):
        raise InputError(
            f"{where}: labels have shape {tuple(known.shape)}; give a class index for each of {items:,} items"
        )
    return GivenOutputs(made.get("logits"), made.get("features"), known)


def read_outputs(path: str | Path) -> GivenOutputs:
    """Outputs from an `.npz` with an array `logits`, or `features`, or both; and `labels`, for training items."""
    remedy = "give an .npz with an array 'logits' or 'features'"
    if not Path(path).exists():
        raise InputError(f"{path}: there is no such file{meant_path(Path(path))}; {remedy}")
    return given_outputs(**read_npz(Path(path), only=ARRAYS, remedy=remedy), where=str(path))


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
    """How well scores tell OOD items from in-distribution ones, from a model's outputs alone.

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
    _check(everything, training)
    has = _known(everything, training)
    possible = [each for each, score in SCORES.items() if set(score.needs) <= has]
    chosen = tuple(possible if scores is None else scores)
    if not chosen:
        raise InputError("ood: these outputs are enough for no score; give logits, or features with training features")
    for score in map(known_score, chosen):
        lacking = next((need for need in score.needs if need not in has), None)
        if lacking is not None:
            raise InputError(f"ood: {score.name} needs {lacking}; {REMEDIES[lacking]}, or choose another score")
    asked = OodSettings(sets=paths or dict.fromkeys(ood, ""), scores=chosen, **settings)
    values = {each: _scored(given, training, chosen, asked.k) for each, given in everything.items()}
    seeds = "one seed" if in_distribution.seeds == 1 else f"{in_distribution.seeds} seeds"
    what = " and ".join(each for each in ARRAYS[:2] if getattr(in_distribution, each) is not None)
    return detection(
        {name: values},
        {name: tuple(range(in_distribution.seeds))},
        asked,
        summaries=tuple(
            OodSetSummary(
                name=each,
                kind=kind_of(each, asked),
                path=str(asked.sets[each]),
                items=len(given),
                there=len(given),
                how=f"{what} of {seeds}, as they were given",
                in_distribution_too=int(same_items(given.row(), in_distribution.row()).sum()),
                trained_on=0 if training is None else int(_trained_on(given, training)),
            )
            for each, given in ood.items()
        ),
    )


def _trained_on(given: GivenOutputs, training: GivenOutputs) -> int:
    if given.features is None or training.features is None:
        return 0
    here, there = (GivenOutputs(None, each.features, None).row() for each in (given, training))
    return int(same_items(here, there).sum())


def _check(everything: Mapping[str, GivenOutputs], training: GivenOutputs | None) -> None:
    """Refuse outputs that are not of one model."""
    for kind in ("logits", "features"):
        widths = {
            name or "in-distribution": (given.seeds, values.shape[2])
            for name, given in {**everything, **({} if training is None else {"training": training})}.items()
            if (values := getattr(given, kind)) is not None
        }
        if len(set(widths.values())) > 1:
            (one, (s, w)), (other, (t, v)) = next(
                (a, b) for a in widths.items() for b in widths.items() if a[1] != b[1]
            )
            raise InputError(
                f"ood: {kind} of '{one}' are {w} numbers an item of {s} seeds, those of '{other}' {v} of {t}; give "
                "outputs of one model"
            )


def _known(everything: Mapping[str, GivenOutputs], training: GivenOutputs | None) -> set[Need]:
    """What all the outputs are enough for."""
    has: set[Need] = set()
    if all(given.logits is not None for given in everything.values()):
        has.add("logits")
        if all(given.seeds > 1 for given in everything.values()):
            has.add("seeds")
    if all(given.features is not None for given in everything.values()):
        has.add("features")
    if training is not None and training.features is not None:
        has.add("training features")
        if training.labels is not None:
            has.add("training labels")
    return has


def _scored(given: GivenOutputs, training: GivenOutputs | None, scores: Sequence[str], k: int) -> dict[str, Table]:
    """By score, (series, items) values: a series a seed, or one of all seeds."""
    of_one = [score for score in scores if score in OF_ONE_MODEL]
    by_seed = [
        scored(
            ModelView(
                logits=None if given.logits is None else given.logits[seed],
                features=None if given.features is None else given.features[seed],
                training_features=None if training is None or training.features is None else training.features[seed],
                training_labels=None if training is None else training.labels,
                k=k,
            ),
            of_one,
        )
        for seed in range(given.seeds)
    ]
    together = scored(ModelView(seeds=given.logits), [score for score in scores if score not in OF_ONE_MODEL])
    return {
        score: np.stack([each[score] for each in by_seed]) if score in OF_ONE_MODEL else together[score][None]
        for score in scores
    }
