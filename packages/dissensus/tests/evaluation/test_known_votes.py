"""Predictions that know the votes that they are scored on are told, however disguised; nothing honest ever is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import dissensus as dis
from dissensus.errors import InputError
from dissensus.evaluation.arguments import systems_in
from dissensus.evaluation.evaluating import evaluate
from dissensus.evaluation.finite_panel.known_votes import CHOSEN, chosen_to_differ, knows_the_votes
from dissensus.evaluation.finite_panel.panel import draw_votes, panel_of
from dissensus.labels.schemes import frequency, weighted
from dissensus.labels.writing import write_labels
from dissensus.report.subject import files_subject
from dissensus.report.writing import write_report
from dissensus.votes.reading import read_votes
from dissensus.votes.simulate import simulate_responses
from dissensus.votes.table import votes_from_counts
from tests.evaluation.placebo import SETS, counts_of
from tests.evaluation.simulated import FAMILIES, counted, true_distributions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dissensus.evaluation.evaluated import Evaluation

SAID = "seem to know the votes that they are scored on"


def powered(shares: Any, power: float) -> Any:
    raised = shares**power
    return raised / raised.sum(axis=1, keepdims=True)


def told(counts: Any, *said: Any, who: Any = None) -> bool:
    """Whether runs know (items, classes) votes; `who` has the annotator of each vote, by item and class."""
    if who is None:
        return bool(knows_the_votes(counted(counts), np.stack(said)))
    item, chosen = (np.repeat(each, counts.ravel()) for each in np.indices(counts.shape).reshape(2, -1))
    columns = {"item": item, "annotator": [f"a{name}" for name in who.tolist()], "label": chosen}
    votes = read_votes(columns, classes=[str(n) for n in range(counts.shape[1])])
    return bool(knows_the_votes(panel_of(frequency(votes), votes), np.stack(said)))


def judged(counts: Any, model: Any, *, metrics: str = "tvd") -> Evaluation:
    """An evaluation against anonymous votes."""
    votes = votes_from_counts(counts, classes=[f"c{n}" for n in range(counts.shape[1])])
    return evaluate(votes, model, resamples=20, baselines=False, metrics=metrics, strata=())


@pytest.mark.parametrize("votes", [2, 3, 5, 20])
@pytest.mark.parametrize("classes", [2, 5])
def test_what_does_not_know_the_votes_has_no_caution_and_disguised_shares_have(votes: int, classes: int) -> None:
    """The truth, other people, constants and a model that is off; shares with a weight of each item's own, or noise."""
    generator = np.random.default_rng(votes)
    for _ in range(10):
        truth = generator.dirichlet(np.full(classes, 0.7), 200)
        counts, others = generator.multinomial(votes, truth, (2, 200))
        shares, weight = counts / votes, generator.uniform(0.45, 0.95, (200, 1))
        off = 0.8 * truth + 0.2 * generator.dirichlet(np.ones(classes), 200)
        marginal, even = np.tile(shares.mean(axis=0), (200, 1)), np.full_like(truth, 1 / classes)
        assert not told(counts, truth, others / votes, off, marginal, even)
        noise = generator.dirichlet(np.ones(classes), 200)
        # Of many votes little is won by knowing them, and noise hides it.
        for known in (
            weight * shares + (1 - weight) / classes,
            powered(shares, 0.9),
            0.7 * shares + 0.3 * others / votes,
            0.8 * shares + 0.2 * noise,
        )[: 2 + 2 * (votes < 20)]:
            assert told(counts, known)
            # Another seed that is far off does not hide it.
            assert told(counts, even, known)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("items", [10, 30, 300])
def test_the_truth_is_never_accused_where_its_score_is_often_better_than_best_achievable(
    family: str, items: int
) -> None:
    for trial in range(60):
        truth = true_distributions(family, items, seed=[trial])
        counts = np.random.default_rng([1, trial]).multinomial(2 + trial % 4, truth)
        assert not told(counts, truth, powered(truth + 1e-3, 2.0), powered(truth + 1e-3, 0.5)), trial


