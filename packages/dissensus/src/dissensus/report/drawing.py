"""A figure as SVG: drawn when the page is written, so that it needs no script, prints, and is there at once.

The same drawing lies beside the page as a file. Its colours for text and lines are those of the light page; the page's
stylesheet knows them, and swaps them in the dark.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import vl_convert

from dissensus.report.items import PALETTE

if TYPE_CHECKING:
    from re import Match

    from dissensus.report.figures import Figure, Record

WIDTH: Final = 400
"""Of the plot in a figure that shares its line, in pixels."""

WIDE: Final = 640
"""Of one that has a line for itself."""

SHARES: Final = (0.6, 0.4)
"""Of two plots beside each other."""

STACKED: Final = 400
"""Narrower than this, in pixels, two plots stand one above the other."""

LEAST: Final = 100
BESIDE: Final = 110
"""The least width of a plot, however long the names beside it are, and what these mostly take, in pixels."""

COLUMN: Final = 3.3
TEXT: Final = 6.9
"""Widths of whole drawings for a paper, in inches: a column, and the text across both; the first fits a phone too."""

INCH: Final = 96
"""Pixels."""

OPACITY: Final = 0.65
"""Of the points of a cloud."""

INK: Final = "#1d2126"
SOFT: Final = "#59616b"
LINE: Final = "#e2e3de"
"""The colours of text, of what is less important, and of lines, which the stylesheet swaps in the dark."""

CONFIG: Final[dict[str, Any]] = {
    "background": "white",
    "padding": {"left": 14, "right": 8, "top": 5, "bottom": 5},
    "view": {"stroke": None},
    # Fonts of the same widths everywhere: a drawing is measured here and shown elsewhere.
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "mark": {"color": PALETTE[0]},
    "rule": {"color": PALETTE[0]},
    "text": {"fontSize": 11},
    # Labels are cut where they are made: Vega would cut an emoji in two, and then refuse to draw it.
    "axisX": {"labelFlush": False, "labelSeparation": 6},
    "axis": {
        "labelLimit": 0,
        "labelColor": SOFT,
        "titleColor": SOFT,
        "gridColor": LINE,
        "domainColor": LINE,
        "tickColor": LINE,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    },
    "legend": {
        "labelLimit": 0,
        "labelColor": INK,
        "titleColor": SOFT,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "symbolStrokeWidth": 2,
        "symbolBaseStrokeColor": SOFT,
    },
    "title": {"color": INK, "subtitleColor": SOFT, "fontSize": 12, "anchor": "start"},
}

_ILLEGAL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff\u2028\u2029]")
_TAG: Final = re.compile(r"<[a-z][^>]*>")
_LABEL: Final = re.compile(r' aria-label="([^"]*)"')
_NOT_NEEDED: Final = re.compile(
    r' (?:role="graphics-[a-z]*"|aria-roledescription="[^"]*"|aria-hidden="[a-z]*"|pointer-events="none"'
    r'|class="(?!cloud")[^"]*"|opacity="1"|stroke-miterlimit="10"|version="1.1"|xmlns:xlink="[^"]*"|font-family="[^"]*")'
)
_EMPTY: Final = re.compile(r'<path (?:d="M0,0h0v0h0Z"|d="" display="none")/>')
_LONG: Final = re.compile(r"-?\d+\.\d{3,}")
_SYMBOL: Final = re.compile(
    r'<path[^>]*? transform="translate\((-?[\d.]+),(-?[\d.]+)\)" d="([^"]*)" fill="([^"]*)"([^>]*)/>'
)
_NAMED: Final = re.compile(r'(<[^<>]* id="|url\(#)((?:gradient|clip)[\w-]*)')
_LABEL_FIELD: Final = re.compile(r"\[datum\.value\]\.(\w+)")
_SIZE_OF: Final = re.compile(r'\b(width|height)="([\d.]+)"')
_DOT: Final = re.compile(r"^M([\d.]+),0A")


def drawn(figure: Figure, rows: list[Record], *, inches: float | None = None) -> str:
    """The figure of these data as an SVG file; nothing is fetched from anywhere.

    `inches` is how wide the whole drawing is, with the type that every drawing has; None is the width of its place on
    the page.
    """
    if inches is None:
        return _svg(standalone(figure, rows))
    plot, wide, svg = INCH * inches - BESIDE, 0.0, ""
    # What stands beside the plot is known once it is drawn. Where another plot leaves the drawing as wide as it was, a
    # legend is what is wide, and a plot that is smaller still would gain nothing.
    for _ in range(4):
        svg = _svg(standalone(figure, rows, width=plot))
        before, wide = wide, _width(svg)
        if abs(INCH * inches - wide) <= 2 or wide == before:
            break
        plot = max(plot + INCH * inches - wide, LEAST)
    return svg


def _svg(spec: dict[str, Any]) -> str:
    return vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])


def as_pdf(svg: str, *, most: float = TEXT) -> bytes:
    """A drawing as PDF, at most so many inches wide; an inch has 72 points there, and 96 pixels on a page."""
    scale = 72 * min(1 / INCH, most / _width(svg))
    return vl_convert.svg_to_pdf(_SIZE_OF.sub(lambda size: f'{size[1]}="{float(size[2]) * scale:g}"', svg, count=2))


def _width(svg: str) -> float:
    match = _SIZE_OF.search(svg)
    assert match is not None, "every drawing says how wide it is"
    return float(match[2])


def for_page(svg: str, *, slug: str, points: bool = False) -> str:
    """A drawing as it stands in a page: no more than is seen, and each mark's values in `data-tip`, for hovering.

    Names within it begin with the figure's slug, as a page has many drawings. The places of a cloud of `points` stand
    in `data-places` in the order of the data, and are drawn in few strokes: an element each would make the page heavy.
    """
    # Points first: there are thousands, and few strokes are left of them.
    text = _as_strokes(svg) if points else svg
    text = _NAMED.sub(rf"\1{slug}-\2", _TAG.sub(_slim, text))
    text = _EMPTY.sub("", text)
    text = _LONG.sub(lambda number: _short(float(number.group())), text)
    # Groups that hold nothing any more.
    for _ in range(4):
        text = re.sub(r"<g(?: [^>]*)?></g>", "", text)
    return text


def _short(number: float) -> str:
    """With two digits after the point, or fewer."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _slim(match: Match[str]) -> str:
    tag = match.group()
    seen = 'role="graphics-symbol"' in tag and not re.search(r'aria-roledescription="(?:axis|legend|title)', tag)
    tag = _LABEL.sub(lambda label: f' data-tip="{label.group(1)}"' if seen else "", tag)
    return _NOT_NEEDED.sub("", tag)


