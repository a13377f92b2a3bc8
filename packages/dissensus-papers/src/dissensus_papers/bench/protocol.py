"""The protocol of the benchmark as data, and the study files that it stands for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec.structs import replace

from dissensus.errors import InputError, choices
from dissensus.evaluation import METRICS
from dissensus.toml_file import TableError, TomlFile, TomlTable, no_such
from dissensus_papers.papers.running import BASELINES
from dissensus_papers.papers.summary import FILES
from dissensus_train.studies import read_study, toml_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus_train.studies import Study

ORDERED, REPLACED = "rps", "soft_nll"
"""What methods are ranked by where classes are a scale, and what it takes the place of: no other metric."""

WITH: Final = "--"
"""Between set and method in the name of a study of one method."""

NAMES: Final = re.compile(rf"(?!.*{WITH})\w([\w.+ -]{{0,48}}\w)?")
"""Of systems and sets, which are names of files: 50 letters of any alphabet fit every disk."""

Counted = Annotated[int, msgspec.Meta(ge=1)]


class ItemKind(TomlTable):
    """What items of one kind are learnt by.

    Attributes:
        model: the network.
        training: of a study file.
        seeds: how many.
        encoder: what makes features; empty where the set brings them.
        quick: what `--quick` changes; None leaves sets of the kind out.
        leave_out: deliveries and models that would take too long.
        modality: what items are, for the filters of the leaderboard.
        encoder_is: which revision of the encoder, in words.
        apart: the title of a comparison of these sets alone, which are then in no other: methods that they leave out
            would be ranked nowhere. Empty compares them with the other sets.
    """

    model: str
    training: dict[str, Any]
    seeds: Counted
    encoder: str = ""
    quick: dict[str, Any] | None = None
    leave_out: tuple[str, ...] = ()
    modality: str = "text"
    encoder_is: str = ""
    apart: str = ""


class BenchSet(TomlTable, kw_only=True):
    """One set of votes.

    Attributes:
        name: in tables.
        kind: of its items.
        dataset: of a study file.
        splits: shares or folds, or `official`.
        votes: how many votes per item runs are trained on, where the others are left out; 0 for all.
        training: what differs from the kind's.
        people: whether it says who cast a vote.
        quick: whether `--quick` runs it, where its kind allows.
        leave_out: deliveries and models, beside those that its kind leaves out.
        ordered: whether its classes are a scale; methods are then ranked on it by the ranked probability score, where
            the protocol says soft NLL.
        language: of its items.
        licence: of its votes, as their authors state it.
    """

    name: str
    kind: str
    dataset: dict[str, Any]
    splits: dict[str, Any] | str
    votes: int = 0
    training: dict[str, Any] = msgspec.field(default_factory=dict)
    people: bool = False
    quick: bool = True
    leave_out: tuple[str, ...] = ()
    ordered: bool = False
    language: str = ""
    licence: str = ""


class Comparing(TomlTable):
    """How methods are compared over sets; `ranking` says why.

    Attributes:
        metric: that methods are ranked by.
        others: metrics whose mean ranks are shown beside.
        test: the comparison over sets.
        beside: the comparison with the best method that stands beside it.
        alpha: the level of the comparison.
        few: votes are few below this number per item.
        least_sets: a comparison of fewer sets is called thin.
    """

    metric: str = "soft_nll"
    others: tuple[str, ...] = ()
    test: Literal["friedman-nemenyi"] = "friedman-nemenyi"
    beside: Literal["wilcoxon-holm"] = "wilcoxon-holm"
    alpha: float = 0.05
    few: Counted = 10
    least_sets: Counted = 6

    def __post_init__(self) -> None:
        for name in (self.metric, *self.others):
            if name not in METRICS:
                raise no_such("metric" if name == self.metric else "others", name, METRICS)
            if METRICS[name].better == "zero":
                where = "metric" if name == self.metric else "others"
                raise TableError(where, f"has '{name}', whose sign says too sure or too unsure, not which is better")
        if not 0 < self.alpha < 1:
            raise TableError("alpha", f"is {self.alpha}; give a level between 0 and 1, such as 0.05")


class FurtherModel(TomlTable):
    """A model that is a method of its own, trained on soft labels in place of the kind's network.

    Attributes:
        model: as a study names it; empty for one that is called as the method is. What reads items itself (`hf:`) is
            trained on those, without the kind's encoder, and left out of quick runs.
        training: in place of the kind's; empty leaves it.
        seeds: how many; 0 leaves the kind's.
    """

    model: str = ""
    training: dict[str, Any] = msgspec.field(default_factory=dict)
    seeds: int = 0


class Protocol(TomlTable):
    """Everything that decides a number of the benchmark.

    Attributes:
        title: of the page.
        version: that numbers belong to; others are not comparable with them.
        changes: what came after the version before, when, and what was known then.
        cite: how to.
        question: that it answers.
        deliveries: as a study's grid names them.
        people: kinds of models with an annotator side.
        models: further ones, by the name of the method.
        tuned: by delivery, an option and the values of it that every run tries; validation chooses.
        ensembles: deliveries whose seeds are also averaged, as one system.
        baselines: that are ranked.
        controls: what explains others, and is never the answer.
        comparison: how methods are compared.
        kinds: by name.
        sets: in the order that they are run in.
        absent: what was asked for and cannot be run, with the reason.
    """

    title: str = ""
    version: str = ""
    changes: str = ""
    cite: str = ""
    question: str = ""
    deliveries: tuple[Any, ...] = ("majority", "soft")
    people: tuple[str, ...] = ()
    models: dict[str, FurtherModel] = msgspec.field(default_factory=dict)
    tuned: dict[str, dict[str, list[float]]] = msgspec.field(default_factory=dict)
    ensembles: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    comparison: Comparing = Comparing()
    kinds: dict[str, ItemKind] = msgspec.field(default_factory=dict)
    sets: tuple[BenchSet, ...] = ()
    absent: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Disks may not tell A from a.
        folded = [bench_set.name.casefold() for bench_set in self.sets]
        for place, bench_set in enumerate(self.sets):
            if bench_set.kind not in self.kinds:
                raise no_such(("sets", place, "kind"), bench_set.kind, self.kinds)
            if folded[place] in folded[:place]:
                raise TableError(("sets", place, "name"), f"is '{bench_set.name}', as of another set; give it its own")
        named: list[tuple[tuple[str | int, ...], str]] = [
            *((("sets", place, "name"), bench_set.name) for place, bench_set in enumerate(self.sets)),
            *(((table, name), name) for table in ("kinds", "models", "tuned") for name in getattr(self, table)),
            *((("people", place), name) for place, name in enumerate(self.people)),
        ]
        for where, name in named:
            if not NAMES.fullmatch(name):
                raise TableError(
                    where, f"is '{name[:60]}', no name of a file; use up to 50 letters, digits and - + . _"
                )
        deliveries = [each for each in self.deliveries if isinstance(each, str)]
        others = [str(each["name"]) for each in self.deliveries if isinstance(each, dict) and "name" in each]
        # A delivery with options of its own has them behind its name.
        controls = [name.partition(" (")[0] for name in self.controls]
        for table, names, known in (
            ("ensembles", self.ensembles, deliveries),
            ("baselines", self.baselines, BASELINES),
            ("controls", controls, (*deliveries, *others, *BASELINES, *self.named)),
        ):
            for name in names:
                if name not in known:
                    raise no_such(table, name, known)

    @property
    def metrics(self) -> tuple[str, ...]:
        """What tables show, the metric that methods are ranked by first."""
        return tuple(dict.fromkeys((self.comparison.metric, *self.comparison.others)))

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All deliveries in one study, and a study for each further model, search and annotator side."""
        return (
            Entry(deliveries=self.deliveries),
            *(
                Entry(name=name, model=one.model or name, training=one.training, seeds=one.seeds)
                for name, one in self.models.items()
            ),
            *(Entry(name=f"{name}-tuned", deliveries=({"name": name, **tried},)) for name, tried in self.tuned.items()),
            *(Entry(name=kind, people=kind) for kind in self.people),
        )

    @property
    def named(self) -> tuple[str, ...]:
        """Methods that have summaries of their own."""
        ensembles = (f"{delivery}-ensemble" for delivery in self.ensembles)
        return (*filter(None, (entry.name for entry in self.entries)), *ensembles)

    def entries_on(self, bench_set: BenchSet) -> tuple[Entry, ...]:
        """What is trained on a set."""
        entries = [entry for entry in self.entries if entry.name not in self.left_out(bench_set)]
        return tuple(entry for entry in entries if bench_set.people or not entry.people)

    def left_out(self, bench_set: BenchSet) -> tuple[str, ...]:
        """Deliveries and models that a set is run without."""
        return (*self.kinds[bench_set.kind].leave_out, *bench_set.leave_out)

    def chosen(self, names: tuple[str, ...]) -> tuple[BenchSet, ...]:
        """The sets of these names, or all where none is named."""
        known = {bench_set.name: bench_set for bench_set in self.sets}
        if not known:
            raise InputError("bench: the protocol has no set; add [[sets]] to it")
        for name in names:
            if name not in known:
                raise InputError(f"bench: '{name}' is no set of the protocol{choices(name, known)}")
        return tuple(known[name] for name in names) or self.sets


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is trained on a set: all deliveries, or one method that needs a study of its own.

    Attributes:
        name: of the method; empty for the deliveries.
        deliveries: of the grid.
        model: the network; empty takes the kind's.
        people: the annotator side; empty for none.
        loss: by path; empty takes cross-entropy.
        training: in place of the kind's; empty takes it.
        seeds: how many; 0 takes the kind's.
    """

    name: str = ""
    deliveries: tuple[Any, ...] = ("soft",)
    model: str = ""
    people: str = ""
    loss: str = ""
    training: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 0

    @property
    def reads_items(self) -> bool:
        """Whether its network makes features of texts itself."""
        return self.model.startswith("hf:")


def read_protocol(path: Path | None = None) -> Protocol:
    """The protocol that comes with the package, or one's own."""
    path = path or Path(str(resources.files("dissensus_papers.bench"))) / "protocol.toml"
    protocol = TomlFile(path, kind="protocol").read_as(Protocol)
    sets = tuple(
        replace(one, dataset=_beside(one.dataset, path), splits=_beside(one.splits, path)) for one in protocol.sets
    )
    return replace(protocol, title=protocol.title or path.stem, sets=sets)


