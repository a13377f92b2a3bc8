"""The figures and tables as files: SVG, PNG and PDF; CSV, Markdown and LaTeX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import vl_convert

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from dissensus.report.tables import Table


def export_tables(tables: Iterable[Table], folder: Path) -> None:
    """Write each table three times."""
    for table in tables:
        (folder / f"{table.slug}.csv").write_text(table.to_csv(), encoding="utf-8")
        (folder / f"{table.slug}.md").write_text(table.to_markdown(), encoding="utf-8")
        (folder / f"{table.slug}.tex").write_text(table.to_latex(), encoding="utf-8")


def export_figures(drawings: Mapping[str, str], folder: Path) -> None:
    """Write each drawing, an SVG, three times."""
    for slug, svg in drawings.items():
        (folder / f"{slug}.svg").write_text(svg, encoding="utf-8")
        (folder / f"{slug}.png").write_bytes(vl_convert.svg_to_png(svg, scale=2))
        (folder / f"{slug}.pdf").write_bytes(vl_convert.svg_to_pdf(svg))
