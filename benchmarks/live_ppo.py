"""How fast live PPO is (`efhorizon train --live`), against Stable-Baselines3's PPO on the same game: both in one run.

    python benchmarks/live_ppo.py [--games pong,breakout,seaquest] [--turns 5] [--rollout 128] [--threads 1,2] [--json]

Both sides have the same environments (`BridgeGame`), network, rollout length, epochs and minibatch size;
Stable-Baselines3 has them in a `DummyVecEnv` with `CnnPolicy`, and nothing that it does not need. Each side runs with
one thread and with one per core, each in a process of its own, which waits while it is not its turn. A turn is one
update, rollout and gradient steps; all take turns, so that a machine that gets slower or busier meanwhile slows all of
them. The first updates do not count: torch compiles for shapes that it meets.

`one_thread` compares the two with one thread, as the median over turns, `best` what each makes of the machine: its
faster number of threads. On a machine that is busy with other jobs the clock says little, least of all about two
threads, so `one_thread_processor` compares the processor's time.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch

from efhorizon.agents.deep.settings import PPOSettings
from efhorizon.agents.deep.torch_learner import begin_thread
from efhorizon.agents.live.rollouts import EnvironmentName
from efhorizon.agents.live_deep.ppo import LivePPO
from efhorizon.agents.live_deep.training import LiveTraining
from efhorizon.agents.live_deep.vector import LiveEnvs
from efhorizon.io.machine import num_cores
from efhorizon.io.memory import keep_freed_memory

WANTED = 2.0
_WARM_UP = 2  # updates

Side = tuple[str, int]  # whose, and its number of threads


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", default="pong,breakout,seaquest", help="separated by commas")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rollout", type=int, default=128, help="steps of each environment in an update")
    parser.add_argument("--threads", default=f"1,{num_cores()}", help="separated by commas")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = {}
    for game in options.games.split(","):
        results[game] = found = measured(game, options)
        if not options.json:
            figures = ", ".join(f"{key} {value:,.4g}" for key, value in found.items())
            print(f"{game}: {figures}   (wanted: at least {WANTED:g})", flush=True)
    if options.json:
        print(json.dumps(results, indent=1))


def measured(game: str, options: argparse.Namespace) -> dict[str, float]:
    settings = PPOSettings(gamma=0.99, rollout_length=options.rollout)
    sides = [(name, int(threads)) for threads in options.threads.split(",") for name in ("ours", "sb3")]
    wall: dict[Side, list[float]] = {one: [] for one in sides}
    processor: dict[Side, list[float]] = {one: [] for one in sides}
    with ExitStack() as stack:
        running = {one: stack.enter_context(side(*one, game, settings)) for one in sides}
        for turn in range(options.turns + _WARM_UP):
            for one, asked in running.items():
                asked.send(None)
                seconds, processor_seconds = asked.recv()
                if turn >= _WARM_UP:
                    wall[one].append(seconds)
                    processor[one].append(processor_seconds)
    rates = {one: settings.samples / statistics.median(seconds) for one, seconds in wall.items()}
    best = {name: max(rate for (whose, _), rate in rates.items() if whose == name) for name in ("ours", "sb3")}
    found = {f"{name}_{threads}_steps_a_second": rate for (name, threads), rate in rates.items()}
    found |= {
        f"{name}_{threads}_processor_seconds": statistics.median(seconds)
        for (name, threads), seconds in processor.items()
    }
    found["best"] = best["ours"] / best["sb3"]
    if ("ours", 1) in wall:
        found["one_thread"] = _ratio(wall["ours", 1], wall["sb3", 1])
        found["one_thread_processor"] = _ratio(processor["ours", 1], processor["sb3", 1])
    return found


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(other / own for own, other in zip(ours, theirs, strict=True))


@contextlib.contextmanager
def side(name: str, threads: int, game: str, settings: PPOSettings) -> Iterator[Connection]:
    """A process that makes an update whenever it is asked to, and tells the seconds; in between it waits."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_take_turns, args=(name, game, settings, threads, there), daemon=True)
    process.start()
    there.close()
    try:
        yield here
    finally:
        here.close()
        process.join()


def _take_turns(name: str, game: str, settings: PPOSettings, threads: int, asked: Connection) -> None:
    environment = EnvironmentName(f"{game}_full")
    if name == "ours":
        keep_freed_memory()  # as the command does
        np.finfo(np.float32), np.finfo(np.float64)  # numpy would warn of what it finds below
        begin_thread()
        envs = LiveEnvs(environment, settings.num_envs, [0, 1], threads)
        learner = LivePPO(settings, envs, 0, torch.device("cpu"), threads)
        update: Any = learner.update
    else:
        from efhorizon.agents.live_deep.sb3 import sb3_model

        torch.set_num_threads(threads)
        with contextlib.redirect_stderr(io.StringIO()):  # old Gym prints a notice
            model = sb3_model(LiveTraining(environment, settings, 0, 10_000), torch.device("cpu"))
        update = lambda: model.learn(settings.samples, log_interval=None, reset_num_timesteps=False)  # noqa: E731
    with contextlib.suppress(EOFError):
        while True:
            asked.recv()
            began = time.perf_counter(), time.process_time()
            update()
            asked.send((time.perf_counter() - began[0], time.process_time() - began[1]))


if __name__ == "__main__":
    main()
