"""From a bundle back to a model that predicts."""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.sparse as sp
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from dissensus.array_file import read_npy, read_npz
from dissensus.errors import InputError
from dissensus.items import Items
from dissensus.items.pictures import as_bytes, read_picture
from dissensus.progress import Progress, silent
from dissensus.together.deferral import gains_of_votes
from dissensus.together.sets import ROUNDING, mass_before, sets_within
from dissensus_train.bundles.beside import combination_of
from dissensus_train.bundles.recipe import Recipe, read_recipe
from dissensus_train.encoders.encoding import Encoder, encoded, restore_encoder
from dissensus_train.encoders.pretrained import pretrained_encoder
from dissensus_train.training.annotator_side import People, PeopleNetwork, mixed
from dissensus_train.training.data import moved_and_scaled
from dissensus_train.training.engine import settled_device
from dissensus_train.training.inputs import feature_table, prepared
from dissensus_train.training.loop import log_probabilities
from dissensus_train.training.models import build
from dissensus_train.training.settings import Training

if TYPE_CHECKING:
    from torch import nn

    from dissensus.arrays import Features, Floats, Ints, Mask, Table
    from dissensus.items.pictures import Images
    from dissensus.together.combining import Combination
    from dissensus.together.sets import Sets

CODE: Final = "code"
ENCODER: Final = "encoder"
NETWORK: Final = "network"
STATE: Final = "encoder.npz"
TRAINED_ON: Final = "trained-on.npy"
BESIDE: Final = "beside-people.npz"
COLUMNS: Final = ("texts", "pairs", "triples")
"""What a model reads of one, two or three columns of texts."""


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model from a bundle: a network per member, in evaluation mode, on the device that it predicted on last.

    The encoder makes features of items; None where the networks read features, or items themselves. `known` are sorted
    fingerprints of the items that trained or chose it. `combination` brings its predictions and people's votes
    together; None where held-out votes were too few to learn that from.
    """

    recipe: Recipe
    networks: tuple[nn.Module, ...]
    encoder: Encoder | None
    known: Ints
    combination: Combination | None = None

    @property
    def classes(self) -> tuple[str, ...]:
        """In the order of the columns of what is predicted."""
        return self.recipe.classes

    def __repr__(self) -> str:
        members = f", {len(self.networks)} members" if len(self.networks) > 1 else ""
        name = self.recipe.name
        return f"TrainedModel({name['system']} of {name['study']}, {len(self.classes)} classes{members})"

    def predict_proba(
        self, items: Any, *, annotator: str | None = None, device: str = "auto", progress: Progress = silent
    ) -> Table:
        """(items, classes) probabilities, columns in the order of `classes`.

        Args:
            items: texts; or pairs, as two lists of texts, or triples, as three; or features as the study had them; or
                `Items`. Images are a list of files, or an array or a list of arrays: uint8 is pixels from 0 to 255,
                floats are the features of the study. These are pixels from 0 to 1, unless its encoder was another.
            annotator: the name of a person, or of a group, whose answers are asked for where the model knows people;
                without it, the whole panel's.
            device: auto, cpu or cuda.
            progress: called as items are encoded.
        """
        place = torch.device(settled_device(device))
        raw = self._inputs(items, progress)
        count = len(raw) if isinstance(raw, Items) else int(raw.shape[0])
        if not count:
            return np.zeros((0, len(self.classes)))
        settings = Training(precision=self.recipe.precision)  # type: ignore[arg-type]
        unit = None if annotator is None else self._unit(annotator)
        total: Any = 0.0
        for network in self.networks:
            network.to(place)
            table = prepared(network, raw, place) if isinstance(raw, Items) else feature_table(raw, place)
            rows = torch.arange(count, device=place)
            said = log_probabilities(network, table, rows, settings).exp().double().cpu().numpy()
            if unit is not None and self.recipe.people is not None:
                who = torch.full_like(rows, unit)
                own = log_probabilities(network, table, rows, settings, who=who).exp().double().cpu().numpy()
                said = mixed(own, said, np.full(len(own), self.recipe.people["heard"][unit]))
            total = total + said
        return np.asarray(total / len(self.networks), dtype=np.float64)

    def prediction_sets(self, probabilities: Table, *, level: float) -> Sets:
        """(items, classes) sets of what it predicts that hold a random person's answer with this probability or more.

        The threshold is that of the next level that the bundle has one for (`dissensus.together.sets`).
        """
        known = self.beside_people("sets")
        place = int(np.searchsorted(known["levels"], level - ROUNDING))
        if not 0 < level <= known["levels"][-1]:
            raise InputError(f"predict: sets={level:g} is no level of the bundle; give one up to {known['levels'][-1]}")
        limit = known["thresholds"][place]
        before = mass_before(probabilities, ordered=self.recipe.ordered)
        return sets_within(before, np.inf if limit is None else limit, ordered=self.recipe.ordered)

    def votes_to_ask(self, probabilities: Table, *, share: float) -> tuple[Floats, Ints]:
        """(items,) what a first vote would add to what it predicts, in nats, and (items,) the votes to ask for.

        Of items like those that it was exported with, so large a share (rounded up to a hundredth) gets any
        (`dissensus.together.deferral`).
        """
        known = self.beside_people("defer")
        if not 0 < share <= 1:
            raise InputError(f"predict: defer={share:g} is no share of the items; give one up to 1, such as 0.1")
        assert self.combination is not None
        gains = gains_of_votes(self.combination, [probabilities[None]])
        price = known["thresholds"][int(np.searchsorted(known["shares"], share - ROUNDING))]
        return gains[:, 0], (gains >= price).sum(axis=1)

    def beside_people(self, use: str) -> Mapping[str, Any]:
        """What the bundle learnt from held-out votes for a use; refused where it learnt nothing."""
        known: Mapping[str, Mapping[str, Any]] = self.recipe.together or {}
        if use not in known:
            raise InputError(
                f"predict: the bundle has no {use}: it is of an older dissensus, or its study held out no items with "
                "votes; export the model again, from a study with a validation or test split"
            )
        return known[use]

    def trained_on(self, items: Any) -> Mask:
        """(items,) whether each item, recognised by what it shows, was used to train or choose the model.

        Scores on such items do not tell how it does on new ones.
        """
        as_given = isinstance(items, Items) or self.recipe.reads == "features"
        return np.isin(fingerprints(items if as_given else as_items(items, self.recipe)), self.known)

    def _unit(self, annotator: str) -> int:
        """The place of a person or group among those the networks know."""
        if self.recipe.people is None:
            raise InputError(
                f"predict: the model knows nobody, and so not '{annotator}'; leave the annotator out, or export a run "
                "of a model with people"
            )
        units = list(self.recipe.people["units"])
        if annotator not in units:
            near = ", ".join(units[:5])
            raise InputError(
                f"predict: the model knows {len(units):,} people or groups ({near}{', ...' if len(units) > 5 else ''}),"
                f" and '{annotator}' is none of them; leave the annotator out for the whole panel's answers"
            )
        return units.index(annotator)

    def features(self, items: Any, *, progress: Progress = silent) -> Features:
        """(items, ...) what the encoder makes of items; features that are given are only looked at.

        Texts in which it finds no word that it learnt are told by a warning.
        """
        of_images = self.recipe.reads == "images" and not str(self.recipe.encoder).startswith("pixels")
        floats = isinstance(items, np.ndarray) and items.dtype.kind == "f"
        if self.encoder is None or self.recipe.reads == "features" or (of_images and floats):
            features: Features = items if sp.issparse(items) else np.asarray(items, dtype=np.float32)
        else:
            shown = self._shown(items)
            features = encoded(self.encoder, shown, progress=progress)
            dense = isinstance(features, np.ndarray)
            unknown = np.empty(0) if dense else np.flatnonzero(np.diff(features.indptr) == 0)
            if unknown.size:
                warnings.warn(
                    f"predict: {unknown.size:,} of {len(shown):,} texts hold no word that the model knows, item "
                    f"{shown.names[unknown[0]]} first; what it says of them is the same for all",
                    stacklevel=2,
                )
            if self.recipe.reads == "images" and features.shape[1] == 1 and self.recipe.shape[0] == 3:
                # Grey images of a model of coloured ones, whatever is beside them.
                features = np.repeat(features, 3, axis=1)
        if tuple(features.shape[1:]) != self.recipe.shape:
            raise InputError(
                f"predict: items of shape {tuple(features.shape[1:])}, and the model was trained on items of shape "
                f"{self.recipe.shape}; give features made as those of the study"
            )
        dense = isinstance(features, np.ndarray)
        wrong = np.flatnonzero(~np.isfinite(features if dense else features.data))
        if wrong.size:
            row = f" of item {wrong[0] // max(1, features[0].size)}" if dense else ""
            raise InputError(f"predict: the features{row} hold NaN or infinity; fill or remove them")
        return features

    def to_sklearn(self) -> Any:
        """The same model as a fitted scikit-learn pipeline, where its networks are linear; see `ways_out`."""
        from dissensus_train.bundles.ways_out import as_pipeline

        return as_pipeline(self)

    def _inputs(self, items: Any, progress: Progress) -> Items | Features:
        """The items themselves where the network reads them, else their features as the network wants them."""
        if self.encoder is None and self.recipe.reads != "features":
            return self._shown(items)
        return moved_and_scaled(self.features(items, progress=progress), self.recipe.normalisation)

    def _shown(self, items: Any) -> Items:
        shown = items if isinstance(items, Items) else as_items(items, self.recipe)
        given = COLUMNS[len(shown.texts) - 1] if shown.texts else "images"
        if given != self.recipe.reads:
            name = "; name the columns with text=" if shown.texts else ""
            raise InputError(f"predict: the model reads {self.recipe.reads}, and these are {given}{name}")
        for column in shown.texts:
            empty = np.flatnonzero(np.strings.str_len(np.strings.strip(column)) == 0)
            if empty.size:
                more = f", and {empty.size - 1:,} more" if empty.size > 1 else ""
                raise InputError(
                    f"predict: item {shown.names[empty[0]]} has an empty text{more}; remove it, or fill it"
                )
        return shown


def load_model(folder: str | Path, *, trust_code: bool = False) -> TrainedModel:
    """A model from a bundle. Nothing in the bundle is run, unless its network or encoder is the user's own code.

    Args:
        folder: that `dissensus study export` wrote.
        trust_code: whether code that lies in the bundle may be run; without it a bundle that needs its own code is
            refused.

    Examples:
        >>> import tempfile
        >>> from dissensus_train.bundles import export_bundle
        >>> from dissensus_train.studies import run
        >>> spec = '''
        ... name = "tiny"
        ... dataset = { votes = "votes.csv", features = "x.npz" }
        ... splits = { train = 0.4, validation = 0.3, test = 0.3 }
        ... grid = { targets = ["frequency"], deliveries = ["soft"], models = ["linear"], seeds = 1 }
        ... training = { regime = "early-stopping", epochs = 2 }
        ... '''
        >>> rows = [f"{i},{a},{'yes' if i * a % 3 else 'no'}" for i in range(30) for a in range(1, 5)]
        >>> with tempfile.TemporaryDirectory() as name:
        ...     home = Path(name)
        ...     _ = (home / "study.toml").write_text(spec)
        ...     _ = (home / "votes.csv").write_text(chr(10).join(["item,annotator,label", *rows]))
        ...     np.savez(home / "x.npz", items=np.arange(30), features=np.eye(30))
        ...     _ = export_bundle(run(home / "study.toml", home / "runs", engine="loop"), home / "model")
        ...     model = load_model(home / "model")
        >>> model, model.predict_proba(np.eye(30)[:2]).shape
        (TrainedModel(soft of tiny, 2 classes), (2, 2))
    """
    folder = Path(folder)
    recipe = read_recipe(folder)
    if recipe.own_code and not trust_code:
        raise InputError(
            f"{folder}: its network or encoder is code of somebody's own ({recipe.network}), which loading would run; "
            f"read {folder / CODE}, and say that you trust it: trust_code=True"
        )
    with _no_bytecode():
        encoder = None if recipe.encoder is None else _encoder(folder, recipe.encoder)
        networks = tuple(_member(folder, recipe, seed) for seed in recipe.members)
    beside = folder / BESIDE
    combination = combination_of(read_npz(beside)) if beside.exists() else None
    return TrainedModel(recipe, networks, encoder, np.array(read_npy(folder / TRAINED_ON)), combination)


@contextmanager
def _no_bytecode() -> Iterator[None]:
    """Code from a bundle leaves nothing beside itself: a bundle with further files would be refused."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _encoder(folder: Path, name: str) -> Encoder:
    """The encoder of a bundle; a pretrained one stays loaded."""
    if name == "minilm" or name.startswith("hf:"):
        return pretrained_encoder(f"hf:{ENCODER}", folder=folder, kept=True)
    if name.startswith("timm:"):
        held = f"timm:{ENCODER}" if (folder / ENCODER).is_dir() else name
        return pretrained_encoder(held, folder=folder, kept=True)
    state = read_npz(folder / STATE) if (folder / STATE).exists() else {}
    return restore_encoder(name, state, folder=folder / CODE)


