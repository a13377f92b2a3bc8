"""The quality of what has been collected: for each annotator, each item and each class.

Nothing here excludes anybody: a flag is a sentence for the researcher to weigh. Whether a gold item was missed is
decided by the project's rule, when the answer is saved.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import betaincinv, entr

from dissensus.arrays import group_medians
from dissensus.errors import InputError
from dissensus.labels.dawid_skene import one_coin
from dissensus.labels.schemes import weighted
from dissensus.responses import NO, UNSURE, YES
from dissensus.together.allocation import panel_concentration
from dissensus.votes.agreement import class_alpha
from dissensus.votes.annotators import annotator_agreement
from dissensus_collect.results.collected import names_of_items, pseudonyms, read_judgements, votes_of_judgements
from dissensus_collect.store.events import BROWSER_EVENTS, MOST_EVENTS
from dissensus_collect.work.participants import shared_devices

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints, Mask, Table
    from dissensus.bootstrap import Estimate
    from dissensus.votes.table import Votes
    from dissensus_collect.project.reading import Project
    from dissensus_collect.results.collected import Judgements

HURRIED: Final = 1 / 3
"""An annotator whose median time is below this share of the panel's median is flagged."""

MANY_REPORTS: Final = 0.2
"""Share of an annotator's items above which reported problems are worth a look."""

STRAIGHT: Final = 0.5
"""An annotator who answers all classes alike in more than this share of items, and twice as often as the panel, is
flagged."""


