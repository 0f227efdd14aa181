"""Every command that reads a table refuses a damaged one in one line, and stores nothing that was made from it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from damaged_files import SHARD_DAMAGE, as_older_store, table_with_everything

from efhorizon import TabularMDP
from efhorizon.commands import main
from efhorizon.io.tables import save
from efhorizon.mdp import MAX_HORIZON

NAME = "MiniGrid-Empty-5x5-v0"
COMMANDS = (
    f"show {NAME}",
    f"show {NAME} --image start.png",
    f"analyze {NAME} --json",
    f"export {NAME} out.npz",
    f"train {NAME} --algo ppo --settings rollout128 --seeds 1 --steps 1000 --results out",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("minigrid")
    path = tmp_path_factory.mktemp("damaged")
    assert main(["build", NAME, "--out", str(path / "tables"), "--workers", "1", "--episodes", "1"]) == 0
    return path


@pytest.fixture
def table(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(built / "tables" / NAME, tmp_path / "tables" / NAME))


def failed(capsys: pytest.CaptureFixture[str], *arguments: str, exit_code: int = 1) -> str:
    capsys.readouterr()
    assert main(list(arguments)) == exit_code
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.parametrize("is_older", [False, True], ids=["new", "older"])
@pytest.mark.parametrize("damage", SHARD_DAMAGE.values(), ids=SHARD_DAMAGE)
def test_damaged_screens(
    table: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], object], is_older: bool
) -> None:
    if is_older:
        as_older_store(table)
    damage(table / "screens" / "c" / "0" / "0" / "0" / "0")
    for command in COMMANDS:
        assert "array 'screens' is damaged" in failed(capsys, *command.split())
    assert sorted(path.name for path in Path().iterdir() if path.name != "out") == ["tables"]
    assert not list(Path("out").rglob("*.json")) or not list(Path("out", "rows").rglob("*.json"))


def test_screens_in_another_order(table: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A file that is sound in itself, but of another table."""
    other = table_with_everything(np.random.default_rng(0))
    mdp = TabularMDP(other.transitions, other.rewards, 7, screens=other.screens, screen_mapping=other.screen_mapping)
    assert mdp.screens is not None
    upside_down = np.asarray(mdp.screens)[::-1]
    save(mdp, "tables/one")
    save(TabularMDP(mdp.transitions, mdp.rewards, 7, screens=upside_down, screen_mapping=mdp.screen_mapping), "two")
    shutil.copy("two/screens/c/0/0/0/0", "tables/one/screens/c/0/0/0/0")
    for command in ("show one --image x.png", "export one out.npz"):
        assert "array 'screens' is damaged (not what was written)" in failed(capsys, *command.split())
    assert not Path("x.png").exists()
    assert not Path("out.npz").exists()


@pytest.mark.parametrize("horizon", ["1000000", "2147483648", "9223372036854775808"])
def test_horizons_that_cannot_be_planned(table: Path, capsys: pytest.CaptureFixture[str], horizon: str) -> None:
    for command in ("analyze", "gorp", "build"):
        message = failed(capsys, command, NAME, "--horizon", horizon, exit_code=2)  # the option is wrong
        assert f"at most {MAX_HORIZON:,}" in message
