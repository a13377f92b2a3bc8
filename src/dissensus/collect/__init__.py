"""Collecting votes: an annotation server that gets exactly k honest votes per item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.collect.database import open_database as open_database
    from dissensus.collect.study import CollectStudy as CollectStudy
    from dissensus.collect.study import init_collect_study as init_collect_study
    from dissensus.collect.study import read_collect_study as read_collect_study

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "CollectStudy": "study",
        "init_collect_study": "study",
        "open_database": "database",
        "read_collect_study": "study",
    },
)
