"""Potential-based shaping of gridworlds: what pays how much, and that it telescopes."""

from __future__ import annotations

import pytest

pytest.importorskip("minigrid")

from gridworlds import (
    BALL,
    BOX,
    DOOR,
    DROP,
    EPISODE,
    FORWARD,
    GRIDWORLDS,
    KEY,
    LEFT,
    PICKUP,
    TOGGLE,
    actions_of_walk,
    cells_with,
    face,
)

from efhorizon import catalog
from efhorizon.suites import minigrid
from efhorizon.suites.minigrid_shaping import HEADINGS, SHAPINGS, moves_between
from efhorizon.suites.minigrid_simulator import MiniGridSimulator
from efhorizon.suites.simulator import SimulatorError

SHAPED = [(entry.game, entry.shaping) for entry in catalog.entries("minigrid") if entry.shaping]

pytestmark = pytest.mark.filterwarnings("ignore")  # MiniGrid calls its first versions out of date


def test_moves_between_are_shortest_on_an_open_grid() -> None:
    """Breadth-first search on an open grid, backwards in the sense that every start pose is searched from."""
    for start_direction in range(4):
        distance = {(0, 0, start_direction): 0}
        queue = [(0, 0, start_direction)]
        for x, y, direction in queue:
            dx, dy = HEADINGS[direction]
            for pose in ((x + dx, y + dy, direction), (x, y, (direction + 1) % 4), (x, y, (direction - 1) % 4)):
                if pose not in distance and max(abs(pose[0]), abs(pose[1])) <= 4:
                    distance[pose] = distance[x, y, direction] + 1
                    queue.append(pose)
        for x in range(-3, 4):
            for y in range(-3, 4):
                shortest = min(distance[x, y, direction] for direction in range(4))
                assert moves_between(x, y, start_direction) == shortest


def test_potentials_of_known_positions() -> None:
    corner = MiniGridSimulator("MiniGrid-Empty-5x5-v0", "Distance")  # at (1, 1) looking right, goal at (3, 3)
    assert corner.potential() == -5
    assert corner.step(FORWARD).reward == 0.1
    assert corner.step(LEFT).reward == -0.1
    fetch = MiniGridSimulator("MiniGrid-KeyCorridorS3R1-v0", "Distance")  # at (3, 1) looking down, ball at (5, 1)
    assert fetch.potential() == -3
    assert MiniGridSimulator("MiniGrid-KeyCorridorS3R1-v0", "OpenDoorsPickup").potential() == 0


def test_shaped_success() -> None:
    """The object to fetch is one move away when it is in front, none once carried, and a pick-up like any other."""
    rewards = {}
    for shaping in SHAPINGS:
        simulator = MiniGridSimulator("MiniGrid-KeyCorridorS3R1-v0", shaping)
        face(simulator, *cells_with(simulator, BALL))
        rewards[shaping] = simulator.step(PICKUP)
    assert rewards == {
        "Distance": (1.1, True),
        "OpenDoors": (1.0, True),
        "Pickup": (1.2, True),
        "OpenDoorsPickup": (1.2, True),
    }


def test_only_tables_that_pay_for_fetching_are_of_a_new_version() -> None:
    """The version covers the gridworlds with an object to fetch and a pick-up shaping, and no others."""
    for entry in minigrid.MINIGRID.entries():
        arguments = minigrid.MINIGRID.arguments(entry)
        fetches = hasattr(MiniGridSimulator(entry.game)._env, "obj")
        changed = fetches and entry.shaping in ("Pickup", "OpenDoorsPickup")
        assert minigrid.MINIGRID.behaviour_of(arguments) == (2 if changed else 1), entry.name


def test_doors_and_pickups_pay_by_count() -> None:
    simulator = MiniGridSimulator("MiniGrid-DoorKey-5x5-v0", "OpenDoorsPickup")
    face(simulator, *cells_with(simulator, KEY))
    assert [simulator.step(action).reward for action in (PICKUP, DROP, PICKUP)] == [0.2, 0.0, 0.0]
    face(simulator, *cells_with(simulator, DOOR))
    assert [simulator.step(TOGGLE).reward for _ in range(3)] == [0.2, -0.2, 0.2]
    unlock = MiniGridSimulator("MiniGrid-Unlock-v0", "OpenDoors")
    face(unlock, *cells_with(unlock, KEY))
    unlock.step(PICKUP)
    face(unlock, *cells_with(unlock, DOOR))
    assert unlock.step(TOGGLE) == (1.2, True)


def test_an_opened_box_takes_its_pickup_along() -> None:
    simulator = MiniGridSimulator("MiniGrid-ObstructedMaze-1Dlh-v0", "Pickup")
    face(simulator, *cells_with(simulator, BOX))
    rewards = [simulator.step(action).reward for action in (PICKUP, DROP, TOGGLE, PICKUP)]
    assert rewards == [0.2, 0.0, -0.2, 0.2]  # the last one is the key that was inside


def test_an_opened_target_has_no_distance() -> None:
    simulator = MiniGridSimulator("MiniGrid-UnlockPickup-v0", "Distance")
    face(simulator, *cells_with(simulator, BOX))
    assert simulator.potential() == -1
    assert simulator.step(TOGGLE) == (0.0, False)
    assert simulator.potential() is None
    assert simulator.step(LEFT) == (0.0, False)


@pytest.mark.parametrize(("env_id", "shaping"), SHAPED)
def test_shaping_telescopes(env_id: str, shaping: str) -> None:
    plain, shaped = MiniGridSimulator(env_id), MiniGridSimulator(env_id, shaping)
    start, total = shaped.potential(), 0
    assert start is not None
    for action, *_ in actions_of_walk(env_id, EPISODE, seed=3):
        success = plain.step(action).reward
        reward, terminated = shaped.step(action)
        tenths = round(10 * (reward - success))
        assert reward == (10 * success + tenths) / 10  # equal amounts are one float
        assert shaped.get_state() == plain.get_state()
        total += tenths
        end = shaped.potential()
        if end is None:  # the target was opened
            return
        assert total == end - start
        if terminated:
            return


@pytest.mark.parametrize("env_id", GRIDWORLDS)
def test_shapings_of_the_catalogue_are_those_that_change_a_reward(env_id: str) -> None:
    def distance_counts() -> bool:
        try:
            simulator = MiniGridSimulator(env_id, "Distance")
        except SimulatorError:
            return False
        return simulator.step(LEFT).reward != 0 or simulator.step(LEFT).reward != 0

    def doors_count() -> bool:
        simulator = MiniGridSimulator(env_id, "OpenDoors")
        doors = cells_with(simulator, DOOR)
        if not doors:
            return False
        state = bytearray(face(simulator, doors[0]))
        state[3] = 0  # closed, not locked
        simulator.set_state(bytes(state))
        return simulator.step(TOGGLE).reward != 0

    def pickups_count() -> bool:
        simulator = MiniGridSimulator(env_id, "Pickup")
        rewards = []
        for cell in cells_with(simulator, KEY, BALL, BOX):
            simulator.reset()
            face(simulator, cell)
            rewards.append(simulator.step(PICKUP).reward)
        return 0.2 in rewards

    checks = {"Distance": distance_counts, "OpenDoors": doors_count, "Pickup": pickups_count}
    applicable = [shaping for shaping, changes_a_reward in checks.items() if changes_a_reward()]
    if {"OpenDoors", "Pickup"} <= set(applicable):
        applicable.append("OpenDoorsPickup")
    assert tuple(applicable) == minigrid.GRIDWORLDS[env_id][1]
