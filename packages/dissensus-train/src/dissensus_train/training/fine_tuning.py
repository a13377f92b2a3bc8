"""Whole pretrained networks, trained on: Hugging Face's on texts, timm's on images.

They make their inputs from the items themselves (`prepare`), once per run, and are trained by the loop engine.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from dissensus.errors import InputError
from dissensus_train.encoders.pretrained import (
    TOKENS,
    folder_fingerprint,
    hf_folder,
    loading,
    timm_folder,
    timm_network,
)
from dissensus_train.training.inputs import TokenBatch, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dissensus.items.shown import Items

HF: Final = "hf:"
TIMM: Final = "timm:"


def is_pretrained(name: str) -> bool:
    """Whether a model's name is that of a pretrained network."""
    return name.startswith((HF, TIMM))


class TextNetwork(nn.Module):
    """A Hugging Face network with one logit for each class, over texts or pairs of texts, and its tokeniser."""

    def __init__(self, network: Any, tokeniser: Any) -> None:
        super().__init__()
        self.network, self.tokeniser = network, tokeniser

    @property
    def longest(self) -> int:
        """How many tokens of a text are read."""
        positions = getattr(self.network.config, "max_position_embeddings", None) or TOKENS
        return int(min(TOKENS, positions, self.tokeniser.model_max_length))

    def prepare(self, items: Items) -> Tokens:
        """The tokens of all texts; what is longer than the network reads, or than `TOKENS`, is cut."""
        if not items.texts:
            raise InputError("a Hugging Face network reads texts, and the items are images; give timm:NAME for images")
        if len(items.texts) > 2:
            raise InputError("a Hugging Face network reads texts or pairs, and here are three columns; give two")
        columns = [[str(text) for text in column.tolist()] for column in items.texts]
        made = self.tokeniser(*columns, truncation=True, max_length=self.longest, padding=False)
        padding = self.tokeniser.pad_token_id
        return Tokens.of(made["input_ids"], made.get("token_type_ids"), padding=0 if padding is None else padding)

    def forward(self, batch: TokenBatch) -> Tensor:
        """(texts, classes) logits.

        Where texts are mixed, their token embeddings are, place by place (wordMixup of Guo, Mao and Zhang 2019); a
        place counts where either has a token.
        """
        kinds = {} if batch.types is None else {"token_type_ids": batch.types}
        if batch.partner is None or batch.weight is None:
            out = self.network(input_ids=batch.ids, attention_mask=batch.mask, **kinds)
        else:
            embed = self.network.get_input_embeddings()
            weight, partner = batch.weight[:, None, None], batch.partner
            mixed = weight * embed(batch.ids) * batch.mask[..., None]
            mixed = mixed + (1 - weight) * embed(partner.ids) * partner.mask[..., None]
            out = self.network(inputs_embeds=mixed, attention_mask=batch.mask | partner.mask, **kinds)
        logits: Tensor = out.logits
        return logits


class ImageNetwork(nn.Module):
    """A timm network with one logit for each class, over images brought to the square, in pixels, it was trained on."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, network: nn.Module, wanted: dict[str, Any]) -> None:
        super().__init__()
        self.network = network
        self.channels, self.side = int(wanted["input_size"][0]), int(wanted["input_size"][1])
        for name, part in (("mean", "mean"), ("deviation", "std")):
            self.register_buffer(name, torch.tensor(wanted[part])[:, None, None], persistent=False)

    def prepare(self, items: Items) -> Tensor:
        """(items, channels, side, side) bytes."""
        if items.texts:
            raise InputError("a timm network reads images, and the items are texts; give hf:NAME for texts")
        return torch.from_numpy(items.images(np.arange(len(items)), channels=self.channels, side=self.side))

    def forward(self, pixels: Tensor) -> Tensor:
        """(images, classes) logits; channels are scaled by the mean and deviation that timm states."""
        logits: Tensor = self.network((pixels.float() / 255 - self.mean) / self.deviation)
        return logits


def pretrained(name: str, *, classes: int, folder: Path, weights: bool = True) -> nn.Module:
    """The network of a name `hf:NAME`, `hf:FOLDER` or `timm:NAME`; a new last layer draws from the global generator.

    Without `weights` only the architecture is made, for weights that come from elsewhere.
    """
    with loading(
        f"model {name}: it cannot be loaded",
        "give a folder that save_pretrained wrote, with its tokeniser, or a name of the hub on a machine that reaches "
        "it",
    ):
        if name.startswith(HF):
            return _text_network(hf_folder(name.removeprefix(HF), beside=folder), classes=classes, weights=weights)
        called = name.removeprefix(TIMM)
        local = timm_folder(called, beside=folder)
        return ImageNetwork(*timm_network(called, local, classes=classes, weights=weights))


def pretrained_source(name: str, folder: Path) -> str:
    """A fingerprint of a pretrained network: of its files where it lies in a folder, else of its name."""
    if name.startswith(HF):
        return _of_files(hf_folder(name.removeprefix(HF), beside=folder))
    local = timm_folder(name.removeprefix(TIMM), beside=folder)
    return "" if local is None else _of_files(local)


def _of_files(folder: Path) -> str:
    states = [(path, path.stat()) for path in sorted(folder.rglob("*")) if path.is_file()]
    return _hashed_once(folder, tuple((str(path), state.st_size, state.st_mtime_ns) for path, state in states))


@lru_cache(maxsize=8)
def _hashed_once(folder: Path, states: tuple[tuple[str, int, int], ...]) -> str:
    """The fingerprint of a folder, which every run of a study asks for; read again where a file's state changed."""
    return folder_fingerprint(folder)


def keep_architecture(model: nn.Module, folder: Path, *, classes: Sequence[str]) -> None:
    """Write what `pretrained(..., weights=False)` needs to make a text network again: configuration and tokeniser.

    With its weights beside them as model.safetensors, `AutoModelForSequenceClassification` reads the folder, with the
    names of the classes; its tokeniser cuts texts where we do.
    """
    if not isinstance(model, TextNetwork):
        raise InputError("only the architecture of a Hugging Face network is kept in a folder")
    config = model.network.config
    config.architectures, config.id2label = [type(model.network).__name__], dict(enumerate(classes))
    config.label2id = {name: number for number, name in enumerate(classes)}
    config.save_pretrained(folder)
    model.tokeniser.model_max_length = model.longest
    model.tokeniser.save_pretrained(folder)


def _text_network(folder: Path, *, classes: int, weights: bool) -> TextNetwork:
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    made: Any = AutoModelForSequenceClassification
    with _quiet():
        tokeniser = AutoTokenizer.from_pretrained(folder)
        config = AutoConfig.from_pretrained(folder, num_labels=classes)
        if config.pad_token_id is None:
            # Decoders look for the last token that is not padding.
            own = tokeniser.pad_token_id
            config.pad_token_id = own if own is not None else tokeniser.eos_token_id
        if not weights:
            return TextNetwork(made.from_config(config, dtype=torch.float32), tokeniser)
        of_folder: dict[str, Any] = {"config": config, "ignore_mismatched_sizes": True}
        return TextNetwork(made.from_pretrained(folder, dtype=torch.float32, **of_folder), tokeniser)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without a bar, and a warning that the last layer is new, for every run of a study."""
    from transformers.utils import logging

    level, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bar:
            logging.enable_progress_bar()
