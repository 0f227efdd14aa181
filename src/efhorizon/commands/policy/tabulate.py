"""`efhorizon policy tabulate`: a network's policy as probabilities of a table."""

from __future__ import annotations

import argparse
from pathlib import Path

from efhorizon.commands import _arguments, _exit
from efhorizon.commands.policy import _policies

HELP = "a network's action probabilities in every state of a table"
DESCRIPTION = """\
Shows every observation of a table to a policy and writes its probabilities of
actions, [states, actions], for `efhorizon analyze --exploration-policy`. Atari
networks see four frames, so their probabilities belong to the table expanded
by its history of screens: --table-out writes that table.
"""
EXAMPLE = "efhorizon policy tabulate maze_easy_l0_30_fs1 --policy maze.npz --out maze.npy"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_table(parser)
    _policies.add_policy(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="F.npy", help="file for the probabilities")
    parser.add_argument(
        "--table-out",
        type=Path,
        metavar="PATH",
        help="write the table that they belong to: a folder, or .npz in the published layout",
    )
    parser.add_argument(
        "--published", action="store_true", help="write the published layout, [horizon, states + 1, actions] float32"
    )
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    from efhorizon.commands import _terminal
    from efhorizon.commands._exit import UsageError
    from efhorizon.io.tables import load_table, save
    from efhorizon.planning.policies import published_policy, save_policy

    if options.out.suffix != _policies.PROBABILITIES:
        raise UsageError(f"--out must end in .npy, got {options.out}")
    table, found = _policies.policy_on(load_table(options.table, options.tables), options)
    save_policy(options.out, published_policy(table, found) if options.published else found)
    if options.table_out is not None:
        save(table, options.table_out)
    content = {
        "id": table.metadata.get("id"),
        "probabilities": str(options.out),
        "table": None if options.table_out is None else str(options.table_out),
        "num_states": table.num_states,
        "num_actions": table.num_actions,
        "frames": table.frame_stack,
        "least_probability": float(found.min()),
    }
    if options.json:
        _terminal.print_json(content)
        return _exit.DONE
    frames = f" with the last {table.frame_stack} screens" if table.frame_stack > 1 else ""
    lines = [f"{options.out}: probabilities of {table.num_actions} actions in {table.num_states:,} states{frames}"]
    if options.table_out is not None:
        lines.append(f"{options.table_out}: the table that they belong to")
    elif table.frame_stack > 1:
        lines.append("They belong to the table expanded by its history of screens: --table-out writes it.")
    _terminal.show(lines)
    return _exit.DONE
