"""`export_bundle`: a study's model as a folder of its own."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save

from dissensus.datasets.catalogue import DATASETS
from dissensus.errors import InputError
from dissensus.evaluation.comparison.differences import compare
from dissensus.evaluation.evaluating import evaluate
from dissensus.evaluation.metrics import soft_nll
from dissensus.evaluation.scoring import panel_or_reason
from dissensus.item_names import without_ending
from dissensus.own_code import source_files
from dissensus.version import __version__
from dissensus.votes.privacy import pseudonyms_of
from dissensus.whole_file import whole_folder
from dissensus_train.bundles.beside import arrays_of, beside_people, prediction
from dissensus_train.bundles.card import REPORTED, model_card
from dissensus_train.bundles.drift import answers_of
from dissensus_train.bundles.loading import (
    BESIDE,
    CODE,
    COLUMNS,
    ENCODER,
    NETWORK,
    STATE,
    TRAINED_ON,
    fingerprints,
    load_model,
)
from dissensus_train.bundles.parts import write_sums
from dissensus_train.bundles.recipe import Recipe, write_recipe
from dissensus_train.bundles.ways_out import MOST_TRIED, write_onnx
from dissensus_train.delivery import HARD
from dissensus_train.encoders.pretrained import encoder_folder, keep_encoder, versions
from dissensus_train.studies.scored import StudySystem, trains_on_majority
from dissensus_train.training.annotator_side import PeopleNetwork
from dissensus_train.training.data import TRAIN, TrainingData
from dissensus_train.training.fine_tuning import keep_architecture
from dissensus_train.training.models import MODELS, network_of, panel_in
from dissensus_train.training.run import VERSIONS, Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import nn

    from dissensus.arrays import Features, Ints, Table
    from dissensus.evaluation.evaluated import Evaluation
    from dissensus.items import Items
    from dissensus_train.studies import ScoredStudy


def export_bundle(
    scored: ScoredStudy,
    path: str | Path,
    *,
    run: str | None = None,
    single: bool = False,
    onnx: bool = False,
    licence: str = "",
    pseudonyms: str | None = None,
) -> tuple[Path, str]:
    """Write a model of a study as a bundle, and say how it was chosen.

    Args:
        scored: the study.
        path: the folder to write; nothing may be there yet.
        run: the key of a run, or its beginning; without it, all runs of the system that `chosen_system` names.
        single: of those, the run alone whose soft NLL to people is lowest on the split that epochs are selected on.
        onnx: write the whole model as an ONNX graph too, and hold it to what the model says of held-out items.
        licence: of the model, for its card.
        pseudonyms: the key of pseudonyms (`dissensus.votes.privacy`) for the people whom the model knows by name; None
            keeps the names that the study's votes have.

    Returns:
        The folder, and how the model was chosen, in words.
    """
    path = Path(path)
    system, seeds, chosen = chosen_model(scored, run, single=single)
    data = scored.opened.data
    members = [member for member in system.runs if member.seed in seeds]
    evaluation = _evaluated(scored, system, seeds)
    together, combination = beside_people(scored, system, seeds)
    recipe = _recipe(scored, system, members, evaluation, together, licence=licence, pseudonyms=pseudonyms)
    with whole_folder(path) as folder:
        for member in members:
            weights = dict(scored.opened.store.load(member.key, dynamics=False).weights)
            place = folder / recipe.weights_of(member.seed)
            if recipe.network.startswith("hf:"):
                made = network_of(member, data, checked=False)
                text = made.network if isinstance(made, PeopleNetwork) else made
                kept = place.parent if recipe.hugging_face else folder / NETWORK
                keep_architecture(text, kept, classes=recipe.classes)
            if recipe.hugging_face:
                weights = {name.removeprefix("network."): value for name, value in weights.items()}
            # `save_file` would hide the weights from everybody else.
            place.write_bytes(save(weights, metadata={"format": "pt"}))
        if data.encoder is not None and data.encoder.state:
            np.savez(folder / STATE, **dict(data.encoder.state))  # type: ignore[arg-type]
        pretrained = recipe.encoder and encoder_folder(recipe.encoder, beside=data.folder or Path())
        if pretrained:
            keep_encoder(pretrained, folder / ENCODER)
        if combination is not None:
            np.savez_compressed(folder / BESIDE, **arrays_of(combination))
        np.save(folder / TRAINED_ON, _known(scored, recipe, chosen=run is None))
        _keep_code(recipe, data, folder)
        write_recipe(recipe, folder)
        (folder / "README.md").write_text(model_card(recipe, scored, evaluation, chosen=chosen), encoding="utf-8")
        write_sums(folder)
        if onnx:
            some = data.splits[scored.split][:MOST_TRIED]
            write_onnx(load_model(folder, trust_code=True), folder, model_inputs(data, recipe.reads, some))
            write_sums(folder)
    return path, chosen


def chosen_model(
    scored: ScoredStudy, run: str | None = None, *, single: bool = False
) -> tuple[StudySystem, list[int], str]:
    """The system, the seeds of its members, and how they were chosen, in words."""
    if run is not None:
        every = [(system, member) for system in scored.systems.values() for member in system.runs]
        matches = [(system, member) for system, member in every if member.key.startswith(run)]
        if len(matches) != 1:
            what = "no run that trained" if not matches else f"{len(matches)} runs"
            raise InputError(
                f"study {scored.opened.study.name}: {what} begins with '{run}'; give the whole key, as in the store's "
                f"folder {scored.opened.store.folder / 'runs'}"
            )
        ((system, one),) = matches
        return system, [one.seed], f"the run {one.key}, as asked for"
    system, why = chosen_system(scored)
    seeds = [member.seed for member in system.runs]
    if len(seeds) == 1:
        return system, seeds, f"{system.name}, {why}"
    if not single:
        return system, seeds, f"all {len(seeds)} runs of {system.name} together, {why}"
    losses = _losses(scored)
    seed = seeds[0 if losses is None else int(losses[system.name].mean(axis=1).argmin())]
    how = "the first" if losses is None else "the closest to people there"
    return system, [seed], f"{system.name}, {why}; of its {len(seeds)} runs {how}, seed {seed}"


def chosen_system(scored: ScoredStudy) -> tuple[StudySystem, str]:
    """The system that is exported where none is named, and why; nothing is chosen on the items that scores are told of.

    The best has the lowest soft NLL to people, in the mean over its runs, on the split that epochs are selected on. Of
    those that do not differ significantly from it there (Holm's correction over the systems; with one seed, by the
    interval over items) the one trained on label distributions is taken: it is made for what it is exported for, and
    nothing speaks against it. Next comes any that saw more than each item's majority.
    """
    systems, split, losses = scored.systems, scored.opened.study.training.selection_split, _losses(scored)
    if losses is None:
        name = min(systems, key=lambda name: _hardness(systems[name].runs[0]))
        return systems[name], f"the most softly trained: there is no split '{split}' to choose on"
    mean = {name: float(values.mean()) for name, values in losses.items()}
    best = min(mean, key=mean.__getitem__)
    seeds = {name: [run.seed for run in systems[name].runs] for name in systems}
    equals = [row.system for row in compare(losses, best, seeds=seeds).rows if not row.mark]
    name = min([best, *equals], key=lambda name: (_hardness(systems[name].runs[0]), mean[name]))
    if name == best:
        return systems[best], f"whose mean soft NLL on the split '{split}' is lowest ({mean[best]:.3f})"
    return systems[name], (
        f"which was trained on label distributions and does not differ significantly on the split '{split}' (soft NLL "
        f"{mean[name]:.3f}) from {best}, the lowest there ({mean[best]:.3f})"
    )


def _losses(scored: ScoredStudy) -> dict[str, Table] | None:
    """By system, (seeds, items) soft NLL on the selection split; None where there is none."""
    data, split = scored.opened.data, scored.opened.study.training.selection_split
    if split not in data.splits:
        return None
    human = data.human.take(data.splits[split]).probabilities
    return {
        name: np.stack([soft_nll(human, q.astype(np.float64)) for q in system.predictions[split]])
        for name, system in scored.systems.items()
    }


def _hardness(run: Run) -> int:
    """0 for training on label distributions, 1 on votes or draws from them, 2 on each item's majority alone."""
    if trains_on_majority(run) or run.delivery in HARD:
        return 2
    return int(run.delivery != "soft")


