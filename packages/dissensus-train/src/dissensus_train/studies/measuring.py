"""What is measured of a study's runs after their training; what is in the store already is not measured again."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.errors import InputError
from dissensus.progress import Over, Progress, Step, silent
from dissensus_train.basins import (
    Basin,
    BasinPair,
    BasinSettings,
    ExplanationStability,
    compare_basins,
    compare_explanations,
    measure_basins,
)
from dissensus_train.basins.measuring import chosen_items
from dissensus_train.basins.summary import mean_over_pairs
from dissensus_train.ood import OodResult, OodSettings, measure_ood
from dissensus_train.studies.opening import OpenStudy, named_references, runs_by_system
from dissensus_train.training.engine import settled_device
from dissensus_train.training.store import measurement_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dissensus.arrays import Ints
    from dissensus.bootstrap import Estimate
    from dissensus_train.basins.last_layer import Similarity
    from dissensus_train.basins.surfaces import LossBarrier
    from dissensus_train.training.data import TrainingData
    from dissensus_train.training.run import Run, RunResult

BASINS = "basins"
PAIRS = "basin-pairs"
EXPLANATIONS = "explanations"
OOD = "ood"


@dataclass(frozen=True, kw_only=True)
class SystemPairs:
    """Runs of two systems with the same seeds, or all pairs of seeds of one system; and the seeds of each pair."""

    first: str
    second: str
    seeds: tuple[tuple[int, int], ...]
    pairs: tuple[BasinPair, ...]

    @property
    def name(self) -> str:
        """Which runs they are."""
        return f"{self.first}, all pairs of seeds" if self.first == self.second else f"{self.first} and {self.second}"

    @property
    def barrier(self) -> Estimate:
        """The mean loss barrier, with an interval over items and seeds."""
        return self._mean([pair.barrier for pair in self.pairs], high=float("inf"))

    @property
    def aligned(self) -> Estimate | None:
        """The same once hidden units are in one order; None where the network's cannot be put in one."""
        barriers = [pair.aligned for pair in self.pairs if pair.aligned is not None]
        return self._mean(barriers, high=float("inf")) if len(barriers) == len(self.pairs) else None

    @property
    def cka(self) -> Estimate:
        """The mean CKA, with an interval over items and seeds."""
        return self._mean([pair.similarity for pair in self.pairs], high=1.0)

    def _mean(self, measured: Sequence[LossBarrier | Similarity], *, high: float) -> Estimate:
        values, errors = np.array([(of_pair.value, of_pair.error) for of_pair in measured]).T
        # All pairs see the same items, so their errors do not average out.
        items = self.pairs[0].barrier.measured_on.items
        variance = float(np.nan_to_num(errors).mean()) ** 2
        return mean_over_pairs(values, self.seeds, item_variance=variance, items=items, low=0.0, high=high)


@dataclass(frozen=True, kw_only=True)
class StudyBasins:
    """The basins of a study.

    Attributes:
        reference: the system that others are compared with: the one that the study names, or its first.
        systems: by name, one basin per seed.
        pairs: the reference with each other system of its model, and every system with itself.
        explanations: by system of two seeds or more, how stable its explanations are; empty where not asked for.
        shown: rows of the items whose explanations are kept, in the study's data.
    """

    reference: str
    systems: Mapping[str, tuple[Basin, ...]]
    pairs: tuple[SystemPairs, ...]
    explanations: Mapping[str, ExplanationStability]
    shown: Ints


