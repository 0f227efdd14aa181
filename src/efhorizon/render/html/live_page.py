"""The page of Figure 4: learning curves in live environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from efhorizon.evaluation.live_curves import LiveFigure
from efhorizon.render.charts.live import live_chart
from efhorizon.render.live_words import HEADINGS, PAPER, cells, title, verdict


def live_page(figures: Sequence[LiveFigure]) -> dict[str, Any]:
    """What the template shows."""
    return {
        "headings": HEADINGS,
        "lines": [(title(figure), cells(figure)) for figure in figures],
        "charts": [(title(figure), live_chart(figure)) for figure in figures],
        "verdict": verdict(figures),
        "paper": PAPER,
    }
