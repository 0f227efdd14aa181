"""Runs of pretraining: the same again, stopped and continued, damaged; what their files are good for."""

from __future__ import annotations

import dataclasses
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("procgen")

import torch

from efhorizon.agents.deep import ppo
from efhorizon.agents.deep.device import DeviceError
from efhorizon.agents.deep.networks import network_for
from efhorizon.agents.deep.observations import observed_table
from efhorizon.agents.deep.pretrained import check_parameters, load_parameters
from efhorizon.agents.deep.protocol import Protocol
from efhorizon.agents.deep.settings import PPOSettings
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.io.array_archive import read_archive, write_archive
from efhorizon.policies import precision
from efhorizon.policies.actor_critic import ActorCritic
from efhorizon.policies.nature_cnn import network
from efhorizon.policies.pretrain import checkpoint_path, pretrain
from efhorizon.policies.pretraining_run import PretrainingRun, Report
from efhorizon.policies.pretraining_settings import (
    PretrainingError,
    PretrainingSettings,
    UnknownGameError,
    settings_for,
)
from efhorizon.study.tasks import tasks

UPDATE = 256  # timesteps of one update
STOPPED = """
import os, signal, sys
from pathlib import Path
from efhorizon.policies import pretrain as module
from efhorizon.policies.pretraining_settings import settings_for

module._SECONDS_A_CHECKPOINT = 0.0
settings = settings_for("leaper", num_envs=8, rollout_length=32, num_minibatches=2)
made = []

def on_progress(report):
    made.append(report)
    if len(made) == 3:  # two checkpoints are written, the third is not
        os.kill(os.getpid(), signal.SIGKILL)

module.pretrain(settings, Path(sys.argv[1]), steps=10_000, threads=1, on_progress=on_progress)
"""


def small(game: str = "leaper", **changes: Any) -> PretrainingSettings:
    return settings_for(game, **{"num_envs": 8, "rollout_length": 32, "num_minibatches": 2, **changes})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four updates on leaper, without a stop."""
    out = tmp_path_factory.mktemp("pretrained") / "leaper.npz"
    pretrain(small(), out, steps=4 * UPDATE, threads=1)
    return out


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    for path in (made, checkpoint_path(made)):
        shutil.copy(path, tmp_path / path.name)
    return tmp_path / made.name


@pytest.mark.slow
def test_the_same_run_again_gives_the_same_bytes(made: Path, tmp_path: Path) -> None:
    """Whatever the number of threads; another seed gives others."""
    again = pretrain(small(), tmp_path / "again.npz", steps=4 * UPDATE - 100, threads=2)
    assert again.path.read_bytes() == made.read_bytes()
    assert again.checkpoint.read_bytes() == checkpoint_path(made).read_bytes()
    assert (again.report.steps, again.steps_made) == (4 * UPDATE, 4 * UPDATE)
    other = pretrain(small(seed=1), tmp_path / "other.npz", steps=UPDATE, threads=1)
    again = pretrain(small(), tmp_path / "first.npz", steps=UPDATE, threads=1)
    assert other.path.read_bytes() != again.path.read_bytes()


@pytest.mark.slow
def test_a_run_made_longer_is_the_long_run(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "leaper.npz"
    pretrain(small(), out, steps=1, threads=1)
    longer = pretrain(small(), out, steps=4 * UPDATE, threads=1)
    assert longer.steps_made == 3 * UPDATE
    assert out.read_bytes() == made.read_bytes()
    reports: list[Report] = []
    asked_for_less = pretrain(small(), out, steps=UPDATE, threads=1, on_progress=reports.append)
    assert (asked_for_less.report.steps, asked_for_less.steps_made, reports) == (4 * UPDATE, 0, [])
    assert out.read_bytes() == made.read_bytes()


def test_killed_and_started_again_it_ends_as_it_would_have(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "leaper.npz"
    killed = subprocess.run([sys.executable, "-c", STOPPED, str(out)], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not out.exists()
    assert read_archive(checkpoint_path(out), "it", 1 << 30)[1]["run"]["steps"] == 2 * UPDATE
    resumed = pretrain(small(), out, steps=4 * UPDATE, threads=1)
    assert resumed.steps_made == 2 * UPDATE
    assert out.read_bytes() == made.read_bytes()
    assert resumed.checkpoint.read_bytes() == checkpoint_path(made).read_bytes()


def test_interrupted_it_keeps_the_last_update(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "leaper.npz"

    def interrupt(report: Report) -> None:
        if report.steps == 3 * UPDATE:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pretrain(small(), out, steps=10 * UPDATE, threads=1, on_progress=interrupt)
    assert not out.exists()
    assert pretrain(small(), out, steps=4 * UPDATE, threads=1).steps_made == UPDATE
    assert out.read_bytes() == made.read_bytes()


def test_the_file_is_a_network_for_tables(made: Path, tmp_path: Path) -> None:
    """PPO takes it on a table of the game, and the policy that it starts with is the file's."""
    parameters = load_parameters(made)
    check_parameters(parameters, network(9).torch_shapes)
    assert set(parameters) == set(network(9).torch_shapes)
    options = Options(out=tmp_path, num_workers=1, verify_episodes=0)
    mdp = build(catalogue_target("leaper_easy_l0_10_fs6", 3), options).mdp
    assert mdp is not None
    (task, *_) = tasks([mdp], "ppo", num_seeds=1, max_steps=1, settings="rollout128", initial=parameters)
    assert "-initial-" in task.setting
    table = observed_table(mdp)
    theta = network_for("actor_critic", table).from_torch(parameters)
    protocol = Protocol(max_steps=64, evaluation_interval=64, window=None)
    (result,) = ppo.train(table, PPOSettings(gamma=1.0, rollout_length=8, minibatch=64), protocol, [0], initial=theta)
    assert result.steps == 64


