"""Analyses on disk: what is in them, when they are made again, pictures, bad files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import UNSET
from msgspec.structs import replace
from toy_mdps import random_mdp

from efhorizon import InvalidTableError, StoreError, TabularMDP, analyze, catalog
from efhorizon.bounds.registry import sample_complexity_bound, unregister
from efhorizon.io.decode import plain
from efhorizon.io.png import encoded_png
from efhorizon.planning.problem import problem
from efhorizon.reasons.histogram import MAX_BINS, histogram
from efhorizon.study.analyses import analysis_record, current_analysis, write_analysis
from efhorizon.study.analysis_record import DecidingState, ReturnHistogram, decoded_analysis
from efhorizon.study.results import Results
from efhorizon.study.scenes import optimal_episode, shrunk, sprite_sheet
from efhorizon.suites import minigrid, procgen
from efhorizon.suites.action_names import action_names


def corridor(length: int = 4, horizon: int = 6, **metadata: Any) -> TabularMDP:
    """Action 1 goes on, action 0 stays; the step off the end pays 1. Each state has a screen of its own shade."""
    transitions = np.stack([np.arange(length), np.arange(1, length + 1)], axis=1)
    transitions[-1, 1] = -1
    rewards = np.zeros((length, 2))
    rewards[-1, 1] = 1.0
    screens = np.zeros((length, 4, 6, 3), np.uint8)
    screens[:] = (np.arange(length) * 40)[:, None, None, None]
    described = {"id": "corridor", "suite": "minigrid", "game": "corridor", "screen_format": "rgb", **metadata}
    return TabularMDP(
        transitions, rewards, horizon, screens=screens, screen_mapping=np.arange(length), metadata=described
    )


def decoded(content: bytes) -> np.ndarray:
    """A PNG file as [H, W, 3] or [H, W, 1], by OpenCV."""
    cv2 = pytest.importorskip("cv2")
    image = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
    return image[:, :, None] if image.ndim == 2 else image[:, :, ::-1]


@pytest.mark.parametrize(
    ("shape", "num_shades"),
    [((5, 7, 3), 2), ((3, 9, 3), 3), ((9, 13, 3), 6), ((33, 21, 3), 256), ((8, 9, 1), 256), ((1, 1, 3), 1)],
)
def test_png_keeps_every_pixel(shape: tuple[int, ...], num_shades: int, rng: np.random.Generator) -> None:
    """With 1, 2, 4 and 8 bits a pixel, with too many colours for a palette, and in grey."""
    image = rng.integers(0, num_shades, shape).astype(np.uint8)
    assert np.array_equal(decoded(encoded_png(image)), image)


def test_png_with_filters_keeps_every_pixel_and_is_small() -> None:
    slopes = (np.add.outer(np.arange(200), np.arange(300))[:, :, None] * np.array([1, 2, 3])).astype(np.uint8)
    content = encoded_png(slopes)
    assert np.array_equal(decoded(content), slopes)
    assert len(content) < slopes.nbytes / 50


def test_the_episode_shown_is_optimal_and_does_not_dawdle() -> None:
    given = problem(corridor())
    episode = optimal_episode(given.timeline, given.optimal)
    assert episode.actions == (1, 1, 1, 1)  # staying twice would be optimal too
    assert episode.states == (0, 1, 2, 3)
    assert episode.rewards == (0.0, 0.0, 0.0, 1.0)


def test_the_episode_never_gives_return_up_for_speed() -> None:
    """Action 0 pays 1 now and ends; action 1 pays nothing now and 2 at the end."""
    mdp = TabularMDP([[-1, 1], [2, 2], [-1, -1]], [[1, 0], [0, 0], [2, 2]], horizon=3, metadata={"id": "x"})
    given = problem(mdp)
    assert optimal_episode(given.timeline, given.optimal).rewards == (0.0, 0.0, 2.0)


def test_a_sheet_holds_its_frames_row_by_row() -> None:
    mdp = corridor(length=20, horizon=20)
    states = tuple(range(20))
    sheet = sprite_sheet(mdp, states)
    assert (sheet.frames, sheet.columns, sheet.width, sheet.height) == (20, 16, 6, 4)
    assert sheet.image.shape == (8, 96, 3)
    for number in states:
        top, left = number // 16 * 4, number % 16 * 6
        assert (sheet.image[top : top + 4, left : left + 6] == number * 40 % 256).all()
    assert (sheet.image[4:, 24:] == 0).all()


def test_wide_frames_lose_whole_pixels() -> None:
    image = np.arange(4 * 400).reshape(4, 400, 1).astype(np.uint8)
    assert np.array_equal(shrunk(image), image[::3, ::3])
    assert shrunk(image[:, :160]).shape == (4, 160, 1)


def test_a_record_has_what_the_contract_says() -> None:
    record, pictures = analysis_record(corridor(num_states_raw=9), max_k=2, build_seconds=1.5)
    content = plain(record)
    assert decoded_analysis(json.dumps(content, allow_nan=False), "corridor.json") == record
    assert list(content)[:5] == ["format", "format_version", "id", "suite", "game"]
    assert content["id"] == "corridor"
    assert content["exploration"] == "uniform"
    assert content["unshaped"] is None
    assert content["table"]["layers"] == [1, 2, 3, 4, 4, 4]  # states reachable after 0, 1, ... steps
    assert content["table"]["num_raw_states"] == 9
    assert content["table"]["fingerprint"] == corridor().fingerprint()
    assert content["analysis"]["optimal_return"] == 1.0
    assert set(content["titles"]) == {*content["analysis"]["sample_complexity"], *content["analysis"]["measures"]}
    assert content["seconds"]["build"] == 1.5
    assert content["seconds"]["verify"] is None
    assert content["seconds"]["analyze"] > 0
    episode = content["episode"]
    assert episode["actions"] == ["right"] * 4  # action 1 of a gridworld
    assert (episode["frames"], episode["columns"], episode["width"], episode["height"]) == (4, 4, 6, 4)
    assert set(pictures) == set(record.pictures.values())
    sheet = decoded(pictures[episode["picture"]])
    assert sheet.shape == (4, 24, 3)
    assert sheet[0, ::6, 0].tolist() == [0, 40, 80, 120]


def test_the_figures_are_those_of_the_analysis_in_its_order() -> None:
    """What `analyze --json` prints and what a study stores is the same text, but for other rules for ties."""
    figures = plain(analysis_record(corridor(), max_k=2)[0])["analysis"]
    assert list(figures.pop("exact_by_ties")) == ["lowest", "adversarial"]
    assert json.dumps(figures) == json.dumps(analyze(corridor(), max_k=2).as_json())


def deciding_state(mdp: TabularMDP) -> DecidingState:
    deciding = analysis_record(mdp)[0].deciding
    assert deciding is not None
    return deciding


def test_histograms_are_distributions_of_returns() -> None:
    """A corridor of two with four steps. max_a Q V* / gap^2 in the states that can still be solved, as Q(stay), Q(go):

        time 0, state 0: 1/2, 7/8 -> 56/9     time 1, state 0: 1/4, 3/4 -> 3     time 2, state 0: 0, 1/2 -> 2
        time 1, state 1: 3/4, 1 -> 16         time 2, state 1: 1/2, 1 -> 4       time 3, state 1: 0, 1 -> 1

    So the deciding state is 1 at time 1, where staying leaves two steps: one of them goes on with chance 3/4.
    """
    deciding = deciding_state(corridor(length=2, horizon=4))
    assert (deciding.time, deciding.state, deciding.k) == (1, 1, 1)
    stay, go = deciding.actions
    assert stay.histogram == ReturnHistogram(returns=[0.0, 1.0], probabilities=[0.25, 0.75])
    assert go.histogram == ReturnHistogram(returns=[1.0], probabilities=[1.0])
    assert (stay.q, go.q) == (0.75, 1.0)
    assert (stay.optimal_q, go.optimal_q) == (1.0, 1.0)
    assert (stay.is_optimal, go.is_optimal) == (True, True)  # there is time to stay once
    assert (stay.name, go.name) == ("left", "right")


def test_the_mean_of_a_histogram_is_q_of_the_same_k(monkeypatch: pytest.MonkeyPatch) -> None:
    """With k > 1 the law is that of the best k actions that begin with an action."""
    monkeypatch.setattr("efhorizon.bounds.analysis.measures_of", lambda *_: {})  # a second for each table
    met: set[int] = set()
    for seed in (
        0,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        10,
        11,
        12,
        14,
        16,
        18,
        20,
        21,
        22,
        23,
    ):  # exact horizons of others take seconds
        drawn = random_mdp(np.random.default_rng(seed), num_states=8, num_actions=3, horizon=5)
        mdp = TabularMDP(drawn.transitions, drawn.rewards, drawn.horizon, metadata={"id": "random"})
        deciding = analysis_record(mdp)[0].deciding
        if deciding is None:
            continue
        met.add(deciding.k)
        for action in deciding.actions:
            law = action.histogram
            assert law is not None
            assert np.dot(law.returns, law.probabilities) == pytest.approx(action.q, abs=1e-12)
            assert sum(law.probabilities) == pytest.approx(1.0)
    assert met == {1, 2, 3}


def test_many_returns_are_merged_without_moving_the_mean(rng: np.random.Generator) -> None:
    returns = np.arange(500.0)
    mass = rng.dirichlet(np.ones(500))
    returned, probabilities = histogram((returns, mass), 0.0, 499.0)
    assert len(returned) <= MAX_BINS
    assert sum(probabilities) == pytest.approx(1.0)
    mean = np.dot(returned, probabilities)
    assert mean == pytest.approx(np.dot(returns, mass))


def test_rewards_without_a_unit_have_no_histogram() -> None:
    mdp = TabularMDP([[0, -1]], [[1e-7, 12345.678]], horizon=3, metadata={"id": "odd"})
    assert [action.histogram for action in deciding_state(mdp).actions] == [None, None]


def test_an_analysis_is_current_until_an_input_changes(tmp_path: Path) -> None:
    results, mdp = Results(tmp_path), corridor()
    assert current_analysis(results, mdp) is None
    written = write_analysis(results, mdp)
    assert current_analysis(results, mdp) == written
    assert current_analysis(results, mdp, max_k=2) == written  # which tried more
    assert current_analysis(results, mdp, max_k=4) is None
    assert current_analysis(results, corridor(length=5)) is None
    assert current_analysis(results, corridor(inputs={"code": "another"})) is None  # its screens may differ


def test_an_analysis_of_an_older_version_gets_other_rules_for_ties(tmp_path: Path) -> None:
    """Nothing else is made again, and the same is written that an analysis of today has."""
    results, mdp = Results.made(tmp_path), corridor()
    written = write_analysis(results, mdp)
    assert set(written.figures.exact_by_ties) == {"lowest", "adversarial"}  # type: ignore[arg-type]
    older = replace(written, figures=replace(written.figures, ties=UNSET, exact_by_ties=UNSET))
    results.write_analysis(older)
    assert "exact_by_ties" not in (tmp_path / "analyses" / f"{written.id}.json").read_text()
    expected = replace(written, figures=replace(written.figures, ties=UNSET))
    assert current_analysis(results, mdp) == expected
    assert results.analysis(written.id) == expected


def test_an_analysis_of_an_older_version_gets_measures_of_hardness(tmp_path: Path) -> None:
    """Nothing else is made again; a measure of another version is, and the others stay."""
    results, mdp = Results.made(tmp_path), corridor()
    written = write_analysis(results, mdp)
    assert written.figures.measures is not UNSET
    assert written.provenance is not None
    assert written.provenance.measures is not UNSET
    older = replace(
        written,
        figures=replace(written.figures, measures=UNSET),
        provenance=replace(written.provenance, measures=UNSET),
    )
    results.write_analysis(older)
    assert '"measures"' not in (tmp_path / "analyses" / f"{written.id}.json").read_text()
    assert current_analysis(results, mdp) == written
    wrong = replace(written.figures.measures["diameter"], value=1e6)
    kept = replace(written.figures.measures["num_states"], value=2e6)
    changed = replace(
        written,
        figures=replace(written.figures, measures=written.figures.measures | {"diameter": wrong, "num_states": kept}),
        provenance=replace(
            written.provenance, measures=written.provenance.measures | {"diameter": "measure diameter 0"}
        ),
    )
    results.write_analysis(changed)
    found = current_analysis(results, mdp)
    assert found is not None
    assert found.figures.measures is not UNSET
    assert found.figures.measures["diameter"] == written.figures.measures["diameter"]
    assert found.figures.measures["num_states"] == kept


def test_other_rules_for_ties_are_those_of_the_analysis(tmp_path: Path) -> None:
    mdp = corridor()
    stored = write_analysis(Results.made(tmp_path), mdp).figures.exact_by_ties
    found = analyze(mdp, ties="all").as_json()["exact_by_ties"]
    assert list(found) == ["uniform", "lowest", "adversarial"]
    assert stored is not UNSET
    for rule, figures in stored.items():
        assert (figures.value, figures.k, figures.m) == tuple(found[rule][name] for name in ("value", "k", "m"))
    without_unit = TabularMDP([[0, -1]], [[1e-7, 12345.678]], horizon=3, metadata={"id": "odd"})
    unknown = write_analysis(Results.made(tmp_path / "other"), without_unit)
    assert unknown.figures.effective_horizon.kind != "exact"
    reasons = {each.reason for each in unknown.figures.exact_by_ties.values()}  # type: ignore[union-attr]
    assert reasons == {"not computed: the effective horizon with uniform ties is not exact"}


@pytest.mark.parametrize("kind", ["start", "deciding", "episode"])
def test_lost_pictures_are_drawn_again(kind: str, tmp_path: Path) -> None:
    results, mdp = Results(tmp_path), corridor()
    written = write_analysis(results, mdp)
    picture = tmp_path / written.pictures[kind]
    before = picture.read_bytes()
    picture.unlink()
    assert current_analysis(results, mdp) == written
    assert picture.read_bytes() == before


def test_an_analysis_that_names_other_pictures_is_made_anew(tmp_path: Path) -> None:
    results, mdp = Results(tmp_path), corridor()
    written = write_analysis(results, mdp)
    results.write_analysis(replace(written, start_picture="pictures/other.png"))
    assert current_analysis(results, mdp) is None


def test_a_bound_of_ones_own_makes_it_anew(tmp_path: Path) -> None:
    results, mdp = Results(tmp_path), corridor()
    write_analysis(results, mdp)
    try:

        @sample_complexity_bound("seven", title="seven steps")
        def seven(given: object) -> int:
            return 7

        assert current_analysis(results, mdp) is None
        written = write_analysis(results, mdp)
        assert written.figures.sample_complexity["seven"] == 7
        assert written.titles["seven"] == "seven steps"
        assert current_analysis(results, mdp) == written
    finally:
        unregister("seven")
    assert current_analysis(results, mdp) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no JSON", "not an analysis"),
        ("[]", "not an analysis"),
        ('{"format": "efhorizon-results"}', "not an analysis"),
        ('{"format": "efhorizon-analysis", "format_version": 2}', "another version"),
        (json.dumps(plain(analysis_record(corridor())[0]) | {"id": "other"}), "is about 'other'"),
        ('{"format": "efhorizon-analysis", "format_version": 1, "id": "corridor"}', "suite is missing"),
        ('{"format": "efhorizon-analysis", "format_version": 1, "id": "corridor", "x": NaN}', "not an analysis"),
        ("[" * 100_000, "not an analysis"),
    ],
)
def test_bad_files_are_one_line_and_are_made_again(content: str, message: str, tmp_path: Path) -> None:
    results, path = Results(tmp_path), tmp_path / "analyses" / "corridor.json"
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(StoreError, match=message) as caught:
        results.analysis("corridor")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert current_analysis(results, corridor()) is None


def test_unsuitable_tables_are_refused(tmp_path: Path) -> None:
    results = Results(tmp_path)
    with pytest.raises(StoreError, match="cannot be read"):
        results.analysis("missing")
    with pytest.raises(InvalidTableError, match=r"'\.\./x'"):
        write_analysis(results, corridor(id="../x"))
    unfinished = TabularMDP([[0, 1], [-1, -1]], np.zeros((2, 2)), 2, unexplored=[False, True], metadata={"id": "x"})
    with pytest.raises(InvalidTableError, match="unfinished"):
        write_analysis(results, unfinished)
    assert not list(tmp_path.iterdir())


def test_actions_have_the_suites_own_names() -> None:
    assert action_names({"suite": "minigrid"}, 3) == minigrid.ACTION_NAMES[:3]
    assert action_names({"suite": "gymnasium"}, 2) == ("0", "1")
    assert action_names({}, 2) == ("0", "1")
    assert {len(minigrid.ACTION_NAMES)} >= {entry.num_actions for entry in catalog.entries("minigrid")} - {3}


def test_atari_actions() -> None:
    pytest.importorskip("ale_py")
    assert action_names({"suite": "atari", "game": "freeway"}, 3) == ("NOOP", "UP", "DOWN")
    assert action_names({"suite": "atari", "game": "no such game"}, 2) == ("0", "1")


def test_procgen_actions_are_the_librarys() -> None:
    library = pytest.importorskip("procgen.env")
    combinations = library.ProcgenGym3Env(num=1, env_name="maze").get_combos()
    expected = [" ".join(key.lower() if len(key) > 1 else key for key in keys) for keys in combinations]
    assert [name or "nothing" for name in expected] == list(procgen.ACTION_NAMES)
