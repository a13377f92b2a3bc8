"""`dissensus curate ambiguous`, which joins the commands of another package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from typer.testing import CliRunner

from dissensus.cli import app
from dissensus.datasets import read_source
from dissensus.errors import InputError
from dissensus_papers.digits import Blending

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from typer.testing import Result


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_ambiguous_digits_are_a_source_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = Blending(
        vae_images=300, vae_batches=20, members=2, member_images=300, labeller_images=300, member_batches=20,
        mutual_information=2.0,
    )  # fmt: skip
    monkeypatch.setattr("dissensus_papers.digits.ambiguous.Blending", lambda: few)
    out = tmp_path / "blends.npz"
    made = run("curate", "ambiguous", "-n", "12", "-o", out, "--digits", tmp_path)
    assert made.exit_code == 0, made.output
    assert "12 ambiguous digits" in made.stdout
    source = read_source(out)
    assert len(source) == 12
    assert source.images is not None
    assert source.images.shape == (12, 1, 28, 28)
    with np.load(out) as kept:
        np.testing.assert_allclose(kept["probabilities"].sum(axis=1), 1, atol=1e-6)
        assert (kept["probabilities"].argmax(axis=1) == kept["labels"]).all()
    failed = run("curate", "ambiguous", "-o", tmp_path / "nowhere" / "blends.npz")
    assert isinstance(failed.exception, InputError)
    assert "there is no folder" in str(failed.exception)
