"""`efhorizon report`: a web site about a study."""

from __future__ import annotations

import argparse
from pathlib import Path

from efhorizon.commands import _arguments, _exit

HELP = "write a web site about a study, which opens from disk"
DESCRIPTION = """\
Writes a web site: which bounds predict what PPO and DQN needed, and a page for
each environment that says how hard it is and why. It needs no network; open
DIR/index.html.
"""
EXAMPLE = "efhorizon report study --out report --open"
_NOTES_SHOWN = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_results(parser)
    parser.add_argument(
        "--out", type=Path, default=Path("report"), metavar="DIR", help="folder for the site (default: report)"
    )
    _arguments.add_published(parser)
    _arguments.add_with_chance(parser)
    _arguments.add_open(parser)
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from efhorizon.commands import _terminal
    from efhorizon.evaluation.original import original
    from efhorizon.render.html import write_report
    from efhorizon.render.terminal.report import written_report

    with _terminal.waiting(f"writing a report on {options.path}"):
        published = None if options.published is None else original(options.published)
        report = write_report(options.path, options.out, published=published, with_chance=options.with_chance)
    for note in report.notes[:_NOTES_SHOWN]:
        _terminal.say(f"note: {note}", style="yellow")
    if len(report.notes) > _NOTES_SHOWN:
        _terminal.say(f"note: and {len(report.notes) - _NOTES_SHOWN} more", style="yellow")
    if options.json:
        _terminal.print_json({**asdict(report), "path": str(report.path), "index": str(report.index)})
    else:
        _terminal.show(written_report(report))
    if options.open:
        _terminal.open_in_browser(report.index.as_uri(), str(report.index))
    return _exit.DONE
