"""Naming the sides of a pair is arbitrary: with the sides of any items swapped, everything stays the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dissensus as dis
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.evaluation.stand_in import stand_in
from dissensus.labels.labelling import SCHEMES
from dissensus.labels.mixture import SMOOTHINGS, cross_fitted_by_group, fit_prior
from dissensus.votes.sides import swap_sides
from dissensus.votes.table import Annotators, Votes

if TYPE_CHECKING:
    from dissensus.arrays import Mask

ITEMS = 30
SCALES = {2: ("left", "right"), 3: ("left", "tie", "right"), 5: ("left 2", "left 1", "tie", "right 1", "right 2")}


def _case(classes: int, seed: int) -> tuple[Votes, Mask, Any]:
    """Preferences of five people of unlike habits, some of the items, and a model's predictions."""
    rng = np.random.default_rng(seed)
    lean = rng.normal(0.5, 1.2, ITEMS)
    item = np.repeat(np.arange(ITEMS), 4).astype(np.int32)
    who = np.concatenate([rng.permutation(5)[:4] for _ in range(ITEMS)]).astype(np.int32)
    felt = lean[item] + rng.normal(0, np.array([0.3, 0.6, 1.0, 1.0, 2.0])[who])
    label = np.digitize(felt, np.linspace(-1, 1, classes - 1) if classes > 2 else [0.0]).astype(np.int32)
    votes = Votes(
        item=item,
        label=label,
        items=np.arange(ITEMS),
        classes=SCALES[classes],
        annotators=Annotators(who, np.array(["a", "b", "c", "d", "e"], dtype=np.dtypes.StringDType())),
        ordered=classes > 2,
        swapped=rng.random(len(item)) < 0.5,
    )
    model = rng.dirichlet(np.ones(classes), ITEMS) + 0.5 * votes.counts
    return votes, rng.random(ITEMS) < rng.random(), model / model.sum(axis=1, keepdims=True)


cases = st.builds(_case, st.sampled_from(sorted(SCALES)), st.integers(0, 10_000))


def _mirrored(table: Any, swaps: Mask) -> Any:
    return np.where(swaps[:, None], table[..., ::-1], table)


def _close(first: Any, second: Any, path: Any = "") -> None:
    """Whatever a result holds: the same up to rounding."""
    if isinstance(first, dict):
        assert first.keys() == second.keys()
        for name in first:
            _close(first[name], second[name], f"{path} {name}")
    elif isinstance(first, list | tuple):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            _close(one, other, path)
    elif isinstance(first, float):
        # Brackets of a distance along the scale are fitted on a grid that is not symmetric.
        assert second == pytest.approx(first, abs=2e-3 if "wasserstein" in path else 1e-6, nan_ok=True), path
    else:
        assert first == second, path


few = settings(max_examples=5, deadline=None, derandomize=True)
fewer = settings(few, max_examples=2)


@few
@given(cases)
def test_agreement_and_inspection(case: tuple[Votes, Mask, Any]) -> None:
    votes, swaps, _ = case
    other = swap_sides(votes, swaps)
    _close(*(dis.agreement(one, resamples=20).records() for one in (votes, other)))
    first, second = (dis.inspect(one, resamples=20).to_dict() for one in (votes, other))
    # These name classes.
    _close(*({name: one[name] for name in first if name not in ("classes", "contested")} for one in (first, second)))
    assert first["position"]


@few
@given(cases)
def test_labels_and_annotator_models(case: tuple[Votes, Mask, Any]) -> None:
    votes, swaps, _ = case
    other = swap_sides(votes, swaps)
    gold = {3: votes.classes[0], 7: votes.classes[-1]}
    mirror = dict(zip(votes.classes, votes.classes[::-1], strict=True))
    turned = {item: mirror[name] if swaps[item] else name for item, name in gold.items()}
    for scheme, known in SCHEMES.items():
        for mine, theirs in (({}, {}), ({"gold": gold}, {"gold": turned}))[: 1 + ("gold" in known.options)]:
            first, second = dis.label(votes, scheme, **mine), dis.label(other, scheme, **theirs)
            assert len(first) == ITEMS
            # GLAD climbs to a stated slope, and rounding may end the climb elsewhere.
            expected, within = _mirrored(first.probabilities, swaps), 2e-3 if scheme == "glad" else 1e-6
            np.testing.assert_allclose(second.probabilities, expected, atol=within, err_msg=scheme)
    model = dis.label(votes, "dawid-skene").model
    np.testing.assert_allclose(model.confusion, model.confusion[:, ::-1, ::-1], atol=1e-9)


