"""Why an MDP is hard: where GORP loses its chance, three states at most, with the kind of difficulty.

The reasons are about GORP that looks one step ahead and plays as many episodes for each action as the effective horizon
asks for: GORP(1, A^(k - 1) m), if H = k + log_A m. If k is 1, that is the GORP of the effective horizon itself. If not,
it fails more than half the time, for else k = 1 would be no worse, and where it fails is why one step is not enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.tabular.gorp_search import Trial
from efhorizon.bounds.analysis import Analysis
from efhorizon.bounds.course import Course, OutOfTimeError
from efhorizon.bounds.why import ActionReturns, Method, Reason, Why
from efhorizon.gorp.ties import Ties
from efhorizon.mdp import TabularMDP
from efhorizon.planning.problem import Problem
from efhorizon.planning.return_units import NoLatticeError
from efhorizon.planning.values import Values, action_values, policy_values
from efhorizon.reasons import kinds
from efhorizon.reasons.decision import Decision, approximate_evidence, is_misleading
from efhorizon.reasons.histogram import histograms
from efhorizon.reasons.kinds import Evidence
from efhorizon.reasons.losses import MOST_EPISODES, Losses, TooMuchWorkError, losses
from efhorizon.reasons.needed import deciding_steps, shortest_horizon, steps_that_can_go_wrong
from efhorizon.reasons.places import Place, places
from efhorizon.reasons.repair import success, success_after
from efhorizon.reasons.simulation import RUNS, affordable_m, simulated_losses
from efhorizon.reasons.trap import trap_depth
from efhorizon.suites.action_names import action_names

WHY_SECONDS = 15.0  # of its own, beside the time for exact figures
MAX_WORK = 50_000_000  # lattice points of one m: five seconds
UNKNOWN_M = 1000  # where the effective horizon is not known
_FEWER = 8  # times fewer episodes are tried next, where m takes too much work or GORP hardly ever fails
_MOST_SUCCESS = 0.9  # of GORP with an m that is only an upper bound
_NEVER = 1e-9  # a chance to fail that is none
_EQUAL = 1e-9  # chances that differ by less are equal
_MAX_PAIRS_CUT = 300_000  # pairs of a table up to which shorter horizons are tried


def explained(problem: Problem, found: Analysis, course: Course | None = None) -> Analysis:
    """An analysis with its reasons, found within WHY_SECONDS or the time that is left of a budget."""
    horizon = found.effective_horizon
    is_exact = horizon.kind == "exact"
    return replace(
        found, why=why_within(problem, horizon.k, horizon.m, is_exact=is_exact, ties=found.ties, course=course)
    )


def why_within(
    problem: Problem, k: int | None, m: int | None, *, is_exact: bool, ties: Ties, course: Course | None = None
) -> Why:
    """The reasons that can be found within WHY_SECONDS or the time that is left of a budget: see `why`."""
    course = course or Course()
    course.phase("reasons")
    with course.own(WHY_SECONDS):
        return why(problem, k, m, is_exact=is_exact, ties=ties, course=course)


def why(
    problem: Problem,
    k: int | None,
    m: int | None,
    *,
    is_exact: bool,
    ties: Ties = "uniform",
    course: Course | None = None,
) -> Why:
    """The reasons, for the k and m of the effective horizon (None where that is not known).

    `is_exact`: that m is the least one. Ties against GORP are taken as uniform. Where time is up, what is known.
    """
    course = course or Course()
    if problem.optimal.actions[problem.optimal.reached].all():
        return Why(note="there is nothing to get wrong: every action sequence is optimal")
    search = _Search(problem, "uniform" if ties == "adversarial" else ties, course.check)
    try:
        course.check()
        found = search.found(k, m, is_exact=is_exact)
    except OutOfTimeError:
        return Why(note="skipped: where GORP goes wrong takes too long to find on this table")
    if isinstance(found, str):
        return Why(note=found)
    return _reasons(problem, found, course)


@dataclass(frozen=True)
class _Found:
    """Where GORP(1, m) loses, and how that is known."""

    losses: Losses
    low: float  # success
    high: float
    method: Method
    note: str | None = None
    resampled: Sequence[Losses] = ()  # where it was simulated

    @property
    def success(self) -> float:
        return (self.low + self.high) / 2

    @cached_property
    def after(self) -> NDArray[np.float64]:
        """The chance to succeed after each action [O, A]."""
        return success_after(self.losses)[1]


@dataclass(frozen=True)
class _Search:
    problem: Problem
    ties: Ties
    check: Callable[[], None]

    def found(self, k: int | None, m: int | None, *, is_exact: bool) -> _Found | str:
        """GORP with the m that is asked for, or with fewer episodes where that takes too much work."""
        asked = UNKNOWN_M if k is None or m is None else self.problem.mdp.num_actions ** (k - 1) * m
        note = "the effective horizon is not known" if m is None else None
        best: _Found | None = None
        episodes = min(asked, MOST_EPISODES)
        while episodes >= 1:
            try:
                best = self._exact(episodes)
            except TooMuchWorkError:
                if best is not None:
                    break
            except NoLatticeError as error:
                return self._simulated(asked, str(error))
            if best is not None and (is_exact or best.success <= _MOST_SUCCESS or episodes == 1):
                break
            episodes = max(1, episodes // _FEWER)
        if best is None:
            return self._simulated(asked, "exact chances take too much work")
        if best.losses.m < asked:
            what = "exact chances take too much work with" if is_exact else "the effective horizon is only bounded, by"
            note = f"about GORP with {best.losses.m:,} episodes: {what} {asked:,}"
        return replace(best, note=note)

    def _exact(self, m: int) -> _Found:
        found = losses(self.problem, m, ties=self.ties, max_work=MAX_WORK, check=self.check)
        return _Found(found, *success(found), "exact")

    def _simulated(self, asked: int, reason: str) -> _Found | str:
        m = min(asked, affordable_m(self.problem))
        if m < 1:
            return f"{reason}, and simulating GORP would take too long"
        found, resampled = simulated_losses(self.problem, m, ties=self.ties, check=self.check)
        fewer = "" if m == asked else f" with {m:,} episodes instead of {asked:,}"
        low, high = Trial(m, round(success(found)[0] * RUNS), RUNS).interval
        return _Found(found, low, high, "simulation", f"estimated from {RUNS} runs of GORP{fewer}: {reason}", resampled)


def _reasons(problem: Problem, found: _Found, course: Course) -> Why:
    at, note = found.losses, found.note
    result = Why((), at.m, found.success, (found.high - found.low) / 2, found.method)
    is_lost = float(at.first.sum()) > _NEVER
    named = places(problem, at) if is_lost else []
    if not is_lost:
        note = f"GORP never goes wrong here: with m = {at.m:,} it succeeds with certainty"
    elif not named:
        note = _joined(note, "no single state would save it, so this is where most first mistakes are made")
    values = policy_values(problem.timeline, problem.policy, gamma=problem.gamma)
    needed = _needed(problem, found, course)
    reasons: list[Reason] = []
    for place in named or [_fallback(problem, at)]:
        try:
            course.check()
            reasons.append(_reason(problem, found, place, values, needed))
        except OutOfTimeError:
            note = _joined(note, "time was up before all reasons were looked at")
            break
    if not is_lost:
        reasons = [reason for reason in reasons if reason.factors[reason.kind] >= kinds.LEAST_FACTOR]
    together = _avoided(at, named[: len(reasons)]) if named and reasons else 0.0
    return replace(result, reasons=tuple(reasons), together=together, note=note)


def _joined(*notes: str | None) -> str:
    return "; ".join(filter(None, notes))


def _fallback(problem: Problem, at: Losses) -> Place:
    """The pair with most first mistakes, or else the first with a wrong action, where no fiat raises success."""
    wrong = ~problem.optimal.actions[at.pairs].all(axis=1)
    place = int(at.first.argmax()) if at.first.max() > _NEVER else int(np.flatnonzero(wrong)[0])
    optimal = problem.optimal.actions[at.pairs[place]]
    action = int(np.where(optimal, at.chances[place], -1.0).argmax())
    return Place(np.array([place]), (int(at.states[place]),), action, place)


def _avoided(at: Losses, named: Sequence[Place]) -> float:
    """The share of failures that right play at some places avoids."""
    forced = np.max([place.fiat(at) for place in named], axis=0)
    before, after = sum(success(at)) / 2, sum(success(at, forced)) / 2
    return max(0.0, (after - before) / max(1 - before, _NEVER))


def _interval(found: _Found, place: Place, share: float) -> tuple[float, float]:
    """In which the share lies: for certain, or with 95% confidence."""
    at = found.losses
    if not found.resampled:
        (low, high), (low_after, high_after) = success(at), success(at, place.fiat(at))
        failing = max(1 - high, _NEVER), max(1 - low, _NEVER)
        least, most = max(0.0, low_after - high) / failing[1], min(1.0, max(0.0, high_after - low) / failing[0])
        return min(least, share), max(most, share)
    pairs = at.pairs[place.members]
    shares = [share]
    for each in found.resampled:
        own = replace(place, members=np.flatnonzero(np.isin(each.pairs, pairs)))
        shares.append(_avoided(each, [own]))
    return min(shares), max(shares)


def _needed(problem: Problem, found: _Found, course: Course) -> int:
    """The steps that are needed, over horizons with which the optimal return and success at this m are no worse."""
    horizon = problem.mdp.horizon
    own = max(1, deciding_steps(problem))
    if found.method != "exact" or problem.timeline.num_pairs > _MAX_PAIRS_CUT:
        return own
    cut = shortest_horizon(problem) or horizon
    enough = min(found.low, 0.5)
    while cut < horizon:
        mdp = problem.mdp
        shorter = TabularMDP(mdp.transitions, (mdp.reward_codes, mdp.reward_values), cut)
        changed = Problem(shorter, problem.policy, problem.gamma, 1)
        try:
            if success(losses(changed, found.losses.m, max_work=MAX_WORK, check=course.check))[0] >= enough:
                return min(own, max(1, deciding_steps(changed)))
        except (TooMuchWorkError, NoLatticeError, OutOfTimeError):
            break
        cut *= 2
    return own


def _reason(problem: Problem, found: _Found, place: Place, values: Values, needed: int) -> Reason:
    at = found.losses
    pair = int(at.pairs[place.first])
    share = _avoided(at, [place]) if place.rise else 0.0
    right = _right(problem, found, place)
    wrong = _wrong(problem, found, place, right, values)
    is_solvable = (sweep := problem.sweep(1)) is not None and (sweep.solvable or sweep.undecided)
    misleads = not is_solvable and is_misleading(problem, values, pair, right)
    decision = Decision(problem, pair, right)
    half, most, evidence = _decided(found, decision, values, place.action, misleads, needed)
    named = kinds.factors(evidence)
    met = at.times[place.members[at.reach[place.members] > 0]]
    return Reason(
        state=place.states[0],
        time=problem.timeline.time_of(pair),
        share=share,
        interval=_interval(found, place, share) if share else (0.0, 0.0),
        rise=share * (1 - found.success),
        first_mistakes=float(at.first[np.isin(at.states, place.states)].sum()) / max(float(at.first.sum()), _NEVER),
        times=(int(met.min()), int(met.max())),
        states=place.states,
        kind=kinds.kind_of(named),
        factors=named,
        **_actions(at, place, decision, values, wrong),
        episodes_half=half,
        episodes_90=most,
        seen_chance=evidence.seen_chance,
        depth=trap_depth(problem, values, pair, right) if misleads else None,
    )


def _right(problem: Problem, found: _Found, place: Place) -> NDArray[np.bool_]:
    """The actions [A] that are as good for GORP as that of the place; where none raises success, the optimal ones."""
    optimal: NDArray[np.bool_] = problem.optimal.actions[found.losses.pairs[place.first]]
    if not place.rise:
        return optimal
    after = found.after[place.first]
    right: NDArray[np.bool_] = optimal & (after >= (1 - _EQUAL) * after[place.action])
    return right


def _wrong(problem: Problem, found: _Found, place: Place, right: NDArray[np.bool_], values: Values) -> int | None:
    """What costs GORP most instead of the right action."""
    if right.all():
        return None
    lost = found.losses.chances[place.first]
    if place.rise:
        after = found.after[place.first]
        lost = lost * np.maximum(0.0, after[place.action] - after)
    tempting = _tempting(problem, values, int(found.losses.pairs[place.first])) * max(float(lost.max()), _NEVER)
    return int(np.where(right, -1.0, lost + tempting).argmax())


def _tempting(problem: Problem, values: Values, pair: int) -> NDArray[np.float64]:
    """A tiny bonus [A] by Q^1, for wrong actions that GORP takes with equal chances."""
    row = action_values(problem.timeline, values, pair).astype(np.float64)
    spread = float(row.max() - row.min())
    return 1e-12 * (row - row.min()) / spread if spread > 0 else np.zeros(len(row))


def _decided(
    found: _Found, decision: Decision, values: Values, right: int, misleads: bool, needed: int
) -> tuple[int | None, int | None, Evidence]:
    """Episodes to decide with chances of 1/2 and 90%, and the evidence for the kind."""
    problem, at = decision.problem, found.losses
    mdp = problem.mdp
    at_risk = max(at.steps_at_risk, found.success * steps_that_can_go_wrong(problem))
    evidence = Evidence(mdp.num_actions, mdp.horizon, needed, at.m, at_risk, misleads=misleads)
    if decision.right.all():
        return 1, 1, evidence
    if misleads:
        return None, None, evidence
    rival = _rival(decision, values, right)
    try:
        half, most = decision.episodes(0.5), decision.episodes(kinds.DECIDED)
        pair_episodes = decision.episodes(kinds.DECIDED, (right, rival))
        seen = decision.seen_chance(right, rival)
    except NoLatticeError:
        seen, pair = approximate_evidence(problem, values, decision.pair, right, rival, kinds.DECIDED)
        return None, None, replace(evidence, seen_chance=seen, pair_episodes=pair)
    return half, most, replace(evidence, seen_chance=seen, episodes=most, pair_episodes=pair_episodes)


def _rival(decision: Decision, values: Values, right: int) -> int:
    """The action that is hardest to tell from the right one: of those with less Q^1, if there are any, the largest."""
    row = action_values(decision.problem.timeline, values, decision.pair).astype(np.float64)
    is_less = ~decision.right & (row < row[right])
    return int(np.where(is_less if is_less.any() else ~decision.right, row, -np.inf).argmax())


def _actions(at: Losses, place: Place, decision: Decision, values: Values, wrong: int | None) -> dict[str, Any]:
    problem = decision.problem
    names = action_names(problem.mdp.metadata, problem.mdp.num_actions)
    row = action_values(problem.timeline, values, decision.pair)
    chosen = [action for action in (place.action, wrong) if action is not None]
    found = [
        ActionReturns(
            action=action,
            name=names[action],
            chance=float(at.chances[place.first, action]),
            q=values.scale.reward(row[action].item()),
            returns=returns,
            probabilities=probabilities,
        )
        for action, (returns, probabilities) in zip(chosen, histograms(decision, chosen), strict=True)
    ]
    return {"right": found[0], "wrong": found[1] if len(found) > 1 else None}
