"""The figures and tables as files: SVG, PNG and PDF; CSV, Markdown and LaTeX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import vl_convert

from dissensus.report.items import PALETTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from dissensus.report.figures import Figure, Record, Section
    from dissensus.report.tables import Table

WIDTH: Final = 560
"""Of an exported figure, in pixels."""

CONFIG: Final = {
    "background": "white",
    "view": {"stroke": None},
    "font": "sans-serif",
    "mark": {"color": PALETTE[0]},
    "rule": {"color": PALETTE[0]},
}


def export_tables(tables: Iterable[Table], folder: Path) -> None:
    """Write each table three times."""
    for table in tables:
        (folder / f"{table.slug}.csv").write_text(table.to_csv(), encoding="utf-8")
        (folder / f"{table.slug}.md").write_text(table.to_markdown(), encoding="utf-8")
        (folder / f"{table.slug}.tex").write_text(table.to_latex(), encoding="utf-8")


def export_figures(sections: Iterable[Section], folder: Path) -> None:
    """Write each figure three times; nothing is fetched from anywhere."""
    for section in sections:
        for figure in section.figures:
            svg = vl_convert.vegalite_to_svg(standalone(figure, section.data[figure.data]), allowed_base_urls=[])
            (folder / f"{figure.slug}.svg").write_text(svg, encoding="utf-8")
            (folder / f"{figure.slug}.png").write_bytes(vl_convert.svg_to_png(svg, scale=2))
            (folder / f"{figure.slug}.pdf").write_bytes(vl_convert.svg_to_pdf(svg))


def standalone(figure: Figure, rows: list[Record]) -> dict[str, Any]:
    """A spec with its data, of fixed width, without what only a pointer would see."""
    unseen = ("image", "text", "votes", "said")
    # A set that many figures share is wide; what a figure does not show would only slow its drawing.
    shown = [name for name in _fields(figure.spec) if not name.startswith(unseen)]
    data = [{name: row[name] for name in shown if name in row} for row in rows]
    spec = _without_tooltips(figure.spec)
    return {**spec, "width": WIDTH, "title": figure.title, "datasets": {**_datasets(spec), figure.data: data}} | {
        "config": CONFIG
    }


def _datasets(spec: Mapping[str, Any]) -> dict[str, Any]:
    return dict(spec.get("datasets", {}))


def _fields(spec: Any) -> set[str]:
    """The names of all fields in a spec."""
    if isinstance(spec, list):
        return set().union(*map(_fields, spec))
    if not isinstance(spec, dict):
        return set()
    own = {spec["field"]} if isinstance(spec.get("field"), str) else set()
    return own.union(*map(_fields, spec.values()))


def _without_tooltips(spec: Any) -> Any:
    if isinstance(spec, dict):
        return {key: _without_tooltips(value) for key, value in spec.items() if key != "tooltip"}
    return [_without_tooltips(each) for each in spec] if isinstance(spec, list) else spec