@pytest.mark.parametrize("votes", [3, 5, 12])
def test_the_very_shares_of_contested_items_are_told_among_honest_predictions(votes: int) -> None:
    """Few items, part of the items, shares as people write them: all are too often what votes happened to be."""
    generator = np.random.default_rng(votes)
    truth = generator.dirichlet([0.7, 0.7, 0.7], 400)
    counts, others = generator.multinomial(votes, truth, (2, 400))
    shares, contested = counts / votes, counts.max(axis=1) < votes
    some = contested & (generator.random(400) < 0.5)
    assert told(counts, np.where(some[:, None], shares, truth))
    assert told(counts, np.round(np.where(some[:, None], shares, truth), 2))
    assert told(counts[:30], np.where(contested[:, None], shares, truth)[:30])
    # What others said are such shares, too, and as often right as independent votes are.
    assert not told(counts, others / votes)
    assert not told(counts, np.where(some[:, None], others / votes, truth))


def test_shares_that_the_truth_is_made_of_are_honest() -> None:
    """Of two votes on a coin half are one of each for whoever knows the coin, and chance hardly ever makes it more."""
    generator = np.random.default_rng(0)
    for trial in range(300):
        votes, items = int(generator.choice([2, 3, 4, 10])), int(generator.choice([12, 40, 300]))
        heads = generator.integers(1, votes, items) / votes
        truth = np.stack([heads, 1 - heads], axis=1)
        counts = generator.multinomial(votes, truth)
        assert not told(counts, truth), trial
        who = np.argsort(generator.random((items, 400)), axis=1)[:, :votes]
        assert not told(counts, truth, who=who.ravel()), trial


@pytest.mark.parametrize(("people", "accused"), [(6, False), (300, True)])
def test_of_few_people_whose_habits_may_be_known_only_most_shares_are_too_many(people: int, accused: bool) -> None:
    generator = np.random.default_rng(0)
    counts = generator.multinomial(6, generator.dirichlet([0.8, 0.8], 300))
    who = np.argsort(generator.random((300, people)), axis=1)[:, :6].ravel()
    shares, contested = counts / 6, np.flatnonzero(counts.max(axis=1) < 6)
    model = np.tile(shares.mean(axis=0), (300, 1)) + np.linspace(-0.1, 0.1, 300)[:, None] * [1, -1]
    most, half = model.copy(), model.copy()
    most[contested] = shares[contested]
    half[contested] = shares[contested][:, ::-1]
    half[contested[::2]] = shares[contested[::2]]
    assert told(counts, most, who=who)
    assert told(counts, half, who=who) is accused


@pytest.mark.parametrize(
    ("classes", "even", "votes", "items"),
    [(3, 0.5, 3, 100), (3, 2.0, 3, 200), (5, 0.5, 3, 200), (3, 0.5, 5, 300), (2, 0.2, 5, 200), (2, 0.5, 3, 100)],
)
def test_of_contested_items_alone_the_truth_is_not_accused(classes: int, even: float, votes: int, items: int) -> None:
    """Also where these are too few to say that they were chosen: up to 20 of 25 truths seemed to know the votes."""
    for trial in range(25):
        generator = np.random.default_rng(trial)
        truth = generator.dirichlet(np.full(classes, even), 20 * items)
        counts = generator.multinomial(votes, truth)
        kept = np.flatnonzero(counts.max(axis=1) < votes)[:items]
        assert not told(counts[kept], truth[kept]), trial


def test_few_items_that_happen_to_be_alike_are_no_caution() -> None:
    """Two votes of ten items differ each time in one of a thousand sets, and an honest half is then right on all."""
    unsure = np.stack([np.linspace(0.49, 0.51, 10), np.linspace(0.51, 0.49, 10)], axis=1)
    assert not told(np.ones((10, 2), dtype=np.int64), unsure)
    assert not told(np.ones((1, 2), dtype=np.int64), unsure[:1])


