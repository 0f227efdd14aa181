"""Policies that several of these commands take."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from efhorizon.commands import _types
from efhorizon.commands._exit import UsageError
from efhorizon.mdp import TabularMDP

PROBABILITIES = ".npy"


def add_policy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--policy",
        required=True,
        metavar="P",
        help="the policy: a network (.npz, a Stable-Baselines3 .zip, .pth), probabilities (.npy), "
        "or FILE.py:FUNCTION from observations to probabilities",
    )
    parser.add_argument(
        "--temperature",
        type=_types.number,
        default=1.0,
        metavar="C",
        help="of the softmax over a DQN's action values (default: 1)",
    )


def policy_on(mdp: TabularMDP, options: argparse.Namespace) -> tuple[TabularMDP, NDArray[np.float64]]:
    """The table that the given policy belongs to, and its probabilities [S, A] or [T, S, A] there."""
    from efhorizon.planning.policies import exploration_policy, load_policy
    from efhorizon.policies.networks import CallablePolicy, load_network
    from efhorizon.policies.tabulate import tabulated

    given = str(options.policy)
    if given.endswith(PROBABILITIES):
        checked = exploration_policy(mdp, load_policy(Path(given)))
        uniform = np.full((1, mdp.num_states, mdp.num_actions), 1 / mdp.num_actions)
        found = uniform if checked.probabilities is None else checked.probabilities
        return mdp, found[0] if len(found) == 1 else found
    file, separator, function = given.rpartition(":")
    if separator and file.endswith(".py"):
        return tabulated(mdp, CallablePolicy(_function(Path(file), function), mdp.num_actions))
    return tabulated(mdp, load_network(given, temperature=options.temperature))


def _function(file: Path, name: str):  # type: ignore[no-untyped-def]
    """A function of a module of the user's."""
    import importlib.util

    if not file.is_file():
        raise UsageError(f"{file}: no such file")
    specification = importlib.util.spec_from_file_location(file.stem, file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
    except Exception as error:  # the user's own code
        raise UsageError(f"{file}: {type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"{file}: there is no function {name!r} in it")
    return function
