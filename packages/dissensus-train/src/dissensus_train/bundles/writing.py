"""`export_bundle`: a study's model as a folder of its own."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save_file

from dissensus.errors import InputError
from dissensus.evaluation.evaluating import evaluate
from dissensus.evaluation.metrics import soft_nll
from dissensus.items import Items
from dissensus.own_code import source_files
from dissensus.version import __version__
from dissensus.votes.privacy import pseudonyms_of
from dissensus.whole_file import whole_folder
from dissensus_train.bundles.card import model_card
from dissensus_train.bundles.fingerprints import fingerprints
from dissensus_train.bundles.loading import CODE, NETWORK, STATE, TRAINED_ON
from dissensus_train.bundles.recipe import Recipe, write_recipe
from dissensus_train.training.annotator_side import PeopleNetwork
from dissensus_train.training.data import TRAIN
from dissensus_train.training.fine_tuning import keep_architecture
from dissensus_train.training.models import MODELS, network_of, panel_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import nn

    from dissensus.arrays import Ints
    from dissensus.evaluation.evaluating import Evaluation
    from dissensus_train.studies import ScoredStudy
    from dissensus_train.studies.scored import StudySystem
    from dissensus_train.training.data import TrainingData
    from dissensus_train.training.run import Run

REPORTED = ("soft_nll", "kl", "brier", "accuracy", "ece")
"""The metrics that a model card tells."""


def export_bundle(
    scored: ScoredStudy,
    path: str | Path,
    *,
    run: str | None = None,
    ensemble: bool = False,
    pseudonyms: str | None = None,
) -> tuple[Path, str]:
    """Write a model of a study as a bundle, and say how it was chosen.

    Args:
        scored: the study.
        path: the folder to write; nothing may be there yet.
        run: the key of a run, or its beginning; without it, the run whose soft NLL to people is lowest on the split
            that epochs are selected on. Nothing is chosen on the items that scores are told of.
        ensemble: take all seeds of the chosen system together.
        pseudonyms: the key of pseudonyms (`dissensus.votes.privacy`) for the people whom the model knows by name; None
            keeps the names that the study's votes have.

    Returns:
        The folder, and how the model was chosen, in words.
    """
    path = Path(path)
    system, seeds, chosen = _chosen(scored, run, ensemble=ensemble)
    data = scored.opened.data
    members = [each for each in system.runs if each.seed in seeds]
    evaluation = _evaluated(scored, system, seeds)
    recipe = _recipe(scored, system, members, evaluation, pseudonyms=pseudonyms)
    with whole_folder(path) as folder:
        for member in members:
            weights = scored.opened.store.load(member.key, dynamics=False).weights
            save_file(dict(weights), folder / recipe.weights_of(member.seed))
        if data.encoder is not None and data.encoder.state:
            np.savez(folder / STATE, **dict(data.encoder.state))  # type: ignore[arg-type]
        np.save(folder / TRAINED_ON, _known(scored, recipe, chosen=run is None))
        _keep_code(recipe, data, folder)
        if recipe.network.startswith("hf:"):
            made = network_of(members[0], data)
            keep_architecture(made.network if isinstance(made, PeopleNetwork) else made, folder / NETWORK)
        write_recipe(recipe, folder)
        (folder / "README.md").write_text(model_card(recipe, scored, evaluation, chosen=chosen), encoding="utf-8")
    return path, chosen


def _chosen(scored: ScoredStudy, run: str | None, *, ensemble: bool) -> tuple[StudySystem, list[int], str]:
    if run is not None:
        found = [
            (system, each) for system in scored.systems.values() for each in system.runs if each.key.startswith(run)
        ]
        if len(found) != 1:
            what = "no run that trained" if not found else f"{len(found)} runs"
            raise InputError(
                f"study {scored.opened.study.name}: {what} begins with '{run}'; give the whole key, as in the store's "
                f"folder {scored.opened.store.folder / 'runs'}"
            )
        system, one = found[0]
        return (
            system,
            [each.seed for each in system.runs] if ensemble else [one.seed],
            f"the run {one.key}, as asked for",
        )
    split = scored.opened.study.training.selection_split
    data = scored.opened.data
    if split not in data.splits:
        system = next(iter(scored.systems.values()))
        return (
            system,
            [each.seed for each in system.runs][: None if ensemble else 1],
            f"{system.name}, the first of the study: there is no split '{split}' to choose on",
        )
    human = data.human.take(data.splits[split]).probabilities
    losses = {
        (system.name, each.seed): float(soft_nll(human, predicted.astype(np.float64)).mean())
        for system in scored.systems.values()
        for each, predicted in zip(system.runs, system.predictions[split], strict=True)
    }
    if ensemble:
        means = {
            name: float(np.mean([loss for (of, _), loss in losses.items() if of == name])) for name in scored.systems
        }
        best = min(means, key=means.__getitem__)
        system = scored.systems[best]
        told = f"all seeds of {best}, whose mean soft NLL on the split '{split}' is lowest ({means[best]:.3f})"
        return system, [each.seed for each in system.runs], told
    name, seed = min(losses, key=losses.__getitem__)
    return (
        scored.systems[name],
        [seed],
        f"{name}, seed {seed}, whose soft NLL on the split '{split}' is lowest ({losses[name, seed]:.3f})",
    )


def _evaluated(scored: ScoredStudy, system: StudySystem, seeds: Sequence[int]) -> Evaluation:
    """This very model, not the mean of its system's runs, against people on the held-out items."""
    data, split = scored.opened.data, scored.split
    rows = [place for place, each in enumerate(system.runs) if each.seed in seeds]
    predicted = system.predictions[split][rows].mean(axis=0, dtype=np.float64)
    return evaluate(
        scored.human,
        {system.name: predicted},
        classes=scored.human.classes,
        votes=data.votes,
        metrics=list(REPORTED),
        strata=(),
        training=data.human.take(data.splits[TRAIN]) if split != TRAIN else None,
    )


