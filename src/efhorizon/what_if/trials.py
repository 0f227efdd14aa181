"""Every change of a table, tried one after the other and sorted: best first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from efhorizon.bounds.quick_horizon import QUICK_POINTS
from efhorizon.errors import EfhorizonError
from efhorizon.mdp import TabularMDP
from efhorizon.planning.problem import problem
from efhorizon.transform.derived import require_complete
from efhorizon.what_if import actions, discounts, exploration, horizons, potentials, repeats, starts
from efhorizon.what_if.base import Base
from efhorizon.what_if.change import KINDS, Change, Kind
from efhorizon.what_if.figures import Figures, figures
from efhorizon.what_if.kept import kept
from efhorizon.what_if.trial import Trial, WhatIf
from efhorizon.what_if.user_function import UserFunction

BASE_SHARE = 5  # times as much work for the table as it is: every change begins near what is found there
MAX_K = 2  # larger k rarely need fewer episodes, and their work grows with A^k


class UnknownKindError(EfhorizonError, ValueError):
    """A kind of change that does not exist."""


@dataclass(frozen=True)
class Options:
    """What to try. None: the usual ones."""

    kinds: Sequence[str] | None = None
    potentials: Sequence[UserFunction] = ()
    weights: Sequence[float] | None = None
    horizons: Sequence[int] | None = None
    repeats: Sequence[int] | None = None
    gammas: Sequence[float] | None = None
    max_points: int = QUICK_POINTS


@dataclass(frozen=True)
class Progress:
    """What is being tried."""

    number: int  # of changes tried so far
    num_changes: int
    title: str


def what_if(
    mdp: TabularMDP, options: Options | None = None, *, on_progress: Callable[[Progress], None] | None = None
) -> WhatIf:
    """Try changes of a table. An interrupt ends it early: what was tried until then is the result."""
    options = options or Options()
    require_complete(mdp, "trying changes")
    _check_kinds(options.kinds)
    base = Base(problem(mdp, max_k=MAX_K))
    say = on_progress or (lambda _: None)
    say(Progress(0, 0, "the table as it is"))
    before = figures(base.problem, max_points=BASE_SHARE * options.max_points)
    planned = list(changes(base, options))
    trials: list[Trial] = []
    try:
        for number, change in enumerate(planned):
            say(Progress(number, len(planned), change.title))
            trials.append(trial(base, before, change, max_points=options.max_points))
    except KeyboardInterrupt:
        pass
    left_out = tuple(change.title for change in planned[len(trials) :])
    ordered = tuple(sorted(trials, key=lambda each: each.place))
    return WhatIf(mdp.metadata.get("id"), before, ordered, len(planned), left_out)


def changes(base: Base, options: Options) -> Iterator[Change]:
    """Everything there is to try, in the order of `KINDS`."""
    makers: dict[Kind, Callable[[], Iterator[Change]]] = {
        "potential": lambda: potentials.changes(base, functions=options.potentials, **_given(weights=options.weights)),
        "horizon": lambda: horizons.changes(base, horizons=options.horizons),
        "repeat": lambda: repeats.changes(base, **_given(repeats=options.repeats)),
        "actions": lambda: actions.changes(base),
        "discount": lambda: discounts.changes(base, **_given(gammas=options.gammas)),
        "exploration": lambda: exploration.changes(base),
        "start": lambda: starts.changes(base),
    }
    for kind in KINDS:
        if options.kinds is None or kind in options.kinds:
            yield from makers[kind]()


def trial(base: Base, before: Figures, change: Change, *, max_points: int = QUICK_POINTS) -> Trial:
    """Try one change; one that cannot be made says why."""
    blank = Trial(change.kind, change.title, change.needs, change.parameters, before, None, None, change.note)
    try:
        how = change.make()
    except EfhorizonError as error:
        return replace(blank, reason=str(error))
    changed = problem(how.mdp, gamma=how.gamma, policy=how.policy, max_k=MAX_K)
    if how.same_success:
        after = replace(before, num_states=how.mdp.num_states, optimal_return=changed.optimal.values.reward())
    else:
        after = figures(
            changed,
            steps_each=how.steps_each,
            is_shaped=how.is_shaped,
            max_points=max_points,
            guess=before.m if before.k == 1 and not before.is_by_theorem else None,
        )
    return replace(blank, after=after, kept=kept(base.problem, changed, how), reason=after.reason)


def _check_kinds(kinds: Sequence[str] | None) -> None:
    for kind in kinds or ():
        if kind not in KINDS:
            raise UnknownKindError(f"no kind of change is called {kind!r}; there are {', '.join(KINDS)}")


def _given(**options: Any) -> dict[str, Any]:
    """What was given; the rest keeps its default."""
    return {name: value for name, value in options.items() if value is not None}
