"""What a person meets who types `dis.` in a notebook."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd
import pytest

import dissensus as dis
from dissensus.dynamics import data_map
from dissensus.evaluation.evaluating import evaluate
from dissensus.labels.schemes import frequency
from dissensus.planning import plan
from dissensus.votes.table import votes_from_counts

if TYPE_CHECKING:
    from dissensus.labels.distribution import LabelDistribution

CLASSES = ("cat", "dog", "owl")
PACKAGES = Path(__file__).parents[1] / "packages"
ROOMS = sorted(PACKAGES.glob("*/src/*/*/__init__.py"))


def people(items: int = 40) -> LabelDistribution:
    rng = np.random.default_rng(0)
    return frequency(votes_from_counts(rng.multinomial(6, rng.dirichlet([0.5] * 3, items)), classes=CLASSES))


def model(human: LabelDistribution, seeds: int = 1) -> np.ndarray[tuple[int, int, int], np.dtype[np.float64]]:
    noise = np.random.default_rng(1).dirichlet([1.0] * 3, (seeds, len(human)))
    return np.asarray(0.6 * human.probabilities + 0.4 * noise)


def test_every_public_name_is_there_and_documented_and_nothing_else() -> None:
    public = [name for name in dir(dis) if not name.startswith("__")]
    assert sorted(dis.__all__) == sorted([*public, "__version__"])
    assert len(public) <= 40
    for name in public:
        assert getattr(dis, name).__doc__, name
        assert name in (dis.__doc__ or ""), name


def examples(thing: Any) -> list[doctest.Example]:
    """The examples of a docstring, which the tests run with all doctests of `src`."""
    return [each for each in doctest.DocTestParser().get_examples(thing.__doc__ or "") if each.source.strip() != "..."]


def home(name: str) -> Any:
    """What documents a public name: the package for a string, and the room behind `report`."""
    return dis if isinstance(getattr(dis, name), str) else getattr(dis, name)


@pytest.mark.parametrize("name", dis.__all__)
def test_every_public_name_has_an_example_that_runs(name: str) -> None:
    found = examples(home(name))
    assert any(re.search(rf"\b{name}\b", each.source + each.want) for each in found), f"{name} has no example"
    assert not any(doctest.OPTIONFLAGS_BY_NAME["SKIP"] in each.options for each in found), f"{name}: one is skipped"
    where = Path(inspect.getsourcefile(home(name)) or "")
    assert where.is_relative_to(PACKAGES), f"{name}: doctests of {where} are not run"


@pytest.mark.parametrize("name", ["hf", "lightning", "losses", "plot", "sklearn"])
def test_every_name_of_a_small_room_is_in_its_example(name: str) -> None:
    room = getattr(dis, name)
    said = "".join(each.source for each in examples(room))
    for public in (each for each in dir(room) if not each.startswith("__")):
        assert f"dis.{name}.{public}" in said, public


def test_a_notebook_shows_the_arguments_of_the_function_behind_a_room() -> None:
    assert list(inspect.signature(dis.report).parameters)[:3] == ["about", "path", "predictions"]


def test_importing_is_cheap() -> None:
    code = (
        "import sys, dissensus; dir(dissensus); print([m for m in ('torch', 'polars', 'altair') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_report_can_be_called_whatever_was_imported_before(tmp_path: Path) -> None:
    import dissensus.report.figures  # noqa: F401

    votes = votes_from_counts(np.random.default_rng(0).multinomial(5, [0.5, 0.3, 0.2], 40), classes=CLASSES)
    path = dis.report(votes, tmp_path / "r.html", predictions=model(people(40)), classes=CLASSES)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(dis.InputError, match="about Votes without predictions there is no page"):
        dis.report(votes)
    with pytest.raises(dis.InputError, match="2 texts for 40 items; give one for each"):
        dis.report(votes, tmp_path / "r.html", predictions=model(people(40)), classes=CLASSES, texts=["a", "b"])


def test_reprs_are_short_and_notebooks_get_a_table() -> None:
    votes = votes_from_counts(np.full((30, 3), 2), classes=CLASSES)
    for each in (votes, dis.label(votes), evaluate(people(), model(people())[0], classes=CLASSES, resamples=0)):
        assert repr(each).count("\n") < 30
        assert "<table" in each._repr_html_()
        assert each._repr_html_().count("<tr") < 30


def test_what_answers_hold_is_shown_as_tables_and_sentences_too() -> None:
    truth = np.random.default_rng(0).dirichlet([0.4, 0.4, 0.4], 60)
    votes = dis.simulate_votes(truth, 4, annotators=4, seed=0)
    systems = {"<b>one</b>": truth, "two": truth[::-1]}
    found = evaluate(dis.label(votes), systems, classes=votes.classes, resamples=5)
    for each in (found.overall, found.by_stratum("agreement"), found.difference(), found.against_baselines()):
        header, rows = each.grid()
        lines = repr(each).splitlines()
        assert lines[0].split() == " ".join(header).split()
        assert len(lines) == min(len(rows), 20) + 1 + (len(rows) > 20)
        assert lines[1].startswith(rows[0][0])
        assert each._repr_html_().count("<tr") == len(rows) + 1
        assert "<b>" not in each._repr_html_()
    assert f"and {len(found.overall.grid()[1]) - 20} more rows" in repr(found.overall)
    planned = plan(votes, goal="soft_nll", budget=200)
    assert repr(planned).splitlines()[1:] == list(planned.answer)
    answers = {"m": dict.fromkeys(map(str, votes.items), votes.classes[0])}
    judged = dis.stand_in(votes, answers, epsilon=0.1)
    assert repr(judged) == f"StandIn(1 model)\n{judged.models['m'].verdict}"


def test_a_study_is_run_and_scored_in_one_line(tmp_path: Path) -> None:
    votes = "".join(f"{i},{a},{'yes' if (i * a) % 3 else 'no'}\n" for i in range(40) for a in range(1, 6))
    (tmp_path / "votes.csv").write_text(f"item,annotator,label\n{votes}", encoding="utf-8")
    np.savez(tmp_path / "x.npz", items=np.arange(40), features=np.random.default_rng(0).normal(size=(40, 3)))
    (tmp_path / "study.toml").write_text(
        'name = "tiny"\n[dataset]\nvotes = "votes.csv"\nfeatures = "x.npz"\n[splits]\ntrain = 0.5\ntest = 0.5\n'
        '[grid]\ntargets = ["frequency"]\ndeliveries = ["soft"]\nmodels = ["linear"]\nseeds = 2\n'
        '[training]\nregime = "fixed-horizon"\nepochs = 2\n',
        encoding="utf-8",
    )
    scored = dis.run(tmp_path / "study.toml", tmp_path / "runs")
    assert repr(scored).startswith("ScoredStudy(tiny, 1 systems, 2 runs, 20 items)")
    assert repr(dis.open_study(tmp_path / "study.toml", tmp_path / "runs")).startswith("OpenStudy(tiny, 2 of 2 runs")


def test_figures_come_from_arrays_and_from_our_objects() -> None:
    human = people()
    runs = model(human, seeds=2)
    dynamics = np.random.default_rng(2).dirichlet([1.0] * 3, (2, 6, len(human)))
    charts = [
        dis.plot.entropy(human.probabilities, runs),
        dis.plot.entropy(human, {"a": runs, "b": runs[0]}, classes=CLASSES),
        dis.plot.reliability(human, runs, classes=CLASSES),
        dis.plot.reliability(human, [CLASSES[k] for k in runs[0].argmax(axis=1)]),
        dis.plot.disagreement(human),
        dis.plot.disagreement(human.probabilities, runs[0]),
        dis.plot.people_ruler(evaluate(human, runs, classes=CLASSES, resamples=10)),
        dis.plot.contested(human, runs, classes=CLASSES, texts=[f"text {n}" for n in range(len(human))]),
        dis.plot.data_map(dynamics, human),
        dis.plot.data_map(dynamics[:, :2], human, epochs=2),
        dis.plot.data_map(data_map(dynamics, human)),
    ]
    for chart in charts:
        assert isinstance(chart, alt.TopLevelMixin)
        assert chart.to_dict()["$schema"]


def test_a_figure_shows_what_was_given() -> None:
    human, runs = people(), model(people())
    drawn = dis.plot.data_map(np.tile(runs[:, None], (1, 5, 1, 1)), human).to_dict()
    rows = next(iter(drawn["datasets"].values()))
    np.testing.assert_allclose([row["variability"] for row in rows], 0, atol=1e-9)
    bars = next(iter(dis.plot.contested(human, most=2).to_dict()["datasets"].values()))
    most = human.probabilities[np.argsort(-human.entropy, kind="stable")[:1]]
    np.testing.assert_allclose(np.sort([row["share"] for row in bars if row["place"] == 0]), np.sort(most[0]))


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(dis.InputError, match="give what people said of these items"):
        dis.plot.data_map(np.ones((1, 2, 3, 1)))
    with pytest.raises(dis.InputError, match="people are of one mind on every item"):
        dis.plot.contested(np.eye(3))
    with pytest.raises(dis.InputError, match="2 texts for 3 items"):
        dis.plot.contested(np.full((3, 2), 0.5), texts=["a", "b"])


@pytest.mark.parametrize(
    "module", ["dissensus", *(f"{path.parents[1].name}.{path.parent.name}" for path in ROOMS), "dissensus_collect"]
)
def test_a_name_is_what_type_checkers_are_told_it_is(module: str) -> None:
    room = importlib.import_module(module)
    told = re.findall(
        r"from (\S+) import (?:\(\s*)?(\w+) as (\w+)", Path(str(room.__file__)).read_text(encoding="utf-8")
    )
    for home, name, called in told:
        around = importlib.import_module(home)
        # A sub-module is an attribute of its package only once it was imported.
        meant = getattr(around, name, None) or importlib.import_module(f"{home}.{name}")
        found = getattr(room, called)
        assert found is meant or (called == "report" and callable(found)), called


ROWS = [
    {"item": f"text {item}", "worker": f"w{worker}", "label": ("calm", "angry")[(item * worker) % 3 == 0]}
    for item in range(12)
    for worker in range(1, 6)
]


def test_five_guesses_of_somebody_who_knows_scikit_learn_work_or_are_answered_by_the_right_call() -> None:
    """Soft labels of a frame, Dawid-Skene, a loss, evaluate, and alpha, as they are typed before any page is read."""
    frame = pd.DataFrame(ROWS)
    labels = dis.label(frame)
    assert np.asarray(labels).shape == (12, 2)
    assert np.asarray(dis.label(frame, "dawid-skene")).sum() == pytest.approx(12)
    model = np.full((12, 2), 0.5)
    assert dis.evaluate(frame, model, resamples=0).items == 12
    assert dis.evaluate(labels, model, resamples=0).items == 12
    with pytest.raises(dis.InputError, match=r"dis\.evaluate\(votes, predictions\)"):
        dis.evaluate(model, frame)
    assert dis.agreement(frame, resamples=0)["krippendorff_alpha_nominal"].value < 1
    renamed = frame.rename(columns={"item": "what", "worker": "who", "label": "said"})
    by_name = dis.label(renamed, item="what", annotator="who", label="said")
    assert np.array_equal(by_name.probabilities, labels.probabilities)


@pytest.mark.parametrize(
    ("guess", "right"),
    [
        ("soft_labels", "dis.label(votes)"),
        ("DawidSkene", 'dis.label(votes, "dawid-skene")'),
        ("dawid_skene", 'dis.label(votes, "dawid-skene")'),
        ("SoftCrossEntropyLoss", "dis.losses.cross_entropy(logits, targets)"),
        ("score", "dis.evaluate(votes, predictions)"),
        ("krippendorff_alpha", 'dis.agreement(votes)["krippendorff_alpha_nominal"]'),
    ],
)
def test_a_name_that_is_not_ours_is_answered_by_the_call_that_does_it(guess: str, right: str) -> None:
    with pytest.raises(AttributeError) as refused:
        getattr(dis, guess)
    assert str(refused.value).endswith(f"; write {right}")
    votes, predictions = dis.read_votes(ROWS), np.full((12, 2), 0.5)
    torch = pytest.importorskip("torch")
    names = {"logits": torch.zeros(3, 2), "targets": torch.full((3, 2), 0.5), "votes": votes}
    assert eval(right, {"dis": dis, "predictions": predictions, **names}) is not None


def test_soft_labels_train_a_classifier_of_scikit_learn_by_rows_and_weights() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    labels = dis.label(dis.read_votes(ROWS))
    x = np.random.default_rng(0).normal(size=(12, 2))
    row, y, weight = dis.expand(labels)
    by_rows = linear.LogisticRegression().fit(x[row], y, sample_weight=weight).predict_proba(x)
    ours = dis.sklearn.VotesClassifier(linear.LogisticRegression()).fit(x, labels.probabilities).predict_proba(x)
    np.testing.assert_allclose(by_rows, ours, atol=1e-6)


def test_every_result_is_a_frame_and_has_a_page_for_notebooks() -> None:
    truth = np.random.default_rng(0).dirichlet([0.4, 0.4, 0.4], 60)
    votes = dis.simulate_votes(truth, 4, annotators=4, seed=0)
    evaluation = dis.evaluate(votes, truth, resamples=5)
    results = {
        "evaluation": (evaluation, len(evaluation.overall) + len(evaluation.by_stratum("agreement")) // 3 * 2),
        "scores": (evaluation.overall, len(evaluation.overall)),
        "differences": (evaluation.against_baselines(), len(evaluation.against_baselines())),
        "agreement": (dis.agreement(votes, resamples=5), 4),
        "inspection": (dis.inspect(votes, resamples=5), 8),
        "plan": (dis.plan(votes, budget=200), len(dis.plan(votes, budget=200).choices)),
        "stand-in": (dis.stand_in(votes, truth, resamples=0, least_items=5), 1),
    }
    for name, (result, rows) in results.items():
        frame = result.to_polars()
        assert frame.height == rows, name
        assert result.to_pandas().shape == frame.shape, name
        assert "<table" in result._repr_html_(), name
        assert not any(dtype.is_nested() for dtype in frame.dtypes), name


def test_metrics_are_there_whatever_was_touched_before() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from dissensus import metrics; print(metrics.kl.__name__)"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "kl"), done.stderr


def test_counts_keep_the_names_of_their_frame_and_refuse_one_name_twice() -> None:
    votes = dis.votes_from_counts(pd.DataFrame({"p": [3, 1], "n": [0, 2]}, index=["a", "b"]))
    assert (votes.classes, votes.items.tolist()) == (("p", "n"), ["a", "b"])
    assert dis.label(dis.votes_from_counts([[3, 0], [1, 2]], items=["a", "b"])).to_pandas().shape[0] == 2
    with pytest.raises(dis.InputError, match="2 names of items for 2; give each one name of its own"):
        dis.votes_from_counts([[3, 0], [1, 2]], items=["a", "a"])
    with pytest.raises(dis.InputError, match="1 names of classes for 2"):
        dis.votes_from_counts([[3, 0], [1, 2]], classes=["p"])


def test_a_plan_takes_systems_as_evaluate_does_and_refuses_what_is_none() -> None:
    truth = np.random.default_rng(0).dirichlet([0.4, 0.4, 0.4], 60)
    votes = dis.simulate_votes(truth, 4, annotators=8, seed=0)
    frame = pd.DataFrame(truth, columns=votes.classes).assign(item=votes.items.tolist())
    systems = {"a": truth * 0.8 + 0.2 / 3, "b": np.full_like(truth, 1 / 3)}
    expected = dis.plan(votes, budget=300, systems=systems).best
    shuffled = {
        name: frame.assign(**dict(zip(votes.classes, table.T, strict=True))).sample(frac=1, random_state=0)
        for name, table in systems.items()
    }
    found = dis.plan(votes, budget=300, systems=shuffled).best
    assert expected is not None
    assert found is not None
    assert (found.items, found.k) == (expected.items, expected.k)
    with pytest.raises(dis.InputError, match="sum"):
        dis.plan(votes, budget=300, systems={"a": truth * 2, "b": truth})
