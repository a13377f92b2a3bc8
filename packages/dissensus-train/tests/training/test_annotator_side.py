"""Networks that know people: what is learnt of whom, who is asked for the panel, and that every engine agrees."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from dissensus.errors import InputError
from dissensus.labels.schemes import frequency
from dissensus.votes.table import Annotators, Votes
from dissensus_train.training.annotator_side import SHRINKAGE, People, PeopleNetwork, panel_of
from dissensus_train.training.data import TrainingData, split_items
from dissensus_train.training.engine import train
from dissensus_train.training.fleet import alike
from dissensus_train.training.inputs import network_inputs
from dissensus_train.training.loop import log_probabilities, train_loop
from dissensus_train.training.models import network_of, panel_in
from dissensus_train.training.restoring import pair_probabilities, trained_model
from dissensus_train.training.run import people_run, run_on
from dissensus_train.training.settings import REGIMES, Training
from dissensus_train.training.stacked import StackedRuns, stackable
from dissensus_train.training.store import RunStore, RunWriter
from dissensus_train.training.streams import StreamedRuns
from dissensus_train.training.together import train_together
from tests.training.problems import QUICK, SGD, looped
from tests.votes.people import people_of, with_people

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.training.run import Run, RunResult

CPU = torch.device("cpu")
KINDS = tuple(SHRINKAGE)
SHARES = {"train": 0.6, "validation": 0.2, "test": 0.2}


def judged(
    offsets: Any,
    *,
    items: int = 300,
    votes: int = 5,
    width: int = 6,
    seed: int = 0,
    countries: tuple[str, ...] = ("north", "south"),
) -> TrainingData:
    """Items judged by people whose logits are a linear function of the features and their own offsets.

    Args:
        offsets: (annotators, classes) what each person adds to the logits.
        items: how many.
        votes: of each item, by different people.
        width: of the features.
        seed: of everything random.
        countries: people have them in turn.
    """
    generator = np.random.default_rng(seed)
    people, classes = np.shape(offsets)
    features = generator.normal(size=(items, width)).astype(np.float32)
    logits = 1.5 * features @ generator.normal(size=(width, classes)) / np.sqrt(width)
    item = np.repeat(np.arange(items, dtype=np.int32), votes)
    annotator = np.argsort(generator.random((items, people)), axis=1)[:, :votes].astype(np.int32).ravel()
    noise = generator.gumbel(size=(len(item), classes))
    label = (logits[item] + np.asarray(offsets)[annotator] + noise).argmax(axis=1).astype(np.int32)
    given = Votes(
        item=item,
        label=label,
        items=np.arange(items),
        classes=tuple(f"class {k}" for k in range(classes)),
        annotators=Annotators(
            annotator,
            np.array([f"person {a:03}" for a in range(people)], dtype=np.dtypes.StringDType()),
            {
                "country": np.array(
                    [countries[a % len(countries)] for a in range(people)], dtype=np.dtypes.StringDType()
                )
            },
        ),
    )
    labels = frequency(given)
    return TrainingData(
        name="judged",
        features=features,
        human=labels,
        targets={"frequency": labels},
        splits=split_items(labels.majority().label, SHARES, seed=0),
        votes=given,
        normalise=False,
    )


def of(data: TrainingData, kind: str, /, **change: Any) -> Run:
    given = {"model": "simple-ffn", "seed": 0, "training": QUICK, **change}
    people = People(kind=kind, **{name: given.pop(name) for name in ("by", "shrinkage", "population") if name in given})
    return people_run(data, people=people, **given)


def biased(people: int = 12, classes: int = 3, sd: float = 1.0, seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(scale=sd, size=(people, classes))


DATA = judged(biased())


def own_answers(result: RunResult, data: TrainingData, items: Any) -> Any:
    """(units, items, classes) what the network says for each person, before it is mixed with the panel's answer."""
    model = trained_model(result, data)
    features = network_inputs(model, data, CPU)
    rows, units = torch.from_numpy(items), len(result.weights["share"])
    every = [torch.full_like(rows, unit) for unit in range(units)]
    return np.stack([log_probabilities(model, features, rows, QUICK, who=who).exp().numpy() for who in every])


