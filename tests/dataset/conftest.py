"""A small study with a table of each kind, published once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import web

from efhorizon.commands import main
from efhorizon.dataset import transfer
from efhorizon.io.tables import save
from efhorizon.mdp import TabularMDP
from efhorizon.study.results import Results

LOCK = "freeway_10_fs30"  # a lock under the name of a game, so that its screens are its owner's
MAZE = "maze_easy_l0_30_fs1"


def lock(name: str, suite: str, steps: int) -> TabularMDP:
    """A combination lock with a screen for each state."""
    screens = np.arange(steps * 8 * 8 * 3, dtype=np.uint8).reshape(steps, 8, 8, 3)
    return TabularMDP(
        [[0, state + 1] for state in range(steps - 1)] + [[0, -1]],
        [[0, 0]] * (steps - 1) + [[0, 1]],
        steps,
        screens=screens,
        screen_mapping=np.arange(steps),
        metadata={"id": name, "suite": suite, "game": name.partition("_")[0]},
    )


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two analyzed tables, one of them with runs of GORP, and one table that was not analyzed."""
    folder = tmp_path_factory.mktemp("study")
    Results.made(folder)
    for name, suite, steps in ((LOCK, "atari", 4), (MAZE, "procgen", 3), ("other", "minigrid", 2)):
        save(lock(name, suite, steps), folder / "tables" / name)
    given = ["--tables", str(folder / "tables"), "--results", str(folder)]
    assert main(["analyze", LOCK, *given]) == 0
    assert main(["analyze", MAZE, *given]) == 0
    assert main(["train", LOCK, "--algo", "gorp", *given]) == 0
    return folder


@pytest.fixture(scope="session")
def dataset(study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That study, published."""
    out = tmp_path_factory.mktemp("published") / "dataset"
    assert main(["dataset", "publish", str(study), str(out)]) == 0
    return out


@pytest.fixture
def copy(dataset: Path, tmp_path: Path) -> Path:
    """A copy of the data set that a test may damage."""
    return Path(shutil.copytree(dataset, tmp_path / "copy"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no remote, and an empty working folder."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("EFHORIZON_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EFHORIZON_REMOTE", raising=False)
    monkeypatch.setattr(transfer, "PAUSES", (0.0,) * 4)
    return tmp_path / "cache"


@pytest.fixture
def served(copy: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[web.Web]:
    """The copy on a web server, which is the configured remote."""
    with web.serving(copy) as running:
        monkeypatch.setenv("EFHORIZON_REMOTE", running.address)
        yield running
