"""What a process does: random episodes, a complete run of GORP, greedy play with its gaps.

Each task brings a random stream of its own, a Philox counter keyed by the seed and the task's number. So its result is
the same in whichever process it is done, before or after an interruption.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct

from efhorizon.diagnose.decisions import Decision, Sequence, contenders, decision
from efhorizon.diagnose.samples import Sample
from efhorizon.diagnose.stage import Stage

BEHAVIOUR = 1  # raise it when the same task gives another result: see io/behaviour.py

_ACTIONS_A_DRAW = 128
_TIES = 1e-9  # relative: sums of the same rewards in another order differ by rounding only
_FIRST_EPISODES = 4  # per sequence, before looking which ones are close
MOST_SEQUENCES = 4096

RANDOM, RUN, PASS, PATH = range(4)  # kinds of streams


def stream(seed: int, kind: int, k: int = 0, number: int = 0) -> np.random.Generator:
    """The random numbers of one task."""
    return np.random.Generator(np.random.Philox(key=[seed, (kind << 56) | (k << 48) | number]))


class RandomEpisodes(Struct, frozen=True):
    """Some episodes of random play."""

    returns: list[float]
    lengths: list[int]
    first_rewards: list[int]
    steps: int
    seconds: float = 0.0


class GorpRun(Struct, frozen=True):
    """A run of GORP(k, m), complete unless its steps were used up."""

    m: int
    total: float
    best_seen: float  # return of any episode on the way
    steps: int
    length: int
    complete: bool
    seconds: float = 0.0


class GreedyPass(Struct, frozen=True):
    """Greedy play on sampled Q^k, complete unless its steps were used up."""

    total: float
    best_seen: float
    steps: int
    rewards: list[float]
    decisions: list[Decision]
    complete: bool
    seconds: float = 0.0

    @property
    def actions(self) -> list[int]:
        return [each.action for each in self.decisions]


@dataclass(frozen=True)
class RandomTask:
    """Episodes of random play."""

    seed: int
    number: int
    episodes: int
    horizon: int

    @property
    def key(self) -> str:
        return f"random {self.number} {self.episodes}"

    def __call__(self, stage: Stage) -> RandomEpisodes:
        rng, before = stream(self.seed, RANDOM, number=self.number), stage.steps_played
        returns, lengths, firsts = [], [], []
        for _ in range(self.episodes):
            stage.begin(rng)
            total, length, first = _rollout(stage, (), self.horizon, rng)
            returns.append(total)
            lengths.append(length)
            firsts.append(first)
        return RandomEpisodes(returns, lengths, firsts, stage.steps_played - before)


@dataclass(frozen=True)
class RunTask:
    """One complete run of GORP(k, m): Algorithm 1, ties drawn at random."""

    seed: int
    number: int
    k: int
    m: int
    horizon: int
    most_steps: int

    @property
    def key(self) -> str:
        return f"run {self.k} {self.number} {self.m}"

    def __call__(self, stage: Stage) -> GorpRun:
        rng, before = stream(self.seed, RUN, self.k, self.number), stage.steps_played
        stage.begin(rng)
        collected, best_seen, ended, now = 0.0, -np.inf, False, 0
        while not ended and now < self.horizon:
            left = self.horizon - now
            sums: dict[Sequence, float] = {}
            for sequence in _sequences(stage.num_actions, min(self.k, left)):
                total = 0.0
                for _ in range(self.m):
                    stage.restore(rng)
                    found = _rollout(stage, sequence, left, rng)[0]
                    total += found
                    best_seen = max(best_seen, collected + found)
                sums[sequence] = total
                if stage.steps_played - before > self.most_steps:
                    return GorpRun(self.m, collected, float(best_seen), stage.steps_played - before, now, False)
            played = stage.advance(_chosen(sums, rng), rng)
            collected, ended, now = collected + played.total, played.ended, now + 1
        return GorpRun(self.m, collected, float(max(best_seen, collected)), stage.steps_played - before, now, True)


@dataclass(frozen=True)
class PassTask:
    """Greedy play on Q^k, sampled adaptively: more episodes where actions are close, none where they are settled."""

    seed: int
    number: int
    k: int
    horizon: int
    budget: int  # steps
    typical_length: float  # of a random episode
    known: tuple[float, ...]  # the least and the largest return of random play

    @property
    def key(self) -> str:
        return f"pass {self.k} {self.number} {self.budget}"

    def __call__(self, stage: Stage) -> GreedyPass:
        rng, path = stream(self.seed, PASS, self.k, self.number), stream(self.seed, PATH, self.k, self.number)
        before = stage.steps_played
        stage.begin(path)
        decisions: list[Decision] = []
        rewards: list[float] = []
        best_seen, ended = -np.inf, False
        while not ended and len(decisions) < self.horizon:
            left = self.budget - (stage.steps_played - before)
            share = self._share(len(decisions), left)
            collected = sum(rewards)
            samples = self._sampled(stage, self.horizon - len(decisions), share, left, rng)
            if samples is None:
                break
            best_seen = max(best_seen, collected + max(sample.high for sample in samples.values()))
            decisions.append(decision(samples, stage.num_actions, self.known))
            played = stage.advance(decisions[-1].action, path)
            rewards.append(played.total)
            ended = played.ended
        complete = ended or len(decisions) == self.horizon
        total = float(sum(rewards))
        best_seen = max(best_seen, total) if complete else best_seen  # what is left could cost something
        return GreedyPass(total, float(best_seen), stage.steps_played - before, rewards, decisions, complete)

    def _share(self, now: int, left: int) -> float:
        """What this step may take of the steps that are left; later ones cost as much as their episodes are long."""
        to_come = max(1, min(self.horizon - now, max(round(2 * self.typical_length) - now, round(self.typical_length))))
        costs = [min(self.horizon - now - later, self.typical_length) for later in range(to_come)]
        return left * costs[0] / max(1e-9, sum(costs))

    def _sampled(
        self, stage: Stage, left: int, share: float, most: int, rng: np.random.Generator
    ) -> dict[Sequence, Sample] | None:
        """Samples of all sequences; None where not even one episode for each can be had."""
        counts: dict[Sequence, Counter[float]] = {
            sequence: Counter() for sequence in _sequences(stage.num_actions, min(self.k, left))
        }
        before, episodes, wanted = stage.steps_played, 1, list(counts)
        while wanted:
            for sequence in wanted:
                for _ in range(episodes):
                    stage.restore(rng)
                    counts[sequence][_rollout(stage, sequence, left, rng)[0]] += 1
                if stage.steps_played - before > most:
                    return None
            samples = {sequence: Sample(found) for sequence, found in counts.items()}
            used = stage.steps_played - before
            done = sum(sample.size for sample in samples.values())
            per_episode = used / max(1, done)
            if samples[wanted[0]].size >= _FIRST_EPISODES:
                wanted = contenders(samples, self.known)
            room = (share - used) / max(1.0, per_episode * max(1, len(wanted)))
            sizes = max((samples[each].size for each in wanted), default=0)
            episodes = min(max(1, sizes), int(room))
            if episodes < 1:
                break
        return {sequence: Sample(dict(found)) for sequence, found in counts.items()}


def _sequences(num_actions: int, length: int) -> Iterator[Sequence]:
    return itertools.product(range(num_actions), repeat=length)


def _rollout(stage: Stage, sequence: Sequence, left: int, rng: np.random.Generator) -> tuple[float, int, int]:
    """Return, length and first reward of one episode: a sequence, then random actions."""
    total, steps, first = 0.0, 0, 0
    given: list[int] = list(sequence)
    while steps < left:
        wanted = min(left - steps, _ACTIONS_A_DRAW) - len(given)
        actions = given + rng.integers(stage.num_actions, size=max(0, wanted)).tolist()
        played = stage.play(actions)
        if played.first_reward and not first:
            first = steps + played.first_reward
        total, steps, given = total + played.total, steps + played.steps, []
        if played.ended:
            break
    return total, steps, first


def _chosen(sums: dict[Sequence, float], rng: np.random.Generator) -> int:
    """The first action of a sequence with the largest sum, drawn among those that tie."""
    largest = max(sums.values())
    margin = _TIES * max(abs(each) for each in sums.values())
    tied = [sequence for sequence, total in sums.items() if total >= largest - margin]
    return tied[int(rng.integers(len(tied)))][0]


Task = RandomTask | RunTask | PassTask
Result = Any  # what one of them returns
