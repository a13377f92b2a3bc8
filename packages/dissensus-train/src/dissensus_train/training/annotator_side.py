"""The people behind the votes: a network that knows who is asked, trained on votes one by one.

Each person has a deviation from what the network says for everybody. Deviations have a Gaussian prior around zero, so
that three votes move a person little and fifty a lot. What is predicted for a person is mixed with the panel's answer,
the more so the fewer votes of theirs were heard; somebody who was never heard is predicted to answer as the panel does.
"""

from __future__ import annotations

import operator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dissensus.arrays import Floats, Ints, Names, places_of
from dissensus.errors import InputError, choices
from dissensus_train.training.last_layer import layers_that_run
from dissensus_train.training.settings import misfit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dissensus.votes.table import Votes
    from dissensus_train.training.data import TrainingData

SHRINKAGE: Final = {"annotator-bias": 1.0, "annotator-embedding": 1.0, "multi-task": 3.0, "crowd-layer": 0.3}
"""By kind, the strength of the prior: 1 / (variance of each number of a person's deviation)."""

VOTES: Final = "votes"
"""The target, and the delivery, of runs that are trained on votes one by one."""

PACE: Final = {"annotator-bias": 30.0, "annotator-embedding": 3.0, "multi-task": 5.0, "crowd-layer": 30.0}
"""By kind, how many times faster deviations are learnt than the network: a person is heard in few batches, and would
still be learnt when the network has long begun to overfit its items."""

