"""Scores of out-of-distribution (OOD) detection; each is larger for items that look more out-of-distribution.

Scores of logits and features take PyTorch's tensors or NumPy's arrays, and give what they were given.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from dissensus.errors import InputError, choices
from dissensus_train.ood.outputs import all_rows, device_of, model_outputs
from dissensus_train.training.inputs import SparseRows, Tokens
from dissensus_train.training.last_layer import in_evaluation_mode
from dissensus_train.training.loop import same_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dissensus.arrays import Floats
    from dissensus_train.training.inputs import Features

Need: TypeAlias = Literal[
    "logits", "gradients", "features", "training features", "training labels", "last layer", "seeds"
]
"""What a score is computed from: (items, classes) logits; the network and its inputs; (items, width) features; those of
training items, and their class indices; (classes, width + 1) weights of the last layer, the bias last; or
(seeds, items, classes) logits."""

REMEDIES: Final[dict[Need, str]] = {
    "logits": "give logits",
    "gradients": "give the network itself and inputs that it can be differentiated by",
    "features": "give features",
    "training features": "give training items and their labels",
    "training labels": "give training items and their labels",
    "last layer": "give the network itself, and features that enter its last layer; or logits and features of more "
    "training items than there are features",
    "seeds": "give logits of two seeds or more",
}
"""How each thing that a score may lack is given."""

GRADIENT_BATCH: Final = 256
"""Items whose activations are held for a gradient at once."""

DISTANCES: Final = 1 << 23
"""Distances held at once."""


@dataclass(frozen=True)
class OodScore:
    """A way to score items; tables and the command line are made from these.

    It gives (items,) values, larger for items that look more out-of-distribution, from what it needs, in the order of
    the function's arguments, and from the named settings.
    """

    title: str
    reference: str
    needs: tuple[Need, ...]
    per_item: Callable[..., Any]
    settings: tuple[str, ...] = ()


def _also_arrays(score: Callable[..., Tensor]) -> Callable[..., Any]:
    """The score, which then also takes NumPy's arrays, as float64, and gives an array where its first is no tensor."""
    names = list(signature(score).parameters)

    @wraps(score)
    def of_either(first: Any, *others: Any, **settings: Any) -> Any:
        tensors = [
            _tensor(values, score.__name__, labels=name == "labels")
            for name, values in zip(names, (first, *others), strict=False)
        ]
        scores = score(*tensors, **settings)
        return scores if isinstance(first, Tensor) else scores.numpy()

    return of_either


def _tensor(values: Any, name: str, *, labels: bool) -> Tensor:
    wanted = "one class index per item" if labels else "a row of numbers per item"
    try:
        kind = np.int64 if labels else np.float64
        tensor = values if isinstance(values, Tensor) else torch.from_numpy(np.array(values, dtype=kind))
    except (TypeError, ValueError):
        raise InputError(f"{name}: these are not numbers in rows of equal length; give {wanted}") from None
    if tensor.ndim < (1 if labels else 2):
        raise InputError(f"{name}: shape {tuple(tensor.shape)}; give {wanted}")
    return tensor


@_also_arrays
def msp(logits: Tensor) -> Tensor:
    """(items,) 1 - max_k q_k, one minus the maximum softmax probability (Hendrycks & Gimpel 2017).

    Computed as r / (1 + r), where r is the sum of the other classes' odds against the largest, so that items of which
    the model is very sure are not all 0.
    """
    top, place = logits.max(dim=1, keepdim=True)
    odds = (logits - top).exp().scatter(1, place, 0.0).sum(dim=1)
    return odds / (1 + odds)


@_also_arrays
def max_logit(logits: Tensor) -> Tensor:
    """(items,) minus the largest logit (Hendrycks et al. 2022)."""
    return -logits.amax(dim=1)


@_also_arrays
def entropy(logits: Tensor) -> Tensor:
    """(items,) -sum_k q_k ln q_k of the softmax, nats."""
    log_q = logits.log_softmax(dim=1)
    return -(log_q.exp() * log_q).sum(dim=1)


