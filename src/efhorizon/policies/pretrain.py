"""Pretraining: PPO on live Procgen levels outside BRIDGE's, from settings to a file that `train --initial` takes.

    OUT.npz              the network under Stable-Baselines3's names, and a description
    OUT.checkpoint.npz   the state of the run, from which it goes on

The number of timesteps is not part of the settings: a run that is asked for more goes on from its checkpoint. It ends
with the first rollout that reaches the number asked for.
"""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch

from efhorizon.agents.deep.device import torch_device
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.io.array_archive import read_archive, write_archive
from efhorizon.io.machine import num_cores
from efhorizon.io.npy import first_line
from efhorizon.policies.actor_critic import begin_thread
from efhorizon.policies.pretraining_run import PretrainingRun, Report
from efhorizon.policies.pretraining_settings import PretrainingError, PretrainingSettings
from efhorizon.suites.procgen import PROCGEN

FORMAT = "efhorizon-pretrained-1"
CHECKPOINT_FORMAT = "efhorizon-pretraining-1"
_WHAT = "a checkpoint of pretraining"
_MAX_BYTES = 1 << 30  # of a checkpoint; one with 64 environments has 10 MB
_SECONDS_A_CHECKPOINT = 60.0


@dataclasses.dataclass(frozen=True)
class Pretrained:
    """The result of a run."""

    path: Path
    checkpoint: Path
    settings: PretrainingSettings
    report: Report
    device: str
    seconds: float  # of this call
    steps_made: int  # in this call


def pretrain(
    settings: PretrainingSettings,
    out: Path,
    *,
    steps: int,
    device: str = "auto",
    threads: int | None = None,
    on_progress: Callable[[Report], None] | None = None,
) -> Pretrained:
    """Train until `steps` timesteps, or go on from the checkpoint beside `out`; write the network to `out`."""
    if steps < 1:
        raise PretrainingError(f"timesteps must be at least 1, got {steps}")
    chosen, checkpoint, began = torch_device(device), checkpoint_path(out), time.monotonic()
    check_writable(out)
    if out.exists() and not checkpoint.exists():
        raise StoreError(
            f"{out}: is there already, without its checkpoint {checkpoint.name}; remove it or choose another name"
        )
    with _one_thread():
        run = PretrainingRun(settings, chosen, threads or num_cores())
        try:
            report = _resumed(run, checkpoint) if checkpoint.exists() else None
            first = run.steps
            report = _trained(run, checkpoint, steps, report, on_progress)
            write_archive(out, run.state_dictionary(), _description(settings, report, chosen))
        finally:
            run.close()
    return Pretrained(out, checkpoint, settings, report, chosen.type, time.monotonic() - began, run.steps - first)


def _trained(
    run: PretrainingRun,
    checkpoint: Path,
    steps: int,
    report: Report | None,
    on_progress: Callable[[Report], None] | None,
) -> Report:
    """Update until enough timesteps are made. Whatever ends it, the state after the last update is kept."""
    unsaved: tuple[dict[str, Any], dict[str, Any]] | None = None
    saved = time.monotonic()
    try:
        while report is None or run.steps < steps:
            report = run.update()
            arrays, counters = run.state()
            described = {
                "format": CHECKPOINT_FORMAT,
                "settings": dataclasses.asdict(run.settings),
                "run": counters,
                "report": dataclasses.asdict(report),
            }
            unsaved = arrays, described
            if on_progress is not None:
                on_progress(report)
            if time.monotonic() - saved > _SECONDS_A_CHECKPOINT:
                write_archive(checkpoint, *unsaved)
                unsaved, saved = None, time.monotonic()
    finally:
        if unsaved is not None:
            write_archive(checkpoint, *unsaved)
    return report


def _resumed(run: PretrainingRun, checkpoint: Path) -> Report:
    """Take a run to where its checkpoint was written."""
    try:
        arrays, described = read_archive(checkpoint, _WHAT, _MAX_BYTES)
        if described.get("format") != CHECKPOINT_FORMAT:
            raise StoreError(f"format {described.get('format')!r}")
    except StoreError as error:
        raise _bad(checkpoint, str(error).removeprefix(f"{checkpoint}: ")) from None
    own, its = dataclasses.asdict(run.settings), described.get("settings")
    if not isinstance(its, dict) or its.keys() != own.keys():
        raise _bad(checkpoint, "its settings are not those of pretraining")
    differing = [f"{name} {value}, not {own[name]}" for name, value in its.items() if value != own[name]]
    if differing:
        raise StoreError(f"{checkpoint}: a checkpoint of another run ({'; '.join(differing)}); choose another name")
    try:
        run.restore(arrays, described["run"])
        return Report(**described["report"])
    except (EfhorizonError, KeyError, TypeError, ValueError) as error:
        raise _bad(checkpoint, first_line(error)) from None


def checkpoint_path(out: Path) -> Path:
    """Where a run that writes `out` is kept until it ends, and after."""
    return out.with_suffix(".checkpoint.npz")


def check_writable(out: Path) -> None:
    """Find out before the work whether its result can be written."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        with tempfile.TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        raise StoreError(f"{out}: cannot be written ({error.strerror})") from None


def _description(settings: PretrainingSettings, report: Report, device: torch.device) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "steps": report.steps,
        "settings": dataclasses.asdict(settings),
        "levels": [settings.levels.start, settings.levels.stop - 1],
        "report": dataclasses.asdict(report),
        "device": device.type,
        "packages": {name: metadata.version(name) for name in (*PROCGEN.packages, "torch")},
    }


def _bad(checkpoint: Path, reason: str) -> StoreError:
    return StoreError(f"{checkpoint}: not {_WHAT} that can be used ({reason}); delete it to begin this run again")


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for each piece of work; there are several pieces."""
    before = torch.get_num_threads()
    np.finfo(np.float32), np.finfo(np.float64)  # once known they are kept; below, numpy would warn of what it finds
    begin_thread()
    try:
        yield
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(False)
