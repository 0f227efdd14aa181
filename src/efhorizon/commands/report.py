"""`efhorizon report`: a web site about a study."""

from __future__ import annotations

import argparse
import webbrowser
from dataclasses import asdict

from rich.console import Console

from efhorizon.cli import messages, print_json
from efhorizon.render.html import write_report

_NOTES_SHOWN = 12


def run(options: argparse.Namespace) -> int:
    with messages.status(f"writing a report on {options.path}"):
        report = write_report(options.path, options.out)
    for note in report.notes[:_NOTES_SHOWN]:
        messages.print(f"note: {note}", style="yellow", markup=False, soft_wrap=True)
    if len(report.notes) > _NOTES_SHOWN:
        messages.print(f"note: and {len(report.notes) - _NOTES_SHOWN} more", style="yellow")
    if options.json:
        print_json({**asdict(report), "path": str(report.path), "index": str(report.index)})
    else:
        Console(highlight=False).print(
            f"{report.num_mdps} MDPs, {report.num_files} files, {report.num_bytes / 1e6:.1f} MB: {report.index}",
            markup=False,
            soft_wrap=True,
        )
    if options.open and not webbrowser.open(report.index.as_uri()):
        messages.print(f"no browser was found; open {report.index} yourself", markup=False, soft_wrap=True)
    return 0
