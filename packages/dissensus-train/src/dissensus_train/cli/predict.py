"""`dissensus predict` and `dissensus study export`: a trained model as a folder, and what it says of new items."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_alone, next_step, note, plain
from dissensus.errors import InputError
from dissensus_train.cli.stores import opened_study

if TYPE_CHECKING:
    from dissensus_train.bundles import TrainedModel


def predict(
    bundle: Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that `dissensus study export` wrote.")],
    items: Annotated[
        Path, typer.Argument(metavar="ITEMS", help="A table of texts, a folder of images, or a file of features.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="CSV, TSV, Parquet or JSONL; - is standard output.")
    ] = Path("predictions.parquet"),
    item: Annotated[str | None, typer.Option(help="Column of item names.")] = None,
    text: Annotated[str | None, typer.Option(help="Column of texts; two, separated by a comma, for pairs.")] = None,
    annotator: Annotated[
        str | None, typer.Option(metavar="NAME", help="A person or group that the model knows: predict their answers.")
    ] = None,
    device: opt.Device = "auto",
    trust_code: Annotated[
        bool,
        typer.Option("--trust-code", help="Run the code of a network of its author's own that lies in the bundle."),
    ] = False,
    json: opt.JsonTo = None,
) -> None:
    """Predict how people's answers to new items would spread; what is written can be evaluated as it is."""
    import polars as pl

    from dissensus.evaluation.predictions import TRAINED_ON
    from dissensus.table_file import write_table
    from dissensus_train.bundles import load_model

    model = load_model(bundle, trust_code=trust_code)
    names, inputs = _read(model, items, item=item, text=text)
    probabilities = model.predict_proba(inputs, annotator=annotator, device=device)
    columns: dict[str, Any] = {"item": names.tolist()}
    columns |= {name: probabilities[:, k] for k, name in enumerate(model.classes)}
    known = model.trained_on(inputs)
    if known is not None and TRAINED_ON not in columns:
        columns[TRAINED_ON] = known
    write_table(pl.DataFrame(columns), output)
    seen = None if known is None else int(known.sum())
    if json_alone(json, {"file": str(output), "items": len(names), "classes": model.classes, TRAINED_ON: seen}):
        return
    if str(output) != "-":
        console().print(plain(str(output)), soft_wrap=True)
    note(f"{len(names):,} items" + (f", {seen:,} of which were used to train or choose this model" if seen else ""))
    next_step(f"dissensus evaluate --votes VOTES --predictions {'FILE' if str(output) == '-' else output}")


def _read(model: TrainedModel, path: Path, *, item: str | None, text: str | None) -> tuple[Any, Any]:
    """The names of the items, and what the model is given of them."""
    import numpy as np

    from dissensus.item_names import without_ending
    from dissensus.items.reading import read_all_features, read_images, read_texts

    if model.recipe.reads == "features":
        return read_all_features(path)
    if model.recipe.reads == "images":
        shown = read_images(path, reading=model.recipe.reading)
        # Called as the study's votes called theirs, unless two differ in their endings alone.
        bare = without_ending(shown.names)
        if model.recipe.learnt.get("images", {}).get("endings") is False and np.unique(bare).size == bare.size:
            shown = replace(shown, names=bare)
    else:
        columns = () if text is None else tuple(name.strip() for name in text.split(","))
        shown = read_texts(path, item=item, text=columns)
    return shown.names, shown


def export(
    source: opt.StudyOrStore,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FOLDER", help="The bundle to write.", callback=opt.not_standard_output),
    ],
    store: opt.RunsIn = Path("dissensus-runs"),
    best: Annotated[
        bool, typer.Option("--best", help="The run closest to people on the selection split; the default.")
    ] = False,
    run: Annotated[str | None, typer.Option(metavar="KEY", help="A run by its key, or the beginning of it.")] = None,
    ensemble: Annotated[bool, typer.Option("--ensemble", help="All seeds of the system together.")] = False,
    pseudonyms: opt.Pseudonyms = None,
    json: opt.JsonTo = None,
) -> None:
    """Write a model of a finished study as a folder that predicts anywhere: weights, recipe, encoder, scores, card."""
    from dissensus_train.bundles import export_bundle
    from dissensus_train.bundles.recipe import read_recipe
    from dissensus_train.studies import score_study

    if best and run is not None:
        raise InputError("--best and --run contradict each other; give one of them")
    scored = score_study(opened_study(source, store, command="study export")[0])
    written, chosen = export_bundle(scored, output, run=run, ensemble=ensemble, pseudonyms=pseudonyms)
    if json_alone(json, {"folder": str(written), "chosen": chosen}):
        return
    console().print(plain(str(written)), soft_wrap=True)
    known = read_recipe(written).people
    if known is not None and not known["by"] and pseudonyms is None:
        note(f"the bundle holds the names of {len(known['units']):,} annotators; --pseudonyms hides them")
    note(chosen)
    next_step(f"dissensus predict {written} ITEMS -o predictions.parquet")
