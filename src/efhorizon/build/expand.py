"""Expanding states: what a worker does with a batch of them.

For every state and every action the simulator is put into the state and stepped. Whether two states are the same is
decided by their bytes: the hash only says where to look. What leaves the worker is compact: each distinct next state
and screen of the batch once, and neither if this worker has sent the same bytes a short while ago.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xxhash
import zstandard
from numpy.typing import NDArray

from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.suites.simulator import Simulator

_SMALLEST_COMPRESSED = 512  # shorter byte strings are stored as they are: calling zstd costs more than it saves
_ZSTD_LEVEL = 1
_LARGEST_UNPACKED = 1 << 28  # bytes
_MEMORY_OF_SENT = 1 << 20  # bytes of states and of screens that a worker remembers having sent
_ENTRY_OVERHEAD = 200  # bytes that a dictionary entry costs beside its data


class Codec:
    """zstd with the first byte string as its dictionary: later ones differ from it in little."""

    def __init__(self, dictionary: bytes) -> None:
        self.dictionary = dictionary
        self._plain = len(dictionary) < _SMALLEST_COMPRESSED
        prefix = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        self._compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, dict_data=prefix)
        self._decompressor = zstandard.ZstdDecompressor(dict_data=prefix)

    def pack(self, data: bytes) -> bytes:
        return data if self._plain else self._compressor.compress(data)

    def unpack(self, data: bytes) -> bytes:
        if self._plain:
            return data
        try:
            if zstandard.frame_content_size(data) > _LARGEST_UNPACKED:
                raise StoreError("a state or a screen is larger than any simulator makes them")
            return self._decompressor.decompress(data)
        except zstandard.ZstdError as error:
            raise StoreError(f"a state or a screen cannot be unpacked ({error})") from None


def key_of(data: bytes) -> bytes:
    """The 128-bit key of a byte string."""
    return xxhash.xxh3_128_digest(data)


@dataclass(frozen=True)
class Found:
    """Distinct byte strings of one kind (states or screens), in the order in which they were first met.

    A length of -1 says: sent before by this worker, known by its key.
    """

    keys: NDArray[np.uint64]  # [n, 2]
    lengths: NDArray[np.int32]  # [n] of the packed strings in `data`
    data: bytes


@dataclass(frozen=True)
class Expansion:
    """The result for a batch of B states: next states are numbered within the batch, -1 is the end of the episode."""

    rewards: NDArray[np.float64]  # [B, A]
    successors: NDArray[np.int32]  # [B, A]
    states: Found  # of the n next states
    state_screens: NDArray[np.int32]  # [n], indices into screens; -1 where the state was sent before
    snapshots: tuple[bytes, ...]  # [n], packed; empty where the identity is the snapshot itself
    screens: Found


class Expander:
    """Expands batches of states in one process."""

    def __init__(
        self, simulator: Simulator, state_codec: Codec, screen_codec: Codec, *, memory: int = _MEMORY_OF_SENT
    ) -> None:
        """`memory`: bytes of states and of screens that are remembered as sent; 0 sends them whole with each batch."""
        self._simulator = simulator
        self._states = _Collector(state_codec, memory)
        self._screens = _Collector(screen_codec, memory)
        self._state_codec = state_codec

    def start(self) -> Expansion:
        """The start state and its screen, found but not expanded."""
        self._simulator.reset()
        snapshot = self._simulator.get_state()
        identity = self._simulator.identity(snapshot)
        self._states.add(identity)
        self._screens.add(self._simulator.screen().tobytes())
        num_actions = self._simulator.num_actions
        return Expansion(
            np.zeros((0, num_actions)),
            np.zeros((0, num_actions), np.int32),
            self._states.take(),
            np.zeros(1, np.int32),
            (b"" if identity == snapshot else self._state_codec.pack(snapshot),),
            self._screens.take(),
        )

    def expand(self, packed_states: list[bytes]) -> Expansion:
        """Take every action in every state."""
        simulator, num_actions = self._simulator, self._simulator.num_actions
        rewards = np.zeros((len(packed_states), num_actions))
        successors = np.full((len(packed_states), num_actions), -1, np.int32)
        state_screens: list[int] = []
        snapshots: list[bytes] = []
        for row, packed in enumerate(packed_states):
            state = self._state_codec.unpack(packed)
            for action in range(num_actions):
                simulator.set_state(state)
                rewards[row, action], terminated = simulator.step(action)
                if terminated:
                    continue
                snapshot = simulator.get_state()
                identity = simulator.identity(snapshot)
                number, is_new, was_sent = self._states.add(identity)
                successors[row, action] = number
                if is_new:
                    snapshots.append(b"" if was_sent or identity == snapshot else self._state_codec.pack(snapshot))
                    state_screens.append(-1 if was_sent else self._screens.add(simulator.screen().tobytes())[0])
        return Expansion(
            rewards,
            successors,
            self._states.take(),
            np.array(state_screens, np.int32),
            tuple(snapshots),
            self._screens.take(),
        )


class _Collector:
    """The distinct byte strings of a batch, and those sent lately."""

    def __init__(self, codec: Codec, memory: int) -> None:
        self._codec, self._memory = codec, memory
        self._batch: dict[bytes, tuple[int, bytes]] = {}  # key -> (number, bytes)
        self._lengths: list[int] = []
        self._packed: list[bytes] = []
        self._sent: dict[bytes, bytes] = {}  # key -> bytes
        self._sent_size = 0

    def add(self, data: bytes) -> tuple[int, bool, bool]:
        """The number of this string in the batch, whether it is new to the batch, and whether it was sent before."""
        key = key_of(data)
        known = self._batch.get(key)
        if known is not None:
            _require_equal(known[1], data)
            return known[0], False, False
        number = len(self._batch)
        self._batch[key] = (number, data)
        sent = self._sent.get(key)
        if sent is not None:
            _require_equal(sent, data)
            self._lengths.append(-1)
        else:
            packed = self._codec.pack(data)
            self._packed.append(packed)
            self._lengths.append(len(packed))
        return number, True, sent is not None

    def take(self) -> Found:
        """The strings of the batch; the next batch starts empty."""
        keys = np.frombuffer(b"".join(self._batch), np.uint64).reshape(-1, 2)
        found = Found(keys, np.array(self._lengths, np.int32), b"".join(self._packed))
        for key, (_, data) in self._batch.items():
            if key not in self._sent:
                self._sent[key] = data
                self._sent_size += len(data) + _ENTRY_OVERHEAD
        if self._sent_size > self._memory:
            self._sent, self._sent_size = {}, 0
        self._batch, self._lengths, self._packed = {}, [], []
        return found


class KeyCollisionError(EfhorizonError):
    """Two different byte strings have the same 128-bit key: practically impossible, but checked."""


def _require_equal(one: bytes, other: bytes) -> None:
    if one != other:
        raise KeyCollisionError("two different states or screens have the same 128-bit key")
