"""Slow twins in exact fractions: recursion over (time, state), and enumeration of all A^T action sequences."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product

from efhorizon import TabularMDP


class Exact:
    """An MDP in fractions. `policy[t][s][a]`, uniform where it is None."""

    def __init__(
        self, mdp: TabularMDP, gamma: Fraction = Fraction(1), policy: list[list[list[Fraction]]] | None = None
    ) -> None:
        self.horizon, self.num_actions = mdp.horizon, mdp.num_actions
        self.transitions = mdp.transitions.tolist()
        self.rewards = [[Fraction(str(reward)) for reward in row] for row in mdp.rewards.tolist()]
        self.gamma, self.policy = gamma, policy
        self.optimal = cache(self.optimal)  # type: ignore[method-assign]
        self.worst = cache(self.worst)  # type: ignore[method-assign]
        self.average = cache(self.average)  # type: ignore[method-assign]
        self.q = cache(self.q)  # type: ignore[method-assign]

    def chance(self, time: int, state: int, action: int) -> Fraction:
        return Fraction(1, self.num_actions) if self.policy is None else self.policy[time][state][action]

    def backup(self, value, time: int, state: int, action: int) -> Fraction:  # type: ignore[no-untyped-def]
        """R + gamma value(t + 1, s')."""
        following = self.transitions[state][action]
        over = following < 0 or time + 1 == self.horizon
        return self.rewards[state][action] + (0 if over else self.gamma * value(time + 1, following))

    def optimal(self, time: int, state: int) -> Fraction:
        return max(self.backup(self.optimal, time, state, a) for a in range(self.num_actions))

    def worst(self, time: int, state: int) -> Fraction:
        return min(self.backup(self.worst, time, state, a) for a in range(self.num_actions))

    def average(self, time: int, state: int) -> Fraction:
        chances = (self.chance(time, state, a) * self.backup(self.average, time, state, a) for a in self.actions)
        return sum(chances, Fraction(0))

    @property
    def actions(self) -> range:
        return range(self.num_actions)

    def q(self, k: int, time: int, state: int, action: int, *, window: bool = False) -> Fraction:
        """Q^k, from the exploration policy's values or, with `window`, from no values at all."""
        if k == 1:
            return self.backup((lambda t, s: Fraction(0)) if window else self.average, time, state, action)
        return self.backup(lambda t, s: self.best_q(k - 1, t, s, window=window), time, state, action)

    def best_q(self, k: int, time: int, state: int, *, window: bool = False) -> Fraction:
        return max(self.q(k, time, state, a, window=window) for a in self.actions)

    def optimal_actions(self, time: int, state: int) -> list[int]:
        best = self.optimal(time, state)
        return [a for a in self.actions if self.backup(self.optimal, time, state, a) == best]

    def solvable(self, k: int, *, window: bool = False) -> bool:
        """Whether every action sequence that is greedy with respect to Q^k all along has the optimal return."""
        return all(
            self.sequence_return(sequence) == self.optimal(0, 0) for sequence in self.greedy_sequences(k, window)
        )

    def greedy_sequences(self, k: int, window: bool) -> Iterator[tuple[int, ...]]:
        for sequence in product(self.actions, repeat=self.horizon):
            if all(
                self.q(k, t, s, a, window=window) == self.best_q(k, t, s, window=window)
                for t, s, a in self.path(sequence)
            ):
                yield sequence

    def path(self, sequence: tuple[int, ...]) -> list[tuple[int, int, int]]:
        """(t, s, a) until the episode ends."""
        state, steps = 0, []
        for time, action in enumerate(sequence):
            steps.append((time, state, action))
            state = self.transitions[state][action]
            if state < 0:
                break
        return steps

    def sequence_return(self, sequence: tuple[int, ...]) -> Fraction:
        path = self.path(sequence)
        return sum((self.gamma**t * self.rewards[s][a] for t, s, a in path), Fraction(0))

    def probability(self, sequence: tuple[int, ...]) -> Fraction:
        """Of a sequence under the policy; steps after the end of the episode count as uniform."""
        chance = Fraction(1)
        path = self.path(sequence)
        for t, s, a in path:
            chance *= self.chance(t, s, a)
        return chance * Fraction(1, self.num_actions) ** (self.horizon - len(path))

    def reachable(self) -> list[set[int]]:
        layers = [{0}]
        for _ in range(self.horizon - 1):
            layers.append({s for state in layers[-1] for s in self.transitions[state] if s >= 0})
        return layers

    def optimal_states(self) -> list[set[int]]:
        """S^opt_t: what optimal policies visit."""
        layers: list[set[int]] = [{0}]
        for time in range(self.horizon - 1):
            following = (self.transitions[s][a] for s in layers[-1] for a in self.optimal_actions(time, s))
            layers.append({s for s in following if s >= 0})
        return layers

    def mistake(self, k: int) -> Fraction | None:
        """max over t and S^opt_t of max_a Q^k V* / (max_a Q^k - the largest Q^k of a mistake)^2; None: unbounded."""
        worst = Fraction(0)
        for time, states in enumerate(self.optimal_states()):
            for state in states:
                values = [self.q(k, time, state, a) for a in self.actions]
                wrong = [q for a, q in enumerate(values) if a not in self.optimal_actions(time, state)]
                if wrong and max(wrong) >= max(values):
                    return None
                if wrong:
                    worst = max(worst, max(values) * self.optimal(time, state) / (max(values) - max(wrong)) ** 2)
        return worst

    def hardness(self, k: int) -> Fraction:
        """max over t and S^opt_t of max_a Q^k V* / gap^2; 0 where there is no gap."""
        worst = Fraction(0)
        for time, states in enumerate(self.optimal_states()):
            for state in states:
                values = sorted({self.q(k, time, state, a) for a in self.actions})
                if len(values) > 1:
                    gap = values[-1] - values[-2]
                    worst = max(worst, values[-1] * self.optimal(time, state) / gap**2)
        return worst
