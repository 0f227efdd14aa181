"""GORP's success in a gridworld: every choice kept, against the forward way that leaves rarely met choices out.

    efhorizon build MiniGrid-ObstructedMaze-1Dl-v0
    python benchmarks/forward_success.py tables/MiniGrid-ObstructedMaze-1Dl-v0 [--k 1] [--m 100] [--left-out 0.002]
    efhorizon build MiniGrid-MultiRoom-N4-S5-DistanceShaped-v1
    python benchmarks/forward_success.py tables/MiniGrid-MultiRoom-N4-S5-DistanceShaped-v1 --m 16

Goal MDPs have a forward way of their own, which needs no distributions of returns. Set-up, optimal values included, and
one evaluation of each, in turns in one process, after a first turn that compiles. The two results must overlap.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from efhorizon import load
from efhorizon.gorp.backward import GreedyChoices
from efhorizon.gorp.decisions import choices
from efhorizon.gorp.forward import ForwardChoices
from efhorizon.gorp.goal import GoalChoices
from efhorizon.gorp.success import Success
from efhorizon.planning.problem import Problem, problem

TURNS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--k", type=int, default=1)
    parser.add_argument("--m", type=int, default=100)
    parser.add_argument("--left-out", type=float, default=0.002)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    mdp = load(options.table)
    kept_seconds, forward_seconds = [], []
    for _ in range(1 + TURNS):
        began = time.perf_counter()
        kept = with_all_choices(problem(mdp), options.k, options.m)
        between = time.perf_counter()
        forward = with_likely_choices(problem(mdp), options.k, options.m, options.left_out)
        kept_seconds.append(between - began)
        forward_seconds.append(time.perf_counter() - between)
    assert forward.low <= kept.high, "the two ways disagree"
    assert kept.low <= forward.high, "the two ways disagree"
    report(kept, forward, min(kept_seconds[1:]), min(forward_seconds[1:]), as_json=options.json)


def with_all_choices(given: Problem, k: int, m: int) -> Success:
    options = choices(given, k)
    return GreedyChoices(options, given.return_distributions(options.group_ends)).success(m)


def with_likely_choices(given: Problem, k: int, m: int, left_out: float) -> Success:
    if given.is_goal_mdp:
        return GoalChoices(given, k).success(m, left_out)
    return ForwardChoices(given, k).success(m, left_out)


def report(kept: Success, forward: Success, kept_seconds: float, forward_seconds: float, *, as_json: bool) -> None:
    if as_json:
        rows = {"kept": (kept_seconds, kept), "forward": (forward_seconds, forward)}
        print(json.dumps({name: [seconds, found.low, found.high] for name, (seconds, found) in rows.items()}))
        return
    print(f"all choices kept  {kept_seconds:8.2f} s   success {kept.low:.6f} to {kept.high:.6f}")
    print(f"forward           {forward_seconds:8.2f} s   success {forward.low:.6f} to {forward.high:.6f}")
    print(f"ratio             {kept_seconds / forward_seconds:8.1f}")


if __name__ == "__main__":
    main()
