"""Tables of many rows as a researcher asks for them: some of the rows, found by name, sorted, in pages."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Row = TypeVar("Row")


@dataclass(frozen=True, kw_only=True)
class LongList(Generic[Row]):
    """What can be asked of a table.

    Attributes:
        name: the attribute by which a row is found.
        filters: by its name in the address, the words for a part of the rows, and which they are; the first is shown
            if none is asked for.
        columns: by attribute, the words for what rows are sorted by, and whether the largest comes first at the first
            click; the first is the order if none is asked for.
        most: rows on a page.
    """

    name: str
    filters: Mapping[str, tuple[str, Callable[[Row], bool]]]
    columns: Mapping[str, tuple[str, bool]]
    most: int

    def listed(self, rows: Sequence[Row], query: Mapping[str, str]) -> Any:
        """The rows that the parameters `show`, `find`, `sort`, `down` and `page` of an address ask for.

        For templates: the `rows` of one page, all that were `chosen`, and what was asked for.
        """
        show, sort = query.get("show", ""), query.get("sort", "")
        show = show if show in self.filters else next(iter(self.filters))
        falling = query.get("down") == "1" if sort in self.columns else next(iter(self.columns.values()))[1]
        sort = sort if sort in self.columns else next(iter(self.columns))
        find, page = query.get("find", "").strip()[:50], query.get("page", "1")
        fits = self.filters[show][1]
        chosen = [row for row in rows if fits(row) and find.lower() in str(getattr(row, self.name)).lower()]
        chosen = in_order(chosen, sort, falling=falling)
        last = max(1, -(-len(chosen) // self.most))
        number = min(int(page), last) if page.isascii() and page.isdigit() and len(page) < 8 else 1
        number = max(1, number)
        return SimpleNamespace(
            rows=chosen[(number - 1) * self.most : number * self.most],
            chosen=chosen,
            filters=[(name, words, sum(map(each, rows))) for name, (words, each) in self.filters.items()],
            columns=[(name, words, first) for name, (words, first) in self.columns.items()],
            show=show,
            sort=sort,
            falling=falling,
            find=find,
            page=number,
            last=last,
        )


def in_order(rows: Iterable[Row], column: str, *, falling: bool) -> list[Row]:
    """Rows by an attribute, or by how many it holds; those of which it is not known come last either way."""

    def value(row: Row) -> Any:
        found = getattr(row, column)
        return len(found) if isinstance(found, tuple) else found

    known, unknown = list[Row](), list[Row]()
    for row in rows:
        (unknown if value(row) is None else known).append(row)
    return [*sorted(known, key=value, reverse=falling), *unknown]
