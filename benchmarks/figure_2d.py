"""The paper's Figure 2d: builds freeway_50_fs30 and shows the state that decides Theorem 5.4, and under which reading.

    python benchmarks/figure_2d.py [--tables tables] [--json]

Some twenty minutes on two cores for the table (288,000 emulated pairs; a second call takes seconds). The paper shows
Q^1 = .118, .136, .116 and Q* = 4, 5, 4 for NOOP, UP, DOWN at timestep 10, and says H <= 10.2.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from efhorizon import load
from efhorizon.bounds.analysis import Analysis, analyze

NAME = "freeway_50_fs30"
PAPER_Q, PAPER_OPTIMAL_Q, PAPER_TIMESTEP, PAPER_HORIZON = (0.118, 0.136, 0.116), (4, 5, 4), 10, 10.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, default=Path("tables"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    command = [sys.executable, "-m", "efhorizon", "build", NAME, "--out", str(options.tables), "--json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    found = figures(options.tables / NAME)
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        print(f"{name:36} {value}")


def figures(path: Path) -> dict[str, object]:
    """What the paper's figure says, and what the table says."""
    analysis = analyze(load(path), max_k=1)
    assert isinstance(analysis, Analysis)
    theorem = analysis.theorem[0]
    assert theorem.witness is not None
    assert theorem.greedy_witness is not None
    assert theorem.greedy_horizon is not None
    shown = theorem.greedy_witness
    return {
        "min k": analysis.solvability.min_k,
        "Figure 2d, timestep": (PAPER_TIMESTEP, shown.time + 1),
        "Figure 2d, Q^1": (PAPER_Q, tuple(round(q, 3) for q in shown.q_values)),
        "Figure 2d, Q*": (PAPER_OPTIMAL_Q, shown.optimal_q_values),
        "H by the formula there": (PAPER_HORIZON, round(theorem.greedy_horizon, 3)),
        "the same without its k = 1": round(theorem.greedy_horizon - 1, 3),
        "H by Theorem 5.4 as it is stated": theorem.effective_horizon,
        "decided at timestep": theorem.witness.time + 1,
        "H by Appendix C": analysis.effective_horizon.value,
    }


if __name__ == "__main__":
    main()
