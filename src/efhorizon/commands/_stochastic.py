"""What `analyze`, `show` and `export` do with tables that have chance."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from efhorizon.commands import _exit
from efhorizon.commands._exit import UsageError

if TYPE_CHECKING:
    from efhorizon.stochastic.mdp import StochasticMDP

_DEFAULT_SECONDS = 45.0


def table_of(path: Path, options: argparse.Namespace) -> StochasticMDP | None:
    """The stochastic table that a call is about: one in a file, or a deterministic one with --sticky; else None."""
    from efhorizon.io.tables import opened_table
    from efhorizon.stochastic.sticky import sticky
    from efhorizon.stochastic.store import is_stochastic, load

    chance = getattr(options, "sticky", None)
    horizon = getattr(options, "horizon", None)
    if is_stochastic(path):
        if chance is not None:
            raise UsageError(f"--sticky goes with a deterministic table; {path} has chance already")
        return load(path, horizon=horizon)
    if chance is None:
        return None
    return sticky(opened_table(path, horizon=horizon), chance)


def analyzed(tables: list[tuple[Path, StochasticMDP]], options: argparse.Namespace) -> int:
    """Analyze tables with chance, and print one screen or one JSON object for each."""
    from efhorizon.commands import _terminal
    from efhorizon.planning.policies import load_policy
    from efhorizon.render.terminal.stochastic import stochastic_analysis
    from efhorizon.stochastic.analysis import analyze

    if options.gamma != 1.0:
        raise UsageError("--gamma is for deterministic tables")
    policy = None if options.exploration_policy is None else load_policy(options.exploration_policy)
    seconds = _DEFAULT_SECONDS if options.max_minutes is None else 60 * options.max_minutes
    contents = []
    for path, mdp in tables:
        with _terminal.waiting(f"analyzing {path}") as say:
            result = analyze(mdp, exploration_policy=policy, seconds=seconds, on_progress=say)
        if options.json:
            contents.append({**result.as_json(), "path": str(path)})
        else:
            _terminal.show(stochastic_analysis(path, result))
    if options.json:
        _terminal.print_json(contents[0] if len(contents) == 1 else contents)
    return _exit.DONE


def shown(path: Path, mdp: StochasticMDP, options: argparse.Namespace) -> int:
    """Describe a table with chance."""
    from efhorizon.commands import _terminal
    from efhorizon.render.terminal.stochastic import described_stochastic
    from efhorizon.stochastic.description import description

    content = description(mdp, path)
    if options.json:
        _terminal.print_json(content)
    else:
        _terminal.show(described_stochastic(content, mdp, path))
    return _exit.DONE


def exported(mdp: StochasticMDP, file: Path, options: argparse.Namespace) -> int:
    """Write a table with chance as npz."""
    from efhorizon.commands import _terminal
    from efhorizon.stochastic.store import save

    save(mdp, file)
    content = {"id": mdp.metadata.get("id"), "path": str(file), "bytes": file.stat().st_size}
    if options.json:
        _terminal.print_json(content)
    else:
        _terminal.show([f"{file}: {content['bytes']:,} bytes, a table with chance ({mdp.num_states:,} states)"])
    return _exit.DONE
