"""MiniGrid simulators against MiniGrid's own environments and figures of the published KeyCorridorS3R1 table."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from efhorizon import catalog
from efhorizon.suites.minigrid import LARGE_GRIDWORLDS
from efhorizon.suites.simulator import MissingExtraError, Simulator, SimulatorError

pytest.importorskip("minigrid")
gymnasium = pytest.importorskip("gymnasium")
wrappers = pytest.importorskip("minigrid.wrappers")

from gridworlds import (  # noqa: E402
    BOX,
    DOOR,
    DROP,
    EPISODE,
    FORWARD,
    GRIDWORLDS,
    KEY,
    LEFT,
    PICKUP,
    RIGHT,
    TOGGLE,
    actions_of_walk,
    cells_with,
    face,
    original,
)
from minigrid.core.grid import Grid  # noqa: E402
from minigrid.core.mission import MissionSpace  # noqa: E402
from minigrid.core.world_object import Ball, Box, Key  # noqa: E402
from minigrid.minigrid_env import MiniGridEnv  # noqa: E402

from efhorizon.suites.minigrid_simulator import MiniGridSimulator, picture_of_screen  # noqa: E402


class TwinsEnv(MiniGridEnv):
    """Two boxes with the same inside, and two like balls of which only one is to be fetched: no gridworld has those."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(MissionSpace(lambda: "fetch the right ball"), grid_size=6, **kwargs)

    def _gen_grid(self, width: int, height: int) -> None:
        self.grid = Grid(width, height)
        self.grid.wall_rect(0, 0, width, height)
        self.obj = Ball("green")
        things = {
            (4, 1): Box("blue", Key("red")),
            (2, 3): Box("blue", Key("red")),
            (4, 4): self.obj,
            (1, 4): Ball("green"),
        }
        for (x, y), thing in things.items():
            self.put_obj(thing, x, y)
        self.agent_pos, self.agent_dir = (1, 1), 0
        self.mission = "fetch the right ball"

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        if self.carrying is not None and self.carrying is self.obj:
            reward, terminated = self._reward(), True
        return observation, reward, terminated, truncated, info


TWINS = "Twins-v0"
gymnasium.register(TWINS, TwinsEnv)

SAME_LOOKS = ["MiniGrid-ObstructedMaze-2Dlhb-v1", "MiniGrid-ObstructedMaze-2Dl-v0"]  # too large, but with like objects
DOCUMENT = Path(__file__).parents[2] / "docs" / "minigrid-states.md"

pytestmark = pytest.mark.filterwarnings("ignore")  # MiniGrid calls its first versions out of date


def graph(simulator: MiniGridSimulator, horizon: int = 100) -> tuple[list[bytes], list[list[int]], list[list[float]]]:
    """All states reachable before the horizon in breadth-first order, with their transitions and rewards."""
    simulator.reset()
    states = [simulator.get_state()]
    numbers = {states[0]: 0}
    transitions: list[list[int]] = []
    rewards: list[list[float]] = []
    layer_end, depth = 1, 0
    while len(transitions) < len(states) and depth < horizon:
        for state in states[len(transitions) : layer_end]:
            row, pay = [], []
            for action in range(simulator.num_actions):
                simulator.set_state(state)
                reward, terminated = simulator.step(action)
                successor = -1
                if not terminated:
                    code = simulator.get_state()
                    if code not in numbers and depth + 1 < horizon:
                        numbers[code] = len(states)
                        states.append(code)
                    successor = numbers.get(code, -1)
                row.append(successor)
                pay.append(reward)
            transitions.append(row)
            rewards.append(pay)
        layer_end, depth = len(states), depth + 1
    return states, transitions, rewards


# ---------------------------------------------------------------- the published table


def test_key_corridor_is_the_published_table() -> None:
    states, transitions, rewards = graph(MiniGridSimulator("MiniGrid-KeyCorridorS3R1-v0"))
    assert len(states) == 168
    table = np.array(transitions, dtype="<i4").tobytes() + np.array(rewards, dtype="<f8").tobytes()
    assert hashlib.sha256(table).hexdigest() == "5bb5939a279bbb88e7114aef6aeef0d351f433fe41c755f8535e44af2df13ce4"
    assert sorted({reward for row in rewards for reward in row}) == [0.0, 1.0]


