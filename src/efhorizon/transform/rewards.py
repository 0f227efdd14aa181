"""Other rewards on the same states."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.errors import InvalidTableError
from efhorizon.mdp import TabularMDP
from efhorizon.transform.derived import derived, short_digest

_LARGEST = float(np.finfo(np.float32).max)


def with_rewards(mdp: TabularMDP, rewards: ArrayLike | Callable[[int, int, float], float]) -> TabularMDP:
    """The same table with other rewards: an array [S, A], or a function of (state, action, reward)."""
    array = np.asarray(_called(mdp, rewards) if callable(rewards) else rewards)
    if array.shape != mdp.transitions.shape:
        raise InvalidTableError(f"rewards must have shape {mdp.transitions.shape}, one for each state and action")
    table = TabularMDP(mdp.transitions, array, mdp.horizon)  # checks and codes them
    label = f"rewards-{short_digest(table.rewards)}"
    coded = table.reward_codes, table.reward_values
    kept = {name: mdp.metadata[name] for name in ("closed",) if name in mdp.metadata}
    change = {"change": "rewards"}
    return derived(mdp, mdp.transitions, coded, mdp.horizon, label=label, change=change, metadata=kept)


def _called(mdp: TabularMDP, function: Callable[[int, int, float], float]) -> list[list[float]]:
    return [
        [float(function(state, action, reward)) for action, reward in enumerate(row)]
        for state, row in enumerate(mdp.rewards.tolist())
    ]


def exact_values(numerators: NDArray[np.int64], unit: Fraction) -> NDArray[np.float64] | None:
    """Integers [R] times a unit as rewards that a table reads as exactly these numbers; None where it cannot.

    A table reads a reward as the shortest decimal that float32 rounds to it (`TabularMDP.reward_units`).
    """
    exact = [number * unit for number in numerators.tolist()]
    if any(abs(number) > _LARGEST or Fraction(str(np.float32(number))) != number for number in exact):
        return None
    return np.array([float(number) for number in exact])