def _recipe(
    scored: ScoredStudy, system: StudySystem, members: Sequence[Run], evaluation: Evaluation, *, pseudonyms: str | None
) -> Recipe:
    data, study, first = scored.opened.data, scored.opened.study, members[0]
    network = network_of(first, data)
    reads_items = hasattr(network, "prepare")
    own_encoder = data.encoder is not None and _is_own(data.encoder.name)
    return Recipe(
        name={"system": system.name, "study": study.name},
        classes=data.human.classes,
        ordered=data.human.ordered,
        network=first.model,
        own_code=_is_own(first.model) or own_encoder,
        shape=data.shape,
        members=tuple(member.seed for member in members),
        reads=_reads(data, reads_items=reads_items),
        encoder=None if reads_items or data.encoder is None else data.encoder.name,
        normalisation=data.normalisation,
        precision=first.training.precision,
        learnt={
            "data": data.name,
            "target": first.target,
            "delivery": first.delivery,
            "options": dict(first.options),
            "training": asdict(first.training),
        },
        scores={
            "split": scored.split,
            "items": evaluation.items,
            "metrics": {
                name: score.value.to_dict()
                for name in evaluation.metrics
                if (score := evaluation.overall.get(system.name, name)).value is not None
            },
            "worth_in_people": None if isinstance(evaluation.ruler, str) else evaluation.worth[system.name].to_dict(),
        },
        fingerprints={
            "items": data.fingerprint if data.items is None else data.items.fingerprint,
            "votes": _votes_fingerprint(data),
            "runs": {str(member.seed): member.key for member in members},
        },
        versions={"dissensus": __version__, "trained by": "; ".join(system.trained_on)},
        people=_people(first, data, network, pseudonyms=pseudonyms),
    )


def _known(scored: ScoredStudy, recipe: Recipe, *, chosen: bool) -> Ints:
    """Of the items that trained the model, and of those that chose its epoch, or the model itself among others."""
    data, training = scored.opened.data, scored.opened.study.training
    splits = [TRAIN, *([training.selection_split] if chosen or training.selects else [])]
    members = np.concatenate([data.splits[name] for name in splits if name in data.splits])
    shown = data.features if data.items is None or recipe.reads == "features" else data.items
    return np.unique(fingerprints(shown.take(members) if isinstance(shown, Items) else shown[members]))


def _people(run: Run, data: TrainingData, network: nn.Module, *, pseudonyms: str | None) -> dict[str, Any] | None:
    """What a bundle must know of people to answer for them."""
    if run.people is None or not isinstance(network, PeopleNetwork):
        return None
    panel = panel_in(data, run.people)
    units = [str(name) for name in panel.units.tolist()]
    if pseudonyms is not None and not run.people.by:
        units = pseudonyms_of(units, pseudonyms)
    about = {"kind": run.people.kind, "by": run.people.by, "layer": network.layer}
    return {**about, "units": units, "heard": panel.heard[:-1].tolist()}


def _reads(data: TrainingData, *, reads_items: bool) -> str:
    if data.items is None or (data.encoder is None and not reads_items):
        return "features"
    if data.items.kind == "images":
        return "images"
    return "pairs" if len(data.items.texts) == 2 else "texts"


def _votes_fingerprint(data: TrainingData) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(data.human.counts).data)
    digest.update("\0".join(map(str, data.human.items.tolist())).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def _is_own(name: str) -> bool:
    """Whether a network or encoder is a function of the user's own, `file.py:name` or `package.module:name`."""
    return ":" in name and not name.startswith(("hf:", "timm:", "pixels:")) and name not in MODELS


def _keep_code(recipe: Recipe, data: TrainingData, folder: Path) -> None:
    """Copy the source files of the user's own network and encoder, with those beside them that they import."""
    for name in (recipe.network, recipe.encoder or ""):
        if _is_own(name):
            module = name.rpartition(":")[0]
            # A package keeps its place, so that it is imported by the same name.
            package = (
                Path(*module.removesuffix(".py").split(".")[:-1]) if not module.endswith(".py") else Path(module).parent
            )
            for place, file in source_files(module, folder=data.folder).items():
                kept = folder / CODE / package / place
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, kept)
