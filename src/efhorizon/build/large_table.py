"""From a batched search to a table, when the search is larger than memory would like.

What `build/table.py` and `build/consolidate.py` do, with the same result, but transitions and rewards stay on disk,
mapped into memory. In memory are, per state, a representative, its number, a place in the order and up to four slots
of a hash table, 28 bytes at most, and then the table itself. States are taken from the last to the first, layer by
layer, so where no transition leads back, one pass over the file is all.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.build.batched_search import BatchedSearch
from efhorizon.build.consolidate import Rule, coarsest_classes, paper_classes
from efhorizon.compiled import compiled
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.io.machine import available_memory
from efhorizon.mdp import TabularMDP

_BLOCK = 1 << 18  # rows at a time
_MOST_CLASSES = (1 << 31) - 2
_BYTES_A_STATE = 28
_BYTES_A_STATE_VERIFIED = 44


def large_table(
    search: BatchedSearch,
    horizon: int,
    *,
    rule: Rule = "paper",
    ignore_screens: bool = False,
    max_memory: int | None = None,
    metadata: dict[str, Any] | None = None,
) -> TabularMDP:
    """The table of a horizon that the search has completed."""
    count = search.num_states_within(horizon)
    _check_memory(count, search.num_actions, max_memory)
    search.check_files()
    transitions = _cut(search, count)
    codes = search.mapped("reward_codes")[:count]
    codes, values = _in_order(codes, search.reward_values, count)
    has_looks = search.config.look_bytes > 0
    sees = search.simulator.screen_shape is not None and not ignore_screens
    screens = search.mapped("state_looks")[:count] if has_looks and sees else _screens(count, each_its_own=sees)
    if rule == "paper":
        merged = paper_classes(transitions, codes, screens)
    elif rule == "coarsest":
        labels = coarsest_classes(transitions, codes, screens)
        firsts = np.empty(int(labels.max()) + 1, np.int32)
        _first_states(labels, firsts)
        merged = firsts[labels]
    else:
        merged = np.arange(count, dtype=np.int32)
    class_of, first = _numbered(transitions, merged)
    del merged
    between, class_codes = _rows(transitions, codes, class_of, first)
    del class_of
    shown, mapping = _shown(search, first)
    return TabularMDP(
        between,
        (class_codes, values),
        horizon,
        screens=None if shown is None else LookScreens(search, shown),
        screen_mapping=mapping,
        states=RowStates(search, first),
        metadata={
            **(metadata or {}),
            "num_states_raw": count,
            "closed": search.is_closed and count == search.num_states,
        },
    )


def _check_memory(count: int, num_actions: int, max_memory: int | None) -> None:
    """Refuse what does not fit before it is begun; a table may have as many states as the search."""
    # merging, or verifying the table: its walk, its optimal episodes and what was replayed
    needed = count * max(_BYTES_A_STATE + 5 * num_actions, _BYTES_A_STATE_VERIFIED + 6 * num_actions)
    limit = min(available_memory(), available_memory() if max_memory is None else max_memory)
    if needed > limit:
        raise EfhorizonError(
            f"merging and verifying {count:,} states needs up to {needed / 2**30:.1f} GB of memory, and "
            f"{limit / 2**30:.1f} GB may be used; the search is kept; run the same command with more"
        )
    if count > _MOST_CLASSES:
        raise EfhorizonError(
            f"a table has at most {_MOST_CLASSES:,} states, and this search {count:,}; lower --horizon"
        )


def _cut(search: BatchedSearch, count: int) -> NDArray[Any]:
    """Transitions [count, A] in 32 bits, without those into states that are entered only after the last action."""
    transitions = search.mapped("transitions")[:count]
    if transitions.dtype == np.int32 and count == search.num_states:
        return transitions
    path = Path(search.folder) / "transitions-cut"
    try:
        with path.open("w+b") as file:
            path.unlink()  # it lives as long as the mapping
            os.posix_fallocate(file.fileno(), 0, 4 * transitions.size)  # a full disk is found here, not in the mapping
            cut: NDArray[Any] = np.memmap(file, np.int32, "r+", shape=transitions.shape)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror}); the search is kept") from None
    for start in range(0, count, _BLOCK):
        block = transitions[start : start + _BLOCK]
        cut[start : start + _BLOCK] = np.where(block < count, block, -1)
    return cut


def _in_order(
    codes: NDArray[np.uint8], found: list[float], count: int
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Codes into the ascending values that occur among the first rows."""
    used = np.zeros(len(found), bool)
    for start in range(0, count, _BLOCK):
        used[np.unique(codes[start : start + _BLOCK])] = True
    values = np.array(found)
    kept = np.sort(values[used])
    if np.array_equal(kept, values[: len(kept)]):
        return codes, kept
    places = np.searchsorted(kept, values).astype(np.uint8)
    ordered = np.empty(codes.shape, np.uint8)
    for start in range(0, count, _BLOCK):
        ordered[start : start + _BLOCK] = places[codes[start : start + _BLOCK]]
    return ordered, kept


