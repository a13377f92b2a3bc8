"""Label distributions and annotators to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dissensus.errors import InputError
from dissensus.labels.schemes import judgement_vectors
from dissensus.table_file import writable_kind, write_table
from dissensus.votes.columns import KIND
from dissensus.votes.table import KINDS
from dissensus.whole_file import whole_file

if TYPE_CHECKING:
    from dissensus.arrays import Mask
    from dissensus.labels.annotator_models import AnnotatorModel
    from dissensus.labels.distribution import LabelDistribution, TieRule
    from dissensus.votes.table import Votes


def write_labels(labels: LabelDistribution, path: str | Path, *, tie: TieRule = "first", seed: int = 0) -> None:
    """Write one row per item: its name, one column per class, and what follows from them.

    Further columns: `majority` with its `tied` mark, `entropy` in nats, `judgements`, and where people could say unsure
    `mean_uncertainty` and `unsure_proportion`. A `.npz` holds probabilities, counts, items and classes as arrays.
    """
    target = Path(path)
    if writable_kind(target, also=(".npz",)) == "npz":
        with whole_file(target) as part, part.open("wb") as file:
            np.savez(
                file,
                probabilities=labels.probabilities,
                counts=labels.counts,
                panel_size=labels.panel_size,
                items=np.asarray(labels.items.tolist()),
                classes=np.asarray(labels.classes),
            )
        return
    write_table(label_table(labels, tie=tie, seed=seed), target)


def label_table(labels: LabelDistribution, *, tie: TieRule = "first", seed: int = 0) -> pl.DataFrame:
    """The rows that `write_labels` writes."""
    majority = labels.majority(tie=tie, seed=seed)
    added: dict[str, Any] = {
        "majority": np.array(labels.classes)[majority.label],
        "tied": majority.tied,
        "entropy": labels.entropy,
        "judgements": labels.panel_size,
    }
    if labels.mean_uncertainty is not None and labels.unsure_proportion is not None:
        added |= {"mean_uncertainty": labels.mean_uncertainty, "unsure_proportion": labels.unsure_proportion}
    if taken := [name for name in ("item", *added) if name in labels.classes]:
        raise InputError(
            f"labels: the class '{taken[0]}' has the name of a column of the table; rename the class, or write .npz"
        )
    classes = {name: labels.probabilities[:, k] for k, name in enumerate(labels.classes)}
    return pl.DataFrame({"item": pl.Series(labels.items.tolist()), **classes, **added})


def judgement_table(votes: Votes, scheme: str) -> pl.DataFrame:
    """One row per judgement: item, annotator, seconds, its own label distribution under a weighting, and its doubt.

    `uncertainty` is the share of the classes that the judgement answers with unsure. Where some judgements are from
    models, `kind` says which.
    """
    own = judgement_vectors(votes, scheme).toarray()
    kind = () if votes.by_model is None else (KIND,)
    if taken := [name for name in votes.classes if name in ("item", "annotator", "seconds", "uncertainty", *kind)]:
        raise InputError(f"labels: the class '{taken[0]}' has the name of a column of the table; rename the class")
    columns: dict[str, Any] = {"item": pl.Series(votes.items[votes.judgement_item].tolist())}
    if votes.annotators is not None and votes.judgement_annotator is not None:
        columns["annotator"] = pl.Series(votes.annotators.names[votes.judgement_annotator].tolist())
    if votes.judgement_by_model is not None:
        columns[KIND] = np.array(KINDS)[votes.judgement_by_model.astype(np.int64)]
    if votes.seconds is not None:
        columns["seconds"] = pl.Series(votes.seconds).fill_nan(None)
    columns |= {name: own[:, k] for k, name in enumerate(votes.classes)}
    if votes.unsure is not None:
        unsure = np.bincount(votes.judgement_of_vote, weights=votes.unsure, minlength=votes.n_judgements)
        columns["uncertainty"] = unsure / (len(votes.classes) - (votes.none is not None))
    return pl.DataFrame(columns)


def annotator_table(model: AnnotatorModel, *, by_model: Mask | None = None) -> pl.DataFrame:
    """One row per annotator: skill, or from a confusion matrix the accuracy on each class and overall.

    Where some of them are models (`by_model`), a column `kind` says which.
    """
    columns: dict[str, Any] = {"annotator": pl.Series(model.annotators.tolist())}
    if by_model is not None and by_model.any():
        columns[KIND] = np.array(KINDS)[by_model.astype(np.int64)]
    if model.skill is not None:
        columns["skill"] = model.skill
    if model.confusion is not None:
        right = np.einsum("akk->ak", model.confusion)
        columns["accuracy"] = right @ model.class_prior
        columns |= {f"accuracy on {name}": right[:, k] for k, name in enumerate(model.classes)}
    return pl.DataFrame(columns)