@few
@given(cases)
def test_priors(case: tuple[Votes, Mask, Any]) -> None:
    votes, swaps, _ = case
    first, second = (one.counts.astype(np.float64) for one in (votes, swap_sides(votes, swaps)))
    one_vote = np.eye(first.shape[1])
    for smoothings in SMOOTHINGS:
        forecasts = [fit_prior(mass, smoothings=smoothings, pairs=True).forecast(one_vote) for mass in (first, second)]
        np.testing.assert_allclose(forecasts[1], forecasts[0], atol=1e-9)
        np.testing.assert_allclose(forecasts[0], forecasts[0][::-1, ::-1], atol=1e-9)
    groups = np.arange(ITEMS) % 2
    made = [cross_fitted_by_group(mass, groups, mirrored=groups)[0] for mass in (first, second)]
    for one, same in zip(*made, strict=True):
        np.testing.assert_allclose(same.forecast(one_vote), one.forecast(one_vote), atol=1e-9)


@fewer
@given(cases)
def test_metrics_best_achievable_and_worth_in_people(case: tuple[Votes, Mask, Any]) -> None:
    votes, swaps, model = case
    unfit = () if votes.ordered else ("ordered",)
    names = [name for name, metric in METRICS.items() if not {"original", *unfit} & {*metric.needs}]
    said = (votes, model), (swap_sides(votes, swaps), _mirrored(model, swaps))
    results = [dis.evaluate(one, predicted, metrics=names, resamples=10).to_dict() for one, predicted in said]
    for result in results:
        # Sentences that hold numbers, and what rests on random halves of the votes.
        del result["notes"], result["strata"]
        for row in result["overall"]:
            if row["metric"] == "entropy_pearson":
                del row["corrected"]
        rows = {"overall": ("system", "metric"), "against_baselines": ("system", "against", "metric")}
        for name, key in rows.items():
            result[name] = {" ".join(str(row.get(part)) for part in key): row for row in result[name]}
    for row in (row for result in results for row in result["overall"].values() if row["metric"] == "wasserstein"):
        del row["corrected"]
    _close(*results)


@fewer
@given(cases)
def test_sets_and_predictions_beside_votes(case: tuple[Votes, Mask, Any]) -> None:
    votes, swaps, model = case
    said = (votes, model), (swap_sides(votes, swaps), _mirrored(model, swaps))
    for by in (None, "class"):
        sets = [dis.prediction_sets(one, predicted, by=by, resamples=10).records() for one, predicted in said]
        # Strata by votes rest on random halves of them, and classes go by name.
        _close(*([row for row in rows if row["stratum"] == "all"] for rows in sets))
    first, second = (dis.combine(one, predicted, resamples=10).labels for one, predicted in said)
    np.testing.assert_allclose(second.probabilities, _mirrored(first.probabilities, swaps), atol=1e-6)


@fewer
@given(cases)
def test_whether_a_judge_may_stand_in(case: tuple[Votes, Mask, Any]) -> None:
    votes, swaps, model = case
    both = []
    for one, said in ((votes, model), (swap_sides(votes, swaps), _mirrored(model, swaps))):
        answers = {str(item): one.classes[k] for item, k in zip(one.items, said.argmax(axis=1), strict=True)}
        judged = stand_in(one, {"judge": answers}, least_items=5, resamples=10).to_dict()["models"]
        # These name classes.
        both.append({name: value for name, value in judged["judge"].items() if name not in ("parts", "worst_items")})
    _close(*both)
    # What it says is known from most of the votes: it is worth somebody, on whichever side it stands.
    assert both[0]["people_saved"][0]["saved"]["value"] > 0


def test_what_is_no_preference_is_not_symmetric() -> None:
    """The placebo: of the same votes as plain classes, swapped sides are other data."""
    votes, _, _ = _case(3, 0)
    both = votes, swap_sides(votes, np.arange(ITEMS) < ITEMS // 2)
    one, other = (dis.agreement(replace(of, swapped=None), resamples=0)["krippendorff_alpha_nominal"] for of in both)
    assert one.value != pytest.approx(other.value, abs=1e-3)