def test_the_same_people_on_all_items_are_no_sample_and_their_votes_no_model() -> None:
    """A model that learnt their habits is closer to their votes than to those of others, and may be; a copy is not."""
    generator = np.random.default_rng(0)
    for people, votes in ((2, 2), (3, 3), (6, 6), (8, 3), (300, 5)):
        habit = generator.dirichlet([0.8, 0.8], people)
        who = np.argsort(generator.random((400, people)), axis=1)[:, :votes]
        drawn = generator.random(who.shape) < habit[who][..., 1]
        counts = np.stack([votes - drawn.sum(axis=1), drawn.sum(axis=1)], axis=1)
        names = np.take_along_axis(who, np.argsort(drawn, axis=1, kind="stable"), axis=1).ravel()
        near = habit.mean(axis=0) + generator.uniform(-0.01, 0.01, (400, 1)) * [1, -1]
        assert not told(counts, near, who=names)
        shares, weight = counts / votes, generator.uniform(0.45, 0.95, (400, 1))
        assert told(counts, weight * shares + (1 - weight) / 2, who=names) or people < 300
        assert told(counts, shares, who=names)
        assert told(counts, 0.95 * shares + 0.025, who=names)


@pytest.mark.parametrize("name", SETS)
def test_no_real_person_and_no_half_of_the_people_is_accused_and_half_of_the_votes_mixed_in_is(
    name: str, data: Path
) -> None:
    counts = counts_of(name)[:1200]
    rng = np.random.default_rng(0)
    half = draw_votes(counts, counts.sum(axis=1) // 2, rng)
    mine, others = half / half.sum(axis=1, keepdims=True), (counts - half) / (counts - half).sum(axis=1, keepdims=True)
    person = draw_votes(counts - half, np.ones(len(counts), dtype=np.int64), rng)
    everybody = np.tile(others.mean(axis=0), (len(counts), 1))
    honest = (others, person, everybody, (others + everybody) / 2, powered(others + 0.02, 0.5))
    assert not told(half, *honest)
    assert not chosen_to_differ(counted(half))
    # People are not accused on those of their items that the votes of others make contested.
    contested = half.max(axis=1) < half.sum(axis=1)
    assert not told(half[contested], *(each[contested] for each in honest))
    assert told(half, (mine + others) / 2)
    assert told(half, powered(mine, 0.9))


@pytest.mark.parametrize("votes", [3, 5])
@pytest.mark.parametrize("how", ["contested", "until they differ", "quarter"])
def test_items_that_were_chosen_by_their_votes_are_told_and_the_truth_is_not_accused(votes: int, how: str) -> None:
    generator = np.random.default_rng(votes)
    truth = generator.dirichlet([0.7, 0.7, 0.7], 4000)
    counts = generator.multinomial(votes, truth)
    whole = judged(counts[:400], truth[:400])
    if how == "until they differ":
        for _ in range(8):
            alike = counts.max(axis=1) == counts.sum(axis=1)
            counts = counts + generator.multinomial(1, truth) * alike[:, None]
        chosen = np.arange(len(counts))
    elif how == "quarter":
        chosen = np.argsort((counts**2).sum(axis=1), kind="stable")[:1000]
    else:
        chosen = np.flatnonzero(counts.max(axis=1) < votes)
    found = judged(
        counts[chosen], {"truth": truth[chosen], "copy": counts[chosen] / counts[chosen].sum(axis=1)[:, None]}
    )
    assert set(found.knowing) == {"copy"}
    assert found.data_warnings.count(CHOSEN) == 1
    assert judged(counts[chosen], {"truth": truth[chosen]}).verdict[2] == f"But {CHOSEN}."
    assert CHOSEN not in whole.data_warnings


@pytest.mark.parametrize("items", [20, 100, 600])
def test_independent_votes_are_never_called_chosen(items: int) -> None:
    generator = np.random.default_rng(items)
    for trial in range(150):
        classes, votes, width = (int(generator.choice(of)) for of in ([2, 3, 10], [2, 3, 5, 40], [1, 30, 3000]))
        even = generator.dirichlet(np.full(classes, 0.7))
        truth = generator.dirichlet(even * width / 10 + 1e-3, items)
        size = generator.integers(1, votes + 1, items) if trial % 3 else np.full(items, votes)
        assert not chosen_to_differ(counted(generator.multinomial(size, truth))), trial


def test_few_items_on_which_people_happen_to_differ_are_not_called_chosen() -> None:
    """Of even votes of two, 17 of 20 pairs or more differ in one of 800 sets; of 600 in none."""
    counts = np.concatenate([np.ones((17, 2), dtype=np.int64), [[2, 0], [0, 2], [2, 0]]])
    assert not chosen_to_differ(counted(counts))
    assert chosen_to_differ(counted(np.tile(counts, (30, 1))))


def test_evaluate_says_so_by_any_metric_first_and_of_each_model_once() -> None:
    generator = np.random.default_rng(0)
    truth = generator.dirichlet(np.full(3, 0.7), 200)
    counts = generator.multinomial(5, truth)
    leaked = np.stack([powered(counts / 5, 0.9), truth])
    off = (truth + 1 / 3) / 2
    found = judged(counts, {"off": off, "honest": truth, "leaked": leaked})
    assert set(found.knowing) == {"leaked"}
    assert found.leaks == (f"leaked: {found.knowing['leaked']}",) == found.cautions[:1]
    assert SAID in found.knowing["leaked"]
    assert found.closest() == "leaked"
    assert found.verdict[2] == f"But {found.knowing['leaked']}. Of the other models, honest is closest."
    # Of two, the first sentence names the other already.
    assert judged(counts, {"honest": truth, "leaked": leaked}).verdict[2] == f"But {found.knowing['leaked']}."
    assert found.to_dict()["knowing"] == found.knowing
    caption = found.to_latex().partition(r"\caption{")[2].partition("}\n")[0]
    assert caption.endswith(f"further. leaked: {found.knowing['leaked']}."), "a comment is lost where a table is set"
    assert sum(SAID in note for note in found.all_notes) == 1


def test_a_report_begins_with_it(tmp_path: Path) -> None:
    counts = np.random.default_rng(0).multinomial(3, np.random.default_rng(1).dirichlet([1, 1], 100))
    votes = votes_from_counts(counts, classes=["no", "yes"])
    human = frequency(votes)
    found = judged(counts, {"a": human.probabilities})
    assert files_subject(found, human, {}, votes=votes, title="", cautions=["x"]).cautions == (*found.leaks, "x")
    # A name stays as it is, where other sentences begin with a capital.
    page = write_report(votes, tmp_path / "page.html", predictions={"a": human.probabilities}).read_text()
    assert page.index('<p class="caution">a: the predictions seem to know') < page.index('<div class="answer">')


def test_one_vote_an_item_tells_nothing_and_such_items_are_left_out() -> None:
    truth = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], 300)
    counts = np.random.default_rng(1).multinomial(np.where(np.arange(300) < 200, 1, 4), truth)
    shares = counts / counts.sum(axis=1, keepdims=True)
    assert not judged(counts[:200], shares[:200]).knowing
    assert judged(counts, 0.9 * shares + 0.1 / 3).knowing
    assert not judged(counts, np.where(np.arange(300)[:, None] < 200, shares, truth)).knowing


