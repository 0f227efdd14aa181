"""Changed tables against brute force: every action sequence of small random MDPs earns what it should."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from brute_force import Exact
from toy_mdps import random_mdp

from efhorizon import EfhorizonError, InvalidTableError, TabularMDP, examples, load, save
from efhorizon.build.target import table_spec
from efhorizon.study.tasks import tasks
from efhorizon.transform.structure import is_closed

SMALL = [(seed, states, horizon) for seed, (states, horizon) in enumerate([(1, 4), (3, 5), (5, 4), (8, 6), (12, 5)])]


def made(seed: int, num_states: int, horizon: int, num_actions: int = 2) -> TabularMDP:
    mdp = random_mdp(np.random.default_rng(seed), num_states, num_actions, horizon)
    return mdp.with_metadata(id=f"random{seed}")


def sequences(mdp: TabularMDP) -> list[tuple[int, ...]]:
    return list(product(range(mdp.num_actions), repeat=mdp.horizon))


def optimal_sequences(mdp: TabularMDP, gamma: Fraction = Fraction(1)) -> set[tuple[int, ...]]:
    exact = Exact(mdp, gamma)
    best = exact.optimal(0, 0)
    return {sequence for sequence in sequences(mdp) if exact.sequence_return(sequence) == best}


@pytest.mark.parametrize(("seed", "num_states", "horizon"), SMALL)
def test_rewards_from_an_array_or_a_function(seed: int, num_states: int, horizon: int) -> None:
    mdp = made(seed, num_states, horizon)
    array = mdp.with_rewards(2 * mdp.rewards + 1)
    function = mdp.with_rewards(lambda state, action, reward: 2 * reward + 1)
    assert array.fingerprint() == function.fingerprint()
    assert array.rewards.tolist() == (2 * mdp.rewards + 1).tolist()
    by_pair = mdp.with_rewards(lambda state, action, reward: 10 * state + action)
    assert by_pair.rewards.tolist() == [[10 * s + a for a in range(2)] for s in range(num_states)]


@pytest.mark.parametrize("gamma", ["1", "0.9", "0.5"])
@pytest.mark.parametrize(("seed", "num_states", "horizon"), SMALL)
def test_a_potential_takes_the_same_from_every_episode(seed: int, num_states: int, horizon: int, gamma: str) -> None:
    mdp = made(seed, num_states, horizon)
    phi = np.random.default_rng(seed).choice([0.0, 1.0, 2.5, -3.0, 0.25], num_states)
    shaped = mdp.with_potential(phi, gamma=float(gamma))
    before, after = (Exact(table, Fraction(gamma)) for table in (mdp, shaped))
    assert shaped.horizon == mdp.horizon
    for sequence in sequences(mdp):
        lost = before.sequence_return(sequence) - after.sequence_return(sequence)
        assert lost == Fraction(str(phi[0]))
    assert optimal_sequences(mdp, Fraction(gamma)) == optimal_sequences(shaped, Fraction(gamma))


@pytest.mark.parametrize("scale", [0.1, 1.0, 1e4])
@pytest.mark.parametrize(("seed", "num_states", "horizon"), SMALL)
def test_a_potential_with_many_digits_is_rounded_and_ties_stay(
    seed: int, num_states: int, horizon: int, scale: float
) -> None:
    mdp = made(seed, num_states, horizon)
    mdp = mdp.with_rewards(np.round(mdp.rewards))
    phi = scale * np.random.default_rng(seed).normal(size=num_states)
    shaped = mdp.with_potential(phi)
    lost = {Exact(mdp).sequence_return(s) - Exact(shaped).sequence_return(s) for s in sequences(mdp)}
    assert len(lost) == 1  # exactly the same for every episode
    assert float(lost.pop()) == pytest.approx(phi[0], abs=1e-3 * np.abs(phi).max())
    assert optimal_sequences(mdp) == optimal_sequences(shaped)
    assert (mdp.optimal_policy()[0, 0] == shaped.optimal_policy()[0, 0]).all()  # as the package sees it


def test_a_potential_keeps_states_that_have_one_time() -> None:
    clocked = examples.dense_rewards(horizon=6)
    shaped = clocked.with_potential(np.arange(6.0))
    assert shaped.transitions.tolist() == clocked.transitions.tolist()
    assert "unrolled" not in shaped.metadata["changes"][0]
    loop = TabularMDP([[0, 1], [0, 1]], [[0, 0], [0, 1]], 4, metadata={"id": "loop"})
    unrolled = loop.with_potential(lambda state: 3.0 * state)
    assert unrolled.metadata["changes"][0]["unrolled"]
    assert unrolled.num_states == 7  # the start, and two states at each later time
    assert loop.with_potential([0, 0]).num_states == 2  # nothing depends on time


def test_a_potential_that_does_not_fit() -> None:
    mdp = TabularMDP([[0, -1]], [[0.001, 1.0]], 3)
    with pytest.raises(InvalidTableError, match="more digits"):
        mdp.with_potential([123456789.123])
    with pytest.raises(InvalidTableError, match=r"shape \(1,\)"):
        mdp.with_potential([1, 2])
    with pytest.raises(InvalidTableError, match="state 0 is nan"):
        mdp.with_potential([np.nan])


@pytest.mark.parametrize(("seed", "num_states", "horizon"), SMALL)
def test_fewer_actions_in_another_order(seed: int, num_states: int, horizon: int) -> None:
    mdp = made(seed, num_states, horizon, num_actions=3)
    fewer = mdp.with_actions([2, 0])
    assert fewer.num_actions == 2
    assert (fewer.depths() >= 0).all()
    for sequence in sequences(fewer):
        meant = tuple((2, 0)[action] for action in sequence)
        assert Exact(fewer).sequence_return(sequence) == Exact(mdp).sequence_return(meant)
    assert fewer.metadata["action_names"] == ["2", "0"]
    assert fewer.with_actions(["0"]).metadata["changes"][1]["actions"] == [1]
    assert mdp.with_actions(range(3)).fingerprint() == mdp.fingerprint()


@pytest.mark.parametrize(
    ("actions", "message"),
    [([], "at least one"), ([0, 0], "named twice"), ([2], "from 0 to 1"), (["up"], "there are 0, 1"), ([-1], "got -1")],
)
def test_bad_actions(actions: list[int | str], message: str) -> None:
    with pytest.raises(InvalidTableError, match=message):
        TabularMDP([[0, -1]], [[0, 1]], 3).with_actions(actions)


@pytest.mark.parametrize(("seed", "num_states", "horizon"), SMALL)
def test_a_shorter_horizon_is_the_beginning_of_a_longer_one(seed: int, num_states: int, horizon: int) -> None:
    mdp = made(seed, num_states, horizon)
    for shorter in range(1, horizon + 1):
        cut = mdp.with_horizon(shorter)
        assert cut.horizon == shorter
        assert cut.depths().max() < shorter
        assert (cut.depths() >= 0).all()
        for sequence in sequences(cut):
            assert Exact(cut).sequence_return(sequence) == Exact(mdp).sequence_return(sequence)


def test_a_longer_horizon_needs_proof() -> None:
    circle = TabularMDP([[1, 0], [0, 1]], [[0, 1], [0, 0]], 3)
    assert circle.with_horizon(7).fingerprint() == circle.fingerprint()  # nothing ends
    short = TabularMDP([[1, -1], [-1, -1]], [[0, 1], [2, 0]], 5)
    assert short.with_horizon(50).horizon == 50  # every episode ends after two steps
    cut = TabularMDP([[0, -1]], [[0, 1]], 3)
    with pytest.raises(InvalidTableError, match="closed=True"):
        cut.with_horizon(4)
    assert cut.with_horizon(4, closed=True).horizon == 4
    chain = examples.dense_rewards(horizon=5)
    with pytest.raises(InvalidTableError, match="build it with horizon 6"):
        chain.with_horizon(6)
    with pytest.raises(InvalidTableError, match="positive integer"):
        chain.with_horizon(0)


def test_what_a_file_says_counts_not_the_horizon_that_load_was_given() -> None:
    built = {"inputs": {"horizon": 3}, "num_states_raw": 2}
    cut = TabularMDP([[1, -1], [0, -1]], np.zeros((2, 2)), 10, metadata=built)
    assert is_closed(cut)  # no state is two steps away
    assert not is_closed(TabularMDP([[1, 1], [-1, -1]], np.zeros((2, 2)), 10, metadata={"inputs": {"horizon": 2}}))
    merged = cut.with_metadata(num_states_raw=3)
    assert not is_closed(merged)


@pytest.mark.parametrize("times", [1, 2, 3, 4, 9])
@pytest.mark.parametrize(("seed", "num_states", "horizon"), SMALL)
def test_repeated_actions_add_up(seed: int, num_states: int, horizon: int, times: int) -> None:
    mdp = made(seed, num_states, horizon)
    repeated = mdp.with_action_repeat(times)
    assert repeated.horizon == -(-horizon // min(times, horizon))
    for sequence in sequences(repeated):
        every = tuple(np.repeat(sequence, times)[:horizon].tolist())
        assert Exact(repeated).sequence_return(sequence) == Exact(mdp).sequence_return(every)


def test_repeats_that_do_not_fit() -> None:
    mdp = TabularMDP([[0, 0]], [[0.0001, 12345.0]], 8)
    with pytest.raises(InvalidTableError, match="positive number of times"):
        mdp.with_action_repeat(0)
    with pytest.raises(InvalidTableError, match="more digits"):
        TabularMDP([[1, 0], [0, 0]], [[16777216.0, 0.0], [1.0, 0.0]], 8).with_action_repeat(2)


def test_what_a_changed_table_says_and_keeps(tmp_path: Path) -> None:
    screens = np.arange(4 * 12, dtype=np.uint8).reshape(4, 2, 2, 3)
    mdp = TabularMDP(
        [[1, 2], [3, -1], [3, -1], [0, 0]],
        np.eye(4)[:, :2],
        4,
        screens=screens,
        screen_mapping=[3, 2, 1, 0],
        states=[b"a", b"bb", b"ccc", b"dddd"],
        metadata={"id": "toy", "verification": {"verified": True}, "suite": "gymnasium"},
    )
    changed = mdp.with_actions([1]).with_horizon(2)
    assert changed.metadata["id"] == "toy+actions1+T2"
    first, second = changed.metadata["changes"]
    assert (first["change"], first["from"], first["fingerprint"]) == ("actions", "toy", mdp.fingerprint())
    assert (second["change"], second["from"]) == ("horizon", "toy+actions1")
    assert "verification" not in changed.metadata
    again = load(save(changed, tmp_path / "changed"))
    assert again.metadata == changed.metadata
    for table in (changed, again):
        assert table.num_states == 2
        assert [table.states[state] for state in range(2)] == [b"a", b"ccc"]
        assert (table.screen(0) == screens[3]).all()
        assert (table.screen(1) == screens[1]).all()


def test_a_changed_table_has_no_environment() -> None:
    changed = TabularMDP([[0, -1]], [[0, 1]], 3, metadata={"id": "freeway_10_fs30", "suite": "atari"}).with_horizon(2)
    with pytest.raises(EfhorizonError, match="made from another one, freeway_10_fs30"):
        table_spec(changed)
    with pytest.raises(EfhorizonError, match="no live environment"):
        tasks([changed], "ppo", backend="sb3")


def test_unfinished_tables() -> None:
    mdp = TabularMDP([[1, 0], [-1, -1]], np.zeros((2, 2)), 3, unexplored=[False, True])
    assert mdp.with_horizon(1).is_complete
    assert not mdp.with_actions([0]).is_complete
    for change in (lambda: mdp.with_potential([1, 2]), lambda: mdp.with_action_repeat(2), mdp.optimal_values):
        with pytest.raises(InvalidTableError, match="unfinished"):
            change()
