"""Starting from given parameters or a given exploration policy: files, checks, and both backends end to end."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training_tables import flat_table, image_table

from efhorizon import TabularMDP
from efhorizon.agents.deep import pretrained
from efhorizon.agents.deep.observations import ObservedTable, observed_table
from efhorizon.agents.deep.pretrained import InvalidParametersError, Start, check_parameters, digest, load_parameters
from efhorizon.agents.deep.protocol import Protocol
from efhorizon.agents.deep.settings import DQNSettings, PPOSettings
from efhorizon.errors import StoreError
from efhorizon.planning.policies import exploration_policy

pytest.importorskip("torch")

from efhorizon.agents.deep import dqn, ppo
from efhorizon.agents.deep.networks import Network, network_for

GRIDWORLD = "MiniGrid-Empty-5x5-v0"
GAMMA = 0.9


def torch_state(network: Network, theta: np.ndarray) -> dict[str, np.ndarray]:
    """Stable-Baselines3's state dictionary of these parameters: the inverse of `from_torch`, written anew."""
    state = {}
    for (name, array), torch_name in zip(network.unpacked(theta).items(), network.torch_shapes, strict=True):
        array = np.asarray(array)
        if network.flat is not None and name.endswith(".0.w"):  # each of equal columns gets its share of their weight
            shares = array / network.flat.multiplicity[:, None]
            array = np.where(network.flat.groups[:, None] >= 0, shares[network.flat.groups], 0.25)
        if name == "linear.w":
            height, width, channels = network._cnn_output()
            state[torch_name] = array.reshape(height, width, channels, -1).transpose(3, 2, 0, 1).reshape(512, -1)
        else:
            state[torch_name] = array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T
    return state


def discounted_qs(table: ObservedTable) -> np.ndarray:
    """Q [P, A] of the discounted problem: its greedy policy takes the shortest way."""
    values = np.zeros(len(table.transitions) + 1)  # the last one, which -1 finds, is the end
    for _ in range(table.horizon):
        qs = table.rewards + GAMMA * values[table.transitions]
        values[:-1] = qs.max(axis=1)
    return qs


def imitating(table: ObservedTable, kind: Any) -> np.ndarray:
    """Parameters whose greedy policy is optimal: the head gives Q, or ten times Q as logits, by least squares."""
    wanted = np.zeros((table.num_observations, table.num_actions), np.float32)
    wanted[table.observation] = discounted_qs(table) * (10 if kind == "actor_critic" else 1)
    network, tower = network_for(kind, table), "pi" if kind == "actor_critic" else "q"
    rng = np.random.default_rng(0)
    parameters = network.unpacked(network.initial(rng))
    hidden = table.seen.values
    for layer in ("0", "1"):
        parameters[f"{tower}.{layer}.w"] = rng.normal(size=parameters[f"{tower}.{layer}.w"].shape)  # tells all apart
        hidden = np.maximum(hidden @ parameters[f"{tower}.{layer}.w"] + parameters[f"{tower}.{layer}.b"], 0)
    outputs, *_ = np.linalg.lstsq(np.column_stack([hidden, np.ones(len(hidden))]), wanted, rcond=None)
    parameters[f"{tower}.out.w"], parameters[f"{tower}.out.b"] = outputs[:-1], outputs[-1]
    return np.concatenate([array.ravel() for array in parameters.values()]).astype(np.float32)


@pytest.mark.parametrize("kind", ["actor_critic", "q"])
def test_an_optimal_network_is_optimal_at_the_first_evaluation(gridworld: TabularMDP, kind: Any) -> None:
    """In both backends, where a fresh one is not. An evaluation this early comes before the first update."""
    pytest.importorskip("stable_baselines3")
    from efhorizon.agents.deep import sb3

    table = observed_table(gridworld)
    theta = imitating(table, kind)
    state = torch_state(network_for(kind, table), theta)
    if kind == "actor_critic":
        settings: Any = PPOSettings(gamma=0.99, rollout_length=32)
        first, train = settings.samples, ppo.train
    else:
        settings = DQNSettings(gamma=0.99)
        first, train = settings.train_every, dqn.train
    protocol = Protocol(max_steps=first, evaluation_interval=first, window=None)
    (pretrained,) = train(table, settings, protocol, [0], initial=theta)
    (live,) = sb3.train(GRIDWORLD, table, settings, protocol, [0], initial=state)
    for result in (pretrained, live):
        assert (result.sample_complexity, result.final_return, result.solved_by) == (first, 1.0, "evaluation")
    (fresh,) = sb3.train(GRIDWORLD, table, settings, protocol, [0])
    assert (fresh.sample_complexity, fresh.final_return) == (None, 0.0)


@pytest.mark.parametrize("make", [flat_table, lambda rng: image_table(rng, 4)])
@pytest.mark.parametrize("kind", ["actor_critic", "q"])
def test_parameters_make_the_round_trip_through_torch_s_names(make: Any, kind: Any, rng: np.random.Generator) -> None:
    table, _ = make(rng)
    network = network_for(kind, table)
    theta = network.initial(rng)
    state = torch_state(network, theta)
    assert {name: array.shape for name, array in state.items()} == network.torch_shapes
    check_parameters(state, network.torch_shapes)
    np.testing.assert_allclose(network.from_torch(state), theta, rtol=1e-5)


