"""From an environment to its diagnosis."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from efhorizon.diagnose.advice import what_to_try
from efhorizon.diagnose.diagnosis import Diagnosis, assumptions, for_k, optimal_chance, random_statistics
from efhorizon.diagnose.episodes import BEHAVIOUR
from efhorizon.diagnose.log import Log
from efhorizon.diagnose.outlook import Known, outlook
from efhorizon.diagnose.stage import Chance, Return
from efhorizon.diagnose.subject import Subject
from efhorizon.diagnose.survey import Findings, Settings, Survey
from efhorizon.engines.actor_engine import chosen_engine
from efhorizon.engines.choice import EngineChoice
from efhorizon.suites.simulator import SimulatorError

DEFAULT_STEPS = 1_000_000
MAX_K = 3
_ADVICE = "; the same command continues where it stopped"


def diagnosed(
    subject: Subject,
    settings: Settings,
    *,
    workers: int = 1,
    engine: EngineChoice | None = None,
    log_path: Path | None = None,
    on_progress: Callable[[Findings, str], None] = lambda findings, doing: None,
) -> Diagnosis:
    """Play an environment within a budget and say how hard it is. What is found does not depend on the engine."""
    stage = subject.spec()
    num_actions, chance, how = stage.num_actions, stage.chance, stage.how
    stage.close()
    if num_actions < 1:
        raise SimulatorError(f"{subject.id}: it has no actions")
    log = Log(log_path, {"behaviour": BEHAVIOUR, "id": subject.id, "horizon": settings.horizon, "seed": settings.seed})
    try:
        pool = chosen_engine(
            engine or EngineChoice(),
            subject.spec,
            workers,
            advice=_ADVICE,
            in_process=workers == 1,
            only_here=subject.spec.in_process,
        )
        try:
            findings = Survey(settings, num_actions, chance != "none", pool, log, on_progress).run()
        finally:
            pool.close()
    finally:
        log.close()
    return _diagnosis(subject, settings, findings, num_actions, chance, how)


def _diagnosis(
    subject: Subject, settings: Settings, findings: Findings, num_actions: int, chance: Chance, how: Return
) -> Diagnosis:
    has_chance = chance != "none"
    target = findings.target(has_chance, settings.best_return)
    by_k = {
        k: for_k(findings, k, target=target, horizon=settings.horizon, num_actions=num_actions, has_chance=has_chance)
        for k in range(1, settings.max_k + 1)
    }
    statistics, share = random_statistics(findings), optimal_chance(findings, target)
    greedy = [each.greedy_return.estimate for each in by_k.values() if each.greedy_return is not None]
    known = [each for each in by_k.values() if each.sample_complexity is not None and each.m_from == "runs"]
    cheapest = min(
        known, key=lambda each: each.sample_complexity.estimate if each.sample_complexity else math.inf, default=None
    )
    found = Diagnosis(
        id=subject.id,
        suite=subject.suite,
        horizon=settings.horizon,
        num_actions=num_actions,
        action_names=subject.action_names,
        chance=chance,
        how=how,
        seed=settings.seed,
        random_play=statistics,
        by_k=by_k,
        greedy_return=max(greedy, default=None),
        best_return=target,
        best_return_is_given=settings.best_return is not None,
        optimal_chance=share,
        steps_played=findings.steps_played,
        budget=int(findings.budget),
        stopped_by=findings.stopped_by,
        seconds=findings.seconds,
        assumptions=assumptions(list(by_k.values()), chance, how, settings.best_return is not None),
        forecast=outlook(
            Known(
                sample_complexity=None if cheapest is None else cheapest.sample_complexity,
                min_k=next((k for k, each in by_k.items() if each.reaches_best), None),
                horizon=settings.horizon,
                num_actions=num_actions,
                is_image=subject.is_image,
                returns=tuple(value for value, _ in statistics.returns),
                mean_return=statistics.mean_return.estimate,
                best_return=target,
                optimal_chance=share,
            )
        ),
    )
    return replace(found, what_to_try=tuple(what_to_try(found)))
