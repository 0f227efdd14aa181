"""All optimal actions at once: the policies that are drawn from them are those of one plan each."""

from __future__ import annotations

import numpy as np
import pytest

from efhorizon import TabularMDP, graph
from efhorizon.build.episodes import mixed_episodes
from efhorizon.planning.optimal import optimal_choices, optimal_plan


def random_table(rng: np.random.Generator, num_actions: int, *, forward: bool) -> TabularMDP:
    """With cycles, or with a state's successors behind it."""
    size = int(rng.integers(2, 30))
    transitions = rng.integers(-1, size, size=(size, num_actions))
    if forward:
        transitions = np.where(transitions > np.arange(size)[:, None], transitions, -1)
    rewards = rng.integers(-1, 3, size=(size, num_actions)) / 2
    return TabularMDP(transitions, rewards, horizon=int(rng.integers(1, 40)))


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("num_actions", [1, 3, 8, 9, 16])
def test_every_policy_is_that_of_its_own_plan(forward: bool, num_actions: int, rng: np.random.Generator) -> None:
    for _ in range(10):
        mdp = random_table(rng, num_actions, forward=forward)
        choices, seed = optimal_choices(mdp), int(rng.integers(1000))
        plans = [optimal_plan(mdp), optimal_plan(mdp, np.random.default_rng(seed))]
        ties = np.random.default_rng(seed).integers(num_actions, size=mdp.num_states)
        reached = graph.breadth_first_order(mdp.transitions)[0].tolist()
        for plan, policy in zip(plans, (choices.policy(), choices.policy(ties)), strict=True):
            assert choices.optimal_return == plan.optimal_return
            for state in reached:
                for time in range(mdp.horizon):
                    assert policy(time, state) == plan.action(time, state)


@pytest.mark.parametrize("forward", [True, False])
def test_every_state_comes_after_its_successors(forward: bool, rng: np.random.Generator) -> None:
    """By number where that is an order, else by depth-first search; the longest episode by brute force."""
    num_orders = 0
    for _ in range(60):
        transitions = random_table(rng, 2, forward=forward).transitions
        found = graph.successors_first(transitions)
        reached = set(graph.breadth_first_order(transitions)[0].tolist())
        if found is None:
            assert not forward
            continue
        num_orders += 1
        order, longest = found
        place = {state: i for i, state in enumerate(order.tolist())}
        assert place.keys() == reached
        assert len(order) == len(reached)
        steps: dict[int, int] = {}
        for state in order.tolist():
            following = [after for after in transitions[state].tolist() if after >= 0]
            assert all(place[after] < place[state] for after in following)
            steps[state] = 1 + max((steps[after] for after in following), default=0)
        assert longest == steps[0]
    assert num_orders >= (60 if forward else 3)


@pytest.mark.parametrize("num_actions", [3, 16, 17, 70])
def test_episodes_of_a_verification_are_those_of_one_plan_each(num_actions: int, rng: np.random.Generator) -> None:
    """Also with more actions than there are bits for; and the random stream goes on at the same place."""
    for _ in range(5):
        mdp = random_table(rng, num_actions, forward=False)
        seed = int(rng.integers(1000))
        best, episodes = mixed_episodes(mdp, 8, np.random.default_rng(seed))
        own = np.random.default_rng(seed)
        for i in range(2):
            plan = optimal_plan(mdp, own if i else None)
            assert best == plan.optimal_return
            state, actions = 0, []
            while state >= 0 and len(actions) < mdp.horizon:
                actions.append(plan.action(len(actions), state))
                state = int(mdp.transitions[state, actions[-1]])
            assert episodes[i].actions == tuple(actions)
