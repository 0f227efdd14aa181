"""Changes of a table: brute force on tiny MDPs for each kind, and the claims of the suggestions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from brute_force import Exact
from goal_mdps import random_goal_mdp
from gorp_twin import Twin, tiny_mdp
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_mdps import random_mdp

import efhorizon as ef
from efhorizon import EfhorizonError, TabularMDP, examples
from efhorizon.bounds.quick_horizon import quick_horizon
from efhorizon.planning.problem import problem
from efhorizon.transform.potential import with_progress
from efhorizon.what_if import trials
from efhorizon.what_if.base import Base
from efhorizon.what_if.change import KINDS, Change, Changed
from efhorizon.what_if.exploration import sticky_policy, with_last_action
from efhorizon.what_if.horizons import shortest_optimal
from efhorizon.what_if.kept import Kept, kept
from efhorizon.what_if.trial import VERDICTS
from efhorizon.what_if.trials import MAX_K, Options, changes, what_if

SEEDS = range(4)


def base_of(mdp: TabularMDP) -> Base:
    return Base(problem(mdp, max_k=MAX_K))


def tiny_goal_mdp(seed: int) -> TabularMDP:
    """Five states; one action of one of them reaches the goal."""
    rng = np.random.default_rng(seed)
    transitions = rng.integers(5, size=(5, 2))
    transitions[rng.random((5, 2)) < 0.1] = -1
    rewards = np.zeros((5, 2))
    transitions[4, 1], rewards[4, 1] = -1, 1.0
    return TabularMDP(transitions, rewards, 5)


def tiny_mdps() -> list[TabularMDP]:
    return [tiny_mdp(seed) for seed in SEEDS] + [tiny_goal_mdp(seed) for seed in SEEDS]


def every_change(mdp: TabularMDP) -> list[tuple[Change, Changed]]:
    options = Options(gammas=(0.5,), repeats=(2, 3))
    return [(change, change.make()) for change in changes(base_of(mdp), options)]


def played_in_the_original(mdp: TabularMDP, how: Changed) -> tuple[Fraction, Fraction]:
    """The least and largest return in the original of the changed table's optimal sequences: all A^T of them."""
    original, changed = Exact(mdp), Exact(how.mdp, Fraction(repr(how.gamma)))
    sequences = list(product(range(how.mdp.num_actions), repeat=how.mdp.horizon))
    returns = [changed.sequence_return(sequence) for sequence in sequences]
    found = []
    for sequence, earned in zip(sequences, returns, strict=True):
        if earned == max(returns):
            actions = [action if how.actions is None else how.actions[action] for action in sequence]
            lasted = len(changed.path(sequence))
            whole = [*how.prefix, *(each for action in actions[:lasted] for each in [action] * how.steps_each)]
            found.append(original.sequence_return(tuple(whole[: mdp.horizon])))
    return min(found), max(found)


@pytest.mark.parametrize("mdp", tiny_mdps())
def test_what_is_kept_of_optimal_behaviour_by_brute_force(mdp: TabularMDP) -> None:
    best = Exact(mdp).optimal(0, 0)
    for change, how in every_change(mdp):
        changed = problem(how.mdp, gamma=how.gamma, policy=how.policy, max_k=MAX_K)
        least, largest = played_in_the_original(mdp, how)
        expected = Kept(least == best, largest == best, float(least), float(largest))
        assert kept(problem(mdp), changed, how) == expected, change.title


@pytest.mark.parametrize("mdp", tiny_mdps())
def test_claims_hold_when_the_changed_table_is_analyzed(mdp: TabularMDP) -> None:
    result = what_if(mdp, Options(gammas=(0.5,), repeats=(2, 3)))
    made = {change.title: how for change, how in every_change(mdp)}
    assert {trial.kind for trial in result.trials} <= set(KINDS)
    assert len({trial.kind for trial in result.trials}) >= 6
    for trial in result.trials:
        how, after = made[trial.title], trial.after
        assert after is not None
        again = ef.analyze(how.mdp, gamma=how.gamma, exploration_policy=how.policy, max_k=MAX_K)
        horizon = again.effective_horizon
        assert after.optimal_return == again.optimal_return
        if after.kind == "exact":
            assert (after.effective_horizon, after.k, after.m, "exact") == (
                horizon.value,
                horizon.k,
                horizon.m,
                horizon.kind,
            ), trial.title
            assert after.timesteps == how.steps_each * horizon.sample_complexity
        elif after.effective_horizon is not None and horizon.kind == "exact":
            assert after.effective_horizon >= horizon.value, trial.title


