"""The paper's own numbers, to compare ours with. Line numbers are those of the paper's LaTeX source."""

from __future__ import annotations

import math
from collections.abc import Mapping

from efhorizon.evaluation.formulas import COVERING_LENGTH, EFFECTIVE_HORIZON, EPW, UCB, WORST_CASE

OTHER_ALGORITHM, GORP_EMPIRICAL = "other_algorithm", "gorp_empirical"  # the two baselines of Table 2

NUM_MDPS = 155  # lines 263-265: 67 Atari, 55 Procgen, 33 MiniGrid
NUM_SOLVED = {"ppo": 95, "dqn": 117}  # line 543
NUM_SOLVED_BY_EITHER = 119  # line 543
NUM_SHAPED = 77  # line 638
NUM_PRETRAINED = 82  # line 643
SHARE_1_QVI_SOLVABLE = "about two thirds"  # line 2125

# Table 1, lines 251-252: (1-QVI-solvable, solved by PPO): MDPs
SOLVABILITY = {(True, True): 80, (True, False): 24, (False, True): 15, (False, False): 36}

# Table 2, lines 566-573: correlation, median ratio, AUROC, accuracy
_TABLE_2 = {
    "ppo": {
        WORST_CASE: (0.24, 7.2e10, 0.57, 0.63),
        COVERING_LENGTH: (0.35, 6.3e6, 0.78, 0.72),
        EPW: (0.69, 1.1e5, 0.78, 0.75),
        UCB: (0.26, 20, 0.68, 0.67),
        EFFECTIVE_HORIZON: (0.81, 31, 0.92, 0.86),
        OTHER_ALGORITHM: (0.77, 2.3, 0.84, 0.85),
        GORP_EMPIRICAL: (0.79, 7.3, 0.77, 0.82),
    },
    "dqn": {
        WORST_CASE: (0.15, 5.5e10, 0.67, 0.76),
        COVERING_LENGTH: (0.27, 3.9e6, 0.86, 0.85),
        EPW: (0.58, 8.0e4, 0.88, 0.85),
        UCB: (0.31, 31, 0.67, 0.77),
        EFFECTIVE_HORIZON: (0.74, 67, 0.92, 0.86),
        OTHER_ALGORITHM: (0.77, 2.3, 0.86, 0.99),
        GORP_EMPIRICAL: (0.65, 11, 0.80, 0.94),
    },
}

# Table 3a, lines 602-604 (reward shaping) and 3b, lines 620-622 (exploration policies): correlation, median ratio.
# "Other bounds" predict no change at all; the paper prints 0.00 for a correlation that is undefined.
_TABLE_3A = {
    "ppo": {EPW: (0.20, 2.1), EFFECTIVE_HORIZON: (0.48, 2.4), WORST_CASE: (0.0, 1.3)},
    "dqn": {EPW: (0.70, 12), EFFECTIVE_HORIZON: (0.35, 12), WORST_CASE: (0.0, 1.9)},
}
_TABLE_3B = {"ppo": {COVERING_LENGTH: (-0.36, 2.5e4), EFFECTIVE_HORIZON: (0.57, 2.7), WORST_CASE: (0.0, 2.2)}}
_NO_CHANGE = {"shaping": (WORST_CASE, COVERING_LENGTH, UCB), "exploration": (WORST_CASE, EPW, UCB)}


def bound_metrics(algorithm: str, name: str) -> dict[str, float] | None:
    """Table 2's row by the names of our metrics; None where the paper has none."""
    return _named(_TABLE_2.get(algorithm, {}).get(name))


def change_metrics(table: str, algorithm: str, name: str) -> dict[str, float] | None:
    """Table 3's row; `table` is "shaping" (3a) or "exploration" (3b)."""
    rows: Mapping[str, tuple[float, ...]] = (_TABLE_3A if table == "shaping" else _TABLE_3B).get(algorithm, {})
    return _named(rows.get(WORST_CASE if name in _NO_CHANGE[table] else name))


def _named(numbers: tuple[float, ...] | None) -> dict[str, float] | None:
    if numbers is None:
        return None
    correlation, ratio, *rest = numbers
    metrics = {"correlation": correlation, "median_ratio_log10": math.log10(ratio)}
    return metrics | dict(zip(("auroc", "accuracy"), rest, strict=False))
