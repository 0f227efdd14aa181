"""MiniGrid gridworlds as simulators: MiniGrid's own classes and rules, with states that are a few bytes.

MiniGrid spends nearly all of a step on the agent's view, and copying an environment rebuilds its whole grid. Here the
view is switched off, and a state is only what a step can change:

    agent's cell and direction | flags of each door | kind of what is carried | each object's cell, kind, ever picked up

All else - walls, goals, lava, the mission - is fixed by the layout of seed 0. `step_count` and the random generator are
not part of it: success pays 1 at any time, and a gridworld that draws a random number after its reset is refused.

Objects that can be carried are sorted into *kinds*: same type, same colour, same contents, and held by the same
attribute of the environment (`env.obj` is the object to fetch; success is decided by its identity). Objects of one kind
are interchangeable, so states that differ only by swapping them are one state, as in the published tables. The bytes
are therefore canonical: equal states give equal bytes, in every process.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from efhorizon.suites.minigrid_shaping import HEADINGS, TENTHS, Potential
from efhorizon.suites.simulator import MissingExtraError, Screen, SimulatorError, Transition

SEED = 0  # of the layout, as in the published tables
NAVIGATION_ACTIONS = 3  # left, right, forward: all there is to do in an empty room
ACTIONS = 6  # and pickup, drop, toggle; MiniGrid's seventh action, `done`, never does anything
FORWARD = 2
TILE = 32  # pixels, as in the published screens
EMPTY, AGENT = 1, 10  # MiniGrid's symbols for an empty cell and for the agent
HEADER = 3  # bytes: cell (2), direction (1)
RECORD = 4  # bytes: cell (2), kind (1), ever picked up? (1)
NO_KIND = 255


class Layout(NamedTuple):
    """A gridworld without what steps change. Doors and kinds of objects are numbered as in a state's bytes."""

    width: int
    cells: tuple[str, ...]  # the type of what is there and cannot be carried; "" where there is nothing
    doors: dict[int, str]  # cell -> colour
    kinds: tuple[str, ...]  # type of each kind of objects
    colours: tuple[str, ...]
    contents: tuple[int, ...]  # the kind inside a box, or -1
    target: int  # the kind of the object to be fetched, or -1
    exit_door: int  # the door to be opened, or -1
    num_things: int  # that can be carried, boxes counted without what is inside
    screen: Screen  # [cells, 3], without doors' changes, objects and the agent
    door_codes: NDArray[np.uint8]  # [D, 2], MiniGrid's symbols for type and colour
    kind_codes: NDArray[np.uint8]  # [K, 3], and state


