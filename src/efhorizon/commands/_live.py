"""`efhorizon train --live`: PPO, DQN and GORP in environments instead of on tables."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from efhorizon.agents.live.gorp_curve import INTERVAL
from efhorizon.agents.live.rollouts import EnvironmentName
from efhorizon.commands import _terminal
from efhorizon.commands._exit import UsageError
from efhorizon.io.machine import num_cores
from efhorizon.render import numbers
from efhorizon.render.terminal.layout import Parts, literal
from efhorizon.study.live_runs import LiveResults, LiveRow, LiveTask, deep_tasks, gorp_tasks
from efhorizon.study.results import Results
from efhorizon.study.tasks import check_installed


@dataclass(frozen=True)
class LiveSummary:
    """The runs of one setting in one environment, under the names that its JSON has. Returns are points."""

    id: str
    setting: str
    runs: int
    steps: int  # the fewest of a run
    final_return: float | None  # the median over runs of the last greedy episode; of GORP, of its policy
    final_low: float | None
    final_high: float | None
    best_return: float | None


def check(options: argparse.Namespace) -> None:
    """Refuse what has no meaning in a live environment, before anything is made."""
    for option in ("exploration_policy", "initial", "tensorboard"):
        if getattr(options, option) is not None:
            raise UsageError(f"--{option.replace('_', '-')} is for tables: it does not go with --live")
    if options.algo == "gorp" and options.m is None:
        raise UsageError("--live --algo gorp needs --m, the number of episodes for each action")
    if options.algo == "gorp" and options.backend == "sb3":
        raise UsageError("Stable-Baselines3 has no GORP: leave out --backend sb3")


def run(options: argparse.Namespace) -> int:
    """Make or continue every run, one after the other."""
    check_installed(options.algo, options.backend)
    grid = [task for name in options.table for task in _tasks(options, name)]
    results = LiveResults(Results.made(options.results).path)
    rows = [row for row in (_row(options, results, task) for task in grid) if row is not None]
    content = {
        "results": str(options.results),
        "algorithm": options.algo,
        "backend": grid[0].backend,
        "mode": "live",
        "rows": len(rows),
        "environments": [asdict(found) for found in summaries(rows)],
    }
    if options.json:
        _terminal.print_json(content)
    else:
        _terminal.show(_lines(rows, str(results.path)))
    return 0


def summaries(rows: list[LiveRow]) -> list[LiveSummary]:
    """Medians and ranges over the seeds of each setting."""
    groups: dict[tuple[str, str], list[LiveRow]] = {}
    for row in rows:
        groups.setdefault((row.id, row.setting), []).append(row)
    found = []
    for (name, setting), own in groups.items():
        last = [row.final_return for row in own if row.final_return is not None]
        best = [row.best_return for row in own if row.best_return is not None]
        found.append(
            LiveSummary(
                id=name,
                setting=setting,
                runs=len(own),
                steps=min(row.steps for row in own),
                final_return=float(np.median(last)) if last else None,
                final_low=min(last, default=None),
                final_high=max(last, default=None),
                best_return=max(best, default=None),
            )
        )
    return found


def _tasks(options: argparse.Namespace, environment: str) -> list[LiveTask]:
    name = EnvironmentName(environment, options.horizon, dict(options.env_arg), tuple(options.wrapper))
    interval = options.evaluate_every or INTERVAL
    if options.algo == "gorp":
        return gorp_tasks(
            name, k=options.k, m=options.m, seeds=options.seeds, max_steps=options.steps, interval=interval
        )
    return deep_tasks(
        name,
        options.algo,
        settings=options.settings,
        seeds=options.seeds,
        max_steps=options.steps,
        backend="live sb3" if options.backend == "sb3" else "live",
        schedule=options.schedule,
        interval=interval,
    )


def _row(options: argparse.Namespace, results: LiveResults, task: LiveTask) -> LiveRow | None:
    title = f"{task.id} {task.algorithm} {task.setting} seed {task.seed}"
    lines = _terminal.SlowLines()
    with _terminal.waiting(f"{title}: starting") as update:

        def on_progress(steps: int, found: float | None) -> None:
            shown = "no episode yet" if found is None else f"return {numbers.decimal(found)}"
            text = f"{title}: {steps:,} of {task.max_steps:,} timesteps, {shown}"
            update(text)
            lines.say(text)

        row = results.run(task, device=options.device, threads=options.threads or num_cores(), on_progress=on_progress)
    if row is None:
        _terminal.say(f"{title}: another process is making it", style="dim")
    else:
        _terminal.say(f"{title}: {row.steps:,} timesteps, last return {_points(row.final_return)}")
    return row


def _lines(rows: list[LiveRow], place: str) -> Parts:
    for found in summaries(rows):
        yield f"[bold]{literal(found.id)}[/bold]  live, {literal(found.setting)}"
        seeds = numbers.counted(found.runs, "seed")
        span = f"{_points(found.final_low)} to {_points(found.final_high)}"
        yield f"  after {found.steps:,} timesteps: return {_points(found.final_return)} (median of {seeds}, {span})"
        yield f"  best episode: {_points(found.best_return)}"
    yield f"{numbers.counted(len(rows), 'row')} in {literal(place)}"


def _points(value: Any) -> str:
    return "none" if value is None else numbers.decimal(float(value))
