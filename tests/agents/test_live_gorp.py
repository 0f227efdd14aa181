"""GORP on live environments: the same as on tables, snapshots the same as replays, interruptions without a trace."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gorp_twin import close
from toy_mdps import WalkSimulator

from efhorizon import EfhorizonError, TabularMDP
from efhorizon.agents.live.gorp import LiveRun, live_environment, live_gorp
from efhorizon.agents.tabular.gorp import gorp
from efhorizon.suites.replay import ReplaySimulator


def walk_table(size: int, horizon: int) -> TabularMDP:
    """The table of WalkSimulator."""
    places = np.arange(size - 1)[:, None]
    transitions = np.maximum(0, places + np.arange(3) - 1)
    rewards = (transitions == size - 1).astype(float)
    return TabularMDP(np.where(rewards > 0, -1, transitions), rewards, horizon)


@pytest.mark.parametrize(("k", "m"), [(1, 1), (1, 3), (2, 1)])
def test_live_equals_table_on_a_walk(k: int, m: int) -> None:
    runs = 250
    found = [live_gorp(live_environment(WalkSimulator(4), horizon=5), k=k, m=m, seed=seed) for seed in range(runs)]
    table = gorp(walk_table(4, 5), k=k, m=m, runs=40_000, rng=np.random.default_rng(0))
    assert close(np.mean([run.total_reward == 1 for run in found]).item(), table.success_rate, runs)
    assert {run.timesteps for run in found} == {table.timesteps}


def test_ties_may_go_to_the_first_sequence(tmp_path: Path) -> None:
    """In a walk of three actions the last leads on: ties to the lowest index lead back."""
    runs, walk = 250, WalkSimulator(4)
    found = [live_gorp(live_environment(walk, horizon=5), k=1, m=3, seed=seed, ties="lowest") for seed in range(runs)]
    rate = np.mean([run.total_reward == 1 for run in found]).item()
    lowest, uniform = (
        gorp(walk_table(4, 5), k=1, m=3, runs=40_000, rng=np.random.default_rng(0), ties=ties).success_rate
        for ties in ("lowest", "uniform")
    )
    assert close(rate, lowest, runs)
    assert not close(rate, uniform, runs)
    with pytest.raises(EfhorizonError, match="ties must be uniform or lowest in a live environment, got 'adversarial'"):
        live_gorp(live_environment(walk, horizon=5), k=1, m=1, ties="adversarial")
    saved = tmp_path / "run.json"
    live_gorp(live_environment(walk, horizon=5), k=1, m=3, ties="lowest", max_steps=1, checkpoint=saved)
    with pytest.raises(EfhorizonError, match="a checkpoint of another run"):
        live_gorp(live_environment(walk, horizon=5), k=1, m=3, checkpoint=saved)
    assert live_gorp(live_environment(walk, horizon=5), k=1, m=3, ties="lowest", checkpoint=saved) == found[0]


def test_live_equals_table_on_a_gridworld(gridworld: TabularMDP) -> None:
    mdp = TabularMDP(gridworld.transitions, gridworld.rewards, 12)
    runs = 60
    environment = "MiniGrid-Empty-5x5-v0"
    found = [live_gorp(live_environment(environment, horizon=12), k=1, m=2, seed=seed) for seed in range(runs)]
    table = gorp(mdp, k=1, m=2, runs=20_000, rng=np.random.default_rng(0))
    assert close(np.mean([run.total_reward == 1 for run in found]).item(), table.success_rate, runs)
    assert 0.05 < table.success_rate < 0.95


class Opaque(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A wrapper of which nobody knows what it keeps: snapshots below it are not to be trusted."""


def test_snapshots_and_replays_agree() -> None:
    pytest.importorskip("minigrid")
    name = "BRIDGE/MiniGrid-Empty-5x5-v0"
    by_snapshot = live_gorp(live_environment(name, horizon=15), k=1, m=1, seed=1)
    by_replay = live_gorp(live_environment(Opaque(gymnasium.make(name)), horizon=15), k=1, m=1, seed=1)
    simulator = live_gorp(live_environment("MiniGrid-Empty-5x5-v0", horizon=15), k=1, m=1, seed=1)
    assert by_snapshot.actions == by_replay.actions == simulator.actions
    assert by_snapshot.estimates == by_replay.estimates == simulator.estimates
    assert by_snapshot.steps_played < by_replay.steps_played
    walks = [live_environment(walk, horizon=6) for walk in (WalkSimulator(4), ReplaySimulator(WalkSimulator(4)))]
    assert len({live_gorp(walk, k=2, m=2, seed=3).actions for walk in walks}) == 1


def test_gymnasium_environment_without_snapshots() -> None:
    lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    run = live_gorp(live_environment(lake, horizon=8), k=3, m=8, seed=0)
    assert run.is_complete
    assert run.timesteps == 8**2 * 4**3 * 8
    assert live_environment(lake).horizon == 100


