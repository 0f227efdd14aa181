"""A function of yours as a potential: FILE.py:NAME, called with a state, its observation or its screen.

Its parameter's name says what it gets: `state` (the number of the state), `observation` (what is observed there, in
plain types), `screen` (the array [H, W, C]). It may take several of them.
"""

from __future__ import annotations

import inspect
import math
import runpy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import EfhorizonError
from efhorizon.mdp import TabularMDP
from efhorizon.suites.drawing import observation_value

_LONGEST = 120  # characters of what a function says when it fails


class UserFunctionError(EfhorizonError):
    """A function that cannot be used as a potential; the message is one line for the user."""


def _state(mdp: TabularMDP, state: int) -> int:
    return state


def _screen(mdp: TabularMDP, state: int) -> NDArray[np.uint8]:
    return mdp.screen(state)


_GIVEN: dict[str, Callable[[TabularMDP, int], Any]] = {
    "state": _state,
    "observation": observation_value,
    "screen": _screen,
}


@dataclass(frozen=True)
class UserFunction:
    """A potential in Python."""

    name: str
    function: Callable[..., Any]

    @classmethod
    def load(cls, given: str) -> UserFunction:
        """From FILE.py:NAME; the file is run."""
        file, colon, name = given.rpartition(":")
        if not colon or not file or not name:
            raise UserFunctionError(f"a function is given as FILE.py:NAME, got {given!r}")
        if not Path(file).is_file():
            raise UserFunctionError(f"{file}: no such file")
        try:
            found = runpy.run_path(file).get(name)
        except Exception as error:
            raise UserFunctionError(f"{file} cannot be run: {_said(error)}") from error
        if not callable(found):
            raise UserFunctionError(f"{file} has no function called {name}")
        return cls(name, found)

    def values(self, mdp: TabularMDP) -> NDArray[np.float64]:
        """What it says of each state [S]."""
        readers = self._readers(mdp)
        found = np.empty(mdp.num_states)
        for state in range(mdp.num_states):
            arguments = {name: read(mdp, state) for name, read in readers.items()}
            try:
                value = float(self.function(**arguments))
            except Exception as error:
                raise UserFunctionError(f"{self.name} fails in state {state}: {_said(error)}") from error
            if not math.isfinite(value):
                raise UserFunctionError(f"{self.name} gives {value} in state {state}; it must be a finite number")
            found[state] = value
        return found

    def _readers(self, mdp: TabularMDP) -> dict[str, Callable[[TabularMDP, int], Any]]:
        parameters = [
            name
            for name, parameter in inspect.signature(self.function).parameters.items()
            if parameter.default is inspect.Parameter.empty
        ]
        unknown = [name for name in parameters if name not in _GIVEN]
        if unknown or not parameters:
            asked = f"({', '.join(parameters)})"
            raise UserFunctionError(
                f"{self.name}{asked}: a potential takes {', '.join(_GIVEN)}, by these names, or some of them"
            )
        if mdp.screens is None and set(parameters) - {"state"}:
            raise UserFunctionError(f"{self.name} asks for more than the state, and the table has no screens")
        if "observation" in parameters and observation_value(mdp, 0) is None:
            raise UserFunctionError(
                f"{self.name} asks for the observation, but the table does not say what its screens mean; "
                "ask for the screen instead"
            )
        return {name: _GIVEN[name] for name in parameters}


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:_LONGEST]
