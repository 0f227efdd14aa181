"""The authors' folder as they published it: read, kept, and shown beside a study."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from evaluation_data import published_file

from efhorizon.commands import main
from efhorizon.errors import EfhorizonError
from efhorizon.evaluation.beside import beside
from efhorizon.evaluation.original import original
from efhorizon.evaluation.original_sticky import Sticky
from efhorizon.evaluation.source import study_data

LOCK, MAZE = "freeway_10_fs30", "maze_easy_l0_30_fs1"
LINE = f"{LOCK},atari,base,4,2,4,0,0.06,1,0.0625,1.0,1.0,4,0.1,0.1,4.5,5.0,1,1,1,1000,inf,900,1"
ONLY_THEIRS = "pong_10_fs30,atari,base,10,3,50,0,0.5,1,0.01,1.0,1.0,1,0.001,0.01,1.0,2.0,1,1,1,1000,10000,1000,1"


@pytest.fixture
def bridge(study: Path, tmp_path: Path) -> Path:
    """A folder with a line, a table, analyses, a GORP result and a policy of one MDP, and a line alone of another."""
    folder = tmp_path / "bridge_dataset"
    mdp = folder / "mdps" / LOCK
    mdp.mkdir(parents=True)
    published_file(folder / "summary.csv", (LINE, ONLY_THEIRS))
    (folder / "summary_sticky.csv").write_text(
        "mdp_name,num_states,k_min,epw,reward_random,sample_complexity_ppo,sample_complexity_sqirl\n"
        f"{LOCK},7,3.0,4,0.1,5000.0,inf\npong_10_fs30,90,inf,,0.1,,6000\n"
    )
    assert main(["export", str(study / "tables" / LOCK), str(mdp / "consolidated.npz")]) == 0
    (mdp / "consolidated_analyzed.json").write_text(json.dumps({"min_k": 1, "epw": 4, "effective_horizon": 9.0}))
    (mdp / "consolidated_gorp_bounds.json").write_text(
        json.dumps({"sample_complexity": 512, "effective_horizon": 4.5, "k_results": {}})
    )
    for k, median in ((1, 480.0), (2, None)):  # their program writes infinity as null
        content = {"median_sample_complexity": median, "median_final_return": 1.0, "timesteps_per_iteration": 120}
        (mdp / f"gorp_{k}.json").write_text(json.dumps(content))
    sticky = {"num_states": 8, "min_k": 2, "epw": 4, "optimal_return": 1.0, "greedy_returns": [0.5, 1.0]}
    (mdp / "consolidated_analyzed_sticky_0.25.json").write_text(json.dumps(sticky))
    np.save(mdp / "exploration_policy.npy", np.full((4, 5, 2), 0.5, np.float32))
    return folder


def test_everything_that_is_published_is_found(bridge: Path, study: Path) -> None:
    found = original(bridge)
    lock, pong = found.by_name[LOCK], found.by_name["pong_10_fs30"]
    assert (lock.num_states, lock.num_actions, lock.horizon) == (4, 2, 4)
    assert (lock.min_k, lock.epw, lock.effective_horizon, lock.bound) == (1, 4, 4.5, 512)
    assert lock.gorp == {"1": 480, "2": None}
    assert lock.policies == ["exploration_policy.npy"]
    assert lock.sticky == Sticky(num_states=8, min_k=2, epw=4, needed={"ppo": 5000, "sqirl": None})  # the file first
    assert pong.sticky == Sticky(num_states=90, needed={"sqirl": 6000})
    assert lock.needed == {"ppo": 1000, "dqn": None, "gorp": 900}
    assert lock.fingerprint == study_data(study).analyses[LOCK].fingerprint
    assert pong.fingerprint is None
    assert found.notes == []


def test_beside_ours(bridge: Path, study: Path) -> None:
    found = beside(original(bridge), study_data(study))
    (row,) = found.rows
    assert row.same_table
    assert (row.num_states.theirs, row.num_states.ours) == (4, 4)
    assert (row.epw.theirs, row.epw.ours) == (4, 4)
    assert row.effective_horizon.theirs == 4.5
    assert row.is_exact
    assert row.needed["gorp"].ours is not None
    assert found.only_theirs == ("pong_10_fs30",)
    assert found.num_only_ours == 1
    assert {each.figure: each.num_equal for each in found.agreements}["states"] == 1


def test_imported_and_shown(bridge: Path, study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "published"
    assert main(["dataset", "import", str(bridge), "--out", str(out), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["mdps"]) == 2
    shutil.rmtree(bridge)
    for place in (out, out):  # it is read back without the authors' folder
        assert main(["evaluate", str(study), "--published", str(place), "--resamples", "50", "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["beside_published"]["rows"]
        assert row["name"] == LOCK
    assert main(["evaluate", str(study), "--published", str(out), "--resamples", "50"]) == 0
    text = capsys.readouterr().out
    assert "Beside the published data set: 1 MDP in both" in text
    assert "The same table, state by state: 1 of 1" in text
    assert main(["evaluate", str(out), "--resamples", "50", "--json"]) == 0  # on its own
    assert json.loads(capsys.readouterr().out)["counts"]["num_mdps"] == 2
    pytest.importorskip("jinja2")
    assert main(["report", str(study), "--published", str(out), "--out", str(tmp_path / "report")]) == 0
    page = (tmp_path / "report" / "published.html").read_text()
    assert f"{LOCK}</a>" in page
    assert "4.50 / " in page
    assert 'href="published.html"' in (tmp_path / "report" / "index.html").read_text()


def test_a_report_without_it_has_no_such_page(study: Path, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    assert main(["report", str(study), "--out", str(tmp_path / "report")]) == 0
    assert not (tmp_path / "report" / "published.html").exists()
    assert "published.html" not in (tmp_path / "report" / "index.html").read_text()


def test_the_folder_of_mdps_alone(bridge: Path) -> None:
    found = original(bridge / "mdps")
    assert [mdp.name for mdp in found.mdps] == [LOCK]
    assert found.mdps[0].needed == {}


def test_shaped_gridworlds_are_in_a_folder_of_their_own(bridge: Path) -> None:
    """Their tables do not say a horizon; the summary does."""
    name = "MiniGrid-Tiny-DistanceShaped-v0"
    folder = bridge / "mdps_with_reward_shaping" / name
    folder.mkdir(parents=True)
    np.savez(folder / "consolidated.npz", transitions=np.array([[0, -1]]), rewards=np.array([[0, 1]], np.float32))
    shaped = LINE.replace(LOCK, name).replace("atari,base,4,2,4", "minigrid,reward_shaping,40,2,2")
    published_file(bridge / "summary.csv", (LINE, shaped))
    found = original(bridge)
    assert found.by_name[name].fingerprint is not None
    assert (found.by_name[name].num_states, found.by_name[name].horizon) == (1, 40)
    assert found.notes == [f"{name}: states in its table: 1, in summary.csv: 2"]
    shutil.copytree(bridge / "mdps" / LOCK, folder.parent / LOCK)
    with pytest.raises(EfhorizonError, match=f"{LOCK}: there is .* already"):
        original(bridge)


def test_gorp_alone_and_never_within_its_budget(bridge: Path, study: Path) -> None:
    """Without a summary the files of single k count; with none within the budget GORP never succeeded."""
    (bridge / "summary.csv").unlink()
    (row,) = beside(original(bridge), study_data(study)).rows
    assert row.needed["gorp"].theirs == 480
    (bridge / "mdps" / LOCK / "gorp_1.json").unlink()
    (row,) = beside(original(bridge), study_data(study)).rows
    assert row.needed["gorp"].theirs == math.inf


def test_a_pickle_is_left_out_and_not_opened(bridge: Path, tmp_path: Path) -> None:
    proof = tmp_path / "executed"

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (os.mkdir, (str(proof),))

    mdp = bridge / "mdps" / LOCK
    np.savez(mdp / "consolidated.npz", transitions=np.array([Evil()], object), rewards=np.zeros((1, 1), np.float32))
    np.save(mdp / "exploration_policy.npy", np.array([Evil()], object))
    found = original(bridge)
    assert not proof.exists()
    assert found.by_name[LOCK].fingerprint is None
    assert found.by_name[LOCK].policies == []
    assert len(found.notes) == 2


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("summary.csv", "a,b\n1,2\n", "not a summary.csv"),
        ("summary_sticky.csv", "a,b\n1,2\n", "a line has no mdp_name"),
        ("summary_sticky.csv", "mdp_name,k_min\nx,1\nx,2\n", "x appears twice"),
        (f"mdps/{LOCK}/consolidated_analyzed_sticky_0.25.json", "[1]", "not a published JSON file"),
        (f"mdps/{LOCK}/consolidated_analyzed.json", "[1]", "not a published JSON file"),
        (f"mdps/{LOCK}/consolidated_gorp_bounds.json", "{", "not a published JSON file"),
        (f"mdps/{LOCK}/consolidated_analyzed.json", '{"min_k": -1}', "min_k must be"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    bridge: Path, file: str, content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (bridge / file).write_text(content)
    assert main(["dataset", "import", str(bridge), "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_empty_folder_and_a_folder_of_something_else(
    bridge: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["dataset", "import", str(tmp_path / "empty")]) == 1
    assert "not the published data set" in capsys.readouterr().err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    assert main(["dataset", "import", str(bridge), "--out", str(tmp_path / "mine")]) == 1
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
