"""Merging rules against slow twins that follow their definitions word by word."""

from __future__ import annotations

import numpy as np
import pytest
from toy_mdps import random_mdp

from efhorizon import TabularMDP
from efhorizon.build.consolidate import classes, coarsest_classes, paper_classes, quotient


def slow_paper_partition(mdp: TabularMDP, screens: np.ndarray) -> set[frozenset[int]]:
    """Merge one pair at a time until no two classes have the same screen, rewards and next classes."""
    class_of = list(range(mdp.num_states))

    def row(state: int) -> tuple[object, ...]:
        following = tuple(-1 if s < 0 else class_of[s] for s in mdp.transitions[state])
        return (int(screens[state]), tuple(mdp.reward_codes[state].tolist()), following)

    merged = True
    while merged:
        merged = False
        for one in range(mdp.num_states):
            for other in range(one):
                if class_of[one] != class_of[other] and row(one) == row(other):
                    old, new = class_of[one], class_of[other]
                    class_of = [new if c == old else c for c in class_of]
                    merged = True
    return partition(class_of)


def slow_coarsest_partition(mdp: TabularMDP, screens: np.ndarray) -> set[frozenset[int]]:
    """Two states are apart if some action sequence shows it: a table of distinguishable pairs, filled until stable."""
    size = mdp.num_states
    apart = np.zeros((size, size), bool)
    for one in range(size):
        for other in range(size):
            differ = (mdp.transitions[one] < 0) != (mdp.transitions[other] < 0)
            differ |= mdp.reward_codes[one] != mdp.reward_codes[other]
            apart[one, other] = differ.any() or screens[one] != screens[other]
    changed = True
    while changed:
        changed = False
        for one in range(size):
            for other in range(size):
                if not apart[one, other]:
                    pairs = zip(mdp.transitions[one], mdp.transitions[other], strict=True)
                    if any(s >= 0 and apart[s, t] for s, t in pairs):
                        apart[one, other] = changed = True
    return {frozenset(np.flatnonzero(~apart[state]).tolist()) for state in range(size)}


def partition(class_of: object) -> set[frozenset[int]]:
    labels = np.asarray(class_of)
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


@pytest.mark.parametrize("seed", range(30))
def test_rules_against_their_definitions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, int(rng.integers(2, 25)), 2, 10, end_probability=float(rng.choice([0.1, 0.5, 0.9])))
    few = TabularMDP(mdp.transitions, (mdp.rewards > 0.5).astype(float), 10)  # few distinct rewards: more merges
    screens = rng.integers(rng.choice([1, 2, 5]), size=mdp.num_states).astype(np.int32)
    paper = paper_classes(few.transitions, few.reward_codes, screens)
    coarsest = coarsest_classes(few.transitions, few.reward_codes, screens)
    assert partition(paper) == slow_paper_partition(few, screens)
    assert partition(coarsest) == slow_coarsest_partition(few, screens)


def test_mirrored_cycles_merge_only_by_refinement() -> None:
    # from the start two loops of one state each, alike in everything
    transitions = np.array([[1, 2], [1, 1], [2, 2]], np.int32)
    codes = np.zeros((3, 2), np.uint8)
    screens = np.array([0, 1, 1], np.int32)
    assert classes(transitions, codes, screens, "paper").tolist() == [0, 1, 2]
    assert classes(transitions, codes, screens, "coarsest").tolist() == [0, 1, 1]
    assert classes(transitions, codes, None, "coarsest").tolist() == [0, 0, 0]


def test_screens_keep_states_apart_unless_ignored() -> None:
    transitions = np.array([[1, 2], [-1, -1], [-1, -1]], np.int32)
    codes = np.zeros((3, 2), np.uint8)
    assert classes(transitions, codes, np.array([0, 1, 2], np.int32), "paper").tolist() == [0, 1, 2]
    assert classes(transitions, codes, None, "paper").tolist() == [0, 1, 1]
    assert classes(transitions, codes, None, "none").tolist() == [0, 1, 2]


def test_states_that_cannot_be_reached_have_no_class() -> None:
    transitions = np.array([[1, 1], [-1, 0], [0, 1]], np.int32)
    assert classes(transitions, np.zeros((3, 2), np.uint8), None, "none").tolist() == [0, 1, -1]


@pytest.mark.parametrize("rule", ["paper", "coarsest"])
def test_every_action_sequence_pays_the_same_before_and_after(rule: str, rng: np.random.Generator) -> None:
    mdp = random_mdp(rng, 60, 3, 8, end_probability=0.5)
    class_of = classes(mdp.transitions, mdp.reward_codes, None, rule)  # type: ignore[arg-type]
    between, first = quotient(mdp.transitions, class_of)
    merged = TabularMDP(between, mdp.rewards[first], 8)
    assert merged.num_states < 60
    for _ in range(300):
        actions = rng.integers(3, size=8)
        assert rewards_along(mdp, actions) == rewards_along(merged, actions)


def rewards_along(mdp: TabularMDP, actions: np.ndarray) -> list[float]:
    rewards, state = [], 0
    for action in actions:
        rewards.append(float(mdp.rewards[state, action]))
        state = int(mdp.transitions[state, action])
        if state < 0:
            break
    return rewards