def _screens(count: int, *, each_its_own: bool) -> NDArray[np.int32]:
    return np.arange(count, dtype=np.int32) if each_its_own else np.zeros(count, np.int32)


def _numbered(transitions: NDArray[Any], merged: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The class of every state, breadth-first from the start state, -1 where none; the first state of each class."""
    number = np.full(len(merged), -1, np.int32)  # of a class, by its representative
    order = np.empty(len(merged), np.int32)
    num_classes = int(_breadth_first(transitions, merged, number, order))
    del order
    class_of = number[merged]
    first = np.empty(num_classes, np.int32)
    _first_states(class_of, first)
    return class_of, first


def _rows(
    transitions: NDArray[Any], codes: NDArray[np.uint8], class_of: NDArray[np.int32], first: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    between = np.empty((len(first), transitions.shape[1]), np.int32)
    chosen = np.empty(between.shape, np.uint8)
    _gather(transitions, codes, class_of, first, between, chosen)
    between.flags.writeable = chosen.flags.writeable = False  # so that the table takes them as they are
    return between, chosen


@compiled
def _breadth_first(transitions: Any, merged: Any, number: Any, order: Any) -> int:
    order[0] = merged[0]
    number[merged[0]] = 0
    found, head = 1, 0
    while head < found:
        state = order[head]
        head += 1
        for action in range(transitions.shape[1]):
            successor = transitions[state, action]
            if successor >= 0:
                target = merged[successor]
                if number[target] < 0:
                    number[target] = found
                    order[found] = target
                    found += 1
    return found


@compiled
def _first_states(class_of: Any, first: Any) -> None:
    for state in range(len(class_of) - 1, -1, -1):
        if class_of[state] >= 0:
            first[class_of[state]] = state


@compiled
def _gather(transitions: Any, codes: Any, class_of: Any, first: Any, between: Any, chosen: Any) -> None:
    for place in range(len(first)):
        for action in range(transitions.shape[1]):
            successor = transitions[first[place], action]
            between[place, action] = class_of[successor] if successor >= 0 else -1
            chosen[place, action] = codes[first[place], action]


def _shown(search: BatchedSearch, first: NDArray[np.int32]) -> tuple[NDArray[Any] | None, NDArray[np.int32] | None]:
    """The screens that a table keeps, and which of them each of its states shows."""
    if search.simulator.screen_shape is None:
        return None, None
    if not search.config.look_bytes:
        return np.sort(first), np.argsort(np.argsort(first)).astype(np.int32)
    shown, mapping = np.unique(search.mapped("state_looks")[first], return_inverse=True)
    return shown, mapping.astype(np.int32)


class LookScreens:
    """Screens [N, H, W, C], drawn from states as they are asked for."""

    dtype = np.dtype(np.uint8)

    def __init__(self, search: BatchedSearch, numbers: NDArray[Any]) -> None:
        self._search, self._numbers = search, numbers
        assert search.simulator.screen_shape is not None
        self.shape = (len(numbers), *search.simulator.screen_shape)

    def __getitem__(self, index: Any, /) -> NDArray[np.uint8]:
        numbers = self._numbers[index]
        if np.ndim(numbers) == 0:
            screen: NDArray[np.uint8] = self._search.screens(np.array([numbers]))[0]
            return screen
        return self._search.screens(np.asarray(numbers))


class RowStates:
    """Raw states as the usual simulator knows them, made as they are asked for."""

    def __init__(self, search: BatchedSearch, numbers: NDArray[np.int32]) -> None:
        self._search, self._numbers = search, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int, /) -> bytes:
        return self._search.state(int(self._numbers[index]))

    def joined(self, start: int, stop: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Some states one after the other, and their lengths."""
        return self._search.joined_states(self._numbers[start:stop])
