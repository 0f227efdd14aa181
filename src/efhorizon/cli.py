"""The command line: one verb a stage. Results go to stdout, progress and messages to stderr.

Exit codes: 0 done; 1 an error, said in one line; 2 wrong usage or an unknown name; 3 a budget ended a search early.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from efhorizon import catalog
from efhorizon._version import __version__
from efhorizon.errors import EfhorizonError

EXIT_ERROR, EXIT_USAGE, EXIT_BUDGET, EXIT_INTERRUPTED = 1, 2, 3, 130

messages = Console(stderr=True, highlight=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the entry point of `efhorizon`."""
    options = _parser().parse_args(arguments)
    try:
        command = import_module(f"efhorizon.commands.{options.module}")  # only now: its libraries may be slow to load
        return int(command.run(options))
    except catalog.UnknownNameError as error:
        return _failed(error, EXIT_USAGE)
    except EfhorizonError as error:
        return _failed(error, EXIT_ERROR)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has seen enough, as in `| head`
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _failed(f"{where}{error.strerror or error}", EXIT_ERROR)
    except MemoryError:
        return _failed("out of memory; what was committed is kept", EXIT_ERROR)
    except KeyboardInterrupt:
        return _failed("interrupted; what was committed is kept, run the same command to go on", EXIT_INTERRUPTED)


def _failed(message: object, code: int) -> int:
    messages.print(f"efhorizon: {message}", style="red", markup=False, soft_wrap=True)
    return code


def print_json(content: Any) -> None:
    """The one way in which results reach programs."""
    sys.stdout.write(json.dumps(content, indent=1) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="efhorizon",
        description="How hard is this environment for deep RL, and why?",
        epilog="Example: efhorizon build freeway_10_fs30 && efhorizon show tables/freeway_10_fs30",
    )
    parser.add_argument("--version", action="version", version=f"efhorizon {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_list(commands)
    _add_build(commands)
    _add_verify(commands)
    _add_export(commands)
    _add_show(commands)
    _add_analyze(commands)
    _add_gorp(commands)
    _add_train(commands)
    _add_study(commands)
    _add_evaluate(commands)
    _add_report(commands)
    _add_serve(commands)
    _add_demo(commands)
    return parser


def _command(
    commands: Any, name: str, module: str, help_text: str, example: str, *, has_json: bool = True
) -> argparse.ArgumentParser:
    """A command; `module` in `commands` has its `run(options)`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help_text,
        description=help_text[0].upper() + help_text[1:] + ".",
        epilog=f"Example: {example}",
    )
    parser.set_defaults(module=module)
    if has_json:
        parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_exploration_policy(parser: argparse.ArgumentParser, of: str = "probabilities [S, A] or [T, S, A]") -> None:
    parser.add_argument(
        "--exploration-policy", type=Path, metavar="F.npy", help=f"{of} (default: every action equally likely)"
    )


def _add_runs(parser: argparse.ArgumentParser) -> None:
    """How much PPO and DQN are run; the defaults are the paper's."""
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="runs of each setting (default: 5)")
    parser.add_argument(
        "--steps", type=int, default=5_000_000, metavar="N", help="timesteps of a run, at most (default: 5,000,000)"
    )


def _add_results_path(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", type=Path, metavar="RESULTS", help="a results directory, an export of one, or summary.csv"
    )


def _add_list(commands: Any) -> None:
    parser = _command(
        commands,
        "list",
        "list",
        "list the environments that can be built by name",
        "efhorizon list --suite minigrid",
    )
    parser.add_argument("--suite", choices=catalog.suite_names(), help="only this suite")


def _add_build(commands: Any) -> None:
    parser = _command(
        commands,
        "build",
        "build",
        "turn an environment into an exact table",
        "efhorizon build pong_20_fs30 --workers 2 --max-minutes 30",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="a name from `efhorizon list`")
    parser.add_argument("--env", metavar="ID", help="any deterministic Gymnasium environment instead")
    parser.add_argument(
        "--env-arg",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="an argument for the environment, such as is_slippery=false (the value is read as JSON; may be repeated)",
    )
    parser.add_argument(
        "--horizon", type=int, metavar="T", help="steps of an episode (default: that of the name or id)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("tables"), metavar="DIR", help="where tables go (default: tables)"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: one a core)")
    parser.add_argument(
        "--ignore-screens", action="store_true", help="merge states that look different but behave alike"
    )
    parser.add_argument(
        "--merge",
        choices=("paper", "coarsest", "none"),
        default="paper",
        help="the paper's rule; the coarsest partition, which also merges cycles; or no merging (default: paper)",
    )
    parser.add_argument("--max-states", type=int, metavar="N", help="stop after finding so many states")
    parser.add_argument("--max-minutes", type=float, metavar="M", help="stop after so many minutes")
    parser.add_argument(
        "--max-memory", type=_memory_size, metavar="SIZE", help="stop at so much memory, such as 8G or 500M"
    )
    kept = parser.add_mutually_exclusive_group()
    kept.add_argument(
        "--keep-partial",
        dest="if_stopped",
        action="store_const",
        const="shorter",
        default="nothing",
        help="if a budget ends the search, write the table of the longest horizon that is complete",
    )
    kept.add_argument(
        "--keep-unfinished",
        dest="if_stopped",
        action="store_const",
        const="unfinished",
        help="if a budget ends the search, write all that is known; bounds on such a table are intervals",
    )
    parser.add_argument(
        "--episodes", type=int, default=20, metavar="N", help="episodes to verify with; 0 skips it (default: 20)"
    )


