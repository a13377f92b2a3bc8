"""The JSON schema of study files: editors complete keys with it and mark wrong ones."""

from __future__ import annotations

from typing import Any

import msgspec

from dissensus.labels.labelling import SCHEMES
from dissensus.toml_file import attributes_in_words, schema_of
from dissensus_train.delivery import DELIVERIES, delivery_options
from dissensus_train.studies.labelled_sets import LABELLED_SETS, SPLITS
from dissensus_train.studies.spec import OWN_CODE, Study, StudyFile


def study_schema() -> dict[str, Any]:
    """The schema of a study file. It knows every key and its type; what else must hold, reading the file tells."""
    made = schema_of(StudyFile, title="A study of dissensus")
    tables = {name: made["properties"][name]["properties"] for name in ("dataset", "splits", "grid")}
    words = attributes_in_words(Study.__doc__)
    # Keys that are not called as the study's attributes are.
    words |= {"file": words["splits_file"], "seed": words["split_seed"], "deliveries": words["methods"]}
    words |= {name: f"the share of items in the {name} split" for name in SPLITS} | {"name": "of a known dataset"}
    for key, entry in ((key, entry) for table in tables.values() for key, entry in table.items()):
        entry["description"] = words[key]
    sources = {source for known in LABELLED_SETS.values() for source in known.sources}
    tables["dataset"]["sources"]["items"] = {"enum": sorted(sources)}
    brought = {target for known in LABELLED_SETS.values() for target in known.targets}
    schemes = {"enum": [*SCHEMES, *sorted({"original", *brought} - set(SCHEMES))]}
    for kind in tables["grid"]["targets"]["items"]["anyOf"]:
        kind.get("properties", {}).get("scheme", kind).update(schemes)
    own = {"type": "object", "properties": {"name": OWN_CODE}, "required": ["name"]}
    named = {"anyOf": [{"enum": list(DELIVERIES)}, OWN_CODE]}
    tables["grid"]["deliveries"]["items"] = {"anyOf": [named, *(_delivery(name) for name in DELIVERIES), own]}
    return made


def _delivery(name: str) -> dict[str, Any]:
    """A delivery with its options; what is None by default is a seed."""
    kinds = {key: int if value is None else type(value) for key, value in delivery_options(name).items()}
    keys = {"name": {"const": name}, **{key: msgspec.json.schema(kind) for key, kind in kinds.items()}}
    return {"type": "object", "properties": keys, "required": ["name"], "additionalProperties": False}
