"""`efhorizon sqirl`: how many timesteps SQIRL needs on a table with chance, or in an environment."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from efhorizon.commands import _arguments, _environments, _exit, _stochastic, _types
from efhorizon.commands._exit import UsageError

if TYPE_CHECKING:
    from efhorizon.stochastic.sqirl_live import Regression

HELP = "run SQIRL, on a table with chance or live: does it succeed?"
DESCRIPTION = """\
Plays SQIRL, the counterpart of GORP for environments with chance, with exact
means for regression, or with a network. Without --m it looks for the least
number of episodes with which at least half of the runs succeed. A run succeeds
if the policy that it returns, evaluated exactly, is within 1% of optimal.

With --live it plays in the environment itself, which needs no table. TABLE is
then a name from `efhorizon list`, or an environment as `efhorizon build` takes
it: a Gymnasium id, module:Id or file.py:Class. The policy is judged by
episodes, with an interval; exactly, if --known names a table of it.
"""
EXAMPLE = """\
efhorizon sqirl freeway_10_fs30 --sticky 0.25 --k 1 --runs 50
  efhorizon sqirl FrozenLake-v1 --live --k 2 --m 500 --known FrozenLake-v1-T100
  efhorizon sqirl CartPole-v1 --live --horizon 30 --m 50 --network --optimal 30"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_table(parser, more="; with --live, an environment")
    _arguments.add_horizon(parser, "that of the table or environment")
    parser.add_argument("--sticky", type=_types.fraction, metavar="Q", help="with sticky actions, such as 0.25")
    parser.add_argument("--k", type=_types.count(), default=1, metavar="K", help="steps of the plan (default: 1)")
    parser.add_argument(
        "--m", type=_types.count(most=_arguments.MAX_RUNS), metavar="M", help="episodes for each timestep"
    )
    parser.add_argument(
        "--runs",
        type=_types.count(most=_arguments.MAX_RUNS),
        metavar="N",
        help="independent runs (default: 20; 1 with --live)",
    )
    _arguments.add_seed(parser, "the runs")
    live = "with --live: "
    parser.add_argument("--live", action="store_true", help="play in the environment instead of on a table")
    parser.add_argument(
        "--network", action="store_true", help=f"{live}regression with a network, where few observations come again"
    )
    parser.add_argument(
        "--episodes",
        type=_types.count(most=_arguments.MAX_RUNS),
        metavar="N",
        help=f"{live}episodes that judge the policy (default: 1,000)",
    )
    parser.add_argument(
        "--known", metavar="TABLE", help=f"{live}a table of the environment, on which policies are evaluated exactly"
    )
    parser.add_argument(
        "--optimal", type=_types.number, metavar="R", help=f"{live}the optimal return, if no table is known"
    )
    _environments.add_environment_arguments(parser, live)
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    if options.live:
        return _live(options)
    for name in ("network", "episodes", "known", "optimal", "env_arg", "wrapper"):
        if getattr(options, name) not in (None, False, []):
            raise UsageError(f"--{name.replace('_', '-')} goes with --live")
    return _on_table(options)


def _on_table(options: argparse.Namespace) -> int:
    import numpy as np

    from efhorizon.commands import _terminal
    from efhorizon.io.tables import opened_table, table_path
    from efhorizon.stochastic.mdp import from_deterministic
    from efhorizon.stochastic.planning import Plan
    from efhorizon.stochastic.sqirl import least_m, share_interval, sqirl

    path, runs = table_path(options.table, options.tables), options.runs or 20
    mdp = _stochastic.table_of(path, options) or from_deterministic(opened_table(path, horizon=options.horizon))
    plan, rng = Plan(mdp), np.random.default_rng(options.seed)
    content: dict[str, object] = {"id": mdp.metadata.get("id"), "k": options.k, "runs": runs}
    with _terminal.waiting(f"SQIRL on {path}"):
        if options.m is None:
            content |= {"m": None, **(least_m(plan, k=options.k, runs=runs, rng=rng) or {})}
        else:
            found = sqirl(plan, k=options.k, m=options.m, runs=runs, rng=rng)
            content |= {
                "m": options.m,
                "success": found.success_rate,
                "interval": list(share_interval(int(found.successes.sum()), runs)),
                "timesteps": float(found.timesteps.mean()),
                "returns": found.returns.tolist(),
            }
    content["optimal_return"] = plan.optimal.values.at_start
    if options.json:
        _terminal.print_json(content)
    elif content["m"] is None:
        _terminal.show([f"SQIRL with k = {options.k} did not succeed in half of {runs} runs, with any m tried"])
    else:
        _terminal.show(
            [
                f"SQIRL with k = {options.k} and m = {content['m']:,} succeeds in {content['success']:.0%} of "
                f"{runs} runs, with {content['timesteps']:,.0f} timesteps each"
            ]
        )
    return _exit.DONE


def _live(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from efhorizon.agents.live.rollouts import EnvironmentName
    from efhorizon.commands import _terminal
    from efhorizon.io.tables import opened_table, table_path
    from efhorizon.render.terminal.stochastic import live_sqirl
    from efhorizon.stochastic.live_episodes import LiveGame
    from efhorizon.stochastic.live_worth import estimated, known
    from efhorizon.stochastic.sqirl_live import sqirl_live
    from efhorizon.stochastic.store import is_stochastic, load

    if options.m is None:
        raise UsageError("--live needs --m: it runs SQIRL, it does not search for m")
    if options.known is not None and options.optimal is not None:
        raise UsageError("--known knows what is optimal; leave out --optimal")
    if options.sticky == 1:
        raise UsageError("--sticky must be below 1")
    name = EnvironmentName(options.table, options.horizon, dict(options.env_arg), options.wrapper)
    chance, regression = options.sticky or 0.0, _regression(options)
    table = None
    if options.known is not None:
        path = table_path(options.known, options.tables)
        is_random = is_stochastic(path)
        table = load(path, horizon=options.horizon) if is_random else opened_table(path, horizon=options.horizon)
        if is_random and chance:
            raise UsageError("--sticky goes with a deterministic table; this one has chance already")
    found: list[dict[str, Any]] = []
    for seed in range(options.seed, options.seed + (options.runs or 1)):
        game = LiveGame(name, chance=chance, seed=seed)
        try:
            exact = None if table is None else known(table, chance, game.width, game.horizon)
            with _terminal.waiting(f"SQIRL in {options.table}") as say:

                def on_progress(time: int, timesteps: int, game: LiveGame = game) -> None:
                    say(f"{options.table}: {time} of {game.horizon} timesteps planned, {timesteps:,} played")

                run = sqirl_live(
                    game, k=options.k, m=options.m, seed=seed, regression=regression, on_progress=on_progress
                )
                worth, optimal = (
                    (estimated(game, run, options.episodes or 1000), options.optimal)
                    if exact is None
                    else exact.worth(run.policy)
                )
        finally:
            game.close()
        found.append(
            {
                "seed": seed,
                "timesteps": run.timesteps,
                **asdict(worth),
                "optimal_return": optimal,
                "success": worth.is_success(optimal),
            }
        )
    content = {
        "id": options.table,
        "live": True,
        "k": options.k,
        "m": options.m,
        "sticky": chance,
        "regression": regression,
        "known": options.known,
        "runs": found,
    }
    if options.json:
        _terminal.print_json(content)
    else:
        _terminal.show(live_sqirl(content))
    return _exit.DONE


def _regression(options: argparse.Namespace) -> Regression:
    return "network" if options.network else "means"
