"""Where a table and its environment first differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Difference:
    """The first step at which table and environment differ."""

    actions: tuple[int, ...]  # from reset, the last one being the step that differs; empty: the start screen
    what: str  # "reward", "end", "screen", "next state"; "restored state", "unreachable state": see below
    expected: str  # by the table
    found: str  # in the environment

    def __str__(self) -> str:
        where = f"after actions {list(self.actions)}" if self.actions else "at the start"
        if self.what == "restored state":
            return f"{where} restoring a snapshot leads to another state than playing from reset"
        if self.what == "unreachable state":
            return f"{self.expected} is in the table, but is never reached"
        return f"{where} the {self.what} is {self.found}, but {self.expected} in the table"


def same_rewards(expected: Any, found: Any) -> Any:
    """Equal, or equal in float32: published files round. Arrays or single numbers."""
    return (expected == found) | (np.float32(expected) == np.float32(found))


def reward_difference(actions: tuple[int, ...], expected: float, found: float) -> Difference:
    shown = (f"{expected:g}", f"{found:g}")
    return Difference(actions, "reward", *(shown if shown[0] != shown[1] else (repr(expected), repr(found))))


def end_difference(actions: tuple[int, ...], next_state: int) -> Difference:
    """`next_state` is the table's."""
    return Difference(actions, "end", *(("no end", "an end") if next_state >= 0 else ("an end", "no end")))


def screen_difference(actions: tuple[int, ...], state: int) -> Difference:
    return Difference(actions, "screen", f"that of state {state}", "another one")


def next_state_difference(actions: tuple[int, ...], expected: int, found: int) -> Difference:
    """The table has another number for a state than it has elsewhere; -1: it has none."""
    names = ["none with a number" if state < 0 else f"state {state}" for state in (expected, found)]
    return Difference(actions, "next state", *names)


def restored_state_difference(actions: tuple[int, ...]) -> Difference:
    return Difference(actions, "restored state", "the same", "another one")


def unreachable_state(state: int) -> Difference:
    return Difference((), "unreachable state", f"state {state}", "nothing")