@_also_arrays
def energy(logits: Tensor) -> Tensor:
    """(items,) -ln sum_k exp(logit_k), the energy at temperature 1 (Liu et al. 2020)."""
    return -logits.logsumexp(dim=1)


@_also_arrays
def disagreement(logits: Tensor) -> Tensor:
    """(items,) H(mean over seeds of q) - mean over seeds of H(q), nats: how much an ensemble of seeds disagrees.

    The mutual information of class and seed (Houlsby et al. 2011; of ensembles, Lakshminarayanan et al. 2017). It is 0
    where all seeds say the same, however unsure they are, and at most ln of the number of seeds.

    Args:
        logits: (seeds, items, classes).
    """
    if logits.ndim != 3 or len(logits) < 2:
        raise InputError(
            f"disagreement: logits have shape {tuple(logits.shape)}; give (seeds, items, classes), of two seeds or more"
        )
    log_q = logits.log_softmax(dim=2)
    log_mean = log_q.logsumexp(dim=0) - float(np.log(len(logits)))
    # As a mean divergence from the mean, which rounding cannot make negative by more than a bit.
    return (log_q.exp() * (log_q - log_mean)).sum(dim=2).mean(dim=0).clamp(min=0)


def odin(
    model: nn.Module, inputs: Tensor | SparseRows, *, temperature: float = 1000.0, epsilon: float = 0.0014
) -> Tensor:
    """(items,) 1 - maximum softmax probability of logits / T, after a step that raises it (Liang et al. 2018).

    The step moves each input by epsilon along the sign of the gradient of ln max_k softmax(logits / T)_k;
    in-distribution items gain more from it.

    Args:
        model: any network that gives one logit per class.
        inputs: (items, ...) as the model takes them.
        temperature: T.
        epsilon: length of the step in every input dimension, in units of the inputs; 0 for none.
    """
    values, device = [], device_of(model)
    with in_evaluation_mode(model), same_bits():
        for rows in torch.split(all_rows(inputs), GRADIENT_BATCH):
            # A copy: the caller's inputs stay without a gradient.
            x = inputs[rows].to(device).detach().clone()
            if epsilon:
                with torch.enable_grad():
                    x.requires_grad_()
                    sure = (model(x) / temperature).log_softmax(dim=1).amax(dim=1).sum()
                    (slope,) = torch.autograd.grad(sure, x)
                x = x.detach() + epsilon * slope.sign()
            with torch.no_grad():
                values.append(msp(model(x).double() / temperature))
    return torch.cat(values)


def _comparable(name: str, features: Tensor, training: Tensor) -> tuple[Tensor, Tensor]:
    """Training features and those of items, as float64; refused where they cannot be compared."""
    if not len(training) or features.shape[1:] != training.shape[1:]:
        raise InputError(
            f"{name}: features of shape {tuple(features.shape)} and training features of {tuple(training.shape)}; give "
            "as many numbers for each, and one training item or more"
        )
    return training.double(), features.double()


@_also_arrays
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
    training, features = _comparable("mahalanobis", features, training)
    if len(labels) != len(training):
        raise InputError(
            f"mahalanobis: {len(labels):,} labels for {len(training):,} training items; give one label for each"
        )
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
    return torch.cdist(away, centres, compute_mode="donot_use_mm_for_euclid_dist").amin(dim=1).square()


