"""Simulated projects through the real server: exactly k votes whatever bots do, and the way on to a report."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from dissensus.errors import InputError
from dissensus.labels.labelling import label
from dissensus.report import write_report
from dissensus.votes.simulate import simulate_responses
from dissensus_collect.project.reading import read_project
from dissensus_collect.project.starting import init_project
from dissensus_collect.project.tables import LAYOUTS
from dissensus_collect.results.collected import collected_votes
from dissensus_collect.results.export import export_project
from dissensus_collect.results.live import live
from dissensus_collect.simulation.bots import _Bot, simulate
from dissensus_collect.simulation.crowd import Behaviour, answers_of, make_crowd
from dissensus_collect.simulation.server import simulated_copy
from dissensus_collect.simulation.wire import Reply
from dissensus_collect.store.backup import file_integrity
from dissensus_collect.store.opening import snapshot
from dissensus_train.studies import plan_study, read_study, run_plan, score_study
from tests.collect.conftest import in_schema
from tests.collect.panels import text_project

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_collect.simulation.bots import Simulation

DIGITS = tuple(str(digit) for digit in range(4))
ROUGH = Behaviour(
    abandon=0.3, late=0.4, duplicate=0.1, reload=0.1, second_tab=0.1, careless=0.15, exclude=0.3, void=0.4, retire=0.2,
    items_before_leaving=3,
)  # fmt: skip
QUOTAS = """
[quotas]
side = { left = 2, right = 3 }
"""


QUESTIONS = """
[[comprehension]]
question = "What will you see?"
options = ["Images", "Films"]
right = "Images"

[[questions]]
name = "age_group"
question = "How old are you?"
options = ["young", "old"]

