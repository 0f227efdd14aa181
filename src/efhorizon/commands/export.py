"""`efhorizon export`: a table in the published layout."""

from __future__ import annotations

import argparse
from pathlib import Path

from efhorizon.commands import _arguments, _exit, _stochastic, _types

HELP = "write a table as a BRIDGE npz, the published layout"
DESCRIPTION = """\
Writes a table in the layout of the published BRIDGE files, which numpy.load
opens: transitions, rewards, screens as pictures, and raw simulator states.
"""
EXAMPLE = "efhorizon export freeway_10_fs30 freeway.npz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_table(parser)
    parser.add_argument("file", type=_npz_file, metavar="FILE.npz", help="the file to write")
    parser.add_argument(
        "--sticky", type=_types.fraction, metavar="Q", help="write the table with sticky actions instead (with chance)"
    )
    parser.add_argument("--no-states", action="store_true", help="leave out the raw simulator states")
    parser.add_argument("--no-screens", action="store_true", help="leave out the screens")
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    from efhorizon.build.published import published_table
    from efhorizon.commands import _terminal
    from efhorizon.io.tables import opened_table, save, table_path
    from efhorizon.render.terminal.building import exported_table

    path = table_path(options.table, options.tables)
    if (with_chance := _stochastic.table_of(path, options)) is not None:
        return _stochastic.exported(with_chance, options.file, options)
    mdp = opened_table(path)
    with _terminal.waiting(f"writing {options.file}"):
        published = published_table(
            mdp,
            with_screens=not options.no_screens,
            with_states=not options.no_states,
            on_message=_terminal.say,
        )
        save(published, options.file)
    num_bytes = options.file.stat().st_size
    if options.json:
        _terminal.print_json({"id": mdp.metadata.get("id"), "path": str(options.file), "bytes": num_bytes})
    else:
        _terminal.show(exported_table(mdp, options.file, num_bytes))
    return _exit.DONE


def _npz_file(text: str) -> Path:
    if Path(text).suffix != ".npz":
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .npz; write it as freeway.npz")
    return Path(text)
