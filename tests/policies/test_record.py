"""Playing and recording; and the whole chain: record, clone, play."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from efhorizon.agents.live.bridge_env import BridgeEnv
from efhorizon.mdp import TabularMDP
from efhorizon.planning.optimal import optimal_plan
from efhorizon.policies.live import LiveGame, PlayedStep, RecordingError, frame_by_frame
from efhorizon.policies.prompt_plan import prompt_plan
from efhorizon.policies.record import NetworkPlayer, OptimalPlayer, played, record
from efhorizon.policies.recordings import Recording
from efhorizon.policies.samples import recorded_entry, samples

GRIDWORLD = "MiniGrid-Empty-5x5-v0"


@pytest.fixture(scope="module")
def gridworld(tmp_path_factory: pytest.TempPathFactory) -> TabularMDP:
    pytest.importorskip("minigrid")
    from efhorizon.build.pipeline import Options, build
    from efhorizon.build.target import catalogue_target

    options = Options(out=tmp_path_factory.mktemp("tables"), num_workers=1, verify_episodes=0)
    mdp = build(catalogue_target(GRIDWORLD), options).mdp
    assert mdp is not None
    return mdp


class Table:
    """A policy network that looks up what it was given for each observation; by default, every action is as likely."""

    def __init__(self, num_actions: int, choices: dict[bytes, int] | None = None) -> None:
        self.num_actions, self._choices = num_actions, choices or {}

    def __call__(self, observations: np.ndarray, /) -> np.ndarray:
        rows = np.full((len(observations), self.num_actions), 1 / self.num_actions)
        for row, observation in zip(rows, observations, strict=True):
            if observation.tobytes() in self._choices:
                row[:] = np.eye(self.num_actions)[self._choices[observation.tobytes()]]
        return rows


class Random:
    def __init__(self, rng: np.random.Generator) -> None:
        self._rng, self.chosen = rng, list[int]()

    def begin(self, game: LiveGame) -> None:
        self.chosen.clear()

    def action(self, game: LiveGame) -> int:
        self.chosen.append(int(self._rng.integers(game.entry.num_actions)))
        return self.chosen[-1]

    def took(self, action: int, step: PlayedStep) -> None:
        pass


@pytest.mark.parametrize("name", ["pong_20_fs30", "breakout_40_fs30", "maze_easy_l0_10_fs1", GRIDWORLD])
def test_the_live_game_is_the_environment_of_the_catalogue(name: str, rng: np.random.Generator) -> None:
    """Same observations, rewards and ends as BridgeEnv; Breakout loses a life, which ends the episode."""
    pytest.importorskip({"p": "ale_py", "b": "ale_py", "m": "procgen", "M": "minigrid"}[name[0]])
    entry = recorded_entry(name)
    game, player, env = LiveGame(entry), Random(rng), BridgeEnv(name)
    observations, rewards = [], []

    def add(_: int, action: int, step: PlayedStep) -> None:
        observations.append(game.observation)
        rewards.append(step.reward)
        assert len(step.pictures) == len(step.rewards) == (entry.frameskip if entry.suite == "atari" else 1)

    (episode,) = played(game, player, 1, add)
    env.reset()
    for number, action in enumerate(player.chosen):
        seen, reward, terminated, truncated, _ = env.step(np.int64(action))
        np.testing.assert_array_equal(seen, observations[number])
        assert reward == rewards[number]
        assert (terminated or truncated) == (number == episode.steps - 1)
    game.close()
    env.close()


def test_an_optimal_policy_with_noise(gridworld: TabularMDP, tmp_path: Path) -> None:
    entry = recorded_entry(GRIDWORLD)

    def recorded(noise: float, seed: int, folder: str, episodes: int = 3) -> tuple[Recording, list[float], list[int]]:
        player = OptimalPlayer(gridworld, noise, np.random.default_rng(seed))
        recording, found = record(entry, player, tmp_path / folder, "g", episodes=episodes)
        return recording, [each.total_reward for each in found], [each.steps for each in found]

    recording, returns, lengths = recorded(0, 0, "a")
    assert returns == [optimal_plan(gridworld).optimal_return] * 3
    assert [label.episode for label in recording.labels] == [0] * lengths[0] + [1] * lengths[1] + [2] * lengths[2]
    assert [label.action for label in recording.labels[: lengths[0]]] == [2, 2, 1, 2, 2]
    _, _, noisy = recorded(0.5, 0, "b", 20)
    assert max(noisy) > lengths[0]
    assert recorded(0.5, 0, "c", 20)[2] == noisy != recorded(0.5, 1, "d", 20)[2]
    # with noise 1 every action is as likely: of n actions a share of 1/A is each, to within 4 standard deviations
    actions = np.array([label.action for label in recorded(1, 0, "e", 10)[0].labels])
    share = np.bincount(actions, minlength=gridworld.num_actions) / len(actions)
    chance = 1 / gridworld.num_actions
    assert np.abs(share - chance).max() < 4 * (chance * (1 - chance) / len(actions)) ** 0.5


def test_the_plan_is_optimal_and_prompt(rng: np.random.Generator) -> None:
    """On random tables: the return of `optimal_plan`, and of all episodes with it the largest discounted return."""
    from itertools import product

    for _ in range(30):
        transitions = rng.integers(-1, 4, (4, 2))
        mdp = TabularMDP(transitions.astype(np.int32), rng.integers(-1, 2, (4, 2)).astype(np.float32), horizon=5)
        plan = prompt_plan(mdp)

        def returns(choose: Callable[[int, int], int], mdp: TabularMDP = mdp) -> tuple[float, float]:
            state, total, discounted = 0, 0.0, 0.0
            for time in range(mdp.horizon):
                action = choose(time, state)
                total += mdp.rewards[state, action]
                discounted += 0.99**time * mdp.rewards[state, action]
                state = int(mdp.transitions[state, action])
                if state < 0:
                    break
            return total, round(discounted, 9)

        every = [returns(lambda time, _, actions=actions: actions[time]) for actions in product((0, 1), repeat=5)]
        assert returns(plan.action) == max(every)
        assert plan.optimal_return == optimal_plan(mdp).optimal_return == max(every)[0]


def test_a_table_of_something_else_is_noticed(gridworld: TabularMDP, tmp_path: Path, rng: np.random.Generator) -> None:
    entry = recorded_entry(GRIDWORLD)
    wrong = TabularMDP(gridworld.transitions, gridworld.rewards + 1, horizon=gridworld.horizon)
    with pytest.raises(RecordingError, match="step 1: the environment paid 0, the table says 1"):
        record(entry, OptimalPlayer(wrong, 0, rng), tmp_path, "x", episodes=1)
    with pytest.raises(RecordingError, match=f"but {GRIDWORLD}-T50 has 3 and 50"):
        record(entry.with_horizon(50), OptimalPlayer(gridworld, 0, rng), tmp_path, "x", episodes=1)
    with pytest.raises(RecordingError, match=r"the noise must be between 0 and 1, got 1\.5"):
        OptimalPlayer(gridworld, 1.5, rng)
    with pytest.raises(RecordingError, match="the network has 4 actions"):
        record(entry, NetworkPlayer(Table(4), rng), tmp_path, "x", episodes=1)
    assert list(tmp_path.iterdir()) == []


def test_a_network_is_followed(gridworld: TabularMDP, tmp_path: Path, rng: np.random.Generator) -> None:
    entry = recorded_entry(GRIDWORLD)
    game, choices = LiveGame(entry), {}
    for action in (2, 2, 1, 2, 2):
        choices[game.observation.tobytes()] = action
        game.step(action)
    for greedy in (True, False):  # certain choices are the same drawn or not
        player = NetworkPlayer(Table(entry.num_actions, choices), rng, greedy=greedy)
        recording, (episode,) = record(entry, player, tmp_path / str(greedy), "x", episodes=1)
        assert [label.action for label in recording.labels] == [2, 2, 1, 2, 2]
        assert episode.total_reward == 1
    drawn = record(entry, NetworkPlayer(Table(entry.num_actions), rng), tmp_path / "r", "x", episodes=1)[0]
    assert {label.action for label in drawn.labels} == {0, 1, 2}
    greedy = record(entry, NetworkPlayer(Table(entry.num_actions), rng, greedy=True), tmp_path / "g", "x", episodes=1)[
        0
    ]
    assert {label.action for label in greedy.labels} == {0}


def test_frame_by_frame(rng: np.random.Generator) -> None:
    pytest.importorskip("ale_py")
    entry = frame_by_frame(recorded_entry("freeway_10_fs30"))
    assert (entry.horizon, entry.frameskip) == (300, 1)
    assert len(LiveGame(entry).step(1).pictures) == 1
    assert frame_by_frame(recorded_entry(GRIDWORLD)) == recorded_entry(GRIDWORLD)


def test_a_clone_repeats_what_was_recorded(tmp_path: Path, rng: np.random.Generator) -> None:
    """Five steps of Freeway through files, training and the live environment: the same actions come out."""
    pytest.importorskip("ale_py")
    pytest.importorskip("torch")
    from efhorizon.policies.clone import CloneSettings, cloned

    entry = recorded_entry("freeway_5_fs30")
    recording, _ = record(entry, Random(rng), tmp_path, "r", episodes=1)
    found = samples(entry, [recording])
    policy = cloned(found.observations, found.counts(), settings=CloneSettings(batches=200))
    assert policy.training.accuracy == 1
    again, _ = record(entry, NetworkPlayer(policy, rng, greedy=True), tmp_path, "again", episodes=1)
    assert [label.action for label in again.labels] == [label.action for label in recording.labels]
    assert len({label.action for label in recording.labels}) > 1


@pytest.mark.slow
def test_a_clone_of_an_optimal_policy_is_optimal_in_freeway(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands, with the paper's settings: the greedy episode is optimal live and on the table, and so is
    nearly every sampled one, by the exact probability."""
    pytest.importorskip("ale_py")
    pytest.importorskip("torch")
    import json

    from efhorizon.agents.deep.pretrained import load_parameters
    from efhorizon.commands import main
    from efhorizon.io.tables import load
    from efhorizon.policies.clone import ClonedPolicy, Fit

    name, tables, out = "freeway_10_fs30", str(tmp_path / "tables"), str(tmp_path / "r")
    assert main(["build", name, "--out", tables]) == 0
    capsys.readouterr()
    assert (
        main(["policy", "record", name, "--optimal", "--episodes", "10", "--tables", tables, "--out", out, "--json"])
        == 0
    )
    made = json.loads(capsys.readouterr().out)
    assert made["optimal_episodes"] == 10
    network = tmp_path / "freeway.npz"
    assert main(["policy", "clone", name, out, "--out", str(network), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["frames"], summary["rows"], summary["steps"]) == (3000, 3000, 100)
    assert summary["training"]["accuracy"] == summary["held_out"]["accuracy"] == 1
    parameters = load_parameters(network)
    nothing = Fit(0, 0, 0, 0)
    policy = ClonedPolicy(parameters, nothing, nothing)
    game = LiveGame(recorded_entry(name))
    (episode,) = played(game, NetworkPlayer(policy, np.random.default_rng(0), greedy=True), 1)
    assert episode.total_reward == made["optimal_return"]
    greedy, chance = on_table(load(tmp_path / "tables" / name), policy)
    assert greedy == made["optimal_return"]
    assert chance > 0.99
    arguments = ["train", name, "--algo", "ppo", "--settings", "rollout128", "--seeds", "1", "--steps", "2k"]
    assert main([*arguments, "--initial", str(network), "--tables", tables, "--results", str(tmp_path / "x")]) == 0


def on_table(mdp: TabularMDP, policy: Any) -> tuple[float, float]:
    """The return of the greedy episode, and the chance that a sampled one is optimal."""
    from efhorizon.agents.deep.observations import ImageStacks, observed_table

    table = observed_table(mdp)
    assert isinstance(table.seen, ImageStacks)
    stacks = np.moveaxis(table.seen.frames[table.seen.stacks][..., 0], 1, -1)  # [U, H, W, K]
    chances = policy(stacks)[table.observation]  # [P, A]
    node, units = 0, 0
    law = {(0, 0): 1.0}  # probability of each (node, return so far)
    for _ in range(table.horizon):
        following: dict[tuple[int, int], float] = {}
        for (at, so_far), chance in law.items():
            for action in range(table.num_actions) if at >= 0 else ():
                to = (int(table.transitions[at, action]), so_far + int(table.reward_units[at, action]))
                following[to] = following.get(to, 0.0) + chance * chances[at, action]
            if at < 0:
                following[at, so_far] = following.get((at, so_far), 0.0) + chance
        law = following
        if node >= 0:
            action = int(chances[node].argmax())
            units, node = units + int(table.reward_units[node, action]), int(table.transitions[node, action])
    optimal = sum(chance for (_, total), chance in law.items() if total == table.optimal_units)
    print(f"\ngreedy return {units * table.unit:g}, chance of an optimal episode {optimal:.6f}")
    return units * table.unit, optimal
