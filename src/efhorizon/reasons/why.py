"""Why an MDP is hard: where GORP loses its chance, three states at most, with the kind of difficulty.

The reasons are about GORP that looks one step ahead and plays as many episodes for each action as the effective horizon
asks for: GORP(1, A^(k - 1) m), if H = k + log_A m. If k is 1, that is the GORP of the effective horizon itself. If not,
it fails more than half the time, for else k = 1 would be no worse, and where it fails is why one step is not enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.tabular.gorp_search import Trial
from efhorizon.bounds.analysis import Analysis
from efhorizon.bounds.course import Course, OutOfTimeError
from efhorizon.bounds.why import ActionReturns, Merged, Method, Reason, Why
from efhorizon.gorp.ties import Ties
from efhorizon.mdp import TabularMDP
from efhorizon.planning.problem import Problem
from efhorizon.planning.return_units import NoLatticeError
from efhorizon.planning.values import Values, action_values, policy_values
from efhorizon.reasons import kinds
from efhorizon.reasons.decision import Decision, approximate_evidence, is_misleading
from efhorizon.reasons.histogram import histograms
from efhorizon.reasons.kinds import Evidence
from efhorizon.reasons.losses import Losses, TooMuchWorkError, losses
from efhorizon.reasons.needed import deciding_steps, shortest_horizon, steps_that_can_go_wrong
from efhorizon.reasons.places import SHOWN, places
from efhorizon.reasons.repair import success
from efhorizon.reasons.simulation import affordable_m, simulated_losses
from efhorizon.reasons.trap import trap_depth
from efhorizon.suites.action_names import action_names

WHY_SECONDS = 15.0  # of its own, beside the time for exact figures
MAX_WORK = 50_000_000  # lattice points of one m: five seconds
UNKNOWN_M = 1000  # where the effective horizon is not known
_FEWER = 8  # times fewer episodes are tried next, where m takes too much work or GORP hardly ever fails
_MOST_SUCCESS = 0.9  # of GORP with an m that is only an upper bound
_NEVER = 1e-9  # a chance to fail that is none
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
    num_runs: int | None = None  # where it was simulated

    @property
    def success(self) -> float:
        return (self.low + self.high) / 2


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
        episodes = asked
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
        found, num_runs = simulated_losses(self.problem, m, ties=self.ties, check=self.check)
        fewer = "" if m == asked else f" with {m:,} episodes instead of {asked:,}"
        low, high = Trial(m, round(success(found)[0] * num_runs), num_runs).interval
        return _Found(
            found, low, high, "simulation", f"estimated from {num_runs} runs of GORP{fewer}: {reason}", num_runs
        )


def _reasons(problem: Problem, found: _Found, course: Course) -> Why:
    failing = 1 - found.success
    result = Why((), found.losses.m, found.success, (found.high - found.low) / 2, found.method, note=found.note)
    is_lost = float(found.losses.first.sum()) > _NEVER
    groups, num_places = (
        _largest(problem, found)
        if is_lost
        else ([_Group(np.array([_first_choice(problem, found.losses)]), 0.0, 0.0, (0.0, 0.0), "state")], 0)
    )
    values = policy_values(problem.timeline, problem.policy, gamma=problem.gamma)
    needed = _needed(problem, found, course)
    reasons, note = [], found.note
    for group in groups:
        try:
            course.check()
            reasons.append(_reason(problem, found, group, values, needed, failing if is_lost else 0.0))
        except OutOfTimeError:
            note = "; ".join(filter(None, [note, "time was up before all reasons were looked at"]))
            break
    if not is_lost:
        note = f"GORP never goes wrong here: with m = {found.losses.m:,} it succeeds with certainty"
        reasons = [reason for reason in reasons if reason.factors[reason.kind] >= kinds.LEAST_FACTOR]
    return replace(result, reasons=tuple(reasons), num_places=num_places, note=note)


@dataclass(frozen=True)
class _Group:
    """Places [n] in the losses that are one reason, by descending chance of a first mistake."""

    places: NDArray[np.int64]
    share: float
    avoided: float
    interval: tuple[float, float]
    merged: Merged
    steps: int | None = None


def _largest(problem: Problem, found: _Found) -> tuple[list[_Group], int]:
    """The groups where most first mistakes are made, and the number of all groups."""
    first = found.losses.first
    merged = places(problem, found.losses)
    shares = merged.shares(first)
    groups = []
    for label in np.argsort(-shares, kind="stable")[:SHOWN]:
        if shares[label] > 0:
            members = np.flatnonzero(merged.labels == label)
            members = members[np.argsort(-first[members], kind="stable")]
            steps = None if merged.steps is None else int(merged.steps[members[0]])
            groups.append(_Group(members, *_group(found, members, float(shares[label])), merged.merged, steps))
    return groups, int((shares > 0).sum())


def _group(found: _Found, members: NDArray[np.int64], share: float) -> tuple[float, float, tuple[float, float]]:
    """The share of first mistakes, the part of failures that playing right there avoids, and its interval."""
    repaired = np.zeros(len(found.losses.pairs), np.bool_)
    repaired[members] = True
    low, high = success(found.losses)
    low_after, high_after = success(found.losses, repaired)
    middle = (low + high) / 2
    avoided = ((low_after + high_after) / 2 - middle) / (1 - middle)
    if found.num_runs is None:
        failing = max(1 - high, _NEVER)
        interval = max(0.0, (low_after - high) / (1 - low)), min(share, (high_after - low) / failing)
        return share, avoided, (min(interval[0], avoided), max(interval[1], avoided))
    lost = round((1 - low) * found.num_runs)
    bounds = Trial(found.losses.m, round(share * lost), lost).interval
    part = avoided / share
    return share, avoided, (part * bounds[0], min(1.0, part * bounds[1]))


def _first_choice(problem: Problem, found: Losses) -> int:
    """The first place with a wrong action."""
    return int(np.flatnonzero(~problem.optimal.actions[found.pairs].all(axis=1))[0])


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


def _reason(problem: Problem, found: _Found, group: _Group, values: Values, needed: int, failing: float) -> Reason:
    at = found.losses
    place = int(group.places[0])
    pair = int(at.pairs[place])
    costly = group.places[at.first[group.places] > 0]
    times = at.times[costly] if len(costly) else at.times[group.places[:1]]
    right = problem.optimal.actions[pair]
    best = int(np.where(right, at.chances[place], -1.0).argmax())
    worst = (
        None
        if right.all()
        else int(np.where(right, -1.0, at.chances[place] + _tempting(problem, values, pair)).argmax())
    )
    misleads = is_misleading(problem, values, pair)
    decision = Decision(problem, pair)
    half, most, evidence = _decided(found, decision, values, best, worst, misleads, needed)
    named = kinds.factors(evidence)
    return Reason(
        state=int(problem.timeline.states[pair]),
        time=problem.timeline.time_of(pair),
        share=group.share,
        avoided=group.avoided,
        interval=group.interval,
        rise=group.avoided * failing,
        mistake_chance=float(at.mistakes[place]),
        times=(int(times.min()), int(times.max())),
        num_states=len(np.unique(at.states[costly if len(costly) else group.places])),
        merged=group.merged,
        kind=kinds.kind_of(named),
        factors=named,
        **_actions(problem, at, place, decision, values, best, worst),
        episodes_half=half,
        episodes_90=most,
        steps_to_reward=group.steps,
        depth=trap_depth(problem, values, pair) if misleads else None,
    )


def _tempting(problem: Problem, values: Values, pair: int) -> NDArray[np.float64]:
    """A tiny bonus [A] by Q^1, for wrong actions that GORP takes with equal chances."""
    row = action_values(problem.timeline, values, pair).astype(np.float64)
    spread = float(row.max() - row.min())
    return 1e-12 * (row - row.min()) / spread if spread > 0 else np.zeros(len(row))


def _decided(
    found: _Found, decision: Decision, values: Values, right: int, wrong: int | None, misleads: bool, needed: int
) -> tuple[int | None, int | None, Evidence]:
    """Episodes to decide with chances of 1/2 and 90%, and the evidence for the kind."""
    problem, at = decision.problem, found.losses
    mdp = problem.mdp
    at_risk = max(at.steps_at_risk, found.success * steps_that_can_go_wrong(problem))
    evidence = Evidence(mdp.num_actions, mdp.horizon, needed, at.m, at_risk, misleads=misleads)
    if wrong is None:
        return 1, 1, evidence
    if misleads:
        return None, None, evidence
    try:
        half, most = decision.episodes(0.5), decision.episodes(kinds.DECIDED)
        pair_episodes = decision.episodes(kinds.DECIDED, (right, wrong))
        seen = decision.seen_chance(right, wrong)
    except NoLatticeError:
        seen, pair = approximate_evidence(problem, values, decision.pair, right, wrong, kinds.DECIDED)
        return None, None, replace(evidence, seen_chance=seen, pair_episodes=pair)
    return half, most, replace(evidence, seen_chance=seen, episodes=most, pair_episodes=pair_episodes)


def _actions(
    problem: Problem, at: Losses, place: int, decision: Decision, values: Values, right: int, wrong: int | None
) -> dict[str, Any]:
    names = action_names(problem.mdp.metadata, problem.mdp.num_actions)
    row = action_values(problem.timeline, values, decision.pair)
    chosen = [action for action in (right, wrong) if action is not None]
    found = [
        ActionReturns(
            action=action,
            name=names[action],
            chance=float(at.chances[place, action]),
            q=values.scale.reward(row[action].item()),
            returns=returns,
            probabilities=probabilities,
        )
        for action, (returns, probabilities) in zip(chosen, histograms(decision, chosen), strict=True)
    ]
    return {"right": found[0], "wrong": found[1] if len(found) > 1 else None}
