"""`efhorizon demo`: the whole pipeline on a dozen small MDPs of all three suites, to the report, in some minutes."""

from __future__ import annotations

import argparse
from pathlib import Path

from efhorizon.commands.study import num_cores, run_plan
from efhorizon.study.plan import Plan, RunPlan

# Small, not degenerate, and from easy to hard for random exploration. Images cost a CNN hundreds of times more than
# gridworlds cost their small network, so there are few of them.
NAMES = (
    "freeway_10_fs30",
    "maze_easy_l0_30_fs1",
    "fruitbot_easy_l0_10_fs8",
    "MiniGrid-Empty-5x5-v0",
    "MiniGrid-Empty-8x8-v0",
    "MiniGrid-DoorKey-5x5-v0",
    "MiniGrid-DoorKey-5x5-OpenDoorsPickupShaped-v0",
    "MiniGrid-LavaGapS5-v0",
    "MiniGrid-LavaGapS6-v0",
    "MiniGrid-MultiRoom-N2-S4-v0",
    "MiniGrid-KeyCorridorS3R1-v0",
)
GRIDWORLD_STEPS, IMAGE_STEPS = 200_000, 10_000
SEEDS = 3
NOTE = (
    f"The demo's budget is reduced: one setting instead of two, and {SEEDS} seeds of {GRIDWORLD_STEPS:,} timesteps on "
    f"gridworlds, 1 seed of {IMAGE_STEPS:,} on Atari and Procgen, instead of 5 seeds of 5,000,000. What is not solved "
    "here may well be solved by the paper's budget."
)


def demo_plan(out: Path) -> Plan:
    """The study that the demo runs."""
    return Plan(
        out=out,
        names=NAMES,
        runs=(
            RunPlan("gorp"),
            RunPlan("ppo", "rollout128", SEEDS, GRIDWORLD_STEPS),
            RunPlan("dqn", "exploration0.1", SEEDS, GRIDWORLD_STEPS),
        ),
        image_runs=(
            RunPlan("gorp"),
            RunPlan("ppo", "rollout128", 1, IMAGE_STEPS),
            RunPlan("dqn", "exploration0.1", 1, IMAGE_STEPS),
        ),
        num_workers=num_cores(),
        note=NOTE,
    )


def run(options: argparse.Namespace) -> int:
    return run_plan(demo_plan(options.out), as_json=options.json)
