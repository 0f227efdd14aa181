"""The largest horizon of each game that fits in a time budget, built and verified: one row a game.

    python benchmarks/survey.py --suite atari --minutes 2 --out survey.jsonl [--tables DIR] [--workers 2] [NAME ...]
    python benchmarks/survey.py --suite atari --out survey.jsonl --markdown      # the rows so far as a table

A row is appended as soon as a game is done; games that have a row are skipped, so the survey can be stopped at any
time. The search is stopped by `--max-minutes`, and the table is that of the longest horizon then complete (at most
200; MiniGrid 100).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from efhorizon import Entry, catalog


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="names of the catalogue (default: one of each game)")
    parser.add_argument("--suite", choices=catalog.suite_names(), required=True)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--out", type=Path, required=True, help="rows as JSON lines")
    parser.add_argument(
        "--tables", type=Path, default=Path("survey-tables"), help="scratch folder, emptied after each game"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--markdown", action="store_true", help="build nothing, print the rows as a table")
    options = parser.parse_args()
    if options.markdown:
        print_markdown([json.loads(line) for line in options.out.read_text().splitlines()])
        return
    done = (
        {json.loads(line)["name"] for line in options.out.read_text().splitlines()} if options.out.exists() else set()
    )
    for name in options.names or representatives(options.suite):
        if name in done:
            continue
        row = surveyed(name, options.minutes, options.workers, options.tables)
        with options.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)
        shutil.rmtree(options.tables, ignore_errors=True)


def print_markdown(rows: list[dict[str, Any]]) -> None:
    print("| table | horizon | raw states | merged | screens | actions | pairs a second | degenerate | verified |")
    print("|---|---:|---:|---:|---:|---:|---:|---|---|")
    for row in rows:
        if row.get("path") is None:
            reason = row.get("error", "not complete")
            print(f"| {row['name']} | | {row.get('num_states_raw', '')} | | | | | | {reason} |")
            continue
        cells = [
            row["id"],
            row["horizon"],
            *(f"{row[key]:,}" for key in ("num_states_raw", "num_states", "num_screens")),
        ]
        cells += [row["num_actions"], f"{row['pairs_per_second']:,.0f}", "yes" if row["degenerate"] else ""]
        print(f"| {' | '.join(map(str, cells))} | {'yes' if row['verified'] else 'NO'} |")


def representatives(suite: str) -> list[str]:
    """The entry with the longest horizon of each game; Procgen: easy level 0; MiniGrid: every gridworld."""
    chosen: dict[str, Entry] = {}
    for entry in catalog.entries(suite):
        if suite == "procgen" and (entry.difficulty, entry.level) != ("easy", 0):
            continue
        key = entry.name if suite == "minigrid" else entry.game
        if key not in chosen or entry.horizon > chosen[key].horizon:
            chosen[key] = entry
    return [entry.name for entry in chosen.values()]


def surveyed(name: str, minutes: float, workers: int, tables: Path) -> dict[str, object]:
    """Build one entry in a process of its own, as a user would."""
    started = time.monotonic()
    command = [sys.executable, "-m", "efhorizon", "build", name, "--json", "--keep-partial"]
    command += ["--max-minutes", str(minutes), "--workers", str(workers), "--out", str(tables)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    row: dict[str, object] = {
        "name": name,
        "exit_code": result.returncode,
        "wall_seconds": round(time.monotonic() - started, 1),
    }
    if result.stdout:
        row |= json.loads(result.stdout)
    else:
        row["error"] = (result.stderr.strip().splitlines() or [""])[-1]
    return row


if __name__ == "__main__":
    main()
