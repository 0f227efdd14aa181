"""summary.csv: the published form is read with its bounds, ours is read back unchanged, bad files are refused."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest
from evaluation_data import PUBLISHED_HEADER, PUBLISHED_LINES, published_file, summary

from efhorizon.errors import StoreError
from efhorizon.evaluation import formulas
from efhorizon.evaluation.records import Measurement, PolicySummary
from efhorizon.evaluation.summary_csv import PUBLISHED_COLUMNS, encoded_summaries, game_of, read_summaries, titles

INF = math.inf


def test_a_published_file(tmp_path: Path) -> None:
    summaries = read_summaries(published_file(tmp_path / "summary.csv"))
    assert [each.name for each in summaries] == [line.split(",")[0] for line in PUBLISHED_LINES]
    assert [each.family for each in summaries] == ["pong", "hero", "maze", "MiniGrid-A", "ninja", "MiniGrid-B"]
    pong, hero, *_, last = summaries
    assert (pong.type, pong.origin, pong.k_min, pong.epw, pong.num_states) == ("original", "atari", 1, 1, 100)
    assert pong.sample_complexities == {"ppo": 1000.0, "dqn": 10000.0, "gorp": 1000.0}
    assert pong.returns == {"ppo": 1.0, "dqn": 1.0, "gorp": 1.0}
    assert pong.budgets == {"ppo": 5e6, "dqn": 5e6, "gorp": 1e8}  # the paper's protocol
    assert hero.sample_complexities["gorp"] == INF
    assert (last.effective_horizon, last.bounds["effective_horizon"], last.bounds["covering_length"]) == (INF, INF, INF)


def test_bounds_are_the_papers_formulas(tmp_path: Path) -> None:
    pong = read_summaries(published_file(tmp_path / "summary.csv"))[0]  # T = 10, A = 10, S = 100, W = 1, H = 1
    assert pong.bounds == {
        "worst_case": pytest.approx(math.log10(10 * 10**10 / 2)),
        "ucb": pytest.approx(4.0),
        "covering_length": pytest.approx(math.log10(10 * math.ceil(math.log(2000) / 0.001))),
        "epw": pytest.approx(3.0),
        "effective_horizon": pytest.approx(3.0),
        "effective_horizon_simple": pytest.approx(4.0),
    }


def test_formulas_where_numbers_are_small_or_large() -> None:
    assert 10 ** formulas.worst_case_bound(1, 3) == pytest.approx(2)  # ceil(3 / 2), not 1.5
    assert formulas.worst_case_bound(200, 18) == pytest.approx(math.log10(200 * 18**200 // 2))
    assert formulas.worst_case_bound(100_000, 18) == pytest.approx(5 + 1e5 * math.log10(18) - math.log10(2))
    assert 10 ** formulas.covering_length_bound(10, 2, 1, 1.0) == pytest.approx(20)  # ceil(log 4) = 2 episodes
    tiny = formulas.covering_length_bound(10, 2, 1, 1e-300)
    assert tiny == pytest.approx(301 + math.log10(math.log(4)))
    assert formulas.horizon_of(6, 2, 1) == 2.0
    assert formulas.horizon_of(6, 1, 36) == pytest.approx(3.0)


def test_shaped_mdps_know_their_originals(tmp_path: Path) -> None:
    shaped = (
        PUBLISHED_LINES[3].replace("MiniGrid-A-v0", "MiniGrid-A-OpenDoorsShaped-v0").replace("base", "reward_shaping")
    )
    found = read_summaries(published_file(tmp_path / "a.csv", (PUBLISHED_LINES[3], shaped)))[1]
    assert (found.type, found.unshaped, found.family) == ("shaped", "MiniGrid-A-v0", "MiniGrid-A")
    named = tmp_path / "b.csv"
    named.write_text(f"{PUBLISHED_HEADER},base_mdp_name\n{shaped},Other-v0\n")
    assert read_summaries(named)[0].unshaped == "Other-v0"


def test_ours_is_read_back_unchanged(tmp_path: Path) -> None:
    given = [
        summary(
            "one",
            bounds={"mine, and yours": 2.5, "effective_horizon": INF},
            sample_complexities={"ppo": 1234.5, "dqn": INF},
            budgets={"ppo": 2e5, "dqn": 2e5},
            returns={"ppo": 0.1 + 0.2},
            effective_horizon=INF,
            effective_horizons_by_ties={"lowest": 2.5, "adversarial": 3.0},
        ),
        summary("two", type="shaped", unshaped="one", k_min=None, epw=None, bounds={"ucb": 3.0}, reward_min=None),
        summary("one@human", type="exploration", effective_horizon_kind="upper", bounds={"ucb": 1.0}),
        summary(
            "one@noisy",
            type="exploration",
            bounds={"ucb": 1.0},
            policy=PolicySummary("noisy", "a clone", "cloned", 0.5),
        ),
    ]
    (tmp_path / "a.csv").write_bytes(encoded_summaries(given))
    assert read_summaries(tmp_path / "a.csv") == given
    (tmp_path / "b.csv").write_bytes(encoded_summaries(given))
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    with (tmp_path / "a.csv").open() as file:
        lines = list(csv.reader(file))
    assert tuple(lines[0][: len(PUBLISHED_COLUMNS)]) == PUBLISHED_COLUMNS
    assert [line[2] for line in lines[1:]] == ["base", "reward_shaping", "exploration_policy", "exploration_policy"]
    named = [(line[0], line[lines[0].index("base_mdp_name")]) for line in lines[1:]]
    assert named == [("one", ""), ("two", "one"), ("one@human", "one"), ("one@noisy", "one")]


def test_a_published_file_written_as_ours_keeps_its_bounds(tmp_path: Path) -> None:
    published = read_summaries(published_file(tmp_path / "summary.csv"))
    (tmp_path / "ours.csv").write_bytes(encoded_summaries(published))
    assert read_summaries(tmp_path / "ours.csv") == published


def test_what_is_empty_is_not_known(tmp_path: Path) -> None:
    line = "alone,,,10,10,10" + "," * 18
    found = read_summaries(published_file(tmp_path / "summary.csv", (line,)))[0]
    assert (found.origin, found.type, found.k_min, found.effective_horizon) == ("unknown", "original", None, None)
    assert set(found.bounds) == {"worst_case", "ucb"}
    assert found.sample_complexities == {}


def test_few_columns_and_the_other_spelling_suffice(tmp_path: Path) -> None:
    file = tmp_path / "summary.csv"
    file.write_text(
        "num_state_consolidated,mdp_name,horizon,num_actions,color\r\n7,a,2,3,red\r\n", encoding="utf-8-sig"
    )
    found = read_summaries(file)
    assert [(each.name, each.num_states, each.family) for each in found] == [("a", 7, "a")]


@pytest.mark.parametrize(
    ("name", "game"),
    [("pong_20_fs30", "pong"), ("ms_pacman_10_fs30", "ms_pacman"), ("maze_hard_l0_30_fs1", "maze"), ("x-v0", "x-v0")],
)
def test_games_by_name(name: str, game: str) -> None:
    assert game_of(name) == game


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no column mdp_name, horizon, num_actions, num_states_consolidated"),
        (b"a,b\n1,2\n", "no column mdp_name"),
        (b"\xff\xfe\x00", "not text in UTF-8"),
        (
            b"mdp_name,horizon,num_actions,num_states_consolidated\na,1,2\n",
            "line 2 does not have the 4 fields of the header",
        ),
        (b"mdp_name,horizon,num_actions,num_states_consolidated\na,1,2,3,4\n", "line 2 does not have the 4 fields"),
        (
            b"mdp_name,horizon,num_actions,num_states_consolidated\na,x,2,3\n",
            "line 2: horizon must be a number, not 'x'",
        ),
        (b"mdp_name,horizon,num_actions,num_states_consolidated\na,1.5,2,3\n", "horizon must be a whole number"),
        (b"mdp_name,horizon,num_actions,num_states_consolidated\na,1,0,3\n", "num_actions must be a whole number"),
        (b"mdp_name,horizon,num_actions,num_states_consolidated\na,1,inf,3\n", "num_actions must be a whole number"),
        (b"mdp_name,horizon,num_actions,num_states_consolidated\n,1,2,3\n", "line 2: mdp_name is empty"),
        (b"mdp_name,horizon,num_actions,num_states_consolidated\na,1,2,3\na,1,2,3\n", "a appears twice"),
        (
            b"mdp_name,horizon,num_actions,num_states_consolidated,sample_complexity_ppo\na,1,2,3,-5\n",
            "sample_complexity_ppo must be positive, not '-5'",
        ),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "summary.csv"
    file.write_bytes(content)
    with pytest.raises(StoreError, match=message) as caught:
        read_summaries(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_endless_field_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "summary.csv"
    file.write_text(f"{PUBLISHED_HEADER}\n" + "x" * 200_000)
    with pytest.raises(StoreError, match="comma-separated"):
        read_summaries(file)


def test_measures_say_which_way_they_point(tmp_path: Path) -> None:
    measures = {
        "diameter": Measurement(29.0),
        "poic": Measurement(0.00095, is_easiness=True),
        "mine": Measurement(-1.5),
    }
    path = tmp_path / "summary.csv"
    written = [summary("a", measures=measures), summary("b")]
    path.write_bytes(encoded_summaries(written))
    header = path.read_text().splitlines()[0].split(",")
    assert {"hardness_diameter", "easiness_poic", "hardness_mine"} <= set(header)
    read = read_summaries(path)
    assert [each.measures for each in read] == [measures, {}]
    assert [measures[name].hardness for name in measures] == [29.0, -0.00095, -1.5]
    assert titles(read)["poic"] == "policy-optimal information capacity"
    path.write_text(path.read_text().replace("29.0", "inf"))
    with pytest.raises(StoreError, match="hardness_diameter must be a finite number"):
        read_summaries(path)
