"""Collecting votes: an annotation server that gets exactly k honest votes per item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_collect.database import open_database as open_database
    from dissensus_collect.project import Project as Project
    from dissensus_collect.project import init_project as init_project
    from dissensus_collect.project import read_project as read_project

__getattr__, __dir__ = lazy_names(__name__)
