"""Whole tables on a real Ray cluster of two nodes, by 1, 2 and 5 owners, and with something lost on the way.

    python benchmarks/ray_owners.py [--names pong_30_fs30,MiniGrid-BlockedUnlockPickup-v0,chaser_easy_l1_10_fs2]
                                    [--owners 1,2,5] [--out owners.jsonl] [--markdown]

Each table is built by local processes, then by Ray with each number of owners, then by two owners while the second node
is taken away in the middle of a layer, and then by a driver that is killed with -9 half-way and started again. Every
build is a line of OUT with its fingerprint as soon as it ends, and the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from efhorizon.build.parts import read_manifest
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target
from efhorizon.engines.choice import EngineChoice

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from ray_cluster import two_nodes

NAMES = "pong_30_fs30,MiniGrid-BlockedUnlockPickup-v0,chaser_easy_l1_10_fs2"
WORKERS = 2


@dataclass(frozen=True)
class Row:
    """One build."""

    name: str
    how: str
    num_raw_states: int
    fingerprint: str
    seconds: float
    lost: str = ""  # what was lost, and when


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", default=NAMES)
    parser.add_argument("--owners", default="1,2,5")
    parser.add_argument("--out", type=Path, default=Path("owners.jsonl"))
    parser.add_argument("--markdown", action="store_true", help="only print the rows as a table")
    options = parser.parse_args()
    if options.markdown:
        print(markdown(rows_of(options.out)))
        return
    done = {(row.name, row.how) for row in rows_of(options.out)}
    ways: dict[str, Callable[[str, Path], Row]] = {"local": local_build}
    ways |= {
        f"{owners} owners": lambda name, out, n=int(owners): owned(name, out, n) for owners in options.owners.split(",")
    }
    ways |= {"a node lost": with_a_node_lost, "driver killed": with_the_driver_killed}
    for name in options.names.split(","):
        for how, make in ways.items():
            if (name, how) in done:
                continue
            with tempfile.TemporaryDirectory() as folder:
                row = make(name, Path(folder))
            with options.out.open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
            print(f"{name}, {how}: {row.fingerprint[:16]}, {row.seconds:.0f} s {row.lost}", flush=True)
    prints = {
        name: {row.fingerprint for row in rows_of(options.out) if row.name == name} for name in options.names.split(",")
    }
    print("fingerprints equal: " + ", ".join(f"{name} {len(each) == 1}" for name, each in prints.items()))


def rows_of(path: Path) -> list[Row]:
    return [msgspec.json.decode(line, type=Row) for line in path.read_text().splitlines()] if path.exists() else []


def markdown(rows: list[Row]) -> str:
    lines = ["| table | raw states | built by | seconds | fingerprint as the local one's |", "|---|---:|---|---:|---|"]
    local = {row.name: row.fingerprint for row in rows if row.how == "local"}
    for row in rows:
        same = "yes" if row.fingerprint == local[row.name] else "NO"
        how = f"{row.how} ({row.lost})" if row.lost else row.how
        lines.append(f"| {row.name} | {row.num_raw_states:,} | {how} | {row.seconds:.0f} | {same} |")
    return "\n".join(lines)


def built(
    name: str, how: str, out: Path, engine: EngineChoice, on_progress: Callable[[Any], None] | None = None
) -> Row:
    options = Options(out=out, verify_episodes=0, num_workers=WORKERS, engine=engine)
    began = time.monotonic()
    messages: list[str] = []
    result = build(
        catalogue_target(name), options, on_progress=on_progress or (lambda _: None), on_message=messages.append
    )
    assert result.mdp is not None
    back = next((line for line in messages if "going back to layer" in line), "")
    raw = int(result.mdp.metadata["num_states_raw"])
    return Row(name, how, raw, result.mdp.fingerprint(), round(time.monotonic() - began, 1), back)


def local_build(name: str, out: Path) -> Row:
    return built(name, "local", out, EngineChoice())


def owned(name: str, out: Path, owners: int) -> Row:
    with two_nodes() as (cluster, _):
        return built(
            name, f"{owners} owners", out, EngineChoice("ray", cluster.address, owners=owners, workers=WORKERS)
        )


def with_a_node_lost(name: str, out: Path) -> Row:
    """The second node is removed in the middle of the first layer after half of the horizon."""
    half = catalogue_target(name).horizon // 2
    with two_nodes() as (cluster, second):
        removed: list[int] = []

        def on_progress(progress: Any) -> None:
            starts = progress.layer_starts
            if not removed and progress.depth >= half and starts[-2] < progress.num_expanded < starts[-1]:
                removed.append(progress.depth)
                cluster.remove_node(second)

        engine = EngineChoice("ray", cluster.address, owners=2, workers=WORKERS)
        row = built(name, "a node lost", out, engine, on_progress)
    assert row.lost, "nothing was lost"
    return row


def with_the_driver_killed(name: str, out: Path) -> Row:
    """`kill -9` of the command once half of the horizon is complete; the same command again."""
    half = catalogue_target(name).horizon // 2
    began = time.monotonic()
    with two_nodes() as (cluster, _):
        command = [sys.executable, "-m", "efhorizon", "build", name, "--out", "tables", "--episodes", "0", "--json"]
        command += ["--engine", "ray", "--address", cluster.address, "--owners", "2", "--workers", str(WORKERS)]
        driver = subprocess.Popen(command, cwd=out, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        reached = 0
        while reached < half and driver.poll() is None:
            time.sleep(0.05)
            for folder in (out / "tables" / "searches").glob("*"):
                manifest = read_manifest(folder)
                reached = 0 if manifest is None else manifest.complete_horizon
        assert driver.poll() is None, "the driver ended before it could be killed"
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
        done = subprocess.run(command, cwd=out, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    seconds = round(time.monotonic() - began, 1)
    return Row(name, "driver killed", found["num_states_raw"], found["fingerprint"], seconds, f"after layer {reached}")


if __name__ == "__main__":
    main()
