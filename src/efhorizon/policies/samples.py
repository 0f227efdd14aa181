"""From recordings to what cloning learns from: observations as the agent sees them, and the actions taken there.

Steps. A recording has one row per frame; an agent acts once every `frameskip` frames. Each episode is cut into steps of
that many frames, from its first. The first frame of a step is what the agent sees when it decides, and every action
within the step is a label of it. A row without an action (`null`) takes its time but is no label; a step without any
label is not learnt from, though later observations still show its frame. An episode ends where `episode_id` changes;
rows with `null` for it belong together, as Atari-HEAD has it for recordings that were not cut. The last step of an
episode may be shorter.

Observations. Atari: RGB is turned to grey with ALE's weights, which gives ALE's own grey screen for every colour of the
console, then shrunk to 84 x 84 as live observations are; four such frames are stacked, oldest first, and the first of
an episode is repeated. Other suites with pictures: the frame as it is.

Held out. Steps in a row resemble each other, so whole stretches of an episode, of at most 20 steps, are held out.

Legend: N steps, F distinct frames, U distinct observations, K frames of a stack, A actions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import xxhash
from numpy.typing import NDArray

from efhorizon import catalog
from efhorizon.agents.deep.observations import ImageStacks
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.policies.actions import ALE_ACTIONS, ATARI, minimal_set, nearest_actions
from efhorizon.policies.recordings import Label, Picture, Recording
from efhorizon.suites import registry
from efhorizon.suites.atari_simulator import grey_frame
from efhorizon.suites.entry import Entry
from efhorizon.suites.specification import spec_of
from efhorizon.suites.suite import Observation

_GREY_WEIGHTS = np.array((0.2989, 0.5870, 0.1140))  # of red, green and blue in ALE's grey palette
_STRETCH = 20  # steps


class UnusableRecordingError(EfhorizonError):
    """A recording that does not fit the environment; the message is one line for the user."""


@dataclass(frozen=True)
class Samples:
    """Steps of recorded play."""

    observations: ImageStacks  # the distinct ones [U, K]
    observation: NDArray[np.int64]  # [N], the number of what was seen
    label_counts: NDArray[np.int64]  # [N, A], how many frames of the step had each action
    stretch: NDArray[np.int64]  # [N], numbers from 0
    frameskip: int  # frames of a step
    num_recordings: int
    num_frames: int  # in the archives
    num_rows: int
    num_unlabelled: int  # rows without an action
    num_episodes: int
    replaced: dict[str, int]  # how often each action was taken that the game does not have

    def counts(self, held_out: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Labels of each distinct observation [U, A], of all steps or of some."""
        counts = np.zeros((len(self.observations.stacks), self.label_counts.shape[1]), np.int64)
        chosen = slice(None) if held_out is None else held_out
        np.add.at(counts, self.observation[chosen], self.label_counts[chosen])
        return counts

    def held_out(self, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Which steps [N] are kept for testing: whole stretches, never more than that share of them."""
        num_stretches = int(self.stretch.max()) + 1
        return np.isin(self.stretch, rng.permutation(num_stretches)[: int(share * num_stretches)])


def recorded_entry(name: str) -> Entry:
    """The environment that recordings are of: a name of the catalogue, one that a suite understands, or a game's."""
    by_game = {entry.game: entry for entry in reversed(catalog.entries())}
    unlisted = (suite.unlisted_entry(name) for suite in registry.suites())
    found = catalog.find(name) or by_game.get(name) or next((entry for entry in unlisted if entry is not None), None)
    return catalog.entry(name) if found is None else found


def samples(
    entry: Entry,
    given: Sequence[Recording],
    *,
    frameskip: int | None = None,
    on_frames: Callable[[int], None] | None = None,
) -> Samples:
    """What recordings of an environment hold; `frameskip` frames to a step, by default the environment's own.

    `on_frames` receives the number of frames read so far.
    """
    reader = _Reader(entry, frameskip)
    for recording in given:
        reader.add(recording, on_frames)
    return reader.samples()


def observed_picture(entry: Entry) -> Callable[[Picture], Observation]:
    """What the agent sees of a recorded frame [H, W, 3], without earlier frames."""
    suite = registry.suite(entry.suite)
    if entry.suite == ATARI:
        return _atari_observation
    if suite.network(entry.game) != "image" or suite.screen_format != "rgb":
        raise UnusableRecordingError(f"{entry.name}: agents do not see pictures here, so recordings cannot be cloned")
    return suite.observer(entry)


def _atari_observation(picture: Picture) -> Observation:
    grey = np.rint(picture.astype(np.float64) @ _GREY_WEIGHTS).astype(np.uint8)
    return grey_frame(np.ascontiguousarray(grey))[:, :, None]


class _Reader:
    """Collects steps recording by recording; only the frames that begin a step are kept, each distinct one once."""

    def __init__(self, entry: Entry, frameskip: int | None) -> None:
        self._entry, self._suite = entry, registry.suite(entry.suite)
        self._frameskip = frameskip or (entry.frameskip if entry.suite == ATARI else 1)
        self._observed = observed_picture(entry)
        self._shape = _picture_shape(entry)
        is_atari = entry.suite == ATARI
        self._nearest = nearest_actions(minimal_set(entry)) if is_atari else np.arange(entry.num_actions)
        self._own = set(minimal_set(entry)) if is_atari else set()
        self._numbers: dict[bytes, int] = {}  # of distinct frames
        self._frames: list[Observation] = []
        self._steps: list[tuple[tuple[int, ...], NDArray[np.int64], int]] = []  # stack, label counts, stretch
        self._replaced: Counter[str] = Counter()
        self._num_stretches = self._num_episodes = self._num_recordings = self._num_frames = self._num_rows = 0
        self._num_unlabelled = 0

    def add(self, recording: Recording, on_frames: Callable[[int], None] | None) -> None:
        steps = [list(self._steps_of(episode)) for episode in _episodes(recording.labels)]
        counted = [[self._counts(recording, step) for step in episode] for episode in steps]
        shown = self._shown(recording, {step[0].frame for episode in steps for step in episode}, on_frames)
        for episode, counts in zip(steps, counted, strict=True):
            numbers = [shown[step[0].frame] for step in episode]
            depth = self._suite.frame_stack
            padded = [numbers[0]] * (depth - 1) + numbers
            for place, labels in enumerate(counts):
                if labels.any():
                    stretch = self._num_stretches + place // _STRETCH
                    self._steps.append((tuple(padded[place : place + depth]), labels, stretch))
            self._num_stretches += -(-len(episode) // _STRETCH)
        self._num_episodes += len(steps)
        self._num_recordings += 1
        self._num_rows += len(recording.labels)

    def samples(self) -> Samples:
        if not self._steps:
            raise UnusableRecordingError(f"{self._entry.name}: no action is in the recordings")
        stacks, observation = np.unique([step[0] for step in self._steps], axis=0, return_inverse=True)
        _, stretch = np.unique([step[2] for step in self._steps], return_inverse=True)
        return Samples(
            observations=ImageStacks(np.stack(self._frames), stacks.astype(np.int32)),
            observation=observation.reshape(-1),
            label_counts=np.stack([step[1] for step in self._steps]),
            stretch=stretch.reshape(-1),
            frameskip=self._frameskip,
            num_recordings=self._num_recordings,
            num_frames=self._num_frames,
            num_rows=self._num_rows,
            num_unlabelled=self._num_unlabelled,
            num_episodes=self._num_episodes,
            replaced=dict(self._replaced),
        )

    def _steps_of(self, episode: Sequence[Label]) -> Iterator[Sequence[Label]]:
        for begun in range(0, len(episode), self._frameskip):
            yield episode[begun : begun + self._frameskip]

    def _counts(self, recording: Recording, step: Sequence[Label]) -> NDArray[np.int64]:
        counts = np.zeros(self._entry.num_actions, np.int64)
        for label in step:
            if label.action is None:
                self._num_unlabelled += 1
                continue
            if label.action >= len(self._nearest):
                raise StoreError(
                    f"{recording.path}: action {label.action} of frame {label.frame!r} is out of range: "
                    f"{self._entry.game} has actions 0 to {len(self._nearest) - 1}"
                )
            counts[self._nearest[label.action]] += 1
            if self._own and ALE_ACTIONS[label.action] not in self._own:
                self._replaced[ALE_ACTIONS[label.action]] += 1
        return counts

    def _shown(self, recording: Recording, wanted: set[str], on_frames: Callable[[int], None] | None) -> dict[str, int]:
        """The number of the distinct frame that each wanted frame shows."""
        shown: dict[str, int] = {}
        for frame, picture in recording.frames():
            if picture.shape != self._shape:
                raise StoreError(
                    f"{recording.archive}: frames have {picture.shape[1]} x {picture.shape[0]} pixels, but "
                    f"{self._entry.game} has {self._shape[1]} x {self._shape[0]}"
                )
            self._num_frames += 1
            if on_frames is not None:
                on_frames(self._num_frames)
            if frame not in wanted:
                continue
            observed = self._observed(picture)
            number = self._numbers.setdefault(xxhash.xxh3_128_digest(observed.tobytes()), len(self._frames))
            if number == len(self._frames):
                self._frames.append(observed)
            shown[frame] = number
        return shown


def _episodes(labels: Sequence[Label]) -> Iterator[Sequence[Label]]:
    for _, rows in groupby(labels, key=lambda label: label.episode):
        yield list(rows)


def _picture_shape(entry: Entry) -> tuple[int, ...]:
    """How large the frames of an environment are."""
    simulator = spec_of(entry)()
    try:
        simulator.reset()
        return simulator.picture().shape
    finally:
        simulator.close()
