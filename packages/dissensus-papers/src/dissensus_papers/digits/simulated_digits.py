"""`soft-digits-simulated`: the pipeline of the soft-digits paper without its people and without its file.

Digits (MNIST's, or scikit-learn's where MNIST is absent) and blends of digits; duplicates out; a data map by a probe;
items selected over its regions; stratified splits of exact sizes; judgements of a simulated panel. Nothing that is
measured on this set is about people, and everything that names it says `simulated`.

The set is made once and kept in the cache folder, under `made`, whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from zipfile import BadZipFile

import numpy as np

from dissensus.datasets import Source, cache_folder
from dissensus.errors import InputError
from dissensus.labels import label
from dissensus.randomness import Purpose, stream
from dissensus.votes import Annotators, Votes
from dissensus.whole_file import whole_folder
from dissensus_papers.digits.ambiguous import Blending, ambiguous_digits
from dissensus_papers.digits.digits import DIGITS, read_digits
from dissensus_papers.digits.panel import HABITS, Eyes, perceive, simulate_panel
from dissensus_train.curate import Floor, ItemList, find_duplicates, map_items, select_items, split_groups
from dissensus_train.studies import LabelledItems
from dissensus_train.training import one_thread

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dissensus.arrays import Ints, Names, Table
    from dissensus.votes import Habits
    from dissensus_papers.digits.digits import Digits

NAME: Final = "soft-digits-simulated"
MEANING: Final = 2
"""Raised whenever the code changes what is made, so that a set kept by older code is not used in place of a new one."""

MNIST, AMBIGUOUS = "mnist", "ambiguous"

SPLITS: Final = ("train", "validation", "test")
VOTES: Final = ("item", "label", "unsure", "judgement", "seconds")
"""The columns of the votes that are kept."""

REGIONS: Final = {"easy": "confidence >= 0.8", "ambiguous": "variability >= 0.2", "hard": "confidence <= 0.4"}
"""The regions of the data map. The paper's values are not known."""

SHARES: Final = {
    MNIST: {"easy": 0.7, "ambiguous": 0.1, "hard": 0.1, "other": 0.1},
    AMBIGUOUS: {"easy": 0.25, "ambiguous": 0.25, "hard": 0.25, "other": 0.25},
}
"""Of the regions in each source. Digits: as many easy ones as the paper's floor of 150 per digit asks for (1,500 of
2,131). Blends: equal shares and no floor, since with the floor the panel agrees with far more of the synthetic labels
(86 %) than the paper's people did (67 %)."""


