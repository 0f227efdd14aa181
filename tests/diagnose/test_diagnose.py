"""Whole diagnoses: against exact values, the same after interruptions, different with another seed."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import efhorizon as ef
from efhorizon.diagnose.log import Log
from efhorizon.errors import StoreError

HORIZON = 20


@cache
def slippery() -> Any:
    return ef.diagnose("FrozenLake-v1", horizon=HORIZON, max_steps=60_000, max_k=1, seed=4)


def exact_values() -> tuple[float, list[float]]:
    """Slippery FrozenLake: the value of random play, and Q^1 of each action at the start, by dynamic programming."""
    table: Any = gymnasium.make("FrozenLake-v1").unwrapped
    value = np.zeros(16)
    for _ in range(HORIZON):
        q = np.array(
            [
                [
                    sum(p * (r + (0 if end else value[s])) for p, s, r, end in table.P[state][action])
                    for action in range(4)
                ]
                for state in range(16)
            ]
        )
        value = q.mean(axis=1)
    return float(value[0]), q[0].tolist()


def test_exact_values_of_slippery_frozen_lake_lie_in_the_intervals() -> None:
    found = slippery()
    mean, q = exact_values()
    assert found.random_play.mean_return.low <= mean <= found.random_play.mean_return.high
    step = found.by_k[1].decisions[0]
    for action, exact in zip(step.actions, q, strict=True):
        assert action.value.low <= exact <= action.value.high
    assert step.gap.low <= sorted(q)[-1] - sorted(q)[-2] <= step.gap.high


def test_another_seed_meets_other_noise_and_the_same_seed_the_same() -> None:
    again = ef.diagnose("FrozenLake-v1", horizon=HORIZON, max_steps=60_000, max_k=1, seed=4)
    other = ef.diagnose("FrozenLake-v1", horizon=HORIZON, max_steps=60_000, max_k=1, seed=5)
    mine, same, different = ({**each.as_json(), "seconds": 0} for each in (slippery(), again, other))
    assert mine == same
    assert mine["random_play"]["mean_return"] != different["random_play"]["mean_return"]


def test_an_easy_gridworld() -> None:
    found = ef.diagnose("MiniGrid-Empty-5x5-v0", max_steps=100_000)
    content = found.as_json()
    assert content["by_k"]["1"]["m"] == {"low": 1, "estimate": 1, "high": 1}  # its exact m
    assert content["by_k"]["1"]["effective_horizon"] == {"low": 1.0, "estimate": 1.0, "high": 1.0}
    assert content["greedy_return"] == content["best_return"] == 1.0
    assert content["steps_played"] <= 101_000
    assert set(content["forecast"]) == {"ppo", "dqn"}
    json.dumps(content, allow_nan=False)


def test_a_best_return_that_is_never_reached_gives_no_upper_end() -> None:
    found = ef.diagnose("MiniGrid-Empty-5x5-v0", max_steps=80_000, best_return=2.0, max_k=1)
    assert found.by_k[1].m.high == found.by_k[1].m.estimate == math.inf
    assert found.by_k[1].reaches_best is False
    assert found.as_json()["by_k"]["1"]["m"]["high"] is None


def test_effective_horizon_is_k_plus_log_m() -> None:
    each = slippery().by_k[1]
    assert each.effective_horizon.low == pytest.approx(1 + math.log(each.m.low, 4))


def test_killed_with_9_it_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "efhorizon", "diagnose", "MiniGrid-LavaGapS5-v0", "--max-steps", "150k", "--json"]

    def started(folder: str, workers: int) -> subprocess.Popen[str]:
        arguments = [*command, "--workers", str(workers), "--results", str(tmp_path / folder)]
        return subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )

    expected = json.loads(started("whole", 2).communicate()[0])
    for kill in range(3):
        process = started("killed", 1)
        deadline = time.monotonic() + 60
        while _lines(tmp_path / "killed") < 5 * (kill + 1) and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    resumed = json.loads(started("killed", 1).communicate()[0])
    for content in (expected, resumed):
        del content["seconds"], content["path"]
    assert resumed == expected


def _lines(folder: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in folder.glob("diagnoses/*.log.jsonl"))


def test_a_log_drops_half_a_line_and_refuses_what_is_not_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.log.jsonl"
    log = Log(path, {"id": "x"})
    log.add("one", math.inf)
    with pytest.raises(StoreError, match="another process"):
        Log(path, {"id": "x"})
    log.close()
    with path.open("a") as file:
        file.write('{"key": "tw')
    log = Log(path, {"id": "x"})
    assert log.found("one", float) == math.inf
    assert log.found("two", float) is None
    log.add("two", 2.0)
    log.close()
    with pytest.raises(StoreError, match="another diagnosis"):
        Log(path, {"id": "y"})
    path.write_text(path.read_text() + "nonsense\n")
    with pytest.raises(StoreError, match="line 4 is damaged"):
        Log(path, {"id": "x"})
