"""Tables: built from an environment, or loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from efhorizon import catalog
from efhorizon.build.consolidate import Rule
from efhorizon.build.explore import Budget
from efhorizon.build.outlook import progress_line
from efhorizon.build.pipeline import Options
from efhorizon.build.pipeline import build as built
from efhorizon.build.target import Target, catalogue_target, gymnasium_target
from efhorizon.build.verify import NumPairs
from efhorizon.dataset import finding
from efhorizon.errors import EfhorizonError
from efhorizon.io.names import is_safe_name
from efhorizon.io.tables import is_there, load_table, opened_table
from efhorizon.library.progress import ProgressLine
from efhorizon.mdp import TabularMDP


class BuildStoppedError(EfhorizonError):
    """A budget ended the search before the table was complete; what was found is kept."""


def build(
    env: Any,
    *,
    horizon: int | None = None,
    arguments: Mapping[str, Any] | None = None,
    out: str | Path = "tables",
    workers: int = 1,
    merge: Rule = "paper",
    ignore_screens: bool = False,
    max_states: int | None = None,
    max_minutes: float | None = None,
    max_memory: int | None = None,
    verify_episodes: int = 20,
    verify_pairs: NumPairs = None,
    progress: bool = False,
    **options: Any,
) -> TabularMDP:
    """The exact, verified table of a deterministic environment, which is also stored in the folder `out`.

    `env` is a name from `ef.entries()`, or a Gymnasium environment: an id such as "FrozenLake-v1" with its `arguments`
    ({"is_slippery": False}). Without a `horizon`, that of the name or the registered episode length counts. Further
    `options` say how a Gymnasium environment is made. A table that is there and still matches its environment is
    loaded. A search that a budget stops raises an error; the same call continues it.
    """
    target = _target(env, horizon, arguments, options)
    chosen = Options(
        out=Path(out),
        num_workers=workers,
        rule=merge,
        ignore_screens=ignore_screens,
        budget=Budget(max_states, max_minutes, max_memory),
        verify_episodes=verify_episodes,
        verify_pairs=verify_pairs,
    )
    with ProgressLine(progress) as line:
        result = built(
            target,
            chosen,
            on_progress=lambda found: line(progress_line(target, found)),
            on_message=line,
            on_verify=line,
        )
    if result.mdp is None:
        raise BuildStoppedError(
            f"{target.id}: stopped by {result.outcome.stopped_by} after {result.outcome.progress.num_states:,} states; "
            "the same call with a larger budget continues"
        )
    return result.mdp


def load(
    given: str | Path,
    *,
    tables: str | Path = "tables",
    horizon: int | None = None,
    remote: str | Path | None = None,
    progress: bool = False,
) -> TabularMDP:
    """A table by its name in the folder `tables`, or by its path: a native store or a BRIDGE `.npz`.

    A name that is not there is looked up in the cache of downloads, and then in the data set at `remote` or else
    EFHORIZON_REMOTE: a folder, an http(s) address, or hf://OWNER/NAME. What is downloaded must have the checksum that
    the data set says, and stays in the cache. Screens are read when they are asked for.

    `horizon` overrides what the file says. Published files do not say their horizon: it is then taken from the folder's
    name where that is in the catalogue, or from the longest episode where the table has no cycle.
    """
    if is_safe_name(str(given)) and not is_there(given, Path(tables)):
        with ProgressLine(progress) as line:
            found = finding.table(
                str(given), remote, lambda name, done, total: line(f"{name}: {done:,} of {total:,} bytes")
            )
        if found is not None:
            return opened_table(found, horizon=horizon)
    return load_table(given, Path(tables), horizon=horizon)


def as_table(given: TabularMDP | str | Path) -> TabularMDP:
    """A table, or the one with this name or path."""
    return given if isinstance(given, TabularMDP) else load(given)


def _target(env: Any, horizon: int | None, arguments: Mapping[str, Any] | None, options: Mapping[str, Any]) -> Target:
    if isinstance(env, str) and catalog.find(env) is not None:
        if arguments or options:
            given = ", ".join(["arguments"] * bool(arguments) + list(options))
            raise EfhorizonError(f"{env} is a name of the catalogue, which takes no {given}")
        return catalogue_target(env, horizon)
    return gymnasium_target(env, arguments, horizon, **options)
