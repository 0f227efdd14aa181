"""`efhorizon serve`: a report over HTTP, for browsers on this machine only."""

from __future__ import annotations

import argparse
from pathlib import Path

from efhorizon.commands import _arguments, _exit, _types

HELP = "serve a report to browsers on this machine"
DESCRIPTION = """\
Serves a report to browsers on this machine; no other machine can reach it.
Prints the address and runs until Ctrl-C.
"""
EXAMPLE = "efhorizon serve report --open"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, metavar="DIR", help="a report")
    parser.add_argument(
        "--port", type=_types.port, default=8000, metavar="N", help="port; 0 takes any free one (default: 8000)"
    )
    _arguments.add_open(parser)


def run(options: argparse.Namespace) -> int:
    from efhorizon.commands import _terminal
    from efhorizon.render.html.server import report_address, report_server

    server = report_server(options.path, options.port)
    address = report_address(server)
    _terminal.show([address])
    _terminal.say("Ctrl-C ends it")
    if options.open:
        _terminal.open_in_browser(address, address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        _terminal.say("ended")
    finally:
        server.server_close()
    return _exit.DONE