def vote_nll(result: RunResult, data: TrainingData, split: str = "test") -> float:
    assert data.votes is not None
    inside = np.flatnonzero(np.isin(data.votes.item, data.splits[split]))
    if result.by_vote:
        said = result.by_vote[split]
    else:
        place = {int(item): row for row, item in enumerate(data.splits[split])}
        said = result.predictions[split][[place[int(item)] for item in data.votes.item[inside]]]
    return float(-np.log(said[np.arange(len(inside)), data.votes.label[inside]]).mean())


# What is learnt of people


def test_offsets_of_a_simulated_panel_are_recovered_at_fifty_votes_a_person() -> None:
    truth = biased(people=40, classes=2)
    data = judged(truth, items=667, votes=5, seed=3)
    assert data.votes is not None
    assert 45 < 5 * len(data.splits["train"]) / 40 < 55
    result = train_loop(of(data, "annotator-bias", training=REGIMES["early-stopping"]), data)
    model = trained_model(result, data)
    assert isinstance(model, PeopleNetwork)
    found = model.deviations.numpy()
    # An offset of every class alike changes nothing: only differences between classes can be known.
    assert np.corrcoef(found[:, 1] - found[:, 0], truth[:, 1] - truth[:, 0])[0, 1] > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_knowing_people_predicts_votes_better_where_people_differ(kind: str) -> None:
    data = judged(biased(people=20, classes=3), items=700, seed=5)
    settings = replace(REGIMES["early-stopping"], patience=4)
    plain = train_loop(
        run_on(data, model="simple-ffn", target="frequency", delivery="soft", seed=0, training=settings), data
    )
    aware = train_loop(of(data, kind, training=settings), data)
    assert vote_nll(aware, data) < 0.97 * vote_nll(plain, data)


@pytest.mark.parametrize(
    ("kind", "lost"),
    # Heads and matrices have more to unlearn.
    [("annotator-bias", 0.005), ("annotator-embedding", 0.005), ("multi-task", 0.015), ("crowd-layer", 0.02)],
)
def test_where_people_do_not_differ_hardly_anything_is_lost(kind: str, lost: float) -> None:
    data = judged(np.zeros((100, 2)), items=2000, seed=7)
    settings = replace(REGIMES["early-stopping"], patience=4)
    plain = train_loop(
        run_on(data, model="simple-ffn", target="frequency", delivery="soft", seed=0, training=settings), data
    )
    aware = train_loop(of(data, kind, training=settings), data)
    assert vote_nll(aware, data) < (1 + lost) * vote_nll(plain, data)


def test_offsets_are_those_of_the_penalised_likelihood() -> None:
    """With features that say nothing, common logits b and offsets d minimise sum -ln q + shrinkage / 2 sum d^2."""
    truth = np.vstack([biased(people=5, classes=3), np.zeros(3)])
    data = replace(judged(truth, items=120, votes=6, seed=2), features=np.zeros((120, 1), dtype=np.float32))
    votes = data.votes
    assert votes is not None
    assert votes.annotators is not None
    inside = np.isin(votes.item, data.splits["train"])
    annotator, label = votes.annotators.code[inside], votes.label[inside]

    def loss(flat: Any) -> float:
        common, own = flat[:3], flat[3:].reshape(6, 3)
        log_q = log_softmax(common + own[annotator], axis=1)
        return float(-log_q[np.arange(len(label)), label].sum() + 4.0 / 2 * (own**2).sum())

    best = minimize(loss, np.zeros(21), method="L-BFGS-B", options={"maxiter": 1000}).x
    settings = Training(epochs=1500, learning_rate=0.01, batch_size=512, schedule="cosine")
    result = train_loop(of(data, "annotator-bias", model="linear", shrinkage=4.0, training=settings), data)
    model = trained_model(result, data)
    assert isinstance(model, PeopleNetwork)
    assert np.allclose(model.deviations.numpy(), best[3:].reshape(6, 3), atol=0.02)


