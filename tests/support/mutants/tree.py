"""A copy of the tree in which mutants are tried, one after the other; the working tree is never touched."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from mutants.operators import Mutant

_COPIED = ("src", "tests", "pyproject.toml")
_LINKED = ("data", "docs")
_GRACE = 30.0  # seconds, on top of four times what the tests take
_COMPILING = 120.0  # seconds on top of that where kernels are compiled again
_MEMORY = 12 << 20  # kilobytes
_PASSED, _FAILED, _INTERRUPTED = 0, 1, 2  # exit codes of pytest


@dataclass(frozen=True)
class Trial:
    """What the tests said."""

    outcome: str  # "survived", "killed" or "killed by time"
    seconds: float
    by: str = ""  # the test that failed first


class Copy:
    """A copy at a place of its own, kept from run to run because compiled kernels belong to a path."""

    def __init__(self, root: Path, place: Path) -> None:
        self._place = place
        place.mkdir(parents=True, exist_ok=True)
        for name in _COPIED:
            _mirror(root / name, place / name)
        for name in _LINKED:
            if not (place / name).exists():
                (place / name).symlink_to(root / name)

    def clean_seconds(self, tests: list[str]) -> float:
        """What the tests take without a mutant, once kernels are compiled; they must pass."""
        for _ in range(2):
            before = self._kernel_folders()
            done = self._tested(tests, None)
            if done.outcome != "survived":
                raise SystemExit(f"without a mutant, the tests fail already: {done.by}")
            if self._kernel_folders() == before:
                break
        return done.seconds

    def trial(self, mutant: Mutant, tests: list[str], clean_seconds: float) -> Trial:
        """Whether the tests notice a mutant."""
        file = self._place / "src" / "efhorizon" / mutant.module
        source, folders = file.read_bytes(), self._kernel_folders()
        limit = _GRACE + 4 * clean_seconds + (0 if mutant.in_plain_function else _COMPILING)
        try:
            file.write_bytes(mutant.applied(source.decode()).encode())
            return self._tested(tests, limit)
        finally:
            file.write_bytes(source)
            for folder in self._kernel_folders() - folders:
                shutil.rmtree(folder)

    def _kernel_folders(self) -> set[Path]:
        """Where compiled kernels are kept, a folder for each module: a mutant adds those that it changes."""
        return set((self._place / "src").rglob("__pycache__/kernels/*"))

    def _tested(self, tests: list[str], limit: float | None) -> Trial:
        command = [sys.executable, "-m", "pytest", "-xq", "--tb=no", "-rfE", "-p", "no:cacheprovider", *tests]
        limited = ["sh", "-c", f'ulimit -v {_MEMORY}; exec "$@"', "sh", *command]  # a mutant may ask for anything
        variables = {"PYTHONPATH": str(self._place / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        begin = time.monotonic()
        process = subprocess.Popen(
            limited,
            cwd=self._place,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output = process.communicate(timeout=limit)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Trial("killed by time", time.monotonic() - begin)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        seconds = time.monotonic() - begin
        if process.returncode == _PASSED:
            return Trial("survived", seconds)
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, flags=re.MULTILINE)
        if process.returncode not in (_FAILED, _INTERRUPTED) and process.returncode >= 0:
            raise SystemExit(f"the tests could not be run:\n{output}")
        return Trial("killed", seconds, failed[1] if failed else f"ended with code {process.returncode}")


def _mirror(source: Path, target: Path) -> None:
    """Make a copy equal to its source, but for what Python and numba keep beside it."""
    files = [source] if source.is_file() else [path for path in source.rglob("*") if path.is_file()]
    wanted = {target / path.relative_to(source) for path in files if not _is_kept_beside(path.relative_to(source))}
    for path in target.rglob("*"):
        if path.is_file() and path not in wanted and not _is_kept_beside(path.relative_to(target)):
            path.unlink()
    for path in wanted:
        original = source / path.relative_to(target)
        if not path.is_file() or path.read_bytes() != original.read_bytes():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(original, path)


def _is_kept_beside(path: Path) -> bool:
    return any(part == "__pycache__" or part.endswith(".egg-info") for part in path.parts)
