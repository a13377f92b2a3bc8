"""Pages of plain blocks, written as Markdown and as one HTML file that needs nothing else; Markdown of templates."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError
from dissensus.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from jinja2 import Environment

__all__ = ["Block", "Drawing", "as_html", "as_md", "write_texts"]

STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}"
    "table{border-collapse:collapse;display:block;overflow-x:auto;font-size:.85rem}"
    "th,td{border-bottom:1px solid #ccc;padding:.3rem .6rem;text-align:left;vertical-align:top}"
    ".warning{border-left:4px solid #b45309;background:#fff7ed;padding:.5rem 1rem}"
    "svg{max-width:100%;height:auto}figure{margin:1rem 0;overflow-x:auto}figure svg{min-width:34rem}"
    "details{margin:.6rem 0}summary{cursor:pointer;font-weight:600}"
    "@media(max-width:40rem){.cards thead{display:none}"
    ".cards tr{display:block;padding:.6rem 0;border-bottom:1px solid #ccc}"
    ".cards td{display:block;border:0;padding:.1rem 0}.cards td[data-column]:before{content:attr(data-column) ': '}}"
    ".cards td:first-child{font-weight:600}.cards svg{max-width:none}.cards td:nth-child(4){white-space:nowrap}"
    "pre{background:#f4f4f4;padding:.5rem 1rem;overflow-x:auto}"
)


class Drawing(str):
    """A cell of a table that is an SVG of ours; in Markdown it is left empty, as the cells beside it say the same."""

    __slots__ = ()


@dataclass(frozen=True)
class Block:
    """A piece of a page.

    Attributes:
        kind: title, heading, text, warning, list, table, code, figure, cards (a table whose rows stand below each other
            where a page is narrow) or fold (what is shown when its text is clicked on).
        text: of all but lists and tables; of a figure, what it shows.
        rows: the entries of a list (one cell each), or the rows of a table.
        header: of a table.
        svg: of a figure.
        file: that holds the figure, for Markdown.
        inside: the blocks of a fold.
    """

    kind: str
    text: str = ""
    rows: Sequence[tuple[str, ...]] = ()
    header: tuple[str, ...] = ()
    svg: str = ""
    file: str = ""
    inside: Sequence[Block] = ()


def as_html(blocks: Sequence[Block], *, title: str) -> str:
    """The page as one HTML file that needs nothing else."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head>\n<body><main>\n{_body(blocks)}\n</main></body></html>\n"
    )


def _body(blocks: Sequence[Block]) -> str:
    parts = []
    for block in blocks:
        if block.kind in ("table", "cards"):
            parts.append(html(block.header, block.rows, kind=block.kind))
        elif block.kind == "fold":
            parts.append(f"<details><summary>{escape(block.text)}</summary>\n{_body(block.inside)}\n</details>")
        elif block.kind == "list":
            parts.append(
                f"<ul>{''.join(f'<li>{escape(row[0])}</li>' for row in block.rows)}</ul>" if block.rows else ""
            )
        elif block.kind == "figure":
            parts.append(f'<figure tabindex="0">{block.svg}</figure>')
        else:
            tag = {"title": "h1", "heading": "h2", "code": "pre"}.get(block.kind, "p")
            kind = ' class="warning" role="note"' if block.kind == "warning" else ""
            parts.append(f"<{tag}{kind}>{escape(block.text)}</{tag}>")
    return "\n".join(part for part in parts if part)


def as_md(blocks: Sequence[Block]) -> str:
    """The page as Markdown."""
    parts = []
    for block in blocks:
        if block.kind in ("table", "cards"):
            first = block.rows[0] if block.rows else block.header
            keep = [index for index, cell in enumerate(first) if not isinstance(cell, Drawing)]
            rows = [[row[index] for index in keep] for row in block.rows]
            parts.append(markdown([block.header[index] for index in keep], rows))
        elif block.kind == "fold":
            parts.append(f"### {as_markdown(block.text)}\n\n{as_md(block.inside).rstrip()}")
        elif block.kind == "list":
            parts.append("\n".join(f"- {as_markdown(row[0])}" for row in block.rows))
        elif block.kind == "code":
            parts.append(f"```\n{block.text}\n```")
        elif block.kind == "figure":
            parts.append(f"![{as_markdown(block.text)}]({block.file})")
        else:
            shape = {"title": "# {}", "heading": "## {}", "warning": "**{}**"}.get(block.kind, "{}")
            parts.append(shape.format(as_markdown(block.text)))
    return "\n\n".join(part for part in parts if part) + "\n"


def as_markdown(text: str) -> str:
    """Text on one line, in which nothing is markup."""
    escaped = " ".join(text.split()).replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;")
    for mark in "`*_[]#":
        escaped = escaped.replace(mark, f"\\{mark}")
    return escaped


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, with markup in cells escaped."""
    lines = [[as_markdown(cell).replace("|", r"\|") for cell in line] for line in (header, *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], ["---"] * len(header), *lines[1:]))


def filled(
    package: str, template: str, *, filters: Mapping[str, Callable[..., str]] | None = None, **words: Any
) -> str:
    """A template of Markdown that lies in a package, with its words filled in; one that is lacking is an error."""
    markdown_of = templates(package, autoescape=False, keep_trailing_newline=True)
    markdown_of.filters |= filters or {}
    return markdown_of.get_template(template).render(words)


def templates(package: str, **options: Any) -> Environment:
    """Where the templates of a package are found; a word that is lacking is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: few pages need it

    loader = PackageLoader(package, "")
    return Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **options)


def html(header: Sequence[str], rows: Iterable[Sequence[str]], *, kind: str = "table") -> str:
    """An HTML table; nothing in a cell can become markup, but for a `Drawing`. Cells of cards know their column."""
    named = kind == "cards"
    opening = [f'<td data-column="{escape(name)}">' if named and name else "<td>" for name in header]
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = ""
    for row in rows:
        cells = (cell if isinstance(cell, Drawing) else escape(cell) for cell in row)
        body += f"<tr>{''.join(f'{td}{cell}</td>' for td, cell in zip(opening, cells, strict=True))}</tr>"
    about = ' class="cards"' if named else ""
    return f"<table{about}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def write_texts(folder: Path, texts: Mapping[str, str]) -> tuple[Path, ...]:
    """The paths of texts, by file name, each written whole or not at all into a folder that is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in (folder / name for name in texts):
        if path.is_dir():
            raise InputError(f"{path}: it is a folder, and a file of this name is to be written; give another place")
    for name, text in texts.items():
        with whole_file(folder / name) as part:
            part.write_text(text, encoding="utf-8")
    return tuple(folder / name for name in texts)