def test_a_person_with_three_votes_is_moved_less_than_one_with_many() -> None:
    """Both always say the first class."""
    data = judged(np.zeros((10, 2)), items=300, seed=4)
    votes = data.votes
    assert votes is not None
    assert votes.annotators is not None
    trained = np.isin(votes.item, data.splits["train"])
    kept = np.ones(len(votes), dtype=bool)
    kept[np.flatnonzero((votes.annotators.code == 0) & trained)[3:]] = False
    changed = votes.take_judgements(np.flatnonzero(kept))
    assert changed.annotators is not None
    label = np.where(changed.annotators.code <= 1, 0, changed.label).astype(np.int32)
    data = replace(data, votes=replace(changed, label=label))
    model = trained_model(train_loop(of(data, "annotator-bias"), data), data)
    assert isinstance(model, PeopleNetwork)
    towards_first = (model.deviations[:, 0] - model.deviations[:, 1]).numpy()
    assert 0 < towards_first[0] < 0.5 * towards_first[1]
    assert towards_first[1] == towards_first.max()


@pytest.mark.parametrize("kind", KINDS)
def test_an_endless_shrinkage_leaves_the_population_alone(kind: str) -> None:
    result = looped(of(DATA, kind, shrinkage=1e7), DATA)
    model = trained_model(result, DATA)
    assert isinstance(model, PeopleNetwork)
    assert model.deviations.abs().max() < 0.02


# Who is asked


@pytest.mark.parametrize("kind", KINDS)
def test_the_panel_is_the_mean_over_people_by_their_training_votes(kind: str) -> None:
    result = looped(of(DATA, kind), DATA)
    votes = DATA.votes
    assert votes is not None
    assert votes.annotators is not None
    items = DATA.splits["test"]
    heard = np.bincount(votes.annotators.code[np.isin(votes.item, DATA.splits["train"])], minlength=12)
    each = own_answers(result, DATA, items)
    assert np.ptp(each, axis=0).max() > 0.05, "people differ"
    expected = np.einsum("a,aik->ik", heard / heard.sum(), each)
    assert np.allclose(result.predictions["test"], expected, atol=1e-5)


def test_a_stated_population_weighs_its_groups_and_people_within_by_votes() -> None:
    votes = DATA.votes
    assert votes is not None
    assert votes.annotators is not None
    stated = {"country": {"north": 0.9, "south": 0.1}}
    result = train_loop(of(DATA, "annotator-bias", population=stated), DATA)
    heard = np.bincount(votes.annotators.code[np.isin(votes.item, DATA.splits["train"])], minlength=12).astype(float)
    north = np.arange(12) % 2 == 0
    share = np.where(north, 0.9 * heard / heard[north].sum(), 0.1 * heard / heard[~north].sum())
    items = DATA.splits["test"]
    each = own_answers(result, DATA, items)
    assert np.allclose(result.predictions["test"], np.einsum("a,aik->ik", share, each), atol=1e-5)
    with pytest.raises(InputError, match="no annotator with training votes has country 'east'"):
        train_loop(of(DATA, "annotator-bias", population={"country": {"north": 0.5, "east": 0.5}}), DATA)


@pytest.mark.parametrize("kind", KINDS)
def test_somebody_who_was_never_heard_answers_as_the_panel(kind: str) -> None:
    result = looped(of(DATA, kind), DATA)
    items = DATA.splits["test"]
    told = pair_probabilities(result, DATA, items, np.full(len(items), -1))
    assert np.allclose(told, result.predictions["test"], atol=1e-6)


def test_the_fewer_votes_a_person_has_the_more_the_panel_counts() -> None:
    result = looped(of(DATA, "annotator-bias"), DATA)
    items, heard = DATA.splits["test"], panel_in(DATA, result.run.people).heard  # type: ignore[arg-type]
    assert heard[-1] == 0
    own = own_answers(result, DATA, items)
    for a in (0, 7):
        expected = (heard[a] * own[a] + 3 * result.predictions["test"]) / (heard[a] + 3)
        assert np.allclose(pair_probabilities(result, DATA, items, np.full(len(items), a)), expected, atol=1e-6)


