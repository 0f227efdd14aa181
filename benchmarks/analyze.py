"""How fast planning and the bounds are, and how they grow: both sides of a ratio measured in one run.

    python benchmarks/analyze.py [--only planning|appendix|layered] [--states 1000000 10000000 100000000] [--max-k 1]
                                 [--json]

- planning: V* of 1 million states against value iteration with scipy.sparse, one matrix an action; once on a layered
  table (a state carries a clock, as in Atari), once on a table where every state can be met at every time;
- appendix: Appendix C against one that calls scipy's linprog for each state (`appendix_c.py` beside this file);
- layered:  everything that `analyze` does but the exact effective horizon, on synthetic layered tables with 4 actions
  and T = 100, each in a process of its own: seconds, and the most memory it ever had.

The two sides of a ratio take turns, so that a machine that gets slower or busier meanwhile slows both.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from efhorizon import TabularMDP
from efhorizon.planning.optimal import optimal_plan, optimal_values
from efhorizon.planning.problem import problem
from efhorizon.planning.timeline import timeline

HORIZON, NUM_ACTIONS = 100, 4
REWARD_CHANCE = 0.02  # of a pair to pay at all
TURNS = 3
TARGETS = {"planning": "at least 20", "appendix": "at least 100", "layered": "under 20 GB at 100 million states"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=TARGETS)
    parser.add_argument("--states", type=int, nargs="+", default=[10**6, 10**7, 10**8], help="of the layered tables")
    parser.add_argument("--max-k", type=int, default=1, help="of the layered tables (default: 1)")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)  # a layered table in this process
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(layered_analysis(options.one, options.max_k)))
        return
    results: dict[str, Any] = {}
    if options.only in (None, "planning"):
        results["planning, layered"] = against_scipy(layered_mdp(10**6), in_time)
        results["planning, cyclic"] = against_scipy(cyclic_mdp(10**6, 25), over_all_states)
    if options.only in (None, "appendix"):
        command = [sys.executable, str(Path(__file__).with_name("appendix_c.py")), "--json"]
        results["appendix"] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    if options.only in (None, "layered"):
        for num_states in options.states:
            results[f"layered, {num_states:,} states"] = in_its_own_process(num_states, options.max_k)
    if options.json:
        print(json.dumps(results, indent=1))
        return
    for name, figures in results.items():
        shown = ", ".join(f"{key} {value:,.4g}" for key, value in figures.items())
        print(f"{name:28} {shown}   (wanted: {TARGETS[name.split(',')[0]]})")


def layered_mdp(num_states: int, horizon: int = HORIZON, *, seed: int = 0) -> TabularMDP:
    """Layers that grow fourfold from the start state to an equal share; every state can be reached."""
    rng = np.random.default_rng(seed)
    sizes: list[int] = []
    for time_ in range(horizon):
        share = (num_states - sum(sizes)) // (horizon - time_)
        sizes.append(max(1, min(4**time_, share)))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    transitions = np.full((int(starts[-1]), NUM_ACTIONS), -1, np.int32)
    codes = np.zeros(transitions.shape, np.uint8)
    for time_ in range(horizon):
        rows = slice(int(starts[time_]), int(starts[time_ + 1]))
        codes[rows] = rng.random((sizes[time_], NUM_ACTIONS), np.float32) < REWARD_CHANCE
        if time_ + 1 < horizon:
            following = rng.integers(sizes[time_ + 1], size=(sizes[time_], NUM_ACTIONS), dtype=np.int32)
            own = np.arange(sizes[time_] * NUM_ACTIONS, dtype=np.int64).reshape(-1, NUM_ACTIONS)
            columns = slice(None) if sizes[time_ + 1] > sizes[time_] else slice(0, 1)
            place = own if sizes[time_ + 1] > sizes[time_] else own // NUM_ACTIONS
            following[:, columns] = np.where(place < sizes[time_ + 1], place, following)[:, columns]
            transitions[rows] = following + int(starts[time_ + 1])
    for array in (transitions, codes):
        array.flags.writeable = False
    return TabularMDP(transitions, (codes, np.array([0.0, 1.0])), horizon, metadata={"id": f"layered_{num_states}"})


def cyclic_mdp(num_states: int, horizon: int, *, seed: int = 0) -> TabularMDP:
    """Random transitions: after some ten steps every state can be met at every time."""
    rng = np.random.default_rng(seed)
    transitions = rng.integers(num_states, size=(num_states, NUM_ACTIONS), dtype=np.int32)
    codes = (rng.random(transitions.shape) < REWARD_CHANCE).astype(np.uint8)
    return TabularMDP(transitions, (codes, np.array([0.0, 1.0])), horizon)


def in_time(mdp: TabularMDP) -> float:
    """Over the pairs of time and state that can be reached: what every bound uses, with all optimal actions."""
    return optimal_values(timeline(mdp)).values.reward()


def over_all_states(mdp: TabularMDP) -> float:
    """Over all states at every time, with one optimal action each."""
    return optimal_plan(mdp).optimal_return


def against_scipy(mdp: TabularMDP, ours: Callable[[TabularMDP], float]) -> dict[str, float]:
    """Both compute V* at the start and the optimal actions, from the table on."""
    matrices, rewards = sparse_matrices(mdp)
    ours(mdp)  # compiles
    seconds: dict[str, list[float]] = {"scipy": [], "ours": []}
    values = []
    for _ in range(TURNS):
        for name, function in (
            ("scipy", lambda: scipy_value(matrices, rewards, mdp.horizon)),
            ("ours", lambda: ours(mdp)),
        ):
            took, value = timed(function)
            seconds[name].append(took)
            values.append(value)
    assert len(set(values)) == 1, values
    medians = {name: float(np.median(taken)) for name, taken in seconds.items()}
    return {"scipy s": medians["scipy"], "ours s": medians["ours"], "ratio": medians["scipy"] / medians["ours"]}


def sparse_matrices(mdp: TabularMDP) -> tuple[list[Any], list[np.ndarray]]:
    from scipy import sparse

    matrices = []
    for action in range(mdp.num_actions):
        successors = mdp.transitions[:, action]
        rows = np.flatnonzero(successors >= 0)
        shape = (mdp.num_states, mdp.num_states)
        matrices.append(sparse.csr_matrix((np.ones(len(rows)), (rows, successors[rows])), shape=shape))
    return matrices, [np.ascontiguousarray(column) for column in mdp.rewards.T]


def scipy_value(matrices: list[Any], rewards: list[np.ndarray], horizon: int) -> float:
    """Value iteration over all states, as one writes it with scipy: a product for each action and time."""
    value = np.zeros(len(rewards[0]))
    for _ in range(horizon):
        q_values = np.stack([reward + matrix @ value for matrix, reward in zip(matrices, rewards, strict=True)])
        value = q_values.max(axis=0)
        q_values.argmax(axis=0)
    return float(value[0])


def in_its_own_process(num_states: int, max_k: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", str(num_states), "--max-k", str(max_k)]
    figures: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return figures


def layered_analysis(num_states: int, max_k: int) -> dict[str, float]:
    from efhorizon.bounds.analysis import analysis_of

    analysis_of(problem(layered_mdp(1000), max_k=max_k, exact=False))  # compiles
    mdp = layered_mdp(num_states)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, result = timed(lambda: analysis_of(problem(mdp, max_k=max_k, exact=False)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": seconds,
        "microseconds a state": seconds / mdp.num_states * 1e6,
        "peak GB": peak * 1024 / 1e9,
        "table GB": before * 1024 / 1e9,
        "optimal return": result.optimal_return,
        "epw": result.effective_planning_window.window or 0,
        "min k": result.solvability.min_k or 0,
        "H": result.effective_horizon.value or float("nan"),
    }


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


if __name__ == "__main__":
    main()
