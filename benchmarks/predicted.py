"""Predictions for held-out items of real sets, made once by cheap models and kept in local/together.

    python -m benchmarks.predicted [SET ...]

Every item is predicted by runs that never saw its votes (`predicted(name)`), and all that is measured beside it is its
other people. The models are honest and cheap, not good:
- words: the demo's study (a small network on character n-grams, 6 seeds), its test words; `words-majority`, the same
  network trained on majorities.
- chaosnli-s, chaosnli-m: softmax of the released logits of three RoBERTas, which were trained on single labels of
  other items.
- popquorn, md-agreement: soft logistic regression on TF-IDF, five folds; cifar-10h: on 128 principal components of the
  pixels. Their seeds are bootstrap resamples of the training items.
- ferplus: there are no images, so that no model can be trained; three of each item's ten votes, drawn at random and
  smoothed with the shares of classes in other items, stand for a model, and only the other votes are its people.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax

from dissensus.datasets import load
from dissensus.evaluation.finite_panel.panel import draw_votes
from dissensus.evaluation.probabilities import Predictions
from dissensus.progress import silent
from dissensus.votes.table import votes_from_counts
from dissensus_train.encoders.tfidf import fit_tfidf, tfidf
from dissensus_train.studies.cifar_sets import cifar_10h
from dissensus_train.studies.text_sets import chaosnli, lewidi, text_set

if TYPE_CHECKING:
    from dissensus.arrays import Ints
    from dissensus.evaluation.probabilities import Runs
    from dissensus.votes.table import Votes
    from dissensus_train.studies.labelled import LabelledItems

SETS = ("words", "popquorn", "chaosnli-s", "chaosnli-m", "ferplus", "cifar-10h", "md-agreement")
ALSO = ("words-majority",)
KEPT = Path("local/together")
FOLDS = 5
SEEDS = 5
STRENGTHS = (0.01, 0.1, 1.0, 10.0)


@dataclass(frozen=True, eq=False)
class Predicted:
    """People's votes on items, and what a model that saw none of them says: (seeds, items, classes), same order."""

    votes: Votes
    predictions: Predictions


def predicted(name: str) -> Predicted:
    """The votes and predictions of a set; made where they are not kept yet, which takes up to minutes."""
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"{name}.npz"
    if not path.is_file():
        votes, runs = _MAKERS[name]()
        np.savez(
            path,
            counts=votes.counts,
            items=np.array(votes.items.tolist(), dtype=np.str_),
            classes=votes.classes,
            ordered=votes.ordered,
            runs=runs,
        )
    held = np.load(path)
    classes = tuple(held["classes"].tolist())
    votes = votes_from_counts(held["counts"], items=held["items"], classes=classes, ordered=bool(held["ordered"]))
    runs = held["runs"].astype(np.float64)
    system = Predictions(
        probabilities=runs / runs.sum(axis=-1, keepdims=True),
        items=votes.items,
        classes=classes,
        seeds=tuple(range(len(runs))),
    )
    return Predicted(votes, system)


def _words(method: str) -> tuple[Votes, Runs]:
    from dissensus_train.studies import run

    scored = run("words", KEPT / "words" / "runs")
    chosen = scored.opened.data.splits["test"]
    votes = scored.opened.data.votes
    assert votes is not None
    return votes.take_items(chosen), scored.systems[method].predictions["test"]


def _released(source: str) -> tuple[Votes, Runs]:
    data = chaosnli().of_source(source)
    assert data.votes is not None
    logits = np.asarray(data.features, dtype=np.float64).reshape(len(data), -1, len(data.human.classes))
    return data.votes, softmax(logits, axis=2).transpose(1, 0, 2)


def _texts(data: LabelledItems) -> tuple[Votes, Runs]:
    assert data.items is not None
    texts = data.items.texts

    def features(train: Ints) -> Any:
        return tfidf(texts, fit_tfidf(tuple(column[train] for column in texts)), silent)

    return _out_of_fold(data, features)


def _pixels(data: LabelledItems) -> tuple[Votes, Runs]:
    assert data.items is not None
    assert data.items.pixels is not None
    pixels = data.items.pixels.reshape(len(data), -1).astype(np.float32) / 255

    def features(train: Ints) -> Any:
        centre = pixels[train].mean(axis=0)
        own = pixels[train] - centre
        axes = np.linalg.eigh(own.T @ own)[1][:, -128:]
        made = (pixels - centre) @ axes
        return made / made[train].std(axis=0)

    return _out_of_fold(data, features)


def _out_of_fold(data: LabelledItems, features_of: Any) -> tuple[Votes, Runs]:
    """(seeds, items, classes) each item by logistic regressions on the other folds, of resampled training items."""
    from dissensus_train.training.logistic import fitted

    assert data.votes is not None
    rng = np.random.default_rng(0)
    share = data.human.probabilities
    fold = rng.permutation(np.arange(len(data)) % FOLDS)
    runs, strength = np.empty((SEEDS, *share.shape)), None
    for part in range(FOLDS):
        train = np.flatnonzero(fold != part)
        features = features_of(train)
        nothing = np.zeros((share.shape[1], features.shape[1] + 1))

        def said(rows: Ints, strength: float, features: Any = features, nothing: Any = nothing) -> Any:
            weights, _ = fitted(features[rows], share[rows], strength, start=nothing, tolerance=1e-7)
            return softmax(features @ weights[:, :-1].T + weights[:, -1], axis=1)

        if strength is None:
            first, other = train[: 4 * len(train) // 5], train[4 * len(train) // 5 :]
            losses = [-(share[other] * np.log(said(first, each)[other])).sum() for each in STRENGTHS]
            strength = STRENGTHS[int(np.argmin(losses))]
        for seed in range(SEEDS):
            drawn = rng.choice(train, len(train))
            runs[seed, fold == part] = said(drawn, strength)[fold == part]
    return data.votes, runs


def _few_votes() -> tuple[Votes, Runs]:
    votes = load("fer+")
    counts = np.asarray(votes.counts)
    kept = np.flatnonzero(counts.sum(axis=1) >= 6)
    counts = counts[kept]
    few = draw_votes(counts, np.full(len(counts), 3), np.random.default_rng(0))
    prior = few.sum(axis=0) / few.sum()
    rest = votes_from_counts(counts - few, items=votes.items[kept], classes=votes.classes)
    return rest, ((few + prior) / 4)[None]


_MAKERS: dict[str, Any] = {
    "words": lambda: _words("multipass"),
    "words-majority": lambda: _words("majority"),
    "popquorn": lambda: _texts(text_set("popquorn-offensiveness")),
    "chaosnli-s": lambda: _released("snli"),
    "chaosnli-m": lambda: _released("mnli"),
    "ferplus": _few_votes,
    "cifar-10h": lambda: _pixels(cifar_10h()),
    "md-agreement": lambda: _texts(lewidi("md-agreement")),
}


if __name__ == "__main__":
    for name in sys.argv[1:] or (*SETS, *ALSO):
        began = time.perf_counter()
        made = predicted(name)
        share = made.votes.counts / made.votes.counts.sum(axis=1, keepdims=True)
        mean = made.predictions.probabilities.mean(axis=0)
        loss, alone = (-(share * np.log(np.maximum(q, 1e-12))).sum(axis=1).mean() for q in (mean, share.mean(axis=0)))
        took = time.perf_counter() - began
        print(f"{name:15} {made.votes}, {made.predictions}: soft NLL {loss:.3f} (marginal {alone:.3f}), {took:.0f} s")
