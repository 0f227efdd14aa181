"""Where a case is made and its commands are run and judged, one after the other."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import arguments, requests
from .cases import Case
from .children import SECONDS, Ended, run_in_child
from .corpus import make_older
from .kinds import ARGUMENTS, KINDS, MISSING, REQUESTS, Command, Kind
from .mutations import Mutation, NotApplicableError, Target, flipped_bit
from .verdicts import Expected, Verdict, judged, result_of, snapshot, timeless

_FLIP = Mutation("flip", flipped_bit)
_TRIES = 50  # until a mutation fits the file
_LONG = 4.0  # seconds that another valid table is given
_INTACT_SECONDS = 60.0


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    case: str
    what: str  # was done to the input
    verdicts: dict[str, Verdict]  # by command
    seconds: float


@dataclass(frozen=True)
class Damage:
    """What was done to the input of a case."""

    what: str
    may_differ: str = ""  # why another result is legitimate
    may_take_long: bool = False


class Bench:
    """A folder for the case that is being run: `given` holds its files, commands run in `cwd`."""

    def __init__(self, corpus: Path, folder: Path) -> None:
        self._corpus, self._folder = corpus, folder
        self._expected: dict[tuple[str, ...], Expected] = {}

    def run(self, case: Case, *, one: bool = False) -> Outcome:
        """All commands of a case, or with `one` a single one: the cases of a kind take turns."""
        kind, what, verdicts, seconds = KINDS[case.kind], "", {}, 0.0
        commands = [each for each in _commands(case, kind) if each.on_flips or case.family == "damage"]
        for command in [commands[case.number % len(commands)]] if one else commands:
            expected = self._expected_of(kind, command)
            damage = self.prepare(case)
            verdict, ended = self._judged(case, kind, command, expected, damage)
            what, verdicts[command.name] = damage.what, verdict
            seconds += ended.seconds
        shutil.rmtree(self._folder, ignore_errors=True)
        return Outcome(str(case), what, verdicts, seconds)

    def prepare(self, case: Case) -> Damage:
        """Make the folder of a case."""
        kind, rng = KINDS[case.kind], case.rng()
        self.lay_out(kind)
        if kind.name == REQUESTS:
            return Damage(repr(requests.request(case)[:200]))
        if kind.name == ARGUMENTS:
            return Damage(" ".join(arguments.arguments(case))[:300], "other arguments")
        given = self._folder / "given"
        found = {path for pattern in kind.files for path in given.glob(pattern)}
        files = sorted(path for path in found if path.is_file() and path.stat().st_size)
        for attempt in range(_TRIES):
            file = rng.choice(files)
            likewise = [path for path in files if path != file and path.suffix == file.suffix]
            target = Target(file, likewise, self._folder / "outside")
            fitting = kind.mutations_of(file)
            mutation = _FLIP if case.family == "flip" else fitting[case.turn(len(fitting), attempt)]
            try:
                what = f"{file.relative_to(given)}: {mutation.name}: {mutation.apply(target, rng)}"
            except (NotApplicableError, ValueError):  # the latter where a file is not of the format that was expected
                self.lay_out(kind)
                continue
            may_be_missing = MISSING if kind.may_be_missing and mutation.name == "missing" else ""
            return Damage(what, may_be_missing or mutation.may_differ or kind.may_differ, mutation.may_take_long)
        raise RuntimeError(f"{case}: nothing fits")

    def lay_out(self, kind: Kind) -> None:
        """The intact files of a kind, and an empty working directory."""
        shutil.rmtree(self._folder, ignore_errors=True)
        given, outside = self._folder / "given", self._folder / "outside"
        for folder in (given, outside, self._folder / "cwd"):
            folder.mkdir(parents=True)
        for name in kind.scene:
            source, copy = self._corpus / name, given / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, copy)
            else:
                shutil.copyfile(source, copy)
        if kind.is_older:
            make_older(given)
        if kind.name == REQUESTS:
            requests.prepare(given / "site", outside)
        if kind.name == ARGUMENTS:
            os.mkfifo(given / "pipe")
            (given / "circle").symlink_to("circle")
            (given / "empty").write_bytes(b"")
            (given / "empty.npz").write_bytes(b"")

    def _expected_of(self, kind: Kind, command: Command) -> Expected:
        """What the command does with the intact input; found out once."""
        key = (*kind.scene, command.name, command.line, str(kind.is_older))
        if key not in self._expected:
            self.lay_out(kind)
            ended = run_in_child(self._call(None, kind, command), self._folder, seconds=_INTACT_SECONDS)
            if ended.code not in (0, 3) or "Traceback" in ended.stderr:
                raise RuntimeError(f"{command.name} fails on the intact {kind.name}: {ended.stderr or ended}")
            result = result_of(ended, self._folder, command.result)
            self._expected[key] = Expected(result, ended.memory, frozenset(map(timeless, ended.stderr.splitlines())))
        return self._expected[key]

    def _judged(
        self, case: Case, kind: Kind, command: Command, expected: Expected, damage: Damage
    ) -> tuple[Verdict, Ended]:
        before = snapshot(self._folder, command.writes)
        may_take_long = damage.may_take_long and command.computes
        ended = run_in_child(self._call(case, kind, command), self._folder, seconds=_LONG if may_take_long else SECONDS)
        if ended.timed_out and may_take_long:
            return Verdict("long"), ended
        if ended.timed_out:  # the machine may have been busy with something else: once more
            self.prepare(case)
            before = snapshot(self._folder, command.writes)
            ended = run_in_child(self._call(case, kind, command), self._folder)
        after = snapshot(self._folder, command.writes)
        if kind.name == REQUESTS:
            return _of_a_request(ended), ended
        changed = sorted(name for name in {**before, **after} if before.get(name) != after.get(name))
        try:
            result = result_of(ended, self._folder, command.result)
        except (ValueError, OSError, KeyError) as error:
            return Verdict("silent", f"what it wrote cannot be read: {error}"), ended
        may_differ = damage.may_differ or command.may_differ
        return judged(ended, expected, result, changed, may_differ, command.talks), ended

    def _call(self, case: Case | None, kind: Kind, command: Command) -> Callable[[], int]:
        """What a child does; without a case, with the intact input."""
        if kind.name == REQUESTS:
            sent = requests.request(case) if case else requests.ORDINARY
            return lambda: requests.exchange(self._folder / "given" / "site", sent)
        if command.name == "serve":
            return lambda: requests.served(command.arguments)
        line = arguments.arguments(case) if case and kind.name == ARGUMENTS else command.arguments
        return lambda: efhorizon(line)


def efhorizon(line: list[str]) -> int:
    from efhorizon.commands import main

    return main(line)


def _commands(case: Case, kind: Kind) -> tuple[Command, ...]:
    """The commands of a kind; among arguments, the one that they begin with."""
    if kind.name != ARGUMENTS:
        return kind.commands
    line = arguments.arguments(case)
    verb = line[0] if line and line[0].isalpha() else "efhorizon"
    return (Command(verb, kind.commands[0].line, writes=kind.commands[0].writes),)


def _of_a_request(ended: Ended) -> Verdict:
    if ended.timed_out or ended.signal is not None:
        return Verdict("hang", ended.stderr[-200:])
    if ended.stderr.strip():
        causes = [line for line in ended.stderr.splitlines() if line and not line.startswith((" ", "-"))]
        return Verdict("traceback", causes[-1][:200] if causes else ended.stderr[-200:])
    if ended.code != 0:
        return Verdict("silent", ended.stdout.strip())
    return Verdict("same" if '"200"' in ended.stdout else "refused")