def test_key_corridor_has_the_published_number_of_screens() -> None:
    simulator = MiniGridSimulator("MiniGrid-KeyCorridorS3R1-v0")
    screens, pictures = set(), set()
    for state in graph(simulator)[0]:
        simulator.set_state(state)
        screens.add(simulator.screen().tobytes())
        pictures.add(simulator.picture().tobytes())
    assert len(screens) == len(pictures) == 156
    assert simulator.picture().shape == (96, 224, 3)
    simulator.reset()
    digest = hashlib.sha256(simulator.picture().tobytes()).hexdigest()
    assert (
        digest == "f12ee7a4508a9a6dbcb9f8a58591334122551d3cf75dedec7b6f4375fe6a3914"
    )  # the start screen of the published table


def test_documented_state_counts() -> None:
    rows = re.findall(r"^\| (MiniGrid-\S+) \| ([\d,]+) \| (\d) \|", DOCUMENT.read_text(), flags=re.MULTILINE)
    large = re.findall(r"^\| (MiniGrid-\S+) \| ([\d,]+) \| (yes|no) \|", DOCUMENT.read_text(), flags=re.MULTILINE)
    measured = {env_id: (int(count.replace(",", "")), are_all == "yes") for env_id, count, are_all in large}
    assert measured == LARGE_GRIDWORLDS
    counts = {env_id: int(count.replace(",", "")) for env_id, count, _ in rows}
    assert list(counts) == GRIDWORLDS
    assert all(int(actions) == catalog.entry(env_id).num_actions for env_id, _, actions in rows)
    assert all(count <= 1_000_000 for count in counts.values())
    left_out = re.findall(r"^\| (MiniGrid-\S+) \| [^\d|]", DOCUMENT.read_text(), flags=re.MULTILINE)
    registered = {env_id for env_id in gymnasium.registry if env_id.startswith("MiniGrid-")}
    assert registered == {*counts, *measured, *left_out}
    assert len(registered) == len(counts) + len(measured) + len(left_out)
    small = [env_id for env_id, count in counts.items() if count <= 1500]
    assert len(small) >= 30
    for env_id in small:
        assert len(graph(MiniGridSimulator(env_id))[0]) == counts[env_id], env_id


# ---------------------------------------------------------------- against MiniGrid


@pytest.mark.parametrize("env_id", [*GRIDWORLDS, TWINS])
def test_walks_like_the_original(env_id: str) -> None:
    simulator = MiniGridSimulator(env_id)
    for number, (action, env, reward, terminated) in enumerate(actions_of_walk(env_id, 180)):
        if number % EPISODE == 0:
            simulator.reset()
        assert simulator.step(action) == (float(reward > 0), terminated)
        flat = env.observation(env.env.observation({"mission": env.unwrapped.mission}))
        assert np.array_equal(simulator.observation(), flat)
        image = flat[: simulator.screen().size].reshape(env.unwrapped.width, env.unwrapped.height, 3)
        assert np.array_equal(simulator.screen(), image.transpose(1, 0, 2))
        if terminated:
            simulator.reset()
    assert simulator.observation_space == env.observation_space
    assert simulator.observation_space.contains(simulator.observation())


@pytest.mark.parametrize("env_id", [*GRIDWORLDS, TWINS])
def test_restored_states_go_on_like_the_live_ones(env_id: str) -> None:
    live, restored = MiniGridSimulator(env_id), MiniGridSimulator(env_id)
    steps = []
    for number, (action, *_) in enumerate(actions_of_walk(env_id, 180, seed=1)):
        if number % EPISODE == 0:
            live.reset()
        before = live.get_state()
        transition = live.step(action)
        steps.append((before, action, transition, live.get_state(), live.screen()))
        if transition.terminated:
            live.reset()
    order = np.random.default_rng(0).permutation(len(steps))
    for before, action, transition, after, screen in (steps[i] for i in order):
        restored.set_state(before)
        assert restored.get_state() == restored.identity(before) == before
        assert restored.step(action) == transition
        assert restored.get_state() == after
        assert np.array_equal(restored.screen(), screen)


def published_key(env: Any, picked: set[Any]) -> tuple[Any, ...]:
    """What the published tables tell states apart by, and what a carried box contains (which they lose)."""
    flags, contents, target = [], [], None
    for cell, thing in enumerate(env.grid.grid):
        if thing is None:
            continue
        flags += [(cell, thing in picked)] if thing.can_pickup() else []
        contents += [(cell, thing.contains.encode())] if thing.contains is not None else []
        target = cell if thing is getattr(env, "obj", None) else target
    carried = env.carrying and (env.carrying.encode(), env.carrying.contains and env.carrying.contains.encode())
    pose = (int(env.agent_pos[0]), int(env.agent_pos[1]), int(env.agent_dir))
    return env.grid.encode().tobytes(), carried, pose, target, tuple(contents), tuple(flags)


