"""From a search to a table: cut at the horizon, merge states, keep a screen and a raw state for each class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.build import consolidate
from efhorizon.build.search import Search
from efhorizon.mdp import TabularMDP

_BLOCK = 1 << 18  # rows at a time


def table(
    search: Search,
    horizon: int,
    *,
    rule: consolidate.Rule = "paper",
    ignore_screens: bool = False,
    metadata: dict[str, Any] | None = None,
) -> TabularMDP:
    """The table of a horizon that the search has completed; a search to a longer horizon contains every shorter one."""
    count = search.num_states_within(horizon)
    transitions = search.transitions(count)
    transitions[transitions >= count] = -1  # entered only after the last action
    codes, values = _coded(search.rewards(count))
    screens = search.state_screens(count)
    class_of = consolidate.classes(transitions, codes, None if ignore_screens else screens, rule)
    between, first = consolidate.quotient(transitions, class_of)
    is_closed = search.is_closed and count == search.num_states  # nothing was cut off at the horizon
    shown, mapping = np.unique(screens[first], return_inverse=True)
    return TabularMDP(
        between,
        (codes[first], values),
        horizon,
        screens=SearchScreens(search, shown),
        screen_mapping=mapping.astype(np.int32),
        states=SearchStates(search, first),
        metadata={**(metadata or {}), "num_states_raw": count, "closed": is_closed},
    )


def unfinished_table(search: Search, horizon: int, *, metadata: dict[str, Any] | None = None) -> TabularMDP:
    """What is known of a horizon that the search has not completed: states that were found but not expanded are marked.

    Nothing is merged: what an unexplored state does is unknown, so it may be different from all others.
    """
    found, expanded = search.num_states_within(horizon), search.num_expanded
    transitions = np.full((found, search.num_actions), -1, np.int32)
    transitions[:expanded] = search.transitions(expanded)
    transitions[transitions >= found] = -1
    codes, values = _coded(search.rewards(expanded))
    padding = np.zeros((found - expanded, search.num_actions), codes.dtype)
    numbers = np.arange(found, dtype=np.int32)
    shown, mapping = np.unique(search.state_screens(found), return_inverse=True)
    return TabularMDP(
        transitions,
        (np.concatenate([codes, padding]), values),
        horizon,
        screens=SearchScreens(search, shown),
        screen_mapping=mapping.astype(np.int32),
        states=SearchStates(search, numbers),
        unexplored=numbers >= expanded,
        metadata={**(metadata or {}), "num_states_raw": found},
    )


def _coded(rewards: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Rewards as codes into their distinct values, block by block: the table of floats would be eight times larger."""
    blocks = [rewards[start : start + _BLOCK] + 0.0 for start in range(0, len(rewards), _BLOCK)]  # -0.0 becomes 0.0
    values = np.unique(np.concatenate([np.unique(block) for block in blocks]))
    dtype = np.min_scalar_type(len(values) - 1)
    return np.concatenate([np.searchsorted(values, block).astype(dtype) for block in blocks]), values


class SearchScreens:
    """Screens [N, H, W, C] read from a search as they are asked for."""

    dtype = np.dtype(np.uint8)

    def __init__(self, search: Search, numbers: NDArray[Any]) -> None:
        self._search, self._numbers = search, numbers
        self.shape = (len(numbers), *search.screen_shape)

    def __getitem__(self, index: Any, /) -> NDArray[np.uint8]:
        numbers = self._numbers[index]
        if numbers.ndim == 0:
            return self._search.screen(int(numbers))
        return np.stack([self._search.screen(int(number)) for number in numbers])


class SearchStates:
    """Raw states read from a search as they are asked for."""

    def __init__(self, search: Search, numbers: NDArray[np.int32]) -> None:
        self._search, self._numbers = search, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int, /) -> bytes:
        return self._search.state(int(self._numbers[index]))
