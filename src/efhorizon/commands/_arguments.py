"""Arguments that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from efhorizon import catalog
from efhorizon.agents.deep.protocol import PAPER_STEPS
from efhorizon.commands import _types
from efhorizon.commands._exit import UsageError
from efhorizon.study import sweep

if TYPE_CHECKING:
    from efhorizon.engines.choice import EngineChoice

TABLES = Path("tables")  # where `build` puts tables, and where the other commands look for them by name
RESULTS = Path("results")  # where `analyze` and `train` put what `evaluate` and `report` read
MAX_K = 3
MAX_HORIZON = 2**17  # that of a table
MAX_RUNS = 1_000_000  # and episodes and resamples: each takes memory
_MAX_SEEDS, _MAX_STEPS, _MAX_WORKERS = 10_000, 10**12, 1024

Completer = Callable[..., Iterable[str]]


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def add_table(parser: argparse.ArgumentParser, *, several: bool = False, more: str = "") -> None:
    """One or several tables, by name or by path, and the folder in which names are looked up."""
    action = parser.add_argument(
        "table",
        nargs="+" if several else None,
        metavar="TABLE",
        help=f"name of a table in ./{TABLES}, or path of a store or .npz{more}",
    )
    completed(action, table_names)
    add_tables_folder(parser)


def add_tables_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tables",
        type=Path,
        default=TABLES,
        metavar="DIR",
        help=f"the folder in which tables are looked up by name (default: {TABLES})",
    )


def add_horizon(parser: argparse.ArgumentParser, default: str = "that of the table") -> None:
    parser.add_argument(
        "--horizon",
        type=_types.count(most=MAX_HORIZON),
        metavar="T",
        help=f"number of steps in an episode (default: {default})",
    )


def add_max_k(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-k",
        type=_types.count(),
        default=MAX_K,
        metavar="K",
        help=f"number of planning steps to try, at most (default: {MAX_K})",
    )


def add_seed(parser: argparse.ArgumentParser, of: str) -> None:
    parser.add_argument(
        "--seed", type=_types.count(least=0), default=0, metavar="N", help=f"random seed of {of} (default: 0)"
    )


def add_exploration_policy(parser: argparse.ArgumentParser, of: str = "") -> None:
    parser.add_argument(
        "--exploration-policy",
        type=Path,
        metavar="F.npy",
        help=f"{of}action probabilities [S, A] or [T, S, A] to explore with (default: every action equally likely)",
    )


def add_runs(parser: argparse.ArgumentParser) -> None:
    """How much PPO and DQN are run; the defaults are the paper's."""
    parser.add_argument(
        "--seeds",
        type=_types.count(most=_MAX_SEEDS),
        default=sweep.SEEDS,
        metavar="N",
        help=f"runs of each setting (default: {sweep.SEEDS})",
    )
    parser.add_argument(
        "--steps",
        type=_types.count(most=_MAX_STEPS),
        default=PAPER_STEPS,
        metavar="N",
        help=f"timesteps of a run, at most, such as 200k (default: {PAPER_STEPS:,})",
    )


def add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers",
        type=_types.count(most=_MAX_WORKERS),
        metavar="N",
        help="number of processes (default: one per core)",
    )


def add_engine(parser: argparse.ArgumentParser, *, has_owners: bool = False) -> None:
    """Where work runs; read by `engine_choice`."""
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="work in processes of this machine, or on a Ray cluster; the results are the same (default: local)",
    )
    parser.add_argument(
        "--address",
        metavar="A",
        help="of a Ray cluster, such as 10.0.0.1:6379 or auto (default: $RAY_ADDRESS, or else one is started here)",
    )
    if has_owners:
        parser.add_argument(
            "--owners",
            type=_types.count(most=_MAX_WORKERS),
            metavar="N",
            help="Ray actors that hold the states of the search (default: one per node)",
        )


def engine_choice(options: argparse.Namespace) -> EngineChoice:
    from efhorizon.engines.choice import EngineChoice

    owners = getattr(options, "owners", None)
    if options.engine == "local" and (options.address is not None or owners is not None):
        raise UsageError("--address and --owners go with --engine ray")
    workers = options.workers if options.engine == "ray" else None
    return EngineChoice(options.engine, options.address, owners, workers)


def add_pairs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pairs",
        type=_types.count_or_all,
        metavar="N",
        help="pairs of a state and an action to replay: a number, drawn at random, or all of them "
        "(default: all if there are at most a million, else so many that one wrong pair in a thousand is found with "
        "a chance of 99%%)",
    )


def add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path",
        type=Path,
        metavar="RESULTS",
        help="folder of a study, an export of one, or a summary.csv",
    )


def add_results_folder(parser: argparse.ArgumentParser, of: str) -> None:
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        metavar="DIR",
        help=f"folder for {of}, which evaluate and report read (default: {RESULTS})",
    )


def add_published(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--published",
        type=Path,
        metavar="DIR",
        help="show what the paper's authors published beside it: their folder, or what `dataset import` has written",
    )


def add_with_chance(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--with-chance",
        type=Path,
        metavar="DIR",
        help="show these results of `efhorizon sticky`, or an export of them, too (default: those in RESULTS)",
    )


def add_open(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--open", action="store_true", help="open it in the browser")


def completed(action: argparse.Action, completer: Completer) -> None:
    """Let the shell complete an argument."""
    action.completer = completer  # type: ignore[attr-defined]  # read by argcomplete


def table_names(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    from efhorizon.io import tables

    return tables.table_names(parsed_args.tables)


def environment_names(**_: Any) -> list[str]:
    return [entry.name for entry in catalog.entries()]
