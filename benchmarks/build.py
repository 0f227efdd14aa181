"""How fast and how small the explorer is, against what it runs on: both sides measured in one run, printed as ratios.

    python benchmarks/build.py [--seconds 15] [--only emulator|workers|minigrid|memory] [--json]

- emulator: one worker against the bare emulator, which plays as many frames and stores nothing (pong, freeway);
- workers:  two workers against one (pong);
- minigrid: the explorer against deep-copying the environment for each pair;
- memory:   resident bytes a state, from a search of 358,292 states (MiniGrid-DoorKey-16x16-v0), with no frontier left.

The two sides of a ratio take turns, so that a machine that gets slower or busier meanwhile slows both.
"""

from __future__ import annotations

import argparse
import copy
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np

from efhorizon.build.explore import Budget, Progress, explore, opened_search
from efhorizon.build.target import catalogue_target

TURNS = 3
WARM_UP_SECONDS = 4.0  # starting processes and the first layers, which keep no worker busy
TARGETS = {"emulator": 0.9, "workers": 1.7, "minigrid": 5.0, "memory": 120.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each turn")
    parser.add_argument("--only", choices=TARGETS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    measurements: dict[str, Callable[[float], dict[str, float]]] = {
        "emulator pong": lambda seconds: against_emulator("pong_200_fs30", seconds),
        "emulator freeway": lambda seconds: against_emulator("freeway_200_fs30", seconds),
        "workers pong": lambda seconds: two_workers_against_one("pong_200_fs30", seconds),
        "minigrid": lambda seconds: against_deep_copies("MiniGrid-DoorKey-16x16-v0", seconds),
        "memory": lambda seconds: memory_of_a_search("MiniGrid-DoorKey-16x16-v0"),
    }
    results = {}
    for name, measurement in measurements.items():
        kind = name.split()[0]
        if options.only in (None, kind):
            results[name] = measurement(options.seconds)
            if not options.json:
                figures = ", ".join(f"{key} {value:,.3g}" for key, value in results[name].items())
                print(
                    f"{name:17} {figures}   (wanted: {'under' if kind == 'memory' else 'at least'} {TARGETS[kind]:g})",
                    flush=True,
                )
    if options.json:
        print(json.dumps(results, indent=1))


def against_emulator(name: str, seconds: float) -> dict[str, float]:
    explorer, bare = [], []
    for _ in range(TURNS):
        bare.append(bare_emulator_rate(name, seconds / 2))
        explorer.append(explorer_rate(name, seconds, num_workers=1))
        bare.append(bare_emulator_rate(name, seconds / 2))
    rates = {"explorer pairs/s": float(np.mean(explorer)), "bare pairs/s": float(np.mean(bare))}
    return {**rates, "ratio": rates["explorer pairs/s"] / rates["bare pairs/s"]}


def two_workers_against_one(name: str, seconds: float) -> dict[str, float]:
    one, two = [], []
    for _ in range(TURNS):
        one.append(explorer_rate(name, seconds, num_workers=1))
        two.append(explorer_rate(name, seconds, num_workers=2))
    rates = {"two pairs/s": float(np.mean(two)), "one pairs/s": float(np.mean(one))}
    return {**rates, "ratio": rates["two pairs/s"] / rates["one pairs/s"]}


def against_deep_copies(name: str, seconds: float) -> dict[str, float]:
    explorer, copies = [], []
    for _ in range(TURNS):
        copies.append(deep_copy_rate(name, seconds / 2))
        explorer.append(explorer_rate(name, seconds, num_workers=1))
        copies.append(deep_copy_rate(name, seconds / 2))
    rates = {"explorer pairs/s": float(np.mean(explorer)), "deep copies pairs/s": float(np.mean(copies))}
    return {**rates, "ratio": rates["explorer pairs/s"] / rates["deep copies pairs/s"]}


def explorer_rate(name: str, seconds: float, num_workers: int) -> float:
    """Pairs a second of a search once its workers are busy, everything stored on disk."""
    seen: list[Progress] = []
    _search(name, num_workers, Budget(max_minutes=(seconds + WARM_UP_SECONDS) / 60), seen.append)
    first = next((progress for progress in seen if progress.seconds >= WARM_UP_SECONDS), seen[0])
    return (seen[-1].num_pairs - first.num_pairs) / (seen[-1].seconds - first.seconds)


def bare_emulator_rate(name: str, seconds: float) -> float:
    """Pairs a second of the emulator alone: random actions held for the frameskip, nothing looked at."""
    from ale_py import ALEInterface, LoggerMode, roms

    spec = catalogue_target(name).spec
    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    ale.setInt("random_seed", 0)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(roms.get_rom_path(spec.arguments["game"]))
    ale.reset_game()
    actions = np.random.default_rng(0).choice([action.value for action in ale.getMinimalActionSet()], size=100_000)
    frames, act = range(spec.arguments["frameskip"]), ale.act
    pairs, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        action = int(actions[pairs % len(actions)])
        for _ in frames:
            act(action)
        if ale.game_over():
            ale.reset_game()
        pairs += 1
    return pairs / (time.perf_counter() - started)


def deep_copy_rate(name: str, seconds: float) -> float:
    """Pairs a second of the plain way: copy the environment, step the copy."""
    import minigrid  # noqa: F401 - registers its environments

    env = gymnasium.make(name, disable_env_checker=True).unwrapped
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    pairs, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        copy.deepcopy(env).step(int(rng.integers(6)))
        pairs += 1
    return pairs / (time.perf_counter() - started)


def memory_of_a_search(name: str) -> dict[str, float]:
    """Resident bytes a state of all processes: growth from the first thousand states to the end, and at the peak."""
    seen: list[Progress] = []
    _search(name, 1, Budget(), seen.append)
    small = next(progress for progress in seen if progress.num_states > 1000)
    states = seen[-1].num_states - small.num_states
    peak = max(progress.memory for progress in seen)
    return {
        "states": seen[-1].num_states,
        "bytes a state": (seen[-1].memory - small.memory) / states,
        "at the peak": (peak - small.memory) / states,
    }


def _search(name: str, num_workers: int, budget: Budget, on_progress: Callable[[Progress], None]) -> None:
    target = catalogue_target(name)
    with tempfile.TemporaryDirectory() as folder:
        search = opened_search(Path(folder), target.spec(), {})
        explore(search, target.horizon, target.spec, num_workers=num_workers, budget=budget, on_progress=on_progress)
        search.close()


if __name__ == "__main__":
    main()