def test_shares_without_votes_tell_nothing() -> None:
    shares = np.random.default_rng(0).multinomial(5, [0.2, 0.3, 0.5], 200) / 5
    assert not evaluate(shares, 0.9 * shares + 0.1 / 3, resamples=20, metrics=["tvd"]).knowing


def test_anonymous_votes_may_be_those_of_few_and_that_is_said() -> None:
    truth = np.random.default_rng(0).dirichlet([0.5, 0.5], 300)
    counts = np.random.default_rng(1).multinomial(3, truth)
    names = np.arange(counts.sum())
    unless = "the same few people judged all items"
    assert unless in judged(counts, powered(counts / 3, 0.9)).verdict[2]
    item, chosen = (np.repeat(each, counts.ravel()) for each in np.indices(counts.shape).reshape(2, -1))
    votes = read_votes({"item": item, "annotator": names, "label": chosen}, classes=["0", "1"])
    named = evaluate(votes, powered(counts / 3, 0.9), resamples=20, metrics=["brier"])
    assert named.knowing
    assert unless not in named.verdict[2]


@pytest.mark.parametrize("scheme", ["equal-weighted", "uncertainty-weighted"])
def test_judgements_of_several_classes_or_unsure_ones_are_taken_as_a_whole(scheme: Any) -> None:
    truth = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], 300)
    votes = simulate_responses(truth, 4, annotators=900, seed=0)
    human = weighted(votes, scheme)
    options: Any = {"votes": votes, "metrics": ["tvd"], "resamples": 20}
    assert evaluate(human, 0.9 * human.probabilities + 0.1 * human.probabilities.mean(axis=0), **options).knowing
    other = weighted(simulate_responses(truth, 4, annotators=900, seed=1), scheme)
    assert not evaluate(human, other.probabilities, **options).knowing


