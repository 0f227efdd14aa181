"""MiniGrid's rules written again, against MiniGrid itself: every action in every state."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("minigrid")

from efhorizon.suites.batched import BatchedSimulator, Successors
from efhorizon.suites.minigrid import GRIDWORLDS, LARGE_GRIDWORLDS, MINIGRID
from efhorizon.suites.minigrid_batched import BatchedMiniGrid, is_batched
from efhorizon.suites.minigrid_simulator import MiniGridSimulator

KNOWN = [name for name in GRIDWORLDS if is_batched(name, None)]
SMALL = [name for name in KNOWN if GRIDWORLDS[name][0] <= 300]
MOST_STATES = 400  # of the larger ones: those that random play meets


def padded(many: BatchedMiniGrid, state: bytes) -> np.ndarray:
    row = np.full(len(many.start), 255, np.uint8)
    row[: len(state)] = np.frombuffer(state, np.uint8)
    return row


def check(env_id: str, states: list[bytes]) -> None:
    """All actions in these states, their screens, and which screens are equal."""
    one, many = MiniGridSimulator(env_id), BatchedMiniGrid(env_id)
    rows = np.stack([padded(many, state) for state in states])
    out = Successors.empty(len(rows), many.num_actions, rows.shape[1])
    many.expand(rows, out)
    screens, looks = many.screens(rows), many.looks(rows)
    assert looks is not None
    seen: dict[bytes, bytes] = {}
    for place, state in enumerate(states):
        assert many.snapshot(rows[place]) == state
        for action in range(many.num_actions):
            one.set_state(state)
            reward, ended = one.step(action)
            assert (reward, ended) == (out.rewards[place, action], out.ended[place, action]), (state, action)
            if not ended:
                assert many.snapshot(out.states[place, action]) == one.get_state(), (state, action)
        one.set_state(state)
        screen = one.screen()
        assert np.array_equal(screens[place], screen)
        look = looks[place].tobytes()
        assert seen.setdefault(look, screen.tobytes()) == screen.tobytes()
    assert len(set(seen.values())) == len(seen)


def all_states(env_id: str, most: int) -> list[bytes]:
    """States of the live environment, those that are met first."""
    simulator = MiniGridSimulator(env_id)
    simulator.reset()
    found = [simulator.get_state()]
    known = set(found)
    for state in found:
        for action in range(simulator.num_actions):
            simulator.set_state(state)
            if not simulator.step(action).terminated and (following := simulator.get_state()) not in known:
                known.add(following)
                found.append(following)
        if len(found) >= most:
            break
    return found


def walked(env_id: str, most: int) -> list[bytes]:
    """States of long random walks that like to handle things."""
    simulator, rng, found = MiniGridSimulator(env_id), np.random.default_rng(0), dict[bytes, None]()
    simulator.reset()
    for _ in range(50 * most):
        action = int(rng.choice(simulator.num_actions))
        if simulator.step(action).terminated:
            simulator.reset()
        found[simulator.get_state()] = None
        if len(found) >= most:
            break
    return list(found)


@pytest.mark.parametrize("env_id", SMALL)
def test_small_gridworlds_are_the_same_in_every_state(env_id: str) -> None:
    states = all_states(env_id, 10**6)
    assert len(states) == GRIDWORLDS[env_id][0]
    check(env_id, states)


@pytest.mark.parametrize("env_id", sorted({*KNOWN, *LARGE_GRIDWORLDS} - set(SMALL)))
def test_large_gridworlds_are_the_same_where_random_play_leads(env_id: str) -> None:
    check(env_id, walked(env_id, MOST_STATES))


def test_what_is_not_known_is_left_to_the_usual_simulator() -> None:
    for env_id, shaping in (("MiniGrid-MemoryS7-v0", None), ("MiniGrid-DoorKey-5x5-v0", "Distance")):
        assert MINIGRID.batched({"env_id": env_id, "shaping": shaping}) is None
    made = MINIGRID.batched({"env_id": "MiniGrid-DoorKey-5x5-v0", "shaping": None})
    assert isinstance(made, BatchedSimulator)
