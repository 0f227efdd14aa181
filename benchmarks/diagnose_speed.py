"""Is `efhorizon diagnose` as fast as the emulator? Steps per second of the bare emulator, of one process and of two.

    python benchmarks/diagnose_speed.py [--game breakout] [--frameskip 4] [--seconds 5] [--rounds 3]

The bare emulator plays random actions through `ale.act`, starting again where the game ends. GORP's runs and random
play do the same through efhorizon: snapshots, random numbers and sums included. All sides take turns in one run, so
that other work on the machine hits each of them; the ratios are those of the medians. Where the machine is busy, wall
time says little about two processes, so steps per second of processor time are shown too: if two processes do as many
of these as one, they do twice the work on two free cores.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import psutil

from efhorizon.diagnose.episodes import RandomTask, RunTask
from efhorizon.diagnose.stage import Stage
from efhorizon.diagnose.subject import Subject, subject_of
from efhorizon.engines.engine import Engine
from efhorizon.engines.local import engine

_STEPS_A_TASK = 4000


class Rate(NamedTuple):
    """Steps per second of wall time and of processor time."""

    wall: float
    processor: float


def bare(subject: Subject, frameskip: int, seconds: float) -> Rate:
    """ALE alone."""
    assert subject.spec.simulator is not None
    simulator = subject.spec.simulator()
    ale, actions = simulator._ale, simulator._actions  # type: ignore[attr-defined]  # the emulator itself
    simulator.reset()
    start = ale.cloneState()
    draws = np.random.default_rng(0).integers(len(actions), size=100_000).tolist()
    began, used, steps, lives = time.perf_counter(), time.process_time(), 0, ale.lives()
    while time.perf_counter() - began < seconds:
        action = actions[draws[steps % len(draws)]]
        for _ in range(frameskip):
            ale.act(action)
        steps += 1
        if ale.game_over() or ale.lives() < lives:
            ale.restoreState(start)
    return Rate(steps / (time.perf_counter() - began), steps / (time.process_time() - used))


def diagnosed(pool: Engine[Stage], task: RunTask | RandomTask, seconds: float, processes: int) -> Rate:
    """Tasks of `diagnose`, with all processes busy."""
    began, used, steps, number, pending = time.perf_counter(), workers_seconds(), 0, 0, 0
    while time.perf_counter() - began < seconds:
        while pending < 2 * processes and pool.has_room:
            pool.submit(replace(task, number=number))
            number, pending = number + 1, pending + 1
        steps += pool.next_result().steps
        pending -= 1
    while pending:
        steps += pool.next_result().steps
        pending -= 1
    return Rate(steps / (time.perf_counter() - began), steps / (workers_seconds() - used))


def workers_seconds() -> float:
    """Processor time of all processes that this one started."""
    times = [child.cpu_times() for child in psutil.Process().children()]
    return float(sum(each.user + each.system for each in times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="breakout")
    parser.add_argument("--frameskip", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    subject = subject_of(f"{options.game}_2000_fs{options.frameskip}")
    task = RunTask(0, 0, 1, 1, subject.horizon, _STEPS_A_TASK)
    one = engine(subject.spec, 1)
    two = engine(subject.spec, 2)
    for pool, processes in ((one, 1), (two, 2)):
        diagnosed(pool, task, 0.1, processes)  # simulators start
    found: dict[str, list[Rate]] = {"bare emulator": [], "GORP, 1 process": [], "GORP, 2 processes": []}
    for _ in range(options.rounds):
        found["bare emulator"].append(bare(subject, options.frameskip, options.seconds))
        found["GORP, 1 process"].append(diagnosed(one, task, options.seconds, 1))
        found["GORP, 2 processes"].append(diagnosed(two, task, options.seconds, 2))
    one.close()
    two.close()
    for kind in Rate._fields:
        rates = {name: statistics.median(getattr(rate, kind) for rate in each) for name, each in found.items()}
        print(f"per second of {kind} time")
        for name, rate in rates.items():
            print(f"  {name:20} {rate:10,.0f} steps")
        print(f"  one process / bare emulator: {rates['GORP, 1 process'] / rates['bare emulator']:.2f}")
        print(f"  two processes / one process: {rates['GORP, 2 processes'] / rates['GORP, 1 process']:.2f}")


if __name__ == "__main__":
    main()
