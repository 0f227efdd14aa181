"""`efhorizon analyze`: how hard a table is for RL, and why."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from efhorizon.commands import _analysis, _arguments, _environments, _exit, _stochastic, _types
from efhorizon.commands._exit import UsageError

if TYPE_CHECKING:
    from efhorizon.bounds.analysis import Analysis
    from efhorizon.bounds.unfinished import AnytimeAnalysis

HELP = "say how hard a table is for RL, and why"
DESCRIPTION = """\
Says whether PPO and DQN will learn an optimal policy on a table, and after how
many timesteps: a forecast from runs on other environments. Then why it is hard:
the states where GORP, a very simple algorithm, goes wrong, and the kind of
difficulty. Then the effective horizon and the number of timesteps that each
bound of the paper promises. Several tables give one row each; a table with
unexplored states gives intervals.

The search for exact figures takes 30 seconds at most. If that is not enough,
the answer is a bound and says so. What was found is kept beside the table: the
same command goes on from there, and further with --max-minutes.
"""
EXAMPLE = """\
efhorizon analyze freeway_10_fs30 --max-k 2
  efhorizon analyze Taxi-v4-T200 --max-minutes 10
  efhorizon analyze freeway_10_fs30 --sticky 0.25"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_table(parser, several=True)
    _arguments.add_horizon(parser)
    parser.add_argument(
        "--gamma", type=_types.fraction, default=1.0, metavar="G", help="discount factor, from 0 to 1 (default: 1)"
    )
    _arguments.add_exploration_policy(parser)
    _arguments.add_max_k(parser)
    parser.add_argument(
        "--ties",
        choices=("uniform", "lowest", "adversarial", "all"),
        default="uniform",
        help="how GORP breaks ties in the exact effective horizon: at random, by the lowest index, in the worst way, "
        "or all three side by side (default: uniform)",
    )
    parser.add_argument(
        "--reward-bounds",
        type=_types.number,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="range of the rewards of unexplored states (default: the range in the table)",
    )
    parser.add_argument(
        "--max-minutes",
        type=_types.minutes,
        metavar="TIME",
        help="time for the exact figures of a table: 90 (minutes), 1h30m or 45s; all of it is used if they need it "
        f"(default: {_analysis.DEFAULT_SECONDS:g}s)",
    )
    parser.add_argument(
        "--sticky",
        type=_types.fraction,
        metavar="Q",
        help="analyze the table with sticky actions: from the second step on, the previous action is repeated "
        "with this chance, such as 0.25",
    )
    parser.add_argument("--fresh", action="store_true", help="compute everything again, whatever earlier calls found")
    _environments.add_image(parser, "the state where GORP goes wrong most")
    _arguments.add_results_folder(parser, "the analysis")
    _arguments.add_json(parser)


def kept(options: argparse.Namespace) -> str:
    return _analysis.kept(options)


def run(options: argparse.Namespace) -> int:
    from efhorizon.bounds.analysis import Analysis
    from efhorizon.commands import _pictures, _terminal
    from efhorizon.io.tables import opened_table, table_path
    from efhorizon.library.analyzing import analyze
    from efhorizon.planning.policies import load_policy
    from efhorizon.render.terminal.analysis import one_analysis, several_analyses
    from efhorizon.study.kept_analysis import keep_analysis
    from efhorizon.suites.seen_state import SeenState

    if options.image is not None and len(options.table) > 1:
        raise UsageError("--image goes with one table")
    paths = [table_path(given, options.tables) for given in options.table]
    chances = [(path, _stochastic.table_of(path, options)) for path in paths]
    with_chance = [(path, mdp) for path, mdp in chances if mdp is not None]
    if with_chance:
        if len(with_chance) < len(paths):
            raise UsageError("tables with chance and deterministic ones have different figures; give them separately")
        return _stochastic.analyzed(with_chance, options)
    policy = None if options.exploration_policy is None else load_policy(options.exploration_policy)
    results, saved = [], _pictures.SavedPicture()
    seen: list[SeenState] = []
    scenes: list[list[SeenState]] = []
    notes: list[str] = []
    for path in paths:
        mdp = opened_table(path, horizon=options.horizon)
        drawing = _environments.drawing_environment(options, mdp)
        with _analysis.course(path, options) as course:
            result = analyze(
                mdp,
                gamma=options.gamma,
                exploration_policy=policy,
                max_k=options.max_k,
                reward_bounds=None if options.reward_bounds is None else tuple(options.reward_bounds),
                ties=options.ties,
                course=course,
            )
        results.append((path, result))
        deciding = result.deciding if isinstance(result, Analysis) else None
        seen.append(SeenState.of(mdp, None if deciding is None else deciding.state))
        hard = [reason.state for reason in result.why or ()] if isinstance(result, Analysis) else []
        scenes.append([SeenState.of(mdp, state) for state in hard])
        shown = hard[0] if hard else None if deciding is None else deciding.state
        saved = _pictures.saved(mdp, shown, options.image, drawing)
        refused = keep_analysis(options.results, mdp, result, max_k=options.max_k, is_uniform=policy is None)
        notes.append(refused or f"kept in {options.results} (for a web page: efhorizon report {options.results})")
    if options.json:
        image = str(saved.image) if saved.image else None
        contents = [
            {
                **state.in_json(result.as_json(), reasons),
                "forecast": _forecast(result),
                "path": str(path),
                "image": image,
            }
            for (path, result), state, reasons in zip(results, seen, scenes, strict=True)
        ]
        _terminal.print_json(contents[0] if len(contents) == 1 else contents)
    elif len(results) > 1:
        _terminal.show(several_analyses(results))
    else:
        _terminal.show(one_analysis(*results[0], saved.image, seen[0], scenes[0]))
    _terminal.say("; ".join(dict.fromkeys(notes)), style="dim")
    return _exit.DONE if saved.failure is None else _terminal.failed(saved.failure)


def _forecast(result: Analysis | AnytimeAnalysis) -> dict[str, Any] | None:
    """For JSON; an unfinished table has none."""
    from efhorizon.bounds.analysis import Analysis

    if not isinstance(result, Analysis):
        return None
    return {algorithm: each.as_json() for algorithm, each in result.forecast.items()}
