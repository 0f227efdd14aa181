"""Whether two states of a Gymnasium environment are the same: all its attributes as bytes.

Equal bytes mean that the environment and its wrappers hold equal values, and that the same of them are one object where
they can change: a key that is carried and a key that only looks like it are two states. Nothing else may make a
difference, so what is the same in every process gives the same bytes in every process.

Left out is what is no part of a state: spaces, the registration, and random generators. The latter do not matter in
an environment that is deterministic after its reset; with `with_generators` they belong to the state.

The bytes are compared and hashed, never read again.
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import inspect
import numbers
import pickle
import random
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, RecordEpisodeStatistics, TimeLimit

from efhorizon.suites.plain_values import as_bytes
from efhorizon.suites.simulator import SimulatorError

# Wrappers that keep nothing which an episode depends on; the horizon of a table is its only time limit.
TRANSPARENT = (OrderEnforcing, PassiveEnvChecker, TimeLimit, RecordEpisodeStatistics)

_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes})
_NAMED = (
    types.FunctionType | types.BuiltinFunctionType | types.ModuleType | types.MethodDescriptorType | np.ufunc | type
)
_LONGEST = 1024  # bytes of an attribute; longer ones are replaced by their SHA-256
_LARGE = 300  # values in an attribute that is worth remembering
_MOST_SEARCHED = 1000  # values of an attribute that are searched for random generators

# what Gymnasium keeps besides the state
_NOT_STATE = frozenset(
    {
        "spec",
        "_saved_kwargs",
        "action_space",
        "observation_space",
        "_action_space",
        "_observation_space",
        "_metadata",
        "metadata",
        "_np_random_seed",
        "render_mode",
        "_cached_spec",
    }
)


class UnreadableStateError(SimulatorError):
    """Something in an environment cannot be written as bytes."""


def layers(env: Any) -> Iterator[Any]:
    """An environment and all that it wraps, the outermost first."""
    while True:
        yield env
        if not isinstance(env, gymnasium.Wrapper):
            return
        env = env.env


def attributes(layer: Any) -> dict[str, Any]:
    """What one layer keeps, by name."""
    found = dict(getattr(layer, "__dict__", {}))
    for kind in type(layer).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(layer, name) and name not in ("__dict__", "__weakref__"):
                found[name] = getattr(layer, name)
    if isinstance(layer, gymnasium.Wrapper):
        found.pop("env", None)
    return {name: found[name] for name in sorted(found) if name not in _NOT_STATE}


class Generators:
    """Finds the random generators that an environment and its wrappers hold, also inside their objects.

    It looks at no more than the first thousand values of an attribute. Large ones without any are not searched again.
    """

    def __init__(self) -> None:
        self._without: set[tuple[int, str]] = set()

    def reseed(self, env: Any, seed: int) -> None:
        """Give every one of them another state."""
        for generator in self.of(env):
            if isinstance(generator, random.Random | np.random.RandomState):
                generator.seed(seed)
            else:
                source = generator.bit_generator if isinstance(generator, np.random.Generator) else generator
                source.state = type(source)(seed).state

    def of(self, env: Any) -> Iterator[Any]:
        labels: dict[int, str] = {}
        kept: list[Any] = []
        for depth, layer in enumerate(layers(env)):
            held = {name: getattr(layer, "__dict__", {}).get(name) for name in ("action_space", "observation_space")}
            for name, value in (attributes(layer) | held).items():
                if (depth, name) in self._without:
                    continue
                writer = _Writer("", labels, kept, _Noise(False, False), most_values=_MOST_SEARCHED)
                with contextlib.suppress(Exception):  # what cannot be read may hold more, which nobody can reach
                    writer.write(value)
                if not writer.generators and writer.num_values > _LARGE:
                    self._without.add((depth, name))
                yield from writer.generators


def has_snapshots(layer: Any) -> bool:
    """Whether a layer has `get_state()` and `set_state(state)` of its own."""
    return _takes(getattr(type(layer), "get_state", None), 1) and _takes(getattr(type(layer), "set_state", None), 2)


def value_bytes(value: Any) -> bytes:
    """Any value as bytes, such as an observation."""
    writer = _Writer("", {}, [], _Noise(False, True))
    writer.write(value)
    return bytes(writer.content)


class Identities:
    """The bytes of one environment's states; large attributes that stay as they are, are written once only."""

    def __init__(
        self,
        *,
        with_generators: bool = False,
        with_emulator_noise: bool = True,
        by_get_state: bool = False,
        left_out: frozenset[tuple[int, str]] = frozenset(),
    ) -> None:
        """`left_out` are attributes, by the number of their layer and their name.

        With `by_get_state`, a layer with a `get_state` of its own is what that returns, with all that is below it.
        """
        self._left_out, self._by_get_state = left_out, by_get_state
        self._noise = _Noise(with_generators, with_emulator_noise)
        self._large: dict[tuple[int, str], _Large] = {}

    def without_noise(self) -> Identities:
        """The same without random generators, those of emulators included."""
        return Identities(with_emulator_noise=False, by_get_state=self._by_get_state, left_out=self._left_out)

    def of(self, env: Any) -> bytes:
        return b"".join(self.parts(env).values())

    def parts(self, env: Any) -> dict[tuple[int, str], bytes]:
        """The same by the number of the layer and the name of the attribute."""
        labels = {id(layer): f"layer {depth}" for depth, layer in enumerate(layers(env))}
        found: dict[tuple[int, str], bytes] = {}
        kept: list[Any] = []  # while this runs, no object may take the place and the number of another
        for depth, layer in enumerate(layers(env)):
            if isinstance(layer, TRANSPARENT):
                continue
            if self._by_get_state and has_snapshots(layer):
                found[depth, "get_state"] = f"{depth}.".encode() + as_bytes(layer.get_state())
                break
            for name, value in attributes(layer).items():
                place = (depth, name)
                if place not in self._left_out:
                    found[place] = f"{depth}.{name}=".encode() + self._part(place, value, labels, kept)
        return found

    def _part(self, place: tuple[int, str], value: Any, labels: dict[int, str], kept: list[Any]) -> bytes:
        known = self._large.get(place)
        if known is not None and known.value is value and _pickled(value) == known.pickled:
            labels.update(known.labels)
            return known.content
        writer = _Writer(f"{place[0]}.{place[1]}", labels, kept, self._noise)
        try:
            writer.write(value)
        except UnreadableStateError:
            raise
        except Exception as error:
            reason = f": {error}" if isinstance(error, TypeError) else ""
            raise UnreadableStateError(f"the attribute {place[1]!r} cannot be read{reason}".split("\n")[0]) from None
        content = bytes(writer.content)
        if len(content) > _LONGEST:
            content = b"digest " + hashlib.sha256(content).digest()
        if writer.num_values > _LARGE and not writer.refers_elsewhere:
            pickled = _pickled(value)
            if pickled is not None:
                self._large[place] = _Large(value, pickled, content, writer.own_labels, tuple(kept))
        return content


