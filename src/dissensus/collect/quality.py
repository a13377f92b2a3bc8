"""The quality of what has been collected: for each annotator, each item and each class.

Nothing here excludes anybody: a flag is a sentence for the researcher to weigh. What counts as a miss of a gold item is
the study's rule and was decided when the answer was saved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.ndimage import median
from scipy.special import betaincinv, entr

from dissensus.collect.answers import NO, UNSURE, YES
from dissensus.collect.collected import (
    names_of_items,
    pseudonyms,
    read_judgements,
    votes_of_judgements,
)
from dissensus.errors import InputError
from dissensus.labels.dawid_skene import one_coin
from dissensus.labels.schemes import fit_concentration, weighted
from dissensus.votes.agreement import class_alpha
from dissensus.votes.annotators import annotator_agreement

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints, Mask, Table
    from dissensus.bootstrap import Estimate
    from dissensus.collect.collected import Judgements
    from dissensus.collect.study import CollectStudy
    from dissensus.votes.table import Votes

HURRIED: Final = 1 / 3
"""An annotator whose median time is below this share of the panel's is flagged."""

STRAIGHT: Final = 0.5
"""An annotator who gives all classes one answer in more than this share of items, and in twice the panel's, is
flagged."""


@dataclass(frozen=True, kw_only=True)
class AnnotatorQuality:
    """One annotator beside the rest of the panel. None stands where nothing is known yet.

    Attributes:
        annotator: id.
        pseudonym: the name in exports.
        state: how far they have come.
        paid: whether they are paid.
        counts: whether their judgements count towards k.
        exported: whether their judgements leave with the export.
        reason: why they are excluded, if they are.
        judgements: items judged, gold apart.
        gold_seen: gold items judged.
        gold_missed: of these, missed.
        seconds: median seconds of an item.
        class_seconds: median seconds from one class's last answer to the next one's.
        unsure: share of responses that are unsure.
        straight_lining: share of judgements that give every class the same answer. All No is an honest answer to an
            item of no class, so compare with the panel.
        longest_run: the most items in a row with the very same answers.
        agreement: mean share of the others' votes on an item that equal this one's, leaving this annotator out.
        agreement_low: lower end of its 95 % interval.
        agreement_high: upper end.
        expected_agreement: what chance would give.
        reliability: probability of the right class by one-coin Dawid-Skene.
        reliability_low: lower end of its 95 % interval, which takes the right classes as known.
        reliability_high: upper end.
        changes: answers changed, a judgement.
        hidden_seconds: mean seconds with the page hidden, a judgement.
        flags: what a researcher should look at, as sentences.
    """

    annotator: int
    pseudonym: str
    state: str
    paid: bool
    counts: bool
    exported: bool
    reason: str | None
    judgements: int
    gold_seen: int
    gold_missed: int
    seconds: float | None
    class_seconds: float | None
    unsure: float | None
    straight_lining: float | None
    longest_run: int
    agreement: float | None
    agreement_low: float | None
    agreement_high: float | None
    expected_agreement: float | None
    reliability: float | None
    reliability_low: float | None
    reliability_high: float | None
    changes: float | None
    hidden_seconds: float | None
    flags: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ItemQuality:
    """What the panel said about one item. None stands where nobody has judged it yet.

    Attributes:
        item: id.
        name: of the item.
        counted: judgements that count.
        wanted: judgements that are wanted.
        missing: judgements still to come.
        problems: reports of a problem with the item.
        answers: for each class, how many said yes, no and unsure.
        equal_weighted: the label distribution where an unsure weighs as much as a yes; the last entry is `none`,
            except for single choices.
        uncertainty_weighted: the same where an unsure weighs half.
        entropy: posterior mean of the entropy of the uncertainty-weighted distribution, in nats.
        entropy_low: lower end of its 95 % interval.
        entropy_high: upper end.
    """

    item: int
    name: str
    counted: int
    wanted: int
    missing: int
    problems: int
    answers: tuple[tuple[int, int, int], ...]
    equal_weighted: tuple[float, ...] | None
    uncertainty_weighted: tuple[float, ...] | None
    entropy: float | None
    entropy_low: float | None
    entropy_high: float | None


