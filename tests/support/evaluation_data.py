"""Small studies with known answers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from efhorizon.evaluation.metrics import Sample
from efhorizon.evaluation.records import MdpSummary, PolicySummary
from efhorizon.io.decode import record_of
from efhorizon.study.records import Row

PUBLISHED_HEADER = (
    "mdp_name,origin,type,horizon,num_actions,num_states_consolidated,reward_min,reward_exploration,reward_optimal,"
    "reward_optimal_probability,reward_factor,k_min,epw,min_state_action_occupancy,min_sum_state_action_occupancy,"
    "effective_horizon,effective_horizon_simple,reward_ppo,reward_dqn,reward_gorp,"
    "sample_complexity_ppo,sample_complexity_dqn,sample_complexity_gorp,reward_gorp_k_1"
)
# Six MDPs of six games. With A = 10 and T = 10 the bound T^2 A^H is 10^(2 + H), and T^2 A^W is 10^(2 + W).
PUBLISHED_LINES = (
    "pong_10_fs30,atari,base,10,10,100,0,0.5,1,0.01,1.0,1.0,1,0.001,0.01,1.0,2.0,1,1,1,1000,10000,1000,1",
    "hero_10_fs30,atari,base,10,10,10,0,0.5,1,0.01,25.0,1.0,3,0.001,0.01,2.0,2.0,1,1,1,100000,1000,inf,1",
    "maze_easy_l0_10_fs1,procgen,base,10,10,1000,0,0.5,1,0.01,1.0,1.0,2,0.001,0.01,3.0,3.0,1,1,1,10000,inf,10000,1",
    "MiniGrid-A-v0,minigrid,base,10,10,10000,0,0.5,1,0.01,1.0,2.0,4,0.001,0.01,4.0,5.0,1,1,1,1000000,inf,1000000,1",
    "ninja_easy_l0_10_fs8,procgen,base,10,10,10,0,0.5,1,0.01,1.0,1.0,4,0.001,0.01,2.5,5.0,1,0,1,inf,inf,inf,1",
    "MiniGrid-B-v0,minigrid,base,10,10,10,0,0.5,1,0.01,1.0,3.0,9,0,0.01,inf,inf,0,0,0,inf,100000,inf,1",
)


def published_file(path: Path, lines: tuple[str, ...] = PUBLISHED_LINES) -> Path:
    path.write_text("\n".join((PUBLISHED_HEADER, *lines)) + "\n")
    return path


def sample(predictions: list[float], outcomes: list[float], budget: float = 10.0) -> Sample:
    return Sample(np.array(predictions, float), np.array(outcomes, float), np.full(len(outcomes), budget))


def summary(name: str, **changes: Any) -> MdpSummary:
    """An MDP with nothing special about it."""
    fields: dict[str, Any] = {
        "name": name,
        "origin": "atari",
        "type": "original",
        "family": name,
        "unshaped": None,
        "horizon": 10,
        "num_actions": 10,
        "num_states": 10,
        "reward_min": 0.0,
        "reward_exploration": 0.5,
        "reward_optimal": 1.0,
        "reward_optimal_probability": 0.01,
        "reward_factor": 1.0,
        "k_min": 1,
        "epw": 1,
        "min_state_action_occupancy": 0.001,
        "min_sum_state_action_occupancy": 0.01,
        "effective_horizon": 1.0,
        "effective_horizon_kind": "exact",
        "effective_horizon_simple": 2.0,
        "bounds": {},
        "sample_complexities": {},
        "budgets": {},
        "returns": {},
        "random_play": math.inf,
    }
    return MdpSummary(**(fields | changes))


def solved_or_not(name: str, ppo: float | None, dqn: float | None, **changes: Any) -> MdpSummary:
    """An MDP that algorithms solved after so many timesteps."""
    complexities = {key: value for key, value in (("ppo", ppo), ("dqn", dqn)) if value is not None}
    budgets = dict.fromkeys(complexities, 5e6)
    return summary(name, sample_complexities=complexities, budgets=budgets, **changes)


def clone(noise: float) -> PolicySummary:
    return PolicySummary(f"cloned-{noise}", f"clone of noise {noise}", "cloned", noise)


def variant(base: str, policy: PolicySummary, ppo: float | None, horizon: float, **changes: Any) -> MdpSummary:
    bounds = {"effective_horizon": 2 + horizon, "ucb": 3.0}
    return solved_or_not(
        f"{base}@{policy.label}",
        ppo,
        None,
        **{"type": "exploration", "policy": policy, "effective_horizon": horizon, "bounds": bounds, "family": base}
        | changes,
    )


def graded_study() -> list[MdpSummary]:
    """Two MDPs that random play makes hard (H = 3; 10^5 and 10^6 timesteps) with demonstrators of noise 0.9 and 0.2."""
    bases = {"bounds": {"effective_horizon": 5.0, "ucb": 3.0}, "effective_horizon": 3.0}
    return [
        solved_or_not("a", 1e5, 1e5, family="a", **bases),
        solved_or_not("b", 1e6, None, family="b", **bases),
        solved_or_not("c", 1e4, None, family="c", **bases),  # no policy
        variant("a", clone(0.2), 1e3, 1.0),
        variant("a", clone(0.9), 1e4, 2.0),
        variant("b", clone(0.2), math.inf, 2.5),
        variant("b", clone(0.9), 1e5, 1.5),
        variant("b", PolicySummary("other-levels"), 1e6, 3.0),
    ]


def analysis(name: str, *, horizon_value: float | None = 2.0, **changes: Any) -> dict[str, Any]:
    """An analysis file, of an MDP with T = 10 and A = 10."""
    inner = {
        "id": name,
        "complete": True,
        "num_states": 50,
        "num_actions": 10,
        "horizon": 10,
        "gamma": 1.0,
        "optimal_return": 1.0,
        "exploration_return": 0.25,
        "worst_return": 0.0,
        "optimal_return_probability": 0.125,
        "min_k": 1,
        "epw": 3,
        "min_state_action_occupancy": 0.001,
        "min_sum_state_action_occupancy": 0.01,
        "effective_horizon": {
            "value": horizon_value,
            "k": 1,
            "m": 10,
            "kind": "exact",
            "by_k": {"1": {"theorem_m": 1000}, "2": {"theorem_m": 10}, "3": {"theorem_m": None}},
        },
        "sample_complexity": {
            "worst_case": 10 * 10**10 // 2,
            "ucb": 5000,
            "effective_horizon": None if horizon_value is None else round(100 * 10**horizon_value),
            "goal": None,
            "mine": 700,
        },
        "reasons": {"goal": "not a goal MDP"},
    }
    content: dict[str, Any] = {
        "format": "efhorizon-analysis",
        "format_version": 1,
        "id": name,
        "suite": "minigrid",
        "game": "a game",
        "unshaped": None,
        "shaping": None,
        "reward_factor": 1.0,
        "exploration": "uniform",
        "analysis": inner,
        "titles": {name: f"title of {name}" for name in inner["sample_complexity"]},
        "table": {"num_states": 50, "num_raw_states": None, "fingerprint": "f1", "layers": [1]},
        "deciding": None,
        "provenance": {},
    }
    return content | changes


def row(id_: str, algorithm: str = "ppo", **changes: Any) -> dict[str, Any]:
    """A run row."""
    content: dict[str, Any] = {
        "id": id_,
        "algorithm": algorithm,
        "backend": "table",
        "setting": "rollout128",
        "seed": 0,
        "sample_complexity": 20_000,
        "solved_by": "evaluation",
        "steps": 20_000,
        "best_return": 1.0,
        "final_return": 1.0,
        "optimal_return": 1.0,
        "learning_curve": [[10_000, 0.5, None], [20_000, 1.0, 0.75]]
        if algorithm != "gorp"
        else [[20_000, 1.0, 0.5, 1.0]],
        "wall_seconds": 1.5,
        "hyperparameters": {"rate": 1e-3},
        "protocol": {"max_steps": 5_000_000},
        "provenance": {"table_fingerprint": "f1", "efhorizon": "0.3.0"},
    }
    return content | changes


def row_record(id_: str, algorithm: str = "ppo", **changes: Any) -> Row:
    """That row as a record."""
    return record_of(row(id_, algorithm, **changes), Row, "row")


def unfinished_figures(**changes: Any) -> dict[str, Any]:
    """What the analysis of an unfinished table says."""
    figures = {
        "complete": False,
        "horizon": 10,
        "num_actions": 3,
        "optimal_return": [1.0, 5.0],
        "num_states": [40, None],
        "effective_horizon": {"value": [1.0, 10.0], "k": None, "m": None, "kind": "interval", "by_k": {}},
        "sample_complexity": {"worst_case": 295250, "ucb": [1200, None], "goal": None},
        "reasons": {"goal": "the table is unfinished"},
    }
    return figures | changes


def results_directory(path: Path, analyses: list[dict[str, Any]], rows: list[dict[str, Any]]) -> Path:
    """A results directory with these files."""
    (path / "analyses").mkdir(parents=True)
    (path / "rows").mkdir()
    (path / "results.json").write_text(json.dumps({"format": "efhorizon-results", "format_version": 1}))
    for number, content in enumerate(analyses):
        (path / "analyses" / f"{number}.json").write_text(json.dumps(content))
    for number, content in enumerate(rows):
        (path / "rows" / f"{number}.json").write_text(json.dumps(content))
    return path


INFINITE = math.inf
