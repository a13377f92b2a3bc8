"""The ways out of a bundle: an ONNX graph, and a scikit-learn pipeline. A fine-tuned bundle is Hugging Face's already.

The graph gives (items, classes) `probabilities`: the mean over members, of features normalised as in training. It is
fed what comes before any network: token ids of a text network or a pretrained text encoder, bytes of images for a timm
network, else features as `TrainedModel.features` makes them.
"""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from dissensus.errors import InputError
from dissensus.items import Items
from dissensus.parts import installed
from dissensus_train.bundles.loading import ENCODER, TrainedModel
from dissensus_train.encoders.pretrained import embedded, text_network, tokens_of
from dissensus_train.training.annotator_side import PeopleNetwork
from dissensus_train.training.inputs import TokenBatch, prepared

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.arrays import Features

ONNX: Final = "model.onnx"

NEAR: Final = 1e-4
"""How far a probability of the graph may be from ours."""

MOST_TRIED: Final = 64
"""Held-out items that a graph is tried on."""


class _Whole(nn.Module):
    """A bundle as one function of tensors."""

    def __init__(self, model: TrainedModel, encoder: nn.Module | None) -> None:
        super().__init__()
        self.members, self.encoder = nn.ModuleList(model.networks), encoder
        self.normalisation, self.tokens = model.recipe.normalisation, hasattr(model.networks[0], "tokeniser")

    def forward(self, *given: Tensor) -> Tensor:
        x: Any = given[0]
        if self.encoder is not None:
            pairs = zip(given[::2], given[1::2], strict=True)
            x = torch.cat([embedded(self.encoder, ids, mask) for ids, mask in pairs], dim=1)
        elif self.tokens:
            x = TokenBatch(given[0], given[1], given[2] if len(given) > 2 else None)
        if self.normalisation != (0.0, 1.0):
            x = (x - self.normalisation[0]) / self.normalisation[1]
        return torch.stack([member(x).softmax(dim=1) for member in self.members]).mean(dim=0)


def write_onnx(model: TrainedModel, folder: Path, items: Items | Features) -> float:
    """Write a bundle's model into its folder as an ONNX graph, tried on items.

    Returns:
        The largest difference between a probability of the graph and ours; more than `NEAR` is refused.
    """
    for package in ("onnx", "onnxscript", "onnxruntime"):
        installed(package, "onnx", wanted_by="--onnx")
    import onnxruntime

    if any(isinstance(network, PeopleNetwork) for network in model.networks):
        raise InputError("onnx: the model knows people, and a graph would answer for the panel alone; export another")
    whole, fed = _whole(model, folder, items)
    free = {name: {0: torch.export.Dim.DYNAMIC} for name in fed}
    for name in fed:
        if "ids" in name or "mask" in name:
            free[name][1] = torch.export.Dim.DYNAMIC
    # The exporter tells of packages that it does without, and warns of its own insides.
    logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                whole,
                tuple(fed.values()),
                folder / ONNX,
                input_names=list(fed),
                output_names=["probabilities"],
                dynamic_shapes=(tuple(free.values()),),
                external_data=False,
                dynamo=True,
                verbose=False,
            )
        session = onnxruntime.InferenceSession(folder / ONNX)
        (said,) = session.run(None, {name: value.numpy() for name, value in fed.items()})
    except Exception as error:
        # Exporters raise what the network makes them raise.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"onnx: the network cannot be written as a graph ({reason}); export it without") from error
    apart = float(np.abs(said - model.predict_proba(items, device="cpu")).max())
    if not apart <= NEAR:
        raise InputError(f"onnx: the graph's answers are {apart:.2g} from the model's; export it without the graph")
    return apart


