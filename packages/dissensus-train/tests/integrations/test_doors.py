"""No library is imported unless it is used, and one that is missing is named with the extra that installs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dissensus.parts import install_line

LIBRARIES = ("accelerate", "datasets", "lightgbm", "lightning", "sklearn", "transformers", "xgboost")


PROGRAM = f"""
import sys
import dissensus as dis
for name in dir(dis):
    getattr(dis, name)
dis.hf.Delivering, dis.hf.labelled
print([name for name in {LIBRARIES} if name in sys.modules])
for name in ("accelerate", "lightning", "sklearn"):
    sys.modules[name] = None
for use in (
    lambda: dis.hf.Trainer,
    lambda: dis.lightning.DeliveryCallback,
    lambda: dis.sklearn.VotesClassifier,
    lambda: dis.sklearn.scorer,
):
    try:
        use()
    except dis.InputError as error:
        print(error)
"""


@pytest.fixture(scope="module")
def printed() -> list[str]:
    """What a program prints that takes all names, and then uses libraries that are not there."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_nothing_is_imported_before_it_is_used(printed: list[str]) -> None:
    assert printed[0] == "[]"


def test_a_library_that_is_missing_is_named_with_its_extra(printed: list[str]) -> None:
    assert printed[1:] == [
        f"dis.hf.Trainer: accelerate is not installed; get it with `{install_line('hf')}`",
        f"dis.lightning: lightning is not installed; get it with `{install_line('lightning')}`",
        f"dis.sklearn: scikit-learn is not installed; get it with `{install_line('sklearn')}`",
        f"dis.sklearn: scikit-learn is not installed; get it with `{install_line('sklearn')}`",
    ]
