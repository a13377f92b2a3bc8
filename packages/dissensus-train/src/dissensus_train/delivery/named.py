"""Deliveries by name, made from label distributions and votes."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from dissensus.errors import InputError, choices
from dissensus.labels.distribution import LabelDistribution
from dissensus.labels.schemes import UNSURE_WEIGHT, judgement_vectors
from dissensus.own_code import beside, own_function
from dissensus.randomness import Purpose, stream
from dissensus_train.delivery.deliveries import Fixed, Mixup, Multipass, Noisy, Sampled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dissensus.arrays import Codes, Ints, Table
    from dissensus.labels.distribution import TieRule
    from dissensus.votes.table import Votes
    from dissensus_train.delivery.deliveries import Delivery

Device = torch.device | str


def soft(
    labels: LabelDistribution, votes: Votes | None, *, seed: int, device: Device, smoothing: float = 0.0
) -> Delivery:
    """The whole distribution in every epoch; the loss is -sum_k p_k log q_k.

    With `smoothing` it is mixed with the uniform one: (1 - smoothing) p + smoothing / K.
    """
    return _fixed(_smoothed(labels.probabilities, smoothing, "soft"), device)


def noisy_soft(labels: LabelDistribution, votes: Votes | None, *, seed: int, device: Device) -> Delivery:
    """The whole distribution plus the noise that stochastic label sampling has on another item, drawn in every epoch.

    A control for sls: as much noise over the training items, but not on those that people disagree about.
    """
    return Noisy(_once(labels, device), labels.probabilities, seed)


def majority(
    labels: LabelDistribution, votes: Votes | None, *, seed: int, device: Device, tie: TieRule = "first"
) -> Delivery:
    """Only the most voted class; ties are decided by the stated rule."""
    return _fixed(labels.one_hot(tie=tie, seed=seed), device)


def label_smoothing(
    labels: LabelDistribution, votes: Votes | None, *, seed: int, device: Device, smoothing: float = 0.1
) -> Delivery:
    """The majority class, mixed with the uniform distribution: (1 - smoothing) one-hot + smoothing / K."""
    return _fixed(_smoothed(labels.one_hot(tie="first"), smoothing, "label-smoothing"), device)


def _smoothed(targets: Table, smoothing: float, name: str) -> Table:
    """(items, classes) distributions mixed with the uniform one."""
    if not 0 <= smoothing <= 1:
        raise InputError(f"delivery {name}: smoothing is {smoothing}; choose 0 to 1")
    return (1 - smoothing) * targets + smoothing / targets.shape[1] if smoothing else targets


def sls(labels: LabelDistribution, votes: Votes | None, *, seed: int, device: Device) -> Delivery:
    """Stochastic label sampling (SLS): in every epoch, one class drawn for each item from its distribution."""
    return Sampled(_once(labels, device), labels.probabilities, seed)


def stale_sls(labels: LabelDistribution, votes: Votes | None, *, seed: int, device: Device, keep: int = 10) -> Delivery:
    """Stochastic label sampling whose draws are kept for `keep` epochs (the basins paper's stale-target probe)."""
    if keep < 1:
        raise InputError(f"delivery stale-sls: keep is {keep}; keep draws for at least 1 epoch")
    return Sampled(_once(labels, device), labels.probabilities, seed, keep)


def shuffled_sls(labels: LabelDistribution, votes: Votes | None, *, seed: int, device: Device) -> Delivery:
    """Stochastic label sampling from distributions permuted across items once: disagreement on the wrong items."""
    order = stream(seed, Purpose.MIXING).permutation(len(labels))
    return Sampled(_once(labels, device), labels.probabilities[order], seed)


def multipass(
    labels: LabelDistribution, votes: Votes | None, *, seed: int, device: Device, order_seed: int | None = None
) -> Delivery:
    """The observed votes in turn, one per epoch; another `order_seed` is the basins paper's deterministic control.

    Over a cycle the mean of what is delivered is the target, exactly. Where the target is the frequency of votes, the
    votes come from its counts; where it is a weighting of judgements with several votes, `votes` must be given, and
    the judgements' own vectors are delivered in turn.
    """
    generator = stream(seed if order_seed is None else order_seed, Purpose.ORDER)
    if _is_frequency(labels):
        (item, vote), size = _listed_votes(labels), labels.counts.sum(axis=1)
    elif votes is None or not reads_votes("multipass", labels):
        raise InputError(
            f"delivery multipass: the target '{labels.scheme}' is not the frequency of votes; use sls (stochastic "
            "label sampling), which needs only the distribution, or a weighting scheme together with its votes"
        )
    elif len(votes.items) != len(labels):
        raise InputError(
            f"delivery multipass: {len(votes.items)} items in the votes and {len(labels)} in the target; "
            "give the votes of the target's items"
        )
    else:
        (item, vote), size = ordered_judgements(votes, labels.scheme), votes.panel_size
    order = np.lexsort((generator.random(len(item)), item))
    return Multipass(_once(labels, device), vote[order], size)


def reads_votes(name: str, labels: LabelDistribution) -> bool:
    """Whether a delivery of a target reads the judgements themselves, and not only the label distribution."""
    return name == "multipass" and not _is_frequency(labels) and labels.scheme in UNSURE_WEIGHT


def ordered_judgements(votes: Votes, scheme: str) -> tuple[Codes, np.ndarray[Any, np.dtype[np.float32]]]:
    """(judgements,) items and (judgements, classes) vectors, by item and then by vector: not as the file has them."""
    vectors = judgement_vectors(votes, scheme).toarray().astype(np.float32)
    order = np.lexsort((*vectors.T, votes.judgement_item))
    return votes.judgement_item[order], vectors[order]


def _is_frequency(labels: LabelDistribution) -> bool:
    """Whether a target is the frequency of its own counted votes."""
    total = labels.counts.sum(axis=1)
    return bool((total > 0).all() and np.allclose(labels.counts / np.maximum(total, 1)[:, None], labels.probabilities))


def _listed_votes(labels: LabelDistribution) -> tuple[Any, Any]:
    """(votes,) item and class of every counted vote, items in order."""
    counts = labels.counts
    return np.divmod(np.repeat(np.arange(counts.size), counts.ravel()), counts.shape[1])


def repeated(labels: LabelDistribution, votes: Votes | None, *, seed: int, device: Device) -> Delivery:
    """Repeated labelling (Sheng et al. 2008): every vote is an example of its own, so an epoch is longer.

    The mean over an item's examples is its target, exactly; a target that is not the frequency of votes is refused.
    """
    if not _is_frequency(labels):
        raise InputError(
            f"delivery repeated: the target '{labels.scheme}' is not the frequency of votes; use soft or sls "
            "(stochastic label sampling), which need only the distribution"
        )
    item, vote = _listed_votes(labels)
    return Fixed(torch.from_numpy(vote).to(device), torch.from_numpy(item).to(device))


def mixup(
    labels: LabelDistribution, votes: Votes | None, *, seed: int, device: Device, strength: float = 1.0
) -> Delivery:
    """Mixup of the majority labels, the basins paper's baseline."""
    if not strength >= 0:
        raise InputError(f"delivery mixup: strength is {strength}; choose 0 or more")
    return Mixup(_once(labels, device), torch.from_numpy(labels.one_hot()).float().to(device), seed, strength)


def one_by_one(votes: Votes, who: Ints, *, device: Device = "cpu") -> Fixed:
    """Every judgement as an example of its own, with the (annotators,) number that stands for who made it."""
    assert votes.judgement_annotator is not None, "who answered is known"
    if votes.judgement is None and votes.unsure is None:
        said: np.ndarray[Any, Any] = votes.label.astype(np.int64)
    else:
        said = judgement_vectors(votes, "equal-weighted").toarray().astype(np.float32)
    item, unit = votes.judgement_item.astype(np.int64), who[votes.judgement_annotator]
    return Fixed(*(torch.from_numpy(part).to(device) for part in (said, item, unit)))


DELIVERIES: Final[dict[str, Callable[..., Delivery]]] = {
    "soft": soft,
    "noisy-soft": noisy_soft,
    "majority": majority,
    "sls": sls,
    "multipass": multipass,
    "shuffled-sls": shuffled_sls,
    "stale-sls": stale_sls,
    "repeated": repeated,
    "label-smoothing": label_smoothing,
    "mixup": mixup,
}

ONE_TARGET: Final = ("soft", "majority", "label-smoothing", "repeated")
"""Deliveries that show the same in every epoch, so that a model can be fitted to a minimum."""


def shows_one_target(name: str) -> bool:
    """Whether a delivery shows the same in every epoch; of a user's own, that is seen when it is used."""
    return name in ONE_TARGET or ":" in name


HARD: Final = frozenset({"majority", "label-smoothing", "mixup"})
"""Deliveries made from the majority class of each item, which know nothing else of the target."""


def deliver(
    name: str,
    labels: LabelDistribution,
    votes: Votes | None = None,
    *,
    seed: int = 0,
    device: Device = "cpu",
    folder: Path | None = None,
    **options: Any,
) -> Delivery:
    """The delivery of that name: `deliver("multipass", labels, seed=0)`.

    Args:
        name: one of `DELIVERIES`, or the path of an own one, `deliveries.py:mine`: a function with the signature of
            `soft`, whose own options are further keywords, and which returns a `Delivery`.
        labels: the target.
        votes: the votes behind it; only multipass of weighted targets needs them.
        seed: random seed.
        device: where the delivered tensors lie.
        folder: what the path of an own delivery is relative to.
        options: the delivery's own options; see `delivery_options`.

    Examples:
        >>> import numpy as np
        >>> from dissensus.labels import label
        >>> from dissensus.votes import votes_from_counts
        >>> delivered = deliver("multipass", label(votes_from_counts(np.array([[2, 1], [0, 3]]))), seed=0)
        >>> [sorted(delivered(epoch)[0].item() for epoch in range(3)), delivered(0)[1].item()]
        [[0, 0, 1], 1]
    """
    if not isinstance(labels, LabelDistribution):
        raise InputError(
            f"delivery {name}: labels are wanted, and here is a {type(labels).__name__}; give what dis.label makes of "
            "votes"
        )
    known = delivery_options(name, folder=folder)
    if unknown := [option for option in options if option not in known]:
        raise InputError(f"delivery {name}: it has no option '{unknown[0]}'; its options: {', '.join(known) or 'none'}")
    with beside(folder if name not in DELIVERIES else None):
        made = _maker(name, folder)(labels, votes, seed=seed, device=device, **options)
    if name not in DELIVERIES:
        _check_own(name, made, labels)
    return made


def delivery_options(name: str, *, folder: Path | None = None) -> dict[str, Any]:
    """The options of a delivery besides its seed and device, with their defaults."""
    parameters = inspect.signature(_maker(name, folder)).parameters.values()
    keyword = [parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    return {option.name: option.default for option in keyword if option.name not in ("seed", "device")}


def _maker(name: str, folder: Path | None) -> Callable[..., Delivery]:
    if name in DELIVERIES:
        return DELIVERIES[name]
    if ":" not in name:
        raise InputError(f"'{name}' is not a delivery{choices(name, DELIVERIES)}, or a path such as deliveries.py:mine")
    return own_function(name, folder=folder, kind="delivery")


def _check_own(name: str, made: Any, labels: LabelDistribution) -> None:
    """Refuse what is no delivery before training does, in its middle."""
    if missing := [part for part in ("examples", "mixing", "__call__") if not hasattr(made, part)]:
        raise InputError(
            f"delivery {name}: it returned {type(made).__name__}, which has no '{missing[0]}'; return what "
            "dissensus_train.delivery.Delivery describes"
        )
    examples, targets = made.examples, made(0)
    if targets.shape not in (examples.shape, (*examples.shape, len(labels.classes))):
        raise InputError(
            f"delivery {name}: targets of shape {tuple(targets.shape)} for {examples.shape[0]:,} examples; deliver one "
            f"class index an example, or one distribution over {len(labels.classes)} classes"
        )
    if examples.numel() and (int(examples.min()) < 0 or int(examples.max()) >= len(labels)):
        raise InputError(f"delivery {name}: its examples name items outside 0 to {len(labels) - 1}")


def _once(labels: LabelDistribution, device: Device) -> torch.Tensor:
    """(items,) every item once."""
    return torch.arange(len(labels), device=device)


def _fixed(targets: np.ndarray[tuple[int, int], np.dtype[np.float64]], device: Device) -> Delivery:
    return Fixed(torch.from_numpy(targets).float().to(device), torch.arange(targets.shape[0], device=device))
