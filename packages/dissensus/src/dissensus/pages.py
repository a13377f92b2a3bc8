"""Pages of plain blocks, written as Markdown and as one HTML file that needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from dissensus.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["Block", "as_html", "as_md", "write_texts"]

STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}"
    "table{border-collapse:collapse;display:block;overflow-x:auto;font-size:.85rem}"
    "th,td{border-bottom:1px solid #ccc;padding:.3rem .6rem;text-align:left;vertical-align:top}"
    ".warning{border-left:4px solid #b45309;background:#fff7ed;padding:.5rem 1rem}"
    "svg{max-width:100%;height:auto}"
    "pre{background:#f4f4f4;padding:.5rem 1rem;overflow-x:auto}"
)


@dataclass(frozen=True)
class Block:
    """A piece of a page.

    Attributes:
        kind: title, heading, text, warning, list, table, code or figure.
        text: of all but lists and tables; of a figure, what it shows.
        rows: the entries of a list (one cell each), or the rows of a table.
        header: of a table.
        svg: of a figure.
        file: that holds the figure, for Markdown.
    """

    kind: str
    text: str = ""
    rows: Sequence[tuple[str, ...]] = ()
    header: tuple[str, ...] = ()
    svg: str = ""
    file: str = ""


def as_html(blocks: Sequence[Block], *, title: str) -> str:
    """The page as one HTML file that needs nothing else."""
    parts = []
    for block in blocks:
        if block.kind == "table":
            parts.append(html(block.header, block.rows))
        elif block.kind == "list":
            parts.append(
                f"<ul>{''.join(f'<li>{escape(row[0])}</li>' for row in block.rows)}</ul>" if block.rows else ""
            )
        elif block.kind == "figure":
            parts.append(f"<figure>{block.svg}</figure>")
        else:
            tag = {"title": "h1", "heading": "h2", "code": "pre"}.get(block.kind, "p")
            kind = ' class="warning" role="note"' if block.kind == "warning" else ""
            parts.append(f"<{tag}{kind}>{escape(block.text)}</{tag}>")
    body = "\n".join(part for part in parts if part)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def as_md(blocks: Sequence[Block]) -> str:
    """The page as Markdown."""
    parts = []
    for block in blocks:
        if block.kind == "table":
            parts.append(markdown(block.header, [[as_markdown(cell) for cell in row] for row in block.rows]))
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
    """A Markdown table; bars in cells are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def html(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table; nothing in a cell can become markup."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def write_texts(folder: Path, texts: Mapping[str, str]) -> tuple[Path, ...]:
    """The paths of texts, by file name, each written whole or not at all into a folder that is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with whole_file(folder / name) as part:
            part.write_text(text, encoding="utf-8")
    return tuple(folder / name for name in texts)
