"""Tables and analyses as small pieces of HTML, which notebooks show instead of the `repr`."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.bounds.analysis import Analysis
from efhorizon.bounds.unfinished import AnytimeAnalysis
from efhorizon.build.target import given_spec
from efhorizon.errors import EfhorizonError, InvalidTableError
from efhorizon.io.png import encoded_png, write_png
from efhorizon.mdp import TabularMDP
from efhorizon.planning.optimal import return_range
from efhorizon.render import forecasts, numbers
from efhorizon.render.terminal.layout import printable
from efhorizon.suites.action_names import action_names
from efhorizon.suites.drawing import picture

_MAX_REWARDS, _MAX_ACTIONS = 6, 8  # that are listed
_MOST_STATES_PLANNED = 10**6  # showing a table must be quick
_PICTURE_HEIGHT = 160  # pixels

Facts = Iterable[tuple[str, str]]


@dataclass(frozen=True, repr=False)
class Picture:
    """The picture of a state."""

    pixels: NDArray[np.uint8]  # [H, W, 3 or 1]

    def __repr__(self) -> str:
        return f"Picture({self.pixels.shape[1]} x {self.pixels.shape[0]} pixels)"

    def _repr_png_(self) -> bytes:
        return encoded_png(self.pixels)

    def save(self, path: str | Path) -> Path:
        """Write a PNG file."""
        return write_png(Path(path), self.pixels)


def state_picture(mdp: TabularMDP, state: int, env: Any = None, wrappers: Sequence[Any] = ()) -> Picture:
    """The picture of one state, drawn by an environment where one is given and the table holds no pictures."""
    if not 0 <= state < mdp.num_states:
        raise InvalidTableError(f"states are numbers from 0 to {mdp.num_states - 1}, got {state}")
    return Picture(picture(mdp, state, None if env is None else given_spec(mdp, env, None, wrappers)))


def table_html(mdp: TabularMDP) -> str:
    """Facts about a table, and its start state where it has a picture."""
    facts = _list(_table_facts(mdp))
    image = _start_picture(mdp)
    if image is None:
        return facts
    return f'<div style="display:flex;gap:1.5em;align-items:flex-start">{facts}{image}</div>'


def analysis_html(analysis: Analysis | AnytimeAnalysis) -> str:
    """The main figures of an analysis, and its bounds."""
    figures = _complete_facts(analysis) if isinstance(analysis, Analysis) else _anytime_facts(analysis)
    return _list(figures)


def _table_facts(mdp: TabularMDP) -> Facts:
    yield "table", str(mdp.metadata.get("id", "unnamed"))
    unexplored = "" if mdp.unexplored is None else f", {int(mdp.unexplored.sum()):,} of them unexplored"
    yield "states", f"{mdp.num_states:,}{unexplored}"
    yield "actions", _listed(action_names(mdp.metadata, mdp.num_actions), _MAX_ACTIONS)
    yield "horizon", f"{mdp.horizon:,}"
    yield "rewards", _listed([f"{value:g}" for value in mdp.reward_values], _MAX_REWARDS)
    if mdp.is_complete and mdp.num_states <= _MOST_STATES_PLANNED:
        worst, best = return_range(mdp)
        yield "returns", f"{worst:g} to {best:g}"
    if mdp.num_screens:
        yield "screens", f"{mdp.num_screens:,}"
    for change in mdp.metadata.get("changes", ()):
        yield "changed", f"{change.get('change')}, from {change.get('from') or 'unnamed'}"


def _complete_facts(analysis: Analysis) -> Facts:
    horizon = analysis.effective_horizon
    yield "analysis", analysis.id or "unnamed"
    if analysis.optimal_return > analysis.worst_return:
        for each in analysis.forecast.values():
            yield f"forecast for {each.algorithm.upper()}", forecasts.in_words(each).detail
    value = "unknown" if horizon.value is None else f"{horizon.value:.2f} ({horizon.kind})"
    yield "effective horizon H", f"{value} of {analysis.horizon}"
    if horizon.k is not None and horizon.m is not None:
        yield "k and m", f"{horizon.k} and {numbers.steps(horizon.m)}"
    yield "best return", f"{analysis.optimal_return:g}"
    yield "random play's", f"{analysis.exploration_return:g}"
    for name, bound in analysis.bounds.items():
        needed = numbers.steps(bound.sample_complexity) if bound.sample_complexity is not None else bound.reason
        yield analysis.titles[name], needed or numbers.MISSING


def _anytime_facts(analysis: AnytimeAnalysis) -> Facts:
    yield "analysis", f"{analysis.id or 'unnamed'}, of an unfinished table"
    yield "states", f"{analysis.num_explored:,} explored, {analysis.num_unexplored:,} not"
    for name, interval in analysis.intervals.items():
        high = numbers.INFINITE if interval.high is None else f"{interval.high:.4g}"
        yield name.replace("_", " "), f"{interval.low:.4g} to {high}"


def _listed(words: Iterable[str], most: int) -> str:
    every = list(words)
    return f"{len(every)}: {', '.join(every[:most])}{', ...' if len(every) > most else ''}"


def _list(facts: Facts) -> str:
    left = ' style="text-align:left"'
    rows = (f"<tr><th{left}>{_safe(name)}</th><td{left}>{_safe(value)}</td></tr>" for name, value in facts)
    return f"<table>{''.join(rows)}</table>"


def _safe(text: str) -> str:
    """Names may come from files that somebody else made."""
    return escape(printable(text))


def _start_picture(mdp: TabularMDP) -> str | None:
    if mdp.screens is None:
        return None
    try:
        shown = picture(mdp, 0)
        if min(shown.shape[:2]) < 2 or shown.shape[2] not in (1, 3):
            return None  # an observation that is no picture
        content = b64encode(encoded_png(shown)).decode()
    except EfhorizonError:  # such as a suite that is not installed: the facts are shown all the same
        return None
    style = f"height:{_PICTURE_HEIGHT}px;image-rendering:pixelated"
    return f'<img alt="the start state" style="{style}" src="data:image/png;base64,{content}">'
