"""Made-up studies for the report: any number of MDPs with analyses, run rows, learning curves and pictures."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from efhorizon.io.decode import plain
from efhorizon.io.png import write_png
from efhorizon.study.records import ResultsMarker

HOSTILE = "<script>alert(1)</script> \"x\" 'y' ../../etc/passwd é\N{SNOWMAN}"  # a name that means ill
BUDGET = 5_000_000
INTERVAL = 10_000
TITLES = {
    "worst_case": "worst case (Theorem 2.1)",
    "ucb": "UCB, every pair visited (Theorem D.1)",
    "covering_length": "covering length (Lemma D.4)",
    "epw": "effective planning window (Theorem D.6)",
    "effective_horizon": "effective horizon, GORP (Lemma 5.3)",
    "goal": "goal MDP (Theorem B.4)",
    "pg_gorp": "PG-GORP (Theorem B.1)",
    "fqi_gorp": "FQI-GORP (Theorem B.2)",
}
SETTINGS = {"ppo": ("rollout128", "rollout1280"), "dqn": ("exploration0.1", "exploration1"), "gorp": ("k1", "k2", "k3")}
SUITES = ("atari", "procgen", "minigrid")
_ACTIONS = ("NOOP", "UP", "DOWN", "LEFT", "RIGHT", "FIRE", "UPFIRE", "DOWNFIRE")


@dataclass(frozen=True)
class Shape:
    """How large a study is."""

    num_mdps: int = 12
    num_seeds: int = 3
    num_points: int = 40  # of a learning curve
    algorithms: tuple[str, ...] = ("ppo", "dqn", "gorp")
    with_pictures: bool = True
    names: Sequence[str] = ()  # of the first MDPs, in place of made-up ones


def write_study(folder: Path, shape: Shape | None = None) -> Path:
    """A results directory."""
    shape = shape or Shape()
    rng = np.random.default_rng(7)
    for name in ("analyses", "rows", "pictures"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(plain(ResultsMarker())))
    for number in range(shape.num_mdps):
        suite = SUITES[number % len(SUITES)]
        name = shape.names[number] if number < len(shape.names) else mdp_name(suite, number)
        content = analysis(name, suite, number, rng, with_pictures=shape.with_pictures)
        (folder / "analyses" / f"{number}.json").write_text(json.dumps(content))
        if shape.with_pictures:
            write_pictures(folder, content)
        for row in rows(content, shape, rng):
            stem = f"{number}__{row['algorithm']}__{row['setting']}__{row['seed']}"
            (folder / "rows" / f"{stem}.json").write_text(json.dumps(row))
    return folder


def mdp_name(suite: str, number: int) -> str:
    return {"atari": f"game{number}_10_fs30", "procgen": f"maze_easy_l{number}_30_fs1"}.get(
        suite, f"MiniGrid-Room{number}-v0"
    )


def analysis(
    name: str, suite: str, number: int, rng: np.random.Generator, *, with_pictures: bool = True
) -> dict[str, Any]:
    """An analysis file. Its figures agree with each other as those of a real one do."""
    num_actions, horizon = int(rng.integers(3, 7)), int(rng.integers(8, 60))
    num_states = int(10 ** rng.uniform(2, 5.5))
    k = int(rng.choice([1, 1, 1, 2, 3]))
    m = max(1, int(10 ** rng.uniform(0, 3.5)))
    value = k + math.log(m) / math.log(num_actions)
    window = min(horizon, math.ceil(value) + int(rng.integers(0, 6)))
    is_solvable = rng.random() < 0.9
    rarest = 10 ** rng.uniform(-6, -3)
    covering = math.ceil(math.log(2 * num_states * num_actions) / rarest)
    goal = rng.random() < 0.4
    stem = f"pictures/{number}"
    layers = [max(1, min(num_states, int(1.6 ** min(t, 24)))) for t in range(horizon)]
    laws = _laws(num_actions, rng, is_goal=goal)
    by_k = {
        str(each): {
            "exact_m": max(1, m // num_actions ** (each - k)) if each >= k else None,
            "upper_m": max(1, m // num_actions ** (each - k)) if each >= k else None,
            "theorem_m": 40 * m if each >= k else None,
            "method": "exact" if each >= k else None,
            "exact_reason": None if each >= k else f"not {each}-QVI-solvable",
            "upper_reason": None if each >= k else f"not {each}-QVI-solvable",
            "theorem_reason": None if each >= k else f"not {each}-QVI-solvable",
        }
        for each in (1, 2, 3)
    }
    return {
        "format": "efhorizon-analysis",
        "format_version": 1,
        "id": name,
        "suite": suite,
        "game": f"{suite}-game-{number // 2}",
        "unshaped": None,
        "shaping": None,
        "reward_factor": 1.0,
        "exploration": "uniform",
        "analysis": {
            "id": name,
            "complete": True,
            "num_states": num_states,
            "num_actions": num_actions,
            "horizon": horizon,
            "gamma": 1.0,
            "optimal_return": 10.0,
            "exploration_return": 0.4,
            "worst_return": 0.0,
            "optimal_return_probability": 10 ** rng.uniform(-9, -1),
            "min_k": k if is_solvable else None,
            "epw": window,
            "min_state_occupancy": rarest * num_actions,
            "min_sum_state_occupancy": rarest * num_actions,
            "min_state_action_occupancy": rarest,
            "min_sum_state_action_occupancy": rarest,
            "covering_length": covering,
            "covering_length_lower": math.log(2) / (2 * rarest),
            "effective_horizon": {"value": value, "k": k, "m": m, "kind": "exact", "by_k": by_k},
            "sample_complexity": {
                "worst_case": horizon * -(-(num_actions**horizon) // 2),
                "ucb": num_states * num_actions * horizon,
                "covering_length": horizon * covering,
                "epw": horizon**2 * num_actions**window,
                "effective_horizon": horizon**2 * num_actions**k * m,
                "goal": horizon**2 * num_actions * 50 * m if goal else None,
                "pg_gorp": 80 * horizon**2 * num_actions * m,
                "fqi_gorp": 160 * horizon**2 * num_actions * m,
            },
            "goal_mdp": {"is_goal_mdp": goal, "p": 1e-4 if goal else None, "effective_horizon": None},
            "lower_bound": 100,
            "deciding_state": {
                "time": 2,
                "state": 5,
                "q_values": [law["q"] for law in laws],
                "optimal_q_values": [law["optimal_q"] for law in laws],
                "optimal_value": 10.0,
                "gap": laws[0]["q"] - laws[1]["q"],
            },
            "theorem_states": {"1": {"time": 2, "state": 5, "gap": laws[0]["q"] - laws[1]["q"]}},
            "most_failures": {"time": 3, "state": 9, "failure_probability": 0.22},
            "reasons": {} if goal else {"goal": "not a goal MDP"},
        },
        "titles": TITLES,
        "table": {
            "num_states": num_states,
            "num_raw_states": 2 * num_states,
            "fingerprint": f"{number:064x}",
            "layers": layers,
            "frameskip": 30 if suite == "atari" else None,
            "verification": {"episodes": 20, "steps": 20 * horizon, "verified": True},
        },
        "deciding": {
            "time": 2,
            "state": 5,
            "picture": f"{stem}-deciding.png" if with_pictures else None,
            "actions": laws,
        },
        "start_picture": f"{stem}-start.png" if with_pictures else None,
        "episode": {
            "picture": f"{stem}-episode.png",
            "frames": 9,
            "columns": 3,
            "width": 64,
            "height": 64,
            "actions": ["UP", "RIGHT"] * 4,
            "rewards": [0.0] * 7 + [10.0],
        }
        if with_pictures
        else None,
        "seconds": {"build": 12.5, "verify": 2.0, "analyze": 0.8},
        "provenance": {"efhorizon": "0.3.0", "packages": {"ale-py": "0.12.1"}},
    }


def _laws(num_actions: int, rng: np.random.Generator, *, is_goal: bool) -> list[dict[str, Any]]:
    """The actions of the deciding state; the last two do the same."""
    laws = []
    for action in range(num_actions):
        same_as = min(action, num_actions - 2)
        if is_goal:
            chance = 1.4e-4 / (1 + same_as)
            returns, probabilities = [0.0, 10.0], [1 - chance, chance]
        else:
            centre = 4.0 - 0.6 * same_as
            returns = [float(value) for value in range(11)]
            weights = np.exp(-0.5 * ((np.arange(11) - centre) / 1.8) ** 2)
            probabilities = (weights / weights.sum()).tolist()
        laws.append(
            {
                "action": action,
                "name": _ACTIONS[action],
                "q": float(np.dot(returns, probabilities)),
                "optimal_q": 10.0 if action == 0 else 7.0,
                "is_optimal": action == 0,
                "histogram": {"returns": returns, "probabilities": probabilities},
            }
        )
    return laws


def write_pictures(folder: Path, content: dict[str, Any]) -> None:
    """A start screen, a deciding state and a sprite sheet: a square that walks over a ground."""
    episode = content["episode"]
    width, columns, frames = episode["width"], episode["columns"], episode["frames"]
    sheet = np.zeros((width * math.ceil(frames / columns), width * columns, 3), np.uint8)
    for frame in range(frames):
        top, left = width * (frame // columns), width * (frame % columns)
        sheet[top : top + width, left : left + width] = _screen(width, frame)
    write_png(folder / content["start_picture"], _screen(width, 0))
    write_png(folder / content["deciding"]["picture"], _screen(width, 2))
    write_png(folder / episode["picture"], sheet)


def _screen(size: int, frame: int) -> np.ndarray:
    screen = np.full((size, size, 3), (40, 60, 90), np.uint8)
    screen[size - 14 :] = (120, 90, 60)
    left = 4 + frame * 5
    screen[size - 22 : size - 14, left : left + 8] = (240, 200, 60)
    return screen


def rows(content: dict[str, Any], shape: Shape, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Runs whose sample complexity goes with the effective horizon, more or less."""
    log10 = math.log10(content["analysis"]["sample_complexity"]["effective_horizon"])
    made = []
    for algorithm in shape.algorithms:
        for setting in SETTINGS[algorithm]:
            for seed in range(1 if algorithm == "gorp" else shape.num_seeds):
                needed = 10 ** (0.6 * log10 + 2.2 + rng.normal(0, 0.35))
                made.append(_row(content, algorithm, setting, seed, needed, shape.num_points, rng))
    return made