TRUST: Final = (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
"""Shares of the learnt deviations that may be kept: that which predicts the selection split's votes best is, so that a
panel whose people hardly differ is shrunk further than the prior would."""

TRUST_IN_AN_EPOCH: Final = (0.0, 0.5, 1.0)
"""Shares that an epoch is measured by, the best of them: deviations that are no good yet, or no longer, say nothing
against what was learnt of items."""

FIRM: Final = 4.0
"""Of the crowd-layer's common matrix at the start: the logit of a class that is certain."""

PANEL_COUNTS: Final = 3.0
"""How many votes of a person the panel's answer counts as much as."""

ANSWERS_AT_ONCE: Final = 2**24
"""Numbers in memory where everybody is asked about some items: items x people x width."""


@dataclass(frozen=True, kw_only=True)
class People:
    """The annotator side of a model.

    Attributes:
        kind: `annotator-bias`, a person's offsets of the logits; `annotator-embedding`, a vector that is added to what
            the last hidden layer gives, before its activation (Deng et al. 2023, Mokhberian et al. 2024); `multi-task`,
            a person's own last layer on a shared trunk (Davani et al. 2022), as a deviation from the common one;
            `crowd-layer`, a person's own matrix on the class probabilities (Rodrigues and Pereira 2018).
        by: an attribute of annotators: its groups take the place of persons; empty where each person is one.
        shrinkage: strength of the prior on deviations, one over its variance: the loss of an epoch is the sum over
            votes of -ln q, and shrinkage / 2 times the squared deviations of every person once. None takes the usual
            strength of the kind.
        population: by attribute, the share of each of its values among the people whose answers the panel's
            distribution is the mean of; empty weighs everybody by their training votes.
    """

    kind: str
    by: str = ""
    shrinkage: float | None = None
    population: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in SHRINKAGE:
            raise InputError(f"people: '{self.kind}' is no way to know people{choices(self.kind, SHRINKAGE)}, or group")
        strength = SHRINKAGE[self.kind] if self.shrinkage is None else self.shrinkage
        if not 0 <= strength < float("inf"):
            raise InputError(f"people: shrinkage is {strength}; give a number of 0 or more")
        object.__setattr__(self, "shrinkage", float(strength))
        for name, shares in self.population.items():
            given = dict(shares)
            if misfit(given, dict[str, float]) or abs(sum(given.values()) - 1) > 1e-6 or min(given.values()) < 0:
                raise InputError(
                    f"people: the shares of '{name}' in the population are {given}; give each value a share of "
                    "0 or more, together 1"
                )
        if len(self.population) > 1:
            raise InputError("people: the population is stated by several attributes; state it by one of them")

    def __str__(self) -> str:
        options = [f"by {self.by}"] if self.by else []
        if self.shrinkage != SHRINKAGE[self.kind]:
            options.append(f"shrinkage={self.shrinkage:g}")
        options += [f"population by {name}" for name in self.population]
        return f"{self.kind} ({', '.join(options)})" if options else self.kind


@dataclass(frozen=True, eq=False)
class AnnotatorUnits:
    """The people that a run knows, or their groups: its units, (units,) sorted names of those with training votes.

    `unit`, (annotators,), is that of each annotator of the votes, `len(units)` where it has none; `share`, (units,),
    the weight of each in the panel's distribution, together 1; `heard`, (units + 1,), the training judgements of each,
    0 in the last place for those who have no unit.
    """

    units: Names
    unit: Ints
    share: Floats
    heard: Ints


def mixed(own: Any, panel: Any, heard: Any) -> Any:
    """(rows, classes) what is predicted for people: their own answers and the panel's, mixed by what is known of them.

    The answer that is best for one person's deviation alone forgets how little a few votes say about it: the share of
    their own answer is heard / (heard + `PANEL_COUNTS`), with (rows,) `heard` the training judgements of each person.
    """
    share = (heard / (heard + PANEL_COUNTS))[:, None]
    return (share * own + (1 - share) * panel).astype(np.float32)


def panel_of(votes: Votes | None, people: People, training: Ints, *, name: str = "the data") -> AnnotatorUnits:
    """The people behind the votes on the training items; `name` is that of the data, for refusals."""
    if votes is None or votes.judgement_annotator is None or votes.annotators is None:
        raise InputError(
            f"{name}: people = '{people.kind}' needs to know who cast which vote, and the votes are anonymous; give "
            "votes with a column of annotators"
        )
    trained = np.zeros(len(votes.items), dtype=np.bool_)
    trained[training] = True
    heard = np.bincount(votes.judgement_annotator[trained[votes.judgement_item]], minlength=len(votes.annotators))
    called = _attribute(votes, people.by, name=name) if people.by else votes.annotators.names
    units = np.unique(called[heard > 0])
    place = places_of(called, units)
    unit = np.where(place < 0, len(units), place)
    weight = _stated(votes, people.population, heard.astype(np.float64), name=name)
    share = np.bincount(unit, weights=weight, minlength=len(units))[: len(units)]
    by_unit = np.bincount(unit, weights=heard, minlength=len(units) + 1).astype(np.int64)
    return AnnotatorUnits(units, unit, share / share.sum(), by_unit)


def _attribute(votes: Votes, wanted: str, *, name: str) -> Names:
    attributes = votes.annotator_attributes
    if wanted not in attributes:
        known = ", ".join(attributes) or "none"
        raise InputError(f"{name}: annotators have no attribute '{wanted}'; there is: {known}")
    return attributes[wanted]


def _stated(votes: Votes, population: Mapping[str, Mapping[str, float]], heard: Floats, *, name: str) -> Floats:
    """(annotators,) weights: the training votes of each, scaled so that each stated group has its share."""
    weight = heard
    for attribute, shares in population.items():
        place = places_of(_attribute(votes, attribute, name=name), np.array(list(shares)))
        total = np.bincount(place[place >= 0], weights=heard[place >= 0], minlength=len(shares))
        share = np.array(list(shares.values()))
        missing = np.flatnonzero((total == 0) & (share > 0))
        if missing.size:
            raise InputError(
                f"{name}: no annotator with training votes has {attribute} '{list(shares)[missing[0]]}', which the "
                "population names; leave it out"
            )
        scale = np.divide(share, total, out=np.zeros_like(share), where=total > 0)
        weight = np.where(place >= 0, heard * scale[place], 0.0)
    return weight


def votes_of_split(data: TrainingData, split: str) -> Ints:
    """(n,) the votes on the items of a split, in the order of the votes."""
    assert data.votes is not None
    inside = np.zeros(len(data.human), dtype=np.bool_)
    inside[data.splits[split]] = True
    return np.flatnonzero(inside[data.votes.item])


class PeopleNetwork(nn.Module):
    """A network over items with an annotator side.

    Called with items and units it gives the (items, classes) logits of those answers; a unit past the last is one
    without a deviation. Called with items alone it gives ln of the panel's distribution, the mean over units by share.

    What is learnt of each unit, zero at the start, is `deviation`; times `scale`, so that it learns faster than the
    rest; it enters the linear `layer`, or the logits where that is empty. `trust` is the share of it that counts in a
    pass. The prior adds `decay` times `deviation` to the gradient of a vote's mean loss: shrinkage / training votes,
    times the squared scale. The crowd-layer's matrix of the population is `common`, `FIRM` times the identity at the
    start.
    """

    share: Tensor
    scale: Tensor
    trust: float = 1.0
    constants = ("share", "scale")
    """Buffers that training leaves alone, so that runs can be stacked all the same."""

    def __init__(
        self,
        network: nn.Module,
        people: People,
        *,
        classes: int,
        share: Floats,
        layer: str,
        votes: int = 1,
        adaptive: bool = True,
    ) -> None:
        super().__init__()
        self.network, self.kind = network, people.kind
        self.layer = layer
        if hasattr(network, "prepare"):
            self.prepare = network.prepare
        # Adam steps as far whatever a parameter's scale, a plain gradient steps by its square.
        scale = PACE[people.kind] if adaptive else PACE[people.kind] ** 0.5
        self.decay = float(people.shrinkage or 0.0) / votes * scale**2
        self.register_buffer("share", torch.from_numpy(share).float())
        self.register_buffer("scale", torch.tensor(scale))
        shape: tuple[int, ...] = (classes,)
        if self.kind == "crowd-layer":
            shape = (classes, classes)
            self.common = nn.Parameter(FIRM * torch.eye(classes))
        if self.layer:
            linear = network.get_submodule(self.layer)
            assert isinstance(linear, nn.Linear)
            linear.__class__ = _DeviatingLinear
            wide = (linear.in_features + 1,) if self.kind == "multi-task" else ()
            shape = (linear.out_features, *wide)
        self.deviation = nn.Parameter(torch.zeros(len(share), *shape))

    @property
    def items_at_once(self) -> int:
        """How many items everybody can be asked about in one pass."""
        width = max(self.deviation[0].numel() if self.kind == "annotator-embedding" else 0, 16)
        return max(1, ANSWERS_AT_ONCE // (len(self.share) * width))

    def forward(self, x: Any, who: Tensor | None = None) -> Tensor:
        """(items, classes) logits of these units; of the panel where none are given."""
        # Whoever is trained on is known.
        rows = operator.getitem if self.training else _rows
        own = self.deviation if who is None else rows(self.deviation, who)
        scale = self.scale if self.trust == 1 else self.trust * self.scale
        deviations = _Deviations(own * scale, everybody=who is None)
        logits: Tensor
        if self.layer:
            layer = self.network.get_submodule(self.layer)
            assert isinstance(layer, _DeviatingLinear)
            layer.deviations = deviations
            logits = self.network(x)
            layer.deviations = None
        elif self.kind == "crowd-layer":
            matrices = _Deviations(self.common + deviations.own, everybody=deviations.everybody)
            logits = matrices.product(self.network(x).softmax(dim=-1))
        else:
            logits = deviations.beside(self.network(x)) + deviations.own
        if who is not None:
            return logits
        return (logits.log_softmax(dim=-1) + self.share.log()[:, None]).logsumexp(dim=-2)

    @property
    def deviations(self) -> Tensor:
        """(units, ...) how far each unit is from the population, in logits."""
        return (self.scale * self.deviation).detach()


@dataclass(frozen=True, eq=False)
class _Deviations:
    """Deviations: (items, ...) of the one unit that is asked about each item, or (units, ...) of everybody."""

    own: Tensor
    everybody: bool

    def beside(self, values: Tensor) -> Tensor:
        """(items, width) values, or (items, 1, width) that stand beside everybody's."""
        return values.unsqueeze(-2) if self.everybody else values

    def product(self, x: Tensor) -> Tensor:
        """Matrices (..., out, width) times (items, width) values."""
        if self.everybody:
            every: Tensor = F.linear(x, self.own.flatten(0, 1)).unflatten(-1, self.own.shape[:2])
            return every
        return (self.own @ x.unsqueeze(-1)).squeeze(-1)


class _DeviatingLinear(nn.Linear):
    """A linear layer that people's deviations enter: an offset of what it gives, or weights and offset of its own."""

    deviations: _Deviations | None = None

    def forward(self, x: Tensor) -> Tensor:
        out = super().forward(x)
        deviations = self.deviations
        if deviations is None:
            return out
        if deviations.own.ndim == 2:
            return deviations.beside(out) + deviations.own
        weights = _Deviations(deviations.own[..., :-1], everybody=deviations.everybody)
        # Of length 1, so that a prior on weights is one on logits, whatever the scale of what the layer reads.
        return deviations.beside(out) + weights.product(F.normalize(x, dim=-1)) + deviations.own[..., -1]


def _rows(table: Tensor, who: Tensor) -> Tensor:
    """(items, ...) the rows of these units; zero for a unit past the last."""
    heard = (who < len(table)).reshape(*who.shape, *(1,) * (table.ndim - 1))
    return table[who.clamp(max=len(table) - 1)] * heard


def shrink(model: nn.Module) -> None:
    """Add the prior's part to the gradient of people's deviations; nothing to a network that knows nobody."""
    if isinstance(model, PeopleNetwork) and model.deviation.grad is not None:
        model.deviation.grad.add_(model.deviation.detach(), alpha=model.decay)


@contextmanager
def trusted(model: nn.Module, share: float) -> Iterator[None]:
    """Only a share of people's deviations counts; a network that knows nobody is as it is."""
    if not isinstance(model, PeopleNetwork):
        yield
        return
    model.trust = share
    try:
        yield
    finally:
        model.trust = 1.0


def with_people(
    network: nn.Module, people: People, panel: AnnotatorUnits, *, classes: int, trial: Any, adaptive: bool = True
) -> PeopleNetwork:
    """A network over items with an annotator side for the people of a panel.

    The layers that deviations enter are found by a pass over `trial`, inputs of some items. `adaptive` says that the
    optimiser's step does not depend on the scale of a parameter, as Adam's does not.
    """
    layer = ""
    if people.kind in ("annotator-embedding", "multi-task"):
        linears = layers_that_run(
            network,
            lambda: network(trial),
            wanted=lambda part: type(part) is nn.Linear,
            giving=lambda out: out.ndim == 2,
        )
        if not linears:
            raise InputError("people: the network has no nn.Linear with one row for each item; choose annotator-bias")
        if people.kind == "annotator-embedding" and len(linears) == 1:
            raise InputError(
                "people: annotator-embedding needs a network with a hidden linear layer, and this one has none: added "
                "to what the last layer reads, an embedding would be an offset of the logits; choose annotator-bias"
            )
        layer = linears[-1 if people.kind == "multi-task" else -2]
    votes = int(panel.heard.sum())
    return PeopleNetwork(
        network, people, classes=classes, share=panel.share, layer=layer, votes=votes, adaptive=adaptive
    )
