"""`efhorizon gorp`: GORP on a table, with a given m or in search of the smallest; or on a live environment."""

from __future__ import annotations

import argparse
from pathlib import Path

from efhorizon.commands import _arguments, _environments, _exit, _types
from efhorizon.commands._exit import UsageError

HELP = "run GORP, or find the fewest episodes with which it succeeds"
DESCRIPTION = """\
Runs GORP, the paper's simple algorithm: it tries every sequence of k actions
with m random episodes each, and keeps the best first action. Without --m, it
searches for the smallest m with which at least half of the runs return an
optimal policy, and prints the sample complexity.

With --live it plays in the environment itself, which needs no table. TABLE is
then a name from `efhorizon list`, an Atari game such as freeway or
freeway_1000_fs4 (default: horizon 27,000, frameskip 4), or an environment as
`efhorizon build` takes it: a Gymnasium id, module:Id or file.py:Class.
"""
EXAMPLE = """\
efhorizon gorp freeway_10_fs30 --k 1
  efhorizon gorp freeway --live --m 10 --max-steps 1e6 --checkpoints saved
  efhorizon gorp FrozenLake-v1 --live --env-arg is_slippery=False --m 20"""

_MAX_M = 10**9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_table(parser, more="; with --live, an environment")
    _arguments.add_horizon(parser, "that of the table or environment")
    parser.add_argument(
        "--k", type=_types.count(), default=1, metavar="K", help="length of the action sequences (default: 1)"
    )
    parser.add_argument(
        "--m",
        type=_types.count(most=_MAX_M),
        metavar="M",
        help="episodes for each sequence (default: search for the fewest)",
    )
    parser.add_argument(
        "--runs",
        type=_types.count(most=_arguments.MAX_RUNS),
        metavar="N",
        help="independent runs (default: 101; 1 with --live)",
    )
    _arguments.add_seed(parser, "the first run")
    parser.add_argument(
        "--budget",
        type=_types.count(),
        metavar="N",
        help="when searching: timesteps of a run, at most (default: 100,000,000)",
    )
    parser.add_argument(
        "--ties",
        choices=("uniform", "lowest", "adversarial"),
        help="which of several best sequences is taken: one at random, the first, or the worst (default: uniform); "
        "if given, the exact chance of success is shown too",
    )
    _arguments.add_exploration_policy(parser)
    parser.add_argument("--live", action="store_true", help="play in the environment instead of on a table")
    parser.add_argument(
        "--checkpoints", type=Path, metavar="DIR", help="with --live: where runs are saved, and resumed from"
    )
    parser.add_argument(
        "--max-steps", type=_types.count(), metavar="N", help="with --live: stop a run after this many steps"
    )
    _environments.add_environment_arguments(parser, "with --live: ")
    _arguments.add_json(parser)


def kept(options: argparse.Namespace) -> str:
    if options.checkpoints is None:
        return _exit.NOTHING_KEPT
    return _exit.kept_in(options.checkpoints, "checkpoints are kept")


def run(options: argparse.Namespace) -> int:
    from efhorizon.commands import _gorp

    if not options.live:
        for name in ("checkpoints", "max_steps", "env_arg", "wrapper"):
            if getattr(options, name) not in (None, []):
                raise UsageError(f"--{name.replace('_', '-')} goes with --live")
        return _gorp.run_on_table(options)
    if options.exploration_policy is not None:
        raise UsageError("--exploration-policy is about the states of a table: it does not go with --live")
    if options.ties == "adversarial":
        raise UsageError("--ties adversarial needs a table: it does not go with --live")
    if options.m is None:
        raise UsageError("--live needs --m: it runs GORP, it does not search for m")
    return _gorp.run_live(options)
