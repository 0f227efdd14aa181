"""The README's first answer is what the program prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def test_the_first_answer_is_what_is_printed(tmp_path: Path) -> None:
    """Its forecast changes with the study's rows: if this fails, copy the lines that are printed now."""
    pytest.importorskip("ale_py")
    shown = README.read_text(encoding="utf-8").split("## A first answer")[1].split("```console\n")[1].split("```")[0]
    lines = [line.strip() for line in shown.splitlines() if line.strip() != "..."]
    assert lines
    command = [sys.executable, "-m", "efhorizon"]
    subprocess.run([*command, "build", "freeway_10_fs30"], cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run(
        [*command, "analyze", "freeway_10_fs30"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert [line for line in lines if line not in done.stdout] == []
