"""The example of a web service serves a bundle: one text, many texts, and refusals that say why."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

from dissensus_train.bundles import export_bundle, load_model
from tests.bundles.test_texts import trained

EXAMPLE = Path(__file__).parents[4] / "examples" / "serve_fastapi.py"


def test_the_example_serves_one_text_and_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    testclient = pytest.importorskip("fastapi.testclient", reason="fastapi is not installed")
    folder, _ = export_bundle(trained(tmp_path, model="linear", encoder='encoder = "tfidf"'), tmp_path / "model")
    monkeypatch.setenv("DISSENSUS_MODEL", str(folder))
    model, texts = load_model(folder), ["good good", "bad plain"]
    said = model.predict_proba(texts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = testclient.TestClient(runpy.run_path(str(EXAMPLE))["app"])
        many = client.post("/predict", json=texts)
        one = client.get("/predict", params={"text": texts[0]})
        empty = client.post("/predict", json=["good", " "])
        wrong = client.post("/predict", json=["good", None])
    assert many.status_code == 200
    np.testing.assert_allclose([list(row.values()) for row in many.json()], said)
    assert list(many.json()[0]) == list(model.classes)
    assert one.json() == many.json()[0]
    assert empty.status_code == 422
    assert empty.json()["detail"] == "predict: item 1 has an empty text; remove it, or fill it"
    assert wrong.status_code == 422
