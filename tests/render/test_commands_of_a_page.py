"""The commands at the end of an MDP's page make its numbers again."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
from synthetic_study import Shape, analysis, rows

from efhorizon.io.decode import record_of
from efhorizon.render.html.entries import MdpEntry
from efhorizon.render.html.mdp_practice import commands
from efhorizon.render.learning_curves import settings_of
from efhorizon.study.analysis_record import decoded_analysis
from efhorizon.study.records import Row

NAME = "game0_10_fs30"


def entry(content: dict[str, Any], runs: list[dict[str, Any]]) -> MdpEntry:
    analysis = decoded_analysis(json.dumps(content), NAME)
    return MdpEntry(NAME, "atari", None, analysis, tuple(settings_of(record_of(run, Row, NAME) for run in runs)))


def study() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    rng = np.random.default_rng(1)
    content = analysis(NAME, "atari", 0, rng)
    return content, rows(content, Shape(num_seeds=2), rng)


def test_what_is_the_default_is_not_said() -> None:
    lines = commands(entry(*study()))
    assert f"efhorizon analyze {NAME}" in lines
    assert f"efhorizon train {NAME} --algo gorp" in lines
    assert f"efhorizon train {NAME} --algo ppo --seeds 2 --steps 5000000" in lines


def test_the_k_that_were_tried() -> None:
    content, runs = study()
    del content["analysis"]["effective_horizon"]["by_k"]["3"]
    assert f"efhorizon analyze {NAME} --max-k 2" in commands(entry(content, runs))


def test_a_larger_k_of_gorp() -> None:
    content, runs = study()
    largest = copy.deepcopy(next(row for row in runs if row["setting"] == "k3"))
    largest |= {"setting": "k4", "hyperparameters": {"k": 4}}
    assert f"efhorizon train {NAME} --algo gorp --settings k1,k2,k3,k4" in commands(entry(content, [*runs, largest]))


def test_without_an_analysis() -> None:
    assert f"efhorizon analyze {NAME}" in commands(MdpEntry(NAME, "atari", None, None, ()))
