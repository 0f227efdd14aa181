"""A stochastic table from a function that lists the outcomes of a state and an action, by search from the start."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from efhorizon.errors import EfhorizonError
from efhorizon.stochastic.mdp import Outcome, StochasticMDP

MAX_STATES = 20_000_000  # of a search that the caller did not limit

_State = TypeVar("_State", bound=Hashable)
_Outcomes = Iterable[tuple[Fraction | float, float, _State | None]]  # None: the episode is over


class TooManyStatesError(EfhorizonError):
    """A search went beyond the number of states that it may keep."""


def explored(
    initial: Mapping[_State, Fraction | float],
    outcomes: Callable[[_State, int], _Outcomes[_State]],
    num_actions: int,
    horizon: int,
    *,
    metadata: Mapping[str, Any] | None = None,
    max_states: int = MAX_STATES,
    on_states: Callable[[int], None] | None = None,
) -> tuple[StochasticMDP, list[_State]]:
    """The table of all states in which an action is taken before the horizon, and these states in its order.

    Where an episode's last step leads to a state that is not among them, the table says that it is over.
    """
    number: dict[_State, int] = {state: i for i, state in enumerate(initial)}
    states = list(number)
    rows: list[list[list[Outcome]]] = []
    layer_end, depth, is_cut = len(states), 0, False
    while len(rows) < len(states):
        if len(rows) == layer_end:
            layer_end, depth = len(states), depth + 1
            if on_states is not None:
                on_states(len(states))
        state, row = states[len(rows)], []
        for action in range(num_actions):
            pair: list[Outcome] = []
            for probability, reward, successor in outcomes(state, action):
                place = -1
                is_new = successor is not None and successor not in number
                if is_new and depth == horizon - 1:
                    is_cut = True
                elif successor is not None and successor not in number:
                    number[successor] = len(states)
                    states.append(successor)
                    if len(states) > max_states:
                        raise TooManyStatesError(f"more than {max_states:,} states; give a shorter horizon")
                if successor is not None and successor in number:
                    place = number[successor]
                pair.append((probability, float(reward), place))
            row.append(pair)
        rows.append(row)
    mdp = StochasticMDP.from_outcomes(
        rows,
        horizon,
        initial={number[state]: chance for state, chance in initial.items()},
        metadata={**(metadata or {}), **({"cut_at_horizon": True} if is_cut else {})},
    )
    return mdp, states


def base_states(mdp: StochasticMDP, numbers: Iterable[int]) -> StochasticMDP:
    """The same table, which knows what number each state has in its environment."""
    return StochasticMDP(
        (mdp.num_states, mdp.num_actions),
        mdp.arrays(),
        mdp.horizon,
        initial=(mdp.initial_states, mdp.initial_probabilities),
        base_states=np.array(list(numbers), np.int32),
        metadata=mdp.metadata,
    )
