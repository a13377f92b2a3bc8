"""The critical-difference plot: methods at their mean ranks, and bars over those that do not differ significantly."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from dissensus_papers.bench.ranking import MethodRanking

WIDTH, ROW, TOP = 640, 22, 78
"""Of the plot, the height of a row, and the space above the first row, in pixels."""

INK, SOFT, LINE = "#1d2126", "#59616b", "#e2e3de"
COLOURS: Final = {"method": "#0072B2", "baseline": "#8C8C8C"}

SAME: Final = "no significant difference"


def critical_difference_plot(ranking: MethodRanking, *, title: str, baselines: Collection[str] = ()) -> str:
    """The plot as an SVG.

    A row for each method, best first, with its mean rank; a grey line from it covers one critical difference, so that
    whatever lies to the right of the line's end is significantly worse. Bars below join methods that do not differ.
    Methods that were not trained, `baselines`, have another colour.
    """
    count, difference = len(ranking.methods), ranking.critical_difference
    # The last method's line ends right of the last rank.
    last = max(count, ranking.mean_ranks[-1] + difference)
    # Names are measured where they are drawn, so that they are given room for wide letters.
    left = 20 + 7 * max(map(len, (*ranking.methods, SAME)))
    bottom = TOP + ROW * (count + len(ranking.cliques))

    def x(rank: float) -> str:
        return f"{left + WIDTH * (rank - 1) / (last - 1):.1f}"

    def text(place: str, y: float, words: str, rest: str = "") -> str:
        return f'<text x="{place}" y="{y}" {rest or f"""fill="{SOFT}" """}>{escape(words)}</text>'

    def line(first: float, last: float, y: float, stroke: str) -> str:
        return f'<line x1="{x(first)}" x2="{x(last)}" y1="{y}" y2="{y}" {stroke}/>'

    tests = f"Friedman p = {ranking.p:.2g}, {len(ranking.sets)} sets"
    parts = [
        text("14", 18, title, f'fill="{INK}" font-weight="bold"'),
        text("14", 34, f"critical difference {difference:.2f} (Nemenyi, {ranking.alpha:.0%}), {tests}"),
    ]
    for place, (kind, colour) in enumerate(COLOURS.items()):
        parts += [f'<circle cx="{left + 90 * place}" cy="54" r="5" fill="{colour}"/>']
        parts += [text(f"{left + 10 + 90 * place}", 58, kind, f'fill="{INK}"')]
    for rank in range(1, count + 1):
        parts += [f'<line x1="{x(rank)}" x2="{x(rank)}" y1="{TOP - ROW / 2}" y2="{bottom}" stroke="{LINE}"/>']
        parts += [text(x(rank), bottom + 15, f"{rank}", f'fill="{SOFT}" text-anchor="middle"')]
    parts += [text(x((count + 1) / 2), bottom + 34, "mean rank (1 is best)", f'fill="{SOFT}" text-anchor="middle"')]
    for place, (name, mean) in enumerate(zip(ranking.methods, ranking.mean_ranks, strict=True)):
        y = TOP + ROW * place
        colour = COLOURS["baseline" if name in baselines else "method"]
        parts += [text(f"{left - 12}", y + 4, name, f'fill="{SOFT}" text-anchor="end"')]
        parts += [line(mean, mean + difference, y, f'stroke="{SOFT}"')]
        parts += [f'<circle cx="{x(mean)}" cy="{y}" r="5" fill="{colour}"/>']
    for place, clique in enumerate(ranking.cliques, start=count):
        ends, y = (ranking.rank(clique[0]), ranking.rank(clique[-1])), TOP + ROW * place
        parts += [text(f"{left - 12}", y + 4, SAME, f'fill="{SOFT}" text-anchor="end"')]
        parts += [line(*ends, y, f'stroke="{INK}" stroke-width="5"')]
    about = "; ".join(f"{name} {mean:.2f}" for name, mean in zip(ranking.methods, ranking.mean_ranks, strict=True))
    size = f'width="{left + WIDTH + 30}" height="{bottom + 44}" viewBox="0 0 {left + WIDTH + 30} {bottom + 44}"'
    font = 'font-family="Liberation Sans, Arial, Helvetica, sans-serif" font-size="12"'
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font} role="img" aria-label="Mean ranks: {escape(about)}">'
    )
    return "\n".join([opening, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"]) + "\n"
