"""What the paper and its authors' files say about single MDPs, to stand beside our figures.

Sources: section 5.2 and its figure (Freeway, 50 steps), Appendix G.1 (Pong, 30 steps), and the published files of three
MDPs (consolidated_analyzed.json and consolidated_gorp_bounds.json in the authors' data, CC-BY-4.0).
"""

from __future__ import annotations

from collections.abc import Mapping

from efhorizon.render.numbers import TIMES

_FIGURES: Mapping[str, Mapping[str, str]] = {
    "freeway_10_fs30": {
        "num_states": "197",
        "min_k": "1",
        "epw": "6",
        "effective_horizon": "≤ 4.29",
        "bound_effective_horizon": "11,100",
    },
    "maze_easy_l0_30_fs1": {
        "num_states": "243",
        "min_k": "1",
        "epw": "1",
        "effective_horizon": "≤ 1.32",
        "bound_effective_horizon": "16,200",
    },
    "MiniGrid-KeyCorridorS3R1-v0": {
        "num_states": "168",
        "min_k": "1",
        "epw": "15",
        "effective_horizon": "≤ 4.07",
        "bound_effective_horizon": f"1.5{TIMES}10⁷",
    },
    "freeway_50_fs30": {
        "min_k": "1",
        "effective_horizon": "≤ 10.2",
        "bound_worst_case": "about 10²⁵",
        "ppo": "under 1.5M",
        "dqn": "under 1.5M",
    },
    "pong_30_fs30": {
        "bound_effective_horizon": f"roughly 5{TIMES}10⁹",
        "ppo": "under 500k",
        "dqn": "under 500k",
        "gorp": "over 80M",
    },
}


def paper_figures(name: str) -> Mapping[str, str]:
    """Figures of one MDP by name: num_states, min_k, epw, effective_horizon, bound_NAME, and the algorithms."""
    return _FIGURES.get(name, {})
