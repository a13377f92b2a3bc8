"""Any model's predictions against what people said: every score with its interval, its limits and its baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.arrays import places_of
from dissensus.errors import InputError, choices
from dissensus.evaluation.arguments import named_systems, people_in, per_item, refuse_swapped, systems_in
from dissensus.evaluation.baselines import MAJORITY, make_baselines, marginal
from dissensus.evaluation.comparison.differences import GIVEN_THIS_SEED, interval_over, seed_numbers
from dissensus.evaluation.comparison.scores import Scores
from dissensus.evaluation.comparison.strata import ALL, Stratum, by_column, halves_of, make_strata
from dissensus.evaluation.comparison.verdict import listed
from dissensus.evaluation.evaluated import HEADLINES, Compared
from dissensus.evaluation.evaluated import Evaluation as Evaluation
from dissensus.evaluation.finite_panel.known_votes import added_or_chosen, knows_the_votes
from dissensus.evaluation.finite_panel.people_ruler import Ruler, mean_losses, people_ruler, worth_in_people
from dissensus.evaluation.finite_panel.seeds import of_seeds
from dissensus.evaluation.finite_panel.shared_annotators import THESE_PEOPLE, UNKNOWN_PEOPLE, shared
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.evaluation.predictions import MODEL
from dissensus.evaluation.probabilities import Predictions, checked_human
from dissensus.evaluation.scoring import (
    BY_HALVES,
    BY_THE_SAME,
    OF_LOGARITHMS,
    Scorer,
    over_all_classes,
    panel_or_reason,
    rules_out,
    with_classes,
)
from dissensus.labels.distribution import LabelDistribution
from dissensus.votes.table import Votes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Table
    from dissensus.evaluation.comparison.scores import Score
    from dissensus.evaluation.finite_panel.panel import Panel
    from dissensus.evaluation.finite_panel.people_ruler import Ruled, Worth
    from dissensus.evaluation.metrics.registry import Metric
    from dissensus.evaluation.probabilities import Runs
    from dissensus.progress import Over

DEFAULT_METRICS: Final = ("soft_nll", "kl", "tvd", "brier", "entce", "entropy_spearman", "accuracy")
"""What a table shows where no metrics are named; `registry.METRICS` has the others."""

SECOND: Final[Ruled] = "rps"
"""The second headline, where classes are ordered: of wrong classes it holds near ones for less wrong."""

TAKEN: Final = "evaluation: '{}' is the name of a baseline; call the system something else"
"""Error message for a system that has the name of a baseline."""

LEGEND: Final = (
    "score: mean over items and seeds, with its 95 % interval; corrected: the score against everybody, of whom the "
    "votes are a sample; best achievable: what a perfect model would score against so few votes; people: how many "
    "people's votes would forecast the other people's as well (people ruler, by soft NLL)"
)
"""How a table is read."""


def evaluate(
    human: LabelDistribution | Any,
    model: Any,
    *,
    classes: Sequence[str] | None = None,
    seeds: Mapping[str, Sequence[int]] | Sequence[int] | None = None,
    votes: Votes | Any | None = None,
    metrics: str | Sequence[str] | None = None,
    strata: str | Sequence[str] | Mapping[str, Any] = "agreement",
    baselines: bool = True,
    majority: Any | None = None,
    reference: str | None = None,
    training: Any | None = None,
    question: Any | None = None,
    validation: tuple[Any, Any] | None = None,
    original: Any | None = None,
    only_common: bool = False,
    resamples: int = 1000,
    seed: int = 0,
    over: Over = map,
) -> Evaluation:
    """Score predictions against people.

    Args:
        human: votes, or what `read_votes` reads (a frame, a dictionary of columns, a path); label distributions; or
            (items, classes) probabilities. Only with votes or labels is it known how many votes there were, and so are
            corrected scores, what is best achievable, and the people ruler.
        model: (items, classes) probabilities, or (seeds, items, classes), or a label per item; a frame, or a list of
            dictionaries, with a column per class (rows are matched by a column `item` where there is one); a dictionary
            by item; a path; `Predictions`; or several systems by name.
        classes: the names of an array's columns in order; None takes the classes of the labels in their order, and
            refuses an array that fits the votes clearly better in another. Classes that nobody voted for may be among
            them.
        seeds: by system, the seeds of its runs (a plain list for a single system); systems with the same seeds are
            paired by number, others are compared unpaired. Runs without numbers are numbered from 0.
        votes: the votes behind `human`, where that is label distributions: with them judgements of several votes are
            taken as a whole, and people who judged many items are known.
        metrics: names from `registry.METRICS`; None takes `DEFAULT_METRICS`, and where the classes are ordered RPS and
            Wasserstein's distance, and the accuracy against original labels where these are given.
        strata: ideas of strata: agreement, entropy, class; or by name, a column with one value for each item, or strata
            made by a function of `dissensus.evaluation.comparison.strata`.
        baselines: whether tables carry the baselines.
        majority: a model trained on majority labels, as systems are given, or the name of a system, for its baselines.
        reference: the system that the others are compared with; None takes the one that `majority` names, or the first.
        training: label distributions of the training items, for the marginal baseline and the people ruler.
        question: (items,) the question that each item belongs to, where people were asked several: the marginal and
            what people's votes forecast are then of each question, so that knowing the question is not worth people.
        validation: human distributions, and the majority model's probabilities, to fit baselines on; without it they
            are fitted across folds of the evaluated items.
        original: (items,) class indices of original labels, for accuracy against them.
        only_common: leave out items that not every system predicts, and predictions for items without votes, and say
            how many; without it they are refused.
        resamples: of items, behind each interval.
        seed: random seed.
        over: what calls a function on each of many jobs, where the bootstrap's work is: strata and systems. One that
            shares them among machines takes the place of `map`.

    Examples:
        >>> import numpy as np
        >>> found = evaluate(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([[0.5, 0.5], [0.5, 0.5]]), metrics=["tvd"])
        >>> float(found.overall.get("model", "tvd").value.value)
        0.25
    """
    refuse_swapped(human, model)
    people, own = people_in(human)
    training = people_in(training)[0] if isinstance(training, Votes) else training
    votes = own if votes is None else people_in(votes)[1]
    question = per_item(question, people.items, what="question")
    original = per_item(original, people.items, what="original")
    judged = people
    model = named_systems(model, people, classes=classes)
    hidden = majority is not None and not (isinstance(majority, str) and majority in model)
    if hidden and MAJORITY in model:
        raise InputError(TAKEN.format(MAJORITY))
    if hidden:
        # The majority model is read alone: it may have other items and classes than the systems.
        model |= named_systems({MAJORITY: majority}, people, classes=classes)
    people, named, left_out = systems_in(model, people, only_common=only_common)
    kept = places_of(people.items, judged.items) if people is not judged else np.arange(len(people))
    question, original = (None if column is None else np.asarray(column)[kept] for column in (question, original))
    if isinstance(strata, Mapping):
        strata = {
            idea: made if _are_strata(made) else per_item(made, judged.items, what=f"strata '{idea}'")[kept]
            for idea, made in strata.items()
        }
    labels, models, warnings = over_all_classes(named, people)
    if hidden:
        majority = replace(named.pop(MAJORITY), probabilities=models.pop(MAJORITY))
    warnings = [*left_out, *warnings]
    if len(labels.classes) < 2:
        raise InputError(
            f"evaluate: '{labels.classes[0]}' is the only class, so that every model is right; give votes, or "
            "predictions, with the other classes"
        )
    numbered = seeds if seeds is None or isinstance(seeds, Mapping) else {MODEL: seeds}
    for name in numbered or ():
        if name not in named:
            raise InputError(f"evaluation: seeds= names '{name}', which is no system{choices(name, named)}")
    numbers = {
        name: seed_numbers(name, len(system.probabilities), numbered) if numbered and name in numbered else system.seeds
        for name, system in named.items()
    }
    if votes is not None and votes.classes != labels.classes and votes.classes == people.classes:
        votes = replace(votes, classes=labels.classes)
    systems = {
        name: replace(named[name], probabilities=runs, items=labels.items, classes=labels.classes, seeds=numbers[name])
        for name, runs in models.items()
    }
    notes = [LEGEND]
    if baselines:
        fitted_on: Any = {"training": training, "question": question, "validation": validation, "seed": seed}
        more, how = _baselines(labels, systems, majority=majority, **fitted_on)
        systems |= more
        notes += how
    panel, why = panel_or_reason(labels, votes)
    halves = why if panel is None else halves_of(labels, panel, seed=seed)
    infinite = {name for name, system in systems.items() if _any_rules_out(labels, system.probabilities)}
    chosen = _metrics(metrics, labels, original)
    if infinite & models.keys():
        # Some model has no soft NLL or KL, so the table begins with Brier, which every model has.
        chosen = tuple(sorted(chosen, key=lambda metric: (metric.name != "brier", metric.name in OF_LOGARITHMS)))
    table = Scorer(
        labels=labels,
        halves=halves,
        systems=systems,
        metrics=chosen,
        panel=panel,
        original=None if original is None else np.asarray(original),
        resamples=resamples,
        seed=seed,
    )
    everything = Stratum(name=ALL, items=np.ones(len(labels), dtype=np.bool_))
    ideas = {idea: of_idea[1:] for idea, of_idea in _strata(strata, labels).items()}
    filled = iter(over(table.fill, [everything, *(stratum for of_idea in ideas.values() for stratum in of_idea)]))
    overall, resampled_overall = next(filled)
    resampled, items = {(ALL, ALL): resampled_overall}, {(ALL, ALL): len(labels)}
    scores, telling = {}, []
    for idea, of_idea in ideas.items():
        rows = list(overall)
        for stratum in of_idea:
            more_rows, values = next(filled)
            rows += more_rows
            divided = stratum.rule is not None and not isinstance(halves, str)
            if values:
                resampled[idea, stratum.name] = values
                items[idea, stratum.name] = more_rows[0].items
                telling += [(idea, stratum.name)] if divided or not stratum.by_votes else []
            notes += [f"{stratum.name}: {stratum.note}"] if stratum.note else []
            reason = halves if isinstance(halves, str) else "the strata were given as lists of items"
            notes += [BY_HALVES if divided else BY_THE_SAME + reason] if stratum.by_votes else []
        order = [metric.name for metric in table.metrics]
        scores[idea] = Scores(tuple(sorted(rows, key=lambda row: order.index(row.metric))))
    measured: Any = {"training": training, "question": question, "seed": seed}
    ruler = why if panel is None else _ruler(panel, labels, **measured)
    of_people = panel if panel is not None and shared(panel) else None
    names = tuple(metric.name for metric in table.metrics)
    used = {name: 0 if system.trained_on is None else int(system.trained_on.sum()) for name, system in systems.items()}

    def worth_by(ruler: Ruler | str | None) -> dict[str, Worth]:
        if not isinstance(ruler, Ruler):
            return {}
        measure = partial(worth_in_people, ruler, resamples=resamples, seed=seed)
        known = [name for name in systems if name not in infinite]
        return dict(zip(known, over(measure, [systems[name].probabilities for name in known]), strict=True))

    headline = next((name for name in HEADLINES if name in names), names[0])
    headline = names[0] if infinite & models.keys() else headline
    second: Ruled | None = SECOND if SECOND in names and headline != SECOND else None
    second_ruler: Ruler | str | None = None if second is None else ruler
    if second is not None and panel is not None and isinstance(ruler, Ruler):
        second_ruler = _ruler(panel, labels, score=second, **measured)
    linear: tuple[Ruled, ...] = ("soft_nll", second) if second else ("soft_nll",)
    corrected_entce = {row.system: row.corrected for row in overall if row.metric == "entce"}
    of_data = [*warnings, *_of_votes(panel, why, ruler), *_undefined(overall, models)]
    knowing = {name: why for name, runs in models.items() if panel and (why := knows_the_votes(panel, runs))}
    warnings = [
        *_in_sample(systems),
        *(f"{name}: {why}" for name, why in knowing.items()),
        *of_data,
        *_of_one_seed({name: systems[name] for name in models}),
    ]
    return Evaluation(
        items=len(labels),
        classes=labels.classes,
        systems=tuple(systems),
        baselines=tuple(name for name in systems if name not in models),
        reference=_reference(reference, majority, models),
        metrics=names,
        headline=headline,
        overall=Scores(tuple(overall)),
        strata=scores,
        ruler=ruler,
        worth=worth_by(ruler),
        second=second,
        second_ruler=second_ruler,
        second_worth=worth_by(second_ruler),
        of_seeds={
            name: of_seeds(panel, runs, resamples=resamples, seed=seed, entce=corrected_entce.get(name))
            for name, runs in models.items()
            if panel is not None and len(runs) > 1
        },
        trained_on={name: number for name, number in used.items() if number},
        knowing=knowing,
        warnings=tuple(dict.fromkeys(warnings)),
        data_warnings=tuple(dict.fromkeys(of_data)),
        notes=tuple(dict.fromkeys(notes)),
        resamples=resamples,
        seed=seed,
        compared=Compared(
            resampled=resampled,
            items=items,
            seeds={name: system.seeds for name, system in systems.items()},
            telling=tuple(telling),
            halves=halves,
            panel=of_people,
            losses={
                score: {name: mean_losses(system.probabilities, score) for name, system in systems.items()}
                for score in linear
                if of_people is not None
            },
        ),
    )


def _reference(asked: str | None, majority: Any | None, models: Mapping[str, Runs]) -> str:
    """The system that others are compared with: the one asked for, or trained on majority labels, or the first."""
    if asked is not None:
        if asked not in models:
            raise InputError(f"evaluation: there is no system '{asked}' to compare with{choices(asked, models)}")
        return asked
    return majority if isinstance(majority, str) and majority in models else next(iter(models))


def _baselines(
    labels: LabelDistribution, systems: Mapping[str, Predictions], *, training: Any, majority: Any, **fitted_on: Any
) -> tuple[dict[str, Predictions], list[str]]:
    """The baselines as systems, and how they were made."""
    own = systems[majority] if isinstance(majority, str) else majority
    runs = None if own is None else own.probabilities
    made, missing = make_baselines(labels, training=_padded(training, labels), majority=runs, **fitted_on)
    baselines, how = {}, []
    for name, system in made.items():
        if isinstance(majority, str) and name == MAJORITY:
            how.append(f"{name}: the system '{majority}'")
            continue
        if name in systems:
            raise InputError(TAKEN.format(name))
        baselines[name] = system if own is None or system.seeds is None else replace(system, seeds=own.seeds)
        how.append(f"{name}: {system.notes[0]}")
    return baselines, [*how, *missing]


def _padded(training: Any | None, labels: LabelDistribution) -> Table | None:
    """The training items' distributions over the classes of the labels."""
    if training is None:
        return None
    known = checked_human(training)
    return np.pad(known, ((0, 0), (0, len(labels.classes) - known.shape[1])))


