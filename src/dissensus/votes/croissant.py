"""Croissant 1.1 metadata of a file of votes: what ML catalogues read, with the responsible-AI fields on annotators."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.table_file import columns_of, kind_of, scan
from dissensus.votes.own import OWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dissensus.votes.table import Votes

CONTEXT: Final = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "md5": "cr:md5",
    "recordSet": "cr:recordSet",
    "source": "cr:source",
}
"""The JSON-LD context of Croissant, as far as our files use it."""

_MEDIA: Final = {
    "CSV": "text/csv",
    "TSV": "text/tab-separated-values",
    "JSONL": "application/jsonlines",
    "Parquet": "application/vnd.apache.parquet",
}


def croissant(votes: Votes, path: Path, *, name: str, licence: str | None = None) -> dict[str, Any]:
    """The metadata of votes that were written to a file, ready for JSON.

    Args:
        votes: the votes.
        path: the file that holds them, as `write_votes` wrote it.
        name: of the dataset.
        licence: an address or an SPDX name; None leaves it out, which Croissant's checker warns about.
    """
    what = {
        "item": "The item that was judged.",
        "annotator": "Who judged it.",
        "label": "The class that was chosen, or the classes.",
        "response": "Yes, no or unsure to the class in `label`.",
        "seconds": "How long the judgement took, in seconds.",
        **dict.fromkeys(votes.attributes, "Describes the annotator."),
    }
    return described(
        name=name,
        description=f"{len(votes):,} votes on {len(votes.items):,} items in {len(votes.classes)} classes.",
        licence=licence,
        files=[path],
        record_sets=[record_set("votes", path, what, otherwise="Describes the item.")],
        **_responsible(votes),
    )


def described(
    *,
    name: str,
    description: str,
    licence: str | None,
    files: Sequence[Path],
    record_sets: Sequence[dict[str, Any]],
    **more: Any,
) -> dict[str, Any]:
    """The metadata of a dataset of some files, ready for JSON."""
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": name,
        "description": description,
        **({} if licence is None else {"license": licence}),
        "distribution": [_file_object(path) for path in files],
        "recordSet": list(record_sets),
        **more,
    }


def record_set(name: str, path: Path, what: Mapping[str, str], *, otherwise: str) -> dict[str, Any]:
    """The columns of a table, each with what it holds: `what` by column, `otherwise` for the rest."""
    schema = scan(path).collect_schema()
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"{name}/{column}",
            "name": column,
            "description": what.get(column, otherwise),
            "dataType": "sc:Integer"
            if schema[column].is_integer()
            else "sc:Float"
            if schema[column].is_float()
            else "sc:Text",
            "source": {"fileObject": {"@id": path.name}, "extract": {"column": column}},
        }
        for column in columns_of(path)
        if column != OWN
    ]
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}


def _file_object(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "contentUrl": path.name,
        "encodingFormat": _MEDIA.get(kind_of(path), "application/octet-stream"),
        "sha256": digest,
    }


def _responsible(votes: Votes) -> dict[str, Any]:
    """The responsible-AI fields that votes can fill: who annotated, and how many times an item."""
    per = votes.panel_size
    asked = "Every class was answered with yes, no or unsure." if votes.none is not None else "People chose classes."
    found: dict[str, Any] = {
        "rai:dataAnnotationProtocol": f"{asked} Classes: {', '.join(votes.classes)}.",
        "rai:annotationsPerItem": f"{per.min()} to {per.max()}, {per.mean():.2f} in the mean",
        "rai:machineAnnotationTools": [],
    }
    if votes.annotators is None:
        found["rai:dataAnnotationPlatform"] = "not stated; the votes are anonymous"
        return found
    found["rai:dataAnnotationAnalysis"] = f"{len(votes.annotators):,} annotators, each told apart by an identifier."
    found["rai:annotatorDemographics"] = [
        f"{name}: " + ", ".join(f"{value or 'not stated'} ({n:,})" for value, n in _spread(values))
        for name, values in votes.attributes.items()
    ]
    return found


def _spread(values: Any) -> list[tuple[str, int]]:
    """The ten most frequent values, with how many annotators have each."""
    names, size = np.unique(values.astype(np.dtypes.StringDType()), return_counts=True)
    order = np.argsort(-size, kind="stable")[:10]
    return [(str(names[k]), int(size[k])) for k in order]
