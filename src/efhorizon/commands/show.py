"""`efhorizon show`: a table at a glance."""

from __future__ import annotations

import argparse

from efhorizon.commands import _arguments, _environments, _exit, _stochastic

HELP = "describe a table: its size, rewards, returns and layers"
DESCRIPTION = """\
Prints how large a table is, which rewards it pays, the worst and the best
return, how it was verified, and how many states there are at each depth. With
--image it also saves the start screen.
"""
EXAMPLE = "efhorizon show freeway_10_fs30 --image start.png"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_table(parser)
    _environments.add_image(parser, "the start screen")
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    from efhorizon.commands import _pictures, _terminal
    from efhorizon.io.tables import load, table_path
    from efhorizon.render.terminal.description import described, description

    path = table_path(options.table, options.tables)
    if (with_chance := _stochastic.table_of(path, options)) is not None:
        return _stochastic.shown(path, with_chance, options)
    mdp = load(path)
    saved = _pictures.saved(mdp, 0, options.image, _environments.drawing_environment(options, mdp))
    content = description(mdp, path, saved.image)
    if options.json:
        _terminal.print_json(content.as_json())
    else:
        _terminal.show(described(content))
    return _exit.DONE if saved.failure is None else _terminal.failed(saved.failure)
