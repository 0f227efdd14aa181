"""The numbers of an MDP that a forecast is computed from, and those by which it is compared with what was seen.

A column whose sign is 1 never makes an MDP easier: its coefficient is at least 0. Theory says so of the bound and of
the chance that a random episode is optimal; more states never help either.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from efhorizon.forecast.features import Features

LARGEST_BOUND = 12.0  # powers of ten: beyond them nothing was solved, so that larger ones teach nothing
RAREST = 12.0  # the same for the chance of an optimal episode


@dataclass(frozen=True)
class Column:
    """One number."""

    name: str
    title: str  # for people
    sign: int  # 1: never makes it easier; 0: rows decide
    value: Callable[[Features], float]


def _rarity(features: Features) -> float:
    chance = features.optimal_chance
    return RAREST if not chance else min(RAREST, -math.log10(min(1.0, chance)))


def _flag(name: str) -> Callable[[Features], float]:
    return lambda features: float(bool(getattr(features, name)))


BOUND = "bound"
NO_BOUND = "no_bound"

# Of the effective horizon's bound only what lies above the typical one is known where there is no bound: see `design`.
USED = (
    Column(BOUND, "what the effective horizon promises GORP, log10", 1, lambda features: features.bound or 0.0),
    Column(NO_BOUND, "no finite bound", 1, lambda features: float(features.bound is None)),
    Column("rarity", "rarity of optimal episodes, -log10 of their chance", 1, _rarity),
    Column("states", "states, log10", 1, lambda features: math.log10(features.num_states)),
    Column("image", "agents see pictures", 0, _flag("is_image")),
    Column("goal", "the only reward is for a goal", 0, _flag("is_goal")),
    Column("negative", "returns can be negative", 0, _flag("can_lose")),
)

# By these, and not by the bound or by rarity: a larger bound must never make an MDP look easier.
COMPARED = (
    Column("states", "number of states", 0, lambda features: math.log10(features.num_states)),
    Column("horizon", "horizon", 0, lambda features: math.log10(features.horizon)),
    Column("actions", "number of actions", 0, lambda features: math.log10(features.num_actions)),
    Column("image", "pictures", 0, _flag("is_image")),
    Column("goal", "goals", 0, _flag("is_goal")),
    Column("negative", "negative returns", 0, _flag("can_lose")),
    Column("policy", "exploration policies", 0, _flag("has_policy")),
)
FLAGS = ("image", "goal", "negative", "policy")


def design(features: Features, typical_bound: float) -> list[float]:
    """The values of `USED`. Where there is no bound, the typical one stands for it, and `no_bound` is 1.

    No bound means that none was found, not that the effective horizon is infinite.
    """
    values = [column.value(features) for column in USED]
    bound = typical_bound if features.bound is None else min(LARGEST_BOUND, features.bound)
    return [bound if column.name == BOUND else value for column, value in zip(USED, values, strict=True)]


def compared(features: Features) -> list[float]:
    """The values of `COMPARED`."""
    return [column.value(features) for column in COMPARED]
