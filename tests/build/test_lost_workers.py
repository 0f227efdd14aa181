"""A worker that is killed, and two builds at once in one folder: one line each, nothing lost, no hang."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from efhorizon.build import batched_search
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target
from efhorizon.engines.local import LocalEngine
from efhorizon.engines.worker_process import WorkerError
from efhorizon.errors import StoreError

TARGET = catalogue_target("lattice-3x14")


def fingerprint(out: Path, **options: object) -> str:
    mdp = build(TARGET, Options(out, verify_episodes=0, **options)).mdp  # type: ignore[arg-type]
    assert mdp is not None
    return mdp.fingerprint()


def end_yourself(doer: list[int]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_task_that_kills_its_worker_is_one_line() -> None:
    engine = LocalEngine(list, 2, advice="; the same command continues")
    engine.submit(len)
    engine.submit(end_yourself)
    try:
        assert engine.next_result() == 0
        with pytest.raises(WorkerError) as caught:
            engine.next_result()
    finally:
        engine.close()
    line = str(caught.value)
    assert line.startswith("a worker process ended with exit code -9 (killed, or out of memory?)")
    assert line.endswith("; the same command continues")
    assert "\n" not in line


def test_a_build_whose_worker_is_killed_continues(tmp_path: Path) -> None:
    expected = fingerprint(tmp_path / "whole", num_workers=1)
    killed: list[int] = []

    def on_progress(progress: object) -> None:
        children = [each for each in psutil.Process().children() if "spawn_main" in " ".join(each.cmdline())]
        if not killed and children and progress.num_expanded > 100:  # type: ignore[attr-defined]
            children[-1].kill()
            killed.append(children[-1].pid)

    with pytest.raises(WorkerError, match=r"^a worker process ended with exit code -9") as caught:
        build(TARGET, Options(tmp_path / "out", verify_episodes=0, num_workers=2), on_progress=on_progress)
    assert killed
    assert "\n" not in str(caught.value)
    assert fingerprint(tmp_path / "out", num_workers=2) == expected


@pytest.mark.parametrize("batched", [True, False])
def test_two_builds_at_once_in_one_folder(batched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is refused in one line while the first works; the first is not disturbed."""
    monkeypatch.setattr(batched_search, "_SECONDS_A_REPORT", 0.0)
    expected = fingerprint(tmp_path / "alone", batched=batched)
    refused: list[str] = []

    def on_progress(progress: object) -> None:
        if not refused:
            with pytest.raises(StoreError) as caught:
                fingerprint(tmp_path / "out", batched=batched)
            refused.append(str(caught.value))

    first = build(TARGET, Options(tmp_path / "out", verify_episodes=0, batched=batched), on_progress=on_progress)
    assert first.mdp is not None
    assert first.mdp.fingerprint() == expected
    assert "another build is working on this search" in refused[0]
    assert "\n" not in refused[0]