def _member(folder: Path, recipe: Recipe, seed: int) -> nn.Module:
    path = folder / recipe.weights_of(seed)
    hub = recipe.network.startswith("hf:")
    network = build(
        f"hf:{recipe.weights_of(seed).parent if recipe.hugging_face else NETWORK}" if hub else recipe.network,
        recipe.shape,
        classes=len(recipe.classes),
        seed=seed,
        folder=folder if hub else folder / CODE,
        weights=False,
    )
    if recipe.people is not None:
        known = recipe.people
        share = np.full(len(known["units"]), 1 / len(known["units"]))
        people = People(kind=known["kind"], by=known["by"])
        # Shares and scale come with the weights.
        network = PeopleNetwork(network, people, classes=len(recipe.classes), share=share, layer=known["layer"])
    try:
        held = load_file(path)
        # A folder of Hugging Face's own has the names that its network has there.
        network.load_state_dict(
            {f"network.{name}": value for name, value in held.items()} if recipe.hugging_face else held
        )
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: the weights cannot be read ({error}); export the model again") from error
    except RuntimeError as error:
        why = str(error).splitlines()[-1].strip()
        raise InputError(f"{path}: the weights do not fit {recipe.network} ({why}); export the model again") from error
    return network.eval()


def as_items(given: Any, recipe: Recipe) -> Items:
    """Convert texts or images to the items that a bundle reads. See `TrainedModel.predict_proba` for their formats."""
    reads = recipe.reads
    if reads == "images":
        if isinstance(given, str | Path) or not np.iterable(given):
            raise InputError(f"predict: expected a list of image files or an array of images, and found {given!r}")
        given = given if hasattr(given, "__array__") else list(given)
        if len(given) and all(isinstance(one, str | Path) for one in given):
            return Items(names=np.arange(len(given)), files=tuple(map(Path, given)), reading=recipe.reading.settled())
        pixels = _pixels(given, recipe)
        return Items(names=np.arange(len(pixels)), pixels=pixels)
    columns: Sequence[Any] = (given,) if reads == COLUMNS[0] else given
    if len(columns) != COLUMNS.index(reads) + 1:
        lists = "two lists, as in (premises, hypotheses)" if reads == COLUMNS[1] else "three lists of texts"
        raise InputError(f"predict: the model reads {reads} of texts; give {lists}")
    if any(isinstance(column, str) for column in columns):
        raise InputError("predict: give a list of texts, not one text")
    # A frame or a dictionary is its names, and a set has no order.
    no_lists = (column is None or isinstance(column, Mapping | Set) or hasattr(column, "columns") for column in columns)
    if any(no_lists):
        raise InputError("predict: give a list of texts; of a frame or a dictionary, its column of texts")
    columns = [list(column) for column in columns]
    for column in columns:
        for wrong in (number for number, text in enumerate(column) if not isinstance(text, str)):
            raise InputError(f"predict: item {wrong} is {column[wrong]!r}, not a text; remove it, or fill it")
    try:
        texts = tuple(np.array(column, dtype=np.dtypes.StringDType()) for column in columns)
    except UnicodeEncodeError as error:
        raise InputError(f"predict: a text holds half of a character ({error.object[:20]!r}); correct it") from None
    return Items(names=np.arange(len(texts[0])), texts=texts)


