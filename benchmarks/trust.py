"""What the checks cost: `show` and `analyze` on a table of a million states, in two versions of efhorizon.

    python benchmarks/trust.py BEFORE AFTER [--states 1000000] [--turns 5] [--json]

BEFORE and AFTER are checkouts. Each writes the same made-up table with screens and raw states, and reads it through the
command line; the start screen and that of the deciding state are drawn, so that screens are read too. A warm-up
compiles what has to be compiled. Then the two take turns, and the best time of each counts. Above 1 the new version
takes longer. The last two lines are the new version on the old one's table, which has no digest of each chunk.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TABLE = """
import sys
import numpy as np
from efhorizon import TabularMDP, save

rng, count, horizon = np.random.default_rng(0), int(sys.argv[1]), 50
width = count // horizon
time_of = np.minimum(np.arange(count) // width, horizon - 1)
transitions = rng.integers(width, size=(count, 4)) + ((time_of + 1) * width)[:, None]
transitions[transitions >= horizon * width] = -1
transitions[0] = width + np.arange(4)
rewards = (rng.random(transitions.shape) < 0.01).astype(float)
screens = np.repeat(rng.integers(256, size=(count, 8, 1, 3), dtype=np.uint8), 8, axis=2)
states = [number.to_bytes(16, "little") for number in range(count)]
save(TabularMDP(transitions, rewards, horizon, screens=screens, screen_mapping=np.arange(count), states=states,
                metadata={"id": "million"}), "million")
"""
COMMANDS = {
    "show": "show million --json --image start.png",
    "analyze": "analyze million --json --max-k 1 --image deciding.png",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--states", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    ratios = {}
    with tempfile.TemporaryDirectory() as temporary:
        folders = {name: Path(temporary) / name for name in ("before", "after")}
        for name, folder in folders.items():
            folder.mkdir()
            run(getattr(options, name), folder, "-c", TABLE, str(options.states))
        for table in ("after", "before"):
            for name, command in COMMANDS.items():
                places = ((options.before, folders["before"]), (options.after, folders[table]))
                before, after = measured(command, places, options.turns)
                title = name if table == "after" else f"{name}, older table"
                ratios[title] = after / before
                if not options.json:
                    print(f"{title:22} {before:7.2f} s {after:7.2f} s   {after / before:.3f}", flush=True)
    if options.json:
        print(json.dumps(ratios, indent=1))


def measured(command: str, places: tuple[tuple[Path, Path], ...], turns: int) -> list[float]:
    """The best seconds of each version."""
    words = ("-m", "efhorizon", *command.split())
    times = [[run(tree, folder, *words) for tree, folder in places] for _ in range(turns + 1)]
    return [min(column) for column in zip(*times[1:], strict=True)]  # the first is the warm-up


def run(tree: Path, folder: Path, *words: str) -> float:
    """Seconds that Python takes for this with the package of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(tree.resolve() / "src")}
    began = time.perf_counter()
    done = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{tree}: {' '.join(words)[:80]}: {done.stderr}")
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
