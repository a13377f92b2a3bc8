"""Deliveries: what the loss sees of a target, epoch by epoch (Gheibi and Ghazizadeh 2026, the basins paper).

A delivery is called with the epoch and answers for all training examples at once, as a tensor that
`torch.nn.functional.cross_entropy` takes: class indices, or one distribution per row.
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


class _Unmixed:
    """Inputs are left alone."""

    def mixing(self, epoch: int) -> None:
        """Nothing, in any epoch."""


@dataclass(frozen=True, eq=False)
class Fixed(_Unmixed):
    """The same targets in every epoch: soft labels, the majority, smoothed labels, or one example for each vote.

    Targets are (examples, classes) distributions or (examples,) class indices; `annotator` says who is asked, where
    each example is one person's answer, and is None where it is everybody's.
    """

    targets: Tensor
    examples: Tensor
    annotator: Tensor | None = None

    def __call__(self, epoch: int) -> Tensor:
        return self.targets


@dataclass(frozen=True, eq=False)
class Sampled(_Unmixed):
    """Stochastic label sampling (SLS): one class drawn for each item from its distribution, kept for `keep` epochs.

    Kept for 1 it is SLS itself, for more the basins paper's stale-target probe.
    """

    examples: Tensor
    probabilities: Table
    seed: int
    keep: int = 1

    def __call__(self, epoch: int) -> Tensor:
        """(items,) the drawn classes."""
        return torch.from_numpy(self.drawn(epoch)).to(self.examples.device)

    def drawn(self, epoch: int) -> Ints:
        """(items,) the same as an array."""
        generator = stream(self.seed, Purpose.LABELS, epoch // self.keep)
        draw = generator.random((len(self.probabilities), 1)) * self._cumulative[:, -1:]
        return np.asarray((draw >= self._cumulative).sum(axis=1))

    @cached_property
    def _cumulative(self) -> Table:
        return np.cumsum(self.probabilities, axis=1)


class Noisy(Sampled):
    """Soft labels with sls's noise of other items: p_i + (one-hot y_j - p_j), y_j drawn from p_j, j a permutation of i.

    The noise is centred, so the mean of what is delivered is p_i; summed over the items it is exactly as strong as that
    of sls (1 - ||p||^2 per item), but it does not know which items people disagree about. What is delivered need not be
    a distribution: entries may be below 0, and sum to 1 all the same.
    """

    def __call__(self, epoch: int) -> Tensor:
        """(items, classes) the noisy targets."""
        noise = np.eye(self.probabilities.shape[1])[self.drawn(epoch)] - self.probabilities
        other = stream(self.seed, Purpose.MIXING, epoch).permutation(len(noise))
        return torch.from_numpy(self.probabilities + noise[other]).float().to(self.examples.device)


@dataclass(frozen=True, eq=False)
class Multipass(_Unmixed):
    """Each item's votes shuffled once, then one after the other: at epoch t the vote at position t mod m.

    Votes are (all votes,) class indices, or (all judgements, classes) distributions where a judgement is not one class;
    grouped by item and shuffled within each. `size`, (items,), is m.
    """

    examples: Tensor
    votes: np.ndarray[Any, Any]
    size: Ints

    def __call__(self, epoch: int) -> Tensor:
        """(items,) or (items, classes): this epoch's vote of each item."""
        first = np.cumsum(self.size) - self.size
        return torch.from_numpy(self.votes[first + epoch % self.size]).to(self.examples.device)


@dataclass(frozen=True, eq=False)
class Mixup:
    """Mixup (Zhang et al. 2018): pairs of items and of their targets, mixed with weight ~ Beta(strength, strength).

    Partners and weights are drawn anew for every item and epoch; partners come from the whole training set. A strength
    of 0 mixes nothing.
    """

    examples: Tensor
    targets: Tensor
    seed: int
    strength: float

    def __call__(self, epoch: int) -> Tensor:
        """(items, classes) the mixed targets."""
        mixing = self.mixing(epoch)
        weight = mixing.weight[:, None]
        return weight * self.targets + (1 - weight) * self.targets[mixing.partner]

    def mixing(self, epoch: int) -> Mixing:
        """The pairs of this epoch."""
        generator, n_items = stream(self.seed, Purpose.MIXING, epoch), len(self.targets)
        partner = torch.from_numpy(generator.permutation(n_items))
        weight = generator.beta(self.strength, self.strength, n_items) if self.strength > 0 else np.ones(n_items)
        device = self.targets.device
        return Mixing(partner=partner.to(device), weight=torch.from_numpy(weight).float().to(device))
