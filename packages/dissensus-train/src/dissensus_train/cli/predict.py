"""`dissensus predict`, `study export`, `study compare`: a trained model as a folder, what it says, and if it lasts."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_alone, next_step, note, plain, typed
from dissensus.errors import InputError
from dissensus.votes.privacy import key_from
from dissensus_train.cli.stores import opened_study

if TYPE_CHECKING:
    from dissensus.items import Items
    from dissensus_train.bundles import TrainedModel

TrustCode = Annotated[
    bool, typer.Option("--trust-code", help="Run the code of a network of its author's own that lies in the bundle.")
]


@opt.command("predict")
def predict(
    bundle: Path,
    items: Path,
    output: Path = Path("predictions.parquet"),
    item: str | None = None,
    text: str | None = None,
    annotator: str | None = None,
    sets: float | None = None,
    defer: float | None = None,
    device: opt.Device = "auto",
    trust_code: TrustCode = False,
    json: opt.JsonTo = None,
) -> None:
    """Predict how people's answers to new items would spread; what is written can be evaluated as it is."""
    import polars as pl

    from dissensus.evaluation.predictions import TRAINED_ON
    from dissensus.table_file import write_table
    from dissensus.together.deferral import deferral_columns
    from dissensus.together.sets import set_columns
    from dissensus_train.bundles import load_model

    model = load_model(bundle, trust_code=trust_code)
    for name, wanted in (("sets", sets), ("defer", defer)):
        if wanted is not None:
            model.beside_people(name)
            if annotator is not None:
                raise InputError(f"{name}= is about a random person, and annotator= is one; give one of them")
    names, inputs = _read(model, items, item=item, text=text)
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always", UserWarning)
        probabilities = model.predict_proba(inputs, annotator=annotator, device=device)
    note(*(str(remark.message) for remark in remarks))
    columns: dict[str, Any] = {"item": names.tolist()}
    columns |= {name: probabilities[:, k] for k, name in enumerate(model.classes)}
    known = model.trained_on(inputs)
    columns.setdefault(TRAINED_ON, known)
    if sets is not None:
        columns = columns | set_columns(model.prediction_sets(probabilities, level=sets), model.classes) | columns
    if defer is not None:
        columns = columns | deferral_columns(*model.votes_to_ask(probabilities, share=defer)) | columns
    write_table(pl.DataFrame(columns), output)
    seen = int(known.sum())
    if json_alone(json, {"file": str(output), "items": len(names), "classes": model.classes, TRAINED_ON: seen}):
        return
    if str(output) != "-":
        console().print(plain(str(output)), soft_wrap=True)
    note(f"{len(names):,} items" + (f", {seen:,} of which were used to train or choose this model" if seen else ""))
    next_step(typed("evaluate", "--votes", "VOTES", "--predictions", "FILE" if str(output) == "-" else output))


def _read(model: TrainedModel, path: Path, *, item: str | None, text: str | None) -> tuple[Any, Any]:
    """The names of the items, and what the model is given of them."""
    import numpy as np

    from dissensus.item_names import without_ending
    from dissensus_train.encoders.reading import read_all_features, read_images, read_texts

    if model.recipe.reads == "features":
        return read_all_features(path)
    if model.recipe.reads == "images":
        reading = model.recipe.reading.settled()
        shown = _of_file(model, path) if path.is_file() else read_images(path, reading=reading)
        # Called as the study's votes called theirs, unless two differ in their endings alone.
        bare = without_ending(shown.names)
        if model.recipe.learnt.get("images", {}).get("endings") is False and np.unique(bare).size == bare.size:
            shown = replace(shown, names=bare)
    else:
        columns = () if text is None else tuple(name.strip() for name in text.split(","))
        shown = read_texts(path, item=item, text=columns)
    return shown.names, shown


