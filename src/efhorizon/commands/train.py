"""`efhorizon train`: PPO, DQN or GORP on tables, one row per run, with progress and resumption."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path

from efhorizon.commands import _arguments, _exit, _stochastic, _types
from efhorizon.study import sweep

HELP = "train PPO, DQN or GORP: how long until they are optimal?"
DESCRIPTION = """\
Trains with the paper's settings and records after how many timesteps each run
is optimal. Writes one row per run to the results folder and prints the
medians. Rows that are there already are not run again, so a sweep that was
stopped continues when the same command is run again.
"""
EXAMPLE = "efhorizon train MiniGrid-Empty-5x5-v0 --algo ppo --steps 200k"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_table(parser, several=True)
    parser.add_argument("--algo", choices=sweep.ALGORITHMS, required=True, help="the algorithm")
    parser.add_argument(
        "--backend",
        choices=sweep.BACKENDS,
        default="table",
        help="train on the table, or with Stable-Baselines3 in the live environment (default: table)",
    )
    _arguments.add_runs(parser)
    parser.add_argument(
        "--settings",
        default=sweep.PAPER,
        metavar="S",
        help="settings by name, separated by commas, such as rollout128 (default: all of the paper's)",
    )
    _arguments.add_horizon(parser)
    _arguments.add_results_folder(parser, "the rows")
    _arguments.add_exploration_policy(parser, "DQN, GORP: ")
    parser.add_argument(
        "--initial",
        type=Path,
        metavar="F.npz",
        help="PPO, DQN: parameters to start from, named as in Stable-Baselines3's state dictionary",
    )
    parser.add_argument(
        "--sticky",
        type=_types.fraction,
        metavar="Q",
        help="PPO, DQN: train with sticky actions, such as 0.25; greedy policies are evaluated exactly, and a run is "
        "solved within 1%% of the optimal return. Prints the result and keeps no rows",
    )
    parser.add_argument("--tensorboard", type=Path, metavar="DIR", help="also write learning curves for TensorBoard")
    _arguments.add_json(parser)


def kept(options: argparse.Namespace) -> str:
    return _exit.kept_in(options.results, "finished runs are kept")


def run(options: argparse.Namespace) -> int:
    from efhorizon.agents.deep.pretrained import load_parameters
    from efhorizon.commands import _terminal
    from efhorizon.commands._tensorboard import Board
    from efhorizon.commands._training import Screen, run_all, summary
    from efhorizon.io.tables import load_table
    from efhorizon.planning.policies import load_policy
    from efhorizon.render.terminal.training import training_summary
    from efhorizon.study.results import Results
    from efhorizon.study.tasks import check_installed, check_start, tasks

    if options.sticky is not None:
        return _stochastic.trained(options)
    policy_file, parameter_file = options.exploration_policy, options.initial
    sweep.named_settings(options.algo, options.settings)  # before any table is read
    check_start(options.algo, has_policy=policy_file is not None, has_parameters=parameter_file is not None)
    check_installed(options.algo, options.backend)
    grid = tasks(
        [load_table(name, options.tables, horizon=options.horizon) for name in options.table],
        options.algo,
        backend=options.backend,
        settings=options.settings,
        num_seeds=options.seeds,
        max_steps=options.steps,
        exploration_policy=None if policy_file is None else load_policy(policy_file),
        initial=None if parameter_file is None else load_parameters(parameter_file),
    )
    results = Results.made(options.results)
    with ExitStack() as stack:
        board = stack.enter_context(Board(options.tensorboard, grid)) if options.tensorboard else None
        run_all(grid, results, stack.enter_context(Screen(grid, results)), board)
    found = summary(grid, results)
    if options.json:
        _terminal.print_json(found.as_json())
    else:
        _terminal.show(training_summary(found))
    return _exit.DONE
