"""A search of up to a hundred million states from end to end: explored, merged, stored, verified, analyzed.

    python benchmarks/large_search.py                 cliff-4x32: a million states, a minute or two
    python benchmarks/large_search.py cliff-4x56      9.8 million
    python benchmarks/large_search.py cliff-4x100     100 million states: the full size
    python benchmarks/large_search.py lattice-4x32    the same states, met at many times: a table with cycles

The states, numbers and transitions of both are known in closed form, so what comes out is compared with what must come
out: the count, and the rows of states drawn at random. Each step is a row: seconds, pairs a second, peak memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from efhorizon.io.tables import load
from efhorizon.suites.lattice import is_cliff, num_states, numbers, shape_of

MOST_CHECKED = 100_000  # states whose rows are computed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", nargs="?", default="cliff-4x32")
    parser.add_argument("--out", type=Path, help="folder that is kept; the same command continues there")
    parser.add_argument("--max-memory", default="20G")
    parser.add_argument("--no-analysis", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        out = options.out or Path(temporary)
        build = command("build", options.game, "--out", str(out), "--max-memory", options.max_memory, "--json")
        made, seconds, memory = timed(build)
        content = json.loads(made)
        rate, peak = content["pairs_per_second"], memory / 2**30
        print(f"explored, merged, stored, verified: {seconds:,.0f} s, {rate:,.0f} pairs/s exploring, {peak:.2f} GB")
        print(
            f"states: {content['num_states_raw']:,} of {num_states(options.game):,}; merged {content['num_states']:,}"
        )
        print(f"closed form: {check(options.game, out / options.game)}")
        if not options.no_analysis:
            results = str(out / "results")
            _, seconds, memory = timed(
                command("analyze", options.game, "--tables", str(out), "--json", "--results", results)
            )
            print(f"analyzed: {seconds:,.0f} s, {memory / 2**30:.2f} GB (the peak of all steps so far)")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "efhorizon", *arguments]


def timed(arguments: list[str]) -> tuple[str, float, int]:
    """What a command prints, its seconds, and the largest memory of any command so far, in bytes."""
    began = time.monotonic()
    done = subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return done.stdout, time.monotonic() - began, memory


def check(game: str, path: Path) -> str:
    """The table's rows of some states against the closed form; states are found by their own bytes."""
    counters, size = shape_of(game)
    mdp = load(path)
    assert mdp.states is not None
    drawn = np.random.default_rng(0).choice(mdp.num_states, min(MOST_CHECKED, mdp.num_states), replace=False)
    chosen = np.sort(drawn)  # states are read in blocks
    states = np.stack([np.frombuffer(mdp.states[int(number)], np.uint8) for number in chosen])
    wrong = np.count_nonzero(numbers(game, states) != chosen)
    for action in range(counters):
        following = states.astype(int)
        following[:, action] = np.minimum(following[:, action] + 1, size - 1)
        falls = is_cliff(game) & (states[:, action] == size - 1)
        ends = (following.sum(axis=1) == counters * (size - 1)) | falls
        wrong += np.count_nonzero(mdp.transitions[chosen, action] != np.where(ends, -1, numbers(game, following)))
    return f"{len(chosen):,} states and their {counters * len(chosen):,} transitions compared, {wrong} wrong"


if __name__ == "__main__":
    main()
