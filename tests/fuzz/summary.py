"""Counts by kind, command and outcome: for people, for programs, and for docs/trust.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .bench import Outcome
from .cases import Case
from .kinds import KINDS
from .verdicts import BAD, EXPLAINED, GOOD

_BEGIN, _END = "<!-- written by `python -m tests.fuzz --page` -->", "<!-- end -->"


def counts(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], Counter[str]]:
    """How many runs of each command on each kind had each outcome."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for kind in KINDS:
        for outcome in outcomes:
            if Case.named(outcome.case).kind == kind:
                for command, verdict in outcome.verdicts.items():
                    found.setdefault((kind, command), Counter())[verdict.outcome] += 1
    return found


def inputs(outcomes: Sequence[Outcome]) -> dict[str, Counter[str]]:
    """How many inputs of each kind there were, by family."""
    found: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for outcome in outcomes:
        case = Case.named(outcome.case)
        found[case.kind][case.family] += 1
    return found


def failures(outcomes: Sequence[Outcome]) -> list[tuple[Outcome, str]]:
    """Each case and command whose outcome is not acceptable."""
    return [
        (outcome, command)
        for outcome in outcomes
        for command, verdict in outcome.verdicts.items()
        if not verdict.is_good
    ]


def distinct(outcomes: Sequence[Outcome]) -> list[tuple[Outcome, str, int]]:
    """The first of each sort of failure, and how many there are of it."""
    first: dict[tuple[str, ...], tuple[Outcome, str]] = {}
    number: Counter[tuple[str, ...]] = Counter()
    for outcome, command in failures(outcomes):
        verdict = outcome.verdicts[command]
        detail = {"traceback": verdict.detail.rpartition(" (")[2], "silent": command}.get(
            verdict.outcome, verdict.detail[:24]
        )
        sort = (Case.named(outcome.case).kind, verdict.outcome, detail)
        first.setdefault(sort, (outcome, command))
        number[sort] += 1
    return [(*first[sort], number[sort]) for sort in first]


def as_text(outcomes: Sequence[Outcome]) -> str:
    """A table with one line for each kind and command, and what its columns mean."""
    found = counts(outcomes)
    columns = [name for name in (*GOOD, *BAD) if any(count[name] for count in found.values())]
    header = ["kind", "command", "runs", *columns]
    lines = [
        [kind, command, str(count.total()), *(str(count[name]) if count[name] else "" for name in columns)]
        for (kind, command), count in found.items()
    ]
    total: Counter[str] = sum(found.values(), Counter())
    lines.append(["", "all", str(total.total()), *(str(total[name]) for name in columns)])
    widths = [max(len(line[place]) for line in [header, *lines]) for place in range(len(header))]
    table = "\n".join(
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in [header, *lines]
    )
    return "\n".join([table, "", *(f"{name}: {EXPLAINED[name]}" for name in columns)])


def as_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "inputs": {kind: dict(count) for kind, count in inputs(outcomes).items() if count},
        "outcomes": [
            {"kind": kind, "command": command, **count} for (kind, command), count in counts(outcomes).items()
        ],
        "failures": [
            {
                "case": outcome.case,
                "command": command,
                "outcome": outcome.verdicts[command].outcome,
                "detail": outcome.verdicts[command].detail,
                "what": outcome.what,
            }
            for outcome, command in failures(outcomes)
        ],
    }


def write_page(page: Path, outcomes: Sequence[Outcome]) -> None:
    """Put the counts of a run into a page, between its two marks."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, found, after = rest.partition(_END)
    if not found:
        raise SystemExit(f"{page}: there is no place for the table: {_BEGIN} ... {_END}")
    page.write_text(f"{before}{_BEGIN}\n{_markdown(outcomes)}{_END}{after}", encoding="utf-8")


def _markdown(outcomes: Sequence[Outcome]) -> str:
    """One line for each kind."""
    found, made = counts(outcomes), inputs(outcomes)
    columns = ("kind", "malformed", "bits flipped", "runs of commands", *GOOD, "failed")
    lines = [f"| {' | '.join(columns)} |", "|---|" + "---:|" * (len(columns) - 1)]
    sums: Counter[str] = Counter()
    for kind, about in KINDS.items():
        count: Counter[str] = sum((each for (of, _), each in found.items() if of == kind), Counter())
        bad = sum(count[name] for name in BAD)
        cells = [made[kind]["damage"], made[kind]["flip"], count.total(), *(count[name] for name in GOOD), bad]
        if count.total():
            lines.append(f"| {about.title} | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
            sums.update(dict(enumerate(cells)))  # type: ignore[arg-type]
    lines.append("| all | " + " | ".join(f"{sums[place]:,}" for place in range(len(columns) - 1)) + " |")  # type: ignore[index]
    return "\n".join(lines) + "\n"
