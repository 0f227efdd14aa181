"""Figure 4 in the terminal: how far each algorithm has come in each environment."""

from __future__ import annotations

from collections.abc import Sequence

from efhorizon.evaluation.live_curves import LiveFigure
from efhorizon.render.live_words import HEADINGS, PAPER, cells, title, verdict
from efhorizon.render.terminal.layout import Parts, heading, literal, table


def live_evaluation(figures: Sequence[LiveFigure]) -> Parts:
    """Nothing where there are no live runs."""
    if not figures:
        return
    yield from heading("Figure 4: live runs")
    yield literal(verdict(figures))
    yield literal(PAPER)
    shown = table("environment", *HEADINGS)
    for figure in figures:
        shown.add_row(literal(title(figure)), *map(literal, cells(figure)))
    yield shown
