"""An optimal policy that does not dawdle: of all optimal actions, one that earns its rewards soonest.

Without a discount, an agent with a hundred steps for a task of five may spend ninety-five turning around, and
`planning.optimal.optimal_plan`, which takes the lowest of equal actions, does. Nobody would demonstrate a task like
that, and with a little noise the last moment is too late. So values are compared in two stages:

    V*_t(s)  = max_a R(s, a) + V*_{t+1}(f(s, a))                         first, exactly where rewards have a unit
    D_t(s)   = max over optimal a of R(s, a) + gamma D_{t+1}(f(s, a))    among equals, gamma = 0.99

Legend: S states, A actions, T horizon.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import InvalidTableError
from efhorizon.io.machine import available_memory
from efhorizon.mdp import TERMINAL, TabularMDP
from efhorizon.planning.optimal import OptimalPlan

_GAMMA = 0.99
_BYTES_A_PAIR = 64  # of a state and an action: eight arrays of 8 bytes


def prompt_plan(mdp: TabularMDP) -> OptimalPlan:
    """One optimal action for each time and state; the lowest where both stages are equal."""
    needed = mdp.num_states * (mdp.horizon + _BYTES_A_PAIR * mdp.num_actions)
    if needed > available_memory():
        raise InvalidTableError(
            f"a plan of {mdp.horizon:,} steps needs {needed:,} bytes of memory, more than is available"
        )
    units = mdp.reward_units()
    codes = mdp.reward_codes
    exact, unit = (mdp.reward_values, 1.0) if units is None else units
    pays, earns = exact[codes], np.asarray(mdp.reward_values, np.float64)[codes]  # [S, A]
    following = np.where(mdp.transitions == TERMINAL, mdp.num_states, mdp.transitions)
    value = np.zeros(mdp.num_states + 1, pays.dtype)  # the last is what follows the end
    prompt = np.zeros(mdp.num_states + 1)
    actions = np.empty((mdp.horizon, mdp.num_states), np.uint8)
    for time in reversed(range(mdp.horizon)):
        qs = pays + value[following]
        best = qs.max(axis=1)
        actions[time] = np.where(qs == best[:, None], earns + _GAMMA * prompt[following], -np.inf).argmax(axis=1)
        value[:-1] = best
        prompt[:-1] = _taken(earns + _GAMMA * prompt[following], actions[time])
    return OptimalPlan(float(value[0] * unit), actions)


def _taken(values: NDArray[np.float64], actions: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The value of the action of each state, [S]."""
    taken: NDArray[np.float64] = np.take_along_axis(values, actions[:, None].astype(np.int64), axis=1)[:, 0]
    return taken
