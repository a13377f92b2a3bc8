"""A study, or votes and predictions, as one page that anybody can open: the answer in words, tables, figures.

`dissensus.report(...)` writes a report. Python binds a room's name to the room as soon as anything imports it, so the
room itself can be called: the name means the same whatever was imported before.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.report.writing import write_report as write_report

__getattr__, __dir__ = lazy_names(__name__, {"write_report": "writing"})


class _Room(ModuleType):
    def __call__(self, *given: Any, **options: Any) -> Any:
        """`write_report`, which says what the arguments are."""
        from dissensus.report.writing import write_report

        return write_report(*given, **options)


sys.modules[__name__].__class__ = _Room
