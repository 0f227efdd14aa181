"""Reproduce one number of the published study from its rows, with nothing but the csv module and SciPy.

Reads data/study/summary.csv (or the file given as argument) and prints how well the effective horizon orders the
timesteps that PPO and DQN needed on the gridworlds that they solved: Spearman 0.87 and 0.83, as in docs/study.md.
"""

import csv
import math
import sys
from pathlib import Path

from scipy.stats import spearmanr

default = Path(__file__).parents[1] / "data" / "study" / "summary.csv"
with open(sys.argv[1] if len(sys.argv) > 1 else default, newline="") as file:
    gridworlds = [row for row in csv.DictReader(file) if row["origin"] == "minigrid" and row["type"] == "base"]

for algorithm in ("ppo", "dqn"):
    needed = {row["mdp_name"]: float(row[f"sample_complexity_{algorithm}"] or "inf") for row in gridworlds}
    solved = [row for row in gridworlds if math.isfinite(needed[row["mdp_name"]])]
    correlation = spearmanr(
        [float(row["bound_effective_horizon_log10"]) for row in solved], [needed[row["mdp_name"]] for row in solved]
    ).statistic
    print(f"{algorithm.upper()} solved {len(solved)} of {len(gridworlds)} gridworlds; Spearman {correlation:.2f}")
