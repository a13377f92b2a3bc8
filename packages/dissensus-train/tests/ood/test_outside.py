"""OOD detection from anybody's logits and features, in NumPy or PyTorch, in Python and on the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import typer
from scipy.special import softmax
from scipy.stats import entropy as scipy_entropy
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve
from typer.testing import CliRunner

from dissensus.errors import InputError
from dissensus_train import ood as room
from dissensus_train.cli.ood import ood, read_scores
from dissensus_train.ood import (
    MEASURES,
    OodResult,
    auroc,
    disagreement,
    given_outputs,
    measure_outputs,
    measure_scores,
    read_outputs,
    roc_curves,
)

if TYPE_CHECKING:
    from pathlib import Path

app = typer.Typer()
app.command()(ood)


def outputs(items: int, *, seeds: int = 3, spread: float = 0.3, sure: float = 3.0, seed: int = 0) -> dict[str, Any]:
    """Logits of seeds that agree up to a spread, features around a mean a class, and the labels."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 4, items)
    logits = sure * np.eye(4)[label] + rng.normal(0, 1, (items, 4)) + rng.normal(0, spread, (seeds, items, 4))
    features = 2 * np.eye(4)[label] + rng.normal(0, 0.4, (seeds, items, 4))
    return {"logits": logits, "features": features, "labels": label}


def odd(items: int, **more: Any) -> dict[str, Any]:
    return outputs(items, **{"spread": 1.5, "sure": 1.0, "seed": 1, **more})


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize("score", ["msp", "max_logit", "entropy", "energy", "disagreement", "mahalanobis", "knn"])
def test_scores_take_numpy_and_torch_alike_and_give_what_they_were_given(score: str) -> None:
    made = outputs(40)
    given: tuple[Any, ...] = (made["logits"][0],)
    settings = {"k": 3} if score == "knn" else {}
    if score == "disagreement":
        given = (made["logits"],)
    if score in ("mahalanobis", "knn"):
        given = (odd(10)["features"][0], made["features"][0], *((made["labels"],) if score == "mahalanobis" else ()))
    of = getattr(room, score)
    ours, theirs = of(*given, **settings), of(*map(torch.from_numpy, given), **settings)
    assert isinstance(ours, np.ndarray)
    assert isinstance(theirs, torch.Tensor)
    assert ours == pytest.approx(theirs.numpy())
    single = of(*(each.astype(np.float32) if each.dtype == float else each for each in given), **settings)
    assert single.dtype == np.float64
    whole = [np.rint(10 * each) if each.dtype == float else each for each in given]
    listed = [each.astype(np.int64).tolist() for each in whole]
    assert of(*listed, **settings) == pytest.approx(of(*whole, **settings))
    assert single == pytest.approx(ours, rel=1e-4, abs=1e-6)


def test_disagreement_is_the_entropy_of_the_mean_less_the_mean_entropy() -> None:
    logits = outputs(50, spread=2.0)["logits"]
    q = softmax(logits, axis=2)
    expected = scipy_entropy(q.mean(axis=0), axis=1) - scipy_entropy(q, axis=2).mean(axis=0)
    found = disagreement(logits)
    assert found == pytest.approx(expected, abs=1e-12)
    assert (found <= np.log(3) + 1e-12).all()
    # Seeds that say the same never disagree, however unsure they are.
    assert disagreement(np.repeat(logits[:1], 3, axis=0)) == pytest.approx(np.zeros(50), abs=1e-12)
    with pytest.raises(InputError, match="two seeds or more"):
        disagreement(logits[:1])


def test_a_roc_curve_is_scikit_learns_and_encloses_the_auroc() -> None:
    rng = np.random.default_rng(0)
    inside, outside = rng.integers(0, 12, (2, 90)).astype(float), rng.integers(3, 15, (2, 60)).astype(float)
    at = np.linspace(0, 1, 2001)
    found = roc_curves(inside, outside, at=at)
    for curve, one, other in zip(found, inside, outside, strict=True):
        assert np.trapezoid(curve, at) == pytest.approx(auroc(one, other), abs=1e-3)
        alarms, hits, _ = roc_curve(np.repeat([0, 1], [90, 60]), np.concatenate([one, other]), drop_intermediate=False)
        highest = {x: max(hits[alarms == x]) for x in alarms}
        assert roc_curves([one], [other], at=np.array(list(highest)))[0] == pytest.approx(list(highest.values()))


