"""What bots perceive and how they behave: a panel with known label distributions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.errors import InputError
from dissensus.responses import NO, RESPONSES, UNSURE, YES
from dissensus.votes.simulate import simulate_responses, simulate_votes
from dissensus.whole_file import sha256_of
from dissensus_collect.project.items import project_items
from dissensus_collect.web.media import inside
from dissensus_collect.work.answers import questions_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus.arrays import Counts, Table
    from dissensus_collect.project.items import ProjectItem
    from dissensus_collect.project.reading import Project
    from dissensus_collect.project.tables import ItemQuestion


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """How bots behave; all but the last two are shares between 0 and 1.

    Attributes:
        abandon: share of annotators who leave for good in the middle of an item.
        late: share of those who leave that answer after all, when the item has been given to somebody else.
        duplicate: share of saves that are sent twice.
        reload: share of items whose page is loaded again before the answer.
        second_tab: share of items that are opened in a second tab, which takes over.
        careless: share of annotators who answer at random, and so miss gold items.
        exclude: share of annotators whom the researcher excludes after they have finished.
        void: share of annotators after whom the researcher voids a judgement of somebody's.
        retire: share of annotators after whom the researcher sets an item aside.
        items_before_leaving: mean number of items that those who leave have judged.
        think_seconds: real seconds between two items.
    """

    abandon: float = 0.2
    late: float = 0.3
    duplicate: float = 0.02
    reload: float = 0.02
    second_tab: float = 0.02
    careless: float = 0.05
    exclude: float = 0.03
    void: float = 0.0
    retire: float = 0.0
    items_before_leaving: float = 5.0
    think_seconds: float = 0.0

    def __post_init__(self) -> None:
        for name, share in list(vars(self).items())[:-2]:
            if not 0 <= share <= 1:
                raise InputError(f"simulate: {name}= is {share}; give a share between 0 and 1")


@dataclass(frozen=True, eq=False, kw_only=True)
class Crowd:
    """The bots' common view of the items, from which each bot draws its own responses.

    Attributes:
        truth: (items, classes) label distributions.
        row: the row of an item, by its text or the SHA-256 of its file.
        gold: rows of gold items, and the right responses to them.
        seed: of all random numbers.
    """

    project: Project
    truth: Table
    items: tuple[str, ...]
    row: Mapping[str, int]
    gold: Mapping[int, tuple[int, ...]]
    seed: int

    def generator(self, bot: int) -> np.random.Generator:
        """The random numbers of one bot."""
        return np.random.default_rng([self.seed, bot])

    def responses(self, bot: int, *, careless: bool) -> Counts:
        """(items, classes) what one bot would answer for every item: `NO`, `YES` or `UNSURE`."""
        seed = int(np.random.SeedSequence([self.seed, bot, 1]).generate_state(1)[0])
        shape = self.truth.shape
        if careless:
            return np.random.default_rng(seed).integers(0, 3 if self.project.classes.unsure else 2, shape)
        responses: Any = np.zeros(shape, dtype=np.int64)
        if self.project.layout == "single-choice":
            responses[np.arange(shape[0]), simulate_votes(self.truth, 1, annotators=1, seed=seed).label] = YES
        else:
            votes = simulate_responses(self.truth, 1, annotators=1, seed=seed)
            assert votes.unsure is not None
            named, doubt = votes.label < shape[1], UNSURE if self.project.classes.unsure else NO
            responses[votes.item[named], votes.label[named]] = np.where(votes.unsure[named], doubt, YES)
        for row, right in self.gold.items():
            responses[row] = right
        return np.asarray(responses)


def make_crowd(project: Project, *, truth: Table | None = None, seed: int = 0) -> Crowd:
    """The crowd of a simulated project, with label distributions drawn from Dirichlet(0.15) if none are given."""
    items = project_items(project)
    if truth is None:
        generator = np.random.default_rng(seed)
        truth = generator.dirichlet(np.full(len(project.classes.names), 0.15), len(items))
    if truth.shape != (len(items), len(project.classes.names)):
        raise InputError(
            f"simulate: truth has shape {truth.shape}; give one row for each of {len(items)} items and one column for "
            f"each of {len(project.classes.names)} classes"
        )
    place = {item.name: row for row, item in enumerate(items)}
    return Crowd(
        project=project,
        truth=truth,
        items=tuple(place),
        row={_seen(project, item): row for row, item in enumerate(items)},
        gold={place[gold.item]: tuple(min(right) for right in gold.required) for gold in project.gold_items},
        seed=seed,
    )


def seen_pair(prompt: str, sides: list[str]) -> str:
    """A pair by what is seen of it, whichever side is which; images are their SHA-256."""
    return "\n".join([prompt, *sorted(sides)])


def _seen(project: Project, item: ProjectItem) -> str:
    if not project.items.pairs or item.text is None or project.media_folder is None:
        return item.text or item.hash(project.images)
    pair = json.loads(item.text)
    files = [(side, inside(project.media_folder, side)) for side in pair["sides"]]
    return seen_pair(pair["prompt"], [side if file is None else sha256_of(file) for side, file in files])


def answers_of(project: Project, responses: Any, *, milliseconds: float) -> dict[str, Any]:
    """What a browser sends for the responses (classes,) to one item."""
    values: dict[str, Any] = {}
    for question, places in questions_of(project):
        # Bots perceive only the first question; to further ones they answer its beginning, over and over.
        codes = np.resize(responses, len(places)).tolist()
        values |= {str(place): value for place, value in zip(places, _values_of(question, codes), strict=True)}
    step = milliseconds / len(responses)
    times = {str(k): round(step * (k + 1), 1) for k in range(len(responses))}
    return {
        "values": values,
        "reason": "simulated",
        "first": times,
        "last": times,
        "changes": dict.fromkeys(times, 0),
        "total_ms": milliseconds,
        "hidden_ms": 0,
        "input": "key",
        "window": [1280, 900, 1],
        "frame_ms": 16.7,
    }


def _values_of(question: ItemQuestion, codes: list[int]) -> list[Any]:
    """What is sent for the classes of one question."""
    if question.layout == "rating":
        steps = question.scale.values
        return [{NO: steps[0], UNSURE: steps[len(steps) // 2], YES: steps[-1]}[code] for code in codes]
    if question.layout == "points":
        weight = np.array([{NO: 0, UNSURE: 1, YES: 2}[code] for code in codes])
        weight = weight if weight.any() else np.ones_like(weight)
        points = 100 * weight // weight.sum()
        points[int(weight.argmax())] += 100 - int(points.sum())
        return list(points.tolist())
    if question.layout == "single-choice":
        first = codes.index(YES) if YES in codes else 0
        return ["yes" if k == first else "no" for k in range(len(codes))]
    if question.layout == "select-all" or not question.unsure:
        yes = (YES, UNSURE) if question.layout == "select-all" else (YES,)
        return ["yes" if code in yes else "no" for code in codes]
    return [RESPONSES[code] for code in codes]
