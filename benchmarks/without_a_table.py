"""Environments that no table holds: what `efhorizon diagnose` says of them, and what PPO then needs.

    python benchmarks/without_a_table.py --out data/diagnose/live.jsonl --results DIR [--only CartPole-v1 ...]
    python benchmarks/without_a_table.py --out data/diagnose/live.jsonl --page docs/study/without-a-table.md

Five environments are diagnosed, and then PPO learns in them live. A run has what was asked for at the first evaluation
at which the last three (15 greedy episodes where there is chance, else 3), or the training episodes since the last one,
average at most 5% below the best return, counted from the mean of random play. The best return is the one that is
known, or else the one that the diagnosis found. Of FrozenLake the exact values are known too, from its transition
probabilities; the page says which of them lie in the intervals. Everything goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import efhorizon as ef
from efhorizon.agents.live.rollouts import EnvironmentName
from efhorizon.render.numbers import decimal
from efhorizon.study.live_runs import LiveResults, LiveRow, deep_tasks

BEST, RANDOM = "the best mean return", "random play's mean return"
SHORTFALL = 0.05  # of the way from random play to the best return
_AVERAGED = 3  # evaluations


@dataclass(frozen=True)
class Case:
    """An environment, and how much of everything it gets."""

    title: str
    env: str
    diagnose_steps: int
    train_steps: int
    seeds: int
    horizon: int | None = None
    best_return: float | None = None  # None: what the diagnosis finds
    why: str = "found by the diagnosis"
    interval: int = 10_000  # timesteps between evaluations


CASES = (
    Case("CartPole-v1", "CartPole-v1", 4_000_000, 300_000, 3, best_return=500.0, why="the largest possible"),
    Case("LunarLander-v3", "LunarLander-v3", 3_000_000, 1_000_000, 3, best_return=200.0, why="Gymnasium's threshold"),
    Case("FrozenLake-v1, slippery", "FrozenLake-v1", 10_000_000, 500_000, 3, why="exact"),
    Case(
        "MiniGrid SimpleCrossing, another layout in each episode",
        "minigrid:MiniGrid-SimpleCrossingS9N1-v0",
        6_000_000,
        1_000_000,
        3,
        horizon=100,
    ),
    Case("Breakout at full length", "breakout_27000_fs4", 5_000_000, 500_000, 1, interval=20_000),
)


@dataclass(frozen=True)
class Row:
    """One environment: the diagnosis, and the runs of PPO beside its forecast."""

    title: str
    horizon: int
    num_actions: int
    chance: str
    steps_played: int
    seconds: float
    k: int | None
    effective_horizon: dict[str, float | None]
    greedy_return: float | None
    best_return: float
    best_return_from: str
    random_return: dict[str, float]
    forecast: dict[str, float]  # of PPO: low, median, high
    solved_within: dict[str, float]  # the chance that PPO has it within so many timesteps
    target: float
    runs: list[int | None]  # timesteps that each run of PPO needed
    train_steps: int
    exact: list[list[Any]]  # name, exact value, low, high
    what_to_try: list[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("data/diagnose/live.jsonl"))
    parser.add_argument("--results", type=Path, default=Path("without-a-table"))
    parser.add_argument("--only", nargs="+", default=[case.title for case in CASES])
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    if options.page:
        options.page.write_text(page(rows_of(options.out)))
        return
    done = {row.title for row in rows_of(options.out)}
    for case in CASES:
        if case.title in options.only and case.title not in done:
            row = made(case, options.results, options.workers)
            with options.out.open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
            print(f"{row.title}: forecast {row.forecast}, PPO needed {row.runs}", flush=True)


def rows_of(path: Path) -> list[Row]:
    return [msgspec.json.decode(line, type=Row) for line in path.read_text().splitlines()] if path.exists() else []


def made(case: Case, results: Path, workers: int) -> Row:
    results.mkdir(parents=True, exist_ok=True)
    exact = exact_values(case) if case.why == "exact" else None
    best = case.best_return if exact is None else exact[BEST]
    found = ef.diagnose(
        case.env,
        horizon=case.horizon,
        max_steps=case.diagnose_steps,
        best_return=best,
        workers=workers,
        log=results / f"{case.env.replace(':', '-')}.log",
        progress=True,
    ).as_json()
    best_return = float(found["best_return"] if best is None else best)
    random_return = found["random_play"]["mean_return"]
    target = best_return - SHORTFALL * (best_return - random_return["estimate"])
    name = EnvironmentName(case.env, case.horizon)
    tasks = deep_tasks(
        name, "ppo", settings="paper", seeds=case.seeds, max_steps=case.train_steps, interval=case.interval
    )
    kept = LiveResults(results)
    rows = [row for row in (kept.run(task, threads=workers) for task in tasks) if row is not None]
    forecast = found["forecast"]["ppo"]
    return Row(
        title=case.title,
        horizon=found["horizon"],
        num_actions=found["num_actions"],
        chance=found["chance"],
        steps_played=found["steps_played"],
        seconds=found["seconds"],
        k=found["k"],
        effective_horizon=found["effective_horizon"],
        greedy_return=found["greedy_return"],
        best_return=best_return,
        best_return_from=case.why,
        random_return=random_return,
        forecast=forecast["timesteps"],
        solved_within=forecast["solved_within"],
        target=target,
        runs=[needed(row, target) for row in rows],
        train_steps=case.train_steps,
        exact=[] if exact is None else beside_exact(found, exact),
        what_to_try=found["what_to_try"],
    )


def needed(row: LiveRow, target: float) -> int | None:
    """The timesteps after which a run has reached the target."""
    greedy: list[float] = []
    for step, evaluated, trained in row.learning_curve:
        assert step is not None
        assert evaluated is not None
        greedy.append(evaluated)
        recent = float(np.mean(greedy[-_AVERAGED:])) if len(greedy) >= _AVERAGED else -np.inf
        if max(recent, -np.inf if trained is None else trained) >= target:
            return int(step)
    return None


def exact_values(case: Case) -> dict[str, float]:
    """From the transition probabilities: the best mean return, random play's, and Q^1 of each first action."""
    from efhorizon.stochastic.planning import Plan
    from efhorizon.stochastic.sources.transition_function import from_transition_function
    from efhorizon.suites.environment_source import environment_source

    mdp = from_transition_function(environment_source(case.env), case.horizon, name=case.env)
    plan = Plan(mdp)
    random_play = plan.exploration()
    following = np.zeros(mdp.num_states)
    following[plan.layers.layer(1)] = random_play.numbers[plan.layers.span(1)]
    first = mdp.initial_probabilities @ plan.q_values(0, following)
    return {
        BEST: float(plan.optimal.values.at_start),
        RANDOM: float(random_play.at_start),
        **{f"Q^1 of first action {action}": float(value) for action, value in enumerate(first)},
    }


