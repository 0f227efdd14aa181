"""Two versions of efhorizon on the same work, in turns: how fast is the new one, as a share of the old one?

    python benchmarks/before_after.py BEFORE AFTER [--turns 3] [--only NAME ...] [--json]

BEFORE and AFTER are checkouts. Both do the same work through the command line, which means the same in both: building
a table, verifying it, analyzing, GORP, PPO, DQN, evaluating, a report. A warm-up compiles what has to be compiled. Then
the two take turns, and the best time of each counts: what else the machine does only ever makes it slower. Above 1 the
new version is faster. The last column is the same for processor time, which depends less on what else is running.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

GRIDWORLD, LARGE, GAME, LEVEL = (
    "MiniGrid-Empty-8x8-v0",
    "MiniGrid-DoorKey-8x8-v0",
    "pong_20_fs30",
    "maze_easy_l0_30_fs1",
)


@dataclass(frozen=True)
class Case:
    """One piece of work: a command, and what it writes, which is removed before each turn."""

    command: str
    writes: tuple[str, ...] = ()


SETUP = tuple(f"build {name} --workers 1" for name in (GRIDWORLD, LARGE, GAME, LEVEL, "freeway_10_fs30"))
CASES = {
    "help": Case("--help"),
    "build gridworld": Case(f"build {LARGE} --workers 1 --out fresh", ("fresh",)),
    "build game": Case(f"build {GAME} --workers 2 --out fresh", ("fresh",)),
    "build level": Case(f"build {LEVEL} --workers 1 --out fresh", ("fresh",)),
    "verify": Case(f"verify tables/{GAME} --episodes 200"),
    "analyze gridworld": Case(f"analyze tables/{LARGE} --max-k 1 --json"),
    "analyze game": Case(f"analyze tables/{GAME} --json"),
    "analyze freeway": Case("analyze tables/freeway_10_fs30 --max-k 3 --json"),
    "gorp": Case(f"gorp tables/{GRIDWORLD} --k 2 --json"),
    "ppo": Case(f"train {GRIDWORLD} --algo ppo --settings rollout128 --steps 300000 --results out", ("out",)),
    "dqn": Case(f"train {GRIDWORLD} --algo dqn --settings exploration1 --steps 200000 --results out", ("out",)),
    "ppo from images": Case(
        "train freeway_10_fs30 --algo ppo --settings rollout128 --seeds 1 --steps 4096 --results out", ("out",)
    ),
    "evaluate": Case("evaluate data/study --resamples 200 --json"),
    "report": Case("report data/study --out site", ("site",)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    ratios = {}
    with tempfile.TemporaryDirectory() as folder:
        versions = [Version(tree, Path(folder) / name) for tree, name in ((options.before, "a"), (options.after, "b"))]
        for name in options.only:
            before, after = measured(CASES[name], versions, options.turns)
            ratios[name] = {"wall": before.wall / after.wall, "processor": before.processor / after.processor}
            if not options.json:
                shares = "   ".join(f"{ratio:.2f}" for ratio in ratios[name].values())
                print(f"{name:18} {before.wall:7.2f} s {after.wall:7.2f} s   {shares}", flush=True)
    if options.json:
        print(json.dumps(ratios, indent=1))


class Seconds(NamedTuple):
    """What a command took."""

    wall: float
    processor: float  # of the command and its workers


class Version:
    """A checkout, and a folder of its own to work in."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self._folder = folder
        self._environment = {**os.environ, "PYTHONPATH": str(tree.resolve() / "src")}
        folder.mkdir()
        shutil.copytree(tree / "data", folder / "data")
        for command in SETUP:
            self.run(Case(command))

    def run(self, case: Case) -> Seconds:
        """Run the command, and measure it."""
        for name in case.writes:
            shutil.rmtree(self._folder / name, ignore_errors=True)
        program = "import sys; from importlib import import_module; from importlib.util import find_spec; " + (
            "place = 'efhorizon.cli' if find_spec('efhorizon.cli') else 'efhorizon.commands'; "
            "sys.exit(import_module(place).main())"
        )
        words = [sys.executable, "-c", program, *case.command.split()]
        began, used = time.perf_counter(), _processor_seconds()
        done = subprocess.run(words, cwd=self._folder, env=self._environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{case.command}: {done.stderr}")
        return Seconds(time.perf_counter() - began, _processor_seconds() - used)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(case: Case, versions: list[Version], turns: int) -> tuple[Seconds, Seconds]:
    """The best seconds of both versions."""
    for version in versions:
        version.run(case)
    times = [[version.run(case) for version in versions] for _ in range(turns)]
    before, after = (Seconds(*map(min, zip(*column, strict=True))) for column in zip(*times, strict=True))
    return before, after


if __name__ == "__main__":
    main()