def _whole(model: TrainedModel, folder: Path, items: Items | Features) -> tuple[_Whole, dict[str, Tensor]]:
    """The function, on the CPU, and what it is fed of items, by name."""
    first, cpu, encoder = model.networks[0], torch.device("cpu"), None
    if (folder / ENCODER / "tokenizer_config.json").is_file() and isinstance(items, Items):
        tokeniser, encoder = text_network(folder / ENCODER, str(model.recipe.encoder))
        fed: dict[str, Tensor] = {}
        for number, column in enumerate(items.texts):
            tokens, after = tokens_of(tokeniser, column), "" if not number else f"_{number + 1}"
            fed |= {f"{name}{after}": tokens[name] for name in ("input_ids", "attention_mask")}
    elif hasattr(first, "prepare"):
        batch = prepared(first, items, cpu)[torch.arange(len(items))]
        if isinstance(batch, TokenBatch):
            fed = {"input_ids": batch.ids, "attention_mask": batch.mask.long()}
            fed |= {} if batch.types is None else {"token_type_ids": batch.types}
        else:
            fed = {"pixels" if model.recipe.reads == "images" else "inputs": batch}
    else:
        features: Any = model.features(items)
        fed = {"features": torch.from_numpy(features if isinstance(features, np.ndarray) else features.toarray())}
    return _Whole(model, encoder).to(cpu).eval(), fed


def as_pipeline(model: TrainedModel) -> Any:
    """The model as a fitted scikit-learn pipeline that says the same: what it reads, and logistic regression.

    TF-IDF becomes a `TfidfVectorizer`, normalisation a `StandardScaler`, each member a `LogisticRegression`, several of
    them a `VotingClassifier` of their probabilities. Another encoder is the first step as a function of this package.
    """
    installed("sklearn", "sklearn", wanted_by="a scikit-learn pipeline")
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    members = [_regression(model, network) for network in model.networks]
    steps: list[tuple[str, Any]] = []
    if model.encoder is not None and model.encoder.name == "tfidf" and model.recipe.reads == "texts":
        words = model.encoder.state["words"].tobytes().decode("utf-8", "surrogatepass").split("\n")
        vectorizer = TfidfVectorizer(vocabulary={word: place for place, word in enumerate(words)}, dtype=np.float32)
        vectorizer.idf_ = model.encoder.state["weights"]
        steps.append(("tfidf", vectorizer))
    elif model.encoder is not None:
        steps.append(("encoder", FunctionTransformer(model.features)))
    mean, deviation = model.recipe.normalisation
    if len(model.recipe.shape) > 1:
        steps.append(("flat", FunctionTransformer(_flat)))
    if (mean, deviation) != (0.0, 1.0):
        width = int(np.prod(model.recipe.shape))
        scaler = StandardScaler()
        scaler.mean_, scaler.scale_ = np.full(width, mean), np.full(width, deviation)
        scaler.var_, scaler.n_features_in_ = scaler.scale_**2, width
        steps.append(("scaler", scaler))
    return Pipeline([*steps, ("classifier", members[0] if len(members) == 1 else _together(members))])


def _flat(features: Any) -> Any:
    return np.asarray(features).reshape(len(features), -1)


def _regression(model: TrainedModel, network: nn.Module) -> Any:
    """A linear network as a fitted `LogisticRegression`; of two classes scikit-learn keeps the difference."""
    from sklearn.linear_model import LogisticRegression

    layers = [part for part in network.modules() if not isinstance(part, nn.Sequential | nn.Flatten)]
    if len(layers) != 1 or not isinstance(layers[0], nn.Linear):
        raise InputError(
            f"scikit-learn: the network {model.recipe.network} is not linear; only linear ones are logistic regressions"
        )
    weight = layers[0].weight.detach().cpu().double().numpy()
    bias = np.zeros(len(weight)) if layers[0].bias is None else layers[0].bias.detach().cpu().double().numpy()
    made = LogisticRegression()
    made.classes_, made.n_features_in_ = np.array(model.classes), weight.shape[1]
    two = len(weight) == 2
    made.coef_, made.intercept_ = (weight[1:] - weight[:1], bias[1:] - bias[:1]) if two else (weight, bias)
    return made


def _together(members: list[Any]) -> Any:
    from sklearn.ensemble import VotingClassifier
    from sklearn.preprocessing import LabelEncoder

    made = VotingClassifier([(str(number), member) for number, member in enumerate(members)], voting="soft")
    made.estimators_, made.classes_, made.le_ = members, members[0].classes_, LabelEncoder()
    made.le_.classes_ = made.classes_
    return made
