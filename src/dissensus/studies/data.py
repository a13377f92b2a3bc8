"""The data of a study: votes, features and splits put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.array_file import read_npy, read_npz
from dissensus.arrays import places_of
from dissensus.datasets import data_folder, load, read_cifar_batch, word_texts
from dissensus.errors import InputError
from dissensus.items.ngrams import character_ngrams
from dissensus.labels.labelling import label
from dissensus.studies.labelled_sets import LABELLED_SETS
from dissensus.training.data import TrainingData, split_items
from dissensus.votes.sampling import subsample

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from dissensus.arrays import Ints, Names
    from dissensus.datasets import LabelledItems
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.studies.spec import Study, Target
    from dissensus.votes.table import Votes

FEATURES_REMEDY: Final = (
    "give a .npz with arrays 'items' and 'features', or a .npy whose rows are the items 0, 1, 2, ..."
)
"""What features may be."""

Features = np.ndarray[Any, np.dtype[np.float32]]


def study_data(study: Study) -> TrainingData:
    """Read the votes, make the targets and the splits."""
    if study.dataset in LABELLED_SETS:
        return _of_labelled_set(study)
    votes, features, together = _sources(study)
    # People said what all their votes say; a target may be made from fewer.
    human = label(votes, "equal-weighted")
    panels = _smaller_panels(study.targets, votes)
    targets = {target.name: label(panels.get(target.name, votes), target.scheme) for target in study.targets}
    splits = split_items(human.majority().label, study.splits, seed=study.split_seed, together=together)
    return TrainingData(
        name=study.dataset or str(study.votes),
        features=features,
        human=human,
        targets=targets,
        splits=_filled(splits, study, human),
        votes=votes,
        panels=panels,
    )


def _filled(splits: Mapping[str, Ints], study: Study, human: LabelDistribution) -> dict[str, Ints]:
    """The splits that have items; one that was given a share and got none is refused."""
    empty = [name for name, members in splits.items() if not members.size and study.splits.get(name)]
    if empty:
        largest = int(np.bincount(human.majority().label).max())
        raise InputError(
            f"study {study.name}: no item is in the split '{empty[0]}', whose share is {study.splits[empty[0]]:g}: "
            f"each class is split by itself, and the largest has {largest:,} items; give the split a share of at least "
            f"{np.ceil(100 / largest) / 100:.2f}, or leave it out"
        )
    return {name: members for name, members in splits.items() if members.size}


def _smaller_panels(targets: Sequence[Target], votes: Votes) -> dict[str, Votes]:
    """By name, the votes of the targets that keep only some of them."""
    return {
        target.name: subsample(votes, target.votes, seed=target.seed) for target in targets if target.votes is not None
    }


def _of_labelled_set(study: Study) -> TrainingData:
    if len(study.sources) > 1:
        raise InputError(
            f"study {study.name}: it is one study for each source of {study.dataset}; name one of "
            f"{', '.join(part.name for part in study.parts)}, or keep one source under [dataset]"
        )
    items = LABELLED_SETS[str(study.dataset)].read()
    if study.sources:
        items = items.of_source(study.sources[0])
    splits = items.splits
    if study.splits:
        splits = split_items(items.human.majority().label, study.splits, seed=study.split_seed)
    panels = {} if items.votes is None else _smaller_panels(study.targets, items.votes)
    return TrainingData(
        name=" ".join([str(study.dataset), *study.sources]),
        features=items.features,
        human=items.human,
        targets={target.name: _target(target, items, panels) for target in study.targets},
        splits=_filled(splits, study, items.human),
        votes=items.votes,
        panels=panels,
        note=items.note,
    )


def _target(target: Target, items: LabelledItems, panels: Mapping[str, Votes]) -> LabelDistribution:
    if target.scheme in items.targets:
        return items.targets[target.scheme]
    assert items.votes is not None, "the study's reader lets no other target through"
    return label(panels.get(target.name, items.votes), target.scheme)


def _sources(study: Study) -> tuple[Votes, Features, Any]:
    """Votes, features, and which items must stay in one split."""
    if study.dataset is not None:
        if study.dataset not in FEATURES:
            raise InputError(
                f"study {study.name}: '{study.dataset}' is no dataset with features; there are "
                f"{', '.join([*FEATURES, *LABELLED_SETS])}, or give your own votes and features files"
            )
        votes = load(study.dataset)
        features, together = FEATURES[study.dataset](votes)
        return votes, features, together
    from dissensus.votes.reading import read_votes

    votes = read_votes(study.folder / str(study.votes), format=study.format)
    votes = in_order_of_names(votes)
    return votes, read_features(study.folder / str(study.features), votes.items), None


def in_order_of_names(votes: Votes) -> Votes:
    """The same votes, items by name, and the judgements of an item by annotator and by what they say.

    A file whose rows were shuffled is the same study: the same splits, the same smaller panels, the same runs.
    """
    votes = votes.take_items(np.argsort(votes.items, kind="stable"))
    who: Any = 0 if votes.annotators is None else np.argsort(np.argsort(votes.annotators, kind="stable"))
    annotator = np.zeros(votes.n_judgements) if votes.judgement_annotator is None else who[votes.judgement_annotator]
    # What a judgement says, in one number that does not depend on the order of its votes.
    said = np.random.default_rng(0).integers(2**62, size=2 * len(votes.classes))
    response = said[2 * votes.label + (0 if votes.unsure is None else votes.unsure)]
    content = np.zeros(votes.n_judgements, dtype=np.int64)
    np.add.at(content, np.arange(len(votes)) if votes.judgement is None else votes.judgement, response)
    return votes.take_judgements(np.lexsort((content, annotator, votes.judgement_item)))


def read_features(path: Path, items: Names) -> Features:
    """(items, ...) the features of the given items, from a `.npz` with arrays `items` and `features`.

    A `.npy` has no names: its rows are taken by number, so the items must be whole numbers.
    """
    if path.suffix == ".npy":
        rows = read_npy(path, remedy=FEATURES_REMEDY)
        names = np.arange(rows.shape[0] if rows.ndim else 0)
    else:
        arrays = read_npz(path, only=("items", "features"), remedy=FEATURES_REMEDY)
        missing = [name for name in ("items", "features") if name not in arrays]
        if missing:
            raise InputError(f"{path}: there is no array '{missing[0]}'; {FEATURES_REMEDY}")
        names, rows = arrays["items"], arrays["features"]
    if names.shape[0] != rows.shape[0]:
        raise InputError(
            f"{path}: {names.shape[0]:,} items and {rows.shape[0]:,} rows of features; give one row an item"
        )
    place = places_of(items, names)
    without = np.flatnonzero(place < 0)
    if without.size:
        raise InputError(
            f"{path}: no features for item {str(items[without[0]])!r}"
            f"{f' and {without.size - 1:,} more' if without.size > 1 else ''}; every item with votes needs a row"
        )
    return rows[place].astype(np.float32)


def _words(votes: Votes) -> tuple[Features, Any]:
    texts = word_texts(votes.items)
    # A term that is listed twice must not be trained on and tested on.
    return character_ngrams(texts), np.unique(texts, return_inverse=True)[1]


def _cifar(votes: Votes) -> tuple[Features, Any]:
    images, _ = read_cifar_batch(data_folder() / "cifar-10-batches-bin" / "test_batch.bin")
    if images.shape[0] != len(votes.items):
        raise InputError(f"cifar-10h: {images.shape[0]:,} images for {len(votes.items):,} items; both must be 10,000")
    return images.astype(np.float32) / np.float32(255), None


FEATURES: dict[str, Callable[[Votes], tuple[Features, Any]]] = {"words": _words, "words-9": _words, "cifar-10h": _cifar}
"""Known datasets that bring features; each with which items must stay together in a split."""