def test_groups_take_the_place_of_persons() -> None:
    offsets = np.where(np.arange(12)[:, None] % 2 == 0, [1.5, 0.0, 0.0], [0.0, 0.0, 1.5])
    data = judged(offsets, items=500)
    run = of(data, "annotator-bias", by="country")
    panel = panel_in(data, run.people)  # type: ignore[arg-type]
    assert panel.units.tolist() == ["north", "south"]
    assert panel.unit.tolist() == [0, 1] * 6
    result = train_loop(run, data)
    items = data.splits["test"]
    north, north_too, south = (pair_probabilities(result, data, items, np.full(len(items), a)) for a in (0, 2, 1))
    assert np.array_equal(north, north_too)
    assert (north[:, 0] > south[:, 0] + 0.05).mean() > 0.9


def test_who_was_not_trained_on_still_has_a_group() -> None:
    votes = DATA.votes
    assert votes is not None
    assert votes.annotators is not None
    # The first person's votes are all on items that are not trained on.
    few = votes.take_judgements(
        np.flatnonzero((votes.annotators.code != 0) | ~np.isin(votes.item, DATA.splits["train"]))
    )
    assert panel_of(few, People(kind="annotator-bias"), DATA.splits["train"]).unit[0] == 11, "past the last of eleven"
    assert panel_of(few, People(kind="annotator-bias", by="country"), DATA.splits["train"]).unit[0] == 0


def test_votes_of_held_out_items_are_kept_in_the_order_of_the_votes(tmp_path: Path) -> None:
    result = looped(of(DATA, "multi-task"), DATA)
    votes = DATA.votes
    assert votes is not None
    assert votes.annotators is not None
    rows = np.flatnonzero(np.isin(votes.item, DATA.splits["test"]))
    expected = pair_probabilities(result, DATA, votes.item[rows], votes.annotators.code[rows])
    assert np.allclose(result.by_vote["test"], expected, atol=1e-6)
    assert set(result.by_vote) == {"validation", "test"}
    with RunWriter(tmp_path) as writer:
        writer.save(result)
    kept = RunStore(tmp_path).load(result.run.key)
    assert kept.run == result.run
    assert np.array_equal(kept.by_vote["test"], result.by_vote["test"])


def test_a_judgement_of_several_classes_is_one_example() -> None:
    """Its target is its own distribution, so that it counts as much as a judgement of one class."""
    votes = DATA.votes
    assert votes is not None
    both = replace(
        votes,
        item=np.repeat(votes.item, 2),
        annotators=people_of(votes).of_votes(np.repeat(np.arange(len(votes)), 2)),
        label=np.stack([votes.label, (votes.label + 1) % 3], axis=1).ravel().astype(np.int32),
        judgement=np.repeat(np.arange(len(votes), dtype=np.int32), 2),
    )
    data = replace(DATA, votes=both)
    result = train_loop(of(data, "annotator-bias", training=replace(QUICK, epochs=2)), data)
    assert not result.failed
    assert len(result.by_vote["test"]) == 2 * len(DATA.splits["test"]) * 5


# The run and the engines


