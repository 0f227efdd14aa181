"""Everything that the paper's theory says about one table, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, cast

from numpy.typing import ArrayLike

from efhorizon.bounds.analysis_methods import AnalysisMethods
from efhorizon.bounds.course import Course
from efhorizon.bounds.covering_length import CoveringLength
from efhorizon.bounds.effective_horizon import EffectiveHorizon, effective_horizon_with
from efhorizon.bounds.effective_planning_window import EffectivePlanningWindow
from efhorizon.bounds.exact_horizon import LikeliestFailure
from efhorizon.bounds.goal_horizon import GoalHorizon
from efhorizon.bounds.lower_bound import LowerBound, lower_bound
from efhorizon.bounds.measures import Measure
from efhorizon.bounds.notes import BoundNote, Notes
from efhorizon.bounds.qvi_solvability import QviSolvability, qvi_solvability
from efhorizon.bounds.registry import (
    Bound,
    BoundResult,
    PlainResult,
    measure_titles,
    registered_bounds,
    registered_measures,
)
from efhorizon.bounds.theorem_horizon import TheoremHorizon, theorem_horizon
from efhorizon.bounds.unfinished import AnytimeAnalysis, analyze_unfinished
from efhorizon.bounds.why import Why
from efhorizon.errors import InvalidTableError
from efhorizon.gorp.ties import TIES, Ties
from efhorizon.io.behaviour import version_name
from efhorizon.mdp import TabularMDP
from efhorizon.planning.occupancy import OccupancyMinima, optimal_return_probability
from efhorizon.planning.policies import ExplorationPolicy
from efhorizon.planning.problem import DEFAULT_MAX_K, Problem, problem
from efhorizon.planning.sweeps import Witness

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py

_MAX_JSON_BITS = 13_000  # Python refuses to write integers of more than 4300 digits


@dataclass(frozen=True, repr=False)
class Analysis(AnalysisMethods):
    """How hard a table is for RL, and why. Returns are rewards; times count from 0."""

    id: str | None
    num_states: int
    num_actions: int
    horizon: int
    gamma: float
    optimal_return: float
    exploration_return: float
    worst_return: float
    optimal_return_probability: float
    occupancy: OccupancyMinima
    solvability: QviSolvability
    theorem: tuple[TheoremHorizon, ...]  # Theorem 5.4 for k = 1, 2, ...
    bounds: dict[str, BoundResult]  # by name, everything that is registered
    titles: dict[str, str]
    lower_bound: LowerBound | None
    ties: Ties = "uniform"  # the rule with which the effective horizon holds
    by_ties: Mapping[Ties, EffectiveHorizon] = field(default_factory=dict)  # with each rule, where that was asked for
    measures: Mapping[str, Measure] = field(default_factory=dict)  # of hardness, by others
    has_policy: bool = False  # whether exploration is by a given policy instead of uniform
    metadata: Mapping[str, Any] = field(default_factory=dict)  # of the table: suite, game, shaping
    why: Why | None = None  # where GORP loses its chance, where that was asked for: see reasons/

    def __repr__(self) -> str:
        horizon = self.effective_horizon
        if horizon.value is None:
            return f"Analysis({self.id or 'unnamed'}: effective horizon unknown)"
        needed = f", {horizon.sample_complexity:,} timesteps" if writable(horizon.sample_complexity) else ""
        return f"Analysis({self.id or 'unnamed'}: H = {horizon.value:.2f} ({horizon.kind}){needed})"

    @property
    def effective_horizon(self) -> EffectiveHorizon:
        return cast(EffectiveHorizon, self.bounds["effective_horizon"])

    @property
    def effective_planning_window(self) -> EffectivePlanningWindow:
        return cast(EffectivePlanningWindow, self.bounds["epw"])

    @property
    def covering_length(self) -> CoveringLength:
        return cast(CoveringLength, self.bounds["covering_length"])

    @property
    def goal(self) -> GoalHorizon:
        return cast(GoalHorizon, self.bounds["goal"])

    @property
    def is_finished(self) -> bool:
        """Whether no time budget has cut short the search for exact figures; `effective_horizon.reason` says if so."""
        return all(found.is_finished for found in (self.effective_horizon, *self.by_ties.values()))

    @property
    def deciding(self) -> Witness | None:
        """The state that makes it hard: where a greedy policy is closest to a mistake, as in the paper's Figure 2d.

        If it can make none, where Theorem 5.4's bound is attained; if greedy actions are not optimal, where they fail.
        """
        k = self.effective_horizon.k or self.solvability.min_k or 1
        for bound in (*self.theorem[k - 1 : k], *self.theorem):
            if bound.deciding is not None:
                return bound.deciding
        return next((failure for failure in self.solvability.failures if failure is not None), None)

    @property
    def most_failures(self) -> LikeliestFailure | None:
        """Where GORP with the exact k and m takes its first action that is not optimal most often, if that is known."""
        chosen = [entry for entry in self.effective_horizon.by_k if entry.k == self.effective_horizon.k]
        witness = chosen[0].witness if chosen and chosen[0].method == "exact" else None
        return witness if isinstance(witness, LikeliestFailure) else None

    def as_json(self) -> dict[str, Any]:
        """The analysis in plain types; None where a figure is infinite or does not apply, `reasons` say why."""
        horizon = self.effective_horizon
        reasons = {name: bound.reason for name, bound in self.bounds.items() if bound.reason is not None}
        if self.solvability.reason is not None:
            reasons["min_k"] = self.solvability.reason
        by_ties = {rule: tie_figures(found) for rule, found in self.by_ties.items()}
        return (
            {
                "id": self.id,
                "complete": True,
                "num_states": self.num_states,
                "num_actions": self.num_actions,
                "horizon": self.horizon,
                "gamma": self.gamma,
                "optimal_return": self.optimal_return,
                "exploration_return": self.exploration_return,
                "worst_return": self.worst_return,
                "optimal_return_probability": self.optimal_return_probability,
                "exploration_length": self.occupancy.length,
                "min_k": self.solvability.min_k,
                "epw": self.effective_planning_window.window,
                "min_state_occupancy": self.occupancy.state,
                "min_sum_state_occupancy": self.occupancy.state_sum,
                "min_state_action_occupancy": self.occupancy.state_action,
                "min_sum_state_action_occupancy": self.occupancy.state_action_sum,
                "covering_length": self.covering_length.upper,
                "covering_length_lower": self.covering_length.lower,
                "effective_horizon": {
                    "value": horizon.value,
                    "k": horizon.k,
                    "m": writable(horizon.m),
                    "kind": horizon.kind,
                    "by_k": {
                        str(entry.k): {
                            "exact_m": entry.exact_m,
                            "least_possible_m": entry.least_possible_m,
                            "upper_m": writable(entry.upper_m),
                            "theorem_m": writable(entry.theorem_m),
                            "method": entry.method,
                            "exact_reason": entry.exact_reason,
                            "upper_reason": entry.upper_reason,
                            "theorem_reason": entry.theorem_reason,
                        }
                        for entry in horizon.by_k
                    },
                },
                "sample_complexity": {name: writable(bound.sample_complexity) for name, bound in self.bounds.items()},
                "goal_mdp": {
                    "is_goal_mdp": self.goal.is_goal_mdp,
                    "p": self.goal.p,
                    "effective_horizon": self.goal.effective_horizon,
                },
                "lower_bound": writable(self.lower_bound.sample_complexity) if self.lower_bound else None,
                "deciding_state": _witness_json(self.deciding),
                "theorem_states": {str(bound.k): _witness_json(bound.witness) for bound in self.theorem},
                "most_failures": None if self.most_failures is None else asdict(self.most_failures),
                "ties": self.ties,
                "reasons": reasons,
                "measures": {name: asdict(measure) for name, measure in self.measures.items()},
            }
            | ({"exact_by_ties": by_ties} if by_ties else {})
            | ({} if self.why is None else self.why.as_json())
        )


def tie_figures(horizon: EffectiveHorizon) -> dict[str, Any]:
    """The effective horizon with one rule for ties in plain types."""
    return {
        "value": horizon.value,
        "k": horizon.k,
        "m": writable(horizon.m),
        "kind": horizon.kind,
        "exact_m": {str(entry.k): entry.exact_m for entry in horizon.by_k if entry.exact_m is not None},
        "reason": horizon.why_not_exact,
    }


def analyze(
    mdp: TabularMDP,
    *,
    gamma: float = 1.0,
    exploration_policy: ArrayLike | ExplorationPolicy | None = None,
    max_k: int = DEFAULT_MAX_K,
    exact: bool = True,
    reward_bounds: tuple[float, float] | None = None,
    ties: Ties | Literal["all"] = "uniform",
    max_minutes: float | None = None,
    course: Course | None = None,
) -> Analysis | AnytimeAnalysis:
    """Every bound of the paper and of the registry, for the uniform exploration policy or a given one.

    `exact=False` leaves out the exact effective horizon, which takes the longest on large tables. `ties` is the rule
    with which GORP breaks ties in the exact effective horizon (`gorp/ties.py`); "all" is uniform ties, and beside them
    the others in `by_ties`. A table with unexplored states gives intervals instead of numbers; `reward_bounds` says
    between what their rewards lie.

    `max_minutes` is a time budget for the exact effective horizon. When it is used up, what is known is returned:
    bounds, with the reason in `effective_horizon.reason`, and `is_finished` is False. Time that is left goes to what
    takes too long without a budget. A `course` in its place also receives progress, and goes on from what earlier calls
    have found.
    """
    course = course_of(max_minutes, course)
    if mdp.unexplored is not None:
        if ties != "uniform":
            raise InvalidTableError("the table is unfinished; other rules for ties need a complete one")
        return analyze_unfinished(mdp, gamma=gamma, exploration=exploration_policy, reward_bounds=reward_bounds)
    given = prepared(mdp, course, gamma=gamma, exploration_policy=exploration_policy, max_k=max_k, exact=exact)
    return analysis_of(given, ties, course)


def course_of(max_minutes: float | None, course: Course | None) -> Course:
    """The course of an analysis with a time budget, or the one that is given."""
    if max_minutes is None:
        return course or Course()
    if course is not None:
        raise ValueError("give max_minutes or a course, not both")
    return Course(seconds=60 * max_minutes, further=True)


def prepared(
    mdp: TabularMDP,
    course: Course,
    *,
    gamma: float = 1.0,
    exploration_policy: ArrayLike | ExplorationPolicy | None = None,
    max_k: int = DEFAULT_MAX_K,
    exact: bool = True,
) -> Problem:
    """The problem that is analyzed, with what earlier calls have found."""
    given = problem(mdp, gamma=gamma, policy=exploration_policy, max_k=max_k, exact=exact)
    course.open_notes(given, version_name("analysis", BEHAVIOUR))
    return given


def analysis_of(given: Problem, ties: Ties | Literal["all"] = "uniform", course: Course | None = None) -> Analysis:
    """The analysis of a problem."""
    course = course or Course()
    try:
        return _analysis(given, ties, course)
    finally:
        course.notes.write()  # an interrupted one too


def _analysis(given: Problem, ties: Ties | Literal["all"], course: Course) -> Analysis:
    mdp, rules = given.mdp, TIES if ties == "all" else (ties,)
    _plan(given, course)
    listed = registered_bounds()
    by_ties: dict[Ties, EffectiveHorizon] = {}
    bounds: dict[str, BoundResult] = {}
    for bound in listed:
        if bound.name == "effective_horizon":
            by_ties = _horizons(given, rules, course)
            bounds[bound.name] = by_ties[rules[0]]
        else:
            course.phase(f"bound: {bound.title}")
            bounds[bound.name] = _noted_bound(bound, given, course.notes)
    value = by_ties[rules[0]].value
    measures = measures_of(given, course)
    return Analysis(
        id=mdp.metadata.get("id"),
        num_states=mdp.num_states,
        num_actions=mdp.num_actions,
        horizon=mdp.horizon,
        gamma=given.gamma,
        optimal_return=given.optimal.values.reward(),
        exploration_return=given.exploration.exploration_return,
        worst_return=given.worst_return,
        optimal_return_probability=optimal_return_probability(given.timeline, given.optimal, given.policy),
        occupancy=given.occupancy_minima,
        solvability=qvi_solvability(given),
        theorem=tuple(theorem_horizon(given, k) for k in range(1, given.max_k + 1)),
        bounds=bounds,
        titles={bound.name: bound.title for bound in listed} | measure_titles(),
        lower_bound=None if value is None else lower_bound(mdp.horizon, mdp.num_actions, value),
        ties=rules[0],
        by_ties=by_ties if ties == "all" else {},
        measures=measures,
        has_policy=not given.policy.is_uniform,
        metadata=mdp.metadata,
    )


def measures_of(given: Problem, course: Course | None = None) -> dict[str, Measure]:
    """Every registered measure of hardness. They are about the table alone: with another exploration policy, none."""
    found = {}
    for measure in registered_measures() if given.policy.is_uniform else ():
        if course is not None:
            course.phase(f"measure: {measure.title}")
        found[measure.name] = measure(given)
    return found


def _plan(given: Problem, course: Course) -> None:
    """What all bounds need, with progress: computed now, kept by the problem."""
    course.phase("planning")
    _ = given.optimal
    course.phase("occupancy")
    _ = given.occupancy_minima
    course.phase("solvability")
    _ = given.exploration


def _horizons(given: Problem, rules: tuple[Ties, ...], course: Course) -> dict[Ties, EffectiveHorizon]:
    """The effective horizon with each rule for ties, each with its share of the time."""
    found = {}
    for number, rule in enumerate(rules):
        with course.share(1 / (len(rules) - number)):
            found[rule] = effective_horizon_with(given, rule, course=course)
    return found


def _noted_bound(bound: Bound, given: Problem, notes: Notes) -> BoundResult:
    """A bound. The result of somebody's own, which may take long, is noted if it is a plain one."""
    version = bound.version
    if bound.is_built_in or version is None:
        return bound(given)
    key = f"{bound.name}, {version}, max_k = {given.max_k}, exact = {given.exact}"
    if key in notes.bounds:
        return PlainResult(notes.bounds[key].sample_complexity, notes.bounds[key].reason)
    result = bound(given)
    if isinstance(result, PlainResult) and not result.is_mistake:
        notes.bounds[key] = BoundNote(result.sample_complexity, result.reason)
        notes.changed()
    return result


def writable(number: int | None) -> int | None:
    """An integer that JSON can carry."""
    return None if number is None or number.bit_length() > _MAX_JSON_BITS else number


def _witness_json(witness: Witness | None) -> dict[str, Any] | None:
    if witness is None:
        return None
    return {
        "time": witness.time,
        "state": witness.state,
        "k": witness.k,
        "q_values": list(witness.q_values),
        "optimal_q_values": list(witness.optimal_q_values),
        "optimal_value": witness.optimal_value,
        "gap": witness.gap,
        "margin": witness.margin,
    }
