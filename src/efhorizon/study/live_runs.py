"""Runs on live environments: what is to be run, one row for each run, and how it is made, resumed and kept.

    DIR/live/NAME.json              a run, as far as it has come; written aside and renamed
    DIR/live/NAME.checkpoint.npz    of PPO and DQN: where it goes on
    DIR/live/NAME.frames            of DQN: its frames
    DIR/live/NAME.checkpoint.json   of GORP: where it goes on
    DIR/live/NAME.lock              locked by the process that makes the run

The name has a digest of all that decides a run but its length: a run that is asked for more timesteps goes on. DQN's
exploration falls over a schedule, which is part of that; the schedule is as long as the run unless it is given.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from efhorizon._version import __version__
from efhorizon.agents.deep.settings import DQNSettings, PPOSettings
from efhorizon.agents.live.gorp_curve import INTERVAL, CurveRun, gorp_curve
from efhorizon.agents.live.rollouts import EnvironmentName
from efhorizon.errors import StoreError
from efhorizon.io.behaviour import version_name
from efhorizon.io.decode import MAX_ITEMS, Count, Number, Positive, Record, Text, read_object, record_of, write_record
from efhorizon.study.records import RunProvenance, file_name
from efhorizon.study.sweep import Settings, UnknownSettingError
from efhorizon.suites import registry
from efhorizon.suites.atari import FULL_LENGTH_GAMES, FULL_LENGTH_HORIZON
from efhorizon.suites.environment_source import is_environment_name
from efhorizon.suites.simulator import SimulatorError

LiveBackend = Literal["live", "live sb3"]
GAMMA = 0.99  # Appendix F.1
BATCH = "batch10000"  # Appendix F.1: timesteps of a rollout of PPO
SETTINGS: Mapping[str, Mapping[str, Settings]] = {
    "ppo": {BATCH: {"rollout_length": 1250}, "rollout128": {}, "rollout1280": {"rollout_length": 1280}},
    "dqn": {"exploration0.1": {}, "exploration1": {"exploration_fraction": 1.0}},
}
_MODULES = {
    "gorp": "efhorizon.agents.live.gorp_curve",
    "ppo": "efhorizon.agents.live_deep.ppo",
    "dqn": "efhorizon.agents.live_deep.dqn",
    "sb3": "efhorizon.agents.live_deep.sb3",
}


class LiveProtocol(Record, frozen=True):
    """The rules of a run."""

    max_steps: Positive  # that it was asked for, at last
    evaluation_interval: Positive


class LiveRow(Record, frozen=True, kw_only=True):
    """One run on a live environment. A row of a table says `table` where this says `live`."""

    id: Text
    algorithm: Text
    backend: LiveBackend
    setting: Text
    seed: Count
    steps: Count  # timesteps so far, as the paper's authors count
    steps_played: Count  # of the environment; GORP does not emulate again what it has chosen
    is_complete: bool  # whether nothing is left to run: GORP has come to the end of its episode
    best_return: Number | None  # of any episode, in points
    final_return: Number | None  # of the last greedy episode or, of GORP, of its policy at the end
    # Points: timestep, return of the greedy episode, mean return of the training episodes since the last point (None:
    # there was none). GORP: timestep, mean return of its policy, best return of any episode so far.
    learning_curve: Annotated[list[tuple[Number | None, ...]], Meta(max_length=MAX_ITEMS)]
    wall_seconds: Number
    hyperparameters: Settings
    protocol: LiveProtocol
    provenance: RunProvenance

    def __post_init__(self) -> None:
        for point in self.learning_curve:
            if len(point) != 3 or not isinstance(point[0], int) or point[1] is None:
                raise ValueError("the points of the learning curve must each be a timestep and two numbers")


@dataclass(frozen=True)
class LiveTask:
    """One run."""

    name: EnvironmentName
    id: str
    algorithm: Literal["ppo", "dqn", "gorp"]
    backend: LiveBackend
    setting: str
    hyperparameters: Settings
    seed: int
    max_steps: int
    interval: int

    @property
    def file(self) -> str:
        """The name of its files."""
        content = json.dumps([self.hyperparameters, self.interval, self.code, _plain(self.name)], sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:10]
        return file_name(self.id, self.algorithm, self.backend, self.setting, f"seed{self.seed}", digest)

    @property
    def code(self) -> str:
        """The version of the learner."""
        kind = "sb3" if self.backend == "live sb3" else self.algorithm
        return version_name(f"live {kind}", import_module(_MODULES[kind]).BEHAVIOUR)

    def settings(self) -> PPOSettings | DQNSettings:
        return PPOSettings(**self.hyperparameters) if self.algorithm == "ppo" else DQNSettings(**self.hyperparameters)


def live_id(name: EnvironmentName) -> str:
    """What an environment is called in rows: full-length Atari as in `pong_27000_fs4`, others as they are named."""
    from efhorizon.agents.live_deep.vector import known_entry

    entry = known_entry(name)
    if entry is not None:
        return entry.name
    if not is_environment_name(name.name):
        raise SimulatorError(f"{name.name}: neither in the catalogue nor a Gymnasium environment, nor file.py:Class")
    changed = [f"{key}={value}" for key, value in name.arguments.items()] + list(name.wrappers)
    limit = [] if name.horizon is None else [f"T{name.horizon}"]
    return "-".join([name.name, *changed, *limit])


def full_length_name(game: str) -> str:
    """The name of a full-length game in rows."""
    found = next(suite.unlisted_entry(game) for suite in registry.suites() if suite.name == "atari")
    assert found is not None
    return found.name


FULL_LENGTH = f"_{FULL_LENGTH_HORIZON}_fs4"
GAMES = FULL_LENGTH_GAMES


def deep_tasks(
    name: EnvironmentName,
    algorithm: Literal["ppo", "dqn"],
    *,
    settings: str,
    seeds: int,
    max_steps: int,
    backend: LiveBackend = "live",
    schedule: int | None = None,
    interval: int = INTERVAL,
) -> list[LiveTask]:
    """The runs of PPO or DQN. `settings` are names separated by commas; `paper` are those for the environment."""
    known, title = SETTINGS[algorithm], live_id(name)
    if settings != "paper":
        chosen = [part.strip() for part in settings.split(",")]
    elif algorithm == "ppo":
        chosen = [BATCH if title.endswith(FULL_LENGTH) else "rollout128"]
    else:
        chosen = ["exploration0.1"]
    tasks = []
    for setting in chosen:
        if setting not in known:
            raise UnknownSettingError(
                f"{algorithm} has no live setting called {setting!r}; choose from: paper {' '.join(known)}"
            )
        more = {} if algorithm == "ppo" else {"schedule_steps": schedule or max_steps}
        kind = PPOSettings if algorithm == "ppo" else DQNSettings
        values = dataclasses.asdict(kind(gamma=GAMMA, **known[setting], **more))
        tasks += [
            LiveTask(name, title, algorithm, backend, setting, values, seed, max_steps, interval)
            for seed in range(seeds)
        ]
    return tasks


def gorp_tasks(
    name: EnvironmentName, *, k: int, m: int, seeds: int, max_steps: int, interval: int = INTERVAL
) -> list[LiveTask]:
    """The runs of GORP(k, m)."""
    title = live_id(name)
    return [
        LiveTask(name, title, "gorp", "live", f"k{k}-m{m}", {"k": k, "m": m}, seed, max_steps, interval)
        for seed in range(seeds)
    ]


class LiveResults:
    """The live runs of a results folder."""

    def __init__(self, path: Path) -> None:
        self.path = path / "live"

    def row(self, task: LiveTask) -> LiveRow | None:
        path = self._file(task, ".json")
        return _read(path) if path.exists() else None

    def rows(self) -> list[LiveRow]:
        """All rows, in the order of their names."""
        files = sorted(self.path.glob("*.json")) if self.path.is_dir() else []
        return [_read(path) for path in files if not path.name.endswith(".checkpoint.json") and path.name[0] != "."]

    def run(
        self,
        task: LiveTask,
        *,
        device: str = "auto",
        threads: int = 1,
        on_progress: Callable[[int, float | None], None] | None = None,
        goes_on: bool = False,
    ) -> LiveRow | None:
        """The row of a task with all its timesteps, made or continued; None: another process is making it.

        A run that `goes_on` with more timesteps keeps all that it needs for that; else DQN's frames are deleted.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with self._claimed(task) as is_ours:
            if not is_ours:
                return None
            row = self.row(task)
            if row is not None and (row.is_complete or row.steps >= task.max_steps):
                return row
            made = self._gorp(task, threads, on_progress) if task.algorithm == "gorp" else None
            row = made or self._trained(task, device, threads, on_progress)
            write_record(self._file(task, ".json"), row)
            if task.algorithm == "dqn" and task.backend == "live" and not goes_on:
                from efhorizon.agents.live_deep.training import forget_frames

                forget_frames(self._file(task, ".checkpoint.npz"))
            return row

    def _gorp(self, task: LiveTask, threads: int, on_progress: Callable[[int, float | None], None] | None) -> LiveRow:
        def shown(run: CurveRun) -> None:
            if on_progress is not None:
                on_progress(run.timesteps, run.curve[-1][1] if run.curve else None)

        before = self.row(task)
        began = datetime.now(UTC)
        run = gorp_curve(
            task.name,
            **task.hyperparameters,
            seed=task.seed,
            max_steps=task.max_steps,
            interval=task.interval,
            workers=threads,
            checkpoint=self._file(task, ".checkpoint.json"),
            on_progress=shown,
        )
        seconds = (datetime.now(UTC) - began).total_seconds() + (before.wall_seconds if before else 0)
        return gorp_row(task, run, seconds)

    def _trained(
        self, task: LiveTask, device: str, threads: int, on_progress: Callable[[int, float | None], None] | None
    ) -> LiveRow:
        from efhorizon.agents.deep.device import torch_device
        from efhorizon.agents.live_deep.sb3 import train_with_sb3
        from efhorizon.agents.live_deep.training import Course, LiveTraining, train_live

        def shown(course: Course) -> None:
            if on_progress is not None:
                on_progress(course.steps, course.recent_return)

        training = LiveTraining(task.name, task.settings(), task.seed, task.interval)
        chosen = torch_device(device)
        if task.backend == "live sb3":
            course = train_with_sb3(training, max_steps=task.max_steps, device=chosen, on_progress=shown)
        else:
            course = train_live(
                training,
                max_steps=task.max_steps,
                device=chosen,
                threads=threads,
                checkpoint=self._file(task, ".checkpoint.npz"),
                on_progress=shown,
            )
        return LiveRow(
            **_head(task),
            steps=course.steps,
            steps_played=course.steps,
            is_complete=False,
            best_return=course.best_return,
            final_return=course.final_return,
            learning_curve=list(course.curve),
            wall_seconds=round(course.seconds, 3),
        )

    @contextmanager
    def _claimed(self, task: LiveTask) -> Iterator[bool]:
        descriptor = os.open(self._file(task, ".lock"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield True
        except BlockingIOError:
            yield False
        finally:
            os.close(descriptor)

    def _file(self, task: LiveTask, suffix: str) -> Path:
        return self.path / f"{task.file}{suffix}"


def gorp_row(task: LiveTask, run: CurveRun, seconds: float) -> LiveRow:
    """The row of a run of GORP as far as it has come."""
    final = run.total_reward if run.is_complete else run.curve[-1][1] if run.curve else None
    curve: list[tuple[Number | None, ...]] = list(run.curve)
    if run.is_complete and run.best_return is not None:
        curve.append((run.timesteps, run.total_reward, run.best_return))
    return LiveRow(
        **_head(task),
        steps=run.timesteps,
        steps_played=run.steps_played,
        is_complete=run.is_complete,
        best_return=run.best_return,
        final_return=final,
        learning_curve=curve,
        wall_seconds=round(seconds, 3),
    )


def _head(task: LiveTask) -> dict[str, Any]:
    packages = ["numpy", *(["ale-py"] if task.id.endswith(FULL_LENGTH) else [])]
    packages += [] if task.algorithm == "gorp" else ["torch"]
    packages += ["stable_baselines3"] if task.backend == "live sb3" else []
    return {
        "id": task.id,
        "algorithm": task.algorithm,
        "backend": task.backend,
        "setting": task.setting,
        "seed": task.seed,
        "hyperparameters": task.hyperparameters,
        "protocol": LiveProtocol(task.max_steps, task.interval),
        "provenance": RunProvenance(
            efhorizon=__version__,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            code=task.code,
            packages={name: metadata.version(name) for name in packages},
            python=platform.python_version(),
            machine=platform.machine(),
        ),
    }


def _plain(name: EnvironmentName) -> list[Any]:
    return [name.name, name.horizon, dict(name.arguments), list(name.wrappers)]


def _read(path: Path) -> LiveRow:
    try:
        return record_of(read_object(path, "a row"), LiveRow, str(path))
    except StoreError as error:
        raise StoreError(f"{error}; delete it and it will be made again") from None
