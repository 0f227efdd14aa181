"""How fast `ef.TableVectorEnv` is: steps a second on one core, with states and with flat vectors as observations.

    python benchmarks/table_env.py [--envs 1024] [--seconds 2]

Goal: 10 million with states, 1 million with flat observations (MiniGrid's 2,739 numbers or more), with 1,024
environments. Actions are drawn beforehand. Beside them, one `TableEnv` and Gymnasium's SyncVectorEnv of them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import SyncVectorEnv

import efhorizon as ef

NAME = "MiniGrid-KeyCorridorS3R1-v0"


def steps_per_second(env: Any, num_envs: int, seconds: float) -> float:
    """The best of five stretches: other jobs may have the core in between."""
    rng = np.random.default_rng(0)
    actions = rng.integers(env.single_action_space.n, size=(64, num_envs))
    env.reset(seed=0)
    for row in actions:
        env.step(row)
    best = 0.0
    for _ in range(5):
        began, calls = time.perf_counter(), 0
        while (passed := time.perf_counter() - began) < seconds / 5:
            for row in actions:
                env.step(row)
            calls += len(actions)
        best = max(best, calls * num_envs / passed)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mdp = ef.build(NAME, out=Path(folder))
        print(f"{NAME}: {mdp.num_states} states, {options.envs} environments, one core")
        for observations in ("state", "flat"):
            for copy in (True, False):
                env = ef.TableVectorEnv(mdp, options.envs, observations=observations, copy=copy)
                shape = env.single_observation_space.shape
                rate = steps_per_second(env, options.envs, options.seconds)
                print(f"  {observations:5} {shape!s:8} copy={copy!s:5} {rate:14,.0f} steps a second")
        env = ef.TableVectorEnv(mdp, options.envs, observations="state", info=True)
        rate = steps_per_second(env, options.envs, options.seconds)
        print(f"  state with V*, Q* and regret  {rate:11,.0f} steps a second")
        one = SyncVectorEnv([lambda: ef.TableEnv(mdp, observations="state")] * 8)
        print(f"  SyncVectorEnv of 8 TableEnv   {steps_per_second(one, 8, options.seconds):11,.0f} steps a second")


if __name__ == "__main__":
    main()
