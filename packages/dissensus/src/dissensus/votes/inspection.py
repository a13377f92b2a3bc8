"""`inspect`: everything worth knowing about a panel's votes before they become labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import entr

from dissensus.bootstrap import json_fields
from dissensus.errors import InputError
from dissensus.frames import Framed
from dissensus.votes.added import added_to
from dissensus.votes.agreement import (
    TITLES,
    Agreement,
    ClassAlpha,
    agreement,
    class_alpha,
    class_mass,
    interval_over,
    single_choice,
    vote_weights,
)
from dissensus.votes.annotators import AnnotatorAgreement, annotator_agreement, models_beside_people, unsure_judgements
from dissensus.votes.kinds import people_alone
from dissensus.votes.reading import votes_in
from dissensus.votes.reliability import SplitHalf, split_half_reliability
from dissensus.votes.sides import PositionBias, on_one_side, position_bias, symmetric

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints, Table
    from dissensus.bootstrap import Estimate, Seed
    from dissensus.votes.table import Votes

FEWEST: Final = 20
"""An annotator with fewer compared judgements is not shown as one to look at."""

_DRAWS: Final = 200
_BINS = 20
"""A histogram has one bin per number, or this many bins where more different numbers occur."""


@dataclass(frozen=True)
class SizeSpread:
    """How a whole number is spread over items.

    `histogram` has (from, to, items) of each bin, both ends included, in rising order; bins without items are left out.
    """

    min: int
    median: float
    mean: float
    max: int
    histogram: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class ClassCount:
    """One class among all votes, yes and unsure alike; `unsure` is None where nobody could say it."""

    name: str
    votes: int
    share: float
    unsure: int | None


@dataclass(frozen=True)
class Entropy:
    """Entropy of the items' label distributions (equal-weighted frequencies), in nats, over items with votes.

    Attributes:
        mean: of the plug-in entropies -sum_k p_k ln p_k; too low where votes are few.
        median: of the same.
        corrected_mean: mean after adding (classes seen - 1) / (2 judgements) to each (Miller and Madow 1955).
    """

    mean: float
    median: float
    corrected_mean: float


@dataclass(frozen=True)
class Seconds:
    """Seconds that a judgement took, of the `known` judgements whose time is known."""

    known: int
    lower_quartile: float
    median: float
    upper_quartile: float


@dataclass(frozen=True)
class Contested:
    """An item that divides the panel: `entropy` in nats, and `counts` by class, most votes first, without zeros."""

    item: int | str
    entropy: float
    judgements: int
    counts: dict[str, int]


@dataclass(frozen=True)
class Period:
    """The judgements of one hour, day or month, in UTC.

    Attributes:
        start: as `2024-05-31T17`, `2024-05-31` or `2024-05`.
        judgements: how many were given.
        agreement: mean share of the item's other judgements, of any time, that agree with one of these; None where
            none of their items has another.
    """

    start: str
    judgements: int
    agreement: float | None


@dataclass(frozen=True, eq=False)
class ModelVotes:
    """The votes of models, which stand beside those of people and are not among them.

    Attributes:
        votes: how many there are.
        sentence: how many, from which models, and what was left out with them.
        agreement: each model beside people; None where nobody says which model gave a vote.
    """

    votes: int
    sentence: str
    agreement: AnnotatorAgreement | None

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per model that judged an item which people judged, too."""
        return [] if self.agreement is None else [row for row in self.agreement.to_rows() if row["compared"]]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"votes": self.votes, "sentence": self.sentence, "agreement_with_people": self.rows()}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Inspection(Framed):
    """What `inspect` found of people's votes. A statistic that these cannot give is None, and `notes` says why.

    One that is 0 / 0, because nothing varies, is an estimate whose value is not defined (NaN, and null in JSON).

    Attributes:
        votes: number of votes.
        judgements: number of judgements.
        items: number of items.
        annotators: number of annotators; None where votes are anonymous.
        ordered: whether the classes are a scale.
        items_without_votes: items that nobody judged.
        votes_per_item: spread of the number of votes of an item.
        judgements_per_item: the same for judgements.
        classes: votes and share of each class, in class order.
        tied: items with votes in which two or more classes share the most votes.
        tied_share: their share of the items with votes.
        unanimous_share: share of the items with two judgements or more that got votes for one class only.
        varied_share: the rest of those.
        entropy: of the items' label distributions.
        agreement: agreement statistics by name (see `dissensus.votes.agreement.agreement`).
        class_alpha: alpha of each class by itself, for data that is not single choice; else empty.
        split_half: reliability of entropies and probabilities.
        annotator_agreement: each annotator beside the rest, by the upper end of the interval of their agreement.
        to_change: how many items would be expected to have another majority if very many people had judged them; None
            where no item has two judgements.
        seconds: time of judgements.
        over_time: the judgements by hour, day or month, in the order of time, without periods in which there are none;
            empty where their times are not known.
        unsure_rate: share of judgements with at least one unsure.
        contested: the items of highest entropy; among equals those with more judgements, then in item order.
        notes: why something is missing.
        models: the votes of models, which are in none of the numbers above; None where there are none.
        position: of preferences, the position bias of each annotator and model; else empty.
        added: that votes seem to have been added where people disagreed (`dissensus.votes.added`); else empty.
        over: what the intervals of agreement are over.
    """

    votes: int
    judgements: int
    items: int
    annotators: int | None
    ordered: bool
    items_without_votes: int
    votes_per_item: SizeSpread
    judgements_per_item: SizeSpread
    classes: tuple[ClassCount, ...]
    tied: int
    tied_share: float
    unanimous_share: float | None
    varied_share: float | None
    entropy: Entropy
    agreement: dict[str, Estimate]
    class_alpha: dict[str, ClassAlpha]
    split_half: SplitHalf | None
    annotator_agreement: AnnotatorAgreement | None
    to_change: float | None
    seconds: Seconds | None
    over_time: tuple[Period, ...]
    unsure_rate: float | None
    contested: tuple[Contested, ...]
    notes: tuple[str, ...]
    models: ModelVotes | None = None
    position: tuple[PositionBias, ...] = ()
    added: str = ""
    over: str = "items"

    def __repr__(self) -> str:
        return f"Inspection({self.votes:,} votes, {self.items:,} items, {len(self.classes)} classes)"

    def __str__(self) -> str:
        return "\n".join(_summary(self))

    def records(self) -> list[dict[str, Any]]:
        """A row per statistic of agreement, then of each annotator beside the others."""
        rows = Agreement(self.agreement).records()
        panel = [] if self.annotator_agreement is None else self.annotator_agreement.to_rows()
        return rows + [
            {"statistic": f"agreement of {row['annotator']}", "value": row["agreement"]}
            | {name: row[name] for name in ("low", "high")}
            for row in panel
        ]

    def doubtful(self) -> list[dict[str, Any]]:
        """Rows of the annotators with `FEWEST` compared judgements or more, those to look at first."""
        panel = self.annotator_agreement
        return [] if panel is None else [row for row in panel.to_rows() if row["compared"] >= FEWEST]

    def facts(self) -> dict[str, str]:
        """By title, what a reader wants to know of items and judgements."""
        sizes = {"votes per item": self.votes_per_item}
        if self.judgements != self.votes:
            sizes["judgements per item"] = self.judgements_per_item
        facts = {
            title: f"{size.mean:.2f} (median {size.median:g}, {size.min:,} to {size.max:,})"
            for title, size in sizes.items()
        }
        facts["tied items"] = f"{self.tied:,} ({self.tied_share:.1%})"
        if self.unanimous_share is not None and self.varied_share is not None:
            facts["unanimous / varied items"] = f"{self.unanimous_share:.1%} / {self.varied_share:.1%}"
        mean, median = f"mean {self.entropy.mean:.3f}", f"median {self.entropy.median:.3f}"
        # Of one vote each nothing can be corrected.
        corrected = "" if self.to_change is None else f" (corrected for few votes {self.entropy.corrected_mean:.3f})"
        facts["entropy, nats"] = f"{mean}{corrected}, {median}"
        if self.seconds is not None:
            quartiles = f"half within {self.seconds.lower_quartile:.1f} to {self.seconds.upper_quartile:.1f}"
            facts["seconds per judgement"] = f"median {self.seconds.median:.1f} ({quartiles})"
        if self.unsure_rate is not None:
            facts["judgements with unsure"] = f"{self.unsure_rate:.1%}"
        return facts

    def estimates(self) -> dict[str, Estimate]:
        """By title, the statistics of agreement and the split-half reliabilities that the votes allow."""
        halves = {name: getattr(self.split_half, name, None) for name in ("entropy", "probabilities")}
        return {
            **{TITLES[name]: estimate for name, estimate in self.agreement.items()},
            **{f"split-half, {name}": estimate for name, estimate in halves.items() if estimate is not None},
        }

    def biased(self) -> list[PositionBias]:
        """Position biases of those with enough judgements, models first, then the clearest first."""
        known = [one for one in self.position if one.judgements >= FEWEST and one.low is not None]
        return sorted(known, key=lambda one: (not one.model, -abs(one.bias)))

    def sentences(self) -> tuple[str, ...]:
        """How much people agree, how many majorities more votes would change, whom to look at, and what models gave."""
        models = () if self.models is None else (f"{self.models.sentence}. All numbers are of people.",)
        added = (f"{self.added[0].upper()}{self.added[1:]}.",) if self.added else ()
        return _agree(self), *added, _change(self), _look(self), *models

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON: plain numbers, names, lists and dictionaries, and None for what is missing."""
        panel, models = self.annotator_agreement, self.models
        return {
            **json_fields(self, but=("annotator_agreement", "models")),
            "annotator_agreement": None if panel is None else panel.to_rows(),
            "sentences": list(self.sentences()),
            **({} if models is None else {"models": models.to_dict()}),
        }


def inspect(votes: Votes | Any, *, resamples: int = 1000, seed: Seed = 0, contested: int = 10) -> Inspection:
    """Sizes, classes, ties, entropy, agreement, annotators, seconds and the most contested items of a panel's votes.

    Args:
        votes: the votes, or what `read_votes` reads; those of models are told apart, and stand beside people.
        resamples: bootstrap resamples of items for the intervals; 0 for none.
        seed: of the bootstrap and of the split halves.
        contested: how many of the most contested items to list.

    Examples:
        >>> import numpy as np
        >>> from dissensus.votes import votes_from_counts
        >>> inspect(votes_from_counts(np.array([[2, 1], [0, 3]])), resamples=0).unanimous_share
        0.5
    """
    votes = votes_in(votes)
    if not len(votes):
        raise InputError("votes: there are no votes to inspect; give at least one")
    everybody, (votes, left_out) = votes, people_alone(votes)
    notes: list[str] = []
    mass, panel = class_mass(votes), votes.panel_size
    total = np.maximum(panel, 1)
    # Thirds and sevenths are rounded: rounding once more makes equal entropies equal, whatever the class order.
    entropy = np.round(entr(mass / total[:, None]).sum(axis=1), 12)
    seen, paired = panel > 0, panel >= 2
    classes_seen = np.count_nonzero(mass, axis=1)
    tied = seen & (np.count_nonzero(mass >= mass.max(axis=1, keepdims=True) * (1 - 1e-12), axis=1) > 1)
    unanimous = float((classes_seen[paired] == 1).mean()) if paired.any() else None
    corrected = entropy + np.maximum(classes_seen - 1, 0) / (2 * total)
    statistics, by_class, halves = _compare(votes, paired, notes, resamples=resamples, seed=seed)
    position = position_bias(everybody)
    if votes.pairs and not any(one.judgements >= FEWEST for one in position):
        notes.append(f"position bias: nobody judged {FEWEST} pairs that other people judged, too")
    return Inspection(
        votes=len(votes),
        judgements=votes.n_judgements,
        items=len(votes.items),
        annotators=None if votes.annotators is None else len(votes.annotators),
        ordered=votes.ordered,
        items_without_votes=int((~seen).sum()),
        votes_per_item=_spread(votes.counts.sum(axis=1)),
        judgements_per_item=_spread(panel),
        classes=_classes(votes),
        tied=int(tied.sum()),
        tied_share=float(tied.sum() / seen.sum()),
        unanimous_share=unanimous,
        varied_share=None if unanimous is None else 1.0 - unanimous,
        entropy=Entropy(float(entropy[seen].mean()), float(np.median(entropy[seen])), float(corrected[seen].mean())),
        agreement=statistics,
        class_alpha=by_class,
        split_half=halves,
        annotator_agreement=_annotators(votes, notes),
        to_change=_to_change(mass[seen], pairs=votes.pairs, seed=seed) if paired.any() else None,
        seconds=_seconds(votes, notes),
        over_time=_over_time(votes, mass),
        unsure_rate=None if votes.unsure is None else float(unsure_judgements(votes).mean()),
        contested=_contested(votes, entropy, contested),
        notes=(*notes, *(() if votes.unsure is not None else ("unsure rate: the votes hold no responses of unsure",))),
        models=ModelVotes(everybody.n_model_votes, left_out, models_beside_people(everybody)) if left_out else None,
        position=position,
        added=added_to(votes),
        over=interval_over(votes),
    )


def _compare(
    votes: Votes, paired: Any, notes: list[str], *, resamples: int, seed: Seed
) -> tuple[dict[str, Estimate], dict[str, ClassAlpha], SplitHalf | None]:
    """Agreement, alpha by class and split-half reliability, as far as there are judgements to compare."""
    if not paired.any():
        notes.append("agreement: no item has two judgements, so there is no pair to compare")
        notes.append("split-half reliability: no item has two judgements to deal into halves")
        return {}, {}, None
    statistics = agreement(votes, resamples=resamples, seed=seed)
    if not votes.ordered:
        notes.append("ordinal and interval alpha: the classes are not marked as an ordered scale")
    elif not single_choice(votes):
        notes.append("ordinal and interval alpha: judgements with several votes or none have no place on a scale")
    by_class = {} if single_choice(votes) else class_alpha(votes, resamples=resamples, seed=seed)
    notes.extend(
        f"alpha of '{name}' without unsure: no item has two answers of yes or no"
        for name, alpha in by_class.items()
        if alpha.without_unsure is None
    )
    if paired.sum() < 2:
        notes.append("split-half reliability: only one item has two judgements, and a correlation needs two items")
        return statistics, by_class, None
    halves = split_half_reliability(votes, resamples=resamples, seed=seed)
    if halves.entropy is None:
        notes.append("split-half reliability of entropy: fewer than two items have four judgements")
    return statistics, by_class, halves


def _spread(size: Ints) -> SizeSpread:
    numbers, items = np.unique(size, return_counts=True)
    low, high = int(numbers[0]), int(numbers[-1])
    width = 1 if numbers.size <= _BINS else -(-(high - low + 1) // _BINS)
    bins, place = np.unique((numbers - low) // width, return_inverse=True)
    counts = zip((low + bins * width).tolist(), np.bincount(place, weights=items).tolist(), strict=True)
    histogram = tuple((start, min(start + width - 1, high), int(count)) for start, count in counts)
    return SizeSpread(low, float(np.median(size)), float(size.mean()), high, histogram)


def _classes(votes: Votes) -> tuple[ClassCount, ...]:
    n_classes = len(votes.classes)
    count = np.bincount(votes.label, minlength=n_classes)
    unsure = None if votes.unsure is None else np.bincount(votes.label[votes.unsure], minlength=n_classes)
    return tuple(
        ClassCount(name, int(count[k]), float(count[k] / len(votes)), None if unsure is None else int(unsure[k]))
        for k, name in enumerate(votes.classes)
    )


def _to_change(mass: Table, *, pairs: bool, seed: Seed) -> float:
    """The expected number of items whose most voted class is not the one that most people would choose.

    What people would choose of an item has a Dirichlet posterior: its votes, and one more that is spread as all votes
    are. Items with the same votes are drawn once.
    """
    if mass.shape[1] < 2:
        return 0.0
    shares = mass.sum(axis=0) / mass.sum()
    mass, shares = (on_one_side(mass), symmetric(shares)) if pairs else (mass, shares)
    rows, times = np.unique(mass, axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    other = np.empty(len(rows))
    for start in range(0, len(rows), 1 << 12):
        block = rows[start : start + (1 << 12)]
        # A Dirichlet is gammas divided by their sum, which does not change which is the largest.
        drawn = rng.standard_gamma(np.maximum(block + shares, 1e-9), size=(_DRAWS, *block.shape))
        other[start : start + len(block)] = (drawn.argmax(axis=2) != block.argmax(axis=1)).mean(axis=0)
    return float(other @ times)


def _agree(inspection: Inspection) -> str:
    pairs = inspection.agreement.get("pairwise_agreement")
    alpha = inspection.agreement.get("krippendorff_alpha_nominal")
    if pairs is None:
        return "No item has two judgements that could be compared, so nothing can be said about agreement."
    low, high = pairs.low, pairs.high
    sure = "" if low is None or high is None else f" ({low:.0%} to {high:.0%}, over {inspection.over})"
    chance = ""
    if alpha is not None:
        what = f"{alpha.value:.2f}, where 1 is full agreement" if alpha.defined else str(alpha)
        chance = f"; Krippendorff's alpha is {what}"
    odd = ""
    if pairs.value == 1 and inspection.judgements >= FEWEST:
        odd = " Nobody ever disagrees: is each label one that was settled for the item, and repeated?"
    return f"Two people who judge the same item agree in {pairs.value:.0%} of cases{sure}{chance}.{odd}"


def _change(inspection: Inspection) -> str:
    items = inspection.items - inspection.items_without_votes
    if inspection.to_change is None:
        return "Nor can it be said how many majorities would change with more votes."
    number = round(inspection.to_change)
    if number < 1:
        return f"More votes would hardly change the majority of any of the {items:,} items."
    return (
        f"With many more votes, about {number:,} of the {items:,} items ({inspection.to_change / items:.1%}) would "
        "have another majority."
    )


def _look(inspection: Inspection) -> str:
    if inspection.annotators is None:
        return (
            "Who voted is not known: nobody can be looked at, and if few people judged all, intervals are too narrow."
        )
    if inspection.annotator_agreement is None:
        return "Nobody is listed beside groups."
    rows = inspection.doubtful()
    if not rows:
        return f"Nobody has {FEWEST} judgements to compare, too few to say whom to look at."
    usual = float(np.median([row["agreement"] for row in rows]))
    low = [row for row in rows if row["high"] < usual - 0.1]
    if not low:
        who = f"No annotator with {FEWEST} judgements or more"
        return f"{who} agrees clearly less with the rest than is usual ({usual:.2f})."
    names = ", ".join(f"{row['annotator']} ({row['agreement']:.2f})" for row in low[:3])
    more = f" and {len(low) - 3} more" if len(low) > 3 else ""
    return f"Look at {names}{more}: they agree clearly less with the rest than is usual ({usual:.2f})."


def _annotators(votes: Votes, notes: list[str]) -> AnnotatorAgreement | None:
    if votes.annotators is None:
        notes.append("annotators: the votes are anonymous")
        return None
    panel = annotator_agreement(votes).lowest_first()
    if alone := int((panel.compared == 0).sum()):
        notes.append(f"annotators: {alone:,} have no agreement, because nobody else judged an item of theirs")
    return panel


def _seconds(votes: Votes, notes: list[str]) -> Seconds | None:
    known = np.empty(0) if votes.seconds is None else votes.seconds[~np.isnan(votes.seconds)]
    if not known.size:
        notes.append("seconds: how long judgements took is not recorded")
        return None
    return Seconds(int(known.size), *np.quantile(known, [0.25, 0.5, 0.75]).tolist())


def _over_time(votes: Votes, mass: Table) -> tuple[Period, ...]:
    """Judgements by hour where all lie within three days, by day within 120, else by month."""
    known = np.empty(0, np.int64) if votes.time is None else np.flatnonzero(~np.isnat(votes.time))
    if votes.time is None or not known.size:
        return ()
    moments = votes.time[known]
    days = (moments.max() - moments.min()) / np.timedelta64(1, "D")
    start, period = np.unique(
        moments.astype(f"datetime64[{'h' if days <= 3 else 'D' if days <= 120 else 'M'}]"), return_inverse=True
    )
    weight = vote_weights(votes)
    alike = weight * (mass[votes.item, votes.label] - weight)
    same = np.bincount(votes.judgement_of_vote, weights=alike, minlength=votes.n_judgements)
    others = votes.panel_size[votes.judgement_item] - 1
    compared = others[known] > 0
    share = same[known][compared] / others[known][compared]
    size, trials = np.bincount(period), np.bincount(period[compared], minlength=start.size)
    agreement = np.bincount(period[compared], weights=share, minlength=start.size) / np.maximum(trials, 1)
    return tuple(
        Period(str(begin), int(n), float(mean) if some else None)
        for begin, n, mean, some in zip(start, size, agreement, trials, strict=True)
    )


def _contested(votes: Votes, entropy: Floats, most: int) -> tuple[Contested, ...]:
    divided = np.flatnonzero(entropy > 0)
    order = divided[np.lexsort((-votes.panel_size[divided], -entropy[divided]))][:most]
    names, counts = votes.items[order].tolist(), votes.counts[order]
    ranked = np.argsort(-counts, axis=1, kind="stable")
    return tuple(
        Contested(
            item=name,
            entropy=float(entropy[i]),
            judgements=int(votes.panel_size[i]),
            counts={votes.classes[k]: int(row[k]) for k in rank if row[k]},
        )
        for name, i, row, rank in zip(names, order, counts, ranked, strict=True)
    )


def _summary(inspection: Inspection) -> list[str]:
    """A screenful of plain text: a title and a statistic on each line."""
    panel = "anonymous votes" if inspection.annotators is None else f"{inspection.annotators:,} annotators"
    lines = [
        f"{inspection.votes:,} votes, {inspection.items:,} items, {len(inspection.classes)} classes, {panel}",
        *inspection.sentences(),
    ]

    def say(title: str, what: str) -> None:
        lines.append(f"  {title:<32}{what}")

    def compare(row: dict[str, Any]) -> None:
        what = f"{row['agreement']:.3f} [{row['low']:.3f}, {row['high']:.3f}], {row['expected']:.3f} by chance"
        say(str(row["annotator"]), f"{what}, {row['judgements']:,} judgements")

    most = sorted(inspection.classes, key=lambda count: -count.votes)
    more = f", and {len(most) - 6} more" if len(most) > 6 else ""
    say("classes", ", ".join(f"{count.name}: {count.share:.1%}" for count in most[:6]) + more)
    for title, what in (inspection.facts() | inspection.estimates()).items():
        say(title, str(what))
    for name, alpha in inspection.class_alpha.items():
        doubt = "" if inspection.unsure_rate is None else f", without unsure {alpha.without_unsure or 'missing'}"
        say(f"alpha of '{name}'", f"{alpha.alpha}{doubt}")
    if inspection.annotator_agreement is not None and len(inspection.annotator_agreement):
        lines.append(f"least agreement with the rest ({FEWEST} judgements or more)")
        for row in inspection.doubtful()[:5]:
            compare(row)
    if inspection.models is not None and inspection.models.rows():
        lines.append("models beside people")
        for row in inspection.models.rows():
            compare(row)
    if inspection.biased():
        lines.append("position bias: preference for the side shown on the left, beyond that of others")
        for one in inspection.biased()[:5]:
            say(one.annotator, f"{one.bias:+.3f} [{one.low:+.3f}, {one.high:+.3f}], {one.judgements:,} judgements")
    if inspection.contested:
        lines.append("most contested items")
        for item in inspection.contested[:5]:
            votes = ", ".join(f"{name}: {count}" for name, count in item.counts.items())
            say(str(item.item), f"{item.entropy:.3f} nats, {votes}")
    lines.extend(f"missing: {note}" for note in inspection.notes)
    return lines