def test_stable_baselines3_s_target_network_starts_as_a_copy(gridworld: TabularMDP) -> None:
    pytest.importorskip("stable_baselines3")
    from efhorizon.agents.deep import sb3

    table = observed_table(gridworld)
    network = network_for("q", table)
    state = torch_state(network, network.initial(np.random.default_rng(5)))
    model = sb3.agent(GRIDWORLD, table, DQNSettings(gamma=0.99), 0, state)
    for mine, copied in zip(model.q_net.parameters(), model.q_net_target.parameters(), strict=True):
        assert (mine == copied).all()
    for name, array in state.items():
        np.testing.assert_array_equal(model.policy.state_dict()[name].numpy(), array.astype(np.float32))
    with pytest.raises(InvalidParametersError, match=r"lack q_net\.q_net\.0\.weight"):
        sb3.agent(GRIDWORLD, table, DQNSettings(gamma=0.99), 0, {"other": np.zeros(3)})


def test_stable_baselines3_explores_as_it_is_told(gridworld: TabularMDP, rng: np.random.Generator) -> None:
    """With epsilon 1 every action but the first, which is greedy, is the one that the policy prescribes."""
    pytest.importorskip("stable_baselines3")
    from efhorizon.agents.deep import sb3

    table = observed_table(gridworld)
    prescribed = rng.integers(table.num_actions, size=(table.horizon, gridworld.num_states))
    policy = exploration_policy(gridworld, np.eye(table.num_actions)[prescribed])
    settings = DQNSettings(gamma=0.99, final_epsilon=1.0, buffer_size=400)
    model = sb3.agent(GRIDWORLD, table, settings, 0, exploration_policy=policy)
    with sb3._suitable_threads(table):
        model.learn(total_timesteps=300)
    actions = model.replay_buffer.actions[:300, 0, 0]
    state, time, prescriptions = 0, 0, []
    for action in actions:
        prescriptions.append(prescribed[time, state])
        state, time = int(gridworld.transitions[state, action]), time + 1
        if state < 0 or time == table.horizon:
            state, time = 0, 0
    assert actions[1:].tolist() == prescriptions[1:]
    assert len(set(actions.tolist())) == table.num_actions


def test_random_actions_have_the_policy_s_probabilities(gridworld: TabularMDP) -> None:
    from efhorizon.agents.deep.sb3 import ExploringActions

    table = observed_table(gridworld)
    shares = np.tile([0.1, 0.0, 0.9], (gridworld.num_states, 1))
    actions = ExploringActions(table, exploration_policy(gridworld, shares))
    actions.seed(3)
    counts = np.bincount([actions.sample() for _ in range(2000)], minlength=3)
    assert counts[1] == 0
    assert abs(counts[0] - 200) < 60  # four standard deviations


def test_a_file_of_parameters_is_read_by_name(tmp_path: Path) -> None:
    arrays = {"a.weight": np.arange(6.0).reshape(2, 3), "b.bias": np.float16([1, 2])}
    np.savez(tmp_path / "f.npz", **arrays)
    loaded = load_parameters(tmp_path / "f.npz")
    assert {name: array.tolist() for name, array in loaded.items()} == {
        "a.weight": [[0, 1, 2], [3, 4, 5]],
        "b.bias": [1, 2],
    }
    assert {array.dtype for array in loaded.values()} == {np.dtype(np.float32)}
    np.savez_compressed(tmp_path / "g.npz", **dict(reversed(arrays.items())))
    assert digest(load_parameters(tmp_path / "g.npz")) == digest(loaded)  # the same numbers in another file
    assert digest({**loaded, "b.bias": np.float32([1, 3])}) != digest(loaded)
    assert digest({"a.weight": loaded["b.bias"], "b.bias": loaded["a.weight"]}) != digest(loaded)


def test_bad_files_of_parameters_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.npz"
    path.write_text("not a file of arrays")
    with pytest.raises(StoreError, match=r"f\.npz: not a \.npz of arrays"):
        load_parameters(path)
    for array, message in [
        (np.array([{}], object), "not a .npz of arrays"),  # would have to be unpickled
        (np.array([1, 2]), "finite floating-point numbers; a (int64) is not"),
        (np.array([1.0, np.nan]), "finite floating-point numbers; a (float64) is not"),
    ]:
        np.savez(path, a=array)
        with pytest.raises(StoreError) as caught:
            load_parameters(path)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
    np.savez(path, a=np.zeros(1000))
    path.write_bytes(path.read_bytes()[:4000])
    with pytest.raises(StoreError, match=r"not a \.npz of arrays"):
        load_parameters(path)
    np.savez(path, a=np.zeros(1000))
    monkeypatch.setattr(pretrained, "_MAX_BYTES", 7999)
    with pytest.raises(StoreError, match=r"bytes are too many for a \.npz of arrays"):
        load_parameters(path)


def test_parameters_of_another_network_are_refused() -> None:
    expected = {"w": (2, 3), "b": (2,)}
    check_parameters({"w": np.zeros((2, 3)), "b": np.zeros(2), "w_target": np.zeros(9)}, expected)
    with pytest.raises(InvalidParametersError, match=r"lack b; they have w, x, y and 2 more"):
        check_parameters({name: np.zeros((2, 3)) for name in "wxyzu"}, expected)
    with pytest.raises(InvalidParametersError, match=r"w have shape \(3, 2\); this network needs \(2, 3\)"):
        check_parameters({"w": np.zeros((3, 2)), "b": np.zeros(2)}, expected)


def test_what_runs_start_from_is_named(gridworld: TabularMDP) -> None:
    shares = np.tile([0.1, 0.1, 0.8], (gridworld.num_states, 1))
    policy = exploration_policy(gridworld, shares)
    assert (Start().digests, Start().suffix) == ({}, "")
    one, other = Start(policy), Start(exploration_policy(gridworld, shares[:, ::-1]))
    assert list(one.digests) == ["exploration_policy"]
    assert one.digests != other.digests
    both = dataclasses.replace(one, initial={"w": np.zeros(2, np.float32)})
    assert both.suffix.startswith(f"-policy-{one.digests['exploration_policy'][:8]}-initial-")
