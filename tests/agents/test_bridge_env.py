"""The catalogue's environments in Gymnasium."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import efhorizon

EXAMPLES = {
    "BRIDGE/freeway_10_fs30-v0": (84, 84, 4),
    "BRIDGE/qbert_10_fs30-v0": (84, 84, 4),
    "BRIDGE/maze_easy_l0_30_fs1-v0": (64, 64, 3),
    "BRIDGE/starpilot_hard_l0_10_fs8-v0": (64, 64, 3),
    "BRIDGE/MiniGrid-KeyCorridorS3R1-v0": None,
    "BRIDGE/MiniGrid-Empty-5x5-DistanceShaped-v0": None,
}


def test_every_entry_is_registered() -> None:
    assert {entry.gym_id for entry in efhorizon.entries()} <= set(gymnasium.registry)


@pytest.mark.parametrize(("gym_id", "shape"), EXAMPLES.items())
def test_environments(gym_id: str, shape: tuple[int, ...] | None, rng: np.random.Generator) -> None:
    env = gymnasium.make(gym_id)
    unwrapped = env.unwrapped
    assert isinstance(unwrapped, efhorizon.BridgeEnv)
    check_env(unwrapped, skip_render_check=True)
    if shape is not None:
        assert env.observation_space.shape == shape
    actions = rng.integers(unwrapped.entry.num_actions, size=unwrapped.entry.horizon)
    first, second = episode(env, actions, seed=1), episode(env, actions, seed=2)  # the seed changes nothing
    assert len(first) == len(second) <= unwrapped.entry.horizon
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        assert one[1:] == other[1:]
    assert first[-1][2] or first[-1][3]
    assert first[-1][3] == (len(first) == unwrapped.entry.horizon and not first[-1][2])


def episode(env: gymnasium.Env, actions: np.ndarray, seed: int) -> list[tuple]:  # type: ignore[type-arg]
    env.reset(seed=seed)
    steps = []
    for action in actions:
        steps.append(env.step(int(action))[:4])
        if steps[-1][2] or steps[-1][3]:
            break
    return steps


@pytest.mark.parametrize("gym_id", EXAMPLES)
def test_states_hold_time_and_frames(gym_id: str) -> None:
    env = gymnasium.make(gym_id).unwrapped
    assert isinstance(env, efhorizon.BridgeEnv)
    env.reset()
    env.step(1)
    state = env.get_state()
    first = [env.step(a)[:4] for a in (0, 1)]
    env.reset()
    env.set_state(state)
    for (observation, *rest), expected in zip((env.step(a)[:4] for a in (0, 1)), first, strict=True):
        np.testing.assert_array_equal(observation, expected[0])
        assert tuple(rest) == expected[1:]
    with pytest.raises(efhorizon.SimulatorError):
        env.set_state(state[:5])


def test_the_horizon_truncates_and_nothing_follows() -> None:
    env = gymnasium.make("BRIDGE/freeway_10_fs30-v0").unwrapped
    env.reset()
    ends = [env.step(0)[2:4] for _ in range(10)]
    assert ends == [(False, False)] * 9 + [(False, True)]
    with pytest.raises(efhorizon.SimulatorError, match="reset"):
        env.step(0)


def test_render() -> None:
    env = gymnasium.make("BRIDGE/freeway_10_fs30-v0", render_mode="rgb_array")
    env.reset()
    assert np.asarray(env.render()).shape == (210, 160, 3)
    with pytest.raises(efhorizon.SimulatorError, match="render_mode"):
        efhorizon.BridgeEnv("freeway_10_fs30", render_mode="human")


def test_the_core_imports_without_the_suites_and_names_what_is_missing() -> None:
    import subprocess
    import sys

    program = """
import sys
for name in ("ale_py", "procgen", "minigrid", "cv2", "gym3"):
    sys.modules[name] = None
import efhorizon, gymnasium
for gym_id, extra in (("freeway_10_fs30-v0", "atari"), ("maze_easy_l0_30_fs1-v0", "procgen"),
                      ("MiniGrid-Empty-5x5-v0", "minigrid")):
    try:
        gymnasium.make("BRIDGE/" + gym_id)
    except efhorizon.MissingExtraError as error:
        assert f"efhorizon[{extra}]" in str(error), error
    else:
        raise SystemExit(f"{gym_id} was made")
print("named")
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.stdout == "named\n", result.stderr
