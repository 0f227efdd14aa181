"""Figure 4 as charts: one for each environment."""

from __future__ import annotations

from markupsafe import Markup

from efhorizon.evaluation.live_curves import LiveFigure
from efhorizon.render.charts.learning import learning_chart
from efhorizon.render.learning_curves import Curve
from efhorizon.render.live_words import title

SIZE = 440, 300  # pixels


def live_chart(figure: LiveFigure) -> Markup:
    """Median and range of returns against timesteps."""
    curves = [Curve(c.algorithm, c.setting, c.num_seeds, c.steps, c.median, c.low, c.high) for c in figure.curves]
    width, height = SIZE
    return learning_chart(
        curves, name=title(figure), optimal_return=None, steps_axis="linear", width=width, height=height
    )
