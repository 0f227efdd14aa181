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
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from efhorizon.build.target import Target, catalogue_target
from efhorizon.engines.choice import EngineChoice
from efhorizon.mdp import TabularMDP

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from ray_cluster import two_nodes
from ray_losses import built, on_ray, with_a_node_lost, with_the_driver_killed

NAMES = "pong_30_fs30,MiniGrid-BlockedUnlockPickup-v0,chaser_easy_l1_10_fs2"
LOCAL, NODE_LOST, DRIVER_KILLED = "local", "a node lost", "driver killed"


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
    ways = [LOCAL, *(f"{owners} owners" for owners in options.owners.split(",")), NODE_LOST, DRIVER_KILLED]
    for name in options.names.split(","):
        for how in ways:
            if (name, how) in done:
                continue
            with tempfile.TemporaryDirectory() as folder:
                row = made(name, how, Path(folder))
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


def made(name: str, how: str, out: Path) -> Row:
    """One build. What is lost is lost after half of the horizon."""
    target = catalogue_target(name)
    half = target.horizon // 2
    began = time.monotonic()
    if how == DRIVER_KILLED:
        found = with_the_driver_killed(name, target.horizon, out, half)
        raw, fingerprint, lost = found["num_states_raw"], found["fingerprint"], f"after layer {half} or soon after"
    else:
        mdp, lost = built_as(how, target, out, half)
        raw, fingerprint = mdp.metadata["num_states_raw"], mdp.fingerprint()
    return Row(name, how, int(raw), fingerprint, round(time.monotonic() - began, 1), lost)


def built_as(how: str, target: Target, out: Path, half: int) -> tuple[TabularMDP, str]:
    if how == LOCAL:
        return built(target, out, EngineChoice())
    if how == NODE_LOST:
        return with_a_node_lost(target, out, half)
    with two_nodes() as (cluster, _):
        return built(target, out, on_ray(cluster.address, int(how.split()[0])))


if __name__ == "__main__":
    main()