@dataclass(frozen=True, kw_only=True)
class ClassAgreement:
    """How well the panel agrees on one class.

    Attributes:
        label: the class.
        alpha: Krippendorff's alpha, nominal, over yes, no and unsure; None where no item has two judgements.
        without_unsure: the same over yes and no, an unsure counting as no answer; None likewise.
    """

    label: str
    alpha: Estimate | None
    without_unsure: Estimate | None


def annotator_quality(cursor: Any, study: CollectStudy) -> list[AnnotatorQuality]:
    """Every annotator who has judged an item, gold or not, by rising id.

    Those who count are compared with those who count; the excluded with everybody.
    """
    cursor.execute(
        "SELECT id, pseudonym, state, paid, counts, exported, reason, gold_done, gold_missed FROM annotator "
        "WHERE done + gold_done > 0 ORDER BY id"
    )
    people = cursor.fetchall()
    if not people:
        return []
    ids = np.array([row[0] for row in people], dtype=np.int64)
    found = read_judgements(cursor, study, exported=False, counted=False)
    columns = _behaviour(found, ids)
    counting = np.array([bool(row[4]) for row in people])
    for column, values in _standing(cursor, study, found, ids, counting=counting).items():
        columns[column] = values
    panel = {
        name: float(np.median(known)) if (known := columns[name][~np.isnan(columns[name])]).size else np.nan
        for name in ("seconds", "straight_lining")
    }
    columns |= {"gold_seen": np.array([row[7] for row in people]), "gold_missed": np.array([row[8] for row in people])}
    named = {name: values.tolist() for name, values in columns.items()}
    return [
        AnnotatorQuality(
            annotator=row[0],
            pseudonym=row[1],
            state=row[2],
            paid=bool(row[3]),
            counts=bool(row[4]),
            exported=bool(row[5]),
            reason=row[6],
            flags=_flags(dict(zip(named, values, strict=True)), panel),
            **{name: _known(value) for name, value in zip(named, values, strict=True)},
        )
        for row, values in zip(people, zip(*named.values(), strict=True), strict=True)
    ]


def item_quality(cursor: Any, study: CollectStudy, *, draws: int = 200, seed: int = 0) -> list[ItemQuality]:
    """Every item that votes are collected for, by rising id.

    Args:
        cursor: of a database read.
        study: the study.
        draws: of the posterior, for the interval of the entropy.
        seed: of these draws.
    """
    cursor.execute("SELECT id, name, counted, wanted, problems FROM item WHERE role = 'vote' ORDER BY id")
    rows = cursor.fetchall()
    found = read_judgements(cursor, study)
    ids = np.array([row[0] for row in rows], dtype=np.int64)
    place = np.searchsorted(ids, found.item)
    shape = (len(rows), len(study.classes), 3)
    answers = np.zeros(shape, dtype=np.int64)
    for column, value in enumerate((YES, NO, UNSURE)):
        np.add.at(answers[:, :, column], place, found.response == value)
    soft: list[tuple[Any, ...]] = [(None,) * 5] * len(rows)
    if len(found):
        names = {row[0]: row[1] for row in rows}
        votes = votes_of_judgements(found, study, items=names, annotators=pseudonyms(cursor))
        equal, unequal = (weighted(votes, name).probabilities for name in ("equal-weighted", "uncertainty-weighted"))
        mean, low, high = entropy_interval(unequal * votes.panel_size[:, None], draws=draws, seed=seed)
        measured = zip(equal.tolist(), unequal.tolist(), mean.tolist(), low.tolist(), high.tolist(), strict=True)
        known = dict(zip(np.unique(place).tolist(), measured, strict=True))
        soft = [known.get(at, (None,) * 5) for at in range(len(rows))]
    return [
        ItemQuality(
            item=item,
            name=name,
            counted=counted,
            wanted=wanted,
            missing=max(wanted - counted, 0),
            problems=problems,
            answers=tuple((yes, no, unsure) for yes, no, unsure in table),
            equal_weighted=None if equal_row is None else tuple(equal_row),
            uncertainty_weighted=None if unequal_row is None else tuple(unequal_row),
            entropy=entropy,
            entropy_low=entropy_low,
            entropy_high=entropy_high,
        )
        for (item, name, counted, wanted, problems), table, (
            equal_row,
            unequal_row,
            entropy,
            entropy_low,
            entropy_high,
        ) in zip(rows, answers.tolist(), soft, strict=True)
    ]


