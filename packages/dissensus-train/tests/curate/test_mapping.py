"""A probe finds the items whose label is wrong, and the map is the one that dynamics makes of its runs."""

from __future__ import annotations

import numpy as np
import pytest

from dissensus.datasets import Source
from dissensus.dynamics import data_map
from dissensus.errors import InputError
from dissensus_train.curate import ItemList, map_items
from dissensus_train.curate.item_list import listed
from dissensus_train.curate.labelled import classes_of, features_of, labelled_data
from dissensus_train.training import Training, run_on, train


def bars(n: int = 200, wrong: int = 10) -> Source:
    """Images with a bright left or right half; the first few say the other class."""
    generator = np.random.default_rng(0)
    side = np.arange(n) % 2
    pixels = generator.integers(0, 80, (n, 1, 8, 8))
    pixels[side == 0, :, :, :4] += 150
    pixels[side == 1, :, :, 4:] += 150
    said = np.where(np.arange(n) < wrong, 1 - side, side)
    return Source(
        name="bars",
        items=np.array([f"i{k}" for k in range(n)]),
        images=pixels.astype(np.uint8),
        labels=np.array(["left", "right"])[said],
    )


def test_items_of_the_wrong_class_are_the_hard_ones() -> None:
    mapped = map_items([bars()], model="linear", epochs=4, seeds=2, engine="loop")
    hardest = np.argsort(mapped.columns["confidence"])[:10]
    assert sorted(hardest) == list(range(10))
    assert (mapped.columns["correctness"][:10] < 0.5).all()
    assert not (mapped.columns["region"][:10] == "easy").any()


def test_the_map_is_that_of_the_same_runs() -> None:
    source = bars()
    mapped = map_items([source], model="linear", epochs=3, seeds=2, seed=5, engine="loop", regions=0.1)
    classes, (code,) = classes_of([source], where="test")
    data = labelled_data(
        "bars", features_of(source), code, items=source.items, classes=classes, splits={"train": np.arange(200)}
    )
    settings = Training(epochs=3, dynamics=True)
    runs = [
        run_on(data, model="linear", target="original", delivery="majority", seed=k, training=settings) for k in (5, 6)
    ]
    expected = data_map([result.dynamics["train"] for result in train(runs, data, engine="loop")], code, epochs=3)
    np.testing.assert_allclose(mapped.columns["confidence"], expected.confidence, atol=1e-6)
    np.testing.assert_allclose(mapped.columns["variability"], expected.variability, atol=1e-6)
    # A tenth in each region, less where two of them meet.
    assert 20 <= (mapped.columns["region"] != "other").sum() <= 60


def test_each_source_has_a_map_of_its_own_and_columns_are_kept() -> None:
    texts = Source(
        name="texts",
        items=np.array([f"t{k}" for k in range(40)]),
        texts=np.array(["a good day", "a bad night"] * 20, dtype=np.dtypes.StringDType()),
        labels=np.array(["plus", "minus"] * 20),
    )
    everything = listed([bars(), texts])
    only = everything.take(np.array([230, 3, 201, 0, 204, 1])).adding(group=np.array(list("abcdef")))
    mapped = map_items(
        [bars(), texts],
        model="linear",
        epochs=2,
        seeds=1,
        engine="loop",
        only=only,
        regions={"easy": "confidence > .6", "hard": "correctness < .5 & variability < .2"},
    )
    assert mapped.items.tolist() == ["t30", "i3", "t1", "i0", "t4", "i1"]
    assert mapped.columns["group"].tolist() == list("abcdef")
    assert mapped.columns["label"].tolist() == ["plus", "left", "minus", "right", "plus", "left"]
    easy = mapped.columns["confidence"] > 0.6
    wrong = (mapped.columns["correctness"] < 0.5) & (mapped.columns["variability"] < 0.2)
    assert mapped.columns["region"].tolist() == np.select([wrong, easy], ["hard", "easy"], "other").tolist()


def test_what_cannot_be_mapped_is_refused() -> None:
    source = bars(20)
    unlabelled = Source(name="bare", items=source.items, images=source.images)
    with pytest.raises(InputError, match="source 'bare' has no labels"):
        map_items([unlabelled])
    outsider = ItemList(items=np.array(["x"]), sources=np.array(["bars"]))
    with pytest.raises(InputError, match="item 'x' of source 'bars' is not among the sources"):
        map_items([source], only=outsider)
    with pytest.raises(InputError, match="'loss < 1' in the rule of easy is no comparison"):
        map_items([source], model="linear", epochs=1, seeds=1, engine="loop", regions={"easy": "loss < 1"})