def test_on_a_scale_it_is_found_too() -> None:
    truth = np.random.default_rng(0).dirichlet([1, 2, 3, 2, 1], 200)
    counts = np.random.default_rng(1).multinomial(5, truth)
    votes = votes_from_counts(counts, classes=["1", "2", "3", "4", "5"], ordered=True)
    known = 0.7 * counts / 5 + 0.3 * truth
    found = evaluate(votes, {"known": known, "truth": truth}, resamples=20, metrics=["rps"])
    assert set(found.knowing) == {"known"}


JUDGED, NEW = 150, 40
CROWD = np.random.default_rng(0).dirichlet([0.6, 0.6], JUDGED + NEW)
PEOPLE = dis.simulate_votes(CROWD[:JUDGED], 3, annotators=40, seed=0)
HONEST = np.random.default_rng(1).dirichlet([1.0, 1.0], JUDGED + NEW) / 2 + CROWD / 2
NAMED = dict(enumerate(HONEST.tolist()))
TOGETHER = dis.combine(PEOPLE, NAMED, resamples=0).labels
"""Labels from a model combined with the votes. Items without votes have labels too. A test of closeness misses them."""


def as_file(ending: str) -> Callable[[Any, Path], Any]:
    def written(labels: Any, folder: Path) -> Any:
        write_labels(labels, folder / f"labels{ending}")
        return folder / f"labels{ending}"

    return written


HANDED: dict[str, Callable[[Any, Path], Any]] = {
    **{ending: as_file(ending) for ending in (".csv", ".tsv", ".parquet", ".jsonl", ".npz")},
    "polars": lambda labels, _: labels.to_polars(),
    "pandas": lambda labels, _: labels.to_pandas(),
    "rows": lambda labels, _: labels.to_polars().to_dicts(),
    "labels": lambda labels, _: labels,
}
"""Formats in which labels can be passed as predictions."""