def _evaluated(scored: ScoredStudy, system: StudySystem, seeds: Sequence[int]) -> Evaluation:
    """This very model, not the mean of its system's runs, against people on the held-out items."""
    data, split = scored.opened.data, scored.split
    return evaluate(
        scored.human,
        {system.name: prediction(scored, system, seeds)},
        classes=scored.human.classes,
        votes=data.votes,
        metrics=list(REPORTED),
        strata=(),
        training=data.human.take(data.splits[TRAIN]) if split != TRAIN else None,
    )


def held_out_answers(scored: ScoredStudy, forecast: Table, rows: Ints | None = None) -> dict[str, Any] | None:
    """How people answered held-out items (some rows of them) beside a forecast (`drift.answers_of`)."""
    if scored.opened.data.votes is None or scored.split == TRAIN:
        return None
    human = scored.human if rows is None else scored.human.take(rows)
    panel, _ = panel_or_reason(human, scored.opened.data.votes)
    return None if panel is None else answers_of(panel, forecast)


def distance_to_people(evaluation: Evaluation, system: str) -> dict[str, Any] | None:
    """The Brier score without the noise of few votes: comparable over items of other entropy and other panels."""
    corrected = evaluation.overall.get(system, "brier").corrected
    return None if corrected is None or corrected.estimate is None else corrected.estimate.to_dict()


