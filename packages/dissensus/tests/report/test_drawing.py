"""A drawing of a given width: its plot takes what is left beside it, and no drawing is made in vain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dissensus.report import drawing
from dissensus.report.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Callable

INCHES = 3.3
ASKED = round(96 * INCHES)


def plots_tried(monkeypatch: pytest.MonkeyPatch, wide: Callable[[int], float]) -> tuple[list[int], str]:
    """The width of the plot in each drawing, where `wide` says that of a drawing by its plot; and the last drawing."""
    tried: list[int] = []

    def svg(spec: dict[str, Any]) -> str:
        tried.append(spec["width"])
        return f'<svg width="{wide(spec["width"])}" height="1"/>'

    monkeypatch.setattr(drawing, "_svg", svg)
    figure = Figure(slug="one", title="One", spec={"mark": "point"}, data="rows", about="Points.")
    return tried, drawing.drawn(figure, [], inches=INCHES)


@pytest.mark.parametrize("beside", [50, 73, 150])
def test_the_second_drawing_knows_what_stands_beside_the_plot(monkeypatch: pytest.MonkeyPatch, beside: int) -> None:
    tried, svg = plots_tried(monkeypatch, lambda plot: plot + beside)
    assert len(tried) == 2
    assert tried[-1] == pytest.approx(ASKED - beside, abs=1)
    assert f'width="{tried[-1] + beside}"' in svg


def test_where_a_legend_is_what_is_wide_the_plot_is_not_made_smaller_and_smaller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried, _ = plots_tried(monkeypatch, lambda plot: 340)
    assert len(tried) == 2
    assert tried[-1] == pytest.approx(tried[0] - (340 - ASKED), abs=1)


def test_what_stands_beside_a_plot_may_depend_on_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels turn when there is little room: it is tried again, but not for ever."""
    tried, _ = plots_tried(monkeypatch, lambda plot: plot + (60 if plot > 230 else 110.5 + plot % 7))
    assert len(tried) <= 4
