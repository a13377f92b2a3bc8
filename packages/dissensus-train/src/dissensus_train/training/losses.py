"""Losses: (..., items, classes) logits and delivered targets to (..., items) values; entropies are in nats.

A target is delivered as distributions p, (..., items, classes), or as class indices, (..., items), which stand for all
probability on one class.

Examples:
    >>> import dissensus as dis
    >>> logits, people = torch.zeros(1, 2), torch.tensor([[0.75, 0.25]])
    >>> for loss in (dis.losses.cross_entropy, dis.losses.kl, dis.losses.jsd, dis.losses.brier, dis.losses.emd):
    ...     print(loss.__name__, round(loss(logits, people).item(), 4))
    cross_entropy 0.6931
    kl 0.1308
    jsd 0.0338
    brier 0.125
    emd 0.25
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor
from torch.nn import functional as F

from dissensus.errors import InputError
from dissensus.own_code import own_function

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dissensus_train.training.settings import Training

    Loss = Callable[[Tensor, Tensor], Tensor]

__all__ = ["brier", "cross_entropy", "emd", "jsd", "kl"]


def __dir__() -> list[str]:
    # `dis.losses.` offers losses for completion, not what the engines do with them.
    return __all__


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """-sum_k p_k log q_k."""
    return -(spread(target, logits) * logits.log_softmax(dim=-1)).sum(dim=-1)


def kl(logits: Tensor, target: Tensor) -> Tensor:
    """KL(p || q) = sum_k p_k log(p_k / q_k): cross-entropy less the entropy of the target, so its gradient is the same.

    What differs is the value, 0 where people are met exactly, and with it the selection by loss under another target.
    """
    target = spread(target, logits)
    return _p_log_p(target).sum(dim=-1) + cross_entropy(logits, target)


def jsd(logits: Tensor, target: Tensor) -> Tensor:
    """Jensen-Shannon divergence (KL(p || m) + KL(q || m)) / 2 with m = (p + q) / 2, from 0 to ln 2."""
    target, log_q = spread(target, logits), logits.log_softmax(dim=-1)
    q = log_q.exp()
    middle = (target + q) / 2
    # The least positive number where both are 0: 0 log 0 = 0, and its slope stays finite.
    log_m = middle.clamp_min(torch.finfo(middle.dtype).tiny).log()
    return (_p_log_p(target) - target * log_m + q * (log_q - log_m)).sum(dim=-1) / 2


def brier(logits: Tensor, target: Tensor) -> Tensor:
    """sum_k (p_k - q_k)^2, from 0 to 2."""
    return (spread(target, logits) - logits.softmax(dim=-1)).square().sum(dim=-1)


def emd(logits: Tensor, target: Tensor) -> Tensor:
    """Earth mover's distance, sum_k |P_k - Q_k| of cumulated probabilities: classes are ordered, a step of 1 apart."""
    return (spread(target, logits) - logits.softmax(dim=-1)).cumsum(dim=-1)[..., :-1].abs().sum(dim=-1)


def spread(target: Tensor, logits: Tensor) -> Tensor:
    """(..., items, classes) a delivered target as distributions, whichever way it was delivered."""
    if others := [type(part).__name__ for part in (logits, target) if not isinstance(part, Tensor)]:
        raise InputError(f"loss: logits and target are tensors, and here is a {others[0]}; give torch.as_tensor(...)")
    if not logits.is_floating_point():
        raise InputError(f"loss: logits of {logits.dtype} are no real numbers; give what the network returns")
    if target.shape == logits.shape:
        return target
    if target.shape != logits.shape[:-1] or target.is_floating_point():
        raise InputError(
            f"loss: a target of shape {tuple(target.shape)} and {target.dtype} for logits of shape "
            f"{tuple(logits.shape)}; give a distribution over as many classes, or a whole number, for each item"
        )
    try:
        return F.one_hot(target.long(), logits.shape[-1]).to(logits.dtype)
    except RuntimeError:
        # Asked for only once it has failed, since looking at the numbers would make a GPU wait at every step.
        raise InputError(
            f"loss: the targets are class indices from {int(target.min())} to {int(target.max())}, and there are "
            f"logits of {logits.shape[-1]} classes; give indices from 0 to {logits.shape[-1] - 1}"
        ) from None


def _p_log_p(p: Tensor) -> Tensor:
    values: Tensor = torch.special.xlogy(p, p)
    return values


LOSSES: Final[dict[str, Callable[[Tensor, Tensor], Tensor]]] = {
    "cross-entropy": cross_entropy,
    "kl": kl,
    "jsd": jsd,
    "brier": brier,
    "emd": emd,
}


def loss_of(settings: Training, folder: Path | None = None) -> Loss:
    """The loss that the settings name: one of `LOSSES`, or the user's own by path.

    An own loss is called with (items, classes) logits and delivered targets and answers with one value per item.
    """
    if settings.loss in LOSSES:
        return LOSSES[settings.loss]
    own = own_function(settings.loss, folder=folder, kind="loss")

    def checked(logits: Tensor, target: Tensor) -> Tensor:
        values = own(logits, target)
        if not isinstance(values, Tensor) or values.shape != logits.shape[:-1]:
            what = f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else type(values).__name__
            raise InputError(
                f"loss {settings.loss}: it returned {what} for logits of shape {tuple(logits.shape)}; return one "
                "value per item, without a mean"
            )
        return values

    return checked


def batch_mean(loss: Loss, logits: Tensor, target: Tensor, class_weights: Tensor | None = None) -> Tensor:
    """The mean over a batch; with class weights w, an item counts sum_k p_k w_k times.

    An item's weight multiplies its whole loss, so the best answer for it stays its own distribution. (PyTorch's
    `weight` multiplies the terms of the sum over classes instead: for hard labels that is the same; for soft ones it
    moves the best answer to p_k w_k.)
    """
    if class_weights is not None:
        return (loss(logits, target) * (target @ class_weights)).mean(dim=-1)
    if loss is cross_entropy and logits.ndim == 2:
        # The same value, in the order of summation that runs have always had.
        return F.cross_entropy(logits, target)
    return loss(logits, target).mean(dim=-1)
