"""`efhorizon gorp`: GORP on a table, with a given m or in search of the smallest; or on a live environment."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

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
from efhorizon.agents.tabular.runs import InvalidSettingError, Runs, check_positive
from efhorizon.catalog import load, table_path
from efhorizon.cli import EXIT_BUDGET, messages, print_json
from efhorizon.mdp import TabularMDP
from efhorizon.planning.policies import ExplorationPolicy, exploration_policy, load_policy


def run(options: argparse.Namespace) -> int:
    if options.seed < 0:
        raise InvalidSettingError(f"--seed must not be negative, got {options.seed}")
    if options.live:
        if options.exploration_policy is not None:
            raise InvalidSettingError("--exploration-policy is about the states of a table: it does not go with --live")
        return _run_live(options)
    for name in ("checkpoints", "max_steps"):
        if getattr(options, name) is not None:
            raise InvalidSettingError(f"--{name.replace('_', '-')} goes with --live")
    path = table_path(Path(options.name))
    mdp = load(path, horizon=options.horizon)
    policy = None if options.exploration_policy is None else load_policy(options.exploration_policy)
    explorer = exploration_policy(mdp, policy)
    started = time.perf_counter()
    runs = RUNS if options.runs is None else options.runs
    search: GorpSearch | None = None
    if options.m is None:
        search = _searched(mdp, options, runs, explorer)
        results = search.results
    else:
        with messages.status(f"running GORP on {path}"):
            rng = np.random.default_rng(options.seed)
            results = gorp(mdp, k=options.k, m=options.m, runs=runs, rng=rng, exploration_policy=explorer)
    content = _content(mdp, path, options, search, results, learning_curve(mdp, results, explorer))
    content["seconds"] = round(time.perf_counter() - started, 3)
    if options.json:
        print_json(content)
    else:
        _print_content(content)
    return 0


def _searched(mdp: TabularMDP, options: argparse.Namespace, runs: int, explorer: ExplorationPolicy) -> GorpSearch:
    with messages.status("looking for m") as status:

        def on_trial(trial: Trial) -> None:
            status.update(f"looking for m: {trial.num_optimal} of {trial.runs} runs succeed with m = {trial.m}")

        return gorp_sample_complexity(
            mdp,
            k=options.k,
            runs=runs,
            rng=np.random.default_rng(options.seed),
            budget=BUDGET if options.budget is None else options.budget,
            exploration_policy=explorer,
            on_trial=on_trial,
        )


def _content(
    mdp: TabularMDP,
    path: Path,
    options: argparse.Namespace,
    search: GorpSearch | None,
    results: Runs,
    curve: LearningCurve,
) -> dict[str, Any]:
    """Everything that `gorp` says of a table; null where there is nothing to say."""
    median, low, high = curve.percentiles.tolist()
    content: dict[str, Any] = {
        "id": mdp.metadata.get("id") or (path.parent.name if path.suffix == ".npz" else path.name),
        "path": str(path),
        "num_states": mdp.num_states,
        "num_actions": mdp.num_actions,
        "horizon": mdp.horizon,
        "k": options.k,
        "m": options.m,
        "runs": results.num_runs,
        "seed": options.seed,
        "exploration_policy": None if options.exploration_policy is None else str(options.exploration_policy),
        "success_rate": results.success_rate,
        "sample_complexity": results.timesteps if 2 * results.num_optimal >= results.num_runs else None,
        "m_low": None,
        "m_high": None,
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
        content["m"], content["m_low"], content["m_high"] = search.m, search.m_low, search.m_high
        content["max_m"], content["monotone"] = search.max_m, search.is_monotone
        content["trials"] = [{"m": trial.m, "success_rate": trial.success_rate} for trial in search.trials]
    return content


def _print_content(content: dict[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"[bold]{content['id']}[/bold]  {content['num_states']:,} states, {content['num_actions']} actions, "
        f"horizon {content['horizon']}"
    )
    share = f"{100 * content['success_rate']:.1f} % of {content['runs']:,} runs return an optimal policy"
    if content["m"] is None:
        console.print(f"  GORP, k = {content['k']}: no m up to {content['max_m']:,} succeeds half the time ({share})")
    else:
        console.print(f"  GORP, k = {content['k']}, m = {content['m']:,}: {share}")
    if content["sample_complexity"] is not None:
        console.print(f"  sample complexity {content['sample_complexity']:,} timesteps")
    if "max_m" in content:
        low, high = (_number(content[name]) for name in ("m_low", "m_high"))
        console.print(f"  the smallest such m lies in {low} .. {high} (95 % confidence)")
        if not content["monotone"]:
            console.print("  [yellow]some smaller m did better than a larger one: m may not be unique[/yellow]")
    console.print(f"  mean return {content['mean_return']:.4g} of {content['optimal_return']:g}")


def _run_live(options: argparse.Namespace) -> int:
    if options.m is None:
        raise InvalidSettingError("--live needs --m: it runs GORP, it does not look for m")
    runs = 1 if options.runs is None else options.runs
    check_positive(runs=runs, k=options.k, m=options.m)
    if options.max_steps is not None:
        check_positive(**{"--max-steps": options.max_steps})
    results = []
    for seed in range(options.seed, options.seed + runs):
        environment = live_environment(options.name, horizon=options.horizon)
        with messages.status(f"{environment.id}: starting") as status:

            def on_progress(state: LiveRun, status: Any = status) -> None:
                status.update(_progress_line(state))

            results.append(
                live_gorp(
                    environment,
                    k=options.k,
                    m=options.m,
                    seed=seed,
                    max_steps=options.max_steps,
                    checkpoint=_checkpoint(options, environment.id, seed),
                    on_progress=on_progress,
                )
            )
    content = _live_content(options, results)
    if options.json:
        print_json(content)
    else:
        _print_live(content)
    return 0 if content["complete"] else EXIT_BUDGET


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
        "success_rate": None,  # nobody knows the optimal return of a live environment
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


def _print_live(content: dict[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"[bold]{content['id']}[/bold]  {content['num_actions']} actions, horizon {content['horizon']:,}, live"
    )
    console.print(f"  GORP, k = {content['k']}, m = {content['m']:,}")
    rows = zip(content["returns"], content["lengths"], content["timesteps"], content["steps_played"], strict=True)
    for number, (total, length, timesteps, steps) in enumerate(rows):
        console.print(
            f"  seed {content['seed'] + number}: return {total:g} in {length:,} steps; {timesteps:,} timesteps "
            f"as the paper counts, {steps:,} really played"
        )
    if not content["complete"]:
        console.print("  [yellow]not finished: --max-steps ended it[/yellow]")


def _progress_line(state: LiveRun) -> str:
    return (
        f"{state.settings.id}: {len(state.actions):,} of {state.settings.horizon:,} actions, "
        f"return {state.total_reward:g}, {state.steps_played:,} steps"
    )


def _checkpoint(options: argparse.Namespace, name: str, seed: int) -> Path | None:
    if options.checkpoints is None:
        return None
    safe = name.replace("/", "_")
    folder: Path = options.checkpoints
    return folder / f"{safe}-T{options.horizon or 'own'}-k{options.k}-m{options.m}-seed{seed}.json"


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
