"""Every key of a study file with every kind of value: read, or refused in a sentence with its line; and written."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus.labels import SCHEMES
from dissensus_train.basins import BasinSettings
from dissensus_train.delivery import DELIVERIES
from dissensus_train.ood.settings import OodSettings
from dissensus_train.studies import Study, read_study, shipped_studies, study_toml
from dissensus_train.studies.spec import SHARES, Method, StudyFile, Target
from dissensus_train.studies.writing import toml_value
from dissensus_train.training.models import MODELS
from dissensus_train.training.settings import REGIMES
from tests.test_schemas import keys_of

if TYPE_CHECKING:
    from pathlib import Path

KEYS = keys_of(StudyFile)

OWN = '[dataset]\nvotes = "votes.csv"\nfeatures = "x.npz"\n'

VALUES = [
    "a",
    "",
    "3",
    "false",
    3,
    0,
    -1,
    2.5,
    -0.5,
    float("nan"),
    float("inf"),
    True,
    False,
    [],
    [1],
    ["a"],
    [["a"]],
    [1.5, "a"],
    {},
    {"a": 1},
    {"name": 3},
    {"scheme": []},
    [{"name": []}],
    [{"name": "stale-sls", "keep": "3"}],
    [{"name": "stale-sls", "keep": 2.5}],
    [{"name": "stale-sls", "keep": True}],
    [{"name": "label-smoothing", "smoothing": "a"}],
    [{"name": "mixup", "strength": [1]}],
    [{"name": "multipass", "order_seed": 1.5}],
    [{"scheme": "frequency", "votes": True}],
    [{"scheme": "frequency", "votes": 2.0}],
    [{"scheme": "frequency", "votes": 2, "seed": "a"}],
]


@pytest.mark.parametrize("table", KEYS)
def test_no_value_of_any_key_ends_in_a_traceback(tmp_path: Path, table: str) -> None:
    path = tmp_path / "study.toml"
    for key in KEYS[table]:
        for value in VALUES:
            line = f"{key} = {toml_value(value)}\n"
            before = "" if key == "dataset" else OWN
            if table == "dataset":
                text = "\n".join(each for each in OWN.splitlines() if not each.startswith(f"{key} ")) + f"\n{line}"
            else:
                text = f"{line}{before}" if not table else f"{before}[{table}]\n{line}"
                if table == "ood" and key != "sets":
                    text += 'sets = { a = "b" }\n'
            path.write_text(text)
            refused = None
            try:
                read_study(path)
            except InputError as error:
                refused = str(error)
            assert refused is None or refused.startswith(f"{path}, line "), (line, refused)


@pytest.mark.parametrize(
    ("table", "line", "sentence"),
    [
        ("grid", "seeds = 1.5", "give how many, or a list of whole numbers"),
        ("training", "epochs = 2.5", "'epochs' is 2.5; give a whole number"),
        ("training", "batch_size = 16.0", "'batch_size' is 16.0; give a whole number"),
        ("training", 'dynamics = "false"', "'dynamics' is 'false'; give true or false"),
        ("splits", 'seed = "a"', "'seed' is 'a'; give a whole number"),
        ("splits", "seed = -1", "'seed' is -1; give a whole number, 0 or more"),
        ("splits", "seed = 1.5", "'seed' is 1.5; give a whole number"),
        ("splits", "folds = 1", "'folds' is 1; give a whole number, 2 or more"),
        ("splits", "folds = 2", "the best epoch is chosen on a fold of its own; give 3 or more"),
        ("splits", "folds = 5\ntrain = 1.0", "a fold is the test split: leave shares out"),
        (
            "grid",
            'targets = [{ scheme = "frequency", votes = 3, seed = "a" }]',
            "'seed' in targets is 'a'; give a whole number, 0 or more",
        ),
        (
            "grid",
            'targets = [{ scheme = "frequency", votes = true }]',
            "'votes' in targets is True; give a whole number, 1 or more",
        ),
        ("grid", 'targets = ["original"]', "'targets' names 'original', which is not there"),
        (
            "grid",
            'deliveries = [{ name = "stale-sls", keep = "3" }]',
            "gives stale-sls keep = '3'; give a whole number",
        ),
        ("grid", 'deliveries = [{ name = "stale-sls", keep = 2.5 }]', "keep = 2.5; give a whole number"),
        ("grid", 'deliveries = [{ name = "label-smoothing", smoothing = "a" }]', "smoothing = 'a'; give a number"),
        ("", "name = 3", "'name' is 3; give a text in quotation marks"),
        ("dataset", 'texts = "t.csv"', "'features' stands beside texts; give one of them"),
        ("dataset", 'encoder = "tfidf"', "features are given; leave one out"),
        ("dataset", 'text = "body"', "names a column of texts, and there are none"),
        ("dataset", "normalise = 1", "'normalise' is 1; give true or false"),
        ("dataset", 'name = "wrods"', "did you mean 'words'?"),
        ("dataset", 'name = "words"', "contradicts name"),
    ],
)
def test_a_wrong_key_is_refused_in_a_sentence(tmp_path: Path, table: str, line: str, sentence: str) -> None:
    path = tmp_path / "study.toml"
    text = f"{line}\n{OWN}" if not table else f"{OWN}{line}\n" if table == "dataset" else f"{OWN}[{table}]\n{line}\n"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_study(path)
    assert sentence in str(refused.value)
    number = int(str(refused.value).split("line ")[1].split(":")[0])
    wanted = text.splitlines().index(line.splitlines()[0]) + 1
    assert abs(number - wanted) <= 3, str(refused.value)


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1).filter(str.strip)
FINITE = st.floats(min_value=1e-6, max_value=1e6)


@st.composite
def studies(draw: st.DrawFn) -> Study:
    """Any study of one's own files that a study file can say."""
    regime = REGIMES[draw(st.sampled_from(sorted(REGIMES)))]
    training = replace(
        regime,
        learning_rate=draw(FINITE),
        epochs=draw(st.integers(1, 500)),
        dynamics=draw(st.booleans()),
        loss=draw(st.sampled_from(["cross-entropy", "brier"])),
        class_weights=draw(st.sampled_from([None, "balanced", {"a b": 1.5, "c": 2}])),
    )
    way = draw(st.sampled_from(["shares", "file", "folds"]))
    kind = draw(st.sampled_from(["texts", "images", "features"]))
    targets = st.one_of(
        st.builds(Target, st.sampled_from(sorted(SCHEMES))),
        st.builds(Target, st.just("frequency"), st.integers(1, 9), st.integers(0, 3)),
    )
    deliveries = st.one_of(
        st.builds(Method, st.sampled_from(sorted(DELIVERIES))),
        st.builds(Method, st.just("stale-sls"), st.fixed_dictionaries({"keep": st.integers(1, 50)})),
        st.builds(Method, st.just("label-smoothing"), st.fixed_dictionaries({"smoothing": st.floats(0, 1)})),
    )
    return Study(
        name=draw(NAMES),
        question=draw(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]))),
        dataset=None,
        votes=draw(NAMES),
        features="x.npz" if kind == "features" else None,
        texts="texts.csv" if kind == "texts" else None,
        images="photos" if kind == "images" else None,
        item=draw(st.none() | NAMES) if kind == "texts" else None,
        text=tuple(draw(st.lists(NAMES, max_size=2))) if kind == "texts" else (),
        encoder=draw(st.none() | st.sampled_from(["tfidf", "own.py:encode"])) if kind != "features" else None,
        normalise=draw(st.none() | st.booleans()),
        original=draw(st.none() | NAMES),
        format=draw(st.none() | st.just("long")),
        splits=SHARES if way == "shares" else {},
        split_seed=draw(st.integers(0, 99)),
        splits_file="splits.csv" if way == "file" else None,
        folds=draw(st.integers(3, 9)) if way == "folds" else 0,
        targets=tuple(draw(st.lists(targets, min_size=1, max_size=3, unique_by=str))),
        methods=tuple(draw(st.lists(deliveries, min_size=1, max_size=3, unique_by=lambda each: each.delivery))),
        models=tuple(draw(st.lists(st.sampled_from([*MODELS, "nets.py:net"]), min_size=1, unique=True))),
        seeds=tuple(draw(st.lists(st.integers(0, 999), min_size=1, max_size=4, unique=True))),
        training=training,
        path=draw(st.just(None)),  # type: ignore[arg-type]
        basins=draw(st.none() | st.builds(BasinSettings, radius=FINITE, items=st.integers(2, 99))),
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=80)
@given(study=studies())
def test_a_study_that_is_written_and_read_is_the_same_study(tmp_path: Path, study: Study) -> None:
    # Logistic regression alone, with deliveries that it cannot be fitted to, is no study.
    assume(study.grid)
    path = tmp_path / "study.toml"
    whole = replace(study, path=path)
    path.write_text(study_toml(whole), encoding="utf-8", newline="\n")
    assert read_study(path) == whole