def _recipe(
    scored: ScoredStudy,
    system: StudySystem,
    members: Sequence[Run],
    evaluation: Evaluation,
    together: dict[str, Any] | None,
    *,
    licence: str,
    pseudonyms: str | None,
) -> Recipe:
    data, study, first = scored.opened.data, scored.opened.study, members[0]
    network = network_of(first, data)
    reads_items = hasattr(network, "prepare")
    encoder = None if reads_items else data.encoder
    decided_by = {} if encoder is None else encoder.decided_by
    own_encoder = data.encoder is not None and _is_own(data.encoder.name)
    seeds = [member.seed for member in members]
    return Recipe(
        name={"system": system.name, "study": study.name},
        classes=data.human.classes,
        ordered=data.human.ordered,
        network=first.model,
        own_code=_is_own(first.model) or own_encoder,
        shape=data.shape,
        members=tuple(seeds),
        reads=_reads(data, reads_items=reads_items),
        encoder=None if encoder is None else encoder.name,
        normalisation=data.normalisation,
        precision=first.training.precision,
        learnt={
            "data": data.name,
            "target": first.target,
            "delivery": first.delivery,
            "options": dict(first.options),
            "training": asdict(first.training),
            **({"images": images_of(data.items)} if data.items is not None and data.items.files else {}),
        },
        scores={
            "split": scored.split,
            "items": evaluation.items,
            "metrics": {
                name: score.value.to_dict()
                for name in evaluation.metrics
                if (score := evaluation.overall.get(system.name, name)).value is not None
            },
            "distance": distance_to_people(evaluation, system.name),
            "worth_in_people": evaluation.worth[system.name].to_dict() if system.name in evaluation.worth else None,
        },
        fingerprints={
            "items": data.fingerprint if data.items is None else data.items.fingerprint,
            "votes": _votes_fingerprint(data),
            "runs": {str(member.seed): member.key for member in members},
            "encoder": decided_by.get("weights", ""),
        },
        versions={
            "dissensus": __version__,
            "trained by": "; ".join(system.trained_on),
            **VERSIONS,
            **{name: version for name, version in decided_by.items() if name in ("transformers", "timm")},
            **(versions("transformers") if first.model.startswith("hf:") else {}),
        },
        licence={"model": licence, "data": DATASETS[study.dataset].licence if study.dataset in DATASETS else ""},
        answers=held_out_answers(scored, prediction(scored, system, seeds)),
        people=_people(first, data, network, pseudonyms=pseudonyms),
        together=together,
    )


def _known(scored: ScoredStudy, recipe: Recipe, *, chosen: bool) -> Ints:
    """Of the items that trained the model, and of those that chose its epoch, or the model itself among others."""
    data, study = scored.opened.data, scored.opened.study
    splits = [TRAIN, *([study.training.selection_split] if chosen or study.selects else [])]
    members = np.concatenate([data.splits[name] for name in splits if name in data.splits])
    return np.unique(fingerprints(model_inputs(data, recipe.reads, members)))


def model_inputs(data: TrainingData, reads: str, members: Ints) -> Items | Features:
    """What a model is given of some items of a study."""
    return data.features[members] if data.items is None or reads == "features" else data.items.take(members)


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


def images_of(items: Items) -> dict[str, Any]:
    """How the files of images are read and called, so that those of new items are."""
    endings = bool((without_ending(items.names) != items.names.astype(np.dtypes.StringDType())).any())
    return {"reading": asdict(items.read_as), "endings": endings}


def _reads(data: TrainingData, *, reads_items: bool) -> str:
    if data.items is None or (data.encoder is None and not reads_items):
        return "features"
    return "images" if data.items.kind == "images" else COLUMNS[len(data.items.texts) - 1]


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
