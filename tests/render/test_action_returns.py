"""The actions of the deciding state as a page shows them."""

from __future__ import annotations

import json

import numpy as np
from synthetic_study import analysis as made

from efhorizon.render.html.action_returns import action_returns
from efhorizon.study.analysis_record import decoded_analysis


def test_actions_between_which_nothing_differs_are_one() -> None:
    content = made("mdp", "atari", 0, np.random.default_rng(1))
    deciding = decoded_analysis(json.dumps(content), "a.json").deciding
    assert deciding is not None
    names = [action.name for action in deciding.actions]
    assert [action.names for action in action_returns(deciding)] == [(name,) for name in names[:-2]] + [
        tuple(names[-2:])
    ]


def test_an_empty_histogram_is_none() -> None:
    content = made("mdp", "atari", 0, np.random.default_rng(1))
    content["deciding"]["actions"][0]["histogram"] = {"returns": [], "probabilities": []}
    deciding = decoded_analysis(json.dumps(content), "a.json").deciding
    assert deciding is not None
    assert action_returns(deciding)[0].histogram is None
