"""What all tests share."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

# Deadlines measure the machine, not the code, and a gate must answer twice alike: the same examples every time.
# `pytest --hypothesis-profile=explore` looks for more and for new ones.
settings.register_profile("explore", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("house", settings.get_profile("explore"), derandomize=True, max_examples=25)
settings.load_profile("house")


# The tests of all packages are one package, for programs that tests start as well.
ROOT = Path(__file__).parent
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT), *map(str, sorted(ROOT.glob("packages/*"))), *filter(None, [os.environ.get("PYTHONPATH")])]
)

# There is a worker per core: threads of their own only get in each other's way.
for name in ("OMP_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(name, "1")

# What was compiled once is read by every program that a test starts and by the next run, also where the environment
# asks Python to keep nothing: rewriting the asserts of all tests takes about seven seconds of each worker.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Workers of pytest-xdist are told a width of 80; commands are tested at the width that they choose themselves.
os.environ.pop("COLUMNS", None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of a file together: what they share is then made once, and not by each worker.

    Files go in the order in which they were found, which ends with doctests, and not by their number of tests: a few
    tests that start servers or clusters would come last, and one worker would wait for the other.
    """
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log) if config.getoption("dist") == "load" else None


# `dissensus` treats an empty variable as missing, but `"DISSENSUS_DATA" in os.environ` does not.
if not os.environ.get("DISSENSUS_DATA"):
    os.environ.pop("DISSENSUS_DATA", None)


@pytest.fixture(autouse=True)
def _doctests_write_elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each doctest in an empty folder, so that no doctest leaves files in the current folder."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what imports have made: millions of objects, looked at again and again."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how long the tests of each room took, over all workers, where tests of several rooms ran."""
    from tests.rooms import room_of

    seconds: dict[str, float] = defaultdict(float)
    tests: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                room = room_of(ROOT / report.nodeid.partition("::")[0])
                seconds[room] += report.duration
                tests[room] += report.when == "call"
    if len(seconds) > 1:
        terminalreporter.section("seconds by room")
        for room, taken in sorted(seconds.items(), key=lambda each: -each[1]):
            terminalreporter.write_line(f"{room:28} {taken:7.1f} s {tests[room]:6} tests")
        terminalreporter.write_line(f"{'in all':28} {sum(seconds.values()):7.1f} s {tests.total():6} tests")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data; tests that need it skip where there is none."""
    folder = os.environ.get("DISSENSUS_DATA")
    if not folder:
        pytest.skip("DISSENSUS_DATA is not set: no real data here")
    return Path(folder)


CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium; tests that need it skip where there is none."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    # Wait for what a page shows with `expect`: `wait_for_function` asks again by evaluating text, which pages forbid.
    playwright.expect.set_options(timeout=60_000)
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield running
        running.close()
