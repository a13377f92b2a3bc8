"""A grid of runs as data, and its running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_train.studies.opening import OpenStudy as OpenStudy
    from dissensus_train.studies.opening import open_study as open_study
    from dissensus_train.studies.running import Shard as Shard
    from dissensus_train.studies.running import StudyPlan as StudyPlan
    from dissensus_train.studies.running import plan_study as plan_study
    from dissensus_train.studies.running import run as run
    from dissensus_train.studies.running import run_plan as run_plan
    from dissensus_train.studies.scored import ScoredStudy as ScoredStudy
    from dissensus_train.studies.scored import score_study as score_study
    from dissensus_train.studies.spec import Study as Study
    from dissensus_train.studies.spec import read_study as read_study
    from dissensus_train.studies.spec import shipped_studies as shipped_studies
    from dissensus_train.studies.writing import study_toml as study_toml

__getattr__, __dir__ = lazy_names(__name__)
