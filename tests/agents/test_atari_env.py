"""BRIDGE/Atari-v0: the full-length games of Appendix F.1."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import efhorizon
from efhorizon import EfhorizonError
from efhorizon.agents.live.environments import live_environment
from efhorizon.suites.atari import ATARI, FULL_LENGTH_GAMES, GAMES

pytest.importorskip("ale_py")


def test_the_defaults_are_the_paper_s() -> None:
    assert efhorizon.register_environments is not None
    env = gymnasium.make("BRIDGE/Atari-v0", game="space_invaders")
    inner = env.unwrapped
    assert (inner.entry.horizon, inner.entry.frameskip, inner.reward_factor) == (27_000, 4, 5.0)
    assert env.observation_space.shape == (84, 84, 4)
    assert env.action_space.n == 6
    env.close()


def test_rewards_are_scaled_and_play_is_deterministic() -> None:
    """Twice the same, one life; points are the simulator's own."""
    actions = np.random.default_rng(4).integers(6, size=400)
    found = []
    for _ in range(2):
        env = gymnasium.make("BRIDGE/Atari-v0", game="space_invaders").unwrapped
        env.reset(seed=len(found))
        total, length, is_over, info = 0.0, 0, False, {"points": 0.0}
        while not is_over:
            _, reward, terminated, truncated, info = env.step(actions[length])
            total, length, is_over = total + reward, length + 1, terminated or truncated
        assert info["points"] == pytest.approx(5 * total)
        found.append((total, length))
        env.close()
    assert found[0] == found[1]
    assert found[0][0] > 0
    live = live_environment("space_invaders_full")
    live.restore()
    points, steps, is_over = 0.0, 0, False
    while not is_over:
        _, reward, is_over = live.step(int(actions[steps]))
        points, steps = points + reward, steps + 1
    assert (points, steps) == (5 * found[0][0], found[0][1])


def test_states_come_back() -> None:
    env = gymnasium.make("BRIDGE/Atari-v0", game="breakout", horizon=60, reward_factor=1).unwrapped
    env.reset()
    for action in (1, 2, 3, 2) * 3:
        env.step(np.int64(action))
    kept = env.get_state()
    after = [env.step(np.int64(3)) for _ in range(5)]
    env.set_state(kept)
    again = [env.step(np.int64(3)) for _ in range(5)]
    for one, other in zip(after, again, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        assert one[1:] == other[1:]
    with pytest.raises(EfhorizonError, match="not a state"):
        env.set_state(b"")
    env.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"game": "chess"}, "no Atari game is called 'chess'"),
        ({"frameskip": 0}, "frameskip must be at least 1"),
        ({"horizon": 0}, "horizon must be at least 1"),
        ({"reward_factor": 0}, "must be positive"),
    ],
)
def test_what_cannot_be(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(EfhorizonError, match=message):
        gymnasium.make("BRIDGE/Atari-v0", **arguments)


def test_the_suite_knows_full_length_names() -> None:
    assert len(FULL_LENGTH_GAMES) == 7
    assert set(FULL_LENGTH_GAMES) <= set(GAMES)
    for game in FULL_LENGTH_GAMES:
        names = {ATARI.unlisted_entry(name) for name in (game, f"{game}_full", f"{game}_27000_fs4")}
        assert len(names) == 1
    assert ATARI.unlisted_entry("chess_full") is None
