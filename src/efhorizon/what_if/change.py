"""A change of a table: how it is made, and what it takes to have it outside the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from numpy.typing import ArrayLike

from efhorizon.mdp import TabularMDP

Kind = Literal["potential", "horizon", "repeat", "actions", "discount", "exploration", "start"]
KINDS: tuple[Kind, ...] = ("potential", "horizon", "repeat", "actions", "discount", "exploration", "start")

# What it takes to make the change in the environment itself, from nothing to knowing the answer already.
Needs = Literal["nothing", "a function of the state", "the graph", "the solution"]


@dataclass(frozen=True)
class Changed:
    """A changed table, and how its episodes are episodes of the original."""

    mdp: TabularMDP
    gamma: float = 1.0
    policy: ArrayLike | None = None  # that explores; None: every action equally likely
    steps_each: int = 1  # steps of the original in one step here
    actions: tuple[int, ...] | None = None  # the original action behind each action here; None: the same
    prefix: tuple[int, ...] = ()  # original actions that lead to the start here
    is_shaped: bool = False
    same_success: bool = False  # whether GORP provably does as on the original: nothing is computed again


@dataclass(frozen=True)
class Change:
    """Something to try. `make` makes the table when its turn comes."""

    kind: Kind
    title: str  # for people, short
    needs: Needs
    make: Callable[[], Changed]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    note: str | None = None  # what else has to be said
