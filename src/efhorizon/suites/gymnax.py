"""Gymnax: games written in JAX, stepped one by one or many at once.

    gymnax-{Game}     gymnax-Breakout-MinAtar, gymnax-DeepSea-bsuite, ...: Gymnax's own name with a prefix

Both simulators run Gymnax's own code. The usual one plays through the public `step` with the true time; the batched one
is `step_env` under `jax.vmap`. A table that was searched with the second is verified with the first, from reset.

- The start state is that of `jax.random.key(0)`. The random numbers of a step are those of a key that is the same in
  every step; games that use them (`draws`) get one key for each time, and the time then belongs to the state.
- In all other games the time that Gymnax counts is no part of a state: it only ends an episode, as a table's horizon
  does. Gymnax's own time limit is lifted.
- A state is all other fields, in the order of JAX's tree, as bytes: whole numbers take two, yes and no one. That every
  value fits is checked in each step.

Only games that count in whole numbers are here. XLA may round floats in another way when it steps many states at once,
so CartPole, MountainCar, Acrobot or Pong would not be the same bytes.

Games are not in the catalogue; `efhorizon build gymnax-Breakout-MinAtar` knows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from efhorizon.suites.batched import BatchedSimulator, Rows, Successors
from efhorizon.suites.entry import Entry
from efhorizon.suites.simulator import MissingExtraError, Screen, Simulator, SimulatorError, Transition
from efhorizon.suites.suite import Costs, NetworkKind, Suite, Survey

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py

PREFIX = "gymnax-"
SEED = 0
_NO_LIMIT = 1 << 30  # steps: the horizon of a table is its only time limit
_TIME_BYTES = 4
_SIZES = (128, 4096)  # states that are stepped at once: JAX compiles for each size
_PICTURE_SCALE = 16
_COLOURS = np.array(  # of the planes of an observation
    [(230, 230, 230), (230, 80, 60), (240, 180, 60), (80, 140, 230), (90, 190, 110), (170, 100, 210), (90, 200, 210),
     (250, 130, 180), (160, 160, 90), (130, 110, 90)], np.uint8
)  # fmt: skip


class Game(NamedTuple):
    """One game that has exact states."""

    num_actions: int
    horizon: int  # unless another one is asked for
    num_states: int | None  # within that horizon, where they were counted
    draws: bool = False  # whether its steps draw random numbers
    action_names: tuple[str, ...] = ()


GAMES: Mapping[str, Game] = MappingProxyType(
    {
        "Breakout-MinAtar": Game(3, 50, 1_954, action_names=("stay", "left", "right")),
        "Catch-bsuite": Game(3, 9, 39, action_names=("left", "stay", "right")),
        "DeepSea-bsuite": Game(2, 8, 36),
        "Freeway-MinAtar": Game(3, 40, 519, True, ("stay", "up", "down")),
        "SpaceInvaders-MinAtar": Game(4, 12, 4_197, action_names=("stay", "left", "right", "fire")),
    }
)


class _Rules(NamedTuple):
    """What one game does, compiled."""

    start: NDArray[np.uint8]  # [n]
    screen_shape: tuple[int, int, int]
    live_start: Any  # Gymnax's own state
    live_step: Callable[[Any, Any, Any], tuple[Any, Any, Any]]  # key, state, action -> state, reward, ended
    key_at: Callable[[int], Any]
    packed: Callable[[Any], tuple[Any, Any]]  # state -> bytes [n], whether they are exact
    unpacked: Callable[[Any, Any], Any]  # bytes [n], time -> state
    seen: Callable[[Any], Any]  # state -> [H, W, C]
    expand: Callable[[Any], tuple[Any, Any, Any, Any]]  # [B, n] -> [B, A, n], [B, A], [B, A], whether all are exact
    look: Callable[[Any], Any]  # [B, n] -> [B, H, W, C]


class GymnaxSimulator:
    """One game, state by state, played through Gymnax's public `step`."""

    def __init__(self, game: str) -> None:
        self._game, self._rules = game, _rules(game)
        self.num_actions = GAMES[game].num_actions
        self._state, self._time = self._rules.live_start, 0

    def reset(self) -> None:
        self._state, self._time = self._rules.live_start, 0

    def step(self, action: int) -> Transition:
        state, reward, ended = self._rules.live_step(self._rules.key_at(self._time), self._state, np.int32(action))
        self._state, self._time = state, self._time + 1
        return Transition(float(reward), bool(ended))

    def get_state(self) -> bytes:
        row, is_exact = self._rules.packed(self._state)
        if not is_exact:
            raise _inexact(self._game)
        return bytes(np.asarray(row)) + self._time.to_bytes(_TIME_BYTES, "little")

    def set_state(self, state: bytes) -> None:
        if len(state) != len(self._rules.start) + _TIME_BYTES:
            raise SimulatorError(f"{PREFIX}{self._game}: not a state of this game ({len(state)} bytes)")
        self._time = int.from_bytes(state[-_TIME_BYTES:], "little")
        self._state = self._rules.unpacked(np.frombuffer(state[:-_TIME_BYTES], np.uint8), np.int32(self._time))

    def identity(self, state: bytes) -> bytes:
        """The state, and its time only where random numbers depend on it."""
        return state if GAMES[self._game].draws else state[:-_TIME_BYTES]

    def screen(self) -> Screen:
        return np.asarray(self._rules.seen(self._state), np.uint8)

    def picture(self) -> Screen:
        return picture_of_screen(self.screen())

    def close(self) -> None:
        pass


