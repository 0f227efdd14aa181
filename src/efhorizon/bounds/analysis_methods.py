"""What an analysis can do besides its numbers: its forecast, and how notebooks show it.

As in `table_methods`, what forecasts and draws lies higher up and is imported when used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class AnalysisMethods:
    """The methods of an analysis that need more than its numbers."""

    @property
    def forecast(self) -> Any:
        """For "ppo" and "dqn": the chance to be solved within some budgets, and the timesteps needed."""
        return _module("forecast.prediction").forecasts(_module("forecast.features").features(self))

    def to_pandas(self) -> Any:
        """Every bound as a row of a pandas DataFrame; needs pandas: pip install 'efhorizon[pandas]'."""
        return _module("render.frames").analysis_frame(self)

    def plot(self, axes: Any = None) -> Any:
        """The bounds as bars on a logarithmic scale; returns the figure.

        `axes` are matplotlib axes to draw into. Needs matplotlib: pip install 'efhorizon[plot]'.
        """
        return _module("render.plots").plot_analysis(self, axes)

    def _repr_html_(self) -> str:
        """The main figures and the bounds, for notebooks."""
        html: str = _module("render.notebook").analysis_html(self)
        return html


def _module(name: str) -> Any:
    return import_module(f"efhorizon.{name}")
