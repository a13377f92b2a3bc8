"""Deliveries: what the loss sees of a target, epoch by epoch (Gheibi and Ghazizadeh 2026, the basins paper).

A delivery is called with the epoch and answers for all training examples at once, as a tensor that
`torch.nn.functional.cross_entropy` takes: class indices, or one distribution a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor

from dissensus.randomness import Purpose, stream

if TYPE_CHECKING:
    from dissensus.arrays import Ints, Table


class Delivery(Protocol):
    """What an engine, or anybody's training loop, may ask of a delivery."""

    @property
    def examples(self) -> Tensor:
        """(examples,) the training item of each example: 0, 1, 2, ... unless items are repeated."""
        ...

    def __call__(self, epoch: int) -> Tensor:
        """(examples,) class indices or (examples, classes) distributions of this epoch."""
        ...

    def mixing(self, epoch: int) -> Mixing | None:
        """How inputs are mixed this epoch, or None where they are left alone."""
        ...


@dataclass(frozen=True, eq=False)
class Mixing:
    """Inputs of an epoch as x_i = weight_i x_i + (1 - weight_i) x_partner_i.

    Attributes:
        partner: (examples,) index of the example that is mixed in.
        weight: (examples,) share of the example itself.
    """

    partner: Tensor
    weight: Tensor


@dataclass(frozen=True, eq=False)
class Fixed:
    """The same targets in every epoch: soft labels, the majority, smoothed labels, or one example for each vote.

    Attributes:
        targets: (examples, classes) distributions or (examples,) class indices.
        examples: (examples,) the training item of each.
        annotator: (examples,) who is asked, where each example is one person's answer; None where it is everybody's.
    """

    targets: Tensor
    examples: Tensor
    annotator: Tensor | None = None

    def __call__(self, epoch: int) -> Tensor:
        """The targets, whatever the epoch."""
        return self.targets

    def mixing(self, epoch: int) -> None:
        """Inputs are left alone."""


@dataclass(frozen=True, eq=False)
class Sampled:
    """Stochastic label sampling (SLS): one class drawn for each item from its distribution, kept for `keep` epochs.

    Attributes:
        probabilities: (items, classes) what is drawn from.
        seed: of the draws.
        keep: epochs before new draws: 1 is SLS itself, more is the basins paper's stale-target probe.
        device: where the answer lies.
    """

    probabilities: Table
    seed: int
    keep: int
    device: torch.device

    @property
    def examples(self) -> Tensor:
        """Every item once."""
        return torch.arange(self.probabilities.shape[0], device=self.device)

    def __call__(self, epoch: int) -> Tensor:
        """(items,) the drawn classes."""
        generator = stream(self.seed, Purpose.LABELS, epoch // self.keep)
        draw = generator.random((len(self.probabilities), 1)) * self._cumulative[:, -1:]
        return torch.from_numpy((draw >= self._cumulative).sum(axis=1)).to(self.device)

    @cached_property
    def _cumulative(self) -> Table:
        return np.cumsum(self.probabilities, axis=1)

    def mixing(self, epoch: int) -> None:
        """Inputs are left alone."""


@dataclass(frozen=True, eq=False)
class Noisy:
    """Soft labels with sls's noise of other items: p_i + (one-hot y_j - p_j), y_j drawn from p_j, j a permutation of i.

    The noise is centred, so the mean of what is delivered is p_i; summed over the items it is exactly as strong as that
    of sls (1 - ||p||^2 an item), but it does not know which items people disagree about. What is delivered need not be
    a distribution: entries may be below 0, and sum to 1 all the same.

    Attributes:
        probabilities: (items, classes) distributions.
        seed: of the draws.
        device: where the answer lies.
    """

    probabilities: Table
    seed: int
    device: torch.device

    @property
    def examples(self) -> Tensor:
        """Every item once."""
        return torch.arange(self.probabilities.shape[0], device=self.device)

    def __call__(self, epoch: int) -> Tensor:
        """(items, classes) the noisy targets."""
        drawn = Sampled(self.probabilities, self.seed, 1, torch.device("cpu"))(epoch).numpy()
        noise = np.eye(self.probabilities.shape[1])[drawn] - self.probabilities
        other = stream(self.seed, Purpose.MIXING, epoch).permutation(len(noise))
        return torch.from_numpy(self.probabilities + noise[other]).float().to(self.device)

    def mixing(self, epoch: int) -> None:
        """Inputs are left alone."""


@dataclass(frozen=True, eq=False)
class Multipass:
    """Each item's votes shuffled once, then one after the other: at epoch t the vote at position t mod m.

    Attributes:
        votes: (all votes,) class indices, or (all judgements, classes) distributions where a judgement is not one
            class; grouped by item and shuffled within each.
        first: (items,) where each item's votes begin.
        size: (items,) how many votes m each item has.
        device: where the answer lies.
    """

    votes: np.ndarray[Any, Any]
    first: Ints
    size: Ints
    device: torch.device

    @property
    def examples(self) -> Tensor:
        """Every item once."""
        return torch.arange(self.size.shape[0], device=self.device)

    def __call__(self, epoch: int) -> Tensor:
        """(items,) or (items, classes): this epoch's vote of each item."""
        return torch.from_numpy(self.votes[self.first + epoch % self.size]).to(self.device)

    def mixing(self, epoch: int) -> None:
        """Inputs are left alone."""


@dataclass(frozen=True, eq=False)
class Mixup:
    """Mixup (Zhang et al. 2018): pairs of items and of their targets, mixed with weight ~ Beta(strength, strength).

    Partners and weights are drawn anew for every item and epoch; partners come from the whole training set.

    Attributes:
        targets: (items, classes) distributions.
        seed: of the draws.
        strength: of the mixing; 0 mixes nothing.
    """

    targets: Tensor
    seed: int
    strength: float

    @property
    def examples(self) -> Tensor:
        """Every item once."""
        return torch.arange(self.targets.shape[0], device=self.targets.device)

    def __call__(self, epoch: int) -> Tensor:
        """(items, classes) the mixed targets."""
        mixing = self.mixing(epoch)
        weight = mixing.weight[:, None]
        return weight * self.targets + (1 - weight) * self.targets[mixing.partner]

    def mixing(self, epoch: int) -> Mixing:
        """The pairs of this epoch."""
        generator = stream(self.seed, Purpose.MIXING, epoch)
        n_items = self.targets.shape[0]
        partner = torch.from_numpy(generator.permutation(n_items))
        weight = generator.beta(self.strength, self.strength, n_items) if self.strength > 0 else np.ones(n_items)
        device = self.targets.device
        return Mixing(partner=partner.to(device), weight=torch.from_numpy(weight).float().to(device))
