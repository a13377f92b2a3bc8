"""Tables as LaTeX: they fit the width of a text, say one sentence, and can be referred to."""

from __future__ import annotations

import re
from typing import Any

import pytest
from PIL import ImageFont

from dissensus.evaluation.comparison.tables import latex

POINTS = {"normalsize": 10, "small": 9, "footnotesize": 8, "scriptsize": 7}


def table(columns: int, cell: str = "0.123 [0.100, 0.146] ▲", names: list[str] | None = None) -> str:
    header = ["method", *[*(names or []), *(f"metric {k}" for k in range(columns))][:columns]]
    rows = [["majority (reference)", *[cell] * columns], ["soft", *["-"] * columns]]
    return latex(
        header, rows, caption="Scores of 100 % & more.", label="scores", notes=["what to mind", "what to mind"]
    )


def width(text: str) -> float:
    """How wide its columns are in inches, by a font that is wider than Times."""
    size = next(size for size in POINTS if rf"\{size}" in text)
    body = text.partition(r"\toprule")[2].partition(r"\bottomrule")[0].replace(r"\midrule", "")
    symbols = re.sub(r"\$\\[a-z]+\$", "m", body)
    lines = [[cell.strip() for cell in line.split("&")] for line in symbols.split(r"\\") if line.strip()]
    font = ImageFont.load_default(100)
    widest = [max(font.getlength(cell) for cell in column) / 100 for column in zip(*lines, strict=True)]
    return (sum(widest) * POINTS[size] + 12 * (len(widest) - 1)) / 72


LONG = ["TVD, corrected", "EntCE, signed, corrected", "entropy correlation (Spearman)"]


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("names", [[], LONG], ids=["short", "long"])
def test_a_table_fits_the_width_of_a_text_and_a_narrow_one_a_column(columns: int, names: list[str]) -> None:
    text = table(columns, names=names)
    # The text and the column of ACL; a table that is scaled fits by itself.
    assert "resizebox" in text or width(text) <= (455 if r"\begin{table*}" in text else 219) / 72
    assert r"\begin{table*}" in text or columns == 1


def test_the_caption_is_one_sentence_the_rest_is_a_comment_and_there_is_a_label() -> None:
    text = table(3)
    assert r"\caption{Scores of 100 \% \& more.}" in text
    assert text.count("% what to mind\n") == 1
    assert r"\label{tab:scores}" in text


def test_intervals_stand_below_their_values_where_they_must_and_marks_stay_with_the_values() -> None:
    rows: Any = table(8).partition(r"\midrule")[2].split(r"\\")
    assert "0.123 $\\bigtriangleup$" in rows[0]
    assert "[0.100, 0.146]" in rows[1]
    assert "[0.100, 0.146]" in table(2).partition(r"\midrule")[2].split(r"\\")[0]


def test_what_no_type_makes_fit_is_scaled() -> None:
    text = table(20)
    assert r"\resizebox{\textwidth}{!}{%" in text
    assert r"\end{tabular}}" in text
    assert "graphicx" in text
