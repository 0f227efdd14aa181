"""Figure 4 from rows: medians, ranges, budgets, who is better, and the files that show it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from efhorizon import EfhorizonError
from efhorizon.agents.live.rollouts import EnvironmentName
from efhorizon.evaluation.live_curves import as_json, live_figures
from efhorizon.evaluation.source import study_data
from efhorizon.io.decode import write_record
from efhorizon.render.live_words import title, verdict
from efhorizon.render.markdown.live_page import live_files
from efhorizon.study.live_export import encoded_live, read_live
from efhorizon.study.live_runs import LiveProtocol, LiveRow, deep_tasks, gorp_tasks
from efhorizon.study.records import RunProvenance


def row(algorithm: str, seed: int, curve: list[Any], *, steps: int, **changes: Any) -> LiveRow:
    fields = {
        "id": "pong_27000_fs4",
        "algorithm": algorithm,
        "backend": "live",
        "setting": "one",
        "seed": seed,
        "steps": steps,
        "steps_played": steps,
        "is_complete": False,
        "best_return": max(point[1] for point in curve),
        "final_return": curve[-1][1],
        "learning_curve": curve,
        "wall_seconds": 1.0,
        "hyperparameters": {},
        "protocol": LiveProtocol(steps, 10),
        "provenance": RunProvenance(),
    }
    return LiveRow(**(fields | changes))


@pytest.fixture
def rows() -> list[LiveRow]:
    return [
        row("gorp", 0, [(0, -20.0, -20.0), (50, -10.0, -9.0)], steps=60),
        row("gorp", 1, [(0, -21.0, -20.0), (30, -15.0, -9.0)], steps=55),
        row("gorp", 2, [(0, -19.0, -19.0), (20, 5.0, 5.0)], steps=25, is_complete=True, protocol=LiveProtocol(60, 10)),
        row("ppo", 0, [(10, -21.0, None), (40, -16.0, -20.0)], steps=40),
        row("dqn", 0, [(10, -21.0, None), (30, 4.0, -20.0)], steps=30),
        row("ppo", 0, [(10, 3.0, None)], steps=10, id="CartPole-v1"),
    ]


def test_medians_ranges_and_budgets(rows: list[LiveRow]) -> None:
    pong, cartpole = live_figures(rows)
    gorp = pong.curve("gorp")
    assert gorp is not None
    assert (gorp.num_seeds, gorp.budget) == (3, 55)  # a run that has come to its end stays where it is
    assert gorp.at(0) == (-20, -21, -19)
    assert gorp.at(29) == (-20, -21, 5)
    assert gorp.at(30) == (-15, -20, 5)
    assert gorp.at(50) == gorp.at(10**9) == (-10, -15, 5)
    assert pong.common_budget == 30
    assert pong.beaten_by_gorp() == ("ppo",)  # -21 after 30 timesteps, and -15 is less than DQN's 4
    assert (cartpole.common_budget, cartpole.beaten_by_gorp()) == (None, ())
    said = as_json([pong])[0]
    assert said["beaten_by_gorp"] == ["ppo"]
    assert (title(pong), title(cartpole)) == ("Pong", "CartPole-v1")
    assert "better than one of those that were run in 1 (Pong)" in verdict([pong, cartpole], least=1)
    assert verdict([pong, cartpole]).startswith("Too early to say")


def test_files(rows: list[LiveRow], tmp_path: Path) -> None:
    file = tmp_path / "live.jsonl"
    file.write_bytes(encoded_live(rows))
    assert sorted(map(repr, read_live(file))) == sorted(map(repr, rows))
    assert read_live(tmp_path / "none.jsonl") == ()
    file.write_text(file.read_text()[:300])
    with pytest.raises(EfhorizonError, match=r"live\.jsonl line 1"):
        read_live(file)
    files = live_files(live_figures(rows))
    page = files["full-length.md"]
    assert "additional three games" in page
    assert "| Pong | 55 \N{MULTIPLICATION SIGN} 3 |" in page
    assert [name for name in files if name != "full-length.md"] == [
        name for name in files if name.startswith("figures/live-")
    ]
    assert all("<svg" in content for name, content in files.items() if name.endswith(".svg"))
    assert live_files([]) == {}


def test_a_results_folder_shows_its_live_runs(rows: list[LiveRow], tmp_path: Path) -> None:
    for number, each in enumerate(rows):
        write_record(tmp_path / "live" / f"{number}.json", each)
    (tmp_path / "rows").mkdir()
    assert len(study_data(tmp_path).live) == len(rows)


def test_what_a_run_depends_on() -> None:
    name = EnvironmentName("pong_full")
    ppo = deep_tasks(name, "ppo", settings="paper", seeds=2, max_steps=100)
    assert [task.setting for task in ppo] == ["batch10000"] * 2
    assert ppo[0].hyperparameters["rollout_length"] * ppo[0].hyperparameters["num_envs"] == 10_000
    assert {task.hyperparameters["gamma"] for task in ppo} == {0.99}
    longer = deep_tasks(name, "ppo", settings="paper", seeds=2, max_steps=200)
    assert [task.file for task in ppo] == [task.file for task in longer]  # a longer run goes on
    short, long = (deep_tasks(name, "dqn", settings="paper", seeds=1, max_steps=n)[0] for n in (100, 200))
    assert short.file != long.file  # exploration falls over the run
    same = deep_tasks(name, "dqn", settings="paper", seeds=1, max_steps=100, schedule=200)[0]
    assert same.file == long.file
    assert gorp_tasks(name, k=1, m=2, seeds=1, max_steps=9)[0].id == "pong_27000_fs4"
    with pytest.raises(EfhorizonError, match="no live setting called 'x'"):
        deep_tasks(name, "ppo", settings="x", seeds=1, max_steps=1)
