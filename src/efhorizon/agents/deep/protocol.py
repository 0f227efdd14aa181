"""When has an agent solved an MDP, and after how many timesteps? The paper's protocol, shared by all backends.

Every `evaluation_interval` timesteps one greedy episode is played from the start; a run ends when it gets the optimal
return. PPO's run ends as well when more than half of its last `window` training episodes were optimal (the authors
stop when the median of the last 100 is). Returns are compared in reward units: integers, so equality is exact.

The sample complexity of a setting is the median over seeds, that of an algorithm the least over its settings; a run
that is not optimal within `max_steps` counts as infinite.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PAPER_STEPS = 5_000_000  # timesteps that the paper gave a run of PPO or DQN (section 6)


@dataclass(frozen=True)
class Protocol:
    """The rules of a run."""

    max_steps: int = PAPER_STEPS  # timesteps of all environments together
    evaluation_interval: int = 10_000  # timesteps between greedy episodes
    window: int | None = 100  # training episodes of the second rule; None: only evaluations count


@dataclass(frozen=True)
class RunResult:
    """The result of one run."""

    seed: int
    sample_complexity: int | None  # timesteps until optimal; None: not within the steps run
    steps: int  # timesteps run
    best_return: float | None  # of the evaluations and the training episodes, in the game's points
    final_return: float | None  # of the last evaluation
    solved_by: str | None  # "evaluation" or "training episodes"
    curve: Sequence[tuple[float | None, ...]] = ()  # see `study.records.Row`
    wall_seconds: float = 0.0


class RunRecord:
    """Follows one run: takes episodes and evaluations in the order of their timesteps, and says when to stop."""

    def __init__(self, seed: int, protocol: Protocol, *, optimal_units: int, unit: float) -> None:
        self.seed = seed
        self.wall_seconds = 0.0
        self._protocol = protocol
        self._optimal, self._unit = optimal_units, unit
        self._solved: tuple[int, str] | None = None
        self._steps = 0
        self._best: int | None = None
        self._last_flags = np.zeros(0, np.int64)  # of the last episodes, 1 = optimal
        self._returns_since: list[float] = []  # sums and counts of training returns since the last evaluation
        self._count_since = 0
        self._curve: list[tuple[int, float, float | None]] = []

    @property
    def is_finished(self) -> bool:
        return self._solved is not None or self._steps >= self._protocol.max_steps

    @property
    def steps(self) -> int:
        return self._steps

    @property
    def last_evaluation(self) -> float | None:
        return self._curve[-1][1] if self._curve else None

    def evaluated(self, step: int, units: int) -> None:
        """One greedy episode, played after `step` timesteps."""
        if self._solved is not None or step > self._protocol.max_steps:
            return  # the last step of a run may have ended an episode: its evaluation still counts
        mean = sum(self._returns_since) / self._count_since if self._count_since else None
        self._curve.append((step, units * self._unit, mean))
        self._returns_since, self._count_since = [], 0
        self._note(units)
        if units == self._optimal:
            self._solved = (step, "evaluation")
        self.passed(step)

    def episodes(self, steps: NDArray[np.int64], units: NDArray[np.int64]) -> None:
        """Training episodes that ended at these timesteps, in order."""
        kept = steps <= self._protocol.max_steps
        steps, units = steps[kept], units[kept]
        if self.is_finished or not len(steps):
            return
        if self._protocol.window is not None:
            solved_at = self._window_rule(steps, units, self._protocol.window)
            if solved_at is not None:
                self._solved = (int(steps[solved_at]), "training episodes")
                steps, units = steps[: solved_at + 1], units[: solved_at + 1]
        self._note(int(units.max()))
        self._returns_since.append(float(units.sum()) * self._unit)
        self._count_since += len(units)
        self.passed(int(steps[-1]))

    def passed(self, step: int) -> None:
        """The run has got this far."""
        self._steps = self._solved[0] if self._solved else max(self._steps, min(step, self._protocol.max_steps))

    def result(self) -> RunResult:
        return RunResult(
            seed=self.seed,
            sample_complexity=self._solved[0] if self._solved else None,
            steps=self._steps,
            best_return=None if self._best is None else self._best * self._unit,
            final_return=self.last_evaluation,
            solved_by=self._solved[1] if self._solved else None,
            curve=list(self._curve),
            wall_seconds=self.wall_seconds,
        )

    def _note(self, units: int) -> None:
        self._best = units if self._best is None else max(self._best, units)

    def _window_rule(self, steps: NDArray[np.int64], units: NDArray[np.int64], window: int) -> int | None:
        """The first episode after which more than half of a full window was optimal."""
        flags = np.concatenate([self._last_flags, (units == self._optimal).astype(np.int64)])
        self._last_flags = flags[-(window - 1) :]
        if len(flags) < window:
            return None
        sums = np.convolve(flags, np.ones(window, np.int64), "valid")  # of the windows that end at each episode
        ends = np.flatnonzero(2 * sums > window) + window - 1 - (len(flags) - len(steps))
        return int(ends[0]) if len(ends) else None


def setting_sample_complexity(complexities: Iterable[int | None]) -> float:
    """The median over seeds; unsolved runs are infinite."""
    return float(np.median([np.inf if value is None else value for value in complexities]))


def algorithm_sample_complexity(settings: Sequence[Iterable[int | None]]) -> float:
    """The least over settings."""
    return min(setting_sample_complexity(complexities) for complexities in settings)


def evaluation_in(first: int, last: int, interval: int) -> int | None:
    """The first evaluation after `first` and up to `last` timesteps."""
    step = (first // interval + 1) * interval
    return step if step <= last else None