@pytest.mark.parametrize("handed", HANDED)
def test_labels_made_of_the_votes_are_told_first_however_they_are_handed_over(handed: str, tmp_path: Path) -> None:
    given = HANDED[handed](TOGETHER, tmp_path)
    options: Any = {"resamples": 0, "metrics": "soft_nll", "only_common": True}
    found = evaluate(PEOPLE, {"together": given}, **options)
    assert found.knowing == {}, "the test of closeness is not what tells"
    assert found.trained_on == {"together": JUDGED}
    assert found.verdict[0].startswith(f"{found.leaks[0]}. together: ")
    # The labels were made before these votes, so nothing leaks.
    late = dis.simulate_votes(CROWD[JUDGED:], 3, annotators=40, seed=1)
    table = late.to_polars().with_columns(item=late.item + JUDGED)
    assert evaluate(table, {"together": given}, **options).trained_on == {}


@pytest.mark.parametrize("labels", [frequency(PEOPLE), dis.label(PEOPLE, "dirichlet"), dis.label(PEOPLE, "majority")])
def test_labels_of_every_scheme_are_told(labels: Any, tmp_path: Path) -> None:
    for handed in (".csv", ".npz", "labels"):
        found = evaluate(PEOPLE, HANDED[handed](labels, tmp_path), resamples=0, metrics="soft_nll")
        assert found.trained_on == {"model": JUDGED}


def test_what_only_looks_like_labels_is_not_accused() -> None:
    """Labels from other people's votes have other counts. A column of counts in a model's table is no leak either."""
    others = dis.simulate_votes(CROWD[:JUDGED], 3, annotators=40, seed=2)
    turned = frequency(PEOPLE).take(np.arange(JUDGED)[::-1])
    frame = {"item": list(range(JUDGED)), "0": HONEST[:JUDGED, 0].tolist(), "1": HONEST[:JUDGED, 1].tolist()}
    options: Any = {"resamples": 0, "metrics": "soft_nll"}
    for honest in (frequency(others), frame | {"judgements": [3] * JUDGED}, HONEST[:JUDGED]):
        assert evaluate(PEOPLE, honest, **options).trained_on == {}
    assert evaluate(PEOPLE, turned, **options).trained_on == {"model": JUDGED}


def test_labels_made_of_the_votes_are_told_wherever_predictions_are_taken(tmp_path: Path) -> None:
    given = HANDED[".csv"](TOGETHER, tmp_path)
    for refusing in (dis.combine, dis.defer, dis.plan_with_model, partial(dis.prediction_sets, only_common=True)):
        with pytest.raises(InputError, match=r"trained or chose the model|made of these"):
            refusing(PEOPLE, given)
    judged = dis.stand_in(PEOPLE, given, least_items=2, resamples=0).models["model"]
    assert judged.knowing == f"it was made of the votes on {JUDGED} of {JUDGED} (its judgements)"
    assert "cannot tell here" in judged.verdict
    assert dis.stand_in(PEOPLE, NAMED, least_items=2, resamples=0).models["model"].knowing == ""
    planned = dis.plan(PEOPLE, systems={"together": TOGETHER.take(np.arange(JUDGED))}, budget=20).notes
    assert f"Warning: together was made of the votes on {JUDGED} of {JUDGED} (its judgements)." in planned
    evaluation = evaluate(PEOPLE, given, resamples=0, only_common=True)
    people = frequency(PEOPLE)
    predictions = systems_in(given, people, only_common=True)[1]
    page = files_subject(evaluation, people, predictions, votes=PEOPLE, title="made")
    assert page.cautions[0] == evaluation.leaks[0]


def test_knows_the_votes_unanimous_items_are_no_evidence() -> None:
    """A sure model that names what all people say has copied nothing: votes of one class are easy to foretell."""
    items, people = 200, 5
    label = np.arange(items) % 2
    counts = people * np.eye(2, dtype=np.int64)[label]
    contested = np.arange(0, items, 25)
    counts[contested] += np.array([1, -1]) * np.where(label[contested, None] == 0, -1, 1)
    assert (counts.sum(axis=1) == people).all()
    sure = np.eye(2)[label]
    # All judge every item, so that habits of people could explain much.
    assert not told(counts, sure, who=np.tile(np.arange(people), items))
    assert not told(counts, sure)
