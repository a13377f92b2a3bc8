"""The benchmark of human label variation: one protocol, many vote sets, every method in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_papers.bench.outcome import Standings as Standings
    from dissensus_papers.bench.outcome import standings as standings
    from dissensus_papers.bench.protocol import Protocol as Protocol
    from dissensus_papers.bench.protocol import read_protocol as read_protocol
    from dissensus_papers.bench.ranking import MethodRanking as MethodRanking
    from dissensus_papers.bench.ranking import rank_methods as rank_methods
    from dissensus_papers.bench.running import run_bench as run_bench

__getattr__, __dir__ = lazy_names(__name__)