def _ruler(
    panel: Panel,
    labels: LabelDistribution,
    *,
    training: Any | None,
    question: Any | None,
    seed: int,
    score: Ruled = "soft_nll",
) -> Ruler | str:
    votes = None
    if isinstance(training, LabelDistribution) and training.counts.any():
        votes = np.asarray(with_classes(training, labels.classes).counts, dtype=np.float64)
    code = None if question is None else np.unique(np.asarray(question), return_inverse=True)[1]
    if len(panel) < 2 and training is None:
        return "one item tells nothing of how items differ"
    # Nobody's forecast is the baseline `marginal`, so that this row is worth 0 people.
    baseline = marginal(labels, training=_padded(training, labels), question=question, pairs=labels.pairs)
    nobody = baseline.probabilities[0]
    try:
        return people_ruler(panel, training=votes, question=code, nobody=nobody, score=score, seed=seed)
    except InputError as error:
        return str(error).removeprefix("people ruler: ")


def _in_sample(systems: Mapping[str, Predictions]) -> list[str]:
    """Return a warning if systems were trained, chosen or made with some of the items."""
    seen = [said for name, system in systems.items() if (said := system.seen(name))]
    whose = "its scores here do not tell how it does" if len(seen) == 1 else "their scores here do not tell how they do"
    return [f"Trained on these items: {listed(seen)}, so {whose} on new items"] if seen else []


