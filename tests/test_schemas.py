"""The JSON schemas of study.toml and collect.toml: every key that is read is in them, and no other."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import jsonschema
import msgspec
import pytest
from typer.testing import CliRunner

from dissensus.cli import app
from dissensus.errors import InputError
from dissensus.toml_file import TomlTable
from dissensus_collect.project.starting import init_project
from dissensus_collect.project.tables import LAYOUTS, ProjectFile
from dissensus_collect.schema import project_schema
from dissensus_train.studies.schema import study_schema
from dissensus_train.studies.spec import StudyFile, read_study, shipped_studies

if TYPE_CHECKING:
    from pathlib import Path

STUDY, PROJECT = study_schema(), project_schema()

WHOLE = """
name = "mine"
[dataset]
votes = "votes.csv"
texts = "texts.csv"
text = ["premise", "hypothesis"]
normalise = false
[splits]
folds = 5
[grid]
targets = ["frequency", { scheme = "dirichlet", votes = 5, seed = 1 }]
deliveries = ["soft", { name = "stale-sls", keep = 10 }, "mine.py:delivery"]
models = ["linear", "mine.py:net", { name = "simple-ffn", people = "group", by = "country" }]
seeds = [0, 2]
[training]
regime = "fixed-horizon"
learning_rate = 1
class_weights = { yes = 2.0, no = 1 }
clip_norm = 1.0
[basins]
items = 100
[ood]
sets = { letters = "letters.npz" }
near = ["letters"]
"""


def wrong(schema: dict[str, Any], text: str) -> list[str]:
    """What a schema says is wrong with a TOML file."""
    found = jsonschema.Draft202012Validator(schema).iter_errors(tomllib.loads(text))
    return [f"{each.json_path}: {each.message}" for each in found]


def keys_of(model: type[TomlTable]) -> dict[str, tuple[str, ...]]:
    """The keys of a file that is read as a model, by table; "" is the top."""
    found = {"": model.__struct_fields__}
    for field in msgspec.structs.fields(model):
        kinds = [*getattr(field.type, "__args__", ()), getattr(field.type, "__origin__", None), field.type]
        tables = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, TomlTable)]
        if tables:
            found[field.name] = tables[0].__struct_fields__
    return found


@pytest.mark.parametrize(
    ("schema", "keys"), [(STUDY, keys_of(StudyFile)), (PROJECT, keys_of(ProjectFile))], ids=["study", "collect"]
)
def test_it_has_the_keys_that_are_read_and_no_others(schema: dict[str, Any], keys: dict[str, tuple[str, ...]]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    for table, names in keys.items():
        inside = schema["properties"][table] if table else schema
        inside = inside.get("items", inside)
        assert tuple(inside["properties"]) == names, table
        assert inside["additionalProperties"] is False


@pytest.mark.parametrize("name", shipped_studies())
def test_every_shipped_study_is_accepted(name: str) -> None:
    assert wrong(STUDY, shipped_studies()[name].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_new_project_is_accepted(tmp_path: Path, layout: str) -> None:
    (tmp_path / "one.png").touch()
    path = init_project(tmp_path, layout=layout, recruitment="prolific", classes=["cat", "dog"])
    text = path.read_text(encoding="utf-8")
    asked = '[[comprehension]]\nquestion = "?"\noptions = ["a", "b"]\nright = "a"\n'
    assert wrong(PROJECT, text + asked) == []
    assert wrong(PROJECT, text + asked.replace("right", "rihgt"))
    assert wrong(PROJECT, text.replace("misses_allowed", "mises_allowed"))
    assert wrong(PROJECT, text.replace("shortcuts = true", "shortcuts = 1"))


@pytest.mark.parametrize(
    ("written", "mistaken"),
    [
        ('votes = "v', 'vote = "v'),
        ("normalise = false", 'normalise = "no"'),
        ("folds = 5", "folds = 1"),
        ('"dirichlet"', '"dirichelt"'),
        ('"stale-sls", keep', '"stale-sls", keeps'),
        ("keep = 10", 'keep = "10"'),
        ('"linear"', '"liner"'),
        ('people = "group"', 'people = "groups"'),
        ("[0, 2]", "0"),
        ("fixed-horizon", "fixed"),
        ("learning_rate", "learning-rate"),
        ("clip_norm = 1.0", 'clip_norm = "1"'),
        ("no = 1 }", 'no = "1" }'),
        ("items = 100", "items = 1.5"),
        ('["letters"]', '"letters"'),
    ],
)
def test_what_the_reader_refuses_the_schema_refuses(tmp_path: Path, written: str, mistaken: str) -> None:
    path = tmp_path / "study.toml"
    (tmp_path / "mine.py").write_text("def delivery(labels, votes=None, *, seed=0, device='cpu'): ...\n")
    path.write_text(WHOLE, encoding="utf-8")
    assert wrong(STUDY, WHOLE) == []
    assert read_study(path).folds == 5
    assert WHOLE.count(written) == 1
    path.write_text(WHOLE.replace(written, mistaken), encoding="utf-8")
    assert wrong(STUDY, path.read_text(encoding="utf-8"))
    with pytest.raises(InputError):
        read_study(path)


def test_keys_are_explained_where_they_are_defined() -> None:
    tables = STUDY["properties"]
    assert tables["training"]["properties"]["batch_size"]["description"].startswith("examples per step")
    assert tables["ood"]["properties"]["k"]["description"].startswith("of kNN")
    assert tables["dataset"]["properties"]["encoder"]["description"].startswith("what makes features")
    assert PROJECT["properties"]["adaptive"]["properties"]["budget"]["description"] == "votes beyond k, over all items."


@pytest.mark.parametrize(("kind", "schema"), [("study", STUDY), ("collect", PROJECT)])
def test_the_command_prints_it(kind: str, schema: dict[str, Any]) -> None:
    assert json.loads(CliRunner().invoke(app, ["schema", kind]).stdout) == schema
