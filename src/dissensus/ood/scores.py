"""Scores of out-of-distribution (OOD) detection; each is larger for items that look more out-of-distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from dissensus.errors import InputError
from dissensus.ood.outputs import device_of, evaluated, model_outputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dissensus.arrays import Floats

Need: TypeAlias = Literal["logits", "gradients", "features", "training features", "training labels"]
"""What a score is computed from."""

GRADIENT_BATCH: Final = 256
"""Items whose activations are held for a gradient at once."""

DISTANCES: Final = 1 << 23
"""Distances held at once."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelView:
    """A model and what it makes of the items: all that a score may look at. What no score needs is None.

    Attributes:
        model: the network.
        inputs: (items, ...) as it takes them.
        logits: (items, classes).
        features: (items, width).
        training_features: (training items, width).
        training_labels: (training items,) class indices.
        temperature: of ODIN.
        epsilon: of ODIN, in units of the inputs.
        k: of kNN: which neighbour.
    """

    model: nn.Module
    inputs: Tensor
    logits: Tensor
    features: Tensor | None
    training_features: Tensor | None
    training_labels: Tensor | None
    temperature: float
    epsilon: float
    k: int


@dataclass(frozen=True, kw_only=True)
class OodScore:
    """A way to score items; tables and the command line are made from these.

    Attributes:
        name: for the command line, such as `energy`.
        title: for people, with its formula.
        reference: the paper.
        needs: what it is computed from.
        per_item: a model's view to (items,) values, larger for items that look more out-of-distribution.
    """

    name: str
    title: str
    reference: str
    needs: tuple[Need, ...]
    per_item: Callable[[ModelView], Tensor]


def msp(logits: Tensor) -> Tensor:
    """(items,) 1 - max_k q_k, one minus the maximum softmax probability (Hendrycks & Gimpel 2017).

    Computed as r / (1 + r), where r is the sum of the other classes' odds against the largest, so that items of which
    the model is very sure are not all 0.
    """
    top, place = logits.max(dim=1, keepdim=True)
    odds = (logits - top).exp().scatter(1, place, 0.0).sum(dim=1)
    return odds / (1 + odds)


def max_logit(logits: Tensor) -> Tensor:
    """(items,) minus the largest logit (Hendrycks et al. 2022)."""
    return -logits.amax(dim=1)


def entropy(logits: Tensor) -> Tensor:
    """(items,) -sum_k q_k ln q_k of the softmax, nats."""
    log_q = logits.log_softmax(dim=1)
    return -(log_q.exp() * log_q).sum(dim=1)


def energy(logits: Tensor) -> Tensor:
    """(items,) -ln sum_k exp(logit_k), the energy at temperature 1 (Liu et al. 2020)."""
    return -logits.logsumexp(dim=1)


def odin(model: nn.Module, inputs: Tensor, *, temperature: float = 1000.0, epsilon: float = 0.0014) -> Tensor:
    """(items,) 1 - maximum softmax probability of logits / T, after a step that raises it (Liang et al. 2018).

    The step moves each input by epsilon along the sign of the gradient of ln max_k softmax(logits / T)_k;
    in-distribution items gain more from it.

    Args:
        model: any network that gives one logit a class.
        inputs: (items, ...) as the model takes them.
        temperature: T.
        epsilon: length of the step in every input dimension, in units of the inputs; 0 for none.
    """
    values, device = [], device_of(model)
    with evaluated(model):
        for part in torch.split(inputs, GRADIENT_BATCH):
            # A copy: the caller's inputs stay without a gradient.
            x = part.to(device).detach().clone()
            if epsilon:
                with torch.enable_grad():
                    x.requires_grad_()
                    sure = (model(x) / temperature).log_softmax(dim=1).amax(dim=1).sum()
                    (slope,) = torch.autograd.grad(sure, x)
                x = x.detach() + epsilon * slope.sign()
            with torch.no_grad():
                values.append(msp(model(x).double() / temperature))
    return torch.cat(values)


def mahalanobis(features: Tensor, training: Tensor, labels: Tensor) -> Tensor:
    """(items,) min_c (z - m_c)' S^-1 (z - m_c), squared distance to the nearest class mean (Lee et al. 2018).

    S is the covariance of training features around the mean of their class, one for all classes, with the number of
    training items as divisor.
    Directions in which they do not vary (less than 1e-10 of the largest variance) are left out, as by a pseudo-inverse.
    Classes without a training item have no mean.

    Args:
        features: (items, width).
        training: (training items, width) features.
        labels: (training items,) class indices.
    """
    training, features = training.double(), features.double()
    present, member = labels.unique(return_inverse=True)
    # A product, since scattered sums add up in another order every time on a GPU.
    belongs = nn.functional.one_hot(member, len(present)).T.double()
    mean = belongs @ training / belongs.sum(dim=1, keepdim=True)
    centred = training - mean[member]
    variance, direction = torch.linalg.eigh(centred.T @ centred / len(training))
    varied = variance > 1e-10 * variance[-1]
    if not bool(varied.any()):
        raise InputError("mahalanobis: the training items' features do not vary within classes; leave this score out")
    whitening = direction[:, varied] / variance[varied].sqrt()
    away, centres = features @ whitening, mean @ whitening
    return _kth_nearest(away, centres, 1, mode="donot_use_mm_for_euclid_dist").square()


