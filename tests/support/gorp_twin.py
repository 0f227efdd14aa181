"""Slow twins in fractions: laws of returns, the exact chance that GORP succeeds, and the ratio of Theorem 5.4."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction
from functools import cache

import numpy as np

from efhorizon import TabularMDP
from efhorizon.gorp.ties import TIES, Ties

Law = dict[Fraction, Fraction]  # value: probability


class Twin:
    """One small MDP, and an exploration policy [S, A] or None for the uniform one."""

    def __init__(self, mdp: TabularMDP, policy: np.ndarray | None = None, gamma: Fraction = Fraction(1)) -> None:
        self.mdp, self.gamma = mdp, gamma
        self.actions = range(mdp.num_actions)
        self.rewards = [[Fraction(str(np.float32(r))) for r in row] for row in mdp.rewards]
        uniform = [Fraction(1, mdp.num_actions)] * mdp.num_actions
        self.policy = [uniform] * mdp.num_states if policy is None else [[Fraction(p) for p in row] for row in policy]
        self.law, self.best, self.success = cache(self._law), cache(self._best), cache(self._success)

    def _law(self, time: int, state: int) -> Law:
        """Of the return-to-go under the exploration policy."""
        if state < 0 or time == self.mdp.horizon:
            return {Fraction(0): Fraction(1)}
        law: Law = defaultdict(Fraction)
        for action in self.actions:
            for value, chance in self.law(time + 1, int(self.mdp.transitions[state, action])).items():
                law[self.rewards[state][action] + self.gamma * value] += self.policy[state][action] * chance
        return law

    def _best(self, time: int, state: int) -> Fraction:
        """V*."""
        if state < 0 or time == self.mdp.horizon:
            return Fraction(0)
        return max(self.optimal_q(time, state, action) for action in self.actions)

    def optimal_q(self, time: int, state: int, action: int) -> Fraction:
        following = self.best(time + 1, int(self.mdp.transitions[state, action]))
        return self.rewards[state][action] + self.gamma * following

    def sequence_law(self, time: int, state: int, sequence: tuple[int, ...]) -> Law:
        prefix, factor = Fraction(0), Fraction(1)
        for action in sequence:
            if state < 0 or time == self.mdp.horizon:
                break
            prefix += factor * self.rewards[state][action]
            state, time, factor = int(self.mdp.transitions[state, action]), time + 1, factor * self.gamma
        law: Law = defaultdict(Fraction)
        for value, chance in self.law(time, state).items():
            law[prefix + factor * value] += chance
        return law

    def choice(self, time: int, state: int, k: int, m: int) -> list[Fraction]:
        """The chance of each first action in one iteration of GORP(k, m), over all A^k sequences."""
        sequences = list(itertools.product(self.actions, repeat=k))
        laws = [power(self.sequence_law(time, state, sequence), m) for sequence in sequences]
        chances = [Fraction(0)] * self.mdp.num_actions
        for outcome in itertools.product(*(law.items() for law in laws)):
            chance = Fraction(1)
            for _, probability in outcome:
                chance *= probability
            largest = max(value for value, _ in outcome)
            winners = [sequence for sequence, (value, _) in zip(sequences, outcome, strict=True) if value == largest]
            for sequence in winners:
                chances[sequence[0]] += chance / len(winners)
        return chances

    def _success(self, k: int, m: int, time: int = 0, state: int = 0) -> Fraction:
        """The chance that GORP(k, m) returns an optimal policy."""
        if state < 0 or time == self.mdp.horizon:
            return Fraction(1)
        total = Fraction(0)
        for action, chance in enumerate(self.choice(time, state, k, m)):
            if chance and self.optimal_q(time, state, action) == self.best(time, state):
                total += chance * self.success(k, m, time + 1, int(self.mdp.transitions[state, action]))
        return total

    def q(self, k: int, time: int, state: int, action: int) -> Fraction:
        """Q^k of Definition 5.1."""
        value = self.rewards[state][action]
        successor = int(self.mdp.transitions[state, action])
        if successor < 0 or time + 1 == self.mdp.horizon:
            return value
        if k == 1:
            return value + sum(x * chance for x, chance in self.law(time + 1, successor).items())
        return value + max(self.q(k - 1, time + 1, successor, other) for other in self.actions)

    def theorem_ratio(self, k: int) -> Fraction | None:
        """max Q^k V* / gap^2 of Theorem 5.4 over pairs of optimal policies; None where not k-QVI-solvable there."""
        ratio, layer = Fraction(0), {0}
        for time in range(self.mdp.horizon):
            following = set()
            for state in layer:
                row = [self.q(k, time, state, action) for action in self.actions]
                optimal = [a for a in self.actions if self.optimal_q(time, state, a) == self.best(time, state)]
                if any(row[action] == max(row) and action not in optimal for action in self.actions):
                    return None
                below = [value for value in row if value < max(row)]
                if below:
                    ratio = max(ratio, max(row) * self.best(time, state) / (max(row) - max(below)) ** 2)
                following |= {int(self.mdp.transitions[state, action]) for action in optimal}
            layer = following - {-1}
        return ratio

    def occupancies(self) -> list[Fraction]:
        """max_t mu_t(s, a) of every pair that can be reached."""
        largest: dict[tuple[int, int], Fraction] = {}
        layer = {0: Fraction(1)}
        for _ in range(self.mdp.horizon):
            following: dict[int, Fraction] = defaultdict(Fraction)
            for state, chance in layer.items():
                for action in self.actions:
                    here = chance * self.policy[state][action]
                    largest[state, action] = max(largest.get((state, action), Fraction(0)), here)
                    if self.mdp.transitions[state, action] >= 0:
                        following[int(self.mdp.transitions[state, action])] += here
            layer = following
        return list(largest.values())


def power(law: Law, m: int) -> Law:
    """The law of a sum of m independent values."""
    total: Law = {Fraction(0): Fraction(1)}
    for _ in range(m):
        longer: Law = defaultdict(Fraction)
        for (x, p), (y, q) in itertools.product(total.items(), law.items()):
            longer[x + y] += p * q
        total = longer
    return total


def tiny_mdp(seed: int, *, num_states: int = 5, num_actions: int = 2, horizon: int = 4) -> TabularMDP:
    """Random transitions, some of them ends, and rewards of which many are 0."""
    rng = np.random.default_rng(seed)
    transitions = rng.integers(num_states, size=(num_states, num_actions))
    transitions[rng.random(transitions.shape) < 0.15] = -1
    return TabularMDP(transitions, rng.choice([0.0, 0.0, 0.0, 1.0, 0.1, 0.5], size=transitions.shape), horizon)


def close(rate: float, exact: float, runs: int, standard_errors: float = 4.0) -> bool:
    """Whether a success rate agrees with a probability; one run more or less is allowed for."""
    return abs(rate - exact) <= standard_errors * (exact * (1 - exact) / runs) ** 0.5 + 1 / runs


def success_by_ties(mdp: TabularMDP, k: int, m: int, gamma: Fraction = Fraction(1)) -> dict[Ties, Fraction]:
    """Success with each rule: every outcome of all sums together, by recursion over optimal actions."""
    twin = Twin(mdp, gamma=gamma)

    @cache
    def success(time: int, state: int) -> dict[Ties, Fraction]:
        if state < 0 or time == mdp.horizon:
            return dict.fromkeys(TIES, Fraction(1))
        sequences = list(itertools.product(twin.actions, repeat=k))
        sums = [power(twin.sequence_law(time, state, sequence), m) for sequence in sequences]
        is_optimal = [twin.optimal_q(time, state, a) == twin.best(time, state) for a in twin.actions]
        nothing: dict[Ties, Fraction] = dict.fromkeys(TIES, Fraction(0))
        after = [success(time + 1, int(mdp.transitions[state, a])) if is_optimal[a] else nothing for a in twin.actions]
        total = dict(nothing)
        for outcome in itertools.product(*(each.items() for each in sums)):
            chance = Fraction(1)
            for _, probability in outcome:
                chance *= probability
            largest = max(value for value, _ in outcome)
            tied = [sequence[0] for sequence, (value, _) in zip(sequences, outcome, strict=True) if value == largest]
            total["uniform"] += chance * sum(after[action]["uniform"] for action in tied) / len(tied)
            total["lowest"] += chance * after[tied[0]]["lowest"]
            total["adversarial"] += chance * min(after[action]["adversarial"] for action in tied)
        return total

    return success(0, 0)
