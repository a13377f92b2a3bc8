"""`bundle.json`: what a model is made of, as plain values.

BUNDLE/bundle.json            this recipe
       weights-SEED.safetensors   the weights and buffers of each member
       trained-on.npy         fingerprints of the items that trained the model or chose it
       encoder.npz            what the encoder learnt from the training items, where it learnt anything
       encoder/               a pretrained encoder: its network and tokeniser
       network/               configuration and tokeniser of a Hugging Face network that knows people
       code/                  the source of a network or encoder of the user's own, never run unless that is asked for
       model.onnx             the whole model as one graph, where it was asked for
       README.md              the model card
       SHA256SUMS             of all parts

A Hugging Face network that was fine-tuned has no `weights-SEED.safetensors`: the bundle itself is a folder that
`from_pretrained` reads, or where it has several members, each `seed-SEED/` in it is.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError, meant_path
from dissensus.items.pictures import ImageReading
from dissensus_train.bundles.parts import check_parts

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT: Final = 3
"""Counts up when an older dissensus could not read what a newer one writes; format 2 lacked `together`."""

FILE: Final = "bundle.json"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a model is made of, where it learnt, and how well it did.

    Attributes:
        format: of the folder.
        name: of the system, and of the study that it is from.
        classes: names, in the order of the predicted probabilities.
        ordered: whether they are a scale, lowest first.
        network: the name or path of the network.
        own_code: whether the network or the encoder is code of the user's own, which lies in `code/`.
        shape: of one item's features.
        members: seed of each member; a model of several predicts the mean of their probabilities.
        reads: what is predicted for: texts, pairs or triples of texts, images, or features.
        encoder: its name; None where the network reads features or items themselves.
        normalisation: mean and standard deviation that features are moved and scaled by.
        precision: float32, or bf16 where autocast allows it.
        learnt: target, delivery and its options, training settings.
        scores: by metric, value and interval of this very model on held-out items, and its worth in people.
        fingerprints: of the items, the votes, each run, and the weights of a pretrained encoder.
        versions: of what trained it and wrote this.
        licence: of the model, as its author states it, and of the data, where these are a known set; each may be "".
        answers: how held-out people answered beside what the model forecast: by class the mean difference, and the
            variance and degrees of freedom of its parts (`drift.answers_of`); None where votes are not known.
        people: where the network knows people, how (`kind`, `by`), who they are (`units`, their names), how many
            training judgements each has (`heard`), and the `layer` that their deviations enter; None where it knows
            nobody.
        together: what was learnt from votes on items that did not train it, for use beside people: the `split` and
            number of `items`, and by use what it needs (`beside.beside_people`); None where there were no such votes.
    """

    format: int = FORMAT
    name: Mapping[str, str]
    classes: tuple[str, ...]
    ordered: bool
    network: str
    own_code: bool
    shape: tuple[int, ...]
    members: tuple[int, ...]
    reads: str
    encoder: str | None
    normalisation: tuple[float, float]
    precision: str
    learnt: Mapping[str, Any]
    scores: Mapping[str, Any]
    fingerprints: Mapping[str, Any]
    versions: Mapping[str, str]
    licence: Mapping[str, str]
    answers: Mapping[str, Any] | None
    people: Mapping[str, Any] | None
    together: Mapping[str, Any] | None

    @property
    def reading(self) -> ImageReading:
        """How image files become bytes, as those that it was trained on did."""
        given = self.learnt.get("images", {}).get("reading", {})
        ranges: Any = {name: tuple(given[name]) for name in ("whole", "floats") if given.get(name)}
        return ImageReading(given.get("background", "white"), **ranges)

    @property
    def hugging_face(self) -> bool:
        """Whether each member is a folder that `from_pretrained` reads."""
        return self.network.startswith("hf:") and self.people is None

    def weights_of(self, seed: int) -> Path:
        """The file of a member's weights, from the bundle."""
        if self.hugging_face:
            return Path("model.safetensors" if len(self.members) == 1 else f"seed-{seed}/model.safetensors")
        return Path(f"weights-{seed}.safetensors")


def write_recipe(recipe: Recipe, folder: Path) -> None:
    """Write `bundle.json` into a folder."""
    (folder / FILE).write_text(json.dumps(asdict(recipe), indent=1), encoding="utf-8")


def read_recipe(folder: Path) -> Recipe:
    """The recipe of a bundle; one that is damaged, or of an unknown format, is refused."""
    path = folder / FILE
    if not path.is_file():
        why = "there is no such folder" if not folder.exists() else f"it holds no {FILE}"
        raise InputError(
            f"{folder}: this is no bundle ({why}){meant_path(folder) if not folder.exists() else ''}; give a folder "
            "that `dissensus study export` wrote"
        )
    check_parts(folder)
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: the recipe cannot be read ({error}); export the model again") from error
    if not isinstance(given, dict) or given.get("format") not in (2, FORMAT):
        other = given.get("format") if isinstance(given, dict) else None
        raise InputError(
            f"{path}: the bundle has format {other!r}, and this dissensus reads format {FORMAT}; update dissensus, or "
            "export the model again"
        )
    given = {"together": None, **given} if given["format"] == 2 else given
    if wrong := sorted({field.name for field in fields(Recipe)}.symmetric_difference(given)):
        raise InputError(f"{path}: '{wrong[0]}' is missing or unknown; export the model again")
    lists = {name: tuple(given[name]) for name in ("classes", "shape", "members", "normalisation")}
    return Recipe(**{**given, **lists})
