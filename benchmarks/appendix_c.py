"""Appendix C here against an implementation that calls scipy's linprog for each state: one run, both sides.

    python benchmarks/appendix_c.py [--size 6] [--horizon 30] [--m 64] [--json]

One evaluation of the failure bound at one m, on a grid in which one corner pays 1 and ends the episode. Both sides get
the same choices and moments, and give ties to the worst action. The other side does what Appendix C says, state by
state: binomial distribution functions at N = 100 quantiles of each action (scipy.special), then a linear program
(scipy.optimize.linprog). Its bound is the larger one, because ours sums over all values instead of 100 quantiles.
Also the linear programs alone. The two sides take turns; compilation is not counted.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import bdtr

from efhorizon import TabularMDP
from efhorizon.bounds.appendix_c import failure as kernels
from efhorizon.bounds.appendix_c.failure_bound import FailureBound
from efhorizon.gorp.decisions import Choices, choices
from efhorizon.planning.moments import ReturnMoments
from efhorizon.planning.problem import problem

N = 100
TURNS = 3
WANTED = 100

Box = tuple[NDArray[np.float64], NDArray[np.float64]]


def grid(size: int, horizon: int) -> TabularMDP:
    """A walk on a square with 4 actions; to enter the far corner pays 1 and ends the episode."""
    places = np.arange(size * size).reshape(size, size)
    rows, columns = np.divmod(np.arange(size * size), size)
    moves = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    following = [places[np.clip(rows + i, 0, size - 1), np.clip(columns + j, 0, size - 1)] for i, j in moves]
    transitions = np.stack(following, axis=1)
    pays = transitions == size * size - 1
    return TabularMDP(np.where(pays, -1, transitions), pays.astype(float), horizon)


def binomial_boxes(options: Choices, moments: ReturnMoments, m: int) -> list[Box]:
    """Bounds on the chance of each action, by sums over the quantiles of each action's own mean."""
    boxes = []
    for choice in range(options.num_choices):
        arms = slice(int(options.arm_starts[choice]), int(options.arm_starts[choice + 1]))
        groups = options.arm_groups[arms]
        means = np.empty(options.following.shape[1])
        means[options.arm_actions[arms]] = options.group_prefixes[groups] + moments.mean[groups]
        lower, upper = np.zeros((2, len(means)))
        for action, p in enumerate(means):
            values = np.arange(m + 1)
            places = np.searchsorted(bdtr(values, m, p), np.arange(1, N) / N)
            edges = np.unique(np.concatenate([[-1], places, [m]]))
            own = np.diff(np.where(edges < 0, 0.0, bdtr(np.maximum(edges, 0), m, p)))
            others = np.delete(means, action)[:, None]
            within = np.where(edges < 0, 0.0, bdtr(np.maximum(edges, 0), m, others)).prod(axis=0)
            lower[action], upper[action] = own @ within[:-1], own @ within[1:]
        boxes.append((np.maximum(lower - 1e-9, 0), np.minimum(upper + 1e-9, 1)))
    return boxes


def linear_programs(options: Choices, boxes: list[Box]) -> NDArray[np.float64]:
    failure = np.zeros(options.num_choices)
    for choice in reversed(range(options.num_choices)):
        following = options.following[choice]
        costs = np.where(following == -2, 1.0, np.where(following >= 0, failure[following], 0.0))
        bounds = list(zip(*boxes[choice], strict=True))
        failure[choice] = -linprog(-costs, A_eq=np.ones((1, len(costs))), b_eq=[1.0], bounds=bounds).fun
    return failure


def knapsacks(options: Choices, boxes: list[Box]) -> NDArray[np.float64]:
    num_choices, num_actions = options.following.shape
    lower, upper = np.zeros((2, num_choices, kernels.NUM_METHODS, num_actions))
    lower[:, 0], upper[:, 0] = (np.array(side) for side in zip(*boxes, strict=True))
    cap = np.full((num_choices, kernels.NUM_METHODS), 2.0)
    cap[:, 0] = 1.0
    failure, used = np.zeros(num_choices), np.zeros(num_choices, np.int64)
    chances = np.zeros((num_choices, num_actions))
    bounds = kernels.ChanceBounds(lower, upper, cap)
    kernels.failure_recursion(0, options.following, bounds, failure, used, chances)
    return failure


def measured(size: int, horizon: int, m: int) -> dict[str, float]:
    given = problem(grid(size, horizon))
    options = choices(given, 1)
    moments = given.return_moments(options.group_ends)
    failure_bound = FailureBound(options, moments, uniform_ties=False)
    boxes = binomial_boxes(options, moments, m)
    failure_bound(m)
    knapsacks(options, boxes)
    seconds = dict.fromkeys(("ours", "theirs", "knapsacks", "linprog"), float("inf"))
    for _ in range(TURNS):
        started = time.perf_counter()
        bound = failure_bound(m).failure
        seconds["ours"] = min(seconds["ours"], time.perf_counter() - started)
        started = time.perf_counter()
        boxes = binomial_boxes(options, moments, m)
        middle = time.perf_counter()
        slow = linear_programs(options, boxes)
        ended = time.perf_counter()
        seconds["theirs"] = min(seconds["theirs"], ended - started)
        seconds["linprog"] = min(seconds["linprog"], ended - middle)
        started = time.perf_counter()
        quick = knapsacks(options, boxes)
        seconds["knapsacks"] = min(seconds["knapsacks"], time.perf_counter() - started)
        if not np.allclose(quick, slow, atol=1e-7):
            raise SystemExit(f"the knapsacks differ from linprog by {np.abs(quick - slow).max()}")
        if bound > slow[0] + 1e-9:
            raise SystemExit(f"our bound {bound} is above the other, {slow[0]}")
    return {
        "states": options.num_choices,
        "our failure bound": bound,
        "their failure bound": float(slow[0]),
        **{f"{side} seconds": value for side, value in seconds.items()},
        "ratio": seconds["theirs"] / seconds["ours"],
        "ratio of the linear programs": seconds["linprog"] / seconds["knapsacks"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=6)
    parser.add_argument("--horizon", type=int, default=30)
    parser.add_argument("--m", type=int, default=64)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measured(options.size, options.horizon, options.m)
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    for name, value in figures.items():
        print(f"{name:30} {value:,.4g}")
    print(f"wanted: a ratio of at least {WANTED}")


if __name__ == "__main__":
    main()
