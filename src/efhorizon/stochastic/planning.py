"""Values of stochastic MDPs on the (time, state) pairs that can be reached.

    V*_t(s)  = max_a sum_(p, r, s') p (r + V*_{t+1}(s'))                    V_T = 0
    V^pi_t(s) = sum_a pi_t(a | s) sum_(p, r, s') p (r + V^pi_{t+1}(s'))

Rounding: one step back in time costs at most K + A + 4 roundings (K outcomes of a pair), each relative to a sum of
absolute rewards. Values that differ by more are ordered; those that differ by less are equal if and only if their
residues are, where probabilities are fractions. Where they are not, such values count as equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.errors import InvalidTableError
from efhorizon.planning.rewards import ROUNDING, residue
from efhorizon.planning.threads import on_layer
from efhorizon.stochastic import _kernels as kernels
from efhorizon.stochastic.layers import Layers, layers
from efhorizon.stochastic.mdp import StochasticMDP

PUBLISHED_TOLERANCE = 1e-4  # within which the paper's authors take an action for optimal
_ROUNDINGS_A_STEP = 4


@dataclass(frozen=True)
class Values:
    """A value for each pair [P], with residues [P] where there are any."""

    layers: Layers
    numbers: NDArray[np.float64]  # [P]
    residues: NDArray[np.uint64]  # [P] or [0]

    @property
    def at_start(self) -> float:
        """The expectation over the initial states."""
        mdp = self.layers.mdp
        return float(self.numbers[self.layers.span(0)] @ mdp.initial_probabilities)


@dataclass(frozen=True)
class Optimal:
    values: Values
    bits: NDArray[np.uint8]  # [P, A], see `_kernels.py`


class Plan:
    """An unrolled MDP with its arrays as kernels read them; each value is computed once."""

    def __init__(self, mdp: StochasticMDP) -> None:
        self.mdp = mdp
        self.layers = layers(mdp)
        exact = mdp.is_exact
        rewards = [residue(Fraction(repr(value))) for value in mdp.reward_values.tolist()] if exact else []
        chances = [residue(fraction) for fraction in mdp.probability_fractions()] if exact else []
        self.outcomes = kernels.Outcomes(
            offsets=mdp.offsets,
            successors=mdp.successors,
            reward_codes=mdp.reward_codes,
            probability_codes=mdp.probability_codes,
            rewards=mdp.reward_values,
            probabilities=mdp.probability_values,
            reward_residues=np.array(rewards, np.uint64),
            probability_residues=np.array(chances, np.uint64),
            num_actions=mdp.num_actions,
        )
        self._most_outcomes = int(np.diff(mdp.offsets).max())
        self._largest = float(np.abs(mdp.reward_values).max()) if (mdp.reward_values < 0).any() else 0.0

    def rounding(self, time: int, tolerance: float = 0.0) -> tuple[float, float, float]:
        """What `maximise` needs to know about errors: relative error, least magnitude, tolerance."""
        left = self.mdp.horizon - time
        relative = 2 * left * (self._most_outcomes + self.mdp.num_actions + _ROUNDINGS_A_STEP) * ROUNDING
        return relative, self._largest * left, tolerance

    def empty(self, *, residues: bool = True) -> Values:
        """Values of 0."""
        num_pairs = self.layers.num_pairs
        exact = residues and self.mdp.is_exact
        return Values(self.layers, np.zeros(num_pairs), np.zeros(num_pairs if exact else 0, np.uint64))

    def row(self, dtype: Any = np.float64, *, used: bool = True) -> NDArray[Any]:
        """A dense row [S] for the values of one time, or one of length 0."""
        return np.zeros(self.mdp.num_states if used else 0, dtype)

    @cached_property
    def optimal(self) -> Optimal:
        """V*, and which actions are optimal."""
        values = self.empty()
        bits = np.empty((self.layers.num_pairs, self.mdp.num_actions), np.uint8)
        following, residues = self.row(), self.row(np.uint64, used=len(values.residues) > 0)
        for time in reversed(range(self.mdp.horizon)):
            span, states = self.layers.span(time), self.layers.layer(time)
            best = kernels.Best(values.numbers[span], values.residues[span], bits[span], np.empty(len(states)))
            rounding = self.rounding(time, PUBLISHED_TOLERANCE)
            on_layer(
                kernels.maximise, slice(0, len(states)), self.outcomes, states, following, residues, rounding, best
            )
            following[states] = best.values
            if len(residues):
                residues[states] = best.residues
        return Optimal(values, bits)

    def exploration(self, policy: ArrayLike | None = None) -> Values:
        """V of the uniform policy, or of probabilities [S, A] or [T, S, A]."""
        probabilities = checked_policy(self.mdp, policy)
        values = self.empty(residues=probabilities is None)
        following, residues = self.row(), self.row(np.uint64, used=len(values.residues) > 0)
        share = np.uint64(residue(Fraction(1, self.mdp.num_actions)))
        uniform = np.empty((0, self.mdp.num_actions))
        for time in reversed(range(self.mdp.horizon)):
            span, states = self.layers.span(time), self.layers.layer(time)
            now = uniform if probabilities is None else probabilities[min(time, len(probabilities) - 1)]
            number, word = values.numbers[span], values.residues[span]
            layer = slice(0, len(states))
            on_layer(kernels.average, layer, self.outcomes, states, now, following, residues, share, number, word)
            following[states] = number
            if len(residues):
                residues[states] = word
        return values

    @cached_property
    def worst(self) -> Values:
        """V of the policy that does worst."""
        values, following = self.empty(residues=False), self.row()
        for time in reversed(range(self.mdp.horizon)):
            states, number = self.layers.layer(time), values.numbers[self.layers.span(time)]
            on_layer(kernels.minimise, slice(0, len(states)), self.outcomes, states, following, number)
            following[states] = number
        return values

    def occupancy(self, policy: ArrayLike | None = None) -> NDArray[np.float64]:
        """The probability of each pair [P] under a policy, by default the uniform one."""
        probabilities = checked_policy(self.mdp, policy)
        uniform = np.empty((0, self.mdp.num_actions))
        found = np.empty(self.layers.num_pairs)
        here = self.row()
        here[self.mdp.initial_states] = self.mdp.initial_probabilities
        for time in range(self.mdp.horizon):
            states = self.layers.layer(time)
            found[self.layers.span(time)] = here[states]
            now = uniform if probabilities is None else probabilities[min(time, len(probabilities) - 1)]
            following = self.row()
            kernels.spread(self.outcomes, states, now, here, following)
            here = following
        return found

    def return_of(self, actions: NDArray[np.integer[Any]]) -> float:
        """The exact expected return of a policy that takes one action in each state, `actions` [S] or [T, S]."""
        timed = np.atleast_2d(actions)
        following = self.row()
        for time in reversed(range(self.mdp.horizon)):
            states = self.layers.layer(time)
            values = np.empty(len(states))
            now = np.ascontiguousarray(timed[min(time, len(timed) - 1)])
            on_layer(kernels.follow, slice(0, len(states)), self.outcomes, states, now, following, values)
            following[states] = values
        return float(following[self.mdp.initial_states] @ self.mdp.initial_probabilities)

    def q_values(self, time: int, following: NDArray[np.float64]) -> NDArray[np.float64]:
        """Q_t(s, a) [n, A] of the states of one time, from the values [S] of the next."""
        states = self.layers.layer(time)
        pairs = (states[:, None] * self.mdp.num_actions + np.arange(self.mdp.num_actions)).reshape(-1)
        found = np.array([kernels.q_value(self.outcomes, int(pair), following) for pair in pairs])
        return found.reshape(len(states), self.mdp.num_actions)


def checked_policy(mdp: StochasticMDP, policy: ArrayLike | None) -> NDArray[np.float64] | None:
    """Probabilities [1 or T, S, A]; None is the uniform policy."""
    if policy is None:
        return None
    array = np.asarray(policy, np.float64)
    shapes = ((mdp.num_states, mdp.num_actions), (mdp.horizon, mdp.num_states, mdp.num_actions))
    if array.shape not in shapes:
        raise InvalidTableError(f"a policy of this table has shape {shapes[0]} or {shapes[1]}, not {array.shape}")
    if not (array >= 0).all() or (np.abs(array.sum(axis=-1) - 1) > 1e-6).any():
        raise InvalidTableError("a policy's probabilities must be at least 0 and sum to 1 in each state")
    return np.ascontiguousarray(array.reshape(-1, *shapes[0]))


def policy_return(mdp: StochasticMDP, policy: ArrayLike | None = None) -> float:
    """The exact expected return of a policy."""
    return Plan(mdp).exploration(policy).at_start