def class_agreement(cursor: Any, study: CollectStudy, *, resamples: int = 200, seed: int = 0) -> list[ClassAgreement]:
    """Krippendorff's alpha of every class, with unsure as an answer and with unsure as missing.

    Args:
        cursor: of a database read.
        study: the study.
        resamples: of items, for the intervals.
        seed: of the resamples.
    """
    found = read_judgements(cursor, study)
    nothing = [ClassAgreement(label=name, alpha=None, without_unsure=None) for name in study.classes]
    if not len(found) or np.unique(found.item).size == len(found):
        return nothing
    votes = votes_of_judgements(found, study, items=names_of_items(cursor), annotators=pseudonyms(cursor))
    alphas = class_alpha(votes, resamples=resamples, seed=seed)
    return [
        ClassAgreement(label=name, alpha=alphas[name].alpha, without_unsure=alphas[name].without_unsure)
        for name in study.classes
    ]


def panel_concentration(mass: Table) -> Floats:
    """(classes,) the concentration of a Dirichlet prior, fitted to all items and no heavier than a uniform one.

    The bound keeps a panel that has judged only few, or only like, items from believing that all others are like them.

    Args:
        mass: (items, classes) judgements for each class.
    """
    fitted = fit_concentration(mass)
    return np.asarray(fitted * min(1.0, mass.shape[1] / fitted.sum()))