def test_the_key_of_a_run_covers_who_said_what_and_only_where_it_is_read() -> None:
    votes = DATA.votes
    assert votes is not None
    assert votes.annotators is not None
    swapped = replace(DATA, votes=with_people(votes, code=people_of(votes).code[::-1].copy()))
    assert of(DATA, "annotator-bias").key != of(swapped, "annotator-bias").key
    plain = {"model": "simple-ffn", "target": "frequency", "delivery": "soft", "seed": 0, "training": QUICK}
    assert run_on(DATA, **plain).key == run_on(swapped, **plain).key  # type: ignore[arg-type]
    assert "people" not in run_on(DATA, **plain).spec()  # type: ignore[arg-type]
    order = np.random.default_rng(0).permutation(len(votes))
    shuffled = replace(DATA, votes=votes.take_judgements(order))
    assert of(DATA, "annotator-bias").key == of(shuffled, "annotator-bias").key
    keys = {
        of(DATA, "annotator-bias", **change).key
        for change in ({}, {"by": "country"}, {"shrinkage": 2.0}, {"population": {"country": {"north": 1.0}}})
    }
    assert len(keys) == 4
    assert of(DATA, "annotator-bias").key == of(DATA, "annotator-bias", shrinkage=SHRINKAGE["annotator-bias"]).key


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("together", [StackedRuns, StreamedRuns])
@pytest.mark.parametrize("settings", [QUICK, SGD], ids=["adam-plateau-stopping", "sgd-cosine-dynamics"])
def test_a_fleet_trains_the_same_runs_as_the_loop(kind: str, together: Any, settings: Any) -> None:
    settings = replace(settings, epochs=3)
    runs = [of(DATA, kind, seed=seed, training=settings) for seed in (0, 1)]
    assert alike(runs, DATA) == [runs]
    assert stackable(network_of(runs[0], DATA))
    for one, other in zip(runs, train_together(together(runs, DATA, CPU), runs, DATA, device=CPU), strict=True):
        reference = looped(one, DATA)
        assert set(reference.weights) == set(other.weights)
        for name in reference.weights:
            assert np.allclose(reference.weights[name], other.weights[name], atol=2e-4), name
        for split in ("validation", "test"):
            assert np.allclose(reference.predictions[split], other.predictions[split], atol=2e-4)
            assert np.allclose(reference.by_vote[split], other.by_vote[split], atol=2e-4)
        for column in reference.history:
            assert np.allclose(reference.history[column], other.history[column], atol=2e-4), column
        assert not other.failed


def test_kinds_do_not_go_together() -> None:
    runs = [of(DATA, kind) for kind in KINDS]
    assert len(alike(runs, DATA)) == len(KINDS)


def test_workers_give_the_bits_of_the_loop() -> None:
    runs = [of(DATA, kind, training=replace(QUICK, epochs=2)) for kind in KINDS[:2]]
    for result in train(runs, DATA, engine="fleet", device="cpu"):
        alone = looped(next(run for run in runs if run.key == result.run.key), DATA)
        assert np.array_equal(alone.by_vote["test"], result.by_vote["test"])


def test_an_epoch_is_chosen_on_single_votes() -> None:
    result = looped(of(DATA, "annotator-bias"), DATA)
    votes = DATA.votes
    assert votes is not None
    assert votes.annotators is not None
    items = DATA.splits["validation"]
    rows = np.flatnonzero(np.isin(votes.item, items))
    own, place = own_answers(result, DATA, items), np.searchsorted(items, votes.item[rows])
    said = own[votes.annotators.code[rows], place, votes.label[rows]]
    best = result.history["selection"].min()
    assert result.history["selection"][result.chosen_epoch] == best
    # Of what was learnt of people by then, the share is kept that is best for the same votes.
    assert best - 0.02 < -np.log(said).mean() < best + 1e-6


def test_a_crowd_layer_is_that_of_crowd_kit() -> None:
    learning = pytest.importorskip("crowdkit.learning", reason="crowd-kit is not installed")
    model = network_of(of(DATA, "crowd-layer"), DATA)
    assert isinstance(model, PeopleNetwork)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        model.deviation.copy_(torch.randn(model.deviation.shape, generator=generator) / 30)
    layer = learning.CrowdLayer(3, 12, conn_type="mw")
    layer.weight.data = model.common.detach() + model.deviations
    x, who = torch.from_numpy(DATA.features[:40]), torch.arange(40) % 12
    assert torch.allclose(model(x, who), layer(model.network(x).softmax(dim=1), who), atol=1e-5)