def _as_strokes(text: str) -> str:
    """Points of one colour as one path of round dots, and the places of all of them."""
    symbols = list(_SYMBOL.finditer(text))
    if not symbols:
        return text
    places = [(round(float(one.group(1))), round(float(one.group(2)))) for one in symbols]
    size = _DOT.match(symbols[0].group(3))
    across = 2 * float(_short(float(size.group(1)))) if size else 6.0
    coloured = sorted(zip((one.group(4) for one in symbols), places, strict=True))
    strokes = "".join(
        f'<path stroke="{colour}" d="{"".join(f"M{x} {y}h0" for _, (x, y) in members)}"/>'
        for colour, members in groupby(coloured, key=lambda pair: pair[0])
    )
    kept = " ".join(f"{x} {y}" for x, y in places)
    stroke = f'stroke-width="{across:g}" stroke-linecap="round"'
    cloud = f'<g class="cloud" opacity="{OPACITY:g}" {stroke} data-places="{kept}">'
    return text[: symbols[0].start()] + f"{cloud}{strokes}</g>" + text[symbols[-1].end() :]


def standalone(figure: Figure, rows: list[Record], *, width: float | None = None) -> dict[str, Any]:
    """A spec with its data, of fixed width, without what only a pointer would see; views beside each other share it."""
    unseen = ("image", "text", "votes", "said")
    # A set that many figures share is wide; what a figure does not show would only slow its drawing.
    shown = [name for name in _fields(figure.spec) if not name.startswith(unseen)]
    data = [{name: row[name] for name in shown if name in row} for row in rows]
    spec = _without_tooltips(figure.spec)
    width = width or (WIDE if figure.wide else WIDTH)
    spec = _stacked(spec) if "hconcat" in spec and width < STACKED else spec
    views = spec.get("hconcat") or spec.get("vconcat") or [spec]
    widths = [round(share * width) for share in (SHARES if "hconcat" in spec else [1.0] * len(views))]
    for view, across in zip(views, widths, strict=True):
        view["width"] = across
    # Expressions of a spec may ask how wide each of its plots is.
    plots = [{"name": f"plot{number}", "value": across} for number, across in enumerate(widths)]
    asked = {"params": plots} if "plot0" in str(spec) else {}
    # Nobody reads thousands of points one by one; what each is stands in the page beside the drawing.
    config = {**CONFIG, "aria": False} if figure.points else CONFIG
    if "vconcat" in spec:
        # A legend in one line would be wider than the plots.
        config = {**config, "legend": {**config["legend"], "columns": 1}}
    whole = {**spec, **asked, "datasets": {**spec.get("datasets", {}), figure.data: data}, "config": config}
    legal: dict[str, Any] = _legal(whole)
    return legal


def _stacked(spec: dict[str, Any]) -> dict[str, Any]:
    """The views of a spec one above the other, each with the names of the rows, which the first has."""
    first, *others = spec["hconcat"]
    axis = next(row["axis"] for layer in first["layer"] if "axis" in (row := layer.get("encoding", {}).get("y", {})))
    for view in others:
        for layer in view["layer"]:
            if "y" in layer.get("encoding", {}):
                layer["encoding"]["y"]["axis"] = axis
    return {**{key: part for key, part in spec.items() if key != "hconcat"}, "vconcat": [first, *others]}


def _legal(value: Any) -> Any:
    """The same, with every character replaced that neither XML nor a Vega expression may hold.

    The first would end the whole process, the second refuse the drawing.
    """
    if isinstance(value, str):
        return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        return {key: _legal(part) for key, part in value.items()}
    return [_legal(part) for part in value] if isinstance(value, list | tuple) else value


def _fields(spec: Any) -> set[str]:
    """The names of all fields in a spec, also of those that labels of an axis are taken from."""
    if isinstance(spec, list):
        return set().union(*map(_fields, spec))
    if not isinstance(spec, dict):
        return set()
    own = {spec["field"]} if isinstance(spec.get("field"), str) else set()
    own |= set(_LABEL_FIELD.findall(str(spec.get("labelExpr", ""))))
    return own.union(*map(_fields, spec.values()))


def _without_tooltips(spec: Any) -> Any:
    if isinstance(spec, dict):
        return {key: _without_tooltips(value) for key, value in spec.items() if key != "tooltip"}
    return [_without_tooltips(part) for part in spec] if isinstance(spec, list) else spec