@pytest.mark.parametrize("name", shipped_studies())
def test_shipped_studies_are_written_as_they_are(tmp_path: Path, name: str) -> None:
    path = tmp_path / "study.toml"
    study = replace(read_study(name), path=path)
    path.write_text(study_toml(study), encoding="utf-8")
    assert read_study(path) == study


def test_the_settings_of_ood_are_written_too(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    (tmp_path / "letters.npz").write_bytes(b"")
    path.write_text(f'{OWN}[ood]\nsets = {{ "the letters" = "letters.npz" }}\nk = 7\nscores = ["msp"]\n')
    study = read_study(path)
    assert study.ood == OodSettings(sets={"the letters": tmp_path / "letters.npz"}, k=7, scores=("msp",))
    path.write_text(study_toml(study))
    assert read_study(path) == study


def test_every_field_of_a_study_is_written(tmp_path: Path) -> None:
    """A field that is added and not written would be lost by `study init` and by a bundle."""
    # Models with an annotator side are written among the models (tests/studies/test_people.py).
    derived = {"path", "fold", "part", "split_seed", "splits_file", "methods", "annotator_models"}
    written = {key for keys in KEYS.values() for key in keys}
    assert {each.name for each in fields(Study)} - derived - {
        "dataset",
        "training",
        "basins",
        "ood",
        "splits",
    } <= written
