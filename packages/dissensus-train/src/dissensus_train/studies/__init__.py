"""A grid of runs as data, and its running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_train.studies.labelled import LabelledItems as LabelledItems
    from dissensus_train.studies.labelled_sets import LABELLED_SETS as LABELLED_SETS
    from dissensus_train.studies.measuring import StudyBasins as StudyBasins
    from dissensus_train.studies.measuring import stored_basins as stored_basins
    from dissensus_train.studies.measuring import stored_ood as stored_ood
    from dissensus_train.studies.measuring import study_basins as study_basins
    from dissensus_train.studies.measuring import study_ood as study_ood
    from dissensus_train.studies.mode_audit import mode_shift as mode_shift
    from dissensus_train.studies.opening import OpenStudy as OpenStudy
    from dissensus_train.studies.opening import open_study as open_study
    from dissensus_train.studies.opening import runs_by_system as runs_by_system
    from dissensus_train.studies.opening import systems_of as systems_of
    from dissensus_train.studies.original import Audit as Audit
    from dissensus_train.studies.original import mode_shift_audit as mode_shift_audit
    from dissensus_train.studies.original import scores_against as scores_against
    from dissensus_train.studies.running import Shard as Shard
    from dissensus_train.studies.running import StudyPlan as StudyPlan
    from dissensus_train.studies.running import plan_study as plan_study
    from dissensus_train.studies.running import run as run
    from dissensus_train.studies.running import run_plan as run_plan
    from dissensus_train.studies.scored import ScoredStudy as ScoredStudy
    from dissensus_train.studies.scored import score_folds as score_folds
    from dissensus_train.studies.scored import score_study as score_study
    from dissensus_train.studies.spec import Study as Study
    from dissensus_train.studies.spec import read_study as read_study
    from dissensus_train.studies.spec import shipped_studies as shipped_studies
    from dissensus_train.studies.writing import study_toml as study_toml
    from dissensus_train.studies.writing import toml_text as toml_text

__getattr__, __dir__ = lazy_names(__name__)
