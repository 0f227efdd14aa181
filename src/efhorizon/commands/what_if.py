"""`efhorizon what-if`: which changes of an environment would make it easier to learn."""

from __future__ import annotations

import argparse

from efhorizon.commands import _arguments, _exit, _types

HELP = "say what to change to make it easier"
DESCRIPTION = """\
Tries changes of a table, without running its environment again: rewards for
progress, other horizons, action repeat, fewer actions, discounts, exploration
policies, and starts further along. Prints the effective horizon, GORP's
timesteps and the forecasts for PPO and DQN with each of them, best first.

It says which changes help on paper only: because they need the solution, some
optimal behaviour is lost, or PPO or DQN is forecast to need longer. Ctrl-C
shows what was tried so far.
"""
EXAMPLE = """\
efhorizon what-if MiniGrid-DoorKey-5x5-v0
  efhorizon what-if MiniGrid-DoorKey-5x5-v0 --kind repeat actions --json
  efhorizon what-if my-table --potential shaping.py:progress --weight 0.1 1"""

_KINDS = ("potential", "horizon", "repeat", "actions", "discount", "exploration", "start")
_MAX_POINTS = 10**12
_MAX_REPEAT = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_table(parser)
    parser.add_argument("--kind", nargs="+", choices=_KINDS, metavar="KIND", help=f"try only {', '.join(_KINDS)}")
    parser.add_argument(
        "--potential",
        action="append",
        default=[],
        metavar="FILE.py:NAME",
        help="also try a function of yours as a potential; its parameters are some of state, observation, screen",
    )
    parser.add_argument(
        "--weight",
        type=_types.number,
        nargs="+",
        metavar="W",
        help="what a potential of 1 is worth, as a share of the largest reward (default: 0.1)",
    )
    parser.add_argument(
        "--horizon",
        type=_types.count(most=_arguments.MAX_HORIZON),
        nargs="+",
        metavar="T",
        help="horizons to try (default: half, just enough and twice, where the table has them)",
    )
    parser.add_argument(
        "--repeat",
        type=_types.count(most=_MAX_REPEAT),
        nargs="+",
        metavar="N",
        help="action repeats to try (default: 2 to 8)",
    )
    parser.add_argument(
        "--gamma", type=_types.fraction, nargs="+", metavar="G", help="discounts to try (default: 0.99 0.95 0.9)"
    )
    parser.add_argument(
        "--max-points",
        type=_types.count(most=_MAX_POINTS),
        metavar="N",
        help="work on each change, in lattice points; with more, more figures are exact (default: 4 million)",
    )
    _arguments.add_results_folder(parser, "the best of them, with the analysis of the table")
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    from rich.progress import BarColumn, MofNCompleteColumn

    from efhorizon.bounds.quick_horizon import QUICK_POINTS
    from efhorizon.commands import _terminal
    from efhorizon.io.tables import load_table
    from efhorizon.render.terminal.what_if import what_if_screen
    from efhorizon.study.kept_changes import keep_changes
    from efhorizon.what_if.trials import Options, Progress, what_if
    from efhorizon.what_if.user_function import UserFunction

    mdp = load_table(options.table, options.tables)
    chosen = Options(
        kinds=options.kind,
        potentials=[UserFunction.load(given) for given in options.potential],
        weights=options.weight,
        horizons=options.horizon,
        repeats=options.repeat,
        gammas=options.gamma,
        max_points=options.max_points or QUICK_POINTS,
    )
    with _terminal.bars(BarColumn(), MofNCompleteColumn(), _terminal.LineColumn("{task.description}")) as bar:
        task, lines = bar.add_task("the table as it is", total=None), _terminal.SlowLines()

        def on_progress(at: Progress) -> None:
            bar.update(task, completed=at.number, total=at.num_changes or None, description=at.title)
            lines.say(f"{at.number} of {at.num_changes} changes tried; now: {at.title}")

        result = what_if(mdp, chosen, on_progress=on_progress)
    refused = keep_changes(options.results, mdp, result)
    if options.json:
        _terminal.print_json(result.as_json())
    else:
        _terminal.show(what_if_screen(result))
    _terminal.say(
        refused or f"kept in {options.results} (for a web page: efhorizon report {options.results})", style="dim"
    )
    if result.left_out:
        return _terminal.failed(
            f"interrupted: {len(result.trials)} of {result.num_planned} changes were tried", _exit.INTERRUPTED
        )
    return _exit.DONE
