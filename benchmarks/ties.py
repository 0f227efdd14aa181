"""How often GORP succeeds with the least m and with one episode less, exactly and simulated; ties to the lowest index.

    python benchmarks/ties.py [NAME ...] [--ties lowest] [--runs 600000] [--seed 20] [--json]

The number of runs is fixed before the first one, and nothing is looked at on the way: the intervals mean what they say.
KeyCorridorS3R1 takes about half an hour for each m with 600,000 runs on one core; freeway_10_fs30 takes a minute.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from efhorizon.agents.tabular.gorp import gorp
from efhorizon.bounds.exact_horizon import exact_horizon
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target
from efhorizon.gorp.ties import TIES, Ties
from efhorizon.planning.problem import problem

NAMES = ("freeway_10_fs30", "MiniGrid-KeyCorridorS3R1-v0")
CHUNK = 5_000  # runs between two lines of progress
DEVIATIONS = 1.96  # 95%, two-sided


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of the catalogue (default: {' '.join(NAMES)})")
    parser.add_argument("--ties", choices=TIES, default="lowest")
    parser.add_argument("--runs", type=int, default=600_000, help="for each m")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [row for name in options.names or NAMES for row in compared(name, options.ties, options.runs, options.seed)]
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        low, high = row["interval"]
        side = "yes" if row["right_side"] else "no"
        print(
            f"{row['name']:30} m = {row['m']:3}  exact {row['exact']:.4f}  simulated {row['simulated']:.4f} "
            f"[{low:.4f}, {high:.4f}] in {row['runs']:,} runs  on the right side of 1/2: {side}"
        )


def compared(name: str, ties: Ties, runs: int, seed: int) -> list[dict[str, Any]]:
    """The least m and the one before it."""
    with tempfile.TemporaryDirectory() as folder:
        mdp = build(catalogue_target(name), Options(out=Path(folder), num_workers=1)).mdp
    assert mdp is not None
    found = exact_horizon(problem(mdp), 1, ties=ties)
    assert found.m is not None
    rows = []
    for m, exact in ((found.m - 1, found.previous_success_probability), (found.m, found.success_probability)):
        rng, successes = np.random.default_rng((seed, m)), 0.0
        for done in range(0, runs, CHUNK):
            count = min(CHUNK, runs - done)
            successes += count * gorp(mdp, k=1, m=m, runs=count, rng=rng, ties=ties).success_rate
            print(f"\r{name}, m = {m}: {done + count:,} of {runs:,} runs", end="", file=sys.stderr, flush=True)
        rate = successes / runs
        margin = DEVIATIONS * (rate * (1 - rate) / runs) ** 0.5
        interval = (rate - margin, rate + margin)
        right = interval[1] < 0.5 if m < found.m else interval[0] >= 0.5
        rows.append(
            {"name": name, "ties": ties, "m": m, "exact": exact, "simulated": rate, "interval": interval}
            | {"runs": runs, "right_side": right}
        )
    return rows


if __name__ == "__main__":
    main()
