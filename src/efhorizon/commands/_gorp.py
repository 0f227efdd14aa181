"""What `efhorizon gorp` does, on a table and on a live environment."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from efhorizon.agents.live.gorp import LiveRun, live_environment, live_gorp
from efhorizon.agents.tabular.gorp import gorp
from efhorizon.agents.tabular.gorp_search import (
    BUDGET,
    RUNS,
    GorpSearch,
    LearningCurve,
    Trial,
    gorp_sample_complexity,
    learning_curve,
)
from efhorizon.agents.tabular.runs import Runs
from efhorizon.commands import _exit, _terminal
from efhorizon.gorp.decisions import TooManySequencesError
from efhorizon.gorp.exact_success import ExactSuccess, UndecidedError
from efhorizon.gorp.success import Success
from efhorizon.gorp.ties import Ties
from efhorizon.io.tables import opened_table, table_path
from efhorizon.mdp import TabularMDP
from efhorizon.planning.policies import ExplorationPolicy, exploration_policy, load_policy
from efhorizon.planning.problem import problem
from efhorizon.planning.return_units import NoLatticeError
from efhorizon.render.terminal.gorp import gorp_runs, live_line, live_runs, trial_line


def run_on_table(options: argparse.Namespace) -> int:
    path = table_path(options.table, options.tables)
    mdp = opened_table(path, horizon=options.horizon)
    policy = None if options.exploration_policy is None else load_policy(options.exploration_policy)
    explorer = exploration_policy(mdp, policy)
    began = time.perf_counter()
    search: GorpSearch | None = None
    if options.m is None:
        search = _searched(mdp, options, explorer)
        m, results = search.m, search.results
    else:
        m, results = options.m, _run_with_m(mdp, options, explorer)
    exact = None if options.ties is None or m is None else _exact_success(mdp, options, explorer, m)
    name = mdp.metadata["id"]
    if options.json:
        content = _content(mdp, options, m, search, results, exact, learning_curve(mdp, results, explorer))
        seconds = round(time.perf_counter() - began, 3)
        _terminal.print_json({"id": name, "path": str(path), **content, "seconds": seconds})
    else:
        _terminal.show(gorp_runs(name, mdp, options.k, m, results, search, _ties(options), exact))
    return _exit.DONE


def _ties(options: argparse.Namespace) -> Ties:
    return options.ties or "uniform"


def _exact_success(mdp: TabularMDP, options: argparse.Namespace, explorer: ExplorationPolicy, m: int) -> Success | str:
    """The exact chance of success of GORP(k, m), or why it is not known."""
    try:
        return ExactSuccess(problem(mdp, policy=explorer), options.k, _ties(options)).success(m)
    except (NoLatticeError, TooManySequencesError, UndecidedError) as error:
        return str(error)


def _num_runs(options: argparse.Namespace) -> int:
    return RUNS if options.runs is None else int(options.runs)


def _run_with_m(mdp: TabularMDP, options: argparse.Namespace, explorer: ExplorationPolicy) -> Runs:
    with _terminal.waiting(f"running GORP on {options.table}"):
        rng = np.random.default_rng(options.seed)
        return gorp(
            mdp,
            k=options.k,
            m=options.m,
            runs=_num_runs(options),
            rng=rng,
            exploration_policy=explorer,
            ties=_ties(options),
        )


def _searched(mdp: TabularMDP, options: argparse.Namespace, explorer: ExplorationPolicy) -> GorpSearch:
    with _terminal.waiting("searching for m") as update:

        def on_trial(trial: Trial) -> None:
            update(trial_line(trial))

        return gorp_sample_complexity(
            mdp,
            k=options.k,
            runs=_num_runs(options),
            rng=np.random.default_rng(options.seed),
            budget=BUDGET if options.budget is None else options.budget,
            exploration_policy=explorer,
            ties=_ties(options),
            on_trial=on_trial,
        )


def _content(
    mdp: TabularMDP,
    options: argparse.Namespace,
    m: int | None,
    search: GorpSearch | None,
    results: Runs,
    exact: Success | str | None,
    curve: LearningCurve,
) -> dict[str, Any]:
    """Everything that `gorp` says about a table, as JSON; null where there is nothing to say."""
    median, low, high = curve.percentiles.tolist()
    content: dict[str, Any] = {
        "num_states": mdp.num_states,
        "num_actions": mdp.num_actions,
        "horizon": mdp.horizon,
        "k": options.k,
        "m": m,
        "runs": results.num_runs,
        "seed": options.seed,
        "exploration_policy": None if options.exploration_policy is None else str(options.exploration_policy),
        "ties": _ties(options),
        "success_rate": results.success_rate,
        "exact_success": exact.middle if isinstance(exact, Success) else None,
        "sample_complexity": results.timesteps if 2 * results.num_optimal >= results.num_runs else None,
        "m_low": None if search is None else search.m_low,
        "m_high": None if search is None else search.m_high,
        "optimal_return": results.optimal_return,
        "mean_return": float(results.returns.mean()),
        "learning_curve": {
            "timesteps": curve.timesteps.tolist(),
            "mean_return": curve.returns.mean(axis=0).tolist(),
            "median_return": median,
            "percentile_10": low,
            "percentile_90": high,
        },
    }
    if search is not None:
        content["max_m"], content["monotone"] = search.max_m, search.is_monotone
        content["trials"] = [{"m": trial.m, "success_rate": trial.success_rate} for trial in search.trials]
    return content


def run_live(options: argparse.Namespace) -> int:
    results = [_live_run(options, seed) for seed in range(options.seed, options.seed + (options.runs or 1))]
    if options.json:
        _terminal.print_json(_live_content(options, results))
    else:
        _terminal.show(live_runs(results))
    return _exit.DONE if all(result.is_complete for result in results) else _exit.BUDGET


def _live_run(options: argparse.Namespace, seed: int) -> LiveRun:
    environment = live_environment(
        options.table, horizon=options.horizon, arguments=dict(options.env_arg), wrappers=options.wrapper
    )
    with _terminal.waiting(f"{environment.id}: starting") as update:

        def on_progress(run: LiveRun) -> None:
            update(live_line(run))

        return live_gorp(
            environment,
            k=options.k,
            m=options.m,
            seed=seed,
            ties=_ties(options),
            max_steps=options.max_steps,
            checkpoint=_checkpoint(options, environment.id, seed),
            on_progress=on_progress,
        )


def _live_content(options: argparse.Namespace, results: list[LiveRun]) -> dict[str, Any]:
    return {
        "id": results[0].settings.id,
        "live": True,
        "num_actions": results[0].num_actions,
        "horizon": results[0].settings.horizon,
        "k": options.k,
        "m": options.m,
        "runs": len(results),
        "seed": options.seed,
        "ties": _ties(options),
        "success_rate": None,  # the optimal return of a live environment is unknown
        "sample_complexity": None,
        "m_low": None,
        "m_high": None,
        "complete": all(result.is_complete for result in results),
        "returns": [result.total_reward for result in results],
        "lengths": [len(result.actions) for result in results],
        "timesteps": [result.timesteps for result in results],
        "steps_played": [result.steps_played for result in results],
        "learning_curves": [list(result.estimates) for result in results],
    }


def _checkpoint(options: argparse.Namespace, name: str, seed: int) -> Path | None:
    if options.checkpoints is None:
        return None
    safe = name.replace("/", "_")
    folder: Path = options.checkpoints
    rule = "" if _ties(options) == "uniform" else f"-{_ties(options)}"
    return folder / f"{safe}-T{options.horizon or 'own'}-k{options.k}-m{options.m}{rule}-seed{seed}.json"
