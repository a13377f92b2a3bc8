"""Items as a reader sees them: their text or image, the votes they got, and what each model said."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.arrays import places_of
from dissensus.evaluation.metrics.distances import tvd
from dissensus.votes.sides import side_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Floats, Ints, Table
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.report.subject import Subject

LARGEST: Final = 48
"""Pixels of the longer side of an image on the page; larger ones are thinned to it."""

LONGEST: Final = 300
"""Characters of an item's text in a tooltip."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """A class's part of a distribution, for a bar: the share is from 0 to 1, name and colour are the class's."""

    name: str
    share: float
    colour: str


@dataclass(frozen=True, kw_only=True)
class Card:
    """An item with what people and models say of it.

    Attributes:
        text: its text or name, whole.
        image: a data URI, or None.
        remark: its votes in words, and why it is shown.
        bars: by who speaks (people, then each system), the parts of the classes.
        sides: of a pair, what each side is called and its text, the left one first.
    """

    text: str
    image: str | None
    remark: str
    bars: tuple[tuple[str, tuple[Share, ...]], ...] = ()
    sides: tuple[tuple[str, str], ...] = ()


def images(features: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
    """(items, height, width, 1 or 3) bytes, where features are images; None where they are not.

    Images are (items, height, width) or (items, channels, height, width) with 1 or 3 channels, at least 8 pixels high
    and wide. Their values are scaled so that the largest among these items is white.
    """
    if features.ndim == 3:
        features = features[:, None]
    if features.ndim != 4 or features.shape[1] not in (1, 3) or min(features.shape[2:]) < 8:
        return None
    step = -(-max(features.shape[2:]) // LARGEST)
    small = features[:, :, ::step, ::step]
    low, high = min(float(small.min()), 0.0), float(small.max())
    scaled = (small - low) * (255 / ((high - low) or 1.0))
    return np.ascontiguousarray(np.rint(scaled).astype(np.uint8).transpose(0, 2, 3, 1))


def data_uri(image: np.ndarray[Any, np.dtype[np.uint8]]) -> str:
    """A (height, width, 1 or 3) image as a PNG in a data URI."""
    from PIL import Image

    png = io.BytesIO()
    Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).save(png, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(png.getvalue()).decode()


def in_words(row: Sequence[float], classes: Sequence[str]) -> str:
    """The three classes of largest probability with their shares: `positive 62 %, neutral 30 %`."""
    order = sorted(range(len(row)), key=lambda k: -row[k])[:3]
    return ", ".join(f"{clipped(classes[k], 40)} {100 * row[k]:.0f} %" for k in order if row[k] >= 0.005)


def votes_in_words(counts: Sequence[int], classes: Sequence[str]) -> str:
    """Votes by class, most first: `positive 7, neutral 3`; of classes that end in a digit, `5: 7, 4: 3`."""
    order = sorted((k for k in range(len(counts)) if counts[k]), key=lambda k: -counts[k])
    names = (clipped(classes[k], 40) for k in order)
    return ", ".join(
        f"{name}{':' if name[-1:].isdigit() else ''} {counts[k]:,}" for k, name in zip(order, names, strict=True)
    )


def clipped(text: str, longest: int = LONGEST) -> str:
    """A text, cut where it is too long for its place, with a note that it was."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"


def short_names(names: Sequence[str], longest: int) -> list[str]:
    """Names of so many characters at most, whose middle is cut where it must be; a number keeps equal ones apart."""
    half = longest // 2
    return distinct([name if len(name) <= longest else f"{name[: half - 1]}…{name[-half:]}" for name in names])


def distinct(names: Sequence[str]) -> list[str]:
    """Names with a number after those that came before, so that no two are the same in a figure."""
    seen: dict[str, int] = {}
    made = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        made.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return made


def contested(people: LabelDistribution, *, most: int) -> Ints:
    """(at most so many) indices of the items that divide people most, most divided first.

    Among items of equal entropy those with more judgements come first, then those that stand first. Unanimous items
    divide nobody and are never among them.
    """
    order = np.lexsort((np.arange(len(people)), -people.panel_size, -np.round(people.entropy, 10)))[:most]
    return np.asarray(order[people.entropy[order] > 0])


def largest_gaps(people: LabelDistribution, model: Table, *, most: int) -> tuple[Ints, Floats]:
    """(at most so many) items on which a model is furthest from people, largest gap first, and their gaps.

    A gap is the total variation distance: the share of probability that would have to move from class to class. One to
    a single vote is mostly chance: such items are left out.
    """
    gap = np.where(people.panel_size != 1, tvd(people.probabilities, model), 0.0)
    order = np.argsort(-np.round(gap, 10), kind="stable")[:most]
    order = order[gap[order] > 0]
    return np.asarray(order), np.asarray(gap[order])


def bar(row: Floats, classes: Sequence[str], colours: Sequence[str]) -> tuple[Share, ...]:
    """The parts of a distribution that can be seen."""
    return tuple(
        Share(name=name, share=share, colour=colour)
        for name, share, colour in zip(classes, row.tolist(), colours, strict=True)
        if share >= 0.0005
    )


def cards(subject: Subject, items: Ints, *, remarks: Sequence[str]) -> list[Card]:
    """The items of these indices as a reader sees them, with what is said of each (`remarks`) after its votes."""
    people, classes = subject.people, subject.people.classes
    colours = class_colours(len(classes), ordered=people.ordered)
    said = {name: subject.mean(name)[items] for name in subject.shown}
    sides = _sides(subject, items)
    return [
        Card(
            text=str(subject.texts[item]),
            image=image,
            remark=f"{votes_in_words(people.counts[item].tolist(), classes)} · {remark}".removeprefix(" · "),
            bars=(
                ("people", bar(people.probabilities[item], classes, colours)),
                *((name, bar(rows[place], classes, colours)) for name, rows in said.items()),
            ),
            sides=sides[place] if sides else (),
        )
        for place, (item, image, remark) in enumerate(zip(items.tolist(), subject.picture(items), remarks, strict=True))
    ]


def _sides(subject: Subject, items: Ints) -> list[tuple[tuple[str, str], ...]]:
    """Of pairs, what either side is called and says; the longest texts that votes have of both sides are shown."""
    votes = subject.votes
    if votes is None or not votes.pairs:
        return []
    about = {name: list(map(str, values.tolist())) for name, values in votes.item_attributes.items()}
    texts = max(
        (names for names in side_pairs(about) if names != ("left", "right")),
        key=lambda names: sum(len(text) for name in names for text in about[name]),
        default=None,
    )
    place = places_of(subject.people.items[items], votes.items).tolist()
    nothing = [""] * len(votes.items)
    shown = [about.get("left", nothing), about.get("right", nothing)]
    told = [nothing, nothing] if texts is None else [about[name] for name in texts]
    return [
        tuple((shown[side][k] or name, told[side][k]) for side, name in enumerate(("left", "right"))) for k in place
    ]


def thinned(n_items: int, *, most: int, seed: int) -> Ints:
    """Indices of at most so many items, drawn at random and in order."""
    if n_items <= most:
        return np.arange(n_items)
    return np.sort(np.random.default_rng(seed).choice(n_items, most, replace=False))


PALETTE: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C", "#9A8B00")
"""Okabe and Ito's colours, told apart by colour-blind readers, without black, which the dark page would swallow."""

_SCALE: Final = ((179, 88, 6), (241, 163, 64), (205, 205, 205), (153, 142, 195), (110, 70, 170))
"""From orange over grey to purple, for ordered classes."""


def class_colours(classes: int, *, ordered: bool) -> list[str]:
    """A colour for each class: a scale where classes are one, else the palette, which repeats itself."""
    if not ordered:
        return [PALETTE[k % len(PALETTE)] for k in range(classes)]
    places = np.linspace(0, len(_SCALE) - 1, classes)
    channels = [np.interp(places, np.arange(len(_SCALE)), [stop[c] for stop in _SCALE]) for c in range(3)]
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in np.rint(np.transpose(channels)).astype(int).tolist()]
