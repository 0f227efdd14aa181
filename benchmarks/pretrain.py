"""How fast `efhorizon policy pretrain` is, against Stable-Baselines3's PPO on the same levels: both in one run.

    python benchmarks/pretrain.py [--games maze,coinrun] [--turns 5] [--rollout 64]
                                  [--precision float32,bfloat16] [--json]

Both sides have the same levels, frameskip, number of environments, rollout length, epochs, minibatch size and network.
Stable-Baselines3 gets `CnnPolicy` and a vector of environments around the same native ones, without anything that it
does not need (no monitor, no reward scaling, nothing put back after an episode's end). Each side runs with one thread
and with one per core, each in a process of its own, which waits while it is not its turn. A turn is one update, rollout
and gradient steps; all take turns, so that a machine that gets slower or busier meanwhile slows all of them. The first
update does not count.

`one_core_ratio` compares the two with one thread, as the median over turns. `ratio` compares what each makes of the
machine: its faster number of threads. On a machine that is busy with other jobs more threads get a larger share of it,
so look at both.

A rollout of 64 steps with two minibatches of 2,048, instead of 256 steps with eight, makes turns short; an update does
the same work per timestep.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch

from efhorizon.errors import EfhorizonError
from efhorizon.io.machine import num_cores
from efhorizon.io.memory import keep_freed_memory
from efhorizon.policies.actor_critic import begin_thread
from efhorizon.policies.precision import chosen_precision
from efhorizon.policies.pretraining_run import PretrainingRun
from efhorizon.policies.pretraining_settings import PretrainingSettings, settings_for

with contextlib.redirect_stderr(io.StringIO()):  # old Gym prints a notice
    import gymnasium
    from procgen import ProcgenGym3Env
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecEnv

WANTED = 2.0


class LevelsVecEnv(VecEnv):
    """The native environments as Stable-Baselines3 wants them."""

    def __init__(self, settings: PretrainingSettings, num_threads: int) -> None:
        self._native = ProcgenGym3Env(
            num=settings.num_envs,
            env_name=settings.game,
            distribution_mode=settings.difficulty,
            rand_seed=settings.seed,
            start_level=settings.first_level,
            num_levels=settings.num_levels,
            num_threads=num_threads,
        )
        self._native._reuse_arrays = True
        self._frameskip = settings.frameskip
        self._infos: list[dict[str, Any]] = [{} for _ in range(settings.num_envs)]
        super().__init__(
            settings.num_envs,
            gymnasium.spaces.Box(0, 255, (64, 64, 3), np.uint8),
            gymnasium.spaces.Discrete(settings.num_actions),
        )

    def reset(self) -> np.ndarray:
        return self._native.observe()[1]["rgb"].copy()

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions.astype(np.int32)

    def step_wait(self) -> Any:
        total, is_done = np.zeros(self.num_envs, np.float32), np.zeros(self.num_envs, np.bool_)
        for _ in range(self._frameskip):
            self._native.act(self._actions)
            reward, observation, first = self._native.observe()
            total += np.where(is_done, 0, reward)
            is_done |= first
        return observation["rgb"].copy(), total, is_done, self._infos

    def close(self) -> None:
        self._native.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None: ...

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return []

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


class Reference:
    """Stable-Baselines3's PPO with the same settings."""

    def __init__(self, settings: PretrainingSettings, threads: int) -> None:
        self._samples = settings.samples
        self._model = PPO(
            "CnnPolicy",
            LevelsVecEnv(settings, threads if threads > 1 else 0),
            learning_rate=settings.rate,
            n_steps=settings.rollout_length,
            batch_size=settings.minibatch,
            n_epochs=settings.num_epochs,
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
            clip_range=settings.clip,
            ent_coef=settings.entropy_weight,
            vf_coef=settings.value_weight,
            max_grad_norm=settings.max_gradient_norm,
            seed=settings.seed,
            device="cpu",
        )

    def update(self) -> None:
        self._model.learn(self._samples, log_interval=None, reset_num_timesteps=False)

    def close(self) -> None:
        self._model.env.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", default="maze,coinrun", help="separated by commas")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rollout", type=int, default=64, help="steps of each environment in an update")
    parser.add_argument("--precision", default="float32", help="of ours; several, separated by commas")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = {}
    for game in options.games.split(","):
        for precision in options.precision.split(","):
            try:
                results[f"{game} {precision}"] = found = measured(game, precision, options)
            except EfhorizonError as error:
                print(f"{game} {precision}: {error}", file=sys.stderr)
                continue
            if not options.json:
                figures = ", ".join(f"{key} {value:,.4g}" for key, value in found.items())
                print(f"{game} {precision}: {figures}   (wanted: at least {WANTED:g})", flush=True)
    if options.json:
        print(json.dumps(results, indent=1))


def measured(game: str, precision: str, options: argparse.Namespace) -> dict[str, float]:
    paper = settings_for(game)
    settings = settings_for(
        game,
        rollout_length=options.rollout,
        num_minibatches=paper.num_envs * options.rollout // paper.minibatch,
        precision=chosen_precision(precision, torch.device("cpu")),
    )
    sides = [(name, threads) for threads in sorted({1, num_cores()}) for name in ("ours", "sb3")]
    wall: dict[tuple[str, int], list[float]] = {one: [] for one in sides}
    processor: dict[tuple[str, int], list[float]] = {one: [] for one in sides}
    with ExitStack() as stack:
        running = {one: stack.enter_context(side(*one, settings)) for one in sides}
        for turn in range(options.turns + 1):
            for one, asked in running.items():
                asked.send(None)
                seconds, processor_seconds = asked.recv()
                if turn:
                    wall[one].append(seconds)
                    processor[one].append(processor_seconds)
    rates = {one: settings.samples / statistics.median(seconds) for one, seconds in wall.items()}
    best = {name: max(rate for (whose, _), rate in rates.items() if whose == name) for name in ("ours", "sb3")}
    found = {f"{name}_{threads}_steps_a_second": rate for (name, threads), rate in rates.items()}
    found["one_core_ratio"] = _ratio(wall["ours", 1], wall["sb3", 1])
    found["one_core_processor_ratio"] = _ratio(processor["ours", 1], processor["sb3", 1])  # other jobs disturb it less
    return {**found, "ratio": best["ours"] / best["sb3"]}


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(other / own for own, other in zip(ours, theirs, strict=True))


@contextlib.contextmanager
def side(name: str, threads: int, settings: PretrainingSettings) -> Iterator[Connection]:
    """A process that makes an update whenever it is asked to, and tells the seconds; in between it waits."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_take_turns, args=(name, settings, threads, there), daemon=True)
    process.start()
    there.close()
    try:
        yield here
    finally:
        here.close()
        process.join()


def _take_turns(name: str, settings: PretrainingSettings, threads: int, asked: Connection) -> None:
    if name == "ours":
        keep_freed_memory()  # as the command does
        np.finfo(np.float32), np.finfo(np.float64)  # numpy would warn of what it finds below
        begin_thread()
        run: Any = PretrainingRun(settings, torch.device("cpu"), threads)
    else:
        torch.set_num_threads(threads)
        run = Reference(settings, threads)
    with contextlib.suppress(EOFError):
        while True:
            asked.recv()
            began = time.perf_counter(), time.process_time()
            run.update()
            asked.send((time.perf_counter() - began[0], time.process_time() - began[1]))
    run.close()


if __name__ == "__main__":
    main()
