"""The table itself: validation, immutability, fingerprints, reward units."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from toy_mdps import random_mdp, shuffled

from efhorizon import InvalidTableError, TabularMDP


def test_fields_and_rewards() -> None:
    mdp = TabularMDP([[1, -1], [0, 1]], [[0.0, 1.0], [0.5, 0.0]], 3, metadata={"id": "toy"})
    assert (mdp.num_states, mdp.num_actions, mdp.horizon, mdp.num_screens) == (2, 2, 3, 0)
    assert mdp.transitions.dtype == np.int32
    assert mdp.reward_codes.dtype == np.uint8
    assert mdp.rewards.tolist() == [[0.0, 1.0], [0.5, 0.0]]
    assert "toy" in repr(mdp)


@pytest.mark.parametrize(
    ("transitions", "rewards", "horizon", "message"),
    [
        ([[0, 2], [0, 1]], np.zeros((2, 2)), 3, "state 0, action 1 is 2"),
        ([[0, -2]], np.zeros((1, 2)), 3, "is -2, outside"),
        ([0, 1], np.zeros(2), 3, "shape"),
        (np.zeros((0, 2), int), np.zeros((0, 2)), 3, "at least 1"),
        ([[0.0, 1.0]], np.zeros((1, 2)), 3, "integers"),
        ([[0, 0]], np.zeros((1, 3)), 3, r"rewards have shape \(1, 3\)"),
        ([[0, 0]], [[0.0, np.nan]], 3, "state 0, action 1 is nan"),
        ([[0, 0]], [[np.inf, 0.0]], 3, "not a finite number"),
        ([[0, 0]], [["a", "b"]], 3, "numbers"),
        ([[0, 0]], np.zeros((1, 2)), 0, "positive integer"),
        ([[0, 0]], np.zeros((1, 2)), 2.5, "positive integer"),
        ([[0, 0]], np.zeros((1, 2)), 10**6, "at most 131,072, got 1000000"),
        ([[0, 0]], np.zeros((1, 2)), 2**63, "at most 131,072"),
        ([[0, 0]], np.zeros((1, 2)), 10**400, "at most 131,072"),
        ([[0, 0]], [[0.0, 1e39]], 3, "state 0, action 1 is 1e"),
        ([[0, 0]], [[-1e39, 0.0]], 3, "state 0, action 0 is -1e"),
    ],
)
def test_bad_tables_are_refused(transitions: object, rewards: object, horizon: object, message: str) -> None:
    with pytest.raises(InvalidTableError, match=message):
        TabularMDP(transitions, rewards, horizon)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("screens", "mapping", "message"),
    [
        (np.zeros((1, 2, 2, 3), np.uint8), None, "must both be"),
        (None, [0], "must both be"),
        (np.zeros((1, 2, 2), np.uint8), [0], "screens must be"),
        (np.zeros((1, 2, 2, 3), np.float32), [0], "screens must be"),
        (np.zeros((1, 2, 2, 3), np.uint8), [1], "outside"),
        (np.zeros((1, 2, 2, 3), np.uint8), [0, 0], "screen_mapping must be"),
    ],
)
def test_bad_screens_are_refused(screens: object, mapping: object, message: str) -> None:
    with pytest.raises(InvalidTableError, match=message):
        TabularMDP([[0, 0]], [[0, 1]], 3, screens=screens, screen_mapping=mapping)  # type: ignore[arg-type]


def test_nothing_can_be_changed() -> None:
    transitions = np.array([[0, -1]])
    mdp = TabularMDP(transitions, [[0.0, 1.0]], 3)
    transitions[0, 0] = -1
    assert mdp.transitions[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        mdp.transitions[0, 0] = -1
    with pytest.raises(ValueError, match="read-only"):
        mdp.rewards[0, 0] = 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        mdp.horizon = 5
    with pytest.raises(TypeError):
        mdp.metadata["id"] = "x"  # type: ignore[index]


def test_a_read_only_view_of_a_writable_array_is_copied() -> None:
    base = np.array([[0, -1]], np.int32)
    view = base.view()
    view.flags.writeable = False
    mdp = TabularMDP(view, [[0.0, 1.0]], 3)
    base[0, 0] = -1
    assert mdp.transitions[0, 0] == 0


def test_fingerprint_does_not_depend_on_numbering(rng: np.random.Generator) -> None:
    for _ in range(20):
        mdp = random_mdp(rng, 30, 3, 10)
        assert shuffled(mdp, rng).fingerprint() == mdp.fingerprint()


def test_fingerprint_sees_every_reachable_pair(rng: np.random.Generator) -> None:
    mdp = random_mdp(rng, 12, 2, 10)
    reachable = mdp.depths() >= 0
    assert 3 < reachable.sum() < 12
    for state in range(12):
        for action in range(2):
            rewards = mdp.rewards.copy()
            rewards[state, action] += 1
            changed = TabularMDP(mdp.transitions, rewards, 10)
            assert (changed.fingerprint() != mdp.fingerprint()) == reachable[state]


def test_fingerprint_ignores_the_sign_of_zero_and_float64_digits() -> None:
    one = TabularMDP([[0, -1]], [[0.0, 0.1]], 3)
    assert TabularMDP([[0, -1]], [[-0.0, float(np.float32(0.1))]], 3).fingerprint() == one.fingerprint()


def test_reward_units_are_exact_integers() -> None:
    mdp = TabularMDP([[0, 0, 0, 0]], [[0.1, 0.3, -0.2, 1.0]], 3)
    units = mdp.reward_units()
    assert units is not None
    assert units[0].tolist() == [-2, 1, 3, 10]
    assert units[1] == Fraction(1, 10)
    points = TabularMDP([[0, 0]], [[0.0, 250.0]], 3).reward_units()
    assert points is not None
    assert (points[0].tolist(), points[1]) == ([0, 1], 250)


def test_rewards_without_a_practical_unit() -> None:
    assert TabularMDP([[0, 0]], [[1e-20, 1.0]], 3).reward_units() is None


def test_depths() -> None:
    mdp = TabularMDP([[1, 2], [3, -1], [3, 0], [-1, -1], [0, 0]], np.zeros((5, 2)), 10)
    assert mdp.depths().tolist() == [0, 1, 1, 2, -1]
    assert mdp.canonical_order().tolist() == [0, 1, 2, 3]


def test_the_longest_horizons_and_the_largest_rewards_are_fine() -> None:
    largest = float(np.finfo(np.float32).max)
    mdp = TabularMDP([[0, -1]], [[-largest, largest]], 108_000)
    assert mdp.horizon == 108_000
    assert mdp.fingerprint()
    mdp.reward_units()
