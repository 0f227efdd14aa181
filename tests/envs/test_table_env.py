"""Tables as environments: Gymnasium's own checks, the same episodes in both, and values that add up."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv
from toy_mdps import random_mdp

import efhorizon as ef


@pytest.fixture(scope="module")
def gridworld(tmp_path_factory: pytest.TempPathFactory) -> ef.TabularMDP:
    pytest.importorskip("minigrid")
    return ef.build("MiniGrid-Empty-5x5-v0", out=tmp_path_factory.mktemp("tables"))


@pytest.fixture
def toy() -> ef.TabularMDP:
    return random_mdp(np.random.default_rng(3), 7, 3, 6)


def pictured(mdp: ef.TabularMDP) -> ef.TabularMDP:
    screens = np.random.default_rng(0).integers(0, 255, (mdp.num_states, 8, 8, 3), np.uint8)
    return ef.TabularMDP(
        mdp.transitions, mdp.rewards, mdp.horizon, screens=screens, screen_mapping=np.arange(mdp.num_states)
    )


def check(env: gymnasium.Env[Any, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


@pytest.mark.parametrize("info", [False, True])
def test_gymnasium_finds_nothing_wrong_with_states(toy: ef.TabularMDP, info: bool) -> None:
    check(gymnasium.make("efhorizon/Table-v0", mdp=toy, info=info))
    check(gymnasium.make("efhorizon/Table-v0", mdp=pictured(toy), observations="state", info=info))


def test_gymnasium_finds_nothing_wrong_with_flat_observations(gridworld: ef.TabularMDP) -> None:
    env = gymnasium.make("efhorizon/Table-v0", mdp=gridworld, observations="flat")
    check(env)
    assert isinstance(env.observation_space, gymnasium.spaces.Box)


def test_flat_observations_are_those_of_the_live_environment(gridworld: ef.TabularMDP) -> None:
    live, table = ef.BridgeEnv("MiniGrid-Empty-5x5-v0"), ef.TableEnv(gridworld)
    assert live.observation_space == table.observation_space
    rng = np.random.default_rng(0)
    for _ in range(3):
        assert (live.reset()[0] == table.reset()[0]).all()
        is_over = False
        while not is_over:
            action = int(rng.integers(3))
            seen, reward, *ends, _ = live.step(action)
            observed, *same, _ = table.step(action)
            assert same == [reward, *ends]
            is_over = any(ends)
            assert (observed == (np.zeros_like(seen) if ends[0] else seen)).all()
    live.close()


def test_the_end_and_the_horizon() -> None:
    mdp = ef.TabularMDP([[0, 1], [0, -1]], [[0.0, 0.5], [0.0, 1.0]], 3)
    env = ef.TableEnv(mdp)
    assert env.reset() == (0, {})
    assert env.step(1) == (1, 0.5, False, False, {})
    assert env.step(1) == (2, 1.0, True, False, {})  # 2 is the end
    with pytest.raises(ef.EfhorizonError, match="call reset"):
        env.step(0)
    env.reset()
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]
    env.reset()
    with pytest.raises(ef.EfhorizonError, match="from 0 to 1, got 2"):
        env.step(2)


@pytest.mark.parametrize("seed", range(5))
def test_regret_is_what_was_lost(seed: int) -> None:
    mdp = random_mdp(np.random.default_rng(seed), 7, 3, 6)
    values, qs = mdp.optimal_values(), mdp.q_values()
    env, rng = ef.TableEnv(mdp, info=True), np.random.default_rng(seed)
    for _ in range(10):
        state, info = env.reset()
        total, is_over = 0.0, False
        while not is_over:
            assert (info["state"], info["optimal_value"]) == (state, pytest.approx(values[info["time"], state]))
            assert info["optimal_q_values"] == pytest.approx(qs[info["time"], state])
            state, reward, terminated, truncated, info = env.step(rng.integers(3))
            total, is_over = total + reward, terminated or truncated
        assert info["optimal_value"] == 0
        assert info["regret"] == pytest.approx(values[0, 0] - total, abs=1e-12)


def test_optimal_play_has_no_regret_at_all() -> None:
    mdp = random_mdp(np.random.default_rng(1), 7, 3, 6)
    env = ef.TableEnv(mdp, info=True)
    _, info = env.reset()
    is_over = False
    while not is_over:
        *_, terminated, truncated, info = env.step(int(info["optimal_q_values"].argmax()))
        is_over = terminated or truncated
    assert info["regret"] == 0.0


@pytest.mark.parametrize("observations", ["state", "flat"])
@pytest.mark.parametrize("copy", [True, False])
def test_the_vectorised_one_plays_the_same(gridworld: ef.TabularMDP, observations: Any, copy: bool) -> None:
    mdp = gridworld.with_horizon(9)
    many = ef.TableVectorEnv(mdp, 5, observations=observations, info=True, copy=copy)
    one_by_one = SyncVectorEnv([lambda: ef.TableEnv(mdp, observations=observations, info=True)] * 5)
    assert many.observation_space == one_by_one.observation_space
    assert many.action_space == one_by_one.action_space
    assert many.metadata["autoreset_mode"] == one_by_one.metadata["autoreset_mode"]
    rng = np.random.default_rng(0)
    _same(many.reset(seed=0), one_by_one.reset(seed=0))
    num_ends = 0
    for _ in range(60):
        actions = rng.integers(3, size=5)
        found = many.step(actions)
        _same(found, one_by_one.step(actions))
        num_ends += int((found[2] | found[3]).sum())
    assert num_ends > 20


def _same(found: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    for one, other in zip(found[:-1], expected[:-1], strict=True):
        assert np.array_equal(one, other)
    assert found[-1].keys() == expected[-1].keys()
    for name, values in found[-1].items():
        assert np.allclose(values, np.stack(expected[-1][name]), atol=1e-12), name


def test_copies_stay_and_shared_arrays_do_not(toy: ef.TabularMDP) -> None:
    for copy in (True, False):
        env = ef.TableVectorEnv(toy, 4, copy=copy)
        env.reset()
        first = env.step(np.zeros(4, int))
        kept = [array.copy() for array in first[:4]]
        for _ in range(12):
            env.step(np.ones(4, int))
        assert all(np.array_equal(*pair) for pair in zip(first[:4], kept, strict=True)) == copy


@pytest.mark.parametrize(
    ("actions", "message"), [([0, 3], "got 3 for environment 1"), ([0], "2 integers"), ([0.5, 1.0], "of float64")]
)
def test_bad_actions_change_nothing(toy: ef.TabularMDP, actions: list[Any], message: str) -> None:
    env = ef.TableVectorEnv(toy, 2)
    env.reset()
    with pytest.raises(ef.EfhorizonError, match=message):
        env.step(np.array(actions))
    assert (env.step(np.array([0, 0]))[1] == toy.rewards[0, 0]).all()


def test_what_an_environment_cannot_be(toy: ef.TabularMDP) -> None:
    with pytest.raises(ef.EfhorizonError, match="auto, state, flat, image; got 'pixels'"):
        ef.TableEnv(toy, observations="pixels")  # type: ignore[arg-type]
    with pytest.raises(ef.EfhorizonError, match="None or 'ansi'"):
        ef.TableEnv(toy, render_mode="rgb_array")
    with pytest.raises(ef.EfhorizonError, match="positive integer"):
        ef.TableVectorEnv(toy, 0)
    unfinished = ef.TabularMDP([[0]], [[0]], 3, unexplored=[True])
    with pytest.raises(ef.EfhorizonError, match="unfinished"):
        ef.TableEnv(unfinished)


def test_pictures_and_text(toy: ef.TabularMDP) -> None:
    env = ef.TableEnv(pictured(toy), observations="state", render_mode="rgb_array")
    env.reset()
    assert env.render().shape == (8, 8, 3)
    text = ef.TableEnv(toy, render_mode="ansi")
    text.reset()
    assert text.render() == "time 0, state 0\n"


def test_a_table_can_be_sent_to_other_processes(gridworld: ef.TabularMDP, tmp_path: Path) -> None:
    for mdp in (gridworld, ef.load(ef.save(gridworld, tmp_path / "table.npz")), gridworld.with_horizon(5)):
        again = pickle.loads(pickle.dumps(mdp))
        assert again.fingerprint() == mdp.fingerprint()
        assert (again.screen(0) == mdp.screen(0)).all()
        assert dict(again.metadata) == dict(mdp.metadata)
