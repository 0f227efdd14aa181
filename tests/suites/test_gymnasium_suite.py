"""Any deterministic Gymnasium environment: snapshots, the probe for chance, environments with their own snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import own_environments
import pytest

from efhorizon import SimulatorError
from efhorizon.suites.environment_chance import stochastic_pair
from efhorizon.suites.environment_copies import NoCopies
from efhorizon.suites.environment_source import environment_source, time_limit
from efhorizon.suites.gymnasium_simulator import GymnasiumSimulator, SnapshotSimulator, gymnasium_simulator

DETERMINISTIC: list[tuple[str, dict[str, Any]]] = [
    ("FrozenLake-v1", {"is_slippery": False}),
    ("Taxi-v4", {}),
    ("CliffWalking-v1", {}),
    ("MountainCar-v0", {}),
    ("Acrobot-v1", {}),
]


@pytest.mark.parametrize(("env_id", "arguments"), DETERMINISTIC)
def test_restored_states_continue_as_they_did(env_id: str, arguments: dict[str, Any], rng: np.random.Generator) -> None:
    simulator, other = GymnasiumSimulator(env_id, arguments), GymnasiumSimulator(env_id, arguments)
    states, actions, seen = [], [], []
    for _ in range(15):
        states.append(simulator.get_state())
        actions.append(int(rng.integers(simulator.num_actions)))
        seen.append(
            (simulator.step(actions[-1]), simulator.identity(simulator.get_state()), simulator.screen().tolist())
        )
        if seen[-1][0].terminated:
            break
    for state, action, expected in reversed(list(zip(states, actions, seen, strict=True))):
        for restored in (simulator, other):
            for _ in range(2):  # once by replaying, once perhaps from a copy
                restored.set_state(state)
                step = restored.step(action)
                assert (step, restored.identity(restored.get_state()), restored.screen().tolist()) == expected


def test_two_ways_to_one_state_have_one_identity() -> None:
    simulator = GymnasiumSimulator("CliffWalking-v1")
    identities = []
    for path in ((0, 1, 2), (0, 0, 1, 2, 2)):  # up, right, down into the cliff and back to the start; the same, longer
        simulator.reset()
        for action in path:
            simulator.step(action)
        identities.append(simulator.identity(simulator.get_state()))
    assert identities[0] == identities[1]
    assert len(simulator.screen().tobytes()) == 1  # 48 cells: one byte tells them apart


@pytest.mark.parametrize(("env_id", "arguments"), DETERMINISTIC)
def test_the_probe_lets_deterministic_environments_pass(env_id: str, arguments: dict[str, Any]) -> None:
    assert stochastic_pair(GymnasiumSimulator(env_id, arguments), 40, np.random.default_rng(0)) is None


@pytest.mark.parametrize("env_id", ["FrozenLake-v1", "Blackjack-v1"])
def test_the_probe_names_a_state_and_action(env_id: str) -> None:
    found = stochastic_pair(GymnasiumSimulator(env_id), 40, np.random.default_rng(0))
    assert found is not None
    assert found.startswith("stochastic: after actions [")
    assert ", action " in found
    assert " and then observation " in found


def test_an_environment_with_snapshots_of_its_own() -> None:
    simulator = gymnasium_simulator("BRIDGE/MiniGrid-Empty-5x5-v0")
    assert isinstance(simulator, SnapshotSimulator)
    state = simulator.get_state()
    first = simulator.step(2), simulator.get_state()
    simulator.set_state(state)
    assert (simulator.step(2), simulator.get_state()) == first


def test_a_copy_whose_functions_look_at_the_original_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions are not deep-copied: that of FlattenObservation still holds the environment that was copied."""
    monkeypatch.syspath_prepend(str(Path(own_environments.__file__).parent))
    simulator = GymnasiumSimulator(
        "own_environments:KeyGrid-v0", {"size": 3}, wrappers=["gymnasium.wrappers:FlattenObservation"]
    )
    assert simulator.identities is not None
    assert isinstance(simulator._copies, NoCopies)
    identities = []
    for actions in ([0, 1], [0, 1], [1, 0]):
        simulator.reset()
        for action in actions:
            simulator.set_state(simulator.get_state())
            simulator.step(action)
        identities.append(simulator.identity(simulator.get_state()))
    assert identities[0] == identities[1] == identities[2]  # both ways lead to one cell


def test_what_cannot_be_searched_is_refused() -> None:
    with pytest.raises(SimulatorError, match="Discrete"):
        GymnasiumSimulator("Pendulum-v1")
    with pytest.raises(SimulatorError, match="Nope"):
        GymnasiumSimulator("Nope-v0")
    with pytest.raises(SimulatorError, match="unexpected keyword"):
        GymnasiumSimulator("Taxi-v4", {"wheels": 5})
    with pytest.raises(SimulatorError, match="not a state"):
        GymnasiumSimulator("Taxi-v4").set_state(b"x")


def test_time_limits() -> None:
    assert time_limit(environment_source("Taxi-v4")) == 200
    assert time_limit(environment_source("CliffWalking-v1")) is None
    assert gymnasium.spec("Taxi-v4").max_episode_steps == 200
