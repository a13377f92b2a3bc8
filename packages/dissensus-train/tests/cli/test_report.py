from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
import typer
from typer.testing import CliRunner

from dissensus.cli.report import report
from dissensus.errors import InputError
from tests.study_report.studies import finished, make_study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

app = typer.Typer()
app.command()(report)


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_finished_study_becomes_a_page_and_its_path_is_printed(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    finished(tmp_path)
    out = tmp_path / "out" / "page.html"
    done = run(tmp_path / "study.toml", "--store", tmp_path / "store", "-o", out)
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(out)
    assert "page-files" in done.stderr
    assert "closer to people than majority" in out.read_text(encoding="utf-8")


def test_a_store_that_is_not_there_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run the study first"):
        run(make_study(tmp_path), "--store", tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def predictions(path: Path, *, weight: float) -> Path:
    """Predictions of 20 items over two classes, the nearer to their votes the more weight."""
    rows = ["item,yes,no"]
    for n in range(20):
        share = weight * (n % 5) / 4 + (1 - weight) * 0.5
        rows.append(f"{n},{0.98 * share + 0.01},{0.99 - 0.98 * share}")
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def votes(path: Path) -> Path:
    """Four votes each of 20 items: n modulo 5 of them say yes."""
    rows = ["item,annotator,label"]
    rows += [f"{n},{who},{'yes' if who < n % 5 else 'no'}" for n in range(20) for who in range(4)]
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def test_votes_and_predictions_become_the_same_page(tmp_path: Path) -> None:
    far, near = (predictions(tmp_path / f"{name}.csv", weight=w) for name, w in (("far", 0.1), ("near", 0.9)))
    texts = tmp_path / "texts.csv"
    texts.write_text("item,text\n" + "\n".join(f"{n},the <b>text</b> of {n}" for n in range(20)), encoding="utf-8")
    out = tmp_path / "page.html"
    done = run(
        *("--votes", votes(tmp_path / "votes.csv"), "--predictions", far, "--compare", near),
        *("--texts", texts, "--resamples", 50, "-o", out),
    )
    assert done.exit_code == 0, done.output
    page = out.read_text(encoding="utf-8")
    assert "<h1>Is near closer to people than far?</h1>" in page
    assert "<p>Yes, for this one run: near comes closer to people than far" in page
    assert "the &lt;b&gt;text&lt;/b&gt; of 2" in page
    assert (tmp_path / "page-files" / "comparison-all.csv").is_file()
    assert f"--compare {near}" in page


PANELS: dict[str, tuple[Callable[[int, int], bool], int, int]] = {
    "always agree": (lambda item, who: item % 2 == 0, 20, 4),
    "all votes alike": (lambda item, who: True, 20, 4),
    "4 by 3, balanced": (lambda item, who: (item % 3 == who) ^ (item > 1), 4, 3),
    "12 by 3, balanced": (lambda item, who: item % 3 == who, 12, 3),
    "one annotator": (lambda item, who: item % 2 == 0, 20, 1),
    "two annotators": (lambda item, who: (item + who) % 3 == 0, 20, 2),
}
"""By name, whether a person says yes to an item, and how many items and people there are."""


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_that_tells_nobody_apart_has_a_page_without_a_map(name: str, tmp_path: Path) -> None:
    says_yes, items, people = PANELS[name]
    rows = [f"{n},{who},{'yes' if says_yes(n, who) else 'no'}" for n in range(items) for who in range(people)]
    said = tmp_path / "votes.csv"
    said.write_text("\n".join(["item,annotator,label", *rows]), encoding="utf-8")
    model = tmp_path / "model.csv"
    model.write_text("item,yes,no\n" + "\n".join(f"{n},0.6,0.4" for n in range(items)), encoding="utf-8")
    out = tmp_path / "page.html"
    done = run("--votes", said, "--predictions", model, "--classes", "yes,no", "--resamples", 20, "-o", out)
    assert done.exit_code == 0, done.output
    page = out.read_text(encoding="utf-8")
    assert "No map of annotators: " in page or "there is no map to draw" in page
    assert "annotators by what they answer" not in page


def test_the_page_says_what_answers_name_no_class(tmp_path: Path) -> None:
    said = tmp_path / "said.csv"
    said.write_text(
        "item,answer\n" + "\n".join(f"{n},{'Yes.' if n % 4 else 'hm'}" for n in range(20)), encoding="utf-8"
    )
    out = tmp_path / "page.html"
    run(*("--votes", votes(tmp_path / "votes.csv"), "--predictions", said, "--resamples", 20, "-o", out))
    page = out.read_text(encoding="utf-8")
    assert "5 of 20 answers (25.0%) name no class, first &#39;hm&#39; about item 0" in page
    assert "said gives 25.0% of its probability to classes that nobody voted for ((no class))" in page


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "a study .* or about files"),
        (["words", "--votes", "words"], r"not used with STUDY\|STORE: --votes"),
        (["words", "--texts", "texts.csv"], r"not used with STUDY\|STORE: --texts"),
        (["--votes", "words", "--store", "runs"], r"not used without STUDY\|STORE: --store"),
        (["--votes", "words"], "needs --predictions"),
    ],
)
def test_a_page_is_about_a_study_or_about_files(given: list[str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        run(*given)