[[questions]]
name = "remark"
question = "Anything to add?"
"""


@dataclass(frozen=True)
class Rough:
    """A simulation, and where its database is."""

    found: Simulation
    url: str | None

    def stored(self, sql: str) -> list[Any]:
        with snapshot(read_project(self.found.folder), self.url) as cursor:
            rows: list[Any] = cursor.execute(sql).fetchall()
            return rows

    @property
    def not_tried(self) -> list[str]:
        """What no bot and no researcher happened to do: who comes to it depends on how quick the machine is."""
        outcomes = ("finished", "left", "excluded", "voided", "retired", "turned away")
        counts = {name: self.found.outcomes[name] for name in outcomes}
        counts |= {name: getattr(self.found, name) for name in ("sent_twice", "reloads", "second_tabs", "surplus")}
        return [name for name, count in counts.items() if not count]

    def check(self) -> None:
        """That every item has exactly k votes, whatever was tried."""
        assert self.found.wrong == []
        retired, voided = self.found.outcomes["retired"], self.found.outcomes["voided"]
        assert self.stored("SELECT count(*) FROM item WHERE retired_at IS NOT NULL") == [(retired,)]
        assert self.stored("SELECT count(*) FROM assignment WHERE voided IS NOT NULL") == [(voided,)]
        assert self.found.votes_per_item == {3: 30 - retired}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def rough(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Rough:
    """30 items x 3 with people who abandon, reload, send twice, open tabs, come late, are excluded or turned away.

    Meanwhile the researcher voids judgements and sets items aside, and there are quotas.
    """
    folder = tmp_path_factory.mktemp("rough")
    project = text_project(
        folder / "project", items=32, k=3, classes=DIGITS, gold={"item0": "1", "item1": "2"},
        items_per_annotator="items_per_annotator = 12",
    )  # fmt: skip
    with (folder / "project" / "collect.toml").open("a") as file:
        file.write(QUOTAS)
    project = read_project(folder / "project")
    for seed in range(10, 20):
        url = None
        if request.param == "postgres":
            url = in_schema(request.getfixturevalue("postgres_server"), f"rough_{seed}")
        found = simulate(
            project, folder / f"seed {seed}", annotators=12, behaviour=ROUGH, seed=seed, pace=800.0, database_url=url
        )
        rough = Rough(found, url)
        if not rough.not_tried:
            break
        rough.check()
    return rough


def test_every_item_ends_with_exactly_k_votes(rough: Rough) -> None:
    rough.check()
    assert rough.not_tried == [], f"not tried in ten simulations: {rough.found.outcomes}"


def test_who_is_sent_back_to_work_from_the_last_page_goes_on() -> None:
    """An item that somebody let go was given out after 'finished' was told, with an answer that was sent twice."""
    bot = object.__new__(_Bot)
    saved: list[dict[str, str]] = []
    steps, pages = iter([{"state": "item"}] * 2), iter([(303, b"HTTP/1.1 303\r\nlocation: /work\r\n\r\n"), (200, b"")])

    async def following() -> dict[str, str]:
        return next(steps)

    async def as_it_is(step: dict[str, str]) -> dict[str, str]:
        return step

    async def save(step: dict[str, str]) -> Reply:
        saved.append(step)
        return Reply(201, b"", b'{"next": {"state": "finished"}}')

    async def ask(_: object) -> Reply:
        return Reply(*next(pages), b"")

    tally = SimpleNamespace(orders=[], wrong=[])
    told = {"_next": following, "_disturb": as_it_is, "_save": save, "_ask": ask, "leaves": False, "number": 1}
    vars(bot).update(told, tally=tally, orders=["exclude"], behaviour=Behaviour())
    assert asyncio.run(bot._work()) == "finished"
    assert (len(saved), tally.orders, tally.wrong) == (2, [("exclude", 1)], [])


def test_what_was_acknowledged_is_stored_once(rough: Rough) -> None:
    uuids = [row[0] for row in rough.stored("SELECT uuid FROM judgement")]
    assert len(uuids) == len(set(uuids))
    assert rough.found.acknowledged <= set(uuids)
    assert rough.stored("SELECT item, annotator FROM assignment GROUP BY item, annotator HAVING count(*) > 1") == []
    assert "database is locked" not in (rough.found.folder / "server.log").read_text()
    if rough.url is None:
        assert file_integrity(rough.found.folder / "collect.sqlite") == "ok"


def test_a_simulated_project_says_that_it_is(rough: Rough, tmp_path: Path) -> None:
    project = read_project(rough.found.folder)
    assert project.name.endswith("(simulated)")
    with snapshot(project, rough.url) as cursor:
        assert export_project(cursor, project, tmp_path / "out").simulated
        seen = live(cursor, project, now=1.0)
    assert seen.votes_per_hour is None, "bots have no pace that people could have"
    assert not any("clock" in each or "share an address" in each for each in seen.alerts)


def test_images_are_recognised_and_questions_before_and_after_answered(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    (tmp_path / "images").mkdir()
    for n in range(6):
        pixels = generator.integers(0, 255, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / f"{n}.png")
    path = init_project(tmp_path / "images", classes=("a", "b"), k=2)
    path.write_text(path.read_text() + QUESTIONS)
    project = read_project(tmp_path / "images")
    truth = np.eye(2)[np.arange(6) % 2]
    calm = Behaviour(abandon=0.0, careless=0.0, exclude=0.0)
    found = simulate(project, tmp_path / "simulated", annotators=2, behaviour=calm, truth=truth, seed=1)
    assert found.votes_per_item == {2: 6}
    copy = read_project(found.folder)
    with snapshot(copy) as cursor:
        votes = collected_votes(cursor, copy)
        export_project(cursor, copy, tmp_path / "out", formats=("csv",))
    assert set(votes.annotator_attributes) == {"age_group"}
    assert set(votes.annotator_attributes["age_group"].tolist()) <= {"young", "old"}
    told = (tmp_path / "out" / "final_answers.csv").read_text()
    assert told.count(",age_group,") == found.outcomes["finished"] == told.count(",remark,simulated")
    shown = label(votes, "majority")
    place = [found.items.index(name) for name in shown.items.tolist()]
    np.testing.assert_array_equal(shown.probabilities.argmax(axis=1), truth[place].argmax(axis=1))


def test_votes_of_a_known_panel_go_all_the_way_to_a_report(tmp_path: Path) -> None:
    """Bots -> server -> export -> labels -> project -> report; what comes out is near what was put in."""
    generator = np.random.default_rng(2)
    items = 60
    features = generator.normal(size=(items, 5)).astype(np.float32)
    # A quarter of the items resemble nothing: to these people say No to every class.
    features[::4] *= 0.01
    logits = 3.0 * features @ generator.normal(size=(5, 7))
    truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    project = text_project(tmp_path / "project", items=items, k=5, classes=tuple("abcdefg"))
    honest = Behaviour(abandon=0.0, careless=0.0, exclude=0.0)
    found = simulate(project, tmp_path / "simulated", annotators=8, behaviour=honest, truth=truth, seed=3, pace=400.0)
    assert found.votes_per_item == {5: items}
    copy = read_project(found.folder)
    with snapshot(copy) as cursor:
        done = export_project(cursor, copy, tmp_path / "out", formats=("parquet",))
    assert done.votes is not None
    labels = label(done.votes, "uncertainty-weighted")
    place = [found.items.index(name) for name in labels.items.tolist()]
    # The same people without a server: a large panel, and five votes of it, which come as near as five votes can.
    ideal = label(simulate_responses(truth, 400, annotators=400, seed=9), "uncertainty-weighted").probabilities
    five = label(simulate_responses(truth, 5, annotators=40, seed=8), "uncertainty-weighted").probabilities
    collected = np.abs(labels.probabilities - ideal[place]).sum(axis=1).mean() / 2
    assert collected < 1.25 * np.abs(five - ideal).sum(axis=1).mean() / 2
    assert collected < 0.4 * np.abs(labels.probabilities - ideal[place[::-1]]).sum(axis=1).mean() / 2
    np.savez(tmp_path / "features.npz", features=features[place], items=np.array(labels.items.tolist()))
    (tmp_path / "study.toml").write_text(
        f"""
