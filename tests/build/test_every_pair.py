"""Every pair against the environment: any single edit of a table is found, and right tables are not suspected."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from toy_mdps import LyingWalkSimulator, WalkSimulator

from efhorizon import TabularMDP
from efhorizon.build.consolidate import coarsest_classes
from efhorizon.build.difference import Difference
from efhorizon.build.episodes import scope_of
from efhorizon.build.every_pair import compare_every_pair
from efhorizon.build.explore import explore, opened_search
from efhorizon.build.from_reset import walk_from_reset
from efhorizon.build.player import Player
from efhorizon.build.raw_states import RawStates
from efhorizon.build.table import table
from efhorizon.build.table_screens import TableScreens
from efhorizon.build.target import catalogue_target
from efhorizon.engines.local import LocalEngine
from efhorizon.suites.simulator import Simulator, Transition

NUM_EDITS = 300
NAMES = ("MiniGrid-DoorKey-5x5-v0", "MiniGrid-LavaGapS5-v0", "freeway_10_fs30")
walk = functools.partial(WalkSimulator, 5, False)


@dataclass(frozen=True)
class Replayed:
    """A table, and its environment, whose states are replayed once and compared with many tables."""

    mdp: TabularMDP
    environment: RawStates
    screens: TableScreens
    restoring: LocalEngine[Player]
    playing: LocalEngine[Player]  # never restores anything

    def difference(self, mdp: TabularMDP) -> Difference | None:
        return compare_every_pair(mdp, self.environment, self.screens).difference


@contextmanager
def replayed(folder: Path, make: Callable[[], Simulator], horizon: int) -> Iterator[Replayed]:
    search = opened_search(folder, make(), {})
    explore(search, horizon, make)
    mdp = table(search, horizon, metadata={"inputs": {"horizon": horizon}})
    screens = TableScreens(mdp)
    restoring, playing = (
        LocalEngine(functools.partial(Player, make, mdp.num_actions, screens.shape), 1) for _ in range(2)
    )
    try:
        yield Replayed(mdp, RawStates(restoring, mdp.num_actions, screens), screens, restoring, playing)
    finally:
        restoring.close()
        playing.close()
        search.close()


@pytest.fixture(scope="module", params=NAMES)
def known(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replayed]:
    target = catalogue_target(request.param)
    with replayed(tmp_path_factory.mktemp("search"), target.spec, target.horizon) as found:
        yield found


def edited(
    mdp: TabularMDP, state: int, action: int, *, to: int | None = None, reward: float | None = None, ours: bool = True
) -> TabularMDP:
    transitions, rewards = mdp.transitions.copy(), mdp.rewards.copy()
    if to is not None:
        transitions[state, action] = to
    if reward is not None:
        rewards[state, action] = reward
    return TabularMDP(
        transitions,
        rewards,
        mdp.horizon,
        screens=mdp.screens,
        screen_mapping=mdp.screen_mapping,
        metadata=mdp.metadata if ours else None,
    )


def random_edit(mdp: TabularMDP, rng: np.random.Generator) -> TabularMDP:
    """One pair of those within the horizon, the last action included, gets another next state, reward or end."""
    kind = rng.choice(["transition", "reward", "end"])
    while True:
        state, action = int(rng.choice(scope_of(mdp).states)), int(rng.integers(mdp.num_actions))
        following, reward = int(mdp.transitions[state, action]), float(mdp.rewards[state, action])
        if kind == "reward":
            return edited(mdp, state, action, reward=reward + float(rng.choice([-1.0, 0.5, 1e-3])))
        if kind == "end":
            return edited(mdp, state, action, to=-1 if following >= 0 else int(rng.integers(mdp.num_states)))
        if following >= 0:
            return edited(mdp, state, action, to=(following + int(rng.integers(1, mdp.num_states))) % mdp.num_states)


def test_every_random_edit_is_found(known: Replayed, rng: np.random.Generator) -> None:
    assert known.difference(known.mdp) is None
    found = [known.difference(random_edit(known.mdp, rng)) for _ in range(NUM_EDITS)]
    assert None not in found
    assert {"reward", "end", "screen"} <= {each.what for each in found if each is not None}


def test_every_transition_to_a_state_that_looks_right_is_found(known: Replayed) -> None:
    """In a table of another origin, unless the two states do the same for ever: then the tables are equivalent."""
    mdp, looks = known.mdp, known.mdp.screen_mapping
    assert looks is not None
    alike = coarsest_classes(mdp.transitions, mdp.reward_codes, looks)
    num_alike = 0
    for state, action in np.argwhere(mdp.transitions >= 0).tolist():
        right = int(mdp.transitions[state, action])
        for wrong in np.flatnonzero(looks == looks[right]).tolist():
            if wrong != right:
                num_alike += alike[wrong] == alike[right]
                assert known.difference(edited(mdp, state, action, to=wrong)) is not None
                foreign = known.difference(edited(mdp, state, action, to=wrong, ours=False))
                assert (foreign is None) == (alike[wrong] == alike[right])
    assert num_alike == (47 if mdp.num_states == 264 else 0)  # DoorKey: a key that was put back where it was found


def test_a_path_leads_to_the_difference(known: Replayed, rng: np.random.Generator) -> None:
    """Rewards of pairs at any depth: the actions that are named end with that very pair."""
    mdp = known.mdp
    for _ in range(20):
        state, action = int(rng.choice(scope_of(mdp).states)), int(rng.integers(mdp.num_actions))
        difference = known.difference(edited(mdp, state, action, reward=77.0))
        assert difference is not None
        assert (difference.what, difference.expected) == ("reward", "77")
        here = 0
        for taken in difference.actions[:-1]:
            here = int(mdp.transitions[here, taken])
        assert (here, difference.actions[-1]) == (state, action)
        assert len(difference.actions) == mdp.depths()[state] + 1


class RememberingWalkSimulator(WalkSimulator):
    """A walk with a clock whose state also holds the last action, which matters to nothing."""

    _last = 0

    def step(self, action: int) -> Transition:
        self._last = action
        return super().step(action)

    def get_state(self) -> bytes:
        return super().get_state() + bytes([self._last])

    def set_state(self, state: bytes) -> None:
        super().set_state(state[:-1])
        self._last = state[-1]


def test_merged_states_are_followed(tmp_path: Path) -> None:
    """A wrong next state is found though it shows the right screen, from whichever raw state one comes."""
    with replayed(tmp_path, functools.partial(RememberingWalkSimulator, 5), 6) as known:
        comparison = compare_every_pair(known.mdp, known.environment, known.screens)
        assert comparison.difference is None
        assert len(comparison.table_states) == known.mdp.num_states
        assert len(comparison.raw_states) > 2 * known.mdp.num_states
        looks = known.mdp.screen_mapping
        assert looks is not None
        num_edits = 0
        for state, action in np.argwhere(known.mdp.transitions >= 0).tolist():
            right = int(known.mdp.transitions[state, action])
            for wrong in np.flatnonzero(looks == looks[right]).tolist():
                if wrong != right:
                    num_edits += 1
                    assert known.difference(edited(known.mdp, state, action, to=wrong)) is not None
        assert num_edits > 50


def unrolled(mdp: TabularMDP) -> TabularMDP:
    """The same MDP with the time as part of the state; the last action leads nowhere."""
    count, horizon = mdp.num_states, mdp.horizon
    transitions = np.concatenate(
        [np.where(mdp.transitions < 0, -1, mdp.transitions + t * count) for t in range(1, horizon + 1)]
    )
    transitions[-count:] = -1
    mapping = np.tile(np.asarray(mdp.screen_mapping), horizon)
    return TabularMDP(
        transitions, np.tile(mdp.rewards, (horizon, 1)), horizon, screens=mdp.screens, screen_mapping=mapping
    )


def test_a_right_table_of_another_origin(tmp_path: Path) -> None:
    """States that are not merged, and -1 after the last action although the state is known."""
    with replayed(tmp_path, walk, 6) as known:
        longer = unrolled(known.mdp)
        screens = TableScreens(longer)
        other = replace(known, mdp=longer, environment=RawStates(known.restoring, 3, screens), screens=screens)
        assert other.difference(longer) is None
        last = int(np.flatnonzero(longer.depths() == 5)[0])
        assert other.difference(edited(longer, last, 1, to=0)) is None  # after the last action a table says nothing
        assert other.difference(edited(longer, last, 1, reward=3.0)) is not None
        assert other.difference(edited(longer, 0, 1, to=-1)) is not None


def test_what_our_own_tables_say_after_the_last_action(tmp_path: Path) -> None:
    """-1 where a state can be met only then, its number where it can be met earlier."""
    with replayed(tmp_path, functools.partial(WalkSimulator, 9, False), 4) as known:
        last = int(np.flatnonzero(known.mdp.depths() == 3)[0])
        assert known.mdp.transitions[last].tolist() == [2, 3, -1]
        for action, to in ((0, -1), (1, 2), (2, 0)):
            difference = known.difference(edited(known.mdp, last, action, to=to))
            assert difference is not None
            assert (difference.what, len(difference.actions)) == ("next state", 4)
            assert known.difference(edited(known.mdp, last, action, to=to, ours=False)) is None


def test_a_state_that_is_never_reached(tmp_path: Path) -> None:
    with replayed(tmp_path, walk, 12) as known:
        mdp = known.mdp
        more = TabularMDP(
            np.concatenate([mdp.transitions, mdp.transitions[:1]]),
            np.concatenate([mdp.rewards, mdp.rewards[:1]]),
            12,
            screens=mdp.screens,
            screen_mapping=np.append(np.asarray(mdp.screen_mapping), 0),
            metadata=mdp.metadata,
        )
        assert str(known.difference(more)) == "state 4 is in the table, but is never reached"


class ForgetfulWalkSimulator(LyingWalkSimulator):
    """Its snapshots leave out where it is going: restored at 2, it takes every step to the right twice."""

    def step(self, action: int) -> Transition:
        if self._restored and self._position == 2 and action == 2:
            WalkSimulator.step(self, 2)
        self._restored = False
        return WalkSimulator.step(self, action)


def test_snapshots_that_restore_another_state_are_found(tmp_path: Path, rng: np.random.Generator) -> None:
    """The table agrees with every restored state, and is wrong: walks from reset show it."""
    for simulator, what in ((LyingWalkSimulator, "reward"), (ForgetfulWalkSimulator, "restored state")):
        with replayed(tmp_path / what, functools.partial(simulator, 6), 7) as known:
            comparison = compare_every_pair(known.mdp, known.environment, known.screens)
            assert comparison.difference is None
            walks = walk_from_reset(
                known.environment, comparison.raw_states, known.screens, known.playing, rng, max_steps=None
            )
            assert walks.difference is not None
            assert walks.difference.what == what


def test_walks_from_reset_meet_every_state(known: Replayed, rng: np.random.Generator) -> None:
    raw = compare_every_pair(known.mdp, known.environment, known.screens).raw_states
    few = walk_from_reset(known.environment, raw, known.screens, known.playing, rng, max_steps=30)
    assert few.difference is None
    assert few.num_steps <= 30
    assert few.num_states < len(raw) or len(raw) < 30
    if known.mdp.horizon == 100:  # emulators take their time
        walks = walk_from_reset(known.environment, raw, known.screens, known.playing, rng, max_steps=None)
        assert (walks.num_states, walks.difference) == (len(raw), None)
        assert walks.num_steps < 4 * len(raw)
