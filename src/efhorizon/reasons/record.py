"""What is found: reasons, each with its state, its share and its kind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from efhorizon.reasons.kinds import Kind

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
    """A state where GORP loses its chance, at the time that costs most; `times` are all at which it does."""

    state: int
    time: int
    share: float  # of GORP's failures that become successes if it plays right there by fiat, and only there
    interval: tuple[float, float]  # in which the share lies: for certain, or with 95% confidence if simulated
    first_mistakes: float  # of all first mistakes, the share made there; at least `share`
    rise: float  # of success, if GORP plays right there: share times the chance to fail
    mistake_chance: float  # to act wrong there at that time, once there
    times: tuple[int, int]  # the first and the last
    num_states: int  # that look alike
    kind: Kind
    factors: dict[Kind, float]  # what each difficulty multiplies the cost by: see kinds.py
    right: ActionReturns
    wrong: ActionReturns | None  # None where GORP never goes wrong
    episodes_half: int | None  # to choose right there with a chance of 1/2; None where none is enough, or not known
    episodes_90: int | None  # the same with 90%
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

    def basis_json(self) -> dict[str, Any]:
        """What the reasons are about."""
        return {
            "k": self.k,
            "m": self.m,
            "success": self.success,
            "error": self.error,
            "method": self.method,
            "kind": self.kind,
            "note": self.note,
        }
