"""Whether what a command did with a damaged input is acceptable.

It is if the result is what the intact input gives, or if the command says in one line why there is none and exits with
a code other than 0; and if it wrote nothing but what it is there to write.
"""

from __future__ import annotations

import csv
import fnmatch
import hashlib
import io
import json
import os
import re
import stat
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .children import GROWTH, Ended

GOOD = ("same", "refused", "noted", "other", "long")
BAD = ("traceback", "hang", "memory", "signal", "silent", "message", "wrote", "formula", "broken")
EXPLAINED = {
    "same": "the result of the intact input",
    "refused": "one line, and an exit code that is not 0",
    "noted": "a result without the damaged part, and a note that says so",
    "other": "the result of another valid input, which the damaged one happens to be",
    "long": "another valid table, whose analysis takes longer than we wait",
    "traceback": "an error that nobody has thought of",
    "hang": "no end within ten seconds",
    "memory": "over a gigabyte more than the intact input takes",
    "signal": "killed by a signal",
    "silent": "another result without a word",
    "message": "an error that is not one line, or is not fit for a terminal",
    "wrote": "something was written that should not have been",
    "formula": "a spreadsheet would run a cell of the CSV",
    "broken": "the fuzzer itself failed",
}
_LONGEST_MESSAGE = 600
_CODES = (1, 2, 3)
_BUDGET = 3  # ended the work early: a result as well
_OUT_OF_MEMORY = re.compile(r"out of memory|unable to allocate|cannot allocate|MemoryError", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_VOLATILE = frozenset(  # what differs between two runs of the same command
    (
        "seconds",
        "wall_seconds",
        "pairs_per_second",
        "made",
        "path",
        "checksum",
        "digest",
        "header_digest",
        "xxh128_header",
        "num_pairs_emulated",  # a search that lost its record of what was done begins again
    )
)

Snapshot = dict[str, tuple[int, int, int]]


@dataclass(frozen=True)
class Verdict:
    outcome: str
    detail: str = ""

    @property
    def is_good(self) -> bool:
        return self.outcome in GOOD


@dataclass(frozen=True)
class Result:
    """All that a command is there for."""

    code: int | None
    output: Any
    files: dict[str, str]


@dataclass(frozen=True)
class Expected:
    """What the command does with the intact input."""

    result: Result
    memory: int
    lines: frozenset[str]  # on stderr


def snapshot(folder: Path, without: tuple[str, ...] = ()) -> Snapshot:
    """Type, size and time of all that is in a folder, but for what matches a pattern."""
    found: Snapshot = {}
    waiting = [str(folder)]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            name = os.path.relpath(entry.path, folder)
            if any(_matches(name, pattern) for pattern in without):
                continue
            about = entry.stat(follow_symlinks=False)
            is_folder = stat.S_ISDIR(about.st_mode)
            found[name] = (about.st_mode, 0 if is_folder else about.st_size, 0 if is_folder else about.st_mtime_ns)
            if is_folder:
                waiting.append(entry.path)
    return found


def _matches(name: str, pattern: str) -> bool:
    """As in gitignore: `a/**` is the folder and all that is in it."""
    folder = pattern.removesuffix("/**")
    return name == folder or (folder != pattern and name.startswith(f"{folder}/")) or fnmatch.fnmatch(name, pattern)


def result_of(ended: Ended, folder: Path, patterns: tuple[str, ...]) -> Result:
    """What the command printed and wrote, without times and the like."""
    try:
        output = _steady(json.loads(ended.stdout))
    except (ValueError, RecursionError):
        output = ended.stdout
    files = {}
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            if path.is_file() and not path.name.startswith("."):
                files[str(path.relative_to(folder))] = _content(path)
    return Result(ended.code, output, files)


def timeless(line: str) -> str:
    """A line of progress without the time that something took."""
    return re.sub(r"[\d.]+ (s|ms|min)\b", "some time", line)


def judged(
    ended: Ended, expected: Expected, result: Result, changed: list[str], may_differ: str, talks: bool = False
) -> Verdict:
    """The verdict; `changed` lists paths that the command should not have touched."""
    text = f"{ended.stdout}\n{ended.stderr}"
    if ended.timed_out:
        return Verdict("hang", _where(ended.stderr))
    if ended.signal is not None:
        return Verdict("signal", f"signal {ended.signal}; {ended.stderr[-200:]}")
    if "Traceback (most recent call last)" in text:
        return Verdict("traceback", _cause(text))
    growth = ended.memory - expected.memory
    if growth > GROWTH:
        return Verdict("memory", f"{growth >> 20} MB more")
    if _OUT_OF_MEMORY.search(ended.stderr):
        return Verdict("memory", f"asks for too much: {ended.stderr.strip()[-200:]}")
    if ended.wrote or changed:
        return Verdict("wrote", ", ".join([*ended.wrote, *changed])[:300])
    if control := _CONTROL.search(text.replace("\n", "")):
        return Verdict("message", f"control character {control[0]!r} in {text[max(0, control.start() - 60) :][:120]!r}")
    lines = [line for line in ended.stderr.splitlines() if timeless(line) not in expected.lines and line.strip()]
    if ended.code == expected.result.code or (ended.code == _BUDGET and not lines):
        return _compared(expected, result, lines, may_differ)
    return _refusal(ended, lines, talks)


def _compared(expected: Expected, result: Result, lines: list[str], may_differ: str) -> Verdict:
    if formula := next((cell for text in result.files.values() for cell in _formulas(text)), None):
        return Verdict("formula", formula[:100])
    if result == expected.result:
        return Verdict("same")
    if may_differ:
        return Verdict("other", may_differ)
    if lines:
        return Verdict("noted", lines[0][:200])
    return Verdict("silent", _difference(expected.result, result))


def _refusal(ended: Ended, lines: list[str], talks: bool) -> Verdict:
    said = [line for line in lines if line.startswith("efhorizon: ")]
    failed = [line for line in lines if line.startswith("  failed ")]  # a study says so of each environment
    others = [] if talks else [line for line in lines if not line.startswith(("efhorizon: ", "note: "))]
    if ended.code in _CODES and not lines and re.search(r'"verified": false|in the table', ended.stdout):
        return Verdict("refused", "a difference")  # `verify` says on stdout what differs
    if ended.code in _CODES and failed and not said and not others:
        return Verdict("refused", failed[0])
    if ended.code not in _CODES or len(said) != 1 or others:
        return Verdict("message", f"exit code {ended.code}, {len(lines)} lines: {' | '.join(lines)[:300]}")
    if len(said[0]) > _LONGEST_MESSAGE:
        return Verdict("message", f"{len(said[0])} characters: {said[0][:200]}")
    return Verdict("refused", said[0])


def _steady(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _steady(value) for name, value in content.items() if name not in _VOLATILE}
    return [_steady(item) for item in content] if isinstance(content, list) else content


def _content(path: Path) -> str:
    """What is in a file, in a form that two runs have in common."""
    if path.name == "zarr.json":
        attributes = json.loads(path.read_bytes())["attributes"]
        return json.dumps({name: attributes[name] for name in ("horizon", "digests")}, sort_keys=True)
    if path.suffix == ".json":
        return json.dumps(_steady(json.loads(path.read_bytes())), sort_keys=True)
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as archive:
            members = [(member.filename, member.CRC, member.file_size) for member in archive.infolist()]
            return f"{members} {_steady(json.loads(archive.comment))}"
    if path.suffix == ".csv":
        return path.read_text(encoding="utf-8")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _formulas(text: str) -> list[str]:
    """Cells of a CSV that a spreadsheet takes for a formula."""
    if "," not in text.partition("\n")[0] or text.startswith(("{", "[")):
        return []
    cells = (cell for line in csv.reader(io.StringIO(text, newline="")) for cell in line)
    return [cell for cell in cells if cell[:1] in ("=", "+", "-", "@") and not _is_number(cell)]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _difference(expected: Result, found: Result) -> str:
    """The first thing that differs."""
    if expected.files != found.files:
        names = [
            name for name in {**expected.files, **found.files} if expected.files.get(name) != found.files.get(name)
        ]
        return f"{len(names)} files differ: {names[0]}"
    one, other = json.dumps(expected.output, indent=1), json.dumps(found.output, indent=1)
    for left, right in zip(one.splitlines(), other.splitlines(), strict=False):
        if left != right:
            return f"{right.strip()[:100]} instead of {left.strip()[:100]}"
    return f"{len(other)} characters instead of {len(one)}"


def _cause(text: str) -> str:
    """The last line of a traceback, and the innermost line of ours."""
    places = re.findall(r'File ".*?/efhorizon/([\w/]+\.py)", line (\d+)', text)
    last = [line for line in text.strip().splitlines() if line and not line.startswith(" ")][-1]
    return f"{last[:200]} ({':'.join(places[-1]) if places else 'elsewhere'})"


def _where(stderr: str) -> str:
    """Where a child hung: the innermost line of ours in what faulthandler has printed."""
    places = re.findall(r'File ".*?/efhorizon/([\w/]+\.py)", line (\d+)', stderr)
    return f"in {':'.join(places[0])}" if places else stderr[-200:]
