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

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.deep.dqn_flat import FlatDQN
from efhorizon.agents.deep.learners import DQNLearners
from efhorizon.agents.deep.observations import FlatColumns, ObservedTable, UntrainableTableError
from efhorizon.agents.deep.protocol import Protocol, RunRecord, RunResult
from efhorizon.agents.deep.settings import DQNSettings
from efhorizon.planning.policies import ExplorationPolicy

_MAX_CODE = 2**31 - 1


def train(
    table: ObservedTable,
    settings: DQNSettings,
    protocol: Protocol,
    seeds: Sequence[int],
    *,
    initial: NDArray[np.float32] | None = None,
    exploration_policy: ExplorationPolicy | None = None,
    on_progress: Callable[[list[RunRecord]], None] | None = None,
) -> list[RunResult]:
    """Train one agent per seed until each is finished.

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
    placed, step, began = runs, 0, time.monotonic()  # one run per place of the learners
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


def _learners(table: ObservedTable) -> Callable[..., DQNLearners]:
    if isinstance(table.seen, FlatColumns):
        return FlatDQN
    from efhorizon.agents.deep.dqn_images import ImageDQN  # torch takes seconds to load

    return ImageDQN
