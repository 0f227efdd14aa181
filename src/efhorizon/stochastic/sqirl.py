"""SQIRL (Laidlaw et al. 2024) on a table, with tabular regression: the mean of the samples of each pair.

For t = 0 .. T - 1:
    play m episodes: the policy found so far up to time t, then random actions
    Q_{t+k-1}(s, a) = mean return from time t + k - 1 on, over the episodes that took a in s at that time      (Q^1)
    for i = t + k - 2 .. t:   Q_i(s, a) = mean of r + max_a' Q_{i+1}(s', a')                                 (fitted Q)
    pi_t(s) = argmax_a Q_t(s, a)

Near the horizon there are fewer than k steps left, and Q starts at the last one. Pairs that no episode met have no
estimate and are never the maximum; ties, and states that no episode met, are decided at random. Timesteps: those of all
episodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.streams import drawn_below, mixed, streams
from efhorizon.compiled import Floats, Integers, Words, compiled, compiled_with
from efhorizon.errors import EfhorizonError
from efhorizon.stochastic import _kernels as kernels
from efhorizon.stochastic.planning import Plan
from efhorizon.stochastic.training import is_solved

BEHAVIOUR = 1  # raise it when the same inputs give another result

_S11 = np.uint64(11)
_FLOAT_UNIT = 2.0**-53


class InvalidSqirlError(EfhorizonError, ValueError):
    """Numbers that SQIRL cannot be run with."""


@dataclass(frozen=True)
class SqirlRuns:
    """N independent runs: exact return of the policy returned, and timesteps played."""

    returns: NDArray[np.float64]  # [N]
    timesteps: NDArray[np.int64]  # [N]
    optimal_return: float

    @property
    def successes(self) -> NDArray[np.bool_]:
        """Within 1% of the optimal return."""
        return np.array([is_solved(found, self.optimal_return) for found in self.returns.tolist()])

    @property
    def success_rate(self) -> float:
        return float(self.successes.mean())


def sqirl(plan: Plan, *, k: int, m: int, runs: int = 1, rng: np.random.Generator) -> SqirlRuns:
    """Run SQIRL independently `runs` times; every policy that it returns is evaluated exactly."""
    if min(k, m, runs) < 1 or k > plan.mdp.horizon:
        raise InvalidSqirlError(f"SQIRL needs 1 <= k <= T and at least one episode and one run; got k={k}, m={m}")
    words = streams(rng, runs)
    returns, timesteps = np.empty(runs), np.empty(runs, np.int64)
    for run in range(runs):
        actions, timesteps[run] = policy(plan, k=k, m=m, words=words[run])
        returns[run] = plan.return_of(actions)
    return SqirlRuns(returns, timesteps, plan.optimal.values.at_start)


def policy(plan: Plan, *, k: int, m: int, words: Words) -> tuple[NDArray[np.int32], int]:
    """One run: the action for each time and state [T, S], and the timesteps that it took."""
    mdp = plan.mdp
    actions = np.empty((mdp.horizon, mdp.num_states), np.int32)
    starts = np.cumsum(mdp.initial_probabilities)
    timesteps = _run(plan.outcomes, mdp.horizon, k, m, mdp.initial_states, starts, words, actions)
    return actions, int(timesteps)


@compiled
def uniform(words: Words) -> float:
    """A number in [0, 1)."""
    words[0] += words[1]
    return float(np.float64(mixed(words[0]) >> _S11) * _FLOAT_UNIT)


@compiled
def drawn_start(states: Integers, sums: Floats, words: Words) -> int:
    """An initial state; `sums` are the cumulative probabilities."""
    if len(states) == 1:
        return int(states[0])
    place = int(np.searchsorted(sums, uniform(words), side="right"))
    return int(states[min(place, len(states) - 1)])


@compiled
def drawn_outcome(outcomes: kernels.Outcomes, pair: int, words: Words) -> int:
    """The number of an outcome of a pair."""
    first, last = outcomes.offsets[pair], outcomes.offsets[pair + 1] - 1
    if first == last:
        return int(first)
    left = uniform(words)
    for outcome in range(first, last):
        left -= outcomes.probabilities[outcomes.probability_codes[outcome]]
        if left < 0.0:
            return int(outcome)
    return int(last)


class Played(NamedTuple):
    """What is kept of m episodes: up to k steps from some time on, and what comes after."""

    path: Integers  # [m, k + 1], states; -1 after the end
    taken: Integers  # [m, k]
    rewards: Floats  # [m, k]
    tails: Floats  # [m], return after these steps


def empty_played(m: int, k: int) -> Played:
    return Played(np.empty((m, k + 1), np.int32), np.empty((m, k), np.int32), np.zeros((m, k)), np.zeros(m))


@compiled_with(nogil=True)
def play(
    outcomes: kernels.Outcomes,
    time: int,
    steps: int,
    starts: Integers,
    start_sums: Floats,
    words: Words,
    actions: Integers,
    out: Played,
) -> int:
    """Play episodes that follow `actions` [T, S] up to a time and then act at random; the timesteps that they take."""
    path, taken, rewards, tails = out.path, out.taken, out.rewards, out.tails
    timesteps = 0
    for episode in range(len(tails)):
        path[episode, :] = -1
        tails[episode] = 0.0
        state = drawn_start(starts, start_sums, words)
        for now in range(len(actions)):
            action = actions[now, state] if now < time else drawn_below(words, outcomes.num_actions)
            outcome = drawn_outcome(outcomes, state * outcomes.num_actions + action, words)
            reward, following = outcomes.rewards[outcomes.reward_codes[outcome]], outcomes.successors[outcome]
            timesteps += 1
            if time <= now < time + steps:
                path[episode, now - time] = state
                taken[episode, now - time] = action
                rewards[episode, now - time] = reward
            elif now >= time + steps:
                tails[episode] += reward
            if following < 0:
                break
            state = following
            if now - time + 1 == steps:
                path[episode, steps] = state
    return timesteps


@compiled_with(nogil=True)
def _run(
    outcomes: kernels.Outcomes,
    horizon: int,
    k: int,
    m: int,
    starts: Integers,
    start_sums: Floats,
    words: Words,
    actions: Integers,
) -> int:
    num_states, num_actions = actions.shape[1], outcomes.num_actions
    sums = np.zeros((num_states, num_actions))
    counts = np.zeros((num_states, num_actions), np.int64)
    path = np.empty((m, k + 1), np.int32)  # states from time t on; -1 after the end
    taken = np.empty((m, k), np.int32)
    rewards = np.zeros((m, k))
    tails = np.zeros(m)  # return after the last of these steps
    timesteps = 0
    for time in range(horizon):
        steps = min(k, horizon - time)
        played = Played(path, taken, rewards, tails)
        timesteps += play(outcomes, time, steps, starts, start_sums, words, actions, played)
        # backwards: targets of Q^1 are returns, of the others a reward and the next maximum
        for i in range(steps - 1, -1, -1):
            for episode in range(m):
                here = path[episode, i]
                if here < 0:
                    continue
                target = rewards[episode, i] + tails[episode]
                sums[here, taken[episode, i]] += target
                counts[here, taken[episode, i]] += 1
            if i > 0:
                for episode in range(m):  # the value of this state is what the step before goes on from
                    here = path[episode, i]
                    tails[episode] = _largest(sums, counts, here) if here >= 0 else 0.0
            else:
                for state in range(num_states):
                    actions[time, state] = _greedy(sums, counts, state, words)
            for episode in range(m):
                here = path[episode, i]
                if here >= 0:
                    sums[here, :] = 0.0
                    counts[here, :] = 0
    return timesteps


@compiled
def _largest(sums: Floats, counts: Integers, state: int) -> float:
    best = -np.inf
    for action in range(sums.shape[1]):
        if counts[state, action] > 0:
            best = max(best, sums[state, action] / counts[state, action])
    return best


@compiled
def _greedy(sums: Floats, counts: Integers, state: int, words: Words) -> int:
    """An action with the largest mean, ties at random; any action in a state that was not met."""
    best, tied, chosen = -np.inf, 0, -1
    for action in range(sums.shape[1]):
        if counts[state, action] == 0:
            continue
        mean = sums[state, action] / counts[state, action]
        if mean > best:
            best, tied, chosen = mean, 1, action
        elif mean == best:
            tied += 1
            if drawn_below(words, tied) == 0:
                chosen = action
    return chosen if chosen >= 0 else int(drawn_below(words, sums.shape[1]))


def least_m(plan: Plan, *, k: int, runs: int, rng: np.random.Generator, most: int = 1 << 22) -> dict[str, Any] | None:
    """The least m = 1, 2, 3, 4, 6, 8, 12, ... (steps of at most one half) with which at least half of the runs succeed.

    An estimate from `runs` runs for each m; None if even `most` episodes do not do. The interval is Wilson's, of 95%.
    """
    m, tried = 1, []
    while m <= most:
        found = sqirl(plan, k=k, m=m, runs=runs, rng=rng)
        tried.append(m)
        if found.success_rate >= 0.5:
            low, high = share_interval(int(found.successes.sum()), runs)
            timesteps = float(found.timesteps.mean())
            return {"k": k, "m": m, "success": found.success_rate, "interval": [low, high], "timesteps": timesteps}
        m = m + 1 if m < 3 else m * 4 // 3 if (m & (m - 1)) == 0 and m % 3 else m + max(1, m // 3)
    return None


def share_interval(successes: int, runs: int) -> tuple[float, float]:
    """Wilson's 95% interval of a success rate."""
    z = 1.959963984540054
    share = successes / runs
    centre = (share + z * z / (2 * runs)) / (1 + z * z / runs)
    half = z * np.sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs)) / (1 + z * z / runs)
    return float(max(0.0, centre - half)), float(min(1.0, centre + half))
