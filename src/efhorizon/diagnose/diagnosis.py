"""What a diagnosis says: random play, greedy play, the least m and H_k with their intervals, and what they assume."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scipy.stats import norm

from efhorizon.diagnose.decisions import OFTEN, Decision
from efhorizon.diagnose.doses import interval, reaches
from efhorizon.diagnose.episodes import GreedyPass
from efhorizon.diagnose.least_episodes import LEVEL, Interval
from efhorizon.diagnose.random_play import RandomPlay, chance_of, random_play
from efhorizon.diagnose.samples import Between, Sample, mean_between, widened
from efhorizon.diagnose.stage import Chance, Return
from efhorizon.diagnose.survey import Findings
from efhorizon.forecast.prediction import Algorithm, Forecast

RUNS, STEPS, NOTHING = "runs", "steps", "nothing"  # what an interval for m rests on
_FEWEST_RUNS = 3
_FEWEST_RUNS_BY_CHANCE = 8  # where the best return is a mean of them


@dataclass(frozen=True)
class ForK:
    """What was found for one k."""

    k: int
    m: Interval | None  # the least m of GORP(k, m)
    m_from: str  # RUNS: complete runs of GORP; STEPS: the steps of greedy play that were seen, a rough guess
    effective_horizon: Interval | None  # k + log_A m
    sample_complexity: Interval | None  # T^2 A^k m timesteps
    greedy_return: Between | None  # of greedy play on sampled Q^k
    reaches_best: bool | None  # whether greedy play reaches the best return; None: not known
    num_runs: int
    successes: tuple[tuple[int, int, int], ...]  # m, runs with the best return, runs
    decisions: tuple[Decision, ...]  # along the better of the passes
    rewards: tuple[float, ...]
    path_complete: bool
    pass_number: int
    no_signal_from: int | None  # the step from which no return of random play differs from another
    reason: str | None  # why something is missing


@dataclass(frozen=True)
class Diagnosis:
    """Everything that `efhorizon diagnose` found. Intervals are 90%."""

    id: str
    suite: str
    horizon: int
    num_actions: int
    action_names: tuple[str, ...]
    chance: Chance
    how: Return
    seed: int
    random_play: RandomPlay
    by_k: dict[int, ForK]
    greedy_return: float | None
    best_return: float
    best_return_is_given: bool
    optimal_chance: float  # share of random episodes that reach the best return
    steps_played: int
    budget: int
    stopped_by: str
    seconds: float
    assumptions: tuple[str, ...]
    forecast: dict[Algorithm, Forecast]
    what_to_try: tuple[str, ...] = ()

    @property
    def best_k(self) -> ForK | None:
        """The k with the least estimate of timesteps."""
        known = [each for each in self.by_k.values() if each.m is not None and math.isfinite(each.m.estimate)]
        return min(
            known, key=lambda each: each.m.estimate * self.num_actions**each.k if each.m else math.inf, default=None
        )

    def as_json(self) -> dict[str, Any]:
        """In plain types; infinite numbers are null."""
        best = self.best_k
        return {
            "id": self.id,
            "suite": self.suite,
            "horizon": self.horizon,
            "num_actions": self.num_actions,
            "action_names": list(self.action_names),
            "chance": self.chance,
            "returns_by": self.how,
            "seed": self.seed,
            "level": LEVEL,
            "random_play": _random_json(self.random_play, self.optimal_chance),
            "by_k": {str(k): _k_json(each) for k, each in self.by_k.items()},
            "k": None if best is None else best.k,
            "effective_horizon": None if best is None else _interval(best.effective_horizon),
            "greedy_return": self.greedy_return,
            "best_return": self.best_return,
            "best_return_is_given": self.best_return_is_given,
            "steps_played": self.steps_played,
            "budget": self.budget,
            "stopped_by": self.stopped_by or None,
            "seconds": round(self.seconds, 3),
            "assumptions": list(self.assumptions),
            "what_to_try": list(self.what_to_try),
            "forecast": {name: each.as_json() for name, each in self.forecast.items()},
        }


def for_k(findings: Findings, k: int, *, target: float, horizon: int, num_actions: int, has_chance: bool) -> ForK:
    """What the findings say about one k."""
    runs, passes = findings.complete_runs(k), findings.passes.get(k, [])
    enough = len(runs) >= (_FEWEST_RUNS_BY_CHANCE if has_chance else _FEWEST_RUNS)
    m, source = (interval(runs, target), RUNS) if enough else _from_steps(passes)
    best_pass = max(range(len(passes)), key=lambda each: (passes[each].total, -each), default=None)
    chosen = None if best_pass is None else passes[best_pass]
    decisions = () if chosen is None else tuple(chosen.decisions)
    doses = sorted({run.m for run in runs})
    return ForK(
        k=k,
        m=m,
        m_from=source,
        effective_horizon=None if m is None else _mapped(m, lambda each: k + math.log(each, num_actions)),
        sample_complexity=None if m is None else _mapped(m, lambda each: horizon**2 * float(num_actions) ** k * each),
        greedy_return=_greedy_return(findings, k, has_chance),
        reaches_best=_reaches_best(findings, k, target),
        num_runs=len(runs),
        successes=tuple(
            (dose, sum(reaches(run.total, target) for run in runs if run.m == dose), sum(run.m == dose for run in runs))
            for dose in doses
        ),
        decisions=decisions,
        rewards=() if chosen is None else tuple(chosen.rewards),
        path_complete=chosen is not None and chosen.complete,
        pass_number=best_pass or 0,
        no_signal_from=_no_signal_from(decisions),
        reason=findings.skipped.get(k) or _reason(m, source),
    )


def random_statistics(findings: Findings) -> RandomPlay:
    """All random episodes together."""
    lengths = [length for each in findings.random for length in each.lengths]
    firsts = [first for each in findings.random for first in each.first_rewards]
    return random_play(findings.random_returns, lengths, firsts)


def optimal_chance(findings: Findings, target: float) -> float:
    return chance_of(findings.random_returns, target)


def assumptions(by_k: Sequence[ForK], chance: Chance, how: Return, is_given: bool) -> tuple[str, ...]:
    """What the intervals take for granted, one sentence each."""
    said = []
    if chance == "none":
        said.append(
            "The environment is deterministic, as far as resets with other seeds and reseeded generators showed."
        )
    elif chance == "start":
        said.append("Each run starts where a fresh reset puts it: m is that of a typical start.")
    if chance == "steps":
        said.append(
            "Steps are random: m is the number of episodes with which half of the runs reach the best return, "
            "a median over the noise and not a proof about one policy."
        )
    if how == "open-loop":
        said.append(
            "States cannot be copied, so rollouts replay the actions from a reset with fresh noise: Q^k averages "
            "over the states to which these actions lead."
        )
    if is_given:
        said.append("The best return is the one that you gave.")
    elif chance == "none":
        said.append("The best return is the largest that any episode had; if more is possible, m and H are larger.")
    else:
        said.append(
            "The best return is the best mean that greedy play reached; if more is possible, m and H are larger."
        )
    if any(each.m_from == RUNS for each in by_k):
        said.append("The chance that GORP succeeds rises with m; the interval for m comes from complete runs.")
    if any(each.m_from == STEPS for each in by_k):
        said.append("Where no complete run was affordable, m is that of the steps seen, by a normal approximation.")
    return tuple(said)


def _greedy_return(findings: Findings, k: int, has_chance: bool) -> Between | None:
    """The return of complete passes and of the half of the runs that had most episodes.

    Without chance the best of them shows what greedy play can reach; with chance it is their mean.
    """
    runs = sorted(findings.complete_runs(k), key=lambda run: -run.m)
    returns = [each.total for each in findings.passes.get(k, []) if each.complete]
    returns += [run.total for run in runs[: (len(runs) + 1) // 2]]
    if not returns:
        return None
    if not has_chance:
        return Between(min(returns), max(returns), max(returns))
    everything = [*findings.random_returns, *returns]
    return mean_between(Sample.of(returns), *widened(min(everything), max(everything)))


def _reaches_best(findings: Findings, k: int, target: float) -> bool | None:
    passes = [each for each in findings.passes.get(k, []) if each.complete]
    totals = [each.total for each in passes] + [run.total for run in findings.complete_runs(k)]
    if any(reaches(total, target) for total in totals):
        return True
    return False if totals else None


def _no_signal_from(decisions: Sequence[Decision]) -> int | None:
    last = max((step for step, each in enumerate(decisions) if each.has_signal), default=-1)
    return None if last + 1 >= len(decisions) else last + 1


def _from_steps(passes: Sequence[GreedyPass]) -> tuple[Interval | None, str]:
    """A guess from the gaps: the least m with which all steps that were seen go well with chance 1/2."""
    if not any(each.decisions for each in passes):
        return None, NOTHING
    longest = max(passes, key=lambda each: len(each.decisions))
    settled = [each.m for each in longest.decisions if each.is_settled]
    if not settled:
        return Interval(1.0, math.inf, math.inf), STEPS
    return Interval(
        _least([each.low for each in settled]), _least([each.estimate for each in settled]), math.inf
    ), STEPS


def _least(needed: Sequence[float]) -> float:
    """The least m with product of Phi(z sqrt(m / m_t)) at least 1/2, where m_t decides step t with chance `OFTEN`."""
    z, m = float(norm.ppf(OFTEN)), 1.0
    while math.fsum(math.log(float(norm.cdf(z * math.sqrt(m / each)))) for each in needed) < math.log(0.5):
        m = math.ceil(m * 1.05 + 0.5)
    return m


def _mapped(m: Interval, function: Any) -> Interval:
    return Interval(*(function(each) if math.isfinite(each) else math.inf for each in (m.low, m.estimate, m.high)))


def _reason(m: Interval | None, source: str) -> str | None:
    if m is None:
        return "the budget ended before this k"
    if source == STEPS:
        return "the budget pays for too few complete runs of GORP, so m has no upper end"
    if not math.isfinite(m.estimate):
        return "no run reached the best return"
    if not math.isfinite(m.high):
        return "runs with more episodes did not reach the best return often enough to limit m"
    return None


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _whole(value: float) -> int | None:
    return int(value) if math.isfinite(value) else None


def _interval(each: Interval | Between | None, whole: bool = False) -> dict[str, Any]:
    if each is None:
        return {"low": None, "estimate": None, "high": None}
    chosen: Any = _whole if whole else _number
    return {"low": chosen(each.low), "estimate": chosen(each.estimate), "high": chosen(each.high)}


def _k_json(each: ForK) -> dict[str, Any]:
    return {
        "m": _interval(each.m, whole=True),
        "m_from": each.m_from,
        "effective_horizon": _interval(each.effective_horizon),
        "sample_complexity": _interval(each.sample_complexity),
        "greedy_return": None if each.greedy_return is None else each.greedy_return.estimate,
        "greedy_return_interval": _interval(each.greedy_return),
        "reaches_best_return": each.reaches_best,
        "num_runs": each.num_runs,
        "runs": [{"m": m, "successes": won, "runs": tried} for m, won, tried in each.successes],
        "no_signal_from": each.no_signal_from,
        "path_complete": each.path_complete,
        "path": [
            decision_json(decision, step, reward)
            for step, (decision, reward) in enumerate(zip(each.decisions, each.rewards, strict=True))
        ],
        "reason": each.reason,
    }


def decision_json(decision: Decision, step: int, reward: float) -> dict[str, Any]:
    """One step of the path."""
    return {
        "step": step,
        "action": decision.action,
        "reward": reward,
        "gap": _interval(decision.gap),
        "m": _interval(decision.m, whole=True),
        "settled": decision.is_settled,
        "signal": decision.has_signal,
        "episodes": decision.episodes,
        "q": [_interval(each.value) for each in decision.actions],
    }


def _random_json(found: RandomPlay, chance: float) -> dict[str, Any]:
    return {**asdict(found), "best_return_share": chance}
