"""Tabulated policies are what the network does in the live environment; what a policy is worth, against brute force."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from efhorizon import TabularMDP, catalog, save
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target
from efhorizon.commands._main import main
from efhorizon.errors import EfhorizonError
from efhorizon.policies.networks import CallablePolicy, TorchPolicy, probabilities
from efhorizon.policies.tabulate import observations_of, tabulated
from efhorizon.policies.worth import policy_worth
from efhorizon.suites import registry

NAMES = {"freeway_10_fs30": "ale_py", "maze_easy_l0_30_fs1": "procgen", "MiniGrid-DoorKey-5x5-v0": "minigrid"}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def table(name: str, tables: Path) -> TabularMDP:
    pytest.importorskip(NAMES[name])
    built = build(catalogue_target(name), Options(out=tables)).mdp
    assert built is not None
    return built


def network_for(mdp: TabularMDP) -> TorchPolicy:
    """A random network of the right shapes whose probabilities differ between observations."""
    from efhorizon.agents.deep.networks import network_for as shapes_for
    from efhorizon.agents.deep.observations import observed_table

    rng = np.random.default_rng(1)
    shapes = shapes_for("actor_critic", observed_table(mdp)).torch_shapes
    return TorchPolicy({name: rng.normal(0, 0.05, shape) for name, shape in shapes.items()})


@pytest.mark.parametrize("name", NAMES)
def test_the_same_probabilities_as_in_the_live_environment(name: str, tables: Path) -> None:
    pytest.importorskip("torch")
    mdp = table(name, tables)
    network = network_for(mdp)
    stacked, found = tabulated(mdp, network)
    entry = catalog.entry(name)
    suite = registry.suite(entry.suite)
    simulator = suite.simulator(**suite.arguments(entry))
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(12):
        simulator.reset()
        state, frames = 0, [suite.observation(entry, simulator)] * suite.frame_stack
        for _ in range(mdp.horizon):
            shown = np.concatenate(frames, axis=-1)[None]
            np.testing.assert_allclose(probabilities(network, shown)[0], found[state], atol=1e-6)
            seen.add(state)
            action = int(rng.integers(mdp.num_actions))
            terminated = simulator.step(action).terminated
            state = int(stacked.transitions[state, action])
            if terminated or state < 0:
                break
            frames = [*frames[1:], suite.observation(entry, simulator)]
    simulator.close()
    assert len(seen) > 10
    assert np.ptp(found, axis=0).max() > 1e-3  # states are not all alike


def test_frame_stacks_where_agents_see_them(tables: Path) -> None:
    mdp = table("freeway_10_fs30", tables)
    stacked, observations, shown = observations_of(mdp)
    assert (stacked.num_states, len(shown)) == (619, 619)
    assert observations.shape[1:] == (84, 84, 4)


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    screens = np.arange(12, dtype=np.uint8).reshape(3, 2, 2, 1)
    mdp = TabularMDP([[1, 2], [0, 2], [-1, 0]], [[0, 1], [0, 0], [1, 0]], 4, screens=screens, screen_mapping=[2, 0, 1])
    first = CallablePolicy(lambda seen: np.stack([seen[:, 0, 0, 0] / 20, 1 - seen[:, 0, 0, 0] / 20], axis=1), 2)
    same, found = tabulated(mdp, first)
    assert same is mdp
    np.testing.assert_allclose(found[:, 0], [8 / 20, 0, 4 / 20])
    with pytest.raises(EfhorizonError, match="chooses among 3 actions, and the table has 2"):
        tabulated(mdp, CallablePolicy(lambda seen: np.full((len(seen), 3), 1 / 3), 3))
    with pytest.raises(EfhorizonError, match="has no screens"):
        tabulated(TabularMDP([[0, 0]], [[0, 1]], 2), first)


@pytest.mark.parametrize("seed", range(20))
def test_worth_against_all_sequences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_states, num_actions, horizon = 4, 2 + seed % 2, 4
    transitions = rng.integers(-1, num_states, size=(num_states, num_actions))
    rewards = rng.choice([0.0, 1.0, 0.5], size=transitions.shape)
    mdp = TabularMDP(transitions, rewards, horizon)
    policy = rng.integers(1, 5, size=(horizon, num_states, num_actions)).astype(float)
    policy /= policy.sum(axis=2, keepdims=True)
    worth = policy_worth(mdp, policy)
    mean, optimal, entropy, length = 0.0, -np.inf, 0.0, 0.0
    returns: dict[tuple[int, ...], tuple[float, float]] = {}
    for sequence in product(range(num_actions), repeat=horizon):
        state, chance, total = 0, 1.0, 0.0
        for time, action in enumerate(sequence):
            if state < 0:
                chance /= num_actions  # what is left of a sequence after the end counts once
                continue
            chance *= policy[time, state, action]
            total += rewards[state, action]
            state = int(transitions[state, action])
        returns[sequence] = chance, total
        mean, optimal = mean + chance * total, max(optimal, total)
    for sequence, (chance, _) in returns.items():
        state = 0
        for time, action in enumerate(sequence):
            if state < 0:
                break
            row = policy[time, state]
            entropy -= chance * float((row * np.log2(row)).sum())
            length += chance
            state = int(transitions[state, action])
    best = sum(chance for chance, total in returns.values() if total == optimal)
    assert worth.exploration_return == pytest.approx(mean)
    assert worth.optimal_return == pytest.approx(optimal)
    assert worth.optimal_return_probability == pytest.approx(best)
    assert worth.entropy == pytest.approx(entropy / length)
    assert sum(mistake.share for mistake in worth.mistakes) <= 1 - best + 1e-12
    if len(worth.mistakes) < 5:
        assert sum(mistake.share for mistake in worth.mistakes) == pytest.approx(1 - best)
    assert list(worth.mistakes) == sorted(worth.mistakes, key=lambda mistake: -mistake.share)


def test_worth_in_closed_form() -> None:
    """One step, three actions with chances 1/2, 1/3, 1/6, of which the first is right."""
    worth = policy_worth(TabularMDP([[-1, -1, -1]], [[1, 0, 0]], 1), [[1 / 2, 1 / 3, 1 / 6]])
    assert worth.ratio == pytest.approx(float(Fraction(1, 3) / Fraction(1, 6)))
    assert worth.entropy == pytest.approx(0.5 + np.log2(3) / 3 + np.log2(6) / 6)
    assert (worth.greedy_return, worth.random_return) == (1.0, pytest.approx(1 / 3))
    (mistake,) = worth.mistakes
    assert (mistake.time, mistake.state, mistake.optimal_actions) == (0, 0, ("0",))
    assert mistake.share == pytest.approx(0.5)
    assert policy_worth(TabularMDP([[-1, -1]], [[1, 0]], 1), [[1.0, 0.0]]).ratio is None


@pytest.fixture
def own_table(tmp_path: Path) -> Path:
    screens = np.arange(12, dtype=np.uint8).reshape(3, 2, 2, 1)
    mdp = TabularMDP([[1, 2], [0, 2], [-1, 0]], [[0, 1], [0, 0], [1, 0]], 4, screens=screens, screen_mapping=[2, 0, 1])
    return save(mdp, tmp_path / "own.npz")


def test_commands(own_table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n\ndef policy(seen):\n    return np.tile([0.25, 0.75], (len(seen), 1))\n"
    )
    out = tmp_path / "own.npy"
    given = ["policy", "tabulate", str(own_table), "--policy", f"{tmp_path / 'mine.py'}:policy", "--out", str(out)]
    assert main([*given, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["least_probability"] == 0.25
    np.testing.assert_array_equal(np.load(out), [[0.25, 0.75]] * 3)
    assert main([*given, "--published"]) == 0
    assert np.load(out).shape == (4, 4, 2)
    assert "probabilities of 2 actions in 3 states" in capsys.readouterr().out
    assert main(["policy", "show", str(own_table), "--policy", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ratio"] == 2.0
    assert main(["policy", "show", str(own_table), "--policy", str(out)]) == 0
    assert "chance of an optimal episode" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("missing.py:policy", "missing.py: no such file"),
        ("bad.py:policy", "bad.py: ZeroDivisionError"),
        ("empty.py:policy", "there is no function 'policy' in it"),
        ("nothing.txt", "a network is a .npz, .zip, .pth or .pt file"),
        ("missing.npz", "No such file"),
        ("shape.npy", r"has shape (5, 2); this table needs (3, 2) or (4, 3, 2)"),
        ("sum.npy", "sum to 0.9, not 1"),
    ],
)
def test_bad_policies_in_one_line(
    policy: str, message: str, own_table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.py").write_text("1 / 0\n")
    (tmp_path / "empty.py").write_text("")
    np.save(tmp_path / "shape.npy", np.full((5, 2), 0.5))
    np.save(tmp_path / "sum.npy", np.full((3, 2), 0.45))
    (tmp_path / "kept.npy").write_bytes(b"kept")
    out = ["--out", str(tmp_path / "kept.npy")]
    assert main(["policy", "tabulate", str(own_table), "--policy", str(tmp_path / policy), *out]) != 0
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert (tmp_path / "kept.npy").read_bytes() == b"kept"
