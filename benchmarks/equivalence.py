"""Can the sample complexities of the table backend and of Stable-Baselines3 be told apart?

    python benchmarks/equivalence.py --tables DIR --results DIR [--algo ppo] [--seeds 10] [--only NAME ...] [--out FILE]

Runs both backends with the paper's protocol on four MiniGrid MDPs, one Atari and one Procgen MDP, and compares the two
samples of each: Mann-Whitney's test (runs that are not solved count as infinite) and the ratio of the medians. Rows go
to a results directory, so a stopped benchmark goes on where it was; the comparison is written as JSON lines.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
from scipy.stats import mannwhitneyu

from efhorizon.io.tables import load_table
from efhorizon.study.records import Results
from efhorizon.study.run import run_task, tasks

NAMES = (
    "MiniGrid-Empty-5x5-v0",
    "MiniGrid-Empty-8x8-v0",
    "MiniGrid-LavaGapS5-v0",
    "MiniGrid-DoorKey-5x5-v0",
    "maze_easy_l0_30_fs1",
    "freeway_10_fs30",
)
SETTING = {"ppo": "rollout128", "dqn": "exploration0.1"}
MIN_P, MAX_RATIO = 0.05, 1.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, default=Path("tables"))
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--algo", choices=SETTING, default="ppo")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="+", default=NAMES, metavar="NAME")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--out", type=Path, help="JSON lines of the comparison")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(options.threads)
    results = Results(options.results)
    lines = []
    for name in options.only:
        lines.append(compared(name, options, results))
        print(json.dumps(lines[-1]), flush=True)
        if options.out is not None:
            options.out.write_text("".join(json.dumps(line) + "\n" for line in lines))


def compared(name: str, options: argparse.Namespace, results: Results) -> dict[str, object]:
    """Both samples of one MDP, and how they differ."""
    mdp = load_table(Path(name), options.tables)
    samples: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    for backend in ("table", "sb3"):
        (task,) = tasks(
            [mdp],
            options.algo,
            backend=backend,
            settings=SETTING[options.algo],
            num_seeds=options.seeds,
            max_steps=options.steps,
        )
        run_task(task, results)
        rows = [row for row in (results.row(task.key(seed)) for seed in task.seeds) if row is not None]
        samples[backend] = [math.inf if row["sample_complexity"] is None else row["sample_complexity"] for row in rows]
        seconds[backend] = sum(row["wall_seconds"] for row in rows)
    medians = {backend: float(np.median(sample)) for backend, sample in samples.items()}
    ratio = medians["table"] / medians["sb3"] if math.isfinite(sum(medians.values())) else None
    close = medians["table"] == medians["sb3"] if ratio is None else 1 / MAX_RATIO <= ratio <= MAX_RATIO
    p_value = float(mannwhitneyu(samples["table"], samples["sb3"]).pvalue)
    return {
        "id": name,
        "algorithm": options.algo,
        "setting": SETTING[options.algo],
        "seeds": [len(samples["table"]), len(samples["sb3"])],
        "p": round(p_value, 4),
        "median_table": medians["table"],
        "median_sb3": medians["sb3"],
        "ratio": None if ratio is None else round(ratio, 3),
        "cannot_be_told_apart": p_value > MIN_P,
        "medians_close": close,
        "table": sorted(samples["table"]),
        "sb3": sorted(samples["sb3"]),
        "sb3_seconds": round(seconds["sb3"], 1),
    }


if __name__ == "__main__":
    main()
