"""Tables with frame stacks: the published one, minimal, written and read back unchanged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from efhorizon import TabularMDP, load, save
from efhorizon.agents.deep.observations import ImageStacks, observed_table
from efhorizon.build.framestack import framestacked
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target
from efhorizon.errors import InvalidTableError, StoreError
from efhorizon.planning.optimal import optimal_plan
from efhorizon.planning.policies import load_policy, published_policy, save_policy

PUBLISHED_GRAPH = "4e5c09913cc692e2ece815f017ee8c781e946b1ecdc5503ce6ef2a91996c630f"
REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "exploration" / "freeway_10_fs30"


@pytest.fixture(scope="module")
def freeway(tmp_path_factory: pytest.TempPathFactory) -> TabularMDP:
    pytest.importorskip("ale_py")
    built = build(catalogue_target("freeway_10_fs30"), Options(out=tmp_path_factory.mktemp("tables"))).mdp
    assert built is not None
    return built


def ring(num_states: int, horizon: int) -> TabularMDP:
    """States in a circle, walked in both directions; every screen is shown by two states."""
    states = np.arange(num_states)
    transitions = np.stack([(states + 1) % num_states, (states - 1) % num_states], axis=1)
    screens = np.arange(num_states, dtype=np.uint8).reshape(-1, 1, 1, 1).repeat(2, axis=1).repeat(3, axis=2)
    return TabularMDP(transitions, np.eye(num_states)[:, :2], horizon, screens=screens, screen_mapping=states // 2)


def test_freeway_is_the_published_table(freeway: TabularMDP) -> None:
    stacked = framestacked(freeway)
    assert (stacked.num_states, stacked.frame_stack, stacked.num_screens) == (619, 4, freeway.num_screens)
    assert (
        stacked.fingerprint() == "4e5c09913cc692e2ece815f017ee8c781e946b1ecdc5503ce6ef2a91996c630f"
    )  # of the published file
    assert stacked.screens is not None
    assert stacked.screens.shape[1:] == (84, 84, 1)
    assert optimal_plan(stacked).optimal_return == optimal_plan(freeway).optimal_return


@pytest.mark.skipif(not REFERENCE.exists(), reason="needs the reference data")
def test_the_reference_from_its_own_base() -> None:
    pytest.importorskip("cv2")  # which shrinks the screens
    published = load(REFERENCE / "consolidated_framestack.npz")
    stacked = framestacked(load(REFERENCE / "consolidated.npz"))
    assert (stacked.num_states, stacked.num_screens) == (619, 263)
    assert stacked.fingerprint() == published.fingerprint()
    ours, theirs = stacked.canonical_order(), published.canonical_order()
    for name in ("screen_mapping", "base_states"):
        np.testing.assert_array_equal(getattr(stacked, name)[ours], getattr(published, name)[theirs])
    np.testing.assert_array_equal(np.asarray(stacked.screens), np.asarray(published.screens[:]))


@pytest.mark.skipif(not REFERENCE.exists(), reason="needs the reference data")
def test_published_files_are_written_as_they_were(tmp_path: Path) -> None:
    published = load(REFERENCE / "consolidated_framestack.npz")
    save(published, tmp_path / "again.npz")
    with np.load(REFERENCE / "consolidated_framestack.npz") as before, np.load(tmp_path / "again.npz") as after:
        assert sorted(before.files) == sorted(after.files)
        for name in before.files:
            assert before[name].dtype == after[name].dtype
            np.testing.assert_array_equal(before[name], after[name])
    policy = load_policy(REFERENCE / "exploration_policy.npy")
    save_policy(tmp_path / "policy.npy", published_policy(published, policy))
    again = load_policy(tmp_path / "policy.npy")
    assert again.dtype == policy.dtype
    np.testing.assert_array_equal(again[:, -1], policy[:, -1])
    np.testing.assert_allclose(again, policy, rtol=1e-6)


@pytest.mark.parametrize("ending", ["", ".npz"])
def test_both_layouts_keep_a_stacked_table(ending: str, tmp_path: Path) -> None:
    stacked = framestacked(ring(6, 5), 3)
    save(stacked, tmp_path / f"table{ending}")
    again = load(tmp_path / f"table{ending}")
    assert again.fingerprint() == stacked.fingerprint()
    assert (again.horizon, again.frame_stack) == (5, 3)
    np.testing.assert_array_equal(again.screen_mapping, stacked.screen_mapping)
    np.testing.assert_array_equal(again.base_states, stacked.base_states)
    np.testing.assert_array_equal(again.screens[:], stacked.screens[:])
    assert again.metadata["frames"] == 3


@pytest.mark.parametrize("frames", [1, 2, 3, 4])
def test_histories_against_walks(frames: int) -> None:
    """Every action sequence ends in the state with just its last screens, and no other state is there."""
    mdp = ring(5, 6)
    stacked = framestacked(mdp, frames)
    met = set()
    for number in range(2**6):
        base, state = 0, 0
        history = [int(mdp.shown[0])] * frames
        met.add(0)
        for step in range(6):
            action = number >> step & 1
            base, state = int(mdp.transitions[base, action]), int(stacked.transitions[state, action])
            history = [*history[1:], int(mdp.shown[base])]
            assert stacked.base_states is not None
            assert int(stacked.base_states[state]) == base
            assert stacked.screen_mapping[state].tolist() == history  # type: ignore[index]
            met.add(state)
    deep = framestacked(ring(5, 6), frames)
    reached = {state for state in range(deep.num_states) if 0 <= deep.depths()[state] <= 6}
    assert met == reached
    rows = {(int(base), *row) for base, row in zip(stacked.base_states, stacked.screen_mapping.tolist(), strict=True)}  # type: ignore[arg-type, union-attr]
    assert len(rows) == stacked.num_states  # none is there twice


def test_agents_see_the_same_in_a_stacked_table(freeway: TabularMDP) -> None:
    plain, stacked = observed_table(freeway), observed_table(framestacked(freeway))
    np.testing.assert_array_equal(plain.transitions, stacked.transitions)
    assert isinstance(plain.seen, ImageStacks)
    assert isinstance(stacked.seen, ImageStacks)
    for node in range(0, len(plain.state), 50):
        one = plain.seen.frames[plain.seen.stacks[plain.observation[node]]]
        other = stacked.seen.frames[stacked.seen.stacks[stacked.observation[node]]]
        np.testing.assert_array_equal(one, other)


def test_what_cannot_be_stacked_is_refused() -> None:
    blind = TabularMDP([[0, 0]], [[0, 1]], 2)
    with pytest.raises(InvalidTableError, match="no screens"):
        framestacked(blind, 4)
    with pytest.raises(InvalidTableError, match="already hold 3 frames"):
        framestacked(framestacked(ring(4, 3), 3), 2)
    for frames in (0, -1, 2.5, True):
        with pytest.raises(InvalidTableError, match="positive integer"):
            framestacked(ring(4, 3), frames)  # type: ignore[arg-type]


def test_malformed_stacks_are_refused(tmp_path: Path) -> None:
    stacked = framestacked(ring(6, 5), 3)
    save(stacked, tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as file:
        arrays = {name: file[name] for name in file.files}
    for name, changed, message in (
        ("screen_mapping", arrays["screen_mapping"][:-1], "screen_mapping must have shape"),
        ("screen_mapping", arrays["screen_mapping"] + 100, "points outside"),
        ("screen_mapping", arrays["screen_mapping"][:, 0], "screens must have shape"),
        ("prev_state_mapping", arrays["prev_state_mapping"][:-1], "prev_state_mapping must have shape"),
        ("prev_state_mapping", arrays["prev_state_mapping"] - 1, "must be numbers of states"),
        ("screens", arrays["screens"][0], "screens must have shape"),
    ):
        np.savez(tmp_path / "bad.npz", **(arrays | {name: changed}))
        with pytest.raises((InvalidTableError, StoreError), match=message):
            load(tmp_path / "bad.npz", horizon=5)