@_also_arrays
def knn(features: Tensor, training: Tensor, *, k: int = 50) -> Tensor:
    """(items,) distance to the k-th nearest training item, features scaled to length 1 (Sun et al. 2022).

    Args:
        features: (items, width).
        training: (training items, width) features.
        k: which neighbour; 1 is the nearest.
    """
    training, features = _comparable("knn", features, training)
    if k != int(k) or not 1 <= k <= len(training):
        raise InputError(
            f"knn: k is {k}; give a whole number from 1 to {len(training):,}, the number of training items"
        )
    here, there = (nn.functional.normalize(values, dim=1) for values in (features, training))
    # |x - y|^2 - |x|^2 in one product; of what is left, the square of x moves no neighbour before another.
    square = there.square().sum(dim=1)
    kth = [
        torch.addmm(square, part, there.T, alpha=-2).topk(int(k), dim=1, largest=False).values[:, -1]
        for part in torch.split(here, max(1, DISTANCES // len(there)))
    ]
    return (torch.cat(kth) + here.square().sum(dim=1)).clamp(min=0).sqrt()


@_also_arrays
def vim(features: Tensor, training: Tensor, last_layer: Tensor) -> Tensor:
    """(items,) alpha |R'(z - o)| - ln sum_k exp(logit_k), the virtual logit against the others (Wang et al. 2022).

    R spans the directions in which training features vary least around the origin o, where all logits are 0 in the
    least-squares sense: all but the first 1,000 of 2,048 dimensions or more, 512 of 768 or more, else half of them.
    Alpha makes the virtual logit of training items as large, in the mean, as their largest logit.

    Args:
        features: (items, width) that enter the last layer.
        training: (training items, width) features.
        last_layer: (classes, width + 1) its weights, the bias in the last column.
    """
    training, features = _comparable("vim", features, training)
    weight, bias = last_layer[:, :-1].double(), last_layer[:, -1].double()
    origin, width = -torch.linalg.pinv(weight) @ bias, features.shape[1]
    centred = training - origin
    varied = 1000 if width >= 2048 else 512 if width >= 768 else width // 2
    least = torch.linalg.eigh(centred.T @ centred).eigenvectors[:, : width - varied]
    largest = (training @ weight.T + bias).amax(dim=1).mean()
    alpha = largest / (centred @ least).norm(dim=1).mean().clamp_min(1e-12)
    virtual: Tensor = alpha * ((features - origin) @ least).norm(dim=1)
    return virtual - (features @ weight.T + bias).logsumexp(dim=1)


@_also_arrays
def react(features: Tensor, training: Tensor, last_layer: Tensor) -> Tensor:
    """(items,) the energy of logits from features cut at the 90th percentile of training features (Sun et al. 2021).

    Arguments as for `vim`.
    """
    training, features = _comparable("react", features, training)
    most = float(np.quantile(training.cpu().numpy(), 0.9))
    return -(features.clamp(max=most) @ last_layer[:, :-1].double().T + last_layer[:, -1].double()).logsumexp(dim=1)


SCORES: Final[dict[str, OodScore]] = {
    "msp": OodScore("1 - maximum softmax probability", "Hendrycks & Gimpel 2017", ("logits",), msp),
    "max-logit": OodScore("minus the largest logit", "Hendrycks et al. 2022", ("logits",), max_logit),
    "entropy": OodScore("entropy of the softmax, nats", "Shannon entropy", ("logits",), entropy),
    "energy": OodScore("energy, -ln sum exp logits", "Liu et al. 2020", ("logits",), energy),
    "odin": OodScore(
        "1 - maximum softmax probability at temperature T, after a step of epsilon that raises it",
        "Liang et al. 2018",
        ("gradients",),
        lambda network, **settings: odin(*network, **settings),
        ("temperature", "epsilon"),
    ),
    "mahalanobis": OodScore(
        "squared Mahalanobis distance to the nearest class mean of features",
        "Lee et al. 2018 (last layer, no input step)",
        ("features", "training features", "training labels"),
        mahalanobis,
    ),
    "knn": OodScore(
        "distance to the k-th nearest training item, features scaled to length 1",
        "Sun et al. 2022",
        ("features", "training features"),
        knn,
        ("k",),
    ),
    "vim": OodScore(
        "virtual logit of what training features do not span, less the energy of the others",
        "Wang et al. 2022",
        ("features", "training features", "last layer"),
        vim,
    ),
    "react": OodScore(
        "energy of logits from features cut at the 90th percentile of training features",
        "Sun et al. 2021",
        ("features", "training features", "last layer"),
        react,
    ),
    "disagreement": OodScore(
        "disagreement of an ensemble of seeds: mutual information of class and seed, nats",
        "Houlsby et al. 2011; Lakshminarayanan et al. 2017",
        ("seeds",),
        disagreement,
    ),
}
"""The scores by name; each is larger for items that look more out-of-distribution."""

OF_ONE_MODEL: Final = tuple(name for name, score in SCORES.items() if "seeds" not in score.needs)
"""The scores that need no second seed."""


def ood_scores(
    model: nn.Module,
    sets: Mapping[str, Tensor],
    *,
    scores: Sequence[str] = OF_ONE_MODEL,
    training: Tensor | None = None,
    labels: Tensor | None = None,
    temperature: float = 1000.0,
    epsilon: float = 0.0014,
    k: int = 50,
    layer: str | None = None,
) -> dict[str, dict[str, Floats]]:
    """By set and by score, (items,) the score of each item; larger looks more out-of-distribution to the model.

    Args:
        model: any network that gives one logit per class; scored in evaluation mode and full precision.
        sets: by name, (items, ...) inputs as the model takes them.
        scores: names in `SCORES`, of one model.
        training: (training items, ...) inputs, for scores that compare with training items.
        labels: (training items,) class indices, likewise.
        temperature: of ODIN.
        epsilon: of ODIN, in units of the inputs.
        k: of kNN.
        layer: where features are taken (see `model_outputs`).
    """
    known = known_to(model, sets, scores=scores, training=training, labels=labels, layer=layer)
    settings = {"temperature": temperature, "epsilon": epsilon, "k": k}
    return {name: scored(of_set, scores, **settings) for name, of_set in known.items()}


def known_to(
    model: nn.Module,
    sets: Mapping[str, Features],
    *,
    scores: Sequence[str],
    training: Features | None,
    labels: Tensor | None,
    layer: str | None,
) -> dict[str, dict[Need, Any]]:
    """By set, what a model makes of its items, as far as the scores need it; see `ood_scores`."""
    needs = {need for name in scores for need in known_score(name).needs}
    kept = None
    if training is not None and "training features" in needs:
        kept = model_outputs(model, training, layer=layer).features
    known: dict[str, dict[Need, Any]] = {}
    for name, inputs in sets.items():
        logits, features, last_layer = model_outputs(model, inputs, features="features" in needs, layer=layer)
        known[name] = {
            "gradients": None if isinstance(inputs, Tokens) else (model, inputs),
            "logits": logits,
            "features": features,
            "training features": kept,
            "training labels": None if labels is None else labels.to(logits.device),
            "last layer": last_layer,
        }
    return known


def scored(known: Mapping[Need, Any], scores: Sequence[str], **settings: Any) -> dict[str, Floats]:
    """By score, (items,) values; a score that needs what is not known, or None, is refused.

    `settings` are `temperature` and `epsilon` of ODIN, and `k` of kNN.
    """
    values = {}
    for name in scores:
        score = known_score(name)
        lacking = next((need for need in score.needs if known.get(need) is None), None)
        if lacking is not None:
            raise InputError(f"{name} needs {lacking}; {REMEDIES[lacking]}, or choose another score")
        own = {key: settings[key] for key in score.settings}
        values[name] = np.asarray(score.per_item(*(known[need] for need in score.needs), **own).double().cpu().numpy())
    return values


def title_of(name: str) -> str:
    """What a score is, in words; its name where it is from elsewhere."""
    return SCORES[name].title if name in SCORES else name


def known_score(name: str) -> OodScore:
    """The score of that name; an unknown name is refused with the list of known ones."""
    if name not in SCORES:
        raise InputError(f"'{name}' is not one of the scores that there are{choices(name, SCORES)}")
    return SCORES[name]