class BatchedGymnax:
    """The same game for many states at once. A row ends with the time in games that draw random numbers."""

    def __init__(self, game: str) -> None:
        self._game, self._rules = game, _rules(game)
        self.num_actions, self._has_time = GAMES[game].num_actions, GAMES[game].draws
        self.screen_shape: tuple[int, int, int] | None = self._rules.screen_shape
        time = np.zeros(_TIME_BYTES if self._has_time else 0, np.uint8)
        self.start: NDArray[np.uint8] = np.concatenate([self._rules.start, time])

    def expand(self, states: Rows, out: Successors) -> None:
        for start, padded in _pieces(states):
            stop = min(start + len(padded), len(states))
            found, rewards, ended, is_exact = self._rules.expand(padded)
            if not is_exact:
                raise _inexact(self._game)
            out.states[start:stop] = np.asarray(found)[: stop - start]
            out.rewards[start:stop] = np.asarray(rewards)[: stop - start]
            out.ended[start:stop] = np.asarray(ended)[: stop - start]

    def looks(self, states: Rows) -> Rows | None:
        return np.packbits(self.screens(states).reshape(len(states), -1), axis=1)  # a plane is 0 or 1

    def screens(self, states: Rows) -> NDArray[np.uint8]:
        screens = np.empty((len(states), *self._rules.screen_shape), np.uint8)
        for start, padded in _pieces(states):
            stop = min(start + len(padded), len(states))
            screens[start:stop] = np.asarray(self._rules.look(padded))[: stop - start]
        return screens

    def snapshot(self, state: NDArray[np.uint8]) -> bytes:
        return state.tobytes() if self._has_time else state.tobytes() + bytes(_TIME_BYTES)

    def snapshots(self, states: Rows) -> tuple[Rows, NDArray[np.int64]]:
        rows = states if self._has_time else np.pad(states, ((0, 0), (0, _TIME_BYTES)))
        return rows, np.full(len(rows), rows.shape[1], np.int64)


def picture_of_screen(screen: Screen) -> Screen:
    """Each plane of an observation in its colour, the later ones above the earlier ones."""
    picture = np.zeros((*screen.shape[:2], 3), np.uint8)
    for plane in range(screen.shape[2]):
        picture[screen[:, :, plane] != 0] = _COLOURS[plane % len(_COLOURS)]
    return picture.repeat(_PICTURE_SCALE, axis=0).repeat(_PICTURE_SCALE, axis=1)


class Gymnax(Suite):
    """Gymnax's games that count in whole numbers, none of them listed."""

    name = "gymnax"
    title = "Gymnax"
    packages = ("gymnax", "jax", "jaxlib")
    behaviour = BEHAVIOUR
    builds_unlisted = True
    screen_format = "planes"
    costs = Costs(pairs_a_second=3_000.0, build_seconds=15.0, search_bytes_a_state=(60, 1_300))

    def entries(self) -> Iterable[Entry]:
        return iter(())

    def unlisted_entry(self, name: str) -> Entry | None:
        game = GAMES.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
        if game is None:
            return None
        return Entry(name, self.name, name.removeprefix(PREFIX), game.horizon, 1, game.num_actions)

    def simulator(self, **arguments: Any) -> Simulator:
        return GymnaxSimulator(**arguments)

    def batched(self, arguments: Mapping[str, Any]) -> BatchedSimulator:
        return BatchedGymnax(**arguments)

    def survey(self, entry: Entry) -> Survey | None:
        game = GAMES[entry.game]
        return None if game.num_states is None else Survey(game.num_states, game.horizon)

    def drawn(self, screen: Screen) -> Screen:
        return picture_of_screen(screen)

    def action_names(self, game: str) -> Sequence[str]:
        return GAMES[game].action_names if game in GAMES else ()

    def network(self, game: str) -> NetworkKind:
        return "dense"


def _inexact(game: str) -> SimulatorError:
    return SimulatorError(f"{PREFIX}{game}: a value of the state does not fit its bytes; please report this")


