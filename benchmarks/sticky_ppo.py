"""PPO on a sticky table against PPO on the deterministic one: timesteps a second, both sides taking turns in one run.

    python benchmarks/sticky_ppo.py TABLE [--steps 40960] [--turns 3]

The learner is the same; the sticky side draws the chance, and has more nodes. Exact evaluations are not part of it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from efhorizon.agents.deep.observations import ObservedTable, observed_table
from efhorizon.agents.deep.ppo_flat import FlatPPO
from efhorizon.agents.deep.settings import PPOSettings
from efhorizon.io.tables import load_table
from efhorizon.stochastic.observed import sticky_observed_table


def steps_a_second(table: ObservedTable, steps: int) -> float:
    learner = FlatPPO(table, PPOSettings(gamma=0.99), 2**62, [0])
    began, step = time.perf_counter(), 0
    while step < steps:
        done = learner.updates(step).is_done
        step += done.shape[0] * done.shape[2] * done.shape[3]
    return step / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--tables", type=Path, default=Path("tables"))
    parser.add_argument("--steps", type=int, default=40_960)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    mdp = load_table(options.table, options.tables)
    sides = {"deterministic": observed_table(mdp), "sticky": sticky_observed_table(mdp, 0.25)[0]}
    for table in sides.values():
        steps_a_second(table, 1)  # compiles
    found = {name: [0.0] * options.turns for name in sides}
    for turn in range(options.turns):
        for name, table in sides.items():
            found[name][turn] = steps_a_second(table, options.steps)
    for name, speeds in found.items():
        print(f"{name}: {max(speeds):,.0f} timesteps a second at best")
    ratios = np.array(found["sticky"]) / np.array(found["deterministic"])
    low, middle, high = ratios.min(), np.median(ratios), ratios.max()
    print(f"sticky / deterministic, turn by turn: {low:.2f} to {high:.2f}, median {middle:.2f}")


if __name__ == "__main__":
    main()
