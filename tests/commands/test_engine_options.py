"""`--engine`, `--address`, `--owners`, `--batched`: what goes together."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from efhorizon.__main__ import main


@pytest.mark.parametrize("given", [["--address", "auto"], ["--owners", "2"]])
def test_ray_options_go_with_ray(given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "MiniGrid-Empty-5x5-v0", "--out", str(tmp_path), *given]) == 2
    assert "--address and --owners go with --engine ray" in capsys.readouterr().err


def test_batched_does_not_go_with_ray(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["build", "MiniGrid-Empty-5x5-v0", "--out", str(tmp_path), "--engine", "ray", "--batched"]
    assert main(given) == 1
    assert "--batched does not go with --engine ray" in capsys.readouterr().err


def test_ray_that_is_not_installed_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["build", "lattice-2x3", "--out", str(tmp_path), "--engine", "ray"]) == 1
    assert "'ray' is not installed; install it with: pip install 'efhorizon[ray]'" in capsys.readouterr().err
