"""Sentences about one MDP."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from evaluation_data import unfinished_figures
from synthetic_study import analysis as made

from efhorizon.render import numbers
from efhorizon.render.html.explanations import gap, horizon_text, ties, undecided, why_hard, witness
from efhorizon.study.analysis_record import AnyAnalysis, decoded_analysis


@pytest.fixture
def content() -> dict[str, Any]:
    """Freeway, the first ten steps, with its true figures."""
    content = made("freeway_10_fs30", "atari", 0, np.random.default_rng(1))
    content["analysis"] |= {
        "num_actions": 3,
        "horizon": 10,
        "optimal_return": 1.0,
        "worst_return": 0.0,
        "optimal_return_probability": 0.009026,
        "min_k": 1,
        "epw": 6,
        "min_state_action_occupancy": 5.080526e-05,
        "covering_length": 139257,
        "covering_length_lower": 6821.6,
        "sample_complexity": {"effective_horizon": 5400, "ucb": 5910, "goal": None, "mine": 3},
        "reasons": {"goal": "not a goal MDP"},
    }
    content["analysis"]["effective_horizon"] |= {"value": 3.630929753571457, "k": 1, "m": 18}
    content["analysis"]["effective_horizon"]["by_k"]["1"] |= {"exact_m": 18, "upper_m": 18, "method": "exact"}
    content["deciding"]["actions"] = [
        {"action": 0, "name": "NOOP", "q": 0.00442, "optimal_q": 1.0, "is_optimal": True, "histogram": None},
        {"action": 1, "name": "UP", "q": 0.018239, "optimal_q": 1.0, "is_optimal": True, "histogram": None},
        {"action": 2, "name": "DOWN", "q": 0.00442, "optimal_q": 1.0, "is_optimal": True, "histogram": None},
    ]
    return content


def read(content: dict[str, Any]) -> AnyAnalysis:
    return decoded_analysis(json.dumps(content), "freeway.json")


def test_why_freeway_is_as_hard_as_it_is(content: dict[str, Any]) -> None:
    verdict, planning, episodes, chance = why_hard(read(content))
    assert verdict == (
        "The effective horizon is 3.63 of 10: GORP with k = 1 and m = 18 finds an optimal policy in 5,400 timesteps."
    )
    assert planning.startswith("Acting greedily on the values of random play is optimal")
    assert gap(read(content)) == (
        "In this state “UP” is worth 0.0182 under random play, compared with 0.00442 for "
        "“NOOP, DOWN”. Every action is still optimal there: Theorem 5.4 counts the gap, but a wrong choice costs "
        "nothing."
    )
    assert episodes == (
        "Averaging 18 episodes for each action is enough for GORP to get every choice right at least half the time."
    )
    assert chance == "A random episode is optimal with probability 0.00903."


def test_a_gap_too_small_for_three_digits(content: dict[str, Any]) -> None:
    actions = content["deciding"]["actions"]
    actions[0] |= {"q": 0.0014800, "is_optimal": False}
    actions[1]["q"] = 0.0014803
    actions[2]["q"] = 0.0
    said = gap(read(content))
    assert said.endswith("“UP” is worth 0.00148 under random play, only 3×10⁻⁷ more than “NOOP”.")  # noqa: RUF001


def test_a_harmless_state_where_theorem_5_4_says_nothing(content: dict[str, Any]) -> None:
    for entry in content["analysis"]["effective_horizon"]["by_k"].values():
        entry |= {"theorem_m": None, "theorem_reason": "Theorem 5.4 needs nonnegative rewards"}
    said = gap(read(content))
    assert said.endswith("every action is still optimal there, so a wrong choice costs nothing.")
    assert "Theorem" not in said


def test_what_an_action_is_worth_with_planning(content: dict[str, Any]) -> None:
    for k, play in ((2, "if the best action follows"), (3, "if the 2 best actions follow")):
        content["deciding"]["k"] = k
        said = gap(read(content))
        assert f"“UP” is worth 0.0182 {play} and random play after that, compared with 0.00442 for" in said


def test_one_episode(content: dict[str, Any]) -> None:
    content["analysis"]["effective_horizon"] |= {"k": 3, "m": 1}
    assert any(
        sentence.startswith("A single episode for each sequence of 3 actions is enough")
        for sentence in why_hard(read(content))
    )


def test_an_upper_bound_is_called_one(content: dict[str, Any]) -> None:
    content["analysis"]["effective_horizon"] |= {"kind": "upper"}
    content["analysis"]["sample_complexity"]["effective_horizon"] = 6 * 10**6
    content["analysis"]["min_k"] = 2
    verdict, planning, *_ = why_hard(read(content))
    assert "is at most 3.63" in verdict
    assert f"in {numbers.steps(6 * 10**6)} timesteps" in verdict
    assert "beyond" not in verdict, "whether deep RL learns it is the forecast's to say"
    assert "takes k = 2 steps of planning" in planning
    assert horizon_text(read(content).figures) == "≤ 3.63"


def test_no_bound_at_all(content: dict[str, Any]) -> None:
    content["analysis"]["effective_horizon"] |= {"value": None, "k": None, "m": None, "kind": None}
    content["analysis"]["sample_complexity"]["effective_horizon"] = None
    content["analysis"]["reasons"]["effective_horizon"] = "not 1-QVI-solvable"
    assert why_hard(read(content))[0] == "The effective horizon is unknown: not 1-QVI-solvable."
    assert horizon_text(read(content).figures) == "unknown"


def test_nothing_to_learn(content: dict[str, Any]) -> None:
    content["analysis"]["worst_return"] = 1.0
    assert why_hard(read(content)) == ["There is nothing to learn: every action sequence earns the same."]


def test_all_actions_alike_say_nothing_of_a_gap(content: dict[str, Any]) -> None:
    for action in content["deciding"]["actions"]:
        action["q"] = 0.5
    assert gap(read(content)) == ""


def test_unfinished(content: dict[str, Any]) -> None:
    content["analysis"] = unfinished_figures()
    (sentence,) = why_hard(read(content))
    assert "interval" in sentence


def test_witnesses(content: dict[str, Any]) -> None:
    figures = read(content).figures
    assert witness("ucb", figures) == "197 states can be reached before the horizon, with 3 actions each"
    assert witness("worst_case", figures) == "tries half of all 3¹⁰ action sequences"
    assert witness("goal", figures) == "not a goal MDP"
    assert witness("epw", figures).startswith("planning 6 steps ahead")
    assert "between 6,822 and 139,257 episodes" in witness("covering_length", figures)
    assert witness("effective_horizon", figures) == (
        "k = 1, m = 18; GORP's first mistake is likeliest in state 9 at time 3 (probability 0.22)"
    )
    assert witness("mine", figures) == ""


def test_why_no_state_is_named(content: dict[str, Any]) -> None:
    reason = "Theorem 5.4 needs nonnegative rewards, and there is a reward of -0.2"
    given = content["analysis"]
    given |= {"theorem_states": {}}
    assert undecided(read(content).figures) == "There is no deciding state: no gap between actions limits this MDP."
    for entry in given["effective_horizon"]["by_k"].values():
        entry |= {"theorem_m": None, "theorem_reason": reason}
    assert undecided(read(content).figures) == f"There is no deciding state: {reason}."
    assert witness("effective_horizon_simple", read(content).figures) == reason


def test_the_rule_for_ties_is_named(content: dict[str, Any]) -> None:
    assert ties(read(content).figures) == "Exact figures hold with ties drawn at random."
    content["analysis"]["exact_by_ties"] = {
        "lowest": {
            "value": 4.0959,
            "k": 1,
            "m": 30,
            "kind": "upper",
            "exact_m": {"1": 30},
            "reason": "k = 4 may be better",
        },
        "adversarial": {"reason": "not affordable"},
    }
    assert ties(read(content).figures) == (
        "Exact figures hold with ties drawn at random. If ties go to the lowest index, H ≤ 4.10 (k = 1, m = 30) "
        "(k = 4 may be better); against GORP, unknown (not affordable)."
    )
