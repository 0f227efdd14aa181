"""What a Gymnasium environment calls its actions, where it tells.

    get_action_meanings()              Atari, and many others
    action_names, ACTION_NAMES         a sequence of names, or a mapping between names and numbers
    actions, Actions, ACTIONS          the same, or an enum, as MiniGrid has

They are looked for in the environment and then in every wrapper below it, the outermost first. Gymnasium's own small
environments do not tell them, but its documentation does.
"""

from __future__ import annotations

import contextlib
import enum
import numbers
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_ATTRIBUTES = ("action_names", "ACTION_NAMES", "actions", "Actions", "ACTIONS")
_LONGEST_NAME = 60
_GYMNASIUM = "gymnasium.envs."
_DOCUMENTED = {  # by class
    "AcrobotEnv": ("torque -1", "torque 0", "torque +1"),
    "BlackjackEnv": ("stick", "hit"),
    "CartPoleEnv": ("push left", "push right"),
    "CliffWalkingEnv": ("up", "right", "down", "left"),
    "FrozenLakeEnv": ("left", "down", "right", "up"),
    "LunarLander": ("nothing", "left engine", "main engine", "right engine"),
    "MountainCarEnv": ("push left", "no push", "push right"),
    "TaxiEnv": ("south", "north", "east", "west", "pick up", "drop off"),
}


def action_names_of(env: Any, num_actions: int, first_action: int = 0) -> tuple[str, ...] | None:
    """The names of all actions, in order; None where the environment does not tell them."""
    for told in _told(env):
        names = _names(told, num_actions, first_action)
        if names is not None:
            return names
    kind = type(env.unwrapped)
    documented = _DOCUMENTED.get(kind.__name__) if kind.__module__.startswith(_GYMNASIUM) else None
    return documented if documented is not None and len(documented) == num_actions else None


def _told(env: Any) -> Iterator[Any]:
    """Everything in an environment that may hold names."""
    while env is not None:
        own = {**_class_attributes(type(env)), **vars(env)}
        if callable(meanings := getattr(type(env), "get_action_meanings", None)):
            with contextlib.suppress(Exception):  # names are no reason to fail
                yield meanings(env)
        yield from (own[name] for name in _ATTRIBUTES if name in own)
        env = own.get("env")


def _class_attributes(kind: type) -> dict[str, Any]:
    return {name: getattr(kind, name) for name in _ATTRIBUTES if hasattr(kind, name)}


def _names(told: Any, num_actions: int, first_action: int) -> tuple[str, ...] | None:
    """Names from any of the known forms, if they are names of all actions."""
    by_number: dict[int, Any] = {}
    if isinstance(told, type) and issubclass(told, enum.Enum):
        by_number = {
            int(member.value) if isinstance(member.value, numbers.Integral) else first_action + place: member.name
            for place, member in enumerate(told)
        }
    elif isinstance(told, Mapping):
        by_number = _mapped(told)
    elif isinstance(told, Sequence) and not isinstance(told, str | bytes):
        by_number = {first_action + place: name for place, name in enumerate(told)}
    wanted = range(first_action, first_action + num_actions)
    found = [by_number.get(number) for number in wanted]
    texts = tuple(" ".join(each.split())[:_LONGEST_NAME] if isinstance(each, str) else "" for each in found)
    return texts if all(texts) else None


def _mapped(told: Mapping[Any, Any]) -> dict[int, Any]:
    """A mapping from numbers to names, or from names to numbers."""
    if all(isinstance(key, numbers.Integral) for key in told):
        return {int(key): value for key, value in told.items()}
    if all(isinstance(value, numbers.Integral) for value in told.values()):
        return {int(value): key for key, value in told.items()}
    return {}
