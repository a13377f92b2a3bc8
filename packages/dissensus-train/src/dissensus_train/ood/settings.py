"""What is measured: the out-of-distribution (OOD) sets, the scores and their settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dissensus.errors import InputError, choices
from dissensus_train.training.settings import Bounds, check_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


SCORE_NAMES: Final = (
    "msp",
    "max-logit",
    "entropy",
    "energy",
    "odin",
    "mahalanobis",
    "knn",
    "vim",
    "react",
    "disagreement",
)
"""The scores there are (`scores.SCORES`), by name alone: a study file is read without what computes them."""

NEAR: Final = "near"
FAR: Final = "far"
"""What the means over near and over far sets are called among the sets."""


@dataclass(frozen=True, kw_only=True)
class OodSettings:
    """How OOD detection of runs is measured.

    Attributes:
        sets: by name, the folder or file of each OOD set.
        near: names of sets that are near: other classes of the same kind of item (letters to a study of digits).
        far: names of sets that are far: items of another kind (photographs of clothes).
        scores: of `SCORE_NAMES`; a score that cannot be computed of the runs is left out, and that is said.
        items: how many in-distribution items, and how many of each OOD set, to draw at random at most; 0 takes all.
        temperature: T of ODIN.
        epsilon: of ODIN: the step in every dimension, in units of the features; for images, with pixels from 0 to 1.
        k: of kNN: the distance is to the k-th nearest neighbour.
        layer: the module whose output is the features; None takes the input of the last `nn.Linear`.
        text: the column that holds the texts, where a set is a table; None looks for it.
        resamples: bootstrap resamples of items, for intervals.
        seed: of drawn items and resamples.
    """

    sets: Mapping[str, str | Path]
    near: tuple[str, ...] = ()
    far: tuple[str, ...] = ()
    scores: tuple[str, ...] = SCORE_NAMES
    items: int = 2000
    temperature: float = 1000.0
    epsilon: float = 0.0014
    k: int = 50
    layer: str | None = None
    text: str | None = None
    resamples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.sets:
            raise InputError("ood: no OOD set is given; give sets=, a folder, npz or table by name")
        called = (*self.near, *self.far)
        wrong = next((name for name in called if name not in self.sets or called.count(name) > 1), None)
        if wrong is not None:
            known = choices(wrong, self.sets) if wrong not in self.sets else "; name each set at most once"
            raise InputError(f"ood: '{wrong}' is called near or far, and is no set or named twice{known}")
        if called and {NEAR, FAR} & set(self.sets):
            raise InputError("ood: a set is called near or far, as the means over such sets are; rename it")
        if not self.scores or len(set(self.scores)) != len(self.scores):
            raise InputError(
                f"ood: scores are {list(self.scores)}; name at least one, each once: {', '.join(SCORE_NAMES)}"
            )
        for name in self.scores:
            if name not in SCORE_NAMES:
                raise InputError(f"'{name}' is not one of the scores that there are{choices(name, SCORE_NAMES)}")
        check_bounds("ood", self, _BOUNDS)

    @property
    def kinds(self) -> dict[str, tuple[str, ...]]:
        """The sets that are stated to be near, and those that are far, where there are any."""
        return {kind: sets for kind, sets in ((NEAR, self.near), (FAR, self.far)) if sets}

    def kind_of(self, name: str) -> str:
        """Whether a set is stated to be near or far; empty where it is not."""
        return next((kind for kind, names in self.kinds.items() if name in names), "")


_BOUNDS: Final[Bounds] = {
    "0 or more": (lambda value: value >= 0, "epsilon seed"),
    "1 or more": (lambda value: value >= 1, "k"),
    "2 or more, or 0 for all": (lambda value: value == 0 or value >= 2, "items"),
    "above 0": (lambda value: value > 0, "temperature"),
    "0 for no interval, or about 1000": (lambda value: value >= 0, "resamples"),
}
