"""Table 1 and the distribution of the least k: is acting greedily on the random policy's Q-function optimal?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from efhorizon.evaluation import published
from efhorizon.evaluation.records import MdpSummary, has_solved, is_main


@dataclass(frozen=True)
class SolvabilityCell:
    """MDPs that are, or are not, 1-QVI-solvable and solved by the algorithm."""

    is_1_qvi_solvable: bool
    is_solved: bool
    count: int
    names: tuple[str, ...]
    published: int | None


@dataclass(frozen=True)
class SolvabilityTable:
    """Table 1."""

    algorithm: str
    cells: tuple[SolvabilityCell, ...]  # yes yes, yes no, no yes, no no
    agreement: float | None  # share of MDPs on which both agree
    majority: float | None  # the share on which always predicting the more frequent outcome is right
    p_value: float | None  # Fisher's exact test: would the two be as related by chance? two-sided
    published_agreement: float | None
    num_left_out: int  # the algorithm was not run, or the least k is unknown


@dataclass(frozen=True)
class MinKRow:
    """How many MDPs have this least k."""

    k: int
    num_solved: int
    num_unsolved: int
    num_not_run: int

    @property
    def count(self) -> int:
        return self.num_solved + self.num_unsolved + self.num_not_run


@dataclass(frozen=True)
class MinKDistribution:
    """The distribution of the least k for which an MDP is k-QVI-solvable, split by whether it was solved."""

    algorithm: str
    rows: tuple[MinKRow, ...]  # k = 1, and every other k that some MDP has
    share_of_1: float | None
    published_share_of_1: str
    num_unknown: int


def solvability_table(summaries: Sequence[MdpSummary], algorithm: str = "ppo") -> SolvabilityTable:
    """Table 1 for one algorithm; the paper shows PPO."""
    main = [each for each in summaries if is_main(each)]
    counted = [each for each in main if each.k_min is not None and has_solved(each, algorithm) is not None]
    cells = []
    for is_solvable, is_solved in published.SOLVABILITY:
        names = sorted(
            each.name
            for each in counted
            if (each.k_min == 1) == is_solvable and has_solved(each, algorithm) == is_solved
        )
        paper = published.SOLVABILITY[is_solvable, is_solved] if algorithm == "ppo" else None
        cells.append(SolvabilityCell(is_solvable, is_solved, len(names), tuple(names), paper))
    num_solved = sum(cell.count for cell in cells if cell.is_solved)
    alike = [cell for cell in cells if cell.is_1_qvi_solvable == cell.is_solved]
    return SolvabilityTable(
        algorithm=algorithm,
        cells=tuple(cells),
        agreement=sum(cell.count for cell in alike) / len(counted) if counted else None,
        published_agreement=sum(cell.published or 0 for cell in alike) / published.NUM_MDPS
        if algorithm == "ppo"
        else None,
        majority=max(num_solved, len(counted) - num_solved) / len(counted) if counted else None,
        p_value=_fisher(*(cell.count for cell in cells)) if counted else None,
        num_left_out=len(main) - len(counted),
    )


def _fisher(yes_yes: int, yes_no: int, no_yes: int, no_no: int) -> float:
    """The chance of a table at most as likely as this one, given its margins."""
    row, column, total = yes_yes + yes_no, yes_yes + no_yes, yes_yes + yes_no + no_yes + no_no
    ways = [math.comb(row, x) * math.comb(total - row, column - x) for x in range(min(row, column) + 1) if x <= column]
    return sum(each for each in ways if each <= ways[yes_yes]) / math.comb(total, column)


def min_k_distribution(summaries: Sequence[MdpSummary], algorithm: str = "ppo") -> MinKDistribution:
    """How often each least k occurs."""
    main = [each for each in summaries if is_main(each)]
    counts = Counter((each.k_min, has_solved(each, algorithm)) for each in main if each.k_min is not None)
    met = sorted({k for k, _ in counts} | {1}) if counts else []
    rows = tuple(MinKRow(k, counts[k, True], counts[k, False], counts[k, None]) for k in met)
    num_known = sum(row.count for row in rows)
    return MinKDistribution(
        algorithm=algorithm,
        rows=rows,
        share_of_1=rows[0].count / num_known if num_known else None,
        published_share_of_1=published.SHARE_1_QVI_SOLVABLE,
        num_unknown=len(main) - num_known,
    )
