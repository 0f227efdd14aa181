"""What the algorithms did on one MDP: learning curves, the runs of every setting, the commands that repeat them."""

from __future__ import annotations

import math
import re
import shlex
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from efhorizon.evaluation.records import GORP
from efhorizon.evaluation.rules import is_trained, solved_by_random_play
from efhorizon.planning.problem import DEFAULT_MAX_K
from efhorizon.render import numbers
from efhorizon.render.charts.learning import learning_chart
from efhorizon.render.html.entries import MdpEntry
from efhorizon.render.learning_curves import ALGORITHM_TITLES, ALGORITHMS, Setting, best_settings
from efhorizon.study.sweep import SETTINGS
from efhorizon.suites import registry
from efhorizon.suites.suite import Suite, UnknownSuite

PPO = "ppo"
_UNSAFE = r"[^A-Za-z0-9_.=-]"  # what the names of tables have _ for


@dataclass(frozen=True)
class RunLine:
    """The runs of one algorithm with one setting."""

    algorithm: str
    setting: str
    num_runs: str
    needed: str
    of_runs: str
    final_return: str
    budget: str
    seconds: str
    is_best: bool


def learning_curves(entry: MdpEntry) -> Markup | None:
    """The best setting of each algorithm in one chart; None where nothing was run."""
    chosen = [setting for setting in best_settings(entry.settings) if setting.curve is not None]
    if not chosen:
        return None
    optimal = chosen[0].rows[0].optimal_return
    exploration = None if entry.summary is None else entry.summary.reward_exploration
    curves = [setting.curve for setting in chosen if setting.curve is not None]
    return learning_chart(curves, name=entry.name, optimal_return=optimal, exploration_return=exploration)


def run_lines(settings: Sequence[Setting]) -> list[RunLine]:
    best = {(setting.algorithm, setting.setting) for setting in best_settings(settings)}
    lines = []
    for setting in settings:
        finals = [row.final_return for row in setting.rows if row.final_return is not None]
        is_gorp = setting.algorithm == GORP
        lines.append(
            RunLine(
                algorithm=ALGORITHM_TITLES.get(setting.algorithm, setting.algorithm),
                setting=setting.setting,
                num_runs=str(setting.num_runs),
                needed=numbers.steps_needed(setting.sample_complexity),
                of_runs="" if is_gorp else ", ".join(numbers.steps_needed(steps) for steps in needed_by_runs(setting)),
                final_return=numbers.significant(statistics.median(finals)) if finals else numbers.MISSING,
                budget=numbers.short_steps(min(row.budget for row in setting.rows)),
                seconds=numbers.seconds(sum(row.wall_seconds for row in setting.rows)),
                is_best=(setting.algorithm, setting.setting) in best,
            )
        )
    return lines


def about_luck(entry: MdpEntry) -> str | None:
    """What random play does by the rule that ends PPO's runs, if PPO was run and that is worth a sentence."""
    summary = entry.summary
    if summary is None or summary.random_play is None or PPO not in summary.sample_complexities:
        return None
    needed = numbers.steps_needed(summary.random_play)
    if solved_by_random_play(summary, PPO):
        return (
            f"Random play passes the rule that ends PPO's runs after at most {needed} timesteps, so these runs say "
            "nothing about learning, and the MDP does not count in the tables."
        )
    untrained = sum(
        not is_trained(row) for setting in entry.settings if setting.algorithm == PPO for row in setting.rows
    )
    return f"{numbers.counted(untrained, 'run')} of PPO ended before a gradient step, by luck." if untrained else None


def commands(entry: MdpEntry) -> list[str]:
    """The commands that make this page's numbers; the name is quoted for the shell."""
    name = shlex.quote(entry.name)
    suite = registry.suite(entry.suite)
    lines = [] if isinstance(suite, UnknownSuite) else [*_build_commands(entry, suite), f"efhorizon verify {name}"]
    lines.append(f"efhorizon analyze {name}{_analysis_options(entry)}")
    for algorithm in dict.fromkeys(setting.algorithm for setting in entry.settings):
        if algorithm not in ALGORITHMS:
            continue
        its = [setting for setting in entry.settings if setting.algorithm == algorithm]
        lines.append(f"efhorizon train {name} --algo {algorithm}{_training_options(its)}")
    return lines


def _build_commands(entry: MdpEntry, suite: Suite) -> list[str]:
    """The command that builds the table; none where an analysis does not say with which arguments that was done."""
    if suite.has_names:
        return [f"efhorizon build {shlex.quote(entry.name)}"]
    analysis = entry.analysis
    if analysis is None or analysis.game is None:
        return []
    horizon = analysis.figures.horizon
    is_plain = entry.name == f"{re.sub(_UNSAFE, '_', analysis.game)}-T{horizon}"
    return [f"efhorizon build --env {shlex.quote(analysis.game)} --horizon {horizon}"] if is_plain else []


def _analysis_options(entry: MdpEntry) -> str:
    """Those of `efhorizon analyze` that try the same k."""
    tried = () if entry.analysis is None else entry.analysis.figures.effective_horizon.by_k
    max_k = max(tried, default=DEFAULT_MAX_K)
    return "" if max_k == DEFAULT_MAX_K else f" --max-k {max_k}"


def _training_options(settings: Sequence[Setting]) -> str:
    """Those of `efhorizon train` that repeat the runs of one algorithm."""
    algorithm, names = settings[0].algorithm, sorted(setting.setting for setting in settings)
    of_paper = {str(known): sorted(its) for known, its in SETTINGS.items()}
    chosen = "" if names == of_paper[algorithm] else f" --settings {shlex.quote(','.join(names))}"
    if algorithm == GORP:  # its seeds and budget are its own
        return chosen
    seeds = max(len(setting.rows) for setting in settings)
    steps = max(row.budget for setting in settings for row in setting.rows)
    return f" --seeds {seeds} --steps {steps:.0f}{chosen}"


def needed_by_runs(setting: Setting) -> tuple[float, ...]:
    found = [row.sample_complexity for row in setting.rows]
    return tuple(math.inf if steps is None else float(steps) for steps in found)
