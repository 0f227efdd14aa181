"""DQN on a table, many seeds side by side.

    L = E[huber(Q(s, a) - (r + gamma (1 - end) max_a' Q_target(s', a')))]

as Stable-Baselines3 computes it (docs/training.md lists what differs). One cycle is: `train_every` steps of one
environment with an epsilon-greedy policy, then one gradient step on a minibatch from the replay buffer.

A transition is a few bits here: node, action and whether the horizon ended the episode are packed into one integer of
the buffer, and the table knows the rest. The target network changes every `target_interval` steps only, so the largest
target value of every observation is kept with it wherever the table shows few enough of them.

Two learners do this: `dqn_flat` with an MLP, compiled by Numba, and `dqn_images` with a CNN, in torch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.deep import protocol as rules
from efhorizon.agents.deep.observations import FlatColumns, ObservedTable, UntrainableTableError
from efhorizon.agents.deep.protocol import PAPER_STEPS, RunRecord, RunResult
from efhorizon.planning.policies import ExplorationPolicy

_MAX_CODE = 2**31 - 1


@dataclass(frozen=True)
class DQNSettings:
    """Hyperparameters of Appendix F; the defaults are the paper's, the rest Stable-Baselines3's."""

    gamma: float  # discount: 0.99 on MiniGrid, 1 elsewhere
    exploration_fraction: float = 0.1  # of `schedule_steps`, over which epsilon falls: 0.1 or 1
    schedule_steps: int = PAPER_STEPS  # length of the whole schedule, however long a run is
    final_epsilon: float = 0.01
    rate: float = 1e-4  # Adam's learning rate, constant; the paper's table also says 1e-3, the authors ran 1e-4
    minibatch: int = 32
    buffer_size: int = 100_000
    target_interval: int = 1_000  # timesteps between copies to the target network
    train_every: int = 4  # timesteps between gradient steps; learning starts with the first four
    max_gradient_norm: float = 10.0
    adam_epsilon: float = 1e-8  # torch's default

    def keeps_values(self, num_observations: int) -> bool:
        """Whether keeping all target values is cheaper than computing those of the minibatches until the next copy."""
        return num_observations <= self.minibatch * self.target_interval // self.train_every


class Learners(Protocol):
    """What several seeds carry along, and how they go on."""

    def interval(self, step: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """From one evaluation to the next, after `step` timesteps.

        Whether each timestep ended an episode and the return until then [B, interval], and the greedy episodes' returns
        [B]. An evaluation comes before the gradient step that follows it, as in Stable-Baselines3.
        """

    def keep(self, places: Sequence[int]) -> Sequence[int]:
        """Go on with these only, or with more of them where that is cheaper: those that are left."""


def train(
    table: ObservedTable,
    settings: DQNSettings,
    protocol: rules.Protocol,
    seeds: Sequence[int],
    *,
    initial: NDArray[np.float32] | None = None,
    exploration_policy: ExplorationPolicy | None = None,
    on_progress: Callable[[list[RunRecord]], None] | None = None,
) -> list[RunResult]:
    """Train one agent a seed until each is finished.

    `initial` are parameters to start from instead of random ones. The random actions of epsilon-greedy are those of
    `exploration_policy`; every action is equally likely where there is none.
    """
    interval = protocol.evaluation_interval
    for name, length in (("buffer_size", settings.buffer_size), ("target_interval", settings.target_interval)):
        if length % settings.train_every:
            raise ValueError(f"{name} must be a multiple of train_every, got {length}")
    if interval % settings.train_every:
        raise ValueError(f"evaluation_interval must be a multiple of train_every, got {interval}")
    if 2 * table.transitions.size > _MAX_CODE:
        raise UntrainableTableError(f"{table.id}: {table.transitions.size} transitions do not fit the replay buffer")
    runs = [RunRecord(seed, protocol, optimal_units=table.optimal_units, unit=table.unit) for seed in seeds]
    learners = _learners(table)(table, settings, interval, seeds, initial, exploration_policy)
    placed, step, began = runs, 0, time.monotonic()  # one run a place of the learners
    while any(not run.is_finished for run in placed):
        is_done, units, greedy = learners.interval(step)
        for place, run in enumerate(placed):
            if run.is_finished:
                continue
            ended = np.flatnonzero(is_done[place])
            run.episodes(step + 1 + ended, units[place, ended].astype(np.int64))
            run.evaluated(step + interval, int(greedy[place]))
            run.passed(step + interval)
            run.wall_seconds = time.monotonic() - began
        step += interval
        going_on = [place for place, run in enumerate(placed) if not run.is_finished]
        placed = [placed[place] for place in learners.keep(going_on)]
        if on_progress is not None:
            on_progress(runs)
    return [run.result() for run in runs]


def _learners(table: ObservedTable) -> Callable[..., Learners]:
    if isinstance(table.seen, FlatColumns):
        from efhorizon.agents.deep.dqn_flat import FlatLearners

        return FlatLearners
    from efhorizon.agents.deep.dqn_images import ImageLearners

    return ImageLearners
