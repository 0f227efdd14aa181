"""What counts as solved: by the paper's rule, and by one that asks for learning.

    paper     a greedy evaluation is optimal, or (PPO) more than half of the last 100 training episodes were
    learnt    the same, but only with a network that has had a gradient step, and only on MDPs that random play does
              not solve by the same rule within the budget

The paper's second condition is met by random play where optimal episodes are frequent, long before anything is learnt.
So `learnt` is what tables show first, and the paper's rule what they show beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal, get_args

from msgspec import UNSET

from efhorizon.evaluation.records import DEEP_RL, MdpSummary
from efhorizon.study.records import Row

Rule = Literal["learnt", "paper"]
RULES: tuple[Rule, ...] = get_args(Rule)  # the first one is the headline
RULE_TITLES = {"learnt": "trained networks, MDPs that random play does not solve", "paper": "the paper's rule"}
_LEAST_SEEDS = 0.5  # share of a setting's runs that must be left


def under(rule: Rule, summaries: Iterable[MdpSummary]) -> list[MdpSummary]:
    """MDPs with the sample complexities that count by a rule; what does not count is as if it had not been run."""
    if rule == "paper":
        return list(summaries)
    return [
        replace(each, sample_complexities={name: value for name, value in _learnt(each) if value is not None})
        for each in summaries
    ]


def solved_by_random_play(summary: MdpSummary, algorithm: str) -> bool:
    """Whether random play passes PPO's rule within the algorithm's budget, in half of all runs."""
    budget = summary.budgets.get(algorithm)
    return summary.random_play is not None and budget is not None and summary.random_play <= budget


def trained_rows(rows: Sequence[Row]) -> list[Row]:
    """The runs of one algorithm that ended with a trained network, of settings in which at least half of them did.

    How long the others would have taken nobody knows: they were ended when luck passed the rule.
    """
    settings: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        settings[row.setting].append(row)
    kept = {name: [row for row in own if is_trained(row)] for name, own in settings.items()}
    return [row for name, own in kept.items() if len(own) >= _LEAST_SEEDS * len(settings[name]) for row in own]


def is_trained(row: Row) -> bool:
    """Whether a run ended after its first gradient step; older rows do not say, but their settings do."""
    if row.trained is not UNSET:
        return row.trained
    sizes = [row.hyperparameters.get(name) for name in ("rollout_length", "num_envs")]
    length, num_envs = (size if isinstance(size, int) else 0 for size in sizes)
    return row.steps > length * num_envs


def _learnt(summary: MdpSummary) -> Iterable[tuple[str, float | None]]:
    for name, value in summary.sample_complexities.items():
        if name not in DEEP_RL:
            yield name, value
        elif not solved_by_random_play(summary, name):
            yield name, value if summary.learnt is None else summary.learnt.get(name)