def test_measures_of_given_outputs_are_scikit_learns_of_the_same_scores() -> None:
    inside, outside = outputs(120), odd(80)
    found = measure_outputs(given_outputs(**inside), {"odd": given_outputs(**outside)}, resamples=50)
    assert found.settings["scores"] == ["msp", "max-logit", "entropy", "energy", "disagreement"]
    truth = np.repeat([0, 1], [120, 80])
    for number in range(3):
        values = np.concatenate([room.energy(each["logits"][number]) for each in (inside, outside)])
        assert found.get("odd", "energy", system="model").by_seed[number] == pytest.approx(roc_auc_score(truth, values))
        row = found.get("odd", "energy", system="model", measure="aupr-ood")
        assert row.by_seed[number] == pytest.approx(average_precision_score(truth, values))
    together = np.concatenate([disagreement(each["logits"]) for each in (inside, outside)])
    row = found.get("odd", "disagreement", system="model")
    assert list(row.by_seed) == pytest.approx([roc_auc_score(truth, together)])
    assert row.value.value > 0.7
    assert OodResult.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_features_need_training_features_and_every_score_says_what_it_lacks() -> None:
    inside, outside = outputs(60), odd(40)
    training = given_outputs(**outputs(200, seed=5))
    both = measure_outputs(
        given_outputs(**inside), {"odd": given_outputs(**outside)}, training=training, k=5, resamples=0
    )
    assert {"mahalanobis", "knn"} <= set(both.settings["scores"])
    only = {"features": inside["features"]}, {"features": outside["features"]}
    near, far = (given_outputs(**each) for each in only)
    assert measure_outputs(near, {"odd": far}, training=training, k=5, resamples=0).settings["scores"] == [
        "mahalanobis",
        "knn",
    ]
    one = given_outputs(logits=inside["logits"][0]), given_outputs(logits=outside["logits"][0])
    for (a, b), scores, said in (
        ((near, far), None, "enough for no score"),
        ((near, far), ("msp",), "msp needs logits; give logits"),
        (one, ("disagreement",), "disagreement needs seeds; give logits of two seeds or more"),
        (one, ("odin",), "odin needs gradients"),
        (one, ("knn",), "knn needs features"),
        ((one[0], far), ("msp",), "msp needs logits"),
        ((given_outputs(**inside), given_outputs(logits=outside["logits"][:, :, :3])), None, "give outputs of one"),
        ((given_outputs(**inside), given_outputs(logits=outside["logits"][:2])), None, "give outputs of one"),
    ):
        with pytest.raises(InputError, match=said):
            measure_outputs(a, {"odd": b}, scores=scores)


def test_outputs_that_are_none_are_refused() -> None:
    made = outputs(5)
    for given, said in (
        ({}, "neither logits nor features"),
        ({"logits": np.zeros(5)}, r"logits have shape \(5,\)"),
        ({"logits": np.full((5, 2), np.nan)}, "hold NaN or infinity"),
        ({"logits": made["logits"], "features": made["features"][:, :4]}, "give both alike"),
        ({"logits": made["logits"], "labels": made["labels"][:2]}, "a class index for 5 items"),
    ):
        with pytest.raises(InputError, match=said):
            given_outputs(**given)


def test_the_mean_over_near_and_over_far_sets_is_that_of_their_measures() -> None:
    sets = {name: given_outputs(**odd(60, seed=seed)) for seed, name in enumerate(("kana", "letters", "photos"), 3)}
    found = measure_outputs(
        given_outputs(**outputs(100)), sets, near=("kana", "letters"), far=("photos",), resamples=100
    )
    assert [each.kind for each in found.sets] == ["near", "near", "far"]
    for measure in MEASURES:
        one, other, mean, far, photos = (
            found.get(name, "msp", system="model", measure=measure)
            for name in ("kana", "letters", "near", "far", "photos")
        )
        assert mean.value.value == pytest.approx((one.value.value + other.value.value) / 2)
        assert far.value == photos.value
    with pytest.raises(InputError, match="'paper' is called near or far, and is no set or named twice; choose kana"):
        measure_outputs(given_outputs(**outputs(100)), sets, near=("paper",))
    with pytest.raises(InputError, match="a set is called near or far, as the means"):
        measure_outputs(given_outputs(**outputs(100)), {"near": sets["kana"]}, near=("near",))


def test_the_interval_of_a_mean_over_sets_holds_its_truth() -> None:
    """OOD items of two sets are drawn with one seed; they are no pairs, and the interval must not take them so."""
    rng = np.random.default_rng(0)
    held, truth = 0, 0.760  # of two normals one apart, with deviation 1
    for trial in range(150):
        inside, one, other = rng.normal(0, 1, 100), rng.normal(1, 1, 100), rng.normal(1, 1, 100)
        logits = [np.stack([np.zeros(100), -each], axis=1) for each in (inside, one, other)]
        first, *rest = (given_outputs(logits=each) for each in logits)
        found = measure_outputs(
            first,
            dict(zip("ab", rest, strict=True)),
            near=("a", "b"),
            scores=("energy",),
            resamples=200,
            seed=trial,
        )
        value = found.get("near", "energy", system="model").value
        assert value.low is not None
        assert value.high is not None
        held += value.low <= truth <= value.high
    assert held >= 0.88 * 150


@pytest.fixture
def files(tmp_path: Path) -> Path:
    np.savez(tmp_path / "in.npz", **outputs(60))
    np.savez(tmp_path / "letters.npz", **odd(40))
    np.savez(tmp_path / "photos.npz", **odd(30, seed=9))
    np.savez(tmp_path / "train.npz", **outputs(200, seed=5))
    return tmp_path


