"""Demonstrators from nearly random to nearly optimal, cloned: policies for `efhorizon study --policies`.

    python benchmarks/demonstrators.py NAME ... --out policies [--noise 0.9,0.5,0.2] [--episodes 50] [--tables tables]
    efhorizon study NAME ... --policies policies --algos gorp,ppo

A demonstrator plays an optimal policy that does not dawdle, but takes a random action with a chance of `--noise`. It is
played on the table, where a state shows what the live environment shows; what it did in each observation is cloned with
the paper's settings (`efhorizon.policies.clone`). OUT gets one folder for each noise, with a network for each name.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target
from efhorizon.mdp import TabularMDP
from efhorizon.policies.clone import CloneSettings, cloned
from efhorizon.policies.prompt_plan import prompt_plan
from efhorizon.policies.tabulate import observations_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME", help="of the catalogue")
    parser.add_argument("--out", type=Path, required=True, help="folder of policies")
    parser.add_argument("--noise", default="0.9,0.5,0.2", help="chances of a random action")
    parser.add_argument("--episodes", type=int, default=50, help="of each demonstrator")
    parser.add_argument("--tables", type=Path, default=Path("tables"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for noise in map(float, options.noise.split(",")):
        folder = options.out / f"cloned-{noise:g}"
        folder.mkdir(parents=True, exist_ok=True)
        about = {
            "title": f"cloned from an optimal player with {100 * noise:g}% random actions",
            "method": "cloned",
            "noise": noise,
            "episodes": options.episodes,
        }
        (folder / "about.json").write_text(json.dumps(about, indent=1) + "\n")
    for name in options.names:
        mdp = build(catalogue_target(name), Options(out=options.tables, num_workers=1)).mdp
        assert mdp is not None
        table, observations, shown = observations_of(mdp)
        for noise in map(float, options.noise.split(",")):
            rng = np.random.default_rng((options.seed, round(1000 * noise)))
            counts, returned = played(table, shown, len(observations), noise, options.episodes, rng)
            policy = cloned(observations, counts, settings=CloneSettings(seed=options.seed))
            policy.save(options.out / f"cloned-{noise:g}" / f"{name}.npz")
            print(
                f"{name}: noise {noise:g}, mean return {returned:.3g}, labels predicted {policy.training.accuracy:.0%}",
                file=sys.stderr,
            )


def played(
    table: TabularMDP,
    shown: NDArray[np.int32],  # [S], the observation of each state
    num_observations: int,
    noise: float,
    episodes: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], float]:
    """How often each action was taken in each observation [U, A], and the mean return."""
    plan = prompt_plan(table).actions
    counts = np.zeros((num_observations, table.num_actions), np.int64)
    rewards, total = table.rewards, 0.0
    for _ in range(episodes):
        state = 0
        for time in range(table.horizon):
            is_random = rng.random() < noise
            action = int(rng.integers(table.num_actions)) if is_random else int(plan[time, state])
            counts[shown[state], action] += 1
            total += float(rewards[state, action])
            state = int(table.transitions[state, action])
            if state < 0:
                break
    return counts, total / episodes


if __name__ == "__main__":
    main()
