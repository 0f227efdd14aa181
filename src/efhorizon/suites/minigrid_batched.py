"""MiniGrid's rules for many states at once.

A row has the bytes of `MiniGridSimulator.get_state`, with room for as many objects as there ever are in the gridworld;
what is not used is 255. The layout, the doors and the kinds of objects are read from a real environment, so only the
rules are written again here: turn, move, pick up, drop, toggle. Tests compare them with MiniGrid state by state.

Only gridworlds whose end is known are simulated so: a goal to reach, lava, an object to pick up, a door to open.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import compiled_with
from efhorizon.suites.batched import Rows, Successors
from efhorizon.suites.minigrid_shaping import HEADINGS
from efhorizon.suites.minigrid_simulator import AGENT, HEADER, RECORD, MiniGridSimulator

UNUSED = 255
FREE, SOLID, GOAL, LAVA, DOOR, FLOOR = range(6)  # what can be in a cell, besides objects that can be carried
OTHER, KEY, BOX = range(3)  # what can be carried
_OVERLAPS = {"floor": FLOOR, "goal": GOAL, "lava": LAVA, "door": DOOR}
_LEFT, _RIGHT, _FORWARD, _PICKUP, _DROP, _TOGGLE = range(6)

# Gridworlds whose steps are MiniGrid's own, and those that pay for picking up `env.obj` or for opening `env.door`.
PLAIN = (
    "DistShift", "DoorKey", "Empty", "FourRooms", "LavaCrossing", "LavaGap", "LockedRoom", "MultiRoom", "SimpleCrossing"
)  # fmt: skip
FETCHING = ("BlockedUnlockPickup", "KeyCorridor", "ObstructedMaze", "UnlockPickup")
OPENING = ("Unlock-",)


class Rules(NamedTuple):
    """What never changes in a gridworld."""

    cells: NDArray[np.uint8]  # [cells], one of the six
    door_at: NDArray[np.int32]  # [cells], or -1
    door_colours: NDArray[np.int32]  # [D]
    strides: NDArray[np.int32]  # [4], from a cell to the one in front, by direction
    kinds: NDArray[np.int32]  # [K], OTHER, KEY or BOX
    colours: NDArray[np.int32]  # [K]
    contents: NDArray[np.int32]  # [K], the kind inside a box, or -1
    target: int  # the kind to pick up, or -1
    exit_door: int  # the door to open, or -1
    num_actions: int


def is_batched(env_id: str, shaping: str | None) -> bool:
    """Whether the rules of a gridworld are known here."""
    name = env_id.removeprefix("MiniGrid-")
    return shaping is None and name.startswith((*PLAIN, *FETCHING, *OPENING))


class BatchedMiniGrid:
    """One gridworld with the layout of seed 0."""

    def __init__(self, env_id: str, shaping: str | None = None) -> None:
        simulator = MiniGridSimulator(env_id, shaping)
        layout = simulator.layout()
        self.num_actions = simulator.num_actions
        height, width, channels = simulator.screen().shape
        self.screen_shape: tuple[int, int, int] | None = (height, width, channels)
        name = env_id.removeprefix("MiniGrid-")
        cells = np.array([_OVERLAPS.get(kind, SOLID) if kind else FREE for kind in layout.cells], np.uint8)
        door_at = np.full(len(cells), -1, np.int32)
        door_at[list(layout.doors)] = np.arange(len(layout.doors))
        colours = {
            colour: number for number, colour in enumerate(dict.fromkeys([*layout.doors.values(), *layout.colours]))
        }
        self.rules = Rules(
            cells,
            door_at,
            np.array([colours[colour] for colour in layout.doors.values()], np.int32),
            np.array([dx + dy * layout.width for dx, dy in HEADINGS], np.int32),
            np.array([{"key": KEY, "box": BOX}.get(kind, OTHER) for kind in layout.kinds], np.int32),
            np.array([colours[colour] for colour in layout.colours], np.int32),
            np.array(layout.contents, np.int32),
            layout.target if name.startswith(FETCHING) else -1,
            layout.exit_door if name.startswith(OPENING) else -1,
            self.num_actions,
        )
        self._base = layout.screen  # [cells, 3], without objects and agent
        self._door_looks = layout.door_codes  # [D, 2], type and colour
        self._kind_looks = layout.kind_codes  # [K, 3]
        state = simulator.get_state()
        self._records = HEADER + len(layout.doors) + 1
        most = max(layout.num_things, (len(state) - self._records) // RECORD)
        self.start: NDArray[np.uint8] = np.full(self._records + RECORD * most, UNUSED, np.uint8)
        self.start[: len(state)] = np.frombuffer(state, np.uint8)
        same = {tuple(look): place for place, look in reversed(list(enumerate(self._kind_looks.tolist())))}
        self._look_of_kind = np.array([same[tuple(look)] for look in self._kind_looks.tolist()], np.uint8)
        simulator.close()

    def expand(self, states: Rows, out: Successors) -> None:
        _expand(states, self.rules, out.states, out.rewards, out.ended)

    def looks(self, states: Rows) -> Rows | None:
        """What is carried and what was picked up is not seen; nor are objects of two kinds that look alike."""
        looks = states.copy()
        looks[:, self._records - 1] = 0
        flags = looks[:, HEADER : self._records - 1]
        flags[:] = np.where(flags & 1, 0, np.where(flags & 2, 2, 1))
        if len(self._look_of_kind):
            kinds = looks[:, self._records + 2 :: RECORD]
            is_used = kinds != UNUSED
            kinds[is_used] = self._look_of_kind[kinds[is_used]]
            picked = looks[:, self._records + 3 :: RECORD]
            picked[is_used] = 0
        return looks

    def screens(self, states: Rows) -> NDArray[np.uint8]:
        """MiniGrid's symbols, as `MiniGridSimulator.screen` has them."""
        screens = np.repeat(self._base[None], len(states), axis=0)  # [B, cells, 3]
        _draw(states, self._records, self.rules.door_at, self._door_looks, self._kind_looks, screens)
        assert self.screen_shape is not None
        return screens.reshape(len(states), *self.screen_shape)

    def snapshot(self, state: NDArray[np.uint8]) -> bytes:
        cells = state[self._records :: RECORD].astype(np.int64) << 8 | state[self._records + 1 :: RECORD]
        used = int(np.count_nonzero(cells != (UNUSED << 8 | UNUSED)))
        return state[: self._records + RECORD * used].tobytes()

    def snapshots(self, states: Rows) -> tuple[Rows, NDArray[np.int64]]:
        cells = states[:, self._records :: RECORD].astype(np.int64) << 8 | states[:, self._records + 1 :: RECORD]
        used = np.count_nonzero(cells != (UNUSED << 8 | UNUSED), axis=1)
        return states, (self._records + RECORD * used).astype(np.int64)


