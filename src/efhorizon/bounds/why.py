"""Why an MDP is hard: reasons, each with its state, its share and its kind. `reasons/` finds them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["sparse", "misleading", "noise", "long", "actions", "horizon"]
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
    """A place where GORP loses its chance: one state, or several that look alike, at all times."""

    state: int  # the one that costs most
    time: int  # the first at which GORP can be there, and its choice matters
    share: float  # of GORP's failures, those that become successes if it plays right there, and only there
    interval: tuple[float, float]  # in which `share` lies: for certain, or with 95% confidence if simulated
    rise: float  # of success, if GORP plays right there: `share` times the chance to fail
    first_mistakes: float  # the part of all first mistakes, after which no episode is optimal, that is made there
    times: tuple[int, int]  # the first and the last at which playing right there is meant
    states: tuple[int, ...]  # all that are meant
    kind: Kind
    factors: dict[Kind, float]  # what each difficulty multiplies the cost by: see kinds.py
    right: ActionReturns  # what to play there
    wrong: ActionReturns | None  # what costs GORP most instead; None where GORP never goes wrong
    episodes_half: int | None  # to choose right there with a chance of 1/2; None where none is enough, or not known
    episodes_90: int | None  # the same with 90%
    seen_chance: float | None = None  # that an episode there shows anything: see kinds.py
    depth: int | None = None  # of misleading rewards: the steps of planning that show the right action

    def as_json(self) -> dict[str, Any]:
        content = asdict(self)
        content["factors"] = {kind: value if math.isfinite(value) else None for kind, value in self.factors.items()}
        return content


@dataclass(frozen=True)
class Why:
    """Up to three reasons, the one that costs most first. They are about GORP(1, m)."""

    reasons: tuple[Reason, ...] = ()
    m: int | None = None
    success: float | None = None  # of GORP(1, m)
    error: float = 0.0  # of the success
    method: Method | None = None
    together: float = 0.0  # share of GORP's failures that become successes if it plays right at all these places
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
            "together": self.together,
            "kind": self.kind,
            "note": self.note,
        }
