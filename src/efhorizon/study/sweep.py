"""The paper's settings (Appendix F), as constants: which runs make up the sample complexity of an algorithm."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

from efhorizon.errors import EfhorizonError

Algorithm = Literal["ppo", "dqn", "gorp"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
Settings = dict[str, Any]  # hyperparameters by name; which ones exist depends on the algorithm
Backend = Literal["table", "sb3"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)

SEEDS = 5
EVALUATION_INTERVAL = 10_000
TRAINING_WINDOW = 100  # episodes; PPO's second rule
PAPER = "paper"  # every setting of an algorithm

# algorithm: name of a setting: what it sets; all else is the default of the algorithm's settings
SETTINGS: Mapping[Algorithm, Mapping[str, Settings]] = MappingProxyType(
    {
        "ppo": MappingProxyType({"rollout128": {"rollout_length": 128}, "rollout1280": {"rollout_length": 1280}}),
        "dqn": MappingProxyType(
            {"exploration0.1": {"exploration_fraction": 0.1}, "exploration1": {"exploration_fraction": 1.0}}
        ),
        "gorp": MappingProxyType({"k1": {"k": 1}, "k2": {"k": 2}, "k3": {"k": 3}}),
    }
)

_ANY_K = re.compile(r"k[1-9][0-9]?")


class UnknownSettingError(EfhorizonError):
    """No setting has this name; the message is one line for the user."""


def named_settings(algorithm: Algorithm, names: str = PAPER) -> dict[str, Settings]:
    """Settings by name: `paper` for all of the paper's, or some, separated by commas. GORP has one for every k."""
    known = SETTINGS[algorithm]
    wanted = list(known) if names == PAPER else [name.strip() for name in names.split(",")]
    return {name: dict(known[name]) if name in known else _other_setting(algorithm, name) for name in wanted}


def _other_setting(algorithm: Algorithm, name: str) -> Settings:
    if algorithm == "gorp" and _ANY_K.fullmatch(name):
        return {"k": int(name[1:])}
    there = f"{PAPER} (all) {' '.join(SETTINGS[algorithm])}" + (" k4 ..." if algorithm == "gorp" else "")
    raise UnknownSettingError(f"{algorithm} has no setting called {name!r}; choose from: {there}")
