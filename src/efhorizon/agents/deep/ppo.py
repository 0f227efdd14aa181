"""PPO on a table, many seeds side by side.

    L = - E[min(r A, clip(r, 1 - c, 1 + c) A)] + vf E[(V - R)^2] - ent E[H],   r = pi(a | s) / pi_old(a | s)

as Stable-Baselines3 computes it (docs/training.md lists what differs). One update is: a rollout of `rollout_length`
steps in `num_envs` environments, advantages (GAE), `num_epochs` passes over the rollout in minibatches.

Two learners do this: `ppo_flat` with an MLP, compiled by Numba, and `ppo_images` with a CNN, in torch.

Legend: B seeds, N environments, T steps of a rollout.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.deep.learners import PPOLearners
from efhorizon.agents.deep.observations import FlatColumns, ObservedTable
from efhorizon.agents.deep.ppo_flat import FlatPPO
from efhorizon.agents.deep.protocol import Protocol, RunRecord, RunResult, evaluation_in
from efhorizon.agents.deep.settings import PPOSettings


def train(
    table: ObservedTable,
    settings: PPOSettings,
    protocol: Protocol,
    seeds: Sequence[int],
    *,
    initial: NDArray[np.float32] | None = None,
    on_progress: Callable[[list[RunRecord]], None] | None = None,
) -> list[RunResult]:
    """Train one agent per seed until each is finished. `initial`: parameters to start from instead of random ones."""
    if settings.samples % settings.minibatch:
        raise ValueError(f"a rollout of {settings.samples} samples does not divide into {settings.minibatch}")
    runs = [RunRecord(seed, protocol, optimal_units=table.optimal_units, unit=table.unit) for seed in seeds]
    learners = _learners(table)(table, settings, protocol.evaluation_interval, seeds, initial)
    placed, step, began = runs, 0, time.monotonic()  # one run per place of the learners
    while any(not run.is_finished for run in placed):
        is_done, units, evaluations = learners.updates(step)
        for number in range(len(evaluations)):
            for place, run in enumerate(placed):
                if run.is_finished:
                    continue
                record_rollout(
                    run, step, is_done[number, place], units[number, place], int(evaluations[number, place]), protocol
                )
                run.wall_seconds = time.monotonic() - began
            step += settings.samples
        going_on = [place for place, run in enumerate(placed) if not run.is_finished]
        placed = [placed[place] for place in learners.keep(going_on)]
        if on_progress is not None:
            on_progress(runs)
    return [run.result() for run in runs]


def record_rollout(
    run: RunRecord,
    first_step: int,
    is_done: NDArray[np.bool_],  # [T, N]
    units: NDArray[np.int32] | NDArray[np.int64],  # [T, N]
    evaluation: int,
    protocol: Protocol,
) -> None:
    """Pass on to a run what happened in one rollout, in order of timesteps. All its evaluations are of one policy."""
    num_steps, num_envs = is_done.shape
    last_step = first_step + num_steps * num_envs
    steps = first_step + num_envs * (1 + np.arange(num_steps))
    ended, which = np.nonzero(is_done)
    ends, returns = steps[ended], units[ended, which].astype(np.int64)
    due = evaluation_in(first_step, last_step, protocol.evaluation_interval)
    while due is not None:
        run.episodes(ends[ends <= due], returns[ends <= due])
        run.evaluated(due, evaluation)
        ends, returns = ends[ends > due], returns[ends > due]
        due = evaluation_in(due, last_step, protocol.evaluation_interval)
    run.episodes(ends, returns)
    run.passed(last_step)


def _learners(table: ObservedTable) -> Callable[..., PPOLearners]:
    if isinstance(table.seen, FlatColumns):
        return FlatPPO
    from efhorizon.agents.deep.ppo_images import ImagePPO  # torch takes seconds to load

    return ImagePPO
