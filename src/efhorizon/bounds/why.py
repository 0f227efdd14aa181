"""Why an MDP is hard: reasons, each with its state, its share and its kind. `reasons/` finds them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["sparse", "misleading", "noise", "long", "actions", "horizon"]
Merged = Literal["state", "look", "stage"]  # what makes states one reason: see reasons/places.py
Method = Literal["exact", "simulation"]


@dataclass(frozen=True)
class ActionReturns:
    """An action of the state of a reason, and the returns of episodes that take it and explore then."""

    action: int
    name: str
    chance: float  # of GORP to take it there
    q: float  # the mean of the returns
    returns: tuple[float, ...] = ()  # empty where there is no distribution that can be had
    probabilities: tuple[float, ...] = ()


@dataclass(frozen=True)
class Reason:
    """A place where GORP makes its first mistake: its state and time are those where most of them are made."""

    state: int
    time: int
    share: float  # of all first mistakes, those made there: the shares of all places sum to 1
    avoided: float  # share of GORP's failures that become successes if it plays right there by fiat, and only there
    interval: tuple[float, float]  # in which `avoided` lies: for certain, or with 95% confidence if simulated
    rise: float  # of success, if GORP plays right there: `avoided` times the chance to fail
    mistake_chance: float  # to act wrong there at that time, once there
    times: tuple[int, int]  # the first and the last
    num_states: int  # that are merged
    merged: Merged
    kind: Kind
    factors: dict[Kind, float]  # what each difficulty multiplies the cost by: see kinds.py
    right: ActionReturns
    wrong: ActionReturns | None  # None where GORP never goes wrong
    episodes_half: int | None  # to choose right there with a chance of 1/2; None where none is enough, or not known
    episodes_90: int | None  # the same with 90%
    steps_to_reward: int | None = None  # of a stage: by the shortest optimal play
    depth: int | None = None  # of misleading rewards: the steps of planning that show the right action

    def as_json(self) -> dict[str, Any]:
        content = asdict(self)
        content["factors"] = {kind: value if math.isfinite(value) else None for kind, value in self.factors.items()}
        return content


@dataclass(frozen=True)
class Why:
    """Up to three reasons, where most first mistakes are made first. They are about GORP(1, m)."""

    reasons: tuple[Reason, ...] = ()
    m: int | None = None
    success: float | None = None  # of GORP(1, m)
    error: float = 0.0  # of the success
    method: Method | None = None
    num_places: int = 0  # where first mistakes are made, the reasons among them
    note: str | None = None  # why there are no reasons, or what to know about them

    k = 1  # of the GORP that they are about

    def __iter__(self) -> Iterator[Reason]:
        return iter(self.reasons)

    def __len__(self) -> int:
        return len(self.reasons)

    def __getitem__(self, index: int) -> Reason:
        return self.reasons[index]

    @property
    def kind(self) -> Kind | None:
        """Of the first reason."""
        return self.reasons[0].kind if self.reasons else None

    @property
    def elsewhere(self) -> float:
        """The part of all first mistakes that is made at other places."""
        return max(0.0, 1.0 - sum(reason.share for reason in self.reasons))

    def as_json(self) -> dict[str, Any]:
        """`why`, the list of reasons, and `why_basis`, what they are about."""
        return {"why": [reason.as_json() for reason in self.reasons], "why_basis": self._basis()}

    def _basis(self) -> dict[str, Any]:
        return {
            "k": self.k,
            "m": self.m,
            "success": self.success,
            "error": self.error,
            "method": self.method,
            "num_places": self.num_places,
            "elsewhere": self.elsewhere,
            "kind": self.kind,
            "note": self.note,
        }
