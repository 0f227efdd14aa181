"""full-length.md: Figure 4, learning curves in full-length Atari games and other live environments."""

from __future__ import annotations

from collections.abc import Sequence

from efhorizon.evaluation.live_curves import LiveFigure
from efhorizon.render.charts.live import SIZE, live_chart
from efhorizon.render.html.names import slug
from efhorizon.render.live_words import HEADINGS, PAPER, cells, title, verdict
from efhorizon.render.markdown.figures import white_picture
from efhorizon.render.markdown.text import blocks, escaped, picture, table

FILE = "full-length.md"
_FOLDER = "figures"


def live_files(figures: Sequence[LiveFigure]) -> dict[str, str]:
    """The page and its pictures by name; nothing where there are no live runs."""
    if not figures:
        return {}
    names = {figure.id: f"{_FOLDER}/live-{slug(figure.id)}.svg" for figure in figures}
    pictures = {names[figure.id]: white_picture(live_chart(figure), SIZE, title(figure)) for figure in figures}
    return {FILE: _page(figures, names), **pictures}


def _page(figures: Sequence[LiveFigure], names: dict[str, str]) -> str:
    shown = [
        f"### {escaped(title(figure))}\n\n{picture(names[figure.id], f'Learning curves in {title(figure)}', '60%')}"
        for figure in figures
    ]
    return (
        blocks(
            "# Full-length Atari: Figure 4",
            "GORP, PPO and DQN in the environment itself, without a table. What is played and how it is counted: "
            "[full-length Atari](../full-length-atari.md).",
            "## What came out",
            escaped(verdict(figures)),
            escaped(PAPER),
            "The median return at the end of the runs and, in brackets, the range over seeds, in points. PPO and DQN: "
            "the greedy episode. GORP: its policy, the actions chosen so far and then random ones; `best` is the best "
            "return of any of its episodes. Timesteps are those of each run, times the number of seeds; budgets "
            "differ, so compare algorithms through the curves.",
            table(["environment", *HEADINGS], [[escaped(title(f)), *map(escaped, cells(f))] for f in figures]),
            "## Learning curves",
            "The line is the median over seeds, the shaded region the range over all of them.",
            *shown,
        )
        + "\n"
    )
