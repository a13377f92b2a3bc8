from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus_train.delivery import DELIVERIES
from dissensus_train.studies import read_study
from dissensus_train.training.data import TrainingData, split_items
from dissensus_train.training.loop import train_loop
from dissensus_train.training.settings import Training
from tests.training.problems import QUICK, images, run

if TYPE_CHECKING:
    from pathlib import Path

DATA = images(items=60)


def changed(**change: Any) -> TrainingData:
    return replace(DATA, **change)


def with_nan() -> np.ndarray[Any, Any]:
    features: np.ndarray[Any, Any] = DATA.features.copy()
    features[7, 0, 0, 0] = np.nan
    return features


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"features": with_nan()}, "features of item 7 hold NaN"),
        ({"features": DATA.features[:-1]}, "59 rows of features for 60 labelled items"),
        ({"features": DATA.features.astype(np.float64)}, "convert them to float32"),
        ({"targets": {"short": DATA.human.take(np.arange(10))}}, "target 'short' has 10 items"),
        ({"splits": {"test": np.arange(3)}}, "no split 'train'"),
        ({"splits": {"train": np.arange(50), "test": np.arange(49, 60)}}, "in two splits"),
        ({"splits": {"train": np.array([0, 99])}}, "outside 0 to 59"),
    ],
)
def test_data_that_do_not_fit_are_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        changed(**change)


def test_a_class_that_nobody_voted_for_in_training_is_refused_by_name() -> None:
    seen = np.flatnonzero(DATA.human.probabilities[:, 2] == 0)
    with pytest.raises(InputError, match="nobody voted for class '2' on any item of the split 'train'"):
        changed(splits={"train": seen})


def test_features_are_normalised_by_the_training_items_alone() -> None:
    seen = DATA.normalised()[DATA.splits["train"]]
    assert seen.mean() == pytest.approx(0, abs=1e-5)
    assert seen.std() == pytest.approx(1, abs=1e-5)


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=200),
    st.sampled_from([{"train": 0.7, "validation": 0.15, "test": 0.15}, {"train": 0.5, "test": 0.5}]),
    st.integers(0, 99),
)
def test_splits_share_no_item_and_have_the_shares_of_each_group(
    groups: list[int], shares: dict[str, float], seed: int
) -> None:
    codes = np.array(groups)
    splits = split_items(codes, shares, seed=seed)
    assert sorted(np.concatenate(list(splits.values())).tolist()) == list(range(len(groups)))
    for name, share in shares.items():
        for group in set(groups):
            size = (codes == group).sum()
            assert abs((codes[splits[name]] == group).sum() - share * size) <= 1
    again = split_items(codes, shares, seed=seed)
    assert all((splits[name] == again[name]).all() for name in shares)


def test_items_that_belong_together_stay_together() -> None:
    together = np.array([0, 1, 2, 0, 1, 5, 6, 7, 8, 9])
    splits = split_items(np.zeros(10, dtype=np.int64), {"train": 0.5, "test": 0.5}, seed=0, together=together)
    assert not set(together[splits["train"]]) & set(together[splits["test"]])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"batch_size": 0}, "batch_size is 0; it must be 1 or more"),
        ({"epochs": 0}, "epochs is 0"),
        ({"optimiser": "lion"}, "optimiser is 'lion'; choose adam, sgd, adamw, or give a path"),
        ({"selection_split": "test"}, "nothing is ever selected on the test split"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"plateau_factor": 1.0}, "plateau_factor"),
        ({"patience": 0}, "patience is 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Training(**given)


def test_a_regime_is_a_starting_point(tmp_path: Path) -> None:
    settings = regime_of(tmp_path, 'regime = "sgd-cosine"\nepochs = 3')
    assert (settings.optimiser, settings.momentum, settings.epochs) == ("sgd", 0.9, 3)
    with pytest.raises(InputError, match=r"'regime' names 'sgd-sine', .* choose early-stopping"):
        regime_of(tmp_path, 'regime = "sgd-sine"')


def regime_of(folder: Path, training: str) -> Training:
    (folder / "study.toml").write_text(f'[dataset]\nname = "cifar-10h"\n[training]\n{training}\n')
    return read_study(folder / "study.toml").training


def test_selection_needs_its_split() -> None:
    data = changed(splits={"train": np.arange(40), "test": np.arange(40, 60)})
    with pytest.raises(InputError, match="the selection split 'validation' has no items"):
        train_loop(run(data, training=QUICK), data)


@pytest.mark.parametrize("selection", ["loss", "soft-nll", "accuracy"])
@pytest.mark.parametrize("delivery", [*DELIVERIES])
def test_a_run_is_selected_on_what_was_asked_for(delivery: str, selection: str) -> None:
    """On its own target as the loss sees it in the mean, on people's distribution, or on their majority."""
    settings = replace(QUICK, epochs=1, patience=None, selection=selection)  # type: ignore[arg-type]
    result = train_loop(run(DATA, delivery=delivery, training=settings), DATA)
    assert result.chosen_epoch == 0
    human = DATA.human.take(DATA.splits["validation"])
    q = result.predictions["validation"].astype(np.float64)
    majority = selection == "loss" and delivery in ("majority", "label-smoothing", "mixup")
    compared = human.one_hot() if majority else human.probabilities
    expected = -(compared * np.log(q)).sum(axis=1).mean()
    if selection == "accuracy":
        expected = -(q.argmax(axis=1) == human.majority().label).mean()
    assert result.history["selection"][0] == pytest.approx(expected, rel=1e-4)


def test_an_item_in_the_middle_of_its_place_decides_its_split() -> None:
    """Of 3 items a group at 0.5 / 0.5 the places are 1/6, 3/6 and 5/6, and a place on the edge belongs to the next."""
    splits = split_items(np.repeat([0, 1], 3), {"train": 0.5, "test": 0.5}, seed=0)
    assert [len(splits[name]) for name in ("train", "test")] == [2, 4]
    shares = {"train": 0.4, "validation": 0.4, "test": 0.2}
    assert [len(part) for part in split_items(np.zeros(5, dtype=np.int64), shares, seed=0).values()] == [2, 2, 1]
    assert [len(part) for part in split_items(np.zeros(4, dtype=np.int64), shares, seed=0).values()] == [2, 1, 1]