def _pieces(states: Rows) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Rows in pieces of few different sizes, the last one filled up with its last row; where each begins."""
    start = 0
    while start < len(states):
        left = len(states) - start
        size = next((size for size in _SIZES if size >= left), _SIZES[-1])
        piece = states[start : start + size]
        if len(piece) < size:
            piece = np.concatenate([piece, np.repeat(piece[-1:], size - len(piece), axis=0)])
        yield start, piece
        start += size


@cache
def _rules(game: str) -> _Rules:
    """Compile a game, once per process."""
    if game not in GAMES:
        raise SimulatorError(f"no game of Gymnax is called {game!r} here; there are {', '.join(GAMES)}")
    try:
        jax, gymnax = import_module("jax"), import_module("gymnax")
    except ModuleNotFoundError as error:
        raise MissingExtraError("gymnax", error.name or "gymnax") from None
    numpy, draws = jax.numpy, GAMES[game].draws
    processor = jax.devices("cpu")[0]  # results must not depend on whether there is a GPU
    with jax.default_device(processor):
        env, params = gymnax.make(game)
        params = params.replace(max_steps_in_episode=_NO_LIMIT)
        key = jax.random.key(SEED)
        _, start = jax.jit(env.reset)(key, params)
    leaves, tree = jax.tree_util.tree_flatten(start)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(start)[0]]
    place_of_time = paths.index(".time")
    fields = [place for place in range(len(leaves)) if place != place_of_time]
    stored = [_stored_type(np.asarray(leaf)) for leaf in leaves]

    def packed(state: Any) -> tuple[Any, Any]:
        values, parts, is_exact = jax.tree_util.tree_leaves(state), [], numpy.bool_(True)
        for place in fields:
            value = numpy.asarray(values[place])
            small = value.astype(stored[place])
            is_exact &= (small.astype(value.dtype) == value).all()
            parts.append(jax.lax.bitcast_convert_type(small.reshape(-1), numpy.uint8).reshape(-1))
        return numpy.concatenate(parts), is_exact

    def unpacked(row: Any, time: Any) -> Any:
        values, at = list(leaves), 0
        for place in fields:
            leaf, kind = leaves[place], stored[place]
            size = leaf.size * kind.itemsize
            flat = row[at : at + size]
            if kind.itemsize > 1:
                flat = jax.lax.bitcast_convert_type(flat.reshape(-1, kind.itemsize), kind)
            values[place] = flat.reshape(leaf.shape).astype(leaf.dtype)
            at += size
        values[place_of_time] = numpy.asarray(time).astype(leaves[place_of_time].dtype)
        return jax.tree_util.tree_unflatten(tree, values)

    def key_at(time: Any) -> Any:
        return jax.random.fold_in(key, time) if draws else key

    def seen(state: Any) -> Any:
        shown = numpy.asarray(env.observe(key, state, None, params)) != 0
        return (shown if shown.ndim == 3 else shown[:, :, None]).astype(numpy.uint8)

    def live_step(step_key: Any, state: Any, action: Any) -> tuple[Any, Any, Any]:
        _, following, reward, terminated, _, _ = env.step(step_key, state, action, params)
        return following, reward, terminated

    num_bytes = sum(leaves[place].size * stored[place].itemsize for place in fields)

    def split(row: Any) -> tuple[Any, Any]:
        """The bytes of a row without the time, and the time."""
        if not draws:
            return row, numpy.int32(0)
        return row[:num_bytes], jax.lax.bitcast_convert_type(row[num_bytes:], numpy.int32)

    def stepped(row: Any, action: Any) -> tuple[Any, Any, Any, Any]:
        bare, time = split(row)
        key_step, _ = jax.random.split(key_at(time))  # as `step` does
        _, following, reward, ended, _ = env.step_env(key_step, unpacked(bare, time), action, params)
        bare, is_exact = packed(following)
        if draws:
            bare = numpy.concatenate([bare, jax.lax.bitcast_convert_type(time + 1, numpy.uint8)])
        return bare, reward, ended, is_exact | ended

    def expand(rows: Any) -> tuple[Any, Any, Any, Any]:
        actions = numpy.arange(GAMES[game].num_actions, dtype=numpy.int32)
        found, rewards, ended, exact = jax.vmap(lambda row: jax.vmap(lambda action: stepped(row, action))(actions))(
            rows
        )
        return found, rewards, ended, exact.all()

    def look(rows: Any) -> Any:
        return jax.vmap(lambda row: seen(unpacked(*split(row))))(rows)

    def on_processor(function: Callable[..., Any]) -> Callable[..., Any]:
        compiled = jax.jit(function)

        def call(*arguments: Any) -> Any:
            with jax.default_device(processor):
                return compiled(*arguments)

        return call

    first, is_exact = on_processor(packed)(start)
    if not is_exact:
        raise _inexact(game)
    screen = np.asarray(on_processor(seen)(start))
    return _Rules(
        np.asarray(first), (screen.shape[0], screen.shape[1], screen.shape[2]), start, on_processor(live_step),
        on_processor(key_at), on_processor(packed), on_processor(unpacked), on_processor(seen), on_processor(expand),
        on_processor(look),
    )  # fmt: skip


def _stored_type(leaf: NDArray[Any]) -> np.dtype[Any]:
    """How a field is stored: floats are maps of 0 and 1 in these games."""
    if leaf.dtype.kind == "b" or (leaf.dtype.kind == "f" and leaf.ndim):
        return np.dtype(np.uint8)
    return np.dtype(np.int16) if leaf.dtype.kind in "iu" else leaf.dtype


GYMNAX = Gymnax()