@dataclass(frozen=True, kw_only=True)
class AnnotatorQuality:
    """One annotator compared with the rest of the panel. None means that nothing is known yet.

    Attributes:
        counts: whether their judgements count towards k.
        gold_missed: gold items answered wrongly, or reported where none was left to replace them.
        reported: items reported instead of judged, not including the gold items in `gold_reported`, of which some were
            `gold_replaced` by others.
        events: what the browser reported of itself.
        sessions: annotators who came from the same address with the same device, this one included.
        judgements: items judged, not including gold items.
        seconds: median seconds for an item.
        class_seconds: median seconds from one class's last answer to that of the next class.
        unsure: share of responses that are unsure.
        straight_lining: share of judgements that give every class the same answer. All No is an honest answer for an
            item that belongs to no class, so compare with the panel.
        longest_run: the most items in a row with exactly the same answers.
        agreement: mean share of the other annotators' votes on an item that equal this annotator's, with its 95 %
            interval.
        expected_agreement: the agreement expected by chance.
        reliability: probability of the right class, by one-coin Dawid-Skene, with its 95 % interval, which takes the
            right classes as known.
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
    gold_seen: int
    gold_missed: int
    reported: int
    gold_reported: int
    gold_replaced: int
    events: int
    sessions: int
    judgements: int
    seconds: float | None
    class_seconds: float | None
    unsure: float | None
    straight_lining: float | None
    longest_run: int
    changes: float | None
    hidden_seconds: float | None
    agreement: float | None
    agreement_low: float | None
    agreement_high: float | None
    expected_agreement: float | None
    reliability: float | None
    reliability_low: float | None
    reliability_high: float | None
    flags: tuple[str, ...]


@dataclass(frozen=True)
class ItemQuality:
    """What the panel said about one item. None means that nobody has judged it yet.

    Attributes:
        counted: judgements that count, of those that are `wanted`.
        problems: reports of a problem with the item.
        answers: for each class, how many said yes, no and unsure.
        equal_weighted: the label distribution where an unsure weighs as much as a yes; the last entry is `none`,
            except for single choices.
        uncertainty_weighted: the same where an unsure weighs half.
        entropy: posterior mean of the entropy of the uncertainty-weighted distribution, in nats, with its 95 %
            interval.
    """

    item: int
    name: str
    counted: int
    wanted: int
    problems: int
    answers: tuple[tuple[int, int, int], ...]
    equal_weighted: tuple[float, ...] | None = None
    uncertainty_weighted: tuple[float, ...] | None = None
    entropy: float | None = None
    entropy_low: float | None = None
    entropy_high: float | None = None

    @property
    def missing(self) -> int:
        """How many votes are still to come."""
        return max(self.wanted - self.counted, 0)


@dataclass(frozen=True, kw_only=True)
class ClassAgreement:
    """How well the panel agrees on one class.

    Attributes:
        alpha: Krippendorff's nominal alpha over yes, no and unsure; None if no item has two judgements, and not defined
            if all answers are the same.
        without_unsure: the same over yes and no, where an unsure counts as a missing answer.
    """

    label: str
    alpha: Estimate | None = None
    without_unsure: Estimate | None = None


_NAMES: Final = tuple(field.name for field in fields(AnnotatorQuality))
_FACTS, _BESIDE = _NAMES[: _NAMES.index("judgements")], _NAMES[_NAMES.index("agreement") : -1]
"""What the database says of a person, and what comes of comparing them with the others."""


def annotator_facts(cursor: Any, annotator: int | None = None) -> list[dict[str, Any]]:
    """What the database itself says of everybody who has judged or reported an item, or of one; by rising id."""
    shared = shared_devices(cursor)
    people = cursor.execute(
        "SELECT id, pseudonym, state, paid, counts, exported, reason, gold_done, gold_missed, reported, gold_reported, "
        "(SELECT count(*) FROM assignment WHERE annotator = annotator.id AND assignment.state = 'problem' "
        "AND missed = 0), coalesce(events, 0), device FROM annotator "
        "LEFT JOIN (SELECT annotator AS who, count(*) AS events FROM event "
        f"WHERE kind IN ({', '.join('?' * len(BROWSER_EVENTS))}) GROUP BY annotator) AS heard "
        "ON heard.who = annotator.id WHERE done + gold_done + reported + gold_reported > 0 "
        f"{'' if annotator is None else 'AND id = ?'} ORDER BY id",
        [*(f"browser {kind}" for kind in BROWSER_EVENTS), *(() if annotator is None else (annotator,))],
    ).fetchall()
    return [
        dict(zip(_FACTS, (*row[:3], *map(bool, row[3:6]), *row[6:-1], shared.get(row[-1], 1)), strict=True))
        for row in people
    ]


def annotator_quality(cursor: Any, project: Project) -> list[AnnotatorQuality]:
    """Every annotator who has judged an item, gold or not, by rising id.

    Annotators who count are compared with each other; excluded ones with everybody.
    """
    known = annotator_facts(cursor)
    if not known:
        return []
    ids = np.array([person["annotator"] for person in known], dtype=np.int64)
    judgements = read_judgements(cursor, project, exported=False, counted=False)
    counting = np.array([person["counts"] for person in known])
    columns = _behaviour(judgements, ids) | _standing(cursor, project, judgements, ids, counting=counting)
    everybody = np.zeros(ids.size, dtype=np.int64)
    panel = {name: group_medians(columns[name], everybody, groups=1)[0] for name in ("seconds", "straight_lining")}
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    measured = [person | dict(zip(columns, row, strict=True)) for person, row in zip(known, rows, strict=True)]
    return [AnnotatorQuality(**_as_known(person), flags=_flags(person, panel)) for person in measured]


def _as_known(person: dict[str, Any]) -> dict[str, Any]:
    """With None for what is not known."""
    return {name: None if value != value else value for name, value in person.items()}


def item_quality(cursor: Any, project: Project, *, judgements: Judgements | None = None) -> list[ItemQuality]:
    """Every item that votes are collected for, by rising id; `judgements` are those that count, if they were read."""
    rows = cursor.execute(
        "SELECT id, name, counted, wanted, problems FROM item WHERE role = 'vote' AND retired_at IS NULL ORDER BY id"
    ).fetchall()
    judgements = read_judgements(cursor, project) if judgements is None else judgements
    place = np.searchsorted(np.array([row[0] for row in rows], dtype=np.int64), judgements.item)
    answers = np.zeros((len(rows), len(project.classes.names), 3), dtype=np.int64)
    for column, value in enumerate((YES, NO, UNSURE)):
        np.add.at(answers[:, :, column], place, judgements.response == value)
    soft: dict[int, dict[str, Any]] = {}
    if len(judgements):
        names = {row[0]: row[1] for row in rows}
        votes = votes_of_judgements(judgements, project, items=names, annotators=pseudonyms(cursor))
        equal, unequal = (weighted(votes, name).probabilities for name in ("equal-weighted", "uncertainty-weighted"))
        entropies = np.stack(entropy_interval(unequal * votes.panel_size[:, None], draws=200, seed=0))
        for at, same, half, (mean, low, high) in zip(
            np.unique(place).tolist(), equal.tolist(), unequal.tolist(), entropies.T.tolist(), strict=True
        ):
            shares = {"equal_weighted": tuple(same), "uncertainty_weighted": tuple(half)}
            soft[at] = shares | {"entropy": mean, "entropy_low": low, "entropy_high": high}
    return [
        ItemQuality(item, name, counted, wanted, problems, tuple(map(tuple, answers[at].tolist())), **soft.get(at, {}))
        for at, (item, name, counted, wanted, problems) in enumerate(rows)
    ]


def agreement_of(judgements: Judgements, project: Project, **names: Any) -> list[ClassAgreement]:
    """Krippendorff's alpha of every class of judgements, with unsure as an answer and with unsure as missing.

    Items are resampled for the intervals; `names` are those of `votes_of_judgements`.
    """
    if not len(judgements) or np.unique(judgements.item).size == len(judgements):
        return [ClassAgreement(label=name) for name in project.classes.names]
    alphas = class_alpha(votes_of_judgements(judgements, project, **names), resamples=200)
    return [
        ClassAgreement(label=name, alpha=found.alpha, without_unsure=found.without_unsure)
        for name, found in alphas.items()
    ]


def entropy_interval(mass: Table, *, draws: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """(items,) mean and 95 % interval of the entropy, in nats, by so many draws from each item's Dirichlet posterior.

    The mass is (items, classes) judgements for each class, a judgement spread over its votes.
    """
    shape = mass + panel_concentration(mass)
    generator = np.random.default_rng(seed)
    entropies = np.empty((draws, mass.shape[0]))
    for draw in range(draws):
        # Gammas divided by their sum are Dirichlet; a class without mass may draw 0, and 0 ln 0 is 0.
        gammas = generator.standard_gamma(shape)
        entropies[draw] = entr(gammas / gammas.sum(axis=1, keepdims=True)).sum(axis=1)
    low, high = np.quantile(entropies, [0.025, 0.975], axis=0)
    return entropies.mean(axis=0), low, high


def _behaviour(judgements: Judgements, ids: Ints) -> dict[str, Any]:
    """How each annotator behaved, from their own judgements alone."""
    who, n, response = np.searchsorted(ids, judgements.annotator), ids.size, judgements.response
    same = (response == response[:, :1]).all(axis=1) if response.shape[1] > 1 else np.zeros(len(judgements))
    steps = np.diff(np.sort(judgements.last_seconds, axis=1), axis=1)
    return {
        "judgements": np.bincount(who, minlength=n),
        "seconds": group_medians(judgements.seconds, who, groups=n),
        "class_seconds": group_medians(steps.ravel(), np.repeat(who, steps.shape[1]), groups=n),
        "unsure": _means((response == UNSURE).mean(axis=1), who, n),
        "straight_lining": _means(same, who, n),
        "longest_run": _longest_runs(judgements, who, n),
        "changes": _means(judgements.changes.sum(axis=1), who, n),
        "hidden_seconds": _means(judgements.hidden_seconds, who, n),
    }


def _standing(cursor: Any, project: Project, judgements: Judgements, ids: Ints, *, counting: Mask) -> dict[str, Any]:
    """How each annotator compares with the others."""
    names = {"items": names_of_items(cursor), "annotators": pseudonyms(cursor)}
    table = np.full((ids.size, len(_BESIDE)), np.nan)
    counted = np.isin(judgements.annotator, ids[counting])
    for panel, people in ((judgements.where(counted), counting), (judgements, ~counting)):
        if len(panel) and people.any():
            rows = np.searchsorted(ids, np.unique(panel.annotator))
            mine = people[rows]
            table[rows[mine]] = _beside_others(votes_of_judgements(panel, project, **names))[mine]
    return dict(zip(_BESIDE, table.T, strict=True))


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
    # Right and wrong are known only where somebody else judged the item too.
    trials = agreement.compared
    right, wrong = skill * trials + 0.5, (1 - skill) * trials + 0.5
    known = np.where(trials > 0, skill, np.nan)
    ends = [np.where(trials > 0, betaincinv(right, wrong, tail), np.nan) for tail in (0.025, 0.975)]
    return np.column_stack([*columns, known, *ends])


def _flags(values: dict[str, Any], panel: dict[str, float]) -> tuple[str, ...]:
    out = []
    if values["gold_missed"]:
        out.append(f"missed {values['gold_missed']} of {values['gold_seen']} gold items")
    reported, answered = values["reported"] + values["gold_reported"], values["judgements"] + values["gold_seen"]
    if values["gold_reported"]:
        out.append(f"reported {values['gold_reported']} gold items, of which {values['gold_replaced']} were replaced")
    if reported > MANY_REPORTS * (reported + answered):
        out.append(f"reported {reported} of {reported + answered} items")
    if values["sessions"] > 1:
        out.append(f"one of {values['sessions']} sessions from the same address and device")
    if values["events"] >= MOST_EVENTS:
        out.append(f"the browser sent {values['events']} events, more than a page of ours does")
    if values["seconds"] < HURRIED * panel["seconds"]:
        out.append(f"takes {values['seconds']:.1f} s per item, where the panel takes {panel['seconds']:.1f}")
    if values["straight_lining"] > max(STRAIGHT, 2 * panel["straight_lining"]):
        out.append(f"answers all classes alike in {values['straight_lining']:.0%} of items")
    if values["agreement_high"] < values["expected_agreement"]:
        out.append("agrees less than expected by chance")
    elif values["agreement_low"] <= values["expected_agreement"] and values["judgements"] >= 20:
        out.append("agrees no more than expected by chance")
    return tuple(out)


def _longest_runs(judgements: Judgements, who: Ints, n: int) -> Ints:
    """(n,) for each annotator, the most judgements in a row with exactly the same responses."""
    if not len(judgements):
        return np.zeros(n, dtype=np.int64)
    _, pattern = np.unique(judgements.response, axis=0, return_inverse=True)
    order = np.lexsort((judgements.number, who))
    who, pattern = who[order], pattern.ravel()[order]
    begins = np.ones(len(judgements), dtype=np.bool_)
    begins[1:] = (who[1:] != who[:-1]) | (pattern[1:] != pattern[:-1])
    first = np.flatnonzero(begins)
    length = np.diff(np.append(first, len(judgements)))
    out = np.zeros(n, dtype=np.int64)
    np.maximum.at(out, who[first], length)
    return out


def _means(values: Any, group: Ints, groups: int) -> Floats:
    """(groups,) the mean of each group's known values; NaN for a group without any."""
    known = ~np.isnan(values)
    size = np.bincount(group[known], minlength=groups)
    total = np.bincount(group[known], weights=values[known], minlength=groups)
    return np.asarray(np.divide(total, size, out=np.full(groups, np.nan), where=size > 0))