def _add_verify(commands: Any) -> None:
    parser = _command(
        commands,
        "verify",
        "verify",
        "replay a table against a fresh environment",
        "efhorizon verify tables/freeway_10_fs30 --episodes 100",
    )
    parser.add_argument("path", type=Path, metavar="PATH", help="a table: a store or a BRIDGE npz")
    parser.add_argument("--episodes", type=int, default=30, metavar="N", help="episodes to replay (default: 30)")
    parser.add_argument("--id", metavar="NAME", help="the environment, where the file does not say")
    parser.add_argument("--seed", type=int, default=0, help="of the random episodes (default: 0)")


def _add_export(commands: Any) -> None:
    parser = _command(
        commands,
        "export",
        "export",
        "write a table as a BRIDGE npz, the published layout",
        "efhorizon export tables/freeway_10_fs30 freeway.npz",
    )
    parser.add_argument("path", type=Path, metavar="PATH", help="a table")
    parser.add_argument("file", type=Path, metavar="FILE.npz", help="the file to write")
    parser.add_argument("--no-states", action="store_true", help="leave out the raw simulator states")
    parser.add_argument("--no-screens", action="store_true", help="leave out the screens")


def _add_show(commands: Any) -> None:
    parser = _command(
        commands,
        "show",
        "show",
        "describe a table and save its start screen",
        "efhorizon show tables/freeway_10_fs30",
    )
    parser.add_argument("path", type=Path, metavar="PATH", help="a table")
    parser.add_argument(
        "--image", type=Path, metavar="FILE.png", help="where to save the start screen (default: NAME-start.png here)"
    )


def _add_analyze(commands: Any) -> None:
    parser = _command(
        commands,
        "analyze",
        "analyze",
        "tell how hard a table is for RL, and why",
        "efhorizon analyze tables/freeway_10_fs30 --max-k 2",
    )
    parser.add_argument(
        "paths", type=Path, nargs="+", metavar="PATH|NAME", help="tables, or names of tables in ./tables"
    )
    parser.add_argument("--horizon", type=int, metavar="T", help="steps of an episode (default: that of the table)")
    parser.add_argument("--gamma", type=float, default=1.0, metavar="G", help="discount in [0, 1] (default: 1)")
    _add_exploration_policy(parser)
    parser.add_argument(
        "--max-k", type=int, default=3, metavar="K", help="steps of planning to try, at most (default: 3)"
    )
    parser.add_argument(
        "--reward-bounds",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="of states that an unfinished search did not explore (default: the rewards it met)",
    )
    parser.add_argument(
        "--image", type=Path, metavar="FILE.png", help="where to save the deciding state (default: NAME-deciding.png)"
    )


def _add_gorp(commands: Any) -> None:
    parser = _command(
        commands,
        "gorp",
        "gorp",
        "run GORP, or search for the smallest number of episodes with which it succeeds",
        "efhorizon gorp freeway_10_fs30 --k 1",
    )
    parser.add_argument("name", metavar="PATH|NAME", help="a table, or the name of one in ./tables; see --live")
    parser.add_argument("--horizon", type=int, metavar="T", help="steps of an episode (default: that of the table)")
    parser.add_argument("--k", type=int, default=1, metavar="K", help="length of action sequences (default: 1)")
    parser.add_argument("--m", type=int, metavar="M", help="episodes for each sequence (default: search for them)")
    parser.add_argument("--runs", type=int, metavar="N", help="independent runs (default: 101; 1 with --live)")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers (default: 0)")
    parser.add_argument(
        "--budget", type=int, metavar="N", help="timesteps of a run, at most, in a search (default: 100,000,000)"
    )
    _add_exploration_policy(parser)
    parser.add_argument(
        "--live",
        action="store_true",
        help="run on the live environment: NAME is a name from `efhorizon list`, an Atari game such as freeway or "
        "freeway_1000_fs4 (default: horizon 27,000, frameskip 4), or a Gymnasium id",
    )
    parser.add_argument("--checkpoints", type=Path, metavar="DIR", help="with --live: where to save, and resume from")
    parser.add_argument("--max-steps", type=int, metavar="N", help="with --live: stop a run after so many steps")