def knn(features: Tensor, training: Tensor, *, k: int = 50) -> Tensor:
    """(items,) distance to the k-th nearest training item, features scaled to length 1 (Sun et al. 2022).

    Args:
        features: (items, width).
        training: (training items, width) features.
        k: which neighbour; 1 is the nearest.
    """
    if k > len(training):
        raise InputError(f"knn: k is {k} and there are {len(training):,} training items; choose a smaller k")
    here, there = (nn.functional.normalize(each.double(), dim=1) for each in (features, training))
    return _kth_nearest(here, there, k, mode="use_mm_for_euclid_dist_if_necessary")


def _kth_nearest(rows: Tensor, others: Tensor, k: int, *, mode: str) -> Tensor:
    """(rows,) Euclidean distance to the k-th nearest of the others, computed as `torch.cdist` does in that mode."""
    return torch.cat(
        [
            torch.cdist(part, others, compute_mode=mode).topk(k, dim=1, largest=False).values[:, -1]
            for part in torch.split(rows, max(1, DISTANCES // len(others)))
        ]
    )


def _needed(value: Tensor | None) -> Tensor:
    assert value is not None
    return value


SCORES: Final[dict[str, OodScore]] = {
    score.name: score
    for score in (
        OodScore(
            name="msp",
            title="1 - maximum softmax probability",
            reference="Hendrycks & Gimpel 2017",
            needs=("logits",),
            per_item=lambda seen: msp(seen.logits),
        ),
        OodScore(
            name="max-logit",
            title="minus the largest logit",
            reference="Hendrycks et al. 2022",
            needs=("logits",),
            per_item=lambda seen: max_logit(seen.logits),
        ),
        OodScore(
            name="entropy",
            title="entropy of the softmax, nats",
            reference="Shannon entropy",
            needs=("logits",),
            per_item=lambda seen: entropy(seen.logits),
        ),
        OodScore(
            name="energy",
            title="energy, -ln sum exp logits",
            reference="Liu et al. 2020",
            needs=("logits",),
            per_item=lambda seen: energy(seen.logits),
        ),
        OodScore(
            name="odin",
            title="1 - maximum softmax probability at temperature T, after a step of epsilon that raises it",
            reference="Liang et al. 2018",
            needs=("gradients",),
            per_item=lambda seen: odin(seen.model, seen.inputs, temperature=seen.temperature, epsilon=seen.epsilon),
        ),
        OodScore(
            name="mahalanobis",
            title="squared Mahalanobis distance to the nearest class mean of features",
            reference="Lee et al. 2018 (last layer, no input step)",
            needs=("features", "training features", "training labels"),
            per_item=lambda seen: mahalanobis(
                _needed(seen.features), _needed(seen.training_features), _needed(seen.training_labels)
            ),
        ),
        OodScore(
            name="knn",
            title="distance to the k-th nearest training item, features scaled to length 1",
            reference="Sun et al. 2022",
            needs=("features", "training features"),
            per_item=lambda seen: knn(_needed(seen.features), _needed(seen.training_features), k=seen.k),
        ),
    )
}
"""The scores by name; each is larger for items that look more out-of-distribution."""


def ood_scores(
    model: nn.Module,
    sets: Mapping[str, Tensor],
    *,
    scores: Sequence[str] = tuple(SCORES),
    training: Tensor | None = None,
    labels: Tensor | None = None,
    temperature: float = 1000.0,
    epsilon: float = 0.0014,
    k: int = 50,
    layer: str | None = None,
) -> dict[str, dict[str, Floats]]:
    """By set and by score, (items,) the score of each item; larger looks more out-of-distribution to the model.

    Args:
        model: any network that gives one logit a class; scored in evaluation mode and full precision.
        sets: by name, (items, ...) inputs as the model takes them.
        scores: names in `SCORES`.
        training: (training items, ...) inputs, for scores that compare with training items.
        labels: (training items,) class indices, likewise.
        temperature: of ODIN.
        epsilon: of ODIN, in units of the inputs.
        k: of kNN.
        layer: where features are taken (see `model_outputs`).
    """
    chosen = [known_score(name) for name in scores]
    needs = {need for score in chosen for need in score.needs}
    given = {"training features": training, "training labels": labels}
    for need, value in given.items():
        if need in needs and value is None:
            name = next(score.name for score in chosen if need in score.needs)
            raise InputError(f"{name} needs {need}; give training items and their labels, or choose another score")
    inputs = torch.cat(list(sets.values()))
    out = model_outputs(model, inputs, features="features" in needs, layer=layer)
    seen = ModelView(
        model=model,
        inputs=inputs,
        logits=out.logits,
        features=out.features,
        training_features=(
            model_outputs(model, training, layer=layer).features
            if training is not None and "training features" in needs
            else None
        ),
        training_labels=None if labels is None else labels.to(out.logits.device),
        temperature=temperature,
        epsilon=epsilon,
        k=k,
    )
    sizes = np.cumsum([len(each) for each in sets.values()])[:-1]
    found: dict[str, dict[str, Floats]] = {name: {} for name in sets}
    for score in chosen:
        values = score.per_item(seen).double().cpu().numpy()
        for name, part in zip(sets, np.split(values, sizes), strict=True):
            found[name][score.name] = part
    return found


def known_score(name: str) -> OodScore:
    """The score of that name; an unknown name is refused with the list of known ones."""
    if name not in SCORES:
        raise InputError(f"'{name}' is not one of the scores {', '.join(SCORES)}; choose among them")
    return SCORES[name]
