"""Mutation testing of the core: `make mutants`, or `python -m mutants --help` in tests/support.

A mutant is the code with one small error in it. Tests that are any good notice: they kill it. Mutants that survive are
either equivalent (no input shows the difference; docs/mutants.md says why) or show what is not tested.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import queue
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from mutants.explained import EXPLAINED, explanations
from mutants.operators import Mutant, mutants
from mutants.parts import PARTS, Part
from mutants.tree import Copy, Trial

ROOT = Path(__file__).parents[3]
WORK = ROOT / "build" / "mutants"
LOG = WORK / "log.jsonl"


@dataclass(frozen=True)
class Task:
    """A mutant, the tests that should kill it, and the digest of all that decides whether they do."""

    mutant: Mutant
    part: Part
    tests: list[str]
    state: str


def main() -> int:
    options = _options()
    tasks = list(_tasks(options))
    if options.mutant and not tasks:
        print(f"there is no mutant {' '.join(options.mutant)}", file=sys.stderr)
        return 2
    if options.list:
        for task in tasks:
            print(_shown(task.mutant))
        return 0
    WORK.mkdir(parents=True, exist_ok=True)
    with (WORK / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print(f"{WORK} is in use by another run", file=sys.stderr)
            return 2
        known = {} if options.fresh or options.mutant else _logged(tasks)
        trials = {**known, **_tried([task for task in tasks if task.mutant.id not in known], options.jobs)}
    reasons = explanations(EXPLAINED.read_text())
    if options.json:
        print(json.dumps([_entry(task, trials[task.mutant.id], reasons) for task in tasks], indent=1))
    else:
        _print_report(tasks, trials, reasons)
    survivors = {id for id, trial in trials.items() if trial.outcome == "survived"}
    return 1 if survivors - reasons.keys() else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1, help="mutants of each module (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default 0)")
    parser.add_argument("--part", nargs="*", choices=[part.name for part in PARTS], help="only these parts")
    parser.add_argument("--module", nargs="*", help="only these modules, such as io/store.py")
    parser.add_argument("--mutant", nargs="*", metavar="ID", help="show and run these, whatever the log says")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (default 1)")
    parser.add_argument("--fresh", action="store_true", help="run again what is in the log")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    return parser.parse_args()


def _tasks(options: argparse.Namespace) -> Iterator[Task]:
    """The mutants that are asked for, or a sample: those whose ids come first when hashed with the seed."""
    for part in PARTS:
        if options.part and part.name not in options.part:
            continue
        state = _state(part)
        for module in part.module_names(ROOT):
            if options.module and module not in options.module:
                continue
            found = mutants(module, (ROOT / "src" / "efhorizon" / module).read_text())
            if options.mutant:
                chosen = [mutant for mutant in found if mutant.id in options.mutant]
            else:
                chosen = sorted(found, key=lambda mutant: _hash(str(options.seed), mutant.id))[: options.count]
            for mutant in chosen:
                yield Task(mutant, part, part.test_files(ROOT, module), state)


def _state(part: Part) -> str:
    """A digest of all sources and of the tests of a part: with others, a mutant may fare otherwise."""
    tests = ROOT / "tests"
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / name for name in part.test_files(ROOT, ""))]
    files += [*tests.glob("**/conftest.py"), *(tests / "support").glob("*.py")]
    return _hash(*(f"{path.relative_to(ROOT)}\0{path.read_text()}" for path in sorted(files)))


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _logged(tasks: list[Task]) -> dict[str, Trial]:
    """Results of earlier runs that still count."""
    states = {task.mutant.id: task.state for task in tasks}
    found = {}
    for line in LOG.read_text().splitlines() if LOG.exists() else []:
        try:
            entry = json.loads(line)
        except ValueError:  # the last line of a run that was killed
            continue
        if states.get(entry["id"]) == entry["state"]:
            found[entry["id"]] = Trial(entry["outcome"], entry["seconds"], entry["by"])
    return found


def _tried(tasks: list[Task], jobs: int) -> dict[str, Trial]:
    """Run mutants in copies of the tree, one copy for each job, and log each result as it comes."""
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    trials: dict[str, Trial] = {}
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            copy, clean_seconds = Copy(ROOT, WORK / f"copy{number}"), dict[str, float]()
            while not failures:
                task = waiting.get_nowait()
                if task.part.name not in clean_seconds:
                    clean_seconds[task.part.name] = copy.clean_seconds(task.tests)
                    seconds = clean_seconds[task.part.name]
                    print(f"{task.part.name}: {seconds:.0f} s without a mutant", file=sys.stderr)
                trial = copy.trial(task.mutant, task.tests, clean_seconds[task.part.name])
                trials[task.mutant.id] = trial
                entry = {"id": task.mutant.id, "state": task.state, **asdict(trial)}
                with LOG.open("a") as log:
                    log.write(json.dumps(entry) + "\n")
                print(f"{_shown(task.mutant)}\n    {trial.outcome} {trial.by} ({trial.seconds:.0f} s)", file=sys.stderr)
        except queue.Empty:
            return
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(min(jobs, len(tasks)))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    return trials


def _shown(mutant: Mutant) -> str:
    source = (ROOT / "src" / "efhorizon" / mutant.module).read_text()
    return f"{mutant.id}  {mutant.place} ({mutant.kind})\n{mutant.difference(source)}"


def _entry(task: Task, trial: Trial, reasons: dict[str, str]) -> dict[str, object]:
    mutant = task.mutant
    source = (ROOT / "src" / "efhorizon" / mutant.module).read_text()
    place = {"part": task.part.name, "module": mutant.module, "function": mutant.function, "line": mutant.line}
    change = {"kind": mutant.kind, "difference": mutant.difference(source)}
    return {"id": mutant.id, **place, **change, **asdict(trial), "explained": reasons.get(mutant.id)}


def _print_report(tasks: list[Task], trials: dict[str, Trial], reasons: dict[str, str]) -> None:
    """Counts for each module, then the survivors."""
    columns = ("killed", "killed by time", "equivalent", "survived")
    counts: dict[str, Counter[str]] = {}
    survivors = []
    for task in tasks:
        outcome = trials[task.mutant.id].outcome
        if outcome == "survived" and task.mutant.id in reasons:
            outcome = "equivalent"
        elif outcome == "survived":
            survivors.append(task.mutant)
        counts.setdefault(task.mutant.module, Counter())[outcome] += 1
    total = sum(counts.values(), Counter[str]())
    print(f"{'module':34}" + "".join(f"{name:>16}" for name in columns))
    for module, found in [*counts.items(), ("all", total)]:
        print(f"{module:34}" + "".join(f"{found[name] or '':>16}" for name in columns))
    for mutant in survivors:
        print(f"\n{_shown(mutant)}")


if __name__ == "__main__":
    sys.exit(main())
