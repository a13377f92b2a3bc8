"""Networks over pairs of answers: a score for each, and what people say of the two.

A person finds the right answer better than the left one by y = s(right) - s(left) + noise, with logistic noise, and
says the class whose interval holds y. Classes run from "left is much better" to "right is much better", and thresholds
lie symmetrically around 0: two classes are Bradley and Terry's model (1952), P(left) = 1 / (1 + exp(s(right) -
s(left))), three are Rao and Kupper's (1967), with a tie between -t and t, and more are an ordinal link for degrees.

With a spread, each answer's score is a distribution (arXiv 2410.14632): the noise has the variance (v(left) + v(right))
/ 2 in place of 1. Wide noise puts votes on both sides and few on a tie: people are divided. Narrow noise around 0 is a
tie: the answers are equal. Without it, equal scores always have the same share of ties.

Nothing here knows which side is which: with the sides swapped, the same numbers come out, for the classes in reverse.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dissensus.errors import InputError
from dissensus_train.training.losses import cross_entropy


class PairLink(nn.Module):
    """From scores of two answers to (items, classes) ln probabilities of what people say of them.

    `steps` are, before softplus, the distances between thresholds from the middle on, ln 2 at first: then three classes
    are equally likely where scores are equal.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes = classes
        self.steps = nn.Parameter(torch.zeros((classes - 1) // 2))

    @property
    def thresholds(self) -> Tensor:
        """(classes - 1,) increasing, symmetric around 0 to the last bit."""
        above = F.softplus(self.steps).cumsum(dim=0)
        middle = above.new_zeros(1 - self.classes % 2)
        return torch.cat([-above.flip(0), middle, above])

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Scores are (items, 1), or (items, 2) with ln v beside them."""
        apart, thresholds = right[:, :1] - left[:, :1], self.thresholds
        firm = torch.ones_like(apart)
        if left.shape[1] > 1:
            firm = ((math.log(2) - torch.logaddexp(left[:, 1:], right[:, 1:])) / 2).exp()
        at = (thresholds - apart) * firm
        # F(b) - F(a) = F(b) F(-a) (1 - exp(a - b)) for the logistic F, so that no difference of small numbers is taken.
        inside = torch.log(-torch.expm1(-thresholds.diff() * firm))
        return F.pad(F.logsigmoid(at), (0, 1)) + F.pad(F.logsigmoid(-at), (1, 0)) + F.pad(inside, (1, 1))


class PairNetwork(nn.Module):
    """From (items, parts x width) features to (items, classes) ln probabilities of what people say.

    Parts are the left answer and the right one, or before them the question, which both are scored with. `score` maps
    (items, width) features of an answer, those of the question first, to what `PairLink` takes.
    """

    def __init__(self, score: nn.Module, *, parts: int, classes: int) -> None:
        super().__init__()
        self.score, self.parts, self.link = score, parts, PairLink(classes)

    def forward(self, x: Tensor) -> Tensor:
        sides = x.flatten(1).unflatten(1, (self.parts, -1))
        question = sides[:, :-2].flatten(1)
        # Two calls over rows in the same places: the sums of an answer are the same bits on either side.
        left, right = (self.score(torch.cat([question, sides[:, side]], dim=1)) for side in (-2, -1))
        said: Tensor = self.link(left, right)
        return said


class RewardLoss(nn.Module):
    """The cross-entropy of people's votes on pairs under the rewards of both answers, (items,).

    Called with (2 items, 1) rewards, those of all left answers first, as TRL's `RewardTrainer` has them, and delivered
    targets: (items, classes) distributions or (items,) class indices, classes from left to right. Rewards of two
    columns are scores with a spread. Thresholds for ties and degrees are learnt: `dis.hf.Delivering` hands them to the
    optimiser; in a loop of your own, do so too.
    """

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.link = PairLink(classes)

    def forward(self, rewards: Tensor, target: Tensor) -> Tensor:
        left, right = rewards.reshape(len(rewards), -1).chunk(2)
        return cross_entropy(self.link(left, right), target)


def pair_linear(shape: tuple[int, ...], classes: int) -> nn.Module:
    """A pair's answers by linear scores of their features."""
    return _pair(shape, classes, hidden=0, outputs=1)


def pair(shape: tuple[int, ...], classes: int) -> nn.Module:
    """A pair's answers by scores with one hidden layer of 128."""
    return _pair(shape, classes, hidden=128, outputs=1)


def pair_spread(shape: tuple[int, ...], classes: int) -> nn.Module:
    """The same with scores that are distributions: people may be divided about answers that are equal in the mean."""
    return _pair(shape, classes, hidden=128, outputs=2)


def _pair(shape: tuple[int, ...], classes: int, *, hidden: int, outputs: int) -> PairNetwork:
    parts = 3 if len(shape) > 1 and shape[0] == 3 else 2
    width, rest = divmod(math.prod(shape), parts)
    if rest or (len(shape) > 1 and shape[0] != parts):
        raise InputError(
            f"pair networks read the features of a left answer and of a right one, of equal width, or (3, width) with "
            f"those of the question first; the items have shape {shape}: give two columns of texts, or such features"
        )
    read = width * (parts - 1)
    score = (
        nn.Sequential(nn.Linear(read, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
        if hidden
        else nn.Linear(read, outputs)
    )
    return PairNetwork(score, parts=parts, classes=classes)