def test_values_are_in_points(tmp_path: Path) -> None:
    """The file's value head says what the run's says, times the deviation by which rewards were divided."""
    run = PretrainingRun(small(), torch.device("cpu"), 1)
    run.update()
    theta = run._network.from_torch(run.state_dictionary())
    written = ActorCritic(run.settings, theta, torch.device("cpu"), 1)
    blocks = run._blocks[0]
    mine, its = run._learner.outputs(blocks), written.outputs(blocks)
    run.close()
    assert run._scale.deviation != pytest.approx(1, rel=0.01)
    np.testing.assert_array_equal(its[:, :-1], mine[:, :-1])
    np.testing.assert_allclose(its[:, -1], mine[:, -1] * run._scale.deviation, rtol=1e-5)


def test_the_file_says_how_it_was_made(made: Path) -> None:
    _, described = read_archive(made, "it", 1 << 30)
    assert described["settings"] == dataclasses.asdict(small())
    assert (described["steps"], described["levels"]) == (4 * UPDATE, [3, 502])
    assert (described["settings"]["precision"], described["device"]) == ("float32", "cpu")
    with np.load(made, allow_pickle=False) as archive:  # numpy reads it too
        assert json.loads(archive["metadata.json"])["format"] == "efhorizon-pretrained-1"


@pytest.mark.parametrize("change", [{"seed": 5}, {"entropy_weight": 0.01}, {"num_levels": 7}, {"gamma": 0.99}])
def test_a_checkpoint_of_another_run_is_refused(copied: Path, change: dict[str, Any]) -> None:
    before = copied.read_bytes()
    (name, value), old = *change.items(), getattr(small(), *change)
    with pytest.raises(StoreError, match=rf"of another run \({name} {old}, not {value}\)"):
        pretrain(small(**change), copied, steps=8 * UPDATE, threads=1)
    assert copied.read_bytes() == before


def test_a_damaged_checkpoint_is_refused_and_nothing_is_lost(copied: Path, rng: np.random.Generator) -> None:
    checkpoint, before = checkpoint_path(copied), copied.read_bytes()
    whole = bytearray(checkpoint.read_bytes())
    for place in rng.integers(len(whole), size=8).tolist():
        damaged = whole.copy()
        damaged[place] ^= 0x55
        checkpoint.write_bytes(damaged)
        with pytest.raises(EfhorizonError, match="checkpoint of pretraining that can be used") as caught:
            pretrain(small(), copied, steps=8 * UPDATE, threads=1)
        assert "\n" not in str(caught.value)
    checkpoint.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StoreError, match="delete it to begin this run again"):
        pretrain(small(), copied, steps=8 * UPDATE, threads=1)
    assert copied.read_bytes() == before