def _of_file(model: TrainedModel, path: Path) -> Items:
    """Return the items of an image file, or of any file that `[dataset] images` of a study accepts."""
    import numpy as np

    from dissensus.array_file import read_npz
    from dissensus.datasets.sources import read_source
    from dissensus.item_names import IMAGE_SUFFIXES
    from dissensus.table_file import KINDS
    from dissensus_train.bundles.loading import as_items

    if path.suffix.lower() in IMAGE_SUFFIXES:
        return replace(as_items([path], model.recipe), names=np.array([path.name]))
    if path.suffix.lower() in KINDS and not path.name.endswith("_2828.csv"):
        raise InputError(f"{path}: expected images, and found a table; give a folder, an image or an .npz of images")
    source = read_source(path)
    # `read_source` scales images by the range of their own values, which differs between files. Read arrays unscaled.
    given = read_npz(path, only=("images",))["images"] if path.suffix == ".npz" else source.images
    return replace(as_items(given, model.recipe), names=source.items)


@opt.command("export")
def export(
    source: opt.StudyOrStore,
    output: Path,
    store: opt.RunsIn = Path("dissensus-runs"),
    run: str | None = None,
    single: bool = False,
    onnx: bool = False,
    licence: str = "",
    pseudonyms: opt.Pseudonyms = None,
    json: opt.JsonTo = None,
) -> None:
    """Write a model of a finished study as a folder that predicts anywhere: weights, recipe, encoder, scores, card.

    All runs of the best system on the selection split together; where the soft-trained one is not significantly worse,
    that one.
    """
    from dissensus_train.bundles import export_bundle
    from dissensus_train.bundles.recipe import read_recipe
    from dissensus_train.studies import score_study

    if single and run is not None:
        raise InputError("single= and run= contradict each other; give one of them")
    scored = score_study(opened_study(source, store, command="study export")[0])
    written, chosen = export_bundle(
        scored,
        output,
        run=run,
        single=single,
        onnx=onnx,
        licence=licence,
        pseudonyms=None if pseudonyms is None else key_from(pseudonyms),
    )
    if json_alone(json, {"folder": str(written), "chosen": chosen}):
        return
    console().print(plain(str(written)), soft_wrap=True)
    known = read_recipe(written).people
    if known is not None and not known["by"] and pseudonyms is None:
        note(f"the bundle holds the names of {len(known['units']):,} annotators; --pseudonyms hides them")
    note(chosen)
    next_step(typed("predict", written, "ITEMS", "-o", "predictions.parquet"))


@opt.command("compare")
def compare(
    bundle: Path,
    source: opt.StudyOrStore,
    store: opt.RunsIn = Path("dissensus-runs"),
    before: Path | None = None,
    output: Path | None = None,
    device: opt.Device = "auto",
    trust_code: TrustCode = False,
    json: opt.JsonTo = None,
) -> None:
    """Is a deployed model still good? A finished study on new votes tells, and whether to deploy what it trained.

    As close to people as at export, people as before, the newly trained one significantly better: one verdict.
    """
    from dissensus.cli.printing import say
    from dissensus.report.subject import files_subject
    from dissensus.report.writing import write_report
    from dissensus.votes import read_votes
    from dissensus_train.bundles import compare_deployed, load_model
    from dissensus_train.report.shown import item_texts
    from dissensus_train.studies import score_study

    deployed = load_model(bundle, trust_code=trust_code)
    scored = score_study(opened_study(source, store, command="study compare")[0])
    votes = None if before is None else read_votes(before, classes=scored.human.classes)
    found = compare_deployed(deployed, scored, before=votes, device=device)
    if output is not None:
        subject = files_subject(
            found.evaluation,
            found.human,
            found.as_predictions(),
            votes=scored.opened.data.votes,
            title=f"{deployed.recipe.name['study']}: deployed and newly trained",
            texts=item_texts(scored.opened.data, found.members),
            cautions=(*found.verdict, *scored.cautions),
            command=f"dissensus study compare {bundle} {source}",
        )
        write_report(subject, output)
    if json_alone(json, found.to_dict()):
        return
    say(found.verdict)
    note(f"newly trained: {found.chosen}")
    if found.left_out:
        note(f"{found.left_out:,} held-out items are left out: the deployed model was trained on them")
    if found.drift is None or not found.drift.same:
        note("the same items judged again tell best whether people changed: --before VOTES, with the earlier votes")
    next_step(typed("study", "export", source, "--store", store, "-o", "MODEL"), "to deploy what was newly trained")
