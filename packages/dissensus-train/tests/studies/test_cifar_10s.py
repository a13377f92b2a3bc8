"""CIFAR-10S: probabilities that people stated, without votes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from dissensus.cli import app
from dissensus.datasets.catalogue import DATASETS, load, load_labelled
from dissensus.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def cifar_10s(**changes: Any) -> dict[str, Any]:
    """Two images in the format of cifar10s_t2clamp_redist10.json."""
    sure, torn = np.eye(10)[3].tolist(), [0.0, 0.0, 0.1, 0.5, 0.0, 0.4, 0.0, 0.0, 0.0, 0.0]
    return {"4097": [sure, torn, sure], "0": [torn]} | changes


def test_cifar_10s_is_the_mean_of_what_people_stated_and_has_no_votes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISSENSUS_DATA", str(tmp_path))
    (tmp_path / "cifar-10s").mkdir()
    path = tmp_path / "cifar-10s" / "cifar10s_t2clamp_redist10.json"
    path.write_text(json.dumps(cifar_10s()))
    human = load_labelled("cifar-10s").human
    assert human.items.tolist() == [4097, 0]
    assert human.classes[3] == "cat"
    np.testing.assert_allclose(human.probabilities[0, [2, 3, 5]], [0.1 / 3, 2.5 / 3, 0.4 / 3])
    assert human.panel_size.tolist() == [0, 0]
    with pytest.raises(InputError, match="published as label distributions, without votes"):
        load("cifar-10s")
    with pytest.raises(SystemExit) as ended:
        app(["labels", "cifar-10s", "-o", str(tmp_path / "labels.csv")])
    assert ended.value.code in (0, None)
    assert pl.read_csv(tmp_path / "labels.csv")["cat"].to_list() == pytest.approx([2.5 / 3, 0.5])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[1]", "cannot be read as lists"),
        ("{}", "does not hold ten probabilities"),
        (json.dumps(cifar_10s(**{"10000": [[1.0] + [0.0] * 9]})), "test images 0 to 9999"),
        (json.dumps(cifar_10s(**{"7": [[0.5] * 10]})), "image 7: .* are not probabilities that sum to 1"),
        (json.dumps(cifar_10s(**{"7": [[1.0]]})), "cannot be read as lists of ten"),
        (json.dumps(cifar_10s(**{"7": []})), "does not hold ten probabilities per person"),
        (json.dumps(cifar_10s(**{"7": [[float("nan")] + [0.0] * 9]})), "image 7: .* are not probabilities"),
    ],
)
def test_another_file_than_cifar_10s_is_refused(content: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "cifar10s.json"
    path.write_text(content)
    with pytest.raises(InputError, match=told):
        DATASETS["cifar-10s"].read(path)
