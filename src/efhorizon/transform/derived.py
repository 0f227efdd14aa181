"""How a table is made from another one: what is taken over, and what its metadata says about it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon import graph
from efhorizon.errors import InvalidTableError
from efhorizon.mdp import StateSequence, TabularMDP

# What is said about the table as it was built, and is no longer true of a changed one.
_NO_LONGER_TRUE = ("verification", "inputs", "num_states_raw", "closed", "degenerate", "returns")

Rewards = tuple[NDArray[Any], NDArray[np.float64]]  # codes [S, A] and values [R]


def derived(
    mdp: TabularMDP,
    transitions: NDArray[Any],
    rewards: Rewards,
    horizon: int,
    *,
    origin: NDArray[Any] | None = None,
    label: str,
    change: Mapping[str, Any],
    metadata: Mapping[str, Any] | None = None,
) -> TabularMDP:
    """A table whose states are states of another one: `origin` [new S] says which; None: the same ones.

    `label` is added to the id, `change` to the list of changes in the metadata.
    """
    states = np.arange(mdp.num_states) if origin is None else np.asarray(origin)
    is_same = len(states) == mdp.num_states and bool((states == np.arange(mdp.num_states)).all())
    screens, mapping = mdp.screens, mdp.screen_mapping
    if screens is not None and mapping is not None and not is_same:
        used, mapping = np.unique(mapping[states], return_inverse=True)
        mapping = mapping.reshape(len(states), *mdp.screen_mapping.shape[1:]).astype(np.int32)  # type: ignore[union-attr]
        screens = screens if len(used) == screens.shape[0] else SelectedScreens(screens, used)
    raw_states: StateSequence | None = mdp.states
    if raw_states is not None and not is_same:
        raw_states = SelectedStates(raw_states, states)
    return TabularMDP(
        transitions,
        rewards,
        horizon,
        screens=screens,
        screen_mapping=mapping,
        base_states=None if mdp.base_states is None else mdp.base_states[states],
        states=raw_states,
        unexplored=None if mdp.unexplored is None else mdp.unexplored[states],
        metadata={**_metadata(mdp, label, change), **(metadata or {})},
    )


def within_reach(transitions: NDArray[np.int32], horizon: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The states that can be met before a horizon, ascending [new S], and the transitions between them [new S, A].

    Where a transition leads to a state that is dropped, it is taken at the last step only, and becomes -1.
    """
    depths = graph.breadth_first_order(np.ascontiguousarray(transitions, dtype=np.int32))[1]
    states = np.flatnonzero((depths >= 0) & (depths < horizon))
    return states, graph.renumbered_transitions(transitions, states.astype(np.int32))


def require_complete(mdp: TabularMDP, what: str) -> None:
    """Refuse an unfinished table."""
    if not mdp.is_complete:
        raise InvalidTableError(f"the table is unfinished; {what} needs a complete one")


def short_digest(array: NDArray[Any]) -> str:
    """A few letters that tell changes of one kind apart in the id of a table."""
    return hashlib.sha256(np.ascontiguousarray(array, dtype="<f8").data).hexdigest()[:6]


def _metadata(mdp: TabularMDP, label: str, change: Mapping[str, Any]) -> dict[str, Any]:
    before = mdp.metadata.get("id")
    kept = {name: value for name, value in mdp.metadata.items() if name not in _NO_LONGER_TRUE}
    step = {**change, "from": before, "fingerprint": mdp.fingerprint()}
    return {**kept, "id": f"{before or 'table'}+{label}", "changes": [*kept.get("changes", ()), step]}


class SelectedScreens:
    """Some screens of another array [N, H, W, C], read as they are asked for."""

    dtype = np.dtype(np.uint8)

    def __init__(self, screens: Any, numbers: NDArray[Any]) -> None:
        self._screens, self._numbers = screens, numbers
        self.shape = (len(numbers), *screens.shape[1:])

    def __getitem__(self, index: Any, /) -> NDArray[np.uint8]:
        numbers = self._numbers[index]
        if numbers.ndim == 0:
            return np.asarray(self._screens[int(numbers)], np.uint8)
        found = np.empty((len(numbers), *self.shape[1:]), np.uint8)
        for place, number in enumerate(numbers.tolist()):
            found[place] = self._screens[number]
        return found


class SelectedStates:
    """Some raw states of another sequence, read as they are asked for."""

    def __init__(self, states: StateSequence, numbers: NDArray[Any]) -> None:
        self._states, self._numbers = states, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int, /) -> bytes:
        return self._states[int(self._numbers[index])]
