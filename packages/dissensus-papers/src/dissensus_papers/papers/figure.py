"""The small figure of a claim: the paper's value, ours with its interval, and the range that the claim asks for."""

from __future__ import annotations

from html import escape
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dissensus_papers.papers.judging import JudgedClaim

PLOT, HIGH, PRINT = 220, 30, 14
"""Width and height of a claim's figure, and the height of the print below it, in pixels."""


def interval_plot(judged: JudgedClaim, *, about: str) -> str:
    """A claim as an SVG: its side grey, our value with its interval, the paper's a diamond; `about` is it in words."""
    claim, measured = judged.claim, judged.measured
    if measured is None:
        return ""
    value, null = measured.value, measured.null
    ends = claim.equal or claim.in_direction
    shown = [value.value, value.low, value.high, claim.paper, null, *(claim.equal or claim.reproduced)]
    known = [float(each) for each in shown if each is not None and isfinite(each)]
    low, high = min(known), max(known)
    room = 0.08 * (high - low or abs(high) or 1.0)
    low, high = low - room, high + room

    def x(at: float) -> str:
        return f"{(min(max(at, low), high) - low) / (high - low) * PLOT:.1f}"

    middle = HIGH / 2
    parts = [
        f'<rect x="{x(ends[0])}" y="4" width="{float(x(ends[1])) - float(x(ends[0])):.1f}" height="22" fill="#e8ece4"/>'
    ]
    if null is not None:
        parts.append(
            f'<line x1="{x(null)}" x2="{x(null)}" y1="1" y2="{HIGH - 1}" stroke="#8c8c8c" stroke-dasharray="2 2"/>'
        )
    if value.low is not None and value.high is not None:
        reach = f'x1="{x(value.low)}" x2="{x(value.high)}" y1="{middle}" y2="{middle}"'
        parts.append(f'<line {reach} stroke="#0072B2" stroke-width="3"/>')
    parts.append(f'<circle cx="{x(value.value)}" cy="{middle}" r="4.5" fill="#0072B2"/>')
    if claim.paper is not None:
        at = float(x(claim.paper))
        corners = f"{at:.1f},{middle - 6} {at + 6:.1f},{middle} {at:.1f},{middle + 6} {at - 6:.1f},{middle}"
        parts.append(f'<polygon points="{corners}" fill="none" stroke="#b45309" stroke-width="2"/>')
    for at, anchor, end in ((0, "start", low), (PLOT, "end", high)):
        place = f'x="{at}" y="{HIGH + PRINT - 3}" text-anchor="{anchor}" font-size="11" fill="#595959"'
        parts.append(f"<text {place}>{claim.text_of(end)}</text>")
    size = f'width="{PLOT}" height="{HIGH + PRINT}" viewBox="0 0 {PLOT} {HIGH + PRINT}"'
    return f'<svg {size} role="img" aria-label="{escape(about)}">{"".join(parts)}</svg>'
