"""What an agent sees of a table: the number of the state, a flat vector, or an image.

Where agents see several frames at once, an observation depends on the way to a state. The table is then unrolled into
nodes, each a state with the frames before it (`agents.deep.observations`). Elsewhere a node is a state.

Legend: P nodes, A actions, U distinct observations, D numbers of a flat one, K frames of H x W x C. Node P is the end
of an episode: as a state it has the number S, as a vector or image it is all zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from efhorizon.agents.deep.observations import FlatColumns, ImageStacks, ObservedTable, observed_table
from efhorizon.compiled import Integers, Numbers, compiled
from efhorizon.errors import EfhorizonError
from efhorizon.mdp import TabularMDP

Observations = Literal["auto", "state", "flat", "image"]


class InvalidEnvironmentError(EfhorizonError, ValueError):
    """An environment that a table cannot be, or a step that it cannot take."""


class View(Protocol):
    """How nodes look."""

    @property
    def space(self) -> spaces.Space[Any]: ...

    def one(self, node: int) -> Any:
        """What is seen in a node, as an element of the space."""

    def many(self, nodes: NDArray[np.int64], out: NDArray[Any] | None) -> NDArray[Any]:
        """What is seen in some nodes [n, ...], written to `out` where one is given."""


@dataclass(frozen=True)
class SeenTable:
    """A table of nodes, and how they look."""

    transitions: NDArray[np.int32]  # [P, A], -1 = the end
    rewards: NDArray[np.float64]  # [P, A]
    states: NDArray[np.int64]  # [P + 1], the state of each node; the last is S, the end
    view: View


def seen_table(mdp: TabularMDP, observations: Observations) -> SeenTable:
    """A complete table with one kind of observations."""
    if observations not in get_args(Observations):
        raise InvalidEnvironmentError(
            f"observations must be one of {', '.join(get_args(Observations))}; got {observations!r}"
        )
    if not mdp.is_complete:
        raise InvalidEnvironmentError("the table is unfinished: an environment needs a complete one")
    observed = _observed(mdp, observations)
    if observed is None:
        states = np.arange(mdp.num_states + 1, dtype=np.int64)
        return SeenTable(mdp.transitions, mdp.rewards, states, StateView(mdp.num_states))
    states = np.append(observed.state, mdp.num_states).astype(np.int64)
    return SeenTable(observed.transitions, mdp.rewards[observed.state], states, _view(observed))


def _observed(mdp: TabularMDP, observations: Observations) -> ObservedTable | None:
    """The table as agents see it, or None for the numbers of its states."""
    if observations == "state" or (observations == "auto" and mdp.screens is None):
        return None
    try:
        observed = observed_table(mdp)
    except EfhorizonError:
        if observations == "auto":  # it has no observations: the state's number has to do
            return None
        raise
    is_flat = isinstance(observed.seen, FlatColumns)
    if observations != "auto" and is_flat != (observations == "flat"):
        there = "flat" if is_flat else "image"
        raise InvalidEnvironmentError(f"agents see {there} observations of this table: write observations={there!r}")
    return observed


def _view(observed: ObservedTable) -> View:
    index = np.append(observed.observation, observed.num_observations).astype(np.int64)  # the last is the end
    if isinstance(observed.seen, ImageStacks):
        return ImageView(observed.seen.frames, observed.seen.stacks, index)
    return FlatView(_full_columns(observed.seen), index)


def _full_columns(seen: FlatColumns) -> NDArray[Any]:
    """Observations with all columns, as the live environment shows them, and zeros for the end [U + 1, D]."""
    values = np.pad(seen.values, ((0, 1), (0, 1)))  # the last column serves group -1
    is_bytes = bool(((values >= 0) & (values <= 255) & (values == np.rint(values))).all())
    return np.ascontiguousarray(values.astype(np.uint8 if is_bytes else np.float32)[:, seen.groups])


class StateView:
    """The number of the state; S is the end."""

    def __init__(self, num_states: int) -> None:
        self.space = spaces.Discrete(num_states + 1)

    def one(self, node: int) -> int:
        return node

    def many(self, nodes: NDArray[np.int64], out: NDArray[Any] | None) -> NDArray[Any]:
        if out is None:
            return nodes.copy()
        out[:] = nodes
        return out


class FlatView:
    """A vector."""

    def __init__(self, vectors: NDArray[Any], index: NDArray[np.int64]) -> None:
        self._vectors, self._index = vectors, index  # [U + 1, D] and [P + 1]
        low, high = (0, 255) if vectors.dtype == np.uint8 else (float(vectors.min()), float(vectors.max()))
        self.space = spaces.Box(low, high, vectors.shape[1:], vectors.dtype.type)

    def one(self, node: int) -> NDArray[Any]:
        vector: NDArray[Any] = self._vectors[self._index[node]].copy()
        return vector

    def many(self, nodes: NDArray[np.int64], out: NDArray[Any] | None) -> NDArray[Any]:
        if out is None:
            out = np.empty((len(nodes), self._vectors.shape[1]), self._vectors.dtype)
        _gather(self._vectors, self._index, nodes, out)
        return out


class ImageView:
    """An image, or several, the newest in the last channels."""

    def __init__(self, frames: NDArray[np.uint8], stacks: NDArray[np.int32], index: NDArray[np.int64]) -> None:
        self._frames = np.concatenate([frames, np.zeros_like(frames[:1])])  # [F + 1, H, W, C], the last is black
        self._stacks = np.concatenate([stacks, np.full_like(stacks[:1], len(frames))])  # [U + 1, K]
        self._index = index  # [P + 1]
        height, width, channels = frames.shape[1:]
        self.space = spaces.Box(0, 255, (height, width, channels * stacks.shape[1]), np.uint8)

    def one(self, node: int) -> NDArray[np.uint8]:
        return np.concatenate(self._frames[self._stacks[self._index[node]]], axis=-1)

    def many(self, nodes: NDArray[np.int64], out: NDArray[Any] | None) -> NDArray[Any]:
        found = np.moveaxis(self._frames[self._stacks[self._index[nodes]]], 1, 3)  # [n, H, W, K, C]
        images = found.reshape(len(nodes), *self.space.shape)
        if out is None:
            return images
        out[:] = images
        return out


@compiled
def _gather(vectors: Numbers, index: Integers, nodes: Integers, out: Numbers) -> None:
    for i in range(len(nodes)):
        row = index[nodes[i]]
        for column in range(vectors.shape[1]):
            out[i, column] = vectors[row, column]
