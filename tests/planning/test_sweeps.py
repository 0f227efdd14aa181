"""Q-value iteration, greedy policies and gaps, against fractions and all action sequences."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from brute_force import Exact

from efhorizon import TabularMDP
from efhorizon.planning import sweeps as sweeps_module
from efhorizon.planning.optimal import optimal_values
from efhorizon.planning.rewards import reward_scale
from efhorizon.planning.sweeps import sweeps
from efhorizon.planning.timeline import timeline
from efhorizon.planning.values import policy_values, zero_values

NUM_RANDOM_MDPS = 200


def random_table(seed: int, *, nonnegative: bool) -> TabularMDP:
    rng = np.random.default_rng(seed)
    num_states, num_actions, horizon = int(rng.integers(1, 7)), int(rng.integers(2, 4)), int(rng.integers(1, 5))
    transitions = rng.integers(num_states, size=(num_states, num_actions))
    transitions[rng.random(transitions.shape) < 0.15] = -1
    values = [0.0, 0.0, 1.0, 0.5] if nonnegative else [0.0, 1.0, -0.5, 0.1]
    return TabularMDP(transitions, rng.choice(values, size=transitions.shape), horizon)


@pytest.mark.parametrize("seed", range(NUM_RANDOM_MDPS))
def test_sweeps_against_fractions(seed: int) -> None:
    gamma = [1.0, 1.0, 0.9][seed % 3]
    mdp = random_table(seed, nonnegative=seed % 2 == 0)
    exact = Exact(mdp, Fraction(str(gamma)))
    line = timeline(mdp)
    best = optimal_values(line, gamma=gamma)
    for sweep in sweeps(line, best, policy_values(line, gamma=gamma)):
        assert sweep.solvable == exact.solvable(sweep.k)
        assert not sweep.undecided
        if seed % 2 == 0:
            assert sweep.hardness == pytest.approx(float(exact.hardness(sweep.k)), rel=1e-9)
            mistake = exact.mistake(sweep.k)
            assert sweep.mistake == pytest.approx(np.inf if mistake is None else float(mistake), rel=1e-9)
        if sweep.hardest is not None:
            check_witness(exact, sweep.k, sweep.hardest)
        if sweep.failure is not None:
            greedy = [q == max(sweep.failure.q_values) for q in sweep.failure.q_values]
            wrong = [q < max(sweep.failure.optimal_q_values) for q in sweep.failure.optimal_q_values]
            assert any(np.array(greedy) & np.array(wrong))
    window = zero_values(line, reward_scale(mdp, gamma=gamma))
    for sweep in sweeps(line, best, window):
        assert sweep.solvable == exact.solvable(sweep.k, window=True)
    assert sweep.solvable  # the last one plans to the end


def check_witness(exact: Exact, k: int, witness) -> None:  # type: ignore[no-untyped-def]
    values = [exact.q(k, witness.time, witness.state, a) for a in exact.actions]
    assert witness.q_values == pytest.approx([float(q) for q in values], rel=1e-12, abs=1e-12)
    assert witness.optimal_value == pytest.approx(float(exact.optimal(witness.time, witness.state)))
    distinct = sorted(set(values))
    assert witness.gap == pytest.approx(float(distinct[-1] - distinct[-2]), rel=1e-9)


def test_averages_that_are_equal_but_for_rounding_tie() -> None:
    """Two states with the same three successors in another order: the floats of their values differ, by luck."""
    rng = np.random.default_rng(0)
    num_broken = 0
    for _ in range(50):
        transitions = [[1, 2, -1], [3, 4, 5], [5, 3, 4], [-1] * 3, [-1] * 3, [-1] * 3]
        rewards = np.zeros((6, 3))
        rewards[3:] = rng.integers(1, 30, size=(3, 3))
        line = timeline(TabularMDP(transitions, rewards, 3))
        values = policy_values(line)
        num_broken += values.numbers[1] != values.numbers[2]
        start = float(values.numbers[1]) * float(values.scale.unit)
        first = next(iter(sweeps(line, optimal_values(line), values)))
        assert not first.undecided
        if first.hardest is not None and first.hardest.time == 0:
            assert first.hardest.gap == pytest.approx(start)  # to the third action, which gets nothing
    assert num_broken > 0


def test_a_gap_of_one_part_in_a_trillion_is_a_gap() -> None:
    """Two actions whose averages differ by A^-20 of their size: no tolerance may call them equal."""
    depth = 20
    transitions = np.full((depth + 1, 4), -1)
    rewards = np.full((depth + 1, 4), 1.0)
    transitions[0] = [1, -1, -1, -1]
    rewards[0] = [0.0, 1.0, 0.0, 0.0]
    for state in range(1, depth):
        transitions[state, 0] = state + 1
        rewards[state, 0] = 0.0
    rewards[depth, 0] = 2.0
    mdp = TabularMDP(transitions, rewards, depth + 1)
    line = timeline(mdp)
    first = next(iter(sweeps(line, optimal_values(line), policy_values(line))))
    assert first.solvable
    assert first.hardest is not None
    assert first.hardest.time == 0
    assert first.hardest.gap == pytest.approx(4.0**-depth, rel=1e-2)


def test_differences_below_float_precision_are_said_to_be_undecided() -> None:
    """The same with A^-60: the residues differ, the floats cannot tell the order."""
    depth = 60
    transitions = np.full((depth + 1, 4), -1)
    rewards = np.full((depth + 1, 4), 1.0)
    transitions[0] = [1, -1, -1, -1]
    rewards[0] = [0.0, 1.0, 0.0, 0.0]
    for state in range(1, depth):
        transitions[state, 0] = state + 1
        rewards[state, 0] = 0.0
    rewards[depth, 0] = 2.0
    line = timeline(TabularMDP(transitions, rewards, depth + 1))
    first, second = islice(sweeps(line, optimal_values(line), policy_values(line)), 2)
    for sweep in (first, second):
        assert not sweep.solvable
        assert sweep.undecided
        assert np.isinf(sweep.hardness)


def clocked(rng: np.random.Generator, *, signed: bool) -> TabularMDP:
    """A random table whose states hold the time, with rewards at few places."""
    width, horizon, num_actions = int(rng.integers(1, 6)), int(rng.integers(2, 12)), int(rng.integers(1, 4))
    size = 1 + width * (horizon - 1)
    transitions = np.full((size, num_actions), -1)
    for state in range(size - width):
        layer = 0 if state == 0 else 1 + (state - 1) // width
        transitions[state] = 1 + width * layer + rng.integers(width, size=num_actions)
    rewards = np.where(rng.random((size, num_actions)) < 0.1, rng.choice([0.1, 1.0, 2.5], (size, num_actions)), 0.0)
    if signed:
        rewards *= rng.choice([-1, 1], rewards.shape)
    return TabularMDP(transitions, rewards, horizon=horizon)


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("signed", [False, True])
def test_times_at_which_nothing_can_change_are_left_out_without_a_trace(
    gamma: float, signed: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every sweep, and the values after it, as if each sweep looked at every time."""

    def outcome(mdp: TabularMDP, gaps_until: int, all_times: bool) -> list[object]:
        layers = 0

        def on_layer(kernel: object, layer: slice, *arguments: object) -> object:
            nonlocal layers
            layers += kernel is sweeps_module.kernels.greedy_sweep
            return usual_on_layer(kernel, layer, *arguments)  # type: ignore[arg-type]

        line = timeline(mdp)
        optimal = optimal_values(line, gamma=gamma)
        found: list[object] = []
        for exploration in (False, True):
            scale = reward_scale(mdp, gamma=gamma)
            values = policy_values(line, gamma=gamma) if exploration else zero_values(line, scale)
            changed = np.ones(mdp.horizon + 1, np.bool_)
            for k in range(1, mdp.horizon + 1):
                with monkeypatch.context() as patch:
                    patch.setattr(sweeps_module, "on_layer", on_layer)
                    sweep, changed = sweeps_module._sweep(
                        k, line, optimal, values, changed, with_gaps=k <= gaps_until, by_gap=False
                    )
                if all_times:
                    changed[:] = True
                found += [repr(sweep), values.numbers.tolist(), values.residues.tolist(), values.magnitudes.tolist()]
        work.append(layers)
        return found

    work: list[int] = []
    usual_on_layer = sweeps_module.on_layer
    for _ in range(15):
        mdp, gaps_until = clocked(rng, signed=signed), int(rng.integers(0, 3))
        assert outcome(mdp, gaps_until, False) == outcome(mdp, gaps_until, True)
    horizon = 20  # a lock: one sequence opens it, and a wrong action leads to a state that never pays
    states = np.arange(2 * horizon - 1)
    right = np.where(states < 2 * horizon - 3, states + 2 - (states == 0), -1)
    dead = np.where(states < 2 * horizon - 3, states + 2 + states % 2, -1)
    lock = TabularMDP(
        np.stack([right, dead], axis=1), [[float(state == 2 * horizon - 3), 0.0] for state in states], horizon
    )
    work.clear()
    assert outcome(lock, 0, False) == outcome(lock, 0, True)
    assert work[0] < 0.7 * work[1]
