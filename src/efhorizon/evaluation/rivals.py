"""Would a researcher rather use another measure than the effective horizon? Table 2 on the MDPs that have all of them.

In Table 2 itself each row has the MDPs for which it is known. That makes rows hard to compare: a measure that cannot be
computed on large tables is spared the MDPs that are hard for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from efhorizon.evaluation.bound_table import DEFAULT_RESAMPLES, BoundTable, bound_table
from efhorizon.evaluation.records import MdpSummary


def rival_table(
    summaries: Sequence[MdpSummary],
    algorithm: str,
    titles: Mapping[str, str],
    *,
    num_resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
) -> BoundTable:
    """Table 2 on those MDPs for which every measure of hardness that any MDP has is known."""
    names = {name for each in summaries for name in each.measures}
    common = [each for each in summaries if names and names <= set(each.measures)]
    return bound_table(common, algorithm, titles, num_resamples=num_resamples, seed=seed)
