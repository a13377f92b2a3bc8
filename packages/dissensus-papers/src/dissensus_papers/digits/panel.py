"""A simulated panel that looks at images of digits and answers yes, no or unsure to every class.

What it perceives is not a synthetic label: every annotator looks through one of several pairs of eyes, each a
classifier that learnt from different digits and has an acuity of its own (blur, contrast, noise), in learning as in
looking. How strongly it must see a class to say yes, and what it calls unsure, are habits of the annotator
(`dissensus.votes.Habits`).
Whatever is made from these votes is a simulated result and must say so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.special import softmax

from dissensus.errors import InputError
from dissensus.labels import label
from dissensus.randomness import Purpose, stream
from dissensus.votes import Habits, simulate_responses
from dissensus_papers.digits.digits import DIGITS
from dissensus_papers.digits.ensembles import train_member

if TYPE_CHECKING:
    from dissensus.arrays import Confusions, Floats, Ints, Mask, Table
    from dissensus.votes import Votes
    from dissensus_papers.digits.digits import Digits, Pixels
    from dissensus_papers.digits.ensembles import Grey

PANEL_SIZES: Final = {3: 26, 4: 341, 5: 849, 6: 2620, 7: 1399, 8: 271, 9: 14, 10: 10}
"""How many images of the soft-digits paper have so many judgements (its appendix B); the mean is 6.07."""

ITEMS_EACH: Final = 70
"""Images that an annotator of the paper judged."""

HABITS: Final = Habits(noise=0.05, threshold=0.5, spread=0.03, doubt=0.35, careless=0.02, slip=0.006)
"""Calibrated once on published marginals of the soft-digits paper (table 1: unanimous items, agreement with the
original labels, unsure proportion, mean uncertainty, `none`) by a random search over noise, threshold and doubt, then
rounded; carelessness and the spread of thresholds are assumed. No result of training was looked at."""

SIMULATED: Final = "simulated panel"
"""What every note on these votes begins with."""


@dataclass(frozen=True, kw_only=True)
class Eyes:
    """How the annotators of a simulated panel see.

    Attributes:
        pairs: number of pairs of eyes; every annotator looks through one.
        models: kinds of network, in turn.
        images: number of digits that each learnt from, drawn at random.
        batches: batches that each learns from.
        blur: standard deviation of the blur in pixels, the least and the most; each pair of eyes has its own.
        contrast: exponent of grey values, the least and the most: below 1 a faint stroke is seen as a stroke, above 1
            it is not seen at all.
        grain: standard deviation of the noise on every pixel, whose values are 0 to 1.
        softness: divides the logits: above 1, evidence is spread over more classes.
    """

    pairs: int = 6
    models: tuple[str, ...] = ("lenet",)
    images: int = 15_000
    batches: int = 935
    blur: tuple[float, float] = (0.3, 1.0)
    contrast: tuple[float, float] = (0.4, 2.5)
    grain: float = 0.1
    softness: float = 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class SimulatedPanel:
    """What a simulated panel said, and what it would say in the end.

    Attributes:
        votes: yes, unsure and none of the annotators who passed the attention checks, with seconds.
        truth: (items, classes) the distribution that attentive annotators of this population approach as their number
            grows; every judgement counts the same, yes and unsure alike.
        checked: (annotators,) the share of attention checks that each annotator passed.
        failed: (annotators,) true for those whose judgements were left out.
        note: a sentence that says that this is simulated, and how.
    """

    votes: Votes
    truth: Table
    checked: Floats
    failed: Mask
    note: str


def perceive(digits: Digits, images: Pixels, *, seed: int, eyes: Eyes) -> Confusions:
    """(pairs of eyes, images, classes) the evidence for each class that each pair of eyes sees, rows sum to 1.

    `digits` are what the eyes learn from, and `images` what they look at.
    """
    evidence = np.empty((eyes.pairs, len(images), len(DIGITS)))
    for pair in range(eyes.pairs):
        generator = stream(seed, Purpose.LABELS, pair)
        blur, contrast = generator.uniform(*eyes.blur), np.exp(generator.uniform(*np.log(eyes.contrast)))
        see = partial(_seen, blur=blur, contrast=contrast, grain=eyes.grain, generator=generator)
        learnt = digits.take(generator.permutation(len(digits))[: eyes.images])
        logits = train_member(
            see(learnt.images),
            learnt.labels,
            model=eyes.models[pair % len(eyes.models)],
            batches=eyes.batches,
            seed=seed * 1000 + pair,
        )
        evidence[pair] = softmax(logits(see(images)) / eyes.softness, axis=1)
    return evidence


def simulate_panel(
    evidence: Confusions,
    checks: Confusions,
    check_labels: Ints,
    *,
    seed: int,
    habits: Habits = HABITS,
    pass_mark: float = 0.5,
    truth_judgements: int = 240,
) -> SimulatedPanel:
    """Let a panel judge items, with attention checks in between: clear items of known class.

    An attention check is passed where the known class is answered with yes or unsure and no more than one other class
    is. Everybody gets all checks; anybody who passes fewer than `pass_mark` of them is left out.

    Args:
        evidence: (pairs of eyes, items, classes) from `perceive`.
        checks: (pairs of eyes, check items, classes) the same of the attention checks.
        check_labels: (check items,) their known classes.
        seed: the random seed.
        habits: how annotators answer.
        pass_mark: the least share of checks to pass.
        truth_judgements: attentive judgements per item behind `truth`; its standard error is at most
            1 / (2 sqrt(truth_judgements)).
    """
    n_items, n_checks = evidence.shape[1], checks.shape[1]
    sizes = _panel_sizes(n_items, stream(seed, Purpose.ORDER))
    annotators = max(round(sizes.sum() / ITEMS_EACH), int(sizes.max()) + 1)
    all_votes = simulate_responses(
        np.concatenate([evidence, checks], axis=1),
        np.concatenate([sizes, np.full(n_checks, annotators)]),
        annotators=annotators,
        seed=seed,
        habits=habits,
        classes=DIGITS,
    )
    annotator = all_votes.judgement_annotator
    assert annotator is not None, "simulated annotators are known"
    checked = _checks_passed(all_votes, n_items, check_labels)
    failed = np.asarray(checked < pass_mark)
    kept = np.flatnonzero((all_votes.judgement_item < n_items) & ~failed[annotator])
    votes = all_votes.take_judgements(kept).take_items(np.arange(n_items))
    alone = np.flatnonzero(votes.panel_size == 0)
    if alone.size:
        raise InputError(
            f"{SIMULATED}: all annotators of item {alone[0]} failed the attention checks, and {alone.size - 1} more "
            "items are without judgements; lower the pass mark, or let fewer annotators be careless"
        )
    return SimulatedPanel(
        votes=votes,
        truth=_truth(evidence, seed=seed, habits=replace(habits, careless=0.0), judgements=truth_judgements),
        checked=checked,
        failed=failed,
        note=(
            f"{SIMULATED}: {annotators - failed.sum():,} annotators who are classifiers with limited acuity, no people "
            f"({failed.sum():,} more failed the attention checks); {votes.panel_size.mean():.2f} judgements per item"
        ),
    )


def _seen(images: Pixels, *, blur: float, contrast: float, grain: float, generator: np.random.Generator) -> Grey:
    """(images, height, width) images as a pair of eyes of this acuity sees them; see `Eyes`."""
    grey = gaussian_filter((images.astype(np.float32) / 255) ** contrast, (0, blur, blur))
    return np.asarray(grey + grain * generator.standard_normal(grey.shape, np.float32), dtype=np.float32)


def _panel_sizes(n_items: int, generator: np.random.Generator) -> Ints:
    sizes, images = np.array(list(PANEL_SIZES)), np.array(list(PANEL_SIZES.values()))
    return generator.choice(sizes, n_items, p=images / images.sum())


def _checks_passed(votes: Votes, n_items: int, check_labels: Ints) -> Floats:
    """(annotators,) the share of the checks, which are the items from `n_items` on, that each annotator passed."""
    judgement, annotator, names = votes.judgement, votes.judgement_annotator, votes.annotators
    assert judgement is not None
    assert annotator is not None
    assert names is not None
    check = votes.judgement_item - n_items
    known = np.where(check >= 0, check_labels[np.maximum(check, 0)], -1)
    right = np.bincount(judgement, weights=votes.label == known[judgement], minlength=votes.n_judgements) > 0
    passed = right & (np.bincount(judgement, minlength=votes.n_judgements) <= 2) & (check >= 0)
    return np.bincount(annotator, weights=passed, minlength=len(names)) / len(check_labels)


def _truth(evidence: Confusions, *, seed: int, habits: Habits, judgements: int) -> Table:
    parts = []
    # So many judgements of all items at once would fill gigabytes.
    for number, first in enumerate(range(0, evidence.shape[1], 500)):
        votes = simulate_responses(
            evidence[:, first : first + 500],
            judgements,
            annotators=judgements,
            seed=int(stream(seed, Purpose.SPLIT, number).integers(2**62)),
            habits=habits,
            classes=DIGITS,
        )
        parts.append(label(votes, "equal-weighted").probabilities)
    return np.concatenate(parts)
