"""The order of all tasks: random play, then for each k greedy play and runs of GORP, within a budget of steps.

What is done next depends on the results so far and on nothing else: not on how many processes there are, how fast they
are, or whether the survey was killed in between. Tasks are chosen in batches of fixed size, and each batch is complete
before the next is chosen. A budget of minutes ends between two batches; then the clock decides what was done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from efhorizon.diagnose.doses import BATCH, Run, next_doses
from efhorizon.diagnose.episodes import (
    MOST_SEQUENCES,
    GorpRun,
    GreedyPass,
    PassTask,
    RandomEpisodes,
    RandomTask,
    RunTask,
    Task,
)
from efhorizon.diagnose.log import Log
from efhorizon.diagnose.stage import Stage
from efhorizon.engines.engine import Engine

RANDOM_SHARE = 0.05  # of the budget
K_SHARES = (0.75, 0.15, 0.1)  # of what is left, for k = 1, 2, 3
PASS_SHARE = 0.07  # of a k's share, for each pass
PASSES = 2
_MOST_RANDOM, _FIRST_RANDOM = 4000, 4  # episodes: in all, and in each of the first tasks
_FEWEST_UNITS = 4.0  # a k is tried if its share pays for so many runs with m = 1
_MOST_CUT_OFF = 2  # runs that took more than all that was left
_MOST_BEST_DOSES = 0.5  # where there is chance: the half of the runs with most episodes says what play can reach


@dataclass(frozen=True)
class Settings:
    """All that decides what is found, besides the environment."""

    horizon: int
    seed: int = 0
    max_k: int = 3
    max_steps: int | None = None
    max_minutes: float | None = None
    best_return: float | None = None


@dataclass
class Findings:
    """Everything that was found so far."""

    random: list[RandomEpisodes] = field(default_factory=list)
    passes: dict[int, list[GreedyPass]] = field(default_factory=dict)
    runs: dict[int, list[GorpRun]] = field(default_factory=dict)
    skipped: dict[int, str] = field(default_factory=dict)  # why a k was not tried
    budget: float = 0.0  # steps
    stopped_by: str = ""  # what ended it: "steps", "minutes"; nothing if all is settled
    seconds: float = 0.0

    @property
    def steps_played(self) -> int:
        total = sum(each.steps for each in self.random)
        total += sum(each.steps for several in self.passes.values() for each in several)
        return total + sum(each.steps for several in self.runs.values() for each in several)

    @property
    def random_returns(self) -> list[float]:
        return [value for each in self.random for value in each.returns]

    @property
    def mean_length(self) -> float:
        lengths = [value for each in self.random for value in each.lengths]
        return sum(lengths) / max(1, len(lengths))

    def best_seen(self) -> float:
        """The largest return of any episode."""
        everything: list[GreedyPass | GorpRun] = [each for several in self.passes.values() for each in several]
        everything += [each for several in self.runs.values() for each in several]
        return max([*self.random_returns, *(each.best_seen for each in everything)])

    def complete_runs(self, k: int) -> list[Run]:
        return [Run(each.m, each.total, each.steps) for each in self.runs.get(k, []) if each.complete]

    def target(self, has_chance: bool, given: float | None) -> float:
        """The return that counts as the best: the user's; else the best one found.

        Where there is chance, single episodes can be lucky. Then it is the best mean return of greedy play: of the
        passes, or of the half of the runs of one k with most episodes.
        """
        if given is not None:
            return given
        if not has_chance:
            return self.best_seen()
        means = [_mean(self.random_returns)]
        for k in {*self.runs, *self.passes}:
            runs = sorted(self.complete_runs(k), key=lambda run: -run.m)
            most = runs[: max(BATCH, round(len(runs) * _MOST_BEST_DOSES))]
            if len(most) >= BATCH:
                means.append(_mean([run.total for run in most]))
            passes = [each.total for each in self.passes.get(k, []) if each.complete]
            if len(passes) >= PASSES:
                means.append(_mean(passes))
        return max(means)


class Survey:
    """One diagnosis under way."""

    def __init__(
        self,
        settings: Settings,
        num_actions: int,
        has_chance: bool,
        engine: Engine[Stage],
        log: Log,
        watch: Callable[[Findings, str], None],
    ) -> None:
        self.settings, self.num_actions, self.has_chance = settings, num_actions, has_chance
        self.findings = Findings()
        self._engine, self._log, self._watch = engine, log, watch
        self._began = time.monotonic()

    def run(self) -> Findings:
        """Do everything that the budget allows."""
        found = self.findings
        self._random_play()
        shares = _shares(self.settings.max_k, (found.budget - found.steps_played))
        for k, share in shares.items():
            if self._is_over():
                break
            self._examine(k, share)
        for k in shares:  # what one k did not need is for the others
            if self._is_over() or k in found.skipped:
                continue
            spent = sum(run.steps for run in found.runs.get(k, []))
            self._runs(k, spent + found.budget - found.steps_played)
        found.seconds += time.monotonic() - self._began
        if not found.stopped_by and found.steps_played > 0.8 * found.budget:
            found.stopped_by = "steps"
        return found

    def _random_play(self) -> None:
        found, settings = self.findings, self.settings
        first = [RandomTask(settings.seed, i, _FIRST_RANDOM, settings.horizon) for i in range(BATCH)]
        began = time.monotonic()
        for result in self._done(first, RandomEpisodes, "random play"):
            found.random.append(result)
        found.budget = float(settings.max_steps or self._steps_for_minutes(time.monotonic() - began))
        per_episode = found.steps_played / (BATCH * _FIRST_RANDOM)
        wanted = min(_MOST_RANDOM, (RANDOM_SHARE * found.budget - found.steps_played) / max(1.0, per_episode))
        size = int(wanted / BATCH)
        if size >= 1:
            more = [RandomTask(settings.seed, BATCH + i, size, settings.horizon) for i in range(BATCH)]
            for result in self._done(more, RandomEpisodes, "random play"):
                found.random.append(result)

    def _examine(self, k: int, share: float) -> None:
        """Everything about one k."""
        found, settings = self.findings, self.settings
        unit = self._steps_of_one(k)
        if self.num_actions**k > MOST_SEQUENCES:
            found.skipped[k] = f"{self.num_actions}^{k} action sequences are too many"
            return
        if k > 1 and unit * _FEWEST_UNITS > share:
            found.skipped[k] = f"one run with m = 1 takes about {unit:,.0f} steps; it needs a larger budget"
            return
        returns = found.random_returns
        known, most = (min(returns), max(returns)), int(PASS_SHARE * share)
        tasks = [PassTask(settings.seed, i, k, settings.horizon, most, found.mean_length, known) for i in range(PASSES)]
        found.passes[k] = list(self._done(tasks, GreedyPass, f"greedy play on Q^{k}"))
        self._runs(k, share * (1 - PASSES * PASS_SHARE))

    def _runs(self, k: int, budget: float) -> None:
        """Runs of GORP(k, m) with m as it is best chosen."""
        found, settings = self.findings, self.settings
        runs = found.runs.setdefault(k, [])
        while not self._is_over() and sum(not run.complete for run in runs) < _MOST_CUT_OFF:
            spent = sum(run.steps for run in runs)
            doses = next_doses(
                found.complete_runs(k),
                found.target(self.has_chance, settings.best_return),
                budget,
                self._steps_of_one(k),
            )
            if not doses:
                return
            most = int(max(0.0, budget - spent))  # failures take longest, so a tighter limit would leave them out
            tasks = [
                RunTask(settings.seed, len(runs) + place, k, m, settings.horizon, most) for place, m in enumerate(doses)
            ]
            runs += self._done(tasks, GorpRun, f"GORP with k = {k}, m = {min(doses)} to {max(doses)}")

    def _steps_of_one(self, k: int) -> float:
        """What a run with m = 1 takes, as far as known: from shorter sequences, or from the length of random play."""
        found = self.findings
        for shorter in range(k, 0, -1):
            runs = found.runs.get(shorter, [])
            if runs:
                unit = sum(run.steps for run in runs) / sum(run.m for run in runs)
                return unit * float(self.num_actions ** (k - shorter))
        return float(self.num_actions**k) * max(1.0, found.mean_length) ** 2 / 2

    def _done(self, tasks: Sequence[Any], kind: type[Any], doing: str) -> Iterator[Any]:
        """Results of tasks in order: from the log, or done now."""
        known = [self._log.found(task.key, kind) for task in tasks]
        todo = [task for task, result in zip(tasks, known, strict=True) if not _is_usable(task, result)]
        made: list[Any] = []
        waiting = iter(todo)
        left, pending = len(todo), 0
        while len(made) < left:
            while pending + len(made) < left and self._engine.has_room:
                self._engine.submit(_Timed(next(waiting)))
                pending += 1
            result = self._engine.next_result()
            pending -= 1
            self._log.add(todo[len(made)].key, result)
            made.append(result)
            self._watch(self.findings, doing)
        fresh = iter(made)
        for task, result in zip(tasks, known, strict=True):
            yield result if _is_usable(task, result) else next(fresh)

    def _steps_for_minutes(self, seconds: float) -> float:
        """A budget of steps for one of minutes; kept in the log, so that it stays the same."""
        kept = self._log.found("budget", float)
        if kept is None:
            rate = self.findings.steps_played / max(1e-3, seconds)
            kept = max(1.0, rate * 60 * (self.settings.max_minutes or 1.0))
            self._log.add("budget", kept)
        return kept

    def _is_over(self) -> bool:
        found, settings = self.findings, self.settings
        if settings.max_minutes is not None and time.monotonic() - self._began > 60 * settings.max_minutes:
            found.stopped_by = "minutes"
        elif found.steps_played >= found.budget:
            found.stopped_by = "steps"
        return bool(found.stopped_by)


@dataclass(frozen=True)
class _Timed:
    """A task that notes how long it took."""

    task: Task

    def __call__(self, stage: Stage) -> Any:
        began = time.perf_counter()
        result = self.task(stage)
        return msgspec.structs.replace(result, seconds=round(time.perf_counter() - began, 4))


def _is_usable(task: Task, result: Any) -> bool:
    """Whether a result of the log is what the task would find: a run that was cut off may have had other limits."""
    if result is None:
        return False
    return not isinstance(task, RunTask) or result.complete or result.steps > task.most_steps


def _shares(max_k: int, budget: float) -> dict[int, float]:
    shares = K_SHARES[:max_k]
    return {k: budget * share / sum(shares) for k, share in enumerate(shares, 1)}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))
