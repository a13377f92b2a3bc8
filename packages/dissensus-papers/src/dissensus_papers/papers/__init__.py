"""Papers reproduced: their claims as data, judged on our own runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_papers.papers.claims import Claim as Claim
    from dissensus_papers.papers.claims import Paper as Paper
    from dissensus_papers.papers.claims import read_paper as read_paper
    from dissensus_papers.papers.claims import shipped_papers as shipped_papers
    from dissensus_papers.papers.judging import JudgedClaim as JudgedClaim
    from dissensus_papers.papers.judging import judge_paper as judge_paper
    from dissensus_papers.papers.kept import read_summaries as read_summaries
    from dissensus_papers.papers.pages import write_pages as write_pages
    from dissensus_papers.papers.summary import StudySummary as StudySummary
    from dissensus_papers.papers.summary import summarise as summarise

__getattr__, __dir__ = lazy_names(__name__)