class MiniGridSimulator:
    """One gridworld, such as `MiniGrid-DoorKey-5x5-v0`, with the layout of seed 0; perhaps with a shaped reward."""

    def __init__(self, env_id: str, shaping: str | None = None) -> None:
        """`env_id` is MiniGrid's own id; `shaping` one of `efhorizon.suites.minigrid_shaping.SHAPINGS`."""
        self._env_id = env_id
        env = self._env = _environment(env_id)
        self._generator = env._np_random = _WatchedGenerator(env.np_random)
        self.num_actions = NAVIGATION_ACTIONS if env_id.startswith("MiniGrid-Empty-") else ACTIONS
        self._width: int = env.grid.width
        self._cells: list[Any] = env.grid.grid  # the environment's own list, row by row; steps change it in place
        self._strides = [dx + dy * self._width for dx, dy in HEADINGS]
        self._points = [np.array((cell % self._width, cell // self._width)) for cell in range(len(self._cells))]
        self._cell_codes = [cell.to_bytes(2, "big") for cell in range(len(self._cells))]

        self._stock = _Stock(env)
        self._doors = {cell: thing for cell, thing in enumerate(self._cells) if getattr(thing, "type", "") == "door"}
        self._things = {cell: thing for cell, thing in enumerate(self._cells) if thing in self._stock.kinds}
        self._layout: Screen = np.array(  # [height * width, 3]
            [
                (EMPTY, 0, 0) if thing is None or cell in self._things else thing.encode()
                for cell, thing in enumerate(self._cells)
            ],
            dtype=np.uint8,
        )
        self._picked: set[Any] = set()  # objects that were picked up at least once
        self._code: bytes | None = None  # of doors and objects, until an action changes them
        self._cell = self._agent_cell()
        self._potential = None if shaping is None else Potential(shaping, env)
        wrappers = import_module("minigrid.wrappers")
        self._flat_view = wrappers.FlatObsWrapper(wrappers.FullyObsWrapper(env))
        self.observation_space = self._flat_view.observation_space
        self._start = self.get_state()
        self.reset()

    def reset(self) -> None:
        self.set_state(self._start)

    def step(self, action: int) -> Transition:
        env = self._env
        before = self.potential()
        front = self._cell + self._strides[env.agent_dir]
        occupant = self._cells[front]
        _, reward, terminated, _, _ = env.step(action)
        if self._generator.was_used:
            raise SimulatorError(f"{self._env_id} draws random numbers in its steps, so it is not deterministic")
        if action == FORWARD:
            self._cell = self._agent_cell()
        elif action > FORWARD:
            self._note_change(front, occupant)
        after = self.potential()
        if before is None or after is None:
            return Transition(float(reward), terminated)
        return Transition((TENTHS * reward + after - before) / TENTHS, terminated)

    def potential(self) -> int | None:
        """The weighted shaping potential of the current state, in tenths of a reward; None where it has none."""
        if self._potential is None:
            return 0
        env = self._env
        return self._potential.value(
            self._cell, env.agent_dir, self._doors.values(), self._things.values(), env.carrying, self._picked
        )

    def get_state(self) -> bytes:
        if self._code is None:
            self._code = self._objects_code()
        return self._cell_codes[self._cell] + bytes((self._env.agent_dir,)) + self._code

    def set_state(self, state: bytes) -> None:
        code = state[HEADER:]
        if code != self._code:  # often only the agent has moved
            self._restore_objects(code)
        self._cell = state[0] << 8 | state[1]
        self._env.agent_pos = self._points[self._cell]
        self._env.agent_dir = state[2]

    def identity(self, state: bytes) -> bytes:
        """The state itself: the bytes are canonical."""
        return state

    def screen(self) -> Screen:
        """MiniGrid's symbols (type, colour, state), [height, width, 3]; the agent hides what it stands on."""
        screen = self._layout.copy()
        for cell, thing in (*self._doors.items(), *self._things.items()):
            screen[cell] = thing.encode()
        screen[self._cell] = AGENT, 0, self._env.agent_dir
        return screen.reshape(-1, self._width, 3)

    def picture(self) -> Screen:
        """MiniGrid's own drawing with the agent's field of view lit up: the published screens, pixel by pixel."""
        picture: Screen = self._env.get_full_render(highlight=True, tile_size=TILE)
        return picture

    def observation(self) -> NDArray[np.uint8]:
        """What MiniGrid's FullyObsWrapper and FlatObsWrapper show: the grid column by column, then the mission text."""
        image = self.screen().transpose(1, 0, 2)
        observation: NDArray[np.uint8] = self._flat_view.observation({"image": image, "mission": self._env.mission})
        return observation

    def layout(self) -> Layout:
        """What no step changes, read from the start state."""
        self.reset()
        env, stock = self._env, self._stock
        first = [stock.first(kind) for kind in range(stock.num_kinds)]
        target = getattr(env, "obj", None)
        exit_door = [number for number, door in enumerate(self._doors.values()) if door is getattr(env, "door", None)]
        return Layout(
            self._width,
            tuple(
                "" if thing is None or cell in self._things else thing.type for cell, thing in enumerate(self._cells)
            ),
            {cell: door.color for cell, door in self._doors.items()},
            tuple(thing.type for thing in first),
            tuple(thing.color for thing in first),
            tuple(-1 if content is None else content for content in stock.contents),
            stock.kinds.get(target, -1) if target is not None else -1,
            exit_door[0] if exit_door else -1,
            len(self._things),
            self._layout,
            np.array([door.encode()[:2] for door in self._doors.values()], np.uint8).reshape(-1, 2),
            np.array([thing.encode() for thing in first], np.uint8).reshape(-1, 3),
        )

    def close(self) -> None:
        self._env.close()

    def _agent_cell(self) -> int:
        x, y = self._env.agent_pos
        return int(y) * self._width + int(x)

    def _note_change(self, front: int, occupant: Any) -> None:
        """Keep up with what pickup, drop and toggle did: they act on the cell in front and the agent's hands only."""
        now = self._cells[front]
        if now is occupant and front not in self._doors:
            return
        self._code = None
        self._things.pop(front, None)
        if now in self._stock.kinds:
            self._things[front] = now
        if self._env.carrying is not None:
            self._picked.add(self._env.carrying)

    def _objects_code(self) -> bytes:
        kinds, carried = self._stock.kinds, self._env.carrying
        code = bytearray(door.is_open | door.is_locked << 1 for door in self._doors.values())
        code.append(NO_KIND if carried is None else kinds[carried])
        for cell in sorted(self._things):  # a cell holds one object, so this order is canonical
            thing = self._things[cell]
            code += self._cell_codes[cell]
            code += bytes((kinds[thing], thing in self._picked))
        return bytes(code)

    def _restore_objects(self, code: bytes) -> None:
        for cell in self._things:
            self._cells[cell] = None
        self._things.clear()
        self._picked.clear()
        for door, flags in zip(self._doors.values(), code, strict=False):
            door.is_open, door.is_locked = bool(flags & 1), bool(flags & 2)
        supply = self._stock.supply()
        carried_at = len(self._doors)
        self._env.carrying = None
        if code[carried_at] != NO_KIND:
            self._env.carrying = self._stock.draw(supply, code[carried_at])
            self._picked.add(self._env.carrying)
        for start in range(carried_at + 1, len(code), RECORD):
            high, low, kind, was_picked = code[start : start + RECORD]
            thing = self._stock.draw(supply, kind)
            self._cells[high << 8 | low] = self._things[high << 8 | low] = thing
            if was_picked:
                self._picked.add(thing)
        self._code = code


def picture_of_screen(screen: Screen) -> Screen:
    """A drawing of a stored screen, without an environment.

    It is `MiniGridSimulator.picture` less two things that a screen does not tell: the agent's field of view is not lit
    up, and an agent in a doorway hides the open door.
    """
    grid_class = _minigrid_module("minigrid.core.grid").Grid
    world_object = _minigrid_module("minigrid.core.world_object").WorldObj
    tiles = [
        [
            grid_class.render_tile(
                world_object.decode(kind, colour, state), agent_dir=state if kind == AGENT else None, tile_size=TILE
            )
            for kind, colour, state in row
        ]
        for row in screen.tolist()
    ]
    picture: Screen = np.concatenate([np.concatenate(row, axis=1) for row in tiles], axis=0).astype(np.uint8)
    return picture


class _Stock:
    """All objects of a gridworld that can be carried, by kind. A kind holds at least as many as any state needs."""

    def __init__(self, env: Any) -> None:
        self.kinds: dict[Any, int] = {}  # object -> kind
        self._members: list[list[Any]] = []  # kind -> objects
        self.contents: list[int | None] = []  # kind -> kind of what is inside
        holders = {id(value): name for name, value in vars(env).items()}
        kinds_by_look: dict[tuple[str, str, str | None, int | None], int] = {}

        def admit(thing: Any) -> int:
            content = None if thing.contains is None else admit(thing.contains)
            look = (thing.type, thing.color, holders.get(id(thing)), content)
            kind = kinds_by_look.setdefault(look, len(self._members))
            if kind == len(self._members):
                self._members.append([])
                self.contents.append(content)
            self._members[kind].append(thing)
            self.kinds[thing] = kind
            return kind

        for thing in env.grid.grid:
            if thing is not None and thing.can_pickup():
                admit(thing)

    @property
    def num_kinds(self) -> int:
        return len(self._members)

    def first(self, kind: int) -> Any:
        """One object of a kind."""
        return self._members[kind][0]

    def supply(self) -> list[Iterator[Any]]:
        """Everything in stock, to draw one state's objects from."""
        return [iter(members) for members in self._members]

    def draw(self, supply: list[Iterator[Any]], kind: int) -> Any:
        """The next object of a kind, with what belongs inside it."""
        thing = next(supply[kind])
        content = self.contents[kind]
        if content is not None:
            thing.contains = self.draw(supply, content)
        return thing


class _WatchedGenerator:
    """Takes the place of the random generator once the layout is made, and says whether it was used since."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self.was_used = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)  # copying looks for such names, and is no use of the generator
        self.was_used = True
        return getattr(self._generator, name)


def _minigrid_module(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError("minigrid", "minigrid") from error


def _environment(env_id: str) -> Any:
    """MiniGrid's environment, reset, with no view and no time in its reward."""
    _minigrid_module("minigrid")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # MiniGrid calls its first versions, which were published, out of date
            env: Any = gymnasium.make(env_id, disable_env_checker=True).unwrapped
            env.reset(seed=SEED)
    except (gymnasium.error.Error, OSError) as error:
        raise SimulatorError(f"cannot make {env_id!r}: {error}") from error
    env.gen_obs = dict  # an empty one: the view is most of a step's cost
    env._reward = lambda: 1
    return env
