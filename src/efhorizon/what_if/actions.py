"""Fewer actions: one left out, those that are never optimal, or all that an optimal episode does without."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from efhorizon.transform.structure import with_actions
from efhorizon.what_if.base import Base
from efhorizon.what_if.change import Change, Changed, Needs


def changes(base: Base) -> Iterator[Change]:
    every = range(base.mdp.num_actions)
    if len(every) < 2:
        return
    tried = {tuple(every)}
    for left_out in every:
        kept = tuple(action for action in every if action != left_out)
        tried.add(kept)
        yield _change(base, kept, f"without {base.called(left_out)}", "nothing")
    optimal = base.problem.optimal
    somewhere = np.flatnonzero(optimal.actions[optimal.reached].any(axis=0)).tolist()
    used = sorted(set(base.optimal_episode[1]))
    for numbers, why in ((somewhere, "without actions that are never optimal"), (used, _only(base, used))):
        if tuple(numbers) not in tried:
            tried.add(tuple(numbers))
            yield _change(base, tuple(numbers), why, "the solution")


def _only(base: Base, used: list[int]) -> str:
    return "only " + ", ".join(base.called(action) for action in used)


def _change(base: Base, kept: tuple[int, ...], title: str, needs: Needs) -> Change:
    names = [base.names[action] for action in kept]

    def make() -> Changed:
        return Changed(with_actions(base.mdp, kept), actions=kept)

    return Change("actions", title, needs, make, {"actions": list(kept), "names": names})
