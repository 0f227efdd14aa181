"""Sticky gridworlds: the analysis of each, and what SQIRL, PPO and DQN need on it, beside the horizon.

    python benchmarks/sticky_gridworlds.py analyze --tables TABLES [--rows data/sticky/rows.jsonl] [--minutes 10]
    python benchmarks/sticky_gridworlds.py sqirl   --tables TABLES ...
    python benchmarks/sticky_gridworlds.py ppo     --tables TABLES [--steps 1000000] ...
    python benchmarks/sticky_gridworlds.py summary [--rows data/sticky/rows.jsonl]

Every result is one line of the rows file, written when it is finished; what is there already is not done again, so a
stopped run continues. Smaller tables come first. Tables are native stores named MiniGrid-..., as `efhorizon build`
leaves them. The limit of 100,000 states is that of the sticky table.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

CHANCE, MOST_STATES = 0.25, 100_000
SQIRL_RUNS, SQIRL_KS, SQIRL_MOST = 11, (1, 2, 3), 1 << 15
SEEDS = (0, 1, 2, 3, 4)
LEARNERS = ("ppo", "dqn")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("analyze", "sqirl", *LEARNERS, "summary"))
    parser.add_argument("--tables", type=Path, nargs="+", default=[Path("tables")])
    parser.add_argument("--rows", type=Path, default=Path("data/sticky/rows.jsonl"))
    parser.add_argument("--minutes", type=float, default=10.0, help="start nothing new after this time")
    parser.add_argument("--steps", type=int, default=1_000_000, help="timesteps of PPO and DQN")
    options = parser.parse_args()
    if options.what == "summary":
        summary(rows_of(options.rows))
        return
    options.rows.parent.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + 60 * options.minutes
    done = {(row["what"], row["id"]) for row in rows_of(options.rows)}
    for path in gridworlds(options.tables):
        if (options.what, path.name) in done:
            continue
        if time.monotonic() > until:
            print("time is up; run the same command to go on")
            return
        began = time.monotonic()
        row = {"what": options.what, "id": path.name, **result(options.what, path, options.steps)}
        row["seconds"] = round(time.monotonic() - began, 2)
        with options.rows.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row)[:200], flush=True)


def gridworlds(folders: list[Path]) -> Iterator[Path]:
    """Finished tables whose sticky version can have no more than the limit, the smallest first."""
    from efhorizon.io.store import header

    found: dict[str, tuple[int, Path]] = {}
    for folder in folders:
        for path in folder.glob("MiniGrid-*"):
            if path.name.endswith("-v0") and (path / "zarr.json").exists():
                states, actions = header(path)["digests"]["transitions"]["shape"]
                if states * actions <= MOST_STATES:
                    found.setdefault(path.name, (states * actions, path))
    return (path for _, path in sorted(found.values()))


def result(what: str, path: Path, steps: int) -> dict[str, Any]:
    from efhorizon.agents.deep.settings import DQNSettings, PPOSettings
    from efhorizon.io.tables import opened_table
    from efhorizon.stochastic.analysis import analyze
    from efhorizon.stochastic.planning import Plan
    from efhorizon.stochastic.sqirl import least_m
    from efhorizon.stochastic.sticky import sticky
    from efhorizon.stochastic.training import train_sticky

    mdp = opened_table(path)
    if what == "analyze":
        found = analyze(sticky(mdp, CHANCE), seconds=60).as_json()
        return {name: value for name, value in found.items() if name not in ("gaps", "bounds", "id")}
    if what == "sqirl":
        plan = Plan(sticky(mdp, CHANCE))
        rng = np.random.default_rng(0)
        tried = [least_m(plan, k=k, runs=SQIRL_RUNS, rng=rng, most=SQIRL_MOST) for k in SQIRL_KS]
        solved = [each for each in tried if each is not None]
        best = min(solved, key=lambda each: each["timesteps"], default=None)
        return {"sample_complexity": None if best is None else best["timesteps"], "best": best, "tried": tried}
    settings = PPOSettings(gamma=0.99) if what == "ppo" else DQNSettings(gamma=0.99, schedule_steps=steps)
    runs = train_sticky(mdp, CHANCE, "ppo" if what == "ppo" else "dqn", settings, SEEDS, max_steps=steps)
    needed = [np.inf if run.sample_complexity is None else run.sample_complexity for run in runs]
    median = float(np.median(needed))
    return {
        "sample_complexity": None if np.isinf(median) else median,
        "solved": sum(run.sample_complexity is not None for run in runs),
        "seeds": len(runs),
        "steps": steps,
        "final_returns": [run.final_return for run in runs],
    }


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def summary(rows: list[dict[str, Any]]) -> None:
    """How many are solved, and whether the stochastic horizon orders what learners need."""
    analyses = {row["id"]: row for row in rows if row["what"] == "analyze"}
    print(f"{len(analyses)} sticky gridworlds analyzed")
    names = ("effective_horizon", "normalised_effective_horizon", "reached_effective_horizon", "min_k", "epw")
    for what in ("sqirl", *LEARNERS):
        mine = {row["id"]: row for row in rows if row["what"] == what and row["id"] in analyses}
        solved = [name for name, row in mine.items() if row["sample_complexity"] is not None]
        print(f"{what}: solves {len(solved)} of {len(mine)}")
        for name in names:
            pairs = [
                (predicted(analyses[each], name), np.log10(mine[each]["sample_complexity"]))
                for each in solved
                if analyses[each][name] is not None
            ]
            if len(pairs) > 2 and len({pair[0] for pair in pairs}) > 1:
                print(f"  {name}: Spearman {spearmanr(*zip(*pairs, strict=True)).statistic:.2f} over {len(pairs)}")


def predicted(analysis: dict[str, Any], name: str) -> float:
    """T^2 A^H on a logarithmic scale; the numbers k and W are exponents in the same way."""
    return float(2 * np.log10(analysis["horizon"]) + analysis[name] * np.log10(analysis["num_actions"]))


if __name__ == "__main__":
    main()
