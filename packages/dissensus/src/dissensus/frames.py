"""Results as frames, and as notebooks show them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any


class Framed(ABC):
    """A result that is a table, too: its `records` are the rows of a frame, and a notebook shows it below its text."""

    @abstractmethod
    def records(self) -> Sequence[Mapping[str, Any]]:
        """The rows; a nested one is spread over columns of its own, such as `value_low`."""

    def to_polars(self) -> Any:
        """The rows as a Polars frame."""
        import polars as pl

        return pl.DataFrame([_flat(record) for record in self.records()], infer_schema_length=None, strict=False)

    def to_pandas(self) -> Any:
        """As `to_polars`, a pandas frame."""
        return self.to_polars().to_pandas()

    def _repr_html_(self) -> str:
        text = "".join(f"<p>{escape(line)}</p>" for line in repr(self).splitlines())
        return f"{text}{self.to_polars()._repr_html_()}"


def _flat(record: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """One level of names: `{"power": {"kl": 1}}` becomes `{"power_kl": 1}`; lists become text."""
    row: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            row |= _flat(value, f"{before}{name}_")
        else:
            row[f"{before}{name}"] = "; ".join(map(str, value)) if isinstance(value, list | tuple) else value
    return row