def _pixels(given: Any, recipe: Recipe) -> Images:
    """Return (items, channels, height, width) bytes of images. Raise if the meaning of the array is ambiguous.

    Floats are converted to bytes as in a study's own file, so that both give the same prediction.
    """
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"predict: the images are not of one size ({error}); give a list of image files") from error
    found = f"{array.dtype} of shape {array.shape}"
    if fits := array.size > 0 and array.dtype.kind in "fiu":
        found += f" from {array.min():g} to {array.max():g}"
        fits = array.dtype == np.uint8 or (array.dtype.kind == "f" and bool(array.min() >= 0 and array.max() <= 1))
    # With 3 axes, (3, height, width) may be one colour image, not three grey images.
    fits &= array.ndim == 4 or recipe.shape[:1] == (1,) or 3 not in array.shape[::2]
    images = array[:, None] if array.ndim == 3 else array
    if images.ndim == 4 and images.shape[3] in (1, 3) and images.shape[1] not in (1, 3):
        images = images.transpose(0, 3, 1, 2)
    if not fits or images.ndim != 4 or images.shape[1] not in (1, 3):
        raise InputError(
            "predict: expected images as (items, height, width), (items, 1 or 3 channels, height, width) or (items, "
            f"height, width, 1 or 3 channels), uint8, or floats from 0 to 1, and found {found}; give pixels from 0 to "
            "255 as images.astype('uint8'), one coloured image as image[None], grey ones as images[:, None]"
        )
    return as_bytes(images, where="predict", ends=(0.0, 1.0))


def fingerprints(items: Items | Features) -> Ints:
    """(items,) 64-bit hashes of texts (white space aside), of pixels, or of features as float32; never of names."""
    hashes = b"".join(hashlib.blake2b(content, digest_size=8).digest() for content in _contents(items))
    return np.frombuffer(hashes, dtype=np.int64)


def _contents(items: Items | Features) -> Iterator[bytes]:
    if isinstance(items, Items) and items.texts:
        for texts in zip(*items.texts, strict=True):
            yield "\0".join(" ".join(str(text).split()) for text in texts).encode("utf-8", "surrogatepass")
    elif isinstance(items, Items):
        read = (read_picture(path, items.read_as) for path in items.files)
        for picture in read if items.pixels is None else items.pixels:
            yield str(picture.shape).encode() + picture.tobytes()
    else:
        for row in items:
            yield np.asarray(row.toarray() if hasattr(row, "toarray") else row, dtype=np.float32).tobytes()
