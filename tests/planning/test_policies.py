"""Exploration policies: what is accepted, and one clear line for what is not."""

from __future__ import annotations

import numpy as np
import pytest

from efhorizon import EfhorizonError, TabularMDP
from efhorizon.planning.policies import exploration_policy

MDP = TabularMDP([[1, 0], [0, -1], [0, 0]], np.zeros((3, 2)), 4)


def test_shapes() -> None:
    assert exploration_policy(MDP).is_uniform
    stationary = exploration_policy(MDP, np.tile([0.25, 0.75], (3, 1)))
    assert stationary.is_stationary
    assert not stationary.is_uniform
    assert stationary.row(3, 2).tolist() == [0.25, 0.75]
    timed = exploration_policy(MDP, np.random.default_rng(0).dirichlet([1, 1], size=(4, 3)))
    assert not timed.is_stationary
    assert exploration_policy(MDP, timed) is timed


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_array_is_the_uniform_policy(dtype: type) -> None:
    assert exploration_policy(MDP, np.full((3, 2), 0.5, dtype)).is_uniform
    three = TabularMDP([[0, 0, 0]], np.zeros((1, 3)), 2)
    assert exploration_policy(three, np.full((2, 1, 3), 1 / 3, dtype)).is_uniform


def test_rows_are_normalised_without_touching_the_caller() -> None:
    array = np.tile(np.array([0.1, 0.9], np.float32), (3, 1))
    policy = exploration_policy(MDP, array)
    assert policy.probabilities is not None
    assert np.abs(policy.probabilities.sum(axis=2) - 1).max() < 1e-15
    assert array.flags.writeable
    assert array[0, 0] == np.float32(0.1)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((2, 2)) / 2, r"shape \(2, 2\); this table needs \(3, 2\) or \(4, 3, 2\)"),
        (np.ones((3, 3, 2)) / 2, r"shape \(3, 3, 2\)"),
        (np.array([[0.5, 0.5], [0.5, 0.4], [0.5, 0.5]]), "in state 1 sum to 0.9, not 1"),
        (np.array([[0.5, 0.5], [1.5, -0.5], [0.5, 0.5]]), "action 1 in state 1 probability -0.5"),
        (np.array([[0.5, 0.5], [0.5, np.nan], [0.5, 0.5]]), "action 1 in state 1 probability nan"),
        (np.full((4, 3, 2), 0.3), "in state 0 at time 0 sum to 0.6"),
        (np.full((3, 2), "x"), "must hold numbers"),
    ],
)
def test_bad_policies_name_the_value(array: np.ndarray, message: str) -> None:
    with pytest.raises(EfhorizonError, match=message) as error:
        exploration_policy(MDP, array)
    assert "\n" not in str(error.value)
