"""How a run is trained: the settings, and the regimes of the papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeAlias, get_type_hints

from dissensus.errors import InputError, choices


def misfit(value: Any, hint: Any) -> str:
    """What a value of an annotated type looks like, for the end of a sentence; empty where this one is of it."""
    try:
        from dissensus.toml_file import fits
    except ModuleNotFoundError:
        # Where there is PyTorch and nothing else, settings come from code that was tried where the rest is.
        return ""
    return fits(value, hint)


Bounds: TypeAlias = Mapping[str, tuple[Callable[[Any], bool], str]]
"""By its words, a rule and the names of the settings that it is for."""


def check_bounds(table: str, settings: Any, bounds: Bounds) -> None:
    """Refuses settings outside of their bounds; None is within any."""
    for words, (within, names) in bounds.items():
        for name in names.split():
            value = getattr(settings, name)
            if value is not None and not within(value):
                raise InputError(f"{table}: {name} is {value}; it must be {words}")


@dataclass(frozen=True, kw_only=True)
class Training:
    """Everything about training that is not the model, the target, the delivery or the seed.

    Attributes:
        optimiser: adam, sgd (with momentum), adamw, or one of PyTorch by path: `torch.optim:RAdam`.
        learning_rate: at the start, or where a warm-up ends.
        momentum: of SGD.
        weight_decay: L2, added to the gradient; of AdamW decoupled from it.
        batch_size: examples per step; the last batch of an epoch may be smaller.
        epochs: at most.
        schedule: constant; cosine or linear to 0 over `epochs`, in steps of one epoch; or plateau: times
            `plateau_factor` after more than `plateau_patience` epochs without the selection metric falling by a
            relative 1e-4.
        patience: stop after this many epochs without a better selection metric; None trains to the last epoch.
        keep: the weights of the best epoch by the selection metric, or of the last epoch.
        selection: the metric, on `selection_split`: loss on the run's own target, soft NLL to the human
            distribution, or accuracy against its majority.
        selection_split: never the test split.
        augmentation: none, or random crop (4 pixels of padding) and horizontal flip, drawn anew for every item and
            epoch.
        precision: float32, or bfloat16 where autocast allows it.
        dynamics: whether to record every item's probabilities after each epoch.
        warmup: epochs, or a share of one, in which the rate climbs from 0 in equal steps, one per optimiser step.
        warmup_steps: the same as a number of optimiser steps.
        clip_norm: the gradient is shortened to this Euclidean norm where it is longer; None leaves it.
        loss: cross-entropy, kl, jsd, brier, emd (earth mover's, for ordered classes), or the user's own by path:
            `losses.py:focal`. The selection metric `loss` is this loss.
        class_weights: an item counts sum_k p_k w_k times in the training loss: `balanced` takes w_k = 1 / (classes
            times the share of class k in the training target), a mapping gives each class its own; None counts all
            alike.
        tune: whether each run tries a tenth, three tenths, three times and ten times the learning rate too, and keeps
            the rate that is best by the selection metric on the selection split.
    """

    optimiser: str = "adam"
    learning_rate: float = 1e-3
    momentum: float = 0.0
    weight_decay: float = 0.0
    batch_size: int = 64
    epochs: int = 60
    schedule: Literal["constant", "plateau", "cosine", "linear"] = "constant"
    plateau_factor: float = 0.5
    plateau_patience: int = 3
    patience: int | None = None
    keep: Literal["best", "last"] = "last"
    selection: Literal["loss", "soft-nll", "accuracy"] = "loss"
    selection_split: str = "validation"
    augmentation: Literal["none", "crop-flip"] = "none"
    precision: Literal["float32", "bf16"] = "float32"
    dynamics: bool = False
    warmup: float = 0.0
    warmup_steps: int = 0
    clip_norm: float | None = None
    loss: str = "cross-entropy"
    class_weights: Literal["balanced"] | Mapping[str, float] | None = None
    tune: bool = False

    def __post_init__(self) -> None:
        for name, hint in _HINTS.items():
            if wanted := misfit(getattr(self, name), hint):
                raise InputError(f"training: {name} is {getattr(self, name)!r}; give {wanted}")
        check_bounds("training", self, _BOUNDS)
        for name, known in _NAMED.items():
            value = getattr(self, name)
            if value not in known and (not isinstance(value, str) or ":" not in value):
                raise InputError(
                    f"training: {name} is '{value}'{choices(value, known)}, or give a path such as {_PATHS[name]}"
                )
        if self.warmup and self.warmup_steps:
            raise InputError("training: warmup and warmup_steps are both given; keep warmup (epochs) or warmup_steps")
        _check_class_weights(self.class_weights)
        if self.selection_split == "test":
            raise InputError("training: selection_split is 'test'; nothing is ever selected on the test split")

    @property
    def selects(self) -> bool:
        """Whether the selection metric decides anything."""
        return self.keep == "best" or self.patience is not None or self.schedule == "plateau" or self.tune


_HINTS: Final = get_type_hints(Training)
_BOUNDS: Final[Bounds] = {
    "0 or more": (lambda value: value >= 0, "momentum weight_decay plateau_patience warmup warmup_steps"),
    "1 or more": (lambda value: value >= 1, "batch_size epochs patience"),
    "above 0 and finite": (lambda value: 0 < value < float("inf"), "learning_rate"),
    "a number above 0": (lambda value: value > 0, "clip_norm"),
    "between 0 and 1": (lambda value: 0 < value < 1, "plateau_factor"),
}
_NAMED: Final = {"optimiser": ("adam", "sgd", "adamw"), "loss": ("cross-entropy", "kl", "jsd", "brier", "emd")}
"""Settings that take a name or a path."""

_PATHS: Final = {"optimiser": "torch.optim:RAdam", "loss": "losses.py:focal"}

_LATER: Final = ("warmup", "warmup_steps", "clip_norm", "loss", "class_weights", "tune")
"""Settings that runs of the first release did not have."""


def spelled_out(training: Training) -> dict[str, Any]:
    """The settings as plain values, as they are in a run's key.

    Those of `_LATER` are left out where they have their default: a run that does not use them is the run it was.
    """
    every = {field.name: (getattr(training, field.name), field.default) for field in fields(Training)}
    return {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, (value, default) in every.items()
        if name not in _LATER or value != default
    }


def _check_class_weights(given: Any) -> None:
    if given is None or given == "balanced":
        return
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"training: class_weights is {given!r}; choose 'balanced', or give each class a number")
    for name, weight in given.items():
        if type(weight) not in (int, float) or not 0 <= weight < float("inf"):
            raise InputError(f"training: class_weights gives '{name}' {weight!r}; give a number of 0 or more")
    if not any(given.values()):
        raise InputError("training: class_weights gives every class 0; give at least one a number above 0")


NO_EPOCHS: Final = Training(keep="best")
"""Of what is fitted to a minimum, and chosen by the selection metric."""

REGIMES: Final[dict[str, Training]] = {
    # Soft-digits paper, test regime. Its patience, factor and learning rate are not known (papers.md 3.2); these are
    # PyTorch's and Keras' usual ones.
    "early-stopping": Training(epochs=60, schedule="plateau", patience=10, keep="best"),
    # Soft-digits paper, dynamics regime.
    "fixed-horizon": Training(epochs=40, dynamics=True),
    # Basins paper.
    "sgd-cosine": Training(
        optimiser="sgd",
        learning_rate=0.1,
        momentum=0.9,
        weight_decay=5e-4,
        batch_size=128,
        epochs=200,
        schedule="cosine",
        augmentation="crop-flip",
    ),
}
