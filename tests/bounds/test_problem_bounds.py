"""The paper's bounds on its example MDPs, on random MDPs and on the published figures."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from brute_force import Exact

from efhorizon import TabularMDP, load
from efhorizon.bounds import examples
from efhorizon.bounds.covering_length import covering_length
from efhorizon.bounds.effective_planning_window import effective_planning_window
from efhorizon.bounds.fqi_gorp import fqi_gorp
from efhorizon.bounds.goal_horizon import goal_horizon
from efhorizon.bounds.lower_bound import lower_bound
from efhorizon.bounds.pg_gorp import pg_gorp
from efhorizon.bounds.qvi_solvability import qvi_solvability
from efhorizon.bounds.theorem_horizon import theorem_horizon
from efhorizon.bounds.ucb import ucb
from efhorizon.bounds.worst_case import worst_case
from efhorizon.planning.problem import problem

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "bridge"


@pytest.mark.parametrize("num_actions", [2, 3, 5])
@pytest.mark.parametrize("horizon", [1, 2, 5, 12])
def test_examples_of_figure_2(horizon: int, num_actions: int) -> None:
    sparse, dense, delayed = (
        problem(example(horizon, num_actions))
        for example in (examples.sparse_rewards, examples.dense_rewards, examples.delayed_rewards)
    )
    for given in (sparse, dense, delayed):
        assert qvi_solvability(given).min_k == 1
    # (a): Q^1 = gap = A^-(T-1) and V* = 1 at the first step
    assert theorem_horizon(sparse, 1).episodes == pytest.approx(
        num_actions ** (horizon - 1) * 6 * math.log(2 * horizon * num_actions)
    )
    # (b): Q^1 = 1 + 1/A + ... <= 2, V* = T, gap = Q^1 at the first step
    q = sum(Fraction(1, num_actions**i) for i in range(horizon))
    hardness = max(
        Fraction(horizon - t) / sum(Fraction(1, num_actions**i) for i in range(horizon - t)) for t in range(horizon)
    )
    assert hardness == horizon / q
    episodes = theorem_horizon(dense, 1).episodes
    assert episodes == pytest.approx(float(hardness) * 6 * math.log(2 * horizon * num_actions))
    windows = [effective_planning_window(given) for given in (sparse, dense, delayed)]
    assert [found.window for found in windows] == [horizon, 1, horizon]
    # Theorem D.6: T^2 A^W
    whole = horizon**2 * num_actions**horizon
    assert [found.sample_complexity for found in windows] == [whole, horizon**2 * num_actions, whole]


def test_the_greedy_witness_is_the_closest_mistake_on_the_greedy_path() -> None:
    """The theorem's own gap is that of the start, where both actions are optimal; Figure 2d shows where one is not."""
    transitions = np.array([[1, 2], [-1, -1], [-1, -1]])
    rewards = np.array([[0.0, 0.0], [3.0, 0.0], [2.5, 3.0]])
    bound = theorem_horizon(problem(TabularMDP(transitions, rewards, 2)), 1)
    assert bound.witness is not None
    assert bound.greedy_witness is not None
    # Q^1 of the start: 1.5 and 2.75, gap 1.25, V* = 3; both optimal, so no margin
    assert (bound.witness.time, bound.witness.state) == (1, 2)  # 3 * 3 / 0.5^2 = 36 > 2.75 * 3 / 1.25^2
    assert (bound.greedy_witness.state, bound.greedy_witness.margin) == (2, 0.5)
    assert bound.greedy_horizon == pytest.approx(1 + math.log2(36 * 6 * math.log(2 * 2 * 2)))
    # with a narrow gap at the start, the theorem is decided there, the greedy path as before
    rewards = np.array([[0.0, 0.0], [3.0, 2.25], [2.5, 3.0]])
    bound = theorem_horizon(problem(TabularMDP(transitions, rewards, 2)), 1)
    assert bound.witness is not None
    assert bound.greedy_witness is not None
    assert (bound.witness.time, bound.witness.gap, bound.witness.margin) == (0, 0.125, None)
    assert bound.greedy_witness.state == 2
    assert bound.greedy_horizon == pytest.approx(1 + math.log2(36 * 6 * math.log(2 * 2 * 2)))