def test_an_exploration_policy_sees_observations() -> None:
    lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    right_way = {0: 1, 4: 1, 8: 2, 9: 1, 13: 2, 14: 2}  # down, down, right, down, right, right

    def policy(observation: int) -> Any:
        return np.eye(4)[right_way.get(observation, 0)]

    run = live_gorp(live_environment(lake, horizon=6), k=1, m=1, seed=0, policy=policy)
    assert (run.actions, run.total_reward) == ((1, 1, 2, 1, 2, 2), 1.0)
    with pytest.raises(EfhorizonError, match="needs observations"):
        live_gorp(live_environment(WalkSimulator(), horizon=5), k=1, m=1, policy=policy)
    with pytest.raises(EfhorizonError, match="no probabilities of 4 actions"):
        live_gorp(live_environment(lake, horizon=6), k=1, m=1, policy=lambda observation: [1.0, 1.0, 0.0, 0.0])


def test_resumed_runs_are_identical(tmp_path: Path) -> None:
    def environment() -> Any:
        return live_environment(WalkSimulator(6), horizon=12)

    whole = live_gorp(environment(), k=2, m=2, seed=4)
    checkpoint = tmp_path / "run.json"
    lengths = []
    for _ in range(50):
        part = live_gorp(environment(), k=2, m=2, seed=4, checkpoint=checkpoint, max_steps=_played(checkpoint) + 150)
        lengths.append(len(part.actions))
        if part.is_complete:
            break
    assert part == whole
    assert len(lengths) > 2
    assert live_gorp(environment(), k=2, m=2, seed=4, checkpoint=checkpoint) == whole  # nothing is left to do


def test_an_interruption_loses_at_most_one_iteration(tmp_path: Path) -> None:
    checkpoint = tmp_path / "run.json"
    whole = live_gorp(live_environment(WalkSimulator(6), horizon=12), k=1, m=2, seed=5)

    class Interrupted(WalkSimulator):
        steps = 0

        def step(self, action: int) -> Any:
            self.steps += 1
            if self.steps == 200:
                raise KeyboardInterrupt
            return super().step(action)

    with pytest.raises(KeyboardInterrupt):
        live_gorp(_named(Interrupted(6)), k=1, m=2, seed=5, checkpoint=checkpoint)
    saved = json.loads(checkpoint.read_text())
    assert 0 < len(saved["actions"]) < 12
    assert saved["actions"] == list(whole.actions[: len(saved["actions"])])
    assert live_gorp(_named(WalkSimulator(6)), k=1, m=2, seed=5, checkpoint=checkpoint) == whole


def test_progress() -> None:
    seen: list[LiveRun] = []
    run = live_gorp(live_environment(WalkSimulator(5), horizon=6), k=1, m=2, seed=0, on_progress=seen.append)
    assert [len(state.actions) for state in seen] == list(range(1, len(run.actions) + 1))
    assert seen[-1] == run
    assert [state.timesteps for state in seen[:2]] == [6 * 3 * 2, 2 * 6 * 3 * 2]
    assert run.timesteps == 6**2 * 3 * 2