def test_a_checkpoint_with_other_content_is_refused(copied: Path) -> None:
    """One whose checksum is right: arrays are missing, have other shapes, or are states of another game."""
    checkpoint = checkpoint_path(copied)
    arrays, described = read_archive(checkpoint, "it", 1 << 30)
    for changed in (
        {name: array for name, array in arrays.items() if name != "theta"},
        {**arrays, "theta": arrays["theta"][1:]},
        {**arrays, "states": arrays["states"][::-1]},
        {**arrays, "states": arrays["states"][:100]},
    ):
        write_archive(checkpoint, changed, described)
        with pytest.raises(StoreError, match="not a checkpoint of pretraining that can be used"):
            pretrain(small(), copied, steps=8 * UPDATE, threads=1)
    for wrong in ({**described, "format": "x"}, {**described, "run": {}}, {**described, "settings": []}):
        write_archive(checkpoint, arrays, wrong)
        with pytest.raises(StoreError, match="not a checkpoint of pretraining that can be used"):
            pretrain(small(), copied, steps=8 * UPDATE, threads=1)


def test_a_file_without_its_checkpoint_is_not_overwritten(copied: Path) -> None:
    checkpoint_path(copied).unlink()
    before = copied.read_bytes()
    with pytest.raises(StoreError, match="without its checkpoint leaper"):
        pretrain(small(), copied, steps=UPDATE, threads=1)
    assert copied.read_bytes() == before


def test_wrong_settings_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UnknownGameError, match=r"no game called 'pong'; their games: bigfish bossfight"):
        settings_for("pong")
    with pytest.raises(PretrainingError, match="256 timesteps does not divide into 3 minibatches"):
        small(num_minibatches=3)
    with pytest.raises(PretrainingError, match="frameskip must be at least 1, got 0"):
        small(frameskip=0)
    with pytest.raises(PretrainingError, match="timesteps must be at least 1, got 0"):
        pretrain(small(), tmp_path / "a.npz", steps=0)
    with pytest.raises(DeviceError, match="cannot use the device 'toaster'"):
        pretrain(small(), tmp_path / "a.npz", steps=1, device="toaster")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written"):
        pretrain(small(), tmp_path / "file" / "a.npz", steps=1)
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(StoreError, match=r"cannot be written \(it is a folder\)"):
        pretrain(small(), tmp_path / "folder.npz", steps=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.npz"]


def test_bfloat16_is_tried_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """An instruction that the processor does not have would end the process."""
    cpu = torch.device("cpu")
    assert [precision.chosen_precision(asked, cpu) for asked in ("auto", "float32")] == ["float32", "float32"]
    monkeypatch.setattr(precision, "_TRIAL", "")
    assert precision.chosen_precision("bfloat16", cpu) == "bfloat16"
    monkeypatch.setattr(precision, "_TRIAL", "import os; os.abort()")
    with pytest.raises(DeviceError, match="bfloat16 does not work on this machine's cpu"):
        precision.chosen_precision("bfloat16", cpu)


@pytest.mark.slow
def test_it_learns(tmp_path: Path) -> None:
    """One level of fruitbot: random play loses points, and play after 20 updates gains some."""
    reports: list[Report] = []
    settings = small("fruitbot", num_levels=1, entropy_weight=0.01, num_envs=32, rollout_length=64, num_minibatches=4)
    pretrain(settings, tmp_path / "fruitbot.npz", steps=20 * settings.samples, on_progress=reports.append)
    returns = [report.mean_return for report in reports]
    assert returns[0] is not None
    assert returns[-1] is not None
    assert returns[0] < -1
    assert returns[-1] > 1.5
    assert reports[-1].entropy < reports[0].entropy
