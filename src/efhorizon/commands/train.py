"""`efhorizon train`: PPO, DQN or GORP on tables, one row per run, with progress and resumption."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path

from efhorizon.commands import _arguments, _environments, _exit, _stochastic, _types
from efhorizon.commands._exit import UsageError
from efhorizon.study import sweep

HELP = "train PPO, DQN or GORP: how long until they are optimal?"
DESCRIPTION = """\
Trains with the paper's settings and records after how many timesteps each run
is optimal. Writes one row per run to the results folder and prints the
medians. Rows that are there already are not run again, so a sweep that was
stopped continues when the same command is run again.

With --live it trains in the environment itself, which needs no table. TABLE is
then a name from `efhorizon list`, a full-length Atari game such as pong_full
(27,000 steps of 4 frames, one life), or an environment as `efhorizon build`
takes it: a Gymnasium id, module:Id or file.py:Class. Rows hold learning curves.
"""
EXAMPLE = """\
efhorizon train MiniGrid-Empty-5x5-v0 --algo ppo --steps 200k
  efhorizon train pong_full --live --algo ppo --steps 500k --seeds 1
  efhorizon train pong_full --live --algo gorp --m 1 --steps 5M
  efhorizon train CartPole-v1 --live --algo dqn --steps 50k"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_table(parser, several=True)
    parser.add_argument("--algo", choices=sweep.ALGORITHMS, required=True, help="the algorithm")
    parser.add_argument(
        "--backend",
        choices=sweep.BACKENDS,
        default="table",
        help="train on the table, or with Stable-Baselines3 in the live environment (default: table); with --live: "
        "sb3 stands for Stable-Baselines3, else our own learners train",
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
        help="PPO, DQN: train with sticky actions, such as 0.25; policies are evaluated exactly, and a run is solved "
        "within 1%% of the optimal return. Prints the result and keeps no rows; `efhorizon sticky` keeps them",
    )
    add_live(parser)
    parser.add_argument("--tensorboard", type=Path, metavar="DIR", help="also write learning curves for TensorBoard")
    _arguments.add_json(parser)


def add_live(parser: argparse.ArgumentParser) -> None:
    """Options of training in environments."""
    live = "with --live: "
    parser.add_argument("--live", action="store_true", help="train in the environment instead of on a table")
    parser.add_argument("--m", type=_types.count(), metavar="M", help=f"{live}GORP's episodes for each action sequence")
    parser.add_argument(
        "--k", type=_types.count(), default=1, metavar="K", help=f"{live}length of GORP's sequences (default: 1)"
    )
    parser.add_argument(
        "--evaluate-every",
        type=_types.count(),
        metavar="N",
        help=f"{live}timesteps between greedy episodes (default: 10,000)",
    )
    parser.add_argument(
        "--schedule",
        type=_types.count(),
        metavar="N",
        help=f"{live}timesteps over a tenth of which DQN's random actions become rare (default: those of --steps)",
    )
    parser.add_argument(
        "--device", default="auto", metavar="D", help=f"{live}auto, cpu or cuda (default: a GPU if there is one)"
    )
    parser.add_argument(
        "--threads",
        type=_types.count(most=1024),
        metavar="N",
        help=f"{live}threads, or GORP's processes (default: one per core); results do not depend on it",
    )
    _environments.add_environment_arguments(parser, live)


def kept(options: argparse.Namespace) -> str:
    return _exit.kept_in(options.results, "finished runs are kept")


def run(options: argparse.Namespace) -> int:
    if options.sticky is not None:
        return _stochastic.trained(options)
    if options.live:
        from efhorizon.commands import _live

        _live.check(options)
        return _live.run(options)
    for name in ("m", "evaluate_every", "schedule", "threads", "env_arg", "wrapper"):
        if getattr(options, name) not in (None, []):
            raise UsageError(f"--{name.replace('_', '-')} goes with --live")
    from efhorizon.agents.deep.pretrained import load_parameters
    from efhorizon.commands import _terminal
    from efhorizon.commands._tensorboard import Board
    from efhorizon.commands._training import Screen, run_all, summary
    from efhorizon.io.tables import load_table
    from efhorizon.planning.policies import load_policy
    from efhorizon.render.terminal.training import training_summary
    from efhorizon.study.results import Results
    from efhorizon.study.tasks import check_installed, check_start, tasks

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