def test_bad_checkpoints(tmp_path: Path) -> None:
    environment = live_environment(WalkSimulator(5), horizon=6)
    for text in ("", "{}", "[]", '{"format": "efhorizon-gorp-1", "settings": {}}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(EfhorizonError, match="not a checkpoint of GORP"):
            live_gorp(environment, k=1, m=1, checkpoint=tmp_path / "bad.json")
        assert (tmp_path / "bad.json").read_text() == text
    live_gorp(environment, k=1, m=1, checkpoint=tmp_path / "good.json")
    with pytest.raises(EfhorizonError, match="a checkpoint of another run"):
        live_gorp(live_environment(WalkSimulator(5), horizon=6), k=1, m=2, checkpoint=tmp_path / "good.json")


def checkpoint_of(path: Path, **changes: Any) -> Path:
    """A checkpoint as older versions wrote it, without a checksum, with some fields changed."""
    live_gorp(live_environment(WalkSimulator(6), horizon=12), k=1, m=1, seed=4, checkpoint=path, max_steps=150)
    content = json.loads(path.read_text())
    del content["checksum"]
    path.write_text(json.dumps({**content, **changes}))
    return path


def resumed(path: Path) -> LiveRun:
    return live_gorp(live_environment(WalkSimulator(6), horizon=12), k=1, m=1, seed=4, checkpoint=path)


def test_no_flipped_bit_in_a_checkpoint_changes_a_run(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "run.json"
    checkpoint_of(path)
    before = resumed(path)  # it now has its checksum
    content = path.read_bytes()
    for _ in range(600):
        flipped = bytearray(content)
        flipped[rng.integers(len(content))] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        with pytest.raises(EfhorizonError, match=r"run\.json: .*; delete it to begin this run again") as error:
            resumed(path)
        assert "\n" not in str(error.value)
        assert path.read_bytes() == flipped
    path.write_bytes(content)
    assert resumed(path) == before


def test_older_checkpoints_continue(tmp_path: Path) -> None:
    path = checkpoint_of(tmp_path / "run.json")
    assert not resumed(path).total_reward < 0
    assert "checksum" in json.loads(path.read_text())
    assert resumed(path) == live_gorp(live_environment(WalkSimulator(6), horizon=12), k=1, m=1, seed=4)


@pytest.mark.parametrize(
    "changes",
    [
        {"actions": [0] * 500},
        {"actions": [0] * 500, "rewards": [0.0] * 500, "estimates": [0.0] * 500, "steps_played": 10_000},
        {"actions": [3], "rewards": [0.0], "estimates": [0.0]},
        {"actions": [-1], "rewards": [0.0], "estimates": [0.0]},
        {"actions": [10**400], "rewards": [0.0], "estimates": [0.0]},
        {"actions": [0], "rewards": [5.0], "estimates": [0.0]},  # no such reward when it is replayed
        {"actions": [0], "rewards": [0.0], "estimates": [0.0], "ended": True},
        {"actions": [], "rewards": [], "estimates": [], "ended": True},
        {"actions": "012"},
        {"actions": None},
        {"actions": [0.5]},
        {"rewards": ["1"]},
        {"rewards": [1e400]},
        {"estimates": [None]},
        {"ended": 1},
        {"steps_played": -1},
        {"steps_played": "many"},
        {"num_actions": 0},
        {"settings": None},
        {"settings": {}},
        {"format": "efhorizon-gorp-2"},
        {"format": None},
        {"unknown": 1},
        {"checksum": "0" * 64},
        {"checksum": None},
    ],
    ids=str,
)
def test_checkpoints_are_checked(changes: dict[str, Any], tmp_path: Path) -> None:
    path = checkpoint_of(tmp_path / "run.json", **changes)
    with pytest.raises(EfhorizonError, match="not a checkpoint of GORP that can be used") as error:
        resumed(path)
    assert "delete it to begin this run again" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_field_of_a_checkpoint_is_missing(tmp_path: Path) -> None:
    path = checkpoint_of(tmp_path / "run.json")
    whole = json.loads(path.read_text())
    for name in whole.keys() - {"format"}:
        path.write_text(json.dumps({key: value for key, value in whole.items() if key != name}))
        with pytest.raises(EfhorizonError, match=f"{name} is missing"):
            resumed(path)


@pytest.mark.parametrize("what", ["pipe", "device", "sparse", "folder"])
def test_checkpoints_of_another_kind(what: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path.symlink_to("/dev/zero")
    elif what == "folder":
        path.mkdir()
    else:
        path.touch()
        os.truncate(path, 10 * 2**30)
    with pytest.raises(EfhorizonError, match="delete it to begin this run again"):
        resumed(path)


def test_full_length_atari() -> None:
    pytest.importorskip("ale_py")
    environment = live_environment("breakout")
    assert (environment.id, environment.horizon, environment.num_actions) == ("breakout_27000_fs4", 27_000, 4)
    run = live_gorp(environment, k=1, m=1, max_steps=1)
    assert (len(run.actions), run.is_complete) == (1, False)
    assert run.timesteps == 27_000 * 4
    assert 4 < run.steps_played < 10_000
    assert live_environment("freeway_500_fs8").horizon == 500


def test_bad_environments() -> None:
    with pytest.raises(EfhorizonError, match="neither in the catalogue nor a Gymnasium environment"):
        live_environment("freewy_10_fs30")
    with pytest.raises(EfhorizonError, match="must be Discrete"):
        live_environment("Pendulum-v1")
    with pytest.raises(EfhorizonError, match="horizon must be at least 1, got 0"):
        live_environment(WalkSimulator(), horizon=0)
    with pytest.raises(EfhorizonError, match="horizon must be at least 1, got 0"):
        live_environment("freeway_0_fs4")
    with pytest.raises(EfhorizonError, match="has no horizon; give one"):
        live_environment(WalkSimulator())
    with pytest.raises(EfhorizonError, match=r"k = 9: 3\^9 action sequences within 5 steps"):
        live_gorp(live_environment(WalkSimulator(), horizon=5), k=9, m=1)


def _named(simulator: WalkSimulator) -> Any:
    environment = live_environment(simulator, horizon=12)
    environment.id = "WalkSimulator"
    return environment


def _played(checkpoint: Path) -> int:
    return int(json.loads(checkpoint.read_text())["steps_played"]) if checkpoint.exists() else 0