def test_the_smallest_gap_decides_where_rewards_are_negative() -> None:
    """Theorem 5.4 says nothing there, and Q V* could be negative or 0; which state decides is known all the same."""
    transitions = np.array([[1, 2], [-1, -1], [-1, -1]])
    rewards = np.array([[-4.0, -4.0], [1.0, -1.0], [-0.75, -0.5]])
    bound = theorem_horizon(problem(TabularMDP(transitions, rewards, 2)), 1)
    assert (bound.m, bound.witness, bound.greedy_witness, bound.greedy_horizon) == (None, None, None, None)
    assert bound.reason is not None
    assert "nonnegative" in bound.reason
    # Q^1 of the start: -4 and -4.625, and only the first is optimal, so state 2 is not met
    assert bound.deciding is not None
    assert (bound.deciding.time, bound.deciding.state, bound.deciding.margin) == (0, 0, 0.625)
    rewards[1] = [1.0, 0.5]
    bound = theorem_horizon(problem(TabularMDP(transitions, rewards, 2)), 1)
    assert bound.deciding is not None
    assert (bound.deciding.time, bound.deciding.state, bound.deciding.margin) == (1, 1, 0.5)
    # no greedy policy meets a mistake: state 1 looks better from the start, and only state 2 can go wrong
    rewards = np.array([[-4.0, -4.0], [1.0, 1.0], [0.25, 1.0]])
    bound = theorem_horizon(problem(TabularMDP(transitions, rewards, 2)), 1)
    assert bound.deciding is not None
    assert (bound.deciding.state, bound.deciding.gap, bound.deciding.margin) == (0, 0.375, None)


def test_where_greedy_policies_fail_no_state_decides() -> None:
    rewards = np.array([[-1.0, -1.0], [3.0, -9.0], [-1.0, -1.0]])
    bound = theorem_horizon(problem(TabularMDP(np.array([[1, 2], [-1, -1], [-1, -1]]), rewards, 2)), 1)
    assert bound.deciding is None
    assert bound.witness is not None
    assert bound.witness.time == 0


def test_orders_of_magnitude_of_section_5_1() -> None:
    """H of order T for (a), of order log T for (b) and (c)."""
    bounds = {
        example: [theorem_horizon(problem(example(T, 2)), 1).effective_horizon for T in (10, 20, 40)]
        for example in (examples.sparse_rewards, examples.dense_rewards, examples.delayed_rewards)
    }
    sparse, dense, delayed = (np.array(values) for values in bounds.values())
    assert np.diff(sparse) == pytest.approx([10, 20], abs=0.5)
    assert np.diff(dense).max() < 1.5  # doubling T adds at most log_2 2, and a little
    assert np.diff(delayed).max() < 2.5
    assert max(dense.max(), delayed.max()) < 20 < sparse[1]


@pytest.mark.parametrize("num_actions", [2, 4])
@pytest.mark.parametrize("horizon", [1, 2, 3, 8])
def test_lemma_a1_needs_all_of_the_horizon(horizon: int, num_actions: int) -> None:
    given = problem(examples.worst_case_qvi(horizon, num_actions))
    result = qvi_solvability(given)
    assert result.min_k == horizon
    assert theorem_horizon(given, 1).m is None or horizon == 1


def test_distracting_reward_of_appendix_d4() -> None:
    given = problem(examples.distracting_reward(8, 3))
    assert effective_planning_window(given).window == 1
    assert qvi_solvability(given).min_k == 1
    assert given.optimal.values.reward() == 8
    assert given.optimal.reached.sum() == 8


