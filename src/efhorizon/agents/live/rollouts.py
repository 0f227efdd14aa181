"""Episodes of GORP in a live environment, shared out among processes, each with an environment of its own.

All of an iteration's episodes start in the same state. Every process takes the chosen actions itself and keeps a
snapshot of where they end, so that no episode plays them again. An episode draws its actions from a generator of its
own, seeded by (seed, iteration, sequence, episode): what is played does not depend on how many processes there are.
"""

from __future__ import annotations

import itertools
import multiprocessing
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from multiprocessing.connection import Connection, wait
from typing import Any

from efhorizon.agents.live.environments import LiveEnvironment, live_environment
from efhorizon.agents.live.live_run import exact_decimal
from efhorizon.errors import EfhorizonError
from efhorizon.io.processes import start
from efhorizon.suites.simulator import SimulatorError

_ACTIONS_A_DRAW = 64
_SEED_BITS, _ITERATION_BITS, _SEQUENCE_BITS, _EPISODE_BITS = 64, 32, 32, 32


class LostProcessError(EfhorizonError):
    """A process that played episodes has ended; the message is one line for the user."""


@dataclass(frozen=True)
class EnvironmentName:
    """What `live_environment` is called with, in every process."""

    name: str
    horizon: int | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    wrappers: Sequence[str] = ()

    def made(self) -> LiveEnvironment:
        return live_environment(self.name, horizon=self.horizon, arguments=self.arguments, wrappers=self.wrappers)


@dataclass(frozen=True)
class Job:
    """Episodes of one action sequence."""

    sequence: int  # its number, in the order of `itertools.product`
    episodes: range


@dataclass(frozen=True)
class Played:
    """What the episodes of a job came to."""

    sequence: int
    total: Fraction  # sum of their rewards-to-go
    best: Fraction  # the largest of these
    steps: int  # of all of them


class Player:
    """One environment at the end of the chosen actions."""

    def __init__(self, environment: LiveEnvironment, k: int, seed: int) -> None:
        self.environment, self._k, self._seed = environment, k, seed
        self._elapsed = 0
        self._actions = range(environment.num_actions)

    def advance(self, action: int) -> tuple[float, bool]:
        self._elapsed += 1
        return self.environment.advance(action)

    def play(self, job: Job) -> Played:
        length = min(self._k, self.environment.horizon - self._elapsed)
        sequence = next(itertools.islice(itertools.product(self._actions, repeat=length), job.sequence, None))
        total, best, steps = Fraction(), None, 0
        for number in job.episodes:
            reward, taken = self._episode(sequence, self._random(job.sequence, number))
            total, steps = total + reward, steps + taken
            best = reward if best is None or reward > best else best
        assert best is not None
        return Played(job.sequence, total, best, steps)

    def _episode(self, sequence: tuple[int, ...], rng: random.Random) -> tuple[Fraction, int]:
        """Reward-to-go and length of one episode: the sequence, then random actions."""
        step, time_left = self.environment.step, self.environment.horizon - self._elapsed
        self.environment.restore()
        total, taken = Fraction(), 0
        for action in itertools.chain(sequence, self._drawn(rng)):
            _, reward, ended = step(action)
            taken += 1
            if reward:
                total += exact_decimal(reward)
            if ended or taken == time_left:
                break
        return total, taken

    def _drawn(self, rng: random.Random) -> Iterator[int]:
        while True:
            yield from rng.choices(self._actions, k=_ACTIONS_A_DRAW)

    def _random(self, sequence: int, episode: int) -> random.Random:
        parts = zip(
            (self._seed, self._elapsed, sequence, episode),
            (_SEED_BITS, _ITERATION_BITS, _SEQUENCE_BITS, _EPISODE_BITS),
            strict=True,
        )
        whole = 1  # so that leading zeros count
        for part, bits in parts:
            whole = whole << bits | part
        return random.Random(whole)


class Players:
    """Players in `workers` processes; one plays in this process and starts none."""

    def __init__(self, name: EnvironmentName, *, k: int, seed: int, workers: int) -> None:
        self.own = Player(name.made(), k, seed)
        self._processes: list[Any] = []
        self._pipes: list[Connection] = []
        if workers > 1:
            context = multiprocessing.get_context("spawn")
            for _ in range(workers):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs, name, k, seed), daemon=True)
                start(process)
                theirs.close()
                self._processes.append(process)
                self._pipes.append(ours)

    def advance(self, action: int) -> tuple[float, bool]:
        """The chosen action; its reward, and whether the episode ended."""
        for pipe in self._pipes:
            pipe.send(action)
        return self.own.advance(action)

    def play(self, num_sequences: int, m: int) -> list[Played]:
        """All episodes of one iteration, in any order."""
        if not self._pipes:
            return [self.own.play(Job(sequence, range(m))) for sequence in range(num_sequences)]
        return list(self._shared(num_sequences * m, m))

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(timeout=10)
            if process.is_alive():
                process.terminate()

    def _shared(self, num_episodes: int, m: int) -> Iterator[Played]:
        """Large shares first and single episodes last, so that all processes finish together."""
        idle, busy, begun = list(self._pipes), set[Any](), 0
        while begun < num_episodes or busy:
            while idle and begun < num_episodes:
                share = max(1, (num_episodes - begun) // (2 * len(self._pipes)))
                pipe = idle.pop()
                pipe.send(_jobs(begun, begun + share, m))
                busy.add(pipe)
                begun += share
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                try:
                    found = ready.recv()
                except (EOFError, OSError):
                    raise LostProcessError(
                        "a process that played episodes has ended; run the same command again to go on"
                    ) from None
                if isinstance(found, EfhorizonError):
                    raise found
                busy.discard(ready)
                idle.append(ready)
                yield from found


def _jobs(first: int, stop: int, m: int) -> list[Job]:
    """The episodes from first to stop, counted over all sequences."""
    jobs = []
    for sequence in range(first // m, (stop - 1) // m + 1):
        episodes = range(max(first - sequence * m, 0), min(stop - sequence * m, m))
        jobs.append(Job(sequence, episodes))
    return jobs


def _serve(pipe: Connection, name: EnvironmentName, k: int, seed: int) -> None:
    """A process that plays until its pipe is closed: a number is an action to take, a list is jobs to play."""
    try:
        player: Player | None = None
        while True:
            message = pipe.recv()
            try:
                player = player or Player(name.made(), k, seed)
                if isinstance(message, int):
                    player.advance(message)
                else:
                    pipe.send([player.play(job) for job in message])
            except SimulatorError as error:
                pipe.send(SimulatorError(str(error)))
    except (EOFError, OSError, KeyboardInterrupt):
        return
