"""The command line with environments of the user's: arguments, what cannot go together, verify, gorp."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import efhorizon.build.drawn_states as drawn_states
from efhorizon.build.target import gymnasium_target, table_spec, target_of
from efhorizon.commands import main
from efhorizon.commands._environments import env_argument, seeds
from efhorizon.errors import EfhorizonError
from efhorizon.mdp import TabularMDP


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("False", False),
        ("false", False),
        ("True", True),
        ("None", None),
        ("null", None),
        ("8", 8),
        ("0.5", 0.5),
        ("'text'", "text"),
        ('"text"', "text"),
        ("4x4", "4x4"),
        ("[1,2]", [1, 2]),
        ("(1, 2)", (1, 2)),
        ('{"a": true}', {"a": True}),
        ("{'a': True}", {"a": True}),
        ("", ""),
    ],
)
def test_arguments_in_python_and_json(text: str, value: Any) -> None:
    assert env_argument(f"key={text}") == ("key", value)
    assert type(env_argument(f"key={text}")[1]) is type(value)


def test_arguments_that_are_none() -> None:
    for text in ("oops", "=3"):
        with pytest.raises(argparse.ArgumentTypeError, match="is_slippery=False"):
            env_argument(text)


def test_seeds() -> None:
    assert seeds("0,1,2") == [0, 1, 2]
    with pytest.raises(argparse.ArgumentTypeError):
        seeds("0,,2")


def test_names_of_tables() -> None:
    def name(env: str, arguments: dict[str, Any] | None = None, **more: Any) -> str:
        return gymnasium_target(env, arguments, 5, **more).id

    assert name("FrozenLake-v1", {"is_slippery": False}) == "FrozenLake-v1-is_slippery=False-T5"
    assert name("FrozenLake-v1", seed=4) == "FrozenLake-v1-seed4-T5"
    assert name("FrozenLake-v1", fixed_noise=True) == "FrozenLake-v1-fixednoise-T5"
    assert name("folder/my_env.py:Grid", wrappers=["a.b:C"]) == "folder_my_env_Grid-wrapper=C-T5"
    assert name("MiniGrid-Empty-5x5-v0") == "MiniGrid-Empty-5x5-v0-gymnasium-T5"
    assert len(name("FrozenLake-v1", {"desc": ["SFFF"] * 100})) < 150
    assert target_of("MiniGrid-Empty-5x5-v0", 5).id == "MiniGrid-Empty-5x5-v0-T5"
    assert target_of("Taxi-v4", 5).id == "Taxi-v4-T5"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("build freeway_10_fs30 --seed 1", 2, "--seed goes with --env"),
        ("build freeway_10_fs30 --wrapper a:B", 2, "--wrapper goes with --env"),
        ("build freway_10_fs30", 2, "no environment is called 'freway_10_fs30'"),
        ("build Taxi-v4 --wrapper Nope", 1, "module:Wrapper"),
        ("build CliffWalking-v1", 1, "as with --horizon 50"),
        ("build Blackjack-v1 --horizon 5", 1, "add --fixed-noise"),
        ("gorp FrozenLake-v1 --live --m 1", 1, "GORP needs a deterministic environment, so turn the chance off"),
    ],
)
def test_what_is_refused(
    words: str,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(words.split()) == code
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1


def table(**arguments: Any) -> TabularMDP:
    provenance = {"suite": "gymnasium", "arguments": arguments}
    return TabularMDP([[-1]], [[0.0]], 1, metadata={"suite": "gymnasium", "provenance": provenance})


@pytest.mark.parametrize(
    "arguments",
    [
        {"env_id": "evil:Env-v0", "arguments": {}},
        {"env_id": "evil.py:Env", "arguments": {}},
        {"env_id": "Taxi-v4", "arguments": {}, "wrappers": ["evil:Wrapper"]},
    ],
)
def test_a_file_cannot_choose_what_is_imported(arguments: dict[str, Any]) -> None:
    with pytest.raises(EfhorizonError, match="type that yourself: --env"):
        table_spec(table(**arguments))


@pytest.mark.parametrize("extra", [{"thing": "os:system"}, {"seed": "x"}, {"wrappers": "a:B"}])
def test_a_file_with_other_arguments_is_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(EfhorizonError, match="does not say how its environment is made"):
        table_spec(table(env_id="Taxi-v4", arguments={}, **extra))


def test_the_named_environment_draws_states_of_a_large_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drawn_states, "MOST_STATES", 1)
    name, env = "own_environments_KeyGrid-v0-T6", "own_environments:KeyGrid-v0"
    assert main(["build", env, "--workers", "1"]) == 0
    assert main(["analyze", name, "--image", "state.png"]) == 1  # the analysis is printed all the same
    shown = capsys.readouterr()
    assert "Effective horizon" in shown.out
    assert f"type that yourself: --env {env}" in shown.err
    for command in ("analyze", "show"):
        assert main([command, name, "--image", f"{command}.png", "--env", env]) == 0
        assert (tmp_path / f"{command}.png").stat().st_size > 0
        assert main([command, name, "--env", env]) == 2
        assert "--env goes with --image" in capsys.readouterr().err


LUNAR = """
import sys
from efhorizon.commands import main
sys.exit(main(["build", "LunarLander-v3", "--horizon", "2", "--workers", "1", "--json"]))
"""


def test_lunar_lander(tmp_path: Path) -> None:
    pytest.importorskip("Box2D")
    done = subprocess.run([sys.executable, "-c", LUNAR], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "its states cannot be compared" in done.stderr
    assert "draws random numbers in its steps" in done.stderr


def test_atari_by_its_id_has_no_sticky_actions() -> None:
    pytest.importorskip("ale_py")
    target = gymnasium_target("ALE/Pong-v5", horizon=3)
    assert target.id == "ALE_Pong-v5-T3"
    assert target.spec.arguments["arguments"] == {"repeat_action_probability": 0.0}


def test_a_gridworld_by_its_id() -> None:
    """Its mission is a text, which Gymnasium cannot flatten."""
    pytest.importorskip("minigrid")
    simulator = gymnasium_target("MiniGrid-Empty-5x5-v0", horizon=2).spec()
    assert simulator.num_actions == 7
    start = simulator.screen()
    simulator.step(0)
    assert simulator.screen().shape == start.shape
    assert not np.array_equal(simulator.screen(), start)
