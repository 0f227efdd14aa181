"""Gymnax's games: many states at once against Gymnax's own `step`, and tables against the game from reset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed; it does not fit the pinned numpy")
pytest.importorskip("gymnax", reason="gymnax is not installed; it does not fit the pinned packages")

import gymnax
import jax

from efhorizon import catalog
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target
from efhorizon.suites.batched import BatchedSimulator, Successors
from efhorizon.suites.gymnax import GAMES, GYMNAX, PREFIX, SEED, BatchedGymnax, GymnaxSimulator, _rules
from efhorizon.suites.simulator import Simulator, SimulatorError

EPISODES, STEPS = 3, 30
SMALL = ("Breakout-MinAtar", "Catch-bsuite", "DeepSea-bsuite")  # JAX compiles the others for long


def play(game: str, seed: int) -> list[tuple[int, object, float, bool, np.ndarray]]:
    """A random episode in Gymnax alone: action, state, reward, end and observation after each step."""
    env, params = gymnax.make(game)
    key, rng = jax.random.key(SEED), np.random.default_rng(seed)
    observation, state = env.reset(key, params)
    found = [(-1, state, 0.0, False, np.asarray(observation))]
    for time in range(STEPS):
        action = int(rng.integers(env.num_actions))
        step_key = jax.random.fold_in(key, time) if GAMES[game].draws else key
        observation, state, reward, ended, _, _ = env.step(step_key, state, action, params)
        found.append((action, state, float(reward), bool(ended), np.asarray(observation)))
        if ended:
            break
    return found


@pytest.mark.parametrize("game", GAMES)
def test_both_simulators_do_what_gymnax_does(game: str) -> None:
    one, many, rules = GymnaxSimulator(game), BatchedGymnax(game), _rules(game)
    assert isinstance(one, Simulator)
    assert isinstance(many, BatchedSimulator)
    env, _ = gymnax.make(game)
    assert one.num_actions == many.num_actions == env.num_actions
    num_steps = 0
    for seed in range(EPISODES):
        one.reset()
        row = many.start
        for time, (action, state, reward, ended, observation) in enumerate(play(game, seed)):
            if action >= 0:
                assert one.step(action) == (reward, ended)
                out = Successors.empty(1, many.num_actions, len(row))
                many.expand(row[None], out)
                assert (out.rewards[0, action], out.ended[0, action]) == (reward, ended)
                row = out.states[0, action]
                num_steps += 1
            if ended:
                break
            bare = bytes(np.asarray(rules.packed(state)[0]))
            assert one.identity(one.get_state())[: len(bare)] == bare == row[: len(bare)].tobytes()
            assert int.from_bytes(one.get_state()[len(bare) :], "little") == time
            assert one.identity(many.snapshot(row)) == one.identity(one.get_state())
            plain = (observation if observation.ndim == 3 else observation[:, :, None]).astype(np.uint8)
            assert np.array_equal(one.screen(), plain)
            assert np.array_equal(many.screens(row[None])[0], plain)
    assert num_steps >= 20


@pytest.mark.parametrize("game", SMALL)
def test_all_actions_of_many_states_are_those_of_one(game: str) -> None:
    """Batches of several sizes, the padded ones among them, restored states, and which screens are equal."""
    one, many = GymnaxSimulator(game), BatchedGymnax(game)
    rows = many.start[None]
    while len(rows) < 70:
        out = Successors.empty(len(rows), many.num_actions, len(many.start))
        many.expand(rows, out)
        new = np.unique(out.states[~out.ended], axis=0)
        if len(new) <= len(rows) and len(rows) > 1:
            break
        rows = new
    rows = rows[:: max(1, len(rows) // 70)]
    out = Successors.empty(len(rows), many.num_actions, len(many.start))
    many.expand(rows, out)
    screens, looks = many.screens(rows), many.looks(rows)
    assert looks is not None
    seen = {}
    for place, row in enumerate(rows):
        for action in range(many.num_actions):
            one.set_state(many.snapshot(row))
            reward, ended = one.step(action)
            assert (reward, ended) == (out.rewards[place, action], out.ended[place, action])
            if not ended:
                assert one.identity(one.get_state()) == one.identity(many.snapshot(out.states[place, action]))
        one.set_state(many.snapshot(row))
        assert np.array_equal(one.screen(), screens[place])
        assert seen.setdefault(looks[place].tobytes(), screens[place].tobytes()) == screens[place].tobytes()
    assert len(set(seen.values())) == len(seen)


@pytest.mark.parametrize("game", [game for game in GAMES if not GAMES[game].draws])
def test_games_that_draw_nothing_do_not_look_at_the_key_or_the_time(game: str) -> None:
    rules = _rules(game)
    row, rng = rules.start, np.random.default_rng(0)
    for _ in range(12):
        action = np.int32(rng.integers(GAMES[game].num_actions))
        found = []
        for key, time in ((0, 0), (1, 0), (2, 7), (3, 30)):
            state, reward, ended = rules.live_step(jax.random.key(key), rules.unpacked(row, np.int32(time)), action)
            found.append((bytes(np.asarray(rules.packed(state)[0])) if not ended else b"", float(reward), bool(ended)))
        assert len(set(found)) == 1
        if found[0][2]:
            break
        row = np.frombuffer(found[0][0], np.uint8)


@pytest.mark.parametrize(("game", "horizon"), [("Catch-bsuite", 9), ("Breakout-MinAtar", 25)])
def test_tables_are_the_same_batched_or_not_and_exact(game: str, horizon: int, tmp_path: Path) -> None:
    target = catalogue_target(PREFIX + game, horizon)
    one = build(target, Options(out=tmp_path / "one", batched=False, verify_episodes=0)).mdp
    many = build(target, Options(out=tmp_path / "many", batched=True)).mdp
    assert one is not None
    assert many is not None
    assert many.fingerprint() == one.fingerprint()
    assert many.metadata["verification"]["exact"]
    assert many.metadata["num_states_raw"] == {"Catch-bsuite": 39, "Breakout-MinAtar": 433}[game]


def test_deep_sea_is_as_deep_as_it_says(tmp_path: Path) -> None:
    """8 rows; one treasure, found by one action sequence of 2^8."""
    mdp = build(catalogue_target("gymnax-DeepSea-bsuite"), Options(out=tmp_path, batched=True)).mdp
    assert mdp is not None
    assert (mdp.num_states, mdp.horizon) == (36, 8)  # 1 + 2 + ... + 8 cells
    best = mdp.metadata["returns"][1]
    assert best == pytest.approx(1 - 0.01, rel=1e-5)


def test_what_is_not_known_is_one_clear_line() -> None:
    assert catalog.find("gymnax-CartPole-v1") is None
    assert GYMNAX.unlisted_entry("Breakout-MinAtar") is None
    with pytest.raises(SimulatorError, match="no game of Gymnax is called 'Pong-misc' here"):
        GymnaxSimulator("Pong-misc")
    with pytest.raises(SimulatorError, match="not a state of this game"):
        GymnaxSimulator("Catch-bsuite").set_state(b"abc")
