"""What Linux has and other systems do not: each has a fallback, and it runs here."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import pytest

from dissensus_train.cores import available_cores, clean_processes


def test_cores_are_those_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    assert available_cores() == 1


def test_where_the_system_cannot_tell_all_cores_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert available_cores() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cores() == 1


@pytest.mark.parametrize("methods", [["fork", "spawn", "forkserver"], ["spawn"]])
def test_workers_start_with_and_without_a_fork_server(methods: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: methods)
    context = clean_processes("dissensus.errors")
    assert context.get_start_method() == methods[-1]
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(abs, -2).result() == 2
