"""Why an MDP is hard and what to change, as an analysis stores it: where GORP loses, and what was tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from efhorizon.bounds.why import Kind, Method
from efhorizon.io.decode import MAX_ITEMS, Count, LargePositive, Number, Positive, Probability, Record, Text

Numbers = Annotated[list[Number], Meta(max_length=MAX_ITEMS)]


def check_distribution(returns: Sequence[float], probabilities: Sequence[float]) -> None:
    if len(returns) != len(probabilities) or not all(0 <= p <= 1 + 1e-9 for p in probabilities):
        raise ValueError(f"{len(returns)} returns need as many probabilities between 0 and 1")


class ReasonAction(Record, frozen=True, kw_only=True):
    """An action of the state of a reason, and the returns of episodes that take it and explore then."""

    action: Count
    name: Text
    chance: Number
    q: Number
    returns: Numbers = field(default_factory=list)
    probabilities: Numbers = field(default_factory=list)

    def __post_init__(self) -> None:
        check_distribution(self.returns, self.probabilities)


class ReasonFigures(Record, frozen=True, kw_only=True):
    """A place where GORP loses its chance: `bounds/why.py`."""

    state: Count
    time: Count
    share: Number
    interval: tuple[Number, Number]
    rise: Number
    first_mistakes: Number
    times: tuple[Count, Count]
    states: Annotated[list[Count], Meta(min_length=1)]
    kind: Kind
    factors: dict[Kind, Number | None]
    right: ReasonAction
    wrong: ReasonAction | None = None
    episodes_half: LargePositive | None = None
    episodes_90: LargePositive | None = None
    seen_chance: Probability | None = None
    depth: Positive | None = None


class WhyBasis(Record, frozen=True, kw_only=True):
    """The GORP that reasons are about, and how they are known."""

    k: Positive
    m: LargePositive | None = None
    success: Number | None = None
    error: Number = 0.0
    method: Method | None = None
    together: Number = 0.0
    kind: Kind | None = None
    note: Text | None = None


class ReasonScene(Record, frozen=True, kw_only=True):
    """What the state of a reason looks like."""

    picture: Text | None = None
    observation: Text | UnsetType = UNSET  # as in `DecidingState`
    drawing: Text | UnsetType = UNSET


class ChangeFigures(Record, frozen=True, kw_only=True):
    """A change of the table that `what-if` tried; timesteps are those of the environment."""

    title: Text
    kind: Text
    verdict: Text
    needs: Text  # what it takes to make it
    horizon: Number | None = None  # the effective horizon after the change
    horizon_kind: Text | None = None  # "exact" or "upper"
    timesteps: LargePositive | None = None  # that GORP needs then
    factor: Number | None = None  # of these and those before
    forecast: dict[Text, Number] = field(default_factory=dict)  # the median by algorithm
    stays_optimal: Literal["yes", "partly", "no"] | None = None
    caveats: list[Text] = field(default_factory=list)
