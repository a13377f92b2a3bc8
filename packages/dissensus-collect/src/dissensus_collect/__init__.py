"""Collecting votes: an annotation server that gets exactly k honest votes per item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_collect.project.reading import Project as Project
    from dissensus_collect.project.reading import read_project as read_project
    from dissensus_collect.project.starting import init_project as init_project
    from dissensus_collect.results.collected import collected_votes as collected_votes
    from dissensus_collect.store.opening import open_database as open_database
    from dissensus_collect.store.opening import snapshot as snapshot

__getattr__, __dir__ = lazy_names(__name__)
