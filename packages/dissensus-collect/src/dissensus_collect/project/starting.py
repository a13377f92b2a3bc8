"""A new project: its file, with every setting in it."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from dissensus.errors import InputError, choices
from dissensus.shipped import shipped_toml
from dissensus_collect.project import language as languages
from dissensus_collect.project.items import classes_of, project_items
from dissensus_collect.project.language import NAMES
from dissensus_collect.project.reading import FILE, USUAL, read_project, usual_order
from dissensus_collect.project.tables import ENDINGS

if TYPE_CHECKING:
    from collections.abc import Sequence


def init_project(
    folder: str | Path,
    *,
    images: str | Path | None = None,
    texts: str | Path | None = None,
    pairs: str | Path | None = None,
    language: str = "en",
    classes: Sequence[str] | None = None,
    name: str | None = None,
    question: str | None = None,
    layout: str | None = None,
    k: int = 6,
    items_per_annotator: int = 70,
    recruitment: str = "plain",
    model: str | Path | None = None,
    budget: int = 0,
) -> Path:
    """Writes the file of a new project, with every setting in it, and returns its path.

    Args:
        folder: of the project; made if it does not exist.
        images: a folder of images; the project's own folder if neither images nor texts are given.
        texts: a table of texts.
        pairs: a table of pairs to compare, with columns left and right.
        language: of the pages, and of every text that is written into the file.
        classes: names; by default those of the sub-folders of the images or of the labels in the table; of images
            without sub-folders the ten digits.
        name: of the project; by default the folder's name.
        question: asked about every class.
        layout: one of `LAYOUTS`; by default rows, or of pairs single-choice, which is the only one.
        k: votes per item.
        items_per_annotator: the most items that one annotator is asked about.
        recruitment: one of `PLATFORMS`.
        model: predictions of the items, beside which further votes are bought where they help most.
        budget: votes beyond k that may be bought, over all items.
    """
    folder = Path(folder)
    path = folder / FILE
    if path.exists():
        raise InputError(f"{path}: there is a project already; edit it, or choose another folder")
    given = {"image": images, "text": texts, "pair": pairs}
    what, place = next(((what, place) for what, place in given.items() if place is not None), ("image", folder))
    if sum(place is not None for place in given.values()) > 1:
        raise InputError("collect init: give one of images=, texts= and pairs=; a project shows one of them")
    source = Path(place)
    if what == "image" and not source.is_dir():
        raise InputError(f"{source}: not a folder; give a folder of images (images=), or a table (texts=, pairs=)")
    if language not in NAMES:
        raise InputError(f"collect init: there is no language '{language}'{choices(language, NAMES)}")
    own = languages.language(language)
    layout = layout or ("single-choice" if what == "pair" else "rows")
    if what == "pair" and layout != "single-choice":
        raise InputError(f"collect init: pairs are a single choice, and the layout is '{layout}'; leave layout out")
    usual = own.new["sides"] if what == "pair" else None
    names = list(classes or usual or classes_of(source, is_table=what == "text"))
    folder_is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    new = shipped_toml(__package__, "new_project.toml")
    # A layout that does not exist is refused below, with its line.
    asks, how = own.new["layouts"].get("pairs" if what == "pair" else layout, own.new["layouts"]["rows"])
    codes = {ending: secrets.token_hex(4).upper() for ending in ENDINGS}
    text = new["file"].format(
        name=_toml(name or folder.resolve().name),
        question=_toml(question or asks.format(what=what)),
        layout=_toml(layout),
        k=k,
        items_per_annotator=items_per_annotator,
        seed=secrets.randbelow(2**31),
        source=f"{what}s = {_toml(_from(folder, source))}",
        names="[" + ", ".join(map(_toml, names)) + "]",
        class_order=_toml(usual_order(names)),
        language=_toml(language),
        **{name: _toml(own.say(USUAL[name])) for name in USUAL},
        consent=own.new["consent"].format(what=what),
        instructions=own.new["instructions"].format(what=what, how=how.format(what=what)),
        finish=_toml(own.new["finish"]),
        kind=_toml(recruitment),
        adaptive="false" if model is None else "true",
        max_k=2 * k,
        budget=budget,
        model=_toml("" if model is None else _from(folder, Path(model))),
        codes="{ " + ", ".join(f"{ending} = {_toml(code)}" for ending, code in codes.items()) + " }",
    )
    path.write_text(text, encoding="utf-8")
    try:
        project_items(read_project(folder))
    except InputError:
        path.unlink()
        if folder_is_new:
            folder.rmdir()
        raise
    return path


def _from(folder: Path, source: Path) -> str:
    """How a project's file names a place: from its folder where it lies in there."""
    place, folder = source.resolve(), folder.resolve()
    return os.path.relpath(place, folder) if place.is_relative_to(folder) else str(place)


def _toml(text: str) -> str:
    """A basic string of TOML, which has all the escapes of JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
