"""A grid of runs as data, and its running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.studies.opening import OpenStudy as OpenStudy
    from dissensus.studies.opening import open_study as open_study
    from dissensus.studies.running import Plan as Plan
    from dissensus.studies.running import Shard as Shard
    from dissensus.studies.running import plan_study as plan_study
    from dissensus.studies.running import run as run
    from dissensus.studies.running import run_plan as run_plan
    from dissensus.studies.scored import ScoredStudy as ScoredStudy
    from dissensus.studies.scored import score_study as score_study
    from dissensus.studies.spec import Study as Study
    from dissensus.studies.spec import read_study as read_study
    from dissensus.studies.spec import shipped_studies as shipped_studies
    from dissensus.studies.writing import study_toml as study_toml

__getattr__, __dir__ = lazy_names(__name__)