def _beside(table: Any, protocol: Path) -> Any:
    """The same with files that lie beside the protocol by their whole paths."""
    if isinstance(table, str):
        return table
    files = {key: protocol.resolve().parent / str(table[key]) for key in FILES if key in table}
    # An `original` may be a column of the texts.
    return table | {key: str(file) for key, file in files.items() if key != "original" or file.is_file()}


def study_text(protocol: Protocol, bench_set: BenchSet, entry: Entry, *, quick: bool) -> str:
    """The study file of an entry on a set.

    What `--quick` does to seeds, epochs and folds is done where the study is run; the encoder and network are here.
    """
    kind, left_out = protocol.kinds[bench_set.kind], protocol.left_out(bench_set)
    changes = (kind.quick or {}) if quick else {}
    model = entry.model or changes.get("model", kind.model)
    encoder = "" if entry.reads_items else changes.get("encoder", kind.encoder)
    training = entry.training or {**kind.training, **bench_set.training}
    return toml_text(
        {
            "": {"name": study_name(bench_set, entry), "question": protocol.question},
            "dataset": bench_set.dataset | ({"encoder": encoder} if encoder else {}),
            "splits": {} if isinstance(bench_set.splits, str) else bench_set.splits,
            "grid": {
                "targets": [{"scheme": "frequency", "votes": bench_set.votes} if bench_set.votes else "frequency"],
                "deliveries": [delivery for delivery in entry.deliveries if delivery not in left_out],
                "models": [{"name": model, "people": entry.people} if entry.people else model],
                "seeds": entry.seeds or kind.seeds,
            },
            "training": {**training, "loss": entry.loss or training.get("loss")},
        }
    )


def protocol_study(protocol: Protocol, bench_set: BenchSet, entry: Entry, *, quick: bool) -> Study:
    """The study of an entry on a set, without leaving its file anywhere."""
    with TemporaryDirectory() as place:
        path = Path(place) / "study.toml"
        path.write_text(study_text(protocol, bench_set, entry, quick=quick), encoding="utf-8")
        try:
            return read_study(path)
        except InputError as error:
            what = instead_of_file("", path, error.sentence)
            raise InputError(f"the protocol, on its set {bench_set.name}: {what}") from error


def instead_of_file(told: str, path: Path, refusal: str) -> str:
    """A refusal of a study file that was made of the protocol: nobody wrote it, and its lines are nowhere."""
    return re.sub(rf"^{re.escape(str(path))}(, line \d+)?: ", told, refusal)


def study_name(bench_set: BenchSet, entry: Entry) -> str:
    """SET for the deliveries, SET--METHOD for one method."""
    return f"{bench_set.name}{WITH}{entry.name}" if entry.name else bench_set.name
