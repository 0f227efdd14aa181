"""The study: what is planned, forecast, done once, left out, killed and resumed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from efhorizon import UnknownNameError, catalog
from efhorizon.agents.tabular.gorp_search import BUDGET
from efhorizon.build.explore import Budget
from efhorizon.build.search_records import FILES, Commit
from efhorizon.build.target import catalogue_target
from efhorizon.commands import demo as demonstration
from efhorizon.commands import main
from efhorizon.io.decode import encoded_record
from efhorizon.study import rates as _rates
from efhorizon.study import stages as study
from efhorizon.study import sweep
from efhorizon.study.forecast import Span, forecast, largest
from efhorizon.study.plan import Case, Plan, environment_names
from efhorizon.study.pool import TaskProgress, TaskResult, run_tasks
from efhorizon.study.results import Results
from efhorizon.study.sizes import Size, known_size, search_state
from efhorizon.study.tasks import RunPlan, RunTask
from efhorizon.suites import minigrid, registry

pytest.importorskip("minigrid")
DOCS = Path(__file__).parents[2] / "docs"
SMALL, SMALLER = "MiniGrid-Empty-5x5-v0", "MiniGrid-LavaGapS5-v0"  # 32 and 16 states
GORP = (RunPlan("gorp", "k1"),)


def plan(out: Path, *names: str, runs: tuple[RunPlan, ...] = GORP, **more: object) -> Plan:
    return Plan(out, names or (SMALL, SMALLER), runs=runs, max_k=1, **more)  # type: ignore[arg-type]


def statuses(result: study.StudyResult) -> dict[tuple[str, str], str]:
    return {(outcome.name, outcome.stage): outcome.status for outcome in result.outcomes}


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, study.StudyResult]:
    """A finished study of two gridworlds, which is not to be changed."""
    out = tmp_path_factory.mktemp("study") / "s"
    return out, study.study(plan(out))


@pytest.fixture
def made(made_once: tuple[Path, study.StudyResult], tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(made_once[0], tmp_path / "made"))


# Names and plans


def test_suites_stand_for_their_environments() -> None:
    assert environment_names([SMALL, SMALL]) == (SMALL,)
    assert len(environment_names(["minigrid"])) == len(catalog.entries("minigrid"))
    assert len(environment_names(["all", SMALL])) == len(catalog.entries())
    with pytest.raises(UnknownNameError, match="pong_10_fs30"):
        environment_names(["pong_11_fs30"])


def test_horizons_of_one_search_follow_each_other(tmp_path: Path) -> None:
    given = ("pong_20_fs30", SMALL, "pong_10_fs30", "breakout_10_fs30")
    names = [target.id for target in plan(tmp_path, *given).targets()]
    assert names == ["pong_10_fs30", "pong_20_fs30", SMALL, "breakout_10_fs30"]


def test_images_may_get_other_runs(tmp_path: Path) -> None:
    given = plan(tmp_path, runs=(RunPlan("ppo"),), image_runs=(RunPlan("ppo", "rollout128", 1, 10),))
    tasks = given.tasks(Case(catalogue_target("freeway_10_fs30")))
    assert [(task.network, task.setting, task.seeds, task.max_steps) for task in tasks] == [
        ("image", "rollout128", (0,), 10)
    ]
    assert [task.setting for task in given.tasks(Case(catalogue_target(SMALL)))] == ["rollout128", "rollout1280"]


def test_the_demo_is_of_all_suites() -> None:
    suites = [catalog.entry(name).suite for name in demonstration.NAMES]
    assert set(suites) == set(catalog.suite_names())
    assert len(suites) >= 10
    given = demonstration.demo_plan(Path("demo"))
    assert {runs.algorithm for runs in given.runs} == {"gorp", "ppo", "dqn"}
    assert "reduced" in str(given.note)


# What is known beforehand


def test_known_numbers_of_states_are_those_of_the_documents() -> None:
    listed = re.findall(r"^\| (MiniGrid-\S+) \| ([\d,]+) \| \d \|", (DOCS / "minigrid-states.md").read_text(), re.M)
    states = {name: count for name, (count, _) in minigrid.GRIDWORLDS.items()}
    assert {name: int(count.replace(",", "")) for name, count in listed} == states
    rows = re.findall(
        r"^\| (?!MiniGrid)(\S+)_\d+_(fs\d+) \| (\d+) \| ([\d,]+) \|", (DOCS / "survey.md").read_text(), re.M
    )
    surveyed = {
        entry.search_name: (survey.horizon, survey.num_states)
        for entry in (*catalog.entries("atari"), *catalog.entries("procgen"))
        if (survey := registry.suite(entry.suite).survey(entry)) is not None
    }
    assert {f"{game}_{skip}": (int(h), int(n.replace(",", ""))) for game, skip, h, n in rows} == surveyed


def test_sizes_are_honest(tmp_path: Path) -> None:
    def size(name: str) -> Size:
        return known_size(catalogue_target(name), tmp_path)

    assert size("MiniGrid-DoorKey-5x5-PickupShaped-v0") == Size(264, 264, "list")
    assert size("pong_20_fs30") == Size(20, 7_198, "survey")  # the survey went to horizon 33
    assert size("pong_50_fs30") == Size(7_198, None, "survey")
    assert size("maze_easy_l2_30_fs1") == Size(1, None, "nothing")


def test_a_search_on_disk_tells_its_size(tmp_path: Path) -> None:
    folder = tmp_path / "searches" / "pong_fs30-0123456789ab"
    folder.mkdir(parents=True)
    sizes = {"transitions": 60, "rewards": 120, "state_keys": 192, "state_screens": 48, "state_index": 192}
    files = {name: (sizes.get(name, 0), 0) for name in FILES}
    (folder / "commit.json").write_bytes(encoded_record(Commit([0, 1, 4, 9], 5, 2.5, files)))
    search = search_state(catalogue_target("pong_10_fs30"), tmp_path)
    assert search is not None
    assert (search.num_states, search.states_within(2), search.states_within(3)) == (12, 4, 9)
    assert search.states_within(4) is None
    assert known_size(catalogue_target("pong_10_fs30"), tmp_path) == Size(12, 7_198, "survey")
    (folder / "commit.json").write_text("cut sho")
    assert search_state(catalogue_target("pong_10_fs30"), tmp_path) is None


# The forecast


def test_spans() -> None:
    assert Span(1, 2) + Span(3, None) == Span(4, None)
    assert Span(1, 2).times(3) == Span(3, 6)
    assert largest([Span(1, 9), Span(2, 3)]) == Span(2, 9)
    assert largest([Span(1, None), Span(2, 3)]) == Span(2, None)


def test_the_forecast_is_its_rates_times_the_plan(tmp_path: Path) -> None:
    """MiniGrid-Empty-5x5-v0: 32 states and 3 actions; PPO with two settings and five seeds, two processes."""
    expected = forecast(plan(tmp_path, SMALL, runs=(RunPlan("ppo", max_steps=100_000),), num_workers=2))
    build, analyze, ppo, _ = expected.stages
    searching = 32 * 3 / minigrid.MINIGRID.costs.pairs_a_second / 2
    verifying = searching  # every pair once more, at least
    assert build.seconds.low == pytest.approx(minigrid.MINIGRID.costs.build_seconds + searching + verifying)
    assert (build.num_done, build.num_left) == (0, 1)
    low, high = _rates.ANALYSIS_SECONDS[1], _rates.ANALYSIS_SECONDS_A_PAIR[1]
    assert analyze.seconds.high == pytest.approx(low + high * 32 * 100 * 3)
    compilation, rate = _rates.COMPILATION_SECONDS["ppo"], _rates.DENSE_STEPS_A_SECOND["ppo"]
    assert ppo.num_left == 10
    assert ppo.seconds.low == pytest.approx(compilation + 5 * 10_000 / rate)  # two jobs side by side
    assert ppo.seconds.high == pytest.approx(compilation + 5 * 100_000 / rate)
    assert expected.seconds.low == pytest.approx(sum(stage.seconds.low for stage in expected.stages))
    assert expected.sizes == {SMALL: Size(32, 32, "list")}


def test_a_budget_bounds_what_nobody_knows(tmp_path: Path) -> None:
    name = "maze_easy_l2_30_fs1"
    assert forecast(plan(tmp_path, name)).seconds.high is None
    build = forecast(plan(tmp_path, name, budget=Budget(max_minutes=3))).stages[0]
    verifying = 6 * 180  # all that is found in three minutes, with the steps from reset, and that may be twice as slow
    assert build.seconds.high == pytest.approx(180 + verifying + 2 * registry.suite("procgen").costs.build_seconds)
    assert forecast(plan(tmp_path, name, budget=Budget(max_states=1_000))).sizes[name] == Size(1, 1_000, "nothing")


def test_forecasts_are_printed_and_write_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "study"
    assert main(["study", SMALL, "pong_50_fs30", "--forecast", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "build and verify" in text
    assert "Unknown number of states: pong_50_fs30." in text
    assert main(["study", SMALL, "pong_50_fs30", "--forecast", "--json", "--out", str(out)]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [stage["stage"] for stage in content["stages"]] == [
        "build and verify",
        "analyze",
        "gorp",
        "ppo",
        "dqn",
        "report",
    ]
    assert content["environments"][1] == {"name": "pong_50_fs30", "states": [7_198, None], "known_from": "survey"}
    assert not out.exists()


# The study itself


def test_everything_is_made_once(made_once: tuple[Path, study.StudyResult]) -> None:
    out, first = made_once
    assert set(statuses(first).values()) == {"made"}
    assert len(first.outcomes) == 6
    assert first.num_complete == 2
    files = {path: path.stat().st_mtime_ns for path in out.rglob("*.json") if path.name != "study.json"}
    again = study.study(plan(out))
    assert set(statuses(again).values()) == {"kept"}
    assert {path: path.stat().st_mtime_ns for path in files} == files
    left = forecast(plan(out))
    assert left.is_done
    assert [stage.num_done for stage in left.stages[:3]] == [2, 2, 2]
    noted = json.loads((out / "study.json").read_text())
    assert noted["plan"]["names"] == [SMALL, SMALLER]
    assert noted["plan"]["runs"] == [{"algorithm": "gorp", "settings": ["k1"]}]
    assert {outcome["status"] for outcome in noted["outcomes"]} == {"kept"}


def test_only_what_no_longer_matches_is_made_again(made: Path) -> None:
    (made / "analyses" / f"{SMALL}.json").write_text("damaged")
    (row,) = (made / "rows").glob(f"{SMALLER}*")
    row.unlink()
    again = statuses(study.study(plan(made)))
    assert {key for key, status in again.items() if status == "made"} == {(SMALL, "analyze"), (SMALLER, "run")}


def test_one_failure_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = study.write_analysis

    def failing(results: Results, mdp: object, **more: object) -> object:
        if mdp.metadata["id"] == SMALL:  # type: ignore[attr-defined]
            raise RuntimeError("it rains")
        return written(results, mdp, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(study, "write_analysis", failing)
    result = study.study(plan(tmp_path))
    assert result.num_complete == 1
    (failed,) = result.with_status("failed")
    assert (failed.name, failed.stage) == (SMALL, "analyze")
    assert re.fullmatch(r"unexpected RuntimeError: it rains \(test_study\.py:\d+\)", failed.text)
    assert (SMALL, "run") not in statuses(result)
    assert statuses(result)[SMALLER, "run"] == "made"


def test_what_is_too_large_is_left_out(tmp_path: Path) -> None:
    result = study.study(plan(tmp_path, budget=Budget(max_states=20)))
    (left_out,) = result.with_status("left out")
    assert left_out.text == "32 states, more than --max-states 20"  # known, so nothing was searched
    assert not (tmp_path / "tables" / SMALL).exists()
    assert statuses(result)[SMALLER, "run"] == "made"


def test_a_budget_that_ends_a_search_leaves_longer_horizons_out(tmp_path: Path) -> None:
    pytest.importorskip("ale_py")
    given = plan(tmp_path, "freeway_20_fs30", "freeway_10_fs30", runs=(), budget=Budget(max_states=50))
    first, second = study.study(given).outcomes
    assert (first.name, first.status) == ("freeway_10_fs30", "left out")
    assert first.text.startswith("stopped by --max-states 50")
    assert (second.name, second.text) == ("freeway_20_fs30", "a shorter horizon of the same game was left out")


def test_the_command_reports_and_says_how_it_went(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jinja2")
    arguments = ["study", SMALL, SMALLER, "--algos", "gorp", "--max-k", "1", "--out", str(tmp_path / "s")]
    assert main([*arguments, "--max-states", "20", "--json"]) == 3
    captured = capsys.readouterr()
    content = json.loads(captured.out)
    assert (content["environments"], content["complete"]) == (2, 1)
    assert Path(content["report"]).is_file()
    assert "left out" in captured.err
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert "2 of 2 environments complete" in captured.out
    assert f"report: {tmp_path / 's' / 'report' / 'index.html'}" in captured.out.replace("\n", "")
    assert f"kept     {SMALLER}" in captured.err
    assert SMALLER in (tmp_path / "s" / "report" / "mdps.html").read_text()


def test_a_failure_gives_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(*_: object, **__: object) -> object:
        raise MemoryError

    monkeypatch.setattr(study, "write_analysis", failing)
    assert main(["study", SMALL, "--algos", "none", "--out", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert f"failed: {SMALL} (analyze): out of memory" in captured.out
    assert "no report" in captured.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["no_such_game"], 2, "no environment is called"),
        ([SMALL, "--seeds", "0"], 2, "--seeds: must be at least 1"),
        ([SMALL, "--max-minutes", "0"], 2, "--max-minutes: must be above 0"),
        ([SMALL, "--algos", "a2c"], 2, "no algorithm is called 'a2c'"),
        ([SMALL, "--workers", "-1"], 2, "--workers: must be at least 1"),
    ],
)
def test_bad_arguments_are_one_line(
    arguments: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", *arguments, "--out", str(tmp_path / "s")]) == code
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "s").exists()


def test_other_folders_are_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "precious").write_text("x")
    assert main(["study", SMALL, "--algos", "none", "--out", str(tmp_path)]) == 1
    assert "not a results directory" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


# Processes


def task(made: Path, name: str, algorithm: sweep.Algorithm, setting: str, max_steps: int = 1) -> RunTask:
    changes = sweep.named_settings(algorithm, setting)[setting]
    return RunTask(name, made / "tables" / name, "dense", algorithm, "table", setting, changes, (0,), max_steps)


def test_a_worker_that_dies_costs_one_task(made: Path) -> None:
    pytest.importorskip("torch")
    endless = task(made, SMALLER, "dqn", "exploration1", 10**9)
    short, missing = task(made, SMALL, "gorp", "k2", BUDGET), task(made, "nothing", "gorp", "k2", BUDGET)

    def kill(of: RunTask, progress: TaskProgress) -> None:
        assert of is endless
        for child in psutil.Process().children(recursive=True):
            if any("spawn_main" in part for part in child.cmdline()):
                os.kill(child.pid, signal.SIGKILL)

    results = run_tasks([endless, short, missing], made, num_workers=1, on_progress=kill)
    reasons = {result.task.algorithm + result.task.id: result.failure for result in results}
    assert "exit code -9" in str(reasons[f"dqn{SMALLER}"])
    assert reasons[f"gorp{SMALL}"] is None
    assert "nothing" in str(reasons["gorpnothing"])
    assert [row.id for row in Results(made).rows() if row.setting != "k1"] == [SMALL]


def children_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        return []  # it has ended by itself


def test_killed_at_any_moment_it_goes_on(made: Path, tmp_path: Path) -> None:
    """What is there in the end does not depend on kills, and no process outlives its study."""
    names = (SMALL, SMALLER)
    resumed = tmp_path / "killed"
    command = [sys.executable, "-m", "efhorizon", "study", *names, "--algos", "gorp", "--max-k", "1"]
    command += ["--workers", "1", "--json", "--out", str(resumed)]
    for pause in (1.5, 2.5, 3.5):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(pause)
        children = children_of(process)
        process.kill()
        process.wait()
        _, alive = psutil.wait_procs(children, timeout=10)
        assert not alive
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["complete"] == 2
    for name in names:
        whole, killed = (json.loads((out / "analyses" / f"{name}.json").read_text()) for out in (made, resumed))
        assert whole["table"]["fingerprint"] == killed["table"]["fingerprint"]
        assert whole["analysis"] == killed["analysis"]
    k1_rows = [row for row in Results(resumed).rows() if row.setting == "k1"]
    expected = {row.id: row.sample_complexity for row in Results(made).rows()}
    assert {row.id: row.sample_complexity for row in k1_rows} == expected


def test_rows_that_somebody_else_makes_are_waited_for(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from efhorizon.study import pool as _workers

    (light,) = plan(made, runs=(RunPlan("gorp", "k2"),)).tasks(Case(catalogue_target(SMALL)))
    task = light.loaded()
    results = Results.made(made)
    monkeypatch.setattr(_workers, "_SECONDS_BETWEEN_LOOKS", 0.05)
    ended: list[TaskResult] = []
    pauses: list[float] = []
    claim = results.claimed([task.key(0)])
    claim.__enter__()

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            claim.__exit__(None, None, None)  # the other one gives up

    monkeypatch.setattr(_workers.time, "sleep", sleep)
    run_tasks([light], made, num_workers=1, on_result=ended.append)
    assert pauses == [0.05, 0.05]
    assert [result.failure for result in ended] == [None]
    assert results.has(task.key(0))