def _row(
    content: dict[str, Any],
    algorithm: str,
    setting: str,
    seed: int,
    needed: float,
    num_points: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    optimal, start = content["analysis"]["optimal_return"], content["analysis"]["exploration_return"]
    is_solved = needed <= BUDGET
    end = max(INTERVAL, math.ceil(min(needed, BUDGET) / INTERVAL) * INTERVAL)
    steps = np.unique(np.linspace(INTERVAL, end, num_points).round(-4).astype(int)) if num_points < 500 else None
    if steps is None:
        steps = np.arange(1, num_points + 1) * (BUDGET // num_points)
    ceiling = optimal if is_solved else 0.6 * optimal
    learnt = np.clip(
        start + (ceiling - start) * (steps / end) ** 0.7 + rng.normal(0, 0.5, len(steps)), 0, optimal
    ).round()
    if is_solved:
        learnt[-1] = optimal
    if algorithm == "gorp":
        curve = [
            [int(s), float(r), float(max(0, r - 1)), float(min(optimal, r + 1))]
            for s, r in zip(steps, learnt, strict=True)
        ]
    else:
        curve = [[int(s), float(r), float(r) * 0.8] for s, r in zip(steps, learnt, strict=True)]
    return {
        "id": content["id"],
        "algorithm": algorithm,
        "backend": "table",
        "setting": setting,
        "seed": seed,
        "sample_complexity": end if is_solved else None,
        "solved_by": "evaluation" if is_solved else None,
        "steps": end,
        "best_return": float(learnt.max()),
        "final_return": float(learnt[-1]),
        "optimal_return": optimal,
        "learning_curve": curve,
        "wall_seconds": 12.0,
        "hyperparameters": {"k": int(setting[1:])} if algorithm == "gorp" else {"gamma": 1.0},
        "protocol": {"max_steps": BUDGET, "evaluation_interval": INTERVAL, "window": 100},
        "provenance": {"table_fingerprint": content["table"]["fingerprint"], "efhorizon": "0.3.0"},
    }