@given(
    seed=st.integers(0, 10**6),
    num_states=st.integers(1, 5),
    horizon=st.integers(1, 4),
    gamma=st.sampled_from(["1", "1/2", "9/10"]),
)
@settings(max_examples=40, deadline=None)
def test_potentials_never_change_optimal_policies(seed: int, num_states: int, horizon: int, gamma: str) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, num_states, 2, horizon)
    phi = rng.integers(-5, 6, size=num_states) / 10
    shaped = mdp.with_potential(phi, gamma=float(Fraction(gamma)))
    before, after = Exact(mdp, Fraction(gamma)), Exact(shaped, Fraction(gamma))

    def optimal(exact: Exact) -> set[tuple[int, ...]]:
        best = exact.optimal(0, 0)
        sequences = product(range(2), repeat=horizon)
        return {sequence for sequence in sequences if exact.sequence_return(sequence) == best}

    assert optimal(after) == optimal(before)
    assert after.optimal(0, 0) == before.optimal(0, 0) - Fraction(str(phi[0]))


@pytest.mark.parametrize("seed", range(6))
def test_gorp_does_the_same_with_a_potential_that_is_zero_at_the_end(seed: int) -> None:
    mdp = tiny_mdp(seed, horizon=3)
    shaped = mdp.with_potential(np.random.default_rng(seed).integers(-4, 5, size=mdp.num_states) / 4)
    for k, m in product((1, 2), (1, 2, 3)):
        assert Twin(shaped).success(k, m) == Twin(mdp).success(k, m)


@pytest.mark.parametrize("seed", SEEDS)
def test_progress_pays_the_potential_of_the_last_state(seed: int) -> None:
    mdp = tiny_mdp(seed)
    phi = np.random.default_rng(seed).integers(-4, 5, size=mdp.num_states) / 4
    before, after = Exact(mdp), Exact(with_progress(mdp, phi))
    for sequence in product(range(2), repeat=mdp.horizon):
        path = before.path(sequence)
        _, last, action = path[-1]
        end = last if mdp.transitions[last, action] < 0 else int(mdp.transitions[last, action])
        gained = Fraction(str(phi[end])) - Fraction(str(phi[0]))
        assert after.sequence_return(sequence) == before.sequence_return(sequence) + gained


@pytest.mark.parametrize("seed", range(12))
def test_subgoals_are_on_every_optimal_episode(seed: int) -> None:
    mdp = tiny_goal_mdp(seed)
    exact = Exact(mdp)
    paths = [
        {state for _, state, _ in exact.path(sequence)}
        for sequence in product(range(2), repeat=mdp.horizon)
        if exact.sequence_return(sequence) == exact.optimal(0, 0)
    ]
    assert set(base_of(mdp).subgoals) == set.intersection(*paths) - {0}


def test_subgoals_of_a_corridor_are_all_its_states() -> None:
    corridor = TabularMDP([[1, 0], [2, 0], [3, 0], [-1, 0]], [[0, 0], [0, 0], [0, 0], [1, 0]], 10)
    base = base_of(corridor)
    assert base.subgoals == (1, 2, 3)
    assert base.distances.tolist() == [4, 3, 2, 1]
    assert base.optimal_episode == ((0, 1, 2, 3), (0, 0, 0, 0))
    assert shortest_optimal(base) == 4


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sticky_policy_repeats_its_last_action(seed: int) -> None:
    """The chance of every episode, against a walk that remembers its last action."""
    mdp = tiny_mdp(seed)
    table, last = with_last_action(mdp)
    policy = sticky_policy(last, mdp.num_actions, 0.75)
    original, unfolded = Exact(mdp), Exact(table)
    for sequence in product(range(2), repeat=mdp.horizon):
        path = unfolded.path(sequence)
        assert [action for _, _, action in path] == [action for _, _, action in original.path(sequence)]
        chance = np.prod([policy[state, action] for _, state, action in path])
        taken = [action for _, _, action in path]
        repeats = [0.875 if now == before else 0.125 for before, now in pairwise(taken)]
        assert chance == pytest.approx(0.5 * np.prod(repeats))


@pytest.mark.parametrize("seed", range(8))
def test_a_quick_horizon_is_never_below_the_exact_one(seed: int) -> None:
    mdp = random_goal_mdp(np.random.default_rng(seed))
    given = problem(mdp, max_k=MAX_K)
    exact = ef.analyze(mdp, max_k=MAX_K).effective_horizon
    for points in (1, 1_000, 100_000, 10_000_000):
        quick = quick_horizon(given, max_points=points, guess=7)
        if quick.kind == "exact":
            assert (quick.value, quick.k, quick.m) == (exact.value, exact.k, exact.m)
        elif quick.value is not None and exact.kind == "exact":
            assert quick.value >= exact.value
    assert quick.kind == exact.kind