@dataclass(frozen=True, kw_only=True)
class DigitsRecipe:
    """What is made.

    Attributes:
        seed: the random seed.
        pool: digits that are mapped and selected from.
        blends: ambiguous digits that are mapped and selected from.
        mnist: items of the splits train, validation and test taken from the pool; fewer where there are not enough.
        ambiguous: the same from the blends.
        easy: the least number of easy digits of each class in the split train, where there are enough.
        checks: attention checks: clear digits of known class.
        blending: how ambiguous digits are made.
        eyes: how the panel sees.
        habits: how it answers.
    """

    seed: int = 0
    pool: int = 20_000
    blends: int = 4_000
    mnist: tuple[int, int, int] = (2_131, 457, 457)
    ambiguous: tuple[int, int, int] = (1_738, 373, 373)
    easy: int = 150
    checks: int = 10
    blending: Blending = field(default_factory=Blending)
    eyes: Eyes = field(default_factory=Eyes)
    habits: Habits = HABITS

    def fitted(self, digits: int) -> DigitsRecipe:
        """The same, smaller by one factor, where there are too few digits: at most half of them are judged."""
        factor = min(1.0, 0.5 * digits / sum(self.mnist))
        if factor == 1.0:
            return self
        return replace(
            self,
            blends=round(factor * self.blends),
            mnist=_scaled(self.mnist, factor),
            ambiguous=_scaled(self.ambiguous, factor),
            easy=round(factor * self.easy),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class SimulatedSet:
    """A set that a simulated panel judged, with what only a simulation knows.

    Attributes:
        items: for a study; its note says that it is simulated.
        truth: (items, classes) what people would say in the end, with ever more annotators: see `SimulatedPanel`.
        region: (items,) of the data map: easy, ambiguous, hard or other.
        about: what was made, counted step by step; plain values.
    """

    items: LabelledItems
    truth: Table
    region: Names
    about: dict[str, Any]


def soft_digits_simulated() -> LabelledItems:
    """The items of the set at its default size; made where it is not kept yet, which takes minutes."""
    return simulated_set().items


def simulated_set(recipe: DigitsRecipe | None = None) -> SimulatedSet:
    """Read the kept set of a recipe, or make and keep it."""
    digits = read_digits()
    wanted, folder = _kept(digits, recipe)
    if not folder.is_dir():
        with one_thread():
            arrays, about = _make(digits, wanted)
        try:
            with whole_folder(folder, remedy="set XDG_CACHE_HOME to a folder that can be written") as part:
                np.savez_compressed(part / "set.npz", **arrays)
                (part / "about.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
        except InputError:
            # Another process may have finished the same set first; it means the same.
            if not folder.is_dir():
                raise
    return read_set(folder)


def read_set(folder: Path) -> SimulatedSet:
    """Read a kept set."""
    try:
        with (folder / "set.npz").open("rb") as file, np.load(file) as arrays:
            return _assembled(dict(arrays), json.loads((folder / "about.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise InputError(
            f"{folder}: the set cannot be read ({error}); delete this folder, and it will be made anew"
        ) from error


def _assembled(arrays: Mapping[str, Any], about: dict[str, Any]) -> SimulatedSet:
    source, split = arrays["source"].astype(np.dtypes.StringDType()), arrays["split"]
    votes = Votes(
        **{name: arrays[f"votes_{name}"] for name in VOTES},
        items=np.strings.add(np.strings.add(source, "-"), _numbers(len(source))),
        annotators=Annotators(
            arrays["votes_annotator"], np.strings.add("simulated-", _numbers(len(arrays["checked"])))
        ),
        classes=(*DIGITS, "none"),
        none=len(DIGITS),
    )
    human = label(votes, "equal-weighted")
    original = replace(human, probabilities=np.pad(arrays["original"], ((0, 0), (0, 1))), scheme="original")
    items = LabelledItems(
        features=(arrays["images"].astype(np.float32) / 255)[:, None],
        human=human,
        targets={"original": original},
        splits={name: np.flatnonzero(split == name) for name in SPLITS},
        source=source,
        votes=votes,
        note=about["panel"],
    )
    return SimulatedSet(items=items, truth=arrays["truth"], region=arrays["region"], about=about)


def _numbers(n: int) -> Names:
    return np.arange(n).astype(np.dtypes.StringDType())


def must_be_made() -> bool:
    """Whether the set at its default size has still to be made."""
    return not _kept(read_digits(), None)[1].is_dir()


def _kept(digits: Digits, recipe: DigitsRecipe | None) -> tuple[DigitsRecipe, Path]:
    """What is made of these digits, and where it is kept: by the hash of everything that decides what is made."""
    wanted = (DigitsRecipe() if recipe is None else recipe).fitted(len(digits))
    decided = json.dumps({"meaning": MEANING, **asdict(wanted)}, sort_keys=True).encode()
    key = hashlib.sha256(decided + digits.images.tobytes() + digits.labels.tobytes()).hexdigest()[:12]
    return wanted, cache_folder() / "made" / f"{NAME}-{key}"


def _make(digits: Digits, recipe: DigitsRecipe) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays of the set, and what is to be said about it."""
    drawn = stream(recipe.seed, Purpose.SPLIT).permutation(len(digits))
    pool = digits.take(drawn[: recipe.pool])
    blends = ambiguous_digits(digits, recipe.blends, seed=recipe.seed, blending=recipe.blending)
    original = np.concatenate([np.eye(len(DIGITS))[pool.labels], blends.probabilities])
    sources = [_source(MNIST, pool.images, pool.labels), _source(AMBIGUOUS, blends.images, blends.winner)]
    images = np.concatenate([pool.images, blends.images])
    duplicates = find_duplicates(sources, drop="near")
    mapped = map_items(sources, regions=REGIONS, only=duplicates.clean(), seed=recipe.seed, engine="loop")
    chosen, notes = [], []
    for name, sizes, floor in ((MNIST, recipe.mnist, recipe.easy), (AMBIGUOUS, recipe.ambiguous, 0)):
        part, sentences = _selected(mapped.take(mapped.sources == name), name, sizes, easy=floor, seed=recipe.seed)
        chosen.append(part)
        notes += [f"{name}: {sentence}" for sentence in sentences]
    digit_places, blend_places = _numbers_of(chosen[0]), len(pool) + _numbers_of(chosen[1])
    judged = np.concatenate([digit_places, blend_places])
    # What nobody judges is what the panel's eyes learn from; the clearest of it are the attention checks.
    unused = mapped.take((mapped.sources == MNIST) & ~np.isin(_numbers_of(mapped), digit_places))
    clearest = np.argsort(-unused.column("confidence"), kind="stable")[: recipe.checks]
    checks = _numbers_of(unused)[clearest]
    learnt = digits.take(np.setdiff1d(drawn, drawn[np.concatenate([digit_places, checks])]))
    evidence = perceive(learnt, images[np.concatenate([judged, checks])], seed=recipe.seed, eyes=recipe.eyes)
    panel = simulate_panel(
        evidence[:, : len(judged)],
        evidence[:, len(judged) :],
        original[checks].argmax(axis=1),
        seed=recipe.seed,
        habits=recipe.habits,
    )
    arrays = {
        "images": images[judged],
        "original": original[judged],
        "truth": panel.truth,
        "checked": panel.checked,
        **{name: np.concatenate([part.column(name) for part in chosen]) for name in ("source", "split", "region")},
    }
    about = {
        "simulated": True,
        "digits": digits.note,
        "blends": {"made": blends.candidates, "plausible": blends.plausible, "kept": len(blends)},
        "duplicates removed": int((~duplicates.kept).sum()),
        "regions": _counted(mapped),
        "selected": {name: _counted(part) for name, part in zip((MNIST, AMBIGUOUS), chosen, strict=True)},
        "could not be met": notes,
        "panel": panel.note,
        "recipe": asdict(recipe),
    }
    assert panel.votes.annotators is not None
    columns = {name: getattr(panel.votes, name) for name in VOTES} | {"annotator": panel.votes.annotators.code}
    return {**arrays, **{f"votes_{name}": column for name, column in columns.items()}}, about


def _source(name: str, images: Any, labels: Any) -> Source:
    items = np.arange(len(images)).astype(np.str_)
    return Source(name=name, items=items, images=images[:, None], labels=np.array(DIGITS)[labels])


def _numbers_of(items: ItemList) -> Ints:
    """(items,) the place of each in its source, after which it is called."""
    return items.items.astype(np.int64)


def _selected(
    candidates: ItemList, name: str, sizes: tuple[int, int, int], *, easy: int, seed: int
) -> tuple[ItemList, tuple[str, ...]]:
    """The chosen items with their splits, and what could not be met."""
    there = set(candidates.column("region").tolist())
    n = sum(sizes)
    # A floor in the split train is one over all splits, since every split has the same share of easy items.
    floors = [Floor(column="region", value="easy", least=-(-easy * n // sizes[0]), each="label")]
    selection = select_items(
        candidates,
        n,
        quotas={"region": {region: share for region, share in SHARES[name].items() if region in there}, "label": None},
        floors=floors if easy and "easy" in there else (),
        seed=seed,
    )
    selected = len(selection.items)
    if selected < n:
        sizes = _scaled(sizes, selected / n)
        sizes = (sizes[0] + selected - sum(sizes), *sizes[1:])
    splits = split_groups(selection.items, dict(zip(SPLITS, sizes, strict=True)), seed=seed)
    return splits.items, (*selection.shortfalls, *splits.notes)


def _scaled(sizes: tuple[int, int, int], factor: float) -> tuple[int, int, int]:
    return (round(factor * sizes[0]), round(factor * sizes[1]), round(factor * sizes[2]))


def _counted(items: ItemList) -> dict[str, int]:
    regions, counts = np.unique(items.column("region"), return_counts=True)
    return dict(zip(regions.tolist(), counts.tolist(), strict=True))
