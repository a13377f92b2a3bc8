"""A first study file for votes and items, written after a look at both."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.array_file import read_npz
from dissensus.errors import InputError, meant_path
from dissensus.table_file import KINDS, columns_of, open_file, read_rows
from dissensus.votes.columns import guess
from dissensus.votes.kinds import people_alone
from dissensus_train.encoders.reading import read_features, read_images, read_texts
from dissensus_train.studies.data import USUAL_ENCODER, images_of_file, in_order_of_names, with_items
from dissensus_train.studies.spec import SHARES
from dissensus_train.studies.writing import toml_value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dissensus.items.shown import Items
    from dissensus.votes.formats import Options
    from dissensus.votes.table import Votes

OTHER_ENCODERS: Final = {
    "texts": 'or "char-ngrams", "minilm", "hf:NAME or folder", "my_encoders.py:encode"',
    "images": 'or "pixels:64" for squares of 64 pixels, "timm:NAME", "my_encoders.py:encode"',
}
"""What may stand in the place of the usual encoder, by kind of items."""


def first_study(
    votes: Path,
    items: Path,
    *,
    path: Path,
    options: Options | None = None,
    text: Sequence[str] = (),
    drop_missing_items: bool = False,
) -> tuple[str, tuple[str, ...]]:
    """The text of a study file on votes and items, with a remark beside every choice, and notes on what was read.

    Paths are relative to the file's folder. `options` say how to read the votes, and stand in the file; a column of
    items that they name counts for a table of texts too, where it has it. `text` names its columns of texts.

    Raises:
        InputError: where a file cannot be read, or an item with votes has no text, image or features.
    """
    from dissensus.votes.reading import understand

    reading = understand(votes, options)
    columns: dict[str, Any] = {"text": text} if text else {}
    named = None if options is None else options.item
    if named and items.is_file() and items.suffix.lower() in KINDS and named in columns_of(items):
        columns["item"] = named
    people, models_left_out = people_alone(reading.votes)
    said, (key, remark, shown), dropped = with_items(
        in_order_of_names(people),
        lambda some: _look(items, some, **columns),
        drop=drop_missing_items,
        dropped=None if options is None else options.dropped,
    )
    kept = () if options is None else options.given(*(set(options.__dataclass_fields__) - {"format", "dropped"}))
    given = {name: getattr(options, name) for name in kept}
    label = reading.columns.get("label")
    if reading.format == "long" and label is not None and guess("label", [*reading.columns.values()]) != label:
        # Found as the only column that it could be, which is not looked for once the format is stated.
        given["label"] = label
    texts = shown is not None and shown.kind == "texts"
    models = f'models = ["simple-ffn"]    # or linear, deeper-ffn{"" if texts else ", lenet"}, "nets.py:my_net"'
    if said.pairs:
        models = 'models = ["pair"]    # a score for each answer; or pair-linear, pair-spread (divided is not equal)'
    models += ', "hf:NAME" to fine-tune' if texts else ""
    if said.annotators is not None and not said.pairs:
        models += ', { name = "simple-ffn", people = "annotator-bias" } to learn each person'
    lines = [
        f"# Written by `dissensus study init {votes.name} {items.name}`. Every line may be changed.",
        f"name = {toml_value(path.stem)}",
        'question = "Does a model that sees every vote come closer to people than one trained on their majority?"',
        "",
        "[dataset]",
        f"votes = {_relative(votes, path)}    # {_of_votes(said, models_left_out)}",
        f"format = {toml_value(reading.format)}",
        f"{key} = {_relative(items, path)}    # {remark}",
        *(f"{name} = {toml_value(column)}" for name, column in columns.items()),
        *([f"reading = {toml_value(given)}    # how the votes are read"] if given else []),
        *([f"drop_missing_items = true    # {dropped}"] if dropped else []),
    ]
    if shown is not None:
        lines.append(f"encoder = {toml_value(USUAL_ENCODER[shown.kind])}    # {OTHER_ENCODERS[shown.kind]}")
        held = {name: set(values.tolist()) for name, values in shown.columns.items()}
        if others := [name for name, values in held.items() if len(values) > 1 and values <= set(said.classes)]:
            lines.append(
                f"# original = {toml_value(others[0])}"
                "    # if these labels are older than the votes: gives the target 'original'"
            )
    # Majority and soft labels, and those that show single votes where there are several.
    deliveries = ["majority", "soft", *(["sls", "multipass"] if said.panel_size.max() > 1 else [])]
    lines += [
        "",
        '[splits]    # or file = "splits.csv" (item, split, group), or folds = 5',
        *(f"{name} = {share:g}" for name, share in SHARES.items()),
        "seed = 0",
        "",
        "[grid]",
        f"targets = [{toml_value('frequency')}]    # classes: {_classes(said)}",
        f"deliveries = {toml_value(deliveries)}    # the first is what the others are compared with",
        models,
        "seeds = 5",
        "",
        "[training]",
        'regime = "early-stopping"    # or fixed-horizon, sgd-cosine; any setting may stand beside it',
    ]
    return "\n".join(lines) + "\n", (*reading.votes.notes, *([dropped] if dropped else []))


def _look(path: Path, votes: Votes, **columns: Any) -> tuple[str, str, Items | None]:
    """The key of a file of items, a remark, and the items where they are texts or images; all with votes are there.

    Columns are those of a table of texts, as `read_texts` takes them.
    """
    suffix = path.suffix.lower()
    if path.is_dir():
        images = read_images(path, votes.items)
        return "images", f"{len(images):,} image files", images
    if not path.exists():
        near = meant_path(path) or "; give texts, images or features of the items"
        raise InputError(f"{path}: there is no such file or folder{near}")
    if suffix == ".npz" and "images" in read_npz(path):
        held = images_of_file(path, votes.items)
        return "images", f"{len(held):,} images", held
    if suffix in (".npy", ".npz") or (suffix in (".parquet", ".pq") and not (columns.get("text") or _has_text(path))):
        shape = read_features(path, votes.items).shape
        return "features", f"{' x '.join(map(str, shape[1:]))} numbers per item", None
    if suffix in KINDS or suffix == ".json":
        texts = read_texts(path, votes.items, **columns)
        pair = "pairs of texts" if len(texts.texts) == 2 else "texts"
        length = np.strings.str_len(texts.texts[0])
        return "texts", f"{len(texts):,} {pair}, {int(np.median(length))} characters in the median", texts
    raise InputError(
        f"{path}: items are not read from '{path.suffix}' files; give a table of texts ({', '.join(KINDS)}), a folder "
        "of images, or features (.npz, .npy, .parquet)"
    )


def _has_text(path: Path) -> bool:
    """Whether a table has a column of text beside the one that names items."""
    table = read_rows(open_file(path)).table
    item = guess("item", table.columns)
    return any(str(table[name].dtype) == "String" for name in table.columns if name != item)


def _relative(given: Path, study: Path) -> str:
    return toml_value(os.path.relpath(given.resolve(), study.resolve().parent).replace(os.sep, "/"))


def _of_votes(votes: Votes, models_left_out: str) -> str:
    size = votes.panel_size
    # A line break in a name would end the remark.
    more = f"; {' '.join(models_left_out.split())}" if models_left_out else ""
    who = "anonymous" if votes.annotators is None else f"by {len(votes.annotators):,} annotators"
    number = str(size.min()) if size.min() == size.max() else f"{size.min()} to {size.max()}"
    return f"{votes.n_judgements:,} judgements of {len(votes.items):,} items, {who}; {number} per item{more}"


def _classes(votes: Votes) -> str:
    # A line break in the name of a class would end the remark.
    shown = ", ".join(" ".join(name.split()) for name in votes.classes[:12])
    more = f" and {len(votes.classes) - 12} more" if len(votes.classes) > 12 else ""
    return f"{shown}{more} ({'a scale, lowest first' if votes.ordered else 'in no order'})"
