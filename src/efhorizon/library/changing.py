"""What to change about a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from efhorizon.bounds.quick_horizon import QUICK_POINTS
from efhorizon.library.building import as_table
from efhorizon.library.progress import ProgressLine
from efhorizon.mdp import TabularMDP
from efhorizon.what_if.trial import WhatIf
from efhorizon.what_if.trials import Options, Progress
from efhorizon.what_if.trials import what_if as tried
from efhorizon.what_if.user_function import UserFunction


def what_if(
    mdp: TabularMDP | str | Path,
    *,
    kinds: Sequence[str] | None = None,
    potentials: Sequence[str | Callable[..., Any]] = (),
    weights: Sequence[float] | None = None,
    horizons: Sequence[int] | None = None,
    repeats: Sequence[int] | None = None,
    gammas: Sequence[float] | None = None,
    max_points: int = QUICK_POINTS,
    progress: bool = False,
) -> WhatIf:
    """Try changes of a table, without running its environment: which would make it easier to learn, best first.

    `kinds` are some of "potential", "horizon", "repeat", "actions", "discount", "exploration" and "start"; None: all of
    them. `potentials` are functions of `state`, `observation` or `screen`, or texts "FILE.py:NAME"; `weights` go with
    them. `max_points` bounds the work on each change: with more, more effective horizons are exact.
    """
    functions = [
        UserFunction.load(given) if isinstance(given, str) else UserFunction(_name(given), given)
        for given in potentials
    ]
    options = Options(kinds, functions, weights, horizons, repeats, gammas, max_points)
    with ProgressLine(progress) as line:

        def on_progress(at: Progress) -> None:
            line(f"change {at.number + 1} of {at.num_changes}: {at.title}" if at.num_changes else at.title)

        return tried(as_table(mdp), options, on_progress=on_progress)


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
