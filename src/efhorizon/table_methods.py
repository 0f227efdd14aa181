"""What a table can do besides being a table: values, changed copies, pictures. All of `TabularMDP`'s longer methods.

A table is the lowest part of the package: it must not depend on planning or drawing. So each method here is a name, a
description and a call of a function that lies higher up, in a module that is imported when the method is first used.

Legend: S states, A actions, T the horizon. Times count from 0. A pair (time, state) that cannot be reached from the
start is NaN in arrays of values, and has every action equally likely in policies, so that they are valid ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray


class TableMethods:
    """The methods of a table that need more than the table."""

    def optimal_values(self, *, gamma: float = 1.0) -> NDArray[np.float64]:
        """V*_t(s), the best return from each time and state on [T, S]; NaN where it cannot be reached."""
        values: NDArray[np.float64] = _module("planning.arrays").optimal_values(self, gamma=gamma)
        return values

    def q_values(self, policy: ArrayLike | None = None, *, gamma: float = 1.0) -> NDArray[np.float64]:
        """Q_t(s, a) of a policy, or Q* if none is given [T, S, A]; NaN where (t, s) cannot be reached.

        `policy` is an array of probabilities [S, A] or [T, S, A], such as `random_policy()`.
        """
        values: NDArray[np.float64] = _module("planning.arrays").q_values(self, policy, gamma=gamma)
        return values

    def optimal_policy(self, *, gamma: float = 1.0) -> NDArray[np.float64]:
        """Every optimal action equally likely [T, S, A]. Ties are exact."""
        policy: NDArray[np.float64] = _module("planning.arrays").optimal_policy(self, gamma=gamma)
        return policy

    def random_policy(self) -> NDArray[np.float64]:
        """Every action equally likely [T, S, A]."""
        policy: NDArray[np.float64] = _module("planning.arrays").random_policy(self)
        return policy

    def with_rewards(self, rewards: ArrayLike | Callable[[int, int, float], float]) -> Self:
        """The same table with other rewards: an array [S, A], or a function of (state, action, reward)."""
        table: Self = _module("transform.rewards").with_rewards(self, rewards)
        return table

    def with_potential(self, potential: ArrayLike | Callable[[int], float], *, gamma: float = 1.0) -> Self:
        """The same table, shaped by a potential phi [S] or function of the state: r + gamma phi(s') - phi(s).

        The potential of the end is 0, and so is that of every state at the horizon. Each episode then earns phi(start)
        less than before, whatever it does, so the optimal policies are the same (for this gamma). A state that can be
        met both at the last step and before pays differently then; if there is one, the result is unrolled over time:
        it has one state for each time and state that differ. The potential is rounded, if it has to be, so that shaped
        rewards are exact decimals and ties stay ties.
        """
        table: Self = _module("transform.potential").with_potential(self, potential, gamma=gamma)
        return table

    def with_actions(self, actions: Sequence[int | str]) -> Self:
        """A table with only these actions, in this order, by number or name; states out of reach are dropped."""
        table: Self = _module("transform.structure").with_actions(self, actions)
        return table

    def with_horizon(self, horizon: int, *, closed: bool = False) -> Self:
        """The same MDP with another horizon.

        A shorter one is always possible: states out of reach are dropped. A longer one needs a table that nothing was
        cut off from: in a table that was searched up to its horizon, the last transitions may be -1 only because of it.
        That is refused unless the table shows that it is closed, or you know it and say so with `closed=True`.
        """
        table: Self = _module("transform.structure").with_horizon(self, horizon, closed=closed)
        return table

    def with_action_repeat(self, times: int) -> Self:
        """A table where each action is taken so many times in a row, its rewards added up: horizon ceil(T / times).

        If the horizon is no multiple of `times`, the last action is repeated less often. States that can be met both
        then and before become one state for each time, as in `with_potential`.
        """
        table: Self = _module("transform.action_repeat").with_action_repeat(self, times)
        return table

    def to_pandas(self) -> Any:
        """Every transition as a row of a pandas DataFrame: state, action, name of the action, reward, next_state, ends.

        Needs pandas: pip install 'efhorizon[pandas]'.
        """
        return _module("render.frames").transitions_frame(self)

    def picture(self, state: int = 0, *, env: Any = None, wrappers: Sequence[Any] = ()) -> Any:
        """The picture of a state: notebooks show it, `pixels` is the array [H, W, 3 or 1], and `save(path)` writes a
        PNG file. Tables with more than 2,000 states keep no pictures of an environment of yours: give it as `env`, with
        its `wrappers`, as to `ef.build`, and it draws the state."""
        return _module("render.notebook").state_picture(self, state, env, wrappers)

    def plot(self, axes: Any = None) -> Any:
        """States that can be met at each time, with the best value and that of random play; returns the figure.

        `axes` are two matplotlib axes to draw into. Needs matplotlib: pip install 'efhorizon[plot]'.
        """
        return _module("render.plots").plot_table(self, axes)

    def _repr_html_(self) -> str:
        """Facts and the picture of the start state, for notebooks."""
        html: str = _module("render.notebook").table_html(self)
        return html


def _module(name: str) -> Any:
    return import_module(f"efhorizon.{name}")
