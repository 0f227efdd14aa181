"""Q-value iteration with chance, and the policies that are greedy with respect to Q^k.

    Q^1 = Q of the exploration policy        Q^{k+1}_t(s, a) = sum p (r + max_a' Q^k_{t+1}(s', a'))

For each k: the return of the worst greedy policy (J_k), whether every greedy policy is optimal, and the least gap of
Q^k between the best actions and the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon.planning.threads import on_layer
from efhorizon.stochastic import _kernels as kernels
from efhorizon.stochastic.planning import Plan, Values


@dataclass(frozen=True)
class Sweep:
    """What one Q-function says. Each count is over greedy actions in pairs that greedy policies reach."""

    k: int
    greedy_return: float  # of the greedy policy that does worst
    num_far: int  # greedy actions further from optimal than the published tolerance
    num_wrong: int  # greedy actions that are not optimal
    num_undecided: int  # those that floats cannot judge
    gap: float | None  # least gap over all pairs that can be reached; None: all actions tie in all of them
    gap_undecided: bool  # whether somewhere floats cannot tell a gap from a tie
    reached_gap: float | None  # the same over the pairs that greedy policies reach
    largest_rounding: float  # where undecided, the least gap is not above this

    @property
    def close(self) -> bool:
        """Greedy policies are optimal within the published tolerance, action by action."""
        return self.num_far == 0

    @property
    def solvable(self) -> bool:
        """Every greedy policy is optimal."""
        return self.num_wrong == 0 and self.num_undecided == 0


def sweeps(plan: Plan, initial: Values) -> Iterator[Sweep]:
    """Sweeps for k = 1 .. T, where Q^1 looks one step ahead to the values `initial`, which are overwritten."""
    for k in range(1, plan.mdp.horizon + 1):
        yield _sweep(plan, initial, k)


def greedy_bits(plan: Plan, initial: Values, k: int) -> NDArray[np.uint8]:
    """Which actions are greedy with respect to Q^k [P, A], as bits; `initial` is overwritten."""
    for _ in range(k - 1):
        _backward(plan, initial)
    return _backward(plan, initial)[0]


def _backward(plan: Plan, values: Values) -> tuple[NDArray[np.uint8], NDArray[np.float64], float]:
    """Greedy actions [P, A] and gaps [P] of one Q-function, and the return of the worst greedy policy.

    `values` become those of the next Q-function: each time is overwritten once the time before it was looked at.
    """
    mdp, line = plan.mdp, plan.layers
    bits = np.empty((line.num_pairs, mdp.num_actions), np.uint8)
    gaps = np.empty(line.num_pairs)
    following, residues = plan.row(), plan.row(np.uint64, used=len(values.residues) > 0)
    worst_following = plan.row()
    for time in reversed(range(mdp.horizon)):
        span, states = line.span(time), line.layer(time)
        layer = slice(0, len(states))
        word = np.empty(len(states) if len(residues) else 0, np.uint64)
        best = kernels.Best(np.empty(len(states)), word, bits[span], gaps[span])
        on_layer(kernels.maximise, layer, plan.outcomes, states, following, residues, plan.rounding(time), best)
        worst = np.empty(len(states))
        on_layer(kernels.worst_greedy, layer, plan.outcomes, states, bits[span], worst_following, worst)
        worst_following[states] = worst
        following[states] = values.numbers[span]
        values.numbers[span] = best.values
        if len(residues):
            residues[states] = values.residues[span]
            values.residues[span] = word
    return bits, gaps, float(worst @ mdp.initial_probabilities)


def _sweep(plan: Plan, values: Values, k: int) -> Sweep:
    mdp, line = plan.mdp, plan.layers
    bits, gaps, greedy_return = _backward(plan, values)
    optimal = plan.optimal.bits
    here = plan.row(np.bool_)
    here[mdp.initial_states] = True
    far = wrong = unsure = 0
    reached_gap = np.inf
    for time in range(mdp.horizon):
        span, states = line.span(time), line.layer(time)
        following = plan.row(np.bool_)
        found = kernels.follow_greedy(plan.outcomes, states, bits[span], optimal[span], here, following)
        far, wrong, unsure = far + found[0], wrong + found[1], unsure + found[2]
        near = gaps[span][here[states]]
        near = near[near > 0]
        if len(near):
            reached_gap = min(reached_gap, float(near.min()))
        here = following
    decided = gaps[gaps > 0]
    gap = float(decided.min()) if len(decided) else np.inf
    return Sweep(
        k=k,
        greedy_return=greedy_return,
        num_far=far,
        num_wrong=wrong,
        num_undecided=unsure,
        gap=gap if np.isfinite(gap) else None,
        gap_undecided=bool((gaps < 0).any()),
        reached_gap=reached_gap if np.isfinite(reached_gap) else None,
        largest_rounding=_largest_rounding(plan),
    )


def _largest_rounding(plan: Plan) -> float:
    relative, floor, _ = plan.rounding(0)
    return relative * max(floor, float(np.abs(plan.optimal.values.numbers).max()))
