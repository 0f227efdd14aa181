"""Tables that are not of the catalogue, as agents see them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

pytest.importorskip("torch")

from efhorizon import TabularMDP
from efhorizon.agents.deep.observations import (
    FlatColumns,
    ImageStacks,
    UntrainableTableError,
    merged_columns,
    network_on,
    observation_digest,
    observation_note,
    observed_table,
)
from efhorizon.commands import main
from efhorizon.io.tables import save
from efhorizon.study.results import Results
from efhorizon.study.tasks import tasks
from efhorizon.suites.observation_layout import layout_as_json, layout_of_space, screen_of


def corridor(length: int = 4, horizon: int = 6, *, screens: Any = None, **metadata: Any) -> TabularMDP:
    """Action 1 goes on, action 0 stays; the step off the end pays 1."""
    transitions = np.stack([np.arange(length), np.arange(1, length + 1)], axis=1)
    transitions[-1, 1] = -1
    rewards = np.zeros((length, 2))
    rewards[-1, 1] = 1.0
    mapping = None if screens is None else np.arange(length)
    return TabularMDP(transitions, rewards, horizon, screens=screens, screen_mapping=mapping, metadata=metadata)


def observed_corridor(space: Any, observations: list[Any]) -> TabularMDP:
    layout = layout_of_space(space)
    screens = np.stack([screen_of(layout, each) for each in observations])
    described = {"id": "own", "suite": "gymnasium", "observation": layout_as_json(layout)}
    return corridor(len(observations), screens=screens, **described)


def test_columns_of_floats_are_merged_as_those_of_bytes(rng: np.random.Generator) -> None:
    observations = rng.choice([0, 1, 5], (20, 12)).astype(np.uint8)
    observations[:, 6:9] = observations[:, [2]]
    observations[:, 9:] = 0
    of_bytes, of_floats = merged_columns(observations), merged_columns(observations.astype(np.float32))
    for merged in (of_bytes, of_floats):
        used = merged.groups >= 0
        assert np.array_equal(merged.values[:, merged.groups[used]], observations[:, used])
        assert sorted(merged.multiplicity.tolist()) == sorted(of_bytes.multiplicity.tolist())
    assert merged_columns(np.zeros((3, 2), np.float32)).values.shape == (3, 1)  # nothing is seen


def test_a_dict_is_seen_as_a_vector() -> None:
    space = spaces.Dict({"at": spaces.Discrete(3), "x": spaces.Box(-1, 1, (1,))})
    mdp = observed_corridor(space, [{"at": 0, "x": [0.5]}, {"at": 1, "x": [0.5]}, {"at": 2, "x": [-1.0]}])
    assert network_on(mdp) == "dense"
    assert observation_note(mdp) is None
    seen = observed_table(mdp).seen
    assert isinstance(seen, FlatColumns)
    full = np.where(seen.groups >= 0, seen.values[:, seen.groups], 0)
    assert full.tolist() == [[1, 0, 0, 0.5], [0, 1, 0, 0.5], [0, 0, 1, -1]]


def test_large_images_are_seen_by_the_cnn_and_small_ones_as_vectors(rng: np.random.Generator) -> None:
    for side, network, kind in ((40, "image", ImageStacks), (12, "dense", FlatColumns)):
        shape = (side, side, 3)
        images = rng.integers(0, 256, (3, *shape)).astype(np.uint8)
        mdp = observed_corridor(spaces.Box(0, 255, shape, np.uint8), list(images))
        assert network_on(mdp) == network
        assert isinstance(observed_table(mdp).seen, kind)
        assert tasks([mdp], "ppo", settings="rollout128", num_seeds=1)[0].kind == f"ppo {network}"
    of_others = corridor(3, screens=images)  # a file that does not say what its screens are
    assert network_on(of_others) == "dense"


def test_without_observations_agents_see_the_state() -> None:
    mdp = corridor(5, id="plain")
    seen = observed_table(mdp).seen
    assert isinstance(seen, FlatColumns)
    assert np.array_equal(seen.values, np.eye(5))
    assert str(observation_note(mdp)).startswith("The table has no observations: agents see the number of the state")
    with pytest.raises(UntrainableTableError, match="9,000 states are too many"):
        observed_table(corridor(9_000, horizon=2, id="long"))


def test_rewards_without_a_common_unit_are_counted_as_finely_as_returns_can_be(rng: np.random.Generator) -> None:
    horizon = 7
    transitions = rng.integers(5, size=(5, 3)).astype(np.int32)
    rewards = rng.normal(size=(5, 3)).astype(np.float32).astype(np.float64)
    rewards[2, 1] = 1e-30
    mdp = TabularMDP(transitions, rewards, horizon)
    assert mdp.reward_units() is None
    table = observed_table(mdp)
    best = np.zeros(5)
    for _ in range(horizon):
        best = (rewards + best[transitions]).max(axis=1)
    assert np.abs(table.reward_units * table.unit - rewards).max() <= 0.5 * table.unit
    assert abs(table.optimal_units * table.unit - best[0]) <= 0.5 * horizon * table.unit
    counted = np.zeros(5, np.int64)
    for _ in range(horizon):
        counted = (table.reward_units + counted[transitions]).max(axis=1)
    assert table.optimal_units == counted[0]  # some policy attains it, exactly
    assert np.abs(table.reward_units).max() * horizon < 2**31


def test_rows_depend_on_what_is_observed() -> None:
    """The fingerprint of a table does not: other observations of the same graph are another experiment."""
    one = observed_corridor(spaces.Discrete(3), [0, 1, 2])
    other = observed_corridor(spaces.Discrete(3), [0, 2, 1])
    assert one.fingerprint() == other.fingerprint()
    keys = [tasks([mdp], "dqn", num_seeds=1)[0].key(0) for mdp in (one, other, corridor(3, id="own"))]
    assert len({key.name for key in keys}) == 3
    assert keys[2].hyperparameters["observation"] == "state number"
    gorp = [tasks([mdp], "gorp")[0].key(0).name for mdp in (one, other)]
    assert gorp[0] == gorp[1]  # GORP sees nothing


def test_names_of_the_catalogue_are_all_that_their_rows_depend_on() -> None:
    listed = corridor(3, screens=np.zeros((3, 2, 2, 1), np.uint8), id="MiniGrid-Empty-5x5-v0", suite="minigrid")
    assert observation_digest(listed) is None
    assert "observation" not in tasks([listed], "ppo", num_seeds=1)[0].hyperparameters()


def test_training_on_an_npz_without_screens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    mdp = corridor(4)
    np.savez("plain.npz", transitions=mdp.transitions, rewards=mdp.rewards)
    arguments = ["train", "plain.npz", "--algo", "ppo", "--settings", "rollout128", "--seeds", "1", "--steps", "2k"]
    assert main(arguments) == 1
    assert "give a horizon" in capsys.readouterr().err
    assert main([*arguments, "--horizon", "6"]) == 0
    assert "agents see the number of the state" in capsys.readouterr().out
    (row,) = Results(Path("results")).rows()
    assert (row.id, row.hyperparameters["observation"]) == ("plain", "state number")


def test_stable_baselines_plays_listed_environments_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("stable_baselines3")
    monkeypatch.chdir(tmp_path)
    save(corridor(3, id="own"), tmp_path / "own")
    assert main(["train", "own", "--algo", "ppo", "--backend", "sb3"]) == 1
    assert "leave out --backend sb3" in capsys.readouterr().err


def test_the_summary_in_json_has_the_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save(corridor(3, id="own"), tmp_path / "own")
    assert main(["train", "own", "--algo", "gorp", "--settings", "k1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["environments"][0]["note"] is None