name = "collected"
question = "Do votes that a server collected train a model?"
[dataset]
votes = "{(tmp_path / "out" / "votes.parquet").as_posix()}"
features = "{(tmp_path / "features.npz").as_posix()}"
[splits]
train = 0.6
validation = 0.2
test = 0.2
[grid]
targets = ["majority", "uncertainty-weighted"]
deliveries = ["soft"]
models = ["linear"]
seeds = [0, 1]
[training]
epochs = 5
"""
    )
    plan = plan_study(read_study(str(tmp_path / "study.toml")), tmp_path / "runs", engine="loop")
    assert len(list(run_plan(plan))) == 4
    page = write_report(score_study(plan.opened), tmp_path / "report.html")
    assert "collected" in page.read_text()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bots_answer_every_layout_as_its_page_would(tmp_path: Path, layout: str) -> None:
    from dissensus_collect.work.answers import check_answers

    project = text_project(tmp_path / "project", items=5, classes=DIGITS, layout=f'layout = "{layout}"')
    crowd = make_crowd(project, seed=1)
    for bot in range(4):
        said = crowd.responses(bot, careless=bot == 3)
        for row in said:
            raw = json.loads(json.dumps(answers_of(project, row, milliseconds=4000.0)))
            assert len(check_answers(project, raw).values) == len(DIGITS)


def test_attentive_bots_know_gold_and_are_the_same_for_a_seed(tmp_path: Path) -> None:
    project = text_project(tmp_path / "project", items=4, classes=DIGITS, gold={"item2": "3"})
    crowd = make_crowd(project, seed=1)
    assert crowd.responses(0, careless=False)[2].tolist() == [0, 0, 0, 1]
    np.testing.assert_array_equal(
        crowd.responses(7, careless=False), make_crowd(project, seed=1).responses(7, careless=False)
    )


def test_what_cannot_be_simulated_is_refused(tmp_path: Path) -> None:
    project = text_project(tmp_path / "project", items=4)
    with pytest.raises(InputError, match="something in it already"):
        simulated_copy(project, project.folder)
    with pytest.raises(InputError, match="share between 0 and 1"):
        Behaviour(abandon=1.5)
    with pytest.raises(InputError, match="truth has shape"):
        make_crowd(project, truth=np.eye(2))