@pytest.mark.parametrize(("horizon", "effective_horizon"), [(6, 2), (7, 3), (5, 5), (4, 1)])
def test_lower_bound_family(horizon: int, effective_horizon: int) -> None:
    mdp = examples.lower_bound_family(horizon, 3, effective_horizon=effective_horizon)
    given = problem(mdp, max_k=effective_horizon)
    assert given.optimal.values.reward() == horizon // effective_horizon
    # k = H looks far enough: one rollout a sequence suffices, so the MDP is k-QVI-solvable with a gap of at least 1
    sweep = given.sweep(effective_horizon)
    assert sweep is not None
    assert sweep.solvable
    assert effective_planning_window(given).window == effective_horizon
    bound = lower_bound(horizon, 3, effective_horizon)
    half = math.ceil(3**effective_horizon / 2)
    assert bound.sample_complexity == horizon * (horizon // effective_horizon) * (half - 1)
    assert lower_bound(horizon, 3, effective_horizon + 0.5).effective_horizon == effective_horizon


def test_lower_bound_agrees_with_the_worst_case_at_the_whole_horizon() -> None:
    given = problem(examples.sparse_rewards(7, 3))
    assert worst_case(given).sample_complexity == 7 * math.ceil(3**7 / 2)
    assert worst_case(given).lower == lower_bound(7, 3, 7).sample_complexity


@pytest.mark.parametrize("horizon", [1, 4])
def test_examples_say_what_they_are(horizon: int) -> None:
    for example in examples.EXAMPLES:
        mdp = example(horizon, 3)
        assert mdp.metadata["id"] == f"{example.__name__}_T{horizon}_A3"
        assert (mdp.horizon, mdp.num_actions) == (horizon, 3)


@pytest.mark.parametrize(
    "build",
    [
        lambda: examples.sparse_rewards(0),
        lambda: examples.dense_rewards(3, 1),
        lambda: examples.lower_bound_family(3, effective_horizon=4),
        lambda: examples.lower_bound_family(3, effective_horizon=1, sequence=(0, 1, 2)),
    ],
)
def test_examples_refuse_bad_parameters(build) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(examples.InvalidExampleError):
        build()


@pytest.mark.parametrize("seed", range(60))
def test_goal_mdps_have_k_1_and_theorem_b4_holds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_states, num_actions, horizon = int(rng.integers(1, 6)), int(rng.integers(2, 4)), int(rng.integers(1, 5))
    transitions = rng.integers(num_states, size=(num_states, num_actions))
    rewards = (rng.random(transitions.shape) < 0.15).astype(float)
    transitions[(rewards > 0) | (rng.random(transitions.shape) < 0.1)] = -1
    mdp = TabularMDP(transitions, rewards, horizon)
    given, exact = problem(mdp), Exact(mdp)
    bound = goal_horizon(given)
    if 1.0 not in given.rewards:
        assert not bound.is_goal_mdp
        return
    assert bound.is_goal_mdp
    assert qvi_solvability(given).min_k == 1
    chances = [
        exact.q(1, time, state, action)
        for time, states in enumerate(exact.reachable())
        for state in states
        for action in exact.actions
        if exact.backup(exact.optimal, time, state, action) == 1
    ]
    if not chances:
        assert bound.m == 1
        return
    assert bound.p == pytest.approx(float(min(chances)))
    assert bound.m == math.ceil(math.log(2 * horizon) / float(min(chances)))


def test_what_is_no_goal_mdp() -> None:
    assert goal_horizon(problem(examples.dense_rewards(3))).reason == "not a goal MDP"
    assert goal_horizon(problem(examples.worst_case_qvi(3))).reason == "not a goal MDP"
    goal = examples.sparse_rewards(5, 3)
    assert goal_horizon(problem(goal)).p == pytest.approx(3.0**-4)
    assert goal_horizon(problem(goal, gamma=0.5)).reason == "Theorem B.4 needs a discount of 1, and it is 0.5"
    never = np.tile([1.0, 0.0, 0.0], (5, 1))
    assert goal_horizon(problem(goal, policy=never)).reason == "the exploration policy gives some action no chance"


def test_covering_length_and_ucb() -> None:
    mdp = TabularMDP([[1, 0], [-1, -1]], np.zeros((2, 2)), 3)
    given = problem(mdp)
    # state 1 is met at time 1 or 2, with chances 1/2 and 1/4; its pairs with half of that
    assert covering_length(given).upper == math.ceil(math.log(2 * 2 * 2) / 0.25)
    assert covering_length(given).lower == pytest.approx(math.log(2) / (2 * (0.25 + 0.125)))
    assert covering_length(given).sample_complexity == 3 * 9
    assert ucb(given).sample_complexity == 2 * 2 * 3
    blind = covering_length(problem(mdp, policy=[[0.5, 0.5], [1.0, 0.0]]))
    assert (blind.upper, blind.sample_complexity) == (None, None)
    assert blind.reason == "the exploration policy never takes action 1 in state 1"


def test_states_beyond_the_horizon_do_not_count() -> None:
    mdp = TabularMDP([[1, 1], [2, 2], [-1, -1]], [[0.0, 1.0], [0.0, 0.0], [-1.0, 0.0]], 2)
    assert ucb(problem(mdp)).num_states == 2
    assert problem(mdp).rewards == (0.0, 1.0)


def test_negative_rewards() -> None:
    given = problem(TabularMDP([[0, 0]], [[0.0, -0.5]], 2))
    bound = theorem_horizon(given, 1)
    assert bound.m is None
    assert bound.reason == "Theorem 5.4 needs nonnegative rewards, and there is a reward of -0.5"
    assert pg_gorp(given).sample_complexity is None
    assert fqi_gorp(given).reason == bound.reason
    assert qvi_solvability(given).min_k == 1


def test_pg_and_fqi_gorp() -> None:
    mdp = examples.dense_rewards(4, 2)
    given = problem(mdp)
    bound = theorem_horizon(given, 1)
    assert bound.episodes is not None
    assert pg_gorp(given).sample_complexity == 16 * math.ceil(2 * 2 * bound.episodes)
    fqi = fqi_gorp(given)
    candidates = [theorem_horizon(given, k).episodes * 4 * 2**k for k in (1, 2, 3)]  # type: ignore[operator]
    assert fqi.k == 1 + int(np.argmin(candidates))
    assert fqi.sample_complexity == 16 * math.ceil(min(candidates))
    # where all actions are alike no episodes are needed to compare them, and the other term decides: 10 log(4 T A^k)
    alike = problem(TabularMDP([[0, 0]], [[1.0, 1.0]], 3))
    assert theorem_horizon(alike, 1).episodes == 0
    assert (fqi_gorp(alike).k, fqi_gorp(alike).sample_complexity) == (1, 9 * math.ceil(10 * math.log(4 * 3 * 2)))
    skewed = problem(mdp, policy=np.tile([0.25, 0.75], (4, 1)))
    assert skewed.uniform_ratio == pytest.approx(2.0)
    assert problem(mdp, policy=np.tile([0.0, 1.0], (4, 1))).uniform_ratio == math.inf


def test_what_floats_cannot_order_is_said() -> None:
    """Averages that differ by 4^-60 of their size: neither k = 1 nor any other k is solvable, as far as can be seen.

    Looking all the way ahead needs no averages, so k = T is solvable for certain.
    """
    depth = 60
    transitions = np.full((depth + 1, 4), -1)
    transitions[:-1, 0] = np.arange(1, depth + 1)
    rewards = np.full((depth + 1, 4), 1.0)
    rewards[0] = [0.0, 1.0, 0.0, 0.0]
    rewards[1:depth, 0] = 0.0
    rewards[depth, 0] = 2.0
    given = problem(TabularMDP(transitions, rewards, depth + 1))
    found = qvi_solvability(given)
    assert found.min_k is not None
    assert found.min_k > 1
    assert found.reason == (
        "for k = 1 two Q-values are too close for float64 to order them; "
        f"counted as not solvable, so the least k may be below {found.min_k}"
    )
    assert theorem_horizon(given, 1).reason == "not 1-QVI-solvable as far as float64 can tell"
    certain = problem(examples.worst_case_qvi(3))
    assert theorem_horizon(certain, 1).reason == "not 1-QVI-solvable"
    assert qvi_solvability(certain).reason is None


@pytest.mark.parametrize(
    ("name", "min_k", "epw", "occupancy", "theorem"),
    [
        ("freeway_10_fs30", 1, 6, 5.0805e-05, (2347, 842, 383)),
        ("maze_easy_l0_30_fs1", 1, 1, 5.0805e-05, (27520, 4126, 3367)),
        ("MiniGrid-KeyCorridorS3R1-v0", 1, 15, 3.6251e-07, (2500235750755, 522013258260, 104553426344)),
    ],
)
def test_published_tables(name: str, min_k: int, epw: int, occupancy: float, theorem: tuple[int, ...]) -> None:
    path = REFERENCE / name / "consolidated.npz"
    if not path.exists():
        pytest.skip("the published tables are not here")
    given = problem(load(path))
    assert qvi_solvability(given).min_k == min_k
    assert effective_planning_window(given).window == epw
    assert given.occupancy_minima.state_action == pytest.approx(occupancy, rel=1e-4)
    found = [theorem_horizon(given, k).m for k in (1, 2, 3)]
    assert found == pytest.approx(list(theorem), rel=1e-9)
