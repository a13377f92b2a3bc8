"""One run and what it leaves."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch.nn import functional as F

from dissensus.errors import InputError, choices
from dissensus.own_code import own_source
from dissensus_train.cores import available_cores
from dissensus_train.delivery import HARD, Delivery, deliver, one_by_one, ordered_judgements, reads_votes
from dissensus_train.training.annotator_side import TRUST_IN_AN_EPOCH, VOTES, People, mixed, votes_of_split
from dissensus_train.training.data import TRAIN, TrainingData
from dissensus_train.training.losses import loss_of
from dissensus_train.training.models import BEGINNINGS, LOGISTIC, model_source, network_of, panel_in
from dissensus_train.training.settings import NO_EPOCHS, Training, spelled_out

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor

    from dissensus.arrays import Floats, Ints
    from dissensus.labels.distribution import LabelDistribution
    from dissensus_train.delivery.deliveries import Fixed

MEANING = 2
"""Counts up when the code changes what a run means, so that no run of an older meaning is found under a new key."""

DIVERGED: Final = 1e3
"""A training loss that is so many times that of the start is no longer training."""

FEW: Final = 16
"""Training items by whose predictions a network is known that never learnt, or lost what it was."""

VERSIONS: Final = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
"""Of what trains runs in this process."""


def machine(device: torch.device | str) -> str:
    """What trains runs in this process, in words: the GPU, or the cores."""
    place = torch.device(device)
    if place.type == "cuda":
        return torch.cuda.get_device_name(place)
    return f"{available_cores()} cores, {platform.machine()}"


def key_of(values: Any) -> str:
    """A hash of plain values, by which what they decide is stored and found."""
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:20]


def timed(seconds: float, *, engine: str, device: torch.device | str, together: int) -> dict[str, Any]:
    """The `timing` of each of so many runs that were trained together."""
    about = {"engine": engine, "device": str(device), "together": together, "machine": machine(device)}
    return {"seconds": seconds, **about}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One model trained on one target by one delivery with one seed (of weights, batches, draws and augmentation).

    A model with an annotator side, `people`, is trained on votes one by one. `data` is the fingerprint of what it
    learns from (`data_fingerprint`), `source` that of the user's own code (network, loss, delivery); empty where all is
    of this package.
    """

    model: str
    target: str
    delivery: str
    seed: int
    training: Training
    data: str
    source: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    people: People | None = None

    def spec(self) -> dict[str, Any]:
        """Everything that decides the result, as plain values; a run without people has the key it always had."""
        whole = {"meaning": MEANING, **asdict(self), "training": spelled_out(self.training)}
        whole["beginning"] = BEGINNINGS.get(self.model)
        return {
            name: value for name, value in whole.items() if name not in ("people", "beginning") or value is not None
        }

    # Asked for at the end of every epoch of every run: made anew, it took a fifth as long as a small network's epoch.
    @cached_property
    def key(self) -> str:
        """The hash of the spec: what the run is stored and found by."""
        return key_of(self.spec())

    @property
    def network(self) -> str:
        """The model with its annotator side: runs of one network on one set of data differ in nothing that is built."""
        return self.model if self.people is None else f"{self.model} {self.people!r}"

    @property
    def method(self) -> str:
        """Target, delivery and its options, in words: `frequency / stale-sls (keep=5)`; `votes / annotator-bias`."""
        if self.people is not None:
            return f"{self.target} / {self.people}"
        options = ", ".join(f"{name}={value}" for name, value in sorted(self.options.items()))
        return f"{self.target} / {self.delivery}{f' ({options})' if options else ''}"


