"""A study as the TOML file that says it: what `read_study` reads back is the same study."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from dissensus.errors import InputError
from dissensus_train.studies.spec import DATASET_KEYS, AnnotatorNetwork, Study
from dissensus_train.training.settings import REGIMES

if TYPE_CHECKING:
    from collections.abc import Mapping


_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def study_toml(study: Study) -> str:
    """The text of a study file; relative paths stay relative to the study's folder."""
    dataset = {"name": study.dataset, "sources": list(study.sources) or None, "text": list(study.text) or None}
    tables: dict[str, Mapping[str, Any]] = {
        "": {"name": study.name, "question": study.question},
        "dataset": {**dataset, **{key: getattr(study, key) for key in DATASET_KEYS}},
        "splits": {**study.splits, "file": study.splits_file, "folds": study.folds or None, "seed": study.split_seed},
        "grid": {
            "targets": [target.scheme if target.votes is None else asdict(target) for target in study.targets],
            "deliveries": [
                {"name": method.delivery, **method.options} if method.options else method.delivery
                for method in study.methods
            ],
            "models": [*study.models, *(_annotator_model(model) for model in study.annotator_models)],
            "seeds": list(study.seeds),
            "reference": study.reference,
        },
        "training": _training(study),
    }
    for name, settings in (("basins", study.basins), ("ood", study.ood)):
        if settings is not None:
            tables[name] = vars(settings)
    return toml_text(tables)


def toml_text(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """A TOML file of tables by name, that without a name first, with plain values by key; what is None is left out."""
    return "\n".join(_table(name, values) for name, values in tables.items())


def toml_value(value: Any) -> str:
    """A plain value as TOML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(entry) for entry in value)}]"
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(key)} = {toml_value(entry)}" for key, entry in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    # JSON's text is TOML's, but for one character that JSON leaves as it is.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _table(name: str, values: Mapping[str, Any]) -> str:
    lines = [f"{_key(key)} = {toml_value(value)}" for key, value in values.items() if value is not None]
    return "\n".join([*([f"[{name}]"] if name else []), *lines]) + "\n"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml_value(name)


def _annotator_model(model: AnnotatorNetwork) -> dict[str, Any]:
    people = model.people
    options = {"by": people.by, "population": dict(people.population)}
    table = {"name": model.name, "people": people.kind, "shrinkage": people.shrinkage}
    return {**table, **{key: value for key, value in options.items() if value}}


def _training(study: Study) -> dict[str, Any]:
    """The regime that is nearest, and what differs from it."""
    differs = {
        name: {key: value for key, value in vars(study.training).items() if getattr(regime, key) != value}
        for name, regime in REGIMES.items()
    }
    # TOML has no word for nothing: what is None must be so in the regime.
    fit = {name: changed for name, changed in differs.items() if None not in changed.values()}
    if not fit:
        raise InputError(f"study {study.name}: its training settings cannot be written as TOML, which has no null")
    name = min(fit, key=lambda name: len(fit[name]))
    return {"regime": name, **fit[name]}
