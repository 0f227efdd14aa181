"""`efhorizon dataset verify`: every checksum of a data set."""

from __future__ import annotations

import argparse
from pathlib import Path

from efhorizon.commands import _arguments, _exit

HELP = "compare every file of a data set with its checksum"
DESCRIPTION = """\
Reads every file of a data set on disk and compares its size and SHA-256 with
the registry, and looks for files that nobody listed. Without a folder it does
so for the cache, where parts that were not downloaded do not count. The folder
screens/ may have been left out.
"""
EXAMPLE = "efhorizon dataset verify dataset"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="a data set (default: the cache)")
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from efhorizon.commands import _terminal
    from efhorizon.dataset.checking import check_cache, check_folder

    with _terminal.waiting("comparing checksums"):
        found = check_folder(options.folder) if options.folder is not None else check_cache()
    if options.json:
        _terminal.print_json({**asdict(found), "verified": found.is_right})
    else:
        _terminal.show([f"{found.num_files:,} files, {found.num_bytes:,} bytes: {found.verdict}".replace("[", r"\[")])
        _terminal.show([f"  {each}".replace("[", r"\[") for each in (*found.wrong, *found.notes)])
    return _exit.DONE if found.is_right else _terminal.failed(found.verdict)
