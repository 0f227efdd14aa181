"""Stochastic MDPs in fractions, slowly: what the kernels of `efhorizon.stochastic` are compared with."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction

import numpy as np

from efhorizon.stochastic.mdp import StochasticMDP

Row = list[list[tuple[Fraction, Fraction, int]]]


def random_mdp(rng: np.random.Generator, states: int = 4, actions: int = 2, horizon: int = 4) -> StochasticMDP:
    """Small denominators and few rewards, so that ties happen."""
    outcomes = []
    for _ in range(states):
        row = []
        for _ in range(actions):
            count = int(rng.integers(1, 4))
            weights = rng.integers(1, 4, count)
            total = int(weights.sum())
            row.append(
                [
                    (Fraction(int(weight), total), float(rng.integers(-1, 3)), int(rng.integers(-1, states)))
                    for weight in weights
                ]
            )
        outcomes.append(row)
    initial = {0: Fraction(1)} if rng.integers(2) else {0: Fraction(1, 3), states - 1: Fraction(2, 3)}
    return StochasticMDP.from_outcomes(outcomes, horizon, initial=initial)


class Twin:
    """All quantities by plain recursion over (time, state)."""

    def __init__(self, mdp: StochasticMDP) -> None:
        self.mdp = mdp
        self.actions = range(mdp.num_actions)
        self.rows = [
            [[(p, Fraction(repr(r)), s) for p, r, s in mdp.outcomes(state, action)] for action in self.actions]
            for state in range(mdp.num_states)
        ]
        starts = [Fraction(p).limit_denominator(1000) for p in mdp.initial_probabilities.tolist()]
        self.initial = dict(zip(mdp.initial_states.tolist(), starts, strict=True))

    def backup(self, state: int, action: int, following: dict[int, Fraction]) -> Fraction:
        return sum((p * (r + (following[s] if s >= 0 else 0)) for p, r, s in self.rows[state][action]), Fraction(0))

    def values(self, rule: str) -> list[dict[int, Fraction]]:
        """V_t for t = 0 .. T: the rule is max, min or mean over actions."""
        states = range(self.mdp.num_states)
        found = [dict.fromkeys(states, Fraction(0))]
        for _ in range(self.mdp.horizon):
            layer = {}
            for state in states:
                row = [self.backup(state, action, found[0]) for action in self.actions]
                layer[state] = sum(row) / len(row) if rule == "mean" else max(row) if rule == "max" else min(row)
            found.insert(0, layer)
        return found

    def at_start(self, layer: dict[int, Fraction]) -> Fraction:
        return sum((chance * layer[state] for state, chance in self.initial.items()), Fraction(0))

    def reachable(self) -> list[set[int]]:
        layers = [set(self.initial)]
        for _ in range(self.mdp.horizon - 1):
            layers.append({s for state in layers[-1] for row in self.rows[state] for _, _, s in row if s >= 0})
        return layers

    def q_functions(self, count: int, *, start: str = "mean") -> list[list[dict[int, list[Fraction]]]]:
        """Q^k_t(s, a) for k = 1 .. count."""
        zero = [dict.fromkeys(range(self.mdp.num_states), Fraction(0))] * (self.mdp.horizon + 1)
        values = self.values("mean") if start == "mean" else zero
        found = []
        for _ in range(count):
            qs = [
                {s: [self.backup(s, a, values[t + 1]) for a in self.actions] for s in range(self.mdp.num_states)}
                for t in range(self.mdp.horizon)
            ]
            found.append(qs)
            values = [{s: max(row) for s, row in layer.items()} for layer in qs]
            values.append(dict.fromkeys(range(self.mdp.num_states), Fraction(0)))
        return found

    def worst_greedy(self, qs: list[dict[int, list[Fraction]]]) -> Fraction:
        """The least return of a greedy policy, by trying every way to break ties."""
        following = dict.fromkeys(range(self.mdp.num_states), Fraction(0))
        for layer in reversed(qs):
            following = {
                s: min(self.backup(s, a, following) for a in self.actions if row[a] == max(row))
                for s, row in layer.items()
            }
        return self.at_start(following)

    def solvable(self, qs: list[dict[int, list[Fraction]]]) -> bool:
        return self.worst_greedy(qs) == self.at_start(self.values("max")[0])

    def least_gap(self, qs: list[dict[int, list[Fraction]]]) -> Fraction | None:
        gaps = []
        for layer, states in zip(qs, self.reachable(), strict=True):
            for state in states:
                row = layer[state]
                below = [q for q in row if q < max(row)]
                if below:
                    gaps.append(max(row) - max(below))
        return min(gaps) if gaps else None

    def occupancy(self) -> list[dict[int, Fraction]]:
        layers: list[dict[int, Fraction]] = [defaultdict(Fraction, self.initial)]
        for _ in range(self.mdp.horizon - 1):
            following: dict[int, Fraction] = defaultdict(Fraction)
            for state, chance in layers[-1].items():
                for p, _, s in (outcome for row in self.rows[state] for outcome in row):
                    if s >= 0:
                        following[s] += chance * p / len(self.actions)
            layers.append(following)
        return layers

    def return_distribution(self) -> dict[Fraction, Fraction]:
        """By all paths of uniform play."""
        here: dict[tuple[int, Fraction], Fraction] = {(s, Fraction(0)): p for s, p in self.initial.items()}
        over: dict[Fraction, Fraction] = defaultdict(Fraction)
        for _ in range(self.mdp.horizon):
            following: dict[tuple[int, Fraction], Fraction] = defaultdict(Fraction)
            for (state, total), chance in here.items():
                for action, outcome in itertools.product(self.actions, range(8)):
                    if outcome < len(self.rows[state][action]):
                        p, r, s = self.rows[state][action][outcome]
                        share = chance * p / len(self.actions)
                        if s >= 0:
                            following[s, total + r] += share
                        else:
                            over[total + r] += share
            here = following
        for (_, total), chance in here.items():
            over[total] += chance
        return dict(over)
