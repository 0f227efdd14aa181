"""What a run may start from instead of random parameters and actions: files with parameters or a policy, checked.

    parameters          F.npz   Stable-Baselines3's state dictionary, one array per name; both backends take it
    exploration policy  F.npy   probabilities [S, A] or [T, S, A]

A file's digest is that of the numbers in it, so that a file written again with the same content is the same file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.io.npz import read_arrays
from efhorizon.planning.policies import ExplorationPolicy

_MAX_BYTES = 1 << 30  # of all parameters in a file; a Nature CNN has 7 MB
_NAMES_IN_A_MESSAGE = 3


class InvalidParametersError(EfhorizonError, ValueError):
    """Parameters that are not those of the network to be trained; the message is one line for the user."""


@dataclass(frozen=True)
class Start:
    """What runs are given; None stands for the algorithm's own: every action equally likely, fresh parameters."""

    exploration_policy: ExplorationPolicy | None = None
    initial: Mapping[str, NDArray[Any]] | None = None  # by Stable-Baselines3's names

    @cached_property
    def digests(self) -> dict[str, str]:
        """What is given, each by the digest of its numbers."""
        digests = {}
        if self.exploration_policy is not None and self.exploration_policy.probabilities is not None:
            digests["exploration_policy"] = digest({"probabilities": self.exploration_policy.probabilities})
        if self.initial is not None:
            digests["initial"] = digest(self.initial)
        return digests

    @property
    def suffix(self) -> str:
        """For the names of settings: empty where nothing is given."""
        words = {"exploration_policy": "policy", "initial": "initial"}
        return "".join(f"-{words[name]}-{number[:8]}" for name, number in self.digests.items())


def load_parameters(path: Path) -> dict[str, NDArray[np.float32]]:
    """The arrays of a .npz, by name. Nothing is unpickled, and what would not fit in memory is not read."""
    arrays = read_arrays(path, "a .npz of arrays", _MAX_BYTES)
    for name, array in arrays.items():
        if array.dtype.kind != "f" or not (np.abs(array) <= np.finfo(np.float32).max).all():
            raise StoreError(f"{path}: parameters must be finite floating-point numbers; {name} ({array.dtype}) is not")
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def check_parameters(given: Mapping[str, NDArray[Any]], expected: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse parameters that lack a name or have another shape. Further names are allowed: target networks, say."""
    missing = [name for name in expected if name not in given]
    if missing:
        raise InvalidParametersError(
            f"the initial parameters lack {_listed(missing)}; they have {_listed(list(given)) or 'nothing'}"
        )
    for name, shape in expected.items():
        if given[name].shape != shape:
            raise InvalidParametersError(
                f"the initial parameters {name} have shape {given[name].shape}; this network needs {shape}"
            )


def digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """A short name for numbers: their names, shapes, types and bytes."""
    content = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        content.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        content.update(array.tobytes())
    return content.hexdigest()[:16]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMES_IN_A_MESSAGE} more" if len(names) > _NAMES_IN_A_MESSAGE else ""
    return ", ".join(names[:_NAMES_IN_A_MESSAGE]) + more