@compiled_with(nogil=True)
def _find(row: Any, records: int, cell: Any) -> int:
    """Where the record of the object in a cell begins, or that of the next object behind it."""
    at = records
    while at < len(row):
        there = (np.int64(row[at]) << 8) | row[at + 1]
        if there >= cell:
            return at
        at += 4
    return at


@compiled_with(nogil=True)
def _holds(row: Any, at: int, cell: Any) -> bool:
    return at < len(row) and ((np.int64(row[at]) << 8) | row[at + 1]) == cell


@compiled_with(nogil=True)
def _remove(row: Any, at: int) -> None:
    for i in range(at, len(row) - 4):
        row[i] = row[i + 4]
    for i in range(len(row) - 4, len(row)):
        row[i] = 255


@compiled_with(nogil=True)
def _insert(row: Any, at: int, cell: Any, kind: Any) -> None:
    for i in range(len(row) - 1, at + 3, -1):
        row[i] = row[i - 4]
    row[at] = cell >> 8
    row[at + 1] = cell & 255
    row[at + 2] = kind
    row[at + 3] = 1


@compiled_with(nogil=True)
def _expand(states: Any, rules: Any, out: Any, rewards: Any, ended: Any) -> None:
    num_doors = len(rules.door_colours)
    carried_at = 3 + num_doors
    records = carried_at + 1
    for place in range(len(states)):
        state = states[place]
        cell = (np.int64(state[0]) << 8) | state[1]
        direction = np.int64(state[2])
        front = cell + rules.strides[direction]
        at = _find(state, records, front)
        has_thing = _holds(state, at, front)
        door = rules.door_at[front]
        carried = np.int64(state[carried_at])
        for action in range(rules.num_actions):
            row = out[place, action]
            for i in range(len(state)):
                row[i] = state[i]
            reward, over = 0.0, False
            if action == 0:
                row[2] = (direction + 3) & 3
            elif action == 1:
                row[2] = (direction + 1) & 3
            elif action == 2:
                what = rules.cells[front]
                is_open = door < 0 or (state[3 + door] & 1) == 1
                if not has_thing and what != 1 and is_open:
                    row[0] = front >> 8
                    row[1] = front & 255
                    over = what == 2 or what == 3
                    reward = 1.0 if what == 2 else 0.0
            elif action == 3:
                if has_thing and carried == 255:
                    carried_now = np.int64(state[at + 2])
                    row[carried_at] = carried_now
                    _remove(row, at)
                    if carried_now == rules.target:
                        reward, over = 1.0, True
            elif action == 4:
                if carried != 255 and not has_thing and rules.cells[front] == 0:
                    _insert(row, at, front, carried)
                    row[carried_at] = 255
            elif has_thing:
                kind = np.int64(state[at + 2])
                if rules.kinds[kind] == 2:  # a box gives way to what is inside it
                    inside = rules.contents[kind]
                    if inside < 0:
                        _remove(row, at)
                    else:
                        row[at + 2] = inside
                        row[at + 3] = 0
            elif door >= 0:
                flags = state[3 + door]
                if flags & 2:
                    if (
                        carried != 255
                        and rules.kinds[carried] == 1
                        and rules.colours[carried] == rules.door_colours[door]
                    ):
                        row[3 + door] = 1
                else:
                    row[3 + door] = flags ^ 1
            if action == 5 and rules.exit_door >= 0 and (row[3 + rules.exit_door] & 1):
                reward, over = 1.0, True
            rewards[place, action] = reward
            ended[place, action] = over


@compiled_with(nogil=True)
def _draw(states: Any, records: int, door_at: Any, door_looks: Any, kind_looks: Any, screens: Any) -> None:
    for place in range(len(states)):
        state = states[place]
        screen = screens[place]
        for cell in range(len(door_at)):
            door = door_at[cell]
            if door >= 0:
                flags = state[3 + door]
                screen[cell, 0] = door_looks[door, 0]
                screen[cell, 1] = door_looks[door, 1]
                screen[cell, 2] = 0 if flags & 1 else (2 if flags & 2 else 1)
        at = records
        while at < len(state) and not (state[at] == 255 and state[at + 1] == 255):
            cell = (np.int64(state[at]) << 8) | state[at + 1]
            for i in range(3):
                screen[cell, i] = kind_looks[state[at + 2], i]
            at += 4
        agent = (np.int64(state[0]) << 8) | state[1]
        screen[agent, 0] = AGENT
        screen[agent, 1] = 0
        screen[agent, 2] = state[2]
