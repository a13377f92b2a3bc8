from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from dissensus.errors import InputError
from dissensus_train.studies import open_study, read_study, shipped_studies
from dissensus_train.studies.spec import Method, Target

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = """\
name = "sweep"
question = "Does it matter?"

[dataset]
name = "words"

[splits]
train = 0.8
validation = 0.1
test = 0.1
seed = 7

[grid]
targets = ["frequency", { scheme = "frequency", votes = 5, seed = 1 }]
deliveries = ["soft", { name = "stale-sls", keep = 5 }]
models = ["linear", "simple-ffn"]
seeds = [3, 4, 5]

[training]
regime = "early-stopping"
epochs = 9
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_study_file_says_what_it_means(tmp_path: Path) -> None:
    study = read_study(write(tmp_path, WHOLE))
    assert (study.name, study.question, study.dataset) == ("sweep", "Does it matter?", "words")
    assert study.splits == {"train": 0.8, "validation": 0.1, "test": 0.1}
    assert study.split_seed == 7
    assert study.targets == (Target("frequency"), Target("frequency", 5, 1))
    assert study.targets[1].name == "frequency, 5 votes, seed 1"
    assert study.methods == (Method("soft"), Method("stale-sls", {"keep": 5}))
    assert study.seeds == (3, 4, 5)
    assert study.training.epochs == 9
    assert study.size == 2 * 2 * 2 * 3


def test_what_is_not_said_has_a_default(tmp_path: Path) -> None:
    study = read_study(write(tmp_path, '[dataset]\nname = "words"\n'))
    assert study.name == "study"
    assert study.size == 1
    assert study.training.keep == "best"


@pytest.mark.parametrize("name", shipped_studies())
def test_shipped_studies_can_be_read(name: str) -> None:
    study = read_study(name)
    assert study.name == name
    assert study.question.endswith("?")


@pytest.mark.parametrize(
    ("rest", "parts"),
    [
        ('dataset = { votes = "v.csv", features = "x.npz" }\nsplits = { folds = 3 }', ["fold-1", "fold-2", "fold-3"]),
        ('dataset = { name = "chaosnli", sources = ["snli", "mnli"] }', ["snli", "mnli"]),
        (
            'dataset = { name = "chaosnli", sources = ["snli", "mnli"] }\nsplits = { folds = 3 }',
            [f"{source}-fold-{fold}" for source in ("snli", "mnli") for fold in (1, 2, 3)],
        ),
        ('dataset = { name = "words" }', [""]),
    ],
)
def test_read_study_finds_each_part_by_its_source(tmp_path: Path, rest: str, parts: list[str]) -> None:
    whole = read_study(write(tmp_path, f'name = "mine"\n{rest}\n'))
    assert [part.part for part in whole.parts] == parts
    assert [part.name for part in whole.parts] == [f"mine-{part}".removesuffix("-") for part in parts]
    for part in whole.parts:
        assert read_study(part.source) == part
        assert part.parts == (part,)
    with pytest.raises(InputError, match=f"has no part 'fold-9'.*choose {', '.join(parts)}"):
        read_study(f"{whole.path}:fold-9")
    if len(whole.sources) > 1:
        with pytest.raises(InputError, match=re.escape(whole.parts[0].source)):
            open_study(whole)


@pytest.mark.parametrize("name", shipped_studies())
def test_read_study_finds_each_part_of_a_shipped_study_by_its_source(name: str) -> None:
    for part in read_study(name).parts:
        assert part.source == part.name
        assert read_study(part.source) == part


@pytest.mark.parametrize(
    ("before", "after", "line", "sentence"),
    [
        ("epochs = 9", "epoch = 9", 22, "'epoch' is no key in [training]; did you mean 'epochs'?"),
        ('question = "Does', 'questoin = "Does', 2, "did you mean 'question'?"),
        ("[grid]", "[gird]", 13, "'gird' is no key at the top; did you mean 'grid'?"),
        ('"soft", {', '"sofd", {', 15, "'deliveries' names 'sofd', which is not there; did you mean 'soft'?"),
        ("keep = 5", "keeps = 5", 15, "'deliveries' has 'keeps', which is not one of its keys; did you mean 'keep'?"),
        ('["frequency", {', '["frequencies", {', 14, "did you mean 'frequency'?"),
        ("votes = 5, seed", "vote = 5, seed", 14, "'vote' is no key in targets; did you mean 'votes'?"),
        ("votes = 5", "votes = 0", 14, "'votes' in targets is 0; give a whole number, 1 or more"),
        ('"linear", "simple-ffn"', '"liner"', 16, "did you mean 'linear'?"),
        ("[3, 4, 5]", '"three"', 17, "a list of whole numbers"),
        ("[3, 4, 5]", "[3, 3]", 17, "names a seed twice"),
        ("[3, 4, 5]", "0", 17, "a list of whole numbers"),
        ("train = 0.8", "train = 0.7", 8, "sum to 0.9; they must sum to 1"),
        ("train = 0.8", 'train = "most"', 8, "give a number, 0 or more and 1 or less"),
        ("epochs = 9", "epochs = 0", 21, "epochs is 0; it must be 1 or more"),
        ("epochs = 9", 'selection_split = "test"', 21, "nothing is ever selected on the test split"),
        ('"early-stopping"', '"early-stoping"', 20, "did you mean 'early-stopping'?"),
        ('name = "words"', 'name = "words"\nvotes = "votes.csv"', 6, "contradicts name"),
        ('name = "words"', 'votes = "votes.csv"', 4, "give texts, images or features of the items"),
        ('[dataset]\nname = "words"', 'dataset = "words"', 4, "give a table, written as [dataset]"),
        ("validation = 0.1\ntest = 0.1", "test = 0.2", 18, "which no item is in"),
    ],
)
def test_a_wrong_study_is_refused_with_the_line(
    tmp_path: Path, before: str, after: str, line: int, sentence: str
) -> None:
    assert before in WHOLE
    path = write(tmp_path, WHOLE.replace(before, after, 1))
    with pytest.raises(InputError) as refused:
        read_study(path)
    assert sentence in str(refused.value)
    assert f"{path}, line " in str(refused.value)
    said = int(str(refused.value).split("line ")[1].split(":")[0])
    assert abs(said - line) <= 1, str(refused.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("name = ", "not valid TOML"), (None, "there is no such study"), ("\udcff", "cannot be read")],
)
def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, text: str | None, sentence: str) -> None:
    path = tmp_path / "study.toml"
    if text is not None:
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=sentence):
        read_study(path)


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(InputError, match=r"is no study; did you mean 'words'"):
        read_study("wrods")