@pytest.mark.parametrize("env_id", [*GRIDWORLDS, *SAME_LOOKS, TWINS])
def test_states_are_as_fine_as_the_published_ones(env_id: str) -> None:
    simulator = MiniGridSimulator(env_id)
    states_by_key: dict[tuple[Any, ...], bytes] = {}
    picked: set[Any] = set()
    for number, (action, env, _, terminated) in enumerate(actions_of_walk(env_id, 360, seed=2)):
        if number % EPISODE == 0:
            simulator.reset()
            picked.clear()
        simulator.step(action)
        picked |= {env.unwrapped.carrying} - {None}
        state = states_by_key.setdefault(published_key(env.unwrapped, picked), simulator.get_state())
        assert state == simulator.get_state()
        if terminated:
            simulator.reset()
            picked.clear()
    assert len(set(states_by_key.values())) == len(states_by_key)


def test_walks_handle_things() -> None:
    """The tests above mean little unless their walks carry, drop, unlock and open."""
    carried, unlocked, opened_boxes = set(), set(), set()
    for env_id in ("MiniGrid-DoorKey-5x5-v0", "MiniGrid-ObstructedMaze-1Dlhb-v0", "MiniGrid-UnlockPickup-v0"):
        boxes = None
        for number, (_, env, _, _) in enumerate(actions_of_walk(env_id, 360, seed=2)):
            things = [thing for thing in env.unwrapped.grid.grid if thing is not None]
            if env.unwrapped.carrying is not None:
                carried.add(env.unwrapped.carrying.type)
            unlocked |= {env_id for thing in things if thing.type == "door" and not thing.is_locked}
            count = sum(thing.type == "box" for thing in things) + (
                getattr(env.unwrapped.carrying, "type", "") == "box"
            )
            if boxes is not None and count < boxes and number % EPISODE:
                opened_boxes.add(env_id)
            boxes = count
    assert carried == {"key", "ball", "box"}
    assert "MiniGrid-DoorKey-5x5-v0" in unlocked
    assert "MiniGrid-ObstructedMaze-1Dlhb-v0" in opened_boxes


def carry(simulator: MiniGridSimulator, source: int, destination: int) -> None:
    face(simulator, source)
    simulator.step(PICKUP)
    face(simulator, destination)
    simulator.step(DROP)


def test_twins_can_be_swapped() -> None:
    simulator = MiniGridSimulator(TWINS)
    (first, second), spare = cells_with(simulator, BOX), 15
    carry(simulator, first, spare)
    carry(simulator, second, first)
    swapped = face(simulator, spare)
    simulator.reset()
    carry(simulator, second, spare)
    carry(simulator, first, second)
    carry(simulator, second, first)
    assert face(simulator, spare) == swapped


def test_each_twin_box_has_a_key_of_its_own() -> None:
    simulator = MiniGridSimulator(TWINS)
    for order in (1, -1):
        simulator.reset()
        boxes = cells_with(simulator, BOX)[::order]
        for box in boxes:
            face(simulator, box)
            simulator.step(TOGGLE)
            state = simulator.get_state()
            simulator.reset()
            simulator.set_state(state)
        assert cells_with(simulator, KEY) == sorted(boxes)
        carry(simulator, boxes[0], 15)
        assert cells_with(simulator, KEY) == sorted([15, boxes[1]])


def test_only_the_right_twin_is_to_be_fetched() -> None:
    simulator = MiniGridSimulator(TWINS)
    wrong, right = 4 * 6 + 1, 4 * 6 + 4
    start = simulator.get_state()
    for ball, transition in ((wrong, (0.0, False)), (right, (1.0, True)), (wrong, (0.0, False))):
        simulator.set_state(start)
        face(simulator, ball)
        assert simulator.step(PICKUP) == transition


