"""The quality of what has been collected: for each annotator, each item and each class.

Nothing here excludes anybody: a flag is a sentence for the researcher to weigh. Whether a gold item was missed is
decided by the project's rule, when the answer is saved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import betaincinv, entr

from dissensus.arrays import group_medians
from dissensus.errors import InputError
from dissensus.labels.dawid_skene import one_coin
from dissensus.labels.schemes import weighted
from dissensus.planning.allocation import panel_concentration
from dissensus.responses import NO, UNSURE, YES
from dissensus.votes.agreement import class_alpha
from dissensus.votes.annotators import annotator_agreement
from dissensus_collect.results.collected import names_of_items, pseudonyms, read_judgements, votes_of_judgements

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints, Mask, Table
    from dissensus.bootstrap import Estimate
    from dissensus.votes.table import Votes
    from dissensus_collect.project.reading import Project
    from dissensus_collect.results.collected import Judgements

HURRIED: Final = 1 / 3
"""An annotator whose median time is below this share of the panel's median is flagged."""

STRAIGHT: Final = 0.5
"""An annotator who answers all classes alike in more than this share of items, and twice as often as the panel, is
flagged."""


@dataclass(frozen=True, kw_only=True)
class AnnotatorQuality:
    """One annotator compared with the rest of the panel. None means that nothing is known yet.

    Attributes:
        annotator: id.
        pseudonym: the name in exports.
        state: how far they have come.
        paid: whether they are to be paid.
        counts: whether their judgements count towards k.
        exported: whether their judgements are exported.
        reason: why they are excluded, if they are.
        judgements: items judged, not including gold items.
        gold_seen: gold items judged.
        gold_missed: gold items answered wrongly.
        seconds: median seconds for an item.
        class_seconds: median seconds from one class's last answer to that of the next class.
        unsure: share of responses that are unsure.
        straight_lining: share of judgements that give every class the same answer. All No is an honest answer for an
            item that belongs to no class, so compare with the panel.
        longest_run: the most items in a row with exactly the same answers.
        agreement: mean share of the other annotators' votes on an item that equal this annotator's.
        agreement_low: lower end of its 95 % interval.
        agreement_high: upper end.
        expected_agreement: the agreement expected by chance.
        reliability: probability of the right class, by one-coin Dawid-Skene.
        reliability_low: lower end of its 95 % interval, which takes the right classes as known.
        reliability_high: upper end.
        changes: mean number of changed answers per judgement.
        hidden_seconds: mean seconds per judgement with the page hidden.
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
    """What the panel said about one item. None means that nobody has judged it yet.

    Attributes:
        item: the item's id.
        name: the item's name.
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
        alpha: Krippendorff's nominal alpha over yes, no and unsure; None if no item has two judgements, and not defined
            if all answers are the same.
        without_unsure: the same over yes and no, where an unsure counts as a missing answer.
    """

    label: str
    alpha: Estimate | None
    without_unsure: Estimate | None


def annotator_quality(cursor: Any, project: Project) -> list[AnnotatorQuality]:
    """Every annotator who has judged an item, gold or not, by rising id.

    Annotators who count are compared with each other; excluded ones with everybody.
    """
    cursor.execute(
        "SELECT id, pseudonym, state, paid, counts, exported, reason, gold_done, gold_missed FROM annotator "
        "WHERE done + gold_done > 0 ORDER BY id"
    )
    people = cursor.fetchall()
    if not people:
        return []
    ids = np.array([row[0] for row in people], dtype=np.int64)
    found = read_judgements(cursor, project, exported=False, counted=False)
    columns = _behaviour(found, ids)
    counting = np.array([bool(row[4]) for row in people])
    for column, values in _standing(cursor, project, found, ids, counting=counting).items():
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


def item_quality(cursor: Any, project: Project, *, draws: int = 200, seed: int = 0) -> list[ItemQuality]:
    """Every item that votes are collected for, by rising id.

    Args:
        cursor: a cursor that reads the database.
        project: the project.
        draws: how many posterior draws the interval of the entropy is made from.
        seed: of these draws.
    """
    cursor.execute(
        "SELECT id, name, counted, wanted, problems FROM item WHERE role = 'vote' AND retired_at IS NULL ORDER BY id"
    )
    rows = cursor.fetchall()
    found = read_judgements(cursor, project)
    ids = np.array([row[0] for row in rows], dtype=np.int64)
    place = np.searchsorted(ids, found.item)
    shape = (len(rows), len(project.classes.names), 3)
    answers = np.zeros(shape, dtype=np.int64)
    for column, value in enumerate((YES, NO, UNSURE)):
        np.add.at(answers[:, :, column], place, found.response == value)
    soft: list[tuple[Any, ...]] = [(None,) * 5] * len(rows)
    if len(found):
        names = {row[0]: row[1] for row in rows}
        votes = votes_of_judgements(found, project, items=names, annotators=pseudonyms(cursor))
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


def class_agreement(cursor: Any, project: Project, *, resamples: int = 200, seed: int = 0) -> list[ClassAgreement]:
    """Krippendorff's alpha of every class, with unsure as an answer and with unsure as missing.

    Args:
        cursor: a cursor that reads the database.
        project: the project.
        resamples: how often items are resampled for the intervals.
        seed: of the resamples.
    """
    found = read_judgements(cursor, project)
    nothing = [ClassAgreement(label=name, alpha=None, without_unsure=None) for name in project.classes.names]
    if not len(found) or np.unique(found.item).size == len(found):
        return nothing
    votes = votes_of_judgements(found, project, items=names_of_items(cursor), annotators=pseudonyms(cursor))
    alphas = class_alpha(votes, resamples=resamples, seed=seed)
    return [
        ClassAgreement(label=name, alpha=alphas[name].alpha, without_unsure=alphas[name].without_unsure)
        for name in project.classes.names
    ]


def entropy_interval(mass: Table, *, draws: int, seed: int, level: float = 0.95) -> tuple[Floats, Floats, Floats]:
    """(items,) mean and interval of the entropy, in nats, under the Dirichlet posterior of each label distribution.

    Args:
        mass: (items, classes) judgements for each class, a judgement spread over its votes.
        draws: how many from each posterior.
        seed: of the draws.
        level: of the interval.
    """
    shape = mass + panel_concentration(mass)
    generator = np.random.default_rng(seed)
    entropies = np.empty((draws, mass.shape[0]))
    for each in range(draws):
        # Gammas divided by their sum are Dirichlet; a class without mass may draw 0, and 0 ln 0 is 0.
        gammas = generator.standard_gamma(shape)
        entropies[each] = entr(gammas / gammas.sum(axis=1, keepdims=True)).sum(axis=1)
    low, high = np.quantile(entropies, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return entropies.mean(axis=0), low, high


def _behaviour(found: Judgements, ids: Ints) -> dict[str, Any]:
    """How each annotator behaved, from their own judgements alone."""
    who = np.searchsorted(ids, found.annotator)
    n = ids.size
    judged = np.bincount(who, minlength=n)
    same = (
        (found.response == found.response[:, :1]).all(axis=1) if found.response.shape[1] > 1 else np.zeros(len(found))
    )
    steps = np.diff(np.sort(found.last_seconds, axis=1), axis=1)
    return {
        "judgements": judged,
        "seconds": group_medians(found.seconds, who, groups=n),
        "class_seconds": group_medians(steps.ravel(), np.repeat(who, steps.shape[1]), groups=n),
        "unsure": _means((found.response == UNSURE).mean(axis=1), who, n),
        "straight_lining": _means(same, who, n),
        "longest_run": _longest_runs(found, who, n),
        "changes": _means(found.changes.sum(axis=1), who, n),
        "hidden_seconds": _means(found.hidden_seconds, who, n),
    }


def _standing(cursor: Any, project: Project, found: Judgements, ids: Ints, *, counting: Mask) -> dict[str, Floats]:
    """How each annotator compares with the others."""
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
        votes = votes_of_judgements(panel, project, **names)
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
    # Right and wrong can be told apart only where somebody else judged the item too.
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
        out.append(f"takes {values['seconds']:.1f} s per item, where the panel takes {panel['seconds']:.1f}")
    if values["straight_lining"] > max(STRAIGHT, 2 * panel["straight_lining"]):
        out.append(f"answers all classes alike in {values['straight_lining']:.0%} of items")
    if values["agreement_high"] < values["expected_agreement"]:
        out.append("agrees less than expected by chance")
    elif values["agreement_low"] <= values["expected_agreement"] and values["judgements"] >= 20:
        out.append("agrees no more than expected by chance")
    return tuple(out)


def _longest_runs(found: Judgements, who: Ints, n: int) -> Ints:
    """(n,) for each annotator, the most judgements in a row with exactly the same responses."""
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


def _means(values: Any, group: Ints, groups: int) -> Floats:
    """(groups,) the mean of each group's known values; NaN for a group without any."""
    known = ~np.isnan(values)
    size = np.bincount(group[known], minlength=groups)
    total = np.bincount(group[known], weights=values[known], minlength=groups)
    return np.asarray(np.divide(total, size, out=np.full(groups, np.nan), where=size > 0))


def _known(value: Any) -> Any:
    return None if value != value else value
