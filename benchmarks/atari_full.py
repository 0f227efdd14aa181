"""Full-length Atari (Appendix F.1, Figure 4): makes the rows, and measures how fast they are made.

    python benchmarks/atari_full.py --results DIR [--algos gorp,ppo,dqn] [--games pong,breakout] [--steps 300k]
                                    [--seeds 3] [--schedule 500k] [--evaluate-every 20k] [--threads 2]
    python benchmarks/atari_full.py --results DIR --export data/study
    python benchmarks/atari_full.py --speed [--games pong,breakout] [--turns 5] [--json]

Rows go on where they stopped: the same command with more --steps continues every run (DQN's exploration falls over
--schedule, which is part of what a run is). --export adds them to an export of a study as live.jsonl; docs/study is
made from data/study by `efhorizon evaluate data/study --publish docs/study`. m of GORP is in GORP_M; how it was
chosen is in docs/full-length-atari.md.

--speed compares, in turns within one run, so that a machine that gets busier meanwhile slows all sides:

    GORP    its emulator steps per second, with one process and with two, against ALE's `act` called in a loop with
            nothing around it but restoring a snapshot when a game is over
    PPO     timesteps per second, rollout and gradient steps, against Stable-Baselines3 on the same environments

Both by the clock and by the processor's time of all processes; ratios are medians over turns.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import torch

from efhorizon.agents.deep.settings import PPOSettings
from efhorizon.agents.live.rollouts import EnvironmentName, Players
from efhorizon.agents.live_deep.ppo import LivePPO
from efhorizon.agents.live_deep.training import LiveTraining
from efhorizon.agents.live_deep.vector import LiveEnvs
from efhorizon.commands._types import count
from efhorizon.evaluation.live_curves import live_figures
from efhorizon.io.checksums import LIST, write_listed
from efhorizon.io.machine import num_cores
from efhorizon.io.memory import keep_freed_memory
from efhorizon.study.live_export import FILE, encoded_live
from efhorizon.study.live_runs import GAMES, LiveResults, LiveTask, deep_tasks, gorp_tasks
from efhorizon.suites.atari_simulator import AtariSimulator

GORP_M = {
    "beam_rider": 1,
    "breakout": 10,
    "enduro": 1,
    "pong": 1,
    "qbert": 3,
    "seaquest": 3,
    "space_invaders": 3,
}
WANTED = {"one process": 0.9, "two processes": 1.7, "ppo": 2.0}
_FRAMES = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--algos", default="gorp,ppo,dqn")
    parser.add_argument("--games", default=None)
    parser.add_argument("--steps", type=count(), default=300_000)
    parser.add_argument("--schedule", type=count(), default=500_000)
    parser.add_argument("--evaluate-every", type=count(), default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=num_cores())
    parser.add_argument("--export", type=Path)
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--turn-steps", type=int, default=3_000, help="of the emulators")
    parser.add_argument("--rollout", type=int, default=128, help="steps of each of PPO's 8 environments in a turn")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.speed:
        found = {game: speed(game, options) for game in (options.games or "pong,breakout").split(",")}
        print(json.dumps(found, indent=1))
    elif options.results is None:
        parser.error("--results or --speed")
    elif options.export is not None:
        exported(LiveResults(options.results), options.export)
    else:
        for task in plan(options):
            row = LiveResults(options.results).run(task, threads=options.threads)
            if row is not None:
                print(f"{task.file}: {row.steps:,} timesteps, {row.final_return}, best {row.best_return}", flush=True)


def plan(options: argparse.Namespace) -> Iterator[LiveTask]:
    """All games of the first seed before the second."""
    games = (options.games or ",".join(GAMES)).split(",")
    found: list[LiveTask] = []
    for game in games:
        name = EnvironmentName(f"{game}_full")
        for algorithm in options.algos.split(","):
            if algorithm == "gorp":
                found += gorp_tasks(name, k=1, m=GORP_M[game], seeds=options.seeds, max_steps=options.steps)
            else:
                kind: Literal["ppo", "dqn"] = algorithm
                found += deep_tasks(
                    name,
                    kind,
                    settings="paper",
                    seeds=options.seeds,
                    max_steps=options.steps,
                    schedule=options.schedule,
                    interval=options.evaluate_every,
                )
    yield from sorted(found, key=lambda task: task.seed)


def exported(results: LiveResults, folder: Path) -> None:
    """Put the rows beside the other files of an export."""
    rows = results.rows()
    there = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != LIST}
    write_listed(folder, {**there, FILE: encoded_live(rows)})
    print(f"{len(rows)} rows, {len(live_figures(rows))} environments in {folder / FILE}")


# --- speed


def speed(game: str, options: argparse.Namespace) -> dict[str, Any]:
    """Steps a second and ratios in one game."""
    turns, turn_steps, rollout, threads = options.turns, options.turn_steps, options.rollout, options.threads
    keep_freed_memory()
    name = EnvironmentName(f"{game}_full")
    bare = AtariSimulator(game, _FRAMES)
    one, two = (Players(name, k=1, seed=0, workers=workers) for workers in (1, 2))
    settings = PPOSettings(gamma=0.99, rollout_length=rollout)
    torch.set_num_threads(1)
    envs = LiveEnvs(name, settings.num_envs, [0, 1], threads)
    ours = LivePPO(settings, envs, 0, torch.device("cpu"), threads)
    theirs = _sb3(LiveTraining(name, settings, 0, 10_000))
    sides: dict[str, Callable[[], int]] = {
        "bare": lambda: _bare(bare, turn_steps),
        "one process": lambda: _played(one, turn_steps),
        "two processes": lambda: _played(two, turn_steps),
        "ppo": lambda: _updated(ours),
        "sb3": lambda: _learned(theirs, threads, settings.samples),
    }
    rates: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
    for turn in range(turns + 1):
        for side, work in sides.items():
            began, used = time.perf_counter(), _processor()
            steps = work()
            print(f"{game} turn {turn}, {side}: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
            if turn:  # the first only warms up
                rates[side].append((steps / (time.perf_counter() - began), steps / max(_processor() - used, 1e-9)))
    one.close(), two.close(), ours.close(), envs.close()

    def ratio(side: str, other: str, which: int) -> float:
        return statistics.median(a[which] / b[which] for a, b in zip(rates[side], rates[other], strict=True))

    against = {"one process": "bare", "two processes": "bare", "ppo": "sb3"}
    return {
        "per_second": {side: round(statistics.median(rate for rate, _ in found)) for side, found in rates.items()},
        "ratio": {side: round(ratio(side, other, 0), 2) for side, other in against.items()},
        # Work of processes that go on is counted only when they end, so two processes have no such ratio.
        "ratio_of_processor_time": {
            side: round(ratio(side, other, 1), 2) for side, other in against.items() if side != "two processes"
        },
        "wanted": WANTED,
    }


def _bare(simulator: AtariSimulator, steps: int) -> int:
    """Random actions and nothing else."""
    ale, actions = simulator._ale, simulator._actions
    simulator.reset()
    simulator.step(0)
    start = ale.cloneState()
    act, over, lives, full = ale.act, ale.game_over, ale.lives, ale.lives()
    for action in random.Random(0).choices(actions, k=steps):
        act(action)
        act(action)
        act(action)
        act(action)
        if over() or lives() < full:
            ale.restoreState(start)
    return steps


def _played(players: Players, steps: int) -> int:
    """Iterations of GORP with m = 1 until so many steps are played, from the start state."""
    done = 0
    while done < steps:
        played = players.play(players.own.environment.num_actions, 1)
        assert sum((part.total for part in played), Fraction()) is not None
        done += sum(part.steps for part in played)
    return done


def _updated(learner: LivePPO) -> int:
    before = learner.steps
    learner.update()
    return learner.steps - before


def _sb3(training: LiveTraining) -> Any:
    from efhorizon.agents.live_deep.sb3 import sb3_model

    with contextlib.redirect_stderr(io.StringIO()):  # old Gym prints a notice
        return sb3_model(training, torch.device("cpu"))


def _learned(model: Any, threads: int, timesteps: int) -> int:
    torch.set_num_threads(threads)
    try:
        model.learn(timesteps, log_interval=None, reset_num_timesteps=False)
    finally:
        torch.set_num_threads(1)
    return timesteps


def _processor() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


if __name__ == "__main__":
    main()
