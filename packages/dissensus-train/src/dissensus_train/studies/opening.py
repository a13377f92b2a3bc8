"""Opening a study: its data and its store are read, and nothing is written, built or chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissensus.errors import InputError, choices
from dissensus.progress import Progress, silent
from dissensus_train.studies.data import study_data
from dissensus_train.studies.spec import Study, read_study
from dissensus_train.training.run import Run, people_run, run_on
from dissensus_train.training.store import RunStore

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from dissensus_train.training.data import TrainingData

STORE: Final = "dissensus-runs"
"""The folder of runs where none is named."""


@dataclass(frozen=True, eq=False, repr=False)
class OpenStudy:
    """A study with its data, its whole grid of runs (seeds running fastest), and the store that holds those done."""

    study: Study
    data: TrainingData
    runs: tuple[Run, ...]
    store: RunStore

    def __repr__(self) -> str:
        done = len(self.runs) - len(self.waiting)
        return f"OpenStudy({self.study.name}, {done} of {len(self.runs)} runs stored in {self.store.folder})"

    @property
    def waiting(self) -> tuple[Run, ...]:
        """The runs that are not in the store now."""
        return tuple(run for run in self.runs if run not in self.store)


def open_study(study: Study | str | Path, store: str | Path = STORE, *, progress: Progress = silent) -> OpenStudy:
    """Read a study's data and see which of its runs are stored; a folder that can only be read will do.

    Args:
        study: one that has no parts; or its file, or the name of a shipped one.
        store: the folder of its runs.
        progress: called as items are encoded.

    Examples:
        >>> opened = open_study("words", "no-such-folder")
        >>> opened
        OpenStudy(words, 0 of 24 runs stored in no-such-folder)
        >>> len(opened.data.splits["test"]), opened.runs[0].model
        (1132, 'simple-ffn')
    """
    if not isinstance(study, Study):
        study = read_study(study)
    data = study_data(study, progress=progress)
    opened = OpenStudy(study, data, study_runs(study, data), RunStore(store))
    named_references(opened)
    return opened


def study_runs(study: Study, data: TrainingData) -> tuple[Run, ...]:
    """The grid of a study, seeds running fastest."""
    first = [
        run_on(
            data,
            model=model,
            target=target.name,
            delivery=method.delivery,
            options=method.options,
            seed=study.seeds[0],
            training=study.training,
        )
        for model, target, method in study.grid
    ]
    first += [
        people_run(data, model=model.name, people=model.people, seed=study.seeds[0], training=study.training)
        for model in study.annotator_models
    ]
    # Runs that differ in their seed alone share their fingerprints, which read a whole pretrained network's files.
    return tuple(replace(run, seed=seed) for run in first for seed in study.seeds)


def runs_by_system(opened: OpenStudy) -> dict[str, tuple[Run, ...]]:
    """The runs of each system, that is, of a method with its seeds; the model is named where there are several.

    Refuses a study whose runs are not all in its store.
    """
    if missing := len(opened.waiting):
        raise InputError(
            f"study {opened.study.name}: {missing:,} of {len(opened.runs):,} runs are not in {opened.store.folder}; "
            "run the study first: dissensus study run"
        )
    return systems_of(opened.runs)


def systems_of(runs: Sequence[Run]) -> dict[str, tuple[Run, ...]]:
    """The same of runs that need not be stored."""
    several_models = len({run.model for run in runs}) > 1
    # Votes one by one are what any model with people learns from; that need not be said.
    several_targets = len({run.target for run in runs if run.people is None}) > 1
    grouped: dict[str, list[Run]] = {}
    for run in runs:
        name = run.method if several_targets and run.people is None else run.method.removeprefix(f"{run.target} / ")
        grouped.setdefault(f"{run.model}: {name}" if several_models else name, []).append(run)
    return {name: tuple(runs) for name, runs in grouped.items()}


def named_references(opened: OpenStudy) -> dict[str, str]:
    """By model, the system that the study's file names as the reference; empty where it names none."""
    study, systems = opened.study, systems_of(opened.runs)
    if study.reference is None:
        return {}
    methods = {name: name.removeprefix(f"{runs[0].model}: ") for name, runs in systems.items()}
    references = {systems[name][0].model: name for name, method in methods.items() if method == study.reference}
    if not references:
        raise InputError(
            f"{study.path}: [grid] reference is '{study.reference}', which no system is called"
            f"{choices(study.reference, dict.fromkeys(methods.values()))}"
        )
    return references


@dataclass(frozen=True)
class Unasked:
    """A stored run that no known study asks for, and its bytes; the run is None where it cannot be read."""

    key: str
    run: Run | None
    size: int


def unasked_runs(store: RunStore, *, forget: Collection[str] = ()) -> tuple[Unasked, ...]:
    """Return the runs of a store that no study needs according to its current file.

    Each entry of `forget` is the file of a study. The name of a study is enough if only one file has this name.

    Raises:
        InputError: if a known study cannot be read. The runs of this study are then unknown.
    """
    known = store.studies()
    for name in forget:
        files = [file for file, names in known.items() if name in (file, *names)]
        if len(files) != 1:
            among = choices(name, files or known) if known else ""
            raise InputError(f"{store.folder}: {len(files) or 'no'} studies '{name}' keep runs here{among}")
    wanted: set[str] = set()
    for file, names in known.items():
        if file in forget or set(names) <= set(forget):
            continue
        try:
            parts = [part for part in read_study(Path(file)).parts if part.name not in forget]
            wanted |= {run.key for part in parts for run in open_study(part, store.folder).runs}
        except InputError as error:
            raise InputError(
                f"{store.folder}: the study {file} cannot be read, so its runs cannot be told from others ({error}); "
                f"put it right, or say that it no longer counts: forget={file!r}"
            ) from error
    unasked = []
    for key in store.keys():  # noqa: SIM118 - a store is no mapping
        if key not in wanted:
            try:
                run = store.load(key, dynamics=False, weights=False).run
            except InputError:
                run = None
            unasked.append(Unasked(key, run, store.size(key)))
    return tuple(unasked)
