"""The command line of the fuzzer: `make fuzz`, or `python -m tests.fuzz --help`."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from .bench import Bench, Outcome
from .cases import Case
from .kinds import KINDS
from .runs import Log, Workers, planned, run
from .summary import as_json, as_text, distinct, failures, write_page

_FOLDER = Path("build/fuzz")
_MEMORY = Path("/dev/shm")  # writing files to a disk takes longer than most commands


def main() -> int:
    options = _options()
    if options.list:
        for kind in KINDS.values():
            print(f"{kind.name:17} {kind.title}: {', '.join(command.name for command in kind.commands)}")
        return 0
    scratch = Path(tempfile.mkdtemp(prefix="efhorizon-fuzz-", dir=_MEMORY if _MEMORY.is_dir() else None))
    try:
        if options.case:
            return _one(Case.named(options.case), options.folder, scratch)
        return _all(options, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--damages", type=int, default=100, metavar="N", help="structured mutations of each kind")
    parser.add_argument("--flips", type=int, default=50, metavar="N", help="flipped bits in each kind of file")
    parser.add_argument("--kinds", metavar="A,B", help="only these kinds (see --list)")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument(
        "--folder", type=Path, default=_FOLDER, metavar="DIR", help="for the log, the corpus and kept files"
    )
    parser.add_argument("--one", action="store_true", help="one command for each input, in turn: five times as quick")
    parser.add_argument("--resume", action="store_true", help="continue the run in the log")
    parser.add_argument("--case", metavar="CASE", help="run one case again and keep its files")
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="write the counts into this page")
    parser.add_argument("--json", action="store_true", help="print the counts and failures as JSON")
    parser.add_argument("--list", action="store_true", help="print the kinds, and the commands that read them")
    options = parser.parse_args()
    unknown = set((options.kinds or "").split(",")) - {"", *KINDS}
    if unknown:
        parser.error(f"no such kind: {', '.join(sorted(unknown))}")
    return options


def _all(options: argparse.Namespace, scratch: Path) -> int:
    kinds = options.kinds.split(",") if options.kinds else list(KINDS)
    cases = planned(kinds, seed=options.seed, damages=options.damages, flips=options.flips)
    log = Log(options.folder / "log.jsonl", resume=options.resume)
    run(
        cases,
        log,
        options.folder / "corpus",
        scratch,
        num_workers=options.workers,
        one=options.one,
        on_outcome=_Progress(len(cases)),
    )
    if options.page is not None:
        write_page(options.page, log.outcomes)
    if options.json:
        print(json.dumps(as_json(log.outcomes), indent=1))
    else:
        print(as_text(log.outcomes))
        _print_failures(log.outcomes)
    return 1 if failures(log.outcomes) else 0


def _print_failures(outcomes: Sequence[Outcome]) -> None:
    for outcome, command, number in distinct(outcomes):
        verdict = outcome.verdicts[command]
        print(f"\n{verdict.outcome} ({number} times): {command}, {outcome.what[:200]}\n  {verdict.detail[:300]}")
        print(f"  {Case.named(outcome.case).command}")


def _one(case: Case, folder: Path, scratch: Path) -> int:
    """Run one case, keep its files, and say what to type to see it without the fuzzer."""
    with Workers(1, folder / "corpus", scratch) as workers:
        (outcome,) = workers.outcomes([case])
    kept = (folder / "kept" / str(case).replace(":", "-")).resolve()
    Bench(folder / "corpus", kept).prepare(case)
    print(f"{case}: {outcome.what}\n")
    for name, verdict in outcome.verdicts.items():
        print(f"{verdict.outcome:10} {name}: {verdict.detail}")
    print(f"\ncd {kept / 'cwd'}")
    for command in KINDS[case.kind].commands:
        if command.line:
            print(f"efhorizon {command.line}")
    return 0 if all(verdict.is_good for verdict in outcome.verdicts.values()) else 1


class _Progress:
    """A line on stderr now and then, and one for each failure."""

    def __init__(self, total: int) -> None:
        self._total, self._failed, self._last = total, 0, 0.0

    def __call__(self, outcome: Outcome, left: int, seconds: float) -> None:
        done = self._total - left
        self._failed += not all(verdict.is_good for verdict in outcome.verdicts.values())
        if time.monotonic() - self._last > 5 or not left:
            self._last = time.monotonic()
            print(f"{done:,} of {self._total:,} inputs, {self._failed:,} failed, {seconds:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