def test_a_head_a_person_is_that_many_networks() -> None:
    model = network_of(of(DATA, "multi-task"), DATA)
    assert isinstance(model, PeopleNetwork)
    assert model.layer == "3"
    with torch.no_grad():
        model.deviation.normal_(std=0.1, generator=torch.Generator().manual_seed(0))
    x = torch.from_numpy(DATA.features[:7])
    for a in range(12):
        own = network_of(run_on(DATA, **_plain()), DATA)
        read = own[:3](x)  # type: ignore[index]
        length = read.norm(dim=1, keepdim=True)
        own[3].weight.data = own[3].weight * length[:1] + model.deviations[a, :, :-1]  # type: ignore[index]
        own[3].bias.data += model.deviations[a, :, -1]  # type: ignore[index]
        assert torch.allclose(model(x[:1], torch.tensor([a])), own[3](read[:1] / length[:1]), atol=1e-5)  # type: ignore[index]


def test_an_embedding_enters_before_the_activation() -> None:
    model = network_of(of(DATA, "annotator-embedding"), DATA)
    assert isinstance(model, PeopleNetwork)
    assert model.layer == "1"
    with torch.no_grad():
        model.deviation.normal_(generator=torch.Generator().manual_seed(0))
    x, who = torch.from_numpy(DATA.features[:7]), torch.tensor([3, 3, 0, 1, 11, 5, 6])
    hidden, last = model.network[1], model.network[3]  # type: ignore[index]
    weights = [part.detach().numpy() for part in (hidden.weight, hidden.bias, last.weight, last.bias)]
    inside = np.maximum(x.numpy() @ weights[0].T + weights[1] + model.deviations[who].numpy(), 0)
    expected = softmax(inside @ weights[2].T + weights[3], axis=1)
    assert np.allclose(model(x, who).softmax(dim=1).detach().numpy(), expected, atol=1e-5)


def _plain() -> Any:
    return {"model": "simple-ffn", "target": "frequency", "delivery": "soft", "seed": 0, "training": QUICK}


# Refusals


def test_what_cannot_know_people_is_refused() -> None:
    votes = DATA.votes
    assert votes is not None
    with pytest.raises(InputError, match="the votes are anonymous"):
        of(replace(DATA, votes=replace(votes, annotators=None)), "annotator-bias")
    with pytest.raises(InputError, match="no attribute 'age'; there is: country"):
        of(DATA, "annotator-bias", by="age")
    with pytest.raises(InputError, match="choose annotator-bias"):
        network_of(of(DATA, "annotator-embedding", model="linear"), DATA)
    with pytest.raises(InputError, match="together 1"):
        People(kind="annotator-bias", population={"country": {"north": 0.5}})
    with pytest.raises(InputError, match="shrinkage is -1"):
        People(kind="annotator-bias", shrinkage=-1)
    with pytest.raises(InputError, match="'bias' is no way"):
        People(kind="bias")


# Fine-tuned networks


@pytest.mark.parametrize(
    ("kind", "layer"),
    [
        ("annotator-bias", ""),
        ("annotator-embedding", "network.bert.pooler.dense"),
        ("multi-task", "network.classifier"),
        ("crowd-layer", ""),
    ],
)
def test_a_fine_tuned_network_knows_people_too(tmp_path: Path, kind: str, layer: str) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    from tests.training.texts import texts, tiny_transformer

    data = texts(60)
    model = f"hf:{tiny_transformer(tmp_path / 'tiny', dropout=0.0)}"
    settings = Training(epochs=2, batch_size=16, keep="best", learning_rate=3e-3)
    one = of(data, kind, model=model, training=settings)
    network = network_of(one, data)
    assert isinstance(network, PeopleNetwork)
    assert network.layer == layer
    result = train_loop(one, data)
    assert not result.failed
    assert np.abs(result.weights["deviation"]).max() > 0 or result.by_vote["test"].std() > 0
    votes = data.votes
    assert votes is not None
    assert votes.annotators is not None
    items = data.splits["test"]
    heard = np.bincount(votes.annotators.code[np.isin(votes.item, data.splits["train"])], minlength=10)
    each = own_answers(result, data, items)
    assert np.allclose(result.predictions["test"], np.einsum("a,aik->ik", heard / heard.sum(), each), atol=1e-5)
