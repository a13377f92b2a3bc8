"""Papers reproduced: their claims as data, judged on our own runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.papers.claims import Claim as Claim
    from dissensus.papers.claims import Paper as Paper
    from dissensus.papers.claims import read_paper as read_paper
    from dissensus.papers.claims import shipped_papers as shipped_papers
    from dissensus.papers.judging import Judged as Judged
    from dissensus.papers.judging import judge_paper as judge_paper
    from dissensus.papers.pages import write_pages as write_pages
    from dissensus.papers.summary import StudySummary as StudySummary
    from dissensus.papers.summary import read_summaries as read_summaries
    from dissensus.papers.summary import summarise as summarise

__getattr__, __dir__ = lazy_names(__name__)
