"""Croissant 1.1 metadata of a file of votes: what ML catalogues read, with the responsible-AI fields on annotators."""

from __future__ import annotations

import json
from collections import Counter
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.table_file import columns_of, kind_of, scan
from dissensus.votes.columns import KIND
from dissensus.votes.kinds import share_of_models
from dissensus.votes.own import OWN
from dissensus.votes.writing import TIME
from dissensus.whole_file import sha256_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dissensus.votes.table import Votes

REQUIRED: Final = ("license", "url", "creator", "datePublished")
"""What Croissant requires of a published dataset, and votes alone cannot say."""

_MEDIA: Final = {
    "CSV": "text/csv",
    "TSV": "text/tab-separated-values",
    "JSONL": "application/jsonlines",
    "Parquet": "application/x-parquet",
}
_TYPES: Final = {int: "sc:Integer", float: "sc:Float"}


def croissant(
    votes: Votes,
    path: Path,
    *,
    name: str,
    licence: str | None = None,
    url: str | None = None,
    citation: str | None = None,
) -> dict[str, Any]:
    """The metadata of votes that were written to a file, ready for JSON.

    Croissant's checker accepts it as it is; of `REQUIRED` it holds what is given here, and the rest is for whoever
    publishes the set to add. `name`, `url` (its page) and `citation` are of the dataset, `licence` is an address or an
    SPDX name, and None leaves out each of them.
    """
    what = {
        "item": "The item that was judged.",
        "annotator": "Who judged it.",
        **({} if votes.by_model is None else {KIND: "Whether a person or a model gave the vote."}),
        "label": "The class that was chosen, or the classes.",
        "response": "Yes, no or unsure to the class in `label`.",
        "seconds": "How long the judgement took, in seconds.",
        TIME: "When the judgement was given, in UTC.",
        **dict.fromkeys(votes.annotator_attributes, "Describes the annotator."),
    }
    return described(
        path,
        record_set("votes", path, what, times=(TIME,)),
        name=name,
        description=f"{len(votes):,} votes on {len(votes.items):,} items in {len(votes.classes)} classes."
        + (f" {share_of_models(votes)}." if votes.by_model is not None else ""),
        license=licence,
        url=url,
        citeAs=citation,
        **_responsible(votes),
    )


def described(path: Path, records: dict[str, Any], *, name: str, description: str, **more: Any) -> dict[str, Any]:
    """The metadata of a dataset in one file, ready for JSON; further fields that are None are left out."""
    return {
        "@context": json.loads(resources.files("dissensus.votes").joinpath("croissant.json").read_text("utf-8")),
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": name,
        "description": description,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": path.name,
                "name": path.name,
                "contentUrl": path.name,
                "encodingFormat": _MEDIA.get(kind_of(path), "application/octet-stream"),
                "sha256": sha256_of(path),
            }
        ],
        "recordSet": [records],
        **{key: value for key, value in more.items() if value is not None},
    }


def record_set(name: str, path: Path, what: Mapping[str, str], *, times: Sequence[str] = ()) -> dict[str, Any]:
    """The columns of a table: `what` each holds, or else that it describes the item; `times` are moments."""
    schema = scan(path).collect_schema()
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"{name}/{column}",
            "name": column,
            "description": what.get(column, "Describes the item."),
            "dataType": "sc:DateTime" if column in times else _TYPES.get(schema[column].to_python(), "sc:Text"),
            **({"isArray": True, "arrayShape": "-1"} if schema[column].is_nested() else {}),
            "source": {"fileObject": {"@id": path.name}, "extract": {"column": column}},
        }
        for column in columns_of(path)
        if column != OWN
    ]
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}


def _responsible(votes: Votes) -> dict[str, Any]:
    """The responsible-AI fields that votes can fill: who annotated, and how many times per item."""
    models = [] if votes.models is None else [share_of_models(votes)]
    votes = votes.people if len(votes.people) else votes
    per = votes.panel_size
    protocol = "Every class was answered with yes, no or unsure." if votes.none is not None else "People chose classes."
    fields: dict[str, Any] = {
        "rai:dataAnnotationProtocol": f"{protocol} Classes: {', '.join(votes.classes)}.",
        "rai:annotationsPerItem": f"{per.min()} to {per.max()}, {per.mean():.2f} in the mean",
        "rai:machineAnnotationTools": models,
    }
    if votes.time is not None and not np.isnat(votes.time).all():
        known = votes.time[~np.isnat(votes.time)].astype("datetime64[s]")
        fields["rai:dataCollectionTimeFrame"] = [f"{known.min()}Z", f"{known.max()}Z"]
    if votes.annotators is None:
        fields["rai:dataAnnotationPlatform"] = "not stated; the votes are anonymous"
        return fields
    fields["rai:dataAnnotationAnalysis"] = f"{len(votes.annotators):,} annotators, each with an identifier."
    fields["rai:annotatorDemographics"] = [
        # The ten most frequent values; of equals, the first in the alphabet.
        f"{name}: "
        + ", ".join(
            f"{value or 'not stated'} ({n:,})"
            for value, n in Counter(sorted(map(str, values.tolist()))).most_common(10)
        )
        for name, values in votes.annotators.attributes.items()
    ]
    return fields