def test_the_best_comes_first_and_paper_later() -> None:
    result = ef.what_if(examples.dense_rewards(horizon=6))
    places = [trial.place for trial in result.trials]
    assert places == sorted(places)
    verdicts = [trial.verdict for trial in result.trials]
    assert verdicts == sorted(verdicts, key=VERDICTS.index)
    for trial in result.trials:
        if trial.verdict == "helps":
            assert trial.needs in ("nothing", "a function of the state")
            assert trial.kept is not None
            assert trial.kept.every
            assert trial.factor is not None
            assert trial.factor < 1
            assert not trial.slower
    assert result.as_json() == ef.what_if(examples.dense_rewards(horizon=6)).as_json()


def test_the_table_as_it_is_gets_more_work_than_a_change() -> None:
    """Else nothing could be compared where a quick look at one table finds no m that suffices."""
    mdp, points = examples.sparse_rewards(horizon=8), 4_000
    alone = quick_horizon(problem(mdp, max_k=MAX_K), max_points=points)
    assert (alone.by_k[0].method or "").startswith("Theorem")
    result = what_if(mdp, Options(kinds=("exploration",), max_points=points))
    assert not result.before.is_by_theorem
    assert {trial.title: trial.factor for trial in result.trials}["explore: action 0 2 times as often"] == 0.5


def test_an_action_that_is_needed_cannot_be_left_out() -> None:
    corridor = TabularMDP([[1, 0, 0], [2, 0, 1], [-1, 0, 2]], [[0, 0, 0], [0, 0, 0], [1, 0, 0]], 6)
    tried = {trial.title: trial for trial in ef.what_if(corridor, kinds=["actions"]).trials}
    assert tried["without action 0"].caveats[0] == "its best behaviour earns 0 of 1"
    assert tried["without action 0"].verdict == "cannot be optimal"
    assert "needs the solution" in tried["only action 0"].caveats
    assert tried["without action 1"].kept == Kept(True, True, 1.0, 1.0)


def test_interrupted_it_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, original = [], trials.trial

    def interrupted(*arguments: object, **options: object) -> object:
        if len(tried) == 2:
            raise KeyboardInterrupt
        tried.append(arguments)
        return original(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(trials, "trial", interrupted)
    result = what_if(tiny_goal_mdp(0), Options(kinds=["repeat"]))
    assert len(result.trials) == 2
    assert len(result.left_out) == result.num_planned - 2


def test_a_function_of_the_state() -> None:
    corridor = TabularMDP([[1, 0], [2, 0], [3, 0], [-1, 0]], [[0, 0], [0, 0], [0, 0], [1, 0]], 10)
    result = ef.what_if(corridor, kinds=["potential"], potentials=[lambda state: state], weights=[0.5])
    titles = {trial.title for trial in result.trials}
    assert {"reward for <lambda> times 0.5", "potential <lambda> times 0.5, 0 at the end"} <= titles


def fails(state: int) -> float:
    raise ZeroDivisionError("no")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kinds": ["luck"]}, "no kind of change is called 'luck'; there are potential, horizon"),
        ({"potentials": [fails]}, "fails fails in state 0: ZeroDivisionError: no"),
        ({"potentials": [lambda state: float("nan")]}, "gives nan in state 0"),
        ({"potentials": [lambda state: "far"]}, "ValueError"),
        ({"potentials": [lambda cell: 1.0]}, "takes state, observation, screen"),
        ({"potentials": [lambda screen: 1.0]}, "the table has no screens"),
        ({"potentials": ["nowhere.py:f"]}, "nowhere.py: no such file"),
        ({"potentials": ["f"]}, "FILE.py:NAME"),
        ({"horizons": [50]}, "states beyond it may have been cut off"),
        ({"gammas": [1.5]}, "discount must lie between 0 and 1"),
    ],
)
def test_bad_inputs(options: dict, message: str) -> None:
    layered = TabularMDP([[1, 1], [2, 2], [-1, -1]], [[0, 0], [0, 0], [0, 1]], 3)
    with pytest.raises(EfhorizonError, match=message.replace("(", r"\(")):
        ef.what_if(layered, **options)


def test_an_unfinished_table_is_refused() -> None:
    unfinished = TabularMDP([[0, 1], [-1, -1]], [[0, 0], [0, 0]], 3, unexplored=[False, True])
    with pytest.raises(EfhorizonError, match="unfinished"):
        ef.what_if(unfinished)
