"""The verbs of the command line, one module each: its arguments, what it does, what it prints.

A verb is a module of this folder with `HELP`, `DESCRIPTION`, `EXAMPLE`, `add_arguments(parser)` and `run(options)`;
adding one takes no more than that. `run` prints for people (what `render.terminal` composes) or, with --json, for
programs. A verb may have `kept(options)`, which says what an interrupted run has left behind. It is asked at that
moment; a verb without it keeps nothing.

Every module is imported for `efhorizon --help` and for each press of Tab, so what is slow to load (numba, torch, rich)
is imported in `run`.
"""

from __future__ import annotations

from efhorizon.commands._main import main

__all__ = ["main"]