def test_the_command_measures_files_of_outputs(files: Path) -> None:
    done = run(
        *("--id", files / "in.npz", "--ood", files / "letters.npz", "--ood", f"far-off={files / 'photos.npz'}"),
        *("--training", files / "train.npz", "--near", "letters", "--far", "far-off"),
        *("--json", files / "out.json", "-o", files / "ood.html"),
    )
    assert done.exit_code == 0, done.output
    assert "letters, near: 40 OOD items (logits and features of 3 seeds, as they were given) against 60" in " ".join(
        done.stdout.split()
    )
    for word in ("disagreement", "mahalanobis", "AUPR", "FPR95"):
        assert word in done.stdout
    found = OodResult.from_dict(json.loads((files / "out.json").read_text(encoding="utf-8")))
    assert str(found.get("far-off", "knn", system="model").value) in done.stdout
    page = (files / "ood.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2 * 2 * len(found.settings["scores"])
    value = found.get("letters", "energy", system="model", measure="fpr95-in-distribution-positive").value
    assert f"<small>[{value.low:.3f}, {value.high:.3f}]</small>" in page
    assert "<script" not in page


def test_the_command_refuses_what_does_not_go_together(files: Path) -> None:
    (files / "broken.npz").write_bytes(b"PK")
    for arguments, said in (
        (("--ood", files / "letters.npz"), "give a study or its run store, or outputs of a model with --id FILE"),
        (("study.toml", "--id", files / "in.npz"), "give a study or its run store, or outputs"),
        (("--id", files / "in.npz"), "no OOD set is given; name an .npz of outputs with --ood FILE"),
        (("--id", files / "broken.npz", "--ood", files / "letters.npz"), "broken.npz: cannot be read"),
        (("--id", files / "in.npz", "--ood", files / "letters.npz", "--items", 5), "--items is of a study's items"),
    ):
        with pytest.raises(InputError, match=said):
            run(*arguments)


def test_a_file_is_read_as_it_was_written(files: Path) -> None:
    read = read_outputs(files / "in.npz")
    assert (read.seeds, len(read)) == (3, 60)
    assert read.logits is not None
    assert read.logits.numpy() == pytest.approx(outputs(60)["logits"])


def test_scores_from_anywhere(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [("id", value) for value in rng.normal(size=40)] + [("odd", value) for value in rng.normal(2, 1, 12)]
    table = tmp_path / "scores.csv"
    table.write_text("item,set,mine\n" + "".join(f"{k},{of},{value}\n" for k, (of, value) in enumerate(lines)))
    found = measure_scores(read_scores(table), far=("odd",), resamples=50)
    inside, outside = ([value for of, value in lines if of == name] for name in ("id", "odd"))
    assert found.get("odd", "mine", system="model").value.value == pytest.approx(auroc(inside, outside))
    assert found.notes() == ["odd: with 12 OOD items hardly anything can be told; give 20 or more, better 100"]
    ran = run("--scores", table, "-o", tmp_path / "page.html")
    assert ran.exit_code == 0, ran.output
    assert "ROC curves of mine on odd" in (tmp_path / "page.html").read_text()
    with pytest.raises(InputError, match=r"--ood is of a study's items"):
        run("--scores", table, "--ood", table)
    finite = "'mine' is no finite number in row 2"
    for rows, said in {
        **{f"set,mine\nid,1\nfar,{wrong}\n": finite for wrong in ("unknown", "inf", "nan", "")},
        "set,mine\nid,1\n,2\n": "'set' is empty in row 2",
        "item,set\na,id\n": "give 'set' .* and scores",
        "item,set,mine\na,id,1\nb,far,2\nb,far,3\n": "item 'b' is there twice",
        "item,set,mine\na,id,1\na,far,2\n": "item 'a' is there twice",
    }.items():
        (tmp_path / "other.csv").write_text(rows)
        with pytest.raises(InputError, match=said):
            read_scores(tmp_path / "other.csv")
    (tmp_path / "other.csv").write_text("item,set,mine\na,id,1\nb,far,2\nb,near,2\n")
    assert list(read_scores(tmp_path / "other.csv")) == ["", "far", "near"]
    with pytest.raises(InputError, match=r"there is no file nosuch\.csv"):
        run("--scores", "nosuch.csv")
    with pytest.raises(InputError, match="scores of in-distribution items, their set called id"):
        measure_scores({"far": {"mine": [1.0]}})


def test_items_that_are_one_to_the_model_are_told() -> None:
    rng = np.random.default_rng(0)
    blank = given_outputs(logits=np.zeros((25, 3)))
    found = measure_outputs(given_outputs(logits=rng.normal(size=(30, 3))), {"blank": blank}, resamples=20)
    assert found.sets[0].distinct == 1
    assert "its 25 OOD items have 1 different scores" in found.notes()[0]
