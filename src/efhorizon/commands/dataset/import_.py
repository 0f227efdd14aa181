"""`efhorizon dataset import`: the data set of the paper's authors."""

from __future__ import annotations

import argparse
from pathlib import Path

from efhorizon.commands import _arguments, _exit

HELP = "read the data set that the paper's authors published"
DESCRIPTION = """\
Reads the BRIDGE folder as its authors published it: summary.csv,
summary_sticky.csv, and in mdps/NAME/ and mdps_with_reward_shaping/NAME/ the
tables with analyses, GORP results and policies. Every file is checked, and
nothing is unpickled. What was found is written to DIR, which `evaluate` and
`report` show beside your own study with --published DIR, or on its own.
"""
EXAMPLE = "efhorizon dataset import bridge_dataset --out published"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the authors' folder")
    parser.add_argument(
        "--out", type=Path, default=Path("published"), metavar="DIR", help="where to write it (default: published)"
    )
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    from efhorizon.commands import _terminal
    from efhorizon.evaluation.original import as_json, original, write

    lines = _terminal.SlowLines()
    with _terminal.waiting(f"reading {options.folder}") as update:

        def on_message(name: str) -> None:
            update(f"reading {name}")
            lines.say(f"reading {name}")

        found = original(options.folder, on_message)
    path = write(found, options.folder, options.out)
    for note in found.notes:
        _terminal.say(f"note: {note}", style="yellow")
    if options.json:
        _terminal.print_json({"path": str(path), **as_json(found)})
        return _exit.DONE
    counts = {
        "with a table": sum(mdp.fingerprint is not None for mdp in found.mdps),
        "with an effective horizon": sum(mdp.effective_horizon is not None for mdp in found.mdps),
        "with results of PPO or DQN": sum(bool(mdp.needed) for mdp in found.mdps),
        "with a policy to start from": sum(bool(mdp.policies) for mdp in found.mdps),
        "with sticky actions": sum(mdp.sticky is not None for mdp in found.mdps),
    }
    _terminal.show(
        [
            f"{len(found.mdps)} MDPs",
            *(f"  {count:5} {what}" for what, count in counts.items()),
            f"  stored in  {path}",
            f"  see it beside yours: efhorizon evaluate STUDY --published {options.out}",
        ]
    )
    return _exit.DONE
