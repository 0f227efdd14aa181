"""Rewards for progress: by the distance to a reward, by subgoals, the suite's own shaping, or a function of yours.

A potential phi can be paid in two ways. With phi = 0 at the end of an episode (Ng, Harada and Russell 1999) every
optimal policy stays optimal; but then each episode from a state earns the same constant more, GORP compares the same
returns as before, and the effective horizon is provably the same. What helps GORP is phi that counts at the horizon
too (`with_progress`), as in the published gridworlds. That can change what is optimal, so `kept.py` looks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from efhorizon.transform.potential import checked_potential, with_potential, with_progress
from efhorizon.what_if.base import Base
from efhorizon.what_if.change import Change, Changed, Needs
from efhorizon.what_if.suite_potentials import suite_potentials
from efhorizon.what_if.user_function import UserFunction

WEIGHTS = (
    0.1,
)  # of a step of distance or a subgoal, as a share of the largest reward; the published one for distances
_DECIMALS = 9
_SAME = "the potential is 0 at the end, so GORP does exactly as before; PPO and DQN may still gain"


def changes(
    base: Base, *, weights: Sequence[float] = WEIGHTS, functions: Sequence[UserFunction] = ()
) -> Iterator[Change]:
    for function in functions:
        phi = function.values(base.mdp)
        for weight in weights:
            scaled = _scaled(base, phi, weight)
            needs: Needs = "a function of the state"
            yield _zero_at_end(base, scaled, f"potential {function.name} times {weight:g}, 0 at the end", needs, weight)
            yield _progress(base, scaled, f"reward for {function.name} times {weight:g}", needs, weight)
    for suite_phi in suite_potentials(base.mdp):
        title = f"the suite's shaping {suite_phi.shaping}"
        yield _progress(base, suite_phi.values, title, "a function of the state", suite_phi.weight)
    for weight in weights:
        near = _scaled(base, -base.distances.astype(np.float64), weight)
        yield _zero_at_end(base, near, f"distance times {weight:g}, 0 at the end", "the graph", weight)
        yield _progress(base, near, f"reward for less distance, {weight:g} a step", "the graph", weight)
        if base.subgoals:
            title = f"reward for {len(base.subgoals)} subgoals, {weight:g} each"
            yield _progress(base, _scaled(base, subgoals_passed(base), weight), title, "the solution", weight)


def subgoals_passed(base: Base) -> NDArray[np.float64]:
    """Of the states that every optimal episode passes, how many are no longer ahead [S], on the shortest way to a
    reward; none of them where no reward can be reached."""
    ahead = np.zeros(base.mdp.num_states, np.int64)
    is_subgoal = np.zeros(base.mdp.num_states, np.int64)
    is_subgoal[list(base.subgoals)] = 1
    farthest = int(base.distances.max())
    following = base.mdp.transitions
    for distance in range(2, farthest + 1):
        states = np.flatnonzero(base.distances == distance)
        nearer = (following[states] >= 0) & (base.distances[following[states]] == distance - 1)
        has_way = nearer.any(axis=1)
        chosen = following[states, nearer.argmax(axis=1)]
        ahead[states] = np.where(has_way, ahead[chosen] + is_subgoal[chosen], len(base.subgoals))
    return (len(base.subgoals) - ahead).astype(np.float64)


def _scaled(base: Base, phi: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    scaled: NDArray[np.float64] = np.round(phi * weight * base.largest_reward, _DECIMALS)
    return scaled


def _zero_at_end(base: Base, phi: NDArray[np.float64], title: str, needs: Needs, weight: float) -> Change:
    checked_potential(base.mdp, phi)

    def make() -> Changed:
        return Changed(with_potential(base.mdp, phi), is_shaped=True, same_success=True)

    return Change("potential", title, needs, make, {"weight": weight, "at_end": "zero"}, _SAME)


def _progress(base: Base, phi: NDArray[np.float64], title: str, needs: Needs, weight: float) -> Change:
    checked_potential(base.mdp, phi)

    def make() -> Changed:
        return Changed(with_progress(base.mdp, phi), is_shaped=True)

    return Change("potential", title, needs, make, {"weight": weight, "at_end": "counts"})
