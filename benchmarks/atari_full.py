"""Full-length Atari (Appendix F.1, Figure 4): makes the rows, and measures how fast GORP's are made.

    python benchmarks/atari_full.py --results DIR [--algos gorp,ppo,dqn] [--games pong,breakout] [--steps 300k]
                                    [--gorp-steps 5M] [--seeds 3] [--schedule 500k] [--evaluate-every 20k]
                                    [--threads 1] [--max-minutes 60]
    python benchmarks/atari_full.py --results DIR --export data/study
    python benchmarks/atari_full.py --speed [--games pong,breakout] [--turns 5] [--json]

All runs advance in turns: next is always the one that has done the smallest share of its timesteps, and after
--evaluate-every times 5 of them it waits again. So whenever you stop there is something of everything. Rows and
checkpoints go on where they stopped, also after `kill -9`, and the same command with more --steps continues every run
(DQN's exploration falls over --schedule, which is part of what a run is). --export adds the rows to an export of a
study as live.jsonl; docs/study is made from data/study by `efhorizon evaluate data/study --publish docs/study`. m of
GORP is in GORP_M; how it was chosen is in docs/full-length-atari.md.

--speed compares GORP's emulator steps per second, with one process and with two, against ALE's `act` called in a loop
with nothing around it but restoring a snapshot when a game is over. All sides take turns within one run, so that a
machine that gets busier meanwhile slows all of them; by the clock and by the processor's time of all processes. Ratios
are medians over turns. benchmarks/live_ppo.py does this for PPO.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import psutil

from efhorizon.agents.live.rollouts import EnvironmentName, Players
from efhorizon.commands._types import count
from efhorizon.evaluation.live_curves import live_figures
from efhorizon.io.checksums import LIST, write_listed
from efhorizon.io.machine import num_cores
from efhorizon.study.live_export import FILE, encoded_live
from efhorizon.study.live_runs import GAMES, LiveResults, LiveRow, LiveTask, deep_tasks, gorp_tasks
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
WANTED = {"one process": 0.9, "two processes": 1.7}
_FRAMES = 4
_EVALUATIONS_A_TURN = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--algos", default="gorp,ppo,dqn")
    parser.add_argument("--games", default=None)
    parser.add_argument("--steps", type=count(), default=300_000)
    parser.add_argument("--schedule", type=count(), default=500_000)
    parser.add_argument("--evaluate-every", type=count(), default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--gorp-steps", type=count(), help="of GORP's runs (default: --steps)")
    parser.add_argument("--threads", type=int, default=num_cores())
    parser.add_argument("--max-minutes", type=float, default=math.inf)
    parser.add_argument("--export", type=Path)
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--turn-steps", type=int, default=3_000, help="of the emulators")
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
        advance(list(plan(options)), LiveResults(options.results), options)


def plan(options: argparse.Namespace) -> Iterator[LiveTask]:
    """All games of the first seed before the second."""
    games = (options.games or ",".join(GAMES)).split(",")
    found: list[LiveTask] = []
    for game in games:
        name = EnvironmentName(f"{game}_full")
        for algorithm in options.algos.split(","):
            if algorithm == "gorp":
                steps = options.gorp_steps or options.steps
                found += gorp_tasks(name, k=1, m=GORP_M[game], seeds=options.seeds, max_steps=steps)
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


class TimeIsUpError(Exception):
    """The minutes are over; a run's last checkpoint is at most a minute old."""


def advance(tasks: list[LiveTask], results: LiveResults, options: argparse.Namespace) -> None:
    """Give turns to the runs until all are complete or the time is over."""
    ends, waiting = time.monotonic() + 60 * options.max_minutes, tasks

    def watch(steps: int, value: float | None) -> None:
        if time.monotonic() > ends:
            raise TimeIsUpError

    while True:
        shares = [(_share(task, results.row(task)), task) for task in waiting]
        waiting = [task for share, task in shares if share < 1]
        if not waiting:
            return
        task = min(shares, key=lambda each: each[0])[1]
        steps = _steps(results.row(task))
        until = steps // _turn(task) * _turn(task) + _turn(task)
        turn = replace(task, max_steps=min(task.max_steps, until))
        try:
            row = results.run(turn, threads=options.threads, on_progress=watch, goes_on=until < task.max_steps)
        except TimeIsUpError:
            return
        if row is None:  # another process has it
            waiting.remove(task)
            continue
        print(f"{task.file}: {row.steps:,} timesteps, {row.final_return}, best {row.best_return}", flush=True)


def _share(task: LiveTask, row: LiveRow | None) -> float:
    """How much of a run is done; 1: all."""
    return 1.0 if row is not None and row.is_complete else min(1.0, _steps(row) / task.max_steps)


def _steps(row: LiveRow | None) -> int:
    return 0 if row is None else row.steps


def _turn(task: LiveTask) -> int:
    """Timesteps of a turn: a multiple of those between evaluations, so that turns change nothing in a curve."""
    return _EVALUATIONS_A_TURN * task.interval


def exported(results: LiveResults, folder: Path) -> None:
    """Put the rows beside the other files of an export."""
    rows = results.rows()
    there = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != LIST}
    write_listed(folder, {**there, FILE: encoded_live(rows)})
    print(f"{len(rows)} rows, {len(live_figures(rows))} environments in {folder / FILE}")


# --- speed


def speed(game: str, options: argparse.Namespace) -> dict[str, Any]:
    """Steps a second and ratios in one game."""
    turns, turn_steps = options.turns, options.turn_steps
    name = EnvironmentName(f"{game}_full")
    bare = AtariSimulator(game, _FRAMES)
    one, two = (Players(name, k=1, seed=0, workers=workers) for workers in (1, 2))
    sides: dict[str, Callable[[], int]] = {
        "bare": lambda: _bare(bare, turn_steps),
        "one process": lambda: _played(one, turn_steps),
        "two processes": lambda: _played(two, turn_steps),
    }
    rates: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
    for turn in range(turns + 1):
        for side, work in sides.items():
            began, used = time.perf_counter(), _processor()
            steps = work()
            seconds, worked = time.perf_counter() - began, _processor() - used
            print(f"{game} turn {turn}, {side}: {seconds:.1f} s", file=sys.stderr, flush=True)
            if turn:  # the first only warms up
                rates[side].append((steps / seconds, steps / max(worked, 1e-9)))
    one.close(), two.close()

    def ratio(side: str, other: str, which: int) -> float:
        return statistics.median(a[which] / b[which] for a, b in zip(rates[side], rates[other], strict=True))

    against = {"one process": "bare", "two processes": "bare"}
    return {
        "per_second": {side: round(statistics.median(rate for rate, _ in found)) for side, found in rates.items()},
        "ratio": {side: round(ratio(side, other, 0), 2) for side, other in against.items()},
        # Steps per second of work, whoever does it: 1 for two processes means 2 by the clock on two free cores.
        "ratio_of_processor_time": {side: round(ratio(side, other, 1), 2) for side, other in against.items()},
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


def _processor() -> float:
    """Seconds of work of this process and of those that it started."""
    own = psutil.Process()
    times = [each.cpu_times() for each in (own, *own.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


if __name__ == "__main__":
    main()
