"""A study, or votes and predictions, as one page that anybody can open: the answer in words, tables, figures.

`dissensus.report(...)` writes a report. Python binds a room's name to the room as soon as anything imports it, so the
room itself can be called: the name means the same whatever was imported before.

Examples:
    >>> import tempfile
    >>> import dissensus as dis
    >>> votes = dis.simulate_votes([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]], 4, annotators=6, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = dis.report(votes, f"{folder}/report.html", predictions=[[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]])
    ...     page.name, page.read_text(encoding="utf-8")[:15]
    ('report.html', '<!doctype html>')
"""

from __future__ import annotations

import sys
from inspect import Signature, signature
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.report.writing import write_report as write_report

__getattr__, __dir__ = lazy_names(__name__)


class _Room(ModuleType):
    def __call__(self, *given: Any, **options: Any) -> Any:
        """`write_report`, which says what the arguments are."""
        from dissensus.report.writing import write_report

        return write_report(*given, **options)

    @property
    def __signature__(self) -> Signature:
        """That of `write_report`, which notebooks show while its arguments are typed."""
        from dissensus.report.writing import write_report

        return signature(write_report)


sys.modules[__name__].__class__ = _Room