def beside_exact(found: dict[str, Any], exact: dict[str, float]) -> list[list[Any]]:
    """What is known exactly beside its interval."""
    intervals = [found["random_play"]["mean_return"], *found["by_k"]["1"]["path"][0]["q"]]
    names = [name for name in exact if name != BEST]
    return [
        [name, exact[name], interval["low"], interval["high"]] for name, interval in zip(names, intervals, strict=True)
    ]


def page(rows: list[Row]) -> str:
    """docs/study/without-a-table.md."""
    lines = [
        "# Diagnosed without a table, then learnt",
        "",
        "What does `efhorizon diagnose` say of environments that no table holds, and does PPO then need what was",
        "forecast? Each was diagnosed live, and then PPO learnt in it live. It has what was asked for when it is",
        f"at most {SHORTFALL:.0%} below the best return, counted from the mean of random play. Made by",
        "`python benchmarks/without_a_table.py --page docs/study/without-a-table.md`.",
        "",
        "| environment | T | chance in | steps played | best return | H (k) | timesteps forecast for PPO | "
        "PPO needed | in the interval |",
        "|---|--:|---|--:|--:|---|---|---|---|",
    ]
    for row in rows:
        horizon = row.effective_horizon
        shown = f"{decimal(horizon['estimate'])} [{decimal(horizon['low'])}, {decimal(horizon['high'])}] ({row.k})"
        low, middle, high = (f"{row.forecast[name]:.2g}" for name in ("low", "median", "high"))
        runs = ", ".join(f"more than {row.train_steps:,}" if run is None else f"{run:,}" for run in row.runs)
        lines.append(
            f"| {row.title} | {row.horizon} | {row.chance} | {row.steps_played:,} | "
            f"{decimal(row.best_return)} ({row.best_return_from}) | {shown} | {float(middle):,.0f} "
            f"[{float(low):,.0f}, {float(high):,.0f}] | {runs} | {judged(row)} |"
        )
    for row in rows:
        if row.exact:
            inside = sum(low <= exact <= high for _, exact, low, high in row.exact)
            lines += [
                "",
                f"## {row.title}: exact values beside their intervals",
                "",
                f"{inside} of {len(row.exact)} exact values lie in their 90% intervals. The best mean return is",
                f"{row.best_return:.4f}; greedy play on sampled Q^{row.k} reached {decimal(row.greedy_return)}.",
                "",
                "| | exact | interval |",
                "|---|--:|---|",
            ]
            lines += [f"| {name} | {exact:.5f} | {low:.5f} to {high:.5f} |" for name, exact, low, high in row.exact]
    lines += ["", "## What to try", ""]
    lines += [f"- **{row.title}**: {' '.join(row.what_to_try) or 'nothing.'}" for row in rows]
    return "\n".join(lines) + "\n"


def judged(row: Row) -> str:
    """How many runs of PPO ended within the forecast's interval; the end of some may be open."""
    low, high = row.forecast["low"], row.forecast["high"]
    known = [run for run in row.runs if run is not None]
    inside = sum(low <= run <= high for run in known)
    unknown = sum(run is None and row.train_steps < high for run in row.runs)
    return f"{inside} of {len(row.runs)}" + (f", {unknown} open" if unknown else "")


if __name__ == "__main__":
    main()
