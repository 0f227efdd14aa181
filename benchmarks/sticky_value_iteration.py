"""Value iteration on a sticky table of a million states, against scipy.sparse; both sides take turns in one run.

    python benchmarks/sticky_value_iteration.py [--states 1200000] [--actions 7] [--horizon 20] [--repeats 7]

The table is a random gridworld: seven actions as in MiniGrid, of which some turn, one moves and some do nothing. Of the
1.2 million states of the sticky table (a state and the last action) a little over a million can be reached. scipy has
the sticky table as a sparse matrix [A S, S] in CSR form and repeats Q = R + P V, V = max_a Q; building the matrix is
not counted.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import scipy.sparse

from efhorizon.mdp import TabularMDP
from efhorizon.stochastic.mdp import StochasticMDP
from efhorizon.stochastic.sticky import sticky
from efhorizon.stochastic.sticky_values import sticky_values

CHANCE = 0.25


def gridworld(num_sticky_states: int, num_actions: int, horizon: int, rng: np.random.Generator) -> TabularMDP:
    """Cells times four directions: turn left, turn right, move, and actions that do nothing."""
    side = max(2, int((num_sticky_states / num_actions / 4) ** 0.5))
    cell, direction = np.divmod(np.arange(4 * side * side), 4)
    x, y = cell % side, cell // side
    wall = rng.random(side * side) < 0.1
    step_x = np.clip(x + np.array([1, 0, -1, 0])[direction], 0, side - 1)
    step_y = np.clip(y + np.array([0, 1, 0, -1])[direction], 0, side - 1)
    moved = np.where(wall[step_y * side + step_x], cell, step_y * side + step_x)
    transitions = np.repeat((4 * cell + direction)[:, None], num_actions, axis=1)
    transitions[:, 0] = 4 * cell + (direction - 1) % 4
    transitions[:, 1] = 4 * cell + (direction + 1) % 4
    transitions[:, 2] = 4 * moved + direction
    rewards = np.zeros(transitions.shape)
    goal = (moved == side * side - 1) & (cell != moved)
    transitions[goal, 2], rewards[goal, 2] = -1, 1.0
    rewards[rng.random(len(rewards)) < 0.02, 3] = 0.1  # something to find everywhere
    return TabularMDP(transitions, rewards, horizon)


def sparse(mdp: StochasticMDP) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """P [A S, S] and expected rewards [A S], action after action: numpy takes a maximum over rows faster so."""
    chances = mdp.probability_values[mdp.probability_codes]
    goes_on = mdp.successors >= 0
    pairs = np.repeat(np.arange(len(mdp.offsets) - 1), np.diff(mdp.offsets))
    shape = (len(mdp.offsets) - 1, mdp.num_states)
    matrix = scipy.sparse.csr_matrix((chances[goes_on], (pairs[goes_on], mdp.successors[goes_on])), shape=shape)
    rewards = np.add.reduceat(chances * mdp.reward_values[mdp.reward_codes], mdp.offsets[:-1])
    order = np.arange(shape[0]).reshape(mdp.num_states, mdp.num_actions).T.reshape(-1)
    return matrix[order], rewards[order]


def by_scipy(matrix: scipy.sparse.csr_matrix, rewards: np.ndarray, num_actions: int, horizon: int) -> np.ndarray:
    values = np.zeros(matrix.shape[1])
    for _ in range(horizon):
        q_values = matrix @ values
        q_values += rewards
        values = q_values.reshape(num_actions, -1).max(axis=0)
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=1_200_000)
    parser.add_argument("--actions", type=int, default=7)
    parser.add_argument("--horizon", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    mdp = gridworld(options.states, options.actions, options.horizon, np.random.default_rng(0))
    made = sticky(mdp, CHANCE)
    matrix, rewards = sparse(made)
    print(
        f"{made.num_states:,} sticky states, {options.actions} actions, {matrix.nnz:,} entries, T = {options.horizon}"
    )
    sticky_values(mdp, CHANCE)  # compiles
    ours, theirs, our_work, their_work = [], [], [], []
    for _ in range(options.repeats):
        began, worked = time.perf_counter(), time.process_time()
        found = sticky_values(mdp, CHANCE)
        ours.append(time.perf_counter() - began)
        our_work.append(time.process_time() - worked)
        began, worked = time.perf_counter(), time.process_time()
        known = by_scipy(matrix, rewards, options.actions, options.horizon)
        theirs.append(time.perf_counter() - began)
        their_work.append(time.process_time() - worked)
    base, previous = made.base_states, made.previous_actions
    values = found.values[base, np.maximum(previous, 0)]
    values[0] = found.at_start
    print(f"largest difference of a value: {np.abs(values - known).max():.1e}")
    for what, first, second in (("by the clock", ours, theirs), ("processor time", our_work, their_work)):
        ratios = np.array(second) / np.array(first)
        best = f"best turns: ours {min(first):.3f} s, scipy.sparse {min(second):.3f} s, {min(second) / min(first):.1f}"
        turns = f"{ratios.min():.1f} to {ratios.max():.1f} times as fast, median {np.median(ratios):.1f}"
        print(f"{what}: {best}; turn by turn {turns}")


if __name__ == "__main__":
    main()
