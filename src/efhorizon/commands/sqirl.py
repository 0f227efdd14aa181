"""`efhorizon sqirl`: how many timesteps SQIRL needs on a table with chance."""

from __future__ import annotations

import argparse

from efhorizon.commands import _arguments, _exit, _stochastic, _types

HELP = "run SQIRL on a table with chance: how often does it succeed?"
DESCRIPTION = """\
Plays SQIRL, the counterpart of GORP for environments with chance, with exact
means for regression. Without --m it looks for the least number of episodes with
which at least half of the runs succeed. A run succeeds if the policy that it
returns, evaluated exactly, is within 1% of optimal.
"""
EXAMPLE = "efhorizon sqirl freeway_10_fs30 --sticky 0.25 --k 1 --runs 50"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_table(parser)
    _arguments.add_horizon(parser)
    parser.add_argument(
        "--sticky", type=_types.fraction, metavar="Q", help="the table with sticky actions, such as 0.25"
    )
    parser.add_argument("--k", type=_types.count(), default=1, metavar="K", help="steps of the plan (default: 1)")
    parser.add_argument(
        "--m", type=_types.count(most=_arguments.MAX_RUNS), metavar="M", help="episodes for each timestep"
    )
    parser.add_argument(
        "--runs",
        type=_types.count(most=_arguments.MAX_RUNS),
        default=20,
        metavar="N",
        help="independent runs (default: 20)",
    )
    _arguments.add_seed(parser, "the runs")
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    import numpy as np

    from efhorizon.commands import _terminal
    from efhorizon.io.tables import opened_table, table_path
    from efhorizon.stochastic.mdp import from_deterministic
    from efhorizon.stochastic.planning import Plan
    from efhorizon.stochastic.sqirl import least_m, share_interval, sqirl

    path = table_path(options.table, options.tables)
    mdp = _stochastic.table_of(path, options) or from_deterministic(opened_table(path, horizon=options.horizon))
    plan, rng = Plan(mdp), np.random.default_rng(options.seed)
    content: dict[str, object] = {"id": mdp.metadata.get("id"), "k": options.k, "runs": options.runs}
    with _terminal.waiting(f"SQIRL on {path}"):
        if options.m is None:
            content |= {"m": None, **(least_m(plan, k=options.k, runs=options.runs, rng=rng) or {})}
        else:
            found = sqirl(plan, k=options.k, m=options.m, runs=options.runs, rng=rng)
            content |= {
                "m": options.m,
                "success": found.success_rate,
                "interval": list(share_interval(int(found.successes.sum()), options.runs)),
                "timesteps": float(found.timesteps.mean()),
                "returns": found.returns.tolist(),
            }
    content["optimal_return"] = plan.optimal.values.at_start
    if options.json:
        _terminal.print_json(content)
    elif content["m"] is None:
        _terminal.show([f"SQIRL with k = {options.k} did not succeed in half of {options.runs} runs, with any m tried"])
    else:
        _terminal.show(
            [
                f"SQIRL with k = {options.k} and m = {content['m']:,} succeeds in {content['success']:.0%} of "
                f"{options.runs} runs, with {content['timesteps']:,.0f} timesteps each"
            ]
        )
    return _exit.DONE