@dataclass(frozen=True, eq=False, kw_only=True)
class RunResult:
    """What a run leaves.

    Attributes:
        run: its spec.
        history: by column, (epochs,) values: learning_rate, train_loss, and selection where it was measured.
        chosen_epoch: the epoch, from 0, whose weights were kept.
        predictions: by split, (items, classes) float32 probabilities of the kept weights.
        dynamics: by split, (epochs, items, classes) float16 probabilities after each epoch; empty unless asked for.
        weights: by name, the kept parameters and buffers.
        by_vote: by split that is not trained on, (votes, classes) float32 probabilities of each vote on its items,
            given who cast it, in the order of the votes; empty where the model does not know people.
        timing: seconds of wall clock, the engine, the device and the machine.
        versions: of Python, PyTorch and NumPy that trained it; recorded, and not part of the key, so that what a GPU
            machine trained is found on a laptop.
        failed: why the run counts as failed and is not scored; empty where it trained.
        tuned: by learning rate that was tried, the selection metric; empty where none was searched for.
    """

    run: Run
    history: Mapping[str, np.ndarray[Any, Any]]
    chosen_epoch: int
    predictions: Mapping[str, np.ndarray[Any, np.dtype[np.float32]]]
    dynamics: Mapping[str, np.ndarray[Any, np.dtype[np.float16]]]
    weights: Mapping[str, np.ndarray[Any, Any]]
    timing: Mapping[str, Any]
    versions: Mapping[str, str] = field(default_factory=lambda: VERSIONS)
    failed: str = ""
    tuned: Mapping[float, float] = field(default_factory=dict)
    by_vote: Mapping[str, np.ndarray[Any, np.dtype[np.float32]]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class SelectionRows:
    """What the selection metric is measured on: (rows,) items, (rows, classes) what they are compared with.

    `who` is whose answer each row is; None where it is everybody's.
    """

    rows: Tensor
    target: Tensor
    who: Tensor | None = None

    @property
    def shares(self) -> tuple[float, ...]:
        """The shares of people's deviations that an epoch is measured at."""
        return (1.0,) if self.who is None else TRUST_IN_AN_EPOCH


def run_on(
    data: TrainingData,
    *,
    model: str,
    target: str,
    delivery: str,
    seed: int,
    training: Training,
    options: Mapping[str, Any] | None = None,
    people: People | None = None,
) -> Run:
    """A run on data, with the fingerprints of everything that decides its result."""
    training = known_settings(model, training)
    return Run(
        model=model,
        target=target,
        delivery=delivery,
        options=dict(options or {}),
        seed=seed,
        training=training,
        people=people,
        data=data_fingerprint(data, target=target, delivery=delivery, training=training, model=model, people=people),
        source=_source(data.folder, model=model, delivery=delivery, training=training),
    )


def known_settings(model: str, training: Training) -> Training:
    """The settings as a run of the model has them.

    Logistic regression knows those of the selection, the loss and the class weights; others change nothing, its key
    neither.
    """
    if model != LOGISTIC:
        return training
    known = ("selection", "selection_split", "loss", "class_weights")
    return replace(NO_EPOCHS, **{name: getattr(training, name) for name in known})


def _source(folder: Path | None, *, model: str, delivery: str, training: Training) -> str:
    """The fingerprint of all code that is the user's own; empty where none is.

    An optimiser of PyTorch itself counts by its name alone: versions are recorded, and not part of the key.
    """
    own = [name for name in (delivery, training.loss, training.optimiser) if ":" in name]
    sources = [own_source(name, folder=folder) for name in own if not name.startswith("torch.")]
    if not sources:
        return model_source(model, folder)
    return hashlib.sha256(" ".join([model_source(model, folder), *sources]).encode()).hexdigest()[:16]


def people_run(data: TrainingData, *, model: str, people: People, seed: int, training: Training) -> Run:
    """A run of a model with an annotator side: what it learns from are the votes themselves."""
    return run_on(data, model=model, target=VOTES, delivery=VOTES, seed=seed, training=training, people=people)


def data_fingerprint(
    data: TrainingData, *, target: str, delivery: str, training: Training, model: str = "", people: People | None = None
) -> str:
    """A hash of the data that decide a run's result: items, its own target, and what else it reads.

    The human distribution counts where an epoch is selected by it, the votes where the delivery reads them: each
    item's judgements, whatever their order in the file, and all of them where the delivery is the user's own. The items
    themselves count where the network may read them, and who cast which vote where it knows people. Other targets of
    the study do not count, so a study that gains one trains nothing again.
    """
    labels = _target(data, target)
    digest = hashlib.sha256(data.fingerprint.encode())
    for labelled in (labels, *([data.human] if training.selects and training.selection != "loss" else [])):
        digest.update(np.ascontiguousarray(labelled.probabilities).data)
        digest.update(np.ascontiguousarray(labelled.counts).data)
    votes = data.panels.get(target, data.votes)
    if votes is not None and ":" in delivery:
        annotator = None if votes.annotators is None else votes.annotators.code
        for column in (votes.item, votes.label, votes.unsure, votes.judgement, annotator):
            digest.update(b"none" if column is None else np.ascontiguousarray(column).data)
    elif votes is not None and reads_votes(delivery, labels):
        for part in ordered_judgements(votes, labels.scheme):
            digest.update(np.ascontiguousarray(part).data)
    if people is not None:
        assert data.votes is not None
        panel = panel_in(data, people)
        every = one_by_one(data.votes, panel.unit)
        said = every.targets.reshape(len(every.targets), -1).numpy()
        order = np.lexsort((*said.T, every.annotator.numpy(), every.examples.numpy()))  # type: ignore[union-attr]
        for part in (every.examples.numpy(), every.annotator.numpy(), said):  # type: ignore[union-attr]
            digest.update(np.ascontiguousarray(part[order]).data)
        digest.update("\n".join(map(str, panel.units.tolist())).encode() + panel.share.tobytes())
    if data.items is not None and ":" in model:
        digest.update(data.items.fingerprint.encode())
    return digest.hexdigest()[:16]


def delivery_of(run: Run, data: TrainingData, device: torch.device | str = "cpu") -> Delivery:
    """The delivery of a run over the training items, in the order of the train split."""
    members = data.splits[TRAIN]
    if run.people is not None:
        return _single_votes(run.people, data, members, device)
    votes = data.panels.get(run.target, data.votes)
    return deliver(
        run.delivery,
        _target(data, run.target).take(members),
        None if votes is None else votes.take_items(members),
        seed=run.seed,
        device=device,
        folder=data.folder,
        **run.options,
    )


def _single_votes(people: People, data: TrainingData, members: Ints, device: torch.device | str) -> Fixed:
    """Every judgement of some items, with the unit of the panel that made it."""
    panel = panel_in(data, people)
    assert data.votes is not None, "a panel is made of votes"
    return one_by_one(data.votes.take_items(members), panel.unit, device=device)


def held_out_votes(run: Run, data: TrainingData, device: torch.device) -> dict[str, tuple[Tensor, Tensor]]:
    """By split that is not trained on, the item and the unit of each vote; empty where the run does not know people."""
    if run.people is None:
        return {}
    panel, votes = panel_in(data, run.people), data.votes
    assert votes is not None, "a panel is made of votes"
    assert votes.annotators is not None, "a panel is made of votes that are not anonymous"
    held_out = {}
    for name in data.splits:
        if name != TRAIN:
            rows = votes_of_split(data, name)
            item, unit = votes.item[rows].astype(np.int64), panel.unit[votes.annotators.code[rows]]
            held_out[name] = (torch.from_numpy(item).to(device), torch.from_numpy(unit).to(device))
    return held_out


def answers_by_vote(
    run: Run, data: TrainingData, own: Mapping[str, np.ndarray[Any, Any]], panel: Mapping[str, np.ndarray[Any, Any]]
) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    """By split, (votes, classes) what is predicted of each vote (`RunResult.by_vote`).

    `own` has by split the network's answers for the votes of `held_out_votes`, `panel` the panel's for the items.
    """
    by_vote = {}
    for name, answers in own.items():
        assert run.people is not None, "votes are answered by runs that know people"
        item, unit = (part.numpy() for part in held_out_votes(run, data, torch.device("cpu"))[name])
        heard = panel_in(data, run.people).heard[unit]
        by_vote[name] = mixed(answers, panel[name][data.places_in(name)[item]], heard)
    return by_vote


def _target(data: TrainingData, name: str) -> LabelDistribution:
    if name == VOTES:
        return data.human
    if name not in data.targets:
        raise InputError(f"'{name}' is no target of {data.name}{choices(name, data.targets)}")
    return data.targets[name]


def selection_of(run: Run, data: TrainingData, device: torch.device | str = "cpu") -> SelectionRows | None:
    """What the selection metric is measured on; None where nothing is selected.

    The run's own target as it would be delivered in the mean (a majority run is selected on majority labels; one that
    knows people on single votes, given who cast them), or the human distribution.
    """
    settings = run.training
    if not settings.selects:
        return None
    if settings.selection_split not in data.splits or not data.splits[settings.selection_split].size:
        raise InputError(
            f"training: the selection split '{settings.selection_split}' has no items in {data.name}; add it (beside "
            "an official split, validation = 0.1 takes a tenth of the training items), or set keep = 'last', patience "
            "and plateau off"
        )
    members = data.splits[settings.selection_split]
    rows = torch.from_numpy(members).to(device)
    if settings.selection == "loss" and run.people is not None:
        single = _single_votes(run.people, data, members, device)
        target = single.targets if single.targets.ndim == 2 else F.one_hot(single.targets, data.classes)
        return SelectionRows(rows[single.examples], target.float(), single.annotator)
    human = data.human.take(members)
    compared = (
        _delivered_in_the_mean(run, data, members)
        if settings.selection == "loss"
        else np.asarray(human.one_hot() if settings.selection == "accuracy" else human.probabilities, dtype=np.float32)
    )
    return SelectionRows(rows, torch.from_numpy(compared).to(device))


def class_weights(run: Run, data: TrainingData) -> np.ndarray[Any, np.dtype[np.float32]] | None:
    """(classes,) how much each class counts in the training loss; None where all count alike.

    `balanced`: 1 / (number of classes that are delivered times the share of the class in the run's training target), so
    that the mean weight of the training items is 1.
    """
    given, names = run.training.class_weights, data.human.classes
    if given is None:
        return None
    if isinstance(given, str):
        share = _delivered_in_the_mean(run, data, data.splits[TRAIN]).mean(axis=0, dtype=np.float64)
        weights = np.divide(1 / (share > 0).sum(), share, out=np.zeros_like(share), where=share > 0)
        return np.asarray(weights, dtype=np.float32)
    if set(given) != set(names):
        wrong = sorted(set(given) ^ set(names))[0]
        raise InputError(
            f"training: class_weights {'has no weight for' if wrong in names else 'names'} '{wrong}'; the classes of "
            f"{data.name} are {', '.join(names)}: give each a number"
        )
    return np.array([given[name] for name in names], dtype=np.float32)


def _delivered_in_the_mean(run: Run, data: TrainingData, members: Ints) -> np.ndarray[Any, np.dtype[np.float32]]:
    """(members, classes) the run's own target as its delivery has it in the mean: hard ones know only the majority."""
    own = _target(data, run.target).take(members)
    return np.asarray(own.one_hot() if run.delivery in HARD else own.probabilities, dtype=np.float32)


def why_failed(
    run: Run, data: TrainingData, *, before: Any, after: Any, loss: Floats, weights: Mapping[str, np.ndarray[Any, Any]]
) -> str:
    """Why a run counts as failed; empty where it trained.

    A run failed where its training loss became NaN, infinite or `DIVERGED` times that of the start in any epoch, where
    the weights that it kept are not finite, or where they are still those it started from. `before` and `after` are
    what it predicted of the first training items with the weights of the start, and with those it kept.
    """
    target = torch.from_numpy(_delivered_in_the_mean(run, data, data.splits[TRAIN][: len(before)]))
    log_q = torch.from_numpy(before).float().clamp_min(torch.finfo(torch.float32).tiny).log()
    start = float(loss_of(run.training, data.folder)(log_q, target).mean())
    lost = np.flatnonzero(~(loss <= DIVERGED * np.fmax(start, 1e-3)))
    if lost.size:
        diverged = f", and {start:.3g} before it" if np.isfinite(loss[lost[0]]) else ""
        return f"its training loss was {loss[lost[0]]:.3g} in epoch {lost[0] + 1}{diverged}"
    finite = all(np.isfinite(value).all() for value in weights.values() if value.dtype.kind == "f")
    if finite and not np.array_equal(before, after):
        # Other answers come from other weights; the network of the start is built again only where they are the same.
        return ""
    first = dict(network_of(run, data, checked=False).named_parameters())
    if not all(np.isfinite(weights[name]).all() for name in first):
        return "its weights are no longer finite numbers"
    # A network without parameters has nothing to learn, and has not failed to.
    if first and all(np.array_equal(weights[name], value.detach().numpy()) for name, value in first.items()):
        return "its weights never left the start"
    return ""
