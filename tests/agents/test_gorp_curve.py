"""GORP's learning curve on live environments: what is counted, any number of processes, and runs that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gorp_twin import close

from efhorizon import EfhorizonError, TabularMDP
from efhorizon.agents.live.gorp_curve import gorp_curve
from efhorizon.agents.live.rollouts import EnvironmentName
from efhorizon.agents.tabular.gorp import gorp

GRIDWORLD = EnvironmentName("MiniGrid-Empty-5x5-v0", 12)

KILLED = """
import os, signal, sys
from pathlib import Path
from efhorizon.agents.live import gorp_curve as module
from efhorizon.agents.live.rollouts import EnvironmentName

module._SECONDS_A_CHECKPOINT = -1.0  # after every iteration
number = 0

def write(path, record, write=module.write_record):
    global number
    number += 1
    write(path, record)
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)

if int(sys.argv[2]):
    module.write_record = write
name = EnvironmentName("MiniGrid-Empty-5x5-v0", 12)
module.gorp_curve(name, k=1, m=3, seed=5, max_steps=10**9, interval=50, checkpoint=Path(sys.argv[1]))
"""


def test_the_same_success_as_on_the_table(gridworld: TabularMDP) -> None:
    pytest.importorskip("minigrid")
    mdp = TabularMDP(gridworld.transitions, gridworld.rewards, 12)
    runs = [gorp_curve(GRIDWORLD, k=1, m=2, seed=seed, max_steps=10**9) for seed in range(60)]
    table = gorp(mdp, k=1, m=2, runs=20_000, rng=np.random.default_rng(0))
    assert close(np.mean([run.total_reward == 1 for run in runs]).item(), table.success_rate, len(runs))
    assert all(run.is_complete for run in runs)
    # The first point of a curve is the return of random play, as an unbiased estimate from 3 x 2 episodes.
    first = np.array([run.curve[0][1] for run in runs])
    assert first.mean() == pytest.approx(random_return(mdp), abs=5 * first.std() / np.sqrt(len(runs)) + 1e-9)


def random_return(mdp: TabularMDP) -> float:
    """The expected return of random play, by dynamic programming written out."""
    value = np.zeros(mdp.num_states + 1)
    for _ in range(mdp.horizon):
        value[:-1] = (mdp.rewards + value[mdp.transitions]).mean(axis=1)
        value[-1] = 0
    return float(value[0])


def test_timesteps_are_counted_from_the_start_of_an_episode() -> None:
    """Freeway's ten steps never end early, so the authors' count is T^2 A m; less is emulated."""
    pytest.importorskip("ale_py")
    run = gorp_curve(EnvironmentName("freeway_10_fs30"), k=1, m=1, seed=0, max_steps=10**9, interval=1)
    assert run.timesteps == 10 * 10 * 3
    assert run.steps_played == sum(3 * (10 - step) for step in range(10)) + 10
    assert [point[0] for point in run.curve] == [30 * step for step in range(10)]
    bests = [point[2] for point in run.curve]
    assert bests == sorted(bests)
    assert run.best_return is not None
    assert run.best_return >= run.total_reward


def test_the_number_of_processes_does_not_matter() -> None:
    pytest.importorskip("minigrid")
    runs = [gorp_curve(GRIDWORLD, k=2, m=3, seed=1, max_steps=10**9, workers=workers) for workers in (1, 2)]
    assert runs[0] == runs[1]


def test_more_timesteps_continue_a_run(tmp_path: Path) -> None:
    pytest.importorskip("minigrid")
    saved, whole = tmp_path / "run.json", gorp_curve(GRIDWORLD, k=1, m=3, seed=2, max_steps=10**9, interval=100)
    for steps in (1, 300, 800):
        part = gorp_curve(GRIDWORLD, k=1, m=3, seed=2, max_steps=steps, interval=100, checkpoint=saved)
        assert part.timesteps >= steps
        assert part.actions == whole.actions[: len(part.actions)]
    assert gorp_curve(GRIDWORLD, k=1, m=3, seed=2, max_steps=10**9, interval=100, checkpoint=saved) == whole
    with pytest.raises(EfhorizonError, match="a checkpoint of another run"):
        gorp_curve(GRIDWORLD, k=1, m=4, seed=2, max_steps=1, interval=100, checkpoint=saved)
    saved.write_text("{}")
    with pytest.raises(EfhorizonError, match=r"delete it to begin this run again"):
        gorp_curve(GRIDWORLD, k=1, m=3, seed=2, max_steps=1, interval=100, checkpoint=saved)


def test_killed_three_times(tmp_path: Path) -> None:
    pytest.importorskip("minigrid")
    saved = tmp_path / "run.json"
    for is_killed in (1, 1, 1, 0):
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(saved), str(is_killed)], env={**os.environ}, check=False, timeout=120
        )
        assert done.returncode == (-signal.SIGKILL if is_killed else 0)
    undisturbed = gorp_curve(GRIDWORLD, k=1, m=3, seed=5, max_steps=10**9, interval=50)
    assert gorp_curve(GRIDWORLD, k=1, m=3, seed=5, max_steps=10**9, interval=50, checkpoint=saved) == undisturbed
    assert len(undisturbed.actions) > 9  # three kills after three iterations each were really in the middle
