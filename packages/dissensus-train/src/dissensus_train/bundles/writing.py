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
from dissensus.evaluation.comparison.tables import shown
from dissensus.evaluation.evaluating import evaluate
from dissensus.evaluation.metrics import soft_nll
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.item_names import without_ending
from dissensus.items import Items
from dissensus.own_code import source_files
from dissensus.pages import as_markdown, markdown
from dissensus.version import __version__
from dissensus.votes.privacy import pseudonyms_of
from dissensus.whole_file import whole_folder
from dissensus_train.bundles.loading import CODE, NETWORK, STATE, TRAINED_ON, fingerprints
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
    members = [member for member in system.runs if member.seed in seeds]
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
    """The system, the seeds of its members, and how they were chosen, in words."""
    data, split = scored.opened.data, scored.opened.study.training.selection_split
    every = [(system, member) for system in scored.systems.values() for member in system.runs]
    if run is not None:
        matches = [(system, member) for system, member in every if member.key.startswith(run)]
        if len(matches) != 1:
            what = "no run that trained" if not matches else f"{len(matches)} runs"
            raise InputError(
                f"study {scored.opened.study.name}: {what} begins with '{run}'; give the whole key, as in the store's "
                f"folder {scored.opened.store.folder / 'runs'}"
            )
        ((system, one),) = matches
        seeds, why = [one.seed], f"the run {one.key}, as asked for"
    elif split not in data.splits:
        system, one = every[0]
        seeds, why = [one.seed], f"{system.name}, the first of the study: there is no split '{split}' to choose on"
    else:
        human = data.human.take(data.splits[split]).probabilities
        losses = {
            name: [float(soft_nll(human, q.astype(np.float64)).mean()) for q in system.predictions[split]]
            for name, system in scored.systems.items()
        }
        best_of = np.mean if ensemble else np.min
        name = min(losses, key=lambda name: float(best_of(losses[name])))
        system, place = scored.systems[name], int(np.argmin(losses[name]))
        seeds = [system.runs[place].seed]
        what = f"all seeds of {name}, whose mean soft NLL" if ensemble else f"{name}, seed {seeds[0]}, whose soft NLL"
        why = f"{what} on the split '{split}' is lowest ({best_of(losses[name]):.3f})"
    return system, [member.seed for member in system.runs] if ensemble else seeds, why


def _evaluated(scored: ScoredStudy, system: StudySystem, seeds: Sequence[int]) -> Evaluation:
    """This very model, not the mean of its system's runs, against people on the held-out items."""
    data, split = scored.opened.data, scored.split
    rows = [place for place, member in enumerate(system.runs) if member.seed in seeds]
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
    inputs = data.features if data.items is None or recipe.reads == "features" else data.items
    return np.unique(fingerprints(inputs.take(members) if isinstance(inputs, Items) else inputs[members]))


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


def model_card(recipe: Recipe, scored: ScoredStudy, evaluation: Evaluation, *, chosen: str) -> str:
    """The card as Markdown, with the header that the Hugging Face Hub reads."""
    study, members = scored.opened.study, len(recipe.members)
    together = f"the mean of {members} networks (seeds {', '.join(map(str, recipe.members))})" if members > 1 else "one"
    parts = [
        "---\nlibrary_name: dissensus\ntags:\n- annotator-disagreement\n- soft-labels\n---",
        f"# {as_markdown(recipe.name['system'])}, from the study {as_markdown(recipe.name['study'])}",
        (
            f"It predicts how people's answers would spread over {len(recipe.classes)} classes"
            f"{', a scale' if recipe.ordered else ''}: {as_markdown(', '.join(recipe.classes))}."
        ),
        as_markdown(f"The study asked: {study.question}") if study.question else "",
        "## On whose votes it learnt",
        _annotators(scored),
        *(f"**{as_markdown(caution)}**" for caution in scored.cautions),
        "## How it was made",
        as_markdown(
            f"Network {recipe.network}, {together}. Target {recipe.learnt['target']}, delivered as "
            f"{recipe.learnt['delivery']}. It reads {recipe.reads}"
            + (f" through the encoder {recipe.encoder}." if recipe.encoder else ".")
        ),
        as_markdown(f"Chosen as {chosen}."),
        f"## How close it is to people ({recipe.scores['items']:,} items of the split '{as_markdown(scored.split)}')",
        *(as_markdown(sentence) for sentence in evaluation.verdict),
        _scores(recipe, evaluation),
        "Scores are of this very model, with 95 % intervals over items.",
        "## Use",
        "```\ndissensus predict this-folder new.csv -o predictions.parquet\n```",
        '```python\nimport dissensus as dis\n\nmodel = dis.load_model("this-folder")\n```',
        "## Limits",
        (
            "It answers for the people described above, on items like those they judged. Nothing is known of other "
            "people, languages or kinds of items."
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _annotators(scored: ScoredStudy) -> str:
    data = scored.opened.data
    trained = data.human.take(data.splits[TRAIN])
    judged = int(trained.panel_size.sum())
    votes = data.votes
    if votes is None:
        who = "Who judged them is not known here: the data bring label distributions without votes."
    elif votes.annotators is None:
        who = "The votes are anonymous."
    else:
        attributes = ", ".join(votes.annotators.attributes)
        about = f", described by {attributes}" if attributes else ""
        who = f"{len(votes.annotators):,} annotators judged the whole set{about}."
    size = f"{judged:,} judgements of " if judged else ""
    return as_markdown(f"{data.name}: {size}{len(trained):,} training items. {who}")


def _scores(recipe: Recipe, evaluation: Evaluation) -> str:
    rows = []
    for name in evaluation.metrics:
        score = evaluation.overall.get(recipe.name["system"], name)
        best = None if score.best_achievable is None else score.best_achievable.estimate
        rows.append([METRICS[name].title, shown(score.value), shown(best)])
    return markdown(["metric", "this model", "best achievable"], rows)
