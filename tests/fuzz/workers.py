"""Warm processes that run cases: everything is imported and compiled once, and each command then runs in a fork."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import traceback
from multiprocessing.connection import Connection
from pathlib import Path

from .bench import Bench, Outcome, efhorizon
from .cases import Case
from .children import forking
from .corpus import ODD_LINES, make_if_needed
from .kinds import KINDS
from .verdicts import Verdict

_WARM = {  # commands that between them load all kernels and packages
    "store": ("show (text, screen)", "analyze", "gorp", "verify", "export", "train"),
    "unfinished-store": ("analyze",),
    "npz": ("analyze", "verify", "train"),
    "search": ("build (continued)",),
    "row": ("report",),
    "mdps.parquet": ("evaluate", "study --rows"),
    "checkpoint": ("gorp --live",),
    "policy": ("analyze --exploration-policy", "gorp --exploration-policy", "train --exploration-policy"),
    "parameters": ("train --initial",),
}


def serve(connections: list[Connection], corpus: Path, folder: Path) -> None:
    """Make the corpus, warm up, and fork a worker for each connection; ends when all of them have ended."""
    for number in (0, 1):  # nothing that is printed here is for anybody, and nothing may be taken for a terminal
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    forking()
    try:
        make_if_needed(corpus)
        _warm_up(Bench(corpus, folder / "warm"), folder / "warm")
    except BaseException:
        for connection in connections:
            connection.send(traceback.format_exc())
        raise
    gc.collect()
    gc.freeze()  # what is here now stays: forks need not look through it, which would copy it
    for number, connection in enumerate(connections):
        if os.fork() == 0:
            _work(connection, Bench(corpus, folder / f"worker{number}"))
            os._exit(0)
        connection.close()
    for _ in connections:
        os.wait()


def _warm_up(bench: Bench, folder: Path) -> None:
    """Run commands once in this very process, so that its forks find everything in memory."""
    lines = [(name, each.line) for name in _WARM for each in KINDS[name].commands if each.name in _WARM[name]]
    for name, line in (*lines, *(("npz", line) for line in ODD_LINES)):
        bench.lay_out(KINDS[name])
        os.chdir(folder / "cwd")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            efhorizon(line.split())
        os.chdir("/")


def _work(connection: Connection, bench: Bench) -> None:
    """A worker's life: cases come in, outcomes go out."""
    connection.send(None)  # ready
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            case, one = connection.recv()
            try:
                outcome = bench.run(Case.named(case), one=one)
            except Exception as error:
                outcome = Outcome(case, "", {"fuzzer": Verdict("broken", repr(error)[:300])}, 0.0)
            connection.send(outcome)
