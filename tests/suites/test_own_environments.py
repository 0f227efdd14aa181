"""What environments of one's own tell: names of actions, drawings; and tables that keep both."""

from __future__ import annotations

import enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from own_environments import KeyGrid

import efhorizon.build.drawn_states as drawn_states
from efhorizon import InvalidTableError, SimulatorError, TabularMDP
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import gymnasium_target
from efhorizon.io.tables import load
from efhorizon.suites.action_names import action_names
from efhorizon.suites.drawing import observation_text, observation_value, picture, text_drawing
from efhorizon.suites.environment_names import action_names_of
from efhorizon.suites.gymnasium_simulator import gymnasium_simulator
from efhorizon.suites.rendering import plain_text


def built(name: str, folder: Path, **arguments: Any) -> TabularMDP:
    target = gymnasium_target(f"own_environments:{name}-v0", arguments, 6)
    found = build(target, Options(out=folder, num_workers=1, verify_episodes=2)).mdp
    assert found is not None
    return found


class Colours(enum.Enum):
    red = "r"
    green = "g"


@pytest.mark.parametrize(
    ("told", "names"),
    [
        ({"action_names": ["left", "right"]}, ("left", "right")),
        ({"ACTION_NAMES": {0: "left", 1: "right"}}, ("left", "right")),
        ({"actions": {"right": 1, "left": 0}}, ("left", "right")),
        ({"Actions": Colours}, ("red", "green")),
        ({"ACTIONS": ("left", "right")}, ("left", "right")),
        ({"actions": ["only one"]}, None),
        ({"actions": 7}, None),
        ({"action_names": [1, 2]}, None),
        ({}, None),
    ],
)
def test_names_of_actions(told: dict[str, Any], names: tuple[str, ...] | None) -> None:
    env = SimpleNamespace(**told, unwrapped=None)
    assert action_names_of(env, 2) == names
    assert action_names_of(SimpleNamespace(env=env, unwrapped=None), 2) == names  # below a wrapper


def test_names_of_known_environments() -> None:
    assert action_names_of(gymnasium.make("FrozenLake-v1"), 4) == ("left", "down", "right", "up")
    assert action_names_of(gymnasium.make("CliffWalking-v1"), 4) == ("up", "right", "down", "left")
    pytest.importorskip("minigrid")
    assert action_names_of(gymnasium.make("MiniGrid-Empty-5x5-v0"), 7)[:3] == ("left", "right", "forward")  # type: ignore[index]


def test_drawing_changes_nothing() -> None:
    simulator = gymnasium_simulator("own_environments:KeyGrid-v0")
    state, screen = simulator.get_state(), simulator.screen()
    first = simulator.picture()
    assert first.shape == (40, 40, 3)
    assert simulator.get_state() == state
    assert np.array_equal(simulator.screen(), screen)
    simulator.step(1)
    assert not np.array_equal(simulator.picture(), first)
    simulator.set_state(state)
    assert np.array_equal(simulator.picture(), first)


def test_text_where_pictures_fail(capsys: pytest.CaptureFixture[str]) -> None:
    simulator = gymnasium_simulator("own_environments:Texts-v0")
    assert simulator.drawing() == "[@].\n.."
    assert capsys.readouterr().out == ""
    with pytest.raises(SimulatorError, match="text"):
        simulator.picture()
    with pytest.raises(SimulatorError, match="no render mode"):
        gymnasium_simulator("own_environments:Unseen-v0").drawing()
    assert plain_text("\x1b[2Ka\tb\x1b[0m  \n\x1b[43mx\x1b[0m\n\n") == "a       b\n[x]"


def test_a_table_keeps_observations_names_and_pictures(tmp_path: Path) -> None:
    mdp = built("KeyGrid", tmp_path)
    assert observation_value(mdp, 0) == {"agent": [0, 0], "has_key": 0}
    assert observation_text(mdp, 0) == "{'agent': [0, 0], 'has_key': 0}"
    assert action_names(mdp.metadata, 3) == ("down", "right", "pick")
    assert mdp.pictures is not None
    assert picture(mdp, 0).shape == (40, 40, 3)
    assert (picture(mdp, 0)[:20, :20] == 0).all()
    assert text_drawing(mdp, 0) is None
    again = load(tmp_path / str(mdp.metadata["id"]))
    assert all(np.array_equal(picture(again, state), picture(mdp, state)) for state in range(mdp.num_states))


def test_text_images_and_nothing(tmp_path: Path) -> None:
    texts = built("Texts", tmp_path)
    assert text_drawing(texts, 0) == "[@].\n.."
    with pytest.raises(InvalidTableError, match="draws text"):
        picture(texts, 0)
    pictures = built("Pictures", tmp_path)
    assert pictures.pictures is None
    assert observation_value(pictures, 0) == "<40 x 40 x 3 values>"
    assert np.array_equal(picture(pictures, 0), pictures.screen(0))
    unseen = built("Unseen", tmp_path)
    with pytest.raises(InvalidTableError, match="no pictures: the environment draws no picture"):
        picture(unseen, 0)


def test_large_tables_of_own_modules_are_drawn_if_the_user_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of the file's choice is not imported."""
    kept = built("KeyGrid", tmp_path / "kept")
    monkeypatch.setattr(drawn_states, "MOST_STATES", 1)
    own = built("KeyGrid", tmp_path)
    assert own.pictures is None
    with pytest.raises(InvalidTableError, match=r"the table has more than 1 states; .* type that yourself: --env own_"):
        picture(own, 0)
    drawn = own.picture(0, env="own_environments:KeyGrid-v0").pixels
    assert np.array_equal(drawn, picture(kept, 0))
    with pytest.raises(InvalidTableError, match="has changed since the table was built"):
        own.picture(0, env=lambda: KeyGrid(size=3))


def test_large_tables_are_drawn_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file names a registered environment."""
    monkeypatch.setattr(drawn_states, "MOST_STATES", 1)
    target = gymnasium_target("FrozenLake-v1", {"is_slippery": False}, 4)
    lake = build(target, Options(out=tmp_path, num_workers=1, verify_episodes=0)).mdp
    assert lake is not None
    assert lake.pictures is None
    assert picture(lake, 0).shape == (256, 256, 3)
    assert not np.array_equal(picture(lake, 0), picture(lake, 1))