def _add_train(commands: Any) -> None:
    parser = _command(
        commands,
        "train",
        "train",
        "train PPO, DQN or GORP on tables and record after how many timesteps each run is optimal",
        "efhorizon train MiniGrid-Empty-5x5-v0 --algo ppo",
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="names of tables, or paths to them")
    parser.add_argument("--algo", choices=("ppo", "dqn", "gorp"), required=True, help="the algorithm")
    parser.add_argument(
        "--backend",
        choices=("table", "sb3"),
        default="table",
        help="on the table, or Stable-Baselines3 on the live environment (default: table)",
    )
    _add_runs(parser)
    parser.add_argument(
        "--settings", default="paper", metavar="S", help="settings by name, with commas (default: paper, all of them)"
    )
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="where rows go (default: results)"
    )
    parser.add_argument(
        "--tables", type=Path, default=Path("tables"), metavar="DIR", help="where tables are (default: tables)"
    )
    _add_exploration_policy(parser, "DQN, GORP: probabilities [S, A] or [T, S, A] of random actions")
    parser.add_argument(
        "--initial",
        type=Path,
        metavar="F.npz",
        help="PPO, DQN: parameters to start from, under the names of Stable-Baselines3's state dictionary",
    )
    parser.add_argument("--tensorboard", type=Path, metavar="DIR", help="write learning curves for TensorBoard too")


def _add_study(commands: Any) -> None:
    parser = _command(
        commands,
        "study",
        "study",
        "build, verify, analyze and train on a set of environments, then write the report; resumes where it stopped",
        "efhorizon study MiniGrid-Empty-5x5-v0 freeway_10_fs30 --steps 200000 --out study",
    )
    parser.add_argument(
        "names",
        nargs="+",
        metavar="SUITE|NAME",
        help=f"{', '.join(catalog.suite_names())}, all, or names of environments",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("study"), metavar="DIR", help="where all goes (default: study)"
    )
    parser.add_argument(
        "--algos", default="gorp,ppo,dqn", metavar="A,B", help="what to run, with commas; none for no runs"
    )
    _add_runs(parser)
    parser.add_argument("--max-states", type=int, metavar="N", help="leave out environments with more states")
    parser.add_argument("--max-minutes", type=float, metavar="M", help="leave out what takes longer to build")
    parser.add_argument("--max-k", type=int, default=3, metavar="K", help="as in `analyze` (default: 3)")
    parser.add_argument("--workers", type=int, metavar="N", help="processes that build (default: one a core)")
    parser.add_argument(
        "--rows",
        type=Path,
        metavar="EXPORT",
        help="go on from this export (of `evaluate --export`): its runs count as done, its analyses are taken over",
    )
    parser.add_argument("--forecast", action="store_true", help="only say what time, memory and disk it would take")


def _add_evaluate(commands: Any) -> None:
    parser = _command(
        commands,
        "evaluate",
        "evaluate",
        "compare every bound with what PPO and DQN needed: the paper's tables",
        "efhorizon evaluate study",
    )
    _add_results_path(parser)
    parser.add_argument("--export", type=Path, metavar="DIR", help="write summary.csv and the rows as Parquet there")
    parser.add_argument(
        "--publish", type=Path, metavar="DIR", help="write tables.md, lists.md and figures there, as files to commit"
    )
    parser.add_argument("--resamples", type=int, default=2000, metavar="N", help="of the bootstrap (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (default: 0)")


def _add_report(commands: Any) -> None:
    parser = _command(
        commands,
        "report",
        "report",
        "write a web site about a study: it opens from disk, with no network",
        "efhorizon report study --out report --open",
    )
    _add_results_path(parser)
    parser.add_argument("--out", type=Path, default=Path("report"), metavar="DIR", help="the site (default: report)")
    parser.add_argument("--open", action="store_true", help="open it in the browser")


def _add_serve(commands: Any) -> None:
    parser = _command(
        commands,
        "serve",
        "serve",
        "show a report to the browsers of this machine",
        "efhorizon serve report",
        has_json=False,
    )
    parser.add_argument("path", type=Path, metavar="DIR", help="a report")
    parser.add_argument("--port", type=int, default=8000, metavar="N", help="0 takes any that is free (default: 8000)")
    parser.add_argument("--open", action="store_true", help="open it in the browser")


def _add_demo(commands: Any) -> None:
    parser = _command(
        commands,
        "demo",
        "demo",
        "run a small study of all three suites, from building tables to the report: some minutes",
        "efhorizon demo",
    )
    parser.add_argument("--out", type=Path, default=Path("demo"), metavar="DIR", help="where all goes (default: demo)")


def _memory_size(text: str) -> int:
    """Bytes from 500M, 8G or a plain number of bytes."""
    factor = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}.get(text[-1:].upper())
    try:
        return int(float(text[:-1]) * factor) if factor else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a size: {text!r} (write 500M or 8G)") from None


if __name__ == "__main__":
    sys.exit(main())
