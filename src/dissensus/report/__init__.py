"""A study as one page that anybody can open: the answer in words, tables, figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.report.writing import write_report as write_report

__getattr__, __dir__ = lazy_names(__name__, {"write_report": "writing"})