class _Noise(NamedTuple):
    """Which random generators belong to a state."""

    of_generators: bool
    of_emulators: bool


@dataclass(frozen=True)
class _Large:
    """A large attribute as it was written last."""

    value: Any
    pickled: bytes  # to see whether it has changed: pickling is fast
    content: bytes
    labels: dict[int, str]
    kept: tuple[Any, ...]


def _pickled(value: Any) -> bytes | None:
    try:
        return pickle.dumps(value, protocol=5)
    except Exception:
        return None


class _Writer:
    """Writes one attribute. Objects that can change get a label when they are met first, and are referred to later."""

    def __init__(
        self, place: str, labels: dict[int, str], kept: list[Any], noise: _Noise, most_values: int = sys.maxsize
    ) -> None:
        self.content = bytearray()
        self.num_values, self._most_values = 0, most_values
        self.generators: list[Any] = []  # that were met
        self.refers_elsewhere = False
        self.own_labels: dict[int, str] = {}
        self._place, self._labels, self._kept, self._noise = place, labels, kept, noise

    def write(self, value: Any) -> None:
        self.num_values += 1
        if self.num_values > self._most_values:
            raise UnreadableStateError("it holds too many values")
        kind = type(value)
        if kind in _ATOMS:
            self.content += f"{kind.__name__} {value!r};".encode(errors="surrogatepass")
        elif kind is tuple:
            self._write_tuple(value)
        elif kind is frozenset:
            self._write_set(value)
        elif isinstance(value, enum.Enum):
            self.content += f"{_name(kind)}.{value.name};".encode()
        elif isinstance(value, np.generic):
            self.content += f"{value.dtype.str} {value.tobytes().hex()};".encode()
        elif isinstance(value, gymnasium.Space):
            self._write_generators("space", getattr(value, "_np_random", None))
        elif isinstance(value, _GENERATORS):
            self._write_generators("generator", value)
        elif isinstance(value, _NAMED):
            self._write_named(value)
        elif isinstance(value, tuple | numbers.Number):
            self._write_reduced(value)
        elif not self._was_met(value):
            self._write_changeable(value)

    def _write_changeable(self, value: Any) -> None:
        kind = type(value)
        if kind is list:
            self._write_items("[", value)
        elif kind is dict:
            self._write_dict(value)
        elif kind is set:
            self._write_set(value)
        elif kind is np.ndarray:
            self._write_array(value)
        elif kind is types.MethodType:
            self.content += f"method {value.__name__} of ".encode()
            self.write(value.__self__)
        elif isinstance(value, gymnasium.Env):
            for layer in layers(value):
                self.content += f"layer {_name(type(layer))} ".encode()
                self._write_dict(attributes(layer))
        elif kind.__name__ == "ALEInterface":
            self._write_emulator(value)
        elif kind.__module__.startswith("pygame") and kind.__name__ == "Surface":
            self._write_surface(value)
        else:
            self._write_reduced(value)

    def _was_met(self, value: Any) -> bool:
        label = self._labels.get(id(value))
        if label is not None:
            self.refers_elsewhere = self.refers_elsewhere or id(value) not in self.own_labels
            self.content += f"the {label};".encode()
            return True
        label = f"{self._place}#{len(self.own_labels)}"
        self._labels[id(value)] = self.own_labels[id(value)] = label
        self._kept.append(value)
        return False

    def _write_tuple(self, value: tuple[Any, ...]) -> None:
        if all(type(item) in _ATOMS for item in value):
            self.num_values += len(value)
            self.content += b"atoms " + repr(value).encode(errors="surrogatepass")
        else:
            self._write_items("(", value)

    def _write_items(self, bracket: str, items: Any) -> None:
        self.content += f"{bracket}{len(items)} ".encode()
        for item in items:
            self.write(item)

    def _write_dict(self, value: dict[Any, Any]) -> None:
        self.content += f"{{{len(value)} ".encode()
        for key, item in value.items():
            self.write(key)
            self.write(item)

    def _write_set(self, value: Any) -> None:
        """The order in a set is that of hashes, which is another one in every process."""
        outer, written = self.content, []
        for item in value:
            self.content = bytearray()
            self.write(item)
            written.append(bytes(self.content))
        self.content = outer
        self.content += f"{type(value).__name__} {len(written)} ".encode() + b"".join(sorted(written))

    def _write_array(self, value: Any) -> None:
        self.content += f"array {value.dtype.descr} {value.shape} ".encode()
        if value.dtype.hasobject:
            self._write_items("[", value.ravel().tolist())
        else:
            self.content += np.ascontiguousarray(value).tobytes()

    def _write_generators(self, what: str, generator: Any) -> None:
        self.content += f"{what};".encode()
        if generator is not None:
            self.generators.append(generator)
        if self._noise.of_generators and generator is not None:
            self.write(generator_state(generator))

    def _write_named(self, value: Any) -> None:
        self.content += f"named {_name(value)};".encode()
        cells = getattr(value, "__closure__", None) or ()
        self._write_items("(", [cell.cell_contents for cell in cells if cell != types.CellType()])

    def _write_emulator(self, ale: Any) -> None:
        """An Atari emulator; what it shows is part of its state. Its noise is too, since its actions may be sticky."""
        if self._noise.of_emulators:
            self._write_bytes(ale.cloneState(include_rng=True).serialize())
        else:
            self._write_bytes(np.ascontiguousarray(ale.getRAM()).tobytes())
        self._write_bytes(np.ascontiguousarray(ale.getScreen()).tobytes())

    def _write_surface(self, surface: Any) -> None:
        import pygame

        self._write_bytes(repr(surface.get_size()).encode() + pygame.image.tobytes(surface, "RGBA"))

    def _write_bytes(self, data: bytes) -> None:
        self.content += f"{len(data)} bytes ".encode() + data

    def _write_reduced(self, value: Any) -> None:
        """Any other object: by the parts that it would be pickled as."""
        reduced = value.__reduce_ex__(4)
        self.content += f"object {_name(type(value))} ".encode()
        if isinstance(reduced, str):
            self.content += reduced.encode()
            return
        self._kept.append(reduced)
        function, arguments, *more = reduced
        self.write(function)
        self._write_items("(", arguments)
        for number, part in enumerate(more[:3]):  # state, items of a list, items of a mapping
            if part is not None:
                self.content += f"part {number} ".encode()
                whole = part if number == 0 else list(part)
                self._kept.append(whole)
                if type(whole) is dict:
                    self._write_dict(whole)
                elif number:
                    self._write_items("[", whole)
                else:
                    self.write(whole)


def generator_state(generator: Any) -> Any:
    """What a random generator will draw next, as plain values."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    source = generator.bit_generator if isinstance(generator, np.random.Generator) else generator
    return source.state


def _takes(function: Any, count: int) -> bool:
    """Whether a function can be called with so many values."""
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(*range(count))
    except (TypeError, ValueError):
        return False
    return True


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', getattr(value, '__name__', ''))}"
