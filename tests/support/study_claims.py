# ruff: noqa: E501  # sentences
"""Every claim of docs/study.md that has a number in it, computed from the rows, and where the number comes from.

    python tests/support/study_claims.py    # writes docs/study/claims.md

`tests/test_published_study.py` asks that each of these sentences stands in docs/study.md word for word.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from msgspec import UNSET
from study_changes import policies_claims, shaping_claims, transfer_claims
from study_numbers import (
    AUROC,
    CONCORDANCE,
    CORRELATION,
    COVERING,
    EPW,
    RATIO,
    RESAMPLES,
    UCB,
    Claim,
    H,
    Numbers,
    bound,
    change,
    interval,
    word,
)

from efhorizon.evaluation.bound_table import BoundTable
from efhorizon.evaluation.records import EXPLORATION, MdpSummary, has_solved, is_main
from efhorizon.evaluation.resampling import Estimate, PairedTest
from efhorizon.evaluation.rivals import rival_table
from efhorizon.evaluation.rules import is_trained, solved_by_random_play, under
from efhorizon.evaluation.runs import selected_rows
from efhorizon.evaluation.source import study_data
from efhorizon.render.markdown.text import difference, from_log10, number
from efhorizon.study.analysis_record import SEPARATOR, is_complete

ROOT = Path(__file__).parents[2]
ROWS, STUDY, PAGE = ROOT / "data" / "study", ROOT / "docs" / "study.md", ROOT / "docs" / "study" / "claims.md"


def claims(numbers: Numbers) -> list[Claim]:
    return [
        *_tables(numbers),
        *_luck(numbers),
        *_prediction(numbers),
        *_gorp(numbers),
        *_ties(numbers),
        *_table_1(numbers),
        *shaping_claims(numbers),
        *policies_claims(numbers),
        *transfer_claims(numbers),
        *_rivals(numbers),
        *_single(numbers),
        *_edition(numbers),
    ]


def _tables(numbers: Numbers) -> list[Claim]:
    complete = [table for table in numbers.data.tables if table.pairs and table.pairs_replayed == table.pairs]
    return [
        Claim(
            f"of {len(complete)} tables every pair of a state and an action",
            "tables.csv: `pairs_replayed` equal to `pairs`",
        )
    ]


def _luck(numbers: Numbers) -> list[Claim]:
    main = [each for each in numbers.data.summaries if is_main(each)]
    run = [each for each in main if "ppo" in each.sample_complexities]
    lucky = [each for each in run if solved_by_random_play(each, "ppo")]
    fingerprints = {name: analysis.fingerprint for name, analysis in numbers.data.analyses.items()}
    chosen = selected_rows(numbers.data.runs, fingerprints).rows
    solved = [
        row
        for (name, of), rows in chosen.items()
        if of == "ppo" and SEPARATOR not in name
        for row in rows
        if row.sample_complexity is not None
    ]
    untrained = [row for row in solved if not is_trained(row)]
    return [
        Claim(
            f"Random play passes the paper's rule on {len(lucky)} of the {len(run)} MDPs that PPO was run on",
            "lists.md and `random_play_steps` in summary.csv, against `budget_ppo`",
        ),
        Claim(
            f"{len(untrained)} of the {len(solved):,} solved runs of PPO ended before the first gradient step",
            "runs.parquet: `sample_complexity` of PPO at most rollout_length times num_envs",
        ),
    ]


def _prediction(numbers: Numbers) -> list[Claim]:
    ppo, dqn = numbers.learnt.bounds
    ppo_paper, _ = numbers.paper.bounds
    ppo_grid, dqn_grid = numbers.gridworlds
    found = [
        Claim(f"| PPO, all suites | {_line(ppo)} |", "tables.md, Table 2, PPO, effective horizon"),
        Claim(f"| PPO, gridworlds | {_line(ppo_grid)} |", "tables.md, MiniGrid, PPO, effective horizon"),
        Claim(f"| DQN, gridworlds | {_line(dqn)} |", "tables.md, Table 2, DQN, effective horizon"),
        Claim(
            f"| *by the paper's rule: PPO, all suites* | {_line(ppo_paper)} |", "tables.md, Table 2, the paper's rule"
        ),
    ]
    assert _line(dqn) == _line(dqn_grid)  # DQN was run on gridworlds only
    assert {H, EPW} <= set(ppo.leaders[CORRELATION])
    assert {H, EPW} <= set(ppo.leaders[CONCORDANCE])
    assert ppo.leaders[RATIO] == (UCB,)  # significantly closer in size than every other bound
    assert dqn.leaders[RATIO] == (H, UCB)  # tied for DQN
    assert {COVERING, UCB} <= set(ppo_grid.leaders[AUROC])  # no significant lead either
    for metric in (CORRELATION, AUROC, CONCORDANCE):
        assert {H, EPW, COVERING, UCB} <= set(dqn.leaders[metric])
    for name, title in ((H, "effective horizon"), (EPW, "effective planning window"), (COVERING, "covering length")):
        found.append(Claim(f"| {title} | {_cells(ppo, name)} | {_cells(dqn, name)} |", f"tables.md, Table 2, {title}"))
    found.append(
        Claim(
            f"| UCB: number of state-action pairs | {_cells(ppo, UCB)} | {_cells(dqn, UCB)} |",
            "tables.md, Table 2, UCB",
        )
    )
    found.append(
        Claim(
            f"p = {_p(ppo, EPW, CORRELATION).p_value:.2f} for Spearman and {_p(ppo, EPW, CONCORDANCE).p_value:.2f} for concordance",
            "tables.md, the effective horizon against every other predictor, PPO, planning window, not adjusted",
        )
    )
    leads = [_p(ppo, name, metric) for metric in (CORRELATION, CONCORDANCE) for name in (COVERING, UCB)]
    within, together = [f"{test.p_value_holm:.2f}" for test in leads], [f"{test.p_value_all:.2f}" for test in leads]
    found.append(
        Claim(
            f"p = {within[0]} and {within[1]} for Spearman, {within[2]} and {within[3]} for concordance if one metric is "
            f"looked at, {together[0]}, {together[1]}, {together[2]} and {together[3]} if all are",
            "tables.md, the effective horizon against every other predictor, PPO, covering length and UCB",
        )
    )
    perfect = [
        row.title.partition(" (")[0] for row in ppo_grid.rows if row.kind == "bound" and row.metrics[AUROC].value == 1
    ]
    assert sorted(perfect) == ["effective horizon, GORP", "effective planning window"], perfect
    tests = [_p(dqn, name, AUROC) for name in (COVERING, UCB)]
    found.append(
        Claim(
            f"p = {tests[0].p_value_holm:.2f} and {tests[1].p_value_holm:.2f} for its lead in DQN's AUROC over covering length and UCB",
            "tables.md, the effective horizon against every other predictor, DQN",
        )
    )
    return found


def _rivals(numbers: Numbers) -> list[Claim]:
    """Other measures of hardness on the MDPs that have all of them; nothing to claim where no MDP has any."""
    summaries, source = (
        under("learnt", numbers.data.summaries),
        "summary.csv: `hardness_*` and `easiness_*`, by `evaluation/rivals.py`",
    )
    if not any(each.measures for each in summaries):
        return []
    gridworlds = [each for each in summaries if each.origin == "minigrid"]
    ppo, dqn, grid = (
        rival_table(chosen, algorithm, numbers.data.titles, num_resamples=RESAMPLES)
        for chosen, algorithm in ((summaries, "ppo"), (summaries, "dqn"), (gridworlds, "ppo"))
    )
    assert dqn.num_mdps == grid.num_mdps  # DQN was run on gridworlds only
    rows = [row for row in ppo.rows if row.kind == "measure" or row.name in (H, EPW)]
    shown = [
        Claim(f"| {row.title.partition(' (')[0]} | {_rival(ppo, row.name)} | {number(_metrics(grid, row.name)[AUROC].value)} | "
              f"{_rival(dqn, row.name)} | {number(_metrics(dqn, row.name)[AUROC].value)} |", source)
        for row in rows
    ]  # fmt: skip
    tests = [
        test for table in (ppo, dqn, grid) for test in table.tests
        if test.second in {row.name for row in rows} and test.p_value is not None and test.metric != RATIO
    ]  # fmt: skip
    ahead = [test for test in tests if test.better == test.second]
    assert all((test.p_value_holm or 0) >= 0.05 for test in ahead)  # no measure is significantly better than H
    worse = sorted({_title(ppo, test.second) for test in tests if (test.p_value_holm or 1) < 0.05})
    leads = [_p(table, name, CORRELATION) for table in (ppo, dqn) for name in ("pic", "optimal_episode")]
    return [
        Claim(f"On the {ppo.num_mdps} MDPs of {ppo.num_families} families (PPO) and the {dqn.num_mdps} gridworlds (DQN) for which all of them are known", source),
        *shown,
        Claim(f"the smallest p-value of a measure that is ahead of H, adjusted for the rows of its table, is {min(test.p_value_holm or 0 for test in ahead):.2f}", source),
        Claim(f"Significantly worse than H in some metric: {', '.join(worse)}", source),
        Claim(f"H minus policy information capacity in Spearman: {_signed(leads[0])} for PPO and {_signed(leads[2])} for DQN", source),
        Claim(f"H minus the chance of an optimal random episode: {_signed(leads[1])} and {_signed(leads[3])}", source),
        Claim(f"in {word(_none_optimal(ppo, summaries))} of the {ppo.num_mdps} MDPs not one network in thousands is optimal", "summary.csv: `easiness_weight_guessing` is 0"),
    ]  # fmt: skip


def _none_optimal(table: BoundTable, summaries: Sequence[MdpSummary]) -> int:
    names = {name for each in summaries for name in each.measures}
    common = [
        each
        for each in summaries
        if is_main(each) and names <= set(each.measures) and table.algorithm in each.sample_complexities
    ]
    assert len(common) == table.num_mdps
    return sum(each.measures["weight_guessing"].value == 0 for each in common)


def _rival(table: BoundTable, name: str) -> str:
    return f"{interval(_metrics(table, name)[CORRELATION])} | {number(_metrics(table, name)[CONCORDANCE].value)}"


def _title(table: BoundTable, name: str) -> str:
    return next(row.title for row in table.rows if row.name == name).partition(" (")[0]


def _signed(test: PairedTest) -> str:
    assert test.difference is not None
    assert test.low is not None
    assert test.high is not None
    return f"{difference(test.difference)} [{difference(test.low)}, {difference(test.high)}]"


def _gorp(numbers: Numbers) -> list[Claim]:
    exact = [
        each
        for each in numbers.data.summaries
        if each.type != EXPLORATION and each.effective_horizon_kind == "exact" and has_solved(each, "gorp")
    ]
    factors = [
        each.sample_complexities["gorp"] / (each.horizon**2 * each.num_actions ** (each.effective_horizon or 0))
        for each in exact
    ]
    off = [max(factor, 1 / factor) for factor in factors]
    assert max(off) <= 2 + 1e-9
    return [
        Claim(
            f"In the {len(exact)} MDPs with an exact H, GORP's median over 101 seeds is exactly T^2 A^H in "
            f"{sum(each < 1 + 1e-6 for each in off)}, within a factor of 1.25 in {sum(each <= 1.25 for each in off)}, and never off by "
            "more than a factor of two",
            "summary.csv: `sample_complexity_gorp` against `effective_horizon`, where `effective_horizon_kind` is exact",
        )
    ]


def _ties(numbers: Numbers) -> list[Claim]:
    """Timesteps with another rule for ties over those with uniform ones, where both horizons are exact."""
    factors: dict[str, list[float]] = {"lowest": [], "adversarial": []}
    for name, analysis in numbers.data.analyses.items():
        if SEPARATOR in name or not is_complete(analysis) or analysis.figures.exact_by_ties is UNSET:
            continue
        uniform, num_actions = analysis.figures.effective_horizon, analysis.figures.num_actions
        for rule, found in analysis.figures.exact_by_ties.items():
            if uniform.kind == found.kind == "exact" and uniform.value is not None and found.value is not None:
                factors[rule].append(num_actions ** (found.value - uniform.value))
    lowest, worst = factors["lowest"], factors["adversarial"]
    more, fewer = sum(each > 1 + 1e-6 for each in lowest), sum(each < 1 - 1e-6 for each in lowest)
    return [
        Claim(
            f"Taking the lowest index instead, GORP needs more timesteps in {more} of the {len(lowest)} MDPs where both horizons are "
            f"exact, fewer in {fewer}, and between {min(lowest):.2g} and {max(lowest):.2g} times as many",
            "mdps.parquet: `exact_by_ties` of each analysis, lowest",
        ),
        Claim(
            f"If every tie is broken against it, it needs {statistics.median(worst):.2g} times as many in the median of {len(worst)} MDPs, and up "
            f"to {max(worst):.2g} times",
            "mdps.parquet: `exact_by_ties` of each analysis, adversarial",
        ),
    ]


def _table_1(numbers: Numbers) -> list[Claim]:
    share, table = numbers.learnt.min_k[0].share_of_1, numbers.learnt.solvability[0]
    return [
        Claim(f"k = 1 in {share:.2f} of the MDPs (the paper: about two thirds)", "tables.md, the least k"),
        Claim(
            f"agree on {table.agreement:.2f} of the MDPs (the paper: 0.75), and always predicting the more frequent outcome is right on "
            f"{table.majority:.2f}; the two could be unrelated (Fisher's exact test: p = {table.p_value:.2f})",
            "tables.md, Table 1, PPO",
        ),
    ]


def _edition(numbers: Numbers) -> list[Claim]:
    """What the table of changes since the first edition says of now."""
    (ppo, dqn), source = numbers.learnt.bounds, "tables.md"
    values = [_metrics(ppo, name)[CORRELATION].value for name in (H, EPW)]
    assert number(values[0]) == number(values[1])
    solvability, correlation = numbers.learnt.solvability[0], change(numbers.learnt.shaping[0], CORRELATION)
    factors = [from_log10(_metrics(each, H)[RATIO].value) for each in (ppo, dqn)]
    main = [each for each in numbers.data.summaries if is_main(each)]
    exact = [each for each in main if each.origin == "minigrid" and each.effective_horizon_kind == "exact"]
    pictures = [
        each for each in main if each.origin != "minigrid" and each.effective_horizon == 1 and has_solved(each, "ppo")
    ]
    named = [
        each for each in pictures if each.name.startswith(("fruitbot", "plunder_hard", "space_invaders", "atlantis"))
    ]
    bounds = sorted(10 ** bound(each) for each in named)
    needs = sorted(each.sample_complexities["ppo"] for each in named)
    unsolved = [each for each in main if each.origin != "minigrid" and has_solved(each, "ppo") is False]
    mazes, chasers = ([each for each in unsolved if each.name.startswith(game)] for game in ("maze", "chaser"))
    others = sorted({each.name.rpartition("_l")[0] or each.name for each in unsolved if each not in (*mazes, *chasers)})
    assert (len(chasers), len(mazes), others) == (2, 8, ["coinrun_easy", "fruitbot_hard", "qbert_10_fs30"])
    return [
        Claim(f"| {ppo.num_solved} of {ppo.num_mdps} and {dqn.num_solved} of {dqn.num_mdps} |", source),
        Claim(f"| {number(values[0])} each |", source),
        Claim(f"| over {ppo.num_families} families |", source),
        Claim(f"with {dqn.num_families} families the leads are within chance", source),
        Claim(f"| {interval(correlation)} |", source),
        Claim(
            f"| {number(solvability.agreement)}, where always guessing the same scores {number(solvability.majority)} |",
            source,
        ),
        Claim(f"The smaller factors ({factors[0]} and {factors[1]}, the paper 31 and 67) were to be expected", source),
        Claim(f"ours is exact in {len(exact)} gridworlds", "summary.csv: `effective_horizon_kind`"),
        Claim(
            f"the bound is {bounds[0]:,.0f} to {bounds[-1]:,.0f} timesteps (FruitBot, Plunder hard, SpaceInvaders, Atlantis), PPO takes "
            f"{needs[0]:,.0f} to {round(needs[-1], -3):,.0f}",
            "summary.csv: `bound_effective_horizon_log10` and `sample_complexity_ppo` where `effective_horizon` is 1",
        ),
        Claim(
            "Q*bert, FruitBot hard, two Chasers, CoinRun easy 2 and eight mazes are unsolved",
            "summary.csv: `sample_complexity_ppo`",
        ),
    ]


def _single(numbers: Numbers) -> list[Claim]:
    by_name = {each.name: each for each in numbers.data.summaries}
    lines = []
    for name, what in (
        ("KeyCorridorS3R3", "PPO needs {ppo:.1f} million timesteps, DQN {dqn:.1f}"),
        ("DoorKey-8x8", "PPO needs {ppo:.1f} million timesteps, DQN {dqn:.1f}"),
        ("SimpleCrossingS11N5", "neither solves it within 5 million"),
    ):
        each = by_name[f"MiniGrid-{name}-v0"]
        needs = {algorithm: each.sample_complexities[algorithm] / 1e6 for algorithm in ("ppo", "dqn")}
        assert ("neither" in what) == all(need == math.inf for need in needs.values())
        text = f"| {name} | {each.num_states:,} | {each.effective_horizon:.1f} ({each.effective_horizon_kind}) | {what.format(**needs)} |"
        lines.append(Claim(text, f"summary.csv: MiniGrid-{name}-v0"))
    breakout = {each.horizon: each.k_min or 0 for each in by_name.values() if each.name.startswith("breakout_")}
    until = [k for horizon, k in breakout.items() if horizon <= 50]
    lines.append(
        Claim(
            f"Breakout's least k is between {min(until)} and {max(until)} up to horizon 50; at 70 it is {breakout[70]}",
            "summary.csv: `k_min` of breakout_T_fs30",
        )
    )
    theorems = [
        row
        for row in numbers.gridworlds[0].rows
        if row.name in ("effective_horizon_simple", "pg_gorp", "fqi_gorp", "goal")
    ]
    powers = [row.metrics[RATIO].value or 0 for row in theorems]
    lines.append(
        Claim(
            f"median factors of 10^{min(powers):.0f} to 10^{max(powers):.0f} on gridworlds, for PPO",
            "tables.md, MiniGrid, PPO, Theorems 5.4, B.1, B.2 and B.4",
        )
    )
    return lines


def _line(table: BoundTable) -> str:
    row = _metrics(table, H)
    return (
        f"{table.num_solved} of {table.num_mdps} | {interval(row[CORRELATION])} | {from_log10(row[RATIO].value)} | "
        f"{interval(row[CONCORDANCE])}"
    )


def _cells(table: BoundTable, name: str) -> str:
    row = _metrics(table, name)
    return f"{number(row[CORRELATION].value)} | {from_log10(row[RATIO].value)} | {number(row[CONCORDANCE].value)}"


def _metrics(table: BoundTable, name: str) -> dict[str, Estimate]:
    return dict(next(row for row in table.rows if row.name == name).metrics)


def _p(table: BoundTable, name: str, metric: str) -> PairedTest:
    return next(test for test in table.tests if (test.second, test.metric) == (name, metric))


def page(found: Sequence[Claim]) -> str:
    """The list of claims as Markdown."""
    rows = [f"| {claim.text.strip('| ').replace('|', ';')} | {claim.source} |" for claim in found]
    return "\n".join(
        [
            "# The claims of the study, and where each comes from",
            "",
            "Written by `python tests/support/study_claims.py` from the rows in `data/study`. A test recomputes every number and looks for",
            "the sentence in [study.md](../study.md).",
            "",
            "| claim | from |",
            "|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    made = claims(Numbers.of(study_data(ROWS)))
    PAGE.write_text(page(made), encoding="utf-8")
    print("\n".join(claim.text for claim in made))
