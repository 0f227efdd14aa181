"""GORP on a table against GORP in a Python loop over the live environment: steps a second, in one run, as a ratio.

    python benchmarks/gorp.py [--seconds 10] [--json] [NAME ...]

Both sides run the same algorithm with the same k = 1 and m, and count the steps that they really take (rollouts start
where they differ, and end with the episode or where no reward can follow). The live side is `live_gorp` on the
Gymnasium environment, put back by snapshots. The table side is measured with one thread, as the live side has, and with
all. The two sides take turns, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numba
import numpy as np

from efhorizon import TabularMDP, catalog
from efhorizon.agents.live.gorp import live_environment, live_gorp
from efhorizon.agents.tabular.gorp import gorp
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target

TURNS = 3
TARGET = 1000.0
EPISODES = 10  # m
NAMES = ("MiniGrid-KeyCorridorS3R1-v0", "freeway_10_fs30")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of the catalogue (default: {' '.join(NAMES)})")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each side of each name")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = {name: measured(name, options.seconds / TURNS) for name in options.names or NAMES}
    if options.json:
        print(json.dumps(results, indent=1))
        return
    for name, result in results.items():
        verdict = "ok" if result["ratio"] >= TARGET else f"below the target of {TARGET:g}"
        print(
            f"{name:30} table {result['table']:>13,.0f} steps/s (all threads {result['table_all_threads']:,.0f}), "
            f"live {result['live']:,.0f}: {result['ratio']:,.0f} times ({verdict})"
        )


def measured(name: str, seconds: float) -> dict[str, float]:
    """Steps a second of both sides, over all turns."""
    with tempfile.TemporaryDirectory() as folder:
        mdp = build(catalogue_target(name), Options(out=Path(folder), num_workers=1)).mdp
    assert mdp is not None
    threads = numba.get_num_threads()
    on_table(mdp, 0.0, 1)  # compiled, or loaded from the cache
    rates: dict[str, list[tuple[int, float]]] = {"table": [], "table_all_threads": [], "live": []}
    for turn in range(TURNS):
        rates["table"].append(on_table(mdp, seconds, 1, turn))
        rates["table_all_threads"].append(on_table(mdp, seconds, threads, turn))
        rates["live"].append(on_live_environment(name, seconds, turn))
    result = {
        side: sum(steps for steps, _ in turns) / sum(taken for _, taken in turns) for side, turns in rates.items()
    }
    return {**result, "ratio": result["table"] / result["live"]}


def on_table(mdp: TabularMDP, seconds: float, threads: int, seed: int = 0) -> tuple[int, float]:
    """Steps and seconds: more and more runs at once, until they take as long as asked."""
    numba.set_num_threads(threads)
    runs = 8
    while True:
        started = time.perf_counter()
        steps = int(gorp(mdp, k=1, m=EPISODES, runs=runs, rng=np.random.default_rng(seed)).steps_played.sum())
        taken = time.perf_counter() - started
        if taken >= seconds / 2:
            return steps, taken
        runs *= 2


def on_live_environment(name: str, seconds: float, seed: int) -> tuple[int, float]:
    """Steps and seconds of first iterations (A m whole episodes), until they have taken as long as asked."""
    environment = live_environment(catalog.entry(name).gym_id)
    steps, taken = 0, 0.0
    while taken < seconds:
        started = time.perf_counter()
        steps += live_gorp(environment, k=1, m=EPISODES, seed=seed, max_steps=1).steps_played
        taken += time.perf_counter() - started
        environment = live_environment(catalog.entry(name).gym_id)
        seed += TURNS
    return steps, taken


if __name__ == "__main__":
    main()
