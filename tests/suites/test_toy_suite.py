"""A suite in a package of its own goes all the way, with nothing but its entry point: from `list` to the report."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from efhorizon import load

pytest.importorskip("torch")

PACKAGE = Path(__file__).parent.parent / "support" / "toy_suite_package"
FLAT, SEEN = "Corridor-v0", "gallery_6_fs1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where commands run; beside it the package as pip would install it."""
    path = tmp_path_factory.mktemp("toy")
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    installed = path / "installed" / "toy_suite-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n")
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
    ]
    (installed / "entry_points.txt").write_text("\n".join(lines))
    return path


def process(*arguments: object, cwd: Path) -> str:
    """The output of a fresh process, to which the package is known by PYTHONPATH only."""
    known = [str(cwd / "installed"), str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(known), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)
    assert result.returncode == 0, result.stderr
    assert "Warning" not in result.stderr
    return result.stdout


def run(*arguments: object, cwd: Path) -> str:
    return process("-m", "efhorizon", *arguments, cwd=cwd)


def run_json(*arguments: object, cwd: Path) -> Any:
    return json.loads(run(*arguments, "--json", cwd=cwd))


def picture_size(file: Path) -> tuple[int, int]:
    width, height = struct.unpack(">II", file.read_bytes()[16:24])
    return width, height


def test_it_is_listed(folder: Path) -> None:
    everything = run_json("list", cwd=folder)
    assert [entry["name"] for entry in everything[-2:]] == [FLAT, SEEN]
    assert [entry["gym_id"] for entry in everything[-2:]] == [f"BRIDGE/{FLAT}", f"BRIDGE/{SEEN}-v0"]
    listed = run("list", "--suite", "toy", cwd=folder)
    assert re.search(r"^toy\n.*\nCorridor-v0 +3 +1 +8 *\ngallery_T_fs1 +3 +1 +6 *\n\n2 environments", listed)


def test_tables_are_built_verified_analyzed_and_trained_on(folder: Path) -> None:
    built = run_json("build", FLAT, "--workers", 1, cwd=folder)
    assert (built["num_states_raw"], built["num_actions"], built["horizon"], built["verified"]) == (4, 3, 8, True)
    assert run_json("verify", f"tables/{FLAT}", cwd=folder)["verified"] is True
    provenance = load(folder / "tables" / FLAT).metadata["provenance"]
    assert (provenance["suite"], provenance["packages"], provenance["code"]) == ("toy", {"toy-suite": "1.0"}, "toy 1")
    assert run_json("build", SEEN, "--horizon", 9, "--workers", 1, cwd=folder)["id"] == "gallery_9_fs1"
    analysis = run_json("analyze", FLAT, cwd=folder)
    assert (analysis["optimal_return"], analysis["effective_horizon"]["kind"]) == (1.0, "exact")
    assert run_json("gorp", FLAT, "--m", 10, "--runs", 5, cwd=folder)["success_rate"] == 1.0
    assert run_json("gorp", "--live", SEEN, "--m", 10, cwd=folder)["returns"] == [1.0]
    for algorithm, setting in (("ppo", "rollout128"), ("dqn", "exploration1")):
        run(
            "train",
            FLAT,
            "gallery_9_fs1",
            "--algo",
            algorithm,
            "--settings",
            setting,
            "--steps",
            200,
            "--seeds",
            1,
            cwd=folder,
        )
    assert len(list((folder / "results" / "rows").iterdir())) == 4


@pytest.mark.slow
def test_a_study_and_its_report(folder: Path) -> None:
    run("study", FLAT, "--steps", 2000, "--seeds", 1, "--out", "study", cwd=folder)
    run("study", "toy", "--algos", "gorp", "--out", "study", cwd=folder)
    outcomes = json.loads((folder / "study" / "study.json").read_text())["outcomes"]
    assert {(each["id"], each["stage"], each["status"]) for each in outcomes} == {
        (name, stage, status)
        for name, status in ((FLAT, "kept"), (SEEN, "made"))
        for stage in ("build", "analyze", "run")
    }
    report = folder / "study" / "report"
    front = (report / "index.html").read_text()
    assert "Toy corridors 2" in front
    assert "M-4-1.5h8v3h-8Z" in front  # its mark among the points
    assert len(re.findall(r'data-suite="toy".*Toy corridors', (report / "mdps.html").read_text())) == 2
    for name, size in ((FLAT, (45, 36)), (SEEN, (36, 36))):
        (page,) = (file.read_text() for file in (report / "mdps").glob(f"{name}-*.html"))
        assert "Toy corridors" in page
        assert "onward" in page
        assert f"efhorizon build {name}" in page
        (start,) = (report / "pictures").glob(f"{name}-*-start.png")
        assert picture_size(start) == size
        assert start.name in page


def test_gymnasium_knows_it_also_where_the_package_was_imported_first(folder: Path) -> None:
    program = (
        "import toy_suite, gymnasium, efhorizon\n"
        "efhorizon.register_environments()\n"
        "for name in ('Corridor-v0', 'gallery_6_fs1-v0'):\n"
        "    env = gymnasium.make('BRIDGE/' + name, render_mode='rgb_array')\n"
        "    print(env.reset()[0].shape, env.render().shape)\n"
    )
    assert process("-c", program, cwd=folder) == "(5,) (36, 45, 3)\n(36, 36, 3) (36, 36, 3)\n"
