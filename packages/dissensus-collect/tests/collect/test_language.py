"""Every sentence of the annotator's pages in every language, and no sentence beside the catalogue."""

from __future__ import annotations

import ast
import json
import re
import string
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dissensus_collect
from dissensus.errors import InputError
from dissensus_collect.project.language import NAMES, language, preferred
from dissensus_collect.project.reading import read_project
from dissensus_collect.project.setup_check import check_setup
from dissensus_collect.project.starting import init_project
from dissensus_collect.project.tables import LAYOUTS
from dissensus_collect.web.site import draw
from tests.collect.conftest import make_project
from tests.collect.web import visited, web_project

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOM = Path(dissensus_collect.__file__).parent
TEMPLATES = sorted(path for path in (ROOM / "web/templates").glob("*.jinja") if not path.name.startswith("researcher"))
SCRIPTS = sorted(path for path in (ROOM / "web/static").glob("*.js") if path.name not in ("progress.js", "quality.js"))
SPEAKING = (
    "web/annotator_pages.py", "web/item_screen.py", "web/item_calls.py", "web/site.py", "web/security.py",
    "web/server.py", "work/recruitment.py", "project/reading.py",
)  # fmt: skip
"""The modules whose sentences annotators read."""
CALLS = {"say": 0, "marked": 0, "Refusal": 0, "NotInvited": 0, "refuse": 1}
"""What says a sentence, and which of its arguments that is."""


def without_comments(script: str) -> str:
    return re.sub(r"(?m)(^|\s)// .*$", "", re.sub(r"/\*.*?\*/", "", script, flags=re.DOTALL))


def said_in_scripts() -> set[str]:
    found = r'(?<![#\w.])say\(\s*"((?:[^"\\]|\\.)*)"'
    return {each for path in SCRIPTS for each in re.findall(found, without_comments(path.read_text(encoding="utf-8")))}


def said_in_python(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name not in CALLS or (name == "refuse" and isinstance(node.func, ast.Attribute)):
            continue
        given: list[Any] = node.args[CALLS[name] : CALLS[name] + 1]
        given += [each.value for each in node.keywords if each.arg == "heading"]
        yield from (each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str))


def said_on_pages() -> set[str]:
    found = r'(?<![#\w.])say\(\s*"((?:[^"\\]|\\.)*)"'
    drawn = {each for path in TEMPLATES for each in re.findall(found, path.read_text(encoding="utf-8"))}
    headings = {"This did not work"}  # what a refusal is headed if nothing else is said
    return drawn | headings | {each for name in SPEAKING for each in said_in_python(ROOM / name)}


FOR_SCRIPTS_ONLY = {
    "The request is not a JSON object; please reload the page.",
    "'values' must be an object by class.",
    "Please go through the first pages of this project.",
}
"""Refusals of what no page of ours sends; nobody reads them."""


@pytest.mark.parametrize("code", NAMES)
def test_a_language_says_every_sentence_and_no_other(code: str) -> None:
    told = language(code)
    for said, where in ((said_on_pages() - FOR_SCRIPTS_ONLY, told.pages), (said_in_scripts(), told.scripts)):
        plural = {each for each in said if "{n}" in each}
        # English says every other sentence by its name.
        expected = plural if code == "en" else said
        assert expected - set(where) == set(), f"{code} does not say these"
        assert set(where) - expected == set(), f"{code} says these, and nobody asks for them"


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("code", NAMES)
def test_a_translation_has_the_values_and_plural_forms_of_its_sentence(code: str) -> None:
    forms = {language(code).locale.plural_form(n) for n in range(200)}
    for sentence, told in {**language(code).pages, **language(code).scripts}.items():
        if isinstance(told, str):
            assert fields(told) == fields(sentence), sentence
            assert told.strip(), sentence
            continue
        assert set(told) == forms, sentence
        for form, text in told.items():
            # "one", "two" and "zero" may write the number as a word, or leave it out.
            optional = {"n"} if form in ("zero", "one", "two") else set()
            assert fields(text) | optional == fields(sentence) | optional, (sentence, form)


def test_plurals_and_values_are_put_in() -> None:
    assert language("en").say("About {n} minutes", n=1) == "About 1 minute"
    assert language("en").say("About {n} minutes", n=2) == "About 2 minutes"
    assert language("de").say("{n} images", n=1) == "1 Bild"
    arabic = [language("ar").say("{n} images", n=n) for n in (1, 2, 3, 11, 100)]
    assert len(set(arabic)) == 5
    marked = language("fr").marked("Press {key} for the keys.", key="<b>")
    assert "&lt;b&gt;" in marked, "values are escaped"