def _of_votes(panel: Panel | None, why: str, ruler: Ruler | str) -> list[str]:
    """What the votes themselves do not allow to say."""
    if panel is None:
        return [f"no best achievable, no corrected scores and no worth in people: {why}", UNKNOWN_PEOPLE]
    notes = [] if panel.annotator is not None else [UNKNOWN_PEOPLE]
    notes += [f"no worth in people: {ruler}"] if isinstance(ruler, str) else []
    notes += [f"the votes do not fit the labels, whose counts are used without them: {why}"] if why else []
    if alone := int((panel.size == 1).sum()):
        notes.append(f"{alone:,} of {len(panel):,} items have a single vote, which says little of what people think")
    notes += [f"except for soft NLL, {THESE_PEOPLE}"] if shared(panel) else []
    return [*filter(None, [added_or_chosen(panel)]), *notes]


def _of_one_seed(systems: Mapping[str, Predictions]) -> list[str]:
    """A sentence for the systems whose intervals do not say what another seed would give."""
    alone = [name for name, system in systems.items() if interval_over(system.seeds) == GIVEN_THIS_SEED]
    return [f"{', '.join(alone)}: one seed, so intervals are over {GIVEN_THIS_SEED}"] if alone else []


def _undefined(rows: Sequence[Score], models: Mapping[str, Runs]) -> list[str]:
    """Return a sentence for each reason why models lack scores, with the models and metrics."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.notes and row.system in models:
            reasons.setdefault(row.notes[0], []).append(f"{row.system}, {METRICS[row.metric].short}")
    return [f"{'; '.join(where)}: {why}" for why, where in reasons.items()]


def _any_rules_out(labels: LabelDistribution, runs: Runs) -> bool:
    return any(rules_out(labels.probabilities, run) for run in runs)


def _metrics(names: str | Sequence[str] | None, labels: LabelDistribution, original: Any | None) -> tuple[Metric, ...]:
    has = {"ordered": labels.ordered, "original": original is not None}
    names = [names] if isinstance(names, str) else names
    if names is None:
        more = [name for name, metric in METRICS.items() if metric.needs and all(has[need] for need in metric.needs)]
        first, *others = DEFAULT_METRICS
        names = [first, *(name for name in more if name == SECOND), *others, *more]
    for name in names:
        if name not in METRICS:
            raise InputError(f"evaluation: there is no metric '{name}'{choices(name, METRICS)}")
        for need in METRICS[name].needs:
            if not has[need]:
                remedy = {"ordered": "say that the classes are a scale", "original": "give the original labels"}[need]
                raise InputError(f"evaluation: {name} needs more than votes and predictions; {remedy}, or leave it out")
    if not names:
        raise InputError("evaluation: the list of metrics is empty; name at least one, or give none")
    return tuple(METRICS[name] for name in dict.fromkeys(names))


def _strata(
    given: str | Sequence[str] | Mapping[str, Any], labels: LabelDistribution
) -> dict[str, tuple[Stratum, ...]]:
    """For each idea its strata, all items first."""
    if isinstance(given, Mapping):
        return {idea: tuple(made) if _are_strata(made) else by_column(labels, made) for idea, made in given.items()}
    return {idea: make_strata(labels, idea) for idea in ([given] if isinstance(given, str) else given)}


def _are_strata(made: Any) -> bool:
    return isinstance(made, tuple) and all(isinstance(stratum, Stratum) for stratum in made)
