"""`efhorizon demo`: the whole pipeline, up to the report, on a dozen small MDPs of all three suites, in minutes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from efhorizon.agents.deep.protocol import PAPER_STEPS
from efhorizon.commands import _arguments, _exit
from efhorizon.study import sweep

if TYPE_CHECKING:
    from efhorizon.study.plan import Plan

HELP = "run a small study of all three suites, from tables to a report"
DESCRIPTION = """\
Builds a dozen small tables of Atari, Procgen and MiniGrid, analyzes them,
trains GORP, PPO and DQN on them, and writes a report: DIR/report/index.html.
It takes a few minutes. A demo that was stopped continues when the same command
is run again.
"""
EXAMPLE = "efhorizon demo && efhorizon serve demo/report --open"

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
    f"gridworlds, 1 seed of {IMAGE_STEPS:,} on Atari and Procgen, instead of {sweep.SEEDS} seeds of {PAPER_STEPS:,}. "
    "What is not solved here may well be solved with the paper's budget."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, default=Path("demo"), metavar="DIR", help="folder for everything (default: demo)"
    )
    _arguments.add_json(parser)


def kept(options: argparse.Namespace) -> str:
    return _exit.kept_in(options.out, "what is done is kept")


def run(options: argparse.Namespace) -> int:
    from efhorizon.commands import _study

    return _study.run_plan(demo_plan(options.out), as_json=options.json)


def demo_plan(out: Path) -> Plan:
    """The study that the demo runs."""
    from efhorizon.io.machine import num_cores
    from efhorizon.study.plan import Plan
    from efhorizon.study.tasks import RunPlan

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