@pytest.mark.parametrize(
    ("chosen", "accepted", "got"),
    [
        (None, "", "en"),
        (None, "fr-CA,fr;q=0.9,en;q=0.8", "fr"),
        (None, "ja, en;q=0.5, ar-EG;q=0.7", "ar"),
        (None, "fr;q=0, ar", "ar"),
        (None, "*", "en"),
        (None, "fr;q=x, \x00", "en"),
        ("ar", "fr", "ar"),
        ("de", "fr", "fr"),
    ],
)
def test_a_visitor_gets_the_language_chosen_or_else_the_one_the_browser_wants(
    chosen: str | None, accepted: str, got: str
) -> None:
    assert preferred(("en", "fr", "ar"), chosen=chosen, accepted=accepted) == got


class Bare(HTMLParser):
    """Collects text, and attributes that are read out, that is written in a template itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found += [data.strip()] if re.search(r"[^\W\d_]{2}", data) else []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        read_out = ("aria-label", "alt", "title", "placeholder")
        self.found += [each for name, each in attrs if each and name in read_out and re.search(r"[^\W\d_]{2}", each)]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_says_anything_but_through_the_catalogue(path: Path) -> None:
    parser = Bare()
    text = re.sub(r"\{#.*?#\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    # A text in quotation marks inside an expression is an argument of `say`, or one of these words of the program.
    for expression in re.findall(r"\{\{(.*?)\}\}", text, flags=re.DOTALL):
        rest = re.sub(r'\bsay\(\s*"(?:[^"\\]|\\.)*"', "say(", expression)
        for word in re.findall(r"\"([^\"]*)\"|'([^']*)'", rest):
            said = "".join(word)
            assert re.fullmatch(r"[a-z-]*|\W*| wrong|\{.*\}|\{:.*\} %", said), f"{path.name}: {said}"
    parser.feed(re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", text, flags=re.DOTALL))
    assert parser.found == []


NAMES_OF_THINGS = re.compile(
    r"[a-z0-9#.:/_*-]*|Arrow(Down|Up|Left|Right)|Backspace|Enter|Content-Type|(input|button)[\[,].*"
)
"""Keys, selectors and names of the program: what no annotator reads."""


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_script_says_anything_but_through_the_catalogue(path: Path) -> None:
    text = without_comments(path.read_text(encoding="utf-8"))
    text = re.sub(r'\b(say|report)\(\s*"(?:[^"\\]|\\.)*"', "say(", text)  # a report goes to researchers
    text = re.sub(r'\bclass: "[^"]*"', "", text)
    text = re.sub(r'(?m)^(import|export) .*from ".*";$', "", text)
    for said in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text):
        words = re.search(r"[A-Za-z]{2,} [a-z]{2,}|^[A-Z][a-z]+$", said)
        assert words is None or NAMES_OF_THINGS.fullmatch(said), f"{path.name}: {said}"
    for said in re.findall(r"`([^`]*)`", text):
        plain = re.sub(r"\$\{[^}]*\}", "", said)
        assert not re.search(r"[A-Za-z]{2,} [a-z]{2,}", plain), f"{path.name}: {said}"


GERMAN = """
[translations.de]
title = "Tiere erkennen"
consent = "Sie sind eingeladen."
instructions = "Sie sehen Bilder."
finish = "Danke."
"Could this text show the following?" = "Könnte der Text Folgendes zeigen?"
cat = "Katze"
Yes = "Ja"
No = "Nein"
Unsure = "Unsicher"
"""


def attribute(page: str, name: str) -> str:
    found = re.search(rf'{name}="([^"]*)"', page)
    assert found is not None
    return unescape(found[1])


def test_a_project_in_two_languages_speaks_both_and_stores_one(tmp_path: Path) -> None:
    project = web_project(tmp_path, texts=["one"], more=GERMAN)
    with visited(project) as site:
        person = site.visitor()
        person.client.headers["Accept-Language"] = "de-AT,de;q=0.9"
        page = person.open("/").text
        assert '<html lang="de" dir="ltr"' in page
        assert "Sie sind eingeladen." in page
        assert "Tiere erkennen" in page
        assert 'lang="en"' in page, "the other language can be chosen"
        assert "Ja" in person.form("/consent", agreed="yes").text
        page = person.form("/instructions").text
        assert "Könnte der Text Folgendes zeigen?" in page
        told = json.loads(attribute(page, "data-project"))
        assert [each["word"] for each in told["values"]] == ["Ja", "Nein", "Unsicher"]
        assert told["told"]["cat"] == "Katze"
        assert json.loads(attribute(page, "data-words")) == language("de").scripts
        other = site.visitor()
        other.client.headers["Accept-Language"] = "de"
        other.open("/")
        assert '<html lang="en"' in other.open("/consent?language=en").text
        assert site.read("SELECT detail FROM event WHERE kind = 'language'") == [('{"language": "de"}',)]


def test_a_refusal_is_said_in_the_visitors_language(tmp_path: Path) -> None:
    with visited(web_project(tmp_path, texts=["one"], changes={"language": '"ar"'})) as site:
        person = site.visitor()
        page = person.open("/nowhere")
        assert (page.status_code, 'lang="ar" dir="rtl"' in page.text) == (404, True)
        assert language("ar").say("Not here") in page.text
        assert language("ar").say("Open the project again") in page.text, "a way on"
        assert (
            person.post("/api/next", tab="t")
            .json()["error"]
            .startswith(
                language("ar").say("Your session has ended; please open the link that brought you here again.")[:20]
            )
        )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("[translations.xx]\ntitle = 'a'\n", "'xx'"),
        ("[translations.en]\ntitle = 'a'\n", "'en'"),
        ("[translations.de]\ncatt = 'a'\n", "did you mean 'cat'"),
        ("[translations.de]\ncat = 3\n", "give a text"),
        ("[translations]\nde = 3\n", "'de'"),
    ],
)
def test_a_translation_of_nothing_is_refused(tmp_path: Path, more: str, said: str) -> None:
    project = web_project(tmp_path, texts=["one"])
    path = project.folder / "collect.toml"
    path.write_text(path.read_text() + more)
    with pytest.raises(InputError) as refused:
        read_project(project.folder)
    assert said in str(refused.value)


def test_the_set_up_names_what_is_left_in_one_language(tmp_path: Path) -> None:
    found = check_setup(web_project(tmp_path, texts=["one"], more=GERMAN))
    (left,) = [each.sentence for each in found if "translations.de" in each.sentence]
    assert "leaves 2 texts as they are, such as 'dog'" in left


def test_pages_without_a_visitor_are_in_english() -> None:
    assert '<html lang="en" dir="ltr">' in draw("researcher_enter", title="t", csrf="c", contact="", token="x")


def test_words_that_are_ours_need_no_translation_in_the_file(tmp_path: Path) -> None:
    project = make_project(tmp_path, more='[translations.ar]\na = "ألف"\nUnsure = "ربما"\n')
    told = project.told("ar")
    assert told["a"] == "ألف"
    assert told["Yes"] == language("ar").say("Yes") != "Yes"
    assert told["not at all"] == language("ar").say("not at all")
    assert told["Unsure"] == "ربما", "the file's own word comes first"
    assert project.told("en") == {}


@pytest.mark.parametrize("code", NAMES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_new_project_is_in_its_language_as_a_whole(tmp_path: Path, code: str, layout: str) -> None:
    """Nothing is left in another language, so that it can be served; half of one cannot."""
    (tmp_path / "t.csv").write_text("item,text\na,one\nb,two\n")
    path = init_project(tmp_path, texts=tmp_path / "t.csv", classes=["x", "y"], layout=layout, language=code)
    assert [check for check in check_setup(read_project(tmp_path)) if check.kind == "error"] == []
    other = "de" if code == "en" else "en"
    path.write_text(path.read_text(encoding="utf-8").replace(f'language = "{code}"', f'language = "{other}"'))
    found = [check.sentence for check in check_setup(read_project(tmp_path)) if check.kind == "error"]
    assert any("another language" in sentence for sentence in found)


def test_a_half_translated_project_is_not_served(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from dissensus_collect.cli import app

    make_project(tmp_path, more='[translations.de]\ntitle = "Was?"\n')
    refused = CliRunner().invoke(app, ["serve", str(tmp_path)])
    assert isinstance(refused.exception, InputError)
    assert "nothing is served" in str(refused.exception)
    assert not (tmp_path / "collect.sqlite").exists()
