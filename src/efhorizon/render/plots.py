"""Figures by matplotlib, for notebooks and papers; it is imported when one is drawn, and need not be installed.

The report's own figures need nothing: see `charts`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.bounds.analysis import Analysis
from efhorizon.bounds.unfinished import AnytimeAnalysis
from efhorizon.errors import InvalidTableError
from efhorizon.mdp import TabularMDP
from efhorizon.planning.arrays import as_rewards
from efhorizon.planning.occupancy import occupancy
from efhorizon.planning.optimal import optimal_values
from efhorizon.planning.timeline import Timeline, timeline
from efhorizon.planning.values import Values, policy_values
from efhorizon.suites.simulator import MissingExtraError


def plot_table(mdp: TabularMDP, axes: Any = None) -> Any:
    """States at each time, and what optimal and random play can still expect at each time; returns the figure.

    The values are those of the states that random play meets, averaged as often as it meets them.
    """
    if not mdp.is_complete:
        raise InvalidTableError("the table is unfinished; a plot of values needs a complete one")
    pyplot = _pyplot()
    if axes is None:
        _, axes = pyplot.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    sizes, values = axes
    line = timeline(mdp)
    times = np.arange(mdp.horizon)
    sizes.fill_between(times, np.diff(line.starts), step="mid", alpha=0.6)
    sizes.set(xlabel="time", ylabel="states", title="States that can be met", ylim=(0, None))
    weights = occupancy(line)
    values.plot(times, _mean(line, weights, optimal_values(line).values), label="optimal play from there")
    values.plot(times, _mean(line, weights, policy_values(line)), label="random play", linestyle="--")
    values.set(xlabel="time", ylabel="return still to come", title="Values where random play is")
    values.legend()
    return sizes.figure


def plot_analysis(analysis: Analysis | AnytimeAnalysis, axes: Any = None) -> Any:
    """Every finite bound as a bar, on a logarithmic scale; returns the figure."""
    if not isinstance(analysis, Analysis):
        raise InvalidTableError("the table is unfinished; its bounds are intervals: see to_pandas()")
    pyplot = _pyplot()
    bounds = {
        analysis.titles[name]: math.log10(max(1, bound.sample_complexity))
        for name, bound in analysis.bounds.items()
        if bound.sample_complexity is not None
    }  # as logarithms: A^T may be larger than any float
    if axes is None:
        _, axes = pyplot.subplots(figsize=(8, 0.4 * len(bounds) + 1.2), layout="constrained")
    bars = axes.barh(list(bounds), list(bounds.values()))
    axes.invert_yaxis()
    axes.bar_label(
        bars, [f"{10**log:,.0f}" if log < 6 else f"$10^{{{log:.1f}}}$" for log in bounds.values()], padding=3
    )
    axes.margins(x=0.15)
    axes.xaxis.set_major_formatter(lambda log, _: f"$10^{{{log:g}}}$")
    axes.set(xlabel="timesteps, by each bound", title=analysis.id or "unnamed")
    return axes.figure


def _mean(line: Timeline, weights: NDArray[np.float64], values: Values) -> NDArray[np.float64]:
    """The mean over pairs at each time [T]; NaN where no episode is left."""
    worth = as_rewards(values, values.numbers)
    times = np.repeat(np.arange(line.mdp.horizon), np.diff(line.starts))
    total = np.bincount(times, weights * worth, minlength=line.mdp.horizon)
    share = np.bincount(times, weights, minlength=line.mdp.horizon)
    mean: NDArray[np.float64] = np.divide(total, share, out=np.full(len(share), np.nan), where=share > 0)
    return mean


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtraError("plot", "matplotlib") from None
    return pyplot
