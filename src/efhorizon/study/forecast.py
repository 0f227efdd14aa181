"""How much time, memory and disk a study will take: ranges, since much is known only when it is done.

What is on disk counts as done. A search's number of states, how soon agents learn and how much work the exact effective
horizon needs cannot be known in advance; if a range has no upper end, the forecast says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from efhorizon.build.target import Target
from efhorizon.build.verify import MOST_RAW_PAIRS
from efhorizon.study import rates as constants
from efhorizon.study import sweep
from efhorizon.study.analyses import is_whole
from efhorizon.study.plan import Case, Plan
from efhorizon.study.rates import Rates, measured_rates, network_of, num_actions_of
from efhorizon.study.records import file_name
from efhorizon.study.results import Results
from efhorizon.study.sizes import Size, known_size, search_state
from efhorizon.study.tasks import RunPlan
from efhorizon.suites import registry


@dataclass(frozen=True)
class Span:
    """From `low` to `high`; None: unknown."""

    low: float = 0.0
    high: float | None = 0.0

    def __add__(self, other: Span) -> Span:
        unknown = self.high is None or other.high is None
        return Span(self.low + other.low, None if unknown else (self.high or 0.0) + (other.high or 0.0))

    def times(self, factor: float) -> Span:
        return Span(self.low * factor, None if self.high is None else self.high * factor)

    def as_json(self) -> list[float | None]:
        return [self.low, self.high]


@dataclass(frozen=True)
class StageForecast:
    """What one stage will take."""

    stage: str
    num_done: int  # MDPs, or runs where something is trained
    num_left: int
    seconds: Span
    memory: Span  # bytes at the peak
    disk: Span  # bytes written


@dataclass(frozen=True)
class Forecast:
    stages: tuple[StageForecast, ...]
    sizes: dict[str, Size]
    rates: Rates

    @property
    def seconds(self) -> Span:
        return sum((stage.seconds for stage in self.stages), Span())

    @property
    def disk(self) -> Span:
        return sum((stage.disk for stage in self.stages), Span())

    @property
    def memory(self) -> Span:
        return largest(stage.memory for stage in self.stages)

    @property
    def is_done(self) -> bool:
        return all(stage.num_left == 0 for stage in self.stages if stage.stage != "report")

    def as_json(self) -> dict[str, object]:
        return {
            "stages": [
                {
                    "stage": stage.stage,
                    "done": stage.num_done,
                    "left": stage.num_left,
                    "seconds": stage.seconds.as_json(),
                    "memory_bytes": stage.memory.as_json(),
                    "disk_bytes": stage.disk.as_json(),
                }
                for stage in self.stages
            ],
            "total": {
                "seconds": self.seconds.as_json(),
                "memory_bytes": self.memory.as_json(),
                "disk_bytes": self.disk.as_json(),
            },
            "environments": [
                {"name": name, "states": [size.low, size.high], "known_from": size.source}
                for name, size in self.sizes.items()
            ],
            "measured_rates": list(self.rates.measured),
        }


def forecast(plan: Plan, leave_out: frozenset[str] = frozenset()) -> Forecast:
    """What the rest of a study will take; `leave_out` names those that have failed or were left out already."""
    subjects = [subject for subject in plan.subjects() if subject.id not in leave_out]
    targets = [subject for subject in subjects if isinstance(subject, Target)]
    sizes = {subject.id: _bounded(known_size(subject, plan.tables), plan) for subject in subjects}
    results = Results(plan.out)
    rates = measured_rates(results, subjects, plan.num_workers)
    rows = results.num_rows()
    cases = [case for case in plan.cases() if not {case.id, case.target.id} & leave_out]
    runs = [_runs_stage(plan, algorithm, cases, rates, rows) for algorithm in _algorithms(plan)]
    stages = (_build_stage(plan, targets, sizes, rates), _analysis_stage(results, cases, sizes), *runs)
    return Forecast((*stages, _report_stage(len(cases))), sizes, rates)


def largest(spans: Iterable[Span]) -> Span:
    """The largest of several peaks."""
    found = list(spans)
    highs = [span.high for span in found]
    known = [high for high in highs if high is not None]
    high = None if len(known) < len(highs) else max(known, default=0.0)
    return Span(max((span.low for span in found), default=0.0), high)


def _bounded(size: Size, plan: Plan) -> Size:
    """An unknown size is at most what the budget allows; a larger environment is left out."""
    limit = plan.budget.max_states
    if size.high is None and limit is not None:
        return Size(min(size.low, limit), limit, size.source)
    return size


def _algorithms(plan: Plan) -> list[sweep.Algorithm]:
    listed = (*plan.runs, *(plan.image_runs or ()))
    return [algorithm for algorithm in ("gorp", "ppo", "dqn") if any(runs.algorithm == algorithm for runs in listed)]


def _states(size: Size, factor: float) -> Span:
    """An amount that grows with the number of states."""
    return Span(size.low * factor, None if size.high is None else size.high * factor)


def _build_stage(plan: Plan, targets: Sequence[Target], sizes: dict[str, Size], rates: Rates) -> StageForecast:
    left = [target for target in targets if not (plan.tables / target.id).exists()]
    longest = {target.search_name: target for target in targets}  # targets are sorted by horizon
    seconds, disk = Span(), Span()
    for target in left:
        costs = registry.suite(target.metadata["suite"]).costs
        seconds += Span(costs.build_seconds, 2 * costs.build_seconds)
        seconds += _verify_seconds(plan, target, sizes[target.id], rates)
        disk += Span(constants.TABLE_DISK, 3 * constants.TABLE_DISK)
        if longest[target.search_name] is target:  # one search serves all horizons
            low, high = costs.search_bytes_a_state
            disk += Span(_states(sizes[target.id], low).low, _states(sizes[target.id], high).high)
            seconds += _search_seconds(plan, target, sizes[target.id], rates)
    base = (1 + plan.num_workers) * constants.PROCESS_BYTES
    peaks = [
        _states(
            sizes[target.id], constants.SEARCH_BYTES_A_STATE + constants.MERGE_BYTES_A_PAIR * num_actions_of(target)
        )
        for target in left
    ]
    memory = largest(peaks) + Span(base, base) if left else Span()
    return StageForecast("build and verify", len(targets) - len(left), len(left), seconds, memory, disk)


def _search_seconds(plan: Plan, target: Target, size: Size, rates: Rates) -> Span:
    """What is left to emulate, within the budget."""
    search = search_state(target, plan.tables)
    expanded = 0 if search is None else search.num_expanded
    rate = rates.pairs[str(target.metadata["suite"])] * plan.num_workers / num_actions_of(target)
    low = max(0.0, size.low - expanded) / rate
    high = None if size.high is None else 2 * max(0.0, size.high - expanded) / rate
    if plan.budget.max_minutes is not None:
        limit = 60 * plan.budget.max_minutes
        low, high = min(low, limit), limit if high is None else min(high, limit)
    return Span(low, high)


def _verify_seconds(plan: Plan, target: Target, size: Size, rates: Rates) -> Span:
    """Every pair once more, and up to twice as many steps from reset; of the largest tables, a sample."""
    rate = rates.pairs[str(target.metadata["suite"])] * plan.num_workers / num_actions_of(target)
    most = MOST_RAW_PAIRS / num_actions_of(target)
    found = math.inf if plan.budget.max_minutes is None else 60 * plan.budget.max_minutes * rate  # within the budget
    low = min(size.low, found) / rate if size.low <= most else 0.0
    high = found if size.high is None else min(size.high, found)
    return Span(low, None if math.isinf(high) else 2 * 3 * min(high, most) / rate)


def _analysis_stage(results: Results, cases: Sequence[Case], sizes: dict[str, Size]) -> StageForecast:
    left = [case for case in cases if not is_whole(results, case.id)]
    seconds, peaks = Span(), [Span()]
    for target in (case.target for case in left):
        num_actions = num_actions_of(target)
        # A state that holds the time is met at one time; in a gridworld, states are met at nearly all times.
        times = 1 if registry.suite(target.metadata.get("suite")).costs.has_clock else target.horizon
        pairs = _states(sizes[target.id], times)
        (low, high), (low_pair, high_pair) = constants.ANALYSIS_SECONDS, constants.ANALYSIS_SECONDS_A_PAIR
        seconds += Span(low, high)
        seconds += Span(pairs.times(low_pair * num_actions).low, pairs.times(high_pair * num_actions).high)
        bytes_a_pair = constants.ANALYSIS_BYTES_A_STATE + constants.ANALYSIS_BYTES_A_PAIR * num_actions
        peaks.append(pairs.times(bytes_a_pair))
    base = Span(constants.ANALYSIS_BYTES, constants.ANALYSIS_BYTES) if left else Span()
    low_disk, high_disk = constants.MDP_DISK
    disk = Span(low_disk, high_disk).times(len(left))
    return StageForecast("analyze", len(cases) - len(left), len(left), seconds, largest(peaks) + base, disk)


def _runs_stage(
    plan: Plan, algorithm: sweep.Algorithm, cases: Sequence[Case], rates: Rates, rows: Mapping[str, int]
) -> StageForecast:
    """One algorithm on all MDPs: at least until the first evaluation, at most all timesteps of all runs."""
    seconds, disk, num_done, num_left, num_jobs = Span(), Span(), 0, 0, 0
    networks = set()
    for case in cases:
        network = network_of(case.target.metadata)
        for runs in plan.runs_on(case):
            if runs.algorithm != algorithm:
                continue
            for setting in runs.setting_names():
                done = min(runs.num_runs, rows.get(file_name(case.id, algorithm, "table", setting), 0))
                num_done, num_left = num_done + done, num_left + runs.num_runs - done
                if done < runs.num_runs:
                    num_jobs += 1
                    networks.add(network)
                    seconds += _run_seconds(runs, runs.num_runs - done, rates, network)
                    points = runs.max_steps / sweep.EVALUATION_INTERVAL if algorithm != "gorp" else 100
                    row = Span(constants.ROW_DISK, constants.ROW_DISK + constants.CURVE_POINT_DISK * points)
                    disk += row.times(runs.num_runs - done)
    at_once = max(1, min(plan.num_workers, num_jobs))
    each = max((constants.TRAINING_BYTES[network] for network in networks), default=0)
    if algorithm == "gorp" and num_jobs:
        each = constants.ANALYSIS_BYTES
    memory = Span(each, each * at_once)
    return StageForecast(algorithm, num_done, num_left, seconds.times(1 / at_once), memory, disk)


def _run_seconds(runs: RunPlan, num_runs: int, rates: Rates, network: str) -> Span:
    compilation = constants.COMPILATION_SECONDS[runs.algorithm]
    if runs.algorithm == "gorp":
        low, high = constants.GORP_SECONDS
        return Span(low, compilation + high)
    rate = rates.steps(runs.algorithm, network)
    first = min(runs.max_steps, sweep.EVALUATION_INTERVAL)
    return Span(compilation + num_runs * first / rate, compilation + num_runs * runs.max_steps / rate)


def _report_stage(num_mdps: int) -> StageForecast:
    seconds = Span(*constants.REPORT_SECONDS) + Span(*constants.REPORT_SECONDS_AN_MDP).times(num_mdps)
    low, high = constants.MDP_DISK
    memory = Span(constants.ANALYSIS_BYTES, 2 * constants.ANALYSIS_BYTES)
    return StageForecast("report", 0, 1, seconds, memory, Span(low, high).times(num_mdps))
