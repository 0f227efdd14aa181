"""What tests of gridworlds share: MiniGrid's own environments, lively walks in them, an agent put in its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from minigrid import wrappers

from efhorizon.suites import minigrid
from efhorizon.suites.minigrid_shaping import HEADINGS
from efhorizon.suites.minigrid_simulator import MiniGridSimulator

LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE = range(6)
EMPTY, DOOR, KEY, BALL, BOX, AGENT = 1, 4, 5, 6, 7, 10  # MiniGrid's symbols
GRIDWORLDS = list(minigrid.GRIDWORLDS)
EPISODE = 90  # steps of a walk from one reset to the next


def original(env_id: str) -> Any:
    return wrappers.FlatObsWrapper(wrappers.FullyObsWrapper(gymnasium.make(env_id, disable_env_checker=True)))


def lively_action(env: Any, num_actions: int, rng: np.random.Generator) -> int:
    """A random action that often handles what is in front, so that walks open doors and carry things about."""
    front = env.grid.get(*env.front_pos)
    if num_actions == 6 and front is not None and (front.can_pickup() or front.type == "door") and rng.random() < 0.6:
        return int(rng.choice([PICKUP, TOGGLE]))
    probabilities = np.array([0.15, 0.15, 0.5, 0.06, 0.07, 0.07][:num_actions])
    return int(rng.choice(num_actions, p=probabilities / probabilities.sum()))


def actions_of_walk(env_id: str, length: int, seed: int = 0) -> Iterator[tuple[int, Any, float, bool]]:
    """Action, MiniGrid's environment after it, reward, end: a walk of episodes in MiniGrid's own environment."""
    rng = np.random.default_rng(seed)
    env = original(env_id)
    num_actions = 3 if "Empty" in env_id else 6
    for step in range(length):
        if step % EPISODE == 0:
            env.unwrapped.reset(seed=0)
        action = lively_action(env.unwrapped, num_actions, rng)
        _, reward, terminated, _, _ = env.unwrapped.step(action)
        env.unwrapped.step_count = 0  # success pays less and less over time, after max_steps even less than nothing
        yield action, env, float(reward), terminated
        if terminated:
            env.unwrapped.reset(seed=0)


def face(simulator: MiniGridSimulator, cell: int) -> bytes:
    """Put the agent next to a cell, looking at it, and leave all else as it is."""
    screen = simulator.screen()
    symbols = screen[..., 0].ravel()
    places = [(cell - dx - dy * screen.shape[1], direction) for direction, (dx, dy) in enumerate(HEADINGS)]
    free = [pose for pose in places if symbols[pose[0]] in (EMPTY, AGENT)]
    occupied = [pose for pose in places if symbols[pose[0]] in (DOOR, BALL)]  # a tight fit, but MiniGrid does not mind
    place, direction = (free + occupied)[0]
    state = place.to_bytes(2, "big") + bytes([direction]) + simulator.get_state()[3:]
    simulator.set_state(state)
    return state


def cells_with(simulator: MiniGridSimulator, *symbols: int) -> list[int]:
    return [int(cell) for cell in np.flatnonzero(np.isin(simulator.screen()[..., 0], symbols))]
