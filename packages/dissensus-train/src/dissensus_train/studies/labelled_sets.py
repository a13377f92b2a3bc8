"""Known sets that a study can name: they bring items or features, votes, targets, splits and sources."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dissensus.datasets import load_labelled
from dissensus.parts import joined
from dissensus_train.studies.cifar_sets import cifar_10h, cifar_10n
from dissensus_train.studies.text_sets import LEWIDI, chaosnli, emobank_valence, lewidi, text_set

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus_train.studies.labelled import LabelledItems

SPLITS: Final = ("train", "validation", "test")


@dataclass(frozen=True)
class LabelledSet:
    """What a study file can ask of a set before the set is read: the targets and splits that it holds itself.

    Each of its sources is a study of its own; with votes, every scheme can be a target too. The encoder makes features
    of its items, unless the study names another; None where it brings features. A set that `must_be_made` takes
    minutes.
    """

    read: Callable[[], LabelledItems]
    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    votes: bool = True
    splits: tuple[str, ...] = ()
    encoder: str | None = None
    must_be_made: Callable[[], bool] = lambda: False


def _simulated() -> Any:
    # Asked for when it is read: making the set trains networks, and most studies never do.
    return joined("joins", "set.soft-digits-simulated", part="papers", wanted_by="soft-digits-simulated")


LABELLED_SETS: Final = {
    "words": LabelledSet(partial(text_set, "words"), encoder="char-ngrams"),
    "words-9": LabelledSet(partial(text_set, "words-9"), encoder="char-ngrams"),
    "snippets": LabelledSet(partial(text_set, "snippets"), encoder="tfidf"),
    "cifar-10h": LabelledSet(cifar_10h, targets=("original",), encoder="pixels"),
    "cifar-10n": LabelledSet(cifar_10n, targets=("original",), splits=("train", "test"), encoder="pixels"),
    "popquorn": LabelledSet(partial(text_set, "popquorn-offensiveness"), encoder="tfidf"),
    "crehate": LabelledSet(partial(text_set, "crehate"), encoder="tfidf"),
    "davidson": LabelledSet(partial(text_set, "davidson"), encoder="tfidf"),
    "dices": LabelledSet(partial(text_set, "dices-990"), encoder="tfidf"),
    "emobank-valence": LabelledSet(emobank_valence, splits=SPLITS, encoder="tfidf"),
    "chaosnli": LabelledSet(chaosnli, sources=("snli", "mnli"), targets=("original",)),
    **{name: LabelledSet(partial(lewidi, name), splits=SPLITS, encoder="tfidf") for name in LEWIDI},
    "soft-digits": LabelledSet(
        lambda: load_labelled("soft-digits"),
        sources=("mnist", "mukhoti"),
        targets=("original", "majority", "uncertainty-weighted", "equal-weighted", "yes-only"),
        votes=False,
        splits=SPLITS,
    ),
    "soft-digits-simulated": LabelledSet(
        lambda: _simulated().soft_digits_simulated(),
        sources=("mnist", "ambiguous"),
        targets=("original",),
        splits=SPLITS,
        must_be_made=lambda: _simulated().must_be_made(),
    ),
}
"""By name, the known sets that a study can be on."""
