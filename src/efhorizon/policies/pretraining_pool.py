"""Several pretraining runs as tasks on a Ray cluster.

One run is not divided: PPO updates one network after each rollout, and Procgen plays a rollout in less time than it
would take to send it. So a task is a whole run. It writes its checkpoint and its network beside each other, and a run
whose node is lost goes on from its checkpoint on another one. The numbers do not depend on where a run is made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from efhorizon.engines.actors import Actors
from efhorizon.engines.choice import EngineChoice
from efhorizon.engines.task_pool import TaskPool
from efhorizon.engines.worker_process import WorkerError
from efhorizon.policies.pretrain import Pretrained, pretrain
from efhorizon.policies.pretraining_settings import PretrainingSettings


@dataclass(frozen=True)
class PretrainingTask:
    """One run."""

    settings: PretrainingSettings
    out: Path  # on a file system that all nodes share
    steps: int
    device: str = "auto"
    threads: int = 1


class _Trainer:
    """Keeps nothing between runs."""

    def pretrain(self, task: PretrainingTask) -> Pretrained:
        return pretrain(task.settings, task.out, steps=task.steps, device=task.device, threads=task.threads)


def pretrain_on_ray(
    tasks: Sequence[PretrainingTask], choice: EngineChoice, on_result: Callable[[Pretrained], None]
) -> None:
    """Do all runs; the results come as they end. What fails is one error, after the others have ended."""
    from efhorizon.engines.ray_actors import RayActors

    actors = RayActors(choice)
    try:
        pretrain_on(actors, tasks, on_result)
    finally:
        actors.close()


def pretrain_on(actors: Actors, tasks: Sequence[PretrainingTask], on_result: Callable[[Pretrained], None]) -> None:
    """The same on actors of any kind."""
    pool = TaskPool(actors, _Trainer, max(1, min(actors.num_workers, len(tasks))))
    waiting, failed = deque(tasks), []
    try:
        while waiting or pool.is_busy:
            while waiting and pool.has_room:
                task = waiting.popleft()
                pool.submit(task, _Trainer.pretrain, task)
            for task, result in pool.finished():
                if isinstance(result, Exception):
                    failed.append(f"{task.out}: {result}")
                else:
                    on_result(result)
    finally:
        pool.close()
    if failed:
        raise WorkerError(f"{len(failed)} of {len(tasks)} runs failed; {failed[0]}; the same command goes on with them")
