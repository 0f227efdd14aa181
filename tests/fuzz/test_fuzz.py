"""A short part of the fuzzer, with a seed of its own: each kind of input twice, on its commands in turn."""

from __future__ import annotations

from pathlib import Path

from .cases import Case
from .kinds import KINDS
from .runs import Workers, planned

SEED, DAMAGES, FLIPS = 19, 1, 1


def test_damaged_inputs_give_one_line_or_the_same_result(tmp_path: Path) -> None:
    cases = planned(KINDS, seed=SEED, damages=DAMAGES, flips=FLIPS)
    with Workers(2, tmp_path / "corpus", tmp_path / "cases") as workers:
        outcomes = list(workers.outcomes(cases, one=True))
    failed = [
        f"{verdict.outcome}: {command}, {outcome.what}\n  {verdict.detail}\n  {Case.named(outcome.case).command}"
        for outcome in outcomes
        for command, verdict in outcome.verdicts.items()
        if not verdict.is_good
    ]
    assert failed == [], "\n".join(["", *failed])
    assert {Case.named(outcome.case).kind for outcome in outcomes} == set(KINDS)
