"""Variants: an MDP with a policy to start from. NAME@LABEL is the MDP called NAME with the policy called LABEL.

    POLICIES/LABEL/NAME.npz     the network behind the policy of one MDP: parameters by Stable-Baselines3's names
    POLICIES/LABEL/GAME.npz     the network for all other MDPs of a game
    POLICIES/LABEL/about.json   optional: a title, a method, and facts such as {"noise": 0.5, "steps": 500000}

A variant has the table of its MDP. It is analyzed with the policy as exploration policy, GORP explores with it, and PPO
starts from its network. The policy is the network's, so what a variant depends on is the digest of the parameters: what
the network says on the table follows from it, up to rounding that depends on the machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import field
from numpy.typing import NDArray

from efhorizon.agents.deep.pretrained import digest, load_parameters
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.io.decode import Record, Text, read_object, record_of
from efhorizon.mdp import TabularMDP
from efhorizon.planning.policies import ExplorationPolicy, InvalidPolicyError, exploration_policy
from efhorizon.study.analysis_record import SEPARATOR, UNIFORM, Fact, PolicyRecord

ABOUT = "about.json"
ENDING = ".npz"
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.=+-]{0,59}")  # part of the names of files
_OWN_FIELDS = ("title", "method", "facts")


class UnknownPolicyError(EfhorizonError, LookupError):
    """There is no such policy, or none for this MDP; the message is one line for the user."""


class PolicyAbout(Record, frozen=True, kw_only=True):
    """Where the policies of a label come from."""

    title: Text | None = None
    method: Text | None = None
    facts: dict[Text, Fact] = field(default_factory=dict)


@dataclass(frozen=True)
class PolicyFile:
    """A network in a file: small enough to be sent to another process."""

    label: str
    path: Path
    network: str  # digest of the parameters
    about: PolicyAbout

    @property
    def parameters(self) -> dict[str, NDArray[np.float32]]:
        self.check_unchanged()
        return _read_parameters(self.path, _modified(self.path))[0]

    def check_unchanged(self) -> None:
        """Refuse a file that is not the one that was planned with."""
        if _read_parameters(self.path, _modified(self.path))[1] != self.network:
            raise StoreError(f"{self.path}: it has changed since the study began; run the study again")


@dataclass(frozen=True)
class Explorer:
    """A policy on a table."""

    mdp: TabularMDP  # whose states the policy tells apart: the MDP's own, or with the last screens
    policy: ExplorationPolicy
    record: PolicyRecord


def split_name(name: str) -> tuple[str, str | None]:
    """NAME and LABEL of NAME@LABEL; there is no label where the name is that of an MDP."""
    base, separator, label = name.rpartition(SEPARATOR)
    return (base, label) if separator else (name, None)


class PolicyFolder:
    """A folder of policies, one sub-folder for each label."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise StoreError(f"{path}: no such folder of policies")
        self.path = path
        folders = sorted(each for each in path.iterdir() if each.is_dir() and not each.name.startswith("."))
        self._abouts = {each.name: _about(each) for each in folders if any(each.glob(f"*{ENDING}"))}
        for label in self._abouts:
            if not _LABEL.fullmatch(label) or label == UNIFORM:
                raise StoreError(f"{path / label}: {label[:60]!r} cannot be the label of a policy")
        if not self._abouts:
            raise StoreError(f"{path}: no policies here; it must have folders with files such as LABEL/GAME{ENDING}")

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self._abouts)

    def find(self, label: str, name: str, game: str) -> PolicyFile | None:
        """The policy of this label for an MDP: that of its name, or else that of its game."""
        for stem in (name, game):
            path = self.path / label / f"{stem}{ENDING}"
            if label in self._abouts and path.parent == self.path / label and path.is_file():
                return PolicyFile(label, path, _read_parameters(path, _modified(path))[1], self._abouts[label])
        return None

    def file(self, label: str, name: str, game: str) -> PolicyFile:
        """The same, which must be there."""
        found = self.find(label, name, game)
        if found is None:
            files = f"{name}{ENDING} or {game}{ENDING}"
            there = f"no {files} in {self.path / label}" if label in self._abouts else f"no {label} in {self.path}"
            raise UnknownPolicyError(f"no policy for {name}{SEPARATOR}{label}: {there}; labels: {self._listed()}")
        return found

    def _listed(self) -> str:
        return ", ".join(self._abouts)


def explorer(mdp: TabularMDP, file: PolicyFile) -> Explorer:
    """What a network does on a table, kept for the next call with the same two: it may take a while."""
    known = _explorers.get((id(mdp), file.network))
    if known is None:
        _explorers.clear()
        known = _explorers[id(mdp), file.network] = (mdp, _explorer(mdp, file))
    return known[1]


_explorers: dict[tuple[int, str], tuple[TabularMDP, Explorer]] = {}  # one at a time


def _explorer(mdp: TabularMDP, file: PolicyFile) -> Explorer:
    file.check_unchanged()
    table, probabilities = _tabulated(mdp, file.path)
    try:
        policy = exploration_policy(table, probabilities)
    except InvalidPolicyError as error:
        raise InvalidPolicyError(f"{file.path}: {error}") from None
    record = PolicyRecord(
        label=file.label,
        title=file.about.title,
        method=file.about.method,
        facts=file.about.facts,
        network=file.network,
        probabilities=digest({"probabilities": np.asarray(probabilities, np.float64)}),
        num_states=table.num_states,
    )
    return Explorer(table, policy, record)


def _tabulated(mdp: TabularMDP, path: Path) -> tuple[TabularMDP, NDArray[np.float64]]:
    """The table that the policy of a network belongs to, and its probabilities [S, A]; this imports torch."""
    from efhorizon.policies.networks import load_network
    from efhorizon.policies.tabulate import tabulated

    return tabulated(mdp, load_network(path))


def _about(folder: Path) -> PolicyAbout:
    """What about.json says. Fields that are not our own are facts too, so that a flat file will do."""
    file = folder / ABOUT
    if not file.exists():
        return PolicyAbout()
    content: dict[str, Any] = read_object(file, "a description of policies")
    facts = content.get("facts", {})
    if isinstance(facts, dict):
        more = {name: content.pop(name) for name in list(content) if name not in _OWN_FIELDS}
        content["facts"] = {**facts, **more}
    return record_of(content, PolicyAbout, str(file))


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror})") from None


@lru_cache(maxsize=2)  # a game's network serves many MDPs
def _read_parameters(path: Path, modified: int) -> tuple[dict[str, NDArray[np.float32]], str]:
    """The parameters in a file, and their digest."""
    parameters = load_parameters(path)
    return parameters, digest(parameters)