def study_basins(
    opened: OpenStudy,
    settings: BasinSettings | None = None,
    *,
    device: str = "cpu",
    over: Over = map,
    progress: Progress = silent,
) -> StudyBasins:
    """The basin of every run of a study and of runs two by two, each measured once and kept in its store.

    Args:
        opened: a study whose runs are all in its store.
        settings: what to measure; the study's own `[basins]` if not given.
        device: what to measure on.
        over: what calls a function on each of many jobs, here systems and pairs of runs; one that shares them among
            machines takes the place of `map`.
        progress: called with how many measurements are there and how many there will be.

    Raises:
        InputError: where the study asks for none and no settings are given, or a run has no weights.
    """
    chosen = settings or opened.study.basins
    if chosen is None:
        raise InputError(f"study {opened.study.name}: it has no [basins] table; add one, or use dissensus basins")
    asked = _asked(_reference_first(opened), chosen)
    kept = _kept(opened, asked)
    total, done = len(kept), sum(value is not None for value in kept.values())
    progress(Step("basins", done, total))
    for kind, groups in asked.items():
        unmeasured = [{key: runs for key, runs in group.items() if kept[key] is None} for group in groups.values()]
        alone = [{key: runs} for group in unmeasured for key, runs in group.items()]
        missing = alone if kind == PAIRS else list(filter(None, unmeasured))
        loaded = (
            [opened.store.load(run.key, dynamics=False) for runs in group.values() for run in runs] for group in missing
        )
        made = over(partial(_measured, kind, opened.data, chosen, device), loaded)
        for group, results in zip(missing, made, strict=True):
            for key, result in zip(group, results, strict=True):
                kept[key] = value = result.to_dict()
                opened.store.keep_measurement(kind, key, value)
                done += 1
                progress(Step("basins", done, total))
    basins = _of_kept(opened, chosen, asked, kept)
    assert basins is not None, "everything is measured"
    return basins


def stored_basins(opened: OpenStudy) -> StudyBasins | None:
    """What its store has of the basins that a study asks for; None where it asks for none or has none.

    A system, a pair of systems, or a system's explanations is there with all of its seeds, or not at all.
    """
    chosen = opened.study.basins
    if chosen is None:
        return None
    asked = _asked(_reference_first(opened), chosen)
    return _of_kept(opened, chosen, asked, _kept(opened, asked))


Asked = dict[str, dict[tuple[str, ...], dict[str, tuple["Run", ...]]]]
"""By kind of measurement and by the systems that it is of, the runs that each is of, by its key in the store."""


def _asked(systems: Mapping[str, tuple[Run, ...]], settings: BasinSettings) -> Asked:
    """What is to be measured; explanations of systems of two seeds or more, where that is asked for."""
    several = {name: runs for name, runs in systems.items() if settings.explanations and len(runs) > 1}
    return {
        BASINS: {(name,): {_basin_key((run,), settings): (run,) for run in runs} for name, runs in systems.items()},
        PAIRS: {of: {_basin_key(pair, settings): pair for pair in pairs} for of, pairs in _matched(systems).items()},
        EXPLANATIONS: {
            (name,): {measurement_key([run.key for run in runs], asdict(settings)): runs}
            for name, runs in several.items()
        },
    }


def _kept(opened: OpenStudy, asked: Asked) -> dict[str, dict[str, Any] | None]:
    """By key, what the store has of each measurement."""
    keys = ((kind, key) for kind, groups in asked.items() for group in groups.values() for key in group)
    return {key: opened.store.measurement(kind, key) for kind, key in keys}


def _measured(
    kind: str, data: TrainingData, settings: BasinSettings, device: str, results: Sequence[RunResult]
) -> Iterable[Basin | BasinPair | ExplanationStability]:
    """Measurements of one kind: the basin of each run as it is measured, or one of all runs together."""
    place = settled_device(device)
    if kind == BASINS:
        return measure_basins(results, data, settings=settings, device=place)
    if kind == PAIRS:
        return compare_basins([(results[0], results[1])], data, settings=settings, device=place)
    return [compare_explanations(results, data, settings=settings, device=place)]


def _of_kept(
    opened: OpenStudy, settings: BasinSettings, asked: Asked, kept: Mapping[str, dict[str, Any] | None]
) -> StudyBasins | None:
    """The basins of a study as far as all seeds of a system or pair were measured; None where nothing is whole."""

    def whole(kind: str) -> dict[tuple[str, ...], list[Any]]:
        values = {of: [kept[key] for key in group] for of, group in asked[kind].items()}
        return {of: measured for of, measured in values.items() if measured and None not in measured}

    basins = whole(BASINS)
    if not basins:
        return None
    pairs = [
        SystemPairs(
            first=of[0],
            second=of[1],
            seeds=tuple((one.seed, other.seed) for one, other in asked[PAIRS][of].values()),
            pairs=tuple(map(BasinPair.from_dict, values)),
        )
        for of, values in whole(PAIRS).items()
    ]
    explanations = {name: ExplanationStability.from_dict(value) for (name,), (value,) in whole(EXPLANATIONS).items()}
    shown = next((maps.examples for maps in explanations.values()), np.empty(0, dtype=np.int64))
    return StudyBasins(
        reference=next(iter(basins))[0],
        systems={name: tuple(map(Basin.from_dict, values)) for (name,), values in basins.items()},
        pairs=tuple(pairs),
        explanations=explanations,
        shown=chosen_items(opened.data, settings)[0][shown] if len(shown) else shown,
    )


