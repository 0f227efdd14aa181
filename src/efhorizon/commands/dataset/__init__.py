"""`efhorizon dataset`: publish a study, and download from a data set. Each module of this folder is a command."""

from __future__ import annotations

import argparse

from efhorizon.commands import _exit, _groups

HELP = "publish a study as a data set, or download tables by name"
DESCRIPTION = """\
A data set is a study as a folder to put on the Hugging Face Hub, Zenodo or any
web server: tables, analyses and runs with checksums, a data card and licences.
`publish` writes one. The others read the one at EFHORIZON_REMOTE (a folder, an
http(s) address, or hf://OWNER/NAME); in Python, ef.load("NAME") does.
`import` reads the data set that the paper's authors published.
"""
EXAMPLE = "efhorizon dataset publish study dataset"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _groups.add_commands(parser, __name__, "dataset_verb")


def kept(options: argparse.Namespace) -> str:
    return str(getattr(_groups.command(__name__, options.dataset_verb), "kept", lambda _: _exit.NOTHING_KEPT)(options))


def run(options: argparse.Namespace) -> int:
    return _groups.command(__name__, options.dataset_verb).run(options)