def entropy_interval(mass: Table, *, draws: int, seed: int, level: float = 0.95) -> tuple[Floats, Floats, Floats]:
    """(items,) mean and interval of the entropy, in nats, under the Dirichlet posterior of each label distribution.

    Args:
        mass: (items, classes) judgements for each class, a judgement spread over its votes.
        draws: from each posterior.
        seed: of the draws.
        level: of the interval.
    """
    shape = mass + panel_concentration(mass)
    generator = np.random.default_rng(seed)
    entropies = np.empty((draws, mass.shape[0]))
    for each in range(draws):
        # Gammas divided by their sum are Dirichlet; a class of no mass may draw 0, and 0 ln 0 is 0.
        gammas = generator.standard_gamma(shape)
        entropies[each] = entr(gammas / gammas.sum(axis=1, keepdims=True)).sum(axis=1)
    low, high = np.quantile(entropies, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return entropies.mean(axis=0), low, high


def _behaviour(found: Judgements, ids: Ints) -> dict[str, Any]:
    """How each annotator went about it, from their own judgements alone."""
    who = np.searchsorted(ids, found.annotator)
    n = ids.size
    judged = np.bincount(who, minlength=n)
    same = (
        (found.response == found.response[:, :1]).all(axis=1) if found.response.shape[1] > 1 else np.zeros(len(found))
    )
    steps = np.diff(np.sort(found.last_seconds, axis=1), axis=1)
    return {
        "judgements": judged,
        "seconds": _medians(found.seconds, who, n),
        "class_seconds": _medians(steps.ravel(), np.repeat(who, steps.shape[1]), n),
        "unsure": _means((found.response == UNSURE).mean(axis=1), who, n),
        "straight_lining": _means(same, who, n),
        "longest_run": _longest_runs(found, who, n),
        "changes": _means(found.changes.sum(axis=1), who, n),
        "hidden_seconds": _means(found.hidden_seconds, who, n),
    }


def _standing(cursor: Any, study: CollectStudy, found: Judgements, ids: Ints, *, counting: Mask) -> dict[str, Floats]:
    """How each annotator stands beside the others."""
    names = {"items": names_of_items(cursor), "annotators": pseudonyms(cursor)}
    columns = (
        "agreement",
        "agreement_low",
        "agreement_high",
        "expected_agreement",
        "reliability",
        "reliability_low",
        "reliability_high",
    )
    table = np.full((ids.size, len(columns)), np.nan)
    counted = np.isin(found.annotator, ids[counting])
    for panel, people in ((found.where(counted), counting), (found, ~counting)):
        if not len(panel) or not people.any():
            continue
        judged_by = np.unique(panel.annotator)
        rows = np.searchsorted(ids, judged_by)
        mine = people[rows]
        votes = votes_of_judgements(panel, study, **names)
        table[rows[mine]] = _beside_others(votes)[mine]
    return dict(zip(columns, table.T, strict=True))


def _beside_others(votes: Votes) -> Table:
    """(annotators, 7) leave-one-out agreement with its interval and chance, and reliability with its interval."""
    agreement = annotator_agreement(votes)
    columns = [agreement.agreement, agreement.low, agreement.high, agreement.expected]
    try:
        skill = one_coin(votes).skill
    except InputError:
        skill = None
    if skill is None:
        return np.column_stack([*columns, *(np.full(len(agreement), np.nan) for _ in range(3))])
    # Only what somebody else judged too can tell right from wrong.
    trials = agreement.compared
    right, wrong = skill * trials + 0.5, (1 - skill) * trials + 0.5
    known = np.where(trials > 0, skill, np.nan)
    ends = [np.where(trials > 0, betaincinv(right, wrong, tail), np.nan) for tail in (0.025, 0.975)]
    return np.column_stack([*columns, known, *ends])


def _flags(values: dict[str, Any], panel: dict[str, float]) -> tuple[str, ...]:
    out = []
    if values["gold_missed"]:
        out.append(f"missed {values['gold_missed']} of {values['gold_seen']} gold items")
    if values["seconds"] < HURRIED * panel["seconds"]:
        out.append(f"{values['seconds']:.1f} s an item, where the panel takes {panel['seconds']:.1f}")
    if values["straight_lining"] > max(STRAIGHT, 2 * panel["straight_lining"]):
        out.append(f"one answer for all classes in {values['straight_lining']:.0%} of items")
    if values["agreement_high"] < values["expected_agreement"]:
        out.append("agrees less than chance would")
    elif values["agreement_low"] <= values["expected_agreement"] and values["judgements"] >= 20:
        out.append("agrees no more than chance would")
    return tuple(out)


def _longest_runs(found: Judgements, who: Ints, n: int) -> Ints:
    """(n,) for each annotator the most judgements in a row with the very same responses."""
    if not len(found):
        return np.zeros(n, dtype=np.int64)
    _, pattern = np.unique(found.response, axis=0, return_inverse=True)
    order = np.lexsort((found.number, who))
    who, pattern = who[order], pattern.ravel()[order]
    begins = np.ones(len(found), dtype=np.bool_)
    begins[1:] = (who[1:] != who[:-1]) | (pattern[1:] != pattern[:-1])
    first = np.flatnonzero(begins)
    length = np.diff(np.append(first, len(found)))
    out = np.zeros(n, dtype=np.int64)
    np.maximum.at(out, who[first], length)
    return out


def _medians(values: Floats, group: Ints, groups: int) -> Floats:
    """(groups,) the median of each group's known values; NaN where it has none."""
    known = ~np.isnan(values)
    some = np.unique(group[known])
    out = np.full(groups, np.nan)
    if some.size:
        out[some] = median(values[known], group[known], some)
    return out


def _means(values: Any, group: Ints, groups: int) -> Floats:
    """(groups,) the mean of each group's known values; NaN where it has none."""
    known = ~np.isnan(values)
    size = np.bincount(group[known], minlength=groups)
    total = np.bincount(group[known], weights=values[known], minlength=groups)
    return np.asarray(np.divide(total, size, out=np.full(groups, np.nan), where=size > 0))


def _known(value: Any) -> Any:
    return None if value != value else value