def _reference_first(opened: OpenStudy) -> dict[str, tuple[Run, ...]]:
    """The runs of each system, those of the references that the study names before the others."""
    systems, named = runs_by_system(opened), set(named_references(opened).values())
    return {name: systems[name] for name in sorted(systems, key=lambda name: name not in named)}


def _basin_key(runs: Sequence[Run], settings: BasinSettings) -> str:
    """Of a run or a pair: asking for explanations does not measure those again."""
    of_runs = {name: value for name, value in asdict(settings).items() if name != "explanations"}
    # What a pair says has grown: one stored without its alignment, or with other batch statistics, is measured again.
    return measurement_key(*(run.key for run in runs), of_runs, *(["aligned, anew"] if len(runs) == 2 else []))


def _matched(systems: Mapping[str, Sequence[Run]]) -> dict[tuple[str, ...], list[tuple[Run, ...]]]:
    """Systems two by two with their runs: a model's first and each other by seed; each with itself, all pairs."""
    firsts: dict[str, str] = {}
    matched: dict[tuple[str, ...], list[tuple[Run, ...]]] = {}
    for name, runs in systems.items():
        first = firsts.setdefault(runs[0].network, name)
        if first != name:
            by_seed = {run.seed: run for run in systems[first]}
            matched[first, name] = [(by_seed[run.seed], run) for run in runs if run.seed in by_seed]
    return matched | {(name, name): list(combinations(runs, 2)) for name, runs in systems.items() if len(runs) > 1}


def study_ood(opened: OpenStudy, settings: OodSettings | None = None, *, device: str = "cpu") -> OodResult:
    """How well each system of a study tells out-of-distribution items from held-out ones, measured once and kept.

    What is measured is the study's own `[ood]`, unless settings are given.

    Raises:
        InputError: where the study asks for none and no settings are given, or a run has no weights.
    """
    chosen = settings or opened.study.ood
    if chosen is None:
        raise InputError(
            f"study {opened.study.name}: no out-of-distribution sets; give ood=PATH, or an [ood] table in its file"
        )
    systems = _reference_first(opened)
    key = _ood_key(systems, chosen)
    if (kept := opened.store.measurement(OOD, key)) is not None:
        return OodResult.from_dict(kept)
    result = measure_ood(
        {name: (opened.store.load(run.key, dynamics=False) for run in runs) for name, runs in systems.items()},
        opened.data,
        chosen,
        split=opened.data.held_out,
        device=settled_device(device),
    )
    opened.store.keep_measurement(OOD, key, result.to_dict())
    return result


def stored_ood(opened: OpenStudy) -> OodResult | None:
    """The OOD detection that a study asks for, from its store; None where it asks for none or it is not there."""
    chosen = opened.study.ood
    if chosen is None:
        return None
    kept = opened.store.measurement(OOD, _ood_key(_reference_first(opened), chosen))
    return None if kept is None else OodResult.from_dict(kept)


def _ood_key(systems: Mapping[str, Sequence[Run]], settings: OodSettings) -> str:
    # By what the files hold, not where they lie: a store that is carried to another machine keeps what was measured.
    sets = {name: _fingerprint(Path(path)) for name, path in settings.sets.items()}
    return measurement_key(
        {name: [run.key for run in runs] for name, runs in systems.items()}, {**asdict(settings), "sets": sets}
    )


def _fingerprint(path: Path) -> str:
    """Return a hash of the bytes of a file, or of the relative names and bytes of all files in a folder."""
    digest = hashlib.sha256()
    for file in sorted(file for file in (path, *path.rglob("*")) if file.is_file()):
        with file.open("rb") as opened:
            digest.update(file.relative_to(path).as_posix().encode() + hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()[:16]
