"""Killed at any moment, a build goes on where it stood, and the table is the same."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from efhorizon.build.search_records import COMMIT, read_commit

NAME = "MiniGrid-KeyCorridorS3R3-v0"  # 108,032 states: some ten seconds, several commits
KILLS = 5


def started(out: Path) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "efhorizon",
        "build",
        NAME,
        "--json",
        "--out",
        str(out),
        "--workers",
        "2",
        "--pairs",
        "0",
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def expanded(out: Path) -> int:
    """The states whose expansion a search has committed."""
    commits = [read_commit(path.parent) for path in out.rglob(COMMIT)]
    return max((commit.num_expanded for commit in commits if commit is not None), default=0)


def test_five_kills_and_the_same_table(tmp_path: Path) -> None:
    expected = json.loads(started(tmp_path / "whole").communicate()[0])
    rng = np.random.default_rng(9)
    kills, attempt = 0, 0
    while kills < KILLS:
        out = tmp_path / f"killed{attempt}"
        process = started(out)
        while process.poll() is None and expanded(out) == 0:
            time.sleep(0.01)  # until something is kept
        time.sleep(rng.uniform(0, 2))
        process.kill()
        process.wait()
        if process.returncode == 0:
            attempt += 1  # it was done before the moment came: take a new folder
        else:
            kills += 1
    resumed = json.loads(started(out).communicate()[0])
    assert resumed["fingerprint"] == expected["fingerprint"]
    assert resumed["num_states_raw"] == expected["num_states_raw"] == 108_032
    assert resumed["num_pairs_emulated"] < expected["num_pairs_emulated"]
    assert resumed["verified"]
