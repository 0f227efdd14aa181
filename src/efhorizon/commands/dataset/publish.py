"""`efhorizon dataset publish`: a study as a data set."""

from __future__ import annotations

import argparse
from pathlib import Path

from efhorizon.commands import _exit
from efhorizon.commands.dataset import _shared

HELP = "write a study as a data set, ready for any web server"
DESCRIPTION = """\
Writes a study as a folder that can be put on the Hugging Face Hub, Zenodo or
any web server as it is: for each MDP its table (native and in the BRIDGE
layout), analysis, runs and pictures; index.parquet and summary.csv over all; a
data card with a datasheet, Croissant metadata, licences and checksums. The same
study gives the same bytes. Tables come from STUDY/tables and the folders given
with --tables; an MDP without a table is published with its analysis and runs
alone. Screens of commercial games are in a folder of their own, which
--no-screens leaves out.
"""
EXAMPLE = "efhorizon dataset publish study dataset --version 1.0.0"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", type=Path, metavar="STUDY", help="folder of a study, an export, or a summary.csv")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the data set; a data set there is replaced")
    parser.add_argument("--name", default="efhorizon", metavar="NAME", help="of the data set (default: efhorizon)")
    parser.add_argument("--version", default="1.0.0", metavar="X.Y.Z", help="of the data set (default: 1.0.0)")
    parser.add_argument(
        "--tables", type=Path, action="append", default=[], metavar="DIR", help="more tables (may be repeated)"
    )
    parser.add_argument(
        "--no-screens", action="store_true", help="leave out screens of commercial games and states of their emulators"
    )
    parser.add_argument("--address", metavar="URL", help="where the data set will be, for its metadata")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def run(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from efhorizon.commands import _terminal
    from efhorizon.dataset.publish import Choices, publish

    chosen = Choices(options.name, options.version, not options.no_screens, tuple(options.tables), options.address)
    lines = _terminal.SlowLines()
    with _terminal.waiting(f"writing {options.out}") as update:

        def on_message(text: str) -> None:
            update(text)
            lines.say(text)

        done = publish(options.study, options.out, chosen, on_message)
    for note in done.notes:
        _terminal.say(f"note: {note}", style="yellow")
    if options.json:
        _terminal.print_json({**asdict(done), "path": str(done.path)})
    else:
        _terminal.show(
            [
                f"{done.name} {done.version}: {done.num_mdps} MDPs, {done.num_tables} with tables, "
                f"{done.num_runs:,} runs",
                f"  files      {done.num_files:,}, {_shared.megabytes(done.num_bytes)}",
                f"  screens    {_shared.megabytes(done.bytes_of_screens)}, a part of their own",
                f"  content    {done.content}",
                f"  stored in  {done.path}",
            ]
        )
    return _exit.DONE
