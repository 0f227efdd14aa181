"""What `efhorizon policy record` needs: who plays, what the recording is called, and what would be optimal."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from efhorizon.commands._exit import UsageError
from efhorizon.errors import StoreError
from efhorizon.io.tables import load, load_table, table_path
from efhorizon.planning.optimal import optimal_plan
from efhorizon.policies.record import NetworkPlayer, OptimalPlayer, Player
from efhorizon.suites.entry import Entry

_STEM = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,79}")


@contextmanager
def opened_player(options: argparse.Namespace, entry: Entry) -> Iterator[Player]:
    """Whoever was asked for."""
    rng = np.random.default_rng(options.seed)
    if options.optimal:
        yield OptimalPlayer(load_table(entry.name, options.tables), options.noise, rng)
    elif options.network is not None:
        from efhorizon.policies.networks import load_network

        yield NetworkPlayer(load_network(options.network), rng, greedy=options.greedy)
    else:
        from efhorizon.policies.keyboard import KeyboardPlayer

        player = KeyboardPlayer(entry)
        try:
            yield player
        finally:
            player.close()


def recording_stem(options: argparse.Namespace, entry: Entry) -> str:
    """The name of the recording's files."""
    stem = options.stem
    if stem is None:
        kind = "optimal" if options.optimal else "person" if options.network is None else "network"
        noise = f"_noise{options.noise:g}" if options.noise else ""
        stem = re.sub(r"[^A-Za-z0-9_.-]", "-", f"{entry.name}_{kind}{noise}_{options.seed}")
    if not _STEM.fullmatch(stem):
        raise UsageError(f"--stem must be at most 80 letters, digits and the signs _ - . ; got {stem[:100]!r}")
    return str(stem)


def optimal_return(options: argparse.Namespace, entry: Entry) -> float | None:
    """The best that can be had, where the environment's table is there."""
    try:
        path = table_path(entry.name, options.tables)
    except StoreError:
        return None
    return optimal_plan(load(path)).optimal_return
