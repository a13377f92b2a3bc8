"""The JSON schema of study files, made from what reads them: editors complete keys with it and mark wrong ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final, get_type_hints

from dissensus.labels.labelling import SCHEMES
from dissensus.toml_file import attributes_in_words, closed_table, schema_of
from dissensus_train.basins import BasinSettings
from dissensus_train.delivery import DELIVERIES, delivery_options
from dissensus_train.ood.settings import OodSettings
from dissensus_train.studies.labelled_sets import LABELLED_SETS, SPLITS
from dissensus_train.studies.spec import GROUP, KEYS, MODEL_KEYS, TARGET_KEYS, Study, Target, _StudyFile
from dissensus_train.training.models import MODELS
from dissensus_train.training.people import SHRINKAGE, People
from dissensus_train.training.settings import REGIMES, Training

_TABLES: Final = {
    "dataset": "What people judged and what they said: a known dataset by name, or files.",
    "splits": "Who is trained on and who is tested on: shares of items, a file, or folds.",
    "grid": "Every target by every delivery, model and seed is a run.",
    "training": "How a run is trained: a regime, and any setting that differs from it.",
    "basins": "What is measured of the minima that runs end in.",
    "ood": "Out-of-distribution sets, and how their detection is measured.",
}

_OWN_CODE: Final = {"type": "string", "pattern": ":", "examples": ["mine.py:name"]}
"""A user's own, or another library's, by path."""


def study_schema() -> dict[str, Any]:
    """The schema of a study file. It knows every key and its type; what else must hold, reading the file tells."""
    asked = _Asked()
    asked.study()
    told = attributes_in_words(Study)
    # Keys that are not called as the study's attributes are.
    told |= {"file": told["splits_file"], "seed": told["split_seed"], "deliveries": told["methods"]}
    told |= {name: f"the share of items in the {name} split" for name in SPLITS} | {"name": "of a known dataset"}
    asked.kept["dataset"] |= {
        "name": {"enum": list(LABELLED_SETS)},
        "sources": _list({"enum": sorted({each for known in LABELLED_SETS.values() for each in known.sources})}),
        "text": {"anyOf": [{"type": "string"}, _list({"type": "string"}) | {"maxItems": 2}]},
    }
    asked.kept["splits"] |= {name: {"type": "number", "minimum": 0, "maximum": 1} for name in SPLITS}
    asked.kept["splits"]["folds"] = {"type": "integer", "minimum": 2}
    asked.kept["grid"] |= _grid()
    tables = {
        name: {key: _told(asked.kept[name][key], told, key) for key in KEYS[name]}
        for name in ("dataset", "splits", "grid")
    }
    regime = {"enum": list(REGIMES), "default": "early-stopping", "description": "the settings that others differ from"}
    tables["training"] = {"regime": regime} | _settings(Training, defaults=False)
    tables["basins"], tables["ood"] = _settings(BasinSettings), _settings(OodSettings)
    top = {
        "name": {"type": "string", "description": "of the study, in tables and files"},
        "question": {"type": "string", "description": told["question"]},
        **{name: closed_table(inside, description=_TABLES[name]) for name, inside in tables.items()},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A study of dissensus",
        "description": "A grid of runs: targets, deliveries, models and seeds on one dataset.",
        **closed_table({key: top[key] for key in KEYS[""]}, required=["dataset"]),
    }


class _Asked(_StudyFile):
    """A study file that keeps what it is asked for: the types of keys are where they are read, and nowhere else."""

    def __init__(self) -> None:
        self.path, self.text = Path("study.toml"), ""
        self.given = {"dataset": {"votes": "votes.csv", "features": "x.npz"}}
        self.kept: dict[str, dict[str, Any]] = {"": {}}

    def typed(self, table: str, key: str, hint: Any, default: Any) -> Any:
        self.kept.setdefault(table, {})[key] = schema_of(hint)
        return super().typed(table, key, hint, default)

    def whole(self, table: str, key: str, default: int, *, least: int) -> int:
        value = super().whole(table, key, default, least=least)
        self.kept[table][key] |= {"minimum": least, "default": default}
        return value


def _grid() -> dict[str, Any]:
    """What `targets`, `deliveries`, `models` and `seeds` may hold: names, or tables with options."""
    brought = {target for known in LABELLED_SETS.values() for target in known.targets}
    schemes = {"enum": [*SCHEMES, *sorted({"original", *brought} - set(SCHEMES))]}
    hints, people = get_type_hints(Target), get_type_hints(People, localns={"Mapping": Mapping})
    target = {key: schemes if key == "scheme" else schema_of(hints[key]) for key in TARGET_KEYS}
    model: dict[str, Any] = {key: schema_of(people[key]) for key in MODEL_KEYS if key in people}
    model |= {"name": _name(MODELS), "people": {"enum": [*SHRINKAGE, GROUP]}}
    deliveries = [_delivery(name) for name in DELIVERIES]
    own = {"type": "object", "properties": {"name": _OWN_CODE}, "required": ["name"]}
    return {
        "targets": _list(schemes, closed_table(_told_each(target, Target), required=["scheme"])),
        "deliveries": _list(_name(DELIVERIES), *deliveries, own),
        "models": _list(_name(MODELS), closed_table(model, required=["name", "people"])),
        "seeds": {"anyOf": [{"type": "integer", "minimum": 1}, _list({"type": "integer", "minimum": 0})]},
    }


def _delivery(name: str) -> dict[str, Any]:
    """A delivery with its options."""
    options = delivery_options(name)
    # What is None by default is a seed.
    each = {key: schema_of(int if value is None else type(value)) for key, value in options.items()}
    return closed_table({"name": {"const": name}, **each}, required=["name"])


def _name(known: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [{"enum": list(known)}, _OWN_CODE]}


def _list(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": entries[0] if len(entries) == 1 else {"anyOf": list(entries)}}


def _settings(kind: type, *, defaults: bool = True) -> dict[str, Any]:
    """The keys of a table that is read into settings of a kind."""
    hints = get_type_hints(kind, localns={"Mapping": Mapping, "Path": Path})
    found = _told_each({each.name: schema_of(hints[each.name]) for each in fields(kind)}, kind)
    for each in fields(kind):
        if defaults and each.default not in (MISSING, None):
            found[each.name]["default"] = list(each.default) if isinstance(each.default, tuple) else each.default
    return found


def _told_each(properties: dict[str, Any], kind: type) -> dict[str, Any]:
    told = attributes_in_words(kind)
    return {key: _told(each, told, key) for key, each in properties.items()}


def _told(schema: dict[str, Any], told: Mapping[str, str], key: str) -> dict[str, Any]:
    return schema | ({"description": told[key]} if key in told else {})