def test_states_mean_the_same_in_another_process() -> None:
    script = (
        "from efhorizon.suites.minigrid_simulator import MiniGridSimulator as S\n"
        "s = S('MiniGrid-ObstructedMaze-1Dlhb-v0')\n"
        "for a in [0, 2, 3, 2, 5, 1, 2, 2, 3, 4, 1, 2, 3, 5] * 3: s.step(a)\n"
        "print(s.get_state().hex())"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1


# ---------------------------------------------------------------- particular states


def test_is_a_simulator() -> None:
    simulator = MiniGridSimulator("MiniGrid-Empty-5x5-v0")
    assert isinstance(simulator, Simulator)
    assert (simulator.num_actions, MiniGridSimulator("MiniGrid-Unlock-v0").num_actions) == (3, 6)
    simulator.close()


def test_success_pays_one_at_any_time() -> None:
    simulator = MiniGridSimulator("MiniGrid-Empty-5x5-v0")
    for _ in range(2000):
        simulator.step(LEFT)
    rewards = [simulator.step(action) for action in (FORWARD, FORWARD, RIGHT, FORWARD, FORWARD)]
    assert rewards == [(0.0, False)] * 4 + [(1.0, True)]


def test_lava_ends_without_reward() -> None:
    simulator = MiniGridSimulator("MiniGrid-DistShift1-v0")  # lava from the third cell of the first row
    assert [simulator.step(FORWARD) for _ in range(2)] == [(0.0, False), (0.0, True)]


def test_a_restored_carried_object_is_not_lost() -> None:
    simulator = MiniGridSimulator("MiniGrid-DoorKey-5x5-v0")
    start, (key,) = simulator.get_state(), cells_with(simulator, KEY)
    face(simulator, key)
    simulator.step(PICKUP)
    carrying = simulator.get_state()
    assert not cells_with(simulator, KEY)
    simulator.set_state(start)
    assert cells_with(simulator, KEY) == [key]
    simulator.set_state(carrying)
    simulator.step(DROP)
    assert cells_with(simulator, KEY) == [key]
    dropped = simulator.get_state()
    simulator.reset()
    assert dropped == face(simulator, key)[:-1] + b"\x01"  # only that it was carried is new


def test_a_restored_key_unlocks_and_a_door_can_be_closed_again() -> None:
    simulator = MiniGridSimulator("MiniGrid-DoorKey-5x5-v0")
    (key,), (door,) = cells_with(simulator, KEY), cells_with(simulator, DOOR)
    empty_handed = face(simulator, door)
    simulator.step(TOGGLE)
    assert simulator.get_state() == empty_handed  # still locked
    face(simulator, key)
    simulator.step(PICKUP)
    with_key = face(simulator, door)
    simulator.set_state(empty_handed)
    simulator.set_state(with_key)
    flags = []
    for _ in range(3):
        simulator.step(TOGGLE)
        flags.append(int(simulator.screen().reshape(-1, 3)[door, 2]))
    assert flags == [0, 1, 0]  # open, closed but no longer locked, open


def test_a_carried_box_keeps_its_key() -> None:
    simulator = MiniGridSimulator("MiniGrid-ObstructedMaze-1Dlh-v0")
    (box,) = cells_with(simulator, BOX)
    face(simulator, box)
    simulator.step(PICKUP)
    carrying = simulator.get_state()
    simulator.reset()
    simulator.set_state(carrying)
    simulator.step(DROP)
    simulator.step(TOGGLE)
    assert cells_with(simulator, KEY) == [box]
    assert not cells_with(simulator, BOX)


def test_pictures() -> None:
    for env_id in ("MiniGrid-MultiRoom-N2-S4-v0", "MiniGrid-LavaGapS7-v0", "MiniGrid-ObstructedMaze-1Dlhb-v0"):
        env = original(env_id).unwrapped
        env.reset(seed=0)
        simulator = MiniGridSimulator(env_id)
        assert np.array_equal(simulator.picture(), env.get_frame(highlight=True, tile_size=32))
        assert np.array_equal(picture_of_screen(simulator.screen()), env.get_frame(highlight=False, tile_size=32))


# ---------------------------------------------------------------- what cannot be done


def test_refusals() -> None:
    with pytest.raises(SimulatorError, match="no shaping 'Lava'"):
        MiniGridSimulator("MiniGrid-LavaGapS5-v0", "Lava")
    with pytest.raises(SimulatorError, match="no goal"):
        MiniGridSimulator("MiniGrid-Unlock-v0", "Distance")
    with pytest.raises(SimulatorError, match="MiniGrid-Nowhere-v0"):
        MiniGridSimulator("MiniGrid-Nowhere-v0")
    moving = MiniGridSimulator("MiniGrid-Dynamic-Obstacles-5x5-v0")
    with pytest.raises(SimulatorError, match="draws random numbers"):
        moving.step(LEFT)


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minigrid", None)
    with pytest.raises(MissingExtraError, match=re.escape("efhorizon[minigrid]")):
        MiniGridSimulator("MiniGrid-Empty-5x5-v0")


def test_modules_import_without_minigrid() -> None:
    script = "import sys; sys.modules['minigrid'] = None\nimport efhorizon.suites.minigrid, efhorizon.catalog"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
