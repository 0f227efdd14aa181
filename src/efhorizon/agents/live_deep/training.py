"""PPO and DQN on a live environment, from settings to a learning curve, with checkpoints.

    NAME.checkpoint.npz   the state of the run after an update
    NAME.frames           DQN's frames (see `replay`)

Greedy episodes are played after the first update at or after each multiple of `interval` timesteps: one where the
environment is deterministic, five with seeds of their own where it is not; the curve has their mean. They are played in
other environments and draw from other generators, so they change nothing.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray

from efhorizon.agents.deep.settings import DQNSettings, PPOSettings
from efhorizon.agents.live.rollouts import EnvironmentName
from efhorizon.agents.live_deep.dqn import LiveDQN
from efhorizon.agents.live_deep.ppo import LivePPO
from efhorizon.agents.live_deep.replay import SLACK
from efhorizon.agents.live_deep.vector import LiveEnvs
from efhorizon.agents.tabular.runs import check_positive
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.io.array_archive import read_archive, write_archive
from efhorizon.io.memory import keep_freed_memory
from efhorizon.io.npy import first_line

FORMAT = "efhorizon-live-1"
EPISODES_WITH_CHANCE = 5
_WHAT = "a checkpoint of live training"
_MAX_BYTES = 1 << 30  # of a checkpoint; one has 20 MB
_SECONDS_A_CHECKPOINT = 60.0

Point = tuple[int, float, float | None]  # timestep, greedy return, mean return of training episodes since the last


@dataclass(frozen=True)
class LiveTraining:
    """All that decides a run, besides how long it is."""

    name: EnvironmentName
    settings: PPOSettings | DQNSettings
    seed: int
    interval: int

    @property
    def num_envs(self) -> int:
        """DQN plays as many as there are timesteps between gradient steps."""
        return self.settings.num_envs if isinstance(self.settings, PPOSettings) else self.settings.train_every

    def described(self) -> dict[str, Any]:
        """As JSON: what a checkpoint must agree with."""
        return {
            "name": dataclasses.asdict(self.name) | {"wrappers": list(self.name.wrappers)},
            "algorithm": "ppo" if isinstance(self.settings, PPOSettings) else "dqn",
            "settings": dataclasses.asdict(self.settings),
            "seed": self.seed,
            "interval": self.interval,
        }


@dataclass
class Course:
    """What a run has come to."""

    steps: int = 0
    curve: list[Point] = dataclasses.field(default_factory=list)
    best_return: float | None = None
    seconds: float = 0.0
    waiting: list[float] = dataclasses.field(default_factory=list)  # training returns since the last point
    episodes: int = 0

    @property
    def final_return(self) -> float | None:
        return self.curve[-1][1] if self.curve else None

    @property
    def recent_return(self) -> float | None:
        """Mean of the training episodes since the last evaluation, or of those before it."""
        if self.waiting:
            return float(np.mean(self.waiting))
        return self.curve[-1][2] if self.curve else None

    def note(self, returns: list[float]) -> None:
        self.episodes += len(returns)
        self.waiting += returns
        for found in returns:
            self.best_return = found if self.best_return is None else max(self.best_return, found)

    def evaluated(self, greedy: list[float]) -> None:
        mean = float(np.mean(self.waiting)) if self.waiting else None
        self.waiting = []
        self.curve.append((self.steps, float(np.mean(greedy)), mean))
        self.best_return = max([*greedy, *([] if self.best_return is None else [self.best_return])])


def train_live(
    training: LiveTraining,
    *,
    max_steps: int,
    device: torch.device,
    threads: int,
    checkpoint: Path | None = None,
    on_progress: Callable[[Course], None] | None = None,
) -> Course:
    """Train until `max_steps` timesteps, or go on from the checkpoint."""
    check_positive(max_steps=max_steps, interval=training.interval, threads=threads)
    with _one_thread():
        envs = LiveEnvs(training.name, training.num_envs, [training.seed, 1], threads)
        frames = None if checkpoint is None else frames_path(checkpoint)
        learner = _learner(training, envs, device, threads, frames)
        try:
            course = Course()
            if checkpoint is not None and checkpoint.exists():
                course = _resumed(training, learner, checkpoint)
            _trained(training, learner, course, max_steps, checkpoint, on_progress)
        finally:
            learner.close()
            envs.close()
    return course


def forget_frames(checkpoint: Path) -> None:
    """Delete the frames of a run of DQN that is complete, and its checkpoint, which is of no use without them."""
    if frames_path(checkpoint).exists():
        frames_path(checkpoint).unlink()
        checkpoint.unlink(missing_ok=True)


def frames_path(checkpoint: Path) -> Path:
    return checkpoint.with_name(checkpoint.name.removesuffix(".checkpoint.npz") + ".frames")


def _learner(
    training: LiveTraining, envs: LiveEnvs, device: torch.device, threads: int, frames: Path | None
) -> LivePPO | LiveDQN:
    settings = training.settings
    if isinstance(settings, PPOSettings):
        return LivePPO(settings, envs, training.seed, device, threads)
    if frames is not None:
        frames.parent.mkdir(parents=True, exist_ok=True)
    return LiveDQN(settings, envs, training.seed, device, threads, frames)


def _trained(
    training: LiveTraining,
    learner: LivePPO | LiveDQN,
    course: Course,
    max_steps: int,
    checkpoint: Path | None,
    on_progress: Callable[[Course], None] | None,
) -> None:
    """Update until enough timesteps are made, evaluate, and keep checkpoints."""
    began = saved = shown = time.monotonic()
    before, kept = course.seconds, course.steps
    while course.steps < max_steps:
        course.note(learner.update())
        is_due = learner.steps // training.interval > course.steps // training.interval
        course.steps = learner.steps
        if is_due or course.steps >= max_steps:
            course.evaluated(greedy_returns(training, learner))
        now = time.monotonic()
        course.seconds = before + now - began
        if on_progress is not None and (is_due or now - shown > 1):
            on_progress(course)
            shown = now
        is_old = now - saved > _SECONDS_A_CHECKPOINT or course.steps - kept >= SLACK // 2
        if checkpoint is not None and (is_old or course.steps >= max_steps):
            _write(training, learner, course, checkpoint)
            saved, kept = time.monotonic(), course.steps


def greedy_returns(training: LiveTraining, learner: LivePPO | LiveDQN) -> list[float]:
    """The returns of greedy episodes now, in points.

    An observation that was met before has the same action: a policy that waits for a ball which it never serves sees
    the same screen for 27,000 steps.
    """
    seed = [training.seed, 2, learner.steps]
    envs = LiveEnvs(training.name, 1, seed)
    known: dict[bytes, NDArray[np.int64]] = {}
    try:
        found: list[float] = []
        while len(found) < (EPISODES_WITH_CHANCE if envs.has_chance else 1):
            seen = xxhash.xxh3_128_digest(envs.observations.tobytes())
            if seen not in known:
                known[seen] = learner.greedy(envs.observations)
            found += envs.step(known[seen]).returns
        return found
    finally:
        envs.close()


def _write(training: LiveTraining, learner: LivePPO | LiveDQN, course: Course, checkpoint: Path) -> None:
    arrays, counters = learner.state()
    described = {
        "format": FORMAT,
        "training": training.described(),
        "run": counters,
        "course": dataclasses.asdict(course),
    }
    write_archive(checkpoint, arrays, described)


def _resumed(training: LiveTraining, learner: LivePPO | LiveDQN, checkpoint: Path) -> Course:
    """Take a run to where its checkpoint was written."""
    try:
        arrays, described = read_archive(checkpoint, _WHAT, _MAX_BYTES)
        if described.get("format") != FORMAT:
            raise StoreError(f"format {described.get('format')!r}")
    except StoreError as error:
        raise _bad(checkpoint, str(error).removeprefix(f"{checkpoint}: ")) from None
    if described.get("training") != training.described():
        raise StoreError(f"{checkpoint}: a checkpoint of another run; choose another folder, or delete it")
    if isinstance(learner, LiveDQN) and not frames_path(checkpoint).exists():
        raise _bad(checkpoint, f"{frames_path(checkpoint).name} is missing")
    try:
        learner.restore(arrays, described["run"])
        course = Course(**described["course"])
        course.curve = [(int(step), float(greedy), mean) for step, greedy, mean in course.curve]
        return course
    except (EfhorizonError, KeyError, TypeError, ValueError) as error:
        raise _bad(checkpoint, first_line(error)) from None


def _bad(checkpoint: Path, reason: str) -> StoreError:
    return StoreError(f"{checkpoint}: not {_WHAT} that can be used ({reason}); delete it to begin this run again")


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for each piece of work; there are several pieces."""
    keep_freed_memory()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
