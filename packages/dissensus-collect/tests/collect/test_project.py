"""A project is one TOML file: made by one command, read strictly."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dissensus.errors import InputError
from dissensus_collect.project.reading import read_project
from dissensus_collect.project.starting import init_project
from dissensus_collect.project.tables import ENDINGS, LAYOUTS
from tests.collect.conftest import ASKED, CHECKED, make_project

if TYPE_CHECKING:
    from pathlib import Path


def images(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8)).save(path)
    return folder


def test_a_folder_of_images_becomes_a_project_in_place(tmp_path: Path) -> None:
    folder = images(tmp_path / "digits", "a.png", "b.png")
    path = init_project(folder)
    project = read_project(folder)
    assert path == folder / "collect.toml"
    assert project.images == folder.resolve()
    assert (project.name, project.layout, project.k, project.items_per_annotator) == ("digits", "rows", 6, 70)
    assert project.classes.names == tuple("0123456789")
    assert project.order.classes == "rotated"
    assert project.values == ("yes", "no", "unsure")
    assert not project.all_no_key
    assert (project.lease.seconds, project.lease.heartbeat) == (600.0, 30.0)
    assert (project.cost.seconds_per_item, project.adaptive.on) == (12.5, False)
    assert len({project.recruitment.codes[ending] for ending in ENDINGS}) == len(ENDINGS)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"classes": ["x", "y"], "k": 13, "language": "de"},
        {"classes": ["x", "y"], "layout": "rating", "k": 1, "recruitment": "prolific"},
        {"pairs": "pairs.csv"},
    ],
    ids=["digits", "k above 12", "rating", "pairs"],
)
def test_read_project_takes_for_a_missing_key_what_a_new_file_says(tmp_path: Path, given: dict[str, Any]) -> None:
    folder = images(tmp_path / "own", "a.png", "b.png")
    (folder / "pairs.csv").write_text("left,right\nx,y\nu,v\n")
    path = init_project(folder, **{key: folder / value if key == "pairs" else value for key, value in given.items()})
    lines = path.read_text(encoding="utf-8").splitlines()
    new, table, tried = settings(folder), "", set[str]()
    for place, line in enumerate(lines):
        if found := re.match(r"\[(\w+)\]", line):
            table = f"{found[1]}."
        key = re.match(r"(\w+) = (?!''')", line)
        if key is None or f"{table}{key[1]}" in TOLD:
            continue
        path.write_text("\n".join([*lines[:place], *lines[place + 1 :]]), encoding="utf-8")
        assert settings(folder) == new, line
        tried.add(f"{table}{key[1]}")
    assert {"adaptive.max_k", "cost.platform_fee", "order.classes", "scale.low", "texts.finish"} <= tried


TOLD = {
    "question", "layout", "k", "seed", "language", "items.images", "items.pairs", "classes.names", "recruitment.kind",
    "recruitment.codes",
}  # fmt: skip
"""Settings that differ between projects: command-line arguments and random values."""


def settings(folder: Path) -> dict[str, Any]:
    return msgspec.structs.asdict(read_project(folder)) | {"toml": ""}


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "single-choice"])
def test_init_project_refuses_a_layout_that_pairs_do_not_have(tmp_path: Path, layout: str) -> None:
    (tmp_path / "pairs.csv").write_text("left,right\nx,y\n")
    with pytest.raises(InputError, match=f"layout is '{layout}'"):
        init_project(tmp_path, pairs=tmp_path / "pairs.csv", layout=layout)
    assert [file.name for file in tmp_path.iterdir()] == ["pairs.csv"]
    for same in (None, "single-choice"):
        init_project(tmp_path, pairs=tmp_path / "pairs.csv", layout=same).unlink()


@pytest.mark.parametrize("k", [2, 12, 13, 40])
def test_init_project_with_a_model_has_room_for_more_votes_than_k(tmp_path: Path, k: int) -> None:
    (tmp_path / "t.csv").write_text("item,text\na,one\nb,two\n")
    (tmp_path / "m.csv").write_text("item,x,y\na,0.5,0.5\nb,0.1,0.9\n")
    init_project(tmp_path, texts=tmp_path / "t.csv", classes=["x", "y"], k=k, model=tmp_path / "m.csv", budget=9)
    project = read_project(tmp_path)
    assert (project.k, project.adaptive.on, project.adaptive.max_k) == (k, True, 2 * k)


def test_classes_are_the_names_of_sub_folders(tmp_path: Path) -> None:
    folder = images(tmp_path / "pets", "dog/1.png", "cat/1.png", "cat/2.png")
    project = read_project(init_project(folder).parent)
    assert project.classes.names == ("cat", "dog")
    assert project.order.classes == "shuffled-per-annotator"


def test_images_and_texts_may_lie_elsewhere(tmp_path: Path) -> None:
    pictures = images(tmp_path / "pictures", "a.png")
    init_project(tmp_path / "one", images=pictures, classes=["x", "y"])
    assert read_project(tmp_path / "one").images == pictures.resolve()
    table = tmp_path / "texts.csv"
    table.write_text("text,label\nhello,joy\nbye,grief\n")
    init_project(tmp_path / "two", texts=table)
    project = read_project(tmp_path / "two")
    assert (project.table, project.images, project.classes.names) == (table.resolve(), None, ("grief", "joy"))


def test_a_project_is_never_overwritten_and_nothing_is_left_of_one_that_cannot_be_made(tmp_path: Path) -> None:
    folder = images(tmp_path / "digits", "a.png")
    init_project(folder)
    with pytest.raises(InputError, match="there is a project already"):
        init_project(folder)
    with pytest.raises(InputError, match="at least two classes"):
        init_project(tmp_path / "new", images=folder, classes=["one"])
    assert not (tmp_path / "new").exists()
    with pytest.raises(InputError, match="did you mean 'rows'"):
        init_project(tmp_path / "new", images=folder, layout="row")
    with pytest.raises(InputError, match="give one of"):
        init_project(tmp_path / "new", images=folder, texts=folder)
    with pytest.raises(InputError, match="not a folder"):
        init_project(tmp_path / "new", images=tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no image in it"):
        init_project(tmp_path / "empty")
    assert list((tmp_path / "empty").iterdir()) == []


@given(name=st.text(min_size=1, max_size=30).filter(lambda name: name.strip() and "\x00" not in name))
def test_any_name_survives_being_written(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    folder = tmp_path_factory.mktemp("named")
    try:
        name.encode()
    except UnicodeEncodeError:
        return
    init_project(folder, images=images(folder, "a.png"), classes=[name, name + "!"], name=name)
    project = read_project(folder)
    assert project.name == name
    assert project.classes.names == (name, name + "!")


def test_the_version_changes_with_the_instrument(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    path = tmp_path / "collect.toml"
    path.write_text(path.read_text().replace("Could this", "Might this"))
    assert read_project(tmp_path).version != project.version


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"__k": '"six"'}, "line 4: 'k' is 'six'; give a whole number, 1 or more"),
        ({"__k": "0"}, "'k' is 0; give a whole number, 1 or more"),
        ({"__k": "true"}, "'k' is True"),
        ({"layout": '"grid"'}, "'layout' names 'grid', which is not there"),
        ({"back": "1"}, "'back' is 1; give true or false"),
        ({"name": "3"}, "'name' is 3; give a text in quotation marks"),
        ({"names": '["a"]'}, "'names' must be a list of at least two classes"),
        ({"names": '["a", "a"]'}, "'names' has 'a' twice"),
        ({"names": '["a", 2]'}, "'names' has 2; give a text in quotation marks"),
        ({"names": '["a", " "]'}, "give 1 to 200 characters"),
        (
            {"words": '{ yes = "Ja", nope = "Nein" }'},
            "'words' has 'nope', which is not one of its keys; did you mean 'no'?",
        ),
        ({"words": '{ yes = "Ja", no = "Ja" }'}, "'words' writes two values alike"),
        ({"words": '{ yes = "" }'}, "'yes' in words is ''; give a text"),
        ({"order__classes": '"rotate"'}, "did you mean 'rotated'?"),
        ({"gold__items": '[{ item = "t0", yes = ["z"] }]'}, "'yes' in items names 'z', which is not there"),
        ({"gold__items": '[{ yes = ["a"] }]'}, "'item' in items is missing; give a text"),
        ({"gold__items": '[{ item = "t0", yes = ["a"], no = ["a"] }]'}, "requires two answers to 'a'"),
        ({"gold__items": '[{ item = "t0", yes = "a" }]'}, "'yes' in items is 'a'; give a list"),
        ({"gold__items": '[{ item = "t0", maybe = ["a"] }]'}, "'maybe' is no key in items"),
        ({"gold__items": "3"}, "'items' is 3; give a list of entries such as { item ="),
        ({"misses_allowed": "-1"}, "give a whole number, 0 or more"),
        ({"lease__seconds": "0"}, "'seconds' is 0; give a number, above 0"),
        ({"lease__seconds": "nan"}, "give a number, above 0"),
        ({"kind": '"prolifik"'}, "did you mean 'prolific'?"),
        ({"codes": '{ done = "X" }'}, "'codes' has 'done', which is not one of its keys"),
        ({"codes": '{ complete = "X", technical = "X" }'}, "gives two endings the same code"),
        ({"codes": '"X"'}, "'codes' is 'X'; give codes as { complete"),
        ({"adaptive__on": "true", "max_k": "1"}, "less than k = 2"),
        ({"texts": '"nowhere.csv"'}, "where there is no file"),
        ({"rendering": '"blurred"'}, "'rendering' names 'blurred'"),
        ({"least_width": "-1"}, "'least_width' is -1; give a whole number, 0 or more"),
        ({"least_seconds_per_class": '"fast"'}, "'least_seconds_per_class' is 'fast'"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_line(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=r"collect\.toml, line \d+: ") as error:
        make_project(tmp_path, **change)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("k = ", "not valid TOML"),
        ("\x00", "not valid TOML"),
        ("kk = 3", "line 1: 'kk' is no key at the top; did you mean 'k'?"),
        ("[lease]\nsecond = 3", "line 2: 'second' is no key in [lease]; did you mean 'seconds'?"),
        ("items = 3", "line 1: 'items' is 3; give a table [items] with images"),
        (
            '[classes]\nnames = ["a", "b"]',
            "'items' is missing; give a table [items] with images, a folder, or texts, a table",
        ),
        ('[classes]\nnames = ["a", "b"]\n[items]\nimages = "x"', "line 4: 'images' is 'x', where there is no folder"),
    ],
)
def test_malformed_files_are_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "collect.toml").write_text(text)
    with pytest.raises(InputError) as error:
        read_project(tmp_path)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_questions_before_and_after_the_items_are_off_until_they_are_written(tmp_path: Path) -> None:
    bare = make_project(tmp_path / "bare")
    assert (bare.comprehension, bare.questions, bare.screen.least_width, bare.speed.least_seconds_per_class) == (
        (),
        (),
        0,
        0.0,
    )
    project = make_project(
        tmp_path / "full", more=CHECKED + ASKED, screen__least_width="900", least_seconds_per_class="0.25"
    )
    assert [each.right for each in project.comprehension] == ["Unsure", "None, one or several"]
    age, feedback = project.questions
    assert (age.name, age.required, len(age.options)) == ("age_group", True, 3)
    assert (feedback.required, feedback.options) == (False, ())
    assert (project.screen.least_width, project.speed.least_seconds_per_class) == (900, 0.25)
    assert age.takes("30 to 59")
    assert not age.takes("29")
    assert feedback.takes("x" * 1000)
    assert not feedback.takes("x" * 1001)


def test_the_examples_in_a_new_collect_file_work_when_their_marks_are_taken_away(tmp_path: Path) -> None:
    make_project(tmp_path)
    path = tmp_path / "collect.toml"
    before, examples = path.read_text().split("# Asked before", 1)
    path.write_text(before + "# Asked before" + re.sub(r"(?m)^# (?=\[|\w+ = )", "", examples))
    project = read_project(tmp_path)
    assert [each.right for each in project.comprehension] == ["Yes, my answers are saved"]
    assert [(each.name, each.is_choice, each.scale.most) for each in project.item_questions] == [("clear", True, 10)]
    assert project.eligibility[0].eligible == ("18 to 39", "40 or older")
    assert project.quotas == {"age_group": {"18 to 39": 20, "40 or older": 20}}
    assert project.prescreening == {"first_language": "English", "approval_rate": "at least 95 %"}
    assert [each.name for each in project.questions] == ["feedback"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            "[comprehension]\nright = 'a'",
            "'comprehension' is {{'right': 'a'}}; give tables, each written as [[comprehension]]",
        ),
        ("comprehension = 3", "'comprehension' is no key in [cost]"),
        ("[[comprehension]]\nright = 'a'", "line {line}: 'question' in [[comprehension]] is missing"),
        ("[[comprehension]]\nquestion = 'q'\nright = 'a'", "line {line}: 'options' in [[comprehension]] is missing"),
        ("[[comprehension]]\nquestion = 'q'\noptions = ['a']\nright = 'a'", "give two or more that differ"),
        ("[[comprehension]]\nquestion = 'q'\noptions = ['a', 'a ']\nright = 'a'", "give two or more that differ"),
        (
            "[[comprehension]]\nquestion = 'q'\noptions = ['a', 'b']\nright = 'c'",
            "'right' is 'c', which is not one of its options",
        ),
        (
            "[[comprehension]]\nquestion = 'q'\noptions = ['a', 2]\nright = 'a'",
            "'options' has 2; give a text in quotation marks",
        ),
        (
            "[[comprehension]]\nquestion = 'q'\nwrong = 'b'",
            "'wrong' is no key in [[comprehension]]; choose question",
        ),
        ("[[questions]]\nquestion = 'q'", "'name' in [[questions]] is missing; give a name such as 'age_group'"),
        ("[[questions]]\nname = 'Age group'\nquestion = 'q'", "'name' is 'Age group'; give a name such as 'age_group'"),
        (
            "[[questions]]\nname = 'a'\nquestion = 'q'\n" * 2,
            "line {later}: 'name' is 'a' again; name each question once",
        ),
        ("[[questions]]\nname = 'a'\nquestion = 'q'\nrequired = 1", "'required' is 1; give true or false"),
        ("[[questions]]\nname = 'a'\nquestion = 'q'\n" * 21, "ask 20 questions at most"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused_with_their_line(tmp_path: Path, more: str, sentence: str) -> None:
    lines = len(make_project(tmp_path / "bare").toml.splitlines())
    with pytest.raises(InputError, match=r"collect\.toml, line \d+: ") as error:
        make_project(tmp_path / "full", more=more)
    assert sentence.format(line=lines + 1, later=lines + 5) in str(error.value)


def test_no_project_and_no_text_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no project here; make one with 'dissensus collect init"):
        read_project(tmp_path)
    (tmp_path / "collect.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="give a TOML file in UTF-8"):
        read_project(tmp_path)


def test_the_core_needs_no_torch_and_no_server() -> None:
    rooms = "project.reading project.orders store.database store.slots work.answers work.participants work.assignment"
    code = (
        f"import importlib, sys; [importlib.import_module('dissensus_collect.' + name) for name in '{rooms}'.split()]; "
        "print([name for name in ('torch', 'starlette', 'uvicorn', 'psycopg', 'polars') if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
