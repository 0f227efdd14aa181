# ruff: noqa: E501  # sentences
"""The claims of docs/study.md about shaped rewards and about policies to start from."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from study_numbers import CORRELATION, RATIO, Claim, Numbers, bound, change, interval, word

from efhorizon.evaluation.changes import pairs_of
from efhorizon.evaluation.records import SHAPED, MdpSummary, has_solved
from efhorizon.render.markdown.text import from_log10, number

TRANSFER = "transfer"  # the label of policies from other levels


def shaping_claims(numbers: Numbers) -> list[Claim]:
    ppo, dqn = numbers.learnt.shaping
    shaped = [each for each in numbers.data.summaries if each.type == SHAPED]
    by_name = {each.name: each for each in numbers.data.summaries}
    pairs = [(by_name[each.unshaped], each) for each in shaped if each.unshaped in by_name]
    became = [(old, new) for old, new in pairs if (has_solved(old, "ppo"), has_solved(new, "ppo")) == (False, True)]
    lost = [(old, new) for old, new in pairs if (has_solved(old, "ppo"), has_solved(new, "ppo")) == (True, False)]
    harder = [each for each in shaped if (each.k_min or 1) > 1]
    unbounded = [each for each in harder if each.effective_horizon == math.inf]
    distance = [each for each in shaped if each.num_states >= 1000 and "-DistanceShaped-" in each.name]
    raised = [each.k_min or 0 for each in distance if (each.k_min or 1) > 1]
    return [
        Claim(
            f"Predicted and measured changes correlate with {interval(change(ppo, CORRELATION))} for PPO over {ppo.num_both_solved} pairs "
            f"(the paper: 0.48) and with {interval(change(dqn, CORRELATION))} for DQN over {dqn.num_both_solved} (the paper: 0.35)",
            "tables.md, Table 3a, effective horizon",
        ),
        Claim(
            f"off by a factor of {from_log10(change(ppo, RATIO).value)} (PPO) and {from_log10(change(dqn, RATIO).value)} (DQN) in the median, where "
            f"predicting no change at all is off by {from_log10(change(ppo, RATIO, 'no_change').value)} and "
            f"{from_log10(change(dqn, RATIO, 'no_change').value)}",
            "tables.md, Table 3a, effective horizon and no change",
        ),
        Claim(
            f"All {len(became)} shaped gridworlds that PPO solves only because of the shaping were predicted to get easier; of the "
            f"{len(lost)} that it no longer solves, {sum(bound(new) > bound(old) for old, new in lost)} were predicted to get harder",
            "summary.csv: `bound_effective_horizon_log10` and `sample_complexity_ppo` of shaped MDPs and their originals",
        )
        if all(bound(new) < bound(old) for old, new in became)
        else Claim("not all", "summary.csv"),
        Claim(
            f"with it, it is larger in {len(harder)} of {len(shaped)}",
            "summary.csv: `k_min` of shaped gridworlds",
        ),
        Claim(
            f"raises it to between {min(raised)} and {max(raised)} in {len(raised)} of the {len(distance)} gridworlds with 1,000 states or more",
            "summary.csv: `k_min` and `num_states_consolidated` of DistanceShaped gridworlds",
        ),
        Claim(
            f"In {len(unbounded)} of the {len(harder)} no bound is finite with the k that were tried, and PPO solves "
            f"{word(sum(bool(has_solved(each, 'ppo')) for each in unbounded))} of these",
            "summary.csv: `effective_horizon` and `sample_complexity_ppo`",
        ),
        *_pickups(pairs),
    ]


def _pickups(pairs: Sequence[tuple[MdpSummary, MdpSummary]]) -> list[Claim]:
    chosen = [(old, new) for old, new in pairs if new.name.replace("UnlockPickup", "").find("PickupShaped") >= 0]
    smaller = [bound(new) < bound(old) for old, new in chosen]
    run = [(old, new) for old, new in chosen if has_solved(old, "dqn") and "dqn" in new.sample_complexities]
    factors = [new.sample_complexities["dqn"] / old.sample_complexities["dqn"] for old, new in run]
    finite = sorted(each for each in factors if each < math.inf)
    return [
        Claim(
            f"Paying for pickups makes H smaller in {sum(smaller)} of {len(smaller)} pairs, and yet DQN then needs {finite[0]:.0f} to "
            f"{finite[-1]:.0f} times as many timesteps ({len(finite)} pairs) or no longer solves the gridworld ({len(factors) - len(finite)})",
            "summary.csv: shaped MDPs whose name has PickupShaped, and their originals",
        )
    ]


def policies_claims(numbers: Numbers) -> list[Claim]:
    learnt, paper = (
        next(each for each in tables.exploration if each.algorithm == "ppo")
        for tables in (numbers.learnt, numbers.paper)
    )
    graded = numbers.paper.graded
    assert graded is not None
    rows = [
        Claim(
            f"| {100 * grade.noise:.0f}% | {grade.effective_horizon:.2f} | {grade.horizon_change:+.2f} | {10**-grade.needed_change_log10:.2g} |",
            "tables.md, demonstrators from random to optimal, the paper's rule",
        )
        for grade in graded.grades
        if grade.horizon_change and grade.needed_change_log10
    ]
    easier = [each for each in graded.harms if each.what == "effective horizon"]
    return [
        Claim(
            f"by the paper's rule predicted and measured changes correlate with {interval(change(paper, CORRELATION))} over {paper.num_both_solved} "
            f"pairs (the paper: 0.57), and the predicted factor is off by {from_log10(change(paper, RATIO).value)} in the median (the paper: 2.7), where "
            f"no change is off by {from_log10(change(paper, RATIO, 'no_change').value)}",
            "tables.md, Table 3b, the paper's rule, effective horizon and no change",
        ),
        Claim(
            f"Of the {paper.num_pairs} pairs {learnt.num_pairs} are left then, and in {learnt.num_both_solved} both are solved: {interval(change(learnt, CORRELATION))}, "
            f"off by {from_log10(change(learnt, RATIO).value)}, where no change is off by {from_log10(change(learnt, RATIO, 'no_change').value)}",
            "tables.md, Table 3b, effective horizon and no change",
        ),
        *rows,
        Claim(
            f"{paper.num_became_solved} pairs are solved only with the policy, and {word(paper.num_became_unsolved)} only without",
            "tables.md, Table 3b, the paper's rule",
        ),
        Claim(
            f"{len(easier)} times H is larger with a better demonstrator, and {len(graded.harms) - len(easier)} times PPO needs more",
            "tables.md, where a better demonstrator hurts, the paper's rule",
        ),
    ]


def transfer_claims(numbers: Numbers) -> list[Claim]:
    """The policies that were pretrained on other levels of a game."""
    pairs = [(old, new) for old, new in pairs_of(numbers.data.summaries, "exploration") if new.label == TRANSFER]
    moved = [_horizon(new) - _horizon(old) for old, new in pairs]
    solved = [(has_solved(old, "ppo"), has_solved(new, "ppo")) for old, new in pairs]
    both = [pair for pair, is_solved in zip(pairs, solved, strict=True) if all(is_solved)]
    factors = [old.sample_complexities["ppo"] / new.sample_complexities["ppo"] for old, new in both]
    fruitbot, guided = next((old, new) for old, new in pairs if old.name == "fruitbot_easy_l0_10_fs8")
    assert has_solved(fruitbot, "ppo")
    assert not has_solved(guided, "ppo")
    games = {old.name.split("_")[0] for old, _ in pairs}
    return [
        Claim(
            f"on {len(pairs)} Procgen tables of {word(len(games))} games: H is smaller with the policy in {sum(each < 0 for each in moved)}, larger in "
            f"{sum(each > 0 for each in moved)}, the same in {sum(each == 0 for each in moved)}",
            "mdps.parquet: `effective_horizon` of NAME@transfer and NAME",
        ),
        Claim(
            f"PPO solves {len(both)} both ways, {word(solved.count((False, True)))} only with the policy and {word(solved.count((True, False)))} only without; "
            f"where it solves both, the policy divides what it needs by {number(statistics.median(factors))} in the median",
            "summary.csv: `sample_complexity_ppo` of NAME@transfer and NAME",
        ),
        Claim(
            f"In FruitBot's easy level 0 the policy raises H from {fruitbot.effective_horizon:.0f} to {guided.effective_horizon:.0f}, and PPO, which needs "
            f"{fruitbot.sample_complexities['ppo']:,.0f} timesteps without it, does not solve it within {guided.budgets['ppo']:,.0f}",
            "summary.csv: fruitbot_easy_l0_10_fs8 and fruitbot_easy_l0_10_fs8@transfer",
        ),
    ]


def _horizon(summary: MdpSummary) -> float:
    assert summary.effective_horizon is not None
    return summary.effective_horizon
