"""TabularMDP: a deterministic, finite-horizon MDP as a table (section 2 of the paper).

Legend of the shape comments: S states, A actions, R distinct rewards, N distinct screens, H x W x C a screen, K frames
that an agent sees at once.
State 0 is the start state, transition -1 ends the episode, and time runs from 0 to horizon - 1 in code (1 to T in the
paper). A state that can be entered only at time `horizon` needs no row: transitions into it are -1 too.
"""

from __future__ import annotations

import hashlib
import reprlib
from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from fractions import Fraction
from math import gcd, lcm
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon import graph
from efhorizon.errors import InvalidTableError
from efhorizon.table_methods import TableMethods

TERMINAL = -1
MAX_REWARD_UNITS = 2**40  # sums over any practical horizon still fit in int64
MAX_HORIZON = 2**17  # the longest episodes of Atari have 108,000 frames; planning takes time and memory for each step


class ScreenArray(Protocol):
    """Screens [N, H, W, C] uint8, in memory or read from disk as they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> Any: ...

    def __getitem__(self, index: Any, /) -> Any: ...


class StateSequence(Protocol):
    """The raw simulator state behind each table state."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> bytes: ...


class TabularMDP(TableMethods):
    """A frozen, validated table.

    Rewards are kept as codes into a short table of values: one byte per pair instead of eight. `rewards` gives the
    values. Screens and raw states are optional, and may be read from disk as they are asked for.

    >>> mdp = TabularMDP(transitions=[[0, -1]], rewards=[[0.0, 1.0]], horizon=5)
    >>> mdp.num_states, mdp.num_actions, mdp.rewards.tolist()
    (1, 2, [[0.0, 1.0]])
    """

    transitions: NDArray[np.int32]  # [S, A]
    reward_codes: NDArray[np.unsignedinteger[Any]]  # [S, A], indices into reward_values
    reward_values: NDArray[np.float64]  # [R], ascending
    horizon: int
    screens: ScreenArray | None  # [N, H, W, C]
    screen_mapping: NDArray[np.int32] | None  # [S], indices into screens; [S, K] with frame stacks, oldest first
    base_states: NDArray[np.int32] | None  # [S], with frame stacks: the state of the table without them
    pictures: ScreenArray | None  # [P, H, W, C], for people: what the environment drew, or texts [P, 1, n, 1]
    picture_mapping: NDArray[np.int32] | None  # [S], indices into pictures
    states: StateSequence | None  # [S] byte strings
    unexplored: NDArray[np.bool_] | None  # [S], states whose row says nothing; None: every row is known
    metadata: Mapping[str, Any]

    def __init__(
        self,
        transitions: ArrayLike,
        rewards: ArrayLike | tuple[ArrayLike, ArrayLike],
        horizon: int,
        *,
        screens: ScreenArray | None = None,
        screen_mapping: ArrayLike | None = None,
        base_states: ArrayLike | None = None,
        pictures: ScreenArray | None = None,
        picture_mapping: ArrayLike | None = None,
        states: StateSequence | None = None,
        unexplored: ArrayLike | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Build and validate a table. `rewards` is an array [S, A], or a pair (codes [S, A], values [R]).

        `unexplored` marks the states of an unfinished search that were found but not expanded.
        """
        table = _checked_transitions(transitions)
        codes, values = _reward_codes(rewards, table.shape)
        if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
            raise InvalidTableError(f"horizon must be a positive integer, got {reprlib.repr(horizon)}")
        if horizon > MAX_HORIZON:
            raise InvalidTableError(f"horizon must be at most {MAX_HORIZON:,}, got {reprlib.repr(int(horizon))}")
        mapping = _checked_screens(screens, screen_mapping, len(table))
        if states is not None and len(states) != len(table):
            raise InvalidTableError(f"there are {len(table)} states but {len(states)} raw states")
        for name, value in {
            "transitions": table,
            "reward_codes": codes,
            "reward_values": values,
            "horizon": int(horizon),
            "screens": _read_only(screens) if isinstance(screens, np.ndarray) else screens,
            "screen_mapping": mapping,
            "base_states": _checked_base_states(base_states, mapping, len(table)),
            "pictures": _read_only(pictures) if isinstance(pictures, np.ndarray) else pictures,
            "picture_mapping": _checked_pictures(pictures, picture_mapping, len(table)),
            "states": states,
            "unexplored": _checked_marks(unexplored, len(table)),
            "metadata": MappingProxyType(dict(metadata or {})),
        }.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        """For copies, and for other processes; what a table reads from disk as it is asked for stays there."""
        return _rebuilt, ({name: getattr(self, name) for name in _FIELDS} | {"metadata": dict(self.metadata)},)

    def __repr__(self) -> str:
        name = self.metadata.get("id", "unnamed")
        return f"TabularMDP({name}: {self.num_states} states, {self.num_actions} actions, horizon {self.horizon})"

    @property
    def num_states(self) -> int:
        return int(self.transitions.shape[0])

    @property
    def num_actions(self) -> int:
        return int(self.transitions.shape[1])

    @property
    def is_complete(self) -> bool:
        """Whether every row is known."""
        return self.unexplored is None

    @property
    def num_screens(self) -> int:
        return 0 if self.screens is None else int(self.screens.shape[0])

    @property
    def rewards(self) -> NDArray[np.float64]:
        """Rewards [S, A], made from the codes at each call."""
        rewards: NDArray[np.float64] = _read_only(self.reward_values[self.reward_codes])
        return rewards

    @property
    def shown(self) -> NDArray[np.int32]:
        """The screen that each state shows [S]: with frame stacks, the last one."""
        if self.screen_mapping is None:
            raise InvalidTableError("this table has no screens")
        return self.screen_mapping if self.screen_mapping.ndim == 1 else self.screen_mapping[:, -1]

    @property
    def frame_stack(self) -> int:
        """How many screens of its history are part of a state."""
        return 1 if self.screen_mapping is None or self.screen_mapping.ndim == 1 else self.screen_mapping.shape[1]

    def screen(self, state: int) -> NDArray[np.uint8]:
        """The screen [H, W, C] of one state."""
        if self.screens is None:
            raise InvalidTableError("this table has no screens")
        return np.asarray(self.screens[int(self.shown[state])], dtype=np.uint8)

    def reward_units(self) -> tuple[NDArray[np.int64], Fraction] | None:
        """Reward values as integers [R] times one unit, or None where there is no practical unit.

        Values are read as the shortest decimal that float32 rounds to them (0.1 is one tenth), so sums of rewards are
        exact integers and ties between returns are exact.
        """
        fractions = [Fraction(str(np.float32(value))) for value in self.reward_values]
        denominator = lcm(*(fraction.denominator for fraction in fractions))
        numerators = [int(fraction * denominator) for fraction in fractions]
        divisor = gcd(*numerators) or 1
        if max(abs(numerator) // divisor for numerator in numerators) > MAX_REWARD_UNITS:
            return None
        return np.array([numerator // divisor for numerator in numerators]), Fraction(divisor, denominator)

    def canonical_order(self) -> NDArray[np.int32]:
        """States in the order in which a breadth-first search from state 0 in action order meets them."""
        return graph.breadth_first_order(self.transitions)[0]

    def depths(self) -> NDArray[np.int32]:
        """Fewest steps from the start to each state [S]; -1 where no path leads."""
        return graph.breadth_first_order(self.transitions)[1]

    def fingerprint(self) -> str:
        """A hash of the graph and its rewards, equal for equal tables however their states are numbered.

        States are renumbered in canonical order; states that cannot be reached do not count, nor do screens, and
        rewards count in float32, the precision of the published files.
        """
        order = self.canonical_order()
        renumbered = graph.renumbered_transitions(self.transitions, order)
        digest = hashlib.sha256(f"efhorizon-table-1:{len(order)}:{self.num_actions}:".encode())
        digest.update(np.ascontiguousarray(renumbered, dtype="<i4").data)
        values = self.reward_values.astype("<f4") + np.float32(0.0)  # -0.0 becomes 0.0
        for start in range(0, len(order), _ROWS_A_BLOCK):
            block = order[start : start + _ROWS_A_BLOCK]
            digest.update(np.ascontiguousarray(values[self.reward_codes[block]]).data)
        return digest.hexdigest()

    def with_metadata(self, **changes: Any) -> TabularMDP:
        """The same table with some metadata set."""
        return TabularMDP(
            self.transitions,
            (self.reward_codes, self.reward_values),
            self.horizon,
            screens=self.screens,
            screen_mapping=self.screen_mapping,
            base_states=self.base_states,
            pictures=self.pictures,
            picture_mapping=self.picture_mapping,
            states=self.states,
            unexplored=self.unexplored,
            metadata={**self.metadata, **changes},
        )


_ROWS_A_BLOCK = 1 << 16
_FIELDS = (
    "transitions",
    "reward_codes",
    "reward_values",
    "horizon",
    "screens",
    "screen_mapping",
    "base_states",
    "states",
    "unexplored",
)


def _rebuilt(fields: dict[str, Any]) -> TabularMDP:
    """A table from its fields."""
    return TabularMDP(rewards=(fields.pop("reward_codes"), fields.pop("reward_values")), **fields)


def _read_only(array: Any) -> Any:
    """A read-only view, even if somebody can write to the array below it."""
    view = array.view()
    view.flags.writeable = False
    return view


def _checked_transitions(transitions: ArrayLike) -> NDArray[np.int32]:
    array = np.asarray(transitions)
    if array.ndim != 2 or array.shape[0] < 1 or array.shape[1] < 1:
        raise InvalidTableError(f"transitions must have shape [states, actions], both at least 1; got {array.shape}")
    if array.dtype.kind not in "iu":
        raise InvalidTableError(f"transitions must be integers, got {array.dtype}")
    if array.shape[0] > np.iinfo(np.int32).max:
        raise InvalidTableError(f"{array.shape[0]} states do not fit in 32-bit indices")
    low, high = int(array.min()), int(array.max())
    if low < TERMINAL or high >= array.shape[0]:
        bad = low if low < TERMINAL else high
        state, action = (int(i) for i in np.argwhere(array == bad)[0])
        raise InvalidTableError(
            f"transition of state {state}, action {action} is {bad}, outside -1 .. {array.shape[0] - 1}"
        )
    return _owned(array, np.int32)


def _reward_codes(
    rewards: ArrayLike | tuple[ArrayLike, ArrayLike], shape: tuple[int, ...]
) -> tuple[NDArray[np.unsignedinteger[Any]], NDArray[np.float64]]:
    if isinstance(rewards, tuple) and len(rewards) == 2:
        codes, values = np.asarray(rewards[0]), np.asarray(rewards[1], dtype=np.float64)
        if codes.dtype.kind != "u" or values.ndim != 1 or not codes.size or int(codes.max()) >= len(values):
            raise InvalidTableError("reward codes must be unsigned integers below the number of reward values")
    else:
        array = np.asarray(rewards)
        if array.dtype.kind not in "iufb":
            raise InvalidTableError(f"rewards must be numbers, got {array.dtype}")
        values, inverse = np.unique(array.astype(np.float64), return_inverse=True)
        codes = inverse.reshape(array.shape)
    if codes.shape != shape:
        raise InvalidTableError(f"rewards have shape {codes.shape}, transitions {shape}")
    outside = np.flatnonzero(~(np.abs(values) <= np.finfo(np.float32).max))
    if len(outside):
        code = int(outside[0])
        state, action = (int(i) for i in np.argwhere(codes == code)[0])
        raise InvalidTableError(
            f"reward of state {state}, action {action} is {values[code]}, not a finite number in float32"
        )
    return _owned(codes, np.min_scalar_type(len(values) - 1)), _owned(values, np.float64)


def _checked_screens(
    screens: ScreenArray | None, screen_mapping: ArrayLike | None, num_states: int
) -> NDArray[np.int32] | None:
    if screens is None and screen_mapping is None:
        return None
    if screens is None or screen_mapping is None:
        raise InvalidTableError("screens and screen_mapping must both be given; one of them is missing")
    if len(screens.shape) != 4 or screens.dtype != np.uint8:
        raise InvalidTableError(f"screens must be uint8 [N, H, W, C], got {screens.dtype} {tuple(screens.shape)}")
    mapping = np.asarray(screen_mapping)
    is_right = mapping.ndim in (1, 2) and mapping.size > 0 and len(mapping) == num_states and mapping.dtype.kind in "iu"
    if not is_right:
        raise InvalidTableError(
            f"screen_mapping must be integers [{num_states}], or [{num_states}, frames]; "
            f"got {mapping.dtype} {mapping.shape}"
        )
    if int(mapping.min()) < 0 or int(mapping.max()) >= screens.shape[0]:
        raise InvalidTableError(f"screen_mapping points outside the {screens.shape[0]} screens")
    return _owned(mapping, np.int32)


def _checked_pictures(
    pictures: ScreenArray | None, picture_mapping: ArrayLike | None, num_states: int
) -> NDArray[np.int32] | None:
    try:
        mapping = _checked_screens(pictures, picture_mapping, num_states)
    except InvalidTableError as error:
        raise InvalidTableError(str(error).replace("screen", "picture")) from None
    if mapping is not None and mapping.ndim != 1:
        raise InvalidTableError(f"picture_mapping must be integers [{num_states}], got {mapping.shape}")
    return mapping


def _checked_base_states(
    base_states: ArrayLike | None, mapping: NDArray[np.int32] | None, num_states: int
) -> NDArray[np.int32] | None:
    if base_states is None:
        return None
    array = np.asarray(base_states)
    if array.shape != (num_states,) or array.dtype.kind not in "iu":
        raise InvalidTableError(f"base_states must be integers [{num_states}], got {array.dtype} {array.shape}")
    if mapping is None or mapping.ndim != 2:
        raise InvalidTableError("base_states belong to frame stacks, which this table does not have")
    if int(array.min()) < 0 or int(array.max()) > np.iinfo(np.int32).max:
        raise InvalidTableError(f"base_states must be numbers of states, got {int(array.min())} to {int(array.max())}")
    return _owned(array, np.int32)


def _checked_marks(unexplored: ArrayLike | None, num_states: int) -> NDArray[np.bool_] | None:
    if unexplored is None:
        return None
    marks = np.asarray(unexplored)
    if marks.shape != (num_states,) or marks.dtype != np.bool_:
        raise InvalidTableError(f"unexplored must be booleans [{num_states}], got {marks.dtype} {marks.shape}")
    return _owned(marks, np.bool_) if marks.any() else None


def _owned(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """A contiguous read-only array of this type: shared if it is frozen already, else copied."""
    owner = array if array.base is None else array.base
    frozen = isinstance(owner, np.ndarray) and not owner.flags.writeable and not array.flags.writeable
    if not (frozen and array.dtype == dtype and array.flags.c_contiguous):
        array = np.array(array, dtype=dtype, order="C")
        array.flags.writeable = False
    return array
